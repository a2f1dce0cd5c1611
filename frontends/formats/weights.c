#include "formats/weights.h"

#include <inttypes.h>

#include "formats/wanted.h"

#define NOTE_NAMES 5 /* of many, in a note of one line */

typedef struct Loader {
    Module *module;
    const WeightsOptions *options;
    WeightsFile *file;
    uint32_t params, missing; /* of the model; of those, that neither text nor file has elements for */
} Loader;

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

Str weights_show_stored(Arena *arena, const StoredTensor *t)
{
    Text out = {0};
    text_str(&out, t->dtype_name);
    text_char(&out, '[');
    for (uint32_t d = 0; d < t->shape.rank && d < MAX_RANK; d++)
        text_printf(&out, "%s%" PRId64, d ? ", " : "", t->shape.dim[d]);
    text_printf(&out, "%s]", t->shape.rank > MAX_RANK ? ", ..." : "");
    Str shown = str_copy(arena, text_view(&out));
    text_free(&out);
    return shown;
}

const char *weights_role(const WantedTensor *wanted)
{
    Role role = value_declared(weights_value(wanted));
    return role == ROLE_PARAM ? "param" : role == ROLE_STATE ? "state" : "const";
}

static const char *advice(WeightsFit fit)
{
    switch (fit) {
    case FIT_WIDTH:
        return "; --convert-weights converts it";
    case FIT_TRANSPOSED:
        return ", its transpose: dense is [in, out] here, and [out, in] in PyTorch and in ONNX's Gemm; store it "
               "transposed";
    case FIT_PERMUTED:
        return ", the same extents in another order";
    default:
        return "";
    }
}

/* What is wrong with single tensors */

static void complain_of_type(const Loader *l, const WantedTensor *w)
{
    Arena *arena = l->module->arena;
    diag_error(l->module->diag, weights_value(w)->place, STR_FMT " is " STR_FMT ", but " STR_FMT " holds " STR_FMT "%s",
               STR_ARG(w->name), STR_ARG(type_show(arena, weights_value(w)->type)), STR_ARG(l->options->path),
               STR_ARG(weights_show_stored(arena, w->stored)), advice(w->fit));
}

static void complain_of_absence(const Loader *l, const WantedTensor *w)
{
    const char *kind = weights_role(w);
    if (l->options->unread.len)
        diag_error(l->module->diag, weights_value(w)->place,
                   "%s " STR_FMT " has no initialiser; --weights-from " STR_FMT " begins with what is stored there",
                   kind, STR_ARG(w->name), STR_ARG(l->options->unread));
    else if (!l->options->path.len)
        diag_error(l->module->diag, weights_value(w)->place,
                   "%s " STR_FMT " has no initialiser, and there is no file of stored weights", kind, STR_ARG(w->name));
    else
        diag_error(l->module->diag, weights_value(w)->place,
                   "%s " STR_FMT " has no initialiser, and " STR_FMT " does not hold it", kind, STR_ARG(w->name),
                   STR_ARG(l->options->path));
}

/* Elements, or an initialiser for them, in the text itself */
static bool is_given(const WantedTensor *w)
{
    const Value *value = weights_value(w);
    return value->initial != NONE || (value->data && value->data->data);
}

/* What a model of ONNX brings itself is not missing, nor what has no elements; a list in the text stands for what a
 * file may have. */
static bool is_missing_param(const Loader *l, const WantedTensor *w)
{
    const Value *value = weights_value(w);
    return value->role == ROLE_PARAM && shape_elements(&value->type->shape) && !w->stored &&
           !(l->options->own && value->data && value->data->data);
}

static bool is_fine(const Loader *l, const WantedTensor *w)
{
    return w->fit == FIT_SAME || (w->fit == FIT_WIDTH && l->options->convert);
}

static const Tensor *taken_tensor(const Loader *l, const WantedTensor *w)
{
    const Tensor *tensor = weights_take(l->module, l->options->path, &l->file->stored, w);
    if (!tensor || !weights_value(w)->bits || tensor_fits_nibbles(tensor))
        return tensor;
    diag_file_error(l->module->diag, l->options->path, "tensor " STR_FMT ": it has elements that 4 bits do not hold",
                    STR_ARG(w->name));
    return NULL;
}

/* `strict`: params that are missing are listed elsewhere, all in one error. */
static void load_tensor(Loader *l, WantedTensor *w, bool strict)
{
    bool open = weights_value(w)->role == ROLE_CONST;

    if (w->stored && is_fine(l, w))
        w->tensor = taken_tensor(l, w);
    else if (w->stored)
        complain_of_type(l, w);
    else if ((open || l->options->need_elements) && !is_given(w) && !(strict && is_missing_param(l, w)))
        complain_of_absence(l, w);
}

