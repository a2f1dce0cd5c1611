/* The plan as a table of tensors, its totals and its blame. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "plan/report.h"

static void put_left(Text *out, Str s, int width)
{
    text_str(out, s);
    int columns = plan_columns(s);
    text_fill(out, ' ', columns < width ? (size_t)(width - columns) : 0);
}

/* A column is as wide as its widest entry; text that is longer than MOST stands alone on its line. */
#define MOST       60
#define REUSES     6  /* columns of the last head */
#define LEAST_ROOM 14 /* for names, types and it: numbers are never cut */
#define PROSE      80 /* columns of text where nothing says how many there are: rows are whole there */

typedef struct Widths {
    int name, type, bytes, offset, first, last;
    int columns, reuses; /* of a line, or 0: as many as it takes; what is left of it for the last entry */
} Widths;

static void widen(int *width, int columns)
{
    if (columns > *width && columns <= MOST)
        *width = columns;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Into a line of so many columns, less those of the regions: the type takes a third of what the numbers leave, at most,
 * the names share the rest.  False where there is no room for them. */
static bool fit(Widths *w, int columns, int regions)
{
    int room = columns - regions - (w->bytes + w->offset + w->first + w->last + 12);
    w->columns = columns;
    if (room < LEAST_ROOM)
        return false;
    w->type = smaller(w->type, room / 3);
    w->name = smaller(w->name, smaller((room - w->type) * 3 / 5, room - w->type - REUSES));
    w->reuses = room - w->type - w->name;
    return true;
}

static Widths widths_of(const PlanReport *r)
{
    char a[32];
    Widths w = {.name = 4, .type = 4, .bytes = 5, .offset = 6, .first = 5, .last = 4};
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        widen(&w.name, plan_columns(row->name));
        widen(&w.type, plan_columns(row->type));
        widen(&w.bytes, (int)strlen(plan_digits(a, row->bytes)));
        widen(&w.offset, (int)strlen(plan_digits(a, row->offset)));
        widen(&w.first, snprintf(a, sizeof a, "%" PRId64, row->first));
        widen(&w.last, snprintf(a, sizeof a, "%" PRId64, row->last - 1));
    }
    return w;
}

#define BLAMED 8 /* rows of the blame that are shown */

static void put_hint(Text *out, const PlanReport *r, int columns)
{
    Text hint = {0};
    text_printf(&hint, "hint         " STR_FMT "\n", STR_ARG(r->hint));
    if (r->hint.len)
        plan_put_folded(out, text_view(&hint), columns ? columns : PROSE, columns);
    text_free(&hint);
}

static void print_blame(Text *out, const PlanReport *r, int columns)
{
    char a[32];
    int64_t rest = 0;
    text_printf(out, "\nfullest step %15" PRId64, r->peak_step);
    if (r->step && r->peak_step >= 0 && r->peak_step < r->step_count)
        text_printf(out, "  " STR_FMT, STR_ARG(r->step[r->peak_step]));
    text_printf(out, ", %s B live\n", plan_digits(a, r->peak_live));
    for (uint32_t k = 0; k < r->blame_count; k++) {
        const PlanRow *row = &r->row[r->blame[k]];
        if (k < BLAMED)
            text_printf(out, "%28s B  " STR_FMT ", steps %" PRId64 " to %" PRId64 "\n", plan_digits(a, row->bytes),
                        STR_ARG(row->name), row->first, row->last - 1);
        else
            rest += row->bytes;
    }
    if (r->blame_count > BLAMED)
        text_printf(out, "%28s B  in %u more\n", plan_digits(a, rest), r->blame_count - BLAMED);
    put_hint(out, r, columns);
}

static void put_carried(Text *out, const PlanCarried *c)
{
    text_printf(out, "%18s" STR_FMT, "", STR_ARG(c->name.len ? c->name : STR("(no name)")));
    if (c->places > 1) {
        text_printf(out, " takes %u places", c->places);
        if (c->outside)
            text_printf(out, ", %u of them in outputs or states", c->outside);
        text_printf(out, ": " STR_FMT " is made while " STR_FMT " is read", STR_ARG(c->maker), STR_ARG(c->conflict));
    } else
        text_printf(out, "%s",
                    c->in_output ? " is made where it was, in the array of an output"
                    : c->places  ? " is made where it was"
                                 : " is passed on");
    text_printf(out, "%s\n", c->elsewhere ? "; first it may be elsewhere" : "");
}

