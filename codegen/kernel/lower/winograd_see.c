/* What a convolution is to the filters (winograd.h): the window, where image and weights are, and whether vectors of
 * results can be stored.  Nothing is lowered here. */
#include "kernel/lower/winograd.h"
#include "passes/integers.h"

#include <string.h>

void filter_position(const Filter *filter, Index output, Index row, Index column, Index *position)
{
    position[0] = index_var(filter->lower->arena, filter->image);
    position[1] = output;
    position[2] = row;
    position[3] = column;
}

/* The convolution */

static bool see_window(Filter *filter)
{
    const Graph *graph = filter->lower->graph;
    Convolution *conv = &filter->conv;
    if (!convolution_of(graph, filter->node, conv) || conv->groups != 1 || conv->window.rank != 2)
        return false;
    filter->h = conv->window.dim[0], filter->w = conv->window.dim[1];
    for (uint32_t d = 0; d < 2; d++) {
        const WindowDimension *dim = &conv->window.dim[d];
        if (dim->size != WINOGRAD_TAPS || dim->stride != 1 || dim->dilation != 1 || dim->out < 1)
            return false;
    }
    filter->channel_vectors = ceil_div(conv->channels, filter->lanes);
    filter->output_vectors = ceil_div(conv->outputs, filter->lanes);
    return conv->images > 0 && conv->channels > 0 && conv->outputs > 0;
}

/* No channels that only fill up a block. */
static bool fills_blocks(const Filter *filter, const Kernel *kernel)
{
    const Graph *graph = filter->lower->graph;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        const Type *type = value_type(graph, node->out[0]);
        if (type->layout.block && type->shape.dim[1] % type->layout.block)
            return false;
    }
    return true;
}

/* Operands */

static bool see_image(Filter *filter)
{
    VectorImage image;
    if (!lower_see_image(filter->lower, filter->node, filter->image, filter->channels, filter->lane, &image))
        return false;
    filter->x_source = image.source, filter->x_base = image.base, filter->x_h = image.h, filter->x_w = image.w;
    filter->x_vectors = image.vectors;
    return true;
}

static bool stores_vectors(const Filter *filter)
{
    Arena *arena = filter->lower->arena;
    const Var *vector = index_var_new(arena, "v", 0, filter->output_vectors - 1);
    const Var *h = index_var_new(arena, "h", 0, filter->h.out - 1),
              *w = index_var_new(arena, "w", 0, filter->w.out - 1);
    Index position[MAX_RANK];
    Index output =
        index_add(arena, index_scale(arena, index_var(arena, vector), filter->lanes), index_var(arena, filter->lane));
    filter_position(filter, output, index_var(arena, h), index_var(arena, w), position);
    return lower_finishes_vectors(filter->lower, filter->node, position, filter->lane, filter->pool);
}

/* What fuse has joined is a pooling, and nothing else. */
static bool see_pool(Filter *filter, const Kernel *kernel)
{
    const Graph *graph = filter->lower->graph;
    uint32_t windows = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        windows += node_is_contraction(graph, node) || node_is_reduction(graph, node);
    }
    filter->pool = lower_pooling(filter->lower, kernel);
    if (filter->pool)
        filter->pool_stride = reduction_of(graph, filter->pool).window.dim[0].stride;
    return windows == (filter->pool ? 2 : 1);
}

/* Sums of integers that are to be exact stay those of the text. */
bool filter_see(Lower *lower, const Kernel *kernel, Filter *filter)
{
    Arena *arena = lower->arena;
    *filter = (Filter){.lower = lower, .node = &lower->graph->node[kernel->anchor], .lanes = lower->target->lanes};
    if (filter->lanes < 2 || integers_are_exact(lower->graph, filter->node) || !see_pool(filter, kernel) ||
        !see_window(filter) || !fills_blocks(filter, kernel) ||
        !lower_has_constant_weights(lower, filter->node, &filter->conv))
        return false;
    filter->image = index_var_new(arena, "n", 0, filter->conv.images - 1);
    filter->channels = index_var_new(arena, "channels", 0, filter->channel_vectors - 1);
    filter->lane = index_var_new(arena, "lane", 0, filter->lanes - 1);
    if (!see_image(filter))
        return false;
    filter->one_by_one = !stores_vectors(filter);
    return true;
}

/* What follows from the recipe */

void filter_set_form(Filter *filter, uint32_t results)
{
    filter->form = winograd_of(results);
    filter->tile_rows = ceil_div(filter->h.out, results);
    filter->tile_columns = ceil_div(filter->w.out, results);
}

void filter_set_block(Filter *filter, int64_t rows)
{
    filter->rows = rows;
    filter->blocks = ceil_div(filter->tile_rows, rows);
    filter->tiles = rows * filter->tile_columns;
    filter->block = index_var_new(filter->lower->arena, "block", 0, filter->blocks - 1);
}

void filter_set_panels(Filter *filter, int64_t pixels, int64_t vectors)
{
    PanelSpan span[MOST_SPANS];
    int64_t panels = ceil_div(filter->output_vectors, vectors);
    filter->pixels = pixels;
    filter->vectors = vectors;
    filter->panels_count = lower_panel_spans(filter->conv.outputs, filter->lanes, panels, span);
    for (uint32_t i = 0; i < filter->panels_count; i++)
        filter->panels[i] = (FilterPanels){.first = span[i].first,
                                           .count = span[i].count,
                                           .vectors = span[i].vectors,
                                           .partial = span[i].partial,
                                           .panel = index_var_new(filter->lower->arena, "panel", 0, span[i].count - 1)};
}

int64_t filter_columns(const Filter *filter)
{
    return filter->tile_columns * filter->form.results + WINOGRAD_TAPS - 1;
}

int64_t filter_first_column(const Filter *filter)
{
    return least(most(0, filter->w.before), filter_columns(filter));
}

int64_t filter_last_column(const Filter *filter)
{
    return most(filter_first_column(filter), least(filter_columns(filter), filter->w.in + filter->w.before));
}

int64_t filter_weight_elements(const Filter *filter, const FilterPanels *panels)
{
    return panels->count * panels->vectors * filter->lanes * filter->conv.channels * filter->form.size *
           filter->form.size;
}

/* Of taps that have been transformed, [size * size][output][channel]. */
Packing filter_packing(const Filter *filter, const FilterPanels *panels)
{
    int64_t width = panels->vectors * filter->lanes, channels = filter->conv.channels;
    int64_t extent[] = {panels->count, (int64_t)filter->form.size * filter->form.size, channels, width};
    int64_t stride[] = {width * channels, filter->conv.outputs * channels, 1, channels};
    Packing packing;
    memset(&packing, 0, sizeof packing); /* compared as bytes */
    packing.rank = 4;
    packing.winograd = filter->form.results;
    packing.start = panels->first * filter->lanes * channels;
    memcpy(packing.extent, extent, sizeof extent);
    memcpy(packing.stride, stride, sizeof stride);
    packing.bound[0].factor[0] = width;
    packing.bound[0].factor[3] = 1;
    packing.bound[0].most = filter->conv.outputs - panels->first * filter->lanes;
    return packing;
}
