/* Ensembles of trees in the text of nnc.  All trees are walked at once, for all rows: in each round every row goes from
 * its node of each tree to one of the node's children; a leaf is its own child.  There are as many rounds as the
 * deepest tree has levels.  What the leaves give is a table of a row for each node. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/trees.h"

#define MOST_MEMBERS 32 /* of a set that a node asks for */

static const char *put_floats(Forest *f, const double *list, int64_t rows, int64_t columns, const char *word)
{
    OnnxNode *n = f->node;
    int64_t dim[] = {rows, columns};
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, columns ? 2 : 1, dim));
    for (int64_t i = 0; i < rows * (columns ? columns : 1); i++)
        tensor_set_number(tensor, i, list[i]);
    const char *wish = onnx_text(n, "%s.%s", onnx_identifier(n->onnx, n->proto->output[0]), word);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish));
}

static bool has_mode(const Forest *f, int32_t mode)
{
    for (int64_t i = 0; i < f->count; i++)
        if (f->mode[i] == mode)
            return true;
    return false;
}

/* The sets that nodes ask for, a row for each node, NaN behind their ends */
static const char *put_members(Forest *f)
{
    int64_t width = 1;
    for (int64_t i = 0; i < f->count; i++)
        for (int64_t k = 0; f->mode[i] == MEMBER && f->member[i][k] == f->member[i][k]; k++)
            width = most(width, k + 1);
    if (width > MOST_MEMBERS)
        return onnx_no(f->node, "a node asks for more than %d values", MOST_MEMBERS), NULL;
    double *table = ARENA_ARRAY(f->node->onnx->arena, double, f->count *width);
    for (int64_t i = 0; i < f->count; i++) {
        bool ends = f->mode[i] != MEMBER;
        for (int64_t k = 0; k < width; k++) {
            ends = ends || f->member[i][k] != f->member[i][k];
            table[i * width + k] = ends ? (double)NAN : f->member[i][k];
        }
    }
    return put_floats(f, table, f->count, width, "members");
}

static const char *put_ints(Forest *f, const int64_t *list, const char *word)
{
    return onnx_known_list(f->node, list, (uint32_t)f->count, word);
}

/* `, mode = ..., members = ..., missing = ...`, as far as the nodes ask for it */
static const char *put_options(Forest *f, int64_t kinds)
{
    Arena *arena = f->node->onnx->arena;
    int64_t *mode = ARENA_ARRAY(arena, int64_t, f->count), *missing = ARENA_ARRAY(arena, int64_t, f->count), any = 0;
    const char *text = "", *members = has_mode(f, MEMBER) ? put_members(f) : "";
    for (int64_t i = 0; i < f->count; i++) {
        mode[i] = f->mode[i];
        missing[i] = f->missing_yes[i];
        any |= missing[i];
    }
    if (!members)
        return NULL;
    if (kinds > 1)
        text = onnx_text(f->node, ", mode = %s", put_ints(f, mode, "modes"));
    if (*members)
        text = onnx_text(f->node, "%s, members = %s", text, members);
    return any ? onnx_text(f->node, "%s, missing = %s", text, put_ints(f, missing, "missing")) : text;
}

/* The node that each row reaches in each tree: [rows, trees] */
static const char *put_leaves(Forest *f)
{
    OnnxNode *n = f->node;
    int64_t kind[LEAF], kinds = 0;
    for (int32_t m = LEQ; m < LEAF; m++)
        if (has_mode(f, m))
            kind[kinds++] = m;
    if (!kinds)
        kind[kinds++] = LEQ;
    const char *options = put_options(f, kinds), *at = onnx_temp(n, "at");
    const char *root = onnx_known_list(n, f->root, (uint32_t)f->roots, "roots");
    return options && onnx_emit(n, "%s = tree_leaves(cast(%s, to = f32), %s, %s, %s, %s, %s, %s, %lld%s)", at,
                                onnx_in(n, 0), root, put_ints(f, f->feature, "features"),
                                put_floats(f, f->split, f->count, 0, "splits"), put_ints(f, f->yes, "yes"),
                                put_ints(f, f->no, "no"), onnx_list(n, kind, (uint32_t)kinds), (long long)f->depth,
                                options)
               ? at
               : NULL;
}

/* The least or largest of the weights that there are for a target: where a leaf has none, what never is; 0 of none. */
static const char *put_extreme(Forest *f, const char *at, bool least)
{
    OnnxNode *n = f->node;
    bool lacks = false;
    for (int64_t i = 0; i < f->count * f->targets; i++) {
        bool inner = f->mode[i / f->targets] != LEAF;
        lacks |= !inner && !f->weighs[i];
        if (!f->weighs[i])
            f->weight[i] = least ? (double)INFINITY : -(double)INFINITY;
    }
    const char *best = onnx_text(n, "reduce_%s(gather(%s, %s), axes = 1)", least ? "min" : "max",
                                 put_floats(f, f->weight, f->count, f->targets, "weights"), at);
    if (!lacks)
        return best;
    const char *y = onnx_temp(n, "best");
    return onnx_emit(n, "%s = %s", y, best) ? onnx_text(n, "select(abs(%s) < inf, %s, 0.0)", y, y) : NULL;
}

const char *onnx_tree_scores(Forest *f, const char *aggregate)
{
    OnnxNode *n = f->node;
    const char *at = put_leaves(f);
    if (!at)
        return NULL;
    if (strcmp(aggregate, "MIN") == 0 || strcmp(aggregate, "MAX") == 0)
        return put_extreme(f, at, strcmp(aggregate, "MIN") == 0);
    const char *all = onnx_text(n, "gather(%s, %s)", put_floats(f, f->weight, f->count, f->targets, "weights"), at);
    if (strcmp(aggregate, "SUM") == 0)
        return onnx_text(n, "reduce_sum(%s, axes = 1)", all);
    if (strcmp(aggregate, "AVERAGE") == 0)
        return onnx_text(n, "mean(%s, 1)", all);
    return onnx_no(n, "its leaves are put together by %s", aggregate), NULL;
}
