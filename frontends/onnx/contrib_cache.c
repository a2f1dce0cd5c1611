/* Attention of decoders (com.microsoft): heads of keys and values that several of queries share, positions rotated, and
 * what came before kept from run to run, either as it grows or in a buffer of the largest length; as floats, or as
 * integers of 8 or 4 bits, which are what all scores are made of then, those of new keys too. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

typedef struct Decoder {
    OnnxNode *node;
    int64_t batch, steps, heads, groups, width, buffer, total; /* buffer: positions that the past has room for */
    OnnxValue *q, *k, *v;                                      /* [batch, steps, heads * width] */
    const char *start;                                         /* of the new keys, [batch] of i64; NULL: 0 */
    const char *place; /* their position in the text, where start is not; NULL */
    const char *end;   /* keys that stay, of a buffer that slides; NULL: all */
    bool kept, first;  /* is there a past; is it the first run, of all keys? */
    int64_t bits;      /* that keys and values are kept in; 0: floats */
} Decoder;

static OnnxValue *features(Decoder *d, const char *word, int64_t begin, int64_t heads)
{
    return onnx_define_value(d->node, word, "slice(%s, axes = 2, begin = %lld, end = %lld)", onnx_in(d->node, 0),
                             (long long)(begin * d->width), (long long)((begin + heads) * d->width));
}

/* Queries, keys and values; in one operand, or in three */
static bool take_operands(Decoder *d)
{
    OnnxNode *n = d->node;
    bool packed = !onnx_has(n, 1) && !onnx_has(n, 2);
    int64_t features_of_q = onnx_dim(n, 0, 2), all = packed ? d->heads + 2 * d->groups : d->heads;
    if (features_of_q < 1 || features_of_q % all)
        return onnx_no(n, "its features cannot be shared out to heads");
    d->width = features_of_q / all;
    d->q = packed ? features(d, "q", 0, d->heads) : n->in[0];
    d->k = packed ? features(d, "k", d->heads, d->groups) : n->in[1];
    d->v = packed ? features(d, "v", d->heads + d->groups, d->groups) : n->in[2];
    if (!d->q || !d->k || !d->v)
        return false;
    const OnnxValue *kv[] = {d->k, d->v};
    for (uint32_t i = 0; i < 2; i++) {
        const Shape *shape = kv[i]->type ? &kv[i]->type->shape : NULL;
        if (!shape || shape->rank != 3 || shape->dim[0] != d->batch || shape->dim[1] != d->steps ||
            shape->dim[2] != d->groups * d->width)
            return onnx_no(n, "its keys or values do not fit its queries");
    }
    return true;
}

static bool check_past(Decoder *d)
{
    OnnxNode *n = d->node;
    d->kept = onnx_has(n, 3) && onnx_has(n, 4) && onnx_rank(n, 3) == 4 && onnx_dim(n, 3, 2) > 0;
    d->buffer = d->kept ? onnx_dim(n, 3, 2) : 0;
    int64_t dim[] = {d->batch, d->groups, d->buffer, d->bits == 4 ? d->width / 2 : d->width};
    DType dtype = d->bits ? d->bits == 4 ? DT_U8 : DT_I8 : d->q->type->dtype;
    for (uint32_t i = 3; d->kept && i < 5; i++)
        if (onnx_rank(n, i) != 4 || memcmp(onnx_type(n, i)->shape.dim, dim, sizeof dim) != 0 ||
            onnx_type(n, i)->dtype != dtype)
            return onnx_no(n, "what it keeps does not fit its keys");
    return true;
}

