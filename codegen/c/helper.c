/* Helpers from their texts: the form at hand put in, those called printed first (helper.h). */
#include "c/helper.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    const char *library; /* math.h has it for scalars, as name and namef */
} helper[HELPER_COUNT] = {
    [HELPER_LOAD] = {"load", NULL},
    [HELPER_STORE] = {"store", NULL},
    [HELPER_GATHER] = {"gather", NULL},
    [HELPER_EVEN] = {"even", NULL},
    [HELPER_THIRD] = {"third", NULL},
    [HELPER_FOURTH] = {"fourth", NULL},
    [HELPER_STORE_2] = {"store_2", NULL},
    [HELPER_STORE_3] = {"store_3", NULL},
    [HELPER_STORE_4] = {"store_4", NULL},
    [HELPER_STORE_6] = {"store_6", NULL},
    [HELPER_STORE_8] = {"store_8", NULL},
    [HELPER_SCATTER] = {"scatter", NULL},
    [HELPER_LOAD_I8] = {"load_i8", NULL},
    [HELPER_LOAD_U8] = {"load_u8", NULL},
    [HELPER_LOAD_I16] = {"load_i16", NULL},
    [HELPER_LOAD_U16] = {"load_u16", NULL},
    [HELPER_LOAD_F16] = {"load_f16", NULL},
    [HELPER_LOAD_BF16] = {"load_bf16", NULL},
    [HELPER_PART_I8] = {"part_i8", NULL},
    [HELPER_PART_U8] = {"part_u8", NULL},
    [HELPER_PART_I16] = {"part_i16", NULL},
    [HELPER_PART_U16] = {"part_u16", NULL},
    [HELPER_PART_F16] = {"part_f16", NULL},
    [HELPER_PART_BF16] = {"part_bf16", NULL},
    [HELPER_ROUND_F16] = {"round_f16", NULL},
    [HELPER_ROUND_BF16] = {"round_bf16", NULL},
    [HELPER_STORE_F16] = {"store_f16", NULL},
    [HELPER_STORE_BF16] = {"store_bf16", NULL},
    [HELPER_CUT_I8] = {"cut_i8", NULL},
    [HELPER_CUT_U8] = {"cut_u8", NULL},
    [HELPER_CUT_I16] = {"cut_i16", NULL},
    [HELPER_CUT_U16] = {"cut_u16", NULL},
    [HELPER_STORE_I8] = {"store_i8", NULL},
    [HELPER_STORE_U8] = {"store_u8", NULL},
    [HELPER_STORE_I16] = {"store_i16", NULL},
    [HELPER_STORE_U16] = {"store_u16", NULL},
    [HELPER_STORE_I32] = {"store_i32", NULL},
    [HELPER_STORE_I64] = {"store_i64", NULL},
    [HELPER_PAIR] = {"pair", NULL},
    [HELPER_PAIRS_I8] = {"pairs_i8", NULL},
    [HELPER_PAIRS_U8] = {"pairs_u8", NULL},
    [HELPER_PAIRS_BF16] = {"pairs_bf16", NULL},
    [HELPER_QUAD] = {"quad", NULL},
    [HELPER_QUADS_I8] = {"quads_i8", NULL},
    [HELPER_QUADS_U8] = {"quads_u8", NULL},
    [HELPER_DOT] = {"dot", NULL},
    [HELPER_DOT_BYTES] = {"dot_bytes", NULL},
    [HELPER_DOT_BF16] = {"dot_bf16", NULL},
    [HELPER_STORE_PARTS] = {"store_parts", NULL},
    [HELPER_SPLAT_PAIR] = {"splat_pair", NULL},
    [HELPER_LOAD_WORDS] = {"load_words", NULL},
    [HELPER_STORE_WORDS] = {"store_words", NULL},
    [HELPER_FLOATS] = {"floats", NULL},
    [HELPER_LOAD_NIBBLE] = {"load_nibble", NULL},
    [HELPER_NIBBLE] = {"nibble", NULL},
    [HELPER_NIBBLE_AT] = {"nibble_at", NULL},
    [HELPER_LOAD_I4] = {"load_i4", NULL},
    [HELPER_LOAD_U4] = {"load_u4", NULL},
    [HELPER_PART_I4] = {"part_i4", NULL},
    [HELPER_PART_U4] = {"part_u4", NULL},
    [HELPER_EACH_I4] = {"each_i4", NULL},
    [HELPER_EACH_U4] = {"each_u4", NULL},
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
    [HELPER_CBRT] = {"cbrt", "cbrt"},
    [HELPER_EXP] = {"exp", "exp"},
    [HELPER_EXP2] = {"exp2", "exp2"},
    [HELPER_EXPM1] = {"expm1", "expm1"},
    [HELPER_LOG] = {"log", "log"},
    [HELPER_LOG2] = {"log2", "log2"},
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
    [HELPER_ASINH] = {"asinh", "asinh"},
    [HELPER_ACOSH] = {"acosh", "acosh"},
    [HELPER_ATANH] = {"atanh", "atanh"},
    [HELPER_ERF] = {"erf", "erf"},
    [HELPER_SIGMOID] = {"sigmoid", NULL},
    [HELPER_FLOOR] = {"floor", "floor"},
    [HELPER_CEIL] = {"ceil", "ceil"},
    [HELPER_ROUND] = {"round", "rint"},
    [HELPER_TRUNC] = {"trunc", "trunc"},
    [HELPER_POW] = {"pow", "pow"},
    [HELPER_FMOD] = {"fmod", "fmod"},
    [HELPER_SHIFT_LEFT] = {"shift_left", NULL},
    [HELPER_SHIFT_RIGHT] = {"shift_right", NULL},
    [HELPER_DIV] = {"div", NULL},
    [HELPER_MOD] = {"mod", NULL},
    [HELPER_UNIT] = {"unit", NULL},
    [HELPER_GAUSS] = {"gauss", NULL},
    [HELPER_WORD] = {"word", NULL},
    [HELPER_FOLD_IN] = {"fold_in", NULL},
    [HELPER_CONVERT] = {"convert", NULL},
    [HELPER_ADD] = {"add", NULL},
    [HELPER_SUB] = {"sub", NULL},
    [HELPER_MUL] = {"mul", NULL},
    [HELPER_NEG] = {"neg", NULL},
    [HELPER_MADD] = {"madd", NULL},
    [HELPER_MADDS] = {"madds", NULL},
    [HELPER_LESS] = {"less", NULL},
    [HELPER_AT_MOST] = {"at_most", NULL},
    [HELPER_EQUAL] = {"equal", NULL},
    [HELPER_DIFFER] = {"differ", NULL},
    [HELPER_AND] = {"and", NULL},
    [HELPER_OR] = {"or", NULL},
    [HELPER_XOR] = {"xor", NULL},
    [HELPER_NOT] = {"not", NULL},
};

