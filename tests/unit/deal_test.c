/* Dealing: which loops threads may share, by what their rounds leave in registers, and which nests, by the columns that
 * they touch. */
#include "storage/carried.h"
#include "storage/residues.h"
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

/* A store of elements begin, begin + 1, ... of some columns in each of 8 rows of 100. */
static DealNest columns(Arena *arena, int64_t begin, int64_t count, int64_t row)
{
    Index at = index_constant(begin);
    at = index_add(arena, at, index_scale(arena, index_var(arena, index_var_new(arena, "r", 0, 7)), row));
    if (count > 1)
        at = index_add(arena, at, index_var(arena, index_var_new(arena, "c", 0, count - 1)));
    Reach *reach = ARENA_NEW(arena, Reach);
    *reach = (Reach){.index = at, .low = begin, .high = begin + 7 * row + count - 1, .store = true};
    return (DealNest){.reached = {.at = reach, .count = 1}};
}

/* Columns first ... end - 1 of a, and of b. */
static bool columns_apart(int64_t a, int64_t a_end, int64_t b, int64_t b_end, int64_t b_row, int64_t base)
{
    Arena arena = {0};
    KernelBuffer buffer = {.begin = base};
    Kernel kernel = {.buffer = &buffer, .buffer_count = 1};
    DealNest x = columns(&arena, a, a_end - a, 100), y = columns(&arena, b, b_end - b, b_row);
    bool apart = residues_apart(&kernel, &x, &y, 0);
    arena_free(&arena);
    return apart;
}

UNIT(columns_of_the_same_rows)
{
    EXPECT(columns_apart(0, 96, 96, 100, 100, 0));
    EXPECT(columns_apart(96, 100, 0, 96, 100, 0));
    EXPECT(!columns_apart(0, 97, 96, 100, 100, 0));
    EXPECT(!columns_apart(0, 96, 95, 96, 100, 0));
    EXPECT(columns_apart(0, 50, 50, 60, 100, 30));  /* some go on in the next row ... */
    EXPECT(!columns_apart(0, 50, 60, 101, 100, 0)); /* ... and meet what is there */
    EXPECT(columns_apart(0, 50, 1050, 1060, 100, 0));
    EXPECT(!columns_apart(0, 50, 1040, 1060, 100, 0));
}

UNIT(columns_of_rows_of_other_lengths)
{
    EXPECT(columns_apart(0, 96, 96, 100, 200, 0));
    EXPECT(!columns_apart(0, 96, 96, 100, 99, 0));
    EXPECT(!columns_apart(0, 96, 96, 100, 1, 0));
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
        RUN(columns_of_the_same_rows),
        RUN(columns_of_rows_of_other_lengths),
    };
    return unit_main(test, sizeof test / sizeof *test);
}
