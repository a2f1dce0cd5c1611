/* Ensembles of trees (ai.onnx.ml): the lists that nodes give them in become one of nodes and leaves, which is checked;
 * trees_walk.c computes with it. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/trees.h"

#define LEARNED    "ai.onnx.ml"
#define MOST_NODES 1000000

static bool make_forest(OnnxNode *n, Forest *f, int64_t count, int64_t targets)
{
    Arena *arena = n->onnx->arena;
    *f = (Forest){.node = n, .count = count, .targets = targets};
    if (onnx_rank(n, 0) != 2 || count < 1 || targets < 1 || count > MOST_NODES || targets > MOST_NODES / count)
        return onnx_no(n, "its trees are too large, or its operand has no features");
    f->features = onnx_dim(n, 0, 1);
    f->feature = ARENA_ARRAY(arena, int64_t, count);
    f->yes = ARENA_ARRAY(arena, int64_t, count);
    f->no = ARENA_ARRAY(arena, int64_t, count);
    f->root = ARENA_ARRAY(arena, int64_t, count);
    f->mode = ARENA_ARRAY(arena, int32_t, count);
    f->missing_yes = ARENA_ARRAY(arena, bool, count);
    f->split = ARENA_ARRAY(arena, double, count);
    f->member = ARENA_ARRAY(arena, double *, count);
    f->weight = ARENA_ARRAY(arena, double, count *targets);
    f->weighs = ARENA_ARRAY(arena, bool, count *targets);
    memset(f->missing_yes, 0, (size_t)count);
    memset(f->weight, 0, (size_t)(count * targets) * sizeof *f->weight);
    return true;
}

/* Levels below the roots; false where a path does not end. */
static bool measure(Forest *f)
{
    int64_t *level = ARENA_ARRAY(f->node->onnx->arena, int64_t, f->count),
            *next = ARENA_ARRAY(f->node->onnx->arena, int64_t, f->count);
    int64_t many = f->roots;
    memcpy(level, f->root, (size_t)many * sizeof *level);
    for (f->depth = 0; many; f->depth++) {
        int64_t below = 0;
        for (int64_t i = 0; i < many; i++) {
            if (f->mode[level[i]] == LEAF)
                continue;
            if (below + 2 > f->count || f->depth > f->count)
                return onnx_no(f->node, "its trees go round in a circle");
            next[below++] = f->yes[level[i]];
            if (f->no[level[i]] != f->yes[level[i]])
                next[below++] = f->no[level[i]];
        }
        if (!below)
            break;
        int64_t *other = level;
        level = next;
        next = other;
        many = below;
    }
    return true;
}

static bool check(Forest *f)
{
    for (int64_t i = 0; i < f->count; i++) {
        bool inside = f->yes[i] >= 0 && f->yes[i] < f->count && f->no[i] >= 0 && f->no[i] < f->count;
        if (!inside || f->feature[i] < 0 || f->feature[i] >= f->features)
            return onnx_no(f->node, "a node of its trees has no such child or feature");
    }
    for (int64_t i = 0; i < f->roots; i++)
        if (f->root[i] < 0 || f->root[i] >= f->count)
            return onnx_no(f->node, "a tree has no root");
    return (f->roots > 0 || onnx_no(f->node, "it has no trees")) && measure(f);
}

/* Trees as lists of nodes with numbers of their own (TreeEnsembleRegressor and -Classifier) */

typedef struct Listed {
    const int64_t *list;
    uint32_t count;
} Listed;

static Listed ints_of(const OnnxNode *n, const char *name)
{
    Listed l = {0};
    onnx_ints(n, name, &l.list, &l.count);
    return l;
}

static int64_t find_node(const Map *index, int64_t tree, int64_t number)
{
    int64_t key[] = {tree, number};
    uint32_t at = map_get(index, map_key(key, sizeof key));
    return at == MAP_NONE ? -1 : (int64_t)at;
}