static const char *const element_type[DT_COUNT] = {
    [DT_F64] = "double",         [DT_F32] = "float",    [DT_F16] = "uint16_t", [DT_BF16] = "uint16_t",
    [DT_I64] = "int64_t",        [DT_I32] = "int32_t",  [DT_I16] = "int16_t",  [DT_I8] = "int8_t",
    [DT_U64] = "uint64_t",       [DT_U32] = "uint32_t", [DT_U16] = "uint16_t", [DT_U8] = "uint8_t",
    [DT_BOOL] = "unsigned char",
};

const char *prelude_c_type(DType dtype)
{
    return element_type[dtype];
}

static unsigned form_of(unsigned variant)
{
    if (variant == VARIANT_VECTOR)
        return SNIPPET_VECTOR;
    if (variant == VARIANT_PLAIN)
        return SNIPPET_PLAIN;
    if (variant == VARIANT_LANES)
        return SNIPPET_LANES;
    if (variant == DT_F64)
        return SNIPPET_F64;
    if (variant == DT_F32)
        return SNIPPET_F32;
    return dtype_is_unsigned((DType)variant) || variant == DT_BOOL ? SNIPPET_UNSIGNED : SNIPPET_SIGNED;
}

bool helper_is_half(DType dtype)
{
    return dtype == DT_F16 || dtype == DT_BF16;
}

