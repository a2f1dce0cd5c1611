/* What a contraction is to pairs, and whether its operands are integers that 16 bits hold. */
#include "kernel/lower/pairs.h"
#include "passes/integers.h"
#include "passes/widen.h"

#include <string.h>

#define MOST_SUM     0x1p31
#define MOST_BYTE    255.0
#define MOST_WORDS   16 /* of 32 bits, in a row of a tile register */
#define FEWEST_WORDS 4

int64_t pairs_flat_rows(const Pairs *p)
{
    const Shape *y = value_shape(p->lower->graph, p->node->out[0]);
    if (p->is_product)
        return shape_elements(y) / p->columns;
    return shape_elements(y) / (y->dim[0] * y->dim[1]);
}

void pairs_flat_position(const Pairs *p, const PairsPart *part, Index row, Index w, Index *position)
{
    Arena *arena = p->lower->arena;
    const Shape *y = value_shape(p->lower->graph, p->node->out[0]);
    Index pixel =
        index_add(arena, index_add(arena, index_scale(arena, row, part->width), w), index_constant(part->first));
    index_unflatten(arena, pixel, y->dim + 2, y->rank - 2, position + 2);
}

void pairs_position(const Pairs *p, const PairsPart *part, Index row, Index w, Index column, Index *position)
{
    Arena *arena = p->lower->arena;
    const Shape *y = value_shape(p->lower->graph, p->node->out[0]);
    if (p->is_product) {
        Index m = index_add(arena, index_scale(arena, row, part->width), w);
        index_unflatten(arena, index_add(arena, m, index_constant(part->first)), y->dim, y->rank - 1, position);
        position[y->rank - 1] = column;
        return;
    }
    position[0] = index_var(arena, p->image);
    position[1] = index_add(arena, index_scale(arena, index_var(arena, p->group), p->columns), column);
    if (p->flat) {
        pairs_flat_position(p, part, row, w, position);
        return;
    }
    position[2] = row;
    position[y->rank - 1] = w;
}

/* Weights: one constant of 8 bits, less one number or none. */

static void weights_position(const Pairs *p, Index *position)
{
    Arena *arena = p->lower->arena;
    uint32_t rank = value_shape(p->lower->graph, p->node->in[1])->rank;
    Index column = index_var(arena, p->column), channel = index_var(arena, p->channel);
    if (p->is_product) {
        position[p->product.transposed ? 1 : 0] = channel;
        position[p->product.transposed ? 0 : 1] = column;
        return;
    }
    position[0] = index_add(arena, index_scale(arena, index_var(arena, p->group), p->columns), column);
    position[1] = channel;
    position[2] = index_var(arena, p->kh);
    position[rank - 1] = index_var(arena, p->kw);
}

/* The bf16 that the f32 value is, rearranged or not; NONE. */
static ValueId brain_source(const Graph *graph, ValueId value)
{
    const Node *node;
    while ((node = value_producer(graph, value)) && !integers_cast(node)) {
        if (node->in_count != 1 || !(node_is_view(node) || op_info(node->op)->family == FAMILY_LAYOUT))
            return NONE;
        value = node->in[0];
    }
    return node && value_type(graph, node->in[0])->dtype == DT_BF16 ? node->in[0] : NONE;
}

/* The constant of 8 bits that the value is widened of, and the number that is taken away from it; NONE. */
static ValueId narrow_constant(const Graph *graph, ValueId value, double *zero)
{
    const Node *node;
    double number;
    *zero = 0;
    while ((node = value_producer(graph, value))) {
        const Node *less = integers_sign(node) < 0 ? value_producer(graph, node->in[1]) : NULL;
        bool is_number = integers_sign(node) < 0 && !*zero &&
                         (less ? node_is_number(less, &number) : value_is_number(graph, node->in[1], &number));
        if (is_number)
            *zero = number;
        else if (!integers_cast(node) && !node_is_view(node))
            return NONE;
        value = node->in[0];
    }
    const Value *constant = graph_value(graph, value);
    bool bytes = constant->type->dtype == DT_I8 || constant->type->dtype == DT_U8;
    return bytes && (constant->role == ROLE_CONST || constant->role == ROLE_PARAM) ? value : NONE;
}

/* The constant of bf16 that the f32 value is; NONE. */
static ValueId brain_constant(const Graph *graph, ValueId value)
{
    ValueId made = brain_source(graph, value);
    while (made != NONE && value_producer(graph, made) && node_is_view(value_producer(graph, made)))
        made = value_producer(graph, made)->in[0];
    Role role = made == NONE ? ROLE_INPUT : graph_value(graph, made)->role;
    return role == ROLE_CONST || role == ROLE_PARAM ? made : NONE;
}

