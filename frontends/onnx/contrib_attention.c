/* Transformers of com.microsoft: attention with its projections or without, embeddings. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* Keys that count, as bool that goes with [batch, heads, steps, keys]: of how many there are in each sequence, [batch];
 * of where they end, and where they begin, [2 * batch]; of a mark for each, [batch, keys]; for each query and each,
 * [batch, steps, keys]; or for all that there ever are, [batch, 1, most, most] */
static const char *key_mask(OnnxNode *n, uint32_t i, int64_t batch, int64_t steps, int64_t keys)
{
    const Shape *shape = &onnx_type(n, i)->shape;
    int64_t dim[] = {batch, 1, 1, keys}, each[] = {batch, 1, steps, keys}, unit[] = {batch, 1, 1, 1};
    const char *mask = onnx_in(n, i), *one = onnx_list(n, unit, 4), *list = onnx_list(n, dim, 4);
    const char *place = onnx_text(n, "iota(axis = 3, shape = %s, dtype = i32)", list);
    if (shape->rank == 2 && shape->dim[0] == batch && shape->dim[1] == keys)
        return onnx_text(n, "reshape(%s, shape = %s) != 0", mask, list);
    if (shape->rank == 3 && shape->dim[0] == batch && shape->dim[1] == steps && shape->dim[2] == keys)
        return onnx_text(n, "reshape(%s, shape = %s) != 0", mask, onnx_list(n, each, 4));
    if (shape->rank == 4 && shape->dim[0] == batch && shape->dim[1] == 1 && shape->dim[2] >= keys &&
        shape->dim[3] >= keys)
        return onnx_text(n, "slice(%s, axes = [2, 3], begin = [%lld, 0], end = [%lld, %lld]) != 0", mask,
                         (long long)(keys - steps), (long long)keys, (long long)keys);
    if (shape->rank == 1 && shape->dim[0] == batch)
        return onnx_text(n, "%s < reshape(cast(%s, to = i32), shape = %s)", place, mask, one);
    if (shape->rank == 1 && shape->dim[0] == 2 * batch)
        return onnx_text(n,
                         "(%s < reshape(cast(slice(%s, axes = 0, begin = 0, end = %lld), to = i32), shape = %s) and %s "
                         ">= reshape(cast(slice(%s, axes = 0, begin = %lld, end = %lld), to = i32), shape = %s))",
                         place, mask, (long long)batch, one, place, mask, (long long)batch, (long long)(2 * batch),
                         one);
    return onnx_no(n, "its mask has neither a number for each sequence nor one for each key"), NULL;
}

typedef struct Sizes {
    int64_t batch, steps, keys; /* keys: with those that came before */
} Sizes;

/* The mask and the bias as one that is added to the scores; NULL with `*good` where there is neither. */
static OnnxValue *put_bias(OnnxNode *n, uint32_t mask, uint32_t bias, const Sizes *sizes, bool *good)
{
    DType dtype = dtype_is_float(onnx_type(n, 0)->dtype) ? onnx_type(n, 0)->dtype : DT_F32;
    const char *type = dtype_name(dtype), *text = NULL, *name;
    *good = true;
    if (onnx_has(n, mask)) {
        const char *counts = key_mask(n, mask, sizes->batch, sizes->steps, sizes->keys);
        const char *hidden = onnx_number(n, dtype, onnx_float(n, "mask_filter_value", -10000));
        *good = counts != NULL;
        text = counts ? onnx_text(n, "select(%s, %s(0.0), %s)", counts, type, hidden) : NULL;
    }
    if (onnx_has(n, bias))
        text = text ? onnx_text(n, "%s + %s", text, onnx_in(n, bias)) : onnx_in(n, bias);
    if (!*good || !text)
        return NULL;
    name = onnx_temp(n, "mask");
    *good = onnx_emit(n, "%s = %s", name, text);
    return *good ? onnx_written(n, name) : NULL;
}

