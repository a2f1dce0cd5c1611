/* Mixtures of experts (com.microsoft): MoE, whose weights are floats, and QMoE, whose weights are bytes or halves of
 * them.
 *
 * Each token goes to the k experts that its router prefers.  Where few tokens choose from many experts the weights of
 * those chosen are gathered; else all experts see all tokens, and what was not chosen is left out of the sum. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB  "com.microsoft"
#define GATHERED 3 /* bytes that go through memory for each of an expert that is gathered: read, written, read */

typedef struct Experts {
    OnnxNode *node;
    int64_t tokens, width, experts, inner, columns, chosen; /* columns: of the first product, inner or twice that */
    const char *dtype, *best, *at;                          /* [tokens, chosen]: shares, and of which experts */
    const char *route;                                      /* `at` as a list; NULL: all experts see all tokens */
    bool quantised, gated;
    int64_t block; /* along the depth, of QMoE; 0: a scale for each column */
} Experts;

typedef struct Weight { /* operands of the node, 0: it has none */
    uint32_t elements, scale, bias, zero;
    int64_t rows, depth;
    const char *word;
} Weight;

static const char *shape_text(const OnnxNode *n, uint32_t rank, const int64_t *dim)
{
    return onnx_list(n, dim, rank);
}

static bool has_shape(const OnnxNode *n, uint32_t operand, uint32_t rank, const int64_t *dim)
{
    const Shape *shape = &onnx_type(n, operand)->shape;
    return shape->rank == rank && memcmp(shape->dim, dim, rank * sizeof *dim) == 0;
}

/* Shapes */

static int64_t bits_of(const Experts *x, const Weight *w)
{
    int64_t all = onnx_int(x->node, "expert_weight_bits", 4);
    return x->quantised ? onnx_int(x->node, onnx_text(x->node, "%s_expert_weight_bits", w->word), all) : 8;
}

static bool check_weight(const Experts *x, const Weight *w)
{
    OnnxNode *n = x->node;
    int64_t bits = bits_of(x, w), blocks = x->block ? w->depth / x->block : 1;
    int64_t dim[] = {x->experts, w->rows, bits == 4 ? w->depth / 2 : w->depth},
            scales[] = {x->experts, w->rows, blocks}, zeros[] = {x->experts, w->rows, (blocks * bits + 7) / 8},
            zeros_of_columns[] = {x->experts, (w->rows * bits + 7) / 8};
    bool good = has_shape(n, w->elements, 3, dim) && (!w->bias || has_shape(n, w->bias, 2, scales));
    if (x->quantised)
        good = good && (bits == 4 || bits == 8) && (bits == 8 || w->depth % 2 == 0) &&
               (!x->block || w->depth % x->block == 0) && has_shape(n, w->scale, x->block ? 3 : 2, scales) &&
               onnx_type(n, w->elements)->dtype == DT_U8 &&
               (!w->zero || (x->block ? has_shape(n, w->zero, 3, zeros) : has_shape(n, w->zero, 2, zeros_of_columns)));
    return good || onnx_no(n, "the weights of %s do not fit", w->word);
}

static bool take_sizes(Experts *x, uint32_t first, uint32_t second)
{
    OnnxNode *n = x->node;
    const Shape *input = &onnx_type(n, 0)->shape;
    uint32_t rank = input->rank;
    if ((rank != 2 && rank != 3) || onnx_rank(n, 1) != 2 || onnx_rank(n, first) != 3 || onnx_rank(n, second) != 3)
        return onnx_no(n, "its operands have other dimensions than tokens and experts have");
    x->width = input->dim[rank - 1];
    x->tokens = input->dim[0] * (rank == 3 ? input->dim[1] : 1);
    x->experts = onnx_dim(n, 1, 1);
    x->columns = onnx_dim(n, first, 1);
    x->chosen = onnx_int(n, "k", 1);
    x->dtype = dtype_name(onnx_type(n, 0)->dtype);
    if (onnx_dim(n, 1, 0) != x->tokens || x->chosen < 1 || x->chosen > x->experts || x->tokens < 1 || x->width < 1)
        return onnx_no(n, "its router does not fit its tokens");
    return true;
}

/* Routes */

static const char *chosen_shares(Experts *x, const char *best)
{
    OnnxNode *n = x->node;
    if (onnx_int(n, "normalize_routing_weights", 0))
        return onnx_text(n, "%s / reduce_sum(%s, axes = 1, keep = true)", best, best);
    return best;
}

