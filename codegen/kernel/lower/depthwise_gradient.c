/* The gradient of a depthwise convolution's weight: for each channel and tap a sum over the pixels of all images.
 *
 *     result[channel, tap] = sum over images and windows of d[channel, window] * x[channel, window at the tap]
 *
 * A channel's image comes into scratch as a plane with zeros around it (depthwise.h), and so do the gradients d, their
 * rows as far apart as the image's that they meet, zeros between them.  Then a tap is a shift, and all rows together
 * are one run of vectors, whose sums of all taps stay in registers; in the end the lanes of each are added up.
 *
 * The zeros between rows of d meet elements of x: one that is not finite makes taps NaN that do not see it.  So a sum
 * that is NaN is made again, window by window. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

enum { PIECE_PLANE, PIECE_GRADIENT, PIECE_SUMS, PIECES };

typedef struct TapSums {
    Depthwise dw;
    ValueId source; /* of d, whose element is at base + h * .. + w * .. */
    Index base;
    int64_t d_h, d_w;
    uint32_t d; /* its buffer */
    bool d_whole;
    int64_t apart, steps; /* from row to row of d in scratch; vectors of all rows */
    int64_t at_once;      /* rows of taps whose sums are in registers */
} TapSums;

/* Which */

/* The output that `block` stands for, of d and the result. */
static bool see_gradient(TapSums *t)
{
    Lower *lower = t->dw.lower;
    Arena *arena = lower->arena;
    const Var *h = index_var_new(arena, "h", 0, t->dw.image_h.out - 1);
    const Var *w = index_var_new(arena, "w", 0, t->dw.image_w.out - 1);
    Index position[MAX_RANK] = {0}, zero = index_constant(0);
    depthwise_position(&t->dw, index_var(arena, t->dw.block), index_var(arena, h), index_var(arena, w), position);
    if (kernel_computes(lower, t->dw.node->in[1]) ||
        !lower_memory_source(lower, t->dw.node->in[1], position, &t->source, &t->base) ||
        !index_factor(t->base, h, &t->d_h) || !index_factor(t->base, w, &t->d_w))
        return false;
    t->base = index_substitute(arena, index_substitute(arena, t->base, h, zero), w, zero);
    return true;
}

static int64_t last_tap(const Depthwise *dw)
{
    int64_t last = 0;
    for (int64_t kw = 0; kw < dw->w.size; kw++)
        last = most(last, depthwise_tap(dw, kw));
    return (dw->h.size - 1) * dw->h.dilation * dw->w.in + last;
}

static bool see(Lower *lower, TapSums *t)
{
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[lower->kernel->anchor];
    *t = (TapSums){.dw = {.lower = lower, .node = node, .line = NONE, .along = ALONG_WIDTH, .outputs = 1, .lanes = 1}};
    Depthwise *dw = &t->dw;
    if (lower->target->lanes < 2 || lower->target->dialect != DIALECT_VECTOR ||
        lower_has_other_windows(lower, lower->kernel) || !convolution_weight_gradient_of(graph, node, &dw->conv) ||
        dw->conv.window.rank < 1 || dw->conv.window.rank > 2 || dw->conv.channels != dw->conv.groups ||
        !shape_elements(value_shape(graph, node->out[0])))
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (value_type(graph, node->in[i])->dtype != DT_F32 || !shape_elements(value_shape(graph, node->in[i])))
            return false;
    depthwise_see_window(dw);
    dw->together = 1;
    depthwise_see_plane(dw);
    return dw->framed;
}

static bool plan(Lower *lower, TapSums *t, Recipe *recipe)
{
    static const char *const name[PIECES] = {"plane", "gradient", "sums"};
    Depthwise *dw = &t->dw;
    if (!see(lower, t))
        return false;
    int64_t lanes = lower->target->lanes;
    dw->image = index_var_new(lower->arena, "n", 0, dw->conv.images - 1);
    dw->block = index_var_new(lower->arena, "o", 0, dw->conv.outputs - 1);
    dw->channel = index_var_new(lower->arena, "c", 0, 0);
    dw->lane = index_var_new(lower->arena, "lane", 0, lanes - 1);
    if (!depthwise_see_image(dw) || dw->widened || !see_gradient(t))
        return false;
    t->apart = dw->h.stride * dw->w.in;
    t->steps = ceil_div((dw->h.out - 1) * t->apart + dw->w.out, lanes);
    t->at_once = least(dw->h.size, (lower->target->vector_registers - 3) / dw->w.size);
    dw->reach = t->steps * lanes + last_tap(dw);
    const int64_t elements[PIECES] = {depthwise_plane_elements(dw), t->steps * lanes, dw->h.size * dw->w.size * lanes};
    for (uint32_t p = 0; p < PIECES; p++)
        recipe_scratch(lower, recipe, name[p], DT_F32, elements[p], true);
    return t->at_once > 0;
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    TapSums t;
    (void)kernel;
    return plan(lower, &t, recipe);
}

