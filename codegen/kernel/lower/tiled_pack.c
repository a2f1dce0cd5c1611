/* The second operand of a contraction, in panels of as many columns as a tile has.
 * Constants (tiled_constant.c) are packed at compile time, [panel][block][kh][kw][depth of a block][columns of a
 * panel], so that a tile reads them in one stream.  Others are packed into scratch the same way when many tiles pass
 * over them, as much as one round takes; few tiles read them where they are when their columns have stride 1, and all
 * do when they lie in panels already (compiler/passes/panels.c). */
#include "kernel/lower/tiled.h"

#include "base/number.h"

/* Its address, if it is in memory and its columns follow each other there. */
static bool readable_in_place(const Tiled *con, const Var *depth, ValueId *source, Index *address)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Index position[MAX_RANK] = {0}, zero = index_constant(0);
    int64_t factor;

    if (con->packed || !con->is_product || con->columns % con->lanes || kernel_computes(lower, con->second))
        return false;
    Index k =
        index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth), index_var(arena, depth));
    tiled_weights_position(con, k, zero, zero, index_var(arena, con->column), position);
    return lower_memory_source(lower, con->second, position, source, address) &&
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

/* Do the columns of a panel follow each other in memory, though those of all do not?  As the pass panels lays them. */
static bool lies_in_panels(const Tiled *con, const Var *panel, const Var *depth, ValueId *source, Index *address)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t width = con->vectors * con->lanes, factor;
    Index position[MAX_RANK] = {0}, zero = index_constant(0);
    const Var *within = index_var_new(arena, "within", 0, width - 1);

    if (con->packed || !con->is_product || con->columns % width || kernel_computes(lower, con->second))
        return false;
    Index k =
        index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth), index_var(arena, depth));
    Index column = index_add(arena, index_scale(arena, index_var(arena, panel), width), index_var(arena, within));
    tiled_weights_position(con, k, zero, zero, column, position);
    if (!lower_memory_source(lower, con->second, position, source, address) ||
        !index_factor(*address, within, &factor) || factor != 1 || !index_factor(*address, depth, &factor) ||
        factor != width)
        return false;
    *address = index_substitute(arena, *address, within, zero);
    return true;
}

bool tiled_lies_in_panels(const Tiled *con)
{
    int64_t width = con->vectors * con->lanes;
    const Var *depth = index_var_new(con->lower->arena, "depth", 0, con->block_depth - 1);
    const Var *panel = index_var_new(con->lower->arena, "panel", 0, con->columns / width - 1);
    ValueId source;
    Index address;
    return lies_in_panels(con, panel, depth, &source, &address);
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
    int64_t extent = ceil_div(con->depth, unit), room = tiled_packed_blocks(con, group) * (con->block_depth / unit);
    Stmt *loop = stmt_for(arena, block, var, 0, extent, 1, LOOP_SERIAL);
    if (room >= extent)
        return &loop->body;
    loop->low = index_scale(arena, tiled_first_block(con, group), con->block_depth / unit);
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
    const Expr *load = lower_value(con->lower, con->second, position);
    bool follows = lane->high == 0 || (index_factor(load->index, lane, &step) && step == 1);
    return load->kind == EXPR_LOAD && follows ? load : NULL;
}

/* Neighbouring columns of a panel, in a vector. */
typedef struct Piece {
    int64_t first, lanes; /* in the panel; 1: a column alone */
    const Var *lane;
    const Expr *vector; /* of row k */
} Piece;

/* Where panels are packed one at a time, no hardware follows from line to line: the next one's are fetched. */
static void fetch_next(const Tiled *con, const PanelGroup *group, Block *block, const Piece *piece)
{
    Arena *arena = con->lower->arena;
    uint32_t line = (uint32_t)most(1, LINE_BYTES / (con->lanes * 4)); /* vectors of one */
    if (!tiled_packs_panels(con) || group->count == 1)
        return;
    Index next = index_add(arena, index_var(arena, group->panel), index_constant(1));
    next = index_mod(arena, next, group->count);
    for (uint32_t v = 0; v < group->vectors; v += line) {
        Index at = index_substitute(arena, piece[v].vector->index, piece[v].lane, index_constant(0));
        stmt_prefetch(arena, block, piece[v].vector->buffer, index_substitute(arena, at, group->panel, next), 2);
    }
}

