/* Arithmetic on constants.  Integers stay exact: overflow, and a division with a remainder, are errors. */
#include "frontends/nnc/build.h"

#include <math.h>
#include <string.h>

static bool mismatch(Builder *b, const char *what, const Const *x, const Const *y, Place place)
{
    return build_complain(b, place, "%s does not work on %s and %s", what, const_kind_name(x->kind),
                          const_kind_name(y->kind));
}

static int64_t floor_div(int64_t x, int64_t y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static bool int_power(int64_t x, int64_t y, int64_t *result)
{
    *result = 1;
    if (x == 0 || x == 1 || x == -1) {
        *result = y == 0 || x == 1 || (x == -1 && y % 2 == 0) ? 1 : x;
        return true;
    }
    for (; y > 0; y--) /* at most 63 rounds, for the product overflows then */
        if (__builtin_mul_overflow(*result, x, result))
            return false;
    return true;
}

static bool int_binary(Builder *b, TokenKind op, int64_t x, int64_t y, Place place, Const *result)
{
    bool ok = true;
    *result = const_int(0);
    if ((op == T_SLASH || op == T_SLASH2 || op == T_PERCENT) && (y == 0 || (y == -1 && x == INT64_MIN)))
        return build_complain(b, place, y ? "this does not fit in 64 bits" : "division by zero");
    switch (op) {
    case T_PLUS:
        ok = !__builtin_add_overflow(x, y, &result->i);
        break;
    case T_MINUS:
        ok = !__builtin_sub_overflow(x, y, &result->i);
        break;
    case T_STAR:
        ok = !__builtin_mul_overflow(x, y, &result->i);
        break;
    case T_SLASH:
        if (x % y && build_blames_call(b, place)) /* how to write it is nothing that the caller could follow */
            return build_complain(b, place, "%lld / %lld is not whole", (long long)x, (long long)y);
        if (x % y)
            return build_complain(b, place,
                                  "%lld / %lld is not whole: write // to round down, or %lld.0 for a fraction",
                                  (long long)x, (long long)y, (long long)x);
        result->i = x / y;
        break;
    case T_SLASH2:
        result->i = floor_div(x, y);
        break;
    case T_PERCENT:
        result->i = x - floor_div(x, y) * y;
        break;
    default:
        if (y < 0)
            *result = const_float(pow((double)x, (double)y));
        else
            ok = int_power(x, y, &result->i);
        break;
    }
    return ok || build_complain(b, place, "this does not fit in 64 bits");
}

static double float_binary(TokenKind op, double x, double y)
{
    switch (op) {
    case T_PLUS:
        return x + y;
    case T_MINUS:
        return x - y;
    case T_STAR:
        return x * y;
    case T_SLASH:
        return x / y;
    case T_SLASH2:
        return floor(x / y);
    case T_PERCENT:
        return x - floor(x / y) * y;
    default:
        return pow(x, y);
    }
}

static bool compare(TokenKind op, const Const *x, const Const *y)
{
    bool ints = x->kind == C_INT && y->kind == C_INT;
    double p = const_number(x), q = const_number(y);
    switch (op) {
    case T_LT:
        return ints ? x->i < y->i : p < q;
    case T_LE:
        return ints ? x->i <= y->i : p <= q;
    case T_GT:
        return ints ? x->i > y->i : p > q;
    default:
        return ints ? x->i >= y->i : p >= q;
    }
}

static bool join(Builder *b, const Const *x, const Const *y, Place place, Const *result)
{
    if (x->kind == C_STRING) {
        if (x->s.len > CONST_STRING_MOST - y->s.len)
            return build_complain(b, place, "a string longer than %d bytes", CONST_STRING_MOST);
        b->steps += (x->s.len + y->s.len) / 16;
        *result = (Const){.kind = C_STRING, .s = str_format(b->scratch, STR_FMT STR_FMT, STR_ARG(x->s), STR_ARG(y->s))};
        return true;
    }
    uint32_t count = x->count + y->count;
    if (count > CONST_LIST_MOST)
        return build_complain(b, place, "a list longer than %u", CONST_LIST_MOST);
    b->steps += count; /* copies are work too */
    Const *item = ARENA_ARRAY(b->scratch, Const, count);
    if (x->count)
        memcpy(item, x->item, x->count * sizeof *item);
    if (y->count)
        memcpy(item + x->count, y->item, y->count * sizeof *item);
    *result = (Const){.kind = C_LIST, .item = item, .count = count, .depth = x->depth > y->depth ? x->depth : y->depth};
    return true;
}

static bool repeat(Builder *b, const Const *list, int64_t times, Place place, Const *result)
{
    if (times < 0 || (list->count && times > CONST_LIST_MOST / list->count))
        return build_complain(b, place, times < 0 ? "a negative count" : "a list longer than %u", CONST_LIST_MOST);
    uint32_t count = list->count ? list->count * (uint32_t)times : 0;
    b->steps += count;
    Const *item = ARENA_ARRAY(b->scratch, Const, count);
    for (uint32_t i = 0; i < count; i++)
        item[i] = list->item[i % list->count];
    *result = (Const){.kind = C_LIST, .item = item, .count = count, .depth = list->depth};
    return true;
}

bool const_unary(Builder *b, TokenKind op, const Const *x, Place place, Const *result)
{
    *result = *x;
    if (op == T_NOT) {
        *result = const_bool(!x->i);
        return x->kind == C_BOOL ||
               build_complain(b, place, "'not' takes true or false, not %s", const_kind_name(x->kind));
    }
    if (!const_is_number(x))
        return build_complain(b, place, "'-' takes a number, not %s", const_kind_name(x->kind));
    if (x->kind == C_FLOAT)
        result->f = -x->f;
    else if (__builtin_sub_overflow(0, x->i, &result->i))
        return build_complain(b, place, "this does not fit in 64 bits");
    return true;
}

bool const_binary(Builder *b, TokenKind op, const Const *x, const Const *y, Place place, Const *result)
{
    if (op == T_EQ || op == T_NE) {
        *result = const_bool(const_eq(x, y) == (op == T_EQ));
        return true;
    }
    if (op == T_AND || op == T_OR) {
        *result = const_bool(op == T_AND ? x->i && y->i : x->i || y->i);
        return (x->kind == C_BOOL && y->kind == C_BOOL) || mismatch(b, op == T_AND ? "'and'" : "'or'", x, y, place);
    }
    if (op == T_PLUS && x->kind == y->kind && (x->kind == C_STRING || x->kind == C_LIST))
        return join(b, x, y, place, result);
    if (op == T_STAR && x->kind == C_LIST && y->kind == C_INT)
        return repeat(b, x, y->i, place, result);
    if (op == T_AT || !const_is_number(x) || !const_is_number(y))
        return mismatch(b, "this operator", x, y, place);
    if (op == T_LT || op == T_LE || op == T_GT || op == T_GE)
        *result = const_bool(compare(op, x, y));
    else if (x->kind == C_INT && y->kind == C_INT)
        return int_binary(b, op, x->i, y->i, place, result);
    else
        *result = const_float(float_binary(op, const_number(x), const_number(y)));
    return true;
}

/* Functions of constants */

static bool call_len(Builder *b, const Const *x, Place place, Const *result)
{
    *result = const_int(x->kind == C_STRING ? x->s.len : x->count);
    return x->kind == C_LIST || x->kind == C_STRING || build_complain(b, place, "len takes a list or a string");
}

/* FNV-1a, 31 bits: part of the language, for seeds made from labels. */
int64_t const_hash(Str s)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 16777619u;
    return hash & INT32_MAX;
}

