/* Depthwise and grouped convolutions (depthwise.h): the tile, the recipe, and the provider's row.
 * Takes f32 convolutions of one or two dimensions and transposed ones, whose image is in memory.
 * Ungrouped ones, too: those of so few outputs that the register tiles of other contractions refuse them. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"
#include "passes/phases.h"

#include <assert.h>
#include <math.h>

enum { KNOB_PIXELS, KNOB_OUTPUTS, KNOB_CHANNELS, KNOB_WIDTH, KNOB_HELD, KNOB_FRAMED };

static const KnobSpec depthwise_knobs[] = {
    {"pixels", 16, "pixels, or vectors of them, whose sums a tile keeps in registers, at most"},
    {"outputs", 8, "of a group, that a tile makes at once"},
    {"channels", 1, "vectors are of neighbouring channels"},
    {"width", 1, "vectors are of pixels along a row"},
    {"held", 1, "the weights of all taps stay in registers"},
    {"framed", 4, "along the width: each channel is brought into scratch, zeros around it, for so many rows at once"},
    {NULL, 0, NULL},
};

#define MOST_EDGES    8 /* columns at both ends of a row that tiles take in, with the taps that are inside */
#define FEW_PIXELS    4 /* whose sums hide the latency of each other's additions */
#define MANY_PIXELS   8
#define MANY_OUTPUTS  8
#define MOST_TOGETHER 4 /* rows over a plane */
#define ROWS_GAIN     4 /* one in so many may be made twice */

/* The tile */

/* Pixels whose sums fit the registers beside the weights, those of all taps or one, and an element. */
static int64_t most_pixels(const Depthwise *dw)
{
    int64_t weights = dw->held ? dw->h.size * dw->w.size : 1;
    return (dw->lower->target->vector_registers - weights - 1) / (dw->outputs * dw->together);
}

/* Where no window is whole in its row, a tap may be read nowhere. */
static bool may_hold(const Depthwise *dw)
{
    return dw->group_channels == 1 && dw->outputs == 1 && dw->rows_begin < dw->rows_end &&
           dw->columns_begin < dw->columns_end && dw->w.size <= MOST_TAPS &&
           dw->h.size * dw->w.size < dw->lower->target->vector_registers;
}

/* Vectors that cover a row with the least work. */
static int64_t choose_vectors(const Depthwise *dw, int64_t many)
{
    int64_t columns = dw->columns_end - dw->columns_begin, best = 1;
    for (int64_t vectors = 2; vectors <= many && vectors * dw->lanes <= columns; vectors++)
        if (ceil_div(columns, vectors * dw->lanes) * vectors <= ceil_div(columns, best * dw->lanes) * best)
            best = vectors;
    return best;
}

/* Best are tiles of one size, whose text stands once. */
static int64_t choose_pixels(const Depthwise *dw, int64_t many)
{
    int64_t columns = dw->columns_end - dw->columns_begin;
    if (columns <= many)
        return most(1, columns);
    for (int64_t pixels = many; pixels >= FEW_PIXELS; pixels--)
        if (columns % pixels == 0)
            return pixels;
    return most(1, many);
}

/* Rows that a tile over a plane has, whose elements are each loaded once for them: those that leave the least to be
 * made twice. */
static int64_t choose_together(const Depthwise *dw)
{
    int64_t best = 1;
    for (int64_t rows = 2; rows <= MOST_TOGETHER && rows <= dw->h.out; rows++)
        if (rows <= most_pixels(dw) && ceil_div(dw->h.out, rows) * rows * ROWS_GAIN <= dw->h.out * (ROWS_GAIN + 1))
            best = rows;
    return best;
}

