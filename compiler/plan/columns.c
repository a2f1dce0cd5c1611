#include "plan/columns.h"

#include <string.h>

#include "plan/runs.h"

#define FAN_OUT      4
#define LEVELS       18  /* enough for 2^32 columns, and one that is not used */
#define LEAST_PIECES 32  /* that begin or end in a column */
#define ADDING       100 /* to a set takes so many times what a look at a piece does */

typedef struct Part { /* a placed piece that begins or ends inside a column */
    int64_t begin, end;
    uint32_t lower, upper;
} Part;

typedef struct Column { /* of the sections [lower, upper) */
    uint32_t lower, upper;
    uint32_t part_count, part_capacity;
    Part *part;    /* in order of address */
    Runs through;  /* taken in all of its sections by one piece */
    Runs touching; /* what the parts take */
} Column;

typedef struct Cursor { /* one of the sets that an item must keep clear of; its place rises */
    const Runs *runs;   /* NULL: the column's parts, as far as they are live in [lower, upper) */
    const Column *column;
    uint32_t lower, upper;
    RunPlace place; /* in the runs */
    uint32_t at;    /* among the parts */
    int64_t size;   /* wanted */
    PlanRun gap;    /* found */
} Cursor;

struct Columns {
    Arena *arena;
    const PlanItems *items;
    Column *column;
    uint32_t count;
    uint32_t *column_of; /* [section] */
    Runs *level[LEVELS]; /* taken at some time in FAN_OUT^k columns; level 0 is in the columns */
    uint32_t level_count[LEVELS];
    Cursor *cursor;
    uint32_t cursor_count, cursor_capacity;
    RunStore store;
};

/* A piece is added to every column of its life, and a search looks at the parts of two columns.  With pieces in a
 * column as the root of those live at one time, times ADDING, both take about the same time. */
static uint32_t pieces_per_column(const PlanItems *items)
{
    uint64_t live = 0;
    uint32_t pieces = LEAST_PIECES;
    for (uint32_t i = 0; i < items->piece_count; i++)
        live += items->piece[i].upper - items->piece[i].lower;
    live /= items->section_count;
    while ((uint64_t)pieces * pieces < ADDING * live)
        pieces++;
    return pieces;
}

static void cut_time(Columns *c)
{
    const PlanItems *items = c->items;
    uint32_t sections = items->section_count, most = pieces_per_column(items), inside = 0;
    uint32_t *ends =
        ARENA_ARRAY(c->arena, uint32_t, (size_t)sections + 1); /* pieces that begin or end before section s */
    for (uint32_t i = 0; i < items->piece_count; i++) {
        ends[items->piece[i].lower]++;
        ends[items->piece[i].upper]++;
    }
    c->column_of = ARENA_ARRAY(c->arena, uint32_t, sections);
    for (uint32_t s = 1; s < sections; s++) {
        inside += ends[s];
        c->count += inside > most;
        inside = inside > most ? 0 : inside;
        c->column_of[s] = c->count;
    }
    c->count++;
    c->column = ARENA_ARRAY(c->arena, Column, c->count);
    for (uint32_t s = sections; s-- > 0;)
        c->column[c->column_of[s]].lower = s;
    for (uint32_t k = 0; k < c->count; k++)
        c->column[k].upper = k + 1 < c->count ? c->column[k + 1].lower : sections;
}

Columns *columns_new(Arena *arena, const PlanItems *items)
{
    Columns *c = ARENA_NEW(arena, Columns);
    c->arena = arena;
    c->items = items;
    c->store.arena = arena;
    cut_time(c);
    c->level_count[0] = c->count;
    for (uint32_t k = 1; c->level_count[k - 1] > 1; k++) {
        c->level_count[k] = (c->level_count[k - 1] + FAN_OUT - 1) / FAN_OUT;
        c->level[k] = ARENA_ARRAY(arena, Runs, c->level_count[k]);
    }
    return c;
}

/* The columns that the piece is live in, [first, last), and of these the ones it is live all through. */
typedef struct Span {
    uint32_t first, last, full_first, full_last;
} Span;

static Span span_of(const Columns *c, const PlanPiece *piece)
{
    Span s = {.first = c->column_of[piece->lower], .last = c->column_of[piece->upper - 1] + 1};
    s.full_first = s.first + (c->column[s.first].lower < piece->lower);
    s.full_last = s.last - (c->column[s.last - 1].upper > piece->upper);
    return s;
}

static void add_part(Columns *c, Column *column, Part part)
{
    uint32_t low = 0, high = column->part_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (column->part[middle].begin < part.begin)
            low = middle + 1;
        else
            high = middle;
    }
    ARENA_PUSH(c->arena, column->part, column->part_count, column->part_capacity, part);
    memmove(&column->part[low + 1], &column->part[low], sizeof part * (column->part_count - 1 - low));
    column->part[low] = part;
    runs_add(&c->store, &column->touching, part.begin, part.end);
}

static void add_piece(Columns *c, const PlanPiece *piece, int64_t offset)
{
    Part part = {offset, offset + piece->size, piece->lower, piece->upper};
    Span span = span_of(c, piece);
    for (uint32_t k = span.full_first; k < span.full_last; k++)
        runs_add(&c->store, &c->column[k].through, part.begin, part.end);
    if (span.first < span.full_first)
        add_part(c, &c->column[span.first], part);
    if (span.full_last < span.last && span.full_last >= span.full_first)
        add_part(c, &c->column[span.full_last], part);
    uint32_t first = span.first, last = span.last - 1;
    for (uint32_t level = 1; c->level[level]; level++) {
        first /= FAN_OUT;
        last /= FAN_OUT;
        for (uint32_t k = first; k <= last; k++)
            runs_add(&c->store, &c->level[level][k], part.begin, part.end);
    }
}

