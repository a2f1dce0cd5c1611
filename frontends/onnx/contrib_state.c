/* What keeps a state from run to run instead of keys and values (com.microsoft): convolutions that see the last
 * positions before, and attention whose state is a matrix for each head. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* CausalConvWithState */

typedef struct Causal {
    OnnxNode *node;
    const Type *type; /* of x */
    int64_t batch, channels, length, before, dilation;
    int64_t window; /* states that are kept, of the last positions; 0: one, without an axis for them */
    bool last;      /* channels come last, in one axis or more */
} Causal;

/* [batch, channels, positions], of an operand or of a state */
static const char *channels_first(const Causal *c, const char *x, int64_t positions)
{
    int64_t dim[] = {c->batch, positions, c->channels};
    if (!c->last)
        return x;
    return onnx_text(c->node, "transpose(reshape(%s, shape = %s), axes = [0, 2, 1])", x, onnx_list(c->node, dim, 3));
}

/* ... as the model has it */
static const char *as_given(const Causal *c, const char *x, int64_t positions)
{
    Shape shape = c->type->shape;
    if (!c->last)
        return x;
    shape.dim[1] = positions;
    return onnx_text(c->node, "reshape(transpose(%s, axes = [0, 2, 1]), shape = %s)", x,
                     onnx_list(c->node, shape.dim, shape.rank));
}

/* Of what is kept: as x, of the positions before; with an axis in front for those of several. */
static Shape state_shape(const Causal *c)
{
    Shape shape = {0};
    if (c->window)
        shape.dim[shape.rank++] = c->window;
    for (uint32_t d = 0; d < c->type->shape.rank; d++)
        shape.dim[shape.rank++] = d == (c->last ? 1 : 2) ? c->before : c->type->shape.dim[d];
    return shape;
}