/* Is a column nothing but its depth?  Of products, and of windows of one pixel. */
static bool goes_through_depth(const Tiled *con)
{
    return con->is_product ||
           (con->taps_h * con->taps_w == 1 && con->joined == 1 && con->lower->target->dialect == DIALECT_VECTOR);
}

static int64_t valid_columns(const Tiled *con, const PanelGroup *group)
{
    return group->partial ? con->columns - group->first * con->lanes : group->vectors * con->lanes;
}

/* Whole vectors, and what a partial panel has of the last one in shorter ones. */
static uint32_t cut_pieces(const Tiled *con, const PanelGroup *group, Piece *piece)
{
    int64_t lanes = con->lanes, width = valid_columns(con, group);
    uint32_t count = 0;
    for (int64_t first = 0; first < width; first += lanes) {
        if (width - first < lanes)
            lanes = most(1, lower_rest_lanes(con->lower, lanes, width - first));
        bool again = count && piece[count - 1].lanes == lanes;
        const Var *lane = again ? piece[count - 1].lane : index_var_new(con->lower->arena, "lane", 0, lanes - 1);
        piece[count++] = (Piece){first, lanes, lane, NULL};
    }
    return count;
}

/* Copies pieces of a row to `to` on; lanes behind the last column are zeros. */
static void copy_pieces(const Tiled *con, const PanelGroup *group, Block *block, Index to, const Piece *piece,
                        uint32_t count)
{
    Arena *arena = con->lower->arena;
    int64_t last = (group->vectors - 1) * con->lanes;
    const Var *lane = NULL;
    Block *region = NULL;
    if (valid_columns(con, group) % con->lanes) {
        lane = piece->lanes == con->lanes ? piece->lane : index_var_new(arena, "lane", 0, con->lanes - 1);
        region = &stmt_lanes(arena, block, lane, con->lanes)->body;
        stmt_store(arena, region, group->weight.buffer,
                   index_add(arena, index_add(arena, to, index_constant(last)), index_var(arena, lane)),
                   expr_number(arena, DT_F32, 0));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (piece[i].lanes > 1 && piece[i].lane != lane)
            region = &stmt_lanes(arena, block, piece[i].lane, (uint32_t)piece[i].lanes)->body;
        lane = piece[i].lane;
        if (!i)
            fetch_next(con, group, region, piece);
        Index at = index_add(arena, to, index_constant(piece[i].first));
        if (piece[i].lanes > 1)
            stmt_store(arena, region, group->weight.buffer, index_add(arena, at, index_var(arena, piece[i].lane)),
                       piece[i].vector);
        else
            stmt_store(arena, block, group->weight.buffer, at,
                       expr_substitute(arena, piece[i].vector, piece[i].lane, index_constant(0)));
    }
}

/* Columns of stride 1: vectors are copied.  Each is asked for: through a view, the next need not follow this one. */
static bool pack_by_vectors(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    if (!goes_through_depth(con) || kernel_computes(lower, con->second))
        return false;

    Piece *piece = ARENA_ARRAY(arena, Piece, group->vectors + con->lanes);
    uint32_t count = cut_pieces(con, group, piece);
    const Var *k = index_var_new(arena, "k", 0, con->depth - 1);
    Index panel = index_scale(arena, index_var(arena, group->panel), group->vectors * con->lanes);
    for (uint32_t i = 0; i < count; i++) {
        Index column = index_add(arena, panel, index_constant(group->first * con->lanes + piece[i].first));
        piece[i].vector = vector_of_row(con, k, column, piece[i].lane);
        if (!piece[i].vector)
            return false;
    }
    Block *block = packed_depth(con, group, packed_panels(con, group, lower->block), k, 1);
    Index to = index_substitute(arena, group->weight.at, con->block, index_constant(0));
    to = index_add(arena, to, index_scale(arena, index_var(arena, k), order->step[DIGIT_DEPTH]));
    copy_pieces(con, group, block, to, piece, count);
    return true;
}

