/* Maps: loops over the result's memory, adjacent ones merged where every access allows.  And assemblies: one map for
 * each operand that does not lie in its part of the result already. */
#include "kernel/kernel.h"
#include "ops/meaning.h"

#include <string.h>

static ValueId root_of(const Lower *lower)
{
    for (uint32_t n = lower->kernel->node_count; n-- > 0;) {
        const Node *node = &lower->graph->node[lower->kernel->node[n]];
        for (uint32_t r = 0; r < node->out_count; r++)
            if (kernel_stores(lower, node->out[r]))
                return node->out[r];
    }
    return lower->graph->node[lower->kernel->node[lower->kernel->node_count - 1]].out[0];
}

/* Which of the loops may merge with the next one? Those whose accesses all advance evenly over both. */

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

bool block_vectorizes(const Block *body, const Var *var)
{
    for (const Stmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (stmt->value && !expr_vectorizes(stmt->value, var))
            return false;
        if (stmt->kind == STMT_STORE && !stmt_vectorizes(stmt, var, false))
            return false;
        if (stmt->kind != STMT_STORE && stmt->kind != STMT_LOCAL)
            return false;
    }
    return true;
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

void lower_finish_loop(Lower *lower, const Var *var, int64_t extent, LoopKind kind, Vectorizes vectorizes, Block body)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    int64_t whole = lanes > 1 && extent >= lanes && vectorizes(&body, var) ? extent / lanes * lanes : 0;

    if (!whole && finish_blocks(lower, var, extent, kind, vectorizes, &body))
        return;
    if (whole) {
        const Var *step = index_var_new(arena, var->name, 0, whole - lanes),
                  *lane = index_var_new(arena, "lane", 0, lanes - 1);
        Block *around =
            whole > lanes ? &stmt_for(arena, lower->block, step, 0, whole, lanes, kind)->body : lower->block;
        Index at = index_add(arena, index_var(arena, step), index_var(arena, lane));
        stmt_lanes(arena, around, lane, (uint32_t)lanes)->body = block_substitute(arena, &body, var, at);
    }
    if (whole && whole < extent) {
        const Var *rest = index_var_new(arena, var->name, whole, extent - 1);
        body = block_substitute(arena, &body, var, index_var(arena, rest));
        var = rest;
    }
    if (extent - whole > 1)
        stmt_for(arena, lower->block, var, whole, extent, 1, kind)->body = body;
    else if (extent - whole == 1)
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

/* Maps */

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

static void store_element(Lower *lower, void *context, const Index *position)
{
    (void)context;
    lower_stores(lower, position);
}

/* The position is one of an operand of an assembly; what it is another shape or order of the axes of is stored. */
static void store_rearranged(Lower *lower, void *context, const Index *position)
{
    const Graph *graph = lower->graph;
    ValueId operand = *(const ValueId *)context, value = lower_rearranged_value(graph, operand);
    Index from[MAX_RANK], to[MAX_RANK];
    memcpy(to, position, value_shape(graph, operand)->rank * sizeof *to);
    for (; operand != value; operand = value_producer(graph, operand)->in[0]) {
        kernel_view_position(lower->arena, graph, value_producer(graph, operand), 0, to, from);
        memcpy(to, from, sizeof to);
    }
    lower_stores(lower, to);
}

static void store_result(Lower *lower, void *context, const Index *position)
{
    ValueId value = *(const ValueId *)context;
    const Expr *element = lower_value(lower, value, position);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, value, true),
               lower_value_address(lower, value, position), element);
}

/* The results of a split that copies have different shapes. */
static void map_each(Lower *lower, const Node *node)
{
    for (uint32_t r = 0; r < node->out_count; r++) {
        const Type *type = value_type(lower->graph, node->out[r]);
        if (kernel_stores(lower, node->out[r]) && shape_elements(&type->shape) > 0)
            lower_nest_each(lower, type, store_result, &node->out[r]);
    }
}

/* Loops follow the result's memory: that of the operand it lies in another one as. */
static void map_lower(Lower *lower)
{
    const Node *first = &lower->graph->node[lower->kernel->node[0]];
    if (first->out_count > 1) {
        map_each(lower, first);
        return;
    }
    ValueId root = root_of(lower);
    const Storage *storage = &lower->storage->at[root];
    ValueId operand =
        storage->inside == NONE ? root : value_producer(lower->graph, storage->inside)->in[storage->operand];
    if (operand == root)
        lower_nest_each(lower, value_type(lower->graph, root), store_element, NULL);
    else
        lower_nest_each(lower, value_type(lower->graph, operand), store_rearranged, &operand);
}

