/* Contractions of f16 and bf16, and of integers where that is exact, become those of f32 between casts.
 * Needs: a verified graph.  Keeps: results.
 * Said in f32, all that is done for it is done for them, vectors, layouts, fewer products of 16-bit floats.  Casts join
 * the kernels around, so that images stay as they are in inputs, and weights in memory (widen.h).  It comes first:
 * gradients are those of f32 then, too.  Only where there are vectors; what asks for a recipe stays.
 *
 * Sums of 16-bit floats are kept in f32 anyway (reduction_accumulator), and their products are exact in it; what lies
 * between two contractions is f32.
 *
 * Of i32 a contraction is exact in f32 where no sum, in any order, leaves the integers that f32 has (integers.h), as
 * those of 8 bits do unless they are deep: these are cut along the depth, and the sums of the parts added as integers.
 * What requantises a sum reads it before the cast, rounded, which keeps scales from the weights:
 *
 *     f32(i32(sum))            ->  round(sum)
 *     f32(i32(sum) + b)        ->  round(sum) + f32(b)        as long as that is exact */
#include "ops/meaning.h"
#include "passes/integers.h"
#include "passes/integers_floats.h"
#include "passes/rewrite.h"
#include "passes/widen.h"

#include <math.h>

#define MOST_PARTS 16

/* The contraction in f32. */
static ValueId contract(Rewriter *rw, const Node *node, const ValueId *operand, DType result)
{
    ValueId in[3] = {0};
    for (uint32_t i = 0; i < node->in_count; i++)
        in[i] = integers_as_floats(rw, operand[i]);
    return rewrite_cast(rw, rewrite_build(rw, node->op, in, node->in_count, node->attr), result);
}

static ValueId promote_rule(Rewriter *rw, const Node *node)
{
    DType dtype = value_type(rw->graph, node->out[0])->dtype;
    if (!node_is_contraction(rw->graph, node) || node->mark || !dtype_is_half(dtype))
        return NONE;
    return contract(rw, node, node->in, dtype);
}

/* In which dimension of an operand the depth is. */
static int64_t depth_dimension(const Rewriter *rw, const Node *node, bool second)
{
    Product product;
    if (!product_of(rw->graph, node, &product))
        return 1;
    uint32_t rank = value_shape(rw->graph, node->in[second])->rank;
    return second && product.has_columns && !product.transposed ? rank - 2 : rank - 1;
}

/* The slice of the first operand.  Casts and zero points are done behind it: what is sliced are bytes in memory. */
static ValueId part_of_image(Rewriter *rw, ValueId x, int64_t dimension, int64_t begin, int64_t count)
{
    const Node *node = value_producer(rw->graph, x);
    if (!node || value_type(rw->graph, x)->dtype != DT_I32)
        return rewrite_slice(rw, x, dimension, begin, count, 1);
    Node copy = *node; /* building moves the list of nodes */
    bool less = integers_sign(&copy) < 0 && shape_elements(value_shape(rw->graph, copy.in[1])) == 1 &&
                shape_eq(value_shape(rw->graph, copy.in[0]), value_shape(rw->graph, x));
    if (!less && !integers_cast(&copy))
        return rewrite_slice(rw, x, dimension, begin, count, 1);
    ValueId in[2] = {part_of_image(rw, copy.in[0], dimension, begin, count), less ? copy.in[1] : NONE};
    return rewrite_build(rw, copy.op, in, copy.in_count, copy.attr);
}

