#include "kernel/late.h"

#include <stdlib.h>

#include "kernel/keep.h"
#include "ops/meaning.h"

bool late_reads(const Fuser *fuser, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (fuser->late[node->in[i]] || fuser->behind[node->in[i]])
            return true;
    return false;
}

/* What others wait for runs when it can. */
static bool is_awaited(const Fuser *fuser, ValueId value)
{
    const Graph *graph = fuser->graph;
    for (uint32_t i = fuser->users.first[value]; i < fuser->users.first[value + 1]; i++)
        if (view_only_waits(&graph->node[fuser->users.user[i]]))
            return true;
    return false;
}

/* So do nodes that wait for it (fuse.c), which have no other user: it has no kernel yet that they could join.  Recurses
 * over as many as may wait. */
static void become_late(Fuser *fuser, Node *node, uint32_t latest)
{
    node->kernel = NONE;
    fuser->late[node->out[0]] = true;
    fuser->latest[node->out[0]] = latest;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (fuser->waits[node->in[i]]) {
            fuser->waits[node->in[i]] = 0;
            become_late(fuser, value_producer(fuser->graph, node->in[i]), latest);
        }
}

bool late_find(Fuser *fuser, uint32_t n, uint32_t kernel)
{
    const Graph *graph = fuser->graph;
    Node *node = graph->node + n;
    bool waits = false;
    if (op_info(node->op)->family != FAMILY_ELEMENTWISE || node->mark || fuser->live_out[node->out[0]] ||
        fuser->copy_views || is_awaited(fuser, node->out[0]))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Node *maker = value_producer(graph, node->in[i]);
        bool late = maker && (view_only_waits(maker) || fuser->late[node->in[i]]);
        waits |= late;
        if (fuser->behind[node->in[i]])
            return false;
        if (!late && kernel != NONE && fuser->latest[node->in[i]] == kernel)
            return false;
    }
    if (waits)
        become_late(fuser, node, later_kernel(kernel, fuser->flow));
    return waits;
}

/* Placing */

typedef struct Use { /* of a value */
    uint32_t first;  /* the first kernel that reads it, through views; NONE */
    bool direct;     /* elementwise at its own position, all that do so there */
} Use;

typedef struct Chain { /* late nodes of one shape that read each other, and wait for the same kernel */
    const Type *type;
    Use use; /* by others */
    uint32_t size, ends, kernel;
    uint32_t base; /* 1 + the kernel they wait for; 0: none */
} Chain;

typedef struct Own { /* a kernel of late nodes, right behind another */
    uint32_t behind;
    uint32_t group;
} Own;

typedef struct Placer {
    Fuser *fuser;
    uint32_t *chain; /* per node: its chain; NONE where it is not late */
    Chain *at;
    uint32_t chains, chain_capacity;
    Use *view; /* per value that a view makes, or what joins its readers */
    Own *own;
    uint32_t count, capacity;
} Placer;

static bool same_space(const Type *a, const Type *b)
{
    return shape_eq(&a->shape, &b->shape) && a->layout.block == b->layout.block;
}

/* Chains */

static void rename_chain(Placer *p, uint32_t n, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < n; i++)
        if (p->chain[i] == from)
            p->chain[i] = to;
    p->at[to].size += p->at[from].size;
    p->at[from].size = 0;
}

static void find_chains(Placer *p)
{
    const Fuser *fuser = p->fuser;
    const Graph *graph = fuser->graph;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        p->chain[n] = NONE;
        if (!node->out_count || !fuser->late[node->out[0]])
            continue;
        const Type *type = value_type(graph, node->out[0]);
        uint32_t base = fuser->latest[node->out[0]] + 1;
        for (uint32_t i = 0; i < node->in_count; i++) {
            uint32_t maker = graph->value[node->in[i]].node;
            uint32_t of = fuser->late[node->in[i]] ? p->chain[maker] : NONE;
            if (of == NONE || p->at[of].ends != fuser->ends[n] || p->at[of].base != base ||
                !same_space(p->at[of].type, type))
                continue;
            if (p->chain[n] == NONE)
                p->chain[n] = of;
            else if (p->chain[n] != of)
                rename_chain(p, n, of, p->chain[n]);
        }
        if (p->chain[n] == NONE) {
            Chain chain = {.type = type, .use = {.first = NONE}, .ends = fuser->ends[n], .kernel = NONE, .base = base};
            p->chain[n] = p->chains;
            ARENA_PUSH(fuser->arena, p->at, p->chains, p->chain_capacity, chain);
        }
        p->at[p->chain[n]].size++;
    }
}

