/* Numbers that shapes depend on, and of which whoever compiles says the most: --at-most NAME=N. */
#include <stdlib.h>
#include <string.h>

#include "onnx/import.h"

/* The name may have a `=` of its own; the number has none. */
static bool read_bound(Onnx *onnx, Str flag, OnnxMost *bound)
{
    const char *text = str_copy(onnx->arena, flag).ptr, *equals = strrchr(text, '=');
    char *end;
    long long number = equals ? strtoll(equals + 1, &end, 10) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || number < 1 || number > INT32_MAX)
        return onnx_fail(onnx,
                         "--at-most wants NAME=N, a number of the model and the most that it can be, not " STR_FMT,
                         STR_ARG(flag));
    *bound = (OnnxMost){.name = {text, (uint32_t)(equals - text)}, .most = number};
    return true;
}

bool onnx_read_bounds(Onnx *onnx)
{
    uint32_t count = onnx->options->bound_count;
    onnx->bound = ARENA_ARRAY(onnx->arena, OnnxMost, count + 1);
    for (uint32_t i = 0; i < count; i++)
        if (!read_bound(onnx, onnx->options->bound[i], &onnx->bound[onnx->bound_count++]))
            return false;
    return true;
}

void onnx_note_bound(Onnx *onnx, const char *name, OnnxValue *value)
{
    for (uint32_t i = 0; i < onnx->bound_count; i++) {
        OnnxMost *bound = &onnx->bound[i];
        if (!str_is(bound->name, name) && !str_is(bound->name, onnx_identifier(onnx, name)))
            continue;
        bound->found = true;
        if (value->known || value->bad)
            continue;
        value->most = bound->most;
        if (!value->type || shape_elements(&value->type->shape) != 1)
            onnx_fail(onnx, "--at-most %s: it is no single number", name);
    }
}

bool onnx_check_bounds(Onnx *onnx)
{
    for (uint32_t i = 0; i < onnx->bound_count; i++)
        if (!onnx->bound[i].found)
            return onnx_fail(onnx, "--at-most " STR_FMT ": no value of the model is called so",
                             STR_ARG(onnx->bound[i].name));
    return true;
}
