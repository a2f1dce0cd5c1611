/* Fusion: partitions the graph into kernels.
 * Needs: a flat graph (after expand) with layouts chosen.  Keeps: every value; only Node.kernel and the order change.
 *
 * One walk in order.  Each node joins the kernel of its latest operand where the two can run in one loop nest, else it
 * opens a new one.  The invariant that keeps this linear and acyclic: a kernel depends only on kernels with smaller
 * numbers, so a node may join kernel k when every other operand comes from a kernel below k, and ordering by number is
 * a schedule.  Then maps whose results feed one kernel only move into it.
 *
 * Joins: elementwise to a map of its shape; elementwise to the result of a contraction, pooling, reduction or running
 * sum (an epilogue); pooling to its convolution where windows do not overlap from row to row; a pointwise convolution
 * to the map that makes its image, or to a depthwise one; a change of layout to the pooling or map before it;
 * elementwise and further reductions to a kernel of rows (softmax, layer norm), and both products around such rows
 * (fuse_strip.c); a cast of an integer input to the contraction, pooling or reduction that alone reads it; what is
 * cheap to compute of inputs to the contraction whose
 * image or weights it is; a slice at run-time positions to all that read it (join.h); what is computed again to the
 * first that reads it (late.h). Views and ramps belong to no kernel: their users read through them.  What leaves the
 * graph and is only a view gets a copy of its own. */
#include "passes/pass.h"

#include "ops/family.h"
#include "kernel/copies.h"
#include "kernel/fuser.h"
#include "kernel/join.h"
#include "kernel/keep.h"
#include "kernel/kernel.h"
#include "kernel/late.h"
#include "ops/meaning.h"

#define MOST_WAIT 8 /* nodes that wait for one user */

static bool is_inline(const Node *node)
{
    return node_is_view(node) || node_is_formula(node);
}

static uint32_t open_group(Fuser *fuser, KernelKind kind, const Type *type, uint32_t row_rank)
{
    Group group = {.kind = kind, .type = type, .row_rank = row_rank, .segment = fuser->segment};
    ARENA_PUSH(fuser->arena, fuser->group, fuser->group_count, fuser->group_capacity, group);
    return fuser->group_count - 1;
}

/* [rows ...] or [rows ..., 1 ...] of the space: read once a row. */
static bool is_row_valued(const Group *group, const Type *type, uint32_t full_rank)
{
    const Shape *shape = &type->shape, *space = &group->type->shape;
    if (shape->rank != full_rank)
        return false;
    for (uint32_t d = 0; d < shape->rank; d++)
        if (shape->dim[d] != (d < group->row_rank ? space->dim[d] : 1))
            return false;
    return true;
}

/* May `node`, elementwise, join? Its operands from inside must be read at the position being computed. */
static bool elementwise_joins(const Fuser *fuser, const Node *node, uint32_t kernel)
{
    const Group *group = &fuser->group[kernel];
    const Type *type = value_type(fuser->graph, node->out[0]);
    if (group->kind == KERNEL_ALONE || group->size >= MOST_NODES)
        return false;
    bool full = shape_eq(&type->shape, &group->type->shape) && type->layout.block == group->type->layout.block;
    bool row = group->kind == KERNEL_ROWS &&
               (is_row_valued(group, type, group->type->shape.rank) || is_row_valued(group, type, group->row_rank));
    if (!full && !row)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Type *in = value_type(fuser->graph, node->in[i]);
        if (fuser->latest[node->in[i]] != kernel)
            continue;
        if (!fuser_made_in(fuser, node->in[i], kernel))
            return false; /* through a view: at another position */
        bool same = shape_eq(&in->shape, &type->shape);
        bool from_row = group->kind == KERNEL_ROWS && full && is_row_valued(group, in, group->type->shape.rank);
        if (!same && !from_row)
            return false;
    }
    return true;
}

/* Reductions over trailing dimensions make a kernel of rows. */
static bool row_reduction(const Graph *graph, const Node *node, uint32_t *row_rank)
{
    const Type *type = value_type(graph, node->in[0]);
    Reduction reduction = reduction_of(graph, node);
    return shape_elements(&type->shape) > 0 && reduction_is_of_rows(&reduction, row_rank) &&
           kernel_rows_lie(type, *row_rank);
}

