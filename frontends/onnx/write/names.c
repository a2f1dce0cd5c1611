/* Names of tensors in the file: those of the model where they can be, and otherwise with numbers behind them. */
#include "onnx/write/export.h"

bool export_is_taken(const Export *e, const char *name)
{
    return map_get(&e->taken, str_from(name)) != MAP_NONE;
}

ExportId export_id(Export *e, const char *name)
{
    map_add(&e->taken, str_from(name), 2);
    ARENA_PUSH(e->arena, e->tensor, e->tensor_count, e->tensor_capacity, ((ExportTensor){name, NULL}));
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
    while (export_is_taken(e, numbered));
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
