/* Prints the helpers that an emitted source needs, each after those it calls.
 * A helper's text names its callees by a suffix that stands for the form (snippet.h), so nothing is listed twice. */
#include "c/prelude.h"

#include "c/helper.h"

#include <assert.h>

const char *prelude_need(PreludeNeeds *needs, Arena *arena, Helper which, DType dtype, uint32_t lanes)
{
    const char *name = helper_name(which);

    if (lanes > 1) {
        assert(dtype == DT_F32);
        needs->vector[which] |= lanes;
        return str_format(arena, "%s_f32x%u", name, (unsigned)lanes).ptr;
    }
    if (helper_is_half(dtype))
        dtype = DT_F32; /* computed as that */
    needs->scalar[which][dtype] = true;
    const char *library = helper_library(str_from(name), dtype);
    if (library)
        return str_format(arena, "%s%s", library, dtype == DT_F32 ? "f" : "").ptr;
    return str_format(arena, "%s_%s", name, dtype_name(dtype)).ptr;
}

const char *prelude_need_convert(PreludeNeeds *needs, Arena *arena, DType from, DType to)
{
    bool from_float = dtype_is_float(from), is_cast = !from_float || dtype_is_float(to);

    if (from == to || (to == DT_BOOL && from == DT_BOOL))
        return NULL;
    if (is_cast && to != DT_BOOL && !helper_is_half(from) && !helper_is_half(to))
        return NULL;
    needs->convert[from][to] = true;
    return str_format(arena, "to_%s_from_%s", dtype_name(to), dtype_name(from)).ptr;
}

const char *prelude_need_bits(PreludeNeeds *needs, Arena *arena, DType from, DType to)
{
    needs->bits[from][to] = true;
    return str_format(arena, "bits_%s_from_%s", dtype_name(to), dtype_name(from)).ptr;
}

void prelude_print_bits(Text *out, const char *head, const PreludeNeeds *needs)
{
    for (DType from = 0; from < DT_COUNT; from++)
        for (DType to = 0; to < DT_COUNT; to++)
            if (needs->bits[from][to])
                text_printf(
                    out,
                    "%s %s bits_%s_from_%s(%s x)\n{\n    %s y;\n    memcpy(&y, &x, sizeof y);\n    return y;\n}\n\n",
                    head, prelude_c_type(to), dtype_name(to), dtype_name(from), prelude_c_type(from),
                    prelude_c_type(to));
}

/* The numbers of lanes of all vectors, added up. */
static uint32_t all_widths(const PreludeNeeds *needs)
{
    uint32_t widths = 0;
    for (unsigned h = 0; h < HELPER_COUNT; h++)
        widths |= needs->vector[h];
    return widths;
}

/* Are squares turned of elements other than floats? */
static bool turns_words(const PreludeNeeds *needs)
{
    const bool *turned = needs->scalar[HELPER_TRANSPOSE];
    return turned[DT_U8] || turned[DT_U16] || turned[DT_U64];
}

static void print_types_of(Text *out, unsigned lanes, bool bytes)
{
    text_printf(out,
                "typedef float f32x%u __attribute__((vector_size(%u)));\n"
                "typedef int32_t i32x%u __attribute__((vector_size(%u)));\n"
                "typedef uint32_t u32x%u __attribute__((vector_size(%u)));\n"
                "typedef float f32x%uu __attribute__((vector_size(%u), aligned(4), may_alias));\n\n",
                lanes, 4 * lanes, lanes, 4 * lanes, lanes, 4 * lanes, lanes, 4 * lanes);
    if (bytes)
        text_printf(out,
                    "typedef unsigned char u8x%u __attribute__((vector_size(%u)));\n"
                    "typedef unsigned char u8x%uu __attribute__((vector_size(%u), aligned(1), may_alias));\n\n",
                    lanes, lanes, lanes, lanes);
}