static const Snippet *find_in(const Snippet *table, Str name, unsigned form)
{
    for (const Snippet *s = table; s->name; s++)
        if ((s->forms & form) && str_is(name, s->name))
            return s;
    return NULL;
}

const Snippet *helper_snippet(Str name, unsigned variant)
{
    static const Snippet *const table[] = {snippet_basic,  snippet_narrow, snippet_bundles,  snippet_math,
                                           snippet_random, snippet_lanes,  snippet_operators};
    const Snippet *found = NULL;
    for (uint32_t i = 0; i < sizeof table / sizeof *table && !found; i++)
        found = find_in(table[i], name, form_of(variant));
    return found;
}

const char *helper_name(Helper which)
{
    return helper[which].name;
}

const char *helper_library(Str name, unsigned variant)
{
    if ((variant != DT_F32 && variant != DT_F64) || helper_snippet(name, variant))
        return NULL;
    if (str_is(name, "copysign"))
        return "copysign";
    for (uint32_t h = 0; h < HELPER_COUNT; h++)
        if (helper[h].library && str_is(name, helper[h].name))
            return helper[h].library;
    return NULL;
}

static bool done_before(HelperPrinter *printer, const Snippet *snippet, unsigned variant)
{
    unsigned lanes = variant == VARIANT_VECTOR ? printer->lanes : 1;
    for (unsigned i = 0; i < printer->done_count; i++)
        if (printer->done[i].snippet == snippet && printer->done[i].variant == variant &&
            printer->done[i].lanes == lanes)
            return true;
    assert(printer->done_count < sizeof printer->done / sizeof *printer->done);
    printer->done[printer->done_count].snippet = snippet;
    printer->done[printer->done_count].lanes = lanes;
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

static void print_suffix(HelperPrinter *printer, unsigned variant)
{
    if (variant == VARIANT_VECTOR || variant == VARIANT_LANES)
        text_printf(printer->out, "_f32x%u", printer->lanes);
    else
        text_printf(printer->out, "_%s", dtype_name((DType)variant));
}

static void print_name(HelperPrinter *printer, Str name, unsigned variant)
{
    const char *library = helper_library(name, variant);
    text_str(printer->out, library ? str_from(library) : name);
    if (!library)
        print_suffix(printer, variant);
    else if (variant == DT_F32)
        text_char(printer->out, 'f');
}

static void print_vector(HelperPrinter *printer, const char *element)
{
    text_printf(printer->out, "%sx%u", element, printer->lanes);
}

/* Lanes of two vectors, numbered on from the first to the second, that a lane of a third one takes.  Of elements that
 * are apart: the last vector that is read ends with the last of them. */
static unsigned even_from(unsigned lane, unsigned lanes)
{
    return 2 * lane + (lane >= lanes / 2);
}

static unsigned third_from_low(unsigned lane, unsigned lanes)
{
    return 3 * lane < 2 * lanes ? 3 * lane : 0;
}

static unsigned third_from_high(unsigned lane, unsigned lanes)
{
    return 3 * lane < 2 * lanes ? lane : lanes + 3 * lane - 2 * (lanes - 1);
}

/* Of two by turns, element `at`. */
static unsigned of_turns(unsigned at, unsigned lanes)
{
    return at % 2 * lanes + at / 2;
}

/* Of three by turns: that of the first two, ... */
static unsigned of_two(unsigned at, unsigned lanes)
{
    return at % 3 == 1 ? lanes + at / 3 : at / 3;
}

/* ... and, beside these, which are in their lanes already, that of the third. */
static unsigned of_third(unsigned at, unsigned lanes)
{
    return at % 3 == 2 ? lanes + at / 3 : at % lanes;
}

static const struct {
    const char *word;
    unsigned (*from)(unsigned at, unsigned lanes);
    unsigned vector; /* of those that the elements fill, the one at hand */
} shuffles[] = {
    {"EVENS", even_from, 0},           {"THIRDS_LOW", third_from_low, 0}, {"THIRDS_HIGH", third_from_high, 0},
    {"TURNS_LOW", of_turns, 0},        {"TURNS_HIGH", of_turns, 1},       {"TWO_OF_THREE_0", of_two, 0},
    {"TWO_OF_THREE_1", of_two, 1},     {"TWO_OF_THREE_2", of_two, 2},     {"THIRD_OF_THREE_0", of_third, 0},
    {"THIRD_OF_THREE_1", of_third, 1}, {"THIRD_OF_THREE_2", of_third, 2},
};

static bool print_lanes_of(HelperPrinter *printer, Str word)
{
    for (uint32_t i = 0; i < sizeof shuffles / sizeof *shuffles; i++)
        if (str_is(word, shuffles[i].word)) {
            unsigned first = shuffles[i].vector * printer->lanes;
            for (unsigned lane = 0; lane < printer->lanes; lane++)
                text_printf(printer->out, "%s%u", lane ? ", " : "", shuffles[i].from(first + lane, printer->lanes));
            return true;
        }
    return false;
}

/* What a word stands for with up to 8 lanes, and with more, where other instructions are: C compilers tell by these
 * macros that they have them.  `#` is the number of lanes. */
static const struct {
    const char *word, *up_to_8, *above;
} placeholders[] = {
    {"LANES", "#", "#"},
    {"UNALIGNED", "f32x#u", "f32x#u"},
    {"UNALIGNED_BYTES", "u8x#u", "u8x#u"},
    /* AVX-512 makes all ones of what a register was, which compilers take no account of */
    {"NANS", "(u32x#)(a != a)", "((u32x#)(a != a) & bits_f32x#(a))"},
    {"WIDE", "__AVX__", "__AVX512F__"},
    {"ROUNDS", "\"vroundps\"", "\"vrndscaleps\""},
    {"REGISTERS", "\"x\"", "\"v\""}, /* of such instructions: codes before AVX-512's know the first 16 */
    {"HALVES", "__F16C__", "__AVX512F__"},
    {"PAIRED", "__AVX2__", "__AVX512BW__"},                 /* products of pairs of i16 ... */
    {"DOTS", "__AVXVNNI__", "__AVX512VNNI__"},              /* ... and their sums */
    {"SUMS_PAIRS", "\"%{vex%} vpdpwssd\"", "\"vpdpwssd\""}, /* that one; without AVX-512 it has a shorter code */
    {"SUMS_BYTES", "\"%{vex%} vpdpbusd\"", "\"vpdpbusd\""},
    {"BRAIN_DOTS", "__AVX512BF16__", "__AVX512BF16__"},
};

static bool print_of_lanes(HelperPrinter *printer, Str word)
{
    for (uint32_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++) {
        if (!str_is(word, placeholders[i].word))
            continue;
        const char *text = printer->lanes > 8 ? placeholders[i].above : placeholders[i].up_to_8;
        for (; *text; text++)
            *text == '#' ? text_printf(printer->out, "%u", printer->lanes) : text_char(printer->out, *text);
        return true;
    }
    return false;
}

/* Types of the form */
static const struct {
    const char *word, *vector, *scalar; /* NULL where it stands for nothing */
} types[] = {{"F", "f32", "float"}, {"I", "i32", "int"}, {"U", "u32", "uint32_t"}, {"BYTES", "u8", NULL}};

static bool print_type_of(HelperPrinter *printer, Str word, unsigned variant)
{
    bool vector = variant == VARIANT_VECTOR || variant == VARIANT_LANES;
    if (str_is(word, "T") && !vector)
        return text_str(printer->out, str_from(element_type[variant])), true;
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!str_is(word, types[i].word))
            continue;
        if (vector || !types[i].scalar)
            print_vector(printer, types[i].vector);
        else
            text_str(printer->out, str_from(types[i].scalar));
        return true;
    }
    return false;
}

