/* Orders of execution: the search against all orders of small problems, and its manners on larger ones. */
#include <string.h>

#include "base/arena.h"
#include "storage/order.h"
#include "unit.h"

enum { MOST_UNITS = 400 };

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 16;
}

typedef struct Draft {
    uint32_t *item, count, capacity, *first;
} Draft;

static void close_list(Arena *arena, Draft *draft, uint32_t unit)
{
    if (!draft->first)
        draft->first = ARENA_ARRAY(arena, uint32_t, MOST_UNITS + 1);
    draft->first[unit + 1] = draft->count;
}

typedef bool Edge(const void *context, uint32_t from, uint32_t to);

static void push(Arena *arena, Draft *draft, uint32_t item)
{
    ARENA_PUSH(arena, draft->item, draft->count, draft->capacity, item);
}

/* Unit u makes value 2u, some also value 2u + 1, which some of its readers read instead.  Sizes of 0 to 4 (few, so that
 * many operands fit their readers' results); some stay, some may be written over. */
static OrderProblem problem_of(Arena *arena, uint32_t units, uint64_t seed, Edge *edge, const void *context)
{
    OrderProblem problem = {.units = units, .values = 2 * units};
    Draft needs = {0}, made = {0}, read = {0}, over = {0};
    int64_t *bytes = ARENA_ARRAY(arena, int64_t, 2 * units);
    bool *stays = ARENA_ARRAY(arena, bool, 2 * units);
    uint64_t random = seed * 0x9E3779B97F4A7C15 + 1;
    for (uint32_t v = 0; v < 2 * units; v++) {
        bytes[v] = (int64_t)(draw(&random) % 5);
        stays[v] = draw(&random) % 8 == 0;
    }
    for (uint32_t u = 0; u < units; u++) {
        bool two = draw(&random) % 6 == 0;
        push(arena, &made, 2 * u);
        if (two)
            push(arena, &made, 2 * u + 1);
        for (uint32_t from = 0; from < u; from++) {
            if (!edge(context, from, u))
                continue;
            bool second = made.first[from + 1] - made.first[from] == 2 && draw(&random) % 2;
            uint32_t value = 2 * from + second;
            push(arena, &needs, from);
            push(arena, &read, value);
            if (!two && bytes[value] == bytes[2 * u] && draw(&random) % 2)
                push(arena, &over, value);
        }
        close_list(arena, &needs, u);
        close_list(arena, &made, u);
        close_list(arena, &read, u);
        close_list(arena, &over, u);
    }
    problem.needs = (Lists){needs.first, needs.item};
    problem.made = (Lists){made.first, made.item};
    problem.read = (Lists){read.first, read.item};
    problem.over = (Lists){over.first, over.item};
    problem.bytes = bytes;
    problem.stays = stays;
    order_prepare(&problem, arena);
    return problem;
}

static bool edge_in_mask(const void *context, uint32_t from, uint32_t to)
{
    return *(const uint32_t *)context >> (to * (to - 1) / 2 + from) & 1;
}

typedef struct Random {
    uint64_t seed;
    uint32_t percent, reach; /* edges go this far at most */
} Random;

static bool edge_at_random(const void *context, uint32_t from, uint32_t to)
{
    const Random *random = context;
    uint64_t state = random->seed * 1000003 + from * 1009 + to + 1;
    draw(&state);
    draw(&state);
    return to - from <= random->reach && draw(&state) % 100 < random->percent;
}

/* What is live by definition, from the set of units that have run. */

static bool all_readers_in(const OrderProblem *p, uint32_t value, uint32_t set)
{
    bool all = !p->stays[value];
    for (uint32_t i = p->readers.first[value]; i < p->readers.first[value + 1]; i++)
        all &= set >> p->readers.item[i] & 1;
    return all;
}