/* Attention of ONNX over flat operands; operands 4 and 5 are what was kept */
static OnnxNode *flat_attention(OnnxNode *n, OnnxValue *const *qkv, OnnxValue *bias)
{
    OnnxNode *node = onnx_cover(n, "Attention", 23, 6);
    int64_t heads = onnx_int(n, "num_heads", 0);
    for (uint32_t i = 0; i < 3; i++)
        onnx_set_operand(node, i, qkv[i]);
    if (bias)
        onnx_set_operand(node, 3, bias);
    onnx_add_int(node, "q_num_heads", heads);
    onnx_add_int(node, "kv_num_heads", heads);
    onnx_add_int(node, "is_causal", onnx_int(n, "unidirectional", 0));
    double scale = onnx_float(n, "scale", 0);
    if (scale != 0)
        onnx_add_float(node, "scale", scale);
    return node;
}

/* A part of what is projected, or of its bias */
static const char *part(OnnxNode *n, const char *x, uint32_t rank, int64_t begin, int64_t width)
{
    return onnx_text(n, "slice(%s, axes = %u, begin = %lld, end = %lld)", x, rank - 1, (long long)begin,
                     (long long)(begin + width));
}

static const char *const qkv_word[] = {"q", "k", "v"};

/* Which operand is what, of attention that projects by itself */
typedef struct Places {
    uint32_t bias, mask, past, added; /* bias: of the projection; added: to the scores */
    bool quantised;                   /* behind its bias the scales of x and w, behind its mask their zero points */
} Places;

static const Places plain = {2, 3, 4, 5, false}, of_bytes = {2, 5, 8, 9, true};

/* Operand `i`, bytes, as i32 without its zero point */
static const char *moved_bytes(OnnxNode *n, uint32_t i, uint32_t zero)
{
    const char *wide = onnx_text(n, "cast(%s, to = i32)", onnx_in(n, i));
    if (!onnx_has(n, zero))
        return wide;
    bool one = shape_elements(&onnx_type(n, zero)->shape) == 1;
    const char *z = one ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, zero)) : onnx_in(n, zero);
    return onnx_text(n, "(%s - cast(%s, to = i32))", wide, z);
}

static const char *scale(OnnxNode *n, uint32_t i)
{
    bool one = shape_elements(&onnx_type(n, i)->shape) == 1;
    return one ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, i)) : onnx_in(n, i);
}

/* x @ w; of bytes their exact sum, and then both scales */
static const char *product(OnnxNode *n, bool quantised)
{
    if (!quantised)
        return onnx_text(n, "%s @ %s", onnx_in(n, 0), onnx_in(n, 1));
    if (onnx_type(n, 3)->dtype != DT_F32 || onnx_type(n, 4)->dtype != DT_F32)
        return onnx_no(n, "its scales are no f32"), NULL;
    const char *sum = onnx_temp(n, "sum");
    return onnx_emit(n, "%s = %s @ %s", sum, moved_bytes(n, 0, 6), moved_bytes(n, 1, 7))
               ? onnx_text(n, "cast(%s, to = f32) * (%s * %s)", sum, scale(n, 3), scale(n, 4))
               : NULL;
}

/* Queries, keys and values of one product */
static bool project(OnnxNode *n, const Places *p, OnnxValue **qkv)
{
    const int64_t *given;
    uint32_t count;
    if (onnx_rank(n, 0) != 3 || onnx_rank(n, 1) != 2)
        return onnx_no(n, "its weights do not fit its operand");
    int64_t all = onnx_dim(n, 1, 1), width[3] = {all / 3, all / 3, all / 3}, at = 0;
    if (onnx_ints(n, "qkv_hidden_sizes", &given, &count) && count == 3)
        memcpy(width, given, sizeof width);
    for (uint32_t i = 0; i < 3; i++)
        if (width[i] < 1 || width[i] > all || width[0] != width[1] || width[0] + width[1] + width[2] != all)
            return onnx_no(n, "its weights do not fit its operand");
    const char *y = product(n, p->quantised), *name = onnx_temp(n, "projected");
    const char *b = onnx_has(n, p->bias) ? onnx_text(n, " + %s", onnx_in(n, p->bias)) : "";
    bool good = y && onnx_emit(n, "%s = %s%s", name, y, b);
    for (uint32_t i = 0; good && i < 3; at += width[i++]) {
        qkv[i] = onnx_define_value(n, qkv_word[i], "%s", part(n, name, 3, at, width[i]));
        good = qkv[i] != NULL;
    }
    return good;
}

