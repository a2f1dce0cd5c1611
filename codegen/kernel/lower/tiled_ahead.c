/* What a tile fetches into the caches while it computes: weights of the next block, the image under the next tile, and
 * what its results read besides. */
#include "kernel/lower/tiled_body.h"

/* Weights */

static void plan_weights(Body *body, Block *block)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const PanelGroup *group = body->at->group;
    int64_t tiles = con->tiling.tiles * (con->tiling.rows ? con->out_h : 1), taps = con->taps_h * con->taps_w;
    int64_t line = LINE_BYTES / con->weight_bytes,
            lines = ceil_div(con->block_depth * group->vectors * con->lanes, line);
    if (con->order != ORDER_PANELS || !con->packed || tiles == 1 || !con->block_count || group->partial ||
        group->count * con->rounds == 1)
        return;

    body->prefetches = ceil_div(lines, tiles);
    int64_t share = body->prefetches * line * con->blocks * taps; /* of a tile */
    Index next = index_substitute(arena, group->weight.at, con->block, index_constant(con->blocks));
    if (body->partial_sums)
        next = tiled_sum(body, next,
                         tiled_times(body, con->round, con->blocks * con->block_depth * group->weight.depth * taps));
    next = tiled_sum(body, next, index_scale(arena, body->at->tile, share));
    const Expr *last = expr_number(arena, DT_I64, (double)most(0, group->elements - share));
    const Local *local = lower_local(body->lower, "next", DT_I64, false);
    stmt_local(arena, block, local, expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, next), last, NULL));
    body->next = index_data(arena, expr_local(arena, local), 0, INT32_MAX);
    if (group->elements < share)
        body->prefetches = 0;
}

static void fetch_weights(Body *body, Block *block, Index number)
{
    int64_t elements = LINE_BYTES / body->con->weight_bytes;
    for (int64_t i = 0; i < body->prefetches; i++) {
        Index line = tiled_sum(body, index_scale(body->arena, number, body->prefetches * elements),
                               index_constant(i * elements));
        stmt_prefetch(body->arena, block, body->at->group->weight.buffer, tiled_sum(body, body->next, line), 2);
    }
}

/* The image
 *
 * Of a pointwise convolution a tile reads a few lines of each block of channels, and these lie far apart: too many
 * short runs for hardware to follow where it follows few. */

static bool fetches_image(const Body *body)
{
    const Tiled *con = body->con;
    bool blocked = !con->is_product && !con->computed && con->x_depth == 1 && con->x_w > 1;
    bool pointwise = con->taps_h * con->taps_w == 1 && !con->pad_top && !con->pad_left;
    return con->lower->target->fetches_images && blocked && pointwise && con->block_count > 1;
}

/* The next tile is that of the loop's next round, or else of the next loop; the loop's last round fetches its own
 * again.
 */
static void plan_image(Body *body, Block *block)
{
    const Tiling *tiling = &body->con->tiling;
    const TileLoop *loop = body->at->loop;
    Arena *arena = body->arena;
    if (loop->count == 1) {
        body->next_tile = loop + 1 < tiling->loop + tiling->count && !tiling->rows ? loop + 1 : NULL;
        body->next_x = index_constant(body->next_tile ? body->next_tile->first.x : 0);
        return;
    }
    Index next = tiled_sum(body, body->at->x, index_constant(loop->step.x));
    const Expr *last = expr_number(arena, DT_I64, (double)index_high(body->at->x));
    const Local *local = lower_local(body->lower, "ahead", DT_I64, false);
    stmt_local(arena, block, local, expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, next), last, NULL));
    body->next_x = index_data(arena, expr_local(arena, local), index_low(body->at->x), index_high(body->at->x));
    body->next_tile = loop;
}

/* Each line once, as pixels follow one another. */
static void fetch_image(Body *body, Block *block, Index at_block)
{
    Tiled *con = body->con;
    const TileLoop *tile = body->next_tile;
    int64_t elements = LINE_BYTES / dtype_bytes(body->x_dtype), fetched = -1;
    Index x = tiled_sum(body, index_substitute(body->arena, con->x_base, con->block, at_block), body->next_x);
    for (uint32_t p = 0; p < tile->pixels; p++)
        for (int64_t at = tile->offset[p]; at < tile->offset[p] + con->block_depth; at += elements)
            if (at > fetched) {
                stmt_prefetch(body->arena, block, con->x, tiled_sum(body, x, index_constant(at)), 1);
                fetched = at + elements - 1;
            }
}