/* Assembly: what does not lie in its part of the result already is copied, or computed, into it. */

typedef struct Part { /* of a result, from `begin` on; filled with the operand, or with a number */
    ValueId operand, result;
    double number; /* where operand is NONE */
    int64_t begin[MAX_RANK];
} Part;

static void part_element(Lower *lower, void *context, const Index *position)
{
    const Part *part = context;
    const Type *type = value_type(lower->graph, part->result);
    Index to[MAX_RANK];
    for (uint32_t d = 0; d < type->shape.rank; d++)
        to[d] = index_add(lower->arena, position[d], index_constant(part->begin[d]));
    const Expr *value = part->operand == NONE ? expr_number(lower->arena, type->dtype, part->number)
                                              : lower_value(lower, part->operand, position);
    stmt_store(lower->arena, lower->block, lower_buffer(lower, part->result, true),
               lower_value_address(lower, part->result, to), value);
}

/* Has its kernel written the operand in place? */
static bool is_placed(const Lower *lower, const Node *node, uint32_t operand)
{
    const Storage *storage = &lower->storage->at[lower_rearranged_value(lower->graph, node->in[operand])];
    return storage->inside == node->out[0] && storage->operand == operand;
}

static void lower_concat(Lower *lower, const Node *node)
{
    const Type *result = value_type(lower->graph, node->out[0]);
    uint32_t axis = assembly_of(lower->graph, node).axis;
    Part copy = {.result = node->out[0]};
    for (uint32_t i = 0; i < node->in_count; i++) {
        Type part = *value_type(lower->graph, node->in[i]);
        copy.operand = node->in[i];
        if (result->layout.block && part.shape.dim[1] % result->layout.block == 0)
            part.layout = result->layout;
        if (!is_placed(lower, node, i) && shape_elements(&part.shape) > 0)
            lower_nest_each(lower, &part, part_element, &copy);
        copy.begin[axis] += part.shape.dim[axis];
    }
}

/* The border is made of slabs: before and after along each axis, over the operand's extent of those before and the
 * whole extent of those after. */
static void lower_border(Lower *lower, const Node *node)
{
    const Type *result = value_type(lower->graph, node->out[0]);
    const Shape *inside = value_shape(lower->graph, node->in[0]);
    Part slab = {.operand = NONE, .result = node->out[0], .number = assembly_of(lower->graph, node).fill};
    Type type = *result;
    int64_t before[MAX_RANK];
    assembly_begin(lower->graph, node, 0, before);
    for (uint32_t d = 0; d < inside->rank; d++) {
        int64_t after = result->shape.dim[d] - inside->dim[d] - before[d];
        for (int end = 0; end < 2; end++) {
            type.shape.dim[d] = end ? after : before[d];
            slab.begin[d] = end ? before[d] + inside->dim[d] : 0;
            if (shape_elements(&type.shape) > 0)
                lower_nest_each(lower, &type, part_element, &slab);
        }
        type.shape.dim[d] = inside->dim[d];
        slab.begin[d] = before[d];
    }
}

static void assembly_lower(Lower *lower)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    bool parts = node_is_assembly(node), filled = parts && assembly_of(lower->graph, node).filled;
    if (parts && !filled)
        lower_concat(lower, node);
    else if (!is_placed(lower, node, 0))
        map_lower(lower);
    else if (filled)
        lower_border(lower, node);
}

static bool offers(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    (void)lower, (void)kernel, (void)recipe;
    return true;
}

static double cost(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    (void)recipe;
    return (double)shape_elements(value_shape(lower->graph, lower->graph->node[kernel->node[0]].out[0]));
}

static const KnobSpec no_knobs[] = {{NULL, false, NULL}};

const Provider provider_map = {
    .name = "map",
    .doc = "loops over the result, each element at its own position",
    .knob = no_knobs,
    .forms = 1u << FORM_MAP,
    .offers = offers,
    .cost = cost,
    .lower = map_lower,
};
const Provider provider_assembly = {
    .name = "assembly",
    .doc = "a map for each part that is not in its place already",
    .knob = no_knobs,
    .forms = 1u << FORM_ASSEMBLY,
    .offers = offers,
    .cost = cost,
    .lower = assembly_lower,
};
