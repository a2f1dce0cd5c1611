/* The judge of placements.  It reads the problem as given, not the allocators' view of it, and shares no code with
 * them: liveness, alignment, pins, groups, capacities and peaks are all looked at again.
 *
 * Overlap is found by a sweep through addresses.  Buffers are taken in order of offset; a tree over time knows, for
 * every step, which buffer below reaches highest.  A buffer collides with one below it exactly when, somewhere in its
 * life, that one ends above its own start. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan/problem.h"

#define NOBODY UINT32_MAX

typedef struct Entry { /* a buffer in the sweep */
    int64_t offset, end;
    uint32_t region, group, index;
    uint32_t first, last; /* live in [first, last) of compressed time */
} Entry;

typedef struct Judge {
    Arena *arena;
    Arena scratch;
    const PlanProblem *problem;
    const PlanResult *result;
    Str *message;
    Entry *entry;
    uint32_t count;
    int64_t *moment; /* all steps at which a life begins or ends, rising */
    uint32_t moment_count;
    uint32_t *highest, *whole; /* the tree: who reaches highest in any step, and in every step, of a node */
    uint32_t leaves;
    int64_t *peak; /* of each region, as the offsets have it */
} Judge;

/* Always false. */
static bool fault(Judge *j, uint32_t buffer, const char *what, int64_t value)
{
    *j->message = str_format(j->arena, "buffer %u %s (%" PRId64 ")", buffer, what, value);
    return false;
}

static bool check_buffer(Judge *j, uint32_t i)
{
    const PlanBuffer *b = &j->problem->buffer[i];
    int64_t offset = j->result->offset[i];
    if (b->size < 0)
        return fault(j, i, "has a negative size", b->size);
    if (b->first >= b->last)
        return fault(j, i, "is never live", b->first);
    if (b->region >= j->result->region_count)
        return fault(j, i, "is in a region that was not planned", b->region);
    if (offset < 0)
        return fault(j, i, "has a negative offset", offset);
    if (offset > INT64_MAX - b->size)
        return fault(j, i, "ends beyond all addresses", offset);
    if (b->alignment < 1 || offset % b->alignment)
        return fault(j, i, "is not aligned", offset);
    if (b->pinned >= 0 && offset != b->pinned)
        return fault(j, i, "is not where it is pinned", offset);
    if (b->size && offset + b->size > j->peak[b->region])
        j->peak[b->region] = offset + b->size;
    return true;
}

static bool check_peaks(Judge *j)
{
    const PlanProblem *p = j->problem;
    const PlanResult *r = j->result;
    int64_t sum = 0;
    for (uint32_t region = 0; region < r->region_count; region++) {
        int64_t capacity = p->capacity, peak = r->region_peak[region];
        if (p->region_capacity && region < p->region_count && p->region_capacity[region])
            capacity = p->region_capacity[region];
        if (peak != j->peak[region] || peak > INT64_MAX - sum) {
            *j->message = str_format(j->arena, "the peak of region %u is %" PRId64 ", not %" PRId64, region,
                                     j->peak[region], peak);
            return false;
        }
        sum += peak;
        if (capacity && peak > capacity) {
            *j->message = str_format(j->arena, "the peak of region %u, %" PRId64 ", exceeds its capacity, %" PRId64,
                                     region, peak, capacity);
            return false;
        }
    }
    if (sum == r->peak && r->lower_bound >= 0 && r->lower_bound <= r->peak)
        return true;
    *j->message = str_format(j->arena, "the total peak %" PRId64 " disagrees with its parts or its bound", r->peak);
    return false;
}