static void fill_value(void *context, const Graph *graph, ValueId id)
{
    const Loader *l = context;
    const WantedTensor *w = weights_wanted_of(&l->file->wanted, l->module->arena, graph, id);
    if (w && w->tensor)
        graph_value(graph, id)->data = w->tensor;
}

/* What is missing, in one error */

/* The prefix that the stored name has before the wanted one: `model.` */
static Str prefix_of(const StoredTensor *stored, Str name)
{
    bool ends = stored && stored->name.len > name.len &&
                str_eq((Str){stored->name.ptr + stored->name.len - name.len, name.len}, name);
    return ends ? (Str){stored->name.ptr, stored->name.len - name.len} : (Str){0};
}

static void note_missing(const Loader *l, const WantedTensor *w, const StoredTensor *nearest, bool left)
{
    Arena *arena = l->module->arena;
    const Type *type = weights_value(w)->type;
    if (!nearest)
        diag_note(l->module->diag, (Place){0}, STR_FMT ": " STR_FMT "%s%s", STR_ARG(w->name),
                  STR_ARG(type_show(arena, type)), is_given(w) ? "" : ", without initialiser",
                  left ? "" : "; no tensor of the file is left for it");
    else
        diag_note(l->module->diag, (Place){0},
                  STR_FMT ": " STR_FMT "%s; nearest in the file is " STR_FMT ": " STR_FMT "%s", STR_ARG(w->name),
                  STR_ARG(type_show(arena, type)), is_given(w) ? "" : ", without initialiser", STR_ARG(nearest->name),
                  STR_ARG(weights_show_stored(arena, nearest)),
                  weights_fit(type, nearest) == FIT_TRANSPOSED ? ", its transpose" : "");
}

static void list_missing(const Loader *l)
{
    NearestStored *nearest = weights_nearest_open(l->module->arena, &l->file->stored, l->file->wanted.used);
    Str prefix = {0};
    uint32_t prefixed = 0;

    for (uint32_t i = 0; i < l->file->wanted.count; i++) {
        const WantedTensor *w = &l->file->wanted.at[i];
        if (!is_missing_param(l, w))
            continue;
        const StoredTensor *stored = weights_nearest(nearest, w->name, weights_value(w)->type);
        Str before = prefix_of(stored, w->name);
        prefix = prefix.len ? prefix : before;
        prefixed += before.len && str_eq(before, prefix);
        note_missing(l, w, stored, weights_nearest_left(nearest));
    }
    if (prefixed > 1)
        diag_note(l->module->diag, (Place){0},
                  "%u names in the file begin with " STR_FMT
                  ", which the model's do not; docs/weights.md shows how to "
                  "rename them",
                  prefixed, STR_ARG(prefix));
}

/* `the only param`, `all 4 params`, `3 of 4 params` */
static void put_count(Text *out, uint32_t count, uint32_t params)
{
    if (params == 1)
        text_printf(out, "the only param");
    else if (count == params)
        text_printf(out, "all %u params", params);
    else
        text_printf(out, "%u of %u params", count, params);
}

static void complain_of_missing(const Loader *l)
{
    Text count = {0};
    put_count(&count, l->missing, l->params);
    diag_file_error(l->module->diag, l->options->path, "it lacks %s of the model; --init-missing draws %s", count.ptr,
                    l->missing == 1 ? "it from its initialiser" : "them from their initialisers");
    text_free(&count);
    list_missing(l);
}

/* What is drawn, and what is left over */

static void put_name(Text *names, uint32_t number, Str name)
{
    if (number < NOTE_NAMES)
        text_printf(names, "%s" STR_FMT, number ? ", " : "", STR_ARG(name));
    else if (number == NOTE_NAMES)
        text_printf(names, ", ...");
}

static void note_drawn(const Loader *l)
{
    Text line = {0};
    bool one = l->missing == 1, given = l->options->path.len;

    put_count(&line, l->missing, l->params);
    text_printf(&line, one ? " is drawn from its initialiser" : " are drawn from their initialisers");
    if (given)
        text_printf(&line, "; " STR_FMT " lacks %s: ", STR_ARG(l->options->path), one ? "it" : "them");
    for (uint32_t i = 0, number = 0; given && i < l->file->wanted.count; i++)
        if (is_missing_param(l, &l->file->wanted.at[i]))
            put_name(&line, number++, l->file->wanted.at[i].name);
    diag_note(l->module->diag, (Place){0}, "%s%s", given ? "" : "there is no weights file: ", line.ptr);
    text_free(&line);
}

static void note_unused(const Loader *l)
{
    uint32_t unused = 0;
    Text names = {0};
    for (uint32_t i = 0; i < l->file->stored.count; i++)
        if (!l->file->wanted.used[i])
            put_name(&names, unused++, l->file->stored.tensor[i].name);
    if (unused)
        diag_note(l->module->diag, (Place){0}, STR_FMT " holds %u tensor%s that the model does not have: %s",
                  STR_ARG(l->options->path), unused, plural(unused), names.ptr);
    text_free(&names);
}

