/* Where a value is after loops whose rounds are known: they are walked with the numbers of places instead of addresses,
 * by the rule that the emitted code follows (flow.h).  What repeats is walked once. */
#include "storage/flow_lives.h"

#include <string.h>

#include "ops/meaning.h"

#define MOST_MOVES (1 << 22) /* that are walked; what takes more is not known */

typedef struct Walk {
    const Lives *l;
    const Family *family;
    uint32_t *number; /* per value: its number in the family, NONE */
    uint32_t *place;  /* per member; NONE: not made yet, or elsewhere */
    int64_t moves;
} Walk;

static uint32_t place_of(const Walk *w, ValueId value)
{
    uint32_t member = w->number[flow_whole(w->l, value)];
    return member == NONE ? NONE : w->place[member];
}

/* The first place that nobody is in who must stay. */
static void make(Walk *w, uint32_t member)
{
    const ValueId *avoided = flow_avoided(w->l->memory, w->family->member[member]);
    uint32_t place = 0;
    for (uint32_t i = 0; avoided[i] != NONE && place + 1 < w->family->places; i++)
        if (place_of(w, avoided[i]) == place) {
            place++;
            i = UINT32_MAX; /* from the first on again */
        }
    w->place[member] = place;
}

static void run_kernel(Walk *w, uint32_t step)
{
    w->moves += w->family->count;
    for (uint32_t m = 0; m < w->family->count; m++)
        if (w->l->made[w->family->member[m]] == step && flow_is_made(w->l, w->family->member[m]))
            make(w, m);
}

static void pass_on(Walk *w, const ValueId *to, const ValueId *from, uint32_t count)
{
    uint32_t *place = ARENA_ARRAY(w->l->scratch, uint32_t, count);
    for (uint32_t i = 0; i < count; i++)
        place[i] = place_of(w, from[i]);
    for (uint32_t i = 0; i < count; i++)
        if (w->number[to[i]] != NONE)
            w->place[w->number[to[i]]] = place[i];
    w->moves += count;
}

static bool walk(Walk *w, uint32_t from, uint32_t end);

static const Node *node_at(const Walk *w, uint32_t step)
{
    return &w->l->memory->graph->node[w->l->memory->kernel[step].node[0]];
}

static bool run_round(Walk *w, const Region *loop)
{
    const Node *begin = node_at(w, loop->begin), *end = node_at(w, loop->end);
    ArenaMark mark = arena_mark(w->l->scratch);
    bool known = walk(w, loop->begin + 1, loop->end);
    pass_on(w, begin->out, end->in, begin->out_count);
    arena_reset(w->l->scratch, mark);
    return known && w->moves < MOST_MOVES;
}

/* Brent's way to find a cycle ("An improved Monte Carlo factorization algorithm", 1980): where the places come back to
 * what they were, whole cycles are left out. */
static bool run_rounds(Walk *w, const Region *loop, int64_t rounds)
{
    size_t bytes = w->family->count * sizeof *w->place;
    uint32_t *kept = arena_copy(w->l->scratch, w->place, bytes);
    for (int64_t since = 0, power = 1; rounds > 0;) {
        if (!run_round(w, loop))
            return false;
        rounds--;
        since++;
        if (!memcmp(kept, w->place, bytes))
            rounds %= since;
        if (since < power)
            continue;
        memcpy(kept, w->place, bytes);
        since = 0;
        power *= 2;
    }
    return true;
}

/* Does something between the steps, both included, make or pass a member? */
static bool touches(const Walk *w, uint32_t first, uint32_t last)
{
    bool touched = false;
    for (uint32_t m = 0; m < w->family->count; m++) {
        int64_t made = w->l->made[w->family->member[m]];
        touched |= first <= made && made <= last;
    }
    return touched;
}

/* The region that begins at the step; of branches the last one. */
static const Region *region_at(const Walk *w, uint32_t step)
{
    const Regions *regions = w->l->memory->regions;
    uint32_t found = NONE;
    for (uint32_t r = 1; r < regions->count; r++)
        if (regions->at[r].choice == step || regions->at[r].begin == step)
            found = r;
    return &regions->at[found];
}

static bool run_region(Walk *w, const Region *region, uint32_t step)
{
    const Node *begin = node_at(w, step);
    if (!touches(w, step, region->end))
        return true;
    if (region->kind != REGION_LOOP || region->test != NONE || flow_tests(node_at(w, region->end)))
        return false;
    pass_on(w, begin->out, begin->in, begin->out_count);
    return run_rounds(w, region, flow_most_rounds(begin));
}

/* Recurses over the nesting of loops. */
static bool walk(Walk *w, uint32_t from, uint32_t end)
{
    for (uint32_t step = from; step < end; step++) {
        FlowKind kind = node_flow(node_at(w, step));
        if (kind == FLOW_NONE) {
            run_kernel(w, step);
            continue;
        }
        const Region *region = region_at(w, step);
        if (!run_region(w, region, step))
            return false;
        step = region->end;
    }
    return true;
}

uint32_t flow_place_at(const Lives *l, const Family *family, ValueId value, uint32_t step)
{
    uint32_t values = l->memory->graph->value_count;
    Walk w = {.l = l,
              .family = family,
              .number = ARENA_ARRAY(l->scratch, uint32_t, values),
              .place = ARENA_ARRAY(l->scratch, uint32_t, family->count)};
    for (ValueId v = 0; v < values; v++)
        w.number[v] = NONE;
    for (uint32_t m = 0; m < family->count; m++) {
        w.number[family->member[m]] = m;
        w.place[m] = storage_is_kept(l->memory->storage.at[family->member[m]].role) ? 0 : NONE;
    }
    return walk(&w, 0, step) ? place_of(&w, value) : NONE;
}
