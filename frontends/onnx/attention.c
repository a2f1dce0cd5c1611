/* Attention and the embedding of positions by rotation (opsets 23 on). */
#include <math.h>
#include <string.h>

#include "onnx/import.h"

#define UNBOUNDED (-1) /* a side of the window */

typedef struct Attention {
    OnnxNode *node;
    int64_t batch, heads, groups, steps, keys, width, past; /* groups: heads of keys and values */
    const char *q, *k, *v, *scores, *bias;
    const char *offset; /* of the queries behind the first key; a number, or [batch, 1, 1, 1] */
    bool flat;          /* operands are [batch, steps, heads * width] */
    bool guarded;       /* a row may have no key at all */
    DType dtype;
} Attention;

/* [batch, steps, heads * width] as [batch, heads, steps, width] */
static const char *split_heads(Attention *a, uint32_t i, int64_t heads)
{
    OnnxNode *n = a->node;
    if (!a->flat)
        return onnx_in(n, i);
    int64_t dim[] = {onnx_dim(n, i, 0), onnx_dim(n, i, 1), heads, onnx_dim(n, i, 2) / heads};
    return onnx_text(n, "transpose(reshape(%s, shape = %s), axes = [0, 2, 1, 3])", onnx_in(n, i), onnx_list(n, dim, 4));
}

static bool start(Attention *a, OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    *a = (Attention){.node = n, .flat = rank == 3, .batch = onnx_dim(n, 0, 0), .dtype = onnx_type(n, 0)->dtype};
    if ((rank != 3 && rank != 4) || onnx_rank(n, 1) != rank || onnx_rank(n, 2) != rank)
        return onnx_no(n, "its operands have neither 3 nor 4 dimensions");
    a->heads = a->flat ? onnx_int(n, "q_num_heads", 0) : onnx_dim(n, 0, 1);
    a->groups = a->flat ? onnx_int(n, "kv_num_heads", 0) : onnx_dim(n, 1, 1);
    if (a->heads < 1 || a->groups < 1 || a->heads % a->groups)
        return onnx_no(n, "its heads cannot be shared out");
    if (a->flat && (onnx_dim(n, 0, 2) % a->heads || onnx_dim(n, 1, 2) % a->groups || onnx_dim(n, 2, 2) % a->groups))
        return onnx_no(n, "its features cannot be shared out to heads");
    a->steps = onnx_dim(n, 0, a->flat ? 1 : 2);
    a->width = a->flat ? onnx_dim(n, 0, 2) / a->heads : onnx_dim(n, 0, 3);
    a->past = onnx_has(n, 4) ? onnx_dim(n, 4, 2) : 0;
    a->keys = a->past + onnx_dim(n, 1, a->flat ? 1 : 2);
    return a->width > 0 || onnx_no(n, "its heads are empty");
}

/* What was kept stands before; each head of keys serves several of queries. */
static const char *put_cache(Attention *a, uint32_t i, uint32_t past, uint32_t present)
{
    OnnxNode *n = a->node;
    const char *own = split_heads(a, i, a->groups),
               *name = onnx_wants(n, present) ? onnx_out(n, present) : onnx_temp(n, i == 1 ? "k" : "v");
    bool good = onnx_has(n, past) ? onnx_emit(n, "%s = concat(%s, %s, axis = 2)", name, onnx_in(n, past), own)
                                  : onnx_emit(n, "%s = %s", name, own);
    const Type *type = good ? onnx_type_of(n, name) : NULL;
    if (!type || a->heads == a->groups)
        return type ? name : NULL;
    int64_t width = type->shape.dim[3], each = a->heads / a->groups;
    int64_t unit[] = {a->batch, a->groups, 1, a->keys, width}, many[] = {a->batch, a->groups, each, a->keys, width};
    int64_t all[] = {a->batch, a->heads, a->keys, width};
    const char *repeated = onnx_temp(n, i == 1 ? "keys" : "values");
    return onnx_emit(n, "%s = reshape(broadcast(reshape(%s, shape = %s), shape = %s), shape = %s)", repeated, name,
                     onnx_list(n, unit, 5), onnx_list(n, many, 5), onnx_list(n, all, 4))
               ? repeated
               : NULL;
}