void columns_add(Columns *c, const PlanItem *item, int64_t offset)
{
    for (uint32_t p = 0; p < item->piece_count; p++)
        add_piece(c, &c->items->piece[item->piece + p], offset);
}

static void heed(Columns *c, const Runs *runs, const Column *column, const PlanPiece *piece)
{
    Cursor cursor = {.runs = runs, .column = column, .lower = piece->lower, .upper = piece->upper, .size = piece->size};
    if (runs ? runs->count : column->part_count)
        ARENA_PUSH(c->arena, c->cursor, c->cursor_count, c->cursor_capacity, cursor);
}

static void heed_part(Columns *c, uint32_t column, const PlanPiece *piece)
{
    heed(c, &c->column[column].through, NULL, piece);
    heed(c, NULL, &c->column[column], piece);
}

static void heed_node(Columns *c, uint32_t level, uint32_t k, const PlanPiece *piece)
{
    if (level) {
        heed(c, &c->level[level][k], NULL, piece);
    } else {
        heed(c, &c->column[k].through, NULL, piece);
        heed(c, &c->column[k].touching, NULL, piece);
    }
}

/* Collects what the piece must keep clear of. */
static void heed_life(Columns *c, const PlanPiece *piece)
{
    Span span = span_of(c, piece);
    uint32_t first = span.full_first, last = span.full_last;
    if (span.first < span.full_first)
        heed_part(c, span.first, piece);
    if (span.full_last < span.last && span.full_last >= span.full_first)
        heed_part(c, span.full_last, piece);
    for (uint32_t level = 0; first < last; level++) {
        bool top = !c->level[level + 1];
        for (; first < last && (top || first % FAN_OUT); first++)
            heed_node(c, level, first, piece);
        for (; first < last && last % FAN_OUT; last--)
            heed_node(c, level, last - 1, piece);
        first /= FAN_OUT;
        last /= FAN_OUT;
    }
}

static void heed_item(Columns *c, const PlanItem *item)
{
    c->cursor_count = 0;
    for (uint32_t p = 0; p < item->piece_count; p++)
        heed_life(c, &c->items->piece[item->piece + p]);
}

/* The first gap between the parts of a column; they may overlap where they are not live together. */
static PlanRun gap_between_parts(Columns *c, Cursor *cursor, int64_t from)
{
    const Part *part = cursor->column->part;
    uint32_t i = cursor->at, count = cursor->column->part_count;
    for (; i < count && part[i].begin < from + cursor->size; i++) {
        bool live = part[i].lower < cursor->upper && part[i].upper > cursor->lower;
        int64_t end = live ? part[i].end : 0;
        from = end > from ? end : from;
    }
    while (i < count && !(part[i].lower < cursor->upper && part[i].upper > cursor->lower))
        i++;
    c->store.looks += 1 + i - cursor->at;
    cursor->at = i;
    return (PlanRun){from, i < count ? part[i].begin : INT64_MAX};
}

/* The first address, from `at` on, where all have room. */
static int64_t leap(Columns *c, int64_t at, int64_t alignment)
{
    uint32_t agreed = 0;
    for (uint32_t i = 0; agreed < c->cursor_count; i = i + 1 < c->cursor_count ? i + 1 : 0) {
        Cursor *cursor = &c->cursor[i];
        agreed++;
        if (cursor->gap.begin <= at && cursor->gap.end - at >= cursor->size)
            continue;
        cursor->gap = cursor->runs ? runs_gap(&c->store, cursor->runs, &cursor->place, at, cursor->size)
                                   : gap_between_parts(c, cursor, at);
        if (cursor->gap.begin > at) {
            at = plan_align(cursor->gap.begin, alignment);
            agreed = 0;
        }
    }
    return at;
}

/* The last address in the gap that all have in common. */
static int64_t last_in_gap(const Columns *c)
{
    int64_t last = INT64_MAX;
    for (uint32_t i = 0; i < c->cursor_count; i++)
        if (c->cursor[i].gap.end != INT64_MAX && c->cursor[i].gap.end - c->cursor[i].size < last)
            last = c->cursor[i].gap.end - c->cursor[i].size;
    return last;
}

int64_t columns_find(Columns *c, const PlanItem *item, PlanFit fit)
{
    heed_item(c, item);
    int64_t best = -1, best_rest = INT64_MAX, at = leap(c, 0, item->alignment);
    if (fit == PLAN_FIRST_FIT)
        return at;
    for (;;) {
        int64_t last = last_in_gap(c);
        if (last == INT64_MAX)
            return best >= 0 ? best : at;
        if (last - at < best_rest) {
            best = at;
            best_rest = last - at;
        }
        if (!best_rest)
            return best;
        at = leap(c, plan_align(last + 1, item->alignment), item->alignment);
    }
}

bool columns_free(Columns *c, const PlanItem *item, int64_t offset)
{
    heed_item(c, item);
    return leap(c, offset, 1) == offset;
}

uint64_t columns_looks(const Columns *c)
{
    return c->store.looks;
}