static int64_t live_after(const OrderProblem *p, uint32_t set)
{
    int64_t live = 0;
    for (uint32_t u = 0; u < p->units; u++)
        for (uint32_t i = p->made.first[u]; i < p->made.first[u + 1]; i++)
            if (set >> u & 1 && !all_readers_in(p, p->made.item[i], set))
                live += p->bytes[p->made.item[i]];
    return live;
}

static int64_t live_during(const OrderProblem *p, uint32_t set, uint32_t unit)
{
    int64_t live = live_after(p, set);
    for (uint32_t i = p->over.first[unit]; i < p->over.first[unit + 1]; i++)
        if (all_readers_in(p, p->over.item[i], set | UINT32_C(1) << unit))
            return live;
    for (uint32_t i = p->made.first[unit]; i < p->made.first[unit + 1]; i++)
        live += p->bytes[p->made.item[i]];
    return live;
}

static bool may_run(const OrderProblem *p, uint32_t set, uint32_t unit)
{
    bool may = !(set >> unit & 1);
    for (uint32_t i = p->needs.first[unit]; i < p->needs.first[unit + 1]; i++)
        may &= set >> p->needs.item[i] & 1;
    return may;
}

/* Every order, one after another. */
static int64_t try_all(const OrderProblem *p, uint32_t set, int64_t peak, int64_t best)
{
    if (set == (UINT32_C(1) << p->units) - 1)
        return peak < best ? peak : best;
    for (uint32_t u = 0; u < p->units; u++) {
        if (!may_run(p, set, u))
            continue;
        int64_t during = live_during(p, set, u), higher = during > peak ? during : peak;
        if (higher < best)
            best = try_all(p, set | UINT32_C(1) << u, higher, best);
    }
    return best;
}

/* Every set, for problems with too many orders. */
static int64_t try_sets(const OrderProblem *p, Arena *arena)
{
    uint32_t all = (UINT32_C(1) << p->units) - 1;
    int64_t *peak = ARENA_ARRAY(arena, int64_t, all + 1);
    memset(peak + 1, 0x7f, all * sizeof *peak);
    for (uint32_t set = 0; set < all; set++)
        for (uint32_t u = 0; u < p->units; u++) {
            uint32_t next = set | UINT32_C(1) << u;
            if (!may_run(p, set, u))
                continue;
            int64_t during = live_during(p, set, u), higher = during > peak[set] ? during : peak[set];
            peak[next] = higher < peak[next] ? higher : peak[next];
        }
    return peak[all];
}

static int64_t peak_by_definition(const OrderProblem *p, const uint32_t *order)
{
    int64_t peak = 0;
    uint32_t set = 0;
    for (uint32_t i = 0; i < p->units; i++) {
        int64_t during = live_during(p, set, order[i]);
        peak = during > peak ? during : peak;
        set |= UINT32_C(1) << order[i];
    }
    return peak;
}

static void given_order(const OrderProblem *p, uint32_t *order)
{
    for (uint32_t u = 0; u < p->units; u++)
        order[u] = u;
}

/* Is the improved order legal, no worse than the given one, and that itself unless better?  Returns its peak. */
static int64_t improve(Unit *unit, const OrderProblem *p, const OrderEffort *effort, bool *best, Arena *arena)
{
    uint32_t given[MOST_UNITS], order[MOST_UNITS], again[MOST_UNITS];
    size_t size = p->units * sizeof *order;
    given_order(p, given);
    given_order(p, order);
    given_order(p, again);
    *best = order_improve(p, order, effort, arena);
    EXPECT(order_improve(p, again, effort, arena) == *best);
    EXPECT(memcmp(order, again, size) == 0);
    EXPECT(order_is_legal(p, order, arena));
    int64_t before = order_peak(p, given, arena), after = order_peak(p, order, arena);
    EXPECT(after < before || memcmp(order, given, size) == 0);
    if (p->units <= 12)
        EXPECT_INT(after, peak_by_definition(p, order));
    return after;
}