/* Keys and values are of one type, each with scales of its own: one, or one for each channel. */
static bool check_scales(Decoder *d)
{
    OnnxNode *n = d->node;
    bool scaled = onnx_has(n, 12) && onnx_has(n, 13);
    static const char *const kind[] = {"k_quant_type", "v_quant_type"};
    for (uint32_t i = 0; i < 2; i++) {
        const char *word = onnx_string(n, kind[i], "NONE");
        bool channels = strcmp(word, "PER_CHANNEL") == 0, known = channels || strcmp(word, "PER_TENSOR") == 0;
        if (known != scaled || (!known && strcmp(word, "NONE") != 0))
            return onnx_no(n, "its scales do not fit what is to be quantised");
        if (scaled && shape_elements(&onnx_type(n, 12 + i)->shape) != (channels ? d->groups * d->width : 1))
            return onnx_no(n, "its scales do not fit its channels");
    }
    if (scaled && (!onnx_has(n, 3) || !onnx_has(n, 4)))
        return onnx_no(n, "it quantises what it does not keep");
    d->bits = scaled ? onnx_int(n, "kv_cache_bit_width", 8) : 0;
    if (scaled && d->bits != 8 && (d->bits != 4 || d->width % 2))
        return onnx_no(n, "it keeps keys in %lld bits", (long long)d->bits);
    return true;
}

/* A buffer with room for the window and a few keys more, the oldest of which all go when it is full: how many are there
 * once so many have come. */
static const char *still_there(Decoder *d, const char *keys)
{
    int64_t spare = d->buffer - onnx_int(d->node, "local_window_size", -1) + 1;
    return onnx_text(d->node, "%s - %lld * (maximum(%s - %lld, 0) / %lld)", keys, (long long)spare, keys,
                     (long long)(d->buffer - spare + 1), (long long)spare);
}

static bool take_window(Decoder *d)
{
    OnnxNode *n = d->node;
    int64_t window = onnx_int(n, "local_window_size", -1);
    if (!d->kept || window < 1 || d->buffer < window || d->batch != 1 || onnx_has(n, 10) || !onnx_has(n, 5) ||
        shape_elements(&onnx_type(n, 5)->shape) != 1)
        return onnx_no(n,
                       "the buffer that slides is shorter than its window, of several sequences, or comes with a bias");
    const char *all = onnx_temp(n, "length");
    d->place = onnx_temp(n, "place"), d->start = onnx_temp(n, "start"), d->end = onnx_temp(n, "end");
    return onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = [1]) + 1", all, onnx_in(n, 5)) &&
           onnx_emit(n, "%s = %s - %lld", d->place, all, (long long)d->steps) &&
           onnx_emit(n, "%s = %s", d->start, still_there(d, d->place)) &&
           onnx_emit(n, "%s = %s", d->end, still_there(d, all));
}

/* How many keys there are at most must be known; how many there are need not. */
static bool take_lengths(Decoder *d)
{
    OnnxNode *n = d->node;
    if (onnx_int(n, "sliding_window_cache", 0))
        return take_window(d);
    const int64_t *total;
    uint32_t count;
    d->total = d->steps;
    d->first = true;
    if (!d->kept)
        return true;
    if (!onnx_known_ints(n, 6, &total, &count))
        return false;
    if (count != 1 || total[0] < d->steps || total[0] > INT32_MAX ||
        shape_elements(&onnx_type(n, 5)->shape) != d->batch)
        return onnx_no(n, "its numbers of keys are impossible");
    d->total = total[0];
    d->first = d->total == d->steps;
    if (d->first)
        return true;
    if (d->batch == 1 && d->total == d->buffer + d->steps) {
        d->start = onnx_text(n, "full(%lld, [1], i64)", (long long)d->buffer);
        return true;
    }
    d->start = onnx_temp(n, "start");
    return onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = [%lld]) - %lld", d->start, onnx_in(n, 5),
                     (long long)d->batch, (long long)d->steps - 1);
}

static bool start(Decoder *d, OnnxNode *n)
{
    *d = (Decoder){.node = n, .batch = onnx_dim(n, 0, 0), .steps = onnx_dim(n, 0, 1)};
    d->heads = onnx_int(n, "num_heads", 0);
    d->groups = onnx_int(n, "kv_num_heads", 0);
    if (onnx_rank(n, 0) != 3 || d->heads < 1 || d->groups < 1 || d->heads > INT32_MAX || d->heads % d->groups)
        return onnx_no(n, "its heads cannot be shared out");
    if (onnx_wants(n, 3) || onnx_has(n, 16))
        return onnx_no(n, "it shows its scores, or pads what it reads");
    if (!onnx_int(n, "causal", 1) && onnx_int(n, "local_window_size", -1) > 0)
        return onnx_no(n, "it has a window of what comes after, too");
    if (onnx_has(n, 14) != onnx_has(n, 15))
        return onnx_no(n, "it normalises its queries or its keys alone");
    return take_operands(d) && check_scales(d) && check_past(d) && take_lengths(d);
}

