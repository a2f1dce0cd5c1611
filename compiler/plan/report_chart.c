/* The plan as a picture in text: time to the right, addresses upward, one shade per tensor, so that neighbours differ.
 *
 *      24.5 KiB ┤░░░░░░░░░░▒▒▒▒▒▒▒▒▒
 *               ┤░░ conv1 ░▒▒ pool ▒          the name where it fits, else a key that is explained below
 *             0 ┼────────────────────
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/report.h"
#include "plan/sort.h"

#define MOST_ROWS   26
#define MARGIN      13 /* columns left of the picture */
#define MOST_LEGEND 60 /* tensors explained below the picture */
#define EMPTY       UINT32_MAX
#define SHADES      4

typedef struct Chart {
    Arena scratch;
    const PlanReport *report;
    uint32_t region;
    int64_t top; /* the region's peak */
    uint32_t columns, rows;
    uint32_t *owner;  /* [rows][columns], row 0 at the bottom: the tensor that covers the most of the cell */
    int64_t *covered; /* and how many of its bytes */
    uint8_t *shade;   /* [report->count] */
    uint16_t *key;    /* [report->count] 1-based; 0: labelled in the picture, or absent from it */
    uint16_t keys;
    char (*letter)[8]; /* [rows][columns] what a label puts there instead of the shade, UTF-8 */
} Chart;

static bool drawn(const Chart *c, uint32_t row)
{
    const PlanRow *t = &c->report->row[row];
    return t->region == c->region && t->alias_of == PLAN_NO_ROW && t->bytes > 0;
}

/* The step in the middle of a column; products go through long double, since steps may be any numbers. */
static int64_t step_at(const Chart *c, uint32_t column)
{
    long double span = (long double)c->report->last_step - (long double)c->report->first_step;
    return c->report->first_step + (int64_t)(span * (column + 0.5L) / c->columns);
}

static int64_t address_at(const Chart *c, uint32_t row)
{
    return (int64_t)((long double)c->top * row / c->rows);
}

