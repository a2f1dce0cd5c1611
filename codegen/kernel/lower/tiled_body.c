/* One tile of a contraction: sums in registers over blocks of the depth and taps of the window, then the epilogue.
 *
 * A step of the depth loads a panel's vectors of weights and multiplies each with one element per pixel.  Its loop is
 * kept rolled: unrolled, compilers hoist the elements and spill the sums. */
#include "kernel/lower/tiled_body.h"

#define MANY_TAPS 16 /* of few channels: they are a loop */

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
        Index c = tiled_sum(body, first, index_constant(u)); /* parts of a word follow one another */
        int64_t word = u / con->parts * con->parts, part = u % con->parts;
        step.x = tiled_sum(body, from->x, index_scale(body->arena, c, con->x_depth));
        step.w.at = tiled_sum(body, from->w.at, index_scale(body->arena, first, weight->depth));
        step.w.at = tiled_sum(body, step.w.at, index_constant(word * weight->depth + part));
        step.w.depth = tiled_sum(body, from->w.depth, c);
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

    step.weight = lower_registers(body->lower, "w", DT_F32, true, at_once, body->vectors);
    step.element = lower_local(body->lower, "s", DT_F32, false);
    Block *inner = whole > at_once ? &stmt_for(body->arena, block, c, 0, whole, at_once, LOOP_ROLLED)->body : block;
    if (whole)
        some_steps(body, inner, &step, at_once, whole > at_once ? index_var(body->arena, c) : index_constant(0));
    if (!rest)
        return;
    step.weight = lower_registers(body->lower, "w", DT_F32, true, rest, body->vectors);
    step.element = lower_local(body->lower, "s", DT_F32, false);
    some_steps(body, block, &step, (uint32_t)rest, index_constant(whole));
}

/* One tap of one block of the depth. */
static void tap(Body *body, Block *block, Index at_block, Index kh, Index kw, int64_t count, uint32_t valid)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const PanelGroup *group = body->at->group;
    tiled_fetch_ahead(body, block, at_block, kh, kw);
    Index x = tiled_sum(body, index_substitute(arena, con->x_base, con->block, at_block), body->at->x);
    x = tiled_sum(body, x, index_scale(arena, kh, con->dilation_h * con->x_h + con->line_h));
    x = tiled_sum(body, x, index_scale(arena, kw, con->dilation_w * con->x_w));
    Index w = index_substitute(arena, group->weight.at, con->block, at_block);
    w = tiled_sum(body, w, index_scale(arena, kh, group->weight.tap_h));
    w = tiled_sum(body, w, index_scale(arena, kw, group->weight.tap_w));
    x = lower_named_address(body->lower, block, "at", x);
    w = lower_named_address(body->lower, block, "weights", w);
    WeightAt weight = {w, at_block, kh, kw, index_constant(0)};
    depth_steps(body, block, count, (Step){.x = x, .w = weight, .valid = valid});
}

/* Taps from `kw` on of the first row, `run` of them in a view that does not slide. */
static Block *open_run(Body *body, Block *block, int64_t kw, int64_t run, Index *tap)
{
    int64_t taps = body->con->taps_w;
    if (!body->view->slide)
        return tiled_small_loop(body, block, "kw", kw, run, tap);
    int64_t behind = kw - tiled_equal_taps(body->view->valid, taps);
    Index begin = kw ? tiled_sum(body, body->border, index_constant(behind)) : index_constant(0);
    if (kw && kw + run < taps) {
        Block *inner = tiled_small_loop(body, block, "kw", 0, run, tap);
        *tap = tiled_sum(body, begin, *tap);
        return inner;
    }
    const Var *var = index_var_new(body->arena, "kw", 0, taps - 1);
    Stmt *loop = stmt_for(body->arena, block, var, 0, taps, 1, LOOP_ROLLED);
    loop->low = begin;
    loop->high = kw ? loop->high : body->border;
    *tap = index_var(body->arena, var);
    return &loop->body;
}

static void taps_of_row(Body *body, Block *block, Index at_block, Index kh, int64_t count, const uint32_t *valid)
{
    int64_t taps = body->con->taps_w;
    for (int64_t kw = 0, run; kw < taps; kw += run) {
        Index index;
        run = tiled_equal_taps(valid + kw, taps - kw);
        if (!valid[kw])
            continue;
        Block *inner = open_run(body, block, kw, run, &index);
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
    const uint32_t *valid = body->view->valid;
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
        Block *inner = tiled_small_loop(body, block, "kh", h, run, &kh);
        taps_of_row(body, inner, at_block, kh, count, valid + h * con->taps_w);
    }
}

