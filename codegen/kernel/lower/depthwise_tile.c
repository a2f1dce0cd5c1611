/* A tile of a depthwise convolution: sums of a few pixels of a row, or of several rows over a plane, over all taps. */
#include "kernel/lower/depthwise_body.h"

#include "base/number.h"

static Index sum2(const DepthwiseBody *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

static Index scaled(const DepthwiseBody *body, Index a, int64_t factor)
{
    return index_scale(body->arena, a, factor);
}

/* Taps */

/* Where the first pixel's element of a tap is, in lane 0; in a variable. */
static Index element_address(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, Index kh, Index kw)
{
    const Depthwise *dw = body->dw;
    Index h = sum2(body, scaled(body, body->row, dw->h.stride), scaled(body, kh, dw->h.dilation));
    Index w = sum2(body, scaled(body, tile->column, dw->w.stride), scaled(body, kw, dw->w.dilation));
    Index at = dw->framed ? index_constant(0) : index_substitute(body->arena, dw->x_base, dw->lane, index_constant(0));
    at = sum2(body, at, scaled(body, sum2(body, h, index_constant(-dw->h.before)), dw->x_h));
    at = sum2(body, at, scaled(body, sum2(body, w, index_constant(-dw->w.before)), dw->x_w));
    return lower_named_address(body->lower, block, "at", at);
}

/* Operand 0 or 1, made of what is loaded of the source. */
static const Expr *widened(const DepthwiseBody *body, Block *block, uint32_t operand, ValueId source,
                           const Expr *loaded)
{
    Lower *lower = body->lower;
    ValueId value = body->dw->node->in[operand];
    Index nowhere[MAX_RANK] = {0};
    if (!kernel_computes(lower, value))
        return loaded;
    Block *outer = lower_enter(lower, block);
    lower->bound[source] = loaded;
    const Expr *made = lower_value(lower, value, nowhere);
    lower->bound[source] = NULL;
    lower_leave(lower, outer);
    return made;
}

static const Expr *load_element(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, Index at)
{
    const Depthwise *dw = body->dw;
    DType dtype = value_type(body->lower->graph, dw->x_source)->dtype;
    if (dw->framed)
        return expr_load(body->arena, DT_F32, dw->x, at);
    bool spread = dw->x_whole && tile->vectors && !dw->widened;
    return widened(body, block, 0, dw->x_source,
                   (spread ? expr_load_spread : expr_load)(body->arena, dtype, dw->x, at));
}

const Expr *depthwise_load_weight(const DepthwiseBody *body, Block *block, int64_t output, Index kh, Index kw)
{
    const Depthwise *dw = body->dw;
    Index channel = dw->group_channels == 1 ? index_constant(0) : index_var(body->arena, dw->channel);
    if (dw->packed) {
        Index row = sum2(body, scaled(body, index_var(body->arena, dw->block), dw->h.size), kh);
        Index tap = sum2(body, scaled(body, row, dw->w.size), kw);
        DType dtype = value_type(body->lower->graph, dw->source)->dtype;
        return widened(body, block, 1, dw->source,
                       expr_load(body->arena, dtype, dw->weights,
                                 sum2(body, scaled(body, tap, dw->lanes), index_var(body->arena, dw->lane))));
    }
    Index position[MAX_RANK] = {0};
    depthwise_weight(dw, depthwise_output(dw, output), channel, kh, kw, position);
    Block *outer = lower_enter(body->lower, block);
    const Expr *weight = lower_value(body->lower, dw->node->in[1], position);
    lower_leave(body->lower, outer);
    return weight;
}

/* Adds one tap's products to the sums of one row, or of all outputs; `x` is the address of the first pixel's element.
 */
static void multiply_row(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, int64_t row, Index x,
                         const Expr *const *weight, uint32_t valid)
{
    const Depthwise *dw = body->dw;
    Arena *arena = body->arena;
    for (int64_t p = 0; p < tile->pixels; p++) {
        if (!(valid >> p & 1))
            continue;
        Index at = sum2(body, x, index_constant(p * tile->step * dw->w.stride * dw->x_w));
        const Expr *element = load_element(body, block, tile, at);
        if (dw->outputs > 1) {
            const Local *local = lower_local(body->lower, "e", DT_F32, tile->acc->lanes);
            stmt_local(arena, block, local, element);
            element = expr_local(arena, local);
        }
        for (int64_t q = 0; q < dw->outputs; q++) {
            const Expr *acc = expr_local_at(arena, tile->acc, index_constant(row + q), index_constant(p));
            const Expr *product = expr_word(arena, WORD_MUL, DT_F32, element, weight[q], NULL);
            stmt_assign(arena, block, tile->acc, index_constant(row + q), index_constant(p),
                        expr_word(arena, WORD_ADD, DT_F32, acc, product, NULL));
        }
    }
}

static void multiply(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, Index x,
                     const Expr *const *weight, uint32_t valid)
{
    const Depthwise *dw = body->dw;
    Index lane = index_var(body->arena, dw->lane);
    if (tile->vectors)
        x = sum2(body, x, scaled(body, lane, dw->w.stride * dw->x_w));
    else if (dw->along == ALONG_CHANNELS)
        x = sum2(body, x, lane);
    for (int64_t r = 0; r < most(1, tile->rows); r++)
        multiply_row(body, block, tile, r, sum2(body, x, index_constant(r * dw->h.stride * dw->x_h)), weight, valid);
}

static uint32_t valid_pixels(const DepthwiseTile *tile, int64_t kw)
{
    uint32_t all = tile->pixels < 32 ? (1u << tile->pixels) - 1 : UINT32_MAX;
    return tile->valid ? tile->valid[kw] : all;
}

/* The tap kh of row r of the tile that meets the plane's row h, counted from the first that the tile sees; NONE. */
static uint32_t tap_of_row(const Depthwise *dw, int64_t r, int64_t h)
{
    int64_t tap = h - r * dw->h.stride;
    return tap >= 0 && tap % dw->h.dilation == 0 && tap / dw->h.dilation < dw->h.size ? (uint32_t)(tap / dw->h.dilation)
                                                                                      : NONE;
}

/* Of several rows: each element is loaded once for all whose windows it is in. */
static void multiply_rows(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, int64_t h, int64_t kw,
                          int64_t pixel, const Expr *element)
{
    const Depthwise *dw = body->dw;
    Arena *arena = body->arena;
    uint32_t windows = 0;
    for (int64_t r = 0; r < tile->rows; r++)
        windows += tap_of_row(dw, r, h) != NONE;
    if (windows > 1) {
        const Local *local = lower_local(body->lower, "e", DT_F32, true);
        stmt_local(arena, block, local, element);
        element = expr_local(arena, local);
    }
    for (int64_t r = 0; r < tile->rows; r++) {
        uint32_t kh = tap_of_row(dw, r, h);
        if (kh == NONE)
            continue;
        Index row = index_constant(r), at = index_constant(pixel);
        const Expr *weight = expr_local_at(arena, body->held, index_constant(kh), index_constant(kw));
        const Expr *product = expr_word(arena, WORD_MUL, DT_F32, element, weight, NULL);
        stmt_assign(arena, block, tile->acc, row, at,
                    expr_word(arena, WORD_ADD, DT_F32, expr_local_at(arena, tile->acc, row, at), product, NULL));
    }
}

static void taps_of_rows(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    const Depthwise *dw = body->dw;
    int64_t span = (tile->rows - 1) * dw->h.stride + window_span(&dw->h);
    Index x = element_address(body, block, tile, index_constant(0), index_constant(0));
    x = sum2(body, x, index_var(body->arena, dw->lane));
    for (int64_t h = 0; h < span; h++)
        for (int64_t kw = 0; kw < dw->w.size; kw++)
            for (int64_t p = 0; p < tile->pixels; p++) {
                Index at = sum2(body, x, index_constant(h * dw->x_h + depthwise_tap(dw, kw) + p * tile->step));
                multiply_rows(body, block, tile, h, kw, p, expr_load(body->arena, DT_F32, dw->x, at));
            }
}

static void held_taps(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    const Depthwise *dw = body->dw;
    Index x = element_address(body, block, tile, index_constant(0), index_constant(0));
    for (int64_t kh = 0; kh < dw->h.size; kh++)
        for (int64_t kw = 0; kw < dw->w.size; kw++) {
            int64_t offset = kh * dw->h.dilation * dw->x_h + depthwise_tap(dw, kw);
            const Expr *weight = expr_local_at(body->arena, body->held, index_constant(kh), index_constant(kw));
            multiply(body, block, tile, sum2(body, x, index_constant(offset)), &weight, valid_pixels(tile, kw));
        }
}

/* A tap whose weights come from memory. */
static void loaded_tap(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile, Index x, Index kh, Index kw,
                       uint32_t valid)
{
    const Expr *weight[MOST_OUTPUTS];
    for (int64_t q = 0; valid && q < body->dw->outputs; q++) {
        const Local *local = lower_local(body->lower, "w", DT_F32, body->dw->along == ALONG_CHANNELS);
        stmt_local(body->arena, block, local, depthwise_load_weight(body, block, q, kh, kw));
        weight[q] = expr_local(body->arena, local);
    }
    multiply(body, block, tile, x, weight, valid);
}

static void loaded_taps(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    const Depthwise *dw = body->dw;
    Index kh, kw;
    if (dw->group_channels > 1)
        block = &stmt_for(body->arena, block, dw->channel, 0, dw->group_channels, 1, LOOP_ROLLED)->body;
    block = lower_clamped_taps(body->lower, block, "kh", &dw->h, body->row, &kh);
    if (tile->edge || (dw->w.size > MOST_TAPS && !(dw->framed && dw->phases > 1))) {
        const Var *var = index_var_new(body->arena, "kw", 0, dw->w.size - 1);
        if (tile->edge)
            block = lower_clamped_taps(body->lower, block, "kw", &dw->w, tile->column, &kw);
        else {
            block = &stmt_for(body->arena, block, var, 0, dw->w.size, 1, LOOP_ROLLED)->body;
            kw = index_var(body->arena, var);
        }
        loaded_tap(body, block, tile, element_address(body, block, tile, kh, kw), kh, kw, valid_pixels(tile, 0));
        return;
    }
    Index x = element_address(body, block, tile, kh, index_constant(0));
    for (int64_t k = 0; k < dw->w.size; k++)
        loaded_tap(body, block, tile, sum2(body, x, index_constant(depthwise_tap(dw, k))), kh, index_constant(k),
                   valid_pixels(tile, k));
}

/* What becomes of the sums */

static void start(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    const Node *node = body->dw->node;
    bool together = tile->rows > 1;
    Block *outer = lower_enter(body->lower, block);
    for (int64_t q = 0; q < (together ? tile->rows : body->dw->outputs); q++)
        for (int64_t p = 0; p < tile->pixels; p++) {
            Index output = depthwise_output(body->dw, together ? 0 : q);
            stmt_assign(body->arena, body->lower->block, tile->acc, index_constant(q), index_constant(p),
                        node->in_count > 2 ? lower_value(body->lower, node->in[2], &output)
                                           : expr_number(body->arena, DT_F32, 0));
        }
    lower_leave(body->lower, outer);
}

/* What the kernel makes of the sums, for the contraction that reads it. */
static void store_in_line(const DepthwiseBody *body, Index column, const Index *position)
{
    const Depthwise *dw = body->dw;
    Index pixel = sum2(body, scaled(body, index_var(body->arena, dw->block), dw->w.out), column);
    Index at = sum2(body, scaled(body, pixel, dw->lanes), index_var(body->arena, dw->lane));
    stmt_store(body->arena, body->lower->block, dw->line_x, at, lower_value(body->lower, dw->line, position));
}

static void finish(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    const Depthwise *dw = body->dw;
    ValueId result = dw->node->out[0];
    bool together = tile->rows > 1;
    Block *outer = lower_enter(body->lower, block);
    for (int64_t q = 0; q < (together ? tile->rows : dw->outputs); q++)
        for (int64_t p = 0; p < tile->pixels; p++) {
            Index position[MAX_RANK], column = sum2(body, tile->column, index_constant(p * tile->step));
            Index row = together ? sum2(body, body->row, index_constant(q)) : body->row;
            if (tile->vectors)
                column = sum2(body, column, index_var(body->arena, dw->lane));
            depthwise_result(dw, depthwise_output(dw, together ? 0 : q), row, column, position);
            body->lower->bound[result] = expr_local_at(body->arena, tile->acc, index_constant(q), index_constant(p));
            if (dw->line != NONE)
                store_in_line(body, column, position);
            else
                lower_stores(body->lower, position);
        }
    body->lower->bound[result] = NULL;
    lower_leave(body->lower, outer);
}

void depthwise_tile(const DepthwiseBody *body, Block *block, const DepthwiseTile *tile)
{
    start(body, block, tile);
    if (tile->rows > 1 && body->held)
        taps_of_rows(body, block, tile);
    else if (body->held && !tile->edge)
        held_taps(body, block, tile);
    else
        loaded_taps(body, block, tile);
    finish(body, block, tile);
}
