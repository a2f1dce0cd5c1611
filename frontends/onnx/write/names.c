/* Names of tensors in the file: those of the model where they can be, and otherwise with numbers behind them. */
#include "onnx/write/export.h"

bool export_is_taken(const Export *e, const char *name)
{
    return map_get(&e->taken, str_from(name)) != MAP_NONE;
}

ExportId export_id(Export *e, const char *name)
{
    map_add(&e->taken, str_from(name), 2);
    ARENA_PUSH(e->arena, e->tensor, e->tensor_count, e->tensor_capacity, ((ExportTensor){name, NULL, NULL}));
    return e->tensor_count - 1;
}

ExportId export_id_near(Export *e, const char *name)
{
    uint32_t number = map_get(&e->taken, str_from(name));
    if (number == MAP_NONE || map_get(&e->promised, map_key(&name, sizeof name)) != MAP_NONE)
        return export_id(e, name);
    const char *numbered;
    do
        numbered = export_text(e, "%s_%u", name, number++);
    while (export_is_taken(e, numbered) || map_get(&e->own, str_from(numbered)) != MAP_NONE);
    map_put(&e->taken, str_from(name), number);
    return export_id(e, numbered);
}

const char *export_promised(Export *e, const char *name)
{
    const char *plain = name;
    for (uint32_t number = 2; export_is_taken(e, name); number++)
        name = export_text(e, "%s_%u", plain, number);
    map_put(&e->taken, str_from(name), 2);
    const char **key = arena_copy(e->arena, &name, sizeof name);
    map_put(&e->promised, map_key(key, sizeof *key), 0);
    return name;
}

static void add_own(Export *e, const Graph *graph, ValueId v)
{
    Str name = graph->value[v].name;
    uint32_t count = name.len ? map_get(&e->own, name) : 0;
    if (name.len)
        map_put(&e->own, name, count == MAP_NONE ? 1 : count + 1);
}

/* Of a body: what it captures is called as it is outside, and a loop's condition reads what its body carries.  Recurses
 * over the nesting. */
static void find_own(Export *e, const Graph *graph, uint32_t inputs)
{
    for (uint32_t i = 0; i < inputs; i++)
        add_own(e, graph, graph->input[i]);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].role == ROLE_RESULT || graph->value[v].role == ROLE_CONST)
            add_own(e, graph, v);
    for (NodeId i = 0; i < graph->node_count; i++) {
        const Node *node = &graph->node[i];
        bool loop = node_is_loop(node);
        for (uint32_t s = 0; s < node->sub_count && !node->dead && !node->call; s++)
            find_own(e, node->sub[s], loop && s + 1 == node->sub_count ? loop_of(graph, node).carried : 0);
    }
}

void export_find_own(Export *e, const Graph *graph)
{
    find_own(e, graph, graph->input_count);
}

bool export_is_alone(const Export *e, Str name)
{
    uint32_t count = map_get(&e->own, name);
    return (count == MAP_NONE || count < 2) && map_get(&e->leaf_at, name) == MAP_NONE;
}

const char *export_made_up(Export *e, const char *name)
{
    uint32_t number = map_get(&e->numbers, str_from(name));
    const char *numbered = name;
    if (number != MAP_NONE)
        numbered = export_text(e, "%s_%u", name, number);
    else
        number = 1;
    while (map_get(&e->own, str_from(numbered)) != MAP_NONE || export_is_taken(e, numbered))
        numbered = export_text(e, "%s_%u", name, ++number);
    if (number > 1)
        map_put(&e->numbers, str_from(name), number);
    return numbered;
}

const char *export_name(const Export *e, ExportId id)
{
    return e->tensor[id].name;
}

const char *export_text(Export *e, const char *format, ...)
{
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    const char *copy = str_copy(e->arena, text_view(&text)).ptr;
    text_free(&text);
    return copy;
}
