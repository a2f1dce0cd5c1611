/* Models: parsing, what is in them, evaluation. */
#include <string.h>

#include "api/prepare.h"
#include "api/session.h"
#include "formats/weights.h"
#include "frontends/nnc/text.h"
#include "onnx/onnx.h"
#include "ops/family.h"
#include "passes/pass.h"

typedef struct Parsing {
    const nnc_source *source;
    nnc_module *module; /* the result */
} Parsing;

static Str keep(nnc_session *session, const char *text)
{
    return str_copy(&session->arena, str_from(text));
}

/* The files stay mapped as long as the session: params lie in them. */
static void keep_maps(nnc_session *session, const OnnxModel *onnx)
{
    for (uint32_t i = 0; i < onnx->map_count; i++)
        ARENA_PUSH(&session->arena, session->map, session->map_count, session->map_capacity, onnx->map[i]);
}

static Module *import(nnc_session *session, const nnc_source *source, Str path, const Define *define)
{
    OnnxOptions options = {.define = define, .define_count = source->define_count};
    OnnxModel onnx;
    bool good = onnx_import(&session->arena, &session->diag, path, &options, &onnx);
    text_free(&onnx.text);
    keep_maps(session, &onnx);
    return good ? onnx.module : NULL;
}

static Module *parse(nnc_session *session, const nnc_source *source, Str path)
{
    Arena *arena = &session->arena;
    Define *define = ARENA_ARRAY(arena, Define, source->define_count);
    for (uint32_t i = 0; i < source->define_count; i++)
        define[i] =
            (Define){.name = keep(session, source->define[i].name), .value = keep(session, source->define[i].value)};
    if (!source->text && onnx_is_path(path))
        return import(session, source, path, define);
    if (!source->text)
        return nnc_parse_file(arena, &session->diag, path, define, source->define_count);
    if (source->bytes > INT32_MAX) {
        diag_file_error(&session->diag, path, "larger than 2 GiB");
        return NULL;
    }
    Str text = str_copy(arena, (Str){source->text, (uint32_t)source->bytes});
    return nnc_parse(arena, &session->diag, path, text, define, source->define_count);
}

/* The file that is named, or the one beside a model that is a file itself; empty when there is none. */
static Str weights_path(nnc_session *session, const nnc_source *source, const nnc_module *module)
{
    if (source->weights)
        return keep(session, source->weights);
    Str path =
        source->text || onnx_is_path(module->path) ? (Str){0} : weights_path_beside(&session->arena, module->path);
    return path.len && file_exists(path) ? path : (Str){0};
}

static bool load_weights(nnc_session *session, const nnc_source *source, nnc_module *module)
{
    module->weights_path = weights_path(session, source, module);
    WeightsOptions options = {
        .path = module->weights_path,
        .need_elements = !module->shapes_only,
        .init_missing = source->init_missing,
        .convert = source->convert_weights,
        .own = !source->text && onnx_is_path(module->path),
    };
    return weights_load(module->module, &options, &module->weights);
}

static nnc_tensor_info tensor_info(Arena *arena, Str name, const Type *type)
{
    return (nnc_tensor_info){
        .name = str_copy(arena, name).ptr,
        .dtype = dtype_name(type->dtype),
        .rank = (int32_t)type->shape.rank,
        .shape = arena_copy(arena, type->shape.dim, sizeof *type->shape.dim * type->shape.rank),
        .bytes = (size_t)shape_elements(&type->shape) * dtype_bytes(type->dtype),
    };
}

static nnc_param param_info(Arena *arena, const WantedTensor *wanted)
{
    Str initialiser = prepare_initialiser(arena, wanted);
    return (nnc_param){
        .tensor = tensor_info(arena, wanted->name, weights_value(wanted)->type),
        .role = weights_role(wanted),
        .initialiser = initialiser.len ? initialiser.ptr : NULL,
        .stored = wanted->tensor != NULL,
    };
}

static nnc_graph graph_info(Arena *arena, const Graph *graph)
{
    nnc_tensor_info *input = ARENA_ARRAY(arena, nnc_tensor_info, graph->input_count);
    nnc_tensor_info *output = ARENA_ARRAY(arena, nnc_tensor_info, graph->output_count);
    for (uint32_t i = 0; i < graph->input_count; i++)
        input[i] = tensor_info(arena, graph->value[graph->input[i]].name, value_type(graph, graph->input[i]));
    for (uint32_t i = 0; i < graph->output_count; i++)
        output[i] = tensor_info(arena, graph->output[i].name, value_type(graph, graph->output[i].value));
    return (nnc_graph){str_copy(arena, graph->name).ptr, graph->input_count, graph->output_count, input, output};
}

