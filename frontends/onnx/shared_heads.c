/* What decoders do with heads: keys and values that several queries share, as `repeat`; positions that are turned into
 * queries and keys, as `rotary`. */
#include <string.h>

#include "onnx/pattern.h"

/* Repeated
 *
 * [n, h, t, d] as [n, h, 1, t, d], that broadcast to [n, h, times, t, d], that with h and times as one */

typedef struct Repeated {
    OnnxOperand x, many, one; /* what is repeated, broadcast, and has a dimension more */
    uint32_t axis;
    int64_t times;
} Repeated;

/* Is dimension `d` of `wide` repeated, one in `unit` and none in x, while all others are those of x? */
static bool is_added(const Shape *x, const Shape *unit, const Shape *wide, uint32_t d)
{
    for (uint32_t k = 0; k < wide->rank; k++)
        if (unit->dim[k] != (k == d ? 1 : wide->dim[k]) || (k != d && wide->dim[k] != x->dim[k - (k > d)]))
            return false;
    return wide->dim[d] > 1;
}

/* The axis in front of it */
static bool find_axis(const Shape *x, const Shape *unit, const Shape *wide, Repeated *found)
{
    if (wide->rank != x->rank + 1 || unit->rank != wide->rank)
        return false;
    for (uint32_t d = 1; d < wide->rank; d++)
        if (is_added(x, unit, wide, d)) {
            *found = (Repeated){.axis = d - 1, .times = wide->dim[d]};
            return true;
        }
    return false;
}

static bool find_repeated(const OnnxNode *reshape, Repeated *found)
{
    OnnxOperand many = onnx_operand(reshape, 0);
    const OnnxNode *expand = onnx_maker(many.value, "Expand");
    OnnxOperand one = expand ? onnx_operand(expand, 0) : (OnnxOperand){0};
    const OnnxNode *unsqueeze = onnx_maker(one.value, "Unsqueeze");
    unsqueeze = unsqueeze ? unsqueeze : onnx_maker(one.value, "Reshape");
    OnnxOperand x = unsqueeze ? onnx_operand(unsqueeze, 0) : (OnnxOperand){0};
    if (!x.value || many.value->count ||
        !find_axis(&x.value->type->shape, &one.value->type->shape, &many.value->type->shape, found))
        return false;
    found->x = x;
    found->many = many;
    found->one = one;
    return true;
}

static const char *repeated_text(OnnxNode *n, const Repeated *found)
{
    return onnx_text(n, "repeat(%s, %lld, %u)", onnx_name_value(n->onnx, found->x.value), (long long)found->times,
                     found->axis);
}

const char *onnx_repeated_text(OnnxMatch *m, const OnnxNode *reshape, const Shape *wanted)
{
    Repeated found;
    if (!reshape || !find_repeated(reshape, &found))
        return NULL;
    Shape shape = found.x.value->type->shape;
    shape.dim[found.axis] *= found.times;
    onnx_match_enter(m, found.many);
    onnx_match_enter(m, found.one);
    const char *text = repeated_text(m->root, &found);
    return shape_eq(&shape, wanted)
               ? text
               : onnx_text(m->root, "reshape(%s, shape = %s)", text, onnx_list(m->root, wanted->dim, wanted->rank));
}

/* Is it so many elements along an axis in what is written as `repeat`?  Then its shape is known before it is written.
 */
bool onnx_write_repeated(OnnxNode *n)
{
    Repeated found;
    OnnxMatch match;
    onnx_match_start(&match, n);
    if (!find_repeated(n, &found) || !onnx_known(n, 1))
        return false;
    const Tensor *given = n->in[1]->known;
    Shape shape = found.x.value->type->shape;
    shape.dim[found.axis] *= found.times;
    bool same = shape_elements(&given->type->shape) == (int64_t)shape.rank && shape_elements(&shape) > 0;
    for (uint32_t d = 0; same && d < shape.rank; d++)
        same = onnx_int_at(given, d) == shape.dim[d];
    onnx_match_enter(&match, found.many);
    onnx_match_enter(&match, found.one);
    return same && onnx_match_alone(&match) && onnx_emit(n, "%s = %s", onnx_out(n, 0), repeated_text(n, &found));
}

