/* Transformers of com.microsoft: attention with its projections or without, rotated positions, embeddings. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* What this node has written, as an operand of another */
static OnnxValue *written(OnnxNode *n, const char *name)
{
    OnnxValue *value = onnx_value_new(n->onnx);
    *value = (OnnxValue){.type = onnx_type_of(n, name), .name = name, .home = n->onnx->block};
    return value;
}

static void set_operand(OnnxNode *node, uint32_t i, OnnxValue *value)
{
    node->in[i] = value;
    node->proto->input[i] = (char *)(uintptr_t) "x";
}

/* Keys that count: how many of each sequence, [batch], or a mark for each, [batch, keys]; as [batch, 1, 1, keys] of
 * bool */
static const char *key_mask(OnnxNode *n, uint32_t i, int64_t batch, int64_t keys)
{
    const Shape *shape = &onnx_type(n, i)->shape;
    int64_t dim[] = {batch, 1, 1, keys}, unit[] = {batch, 1, 1, 1};
    if (shape->rank == 2 && shape->dim[0] == batch && shape->dim[1] == keys)
        return onnx_text(n, "reshape(%s, shape = %s) != 0", onnx_in(n, i), onnx_list(n, dim, 4));
    if (shape->rank == 1 && shape->dim[0] == batch)
        return onnx_text(n, "iota(axis = 3, shape = %s, dtype = i32) < reshape(cast(%s, to = i32), shape = %s)",
                         onnx_list(n, dim, 4), onnx_in(n, i), onnx_list(n, unit, 4));
    return onnx_no(n, "its mask has neither a number for each sequence nor one for each key"), NULL;
}

/* The mask and the bias as one that is added to the scores; NULL with `*good` where there is neither. */
static OnnxValue *put_bias(OnnxNode *n, uint32_t mask, uint32_t bias, int64_t batch, int64_t keys, bool *good)
{
    const char *type = dtype_name(onnx_type(n, 0)->dtype), *text = NULL, *name;
    *good = true;
    if (onnx_has(n, mask)) {
        const char *counts = key_mask(n, mask, batch, keys);
        const char *hidden = onnx_number(n, onnx_type(n, 0)->dtype, onnx_float(n, "mask_filter_value", -10000));
        *good = counts != NULL;
        text = counts ? onnx_text(n, "select(%s, %s(0.0), %s)", counts, type, hidden) : NULL;
    }
    if (onnx_has(n, bias))
        text = text ? onnx_text(n, "%s + %s", text, onnx_in(n, bias)) : onnx_in(n, bias);
    if (!*good || !text)
        return NULL;
    name = onnx_temp(n, "mask");
    *good = onnx_emit(n, "%s = %s", name, text);
    return *good ? written(n, name) : NULL;
}

/* Attention of ONNX over flat operands */
static bool write_flat(OnnxNode *n, OnnxValue *const *qkv, OnnxValue *bias)
{
    OnnxNode *node = onnx_cover(n, "Attention", 23, 4);
    int64_t heads = onnx_int(n, "num_heads", 0);
    for (uint32_t i = 0; i < 3; i++)
        set_operand(node, i, qkv[i]);
    if (bias)
        set_operand(node, 3, bias);
    onnx_add_int(node, "q_num_heads", heads);
    onnx_add_int(node, "kv_num_heads", heads);
    onnx_add_int(node, "is_causal", onnx_int(n, "unidirectional", 0));
    double scale = onnx_float(n, "scale", 0);
    if (scale != 0)
        onnx_add_float(node, "scale", scale);
    bool good = node->row->write(node);
    n->reason = node->reason ? node->reason : n->reason;
    return good;
}

/* A third of what is projected, or of its bias */
static const char *third(OnnxNode *n, const char *x, uint32_t rank, int64_t width, uint32_t i)
{
    return onnx_text(n, "slice(%s, axes = %u, begin = %lld, end = %lld)", x, rank - 1, (long long)(i * width),
                     (long long)((i + 1) * width));
}

static bool refuse_cache(OnnxNode *n, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        if (onnx_has(n, i))
            return onnx_no(n, "it keeps keys and values from run to run");
    return (!onnx_wants(n, 1) && !onnx_wants(n, 2)) || onnx_no(n, "it keeps keys and values from run to run");
}

static bool write_attention(OnnxNode *n)
{
    static const char *const word[] = {"q", "k", "v"};
    const int64_t *sizes;
    uint32_t count;
    if (!refuse_cache(n, 4, 4) || onnx_ints(n, "qkv_hidden_sizes", &sizes, &count) || onnx_int(n, "do_rotary", 0))
        return onnx_no(n, "its queries, keys and values have other widths, or are rotated");
    if (onnx_rank(n, 0) != 3 || onnx_rank(n, 1) != 2 || onnx_dim(n, 1, 1) % 3)
        return onnx_no(n, "its weights do not fit its operand");
    int64_t width = onnx_dim(n, 1, 1) / 3;
    const char *all = onnx_temp(n, "projected"), *b = onnx_has(n, 2) ? onnx_text(n, " + %s", onnx_in(n, 2)) : "";
    OnnxValue *qkv[3];
    bool good = onnx_emit(n, "%s = %s @ %s%s", all, onnx_in(n, 0), onnx_in(n, 1), b);
    for (uint32_t i = 0; good && i < 3; i++) {
        const char *name = onnx_temp(n, word[i]);
        good = onnx_emit(n, "%s = %s", name, third(n, all, 3, width, i));
        qkv[i] = good ? written(n, name) : NULL;
    }
    OnnxValue *bias = good ? put_bias(n, 3, 5, onnx_dim(n, 0, 0), onnx_dim(n, 0, 1), &good) : NULL;
    return good && write_flat(n, qkv, bias);
}

