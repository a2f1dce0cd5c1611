/* The roofline as one page for the browser, with nothing to load from elsewhere: the drawing, and below it the table.
 */
#include "cli/roofline.h"
#include "kernel/kernel.h"
#include "plan/report.h"

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<style>\n"
    "body{margin:0 auto;max-width:1080px;padding:16px;background:#faf9f6;color:#1d1c1a;"
    "font:14px/1.45 ui-sans-serif,system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}\n"
    "svg{width:100%;height:auto}div{overflow-x:auto}table{border-collapse:collapse;width:100%}\n"
    "th,td{padding:3px 10px;text-align:right;border-bottom:1px solid #e6e2d9;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}\n"
    "th{font-weight:600;color:#6c6860;position:sticky;top:0;background:#faf9f6}.word{text-align:left}p{color:#6c6860}\n"
    "@media(prefers-color-scheme:dark){body,th{background:#151619}body{color:#e9e6df}th,p{color:#98948c}"
    "th,td{border-color:#2d2e34}}\n</style>\n<title>";

static const char *const column[] = {"kernel",   "time",   "%",    "FLOP/s", "bytes",        "flop/B", "% of roof",
                                     "bound by", "recipe", "what", "cycles", "instructions", "misses"};

static uint32_t columns_of(const Roofline *r)
{
    return sizeof column / sizeof *column - (r->uncounted ? COUNTS : 0);
}

static bool is_word(uint32_t c)
{
    return c >= 7 && c < 10;
}

static void put_cell(Text *out, bool word, const char *text)
{
    text_printf(out, "<td%s>", word ? " class=\"word\"" : "");
    plan_escape_xml(out, str_from(text));
    text_printf(out, "</td>");
}

static void put_number(Text *out, const char *format, double number)
{
    Text text = {0};
    text_printf(&text, format, number);
    put_cell(out, false, text.ptr);
    text_free(&text);
}

static void put_row(Text *out, const RoofRow *row)
{
    char a[32];
    text_printf(out, "<tr><td>%u</td>", row->number);
    put_cell(out, false, roofline_seconds(a, row->second));
    put_number(out, "%.1f", row->share * 100);
    put_cell(out, false, roofline_amount(a, row->second > 0 ? row->flops / row->second : 0));
    put_cell(out, false, plan_bytes(a, (int64_t)row->bytes));
    if (row->bytes > 0)
        put_number(out, "%.2f", row->flops / row->bytes);
    else
        put_cell(out, false, "-");
    put_number(out, "%.1f", row->roof * 100);
    put_cell(out, true, roofline_bound(row));
    put_cell(out, true, row->kernel->recipe.provider->name);
    text_printf(out, "<td class=\"word\">");
    plan_escape_xml(out, row->kernel->name);
    text_printf(out, "</td>");
    for (int i = 0; row->counted && i < COUNTS; i++)
        put_cell(out, false, roofline_amount(a, (double)row->counted->of[i]));
    text_printf(out, "</tr>\n");
}

void roofline_print_html(Text *out, const Roofline *r)
{
    text_str(out, str_from(head));
    plan_escape_xml(out, r->model);
    text_printf(out, " for %s</title>\n</head>\n<body>\n", r->target);
    roofline_print_svg(out, r);
    text_printf(out, "<div><table>\n<tr>");
    for (uint32_t c = 0; c < columns_of(r); c++)
        text_printf(out, "<th%s>%s</th>", is_word(c) ? " class=\"word\"" : "", column[c]);
    text_printf(out, "</tr>\n");
    for (uint32_t i = 0; i < r->count; i++)
        put_row(out, &r->row[i]);
    text_printf(out, "</table></div>\n<p>Medians of %u runs on one core.", r->runs);
    if (r->uncounted) {
        text_printf(out, " Nothing is counted: ");
        plan_escape_xml(out, str_from(r->uncounted));
        text_char(out, '.');
    }
    text_printf(out, "</p>\n</body>\n</html>\n");
}
