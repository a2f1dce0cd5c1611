/* The second operand of a contraction when it is constant: packed at compile time, as a tile reads it.
 * What the kernel widens it from stays as narrow as it is: the elements of several steps of the depth stand side by
 * side in words of 32 bits, from which a vector is widened without a shuffle.  Scales and zero points are packed the
 * same way, less the digits that they do not depend on.  A scale of blocks of the depth is the scale of their sums:
 * blocks of the tile end where they do. */
#include "kernel/lower/tiled.h"
#include "passes/widen.h"

#include <string.h>

/* What it is made of */

typedef struct Digits { /* variables of the address; group: of a bundle, depth and column then those within it */
    const Var *depth, *kh, *kw, *column, *group;
} Digits;

static Index within_bundle(const Tiled *con, const Digits *digits, Index at, int64_t group)
{
    Arena *arena = con->lower->arena;
    return con->joined == 1 ? at : index_add(arena, at, index_scale(arena, index_var(arena, digits->group), group));
}

static bool leaves_at(const Tiled *con, Index k, const Digits *digits, Leaves *leaves)
{
    Arena *arena = con->lower->arena;
    Index position[MAX_RANK] = {0};
    tiled_weights_position(con, k, index_var(arena, digits->kh), index_var(arena, digits->kw),
                           within_bundle(con, digits, index_var(arena, digits->column), con->group_outputs), position);
    return lower_leaves(con->lower, con->second, position, leaves);
}

static Digits new_digits(const Tiled *con, int64_t depth)
{
    Arena *arena = con->lower->arena;
    bool whole = con->joined == 1;
    return (Digits){.depth = index_var_new(arena, "depth", 0, (whole ? depth : con->group_channels) - 1),
                    .kh = index_var_new(arena, "kh", 0, con->taps_h - 1),
                    .kw = index_var_new(arena, "kw", 0, con->taps_w - 1),
                    .column = whole ? con->column : index_var_new(arena, "column", 0, con->group_outputs - 1),
                    .group = index_var_new(arena, "group", 0, con->joined - 1)};
}

int64_t tiled_scale_block(const Tiled *con, int64_t otherwise)
{
    Digits digits = new_digits(con, con->depth);
    Leaves leaves;
    if (!kernel_computes(con->lower, con->second) ||
        !leaves_at(con, index_var(con->lower->arena, digits.depth), &digits, &leaves))
        return otherwise;
    for (uint32_t i = 0; i < leaves.count; i++) {
        int64_t factor, cut = index_cut(leaves.leaf[i].address, digits.depth, NULL);
        if (cut > 1 && !index_factor(leaves.leaf[i].address, digits.depth, &factor))
            return cut;
    }
    return otherwise;
}

static bool see_source(const Tiled *con, const Leaf *leaf, const Digits *digits, ConstantSource *source)
{
    Index address = leaf->address;
    *source = (ConstantSource){.value = leaf->value, .start = address.constant};
    bool affine =
        index_factor(address, digits->depth, &source->depth) && index_factor(address, con->block, &source->block) &&
        index_factor(address, digits->kh, &source->tap_h) && index_factor(address, digits->kw, &source->tap_w) &&
        index_factor(address, digits->column, &source->column) &&
        index_factor(address, digits->group, &source->group) && index_factor(address, con->bundle, &source->bundle);
    for (uint32_t i = 0; i < address.count; i++) {
        const Var *var = address.term[i].atom->kind == ATOM_VAR ? address.term[i].atom->var : NULL;
        affine &= var && (var == digits->depth || var == con->block || var == digits->kh || var == digits->kw ||
                          var == digits->column || var == digits->group || var == con->bundle);
    }
    return affine;
}

static int64_t elements_of(const Tiled *con, ValueId value)
{
    return shape_elements(value_shape(con->lower->graph, value));
}

