/* Algebra of elementwise ops.  Every replacement has the type of what it replaces: rewrite.c refuses others, as when
 * the zero of x + 0 is what gives the result its shape. */
#include "passes/simplify.h"

#include <math.h>

#include "passes/integers.h"

static bool is_number(const Rewriter *rw, ValueId v, double wanted)
{
    double number;
    return rewrite_number(rw, v, &number) && number == wanted;
}

static bool is_float(const Rewriter *rw, const Node *node)
{
    return dtype_is_float(value_type(rw->graph, node->out[0])->dtype);
}

static bool same_type(const Rewriter *rw, ValueId a, ValueId b)
{
    return value_type(rw->graph, a) == value_type(rw->graph, b);
}

/* The operand of v's producer, when that is an instance of the op; else NONE. */
static ValueId under(const Rewriter *rw, ValueId v, OpCode op)
{
    const Node *node = simplify_producer(rw, v, op);
    return node ? node->in[0] : NONE;
}

/* (x + 1) + 2 -> x + 3, and the same with *: integers only, whose arithmetic wraps; float sums keep their order. */
static ValueId reassociate(Rewriter *rw, const Node *node)
{
    if (is_float(rw, node) || !rewrite_constant(rw, node->in[1]))
        return NONE;
    const Node *inner = simplify_producer(rw, node->in[0], node->op);
    if (!inner || !rewrite_constant(rw, inner->in[1]) || !same_type(rw, inner->in[1], node->in[1]) ||
        !same_type(rw, inner->in[0], node->out[0]))
        return NONE;
    ValueId x = inner->in[0], c = inner->in[1];
    return rewrite_build2(rw, node->op, x, rewrite_build2(rw, node->op, c, node->in[1]));
}

static ValueId simplify_add(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0], y = node->in[1], negated;
    if (is_number(rw, y, 0) && same_type(rw, x, node->out[0]))
        return x;
    if (is_number(rw, x, 0) && same_type(rw, y, node->out[0]))
        return y;
    if ((negated = under(rw, y, OP_NEG)) != NONE)
        return rewrite_build2(rw, OP_SUB, x, negated);
    if ((negated = under(rw, x, OP_NEG)) != NONE)
        return rewrite_build2(rw, OP_SUB, y, negated);
    ValueId parts = simplify_sum_of_parts(rw, node);
    return parts == NONE ? reassociate(rw, node) : parts;
}

/* Zero points of channels that are all 0 */
static bool is_zeros(const Rewriter *rw, ValueId v)
{
    return is_number(rw, v, 0) || (rewrite_constant(rw, v) && integers_range(rw->graph, v).most == 0);
}

static ValueId simplify_sub(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0], y = node->in[1], negated;
    if (same_type(rw, x, node->out[0]) && is_zeros(rw, y))
        return x;
    if (is_number(rw, x, 0) && same_type(rw, y, node->out[0]))
        return rewrite_build1(rw, OP_NEG, y);
    if ((negated = under(rw, y, OP_NEG)) != NONE)
        return rewrite_build2(rw, OP_ADD, x, negated);
    return NONE;
}

static ValueId simplify_mul(Rewriter *rw, const Node *node)
{
    for (int side = 0; side < 2; side++) {
        ValueId x = node->in[side], y = node->in[1 - side];
        if (!same_type(rw, x, node->out[0]))
            continue;
        if (is_number(rw, y, 1))
            return x;
        if (is_number(rw, y, -1))
            return rewrite_build1(rw, OP_NEG, x);
    }
    return reassociate(rw, node);
}

/* The inverse of a power of two is exact, so that x / 4 and x * 0.25 agree bit for bit; no other inverse is. */
static bool has_exact_inverse(const Type *type, double number)
{
    int exponent;
    if (!dtype_is_float(type->dtype) || !isfinite(number) || fabs(frexp(number, &exponent)) != 0.5)
        return false;
    return exponent > -12 && exponent < 14; /* the inverse is a normal number in f16, too */
}

static ValueId simplify_div(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0], y = node->in[1];
    const Type *type = value_type(rw->graph, node->out[0]);
    double number;
    if (is_float(rw, node) && is_number(rw, x, 1) && same_type(rw, y, node->out[0]))
        return rewrite_build1(rw, OP_RECIP, y);
    if (!rewrite_number(rw, y, &number) || !same_type(rw, x, node->out[0]))
        return NONE;
    if (number == 1)
        return x;
    if (has_exact_inverse(type, number))
        return rewrite_build2(rw, OP_MUL, x, rewrite_scalar(rw, type->dtype, 1 / number));
    return NONE;
}