static void count_params(Loader *l)
{
    for (uint32_t i = 0; i < l->file->wanted.count; i++) {
        l->params += weights_value(&l->file->wanted.at[i])->role == ROLE_PARAM;
        l->missing += is_missing_param(l, &l->file->wanted.at[i]);
    }
}

static void load(Loader *l)
{
    bool partial = str_is(safetensors_text(&l->file->stored, SAFETENSORS_PARTIAL), "true");
    bool strict = l->options->path.len && !l->options->init_missing && !partial;

    count_params(l);
    for (uint32_t i = 0; i < l->file->wanted.count; i++)
        load_tensor(l, &l->file->wanted.at[i], strict);
    if (strict && l->missing)
        complain_of_missing(l);
    else if (l->missing && l->options->need_elements && !(l->options->fresh && !l->options->path.len) &&
             !l->module->diag->error_count)
        note_drawn(l);
    weights_each_value(l->module, fill_value, l);
    note_unused(l);
}

bool weights_match(Module *module, Str path, WeightsFile *file)
{
    *file = (WeightsFile){0};
    if (path.len &&
        (!file_map(module->diag, path, &file->map) ||
         !safetensors_parse(module->arena, module->diag, path, file->map.bytes, file->map.size, &file->stored)))
        return false;
    file->wanted = weights_wanted(module, &file->stored);
    return true;
}

bool weights_load(Module *module, const WeightsOptions *options, WeightsFile *file)
{
    Loader loader = {.module = module, .options = options, .file = file};
    uint32_t errors = module->diag->error_count;

    if (weights_match(module, options->path, file)) {
        weights_share_initials(module, &file->wanted);
        load(&loader);
    }
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
    Map by_name;  /* graphs share params */
    bool partial; /* some param is left to its initialiser */
} Saver;

static void collect(Saver *s, const Graph *graph, ValueId id, bool in_body)
{
    const Value *value = graph_value(graph, id);
    bool stored = s->stored(value) && !(in_body && value->role == ROLE_CONST);
    Str name = stored ? value_show(graph, id) : (Str){0};
    if (stored && map_add(&s->by_name, name, s->count))
        ARENA_PUSH(s->arena, s->list, s->count, s->capacity, ((NamedTensor){name, value->data}));
    s->partial |= !stored && value_declared(value) == ROLE_PARAM;
}

/* Constants in bodies of loops and branches stand in the text; params of layers that are called there do not.  Recurses
 * over the nesting of calls and bodies. */
static void collect_graph(Saver *s, const Graph *graph, bool in_body)
{
    for (ValueId id = 0; id < graph->value_count; id++)
        collect(s, graph, id, in_body);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = graph_node(graph, n);
        for (uint32_t i = 0; i < node->sub_count; i++)
            collect_graph(s, node->sub[i], in_body || node_has_bodies(node));
    }
}

static Saver collect_module(Module *module, bool (*stored)(const Value *value))
{
    Saver s = {.stored = stored, .arena = module->arena, .by_name = {.arena = module->arena}};
    for (uint32_t g = 0; g < module->graph_count; g++)
        collect_graph(&s, module->graph[g], false);
    return s;
}

bool weights_are_saved(Module *module, bool (*stored)(const Value *value))
{
    return collect_module(module, stored).count > 0;
}

const StoredTensor *weights_first_lost(Module *module, const Safetensors *file, bool (*stored)(const Value *value))
{
    Saver s = collect_module(module, stored);
    for (uint32_t i = 0; i < file->count; i++)
        if (map_get(&s.by_name, file->tensor[i].name) == MAP_NONE)
            return &file->tensor[i];
    return NULL;
}

const StoredTensor *weights_first_other(Module *module, const Safetensors *file, bool (*stored)(const Value *value))
{
    Saver s = collect_module(module, stored);
    for (uint32_t i = 0; i < file->count; i++) {
        const StoredTensor *there = &file->tensor[i];
        uint32_t index = map_get(&s.by_name, there->name);
        const Tensor *tensor = index == MAP_NONE ? NULL : s.list[index].tensor;
        size_t size = (size_t)(there->end - there->begin);
        if (!tensor || (size_t)type_bytes(tensor->type) != size ||
            memcmp(tensor->data, file->bytes + there->begin, size) != 0)
            return there;
    }
    return NULL;
}

bool weights_save(Module *module, Str path, bool (*stored)(const Value *value))
{
    Saver s = collect_module(module, stored);
    const StoredText partial = {STR(SAFETENSORS_PARTIAL), STR("true")};
    return !s.count || safetensors_write(module->diag, path, s.list, s.count, &partial, s.partial);
}
