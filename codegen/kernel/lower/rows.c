/* Rows: softmax, layer norm and the like as one kernel of several stages.
 *
 * All reductions of the kernel run over the trailing dimensions of one space [rows ..., columns ...].  For each row:
 * one loop over the columns per reduction, in order, then one loop that stores every result of full shape.  What is
 * cheap is computed again in each stage; what is not (exp, tanh, erf, ...) is kept in a row of scratch.
 *
 * Where the target has teams of threads, a team shares out the columns of a long row, each thread keeps a part of the
 * reduction, and they meet after each stage. Rows run at once, so nothing is kept in scratch. */
#include "base/number.h"
#include "kernel/lower/rows.h"
#include "kernel/lower/strip.h"
#include "passes/extremes.h"
#include "ops/meaning.h"

#include <assert.h>
#include <math.h>

/* The first reduction's space; others must agree with it, and so must the layout. */
static bool rows_space(const Lower *lower, const Shape **space, uint32_t *row_rank, uint32_t *block)
{
    *space = NULL;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        OpFamily family = op_info(node->op)->family;
        if (family == FAMILY_CONTRACT)
            return false;
        if (!node_is_reduction(lower->graph, node))
            continue;
        Reduction reduction = reduction_of(lower->graph, node);
        const Type *type = value_type(lower->graph, node->in[0]);
        uint32_t rank;
        if (!reduction_is_of_rows(&reduction, &rank) || !kernel_rows_lie(type, rank) ||
            shape_elements(&type->shape) == 0)
            return false;
        if (*space && (!shape_eq(*space, &type->shape) || rank != *row_rank || type->layout.block != *block))
            return false;
        *space = &type->shape;
        *row_rank = rank;
        *block = type->layout.block;
    }
    return *space != NULL;
}

static bool is_full(const Lower *lower, const Rows *rows, ValueId value)
{
    return shape_eq(value_shape(lower->graph, value), rows->space);
}

static bool compares(const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    for (uint32_t t = 0; list && t < list->count; t++)
        if (list->term[t].word == WORD_EQ || list->term[t].word == WORD_NE)
            return true;
    return false;
}

/* The word that joins the operands of an elementwise node; WORD_COUNT of any other. */
static Word last_word(const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    return list ? list->term[list->count - 1].word : WORD_COUNT;
}

/* Is it a product, or one with its sign changed, that is rounded, as one by a power of two is not? */
static bool is_rounded_product(const Lower *lower, ValueId value)
{
    const Node *node = value_producer(lower->graph, value);
    while (kernel_makes(lower, value) && last_word(node) == WORD_NEG) {
        value = node->in[0];
        node = value_producer(lower->graph, value);
    }
    if (!kernel_makes(lower, value) || last_word(node) != WORD_MUL)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        double number;
        int exponent;
        if (value_is_number(lower->graph, node->in[i], &number) && fabs(frexp(number, &exponent)) == 0.5)
            return false;
    }
    return true;
}

#define DEEPEST 8 /* nodes between an extreme and what is made of it */

/* Is it an extreme of the value, or made of one, as by a choice of 0 where that is infinite? */
static bool is_of_extreme(const Lower *lower, ValueId of, ValueId value, uint32_t depth)
{
    const Node *made = value_producer(lower->graph, of);
    if (!made || depth > DEEPEST || !(kernel_makes(lower, of) || view_is_reshape(made)))
        return false;
    if (node_is_reduction(lower->graph, made)) {
        Word combine = reduction_of(lower->graph, made).combine;
        return made->in[0] == value && (combine == WORD_MAX || combine == WORD_MIN);
    }
    for (uint32_t i = 0; i < made->in_count; i++)
        if (is_of_extreme(lower, made->in[i], value, depth + 1))
            return true;
    return false;
}

/* Does the node take the difference of the value and its extreme? */
static bool differs_from_extreme(const Lower *lower, const Node *node, ValueId value)
{
    return last_word(node) == WORD_SUB && node->in_count == 2 &&
           is_of_extreme(lower, node->in[node->in[0] == value], value, 0);
}

/* Is it a product from which its extreme is subtracted?  A compiler may make one instruction of both, and what softmax
 * takes the exponential of would be off by half a bit of the extreme: of large numbers, more than exp takes. */
