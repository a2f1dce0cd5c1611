/* Expressions: constants are computed here, tensors become nodes of the frame's graph. */
#include "frontends/nnc/build.h"

#include <string.h>

Thing build_thing_value(const Builder *b, ValueId value)
{
    if (!b->frame->graph->value[value].type)
        return build_thing_bad();
    return (Thing){.kind = THING_VALUE, .value = value};
}

Thing build_single(Builder *b, Thing thing, Place place)
{
    if (thing.kind != THING_MANY)
        return thing;
    build_complain(b, place, "this gives %u results: take them apart with (a, b) = ...", thing.count);
    return build_thing_bad();
}

/* Names */

/* A typed constant of the file becomes a value where a graph uses it; elsewhere it only has a shape. */
static Thing tensor_value(Builder *b, Binding *binding, Place place)
{
    Frame *frame = build_root(b->frame);
    if (!frame->graph) {
        build_complain(b, place, "'" STR_FMT "' is an array: a constant expression cannot use it",
                       STR_ARG(binding->name));
        return build_thing_bad();
    }
    uint32_t known = map_get(&frame->tensors, binding->name);
    if (known == MAP_NONE) {
        known = graph_add_const(frame->graph, binding->tensor, binding->name, binding->place);
        map_put(&frame->tensors, binding->name, known);
    }
    return build_thing_value(b, build_import_value(b, frame, b->frame, known));
}

Thing build_bound(Builder *b, Binding *binding, Place place)
{
    return binding->tensor ? tensor_value(b, binding, place) : binding->thing;
}

static Thing dims_list(Builder *b, const Shape *shape)
{
    Const *item = ARENA_ARRAY(b->scratch, Const, shape->rank);
    for (uint32_t i = 0; i < shape->rank; i++)
        item[i] = const_int(shape->dim[i]);
    return build_thing_const((Const){.kind = C_LIST, .item = item, .count = shape->rank, .depth = 1});
}

static bool is_property(Str name)
{
    return str_is(name, "shape") || str_is(name, "rank") || str_is(name, "dtype") || str_is(name, "size");
}

static Thing property_of_type(Builder *b, const Type *type, Str property)
{
    if (str_is(property, "shape"))
        return dims_list(b, &type->shape);
    if (str_is(property, "rank"))
        return build_thing_const(const_int(type->shape.rank));
    if (str_is(property, "size"))
        return build_thing_const(const_int(shape_elements(&type->shape)));
    return build_thing_const((Const){.kind = C_DTYPE, .i = type->dtype});
}

/* Those of the tensor that numbers, or rectangular lists of them, are where one must be. */
static Thing property_of_const(Builder *b, const Const *c, Str property, Place place)
{
    Type type = {0};
    if (const_shape(c, &type.shape)) {
        type.dtype = const_default_dtype(c);
        return property_of_type(b, &type, property);
    }
    if (c->kind == C_LIST && str_is(property, "rank"))
        return build_thing_const(const_int(c->depth));
    build_complain(b, place, "%s has no '" STR_FMT "'", const_kind_name(c->kind), STR_ARG(property));
    return build_thing_bad();
}

static Thing property_of(Builder *b, Thing thing, Str property, Place place)
{
    if (thing.kind == THING_BAD)
        return thing;
    if (!is_property(property)) {
        build_complain(b, place, "no property '" STR_FMT "'; a tensor has shape, rank, size and dtype",
                       STR_ARG(property));
        return build_thing_bad();
    }
    if (thing.kind == THING_MANY)
        return build_single(b, thing, place);
    if (thing.kind == THING_LIST)
        return build_complain(b, place, "a list has no '" STR_FMT "'; its tensors have, and there is len(list)",
                              STR_ARG(property)),
               build_thing_bad();
    if (thing.kind == THING_CONST)
        return property_of_const(b, &thing.c, property, place);
    return property_of_type(b, value_type(b->frame->graph, thing.value), property);
}

