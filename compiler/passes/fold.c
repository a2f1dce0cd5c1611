/* Constant folding.
 * Needs: a verified graph.  Keeps: the order of nodes.
 * Evaluates constant sub-graphs (constant.h) with the reference evaluator and makes constants of those values that the
 * rest of the graph reads.  What only repeats or counts (broadcast, full, iota) and is larger than what it is made of
 * stays a node, unless its readers fold too; so does what only widens weights of 8 or 16 bits (widen.h).
 * Memory: a param without stored elements is materialised only when something made of it folds, and when nothing else
 * reads it, the result takes over its memory; values between are freed after their last reader.  So folding scales
 * into 100 MB of weights takes 100 MB and the largest tensor. */
#include "ops/family.h"
#include "ops/meaning.h"
#include "passes/constant.h"
#include "passes/widen.h"

#include <string.h>

#define SMALL 4096 /* bytes; smaller tensors are not worth an arena of their own */

typedef struct Folder {
    Graph *graph;
    Arena *scratch;
    bool *constant;
    bool *widened;         /* weights that their readers widen */
    bool *kept;            /* read by what does not fold: becomes a constant, or its lazy node stays */
    bool *folded;          /* read by a node that is evaluated */
    bool *materialised;    /* by this pass, for itself: the elements may be overwritten */
    uint32_t *readers;     /* evaluations still to come; for params all uses */
    const Tensor **tensor; /* the elements of values between */
    Arena *own;            /* where the large ones of these live */
    ValueId *origin;       /* the largest leaf that a value is made of, for its name, ... */
    uint32_t *distance;    /* ... and how many nodes lie between */
    uint32_t made;
} Folder;

/* What to evaluate */

static bool is_lazy(const Folder *f, const Node *node)
{
    const Graph *graph = f->graph;
    if (node->out_count == 1 && f->widened[node->out[0]])
        return true;
    if (!node_is_view(node) && !node_is_formula(node))
        return false;
    int64_t operand = node->in_count ? type_bytes(value_type(graph, node->in[0])) : 0;
    int64_t result = type_bytes(value_type(graph, node->out[0]));
    return result > operand && result > 64;
}

static bool any(const bool *flag, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (flag[value[i]])
            return true;
    return false;
}

static void mark(bool *flag, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        flag[node->in[i]] = true;
}

static bool is_constant(const Folder *f, const Node *node)
{
    return node->out_count && f->constant[node->out[0]];
}

static bool stays(const Folder *f, const Node *node)
{
    return !is_constant(f, node) || (is_lazy(f, node) && any(f->kept, node->out, node->out_count));
}

static bool is_evaluated(const Folder *f, const Node *node)
{
    return is_constant(f, node) && (any(f->folded, node->out, node->out_count) ||
                                    (!is_lazy(f, node) && any(f->kept, node->out, node->out_count)));
}

/* From the end, so that every reader has been decided before what it reads. */
static void decide(Folder *f)
{
    Graph *graph = f->graph;
    f->kept = graph_live_out(graph, f->scratch);
    for (NodeId n = graph->node_count; n-- > 0;) {
        Node *node = &graph->node[n];
        if (node->dead)
            continue;
        bool evaluated = is_evaluated(f, node), kept = stays(f, node);
        if (evaluated)
            mark(f->folded, node);
        if (kept)
            mark(f->kept, node);
        node->dead = !evaluated && !kept; /* constant, and read by nothing that counts */
    }
}

static void count_readers(Folder *f)
{
    const Graph *graph = f->graph;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; !node->dead && i < node->in_count; i++)
            if (is_evaluated(f, node) || graph->value[node->in[i]].role == ROLE_PARAM)
                f->readers[node->in[i]]++;
    }
    for (ValueId v = 0; v < graph->value_count; v++) /* an output, or read by a lazy node beside: not ours alone */
        f->readers[v] += graph->value[v].role == ROLE_PARAM && f->kept[v];
}

/* Evaluation */

static const Tensor *operand(Folder *f, ValueId v)
{
    Value *value = &f->graph->value[v];
    if (value->role == ROLE_RESULT)
        return f->tensor[v];
    f->materialised[v] |= !value->data;
    return eval_data(f->graph, v);
}

/* The largest of what the node is computed from; of equal ones the nearest: of scale * x + bias it is the bias. */
static ValueId find_origin(Folder *f, const Node *node, uint32_t *distance)
{
    ValueId best = NONE;
    int64_t most = 0;
    for (uint32_t i = 0; i < node->in_count; i++) {
        bool result = f->graph->value[node->in[i]].role == ROLE_RESULT;
        ValueId v = result ? f->origin[node->in[i]] : node->in[i];
        uint32_t from = result ? f->distance[node->in[i]] + 1 : 1;
        int64_t bytes = v == NONE ? -1 : type_bytes(value_type(f->graph, v));
        if (bytes < 0 || (best != NONE && (bytes < most || (bytes == most && from > *distance))))
            continue;
        best = v;
        most = bytes;
        *distance = from;
    }
    return best;
}

/* Memory for a result that becomes a constant: that of a param which is read for the last time, if it has the size and
 * this pass has filled it, else new. */