UNIT(every_graph_of_six_units_is_ordered_best)
{
    Arena arena = {0};
    uint32_t lowered = 0, tried = 0;
    for (uint32_t units = 1; units <= 6 && !unit->failed; units++)
        for (uint32_t mask = 0; mask < UINT32_C(1) << units * (units - 1) / 2 && !unit->failed; mask++) {
            ArenaMark mark = arena_mark(&arena);
            OrderProblem problem = problem_of(&arena, units, mask + 1, edge_in_mask, &mask);
            uint32_t order[6];
            bool best;
            given_order(&problem, order);
            int64_t least = try_all(&problem, 0, 0, INT64_MAX);
            EXPECT_INT(improve(unit, &problem, &order_effort, &best, &arena), least);
            EXPECT(best);
            lowered += least < order_peak(&problem, order, &arena);
            tried++;
            if (unit->failed)
                printf("# %u units, edges %x\n", units, mask);
            arena_reset(&arena, mark);
        }
    printf("# %u graphs, %u with a better order\n", tried, lowered);
    arena_free(&arena);
}

UNIT(random_graphs_of_twelve_units_are_ordered_best)
{
    Arena arena = {0};
    const OrderEffort beam = {.beam = 20000, .width = 3};
    uint32_t lowered = 0, same = 0, rounds = 600;
    for (uint64_t seed = 1; seed <= rounds && !unit->failed; seed++) {
        ArenaMark mark = arena_mark(&arena);
        Random random = {seed, 10 + seed % 7 * 8, seed % 3 ? 12 : 4};
        OrderProblem problem = problem_of(&arena, 7 + seed % 6, seed, edge_at_random, &random);
        uint32_t order[12];
        bool best;
        given_order(&problem, order);
        int64_t least = try_sets(&problem, &arena), given = order_peak(&problem, order, &arena);
        EXPECT_INT(improve(unit, &problem, &order_effort, &best, &arena), least);
        EXPECT(best);
        int64_t found = improve(unit, &problem, &beam, &best, &arena);
        EXPECT(found <= given && (!best || found == least));
        lowered += least < given;
        same += found == least;
        if (unit->failed)
            printf("# seed %llu\n", (unsigned long long)seed);
        arena_reset(&arena, mark);
    }
    printf("# %u graphs, %u with a better order; a beam of 3 finds the best of %u\n", rounds, lowered, same);
    arena_free(&arena);
}

UNIT(larger_graphs_keep_to_the_rules)
{
    Arena arena = {0};
    uint32_t lowered = 0, proven = 0, rounds = 60;
    for (uint64_t seed = 1; seed <= rounds && !unit->failed; seed++) {
        ArenaMark mark = arena_mark(&arena);
        Random random = {seed, 1 + seed % 20, seed % 2 ? 400 : 20};
        OrderProblem problem = problem_of(&arena, 20 + 6 * (uint32_t)seed, seed, edge_at_random, &random);
        uint32_t order[MOST_UNITS];
        bool best, short_best;
        OrderEffort effort = {.exact = 20000, .beam = 200000, .width = 16},
                    less = {.exact = 100, .beam = 3000, .width = 9};
        given_order(&problem, order);
        int64_t given = order_peak(&problem, order, &arena);
        int64_t found = improve(unit, &problem, &effort, &best, &arena);
        int64_t sooner = improve(unit, &problem, &less, &short_best, &arena);
        EXPECT(found <= given && sooner <= given && (!best || found <= sooner) && (!short_best || sooner <= found));
        lowered += found < given;
        proven += best;
        if (unit->failed)
            printf("# seed %llu\n", (unsigned long long)seed);
        arena_reset(&arena, mark);
    }
    printf("# %u graphs, %u lowered, %u proven\n", rounds, lowered, proven);
    EXPECT(lowered > 20 && proven > 0);
    arena_free(&arena);
}

int main(void)
{
    static const Test test[] = {
        RUN(every_graph_of_six_units_is_ordered_best),
        RUN(random_graphs_of_twelve_units_are_ordered_best),
        RUN(larger_graphs_keep_to_the_rules),
    };
    return UNIT_MAIN(test);
}