/* The constant of f32 that the value is, which nothing changes while the model runs; NONE. */
static ValueId plain_constant(const Graph *graph, ValueId value)
{
    const Node *node;
    while ((node = value_producer(graph, value)) && node_is_view(node))
        value = node->in[0];
    const Value *v = graph_value(graph, value);
    bool constant = (v->role == ROLE_CONST || v->role == ROLE_PARAM) && !v->trained;
    return constant && v->type->dtype == DT_F32 && !v->type->layout.block ? value : NONE;
}

static ValueId weights_of(Pairs *p)
{
    const Graph *graph = p->lower->graph;
    ValueId second = p->node->in[1];
    return p->parts > 1               ? plain_constant(graph, second)
           : p->bundle == BUNDLE_BF16 ? brain_constant(graph, second)
                                      : narrow_constant(graph, second, &p->zero);
}

static bool see_weights(Pairs *p)
{
    Lower *lower = p->lower;
    Index position[MAX_RANK] = {0};
    Leaves leaves;
    int64_t factor;
    weights_position(p, position);
    p->weights = weights_of(p);
    if (p->weights == NONE || lower->nibbles[p->weights]) /* what lies two to a byte is widened by tiles */
        return false;
    if (!lower_leaves(lower, p->node->in[1], position, &leaves) || leaves.count != 1)
        return false;
    if (p->parts > 1 && leaves.leaf[0].value != p->weights)
        return false;
    p->weights_from = leaves.leaf[0].address;
    const Var *const var[] = {p->group, p->column, p->channel, p->kh, p->kw};
    for (uint32_t i = 0; i < sizeof var / sizeof *var; i++)
        if (!index_factor(p->weights_from, var[i], &factor))
            return false;
    return true;
}

/* Do 16 bits hold all elements, and 32 all sums? */
static bool holds(const Graph *graph, const Node *node)
{
    IntegerRange x = integers_range(graph, node->in[0]), w = integers_range(graph, node->in[1]);
    Contraction form = contraction_of(graph, node);
    double products = (double)contraction_extent(&form, AXIS_SUM) * (double)contraction_extent(&form, AXIS_TAP);
    return x.most <= 32767 && w.most <= 32767 && x.most * w.most * products < MOST_SUM;
}

/* Are both operands bf16, for a target that multiplies these? */
static bool takes_brains(const Graph *graph, const Target *target, const Node *node)
{
    return target->brains && brain_source(graph, node->in[0]) != NONE && brain_constant(graph, node->in[1]) != NONE;
}

/* Do bytes hold the image, if need be with something added, weights less their zero point be i8, and 32 bits what
 * tiles start from?  Then this is what is added; else -1. */
static double shift_to_bytes(const Graph *graph, const Node *node, int64_t depth)
{
    IntegerRange x = integers_range(graph, node->in[0]), w = integers_range(graph, node->in[1]);
    bool fits = x.high - x.low <= MOST_BYTE && w.low >= -128 && w.high <= 127;
    double shift = x.low >= 0 && x.high <= MOST_BYTE ? 0 : -x.low;
    return fits && shift >= 0 && shift <= MOST_BYTE && MOST_BYTE * 128 * (double)depth < MOST_SUM ? shift : -1;
}

/* Is the operand a byte less a zero point, one for all, that the kernel takes away?  Then, where weights are i8, the
 * image is the bytes. */
static bool keeps_zero_point(Pairs *p, int64_t depth)
{
    const Graph *graph = p->lower->graph;
    ValueId operand = p->node->in[0];
    const Node *node = value_producer(graph, operand);
    if (!node || integers_sign(node) >= 0 || !kernel_makes(p->lower, operand))
        return false;
    IntegerRange x = integers_range(graph, node->in[0]), zero = integers_range(graph, node->in[1]),
                 w = integers_range(graph, p->node->in[1]);
    bool fits = x.low >= 0 && x.high <= MOST_BYTE && zero.low >= 0 && zero.high <= MOST_BYTE && w.low >= -128 &&
                w.high <= 127 && MOST_BYTE * 128 * (double)depth < MOST_SUM;
    if (!fits || shape_elements(value_shape(graph, node->in[1])) != 1 ||
        !shape_eq(value_shape(graph, node->in[0]), value_shape(graph, operand)))
        return false;
    p->bytes = node->in[0];
    p->zero_point = node->in[1];
    return true;
}

/* The contraction */

static bool see_product(const Graph *graph, const Node *node, Pairs *p)
{
    if (!p->product.has_columns || value_shape(graph, node->in[1])->rank != 2)
        return false;
    p->columns = p->product.columns;
    p->depth = p->product.depth;
    p->conv = (Convolution){.images = 1, .groups = 1};
    return true;
}

