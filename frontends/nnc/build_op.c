/* Calls of primitives: operands, where literals take the dtype of their neighbours, and attributes by the op table. */
#include "frontends/nnc/build.h"

#include <string.h>

/* Attributes */

static void report_attr_kind(Builder *b, OpCode op, const AttrSpec *spec, const Const *c, Place place)
{
    static const char *const wanted[] = {
        [ATTR_INT] = "an integer",
        [ATTR_FLOAT] = "a number",
        [ATTR_BOOL] = "true or false",
        [ATTR_INTS] = "an integer or a list of integers",
        [ATTR_PAD] = "an integer, a list of integers, \"same\" or \"valid\"",
        [ATTR_DTYPE] = "a dtype such as f32",
        [ATTR_STRING] = "a string",
    };
    build_complain(b, place, "%s of %s takes %s, not " STR_FMT, spec->name, op_info(op)->name, wanted[spec->kind],
                   STR_ARG(const_show(b->scratch, c)));
}

/* What an attribute has of 64 bits would be another number; an array has it as it is. */
static bool loses_bits(Builder *b, OpCode op, const AttrSpec *spec, const Const *c, Place place)
{
    if (spec->kind != ATTR_FLOAT || !const_is_number(c) || const_is_double(c))
        return false;
    build_complain(b, place,
                   "%s of %s holds integers of 53 bits, and " STR_FMT
                   " takes more: write an array, const c: i64[...] = ...",
                   spec->name, op_info(op)->name, STR_ARG(const_show(b->scratch, c)));
    return true;
}

static bool ints_from(Builder *b, const Const *c, Attr *attr)
{
    uint32_t count = c->kind == C_LIST ? c->count : 1;
    const Const *item = c->kind == C_LIST ? c->item : c;
    int64_t *ints = ARENA_ARRAY(b->scratch, int64_t, count);
    for (uint32_t i = 0; i < count; i++) {
        if (item[i].kind != C_INT)
            return false;
        ints[i] = item[i].i;
    }
    attr->i = count;
    attr->ints = ints;
    return true;
}

static bool pad_from(Builder *b, const Const *c, Attr *attr)
{
    if (c->kind != C_STRING)
        return ints_from(b, c, attr);
    attr->s = str_copy(b->arena, c->s);
    return str_is(c->s, "same") || str_is(c->s, "valid");
}

static bool attr_from(Builder *b, AttrKind kind, const Const *c, Attr *attr)
{
    *attr = (Attr){0};
    switch (kind) {
    case ATTR_INT:
        attr->i = c->i;
        return c->kind == C_INT;
    case ATTR_BOOL:
        attr->i = c->i;
        return c->kind == C_BOOL;
    case ATTR_DTYPE:
        attr->i = c->i;
        return c->kind == C_DTYPE;
    case ATTR_STRING:
        if (c->kind == C_STRING)
            attr->s = str_copy(b->arena, c->s);
        return c->kind == C_STRING;
    case ATTR_FLOAT:
        attr->f = const_number(c);
        return const_is_number(c);
    case ATTR_INTS:
        return ints_from(b, c, attr);
    case ATTR_PAD:
        return pad_from(b, c, attr);
    }
    return false;
}

/* `; attributes: stride, pad`, or that it has none */
static void put_attr_names(Text *text, OpCode op)
{
    const AttrSpec *spec = op_info(op)->attr;
    if (!spec[0].name)
        text_printf(text, "; it has none");
    for (uint32_t i = 0; spec[i].name; i++)
        text_printf(text, "%s%s", i ? ", " : "; attributes: ", spec[i].name);
}

static void report_unknown_attr(Builder *b, OpCode op, const AstArg *arg)
{
    const AttrSpec *spec = op_info(op)->attr;
    Nearest nearest = {.wanted = arg->name};
    Text text = {0};
    put_attr_names(&text, op);
    for (uint32_t i = 0; spec[i].name; i++)
        build_nearest_parameter(&nearest, str_from(spec[i].name));
    text_str(&text, build_nearest_show(b->scratch, &nearest));
    build_complain(b, arg->name_place, "%s has no attribute '" STR_FMT "'" STR_FMT, op_info(op)->name,
                   STR_ARG(arg->name), STR_ARG(text_view(&text)));
    text_free(&text);
}

