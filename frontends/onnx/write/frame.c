/* Values of the graph that is being written, under the names that they get. */
#include "onnx/write/export.h"

void export_frame(ExportFrame *frame, Export *e, const Graph *graph, Str prefix)
{
    *frame = (ExportFrame){.e = e,
                           .graph = graph,
                           .id = ARENA_ARRAY(e->arena, ExportId, graph->value_count + 1),
                           .wish = ARENA_ARRAY(e->arena, const char *, graph->value_count + 1),
                           .prefix = prefix};
}

/* A value keeps its name in a body, too, where none in the graph, or another body, is called so. */
const char *export_value_name(const ExportFrame *frame, ValueId v, const char *otherwise)
{
    Str name = frame->graph->value[v].name, prefix = frame->prefix;
    if (frame->wish[v])
        return frame->wish[v];
    if (frame->body.len && (!name.len || !export_is_alone(frame->e, name)))
        prefix = frame->body;
    const char *text =
        export_text(frame->e, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG((name.len ? name : str_from(otherwise))));
    return name.len ? text : export_made_up(frame->e, text);
}

/* One list, whether the graph has it by that name or only expressions: it has it from an export before. */
static bool is_said(const ExportFrame *frame, ValueId v, const char **name)
{
    const Value *value = &frame->graph->value[v];
    *name = export_list_name(frame->e, value->data);
    return *name && str_is(value->name, *name);
}

static ExportId constant(const ExportFrame *frame, ValueId v)
{
    const Value *value = &frame->graph->value[v];
    DType dtype = value->type->dtype;
    ExportNode node = {.e = frame->e};
    const char *name;
    if (is_said(frame, v, &name))
        return export_array(frame->e, value->data, name);
    if (value->type->shape.rank)
        return export_tensor(frame->e, value->data, export_value_name(frame, v, "constant"));
    if (dtype == DT_I64 || dtype == DT_U64)
        return export_scalar(frame->e, dtype, export_text(frame->e, "%lld", (long long)*(int64_t *)value->data->data));
    return export_scalar(frame->e, dtype, export_number(&node, dtype, tensor_number(value->data, 0)));
}

ExportId export_value(const ExportFrame *frame, ValueId v)
{
    const Value *value = &frame->graph->value[v];
    if (frame->id[v] == EXPORT_LEFT_OUT)
        frame->id[v] = value->role == ROLE_CONST ? constant(frame, v) : export_leaf(frame->e, value);
    return frame->id[v];
}

void export_outputs(const ExportFrame *frame, const ValueId *value, uint32_t count, ExportId *out)
{
    Export *e = frame->e;
    for (uint32_t i = 0; i < count; i++) {
        ExportId id = export_value(frame, value[i]);
        bool own = e->tensor[id].home == e->scope;
        for (uint32_t k = 0; own && k < i; k++)
            own = out[k] != id;
        out[i] = own ? id : export_say(e, DT_F32, &id, export_text(e, "%s.out", export_name(e, id)), "Identity(x)");
    }
}
