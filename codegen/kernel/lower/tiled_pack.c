/* The second operand of a contraction, in panels of as many columns as a tile has.
 * Constants (tiled_constant.c) are packed at compile time, [panel][block][kh][kw][depth of a block][columns of a
 * panel], so that a tile reads them in one stream.  Others are packed into scratch the same way when many tiles pass
 * over them, as much as one round takes; few tiles read them where they are when their columns have stride 1. */
#include "kernel/lower/tiled.h"

/* Panels */

static void add_group(Tiled *con, int64_t first, int64_t count, uint32_t vectors, bool partial)
{
    if (!count)
        return;
    const Var *panel = index_var_new(con->lower->arena, "panel", 0, count - 1);
    con->group[con->group_count++] =
        (PanelGroup){.first = first, .count = count, .vectors = vectors, .partial = partial, .panel = panel};
}

/* Balanced widths: 7 vectors by 3 are 3, 2, 2.  The last panel stands alone when its last lanes are past the end. */
void tiled_panels(Tiled *con)
{
    int64_t vectors = ceil_div(con->columns, con->lanes), panels = ceil_div(vectors, con->vectors);
    uint32_t narrow = (uint32_t)(vectors / panels), partial = con->columns % con->lanes != 0;
    int64_t wide = vectors % panels; /* panels of one vector more */

    con->group_count = 0;
    add_group(con, 0, wide, narrow + 1, false);
    add_group(con, wide * (narrow + 1), panels - wide - partial, narrow, false);
    add_group(con, vectors - narrow, partial, narrow, true);
}

/* Where the operand's elements are */

void tiled_weights_position(const Tiled *con, Index depth, Index kh, Index kw, Index column, Index *position)
{
    const Shape *shape = value_shape(con->lower->graph, con->node->in[1]);
    if (!con->is_product) {
        Arena *arena = con->lower->arena;
        position[0] = con->transposed ? depth : column;
        position[1] = con->transposed ? column : depth;
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
    return !con->packed && con->order == ORDER_PANELS;
}

/* Blocks of the depth that scratch has room for: what is left over of the last one counts as a block. */
static int64_t packed_blocks(const Tiled *con, const PanelGroup *group)
{
    bool by_round = tiled_packs_panels(con) && con->rounds > 1 && !group->partial;
    return by_round ? con->blocks + (con->depth % con->block_depth != 0) : ceil_div(con->depth, con->block_depth);
}

/* The block that the round begins with. */
static Index first_packed_block(const Tiled *con, const PanelGroup *group)
{
    if (!tiled_packs_panels(con) || con->rounds == 1 || group->partial)
        return index_constant(0);
    return index_scale(con->lower->arena, index_var(con->lower->arena, con->round), con->blocks);
}

/* The packed order */

PackedOrder tiled_packed_order(const Tiled *con, const PanelGroup *group)
{
    PackedOrder order = {
        {DIGIT_PANEL, DIGIT_BLOCK, DIGIT_TAP_H, DIGIT_TAP_W, DIGIT_DEPTH, DIGIT_COLUMN, DIGIT_PART}, {0}, {0}, 1};
    if (con->few_channels) {
        order.place[2] = DIGIT_TAP_W;
        order.place[3] = DIGIT_DEPTH;
        order.place[4] = DIGIT_TAP_H;
    }
    order.extent[DIGIT_PANEL] = tiled_packs_panels(con) ? 1 : group->count;
    order.extent[DIGIT_BLOCK] = packed_blocks(con, group);
    order.extent[DIGIT_TAP_H] = con->taps_h;
    order.extent[DIGIT_TAP_W] = con->taps_w;
    order.extent[DIGIT_DEPTH] = ceil_div(least(con->block_depth, con->depth), con->parts);
    order.extent[DIGIT_PART] = con->parts;
    order.extent[DIGIT_COLUMN] = group->vectors * con->lanes;
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
    int64_t step = tiled_packs_panels(con) ? 0 : order.step[DIGIT_PANEL];
    group->weight = (Packed){.buffer = buffer,
                             .tap_h = order.step[DIGIT_TAP_H],
                             .tap_w = order.step[DIGIT_TAP_W],
                             .depth = order.step[DIGIT_DEPTH] / con->parts,
                             .lane = order.step[DIGIT_COLUMN]};
    Index at = index_add(arena, index_constant(start), index_scale(arena, index_var(arena, group->panel), step));
    Index first = first_packed_block(con, group), block = index_var(arena, con->block);
    block = index_add(arena, block, index_scale(arena, first, -1));
    group->weight.at = index_add(arena, at, index_scale(arena, block, order.step[DIGIT_BLOCK]));
    group->elements = order.elements;
}

/* A dynamic operand */

/* Its address, if it is in memory and its columns follow each other there. */
static bool readable_in_place(const Tiled *con, const Var *depth, ValueId *source, Index *address)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Index position[MAX_RANK] = {0}, zero = index_constant(0);
    int64_t factor;

    if (con->packed || !con->is_product || con->columns % con->lanes || kernel_computes(lower, con->node->in[1]))
        return false;
    Index k =
        index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth), index_var(arena, depth));
    tiled_weights_position(con, k, zero, zero, index_var(arena, con->column), position);
    return lower_memory_source(lower, con->node->in[1], position, source, address) &&
           index_factor(*address, con->column, &factor) && (factor == 1 || con->columns == 1) &&
           index_factor(*address, depth, &factor);
}