/* Types and numbers of the form; false for any other word. */
static bool print_placeholder(HelperPrinter *printer, Str word, unsigned variant)
{
    return print_type_of(printer, word, variant) || print_of_lanes(printer, word) || print_lanes_of(printer, word);
}

/* The text up to the parenthesis that closes the one before p. */
static Str argument_at(const char *p)
{
    uint32_t len = 0;
    for (int depth = 0; depth > 0 || p[len] != ')'; len++)
        depth += (p[len] == '(') - (p[len] == ')');
    return (Str){p, len};
}

static void expand(HelperPrinter *printer, Str text, unsigned variant);

/* element for each lane, `#` its number; some on a line when they are long */
static void print_each(HelperPrinter *printer, Str element, unsigned variant)
{
    uint32_t in_line = element.len > 12 && variant == VARIANT_LANES ? 2 : element.len > 6 ? 4 : 16;
    for (unsigned lane = 0; lane < printer->lanes; lane++) {
        Text text = {0};
        for (uint32_t i = 0; i < element.len; i++)
            element.ptr[i] == '#' ? text_printf(&text, "%u", lane) : text_char(&text, element.ptr[i]);
        if (lane)
            text_str(printer->out, lane % in_line ? STR(", ") : STR(",\n        "));
        expand(printer, text_view(&text), variant);
        text_free(&text);
    }
}

