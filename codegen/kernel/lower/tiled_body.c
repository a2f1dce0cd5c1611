/* One tile of a contraction: sums in registers over blocks of the depth and taps of the window, then the epilogue.
 *
 * A step of the depth loads a panel's vectors of weights and multiplies each with one element per pixel.  Its loop is
 * kept rolled: unrolled, compilers hoist the elements and spill the sums. */
#include "kernel/lower/tiled.h"

typedef struct Body {
    Tiled *con;
    Lower *lower;
    Arena *arena;
    const TileAt *at;
    uint32_t pixels, vectors;
    DType x_dtype; /* as it lies in memory; converted where it is loaded */
    const Var *lanes;
    Index lane;
    const Local *acc;   /* [pixels][vectors] */
    bool partial_sums;  /* rounds > 1: the result's memory holds sums between rounds */
    int64_t prefetches; /* of the next block of weights, per block of depth and tap */
    Index next;         /* where they start */
} Body;

void tiled_position(const Tiled *con, Index pixel, Index column, Index *position)
{
    Arena *arena = con->lower->arena;
    uint32_t rank = value_shape(con->lower->graph, con->node->out[0])->rank;
    for (uint32_t d = 0; d < rank; d++) {
        position[d] = index_substitute(arena, con->position[d], con->pixel, pixel);
        position[d] = index_substitute(arena, position[d], con->column, column);
    }
}

static Index sum2(Body *body, Index a, Index b)
{
    return index_add(body->arena, a, b);
}

static Index times(Body *body, const Var *var, int64_t factor)
{
    return index_scale(body->arena, index_var(body->arena, var), factor);
}

static Index panel_column(Body *body, uint32_t vector)
{
    const PanelGroup *group = body->at->group;
    int64_t lanes = body->con->lanes;
    Index column = index_constant((group->first + vector) * lanes);
    return sum2(body, column, times(body, group->panel, group->vectors * lanes));
}

static void tile_position(Body *body, uint32_t pixel, uint32_t vector, Index *position)
{
    tiled_position(body->con, sum2(body, body->at->pixel, index_constant(pixel)),
                   sum2(body, panel_column(body, vector), body->lane), position);
}

/* An address computed once, in a variable. */
static Index named_address(Body *body, Block *block, const char *name, Index address)
{
    if (address.count == 0)
        return address;
    const Local *local = lower_local(body->lower, name, DT_I64, false);
    stmt_local(body->arena, block, local, expr_index(body->arena, DT_I64, address));
    return index_data(body->arena, expr_local(body->arena, local), INT32_MIN, INT32_MAX);
}

/* Reduction */

typedef struct Step {
    const Local *weight; /* [steps at once][vectors] */
    const Local *element;
    Index x;
    WeightAt w;
    uint32_t valid; /* pixels */
} Step;

static void multiply(Body *body, Block *block, const Step *step, uint32_t number)
{
    Tiled *con = body->con;
    const Expr **second = ARENA_ARRAY(body->arena, const Expr *, body->vectors);
    Block *outer = lower_enter(body->lower, block);
    for (uint32_t v = 0; v < body->vectors; v++)
        second[v] = tiled_weight(con, body->at->group, &step->w, v, body->lanes);
    lower_leave(body->lower, outer);
    OuterProduct product = {.rows = body->pixels,
                            .vectors = body->vectors,
                            .sum = body->acc,
                            .vector = step->weight,
                            .number = number,
                            .element = step->element,
                            .valid = step->valid,
                            .first = {con->x, body->x_dtype, step->x},
                            .offset = body->at->loop->offset,
                            .second = second};
    lower_outer_product(body->lower, block, &product);
}

/* Pixels that lie whole pages apart share one set of the first-level cache, which has fewer ways than a tall tile has
 * pixels: each line that is fetched should serve two steps before it is gone. */
static bool pixels_collide(const Body *body)
{
    const int64_t *offset = body->at->loop->offset;
    return body->pixels > 12 && (offset[1] - offset[0]) % 1024 == 0;
}

/* Two steps a round spare half of the loop, but compilers load the weights of both at its head, and spill sums where
 * few registers are left. */
