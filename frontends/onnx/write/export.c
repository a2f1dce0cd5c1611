/* The export of a graph: inputs, params, states and outputs, and the file as a whole. */
#include "onnx/write/export.h"

#include <string.h>

#include "ops/family.h"
#include "passes/pass.h"

/* Gradients, updates by an optimiser: what only passes can write out.  Recurses over the nesting. */
static bool needs_passes(const Graph *graph)
{
    for (NodeId i = 0; i < graph->node_count; i++) {
        const Node *node = &graph->node[i];
        if (node->dead)
            continue;
        if (node_is_gradient(node) || node_is_minimize(node))
            return true;
        for (uint32_t s = 0; s < node->sub_count; s++)
            if (needs_passes(node->sub[s]))
                return true;
    }
    return false;
}

/* Updates in calls are those of the graph only once the calls are expanded. */
static bool updates_inside(const Graph *graph)
{
    for (NodeId i = 0; i < graph->node_count; i++) {
        const Node *node = &graph->node[i];
        if (node->dead || !node_is_call(node))
            continue;
        if (node->sub[0]->update_count || updates_inside(node->sub[0]))
            return true;
    }
    return false;
}

/* Params and states */

static bool is_updated(const Graph *graph, ValueId v)
{
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (graph->update[i].target == v)
            return true;
    return false;
}

static void add_leaf(Export *e, Graph *graph, ValueId v)
{
    Value *value = &graph->value[v];
    ExportLeaf leaf = {.value = value};
    if ((value->role != ROLE_PARAM && value->role != ROLE_STATE) || map_get(&e->leaf_at, value->name) != MAP_NONE)
        return;
    leaf.input = is_updated(graph, v) || value_declared(value) == ROLE_STATE;
    value->data = eval_data(graph, v);
    map_put(&e->leaf_at, value->name, e->leaf_count);
    ARENA_PUSH(e->arena, e->leaf, e->leaf_count, e->leaf_capacity, leaf);
    map_add(&e->taken, value->name, 2);
}

/* Those of calls and bodies, too.  Recurses over the nesting. */
static void add_leaves(Export *e, Graph *graph)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        add_leaf(e, graph, v);
    for (NodeId i = 0; i < graph->node_count; i++)
        for (uint32_t s = 0; !graph->node[i].dead && s < graph->node[i].sub_count; s++)
            add_leaves(e, graph->node[i].sub[s]);
}

/* Inputs and outputs */

typedef struct Ends { /* of the model */
    Onnx__ValueInfoProto **in, **out;
    uint32_t in_count, out_count;
    const char **name; /* of outputs, the model's first, then the next values of what is kept */
    ValueId *value;
} Ends;

static const char *terminated(Export *e, Str name)
{
    return str_copy(e->arena, name).ptr;
}

static void start_ends(Export *e, const Graph *graph, Ends *ends, ExportFrame *frame)
{
    Arena *arena = e->arena;
    uint32_t outputs = graph->output_count + graph->update_count;
    *ends = (Ends){.in = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, graph->input_count + e->leaf_count + 1),
                   .out = ARENA_ARRAY(arena, Onnx__ValueInfoProto *, outputs + 1),
                   .name = ARENA_ARRAY(arena, const char *, outputs + 1),
                   .value = ARENA_ARRAY(arena, ValueId, outputs + 1)};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *value = &graph->value[graph->input[i]];
        const char *name = terminated(e, value->name);
        frame->id[graph->input[i]] = export_id(e, name);
        ends->in[ends->in_count++] = export_value_info(arena, name, value->type);
    }
    for (uint32_t i = 0; i < e->leaf_count; i++) {
        const Value *value = e->leaf[i].value;
        if (!e->leaf[i].input)
            continue;
        export_leaf(e, value);
        Onnx__ValueInfoProto *info = export_value_info(arena, terminated(e, value->name), value->type);
        if (value_declared(value) == ROLE_PARAM)
            info->doc_string = (char *)(uintptr_t)ONNX_PARAM;
        ends->in[ends->in_count++] = info;
    }
}

static bool is_weight(const Export *e, const Value *value, const char *name)
{
    uint32_t at = value->role == ROLE_PARAM || value->role == ROLE_STATE ? map_get(&e->leaf_at, value->name) : MAP_NONE;
    return at != MAP_NONE && !e->leaf[at].input && str_is(value->name, name);
}

/* Under this name, which a weight as it is keeps, or with _next behind it where an input has it; a number where that is
 * taken, too. */
static void promise(Export *e, ExportFrame *frame, Ends *ends, ValueId value, const char *name)
{
    bool itself = is_weight(e, &frame->graph->value[value], name);
    if (!itself && export_is_taken(e, name))
        name = export_text(e, "%s_next", name);
    if (!itself)
        name = export_promised(e, name);
    ends->name[ends->out_count] = name;
    ends->value[ends->out_count++] = value;
    Role role = frame->graph->value[value].role;
    if (!frame->wish[value] && (role == ROLE_RESULT || role == ROLE_CONST))
        frame->wish[value] = name;
}

