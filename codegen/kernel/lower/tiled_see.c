/* What a contraction is to the register tiles (tiled.h): rows and columns, pixels and channels, addresses, and whether
 * vectors of columns can be finished and stored.  Nothing is lowered here. */
#include "kernel/lower/strip.h"
#include "kernel/lower/tiled.h"

#include "passes/phases.h"
#include "passes/widen.h"

#include <math.h>
#include <string.h>

#define LEAST_BLOCK 4 /* steps of the depth that share what goes round them */

static bool is_f32(const Lower *lower, ValueId value)
{
    return value_type(lower->graph, value)->dtype == DT_F32;
}

/* The first operand */

/* Whose memory it is read from at a position, and where; false when it is computed here, or elsewhere than in memory.
 */
static bool operand_address(Tiled *con, const Index *position, Index *address)
{
    Lower *lower = con->lower;
    return !kernel_computes(lower, con->x_value) &&
           lower_memory_source(lower, con->x_value, position, &con->x_source, address);
}

/* What a cast of the kernel reads is converted where it is loaded. */
static ValueId under_cast(const Lower *lower, ValueId value)
{
    const Node *node = value_producer(lower->graph, value);
    return kernel_makes(lower, value) && node_casts_input(lower->graph, node) ? node->in[0] : value;
}

static Index at_depth(const Tiled *con, const Var *depth)
{
    Arena *arena = con->lower->arena;
    return index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth),
                     index_var(arena, depth));
}

static void set_blocks(Tiled *con, int64_t block_depth)
{
    con->block_depth = block_depth;
    con->block_count = con->depth / block_depth;
    con->block = index_var_new(con->lower->arena, "block", 0, ceil_div(con->depth, block_depth) - 1);
}

static bool set_operand(Tiled *con, Index address, const Var *depth, const Var *h, const Var *w)
{
    Arena *arena = con->lower->arena;
    Index zero = index_constant(0);
    if (!index_factor(address, depth, &con->x_depth) || !index_factor(address, w, &con->x_w) ||
        (h && !index_factor(address, h, &con->x_h)))
        return false;
    con->x_base = index_substitute(arena, index_substitute(arena, address, depth, zero), w, zero);
    if (h)
        con->x_base = index_substitute(arena, con->x_base, h, zero);
    return true;
}

/* Convolution */

static void see_window(Tiled *con, const Convolution *conv)
{
    WindowDimension h = lower_window_dimension(&conv->window, 1), w = lower_window_dimension(&conv->window, 0);
    con->out_h = h.out, con->out_w = w.out;
    con->in_h = h.in, con->in_w = w.in;
    con->taps_h = h.size, con->taps_w = w.size;
    con->stride_h = h.stride, con->stride_w = w.stride;
    con->dilation_h = h.dilation, con->dilation_w = w.dilation;
    con->pad_top = h.before, con->pad_left = w.before;
}

/* Columns and depth of a bundle; false where vectors and groups do not fit. */
static bool see_groups(Tiled *con, const Convolution *conv)
{
    con->joined = convolution_joined_groups(conv, con->lanes);
    if (!con->joined || (con->joined > 1 && kernel_computes(con->lower, con->second)))
        return false;
    con->bundles = conv->groups / con->joined;
    con->group_channels = conv->channels / conv->groups;
    con->group_outputs = conv->outputs / conv->groups;
    con->depth = con->joined * con->group_channels;
    con->columns = con->joined * con->group_outputs;
    con->bundle = index_var_new(con->lower->arena, "group", 0, con->bundles - 1);
    return true;
}

/* A block has whole groups. */
static int64_t block_depth(const Tiled *con)
{
    if (con->joined == 1)
        return tiled_scale_block(con, con->lanes);
    return least(con->depth, con->lanes / con->group_channels * con->group_channels);
}

/* The weight's taps, and where a pixel of the phase is in the result. */
static void see_phase(Tiled *con, const ConvolutionPhase *phase)
{
    Arena *arena = con->lower->arena;
    Index pixel = index_var(arena, con->pixel);
    uint32_t rank = phase->conv.window.rank;
    Index at[2] = {index_div(arena, pixel, con->out_w), index_mod(arena, pixel, con->out_w)};
    con->transposed = phase->transposed;
    con->empty = convolution_phase_is_empty(phase);
    for (uint32_t i = 0; i < 2; i++) {
        con->tap_begin[i] = 0, con->tap_step[i] = 1;
        if (rank + i < 2)
            continue; /* h, of one dimension */
        uint32_t d = rank + i - 2;
        con->tap_begin[i] = phase->tap_begin[d], con->tap_step[i] = phase->tap_step[d];
        con->position[2 + d] =
            index_add(arena, index_scale(arena, at[i], phase->step[d]), index_constant(phase->begin[d]));
    }
}