static void describe(nnc_module *module)
{
    Arena *arena = &module->session->arena;
    const WantedList *wanted = &module->weights.wanted;

    module->graph = ARENA_ARRAY(arena, nnc_graph, module->module->graph_count);
    for (uint32_t i = 0; i < module->module->graph_count; i++)
        module->graph[i] = graph_info(arena, module->module->graph[i]);
    module->param = ARENA_ARRAY(arena, nnc_param, wanted->count);
    for (uint32_t i = 0; i < wanted->count; i++)
        module->param[i] = param_info(arena, &wanted->at[i]);
}

static nnc_result work_parse(nnc_session *session, void *argument)
{
    Parsing *parsing = argument;
    const nnc_source *source = parsing->source;
    Arena *arena = &session->arena;

    if (!source->path && !source->text)
        return session_misuse(session, "a source has a path or a text");
    if (source->weights && !*source->weights)
        return session_misuse(session, "the path of the weights is empty");
    nnc_module *module = ARENA_NEW(arena, nnc_module);
    *module = (nnc_module){.session = session, .next = session->module, .shapes_only = source->shapes_only};
    module->path = keep(session, source->path ? source->path : "model.nnc");
    module->module = parse(session, source, module->path);
    if (!module->module)
        return NNC_RESULT_INPUT;
    session->module = module; /* now: it may come to hold a mapping */
    if (!load_weights(session, source, module))
        return NNC_RESULT_INPUT;
    describe(module);
    parsing->module = module;
    return NNC_RESULT_OK;
}

nnc_result nnc_module_parse(nnc_session *session, const nnc_source *source, nnc_module **module)
{
    Parsing parsing = {source, NULL};
    nnc_result result = session_call(session, work_parse, &parsing);
    *module = parsing.module;
    return result;
}

const nnc_graph *nnc_module_graph(const nnc_module *module, uint32_t index)
{
    return index < module->module->graph_count ? &module->graph[index] : NULL;
}

const nnc_param *nnc_module_param(const nnc_module *module, uint32_t index)
{
    return index < module->weights.wanted.count ? &module->param[index] : NULL;
}

const char *nnc_module_file(const nnc_module *module, uint32_t index)
{
    uint32_t files = module->module->file_count;
    if (index < files)
        return module->module->file[index].ptr;
    return index == files && module->weights_path.len ? module->weights_path.ptr : NULL;
}

typedef struct GraphCall {
    nnc_module *module;
    uint32_t graph;
    const char *text; /* a result */
    const void *const *input;
    void *const *output;
} GraphCall;

static Graph *find_graph(const GraphCall *call)
{
    const Module *module = call->module->module;
    if (call->graph < module->graph_count)
        return module->graph[call->graph];
    session_misuse(call->module->session, "graph %u of %u", call->graph, module->graph_count);
    return NULL;
}

static nnc_result work_text(nnc_session *session, void *argument)
{
    GraphCall *call = argument;
    const Graph *graph = find_graph(call);
    Text text = {0};

    if (!graph)
        return NNC_RESULT_USE;
    nnc_print_graph(&text, graph);
    call->text = session_keep(session, &text);
    return NNC_RESULT_OK;
}

nnc_result nnc_graph_text(nnc_module *module, uint32_t graph, const char **text)
{
    GraphCall call = {.module = module, .graph = graph};
    nnc_result result = session_call(module->session, work_text, &call);
    *text = call.text;
    return result;
}

static void evaluate(Graph *graph, const GraphCall *call)
{
    Arena scratch = {0};
    const nnc_graph *info = &call->module->graph[call->graph];
    const Tensor **input = ARENA_ARRAY(&scratch, const Tensor *, graph->input_count);
    const Tensor **output = ARENA_ARRAY(&scratch, const Tensor *, graph->output_count);

    for (uint32_t i = 0; i < graph->input_count; i++) {
        Tensor *tensor = tensor_new(&scratch, value_type(graph, graph->input[i]));
        if (info->input[i].bytes)
            memcpy(tensor->data, call->input[i], info->input[i].bytes);
        input[i] = tensor;
    }
    eval_graph(graph, &scratch, input, output, NULL);
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (info->output[i].bytes)
            memcpy(call->output[i], output[i]->data, info->output[i].bytes);
    arena_free(&scratch);
}

static nnc_result work_evaluate(nnc_session *session, void *argument)
{
    GraphCall *call = argument;
    Graph *graph = find_graph(call);

    if (!graph)
        return NNC_RESULT_USE;
    if (call->module->shapes_only)
        return session_misuse(session, "a model parsed for its shapes only cannot be evaluated");
    if (!prepare_fits_memory(graph))
        return NNC_RESULT_INPUT;
    Graph *reference = pass_reference(graph);
    if (!reference)
        return NNC_RESULT_INPUT;
    evaluate(reference, call);
    return NNC_RESULT_OK;
}

nnc_result nnc_graph_evaluate(nnc_module *module, uint32_t graph, const void *const *input, void *const *output)
{
    GraphCall call = {.module = module, .graph = graph, .input = input, .output = output};
    return session_call(module->session, work_evaluate, &call);
}