static bool choose_tile(Depthwise *dw, const int64_t *asked)
{
    int64_t edges = dw->columns_begin + dw->w.out - dw->columns_end, wanted = asked[KNOB_PIXELS];
    dw->edges = dw->w.size > MOST_TAPS || edges > MOST_EDGES;
    dw->held = asked[KNOB_HELD] != 0 && may_hold(dw);
    int64_t few = dw->framed ? 1 : FEW_PIXELS; /* of several rows */
    if (asked[KNOB_HELD] == KNOB_FREE && most_pixels(dw) < (wanted == KNOB_FREE ? few : wanted))
        dw->held = false;
    bool together = dw->framed && dw->outputs == 1;
    if (asked[KNOB_FRAMED] > 0)
        dw->together = asked[KNOB_FRAMED];
    else if (together)
        dw->together = choose_together(dw);
    if (dw->together > 1 && (!together || dw->together > dw->h.out))
        return false;
    bool pointwise = dw->h.size * dw->w.size == 1; /* whose rows are each read once: rather a whole one */
    dw->pixels = wanted != KNOB_FREE ? wanted
                 : dw->along == ALONG_WIDTH
                     ? choose_vectors(dw, least(pointwise ? MANY_PIXELS : FEW_PIXELS, most_pixels(dw)))
                     : choose_pixels(dw, least(MANY_PIXELS, most_pixels(dw)));
    return dw->pixels > 0 && dw->pixels <= most_pixels(dw) && (asked[KNOB_HELD] != 1 || dw->held) &&
           (dw->along != ALONG_WIDTH || dw->pixels * dw->lanes <= dw->columns_end - dw->columns_begin);
}

static int64_t choose_outputs(const Depthwise *dw)
{
    int64_t outputs = least(dw->group_outputs, MANY_OUTPUTS);
    while (dw->group_outputs % outputs)
        outputs--;
    return outputs;
}

/* The recipe */

static bool may_go(const Recipe *recipe, Along along)
{
    const int64_t *asked = recipe->knob;
    bool channels = along == ALONG_CHANNELS, width = along == ALONG_WIDTH;
    return (asked[KNOB_CHANNELS] == KNOB_FREE || asked[KNOB_CHANNELS] == channels) &&
           (asked[KNOB_WIDTH] == KNOB_FREE || asked[KNOB_WIDTH] == width);
}

/* Tiles whose vectors go along the width may pass over planes in scratch. */
static bool plan_along(Depthwise *dw, Along along, const int64_t *asked)
{
    bool wide = along == ALONG_WIDTH && dw->lower->target->dialect == DIALECT_VECTOR && !dw->lower->target->small;
    for (int framed = wide && asked[KNOB_FRAMED] != 0; framed >= (asked[KNOB_FRAMED] > 0); framed--) {
        depthwise_see_window(dw);
        dw->together = 1;
        if (framed && (!depthwise_see_plane(dw) || (asked[KNOB_FRAMED] == KNOB_FREE && !depthwise_plane_is_near(dw))))
            continue;
        if (depthwise_see_along(dw, along) && (!framed || !dw->widened) && choose_tile(dw, asked))
            return true;
    }
    return false;
}

/* Some of the results, those that see the same taps, or all. */
static bool plan_part(Lower *lower, Depthwise *dw, uint32_t part, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    const int64_t *asked = recipe->knob;
    *dw =
        (Depthwise){.lower = lower, .node = node, .line = NONE, .part = convolution_phase_of(lower->graph, node, part)};
    dw->conv = dw->part.conv;
    if (dw->conv.window.rank < 1 || dw->conv.window.rank > 2 || convolution_phase_is_empty(&dw->part))
        return false;
    depthwise_see_window(dw);
    dw->outputs = asked[KNOB_OUTPUTS] == KNOB_FREE ? choose_outputs(dw) : asked[KNOB_OUTPUTS];
    if (dw->outputs < 1 || dw->group_outputs % dw->outputs)
        return false;
    for (Along along = ALONG_CHANNELS; along <= ALONG_NOTHING; along++)
        if (may_go(recipe, along) && plan_along(dw, along, asked))
            return true;
    return false;
}

