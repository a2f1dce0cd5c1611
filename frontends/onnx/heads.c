/* Attention as exporters spell it out: heads taken apart, softmax(q k' * scale + mask) v, heads put together; and the
 * steps of recurrent layers, whose directions are put together likewise. */
#include <math.h>
#include <string.h>

#include "onnx/pattern.h"

static bool swaps(const OnnxNode *transpose, const int64_t *wanted, uint32_t rank)
{
    const int64_t *axes;
    uint32_t count;
    if (!transpose || !onnx_ints(transpose, "perm", &axes, &count) || count != rank)
        return false;
    for (uint32_t i = 0; i < rank; i++)
        if (axes[i] != wanted[i])
            return false;
    return true;
}

static const Shape *extents_of(const OnnxNode *node, uint32_t i)
{
    return &node->in[i]->type->shape;
}

/* [n, t, h * d] to [n, t, h, d], with n and t as they are: the number of heads, else 0. */
static int64_t heads_of(const OnnxNode *reshape)
{
    const OnnxValue *result = reshape ? reshape->out[0] : NULL;
    if (!result || extents_of(reshape, 0)->rank != 3 || result->type->shape.rank != 4)
        return 0;
    const Shape *from = extents_of(reshape, 0), *to = &result->type->shape;
    return from->dim[0] == to->dim[0] && from->dim[1] == to->dim[1] ? to->dim[2] : 0;
}

static const int64_t heads_first[] = {0, 2, 1, 3};

static bool write_split(OnnxNode *n)
{
    OnnxOperand rows = onnx_operand(n, 0);
    const OnnxNode *reshape = onnx_maker(rows.value, "Reshape");
    OnnxMatch match;
    int64_t heads = heads_of(reshape);
    onnx_match_start(&match, n);
    if (!heads || !swaps(n, heads_first, 4))
        return false;
    onnx_match_enter(&match, rows);
    return onnx_match_alone(&match) && onnx_emit(n, "%s = split_heads(%s, heads = %lld)", onnx_out(n, 0),
                                                 onnx_name_value(n->onnx, reshape->in[0]), (long long)heads);
}

/* What a recurrent layer gives, as the library has it, of what ONNX makes of it; NULL of other values. */
static const char *rows_of(const OnnxValue *value)
{
    return value->maker && value == value->maker->out[0] ? value->maker->rows : NULL;
}

static bool take_rows(OnnxNode *n, const char *rows)
{
    onnx_set_value(n, 0, onnx_written(n, rows));
    return true;
}

/* [steps, 1, n, d] of a recurrent layer in one direction to [steps, n, d] */
static bool write_steps(OnnxNode *n)
{
    OnnxNode copy = *n;
    const int64_t *axes;
    uint32_t count;
    const char *rows = onnx_operand(n, 0).value ? rows_of(n->in[0]) : NULL;
    return rows && onnx_axes(&copy, 13, 4, &axes, &count) && count == 1 && axes[0] == 1 && take_rows(n, rows);
}

/* [n, h, t, d] to [n, t, h * d]: what the reshape makes, its second operand says. */
static bool makes_rows(const Shape *from, const OnnxNode *reshape)
{
    const Tensor *given = reshape->in_count > 1 && reshape->in[1] ? reshape->in[1]->known : NULL;
    if (!given || from->rank != 4 || shape_elements(&given->type->shape) != 3)
        return false;
    bool copies = !onnx_int(reshape, "allowzero", 0); /* 0 is the extent that stands there */
    int64_t wanted[] = {from->dim[0], from->dim[2], from->dim[1] * from->dim[3]};
    uint32_t open = 0;
    for (uint32_t i = 0; i < 3; i++) {
        int64_t extent = onnx_int_at(given, i);
        open += extent == -1;
        if (extent != wanted[i] && extent != -1 && (extent || i == 2 || !copies))
            return false;
    }
    return open <= 1 && shape_elements(from) > 0;
}

static bool write_merge(OnnxNode *n)
{
    OnnxOperand heads = onnx_operand(n, 0);
    const OnnxNode *transpose = onnx_maker(heads.value, "Transpose");
    OnnxMatch match;
    onnx_match_start(&match, n);
    if (!swaps(transpose, heads_first, 4) || !makes_rows(extents_of(transpose, 0), n))
        return false;
    if (rows_of(transpose->in[0]))
        return take_rows(n, rows_of(transpose->in[0]));
    onnx_match_enter(&match, heads);
    return onnx_match_alone(&match) &&
           onnx_emit(n, "%s = merge_heads(%s)", onnx_out(n, 0), onnx_name_value(n->onnx, transpose->in[0]));
}

/* Attention */

