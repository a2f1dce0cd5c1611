/* Loops and branches.  A body sees the names around it, so what it captures needs no word; what it gives is made by a
 * node of its own. */
#include "onnx/write/export.h"

static Onnx__GraphProto *close_graph(Export *e, const char *name, Onnx__ValueInfoProto **in, size_t in_count,
                                     Onnx__ValueInfoProto **out, size_t out_count)
{
    Onnx__GraphProto *graph = ARENA_NEW(e->arena, Onnx__GraphProto);
    onnx__graph_proto__init(graph);
    graph->name = (char *)(uintptr_t)name;
    graph->input = in;
    graph->n_input = in_count;
    graph->output = out;
    graph->n_output = out_count;
    graph->node = export_scope_close(e, &graph->n_node);
    return graph;
}

static bool open_body(ExportNode *n, ExportScope *scope)
{
    if (n->e->scope->depth >= EXPORT_DEEPEST)
        return export_no(n, "loops and branches nest deeper than readers of ONNX follow", NULL);
    export_scope_open(n->e, scope);
    return true;
}

static Onnx__ValueInfoProto *info(ExportNode *n, ExportId id, const Type *type)
{
    return export_value_info(n->e->arena, export_name(n->e, id), type);
}

/* A body's nodes, after the operands from `first` on are its inputs from number `input` on. */
static void start_body(ExportFrame *frame, const ExportNode *n, const Graph *body, const ExportId *in)
{
    export_frame(frame, n->e, body, n->frame->prefix);
    frame->body = str_from(export_text(n->e, "%s.", export_name(n->e, n->out[0])));
    for (uint32_t i = 0; i < body->input_count; i++)
        frame->id[body->input[i]] = in[i];
}

/* Does the loop go on?  Its condition, of these values. */
static ExportId write_condition(const ExportNode *n, const Loop *loop, const ExportId *in)
{
    ExportFrame frame;
    start_body(&frame, n, loop->condition, in);
    export_nodes(&frame);
    return export_value(&frame, loop->condition->output[0].value);
}

/* The values after a round, and before them whether there is another one. */
static void write_round(ExportNode *n, const Loop *loop, ExportId *in, ExportId *out)
{
    ExportFrame frame;
    uint32_t carried = loop->carried;
    const Graph *body = loop->body;
    ValueId *value = ARENA_ARRAY(n->e->arena, ValueId, carried + 1);
    start_body(&frame, n, body, in);
    export_nodes(&frame);
    for (uint32_t i = 0; i < carried; i++)
        value[i] = body->output[i].value;
    export_outputs(&frame, value, carried, out + 1);
    for (uint32_t i = 0; i < carried; i++)
        in[i] = out[1 + i];
    ExportId again = loop->condition ? write_condition(n, loop, in) : export_value(&frame, body->output[carried].value);
    out[0] = export_say(n->e, DT_BOOL, &again, NULL, "Identity(x)");
}

static Onnx__GraphProto *write_body(ExportNode *n, const Loop *loop)
{
    Export *e = n->e;
    Arena *arena = e->arena;
    uint32_t carried = loop->carried;
    Onnx__ValueInfoProto **in = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, carried + 2);
    Onnx__ValueInfoProto **out = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, carried + 1);
    ExportId *given = arena_copy(arena, n->in, n->node->in_count * sizeof *given);
    ExportId *next = ARENA_ARRAY(arena, ExportId, carried + 1);
    const Type *flag = module_plain_type(n->graph->module, DT_BOOL, 0, NULL);
    ExportFrame names;
    start_body(&names, n, loop->body, n->in);
    in[0] = info(n, export_id_near(e, "round"), module_plain_type(n->graph->module, DT_I64, 0, NULL));
    in[1] = info(n, export_id_near(e, "goes_on"), flag);
    for (uint32_t i = 0; i < carried; i++) {
        given[i] = export_id_near(e, export_value_name(&names, loop->body->input[i], "carried"));
        in[2 + i] = info(n, given[i], value_type(n->graph, n->node->in[i]));
    }
    write_round(n, loop, given, next);
    out[0] = info(n, next[0], flag);
    for (uint32_t i = 0; i < carried; i++)
        out[1 + i] = info(n, next[1 + i], value_type(n->graph, n->node->in[i]));
    return close_graph(e, "body", in, carried + 2, out, carried + 1);
}

/* One round and no other: what the body gives. */
static bool write_once(ExportNode *n, const Loop *loop)
{
    ExportFrame frame;
    export_frame(&frame, n->e, loop->body, n->frame->prefix);
    frame.body = str_from(export_text(n->e, "%s.", n->wish[0]));
    for (uint32_t i = 0; i < loop->body->input_count; i++)
        frame.id[loop->body->input[i]] = n->in[i];
    export_nodes(&frame);
    for (uint32_t i = 0; i < loop->carried; i++)
        n->out[i] = export_value(&frame, loop->body->output[i].value);
    return true;
}