static bool call_hash(Builder *b, const Const *x, Place place, Const *result)
{
    if (x->kind != C_STRING)
        return build_complain(b, place, "hash takes a string");
    *result = const_int(const_hash(x->s));
    return true;
}

static bool call_product(Builder *b, const Const *x, Place place, Const *result)
{
    *result = const_int(1);
    if (x->kind != C_LIST)
        return build_complain(b, place, "product takes a list");
    for (uint32_t i = 0; i < x->count; i++)
        if (!const_binary(b, T_STAR, result, &x->item[i], place, result))
            return false;
    return true;
}

static bool call_range(Builder *b, const Const *from, const Const *to, Place place, Const *result)
{
    if (from->kind != C_INT || to->kind != C_INT)
        return build_complain(b, place, "range takes two integers");
    if (to->i > from->i && (uint64_t)to->i - (uint64_t)from->i > CONST_LIST_MOST)
        return build_complain(b, place, "a list longer than %u", CONST_LIST_MOST);
    uint32_t count = to->i > from->i ? (uint32_t)(to->i - from->i) : 0;
    b->steps += count;
    Const *item = ARENA_ARRAY(b->scratch, Const, count);
    for (uint32_t i = 0; i < count; i++)
        item[i] = const_int(from->i + i);
    *result = (Const){.kind = C_LIST, .item = item, .count = count, .depth = 1};
    return true;
}