/* softmax's operand without the mask */
static bool put_scores(Attention *a)
{
    OnnxNode *n = a->node;
    const Onnx__AttributeProto *given = onnx_attribute(n, "scale");
    double scale = sqrt(given ? (double)given->f : 1 / sqrt((double)a->width)), cap = onnx_float(n, "softcap", 0);
    const char *root = onnx_number(n, a->dtype, scale), *raw = onnx_temp(n, "raw");
    a->scores = cap > 0 ? onnx_temp(n, "capped") : raw;
    const char *limit = onnx_number(n, a->dtype, cap);
    bool shows_raw = onnx_wants(n, 3) && onnx_int(n, "qk_matmul_output_mode", 0) == 0;
    return onnx_emit(n, "%s = matmul(%s * %s, %s * %s, transpose_y = true)", raw, a->q, root, a->k, root) &&
           (!shows_raw || onnx_emit(n, "%s = %s", onnx_out(n, 3), raw)) &&
           (cap <= 0 || onnx_emit(n, "%s = tanh(%s / %s) * %s", a->scores, raw, limit, limit));
}

static void both(Text *text, const char *condition)
{
    text_printf(text, "%s(%s)", text->len ? " and " : "", condition);
}

/* Which keys each query may see, as conditions on positions. */
static bool put_conditions(Attention *a, Text *text)
{
    OnnxNode *n = a->node;
    int64_t left = onnx_int(n, "left_window_size", UNBOUNDED), right = onnx_int(n, "right_window_size", UNBOUNDED);
    int64_t dim[] = {1, 1, a->steps, a->keys};
    const char *shape = onnx_list(n, dim, 4), *distance = NULL;
    a->offset = onnx_text(n, "%lld", (long long)a->past);
    if (onnx_has(n, 6)) {
        const char *length = onnx_temp(n, "length");
        if (!onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = [%lld, 1, 1, 1])", length, onnx_in(n, 6),
                       (long long)a->batch))
            return false;
        if (!onnx_has(n, 4))
            a->offset = onnx_text(n, "(%s - %lld)", length, (long long)a->steps);
        both(text, onnx_text(n, "iota(axis = 3, shape = [1, 1, 1, %lld]) < %s", (long long)a->keys, length));
    }
    bool causal = onnx_int(n, "is_causal", 0) != 0;
    if (causal || left != UNBOUNDED || right != UNBOUNDED) {
        distance = onnx_temp(n, "distance");
        if (!onnx_emit(n, "%s = iota(axis = 2, shape = %s) + %s - iota(axis = 3, shape = %s)", distance, shape,
                       a->offset, shape))
            return false;
    }
    if (causal)
        both(text, onnx_text(n, "%s >= 0", distance));
    if (left != UNBOUNDED)
        both(text, onnx_text(n, "%s <= %lld", distance, (long long)left));
    if (right != UNBOUNDED)
        both(text, onnx_text(n, "%s >= %lld", distance, (long long)-right));
    a->guarded = onnx_has(n, 3) || onnx_has(n, 6) || left != UNBOUNDED || right != UNBOUNDED;
    return true;
}

/* The mask's own operand, padded to all keys. */
static const char *padded_mask(Attention *a)
{
    OnnxNode *n = a->node;
    uint32_t rank = onnx_rank(n, 3);
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0}, missing = a->keys - onnx_dim(n, 3, -1);
    if (missing <= 0)
        return onnx_in(n, 3);
    after[rank - 1] = missing;
    bool is_bool = onnx_type(n, 3)->dtype == DT_BOOL;
    return onnx_text(n, "pad(%s, before = %s, after = %s%s)", onnx_in(n, 3), onnx_list(n, before, rank),
                     onnx_list(n, after, rank), is_bool ? "" : ", value = -inf");
}

static bool put_bias(Attention *a)
{
    OnnxNode *n = a->node;
    Text seen = {0};
    if (!put_conditions(a, &seen))
        return text_free(&seen), false;
    bool masked = onnx_has(n, 3), is_bool = masked && onnx_type(n, 3)->dtype == DT_BOOL;
    const char *mask = masked ? padded_mask(a) : NULL, *type = dtype_name(a->dtype);
    if (is_bool)
        both(&seen, mask);
    const char *sum = masked && !is_bool ? onnx_text(n, "cast(%s, to = %s)", mask, type) : NULL;
    if (seen.len) {
        const char *hidden = onnx_text(n, "select(%s, %s(0.0), -inf)", seen.ptr, type);
        sum = sum ? onnx_text(n, "%s + %s", sum, hidden) : hidden;
    }
    text_free(&seen);
    if (!sum)
        return true;
    a->bias = onnx_temp(n, "mask");
    return onnx_emit(n, "%s = %s", a->bias, sum);
}