/* Three channels of an image: the taps are the long side, and each has a text of its own where they are not many. */
static void few_channels(Body *body, Block *block)
{
    Tiled *con = body->con;
    const PanelGroup *group = body->at->group;
    const uint32_t *valid = body->view->valid;
    bool many = con->taps_w > MANY_TAPS;
    for (int64_t first = 0, run; first < con->taps_w; first += run) {
        Index kw, c, kh;
        run = many || body->view->slide ? tiled_equal_taps(valid + first, con->taps_w - first) : 1;
        if (!valid[first])
            continue;
        Block *inner = open_run(body, block, first, run, &kw);
        inner = tiled_small_loop(body, inner, "c", 0, con->depth, &c);
        inner = tiled_clamped_taps(con, inner, body->at->row, &kh);
        Index x = tiled_sum(body, con->x_base, body->at->x);
        x = tiled_sum(body, x, index_scale(body->arena, kw, con->dilation_w * con->x_w));
        x = tiled_sum(body, x, index_scale(body->arena, c, con->x_depth));
        x = tiled_sum(body, x, index_scale(body->arena, kh, con->dilation_h * con->x_h + con->line_h));
        Index w = tiled_sum(body, group->weight.at, index_scale(body->arena, kw, group->weight.tap_w));
        w = tiled_sum(body, w, index_scale(body->arena, c, group->weight.depth));
        w = tiled_sum(body, w, index_scale(body->arena, kh, group->weight.tap_h));
        x = lower_named_address(body->lower, inner, "at", x);
        w = lower_named_address(body->lower, inner, "weights", w);
        WeightAt weight = {w, index_constant(0), kh, kw, c};
        depth_steps(body, inner, 1, (Step){.x = x, .w = weight, .valid = valid[first]});
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
    body->acc = lower_registers(body->lower, "sum", DT_F32, true, body->pixels, body->vectors);
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
static void reduce_view(Body *body, Block *block)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    if (con->empty)
        return;
    if (con->few_channels) {
        few_channels(body, block);
        return;
    }
    int64_t rest = con->depth % con->block_depth;
    if (body->partial_sums) {
        Stmt *loop = stmt_for(arena, block, con->block, 0, con->block_count, 1, LOOP_ROLLED);
        loop->low = tiled_times(body, con->round, con->blocks);
        loop->high = tiled_sum(body, loop->low, index_constant(con->blocks));
        loop->clamp_high = con->rounds > 1; /* also of whole rounds: so kernels of both kinds share their text */
        loop->high_most = index_constant(con->block_count);
        one_block(body, &loop->body, index_var(arena, con->block), con->block_depth);
    } else if (con->block_count > 1) {
        Stmt *loop = stmt_for(arena, block, con->block, 0, con->block_count, 1, LOOP_ROLLED);
        one_block(body, &loop->body, index_var(arena, con->block), con->block_depth);
    } else if (con->block_count)
        one_block(body, block, index_constant(0), con->block_depth);
    body->prefetches = 0;
    body->next_tile = NULL;
    body->fetches_rows = false;
    if (rest && body->partial_sums)
        block = &stmt_if(arena, block, index_var(arena, con->round), con->rounds - 1, con->rounds)->body;
    if (rest)
        one_block(body, block, index_constant(con->block_count), rest);
}

/* The border in a round of the view that is in hand, whose first round is `begin`. */
static Index border_of(Body *body, int64_t begin)
{
    const TileView *view = body->view;
    int64_t first = tiled_equal_taps(view->valid, body->con->taps_w);
    Index moved = index_scale(body->arena, body->at->round, -view->slide);
    return tiled_sum(body, moved, index_constant(first + begin * view->slide));
}

/* Each round of the loop sees what it does of the image. */
static void reduce(Body *body, Block *block)
{
    const TileLoop *loop = body->at->loop;
    const Body fetches = *body;
    for (uint32_t i = 0; i < loop->views; i++) {
        bool last = i + 1 == loop->views;
        Stmt *choice = last ? NULL : stmt_if(body->arena, block, body->at->round, 0, loop->view[i].end);
        Block *there = last ? block : &choice->body;
        body->view = &loop->view[i];
        body->border = border_of(body, i ? body->view[-1].end : 0);
        body->prefetches = fetches.prefetches;
        body->next_tile = fetches.next_tile;
        body->fetches_rows = fetches.fetches_rows;
        reduce_view(body, there);
        block = last ? block : &choice->other;
    }
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
    tiled_plan_ahead(&body, inner);
    tiled_start(&body, inner);
    Block sums = {0}, results = {0};
    reduce(&body, &sums);
    tiled_finish(&body, block, &results);
    tiled_fetch_results(&body, inner, &results);
    block_append(inner, sums);
    block_append(inner, results);
}