/* Rows of stride 1 along k, columns at any even step: squares of lanes x lanes are transposed in registers. */
static bool pack_by_squares(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t lanes = con->lanes, along, across;
    if (!goes_through_depth(con) || group->partial || con->depth % lanes || con->block_depth != lanes)
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
    if (kernel_computes(lower, con->second))
        return false;
    const Expr *load = lower_value(lower, con->second, position);
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

static const char *const digit_names[DIGITS] = {[DIGIT_TAP_H] = "kh", "kw", "c", "o"};

/* Windows whose rows follow each other, here and there, are one loop over their taps: fewer for readers, and for C
 * compilers, whose reduction of addresses takes long over each loop around a gather. */
static void join_taps(Arena *arena, const Var *var[DIGITS], Index *from, Index *to)
{
    const Var *h = var[DIGIT_TAP_H], *w = var[DIGIT_TAP_W];
    int64_t from_h, from_w, to_h, to_w, width = w->high + 1;
    if (!h->high || !w->high || !index_factor(*from, h, &from_h) || !index_factor(*from, w, &from_w) ||
        !index_factor(*to, h, &to_h) || !index_factor(*to, w, &to_w) || from_h != from_w * width ||
        to_h != to_w * width)
        return;
    const Var *tap = index_var_new(arena, "tap", 0, (h->high + 1) * width - 1);
    var[DIGIT_TAP_H] = index_var_new(arena, h->name, 0, 0);
    var[DIGIT_TAP_W] = tap;
    *from = index_substitute(arena, index_substitute(arena, *from, h, index_constant(0)), w, index_var(arena, tap));
    *to = index_substitute(arena, index_substitute(arena, *to, h, index_constant(0)), w, index_var(arena, tap));
}

/* Columns at any even step, as those of windows: vectors are gathered. */
static bool pack_by_gathers(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t lanes = con->lanes, step;
    if (lower->target->dialect != DIALECT_VECTOR || group->partial || con->joined > 1 ||
        con->depth % con->block_depth || kernel_computes(lower, con->second))
        return false;

    const Var *var[DIGITS] = {0}, *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Index at[DIGITS], to = group->weight.at, position[MAX_RANK] = {0};
    for (uint32_t digit = DIGIT_TAP_H; digit <= DIGIT_COLUMN; digit++) {
        int64_t vectors = digit == DIGIT_COLUMN ? lanes : 1;
        var[digit] = index_var_new(arena, digit_names[digit], 0, order->extent[digit] / vectors - 1);
        at[digit] = index_scale(arena, index_var(arena, var[digit]), vectors);
        to = index_add(arena, to, index_scale(arena, at[digit], order->step[digit]));
    }
    Index k = index_add(arena, index_scale(arena, index_var(arena, con->block), con->block_depth), at[DIGIT_DEPTH]);
    Index column = index_scale(arena, index_var(arena, group->panel), group->vectors * lanes);
    column = index_add(arena, index_add(arena, column, at[DIGIT_COLUMN]), index_constant(group->first * lanes));
    tiled_weights_position(con, k, at[DIGIT_TAP_H], at[DIGIT_TAP_W], index_add(arena, column, index_var(arena, lane)),
                           position);
    const Expr *vector = lower_value(lower, con->second, position);
    if (vector->kind != EXPR_LOAD || vector->dtype != DT_F32 || !index_factor(vector->index, lane, &step))
        return false;
    Index from = vector->index;
    join_taps(arena, var, &from, &to);
    vector = expr_load(arena, vector->dtype, vector->buffer, from);

    LoopKind kind = step == 1 ? LOOP_SERIAL : LOOP_ROLLED; /* a gather is as many loads as there are lanes */
    Block *block = packed_panels(con, group, lower->block);
    if (con->depth > con->block_depth)
        block = packed_depth(con, group, block, con->block, con->block_depth);
    for (uint32_t i = DIGIT_BLOCK + 1; i < DIGIT_PART; i++) {
        const Var *digit = var[order->place[i]];
        if (digit->high > 0)
            block = &stmt_for(arena, block, digit, 0, digit->high + 1, 1, kind)->body;
    }
    block = &stmt_lanes(arena, block, lane, con->lanes)->body;
    stmt_store(arena, block, group->weight.buffer, index_add(arena, to, index_var(arena, lane)), vector);
    return true;
}

/* What a partial panel has no columns for. */
static void clear_panel(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Arena *arena = con->lower->arena;
    const Var *z = index_var_new(arena, "z", 0, order->elements - 1);
    Index first = index_substitute(arena, group->weight.at, con->block, index_constant(0));
    Block *block = &stmt_for(arena, con->lower->block, z, 0, order->elements, 1, LOOP_SERIAL)->body;
    stmt_store(arena, block, group->weight.buffer, index_add(arena, first, index_var(arena, z)),
               expr_number(arena, DT_F32, 0));
}

static void pack_one_by_one(Tiled *con, const PanelGroup *group, const PackedOrder *order)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    Block *block = packed_panels(con, group, lower->block);
    Index at[DIGITS], to = group->weight.at, position[MAX_RANK] = {0};
    int64_t columns = con->joined == 1 ? valid_columns(con, group) : order->extent[DIGIT_COLUMN];

    if (columns < order->extent[DIGIT_COLUMN])
        clear_panel(con, group, order);
    at[DIGIT_PANEL] = index_var(arena, group->panel);
    at[DIGIT_BLOCK] = index_var(arena, con->block);
    if (con->depth > con->block_depth)
        block = packed_depth(con, group, block, con->block, con->block_depth);
    for (uint32_t i = DIGIT_BLOCK + 1; i < DIGIT_PART; i++) {
        uint32_t digit = order->place[i];
        int64_t extent = digit == DIGIT_COLUMN ? columns : order->extent[digit];
        const Var *var = index_var_new(arena, digit_names[digit], 0, extent - 1);
        if (extent > 1)
            block = &stmt_for(arena, block, var, 0, extent, 1, LOOP_SERIAL)->body;
        at[digit] = index_var(arena, var);
        to = index_add(arena, to, index_scale(arena, at[digit], order->step[digit]));
    }
    Index k = index_add(arena, index_scale(arena, at[DIGIT_BLOCK], con->block_depth), at[DIGIT_DEPTH]);
    Index column = index_add(arena, index_scale(arena, at[DIGIT_PANEL], group->vectors * con->lanes),
                             index_add(arena, at[DIGIT_COLUMN], index_constant(group->first * con->lanes)));
    tiled_weights_position(con, k, at[DIGIT_TAP_H], at[DIGIT_TAP_W], column, position);

    Block *outer = lower_enter(lower, block);
    const Expr *zero = expr_number(arena, DT_F32, 0);
    const Expr *value = lower_value(lower, con->second, position);
    if (con->joined > 1) /* zero between groups */
        value = expr_within(arena,
                            index_add(arena, index_div(arena, k, con->group_channels),
                                      index_scale(arena, index_div(arena, column, con->group_outputs), -1)),
                            1, value, zero);
    value = expr_within(arena, k, con->depth, value, zero);
    value = expr_within(arena, column, con->columns, value, zero);
    stmt_store(arena, lower->block, group->weight.buffer, to, value);
    lower_leave(lower, outer);
}

static bool packs_now(const Tiled *con)
{
    return !con->packed && !con->in_place && !con->empty;
}

/* Sums of a panel between rounds. */
int64_t tiled_partial_elements(const Tiled *con)
{
    int64_t width = 0;
    for (uint32_t g = 0; con->rounds > 1 && packs_now(con) && g < con->group_count; g++)
        if (!con->group[g].partial)
            width = most(width, con->group[g].vectors * con->lanes);
    return con->out_h * con->out_w * width * most(1, con->together);
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
    if (!pack_by_vectors(con, group, &order) && !pack_by_squares(con, group, &order) &&
        !pack_by_gathers(con, group, &order))
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

    if (con->empty)
        return;
    if (con->packed) {
        for (uint32_t g = 0; g < con->group_count; g++)
            tiled_pack_constant(con, &con->group[g]);
    } else if (con->in_place && con->group_count == 1 &&
               lies_in_panels(con, con->group[0].panel, depth, &source, &address)) {
        read_in_place(con, &con->group[0], depth, source, address);
    } else if (con->in_place && readable_in_place(con, depth, &source, &address)) {
        for (uint32_t g = 0; g < con->group_count; g++)
            read_in_place(con, &con->group[g], depth, source, address);
    } else
        pack_now(con);
}