static Thing unknown_name(Builder *b, Str name, Place place)
{
    if (build_of_four_bits(b, name, place))
        return build_thing_bad();
    Nearest nearest = {.wanted = name};
    for (const Frame *f = b->frame; f; f = f->around)
        for (const Scope *s = f->scope; s; s = s->outer)
            for (uint32_t i = 0; i < s->count && i < 1000; i++)
                build_nearest_try(&nearest, s->binding[i].name);
    const Scope *constants = &b->frame->file->constants;
    for (uint32_t i = 0; i < constants->count && i < 1000; i++)
        build_nearest_try(&nearest, constants->binding[i].name);
    Str hint = build_nearest_show(b->scratch, &nearest);
    Str full = str_format(b->scratch, STR_FMT STR_FMT, STR_ARG(b->frame->prefix), STR_ARG(name));
    if (map_get(&b->params, full) != MAP_NONE)
        hint = STR(
            "; a call has made it: minimize(..., params = [...]) trains a param by its name, and grad takes one that "
            "is declared here and handed on");
    else if (!hint.len && map_get(&b->inside, name) != MAP_NONE)
        hint = STR("; a name of a loop's or branch's body ends with it: carry the value, or yield it");
    else if (nnc_foreign_dtype(name).len)
        hint = build_nearest_show(b->scratch, &(Nearest){.best = nnc_foreign_dtype(name)});
    build_complain(b, place, "nothing is called '" STR_FMT "' here" STR_FMT, STR_ARG(name), STR_ARG(hint));
    return build_thing_bad();
}

static Thing eval_name(Builder *b, const AstExpr *expr)
{
    Str name = build_name_text(b, expr->name);
    Binding *binding = build_lookup(b, name);
    DType dtype;
    if (binding)
        return build_bound(b, binding, expr->place);

    const char *dot = NULL; /* the last: of `a.b.shape` the property is `shape` */
    for (uint32_t i = 0; i < name.len; i++)
        dot = name.ptr[i] == '.' ? name.ptr + i : dot;
    if (dot) {
        Str head = {name.ptr, (uint32_t)(dot - name.ptr)}, tail = {dot + 1, name.len - head.len - 1};
        if ((binding = build_lookup(b, head)))
            return property_of(b, build_bound(b, binding, expr->place), tail, expr->place);
    }
    if (dtype_parse(name, &dtype))
        return build_thing_const((Const){.kind = C_DTYPE, .i = dtype});
    if (str_is(name, "label")) {
        b->label_reads++;
        return build_thing_const((Const){.kind = C_STRING, .s = b->frame->label});
    }
    return unknown_name(b, name, expr->place);
}

/* Operators */

static Thing eval_unary(Builder *b, const AstExpr *expr)
{
    Thing x = build_single(b, build_eval(b, expr->left), expr->left->place);
    Const c;
    if (x.kind == THING_CONST)
        return const_unary(b, expr->op, &x.c, expr->place, &c) ? build_thing_const(c) : build_thing_bad();
    return build_operator(b, expr->op == T_NOT ? OP_NOT : OP_NEG, &x, &expr->left->place, 1, expr->place);
}

static OpCode operator_op(TokenKind kind)
{
    switch (kind) {
    case T_PLUS:
        return OP_ADD;
    case T_MINUS:
        return OP_SUB;
    case T_STAR:
        return OP_MUL;
    case T_SLASH:
    case T_SLASH2:
        return OP_DIV;
    case T_PERCENT:
        return OP_MOD;
    case T_POWER:
        return OP_POW;
    case T_AT:
        return OP_MATMUL;
    case T_EQ:
        return OP_EQ;
    case T_NE:
        return OP_NE;
    case T_LT:
        return OP_LT;
    case T_LE:
        return OP_LE;
    case T_GT:
        return OP_GT;
    case T_GE:
        return OP_GE;
    case T_AND:
        return OP_AND;
    default:
        return OP_OR;
    }
}

