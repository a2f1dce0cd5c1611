/* Narrow types: their elements in files, and conversion to them. */
#include "onnx/narrow.h"

#include <math.h>
#include <string.h>

#define SCALE_TYPE 24 /* float8e8m0 */

static const OnnxNarrow table[] = {
    {17, DT_F16, 8, 3, 7, 448, false, false},   /* float8e4m3fn */
    {18, DT_F16, 8, 3, 8, 240, false, true},    /* float8e4m3fnuz */
    {19, DT_F16, 8, 2, 15, 57344, true, false}, /* float8e5m2 */
    {20, DT_F16, 8, 2, 16, 57344, false, true}, /* float8e5m2fnuz */
    {21, DT_U8, 4, 0, 0, 0, false, false},      /* uint4 */
    {22, DT_I8, 4, 0, 0, 0, false, false},      /* int4 */
    {23, DT_F16, 4, 1, 1, 6, false, false},     /* float4e2m1 */
    {SCALE_TYPE, DT_F32, 8, 0, 127, 0, false, false},
    {25, DT_U8, 2, 0, 0, 0, false, false}, /* uint2 */
    {26, DT_I8, 2, 0, 0, 0, false, false}, /* int2 */
};

const OnnxNarrow *onnx_narrow(int32_t type)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].type == type)
            return &table[i];
    return NULL;
}

/* Files */

uint64_t onnx_narrow_bytes(const OnnxNarrow *narrow, int64_t elements)
{
    return ((uint64_t)elements * narrow->bits + 7) / 8;
}

static double float_of(const OnnxNarrow *n, uint32_t bits)
{
    uint32_t fraction = bits & ((1u << n->mantissa) - 1), sign = bits >> (n->bits - 1);
    int32_t most = (1 << (n->bits - 1 - n->mantissa)) - 1;
    int32_t exponent = (int32_t)(bits >> n->mantissa) & most;
    bool last = exponent == most && n->bits == 8 && !n->unsigned_zero;
    if (n->type == SCALE_TYPE)
        return bits == 255 ? (double)NAN : ldexp(1, (int)bits - n->bias);
    if (n->unsigned_zero && bits == 0x80)
        return (double)NAN;
    if (last && n->infinite)
        return fraction ? (double)NAN : sign ? -(double)INFINITY : (double)INFINITY;
    if (last && fraction == (1u << n->mantissa) - 1)
        return (double)NAN;
    double size = exponent ? ldexp((double)(fraction + (1u << n->mantissa)), exponent - n->bias - (int)n->mantissa)
                           : ldexp(fraction, 1 - n->bias - (int)n->mantissa);
    return sign ? -size : size;
}

static double integer_of(const OnnxNarrow *n, uint32_t bits)
{
    bool negative = !dtype_is_unsigned(n->carrier) && bits >> (n->bits - 1);
    return negative ? (double)bits - (double)(1u << n->bits) : (double)bits;
}

void onnx_narrow_unpack(const OnnxNarrow *n, const unsigned char *bytes, Tensor *tensor)
{
    int64_t count = shape_elements(&tensor->type->shape), each = 8 / n->bits;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)bytes[i / each] >> (i % each * n->bits) & ((1u << n->bits) - 1);
        tensor_set_number(tensor, i, n->bias ? float_of(n, bits) : integer_of(n, bits));
    }
}

/* Conversion */

/* The low bits of a whole number */
static const char *wrapped(OnnxNode *node, const OnnxNarrow *n, const char *x)
{
    if (dtype_is_unsigned(n->carrier))
        return onnx_text(node, "cast(bit_and(cast(%s, to = i32), %u), to = u8)", x, (1u << n->bits) - 1);
    uint32_t above = 32 - n->bits;
    return onnx_text(node, "cast(shift_right(shift_left(cast(%s, to = i32), %u), %u), to = i8)", x, above, above);
}

const char *onnx_narrow_text(OnnxNode *node, const OnnxNarrow *n, const char *x, bool saturates)
{
    if (!n->bias)
        return wrapped(node, n, x);
    if (n->type == SCALE_TYPE)
        return onnx_text(node, "round_to_power(%s, \"%s\")", x, onnx_string(node, "round_mode", "up"));
    const char *over = saturates || n->bits < 8 ? "" : n->infinite ? ", inf" : ", nan";
    const char *y = onnx_text(node, "round_float(%s, %u, %d, %.1f%s)", x, n->mantissa, 1 - n->bias, n->largest, over);
    if (n->bits < 8) /* no NaN */
        y = onnx_text(node, "select((%s) == (%s), %s, 0.0)", x, x, y);
    return onnx_text(node, "cast(%s, to = %s)", y, dtype_name(n->carrier));
}

bool onnx_write_narrow(OnnxNode *node, const OnnxNarrow *n)
{
    const char *mode = onnx_string(node, "round_mode", "up");
    if (strcmp(mode, "up") != 0 && strcmp(mode, "down") != 0 && strcmp(mode, "nearest") != 0)
        return onnx_no(node, "it rounds '%s'", mode);
    return onnx_emit(node, "%s = %s", onnx_out(node, 0),
                     onnx_narrow_text(node, n, onnx_in(node, 0), onnx_int(node, "saturate", 1) != 0));
}