static uint32_t place_reduction(Fuser *fuser, const Node *node, uint32_t kernel)
{
    uint32_t row_rank;
    const Type *in = value_type(fuser->graph, node->in[0]);
    if (!row_reduction(fuser->graph, node, &row_rank))
        return open_group(fuser, KERNEL_ANCHOR, value_type(fuser->graph, node->out[0]), 0);
    if (kernel != NONE && fuser_made_in(fuser, node->in[0], kernel) && fuser->group[kernel].size < MOST_NODES) {
        Group *group = &fuser->group[kernel];
        bool same = shape_eq(&group->type->shape, &in->shape) && group->type->layout.block == in->layout.block;
        if (group->kind == KERNEL_MAP && same) {
            group->kind = KERNEL_ROWS;
            group->row_rank = row_rank;
            return kernel;
        }
        if (group->kind == KERNEL_ROWS && same && group->row_rank == row_rank)
            return kernel;
    }
    return open_group(fuser, KERNEL_ROWS, in, row_rank);
}

/* Channels that only fill up the last block: the kernel runs over them too, and may store nothing else there. */
static bool has_padding(const Type *type)
{
    return type->layout.block && type->shape.dim[1] % type->layout.block;
}

/* What a map or a window makes, and is only wanted in another layout, is stored in it. */
static bool relayout_joins(const Fuser *fuser, const Node *node, uint32_t kernel)
{
    ValueId image = node->in[0];
    const Node *producer = value_producer(fuser->graph, image);
    const Group *group = &fuser->group[kernel];
    return producer && !has_padding(value_type(fuser->graph, image)) &&
           !has_padding(value_type(fuser->graph, node->out[0])) && producer->kernel == kernel &&
           (group->kind == KERNEL_MAP || group->kind == KERNEL_ANCHOR) &&
           (!group->contraction || op_info(producer->op)->family == FAMILY_POOL) && !fuser->live_out[image] &&
           fuser->users.first[image + 1] - fuser->users.first[image] == 1;
}

/* A second reduction of what a kernel of rows also reads (layer norm: the mean and the variance of x). */
static uint32_t place(Fuser *fuser, const Node *node, uint32_t kernel)
{
    const Type *type = value_type(fuser->graph, node->out[0]);
    switch (op_info(node->op)->family) {
    case FAMILY_ELEMENTWISE:
    case FAMILY_CAST:
        if (kernel != NONE && elementwise_joins(fuser, node, kernel))
            return kernel;
        return open_group(fuser, KERNEL_MAP, type, 0);
    case FAMILY_REDUCE:
        return place_reduction(fuser, node, kernel);
    case FAMILY_POOL:
        if (fuser_joins_pooling(fuser, node, kernel)) {
            fuser->group[kernel].type = type;
            return kernel;
        }
        return open_group(fuser, KERNEL_ANCHOR, type, 0);
    case FAMILY_MATCH:
        return open_group(fuser, KERNEL_ANCHOR, type, 0);
    case FAMILY_LAYOUT:
        if (kernel != NONE && relayout_joins(fuser, node, kernel)) {
            fuser->group[kernel].kind = KERNEL_ALONE;
            return kernel;
        }
        return open_group(fuser, KERNEL_MAP, type, 0);
    case FAMILY_CONTRACT:
        if (fuser_joins_map(fuser, node, kernel) || fuser_joins_depthwise(fuser, node, kernel)) {
            fuser->group[kernel] = (Group){.kind = KERNEL_ANCHOR,
                                           .type = type,
                                           .size = fuser->group[kernel].size,
                                           .contraction = true,
                                           .operand = true,
                                           .segment = fuser->segment};
            return kernel;
        }
        kernel = open_group(fuser, KERNEL_ANCHOR, type, 0);
        fuser->group[kernel].contraction = true;
        return kernel;
    case FAMILY_CUMULATE:
        return open_group(fuser, KERNEL_ANCHOR, type, 0);
    case FAMILY_SORT:
        return open_group(fuser, KERNEL_ALONE, type, 0);
    case FAMILY_GATHER:
    case FAMILY_DYNAMIC:
        return open_group(fuser, node_is_update(node) ? KERNEL_ALONE : KERNEL_MAP, type, 0);
    case FAMILY_ASSEMBLE:
        return open_group(fuser, assembly_of(fuser->graph, node).filled ? KERNEL_MAP : KERNEL_ALONE, type, 0);
    default:
        return open_group(fuser, KERNEL_MAP, type, 0);
    }
}

