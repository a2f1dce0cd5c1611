/* The roofline as a table, and as JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/roofline.h"
#include "cli/terminal.h"
#include "plan/report.h"

#define NUMBERS    65 /* columns of a row before its words */
#define RECIPE     10
#define LEAST_NAME 8

/* The numbers of a row, as text. */
typedef struct Cells {
    char second[32], share[32], rate[32], bytes[32], intensity[32], roof[32];
} Cells;

static Cells cells_of(const RoofRow *row)
{
    Cells c;
    roofline_seconds(c.second, row->second);
    snprintf(c.share, sizeof c.share, "%.1f", row->share * 100);
    roofline_amount(c.rate, row->second > 0 ? row->flops / row->second : 0);
    plan_bytes(c.bytes, (int64_t)row->bytes);
    snprintf(c.intensity, sizeof c.intensity, row->bytes > 0 ? "%.2f" : "-", row->flops / row->bytes);
    snprintf(c.roof, sizeof c.roof, "%.1f", row->roof * 100);
    return c;
}

/* Has a line room for recipes beside the names of kernels? */
static bool shows_recipes(void)
{
    uint32_t width = terminal_known_width();
    return !width || width >= NUMBERS + RECIPE + 2 * LEAST_NAME;
}

static void put_name(Text *out, Str name)
{
    int width = (int)terminal_known_width(), columns = plan_columns(name);
    int room = width - NUMBERS - (shows_recipes() ? RECIPE : 0);
    room = room < LEAST_NAME ? LEAST_NAME : room;
    plan_put_elided(out, name, width && room < columns ? room : columns);
}

static void print_row(Text *out, const RoofRow *row)
{
    Cells c = cells_of(row);
    text_printf(out, "%6u %8s %5s %8s %9s %7s %5s %-8s ", row->number, c.second, c.share, c.rate, c.bytes, c.intensity,
                c.roof, roofline_bound(row));
    if (shows_recipes())
        text_printf(out, "%-9s ", row->kernel->recipe.provider->name);
    put_name(out, row->kernel->name);
    text_char(out, '\n');
}

/* The kernel, and below it its numbers. */
static void print_block(Text *out, const RoofRow *row)
{
    static const char *const label[] = {"time", "% of it", "FLOP/s", "bytes", "flop/B", "% of roof", "bound by"};
    Cells c = cells_of(row);
    const Str value[] = {str_from(c.second),
                         str_from(c.share),
                         str_from(c.rate),
                         str_from(c.bytes),
                         str_from(c.intensity),
                         str_from(c.roof),
                         str_from(roofline_bound(row))};
    Str name = row->kernel->name;
    int columns = (int)terminal_known_width();
    text_printf(out, "%-4u", row->number);
    plan_put_elided(out, name, plan_columns(name) < columns - 4 ? plan_columns(name) : columns - 4);
    text_char(out, '\n');
    plan_put_pairs(out, label, value, 7, 9, columns);
}

/* What was measured of the machine, and what it counted. */
static void put_machine(Text *out, const Roofline *r)
{
    char a[32], b[32];
    text_printf(out, "roofs: %sFLOP/s", roofline_amount(a, r->peak));
    for (uint32_t i = 0; i < r->levels->count; i++) {
        const Level *level = &r->levels->level[i];
        text_printf(out, ", %s %sB/s", level->name, roofline_amount(a, level->bytes_second));
        if (level->bytes != INT64_MAX)
            text_printf(out, " (%s)", plan_bytes(b, level->bytes));
    }
    if (r->levels->run.bytes)
        text_printf(out, ", weights %sB/s (%s with the arena)", roofline_amount(a, r->levels->run.bytes_second),
                    plan_bytes(b, r->levels->run.bytes));
    text_char(out, '\n');
}

static void put_counts(Text *out, const Roofline *r)
{
    char a[32], b[32];
    double sum[COUNTS] = {0};
    if (r->uncounted) {
        text_printf(out, "nothing is counted: %s\n", r->uncounted);
        return;
    }
    for (uint32_t i = 0; i < r->count; i++)
        for (int c = 0; c < COUNTS; c++)
            sum[c] += (double)r->row[i].counted->of[c];
    text_printf(out, "counted: %s cycles, %.2f instructions in each, %s misses of the last cache\n",
                roofline_amount(a, sum[COUNT_CYCLES]),
                sum[COUNT_CYCLES] > 0 ? sum[COUNT_INSTRUCTIONS] / sum[COUNT_CYCLES] : 0,
                roofline_amount(b, sum[COUNT_MISSES]));
}