/* Where the image is. */
static bool see_image(Tiled *con, const Var *image, const Var *h, const Var *w)
{
    Arena *arena = con->lower->arena;
    const Var *depth = index_var_new(arena, "c", 0, least(con->block_depth, con->depth) - 1);
    Index first = index_scale(arena, index_var(arena, con->bundle), con->depth), address;
    Index position[MAX_RANK] = {index_var(arena, image), index_add(arena, first, at_depth(con, depth)),
                                index_var(arena, h)};
    position[value_shape(con->lower->graph, con->x_value)->rank - 1] = index_var(arena, w);
    return operand_address(con, position, &address) && set_operand(con, address, depth, h, w);
}

static bool see_conv(Tiled *con, const ConvolutionPhase *phase)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    const Convolution *conv = &phase->conv;
    uint32_t rank = conv->window.rank;
    if (rank < 1 || rank > 2 || !see_groups(con, conv))
        return false;

    see_window(con, conv);
    const Var *image = index_var_new(arena, "n", 0, conv->images - 1);
    const Var *h = index_var_new(arena, "h", 0, con->in_h - 1), *column = index_var_new(arena, "w", 0, con->in_w - 1);
    con->outer[con->outer_count++] = image;
    con->outer[con->outer_count++] = con->bundle;
    con->pixel = index_var_new(arena, "pixel", 0, con->out_h * con->out_w - 1);
    con->column = index_var_new(arena, "o", 0, con->columns - 1);
    con->position[0] = index_var(arena, image);
    Index bundle = index_var(arena, con->bundle);
    con->position[1] = index_add(arena, index_scale(arena, bundle, con->columns), index_var(arena, con->column));
    see_phase(con, phase);
    set_blocks(con, block_depth(con));

    if (kernel_computes(lower, con->x_value))
        return rank == 2 && conv->groups == 1 && !phase->transposed && tiled_see_line(con);
    if (see_image(con, image, h, column))
        return true;
    /* Views cut the address behind the last channel. */
    int64_t whole = number_largest_divisor(con->depth, con->block_depth);
    if (con->joined > 1 || whole == con->block_depth || whole < LEAST_BLOCK)
        return false;
    set_blocks(con, whole);
    return see_image(con, image, h, column);
}

/* Matmul: rows are the pixels of an image of height 1. */

typedef struct Rows { /* how the batch and the rows become loops and pixels */
    uint32_t batch;   /* dimensions of the result before the rows */
    bool flat;        /* the batch joins the rows */
    int64_t inner;    /* pixels; rows / inner are a loop outside */
} Rows;

static void see_rows(Tiled *con, const Rows *rows)
{
    Arena *arena = con->lower->arena;
    const Shape *y = value_shape(con->lower->graph, con->node->out[0]);
    bool row = con->product.has_rows;
    int64_t extent = con->product.rows;

    con->outer_count = 0;
    for (uint32_t d = 0; d < rows->batch && !rows->flat; d++) {
        con->outer[con->outer_count] = index_var_new(arena, lower_loop_names[d], 0, y->dim[d] - 1);
        con->position[d] = index_var(arena, con->outer[con->outer_count++]);
    }
    for (uint32_t d = 0; d < rows->batch && rows->flat; d++)
        extent *= y->dim[d];
    con->out_w = rows->inner ? rows->inner : extent;
    con->pixel = index_var_new(arena, "m", 0, con->out_w - 1);
    Index at = index_var(arena, con->pixel);
    if (con->out_w != extent) {
        const Var *outer = index_var_new(arena, "m0", 0, extent / con->out_w - 1);
        con->outer[con->outer_count++] = outer;
        at = index_add(arena, at, index_scale(arena, index_var(arena, outer), con->out_w));
    }
    if (rows->flat)
        index_unflatten(arena, at, y->dim, rows->batch + row, con->position);
    else if (row)
        con->position[rows->batch] = at;
    con->position[y->rank - 1] = index_var(arena, con->column);
}

static bool rows_operand(Tiled *con, const Rows *rows, const Var *depth, Index *address)
{
    const Shape *x = value_shape(con->lower->graph, con->node->in[0]);
    Index position[MAX_RANK] = {0};
    for (uint32_t d = 0; d + 2 < x->rank; d++)
        position[d] = x->dim[d] == 1 ? index_constant(0) : con->position[rows->batch - (x->rank - 2) + d];
    if (x->rank > 1)
        position[x->rank - 2] = con->position[rows->batch];
    position[x->rank - 1] = at_depth(con, depth);
    return operand_address(con, position, address);
}