static bool call_extreme(Builder *b, const Const *arg, TokenKind better, Place place, Const *result)
{
    if (!const_is_number(&arg[0]) || !const_is_number(&arg[1]))
        return build_complain(b, place, "min and max take two numbers; for tensors there are minimum and maximum");
    *result = compare(better, &arg[1], &arg[0]) ? arg[1] : arg[0];
    return true;
}

static bool call_int(Builder *b, const Const *x, Place place, Const *result)
{
    double whole = x->kind == C_FLOAT ? trunc(x->f) : 0;
    if (x->kind != C_FLOAT && x->kind != C_INT && x->kind != C_BOOL)
        return build_complain(b, place, "int takes a number");
    if (!(whole >= -9223372036854775808.0 && whole < 9223372036854775808.0))
        return build_complain(b, place, "this does not fit in 64 bits");
    *result = const_int(x->kind == C_FLOAT ? (int64_t)whole : x->i);
    return true;
}

/* fail("mode is {}, not {}", mode, words): an error wherever it is evaluated, with the values in place of the braces.
 */
static bool call_fail(Builder *b, const Const *arg, uint32_t count, Place place)
{
    Text text = {0};
    uint32_t next = 1;
    bool good = count && arg[0].kind == C_STRING;
    for (uint32_t i = 0; good && i < arg[0].s.len; i++) {
        if (arg[0].s.ptr[i] != '{' || i + 1 == arg[0].s.len || arg[0].s.ptr[i + 1] != '}') {
            text_char(&text, arg[0].s.ptr[i]);
            continue;
        }
        good = next < count;
        if (good)
            const_print(&text, &arg[next++]);
        i++;
    }
    if (good && next == count)
        build_complain(b, place, STR_FMT, STR_ARG(text_view(&text)));
    else
        build_complain(b, place, "fail takes a text, and a value for each {} in it");
    text_free(&text);
    return false;
}

bool const_call(Builder *b, Str name, const Const *arg, uint32_t count, Place place, Const *result, bool *known)
{
    static const struct {
        const char *name;
        uint32_t count;
    } table[] = {{"len", 1}, {"hash", 1}, {"product", 1}, {"int", 1},       {"float", 1}, {"range", 2},
                 {"min", 2}, {"max", 2},  {"is_list", 1}, {"is_number", 1}, {"fail", 0}};
    uint32_t n = 0;

    while (n < sizeof table / sizeof table[0] && !str_is(name, table[n].name))
        n++;
    *known = n < sizeof table / sizeof table[0];
    if (!*known)
        return false;
    if (arg && count != table[n].count && table[n].count)
        return build_complain(b, place, "%s takes %u argument%s; %u given", table[n].name, table[n].count,
                              table[n].count == 1 ? "" : "s", count);
    if (!arg) /* the caller only asks whether there is one */
        return false;
    switch (n) {
    case 0:
        return call_len(b, arg, place, result);
    case 1:
        return call_hash(b, arg, place, result);
    case 2:
        return call_product(b, arg, place, result);
    case 3:
        return call_int(b, arg, place, result);
    case 4:
        *result = const_float(const_number(arg));
        return const_is_number(arg) || build_complain(b, place, "float takes a number");
    case 5:
        return call_range(b, &arg[0], &arg[1], place, result);
    case 6:
        return call_extreme(b, arg, T_LT, place, result);
    case 7:
        return call_extreme(b, arg, T_GT, place, result);
    case 8:
        *result = const_bool(arg->kind == C_LIST);
        return true;
    case 9:
        *result = const_bool(const_is_number(arg));
        return true;
    default:
        return call_fail(b, arg, count, place);
    }
}
