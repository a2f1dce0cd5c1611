/* Constants: comparison, their text, and the way into tensors. */
#include "frontends/nnc/constant.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/nnc/lex.h"

bool const_eq(const Const *a, const Const *b)
{
    if (const_is_number(a) && const_is_number(b))
        return a->kind == C_INT && b->kind == C_INT ? a->i == b->i : const_number(a) == const_number(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == C_STRING)
        return str_eq(a->s, b->s);
    if (a->kind != C_LIST)
        return a->kind == C_NONE || a->i == b->i;
    if (a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!const_eq(&a->item[i], &b->item[i]))
            return false;
    return true;
}

const char *const_kind_name(ConstKind kind)
{
    static const char *const name[] = {"none",     "true or false", "an integer", "a number",
                                       "a string", "a dtype",       "a list"};
    return name[kind];
}

/* Rounds as an element of the dtype does. */
static double rounded(DType dtype, double x)
{
    switch (dtype) {
    case DT_F32:
        return (double)(float)x;
    case DT_F16:
        return (double)dtype_f16_to_f32(dtype_f32_to_f16((float)x));
    case DT_BF16:
        return (double)dtype_bf16_to_f32(dtype_f32_to_bf16((float)x));
    default:
        return x;
    }
}

#define WRITTEN_OUT 1e7 /* less than that has no exponent: 120.0 */
#define MOST_DIGITS 17

/* Numbers of so many digits are all different in the dtype, unless they are below its smallest normal number. */
static int distinct_digits(DType dtype, double x)
{
    switch (dtype) {
    case DT_F32:
        return fabs(x) < 0x1p-126 ? 1 : 6;
    case DT_F16:
        return fabs(x) < 0x1p-14 ? 1 : 3;
    case DT_BF16:
        return fabs(x) < 0x1p-126 ? 1 : 2;
    default:
        return fabs(x) < 0x1p-1022 ? 1 : 15;
    }
}

/* 1200 has two. */
static int count_digits(const char *whole)
{
    int count = 0, kept = 0;
    for (; *whole; whole++)
        if (isdigit((unsigned char)*whole)) {
            count++;
            kept = *whole == '0' ? kept : count;
        }
    return kept ? kept : 1;
}

/* The fewest digits that tell it: where that many are all different, what is left of them without zeros at the end. */
static void put_shortest(DType dtype, double x, char *digits, size_t size)
{
    int precision = distinct_digits(dtype, x);
    do
        snprintf(digits, size, "%.*g", precision, x);
    while (rounded(dtype, strtod(digits, NULL)) != x && ++precision <= MOST_DIGITS);
    if (!strpbrk(digits, ".e")) /* 1e+20, not its zeros */
        snprintf(digits, size, "%.*g", count_digits(digits), x);
}

void const_print_number(Text *out, DType dtype, double x)
{
    char digits[40];

    if (isnan(x)) {
        text_put(out, "nan", 3);
        return;
    }
    if (isinf(x)) {
        text_str(out, x < 0 ? STR("-inf") : STR("inf"));
        return;
    }
    put_shortest(dtype, x, digits, sizeof digits);
    if (strchr(digits, '+') && fabs(x) < WRITTEN_OUT)
        snprintf(digits, sizeof digits, "%.1f", strtod(digits, NULL));
    text_str(out, str_from(digits));
    if (!strpbrk(digits, ".e"))
        text_put(out, ".0", 2);
}

static int64_t element_int(const Tensor *tensor, int64_t index)
{
    if (tensor->type->dtype == DT_I64 || tensor->type->dtype == DT_U64)
        return ((const int64_t *)tensor->data)[index];
    return (int64_t)tensor_number(tensor, index);
}

void const_print_element(Text *out, const Tensor *tensor, int64_t index)
{
    DType dtype = tensor->type->dtype;
    if (dtype_is_float(dtype))
        const_print_number(out, dtype, tensor_number(tensor, index));
    else if (dtype == DT_BOOL)
        text_str(out, tensor_number(tensor, index) != 0 ? STR("true") : STR("false"));
    else
        text_printf(out, "%lld", (long long)element_int(tensor, index));
}

