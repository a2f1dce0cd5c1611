/* What of a Loop is read.  A value that goes round for itself alone, and what each round gives to nobody, are not
 * there, nor are nodes of the body that only these need. */
#include <string.h>

#include "onnx/body.h"

typedef struct Live {
    OnnxNode *loop;
    const Onnx__GraphProto *body;
    OnnxLive *live;
    uint32_t carried;
    Map maker;  /* names in the body, to the number of the node that gives them */
    Map around; /* names of its inputs, to their numbers */
    bool *node; /* that are needed */
    const char **name;
    uint32_t count, capacity; /* names that are still to be followed */
} Live;

static void follow(Live *l, const char *name)
{
    if (*onnx_body_name(name)) /* an operand that is not left out */
        ARENA_PUSH(l->loop->onnx->arena, l->name, l->count, l->capacity, name);
}

/* What the node reads, and what bodies of its read from around them.  The nesting is bounded. */
static void follow_operands(Live *l, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        follow(l, node->input[i]);
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__GraphProto *body = node->attribute[a]->g;
        for (size_t i = 0; body && i < body->n_node; i++)
            follow_operands(l, body->node[i]);
        for (size_t i = 0; body && i < body->n_output; i++)
            follow(l, body->output[i]->name);
    }
}

static void keep_carried(Live *l, uint32_t i)
{
    if (!l->live->kept[i])
        follow(l, l->body->output[1 + i]->name);
    l->live->kept[i] = true;
}

static void follow_all(Live *l)
{
    while (l->count) {
        Str name = str_from(l->name[--l->count]);
        uint32_t node = map_get(&l->maker, name), input = map_get(&l->around, name);
        if (input == 0)
            l->live->counts = true;
        else if (input != MAP_NONE && input > 1)
            keep_carried(l, input - 2);
        if (node == MAP_NONE || l->node[node])
            continue;
        l->node[node] = true;
        follow_operands(l, l->body->node[node]);
    }
}

static bool is_read(const OnnxNode *n, uint32_t i)
{
    return onnx_wants(n, i) && map_get(n->scope->uses, str_from(n->proto->output[i])) != MAP_NONE;
}

static void start(Live *l)
{
    Arena *arena = l->loop->onnx->arena;
    l->maker.arena = l->around.arena = arena;
    l->node = ARENA_ARRAY(arena, bool, l->body->n_node + 1);
    for (uint32_t i = 0; i < l->body->n_node; i++)
        for (size_t k = 0; k < l->body->node[i]->n_output; k++)
            map_add(&l->maker, str_from(onnx_body_name(l->body->node[i]->output[k])), i);
    for (uint32_t i = 0; i < l->carried + 2; i++)
        map_add(&l->around, str_from(onnx_body_name(l->body->input[i]->name)), i);
}

/* The body without what nobody needs: inputs, nodes and outputs. */
static Onnx__GraphProto *prune(const Live *l)
{
    Arena *arena = l->loop->onnx->arena;
    const Onnx__GraphProto *body = l->body;
    Onnx__GraphProto *pruned = arena_copy(arena, body, sizeof *body);
    pruned->input = arena_copy(arena, body->input, body->n_input * sizeof(void *));
    pruned->output = arena_copy(arena, body->output, body->n_output * sizeof(void *));
    pruned->node = ARENA_ARRAY(arena, Onnx__NodeProto *, body->n_node + 1);
    pruned->n_input = 2;
    pruned->n_output = 1;
    pruned->n_node = 0;
    for (size_t i = 0; i + 1 < body->n_output; i++) {
        if (!l->live->kept[i])
            continue;
        if (i < l->carried)
            pruned->input[pruned->n_input++] = body->input[2 + i];
        pruned->output[pruned->n_output++] = body->output[1 + i];
    }
    for (size_t i = 0; i < body->n_node; i++)
        if (l->node[i])
            pruned->node[pruned->n_node++] = body->node[i];
    return pruned;
}

void onnx_find_live(OnnxNode *n, const Onnx__GraphProto *body, uint32_t carried, OnnxLive *live)
{
    Live l = {.loop = n, .body = body, .live = live, .carried = carried};
    uint32_t results = (uint32_t)body->n_output - 1;
    *live = (OnnxLive){.kept = ARENA_ARRAY(n->onnx->arena, bool, results + 1)};
    start(&l);
    follow(&l, body->output[0]->name);
    for (uint32_t i = 0; i < results; i++) {
        if (!is_read(n, i))
            continue;
        live->kept[i] = true;
        follow(&l, body->output[1 + i]->name);
    }
    follow_all(&l);
    live->body = prune(&l);
}