static bool steps_in_pairs(const Body *body, int64_t count)
{
    const Target *target = body->con->lower->target;
    uint32_t registers = body->pixels * body->vectors + 2 * body->vectors + 3;
    return count % 2 == 0 && target->dialect == DIALECT_VECTOR &&
           (registers <= target->vector_registers || pixels_collide(body));
}

/* `at_once` steps along the depth, from `first` on. */
static void some_steps(Body *body, Block *block, const Step *from, uint32_t at_once, Index first)
{
    Tiled *con = body->con;
    const Packed *weight = &body->at->group->weight;
    Step step = *from;
    stmt_local(body->arena, block, step.weight, NULL);
    stmt_local(body->arena, block, step.element, NULL);
    for (uint32_t u = 0; u < at_once; u++) {
        Index c = sum2(body, first, index_constant(u)); /* parts of a word follow one another */
        int64_t word = u / con->parts * con->parts, part = u % con->parts;
        step.x = sum2(body, from->x, index_scale(body->arena, c, con->x_depth));
        step.w.at = sum2(body, from->w.at, index_scale(body->arena, first, weight->depth));
        step.w.at = sum2(body, step.w.at, index_constant(word * weight->depth + part));
        step.w.depth = sum2(body, from->w.depth, c);
        multiply(body, block, &step, u);
    }
}

/* `count` steps along the depth; those that share a word of weights go together. */
static void depth_steps(Body *body, Block *block, int64_t count, Step step)
{
    Tiled *con = body->con;
    uint32_t at_once = con->parts > 1 ? con->parts : steps_in_pairs(body, count) ? 2 : 1;
    int64_t whole = count / at_once * at_once, rest = count - whole;
    const Var *c = index_var_new(body->arena, "c", 0, most(0, whole - at_once));
    const char *name = "w";

    if (count <= at_once || rest) /* taps share a block then */
        name = str_format(body->arena, "w%u_", body->lower->name_count).ptr;
    step.weight = lower_registers(body->lower, name, DT_F32, true, at_once, body->vectors);
    step.element = lower_local(body->lower, "s", DT_F32, false);
    Block *inner = whole > at_once ? &stmt_for(body->arena, block, c, 0, whole, at_once, LOOP_ROLLED)->body : block;
    if (whole)
        some_steps(body, inner, &step, at_once, whole > at_once ? index_var(body->arena, c) : index_constant(0));
    if (!rest)
        return;
    step.weight = lower_registers(body->lower, str_format(body->arena, "w%u_", body->lower->name_count).ptr, DT_F32,
                                  true, rest, body->vectors);
    step.element = lower_local(body->lower, "s", DT_F32, false);
    some_steps(body, block, &step, (uint32_t)rest, index_constant(whole));
}

static void prefetch_next(Body *body, Block *block, Index number)
{
    int64_t elements = 64 / body->con->weight_bytes; /* of a line */
    for (int64_t i = 0; i < body->prefetches; i++) {
        Index line =
            sum2(body, index_scale(body->arena, number, body->prefetches * elements), index_constant(i * elements));
        stmt_prefetch(body->arena, block, body->at->group->weight.buffer, sum2(body, body->next, line));
    }
}

/* One tap of one block of the depth. */
static void tap(Body *body, Block *block, Index at_block, Index kh, Index kw, int64_t count, uint32_t valid)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const PanelGroup *group = body->at->group;
    if (!valid)
        return;
    if (body->prefetches) {
        Index first = times(body, con->round, con->blocks);
        Index number = sum2(body, at_block, index_scale(arena, first, -1));
        number = index_scale(arena, number, con->taps_h * con->taps_w);
        prefetch_next(body, block, sum2(body, number, sum2(body, index_scale(arena, kh, con->taps_w), kw)));
    }
    Index x = sum2(body, index_substitute(arena, con->x_base, con->block, at_block), body->at->x);
    x = sum2(body, x, index_scale(arena, kh, con->dilation_h * con->x_h + con->line_h));
    x = sum2(body, x, index_scale(arena, kw, con->dilation_w * con->x_w));
    Index w = index_substitute(arena, group->weight.at, con->block, at_block);
    w = sum2(body, w, index_scale(arena, kh, group->weight.tap_h));
    w = sum2(body, w, index_scale(arena, kw, group->weight.tap_w));
    x = named_address(body, block, "at", x);
    w = named_address(body, block, "weights", w);
    WeightAt weight = {w, at_block, kh, kw, index_constant(0)};
    depth_steps(body, block, count, (Step){.x = x, .w = weight, .valid = valid});
}

