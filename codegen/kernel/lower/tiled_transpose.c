/* A first operand that is transposed, as in the gradient of a weight, x^T * d: each step of its depth lies in a line of
 * its own, of which a tile takes a few elements.  So what a round takes of it is brought into scratch the other way
 * round, [row][depth of the round], once for many panels to pass over; between rounds, scratch holds their sums. */
#include "kernel/lower/tiled.h"

#define ROUND_DEPTH 256 /* a panel's share stays in the first level, that of all rows in the second, about */
#define LEAST_DEPTH 32
#define ROOM        16          /* elements between rows, so that they do not meet in one set of the first level */
#define MOST_SUMS   (1 << 20)   /* bytes of sums that wait between rounds */
#define MOST_PACKED (128 << 10) /* bytes of panels that all pass over a tile's rows */
#define FEW_TILES   8
#define FEW_PANELS  8 /* that pay for bringing the operand over */

/* Do blocks of the depth follow one another in memory like the steps in them?  Then one may begin anywhere. */
static bool is_even(const Tiled *con)
{
    int64_t step;
    return index_factor(con->x_base, con->block, &step) && step == con->block_depth * con->x_depth;
}

static bool could_transpose(const Tiled *con)
{
    const Lower *lower = con->lower;
    return con->is_product && !con->by_pixels && !con->packed && !lower->strip &&
           lower->target->dialect == DIALECT_VECTOR && con->x_w == 1 && con->x_depth > 1 && con->out_h == 1 &&
           con->out_w % con->lanes == 0 && con->columns % con->lanes == 0 && con->block_count > 0 &&
           con->block_depth == con->lanes && (con->depth % con->lanes == 0 || is_even(con)) &&
           con->x_value == con->node->in[0] && value_type(lower->graph, con->x_value)->dtype == DT_F32 &&
           con->asked.chunk <= 0;
}

/* Where the depth is less than a round, for results that are too much for the second level: these go there by rows, if
 * memory is not scarce. */
static bool worth_it(const Tiled *con)
{
    int64_t panels = con->columns / (con->vectors * con->lanes);
    bool far = !con->lower->lean && con->out_w * con->columns * 4 > con->lower->target->l2_bytes;
    return con->depth >= (far ? LEAST_DEPTH : ROUND_DEPTH) && ceil_div(con->out_w, con->pixels) >= FEW_TILES &&
           panels >= FEW_PANELS;
}

static void choose_rounds(Tiled *con)
{
    int64_t asked = con->asked.rounds;
    con->rounds = asked > 0 ? asked : ceil_div(con->depth, ROUND_DEPTH);
    con->blocks = ceil_div(con->block_count, con->rounds);
    con->rounds = ceil_div(con->block_count, con->blocks);
    con->round = index_var_new(con->lower->arena, "round", 0, con->rounds - 1);
}

/* Two parts at least, or four, each of a thread. */
void tiled_choose_together(Tiled *con)
{
    int64_t width = con->vectors * con->lanes, panels = ceil_div(con->columns, width);
    int64_t most_panels = con->rounds > 1 ? most(FEW_PANELS, MOST_SUMS / (4 * con->out_w * width))
                                          : MOST_PACKED / (4 * con->depth * width);
    con->together = most(1, least(most_panels, ceil_div(panels, con->rounds > 1 ? 2 : 4)));
}

bool tiled_choose_transpose(Tiled *con)
{
    Arena *arena = con->lower->arena;
    con->transposes =
        could_transpose(con) && (con->asked.transposes == KNOB_FREE ? worth_it(con) : con->asked.transposes > 0);
    if (!con->transposes)
        return con->asked.transposes <= 0;
    choose_rounds(con);
    tiled_choose_together(con);
    con->plain_base = con->x_base;
    con->plain_depth = con->x_depth;
    con->x_depth = 1;
    con->x_w = con->blocks * con->block_depth + ROOM;
    Index first = index_scale(arena, index_var(arena, con->round), con->blocks);
    Index block = index_add(arena, index_var(arena, con->block), index_scale(arena, first, -1));
    con->x_base = index_scale(arena, block, con->block_depth);
    return true;
}

int64_t tiled_transposed_elements(const Tiled *con)
{
    return con->transposes ? con->out_w * con->x_w : 0;
}

/* All rows of a block of the depth, or of as much that begins `shift` behind it. */
static void transpose_block(Tiled *con, Block *block, Index at_block, int64_t shift)
{
    Arena *arena = con->lower->arena;
    uint32_t source = lower_buffer(con->lower, con->x_source, false);
    const Var *square = index_var_new(arena, "square", 0, con->out_w / con->lanes - 1);
    Block *inner = &stmt_for(arena, block, square, 0, square->high + 1, 1, LOOP_SERIAL)->body;
    Index row = index_scale(arena, index_var(arena, square), con->lanes);
    int64_t begin = con->lower->kernel->buffer[source].begin;
    Index from = index_substitute(arena, con->plain_base, con->block, at_block);
    from = index_add(arena, from, index_constant(shift * con->plain_depth - begin));
    Index to = index_substitute(arena, con->x_base, con->block, at_block);
    to = index_add(arena, to, index_constant(shift));
    stmt_transpose(arena, inner, (uint32_t)con->lanes, con->x, index_add(arena, to, index_scale(arena, row, con->x_w)),
                   con->x_w, expr_load(arena, DT_F32, source, index_add(arena, from, row)), con->plain_depth);
}

/* What is left over of the depth comes in the last round, with the end of the last whole block once more. */
void tiled_transpose(Tiled *con)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    int64_t rest = con->depth % con->block_depth;
    Stmt *blocks = stmt_for(arena, lower->block, con->block, 0, con->block_count, 1, LOOP_SERIAL);
    if (con->rounds > 1) {
        blocks->low = index_scale(arena, index_var(arena, con->round), con->blocks);
        blocks->high = index_add(arena, blocks->low, index_constant(con->blocks));
        blocks->clamp_high = con->block_count % con->blocks != 0;
        blocks->high_most = index_constant(con->block_count);
    }
    transpose_block(con, &blocks->body, index_var(arena, con->block), 0);
    if (!rest)
        return;
    Block *last = lower->block;
    if (con->rounds > 1)
        last = &stmt_if(arena, last, index_var(arena, con->round), con->rounds - 1, con->rounds)->body;
    transpose_block(con, last, index_constant(con->block_count - 1), rest);
}
