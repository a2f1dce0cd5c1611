/* How large integers may be (integers.h).
 * Of weights that are constants, behind casts and a zero point, the elements themselves are added up: that allows a
 * depth several times that of the worst case.  Params may come from another file when the program runs, so of these
 * only the dtype counts. */
#include "passes/integers.h"

#include "base/number.h"
#include "ops/meaning.h"

#include <math.h>

#define FEW     4096 /* elements, of zero points for one, that are looked at where the dtype says something, too */
#define DEEPEST 10   /* nodes above a value that are looked at: each sum has two operands */

static const IntegerRange unknown = {-INFINITY, INFINITY, INFINITY, false};

static IntegerRange range_between(double low, double high)
{
    return (IntegerRange){low, high, fmax(fabs(low), fabs(high)), low >= 0};
}

static IntegerRange range_of_dtype(DType dtype)
{
    uint32_t bits = 8 * dtype_bytes(dtype);
    if (dtype == DT_BOOL)
        return range_between(0, 1);
    if (!dtype_is_int(dtype) || bits > 16)
        return unknown;
    return dtype_is_unsigned(dtype) ? range_between(0, ldexp(1, (int)bits) - 1)
                                    : range_between(-ldexp(1, (int)bits - 1), ldexp(1, (int)bits - 1) - 1);
}