/* MoE takes shares of all experts, QMoE of those chosen, or given ones. */
static bool route(Experts *x)
{
    OnnxNode *n = x->node;
    const char *best = onnx_temp(n, "best"), *scores = onnx_in(n, 1);
    x->at = onnx_temp(n, "expert");
    scores = x->quantised ? scores : onnx_define(n, "share", "softmax(%s)", scores);
    if (!scores || !onnx_emit(n, "(%s, %s) = top_k(%s, %lld)", best, x->at, scores, (long long)x->chosen))
        return false;
    if (!x->quantised)
        x->best = chosen_shares(x, best);
    else if (!onnx_has(n, 14))
        x->best = onnx_text(n, "softmax(%s)", best);
    else
        x->best = onnx_define(n, "given", "gather_elements(%s, %s, axis = 1)", onnx_in(n, 14), x->at);
    if (x->best && x->quantised && onnx_has(n, 14))
        x->best = chosen_shares(x, x->best);
    x->best = x->best ? onnx_define(n, "share", "%s", x->best) : NULL;
    int64_t routes = x->tokens * x->chosen;
    if (x->best && routes <= x->experts / GATHERED)
        x->route = onnx_define(n, "route", "reshape(%s, shape = [%lld])", x->at, (long long)routes);
    return x->best != NULL;
}

/* Weights */

/* Of the experts that matter */
static const char *picked(const Experts *x, const char *all)
{
    return x->route ? onnx_text(x->node, "gather(%s, %s)", all, x->route) : all;
}

/* Halves of bytes as bytes, `count` to each of the rows; NULL after onnx_no. */
static const char *unpacked(const Experts *x, uint32_t operand, uint32_t rank, const int64_t *dim)
{
    OnnxNode *n = x->node;
    const Tensor *known = n->in[operand]->known;
    if (!known)
        return onnx_no(n, "its packed weights are known only when running"), NULL;
    Tensor *wide = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_U8, rank, dim));
    int64_t count = dim[rank - 1], bytes = (count + 1) / 2, rows = shape_elements(&wide->type->shape) / count;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < count; i++) {
            uint8_t both = ((const uint8_t *)known->data)[r * bytes + i / 2];
            ((uint8_t *)wide->data)[r * count + i] = i % 2 ? both >> 4 : both & 15;
        }
    const char *wish = n->in[operand]->wish ? n->in[operand]->wish : "packed";
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, wide, onnx_text(n, "%s.wide", wish)));
}

static const char *as_float(const Experts *x, const char *integers)
{
    return onnx_text(x->node, "cast(%s, to = %s)", picked(x, integers), x->dtype);
}

/* (elements - zero) * scale, [e, rows, depth] */
static const char *widened(const Experts *x, const Weight *w)
{
    OnnxNode *n = x->node;
    int64_t bits = bits_of(x, w), blocks = x->block ? w->depth / x->block : 1,
            e = x->route ? x->tokens * x->chosen : x->experts;
    int64_t all[] = {x->experts, w->rows, w->depth}, zeros[] = {x->experts, w->rows, blocks},
            parts[] = {e, w->rows, blocks, w->depth / blocks}, unit[] = {e, w->rows, blocks, 1},
            whole[] = {e, w->rows, w->depth};
    const char *q = bits == 4 ? unpacked(x, w->elements, 3, all) : onnx_in(n, w->elements), *zero = NULL;
    if (w->zero)
        zero = bits == 4 ? unpacked(x, w->zero, x->block ? 3 : 2, zeros) : onnx_in(n, w->zero);
    if (!q || (w->zero && !zero))
        return NULL;
    zero = zero        ? onnx_text(n, "reshape(%s, shape = %s)", as_float(x, zero), shape_text(n, 4, unit))
           : bits == 4 ? "8.0"
                       : "128.0";
    return onnx_define(n, w->word,
                       "reshape((reshape(%s, shape = %s) - %s) * cast(reshape(%s, shape = %s), to = %s), shape = %s)",
                       as_float(x, q), shape_text(n, 4, parts), zero, picked(x, onnx_in(n, w->scale)),
                       shape_text(n, 4, unit), x->dtype, shape_text(n, 3, whole));
}

/* rows @ W' + bias, for each expert */
static const char *product(const Experts *x, const Weight *w, const char *rows)
{
    OnnxNode *n = x->node;
    const char *weight = x->quantised ? widened(x, w) : picked(x, onnx_in(n, w->elements));
    const char *bias = w->bias ? onnx_text(n, " + unsqueeze(%s, 1)", picked(x, onnx_in(n, w->bias))) : "";
    return weight ? onnx_define(n, "rows", "matmul(%s, %s, transpose_y = true)%s", rows, weight, bias) : NULL;
}