/* x combined with itself, half the lanes against the other half, then quarters, down to single lanes: all lanes are
 * then the same. */
static void print_tree(HelperPrinter *printer, Str combine, const char *element)
{
    print_vector(printer, element);
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

static void expand(HelperPrinter *printer, Str text, unsigned variant)
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
        else if (str_is(word, "EACH") || str_is(word, "TREE") || str_is(word, "TREE_I")) {
            Str argument = argument_at(p + 1);
            str_is(word, "EACH") ? print_each(printer, argument, variant)
                                 : print_tree(printer, argument, str_is(word, "TREE") ? "    f32" : "    i32");
            p = argument.ptr + argument.len + (str_is(word, "EACH") ? 1 : 2); /* a tree fills lines */
        } else if (!print_placeholder(printer, word, variant))
            text_str(printer->out, word);
    }
}

static void print_callees(HelperPrinter *printer, const Snippet *snippet, unsigned variant)
{
    for (const char *p = snippet->text; *p;) {
        Str word = word_at(p);
        p += word.len ? word.len : 1;
        if (word.len && (*p == '$' || *p == '@') && !str_is(word, snippet->name))
            helper_print_snippet(printer, word, *p == '$' ? variant : DT_F32);
        else if (word.len && *p == '@' && variant != DT_F32)
            helper_print_snippet(printer, word, DT_F32); /* a vector form that loops over the scalar one */
    }
}

void helper_print_text(HelperPrinter *printer, Str text, unsigned variant)
{
    expand(printer, text, variant);
    text_char(printer->out, '\n');
}

void helper_print_snippet(HelperPrinter *printer, Str name, unsigned variant)
{
    const Snippet *snippet = printer->device ? find_in(snippet_device, name, form_of(variant)) : NULL;

    if (!snippet)
        snippet = helper_snippet(name, variant);
    if (!snippet) { /* math.h has it */
        assert(helper_library(name, variant));
        return;
    }
    if (done_before(printer, snippet, variant))
        return;
    print_callees(printer, snippet, variant); /* these come first */
    helper_print_text(printer, str_from(snippet->text), variant);
}
