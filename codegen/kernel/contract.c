/* Contractions by the register-tiled micro-kernel: which ones, seen as what (contract.h), and in which order of loops.
 * Needs: f32 operands and result, ungrouped, at least a vector of columns, a first operand in memory whose address is
 * affine in the pixel and in the depth within a block.  Otherwise nothing is changed and windows do it. */
#include "kernel/contract.h"

#include <string.h>

static bool is_f32(const Lower *lower, ValueId value)
{
    return value_type(lower->graph, value)->dtype == DT_F32;
}

/* The first operand */

/* Its load at a position, from memory; NULL when it is computed here. */
static const Expr *operand_load(Tiled *con, const Index *position)
{
    Lower *lower = con->lower;
    const Expr *expr = kernel_makes(lower, con->node->in[0]) ? NULL : lower_value(lower, con->node->in[0], position);
    return expr && expr->kind == EXPR_LOAD && expr->dtype == DT_F32 ? expr : NULL;
}

static int64_t largest_divisor(int64_t of, int64_t limit)
{
    while (of % limit)
        limit--;
    return limit;
}

static Index at_depth(const Tiled *con, const Var *depth)
{
    Arena *arena = con->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth),
                     index_var(arena, depth));
}

static void set_blocks(Tiled *con, int64_t block_depth)
{
    con->block_depth = block_depth;
    con->block_count = con->depth / block_depth;
    con->block = var_new(con->lower->arena, "block", 0, ceil_div(con->depth, block_depth) - 1);
}

static bool set_operand(Tiled *con, const Expr *load, const Var *depth, const Var *h, const Var *w)
{
    Arena *arena = con->lower->arena;
    Index zero = index_constant(0);
    if (!index_factor(load->index, depth, &con->x_depth) || !index_factor(load->index, w, &con->x_w) ||
        (h && !index_factor(load->index, h, &con->x_h)))
        return false;
    con->x = load->buffer;
    con->x_base = index_substitute(arena, index_substitute(arena, load->index, depth, zero), w, zero);
    if (h)
        con->x_base = index_substitute(arena, con->x_base, h, zero);
    return true;
}

/* Convolution */

/* The image that a pointwise convolution reads may be computed in its kernel, a row at a time. */
static bool see_computed(Tiled *con)
{
    if (con->taps_h * con->taps_w * con->stride_h * con->stride_w != 1 || con->pad_top || con->pad_left ||
        con->out_h != con->in_h || con->out_w != con->in_w || con->depth % con->lanes)
        return false;
    con->computed = true;
    con->x = lower_scratch(con->lower, DT_F32, con->in_w * con->depth, "line");
    con->x_depth = 1;
    con->x_w = con->lanes;
    con->x_base = index_scale(con->lower->arena, index_var(con->lower->arena, con->block), con->in_w * con->lanes);
    return true;
}

/* One dimension of the window, and what it makes of a dimension less: height 1. */
static WindowDimension window_dimension(const Window *window, uint32_t from_last)
{
    WindowDimension one = {1, 1, 1, 1, 1, 0, 0};
    return from_last < window->rank ? window->dim[window->rank - 1 - from_last] : one;
}

static void see_window(Tiled *con, const Convolution *conv)
{
    WindowDimension h = window_dimension(&conv->window, 1), w = window_dimension(&conv->window, 0);
    con->out_h = h.out, con->out_w = w.out, con->columns = conv->outputs;
    con->in_h = h.in, con->in_w = w.in, con->depth = conv->channels;
    con->taps_h = h.size, con->taps_w = w.size;
    con->stride_h = h.stride, con->stride_w = w.stride;
    con->dilation_h = h.dilation, con->dilation_w = w.dilation;
    con->pad_top = h.before, con->pad_left = w.before;
    set_blocks(con, con->lanes);
}

