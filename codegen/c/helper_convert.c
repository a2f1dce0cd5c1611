/* Helpers that convert, where a plain cast of C will not do.  A 16-bit float goes through f32. */
#include "c/helper.h"

static void open_convert(HelperPrinter *printer, DType from, DType to)
{
    text_printf(printer->out, "static inline %s to_%s_from_%s(%s x)\n{\n", prelude_c_type(to), dtype_name(to),
                dtype_name(from), prelude_c_type(from));
}

static void print_to_half(HelperPrinter *printer, DType from, DType to)
{
    bool wide = from == DT_F64 || from == DT_I64 || from == DT_I32 || from == DT_U64 ||
                from == DT_U32; /* more than f32 holds */
    const char *name = dtype_name(to);

    if (helper_is_half(from))
        helper_print_convert(printer, from, DT_F32);
    helper_print_convert(printer, DT_F32, to);
    if (wide)
        helper_print_snippet(printer, STR("odd_f32_from_f64"), VARIANT_PLAIN);
    open_convert(printer, from, to);
    if (helper_is_half(from))
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
    [DT_U64] = {"0", "UINT64_MAX", "0.0", "18446744073709551616.0"},
    [DT_U32] = {"0", "UINT32_MAX", "0.0", "4294967296.0"},
    [DT_U16] = {"0", "UINT16_MAX", "0.0", "65536.0"},
    [DT_U8] = {"0", "UINT8_MAX", "0.0", "256.0"},
};

static void print_to_int(HelperPrinter *printer, DType from, DType to)
{
    const char *f = from == DT_F32 ? "f" : "";

    if (helper_is_half(from)) {
        helper_print_convert(printer, from, DT_F32);
        helper_print_convert(printer, DT_F32, to);
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

void helper_print_convert(HelperPrinter *printer, DType from, DType to)
{
    if (printer->converted[from][to])
        return;
    printer->converted[from][to] = true;
    Text name = {0};
    text_printf(&name, "to_%s_from_%s", dtype_name(to), dtype_name(from));
    if (helper_snippet(text_view(&name), VARIANT_PLAIN))
        helper_print_snippet(printer, text_view(&name), VARIANT_PLAIN);
    else if (to == DT_BOOL) {
        open_convert(printer, from, to);
        text_printf(printer->out, "    return %s != 0;\n}\n\n", helper_is_half(from) ? "(x & 0x7FFF)" : "x");
    } else if (helper_is_half(to))
        print_to_half(printer, from, to);
    else if (dtype_is_int(to))
        print_to_int(printer, from, to);
    else { /* f64 from a 16-bit float */
        helper_print_convert(printer, from, DT_F32);
        open_convert(printer, from, to);
        text_printf(printer->out, "    return (double)to_f32_from_%s(x);\n}\n\n", dtype_name(from));
    }
    text_free(&name);
}