bool tiled_could_read_in_place(const Tiled *con)
{
    const Var *depth = index_var_new(con->lower->arena, "depth", 0, con->block_depth - 1);
    ValueId source;
    Index address;
    return readable_in_place(con, depth, &source, &address);
}

static void read_in_place(Tiled *con, PanelGroup *group, const Var *depth, ValueId source, Index address)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Index column = index_add(arena, index_constant(group->first * con->lanes),
                             index_scale(arena, index_var(arena, group->panel), group->vectors * con->lanes));
    group->weight = (Packed){.buffer = lower_buffer(lower, source, false), .lane = 1};
    index_factor(address, depth, &group->weight.depth);
    group->weight.at = index_substitute(arena, address, depth, index_constant(0));
    group->weight.at = index_substitute(arena, group->weight.at, con->column, column);
    group->weight.at =
        index_add(arena, group->weight.at, index_constant(-lower->kernel->buffer[group->weight.buffer].begin));
}

/* A loop over the panels, or none where they are packed one at a time. */
static Block *packed_panels(const Tiled *con, const PanelGroup *group, Block *block)
{
    if (tiled_packs_panels(con) || group->count == 1)
        return block;
    return &stmt_for(con->lower->arena, block, group->panel, 0, group->count, 1, LOOP_SERIAL)->body;
}

/* A loop over what the round takes of the depth, in steps of `unit` of it. */
static Block *packed_depth(const Tiled *con, const PanelGroup *group, Block *block, const Var *var, int64_t unit)
{
    Arena *arena = con->lower->arena;
    int64_t extent = ceil_div(con->depth, unit), room = packed_blocks(con, group) * (con->block_depth / unit);
    Stmt *loop = stmt_for(arena, block, var, 0, extent, 1, LOOP_SERIAL);
    if (room >= extent)
        return &loop->body;
    loop->low = index_scale(arena, first_packed_block(con, group), con->block_depth / unit);
    loop->high = index_add(arena, loop->low, index_constant(room));
    loop->clamp_high = extent % room != 0;
    loop->high_most = index_constant(extent);
    return &loop->body;
}

/* A vector of columns from `first` on, in row k, if they follow each other in memory. */
static const Expr *vector_of_row(const Tiled *con, const Var *k, Index first, const Var *lane)
{
    Arena *arena = con->lower->arena;
    Index position[MAX_RANK] = {0}, zero = index_constant(0);
    int64_t step;
    tiled_weights_position(con, index_var(arena, k), zero, zero, index_add(arena, first, index_var(arena, lane)),
                           position);
    const Expr *load = lower_value(con->lower, con->node->in[1], position);
    return load->kind == EXPR_LOAD && index_factor(load->index, lane, &step) && step == 1 ? load : NULL;
}

