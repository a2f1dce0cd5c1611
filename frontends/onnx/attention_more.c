/* Attention with bodies of its own between the steps, and attention without softmax. */
#include <math.h>
#include <string.h>

#include "onnx/body.h"

/* Flexible */

/* What a body makes of a value of this name; the same where there is no body. */
static const char *modified(OnnxNode *n, const char *attribute, const char *name)
{
    const Onnx__GraphProto *body = onnx_body_graph(n, attribute);
    OnnxValue *value = onnx_value_new(n->onnx), *result = NULL;
    if (!body)
        return name;
    if (!onnx_body_check(n, body))
        return NULL;
    if (body->n_input != 1 || body->n_output != 1)
        return onnx_no(n, "its body '%s' takes or gives several values", attribute), NULL;
    *value = (OnnxValue){.type = onnx_type_of(n, name), .name = name, .home = n->onnx->block};
    OnnxScope *scope = onnx_body_scope(n);
    onnx_bind(scope, n->onnx, onnx_body_name(body->input[0]->name), value);
    if (!onnx_body_import(n, scope, body, &result))
        return NULL;
    return result->type ? onnx_name_value(n->onnx, result) : (onnx_no(n, "its body gives no tensor"), NULL);
}

/* Keys or values as `wide`, each of their heads as often as queries share it */
static const char *shared(OnnxNode *n, uint32_t i, const char *wide, int64_t times)
{
    const char *x = onnx_text(n, "cast(%s, to = %s)", onnx_in(n, i), wide);
    return times == 1 ? x : onnx_text(n, "repeat(%s, %lld, 1)", x, (long long)times);
}

static bool write_flex_attention(OnnxNode *n)
{
    if (onnx_rank(n, 0) != 4 || onnx_rank(n, 1) != 4 || onnx_rank(n, 2) != 4)
        return onnx_no(n, "its operands have other than 4 dimensions");
    int64_t heads = onnx_dim(n, 0, 1), groups = onnx_dim(n, 1, 1), width = onnx_dim(n, 0, 3);
    DType dtype = onnx_type(n, 0)->dtype, precision = dtype == DT_F64 ? DT_F64 : DT_F32;
    int32_t wanted = (int32_t)onnx_int(n, "softmax_precision", 0);
    if (groups < 1 || heads % groups || width < 1 || (wanted && !onnx_dtype(wanted, &precision)))
        return onnx_no(n, "its heads or its precision are impossible");
    double scale = onnx_attribute(n, "scale") ? onnx_float(n, "scale", 1) : 1 / sqrt((double)width);
    const char *wide = dtype_name(precision), *scores = onnx_temp(n, "scores"), *shares = onnx_temp(n, "shares");
    const char *k = shared(n, 1, wide, heads / groups), *v = shared(n, 2, wide, heads / groups);
    if (!onnx_emit(n, "%s = matmul(cast(%s, to = %s), %s, transpose_y = true) * %s", scores, onnx_in(n, 0), wide, k,
                   onnx_number(n, precision, scale)))
        return false;
    const char *changed = modified(n, "score_mod", scores);
    if (!changed || !onnx_emit(n, "%s = softmax(%s)", shares, changed))
        return false;
    const char *probable = modified(n, "prob_mod", shares);
    return probable && onnx_emit(n, "%s = cast(%s @ %s, to = %s)", onnx_out(n, 0), probable, v, dtype_name(dtype));
}

/* Linear */

/* [n, t, heads * d] as [n, heads, t, d], in f32 */
static const char *heads_of(OnnxNode *n, uint32_t i, int64_t heads)
{
    return onnx_text(n, "split_heads(cast(%s, to = f32), heads = %lld)", onnx_in(n, i), (long long)heads);
}

static bool check_linear(OnnxNode *n, int64_t heads, int64_t groups, const char *rule)
{
    for (uint32_t i = 0; i < 3; i++)
        if (onnx_rank(n, i) != 3)
            return onnx_no(n, "its operands have other than 3 dimensions");
    if (heads < 1 || groups < 1 || heads % groups || onnx_dim(n, 0, 2) % heads || onnx_dim(n, 1, 2) % groups ||
        onnx_dim(n, 2, 2) % groups || !onnx_dim(n, 0, 2))
        return onnx_no(n, "its features cannot be shared out to heads");
    bool gated = strstr(rule, "gated") != NULL, delta = strstr(rule, "delta") != NULL;
    if (!gated && !delta && strcmp(rule, "linear") != 0)
        return onnx_no(n, "its rule '%s' is not known", rule);
    bool decays = onnx_has(n, 4) && onnx_rank(n, 4) == 3, learns = onnx_has(n, 5) && onnx_rank(n, 5) == 3;
    return (decays == gated && learns == delta) || onnx_no(n, "its decay or beta does not go with its rule");
}

static bool write_linear_attention(OnnxNode *n)
{
    int64_t heads = onnx_int(n, "q_num_heads", 0), groups = onnx_int(n, "kv_num_heads", 0);
    const char *rule = onnx_string(n, "update_rule", "gated_delta");
    if (!check_linear(n, heads, groups, rule))
        return false;
    int64_t dim[] = {onnx_dim(n, 0, 0), groups, onnx_dim(n, 1, 2) / groups, onnx_dim(n, 2, 2) / groups};
    const char *state = onnx_has(n, 3) ? onnx_text(n, "cast(%s, to = f32)", onnx_in(n, 3))
                                       : onnx_text(n, "zeros(%s, f32)", onnx_list(n, dim, 4));
    const char *decay = onnx_has(n, 4) ? onnx_text(n, ", decay = %s", heads_of(n, 4, groups)) : "";
    const char *beta =
        onnx_has(n, 5) ? onnx_text(n, ", beta = %s", heads_of(n, 5, onnx_dim(n, 5, 2) == 1 ? 1 : groups)) : "";
    double given = onnx_float(n, "scale", 0);
    const char *scale = given != 0 ? onnx_text(n, ", scale = %s", onnx_number(n, DT_F32, given)) : "";
    const char *y = onnx_temp(n, "heads"), *last = onnx_temp(n, "state"), *type = dtype_name(onnx_type(n, 0)->dtype);
    const char *kept = dtype_name(onnx_type(n, onnx_has(n, 3) ? 3 : 0)->dtype);
    return onnx_emit(n, "(%s, %s) = linear_attention(%s, %s, %s, %s%s%s%s)", y, last, heads_of(n, 0, heads),
                     heads_of(n, 1, groups), heads_of(n, 2, groups), state, decay, beta, scale) &&
           onnx_emit(n, "%s = cast(merge_heads(%s), to = %s)", onnx_out(n, 0), y, type) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, 1), last, kept));
}

const OnnxRow onnx_attention_more[] = {
    {"FlexAttention", 1, write_flex_attention, NULL, "ai.onnx.preview", false},
    {"LinearAttention", 27, write_linear_attention, NULL, NULL, false},
    {0},
};
