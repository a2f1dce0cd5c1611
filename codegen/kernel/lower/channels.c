/* Convolutions to a few outputs, of an image in blocks of channels.  A vector of outputs would be idle for the most
 * part, and one along a row is gathered; here vectors go along what is summed up:
 *
 *     for each row
 *         for each tile of pixels, outputs x pixels vectors of sums stay in registers
 *             over the blocks of channels and the taps of the window that are inside the image
 *             the lanes of each are added up, into `line`
 *         what the rest of the kernel makes of the line, in vectors along it
 *
 * Pixels whose windows stick out before the row or behind it are tiles of their own; long rows go by parts.
 * Layouts: line [output][column of the part], weights [block][kh][kw][output][channel of the block]. */
#include "base/number.h"
#include "kernel/lower/contract.h"
#include "passes/integers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MOST_OUTPUTS 8
#define MOST_PIXELS  12
#define MOST_LINE    1024 /* columns of a row, or of its parts */

/* Cycles: of a product, a little more than in tiles of outputs; of a vector of the image, which is loaded for all
 * outputs; of each halving of a vector whose lanes are added up; and of a vector of the line. */
#define PRODUCT_CYCLES 0.57
#define LOAD_CYCLES    0.5
#define HALVE_CYCLES   1.5
#define LINE_CYCLES    2

enum { KNOB_PIXELS };

static const KnobSpec channels_knobs[] = {
    {"pixels", MOST_PIXELS, "pixels of a tile, whose sums stay in registers"},
    {NULL, 0, NULL},
};

typedef struct Channels {
    Lower *lower;
    const Node *node;
    Convolution conv;
    WindowDimension h, w;
    int64_t blocks, pixels;
    const Var *image, *row, *block, *lane;
    VectorImage x;
    int64_t first, end; /* columns whose windows are inside the image */
    int64_t pitch;      /* of the line */
    Index begin;        /* the column that it begins with */
    uint32_t buffer, weights, line;
} Channels;

/* Pixels of a tile, of which the first is at `column`; at an edge it is one, and taps may be outside. */
typedef struct PixelTile {
    Index column;
    int64_t pixels;
    bool edge;
} PixelTile;

/* Which */

static int64_t window_end(const WindowDimension *w)
{
    int64_t room = w->in + w->before - ((w->size - 1) * w->dilation + 1);
    return room < 0 ? 0 : room / w->stride + 1;
}

static bool see(Lower *lower, const Kernel *kernel, Channels *c)
{
    const Graph *graph = lower->graph;
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    *c = (Channels){.lower = lower, .node = &graph->node[kernel->anchor]};
    if (lanes < 2 || lower->target->small || lower->lean || lower_has_other_windows(lower, kernel) ||
        !convolution_of(graph, c->node, &c->conv) || c->conv.groups != 1 || c->conv.window.rank > 2 ||
        integers_are_exact(graph, c->node) || value_type(graph, c->node->out[0])->layout.block ||
        !shape_elements(value_shape(graph, c->node->out[0])))
        return false;
    c->h = lower_window_dimension(&c->conv.window, 1), c->w = lower_window_dimension(&c->conv.window, 0);
    c->blocks = c->conv.channels / lanes;
    if (!c->blocks || c->conv.channels % lanes || c->conv.outputs > MOST_OUTPUTS)
        return false;
    c->image = index_var_new(arena, "n", 0, c->conv.images - 1);
    c->row = index_var_new(arena, "row", 0, c->h.out - 1);
    c->block = index_var_new(arena, "block", 0, c->blocks - 1);
    c->lane = index_var_new(arena, "lane", 0, lanes - 1);
    c->end = least(c->w.out, window_end(&c->w));
    c->first = least(ceil_div(most(0, c->w.before), c->w.stride), c->end);
    c->pitch = least(c->w.out, MOST_LINE);
    return lower_has_constant_weights(lower, c->node, &c->conv) &&
           lower_see_image(lower, c->node, c->image, c->block, c->lane, &c->x) && c->x.vectors;
}

