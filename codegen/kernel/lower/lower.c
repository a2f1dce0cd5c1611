/* From a kernel and its recipe to a loop nest, once: the recipe's provider builds it.
 * Needs: where everything lies.  Keeps: the graph.  Fills in the kernel's buffers, body and counts. */
#include "kernel/lower/lower.h"
#include "ops/meaning.h"

#include <string.h>

static void count_operations(const Lower *lower, Kernel *kernel)
{
    kernel->flops = kernel->work = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        kernel->flops += node_flops(lower->graph, node);
        kernel->work += node_work(lower->graph, node);
    }
}

static int64_t count_bytes(const Lower *lower)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < lower->kernel->buffer_count; i++) {
        const KernelBuffer *buffer = &lower->kernel->buffer[i];
        const Storage *storage = &lower->storage->at[buffer->storage];
        if (storage->role != STORAGE_SHARED)
            bytes += kernel_buffer_bytes(lower->graph, storage, buffer) * (buffer->read + buffer->written);
    }
    return bytes;
}

/* Widens what the kernel sees of the memory that a value, or a view, is in. */
static void see(Lower *lower, Arena *scratch, ValueId value)
{
    ValueId owner = kernel_view_owner(lower->graph, value), whole = kernel_value_whole(lower, owner);
    Role role = lower->graph->value[owner].role;
    if ((role != ROLE_RESULT && role != ROLE_INPUT) || shape_elements(value_shape(lower->graph, value)) == 0)
        return;
    Sight *sight = &lower->sight[whole];
    int64_t begin, end;
    kernel_value_range(lower, scratch, value, &begin, &end);
    if (!sight->seen)
        *sight = (Sight){begin, value == whole ? NONE : value, true};
    else if (sight->part != value) {
        sight->begin = begin < sight->begin ? begin : sight->begin;
        sight->part = NONE;
    }
}

/* Where the parameters of the kernel point to; `shut` forgets it. */
static void find_sights(Lower *lower, bool shut)
{
    Arena scratch = {0};
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
            ValueId value = i < node->in_count ? node->in[i] : node->out[i - node->in_count];
            ValueId owner = kernel_view_owner(lower->graph, value);
            bool here = kernel_makes(lower, owner);
            if (shut)
                lower->sight[kernel_value_whole(lower, owner)] = (Sight){.part = NONE};
            else if (!here || (value == owner && kernel_stores(lower, value)))
                see(lower, &scratch, value);
        }
    }
    arena_free(&scratch);
}

static void lower_anew(Lower *lower)
{
    lower->block = &lower->kernel->body;
    lower->memo_count = 0;
    lower->name_count = 0;
    lower->asked_count = 0;
    lower->band = (Band){.value = NONE};
    lower->strip = NULL;
    lower->part = 0;
    find_sights(lower, false);
    lower->kernel->recipe.provider->lower(lower);
    kernel_sweep(lower);
    find_sights(lower, true);
}

bool lower_kernel(Lower *lower, Kernel *kernel)
{
    lower->kernel = kernel;
    bool repeated = lower_repeated(lower, lower_anew);
    count_operations(lower, kernel);
    kernel->bytes = count_bytes(lower);
    return !repeated;
}
