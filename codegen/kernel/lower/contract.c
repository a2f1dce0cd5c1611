/* What the recipes of contractions share: taps that lie inside the image, and whether vectors can finish results. */
#include "kernel/lower/contract.h"
#include "kernel/lower/strip.h"

#include "base/number.h"
#include "passes/widen.h"

#include <string.h>

WindowDimension lower_window_dimension(const Window *window, uint32_t from_last)
{
    WindowDimension one = {1, 1, 1, 1, 1, 0, 0};
    return from_last < window->rank ? window->dim[window->rank - 1 - from_last] : one;
}

Index lower_tap_at(Arena *arena, const WindowDimension *d, Index window, Index tap)
{
    Index begin = index_add(arena, index_scale(arena, window, d->stride), index_constant(-d->before));
    return index_add(arena, begin, index_scale(arena, tap, d->dilation));
}

Index lower_open_loop(Lower *lower, const char *name, int64_t rounds, LoopKind kind)
{
    const Var *var = index_var_new(lower->arena, name, 0, rounds - 1);
    if (rounds == 1)
        return index_constant(0);
    lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, rounds, 1, kind)->body);
    return index_var(lower->arena, var);
}

Block *lower_clamped_taps(Lower *lower, Block *block, const char *name, const WindowDimension *d, Index out, Index *tap)
{
    Arena *arena = lower->arena;
    int64_t lift = ceil_div(d->out * d->stride + most(0, -d->before), d->dilation); /* keeps dividends positive */
    Index start = index_add(arena, index_scale(arena, out, -d->stride), index_constant(d->before));
    start = index_add(arena, start, index_constant(lift * d->dilation));
    Index low = index_div(arena, index_add(arena, start, index_constant(d->dilation - 1)), d->dilation);
    Index high = index_div(arena, index_add(arena, start, index_constant(d->in - 1)), d->dilation);
    low = index_add(arena, low, index_constant(-lift));
    high = index_add(arena, high, index_constant(1 - lift));

    bool known = !low.count && !high.count;
    int64_t begin = known ? most(0, low.constant) : 0, end = known ? least(d->size, high.constant) : d->size;
    const Var *var = index_var_new(arena, name, begin, most(begin, end - 1));
    *tap = index_var(arena, var);
    if (d->size == 1 && index_high(low) <= 0 && index_low(high) >= 1) {
        *tap = index_constant(0);
        return block;
    }
    Stmt *loop = stmt_for(arena, block, var, begin, end, 1, LOOP_ROLLED);
    loop->clamp_low = !known && index_high(low) > 0;
    loop->low_least = low;
    loop->clamp_high = !known && index_low(high) < d->size;
    loop->high_most = high;
    return &loop->body;
}

bool lower_see_image(Lower *lower, const Node *node, const Var *n, const Var *channels, const Var *lane,
                     VectorImage *image)
{
    Arena *arena = lower->arena;
    const Shape *x = value_shape(lower->graph, node->in[0]);
    int64_t height = x->rank == 4 ? x->dim[2] : 1, width = x->dim[x->rank - 1];
    const Var *h = index_var_new(arena, "h", 0, height - 1), *w = index_var_new(arena, "w", 0, width - 1);
    Index address, zero = index_constant(0);
    int64_t factor, lanes = lower->target->lanes;
    Index channel = index_add(arena, index_scale(arena, index_var(arena, channels), lanes), index_var(arena, lane));
    Index position[MAX_RANK] = {index_var(arena, n), channel, index_var(arena, h)};
    position[x->rank - 1] = index_var(arena, w);
    if (height < 1 || width < 1 || !lower_memory_source(lower, node->in[0], position, &image->source, &address) ||
        !index_factor(address, h, &image->h) || !index_factor(address, w, &image->w) ||
        !index_factor(address, lane, &factor))
        return false;
    image->base = index_substitute(arena, index_substitute(arena, address, h, zero), w, zero);
    image->vectors = factor == 1 && x->dim[1] % lanes == 0;
    return true;
}

