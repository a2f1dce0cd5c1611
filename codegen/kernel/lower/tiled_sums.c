/* The sums of a tile: where they start, and where they go. */
#include "kernel/lower/tiled_body.h"

void tiled_position(const Tiled *con, Index pixel, Index column, Index *position)
{
    Arena *arena = con->lower->arena;
    uint32_t rank = value_shape(con->lower->graph, con->node->out[0])->rank;
    for (uint32_t d = 0; d < rank; d++) {
        position[d] = index_substitute(arena, con->position[d], con->pixel, pixel);
        position[d] = index_substitute(arena, position[d], con->column, column);
    }
}

Index tiled_sum(Body *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

Index tiled_times(Body *body, const Var *var, int64_t factor)
{
    return index_scale(body->arena, index_var(body->arena, var), factor);
}

Block *tiled_small_loop(Body *body, Block *block, const char *name, int64_t first, int64_t extent, Index *index)
{
    *index = index_constant(first);
    if (extent == 1)
        return block;
    const Var *var = index_var_new(body->arena, name, first, first + extent - 1);
    *index = index_var(body->arena, var);
    return &stmt_for(body->arena, block, var, first, first + extent, 1, LOOP_ROLLED)->body;
}

static Index panel_column(Body *body, uint32_t vector)
{
    const PanelGroup *group = body->at->group;
    int64_t lanes = body->con->lanes;
    Index column = index_constant((group->first + vector) * lanes);
    return tiled_sum(body, column, tiled_times(body, group->panel, group->vectors * lanes));
}

static void tile_position(Body *body, Index pixel, uint32_t vector, Index *position)
{
    tiled_position(body->con, tiled_sum(body, body->at->pixel, pixel),
                   tiled_sum(body, panel_column(body, vector), body->lane), position);
}

/* The bias of a row, or of a column of the bundle. */
static const Expr *bias_of(Body *body, Index row, Index column)
{
    const Tiled *con = body->con;
    if (con->by_pixels)
        return lower_value(body->lower, con->node->in[2], &row);
    column = tiled_sum(body, column, tiled_times(body, con->bundle, con->columns));
    return lower_value(body->lower, con->node->in[2], &column);
}

typedef const Expr *StartValue(Body *body, uint32_t pixel, uint32_t vector);

static const Expr *start_bias(Body *body, uint32_t pixel, uint32_t vector)
{
    const Node *node = body->con->node;
    if (node->in_count < 3 || body->at->group->partial) /* partial panels add it in the epilogue */
        return expr_number(body->arena, DT_F32, 0);
    return bias_of(body, tiled_sum(body, body->at->pixel, index_constant(pixel)),
                   tiled_sum(body, panel_column(body, vector), body->lane));
}

static Index stored_address(Body *body, Index pixel, uint32_t vector)
{
    Index position[MAX_RANK];
    tile_position(body, pixel, vector, position);
    return lower_value_address(body->lower, body->con->stored, position);
}

/* Where the sums of the tile's first pixel lie in the scratch of the panel: [pixel][column of the panel]; of panels
 * together: [panel][...]. */
static Index scratch_of_tile(Body *body)
{
    const Tiled *con = body->con;
    int64_t width = body->vectors * con->lanes;
    Index first = index_scale(body->arena, body->at->pixel, width);
    if (!con->together)
        return first;
    Index panel =
        tiled_sum(body, index_var(body->arena, body->at->group->panel), index_scale(body->arena, con->first_panel, -1));
    return tiled_sum(body, first, index_scale(body->arena, panel, con->out_w * width));
}

static Index scratch_address(Body *body, Index pixel, uint32_t vector)
{
    int64_t lanes = body->con->lanes;
    Index within =
        tiled_sum(body, index_scale(body->arena, pixel, body->vectors * lanes), index_constant(vector * lanes));
    return tiled_sum(body, tiled_sum(body, body->tile_sums, within), body->lane);
}

/* Sums between rounds: in the memory of the result, or in scratch where the weights come packed by round. */
static uint32_t partial_buffer(Body *body)
{
    const Tiled *con = body->con;
    return con->packed ? lower_buffer(body->lower, con->stored, true)
                       : lower_scratch(body->lower, con->piece[PIECE_PARTIAL]);
}

static Index partial_address(Body *body, Index pixel, uint32_t vector)
{
    return body->con->packed ? stored_address(body, pixel, vector) : scratch_address(body, pixel, vector);
}

static const Expr *partial_sum(Body *body, Index pixel, uint32_t vector)
{
    uint32_t from = partial_buffer(body);
    body->lower->kernel->buffer[from].read = true;
    return expr_load(body->arena, DT_F32, from, partial_address(body, pixel, vector));
}

static const Expr *start_partial(Body *body, uint32_t pixel, uint32_t vector)
{
    return partial_sum(body, index_constant(pixel), vector);
}

static const Expr *sum_at(Body *body, uint32_t pixel, uint32_t vector)
{
    return expr_local_at(body->arena, body->acc, index_constant(pixel), index_constant(vector));
}

/* What is loaded for the first pixel, as a bias is, serves those that start with the same. */
static void start_all(Body *body, Block *block, StartValue *value)
{
    const Expr *first[MOST_PIXELS];
    Block *outer = lower_enter(body->lower, block);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            const Expr *start = value(body, p, v);
            first[v] = p ? first[v] : start;
            if (p && start->kind == EXPR_LOAD && expr_eq(start, first[v]))
                start = sum_at(body, 0, v);
            stmt_assign(body->arena, body->lower->block, body->acc, index_constant(p), index_constant(v), start);
        }
    lower_leave(body->lower, outer);
}