/* The largest comes first: the others are scales. */
static void put_largest_first(Tiled *con)
{
    for (uint32_t i = 1; i < con->source_count; i++) {
        ConstantSource source = con->source[i];
        if (elements_of(con, source.value) <= elements_of(con, con->source[0].value))
            continue;
        con->source[i] = con->source[0];
        con->source[0] = source;
    }
}

static bool is_side(const Tiled *con, ValueId operand)
{
    Index nowhere[MAX_RANK] = {0};
    Leaves leaves;
    if (!lower_leaves(con->lower, operand, nowhere, &leaves))
        return false;
    for (uint32_t i = 0; i < leaves.count; i++)
        for (uint32_t s = 0; s < con->source_count; s++) {
            const ConstantSource *source = &con->source[s];
            if (source->value == leaves.leaf[i].value && (s == 0 || source->depth || source->tap_h || source->tap_w))
                return false;
        }
    return true;
}

/* Sums of a block of the depth are scaled once, if one operand of the outermost product allows. */
static void see_scale(Tiled *con)
{
    const Node *product;
    con->scaled = NULL;
    if (con->source_count < 2 || !lower_is_scaled(con->lower, con->second, &product))
        return;
    for (uint32_t i = 0; i < 2; i++)
        if (is_side(con, product->in[i])) {
            con->scaled = product;
            con->scale = i;
        }
}

static bool see_sources(Tiled *con, Index depth, const Digits *digits)
{
    Leaves leaves;
    if (!leaves_at(con, within_bundle(con, digits, depth, con->group_channels), digits, &leaves))
        return false;
    con->source_count = leaves.count;
    for (uint32_t i = 0; i < leaves.count; i++)
        if (!see_source(con, &leaves.leaf[i], digits, &con->source[i]))
            return false;
    return true;
}

/* As one row of all its depth, no step of which is behind the last one: a scale that does not depend on it does not
 * seem to behind a view. */
static bool see_whole_depth(Tiled *con)
{
    Digits digits = new_digits(con, con->depth);
    if (con->joined > 1 || !con->depth || !see_sources(con, index_var(con->lower->arena, digits.depth), &digits))
        return false;
    for (uint32_t i = 0; i < con->source_count; i++)
        con->source[i].block = con->source[i].depth * con->block_depth;
    return true;
}

static bool see_blocks(Tiled *con)
{
    Arena *arena = con->lower->arena;
    Digits digits = new_digits(con, con->block_depth);
    Index depth = index_var(arena, digits.depth);
    if (con->joined == 1)
        depth = index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth), depth);
    return see_sources(con, depth, &digits);
}

bool tiled_see_constant(Tiled *con)
{
    con->widened = kernel_computes(con->lower, con->second);
    con->parts = 1;
    con->weight_bytes = 4;
    if (!see_whole_depth(con) && !see_blocks(con))
        return false;
    put_largest_first(con);
    con->weight_bytes = dtype_bytes(value_type(con->lower->graph, con->source[0].value)->dtype);
    see_scale(con);
    return true;
}

/* Packing */

typedef struct Packer {
    const Tiled *con;
    PackedOrder order;
    int64_t stride[DIGITS], bound[2][DIGITS];
    Packing packing;
} Packer;

static void add_digit(Packing *packing, int64_t extent, int64_t stride, int64_t below, int64_t above)
{
    uint32_t d = packing->rank++;
    packing->extent[d] = extent;
    packing->stride[d] = stride;
    packing->bound[0].factor[d] = below;
    packing->bound[1].factor[d] = above;
}

/* A bound for the columns, and one for the depth. */
static void bound_whole(Packer *p, const PanelGroup *group, int64_t parts)
{
    int64_t width = tiled_panel_width(p->con, group);
    p->bound[0][DIGIT_PANEL] = width, p->bound[0][DIGIT_COLUMN] = 1;
    p->bound[1][DIGIT_BLOCK] = p->con->block_depth, p->bound[1][DIGIT_DEPTH] = parts, p->bound[1][DIGIT_PART] = 1;
    p->packing.bound[0].most = p->con->columns - group->first * p->con->lanes;
    p->packing.bound[1].most = p->con->depth;
    for (uint32_t i = 0; i < DIGITS; i++) {
        uint32_t digit = p->order.place[i];
        if (p->order.extent[digit])
            add_digit(&p->packing, p->order.extent[digit], p->stride[digit], p->bound[0][digit], p->bound[1][digit]);
    }
}