/* Rotary: x * c + concat(-x[h:], x[:h]) * s */

/* Is it the first half of x in its last dimension, or the second?  Slices of ONNX since opset 10 */
static bool is_half(const OnnxValue *value, const OnnxValue *x, bool second)
{
    const OnnxNode *slice = onnx_maker(value, "Slice"), *split = onnx_maker(value, "Split");
    const Shape *whole = &x->type->shape;
    uint32_t rank = whole->rank;
    int64_t half = rank ? whole->dim[rank - 1] / 2 : 0;
    if (!half || whole->dim[rank - 1] % 2 || value->type->shape.rank != rank ||
        value->type->shape.dim[rank - 1] != half)
        return false;
    for (uint32_t d = 0; d + 1 < rank; d++)
        if (value->type->shape.dim[d] != whole->dim[d])
            return false;
    if (split)
        return split->in[0] == x && split->out_count == 2 && split->out[second] == value;
    double begin, step = 1, axis;
    return slice && slice->in[0] == x && onnx_known_number(slice, 1, &begin) && begin == (second ? (double)half : 0) &&
           onnx_known_number(slice, 3, &axis) && (axis == -1 || axis == (double)rank - 1) &&
           (!onnx_has(slice, 4) || (onnx_known_number(slice, 4, &step) && step == 1));
}

/* concat(-x[h:], x[:h]), whose nodes belong to the pattern then */
static bool is_turned(OnnxMatch *m, OnnxOperand operand, const OnnxValue *x)
{
    const OnnxNode *concat = onnx_maker(operand.value, "Concat");
    int64_t axis = concat ? onnx_int(concat, "axis", 0) : 0;
    if (!concat || concat->in_count != 2 || (axis != -1 && axis != (int64_t)x->type->shape.rank - 1))
        return false;
    OnnxOperand minus = onnx_operand(concat, 0), first = onnx_operand(concat, 1);
    const OnnxNode *neg = onnx_maker(minus.value, "Neg");
    OnnxOperand second = neg ? onnx_operand(neg, 0) : (OnnxOperand){0};
    if (!second.value || !first.value || !is_half(first.value, x, false) || !is_half(second.value, x, true))
        return false;
    onnx_match_enter(m, operand);
    onnx_match_enter(m, minus);
    onnx_match_enter(m, second);
    onnx_match_enter(m, first);
    return true;
}

/* Its product with a table that does not widen it: the table */
static OnnxOperand table_of(const OnnxNode *product, uint32_t side, const OnnxValue *x)
{
    OnnxOperand table = onnx_operand(product, 1 - side);
    Shape all;
    bool fits = table.value && shape_broadcast(&x->type->shape, &table.value->type->shape, &all) &&
                shape_eq(&all, &x->type->shape);
    return fits ? table : (OnnxOperand){0};
}

static bool write_turn(OnnxNode *n, uint32_t plain)
{
    OnnxOperand left = onnx_operand(n, plain), right = onnx_operand(n, 1 - plain);
    const OnnxNode *kept = onnx_maker(left.value, "Mul"), *turned = onnx_maker(right.value, "Mul");
    for (uint32_t i = 0; kept && turned && i < 4; i++) {
        OnnxOperand x = onnx_operand(kept, i & 1), pair = onnx_operand(turned, i >> 1);
        OnnxMatch match;
        onnx_match_start(&match, n);
        if (!x.value || !pair.value || !is_turned(&match, pair, x.value))
            continue;
        OnnxOperand cosines = table_of(kept, i & 1, x.value), sines = table_of(turned, i >> 1, x.value);
        onnx_match_enter(&match, left);
        onnx_match_enter(&match, right);
        if (cosines.value && sines.value && dtype_is_float(x.value->type->dtype) && onnx_match_alone(&match))
            return onnx_emit(n, "%s = rotary(%s, %s, %s)", onnx_out(n, 0), onnx_name_value(n->onnx, x.value),
                             onnx_name_value(n->onnx, cosines.value), onnx_name_value(n->onnx, sines.value));
    }
    return false;
}

bool onnx_write_rotary(OnnxNode *n)
{
    return write_turn(n, 0) || write_turn(n, 1);
}
