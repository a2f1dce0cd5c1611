/* What fuse and the copies before it ask of the register tiles (tiled.h): would they take in the pooling of a
 * contraction's result, the map that makes its image, or would they rather have a copy of it? */
#include "kernel/lower/tiled.h"

#include <string.h>

#include "ops/family.h"
#include "passes/widen.h"

#define NARROWEST    14 /* image that is made row by row: a row fills a tile */
#define MANY_OUTPUTS 16 /* vectors of them */

/* A library takes products as they are. */
static bool has_tiles(const Target *target)
{
    return target && target->lanes > 1 && target->backend != BACKEND_OPENBLAS;
}

/* Is the convolution sure to run in register tiles, and small enough to go row by row?  Its image must be in memory or
 * be made in the kernel. */
static bool goes_by_rows(const Graph *graph, const Target *target, const Node *node, Convolution *conv)
{
    double number;
    if (!has_tiles(target) || !convolution_of(graph, node, conv) || conv->groups != 1 || conv->window.rank != 2)
        return false;
    const Type *x = value_type(graph, node->in[0]), *w = value_type(graph, node->in[1]);
    const Node *input = value_producer(graph, node->in[0]);
    uint32_t unused;
    bool computed =
        input && (node_is_view(input) || node_is_number(input, &number) || node_is_ramp(graph, input, &unused));
    return !computed && x->dtype == DT_F32 && w->dtype == DT_F32 && conv->outputs >= target->lanes &&
           shape_elements(&w->shape) * 4 <= MOST_WEIGHTS && shape_elements(&x->shape) > 0;
}

static bool fills_vectors(const Target *target, const Convolution *conv)
{
    return conv->outputs % target->lanes == 0;
}

/* Do addresses of the image advance evenly along a row, a column, and a block of channels, as set_operand asks?  Of
 * groups, which have recipes that go along rows alone, no channels are asked. */
static bool walks_image(const Graph *graph, Arena *scratch, const Target *target, const Node *node,
                        const Convolution *conv)
{
    const Shape *shape = value_shape(graph, node->in[0]);
    int64_t lanes = target->lanes, factor;
    const Var *block = index_var_new(scratch, "b", 0, ceil_div(conv->channels, lanes) - 1);
    const Var *along[MAX_RANK] = {index_var_new(scratch, "n", 0, conv->images - 1),
                                  index_var_new(scratch, "c", 0, lanes - 1)};
    Index position[MAX_RANK];
    for (uint32_t d = 2; d < shape->rank; d++)
        along[d] = index_var_new(scratch, "i", 0, shape->dim[d] - 1);
    for (uint32_t d = 0; d < shape->rank; d++)
        position[d] = index_var(scratch, along[d]);
    position[1] = index_add(scratch, position[1], index_scale(scratch, index_var(scratch, block), lanes));
    Index address = lower_address_before(graph, scratch, node->in[0], position);
    for (uint32_t d = conv->groups == 1 ? 1 : 2; d < shape->rank; d++)
        if (shape->dim[d] > 1 && !index_factor(address, along[d], &factor))
            return false;
    return true;
}

bool tiled_wants_copy(const Graph *graph, const Target *target, Arena *scratch, const Node *contraction)
{
    Convolution conv;
    if (!has_tiles(target) || !kernel_value_is_view(graph, contraction->in[0]) ||
        !convolution_of(graph, contraction, &conv))
        return false;
    Role role = graph->value[kernel_view_owner(graph, contraction->in[0])].role;
    const Type *x = value_type(graph, contraction->in[0]);
    return (role == ROLE_RESULT || role == ROLE_INPUT) && x->dtype == DT_F32 && shape_elements(&x->shape) > 0 &&
           !walks_image(graph, scratch, target, contraction, &conv);
}

bool tiled_wants_pixels(const Graph *graph, const Target *target, const Node *node)
{
    Convolution conv;
    if (!has_tiles(target) || target->dialect != DIALECT_VECTOR || !convolution_of(graph, node, &conv) ||
        conv.groups != 1 || conv.window.rank != 2 || !convolution_skips_pixels(&conv))
        return false;
    const Type *x = value_type(graph, node->in[0]);
    int64_t lines = type_bytes(x) / conv.window.dim[0].stride; /* rows that it skips are not fetched */
    return x->layout.block == target->lanes && value_type(graph, node->in[1])->dtype == DT_F32 && x->dtype == DT_F32 &&
           conv.outputs >= MANY_OUTPUTS * target->lanes && 2 * lines > target->l2_bytes;
}

/* A constant, or one that joins its reader and is widened there. */
static bool is_cast_constant(const Graph *graph, ValueId value)
{
    const Node *node = value_producer(graph, value);
    bool widens = node && op_info(node->op)->family == FAMILY_CAST && widen_is_worth(value_type(graph, node->in[0]));
    return !node || (widens && node->kernel == NONE && !value_producer(graph, node->in[0]));
}

/* Are weights and bias there before, so that they are packed at compile time? */
static bool has_constant_weights(const Graph *graph, const Node *node)
{
    for (uint32_t i = 1; i < node->in_count; i++)
        if (!(i == 1 ? is_cast_constant(graph, node->in[i]) : !value_producer(graph, node->in[i])))
            return false;
    return true;
}