/* What lies between the products */

static const char *number(const Experts *x, const char *name, double otherwise)
{
    return onnx_number(x->node, onnx_type(x->node, 0)->dtype, onnx_float(x->node, name, otherwise));
}

/* gate * sigmoid(alpha * gate) * (line + beta), within limits */
static const char *gated(const Experts *x, const char *gate, const char *line)
{
    OnnxNode *n = x->node;
    const char *limit = onnx_attribute(n, "swiglu_limit") ? number(x, "swiglu_limit", 0) : NULL;
    bool after = onnx_int(n, "swiglu_limit_after_activation", 0);
    if (limit && !after)
        gate = onnx_text(n, "minimum(%s, %s)", gate, limit);
    gate = onnx_text(n, "swish(%s, %s)", gate, number(x, "activation_alpha", 1));
    if (limit && after)
        gate = onnx_text(n, "minimum(%s, %s)", gate, limit);
    if (limit)
        line = onnx_text(n, "clip(%s, -%s, %s)", line, limit, limit);
    return onnx_text(n, "%s * (%s + %s)", gate, line, number(x, "activation_beta", 0));
}

/* Gate and line of one product: beside each other in pairs, or one half behind the other. */
static void halves(const Experts *x, const char *rows, const char **gate, const char **line)
{
    OnnxNode *n = x->node;
    long long inner = x->inner;
    bool pairs = onnx_int(n, "swiglu_fusion", 0) == 1;
    *gate = pairs ? onnx_text(n, "%s[..., 0:%lld:2]", rows, 2 * inner) : onnx_text(n, "%s[..., :%lld]", rows, inner);
    *line = pairs ? onnx_text(n, "%s[..., 1:%lld:2]", rows, 2 * inner) : onnx_text(n, "%s[..., %lld:]", rows, inner);
}

static const char *activated(const Experts *x, const char *kind, const char *rows, const char *second)
{
    static const struct {
        const char *kind, *text;
    } plain[] = {{"relu", "relu(%s)"},
                 {"gelu", "gelu_tanh(%s)"},
                 {"silu", "silu(%s)"},
                 {"identity", "%s"},
                 {"relu2", "square(relu(%s))"}};
    const char *gate = rows, *line = second;
    if (x->gated && !second)
        halves(x, rows, &gate, &line);
    if (strcmp(kind, "geglu") == 0)
        return onnx_text(x->node, "gelu_tanh(%s) * %s", gate, line);
    if (x->gated)
        return gated(x, gate, line);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(plain[i].kind, kind) == 0)
            return onnx_text(x->node, "%.*s%s%s", (int)strcspn(plain[i].text, "%"), plain[i].text, rows,
                             strchr(plain[i].text, '%') + 2);
    return onnx_no(x->node, "its activation '%s' is not known", kind), NULL;
}

/* The whole */

/* Tokens for each expert: [experts, tokens, width]; or each route's token: [routes, 1, width]. */
static const char *put_tokens(const Experts *x)
{
    OnnxNode *n = x->node;
    int64_t one[] = {1, x->tokens, x->width}, all[] = {x->experts, x->tokens, x->width};
    int64_t each[] = {x->tokens, 1, x->width}, chosen[] = {x->tokens, x->chosen, x->width},
            routes[] = {x->tokens * x->chosen, 1, x->width};
    if (!x->route)
        return onnx_define(n, "tokens", "broadcast(reshape(%s, shape = %s), shape = %s)", onnx_in(n, 0),
                           shape_text(n, 3, one), shape_text(n, 3, all));
    return onnx_define(n, "tokens", "reshape(broadcast(reshape(%s, shape = %s), shape = %s), shape = %s)",
                       onnx_in(n, 0), shape_text(n, 3, each), shape_text(n, 3, chosen), shape_text(n, 3, routes));
}