static bool see_conv(Tiled *con, const Convolution *conv)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    uint32_t rank = conv->window.rank;
    if (conv->groups != 1 || rank < 1 || rank > 2)
        return false;

    see_window(con, conv);
    const Var *image = var_new(arena, "n", 0, conv->images - 1), *depth = var_new(arena, "c", 0, con->lanes - 1);
    const Var *h = var_new(arena, "h", 0, con->in_h - 1), *column = var_new(arena, "w", 0, con->in_w - 1);
    con->outer[con->outer_count++] = image;
    con->pixel = var_new(arena, "pixel", 0, con->out_h * con->out_w - 1);
    con->column = var_new(arena, "o", 0, con->columns - 1);
    Index pixel = index_var(arena, con->pixel);
    con->position[0] = index_var(arena, image);
    con->position[1] = index_var(arena, con->column);
    con->position[2] = index_div(arena, pixel, con->out_w);
    con->position[1 + rank] = index_mod(arena, pixel, con->out_w);

    if (kernel_makes(lower, con->node->in[0]))
        return rank == 2 && see_computed(con);
    Index position[MAX_RANK] = {index_var(arena, image), at_depth(con, depth), index_var(arena, h)};
    position[1 + rank] = index_var(arena, column);
    const Expr *load = operand_load(con, position);
    return load && set_operand(con, load, depth, h, column);
}

/* Matmul: rows are the pixels of an image of height 1. */

typedef struct Rows { /* how the batch and the rows become loops and pixels */
    uint32_t batch;   /* dimensions of the result before the rows */
    bool flat;        /* the batch joins the rows */
    int64_t inner;    /* pixels; rows / inner are a loop outside */
} Rows;

static void see_rows(Tiled *con, const Rows *rows)
{
    Arena *arena = con->lower->arena;
    const Shape *y = value_shape(con->lower->graph, con->node->out[0]);
    bool row = con->product.has_rows;
    int64_t extent = con->product.rows;

    con->outer_count = 0;
    for (uint32_t d = 0; d < rows->batch && !rows->flat; d++) {
        con->outer[con->outer_count] = var_new(arena, loop_names[d], 0, y->dim[d] - 1);
        con->position[d] = index_var(arena, con->outer[con->outer_count++]);
    }
    for (uint32_t d = 0; d < rows->batch && rows->flat; d++)
        extent *= y->dim[d];
    con->out_w = rows->inner ? rows->inner : extent;
    con->pixel = var_new(arena, "m", 0, con->out_w - 1);
    Index at = index_var(arena, con->pixel);
    if (con->out_w != extent) {
        const Var *outer = var_new(arena, "m0", 0, extent / con->out_w - 1);
        con->outer[con->outer_count++] = outer;
        at = index_add(arena, at, index_scale(arena, index_var(arena, outer), con->out_w));
    }
    if (rows->flat)
        index_unflatten(arena, at, y->dim, rows->batch + row, con->position);
    else if (row)
        con->position[rows->batch] = at;
    con->position[y->rank - 1] = index_var(arena, con->column);
}

static const Expr *rows_operand(Tiled *con, const Rows *rows, const Var *depth)
{
    const Shape *x = value_shape(con->lower->graph, con->node->in[0]);
    Index position[MAX_RANK] = {0};
    for (uint32_t d = 0; d + 2 < x->rank; d++)
        position[d] = x->dim[d] == 1 ? index_constant(0) : con->position[rows->batch - (x->rank - 2) + d];
    if (x->rank > 1)
        position[x->rank - 2] = con->position[rows->batch];
    position[x->rank - 1] = at_depth(con, depth);
    return operand_load(con, position);
}

static bool batched(const Shape *shape)
{
    for (uint32_t d = 0; d + 2 < shape->rank; d++)
        if (shape->dim[d] != 1)
            return true;
    return false;
}

/* Tries this view of the rows; where the address cuts them or the depth, says where. */
static bool try_rows(Tiled *con, Rows *rows, bool *again)
{
    Arena *arena = con->lower->arena;
    const Var *depth = var_new(arena, "c", 0, con->block_depth - 1);
    *again = false;
    see_rows(con, rows);
    const Expr *load = rows_operand(con, rows, depth);
    if (!load)
        return false;
    if (set_operand(con, load, depth, NULL, con->pixel))
        return true;
    int64_t cut = index_cut(load->index, con->pixel), factor;
    if (cut > 1 && cut < con->out_w && con->out_w % cut == 0) {
        rows->inner = cut;
        *again = true;
    } else if (!index_factor(load->index, depth, &factor)) {
        const Var *k = var_new(arena, "k", 0, con->depth - 1); /* not yet cut into blocks */
        int64_t block = con->block_depth;
        con->block = var_new(arena, "block", 0, 0);
        load = rows_operand(con, rows, k);
        cut = load ? index_cut(load->index, k) : 0;
        if (cut > 1 && con->depth % cut == 0) {
            int64_t divisor = largest_divisor(cut, least(cut, 2 * con->lanes));
            *again = divisor != block;
            set_blocks(con, divisor);
        }
    }
    return false;
}