static int32_t mode_of(const Onnx__AttributeProto *modes, size_t i)
{
    static const char *const name[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                       "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    Str mode = {(const char *)modes->strings[i].data, (uint32_t)modes->strings[i].len};
    for (int32_t m = LEQ; m <= LEAF; m++)
        if (m != MEMBER && str_is(mode, name[m]))
            return m;
    return -1;
}

static bool take_node(Forest *f, const Map *index, int64_t i, const Listed *tree, const Onnx__AttributeProto *modes)
{
    OnnxNode *n = f->node;
    const Onnx__AttributeProto *values = onnx_attribute(n, "nodes_values");
    Listed yes = ints_of(n, "nodes_truenodeids"), no = ints_of(n, "nodes_falsenodeids"),
           feature = ints_of(n, "nodes_featureids"), missing = ints_of(n, "nodes_missing_value_tracks_true");
    f->mode[i] = mode_of(modes, (size_t)i);
    if (f->mode[i] < 0)
        return onnx_no(n, "a node of its trees compares in another way");
    bool leaf = f->mode[i] == LEAF;
    f->feature[i] = leaf ? 0 : feature.list[i];
    f->split[i] = (double)values->floats[i];
    f->yes[i] = leaf ? i : find_node(index, tree->list[i], yes.list[i]);
    f->no[i] = leaf ? i : find_node(index, tree->list[i], no.list[i]);
    f->missing_yes[i] = !leaf && (int64_t)missing.count == f->count && missing.list[i] != 0;
    if (i == 0 || tree->list[i] != tree->list[i - 1])
        f->root[f->roots++] = i;
    return true;
}

/* Another weight of a leaf for a target that it has one for.  Of a regressor's one target the first counts, as ONNX
 * Runtime has it: skl2onnx writes the number of a leaf once for each class. */
static double joined(const Forest *f, double has, double other, bool classes)
{
    const char *aggregate = onnx_string(f->node, "aggregate_function", "SUM");
    if (!classes && f->targets == 1)
        return has;
    if (strcmp(aggregate, "MIN") == 0)
        return fmin(has, other);
    return strcmp(aggregate, "MAX") == 0 ? fmax(has, other) : has + other;
}

/* Weights of leaves: lists of trees, nodes, targets and numbers, by their names in the attributes */
static bool take_weights(Forest *f, const Map *index, const char *side)
{
    OnnxNode *n = f->node;
    Listed tree = ints_of(n, onnx_text(n, "%s_treeids", side)), number = ints_of(n, onnx_text(n, "%s_nodeids", side)),
           target = ints_of(n, onnx_text(n, "%s_ids", side));
    const Onnx__AttributeProto *weights = onnx_attribute(n, onnx_text(n, "%s_weights", side));
    if (!weights || tree.count != weights->n_floats || number.count != tree.count || target.count != tree.count)
        return onnx_no(n, "its leaves have no weights");
    bool classes = strcmp(side, "class") == 0, one = f->targets == 1 && classes; /* whichever that is */
    for (uint32_t i = 0; i < tree.count; i++) {
        int64_t at = find_node(index, tree.list[i], number.list[i]), to = one ? 0 : target.list[i];
        if (at < 0 || to < 0 || to >= f->targets)
            return onnx_no(n, "a weight is of no leaf or of no target");
        double *has = &f->weight[at * f->targets + to], weight = (double)weights->floats[i];
        bool *weighs = &f->weighs[at * f->targets + to];
        *has = *weighs ? joined(f, *has, weight, classes) : weight;
        *weighs = true;
    }
    return true;
}

static bool take_listed(OnnxNode *n, Forest *f, int64_t targets, const char *side)
{
    Listed tree = ints_of(n, "nodes_treeids"), number = ints_of(n, "nodes_nodeids");
    const Onnx__AttributeProto *modes = onnx_attribute(n, "nodes_modes"), *values = onnx_attribute(n, "nodes_values");
    uint32_t count = tree.count;
    bool whole = modes && values && modes->n_strings == count && values->n_floats == count && number.count == count &&
                 ints_of(n, "nodes_truenodeids").count == count && ints_of(n, "nodes_falsenodeids").count == count &&
                 ints_of(n, "nodes_featureids").count == count;
    if (!whole)
        return onnx_no(n, "its trees have lists of other lengths, or numbers of f64");
    if (!make_forest(n, f, count, targets))
        return false;
    Map index = {.arena = n->onnx->arena};
    for (int64_t i = 0; i < f->count; i++) {
        int64_t key[] = {tree.list[i], number.list[i]};
        if (!map_add(&index, map_key(arena_copy(n->onnx->arena, key, sizeof key), sizeof key), (uint32_t)i))
            return onnx_no(n, "two nodes of a tree have one number");
    }
    for (int64_t i = 0; i < f->count; i++)
        if (!take_node(f, &index, i, &tree, modes))
            return false;
    return take_weights(f, &index, side) && check(f);
}

/* `scores + base` */
static const char *based(OnnxNode *n, const char *scores, int64_t targets)
{
    const Onnx__AttributeProto *base = onnx_attribute(n, "base_values");
    const Tensor *wide = onnx_tensor_of(n, "base_values_as_tensor");
    int64_t count = wide ? shape_elements(&wide->type->shape) : base ? (int64_t)base->n_floats : 0;
    if (!count)
        return scores;
    if (count != targets)
        return onnx_no(n, "it begins with %lld values, for %lld targets", (long long)count, (long long)targets), NULL;
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, 1, &targets));
    for (int64_t i = 0; i < count; i++)
        tensor_set_number(tensor, i, wide ? tensor_number(wide, i) : (double)base->floats[i]);
    const char *wish = onnx_text(n, "%s.base", onnx_identifier(n->onnx, n->proto->output[0]));
    return onnx_text(n, "%s + %s", scores, onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish)));
}