/* Scores of the keys with one more, which takes a share and has no value: a number for each head (operand 7), or 0 */
static const char *with_sink(Attention *a, const char *scores)
{
    OnnxNode *n = a->node;
    int64_t head[] = {1, a->heads, 1, 1}, column[] = {a->batch, a->heads, a->steps, 1};
    const char *type = dtype_name(a->dtype), *list = onnx_list(n, column, 4);
    const char *sink = onnx_has(n, 7) ? onnx_text(n, "broadcast(reshape(cast(%s, to = %s), shape = %s), shape = %s)",
                                                  onnx_in(n, 7), type, onnx_list(n, head, 4), list)
                                      : onnx_text(n, "zeros(%s, %s)", list, type);
    return onnx_define(n, "sunk", "concat(%s, %s, axis = 3)", scores, sink);
}

/* Shares of the keys; a query that sees none has shares of 0. */
static const char *put_shares(Attention *a)
{
    OnnxNode *n = a->node;
    int64_t mode = onnx_int(n, "qk_matmul_output_mode", 0);
    const char *biased = a->scores, *shares = onnx_temp(n, "shares"), *type = dtype_name(a->dtype);
    DType precision = a->dtype;
    int32_t wanted = (int32_t)onnx_int(n, "softmax_precision", 0);
    if (wanted && !onnx_dtype(wanted, &precision))
        return onnx_no(n, "its softmax is computed as %s", onnx_dtype_name(wanted)), NULL;
    if (a->bias) {
        biased = onnx_temp(n, "scores");
        if (!onnx_emit(n, "%s = %s + %s", biased, a->scores, a->bias))
            return NULL;
    }
    bool sinks = onnx_has(n, 7) || onnx_int(n, "smooth_softmax", 0);
    const char *all = sinks ? with_sink(a, biased) : biased;
    if (!all)
        return NULL;
    const char *text = precision == a->dtype ? onnx_text(n, "softmax(%s)", all)
                                             : onnx_text(n, "cast(softmax(cast(%s, to = %s)), to = %s)", all,
                                                         dtype_name(precision), type);
    if (sinks)
        text = onnx_text(n, "slice(%s, axes = 3, begin = 0, end = %lld)", text, (long long)a->keys);
    if (a->guarded && a->bias)
        text = onnx_text(n, "select(reduce_max(%s, axes = -1, keep = true) == -inf, 0.0, %s)", a->bias, text);
    const char *shown = mode == 1 ? a->scores : mode == 2 ? biased : mode == 3 ? shares : NULL;
    return onnx_emit(n, "%s = %s", shares, text) &&
                   (!shown || !onnx_wants(n, 3) || onnx_emit(n, "%s = %s", onnx_out(n, 3), shown))
               ? shares
               : NULL;
}

static bool write_attention(OnnxNode *n)
{
    Attention a;
    if (!start(&a, n))
        return false;
    a.q = split_heads(&a, 0, a.heads);
    if (!(a.k = put_cache(&a, 1, 4, 1)) || !(a.v = put_cache(&a, 2, 5, 2)) || !put_scores(&a) || !put_bias(&a))
        return false;
    const char *shares = put_shares(&a);
    if (!shares)
        return false;
    if (!a.flat)
        return onnx_emit(n, "%s = %s @ %s", onnx_out(n, 0), shares, a.v);
    int64_t dim[] = {a.batch, a.steps, a.heads * (onnx_dim(n, 2, 2) / a.groups)};
    return onnx_emit(n, "%s = reshape(transpose(%s @ %s, axes = [0, 2, 1, 3]), shape = %s)", onnx_out(n, 0), shares,
                     a.v, onnx_list(n, dim, 3));
}

/* Pairs of features turn by an angle that hangs on the position: halves of a head, or neighbours. */

typedef struct Rotary {
    int64_t batch, steps, heads, width, turned;
    bool flat;
} Rotary;