/* What was kept, [2, batch, heads, past, width], as the keys or the values of it */
static OnnxValue *kept(OnnxNode *n, uint32_t past, int64_t i)
{
    return onnx_define_value(n, i ? "past_v" : "past_k",
                             "reshape(slice(%s, axes = 0, begin = %lld, end = %lld), shape = %s)", onnx_in(n, past),
                             (long long)i, (long long)i + 1, onnx_list(n, onnx_type(n, past)->shape.dim + 1, 4));
}

/* Keys and values are kept in one tensor. */
static bool attend(OnnxNode *n, const Places *p)
{
    OnnxValue *qkv[3];
    bool goes_on = onnx_has(n, p->past), good, keeps = onnx_wants(n, 1);
    if (onnx_int(n, "do_rotary", 0) || onnx_int(n, "past_present_share_buffer", 0))
        return onnx_no(n, "it rotates positions, or keeps keys and values in a buffer");
    if (goes_on && (onnx_rank(n, p->past) != 5 || onnx_dim(n, p->past, 0) != 2))
        return onnx_no(n, "what it keeps has no keys and values");
    if (!project(n, p, qkv))
        return false;
    Sizes sizes = {onnx_dim(n, 0, 0), onnx_dim(n, 0, 1), onnx_dim(n, 0, 1)};
    sizes.keys += goes_on ? onnx_dim(n, p->past, 3) : 0;
    OnnxValue *bias = put_bias(n, p->mask, p->added, &sizes, &good), *past[2] = {NULL};
    if (!good)
        return false;
    OnnxNode *node = flat_attention(n, qkv, bias);
    for (uint32_t i = 0; goes_on && i < 2; i++) {
        if (!(past[i] = kept(n, p->past, i)))
            return false;
        onnx_set_operand(node, 4 + i, past[i]);
    }
    const char *name[] = {onnx_out(n, 0), keeps ? onnx_temp(n, "keys") : NULL, keeps ? onnx_temp(n, "values") : NULL};
    onnx_name_results(node, name, 3);
    return onnx_write_cover(n, node) &&
           (!keeps || onnx_emit(n, "%s = stack(%s, %s, axis = 0)", onnx_out(n, 1), name[1], name[2]));
}

static bool write_attention(OnnxNode *n)
{
    return attend(n, &plain);
}

/* The same with operand and weight of bytes */
static bool write_quantised_attention(OnnxNode *n)
{
    return attend(n, &of_bytes);
}

/* [batch, heads, steps, width] as [batch, steps, heads * width] */
static OnnxValue *merged(OnnxNode *n, uint32_t i)
{
    return onnx_define_value(n, qkv_word[i], "merge_heads(%s)", onnx_in(n, i));
}

/* Keys and values that another attention has made come in heads. */
static bool write_multi_head(OnnxNode *n)
{
    OnnxValue *qkv[3];
    if (!onnx_has(n, 1) || !onnx_has(n, 2) || onnx_has(n, 8) || onnx_has(n, 9) || onnx_wants(n, 3))
        return onnx_no(n, "its queries, keys and values are packed, or kept in a buffer");
    for (uint32_t i = 0; i < 3; i++) {
        if (onnx_rank(n, i) != 3 && (i == 0 || onnx_rank(n, i) != 4))
            return onnx_no(n, "its operands have other than 3 dimensions");
        qkv[i] = onnx_rank(n, i) == 3 ? n->in[i] : merged(n, i);
        if (!qkv[i])
            return false;
    }
    int64_t width[] = {onnx_dim(n, 0, 2), qkv[1]->type->shape.dim[2], qkv[2]->type->shape.dim[2]}, at = 0;
    if (onnx_has(n, 3) && (onnx_rank(n, 3) != 1 || onnx_dim(n, 3, 0) != width[0] + width[1] + width[2]))
        return onnx_no(n, "its bias does not fit its operands");
    for (uint32_t i = 0; onnx_has(n, 3) && i < 3; at += width[i++])
        if (onnx_rank(n, i) == 3 && !(qkv[i] = onnx_define_value(n, qkv_word[i], "%s + %s", onnx_in(n, i),
                                                                 part(n, onnx_in(n, 3), 1, at, width[i]))))
            return false;
    bool good, keeps = onnx_has(n, 6) && onnx_has(n, 7);
    Sizes sizes = {onnx_dim(n, 0, 0), onnx_dim(n, 0, 1), qkv[1]->type->shape.dim[1]};
    sizes.keys += keeps ? onnx_dim(n, 6, 2) : 0;
    OnnxValue *bias = put_bias(n, 4, 5, &sizes, &good);
    if (!good)
        return false;
    OnnxNode *node = flat_attention(n, qkv, bias);
    for (uint32_t i = 0; keeps && i < 2; i++)
        onnx_set_operand(node, 4 + i, n->in[6 + i]);
    return onnx_write_cover(n, node);
}