/* Vectors of products, and both planes. */
static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    double lanes = lower->target->lanes, strides = 1;
    Convolution conv;
    convolution_weight_gradient_of(lower->graph, node, &conv);
    for (uint32_t d = 0; d < conv.window.rank; d++)
        strides *= (double)conv.window.dim[d].stride;
    (void)recipe;
    return (double)node_flops(lower->graph, node) / (2 * lanes) * strides +
           4 * (double)shape_elements(value_shape(lower->graph, node->in[0])) / lanes;
}

/* The loops */

static Block *loop_over(Arena *arena, Block *block, const Var *var, LoopKind kind)
{
    return var->high > 0 ? &stmt_for(arena, block, var, 0, var->high + 1, 1, kind)->body : block;
}

static void bring_gradient(const TapSums *t, Block *block)
{
    const Depthwise *dw = &t->dw;
    Arena *arena = dw->lower->arena;
    const Var *h = index_var_new(arena, "h", 0, dw->h.out - 1);
    block = loop_over(arena, block, h, LOOP_SERIAL);
    Index row = index_var(arena, h);
    PlaneRow is = {.dtype = DT_F32,
                   .source = t->d,
                   .scratch = lower_scratch(dw->lower, PIECE_GRADIENT),
                   .from = index_add(arena, t->base, index_scale(arena, row, t->d_h)),
                   .to = index_scale(arena, row, t->apart),
                   .step = t->d_w,
                   .count = dw->w.out,
                   .whole = t->d_whole};
    depthwise_copy_row(dw, block, &is);
}

/* Of `rows` rows of taps from `first` on; the sums of the images before are in scratch. */
static void add_image(const TapSums *t, Block *block, int64_t first, int64_t rows)
{
    const Depthwise *dw = &t->dw;
    Lower *lower = dw->lower;
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    uint32_t sums = lower_scratch(lower, PIECE_SUMS), d = lower_scratch(lower, PIECE_GRADIENT);
    Index lane = index_var(arena, dw->lane);
    const Local *acc = lower_registers(lower, "acc", DT_F32, true, rows, dw->w.size);
    const Local *gradient = lower_local(lower, "d", DT_F32, true);
    const Var *i = index_var_new(arena, "i", 0, (t->steps - 1) * lanes);
    Index at = index_add(arena, index_var(arena, i), lane);
    block = &stmt_lanes(arena, block, dw->lane, (uint32_t)lanes)->body;
    stmt_local(arena, block, acc, NULL);
    Block loads = {0}, steps = {0}, stores = {0};
    stmt_local(arena, &steps, gradient, expr_load(arena, DT_F32, d, at));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t kw = 0; kw < dw->w.size; kw++) {
            Index row = index_constant(r), column = index_constant(kw);
            Index kept = index_add(arena, lane, index_constant(((first + r) * dw->w.size + kw) * lanes));
            int64_t shift = (first + r) * dw->h.dilation * dw->w.in + depthwise_tap(dw, kw);
            const Expr *x = expr_load(arena, DT_F32, dw->x, index_add(arena, at, index_constant(shift)));
            const Expr *product = expr_word(arena, WORD_MUL, DT_F32, x, expr_local(arena, gradient), NULL);
            const Expr *sum = expr_local_at(arena, acc, row, column);
            stmt_assign(arena, &loads, acc, row, column, expr_load(arena, DT_F32, sums, kept));
            stmt_assign(arena, &steps, acc, row, column, expr_word(arena, WORD_ADD, DT_F32, sum, product, NULL));
            stmt_store(arena, &stores, sums, kept, sum);
        }
    block_append(block, loads);
    stmt_for(arena, block, i, 0, t->steps * lanes, lanes, LOOP_ROLLED)->body = steps;
    block_append(block, stores);
}

/* The tap's sum again, where it is NaN, of its windows alone; around the image there are zeros. */
static void mend(const TapSums *t, Block *block, const Local *sum, Index kh, Index kw)
{
    const Depthwise *dw = &t->dw;
    Arena *arena = dw->lower->arena;
    const Expr *old = expr_local(arena, sum), *outside = expr_number(arena, DT_F32, 0);
    const Var *h = index_var_new(arena, "h", 0, dw->h.out - 1), *w = index_var_new(arena, "w", 0, dw->w.out - 1);
    Index row = lower_tap_at(arena, &dw->image_h, index_var(arena, h), kh),
          column = lower_tap_at(arena, &dw->image_w, index_var(arena, w), kw), zero = index_constant(0);
    Index at = index_add(arena, index_scale(arena, row, dw->image_x_h), index_scale(arena, column, dw->image_x_w));
    Index at_d = index_add(arena, index_scale(arena, index_var(arena, h), t->d_h),
                           index_scale(arena, index_var(arena, w), t->d_w));
    const Expr *x = expr_load(arena, DT_F32, dw->image_x, index_add(arena, dw->x_base, at));
    const Expr *d = expr_load(arena, DT_F32, t->d, index_add(arena, t->base, at_d));
    x = expr_within(arena, row, dw->image_h.in, expr_within(arena, column, dw->image_w.in, x, outside), outside);
    block = &stmt_where(arena, block, expr_word(arena, WORD_NE, DT_BOOL, old, old, NULL))->body;
    stmt_assign(arena, block, sum, zero, zero, outside);
    block = loop_over(arena, block, dw->image, LOOP_SERIAL);
    block = loop_over(arena, loop_over(arena, block, h, LOOP_SERIAL), w, LOOP_SERIAL);
    const Expr *product = expr_word(arena, WORD_MUL, DT_F32, x, d, NULL);
    stmt_assign(arena, block, sum, zero, zero, expr_word(arena, WORD_ADD, DT_F32, old, product, NULL));
}