/* `mask == none` asks whether an optional operand was given. */
static bool is_none_test(TokenKind op, const Thing *x, const Thing *y)
{
    bool none = (x->kind == THING_CONST && x->c.kind == C_NONE) || (y->kind == THING_CONST && y->c.kind == C_NONE);
    bool given = x->kind == THING_VALUE || y->kind == THING_VALUE || x->kind == THING_LIST || y->kind == THING_LIST;
    return (op == T_EQ || op == T_NE) && none && given;
}

static bool is_decided(TokenKind op, const Thing *x) /* `false and ...` */
{
    return x->kind == THING_CONST && x->c.kind == C_BOOL && ((op == T_AND && !x->c.i) || (op == T_OR && x->c.i));
}

/* Integers to a whole power: a product of squares. */
static Thing integer_power(Builder *b, ValueId x, int64_t n, Place place)
{
    ValueId product = NONE;
    for (ValueId square = x; n > 0; n /= 2) {
        if (n % 2)
            product = product == NONE ? square : build_value(b, OP_MUL, (ValueId[]){product, square}, 2, NULL, place);
        if (n > 1)
            square = build_value(b, OP_MUL, (ValueId[]){square, square}, 2, NULL, place);
    }
    return build_thing_value(b, product);
}

static bool is_whole_power(const Builder *b, TokenKind op, const Thing *x, const Thing *n)
{
    return op == T_POWER && x->kind == THING_VALUE && dtype_is_int(value_type(b->frame->graph, x->value)->dtype) &&
           n->kind == THING_CONST && n->c.kind == C_INT && n->c.i > 0;
}

/* One operator of a chain, with what is left of it. */
static Thing eval_link(Builder *b, const AstExpr *expr, Thing left)
{
    Place at[2] = {expr->left->place, expr->right->place};
    Thing x[2] = {build_single(b, left, at[0])};
    Const c;

    if (is_decided(expr->op, &x[0]))
        return x[0];
    x[1] = build_single(b, build_eval(b, expr->right), at[1]);
    if (x[0].kind == THING_BAD || x[1].kind == THING_BAD)
        return build_thing_bad();
    if (is_none_test(expr->op, &x[0], &x[1]))
        return build_thing_const(const_bool(expr->op == T_NE));
    if (x[0].kind == THING_CONST && x[1].kind == THING_CONST)
        return const_binary(b, expr->op, &x[0].c, &x[1].c, expr->place, &c) ? build_thing_const(c) : build_thing_bad();
    if (x[0].kind == THING_LIST || x[1].kind == THING_LIST)
        return build_list_operator(b, expr->op, x[0], x[1], expr->place);
    if (is_whole_power(b, expr->op, &x[0], &x[1]))
        return integer_power(b, x[0].value, x[1].c.i, expr->place);
    Thing result = build_operator(b, operator_op(expr->op), x, at, 2, expr->place);
    if (expr->op == T_SLASH2 && result.kind == THING_VALUE &&
        dtype_is_float(value_type(b->frame->graph, result.value)->dtype))
        return build_thing_value(b, build_value(b, OP_FLOOR, &result.value, 1, NULL, expr->place));
    return result;
}

/* A chain such as a + b - c, however long, is no nesting: from its first operand on, operator by operator. */
static Thing eval_binary(Builder *b, const AstExpr *expr)
{
    const AstExpr *first = expr;
    uint32_t count = 0;
    for (; first->kind == AST_BINARY; first = first->left)
        count++;
    const AstExpr **link = ARENA_ARRAY(b->scratch, const AstExpr *, count);
    for (uint32_t i = count; i-- > 0; expr = expr->left)
        link[i] = expr;
    Thing result = build_eval(b, first);
    for (uint32_t i = 0; i < count && build_step(b, expr->place, 0); i++) /* lists are copied at each */
        result = eval_link(b, link[i], result);
    return b->exhausted ? build_thing_bad() : result;
}

/* Says what there is for tensors `instead`, unless NULL. */
static bool as_const(Builder *b, Thing thing, Place place, const char *instead, Const *c)
{
    if (thing.kind == THING_VALUE || thing.kind == THING_MANY || thing.kind == THING_LIST)
        return build_complain(b, place, "expected a constant, found %s%s%s",
                              thing.kind == THING_LIST ? "a list of tensors" : "a tensor", instead ? "; " : "",
                              instead ? instead : "");
    *c = thing.c;
    return thing.kind == THING_CONST;
}

