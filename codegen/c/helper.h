/* How helpers are printed, each after those it calls: from a text (prelude.c), or by code of their own. */
#ifndef NNC_C_HELPER_H
#define NNC_C_HELPER_H

#include "c/prelude.h"
#include "c/snippet.h"

/* The form of a helper at hand: a scalar of some DType, or one of these. */
enum { VARIANT_VECTOR = DT_COUNT, VARIANT_PLAIN, VARIANT_LANES };

typedef struct HelperPrinter {
    Text *out;
    unsigned lanes;
    struct {
        const Snippet *snippet;
        unsigned variant, lanes; /* of vectors */
    } done[384];
    unsigned done_count;
    bool converted[DT_COUNT][DT_COUNT];
    bool shuffles; /* NNC_SHUFFLE is used */
    bool device;   /* the functions are CUDA's */
} HelperPrinter;

/* Is it a 16-bit float, kept as uint16_t? */
bool helper_is_half(DType dtype);

const char *helper_name(Helper which);

/* The function of math.h that serves a scalar without a text of ours, less the f of its f32 form; else NULL. */
const char *helper_library(Str name, unsigned variant);

/* The text of the helper `name` in a form; NULL when it has none of ours. */
const Snippet *helper_snippet(Str name, unsigned variant);

/* Prints it unless it has been: those it calls come first. */
void helper_print_snippet(HelperPrinter *printer, Str name, unsigned variant);
/* A text, all callees of which have been printed. */
void helper_print_text(HelperPrinter *printer, Str text, unsigned variant);
/* The functions of lanes of strict C99 that are needed, in both forms. */
void helper_print_lanes(HelperPrinter *printer, const uint32_t *needed);
void helper_print_convert(HelperPrinter *printer, DType from, DType to);
void helper_print_transpose(HelperPrinter *printer);
void helper_print_transpose_words(HelperPrinter *printer, DType word); /* of u8, u16 or u64 */

#endif