/* Of table i, or its rows at a list; of bytes, by the scale and zero point that stand 6 and 11 behind it */
static const char *read_table(OnnxNode *n, uint32_t i, const char *part, bool bytes)
{
    if (!bytes)
        return part;
    return onnx_text(n, "((cast(%s, to = f32) - cast(%s, to = f32)) * %s)", part, onnx_in(n, i + 11),
                     onnx_in(n, i + 6));
}

static const char *rows_of(OnnxNode *n, uint32_t i, uint32_t at, bool bytes)
{
    return read_table(n, i, onnx_text(n, "gather(%s, %s)", onnx_in(n, i), onnx_in(n, at)), bytes);
}

/* Words, positions and segments, normalised; how many words each sequence has */
static bool embed(OnnxNode *n, bool bytes)
{
    uint32_t rank = onnx_rank(n, 0);
    if (rank != 2 || onnx_rank(n, 2) != 2 || onnx_rank(n, 3) != 2)
        return onnx_no(n, "its words are no rows of numbers");
    const char *sum = !bytes && onnx_wants(n, 2) ? onnx_out(n, 2) : onnx_temp(n, "sum");
    const char *first = onnx_text(n, "%s[0:%lld]", onnx_in(n, 3), (long long)onnx_dim(n, 0, 1));
    const char *places = !bytes && onnx_has(n, 8) ? rows_of(n, 3, 8, false) : read_table(n, 3, first, bytes);
    const char *segments = onnx_has(n, 1) && onnx_has(n, 4) ? onnx_text(n, " + %s", rows_of(n, 4, 1, bytes)) : "";
    const char *eps = onnx_number(n, bytes ? DT_F32 : onnx_type(n, 2)->dtype, onnx_float(n, "epsilon", (double)1e-12f));
    const char *counted = onnx_has(n, 7) ? onnx_text(n, "reduce_sum(cast(%s, to = i32), axes = 1)", onnx_in(n, 7))
                                         : onnx_text(n, "zeros([%lld], i32)", (long long)onnx_dim(n, 0, 0));
    return onnx_emit(n, "%s = %s + %s%s", sum, rows_of(n, 2, 0, bytes), places, segments) &&
           onnx_emit(n, "%s = standardize(%s, axes = -1, eps = %s) * %s + %s", onnx_out(n, 0), sum, eps,
                     read_table(n, 5, onnx_in(n, 5), bytes), read_table(n, 6, onnx_in(n, 6), bytes)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), counted));
}

static bool write_embed(OnnxNode *n)
{
    return embed(n, false);
}

/* The same with tables of bytes */
static bool write_quantised_embed(OnnxNode *n)
{
    return embed(n, true);
}

const OnnxRow onnx_contrib_attention[] = {
    {"Attention", 1, write_attention, NULL, CONTRIB, false},
    {"QAttention", 1, write_quantised_attention, NULL, CONTRIB, false},
    {"MultiHeadAttention", 1, write_multi_head, NULL, CONTRIB, false},
    {"EmbedLayerNormalization", 1, write_embed, NULL, CONTRIB, false},
    {"QEmbedLayerNormalization", 1, write_quantised_embed, NULL, CONTRIB, false},
    {0},
};