/* Each head by its root mean square, and the weights of operand i */
static OnnxValue *normalised(Decoder *d, OnnxValue *x, int64_t heads, uint32_t i, const char *epsilon)
{
    OnnxNode *n = d->node, *node = onnx_cover(n, "RMSNormalization", 23, 2);
    int64_t dim[] = {d->batch, d->steps, heads, d->width}, flat[] = {d->batch, d->steps, heads * d->width};
    const char *name = onnx_temp(n, "normed");
    OnnxValue *apart =
        onnx_define_value(n, "apart", "reshape(%s, shape = %s)", onnx_name_value(n->onnx, x), onnx_list(n, dim, 4));
    if (!apart)
        return NULL;
    onnx_set_operand(node, 0, apart);
    onnx_set_operand(node, 1, n->in[i]);
    onnx_add_float(node, "epsilon", onnx_float(n, epsilon, onnx_float(n, "qk_norm_epsilon", 1e-6)));
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node)
               ? onnx_define_value(n, "flat", "reshape(%s, shape = %s)", name, onnx_list(n, flat, 3))
               : NULL;
}

static bool normalise(Decoder *d)
{
    if (!onnx_has(d->node, 14))
        return true;
    d->q = normalised(d, d->q, d->heads, 14, "q_norm_epsilon");
    d->k = d->q ? normalised(d, d->k, d->groups, 15, "k_norm_epsilon") : NULL;
    return d->k != NULL;
}

/* Rotated */

static OnnxValue *positions(Decoder *d)
{
    OnnxNode *n = d->node;
    int64_t dim[] = {d->batch, d->steps};
    if (onnx_has(n, 9))
        return n->in[9];
    const char *first = d->place ? d->place : d->start;
    const char *behind = first ? onnx_text(n, " + reshape(%s, shape = [%lld, 1])", first, (long long)d->batch) : "";
    return onnx_define_value(n, "places", "iota(axis = 1, shape = %s)%s", onnx_list(n, dim, 2), behind);
}

static OnnxValue *rotated(Decoder *d, OnnxValue *x, int64_t heads, OnnxValue *places, const char *word)
{
    OnnxNode *n = d->node, *node = onnx_cover(n, "RotaryEmbedding", 23, 4);
    const char *name = onnx_temp(n, word);
    onnx_set_operand(node, 0, x);
    onnx_set_operand(node, 1, n->in[7]);
    onnx_set_operand(node, 2, n->in[8]);
    onnx_set_operand(node, 3, places);
    onnx_add_int(node, "interleaved", onnx_int(n, "rotary_interleaved", 0));
    onnx_add_int(node, "num_heads", heads);
    onnx_add_int(node, "rotary_embedding_dim", 2 * onnx_dim(n, 7, 1));
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node) ? onnx_written(n, name) : NULL;
}

static bool rotate(Decoder *d)
{
    OnnxNode *n = d->node;
    if (!onnx_int(n, "do_rotary", 0))
        return true;
    if (onnx_rank(n, 7) != 2 || onnx_rank(n, 8) != 2)
        return onnx_no(n, "its tables of angles have other than 2 dimensions");
    OnnxValue *places = positions(d);
    d->q = places ? rotated(d, d->q, d->heads, places, "turned_q") : NULL;
    d->k = d->q ? rotated(d, d->k, d->groups, places, "turned_k") : NULL;
    return d->k != NULL;
}

/* Quantised: [batch, groups, keys, width] by a scale, operand 12 for keys and 13 for values */