static bool is_subtracted_product(const Lower *lower, ValueId value)
{
    bool differs = false;
    for (uint32_t i = lower->users->first[value]; i < lower->users->first[value + 1] && !differs; i++) {
        const Node *reader = &lower->graph->node[lower->users->user[i]];
        differs = kernel_has(lower, reader) && differs_from_extreme(lower, reader, value);
    }
    return differs && is_rounded_product(lower, value);
}

/* Does an extreme of the kernel read it, and is it stored or compared: with the same bits? */
static bool equals_extreme(const Lower *lower, ValueId value)
{
    bool extreme = false, equals = kernel_stores(lower, value);
    for (uint32_t i = lower->users->first[value]; i < lower->users->first[value + 1]; i++) {
        const Node *reader = &lower->graph->node[lower->users->user[i]];
        if (!kernel_has(lower, reader))
            continue;
        Word combine =
            node_is_reduction(lower->graph, reader) ? reduction_of(lower->graph, reader).combine : WORD_COUNT;
        extreme |= combine == WORD_MAX || combine == WORD_MIN;
        equals |= compares(reader);
    }
    return extreme && equals;
}

/* Is it kept in scratch, which threads of a GPU have not, when it is computed first? */
static bool is_spilled(const Lower *lower, const Rows *rows, const Node *node)
{
    ValueId value = node->out[0];
    bool several = lower->users->first[value + 1] - lower->users->first[value] > 1;
    return !lower->target->team && is_full(lower, rows, value) &&
           ((several && node_is_expensive(node)) || (!extremes_exact(node) && equals_extreme(lower, value)) ||
            is_subtracted_product(lower, value));
}

/* The rows of scratch that the recipe has, in the order of the nodes that fill them. */
static void take_spills(Lower *lower, const Rows *rows)
{
    uint32_t piece = 0;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        if (is_spilled(lower, rows, node))
            lower->spill[node->out[0]] = 1 + lower_scratch(lower, piece++);
    }
}

/* What is computed once a row. */
static const Expr *name_of_row(Lower *lower, const char *name, const Expr *value)
{
    const Local *local = lower_local(lower, name, value->dtype, false);
    stmt_local(lower->arena, lower->block, local, value);
    return expr_local(lower->arena, local);
}

/* One reduction over the row. */
static void reduce_stage(Lower *lower, const Rows *rows, const Node *node)
{
    Arena *arena = lower->arena;
    Reduction reduction = reduction_of(lower->graph, node);
    Strands total = {.combine = reduction.combine, .dtype = reduction.accumulator, .count = 1};
    const Expr *neutral = expr_number(arena, total.dtype, reduction_neutral(total.combine, total.dtype));
    total.acc[0] = lower_local(lower, op_info(node->op)->name + sizeof "reduce_" - 1, total.dtype, false);
    stmt_local(arena, lower->block, total.acc[0], neutral);
    lower_reduce_row(lower, rows, node, &total);
    if (rows->team)
        stmt_meet(arena, lower->block, total.combine, total.acc[0], rows->team);
    const Expr *result = expr_local(arena, total.acc[0]);
    DType dtype = value_type(lower->graph, node->out[0])->dtype;
    lower->bound[node->out[0]] =
        dtype == total.dtype ? result : name_of_row(lower, "r", expr_cast(arena, dtype, result));
}

static void store_full(Lower *lower, void *context, Index at)
{
    const Rows *rows = context;
    Index position[MAX_RANK];
    lower_row_position(lower, rows, at, position);
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        ValueId value = lower->graph->node[lower->kernel->node[n]].out[0];
        if (!kernel_stores(lower, value) || !is_full(lower, rows, value))
            continue;
        const Expr *expr = lower_value(lower, value, position);
        lower_store_at(lower, value, position, expr);
    }
}

/* Row-valued nodes, [rows ...] or [rows ..., 1 ...]: computed once a row, in a local, and stored where asked for. */
static void row_value(Lower *lower, const Rows *rows, ValueId value)
{
    Index position[MAX_RANK];
    const Type *type = value_type(lower->graph, value);
    for (uint32_t d = 0; d < type->shape.rank; d++)
        position[d] = d < rows->row_rank ? rows->row[d] : index_constant(0);
    if (!lower->bound[value])
        lower->bound[value] = name_of_row(lower, "r", lower_value(lower, value, position));
    if (!kernel_stores(lower, value))
        return;
    Block *block = lower->block;
    if (rows->team)
        block = &stmt_if(lower->arena, block, index_var(lower->arena, rows->thread), 0, 1)->body;
    stmt_store(lower->arena, block, lower_buffer(lower, value, true), lower_value_address(lower, value, position),
               lower->bound[value]);
}

