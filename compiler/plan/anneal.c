/* Where many items begin at one time the gaps that others leave can be filled nearly without a rest, and in many ways,
 * of which those are good that leave few and wide gaps later: what ends together lies together.  So the walk goes
 * through time, and what begins is dealt to the gaps by simulated annealing (anneal_deal.c).  A beam of walks keeps the
 * best; in none is what has been placed ever moved. */
#include "plan/anneal.h"

#include <string.h>

#include "plan/anneal_deal.h"
#include "plan/sort.h"

#define MOVES_PER_ITEM 300
#define MOST_LIVE      1000
#define LEAST_USED     0.875
#define LEAST_BEGINS   6  /* items per section where any begin */
#define HEIGHT_WEIGHT  11 /* of height above what is hoped for, in mean sizes, against costs */

typedef struct Live {
    int64_t at;
    uint32_t item;
} Live;

typedef struct Step { /* of a walk */
    uint32_t parent, count;
    Live *placed;
} Step;

typedef struct Walk {
    Live *live; /* by address */
    uint32_t live_count;
    uint32_t parent; /* the step before */
    Live *placed;    /* in the last section */
    int64_t peak, cost;
} Walk;

typedef struct Begin { /* the items of a section, the largest first */
    uint32_t *item, count;
} Begin;

typedef struct Walks {
    const PlanItems *items;
    const PlanWalk *how;
    Arena arena;
    Begin *begin; /* [section] */
    Step *step;
    uint32_t step_count, step_capacity;
    int64_t mean;
    uint64_t looks;
} Walks;

static uint32_t lower_of(const Walks *w, uint32_t item)
{
    const PlanPiece *piece = &w->items->piece[w->items->item[item].piece];
    return w->how->reversed ? w->items->section_count - piece->upper : piece->lower;
}

static uint32_t upper_of(const Walks *w, uint32_t item)
{
    const PlanPiece *piece = &w->items->piece[w->items->item[item].piece];
    return w->how->reversed ? w->items->section_count - piece->lower : piece->upper;
}

static int64_t size_of(const Walks *w, uint32_t item)
{
    return w->items->item[item].size;
}

/* One section */

typedef struct Turn { /* of one walk at one section */
    Walks *walks;
    Arena *arena; /* of the section */
    PlanDeal deal;
    int64_t *base; /* [gap] */
    const uint32_t *item;
} Turn;

static void add_gap(Turn *t, int64_t from, int64_t to, uint32_t below, uint32_t above)
{
    t->base[t->deal.gap_count] = from;
    t->deal.gap[t->deal.gap_count++] = (DealGap){.size = to - from, .below = below, .above = above, .first = DEAL_NONE};
}

/* Between what stays, up to the height; and the last, without room, on top. */
static void find_gaps(Turn *t, const Walk *walk)
{
    int64_t at = 0, top = walk->peak > t->walks->how->height ? walk->peak : t->walks->how->height;
    uint32_t below = DEAL_NONE;
    t->base = ARENA_ARRAY(t->arena, int64_t, (size_t)walk->live_count + 2);
    t->deal.gap = ARENA_ARRAY(t->arena, DealGap, (size_t)walk->live_count + 2);
    for (uint32_t k = 0; k < walk->live_count; k++) {
        uint32_t item = walk->live[k].item;
        if (walk->live[k].at > at)
            add_gap(t, at, walk->live[k].at, below, upper_of(t->walks, item));
        at = walk->live[k].at + size_of(t->walks, item);
        below = upper_of(t->walks, item);
    }
    if (top > at)
        add_gap(t, at, top, below, DEAL_NONE);
    add_gap(t, top, top, DEAL_NONE, DEAL_NONE);
}

static void set_items(Turn *t, const Begin *begin)
{
    t->item = begin->item;
    t->deal.item = ARENA_ARRAY(t->arena, DealItem, begin->count);
    t->deal.item_count = begin->count;
    for (uint32_t k = 0; k < begin->count; k++)
        t->deal.item[k] =
            (DealItem){.size = size_of(t->walks, begin->item[k]), .upper = upper_of(t->walks, begin->item[k])};
}

/* Where what is free of a gap does least harm: below the first that does not end with its neighbour; DEAL_NONE: at the
 * top. */
static uint32_t place_of_rest(const Turn *t, const DealGap *gap)
{
    uint32_t below = gap->below, i = gap->first;
    if (gap->above == DEAL_NONE)
        return DEAL_NONE;
    for (; i != DEAL_NONE && t->deal.item[i].upper == below; i = t->deal.item[i].next)
        ;
    return i;
}

