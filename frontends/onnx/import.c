/* A model of ONNX as a module: the file, the inputs, the nodes, the outputs. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "onnx/body.h"
#include "onnx/narrow.h"
#include "onnx/wire.h"

#define MOST_WORK    1000000000 /* operations to evaluate what is known: some seconds */
#define NEWEST_OPSET 28
#define OLDEST_OPSET 1 /* each op says from which on it is read; what is older broadcasts in other ways */

static const char *text_of(const char *text)
{
    return text ? text : "";
}

bool onnx_fail(Onnx *onnx, const char *format, ...)
{
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    onnx->failed = true;
    diag_file_error(onnx->diag, onnx->path, "%s", text.ptr);
    text_free(&text);
    return false;
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

/* Inputs: their extents are numbers, or names that flags give values */

static bool take_extent(Onnx *onnx, Str name, int64_t *extent)
{
    for (uint32_t i = 0; i < onnx->options->define_count; i++) {
        const Define *define = &onnx->options->define[i];
        if (!str_eq(define->name, name))
            continue;
        onnx->define_used[i] = true;
        char *end,
            *text = str_copy(onnx->arena, define->value).ptr ? (char *)str_copy(onnx->arena, define->value).ptr : "";
        *extent = strtoll(text, &end, 10);
        if (*end || *extent < 0 || *extent > INT32_MAX || !*text)
            return onnx_fail(onnx, "-D " STR_FMT "=" STR_FMT ": an extent is a whole number", STR_ARG(name),
                             STR_ARG(define->value));
        return true;
    }
    return false;
}

/* `image=1x3x224x224`: the part behind the name; empty where no flag has it. */
Str onnx_shape_flag(const Onnx *onnx, const char *input)
{
    Str name = str_from(input);
    for (uint32_t i = 0; i < onnx->options->shape_count; i++) {
        Str flag = onnx->options->shape[i];
        bool named = flag.len > name.len && memcmp(flag.ptr, name.ptr, name.len) == 0 && flag.ptr[name.len] == '=';
        if (named)
            return (Str){flag.ptr + name.len + 1, flag.len - name.len - 1};
    }
    return (Str){0};
}

bool onnx_parse_shape(Onnx *onnx, Str flag, Shape *shape)
{
    const char *at = str_copy(onnx->arena, flag).ptr;
    char *end;
    *shape = (Shape){0};
    for (; *at; at = *end ? end + 1 : end) {
        int64_t extent = strtoll(at, &end, 10);
        if (end == at || (*end && *end != 'x' && *end != ',') || extent < 0 || extent > INT32_MAX ||
            shape->rank == MAX_RANK)
            return onnx_fail(onnx, "--shape wants extents such as 1x3x224x224, not " STR_FMT, STR_ARG(flag));
        shape->dim[shape->rank++] = extent;
    }
    return true;
}

static bool open_extent(Onnx *onnx, const char *input, uint32_t d, const char *symbol)
{
    const char *at = str_format(onnx->arena, "%s.%u", input, d).ptr;
    return onnx_fail(onnx, "input '%s': its extent %u is %s%s; give it with -D %s=N, or all with --shape %s=1x3x...",
                     input, d, *symbol ? "called " : "open", symbol, *symbol ? symbol : at, input);
}

/* One that the model states, or that a flag gives; a flag also may agree with the model. */
static bool input_shape(Onnx *onnx, const char *name, const Onnx__TensorShapeProto *stated, Shape *shape)
{
    Str flag = onnx_shape_flag(onnx, name);
    if (flag.len && !onnx_parse_shape(onnx, flag, shape))
        return false;
    if (!stated)
        return flag.len || onnx_fail(onnx, "input '%s' has no shape; give it with --shape %s=1x3x...", name, name);
    if (stated->n_dim > MAX_RANK)
        return onnx_fail(onnx, "input '%s' has %zu dimensions; at most %d are supported", name, stated->n_dim,
                         MAX_RANK);
    if (flag.len && shape->rank != stated->n_dim)
        return onnx_fail(onnx, "--shape %s=" STR_FMT ": it has %zu dimensions", name, STR_ARG(flag), stated->n_dim);
    shape->rank = (uint32_t)stated->n_dim;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = stated->dim[d];
        const char *symbol = text_of(dim->dim_param);
        Str at = str_format(onnx->arena, "%s.%u", name, d);
        bool given = flag.len || (*symbol && take_extent(onnx, str_from(symbol), &shape->dim[d])) ||
                     (!dim->has_dim_value && !onnx->failed && take_extent(onnx, at, &shape->dim[d]));
        if (onnx->failed || (!given && !dim->has_dim_value))
            return !onnx->failed && open_extent(onnx, name, d, symbol);
        if (dim->has_dim_value && flag.len && shape->dim[d] != dim->dim_value)
            return onnx_fail(onnx, "--shape %s=" STR_FMT ": its extent %u is %lld", name, STR_ARG(flag), d,
                             (long long)dim->dim_value);
        if (dim->has_dim_value)
            shape->dim[d] = dim->dim_value;
    }
    return true;
}