static bool batched(const Shape *shape)
{
    for (uint32_t d = 0; d + 2 < shape->rank; d++)
        if (shape->dim[d] != 1)
            return true;
    return false;
}

int64_t tiled_divided_depth(int64_t depth, int64_t lanes)
{
    int64_t block = number_largest_divisor(depth, least(depth, 2 * lanes));
    return block < LEAST_BLOCK ? 0 : block;
}

/* Where the depth's address is cut, it is cut into blocks that end there; and where it is cut behind its last element,
 * as of a part of a row, into blocks none of which goes beyond that. */
static bool cut_depth(Tiled *con, const Rows *rows)
{
    Arena *arena = con->lower->arena;
    const Var *k = index_var_new(arena, "k", 0, con->depth - 1); /* not yet cut into blocks */
    int64_t block = con->block_depth, step;
    Index address;
    con->block = index_var_new(arena, "block", 0, 0);
    if (!rows_operand(con, rows, k, &address))
        return false;
    bool whole = index_factor(address, k, &step);
    int64_t cut = whole ? con->depth : index_finest_cut(address, k);
    if (cut <= 1 || con->depth % cut)
        return false;
    int64_t shorter =
        whole ? tiled_divided_depth(cut, con->lanes) : number_largest_divisor(cut, least(cut, 2 * con->lanes));
    if (!shorter)
        return false;
    set_blocks(con, shorter);
    return con->block_depth != block;
}

/* Tries this view of the rows; where the address cuts them or the depth, says where. */
static bool try_rows(Tiled *con, Rows *rows, bool *again)
{
    const Var *depth = index_var_new(con->lower->arena, "c", 0, con->block_depth - 1);
    Index address;
    int64_t factor;
    *again = false;
    see_rows(con, rows);
    if (!rows_operand(con, rows, depth, &address))
        return false;
    if (set_operand(con, address, depth, NULL, con->pixel))
        return true;
    int64_t cut = index_cut(address, con->pixel, NULL);
    if (cut > 1 && cut < con->out_w && con->out_w % cut == 0) {
        rows->inner = cut;
        *again = true;
    } else if (!index_factor(address, depth, &factor))
        *again = cut_depth(con, rows);
    return false;
}

/* The rows of a strip, inside loops over the batch that others make; the second product takes them from there. */
static bool see_strip(Tiled *con)
{
    Arena *arena = con->lower->arena;
    const Strip *strip = con->lower->strip;
    Rows rows = {.batch = con->product.batch_rank};
    Index address;
    int64_t factor;
    con->outer_count = 0;
    con->out_w = con->in_w = strip->height;
    con->pixel = index_var_new(arena, "m", 0, strip->height - 1);
    for (uint32_t d = 0; d < rows.batch; d++)
        con->position[d] = index_var(arena, strip->loop[d]);
    con->position[rows.batch] = index_add(arena, strip->first, index_var(arena, con->pixel));
    con->position[rows.batch + 1] = index_var(arena, con->column);
    set_blocks(con, con->lanes);
    if (con->takes_strip) {
        con->x_source = con->x_value;
        con->x_depth = 1;
        con->x_w = strip->apart;
        con->x_base = index_scale(arena, index_var(arena, con->block), con->block_depth);
        return true;
    }
    for (;;) {
        const Var *depth = index_var_new(arena, "c", 0, con->block_depth - 1);
        if (!rows_operand(con, &rows, depth, &address))
            return false;
        if (set_operand(con, address, depth, NULL, con->pixel))
            return true;
        if (index_factor(address, depth, &factor) || !cut_depth(con, &rows))
            return false;
    }
}

static bool see_matmul(Tiled *con)
{
    Lower *lower = con->lower;
    const Product *product = &con->product;
    if (!product->has_columns)
        return false;

    Rows rows = {.batch = product->batch_rank, .flat = !batched(value_shape(lower->graph, con->node->in[1]))};
    con->columns = product->columns;
    con->depth = product->depth;
    con->bundles = con->joined = 1;
    con->bundle = index_var_new(lower->arena, "group", 0, 0);
    con->out_h = con->in_h = con->taps_h = con->taps_w = 1;
    con->stride_h = con->stride_w = con->dilation_h = con->dilation_w = 1;
    con->column = index_var_new(lower->arena, "n", 0, con->columns - 1);
    if (lower->strip)
        return see_strip(con);
    for (int flat = rows.flat; flat >= 0; flat--) {
        bool again = true;
        rows.flat = flat;
        rows.inner = 0;
        see_rows(con, &rows);
        set_blocks(con, tiled_scale_block(con, con->lanes));
        for (int round = 0; again && round < 4; round++)
            if (try_rows(con, &rows, &again)) {
                con->in_w = con->out_w;
                return true;
            }
    }
    return false;
}

