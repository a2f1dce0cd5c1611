#include "api/prepare.h"

#include <ctype.h>
#include <unistd.h>

#include "frontends/nnc/text.h"

#define LONGEST_NAME 100 /* of files, without what is added; what is longer ends in a hash of the whole */

/* NAME.h would stand before a header of C or POSIX that emitted sources, or a caller's, include; nnc_model is a type in
 * each of them. */
static bool is_of_headers(Str name)
{
    static const char *const header[] = {
        "alloca",       "assert",           "complex",  "crt",       "ctype",   "cuda",   "cuda_bf16", "cuda_fp16",
        "cuda_runtime", "cuda_runtime_api", "dlfcn",    "endian",    "errno",   "fcntl",  "features",  "fenv",
        "float",        "immintrin",        "inttypes", "iso646",    "limits",  "locale", "math",      "nnc",
        "nnc_model",    "pthread",          "sched",    "semaphore", "setjmp",  "signal", "stdalign",  "stdarg",
        "stdatomic",    "stdbit",           "stdbool",  "stdckdint", "stddef",  "stdint", "stdio",     "stdlib",
        "stdnoreturn",  "string",           "strings",  "syslog",    "termios", "tgmath", "threads",   "time",
        "uchar",        "unistd",           "wchar",    "wctype"};
    for (uint32_t i = 0; i < sizeof header / sizeof *header; i++)
        if (str_is(name, header[i]))
            return true;
    return false;
}

Str prepare_identifier(Arena *arena, Str name)
{
    Str copy = str_format(arena, "%s" STR_FMT, name.len && isdigit((unsigned char)*name.ptr) ? "_" : "", STR_ARG(name));
    char *at = (char *)(uintptr_t)copy.ptr;
    for (uint32_t i = 0; i < copy.len; i++)
        if (!isalnum((unsigned char)at[i]))
            at[i] = '_';
    if (copy.len > LONGEST_NAME)
        copy = str_format(arena, "%.*s_%08x", LONGEST_NAME, copy.ptr, (unsigned)str_hash(name));
    return is_of_headers(copy) ? str_format(arena, STR_FMT "_", STR_ARG(copy)) : copy;
}

Str prepare_file_name(Str path)
{
    uint32_t begin = path.len;
    while (begin > 0 && path.ptr[begin - 1] != '/')
        begin--;
    return (Str){path.ptr + begin, path.len - begin};
}

Str prepare_initialiser(Arena *arena, const WantedTensor *wanted)
{
    Text text = {0};
    nnc_print_initial(&text, wanted->graph, wanted->value);
    Str shown = str_copy(arena, text_view(&text));
    text_free(&text);
    return shown;
}

Str prepare_stem(Str path)
{
    Str name = prepare_file_name(path);
    for (uint32_t i = name.len; i-- > 1;)
        if (name.ptr[i] == '.')
            return (Str){name.ptr, i};
    return name;
}

typedef struct Describer {
    const Graph *graph; /* that the printer is of */
    NodePrinter *printer;
} Describer;

void *prepare_printer(Arena *arena)
{
    return ARENA_NEW(arena, Describer);
}

/* The printer of nodes comes into being with the first comment on a graph, when that no longer changes. */
void prepare_describe(void *context, Text *out, const Graph *graph, NodeId node)
{
    Describer *describer = context;
    if (describer->graph != graph)
        *describer = (Describer){graph, nnc_node_printer(graph->module->arena, graph)};
    nnc_print_node(describer->printer, out, node);
}

bool prepare_fits_memory(const Graph *graph)
{
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), sum = 0;
    for (ValueId id = 0; memory > 0 && id < graph->value_count; id++) {
        const Value *value = &graph->value[id];
        if (!value->type || (value->role != ROLE_PARAM && value->role != ROLE_STATE))
            continue;
        sum += (double)type_bytes(value->type);
        if (sum > memory)
            return diag_error(graph->module->diag, value->place,
                              STR_FMT " is " STR_FMT ": with it the weights take %.1f GiB, this machine has %.1f",
                              STR_ARG(value_show(graph, id)), STR_ARG(type_show(graph->module->arena, value->type)),
                              sum / 0x1p30, memory / 0x1p30);
    }
    return true;
}
