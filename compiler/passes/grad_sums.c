/* What reaches the captured values of a loop, gathered over its rounds.
 *
 * As a rule it is added up round by round.  What reaches a tensor that the rounds go along slice by slice is stacked:
 * each of its slices is written once, and nothing is added.  And where a round adds x^T * y to the gradient of a
 * weight, x slices of a tape and y what is stacked, the sum over the rounds is one product of all slices, made after
 * the loop: as deep as all rounds together, and its sums stay in registers. */
#include "passes/grad.h"

static ValueId reshaped_from(const Graph *graph, ValueId v)
{
    for (const Node *node; (node = value_producer(graph, v)) && view_is_reshape(node);)
        v = node->in[0];
    return v;
}

static bool is_zeros(const Graph *graph, ValueId v)
{
    const Node *node = value_producer(graph, v);
    double number;
    return node && node_is_number(node, &number) && number == 0;
}

/* Does the list of positions begin with the number of the round? */
static bool is_at_round(const GradRounds *rounds, const Graph *graph, ValueId list)
{
    const Node *node = value_producer(graph, list);
    if (node && node_is_assembly(node))
        list = node->in[0];
    ValueId first = reshaped_from(graph, list);
    for (uint32_t i = 0; i < rounds->number_count; i++)
        if (rounds->number[i] == first)
            return true;
    return false;
}

/* All of it but for the first dimension, of which the rounds take each position once. */
static bool is_slice(const GradRounds *rounds, const Shape *whole, const Shape *part)
{
    if (whole->rank == 0 || part->dim[0] != 1 || whole->dim[0] != rounds->count)
        return false;
    for (uint32_t d = 1; d < whole->rank; d++)
        if (part->dim[d] != whole->dim[d])
            return false;
    return true;
}

ValueId grad_slice_of_round(const GradRounds *rounds, const Graph *graph, ValueId v)
{
    const Node *node = value_producer(graph, v);
    bool slice = node && node_is_dynamic_update(node) && is_zeros(graph, node->in[0]) &&
                 is_slice(rounds, value_shape(graph, v), value_shape(graph, node->in[2])) &&
                 is_at_round(rounds, graph, node->in[1]);
    return slice ? node->in[2] : NONE;
}

/* The matrix of which this is the transpose. */
static ValueId transposed_from(const Graph *graph, ValueId v)
{
    const Node *node = value_producer(graph, v);
    if (!node || !node_is_view(node) || value_shape(graph, v)->rank != 2 || value_shape(graph, node->in[0])->rank != 2)
        return NONE;
    View view = view_of(graph, node, 0);
    bool swaps = view.kind == VIEW_STRIDED && view.from[0] == 1 && view.from[1] == 0 &&
                 view_is_rearrangement(graph, node) && view.step[0] == 1 && view.step[1] == 1;
    return swaps ? node->in[0] : NONE;
}

/* The operand of the backward loop whose slices the rounds read the matrix from; NONE. */
static ValueId sliced_from(const GradRounds *rounds, const Graph *graph, ValueId matrix)
{
    const Node *node = value_producer(graph, reshaped_from(graph, matrix));
    bool slice = node && node_is_dynamic_slice(node) &&
                 is_slice(rounds, value_shape(graph, node->in[0]), value_shape(graph, node->out[0])) &&
                 is_at_round(rounds, graph, node->in[1]);
    return slice && graph->value[node->in[0]].role == ROLE_INPUT ? node->in[0] : NONE;
}

bool grad_product_of_slices(const GradRounds *rounds, const Graph *graph, ValueId v, GradProduct *found)
{
    const Node *node = value_producer(graph, v);
    Product product;
    if (!node || !product_of(graph, node, &product) || product.batch_rank || !product.has_rows ||
        !product.has_columns || product.transposed)
        return false;
    ValueId first = transposed_from(graph, node->in[0]);
    if (first == NONE)
        return false;
    found->rows = product.rows;
    found->depth = product.depth;
    found->columns = product.columns;
    found->first = sliced_from(rounds, graph, first);
    found->second = reshaped_from(graph, node->in[1]);
    return found->first != NONE;
}

bool grad_is_same_slice(const Graph *graph, ValueId slice, const GradProduct *product)
{
    return slice != NONE && reshaped_from(graph, slice) == product->second;
}

ValueId grad_build_product(Reverse *r, const GradRounds *rounds, const GradProduct *product, ValueId first,
                           ValueId second)
{
    const Shape x = {2, {rounds->count * product->depth, product->rows}};
    const Shape y = {2, {rounds->count * product->depth, product->columns}};
    ValueId transposed = reverse_transpose(r, reverse_reshape(r, first, &x), (const uint32_t[]){1, 0});
    return reverse_build2(r, OP_MATMUL, transposed, reverse_reshape(r, second, &y));
}