/* A pointwise convolution of a plain image, as a product: weights by pixels. */

#define SCATTERS 1.2 /* times the work, of results that lie by pixels and come by vectors of channels */

/* Are vectors of pixels worth more than those of outputs, whose last one may be filled in part? */
static bool fills_pixels(const Tiled *con, const Convolution *conv)
{
    double pixels = 1, outputs = (double)conv->outputs, lanes = con->lanes;
    for (uint32_t d = 0; d < conv->window.rank; d++)
        pixels *= (double)conv->window.dim[d].out;
    return pixels > 0 && lanes * ceil(pixels / lanes) / pixels <= SCATTERS * lanes * ceil(outputs / lanes) / outputs;
}

static bool goes_by_pixels(const Tiled *con, const ConvolutionPhase *phase)
{
    const Lower *lower = con->lower;
    const Graph *graph = lower->graph;
    const ValueId *in = con->node->in;
    return !phase->transposed && phase->conv.groups == 1 && window_is_pointwise(&phase->conv.window) &&
           fills_pixels(con, &phase->conv) && !value_type(graph, in[0])->layout.block &&
           !value_type(graph, con->node->out[0])->layout.block && !kernel_computes(lower, in[0]) &&
           !kernel_computes(lower, in[1]) && !lower_has_other_windows(lower, lower->kernel);
}

static bool see_pixels(Tiled *con, const Convolution *conv)
{
    Arena *arena = con->lower->arena;
    const Shape *y = value_shape(con->lower->graph, con->node->out[0]);
    const Var *image = index_var_new(arena, "n", 0, conv->images - 1);
    con->is_product = con->by_pixels = true;
    con->x_value = under_cast(con->lower, con->node->in[1]);
    con->second = con->node->in[0];
    con->columns = 1;
    for (uint32_t d = 2; d < y->rank; d++)
        con->columns *= y->dim[d];
    con->depth = conv->channels;
    con->out_w = con->in_w = conv->outputs;
    con->out_h = con->in_h = con->taps_h = con->taps_w = 1;
    con->stride_h = con->stride_w = con->dilation_h = con->dilation_w = 1;
    con->bundles = con->joined = 1;
    con->bundle = index_var_new(arena, "group", 0, 0);
    con->outer[con->outer_count++] = image;
    con->pixel = index_var_new(arena, "o", 0, conv->outputs - 1);
    con->column = index_var_new(arena, "pixel", 0, con->columns - 1);
    con->position[0] = index_var(arena, image);
    con->position[1] = index_var(arena, con->pixel);
    index_unflatten(arena, index_var(arena, con->column), y->dim + 2, y->rank - 2, con->position + 2);
    set_blocks(con, con->lanes);

    const Var *depth = index_var_new(arena, "c", 0, con->block_depth - 1);
    Index address, weight[MAX_RANK] = {con->position[1], at_depth(con, depth)};
    return operand_address(con, weight, &address) && set_operand(con, address, depth, NULL, con->pixel);
}

/* Results */

/* A vector of columns at a time. */
static bool stores_vectors(const Tiled *con)
{
    Arena *arena = con->lower->arena;
    const Var *vector = index_var_new(arena, "v", 0, con->columns / con->lanes - 1),
              *lane = index_var_new(arena, "lane", 0, con->lanes - 1);
    Index position[MAX_RANK], column = index_scale(arena, index_var(arena, vector), con->lanes);
    tiled_position(con, index_var(arena, con->pixel), index_add(arena, index_var(arena, lane), column), position);
    return lower_finishes_vectors(con->lower, con->node, position, lane, con->pool);
}

static bool see_operands(Tiled *con)
{
    const Graph *graph = con->lower->graph;
    con->phases = 1;
    con->is_product = product_of(graph, con->node, &con->product);
    if (con->is_product)
        return see_matmul(con);
    con->phases = convolution_phase_count(graph, con->node);
    if (!con->phases || con->phases > MOST_PHASES)
        return false;
    ConvolutionPhase phase = convolution_phase_of(graph, con->node, con->phase);
    return goes_by_pixels(con, &phase) ? see_pixels(con, &phase.conv) : see_conv(con, &phase);
}

