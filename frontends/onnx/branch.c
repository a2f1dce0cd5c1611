/* If: what is known is chosen when compiling, the rest becomes if. */
#include <string.h>

#include "onnx/body.h"

static bool take_branch(OnnxNode *n, const Onnx__GraphProto *branch)
{
    OnnxValue **result = ARENA_ARRAY(n->onnx->arena, OnnxValue *, branch->n_output + 1);
    if (!onnx_body_import(n, onnx_body_scope(n), branch, result))
        return false;
    for (uint32_t i = 0; i < n->out_count && i < branch->n_output; i++)
        onnx_set_value(n, i, result[i]);
    return true;
}

/* What gives sequences or optionals is chosen when compiling. */
static bool gives_lists(const Onnx__GraphProto *branch)
{
    for (size_t i = 0; i < branch->n_output; i++) {
        const Onnx__TypeProto *type = branch->output[i]->type;
        if (type && (type->sequence_type || type->optional_type))
            return true;
    }
    return false;
}

typedef struct Branch {
    Str body;
    OnnxValue **result;
    const char **name;  /* of each in the body */
    const char **count; /* how many entries of it are there; NULL: all */
} Branch;

static bool import_branch(OnnxNode *n, const Onnx__GraphProto *graph, Branch *b)
{
    Onnx *onnx = n->onnx;
    OnnxScope *scope = onnx_body_scope(n);
    b->result = ARENA_ARRAY(onnx->arena, OnnxValue *, graph->n_output + 1);
    b->name = ARENA_ARRAY(onnx->arena, const char *, graph->n_output + 1);
    b->count = ARENA_ARRAY(onnx->arena, const char *, graph->n_output + 1);
    onnx_block_open(onnx, false);
    bool good = onnx_body_import(n, scope, graph, b->result);
    for (size_t i = 0; good && i < graph->n_output; i++) {
        OnnxValue *count = b->result[i]->count;
        good = b->result[i]->type || onnx_no(n, "its body gives a sequence or an optional");
        b->name[i] = good ? onnx_name_value(onnx, b->result[i]) : "";
        b->count[i] = good && count ? onnx_name_value(onnx, count) : NULL;
    }
    Text words = {0};
    for (size_t i = 0; good && i < graph->n_output; i++)
        text_printf(&words, "%s %s ", b->name[i], b->count[i] ? b->count[i] : "");
    b->body = onnx_body_read(onnx->arena, onnx_block_close(onnx), text_view(&words));
    text_free(&words);
    return good;
}

/* How much the branches give along the one axis in which their results differ, or which is as large as data say */
typedef struct Unlike {
    bool any;
    const char *count[2];
} Unlike;

/* The axis along which results `i` are counted, or differ; false where there are several */
static bool find_axis(const Branch *branch, uint32_t i, uint32_t *axis)
{
    const OnnxValue *a = branch[0].result[i], *b = branch[1].result[i];
    const Shape *s = &a->type->shape, *t = &b->type->shape;
    uint32_t found = 0;
    if (a->type->dtype != b->type->dtype || s->rank != t->rank)
        return false;
    for (uint32_t d = 0; d < s->rank; d++) {
        bool counted = (a->count && a->count_axis == d) || (b->count && b->count_axis == d);
        if (s->dim[d] == t->dim[d] && !counted)
            continue;
        *axis = d;
        found++;
    }
    return found == 1;
}