typedef struct Scores {
    OnnxMatch match;
    OnnxOperand q, k, mask; /* k as it is multiplied: transposed */
    double scale;
    bool safe; /* what is no number is 0 */
} Scores;

/* Numbers beside a value, as part of the scale */
static OnnxOperand strip_scale(Scores *s, OnnxOperand operand)
{
    double number;
    for (;;) {
        const OnnxNode *mul = onnx_maker(operand.value, "Mul"), *div = onnx_maker(operand.value, "Div"),
                       *node = mul ? mul : div;
        uint32_t side = node && onnx_one_number(onnx_operand(node, 0).value, &number) ? 1 : 0;
        bool scaled = node && onnx_one_number(onnx_operand(node, 1 - side).value, &number) && (mul || !side) &&
                      onnx_operand(node, side).value &&
                      extents_of(node, 1 - side)->rank <= extents_of(node, side)->rank;
        if (!scaled)
            return operand;
        onnx_match_enter(&s->match, operand);
        s->scale *= mul ? number : 1 / number;
        operand = onnx_operand(node, side);
    }
}

/* q k' with what it is scaled by */
static bool find_product(Scores *s, OnnxOperand operand)
{
    Scores before = *s;
    operand = strip_scale(s, operand);
    const OnnxNode *product = onnx_maker(operand.value, "MatMul");
    if (!product) {
        *s = before;
        return false;
    }
    onnx_match_enter(&s->match, operand);
    s->q = strip_scale(s, onnx_operand(product, 0));
    s->k = strip_scale(s, onnx_operand(product, 1));
    return s->q.value && s->k.value;
}

/* PyTorch's shares, `select(p != p, 0, p)`: p */
static OnnxOperand strip_choice(Scores *s, OnnxOperand shares)
{
    double zero;
    const OnnxNode *where = onnx_maker(shares.value, "Where");
    OnnxOperand test = where ? onnx_operand(where, 0) : (OnnxOperand){0};
    const OnnxNode *is_nan = onnx_maker(test.value, "IsNaN");
    bool fits = is_nan && is_nan->in[0] == where->in[2] && where->in[2]->type &&
                onnx_one_number(onnx_operand(where, 1).value, &zero) && zero == 0 &&
                extents_of(where, 1)->rank <= extents_of(where, 2)->rank;
    if (!fits)
        return shares;
    onnx_match_enter(&s->match, shares);
    onnx_match_enter(&s->match, test);
    s->safe = true;
    return onnx_operand(where, 2);
}

/* `softmax(scores)` or `softmax(scores + mask)`, over the last axis */
static bool find_scores(Scores *s, OnnxOperand shares)
{
    const OnnxNode *softmax = onnx_maker(shares.value, "Softmax");
    uint32_t rank = softmax && softmax->in[0] ? extents_of(softmax, 0)->rank : 0;
    int64_t axis = softmax ? onnx_int(softmax, "axis", softmax->opset < 13 ? 1 : -1) : 0;
    if (rank < 2 || (axis != -1 && axis != (int64_t)rank - 1))
        return false;
    onnx_match_enter(&s->match, shares);
    OnnxOperand scores = onnx_operand(softmax, 0);
    const OnnxNode *sum = onnx_maker(scores.value, "Add");
    if (!sum)
        return find_product(s, scores);
    onnx_match_enter(&s->match, scores);
    for (uint32_t i = 0; i < 2; i++) {
        s->mask = onnx_operand(sum, 1 - i);
        if (s->mask.value && find_product(s, onnx_operand(sum, i)))
            return true;
    }
    return false;
}

static const int64_t last[MAX_RANK][MAX_RANK] = {[2] = {1, 0}, [3] = {0, 2, 1}, [4] = {0, 1, 3, 2}};

/* k of k' whose extents but the last two were one while these changed places, as text; NULL: it is something else */
static const char *joined_keys_text(Scores *s)
{
    const OnnxNode *reshape = onnx_maker(s->k.value, "Reshape");
    OnnxOperand turned = reshape ? onnx_operand(reshape, 0) : (OnnxOperand){0};
    const OnnxNode *transpose = onnx_maker(turned.value, "Transpose");
    Shape keys = s->k.value->type->shape;
    if (!swaps(transpose, last[3], 3) || keys.rank < 3)
        return NULL;
    const Shape *rows = extents_of(transpose, 0);
    int64_t *t = &keys.dim[keys.rank - 2], *d = &keys.dim[keys.rank - 1];
    if (*t != rows->dim[2] || *d != rows->dim[1])
        return NULL;
    *t = rows->dim[1];
    *d = rows->dim[2];
    onnx_match_enter(&s->match, s->k);
    onnx_match_enter(&s->match, turned);
    OnnxOperand source = onnx_operand(transpose, 0);
    const OnnxNode *flat = onnx_maker(source.value, "Reshape");
    const char *many = flat ? onnx_repeated_text(&s->match, flat, &keys) : NULL;
    if (many) {
        onnx_match_enter(&s->match, source);
        return many;
    }
    const char *name = onnx_name_value(s->match.root->onnx, source.value);
    if (!flat || !shape_eq(extents_of(flat, 0), &keys))
        return onnx_text(s->match.root, "reshape(%s, shape = %s)", name, onnx_list(s->match.root, keys.dim, keys.rank));
    onnx_match_enter(&s->match, source);
    return onnx_name_value(s->match.root->onnx, flat->in[0]);
}