/* What is never negative; of integers, abs may overflow and square may wrap. */
static bool is_not_negative(const Rewriter *rw, ValueId v)
{
    const Node *node = value_producer(rw->graph, v);
    if (!node)
        return false;
    switch (node->op) {
    case OP_RELU:
        return true;
    case OP_ABS:
    case OP_SQUARE:
    case OP_SIGMOID:
    case OP_EXP:
        return is_float(rw, node);
    default:
        return false;
    }
}

/* x ** n for a whole n of -2 to 4.  Each product and inverse is rounded: at most 2 units in the last place are lost, of
 * 16 bits, whose products are f32, none.  The inverse comes first: the square of a large x would overflow where its
 * inverse is a denormal number.  Else NONE. */
static ValueId small_power(Rewriter *rw, ValueId x, double exponent)
{
    DType dtype = value_type(rw->graph, x)->dtype;
    if (exponent == 1)
        return x;
    if (exponent == -1)
        return rewrite_build1(rw, OP_RECIP, x);
    if (exponent == 2)
        return rewrite_build1(rw, OP_SQUARE, x);
    if (exponent != 3 && exponent != 4 && exponent != -2)
        return NONE;
    ValueId base = rewrite_cast(rw, x, dtype == DT_F64 ? DT_F64 : DT_F32),
            power = rewrite_build1(rw, OP_SQUARE, exponent < 0 ? rewrite_build1(rw, OP_RECIP, base) : base);
    if (exponent == 3)
        power = rewrite_build2(rw, OP_MUL, power, base);
    if (exponent == 4)
        power = rewrite_build1(rw, OP_SQUARE, power);
    return rewrite_cast(rw, power, dtype);
}

/* x ** 0.5 and x ** -0.5 are roots, but for two operands: of -0 a power has no sign, and of -inf it is that of inf. */
static ValueId root_power(Rewriter *rw, ValueId x, double exponent)
{
    ValueId root = rewrite_build1(rw, exponent > 0 ? OP_SQRT : OP_RSQRT, x);
    const Node *producer = value_producer(rw->graph, x);
    if (is_not_negative(rw, x) && producer->op != OP_RELU) /* whose zeros are of either sign */
        return root;
    DType dtype = value_type(rw->graph, x)->dtype;
    ValueId least = rewrite_build2(rw, OP_EQ, x, rewrite_scalar(rw, dtype, -INFINITY)),
            limit = rewrite_scalar(rw, dtype, exponent > 0 ? INFINITY : 0);
    return rewrite_build(rw, OP_SELECT, (ValueId[]){least, limit, rewrite_build1(rw, OP_ABS, root)}, 3, NULL);
}

static ValueId simplify_pow(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0];
    double exponent;
    if (!rewrite_number(rw, node->in[1], &exponent) || !same_type(rw, x, node->out[0]))
        return NONE;
    return fabs(exponent) == 0.5 ? root_power(rw, x, exponent) : small_power(rw, x, exponent);
}

static ValueId simplify_maximum(Rewriter *rw, const Node *node)
{
    for (int side = 0; side < 2; side++)
        if (is_number(rw, node->in[1 - side], 0) && same_type(rw, node->in[side], node->out[0]))
            return rewrite_build1(rw, OP_RELU, node->in[side]);
    return node->in[0] == node->in[1] ? node->in[0] : NONE;
}

static ValueId simplify_logic(Rewriter *rw, const Node *node) /* and, or */
{
    double neutral = node->op == OP_AND;
    for (int side = 0; side < 2; side++)
        if (is_number(rw, node->in[1 - side], neutral) && same_type(rw, node->in[side], node->out[0]))
            return node->in[side];
    return node->in[0] == node->in[1] ? node->in[0] : NONE;
}

static ValueId simplify_select(Rewriter *rw, const Node *node)
{
    double mask;
    ValueId chosen = NONE;
    if (node->in[1] == node->in[2])
        chosen = node->in[1];
    else if (rewrite_number(rw, node->in[0], &mask))
        chosen = mask != 0 ? node->in[1] : node->in[2];
    return chosen != NONE && same_type(rw, chosen, node->out[0]) ? chosen : NONE;
}

/* Rounding of what is an integer already. */
static ValueId simplify_rounding(const Rewriter *rw, const Node *node)
{
    static const OpCode whole[] = {OP_FLOOR, OP_CEIL, OP_ROUND, OP_TRUNC};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (simplify_producer(rw, node->in[0], whole[i]))
            return node->in[0];
    return NONE;
}

static ValueId simplify_abs(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0], negated = under(rw, x, OP_NEG);
    if (is_not_negative(rw, x))
        return x;
    return negated == NONE ? NONE : rewrite_build1(rw, OP_ABS, negated);
}

/* Casts */