static const char *scale_of(Decoder *d, uint32_t operand)
{
    OnnxNode *n = d->node;
    int64_t each[] = {1, d->groups, 1, d->width};
    bool one = shape_elements(&onnx_type(n, operand)->shape) == 1;
    return onnx_text(n, "cast(reshape(%s, shape = %s), to = %s)", onnx_in(n, operand), onnx_list(n, each, one ? 0 : 4),
                     dtype_name(d->q->type->dtype));
}

static OnnxValue *quantised(Decoder *d, OnnxValue *x, uint32_t operand)
{
    OnnxNode *n = d->node;
    bool half = d->bits == 4;
    OnnxValue *q = onnx_define_value(n, "codes", "clip(round(%s / %s), %s, %s)", x->name, scale_of(d, operand),
                                     half ? "-8.0" : "-128.0", half ? "7.0" : "127.0");
    if (!q || !half)
        return q ? onnx_define_value(n, "bytes", "cast(%s, to = i8)", q->name) : NULL;
    return onnx_define_value(n, "bytes", "cast(%s[..., 0:%lld:2] + %s[..., 1:%lld:2] * 16.0 + 136.0, to = u8)", q->name,
                             (long long)d->width, q->name, (long long)d->width);
}

/* The low half of a byte first, each 8 more than it is */
static OnnxValue *widened(Decoder *d, OnnxValue *bytes, uint32_t operand)
{
    OnnxNode *n = d->node;
    const char *dtype = dtype_name(d->q->type->dtype), *b = bytes->name;
    if (d->bits == 8)
        return onnx_define_value(n, "wide", "cast(%s, to = %s) * %s", b, dtype, scale_of(d, operand));
    int64_t dim[] = {d->batch, d->groups, bytes->type->shape.dim[2], d->width};
    return onnx_define_value(
        n, "wide",
        "(cast(reshape(stack([bit_and(%s, 15), shift_right(%s, 4)], axis = 4), shape = %s), to = %s) - "
        "8.0) * %s",
        b, b, onnx_list(n, dim, 4), dtype, scale_of(d, operand));
}

/* Kept */

static OnnxValue *in_heads(Decoder *d, OnnxValue *x, int64_t heads, const char *word)
{
    OnnxNode *n = d->node;
    return onnx_define_value(n, word, "split_heads(%s, heads = %lld)", onnx_name_value(n->onnx, x), (long long)heads);
}

/* What was kept with room for all keys */
static const char *room(Decoder *d, uint32_t past)
{
    OnnxNode *n = d->node;
    if (d->total <= d->buffer)
        return onnx_in(n, past);
    return onnx_text(n, "pad(%s, before = [0, 0, 0, 0], after = [0, 0, %lld, 0])", onnx_in(n, past),
                     (long long)(d->total - d->buffer));
}

/* The new ones in the place behind what came before, which each sequence has of its own */
static bool put_each(Decoder *d, const char *past, OnnxValue *x, const char *name)
{
    OnnxNode *n = d->node, *node = onnx_cover(n, "TensorScatter", 24, 3);
    OnnxValue *all = onnx_define_value(n, "past", "%s", past), *at = onnx_define_value(n, "at", "%s", d->start);
    if (!all || !at)
        return false;
    onnx_set_operand(node, 0, all);
    onnx_set_operand(node, 1, x);
    onnx_set_operand(node, 2, at);
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node);
}

/* The same where the buffer slides: behind what is still there of it, of which result i keeps the last */
static OnnxValue *put_sliding(Decoder *d, OnnxValue *x, uint32_t past, uint32_t i)
{
    OnnxNode *n = d->node;
    const char *name = onnx_temp(n, i == 1 ? "keys" : "values");
    int64_t room = d->buffer + d->steps - onnx_int(n, "local_window_size", -1);
    if (!onnx_emit(n,
                   "%s = dynamic_update(pad(%s, before = [0, 0, 0, 0], after = [0, 0, %lld, 0]), "
                   "reshape(%s, shape = []), %s, axis = 2)",
                   name, onnx_in(n, past), (long long)room, d->start, x->name))
        return NULL;
    if (onnx_wants(n, i) &&
        !onnx_emit(n, "%s = dynamic_slice(%s, reshape(%s + %lld - %s, shape = []), %lld, axis = 2)", onnx_out(n, i),
                   name, d->start, (long long)d->steps, d->end, (long long)d->buffer))
        return NULL;
    return onnx_written(n, name);
}

