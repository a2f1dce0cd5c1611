/* Prints the helpers that an emitted source needs, each after those it calls.
 * A helper's text names its callees by a suffix that stands for the form (snippet.h), so nothing is listed twice. */
#include "c/prelude.h"

#include "c/snippet.h"

#include <assert.h>
#include <string.h>

/* The form of a helper at hand: a scalar of some DType, or one of these. */
enum { VARIANT_VECTOR = DT_COUNT, VARIANT_PLAIN };

static const struct {
    const char *name;
    const char *library; /* math.h has it for scalars, as name and namef */
} helper[HELPER_COUNT] = {
    [HELPER_LOAD] = {"load", NULL},
    [HELPER_STORE] = {"store", NULL},
    [HELPER_GATHER] = {"gather", NULL},
    [HELPER_EVEN] = {"even", NULL},
    [HELPER_SCATTER] = {"scatter", NULL},
    [HELPER_SPLAT] = {"splat", NULL},
    [HELPER_LOAD_MASK] = {"load_mask", NULL},
    [HELPER_GATHER_MASK] = {"gather_mask", NULL},
    [HELPER_STORE_MASK] = {"store_mask", NULL},
    [HELPER_SPLAT_MASK] = {"splat_mask", NULL},
    [HELPER_SELECT] = {"select", NULL},
    [HELPER_MAX] = {"max", NULL},
    [HELPER_MIN] = {"min", NULL},
    [HELPER_ATLEAST] = {"atleast", NULL},
    [HELPER_ATMOST] = {"atmost", NULL},
    [HELPER_SUM] = {"sum", NULL},
    [HELPER_PRODUCT] = {"product", NULL},
    [HELPER_LARGEST] = {"largest", NULL},
    [HELPER_LEAST] = {"least", NULL},
    [HELPER_TRANSPOSE] = {"transpose", NULL},
    [HELPER_ABS] = {"abs", "fabs"},
    [HELPER_SQRT] = {"sqrt", "sqrt"},
    [HELPER_EXP] = {"exp", "exp"},
    [HELPER_EXPM1] = {"expm1", "expm1"},
    [HELPER_LOG] = {"log", "log"},
    [HELPER_LOG1P] = {"log1p", "log1p"},
    [HELPER_SIN] = {"sin", "sin"},
    [HELPER_COS] = {"cos", "cos"},
    [HELPER_TAN] = {"tan", "tan"},
    [HELPER_ASIN] = {"asin", "asin"},
    [HELPER_ACOS] = {"acos", "acos"},
    [HELPER_ATAN] = {"atan", "atan"},
    [HELPER_SINH] = {"sinh", "sinh"},
    [HELPER_COSH] = {"cosh", "cosh"},
    [HELPER_TANH] = {"tanh", "tanh"},
    [HELPER_ERF] = {"erf", "erf"},
    [HELPER_FLOOR] = {"floor", "floor"},
    [HELPER_CEIL] = {"ceil", "ceil"},
    [HELPER_ROUND] = {"round", "rint"},
    [HELPER_TRUNC] = {"trunc", "trunc"},
    [HELPER_POW] = {"pow", "pow"},
    [HELPER_FMOD] = {"fmod", "fmod"},
    [HELPER_DIV] = {"div", NULL},
    [HELPER_MOD] = {"mod", NULL},
    [HELPER_UNIT] = {"unit", NULL},
    [HELPER_GAUSS] = {"gauss", NULL},
    [HELPER_WORD] = {"word", NULL},
    [HELPER_FOLD_IN] = {"fold_in", NULL},
    [HELPER_CONVERT] = {"convert", NULL},
};

static const char *const element_type[DT_COUNT] = {
    [DT_F64] = "double",  [DT_F32] = "float",          [DT_F16] = "uint16_t", [DT_BF16] = "uint16_t",
    [DT_I64] = "int64_t", [DT_I32] = "int32_t",        [DT_I16] = "int16_t",  [DT_I8] = "int8_t",
    [DT_U8] = "uint8_t",  [DT_BOOL] = "unsigned char",
};

