/* DecoderMaskedMultiHeadAttention (com.microsoft): one step of a decoder, as MultiHeadAttention of what is kept: of
 * keys and values of an encoder, of those that grow, or of those in a buffer of the largest length. */
#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

enum { QUERY, KEY, VALUE, MASK, SCORES, PAST_KEY, PAST_VALUE, LENGTH, BEAMS, INDIRECTION, BIAS };

typedef struct Masked {
    OnnxNode *node;
    int64_t batch, heads, width, buffer, keys; /* width: of a head; buffer: its positions; keys: those that are read */
    const char *at;                            /* where the step's key goes in the buffer */
    bool apart;                                /* are there keys in the buffer that are not to be read? */
} Masked;

static bool operands_fit(OnnxNode *n)
{
    double beams = 0;
    if (!onnx_has(n, KEY) || !onnx_has(n, VALUE))
        return onnx_no(n, "its queries, keys and values are packed");
    if (onnx_rank(n, QUERY) != 3 || onnx_dim(n, QUERY, 1) != 1)
        return onnx_no(n, "it has queries of other than one position");
    if (onnx_wants(n, 3))
        return onnx_no(n, "it gives its scores, by output_qk");
    if (onnx_has(n, INDIRECTION) && (!onnx_known_number(n, BEAMS, &beams) || beams != 1))
        return onnx_no(n, "its cache_indirection is of several beams");
    return true;
}

/* The same operands where MultiHeadAttention has them */
static OnnxNode *several_heads(OnnxNode *n)
{
    static const uint32_t place[] = {
        [QUERY] = 0, [KEY] = 1, [VALUE] = 2, [BIAS] = 3, [MASK] = 4, [SCORES] = 5, [PAST_KEY] = 6, [PAST_VALUE] = 7};
    OnnxNode *node = onnx_cover_of(n, CONTRIB, "MultiHeadAttention", 1, 8);
    for (uint32_t i = QUERY; i <= BIAS; i++)
        if (onnx_has(n, i) && (i <= PAST_VALUE || i == BIAS))
            onnx_set_operand(node, place[i], n->in[i]);
    onnx_copy_attributes(node, n);
    return node;
}

/* Keys and values of an encoder, in heads, or those that grow with each step */
static bool write_grown(OnnxNode *n)
{
    bool across = onnx_rank(n, KEY) == 4, kept = onnx_has(n, PAST_KEY) || onnx_has(n, PAST_VALUE);
    if (across && (kept || onnx_wants(n, 1) || onnx_wants(n, 2)))
        return onnx_no(n, "it keeps keys and values that it has from elsewhere");
    return onnx_write_cover(n, several_heads(n));
}

/* How many keys are read is what the mask or the bias of the scores says, if there is one. */
static bool take_length(Masked *m)
{
    OnnxNode *n = m->node;
    double length = 0;
    bool known = onnx_known_number(n, LENGTH, &length);
    if (shape_elements(&onnx_type(n, LENGTH)->shape) != 1 || length < 0 || length >= (double)m->buffer)
        return onnx_no(n, "its past_sequence_length does not fit its buffer");
    m->keys = known ? (int64_t)length + 1 : m->buffer;
    if (onnx_has(n, MASK) && !known && onnx_rank(n, MASK) == 2)
        m->keys = least(m->keys, onnx_dim(n, MASK, 1));
    if (onnx_has(n, SCORES) && !known && onnx_rank(n, SCORES) == 4)
        m->keys = least(m->keys, onnx_dim(n, SCORES, 3));
    m->apart = !known;
    m->at = onnx_define(n, "at", "reshape(%s, shape = [])", onnx_in(n, LENGTH));
    return m->at != NULL;
}