/* Uses */

static void note_use(Use *use, uint32_t kernel, bool direct)
{
    if (kernel == NONE || (use->first != NONE && use->first < kernel))
        return;
    use->direct = direct && (use->first != kernel || use->direct);
    use->first = kernel;
}

static Use *use_of(Placer *p, ValueId value)
{
    const Fuser *fuser = p->fuser;
    return fuser->late[value] ? &p->at[p->chain[fuser->graph->value[value].node]].use : &p->view[value];
}

/* The kernel of a late node that stands alone, where it comes before others that read its operands. */
static uint32_t first_place(const Fuser *fuser, ValueId late)
{
    return fuser->latest[late] == NONE ? 0 : fuser->latest[late];
}

/* By nodes that are not late, and by views of what those read. */
static void note_others(Placer *p)
{
    const Fuser *fuser = p->fuser;
    const Graph *graph = fuser->graph;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        Use use = {node->kernel, op_info(node->op)->family == FAMILY_ELEMENTWISE};
        if (p->chain[n] != NONE)
            continue;
        for (uint32_t r = 0; node->kernel == NONE && r < node->out_count; r++)
            note_use(&use, p->view[node->out[r]].first, false);
        for (uint32_t i = 0; i < node->in_count; i++)
            note_use(use_of(p, node->in[i]), use.first,
                     use.direct && node->kernel != NONE &&
                         same_space(value_type(graph, node->in[i]), value_type(graph, node->out[0])));
    }
}

/* By larger chains, where those are. */
static void note_chain(Placer *p, uint32_t c)
{
    const Fuser *fuser = p->fuser;
    const Graph *graph = fuser->graph;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; p->chain[n] == c && i < graph->node[n].in_count; i++) {
            ValueId in = graph->node[n].in[i];
            uint32_t kernel = p->at[c].kernel == NONE ? first_place(fuser, graph->node[n].out[0]) : p->at[c].kernel;
            if (fuser->late[in] && p->chain[graph->value[in].node] != c)
                note_use(use_of(p, in), kernel, false);
        }
}

static void join_user(Placer *p, Chain *chain)
{
    const Use *use = &chain->use;
    Group *group = use->first == NONE ? NULL : &p->fuser->group[use->first];
    if (!group || !use->direct || group->kind == KERNEL_ALONE || group->operand || group->segment != 2 * chain->ends ||
        group->size + chain->size > MOST_NODES || !same_space(group->type, chain->type))
        return;
    chain->kernel = use->first;
    group->size += chain->size;
}

typedef struct Rank {
    uint32_t chain, rank, base;
    int64_t elements;
} Rank;

static int by_space(const void *a, const void *b)
{
    const Rank *x = a, *y = b;
    if (x->elements != y->elements)
        return x->elements < y->elements ? 1 : -1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? 1 : -1;
    if (x->base != y->base)
        return x->base < y->base ? 1 : -1;
    return (x->chain > y->chain) - (x->chain < y->chain);
}

/* What others read at more positions is smaller, what they read later waits for less: users are placed first. */
static void join_users(Placer *p)
{
    Rank *order = ARENA_ARRAY(p->fuser->arena, Rank, p->chains);
    for (uint32_t c = 0; c < p->chains; c++)
        order[c] = (Rank){c, p->at[c].type->shape.rank, p->at[c].base, shape_elements(&p->at[c].type->shape)};
    if (p->chains)
        qsort(order, p->chains, sizeof *order, by_space);
    for (uint32_t i = 0; i < p->chains; i++) {
        join_user(p, &p->at[order[i].chain]);
        note_chain(p, order[i].chain);
    }
    for (uint32_t n = 0; n < p->fuser->graph->node_count; n++)
        if (p->chain[n] != NONE)
            p->fuser->graph->node[n].kernel = p->at[p->chain[n]].kernel;
}

