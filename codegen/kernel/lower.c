/* From a fused group to a loop nest.  The anchor decides the schedule:
 *   none                            a map over the result's memory (map.c)
 *   concat, pad or a copy, alone    one map per part that is not there already (map.c)
 *   reductions of rows              stages: a loop over the row per reduction, one for the results (rows.c)
 *   contraction                     the register-tiled micro-kernel (contract.c), blocks of threads (block.c), windows
 *   pooling, other reductions       windows: one accumulator per result element (window.c) */
#include "kernel/kernel.h"

#include <assert.h>
#include <string.h>

const char *const loop_names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"};

Block *lower_enter(Lower *lower, Block *block)
{
    Block *outer = lower->block;
    lower->block = block;
    lower->memo_count = 0;
    return outer;
}

void lower_leave(Lower *lower, Block *outer)
{
    lower->block = outer;
    lower->memo_count = 0;
}

static const Node *find_anchor(const Lower *lower)
{
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        switch (op_info(node->op)->family) {
        case FAMILY_REDUCE:
        case FAMILY_CONTRACT:
        case FAMILY_POOL:
            return node;
        default:
            if (lower->kernel->node_count == 1 && assembles(lower->graph, node))
                return node;
        }
    }
    return NULL;
}

/* Arithmetic of the kernel, a multiplication and an addition counted as two; other elementwise ops as one. */
static int64_t count_flops(const Lower *lower)
{
    int64_t flops = 0;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        const Shape *in = node->in_count ? value_shape(lower->graph, node->in[0]) : NULL;
        int64_t out = shape_elements(value_shape(lower->graph, node->out[0]));
        switch (op_info(node->op)->family) {
        case FAMILY_ELEMENTWISE:
            flops += out;
            break;
        case FAMILY_REDUCE:
            flops += shape_elements(in);
            break;
        case FAMILY_POOL: {
            int64_t window[2];
            attr_ints(node, "window", 2, window);
            flops += out * window[0] * window[1];
            break;
        }
        case FAMILY_CONTRACT: {
            const Shape *w = value_shape(lower->graph, node->in[1]);
            flops += 2 * out * (node->op == OP_MATMUL ? in->dim[in->rank - 1] : w->dim[1] * w->dim[2] * w->dim[3]);
            break;
        }
        default:
            break;
        }
    }
    return flops;
}

static int64_t count_bytes(const Lower *lower)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < lower->kernel->buffer_count; i++) {
        const KernelBuffer *buffer = &lower->kernel->buffer[i];
        if (buffer->weights != NONE)
            bytes += lower->weights->array[buffer->weights].bytes;
        else if (buffer->value != NONE)
            bytes += type_bytes(value_type(lower->graph, buffer->part == NONE ? buffer->value : buffer->part)) *
                     (buffer->read + buffer->written);
        else
            bytes += 2 * buffer->scratch;
    }
    return bytes;
}

static bool kernel_is_empty(const Lower *lower)
{
    const Node *last = &lower->graph->node[lower->kernel->node[lower->kernel->node_count - 1]];
    for (uint32_t r = 0; r < last->out_count; r++)
        if (shape_elements(value_shape(lower->graph, last->out[r])) > 0)
            return false;
    return true;
}

/* Widens the window of the memory that a value, or a view, is in. */
static void see(Lower *lower, Arena *scratch, ValueId value)
{
    ValueId owner = view_owner(lower->graph, value), whole = value_whole(lower, owner);
    Role role = lower->graph->value[owner].role;
    if ((role != ROLE_RESULT && role != ROLE_INPUT) || shape_elements(value_shape(lower->graph, value)) == 0)
        return;
    Window *window = &lower->window[whole];
    int64_t begin, end;
    value_range(lower, scratch, value, &begin, &end);
    if (!window->seen)
        *window = (Window){begin, value == whole ? NONE : value, true};
    else if (window->part != value) {
        window->begin = begin < window->begin ? begin : window->begin;
        window->part = NONE;
    }
}

/* Where the parameters of the kernel point to; `shut` forgets it. */
static void find_windows(Lower *lower, bool shut)
{
    Arena scratch = {0};
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
            ValueId value = i < node->in_count ? node->in[i] : node->out[i - node->in_count];
            ValueId owner = view_owner(lower->graph, value);
            bool here = kernel_makes(lower, owner);
            if (shut)
                lower->window[value_whole(lower, owner)] = (Window){.part = NONE};
            else if (!here || (value == owner && kernel_stores(lower, value)))
                see(lower, &scratch, value);
        }
    }
    arena_free(&scratch);
}

void lower_kernel(Lower *lower, Kernel *kernel)
{
    lower->kernel = kernel;
    lower->block = &kernel->body;
    lower->memo_count = 0;
    lower->name_count = 0;
    lower->band = (Band){.value = NONE};
    find_windows(lower, false);
    const Node *anchor = find_anchor(lower);

    if (kernel_is_empty(lower)) {
    } else if (!anchor)
        lower_map(lower);
    else if (assembles(lower->graph, anchor))
        lower_assembly(lower, anchor);
    else if (rows_apply(lower))
        lower_rows(lower);
    else if (op_info(anchor->op)->family != FAMILY_CONTRACT ||
             !(lower_contraction_tiled(lower, anchor) || lower_contraction_blocked(lower, anchor))) {
        assert(lower->band.value == NONE && "fuse joins pooling only to contractions that are tiled");
        lower_window(lower, anchor);
    }
    sweep_kernel(lower);
    find_windows(lower, true);
    kernel->flops = count_flops(lower);
    kernel->bytes = count_bytes(lower);
}
