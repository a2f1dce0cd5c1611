/* GatedDeltaNet (com.microsoft): linear attention of tokens that lie behind each other, with what makes its decays and
 * rates of what was projected.  Its state is LinearAttention's the other way round, [batch, heads, value, key]. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

enum { QUERY, KEY, VALUE, LENGTHS, DECAY, RATE, STATE, A_LOG, BIAS };

typedef struct Delta {
    OnnxNode *node;
    int64_t batch, steps, groups, heads, key, value; /* groups: heads of queries and of keys; heads: of values */
    uint32_t lead;                                   /* dimensions of tokens: 1, or 2 with those of the batch */
    bool packed, decays, learns, each;               /* each: a key's elements have decays of their own */
    const char *gate;                                /* what its decays are made by; NULL: they are given */
} Delta;

/* Shapes */

/* Sequences are equally long, which follows from the dimensions, or from lengths that are known. */
static bool take_lengths(Delta *d)
{
    OnnxNode *n = d->node;
    const int64_t *begin;
    uint32_t count;
    int64_t tokens = onnx_dim(n, QUERY, 0);
    if (d->lead == 2) {
        d->batch = tokens, d->steps = onnx_dim(n, QUERY, 1);
        return !onnx_has(n, LENGTHS) || onnx_no(n, "its cu_seqlens are of tokens that have a batch already");
    }
    if (onnx_has(n, LENGTHS)) {
        if (!onnx_known_ints(n, LENGTHS, &begin, &count))
            return false;
        d->batch = (int64_t)count - 1;
        d->steps = d->batch > 0 ? tokens / d->batch : 0;
        for (uint32_t i = 0; i < count; i++)
            if (begin[i] != i * d->steps || tokens != d->batch * d->steps)
                return onnx_no(n, "its cu_seqlens are of sequences that are not equally long");
        return true;
    }
    if (!onnx_has(n, STATE))
        return onnx_no(n, "it has neither cu_seqlens nor a state, which would say how many sequences there are");
    d->batch = onnx_dim(n, STATE, 0);
    d->steps = d->batch > 0 ? tokens / d->batch : 0;
    return tokens == d->batch * d->steps || onnx_no(n, "its tokens cannot be shared out to sequences");
}

static bool take_heads(Delta *d)
{
    OnnxNode *n = d->node;
    if (!d->packed) {
        uint32_t rank = d->lead + 2;
        if (onnx_rank(n, KEY) != rank || onnx_rank(n, VALUE) != rank)
            return onnx_no(n, "its keys or values do not fit its queries");
        d->groups = onnx_dim(n, KEY, -2), d->key = onnx_dim(n, KEY, -1);
        d->heads = onnx_dim(n, VALUE, -2), d->value = onnx_dim(n, VALUE, -1);
        return true;
    }
    if (!onnx_has(n, STATE) || onnx_rank(n, STATE) != 4)
        return onnx_no(n, "it has no state, which would say how its packed heads lie");
    d->heads = onnx_dim(n, STATE, 1), d->value = onnx_dim(n, STATE, 2), d->key = onnx_dim(n, STATE, 3);
    int64_t both = onnx_dim(n, QUERY, -1) - d->heads * d->value;
    d->groups = d->key > 0 ? both / (2 * d->key) : 0;
    return both == 2 * d->groups * d->key || onnx_no(n, "its packed heads do not fit its state");
}

/* Operand i: so many features for each token, in one dimension or two; b 0: in one */
static bool is_of_tokens(const Delta *d, uint32_t i, int64_t a, int64_t b)
{
    Shape shape = shape_of(d->lead, onnx_type(d->node, QUERY)->shape.dim);
    shape.dim[shape.rank++] = a;
    if (b)
        shape.dim[shape.rank++] = b;
    return onnx_has(d->node, i) && shape_eq(&onnx_type(d->node, i)->shape, &shape);
}

static bool operands_fit(Delta *d)
{
    OnnxNode *n = d->node;
    int64_t dim[] = {d->batch, d->heads, d->value, d->key};
    Shape state = shape_of(4, dim);
    if (d->batch < 1 || d->steps < 1 || d->groups < 1 || d->key < 1 || d->value < 1 || d->heads < 1 ||
        d->heads % d->groups || d->heads > INT32_MAX)
        return onnx_no(n, "its heads cannot be shared out");
    if (!d->packed && (!is_of_tokens(d, QUERY, d->groups, d->key) || !is_of_tokens(d, KEY, d->groups, d->key) ||
                       !is_of_tokens(d, VALUE, d->heads, d->value)))
        return onnx_no(n, "its keys or values do not fit its queries");
    if (onnx_has(n, STATE) && !shape_eq(&onnx_type(n, STATE)->shape, &state))
        return onnx_no(n, "its state does not fit its heads");
    d->each = d->decays && is_of_tokens(d, DECAY, d->heads, d->key);
    if (onnx_has(n, DECAY) != d->decays || (d->decays && !d->each && !is_of_tokens(d, DECAY, d->heads, 0)) ||
        onnx_has(n, RATE) != d->learns || (d->learns && !is_of_tokens(d, RATE, d->heads, 0)))
        return onnx_no(n, "its decay or its beta does not go with its update_rule");
    return true;
}