/* The attribute of an argument: the one named, or of an op without operands the next by position. */
static uint32_t attr_of_argument(Builder *b, OpCode op, const AstExpr *call, const AstArg *arg, uint32_t *next)
{
    if (!arg->name.len && *next < op_attr_count(op))
        return (*next)++;
    uint32_t index = arg->name.len ? attr_index(op, arg->name) : NONE;
    if (!arg->name.len)
        build_complain(b, arg->value->place, "too many arguments for " STR_FMT, STR_ARG(call->name->text));
    else if (index == NONE)
        report_unknown_attr(b, op, arg);
    return index;
}

/* Of an op with operands: what stands by position, and a list of operands by its name. */
static bool is_operand(OpCode op, const AstArg *arg)
{
    Str list = op_list(op);
    return op_most(op) && (!arg->name.len || (list.len && str_eq(arg->name, list)));
}

bool build_attrs(Builder *b, OpCode op, const AstExpr *call, Attr *attr)
{
    const AttrSpec *spec = op_info(op)->attr;
    uint32_t given = 0, next = 0; /* bits: no op has 32 attributes */
    bool ok = true;

    attr_defaults(op, attr);
    for (uint32_t i = 0; i < call->count; i++) {
        const AstArg *arg = &call->u.arg[i];
        Const c;
        if (is_operand(op, arg))
            continue;
        uint32_t index = attr_of_argument(b, op, call, arg, &next);
        if (index == NONE) {
            ok = false;
        } else if (given >> index & 1) {
            ok = build_complain(b, arg->name.len ? arg->name_place : arg->value->place, "'%s' is given twice",
                                spec[index].name);
        } else if (!build_eval_const(b, arg->value, &c)) {
            ok = false;
        } else if (loses_bits(b, op, &spec[index], &c, arg->value->place)) {
            ok = false;
        } else if (!attr_from(b, spec[index].kind, &c, &attr[index])) {
            report_attr_kind(b, op, &spec[index], &c, arg->value->place);
            ok = false;
        }
        given |= index == NONE ? 0 : 1u << index;
    }
    for (uint32_t i = 0; ok && spec[i].name; i++)
        if (!spec[i].fallback && !(given >> i & 1))
            ok = build_complain(b, call->place, "%s needs the attribute %s", op_info(op)->name, spec[i].name);
    return ok;
}

/* Operands */

/* The dtype that a literal at `index` takes: that of the first operand which is a tensor and has a say. */
static DType literal_dtype(const Builder *b, OpCode op, const Thing *operand, uint32_t count, uint32_t index)
{
    const OpInfo *info = op_info(op);
    bool chooses = info->family == FAMILY_ELEMENTWISE && info->result == RESULT_SELECT;
    if (chooses && index == 0)
        return DT_BOOL;
    if ((info->family == FAMILY_GATHER && index == 1) || info->family == FAMILY_DRAW)
        return DT_I64;
    for (uint32_t i = chooses ? 1 : 0; i < count; i++)
        if (operand[i].kind == THING_VALUE)
            return value_type(b->frame->graph, operand[i].value)->dtype;
    for (uint32_t i = chooses ? 1 : 0; i < count; i++) /* all literals: one float makes all of them floats */
        if (operand[i].kind == THING_CONST && const_default_dtype(&operand[i].c) == DT_F32)
            return DT_F32;
    return const_default_dtype(&operand[index].c);
}

static bool check_graph(Builder *b, OpCode op, Place place)
{
    return b->frame->graph ||
           build_complain(b, place, "%s makes a tensor: a constant expression cannot use it", op_info(op)->name);
}

static Thing many(Builder *b, NodeId node)
{
    const Node *n = graph_node(b->frame->graph, node);
    Thing *list = ARENA_ARRAY(b->scratch, Thing, n->out_count);
    for (uint32_t i = 0; i < n->out_count; i++)
        list[i] = build_thing_value(b, n->out[i]);
    return (Thing){.kind = THING_MANY, .many = list, .count = n->out_count};
}

