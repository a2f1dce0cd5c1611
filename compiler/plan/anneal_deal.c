/* Simulated annealing (Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 1983) in
 * integers, so that it goes the same way on every machine.  A move takes an item to a place in another gap, or lets two
 * change places.  Costs: a gap that holds too much, the root of what is free in a gap, so that it stays together, and
 * every edge between neighbours that do not end together, since what ends together leaves one gap. */
#include "plan/anneal_deal.h"

#define OVER   (200 * DEAL_UNIT)
#define STAGES 72 /* of falling temperature: half after every eighth */
#define WARM   (20 * DEAL_UNIT)
#define LN_2   45426 /* in 65,536ths */

static uint64_t draw(PlanDeal *d) /* splitmix64 (Steele, Lea and Flood, 2014) */
{
    uint64_t z = d->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t draw_below(PlanDeal *d, uint32_t limit)
{
    return (uint32_t)((draw(d) >> 32) * limit >> 32);
}

int64_t plan_deal_part(int64_t mean, int64_t bytes)
{
    if (bytes > INT64_MAX / DEAL_UNIT)
        return bytes / (mean / DEAL_UNIT + 1);
    return bytes * DEAL_UNIT / mean;
}

static int64_t root(int64_t x)
{
    int64_t r = 0;
    for (int64_t bit = INT64_C(1) << 30; bit; bit >>= 1)
        if ((r | bit) * (r | bit) <= x)
            r |= bit;
    return r;
}

int64_t plan_deal_hole(int64_t mean, int64_t bytes)
{
    int64_t part = plan_deal_part(mean, bytes), most = INT64_C(1) << 40;
    return DEAL_EDGE / 2 + root((part < most ? part : most) * DEAL_UNIT) / 2;
}

static int64_t cost_of(PlanDeal *d, const DealGap *gap)
{
    int64_t rest = gap->size - gap->sum, cost = 0;
    uint32_t below = gap->below;
    for (uint32_t i = gap->first; i != DEAL_NONE; i = d->item[i].next) {
        cost += below == d->item[i].upper ? 0 : DEAL_EDGE;
        below = d->item[i].upper;
    }
    d->looks += 1 + gap->count;
    if (rest < 0)
        return cost + OVER + OVER / DEAL_UNIT * 10 * plan_deal_part(d->mean, -rest);
    if (rest > 0)
        return cost + plan_deal_hole(d->mean, rest);
    return cost + (below == gap->above || gap->above == DEAL_NONE ? 0 : DEAL_EDGE);
}

/* Lists */

typedef struct Spot {
    uint32_t gap, prev; /* the item below, or DEAL_NONE */
} Spot;

static Spot take(PlanDeal *d, uint32_t i)
{
    DealItem *item = &d->item[i];
    DealGap *gap = &d->gap[item->gap];
    if (item->prev == DEAL_NONE)
        gap->first = item->next;
    else
        d->item[item->prev].next = item->next;
    if (item->next != DEAL_NONE)
        d->item[item->next].prev = item->prev;
    gap->sum -= item->size;
    gap->count--;
    return (Spot){item->gap, item->prev};
}

static void put(PlanDeal *d, uint32_t i, Spot spot)
{
    DealItem *item = &d->item[i];
    DealGap *gap = &d->gap[spot.gap];
    uint32_t *link = spot.prev == DEAL_NONE ? &gap->first : &d->item[spot.prev].next;
    item->gap = spot.gap;
    item->prev = spot.prev;
    item->next = *link;
    *link = i;
    if (item->next != DEAL_NONE)
        d->item[item->next].prev = i;
    gap->sum += item->size;
    gap->count++;
}

/* Any place in a gap. */
static Spot draw_spot(PlanDeal *d, uint32_t gap)
{
    Spot spot = {gap, DEAL_NONE};
    for (uint32_t k = draw_below(d, d->gap[gap].count + 1); k > 0; k--)
        spot.prev = spot.prev == DEAL_NONE ? d->gap[gap].first : d->item[spot.prev].next;
    return spot;
}

/* Moves */

/* A rise in cost is taken with the probability exp(-rise / temperature): a number of that distribution is made of the
 * zeros of random bits, which fall by halves. */
static bool accepts(PlanDeal *d, int64_t rise, int64_t temperature)
{
    uint64_t bits = draw(d), halves = 0;
    if (rise <= 0)
        return true;
    while (halves < 40 && !(bits >> (63 - halves) & 1))
        halves++;
    uint64_t exponential = ((halves << 16) + (bits & 0xffff)) * LN_2 >> 16;
    return rise <= (int64_t)((uint64_t)temperature * exponential >> 16);
}

typedef struct Costs {
    int64_t a, b;
} Costs;

static Costs costs_of(PlanDeal *d, uint32_t a, uint32_t b)
{
    return (Costs){cost_of(d, &d->gap[a]), a == b ? 0 : cost_of(d, &d->gap[b])};
}

/* Keeps what was done in two gaps, or says that it has to be undone. */
static bool settle(PlanDeal *d, uint32_t a, uint32_t b, int64_t temperature)
{
    Costs new = costs_of(d, a, b);
    if (!accepts(d, new.a + new.b - d->gap[a].cost - (a == b ? 0 : d->gap[b].cost), temperature))
        return false;
    d->gap[a].cost = new.a;
    if (a != b)
        d->gap[b].cost = new.b;
    return true;
}

static void try_move(PlanDeal *d, uint32_t i, uint32_t gap, int64_t temperature)
{
    Spot from = take(d, i);
    put(d, i, draw_spot(d, gap));
    if (!settle(d, from.gap, gap, temperature)) {
        take(d, i);
        put(d, i, from);
    }
}

static void try_swap(PlanDeal *d, uint32_t i, uint32_t gap, int64_t temperature)
{
    uint32_t k = d->gap[gap].first;
    for (uint32_t n = draw_below(d, d->gap[gap].count); n > 0; n--)
        k = d->item[k].next;
    if (k == i)
        return;
    Spot of_i = take(d, i), of_k = take(d, k);
    put(d, i, of_k);
    put(d, k, of_i.prev == k ? (Spot){gap, i} : of_i);
    if (!settle(d, of_i.gap, gap, temperature)) {
        take(d, k);
        take(d, i);
        put(d, k, of_k);
        put(d, i, of_i);
    }
}

/* Begin and end */

static void put_best(PlanDeal *d, uint32_t i)
{
    uint32_t best = d->gap_count - 1;
    int64_t least = INT64_MAX;
    for (uint32_t g = 0; g + 1 < d->gap_count; g++) {
        int64_t rest = d->gap[g].size - d->gap[g].sum - d->item[i].size;
        if (rest >= 0 && rest < least) {
            least = rest;
            best = g;
        }
    }
    d->looks += d->gap_count;
    put(d, i, (Spot){best, DEAL_NONE});
}

/* What is least and leaves a gap that is not too full, or the largest, goes to where it fits, if anywhere. */
static void relieve(PlanDeal *d, uint32_t g)
{
    DealGap *gap = &d->gap[g];
    while (gap->sum > gap->size) {
        uint32_t least = DEAL_NONE, most = gap->first;
        for (uint32_t i = gap->first; i != DEAL_NONE; i = d->item[i].next) {
            if (d->item[i].size >= gap->sum - gap->size &&
                (least == DEAL_NONE || d->item[i].size < d->item[least].size))
                least = i;
            most = d->item[i].size > d->item[most].size ? i : most;
        }
        uint32_t out = least == DEAL_NONE ? most : least;
        take(d, out);
        put(d, out, (Spot){d->gap_count - 1, DEAL_NONE});
    }
}

void plan_deal(PlanDeal *d, uint64_t moves)
{
    static const int64_t eighth[] = {65536, 60097, 55109, 50535, 46341, 42495, 38968, 35734}; /* powers of 2^(-1/8) */
    uint32_t last = d->gap_count - 1;
    for (uint32_t i = 0; i < d->item_count; i++)
        put_best(d, i);
    for (uint32_t g = 0; g < d->gap_count; g++)
        d->gap[g].cost = cost_of(d, &d->gap[g]);
    for (uint32_t stage = 0; stage < STAGES; stage++)
        for (uint64_t m = moves / STAGES; m > 0; m--) {
            int64_t temperature = ((int64_t)WARM >> stage / 8) * eighth[stage % 8] >> 16;
            uint32_t i = draw_below(d, d->item_count), gap = draw_below(d, d->gap_count);
            if (draw(d) >> 63 || !d->gap[gap].count)
                try_move(d, i, gap, temperature);
            else
                try_swap(d, i, gap, temperature);
        }
    for (uint32_t g = 0; g < last; g++)
        relieve(d, g);
    for (uint32_t i = 0; i < d->item_count; i++)
        if (d->item[i].gap == last) {
            take(d, i);
            put_best(d, i);
        }
}
