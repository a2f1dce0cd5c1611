/* Functions of the file while they are written: their names are their own, and what they read from around them is
 * captured. */
#include "onnx/write/export.h"

#include <string.h>

void export_function_open(Export *e, ExportScope *scope, Str path)
{
    export_scope_open(e, scope);
    scope->function = true;
    scope->depth = 0;
    scope->path = path;
    scope->around = e->taken;
    scope->captured = (Map){.arena = e->arena};
    scope->own = e->own;
    scope->numbers = e->numbers;
    e->taken = e->own = e->numbers = (Map){.arena = e->arena};
    e->function_depth++;
}

ExportScope *export_function_around(const Export *e)
{
    ExportScope *scope = e->scope;
    while (scope && !scope->function)
        scope = scope->outer;
    return scope;
}

/* `norm.scale` of `layer1.norm.scale` in a call that is labelled layer1 */
static const char *name_inside(Export *e, const ExportScope *function, Str name)
{
    Str path = function->path;
    bool own = name.len > path.len && memcmp(name.ptr, path.ptr, path.len) == 0;
    return str_copy(e->arena, own ? (Str){name.ptr + path.len, name.len - path.len} : name).ptr;
}

ExportId export_captured(Export *e, ExportCapture capture, const char *name)
{
    ExportScope *function = export_function_around(e);
    uint32_t at = capture.leaf ? map_get(&function->captured, capture.leaf->name) : MAP_NONE;
    if (at != MAP_NONE)
        return function->capture[at].id;
    if (capture.leaf)
        map_put(&function->captured, capture.leaf->name, function->capture_count);
    capture.id = export_id_near(e, capture.leaf ? name_inside(e, function, capture.leaf->name) : name);
    ARENA_PUSH(e->arena, function->capture, function->capture_count, function->capture_capacity, capture);
    return capture.id;
}

static char **names_of(Export *e, const ExportId *id, uint32_t count)
{
    char **name = ARENA_ARRAY(e->arena, char *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        name[i] = (char *)(uintptr_t)export_name(e, id[i]);
    return name;
}

void export_function_inputs(Export *e, Onnx__FunctionProto *function, const ExportId *in, uint32_t count)
{
    function->input = names_of(e, in, count);
    function->n_input = count;
}

Onnx__FunctionProto *export_function_close(Export *e, const char *domain, const char *name, const ExportId *in,
                                           uint32_t in_count, const ExportId *out, uint32_t out_count)
{
    Onnx__FunctionProto *function = ARENA_NEW(e->arena, Onnx__FunctionProto);
    onnx__function_proto__init(function);
    function->name = (char *)(uintptr_t)name;
    function->domain = (char *)(uintptr_t)domain;
    export_function_inputs(e, function, in, in_count);
    function->output = names_of(e, out, out_count);
    function->n_output = out_count;
    e->taken = e->scope->around;
    e->own = e->scope->own;
    e->numbers = e->scope->numbers;
    e->function_depth--;
    function->node = export_scope_close(e, &function->n_node);
    return function;
}

void export_function_add(Export *e, Onnx__FunctionProto *function)
{
    function->opset_import = export_opsets(e, function->node, function->n_node, false, &function->n_opset_import);
    ARENA_PUSH(e->arena, e->function, e->function_count, e->function_capacity, function);
}