/* Columns of stride 1: vectors are copied.  Each is asked for: through a view, the next need not follow this one. */
static bool pack_by_vectors(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t lanes = con->lanes;
    if (!con->is_product || con->columns % lanes || kernel_computes(lower, con->node->in[1]))
        return false;

    const Var *k = index_var_new(arena, "k", 0, con->depth - 1), *lane = index_var_new(arena, "lane", 0, lanes - 1);
    const Expr **vector = ARENA_ARRAY(arena, const Expr *, group->vectors);
    Index first = index_scale(arena, index_var(arena, group->panel), group->vectors * lanes);
    for (uint32_t v = 0; v < group->vectors; v++) {
        Index column = index_add(arena, first, index_constant((group->first + v) * lanes));
        vector[v] = vector_of_row(con, k, column, lane);
        if (!vector[v])
            return false;
    }

    Block *block = packed_depth(con, group, packed_panels(con, group, lower->block), k, 1);
    block = &stmt_lanes(arena, block, lane, con->lanes)->body;
    Index to = index_substitute(arena, group->weight.at, con->block, index_constant(0));
    to = index_add(arena, index_add(arena, to, index_scale(arena, index_var(arena, k), order->step[DIGIT_DEPTH])),
                   index_var(arena, lane));
    for (uint32_t v = 0; v < group->vectors; v++)
        stmt_store(arena, block, group->weight.buffer, index_add(arena, to, index_constant(v * lanes)), vector[v]);
    return true;
}

/* Rows of stride 1 along k, columns at any even step: squares of lanes x lanes are transposed in registers. */
static bool pack_by_squares(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t lanes = con->lanes, along, across;
    if (!con->is_product || con->columns % lanes || con->depth % lanes || con->block_depth != lanes)
        return false;

    const Var *vector = index_var_new(arena, "v", 0, group->vectors - 1),
              *depth = index_var_new(arena, "depth", 0, lanes - 1);
    const Var *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Index zero = index_constant(0), position[MAX_RANK] = {0};
    Index first = index_add(arena, index_constant(group->first * lanes),
                            index_scale(arena, index_var(arena, group->panel), order->step[DIGIT_DEPTH]));
    Index column = index_add(arena, index_add(arena, first, index_scale(arena, index_var(arena, vector), lanes)),
                             index_var(arena, lane));
    Index k = index_add(arena, index_scale(arena, index_var(arena, con->block), lanes), index_var(arena, depth));
    tiled_weights_position(con, k, zero, zero, column, position);
    if (kernel_computes(lower, con->node->in[1]))
        return false;
    const Expr *load = lower_value(lower, con->node->in[1], position);
    if (load->kind != EXPR_LOAD || !index_factor(load->index, depth, &along) || along != 1 ||
        !index_factor(load->index, lane, &across))
        return false;

    Block *block = packed_panels(con, group, lower->block);
    if (group->vectors > 1)
        block = &stmt_for(arena, block, vector, 0, group->vectors, 1, LOOP_SERIAL)->body;
    if (con->depth > con->block_depth)
        block = packed_depth(con, group, block, con->block, lanes);
    Index from = index_substitute(arena, index_substitute(arena, load->index, depth, zero), lane, zero);
    Index to = index_add(arena, group->weight.at, index_scale(arena, index_var(arena, vector), lanes));
    stmt_transpose(arena, block, (uint32_t)lanes, group->weight.buffer, to, group->weight.depth,
                   expr_load(arena, DT_F32, load->buffer, from), across);
    return true;
}

