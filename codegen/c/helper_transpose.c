/* The helpers that transpose a square in registers.  Of floats: rows r, then interleaved in groups of four lanes (128
 * bits, numbered L): t[2i], t[2i + 1]   lanes of r[2i] and r[2i + 1] by turns, from the lower and upper half of each
 * group u[4g + c]          group L holds column 4L + c of rows 4g ... 4g + 3 and what is left is to exchange whole
 * groups between u[c], u[4 + c], u[8 + c] and u[12 + c]. Of other words: vectors of 16 bytes, whose lanes go by turns
 * with those of the row half a square on, as often as a square's edge has bits. */
#include "c/helper.h"

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

static void print_shuffle(HelperPrinter *printer, Shuffle shuffle)
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
static void print_exchange(HelperPrinter *printer, char to, unsigned low, unsigned high, Shuffle shuffle, char from,
                           unsigned i, unsigned j)
{
    unsigned lanes = printer->lanes;
    text_printf(printer->out, "    const f32x%u %c%u = %s_f32x%u(%c%u, %c%u), %c%u = %s_f32x%u(%c%u, %c%u);\n", lanes,
                to, low, shuffle_text[shuffle].name, lanes, from, i, from, j, to, high, shuffle_text[shuffle + 1].name,
                lanes, from, i, from, j);
}

static void print_rows(HelperPrinter *printer)
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
    for (unsigned i = 0; lanes > 4 && i < lanes; i += 8)
        for (unsigned c = i; c < i + 4; c++)
            print_exchange(printer, 'v', c, c + 4, EVEN128, 'u', c, c + 4);
    if (lanes == 16)
        for (unsigned c = 0; c < 8; c++)
            print_exchange(printer, 'w', c, c + 8, EVEN128, 'v', c, c + 8);
    for (unsigned i = 0; i < lanes; i++)
        text_printf(printer->out, "    store_f32x%u(to + %u * to_stride, %c%u);\n", lanes, i,
                    lanes == 16  ? 'w'
                    : lanes == 8 ? 'v'
                                 : 'u',
                    i);
}

void helper_print_transpose(HelperPrinter *printer)
{
    for (unsigned i = 0; i < (printer->lanes == 4 ? EVEN128 : SHUFFLE_COUNT); i++)
        print_shuffle(printer, (Shuffle)i);
    helper_print_snippet(printer, STR("load"), VARIANT_VECTOR);
    helper_print_snippet(printer, STR("store"), VARIANT_VECTOR);
    text_printf(printer->out,
                "/* to[j * to_stride + i] = from[i * stride + j] for i, j < %u */\n"
                "static inline void transpose_f32x%u(const float *from, ptrdiff_t stride, float *to, "
                "ptrdiff_t to_stride)\n{\n",
                printer->lanes, printer->lanes);
    print_rows(printer);
    text_str(printer->out, STR("}\n\n"));
}

/* The lanes of two vectors by turns, from lane `first` of each on. */
static void print_turns(HelperPrinter *printer, const char *word, unsigned edge, unsigned first)
{
    text_printf(printer->out, "            t[2 * i%s] = NNC_SHUFFLE_AS(row_%s, r[i], r[i + %u]", first ? " + 1" : "",
                word, edge / 2);
    for (unsigned lane = first; lane < first + edge / 2; lane++)
        text_printf(printer->out, ", %u, %u", lane, lane + edge);
    text_str(printer->out, STR(");\n"));
}

void helper_print_transpose_words(HelperPrinter *printer, DType word)
{
    unsigned edge = 16 / dtype_bytes(word), rounds = edge == 16 ? 4 : edge == 8 ? 3 : 1;
    const char *name = dtype_name(word), *type = prelude_c_type(word);
    text_printf(printer->out,
                "typedef %s row_%s __attribute__((vector_size(16)));\n\n"
                "/* to[j * to_stride + i] = from[i * stride + j] for i, j < %u, of elements of the size */\n"
                "static inline void transpose_%s(const void *from, ptrdiff_t stride, void *to, ptrdiff_t to_stride)\n"
                "{\n"
                "    row_%s r[%u], t[%u];\n"
                "    NNC_UNROLLED for (int i = 0; i < %u; i++) {\n"
                "        memcpy(&r[i], (const %s *)from + i * stride, sizeof r[i]);\n"
                "    }\n"
                "    NNC_UNROLLED for (int round = 0; round < %u; round++) {\n"
                "        NNC_UNROLLED for (int i = 0; i < %u; i++) {\n",
                type, name, edge, name, name, edge, edge, edge, type, rounds, edge / 2);
    print_turns(printer, name, edge, 0);
    print_turns(printer, name, edge, edge / 2);
    text_printf(printer->out,
                "        }\n"
                "        memcpy(r, t, sizeof r);\n"
                "    }\n"
                "    NNC_UNROLLED for (int i = 0; i < %u; i++) {\n"
                "        memcpy((%s *)to + i * to_stride, &r[i], sizeof r[i]);\n"
                "    }\n"
                "}\n\n",
                edge, type);
}