/* The others get kernels of their own */

/* Does the node join the last kernel of late nodes? */
static bool goes_on(const Placer *p, const Node *node, uint32_t n)
{
    const Fuser *fuser = p->fuser;
    if (!p->count || p->own[p->count - 1].behind != fuser->latest[node->out[0]])
        return false;
    const Group *group = &fuser->group[p->own[p->count - 1].group];
    if (group->size >= MOST_NODES || group->segment != 2 * fuser->ends[n] ||
        !same_space(group->type, value_type(fuser->graph, node->out[0])))
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Node *maker = value_producer(fuser->graph, node->in[i]);
        bool inside = maker && maker->kernel == p->own[p->count - 1].group;
        if (inside && !same_space(value_type(fuser->graph, node->in[i]), group->type))
            return false;
    }
    return true;
}

static void open_own(Placer *p)
{
    Fuser *fuser = p->fuser;
    for (uint32_t n = 0; n < fuser->graph->node_count; n++) {
        Node *node = &fuser->graph->node[n];
        if (p->chain[n] == NONE || node->kernel != NONE)
            continue;
        if (!goes_on(p, node, n)) {
            Group group = {
                .kind = KERNEL_MAP, .type = value_type(fuser->graph, node->out[0]), .segment = 2 * fuser->ends[n]};
            Own own = {fuser->latest[node->out[0]], fuser->group_count};
            ARENA_PUSH(fuser->arena, fuser->group, fuser->group_count, fuser->group_capacity, group);
            ARENA_PUSH(fuser->arena, p->own, p->count, p->capacity, own);
        }
        node->kernel = p->own[p->count - 1].group;
        fuser->group[node->kernel].size++;
    }
}

static int by_place(const void *a, const void *b)
{
    const Own *x = a, *y = b;
    uint32_t i = x->behind + 1, j = y->behind + 1; /* NONE is before all */
    return i != j ? (i > j) - (i < j) : (x->group > y->group) - (x->group < y->group);
}

/* The groups of `own` right behind those they wait for. */
static void renumber(Placer *p, uint32_t others)
{
    Fuser *fuser = p->fuser;
    uint32_t *number = ARENA_ARRAY(fuser->arena, uint32_t, fuser->group_count), next = 0, at = 0;
    Group *group = ARENA_ARRAY(fuser->arena, Group, fuser->group_count);
    qsort(p->own, p->count, sizeof *p->own, by_place);
    for (uint32_t g = 0; g <= others; g++) { /* those behind NONE, 0, 1, ... */
        for (; at < p->count && p->own[at].behind + 1 == g; at++)
            number[p->own[at].group] = next++;
        if (g < others)
            number[g] = next++;
    }
    for (uint32_t g = 0; g < fuser->group_count; g++)
        group[number[g]] = fuser->group[g];
    fuser->group = group;
    fuser->group_capacity = fuser->group_count;
    for (uint32_t n = 0; n < fuser->graph->node_count; n++)
        if (fuser->graph->node[n].kernel != NONE)
            fuser->graph->node[n].kernel = number[fuser->graph->node[n].kernel];
}

void late_place(Fuser *fuser)
{
    const Graph *graph = fuser->graph;
    Placer p = {.fuser = fuser,
                .chain = ARENA_ARRAY(fuser->arena, uint32_t, graph->node_count),
                .view = ARENA_ARRAY(fuser->arena, Use, graph->value_count)};
    uint32_t others = fuser->group_count;
    for (ValueId v = 0; v < graph->value_count; v++)
        p.view[v].first = NONE;
    find_chains(&p);
    if (!p.chains)
        return;
    note_others(&p);
    join_users(&p);
    open_own(&p);
    if (p.count)
        renumber(&p, others);
}