/* The column's group less the depth's is neither above nor below zero: depth and column are two digits each. */
static void bound_groups(Packer *p, const ConstantSource *source)
{
    const Tiled *con = p->con;
    int64_t groups = con->block_depth / con->group_channels; /* of a block */
    p->packing.bound[0].most = p->packing.bound[1].most = 1;
    for (uint32_t i = 0; i < DIGITS; i++) {
        uint32_t digit = p->order.place[i];
        int64_t extent = p->order.extent[digit];
        if (digit == DIGIT_DEPTH) {
            add_digit(&p->packing, extent / con->group_channels, 0, -1, 1);
            add_digit(&p->packing, con->group_channels, source->depth, 0, 0);
        } else if (digit == DIGIT_COLUMN) {
            add_digit(&p->packing, con->joined, source->group, 1, -1);
            add_digit(&p->packing, con->group_outputs, source->column, 0, 0);
        } else if (extent > 1)
            add_digit(&p->packing, extent, p->stride[digit], digit == DIGIT_BLOCK ? -groups : 0,
                      digit == DIGIT_BLOCK ? groups : 0);
    }
}

/* Steps in the array; digits that it does not have get no extent. */
static int64_t set_steps(Packer *p, bool all, int64_t parts, int64_t *step)
{
    int64_t elements = 1;
    for (uint32_t i = DIGITS; i-- > 0;) {
        uint32_t digit = p->order.place[i];
        if ((!all && !p->stride[digit]) || (digit == DIGIT_PART && parts == 1) ||
            (digit == DIGIT_BUNDLE && p->con->bundles == 1)) {
            p->order.extent[digit] = 0;
            continue;
        }
        step[digit] = elements;
        elements *= p->order.extent[digit];
    }
    return elements;
}

/* The array in the panels' order, without the digits that it does not depend on; `panel`, `block` and `bundle` are the
 * variables' strides in it. */
static Packed pack(const Tiled *con, const PanelGroup *group, const ConstantSource *source, bool all)
{
    Arena *arena = con->lower->arena;
    int64_t width = tiled_panel_width(con, group), parts = all ? con->parts : 1, step[DIGITS] = {0};
    Packer p;
    memset(&p, 0, sizeof p); /* packings are compared as bytes */
    p.con = con, p.order = tiled_packed_order(con, group);
    p.order.extent[DIGIT_DEPTH] *= con->parts / parts;
    memcpy(p.stride,
           (int64_t[DIGITS]){[DIGIT_BUNDLE] = source->bundle,
                             [DIGIT_PANEL] = width * source->column,
                             [DIGIT_BLOCK] = source->block,
                             [DIGIT_TAP_H] = source->tap_h,
                             [DIGIT_TAP_W] = source->tap_w,
                             [DIGIT_DEPTH] = parts * source->depth,
                             [DIGIT_COLUMN] = source->column,
                             [DIGIT_PART] = source->depth},
           sizeof p.stride);
    p.packing.start = source->start + group->first * con->lanes * source->column;
    int64_t elements = set_steps(&p, all, parts, step);
    if (con->joined > 1)
        bound_groups(&p, source);
    else
        bound_whole(&p, group, parts);

    const Packing *packing = &p.packing;
    Index at = index_scale(arena, index_var(arena, group->panel), step[DIGIT_PANEL]);
    at = index_add(arena, at, index_scale(arena, index_var(arena, con->block), step[DIGIT_BLOCK]));
    at = index_add(arena, at, index_scale(arena, index_var(arena, con->bundle), step[DIGIT_BUNDLE]));
    uint32_t buffer = packing->rank ? lower_weights(con->lower, source->value, packing, elements)
                                    : lower_buffer(con->lower, source->value, false);
    if (!packing->rank)
        at = index_constant(source->start);
    return (Packed){buffer, at, step[DIGIT_TAP_H], step[DIGIT_TAP_W], step[DIGIT_DEPTH] / parts, step[DIGIT_COLUMN]};
}

