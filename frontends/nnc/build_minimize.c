/* minimize(loss, with = adam(rate = 1e-3)): every param that the loss reaches becomes what an optimiser makes of it.
 *
 * An optimiser is a function (p, g, ...) -> (next) of a param, its gradient, and settings; states in it, its moments,
 * are called after optimiser and param: adam.conv1.weight.m.  A setting that is a tensor, such as a rate from a
 * schedule, is made once; so is the default of one, when that is a call. */
#include "frontends/nnc/build_call.h"

#include "ops/family.h"

typedef struct Minimized { /* a param */
    const Graph *graph;    /* that it is a value of: the frame's, or that of a call inside */
    ValueId value;
} Minimized;

typedef struct Minimize {
    Builder *b;
    const AstExpr *call, *with; /* all of it; that of the optimiser */
    Binder binder;              /* of the optimiser */
    ValueId loss;
    Minimized *param;
    uint32_t count, capacity;
    Map reached, listed; /* by name: those that the loss reaches, and those that are in `param` */
} Minimize;

/* Which params there are: found from the loss back, listed in the order of the text. */

static void note_params(Minimize *m, const Graph *graph, const bool *needed)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        if (value->role == ROLE_PARAM && needed[v] && dtype_is_float(value->type->dtype))
            map_add(&m->reached, value->name, v);
    }
}

/* Those of a graph, then those of calls in it.  Recurses over the nesting. */
static void list_params(Minimize *m, const Graph *graph)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        if (value->role == ROLE_PARAM && map_get(&m->reached, value->name) != MAP_NONE &&
            map_add(&m->listed, value->name, m->count))
            ARENA_PUSH(m->b->scratch, m->param, m->count, m->capacity, ((Minimized){graph, v}));
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; !node_is_minimize(&graph->node[n]) && s < graph->node[n].sub_count; s++)
            list_params(m, graph->node[n].sub[s]);
}

/* From what is needed of a graph back, also into calls.  Recurses over their nesting. */
static void reach(Minimize *m, const Graph *graph, bool *needed);

/* What a call needs for those of its results that are needed. */
static void reach_into(Minimize *m, const Node *node, bool *needed)
{
    const Graph *body = node->sub[0];
    bool *inside = ARENA_ARRAY(m->b->scratch, bool, body->value_count);
    for (uint32_t i = 0; i < node->out_count; i++)
        inside[body->output[i].value] |= needed[node->out[i]];
    reach(m, body, inside);
    for (uint32_t i = 0; i < node->in_count; i++)
        needed[node->in[i]] |= inside[body->input[i]];
}

/* All that stands in the bodies of loops and branches is taken to be needed. */
static void reach_bodies(Minimize *m, const Node *node)
{
    for (uint32_t s = 0; s < node->sub_count; s++) {
        const Graph *body = node->sub[s];
        bool *inside = ARENA_ARRAY(m->b->scratch, bool, body->value_count);
        for (ValueId v = 0; v < body->value_count; v++)
            inside[v] = true;
        reach(m, body, inside);
    }
}

static void reach(Minimize *m, const Graph *graph, bool *needed)
{
    for (NodeId n = graph->node_count; n-- > 0;) {
        const Node *node = &graph->node[n];
        bool used = false;
        for (uint32_t i = 0; i < node->out_count; i++)
            used |= needed[node->out[i]];
        if (!used)
            continue;
        if (node_is_call(node)) {
            reach_into(m, node, needed);
            continue;
        }
        if (node_has_bodies(node))
            reach_bodies(m, node);
        for (uint32_t i = 0; i < node->in_count; i++)
            needed[node->in[i]] |= op_passes_gradient(graph, node, i);
    }
    note_params(m, graph, needed);
}

/* The statement */

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

/* The optimiser as a call: a bare name has no arguments. */
static bool read_with(Minimize *m, const AstExpr *expr)
{
    Builder *b = m->b;
    AstExpr *call = arena_copy(b->scratch, expr, sizeof *expr);
    if (expr->kind == AST_NAME) {
        call->kind = AST_CALL;
        call->label = NULL;
        call->count = 0;
    }
    if (call->kind != AST_CALL)
        return build_complain(b, expr->place, "`with` takes an optimiser, such as adam(rate = 1e-3)");
    Str name = build_name_text(b, call->name);
    const AstFunction *function = build_find_function(b->frame->file, name);
    m->with = call;
    if (!function)
        return build_complain(b, call->name->place, "no function '" STR_FMT "'%s", STR_ARG(name),
                              nnc_library_find(name, &(LibraryFunction){0}) ? "; the library has one: use \"nn\"" : "");
    if (function->formal_count < 2 || function->result_count != 1)
        return build_complain(b, call->name->place,
                              STR_FMT " is no optimiser, which takes (p, g, ...) and gives one result: the next p",
                              STR_ARG(name));
    m->binder = (Binder){function, call, ARENA_ARRAY(b->scratch, Given, function->formal_count)};
    m->binder.given[0].present = m->binder.given[1].present = true; /* param and gradient */
    return build_give_all(b, &m->binder);
}

static bool read_arguments(Minimize *m)
{
    Builder *b = m->b;
    const AstExpr *loss = NULL, *with = NULL;
    for (uint32_t i = 0; i < m->call->count; i++) {
        const AstArg *arg = &m->call->u.arg[i];
        const AstExpr **to = !arg->name.len || str_is(arg->name, "loss") ? &loss
                             : str_is(arg->name, "with")                 ? &with
                                                                         : NULL;
        if (!to || *to)
            return build_complain(b, arg->name.len ? arg->name_place : arg->value->place,
                                  "minimize is written minimize(loss, with = adam(...))");
        *to = arg->value;
    }
    if (!loss || !with)
        return build_complain(b, m->call->place, "minimize is written minimize(loss, with = adam(...))");
    return read_loss(m, loss) && read_with(m, with);
}