static bool see_convolution(const Graph *graph, const Node *node, Pairs *p)
{
    if (!node_is_convolution(node) || !convolution_of(graph, node, &p->conv) || p->conv.window.rank < 1 ||
        p->conv.window.rank > 2)
        return false;
    p->columns = p->conv.outputs / p->conv.groups;
    p->depth = p->conv.channels / p->conv.groups;
    p->part[0].h = lower_window_dimension(&p->conv.window, 1);
    p->part[0].w = lower_window_dimension(&p->conv.window, 0);
    const WindowDimension *h = &p->part[0].h, *w = &p->part[0].w;
    p->flat = p->tiles && h->size * w->size == 1 && h->stride * w->stride == 1 && h->before + w->before == 0 &&
              h->in == h->out && w->in == w->out;
    return true;
}

static bool see_contraction(const Graph *graph, const Node *node, Pairs *p)
{
    p->is_product = p->flat = product_of(graph, node, &p->product);
    return p->is_product ? see_product(graph, node, p) : see_convolution(graph, node, p);
}

/* Is there enough of it? */
static bool suits(const Graph *graph, const Pairs *p)
{
    return 2 * p->columns >= p->lanes && p->depth > 0 && shape_elements(value_shape(graph, p->node->out[0])) > 0;
}

static bool takes(const Target *target)
{
    return target && target->pairs && !target->small && target->backend != BACKEND_OPENBLAS;
}

/* A block of channels has one widened vector for each tap. */
static bool is_depthwise(const Graph *graph, const Node *node, const Target *target)
{
    Convolution conv;
    return node_is_convolution(node) && convolution_of(graph, node, &conv) && conv.groups == conv.channels &&
           conv.groups == conv.outputs && value_type(graph, node->in[0])->layout.block == target->lanes &&
           conv.channels % target->lanes == 0 && value_type(graph, node->out[0])->layout.block == target->lanes;
}

/* Weights that lie two to a byte are widened by tiles. */
static bool takes_weights(const Graph *graph, ValueId value)
{
    double zero;
    ValueId weights = narrow_constant(graph, value, &zero);
    return weights != NONE && widen_is_worth(value_type(graph, weights)) && !widen_fits_nibbles(graph, weights);
}

PairsAsked pairs_asked(const Graph *graph, const Node *node)
{
    PairsAsked asked;
    memset(&asked, 0, sizeof asked); /* compared as bytes */
    asked.exact = integers_are_exact(graph, node);
    for (uint32_t i = 0; i < 2; i++) {
        IntegerRange range = integers_range(graph, node->in[i]);
        asked.low[i] = range.low, asked.high[i] = range.high, asked.most[i] = range.most;
        asked.brains[i] = brain_source(graph, node->in[i]) != NONE;
    }
    return asked;
}

bool pairs_takes_operand(const Graph *graph, const Target *target, const Node *node, ValueId operand)
{
    if (!takes(target) || op_info(node->op)->family != FAMILY_CONTRACT)
        return false;
    Pairs p = {.node = node, .lanes = target->lanes};
    double zero;
    const Node *made = value_producer(graph, node->in[1]);
    if ((node->mark && !str_is(node->mark->provider, "pairs") && !str_is(node->mark->provider, "amx")) ||
        node->in[0] != operand || node->in[1] == operand || (node->in_count > 2 && node->in[2] == operand) ||
        value_type(graph, operand)->dtype != DT_F32)
        return false;
    if (takes_brains(graph, target, node))
        return see_contraction(graph, node, &p) && suits(graph, &p);
    if (integers_range(graph, operand).most > 32767)
        return false;
    if (is_depthwise(graph, node, target))
        return !made || narrow_constant(graph, node->in[1], &zero) != NONE;
    return see_contraction(graph, node, &p) && suits(graph, &p) && takes_weights(graph, node->in[1]) &&
           holds(graph, node);
}

bool pairs_widens(const Graph *graph, ValueId operand)
{
    const Node *node;
    while ((node = value_producer(graph, operand)) && (integers_sign(node) < 0 || node_is_view(node)))
        operand = node->in[0];
    DType dtype = node && integers_cast(node) ? value_type(graph, node->in[0])->dtype : DT_F32;
    return (dtype_is_int(dtype) || dtype == DT_BF16) && !value_producer(graph, kernel_view_owner(graph, node->in[0]));
}

static bool is_plain_f32(const Lower *lower, ValueId value)
{
    return value_type(lower->graph, value)->dtype == DT_F32;
}

