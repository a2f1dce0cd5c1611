/* Which handler writes an op: all families, searched by name. */
#include <string.h>

#include "onnx/import.h"

bool onnx_is_path(Str path)
{
    return str_ends(path, ".onnx");
}

static const OnnxRow *const family[] = {onnx_elementwise,   onnx_reduce,    onnx_contraction,
                                        onnx_pool,          onnx_view,      onnx_gather,
                                        onnx_resize,        onnx_normal,    onnx_recurrent,
                                        onnx_control,       onnx_quantised, onnx_constant,
                                        onnx_sequence,      onnx_attention, onnx_signal,
                                        onnx_training,      onnx_scan,      onnx_contrib,
                                        onnx_image,         onnx_bounded,   onnx_attention_more,
                                        onnx_columns,       onnx_random,    onnx_learned,
                                        onnx_trees,         onnx_qlinear,   onnx_contrib_attention,
                                        onnx_contrib_cache, onnx_supports,  onnx_experts,
                                        onnx_activation};

const OnnxRow *onnx_find_row(const char *domain, const char *op, int64_t opset, const char **reason)
{
    const OnnxRow *best = NULL;
    int64_t earliest = INT64_MAX;
    const char *own = strcmp(domain, "ai.onnx") == 0 ? "" : domain;

    for (size_t f = 0; f < sizeof family / sizeof *family; f++)
        for (const OnnxRow *row = family[f]; row->op; row++) {
            if (op[0] != row->op[0] || strcmp(row->op, op) != 0 || strcmp(row->domain ? row->domain : "", own) != 0)
                continue;
            earliest = row->since < earliest ? row->since : earliest;
            if (row->since <= opset && (!best || best->since < row->since))
                best = row;
        }
    if (!best)
        *reason = earliest < INT64_MAX ? "the op is read from a later opset on" : "the op is not known";
    return best;
}
