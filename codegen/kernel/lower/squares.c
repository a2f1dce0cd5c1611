/* Copies whose neighbours in the result are far apart in the operand, and the other way round, as those of a transpose
 * and of an image that comes into blocks of channels or leaves them: squares of lanes x lanes, turned in registers, so
 * that whole lines are read and written.  The last square of a row begins inside the one before it; where addresses do
 * not let it, what fills no square goes element by element. */
#include "base/number.h"
#include "kernel/lower/lower.h"

typedef struct Copy {
    Lower *lower;
    const Block *body; /* one store of a load */
    const Stmt *store;
    const Var *along, *across;                  /* neighbours of the result; of the operand */
    int64_t lanes, along_extent, across_extent; /* of a square; of these loops */
    int64_t from_step, to_step;                 /* of the operand, along; of the result, across */
    bool overlaps[2];                           /* across, along: the last square may begin anywhere */
} Copy;

static bool has_whole_memory(const Lower *lower, uint32_t buffer)
{
    const Storage *storage = &lower->storage->at[lower->kernel->buffer[buffer].storage];
    return storage->inside == NONE && !storage->has_parts && storage->dtype == DT_F32;
}

static bool is_copy(const Lower *lower, const Block *body)
{
    const Stmt *stmt = body->first;
    return stmt && !stmt->next && stmt->kind == STMT_STORE && stmt->value->kind == EXPR_LOAD &&
           stmt->value->dtype == DT_F32 && has_whole_memory(lower, stmt->buffer) &&
           has_whole_memory(lower, stmt->value->buffer);
}

/* Are addresses even along the whole of it? */
static bool is_even(const Copy *copy, const Var *var)
{
    int64_t step;
    return index_factor(copy->store->value->index, var, &step) && index_factor(copy->store->index, var, &step);
}

/* Are the operand's neighbours across, as far as a square goes? */
static bool goes_across(Copy *copy, const Var *across)
{
    Arena *arena = copy->lower->arena;
    int64_t extent = across->high + 1, squares = extent / copy->lanes, step;
    if (across == copy->along || squares < 1)
        return false;
    const Var *whole = index_var_new(arena, across->name, 0, squares - 1),
              *lane = index_var_new(arena, "lane", 0, copy->lanes - 1);
    Index at = index_add(arena, index_scale(arena, index_var(arena, whole), copy->lanes), index_var(arena, lane));
    Index from = index_substitute(arena, copy->store->value->index, across, at);
    Index to = index_substitute(arena, copy->store->index, across, at);
    if (!index_factor(from, lane, &step) || step != 1 || !index_factor(to, lane, &copy->to_step) ||
        !index_factor(from, copy->along, &copy->from_step) || !index_factor(to, copy->along, &step) || step != 1 ||
        copy->from_step < copy->lanes || copy->to_step < copy->lanes)
        return false;
    copy->across = across;
    copy->across_extent = extent;
    return true;
}

static Block *add_loop(const Copy *copy, Block *block, const Var *var, int64_t low, int64_t high)
{
    return high - low > 1 ? &stmt_for(copy->lower->arena, block, var, low, high, 1, LOOP_PARALLEL)->body : block;
}

/* A loop over the first elements of squares along one of the copy's loops. */
static Index each_square(const Copy *copy, const Var *var, bool overlaps)
{
    Lower *lower = copy->lower;
    Arena *arena = lower->arena;
    int64_t extent = var->high + 1, whole = extent / copy->lanes,
            count = overlaps ? ceil_div(extent, copy->lanes) : whole;
    const Var *part = index_var_new(arena, var->name, 0, count - 1);
    bool even = count == whole;
    lower->block = count > 1
                       ? &stmt_for(arena, lower->block, part, 0, count, 1, even ? LOOP_PARALLEL : LOOP_SERIAL)->body
                       : lower->block;
    Index first = count > 1 ? index_scale(arena, index_var(arena, part), copy->lanes) : index_constant(0);
    return lower_last_inside(lower, "first", first, extent - copy->lanes);
}

/* The squares of a row, or of several, from there on across */
static void square_row(const Copy *copy, Index across)
{
    Lower *lower = copy->lower;
    Arena *arena = lower->arena;
    Block *outer = lower->block;
    Index along = each_square(copy, copy->along, copy->overlaps[1]);
    Index from = index_substitute(arena, copy->store->value->index, copy->across, across);
    Index to = index_substitute(arena, copy->store->index, copy->across, across);
    stmt_transpose(
        arena, lower->block, (uint32_t)copy->lanes, copy->store->buffer,
        index_substitute(arena, to, copy->along, along), copy->to_step,
        expr_load(arena, DT_F32, copy->store->value->buffer, index_substitute(arena, from, copy->along, along)),
        copy->from_step);
    lower_leave(lower, outer);
}

/* Threads share out rows of squares that do not overlap. */
static void squares(const Copy *copy, Block *block)
{
    Lower *lower = copy->lower;
    Block *outer = lower_enter(lower, block);
    bool apart = copy->overlaps[0] && lower->kernel->threads > 1 && copy->across_extent % copy->lanes;
    square_row(copy, each_square(copy, copy->across, copy->overlaps[0] && !apart));
    lower_enter(lower, block);
    if (apart)
        square_row(copy, index_constant(copy->across_extent - copy->lanes));
    lower_leave(lower, outer);
}

/* Elements [across_low, across_high) by [along_low, ...). */
static void rest(const Copy *copy, Block *block, int64_t across_low, int64_t across_high, int64_t along_low)
{
    Arena *arena = copy->lower->arena;
    if (across_low == across_high || along_low == copy->along_extent)
        return;
    const Var *across = index_var_new(arena, copy->across->name, across_low, across_high - 1),
              *along = index_var_new(arena, copy->along->name, along_low, copy->along_extent - 1);
    Block body = block_substitute(arena, copy->body, copy->across, index_var(arena, across));
    body = block_substitute(arena, &body, copy->along, index_var(arena, along));
    block = add_loop(copy, block, across, across_low, across_high);
    block = add_loop(copy, block, along, along_low, copy->along_extent);
    block_append(block, body);
}

bool lower_copy_squares(Lower *lower, const Var *const *loop, uint32_t loops, const Block *body)
{
    Copy copy = {.lower = lower, .body = body, .store = body->first, .lanes = lower->target->lanes};
    bool found = false;
    if (lower->target->dialect != DIALECT_VECTOR || lower->target->small || copy.lanes < 4 || loops < 2 ||
        !is_copy(lower, body))
        return false;
    copy.along = loop[loops - 1];
    copy.along_extent = copy.along->high + 1;
    for (uint32_t i = loops - 1; i-- > 0 && !found;)
        found = copy.along_extent >= copy.lanes && goes_across(&copy, loop[i]);
    if (!found)
        return false;

    Block *block = lower->block;
    for (uint32_t i = 0; i + 1 < loops; i++)
        if (loop[i] != copy.across)
            block = add_loop(&copy, block, loop[i], 0, loop[i]->high + 1);
    int64_t across = copy.across_extent / copy.lanes * copy.lanes, along = copy.along_extent / copy.lanes * copy.lanes;
    copy.overlaps[0] = is_even(&copy, copy.across);
    copy.overlaps[1] = is_even(&copy, copy.along);
    if (copy.overlaps[0])
        across = copy.across_extent;
    if (copy.overlaps[1])
        along = copy.along_extent;
    squares(&copy, block);
    rest(&copy, block, 0, across, along);
    rest(&copy, block, across, copy.across_extent, 0);
    return true;
}