/* The rows of a product
 *
 * A tile reads a line of each of its rows for each block of the depth, from the second level where they are many. Those
 * of the next block come to the first while this one is multiplied. */

static bool fetches_rows(const Body *body)
{
    const Tiled *con = body->con;
    int64_t bytes = con->out_h * con->out_w * con->depth * (int64_t)dtype_bytes(body->x_dtype);
    bool in_rows = con->is_product && !con->by_pixels && !con->computed && con->x_depth == 1 && con->x_w >= con->depth;
    return con->lower->target->fetches_products && in_rows && con->block_count > 1 &&
           bytes > con->lower->target->l1_bytes;
}

static void fetch_rows(Body *body, Block *block, Index at_block)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    const Expr *last = expr_number(arena, DT_I64, (double)(con->block_count - 1));
    const Expr *next = expr_index(arena, DT_I64, tiled_sum(body, at_block, index_constant(1)));
    const Local *local = lower_local(body->lower, "next", DT_I64, false);
    stmt_local(arena, block, local, expr_word(arena, WORD_MIN, DT_I64, next, last, NULL));
    Index at_next = index_data(arena, expr_local(arena, local), 0, con->block_count - 1);
    Index x = tiled_sum(body, index_substitute(arena, con->x_base, con->block, at_next), body->at->x);
    x = lower_named_address(body->lower, block, "ahead", x);
    const Var *row = index_var_new(arena, "row", 0, body->pixels - 1);
    if (body->pixels > 1) {
        block = &stmt_for(arena, block, row, 0, body->pixels, 1, LOOP_SERIAL)->body;
        x = tiled_sum(body, x, index_scale(arena, index_var(arena, row), con->x_w));
    }
    for (int64_t c = 0; c < con->block_depth; c += LINE_BYTES / (int64_t)dtype_bytes(body->x_dtype))
        stmt_prefetch(arena, block, con->x, tiled_sum(body, x, index_constant(c)), 1);
}

void tiled_plan_ahead(Body *body, Block *block)
{
    if (body->lower->target->dialect != DIALECT_VECTOR)
        return;
    plan_weights(body, block);
    if (fetches_image(body))
        plan_image(body, block);
    body->fetches_rows = fetches_rows(body);
}

void tiled_fetch_ahead(Body *body, Block *block, Index at_block, Index kh, Index kw)
{
    Tiled *con = body->con;
    Arena *arena = body->arena;
    if (body->prefetches) {
        Index first = tiled_times(body, con->round, con->blocks);
        Index number = tiled_sum(body, at_block, index_scale(arena, first, -1));
        number = index_scale(arena, number, con->taps_h * con->taps_w);
        number = tiled_sum(body, number, tiled_sum(body, index_scale(arena, kh, con->taps_w), kw));
        fetch_weights(body, block, number);
    }
    if (body->next_tile)
        fetch_image(body, block, at_block);
    if (body->fetches_rows)
        fetch_rows(body, block, at_block);
}

/* The results
 *
 * What they read beside the sums, as a param and its moments where the sums are a gradient, is far away where it is
 * much, and wanted all at once: it comes while the sums are made.  So do the lines that they are written to, which a
 * store would wait for. */

typedef struct Line {
    uint32_t buffer;
    Index at;     /* of its first lane */
    Block *block; /* where it is fetched; NULL: it is already */
} Line;

typedef struct Lines {
    Body *body;
    Block *block;
    Line *line; /* that are wanted */
    uint32_t count, capacity;
} Lines;

/* Does it lie in more than `near` bytes, lane by lane? */
static bool is_far(const Body *body, Index at, DType dtype, int64_t near)
{
    int64_t step, span = (index_high(at) - index_low(at)) * (int64_t)dtype_bytes(dtype);
    return span > near && !index_reads_data(at) && index_factor(at, body->lanes, &step) && step == 1;
}

/* How far apart two lines are, in elements, where nothing else differs. */
static bool is_beside(const Lines *lines, const Line *a, const Line *b, int64_t *elements)
{
    Index apart = index_add(lines->body->arena, a->at, index_scale(lines->body->arena, b->at, -1));
    *elements = apart.constant;
    return a->buffer == b->buffer && apart.count == 0;
}

static void want_line(Lines *lines, uint32_t buffer, Index at, DType dtype, int64_t near)
{
    Arena *arena = lines->body->arena;
    int64_t apart, elements = LINE_BYTES / dtype_bytes(dtype);
    if (!is_far(lines->body, at, dtype, near))
        return;
    Line line = {buffer, index_substitute(arena, at, lines->body->lanes, index_constant(0)), lines->block};
    for (uint32_t i = 0; i < lines->count; i++)
        if (is_beside(lines, &line, &lines->line[i], &apart) && apart < elements && apart > -elements)
            return;
    ARENA_PUSH(arena, lines->line, lines->count, lines->capacity, line);
}