/* Where a body begins or ends stands alone, and nothing joins what stands on the other side. */
static uint32_t assign_flow(Fuser *fuser)
{
    fuser->segment++;
    fuser->flow = open_group(fuser, KERNEL_ALONE, NULL, 0);
    fuser->segment++;
    return fuser->flow;
}

static uint32_t assign_node(Fuser *fuser, const Node *node, uint32_t kernel, bool apart)
{
    if (node_flow(node) || node_has_bodies(node))
        return assign_flow(fuser);
    if (is_inline(node))
        return open_group(fuser, KERNEL_ALONE, value_type(fuser->graph, node->out[0]), 0);
    bool here = kernel != NONE && fuser->group[kernel].segment == fuser->segment;
    return place(fuser, node, apart || !here ? NONE : kernel);
}

/* Which kernel would a node open that only reads memory?  Its one user may join another, so it waits for that: so the
 * new mean of gradients, mean * 0.9 + gradient * 0.1, is made where the gradient is. */
static uint32_t wait_for_user(const Fuser *fuser, uint32_t n)
{
    const Graph *graph = fuser->graph;
    const Node *node = &graph->node[n];
    ValueId out = node->out_count == 1 ? node->out[0] : NONE;
    if (out == NONE || op_info(node->op)->family != FAMILY_ELEMENTWISE || fuser->live_out[out] ||
        fuser->users.first[out + 1] - fuser->users.first[out] != 1)
        return 0;
    uint32_t user = fuser->users.user[fuser->users.first[out]], together = 1;
    const Type *type = value_type(graph, out);
    if (op_info(graph->node[user].op)->family != FAMILY_ELEMENTWISE || fuser->ends[user] != fuser->ends[n] ||
        value_type(graph, graph->node[user].out[0])->layout.block != type->layout.block ||
        !shape_eq(value_shape(graph, graph->node[user].out[0]), &type->shape))
        return 0;
    for (uint32_t i = 0; i < node->in_count; i++)
        together += fuser->waits[node->in[i]];
    return together <= MOST_WAIT ? together : 0;
}

/* Those that wait for the node join its kernel.  Recurses over as many as may wait. */
static void settle(Fuser *fuser, const Node *node, uint32_t kernel)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (!fuser->waits[node->in[i]])
            continue;
        Node *waiting = value_producer(fuser->graph, node->in[i]);
        fuser->waits[node->in[i]] = 0;
        waiting->kernel = kernel;
        fuser->group[kernel].size++;
        settle(fuser, waiting, kernel);
    }
}

static void note_node(Group *group, const Node *node)
{
    OpFamily family = op_info(node->op)->family;
    group->elementwise =
        (group->elementwise || !group->size) && (family == FAMILY_ELEMENTWISE || family == FAMILY_CAST);
    group->size++;
}

static void assign(Fuser *fuser, bool apart)
{
    Graph *graph = fuser->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        uint32_t kernel = NONE;
        node->joined = false;
        for (uint32_t i = 0; i < node->in_count; i++)
            kernel = later_kernel(kernel, fuser->latest[node->in[i]]);
        bool view = is_inline(node);
        if (!apart && late_find(fuser, n, kernel))
            continue;
        uint32_t together = kernel == NONE && !apart && !fuser->joins[n] ? wait_for_user(fuser, n) : 0;
        if (together) {
            node->kernel = NONE;
            fuser->latest[node->out[0]] = NONE;
            fuser->waits[node->out[0]] = together;
            continue;
        }
        if (!fuser->joins[n] && (!view || (fuser->copy_views && kernel != NONE))) {
            kernel = node->kernel = assign_node(fuser, node, kernel, apart);
            note_node(&fuser->group[kernel], node);
            settle(fuser, node, kernel);
        } else
            node->kernel = NONE;
        bool behind = node->kernel == NONE && late_reads(fuser, node);
        for (uint32_t r = 0; r < node->out_count; r++) {
            fuser->latest[node->out[r]] = kernel;
            fuser->behind[node->out[r]] = behind;
        }
    }
}

/* Does the reduction compute what it reduces, which nothing but elementwise nodes make? */
static bool takes_elements(const Fuser *fuser, const Node *reduction)
{
    const Graph *graph = fuser->graph;
    const Group *maker = &fuser->group[value_producer(graph, reduction->in[0])->kernel];
    const Type *type = value_type(graph, reduction->in[0]);
    return maker->elementwise && !type->layout.block && shape_eq(&maker->type->shape, &type->shape) &&
           (lower_columns_take(graph, fuser->target, reduction) || lower_runs_take(graph, fuser->target, reduction));
}