static uint32_t count_stored_full(const Lower *lower, const Rows *rows)
{
    uint32_t count = 0;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        ValueId value = lower->graph->node[lower->kernel->node[n]].out[0];
        count += kernel_stores(lower, value) && is_full(lower, rows, value);
    }
    return count;
}

static bool never(const Block *body, const Var *var)
{
    (void)body, (void)var;
    return false;
}

static void store_stage(Lower *lower, Rows *rows)
{
    if (!rows->team) {
        lower_vector_loop(lower, "j", rows->columns, LOOP_SERIAL,
                          lower_row_is_small(lower, rows) ? never : block_vectorizes, store_full, rows);
        return;
    }
    const Var *at;
    Block *outer = lower_enter(lower, &lower_row_loop(lower, rows, 0, &at)->body);
    store_full(lower, rows, index_var(lower->arena, at));
    lower_leave(lower, outer);
}

/* Threads for a row: some columns each; a short row is left to one thread. */
static uint32_t team_for(const Target *target, int64_t columns)
{
    uint32_t team = 32;
    if (!target->team || columns < team)
        return 0;
    while (team * 4 < columns && team < target->team)
        team *= 2;
    return team;
}

static void gather_team(Lower *lower, Rows *rows)
{
    if (!rows->team)
        return;
    rows->thread = index_var_new(lower->arena, "thread", 0, rows->team - 1);
    lower->block = &stmt_for(lower->arena, lower->block, rows->thread, 0, rows->team, 1, LOOP_THREADS)->body;
}

static Rows see_rows(const Lower *lower)
{
    Rows rows = {.columns = 1};
    bool found = rows_space(lower, &rows.space, &rows.row_rank, &rows.block);
    assert(found && "a kernel of rows has a space of rows");
    (void)found;
    for (uint32_t d = rows.row_rank; d < rows.space->rank; d++)
        rows.columns *= rows.space->dim[d];
    return rows;
}

enum { KNOB_TEAM };

/* One thread of a team stores what all of them may have read operands for. */
static bool stores_for_team(const Lower *lower, const Rows *rows, ValueId value)
{
    return rows->team && kernel_stores(lower, value) && !is_full(lower, rows, value);
}

static void plan_spills(Lower *lower, const Rows *rows, Recipe *recipe)
{
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        if (is_spilled(lower, rows, node))
            recipe_scratch(lower, recipe, "row", value_type(lower->graph, node->out[0])->dtype, rows->columns, true);
    }
}

static bool rows_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Rows rows = see_rows(lower);
    int64_t team = team_for(lower->target, rows.columns);
    if (recipe->knob[KNOB_TEAM] == KNOB_FREE)
        recipe->knob[KNOB_TEAM] = team;
    if (!team_fits(lower->target, recipe->knob[KNOB_TEAM]))
        return false;
    rows.team = (uint32_t)recipe->knob[KNOB_TEAM];
    RowSpace space = {rows.space, rows.row_rank, rows.columns};
    for (uint32_t n = 0; n < kernel->node_count; n++)
        recipe->rewrites |= stores_for_team(lower, &rows, lower->graph->node[kernel->node[n]].out[0]);
    recipe->stores_last = !rows.team && count_stored_full(lower, &rows) == 1;
    plan_spills(lower, &rows, recipe);
    if (!rows.team)
        lower_plan_turned(lower, &space, recipe);
    return true;
}

static double rows_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)kernel, (void)recipe;
    return (double)shape_elements(see_rows(lower).space);
}

/* The stages of a row, into the block. */
static void lower_row(Lower *lower, Rows *rows)
{
    gather_team(lower, rows);
    take_spills(lower, rows);
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        if (op_info(node->op)->family == FAMILY_REDUCE)
            reduce_stage(lower, rows, node);
        if (!is_full(lower, rows, node->out[0]) && !kernel_only_reads(lower->graph, node))
            row_value(lower, rows, node->out[0]);
    }
    if (count_stored_full(lower, rows))
        store_stage(lower, rows);
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) { /* later kernels read them from memory */
        ValueId value = lower->graph->node[lower->kernel->node[n]].out[0];
        lower->bound[value] = NULL;
        lower->spilled[value] = false;
    }
}

