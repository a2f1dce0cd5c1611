#include "plan/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/sort.h"

const char *plan_digits(char *buffer, int64_t value)
{
    char plain[24];
    int length = snprintf(plain, sizeof plain, "%" PRId64, value), n = 0;
    for (int i = 0; i < length; i++) {
        buffer[n++] = plain[i];
        if (plain[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            buffer[n++] = ',';
    }
    buffer[n] = 0;
    return buffer;
}

const char *plan_bytes(char *buffer, int64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int u = 0;
    for (; value >= 1024 && u < 6; u++)
        value /= 1024;
    snprintf(buffer, 16, u == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : "%.1f %s", value, unit[u]);
    return buffer;
}

/* The address space of one region as intervals, each with the row that wrote there last. */
typedef struct Owned {
    int64_t from, to;
    uint32_t row;
} Owned;

typedef struct Owners {
    Arena *arena;
    Owned *owned;
    uint32_t count, capacity;
} Owners;

typedef struct Finish {
    Arena *arena, scratch;
    PlanReport *report;
    Owners owners[PLAN_MOST_REGION];
    uint32_t share_capacity;
} Finish;

/* The first interval that ends above the address. */
static uint32_t find(const Owners *o, int64_t address)
{
    uint32_t low = 0, high = o->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (o->owned[middle].to > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The owner may still be live: then the row is computed in its place, and both are one as long as both live. */
static void note_share(Finish *f, uint32_t owner, uint32_t row, int64_t bytes)
{
    const PlanRow *a = &f->report->row[owner], *b = &f->report->row[row];
    if (a->last > b->first)
        ARENA_PUSH(f->arena, f->report->share, f->report->share_count, f->share_capacity,
                   ((PlanShare){b->region, b->first, a->last < b->last ? a->last : b->last, bytes}));
}

/* Gives [from, to) to a row; returns the row that owned the most of it before, or PLAN_NO_ROW. */
static uint32_t take_over(Finish *f, Owners *o, Owned claim)
{
    uint32_t begin = find(o, claim.from), end = begin, main = PLAN_NO_ROW, pieces = 0;
    int64_t most = 0;
    Owned piece[3];
    for (; end < o->count && o->owned[end].from < claim.to; end++) {
        const Owned *w = &o->owned[end];
        int64_t from = w->from > claim.from ? w->from : claim.from, to = w->to < claim.to ? w->to : claim.to;
        note_share(f, w->row, claim.row, to - from);
        if (to - from > most) {
            most = to - from;
            main = w->row;
        }
    }
    if (begin < end && o->owned[begin].from < claim.from)
        piece[pieces++] = (Owned){o->owned[begin].from, claim.from, o->owned[begin].row};
    piece[pieces++] = claim;
    if (begin < end && o->owned[end - 1].to > claim.to)
        piece[pieces++] = (Owned){claim.to, o->owned[end - 1].to, o->owned[end - 1].row};

    while (o->capacity < o->count + 2)
        o->owned = arena_grow(o->arena, o->owned, o->count, &o->capacity, sizeof *o->owned);
    memmove(o->owned + begin + pieces, o->owned + end, sizeof *o->owned * (o->count - end));
    memcpy(o->owned + begin, piece, sizeof *piece * pieces);
    o->count += pieces;
    o->count -= end - begin;
    return main;
}

static SortKey *rows_by_start(Arena *arena, const PlanReport *r)
{
    SortKey *key = ARENA_ARRAY(arena, SortKey, r->count);
    for (uint32_t i = 0; i < r->count; i++)
        key[i] = (SortKey){(uint64_t)r->row[i].first ^ UINT64_C(1) << 63, i};
    sort_ascending(arena, key, r->count);
    return key;
}

static bool stored(const PlanRow *row)
{
    return row->alias_of == PLAN_NO_ROW && row->bytes > 0;
}

static void find_reuse(Finish *f)
{
    PlanReport *r = f->report;
    SortKey *order = rows_by_start(&f->scratch, r);
    for (uint32_t k = 0; k < r->count; k++) {
        PlanRow *row = &r->row[order[k].index];
        Owners *o = &f->owners[row->region % PLAN_MOST_REGION];
        o->arena = &f->scratch;
        row->reuses = PLAN_NO_ROW;
        if (stored(row))
            row->reuses = take_over(f, o, (Owned){row->offset, row->offset + row->bytes, order[k].index});
    }
}

typedef struct Change {
    int64_t step, bytes;
} Change;

uint32_t plan_report_levels(Arena *arena, const PlanReport *r, uint32_t region, PlanLevel **levels)
{
    Arena scratch = {0};
    uint32_t most = 2 * r->count + 2 * r->share_count, n = 0, count = 0;
    Change *change = ARENA_ARRAY(&scratch, Change, most);
    SortKey *key = ARENA_ARRAY(&scratch, SortKey, most);
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        if (!stored(row) || (region != PLAN_NO_ROW && region != row->region))
            continue;
        change[n++] = (Change){row->first, row->bytes};
        change[n++] = (Change){row->last, -row->bytes};
    }
    for (uint32_t i = 0; i < r->share_count; i++) {
        const PlanShare *share = &r->share[i];
        if (region != PLAN_NO_ROW && region != share->region)
            continue;
        change[n++] = (Change){share->first, -share->bytes};
        change[n++] = (Change){share->last, share->bytes};
    }
    for (uint32_t i = 0; i < n; i++)
        key[i] = (SortKey){(uint64_t)change[i].step ^ UINT64_C(1) << 63, i};
    sort_ascending(&scratch, key, n);
    *levels = ARENA_ARRAY(arena, PlanLevel, n);
    int64_t live = 0;
    for (uint32_t k = 0; k < n; k++) {
        live += change[key[k].index].bytes;
        if (!count || (*levels)[count - 1].step != change[key[k].index].step)
            (*levels)[count++].step = change[key[k].index].step;
        (*levels)[count - 1].live = live;
    }
    arena_free(&scratch);
    return count;
}

static void find_peak_step(Finish *f)
{
    PlanReport *r = f->report;
    PlanLevel *level;
    uint32_t count = plan_report_levels(&f->scratch, r, PLAN_NO_ROW, &level);
    for (uint32_t i = 0; i < count; i++)
        if (level[i].live > r->peak_live) {
            r->peak_live = level[i].live;
            r->peak_step = level[i].step;
        }
}

void plan_report_finish(Arena *arena, PlanReport *r)
{
    Finish *f = ARENA_NEW(arena, Finish);
    *f = (Finish){.arena = arena, .report = r};
    r->naive = r->peak_live = r->peak_step = 0;
    r->share = NULL;
    r->share_count = 0;
    r->first_step = r->count ? INT64_MAX : 0;
    r->last_step = r->count ? INT64_MIN : 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        if (row->alias_of == PLAN_NO_ROW)
            r->naive += row->bytes;
        if (row->first < r->first_step)
            r->first_step = row->first;
        if (row->last > r->last_step)
            r->last_step = row->last;
    }
    find_reuse(f);
    find_peak_step(f);
    plan_find_blame(arena, r);
    arena_free(&f->scratch);
}

/* Of a group, the first use stands for all. */
static void find_aliases(Arena *arena, const PlanProblem *p, PlanRow *row)
{
    ArenaMark mark = arena_mark(arena);
    SortKey *key = ARENA_ARRAY(arena, SortKey, p->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].group)
            key[count++] = (SortKey){(uint64_t)p->buffer[i].region << 32 | p->buffer[i].group, i};
    sort_ascending(arena, key, count);
    for (uint32_t k = 1, first = 0; k < count; k++) {
        if (key[k].key != key[first].key)
            first = k;
        else
            row[key[k].index].alias_of = key[first].index;
    }
    arena_reset(arena, mark);
}

PlanReport plan_report_of(Arena *arena, const PlanProblem *p, const PlanResult *result, const Str *id)
{
    PlanReport r = {.title = STR("problem"),
                    .count = p->count,
                    .region_count = result->region_count,
                    .peak = result->peak,
                    .lower_bound = result->lower_bound,
                    .proven = result->proven,
                    .nodes = result->nodes,
                    .allocator = result->allocator};
    r.row = ARENA_ARRAY(arena, PlanRow, p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        const PlanBuffer *b = &p->buffer[i];
        r.row[i] = (PlanRow){.name = id ? id[i] : str_format(arena, "%u", i),
                             .bytes = b->size,
                             .offset = result->offset[i],
                             .first = b->first,
                             .last = b->last,
                             .region = b->region,
                             .alias_of = PLAN_NO_ROW};
    }
    find_aliases(arena, p, r.row);
    plan_report_finish(arena, &r);
    return r;
}

/* Display columns: one per code point, which holds for the names that models have. */
static int columns_of(Str s)
{
    int columns = 0;
    for (uint32_t i = 0; i < s.len; i++)
        columns += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return columns;
}

static void put_left(Text *out, Str s, int width)
{
    text_str(out, s);
    int columns = columns_of(s);
    text_fill(out, ' ', columns < width ? (size_t)(width - columns) : 0);
}

static int widest(const PlanReport *r, bool types)
{
    int width = 4;
    for (uint32_t i = 0; i < r->count; i++) {
        int columns = columns_of(types ? r->row[i].type : r->row[i].name);
        width = columns > width ? columns : width;
    }
    return width > 40 ? 40 : width;
}

/* Words up to a width; `indent` blanks begin every line but the first. */
static void put_wrapped(Text *out, Str s, int indent, int width)
{
    int column = indent;
    while (s.len) {
        uint32_t word = 0;
        while (word < s.len && s.ptr[word] != ' ')
            word++;
        int columns = columns_of((Str){s.ptr, word});
        if (column > indent && column + 1 + columns > width) {
            text_char(out, '\n');
            text_fill(out, ' ', (size_t)indent);
            column = indent;
        } else if (column > indent) {
            text_char(out, ' ');
            column++;
        }
        text_put(out, s.ptr, word);
        column += columns;
        word += word < s.len;
        s.ptr += word;
        s.len -= word;
    }
    text_char(out, '\n');
}

#define BLAMED 8 /* rows of the blame that are shown */

static void print_blame(Text *out, const PlanReport *r)
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
    if (r->hint.len) {
        text_printf(out, "hint         ");
        put_wrapped(out, r->hint, 13, 100);
    }
}