static int compare_moments(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int compare_entries(const void *a, const void *b) /* total: the index decides last */
{
    const Entry *x = a, *y = b;
    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static uint32_t moment_index(const Judge *j, int64_t step)
{
    uint32_t low = 0, high = j->moment_count;
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (j->moment[middle] <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void list_moments(Judge *j)
{
    const PlanProblem *p = j->problem;
    uint32_t n = 0;
    j->moment = ARENA_ARRAY(&j->scratch, int64_t, 2 * (size_t)p->count + 1);
    for (uint32_t i = 0; i < p->count; i++) {
        j->moment[n++] = p->buffer[i].first;
        j->moment[n++] = p->buffer[i].last;
    }
    qsort(j->moment, n, sizeof *j->moment, compare_moments);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || j->moment[i] != j->moment[i - 1])
            j->moment[j->moment_count++] = j->moment[i];
}

static void list_entries(Judge *j)
{
    const PlanProblem *p = j->problem;
    j->entry = ARENA_ARRAY(&j->scratch, Entry, p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        const PlanBuffer *b = &p->buffer[i];
        int64_t offset = j->result->offset[i];
        if (b->size)
            j->entry[j->count++] = (Entry){
                offset, offset + b->size, b->region, b->group, i, moment_index(j, b->first), moment_index(j, b->last)};
    }
    qsort(j->entry, j->count, sizeof *j->entry, compare_entries);
    for (j->leaves = 1; j->leaves < j->moment_count;)
        j->leaves *= 2;
    j->highest = ARENA_ARRAY(&j->scratch, uint32_t, 2 * (size_t)j->leaves);
    j->whole = ARENA_ARRAY(&j->scratch, uint32_t, 2 * (size_t)j->leaves);
}

static void forget(Judge *j)
{
    memset(j->highest, 0xff, sizeof *j->highest * 2 * j->leaves); /* NOBODY */
    memset(j->whole, 0xff, sizeof *j->whole * 2 * j->leaves);
}

static uint32_t higher(const Judge *j, uint32_t a, uint32_t b)
{
    if (a == NOBODY || b == NOBODY)
        return a == NOBODY ? b : a;
    return j->entry[a].end >= j->entry[b].end ? a : b;
}

/* Who reaches highest in [first, last), of those recorded. */
static uint32_t ask(const Judge *j, uint32_t node, uint32_t from, uint32_t to, const Entry *e)
{
    if (e->last <= from || to <= e->first)
        return NOBODY;
    if (e->first <= from && to <= e->last)
        return j->highest[node];
    uint32_t middle = from + (to - from) / 2;
    uint32_t below = higher(j, ask(j, 2 * node, from, middle, e), ask(j, 2 * node + 1, middle, to, e));
    return higher(j, j->whole[node], below);
}

static void record(Judge *j, uint32_t node, uint32_t from, uint32_t to, uint32_t self)
{
    const Entry *e = &j->entry[self];
    if (e->last <= from || to <= e->first)
        return;
    j->highest[node] = higher(j, j->highest[node], self);
    if (e->first <= from && to <= e->last) {
        j->whole[node] = higher(j, j->whole[node], self);
        return;
    }
    uint32_t middle = from + (to - from) / 2;
    record(j, 2 * node, from, middle, self);
    record(j, 2 * node + 1, middle, to, self);
}

static bool check_overlap(Judge *j)
{
    for (uint32_t i = 0, end; i < j->count; i = end) {
        const Entry *e = &j->entry[i];
        if (i == 0 || e->region != e[-1].region)
            forget(j);
        /* Uses of one group at one offset do not see each other. */
        for (end = i + 1; end < j->count && e->group && j->entry[end].group == e->group &&
                          j->entry[end].offset == e->offset && j->entry[end].region == e->region;)
            end++;
        for (uint32_t k = i; k < end; k++) {
            uint32_t below = ask(j, 1, 0, j->leaves, &j->entry[k]);
            if (below == NOBODY || j->entry[below].end <= j->entry[k].offset)
                continue;
            const Entry *a = &j->entry[below], *b = &j->entry[k];
            *j->message = str_format(j->arena,
                                     "buffers %u and %u are live at one step and overlap: [%" PRId64 ", %" PRId64
                                     ") and [%" PRId64 ", %" PRId64 ")",
                                     a->index, b->index, a->offset, a->end, b->offset, b->end);
            return false;
        }
        for (uint32_t k = i; k < end; k++)
            record(j, 1, 0, j->leaves, k);
    }
    return true;
}

typedef struct Member {
    uint32_t region, group, index;
} Member;

static int compare_members(const void *a, const void *b)
{
    const Member *x = a, *y = b;
    if (x->region != y->region)
        return x->region < y->region ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static bool check_groups(Judge *j)
{
    const PlanProblem *p = j->problem;
    Member *member = ARENA_ARRAY(&j->scratch, Member, p->count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (p->buffer[i].group)
            member[n++] = (Member){p->buffer[i].region, p->buffer[i].group, i};
    qsort(member, n, sizeof *member, compare_members);
    for (uint32_t i = 1; i < n; i++)
        if (member[i].region == member[i - 1].region && member[i].group == member[i - 1].group &&
            j->result->offset[member[i].index] != j->result->offset[member[i - 1].index])
            return fault(j, member[i].index, "is not at the offset of its group", j->result->offset[member[i].index]);
    return true;
}

static bool check_relation(Judge *j)
{
    const PlanProblem *p = j->problem;
    for (uint32_t i = 0; i < p->conflict_count; i++) {
        uint32_t x = p->conflict[i].a, y = p->conflict[i].b;
        const PlanBuffer *a = &p->buffer[x], *b = &p->buffer[y];
        int64_t from = j->result->offset[x], to = j->result->offset[y];
        if (x == y || a->region != b->region || (a->group && a->group == b->group) || !a->size || !b->size ||
            from + a->size <= to || to + b->size <= from)
            continue;
        *j->message = str_format(j->arena, "buffers %u and %u conflict and overlap", x, y);
        return false;
    }
    return true;
}

static bool check_all(Judge *j)
{
    j->peak = ARENA_ARRAY(&j->scratch, int64_t, j->result->region_count);
    for (uint32_t i = 0; i < j->problem->count; i++)
        if (!check_buffer(j, i))
            return false;
    if (!check_peaks(j) || !check_groups(j) || !check_relation(j))
        return false;
    if (!j->problem->count)
        return true;
    list_moments(j);
    list_entries(j);
    return check_overlap(j);
}

bool plan_check(Arena *arena, const PlanProblem *problem, const PlanResult *result, Str *message)
{
    Judge j = {.arena = arena, .problem = problem, .result = result, .message = message};
    if (!result->offset || !result->region_peak) {
        *message = STR("there is no plan");
        return false;
    }
    bool good = check_all(&j);
    arena_free(&j.scratch);
    return good;
}
