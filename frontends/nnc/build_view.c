/* x[...] of tensors: a slice, and a reshape that drops the dimensions with a plain index. */
#include "frontends/nnc/build.h"

#define AT_TENSOR "gather and dynamic_slice take positions that are tensors, compress a mask"

typedef struct Cut {
    int64_t axes[MAX_RANK], begin[MAX_RANK], end[MAX_RANK], step[MAX_RANK];
    uint32_t count;
    bool dropped[MAX_RANK];
} Cut;

static bool cut_index(Builder *b, const AstPick *pick, uint32_t axis, int64_t extent, Cut *cut)
{
    int64_t index;
    if (!build_eval_int(b, pick->begin, "an index", AT_TENSOR, &index))
        return false;
    if (index < -extent || index >= extent)
        return build_complain(b, pick->place, "index %lld is outside of dimension %u, whose extent is %lld",
                              (long long)index, axis, (long long)extent);
    index += index < 0 ? extent : 0;
    cut->axes[cut->count] = axis;
    cut->begin[cut->count] = index;
    cut->end[cut->count] = index + 1;
    cut->step[cut->count++] = 1;
    cut->dropped[axis] = true;
    return true;
}

static bool cut_range(Builder *b, const AstPick *pick, uint32_t axis, int64_t extent, Cut *cut)
{
    int64_t begin, end, step = 1;
    if (!pick->begin && !pick->end && !pick->step)
        return true;
    if (pick->step && !build_eval_int(b, pick->step, "a step", NULL, &step))
        return false;
    if (step == 0)
        return build_complain(b, pick->place, "a step of 0");
    begin = step > 0 ? 0 : extent - 1;
    end = step > 0 ? extent : -extent - 1; /* before the first element */
    if ((pick->begin && !build_eval_int(b, pick->begin, "an index", AT_TENSOR, &begin)) ||
        (pick->end && !build_eval_int(b, pick->end, "an index", AT_TENSOR, &end)))
        return false;
    cut->axes[cut->count] = axis;
    cut->begin[cut->count] = begin;
    cut->end[cut->count] = end;
    cut->step[cut->count++] = step;
    return true;
}

/* Does one stand where NumPy makes a new dimension? */
static bool has_new_dimension(Builder *b, const AstExpr *expr)
{
    bool has = false;
    for (uint32_t i = 0; i < expr->count; i++) {
        const AstPick *pick = &expr->u.pick[i];
        const AstExpr *index = pick->kind == AST_PICK_INDEX ? pick->begin : NULL;
        has |= index && index->kind == AST_CONST && index->u.constant->kind == C_NONE;
        has |= index && index->kind == AST_NAME &&
               (str_is(index->name->text, "None") || str_is(index->name->text, "newaxis")) &&
               !build_lookup(b, index->name->text);
    }
    return has;
}

static bool cut_all(Builder *b, const AstExpr *expr, const Shape *shape, Cut *cut)
{
    uint32_t axis = 0, rest = 0;
    for (uint32_t i = 0; i < expr->count; i++)
        rest += expr->u.pick[i].kind == AST_PICK_REST;
    if (rest > 1)
        return build_complain(b, expr->place, "'...' stands once");
    if (has_new_dimension(b, expr))
        return build_complain(b, expr->place, "an index makes no new dimension; unsqueeze(x, 0) does");
    if (expr->count - rest > shape->rank)
        return build_complain(b, expr->place, "%u indices for %u dimensions", expr->count - rest, shape->rank);
    for (uint32_t i = 0; i < expr->count; i++) {
        const AstPick *pick = &expr->u.pick[i];
        if (pick->kind == AST_PICK_REST) {
            axis += shape->rank - (expr->count - rest);
            continue;
        }
        if (pick->kind == AST_PICK_INDEX ? !cut_index(b, pick, axis, shape->dim[axis], cut)
                                         : !cut_range(b, pick, axis, shape->dim[axis], cut))
            return false;
        axis++;
    }
    return true;
}

static void set_ints(Attr *attr, OpCode op, Str name, const int64_t *ints, uint32_t count)
{
    Attr *a = &attr[attr_index(op, name)];
    a->i = count;
    a->ints = ints;
}

static Thing slice(Builder *b, ValueId x, const Cut *cut, Place place)
{
    Attr attr[8];
    attr_defaults(OP_SLICE, attr);
    set_ints(attr, OP_SLICE, STR("axes"), cut->axes, cut->count);
    set_ints(attr, OP_SLICE, STR("begin"), cut->begin, cut->count);
    set_ints(attr, OP_SLICE, STR("end"), cut->end, cut->count);
    for (uint32_t i = 0; i < cut->count; i++)
        if (cut->step[i] != 1) /* else the default says it shorter */
            set_ints(attr, OP_SLICE, STR("step"), cut->step, cut->count);
    return build_thing_value(b, build_value(b, OP_SLICE, &x, 1, attr, place));
}

/* Of another shape, or of its own: a view of all is a value besides what it views, which a gradient may be asked for.
 */
static Thing reshape(Builder *b, ValueId x, const int64_t *dim, uint32_t rank, Place place)
{
    Attr attr[4];
    attr_defaults(OP_RESHAPE, attr);
    set_ints(attr, OP_RESHAPE, STR("shape"), dim, rank);
    return build_thing_value(b, build_value(b, OP_RESHAPE, &x, 1, attr, place));
}

static Thing drop_dims(Builder *b, ValueId x, const Cut *cut, Place place)
{
    const Shape *shape = value_shape(b->frame->graph, x);
    int64_t kept[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!cut->dropped[i])
            kept[count++] = shape->dim[i];
    if (count == shape->rank)
        return build_thing_value(b, x);
    return reshape(b, x, kept, count, place);
}

Thing build_index(Builder *b, const AstExpr *expr)
{
    Thing base = build_single(b, build_eval(b, expr->left), expr->left->place);
    Cut cut = {0};

    if (build_is_list(&base))
        return build_list_index(b, expr, base);
    if (base.kind == THING_CONST)
        return build_complain(b, expr->left->place, "%s cannot be indexed", const_kind_name(base.c.kind)),
               build_thing_bad();
    if (base.kind != THING_VALUE || build_has_failed(b, expr->place) ||
        !cut_all(b, expr, value_shape(b->frame->graph, base.value), &cut))
        return build_thing_bad();
    if (!cut.count) {
        const Shape *shape = value_shape(b->frame->graph, base.value);
        return reshape(b, base.value, shape->dim, shape->rank, expr->place);
    }
    base = slice(b, base.value, &cut, expr->place);
    if (base.kind == THING_VALUE)
        base = drop_dims(b, base.value, &cut, expr->place);
    return base;
}