static void set_knobs(const Depthwise *dw, Recipe *recipe)
{
    recipe->knob[KNOB_PIXELS] = dw->pixels;
    recipe->knob[KNOB_OUTPUTS] = dw->outputs;
    recipe->knob[KNOB_CHANNELS] = dw->along == ALONG_CHANNELS;
    recipe->knob[KNOB_WIDTH] = dw->along == ALONG_WIDTH;
    recipe->knob[KNOB_HELD] = dw->held;
    recipe->knob[KNOB_FRAMED] = dw->framed ? dw->together : 0;
}

/* The parts of the result; the recipe says how the first of several goes, the others go along the same.  NULL: not so.
 */
static Depthwise *plan(Lower *lower, Recipe *recipe, uint32_t *parts)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    *parts = convolution_phase_count(lower->graph, node);
    if (lower->target->lanes < 2 || !*parts || *parts > MOST_PHASES || lower_has_other_windows(lower, lower->kernel) ||
        !depthwise_in_memory(lower, node) || !shape_elements(value_shape(lower->graph, node->in[1])) ||
        !shape_elements(value_shape(lower->graph, node->out[0])))
        return NULL;
    Depthwise *dw = ARENA_ARRAY(lower->arena, Depthwise, *parts);
    Recipe others = *recipe;
    int64_t plane = 0;
    for (uint32_t p = 0; p < *parts; p++) {
        if (!plan_part(lower, &dw[p], p, p ? &others : recipe))
            return NULL;
        plane = most(plane, dw[p].framed ? depthwise_plane_elements(&dw[p]) : 0);
        if (p)
            continue;
        set_knobs(&dw[0], &others);
        others.knob[KNOB_PIXELS] = others.knob[KNOB_HELD] = KNOB_FREE;
        others.knob[KNOB_FRAMED] = dw[0].framed ? KNOB_FREE : 0;
    }
    if (plane)
        recipe_scratch(lower, recipe, "plane", DT_F32, plane, true);
    return dw;
}

static bool overlaps(const Depthwise *dw)
{
    int64_t columns = dw->columns_end - dw->columns_begin;
    return dw->along == ALONG_WIDTH && (columns % (dw->pixels * dw->lanes) != 0 || dw->h.out % dw->together != 0);
}

static bool depthwise_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    uint32_t parts;
    const Depthwise *dw = plan(lower, recipe, &parts);
    (void)kernel;
    if (!dw)
        return false;
    set_knobs(&dw[0], recipe);
    recipe->rewrites = false;
    for (uint32_t p = 0; p < parts; p++)
        recipe->rewrites |= overlaps(&dw[p]);
    return true;
}

#define GATHER_CYCLES 1.5 /* of a lane */
#define EDGE          0.4 /* of a vector's time */

/* Its `lower` is gone. */
static const Depthwise *plan_again(const Lower *lower, const Recipe *recipe)
{
    Lower copy = *lower;
    Recipe same = *recipe;
    uint32_t parts;
    const Depthwise *dw = plan(&copy, &same, &parts);
    assert(dw && "what was offered is offered again");
    return dw;
}

/* Lanes along a row that are gathered, each for all outputs of a tile: elements as far apart as blocks are wide. */
static double gathered_lanes(const Lower *lower, const Depthwise *dw)
{
    if (dw->along != ALONG_WIDTH || dw->framed || dw->x_w * dw->w.stride < dw->lanes)
        return 0;
    return (double)node_flops(lower->graph, dw->node) / 2 / (double)dw->outputs;
}

/* What a row of results takes of vectors, by what it fills of them.  Columns at its edges, which see less of the
 * window, go one by one. */
