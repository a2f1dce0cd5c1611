/* Which loops may be dealt to threads, by what their rounds leave in registers. */
#include "storage/carried.h"
#include "unit.h"

/* `before`, then `for row { ... }`, both of a body that a test fills. */
typedef struct Rounds {
    Arena arena;
    Block block;
    Stmt *loop;
    const Var *row;
    Local held, sum;
} Rounds;

static const Expr *number(Rounds *l, double value)
{
    return expr_number(&l->arena, DT_F32, value);
}

static const Expr *local(Rounds *l, const Local *from)
{
    return expr_local(&l->arena, from);
}

static const Expr *plus(Rounds *l, const Expr *x, const Expr *y)
{
    return expr_word(&l->arena, WORD_ADD, DT_F32, x, y, NULL);
}

static void assign(Rounds *l, Block *block, const Local *to, const Expr *value)
{
    stmt_assign(&l->arena, block, to, index_constant(0), index_constant(0), value);
}

static void store(Rounds *l, Block *block, const Expr *value)
{
    stmt_store(&l->arena, block, 0, index_var(&l->arena, l->row), value);
}

/* A weight is held in a register, and a sum declared, before the loop. */
static Block *begin(Rounds *l)
{
    *l = (Rounds){.held = {.name = "w", .dtype = DT_F32, .id = 0}, .sum = {.name = "acc", .dtype = DT_F32, .id = 1}};
    stmt_local(&l->arena, &l->block, &l->held, NULL);
    assign(l, &l->block, &l->held, number(l, 2));
    stmt_local(&l->arena, &l->block, &l->sum, NULL);
    l->row = index_var_new(&l->arena, "row", 0, 7);
    l->loop = stmt_for(&l->arena, &l->block, l->row, 0, 8, 1, LOOP_SERIAL);
    return &l->loop->body;
}

static bool is_dealt(Rounds *l)
{
    const Stmt *found = carried_only_loop(&l->block, &l->arena);
    bool right = !found || found == l->loop;
    arena_free(&l->arena);
    return found && right;
}

UNIT(a_sum_that_each_round_begins_anew)
{
    Rounds l;
    Block *round = begin(&l);
    assign(&l, round, &l.sum, number(&l, 0));
    assign(&l, round, &l.sum, plus(&l, local(&l, &l.sum), local(&l, &l.held)));
    store(&l, round, local(&l, &l.sum));
    EXPECT(is_dealt(&l));
}

UNIT(a_sum_that_goes_on_from_round_to_round)
{
    Rounds l;
    Block *round = begin(&l);
    assign(&l, round, &l.sum, plus(&l, local(&l, &l.sum), local(&l, &l.held)));
    store(&l, round, local(&l, &l.sum));
    EXPECT(!is_dealt(&l));
}

UNIT(a_register_that_is_held_and_then_changed)
{
    Rounds l;
    Block *round = begin(&l);
    store(&l, round, local(&l, &l.held));
    assign(&l, round, &l.held, number(&l, 3));
    EXPECT(!is_dealt(&l));
}

UNIT(a_sum_that_only_some_rounds_begin_anew)
{
    Rounds l;
    Block *round = begin(&l);
    Stmt *some = stmt_if(&l.arena, round, index_var(&l.arena, l.row), 0, 4);
    assign(&l, &some->body, &l.sum, number(&l, 0));
    store(&l, round, local(&l, &l.sum));
    EXPECT(!is_dealt(&l));

    round = begin(&l);
    some = stmt_if(&l.arena, round, index_var(&l.arena, l.row), 0, 4);
    assign(&l, &some->body, &l.sum, number(&l, 0));
    assign(&l, &some->other, &l.sum, number(&l, 1));
    store(&l, round, local(&l, &l.sum));
    EXPECT(is_dealt(&l));
}

UNIT(a_sum_that_an_inner_loop_may_not_begin)
{
    for (int64_t rounds = 0; rounds < 2; rounds++) {
        Rounds l;
        Block *round = begin(&l);
        const Var *inner = index_var_new(&l.arena, "t", 0, 0);
        assign(&l, &stmt_for(&l.arena, round, inner, 0, rounds, 1, LOOP_SERIAL)->body, &l.sum, number(&l, 0));
        store(&l, round, local(&l, &l.sum));
        EXPECT(is_dealt(&l) == (rounds > 0));
    }
}

UNIT(a_position_that_goes_by_a_sum)
{
    Rounds l;
    Block *round = begin(&l);
    Index at = index_data(&l.arena, local(&l, &l.sum), 0, 3);
    stmt_store(&l.arena, round, 0, at, number(&l, 0));
    assign(&l, round, &l.sum, number(&l, 1));
    EXPECT(!is_dealt(&l));
}

UNIT(what_stands_before_the_loop_reads_what_it_makes)
{
    Rounds l;
    begin(&l);
    Local copy = {.name = "copy", .dtype = DT_F32, .id = 2};
    Block around = {0};
    stmt_local(&l.arena, &around, &l.sum, NULL);
    stmt_local(&l.arena, &around, &copy, local(&l, &l.sum));
    l.loop = stmt_for(&l.arena, &around, l.row, 0, 8, 1, LOOP_SERIAL);
    assign(&l, &l.loop->body, &l.sum, number(&l, 0));
    store(&l, &l.loop->body, local(&l, &copy));
    l.block = around;
    EXPECT(!is_dealt(&l));
}

UNIT(lanes_around_the_loop)
{
    Rounds l;
    Block *round = begin(&l);
    assign(&l, round, &l.sum, local(&l, &l.held));
    store(&l, round, local(&l, &l.sum));
    Block around = {0};
    stmt_lanes(&l.arena, &around, index_var_new(&l.arena, "lane", 0, 15), 16)->body = l.block;
    l.block = around;
    EXPECT(is_dealt(&l));

    round = begin(&l);
    assign(&l, round, &l.sum, plus(&l, local(&l, &l.sum), local(&l, &l.held)));
    store(&l, round, local(&l, &l.sum));
    around = (Block){0};
    stmt_lanes(&l.arena, &around, index_var_new(&l.arena, "lane", 0, 15), 16)->body = l.block;
    l.block = around;
    EXPECT(!is_dealt(&l));
}

UNIT(other_work_beside_the_loop)
{
    Rounds l;
    Block *round = begin(&l);
    store(&l, round, local(&l, &l.held));
    stmt_store(&l.arena, &l.block, 0, index_constant(9), number(&l, 0));
    EXPECT(!is_dealt(&l));

    round = begin(&l);
    store(&l, round, local(&l, &l.held));
    assign(&l, &l.block, &l.sum, number(&l, 0)); /* behind the loop */
    EXPECT(!is_dealt(&l));
}

int main(void)
{
    static const Test test[] = {
        RUN(a_sum_that_each_round_begins_anew),
        RUN(a_sum_that_goes_on_from_round_to_round),
        RUN(a_register_that_is_held_and_then_changed),
        RUN(a_sum_that_only_some_rounds_begin_anew),
        RUN(a_sum_that_an_inner_loop_may_not_begin),
        RUN(a_position_that_goes_by_a_sum),
        RUN(what_stands_before_the_loop_reads_what_it_makes),
        RUN(lanes_around_the_loop),
        RUN(other_work_beside_the_loop),
    };
    return unit_main(test, sizeof test / sizeof *test);
}