static void print_vector_types(Text *out, const Target *target, const PreludeNeeds *needs, bool shuffles)
{
    uint32_t widths = all_widths(needs), bytes = needs->vector[HELPER_LOAD_MASK] | needs->vector[HELPER_STORE_MASK];
    if (target->macro)
        text_printf(
            out,
            "#if !defined(%s)%s%s%s && !defined(NNC_ANY_MACHINE)\n#error \"made for the target %s: compile with "
            "%s\"\n#endif\n\n",
            target->macro, target->old_macro ? " && !defined(" : "", target->old_macro ? target->old_macro : "",
            target->old_macro ? ")" : "", target->name, target->cc_flags);
    for (uint32_t lanes = target->lanes; lanes > 1; lanes /= 2)
        if (widths & lanes)
            print_types_of(out, lanes, bytes & lanes);
    if (shuffles)
        text_str(out, STR("#if defined(__clang__) || __GNUC__ >= 12\n"
                          "#define NNC_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
                          "#else\n"
                          "#define NNC_SHUFFLE(a, b, ...) \\\n"
                          "    __builtin_shuffle(a, b, __extension__(int32_t "
                          "__attribute__((vector_size(sizeof(a))))){__VA_ARGS__})\n"
                          "#endif\n\n"));
}

/* What turns squares of words is written with */
static void print_word_macros(Text *out)
{
    text_str(out, STR("/* Its variable numbers registers. */\n"
                      "#if defined(__clang__) || __GNUC__ >= 8\n"
                      "#define NNC_UNROLLED _Pragma(\"GCC unroll 16\")\n"
                      "#else\n"
                      "#define NNC_UNROLLED\n"
                      "#endif\n"
                      "#if defined(__clang__) || __GNUC__ >= 12\n"
                      "#define NNC_SHUFFLE_AS(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
                      "#else\n"
                      "#define NNC_SHUFFLE_AS(type, a, b, ...) __builtin_shuffle(a, b, "
                      "__extension__(type){__VA_ARGS__})\n"
                      "#endif\n\n"));
}

static void print_lane_types(Text *out, const Target *target, const PreludeNeeds *needs, bool shuffles)
{
    text_str(out, STR("/* Four lanes: a vector where there are some, else four variables. */\n"
                      "#if (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 9)) && !defined(NNC_NO_VECTORS)\n"
                      "#if defined(__SSE2__) || defined(__wasm_simd128__) || (defined(__aarch64__) && "
                      "!defined(__AARCH64EB__))\n"
                      "#define NNC_VECTORS\n"
                      "#endif\n"
                      "#endif\n"
                      "#if defined(__GNUC__)\n"
                      "#define NNC_INLINE static inline __attribute__((always_inline))\n"
                      "#else\n"
                      "#define NNC_INLINE static inline\n"
                      "#endif\n\n"
                      "#ifdef NNC_VECTORS\n"));
    print_vector_types(out, target, needs, shuffles);
    text_str(out, STR("#else\n"
                      "typedef struct f32x4 {\n    float e0, e1, e2, e3;\n} f32x4;\n"
                      "typedef struct i32x4 {\n    int e0, e1, e2, e3;\n} i32x4;\n"
                      "#endif\n\n"));
}

static void print_vector_helper(HelperPrinter *printer, Helper helper, uint32_t widths)
{
    unsigned most = printer->lanes;
    for (; printer->lanes > 1; printer->lanes /= 2)
        if (widths & printer->lanes && helper == HELPER_TRANSPOSE)
            helper_print_transpose(printer);
        else if (widths & printer->lanes)
            helper_print_snippet(printer, str_from(helper_name(helper)), VARIANT_VECTOR);
    printer->lanes = most;
}

static void print_helpers(HelperPrinter *printer, const PreludeNeeds *needs, bool lanes)
{
    for (unsigned h = 0; h < HELPER_COUNT; h++) {
        for (unsigned dtype = 0; dtype < DT_COUNT; dtype++)
            if (needs->scalar[h][dtype] && h == HELPER_TRANSPOSE)
                helper_print_transpose_words(printer, (DType)dtype);
            else if (needs->scalar[h][dtype])
                helper_print_snippet(printer, str_from(helper_name((Helper)h)), dtype);
        if (!lanes || h == HELPER_TRANSPOSE)
            print_vector_helper(printer, (Helper)h, needs->vector[h]);
    }
    for (unsigned from = 0; from < DT_COUNT; from++)
        for (unsigned to = 0; to < DT_COUNT; to++)
            if (needs->convert[from][to])
                helper_print_convert(printer, (DType)from, (DType)to);
    prelude_print_bits(printer->out, "static inline", needs);
    if (lanes)
        helper_print_lanes(printer, needs->vector);
}