/* Sums, a vector of weights for each output and one of the image. */
static bool choose_pixels(Channels *c, int64_t asked)
{
    int64_t outputs = c->conv.outputs, registers = c->lower->target->vector_registers;
    int64_t fit = least(MOST_PIXELS, (registers - outputs - 1) / outputs);
    c->pixels = asked == KNOB_FREE ? most(1, least(fit, c->end - c->first)) : asked;
    return c->pixels >= 1 && c->pixels <= fit;
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Channels c;
    if (!see(lower, kernel, &c) || !choose_pixels(&c, recipe->knob[KNOB_PIXELS]))
        return false;
    recipe->knob[KNOB_PIXELS] = c.pixels;
    recipe_scratch(lower, recipe, "line", DT_F32, c.conv.outputs * c.pitch, true);
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Lower copy = *lower;
    Channels c;
    bool seen = see(&copy, kernel, &c);
    assert(seen && "what was offered is offered again");
    (void)seen;
    (void)recipe;
    double results = (double)(c.conv.images * c.conv.outputs * c.h.out * c.w.out), lanes = (double)lower->target->lanes;
    double vectors = (double)(c.blocks * c.h.size * c.w.size);
    return results * (vectors * (PRODUCT_CYCLES + LOAD_CYCLES / (double)c.conv.outputs) + HALVE_CYCLES * log2(lanes) +
                      LINE_CYCLES / lanes);
}

/* The sums */

static Packing packing_of(const Channels *c)
{
    Packing packing;
    int64_t lanes = c->lower->target->lanes, taps = c->h.size * c->w.size;
    int64_t extent[] = {c->blocks, c->h.size, c->w.size, c->conv.outputs, lanes};
    int64_t stride[] = {lanes * taps, c->w.size, 1, c->conv.channels * taps, taps};
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    packing.rank = 5;
    memcpy(packing.extent, extent, sizeof extent);
    memcpy(packing.stride, stride, sizeof stride);
    return packing;
}

static Block *loop_over(const Channels *c, Block *block, const Var *var, LoopKind kind)
{
    return var->high > var->low ? &stmt_for(c->lower->arena, block, var, var->low, var->high + 1, 1, kind)->body
                                : block;
}

/* Where the tap's loops end, and what it is. */
static Block *taps(const Channels *c, Block *block, const PixelTile *tile, Index *kh, Index *kw)
{
    const Var *across = index_var_new(c->lower->arena, "kw", 0, c->w.size - 1);
    block = loop_over(c, block, c->block, LOOP_ROLLED);
    block = lower_clamped_taps(c->lower, block, "kh", &c->h, index_var(c->lower->arena, c->row), kh);
    if (tile->edge)
        return lower_clamped_taps(c->lower, block, "kw", &c->w, tile->column, kw);
    *kw = index_var(c->lower->arena, across);
    return loop_over(c, block, across, LOOP_ROLLED);
}

/* Without the lane. */
static Index image_address(const Channels *c, const PixelTile *tile, Index kh, Index kw)
{
    Arena *arena = c->lower->arena;
    Index h = lower_tap_at(arena, &c->h, index_var(arena, c->row), kh),
          w = lower_tap_at(arena, &c->w, tile->column, kw);
    Index at =
        index_add(arena, index_substitute(arena, c->x.base, c->lane, index_constant(0)), index_scale(arena, h, c->x.h));
    return index_add(arena, at, index_scale(arena, w, c->x.w));
}

static Index weight_address(const Channels *c, Index kh, Index kw)
{
    Arena *arena = c->lower->arena;
    int64_t lanes = c->lower->target->lanes;
    Index at = index_add(arena, index_scale(arena, index_var(arena, c->block), c->h.size), kh);
    at = index_add(arena, index_scale(arena, at, c->w.size), kw);
    return index_scale(arena, at, c->conv.outputs * lanes);
}