static void lay_out(const Turn *t, Live *placed)
{
    uint32_t last = t->deal.gap_count - 1;
    int64_t top = t->base[last];
    for (uint32_t g = 0; g <= last; g++) {
        const DealGap *gap = &t->deal.gap[g];
        int64_t at = g == last ? top : t->base[g];
        uint32_t rest = g == last ? DEAL_NONE : place_of_rest(t, gap);
        for (uint32_t i = gap->first; i != DEAL_NONE; i = t->deal.item[i].next) {
            at += i == rest ? gap->size - gap->sum : 0;
            placed[i] = (Live){at, t->item[i]};
            at += t->deal.item[i].size;
        }
        if (g < last && gap->above == DEAL_NONE)
            top = at;
    }
}

/* Edges and holes of all that is live, as the deal counts them. */
static int64_t cost_of(const Walks *w, const Walk *walk)
{
    int64_t cost = 0, at = 0;
    uint32_t below = DEAL_NONE;
    for (uint32_t k = 0; k < walk->live_count; k++) {
        uint32_t item = walk->live[k].item;
        if (walk->live[k].at > at)
            cost += plan_deal_hole(w->mean, walk->live[k].at - at);
        else
            cost += below == upper_of(w, item) || below == DEAL_NONE ? 0 : DEAL_EDGE;
        at = walk->live[k].at + size_of(w, item);
        below = upper_of(w, item);
    }
    return cost;
}

/* What stays, and what has been placed, by address. */
static void merge_live(Walks *w, Arena *arena, Walk *walk, uint32_t count)
{
    uint32_t all = walk->live_count + count;
    Live *live = ARENA_ARRAY(arena, Live, all);
    SortKey *key = ARENA_ARRAY(arena, SortKey, all);
    for (uint32_t k = 0; k < all; k++) {
        const Live *from = k < count ? &walk->placed[k] : &walk->live[k - count];
        int64_t top = from->at + size_of(w, from->item);
        key[k] = (SortKey){(uint64_t)from->at, k};
        walk->peak = top > walk->peak ? top : walk->peak;
    }
    sort_ascending(arena, key, all);
    for (uint32_t k = 0; k < all; k++)
        live[k] = key[k].index < count ? walk->placed[key[k].index] : walk->live[key[k].index - count];
    walk->live = live;
    walk->live_count = all;
}

static void drop_ended(Walks *w, Arena *arena, Walk *walk, uint32_t section)
{
    Live *live = ARENA_ARRAY(arena, Live, walk->live_count);
    uint32_t count = 0;
    for (uint32_t k = 0; k < walk->live_count; k++)
        if (upper_of(w, walk->live[k].item) > section)
            live[count++] = walk->live[k];
    walk->live = live;
    walk->live_count = count;
}

static Walk walk_on(Walks *w, Arena *arena, Walk walk, uint32_t section, uint32_t turn)
{
    const Begin *begin = &w->begin[section];
    Turn t = {.walks = w, .arena = arena, .deal.mean = w->mean};
    t.deal.random = ((uint64_t)w->how->seed << 32 | section) << 16 ^ turn;
    drop_ended(w, arena, &walk, section);
    find_gaps(&t, &walk);
    set_items(&t, begin);
    plan_deal(&t.deal, (uint64_t)MOVES_PER_ITEM * begin->count);
    w->looks -= t.deal.looks < w->looks ? t.deal.looks : w->looks;
    walk.placed = ARENA_ARRAY(arena, Live, begin->count);
    lay_out(&t, walk.placed);
    merge_live(w, arena, &walk, begin->count);
    walk.cost = cost_of(w, &walk);
    return walk;
}

/* The beam */

static uint64_t score_of(const Walks *w, const Walk *walk)
{
    int64_t over = walk->peak > w->how->height ? walk->peak - w->how->height : 0;
    return (uint64_t)(HEIGHT_WEIGHT * plan_deal_part(w->mean, over) + walk->cost);
}

/* The best go on.  Their steps are kept in the arena of all, and what is live in that of the section. */
static uint32_t select_walks(Walks *w, Arena *arena, const Walk *next, uint32_t count, uint32_t begins, Walk *walk)
{
    SortKey *key = ARENA_ARRAY(arena, SortKey, count);
    uint32_t kept = count < w->how->walks ? count : w->how->walks;
    for (uint32_t k = 0; k < count; k++)
        key[k] = (SortKey){score_of(w, &next[k]), k};
    sort_ascending(arena, key, count);
    for (uint32_t k = 0; k < kept; k++) {
        walk[k] = next[key[k].index];
        Step step = {walk[k].parent, begins, arena_copy(&w->arena, walk[k].placed, sizeof(Live) * begins)};
        ARENA_PUSH(&w->arena, w->step, w->step_count, w->step_capacity, step);
        walk[k].parent = w->step_count - 1;
    }
    return kept;
}