const char *prelude_c_type(DType dtype)
{
    return element_type[dtype];
}

static bool is_half(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16;
}

static unsigned form_of(unsigned variant)
{
    if (variant == VARIANT_VECTOR)
        return SNIPPET_VECTOR;
    if (variant == VARIANT_PLAIN)
        return SNIPPET_PLAIN;
    if (variant == DT_F64)
        return SNIPPET_F64;
    if (variant == DT_F32)
        return SNIPPET_F32;
    return variant == DT_U8 || variant == DT_BOOL ? SNIPPET_UNSIGNED : SNIPPET_SIGNED;
}

static const Snippet *find_in(const Snippet *table, Str name, unsigned form)
{
    for (const Snippet *s = table; s->name; s++)
        if ((s->forms & form) && str_is(name, s->name))
            return s;
    return NULL;
}

static const Snippet *find(Str name, unsigned variant)
{
    static const Snippet *const table[] = {snippet_basic, snippet_math, snippet_random};
    const Snippet *found = NULL;
    for (uint32_t i = 0; i < sizeof table / sizeof *table && !found; i++)
        found = find_in(table[i], name, form_of(variant));
    return found;
}

/* The function of math.h that serves a scalar without a text of ours, less the f of its f32 form; else NULL. */
static const char *library_function(Str name, unsigned variant)
{
    if ((variant != DT_F32 && variant != DT_F64) || find(name, variant))
        return NULL;
    if (str_is(name, "copysign"))
        return "copysign";
    for (uint32_t h = 0; h < HELPER_COUNT; h++)
        if (helper[h].library && str_is(name, helper[h].name))
            return helper[h].library;
    return NULL;
}

const char *prelude_need(PreludeNeeds *needs, Arena *arena, Helper which, DType dtype, uint32_t lanes)
{
    const char *name = helper[which].name;

    if (lanes > 1) {
        assert(dtype == DT_F32);
        needs->vector[which] = true;
        return str_format(arena, "%s_f32x%u", name, (unsigned)lanes).ptr;
    }
    if (is_half(dtype))
        dtype = DT_F32; /* computed as that */
    needs->scalar[which][dtype] = true;
    const char *library = library_function(str_from(name), dtype);
    if (library)
        return str_format(arena, "%s%s", library, dtype == DT_F32 ? "f" : "").ptr;
    return str_format(arena, "%s_%s", name, dtype_name(dtype)).ptr;
}

const char *prelude_need_convert(PreludeNeeds *needs, Arena *arena, DType from, DType to)
{
    bool from_float = dtype_is_float(from), is_cast = !from_float || dtype_is_float(to);

    if (from == to || (to == DT_BOOL && from == DT_BOOL))
        return NULL;
    if (is_cast && to != DT_BOOL && !is_half(from) && !is_half(to))
        return NULL;
    needs->convert[from][to] = true;
    return str_format(arena, "to_%s_from_%s", dtype_name(to), dtype_name(from)).ptr;
}

typedef struct Printer {
    Text *out;
    unsigned lanes;
    struct {
        const Snippet *snippet;
        unsigned variant;
    } done[256];
    unsigned done_count;
    bool converted[DT_COUNT][DT_COUNT];
    bool shuffles; /* NNC_SHUFFLE is used */
    bool device;   /* the functions are CUDA's */
} Printer;