/* How many of the first are equal. */
static int64_t equal_ones(const uint32_t *valid, int64_t count)
{
    int64_t equal = 1;
    while (equal < count && valid[equal] == valid[0])
        equal++;
    return equal;
}

/* A loop over 0 .. extent - 1, or nothing and the index 0. */
static Block *small_loop(Body *body, Block *block, const char *name, int64_t first, int64_t extent, Index *index)
{
    *index = index_constant(first);
    if (extent == 1)
        return block;
    const Var *var = index_var_new(body->arena, name, first, first + extent - 1);
    *index = index_var(body->arena, var);
    return &stmt_for(body->arena, block, var, first, first + extent, 1, LOOP_ROLLED)->body;
}

static void taps_of_row(Body *body, Block *block, Index at_block, Index kh, int64_t count, const uint32_t *valid)
{
    int64_t taps = body->con->taps_w;
    for (int64_t kw = 0, run; kw < taps; kw += run) {
        Index index;
        run = equal_ones(valid + kw, taps - kw);
        Block *inner = small_loop(body, block, "kw", kw, run, &index);
        tap(body, inner, at_block, kh, index, count, valid[kw]);
    }
}

static Block *clamped_columns(Body *body, Block *block, Index *kw)
{
    const Tiled *con = body->con;
    WindowDimension columns = {.in = con->in_w,
                               .out = con->out_w,
                               .size = con->taps_w,
                               .stride = con->stride_w,
                               .dilation = con->dilation_w,
                               .before = con->pad_left};
    return lower_clamped_taps(con->lower, block, "kw", &columns, body->at->column, kw);
}

Block *tiled_clamped_taps(const Tiled *con, Block *block, const Var *row, Index *kh)
{
    WindowDimension rows = {.in = con->in_h,
                            .out = con->out_h,
                            .size = con->taps_h,
                            .stride = con->stride_h,
                            .dilation = con->dilation_h,
                            .before = con->pad_top};
    return lower_clamped_taps(con->lower, block, "kh", &rows, index_var(con->lower->arena, row), kh);
}

static void taps(Body *body, Block *block, Index at_block, int64_t count)
{
    Tiled *con = body->con;
    const uint32_t *valid = body->at->loop->valid;
    Index kh, kw;
    if (con->tiling.rows) {
        block = tiled_clamped_taps(con, block, body->at->row, &kh);
        if (con->clamped) {
            block = clamped_columns(body, block, &kw);
            tap(body, block, at_block, kh, kw, count, 1);
            return;
        }
        taps_of_row(body, block, at_block, kh, count, valid);
        return;
    }
    for (int64_t h = 0, run; h < con->taps_h; h += run) {
        run = 1;
        while (h + run < con->taps_h) {
            bool same = true;
            for (int64_t w = 0; w < con->taps_w; w++)
                same &= valid[h * con->taps_w + w] == valid[(h + run) * con->taps_w + w];
            if (!same)
                break;
            run++;
        }
        Block *inner = small_loop(body, block, "kh", h, run, &kh);
        taps_of_row(body, inner, at_block, kh, count, valid + h * con->taps_w);
    }
}

