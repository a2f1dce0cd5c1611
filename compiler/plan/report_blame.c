/* Blame: what is live at the fullest step, and what would make it less.  The hints say only what follows from lives and
 * sizes; whether an op can be fused or computed in pieces is for the reader to judge. */
#include <inttypes.h>
#include <string.h>

#include "plan/report.h"
#include "plan/sort.h"

typedef struct Shares { /* of the bytes live at the fullest step */
    int64_t scratch, waiting;
    uint32_t waits;   /* the largest row that is only kept for later, or PLAN_NO_ROW ... */
    uint32_t read;    /* ... that is read and was there before ... */
    uint32_t written; /* ... and that begins here and is no scratch */
} Shares;

static bool used_at(const PlanRow *row, int64_t step)
{
    uint32_t k = 0;
    while (k < row->use_count && row->use[k] < step)
        k++;
    return k < row->use_count && row->use[k] == step;
}

/* What grows lives on in the row that takes it over. */
static bool ends_there(const PlanReport *r, const PlanRow *row)
{
    return row->last == r->peak_step + 1 && row->kind != PLAN_GROWING;
}

/* Kept over the step, by which it is neither read nor written.  Where uses are not known, it may be either. */
static bool waits(const PlanReport *r, const PlanRow *row)
{
    return row->first < r->peak_step && !ends_there(r, row) && !used_at(row, r->peak_step);
}

/* The first use after the fullest step, or where the row ends. */
static int64_t next_use(const PlanReport *r, const PlanRow *row)
{
    for (uint32_t k = 0; k < row->use_count; k++)
        if (row->use[k] > r->peak_step)
            return row->use[k];
    return row->kind == PLAN_GROWING ? row->last : row->last - 1;
}

static void list_live(Arena *arena, PlanReport *r)
{
    SortKey *key = ARENA_ARRAY(arena, SortKey, r->count);
    uint32_t *row = ARENA_ARRAY(arena, uint32_t, r->count);
    for (uint32_t i = 0; i < r->count; i++) {
        const PlanRow *t = &r->row[i];
        if (t->alias_of == PLAN_NO_ROW && t->bytes > 0 && t->first <= r->peak_step && r->peak_step < t->last)
            key[r->blame_count++] = (SortKey){UINT64_MAX - (uint64_t)t->bytes, i};
    }
    sort_ascending(arena, key, r->blame_count);
    for (uint32_t k = 0; k < r->blame_count; k++)
        row[k] = key[k].index;
    r->blame = row;
}

static void keep_first(uint32_t *row, uint32_t index)
{
    *row = *row == PLAN_NO_ROW ? index : *row;
}

/* Was it there before the fullest step?  A tensor that is made in parts was, but for the part that is new. */
static bool was_there(const PlanReport *r, const PlanRow *row)
{
    return row->first < r->peak_step || (row->reuses != PLAN_NO_ROW && r->row[row->reuses].kind == PLAN_GROWING);
}

static Shares shares_of(const PlanReport *r)
{
    Shares s = {.waits = PLAN_NO_ROW, .read = PLAN_NO_ROW, .written = PLAN_NO_ROW};
    for (uint32_t k = 0; k < r->blame_count; k++) {
        const PlanRow *row = &r->row[r->blame[k]];
        if (waits(r, row)) {
            s.waiting += row->bytes;
            keep_first(&s.waits, r->blame[k]);
        } else if (row->kind == PLAN_SCRATCH) {
            s.scratch += row->bytes;
        } else {
            keep_first(was_there(r, row) ? &s.read : &s.written, r->blame[k]);
        }
    }
    return s;
}

Str plan_step_name(Arena *arena, const PlanReport *r, int64_t step)
{
    if (r->step && step >= 0 && step < r->step_count)
        return str_format(arena, STR_FMT " (step %" PRId64 ")", STR_ARG(r->step[step]), step);
    return str_format(arena, "step %" PRId64, step);
}

/* What is kept for later. */
static Str hint_of_waiting(Arena *arena, const PlanReport *r, const Shares *s, Str where)
{
    char bytes[32];
    const PlanRow *row = &r->row[s->waits];
    Str most = s->waiting == row->bytes ? row->name : str_format(arena, "most of all " STR_FMT, STR_ARG(row->name));
    if (!row->use)
        return str_format(arena,
                          "%s bytes are live before and after " STR_FMT ", " STR_FMT " (until " STR_FMT
                          "): shorter lives would lower the peak.",
                          plan_digits(bytes, s->waiting), STR_ARG(where), STR_ARG(most),
                          STR_ARG(plan_step_name(arena, r, row->last - 1)));
    return str_format(arena,
                      "%s bytes only wait while " STR_FMT " runs, " STR_FMT " (for " STR_FMT
                      "): using it before, or computing it again, would lower the peak.",
                      plan_digits(bytes, s->waiting), STR_ARG(where), STR_ARG(most),
                      STR_ARG(plan_step_name(arena, r, next_use(r, row))));
}

/* Has each element the least that a tensor's may have? */
static bool is_of_bytes(const PlanRow *row)
{
    static const char *const narrow[] = {"bool[", "i8[", "u8["};
    bool is = false;
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++)
        is |= row->type.len >= strlen(narrow[i]) && memcmp(row->type.ptr, narrow[i], strlen(narrow[i])) == 0;
    return is;
}

