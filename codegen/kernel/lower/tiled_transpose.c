/* A first operand that is transposed, as in the gradient of a weight, x^T * d: each step of its depth lies in a line of
 * its own, of which a tile takes a few elements.  So what a round takes of it is brought into scratch the other way
 * round, [row][depth of the round], once for many panels to pass over; between rounds, scratch holds their sums. */
#include "kernel/lower/tiled.h"

#define ROUND_DEPTH 256       /* a panel's share stays in the first level, that of all rows in the second, about */
#define ROOM        16        /* elements between rows, so that they do not meet in one set of the first level */
#define MOST_SUMS   (1 << 20) /* bytes of sums that wait between rounds */
#define FEW_TILES   8
#define FEW_PANELS  8 /* that pay for bringing the operand over */

static bool could_transpose(const Tiled *con)
{
    const Lower *lower = con->lower;
    return con->is_product && !con->by_pixels && !con->packed && lower->target->dialect == DIALECT_VECTOR &&
           con->x_w == 1 && con->x_depth > 1 && con->out_h == 1 && con->out_w % con->lanes == 0 &&
           con->depth % con->lanes == 0 && con->columns % con->lanes == 0 && con->block_depth == con->lanes &&
           con->x_value == con->node->in[0] && value_type(lower->graph, con->x_value)->dtype == DT_F32 &&
           con->asked.chunk <= 0;
}

static bool worth_it(const Tiled *con)
{
    int64_t panels = con->columns / (con->vectors * con->lanes);
    return con->depth >= ROUND_DEPTH && ceil_div(con->out_w, con->pixels) >= FEW_TILES && panels >= 2 * FEW_PANELS;
}

static void choose_rounds(Tiled *con)
{
    int64_t asked = con->asked.rounds;
    con->rounds = asked > 0 ? asked : ceil_div(con->depth, ROUND_DEPTH);
    con->blocks = ceil_div(con->block_count, con->rounds);
    con->rounds = ceil_div(con->block_count, con->blocks);
    con->round = index_var_new(con->lower->arena, "round", 0, con->rounds - 1);
}

/* Two parts at least, each of a thread. */
void tiled_choose_together(Tiled *con)
{
    int64_t width = con->vectors * con->lanes, panels = ceil_div(con->columns, width);
    int64_t most_panels = most(FEW_PANELS, MOST_SUMS / (4 * con->out_w * width));
    con->together = most(1, least(most_panels, ceil_div(panels, 2)));
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

void tiled_transpose(Tiled *con)
{
    Lower *lower = con->lower;
    Arena *arena = lower->arena;
    uint32_t source = lower_buffer(lower, con->x_source, false);
    const Var *square = index_var_new(arena, "square", 0, con->out_w / con->lanes - 1);
    Stmt *blocks = stmt_for(arena, lower->block, con->block, 0, con->block_count, 1, LOOP_SERIAL);
    if (con->rounds > 1) {
        blocks->low = index_scale(arena, index_var(arena, con->round), con->blocks);
        blocks->high = index_add(arena, blocks->low, index_constant(con->blocks));
        blocks->clamp_high = con->block_count % con->blocks != 0;
        blocks->high_most = index_constant(con->block_count);
    }
    Block *inner = &stmt_for(arena, &blocks->body, square, 0, square->high + 1, 1, LOOP_SERIAL)->body;
    Index row = index_scale(arena, index_var(arena, square), con->lanes);
    Index from = index_add(arena, con->plain_base, index_constant(-lower->kernel->buffer[source].begin));
    stmt_transpose(arena, inner, (uint32_t)con->lanes, con->x,
                   index_add(arena, con->x_base, index_scale(arena, row, con->x_w)), con->x_w,
                   expr_load(arena, DT_F32, source, index_add(arena, from, row)), con->plain_depth);
}