/* Three channels of an image: the taps are the long side. */
static void few_channels(Body *body, Block *block)
{
    Tiled *con = body->con;
    const PanelGroup *group = body->at->group;
    for (int64_t kw = 0; kw < con->taps_w; kw++) {
        Index c, kh;
        if (!body->at->loop->valid[kw])
            continue;
        Block *inner = small_loop(body, block, "c", 0, con->depth, &c);
        inner = tiled_clamped_taps(con, inner, body->at->row, &kh);
        Index x = sum2(body, con->x_base, body->at->x);
        x = sum2(body, x, index_constant(kw * con->dilation_w * con->x_w));
        x = sum2(body, x, index_scale(body->arena, c, con->x_depth));
        x = sum2(body, x, index_scale(body->arena, kh, con->dilation_h * con->x_h + con->line_h));
        Index w = sum2(body, group->weight.at, index_constant(kw * group->weight.tap_w));
        w = sum2(body, w, index_scale(body->arena, c, group->weight.depth));
        w = sum2(body, w, index_scale(body->arena, kh, group->weight.tap_h));
        x = named_address(body, inner, "at", x);
        w = named_address(body, inner, "weights", w);
        WeightAt weight = {w, index_constant(0), kh, index_constant(kw), c};
        depth_steps(body, inner, 1, (Step){.x = x, .w = weight, .valid = body->at->loop->valid[kw]});
    }
}

/* A block of the depth; its sums are scaled as a whole where its weights are. */
static void one_block(Body *body, Block *block, Index at_block, int64_t count)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const Local *acc = body->acc;
    if (!con->scaled) {
        taps(body, block, at_block, count);
        return;
    }
    const char *name = str_format(arena, "sum%u_", body->lower->name_count).ptr;
    body->acc = lower_registers(body->lower, name, DT_F32, true, body->pixels, body->vectors);
    stmt_local(arena, block, body->acc, expr_number(arena, DT_F32, 0));
    taps(body, block, at_block, count);
    Block *outer = lower_enter(body->lower, block);
    for (uint32_t v = 0; v < body->vectors; v++) {
        const Expr *scale = tiled_block_scale(con, body->at->group, at_block, v, body->lanes);
        for (uint32_t p = 0; p < body->pixels; p++) {
            Index pixel = index_constant(p), vector = index_constant(v);
            const Expr *product =
                expr_word(arena, WORD_MUL, DT_F32, expr_local_at(arena, body->acc, pixel, vector), scale, NULL);
            const Expr *sum =
                expr_word(arena, WORD_ADD, DT_F32, expr_local_at(arena, acc, pixel, vector), product, NULL);
            stmt_assign(arena, block, acc, pixel, vector, sum);
        }
    }
    lower_leave(body->lower, outer);
    body->acc = acc;
}

/* Whole blocks of this round, then what is left of the depth, in the last round. */
static void reduce(Body *body, Block *block)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    if (con->few_channels) {
        few_channels(body, block);
        return;
    }
    int64_t rest = con->depth % con->block_depth;
    if (body->partial_sums) {
        Stmt *loop = stmt_for(arena, block, con->block, 0, con->block_count, 1, LOOP_ROLLED);
        loop->low = times(body, con->round, con->blocks);
        loop->high = sum2(body, loop->low, index_constant(con->blocks));
        loop->clamp_high = con->block_count % con->blocks != 0;
        loop->high_most = index_constant(con->block_count);
        one_block(body, &loop->body, index_var(arena, con->block), con->block_depth);
    } else if (con->block_count > 1) {
        Stmt *loop = stmt_for(arena, block, con->block, 0, con->block_count, 1, LOOP_ROLLED);
        one_block(body, &loop->body, index_var(arena, con->block), con->block_depth);
    } else if (con->block_count)
        one_block(body, block, index_constant(0), con->block_depth);
    body->prefetches = 0;
    if (rest && body->partial_sums)
        block = &stmt_if(arena, block, index_var(arena, con->round), con->rounds - 1, con->rounds)->body;
    if (rest)
        one_block(body, block, index_constant(con->block_count), rest);
}

/* Sums: where they start, and where they go */

/* The bias of a row, or of a column of the bundle. */
static const Expr *bias_of(Body *body, Index row, Index column)
{
    const Tiled *con = body->con;
    if (con->by_pixels)
        return lower_value(body->lower, con->node->in[2], &row);
    column = sum2(body, column, times(body, con->bundle, con->columns));
    return lower_value(body->lower, con->node->in[2], &column);
}

typedef const Expr *StartValue(Body *body, uint32_t pixel, uint32_t vector);

static const Expr *start_bias(Body *body, uint32_t pixel, uint32_t vector)
{
    const Node *node = body->con->node;
    if (node->in_count < 3 || body->at->group->partial) /* partial panels add it in the epilogue */
        return expr_number(body->arena, DT_F32, 0);
    return bias_of(body, sum2(body, body->at->pixel, index_constant(pixel)),
                   sum2(body, panel_column(body, vector), body->lane));
}