/* [batch, groups, keys, width], which is result i */
static OnnxValue *put_kept(Decoder *d, OnnxValue *x, uint32_t past, uint32_t i)
{
    if (d->end)
        return put_sliding(d, x, past, i);
    OnnxNode *n = d->node;
    const char *name = onnx_wants(n, i) ? onnx_out(n, i) : onnx_temp(n, i == 1 ? "keys" : "values");
    bool good;
    if (!d->kept)
        good = onnx_emit(n, "%s = %s", name, x->name);
    else if (d->first)
        good = onnx_emit(n, "%s = dynamic_update(%s, 0, %s, axis = 2)", name, room(d, past), x->name);
    else if (d->batch > 1)
        good = put_each(d, room(d, past), x, name);
    else if (d->total == d->buffer + d->steps)
        good = onnx_emit(n, "%s = concat(%s, %s, axis = 2)", name, onnx_in(n, past), x->name);
    else
        good = onnx_emit(n, "%s = dynamic_update(%s, reshape(%s, shape = []), %s, axis = 2)", name, room(d, past),
                         d->start, x->name);
    return good ? onnx_written(n, name) : NULL;
}

/* ONNX's own attention over as many keys as there are */
static bool attend(Decoder *d, OnnxValue *q, OnnxValue *k, OnnxValue *v)
{
    OnnxNode *n = d->node, *node = onnx_cover(n, "Attention", 24, 8);
    const char *name = onnx_temp(n, "heads");
    int64_t window = onnx_int(n, "local_window_size", -1);
    onnx_set_operand(node, 0, q);
    onnx_set_operand(node, 1, k);
    onnx_set_operand(node, 2, v);
    if (onnx_has(n, 10))
        onnx_set_operand(node, 3, n->in[10]);
    if (d->start) {
        OnnxValue *count = onnx_define_value(n, "count", "%s + %lld", d->start, (long long)d->steps);
        if (!count)
            return false;
        onnx_set_operand(node, 6, count);
    }
    if (onnx_has(n, 11))
        onnx_set_operand(node, 7, n->in[11]);
    onnx_add_int(node, "is_causal", onnx_int(n, "causal", 1) != 0);
    onnx_add_int(node, "smooth_softmax", onnx_int(n, "smooth_softmax", 0) == 1);
    if (window > 0)
        onnx_add_int(node, "left_window_size", window - 1);
    onnx_add_float(node, "softcap", onnx_float(n, "softcap", 0));
    if (onnx_float(n, "scale", 0) != 0)
        onnx_add_float(node, "scale", onnx_float(n, "scale", 0));
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node) && onnx_emit(n, "%s = merge_heads(%s)", onnx_out(n, 0), name);
}

static bool write_group_query(OnnxNode *n)
{
    Decoder d;
    if (!start(&d, n) || !normalise(&d) || !rotate(&d))
        return false;
    OnnxValue *q = in_heads(&d, d.q, d.heads, "q4"), *k = q ? in_heads(&d, d.k, d.groups, "k4") : NULL,
              *v = k ? in_heads(&d, d.v, d.groups, "v4") : NULL;
    if (v && d.bits) {
        k = quantised(&d, k, 12);
        v = k ? quantised(&d, v, 13) : NULL;
    }
    OnnxValue *keys = v ? put_kept(&d, k, 3, 1) : NULL, *values = keys ? put_kept(&d, v, 4, 2) : NULL;
    if (!values)
        return false;
    keys = d.first ? k : keys;
    values = d.first ? v : values;
    if (d.bits) {
        keys = widened(&d, keys, 12);
        values = keys ? widened(&d, values, 13) : NULL;
    }
    return values && attend(&d, q, keys, values);
}

const OnnxRow onnx_contrib_cache[] = {
    {"GroupQueryAttention", 1, write_group_query, NULL, CONTRIB, false},
    {0},
};
