/* The composed graph as the text that a person reads, and the module that this text is: what is compiled says nothing
 * that the text does not. */
#include "formats/wanted.h"
#include "frontends/nnc/text.h"
#include "onnx/body.h"
#include "onnx/script.h"

static void put_graph(const Onnx *onnx, const Graph *graph, const Str *result, const OnnxScript *script, Text *out)
{
    text_printf(out, "graph " STR_FMT "(", STR_ARG(graph->name));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *input = graph_value(graph, graph->input[i]);
        text_printf(out, "%s" STR_FMT ": " STR_FMT, i ? ", " : "", STR_ARG(input->name),
                    STR_ARG(type_show(onnx->arena, input->type)));
    }
    text_printf(out, ") -> (");
    for (uint32_t i = 0; i < graph->output_count; i++)
        text_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(result[i]));
    text_printf(out, ") {\n");
    Text plain = {0}, joined = {0};
    onnx_script_write(script, &plain);
    onnx_join(onnx->arena, &onnx->made, text_view(&plain), result, graph->output_count, &joined);
    onnx_body_put(out, text_view(&joined));
    text_free(&plain);
    text_free(&joined);
    text_printf(out, "}\n");
}

/* Params, states and constants take the elements of the model, by their names in the text. */

static void fill(void *context, const Graph *graph, ValueId id)
{
    const OnnxScript *script = context;
    Value *value = graph_value(graph, id);
    bool kept = value->role == ROLE_PARAM || value->role == ROLE_STATE;
    bool open = kept || (value->role == ROLE_CONST && value->data && !value->data->data);
    uint32_t index = open ? map_get(&script->elements, value->name) : MAP_NONE;
    if (index != MAP_NONE && script->element[index] && script->element[index]->type == value->type)
        value->data = script->element[index];
}

/* Types are those of another module, and are made again in this one. */
static void adopt_types(OnnxScript *script, Module *module)
{
    for (uint32_t i = 0; i < script->element_count; i++) {
        if (!script->element[i])
            continue;
        Tensor *tensor = arena_copy(script->arena, script->element[i], sizeof *tensor);
        tensor->type = module_type(module, tensor->type->dtype, &tensor->type->shape, tensor->type->layout);
        script->element[i] = tensor;
    }
}

Module *onnx_finish(Onnx *onnx, const Graph *graph, const Str *result, Text *out)
{
    OnnxScript *script = onnx_script_read(onnx, text_view(&onnx->root->text), graph, result);
    onnx_script_drop_unread(script);
    onnx_script_drop_copies(script);
    onnx_script_settle_names(script);
    text_printf(out, "nnc 1\nuse \"nn\"\n\n");
    onnx_script_fold_blocks(script, out);
    put_graph(onnx, graph, result, script, out);

    Str text = str_copy(onnx->arena, text_view(out));
    Module *module = nnc_parse(onnx->arena, onnx->diag, onnx->path, text, NULL, 0);
    if (!module)
        return NULL;
    adopt_types(script, module);
    weights_each_value(module, fill, script);
    return module;
}