static bool start_rotary(OnnxNode *n, Rotary *r)
{
    uint32_t rank = onnx_rank(n, 0);
    *r = (Rotary){.flat = rank == 3, .batch = onnx_dim(n, 0, 0)};
    if (rank != 3 && rank != 4)
        return onnx_no(n, "its operand has neither 3 nor 4 dimensions");
    r->heads = r->flat ? onnx_int(n, "num_heads", 0) : onnx_dim(n, 0, 1);
    r->steps = onnx_dim(n, 0, r->flat ? 1 : 2);
    if (r->heads < 1 || (r->flat && onnx_dim(n, 0, 2) % r->heads))
        return onnx_no(n, "its features cannot be shared out to heads");
    r->width = r->flat ? onnx_dim(n, 0, 2) / r->heads : onnx_dim(n, 0, 3);
    r->turned = onnx_int(n, "rotary_embedding_dim", 0);
    r->turned = r->turned ? r->turned : r->width;
    return (r->turned > 0 && r->turned <= r->width && r->turned % 2 == 0) ||
           onnx_no(n, "it turns an impossible number of features");
}

/* [batch or 1, steps, 1, turned / 2] of a table of cosines or sines */
static const char *angles(OnnxNode *n, const Rotary *r, uint32_t i, const char *word)
{
    const char *name = onnx_temp(n, word), *x = onnx_in(n, i);
    int64_t dim[] = {r->batch, r->steps, 1, r->turned / 2};
    if (onnx_has(n, 3))
        x = onnx_text(n, "gather(%s, %s)", x, onnx_in(n, 3));
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", name, x, onnx_list(n, dim, 4)) ? name : NULL;
}

static bool write_rotary(OnnxNode *n)
{
    Rotary r;
    if (!start_rotary(n, &r))
        return false;
    int64_t split[] = {r.batch, r.steps, r.heads, r.width}, pairs[] = {r.batch, r.steps, r.heads, r.turned / 2, 1};
    int64_t turned[] = {r.batch, r.steps, r.heads, r.turned};
    const char *x = onnx_temp(n, "x"), *a = onnx_temp(n, "a"), *b = onnx_temp(n, "b"), *y = onnx_temp(n, "turned");
    const char *real = onnx_temp(n, "real"), *imaginary = onnx_temp(n, "imaginary"), *list = onnx_list(n, pairs, 5);
    const char *c = angles(n, &r, 1, "cos"), *s = c ? angles(n, &r, 2, "sin") : NULL;
    if (!s)
        return false;
    const char *rows = r.flat ? onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, 0), onnx_list(n, split, 4))
                              : onnx_text(n, "transpose(%s, axes = [0, 2, 1, 3])", onnx_in(n, 0));
    bool neighbours = onnx_int(n, "interleaved", 0) != 0;
    long long half = (long long)r.turned / 2, all = (long long)r.turned;
    const char *first =
        neighbours ? onnx_text(n, "%s[..., 0:%lld:2]", x, all) : onnx_text(n, "%s[..., 0:%lld]", x, half);
    const char *second =
        neighbours ? onnx_text(n, "%s[..., 1:%lld:2]", x, all) : onnx_text(n, "%s[..., %lld:%lld]", x, half, all);
    const char *joined =
        neighbours
            ? onnx_text(n, "reshape(concat(reshape(%s, shape = %s), reshape(%s, shape = %s), axis = 4), shape = %s)",
                        real, list, imaginary, list, onnx_list(n, turned, 4))
            : onnx_text(n, "concat(%s, %s, axis = 3)", real, imaginary);
    if (r.turned < r.width)
        joined = onnx_text(n, "concat(%s, %s[..., %lld:], axis = 3)", joined, x, all);
    const Shape *shape = &onnx_type(n, 0)->shape;
    const char *back = r.flat ? onnx_text(n, "reshape(%s, shape = %s)", y, onnx_list(n, shape->dim, shape->rank))
                              : onnx_text(n, "transpose(%s, axes = [0, 2, 1, 3])", y);
    return onnx_emit(n, "%s = %s", x, rows) && onnx_emit(n, "%s = %s", a, first) &&
           onnx_emit(n, "%s = %s", b, second) && onnx_emit(n, "%s = %s * %s - %s * %s", real, c, a, s, b) &&
           onnx_emit(n, "%s = %s * %s + %s * %s", imaginary, s, a, c, b) && onnx_emit(n, "%s = %s", y, joined) &&
           onnx_emit(n, "%s = %s", onnx_out(n, 0), back);
}

const OnnxRow onnx_attention[] = {
    {"Attention", 23, write_attention, NULL, NULL, false},
    {"RotaryEmbedding", 23, write_rotary, NULL, NULL, false},
    {0},
};