/* `to = i32`, where i32 is what somebody has called a tensor */
static void note_hidden_type(Builder *b, const AstExpr *expr)
{
    DType dtype;
    if (expr->kind == AST_NAME && !expr->name->part_count && dtype_parse(expr->name->text, &dtype))
        diag_note(b->diag, expr->place, "this names a tensor here, and so not the type");
}

static bool eval_const(Builder *b, const AstExpr *expr, const char *instead, Const *c)
{
    Thing thing = build_eval(b, expr);
    bool good = as_const(b, thing, expr->place, instead, c);
    if (thing.kind == THING_VALUE)
        note_hidden_type(b, expr);
    return good;
}

static Thing eval_if(Builder *b, const AstExpr *expr)
{
    Const cond;
    if (!eval_const(b, expr->u.cond, "between tensors choose with select, or in an if statement", &cond))
        return build_thing_bad();
    if (cond.kind != C_BOOL) {
        build_complain(b, expr->u.cond->place, "'if' takes true or false, not %s; between tensors choose with select",
                       const_kind_name(cond.kind));
        return build_thing_bad();
    }
    return build_eval(b, cond.i ? expr->left : expr->right);
}

static Thing eval_any(Builder *b, const AstExpr *expr)
{
    switch (expr->kind) {
    case AST_BAD:
        return build_thing_bad();
    case AST_CONST:
        if (expr->too_large) {
            build_complain(b, expr->place, "this integer does not fit in 64 bits");
            return build_thing_bad();
        }
        return build_thing_const(*expr->u.constant);
    case AST_NAME:
        return eval_name(b, expr);
    case AST_LIST:
        return build_list(b, expr);
    case AST_UNARY:
        return eval_unary(b, expr);
    case AST_BINARY:
        return eval_binary(b, expr);
    case AST_CALL:
        return build_call(b, expr);
    case AST_INDEX:
        return build_index(b, expr);
    case AST_PROPERTY:
        return property_of(b, build_eval(b, expr->left), expr->u.property->text, expr->place);
    case AST_CONDITIONAL:
        return eval_if(b, expr);
    case AST_CONTROL:
        return build_control(b, expr);
    }
    return build_thing_bad();
}

Thing build_eval(Builder *b, const AstExpr *expr)
{
    if (b->exhausted || !build_go_deeper(b, expr->place))
        return build_thing_bad();
    Thing thing = eval_any(b, expr);
    b->depth--;
    return thing;
}

bool build_as_const(Builder *b, Thing thing, Place place, Const *c)
{
    return as_const(b, thing, place, NULL, c);
}

bool build_eval_const(Builder *b, const AstExpr *expr, Const *c)
{
    return eval_const(b, expr, NULL, c);
}

bool build_eval_int(Builder *b, const AstExpr *expr, const char *what, const char *instead, int64_t *i)
{
    Const c;
    if (!eval_const(b, expr, instead, &c))
        return false;
    if (c.kind != C_INT)
        return build_complain(b, expr->place, "%s must be an integer, not %s", what, const_kind_name(c.kind));
    *i = c.i;
    return true;
}

/* Types */

/* `?` in position i of an input: from -D name.i=N, or from the file of its elements. */
static bool open_dim(Builder *b, Str name, uint32_t i, const AstType *type, int64_t *dim)
{
    Str key = str_format(b->scratch, STR_FMT ".%u", STR_ARG(name), i);
    for (uint32_t d = 0; name.len && d < b->define_count; d++) {
        if (nnc_file_extent(&b->define[d], name, type->rank, i, dim))
            return true;
        if (b->define[d].file || !str_eq(b->define[d].name, key))
            continue;
        b->define_used[d] = true;
        const AstExpr *expr = build_defined(b, &b->define[d]);
        if (!expr || !build_eval_int(b, expr, "a dimension", NULL, dim))
            return false;
        return *dim >= 0 || build_complain(b, expr->place, "a dimension of %lld", (long long)*dim);
    }
    if (!name.len)
        return build_complain(b, type->place, "only the inputs of a graph may leave a dimension open with '?'");
    return build_complain(b, type->place, "dimension %u of " STR_FMT " is open: give it with -D " STR_FMT "=N", i,
                          STR_ARG(name), STR_ARG(key));
}

