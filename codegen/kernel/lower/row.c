/* A reduction over one row: what lies in it comes in vectors, which are added up side by side. */
#include "kernel/lower/rows.h"
#include "ops/meaning.h"

/* In the order of memory, where blocks of channels are innermost. */
static void blocked_position(Lower *lower, const Rows *rows, Index at, Index *position)
{
    uint32_t rank = rows->space->rank;
    int64_t dim[MAX_RANK + 1];
    Index digit[MAX_RANK + 1];
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = d == 1 ? rows->space->dim[d] / rows->block : rows->space->dim[d];
    dim[rank] = rows->block;
    index_unflatten(lower->arena, at, dim, rank + 1, digit);
    for (uint32_t d = 0; d < rank; d++)
        position[d] = digit[d];
    position[1] = index_add(lower->arena, index_scale(lower->arena, digit[1], rows->block), digit[rank]);
    lower->row_position = at;
}

void lower_row_position(Lower *lower, const Rows *rows, Index at, Index *position)
{
    for (uint32_t d = 0; d < rows->row_rank; d++)
        position[d] = rows->row[d];
    if (rows->block) {
        blocked_position(lower, rows, at, position);
        return;
    }
    index_unflatten(lower->arena, at, rows->space->dim + rows->row_rank, rows->space->rank - rows->row_rank,
                    position + rows->row_rank);
    lower->row_position = at;
}

/* What a stage adds up, for one column: the value, and the statements in front of it. */
typedef struct Stage {
    Block block;
    const Expr *value;
    const Var *column;
} Stage;

static Stage build_stage(Lower *lower, const Rows *rows, const Node *reduce, DType dtype)
{
    Stage stage = {.column = index_var_new(lower->arena, "j", 0, rows->columns - 1)};
    Index position[MAX_RANK];
    Block *outer = lower_enter(lower, &stage.block);
    lower_row_position(lower, rows, index_var(lower->arena, stage.column), position);
    stage.value = expr_cast(lower->arena, dtype, lower_value(lower, reduce->in[0], position));
    lower_leave(lower, outer);
    return stage;
}

/* What the stage has stored is in scratch from now on. */
static void note_spilled(Lower *lower, const Stage *stage)
{
    for (const Stmt *stmt = stage->block.first; stmt; stmt = stmt->next)
        for (uint32_t n = 0; stmt->kind == STMT_STORE && n < lower->kernel->node_count; n++) {
            ValueId value = lower->graph->node[lower->kernel->node[n]].out[0];
            if (lower->spill[value] == stmt->buffer + 1)
                lower->spilled[value] = true;
        }
}

/* The stage at a column, added to an accumulator. */
static void add_stage(Lower *lower, Block *block, const Stage *stage, Index column, const Strands *strands, uint32_t s)
{
    block_append(block, block_substitute(lower->arena, &stage->block, stage->column, column));
    lower_strand_add(lower, block, strands, s, expr_substitute(lower->arena, stage->value, stage->column, column));
}

#define FEW_ELEMENTS 256

/* So few that their text counts more than their time: less than a vector goes one by one. */
bool lower_row_is_small(const Lower *lower, const Rows *rows)
{
    return shape_elements(rows->space) < FEW_ELEMENTS && rows->columns < lower->target->lanes;
}

/* A straight block may be vectors when all its values and stores may.  In strict C99 a few columns go one by one: lanes
 * would take a second text, and their functions. */
