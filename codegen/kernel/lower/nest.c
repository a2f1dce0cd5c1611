/* Loops over the memory of a type: adjacent ones merged where every access allows, the last one in vectors. */
#include "base/number.h"
#include "kernel/lower/nest.h"

typedef struct Merge {
    const Var *const *var;
    const Nest *nest;
    bool *merged; /* merged[d]: loop d joins loop d + 1 */
} Merge;

static void check_address(Merge *merge, Index address)
{
    for (uint32_t d = 0, next; d + 1 < merge->nest->rank; d = next) {
        for (next = d + 1; next + 1 < merge->nest->rank && merge->nest->extent[next] == 1;)
            next++; /* loops of one round join any */
        int64_t outer, inner;
        if (merge->nest->extent[d] == 1 || merge->nest->extent[next] == 1)
            continue;
        if (!index_factor(address, merge->var[d], &outer) || !index_factor(address, merge->var[next], &inner) ||
            outer != inner * merge->nest->extent[next])
            merge->merged[next - 1] = false;
    }
}

static void check_load(void *context, const Expr *load)
{
    check_address(context, load->index);
}

/* What looks at the position itself keeps the loops it looks at. */
static void check_position(Merge *merge, Index position)
{
    for (uint32_t d = 0; d < merge->nest->rank; d++)
        if (index_uses(position, merge->var[d])) {
            merge->merged[d] = false;
            if (d)
                merge->merged[d - 1] = false;
        }
}

static void check_expr(Merge *merge, const Expr *expr)
{
    expr_loads(expr, check_load, merge);
    if (expr->kind == EXPR_RANDOM)
        check_address(merge, expr->index);
    if (expr->kind == EXPR_INDEX || expr->kind == EXPR_WITHIN)
        check_position(merge, expr->index);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            check_expr(merge, expr->arg[i]);
}

static void check_block(Merge *merge, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->value)
            check_expr(merge, stmt->value);
        if (stmt->kind == STMT_STORE)
            check_address(merge, stmt->index);
        if (stmt->kind == STMT_IF)
            check_position(merge, stmt->index);
        check_block(merge, &stmt->body);
        check_block(merge, &stmt->other);
    }
}

/* Positions that memory in blocks cuts into whole vectors, as channels: a loop over the blocks, and lanes. */
static bool finish_blocks(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                          const Block *body)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    if (lanes < 2 || extent < lanes || extent % lanes)
        return false;
    const Var *block = index_var_new(arena, var->name, 0, extent / lanes - 1),
              *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Index at = index_add(arena, index_scale(arena, index_var(arena, block), lanes), index_var(arena, lane));
    Block inside = block_substitute(arena, body, var, at);
    if (!vectorizes(&inside, lane))
        return false;
    Block *around =
        extent > lanes ? &stmt_for(arena, lower->block, block, 0, extent / lanes, 1, kind)->body : lower->block;
    stmt_lanes(arena, around, lane, (uint32_t)lanes)->body = inside;
    return true;
}

/* Rows of a view, or the same elements several times, as of a tiled image: a loop over the rows, and vectors of each.
 */
static bool finish_rows(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                        const Block *body)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes, cut = lower_cut(body, var, NULL);
    if (lanes < 2 || cut <= lanes || cut >= extent || extent % cut)
        return false;
    const Var *row = index_var_new(arena, "row", 0, extent / cut - 1),
              *each = index_var_new(arena, var->name, 0, cut - 1);
    Index at = index_add(arena, index_scale(arena, index_var(arena, row), cut), index_var(arena, each));
    Block inside = block_substitute(arena, body, var, at);
    if (!vectorizes(&inside, each))
        return false;
    Block *outer = lower_enter(lower, &stmt_for(arena, lower->block, row, 0, extent / cut, 1, kind)->body);
    lower_finish_loop(lower, each, cut, kind, vectorizes, inside);
    lower_leave(lower, outer);
    return true;
}