/* Loops as brackets of steps. */
static void print_loops(Text *out, const PlanReport *r)
{
    char a[32];
    for (uint32_t i = 0; i < r->loop_count; i++) {
        const PlanLoop *loop = &r->loop[i];
        text_printf(out, "%s steps %" PRId64 " to %" PRId64, i ? "            " : "loops       ", loop->first,
                    loop->last - 1);
        if (loop->rounds)
            text_printf(out, ", %s%" PRId64 " rounds", loop->counted ? "" : "at most ", loop->rounds);
        text_printf(out, ", %s B copied in each round\n", plan_digits(a, loop->copied));
        for (uint32_t k = 0; k < loop->carried_count; k++)
            put_carried(out, &loop->carried[k]);
    }
}

static void print_recomputed(Text *out, const PlanRecomputed *r)
{
    char a[32], b[32];
    if (!r->operations)
        return;
    text_printf(out, "\nrecomputed   %15s B  %10s  before; operations", plan_digits(a, r->peak_before),
                plan_bytes(b, r->peak_before));
    text_printf(out, " %s, now %s", plan_digits(a, r->operations_before), plan_digits(b, r->operations));
    if (r->operations_before)
        text_printf(out, " (+%.1f %%)", 100.0 * (double)r->operations / (double)r->operations_before - 100.0);
}

static void print_totals(Text *out, const PlanReport *r, int columns)
{
    char a[32], b[32];
    text_printf(out, "\npeak         %15s B  %10s  %s\n", plan_digits(a, r->peak), plan_bytes(b, r->peak),
                r->proven ? "proven minimal" : "not proven minimal");
    text_printf(out, "lower bound  %15s B  %10s", plan_digits(a, r->lower_bound), plan_bytes(b, r->lower_bound));
    if (r->peak > r->lower_bound)
        text_printf(out, "  gap %s B (%.2f %%)", plan_digits(a, r->peak - r->lower_bound),
                    100.0 * (double)(r->peak - r->lower_bound) / (double)r->lower_bound);
    text_printf(out, "\nnaive sum    %15s B  %10s", plan_digits(a, r->naive), plan_bytes(b, r->naive));
    if (r->peak > 0)
        text_printf(out, "  %.1f times the peak, %s tensor%s", (double)r->naive / (double)r->peak,
                    plan_digits(a, plan_stored(r)), plan_stored(r) == 1 ? "" : "s");
    print_recomputed(out, &r->recomputed);
    text_printf(out, "\nallocator    %s", r->allocator);
    if (r->nodes)
        text_printf(out, ", %s search nodes", plan_digits(a, (int64_t)r->nodes));
    for (uint32_t i = 0; i < r->saving_count; i++) {
        text_printf(out, "\n%s ", i ? "            " : "saved       ");
        text_printf(out, "%15s B  by " STR_FMT, plan_digits(a, r->saving[i].bytes), STR_ARG(r->saving[i].what));
    }
    print_blame(out, r, columns);
    print_loops(out, r);
}

/* Text and the gap behind it; what is too long for its column is elided, or goes on below. */
static void put_column(Text *out, Str s, int width, int indent, bool elide)
{
    if (elide)
        plan_put_elided(out, s, width);
    else
        put_left(out, s, width);
    if (!elide && plan_columns(s) > width) {
        text_char(out, '\n');
        text_fill(out, ' ', (size_t)(indent + width));
    }
    text_printf(out, "  ");
}