#define LEAST_ROUNDS 4
#define MOST_LINES   64 /* that are looked at for rounds */

/* The least number of lines after which what they are apart comes again, so that a loop fetches them; 0: none. */
static uint32_t lines_of_round(const int64_t *apart, uint32_t count)
{
    for (uint32_t round = 1; round * LEAST_ROUNDS <= count; round++) {
        bool even = count % round == 0;
        for (uint32_t i = round; i < count; i++)
            even &= apart[i] - apart[i - round] == apart[round];
        if (even)
            return round;
    }
    return 0;
}

/* A line and those beside it. */
static void fetch_lines(Lines *lines, const Line *first)
{
    Arena *arena = lines->body->arena;
    int64_t apart[MOST_LINES];
    uint32_t count = 0;
    Block *block = first->block;
    for (Line *line = lines->line; line < lines->line + lines->count && count < MOST_LINES; line++)
        if (line->block == block && is_beside(lines, line, first, &apart[count])) {
            line->block = NULL;
            count++;
        }
    uint32_t round = lines_of_round(apart, count);
    Index at = first->at;
    if (round) {
        const Var *line = index_var_new(arena, "line", 0, count / round - 1);
        block = &stmt_for(arena, block, line, 0, count / round, 1, LOOP_SERIAL)->body;
        at = tiled_sum(lines->body, at, index_scale(arena, index_var(arena, line), apart[round]));
        count = round;
    }
    for (uint32_t i = 0; i < count; i++)
        stmt_prefetch(arena, block, first->buffer, tiled_sum(lines->body, at, index_constant(apart[i])), 1);
}

/* What is read only where a guard lets it need not be there. */
static void want_loads(Lines *lines, const Expr *expr)
{
    if (expr->kind == EXPR_WITHIN)
        return;
    if (expr->kind == EXPR_LOAD)
        want_line(lines, expr->buffer, expr->index, expr->dtype, lines->body->lower->target->l2_bytes);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            want_loads(lines, expr->arg[i]);
}

#define SHARE 8 /* of the second level, which results leave again before they are read where they take more */

/* Those of a product, whose rows lie far apart. */
static void want_stored(Lines *lines, const Stmt *store)
{
    const Target *target = lines->body->lower->target;
    if (target->fetches_products && lines->body->con->is_product)
        want_line(lines, store->buffer, store->index, store->value->dtype, target->l2_bytes / SHARE);
}

static void fetch_block(Lines *lines, const Block *results);

/* Where results stand in a loop, so do what is fetched for them. */
static void fetch_loop(Lines *lines, const Stmt *loop)
{
    Block *outer = lines->block, inner = {0};
    lines->block = &inner;
    fetch_block(lines, &loop->body);
    lines->block = outer;
    if (!inner.first)
        return;
    Stmt *copy = arena_copy(lines->body->arena, loop, sizeof *loop);
    copy->next = NULL;
    copy->body = inner;
    block_append(outer, (Block){copy, copy});
}

static void fetch_block(Lines *lines, const Block *results)
{
    for (const Stmt *stmt = results->first; stmt; stmt = stmt->next) {
        if (stmt->value && (stmt->kind == STMT_LOCAL || stmt->kind == STMT_STORE))
            want_loads(lines, stmt->value);
        if (stmt->value && stmt->kind == STMT_STORE)
            want_stored(lines, stmt);
        if (stmt->kind == STMT_IF)
            fetch_block(lines, &stmt->body);
        if (stmt->kind == STMT_FOR)
            fetch_loop(lines, stmt);
    }
    for (uint32_t i = 0; i < lines->count; i++)
        if (lines->line[i].block && lines->line[i].block == lines->block)
            fetch_lines(lines, &lines->line[i]);
}

void tiled_fetch_results(Body *body, Block *block, const Block *results)
{
    const Tiled *con = body->con;
    Block fetches = {0};
    if (body->lower->target->dialect != DIALECT_VECTOR || body->lower->target->small)
        return;
    fetch_block(&(Lines){.body = body, .block = &fetches}, results);
    if (!fetches.first)
        return;
    if (body->partial_sums)
        block = &stmt_if(body->arena, block, index_var(body->arena, con->round), con->rounds - 1, con->rounds)->body;
    block_append(block, fetches);
}