/* Does every number of `from` have its exact image in `to`? */
static bool cast_is_exact(DType from, DType to)
{
    static const struct {
        int bits;  /* of the significand, or of the integer without its sign */
        int range; /* of floats: the larger, the wider */
    } row[DT_COUNT] = {
        [DT_F64] = {53, 3}, [DT_F32] = {24, 2}, [DT_BF16] = {8, 2}, [DT_F16] = {11, 1}, [DT_I64] = {63, 0},
        [DT_I32] = {31, 0}, [DT_I16] = {15, 0}, [DT_I8] = {7, 0},   [DT_U8] = {8, 0},   [DT_U64] = {64, 0},
        [DT_U32] = {32, 0}, [DT_U16] = {16, 0}, [DT_BOOL] = {1, 0},
    };
    if (from == to)
        return true;
    return to != DT_BOOL && row[from].bits <= row[to].bits && row[from].range <= row[to].range &&
           !(dtype_is_int(from) && !dtype_is_unsigned(from) && dtype_is_unsigned(to));
}

/* A cast to bytes brings what is beyond their ends to these; so has a limit before it. */
static ValueId under_limits(const Rewriter *rw, ValueId x, DType to)
{
    double low = to == DT_U8 ? 0 : -128, high = to == DT_U8 ? 255 : 127, limit;
    for (const Node *node; (node = value_producer(rw->graph, x));) {
        bool at_least = node->op == OP_MAXIMUM && rewrite_number(rw, node->in[1], &limit) && limit <= low,
             at_most = node->op == OP_MINIMUM && rewrite_number(rw, node->in[1], &limit) && limit >= high;
        bool cut = at_least || at_most || (node->op == OP_RELU && low == 0);
        if (!cut || !same_type(rw, node->in[0], x))
            break;
        x = node->in[0];
    }
    return x;
}

static ValueId cast_without_limits(Rewriter *rw, const Node *cast)
{
    DType from = value_type(rw->graph, cast->in[0])->dtype, to = value_type(rw->graph, cast->out[0])->dtype;
    if (from != DT_F32 || (to != DT_I8 && to != DT_U8))
        return NONE;
    ValueId x = under_limits(rw, cast->in[0], to);
    return x == cast->in[0] ? NONE : rewrite_build(rw, OP_CAST, &x, 1, cast->attr);
}

/* A detour over a type that holds every number changes nothing: f32 -> f64 -> f16 is f32 -> f16.  But integers wrap
 * where floats saturate, so i32 -> f64 -> i8 is left alone, except where it ends in the type it began with. */
static ValueId simplify_cast(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0];
    if (same_type(rw, x, node->out[0]))
        return x;
    const Node *inner = simplify_producer(rw, x, OP_CAST);
    ValueId whole = inner ? NONE : cast_without_limits(rw, node);
    if (whole != NONE)
        return whole;
    if (!inner)
        return simplify_widened_difference(rw, node);
    DType from = value_type(rw->graph, inner->in[0])->dtype, by = value_type(rw->graph, x)->dtype,
          to = value_type(rw->graph, node->out[0])->dtype;
    if (!cast_is_exact(from, by))
        return NONE;
    if (from == to)
        return inner->in[0];
    if (dtype_is_float(from) != dtype_is_float(by) || from == DT_BOOL)
        return NONE;
    return rewrite_build(rw, OP_CAST, inner->in, 1, node->attr);
}

ValueId simplify_elementwise(Rewriter *rw, const Node *node)
{
    ValueId x = node->in[0], inner;
    switch (node->op) {
    case OP_ADD:
        return simplify_add(rw, node);
    case OP_SUB:
        return simplify_sub(rw, node);
    case OP_MUL:
        return simplify_mul(rw, node);
    case OP_DIV:
        return simplify_div(rw, node);
    case OP_POW:
        return simplify_pow(rw, node);
    case OP_MAXIMUM:
        return simplify_maximum(rw, node);
    case OP_MINIMUM:
        return x == node->in[1] ? x : NONE;
    case OP_STOP_GRADIENT: /* where gradients are nodes by now */
        return rw->context->asks_gradients ? NONE : x;
    case OP_NEG:
    case OP_NOT:
        return under(rw, x, node->op);
    case OP_RELU:
        return is_not_negative(rw, x) ? x : NONE;
    case OP_ABS:
        return simplify_abs(rw, node);
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_TRUNC:
        return simplify_rounding(rw, node);
    case OP_SQUARE:
        if ((inner = under(rw, x, OP_NEG)) == NONE)
            inner = under(rw, x, OP_ABS);
        return inner == NONE ? NONE : rewrite_build1(rw, OP_SQUARE, inner);
    case OP_RECIP:
        inner = under(rw, x, OP_SQRT);
        return inner == NONE ? NONE : rewrite_build1(rw, OP_RSQRT, inner);
    case OP_AND:
    case OP_OR:
        return simplify_logic(rw, node);
    case OP_SELECT:
        return simplify_select(rw, node);
    case OP_CAST:
        return simplify_cast(rw, node);
    default:
        return NONE;
    }
}
