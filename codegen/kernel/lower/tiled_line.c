/* Images that the kernel computes: what one row of the result reads of them is made in scratch, and then passed over.
 *
 * Of a blocked image, by a pointwise window: [block][w][channel of the block], vectors of channels.
 * It may be made by a depthwise convolution, whose weights are then read again for each row.
 * Of a plain one, by any window: [channel][kh][w], vectors along the row.  A row of the image is then computed for each
 * tap that falls on it, so fuse asks that little is computed.  Padding is not in the scratch: tiles leave out the taps
 * that fall outside, and so zeros stand around the image that is computed, not around what it is computed of. */
#include "kernel/lower/depthwise.h"
#include "kernel/lower/tiled.h"

typedef struct Line {
    const Tiled *con;
    const Var *row; /* of the result */
    Index outer;    /* the block of channels, or the channel */
    Index tap;      /* plain: kh */
    Index w;        /* blocked */
} Line;

static bool is_blocked(const Tiled *con)
{
    return value_type(con->lower->graph, con->node->in[0])->layout.block != 0;
}

ValueId tiled_made_operand(const Lower *lower, ValueId value)
{
    const Node *node = kernel_makes(lower, value) ? value_producer(lower->graph, value) : NULL;
    for (uint32_t i = 0; node && i < node->in_count; i++)
        if (kernel_makes(lower, node->in[i]))
            return node->in[i];
    return NONE;
}

/* The convolution of the kernel that the image is made of; NULL. */
static const Node *convolution_under(const Tiled *con)
{
    const Lower *lower = con->lower;
    for (ValueId v = con->node->in[0]; v != NONE && kernel_makes(lower, v); v = tiled_made_operand(lower, v))
        if (node_is_contraction(lower->graph, value_producer(lower->graph, v)))
            return value_producer(lower->graph, v);
    return NULL;
}

static bool see_blocked(Tiled *con)
{
    Depthwise dw;
    const Node *below = convolution_under(con);
    if (below && !depthwise_see_line(con->lower, &dw, below, con->node, con->outer[0]))
        return false;
    if (con->taps_h * con->taps_w * con->stride_h * con->stride_w != 1 || con->pad_top || con->pad_left ||
        con->out_h != con->in_h || con->out_w != con->in_w || con->depth % con->lanes || con->block_depth != con->lanes)
        return false;
    con->x_depth = 1;
    con->x_w = con->lanes;
    con->x_base = index_scale(con->lower->arena, index_var(con->lower->arena, con->block), con->in_w * con->lanes);
    return true;
}

bool tiled_see_line(Tiled *con)
{
    con->computed = true;
    if (is_blocked(con))
        return see_blocked(con);
    con->x_w = 1;
    con->line_h = con->in_w;
    con->x_depth = con->taps_h * con->in_w;
    con->x_base =
        index_scale(con->lower->arena, index_var(con->lower->arena, con->block), con->block_depth * con->x_depth);
    return true;
}

int64_t tiled_line_elements(const Tiled *con)
{
    return con->in_w * con->depth * (is_blocked(con) ? 1 : con->taps_h);
}

static Block *add_loop(Lower *lower, Block *block, const Var *var)
{
    return var->high > 0 ? &stmt_for(lower->arena, block, var, 0, var->high + 1, 1, LOOP_SERIAL)->body : block;
}

static void blocked_element(Lower *lower, void *context, Index at)
{
    const Line *line = context;
    const Tiled *con = line->con;
    Arena *arena = lower->arena;
    Index channel = index_add(arena, index_scale(arena, line->outer, con->lanes), at);
    Index position[] = {con->position[0], channel, index_var(arena, line->row), line->w};
    Index pixel = index_add(arena, index_scale(arena, line->outer, con->in_w), line->w);
    stmt_store(arena, lower->block, con->x, index_add(arena, index_scale(arena, pixel, con->lanes), at),
               lower_value(lower, con->node->in[0], position));
}

static void blocked_line(Tiled *con, Block *block, const Var *row)
{
    Lower *lower = con->lower;
    Depthwise dw;
    const Node *below = convolution_under(con);
    if (below && depthwise_see_line(lower, &dw, below, con->node, con->outer[0])) {
        depthwise_line(lower, &dw, block, index_var(lower->arena, row), con->x);
        return;
    }
    const Var *b = index_var_new(lower->arena, "b", 0, con->depth / con->lanes - 1),
              *w = index_var_new(lower->arena, "w", 0, con->in_w - 1);
    Line line = {.con = con, .row = row, .outer = index_var(lower->arena, b), .w = index_var(lower->arena, w)};
    Block *outer = lower_enter(lower, add_loop(lower, add_loop(lower, block, b), w));
    lower_vector_loop(lower, "c", con->lanes, LOOP_SERIAL, block_vectorizes, blocked_element, &line);
    lower_leave(lower, outer);
}

static void plain_element(Lower *lower, void *context, Index at)
{
    const Line *line = context;
    const Tiled *con = line->con;
    Arena *arena = lower->arena;
    Index row = index_scale(arena, index_var(arena, line->row), con->stride_h);
    row = index_add(arena, row, index_scale(arena, line->tap, con->dilation_h));
    row = index_add(arena, row, index_constant(-con->pad_top));
    Index position[] = {con->position[0], line->outer, row, at};
    Index to = index_add(arena, index_scale(arena, line->outer, con->x_depth), at);
    to = index_add(arena, to, index_scale(arena, line->tap, con->line_h));
    stmt_store(arena, lower->block, con->x, to, lower_value(lower, con->node->in[0], position));
}

static void plain_line(Tiled *con, Block *block, const Var *row)
{
    Lower *lower = con->lower;
    const Var *c = index_var_new(lower->arena, "c", 0, con->depth - 1);
    Line line = {.con = con, .row = row, .outer = index_var(lower->arena, c)};
    Block *inner = tiled_clamped_taps(con, add_loop(lower, block, c), row, &line.tap);
    Block *outer = lower_enter(lower, inner);
    lower_vector_loop(lower, "w", con->in_w, LOOP_SERIAL, block_vectorizes, plain_element, &line);
    lower_leave(lower, outer);
}

void tiled_line(Tiled *con, Block *block, const Var *row)
{
    if (is_blocked(con))
        blocked_line(con, block, row);
    else
        plain_line(con, block, row);
}