void tiled_start(Body *body, Block *inner)
{
    if (!body->partial_sums) {
        start_all(body, inner, start_bias);
        return;
    }
    if (!body->con->packed)
        body->tile_sums = lower_named_address(body->lower, inner, "sums", scratch_of_tile(body));
    Stmt *first = stmt_if(body->arena, inner, index_var(body->arena, body->con->round), 0, 1);
    start_all(body, &first->body, start_bias);
    start_all(body, &first->other, start_partial);
}

static void store_results(Body *body, Block *block)
{
    Lower *lower = body->lower;
    ValueId result = body->con->node->out[0];
    Block *outer = lower_enter(lower, block);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            Index position[MAX_RANK];
            tile_position(body, index_constant(p), v, position);
            lower->bound[result] = sum_at(body, p, v);
            lower_stores(lower, position);
        }
    lower->bound[result] = NULL;
    lower_leave(lower, outer);
}

static void store_sums(Body *body, Block *block)
{
    uint32_t to = partial_buffer(body);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++)
            stmt_store(body->arena, block, to, partial_address(body, index_constant(p), v), sum_at(body, p, v));
}

/* Results that no vector can store (the last lanes are past the end, columns apart in memory, an epilogue in another
 * dtype) pass through scratch and are finished one by one. */
static void spill_sums(Body *body, Block *block, uint32_t scratch)
{
    int64_t width = body->vectors * body->con->lanes;
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            int64_t at = p * width + tiled_panel_vector(body->con, body->at->group, v);
            stmt_store(body->arena, block, scratch, tiled_sum(body, index_constant(at), body->lane),
                       sum_at(body, p, v));
        }
}

typedef struct Left { /* what is left in scratch of sums, by pixels and columns */
    Body *body;
    uint32_t scratch;
    Index pixel;
} Left;

static void finish_left(Lower *lower, void *context, Index column)
{
    Left *left = context;
    Body *body = left->body;
    Tiled *con = body->con;
    const PanelGroup *group = body->at->group;
    Index position[MAX_RANK];
    Index at = tiled_sum(body, index_scale(body->arena, left->pixel, group->vectors * con->lanes), column);
    const Expr *sum = expr_load(body->arena, DT_F32, left->scratch, at);
    Index row = tiled_sum(body, body->at->pixel, left->pixel);
    column = tiled_sum(body, panel_column(body, 0), column);
    if (con->node->in_count > 2 && group->partial)
        sum = expr_word(body->arena, WORD_ADD, DT_F32, sum, bias_of(body, row, column), NULL);
    tiled_position(con, row, column, position);
    lower->bound[con->node->out[0]] = sum;
    lower_stores(lower, position);
    lower->bound[con->node->out[0]] = NULL;
}