static void promise_ends(Export *e, const Graph *graph, ExportFrame *frame, Ends *ends)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        promise(e, frame, ends, graph->output[i].value, terminated(e, graph->output[i].name));
    for (uint32_t i = 0; i < graph->update_count; i++)
        promise(e, frame, ends, graph->update[i].source, terminated(e, graph->value[graph->update[i].target].name));
}

/* A value that the graph computes, and that is no output by its name, takes this one. */
static bool rename_end(Export *e, const Ends *ends, ExportId id, const char *name)
{
    const char *old = export_name(e, id);
    for (uint32_t i = 0; i < ends->out_count; i++)
        if (strcmp(ends->name[i], old) == 0)
            return false;
    if (e->tensor[id].home != e->scope)
        return false;
    e->tensor[id].name = name;
    export_rename(e->scope->node, e->scope->count, old, name);
    return true;
}

static void finish_ends(Export *e, const ExportFrame *frame, Ends *ends)
{
    for (uint32_t i = 0; i < ends->out_count; i++) {
        ExportId id = export_value(frame, ends->value[i]);
        const Type *type = value_type(frame->graph, ends->value[i]);
        if (strcmp(export_name(e, id), ends->name[i]) != 0 && !rename_end(e, ends, id, ends->name[i])) {
            ExportId out = export_id(e, ends->name[i]);
            export_append(e, "Identity", &id, 1, &out, 1);
        }
        ends->out[i] = export_value_info(e->arena, ends->name[i], type);
    }
}

/* The file */

static bool report(const Export *e)
{
    diag_file_error(e->diag, e->path, "%u of %u nodes cannot be exported", e->refusal_count, e->node_count);
    for (uint32_t i = 0; i < e->refusal_count; i++) {
        const ExportRefusal *r = &e->refusal[i];
        diag_note(e->diag, r->place, STR_FMT ", " STR_FMT ": " STR_FMT "%s" STR_FMT, STR_ARG(r->title), STR_ARG(r->op),
                  STR_ARG(r->reason), r->hint.len ? "; " : "", STR_ARG(r->hint));
    }
    return false;
}

static Onnx__ModelProto *assemble(Export *e, const Graph *graph, const Ends *ends)
{
    Onnx__ModelProto *model = ARENA_NEW(e->arena, Onnx__ModelProto);
    Onnx__GraphProto *proto = ARENA_NEW(e->arena, Onnx__GraphProto);
    onnx__model_proto__init(model);
    onnx__graph_proto__init(proto);
    proto->name = (char *)(uintptr_t)terminated(e, graph->name);
    proto->input = ends->in;
    proto->n_input = ends->in_count;
    proto->output = ends->out;
    proto->n_output = ends->out_count;
    proto->node = export_scope_close(e, &proto->n_node);
    proto->initializer = e->initial;
    proto->n_initializer = e->initial_count;
    export_sweep(e, proto);
    model->has_ir_version = true;
    model->ir_version = EXPORT_IR;
    model->producer_name = EXPORT_DOMAIN;
    model->graph = proto;
    model->functions = e->function;
    model->n_functions = e->function_count;
    model->opset_import = export_opsets(e, proto->node, proto->n_node, true, &model->n_opset_import);
    return model;
}

static OnnxExported write(Export *e, Graph *graph, const OnnxExport *options)
{
    ExportScope scope;
    ExportFrame frame;
    Ends ends;
    export_scope_open(e, &scope);
    export_id(e, "");
    add_leaves(e, graph);
    export_frame(&frame, e, graph, (Str){0});
    export_find_own(e, graph);
    start_ends(e, graph, &ends, &frame);
    promise_ends(e, graph, &frame, &ends);
    export_nodes(&frame);
    if (e->refusal_count) {
        report(e);
        return ONNX_REFUSED;
    }
    finish_ends(e, &frame, &ends);
    return export_save(e, assemble(e, graph, &ends), options);
}

OnnxExported onnx_export(Arena *arena, Diag *diag, const Graph *graph, const OnnxExport *options)
{
    Export e = {.arena = arena,
                .diag = diag,
                .path = options->model,
                .flat = options->flat,
                .taken = {.arena = arena},
                .promised = {.arena = arena},
                .own = {.arena = arena},
                .numbers = {.arena = arena},
                .constant = {.arena = arena},
                .leaf_at = {.arena = arena},
                .function_at = {.arena = arena},
                .function_named = {.arena = arena}};
    Graph *own = needs_passes(graph) || updates_inside(graph) ? pass_reference(graph) : graph_clone(graph);
    if (!own)
        return ONNX_REFUSED;
    e.graph = own;
    return write(&e, own, options);
}