/* By their shares: what is not chosen counts 0, whatever came out. */
static bool put_sum(const Experts *x, const char *rows)
{
    OnnxNode *n = x->node;
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t chosen[] = {x->tokens, x->chosen, x->width};
    const char *whole = shape_text(n, shape->rank, shape->dim);
    if (x->route)
        return onnx_emit(n,
                         "%s = reshape(reduce_sum(reshape(%s, shape = %s) * unsqueeze(%s, 2), axes = 1), shape = %s)",
                         onnx_out(n, 0), rows, shape_text(n, 3, chosen), x->best, whole);
    const char *is =
        onnx_define(n, "is", "unsqueeze(%s, 2) == iota(shape = [%lld], dtype = i64)", x->at, (long long)x->experts);
    const char *share = is ? onnx_define(n, "shares",
                                         "unsqueeze(transpose(reduce_sum(select(%s, unsqueeze(%s, 2), 0.0), axes = "
                                         "1), axes = [1, 0]), 2)",
                                         is, x->best)
                           : NULL;
    return share && onnx_emit(n, "%s = reshape(reduce_sum(select(%s > 0.0, %s * %s, 0.0), axes = 0), shape = %s)",
                              onnx_out(n, 0), share, rows, share, whole);
}

static bool write_through(Experts *x, const Weight *first, const Weight *second, const Weight *third)
{
    OnnxNode *n = x->node;
    const char *tokens = route(x) ? put_tokens(x) : NULL, *rows = tokens ? product(x, first, tokens) : NULL;
    const char *line = rows && third->elements ? product(x, third, tokens) : NULL;
    if (!rows || (third->elements && !line))
        return false;
    const char *text = activated(x, onnx_string(n, "activation_type", "relu"), rows, line);
    const char *inner = text ? onnx_define(n, "inner", "%s", text) : NULL;
    const char *results = inner ? product(x, second, inner) : NULL;
    return results && put_sum(x, results);
}

static bool check_kind(Experts *x, bool third)
{
    OnnxNode *n = x->node;
    const char *kind = onnx_string(n, "activation_type", "relu");
    int64_t fusion = onnx_int(n, "swiglu_fusion", 0);
    bool geglu = strcmp(kind, "geglu") == 0;
    x->gated = geglu || strcmp(kind, "swiglu") == 0;
    if (onnx_int(n, "use_sparse_mixer", 0))
        return onnx_no(n, "it mixes sparsely");
    if (third != (x->gated && fusion == 0) || (geglu && third))
        return onnx_no(n, "its gate is neither a half of fc1 nor fc1 beside fc3");
    return true;
}

static uint32_t there(const OnnxNode *n, uint32_t operand)
{
    return onnx_has(n, operand) ? operand : 0;
}

static bool write_all(Experts *x, Weight *first, Weight *second, Weight *third)
{
    if (!take_sizes(x, first->elements, second->elements) || !check_kind(x, third->elements != 0))
        return false;
    bool fused = x->gated && !third->elements;
    x->inner = fused ? x->columns / 2 : x->columns;
    first->rows = x->columns;
    third->rows = x->inner;
    second->rows = first->depth = third->depth = x->width;
    second->depth = x->inner;
    if (x->inner < 1 || (fused && x->columns % 2))
        return onnx_no(x->node, "the weights of fc1 do not fit");
    return check_weight(x, first) && check_weight(x, second) && (!third->elements || check_weight(x, third)) &&
           write_through(x, first, second, third);
}

static bool write_moe(OnnxNode *n)
{
    Experts x = {.node = n};
    Weight first = {.elements = 2, .bias = there(n, 3), .word = "fc1"},
           second = {.elements = 4, .bias = there(n, 5), .word = "fc2"},
           third = {.elements = there(n, 6), .bias = there(n, 7), .word = "fc3"};
    return write_all(&x, &first, &second, &third);
}

/* Weights of FP4 and FP8 have scales of other kinds; those that a provider has packed have an order of its own. */
static bool write_quantised_moe(OnnxNode *n)
{
    Experts x = {.node = n, .quantised = true, .block = onnx_int(n, "block_size", 0)};
    Weight first = {2, 3, there(n, 4), there(n, 11), 0, 0, "fc1"},
           second = {5, 6, there(n, 7), there(n, 12), 0, 0, "fc2"},
           third = {there(n, 8), 9, there(n, 10), there(n, 13), 0, 0, "fc3"};
    if (strcmp(onnx_string(n, "quant_type", "int"), "int") != 0 || onnx_int(n, "weights_prepacked", -1) == 1)
        return onnx_no(n, "its weights are no plain integers");
    if (x.block < 0 || onnx_has(n, 15) || onnx_has(n, 16))
        return onnx_no(n, "its scales are those of other weights");
    return write_all(&x, &first, &second, &third);
}

const OnnxRow onnx_experts[] = {
    {"MoE", 1, write_moe, NULL, CONTRIB, false},
    {"QMoE", 1, write_quantised_moe, NULL, CONTRIB, false},
    {0},
};
