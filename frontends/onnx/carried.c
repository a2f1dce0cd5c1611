/* Inputs with a default whose next value is a result, NAME and NAME_next, as `nnc export` writes what is kept between
 * runs: they come back as states, or as the params that they were. */
#include "onnx/import.h"

#include <string.h>

static Str next_of(Onnx *onnx, const char *name)
{
    return str_format(onnx->arena, "%s_next", name);
}

bool onnx_is_carried(Onnx *onnx, const OnnxScope *scope, const char *name)
{
    return !scope->outer && !scope->function && map_get(&onnx->inputs, str_from(name)) != MAP_NONE &&
           map_get(&onnx->outputs, next_of(onnx, name)) != MAP_NONE;
}

static const char *kind_of(Onnx *onnx, const char *name)
{
    const Onnx__ValueInfoProto *input = onnx->model->graph->input[map_get(&onnx->inputs, str_from(name))];
    return input->doc_string && strcmp(input->doc_string, ONNX_PARAM) == 0 ? ONNX_PARAM : "state";
}

bool onnx_bind_carried(Onnx *onnx, OnnxScope *scope, const char *name, const Tensor *first)
{
    OnnxValue *value = onnx_value_new(onnx);
    *value = (OnnxValue){.type = first->type, .name = onnx_unique(onnx, name), .home = onnx->root};
    onnx->carried.arena = onnx->arena;
    map_put(&onnx->carried, next_of(onnx, name), onnx->value_count);
    onnx_bind(scope, onnx, name, value);
    return onnx_declare_kept(onnx, kind_of(onnx, name), value->name, first);
}

bool onnx_update_carried(Onnx *onnx, OnnxValue *next, const char *name, bool *updated)
{
    uint32_t index = map_get(&onnx->carried, str_from(name));
    const OnnxValue *state = index == MAP_NONE ? NULL : onnx->value[index];
    *updated = state && next->type == state->type;
    if (!*updated || next == state)
        return true;
    const char *text = onnx_name_value(onnx, next);
    return onnx_write(onnx, onnx->path, str_format(onnx->arena, "%s <- %s\n", state->name, text));
}