bool lower_has_constant_weights(const Lower *lower, const Node *node, const Convolution *conv)
{
    const Graph *graph = lower->graph;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (value_type(graph, node->in[i])->dtype != DT_F32 || kernel_makes(lower, node->in[i]))
            return false;
    const Value *v = &graph->value[node->in[1]];
    Shape shape = {2 + conv->window.rank, {conv->outputs, conv->channels / conv->groups}};
    for (uint32_t d = 0; d < conv->window.rank; d++)
        shape.dim[2 + d] = conv->window.dim[d].size;
    return (v->role == ROLE_CONST || v->role == ROLE_PARAM) && !v->trained && !v->type->layout.block &&
           shape_eq(&v->type->shape, &shape);
}

Index lower_named_address(Lower *lower, Block *block, const char *name, Index address)
{
    if (address.count == 0)
        return address;
    Local local = *lower_local(lower, name, DT_I64, false);
    local.even = index_is_even(address);
    const Local *named = arena_copy(lower->arena, &local, sizeof local);
    stmt_local(lower->arena, block, named, expr_index(lower->arena, DT_I64, address));
    return index_data(lower->arena, expr_local(lower->arena, named), INT32_MIN, INT32_MAX);
}

void lower_outer_product(Lower *lower, Block *block, const OuterProduct *step)
{
    Arena *arena = lower->arena;
    Index number = index_constant(step->number), zero = index_constant(0);
    for (uint32_t v = 0; v < step->vectors; v++)
        stmt_assign(arena, block, step->vector, number, index_constant(v), step->second[v]);
    for (uint32_t r = 0; r < step->rows; r++) {
        if (!(step->valid >> r & 1))
            continue;
        Index at = index_add(arena, step->first.at, index_constant(step->offset[r]));
        stmt_assign(arena, block, step->element, zero, zero,
                    expr_cast(arena, DT_F32, expr_load(arena, step->first.dtype, step->first.buffer, at)));
        for (uint32_t v = 0; v < step->vectors; v++) {
            Index row = index_constant(r), vector = index_constant(v);
            const Expr *product = expr_word(arena, WORD_MUL, DT_F32, expr_local(arena, step->element),
                                            expr_local_at(arena, step->vector, number, vector), NULL);
            const Expr *sum = expr_local_at(arena, step->sum, row, vector);
            stmt_assign(arena, block, step->sum, row, vector, expr_word(arena, WORD_ADD, DT_F32, sum, product, NULL));
        }
    }
}

/* The epilogue, a vector at a time */

typedef struct Epilogue {
    Lower *lower;
    const Node *anchor;
    const Index *position; /* of the result */
    const Var *lane;
    const bool *follows; /* per node of the kernel: it reads the sums, or what is made of them, or is read with these */
    bool band;           /* results go into a band, not to memory */
} Epilogue;

/* How the address of a value at the result's position goes with the lane; false when not evenly. */
static bool lane_factor(const Epilogue *e, ValueId value, int64_t *factor)
{
    const Graph *graph = e->lower->graph;
    Index position[MAX_RANK], address;
    ValueId source;
    lower_broadcast_position(value_shape(graph, value), value_shape(graph, e->anchor->out[0]), e->position, position);
    return lower_memory_source(e->lower, value, position, &source, &address) && index_factor(address, e->lane, factor);
}

static bool is_lane_type(const Graph *graph, ValueId value)
{
    DType dtype = value_type(graph, value)->dtype;
    return dtype == DT_F32 || dtype == DT_BOOL || dtype_is_half(dtype);
}

static bool is_stored_integer(DType dtype)
{
    return dtype == DT_I32 || (dtype_is_int(dtype) && widen_is_narrow(dtype));
}

/* Is it a number, the same for all lanes, an f32 at an even step, or a mask whose elements follow one another? */
static bool reads_vector(const Epilogue *e, ValueId value)
{
    const Graph *graph = e->lower->graph;
    double number;
    int64_t factor;
    if (value_is_number(graph, value, &number) ||
        (kernel_value_is_inline(graph, value) && node_is_number(value_producer(graph, value), &number)))
        return true;
    if (!lane_factor(e, value, &factor))
        return false;
    return !factor || value_type(graph, value)->dtype == DT_F32 || (factor == 1 && is_lane_type(graph, value));
}

