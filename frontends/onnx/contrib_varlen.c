/* VarlenCausalConvWithState (com.microsoft): causal convolutions of sequences that lie behind each other, as long as
 * data say.
 *
 * The positions before each sequence are rows in front of all tokens, so that every tap is one of these rows, wherever
 * its sequence begins. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

enum { TOKENS, WEIGHT, LENGTHS, BIAS, STATE, CAPTURED, DELTA, MASK };

typedef struct Varlen {
    OnnxNode *node;
    int64_t tokens, channels, batch, taps, dilation, before, captured; /* before: positions that are kept of each */
    bool swish;
    const char *begin, *length; /* of each sequence, i64 [batch] */
    const char *rows;           /* [batch * before + tokens, channels] */
} Varlen;

static bool take_attributes(Varlen *c)
{
    OnnxNode *n = c->node;
    const char *activation = onnx_string(n, "activation", "none");
    c->dilation = onnx_int(n, "dilation", 1);
    c->captured = onnx_int(n, "state_update_capacity", 0);
    c->swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!c->swish && strcmp(activation, "none") != 0)
        return onnx_no(n, "its activation, %s, is unknown", activation);
    if (onnx_has(n, DELTA) || onnx_has(n, MASK))
        return onnx_no(n, "its kernel_delta and previous_mask are for GPUs alone");
    if (c->dilation < 1 || c->dilation > INT32_MAX)
        return onnx_no(n, "its dilation is %lld", (long long)c->dilation);
    return (c->captured >= 0 && c->captured <= 8) ||
           onnx_no(n, "its state_update_capacity is %lld", (long long)c->captured);
}

static bool has_extents(const Varlen *c, uint32_t i, uint32_t rank, const int64_t *dim)
{
    Shape shape = shape_of(rank, dim);
    return shape_eq(&onnx_type(c->node, i)->shape, &shape);
}

static bool varlen_start(Varlen *c, OnnxNode *n)
{
    *c = (Varlen){.node = n};
    if (!take_attributes(c))
        return false;
    if (onnx_rank(n, TOKENS) != 2 || onnx_rank(n, WEIGHT) != 3 || onnx_rank(n, LENGTHS) != 1)
        return onnx_no(n, "its tokens, its weights or its lengths have other dimensions");
    c->tokens = onnx_dim(n, TOKENS, 0), c->channels = onnx_dim(n, TOKENS, 1), c->taps = onnx_dim(n, WEIGHT, 2);
    c->batch = onnx_dim(n, LENGTHS, 0) - 1, c->before = (c->taps - 1) * c->dilation;
    int64_t weight[] = {c->channels, 1, c->taps}, state[] = {c->batch, c->channels, c->before};
    if (c->tokens < 1 || c->channels < 1 || c->batch < 1 || c->taps < 1 || !has_extents(c, WEIGHT, 3, weight) ||
        (onnx_has(n, BIAS) && !has_extents(c, BIAS, 1, weight)))
        return onnx_no(n, "its weights do not fit its tokens");
    if (!has_extents(c, STATE, 3, state))
        return onnx_no(n, "its state does not fit its weights");
    if (onnx_has(n, CAPTURED) != (c->captured > 0) || (c->captured && !has_extents(c, CAPTURED, 1, state)))
        return onnx_no(n, "its capture_count does not go with its state_update_capacity");
    return true;
}

/* What lies before and what comes, and where each sequence begins */
static bool put_rows(Varlen *c)
{
    OnnxNode *n = c->node;
    int64_t flat[] = {c->batch * c->before, c->channels};
    const char *ends = onnx_define(n, "ends", "cast(%s, to = i64)", onnx_in(n, LENGTHS));
    c->begin = ends ? onnx_define(n, "begin", "%s[0:%lld]", ends, (long long)c->batch) : NULL;
    c->length = c->begin ? onnx_define(n, "length", "%s[1:] - %s", ends, c->begin) : NULL;
    if (!c->length || !c->before)
        c->rows = onnx_in(n, TOKENS);
    else
        c->rows = onnx_define(n, "rows", "concat(reshape(transpose(%s, axes = [0, 2, 1]), shape = %s), %s, axis = 0)",
                              onnx_in(n, STATE), onnx_list(n, flat, 2), onnx_in(n, TOKENS));
    return c->length && c->rows;
}