/* A tap of a block of channels: each pixel's vector by those of all outputs. */
static void add_tap(const Channels *c, Block *block, const PixelTile *tile, Index kh, Index kw, const Local *const *sum)
{
    Arena *arena = c->lower->arena;
    Index zero = index_constant(0);
    int64_t outputs = c->conv.outputs;
    Index at = lower_named_address(c->lower, block, "at", image_address(c, tile, kh, kw));
    Index from = lower_named_address(c->lower, block, "weights", weight_address(c, kh, kw));
    at = index_add(arena, at, index_var(arena, c->lane));
    from = index_add(arena, from, index_var(arena, c->lane));
    const Local *weight = lower_registers(c->lower, "w", DT_F32, true, 1, outputs);
    const Local *element = lower_local(c->lower, "x", DT_F32, true);
    stmt_local(arena, block, weight, NULL);
    stmt_local(arena, block, element, NULL);
    for (int64_t o = 0; o < outputs; o++)
        stmt_assign(
            arena, block, weight, zero, index_constant(o),
            expr_load(arena, DT_F32, c->weights, index_add(arena, from, index_constant(o * c->lower->target->lanes))));
    for (int64_t p = 0; p < tile->pixels; p++) {
        Index pixel = index_add(arena, at, index_constant(p * c->w.stride * c->x.w));
        stmt_assign(arena, block, element, zero, zero, expr_load(arena, DT_F32, c->buffer, pixel));
        for (int64_t o = 0; o < outputs; o++) {
            const Local *acc = sum[o * tile->pixels + p];
            const Expr *product = expr_word(arena, WORD_MUL, DT_F32, expr_local(arena, element),
                                            expr_local_at(arena, weight, zero, index_constant(o)), NULL);
            stmt_assign(arena, block, acc, zero, zero,
                        expr_word(arena, WORD_ADD, DT_F32, expr_local(arena, acc), product, NULL));
        }
    }
}

static void sum_up(const Channels *c, Block *block, const PixelTile *tile)
{
    Arena *arena = c->lower->arena;
    int64_t count = c->conv.outputs * tile->pixels;
    const Local **dot = ARENA_ARRAY(arena, const Local *, count), **sum = ARENA_ARRAY(arena, const Local *, count);
    Index kh, kw;
    for (int64_t i = 0; i < count; i++) {
        dot[i] = lower_local(c->lower, "dot", DT_F32, false);
        stmt_local(arena, block, dot[i], expr_number(arena, DT_F32, 0));
    }
    Block *vectors = &stmt_lanes(arena, block, c->lane, (uint32_t)c->lower->target->lanes)->body;
    for (int64_t i = 0; i < count; i++) {
        sum[i] = lower_local(c->lower, "acc", DT_F32, true);
        stmt_local(arena, vectors, sum[i], expr_number(arena, DT_F32, 0));
    }
    Block *inner = taps(c, vectors, tile, &kh, &kw);
    add_tap(c, inner, tile, kh, kw, sum);
    for (int64_t i = 0; i < count; i++)
        stmt_reduce(arena, vectors, WORD_ADD, dot[i], sum[i]);
    for (int64_t i = 0; i < count; i++) {
        Index at = index_constant(i / tile->pixels * c->pitch + i % tile->pixels);
        at = index_add(arena, at, index_add(arena, tile->column, index_scale(arena, c->begin, -1)));
        stmt_store(arena, block, c->line, at, expr_local(arena, dot[i]));
    }
}

/* `count` tiles from a column of the line on. */
static void tiles(const Channels *c, Block *block, int64_t column, int64_t count, int64_t pixels, bool edge)
{
    Arena *arena = c->lower->arena;
    const Var *t = index_var_new(arena, "t", 0, count - 1);
    if (count <= 0)
        return;
    block = loop_over(c, block, t, LOOP_SERIAL);
    Index first = index_add(arena, index_scale(arena, index_var(arena, t), pixels), index_constant(column));
    sum_up(c, block, &(PixelTile){index_add(arena, c->begin, first), pixels, edge});
}

/* Tiles of balanced size: 30 pixels by 8 are 8, 8, 7, 7. */
static void inner_tiles(const Channels *c, Block *block, int64_t column, int64_t inside)
{
    int64_t count = ceil_div(inside, c->pixels);
    int64_t pixels = count ? inside / count : 0, wide = count ? inside % count : 0;
    tiles(c, block, column, wide, pixels + 1, false);
    tiles(c, block, column + wide * (pixels + 1), count - wide, pixels, false);
}

