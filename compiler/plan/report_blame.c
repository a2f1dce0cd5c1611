/* Blame: what is live at the fullest step, and what would make it less.  The hints say only what follows from lives and
 * sizes; whether an op can be fused or computed in pieces is for the reader to judge. */
#include <inttypes.h>
#include <string.h>

#include "plan/report.h"
#include "plan/sort.h"

typedef struct Shares { /* of the bytes live at the fullest step */
    int64_t scratch, waiting;
    uint32_t longest; /* the largest row that waits, or PLAN_NO_ROW */
} Shares;

/* Made before the step and used after it. */
static bool waits(const PlanReport *r, const PlanRow *row)
{
    return row->first < r->peak_step && row->last > r->peak_step + 1;
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

static Shares shares_of(const PlanReport *r)
{
    Shares s = {.longest = PLAN_NO_ROW};
    for (uint32_t k = 0; k < r->blame_count; k++) {
        const PlanRow *row = &r->row[r->blame[k]];
        if (row->kind == PLAN_SCRATCH)
            s.scratch += row->bytes;
        if (!waits(r, row))
            continue;
        s.waiting += row->bytes;
        s.longest = s.longest == PLAN_NO_ROW ? r->blame[k] : s.longest;
    }
    return s;
}

Str plan_step_name(Arena *arena, const PlanReport *r, int64_t step)
{
    if (r->step && step >= 0 && step < r->step_count)
        return str_format(arena, STR_FMT " (step %" PRId64 ")", STR_ARG(r->step[step]), step);
    return str_format(arena, "step %" PRId64, step);
}

/* The largest row that ends at the step, or that begins there; PLAN_NO_ROW when there is none. */
static uint32_t largest_at_edge(const PlanReport *r, bool begins)
{
    for (uint32_t k = 0; k < r->blame_count; k++) {
        const PlanRow *row = &r->row[r->blame[k]];
        bool edge = begins ? row->first == r->peak_step : row->first < r->peak_step && row->last == r->peak_step + 1;
        if (edge && row->kind != PLAN_SCRATCH)
            return r->blame[k];
    }
    return PLAN_NO_ROW;
}

/* No single tensor is to blame: what the step reads last and what it writes first are both there. */
static Str hint_of_pair(Arena *arena, const PlanReport *r, Str where)
{
    uint32_t ends = largest_at_edge(r, false), begins = largest_at_edge(r, true);
    if (ends == PLAN_NO_ROW || begins == PLAN_NO_ROW)
        return str_format(arena, STR_FMT " and " STR_FMT " are the largest of what is live at " STR_FMT ".",
                          STR_ARG(r->row[r->blame[0]].name), STR_ARG(r->row[r->blame[1]].name), STR_ARG(where));
    return str_format(arena,
                      STR_FMT " and " STR_FMT " are both live at " STR_FMT
                              ", where the one ends and the other begins: fusing it with a neighbour, or working in "
                              "pieces, would spare one of them.",
                      STR_ARG(r->row[ends].name), STR_ARG(r->row[begins].name), STR_ARG(where));
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
        return str_format(arena,
                          "%s bytes only wait at " STR_FMT ", most of all " STR_FMT " (until " STR_FMT
                          "): using it sooner, or computing it again before that, would lower the peak.",
                          plan_digits(bytes, s.waiting), STR_ARG(where), STR_ARG(r->row[s.longest].name),
                          STR_ARG(plan_step_name(arena, r, r->row[s.longest].last - 1)));
    if (r->blame_count == 1 || largest->bytes * 4 > r->peak_live * 3)
        return str_format(arena,
                          STR_FMT " is %.0f %% of what is live at " STR_FMT
                                  ": only a narrower type, or making and using it in pieces, lowers the peak.",
                          STR_ARG(largest->name), 100.0 * (double)largest->bytes / (double)r->peak_live,
                          STR_ARG(where));
    return hint_of_pair(arena, r, where);
}

/* How much can be gained at this step at all, before another becomes the fullest. */
static Str limit_of_gain(Arena *arena, const PlanReport *r)
{
    char a[32], b[32];
    Arena scratch = {0};
    PlanLevel *level;
    uint32_t count = plan_report_levels(&scratch, r, PLAN_NO_ROW, &level);
    int64_t other = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool only_here = level[i].step == r->peak_step && i + 1 < count && level[i + 1].step == r->peak_step + 1;
        if (!only_here && level[i].live > other)
            other = level[i].live;
    }
    arena_free(&scratch);
    if (!other)
        return (Str){0};
    if (other == r->peak_live)
        return STR(" Other steps are as full, and would have to change as well.");
    return str_format(arena, " The next fullest needs %s bytes, so at most %s are to be gained here.",
                      plan_digits(a, other), plan_digits(b, r->peak_live - other));
}

void plan_find_blame(Arena *arena, PlanReport *r)
{
    char gap[32];
    r->blame_count = 0;
    r->hint = (Str){0};
    list_live(arena, r);
    if (!r->blame_count)
        return;
    Str first = {0}, main = main_hint(arena, r), limit = limit_of_gain(arena, r);
    if (!r->proven)
        first = str_format(arena, "The plan may lie up to %s bytes above the minimum; a larger --effort searches on. ",
                           plan_digits(gap, r->peak - r->lower_bound));
    r->hint = str_format(arena, STR_FMT STR_FMT STR_FMT, STR_ARG(first), STR_ARG(main), STR_ARG(limit));
}
