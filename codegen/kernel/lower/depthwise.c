/* Depthwise and grouped convolutions (depthwise.h): what they are to the tiles, the recipe, and the provider's row.
 * Takes f32 convolutions of one or two dimensions whose image is in memory.  Ungrouped ones, too: those of so few
 * outputs that the register tiles of other contractions refuse them. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"

#include <assert.h>
#include <string.h>

enum { KNOB_PIXELS, KNOB_OUTPUTS, KNOB_CHANNELS, KNOB_WIDTH, KNOB_HELD };

static const KnobSpec depthwise_knobs[] = {
    {"pixels", false, "pixels, or vectors of them, whose sums a tile keeps in registers, at most"},
    {"outputs", false, "of a group, that a tile makes at once"},
    {"channels", true, "vectors are of neighbouring channels"},
    {"width", true, "vectors are of pixels along a row"},
    {"held", true, "the weights of all taps stay in registers"},
    {NULL, false, NULL},
};

#define MOST_EDGES   8 /* columns at both ends of a row that tiles take in, with the taps that are inside */
#define FEW_PIXELS   4 /* whose sums hide the latency of each other's additions */
#define MANY_PIXELS  8
#define MANY_OUTPUTS 8

/* Positions */

Index depthwise_output(const Depthwise *dw, int64_t number)
{
    Arena *arena = dw->lower->arena;
    int64_t width = dw->along == ALONG_CHANNELS ? dw->lanes : dw->outputs;
    Index first = index_scale(arena, index_var(arena, dw->block), width);
    if (dw->along == ALONG_CHANNELS)
        first = index_add(arena, first, index_var(arena, dw->lane));
    return index_add(arena, first, index_constant(number));
}

void depthwise_position(const Depthwise *dw, Index output, Index row, Index column, Index *position)
{
    position[0] = index_var(dw->lower->arena, dw->image);
    position[1] = output;
    position[2] = row;
    position[1 + dw->conv.window.rank] = column;
}

/* The channel of the image that `channel` of the block's group is. */
static Index channel_read(const Depthwise *dw)
{
    Arena *arena = dw->lower->arena;
    if (dw->along == ALONG_CHANNELS)
        return depthwise_output(dw, 0);
    Index group = index_div(arena, depthwise_output(dw, 0), dw->group_outputs);
    Index first = index_scale(arena, group, dw->group_channels);
    return dw->group_channels == 1 ? first : index_add(arena, first, index_var(arena, dw->channel));
}

/* The image */

/* The results for which the whole window is inside the image: begin ... end - 1. */
static void inside(const WindowDimension *d, int64_t *begin, int64_t *end)
{
    int64_t room = d->in + d->before - window_span(d); /* where the last of them begins at most */
    *end = room < 0 ? 0 : least(d->out, room / d->stride + 1);
    *begin = least(ceil_div(d->before, d->stride), d->out);
    *end = most(*begin, *end);
}

static void see_window(Depthwise *dw)
{
    dw->h = lower_window_dimension(&dw->conv.window, 1);
    dw->w = lower_window_dimension(&dw->conv.window, 0);
    dw->group_channels = dw->conv.channels / dw->conv.groups;
    dw->group_outputs = dw->conv.outputs / dw->conv.groups;
    inside(&dw->h, &dw->rows_begin, &dw->rows_end);
    inside(&dw->w, &dw->columns_begin, &dw->columns_end);
}

static bool see_image(Depthwise *dw)
{
    Arena *arena = dw->lower->arena;
    const Var *h = index_var_new(arena, "h", 0, dw->h.in - 1), *w = index_var_new(arena, "w", 0, dw->w.in - 1);
    Index position[MAX_RANK] = {0}, address, zero = index_constant(0);
    int64_t factor;
    depthwise_position(dw, channel_read(dw), index_var(arena, h), index_var(arena, w), position);
    if (!lower_memory_source(dw->lower, dw->node->in[0], position, &dw->x_source, &address) ||
        !index_factor(address, h, &dw->x_h) || !index_factor(address, w, &dw->x_w))
        return false;
    dw->x_base = index_substitute(arena, index_substitute(arena, address, h, zero), w, zero);
    return dw->along != ALONG_CHANNELS || (index_factor(address, dw->lane, &factor) && factor == 1);
}

/* The weights, of lanes along channels */