static double idle_lanes(const Lower *lower, const Depthwise *dw)
{
    int64_t width = dw->w.out, lanes = lower->target->lanes;
    int64_t inside = dw->framed ? width : most(0, dw->columns_end - dw->columns_begin);
    double vectors = (double)ceil_div(inside, lanes) + EDGE * (double)(width - inside);
    return width ? vectors * (double)lanes / (double)width : 1;
}

/* Vectors, or single results at least without bounds; slower than tiles over a depth that fill their vectors. */
static double depthwise_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    bool vectors = recipe->knob[KNOB_CHANNELS] || recipe->knob[KNOB_WIDTH];
    int64_t lanes = lower->target->lanes;
    int64_t depth = value_shape(lower->graph, node->in[1])->dim[1];
    if (lower->target->small) /* a loop over the window takes a fraction of the code */
        return INFINITY;
    const Depthwise *dw = plan_again(lower, recipe);
    double rate = depth > lanes ? 1.5 : depth > 1 ? 2 : 2.5;
    double cycles = (double)node_flops(lower->graph, node) / (!vectors ? 2.0 : (double)lanes * rate);
    if (depth > 1 && recipe->knob[KNOB_WIDTH])
        cycles *= idle_lanes(lower, dw);
    return cycles + GATHER_CYCLES * gathered_lanes(lower, dw);
}

/* What it reads gets its buffers. */
static void open_buffers(Depthwise *dw)
{
    Lower *lower = dw->lower;
    Packing packing;
    dw->x = lower_buffer(lower, dw->x_source, false);
    dw->x_whole = lower->storage->at[dw->x_source].inside == NONE;
    dw->x_base = index_add(lower->arena, dw->x_base, index_constant(-lower->kernel->buffer[dw->x].begin));
    if (dw->packed && depthwise_packing(dw, &dw->source, &packing))
        dw->weights = lower_weights(lower, dw->source, &packing, dw->conv.outputs * dw->h.size * dw->w.size);
}

bool depthwise_see_line(Lower *lower, Depthwise *dw, const Node *node, const Node *reader, const Var *image)
{
    static const int64_t asked[MOST_KNOBS] = {KNOB_FREE, KNOB_FREE, KNOB_FREE, KNOB_FREE, KNOB_FREE, KNOB_FREE};
    *dw = (Depthwise){.lower = lower, .node = node, .image = image, .reader = reader, .together = 1, .outputs = 1};
    dw->line = reader->in[0];
    if (!convolution_of(lower->graph, node, &dw->conv) || dw->conv.window.rank != 2 ||
        !depthwise_in_memory(lower, node))
        return false;
    dw->part = convolution_phase_of(lower->graph, node, 0);
    depthwise_see_window(dw);
    return depthwise_see_along(dw, ALONG_CHANNELS) && choose_tile(dw, asked);
}

void depthwise_line(Lower *lower, Depthwise *dw, Block *block, Index row, uint32_t scratch)
{
    dw->line_x = scratch;
    open_buffers(dw);
    Block *outer = lower_enter(lower, block);
    depthwise_emit_row(dw, block, row);
    lower_leave(lower, outer);
}

static void depthwise_lower(Lower *lower)
{
    Recipe recipe = recipe_to_plan(&lower->kernel->recipe);
    uint32_t parts;
    Depthwise *dw = plan(lower, &recipe, &parts);
    assert(dw && "what was offered is offered again");
    for (uint32_t p = 0; p < parts; p++) {
        open_buffers(&dw[p]);
        if (dw[p].framed) {
            dw[p].image_x = dw[p].x;
            dw[p].x = lower_scratch(lower, 0);
        }
        depthwise_emit(&dw[p]);
    }
}

const Provider provider_depthwise = {
    .name = "depthwise",
    .doc = "sums over the taps of a few channels in registers, for neighbouring channels or pixels at once",
    .knob = depthwise_knobs,
    .forms = 1u << FORM_CONTRACTION,
    .offers = depthwise_offers,
    .cost = depthwise_cost,
    .lower = depthwise_lower,
};