ValueId build_value(Builder *b, OpCode op, const ValueId *in, uint32_t count, const Attr *attr, Place place)
{
    Diag apart = {.arena = b->arena}, *outer = b->module->diag;
    b->module->diag = &apart;
    b->steps += op_info(op)->family == FAMILY_CONTRACT ? COST_OF_TILES : COST_OF_OP;
    ValueId first = op_build(b->frame->graph, op, in, count, attr, place);
    b->module->diag = outer;
    for (uint32_t i = 0; i < apart.entry_count; i++)
        build_complain(b, place, STR_FMT, STR_ARG(apart.entry[i].message));
    diag_free(&apart);
    return first;
}

Thing build_node(Builder *b, OpCode op, const ValueId *in, uint32_t count, const Attr *attr, Place place)
{
    Graph *graph = b->frame->graph;
    if (build_has_failed(b, place))
        return build_thing_bad();
    ValueId first = build_value(b, op, in, count, attr, place);
    if (build_has_failed(b, place))
        return build_thing_bad();
    NodeId node = graph->value[first].node;
    return op_result_count(op, count, attr) == 1 ? build_thing_value(b, first) : many(b, node);
}

static bool operand_values(Builder *b, OpCode op, const Thing *operand, const Place *at, uint32_t count, ValueId *in)
{
    bool ok = true;
    for (uint32_t i = 0; i < count; i++) {
        if (operand[i].kind == THING_BAD)
            ok = false;
        else if (ok &&
                 !build_as_value(b, operand[i],
                                 operand[i].kind == THING_CONST ? literal_dtype(b, op, operand, count, i) : DT_F32,
                                 at[i], &in[i]))
            ok = false;
    }
    return ok;
}

Thing build_operator(Builder *b, OpCode op, Thing *operand, const Place *at, uint32_t count, Place place)
{
    ValueId in[2];
    Attr attr[8];
    if (!check_graph(b, op, place) || !operand_values(b, op, operand, at, count, in))
        return build_thing_bad();
    attr_defaults(op, attr);
    return build_node(b, op, in, count, attr, place);
}

/* An elementwise op on plain numbers is a number: sqrt(64.0) may stand in an attribute.  A typed number, f32(64.0), is
 * a tensor, so what a pass has printed keeps its nodes. */
static bool is_numeric(OpCode op, const Thing *operand, uint32_t count)
{
    if (op_info(op)->family != FAMILY_ELEMENTWISE)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (operand[i].kind != THING_CONST || (!const_is_number(&operand[i].c) && operand[i].c.kind != C_BOOL))
            return false;
    return true;
}

static Thing compute(Builder *b, OpCode op, const Thing *operand, uint32_t count, Place place)
{
    Frame frame = *b->frame, *outer = b->frame; /* a graph to the side, in f64 or i64 */
    ValueId in[3];
    bool floats = op_info(op)->operand_class == CLASS_FLOAT;
    Tensor *out;

    b->steps += COST_OF_CALL;
    frame.graph = graph_new(b->module, STR("constant"));
    frame.scalars = (Map){.arena = b->scratch};
    for (uint32_t i = 0; i < count; i++)
        floats |= operand[i].c.kind == C_FLOAT;
    b->frame = &frame;
    const Tensor *x[3];
    for (uint32_t i = 0; i < count; i++) {
        DType dtype = operand[i].c.kind == C_BOOL ? DT_BOOL : floats ? DT_F64 : DT_I64;
        in[i] = build_scalar_value(b, dtype, &operand[i].c);
        x[i] = frame.graph->value[in[i]].data;
    }
    Thing result = build_node(b, op, in, count, NULL, place);
    b->frame = outer;
    if (result.kind != THING_VALUE)
        return build_thing_bad();
    eval_node(frame.graph, frame.graph->value[result.value].node, b->scratch, x, &out);
    if (out->type->dtype == DT_BOOL)
        return build_thing_const(const_bool(tensor_number(out, 0) != 0));
    return build_thing_const(out->type->dtype == DT_I64 ? const_int(*(const int64_t *)out->data)
                                                        : const_float(tensor_number(out, 0)));
}