/* The line */

typedef struct Line {
    const Channels *c;
    Index output;
} Line;

static void finish(Lower *lower, void *context, Index column)
{
    const Line *line = context;
    const Channels *c = line->c;
    Arena *arena = lower->arena;
    Index position[MAX_RANK] = {index_var(arena, c->image), line->output, index_var(arena, c->row)};
    position[1 + c->conv.window.rank] = index_add(arena, c->begin, column);
    Index at = index_add(arena, index_scale(arena, line->output, c->pitch), column);
    const Expr *value = expr_load(arena, DT_F32, c->line, at);
    if (c->node->in_count > 2)
        value = expr_word(arena, WORD_ADD, DT_F32, value, lower_value(lower, c->node->in[2], &line->output), NULL);
    lower->bound[c->node->out[0]] = lower_named(lower, value);
    lower_stores(lower, position);
    lower->bound[c->node->out[0]] = NULL;
}

static void finish_line(const Channels *c, Block *block, int64_t columns)
{
    Lower *lower = c->lower;
    const Var *output = index_var_new(lower->arena, "o", 0, c->conv.outputs - 1);
    Block *outer = lower_enter(lower, loop_over(c, block, output, LOOP_SERIAL));
    lower_vector_loop(lower, "column", columns, LOOP_SERIAL, block_vectorizes, finish,
                      &(Line){c, index_var(lower->arena, output)});
    lower_leave(lower, outer);
}

static void whole_row(const Channels *c, Block *block)
{
    tiles(c, block, 0, c->first, 1, true);
    inner_tiles(c, block, c->first, c->end - c->first);
    tiles(c, block, c->end, c->w.out - c->end, 1, true);
    finish_line(c, block, c->w.out);
}

static void part_of_row(Channels *c, Block *block, Index begin, int64_t columns, bool edge)
{
    c->begin = begin;
    if (edge)
        tiles(c, block, 0, columns, 1, true);
    else
        inner_tiles(c, block, 0, columns);
    finish_line(c, block, columns);
}

static void columns_by_parts(Channels *c, Block *block, int64_t first, int64_t end, bool edge)
{
    Arena *arena = c->lower->arena;
    int64_t parts = (end - first) / c->pitch, rest = first + parts * c->pitch;
    const Var *part = index_var_new(arena, "part", 0, most(0, parts - 1));
    Index begin = index_add(arena, index_scale(arena, index_var(arena, part), c->pitch), index_constant(first));
    if (parts)
        part_of_row(c, loop_over(c, block, part, LOOP_PARALLEL), begin, c->pitch, edge);
    if (rest < end)
        part_of_row(c, block, index_constant(rest), end - rest, edge);
}

static void row_by_parts(Channels *c, Block *block)
{
    columns_by_parts(c, block, 0, c->first, true);
    columns_by_parts(c, block, c->first, c->end, false);
    columns_by_parts(c, block, c->end, c->w.out, true);
}

static void lower_channels(Lower *lower)
{
    Channels c;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = see(lower, lower->kernel, &c) && choose_pixels(&c, recipe.knob[KNOB_PIXELS]);
    assert(offered && "what was offered is offered again");
    (void)offered;
    Packing packing = packing_of(&c);
    c.buffer = lower_buffer(lower, c.x.source, false);
    c.x.base = index_add(lower->arena, c.x.base, index_constant(-lower->kernel->buffer[c.buffer].begin));
    c.weights = lower_weights(lower, c.node->in[1], &packing, c.conv.outputs * c.conv.channels * c.h.size * c.w.size);
    c.begin = index_constant(0);
    c.line = lower_scratch(lower, 0);
    Block *block = loop_over(&c, lower->block, c.image, LOOP_PARALLEL);
    block = loop_over(&c, block, c.row, LOOP_PARALLEL);
    if (c.w.out <= c.pitch)
        whole_row(&c, block);
    else
        row_by_parts(&c, block);
}

const Provider provider_channels = {
    .name = "channels",
    .doc = "a few outputs: sums in vectors along the channels, whose lanes are added up",
    .knob = channels_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = offers,
    .cost = cost,
    .lower = lower_channels,
};
