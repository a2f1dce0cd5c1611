/* Which experts a token goes to (com.microsoft): of groups of experts the best, and of these the best experts.
 *
 * What a router says becomes a rate for each expert, whatever the others have.  A bias, which keeps all of them busy,
 * counts when they are chosen, and not in what is told about those chosen. */
#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

typedef struct Router {
    OnnxNode *node;
    int64_t rows, experts, groups, each; /* each: experts of a group */
    int64_t kept, chosen;                /* groups; experts of all groups that are kept */
    const char *rates, *biased;          /* [rows, experts], f32 */
} Router;

static bool scores_fit(const Router *r)
{
    OnnxNode *n = r->node;
    bool all = onnx_wants(n, 1) || onnx_wants(n, 2), some = onnx_wants(n, 0), projects = onnx_has(n, 2);
    if (all && (some || r->groups != 1 || r->kept != 1))
        return onnx_no(n, "it gives all scores, and chooses some, too");
    if (projects && (!all || onnx_rank(n, 0) != 2 || onnx_rank(n, 2) != 2 || onnx_dim(n, 2, 0) != r->experts ||
                     onnx_dim(n, 2, 1) != onnx_dim(n, 0, 1)))
        return onnx_no(n, "its projection does not fit its tokens");
    return projects || onnx_dim(n, 0, -1) == r->experts || onnx_no(n, "its bias does not fit its experts");
}

static bool router_start(Router *r, OnnxNode *n)
{
    *r = (Router){.node = n,
                  .groups = onnx_int(n, "n_group", 1),
                  .kept = onnx_int(n, "topk_group", 1),
                  .chosen = onnx_int(n, "top_k", 0)};
    if (onnx_rank(n, 0) < 1 || onnx_rank(n, 1) != 1 || onnx_dim(n, 1, 0) < 1 || onnx_dim(n, 0, -1) < 1)
        return onnx_no(n, "its bias does not fit its experts");
    r->rows = shape_elements(&onnx_type(n, 0)->shape) / onnx_dim(n, 0, -1);
    r->experts = onnx_dim(n, 1, 0);
    if (r->groups < 1 || r->experts % r->groups || r->kept < 1 || r->kept > r->groups)
        return onnx_no(n, "its topk_group, %lld of %lld groups, does not fit its experts", (long long)r->kept,
                       (long long)r->groups);
    if (onnx_int(n, "group_topk", 2) < 1)
        return onnx_no(n, "its group_topk is %lld", (long long)onnx_int(n, "group_topk", 2));
    if (r->chosen < 1 || r->chosen > r->experts)
        return onnx_no(n, "its top_k is %lld, of %lld experts", (long long)r->chosen, (long long)r->experts);
    r->each = r->experts / r->groups;
    r->chosen = least(r->chosen, r->kept * r->each);
    return scores_fit(r);
}

static bool put_rates(Router *r)
{
    OnnxNode *n = r->node;
    int64_t dim[] = {r->rows, r->experts};
    const char *said = onnx_has(n, 2)
                           ? onnx_text(n, "matmul(%s, %s, transpose_y = true)", onnx_widened(n, 0), onnx_widened(n, 2))
                           : onnx_text(n, "reshape(%s, shape = %s)", onnx_widened(n, 0), onnx_list(n, dim, 2));
    r->rates = onnx_define(n, "rates", "sigmoid(%s)", said);
    r->biased = r->rates ? onnx_define(n, "biased", "%s + %s", r->rates, onnx_in(n, 1)) : NULL;
    return r->biased != NULL;
}

/* Truths along the last axis: is the position one of the `count` largest? */
static const char *among_largest(const Router *r, const char *x, int64_t extent, int64_t count, const char *word)
{
    OnnxNode *n = r->node;
    const char *at =
        onnx_define(n, word, "sorted_positions(%s, axis = 1, count = %lld, largest = true)", x, (long long)count);
    return at ? onnx_text(n, "any(unsqueeze(%s, 2) == iota(shape = [%lld]), axes = 1)", at, (long long)extent) : NULL;
}

/* What is chosen by, which is -inf outside of the best groups: those whose best experts come to most */
static const char *within_groups(const Router *r)
{
    OnnxNode *n = r->node;
    int64_t apart[] = {r->rows, r->groups, r->each}, flat[] = {r->rows, r->experts},
            count = least(onnx_int(n, "group_topk", 2), r->each);
    if (r->kept == r->groups)
        return r->biased;
    const char *group = onnx_define(n, "groups", "reshape(%s, shape = %s)", r->biased, onnx_list(n, apart, 3)),
               *best = onnx_temp(n, "best"), *at = onnx_temp(n, "at");
    if (!group || !onnx_emit(n, "(%s, %s) = top_k(%s, %lld)", best, at, group, (long long)count))
        return NULL;
    const char *sums = onnx_define(n, "sums", "reduce_sum(%s, axes = 2)", best);
    const char *kept = sums ? among_largest(r, sums, r->groups, r->kept, "kept") : NULL;
    return kept ? onnx_define(n, "within", "reshape(select(unsqueeze(%s, 2), %s, -inf), shape = %s)", kept, group,
                              onnx_list(n, flat, 2))
                : NULL;
}

static bool write_chosen(const Router *r)
{
    OnnxNode *n = r->node;
    const char *by = within_groups(r), *is = by ? among_largest(r, by, r->experts, r->chosen, "chosen") : NULL;
    return is && onnx_put_rounded(n, 0,
                                  onnx_text(n, "select(%s, log(maximum(%s, 1e-20)), %s)", is, r->rates,
                                            onnx_number(n, DT_F32, onnx_float(n, "router_sentinel", -10000))));
}

static bool write_router(OnnxNode *n)
{
    Router r;
    if (!router_start(&r, n) || !put_rates(&r))
        return false;
    return (!onnx_wants(n, 0) || write_chosen(&r)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), r.biased)) &&
           (!onnx_wants(n, 2) || onnx_emit(n, "%s = %s", onnx_out(n, 2), r.rates));
}

const OnnxRow onnx_contrib_router[] = {
    {"MoEGroupRouter", 1, write_router, NULL, CONTRIB, false},
    {0},
};