static const Type *input_type(Onnx *onnx, const Onnx__ValueInfoProto *input)
{
    const char *name = text_of(input->name);
    const Onnx__TypeProto__TensorType *tensor = input->type ? input->type->tensor_type : NULL;
    Shape shape;
    DType dtype;
    int64_t elements;

    if (!tensor)
        return onnx_fail(onnx, "input '%s' is no tensor", name), NULL;
    if (!onnx_dtype(tensor->elem_type, &dtype))
        return onnx_fail(onnx, "input '%s' is %s, which is not supported", name, onnx_dtype_name(tensor->elem_type)),
               NULL;
    if (!input_shape(onnx, name, tensor->shape, &shape))
        return NULL;
    if (!shape_checked_elements(&shape, &elements) || elements > INT64_MAX / 8)
        return onnx_fail(onnx, "input '%s': its shape is no shape", name), NULL;
    return module_type(onnx->module, dtype, &shape, (Layout){0});
}

/* `-D axes=[0,2]` makes a constant of an input. */
static const Define *constant_flag(Onnx *onnx, const char *name)
{
    for (uint32_t i = 0; i < onnx->options->define_count; i++)
        if (str_is(onnx->options->define[i].name, name)) {
            onnx->define_used[i] = true;
            return &onnx->options->define[i];
        }
    return NULL;
}

/* Of so many elements; one extent may be open. */
static bool constant_shape(const Onnx__TensorShapeProto *stated, int64_t count, Shape *shape)
{
    uint32_t open = MAX_RANK;
    int64_t elements;
    *shape = (Shape){.rank = stated ? (uint32_t)least(stated->n_dim, MAX_RANK) : count != 1, .dim = {count}};
    for (uint32_t d = 0; stated && d < shape->rank; d++) {
        bool given = stated->dim[d]->has_dim_value;
        shape->dim[d] = given ? stated->dim[d]->dim_value : 1;
        open = given ? open : d;
    }
    if (!shape_checked_elements(shape, &elements))
        return false;
    if (open < MAX_RANK && elements)
        shape->dim[open] = count / elements;
    return shape_checked_elements(shape, &elements) && elements == count;
}

static bool import_constant(Onnx *onnx, OnnxScope *scope, const Onnx__ValueInfoProto *input, const Define *define)
{
    const char *name = text_of(input->name);
    const Onnx__TypeProto__TensorType *type = input->type ? input->type->tensor_type : NULL;
    Tensor *tensor = ARENA_NEW(onnx->arena, Tensor);
    double *list = NULL;
    uint32_t count = 0, capacity = 0;
    Shape shape;
    DType dtype;

    if (!type || !onnx_dtype(type->elem_type, &dtype))
        return onnx_fail(onnx, "-D %s: the input is no tensor of numbers", name);
    for (const char *at = str_copy(onnx->arena, define->value).ptr; *at;) {
        char *end;
        double number = strtod(at, &end);
        if (end == at && !strchr("[], ", *at))
            return onnx_fail(onnx, "-D %s=" STR_FMT ": a constant is a number or a list of them, [1,2]", name,
                             STR_ARG(define->value));
        if (end != at)
            ARENA_PUSH(onnx->arena, list, count, capacity, number);
        at = end == at ? at + 1 : end;
    }
    if (!constant_shape(type->shape, count, &shape))
        return onnx_fail(onnx, "-D %s=" STR_FMT ": its %u elements do not fill the input's shape", name,
                         STR_ARG(define->value), count);
    *tensor = *tensor_new(onnx->arena, module_type(onnx->module, dtype, &shape, (Layout){0}));
    for (uint32_t i = 0; i < count; i++)
        tensor_set_number(tensor, i, list[i]);
    onnx_bind(scope, onnx, name, onnx_known_value(onnx, tensor, name));
    return true;
}

