/* Copies whose neighbours in the result are far apart in the operand, and the other way round, as those of a transpose
 * and of an image that comes into blocks of channels or leaves them: squares of lanes x lanes, turned in registers, so
 * that whole lines are read and written.  What fills no square goes element by element. */
#include "kernel/lower/lower.h"

typedef struct Copy {
    Lower *lower;
    const Block *body; /* one store of a load */
    const Stmt *store;
    const Var *along, *across;                  /* neighbours of the result; of the operand */
    int64_t lanes, along_extent, across_extent; /* of a square; of these loops */
    int64_t from_step, to_step;                 /* of the operand, along; of the result, across */
    const Var *whole;                           /* which square across */
    Index from, to;                             /* of a square's first element, of along and whole */
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
    copy->whole = whole;
    copy->from = index_substitute(arena, from, lane, index_constant(0));
    copy->to = index_substitute(arena, to, lane, index_constant(0));
    return true;
}

static Block *add_loop(const Copy *copy, Block *block, const Var *var, int64_t low, int64_t high)
{
    return high - low > 1 ? &stmt_for(copy->lower->arena, block, var, low, high, 1, LOOP_PARALLEL)->body : block;
}

static void squares(const Copy *copy, Block *block)
{
    Arena *arena = copy->lower->arena;
    int64_t along = copy->along_extent / copy->lanes;
    const Var *part = index_var_new(arena, copy->along->name, 0, along - 1);
    Index at = index_scale(arena, index_var(arena, part), copy->lanes);
    block = add_loop(copy, block, copy->whole, 0, copy->whole->high + 1);
    block = add_loop(copy, block, part, 0, along);
    stmt_transpose(
        arena, block, (uint32_t)copy->lanes, copy->store->buffer, index_substitute(arena, copy->to, copy->along, at),
        copy->to_step,
        expr_load(arena, DT_F32, copy->store->value->buffer, index_substitute(arena, copy->from, copy->along, at)),
        copy->from_step);
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
    squares(&copy, block);
    rest(&copy, block, 0, across, along);
    rest(&copy, block, across, copy.across_extent, 0);
    return true;
}