static bool causal_start(Causal *c, OnnxNode *n)
{
    static const char *const elsewhere[] = {"state_update_capacity", "state_length", "input_channel_offset",
                                            "input_channels"};
    *c = (Causal){.node = n, .type = onnx_type(n, 0)};
    c->last = onnx_int(n, "channels_last", 0) != 0;
    c->dilation = onnx_int(n, "dilation", 1);
    c->window = onnx_int(n, "state_window", 0);
    for (uint32_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (onnx_int(n, elsewhere[i], 0))
            return onnx_no(n, "its attribute %s is for GPUs alone", elsewhere[i]);
    if (onnx_int(n, "ndim", 1) != 1 || onnx_int(n, "state_channels_last", -1) != -1 || onnx_wants(n, 2))
        return onnx_no(n, "its positions have several dimensions, or its state is laid out otherwise than its operand");
    const Shape *shape = &c->type->shape;
    if (shape->rank < 3 || (shape->rank > 3 && !c->last) || shape->rank == MAX_RANK || onnx_rank(n, 1) != 3)
        return onnx_no(n, "its operands have not 3 dimensions, or too many");
    c->batch = shape->dim[0], c->length = shape->dim[c->last ? 1 : 2];
    c->channels = c->batch > 0 && c->length > 0 ? shape_elements(shape) / (c->batch * c->length) : 0;
    if (c->length < 1 || c->channels < 1 || onnx_dim(n, 1, 0) != c->channels || onnx_dim(n, 1, 1) != 1 ||
        onnx_dim(n, 1, 2) < 1 || c->dilation < 1 || c->dilation > INT32_MAX || c->window < 0 || c->window > 8)
        return onnx_no(n, "its weights do not fit its operand");
    c->before = (onnx_dim(n, 1, 2) - 1) * c->dilation;
    Shape state = state_shape(c);
    if (onnx_has(n, 3) && !shape_eq(&onnx_type(n, 3)->shape, &state))
        return onnx_no(n, "its state does not fit its weights");
    return true;
}

/* The positions before the first, and all positions. */
static const char *with_past(const Causal *c)
{
    OnnxNode *n = c->node;
    int64_t dim[] = {c->batch, c->channels, c->before};
    const char *x = channels_first(c, onnx_in(n, 0), c->length);
    if (!c->before)
        return x;
    if (!onnx_has(n, 3))
        return onnx_text(n, "pad(%s, before = [0, 0, %lld], after = [0, 0, 0])", x, (long long)c->before);
    const char *past = onnx_in(n, 3);
    if (c->window) /* the last of them */
        past = onnx_text(n, "reshape(slice(%s, axes = 0, begin = %lld, end = %lld), shape = %s)", past,
                         (long long)c->window - 1, (long long)c->window,
                         onnx_list(n, c->last ? (int64_t[]){c->batch, c->before, c->channels} : dim, 3));
    return onnx_text(n, "concat(%s, %s, axis = 2)", channels_first(c, past, c->before), x);
}

/* What the run after so many positions would have before it. */
static const char *state_after(const Causal *c, const char *all, int64_t positions)
{
    OnnxNode *n = c->node;
    Shape shape = c->type->shape;
    shape.dim[c->last ? 1 : 2] = c->before;
    if (positions < 1 || !c->before)
        return onnx_text(n, "zeros(%s, %s)", onnx_list(n, shape.dim, shape.rank), dtype_name(c->type->dtype));
    return as_given(c,
                    onnx_text(n, "slice(%s, axes = 2, begin = %lld, end = %lld)", all, (long long)positions,
                              (long long)(positions + c->before)),
                    c->before);
}

static bool write_states(const Causal *c, const char *all)
{
    OnnxNode *n = c->node;
    Text text = {0};
    if (!onnx_wants(n, 1))
        return true;
    if (!c->window)
        return onnx_emit(n, "%s = %s", onnx_out(n, 1), state_after(c, all, c->length));
    for (int64_t j = 0; j < c->window; j++)
        text_printf(&text, "%s%s", j ? ", " : "", state_after(c, all, c->length - c->window + j + 1));
    bool good = onnx_emit(n, "%s = stack([%s], axis = 0)", onnx_out(n, 1), text.ptr);
    text_free(&text);
    return good;
}

static bool write_causal_conv(OnnxNode *n)
{
    Causal c;
    if (!causal_start(&c, n))
        return false;
    const char *activation = onnx_string(n, "activation", "none"), *all = onnx_temp(n, "x"), *y = onnx_temp(n, "y");
    bool swish = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!swish && strcmp(activation, "none") != 0)
        return onnx_no(n, "its activation is unknown");
    const char *bias = onnx_has(n, 2) ? onnx_text(n, ", %s", onnx_in(n, 2)) : "";
    const char *dilation = c.dilation > 1 ? onnx_text(n, ", dilation = %lld", (long long)c.dilation) : "";
    if (!onnx_emit(n, "%s = %s", all, with_past(&c)) ||
        !onnx_emit(n, "%s = conv1d(%s, %s%s, groups = %lld%s)", y, all, onnx_in(n, 1), bias, (long long)c.channels,
                   dilation))
        return false;
    const char *given = as_given(&c, y, c.length);
    return onnx_emit(n, "%s = %s(%s)", onnx_out(n, 0), swish ? "silu" : "", given) && write_states(&c, all);
}

/* LinearAttention
 *
 * The state of a head is a matrix [key, value], which each step multiplies by its decay, and adds the outer product of
 * its key and value to; of a value, by the delta rule, what the state does not give for the key already. */

typedef struct Linear {
    OnnxNode *node;
    int64_t batch, steps, q_heads, heads, key, value; /* heads: of values, and states */
    int64_t k_heads;                                  /* of keys, that several of values may share */
    int64_t window;                                   /* as of a Causal */
    bool decays, delta, narrow;                       /* narrow: computed in f32, given in f16 or bf16 */
} Linear;

static DType computed_in(const Linear *l)
{
    return l->narrow ? DT_F32 : onnx_type(l->node, 0)->dtype;
}

static const char *converted(const Linear *l, const char *x, DType dtype)
{
    return l->narrow ? onnx_text(l->node, "cast(%s, to = %s)", x, dtype_name(dtype)) : x;
}