#define MOST_ENDS 4 /* of ranges, so that text stays short */

typedef struct Ends { /* where ranges of a loop begin, but the first */
    const Var *var;
    int64_t extent, at[MOST_ENDS];
    uint32_t count;
    bool many;
} Ends;

static void add_end(Ends *ends, int64_t at)
{
    uint32_t i = ends->count;
    if (at <= 0 || at >= ends->extent)
        return;
    for (uint32_t e = 0; e < ends->count; e++)
        if (ends->at[e] == at)
            return;
    ends->many |= i == MOST_ENDS;
    if (ends->many)
        return;
    for (; i > 0 && ends->at[i - 1] > at; i--)
        ends->at[i] = ends->at[i - 1];
    ends->at[i] = at;
    ends->count++;
}

static void find_ends(Ends *ends, const Expr *expr)
{
    int64_t factor;
    if (expr->kind == EXPR_WITHIN && index_uses(expr->index, ends->var)) {
        int64_t before = -expr->index.constant;
        ends->many |= expr->index.count != 1 || !index_factor(expr->index, ends->var, &factor) || factor != 1;
        add_end(ends, before);
        add_end(ends, before + expr->limit);
    }
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            find_ends(ends, expr->arg[i]);
}

static bool has_locals(const Block *block)
{
    bool some = false;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        some |= stmt->kind == STMT_LOCAL;
    return some;
}

/* What it declares has the names of the other ranges: a last element has a loop of its own then, too. */
static void finish_range(Lower *lower, const Var *var, LoopKind kind, Vectorizes vectorizes, Block body)
{
    Block range = {0}, *outer = lower_enter(lower, &range);
    lower_finish_loop(lower, var, var->high + 1, kind, vectorizes, body);
    lower_leave(lower, outer);
    if (has_locals(&range)) {
        const Var *once = index_var_new(lower->arena, "once", 0, 0);
        stmt_for(lower->arena, lower->block, once, 0, 1, 1, LOOP_SERIAL)->body = range;
    } else
        block_append(lower->block, range);
}

/* Elements of which some are inside of what is padded: a loop before these, one over them in vectors, and one behind.
 */
static bool finish_ranges(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                          const Block *body)
{
    Arena *arena = lower->arena;
    Ends ends = {.var = var, .extent = extent};
    bool vectors = false;
    for (const Stmt *stmt = body->first; stmt; stmt = stmt->next)
        if (stmt->value)
            find_ends(&ends, stmt->value);
    if (lower->target->lanes < 2 || ends.many || !ends.count)
        return false;
    Block inside[MOST_ENDS + 1];
    const Var *each[MOST_ENDS + 1];
    for (uint32_t i = 0; i <= ends.count; i++) {
        int64_t begin = i ? ends.at[i - 1] : 0, end = i < ends.count ? ends.at[i] : extent;
        each[i] = index_var_new(arena, var->name, 0, end - begin - 1);
        Index at = index_add(arena, index_var(arena, each[i]), index_constant(begin));
        inside[i] = block_substitute(arena, body, var, at);
        vectors |= end - begin >= lower->target->lanes && vectorizes(&inside[i], each[i]);
    }
    for (uint32_t i = 0; i <= ends.count && vectors; i++)
        finish_range(lower, each[i], kind, vectorizes, inside[i]);
    return vectors;
}

