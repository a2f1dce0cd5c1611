/* Which handler writes an op: all families, searched by name. */
#include <string.h>

#include "onnx/import.h"

bool onnx_is_path(Str path)
{
    return str_ends(path, ".onnx");
}

static const OnnxRow *const family[] = {onnx_elementwise,    onnx_reduce,        onnx_contraction,
                                        onnx_pool,           onnx_view,          onnx_gather,
                                        onnx_resize,         onnx_normal,        onnx_recurrent,
                                        onnx_control,        onnx_quantised,     onnx_constant,
                                        onnx_sequence,       onnx_attention,     onnx_signal,
                                        onnx_training,       onnx_scan,          onnx_contrib,
                                        onnx_image,          onnx_bounded,       onnx_attention_more,
                                        onnx_columns,        onnx_random,        onnx_learned,
                                        onnx_trees,          onnx_qlinear,       onnx_contrib_attention,
                                        onnx_contrib_cache,  onnx_contrib_state, onnx_contrib_gates,
                                        onnx_contrib_table,  onnx_supports,      onnx_experts,
                                        onnx_activation,     onnx_branch,        onnx_contrib_same,
                                        onnx_contrib_image,  onnx_contrib_bits,  onnx_contrib_rotary,
                                        onnx_contrib_router, onnx_contrib_delta, onnx_contrib_varlen,
                                        onnx_contrib_masked};

static const OnnxRow *search(const char *domain, const char *op, int64_t opset, bool *too_early)
{
    const OnnxRow *best = NULL;
    const char *own = strcmp(domain, "ai.onnx") == 0 ? "" : domain;

    *too_early = false;
    for (size_t f = 0; f < sizeof family / sizeof *family; f++)
        for (const OnnxRow *row = family[f]; row->op; row++) {
            if (op[0] != row->op[0] || strcmp(row->op, op) != 0 || strcmp(row->domain ? row->domain : "", own) != 0)
                continue;
            *too_early |= row->since > opset;
            if (row->since <= opset && (!best || best->since < row->since))
                best = row;
        }
    return best;
}

/* A model of thousands of nodes has a few dozen ops: each is sought once. */
const OnnxRow *onnx_find_row(Onnx *onnx, const char *domain, const char *op, int64_t opset, const char **reason)
{
    Text key = {0};
    text_printf(&key, "%s\n%s\n", domain, op);
    text_str(&key, map_key(&opset, sizeof opset));
    uint32_t index = map_get(&onnx->ops, text_view(&key));
    if (index == MAP_NONE) {
        OnnxFound found;
        found.row = search(domain, op, opset, &found.too_early);
        index = onnx->found_count;
        map_put(&onnx->ops, str_copy(onnx->arena, text_view(&key)), index);
        ARENA_PUSH(onnx->arena, onnx->found, onnx->found_count, onnx->found_capacity, found);
    }
    text_free(&key);
    const OnnxFound *found = &onnx->found[index];
    if (!found->row)
        *reason = found->too_early ? "the op is read from a later opset on" : "the op is not known";
    return found->row;
}