void const_print(Text *out, const Const *c)
{
    switch (c->kind) {
    case C_NONE:
        text_put(out, "none", 4);
        break;
    case C_BOOL:
        text_str(out, c->i ? STR("true") : STR("false"));
        break;
    case C_INT:
        text_printf(out, "%lld", (long long)c->i);
        break;
    case C_FLOAT:
        const_print_number(out, DT_F64, c->f);
        break;
    case C_STRING:
        lex_put_escaped(out, c->s, '"');
        break;
    case C_DTYPE:
        text_str(out, str_from(dtype_name((DType)c->i)));
        break;
    case C_LIST: /* nested as deep as the source nests: bounded by the parser */
        text_char(out, '[');
        for (uint32_t i = 0; i < c->count; i++) {
            if (i)
                text_put(out, ", ", 2);
            const_print(out, &c->item[i]);
        }
        text_char(out, ']');
        break;
    }
}

Str const_show(Arena *arena, const Const *c)
{
    Text text = {0};
    const_print(&text, c);
    if (text.len > 60)
        text.len = 57, text_put(&text, "...", 3);
    Str s = str_copy(arena, text_view(&text));
    text_free(&text);
    return s;
}

static bool has_float(const Const *c)
{
    for (uint32_t i = 0; c->kind == C_LIST && i < c->count; i++)
        if (has_float(&c->item[i]))
            return true;
    return c->kind == C_FLOAT;
}

DType const_default_dtype(const Const *c)
{
    if (has_float(c))
        return DT_F32;
    while (c->kind == C_LIST && c->count)
        c = &c->item[0];
    return c->kind == C_BOOL ? DT_BOOL : c->kind == C_INT ? DT_I64 : DT_F32;
}

/* What u64 has beyond i64 is written as the negative number with these bits, as literals are of 64 bits with a sign. */
static bool int_fits(int64_t i, DType dtype)
{
    if (dtype == DT_U64)
        return true;
    if (dtype_is_unsigned(dtype))
        return i >= 0 && i >> (8 * dtype_bytes(dtype)) == 0;
    int64_t most = INT64_MAX >> (64 - 8 * dtype_bytes(dtype));
    return i >= -most - 1 && i <= most;
}

/* A number is rounded, but not to infinity. */
static bool float_fits(double number, DType dtype)
{
    uint64_t bits = 0;
    const Type type = {.dtype = dtype};
    Tensor element = {.type = &type, .data = &bits};
    tensor_set_number(&element, 0, number);
    return isfinite(tensor_number(&element, 0)) || !isfinite(number);
}

bool const_fits(const Const *c, DType dtype)
{
    if (dtype == DT_BOOL || c->kind == C_BOOL)
        return dtype == DT_BOOL && c->kind == C_BOOL;
    if (dtype_is_float(dtype))
        return (c->kind == C_INT || c->kind == C_FLOAT) && float_fits(const_number(c), dtype);
    return c->kind == C_INT && int_fits(c->i, dtype);
}

void const_set_element(Tensor *tensor, int64_t index, const Const *c)
{
    if (tensor->type->dtype == DT_I64 || tensor->type->dtype == DT_U64)
        ((int64_t *)tensor->data)[index] = c->i;
    else
        tensor_set_number(tensor, index, c->kind == C_BOOL ? (double)c->i : const_number(c));
}

static bool matches(const Const *c, const Shape *shape, uint32_t depth)
{
    if (depth == shape->rank)
        return c->kind == C_INT || c->kind == C_FLOAT || c->kind == C_BOOL;
    if (c->kind != C_LIST || c->count != shape->dim[depth])
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        if (!matches(&c->item[i], shape, depth + 1))
            return false;
    return true;
}

bool const_shape(const Const *c, Shape *shape)
{
    *shape = (Shape){0};
    for (const Const *level = c; level->kind == C_LIST; level = &level->item[0]) {
        if (shape->rank == MAX_RANK)
            return false;
        shape->dim[shape->rank++] = level->count;
        if (!level->count)
            break;
    }
    return matches(c, shape, 0);
}