/* The lanes of the tap's sums, one after the other. */
static const Local *add_lanes(const TapSums *t, Block *block, Index tap)
{
    Lower *lower = t->dw.lower;
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    const Var *k = index_var_new(arena, "k", 1, lanes - 1);
    Index first = index_scale(arena, tap, lanes);
    const Local *sum = lower_local(lower, "sum", DT_F32, false);
    uint32_t sums = lower_scratch(lower, PIECE_SUMS);
    stmt_local(arena, block, sum, expr_load(arena, DT_F32, sums, first));
    Block *inner = &stmt_for(arena, block, k, 1, lanes, 1, LOOP_SERIAL)->body;
    const Expr *lane = expr_load(arena, DT_F32, sums, index_add(arena, first, index_var(arena, k)));
    stmt_assign(arena, inner, sum, index_constant(0), index_constant(0),
                expr_word(arena, WORD_ADD, DT_F32, expr_local(arena, sum), lane, NULL));
    return sum;
}

static void finish(const TapSums *t, Block *block)
{
    const Depthwise *dw = &t->dw;
    Lower *lower = dw->lower;
    Arena *arena = lower->arena;
    ValueId result = dw->node->out[0];
    const Var *kh = index_var_new(arena, "kh", 0, dw->h.size - 1), *kw = index_var_new(arena, "kw", 0, dw->w.size - 1);
    Index row = index_var(arena, kh), column = index_var(arena, kw);
    block = loop_over(arena, loop_over(arena, block, kh, LOOP_SERIAL), kw, LOOP_SERIAL);
    const Local *sum = add_lanes(t, block, index_add(arena, index_scale(arena, row, dw->w.size), column));
    mend(t, block, sum, row, column);
    Index position[MAX_RANK] = {index_var(arena, dw->block), index_constant(0), row};
    position[1 + dw->conv.window.rank] = column;
    Block *outer = lower_enter(lower, block);
    lower->bound[result] = expr_local(arena, sum);
    lower_stores(lower, position);
    lower->bound[result] = NULL;
    lower_leave(lower, outer);
}

static void emit(TapSums *t)
{
    Depthwise *dw = &t->dw;
    Lower *lower = dw->lower;
    int64_t lanes = lower->target->lanes;
    Block *block = loop_over(lower->arena, lower->block, dw->block, LOOP_PARALLEL);
    depthwise_clear(lower, block, dw->x, depthwise_plane_elements(dw));
    depthwise_clear(lower, block, lower_scratch(lower, PIECE_GRADIENT), t->steps * lanes);
    depthwise_clear(lower, block, lower_scratch(lower, PIECE_SUMS), dw->h.size * dw->w.size * lanes);
    Block *images = loop_over(lower->arena, block, dw->image, LOOP_SERIAL);
    depthwise_bring_plane(dw, images);
    bring_gradient(t, images);
    for (int64_t kh = 0; kh < dw->h.size; kh += t->at_once)
        add_image(t, images, kh, least(t->at_once, dw->h.size - kh));
    finish(t, block);
}

/* Where the source of an operand is, from where the kernel's parameter points to. */
static uint32_t open_buffer(Lower *lower, ValueId source, Index *base, bool *whole)
{
    uint32_t buffer = lower_buffer(lower, source, false);
    *base = index_add(lower->arena, *base, index_constant(-lower->kernel->buffer[buffer].begin));
    *whole = lower->storage->at[source].inside == NONE;
    return buffer;
}

static void lower_taps(Lower *lower)
{
    TapSums t;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = plan(lower, &t, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    t.dw.image_x = open_buffer(lower, t.dw.x_source, &t.dw.x_base, &t.dw.x_whole);
    t.d = open_buffer(lower, t.source, &t.base, &t.d_whole);
    t.dw.x = lower_scratch(lower, PIECE_PLANE);
    emit(&t);
}

const Provider provider_depthwise_gradient = {
    .name = "depthwise_gradient",
    .doc = "of a depthwise convolution's weight: sums of all taps in registers while planes of both operands pass by",
    .knob = (const KnobSpec[]){{NULL, 0, NULL}},
    .forms = 1u << FORM_CONTRACTION,
    .offers = offers,
    .cost = cost,
    .lower = lower_taps,
};
