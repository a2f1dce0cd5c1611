/* Inputs of the model: their extents are numbers, or names that flags give values; flags make some of them constants. A
 * sequence is as many tensors, x.0, x.1, and whether an optional has a value is known. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "onnx/narrow.h"

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Extents */

/* A negative one is open, as runtimes take it. */
static bool is_stated(const Onnx__TensorShapeProto__Dimension *dim)
{
    return dim->has_dim_value && dim->dim_value >= 0;
}

static bool read_extent(Onnx *onnx, uint32_t flag, int64_t *extent)
{
    const Define *define = &onnx->options->define[flag];
    const char *text = str_format(onnx->arena, STR_FMT, STR_ARG(define->value)).ptr;
    char *end;
    onnx->define_used[flag] = true;
    *extent = strtoll(text, &end, 10);
    return (!*end && *text && *extent >= 0 && *extent <= INT32_MAX) ||
           onnx_fail(onnx, "-D " STR_FMT "=" STR_FMT ": an extent is a whole number", STR_ARG(define->name),
                     STR_ARG(define->value));
}

static bool is_whole(Str text)
{
    for (uint32_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len > 0;
}

/* Of a flag of this name: that of an extent, or of its position in an input.  Where an input has the name, too, what is
 * no number is the input. */
static bool take_named(Onnx *onnx, Str name, int64_t *extent)
{
    bool input = name.len && map_get(&onnx->inputs, name) != MAP_NONE;
    for (uint32_t i = 0; name.len && !onnx->failed && i < onnx->options->define_count; i++) {
        const Define *define = &onnx->options->define[i];
        if (!define->file && str_eq(define->name, name) && (!input || is_whole(define->value)))
            return read_extent(onnx, i, extent);
    }
    return false;
}

/* Of a flag, or a file, for extent d of an input. */
static bool take_position(Onnx *onnx, const char *input, uint32_t rank, uint32_t d, int64_t *extent)
{
    if (take_named(onnx, str_format(onnx->arena, "%s.%u", input, d), extent) ||
        take_named(onnx, str_format(onnx->arena, "%s.%u", onnx_identifier(onnx, input), d), extent))
        return true;
    for (uint32_t i = 0; !onnx->failed && i < onnx->options->define_count; i++)
        if (nnc_file_extent(&onnx->options->define[i], str_from(input), rank, d, extent) ||
            nnc_file_extent(&onnx->options->define[i], str_from(onnx_identifier(onnx, input)), rank, d, extent))
            return true;
    return false;
}

/* Names may have a `=` of their own. */
static bool flag_names(Str flag, Str name)
{
    return flag.len > name.len && memcmp(flag.ptr, name.ptr, name.len) == 0 && flag.ptr[name.len] == '=';
}

static Str flag_of(const Onnx *onnx, Str name)
{
    for (uint32_t i = 0; i < onnx->options->shape_count; i++) {
        Str flag = onnx->options->shape[i];
        if (flag_names(flag, name))
            return (Str){flag.ptr + name.len + 1, flag.len - name.len - 1};
    }
    return (Str){0};
}

/* `image=1x3x224x224`: the part behind the name, of the file or of the text; empty where no flag has it. */
static Str shape_flag(Onnx *onnx, const char *input)
{
    Str flag = flag_of(onnx, str_from(input));
    return flag.len ? flag : flag_of(onnx, str_from(onnx_identifier(onnx, input)));
}

static bool parse_shape(Onnx *onnx, Str flag, Shape *shape)
{
    const char *at = str_copy(onnx->arena, flag).ptr;
    char *end;
    *shape = (Shape){0};
    for (; *at && !str_is(flag, "scalar"); at = *end ? end + 1 : end) {
        int64_t extent = strtoll(at, &end, 10);
        bool last = !*end, more = (*end == 'x' || *end == ',') && end[1];
        if (end == at || (!last && !more) || extent < 0 || extent > INT32_MAX || shape->rank == MAX_RANK)
            return onnx_fail(onnx, "--shape wants extents such as 1x3x224x224, not " STR_FMT, STR_ARG(flag));
        shape->dim[shape->rank++] = extent;
    }
    return true;
}

/* What --shape of the input, else a flag or a file for that extent of it, makes an extent of this name. */
static bool extent_within(Onnx *onnx, const Onnx__ValueInfoProto *input, const char *symbol, int64_t *extent)
{
    const Onnx__TensorShapeProto *stated =
        input->type && input->type->tensor_type ? input->type->tensor_type->shape : NULL;
    Str flag = shape_flag(onnx, text_of(input->name));
    Shape shape;
    if (!stated || (flag.len && (!parse_shape(onnx, flag, &shape) || shape.rank != stated->n_dim)))
        return false;
    uint32_t rank = (uint32_t)stated->n_dim;
    for (uint32_t d = 0; d < rank; d++) {
        if (strcmp(text_of(stated->dim[d]->dim_param), symbol) != 0)
            continue;
        if (flag.len)
            *extent = shape.dim[d];
        if (flag.len || take_position(onnx, text_of(input->name), rank, d, extent))
            return true;
    }
    return false;
}

/* What the first input makes it whose flags or file give an extent of this name. */
static bool shared_extent(Onnx *onnx, const char *symbol, int64_t *extent)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    for (size_t i = 0; *symbol && !onnx->failed && i < graph->n_input; i++)
        if (extent_within(onnx, graph->input[i], symbol, extent))
            return true;
    return false;
}

