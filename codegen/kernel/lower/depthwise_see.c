/* What a depthwise convolution is to the tiles: where the whole window is inside, what fills a vector, how image and
 * weights are addressed. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"

#include <string.h>

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

/* begin + step * at, of the dimension so far from the last. */
static Index spread(const Depthwise *dw, const int64_t *begin, const int64_t *step, uint32_t from_last, Index at)
{
    Arena *arena = dw->lower->arena;
    uint32_t rank = dw->conv.window.rank, d = rank - 1 - from_last;
    return from_last < rank ? index_add(arena, index_scale(arena, at, step[d]), index_constant(begin[d])) : at;
}

void depthwise_result(const Depthwise *dw, Index output, Index row, Index column, Index *position)
{
    const ConvolutionPhase *part = &dw->part;
    depthwise_position(dw, output, spread(dw, part->begin, part->step, 1, row),
                       spread(dw, part->begin, part->step, 0, column), position);
}

void depthwise_weight(const Depthwise *dw, Index output, Index channel, Index kh, Index kw, Index *position)
{
    const ConvolutionPhase *part = &dw->part;
    depthwise_position(dw, channel, spread(dw, part->tap_begin, part->tap_step, 1, kh),
                       spread(dw, part->tap_begin, part->tap_step, 0, kw), position);
    position[0] = output;
    if (part->transposed) { /* [channels, outputs of a group, ...] */
        Arena *arena = dw->lower->arena;
        Index group = index_div(arena, output, dw->group_outputs);
        position[0] = index_add(arena, index_scale(arena, group, dw->group_channels), channel);
        position[1] = index_mod(arena, output, dw->group_outputs);
    }
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

/* Where it is, or the one narrow value that the kernel makes it of. */
static bool image_address(const Depthwise *dw, const Index *position, ValueId *source, Index *address)
{
    Leaf leaf = {NONE, index_constant(0)};
    if (!dw->widened)
        return lower_memory_source(dw->lower, dw->node->in[0], position, source, address);
    bool found = lower_narrow_leaf(dw->lower, dw->node->in[0], position, &leaf);
    *source = leaf.value;
    *address = leaf.address;
    return found;
}

/* The results for which the whole window is inside the image: begin ... end - 1. */
static void inside(const WindowDimension *d, int64_t *begin, int64_t *end)
{
    int64_t room = d->in + d->before - window_span(d); /* where the last of them begins at most */
    *end = room < 0 ? 0 : least(d->out, room / d->stride + 1);
    *begin = d->before > 0 ? least(ceil_div(d->before, d->stride), d->out) : 0; /* parts may begin further on */
    *end = most(*begin, *end);
}

void depthwise_see_window(Depthwise *dw)
{
    dw->h = dw->image_h = lower_window_dimension(&dw->conv.window, 1);
    dw->w = dw->image_w = lower_window_dimension(&dw->conv.window, 0);
    dw->framed = false;
    dw->group_channels = dw->conv.channels / dw->conv.groups;
    dw->group_outputs = dw->conv.outputs / dw->conv.groups;
    inside(&dw->h, &dw->rows_begin, &dw->rows_end);
    inside(&dw->w, &dw->columns_begin, &dw->columns_end);
}

bool depthwise_see_image(Depthwise *dw)
{
    Arena *arena = dw->lower->arena;
    const Var *h = index_var_new(arena, "h", 0, dw->image_h.in - 1),
              *w = index_var_new(arena, "w", 0, dw->image_w.in - 1);
    Index position[MAX_RANK] = {0}, address, zero = index_constant(0);
    int64_t factor;
    depthwise_position(dw, channel_read(dw), index_var(arena, h), index_var(arena, w), position);
    dw->widened = kernel_computes(dw->lower, dw->node->in[0]);
    if (!image_address(dw, position, &dw->x_source, &address) || !index_factor(address, h, &dw->x_h) ||
        !index_factor(address, w, &dw->x_w))
        return false;
    dw->x_base = index_substitute(arena, index_substitute(arena, address, h, zero), w, zero);
    if (dw->widened && dw->along == ALONG_WIDTH && dw->image_w.stride * dw->x_w != 1) /* vectors are widened whole */
        return false;
    if (dw->framed) {
        dw->image_x_h = dw->x_h, dw->image_x_w = dw->x_w;
        dw->x_h = dw->w.in, dw->x_w = 1;
    }
    return dw->along != ALONG_CHANNELS || (index_factor(address, dw->lane, &factor) && factor == 1);
}

/* The weights, of lanes along channels */

/* Of weights that are widened here, the constant that they are made of, if it is one alone. */
static bool weights_address(const Depthwise *dw, const Var *kh, const Var *kw, ValueId *source, Index *address)
{
    Arena *arena = dw->lower->arena;
    Index position[MAX_RANK] = {0};
    Leaves leaves;
    depthwise_weight(dw, depthwise_output(dw, 0), index_constant(0), index_var(arena, kh), index_var(arena, kw),
                     position);
    if (!kernel_computes(dw->lower, dw->node->in[1]))
        return lower_memory_source(dw->lower, dw->node->in[1], position, source, address);
    if (!lower_leaves(dw->lower, dw->node->in[1], position, &leaves) || leaves.count > 1)
        return false;
    *source = leaves.leaf[0].value;
    *address = leaves.leaf[0].address;
    return true;
}

bool depthwise_packing(const Depthwise *dw, ValueId *source, Packing *packing)
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
    return !kernel_computes(dw->lower, dw->node->in[1]) && weights_address(dw, tap, tap, &source, &address) &&
           index_factor(address, dw->lane, &factor);
}

/* Which */

bool depthwise_in_memory(const Lower *lower, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (value_type(lower->graph, node->in[i])->dtype != DT_F32 || (i > 1 && kernel_makes(lower, node->in[i])))
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
    depthwise_result(dw, depthwise_output(dw, 0), index_var(arena, h), column, position);
    return lower_finishes_vectors(dw->lower, dw->node, position, dw->lane, dw->reader);
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

/* Of a vector of pixels: half of the target's or a quarter, where rows hold no whole one. */
static int64_t lanes_along_width(const Depthwise *dw)
{
    int64_t lanes = dw->lower->target->lanes;
    while (lanes / 2 >= LEAST_LANES && lanes > dw->columns_end - dw->columns_begin)
        lanes /= 2;
    return lanes;
}

/* Everything but the tile. */
bool depthwise_see_along(Depthwise *dw, Along along)
{
    Lower *lower = dw->lower;
    Arena *arena = lower->arena;
    Packing packing;
    ValueId source;
    dw->along = along;
    dw->lanes = along == ALONG_NOTHING ? 1 : along == ALONG_WIDTH ? lanes_along_width(dw) : lower->target->lanes;
    if (!fits_along(dw))
        return false;
    int64_t blocks = dw->conv.outputs / (along == ALONG_CHANNELS ? dw->lanes : dw->outputs);
    if (!dw->image)
        dw->image = index_var_new(arena, "n", 0, dw->conv.images - 1);
    dw->block = index_var_new(arena, along == ALONG_CHANNELS ? "block" : "o", 0, blocks - 1);
    dw->channel = index_var_new(arena, "c", 0, dw->group_channels - 1);
    dw->lane = index_var_new(arena, "lane", 0, dw->lanes - 1);
    if (!depthwise_see_image(dw) || (along != ALONG_NOTHING && !finishes_vectors(dw)))
        return false;
    dw->packed = along == ALONG_CHANNELS && depthwise_packing(dw, &source, &packing);
    return along != ALONG_CHANNELS || dw->packed || lanes_of_weights(dw);
}
