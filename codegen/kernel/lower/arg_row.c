/* The position of the extreme element of a row that lies in memory as such.  Each lane of a vector keeps the best that
 * it has seen, and in which vector that was; the least of these numbers, of lanes whose best is that of the row, is the
 * vector where the place is.  The last vector begins inside the one before it. */
#include "base/number.h"
#include "kernel/lower/lower.h"

#define LONG_ROW 4 /* vectors: rows of fewer are better compared side by side */

typedef struct ArgRow {
    Lower *lower;
    const Node *node;
    Word combine;
    uint32_t along;
    Index at[MAX_RANK];
    int64_t lanes, extent, vectors;
    const Var *lane;
    const Local *best, *where;  /* of each lane */
    const Local *most, *vector; /* of the row: its extreme element, and where that is */
} ArgRow;

const Expr *lower_wins(const Lower *lower, Word combine, const Expr *best, const Expr *value)
{
    Arena *arena = lower->arena;
    bool most = combine == WORD_MAX;
    const Expr *wins = expr_word(arena, WORD_LT, DT_BOOL, most ? best : value, most ? value : best, NULL);
    if (!dtype_is_float(value->dtype))
        return wins;
    const Expr *fresh_nan = expr_word(arena, WORD_AND, DT_BOOL, expr_word(arena, WORD_NE, DT_BOOL, value, value, NULL),
                                      expr_word(arena, WORD_EQ, DT_BOOL, best, best, NULL), NULL);
    return expr_word(arena, WORD_OR, DT_BOOL, wins, fresh_nan, NULL);
}

static const Expr *element(const ArgRow *row, Index at)
{
    Index position[MAX_RANK];
    for (uint32_t d = 0; d < MAX_RANK; d++)
        position[d] = d == row->along ? at : row->at[d];
    return expr_cast(row->lower->arena, DT_F32, lower_value(row->lower, row->node->in[0], position));
}

/* The elements of a vector */
static const Expr *elements(const ArgRow *row, Index first)
{
    return element(row, index_add(row->lower->arena, first, index_var(row->lower->arena, row->lane)));
}

typedef struct Steps {
    const Var *lane;
    bool even;
} Steps;

static void check_step(void *context, const Expr *load)
{
    Steps *steps = context;
    int64_t step;
    steps->even &= index_factor(load->index, steps->lane, &step) && (step == 0 || step == 1);
}

/* Are neighbours of the row vectors of neighbours? */
static bool has_vectors(const ArgRow *row)
{
    Lower *lower = row->lower;
    Block trial = {0}, *outer = lower_enter(lower, &trial);
    const Expr *value = elements(row, index_constant(0));
    lower_leave(lower, outer);
    Steps steps = {row->lane, true};
    expr_loads(value, check_step, &steps);
    for (const Stmt *stmt = trial.first; stmt; stmt = stmt->next)
        if (stmt->value)
            expr_loads(stmt->value, check_step, &steps);
    return steps.even && block_vectorizes(&trial, row->lane) && expr_vectorizes(value, row->lane);
}

static void assign(const ArgRow *row, const Local *local, const Expr *value)
{
    stmt_assign(row->lower->arena, row->lower->block, local, index_constant(0), index_constant(0), value);
}

static const Expr *choose(const ArgRow *row, const Expr *truth, const Expr *a, const Expr *b)
{
    return expr_word(row->lower->arena, WORD_SELECT, a->dtype, truth, a, b);
}

/* The best of each lane */
static void compare_vectors(ArgRow *row)
{
    Lower *lower = row->lower;
    Arena *arena = lower->arena;
    const Var *vector = index_var_new(arena, "vector", 1, row->vectors - 1);
    row->best = lower_local(lower, "best", DT_F32, true);
    row->where = lower_local(lower, "where", DT_F32, true);
    stmt_local(arena, lower->block, row->best, elements(row, index_constant(0)));
    stmt_local(arena, lower->block, row->where, expr_number(arena, DT_F32, 0));
    Block *outer = lower_enter(lower, &stmt_for(arena, lower->block, vector, 1, row->vectors, 1, LOOP_SERIAL)->body);
    Index first = lower_last_inside(lower, "first", index_scale(arena, index_var(arena, vector), row->lanes),
                                    row->extent - row->lanes);
    const Local *x = lower_local(lower, "x", DT_F32, true);
    stmt_local(arena, lower->block, x, elements(row, first));
    const Expr *value = expr_local(arena, x), *best = expr_local(arena, row->best),
               *wins = lower_wins(lower, row->combine, best, value);
    assign(row, row->where,
           choose(row, wins, expr_index(arena, DT_F32, index_var(arena, vector)), expr_local(arena, row->where)));
    assign(row, row->best, choose(row, wins, value, best));
    lower_leave(lower, outer);
}