bool prelude_is_random(Helper which)
{
    return which >= HELPER_UNIT && which <= HELPER_FOLD_IN;
}

void prelude_print_device(Text *out, const PreludeNeeds *needs)
{
    HelperPrinter printer = {.out = out, .lanes = 1, .device = true};
    for (unsigned h = HELPER_UNIT; h <= HELPER_FOLD_IN; h++)
        for (unsigned dtype = 0; dtype < DT_COUNT; dtype++)
            if (needs->scalar[h][dtype])
                helper_print_snippet(&printer, str_from(helper_name((Helper)h)), dtype);
}

/* May it, by the flags that its files are compiled with? */
static bool runs_with_avx2(const Target *target)
{
    bool anywhere = target->dialect == DIALECT_C99 && !target->flash;
    return anywhere || (target->cc_flags && strstr(target->cc_flags, "x86-64"));
}

static void print_includes(Text *out, const Target *target)
{
    bool portable = target->dialect == DIALECT_C99;
    text_printf(out, "%s#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n",
                portable ? "#include <limits.h>\n" : "");
    if (portable)
        text_str(out,
                 STR("\n#if INT_MAX < 2147483647\n#error \"int has 16 bits: positions and floats want 32\"\n#endif\n"));
    text_str(out, STR("\n#if defined(__GNUC__) && !defined(__clang__)\n"
                      "#pragma GCC optimize(\"fp-contract=fast\") /* under -std=c99 gcc has no FMA otherwise */\n"));
    if (runs_with_avx2(target))
        text_str(
            out,
            STR("#if __GNUC__ == 12 && defined(__AVX2__)\n"
                "#pragma GCC optimize(\"no-tree-loop-vectorize\") /* 12.2 makes wrong ones of short inner loops */\n"
                "#endif\n"));
    text_str(out, STR("#endif\n\n"));
}

/* What keeps compilers from what they do badly: nothing for those that do not. */
typedef struct Remedy {
    const char *why, *where, *name, *is, *else_is;
} Remedy;

static const Remedy careful = {
    "gcc 12.2 makes wrong addresses where an array is read along rows and columns in one loop.",
    "defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12", "NNC_CAREFUL",
    " __attribute__((optimize(\"no-ivopts\")))", ""};
static const Remedy rolled = {"A loop whose body fills the registers: unrolled at -O3, it would spill them.",
                              "defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 8)", "NNC_ROLLED",
                              " _Pragma(\"GCC unroll 1\")", ""};
static const Remedy held = {
    "Addresses that are not taken apart, nor with those of other kernels: clang 14 would for minutes.",
    "defined(__GNUC__)", "NNC_HELD(address)", " __asm__(\"\" : \"+r\"(address))", " ((void)0)"};
static const Remedy in_order = {
    "What stands side by side becomes vectors, not the rounds of a loop: gcc -O3 would try these.",
    "defined(__GNUC__) && !defined(__clang__)", "NNC_IN_ORDER",
    " __attribute__((optimize(\"no-tree-loop-vectorize\")))", ""};

static void print_remedy(Text *out, bool needed, const Remedy *r)
{
    if (needed)
        text_printf(out, "/* %s */\n#if %s\n#define %s%s\n#else\n#define %s%s\n#endif\n\n", r->why, r->where, r->name,
                    r->is, r->name, r->else_is);
}

void prelude_print(Text *out, const Target *target, const PreludeNeeds *needs)
{
    Text body = {0};
    HelperPrinter printer = {.out = &body, .lanes = target->lanes};

    bool words = turns_words(needs), vectors = words || all_widths(needs) != 0,
         lanes = vectors && target->dialect == DIALECT_C99;
    print_helpers(&printer, needs, lanes);
    print_includes(out, target);
    print_remedy(out, needs->careful, &careful);
    print_remedy(out, needs->rolled, &rolled);
    print_remedy(out, needs->held, &held);
    print_remedy(out, needs->in_order, &in_order);
    if (lanes)
        print_lane_types(out, target, needs, printer.shuffles);
    else if (vectors)
        print_vector_types(out, target, needs, printer.shuffles);
    if (words)
        print_word_macros(out);
    text_str(out, text_view(&body));
    prelude_print_tiles(out, needs);
    prelude_print_products(out, needs);
    text_free(&body);
}