static void *constant_memory(Folder *f, const Node *node, size_t bytes)
{
    for (uint32_t i = 0; i < node->in_count && bytes > SMALL; i++) {
        ValueId v = node->in[i];
        Value *value = &f->graph->value[v];
        if (!f->materialised[v] || f->readers[v] != 1 || (size_t)type_bytes(value->type) != bytes)
            continue;
        void *memory = value->data->data;
        f->materialised[v] = false;
        value->data = NULL; /* made again from the initialiser, should anyone ask */
        return memory;
    }
    return arena_alloc(f->graph->module->arena, bytes);
}

static Tensor *tensor_at(Arena *arena, const Type *type, void *data)
{
    Tensor *tensor = ARENA_NEW(arena, Tensor);
    tensor->type = type;
    tensor->data = data;
    return tensor;
}

static void name_constant(Folder *f, ValueId v)
{
    Value *value = &f->graph->value[v];
    Value *origin = f->origin[v] == NONE ? NULL : &f->graph->value[f->origin[v]];
    if (value->name.len || !origin || !origin->name.len || shape_elements(&value->type->shape) == 1)
        return;
    value->name = origin->name;
    if (str_ends(origin->name, ".folded"))
        origin->name = (Str){0};
    else
        value->name = str_format(f->graph->module->arena, STR_FMT ".folded", STR_ARG(origin->name));
}

static void make_constant(Folder *f, ValueId v, const Tensor *tensor)
{
    Value *value = &f->graph->value[v];
    value->role = ROLE_CONST;
    value->node = NONE;
    value->result = 0;
    value->data = tensor;
    name_constant(f, v);
    f->made++;
}

/* Moves a result to where it lives on: as a constant, or until its last reader. */
static void settle(Folder *f, const Node *node, ValueId v, const Tensor *made)
{
    size_t bytes = (size_t)type_bytes(made->type);
    if (f->kept[v] && !is_lazy(f, node)) {
        void *memory = constant_memory(f, node, bytes);
        memcpy(memory, made->data, bytes);
        make_constant(f, v, tensor_at(f->graph->module->arena, made->type, memory));
    } else if (f->readers[v]) {
        Arena *home = bytes > SMALL ? &f->own[v] : f->scratch;
        f->tensor[v] = tensor_at(f->scratch, made->type, arena_copy(home, made->data, bytes));
    }
}

static void release_operands(Folder *f, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        ValueId v = node->in[i];
        if (--f->readers[v] == 0)
            arena_free(&f->own[v]);
    }
}

/* A constant under another shape shares its elements, which from then on have two owners; but where the node stays. */
static bool share_elements(Folder *f, const Node *node)
{
    if (!view_is_reshape(node) || is_lazy(f, node) || !f->kept[node->out[0]] ||
        f->graph->value[node->in[0]].role == ROLE_RESULT)
        return false;
    ValueId from = node->in[0], to = node->out[0];
    void *data = operand(f, from)->data;
    f->materialised[from] = false;
    make_constant(f, to, tensor_at(f->graph->module->arena, value_type(f->graph, to), data));
    return true;
}

static void evaluate(Folder *f, NodeId n)
{
    const Node *node = &f->graph->node[n];
    const Tensor **in = ARENA_ARRAY(f->scratch, const Tensor *, node->in_count);
    Tensor **out = ARENA_ARRAY(f->scratch, Tensor *, node->out_count);
    Arena results = {0};

    f->origin[node->out[0]] = find_origin(f, node, &f->distance[node->out[0]]);
    for (uint32_t i = 1; i < node->out_count; i++)
        f->origin[node->out[i]] = f->origin[node->out[0]];
    if (!share_elements(f, node)) {
        for (uint32_t i = 0; i < node->in_count; i++)
            in[i] = operand(f, node->in[i]);
        eval_node(f->graph, n, &results, in, out);
        for (uint32_t i = 0; i < node->out_count; i++)
            settle(f, node, node->out[i], out[i]);
    }
    arena_free(&results);
    release_operands(f, node);
}

bool pass_fold(Graph *graph, PassContext *context)
{
    Arena *scratch = context->scratch;
    Folder f = {.graph = graph, .scratch = scratch, .constant = constant_values(graph, context, scratch)};
    f.widened = widen_find(graph, f.constant, scratch);
    f.folded = ARENA_ARRAY(scratch, bool, graph->value_count);
    f.materialised = ARENA_ARRAY(scratch, bool, graph->value_count);
    f.readers = ARENA_ARRAY(scratch, uint32_t, graph->value_count);
    f.tensor = ARENA_ARRAY(scratch, const Tensor *, graph->value_count);
    f.own = ARENA_ARRAY(scratch, Arena, graph->value_count);
    f.origin = ARENA_ARRAY(scratch, ValueId, graph->value_count);
    f.distance = ARENA_ARRAY(scratch, uint32_t, graph->value_count);

    decide(&f);
    count_readers(&f);
    for (NodeId n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        if (node->dead || !is_evaluated(&f, node))
            continue;
        evaluate(&f, n);
        node->dead = !stays(&f, node);
    }
    graph_compact(graph);
    context->changes = f.made;
    return true;
}