void lower_finish_loop(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes, Block body)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes, done = 0;
    bool vectors = lanes > 1 && extent >= least(lanes, LEAST_LANES) && vectorizes(&body, var);

    if (!vectors &&
        (finish_rows(lower, var, extent, kind, vectorizes, &body) ||
         finish_blocks(lower, var, extent, kind, vectorizes, &body) || lower_turns(lower, var, extent, kind, &body) ||
         finish_ranges(lower, var, extent, kind, vectorizes, &body)))
        return;
    for (int64_t end; vectors && lanes; lanes = lower_rest_lanes(lower, lanes, extent - done)) {
        end = done + (extent - done) / lanes * lanes;
        if (done < end)
            lower_vector_rounds(lower, var, done, end, lanes, kind, &body);
        done = end;
    }
    if (done > 0 && done < extent) {
        const Var *rest = index_var_new(arena, var->name, done, extent - 1);
        body = block_substitute(arena, &body, var, index_var(arena, rest));
        var = rest;
    }
    if (extent - done > 1)
        stmt_for(arena, lower->block, var, done, extent, 1, kind)->body = body;
    else if (extent - done == 1)
        block_append(lower->block, body);
}

void lower_vector_loop(Lower *lower, const char *name, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                       BuildBody build, void *context)
{
    Block body = {0};
    const Var *var = index_var_new(lower->arena, name, 0, extent - 1);
    Block *outer = lower_enter(lower, &body);
    build(lower, context, index_var(lower->arena, var));
    lower_leave(lower, outer);
    lower_finish_loop(lower, var, extent, kind, vectorizes, body);
}

void lower_cover_loop(Lower *lower, const char *name, int64_t extent, LoopKind kind, Vectorizes vectorizes,
                      BuildBody build, void *context)
{
    Arena *arena = lower->arena;
    Block body = {0};
    const Var *var = index_var_new(arena, name, 0, extent - 1);
    int64_t lanes = lower->target->lanes;
    Block *outer = lower_enter(lower, &body);
    build(lower, context, index_var(arena, var));
    lower_leave(lower, outer);
    while (lanes > extent && lanes / 2 >= LEAST_LANES)
        lanes /= 2;
    if (lanes < 2 || lanes > extent || (extent % lanes == 0 && extent > lanes) || !vectorizes(&body, var)) {
        lower_finish_loop(lower, var, extent, kind, vectorizes, body);
        return;
    }
    int64_t rounds = ceil_div(extent, lanes);
    const Var *step = index_var_new(arena, name, 0, rounds - 1), *lane = index_var_new(arena, "lane", 0, lanes - 1);
    Block *block = rounds > 1 ? &stmt_for(arena, outer, step, 0, rounds, 1, LOOP_SERIAL)->body : outer;
    Index first = index_constant(0);
    if (rounds > 1) {
        lower_enter(lower, block);
        first = lower_last_inside(lower, "first", index_scale(arena, index_var(arena, step), lanes), extent - lanes);
        lower_leave(lower, outer);
    }
    stmt_lanes(arena, block, lane, (uint32_t)lanes)->body =
        block_substitute(arena, &body, var, index_add(arena, first, index_var(arena, lane)));
}

/* The body for one element, in a loop for each dimension of the nest. */
static Block map_body(Lower *lower, const Nest *nest, const Var **var, LowerElement *element, void *context)
{
    Block body = {0};
    Index loop[MAX_RANK + 1], position[MAX_RANK + 1];
    for (uint32_t d = 0; d < nest->rank; d++) {
        var[d] = index_var_new(lower->arena, lower_loop_names[d], 0, nest->extent[d] - 1);
        loop[d] = index_var(lower->arena, var[d]);
    }
    Block *outer = lower_enter(lower, &body);
    lower_nest_position(lower->arena, nest, loop, position);
    element(lower, context, position);
    lower_leave(lower, outer);
    return body;
}

/* Dimensions first ... last as one loop: each of their variables becomes a digit of its position. */
static const Var *merge_loops(Arena *arena, const Nest *nest, const Var **var, uint32_t first, uint32_t last,
                              Block *body)
{
    int64_t extent = 1;
    Index digit[MAX_RANK + 1];
    for (uint32_t d = first; d <= last; d++)
        extent *= nest->extent[d];
    if (first == last)
        return var[first];
    const Var *joint = index_var_new(arena, lower_loop_names[first], 0, extent - 1);
    index_unflatten(arena, index_var(arena, joint), nest->extent + first, last - first + 1, digit);
    for (uint32_t d = first; d <= last; d++)
        if (nest->extent[d] > 1)
            *body = block_substitute(arena, body, var[d], digit[d - first]);
    return joint;
}