/* `y, wrt = [...]` */
static void put_operands(Text *text, OpCode op)
{
    Str list = op_list(op);
    if (!list.len && op_most(op) == UINT32_MAX) {
        text_printf(text, "tensors");
        return;
    }
    text_printf(text, list.len ? "(" : "the operands (");
    for (const char *s = op_info(op)->operands; *s && s != list.ptr; s++)
        text_printf(text, "%s%c", *s == ' ' ? "," : "", *s);
    if (list.len)
        text_printf(text, STR_FMT " = [...]", STR_ARG(list));
    text_char(text, ')');
}

static bool report_operands(Builder *b, OpCode op, const AstExpr *call, uint32_t count)
{
    Text text = {0};
    const OpInfo *info = op_info(op);
    text_printf(&text, "%s takes ", info->name);
    if (!info->operands[0])
        text_printf(&text, "no operands");
    else
        put_operands(&text, op);
    text_printf(&text, "; %u %s given", count, count == 1 ? "is" : "are");
    if (count > op_most(op) && count - op_most(op) == 1 && info->attr[0].name && !info->attr[1].name)
        text_printf(&text, "; write %s = ...", info->attr[0].name);
    else if (count > op_most(op) && info->attr[0].name) {
        put_attr_names(&text, op);
        text_printf(&text, ", each as name = value");
    }
    build_complain(b, call->place, STR_FMT, STR_ARG(text_view(&text)));
    text_free(&text);
    return false;
}

/* An optional operand that is `none` is left out, as a bias that a function was not given. */
static uint32_t given_operands(OpCode op, const Thing *operand, uint32_t count)
{
    bool optional = op_most(op) != UINT32_MAX;
    while (optional && count > op_least(op) && operand[count - 1].kind == THING_CONST &&
           operand[count - 1].c.kind == C_NONE)
        count--;
    return count;
}

/* Of tensors; an empty one may be of anything. */
static bool is_operands(const Thing *thing)
{
    return thing->kind == THING_LIST || (thing->kind == THING_CONST && thing->c.kind == C_LIST && thing->c.count == 0);
}

/* What stands before the list of an op's operands is one tensor each: grad takes one y, and any number of wrt. */
static bool check_single(Builder *b, OpCode op, const Thing *operand, const Place *at, uint32_t count)
{
    const char *name = op_info(op)->name;
    uint32_t singles = op_list(op).len ? op_least(op) - 1 : 0;
    bool derives = op_info(op)->family == FAMILY_DERIVATIVE;
    for (uint32_t i = 0; i < singles && i < count; i++)
        if (is_operands(&operand[i]) && operand[i].count != 1)
            return build_complain(b, at[i], "%s takes one tensor here, not a list of %u%s%s%s", name,
                                  operand[i].kind == THING_LIST ? operand[i].count : 0,
                                  derives ? ": of their sum it is " : "", derives ? name : "",
                                  derives ? "(a + b, ...), and of each one of its own" : "");
    return true;
}

/* Where an op takes any number of tensors, a list of them is as many operands. */
static void spread_lists(Builder *b, OpCode op, Thing **operand, Place **at, uint32_t *count)
{
    uint32_t total = 0, next = 0;
    bool lists = false;
    for (uint32_t i = 0; i < *count; i++) {
        bool list = is_operands(&(*operand)[i]);
        lists |= list;
        total += list ? (*operand)[i].count : 1;
    }
    if (!lists || op_most(op) != UINT32_MAX)
        return;
    Thing *all = ARENA_ARRAY(b->scratch, Thing, total);
    Place *places = ARENA_ARRAY(b->scratch, Place, total);
    for (uint32_t i = 0; i < *count; i++) {
        const Thing *from = &(*operand)[i];
        bool list = is_operands(from);
        for (uint32_t k = 0; k < (list ? from->count : 1); k++) {
            places[next] = (*at)[i];
            all[next++] = list ? from->many[k] : *from;
        }
    }
    *operand = all;
    *at = places;
    *count = total;
}