/* The shorter result is filled up to the longer one; how much of it counts, the branch says. */
static bool make_alike(OnnxNode *n, Branch *branch, uint32_t i, Unlike *unlike)
{
    const Type *type[2] = {branch[0].result[i]->type, branch[1].result[i]->type};
    const char *count[2];
    uint32_t axis;
    if (type[0] == type[1] && !branch[0].count[i] && !branch[1].count[i])
        return true;
    if (i >= COUNTED_RESULTS || !find_axis(branch, i, &axis))
        return onnx_no(n, "its branches give " STR_FMT " and " STR_FMT, STR_ARG(type_show(n->onnx->arena, type[0])),
                       STR_ARG(type_show(n->onnx->arena, type[1])));
    for (uint32_t k = 0; k < 2; k++)
        count[k] =
            branch[k].count[i] ? branch[k].count[i] : onnx_text(n, "i64(%lld)", (long long)type[k]->shape.dim[axis]);
    if (unlike->any && (strcmp(count[0], unlike->count[0]) != 0 || strcmp(count[1], unlike->count[1]) != 0))
        return onnx_no(n, "its branches give results of several lengths");
    *unlike = (Unlike){true, {count[0], count[1]}};
    const int64_t extent[2] = {type[0]->shape.dim[axis], type[1]->shape.dim[axis]};
    uint32_t shorter = extent[1] < extent[0];
    int64_t zero[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    after[axis] = extent[!shorter] - extent[shorter];
    if (after[axis])
        branch[shorter].name[i] =
            onnx_text(n, "pad(%s, before = %s, after = %s)", branch[shorter].name[i],
                      onnx_list(n, zero, type[0]->shape.rank), onnx_list(n, after, type[0]->shape.rank));
    n->counted |= 1u << i;
    n->count_axis[i] = axis;
    return true;
}

static void put_branch(OnnxNode *n, Text *out, const Branch *b, const char *more)
{
    onnx_body_put(out, b->body);
    text_printf(out, "    yield ");
    for (uint32_t i = 0; i < n->out_count; i++)
        text_printf(out, "%s%s", i ? ", " : "", b->name[i]);
    text_printf(out, "%s\n", more);
}

/* Where results are of several lengths, they are as long as the longest, and a count is one more. */
static bool write_branches(OnnxNode *n, Branch *branch)
{
    const char **name = ARENA_ARRAY(n->onnx->arena, const char *, n->out_count + 1),
               *condition = onnx_body_scalar(n, 0);
    Unlike unlike = {0};
    for (uint32_t i = 0; i < n->out_count; i++)
        if (!make_alike(n, branch, i, &unlike))
            return false;
    for (uint32_t i = 0; i < n->out_count; i++)
        name[i] = onnx_out(n, i);
    if (unlike.any)
        name[n->out_count] = onnx_temp(n, "many");
    Text text = {0};
    onnx_body_results(&text, name, n->out_count + unlike.any);
    for (int k = 0; k < 2; k++) {
        text_printf(&text, k ? "} else {\n" : "if (%s) {\n", condition);
        put_branch(n, &text, &branch[k], unlike.any ? onnx_text(n, ", %s", unlike.count[k]) : "");
    }
    bool good = onnx_emit(n, "%s}", text.ptr);
    text_free(&text);
    n->count = good && unlike.any ? onnx_written(n, name[n->out_count]) : n->count;
    return good;
}

/* Does it give one constant without elements? */
static bool gives_nothing(OnnxNode *n, const Onnx__GraphProto *branch, uint32_t *axis)
{
    const char *op = branch->n_output == 1 && branch->n_node == 1 ? branch->node[0]->op_type : NULL;
    if (!op || strcmp(op, "Constant") != 0)
        return false;
    OnnxValue *nothing;
    if (!onnx_body_import(n, onnx_body_scope(n), branch, &nothing) || !nothing->known)
        return false;
    const Shape *shape = &nothing->type->shape;
    for (*axis = 0; *axis < shape->rank && shape->dim[*axis]; ++*axis)
        ;
    return *axis < shape->rank;
}

/* Where one branch gives nothing, the other runs in any case, and its entries count only where it is meant. */
static bool write_or_nothing(OnnxNode *n, const Onnx__GraphProto *branch, bool otherwise, uint32_t axis)
{
    const char *condition = onnx_body_scalar(n, 0), *many = onnx_temp(n, "many"), *count;
    if (!take_branch(n, branch))
        return false;
    OnnxValue *result = n->out[0];
    if (!result || !result->type || result->known || result->type->shape.rank <= axis ||
        (result->count && result->count_axis != axis))
        return onnx_no(n, "its branches give other shapes");
    count = result->count ? onnx_name_value(n->onnx, result->count)
                          : onnx_text(n, "i64(%lld)", (long long)result->type->shape.dim[axis]);
    if (!onnx_emit(n, "%s = select(%s, %s, %s)", many, condition, otherwise ? "i64(0)" : count,
                   otherwise ? count : "i64(0)"))
        return false;
    n->out[0] = onnx_value_new(n->onnx);
    *n->out[0] = *result;
    n->out[0]->count = onnx_written(n, many);
    n->out[0]->count_axis = axis;
    return true;
}

static bool write_if(OnnxNode *n)
{
    uint32_t axis;
    const Onnx__GraphProto *yes = onnx_body_graph(n, "then_branch"), *no = onnx_body_graph(n, "else_branch");
    double known;
    if (!onnx_body_check(n, yes) || !onnx_body_check(n, no))
        return false;
    if (onnx_known_number(n, 0, &known))
        return take_branch(n, known != 0 ? yes : no);
    if (gives_lists(yes) || gives_lists(no))
        return onnx_known(n, 0) != NULL;
    if (yes->n_output != n->out_count || no->n_output != n->out_count)
        return onnx_no(n, "its branches give other numbers of results");
    if (n->out_count == 1 && gives_nothing(n, yes, &axis))
        return write_or_nothing(n, no, true, axis);
    if (n->out_count == 1 && gives_nothing(n, no, &axis))
        return write_or_nothing(n, yes, false, axis);
    Branch branch[2];
    bool good = import_branch(n, yes, &branch[0]); /* what is wrong with the other one is listed, too */
    return import_branch(n, no, &branch[1]) && good && write_branches(n, branch);
}

const OnnxRow onnx_branch[] = {
    {"If", 1, write_if, NULL, NULL, true},
    {0},
};