static void see_pool(Tiled *con)
{
    const Lower *lower = con->lower;
    con->pool = lower_pooling(lower, lower->kernel);
    if (!con->pool)
        return;
    Window window = reduction_of(lower->graph, con->pool).window;
    con->pool_window = window_span(&window.dim[0]), con->pool_stride = window.dim[0].stride;
}

static bool worth_it(const Tiled *con)
{
    int64_t pixels = con->out_h * con->out_w;
    bool in_place = con->packed || (con->is_product && !con->product.transposed);
    bool pads = con->packed || con->lower->target->dialect == DIALECT_VECTOR;         /* with zeros */
    bool few = con->columns * 2 < con->lanes && !con->transposed && !con->is_product; /* others make vectors of these */
    return (con->columns >= con->lanes || (pads && !few)) && con->depth > 0 && pixels > 0 && (in_place || pixels >= 4);
}

/* Is the value made of what is known when compiling?  Recurses over what the kernel computes. */
static bool is_made_of_constants(const Lower *lower, ValueId value)
{
    const Node *node = value_producer(lower->graph, value);
    if (!node)
        return lower->graph->value[value].role != ROLE_INPUT;
    bool constants = kernel_makes(lower, value) || kernel_value_is_view(lower->graph, value);
    for (uint32_t i = 0; constants && i < node->in_count; i++)
        constants = is_made_of_constants(lower, node->in[i]);
    return constants;
}

#define FEW_COLUMNS 40 /* more lose more by shorter vectors than by a rest */

int64_t tiled_lanes(const Target *target, const Product *product)
{
    int64_t lanes = target->lanes, shorter = lanes;
    if (target->dialect != DIALECT_VECTOR || target->small || !product->has_columns || product->rows < 2)
        return lanes;
    while (shorter > LEAST_LANES && product->columns % shorter)
        shorter /= 2;
    int64_t most = shorter > LEAST_LANES ? FEW_COLUMNS : lanes; /* four lanes serve what fits one vector */
    return product->columns % shorter == 0 && product->columns <= most ? shorter : lanes;
}

/* Where images do not lie in blocks, of groups so small that not even several together fill a vector. */
int64_t tiled_window_lanes(const Lower *lower, const Convolution *conv)
{
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[lower->kernel->anchor];
    int64_t lanes = lower->target->lanes, outputs = conv->outputs / most(1, conv->groups), shorter = LEAST_LANES;
    bool blocks = value_type(graph, node->in[0])->layout.block || value_type(graph, node->out[0])->layout.block;
    if (lower->target->dialect != DIALECT_VECTOR || lower->target->small || blocks || conv->groups < 2 || outputs < 2 ||
        convolution_joined_groups(conv, lanes) > 0)
        return lanes;
    while (shorter < outputs)
        shorter *= 2;
    return least(shorter, lanes);
}

static int64_t lanes_of(const Lower *lower, const Node *node)
{
    Product product;
    if (product_of(lower->graph, node, &product))
        return tiled_lanes(lower->target, &product);
    if (!convolution_phase_count(lower->graph, node))
        return lower->target->lanes;
    ConvolutionPhase phase = convolution_phase_of(lower->graph, node, 0);
    return tiled_window_lanes(lower, &phase.conv);
}

bool tiled_see(Lower *lower, Tiled *con, uint32_t phase)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    int64_t lanes = lanes_of(lower, node);
    *con = (Tiled){.lower = lower, .node = node, .lanes = lanes, .phase = phase};
    if (con->lanes < 2)
        return false;
    con->x_value = under_cast(lower, node->in[0]);
    con->second = node->in[1];
    con->takes_strip = lower->strip && lower->strip->taken == node->in[0];
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_f32(lower, node->in[i]) || (i == 2 && kernel_makes(lower, node->in[i])))
            return false;
    if (!see_operands(con))
        return false;
    con->packed = tiled_see_constant(con);
    if (con->widened && !con->packed && is_made_of_constants(lower, con->second))
        return false;
    con->widened &= con->packed; /* others are computed where they are packed */
    if (!worth_it(con))
        return false;
    see_pool(con);
    con->one_by_one = !stores_vectors(con);
    bool whole = !con->pool && !con->one_by_one && con->phases == 1 && !lower->strip;
    con->stored = whole ? lower_result_for_sums(lower, node) : NONE;
    return true;
}