static bool see_matmul(Tiled *con)
{
    Lower *lower = con->lower;
    const Product *product = &con->product;
    if (!product->has_columns)
        return false;

    Rows rows = {.batch = product->batch_rank, .flat = !batched(value_shape(lower->graph, con->node->in[1]))};
    con->columns = product->columns;
    con->depth = product->depth;
    con->out_h = con->in_h = con->taps_h = con->taps_w = 1;
    con->stride_h = con->stride_w = con->dilation_h = con->dilation_w = 1;
    con->column = var_new(lower->arena, "n", 0, con->columns - 1);
    for (int flat = rows.flat; flat >= 0; flat--) {
        bool again = true;
        rows.flat = flat;
        rows.inner = 0;
        set_blocks(con, con->lanes);
        for (int round = 0; again && round < 4; round++)
            if (try_rows(con, &rows, &again)) {
                con->in_w = con->out_w;
                return true;
            }
    }
    return false;
}

/* Results */

/* The one stored result, when it has the type of the sums. */
static ValueId result_for_sums(const Lower *lower, const Node *anchor)
{
    ValueId found = NONE;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++) {
            if (!kernel_stores(lower, node->out[r]))
                continue;
            if (found != NONE || value_type(lower->graph, node->out[r]) != value_type(lower->graph, anchor->out[0]))
                return NONE;
            found = node->out[r];
        }
    }
    return found;
}

/* Can the epilogue compute and store a vector of columns? Tried out on the side. */
static bool stores_vectors(Tiled *con)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Block trial = {0}, *outer = lower_enter(lower, &trial);
    const Local *sum = lower_local(lower, "acc", DT_F32, true);

    lower->bound[con->node->out[0]] = expr_local(arena, sum);
    lower_stores(lower, con->position);
    lower->bound[con->node->out[0]] = NULL;
    lower_leave(lower, outer);

    const Var *lane = var_new(arena, "lane", 0, con->lanes - 1),
              *vector = var_new(arena, "v", 0, con->columns / con->lanes - 1);
    Index column = index_add(arena, index_var(arena, lane), index_scale(arena, index_var(arena, vector), con->lanes));
    for (const Stmt *stmt = trial.first; stmt; stmt = stmt->next) {
        int64_t factor;
        if (stmt->kind != STMT_LOCAL && stmt->kind != STMT_STORE)
            return false;
        if (!expr_vectorizes(expr_substitute(arena, stmt->value, con->column, column), lane))
            return false;
        Index to = stmt->kind == STMT_STORE ? index_substitute(arena, stmt->index, con->column, column)
                                            : index_var(arena, lane);
        if (stmt->value->dtype != DT_F32 || !index_factor(to, lane, &factor) || factor != 1)
            return false;
    }
    return true;
}

static void prepare_spill(Tiled *con)
{
    uint32_t vectors = 0;
    for (uint32_t g = 0; g < con->group_count; g++)
        if ((con->one_by_one || con->group[g].partial) && con->group[g].vectors > vectors)
            vectors = con->group[g].vectors;
    con->spill = vectors ? lower_scratch(con->lower, DT_F32, con->pixels * vectors * con->lanes, "sums") : NONE;
}

/* The nest */

static Block *loop_of(Tiled *con, Block *block, const Var *var, int64_t extent, LoopKind kind)
{
    return extent > 1 ? &stmt_for(con->lower->arena, block, var, 0, extent, 1, kind)->body : block;
}

/* The tile of a loop at round `round`, in the row when tiles stay in rows. */
static void tile(Tiled *con, Block *block, const TileLoop *loop, const PanelGroup *group, Index round,
                 const Var *row)
{
    Arena *arena = con->lower->arena;
    TileAt at = {.loop = loop, .group = group, .row = row};
    at.pixel = index_add(arena, index_constant(loop->pixel), index_scale(arena, round, loop->pixel_step));
    at.x = index_add(arena, index_constant(loop->x), index_scale(arena, round, loop->x_step));
    at.tile = index_add(arena, index_constant(loop->tile), index_scale(arena, round, loop->tile_step));
    if (row) {
        Index r = index_var(arena, row);
        at.pixel = index_add(arena, at.pixel, index_scale(arena, r, con->out_w));
        at.x = index_add(arena, at.x, index_scale(arena, r, con->stride_h * con->x_h));
        at.tile = index_add(arena, at.tile, index_scale(arena, r, con->tiling.tiles));
    }
    contraction_tile(con, block, &at);
}

