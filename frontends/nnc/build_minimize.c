/* minimize(loss, with = adam(rate = 1e-3), through = clip_by_norm(1.0), average = ema(0.999)): every param that the
 * loss reaches, or each that `params` names of them, becomes what an optimiser makes of it.
 *
 * An optimiser is a function (p, g, ...) -> (next) of a param, its gradient, and settings; states in it, its moments,
 * are called after optimiser and param: adam.conv1.weight.m.  A setting that is a tensor, such as a rate from a
 * schedule, is made once; so is the default of one, when that is a call.  What all gradients go through before is a
 * function (gs, ...) -> (hs) or -> (hs, go), or a list of them; where `go` is false nothing behind it moves.  An
 * average of each param is another param, ema.conv1.weight, which a function (a, p, ...) -> (next) makes of it and the
 * param. */
#include "frontends/nnc/build_minimize.h"

#include "ops/family.h"

#define FORM "minimize(loss, with = adam(...))"

static bool read_loss(Minimize *m, const AstExpr *expr)
{
    Builder *b = m->b;
    Thing thing = build_single(b, build_eval(b, expr), expr->place);
    if (thing.kind == THING_BAD || !build_as_value(b, thing, DT_F32, expr->place, &m->loss))
        return false;
    const Type *type = value_type(b->frame->graph, m->loss);
    if (dtype_is_float(type->dtype) && shape_elements(&type->shape) == 1)
        return true;
    return build_complain(b, expr->place, "minimize takes one floating-point number; the loss is " STR_FMT,
                          STR_ARG(type_show(b->scratch, type)));
}

/* Functions */

typedef struct WantedFunction { /* what is to be a function of a certain form */
    const char *takes;          /* `with` takes an optimiser, such as ... */
    const char *is_not;         /* sgd is no optimiser, which ... */
    uint32_t own, least, most;  /* parameters that minimize gives; results */
} WantedFunction;

static const WantedFunction OPTIMISER = {"`with` takes an optimiser, such as adam(rate = 1e-3)",
                                         "is no optimiser, which takes (p, g, ...) and gives one result: the next p", 2,
                                         1, 1};
static const WantedFunction STAGE = {
    "`through` takes a function of all gradients, such as clip_by_norm(1.0), or a list of such",
    "is no function of gradients, which takes (gs, ...), a list, and gives (hs) or (hs, go)", 1, 1, 2};
static const WantedFunction AVERAGE = {"`average` takes a function of averages, such as ema(0.999)",
                                       "is no average, which takes (a, p, ...) and gives one result: the next a", 2, 1,
                                       1};

/* `sgd`, or `sgd@fast`, which reads as a product. */
static bool is_bare(const AstExpr *expr)
{
    return expr->kind == AST_NAME || (expr->kind == AST_BINARY && expr->op == T_AT && expr->left->kind == AST_NAME &&
                                      expr->right->kind == AST_NAME);
}

/* A call without what minimize gives: a bare name has no arguments. */
static bool read_function(Minimize *m, const AstExpr *expr, const WantedFunction *wanted, Binder *binder)
{
    Builder *b = m->b;
    AstExpr *call = arena_copy(b->scratch, expr, sizeof *expr);
    if (is_bare(expr)) {
        bool labelled = expr->kind == AST_BINARY;
        call->kind = AST_CALL;
        call->name = labelled ? expr->left->name : expr->name;
        call->label = labelled ? expr->right->name : NULL;
        call->checkpoint = false;
        call->count = 0;
    }
    if (call->kind != AST_CALL)
        return build_complain(b, expr->place, "%s", wanted->takes);
    Str name = build_name_text(b, call->name);
    const AstFunction *function = build_find_function(b->frame->file, name);
    if (!function && op_find(name) < OP_WRITTEN)
        return build_complain(b, call->name->place, STR_FMT " %s", STR_ARG(name), wanted->is_not);
    if (!function)
        return build_unknown_function(b, name, call->name->place), false;
    if (function->formal_count < wanted->own || function->result_count < wanted->least ||
        function->result_count > wanted->most)
        return build_complain(b, call->name->place, STR_FMT " %s", STR_ARG(name), wanted->is_not);
    *binder = (Binder){.function = function,
                       .call = call,
                       .label = str_copy(b->arena, call->label ? build_name_text(b, call->label) : name),
                       .given = ARENA_ARRAY(b->scratch, Given, function->formal_count)};
    for (uint32_t i = 0; i < wanted->own; i++)
        binder->given[i].present = true;
    return build_give_all(b, binder);
}

/* One function, or a list of them. */
static bool read_through(Minimize *m, const AstExpr *expr)
{
    bool list = expr->kind == AST_LIST, ok = true;
    m->through_count = list ? expr->count : 1;
    m->through = ARENA_ARRAY(m->b->scratch, Binder, m->through_count);
    for (uint32_t i = 0; i < m->through_count; i++)
        ok &= read_function(m, list ? expr->u.items[i] : expr, &STAGE, &m->through[i]);
    return ok;
}