static bool stage_vectorizes(const Lower *lower, const Rows *rows, const Stage *stage)
{
    int64_t lanes = lower->target->lanes, fewest = lower->target->dialect == DIALECT_C99 ? 4 * lanes
                                                   : lower_row_is_small(lower, rows)     ? lanes
                                                                                         : LEAST_LANES;
    if (lanes < 2 || rows->columns < fewest || stage->value->dtype != DT_F32 ||
        !expr_vectorizes(stage->value, stage->column))
        return false;
    for (const Stmt *stmt = stage->block.first; stmt; stmt = stmt->next) {
        int64_t factor;
        DType dtype = stmt->value ? stmt->value->dtype : DT_BOOL;
        if ((stmt->kind != STMT_LOCAL && stmt->kind != STMT_STORE) || (dtype != DT_F32 && !dtype_is_half(dtype)) ||
            !expr_vectorizes(stmt->value, stage->column))
            return false;
        if (stmt->kind == STMT_STORE && (!index_factor(stmt->index, stage->column, &factor) || factor != 1))
            return false;
    }
    return true;
}

/* Does it vectorize along the blocks that memory cuts the row into? */
static bool blocks_vectorize(const Lower *lower, const Rows *rows, const Stage *stage)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    if (lanes < 2 || rows->columns % lanes)
        return false;
    const Var *block = index_var_new(arena, "block", 0, rows->columns / lanes - 1),
              *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Index at = index_add(arena, index_scale(arena, index_var(arena, block), lanes), index_var(arena, lane));
    Stage cut = {block_substitute(arena, &stage->block, stage->column, at),
                 expr_substitute(arena, stage->value, stage->column, at), lane};
    return stage_vectorizes(lower, rows, &cut);
}

/* The columns from `begin` on, or this thread's share of them. */
Stmt *lower_row_loop(Lower *lower, const Rows *rows, int64_t begin, const Var **at)
{
    *at = index_var_new(lower->arena, "j", begin, rows->columns - 1);
    Stmt *loop =
        stmt_for(lower->arena, lower->block, *at, begin, rows->columns, rows->team ? rows->team : 1, LOOP_SERIAL);
    if (rows->team)
        loop->low = index_var(lower->arena, rows->thread);
    return loop;
}

typedef struct Columns { /* [begin, end), whole vectors */
    int64_t begin, end, lanes;
    bool again;  /* and the row's last vector, some of it a second time */
    bool blocks; /* memory lies in these, so positions are told by their numbers */
} Columns;

/* One vector, whose lanes are added to the total. */
static void reduce_vector(Lower *lower, const Stage *stage, const Columns *columns, const Strands *total)
{
    Arena *arena = lower->arena;
    const Var *lane = index_var_new(arena, "lane", 0, columns->lanes - 1);
    Block *region = &stmt_lanes(arena, lower->block, lane, (uint32_t)columns->lanes)->body;
    Index column = index_add(arena, index_var(arena, lane), index_constant(columns->begin));
    const Expr *value = expr_substitute(arena, stage->value, stage->column, column);
    const Local *last = value->kind == EXPR_LOCAL ? value->local : lower_local(lower, "last", total->dtype, true);
    block_append(region, block_substitute(arena, &stage->block, stage->column, column));
    if (value->kind != EXPR_LOCAL)
        stmt_local(arena, region, last, value);
    stmt_reduce(arena, region, total->combine, total->acc[0], last);
}

/* In accumulators of vectors, whose lanes are added to the total in the end. */
static void reduce_vectors(Lower *lower, const Rows *rows, const Node *node, Stage stage, const Columns *columns,
                           const Strands *total)
{
    Arena *arena = lower->arena;
    int64_t lanes = columns->lanes, begin = columns->begin, end = columns->end;
    Strands strands = {.combine = total->combine, .dtype = total->dtype};
    strands.count = lower_strands_of(lower, (end - begin) / lanes, &stage.block, stage.value);
    int64_t step = strands.count * lanes;
    int64_t unit = columns->blocks ? lanes : 1; /* of the loop's counter */
    const Var *first = index_var_new(arena, "j", begin / unit, (end - step) / unit),
              *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Block *region = &stmt_lanes(arena, lower->block, lane, (uint32_t)lanes)->body;
    lower_strands_begin(lower, region, &strands);
    bool loops = end - begin > step;
    Block *body =
        loops ? &stmt_for(arena, region, first, begin / unit, end / unit, step / unit, LOOP_SERIAL)->body : region;
    Index at = index_var(arena, lane);
    Index column =
        index_add(arena, loops ? index_scale(arena, index_var(arena, first), unit) : index_constant(begin), at);
    for (uint32_t s = 0; s < strands.count; s++) {
        stage = s ? build_stage(lower, rows, node, total->dtype) : stage;
        add_stage(lower, body, &stage, index_add(arena, column, index_constant(s * lanes)), &strands, s);
    }
    if (columns->again)
        add_stage(lower, region, &stage, index_add(arena, at, index_constant(rows->columns - lanes)), &strands, 0);
    stmt_reduce(arena, region, total->combine, total->acc[0], lower_strands_end(lower, region, &strands));
}