/* Words */

static bool take_rule(Delta *d)
{
    OnnxNode *n = d->node;
    const char *rule = onnx_string(n, "update_rule", "gated_delta");
    d->decays = strncmp(rule, "gated", 5) == 0;
    d->learns = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    return d->learns || strcmp(rule, "linear") == 0 || strcmp(rule, "gated") == 0 ||
           onnx_no(n, "its update_rule, %s, is unknown", rule);
}

static bool take_gate(Delta *d)
{
    OnnxNode *n = d->node;
    const char *gate = onnx_string(n, "gate_activation", "none"), *rate = onnx_string(n, "beta_activation", "none");
    bool soft = strcmp(gate, "softplus") == 0 || strcmp(gate, "qwen") == 0,
         bounded = strcmp(gate, "sigmoid") == 0 || strcmp(gate, "kda") == 0;
    if (!soft && !bounded && strcmp(gate, "none") != 0)
        return onnx_no(n, "its gate_activation, %s, is unknown", gate);
    if (strcmp(rate, "none") != 0 && strcmp(rate, "sigmoid") != 0)
        return onnx_no(n, "its beta_activation, %s, is unknown", rate);
    d->gate = soft ? "softplus" : bounded ? "sigmoid" : NULL;
    return true;
}

/* A log of a scale for each head, and a bias for each, or for each element of a key */
static bool gate_fits(const Delta *d)
{
    OnnxNode *n = d->node;
    bool given = onnx_has(n, A_LOG) && onnx_has(n, BIAS);
    if (!d->gate || !d->decays)
        return true;
    int64_t biases = given ? shape_elements(&onnx_type(n, BIAS)->shape) : 0;
    if (!given || shape_elements(&onnx_type(n, A_LOG)->shape) != d->heads ||
        (biases != d->heads && (!d->each || biases != d->heads * d->key)))
        return onnx_no(n, "its a_log or its dt_bias does not fit its heads");
    return true;
}

static bool delta_start(Delta *d, OnnxNode *n)
{
    *d = (Delta){.node = n, .packed = !onnx_has(n, KEY) && !onnx_has(n, VALUE)};
    uint32_t rank = onnx_rank(n, QUERY);
    d->lead = d->packed ? rank - 1 : rank - 2;
    if (d->lead != 1 && d->lead != 2)
        return onnx_no(n, "its queries have %u dimensions", rank);
    if (onnx_wants(n, 2))
        return onnx_no(n, "it gives updates of its state, by state_update_capacity");
    return take_rule(d) && take_gate(d) && take_heads(d) && take_lengths(d) && operands_fit(d) && gate_fits(d);
}

/* Operands of LinearAttention: [batch, steps, features], f32 */

static const char *wide(const Delta *d, uint32_t i)
{
    DType dtype = onnx_type(d->node, i)->dtype;
    return onnx_text(d->node, dtype == DT_F32 ? "%s" : "cast(%s, to = f32)", onnx_in(d->node, i));
}

static OnnxValue *put_features(const Delta *d, const char *x, int64_t features, const char *word)
{
    int64_t dim[] = {d->batch, d->steps, features};
    return onnx_define_value(d->node, word, "reshape(%s, shape = %s)", x, onnx_list(d->node, dim, 3));
}

/* Operand i, or its part of what is packed from `begin` on */
static OnnxValue *heads_of(const Delta *d, uint32_t i, int64_t begin, int64_t features, const char *word)
{
    const char *x = d->packed ? onnx_text(d->node, "%s[..., %lld:%lld]", onnx_in(d->node, QUERY), (long long)begin,
                                          (long long)(begin + features))
                              : onnx_in(d->node, i);
    if (onnx_type(d->node, QUERY)->dtype != DT_F32)
        x = onnx_text(d->node, "cast(%s, to = f32)", x);
    return put_features(d, x, features, word);
}

