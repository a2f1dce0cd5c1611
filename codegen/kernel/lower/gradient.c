/* Gradients of convolutions' weights (gradient.h): what they are to the tiles, the recipe, and the provider's row.
 * Takes f32 convolutions of one or two dimensions. */
#include "kernel/lower/gradient.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

enum { KNOB_HEIGHT, KNOB_VECTORS, KNOB_TAPS, KNOB_IMAGES, KNOB_LINES };

static const KnobSpec gradient_knobs[] = {
    {"height", 16, "rows of a tile: channels, or taps"},
    {"vectors", 8, "vectors of outputs of a tile"},
    {"taps", 1, "the rows of a tile are taps of one channel; else channels at one tap"},
    {"images", 16, "of a chunk, over whose pixels all tiles pass"},
    {"lines", 16, "of these images that are in a chunk"},
    {NULL, 0, NULL},
};

#define MOST_VECTORS 4
#define BEST_VECTORS 3          /* beside four rows, or eight: they fill the registers */
#define FEW_ROWS     4          /* that pay for a tile */
#define CHUNK_BYTES  (28 << 10) /* of both operands that a tile reads: they stay in the first level */
#define FEW_STEPS    128        /* pixels that pay for loading and storing the sums */
#define FEW_SHARES   4
#define MANY_SHARES  16
#define MOST_TURNED  512 /* rows of sums that are turned together, in the first level */
#define FEW_TURNED   64

/* The tile */

/* Rows whose sums fit the registers, beside a vector of each and an element. */
static int64_t most_rows(const Gradient *g)
{
    return least(GRADIENT_MOST_ROWS, (g->lower->target->vector_registers - g->vectors - 1) / g->vectors);
}

/* Channels whose addresses are evenly apart: those of a block of the layout, or as many. */
static int64_t channel_block(const Gradient *g)
{
    const Type *x = value_type(g->lower->graph, g->node->in[0]);
    return x->layout.block ? x->layout.block : number_largest_divisor(g->conv.channels, g->lanes);
}

/* As few tiles as can be, of balanced sizes. */
static int64_t cut(int64_t of, int64_t limit, PanelSpan span[MOST_SPANS], uint32_t *count)
{
    *count = lower_panel_spans(of, 1, ceil_div(of, most(1, limit)), span);
    return span[0].vectors;
}

/* Whole lines of taps where they fit, else parts of one. */
static void choose_rows(Gradient *g, const int64_t *asked)
{
    int64_t limit = least(asked[KNOB_HEIGHT] > 0 ? asked[KNOB_HEIGHT] : GRADIENT_MOST_ROWS, most_rows(g));
    int64_t block = channel_block(g);
    g->along_taps =
        asked[KNOB_TAPS] == KNOB_FREE ? least(block, limit) < FEW_ROWS && g->taps > 1 : asked[KNOB_TAPS] > 0;
    g->block_lines = g->along_taps ? number_largest_divisor(g->h.size, limit / g->w.size) : 1;
    g->block = g->along_taps ? g->w.size * g->block_lines : block;
    g->blocks = g->along_taps ? g->conv.channels : g->conv.channels / block;
    g->rows = cut(g->block, limit, g->row_span, &g->row_spans);
}

static void choose_tile(Gradient *g, const int64_t *asked)
{
    g->taps = g->h.size * g->w.size;
    g->output_vectors = ceil_div(g->conv.outputs, g->lanes);
    int64_t limit = asked[KNOB_VECTORS] > 0 ? asked[KNOB_VECTORS] : BEST_VECTORS;
    g->vectors = cut(g->output_vectors, limit, g->panel_span, &g->panel_spans);
    choose_rows(g, asked);
}

static bool fits(const Gradient *g, const int64_t *asked)
{
    for (uint32_t i = KNOB_HEIGHT; i <= KNOB_LINES; i++)
        if (asked[i] == 0 && i != KNOB_TAPS)
            return false;
    return g->vectors <= MOST_VECTORS && g->rows * g->vectors + g->vectors < g->lower->target->vector_registers &&
           (asked[KNOB_HEIGHT] == KNOB_FREE || g->rows == asked[KNOB_HEIGHT]) &&
           (asked[KNOB_VECTORS] == KNOB_FREE || g->vectors == asked[KNOB_VECTORS]) && g->images <= g->conv.images &&
           g->conv.images % g->images == 0 && g->lines <= g->h.out && g->h.out % g->lines == 0 &&
           (g->images == 1 || g->lines == g->h.out);
}