static void all_tiles(Tiled *con, Block *block, const PanelGroup *group, const Var *row)
{
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        const TileLoop *loop = &con->tiling.loop[i];
        const Var *t = var_new(con->lower->arena, "t", 0, loop->count - 1);
        Block *inner = loop_of(con, block, t, loop->count, LOOP_SERIAL);
        tile(con, inner, loop, group, index_var(con->lower->arena, t), row);
    }
}

static const Var *row_loop(Tiled *con, Block **block, LoopKind kind)
{
    if (!con->tiling.rows)
        return NULL;
    const Var *row = var_new(con->lower->arena, "row", 0, con->out_h - 1);
    *block = loop_of(con, *block, row, con->out_h, kind);
    return row;
}

static void panels_outside(Tiled *con, Block *block)
{
    for (uint32_t g = 0; g < con->group_count; g++) {
        const PanelGroup *group = &con->group[g];
        Block *inner = loop_of(con, block, group->panel, group->count, LOOP_PARALLEL);
        if (!group->partial)
            inner = loop_of(con, inner, con->round, con->rounds, LOOP_SERIAL);
        const Var *row = row_loop(con, &inner, LOOP_SERIAL);
        all_tiles(con, inner, group, row);
    }
}

static void panels_of_row(Tiled *con, Block *block, const Var *row)
{
    for (uint32_t g = 0; g < con->group_count; g++) {
        Block *inner = loop_of(con, block, con->group[g].panel, con->group[g].count, LOOP_SERIAL);
        all_tiles(con, inner, &con->group[g], row);
    }
}

typedef struct Line { /* the pixel of the computed row that is being made, and its block of channels */
    const Tiled *con;
    const Var *row, *block, *w;
} Line;

static void line_element(Lower *lower, void *context, Index at)
{
    const Line *line = context;
    const Tiled *con = line->con;
    Arena *arena = lower->arena;
    Index block = index_var(arena, line->block), w = index_var(arena, line->w);
    Index channel = index_add(arena, index_scale(arena, block, con->lanes), at);
    Index position[] = {con->position[0], channel, index_var(arena, line->row), w};
    Index pixel = index_add(arena, index_scale(arena, block, con->in_w), w);
    stmt_store(arena, lower->block, con->x, index_add(arena, index_scale(arena, pixel, con->lanes), at),
               lower_value(lower, con->node->in[0], position));
}

/* The computed row, and what is made of it. */
static void line_and_panels(Tiled *con, Block *block, const Var *row)
{
    Lower *lower = con->lower;
    Line line = {con, row, var_new(lower->arena, "b", 0, con->depth / con->lanes - 1),
                 var_new(lower->arena, "w", 0, con->in_w - 1)};
    Block *inner = loop_of(con, block, line.block, con->depth / con->lanes, LOOP_SERIAL);
    inner = loop_of(con, inner, line.w, con->in_w, LOOP_SERIAL);
    Block *outer = lower_enter(lower, inner);
    lower_vector_loop(lower, "c", con->lanes, LOOP_SERIAL, line_element, &line);
    lower_leave(lower, outer);
    panels_of_row(con, block, row);
}

static void chunks_of_row(Tiled *con, Block *block)
{
    const Var *row = row_loop(con, &block, con->computed ? LOOP_SERIAL : LOOP_PARALLEL);
    if (con->computed)
        line_and_panels(con, block, row);
    else
        panels_of_row(con, block, row);
}

/* The rows of one pooling window at a time: into the band, and out of it. */
static void pooled_rows(Tiled *con, Block *block)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    block = loop_of(con, block, con->pool_row, con->pool_row->high + 1, LOOP_SERIAL);
    const Var *row = var_new(arena, "row", 0, con->out_h - 1);
    Stmt *rows = stmt_for(arena, block, row, 0, con->out_h, 1, LOOP_SERIAL);
    rows->low = lower->band.first;
    rows->high = index_add(arena, rows->low, index_constant(con->pool_window));
    if (con->computed)
        line_and_panels(con, &rows->body, row);
    else
        panels_of_row(con, &rows->body, row);

    Block *outer = lower_enter(lower, block);
    lower->band.filled = true;
    lower_window_row(lower, con->pool, con->position[0], index_var(arena, con->pool_row));
    lower->band.filled = false;
    lower_leave(lower, outer);
}