/* One tensor is most of it. */
static Str hint_of_largest(Arena *arena, const PlanReport *r, const Shares *s, Str where)
{
    char bytes[32];
    const PlanRow *row = &r->row[r->blame[0]];
    Str scratch = {0};
    if (s->scratch)
        scratch = str_format(arena, " The kernel's scratch takes %s bytes.", plan_digits(bytes, s->scratch));
    return str_format(arena, STR_FMT " is %.0f %% of what is live at " STR_FMT ": %s would lower the peak." STR_FMT,
                      STR_ARG(row->name), 100.0 * (double)row->bytes / (double)r->peak_live, STR_ARG(where),
                      is_of_bytes(row) ? "making and using it in pieces"
                                       : "a narrower type, or making and using it in pieces,",
                      STR_ARG(scratch));
}

/* No single tensor is to blame: what the step reads and what it writes are both there. */
static Str hint_of_pair(Arena *arena, const PlanReport *r, const Shares *s, Str where)
{
    const PlanRow *read = &r->row[s->read], *written = &r->row[s->written];
    if (ends_there(r, read))
        return str_format(arena,
                          STR_FMT
                          " and " STR_FMT " are both live at " STR_FMT
                          ", where the one ends and the other begins: fusing it with a neighbour, or working in "
                          "pieces, would spare one of them.",
                          STR_ARG(read->name), STR_ARG(written->name), STR_ARG(where));
    return str_format(arena,
                      STR_FMT " begins at " STR_FMT " while " STR_FMT " is still needed by " STR_FMT ": fusing " STR_FMT
                              " away, or computing " STR_FMT " again later, would spare one of them.",
                      STR_ARG(written->name), STR_ARG(where), STR_ARG(read->name),
                      STR_ARG(plan_step_name(arena, r, next_use(r, read))), STR_ARG(written->name),
                      STR_ARG(read->name));
}

static Str main_hint(Arena *arena, const PlanReport *r)
{
    char bytes[32];
    Shares s = shares_of(r);
    const PlanRow *largest = &r->row[r->blame[0]];
    Str where = plan_step_name(arena, r, r->peak_step);
    if (s.scratch * 2 > r->peak_live)
        return str_format(arena,
                          "%s bytes are scratch of " STR_FMT ": only a kernel that works in smaller pieces needs less.",
                          plan_digits(bytes, s.scratch), STR_ARG(where));
    if (s.waiting * 2 > r->peak_live)
        return hint_of_waiting(arena, r, &s, where);
    if (r->blame_count == 1 || largest->bytes * 4 > r->peak_live * 3)
        return hint_of_largest(arena, r, &s, where);
    if (s.read != PLAN_NO_ROW && s.written != PLAN_NO_ROW)
        return hint_of_pair(arena, r, &s, where);
    return str_format(arena, STR_FMT " and " STR_FMT " are the largest of what is live at " STR_FMT ".",
                      STR_ARG(largest->name), STR_ARG(r->row[r->blame[1]].name), STR_ARG(where));
}

typedef struct Rivals {   /* of the fullest step */
    int64_t equal, first; /* steps that are as full, and the first of them */
    int64_t other;        /* the most live bytes at any other step */
} Rivals;

static Rivals find_rivals(const PlanReport *r)
{
    Arena scratch = {0};
    PlanLevel *level;
    uint32_t count = plan_report_levels(&scratch, r, PLAN_NO_ROW, &level);
    Rivals rivals = {0};
    for (uint32_t i = 0; i + 1 < count; i++) {
        int64_t from = level[i].step, steps = level[i + 1].step - from;
        if (from == r->peak_step) {
            from++;
            steps--;
        }
        if (!steps)
            continue;
        if (level[i].live > rivals.other)
            rivals.other = level[i].live;
        if (level[i].live < r->peak_live)
            continue;
        if (!rivals.equal)
            rivals.first = from;
        rivals.equal += steps;
    }
    arena_free(&scratch);
    return rivals;
}

/* How much can be gained at this step at all, before another becomes the fullest. */
static Str limit_of_gain(Arena *arena, const PlanReport *r)
{
    char a[32], b[32];
    Rivals rivals = find_rivals(r);
    if (!rivals.other)
        return (Str){0};
    Str first = plan_step_name(arena, r, rivals.first);
    if (rivals.equal == 1)
        return str_format(arena, " Another step is as full and would have to change as well: " STR_FMT ".",
                          STR_ARG(first));
    if (rivals.equal)
        return str_format(arena, " %s other steps are as full and would have to change as well, the first " STR_FMT ".",
                          plan_digits(a, rivals.equal), STR_ARG(first));
    return str_format(arena, " The next fullest needs %s bytes, so at most %s are to be gained here.",
                      plan_digits(a, rivals.other), plan_digits(b, r->peak_live - rivals.other));
}

void plan_find_blame(Arena *arena, PlanReport *r)
{
    char gap[32];
    r->blame_count = 0;
    r->hint = (Str){0};
    list_live(arena, r);
    if (!r->blame_count || r->peak_live == 1) /* a byte cannot be less */
        return;
    Str first = {0}, main = main_hint(arena, r), limit = limit_of_gain(arena, r);
    if (!r->proven)
        first = str_format(arena,
                           "The plan may lie up to %s bytes above the minimum; --allocator best with a larger "
                           "--effort searches on. ",
                           plan_digits(gap, r->peak - r->lower_bound));
    r->hint = str_format(arena, STR_FMT STR_FMT STR_FMT, STR_ARG(first), STR_ARG(main), STR_ARG(limit));
}
