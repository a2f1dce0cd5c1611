/* dynamic_slice(x, at, sizes) and dynamic_update(x, at, y): the positions may be written as a list, some of whose items
 * are tensors, or as one number for the position along one axis, where all others are 0.  Either becomes the vector
 * that the op takes. */
#include "frontends/nnc/build.h"

#include "ops/meaning.h"

typedef struct Dynamic {
    OpCode op;
    bool reads; /* a slice, which has sizes; else an update, which has y */
    const AstExpr *call;
    const AstArg *positional[3], *sizes, *axis;
    uint32_t count; /* of those by position */
    ValueId in[3];
    const Shape *shape; /* of x */
    bool along;         /* one axis alone: ... */
    uint32_t dimension; /* ... this one */
} Dynamic;

static const AstArg **named_arg(Dynamic *d, Str name)
{
    if (str_is(name, "axis"))
        return &d->axis;
    return d->reads && str_is(name, "sizes") ? &d->sizes : NULL;
}

static bool sort_args(Builder *b, Dynamic *d)
{
    const char *last = d->reads ? "sizes" : "y";
    for (uint32_t i = 0; i < d->call->count; i++) {
        const AstArg *arg = &d->call->u.arg[i];
        const AstArg **named = named_arg(d, arg->name);
        if (arg->name.len && !named)
            return build_complain(b, arg->name_place, "%s has no '" STR_FMT "'", op_info(d->op)->name,
                                  STR_ARG(arg->name));
        if (arg->name.len && *named)
            return build_complain(b, arg->name_place, "'" STR_FMT "' is given twice", STR_ARG(arg->name));
        if (arg->name.len)
            *named = arg;
        else if (d->count == 3)
            return build_complain(b, arg->value->place, "%s takes (x, at, %s)", op_info(d->op)->name, last);
        else
            d->positional[d->count++] = arg;
    }
    if (d->reads && d->count == 3 && !d->sizes) {
        d->sizes = d->positional[2];
        d->count = 2;
    }
    if (d->call->label || d->count != op_least(d->op) || (d->reads && !d->sizes))
        return build_complain(b, d->call->place, "%s takes (x, at, %s)", op_info(d->op)->name, last);
    return true;
}

/* Positions */

static DType positions_dtype(const Builder *b, const Thing *item, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (item[i].kind == THING_VALUE)
            return value_type(b->frame->graph, item[i].value)->dtype;
    return DT_I32;
}

static bool constant_positions(Builder *b, const Thing *item, uint32_t count, Place place, ValueId *at)
{
    Const *list = ARENA_ARRAY(b->scratch, Const, count);
    int64_t rank = count;
    for (uint32_t i = 0; i < count; i++)
        list[i] = item[i].c;
    Const all = {.kind = C_LIST, .item = list, .count = count, .depth = 1};
    const Tensor *tensor = build_tensor(b, &all, module_plain_type(b->module, DT_I32, 1, &rank), place);
    if (tensor)
        *at = graph_add_const(b->frame->graph, tensor, (Str){0}, place);
    return tensor != NULL;
}

/* A vector of the items: a constant, or a stack of them. */
static bool stack_positions(Builder *b, const Thing *item, uint32_t count, Place place, ValueId *at)
{
    DType dtype = positions_dtype(b, item, count);
    ValueId *in = ARENA_ARRAY(b->scratch, ValueId, count);
    bool constant = true;

    for (uint32_t i = 0; i < count; i++)
        constant &= item[i].kind == THING_CONST;
    if (constant)
        return constant_positions(b, item, count, place, at);
    for (uint32_t i = 0; i < count; i++) {
        if (!build_as_value(b, item[i], dtype, place, &in[i]))
            return false;
        const Type *type = value_type(b->frame->graph, in[i]);
        if (type->shape.rank || (type->dtype != DT_I32 && type->dtype != DT_I64))
            return build_complain(b, place, "a position is one i32[] or i64[], not " STR_FMT,
                                  STR_ARG(type_show(b->scratch, type)));
    }
    Thing stack = build_node(b, OP_STACK, in, count, NULL, place);
    *at = stack.value;
    return stack.kind == THING_VALUE;
}

