/* The kernels of a graph: nodes of one number, what they are together, and which of them decides. */
#include "kernel/kernel.h"

#include "ops/meaning.h"

static bool is_anchor(const Graph *graph, const Kernel *kernel, const Node *node)
{
    return node_is_contraction(graph, node) || node_is_reduction(graph, node) || node_is_cumulation(node) ||
           node_is_sorting(node) || (kernel->node_count == 1 && kernel_assembles(graph, node));
}

bool kernel_rows_lie(const Type *type, uint32_t row_rank)
{
    return !type->layout.block || (row_rank == 0 && type->shape.dim[1] % type->layout.block == 0);
}

/* Do all reductions run over the rows of one space? */
static bool is_of_rows(const Graph *graph, const Kernel *kernel)
{
    const Shape *space = NULL;
    uint32_t first_rank = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        uint32_t rank;
        if (!node_is_reduction(graph, node))
            continue;
        Reduction reduction = reduction_of(graph, node);
        const Type *type = value_type(graph, node->in[0]);
        if (!reduction_is_of_rows(&reduction, &rank) || !kernel_rows_lie(type, rank) ||
            shape_elements(&type->shape) == 0)
            return false;
        if (space && (!shape_eq(space, &type->shape) || rank != first_rank))
            return false;
        space = &type->shape;
        first_rank = rank;
    }
    return space != NULL;
}

static NodeId find_update(const Graph *graph, const Kernel *kernel)
{
    for (uint32_t n = 0; n < kernel->node_count; n++)
        if (node_is_update(&graph->node[kernel->node[n]]))
            return kernel->node[n];
    return NONE;
}

/* A pooling that has joined a contraction is no anchor: the first one decides; of two contractions the second, whose
 * image the first makes. */
static void find_form(const Graph *graph, Kernel *kernel)
{
    kernel->anchor = NONE;
    if (node_flow(&graph->node[kernel->node[0]]) || node_has_bodies(&graph->node[kernel->node[0]])) {
        kernel->form = FORM_FLOW;
        return;
    }
    if ((kernel->anchor = find_update(graph, kernel)) != NONE) {
        kernel->form = FORM_UPDATE;
        return;
    }
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        if (kernel->anchor == NONE ? is_anchor(graph, kernel, node) : node_is_contraction(graph, node))
            kernel->anchor = kernel->node[n];
    }
    if (kernel->anchor == NONE) {
        kernel->form = FORM_MAP;
        return;
    }
    const Node *anchor = &graph->node[kernel->anchor];
    kernel->form = anchor->part                         ? FORM_STRIPS
                   : node_is_contraction(graph, anchor) ? FORM_CONTRACTION
                   : node_is_cumulation(anchor)         ? FORM_CUMULATION
                   : node_is_sorting(anchor)            ? FORM_SORT
                   : !node_is_reduction(graph, anchor)  ? FORM_ASSEMBLY
                   : is_of_rows(graph, kernel)          ? FORM_ROWS
                                                        : FORM_WINDOW;
}

/* The nodes of one number stand together, but for views between them. */
static uint32_t collect_one(const Graph *graph, Arena *arena, uint32_t first, Kernel *kernel)
{
    uint32_t end = first, count = 0;
    for (; end < graph->node_count && (graph->node[end].kernel == kernel->id || graph->node[end].kernel == NONE); end++)
        count += graph->node[end].kernel == kernel->id;
    kernel->node = ARENA_ARRAY(arena, NodeId, count);
    for (uint32_t i = first; i < end; i++)
        if (graph->node[i].kernel == kernel->id)
            kernel->node[kernel->node_count++] = i;
    find_form(graph, kernel);
    return end;
}

uint32_t kernel_collect(const Graph *graph, Arena *arena, Kernel **kernel)
{
    Kernel *list = NULL;
    uint32_t count = 0, capacity = 0;
    for (uint32_t n = 0; n < graph->node_count;) {
        Kernel one = {.id = graph->node[n].kernel};
        if (one.id == NONE) {
            n++;
            continue;
        }
        n = collect_one(graph, arena, n, &one);
        ARENA_PUSH(arena, list, count, capacity, one);
    }
    *kernel = list;
    return count;
}

uint32_t *kernel_by_number(const Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count)
{
    uint32_t most = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && graph->node[n].kernel >= most)
            most = graph->node[n].kernel + 1;
    uint32_t *number = ARENA_ARRAY(arena, uint32_t, most);
    for (uint32_t i = 0; i < most; i++)
        number[i] = NONE;
    for (uint32_t k = 0; k < count; k++)
        number[kernel[k].id] = k;
    return number;
}
