/* Scalars follow ops/scalar_float.h and ops/scalar_i64.c, conversions ops/cast.c; functions are CUDA's own, whose error
 * bounds are in the CUDA C++ Programming Guide (expf 1 ulp, tanhf 2, erff 2, sinf 2; division and square root exact).
 */
#include "cuda/prelude.h"

#include <string.h>

#include "c/expr.h"

#define DEVICE "static __device__ __forceinline__ "

static const char *const function[HELPER_COUNT] = {
    [HELPER_ABS] = "fabs",    [HELPER_SQRT] = "sqrt",   [HELPER_EXP] = "exp",     [HELPER_EXPM1] = "expm1",
    [HELPER_LOG] = "log",     [HELPER_LOG1P] = "log1p", [HELPER_SIN] = "sin",     [HELPER_COS] = "cos",
    [HELPER_TAN] = "tan",     [HELPER_ASIN] = "asin",   [HELPER_ACOS] = "acos",   [HELPER_ATAN] = "atan",
    [HELPER_SINH] = "sinh",   [HELPER_COSH] = "cosh",   [HELPER_TANH] = "tanh",   [HELPER_ERF] = "erf",
    [HELPER_FLOOR] = "floor", [HELPER_CEIL] = "ceil",   [HELPER_ROUND] = "rint",  [HELPER_TRUNC] = "trunc",
    [HELPER_POW] = "pow",     [HELPER_FMOD] = "fmod",   [HELPER_EXP2] = "exp2",   [HELPER_LOG2] = "log2",
    [HELPER_CBRT] = "cbrt",   [HELPER_ASINH] = "asinh", [HELPER_ACOSH] = "acosh", [HELPER_ATANH] = "atanh",
};

/* T is the type, F(name) its form of a function of math.h. */
static const char *float_body(Helper helper)
{
    switch (helper) {
    case HELPER_MAX:
    case HELPER_ATLEAST:
        return "return a > b || a != a ? a : b;";
    case HELPER_MIN:
    case HELPER_ATMOST:
        return "return a < b || a != a ? a : b;";
    case HELPER_SIGMOID:
        return "return 1 / (1 + F(exp)(-a));";
    case HELPER_MOD:
        return "const T rest = F(fmod)(a, b);\n"
               "    if (b == 0)\n        return rest;\n"
               "    if (rest == 0)\n        return F(copysign)(rest, b);\n"
               "    return (rest < 0) != (b < 0) ? rest + b : rest;";
    default:
        return NULL;
    }
}

/* U is the unsigned type in which arithmetic wraps. */
static const char *signed_body(Helper helper)
{
    switch (helper) {
    case HELPER_MAX:
        return "return a > b ? a : b;";
    case HELPER_MIN:
        return "return a < b ? a : b;";
    case HELPER_ABS:
        return "return a < 0 ? (T)(0 - (U)a) : a;";
    case HELPER_DIV:
        return "if (b == 0)\n        return 0;\n"
               "    if (b == -1)\n        return (T)(0 - (U)a);\n"
               "    return (T)(a / b - (a % b != 0 && (a < 0) != (b < 0)));";
    case HELPER_MOD:
        return "if (b == 0 || b == -1)\n        return 0;\n"
               "    const T rest = (T)(a % b);\n"
               "    return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);";
    case HELPER_FMOD:
        return "return (T)(b == 0 || b == -1 ? 0 : a % b);";
    case HELPER_SHIFT_LEFT:
        return "return (uint64_t)b < 8 * sizeof a ? (T)((uint64_t)a << b) : (T)0;";
    case HELPER_SHIFT_RIGHT:
        return "return (T)(a >> ((uint64_t)b < 8 * sizeof a ? (int)b : (int)(8 * sizeof a - 1)));";
    default:
        return NULL;
    }
}

static const char *unsigned_body(Helper helper)
{
    switch (helper) {
    case HELPER_ABS:
        return "return a;";
    case HELPER_DIV:
        return "return (T)(b ? a / b : 0);";
    case HELPER_MOD:
        return "return (T)(b ? a % b : 0);";
    case HELPER_FMOD:
        return "return (T)(b ? a % b : 0);";
    case HELPER_SHIFT_RIGHT:
        return "return (T)((uint64_t)b < 8 * sizeof a ? a >> b : 0);";
    default:
        return signed_body(helper);
    }
}

static bool is_unsigned(DType dtype)
{
    return dtype_is_unsigned(dtype) || dtype == DT_BOOL;
}