/* Weights of eight bits are asked for often. */
static IntegerRange range_of_bytes(const unsigned char *at, int64_t count, bool is_signed)
{
    int flip = is_signed ? 128 : 0, low = 255, high = 0; /* signed ones in the order of unsigned ones */
    for (int64_t i = 0; i < count; i++) {
        int x = at[i] ^ flip;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    return range_between(low - flip, high - flip);
}

static IntegerRange range_of_constant(const Value *value)
{
    int64_t elements = shape_elements(&value->type->shape);
    IntegerRange range = range_of_dtype(value->type->dtype);
    if (elements > FEW && !isinf(range.most))
        return range;
    DType dtype = value->type->dtype;
    if (elements && (dtype == DT_I8 || dtype == DT_U8))
        return range_of_bytes(value->data->data, elements, dtype == DT_I8);
    for (int64_t i = 0; i < elements; i++) {
        double x = tensor_number(value->data, i);
        if (!(fabs(x) <= INTEGERS_MOST) || x != floor(x))
            return unknown;
        range.low = i ? fmin(range.low, x) : x;
        range.high = i ? fmax(range.high, x) : x;
    }
    return range_between(range.low, range.high);
}

bool integers_cast(const Node *node)
{
    return op_info(node->op)->family == FAMILY_CAST && !op_keeps_bits(node->op);
}

Word integers_word(const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    if (!list || list->count != node->in_count + 1)
        return WORD_OPERAND;
    const ScalarTerm *last = &list->term[node->in_count];
    for (uint32_t i = 0; i < node->in_count; i++)
        if (list->term[i].word != WORD_OPERAND || list->term[i].arg[0] != i || last->arg[i] != i)
            return WORD_OPERAND;
    return last->word;
}

int integers_sign(const Node *node)
{
    Word word = integers_word(node);
    return word == WORD_ADD ? 1 : word == WORD_SUB ? -1 : 0;
}

static IntegerRange range_within(const Graph *graph, ValueId v, uint32_t depth);

/* What a dtype makes of such numbers, which it may not hold: narrow integers wrap around or are cut off. */
static IntegerRange range_held(IntegerRange x, DType dtype)
{
    IntegerRange ends = range_of_dtype(dtype);
    if (dtype_is_half(dtype))
        return ends;
    if (isinf(ends.most)) /* a wide dtype */
        return x.most <= INTEGERS_MOST && (x.low >= 0 || !dtype_is_unsigned(dtype)) ? x : unknown;
    return x.low >= ends.low && x.high <= ends.high ? x : ends;
}

static IntegerRange range_of_sum(const Graph *graph, const Node *node, double sign, uint32_t depth)
{
    IntegerRange x = range_within(graph, node->in[0], depth), y = range_within(graph, node->in[1], depth);
    double low = x.low + (sign > 0 ? y.low : -y.high), high = x.high + (sign > 0 ? y.high : -y.low);
    if (isinf(x.most) || isinf(y.most))
        return unknown;
    return (IntegerRange){low, high, fmax(fmax(x.most, y.most), fmax(fabs(low), fabs(high))),
                          x.positive && (y.most == 0 || (sign > 0 && y.positive))};
}

static IntegerRange range_of_product(const Graph *graph, const Node *node, uint32_t depth)
{
    IntegerRange x = range_within(graph, node->in[0], depth), y = range_within(graph, node->in[1], depth);
    if (isinf(x.most) || isinf(y.most))
        return unknown;
    double low = fmin(fmin(x.low * y.low, x.low * y.high), fmin(x.high * y.low, x.high * y.high));
    double high = fmax(fmax(x.low * y.low, x.low * y.high), fmax(x.high * y.low, x.high * y.high));
    return (IntegerRange){low, high, fmax(fmax(x.most, y.most), x.most * y.most), x.positive && y.positive};
}

/* What a conversion or arithmetic gives, were there no ends to its dtype. */
static IntegerRange range_computed(const Graph *graph, const Node *node, uint32_t depth)
{
    DType dtype = value_type(graph, node->out[0])->dtype;
    Word word = integers_word(node);
    if (integers_cast(node))
        return dtype == DT_BOOL ? unknown : range_within(graph, node->in[0], depth);
    if (word == WORD_ADD || word == WORD_SUB)
        return range_of_sum(graph, node, word == WORD_ADD ? 1 : -1, depth);
    if (word == WORD_MUL && dtype_is_int(dtype)) /* of floats it is a scale */
        return range_of_product(graph, node, depth);
    if (word != WORD_NEG || !dtype_is_int(dtype))
        return unknown;
    IntegerRange x = range_within(graph, node->in[0], depth);
    return (IntegerRange){-x.high, -x.low, x.most, x.most == 0};
}

/* Of windows that each see some of the image: what is not in it is less than all numbers. */
static bool is_largest(const Graph *graph, const Node *node)
{
    if (op_info(node->op)->family != FAMILY_POOL || node->in_count != 1)
        return false;
    Reduction reduction = reduction_of(graph, node);
    bool sees = reduction.kind == REDUCE_VALUES && reduction.combine == WORD_MAX;
    for (uint32_t d = 0; sees && d < reduction.window.rank; d++) {
        const WindowDimension *w = &reduction.window.dim[d];
        sees = w->dilation == 1 && w->before < w->size && (w->out - 1) * w->stride - w->before < w->in;
    }
    return sees;
}

static IntegerRange range_within(const Graph *graph, ValueId v, uint32_t depth)
{
    const Value *value = graph_value(graph, v);
    const Node *node = value_producer(graph, v);
    double number;
    if (value->role == ROLE_CONST)
        return range_of_constant(value);
    if (!node || depth == DEEPEST)
        return range_of_dtype(value->type->dtype);
    if (node_is_number(node, &number))
        return number == floor(number) ? range_between(number, number) : unknown;
    if (op_info(node->op)->family == FAMILY_LAYOUT || (node_is_view(node) && node->out_count == 1))
        return range_within(graph, node->in[0], depth + 1);
    if (is_largest(graph, node))
        return range_within(graph, node->in[0], depth + 1);
    return range_held(range_computed(graph, node, depth + 1), value->type->dtype);
}

IntegerRange integers_range(const Graph *graph, ValueId value)
{
    return range_within(graph, value, 0);
}

bool integers_stay(const Graph *graph, const Node *node)
{
    IntegerRange x = range_computed(graph, node, 0), held = range_held(x, value_type(graph, node->out[0])->dtype);
    return !isinf(x.most) && held.low == x.low && held.high == x.high;
}

/* Sums of the second operand */

typedef struct Weights { /* elements at outer * step[0] + depth * step[1] + inner * step[2], each less `zero` */
    const Tensor *data;
    double zero;
    int64_t extent[3], step[3]; /* results, depth, what else is summed: taps */
} Weights;

static bool see_extents(const Graph *graph, const Node *node, Weights *w)
{
    const Shape *shape = value_shape(graph, node->in[1]);
    Convolution conv;
    Product product;
    if (node_is_convolution(node) && convolution_of(graph, node, &conv)) {
        int64_t channels = shape->dim[1], taps = 1;
        for (uint32_t d = 2; d < shape->rank; d++)
            taps *= shape->dim[d];
        *w = (Weights){.extent = {shape->dim[0], channels, taps}, .step = {channels * taps, taps, 1}};
        return true;
    }
    if (!product_of(graph, node, &product) || shape->rank != 2)
        return false;
    int64_t columns = product.columns, depth = product.depth;
    *w = (Weights){.extent = {columns, depth, 1},
                   .step = {product.transposed ? depth : 1, product.transposed ? 1 : columns}};
    return true;
}

/* The operand of a cast of integers, or of a difference by one zero point, which wrap around for none; NONE. */
static ValueId behind(const Graph *graph, const Node *node, Weights *w)
{
    if (!integers_stay(graph, node))
        return NONE;
    if (integers_cast(node))
        return node->in[0];
    if (integers_sign(node) >= 0 || w->zero)
        return NONE;
    IntegerRange zero = integers_range(graph, node->in[1]);
    w->zero = zero.low;
    bool same = shape_eq(value_shape(graph, node->in[0]), value_shape(graph, node->out[0]));
    return zero.low == zero.high && same ? node->in[0] : NONE;
}

/* The constant that the value is made of so. */
static bool see_constant(const Graph *graph, ValueId v, Weights *w)
{
    const Node *node;
    while (v != NONE && (node = value_producer(graph, v)))
        v = behind(graph, node, w);
    if (v == NONE || graph_value(graph, v)->role != ROLE_CONST || isinf(integers_range(graph, v).most))
        return false;
    w->data = graph_value(graph, v)->data;
    return true;
}

#define SIDE_BY_SIDE 64 /* results whose sums are added up at once: they may lie one behind the other */

static double element(const Weights *w, int64_t at)
{
    bool bytes = w->data->type->dtype == DT_I8; /* as most are */
    return bytes ? ((const int8_t *)w->data->data)[at] : tensor_number(w->data, at);
}

/* The largest amount that numbers from -1 to 1, or from 0 to 1 where they are `positive`, make times the elements of
 * one result, of the part of the depth from begin to end: those below 0 only ever take away from the others then. */
static double largest_sum(const Weights *w, int64_t begin, int64_t end, bool positive)
{
    double largest = 0;
    for (int64_t first = 0; first < w->extent[0]; first += SIDE_BY_SIDE) {
        double sum[SIDE_BY_SIDE] = {0}, amount[SIDE_BY_SIDE] = {0};
        int64_t count = least(SIDE_BY_SIDE, w->extent[0] - first);
        for (int64_t k = begin; k < end; k++)
            for (int64_t t = 0; t < w->extent[2]; t++)
                for (int64_t i = 0; i < count; i++) {
                    double x = element(w, (first + i) * w->step[0] + k * w->step[1] + t * w->step[2]);
                    sum[i] += x;
                    amount[i] += fmax(fabs(x), fabs(x - w->zero)); /* which may be taken away behind the sum */
                }
        for (int64_t i = 0; i < count; i++)
            largest = fmax(largest, positive && !w->zero ? (amount[i] + fabs(sum[i])) / 2 : amount[i]);
    }
    return largest;
}

double integers_sum(const Graph *graph, const Node *node, int64_t parts)
{
    IntegerRange image = integers_range(graph, node->in[0]);
    double x = image.most, y = integers_range(graph, node->in[1]).most, most = 0;
    Contraction form = contraction_of(graph, node);
    double depth = (double)contraction_extent(&form, AXIS_SUM) * (double)contraction_extent(&form, AXIS_TAP);
    Weights w;
    if (isinf(x) || isinf(y))
        return INFINITY;
    double bias = node->in_count > 2 ? integers_range(graph, node->in[2]).most : 0;
    if (!see_extents(graph, node, &w) || w.extent[1] % parts)
        return parts == 1 ? x * y * depth + bias : INFINITY;
    if (!see_constant(graph, node->in[1], &w))
        return x * y * depth / (double)parts + bias;
    for (int64_t p = 0; p < parts; p++) {
        int64_t part = w.extent[1] / parts;
        most = fmax(most, largest_sum(&w, p * part, (p + 1) * part, image.positive));
    }
    return x * most + bias;
}