/* As many lines, or images, as leave both operands of a tile in the first level; of small ones a few at least. */
static void choose_chunk(Gradient *g, const int64_t *asked)
{
    int64_t strides = g->w.stride * g->h.stride, rows = g->along_taps ? 1 : g->block;
    int64_t pixel_bytes = 4 * (g->vectors * g->lanes + rows * strides);
    int64_t steps = most(FEW_STEPS, CHUNK_BYTES / pixel_bytes), image = g->h.out * g->w.out;
    g->lines = number_largest_divisor(g->h.out, most(1, steps / g->w.out));
    g->images = image < steps ? number_largest_divisor(g->conv.images, steps / image) : 1;
    if (image <= steps)
        g->lines = g->h.out;
    if (asked[KNOB_IMAGES] != KNOB_FREE)
        g->images = most(1, asked[KNOB_IMAGES]);
    if (asked[KNOB_LINES] != KNOB_FREE)
        g->lines = most(1, asked[KNOB_LINES]);
}

/* Operands */

static void make_variables(Gradient *g)
{
    Arena *arena = g->lower->arena;
    g->chunk = index_var_new(arena, "chunk", 0, g->conv.images / g->images - 1);
    g->part = index_var_new(arena, "part", 0, g->h.out / g->lines - 1);
    g->image = index_var_new(arena, "n", 0, g->conv.images - 1);
    g->line = index_var_new(arena, "h", 0, g->h.out - 1);
    g->vector = index_var_new(arena, "vector", 0, g->output_vectors - 1);
    g->lane = index_var_new(arena, "lane", 0, g->lanes - 1);
    g->group = index_var_new(arena, "g", 0, g->groups - 1);
    g->channels = index_var_new(arena, g->along_taps ? "c" : "block", 0, g->blocks - 1);
}

/* `channel` is what channels `inner` is one of. */
static bool pixel_address(const Gradient *g, ValueId value, Index channel, const Var *inner, bool of_result,
                          PixelAddress *at)
{
    Arena *arena = g->lower->arena;
    const Var *h = index_var_new(arena, "h", 0, (of_result ? g->h.out : g->h.in) - 1);
    const Var *w = index_var_new(arena, "w", 0, (of_result ? g->w.out : g->w.in) - 1);
    Index position[MAX_RANK] = {index_var(arena, g->image), channel, index_var(arena, h)}, zero = index_constant(0);
    position[1 + g->conv.window.rank] = index_var(arena, w);
    if (kernel_computes(g->lower, value) || !lower_memory_source(g->lower, value, position, &at->source, &at->base) ||
        !index_factor(at->base, inner, &at->channel) || !index_factor(at->base, h, &at->h) ||
        !index_factor(at->base, w, &at->w))
        return false;
    at->base = index_substitute(arena, index_substitute(arena, at->base, h, zero), w, zero);
    at->base = index_substitute(arena, at->base, inner, zero);
    return true;
}

static bool see_image(Gradient *g)
{
    Arena *arena = g->lower->arena;
    if (g->along_taps) { /* copied */
        g->copy_h = (g->lines - 1) * g->h.stride + window_span(&g->h);
        g->copy_w = (g->w.out - 1) * g->w.stride + window_span(&g->w);
        return true;
    }
    const Var *inner = index_var_new(arena, "c", 0, g->block - 1);
    Index channel =
        index_add(arena, index_scale(arena, index_var(arena, g->channels), g->block), index_var(arena, inner));
    return pixel_address(g, g->node->in[0], gradient_channel(g, channel), inner, false, &g->x);
}

/* Outputs that lie side by side are read where they are. */
static void see_gradient(Gradient *g)
{
    Arena *arena = g->lower->arena;
    Index lane = index_var(arena, g->lane);
    Index output =
        gradient_output(g, index_add(arena, index_scale(arena, index_var(arena, g->vector), g->lanes), lane));
    int64_t factor;
    g->d_packed = g->conv.outputs % g->lanes || !pixel_address(g, g->node->in[1], output, g->vector, true, &g->d) ||
                  !index_factor(g->d.base, g->lane, &factor) || factor != 1;
}

/* Of windows of one pixel, when lines end where the next ones begin. */
static bool is_straight(const Gradient *g)
{
    return !g->along_taps && window_is_pointwise(&g->conv.window) && g->x.h == g->w.in * g->x.w &&
           (g->d_packed || g->d.h == g->w.out * g->d.w);
}

/* Shares of so many blocks that a panel of outputs, which comes into the first level for each, serves many tiles. */
static void choose_shares(Gradient *g)
{
    int64_t shares = g->d_packed ? FEW_SHARES / 2 : least(MANY_SHARES, most(FEW_SHARES, g->blocks / FEW_SHARES));
    g->shares = number_largest_divisor(g->blocks, shares);
    g->share = index_var_new(g->lower->arena, "share", 0, g->shares - 1);
}

