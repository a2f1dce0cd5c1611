#include "formats/weights.h"

#include <inttypes.h>
#include <string.h>

#include "formats/safetensors.h"

#define NOTE_NAMES 5 /* of tensors that the model does not have */

typedef struct Loader {
    Module *module;
    Str path;
    Safetensors file;
    bool *used; /* per tensor of the file */
    bool need_params;
} Loader;

static void show_stored(Text *out, const StoredTensor *t)
{
    text_str(out, t->dtype_name);
    text_char(out, '[');
    for (uint32_t d = 0; d < t->shape.rank && d < MAX_RANK; d++)
        text_printf(out, "%s%" PRId64, d ? ", " : "", t->shape.dim[d]);
    text_printf(out, "%s]", t->shape.rank > MAX_RANK ? ", ..." : "");
}

static void complain_of_type(Loader *l, const Value *value, Str name, const StoredTensor *t)
{
    Text got = {0};
    show_stored(&got, t);
    diag_error(l->module->diag, value->place, STR_FMT " is " STR_FMT ", but " STR_FMT " holds %s", STR_ARG(name),
               STR_ARG(type_show(l->module->arena, value->type)), STR_ARG(l->path), got.ptr);
    text_free(&got);
}

/* Elements in the mapping; copied where they do not lie at a multiple of their size, or are bools to be checked. */
static const Tensor *adopt(Loader *l, const Value *value, const StoredTensor *t)
{
    const unsigned char *bytes = l->file.bytes + t->begin;
    size_t size = (size_t)(t->end - t->begin);

    for (size_t i = 0; t->dtype == DT_BOOL && i < size; i++)
        if (bytes[i] > 1) {
            diag_file_error(l->module->diag, l->path, "tensor " STR_FMT ": a bool is %u, neither 0 nor 1",
                            STR_ARG(t->name), bytes[i]);
            return NULL;
        }
    Tensor *tensor = ARENA_NEW(l->module->arena, Tensor);
    tensor->type = value->type;
    bool aligned = (uintptr_t)bytes % dtype_bytes(t->dtype) == 0;
    tensor->data = aligned ? (void *)(uintptr_t)bytes : arena_copy(l->module->arena, bytes, size);
    return tensor;
}

static void complain_of_absence(Loader *l, const Value *value, Str name)
{
    const char *kind = value->role == ROLE_PARAM ? "param" : value->role == ROLE_STATE ? "state" : "constant";
    if (!l->path.len)
        diag_error(l->module->diag, value->place,
                   "%s " STR_FMT " has no initialiser, and there is no file of stored weights", kind, STR_ARG(name));
    else
        diag_error(l->module->diag, value->place, "%s " STR_FMT " has no initialiser, and " STR_FMT " does not hold it",
                   kind, STR_ARG(name), STR_ARG(l->path));
}

static void fill_value(Loader *l, const Graph *graph, ValueId id)
{
    Value *value = graph_value(graph, id);
    bool param = value->role == ROLE_PARAM || value->role == ROLE_STATE;
    bool open = value->role == ROLE_CONST && value->data && !value->data->data && shape_elements(&value->type->shape);

    if ((!param && !open) || !value->type)
        return;
    Str name = value_show(graph, id);
    uint32_t found = map_get(&l->file.by_name, name);
    if (found == MAP_NONE) {
        if (open || (l->need_params && value->initial == NONE && !value->data))
            complain_of_absence(l, value, name);
        return;
    }
    const StoredTensor *t = &l->file.tensor[found];
    l->used[found] = true;
    if (t->dtype != value->type->dtype || t->shape.rank > MAX_RANK || !shape_eq(&t->shape, &value->type->shape)) {
        complain_of_type(l, value, name, t);
        return;
    }
    const Tensor *tensor = adopt(l, value, t);
    if (tensor)
        value->data = tensor;
}

/* Recurses over the nesting of sub-graphs. */
static void fill_graph(Loader *l, const Graph *graph)
{
    for (ValueId id = 0; id < graph->value_count; id++)
        fill_value(l, graph, id);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            fill_graph(l, graph->node[n].sub[s]);
}

static void note_unused(Loader *l)
{
    uint32_t unused = 0;
    Text names = {0};
    for (uint32_t i = 0; i < l->file.count; i++)
        if (!l->used[i] && unused++ < NOTE_NAMES)
            text_printf(&names, "%s" STR_FMT, unused > 1 ? ", " : "", STR_ARG(l->file.tensor[i].name));
    if (unused)
        diag_note(l->module->diag, (Place){0}, STR_FMT " holds %u tensor%s that the model does not have: %s%s",
                  STR_ARG(l->path), unused, unused > 1 ? "s" : "", names.ptr, unused > NOTE_NAMES ? ", ..." : "");
    text_free(&names);
}

bool weights_load(Module *module, Str path, bool need_params, FileMap *map)
{
    Loader loader = {.module = module, .path = path, .need_params = need_params};
    uint32_t errors = module->diag->error_count;

    *map = (FileMap){0};
    if (path.len && (!file_map(module->diag, path, map) ||
                     !safetensors_parse(module->arena, module->diag, path, map->bytes, map->size, &loader.file)))
        return false;
    loader.used = ARENA_ARRAY(module->arena, bool, loader.file.count + 1);
    for (uint32_t g = 0; g < module->graph_count; g++)
        fill_graph(&loader, module->graph[g]);
    note_unused(&loader);
    return errors == module->diag->error_count;
}

Str weights_path_beside(Arena *arena, Str model)
{
    uint32_t stem = model.len;
    for (uint32_t i = model.len; i-- > 0 && model.ptr[i] != '/';)
        if (model.ptr[i] == '.') {
            stem = i;
            break;
        }
    return str_format(arena, "%.*s.safetensors", (int)stem, model.ptr);
}

typedef struct Saver {
    bool (*stored)(const Value *value);
    Arena *arena;
    NamedTensor *list;
    uint32_t count, capacity;
} Saver;

static void collect(Saver *s, const Graph *graph)
{
    for (ValueId id = 0; id < graph->value_count; id++)
        if (s->stored(graph_value(graph, id)))
            ARENA_PUSH(s->arena, s->list, s->count, s->capacity,
                       ((NamedTensor){value_show(graph, id), graph_value(graph, id)->data}));
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].sub_count; i++)
            collect(s, graph->node[n].sub[i]);
}

bool weights_save(Module *module, Str path, bool (*stored)(const Value *value))
{
    Saver saver = {.stored = stored, .arena = module->arena};
    for (uint32_t g = 0; g < module->graph_count; g++)
        collect(&saver, module->graph[g]);
    return !saver.count || safetensors_write(module->diag, path, saver.list, saver.count);
}