/* Rows of positions `at` of sequences that begin at `begin`: those below 0 lie in front of all tokens. */
static const char *row_of(const Varlen *c, const char *at, const char *sequence, const char *begin)
{
    long long in_front = c->batch * c->before, before = c->before;
    return onnx_text(c->node, "select(%s < 0, %s * %lld + %s + %lld, %s + %s + %lld)", at, sequence, before, at, before,
                     begin, at, in_front);
}

static bool put_result(const Varlen *c)
{
    OnnxNode *n = c->node;
    int64_t all[] = {c->tokens, 1}, taps[] = {c->taps};
    const char *place = onnx_text(n, "iota(axis = 0, shape = %s)", onnx_list(n, all, 2));
    const char *of = onnx_define(n, "sequence", "reduce_sum(cast(%s + %s <= %s, to = i64), axes = 1, keep = true)",
                                 c->begin, c->length, place);
    const char *begin = of ? onnx_define(n, "first", "gather(%s, %s)", c->begin, of) : NULL;
    const char *at = begin ? onnx_define(n, "at", "%s - %s + (iota(shape = %s) - %lld) * %lld", place, begin,
                                         onnx_list(n, taps, 1), (long long)c->taps - 1, (long long)c->dilation)
                           : NULL;
    const char *seen = at ? onnx_define(n, "seen", "gather(%s, %s)", c->rows, row_of(c, at, of, begin)) : NULL;
    if (!seen)
        return false;
    DType dtype = onnx_type(n, TOKENS)->dtype;
    if (dtype_is_half(dtype))
        seen = onnx_text(n, "cast(%s, to = f32)", seen);
    int64_t weight[] = {c->channels, c->taps};
    const char *bias = onnx_has(n, BIAS) ? onnx_text(n, " + %s", onnx_widened(n, BIAS)) : "";
    const char *y = onnx_define(n, "y", "reduce_sum(%s * transpose(reshape(%s, shape = %s)), axes = 1)%s", seen,
                                onnx_widened(n, WEIGHT), onnx_list(n, weight, 2), bias);
    return y && onnx_put_rounded(n, 0, onnx_text(n, "%s(%s)", c->swish ? "silu" : "", y));
}

/* The last positions of each sequence, of what came before where it is short */
static bool put_state(const Varlen *c)
{
    OnnxNode *n = c->node;
    int64_t each[] = {c->batch, 1}, kept[] = {c->before};
    if (!onnx_wants(n, 1))
        return true;
    if (!c->before)
        return onnx_emit(n, "%s = %s", onnx_out(n, 1), onnx_in(n, STATE));
    const char *at = onnx_define(n, "last", "unsqueeze(%s, 1) - %lld + iota(shape = %s)", c->length,
                                 (long long)c->before, onnx_list(n, kept, 1));
    if (!at)
        return false;
    const char *of = onnx_text(n, "iota(axis = 0, shape = %s)", onnx_list(n, each, 2));
    return onnx_emit(n, "%s = transpose(gather(%s, %s), axes = [0, 2, 1])", onnx_out(n, 1), c->rows,
                     row_of(c, at, of, onnx_text(n, "unsqueeze(%s, 1)", c->begin)));
}

/* The first tokens of each sequence, as many as are asked for and are there; zeros behind them */
static bool put_captured(const Varlen *c)
{
    OnnxNode *n = c->node;
    int64_t slot[] = {1, c->captured, 1}, places[] = {c->captured};
    if (!onnx_wants(n, 2))
        return true;
    if (!c->captured)
        return onnx_no(n, "it gives updates of its state, and state_update_capacity is 0");
    const char *count = onnx_define(n, "count", "minimum(cast(%s, to = i64), %s)", onnx_in(n, CAPTURED), c->length);
    return count && onnx_emit(n,
                              "%s = select(iota(axis = 1, shape = %s) < reshape(%s, shape = [%lld, 1, 1]), "
                              "gather(%s, unsqueeze(%s, 1) + iota(shape = %s)), 0.0)",
                              onnx_out(n, 2), onnx_list(n, slot, 3), count, (long long)c->batch, onnx_in(n, TOKENS),
                              c->begin, onnx_list(n, places, 1));
}

static bool write_varlen_conv(OnnxNode *n)
{
    Varlen c;
    return varlen_start(&c, n) && put_rows(&c) && put_result(&c) && put_state(&c) && put_captured(&c);
}

const OnnxRow onnx_contrib_varlen[] = {
    {"VarlenCausalConvWithState", 1, write_varlen_conv, NULL, CONTRIB, false},
    {0},
};