static bool weights_address(const Depthwise *dw, const Var *kh, const Var *kw, ValueId *source, Index *address)
{
    Arena *arena = dw->lower->arena;
    Index position[MAX_RANK] = {0};
    depthwise_position(dw, depthwise_output(dw, 0), index_var(arena, kh), index_var(arena, kw), position);
    position[0] = depthwise_output(dw, 0);
    position[1] = index_constant(0);
    return lower_memory_source(dw->lower, dw->node->in[1], position, source, address);
}

static bool packing_of(const Depthwise *dw, ValueId *source, Packing *packing)
{
    Arena *arena = dw->lower->arena;
    const Var *kh = index_var_new(arena, "kh", 0, dw->h.size - 1), *kw = index_var_new(arena, "kw", 0, dw->w.size - 1);
    const Var *digit[] = {dw->block, kh, kw, dw->lane};
    Index address;
    memset(packing, 0, sizeof *packing); /* compared as bytes */
    if (!weights_address(dw, kh, kw, source, &address))
        return false;
    Role role = dw->lower->graph->value[*source].role;
    if (role != ROLE_CONST && role != ROLE_PARAM)
        return false;
    packing->rank = sizeof digit / sizeof *digit;
    packing->start = address.constant;
    for (uint32_t i = 0; i < packing->rank; i++) {
        packing->extent[i] = digit[i]->high + 1;
        if (!index_factor(address, digit[i], &packing->stride[i]))
            return false;
    }
    return true;
}

static bool lanes_of_weights(const Depthwise *dw)
{
    const Var *tap = index_var_new(dw->lower->arena, "tap", 0, 0);
    ValueId source;
    Index address;
    int64_t factor;
    return weights_address(dw, tap, tap, &source, &address) && index_factor(address, dw->lane, &factor);
}

/* Which */

static bool in_memory(const Lower *lower, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (value_type(lower->graph, node->in[i])->dtype != DT_F32 || kernel_makes(lower, node->in[i]))
            return false;
    return true;
}

static bool finishes_vectors(const Depthwise *dw)
{
    Arena *arena = dw->lower->arena;
    const Var *h = index_var_new(arena, "h", 0, dw->h.out - 1), *w = index_var_new(arena, "w", 0, dw->w.out - 1);
    Index position[MAX_RANK], column = index_var(arena, w);
    if (dw->along == ALONG_WIDTH)
        column = index_var(arena, dw->lane);
    depthwise_position(dw, depthwise_output(dw, 0), index_var(arena, h), column, position);
    return lower_finishes_vectors(dw->lower, dw->node, position, dw->lane, NULL);
}

static bool fits_along(const Depthwise *dw)
{
    bool plain = !value_type(dw->lower->graph, dw->node->out[0])->layout.block;
    switch (dw->along) {
    case ALONG_CHANNELS:
        return dw->group_channels == 1 && dw->group_outputs == 1 && dw->conv.channels % dw->lanes == 0 &&
               dw->outputs == 1;
    case ALONG_WIDTH:
        return dw->columns_end - dw->columns_begin >= dw->lanes;
    default:
        return plain;
    }
}

/* Everything but the tile. */
static bool see_along(Depthwise *dw, Along along)
{
    Lower *lower = dw->lower;
    Arena *arena = lower->arena;
    Packing packing;
    ValueId source;
    dw->along = along;
    dw->lanes = along == ALONG_NOTHING ? 1 : lower->target->lanes;
    if (!fits_along(dw))
        return false;
    int64_t blocks = dw->conv.outputs / (along == ALONG_CHANNELS ? dw->lanes : dw->outputs);
    dw->image = index_var_new(arena, "n", 0, dw->conv.images - 1);
    dw->block = index_var_new(arena, along == ALONG_CHANNELS ? "block" : "o", 0, blocks - 1);
    dw->channel = index_var_new(arena, "c", 0, dw->group_channels - 1);
    dw->lane = index_var_new(arena, "lane", 0, dw->lanes - 1);
    if (!see_image(dw) || (along != ALONG_NOTHING && !finishes_vectors(dw)))
        return false;
    dw->packed = along == ALONG_CHANNELS && packing_of(dw, &source, &packing);
    return along != ALONG_CHANNELS || dw->packed || lanes_of_weights(dw);
}

/* The tile */