/* Are all words of the op those of f32 and of masks? */
static bool words_vectorize(const Graph *graph, const Node *node)
{
    const ScalarList *list = op_info(node->op)->scalar;
    bool mask[MOST_TERMS] = {0};
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_lane_type(graph, node->in[i]))
            return false;
    for (uint32_t t = 0; t < list->count; t++) {
        const ScalarTerm *term = &list->term[t];
        for (uint32_t i = 0; i < term->args && term->word != WORD_OPERAND; i++)
            if (mask[term->arg[i]] && !word_takes_mask(term->word, i))
                return false;
        mask[t] = term->word == WORD_OPERAND ? value_type(graph, node->in[term->arg[0]])->dtype == DT_BOOL
                                             : word_is_mask(term->word);
    }
    return mask[list->count - 1] == (value_type(graph, node->out[0])->dtype == DT_BOOL) &&
           is_lane_type(graph, node->out[0]);
}

/* Does it widen elements that follow one another, or one for all lanes? */
static bool widens_vector(const Epilogue *e, const Node *cast)
{
    const Graph *graph = e->lower->graph;
    int64_t factor;
    return value_type(graph, cast->out[0])->dtype == DT_F32 && !op_keeps_bits(cast->op) &&
           widen_is_narrow(value_type(graph, cast->in[0])->dtype) && !kernel_computes(e->lower, cast->in[0]) &&
           lane_factor(e, cast->in[0], &factor) && (factor == 0 || factor == 1);
}

/* Between f32 and floats of 16 bits: a vector of these is of f32, rounded. */
static bool casts_floats(const Graph *graph, const Node *cast)
{
    DType from = value_type(graph, cast->in[0])->dtype, to = value_type(graph, cast->out[0])->dtype;
    return !op_keeps_bits(cast->op) && (from == DT_F32 || dtype_is_half(from)) && (to == DT_F32 || dtype_is_half(to));
}

/* To integers, which nobody reads as such, for words are of f32; or back from those that vectors of f32 hold. */
static bool casts_integers(const Epilogue *e, const Node *cast)
{
    const Graph *graph = e->lower->graph;
    DType from = value_type(graph, cast->in[0])->dtype, to = value_type(graph, cast->out[0])->dtype;
    if (e->band || op_keeps_bits(cast->op))
        return false;
    bool back = to == DT_F32 && dtype_is_int(from) && widen_is_narrow(from) && kernel_computes(e->lower, cast->in[0]);
    return back || (from == DT_F32 && is_stored_integer(to));
}

static bool computes_vector(const Epilogue *e, const Node *node)
{
    OpFamily family = op_info(node->op)->family;
    if (node == e->anchor || family == FAMILY_LAYOUT)
        return true;
    if (family == FAMILY_CAST && widens_vector(e, node))
        return true;
    if (family == FAMILY_VIEW)
        return !kernel_computes(e->lower, node->in[0]);
    bool rounds = family == FAMILY_CAST && (casts_floats(e->lower->graph, node) || casts_integers(e, node));
    if (!rounds && (family != FAMILY_ELEMENTWISE || !words_vectorize(e->lower->graph, node)))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!kernel_computes(e->lower, node->in[i]) && !reads_vector(e, node->in[i]))
            return false;
    return true;
}

static bool stores_vector(const Epilogue *e, ValueId value)
{
    int64_t factor;
    if (e->band || (e->lower->strip && strip_holds(e->lower->strip, value)))
        return true;
    bool is_stored =
        is_lane_type(e->lower->graph, value) || is_stored_integer(value_type(e->lower->graph, value)->dtype);
    return !kernel_stores(e->lower, value) || (is_stored && lane_factor(e, value, &factor) && factor == 1);
}

static bool follows_sums(const Epilogue *e, const Node *node)
{
    const Graph *graph = e->lower->graph;
    const Kernel *kernel = e->lower->kernel;
    if (node == e->anchor)
        return true;
    for (uint32_t i = 0; i < node->in_count; i++)
        for (uint32_t n = 0; n < kernel->node_count && &graph->node[kernel->node[n]] != node; n++)
            if (e->follows[n] && graph->node[kernel->node[n]].out[0] == node->in[i])
                return true;
    return false;
}