/* k of k', as text; NULL: it is no transpose */
static const char *keys_text(Scores *s)
{
    static const int64_t from_rows[] = {0, 2, 3, 1};
    Onnx *onnx = s->match.root->onnx;
    const OnnxNode *transpose = onnx_maker(s->k.value, "Transpose");
    uint32_t rank = transpose ? extents_of(transpose, 0)->rank : 0;
    if (!transpose)
        return joined_keys_text(s);
    if (rank < 2 || rank > 4)
        return NULL;
    OnnxOperand source = onnx_operand(transpose, 0);
    onnx_match_enter(&s->match, s->k);
    if (swaps(transpose, last[rank], rank))
        return onnx_name_value(onnx, source.value);
    if (!swaps(transpose, from_rows, 4))
        return NULL;
    const OnnxNode *reshape = onnx_maker(source.value, "Reshape");
    int64_t heads = heads_of(reshape);
    OnnxMatch before = s->match;
    if (heads) {
        onnx_match_enter(&s->match, source);
        if (onnx_match_alone(&s->match))
            return onnx_text(s->match.root, "split_heads(%s, heads = %lld)", onnx_name_value(onnx, reshape->in[0]),
                             (long long)heads);
    }
    s->match = before;
    return onnx_text(s->match.root, "transpose(%s, axes = [0, 2, 1, 3])", onnx_name_value(onnx, source.value));
}

/* Do the scores keep their shape when the mask is added? */
static bool fits(const Scores *s)
{
    const Shape *q = &s->q.value->type->shape, *k = &s->k.value->type->shape;
    Shape scores = *q, sum;
    scores.dim[q->rank - 1] = k->dim[k->rank - 1];
    bool same = q->rank == k->rank && q->rank >= 2 && dtype_is_float(s->q.value->type->dtype);
    for (uint32_t d = 0; same && d + 2 < q->rank; d++)
        same = q->dim[d] == k->dim[d];
    return same &&
           (!s->mask.value || (shape_broadcast(&scores, &s->mask.value->type->shape, &sum) && shape_eq(&sum, &scores)));
}

static bool write_attention(OnnxNode *n)
{
    Scores s = {.scale = 1};
    OnnxOperand v = onnx_operand(n, 1);
    onnx_match_start(&s.match, n);
    if (!v.value || !find_scores(&s, strip_choice(&s, onnx_operand(n, 0))) || !fits(&s))
        return false;
    const char *k = keys_text(&s);
    const Shape *q = &s.q.value->type->shape;
    if (!k || !onnx_match_alone(&s.match) || !q->dim[q->rank - 1])
        return false;
    DType dtype = s.q.value->type->dtype;
    bool usual = onnx_near(dtype, s.scale, 1 / sqrt((double)q->dim[q->rank - 1]));
    const char *mask = s.mask.value ? onnx_text(n, ", %s", onnx_name_value(n->onnx, s.mask.value)) : "";
    const char *safe = s.safe ? ", safe = true" : "";
    const char *scale =
        usual ? ""
              : onnx_text(n, ", scale = %s", onnx_number(n, dtype, dtype == DT_F64 ? s.scale : (double)(float)s.scale));
    return onnx_emit(n, "%s = scaled_dot_product(%s, %s, %s%s%s%s)", onnx_out(n, 0),
                     onnx_name_value(n->onnx, s.q.value), k, onnx_in(n, 1), mask, scale, safe);
}

bool onnx_write_heads(OnnxNode *node)
{
    const char *op = node->proto->op_type;
    if (strcmp(op, "MatMul") == 0)
        return write_attention(node);
    if (strcmp(op, "Transpose") == 0)
        return write_split(node);
    if (strcmp(op, "Squeeze") == 0)
        return write_steps(node);
    if (strcmp(op, "Add") == 0)
        return onnx_write_rotary(node);
    return strcmp(op, "Reshape") == 0 && (write_merge(node) || onnx_write_repeated(node));
}