/* The result goes through memory by rows of an output: eight of them are turned at once. */
static void choose_turns(Gradient *g)
{
    int64_t rows = gradient_rows(g), part = number_largest_divisor(rows, MOST_TURNED);
    const Type *result = value_type(g->lower->graph, g->node->out[0]);
    g->turned = part < FEW_TURNED ? rows : part;
    g->turns = g->lower->target->dialect == DIALECT_VECTOR && !g->lower->target->small && !result->layout.block &&
               g->conv.outputs % g->lanes == 0 && rows >= g->lanes;
}

/* Which */

static bool see(Lower *lower, Gradient *g)
{
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[lower->kernel->anchor];
    *g = (Gradient){.lower = lower, .node = node, .lanes = lower->target->lanes};
    if (g->lanes < 2 || lower_has_other_windows(lower, lower->kernel) ||
        !convolution_weight_gradient_of(graph, node, &g->conv) || g->conv.window.rank < 1 || g->conv.window.rank > 2)
        return false;
    g->groups = g->conv.groups;
    for (uint32_t i = 0; i < 2; i++)
        if (value_type(graph, node->in[i])->dtype != DT_F32 || !shape_elements(value_shape(graph, node->in[i])))
            return false;
    g->h = lower_window_dimension(&g->conv.window, 1);
    g->w = lower_window_dimension(&g->conv.window, 0);
    if (!shape_elements(value_shape(graph, node->out[0])))
        return false;
    g->conv.groups = 1;
    g->conv.channels /= g->groups;
    g->conv.outputs /= g->groups;
    return true;
}

static void plan_scratch(Gradient *g, Recipe *recipe)
{
    static const char *const name[GRADIENT_PIECES] = {"sums", "padded", "packed", "turned"};
    int64_t elements[GRADIENT_PIECES] = {
        [GRADIENT_SUMS] = g->output_vectors * g->lanes * gradient_rows(g),
        [GRADIENT_IMAGE] = g->along_taps ? g->images * g->conv.channels * g->copy_h * g->copy_w : 0,
        [GRADIENT_PANEL] = g->d_packed ? g->images * g->lines * g->w.out * g->vectors * g->lanes : 0,
        [GRADIENT_TURNED] = g->turns ? g->lanes * gradient_turned_stride(g) : 0,
    };
    for (uint32_t p = 0; p < GRADIENT_PIECES; p++)
        g->piece[p] = elements[p] ? recipe_scratch(g->lower, recipe, name[p], DT_F32, elements[p],
                                                   p >= GRADIENT_PANEL || g->groups > 1)
                                  : NONE;
}

static bool plan(Lower *lower, Gradient *g, Recipe *recipe)
{
    if (!see(lower, g))
        return false;
    choose_tile(g, recipe->knob);
    choose_chunk(g, recipe->knob);
    if (!fits(g, recipe->knob))
        return false;
    make_variables(g);
    if (!see_image(g))
        return false;
    see_gradient(g);
    choose_shares(g);
    g->straight = is_straight(g);
    choose_turns(g);
    plan_scratch(g, recipe);
    return true;
}

static bool gradient_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Gradient g;
    (void)kernel;
    if (!plan(lower, &g, recipe))
        return false;
    recipe->knob[KNOB_HEIGHT] = g.rows;
    recipe->knob[KNOB_VECTORS] = g.vectors;
    recipe->knob[KNOB_TAPS] = g.along_taps;
    recipe->knob[KNOB_IMAGES] = g.images;
    recipe->knob[KNOB_LINES] = g.lines;
    return true;
}

static double gradient_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    double rows = (double)least(recipe->knob[KNOB_HEIGHT] * recipe->knob[KNOB_VECTORS], 8);
    Convolution conv;
    convolution_weight_gradient_of(lower->graph, node, &conv);
    double outputs = (double)(conv.outputs / conv.groups), lanes = lower->target->lanes;
    return (double)node_flops(lower->graph, node) / (rows / 2 * lanes) * ceil(outputs / lanes) * lanes / outputs;
}

static void gradient_lower(Lower *lower)
{
    Gradient g;
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    bool offered = plan(lower, &g, &recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    gradient_emit(&g);
}

const Provider provider_gradient = {
    .name = "gradient",
    .doc = "of a convolution's weight: sums of a tile in registers while the pixels of a chunk pass by",
    .knob = gradient_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = gradient_offers,
    .cost = gradient_cost,
    .lower = gradient_lower,
};