/* Does the epilogue read it, though it does not follow the sums? */
static bool is_read(const Epilogue *e, uint32_t count, ValueId value)
{
    const Kernel *kernel = e->lower->kernel;
    for (uint32_t n = 0; n < count; n++) {
        const Node *node = &e->lower->graph->node[kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count && node != e->anchor && e->follows[n]; i++)
            if (node->in[i] == value)
                return true;
    }
    return false;
}

bool lower_finishes_vectors(Lower *lower, const Node *anchor, const Index *position, const Var *lane, const Node *stop)
{
    const Kernel *kernel = lower->kernel;
    bool *follows = ARENA_ARRAY(lower->arena, bool, kernel->node_count);
    Epilogue e = {lower, anchor, position, lane, follows, stop != NULL};
    uint32_t count = 0;
    while (count < kernel->node_count && &lower->graph->node[kernel->node[count]] != stop)
        count++; /* what follows the stop is made of the band */
    for (uint32_t n = 0; n < count; n++)
        follows[n] = follows_sums(&e, &lower->graph->node[kernel->node[n]]);
    for (uint32_t n = count; n-- > 0;) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        OpFamily family = op_info(node->op)->family;
        bool reads = family == FAMILY_ELEMENTWISE || family == FAMILY_CAST || family == FAMILY_VIEW;
        follows[n] |= reads && is_read(&e, count, node->out[0]);
    }
    for (uint32_t n = 0; n < count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        if (follows[n] && !(computes_vector(&e, node) && stores_vector(&e, node->out[0])))
            return false;
    }
    return true;
}

const Node *lower_pooling(const Lower *lower, const Kernel *kernel)
{
    const Node *pooling = NULL;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        pooling = op_info(node->op)->family == FAMILY_POOL ? node : pooling;
    }
    return pooling;
}

bool lower_has_other_windows(const Lower *lower, const Kernel *kernel)
{
    uint32_t anchors = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &lower->graph->node[kernel->node[n]];
        anchors += node_is_contraction(lower->graph, node) || node_is_reduction(lower->graph, node);
    }
    return anchors > 1;
}

ValueId lower_result_for_sums(const Lower *lower, const Node *anchor)
{
    ValueId found = NONE;
    for (uint32_t n = 0; n < lower->kernel->node_count; n++) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++) {
            if (!kernel_stores(lower, node->out[r]))
                continue;
            if (found != NONE || value_type(lower->graph, node->out[r]) != value_type(lower->graph, anchor->out[0]))
                return NONE;
            found = node->out[r];
        }
    }
    return found;
}

uint32_t lower_panel_spans(int64_t columns, int64_t lanes, int64_t panels, PanelSpan span[MOST_SPANS])
{
    int64_t vectors = ceil_div(columns, lanes), narrow = vectors / panels, wide = vectors % panels;
    int64_t partial = columns % lanes != 0;
    const PanelSpan all[MOST_SPANS] = {{0, wide, narrow + 1, false},
                                       {wide * (narrow + 1), panels - wide - partial, narrow, false},
                                       {vectors - narrow, partial, narrow, true}};
    uint32_t count = 0;
    for (uint32_t i = 0; i < MOST_SPANS; i++)
        if (all[i].count)
            span[count++] = all[i];
    return count;
}

void lower_product_position(const Lower *lower, const Node *node, const Product *product, bool right,
                            const Index *batch, Index across, Index depth, Index *position)
{
    const Shape *shape = value_shape(lower->graph, node->in[right]);
    bool has_across = right ? product->has_columns : product->has_rows;
    bool depth_first = right && has_across && !product->transposed;
    uint32_t batch_rank = product->batch_rank, leading = shape->rank - 1 - has_across;
    for (uint32_t i = 0; i < leading; i++)
        position[i] = shape->dim[i] == 1 ? index_constant(0) : batch[batch_rank - leading + i];
    if (has_across)
        position[leading + depth_first] = across;
    position[leading + (has_across && !depth_first)] = depth;
}

ValueId lower_stored_operand(const Lower *lower, ValueId value)
{
    const Node *producer = kernel_computes(lower, value) ? value_producer(lower->graph, value) : NULL;
    bool widens = producer && op_info(producer->op)->family == FAMILY_CAST && !op_keeps_bits(producer->op) &&
                  widen_is_narrow(value_type(lower->graph, producer->in[0])->dtype);
    return widens ? producer->in[0] : value;
}