static bool finishes_vectors(const Pairs *p)
{
    Arena *arena = p->lower->arena;
    int64_t rows = p->flat ? most(1, pairs_flat_rows(p)) : p->part[0].h.out;
    PairsPart part = {.rows = rows, .width = p->flat ? 1 : p->part[0].w.out};
    const Var *row = index_var_new(arena, "row", 0, part.rows - 1), *w = index_var_new(arena, "w", 0, part.width - 1),
              *vector = index_var_new(arena, "v", 0, p->columns / p->lanes - 1),
              *lane = index_var_new(arena, "lane", 0, p->lanes - 1);
    Index position[MAX_RANK], column = index_scale(arena, index_var(arena, vector), p->lanes);
    pairs_position(p, &part, index_var(arena, row), index_var(arena, w),
                   index_add(arena, column, index_var(arena, lane)), position);
    return lower_finishes_vectors(p->lower, p->node, position, lane, NULL);
}

/* Is it one of f32 whose sums may be of other products than the model's? */
static bool takes_parts(const Pairs *p)
{
    const Lower *lower = p->lower;
    return p->tiles && lower->target->parts > 1 && !lower->exact &&
           plain_constant(lower->graph, p->node->in[1]) != NONE && !integers_are_exact(lower->graph, p->node);
}

static void choose_bundle(Pairs *p)
{
    const Graph *graph = p->lower->graph;
    const Target *target = p->lower->target;
    int64_t taps = most(1, p->part[0].h.size) * most(1, p->part[0].w.size);
    int64_t depth = ceil_div(p->depth, bundle_count(BUNDLE_BYTES)) * bundle_count(BUNDLE_BYTES) * taps;
    double shift = target->quads ? shift_to_bytes(graph, p->node, depth) : -1;
    p->shift = 0;
    p->bytes = p->node->in[0];
    p->zero_point = NONE;
    p->parts = takes_parts(p) ? target->parts : 1;
    p->bundle = p->parts > 1 || takes_brains(graph, target, p->node) ? BUNDLE_BF16 : BUNDLE_I16;
    if (p->bundle == BUNDLE_BF16 || !target->quads)
        return;
    if (shift >= 0)
        p->shift = shift;
    if (shift >= 0 || keeps_zero_point(p, depth))
        p->bundle = BUNDLE_BYTES;
}

int64_t pairs_run(const Pairs *p, const PairsPart *part)
{
    return part->w.dilation == 1 ? most(1, part->w.size) * p->room : p->room;
}

/* Bundles that a step takes: as many as go into a run, and into a row of 64 bytes. */
static int64_t choose_words(const Pairs *p)
{
    int64_t run = (p->is_product ? p->room : pairs_run(p, &p->part[0])) / bundle_count(p->bundle), words = MOST_WORDS;
    while (run % words)
        words--;
    return words;
}

/* Weights are multiplied as they lie in memory. */
static bool fits_tiles(const Pairs *p)
{
    DType weights = value_type(p->lower->graph, p->weights)->dtype;
    return p->lower->target->tiles && p->words >= FEWEST_WORDS &&
           (p->bundle == BUNDLE_BF16 || (p->bundle == BUNDLE_BYTES && weights == DT_I8 && p->zero == 0));
}

bool pairs_see(Lower *lower, const Kernel *kernel, Pairs *p)
{
    const Node *node = &lower->graph->node[kernel->anchor];
    Arena *arena = lower->arena;
    *p = (Pairs){.lower = lower, .node = node, .lanes = lower->target->lanes, .tiles = p->tiles};
    if (!takes(lower->target) || lower_has_other_windows(lower, kernel))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!is_plain_f32(lower, node->in[i]) || (i == 2 && kernel_makes(lower, node->in[i])))
            return false;
    if (!see_contraction(lower->graph, node, p) || !suits(lower->graph, p))
        return false;
    choose_bundle(p);
    p->room = ceil_div(p->depth, bundle_count(p->bundle)) * bundle_count(p->bundle);
    p->pitch = p->parts > 1 && p->flat && p->room % PAIRS_ALIKE == 0 ? p->room + PAIRS_APART : p->room;
    p->image = index_var_new(arena, "n", 0, p->conv.images - 1);
    p->group = index_var_new(arena, "group", 0, p->conv.groups - 1);
    p->column = index_var_new(arena, "o", 0, p->columns - 1);
    p->channel = index_var_new(arena, "c", 0, p->depth - 1);
    p->kh = index_var_new(arena, "kh", 0, most(1, p->part[0].h.size) - 1);
    p->kw = index_var_new(arena, "kw", 0, most(1, p->part[0].w.size) - 1);
    if (!see_weights(p) || (p->bundle != BUNDLE_BF16 && !holds(lower->graph, node)))
        return false;
    p->words = choose_words(p);
    if (p->tiles && !fits_tiles(p))
        return false;
    p->one_by_one = !finishes_vectors(p);
    return true;
}