bool tiled_takes_pool(const Graph *graph, const Target *target, const Node *contraction, const Node *pool)
{
    Convolution conv;
    Window window = reduction_of(graph, pool).window;
    if (pairs_takes_operand(graph, target, contraction, contraction->in[0])) /* whose results wait for nothing */
        return false;
    return window.rank == 2 && window.dim[0].stride >= window_span(&window.dim[0]) && window_is_inside(&window) &&
           has_constant_weights(graph, contraction) && goes_by_rows(graph, target, contraction, &conv) &&
           fills_vectors(target, &conv);
}

bool tiled_takes_map(const Graph *graph, const Target *target, const Node *contraction)
{
    Convolution conv;
    if (!has_constant_weights(graph, contraction) || !goes_by_rows(graph, target, contraction, &conv) ||
        !fills_vectors(target, &conv) || !window_is_pointwise(&conv.window))
        return false;
    return value_type(graph, contraction->in[0])->layout.block == target->lanes && conv.window.dim[1].in >= NARROWEST;
}

/* Of channels that fill their blocks, with weights that are there before; for which depthwise.h makes rows. */
static bool is_depthwise(const Graph *graph, const Target *target, const Node *node)
{
    Convolution conv;
    const Type *x = value_type(graph, node->in[0]);
    return convolution_of(graph, node, &conv) && conv.window.rank == 2 && conv.groups == conv.channels &&
           conv.groups == conv.outputs && conv.channels % target->lanes == 0 && x->layout.block == target->lanes &&
           x->dtype == DT_F32 && value_type(graph, node->in[1])->dtype == DT_F32 && has_constant_weights(graph, node) &&
           !value_producer(graph, node->in[1]);
}

/* Rows one at a time come from the second level where they would from the first, so it pays where what is between does
 * not fit that, and where memory is what counts. */
bool tiled_takes_depthwise(const Graph *graph, const Target *target, const Node *depthwise, const Node *pointwise)
{
    Convolution conv;
    if (!has_tiles(target) || target->small || !has_constant_weights(graph, pointwise) ||
        pairs_takes_operand(graph, target, pointwise, pointwise->in[0]) ||
        pairs_takes_operand(graph, target, depthwise, depthwise->in[0]) ||
        !goes_by_rows(graph, target, pointwise, &conv) || !window_is_pointwise(&conv.window) ||
        !is_depthwise(graph, target, depthwise))
        return false;
    const Type *between = value_type(graph, pointwise->in[0]), *result = value_type(graph, pointwise->out[0]);
    int64_t row = conv.channels * conv.window.dim[1].in * (int64_t)sizeof(float);
    bool far = target->dialect != DIALECT_VECTOR || type_bytes(between) > target->l2_bytes;
    return far && between->layout.block == target->lanes && conv.window.dim[1].in >= NARROWEST &&
           type_bytes(result) + row < type_bytes(between);
}

/* Is it cheap to compute an element of the value in its kernel again, from inputs and constants that are in memory
 * anyway?  Each node of such a kernel is read by the next one only. */
static bool is_cheap_of_inputs(const Graph *graph, ValueId value)
{
    uint32_t kernel = value_producer(graph, value)->kernel;
    for (const Node *node; (node = value_producer(graph, value)) && node->kernel == kernel;) {
        const ScalarList *scalar = op_info(node->op)->scalar;
        if (op_info(node->op)->family != FAMILY_CAST && (!scalar || word_list_is_expensive(scalar)))
            return false;
        value = NONE;
        for (uint32_t i = 0; i < node->in_count; i++) {
            const Node *producer = value_producer(graph, node->in[i]);
            Role role = graph->value[kernel_view_owner(graph, node->in[i])].role;
            bool inside = producer && producer->kernel == kernel;
            if (inside ? value != NONE : role != ROLE_INPUT && role != ROLE_PARAM && role != ROLE_CONST)
                return false;
            value = inside ? node->in[i] : value;
        }
        if (value == NONE)
            return true;
    }
    return false;
}

bool tiled_takes_image(const Graph *graph, const Target *target, const Node *contraction)
{
    Convolution conv;
    if (pairs_takes_operand(graph, target, contraction, contraction->in[0]) && !pairs_widens(graph, contraction->in[0]))
        return false; /* they go element by element */
    if (!goes_by_rows(graph, target, contraction, &conv) || !fills_vectors(target, &conv) ||
        !is_cheap_of_inputs(graph, contraction->in[0]))
        return false;
    const WindowDimension *h = &conv.window.dim[0]; /* what a row of the result reads is a small part of the image */
    return !value_type(graph, contraction->in[0])->layout.block && 2 * h->size <= h->in && h->out > 1;
}

bool tiled_takes_weights(const Graph *graph, const Target *target, const Node *contraction)
{
    Convolution conv;
    Product product;
    if (!has_tiles(target) || contraction->in_count < 2 || value_type(graph, contraction->out[0])->dtype != DT_F32 ||
        value_type(graph, contraction->in[0])->dtype != DT_F32 || !is_cheap_of_inputs(graph, contraction->in[1]))
        return false;
    if (product_of(graph, contraction, &product))
        return product.has_columns && !product.transposed && product.columns >= target->lanes && product.depth > 0;
    return convolution_of(graph, contraction, &conv) && conv.groups == 1 && conv.window.rank == 2 &&
           conv.outputs >= target->lanes && conv.channels > 0 && conv.window.dim[0].out * conv.window.dim[1].out >= 4;
}