bool onnx_import_input(Onnx *onnx, OnnxScope *scope, const Onnx__ValueInfoProto *input)
{
    const char *name = text_of(input->name);
    const Define *constant = constant_flag(onnx, name);
    if (onnx_lookup_here(scope, onnx, name))
        return onnx_fail(onnx, "two inputs are called '%s'", name);
    if (constant)
        return import_constant(onnx, scope, input, constant);
    if (input->type && !input->type->tensor_type && (input->type->sequence_type || input->type->optional_type))
        return onnx_import_list(onnx, scope, name, input->type);
    const Type *type = input_type(onnx, input);
    if (type)
        onnx_bind(scope, onnx, name, onnx_add_input(onnx, name, type, input->type->tensor_type->elem_type));
    return type != NULL;
}

OnnxValue *onnx_add_input(Onnx *onnx, const char *name, const Type *type, int32_t stated)
{
    OnnxValue *value = onnx_value_new(onnx);
    *value = (OnnxValue){
        .type = type, .name = onnx_unique(onnx, name), .home = onnx->root, .narrow = onnx_narrow(stated) ? stated : 0};
    nnc_compose_input(onnx->composer, str_from(value->name), type);
    return value;
}

/* Initialisers may be inputs, too, as defaults: they stay what they are. */
static bool import_inputs(Onnx *onnx, OnnxScope *scope)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    Map weights = {.arena = onnx->arena};
    for (size_t i = 0; i < graph->n_initializer; i++)
        map_put(&weights, str_from(text_of(graph->initializer[i]->name)), 0);
    for (size_t i = 0; i < graph->n_input; i++)
        if (map_get(&weights, str_from(text_of(graph->input[i]->name))) == MAP_NONE)
            onnx_import_input(onnx, scope, graph->input[i]);
    for (uint32_t i = 0; i < onnx->options->define_count; i++)
        if (!onnx->define_used[i] && !onnx->failed)
            onnx_fail(onnx, "-D " STR_FMT ": no input has an open extent of this name",
                      STR_ARG(onnx->options->define[i].name));
    return !onnx->failed && onnx_import_initialisers(onnx, scope, graph);
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
    bool good = import_inputs(onnx, scope) && onnx_import_nodes(onnx, scope, graph->node, graph->n_node);
    if (!onnx_report_refusals(onnx) || !good || !onnx_import_outputs(onnx, scope, results))
        return NULL;
    return nnc_compose_close(onnx->composer, results->name, results->count);
}

static bool import_model(Onnx *onnx, OnnxModel *model)
{
    OnnxBlock root = {0};
    OnnxScope scope = {.value = {.arena = onnx->arena},
                       .opset = (const Onnx__OperatorSetIdProto *const *)onnx->model->opset_import,
                       .opset_count = onnx->model->n_opset_import};
    OnnxResults results = {0};

    onnx->names.arena = onnx->made.arena = onnx->labels.arena = onnx->declared.arena = onnx->constants.arena =
        onnx->arena;
    onnx_count_uses(onnx);
    onnx->block = onnx->root = &root;
    onnx->composer = nnc_compose(onnx->arena, onnx->diag, onnx->path);
    onnx->module = nnc_compose_module(onnx->composer);
    nnc_compose_open(onnx->composer, str_from(graph_name(onnx)));
    Graph *graph = import_graph(onnx, &scope, &results);
    if (graph)
        model->module = onnx_finish(onnx, graph, results.name, &model->text);
    text_free(&root.text);
    nnc_compose_end(onnx->composer);
    return model->module != NULL;
}

static void keep_files(const Onnx *onnx, OnnxModel *model)
{
    model->map = ARENA_ARRAY(onnx->arena, FileMap, onnx->files.count + 1);
    model->map_count = onnx->files.count;
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
                 .define_used = ARENA_ARRAY(arena, bool, options->define_count + 1)};
    uint32_t errors = diag->error_count;

    *model = (OnnxModel){0};
    if (read_model(&onnx) && check_opsets(&onnx))
        import_model(&onnx, model);
    keep_files(&onnx, model);
    return diag->error_count == errors;
}