static bool write_regressor(OnnxNode *n)
{
    Forest f;
    if (!take_listed(n, &f, onnx_int(n, "n_targets", 1), "target"))
        return false;
    const char *scores = onnx_tree_scores(&f, onnx_string(n, "aggregate_function", "SUM"));
    scores = scores ? based(n, scores, f.targets) : NULL;
    const char *y = scores ? onnx_post_transform(n, scores) : NULL;
    return y && onnx_emit(n, "%s = %s", onnx_out(n, 0), y);
}

static bool all_positive(const OnnxNode *n)
{
    const Onnx__AttributeProto *weights = onnx_attribute(n, "class_weights");
    bool positive = weights != NULL;
    for (size_t i = 0; weights && i < weights->n_floats; i++)
        positive &= weights->floats[i] >= 0;
    return positive;
}

/* Where all weights are of one class, and there are two labels, one score decides. */
static bool write_classifier(OnnxNode *n)
{
    Forest f;
    Listed labels = ints_of(n, "classlabels_int64s"), ids = ints_of(n, "class_ids");
    int64_t classes = labels.count, largest = 0;
    for (uint32_t i = 0; i < ids.count; i++)
        largest = most(largest, ids.list[i] + 1);
    if (classes < 2)
        classes = largest;
    bool one = classes == 2 && largest < 2;
    if (!take_listed(n, &f, one ? 1 : classes, "class"))
        return false;
    const char *scores = onnx_tree_scores(&f, "SUM");
    scores = scores ? based(n, scores, f.targets) : NULL;
    return scores && (one ? onnx_write_two_classes(n, scores, all_positive(n), all_positive(n) ? "0.5" : "0.0")
                          : onnx_write_classes(n, scores, classes));
}

/* Trees whose leaves have lists of their own (TreeEnsemble): leaves come behind the nodes. */

static bool take_member_sets(Forest *f, const Tensor *members, int64_t nodes)
{
    int64_t at = 0, count = members ? shape_elements(&members->type->shape) : 0;
    for (int64_t i = 0; i < nodes; i++) {
        if (f->mode[i] != MEMBER)
            continue;
        if (at >= count)
            return onnx_no(f->node, "it has fewer sets of values than nodes that ask for one");
        f->member[i] = ARENA_ARRAY(f->node->onnx->arena, double, count - at + 1);
        int64_t k = 0;
        for (; at < count && tensor_number(members, at) == tensor_number(members, at); at++)
            f->member[i][k++] = tensor_number(members, at);
        f->member[i][k] = (double)NAN;
        at++;
    }
    return true;
}