/* Writes a body with T, U and F(name) replaced. */
static void print_body(Text *out, const char *body, DType dtype)
{
    for (; *body; body++) {
        bool word = body[0] >= 'A' && body[0] <= 'Z';
        if (word && body[0] == 'T')
            text_printf(out, "%s", prelude_c_type(dtype));
        else if (word && body[0] == 'U')
            text_printf(out, "%s", dtype == DT_I64 ? "uint64_t" : "uint32_t");
        else if (word && body[0] == 'F') {
            for (body += 2; *body != ')'; body++)
                text_char(out, *body);
            text_printf(out, "%s", dtype == DT_F32 ? "f" : "");
        } else
            text_char(out, *body);
    }
}

static bool takes_two(Helper helper)
{
    switch (helper) {
    case HELPER_MAX:
    case HELPER_MIN:
    case HELPER_ATLEAST:
    case HELPER_ATMOST:
    case HELPER_POW:
    case HELPER_FMOD:
    case HELPER_SHIFT_LEFT:
    case HELPER_SHIFT_RIGHT:
    case HELPER_DIV:
    case HELPER_MOD:
        return true;
    default:
        return false;
    }
}

/* Is it a function that CUDA has under this name? */
static bool is_library(const char *name, Helper helper)
{
    size_t length = function[helper] ? strlen(function[helper]) : 0;
    return length && strncmp(name, function[helper], length) == 0 && (!name[length] || strcmp(name + length, "f") == 0);
}

/* Of elements that lie two to a byte */
static void print_nibble_at(Text *out, const char *name, DType dtype)
{
    const char *type = prelude_c_type(dtype), *byte = "p[at / 2] >> at % 2 * 4 & 15";
    text_printf(out, DEVICE "%s %s(const uint8_t *p, int64_t at)\n{\n    return (%s)", type, name, type);
    text_printf(out, dtype == DT_I8 ? "(((%s) ^ 8) - 8);\n}\n\n" : "(%s);\n}\n\n", byte);
}

static void print_helper(Text *out, const char *name, Helper helper, DType dtype)
{
    const char *type = prelude_c_type(dtype);
    if (is_library(name, helper))
        return;
    if (helper == HELPER_NIBBLE_AT) {
        print_nibble_at(out, name, dtype);
        return;
    }
    const char *body = dtype_is_float(dtype) ? float_body(helper)
                       : is_unsigned(dtype)  ? unsigned_body(helper)
                                             : signed_body(helper);
    text_printf(out, DEVICE "%s %s(%s a", type, name, type);
    if (takes_two(helper))
        text_printf(out, ", %s b", type);
    text_printf(out, ")\n{\n    ");
    if (body)
        print_body(out, body, dtype);
    else
        text_printf(out, "return %s%s(a%s);", function[helper], dtype == DT_F32 ? "f" : "",
                    takes_two(helper) ? ", b" : "");
    text_printf(out, "\n}\n\n");
}

/* Conversions */

/* Reads x of a dtype as a number that C++ can convert. */
static const char *read_text(DType from)
{
    return from == DT_F16    ? "__half2float(__ushort_as_half(x))"
           : from == DT_BF16 ? "__bfloat162float(__ushort_as_bfloat16(x))"
                             : "x";
}

/* Truncates; beyond the range the nearest end, 0 for NaN. */
static void print_saturating(Text *out, DType from, DType to)
{
    static const struct {
        const char *low, *end, *least, *most;
    } range[DT_COUNT] = {
        [DT_I64] = {"-9223372036854775808.0", "9223372036854775808.0", "INT64_MIN", "INT64_MAX"},
        [DT_I32] = {"-2147483648.0", "2147483648.0", "INT32_MIN", "INT32_MAX"},
        [DT_I16] = {"-32768.0", "32768.0", "-32768", "32767"},
        [DT_I8] = {"-128.0", "128.0", "-128", "127"},
        [DT_U64] = {"0.0", "18446744073709551616.0", "0", "UINT64_MAX"},
        [DT_U32] = {"0.0", "4294967296.0", "0", "UINT32_MAX"},
        [DT_U16] = {"0.0", "65536.0", "0", "65535"},
        [DT_U8] = {"0.0", "256.0", "0", "255"},
    };
    const char *type = from == DT_F64 ? "double" : "float", *f = from == DT_F64 ? "" : "f";
    text_printf(out,
                "const %s n = %s;\n"
                "    if (n != n)\n        return 0;\n"
                "    return n <= %s%s ? %s : n >= %s%s ? %s : (%s)n;",
                type, read_text(from), range[to].low, f, range[to].least, range[to].end, f, range[to].most,
                prelude_c_type(to));
}

