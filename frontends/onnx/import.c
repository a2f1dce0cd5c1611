/* A model of ONNX as a module: the file, the inputs, the nodes, the outputs. */
#include <string.h>

#include "onnx/import.h"
#include "onnx/wire.h"

#define MOST_WORK    1000000000 /* operations to evaluate what is known: some seconds */
#define NEWEST_OPSET 28
#define OLDEST_OPSET 1 /* each op says from which on it is read; what is older broadcasts in other ways */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* The file */

static bool read_model(Onnx *onnx)
{
    OnnxFile file = {.path = onnx->path};
    if (!file_map(onnx->diag, onnx->path, &file.map))
        return false;
    ARENA_PUSH(onnx->arena, onnx->files.file, onnx->files.count, onnx->files.capacity, file);
    onnx->model = (const Onnx__ModelProto *)wire_decode(onnx->arena, onnx->diag, onnx->path, &file.map,
                                                        &onnx__model_proto__descriptor);
    if (!onnx->model)
        return false;
    if (!onnx->model->graph || !onnx->model->has_ir_version)
        return onnx_fail(onnx, "no ONNX model: it has no graph");
    return true;
}

static bool check_opsets(Onnx *onnx)
{
    for (size_t i = 0; i < onnx->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *set = onnx->model->opset_import[i];
        bool own = !*text_of(set->domain) || strcmp(set->domain, "ai.onnx") == 0;
        if (own && (set->version < OLDEST_OPSET || set->version > NEWEST_OPSET))
            return onnx_fail(onnx, "it uses opset %lld: opsets %d to %d are known", (long long)set->version,
                             OLDEST_OPSET, NEWEST_OPSET);
    }
    return true;
}

/* The whole */

static const char *graph_name(Onnx *onnx)
{
    const char *name = text_of(onnx->model->graph->name);
    const char *plain = *name ? onnx_identifier(onnx, name) : "model";
    Text text = {0};
    for (; *plain; plain++)
        text_char(&text, *plain == '.' ? '_' : *plain);
    const char *copy = str_copy(onnx->arena, text_view(&text)).ptr;
    text_free(&text);
    return copy;
}

static Graph *import_graph(Onnx *onnx, OnnxScope *scope, OnnxResults *results)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    bool good = onnx_read_bounds(onnx) && onnx_import_inputs(onnx, scope) && onnx_count_runs(onnx) &&
                onnx_import_nodes(onnx, scope, graph->node, graph->n_node);
    good = (onnx->failed || onnx_check_bounds(onnx)) && good; /* a misspelt one may be why nodes are refused */
    if (!onnx_report_refusals(onnx) || !good || !onnx_import_outputs(onnx, scope, results))
        return NULL;
    return nnc_compose_close(onnx->composer, results->name, results->count);
}

static bool import_model(Onnx *onnx, OnnxModel *model)
{
    OnnxBlock root = {0};
    OnnxScope scope = {.value = {.arena = onnx->arena},
                       .opset = (const Onnx__OperatorSetIdProto *const *)onnx->model->opset_import,
                       .opset_count = onnx->model->n_opset_import,
                       .uses = &onnx->uses};
    OnnxResults results = {0};

    onnx->ops.arena = onnx->names.arena = onnx->made.arena = onnx->labels.arena = onnx->declared.arena =
        onnx->constants.arena = onnx->arena;
    onnx_count_uses(onnx);
    onnx_find_moved(onnx);
    onnx_find_weights(onnx);
    onnx_find_naming(onnx);
    onnx->block = onnx->root = &root;
    onnx->composer = nnc_compose(onnx->arena, onnx->diag, onnx->path);
    onnx->module = nnc_compose_module(onnx->composer);
    nnc_compose_open(onnx->composer, str_from(graph_name(onnx)));
    Graph *graph = import_graph(onnx, &scope, &results);
    nnc_compose_end(onnx->composer);
    if (graph)
        model->module = onnx_finish(onnx, graph, results.name, &model->text);
    text_free(&root.text);
    return model->module != NULL;
}

static void keep_files(const Onnx *onnx, OnnxModel *model)
{
    model->map = ARENA_ARRAY(onnx->arena, FileMap, onnx->files.count + 1);
    model->map_count = onnx->files.count;
    model->renamed = onnx->renamed;
    model->renamed_count = onnx->renamed_count;
    for (uint32_t i = 0; i < onnx->files.count; i++) {
        model->map[i] = onnx->files.file[i].map;
        if (model->module)
            module_add_file(model->module, onnx->files.file[i].path);
    }
}

bool onnx_import(Arena *arena, Diag *diag, Str path, const OnnxOptions *options, OnnxModel *model)
{
    path = str_copy(arena, path);
    Onnx onnx = {.arena = arena,
                 .diag = diag,
                 .path = path,
                 .options = options,
                 .files = {.arena = arena, .diag = diag, .path = path},
                 .work = MOST_WORK,
                 .calling = NONE,
                 .define_used = ARENA_ARRAY(arena, bool, options->define_count + 1)};
    uint32_t errors = diag->error_count;

    *model = (OnnxModel){0};
    if (read_model(&onnx) && check_opsets(&onnx))
        import_model(&onnx, model);
    keep_files(&onnx, model);
    return diag->error_count == errors;
}