/* Neighbours in the last dimension of rows, by blocks of so many. */
static void turned_blocks(Lower *lower, Rows *rows, Index *row, TurnedRows turned, int64_t begin, int64_t blocks)
{
    Arena *arena = lower->arena;
    Block *outer = lower->block;
    const Var *block = index_var_new(arena, "block", 0, blocks - 1),
              *r = index_var_new(arena, "r", 0, turned.count - 1);
    if (turned.count < 1 || blocks < 1)
        return;
    if (blocks > 1)
        lower->block = &stmt_for(arena, outer, block, 0, blocks, 1, LOOP_PARALLEL)->body;
    Index first = blocks > 1 ? index_scale(arena, index_var(arena, block), turned.count) : index_constant(0);
    turned.first = index_add(arena, first, index_constant(begin));
    lower_fill_turned(lower, &turned);
    Index at = turned.count > 1 ? index_var(arena, r) : index_constant(0);
    row[rows->row_rank - 1] = index_add(arena, turned.first, at);
    lower->turned = (TurnedValue){true, turned.value, turned.buffer, index_scale(arena, at, rows->columns)};
    if (turned.count > 1)
        lower->block = &stmt_for(arena, lower->block, r, 0, turned.count, 1, LOOP_SERIAL)->body;
    lower_row(lower, rows);
    lower->turned.filled = false;
    lower_leave(lower, outer);
}

static void lower_turned_rows(Lower *lower, Rows *rows, Index *row, uint32_t piece)
{
    int64_t lanes = lower->target->lanes, extent = rows->space->dim[rows->row_rank - 1], whole = extent / lanes;
    RowSpace space = {rows->space, rows->row_rank, rows->columns};
    TurnedRows turned = {.space = &space,
                         .value = lower_turned_operand(lower, &space),
                         .buffer = lower_scratch(lower, piece),
                         .row = row,
                         .count = lanes};
    turned_blocks(lower, rows, row, turned, 0, whole);
    turned.count = extent % lanes;
    turned_blocks(lower, rows, row, turned, whole * lanes, 1);
}

static void rows_lower(Lower *lower)
{
    Rows rows = see_rows(lower);
    Index row[MAX_RANK];
    Block *start = lower->block;
    uint32_t piece = lower_turned_piece(&lower->kernel->recipe);
    rows.team = (uint32_t)lower->kernel->recipe.knob[KNOB_TEAM];
    for (uint32_t d = 0; d + (piece != NONE) < rows.row_rank; d++) {
        const Var *var = index_var_new(lower->arena, lower_loop_names[d], 0, rows.space->dim[d] - 1);
        row[d] = index_var(lower->arena, var);
        if (rows.space->dim[d] > 1)
            lower->block = &stmt_for(lower->arena, lower->block, var, 0, rows.space->dim[d], 1, LOOP_PARALLEL)->body;
    }
    rows.row = row;
    if (piece != NONE)
        lower_turned_rows(lower, &rows, row, piece);
    else
        lower_row(lower, &rows);
    lower_leave(lower, start);
}

void strip_plan_rows(Lower *lower, Recipe *recipe)
{
    Rows rows = see_rows(lower);
    plan_spills(lower, &rows, recipe);
}

void strip_lower_rows(Lower *lower)
{
    const Strip *strip = lower->strip;
    Arena *arena = lower->arena;
    Rows rows = see_rows(lower);
    Index row[MAX_RANK];
    const Var *r = index_var_new(arena, "r", 0, strip->height - 1);
    for (uint32_t d = 0; d + 1 < rows.row_rank; d++)
        row[d] = index_var(arena, strip->loop[d]);
    row[rows.row_rank - 1] = index_add(arena, strip->first, index_var(arena, r));
    rows.row = row;
    Block *block =
        strip->height > 1 ? &stmt_for(arena, lower->block, r, 0, strip->height, 1, LOOP_SERIAL)->body : lower->block;
    Block *outer = lower_enter(lower, block);
    lower_row(lower, &rows);
    lower_leave(lower, outer);
}

const Provider provider_rows = {
    .name = "rows",
    .doc = "stages: one loop over the row per reduction, one for the results",
    .knob = (const KnobSpec[]){{"team", 1024, "threads that share out the columns of a row"}, {NULL, 0, NULL}},
    .forms = 1u << FORM_ROWS,
    .offers = rows_offers,
    .cost = rows_cost,
    .lower = rows_lower,
};