static uint32_t column_of(const Chart *c, int64_t step)
{
    uint32_t low = 0, high = c->columns;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (step_at(c, middle) >= step)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void paint(Chart *c, uint32_t index)
{
    const PlanRow *t = &c->report->row[index];
    uint32_t from = column_of(c, t->first), to = column_of(c, t->last);
    if (from == to && to < c->columns)
        to = from + 1; /* too short for a column's middle: still show it where nothing else is */
    uint32_t row = (uint32_t)((long double)t->offset * c->rows / (c->top ? c->top : 1));
    for (; row < c->rows && address_at(c, row) < t->offset + t->bytes; row++) {
        int64_t low = address_at(c, row), high = address_at(c, row + 1);
        low = low > t->offset ? low : t->offset;
        high = high < t->offset + t->bytes ? high : t->offset + t->bytes;
        for (uint32_t column = from; column < to; column++) {
            uint32_t cell = row * c->columns + column;
            if (high - low <= c->covered[cell])
                continue;
            c->covered[cell] = high - low;
            c->owner[cell] = index;
        }
    }
}

/* Gives each tensor in the picture the shade that its neighbours use least. */
static void choose_shades(Chart *c)
{
    uint32_t *contact = ARENA_ARRAY(&c->scratch, uint32_t, (size_t)c->report->count * SHADES);
    bool *chosen = ARENA_ARRAY(&c->scratch, bool, c->report->count);
    static const int dx[] = {1, -1, 0, 0}, dy[] = {0, 0, 1, -1};
    for (uint32_t cell = 0; cell < c->rows * c->columns; cell++) { /* bottom row first */
        uint32_t self = c->owner[cell];
        if (self == EMPTY || chosen[self])
            continue;
        chosen[self] = true;
        uint32_t *used = &contact[self * SHADES];
        for (uint32_t other = 0; other < c->rows * c->columns; other++)
            for (int d = 0; c->owner[other] == self && d < 4; d++) {
                uint32_t x = other % c->columns + (uint32_t)dx[d], y = other / c->columns + (uint32_t)dy[d];
                if (x >= c->columns || y >= c->rows)
                    continue;
                uint32_t neighbour = c->owner[y * c->columns + x];
                if (neighbour != EMPTY && neighbour != self && chosen[neighbour])
                    used[c->shade[neighbour]]++;
            }
        for (uint8_t s = 1; s < SHADES; s++)
            if (used[s] < used[c->shade[self]])
                c->shade[self] = s;
    }
}

/* Writes text into the picture, one code point per cell. */
static void write_label(Chart *c, uint32_t cell, Str text)
{
    for (uint32_t i = 0; i < text.len;) {
        uint32_t n = 1;
        while (i + n < text.len && n < 4 && ((unsigned char)text.ptr[i + n] & 0xc0) == 0x80)
            n++;
        memcpy(c->letter[cell], text.ptr + i, n);
        c->letter[cell++][n] = 0;
        i += n;
    }
}

static Str key_text(char *buffer, uint16_t key) /* a .. z, A .. Z, then aa, ab ... */
{
    static const char letter[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    uint32_t n = 0, k = key - 1u;
    if (k >= 52)
        buffer[n++] = letter[(k / 52 - 1) % 52];
    buffer[n++] = letter[k % 52];
    return (Str){buffer, n};
}

typedef struct Run {
    uint32_t cell, length;
} Run;

/* The best place for a tensor's label: the longest run of its cells, of equals the one nearest its middle. */
static void find_runs(Chart *c, Run *longest, uint32_t *first_row, uint32_t *last_row)
{
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t row = 0; row < c->rows; row++)
            for (uint32_t x = 0, end; x < c->columns; x = end) {
                uint32_t self = c->owner[row * c->columns + x];
                for (end = x + 1; end < c->columns && c->owner[row * c->columns + end] == self;)
                    end++;
                if (self == EMPTY)
                    continue;
                if (pass == 0) {
                    first_row[self] = first_row[self] > row ? row : first_row[self];
                    last_row[self] = row;
                    continue;
                }
                uint32_t middle = (first_row[self] + last_row[self] + 1) / 2;
                if (end - x > longest[self].length || (end - x == longest[self].length && row <= middle))
                    longest[self] = (Run){row * c->columns + x, end - x};
            }
}

static void label_one(Chart *c, uint32_t self, Run run)
{
    char buffer[4];
    Str name = c->report->row[self].name;
    uint32_t width = (uint32_t)plan_columns(name);
    if (!run.length || width == 0 || width > run.length) {
        c->key[self] = ++c->keys;
        name = key_text(buffer, c->key[self]);
        width = name.len;
    }
    if (width > run.length)
        return;
    uint32_t at = run.cell + (run.length - width) / 2;
    if (at > run.cell)
        write_label(c, at - 1, STR(" "));
    if (at + width < run.cell + run.length)
        write_label(c, at + width, STR(" "));
    write_label(c, at, name);
}

/* Labels tensors in order of their first step, so that keys rise with time. */
static void label(Chart *c)
{
    uint32_t count = c->report->count, n = 0;
    Run *longest = ARENA_ARRAY(&c->scratch, Run, count);
    uint32_t *first_row = ARENA_ARRAY(&c->scratch, uint32_t, count),
             *last_row = ARENA_ARRAY(&c->scratch, uint32_t, count);
    SortKey *order = ARENA_ARRAY(&c->scratch, SortKey, count);
    memset(first_row, 0xff, sizeof *first_row * count);
    find_runs(c, longest, first_row, last_row);
    for (uint32_t i = 0; i < count; i++)
        if (drawn(c, i))
            order[n++] = (SortKey){(uint64_t)c->report->row[i].first ^ UINT64_C(1) << 63, i};
    sort_ascending(&c->scratch, order, n);
    for (uint32_t k = 0; k < n && c->keys < 2000; k++)
        label_one(c, order[k].index, longest[order[k].index]);
}

static void put_picture(Text *out, const Chart *c)
{
    static const char *const shade[SHADES] = {"░", "▒", "▓", "█"};
    char bytes[16];
    for (uint32_t row = c->rows; row-- > 0;) {
        bool tick = row + 1 == c->rows || (row % 5 == 4 && row + 3 < c->rows);
        text_printf(out, "%*s %s", MARGIN - 2, tick ? plan_bytes(bytes, address_at(c, row + 1)) : "", tick ? "┤" : "│");
        for (uint32_t x = 0; x < c->columns; x++) {
            uint32_t cell = row * c->columns + x;
            text_printf(out, "%s",
                        c->letter[cell][0]        ? c->letter[cell]
                        : c->owner[cell] == EMPTY ? " "
                                                  : shade[c->shade[c->owner[cell]]]);
        }
        text_char(out, '\n');
    }
}

static void put_axis(Text *out, const Chart *c)
{
    const PlanReport *r = c->report;
    uint32_t peak = column_of(c, r->peak_step), used = 0;
    peak = peak < c->columns ? peak : c->columns - 1;
    text_printf(out, "%*s ┼", MARGIN - 2, "0");
    for (uint32_t x = 0; x < c->columns; x++)
        text_printf(out, x == peak ? "┴" : "─");
    text_printf(out, "\n%*s", MARGIN - 2, "step");
    for (uint32_t x = 0; x + 12 < c->columns; x++) {
        if (x < used || (x && step_at(c, x) == step_at(c, x - 1))) {
            text_fill(out, ' ', x >= used);
            continue;
        }
        size_t before = out->len;
        text_printf(out, " %" PRId64, step_at(c, x));
        used = x + (uint32_t)(out->len - before);
        for (; used < x + 9; used++)
            text_char(out, ' ');
    }
    text_char(out, '\n');
    text_fill(out, ' ', MARGIN + peak);
    text_printf(out, "↑ fullest at step %" PRId64, r->peak_step);
    if (r->step && r->peak_step >= 0 && r->peak_step < r->step_count)
        text_printf(out, ": " STR_FMT, STR_ARG(r->step[r->peak_step]));
    text_char(out, '\n');
}

static void put_legend(Text *out, const Chart *c)
{
    char key[4], a[32];
    uint32_t shown = 0, hidden = 0, width = 4, count = c->report->count;
    uint32_t *by_key = ARENA_ARRAY((Arena *)&c->scratch, uint32_t, (size_t)c->keys + 1);
    for (uint32_t i = 0; i < count; i++)
        if (c->key[i])
            by_key[c->key[i]] = i;
    for (uint16_t k = 1; k <= c->keys && k <= MOST_LEGEND; k++) {
        uint32_t w = (uint32_t)plan_columns(c->report->row[by_key[k]].name);
        width = w > width ? w : width;
    }
    char a_step[24];
    uint32_t digits = (uint32_t)snprintf(a_step, sizeof a_step, "%" PRId64, c->report->last_step);
    uint32_t steps = 2 * digits + 8, across = (c->columns + MARGIN) / (width + 20 + steps);
    for (uint16_t k = 1; k <= c->keys; k++) {
        const PlanRow *t = &c->report->row[by_key[k]];
        if (shown == MOST_LEGEND) {
            hidden = (uint32_t)(c->keys - MOST_LEGEND);
            break;
        }
        Str letters = key_text(key, k);
        text_printf(out, "%3.*s  " STR_FMT, STR_ARG(letters), STR_ARG(t->name));
        text_fill(out, ' ', width - (uint32_t)plan_columns(t->name));
        text_printf(out, " %13s B", plan_digits(a, t->bytes));
        size_t before = out->len;
        text_printf(out, "  %" PRId64, t->first);
        if (t->last - 1 != t->first)
            text_printf(out, " to %" PRId64, t->last - 1);
        bool last = ++shown % (across ? across : 1) == 0 || k == c->keys || shown == MOST_LEGEND;
        size_t written = out->len - before;
        text_fill(out, last ? '\n' : ' ', last ? 1 : written < steps ? steps - written : 1);
    }
    if (hidden)
        text_printf(out, "  and %u more\n", hidden);
}

static void chart_region(Text *out, const PlanReport *r, uint32_t region, uint32_t width)
{
    Chart c = {.report = r, .region = region};
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (drawn(&c, i)) {
            int64_t end = r->row[i].offset + r->row[i].bytes;
            c.top = end > c.top ? end : c.top;
            count++;
        }
    if (!count)
        return;
    c.columns = width;
    long double span = (long double)r->last_step - (long double)r->first_step;
    if (span < width && width % (uint32_t)span <= width / 5) /* whole columns per step, where that wastes little */
        c.columns = width - width % (uint32_t)span;
    c.rows = c.top < MOST_ROWS ? (uint32_t)c.top : MOST_ROWS;
    size_t cells = (size_t)c.rows * c.columns;
    c.owner = ARENA_ARRAY(&c.scratch, uint32_t, cells);
    c.covered = ARENA_ARRAY(&c.scratch, int64_t, cells);
    c.letter = arena_alloc(&c.scratch, cells * sizeof *c.letter);
    c.shade = ARENA_ARRAY(&c.scratch, uint8_t, r->count);
    c.key = ARENA_ARRAY(&c.scratch, uint16_t, r->count);
    memset(c.owner, 0xff, sizeof *c.owner * cells);
    for (uint32_t i = 0; i < r->count; i++)
        if (drawn(&c, i))
            paint(&c, i);
    choose_shades(&c);
    label(&c);
    if (r->region && region < r->region_count)
        text_printf(out, "\n" STR_FMT "\n", STR_ARG(r->region[region]));
    put_picture(out, &c);
    put_axis(out, &c);
    put_legend(out, &c);
    arena_free(&c.scratch);
}

void plan_print_chart(Text *out, const PlanReport *r, uint32_t columns)
{
    char a[32], b[32];
    uint32_t width = columns < MARGIN + 20 ? 20 : columns - MARGIN;
    text_printf(out, STR_FMT ": %s in one arena, %u tensors of %s\n", STR_ARG(r->title), plan_bytes(a, r->peak),
                plan_stored(r), plan_bytes(b, r->naive));
    for (uint32_t region = 0; region < (r->region_count ? r->region_count : 1); region++)
        chart_region(out, r, region, width);
    text_printf(out, "\npeak %s B, %s", plan_digits(a, r->peak), r->proven ? "proven minimal" : "");
    if (!r->proven)
        text_printf(out, "at most %s B above the minimum", plan_digits(b, r->peak - r->lower_bound));
    text_printf(out, " (%s)\n", r->allocator);
}
