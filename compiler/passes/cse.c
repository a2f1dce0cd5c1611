/* Common subexpression elimination.
 * Needs: a verified graph.  Keeps: the order of nodes; the first of equal values.
 * Pure nodes with the same op, attributes and operands (in either order where the op is commutative) become one, and so
 * do constants with the same elements.  One sweep with a hash table suffices: operands come before their users, so they
 * are one already.  Random ops take no exception: they are functions of their seed and shape, so equal seeds draw the
 * same numbers and may merge, while draws with different seeds differ in an attribute.
 * Loops and branches whose bodies are the same, node by node, are one too; and what they capture twice their bodies
 * read as one. */
#include "passes/pass.h"

#include <string.h>

#include "ops/control.h"

#define WHOLE_KEY 4096 /* constants up to here are compared through the table; larger ones by a sample, then whole */
#define SAMPLES   256

typedef struct Merger {
    Graph *graph;
    Arena *scratch;
    Map map; /* a key's bytes to a node or, in a map of its own, to a constant */
    Text key;
    ValueId *replacement;
    uint32_t merged;
} Merger;

static void key_put(Merger *m, const void *bytes, size_t count)
{
    text_put(&m->key, bytes, count);
}

/* The kept value for the key now in m->key, which is `id` when the key is new. */
static uint32_t key_intern(Merger *m, uint32_t id)
{
    uint32_t known = map_get(&m->map, text_view(&m->key));
    if (known != MAP_NONE)
        return known;
    map_put(&m->map, str_copy(m->scratch, text_view(&m->key)), id);
    return id;
}

static void merge(Merger *m, ValueId from, ValueId to)
{
    Value *kept = &m->graph->value[to], *gone = &m->graph->value[from];
    m->replacement[from] = to;
    m->merged++;
    if (!kept->name.len) {
        kept->name = gone->name;
        gone->name = (Str){0};
    }
}

/* Constants */

static void key_sample(Merger *m, const unsigned char *bytes, size_t count)
{
    if (count <= WHOLE_KEY) {
        key_put(m, bytes, count);
        return;
    }
    for (size_t i = 0; i < SAMPLES; i++)
        key_put(m, bytes + (count - 8) / SAMPLES * i, 8);
}

static void merge_constant(Merger *m, ValueId v)
{
    const Value *value = &m->graph->value[v];
    size_t bytes = (size_t)type_bytes(value->type);
    m->key.len = 0;
    key_put(m, &value->type, sizeof value->type);
    key_sample(m, value->data->data, bytes);

    ValueId known = key_intern(m, v);
    if (known != v && (bytes <= WHOLE_KEY || memcmp(m->graph->value[known].data->data, value->data->data, bytes) == 0))
        merge(m, v, known);
}

static bool is_comparable(const Value *value) /* the elements may not have been loaded */
{
    return value->role == ROLE_CONST && value->data->data && !value->type->layout.block;
}

static void merge_constants(Merger *m)
{
    for (ValueId v = 0; v < m->graph->value_count; v++)
        if (is_comparable(&m->graph->value[v]))
            merge_constant(m, v);
}

/* Nodes */

static void key_operands(Merger *m, const Node *node)
{
    ValueId pair[2];
    const ValueId *in = node->in;
    if (node->in_count == 2 && op_info(node->op)->commutative) {
        pair[0] = in[0] < in[1] ? in[0] : in[1];
        pair[1] = in[0] < in[1] ? in[1] : in[0];
        in = pair;
    }
    key_put(m, in, node->in_count * sizeof *in);
}

/* Bodies in keys: values by the order in which they come. */

typedef struct Numbers {
    const Graph *body;
    uint32_t *of, next; /* per value; NONE: not met yet */
} Numbers;

static void key_number(Merger *m, Numbers *numbers, ValueId value)
{
    const Value *v = &numbers->body->value[value];
    bool met = numbers->of[value] != NONE;
    if (!met)
        numbers->of[value] = numbers->next++;
    key_put(m, &numbers->of[value], sizeof *numbers->of);
    if (met)
        return;
    key_put(m, &v->type, sizeof v->type);
    key_put(m, v->placement.ptr, v->placement.len);
    if (v->role != ROLE_CONST)
        return;
    size_t bytes = is_comparable(v) ? (size_t)type_bytes(v->type) : 0;
    if (bytes && bytes <= WHOLE_KEY)
        key_put(m, v->data->data, bytes);
    else /* equal only where it is the same tensor */
        key_put(m, &v->data, sizeof v->data);
}