/* Each head of a length of 1, where that is asked for */
static OnnxValue *normed(const Delta *d, OnnxValue *x)
{
    OnnxNode *n = d->node;
    int64_t dim[] = {d->batch, d->steps, d->groups, d->key};
    if (!x || !onnx_int(n, "qk_l2_norm", 0))
        return x;
    const char *apart = onnx_define(n, "apart", "reshape(%s, shape = %s)", x->name, onnx_list(n, dim, 4));
    return apart ? put_features(
                       d,
                       onnx_text(n, "%s * rsqrt(reduce_sum(square(%s), axes = -1, keep = true) + 1e-12)", apart, apart),
                       d->groups * d->key, "normed")
                 : NULL;
}

/* A log of what is kept: given, or bounded above by 0 and, with a sigmoid, below */
static OnnxValue *put_decays(const Delta *d)
{
    OnnxNode *n = d->node;
    int64_t apart[] = {d->batch, d->steps, d->heads, d->each ? d->key : 1}, head[] = {d->heads, 1},
            bias[] = {d->heads, shape_elements(&onnx_type(n, d->gate ? BIAS : DECAY)->shape) / d->heads};
    if (!d->gate)
        return put_features(d, wide(d, DECAY), d->heads * apart[3], "decay");
    const char *a = onnx_text(n, "exp(reshape(%s, shape = %s))", onnx_in(n, A_LOG), onnx_list(n, head, 2));
    const char *x = onnx_text(n, "reshape(%s, shape = %s) + reshape(%s, shape = %s)", wide(d, DECAY),
                              onnx_list(n, apart, 4), onnx_in(n, BIAS), onnx_list(n, bias, 2));
    const char *least = onnx_number(n, DT_F32, onnx_float(n, "gate_lower_bound", -5));
    x = strcmp(d->gate, "softplus") == 0 ? onnx_text(n, "-%s * softplus(%s)", a, x)
                                         : onnx_text(n, "%s * sigmoid(%s * (%s))", least, a, x);
    return put_features(d, x, d->heads * apart[3], "decay");
}

static OnnxValue *put_rates(const Delta *d)
{
    bool plain = strcmp(onnx_string(d->node, "beta_activation", "none"), "none") == 0;
    return put_features(d, plain ? wide(d, RATE) : onnx_text(d->node, "sigmoid(%s)", wide(d, RATE)), d->heads, "beta");
}

static bool put_operands(const Delta *d, OnnxNode *node)
{
    int64_t keys = d->groups * d->key;
    OnnxValue *q = normed(d, heads_of(d, QUERY, 0, keys, "q")),
              *k = q ? normed(d, heads_of(d, KEY, keys, keys, "k")) : NULL,
              *v = k ? heads_of(d, VALUE, 2 * keys, d->heads * d->value, "v") : NULL;
    OnnxValue *state = v && onnx_has(d->node, STATE)
                           ? onnx_define_value(d->node, "past", "transpose(%s, axes = [0, 1, 3, 2])",
                                               onnx_in(d->node, STATE))
                           : NULL,
              *decay = v && d->decays ? put_decays(d) : NULL, *rate = v && d->learns ? put_rates(d) : NULL;
    OnnxValue *const operand[] = {q, k, v, state, decay, rate};
    for (uint32_t i = 0; i < 6; i++)
        if (operand[i])
            onnx_set_operand(node, i, operand[i]);
    return v && !d->node->reason;
}

static bool write_gated_delta(OnnxNode *n)
{
    Delta d;
    if (!delta_start(&d, n))
        return false;
    OnnxNode *node = onnx_cover_of(n, CONTRIB, "LinearAttention", 1, 6);
    const char *name[] = {onnx_temp(n, "y"), onnx_temp(n, "state")};
    if (!put_operands(&d, node))
        return false;
    onnx_add_int(node, "q_num_heads", d.groups);
    onnx_add_int(node, "kv_num_heads", d.heads);
    onnx_add_string(node, "update_rule", onnx_string(n, "update_rule", "gated_delta"));
    onnx_add_float(node, "scale", onnx_float(n, "scale", 0));
    onnx_name_results(node, name, 2);
    if (!onnx_write_cover(n, node))
        return false;
    Shape shape = shape_of(d.lead, onnx_type(n, QUERY)->shape.dim);
    shape.dim[shape.rank++] = d.heads;
    shape.dim[shape.rank++] = d.value;
    return onnx_put_rounded(n, 0,
                            onnx_text(n, "reshape(%s, shape = %s)", name[0], onnx_list(n, shape.dim, shape.rank))) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = transpose(%s, axes = [0, 1, 3, 2])", onnx_out(n, 1), name[1]));
}

const OnnxRow onnx_contrib_delta[] = {
    {"GatedDeltaNet", 1, write_gated_delta, NULL, CONTRIB, false},
    {0},
};
