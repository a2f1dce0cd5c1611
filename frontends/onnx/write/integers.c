/* Sums of products of narrow integers, which ONNX has ops for: with zero points taken off before, and behind it
 * scaled, rounded, moved and cut off to an integer of 8 bits again.
 *
 *     conv2d(cast(x, to = i32) - cast(zero, to = i32), cast(w, to = i32))                            ConvInteger
 *     cast(x, to = i32) @ (cast(w, to = i32) - cast(zero, to = i32))                                 MatMulInteger
 *     cast(clip(round(cast(SUM + bias, to = f32) * scale) + zero, 0.0, 255.0), to = u8)              QLinearConv,
 * QLinearMatMul */
#include "onnx/write/export.h"

#include <string.h>

typedef struct Bytes { /* an operand */
    ValueId x;
    DType dtype;
    ExportSpread zero; /* list NONE: there is none */
} Bytes;

typedef struct Sum {
    const Node *node;
    Bytes x, w;
    bool is_product;
    Product product;
    Convolution convolution;
} Sum;

static bool is_all_zero(const Graph *graph, ValueId v)
{
    const Value *value = &graph->value[v];
    int64_t count = shape_elements(value_shape(graph, v));
    if (value->role != ROLE_CONST)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (tensor_number(value->data, i) != 0)
            return false;
    return true;
}

static bool take_bytes(const Graph *graph, ValueId v, Bytes *bytes)
{
    const Node *sub = export_maker(graph, v, "sub"), *cast = export_maker(graph, sub ? sub->in[0] : v, "cast");
    if (!cast || value_type(graph, v)->dtype != DT_I32)
        return false;
    *bytes = (Bytes){cast->in[0], value_type(graph, cast->in[0])->dtype, {NONE, -1}};
    if (bytes->dtype != DT_U8 && bytes->dtype != DT_I8)
        return false;
    if (!sub)
        return true;
    const Shape *shape = value_shape(graph, bytes->x);
    if (!shape_eq(shape, value_shape(graph, v)) || !export_take_spread(graph, sub->in[1], shape, true, &bytes->zero) ||
        value_type(graph, bytes->zero.list)->dtype != bytes->dtype)
        return false;
    if (is_all_zero(graph, bytes->zero.list))
        bytes->zero = (ExportSpread){NONE, -1};
    return true;
}

/* A zero point of columns is what products have, none of channels what those who run convolutions. */
static bool takes_zeros(const Graph *graph, const Sum *s)
{
    int64_t last = (int64_t)value_shape(graph, s->w.x)->rank - 1;
    return s->x.zero.axis < 0 && (s->w.zero.axis < 0 || (s->is_product && last == 1 && s->w.zero.axis == last));
}

static bool find_sum(const Graph *graph, const Node *node, Sum *s)
{
    if (node->call || op_info(node->op)->family != FAMILY_CONTRACT || !take_bytes(graph, node->in[0], &s->x) ||
        !take_bytes(graph, node->in[1], &s->w))
        return false;
    s->node = node;
    s->is_product = product_of(graph, node, &s->product);
    if (s->is_product
            ? s->product.transposed || value_shape(graph, s->x.x)->rank < 2 || value_shape(graph, s->w.x)->rank < 2
            : !node_is_convolution(node) || !convolution_of(graph, node, &s->convolution))
        return false;
    return takes_zeros(graph, s) && shape_elements(value_shape(graph, s->x.x)) &&
           shape_elements(value_shape(graph, s->w.x));
}

/* The zero point, as a number or a list. */
static ExportId zero_of(ExportNode *n, const Bytes *bytes)
{
    if (bytes->zero.list == NONE)
        return export_scalar(n->e, bytes->dtype, "0");
    ExportId id = export_value(n->frame, bytes->zero.list);
    bool flat = bytes->zero.axis < 0 && value_shape(n->graph, bytes->zero.list)->rank;
    return flat ? export_make(n, "Squeeze($%u, [0])", id) : id;
}

static uint8_t lifted(int8_t x)
{
    return (uint8_t)(x + 128);
}