/* Whose memory it is, or was: behind `label`, in so many columns. */
static void put_reuses(Text *out, const PlanReport *r, const PlanRow *row, const char *label, int columns)
{
    Text reuses = {0};
    if (row->alias_of != PLAN_NO_ROW)
        text_printf(&reuses, "%s " STR_FMT, row->bytes == r->row[row->alias_of].bytes ? "=" : "in",
                    STR_ARG(r->row[row->alias_of].name));
    else if (row->reuses != PLAN_NO_ROW)
        text_printf(&reuses, STR_FMT "%s", STR_ARG(r->row[row->reuses].name),
                    r->row[row->reuses].last > row->first ? " (in place)" : "");
    if (reuses.len) {
        int width = plan_columns(text_view(&reuses));
        text_printf(out, "%s", label);
        plan_put_elided(out, text_view(&reuses), smaller(width, columns));
    }
    text_free(&reuses);
}

/* In a narrow line: the name and the type, and below them what is a table elsewhere. */
static void put_block(Text *out, const PlanReport *r, const PlanRow *row, const Widths *w)
{
    static const char *const label[] = {"bytes", "offset", "first", "last", "region"};
    static const char reuses[] = "  reuses ";
    char digits[5][32];
    Str value[5] = {str_from(plan_digits(digits[0], row->bytes)), str_from(plan_digits(digits[1], row->offset))};
    int name = plan_columns(row->name), type = smaller(plan_columns(row->type), w->columns / 2);
    snprintf(digits[2], sizeof digits[2], "%" PRId64, row->first);
    snprintf(digits[3], sizeof digits[3], "%" PRId64, row->last - 1);
    snprintf(digits[4], sizeof digits[4], "%u", row->region);
    for (int i = 2; i < 5; i++)
        value[i] = str_from(digits[i]);
    plan_put_elided(out, row->name, smaller(name, w->columns - type - 2));
    text_printf(out, type ? "  " : "");
    plan_put_elided(out, row->type, type);
    text_char(out, '\n');
    plan_put_pairs(out, label, value, r->region_count > 1 ? 5 : 4, w->bytes > w->offset ? w->bytes : w->offset,
                   w->columns);
    size_t start = out->len;
    put_reuses(out, r, row, reuses, w->columns - (int)strlen(reuses));
    if (out->len > start)
        text_char(out, '\n');
}

static void print_row(Text *out, const PlanReport *r, const PlanRow *row, const Widths *w)
{
    char a[32], b[32];
    put_column(out, row->name, w->name, 0, w->columns);
    put_column(out, row->type, w->type, w->name + 2, w->columns);
    text_printf(out, "%*s  %*s  %*" PRId64 "  %*" PRId64, w->bytes, plan_digits(a, row->bytes), w->offset,
                plan_digits(b, row->offset), w->first, row->first, w->last, row->last - 1);
    if (r->region_count > 1)
        text_printf(out, "  %6u", row->region);
    put_reuses(out, r, row, "  ", w->columns ? w->reuses : INT_MAX);
    text_char(out, '\n');
}

static void put_head(Text *out, const PlanReport *r, const Widths *w)
{
    put_column(out, STR("name"), w->name, 0, w->columns);
    put_column(out, STR("type"), w->type, 0, w->columns);
    text_printf(out, "%*s  %*s  %*s  %*s", w->bytes, "bytes", w->offset, "offset", w->first, "first", w->last, "last");
    text_printf(out, r->region_count > 1 ? "  region  reuses\n" : "  reuses\n");
}

static void print_table(Text *out, const PlanReport *r, uint32_t columns)
{
    Widths w = widths_of(r);
    bool table = !columns || fit(&w, (int)columns, r->region_count > 1 ? 8 : 0);
    if (table)
        put_head(out, r, &w);
    Arena scratch = {0};
    const SortKey *order = plan_rows_by_start(&scratch, r);
    for (uint32_t i = 0; i < r->count; i++)
        (table ? print_row : put_block)(out, r, &r->row[order[i].index], &w);
    arena_free(&scratch);
    Text totals = {0};
    print_totals(&totals, r, (int)columns);
    plan_put_folded(out, text_view(&totals), columns ? (int)columns : INT_MAX, columns);
    text_free(&totals);
}

/* Names may be a stranger's, and this goes to a terminal. */
void plan_print_table(Text *out, const PlanReport *r, uint32_t columns)
{
    Text lines = {0};
    print_table(&lines, r, columns);
    plan_put_printable(out, &lines);
}