/* In accumulators of neighbours, which are added to the total in the end: as many columns as they divide.  Returns how
 * many that are. */
static int64_t reduce_neighbours(Lower *lower, const Rows *rows, const Node *node, Stage stage, const Strands *total)
{
    Arena *arena = lower->arena;
    Strands strands = {.combine = total->combine, .dtype = total->dtype};
    strands.count = lower_strands_of_neighbours(lower, rows->columns, &stage.block, stage.value);
    if (strands.count < 2)
        return 0;
    int64_t done = rows->columns / strands.count * strands.count;
    const Var *first = index_var_new(arena, "j", 0, done - strands.count);
    lower_strands_begin(lower, lower->block, &strands);
    Block *body = &stmt_for(arena, lower->block, first, 0, done, strands.count, LOOP_SERIAL)->body;
    for (uint32_t s = 0; s < strands.count; s++) {
        stage = s ? build_stage(lower, rows, node, total->dtype) : stage;
        add_stage(lower, body, &stage, index_add(arena, index_var(arena, first), index_constant(s)), &strands, s);
    }
    const Local *sum = lower_strands_end(lower, lower->block, &strands);
    lower_strand_add(lower, lower->block, total, 0, expr_local(arena, sum));
    return done;
}

/* An extreme does not change when elements come again, if nothing but it is made of them. */
static bool may_come_again(const Strands *total, const Stage *stage)
{
    return (total->combine == WORD_MAX || total->combine == WORD_MIN) && !stage->block.first;
}

/* Vector accumulators over whole vectors, then the lanes, then the rest. */
void lower_reduce_row(Lower *lower, const Rows *rows, const Node *node, const Strands *total)
{
    Stage stage = build_stage(lower, rows, node, total->dtype);
    Index picked;
    bool picks = total->combine == WORD_ADD && !rows->team &&
                 lower_pick(lower, &stage.block, stage.value, stage.column, &picked);
    bool vectors = !picks && stage_vectorizes(lower, rows, &stage);
    bool blocks = !picks && !vectors && blocks_vectorize(lower, rows, &stage);
    int64_t done = picks ? rows->columns : 0, lanes = vectors || blocks ? lower->target->lanes : 0;

    if (picks)
        add_stage(lower, lower->block, &stage, picked, total, 0);
    for (; lanes; lanes = lower_rest_lanes(lower, lanes, rows->columns - done)) {
        Columns columns = {done, done + (rows->columns - done) / lanes * lanes, lanes, false, blocks};
        if (columns.end == done)
            continue;
        columns.again = columns.end < rows->columns && may_come_again(total, &stage);
        if (columns.end - done > lanes || columns.again)
            reduce_vectors(lower, rows, node, stage, &columns, total);
        else
            reduce_vector(lower, &stage, &columns, total);
        done = columns.again ? rows->columns : columns.end;
    }
    if (!done && !rows->team && total->dtype != DT_F32)
        done = reduce_neighbours(lower, rows, node, stage, total);
    if (done < rows->columns) {
        const Var *rest;
        Stmt *loop = lower_row_loop(lower, rows, done, &rest);
        add_stage(lower, &loop->body, &stage, index_var(lower->arena, rest), total, 0);
    }
    note_spilled(lower, &stage);
}