/* A constant of bytes with a sign, as ones without it */
static ExportId lift_constant(ExportNode *n, ValueId v)
{
    const Tensor *from = n->graph->value[v].data;
    const Shape *shape = value_shape(n->graph, v);
    Tensor *to = tensor_new(n->e->arena, module_plain_type(n->graph->module, DT_U8, shape->rank, shape->dim));
    for (int64_t i = 0; i < shape_elements(shape); i++)
        ((uint8_t *)to->data)[i] = lifted(((const int8_t *)from->data)[i]);
    return export_array(n->e, to, export_text(n->e, "%s.lifted", export_value_name(n->frame, v, "weight")));
}

static ExportId lift(ExportNode *n, ExportId id)
{
    return export_make(n, "Cast(Add(Cast($%u){to=i32}, i32:128)){to=u8}", id);
}

/* The operand and its zero point.  Bytes with a sign are lifted together with it where those who run the op take none,
 * or cut sums of pairs off at 16 bits, as ONNX Runtime does with u8 by i8. */
static void put_bytes(ExportNode *n, const Bytes *bytes, bool lifts, ExportId *x, ExportId *zero)
{
    lifts &= bytes->dtype == DT_I8;
    *x = lifts && n->graph->value[bytes->x].role == ROLE_CONST ? lift_constant(n, bytes->x)
                                                               : export_value(n->frame, bytes->x);
    if (lifts && n->graph->value[bytes->x].role != ROLE_CONST)
        *x = lift(n, *x);
    if (lifts && bytes->zero.list == NONE)
        *zero = export_scalar(n->e, DT_U8, "128");
    else
        *zero = lifts ? lift(n, zero_of(n, bytes)) : zero_of(n, bytes);
}

/* For a product, or one that is scaled */
static bool lifts_second(const Sum *s)
{
    return s->x.dtype == DT_U8;
}

static bool write_sum(ExportNode *n, const Sum *s)
{
    ExportId x, w, x_zero, w_zero;
    put_bytes(n, &s->x, !s->is_product, &x, &x_zero);
    put_bytes(n, &s->w, !s->is_product || lifts_second(s), &w, &w_zero);
    const char *op = s->is_product ? "MatMulInteger" : "ConvInteger";
    const char *words = s->is_product ? "" : export_window_words(n, &s->convolution);
    if (s->node->in_count == 2)
        return export_result(n, 0, "%s($%u, $%u, $%u, $%u)%s", op, x, w, x_zero, w_zero, words);
    int64_t dim[MAX_RANK] = {value_shape(n->graph, s->node->in[2])->dim[0], 1, 1, 1};
    return export_result(n, 0, "Add(%s($%u, $%u, $%u, $%u)%s, Reshape(z, %s))", op, x, w, x_zero, w_zero, words,
                         export_ints(n, dim, s->convolution.window.rank + 1));
}

/* The way back to 8 bits */

typedef struct Scaled {
    Sum sum;
    ValueId bias, scale; /* bias NONE: there is none */
    ExportSpread zero;   /* list NONE: there is none */
    int64_t columns;     /* that have a scale each; 0: there is one */
    DType dtype;
} Scaled;

/* The sum, or what is added to it, to channels alone. */
static bool take_sum(const Graph *graph, ValueId v, Scaled *s)
{
    const Node *node = value_producer(graph, v), *add = export_maker(graph, v, "add");
    s->bias = NONE;
    if (!node || (!add && !find_sum(graph, node, &s->sum)))
        return false;
    if (!add) {
        s->bias = node->in_count > 2 ? node->in[2] : NONE;
        return true;
    }
    ExportSpread bias;
    node = value_producer(graph, add->in[0]);
    if (!node || !find_sum(graph, node, &s->sum) || s->sum.is_product || node->in_count > 2 ||
        !export_take_spread(graph, add->in[1], value_shape(graph, v), false, &bias) || bias.axis > 1 ||
        (bias.axis < 0 && value_shape(graph, v)->dim[1] != 1))
        return false;
    s->bias = bias.list;
    return bias.axis == 1 || bias.axis < 0;
}