/* Pixels whose sums fit the registers beside the weights, those of all taps or one, and an element. */
static int64_t most_pixels(const Depthwise *dw)
{
    int64_t weights = dw->held ? dw->h.size * dw->w.size : 1;
    return (dw->lower->target->vector_registers - weights - 1) / dw->outputs;
}

static bool may_hold(const Depthwise *dw)
{
    return dw->group_channels == 1 && dw->outputs == 1 && dw->rows_begin < dw->rows_end && dw->w.size <= MOST_TAPS &&
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

static bool choose_tile(Depthwise *dw, const int64_t *asked)
{
    int64_t edges = dw->columns_begin + dw->w.out - dw->columns_end, wanted = asked[KNOB_PIXELS];
    dw->edges = dw->w.size > MOST_TAPS || edges > MOST_EDGES;
    dw->held = asked[KNOB_HELD] != 0 && may_hold(dw);
    if (asked[KNOB_HELD] == KNOB_FREE && most_pixels(dw) < (wanted == KNOB_FREE ? FEW_PIXELS : wanted))
        dw->held = false;
    dw->pixels = wanted != KNOB_FREE        ? wanted
                 : dw->along == ALONG_WIDTH ? choose_vectors(dw, least(FEW_PIXELS, most_pixels(dw)))
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

static bool plan(Lower *lower, Depthwise *dw, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    const int64_t *asked = recipe->knob;
    *dw = (Depthwise){.lower = lower, .node = node};
    if (lower->target->lanes < 2 || !convolution_of(lower->graph, node, &dw->conv) || dw->conv.window.rank < 1 ||
        dw->conv.window.rank > 2 || lower_has_other_windows(lower, lower->kernel) || !in_memory(lower, node) ||
        !shape_elements(value_shape(lower->graph, node->in[1])) ||
        !shape_elements(value_shape(lower->graph, node->out[0])))
        return false;
    see_window(dw);
    dw->outputs = asked[KNOB_OUTPUTS] == KNOB_FREE ? choose_outputs(dw) : asked[KNOB_OUTPUTS];
    if (dw->outputs < 1 || dw->group_outputs % dw->outputs)
        return false;
    for (Along along = ALONG_CHANNELS; along <= ALONG_NOTHING; along++)
        if (may_go(recipe, along) && see_along(dw, along) && choose_tile(dw, asked))
            return true;
    return false;
}

static bool overlaps(const Depthwise *dw)
{
    int64_t columns = dw->columns_end - dw->columns_begin;
    return dw->along == ALONG_WIDTH && columns % (dw->pixels * dw->lanes) != 0;
}

static bool depthwise_offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    Depthwise dw;
    (void)kernel;
    if (!plan(lower, &dw, recipe))
        return false;
    recipe->knob[KNOB_PIXELS] = dw.pixels;
    recipe->knob[KNOB_OUTPUTS] = dw.outputs;
    recipe->knob[KNOB_CHANNELS] = dw.along == ALONG_CHANNELS;
    recipe->knob[KNOB_WIDTH] = dw.along == ALONG_WIDTH;
    recipe->knob[KNOB_HELD] = dw.held;
    recipe->rewrites = overlaps(&dw);
    return true;
}

/* Vectors, or single results at least without bounds; slower than tiles over a depth that fill their vectors. */
static double depthwise_cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    bool vectors = recipe->knob[KNOB_CHANNELS] || recipe->knob[KNOB_WIDTH];
    int64_t lanes = lower->target->lanes;
    bool deep = value_shape(lower->graph, node->in[1])->dim[1] > lanes;
    return (double)node_flops(lower->graph, node) / (!vectors ? 2.0 : (double)lanes * (deep ? 1.5 : 2.5));
}

static void depthwise_lower(Lower *lower)
{
    Depthwise dw;
    ValueId source;
    Packing packing;
    bool offered = plan(lower, &dw, &lower->kernel->recipe);
    assert(offered && "what was offered is offered again");
    (void)offered;
    dw.x = lower_buffer(lower, dw.x_source, false);
    dw.x_whole = lower->storage->at[dw.x_source].inside == NONE;
    dw.x_base = index_add(lower->arena, dw.x_base, index_constant(-lower->kernel->buffer[dw.x].begin));
    if (dw.packed && packing_of(&dw, &source, &packing))
        dw.weights = lower_weights(lower, source, &packing, dw.conv.outputs * dw.h.size * dw.w.size);
    depthwise_emit(&dw);
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