/* Is it the row's extreme element?  That is NaN only if there are such. */
static const Expr *is_most(const ArgRow *row, const Expr *value)
{
    Arena *arena = row->lower->arena;
    const Expr *same = expr_word(arena, WORD_EQ, DT_BOOL, value, expr_local(arena, row->most), NULL),
               *nan = expr_word(arena, WORD_NE, DT_BOOL, value, value, NULL);
    return expr_word(arena, WORD_OR, DT_BOOL, same, nan, NULL);
}

/* The first vector that holds it */
static void find_vector(ArgRow *row)
{
    Arena *arena = row->lower->arena;
    Block *block = row->lower->block;
    stmt_reduce(arena, block, row->combine, row->most, row->best);
    const Local *candidate = lower_local(row->lower, "candidate", DT_F32, true);
    stmt_local(arena, block, candidate,
               choose(row, is_most(row, expr_local(arena, row->best)), expr_local(arena, row->where),
                      expr_number(arena, DT_F32, (double)row->vectors)));
    stmt_reduce(arena, block, WORD_MIN, row->vector, candidate);
}

/* Its first place there: the last one that a loop from the end finds. */
static const Expr *find_place(ArgRow *row)
{
    Lower *lower = row->lower;
    Arena *arena = lower->arena;
    int64_t last = row->extent - row->lanes;
    const Expr *vector = expr_cast(arena, DT_I64, expr_cast(arena, DT_I32, expr_local(arena, row->vector)));
    const Local *first = lower_local(lower, "first", DT_I64, false),
                *place = lower_local(lower, "place", DT_I64, false);
    const Expr *begin =
        expr_word(arena, WORD_MUL, DT_I64, vector, expr_number(arena, DT_I64, (double)row->lanes), NULL);
    stmt_local(arena, lower->block, first,
               expr_word(arena, WORD_MIN, DT_I64, begin, expr_number(arena, DT_I64, (double)last), NULL));
    stmt_local(arena, lower->block, place, expr_local(arena, first));
    const Var *back = index_var_new(arena, "back", 0, row->lanes - 1);
    Index at =
        index_add(arena, index_data(arena, expr_local(arena, first), 0, last),
                  index_add(arena, index_constant(row->lanes - 1), index_scale(arena, index_var(arena, back), -1)));
    Block *outer = lower_enter(lower, &stmt_for(arena, lower->block, back, 0, row->lanes, 1, LOOP_SERIAL)->body);
    const Local *x = lower_local(lower, "x", DT_F32, false);
    stmt_local(arena, lower->block, x, element(row, at));
    assign(row, place,
           choose(row, is_most(row, expr_local(arena, x)), expr_index(arena, DT_I64, at), expr_local(arena, place)));
    lower_leave(lower, outer);
    return expr_local(arena, place);
}

const Expr *lower_arg_row(Lower *lower, const Node *node, const Reduction *reduction, uint32_t along, const Index *at)
{
    Arena *arena = lower->arena;
    const Target *target = lower->target;
    ArgRow row = {.lower = lower, .node = node, .combine = reduction->combine, .along = along, .lanes = target->lanes};
    row.extent = value_shape(lower->graph, node->in[0])->dim[along];
    row.vectors = ceil_div(row.extent, row.lanes);
    for (uint32_t d = 0; d < reduction->rank; d++)
        row.at[d] = at[d];
    row.lane = index_var_new(arena, "lane", 0, row.lanes - 1);
    if (target->dialect != DIALECT_VECTOR || target->small || reduction->accumulator != DT_F32 ||
        row.extent < LONG_ROW * row.lanes || !has_vectors(&row))
        return NULL;
    row.most = lower_local(lower, "most", DT_F32, false);
    row.vector = lower_local(lower, "in_vector", DT_F32, false);
    stmt_local(arena, lower->block, row.most, expr_number(arena, DT_F32, reduction_neutral(row.combine, DT_F32)));
    stmt_local(arena, lower->block, row.vector, expr_number(arena, DT_F32, (double)row.vectors));
    Block *outer = lower_enter(lower, &stmt_lanes(arena, lower->block, row.lane, (uint32_t)row.lanes)->body);
    compare_vectors(&row);
    find_vector(&row);
    lower_leave(lower, outer);
    return find_place(&row);
}