/* One scale, or one for each channel or column. */
static bool take_columns(const Graph *graph, Scaled *s)
{
    const Shape *shape = value_shape(graph, s->scale), *result = value_shape(graph, s->sum.node->out[0]);
    int64_t count = shape_elements(shape), place = s->sum.is_product ? 1 : (int64_t)result->rank - 1;
    s->columns = count == 1 ? 0 : count;
    if (count == 1)
        return true;
    return shape->rank >= place && shape->dim[shape->rank - place] == count &&
           result->dim[result->rank - place] == count &&
           (!s->sum.is_product || value_shape(graph, s->sum.w.x)->rank == 2);
}

/* Who runs them takes results like the first operand, and no bytes with a sign by ones without. */
static bool takes_dtypes(const Scaled *s)
{
    return s->sum.x.dtype == s->dtype && (s->dtype == DT_U8 || s->sum.w.dtype == DT_I8);
}

static bool find_scaled(const Graph *graph, const Node *cast, Scaled *s)
{
    ExportRounded rounded;
    const Node *mul = export_take_rounded(graph, cast, &rounded) ? export_maker(graph, rounded.value, "mul") : NULL;
    const Node *wide = mul ? export_maker(graph, mul->in[0], "cast") : NULL;
    s->dtype = value_type(graph, cast->out[0])->dtype;
    s->zero = (ExportSpread){NONE, -1};
    if (!wide || value_type(graph, mul->out[0])->dtype != DT_F32 || !take_sum(graph, wide->in[0], s))
        return false;
    s->scale = mul->in[1];
    if (rounded.zero != NONE &&
        (!export_take_spread(graph, rounded.zero, value_shape(graph, cast->out[0]), true, &s->zero) ||
         s->zero.axis >= 0 || value_type(graph, s->zero.list)->dtype != s->dtype))
        return false;
    return take_columns(graph, s) && takes_dtypes(s) &&
           shape_eq(value_shape(graph, wide->in[0]), value_shape(graph, s->sum.node->out[0])) &&
           shape_eq(value_shape(graph, cast->out[0]), value_shape(graph, wide->in[0]));
}

static bool write_scaled(ExportNode *n, const Scaled *s)
{
    Bytes result = {.dtype = s->dtype, .zero = s->zero};
    ExportId scale = export_value(n->frame, s->scale), zero = zero_of(n, &result), x, w, x_zero, w_zero;
    put_bytes(n, &s->sum.x, false, &x, &x_zero);
    put_bytes(n, &s->sum.w, lifts_second(&s->sum), &w, &w_zero);
    if (value_shape(n->graph, s->scale)->rank != (s->columns ? 1 : 0))
        scale = export_make(n, "Reshape($%u, %s)", scale, s->columns ? export_ints(n, &s->columns, 1) : "[]");
    const char *operands =
        export_text(n->e, "$%u, f32:1, $%u, $%u, $%u, $%u, f32:1, $%u", x, x_zero, w, scale, w_zero, zero);
    if (s->sum.is_product)
        return export_result(n, 0, "QLinearMatMul(%s)", operands);
    const char *bias = s->bias == NONE ? "" : export_text(n->e, ", $%u", export_value(n->frame, s->bias));
    if (*bias && value_shape(n->graph, s->bias)->rank != 1)
        bias = export_text(n->e, ", Reshape($%u, [1])", export_value(n->frame, s->bias));
    return export_result(n, 0, "QLinearConv(%s%s)%s", operands, bias, export_window_words(n, &s->sum.convolution));
}

bool export_integers(ExportNode *n)
{
    Sum sum;
    Scaled scaled;
    if (n->node->call)
        return false;
    if (strcmp(op_info(n->node->op)->name, "cast") == 0)
        return find_scaled(n->graph, n->node, &scaled) && write_scaled(n, &scaled);
    return find_sum(n->graph, n->node, &sum) && write_sum(n, &sum);
}