static bool write_multi_head(OnnxNode *n)
{
    static const char *const word[] = {"q", "k", "v"};
    if (!refuse_cache(n, 6, 7) || !onnx_has(n, 1) || !onnx_has(n, 2))
        return onnx_no(n, "its queries, keys and values are packed");
    OnnxValue *qkv[3];
    for (uint32_t i = 0; i < 3; i++) {
        if (onnx_rank(n, i) != 3)
            return onnx_no(n, "its operands have other than 3 dimensions");
        qkv[i] = n->in[i];
    }
    int64_t width = onnx_dim(n, 0, 2);
    if (onnx_has(n, 3) && (onnx_rank(n, 3) != 1 || onnx_dim(n, 3, 0) != 3 * width || onnx_dim(n, 2, 2) != width))
        return onnx_no(n, "its bias does not fit its operands");
    bool good = true;
    for (uint32_t i = 0; good && onnx_has(n, 3) && i < 3; i++) {
        const char *name = onnx_temp(n, word[i]);
        good = onnx_emit(n, "%s = %s + %s", name, onnx_in(n, i), third(n, onnx_in(n, 3), 1, width, i));
        qkv[i] = good ? written(n, name) : NULL;
    }
    OnnxValue *bias = good ? put_bias(n, 4, 5, onnx_dim(n, 0, 0), onnx_dim(n, 1, 1), &good) : NULL;
    return good && write_flat(n, qkv, bias);
}

/* The same as ONNX's, with the positions before the tables */
static bool write_rotary(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    int64_t turned = onnx_int(n, "rotary_embedding_dim", 0), heads = onnx_int(n, "num_heads", 0);
    if (onnx_rank(n, 1) != 2 || onnx_rank(n, 2) != 2 || onnx_rank(n, 3) != 2 || onnx_float(n, "scale", 1) != 1)
        return onnx_no(n, "its positions begin at one number, or it scales");
    if (!heads && rank == 3 && onnx_dim(n, 2, 1))
        heads = onnx_dim(n, 0, 2) / (2 * onnx_dim(n, 2, 1));
    OnnxNode *node = onnx_cover(n, "RotaryEmbedding", 23, 4);
    set_operand(node, 0, n->in[0]);
    set_operand(node, 1, n->in[2]);
    set_operand(node, 2, n->in[3]);
    set_operand(node, 3, n->in[1]);
    onnx_add_int(node, "interleaved", onnx_int(n, "interleaved", 0));
    onnx_add_int(node, "num_heads", heads);
    onnx_add_int(node, "rotary_embedding_dim", turned);
    bool good = node->row->write(node);
    n->reason = node->reason ? node->reason : n->reason;
    return good;
}

/* Words, positions and segments, normalised; how many words each sequence has */
static bool write_embed(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    if (rank != 2 || onnx_rank(n, 2) != 2 || onnx_rank(n, 3) != 2)
        return onnx_no(n, "its words are no rows of numbers");
    const char *sum = onnx_wants(n, 2) ? onnx_out(n, 2) : onnx_temp(n, "sum");
    const char *places = onnx_has(n, 8) ? onnx_text(n, "gather(%s, %s)", onnx_in(n, 3), onnx_in(n, 8))
                                        : onnx_text(n, "%s[0:%lld]", onnx_in(n, 3), (long long)onnx_dim(n, 0, 1));
    const char *segments =
        onnx_has(n, 1) && onnx_has(n, 4) ? onnx_text(n, " + gather(%s, %s)", onnx_in(n, 4), onnx_in(n, 1)) : "";
    const char *eps = onnx_number(n, onnx_type(n, 2)->dtype, onnx_float(n, "epsilon", (double)1e-12f));
    const char *counted = onnx_has(n, 7) ? onnx_text(n, "reduce_sum(cast(%s, to = i32), axes = 1)", onnx_in(n, 7))
                                         : onnx_text(n, "zeros([%lld], i32)", (long long)onnx_dim(n, 0, 0));
    return onnx_emit(n, "%s = gather(%s, %s) + %s%s", sum, onnx_in(n, 2), onnx_in(n, 0), places, segments) &&
           onnx_emit(n, "%s = standardize(%s, -1, %s) * %s + %s", onnx_out(n, 0), sum, eps, onnx_in(n, 5),
                     onnx_in(n, 6)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), counted));
}

const OnnxRow onnx_contrib_attention[] = {
    {"Attention", 1, write_attention, NULL, CONTRIB, false},
    {"MultiHeadAttention", 1, write_multi_head, NULL, CONTRIB, false},
    {"RotaryEmbedding", 1, write_rotary, NULL, CONTRIB, false},
    {"EmbedLayerNormalization", 1, write_embed, NULL, CONTRIB, false},
    {0},
};