/* False when all have come too high, or at the limit of looks. */
static bool walk_all(Walks *w, Arena arena[2], Walk *best)
{
    uint32_t most = w->how->walks, count = 1;
    Walk *walk = ARENA_ARRAY(&w->arena, Walk, most), *next = ARENA_ARRAY(&w->arena, Walk, (size_t)most * most);
    bool good = true;
    walk[0] = (Walk){.parent = DEAL_NONE};
    for (uint32_t section = 0, turn = 0; section < w->items->section_count && good; section++) {
        if (!w->begin[section].count)
            continue;
        turn ^= 1;
        arena_free(&arena[turn]);
        for (uint32_t k = 0; k < count * most; k++)
            next[k] = walk_on(w, &arena[turn], walk[k / most], section, k);
        count = select_walks(w, &arena[turn], next, count * most, w->begin[section].count, walk);
        good = walk[0].peak < w->how->below && w->looks;
    }
    *best = walk[0];
    return good;
}

static void list_begins(Walks *w)
{
    SortKey *key = ARENA_ARRAY(&w->arena, SortKey, w->items->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->items->count; i++)
        if (w->items->item[i].piece_count)
            key[count++] = (SortKey){sort_falling(size_of(w, i)), i};
    sort_ascending(&w->arena, key, count);
    w->begin = ARENA_ARRAY(&w->arena, Begin, w->items->section_count);
    for (uint32_t k = 0; k < count; k++)
        w->begin[lower_of(w, key[k].index)].count++;
    for (uint32_t s = 0; s < w->items->section_count; s++) {
        w->begin[s].item = ARENA_ARRAY(&w->arena, uint32_t, w->begin[s].count);
        w->begin[s].count = 0;
    }
    for (uint32_t k = 0; k < count; k++) {
        Begin *begin = &w->begin[lower_of(w, key[k].index)];
        begin->item[begin->count++] = key[k].index;
    }
}

typedef struct Load {
    int64_t mean; /* size of what is live */
    bool full, crowded;
} Load;

/* Is seven eighths of the fullest section's load live everywhere, and does much begin where anything does? */
static Load load_of(const PlanItems *items)
{
    Arena scratch = {0};
    uint32_t *begins = ARENA_ARRAY(&scratch, uint32_t, (size_t)items->section_count + 1);
    uint32_t *ends = ARENA_ARRAY(&scratch, uint32_t, (size_t)items->section_count + 1);
    uint32_t live = 0, most_live = 0, sections = 0;
    int64_t most = 0;
    double used = 0, lives = 0;
    for (uint32_t p = 0; p < items->piece_count; p++) {
        begins[items->piece[p].lower]++;
        ends[items->piece[p].upper]++;
    }
    for (uint32_t s = 0; s < items->section_count; s++) {
        live += begins[s] - ends[s];
        most_live = live > most_live ? live : most_live;
        most = items->load[s] > most ? items->load[s] : most;
        sections += begins[s] > 0;
        used += (double)items->load[s];
        lives += live;
    }
    arena_free(&scratch);
    return (Load){.mean = used > lives ? (int64_t)(used / lives) : 1,
                  .full = used >= LEAST_USED * (double)most * items->section_count && most_live <= MOST_LIVE,
                  .crowded = items->piece_count >= LEAST_BEGINS * (uint64_t)sections};
}

bool plan_anneal_suits(const PlanItems *items)
{
    Load load = load_of(items);
    return load.full && load.crowded;
}

bool plan_anneal(const PlanItems *items, const PlanWalk *how, uint64_t *looks, int64_t *offset)
{
    Walks w = {.items = items, .how = how, .mean = load_of(items).mean, .looks = *looks};
    Arena arena[2] = {{0}, {0}};
    Walk best;
    list_begins(&w);
    bool good = walk_all(&w, arena, &best);
    if (good) {
        memset(offset, 0, sizeof *offset * items->count);
        for (uint32_t s = best.parent; s != DEAL_NONE; s = w.step[s].parent)
            for (uint32_t k = 0; k < w.step[s].count; k++)
                offset[w.step[s].placed[k].item] = w.step[s].placed[k].at;
    }
    *looks = w.looks;
    arena_free(&arena[0]);
    arena_free(&arena[1]);
    arena_free(&w.arena);
    return good;
}