static Index stored_address(Body *body, uint32_t pixel, uint32_t vector)
{
    Index position[MAX_RANK];
    tile_position(body, pixel, vector, position);
    return lower_value_address(body->lower, body->con->stored, position);
}

/* Where a sum lies in the scratch of the panel: [pixel][column of the panel]. */
static Index partial_address(Body *body, uint32_t pixel, uint32_t vector)
{
    int64_t lanes = body->con->lanes;
    Index row = index_scale(body->arena, sum2(body, body->at->pixel, index_constant(pixel)), body->vectors * lanes);
    return sum2(body, sum2(body, row, index_constant(vector * lanes)), body->lane);
}

static const Expr *start_partial(Body *body, uint32_t pixel, uint32_t vector)
{
    uint32_t sums = lower_scratch(body->lower, body->con->piece[PIECE_PARTIAL]);
    return expr_load(body->arena, DT_F32, sums, partial_address(body, pixel, vector));
}

static const Expr *start_stored(Body *body, uint32_t pixel, uint32_t vector)
{
    uint32_t y = lower_buffer(body->lower, body->con->stored, true);
    body->lower->kernel->buffer[y].read = true;
    return expr_load(body->arena, DT_F32, y, stored_address(body, pixel, vector));
}

static void start(Body *body, Block *block, StartValue *value)
{
    Block *outer = lower_enter(body->lower, block);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++)
            stmt_assign(body->arena, body->lower->block, body->acc, index_constant(p), index_constant(v),
                        value(body, p, v));
    lower_leave(body->lower, outer);
}

static const Expr *sum_at(Body *body, uint32_t pixel, uint32_t vector)
{
    return expr_local_at(body->arena, body->acc, index_constant(pixel), index_constant(vector));
}

static void store_results(Body *body, Block *block)
{
    Lower *lower = body->lower;
    ValueId result = body->con->node->out[0];
    Block *outer = lower_enter(lower, block);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            Index position[MAX_RANK];
            tile_position(body, p, v, position);
            lower->bound[result] = sum_at(body, p, v);
            lower_stores(lower, position);
        }
    lower->bound[result] = NULL;
    lower_leave(lower, outer);
}

static void store_sums(Body *body, Block *block)
{
    bool packed = body->con->packed;
    uint32_t to = packed ? lower_buffer(body->lower, body->con->stored, true)
                         : lower_scratch(body->lower, body->con->piece[PIECE_PARTIAL]);
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            Index address = packed ? stored_address(body, p, v) : partial_address(body, p, v);
            stmt_store(body->arena, block, to, address, sum_at(body, p, v));
        }
}

/* Results that no vector can store (the last lanes are past the end, columns apart in memory, an epilogue in another
 * dtype) pass through scratch and are finished one by one. */
static void spill_sums(Body *body, Block *block, uint32_t scratch)
{
    int64_t width = body->vectors * body->con->lanes;
    for (uint32_t p = 0; p < body->pixels; p++)
        for (uint32_t v = 0; v < body->vectors; v++) {
            int64_t at = p * width + tiled_panel_vector(body->con, body->at->group, v);
            stmt_store(body->arena, block, scratch, sum2(body, index_constant(at), body->lane), sum_at(body, p, v));
        }
}

static void finish_one_by_one(Body *body, Block *block, uint32_t scratch)
{
    Tiled *con = body->con;
    Lower *lower = body->lower;
    Arena *arena = body->arena;
    const PanelGroup *group = body->at->group;
    int64_t width = group->vectors * con->lanes;
    int64_t columns = group->partial ? con->columns - group->first * con->lanes : width;
    Index column, pixel, position[MAX_RANK];

    block = small_loop(body, block, "o", 0, columns, &column);
    block = small_loop(body, block, "p", 0, body->pixels, &pixel);
    Block *outer = lower_enter(lower, block);
    Index at = sum2(body, index_scale(arena, pixel, width), column);
    const Expr *sum = expr_load(arena, DT_F32, scratch, at);
    column = sum2(body, panel_column(body, 0), column);
    Index row = sum2(body, body->at->pixel, pixel);
    if (con->node->in_count > 2 && group->partial)
        sum = expr_word(arena, WORD_ADD, DT_F32, sum, bias_of(body, row, column), NULL);
    tiled_position(con, row, column, position);
    lower->bound[con->node->out[0]] = sum;
    lower_stores(lower, position);
    lower->bound[con->node->out[0]] = NULL;
    lower_leave(lower, outer);
}