/* Operand i as [batch, steps, a, b, c], or [batch, steps, a, b, c, d] */
static bool put_steps(const Linear *l, const char *name, uint32_t i, int64_t a, int64_t b, int64_t c, int64_t d)
{
    OnnxNode *n = l->node;
    int64_t dim[] = {l->batch, l->steps, a, b, c, d};
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", name, converted(l, onnx_in(n, i), DT_F32),
                     onnx_list(n, dim, d ? 6 : 5));
}

static bool has_features(const Linear *l, uint32_t i, int64_t features)
{
    const Shape *shape = onnx_has(l->node, i) ? &onnx_type(l->node, i)->shape : NULL;
    return shape && shape->rank == 3 && shape->dim[0] == l->batch && shape->dim[1] == l->steps &&
           shape->dim[2] == features;
}

static bool linear_operands_fit(Linear *l)
{
    OnnxNode *n = l->node;
    int64_t queries = onnx_dim(n, 0, 2), keys = onnx_rank(n, 1) == 3 ? onnx_dim(n, 1, 2) : 0,
            values = onnx_rank(n, 2) == 3 ? onnx_dim(n, 2, 2) : 0;
    if (queries < 1 || keys < 1 || values < 1 || queries % l->q_heads || values % l->heads)
        return false;
    l->key = queries / l->q_heads, l->value = values / l->heads, l->k_heads = keys / l->key;
    if (keys % l->key || l->heads % l->k_heads)
        return false;
    int64_t dim[] = {l->window, l->batch, l->heads, l->key, l->value};
    Shape state = l->window ? shape_of(5, dim) : shape_of(4, dim + 1);
    return has_features(l, 1, keys) && has_features(l, 2, values) &&
           (!onnx_has(n, 3) || shape_eq(&onnx_type(n, 3)->shape, &state)) &&
           (!l->decays || has_features(l, 4, l->heads) || has_features(l, 4, l->heads * l->key)) &&
           (!l->delta || has_features(l, 5, l->heads) || has_features(l, 5, 1));
}

static bool linear_start(Linear *l, OnnxNode *n)
{
    const char *rule = onnx_string(n, "update_rule", "gated_delta");
    *l = (Linear){.node = n, .q_heads = onnx_int(n, "q_num_heads", 0), .heads = onnx_int(n, "kv_num_heads", 0)};
    l->decays = strncmp(rule, "gated", 5) == 0;
    l->delta = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    if (!l->delta && strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0)
        return onnx_no(n, "its update rule is unknown");
    l->window = onnx_int(n, "state_window", 0);
    if (l->window < 0 || l->window > 8)
        return onnx_no(n, "its state_window is %lld", (long long)l->window);
    int64_t most = l->q_heads > l->heads ? l->q_heads : l->heads, fewer = l->q_heads > l->heads ? l->heads : l->q_heads;
    if (onnx_rank(n, 0) != 3 || fewer < 1 || most > INT32_MAX || most % fewer)
        return onnx_no(n, "its heads cannot be shared out");
    l->batch = onnx_dim(n, 0, 0), l->steps = onnx_dim(n, 0, 1);
    l->narrow = dtype_bytes(onnx_type(n, 0)->dtype) < 4;
    if (l->steps < 1 || !linear_operands_fit(l))
        return onnx_no(n, "its operands do not fit each other");
    return true;
}

/* What the queries of a step find in the state: several heads of either may share one of the other. */
static const char *found(const Linear *l, const char *q, const char *state)
{
    OnnxNode *n = l->node;
    int64_t shared = l->heads / l->q_heads, each[] = {l->batch, l->q_heads, shared, l->key, l->value};
    if (l->q_heads >= l->heads)
        return onnx_text(n, "matmul(%s, %s)", q, state); /* [batch, heads, queries of each, key] */
    return onnx_text(n, "matmul(%s, reshape(%s, shape = %s))", q, state, onnx_list(n, each, 5));
}

typedef struct Step { /* names: of a step, of all of them */
    const char *q, *k, *v, *decay, *beta, *qs, *ks, *vs, *decays, *betas;
} Step;