/* A default that is a call is made here, once: with the label of the optimiser, for the names of its states. */
static bool make_default(Minimize *m, const AstFormal *formal, Given *given)
{
    Builder *b = m->b;
    const File *file = b->frame->file;
    AstExpr *call = arena_copy(b->scratch, formal->fallback, sizeof *call);
    AstName *label = ARENA_NEW(b->scratch, AstName);
    Str name = m->with->label ? build_name_text(b, m->with->label) : m->binder.function->name->text;
    *label = (AstName){.text = str_format(b->arena, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(formal->name->text)),
                       .place = formal->name->place};
    call->label = call->label ? call->label : label;
    b->frame->file = m->binder.function->file;
    *given = (Given){.thing = build_single(b, build_eval(b, call), call->place),
                     .present = true,
                     .by_name = true,
                     .place = call->place};
    b->frame->file = (File *)file;
    return given->thing.kind != THING_BAD;
}

static bool make_defaults(Minimize *m)
{
    for (uint32_t i = 2; i < m->binder.function->formal_count; i++) {
        const AstFormal *formal = &m->binder.function->formal[i];
        Given *given = &m->binder.given[i];
        if (!given->present && formal->fallback->kind == AST_CALL && !make_default(m, formal, given))
            return false;
    }
    return true;
}

/* What the optimiser makes of one param. */
static Graph *build_step_of(Minimize *m, const Minimized *param)
{
    Builder *b = m->b;
    const Value *value = graph_value(param->graph, param->value);
    Binder binder = m->binder;
    Str name = m->with->label ? build_name_text(b, m->with->label) : binder.function->name->text;
    Thing thing = {.kind = THING_VALUE, .value = param->value}, constants;
    Graph *body = NULL;

    for (uint32_t i = 0; i < 2; i++)
        binder.given[i] = (Given){.thing = thing, .graph = param->graph, .present = true, .place = m->call->place};
    Str label = str_format(b->arena, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(value->name));
    if (!build_callee(b, &binder, label, &body, &constants))
        return NULL;
    if (!body || value_type(body, body->output[0].value) != value->type) {
        build_complain(b, m->with->place, STR_FMT " does not give a value of the param's type for " STR_FMT,
                       STR_ARG(binder.function->name->text), STR_ARG(value->name));
        return NULL;
    }
    body->name = label;
    body->value[body->input[0]].name = value->name;
    return body;
}

/* `minimize(loss, with = adam(rate = %5))` */
static const Call *describe(Minimize *m, CallText *text)
{
    Builder *b = m->b;
    Call *call = ARENA_NEW(b->arena, Call);
    const AstFunction *optimiser = m->binder.function;
    const char *separator = "";

    build_put_given(text, &(Thing){.kind = THING_VALUE, .value = m->loss});
    text_printf(&text->text, ", with = " STR_FMT, STR_ARG(optimiser->name->text));
    if (m->with->label)
        text_printf(&text->text, "@" STR_FMT, STR_ARG(build_name_text(b, m->with->label)));
    text_char(&text->text, '(');
    for (uint32_t i = 2; i < optimiser->formal_count; i++) {
        const Given *given = &m->binder.given[i];
        if (!given->present)
            continue;
        text_printf(&text->text, "%s" STR_FMT " = ", separator, STR_ARG(optimiser->formal[i].name->text));
        build_put_given(text, &given->thing);
        separator = ", ";
    }
    text_char(&text->text, ')');
    *call = (Call){.name = STR("minimize"), .before = text->before, .rest = build_take_text(text)};
    return call;
}

static void add_node(Minimize *m, Graph **step)
{
    Builder *b = m->b;
    Graph *graph = b->frame->graph;
    CallText text = {.b = b};
    uint32_t count = 1;
    for (uint32_t i = 2; i < m->binder.function->formal_count; i++)
        count += m->binder.given[i].present ? build_operands_in(&m->binder.given[i].thing) : 0;
    text.in = ARENA_ARRAY(b->scratch, ValueId, count);
    text.before = ARENA_ARRAY(b->arena, Str, count);
    const Call *call = describe(m, &text);
    NodeId id = graph_add_node(graph, OP_MINIMIZE, text.in, count, NULL, 0, m->call->place);
    Node *node = graph_node(graph, id);
    node->sub = step;
    node->sub_count = m->count;
    node->call = call;
    text_free(&text.text);
}

void build_minimize(Builder *b, const AstStmt *stmt)
{
    Minimize m = {.b = b, .call = stmt->value, .reached = {.arena = b->scratch}, .listed = {.arena = b->scratch}};
    if (!b->frame->graph || build_in_body(b->frame)) {
        build_complain(b, stmt->place,
                       "minimize cannot stand in a loop or a branch: updates are made at the end of a run");
        return;
    }
    if (m.call->label) {
        build_complain(b, m.call->label->place, "a label goes to the optimiser: with = adam@name(...)");
        return;
    }
    if (!read_arguments(&m) || !make_defaults(&m))
        return;
    bool *needed = ARENA_ARRAY(b->scratch, bool, b->frame->graph->value_count);
    needed[m.loss] = true;
    reach(&m, b->frame->graph, needed);
    list_params(&m, b->frame->graph);
    if (!m.count) {
        build_complain(b, m.call->place, "the loss reaches no param");
        return;
    }
    Graph **step = ARENA_ARRAY(b->arena, Graph *, m.count);
    for (uint32_t i = 0; i < m.count; i++)
        if (!(step[i] = build_step_of(&m, &m.param[i])))
            return;
    add_node(&m, step);
}