/* Does the node, an anchor, compute the operand itself: a cast of an input where it is loaded, what is reduced, an
 * image of inputs row by row, weights where tiles pack them? */
static bool takes_operand(const Fuser *fuser, const Node *node, uint32_t operand)
{
    const Graph *graph = fuser->graph;
    const Node *maker = value_producer(graph, node->in[operand]);
    bool contracts = node_is_contraction(graph, node);
    if (contracts && node->in[0] == node->in[1])
        return false;
    if (operand == 0 && fuser->group[maker->kernel].size == 1 && node_casts_input(graph, maker))
        return contracts || node_is_reduction(graph, node);
    if (operand == 0 && node_is_reduction(graph, node))
        return takes_elements(fuser, node);
    return contracts && ((operand == 0 && tiled_takes_image(graph, fuser->target, node)) ||
                         (operand == 1 && tiled_takes_weights(graph, fuser->target, node)));
}

/* The only kernel that uses the results of each map, directly and at full shape; NONE when there are others.  Users
 * come later, so one walk backwards sees all of them first. */
typedef struct Merger {
    uint32_t *only, *moved; /* per kernel: its one user, and where it went */
    bool *shared;
    bool *operand; /* per kernel: its user's anchor computes it */
} Merger;

static void note_use(Merger *merger, uint32_t maker, uint32_t user, bool direct)
{
    if (!direct || (merger->only[maker] != NONE && merger->only[maker] != user))
        merger->shared[maker] = true;
    merger->only[maker] = user;
}

/* Through a view the maker is used at other positions: it stays in memory. */
static void note_uses(const Fuser *fuser, Merger *merger, const bool *live_out)
{
    const Graph *graph = fuser->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; i < node->in_count; i++) {
            const Node *producer = value_producer(graph, node->in[i]);
            if (!producer || producer->kernel == NONE || producer->kernel == node->kernel)
                continue;
            if (node_flow(node) || node_has_bodies(node)) { /* what is passed on is in memory */
                merger->shared[producer->kernel] = true;
                continue;
            }
            bool operand = node->kernel != NONE && takes_operand(fuser, node, i);
            bool same = operand || shape_eq(value_shape(graph, node->in[i]), value_shape(graph, node->out[0])) ||
                        op_info(node->op)->family == FAMILY_REDUCE;
            merger->operand[producer->kernel] |= operand;
            note_use(merger, producer->kernel, node->kernel, node->kernel != NONE && same);
        }
        for (uint32_t r = 0; r < node->out_count; r++)
            if (live_out[node->out[r]] && node->kernel != NONE)
                merger->shared[node->kernel] = true;
    }
}

/* Moves a map into the one kernel that reads it, when that runs over the same space. */
static void merge_maps(Fuser *fuser, const bool *live_out)
{
    Merger merger = {ARENA_ARRAY(fuser->arena, uint32_t, fuser->group_count),
                     ARENA_ARRAY(fuser->arena, uint32_t, fuser->group_count),
                     ARENA_ARRAY(fuser->arena, bool, fuser->group_count),
                     ARENA_ARRAY(fuser->arena, bool, fuser->group_count)};
    for (uint32_t k = 0; k < fuser->group_count; k++) {
        merger.only[k] = NONE;
        merger.moved[k] = k;
    }
    note_uses(fuser, &merger, live_out);
    for (uint32_t k = fuser->group_count; k-- > 0;) {
        Group *map = &fuser->group[k];
        if (map->kind != KERNEL_MAP || merger.shared[k] || merger.only[k] == NONE)
            continue;
        uint32_t into = merger.moved[merger.only[k]];
        Group *user = &fuser->group[into];
        bool same_space = (user->kind == KERNEL_MAP || user->kind == KERNEL_ROWS) &&
                          shape_eq(&user->type->shape, &map->type->shape) &&
                          user->type->layout.block == map->type->layout.block;
        if (user->segment == map->segment && (same_space || merger.operand[k]) &&
            user->size + map->size <= MOST_NODES) {
            merger.moved[k] = into;
            user->size += map->size;
            user->operand |= merger.operand[k];
        }
    }
    for (uint32_t n = 0; n < fuser->graph->node_count; n++)
        if (fuser->graph->node[n].kernel != NONE)
            fuser->graph->node[n].kernel = merger.moved[fuser->graph->node[n].kernel];
}

