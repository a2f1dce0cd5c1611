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
    uint32_t hidden;   /* tensors without a label, since there are so many */
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

static bool has_room(const Chart *c, uint32_t self, Run run)
{
    int columns = plan_columns(c->report->row[self].name);
    return columns > 0 && (uint32_t)columns <= run.length;
}

static void label_one(Chart *c, uint32_t self, Run run)
{
    char buffer[4];
    Str name = c->report->row[self].name;
    uint32_t width = (uint32_t)plan_columns(name);
    if (!has_room(c, self, run)) {
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

/* Tensors whose names do not fit get keys, the ones with the most cells first, as many as are explained. */
static void choose_keys(Chart *c, const Run *longest, bool *keyed)
{
    uint32_t count = c->report->count, n = 0, *cells = ARENA_ARRAY(&c->scratch, uint32_t, count);
    SortKey *order = ARENA_ARRAY(&c->scratch, SortKey, count);
    for (uint32_t cell = 0; cell < c->rows * c->columns; cell++)
        if (c->owner[cell] != EMPTY)
            cells[c->owner[cell]]++;
    for (uint32_t i = 0; i < count; i++)
        if (drawn(c, i) && !has_room(c, i, longest[i]))
            order[n++] = (SortKey){UINT32_MAX - cells[i], i};
    sort_ascending(&c->scratch, order, n);
    for (uint32_t k = 0; k < n && k < MOST_LEGEND; k++)
        keyed[order[k].index] = true;
    c->hidden = n > MOST_LEGEND ? n - MOST_LEGEND : 0;
}

/* Labels tensors in order of their first step, so that keys rise with time. */
static void label(Chart *c)
{
    uint32_t count = c->report->count, n = 0;
    Run *longest = ARENA_ARRAY(&c->scratch, Run, count);
    bool *keyed = ARENA_ARRAY(&c->scratch, bool, count);
    uint32_t *first_row = ARENA_ARRAY(&c->scratch, uint32_t, count),
             *last_row = ARENA_ARRAY(&c->scratch, uint32_t, count);
    SortKey *order = ARENA_ARRAY(&c->scratch, SortKey, count);
    memset(first_row, 0xff, sizeof *first_row * count);
    find_runs(c, longest, first_row, last_row);
    choose_keys(c, longest, keyed);
    for (uint32_t i = 0; i < count; i++)
        if (drawn(c, i) && (keyed[i] || has_room(c, i, longest[i])))
            order[n++] = (SortKey){(uint64_t)c->report->row[i].first ^ UINT64_C(1) << 63, i};
    sort_ascending(&c->scratch, order, n);
    for (uint32_t k = 0; k < n; k++)
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

/* The bytes live over time as bars of eighths, in every column the most. */
static void put_live(Text *out, Chart *c)
{
    static const char *const bar[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    PlanLevel *level;
    uint32_t count = plan_report_levels(&c->scratch, c->report, c->region, &level);
    int64_t most = 1, *live = ARENA_ARRAY(&c->scratch, int64_t, c->columns);
    for (uint32_t i = 0; i + 1 < count; i++) {
        uint32_t x = column_of(c, level[i].step), end = column_of(c, level[i + 1].step);
        for (end = end > x ? end : x + 1; x < end && x < c->columns; x++)
            live[x] = level[i].live > live[x] ? level[i].live : live[x];
        most = level[i].live > most ? level[i].live : most;
    }
    text_printf(out, "%*s ", MARGIN - 1, "live");
    for (uint32_t x = 0; x < c->columns; x++) {
        uint32_t eighths = (uint32_t)(8 * (long double)live[x] / (long double)most + 0.5L);
        text_printf(out, "%s", bar[live[x] > 0 && eighths == 0 ? 1 : eighths]);
    }
    text_char(out, '\n');
}

/* What of the loop's label fits into so many columns. */
static Str fitting_label(Chart *c, const PlanLoop *loop, uint32_t columns)
{
    Str label = plan_loop_label(&c->scratch, loop, false);
    if ((uint32_t)plan_columns(label) > columns)
        label = plan_loop_label(&c->scratch, loop, true);
    return (uint32_t)plan_columns(label) > columns ? (Str){0} : label;
}

/* `└── 5 rounds ──┘`, as wide as the loop's steps. */
static void put_bracket(Text *out, Chart *c, const PlanLoop *loop, uint32_t width)
{
    uint32_t left = width > 2 ? width - 2 : 0;
    Str label = fitting_label(c, loop, left > 4 ? left - 4 : 0);
    uint32_t columns = (uint32_t)plan_columns(label) + 2;
    text_printf(out, width > 1 ? "└" : "╵");
    for (uint32_t x = 0; x < left; x++) {
        if (label.len && x == (left - columns) / 2) {
            text_printf(out, " " STR_FMT " ", STR_ARG(label));
            x += columns - 1;
        } else {
            text_printf(out, "─");
        }
    }
    text_printf(out, width > 1 ? "┘" : "");
}

/* Loops as brackets under their steps, those in others beneath them. */
static void put_loops(Text *out, Chart *c)
{
    const PlanReport *r = c->report;
    uint32_t levels;
    const uint32_t *depth = plan_loop_depths(&c->scratch, r, &levels);
    for (uint32_t level = 0; level < levels; level++) {
        uint32_t at = 0;
        text_printf(out, "%*s ", MARGIN - 1, level ? "" : "loops");
        for (uint32_t i = 0; i < r->loop_count; i++) {
            uint32_t from = column_of(c, r->loop[i].first), to = column_of(c, r->loop[i].last);
            if (depth[i] != level || from < at || from >= c->columns)
                continue;
            to = to > from ? to : from + 1;
            text_fill(out, ' ', from - at);
            put_bracket(out, c, &r->loop[i], to - from);
            at = to;
        }
        text_char(out, '\n');
    }
}

#define LEAST_WORDS 20 /* columns of `fullest at step N` */
#define LEAST_STEP  8  /* of a step's name behind it */

/* An arrow at the column, with words on a side of it that has room. */
static void put_fullest(Text *out, const Chart *c, uint32_t peak)
{
    const PlanReport *r = c->report;
    int behind = (int)(c->columns - peak) - 2, before = (int)peak - 1 + MARGIN;
    bool right = behind >= before || (peak <= c->columns / 2 && behind >= LEAST_WORDS);
    int room = right ? behind : before;
    Text words = {0};
    text_printf(&words, "fullest at step %" PRId64, r->peak_step);
    if ((int)words.len > room) {
        words.len = 0;
        text_printf(&words, "fullest");
    } else if (r->step && r->peak_step >= 0 && r->peak_step < r->step_count) {
        Str step = r->step[r->peak_step];
        int left = room - (int)words.len - 2, columns = plan_columns(step);
        if (columns <= left || left >= LEAST_STEP) {
            text_printf(&words, ": ");
            plan_put_elided(&words, step, columns > left ? left : columns);
        }
    }
    int blanks = right ? MARGIN + (int)peak : MARGIN + (int)peak - 1 - plan_columns(text_view(&words));
    text_fill(out, ' ', blanks > 0 ? (size_t)blanks : 0);
    text_printf(out, right ? "↑ %s\n" : "%s ↑\n", words.ptr);
    text_free(&words);
}

static void put_axis(Text *out, Chart *c)
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
    put_loops(out, c);
    put_live(out, c);
    put_fullest(out, c, peak);
}

typedef struct Legend { /* the tensors that a key stands for, and the columns of their table */
    uint32_t *row, count;
    int name, bytes, steps;
} Legend;

static int steps_text(char *buffer, size_t size, const PlanRow *t)
{
    if (t->last - 1 == t->first)
        return snprintf(buffer, size, "%" PRId64, t->first);
    snprintf(buffer, size, "%" PRId64 "–%" PRId64, t->first, t->last - 1);
    return plan_columns(str_from(buffer));
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static Legend find_legend(Chart *c)
{
    char text[64];
    Legend l = {.row = ARENA_ARRAY(&c->scratch, uint32_t, (size_t)c->keys + 1)};
    l.count = c->keys;
    for (uint32_t i = 0; i < c->report->count; i++)
        if (c->key[i])
            l.row[c->key[i]] = i;
    for (uint32_t k = 1; k <= l.count; k++) {
        const PlanRow *t = &c->report->row[l.row[k]];
        l.name = larger(l.name, plan_columns(t->name));
        l.bytes = larger(l.bytes, (int)strlen(plan_bytes(text, t->bytes)));
        l.steps = larger(l.steps, steps_text(text, sizeof text, t));
    }
    return l;
}

/* Keys run down the first column of the table, then down the next. */
static void put_legend(Text *out, Chart *c)
{
    char key[4], bytes[16], steps[64];
    Legend l = find_legend(c);
    int room = (int)(c->columns + MARGIN) - (l.bytes + l.steps + 9);
    l.name = l.name > room ? room > 8 ? room : 8 : l.name;
    uint32_t width = (uint32_t)(l.name + l.bytes + l.steps) + 11, across = (c->columns + MARGIN + 2) / width;
    across = across ? across : 1;
    uint32_t down = (l.count + across - 1) / across;
    for (uint32_t line = 0; line < down; line++) {
        for (uint32_t k = line + 1; k <= l.count; k += down) {
            const PlanRow *t = &c->report->row[l.row[k]];
            int shown = steps_text(steps, sizeof steps, t);
            Str letters = key_text(key, (uint16_t)k);
            text_printf(out, "%3.*s  ", STR_ARG(letters));
            plan_put_elided(out, t->name, l.name);
            text_printf(out, "  %*s  %s", l.bytes, plan_bytes(bytes, t->bytes), steps);
            if (k + down <= l.count)
                text_fill(out, ' ', (size_t)(l.steps - shown + 2));
        }
        text_char(out, '\n');
    }
    if (c->hidden)
        text_printf(out, "  and %u smaller ones without a letter\n", c->hidden);
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

static void put_title(Text *out, const PlanReport *r, uint32_t columns)
{
    char a[32], b[32], c[32];
    Text line = {0};
    text_printf(&line, STR_FMT ": %s in one arena, %s tensor%s of %s", STR_ARG(r->title), plan_bytes(a, r->peak),
                plan_digits(c, plan_stored(r)), plan_stored(r) == 1 ? "" : "s", plan_bytes(b, r->naive));
    text_wrap(out, text_view(&line), 0, 4, columns);
    text_char(out, '\n');
    text_free(&line);
}

static void put_peak(Text *out, const PlanReport *r, uint32_t columns)
{
    char a[32], b[32], c[32];
    Text line = {0};
    text_printf(&line, "peak %s B, ", plan_digits(a, r->peak));
    if (r->proven)
        text_printf(&line, "proven minimal");
    else
        text_printf(&line, "lower bound %s B, gap %s B (%.2f %%)", plan_digits(b, r->lower_bound),
                    plan_digits(c, r->peak - r->lower_bound),
                    100.0 * (double)(r->peak - r->lower_bound) / (double)(r->lower_bound ? r->lower_bound : 1));
    text_printf(&line, " (%s)", r->allocator);
    text_char(out, '\n');
    text_wrap(out, text_view(&line), 0, 4, columns);
    text_char(out, '\n');
    text_free(&line);
}

static void print_chart(Text *out, const PlanReport *r, uint32_t columns)
{
    uint32_t width = columns < MARGIN + 20 ? 20 : columns - MARGIN;
    put_title(out, r, columns);
    for (uint32_t region = 0; region < (r->region_count ? r->region_count : 1); region++)
        chart_region(out, r, region, width);
    put_peak(out, r, columns);
}

/* Names may be a stranger's, and this goes to a terminal. */
void plan_print_chart(Text *out, const PlanReport *r, uint32_t columns)
{
    Text lines = {0};
    print_chart(&lines, r, columns);
    plan_put_printable(out, &lines);
}