static void pack_one_by_one(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    static const char *const name[DIGITS] = {[DIGIT_TAP_H] = "kh", "kw", "c", "o"};
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Block *block = packed_panels(con, group, lower->block);
    Index at[DIGITS], to = group->weight.at, position[MAX_RANK] = {0};

    at[DIGIT_PANEL] = index_var(arena, group->panel);
    at[DIGIT_BLOCK] = index_var(arena, con->block);
    if (con->depth > con->block_depth)
        block = packed_depth(con, group, block, con->block, con->block_depth);
    for (uint32_t i = DIGIT_BLOCK + 1; i < DIGIT_PART; i++) {
        uint32_t digit = order->place[i];
        const Var *var = index_var_new(arena, name[digit], 0, order->extent[digit] - 1);
        if (order->extent[digit] > 1)
            block = &stmt_for(arena, block, var, 0, order->extent[digit], 1, LOOP_SERIAL)->body;
        at[digit] = index_var(arena, var);
        to = index_add(arena, to, index_scale(arena, at[digit], order->step[digit]));
    }
    Index k = index_add(arena, index_scale(arena, at[DIGIT_BLOCK], con->block_depth), at[DIGIT_DEPTH]);
    Index column = index_add(arena, index_scale(arena, at[DIGIT_PANEL], group->vectors * con->lanes),
                             index_add(arena, at[DIGIT_COLUMN], index_constant(group->first * con->lanes)));
    tiled_weights_position(con, k, at[DIGIT_TAP_H], at[DIGIT_TAP_W], column, position);

    Block *outer = lower_enter(lower, block);
    const Expr *zero = expr_number(arena, DT_F32, 0);
    const Expr *value = lower_value(lower, con->node->in[1], position);
    value = expr_within(arena, k, con->depth, value, zero);
    value = expr_within(arena, column, con->columns, value, zero);
    stmt_store(arena, lower->block, group->weight.buffer, to, value);
    lower_leave(lower, outer);
}

static bool packs_now(const Tiled *con)
{
    return !con->packed && !con->in_place;
}

/* Sums of a panel between rounds. */
int64_t tiled_partial_elements(const Tiled *con)
{
    int64_t width = 0;
    for (uint32_t g = 0; con->rounds > 1 && packs_now(con) && g < con->group_count; g++)
        if (!con->group[g].partial)
            width = most(width, con->group[g].vectors * con->lanes);
    return con->out_h * con->out_w * width;
}

/* Panels that are packed one at a time share the room of the largest. */
int64_t tiled_packed_elements(const Tiled *con)
{
    int64_t elements = 0;
    for (uint32_t g = 0; packs_now(con) && g < con->group_count; g++) {
        int64_t own = tiled_packed_order(con, &con->group[g]).elements;
        elements = tiled_packs_panels(con) ? most(elements, own) : elements + own;
    }
    return elements;
}

static void pack_group(Tiled *con, const PanelGroup *group)
{
    PackedOrder order = tiled_packed_order(con, group);
    if (!pack_by_vectors(con, group, &order) && !pack_by_squares(con, group, &order))
        pack_one_by_one(con, group, &order);
}

static void pack_now(Tiled *con)
{
    uint32_t scratch = lower_scratch(con->lower, con->piece[PIECE_PANELS]);
    int64_t elements = 0;
    for (uint32_t g = 0; g < con->group_count; g++) {
        PanelGroup *group = &con->group[g];
        tiled_set_packed(con, group, scratch, elements);
        if (tiled_packs_panels(con))
            continue; /* then, where the tiles pass over it */
        elements += tiled_packed_order(con, group).elements;
        pack_group(con, group);
    }
}

void tiled_pack_panel(Tiled *con, const PanelGroup *group)
{
    if (tiled_packs_panels(con) && packs_now(con))
        pack_group(con, group);
}

void tiled_weights(Tiled *con)
{
    ValueId source;
    Index address;
    const Var *depth = index_var_new(con->lower->arena, "depth", 0, con->block_depth - 1);

    if (con->packed) {
        for (uint32_t g = 0; g < con->group_count; g++)
            tiled_pack_constant(con, &con->group[g]);
    } else if (con->in_place && readable_in_place(con, depth, &source, &address)) {
        for (uint32_t g = 0; g < con->group_count; g++)
            read_in_place(con, &con->group[g], depth, source, address);
    } else
        pack_now(con);
}