static void forget_latest(Fuser *fuser)
{
    fuser->latest = ARENA_ARRAY(fuser->arena, uint32_t, fuser->graph->value_count);
    for (uint32_t v = 0; v < fuser->graph->value_count; v++)
        fuser->latest[v] = NONE;
}

/* Orders nodes by kernel, views after what they look at, and numbers the kernels without gaps. */
static void order(Fuser *fuser)
{
    Graph *graph = fuser->graph;
    uint32_t count = graph->node_count, *key = ARENA_ARRAY(fuser->arena, uint32_t, count);
    uint32_t *first = ARENA_ARRAY(fuser->arena, uint32_t, fuser->group_count + 2);
    Node *sorted = ARENA_ARRAY(fuser->arena, Node, count);

    for (uint32_t n = 0; n < count; n++) { /* key 0: depends on no kernel */
        const Node *node = &graph->node[n];
        uint32_t last = node->kernel;
        for (uint32_t i = 0; node->kernel == NONE && i < node->in_count; i++)
            last = later_kernel(last, fuser->latest[node->in[i]]);
        for (uint32_t r = 0; r < node->out_count; r++)
            fuser->latest[node->out[r]] = last;
        key[n] = last == NONE ? 0 : last + 1;
        first[key[n] + 1 <= fuser->group_count ? key[n] + 1 : fuser->group_count + 1]++;
    }
    for (uint32_t k = 0; k <= fuser->group_count; k++)
        first[k + 1] += first[k];
    for (uint32_t n = 0; n < count; n++)
        sorted[first[key[n]]++] = graph->node[n];

    uint32_t kernels = 0, previous = NONE;
    for (uint32_t n = 0; n < count; n++) {
        graph->node[n] = sorted[n];
        for (uint32_t r = 0; r < sorted[n].out_count; r++)
            graph->value[sorted[n].out[r]].node = n;
        if (sorted[n].kernel == NONE)
            continue;
        if (sorted[n].kernel != previous)
            kernels++;
        previous = sorted[n].kernel;
        graph->node[n].kernel = kernels - 1;
    }
}

bool stage_fuse(Graph *graph, PassContext *context)
{
    kernel_add_copies(graph, context->target, context->in_body, context->scratch);
    Fuser fuser = {
        .graph = graph, .arena = context->scratch, .target = context->target, .copy_views = context->copy_views};
    fuser.users = graph_users(graph, fuser.arena);
    fuser.live_out = graph_live_out(graph, fuser.arena);
    bool joining = !context->apart && !context->copy_views;
    fuser.joins = joining ? join_find(graph, fuser.arena) : ARENA_ARRAY(fuser.arena, bool, graph->node_count);
    fuser.waits = ARENA_ARRAY(fuser.arena, uint32_t, graph->value_count);
    fuser.late = ARENA_ARRAY(fuser.arena, bool, graph->value_count);
    fuser.behind = ARENA_ARRAY(fuser.arena, bool, graph->value_count);
    fuser.flow = NONE;
    fuser.ends = ARENA_ARRAY(fuser.arena, uint32_t, graph->node_count + 1);
    for (uint32_t n = 0; n < graph->node_count; n++)
        fuser.ends[n + 1] = fuser.ends[n] + (node_flow(&graph->node[n]) ? 1 : 0);
    forget_latest(&fuser);
    assign(&fuser, context->apart);
    if (!context->apart)
        merge_maps(&fuser, fuser.live_out);
    late_place(&fuser);
    const KeepContext keep = {.users = fuser.users,
                              .live_out = fuser.live_out,
                              .ends = fuser.ends,
                              .target = context->target,
                              .expensive = context->target && context->target->dialect != DIALECT_C99};
    const bool *again =
        joining ? keep_find(graph, fuser.arena, &keep) : ARENA_ARRAY(fuser.arena, bool, graph->value_count);
    join_kernels(graph, fuser.arena, fuser.joins, again);
    if (joining) {
        keep_drop(graph, fuser.arena);
        strip_join(graph, fuser.arena, context->target);
    }
    forget_latest(&fuser);
    order(&fuser);
    recipe_release_marks(graph, fuser.arena);
    return true;
}
