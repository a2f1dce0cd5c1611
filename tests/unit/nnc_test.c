/* The NNC algorithm: what makes it one, each shown on the smallest problem that tells the difference. */
#include <stdlib.h>
#include <time.h>

#include "plan/greedy.h"
#include "plan/nnc_graph.h"
#include "plan_random.h"
#include "unit.h"

typedef struct Plan {
    Arena arena;
    PlanItems items;
    int64_t *offset; /* of each buffer */
    int64_t peak;
} Plan;

/* As the rule leaves it: not settled. */
static Plan plan(const PlanBuffer *buffer, uint32_t count, PlanNnc rule)
{
    Plan p = {0};
    PlanProblem problem = {.buffer = buffer, .count = count};
    plan_items(&p.arena, &problem, 0, &p.items);
    int64_t *at = ARENA_ARRAY(&p.arena, int64_t, p.items.count);
    plan_nnc(&p.items, rule, at);
    p.peak = plan_items_peak(&p.items, at);
    p.offset = ARENA_ARRAY(&p.arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        p.offset[i] = at[p.items.buffer_item[i]];
    return p;
}

static PlanBuffer buffer(int64_t size, int64_t first, int64_t last)
{
    return (PlanBuffer){size, 1, first, last, PLAN_FREE, 0, 0};
}

UNIT(the_memory_of_one_tensor_flows_on_to_several)
{
    PlanBuffer b[] = {buffer(100, 0, 2), buffer(60, 2, 4), buffer(40, 3, 5), buffer(25, 4, 6)};
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 4, rule);
        EXPECT_INT(p.peak, 100);
        arena_free(&p.arena);
    }
}

UNIT(a_tensor_takes_over_parts_of_several)
{
    PlanBuffer b[] = {buffer(50, 0, 2), buffer(40, 0, 3), buffer(30, 0, 2), buffer(120, 3, 5)};
    b[0].pinned = 0;
    b[1].pinned = 50;
    b[2].pinned = 90;
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 4, rule);
        EXPECT_INT(p.offset[3], 0);
        arena_free(&p.arena);
    }
}

UNIT(new_bytes_are_only_those_that_are_missing)
{
    PlanBuffer b[] = {buffer(50, 0, 9), buffer(20, 0, 2), buffer(30, 3, 5)};
    b[0].pinned = 0;
    b[1].pinned = 50;
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 3, rule);
        EXPECT_INT(p.offset[2], 50);
        EXPECT_INT(p.peak, 80);
        arena_free(&p.arena);
    }
}

/* The small tensor has the most edges; alone it would lie lowest, and the large ones, with few edges, on others. */
UNIT(three_tensors_are_inserted_together)
{
    enum { SMALL = 0, LARGE = 1, LATE = 2 };
    PlanBuffer b[] = {
        buffer(10, 4, 8), buffer(100, 0, 2), buffer(90, 10, 12), /* a tuple */
        buffer(30, 1, 5), buffer(30, 7, 11),                     /* live with two of it each */
        buffer(5, 4, 5),  buffer(5, 5, 6),   buffer(5, 6, 7),    buffer(5, 7, 8),
    };
    Plan p = plan(b, 9, PLAN_NNC_BY_EDGES);
    EXPECT_INT(p.offset[SMALL], 0);
    EXPECT_INT(p.offset[LARGE], 0);
    EXPECT_INT(p.offset[LATE], 0);
    arena_free(&p.arena);
}

UNIT(the_larger_candidate_comes_first)
{
    PlanBuffer b[] = {buffer(10, 0, 4), buffer(20, 0, 4)};
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 2, rule);
        EXPECT_INT(p.offset[0], 20);
        EXPECT_INT(p.offset[1], 0);
        arena_free(&p.arena);
    }
}

UNIT(of_equal_size_that_with_more_edges_comes_first)
{
    PlanBuffer b[] = {buffer(50, 0, 9), buffer(50, 5, 12), buffer(10, 10, 11), buffer(10, 11, 12)};
    Plan p = plan(b, 4, PLAN_NNC_BY_SIZE);
    EXPECT_INT(p.offset[1], 0);
    EXPECT_INT(p.offset[0], 50);
    arena_free(&p.arena);
}