static void print_convert(Text *out, const char *name, DType from, DType to)
{
    const char *read = read_text(from);
    text_printf(out, DEVICE "%s %s(%s x)\n{\n    ", prelude_c_type(to), name, prelude_c_type(from));
    bool wide = from == DT_F64 || from == DT_I64 || from == DT_I32 || from == DT_U64 ||
                from == DT_U32; /* more than f32 holds */
    if (to == DT_BOOL)
        text_printf(out, "return %s != 0;", from == DT_F16 || from == DT_BF16 ? "(x & 0x7fff)" : "x");
    else if (to == DT_F16)
        text_printf(out, "return __half_as_ushort(%s(%s));", wide ? "__double2half" : "__float2half_rn", read);
    else if (to == DT_BF16)
        text_printf(out, "return __bfloat16_as_ushort(%s(%s));", wide ? "__double2bfloat16" : "__float2bfloat16_rn",
                    read);
    else if (dtype_is_float(from) && dtype_is_int(to))
        print_saturating(out, from, to);
    else
        text_printf(out, "return (%s)%s;", prelude_c_type(to), read);
    text_printf(out, "\n}\n\n");
}

static bool needs_half(const PreludeNeeds *needs, DType half)
{
    bool any = false;
    for (DType other = 0; other < DT_COUNT; other++)
        any |= needs->convert[half][other] || needs->convert[other][half];
    return any;
}

/* Blocks of threads */

static const Word meet_word[4] = {WORD_ADD, WORD_MUL, WORD_MAX, WORD_MIN};

void cuda_need_meet(MeetNeeds *meets, PreludeNeeds *needs, Arena *arena, Word word, DType dtype)
{
    for (uint32_t i = 0; i < 4; i++)
        meets->need[i][dtype] |= meet_word[i] == word;
    if (word == WORD_MAX || word == WORD_MIN)
        prelude_need(needs, arena, word == WORD_MAX ? HELPER_MAX : HELPER_MIN, dtype, 1);
}

/* x with y taken in. */
static Str joined(Arena *arena, PreludeNeeds *needs, Word word, DType dtype, const char *y)
{
    const char *type = prelude_c_type(dtype);
    if (word == WORD_ADD || word == WORD_MUL)
        return str_format(arena, "(%s)(x %c %s)", type, word == WORD_ADD ? '+' : '*', y);
    return str_format(arena, "%s(x, (%s)%s)",
                      prelude_need(needs, arena, word == WORD_MAX ? HELPER_MAX : HELPER_MIN, dtype, 1), type, y);
}

/* By halves: inside each warp, then over what the warps have left in shared memory.  All threads get the same bits. */
static void print_meet(Text *out, Arena *arena, PreludeNeeds *needs, Word word, DType dtype)
{
    const char *type = prelude_c_type(dtype);
    Str join = joined(arena, needs, word, dtype, "__shfl_xor_sync(0xffffffffu, x, step)");
    text_printf(out,
                "/* Over all threads of the block, a power of two from 32 on. */\n"
                "template <int threads> static __device__ %s %s_%s(%s x)\n{\n"
                "    __shared__ %s part[32];\n"
                "    for (int step = 16; step > 0; step /= 2)\n        x = " STR_FMT
                ";\n"
                "    if (threads > 32) {\n"
                "        if (threadIdx.x %% 32 == 0)\n            part[threadIdx.x / 32] = x;\n"
                "        __syncthreads();\n"
                "        x = part[threadIdx.x %% (threads / 32)];\n"
                "        for (int step = threads / 64; step > 0; step /= 2)\n            x = " STR_FMT
                ";\n"
                "        __syncthreads();\n"
                "    }\n"
                "    return x;\n}\n\n",
                type, print_meet_name(word), dtype_name(dtype), type, type, STR_ARG(join), STR_ARG(join));
}

void cuda_print_prelude(Text *out, Arena *arena, PreludeNeeds *needs, const MeetNeeds *meets)
{
    if (needs_half(needs, DT_F16))
        text_printf(out, "#include <cuda_fp16.h>\n");
    if (needs_half(needs, DT_BF16))
        text_printf(out, "#include <cuda_bf16.h>\n");
    if (needs_half(needs, DT_F16) || needs_half(needs, DT_BF16))
        text_char(out, '\n');
    for (Helper helper = 0; helper < HELPER_COUNT; helper++)
        for (DType dtype = 0; dtype < DT_COUNT; dtype++)
            if (helper != HELPER_CONVERT && !prelude_is_random(helper) && needs->scalar[helper][dtype])
                print_helper(out, prelude_need(needs, arena, helper, dtype, 1), helper, dtype);
    prelude_print_device(out, needs);
    for (DType from = 0; from < DT_COUNT; from++)
        for (DType to = 0; to < DT_COUNT; to++)
            if (needs->convert[from][to])
                print_convert(out, prelude_need_convert(needs, arena, from, to), from, to);
    prelude_print_bits(out, "static __device__ __forceinline__", needs);
    for (uint32_t i = 0; i < 4; i++)
        for (DType dtype = 0; dtype < DT_COUNT; dtype++)
            if (meets->need[i][dtype])
                print_meet(out, arena, needs, meet_word[i], dtype);
}