static Stmt *in_last_round(Body *body, Block *block)
{
    const Tiled *con = body->con;
    return stmt_if(body->arena, block, index_var(body->arena, con->round), con->rounds - 1, con->rounds);
}

/* After the last round the results, after others the sums so far; `inner` is the block of lanes. */
static void finish(Body *body, Block *block, Block *inner)
{
    const Tiled *con = body->con;
    if (body->partial_sums) {
        Stmt *last = in_last_round(body, inner);
        inner = &last->body;
        store_sums(body, &last->other);
    }
    if (!con->one_by_one && !body->at->group->partial) {
        store_results(body, inner);
        return;
    }
    uint32_t sums = lower_scratch(con->lower, con->piece[PIECE_SUMS]);
    spill_sums(body, inner, sums);
    finish_one_by_one(body, body->partial_sums ? &in_last_round(body, block)->body : block, sums);
}

/* The next block of the weights is fetched while this one is used, a few lines in each tile. */
static void plan_prefetch(Body *body, Block *block)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const PanelGroup *group = body->at->group;
    int64_t tiles = con->tiling.tiles * (con->tiling.rows ? con->out_h : 1), taps = con->taps_h * con->taps_w;
    int64_t line = 64 / con->weight_bytes, lines = ceil_div(con->block_depth * group->vectors * con->lanes, line);
    if (con->lower->target->dialect != DIALECT_VECTOR || con->order != ORDER_PANELS || !con->packed || tiles == 1 ||
        !con->block_count || group->partial || group->count * con->rounds == 1)
        return;

    body->prefetches = ceil_div(lines, tiles);
    int64_t share = body->prefetches * line * con->blocks * taps; /* of a tile */
    Index next = index_substitute(arena, group->weight.at, con->block, index_constant(con->blocks));
    if (body->partial_sums)
        next = sum2(body, next, times(body, con->round, con->blocks * con->block_depth * group->weight.depth * taps));
    next = sum2(body, next, index_scale(arena, body->at->tile, share));
    const Expr *last = expr_number(arena, DT_I64, (double)most(0, group->elements - share));
    const Local *local = lower_local(body->lower, "next", DT_I64, false);
    stmt_local(arena, block, local, expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, next), last, NULL));
    body->next = index_data(arena, expr_local(arena, local), 0, INT32_MAX);
    if (group->elements < share)
        body->prefetches = 0;
}

void tiled_tile(Tiled *con, Block *block, const TileAt *at)
{
    Arena *arena = con->lower->arena;
    const Var *lane = index_var_new(arena, "lane", 0, con->lanes - 1);
    Body body = {.con = con,
                 .lower = con->lower,
                 .arena = arena,
                 .at = at,
                 .pixels = at->loop->pixels,
                 .vectors = at->group->vectors,
                 .x_dtype = value_type(con->lower->graph, con->x_value)->dtype,
                 .lanes = lane,
                 .lane = index_var(arena, lane),
                 .partial_sums = con->rounds > 1 && !at->group->partial};
    Block *inner = &stmt_lanes(arena, block, lane, con->lanes)->body;

    body.acc = lower_registers(con->lower, "acc", DT_F32, true, body.pixels, body.vectors);
    stmt_local(arena, inner, body.acc, NULL);
    plan_prefetch(&body, inner);
    if (body.partial_sums) {
        Stmt *first = stmt_if(arena, inner, index_var(arena, con->round), 0, 1);
        start(&body, &first->body, start_bias);
        start(&body, &first->other, con->packed ? start_stored : start_partial);
    } else
        start(&body, inner, start_bias);

    reduce(&body, inner);
    finish(&body, block, inner);
}