/* zeros(shape) and ones(shape) are full(0, shape) and full(1, shape). */
static const AstExpr *full_of(Builder *b, const AstExpr *call, double number)
{
    AstExpr *full = arena_copy(b->scratch, call, sizeof *call), *value = ARENA_NEW(b->scratch, AstExpr);
    AstArg *arg = ARENA_ARRAY(b->scratch, AstArg, call->count + 1);
    Const c = const_float(number);
    *value = (AstExpr){.kind = AST_CONST, .depth = 1, .place = call->name->place};
    value->u.constant = arena_copy(b->scratch, &c, sizeof c);
    arg[0] = (AstArg){.value = value};
    if (call->count)
        memcpy(arg + 1, call->u.arg, call->count * sizeof *arg);
    full->u.arg = arg;
    full->count = call->count + 1;
    return full;
}

const AstExpr *build_generator(Builder *b, Str name, const AstExpr *call, OpCode *op)
{
    bool zeros = str_is(name, "zeros");
    uint32_t found = map_get(&b->ops, name);
    *op = found == MAP_NONE ? OP_FULL : (OpCode)found;
    if (found == MAP_NONE)
        return zeros || str_is(name, "ones") ? full_of(b, call, zeros ? 0 : 1) : NULL;
    return op_info(*op)->family == FAMILY_GENERATE ? call : NULL;
}

/* A number to be a float: it is rounded once, as in f32(0.1). */
static bool becomes_float(OpCode op, const Thing *operand, const Attr *attr)
{
    return op_info(op)->family == FAMILY_CAST && !op_keeps_bits(op) && operand->kind == THING_CONST &&
           const_is_number(&operand->c) && dtype_is_float((DType)attr[0].i);
}

static Thing convert_number(Builder *b, const Thing *number, DType to, Place place)
{
    ValueId value;
    return build_as_value(b, *number, to, place, &value) ? build_thing_value(b, value) : build_thing_bad();
}

#define FEW 4 /* operands and attributes of a common call: on the stack, not in the arena */

static Thing build_plain(Builder *b, OpCode op, const AstExpr *call)
{
    Attr attr[32];
    uint32_t count = 0, positional = 0;
    Thing few_operands[FEW], *operand = few_operands;
    Place few_places[FEW], *at = few_places;
    ValueId few_values[FEW], *in = few_values;
    bool ok = true;

    if (call->count > FEW) {
        operand = ARENA_ARRAY(b->scratch, Thing, call->count);
        at = ARENA_ARRAY(b->scratch, Place, call->count);
    }
    if (call->label)
        ok = build_complain(b, call->label->place, "%s is a primitive without params: it takes no label",
                            op_info(op)->name);
    for (uint32_t i = 0; i < call->count; i++)
        positional += is_operand(op, &call->u.arg[i]);
    if (positional < op_least(op) || positional > op_most(op))
        return report_operands(b, op, call, positional), build_thing_bad();
    for (int list = 0; list < 2; list++) /* which comes last, wherever it is written */
        for (uint32_t i = 0; i < call->count; i++) {
            const AstArg *arg = &call->u.arg[i];
            if (!is_operand(op, arg) || (arg->name.len > 0) != list)
                continue;
            at[count] = arg->value->place;
            operand[count] = build_single(b, build_eval(b, arg->value), arg->value->place);
            ok &= operand[count++].kind != THING_BAD;
        }
    count = given_operands(op, operand, count);
    ok &= build_attrs(b, op, call, attr) && check_single(b, op, operand, at, count);
    if (!ok)
        return build_thing_bad();
    spread_lists(b, op, &operand, &at, &count);
    if (count < op_least(op)) /* an empty list */
        return report_operands(b, op, call, count), build_thing_bad();
    if (count > FEW)
        in = ARENA_ARRAY(b->scratch, ValueId, count);
    if (count && is_numeric(op, operand, count))
        return compute(b, op, operand, count, call->place);
    if (becomes_float(op, operand, attr))
        return convert_number(b, &operand[0], (DType)attr[0].i, at[0]);
    if (!check_graph(b, op, call->place) || !operand_values(b, op, operand, at, count, in))
        return build_thing_bad();
    return build_node(b, op, in, count, attr, call->place);
}

Thing build_op(Builder *b, OpCode op, const AstExpr *call)
{
    if (op_info(op)->family == FAMILY_DYNAMIC)
        return build_dynamic(b, op, call);
    return build_plain(b, op, call);
}