static bool take_forest(OnnxNode *n, Forest *f)
{
    Listed feature = ints_of(n, "nodes_featureids"), yes = ints_of(n, "nodes_truenodeids"),
           no = ints_of(n, "nodes_falsenodeids"), yes_leaf = ints_of(n, "nodes_trueleafs"),
           no_leaf = ints_of(n, "nodes_falseleafs"), target = ints_of(n, "leaf_targetids"),
           root = ints_of(n, "tree_roots"), missing = ints_of(n, "nodes_missing_value_tracks_true");
    const Tensor *split = onnx_tensor_of(n, "nodes_splits"), *mode = onnx_tensor_of(n, "nodes_modes"),
                 *weight = onnx_tensor_of(n, "leaf_weights");
    uint32_t nodes = feature.count, leaves = target.count;
    bool whole = split && mode && weight && yes.count == nodes && no.count == nodes && yes_leaf.count == nodes &&
                 no_leaf.count == nodes && shape_elements(&split->type->shape) == nodes &&
                 shape_elements(&mode->type->shape) == nodes && shape_elements(&weight->type->shape) == leaves &&
                 root.count <= nodes;
    if (!whole)
        return onnx_no(n, "its trees have lists of other lengths");
    if (!make_forest(n, f, (int64_t)nodes + leaves, onnx_int(n, "n_targets", 1)))
        return false;
    for (int64_t i = 0; i < nodes; i++) {
        f->feature[i] = feature.list[i];
        f->mode[i] = (int32_t)tensor_number(mode, i);
        f->split[i] = tensor_number(split, i);
        f->yes[i] = yes.list[i] + (yes_leaf.list[i] ? nodes : 0);
        f->no[i] = no.list[i] + (no_leaf.list[i] ? nodes : 0);
        f->missing_yes[i] = missing.count == nodes && missing.list[i] != 0;
        if (f->mode[i] < LEQ || f->mode[i] > MEMBER)
            return onnx_no(n, "a node of its trees compares in another way");
    }
    for (int64_t i = 0; i < leaves; i++) {
        int64_t at = nodes + i;
        f->feature[at] = 0;
        f->mode[at] = LEAF;
        f->split[at] = 0;
        f->yes[at] = f->no[at] = at;
        if (target.list[i] < 0 || target.list[i] >= f->targets)
            return onnx_no(n, "a weight is of no leaf or of no target");
        f->weight[at * f->targets + target.list[i]] = tensor_number(weight, i);
        f->weighs[at * f->targets + target.list[i]] = true;
    }
    for (uint32_t i = 0; i < root.count; i++)
        f->root[f->roots++] = root.list[i];
    return take_member_sets(f, onnx_tensor_of(n, "membership_values"), nodes) && check(f);
}

static bool write_ensemble(OnnxNode *n)
{
    static const char *const aggregate[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const becomes[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
    Forest f;
    int64_t way = onnx_int(n, "aggregate_function", 1), transform = onnx_int(n, "post_transform", 0);
    DType dtype = onnx_type(n, 0)->dtype;
    if (way < 0 || way > 3 || transform < 0 || transform > 4)
        return onnx_no(n, "what becomes of its scores is %lld", (long long)transform);
    const char *scores = take_forest(n, &f) ? onnx_tree_scores(&f, aggregate[way]) : NULL;
    if (!scores)
        return false;
    scores = onnx_transform(n, becomes[transform], scores);
    return scores && onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, 0), scores, dtype_name(dtype));
}

const OnnxRow onnx_trees[] = {
    {"TreeEnsemble", 5, write_ensemble, NULL, LEARNED, false},
    {"TreeEnsembleClassifier", 1, write_classifier, NULL, LEARNED, false},
    {"TreeEnsembleRegressor", 1, write_regressor, NULL, LEARNED, false},
    {0},
};
