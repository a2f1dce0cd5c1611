/* Names of kernels, in the model's words.  A call of a library function whose nodes are all in one kernel is one word,
 * any other node goes by its op: conv_relu, softmax, matmul_add_gelu.  After four words comes `etc`, unless the kernel
 * is all of one call of the model's own function: block_all.
 *
 * So that no name is one of C, of C++ or of their headers, such as exp and xor, `all` is added to what is a single
 * elementwise op, or not a name of ours. */
#include "kernel/kernel.h"

#include <ctype.h>

#include "ops/meaning.h"

#define MOST_WORDS 4

typedef struct Namer {
    const Graph *graph;
    uint32_t *size,
        *here;      /* per inlined call: its nodes that are in kernels, also of the calls in it; in this kernel */
    uint32_t *said; /* per inlined call: 1 + the last kernel that has its word */
} Namer;

static void count_node(const Graph *graph, const Node *node, uint32_t *count, uint32_t by)
{
    for (uint32_t c = node->from; c != NONE; c = graph->inlined[c].outer)
        count[c] += by;
}

static void count_kernel(const Namer *namer, const Kernel *kernel, uint32_t by)
{
    for (uint32_t n = 0; n < kernel->node_count; n++)
        count_node(namer->graph, &namer->graph->node[kernel->node[n]], namer->here, by);
}

/* The outermost call of a library function around the node that is in this kernel as a whole. */
static uint32_t whole_call(const Namer *namer, const Node *node)
{
    uint32_t found = NONE;
    for (uint32_t c = node->from; c != NONE && namer->here[c] == namer->size[c]; c = namer->graph->inlined[c].outer)
        if (namer->graph->inlined[c].call->library)
            found = c;
    return found;
}

/* The innermost call, of whatever function, that is the kernel. */
static uint32_t only_call(const Namer *namer, const Kernel *kernel)
{
    uint32_t c = namer->graph->node[kernel->node[0]].from;
    while (c != NONE && namer->here[c] < kernel->node_count)
        c = namer->graph->inlined[c].outer;
    return c != NONE && namer->size[c] == kernel->node_count ? c : NONE;
}

static void put_word(Text *text, Str word)
{
    if (text->len)
        text_char(text, '_');
    for (uint32_t i = 0; i < word.len; i++)
        text_char(text, isalnum((unsigned char)word.ptr[i]) ? word.ptr[i] : '_');
}

static bool is_dynamic(const Graph *graph, const Kernel *kernel)
{
    bool dynamic = false;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        dynamic |= op_info(graph->node[kernel->node[n]].op)->family == FAMILY_DYNAMIC;
    return dynamic;
}

/* The words of the kernel's nodes; how many there are, of which the first are put down. */
static uint32_t put_words(Namer *namer, const Kernel *kernel, Text *text)
{
    uint32_t words = 0;
    bool dynamic = is_dynamic(namer->graph, kernel);
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &namer->graph->node[kernel->node[n]];
        uint32_t call = whole_call(namer, node);
        if (dynamic && kernel_only_reads(namer->graph, node) && !node_is_dynamic_slice(node))
            continue; /* it has joined for the sake of a slice or an update */
        if (call != NONE && namer->said[call] == kernel->id + 1)
            continue;
        if (call != NONE)
            namer->said[call] = kernel->id + 1;
        if (words++ < MOST_WORDS)
            put_word(text, call == NONE ? str_from(op_info(node->op)->name) : namer->graph->inlined[call].call->name);
    }
    return words;
}

static Str kernel_name(Namer *namer, Arena *arena, const Kernel *kernel)
{
    Text text = {0};
    const Node *first = &namer->graph->node[kernel->node[0]];
    uint32_t words = put_words(namer, kernel, &text), call = words > MOST_WORDS ? only_call(namer, kernel) : NONE;
    if (call != NONE) {
        text.len = 0;
        put_word(&text, namer->graph->inlined[call].call->name);
        put_word(&text, STR("all"));
    } else if (words > MOST_WORDS)
        put_word(&text, STR("etc"));
    else if (kernel->node_count == 1 && op_info(first->op)->family == FAMILY_ELEMENTWISE &&
             whole_call(namer, first) == NONE)
        put_word(&text, STR("all"));
    Str name = str_copy(arena, text_view(&text));
    text_free(&text);
    return name;
}

void kernel_name_all(const Graph *graph, Arena *arena, Kernel *kernel, uint32_t count)
{
    Namer namer = {graph, ARENA_ARRAY(arena, uint32_t, graph->inlined_count),
                   ARENA_ARRAY(arena, uint32_t, graph->inlined_count),
                   ARENA_ARRAY(arena, uint32_t, graph->inlined_count)};
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead && graph->node[n].kernel != NONE)
            count_node(graph, &graph->node[n], namer.size, 1);
    for (uint32_t k = 0; k < count; k++) {
        count_kernel(&namer, &kernel[k], 1);
        kernel[k].name = kernel_name(&namer, arena, &kernel[k]);
        count_kernel(&namer, &kernel[k], -1u);
    }
}