/* At 0 memory is free from just before the tensor until long after it, at 50 from a little earlier until just then. */
UNIT(the_tightest_edge_in_time_wins)
{
    PlanBuffer b[] = {buffer(50, 0, 5), buffer(50, 20, 22), buffer(50, 0, 4),  buffer(50, 9, 11),
                      buffer(1, 4, 6),  buffer(1, 12, 13),  buffer(1, 14, 15), buffer(20, 6, 8)};
    static const int64_t pin[] = {0, 0, 50, 50, 200, 200, 200};
    for (uint32_t i = 0; i < 7; i++)
        b[i].pinned = pin[i];
    Plan p = plan(b, 8, PLAN_NNC_BY_SIZE);
    EXPECT_INT(p.offset[7], 50);
    arena_free(&p.arena);
}

UNIT(the_room_between_the_uses_of_a_group_is_used)
{
    PlanBuffer b[] = {buffer(100, 0, 2), buffer(100, 6, 8), buffer(60, 2, 6), buffer(40, 3, 5)};
    b[0].group = b[1].group = 7;
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 4, rule);
        EXPECT_INT(p.peak, 100);
        EXPECT_INT(p.offset[0], p.offset[1]);
        arena_free(&p.arena);
    }
}

UNIT(pins_keep_their_place_and_their_memory_flows_on)
{
    PlanBuffer b[] = {buffer(32, 0, 4), buffer(64, 0, 4), buffer(96, 4, 8)};
    b[0].pinned = 64;
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        Plan p = plan(b, 3, rule);
        EXPECT_INT(p.offset[0], 64);
        EXPECT_INT(p.peak, 96);
        arena_free(&p.arena);
    }
}

static NncNeed need_of(const PlanItems *items, uint32_t *piece, uint32_t count)
{
    NncNeed need = {piece, count, items->piece[piece[0]].lower, items->piece[piece[count - 1]].upper, 0, 1};
    for (uint32_t k = 0; k < count; k++)
        need.size = items->piece[piece[k]].size > need.size ? items->piece[piece[k]].size : need.size;
    return need;
}

/* What flows into a piece is its size, and flows out of it later; what leaves the source arrives at the sink. */
static void expect_flows(Unit *unit, Arena *arena, const PlanItems *items, NncGraph *g, int64_t top)
{
    uint32_t count, n = items->piece_count;
    const NncEdge *edge = nnc_graph_edges(g, &count);
    int64_t *in = ARENA_ARRAY(arena, int64_t, n), *out = ARENA_ARRAY(arena, int64_t, n), source = 0, sink = 0;
    for (uint32_t e = 0; e < count; e++) {
        EXPECT(edge[e].bytes > 0 && edge[e].after <= edge[e].before);
        *(edge[e].from == NNC_SOURCE ? &source : &out[edge[e].from]) += edge[e].bytes;
        *(edge[e].to == NNC_SINK ? &sink : &in[edge[e].to]) += edge[e].bytes;
    }
    for (uint32_t k = 0; k < n; k++) {
        EXPECT_INT(in[k], items->piece[k].size);
        EXPECT_INT(out[k], items->piece[k].size);
    }
    EXPECT_INT(source, top);
    EXPECT_INT(sink, top);
}

/* Two or three in a row, if they do not interfere, else one. */
static uint32_t string_of(const PlanItems *items, uint32_t from)
{
    uint32_t count = 1;
    while (count < 3 && from + count < items->piece_count &&
           items->piece[from + count].lower >= items->piece[from + count - 1].upper)
        count++;
    return count;
}

UNIT(what_flows_in_flows_out)
{
    Random random = {1};
    for (uint32_t trial = 0; trial < 300; trial++) {
        Arena arena = {0};
        PlanItems items;
        RandomShape shape = {60, 1 + random_below(&random, 60), 1 + random_below(&random, 12), 100, .regions = 1};
        PlanProblem problem = random_problem(&arena, &random, shape);
        plan_items(&arena, &problem, 0, &items);
        NncGraph *g = nnc_graph_new(&arena, &items);
        uint32_t *piece = ARENA_ARRAY(&arena, uint32_t, items.piece_count);
        int64_t top = 0;
        for (uint32_t k = 0, count; k < items.piece_count; k += count) {
            NncPlace place;
            count = string_of(&items, k);
            for (uint32_t i = 0; i < count; i++)
                piece[i] = k + i;
            NncNeed need = need_of(&items, piece, count);
            if (nnc_graph_find(g, &need, &place))
                nnc_graph_insert(g, &need, place);
            else
                place.offset = nnc_graph_insert_across(g, &need);
            top = place.offset + need.size > top ? place.offset + need.size : top;
        }
        expect_flows(unit, &arena, &items, g, top);
        arena_free(&arena);
        if (unit->failed)
            return;
    }
}