/* Of a product the columns are neighbours, of an image the pixels. */
static void finish_one_by_one(Body *body, Block *block, uint32_t scratch)
{
    Tiled *con = body->con;
    Lower *lower = body->lower;
    const PanelGroup *group = body->at->group;
    int64_t columns = group->partial ? con->columns - group->first * con->lanes : group->vectors * con->lanes;
    Left left = {.body = body, .scratch = scratch};
    Index column;

    if (con->is_product && columns >= LEAST_LANES) {
        block = tiled_small_loop(body, block, "p", 0, body->pixels, &left.pixel);
        Block *outer = lower_enter(lower, block);
        lower_vector_loop(lower, "o", columns, LOOP_SERIAL, block_vectorizes, finish_left, &left);
        lower_leave(lower, outer);
        return;
    }
    block = tiled_small_loop(body, block, "o", 0, columns, &column);
    block = tiled_small_loop(body, block, "p", 0, body->pixels, &left.pixel);
    Block *outer = lower_enter(lower, block);
    finish_left(lower, &left, column);
    lower_leave(lower, outer);
}

/* Do the sums of the last round, too, lie where those between rounds do, from where they are finished? */
static bool finishes_partial(const Body *body)
{
    return body->partial_sums && body->con->rolled;
}

/* The sums of a pixel at a time, from where they have been left. */
static void finish_in_loop(Body *body, Block *block)
{
    const Tiled *con = body->con;
    bool partial = finishes_partial(body);
    uint32_t sums = partial ? NONE : lower_scratch(body->lower, con->piece[PIECE_SUMS]);
    Lower *lower = body->lower;
    Arena *arena = body->arena;
    ValueId result = con->node->out[0];
    Index pixel, position[MAX_RANK];

    block = tiled_small_loop(body, block, "p", 0, body->pixels, &pixel);
    Block *outer = lower_enter(lower, block);
    Index row = tiled_sum(body, index_scale(arena, pixel, body->vectors * con->lanes), body->lane);
    for (uint32_t v = 0; v < body->vectors; v++) {
        Index at = tiled_sum(body, row, index_constant(v * con->lanes));
        Index column = tiled_sum(body, panel_column(body, v), body->lane);
        tiled_position(con, tiled_sum(body, body->at->pixel, pixel), column, position);
        lower->bound[result] = partial ? partial_sum(body, pixel, v) : expr_load(arena, DT_F32, sums, at);
        lower_stores(lower, position);
    }
    lower->bound[result] = NULL;
    lower_leave(lower, outer);
}

static Stmt *in_last_round(Body *body, Block *block)
{
    const Tiled *con = body->con;
    return stmt_if(body->arena, block, index_var(body->arena, con->round), con->rounds - 1, con->rounds);
}

void tiled_finish(Body *body, Block *block, Block *inner)
{
    const Tiled *con = body->con;
    if (finishes_partial(body)) {
        store_sums(body, inner);
        finish_in_loop(body, &in_last_round(body, inner)->body);
        return;
    }
    if (body->partial_sums) {
        Stmt *last = in_last_round(body, inner);
        inner = &last->body;
        store_sums(body, &last->other);
    }
    bool whole = !con->one_by_one && !body->at->group->partial;
    if (whole && !con->rolled) {
        store_results(body, inner);
        return;
    }
    uint32_t sums = lower_scratch(con->lower, con->piece[PIECE_SUMS]);
    spill_sums(body, inner, sums);
    if (whole)
        finish_in_loop(body, inner);
    else
        finish_one_by_one(body, body->partial_sums ? &in_last_round(body, block)->body : block, sums);
}