static bool buffer_start(Masked *m, OnnxNode *n)
{
    *m = (Masked){.node = n, .batch = onnx_dim(n, QUERY, 0), .heads = onnx_int(n, "num_heads", 0)};
    int64_t features = onnx_dim(n, QUERY, 2), step[] = {m->batch, 1, features};
    if (m->heads < 1 || features < 1 || features % m->heads)
        return onnx_no(n, "its features cannot be shared out to num_heads, %lld", (long long)m->heads);
    m->width = features / m->heads;
    m->buffer = onnx_has(n, PAST_KEY) && onnx_rank(n, PAST_KEY) == 4 ? onnx_dim(n, PAST_KEY, 2) : 0;
    int64_t dim[] = {m->batch, m->heads, m->buffer, m->width}, all = 3 * features;
    Shape one = shape_of(3, step), kept = shape_of(4, dim), bias = shape_of(1, &all);
    for (uint32_t i = 0; i < 2; i++)
        if (!onnx_has(n, PAST_KEY + i) || !shape_eq(&onnx_type(n, PAST_KEY + i)->shape, &kept) || !m->buffer ||
            !shape_eq(&onnx_type(n, KEY + i)->shape, &one))
            return onnx_no(n, "its keys or values do not fit its buffers");
    if (onnx_has(n, BIAS) && !shape_eq(&onnx_type(n, BIAS)->shape, &bias))
        return onnx_no(n, "its bias does not fit its operands");
    return onnx_has(n, LENGTH) ? take_length(m) : onnx_no(n, "it has no past_sequence_length");
}

/* Keys (i = 0) or values with the step's own, which is a result; and of these the ones that are read */
static OnnxValue *put_kept(const Masked *m, uint32_t i)
{
    OnnxNode *n = m->node;
    int64_t features = m->heads * m->width, begin = (i + 1) * features;
    const char *name = onnx_wants(n, 1 + i) ? onnx_out(n, 1 + i) : onnx_temp(n, i ? "values" : "keys"), *bias = "";
    if (onnx_has(n, BIAS))
        bias = onnx_text(n, " + %s[%lld:%lld]", onnx_in(n, BIAS), (long long)begin, (long long)(begin + features));
    if (!onnx_emit(n, "%s = dynamic_update(%s, %s, split_heads(%s%s, heads = %lld), axis = 2)", name,
                   onnx_in(n, PAST_KEY + i), m->at, onnx_in(n, KEY + i), bias, (long long)m->heads))
        return NULL;
    if (m->keys == m->buffer)
        return onnx_written(n, name);
    return onnx_define_value(n, i ? "read_v" : "read_k", "%s[:, :, 0:%lld]", name, (long long)m->keys);
}

/* Keys behind the step's own do not count. */
static OnnxValue *put_scores(const Masked *m)
{
    OnnxNode *n = m->node;
    int64_t dim[] = {1, 1, 1, m->keys};
    const char *more = onnx_has(n, SCORES) ? onnx_text(n, "%s + ", onnx_in(n, SCORES)) : "";
    if (!m->apart)
        return onnx_has(n, SCORES) ? n->in[SCORES] : NULL;
    return onnx_define_value(n, "scores", "%sselect(iota(axis = 3, shape = %s) <= cast(%s, to = i64), %s(0.0), -inf)",
                             more, onnx_list(n, dim, 4), m->at, dtype_name(onnx_type(n, QUERY)->dtype));
}

static bool write_buffered(OnnxNode *n)
{
    Masked m;
    OnnxValue *keys = buffer_start(&m, n) ? put_kept(&m, 0) : NULL, *values = keys ? put_kept(&m, 1) : NULL,
              *scores = values ? put_scores(&m) : NULL;
    if (!values || n->reason)
        return false;
    OnnxNode *node = several_heads(n);
    const char *name = onnx_out(n, 0);
    onnx_set_operand(node, 1, keys);
    onnx_set_operand(node, 2, values);
    if (scores)
        onnx_set_operand(node, 5, scores);
    node->in[6] = node->in[7] = NULL;
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node);
}

static bool write_masked(OnnxNode *n)
{
    if (!operands_fit(n))
        return false;
    bool buffered = onnx_int(n, "past_present_share_buffer", 0) && onnx_rank(n, KEY) != 4;
    return buffered ? write_buffered(n) : write_grown(n);
}

const OnnxRow onnx_contrib_masked[] = {
    {"DecoderMaskedMultiHeadAttention", 1, write_masked, NULL, CONTRIB, false},
    {0},
};