static void print_totals(Text *out, const PlanReport *r)
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
        text_printf(out, "  %.1f times the peak", (double)r->naive / (double)r->peak);
    text_printf(out, "\nallocator    %s", r->allocator);
    if (r->nodes)
        text_printf(out, ", %s search nodes", plan_digits(a, (int64_t)r->nodes));
    for (uint32_t i = 0; i < r->saving_count; i++) {
        text_printf(out, "\n%s ", i ? "            " : "saved       ");
        text_printf(out, "%15s B  by " STR_FMT, plan_digits(a, r->saving[i].bytes), STR_ARG(r->saving[i].what));
    }
    print_blame(out, r);
}

void plan_print_table(Text *out, const PlanReport *r)
{
    char a[32], b[32];
    int name = widest(r, false), type = widest(r, true);
    put_left(out, STR("name"), name);
    text_printf(out, "  ");
    put_left(out, STR("type"), type);
    text_printf(out, "  %13s  %13s  %6s  %6s", "bytes", "offset", "first", "last");
    text_printf(out, r->region_count > 1 ? "  region  reuses\n" : "  reuses\n");
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *row = &r->row[i];
        put_left(out, row->name, name);
        text_printf(out, "  ");
        put_left(out, row->type, type);
        text_printf(out, "  %13s  %13s  %6" PRId64 "  %6" PRId64, plan_digits(a, row->bytes),
                    plan_digits(b, row->offset), row->first, row->last - 1);
        if (r->region_count > 1)
            text_printf(out, "  %6u", row->region);
        if (row->alias_of != PLAN_NO_ROW)
            text_printf(out, "  = " STR_FMT, STR_ARG(r->row[row->alias_of].name));
        else if (row->reuses != PLAN_NO_ROW)
            text_printf(out, "  " STR_FMT "%s", STR_ARG(r->row[row->reuses].name),
                        r->row[row->reuses].last > row->first ? " (in place)" : "");
        text_char(out, '\n');
    }
    print_totals(out, r);
}