#define MOST_PLANES 4

typedef struct Planes {
    const Var *plane, *pixel;
    bool some, interleaved;
} Planes;

static void check_interleaved(void *context, const Expr *load)
{
    Planes *planes = context;
    int64_t plane, pixel;
    bool affine = index_factor(load->index, planes->plane, &plane) && index_factor(load->index, planes->pixel, &pixel);
    bool side_by_side = affine && plane == 1 && pixel == planes->plane->high + 1;
    planes->some |= side_by_side;
    planes->interleaved &= side_by_side || (affine && pixel == 0); /* what all pixels of a plane have */
}

/* Few planes of elements that lie side by side, as the colours of an image whose channels are last: the elements are
 * passed over once, for all planes, rather than once for each. */
static void join_planes(Lower *lower, const Var **loop, uint32_t *loops, Block *body)
{
    if (*loops < 2 || lower->target->dialect != DIALECT_VECTOR)
        return;
    Planes planes = {loop[*loops - 2], loop[*loops - 1], false, true};
    int64_t count = planes.plane->high + 1;
    if (count < 2 || count > MOST_PLANES || planes.pixel->high + 1 < lower->target->lanes)
        return;
    for (const Stmt *stmt = body->first; stmt; stmt = stmt->next) {
        planes.interleaved &= stmt->kind == STMT_STORE;
        if (planes.interleaved)
            expr_loads(stmt->value, check_interleaved, &planes);
    }
    if (!planes.some || !planes.interleaved)
        return;
    Block all = {0};
    for (int64_t i = 0; i < count; i++)
        block_append(&all, block_substitute(lower->arena, body, planes.plane, index_constant(i)));
    *body = all;
    loop[*loops - 2] = planes.pixel;
    --*loops;
}

/* Loops over the memory of `type`; runs of dimensions that every access walks evenly become one loop. */
void lower_nest_each_by(Lower *lower, const Type *type, Vectorizes vectorizes, LowerElement *element, void *context)
{
    Nest nest = lower_nest(type);
    const Var *var[MAX_RANK + 1], *loop[MAX_RANK + 1];
    bool merged[MAX_RANK + 1] = {0};
    uint32_t loops = 0;
    Block *start = lower->block, body = map_body(lower, &nest, var, element, context);
    for (uint32_t d = 0; d + 1 < nest.rank; d++)
        merged[d] = true;
    check_block(&(Merge){var, &nest, merged}, &body);

    for (uint32_t d = 0, last; d < nest.rank; d = last + 1) {
        for (last = d; last + 1 < nest.rank && merged[last];)
            last++;
        loop[loops++] = merge_loops(lower->arena, &nest, var, d, last, &body);
    }
    if (!loops)
        loop[loops++] = index_var_new(lower->arena, lower_loop_names[0], 0, 0);
    if (lower_copy_squares(lower, loop, loops, &body)) {
        lower_leave(lower, start);
        return;
    }
    lower_join_turns(lower, loop, &loops, &body);
    join_planes(lower, loop, &loops, &body);
    for (uint32_t i = 0; i + 1 < loops; i++)
        if (loop[i]->high > 0)
            lower->block = &stmt_for(lower->arena, lower->block, loop[i], 0, loop[i]->high + 1, 1, LOOP_PARALLEL)->body;
    const Var *last = loop[loops - 1];
    lower_finish_loop(lower, last, last->high + 1, LOOP_PARALLEL, vectorizes, body);
    lower_leave(lower, start);
}

void lower_nest_each(Lower *lower, const Type *type, LowerElement *element, void *context)
{
    lower_nest_each_by(lower, type, block_vectorizes, element, context);
}