static bool done_before(Printer *printer, const Snippet *snippet, unsigned variant)
{
    for (unsigned i = 0; i < printer->done_count; i++)
        if (printer->done[i].snippet == snippet && printer->done[i].variant == variant)
            return true;
    assert(printer->done_count < sizeof printer->done / sizeof *printer->done);
    printer->done[printer->done_count].snippet = snippet;
    printer->done[printer->done_count++].variant = variant;
    return false;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The word or number at p. */
static Str word_at(const char *p)
{
    uint32_t len = 0;
    while (is_word(p[len]) || (len && p[len] == '.' && p[0] >= '0' && p[0] <= '9'))
        len++;
    return (Str){p, len};
}

static void print_suffix(Printer *printer, unsigned variant)
{
    if (variant == VARIANT_VECTOR)
        text_printf(printer->out, "_f32x%u", printer->lanes);
    else
        text_printf(printer->out, "_%s", dtype_name((DType)variant));
}

static void print_name(Printer *printer, Str name, unsigned variant)
{
    const char *library = library_function(name, variant);
    text_str(printer->out, library ? str_from(library) : name);
    if (!library)
        print_suffix(printer, variant);
    else if (variant == DT_F32)
        text_char(printer->out, 'f');
}

static void print_vector(Printer *printer, const char *element)
{
    text_printf(printer->out, "%sx%u", element, printer->lanes);
}

/* Where the even elements are in two vectors, the second of which begins with the last element of the first. */
static void print_evens(Printer *printer)
{
    printer->shuffles = true;
    for (unsigned lane = 0; lane < printer->lanes; lane++)
        text_printf(printer->out, "%s%u", lane ? ", " : "", 2 * lane + (lane >= printer->lanes / 2));
}

/* Types and numbers of the form; false for any other word. */
static bool print_placeholder(Printer *printer, Str word, unsigned variant)
{
    bool vector = variant == VARIANT_VECTOR;
    if (str_is(word, "F"))
        vector ? print_vector(printer, "f32") : text_str(printer->out, STR("float"));
    else if (str_is(word, "I"))
        vector ? print_vector(printer, "i32") : text_str(printer->out, STR("int"));
    else if (str_is(word, "U"))
        vector ? print_vector(printer, "u32") : text_str(printer->out, STR("uint32_t"));
    else if (str_is(word, "T") && !vector)
        text_str(printer->out, str_from(element_type[variant]));
    else if (str_is(word, "LANES"))
        text_printf(printer->out, "%u", printer->lanes);
    else if (str_is(word, "EVENS"))
        print_evens(printer);
    else if (str_is(word, "UNALIGNED"))
        text_printf(printer->out, "f32x%uu", printer->lanes);
    else if (str_is(word, "BYTES"))
        print_vector(printer, "u8");
    else if (str_is(word, "UNALIGNED_BYTES"))
        text_printf(printer->out, "u8x%uu", printer->lanes);
    else
        return false;
    return true;
}

/* The text up to the parenthesis that closes the one before p. */
static Str argument_at(const char *p)
{
    uint32_t len = 0;
    for (int depth = 0; depth > 0 || p[len] != ')'; len++)
        depth += (p[len] == '(') - (p[len] == ')');
    return (Str){p, len};
}

/* element for each lane, `#` its number and `# ^ k` that number with bits changed; four on a line when they are long */
static void print_each(Printer *printer, Str element)
{
    uint32_t in_line = element.len > 6 ? 4 : 16;
    for (unsigned lane = 0; lane < printer->lanes; lane++) {
        if (lane)
            text_str(printer->out, lane % in_line ? STR(", ") : STR(",\n        "));
        for (uint32_t i = 0; i < element.len; i++)
            if (element.ptr[i] == '#')
                text_printf(printer->out, "%u", lane);
            else
                text_char(printer->out, element.ptr[i]);
    }
}

/* x combined with itself, half the lanes against the other half, then quarters, down to single lanes: all lanes are
 * then the same. */
static void expand(Printer *printer, Str text, unsigned variant);
static void print_tree(Printer *printer, Str combine)
{
    print_vector(printer, "    f32");
    text_str(printer->out, STR(" y;\n"));
    printer->shuffles = true;
    for (unsigned half = printer->lanes / 2; half; half /= 2) {
        text_str(printer->out, STR("    y = NNC_SHUFFLE(x, x"));
        for (unsigned lane = 0; lane < printer->lanes; lane++)
            text_printf(printer->out, ", %u", lane ^ half);
        text_str(printer->out, STR(");\n    x = "));
        expand(printer, combine, VARIANT_VECTOR);
        text_str(printer->out, STR(";\n"));
    }
}

static void expand(Printer *printer, Str text, unsigned variant)
{
    const char *p = text.ptr, *end = text.ptr + text.len;
    static const char head[] = "static inline";

    while (p < end) {
        Str word = word_at(p);
        if (printer->device && strncmp(p, head, sizeof head - 1) == 0) {
            text_printf(printer->out, "static __device__ __forceinline__");
            p += sizeof head - 1;
            continue;
        }
        printer->shuffles |= str_is(word, "NNC_SHUFFLE");
        p += word.len;
        if (!word.len)
            text_char(printer->out, *p++);
        else if (*p == '$' || *p == '@')
            print_name(printer, word, *p++ == '$' ? variant : DT_F32);
        else if (str_is(word, "EACH") || str_is(word, "TREE")) {
            Str argument = argument_at(p + 1);
            str_is(word, "EACH") ? print_each(printer, argument) : print_tree(printer, argument);
            p = argument.ptr + argument.len + (str_is(word, "EACH") ? 1 : 2); /* a tree fills lines */
        } else if (!print_placeholder(printer, word, variant))
            text_str(printer->out, word);
    }
}

static void print_snippet(Printer *printer, Str name, unsigned variant)
{
    const Snippet *snippet = printer->device ? find_in(snippet_device, name, form_of(variant)) : NULL;

    if (!snippet)
        snippet = find(name, variant);
    if (!snippet) { /* math.h has it */
        assert(library_function(name, variant));
        return;
    }
    if (done_before(printer, snippet, variant))
        return;
    for (const char *p = snippet->text; *p;) { /* those it calls come first */
        Str word = word_at(p);
        p += word.len ? word.len : 1;
        if (word.len && (*p == '$' || *p == '@') && !str_eq(word, name))
            print_snippet(printer, word, *p == '$' ? variant : DT_F32);
        else if (word.len && *p == '@' && variant != DT_F32)
            print_snippet(printer, word, DT_F32); /* a vector form that loops over the scalar one */
    }
    expand(printer, str_from(snippet->text), variant);
    text_char(printer->out, '\n');
}

/* Conversions.  A 16-bit float goes through f32. */
static void print_convert(Printer *printer, DType from, DType to);

static void open_convert(Printer *printer, DType from, DType to)
{
    text_printf(printer->out, "static inline %s to_%s_from_%s(%s x)\n{\n", prelude_c_type(to), dtype_name(to),
                dtype_name(from), prelude_c_type(from));
}

static void print_to_half(Printer *printer, DType from, DType to)
{
    bool wide = from == DT_F64 || from == DT_I64 || from == DT_I32; /* more than f32 holds */
    const char *name = dtype_name(to);

    if (is_half(from))
        print_convert(printer, from, DT_F32);
    print_convert(printer, DT_F32, to);
    if (wide)
        print_snippet(printer, STR("odd_f32_from_f64"), VARIANT_PLAIN);
    open_convert(printer, from, to);
    if (is_half(from))
        text_printf(printer->out, "    return to_%s_from_f32(to_f32_from_%s(x));\n}\n\n", name, dtype_name(from));
    else if (wide)
        text_printf(printer->out, "    return to_%s_from_f32(odd_f32_from_f64((double)x));\n}\n\n", name);
    else
        text_printf(printer->out, "    return to_%s_from_f32((float)x);\n}\n\n", name);
}

/* The ends of an integer type: the names in stdint.h, and the least and first float that must be clamped to them. */
static const struct {
    const char *low, *high, *low_float, *high_float;
} ends[DT_COUNT] = {
    [DT_I64] = {"INT64_MIN", "INT64_MAX", "-9223372036854775808.0", "9223372036854775808.0"},
    [DT_I32] = {"INT32_MIN", "INT32_MAX", "-2147483648.0", "2147483648.0"},
    [DT_I16] = {"INT16_MIN", "INT16_MAX", "-32768.0", "32768.0"},
    [DT_I8] = {"INT8_MIN", "INT8_MAX", "-128.0", "128.0"},
    [DT_U8] = {"0", "UINT8_MAX", "0.0", "256.0"},
};

static void print_to_int(Printer *printer, DType from, DType to)
{
    const char *f = from == DT_F32 ? "f" : "";

    if (is_half(from)) {
        print_convert(printer, from, DT_F32);
        print_convert(printer, DT_F32, to);
        open_convert(printer, from, to);
        text_printf(printer->out, "    return to_%s_from_f32(to_f32_from_%s(x));\n}\n\n", dtype_name(to),
                    dtype_name(from));
        return;
    }
    open_convert(printer, from, to);
    text_printf(printer->out,
                "    if (x != x)\n"
                "        return 0;\n"
                "    return x <= %s%s ? %s : x >= %s%s ? %s : (%s)x;\n}\n\n",
                ends[to].low_float, f, ends[to].low, ends[to].high_float, f, ends[to].high, prelude_c_type(to));
}

static void print_convert(Printer *printer, DType from, DType to)
{
    if (printer->converted[from][to])
        return;
    printer->converted[from][to] = true;
    Text name = {0};
    text_printf(&name, "to_%s_from_%s", dtype_name(to), dtype_name(from));
    if (find(text_view(&name), VARIANT_PLAIN))
        print_snippet(printer, text_view(&name), VARIANT_PLAIN);
    else if (to == DT_BOOL) {
        open_convert(printer, from, to);
        text_printf(printer->out, "    return %s != 0;\n}\n\n", is_half(from) ? "(x & 0x7FFF)" : "x");
    } else if (is_half(to))
        print_to_half(printer, from, to);
    else if (dtype_is_int(to))
        print_to_int(printer, from, to);
    else { /* f64 from a 16-bit float */
        print_convert(printer, from, DT_F32);
        open_convert(printer, from, to);
        text_printf(printer->out, "    return (double)to_f32_from_%s(x);\n}\n\n", dtype_name(from));
    }
    text_free(&name);
}

/* Transpose in registers: rows r, then interleaved in groups of four lanes (128 bits, numbered L):
 *   t[2i], t[2i + 1]   lanes of r[2i] and r[2i + 1] by turns, from the lower and upper half of each group
 *   u[4g + c]          group L holds column 4L + c of rows 4g ... 4g + 3
 * and what is left is to exchange whole groups between u[c], u[4 + c], u[8 + c] and u[12 + c]. */
typedef enum Shuffle { LOW32, HIGH32, LOW64, HIGH64, EVEN128, ODD128, SHUFFLE_COUNT } Shuffle;

static const struct {
    const char *name, *doc;
} shuffle_text[SHUFFLE_COUNT] = {
    [LOW32] = {"low32", "the lower two lanes of each four, of a and b by turns"},
    [HIGH32] = {"high32", "the upper two"},
    [LOW64] = {"low64", "the lower pair of lanes of each four, of a and of b"},
    [HIGH64] = {"high64", "the upper pair"},
    [EVEN128] = {"even128", "the even groups of four lanes of a, then those of b"},
    [ODD128] = {"odd128", "the odd groups"},
};

/* Which lane of a (from 0) or b (from `lanes`) goes to a lane. */
static unsigned shuffle_source(Shuffle shuffle, unsigned lane, unsigned lanes)
{
    if (shuffle >= EVEN128) {
        unsigned group = 2 * (lane / 4) + (shuffle == ODD128); /* of a and b together */
        return 4 * group + lane % 4;
    }
    unsigned size = shuffle <= HIGH32 ? 1 : 2, part = lane % 4 / size;
    unsigned half = shuffle == HIGH32 || shuffle == HIGH64 ? 2 : 0;
    return (part & 1) * lanes + lane / 4 * 4 + half + part / 2 * size + lane % size;
}

static void print_shuffle(Printer *printer, Shuffle shuffle)
{
    unsigned lanes = printer->lanes;
    const char *name = shuffle_text[shuffle].name;

    text_printf(printer->out, "/* %s */\nstatic inline f32x%u %s_f32x%u(f32x%u a, f32x%u b)\n{\n",
                shuffle_text[shuffle].doc, lanes, name, lanes, lanes, lanes);
    printer->shuffles = true;
    text_str(printer->out, STR("    return NNC_SHUFFLE(a, b"));
    for (unsigned lane = 0; lane < lanes; lane++)
        text_printf(printer->out, ", %u", shuffle_source(shuffle, lane, lanes));
    text_str(printer->out, STR(");\n}\n\n"));
}

/* `const f32x16 t0 = low32_f32x16(r0, r1), t1 = high32_f32x16(r0, r1);`: row i and j to the rows low and high of `to`
 */
static void print_exchange(Printer *printer, char to, unsigned low, unsigned high, Shuffle shuffle, char from,
                           unsigned i, unsigned j)
{
    unsigned lanes = printer->lanes;
    text_printf(printer->out, "    const f32x%u %c%u = %s_f32x%u(%c%u, %c%u), %c%u = %s_f32x%u(%c%u, %c%u);\n", lanes,
                to, low, shuffle_text[shuffle].name, lanes, from, i, from, j, to, high, shuffle_text[shuffle + 1].name,
                lanes, from, i, from, j);
}

static void print_rows(Printer *printer)
{
    unsigned lanes = printer->lanes;

    for (unsigned i = 0; i < lanes; i++)
        text_printf(printer->out, "    const f32x%u r%u = load_f32x%u(from + %u * stride);\n", lanes, i, lanes, i);
    for (unsigned i = 0; i < lanes; i += 2)
        print_exchange(printer, 't', i, i + 1, LOW32, 'r', i, i + 1);
    for (unsigned i = 0; i < lanes; i += 4) {
        print_exchange(printer, 'u', i, i + 1, LOW64, 't', i, i + 2);
        print_exchange(printer, 'u', i + 2, i + 3, LOW64, 't', i + 1, i + 3);
    }
    for (unsigned i = 0; i < lanes; i += 8)
        for (unsigned c = i; c < i + 4; c++)
            print_exchange(printer, 'v', c, c + 4, EVEN128, 'u', c, c + 4);
    if (lanes == 16)
        for (unsigned c = 0; c < 8; c++)
            print_exchange(printer, 'w', c, c + 8, EVEN128, 'v', c, c + 8);
    for (unsigned i = 0; i < lanes; i++)
        text_printf(printer->out, "    store_f32x%u(to + %u * to_stride, %c%u);\n", lanes, i, lanes == 16 ? 'w' : 'v',
                    i);
}

static void print_transpose(Printer *printer)
{
    bool registers = printer->lanes == 8 || printer->lanes == 16;

    for (unsigned i = 0; registers && i < SHUFFLE_COUNT; i++)
        print_shuffle(printer, (Shuffle)i);
    if (registers) {
        print_snippet(printer, STR("load"), VARIANT_VECTOR);
        print_snippet(printer, STR("store"), VARIANT_VECTOR);
    }
    text_printf(printer->out,
                "/* to[j * to_stride + i] = from[i * stride + j] for i, j < %u */\n"
                "static inline void transpose_f32x%u(const float *from, ptrdiff_t stride, float *to, "
                "ptrdiff_t to_stride)\n{\n",
                printer->lanes, printer->lanes);
    if (registers)
        print_rows(printer);
    else
        text_printf(printer->out,
                    "    for (int i = 0; i < %u; i++)\n"
                    "        for (int j = 0; j < %u; j++)\n"
                    "            to[j * to_stride + i] = from[i * stride + j];\n",
                    printer->lanes, printer->lanes);
    text_str(printer->out, STR("}\n\n"));
}

static bool any_vector(const PreludeNeeds *needs)
{
    for (unsigned h = 0; h < HELPER_COUNT; h++)
        if (needs->vector[h])
            return true;
    return false;
}

static void print_vector_types(Text *out, const Target *target, const PreludeNeeds *needs, bool shuffles)
{
    unsigned lanes = target->lanes, bytes = 4 * lanes;
    const char *feature = lanes == 16 ? "__AVX512F__" : lanes == 8 ? "__AVX2__" : NULL;

    if (feature)
        text_printf(out, "#ifndef %s\n#error \"made for the target %s: compile with %s\"\n#endif\n\n", feature,
                    target->name, target->cc_flags);
    text_printf(out,
                "typedef float f32x%u __attribute__((vector_size(%u)));\n"
                "typedef int32_t i32x%u __attribute__((vector_size(%u)));\n"
                "typedef uint32_t u32x%u __attribute__((vector_size(%u)));\n"
                "typedef float f32x%uu __attribute__((vector_size(%u), aligned(4), may_alias));\n\n",
                lanes, bytes, lanes, bytes, lanes, bytes, lanes, bytes);
    if (needs->vector[HELPER_LOAD_MASK] || needs->vector[HELPER_STORE_MASK])
        text_printf(out,
                    "typedef unsigned char u8x%u __attribute__((vector_size(%u)));\n"
                    "typedef unsigned char u8x%uu __attribute__((vector_size(%u), aligned(1), may_alias));\n\n",
                    lanes, lanes, lanes, lanes);
    if (shuffles)
        text_printf(out,
                    "#if defined(__clang__) || __GNUC__ >= 12\n"
                    "#define NNC_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)\n"
                    "#else\n"
                    "#define NNC_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, __extension__(i32x%u){__VA_ARGS__})\n"
                    "#endif\n\n",
                    lanes);
}

static void print_helpers(Printer *printer, const PreludeNeeds *needs)
{
    for (unsigned h = 0; h < HELPER_COUNT; h++) {
        for (unsigned dtype = 0; dtype < DT_COUNT; dtype++)
            if (needs->scalar[h][dtype])
                print_snippet(printer, str_from(helper[h].name), dtype);
        if (needs->vector[h] && h == HELPER_TRANSPOSE)
            print_transpose(printer);
        else if (needs->vector[h])
            print_snippet(printer, str_from(helper[h].name), VARIANT_VECTOR);
    }
    for (unsigned from = 0; from < DT_COUNT; from++)
        for (unsigned to = 0; to < DT_COUNT; to++)
            if (needs->convert[from][to])
                print_convert(printer, (DType)from, (DType)to);
}

bool prelude_is_random(Helper which)
{
    return which >= HELPER_UNIT && which <= HELPER_FOLD_IN;
}

void prelude_print_device(Text *out, const PreludeNeeds *needs)
{
    Printer printer = {.out = out, .lanes = 1, .device = true};
    for (unsigned h = HELPER_UNIT; h <= HELPER_FOLD_IN; h++)
        for (unsigned dtype = 0; dtype < DT_COUNT; dtype++)
            if (needs->scalar[h][dtype])
                print_snippet(&printer, str_from(helper[h].name), dtype);
}

void prelude_print(Text *out, const Target *target, const PreludeNeeds *needs)
{
    Text body = {0};
    Printer printer = {.out = &body, .lanes = target->lanes};

    print_helpers(&printer, needs);
    text_str(out, STR("#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"));
    text_str(out, STR("\n#if defined(__GNUC__) && !defined(__clang__)\n"
                      "#pragma GCC optimize(\"fp-contract=fast\") /* under -std=c99 gcc has no FMA otherwise */\n"
                      "#endif\n\n"));
    if (needs->careful)
        text_str(out,
                 STR("/* gcc 12.2 makes wrong addresses where an array is read along rows and columns in one loop. */\n"
                     "#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ == 12\n"
                     "#define NNC_CAREFUL __attribute__((optimize(\"no-ivopts\")))\n"
                     "#else\n"
                     "#define NNC_CAREFUL\n"
                     "#endif\n\n"));
    if (target->dialect == DIALECT_VECTOR && any_vector(needs))
        print_vector_types(out, target, needs, printer.shuffles);
    text_str(out, text_view(&body));
    text_free(&body);
}