/* [batch, steps, heads, key, 1] */
static bool put_keys(const Linear *l, const char *name)
{
    OnnxNode *n = l->node;
    int64_t shared = l->heads / l->k_heads, dim[] = {l->batch, l->steps, l->k_heads, shared, l->key},
            all[] = {l->batch, l->steps, l->heads, l->key, 1};
    if (shared == 1)
        return put_steps(l, name, 1, l->heads, l->key, 1, 0);
    const char *each = onnx_temp(n, "k");
    return put_steps(l, each, 1, l->k_heads, 1, l->key, 0) &&
           onnx_emit(n, "%s = reshape(broadcast(%s, shape = %s), shape = %s)", name, each, onnx_list(n, dim, 5),
                     onnx_list(n, all, 5));
}

static bool put_sequences(const Linear *l, Step *s)
{
    OnnxNode *n = l->node;
    bool inverse = l->heads > l->q_heads;
    *s = (Step){onnx_temp(n, "q"),      onnx_temp(n, "k"),    onnx_temp(n, "v"),  onnx_temp(n, "decay"),
                onnx_temp(n, "beta"),   onnx_temp(n, "qs"),   onnx_temp(n, "ks"), onnx_temp(n, "vs"),
                onnx_temp(n, "decays"), onnx_temp(n, "betas")};
    if (inverse ? !put_steps(l, s->qs, 0, l->q_heads, 1, 1, l->key)
                : !put_steps(l, s->qs, 0, l->heads, l->q_heads / l->heads, l->key, 0))
        return false;
    if (l->decays && !put_steps(l, s->decays, 4, l->heads, onnx_dim(n, 4, 2) / l->heads, 1, 0))
        return false;
    if (l->delta && !put_steps(l, s->betas, 5, onnx_dim(n, 5, 2), 1, 1, 0))
        return false;
    return put_keys(l, s->ks) && put_steps(l, s->vs, 2, l->heads, 1, l->value, 0);
}

static const char *first_state(const Linear *l)
{
    OnnxNode *n = l->node;
    int64_t dim[] = {l->batch, l->heads, l->key, l->value};
    if (!onnx_has(n, 3))
        return onnx_text(n, "zeros(%s, %s)", onnx_list(n, dim, 4), dtype_name(computed_in(l)));
    if (!l->window)
        return converted(l, onnx_in(n, 3), DT_F32);
    const char *last = onnx_text(n, "slice(%s, axes = 0, begin = %lld, end = %lld)", onnx_in(n, 3),
                                 (long long)l->window - 1, (long long)l->window);
    return onnx_text(n, "reshape(%s, shape = %s)", converted(l, last, DT_F32), onnx_list(n, dim, 4));
}

typedef struct Part { /* steps that are scanned by themselves */
    int64_t begin, end;
    const char *first, *last, *ys; /* the state before them and behind, results */
    const char *states;            /* behind each of them, [batch, steps, ...]; NULL: nobody asks for those */
} Part;

static const char *part_of(const Linear *l, const Part *p, const char *xs)
{
    if (p->begin == 0 && p->end == l->steps)
        return xs;
    return onnx_text(l->node, "slice(%s, axes = 1, begin = %lld, end = %lld)", xs, (long long)p->begin,
                     (long long)p->end);
}

