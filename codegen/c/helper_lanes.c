/* The functions of lanes of strict C99, in both forms: those of the vector, and of the structure (lanes.c). */
#include "c/helper.h"

#include <assert.h>

/* The functions of one or two numbers, by their scalar forms. */
static const char one_text[] = "NNC_INLINE F %$(F a)\n{\n    const F y = {EACH(%@(a.e#))};\n    return y;\n}\n",
                  two_text[] =
                      "NNC_INLINE F %$(F a, F b)\n{\n    const F y = {EACH(%@(a.e#, b.e#))};\n    return y;\n}\n";

static bool takes_two(Helper helper)
{
    return helper == HELPER_MAX || helper == HELPER_MIN || helper == HELPER_POW || helper == HELPER_FMOD ||
           helper == HELPER_MOD;
}

static bool serves_both(Helper helper)
{
    return helper == HELPER_UNIT || helper == HELPER_GAUSS;
}

static const Snippet *snippet_of(Helper helper)
{
    return helper_snippet(str_from(helper_name(helper)), VARIANT_LANES);
}

static void print_by_element(HelperPrinter *printer, Helper helper)
{
    Text text = {0};
    helper_print_snippet(printer, str_from(helper_name(helper)), DT_F32);
    for (const char *p = takes_two(helper) ? two_text : one_text; *p; p++)
        *p == '%' ? text_str(&text, str_from(helper_name(helper))) : text_char(&text, *p);
    helper_print_text(printer, text_view(&text), VARIANT_LANES);
    text_free(&text);
}

static void print_structure(HelperPrinter *printer, Helper helper)
{
    static const struct {
        Helper helper;
        DType dtype;
        bool from, to; /* f32 */
    } converts[] = {{HELPER_LOAD_F16, DT_F16, false, true},  {HELPER_LOAD_BF16, DT_BF16, false, true},
                    {HELPER_PART_F16, DT_F16, false, true},  {HELPER_PART_BF16, DT_BF16, false, true},
                    {HELPER_ROUND_F16, DT_F16, true, true},  {HELPER_ROUND_BF16, DT_BF16, true, true},
                    {HELPER_STORE_F16, DT_F16, true, false}, {HELPER_STORE_BF16, DT_BF16, true, false},
                    {HELPER_CUT_I8, DT_I8, true, false},     {HELPER_CUT_U8, DT_U8, true, false},
                    {HELPER_CUT_I16, DT_I16, true, false},   {HELPER_CUT_U16, DT_U16, true, false},
                    {HELPER_STORE_I8, DT_I8, true, false},   {HELPER_STORE_U8, DT_U8, true, false},
                    {HELPER_STORE_I16, DT_I16, true, false}, {HELPER_STORE_U16, DT_U16, true, false},
                    {HELPER_STORE_I32, DT_I32, true, false}, {HELPER_STORE_I64, DT_I32, true, false}};
    for (size_t i = 0; i < sizeof converts / sizeof *converts; i++) {
        if (helper == converts[i].helper && converts[i].to)
            helper_print_convert(printer, converts[i].dtype, DT_F32);
        if (helper == converts[i].helper && converts[i].from)
            helper_print_convert(printer, DT_F32, converts[i].dtype);
    }
    if (snippet_of(helper))
        helper_print_snippet(printer, str_from(helper_name(helper)), VARIANT_LANES);
    else
        print_by_element(printer, helper);
}

/* What has been printed before serves both forms; what one of them calls besides stands in it alone. */
void helper_print_lanes(HelperPrinter *printer, const uint32_t *needed)
{
    assert(printer->lanes == 4);
    for (Helper h = 0; h < HELPER_COUNT; h++)
        if (needed[h] && serves_both(h))
            print_structure(printer, h);
    unsigned common = printer->done_count;
    text_str(printer->out, STR("#ifdef NNC_VECTORS\n\n"));
    for (Helper h = 0; h < HELPER_COUNT; h++)
        if (needed[h] && !serves_both(h))
            helper_print_snippet(printer, str_from(helper_name(h)), VARIANT_VECTOR);
    printer->done_count = common;
    text_str(printer->out, STR("#else\n\n"));
    for (Helper h = 0; h < HELPER_COUNT; h++)
        if (needed[h] && !serves_both(h))
            print_structure(printer, h);
    text_str(printer->out, STR("#endif\n\n"));
}