static bool unknown_dtype(Builder *b, Str name, Place place)
{
    if (build_of_four_bits(b, name, place))
        return false;
    Text known = {0};
    Nearest nearest = {.wanted = name, .best = nnc_foreign_dtype(name)};
    for (int i = 0; i < DT_COUNT; i++)
        text_printf(&known, " %s", dtype_name((DType)i));
    build_complain(b, place, "no dtype '" STR_FMT "'; there are" STR_FMT ", and of params and constants i4 u4" STR_FMT,
                   STR_ARG(name), STR_ARG(text_view(&known)), STR_ARG(build_nearest_show(b->scratch, &nearest)));
    text_free(&known);
    return false;
}

static bool eval_dtype(Builder *b, const AstName *name, DType *dtype)
{
    AstExpr expr = {.kind = AST_NAME, .depth = 1, .place = name->place, .name = name};
    Const c;
    if (!name->part_count && dtype_parse(name->text, dtype))
        return true;
    if (!build_lookup(b, name->text) && !memchr(name->text.ptr, '.', name->text.len))
        return unknown_dtype(b, name->text, name->place);
    if (!build_eval_const(b, &expr, &c))
        return false;
    if (c.kind != C_DTYPE)
        return build_complain(b, name->place, "expected a dtype, found %s", const_kind_name(c.kind));
    *dtype = (DType)c.i;
    return true;
}

static bool too_many_dims(Builder *b, const AstType *type, uint32_t count)
{
    return count > MAX_RANK &&
           !build_complain(b, type->place, "%u dimensions; at most %d are possible", count, MAX_RANK);
}

/* One dimension, or a list of them: f32[n, x.shape] */
static bool eval_dims(Builder *b, const AstType *type, const AstExpr *expr, Shape *shape)
{
    Const c;
    if (!build_eval_const(b, expr, &c))
        return false;
    const Const *item = c.kind == C_LIST ? c.item : &c;
    uint32_t count = c.kind == C_LIST ? c.count : 1;
    if (too_many_dims(b, type, shape->rank + count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (item[i].kind != C_INT)
            return build_complain(b, expr->place, "a dimension must be an integer, not %s",
                                  const_kind_name(item[i].kind));
        if (item[i].i < 0)
            return build_complain(b, expr->place, "a dimension of %lld", (long long)item[i].i);
        shape->dim[shape->rank++] = item[i].i;
    }
    return true;
}

const Type *build_eval_type(Builder *b, const AstType *type, Str open_name)
{
    Shape shape = {0};
    DType dtype;
    int64_t elements;

    if (!eval_dtype(b, type->dtype, &dtype) || too_many_dims(b, type, type->rank))
        return NULL;
    for (uint32_t i = 0; i < type->rank; i++) {
        const AstExpr *dim = type->dim[i];
        if (!dim && too_many_dims(b, type, shape.rank + 1))
            return NULL;
        bool ok = dim ? eval_dims(b, type, dim, &shape) : open_dim(b, open_name, i, type, &shape.dim[shape.rank++]);
        if (!ok) {
            build_hint_given(b, dim);
            return NULL;
        }
    }
    if (!shape_checked_elements(&shape, &elements))
        return build_complain(b, type->place, "this tensor is too large"), NULL;
    if (type->layout_rank && shape.rank != type->layout_rank)
        return build_complain(b, type->place, "the layout names %u dimensions, the type has %u", type->layout_rank,
                              shape.rank),
               NULL;
    return module_type(b->module, dtype, &shape, type->layout);
}