static bool scan_part(const Linear *l, const Step *s, const Part *p)
{
    OnnxNode *n = l->node;
    int64_t row[] = {l->batch, l->heads, 1, l->key};
    const char *state = onnx_temp(n, "s"), *next = onnx_temp(n, "next"), *y = onnx_temp(n, "y");
    const char *left = l->decays ? onnx_temp(n, "left") : state, *added = l->delta ? onnx_temp(n, "added") : s->v;
    Text text = {0};
    text_printf(&text, "(%s, %s%s%s) = scan (%s in %s, %s in %s, %s in %s", p->last, p->ys, p->states ? ", " : "",
                p->states ? p->states : "", s->q, part_of(l, p, s->qs), s->k, part_of(l, p, s->ks), s->v,
                part_of(l, p, s->vs));
    if (l->decays)
        text_printf(&text, ", %s in %s", s->decay, part_of(l, p, s->decays));
    if (l->delta)
        text_printf(&text, ", %s in %s", s->beta, part_of(l, p, s->betas));
    text_printf(&text, ", axis = 1) with (%s = %s) {\n", state, p->first);
    if (l->decays)
        text_printf(&text, "    %s = %s * exp(%s)\n", left, state, s->decay);
    if (l->delta)
        text_printf(&text, "    %s = %s * (%s - matmul(reshape(%s, shape = %s), %s))\n", added, s->beta, s->v, s->k,
                    onnx_list(n, row, 4), left);
    text_printf(&text, "    %s = %s + %s * %s\n", next, left, s->k, added);
    text_printf(&text, "    %s = %s\n} next (%s <- %s) stack (%s%s%s)", y, found(l, s->q, next), state, next, y,
                p->states ? ", " : "", p->states ? next : "");
    bool good = onnx_emit(n, "%s", text.ptr);
    text_free(&text);
    return good;
}

/* All steps; those whose states are kept by themselves, as the states of all would take much room. */
static bool scan_steps(const Linear *l, Part *whole)
{
    OnnxNode *n = l->node;
    bool keeps = l->window && onnx_wants(n, 1);
    int64_t kept = keeps ? least(l->window, l->steps) : 0, before = kept ? l->steps - kept : 0;
    Step s;
    if (!put_sequences(l, &s))
        return false;
    *whole = (Part){0, l->steps, first_state(l), onnx_temp(n, "state"), onnx_temp(n, "ys"), NULL};
    if (keeps)
        whole->states = onnx_temp(n, "states");
    if (!before)
        return scan_part(l, &s, whole);
    Part early = {0, before, whole->first, onnx_temp(n, "early"), onnx_temp(n, "ys"), NULL}, late = *whole;
    late.begin = before, late.first = early.last, late.ys = onnx_temp(n, "ys");
    return scan_part(l, &s, &early) && scan_part(l, &s, &late) &&
           onnx_emit(n, "%s = concat(%s, %s, axis = 1)", whole->ys, early.ys, late.ys);
}

/* The state behind the last step, or those of the window, of which some may lie before the first and are 0 */
static bool put_linear_state(const Linear *l, const Part *whole)
{
    OnnxNode *n = l->node;
    if (!onnx_wants(n, 1))
        return true;
    DType dtype = onnx_type(n, onnx_has(n, 3) ? 3 : 0)->dtype;
    if (!l->window)
        return onnx_emit(n, "%s = %s", onnx_out(n, 1), converted(l, whole->last, dtype));
    const char *states = onnx_text(n, "transpose(%s, axes = [1, 0, 2, 3, 4])", converted(l, whole->states, dtype));
    if (l->window > l->steps)
        states = onnx_text(n, "pad(%s, before = [%lld, 0, 0, 0, 0], after = [0, 0, 0, 0, 0])", states,
                           (long long)(l->window - l->steps));
    return onnx_emit(n, "%s = %s", onnx_out(n, 1), states);
}

static bool write_linear_attention(OnnxNode *n)
{
    Linear l;
    if (!linear_start(&l, n))
        return false;
    Part whole;
    double scale = onnx_float(n, "scale", 0);
    if (scale == 0)
        scale = 1 / sqrt((double)l.key);
    int64_t dim[] = {l.batch, l.steps, (l.q_heads > l.heads ? l.q_heads : l.heads) * l.value};
    DType dtype = onnx_type(n, 0)->dtype;
    if (!scan_steps(&l, &whole))
        return false;
    const char *y = onnx_text(n, "reshape(%s, shape = %s) * %s", whole.ys, onnx_list(n, dim, 3),
                              onnx_number(n, computed_in(&l), scale));
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), converted(&l, y, dtype)) && put_linear_state(&l, &whole);
}

const OnnxRow onnx_contrib_state[] = {
    {"CausalConvWithState", 1, write_causal_conv, NULL, CONTRIB, false},
    {"LinearAttention", 1, write_linear_attention, NULL, CONTRIB, false},
    {0},
};