/* Without the settling that hides what a rule does. */
UNIT(every_plan_of_both_rules_is_right)
{
    Random random = {2};
    for (uint32_t trial = 0; trial < 2000; trial++) {
        Arena arena = {0};
        RandomShape shape = {1 + (uint32_t)random_below(&random, trial % 10 ? 30 : 300),
                             1 + random_below(&random, 60),
                             1 + random_below(&random, trial % 3 ? 8 : 40),
                             1 + random_below(&random, 200),
                             .aligned = trial & 4,
                             .grouped = trial & 8,
                             .pinned = trial & 16,
                             .regions = 1};
        PlanProblem problem = random_problem(&arena, &random, shape);
        for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
            Plan p = plan(problem.buffer, problem.count, rule), again = plan(problem.buffer, problem.count, rule);
            PlanResult r = {.offset = p.offset,
                            .region_peak = &p.peak,
                            .region_bound = &p.items.lower_bound,
                            .region_count = 1,
                            .peak = p.peak,
                            .lower_bound = p.items.lower_bound};
            Str message = {0};
            for (uint32_t i = 0; i < problem.count; i++) {
                bool stored = p.items.item[p.items.buffer_item[i]].piece_count > 0;
                EXPECT_INT(again.offset[i], p.offset[i]);
                p.offset[i] = stored ? p.offset[i] : problem.buffer[i].pinned > 0 ? problem.buffer[i].pinned : 0;
            }
            EXPECT(plan_check(&arena, &problem, &r, &message));
            if (unit->failed) {
                printf("# trial %u, rule %d: %.*s\n", trial, (int)rule, STR_ARG(message));
                return;
            }
            arena_free(&p.arena);
            arena_free(&again.arena);
        }
        arena_free(&arena);
    }
}

/* 60,000 tensors with lives of 1 to 32,768 steps: 200 million pairs are live together. */
UNIT(large_problems_take_no_time_and_little_more_than_they_must)
{
    enum { MANY = 60000 };
    Random random = {3};
    PlanBuffer *b = calloc(MANY, sizeof *b);
    for (uint32_t i = 0; i < MANY; i++)
        b[i] = (PlanBuffer){64 + random_below(&random, 1 << 20),
                            64,
                            i,
                            i + 1 + (INT64_C(1) << random_below(&random, 16)),
                            PLAN_FREE,
                            0,
                            0};
    for (PlanNnc rule = 0; rule <= PLAN_NNC_BY_SIZE; rule++) {
        clock_t start = clock();
        Plan p = plan(b, MANY, rule);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC,
               ratio = (double)p.peak / (double)p.items.lower_bound;
        printf("# rule %d: %.2f s, %.3f of the bound\n", (int)rule, seconds, ratio);
        EXPECT(seconds < 10); /* a fraction of a second; quadratic time would be minutes */
        EXPECT(ratio < (rule == PLAN_NNC_BY_SIZE ? 1.05 : 2));
        arena_free(&p.arena);
    }
    free(b);
}

int main(void)
{
    static const Test test[] = {
        RUN(the_memory_of_one_tensor_flows_on_to_several),
        RUN(a_tensor_takes_over_parts_of_several),
        RUN(new_bytes_are_only_those_that_are_missing),
        RUN(three_tensors_are_inserted_together),
        RUN(the_larger_candidate_comes_first),
        RUN(of_equal_size_that_with_more_edges_comes_first),
        RUN(the_tightest_edge_in_time_wins),
        RUN(the_room_between_the_uses_of_a_group_is_used),
        RUN(pins_keep_their_place_and_their_memory_flows_on),
        RUN(what_flows_in_flows_out),
        RUN(every_plan_of_both_rules_is_right),
        RUN(large_problems_take_no_time_and_little_more_than_they_must),
    };
    return UNIT_MAIN(test);
}