static bool read_arguments(Minimize *m)
{
    Builder *b = m->b;
    const AstExpr *loss = NULL, *with = NULL, *params = NULL, *through = NULL, *average = NULL;
    for (uint32_t i = 0; i < m->call->count; i++) {
        const AstArg *arg = &m->call->u.arg[i];
        const AstExpr **to = !arg->name.len || str_is(arg->name, "loss") ? &loss
                             : str_is(arg->name, "with")                 ? &with
                             : str_is(arg->name, "params")               ? &params
                             : str_is(arg->name, "through")              ? &through
                             : str_is(arg->name, "average")              ? &average
                                                                         : NULL;
        if (!to || *to)
            return build_complain(b, arg->name.len ? arg->name_place : arg->value->place,
                                  "minimize is written " FORM
                                  ", and may have params = [\"label\"], "
                                  "through = clip_by_norm(...) and average = ema(...)");
        *to = arg->value;
    }
    if (!loss || !with)
        return build_complain(b, m->call->place, "minimize is written " FORM);
    return read_loss(m, loss) && read_function(m, with, &OPTIMISER, &m->with) &&
           (!params || build_read_params(m, params)) && (!through || read_through(m, through)) &&
           (!average || read_function(m, average, &AVERAGE, &m->average));
}

/* The text */

/* `adam@slow(rate = %5)` */
static void put_function(CallText *text, const Binder *binder)
{
    const char *separator = "";
    text_str(&text->text, binder->function->name->text);
    if (binder->call->label)
        text_printf(&text->text, "@" STR_FMT, STR_ARG(binder->label));
    text_char(&text->text, '(');
    for (uint32_t i = 0; i < binder->function->formal_count; i++) {
        const Given *given = &binder->given[i];
        if (given->thing.kind == THING_BAD)
            continue;
        text_printf(&text->text, "%s" STR_FMT " = ", separator, STR_ARG(binder->function->formal[i].name->text));
        build_put_given(text, &given->thing);
        separator = ", ";
    }
    text_char(&text->text, ')');
}

static void put_through(Minimize *m, CallText *text)
{
    text_printf(&text->text, ", through = %s", m->through_count > 1 ? "[" : "");
    for (uint32_t i = 0; i < m->through_count; i++) {
        text_printf(&text->text, "%s", i ? ", " : "");
        put_function(text, &m->through[i]);
    }
    text_printf(&text->text, "%s", m->through_count > 1 ? "]" : "");
}

static uint32_t operands_of(const Binder *binder)
{
    uint32_t count = 0;
    for (uint32_t i = 0; binder->function && i < binder->function->formal_count; i++)
        count += build_operands_in(&binder->given[i].thing);
    return count;
}

/* The call as it is printed, and in the order of the text what it reads. */
static const Call *describe(Minimize *m, CallText *text)
{
    Builder *b = m->b;
    Call *call = ARENA_NEW(b->arena, Call);
    uint32_t count = 1 + operands_of(&m->with) + operands_of(&m->average);
    for (uint32_t i = 0; i < m->through_count; i++)
        count += operands_of(&m->through[i]);
    *text =
        (CallText){.b = b, .in = ARENA_ARRAY(b->scratch, ValueId, count), .before = ARENA_ARRAY(b->arena, Str, count)};

    build_put_given(text, &(Thing){.kind = THING_VALUE, .value = m->loss});
    text_printf(&text->text, ", with = ");
    put_function(text, &m->with);
    if (m->params.kind == C_LIST) {
        text_printf(&text->text, ", params = ");
        const_print(&text->text, &m->params);
    }
    if (m->through_count)
        put_through(m, text);
    if (m->average.function) {
        text_printf(&text->text, ", average = ");
        put_function(text, &m->average);
    }
    *call = (Call){.name = STR("minimize"), .before = text->before, .rest = build_take_text(text)};
    return call;
}

void build_minimize(Builder *b, const AstStmt *stmt)
{
    Minimize m = {.b = b, .call = stmt->value};
    CallText text;
    for (Frame *frame = b->frame; frame; frame = frame->caller)
        frame->minimizes = true;
    if (!b->frame->graph || build_in_body(b->frame)) {
        build_complain(b, stmt->place,
                       "minimize cannot stand in a loop or a branch: updates are made at the end of a run");
        return;
    }
    if (b->frame->guarded) {
        build_complain(b, stmt->place, "minimize cannot stand in a function that another one calls");
        return;
    }
    if (m.call->label) {
        build_complain(b, m.call->label->place, "a label goes to the optimiser: with = adam@name(...)");
        return;
    }
    if (!read_arguments(&m))
        return;
    m.trained = build_reach(b, m.loss);
    if (!m.trained.count) {
        build_complain(b, m.call->place, "the loss reaches no param");
        return;
    }
    if (!build_choose_params(&m))
        return;
    if (m.average.function)
        m.others = build_reach_others(b, m.loss, &m.trained);
    const Call *call = describe(&m, &text);
    Graph *body = build_minimize_body(&m, text.in);
    if (body) {
        NodeId id = graph_add_node(b->frame->graph, OP_MINIMIZE, text.in, text.count, NULL, 0, m.call->place);
        Node *node = graph_node(b->frame->graph, id);
        node->sub = arena_copy(b->arena, &body, sizeof(Graph *));
        node->sub_count = 1;
        node->call = call;
    }
    text_free(&text.text);
}