static void key_node(Merger *m, const Node *node);

/* Recurses over the nesting of bodies. */
static void key_body(Merger *m, const Graph *body)
{
    Numbers numbers = {body, ARENA_ARRAY(m->scratch, uint32_t, body->value_count), 0};
    for (ValueId v = 0; v < body->value_count; v++)
        numbers.of[v] = NONE;
    for (uint32_t i = 0; i < body->input_count; i++)
        key_number(m, &numbers, body->input[i]);
    for (NodeId n = 0; n < body->node_count; n++) {
        const Node *node = &body->node[n];
        if (node->dead)
            continue;
        key_node(m, node);
        for (uint32_t i = 0; i < node->in_count; i++)
            key_number(m, &numbers, node->in[i]);
        for (uint32_t i = 0; i < node->out_count; i++)
            key_number(m, &numbers, node->out[i]);
    }
    for (uint32_t i = 0; i < body->output_count; i++)
        key_number(m, &numbers, body->output[i].value);
}

/* All of it but its operands.  A call has params of its own, and is equal to nothing.  What a text has in two kernels
 * was made twice on purpose. */
static void key_node(Merger *m, const Node *node)
{
    uint32_t counts[] = {node->op, node->in_count, node->out_count, node->sub_count, node->kernel};
    key_put(m, counts, sizeof counts);
    node_attr_key(node, &m->key);
    if (node->sub_count && !node_has_bodies(node))
        key_put(m, &node, sizeof node);
    for (uint32_t s = 0; s < node->sub_count; s++)
        key_body(m, node->sub[s]);
}

static bool is_fixed(const Node *node) /* stays as it is, whatever its equals */
{
    return node->dead || op_info(node->op)->effect != EFFECT_PURE || (node->sub_count && !node_has_bodies(node)) ||
           !node->out_count;
}

static void merge_node(Merger *m, NodeId n)
{
    Node *node = &m->graph->node[n];
    for (uint32_t i = 0; i < node->in_count; i++)
        node->in[i] = m->replacement[node->in[i]];
    if (is_fixed(node))
        return;

    const Value *result = graph_value(m->graph, node->out[0]);
    m->key.len = 0;
    key_put(m, &result->type, sizeof result->type); /* tells layouts apart */
    key_put(m, result->placement.ptr, result->placement.len);
    key_operands(m, node);
    key_node(m, node);

    NodeId known = key_intern(m, n);
    if (known == n)
        return;
    for (uint32_t i = 0; i < node->out_count; i++)
        merge(m, node->out[i], m->graph->node[known].out[i]);
    node->dead = true;
}

/* Bodies */

/* Readers of an input that is captured as another one, too, read that. */
static void merge_inputs(Merger *m, const Node *node, Graph *body)
{
    uint32_t first = node_first_captured(m->graph, node);
    ValueId *map = ARENA_ARRAY(m->scratch, ValueId, body->value_count);
    Map known = {.arena = m->scratch};
    bool found = false;

    for (ValueId v = 0; v < body->value_count; v++)
        map[v] = v;
    for (uint32_t i = first; i < node->in_count; i++) {
        Str key = map_key(&node->in[i], sizeof node->in[i]);
        uint32_t earlier = map_get(&known, key);
        if (earlier == MAP_NONE)
            map_put(&known, key, i);
        else
            map[body->input[node_input(m->graph, node, i)]] = body->input[node_input(m->graph, node, earlier)];
        found |= earlier != MAP_NONE;
    }
    if (found)
        graph_replace(body, map);
}

static void merge_captures(Merger *m)
{
    for (NodeId n = 0; n < m->graph->node_count; n++) {
        const Node *node = &m->graph->node[n];
        for (uint32_t s = 0; node_has_bodies(node) && s < node->sub_count; s++)
            merge_inputs(m, node, node->sub[s]);
    }
}

bool pass_cse(Graph *graph, PassContext *context)
{
    Merger m = {.graph = graph, .scratch = context->scratch, .map.arena = context->scratch};
    m.replacement = ARENA_ARRAY(m.scratch, ValueId, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        m.replacement[v] = v;

    merge_constants(&m);
    m.map = (Map){.arena = m.scratch};
    for (NodeId n = 0; n < graph->node_count; n++)
        merge_node(&m, n);
    graph_replace(graph, m.replacement);
    graph_compact(graph);
    text_free(&m.key);
    merge_captures(&m);
    context->changes = m.merged;
    return true;
}