static bool write_loop(ExportNode *n)
{
    Export *e = n->e;
    Loop loop = loop_of(n->graph, n->node);
    ExportScope scope;
    ExportId *in = ARENA_ARRAY(e->arena, ExportId, loop.carried + 2);
    if (!loop.condition && loop.most == 1)
        return write_once(n, &loop);
    for (uint32_t i = 0; i < loop.carried; i++)
        n->out[i] = export_id_near(e, n->wish[i]);
    in[0] = loop.most ? export_scalar(e, DT_I64, export_text(e, "%lld", (long long)loop.most)) : EXPORT_LEFT_OUT;
    in[1] = loop.condition ? write_condition(n, &loop, n->in) : export_scalar(e, DT_BOOL, "1");
    for (uint32_t i = 0; i < loop.carried; i++)
        in[2 + i] = n->in[i];
    if (!open_body(n, &scope))
        return false;
    Onnx__GraphProto *body = write_body(n, &loop);
    export_attribute_graph(e, export_append(e, "Loop", in, loop.carried + 2, n->out, loop.carried), "body", body);
    return true;
}

/* Branches: an If chooses between two halves of them, by the number of the one that runs. */

static Onnx__GraphProto *write_branch(ExportNode *n, uint32_t number)
{
    uint32_t count = n->node->out_count;
    const Graph *body = n->node->sub[number];
    ExportFrame frame;
    ValueId *value = ARENA_ARRAY(n->e->arena, ValueId, count);
    ExportId *out = ARENA_ARRAY(n->e->arena, ExportId, count);
    Onnx__ValueInfoProto **result = ARENA_ARRAY(n->e->arena, Onnx__ValueInfoProto *, count);
    start_body(&frame, n, body, n->in + 1);
    export_nodes(&frame);
    for (uint32_t i = 0; i < count; i++)
        value[i] = body->output[i].value;
    export_outputs(&frame, value, count, out);
    for (uint32_t i = 0; i < count; i++)
        result[i] = info(n, out[i], value_type(n->graph, n->node->out[i]));
    return close_graph(n->e, "branch", NULL, 0, result, count);
}

static bool write_choice(ExportNode *n, uint32_t first, uint32_t end, ExportId number, ExportId *out);

static Onnx__GraphProto *write_half(ExportNode *n, uint32_t first, uint32_t end, ExportId number)
{
    uint32_t count = n->node->out_count;
    ExportScope scope;
    if (!open_body(n, &scope))
        return NULL;
    if (end - first == 1)
        return write_branch(n, first);
    ExportId *out = ARENA_ARRAY(n->e->arena, ExportId, count);
    Onnx__ValueInfoProto **result = ARENA_ARRAY(n->e->arena, Onnx__ValueInfoProto *, count);
    for (uint32_t i = 0; i < count; i++)
        out[i] = export_id_near(n->e, export_text(n->e, "%s.choice", n->wish[i]));
    bool good = write_choice(n, first, end, number, out);
    for (uint32_t i = 0; i < count; i++)
        result[i] = info(n, out[i], value_type(n->graph, n->node->out[i]));
    Onnx__GraphProto *graph = close_graph(n->e, "branches", NULL, 0, result, count);
    return good ? graph : NULL;
}

static bool write_if(ExportNode *n, ExportId condition, Onnx__GraphProto *yes, Onnx__GraphProto *no, ExportId *out)
{
    if (!yes || !no)
        return false;
    Onnx__NodeProto *node = export_append(n->e, "If", &condition, 1, out, n->node->out_count);
    export_attribute_graph(n->e, node, "then_branch", yes);
    export_attribute_graph(n->e, node, "else_branch", no);
    return true;
}

static bool write_choice(ExportNode *n, uint32_t first, uint32_t end, ExportId number, ExportId *out)
{
    uint32_t middle = first + (end - first) / 2;
    ExportId low = export_make(n, "Less($%u, i64:%u)", number, middle);
    Onnx__GraphProto *yes = write_half(n, first, middle, number);
    return write_if(n, low, yes, write_half(n, middle, end, number), out);
}

/* One of two: what decides, and whether it means the second. */
static bool write_pair(ExportNode *n, int64_t key)
{
    bool flag = n->dtype == DT_BOOL;
    ExportId condition = flag ? n->in[0] : export_make(n, "Equal(x, i32:%lld)", (long long)key);
    bool second = flag && key == 0;
    Onnx__GraphProto *half[2];
    for (uint32_t i = 0; i < 2; i++)
        half[i] = write_half(n, i, i + 1, condition);
    return write_if(n, condition, half[second], half[!second], n->out);
}

static bool write_branches(ExportNode *n)
{
    Branches branches = branches_of(n->graph, n->node);
    for (uint32_t i = 0; i < n->node->out_count; i++)
        n->out[i] = export_id_near(n->e, n->wish[i]);
    if (branches.keys == 1)
        return write_pair(n, branches.key[0]);
    ExportId keys = export_list(n->e, DT_I32, branches.key, branches.keys);
    ExportId number = export_make(n,
                                  "ArgMax(Concat(Cast(Equal(Cast(x){to=i32}, $%u)){to=i32}, i32[1]){axis=0})"
                                  "{axis=0, keepdims=0}",
                                  keys);
    if (!branches.keys)
        number = export_scalar(n->e, DT_I64, "0");
    return write_choice(n, 0, branches.keys + 1, number, n->out);
}

bool export_control(ExportNode *n)
{
    return node_is_loop(n->node) ? write_loop(n) : write_branches(n);
}