void roofline_print_table(Text *out, const Roofline *r)
{
    Text words = {0};
    char all[32];
    uint32_t columns = terminal_known_width();
    bool table = !columns || columns >= NUMBERS + LEAST_NAME;
    text_printf(&words, STR_FMT " for %s, one core, %u run%s, the peak is %.1f GFLOP/s\n", STR_ARG(r->model), r->target,
                r->runs, r->runs == 1 ? "" : "s", r->peak * 1e-9);
    put_machine(&words, r);
    terminal_fold(out, text_view(&words));
    if (table)
        text_printf(out, "%6s %8s %5s %8s %9s %7s %5s %-8s %s%s\n", "kernel", "time", "%", "FLOP/s", "bytes", "flop/B",
                    "roof%", "bound by", shows_recipes() ? "recipe    " : "", "what");
    for (uint32_t i = 0; i < r->count; i++)
        (table ? print_row : print_block)(out, &r->row[i]);
    text_printf(out, table ? "%6s %8s\n" : "%s\n  time %s\n", "all", roofline_seconds(all, r->second));
    words.len = 0;
    put_counts(&words, r);
    terminal_fold(out, text_view(&words));
    text_free(&words);
}

static void put_json_row(Text *out, const RoofRow *row)
{
    text_printf(out, "{\"kernel\": %u, \"name\": \"" STR_FMT "\", \"recipe\": \"%s\", \"median_s\": %.9g, ",
                row->number, STR_ARG(row->kernel->name), row->kernel->recipe.provider->name, row->second);
    text_printf(out,
                "\"calls\": %" PRId64 ", \"flop\": %.0f, \"work\": %.0f, \"bytes_moved\": %.0f, \"weights\": %.0f, ",
                row->calls, row->flops, row->work, row->bytes, row->weights);
    text_printf(out, "\"level\": \"%s\", \"share_of_roof\": %.4f, \"bound_by\": \"%s\"", row->level->name, row->roof,
                roofline_bound(row));
    if (row->bytes > 0)
        text_printf(out, ", \"flop_per_byte\": %.6g", row->flops / row->bytes);
    if (row->counted)
        text_printf(out, ", \"cycles\": %" PRId64 ", \"instructions\": %" PRId64 ", \"last_cache_misses\": %" PRId64,
                    row->counted->of[COUNT_CYCLES], row->counted->of[COUNT_INSTRUCTIONS],
                    row->counted->of[COUNT_MISSES]);
    text_char(out, '}');
}

void roofline_print_json(Text *out, const Roofline *r)
{
    text_printf(out, "{\"model\": \"" STR_FMT "\", \"target\": \"%s\", \"runs\": %u, \"peak_flop_per_s\": %.6g, ",
                STR_ARG(r->model), r->target, r->runs, r->peak);
    text_printf(out, "\"median_s\": %.9g, \"levels\": [", r->second);
    for (uint32_t i = 0; i < r->levels->count; i++) {
        const Level *level = &r->levels->level[i];
        text_printf(out, "%s{\"name\": \"%s\", ", i ? ", " : "", level->name);
        if (level->bytes != INT64_MAX)
            text_printf(out, "\"bytes\": %" PRId64 ", ", level->bytes);
        text_printf(out, "\"bytes_per_s\": %.6g}", level->bytes_second);
    }
    text_printf(out, "], \"weights_from\": {\"name\": \"%s\", \"bytes\": %" PRId64 ", \"bytes_per_s\": %.6g}",
                r->levels->run.name, r->levels->run.bytes, r->levels->run.bytes_second);
    text_printf(out, ", \"uncounted\": ");
    if (r->uncounted)
        plan_json_string(out, str_from(r->uncounted));
    else
        text_printf(out, "null");
    text_printf(out, ", \"kernels\": [");
    for (uint32_t i = 0; i < r->count; i++) {
        text_printf(out, "%s\n  ", i ? "," : "");
        put_json_row(out, &r->row[i]);
    }
    text_printf(out, "]}\n");
}
