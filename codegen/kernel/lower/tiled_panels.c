/* The panels of the second operand: how wide they are, where its elements are, and the order in which they are packed.
 */
#include "kernel/lower/tiled.h"

/* Panels */

/* A last panel of one vector could not begin earlier, and would be padded: the others take it in, one pixel at a time.
 */
static int64_t count_panels(const Tiled *con, int64_t vectors)
{
    int64_t panels = ceil_div(vectors, con->vectors);
    bool alone = con->lower->target->flash && con->columns % con->lanes && con->pixels == 1 && vectors / panels == 1;
    return alone && panels > 1 ? panels - 1 : panels;
}

void tiled_panels(Tiled *con)
{
    PanelSpan span[MOST_SPANS];
    int64_t panels = count_panels(con, ceil_div(con->columns, con->lanes));
    con->group_count = lower_panel_spans(con->columns, con->lanes, panels, span);
    for (uint32_t i = 0; i < con->group_count; i++)
        con->group[i] = (PanelGroup){.first = span[i].first,
                                     .count = span[i].count,
                                     .vectors = (uint32_t)span[i].vectors,
                                     .partial = span[i].partial,
                                     .panel = index_var_new(con->lower->arena, "panel", 0, span[i].count - 1)};
}

int64_t tiled_panel_width(const Tiled *con, const PanelGroup *group)
{
    int64_t whole = group->vectors * con->lanes, columns = con->columns - group->first * con->lanes;
    bool tight = con->lower->target->flash && group->partial && con->packed && con->source_count == 1 &&
                 con->parts == 1 && con->joined == 1;
    return tight && columns >= con->lanes ? columns : whole;
}

int64_t tiled_panel_vector(const Tiled *con, const PanelGroup *group, uint32_t vector)
{
    return least(vector * con->lanes, tiled_panel_width(con, group) - con->lanes);
}

/* Where the operand's elements are */

void tiled_weights_position(const Tiled *con, Index depth, Index kh, Index kw, Index column, Index *position)
{
    const Shape *shape = value_shape(con->lower->graph, con->second);
    if (con->by_pixels) {
        position[0] = con->position[0];
        position[1] = depth;
        index_unflatten(con->lower->arena, column, shape->dim + 2, shape->rank - 2, position + 2);
        return;
    }
    if (!con->is_product) {
        Arena *arena = con->lower->arena;
        Index first = con->transposed ? depth : column, bundle = index_var(arena, con->bundle);
        first = index_add(arena, first, index_scale(arena, bundle, con->transposed ? con->depth : con->columns));
        Index second = con->transposed ? column : depth;
        if (con->joined > 1)
            second = index_mod(arena, second, con->transposed ? con->group_outputs : con->group_channels);
        position[0] = first;
        position[1] = second;
        position[2] = index_add(arena, index_scale(arena, kh, con->tap_step[0]), index_constant(con->tap_begin[0]));
        position[shape->rank - 1] =
            index_add(arena, index_scale(arena, kw, con->tap_step[1]), index_constant(con->tap_begin[1]));
        return;
    }
    const Shape *result = value_shape(con->lower->graph, con->node->out[0]);
    uint32_t rows = value_shape(con->lower->graph, con->node->in[0])->rank > 1;
    for (uint32_t d = 0; d + 2 < shape->rank; d++)
        position[d] =
            shape->dim[d] == 1 ? index_constant(0) : con->position[result->rank - 1 - rows - (shape->rank - 2) + d];
    position[shape->rank - 2] = con->product.transposed ? column : depth;
    position[shape->rank - 1] = con->product.transposed ? depth : column;
}

bool tiled_packs_panels(const Tiled *con)
{
    return !con->packed && con->order == ORDER_PANELS && !con->lower->strip;
}

bool tiled_packs_once(const Tiled *con)
{
    return !con->packed && !con->in_place && !con->is_product;
}

bool tiled_goes_along_rows(const Tiled *con)
{
    return con->together && con->rounds == 1;
}

/* Blocks of the depth that scratch has room for: what is left over of the last one counts as a block. */
int64_t tiled_packed_blocks(const Tiled *con, const PanelGroup *group)
{
    bool by_round = tiled_packs_panels(con) && con->rounds > 1 && !group->partial;
    return by_round ? con->blocks + (con->depth % con->block_depth != 0) : ceil_div(con->depth, con->block_depth);
}

/* The block that the round begins with. */
Index tiled_first_block(const Tiled *con, const PanelGroup *group)
{
    if (!tiled_packs_panels(con) || con->rounds == 1 || group->partial)
        return index_constant(0);
    return index_scale(con->lower->arena, index_var(con->lower->arena, con->round), con->blocks);
}

/* The packed order */

PackedOrder tiled_packed_order(const Tiled *con, const PanelGroup *group)
{
    PackedOrder order = {
        {DIGIT_BUNDLE, DIGIT_PANEL, DIGIT_BLOCK, DIGIT_TAP_H, DIGIT_TAP_W, DIGIT_DEPTH, DIGIT_COLUMN, DIGIT_PART},
        {0},
        {0},
        1};
    if (con->few_channels) {
        order.place[3] = DIGIT_TAP_W;
        order.place[4] = DIGIT_DEPTH;
        order.place[5] = DIGIT_TAP_H;
    }
    order.extent[DIGIT_BUNDLE] = con->packed ? con->bundles : 1; /* others are packed for each anew */
    order.extent[DIGIT_PANEL] = tiled_goes_along_rows(con) ? least(con->together, group->count)
                                : tiled_packs_panels(con)  ? 1
                                                           : group->count;
    order.extent[DIGIT_BLOCK] = tiled_packed_blocks(con, group);
    order.extent[DIGIT_TAP_H] = con->taps_h;
    order.extent[DIGIT_TAP_W] = con->taps_w;
    order.extent[DIGIT_DEPTH] = ceil_div(least(con->block_depth, con->depth), con->parts);
    order.extent[DIGIT_PART] = con->parts;
    order.extent[DIGIT_COLUMN] = tiled_panel_width(con, group);
    for (uint32_t i = DIGITS; i-- > 0;) {
        order.step[order.place[i]] = order.elements;
        order.elements *= order.extent[order.place[i]];
    }
    return order;
}

void tiled_set_packed(Tiled *con, PanelGroup *group, uint32_t buffer, int64_t start)
{
    Arena *arena = con->lower->arena;
    PackedOrder order = tiled_packed_order(con, group);
    int64_t step = tiled_packs_panels(con) && !tiled_goes_along_rows(con) ? 0 : order.step[DIGIT_PANEL];
    Index panel = index_var(arena, group->panel);
    if (tiled_goes_along_rows(con))
        panel = index_add(arena, panel, index_scale(arena, con->first_panel, -1));
    group->weight = (Packed){.buffer = buffer,
                             .tap_h = order.step[DIGIT_TAP_H],
                             .tap_w = order.step[DIGIT_TAP_W],
                             .depth = order.step[DIGIT_DEPTH] / con->parts,
                             .lane = order.step[DIGIT_COLUMN]};
    Index at = index_add(arena, index_constant(start), index_scale(arena, panel, step));
    Index first = tiled_first_block(con, group), block = index_var(arena, con->block);
    block = index_add(arena, block, index_scale(arena, first, -1));
    group->weight.at = index_add(arena, at, index_scale(arena, block, order.step[DIGIT_BLOCK]));
    group->elements = order.elements;
}