static bool positions_from_list(Builder *b, const AstExpr *list, ValueId *at)
{
    Thing *item = ARENA_ARRAY(b->scratch, Thing, list->count);
    bool ok = true;
    for (uint32_t i = 0; i < list->count; i++) {
        item[i] = build_single(b, build_eval(b, list->u.items[i]), list->u.items[i]->place);
        ok &= item[i].kind != THING_BAD;
    }
    return ok && stack_positions(b, item, list->count, list->place, at);
}

/* The position along one axis. */
static bool position_along(Builder *b, Dynamic *d, Thing thing, Place place)
{
    Thing item[MAX_RANK];
    int64_t axis = 0, rank = d->shape->rank;
    if (d->axis && !build_eval_int(b, d->axis->value, "axis", NULL, &axis))
        return false;
    if (axis < -rank || axis >= rank)
        return build_complain(b, d->axis ? d->axis->value->place : place,
                              "axis %lld is out of range: there are %lld dimensions", (long long)axis, (long long)rank);
    d->along = true;
    d->dimension = (uint32_t)(axis < 0 ? axis + rank : axis);
    for (uint32_t i = 0; i < d->shape->rank; i++)
        item[i] = i == d->dimension ? thing : build_thing_const(const_int(0));
    return stack_positions(b, item, d->shape->rank, place, &d->in[1]);
}

static bool eval_positions(Builder *b, Dynamic *d)
{
    const AstExpr *expr = d->positional[1]->value;
    if (expr->kind == AST_LIST && !d->axis)
        return positions_from_list(b, expr, &d->in[1]);
    Thing thing = build_single(b, build_eval(b, expr), expr->place);
    bool vector = thing.kind == THING_VALUE && value_shape(b->frame->graph, thing.value)->rank == 1;
    if (thing.kind == THING_BAD)
        return false;
    if (!d->axis && (vector || (thing.kind == THING_CONST && thing.c.kind == C_LIST)))
        return build_as_value(b, thing, DT_I32, expr->place, &d->in[1]);
    return position_along(b, d, thing, expr->place);
}

/* Sizes */

static bool eval_sizes(Builder *b, const Dynamic *d, int64_t *sizes)
{
    const AstExpr *expr = d->sizes->value;
    Const c;
    if (!build_eval_const(b, expr, &c))
        return false;
    if (c.kind == C_INT) {
        for (uint32_t i = 0; i < d->shape->rank; i++)
            sizes[i] = d->along && i != d->dimension ? d->shape->dim[i] : c.i;
        return true;
    }
    if (c.kind != C_LIST || c.count != d->shape->rank)
        return build_complain(b, expr->place, "sizes are %u integers, one for each dimension", d->shape->rank);
    for (uint32_t i = 0; i < c.count; i++) {
        if (c.item[i].kind != C_INT)
            return build_complain(b, expr->place, "sizes are integers");
        sizes[i] = c.item[i].i;
    }
    return true;
}

static bool operand(Builder *b, const AstArg *arg, DType dtype, ValueId *value)
{
    return build_as_value(b, build_eval(b, arg->value), dtype, arg->value->place, value);
}

Thing build_dynamic(Builder *b, OpCode op, const AstExpr *call)
{
    Dynamic d = {.op = op, .reads = op_attr_count(op) > 0, .call = call};
    int64_t sizes[MAX_RANK];
    Attr attr = {.ints = sizes};

    if (!b->frame->graph)
        return build_complain(b, call->place, "%s makes a tensor: a constant expression cannot use it",
                              op_info(op)->name),
               build_thing_bad();
    if (!sort_args(b, &d) || !operand(b, d.positional[0], DT_F32, &d.in[0]))
        return build_thing_bad();
    const Type *x = value_type(b->frame->graph, d.in[0]);
    d.shape = &x->shape;
    if (!eval_positions(b, &d) || (d.sizes && !eval_sizes(b, &d, sizes)) ||
        (d.count == 3 && !operand(b, d.positional[2], x->dtype, &d.in[2])))
        return build_thing_bad();
    attr.i = d.shape->rank;
    return build_node(b, op, d.in, d.count, d.sizes ? &attr : NULL, call->place);
}