/* One of `parts` equal parts of the depth; the first has the bias. */
static ValueId part_of(Rewriter *rw, const Node *node, int64_t parts, int64_t part)
{
    Node piece = *node;
    ValueId in[3] = {0};
    piece.in_count = part ? 2 : node->in_count;
    for (uint32_t i = 0; i < piece.in_count; i++) {
        int64_t dimension = i < 2 ? depth_dimension(rw, node, i == 1) : 0;
        int64_t count = value_shape(rw->graph, node->in[i])->dim[dimension] / parts;
        if (parts == 1 || i == 2)
            in[i] = node->in[i];
        else if (i == 0)
            in[i] = part_of_image(rw, node->in[i], dimension, part * count, count);
        else
            in[i] = rewrite_slice(rw, node->in[i], dimension, part * count, count, 1);
    }
    return contract(rw, &piece, in, DT_I32);
}

static ValueId integer_contraction(Rewriter *rw, const Node *node)
{
    Convolution conv;
    bool grouped = convolution_of(rw->graph, node, &conv) && conv.groups > 1;
    double whole = integers_sum(rw->graph, node, 1) / INTEGERS_MOST, most = grouped ? 1 : MOST_PARTS;
    if (!(whole <= most))
        return NONE;
    int64_t parts = whole > 1 ? (int64_t)ceil(whole) : 1;
    while (parts <= MOST_PARTS && parts > 1 && !(integers_sum(rw->graph, node, parts) <= INTEGERS_MOST))
        parts++;
    if (parts > MOST_PARTS)
        return NONE;
    ValueId sum = part_of(rw, node, parts, 0);
    for (int64_t p = 1; p < parts; p++)
        sum = rewrite_build2(rw, OP_ADD, sum, part_of(rw, node, parts, p));
    return sum;
}

/* The f32 sums that the value is made of by a cast; NONE. */
static ValueId exact_sums(const Rewriter *rw, ValueId integers)
{
    const Node *node = value_producer(rw->graph, integers);
    const Node *sum = node && integers_cast(node) ? value_producer(rw->graph, node->in[0]) : NULL;
    bool exact = sum && value_type(rw->graph, node->in[0])->dtype == DT_F32 && node_is_contraction(rw->graph, sum) &&
                 integers_are_exact(rw->graph, sum);
    return exact ? node->in[0] : NONE;
}

/* The sums, so that no scale gets into the weights: it does not where these stay narrow. */
static ValueId kept_whole(Rewriter *rw, ValueId sum)
{
    const Node *node = value_producer(rw->graph, sum);
    return widen_is(rw->graph, rw->constant, node->in[1]) ? sum : rewrite_build1(rw, OP_ROUND, sum);
}

static ValueId float_of_sums(Rewriter *rw, const Node *node)
{
    ValueId integers = node->in[0], sum = exact_sums(rw, integers);
    const Node *add = value_producer(rw->graph, integers);
    if (sum != NONE)
        return kept_whole(rw, sum);
    for (int i = 0; add && integers_sign(add) > 0 && i < 2; i++) {
        ValueId bias = add->in[1 - i];
        sum = exact_sums(rw, add->in[i]);
        if (sum != NONE && shape_eq(value_shape(rw->graph, sum), value_shape(rw->graph, integers)) &&
            integers_sum(rw->graph, value_producer(rw->graph, sum), 1) + integers_range(rw->graph, bias).most <=
                INTEGERS_MOST)
            return rewrite_build2(rw, OP_ADD, kept_whole(rw, sum), integers_as_floats(rw, bias));
    }
    return NONE;
}

static ValueId integer_rule(Rewriter *rw, const Node *node)
{
    DType dtype = value_type(rw->graph, node->out[0])->dtype;
    if (node_is_contraction(rw->graph, node))
        return node->mark || dtype != DT_I32 ? NONE : integer_contraction(rw, node);
    if (!integers_cast(node) || dtype != DT_F32 || value_type(rw->graph, node->in[0])->dtype != DT_I32)
        return NONE;
    return float_of_sums(rw, node);
}

bool pass_promote(Graph *graph, PassContext *context)
{
    if (context->lanes > 1)
        rewrite_graph(graph, context, promote_rule);
    if (context->integers_as_floats)
        rewrite_graph(graph, context, integer_rule);
    return true;
}