/* An extent that --shape gives has a name: whatever else gives one of that name must agree. */
static bool agrees(Onnx *onnx, const char *input, uint32_t d, const char *symbol, int64_t extent)
{
    int64_t other;
    bool given = take_named(onnx, str_from(symbol), &other) || shared_extent(onnx, symbol, &other);
    if (onnx->failed || !given || other == extent)
        return !onnx->failed;
    return onnx_fail(onnx, "--shape %s: its extent %u is called %s, which another flag or a file makes %lld", input, d,
                     symbol, (long long)other);
}

/* All of a file's, for an input of which the model states none. */
static bool take_file(Onnx *onnx, const char *input, Shape *shape)
{
    for (uint32_t i = 0; i < onnx->options->define_count; i++) {
        const Define *define = &onnx->options->define[i];
        if (define->file &&
            (!define->name.len || str_is(define->name, input) || str_is(define->name, onnx_identifier(onnx, input)))) {
            *shape = *define->file;
            return true;
        }
    }
    return false;
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
    Str flag = shape_flag(onnx, name);
    if (flag.len && !parse_shape(onnx, flag, shape))
        return false;
    if (!stated && !flag.len && take_file(onnx, name, shape))
        return true;
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
        bool given = flag.len || take_named(onnx, str_from(symbol), &shape->dim[d]) ||
                     (!is_stated(dim) && take_position(onnx, name, shape->rank, d, &shape->dim[d])) ||
                     shared_extent(onnx, symbol, &shape->dim[d]);
        if (flag.len && *symbol && !agrees(onnx, name, d, symbol, shape->dim[d]))
            return false;
        if (onnx->failed || (!given && !is_stated(dim)))
            return !onnx->failed && open_extent(onnx, name, d, symbol);
        if (is_stated(dim) && flag.len && shape->dim[d] != dim->dim_value)
            return onnx_fail(onnx, "--shape %s=" STR_FMT ": its extent %u is %lld", name, STR_ARG(flag), d,
                             (long long)dim->dim_value);
        if (is_stated(dim))
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

static bool has_symbol(const Onnx__ValueInfoProto *input, const char *symbol)
{
    const Onnx__TypeProto__TensorType *tensor = input->type ? input->type->tensor_type : NULL;
    for (size_t d = 0; tensor && tensor->shape && d < tensor->shape->n_dim; d++)
        if (strcmp(text_of(tensor->shape->dim[d]->dim_param), symbol) == 0)
            return true;
    return false;
}

static bool is_one_number(const Onnx__ValueInfoProto *input)
{
    const Onnx__TypeProto__TensorType *tensor = input->type ? input->type->tensor_type : NULL;
    for (size_t d = 0; tensor && tensor->shape && d < tensor->shape->n_dim; d++)
        if (!is_stated(tensor->shape->dim[d]) || tensor->shape->dim[d]->dim_value != 1)
            return false;
    return tensor && tensor->shape;
}

/* `-D n=3`, where an extent is called as the input, is the extent; but a number that is an input may be both. */
static bool means_extent(const Onnx *onnx, const Onnx__ValueInfoProto *input, const Define *define)
{
    const char *name = text_of(input->name);
    bool symbol = false;
    for (size_t i = 0; i < onnx->model->graph->n_input; i++)
        symbol |= has_symbol(onnx->model->graph->input[i], name);
    return symbol && is_whole(define->value) && !is_one_number(input);
}

/* `-D axes=[0,2]` makes a constant of an input, by its name in the file or in the text. */
static const Define *constant_flag(Onnx *onnx, const Onnx__ValueInfoProto *input)
{
    const char *name = text_of(input->name);
    for (uint32_t i = 0; i < onnx->options->define_count; i++) {
        const Define *define = &onnx->options->define[i];
        bool named = str_is(define->name, name) || str_is(define->name, onnx_identifier(onnx, name));
        if (!named || define->file || means_extent(onnx, input, define))
            continue;
        onnx->define_used[i] = true;
        return define;
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
        bool given = is_stated(stated->dim[d]);
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

static OnnxValue *add_input(Onnx *onnx, const char *name, const Type *type, int32_t stated)
{
    OnnxValue *value = onnx_value_new(onnx);
    *value = (OnnxValue){
        .type = type, .name = onnx_unique(onnx, name), .home = onnx->root, .narrow = onnx_narrow(stated) ? stated : 0};
    onnx_note_renamed(onnx, name, str_from(value->name));
    nnc_compose_input(onnx->composer, str_from(value->name), type);
    return value;
}

/* Sequences and optionals */

/* One tensor of a sequence: its extents stand in the flag. */
static OnnxValue *import_item(Onnx *onnx, const char *name, const Onnx__TypeProto__TensorType *stated, Str extents)
{
    Shape shape;
    DType dtype;
    int64_t elements;
    if (!stated || !onnx_dtype(stated->elem_type, &dtype))
        return onnx_fail(onnx, "input '%s': its items are %s, which is not supported", name,
                         stated ? onnx_dtype_name(stated->elem_type) : "no tensors"),
               NULL;
    if (str_is(extents, "scalar"))
        shape = (Shape){0};
    else if (!parse_shape(onnx, extents, &shape))
        return NULL;
    if (!shape_checked_elements(&shape, &elements) || elements > INT64_MAX / 8)
        return onnx_fail(onnx, "input '%s': its shape is no shape", name), NULL;
    return add_input(onnx, name, module_type(onnx->module, dtype, &shape, (Layout){0}), stated->elem_type);
}

/* `[2x3,4,scalar]`: a tensor for each entry */
static bool import_sequence(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *items, Str flag)
{
    OnnxValue *value = onnx_value_new(onnx), **item = NULL;
    uint32_t count = 0, capacity = 0;
    if (flag.len < 2 || *flag.ptr != '[' || flag.ptr[flag.len - 1] != ']')
        return onnx_fail(onnx,
                         "input '%s' is a sequence; give the extents of its tensors, or [] for none, with --shape "
                         "%s=[2x3,4]",
                         name, name);
    for (uint32_t at = 1; flag.len > 2 && at < flag.len; at++) {
        uint32_t begin = at;
        while (flag.ptr[at] != ',' && at + 1 < flag.len)
            at++;
        const char *label = str_format(onnx->arena, "%s.%u", name, count).ptr;
        OnnxValue *one =
            import_item(onnx, label, items ? items->tensor_type : NULL, (Str){flag.ptr + begin, at - begin});
        if (!one)
            return false;
        ARENA_PUSH(onnx->arena, item, count, capacity, one);
    }
    *value = (OnnxValue){.sequence = true, .item = item, .item_count = count};
    onnx_bind(scope, onnx, name, value);
    return true;
}

static bool import_input(Onnx *onnx, OnnxScope *scope, const Onnx__ValueInfoProto *input);

/* An optional has a value, unless the flag says `none`. */
static bool import_optional(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *type, Str flag)
{
    OnnxValue *value = onnx_value_new(onnx);
    if (str_is(flag, "none")) {
        *value = (OnnxValue){.absent = true};
        onnx_bind(scope, onnx, name, value);
        return true;
    }
    Onnx__ValueInfoProto input = ONNX__VALUE_INFO_PROTO__INIT;
    input.name = (char *)(uintptr_t)name;
    input.type = (Onnx__TypeProto *)(uintptr_t)type;
    return type ? import_input(onnx, scope, &input)
                : onnx_fail(onnx, "input '%s' is an optional of nothing; say --shape %s=none", name, name);
}

static bool import_list(Onnx *onnx, OnnxScope *scope, const char *name, const Onnx__TypeProto *type)
{
    Str flag = shape_flag(onnx, name);
    if (type->sequence_type)
        return import_sequence(onnx, scope, name, type->sequence_type->elem_type, flag);
    return import_optional(onnx, scope, name, type->optional_type->elem_type, flag);
}

static bool import_input(Onnx *onnx, OnnxScope *scope, const Onnx__ValueInfoProto *input)
{
    const char *name = text_of(input->name);
    const Define *constant = constant_flag(onnx, input);
    if (onnx_lookup_here(scope, onnx, name))
        return onnx_fail(onnx, "two inputs are called '%s'", name);
    if (constant)
        return import_constant(onnx, scope, input, constant);
    if (input->type && !input->type->tensor_type && (input->type->sequence_type || input->type->optional_type))
        return import_list(onnx, scope, name, input->type);
    const Type *type = input_type(onnx, input);
    OnnxValue *value = type ? add_input(onnx, name, type, input->type->tensor_type->elem_type) : NULL;
    if (!value)
        return false;
    onnx_bind(scope, onnx, name, value);
    return !value->most || onnx_bounded_number(onnx, value);
}

/* A misspelt flag would only leave an extent open, or nothing at all; the one input that it can mean is told. */
static bool check_shape_flag(Onnx *onnx, const Map *weights, Str flag)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    const char *only = NULL;
    uint32_t count = 0;
    for (size_t i = 0; i < graph->n_input; i++) {
        Str name = str_from(text_of(graph->input[i]->name));
        if (map_get(weights, name) != MAP_NONE)
            continue;
        if (flag_names(flag, name) || flag_names(flag, str_from(onnx_identifier(onnx, name.ptr))))
            return true;
        only = name.ptr;
        count++;
    }
    return onnx_fail(onnx, "--shape " STR_FMT ": no input has this name%s%s%s", STR_ARG(flag),
                     count == 1 ? "; the input is '" : "", count == 1 ? only : "", count == 1 ? "'" : "");
}

/* Initialisers may be inputs, too, as defaults: they stay what they are. */
bool onnx_import_inputs(Onnx *onnx, OnnxScope *scope)
{
    const Onnx__GraphProto *graph = onnx->model->graph;
    Map weights = {.arena = onnx->arena};
    for (size_t i = 0; i < graph->n_initializer; i++)
        map_put(&weights, str_from(text_of(graph->initializer[i]->name)), 0);
    for (uint32_t i = 0; i < onnx->options->shape_count; i++)
        if (!check_shape_flag(onnx, &weights, onnx->options->shape[i]))
            return false;
    for (size_t i = 0; i < graph->n_input; i++)
        if (map_get(&weights, str_from(text_of(graph->input[i]->name))) == MAP_NONE)
            import_input(onnx, scope, graph->input[i]);
    for (uint32_t i = 0; i < onnx->options->define_count; i++)
        if (!onnx->define_used[i] && !onnx->options->define[i].file && !onnx->failed)
            onnx_fail(onnx, "-D " STR_FMT ": no input has an open extent of this name",
                      STR_ARG(onnx->options->define[i].name));
    return !onnx->failed && onnx_import_initialisers(onnx, scope, graph);
}