/* A pooling that fuse has joined to the convolution: its windows do not overlap from row to row. */
static void see_pool(Tiled *con)
{
    Lower *lower = con->lower;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        if (op_info(node->op)->family == FAMILY_POOL)
            con->pool = node;
    }
    if (!con->pool)
        return;
    Window window = reduction_of(lower->graph, con->pool).window;
    con->pool_window = window.dim[0].size, con->pool_stride = window.dim[0].stride;
    con->pool_row = var_new(lower->arena, "pooled", 0, value_shape(lower->graph, con->pool->out[0])->dim[2] - 1);
    lower->band.value = con->pool->in[0];
    lower->band.buffer = lower_scratch(lower, DT_F32, con->pool_window * con->out_w * con->columns, "band");
    lower->band.first = index_scale(lower->arena, index_var(lower->arena, con->pool_row), con->pool_stride);
}

static void chunks_of_image(Tiled *con, Block *block)
{
    Arena *arena = con->lower->arena;
    for (uint32_t i = 0; i < con->tiling.count; i++) {
        const TileLoop *loop = &con->tiling.loop[i];
        int64_t chunks = ceil_div(loop->count, con->chunk);
        const Var *chunk = var_new(arena, "chunk", 0, chunks - 1), *t = var_new(arena, "t", 0, loop->count - 1);
        Block *outside = loop_of(con, block, chunk, chunks, LOOP_PARALLEL);
        for (uint32_t g = 0; g < con->group_count; g++) {
            Block *inner = loop_of(con, outside, con->group[g].panel, con->group[g].count, LOOP_SERIAL);
            Index round = index_var(arena, chunk);
            if (con->chunk > 1 && loop->count > 1) {
                Stmt *tiles = stmt_for(arena, inner, t, 0, loop->count, 1, LOOP_SERIAL);
                tiles->low = index_scale(arena, round, con->chunk);
                tiles->high = index_add(arena, tiles->low, index_constant(con->chunk));
                tiles->clamp_high = loop->count % con->chunk != 0;
                tiles->high_most = index_constant(loop->count);
                inner = &tiles->body;
                round = index_var(arena, t);
            }
            tile(con, inner, loop, &con->group[g], round, NULL);
        }
    }
}

static void emit(Tiled *con)
{
    Block *block = con->lower->block;
    for (uint32_t d = 0; d < con->outer_count; d++)
        block = loop_of(con, block, con->outer[d], con->outer[d]->high + 1, LOOP_SERIAL);
    Block *outer = lower_enter(con->lower, block);
    contraction_weights(con);
    if (con->pool)
        pooled_rows(con, block);
    else if (con->order == ORDER_PANELS)
        panels_outside(con, block);
    else if (con->tiling.rows)
        chunks_of_row(con, block);
    else
        chunks_of_image(con, block);
    lower_leave(con->lower, outer);
}

static bool see(Tiled *con)
{
    Convolution conv;
    con->is_product = product_of(con->lower->graph, con->node, &con->product);
    if (con->is_product)
        return see_matmul(con);
    return convolution_of(con->lower->graph, con->node, &conv) && see_conv(con, &conv);
}

static bool worth_it(const Tiled *con)
{
    int64_t pixels = con->out_h * con->out_w;
    bool in_place = con->packed || (con->is_product && !con->product.transposed);
    bool wide = con->columns >= con->lanes || (con->packed && con->columns * 2 >= con->lanes); /* padded with zeros */
    return wide && con->depth > 0 && pixels > 0 && (in_place || pixels >= 4);
}

bool lower_contraction_tiled(Lower *lower, const Node *node)
{
    uint32_t buffers = lower->kernel->buffer_count, weights = lower->weights->count;
    Tiled con = {.lower = lower, .node = node, .lanes = lower->target->lanes};
    if (con.lanes < 2)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_f32(lower, node->in[i]) || (i == 2 && kernel_makes(lower, node->in[i])))
            return false;
    if (!see(&con) ||
        (con.packed = contraction_weights_constant(&con), !worth_it(&con))) {
        lower->kernel->buffer_count = buffers;
        lower->weights->count = weights;
        return false;
    }
    see_pool(&con);
    con.stored = con.pool ? NONE : result_for_sums(lower, node);
    con.one_by_one = !stores_vectors(&con);
    if (con.one_by_one)
        con.stored = NONE;
    contraction_choose(&con);
    contraction_panels(&con);
    con.round = var_new(lower->arena, "round", 0, con.rounds - 1);
    prepare_spill(&con);
    lower->kernel->partial_sums = con.rounds > 1;
    emit(&con);
    return true;
}