void tiled_pack_constant(Tiled *con, PanelGroup *group)
{
    group->weight = pack(con, group, &con->source[0], true);
    group->elements = tiled_packed_order(con, group).elements;
    for (uint32_t i = 1; i < con->source_count; i++)
        group->side[i] = pack(con, group, &con->source[i], false);
}

/* Reading */

static const Expr *load(const Tiled *con, const PanelGroup *group, uint32_t source, const Packed *packed, Index at,
                        uint32_t vector, const Var *lane)
{
    Arena *arena = con->lower->arena;
    DType dtype = value_type(con->lower->graph, con->source[source].value)->dtype;
    at = index_add(arena, at, index_constant(tiled_panel_vector(con, group, vector) * packed->lane));
    at = index_add(arena, at, index_scale(arena, index_var(arena, lane), packed->lane));
    return (packed->lane > 1 ? expr_load_spread : expr_load)(arena, dtype, packed->buffer, at);
}

static const Expr *load_side(const Tiled *con, const PanelGroup *group, uint32_t source, const WeightAt *at,
                             uint32_t vector, const Var *lane)
{
    Arena *arena = con->lower->arena;
    const Packed *side = &group->side[source];
    Index address = index_substitute(arena, side->at, con->block, at->block);
    address = index_add(arena, address, index_scale(arena, at->kh, side->tap_h));
    address = index_add(arena, address, index_scale(arena, at->kw, side->tap_w));
    address = index_add(arena, address, index_scale(arena, at->depth, side->depth));
    return load(con, group, source, side, address, vector, lane);
}

/* The value computed of what is loaded here. */
static const Expr *computed(Tiled *con, ValueId value, const Expr *const *loaded)
{
    Lower *lower = con->lower;
    Index nowhere[MAX_RANK] = {0};
    for (uint32_t i = 0; i < con->source_count; i++)
        lower->bound[con->source[i].value] = loaded[i];
    const Expr *expr = lower_value(lower, value, nowhere);
    for (uint32_t i = 0; i < con->source_count; i++)
        lower->bound[con->source[i].value] = NULL;
    return expr;
}

const Expr *tiled_weight(Tiled *con, const PanelGroup *group, const WeightAt *at, uint32_t vector, const Var *lane)
{
    const Expr *loaded[MOST_LEAVES];
    if (!con->widened) {
        Arena *arena = con->lower->arena;
        Index address = index_add(arena, at->at, index_constant(tiled_panel_vector(con, group, vector)));
        return expr_load(arena, DT_F32, group->weight.buffer, index_add(arena, address, index_var(arena, lane)));
    }
    loaded[0] = load(con, group, 0, &group->weight, at->at, vector, lane);
    for (uint32_t i = 1; i < con->source_count; i++)
        loaded[i] = load_side(con, group, i, at, vector, lane);
    return computed(con, con->scaled ? con->scaled->in[1 - con->scale] : con->second, loaded);
}

const Expr *tiled_block_scale(Tiled *con, const PanelGroup *group, Index block, uint32_t vector, const Var *lane)
{
    Index zero = index_constant(0);
    WeightAt at = {zero, block, zero, zero, zero};
    const Expr *loaded[MOST_LEAVES] = {NULL};
    for (uint32_t i = 1; i < con->source_count; i++)
        loaded[i] = load_side(con, group, i, &at, vector, lane);
    return computed(con, con->scaled->in[con->scale], loaded);
}
