/* The sub-graph of minimize.  Its inputs are the params, under their names, the gradients, and what the settings read;
 * its outputs are the next params.  In it stand calls, and updates of what these keep.
 *
 * Where a function that the gradients go through says that no step is made, the frame is guarded from there on: an
 * update in it, also in calls, keeps what was, and so do the params. */
#include "frontends/nnc/build_minimize.h"

#include "ops/family.h"

typedef struct Body {
    Minimize *m;
    Builder *b;
    const Graph *outer;
    Frame frame;
    Thing *param, *gradient; /* of each reached param */
} Body;

static const Value *value_of(const ReachedParam *param)
{
    return graph_value(param->graph, param->value);
}

static const Value *reached(const Body *body, uint32_t i)
{
    return value_of(&body->m->trained.at[i]);
}

/* A frame beside that of the statement: labels go on from there, but names of it are not seen. */
static void enter(Body *body)
{
    Builder *b = body->b;
    body->outer = b->frame->graph;
    body->frame = *b->frame;
    body->frame.graph = graph_new(b->module, STR("minimize"));
    body->frame.graph->place = body->m->call->place;
    body->frame.gives_on = true;
    body->frame.scope = NULL;
    body->frame.scalars = body->frame.tensors = body->frame.given = body->frame.updated = (Map){.arena = b->scratch};
    body->frame.wanted_count = 0;
    b->frame = &body->frame;
    build_scope_push(b);
}

static Thing add_input(Body *body, const Type *type, Str name)
{
    return build_thing_value(body->b, graph_add_input(body->frame.graph, type, name, body->m->call->place));
}

static void add_params(Body *body)
{
    body->param = ARENA_ARRAY(body->b->scratch, Thing, body->m->trained.count);
    body->gradient = ARENA_ARRAY(body->b->scratch, Thing, body->m->trained.count);
    for (uint32_t i = 0; i < body->m->trained.count; i++)
        body->param[i] = add_input(body, reached(body, i)->type, reached(body, i)->name);
    for (uint32_t i = 0; i < body->m->trained.count; i++)
        body->gradient[i] = add_input(body, reached(body, i)->type, (Str){0});
}

static Thing inside(Body *body, Thing thing)
{
    if (thing.kind == THING_VALUE)
        return add_input(body, value_type(body->outer, thing.value), (Str){0});
    if (thing.kind != THING_LIST)
        return thing;
    Thing *item = ARENA_ARRAY(body->b->scratch, Thing, thing.count);
    for (uint32_t i = 0; i < thing.count; i++)
        item[i] = inside(body, thing.many[i]);
    thing.many = item;
    return thing;
}

/* What the text gives to a function, in the order in which it is printed. */
static void add_settings(Body *body, const Binder *binder)
{
    for (uint32_t i = 0; binder->function && i < binder->function->formal_count; i++)
        binder->given[i].thing = inside(body, binder->given[i].thing);
}

/* A default that is a call is made once, under the label of the function, for the names of its states. */
static bool make_default(Body *body, const Binder *binder, const AstFormal *formal, Given *given)
{
    Builder *b = body->b;
    File *file = b->frame->file;
    AstExpr *call = arena_copy(b->scratch, formal->fallback, sizeof *call);
    AstName *label = ARENA_NEW(b->scratch, AstName);
    *label = (AstName){
        .text = str_format(b->arena, STR_FMT "." STR_FMT, STR_ARG(binder->label), STR_ARG(formal->name->text)),
        .place = formal->name->place};
    call->label = call->label ? call->label : label;
    bool average = binder == &body->m->average;
    b->asked = &(Asked){.call = binder->call,
                        .what = average ? "an average" : "an optimiser",
                        .as = average ? "average" : "with",
                        .frame = b->frame};
    b->frame->file = binder->function->file;
    *given = (Given){.thing = build_single(b, build_eval(b, call), call->place),
                     .present = true,
                     .by_name = true,
                     .place = call->place};
    b->frame->file = file;
    b->asked = NULL;
    return given->thing.kind != THING_BAD;
}

/* What a default of an optimiser counts, its steps, it counts for all graphs that have one of the label. */
struct Counted {
    Str label;
    const Graph *graph;
    const Str *param; /* names of those that it moves */
    uint32_t count;
};

static bool moves_one_of(const struct Counted *other, const Str *param, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < other->count; k++)
            if (str_eq(param[i], other->param[k]))
                return true;
    return false;
}

/* Two entries that train one network, each a batch of its own size, count together; those of two networks should not.
 */
static void note_counted(Body *body, const Binder *binder)
{
    Builder *b = body->b;
    uint32_t count = body->m->trained.count;
    Str *param = ARENA_ARRAY(b->arena, Str, count);
    for (uint32_t i = 0; i < count; i++)
        param[i] = reached(body, i)->name;
    for (uint32_t i = 0; i < b->counted_count; i++) {
        const struct Counted *other = &b->counted[i];
        if (!str_eq(other->label, binder->label) || other->graph == body->outer || moves_one_of(other, param, count))
            continue;
        diag_warning(b->diag, binder->call->place,
                     "the steps of '" STR_FMT "' are counted together with those of graph '" STR_FMT
                     "', which moves other params; a label gives each its own: with = " STR_FMT "@name(...)",
                     STR_ARG(binder->label), STR_ARG(other->graph->name), STR_ARG(binder->function->name->text));
        break;
    }
    struct Counted counted = {binder->label, body->outer, param, count};
    ARENA_PUSH(b->arena, b->counted, b->counted_count, b->counted_capacity, counted);
}

/* Those of a function that is called for each param. */
static bool make_defaults(Body *body, const Binder *binder)
{
    for (uint32_t i = 0; i < binder->function->formal_count; i++) {
        const AstFormal *formal = &binder->function->formal[i];
        Given *given = &binder->given[i];
        if (given->present || formal->fallback->kind != AST_CALL)
            continue;
        if (!make_default(body, binder, formal, given))
            return false;
        note_counted(body, binder);
    }
    return true;
}

/* Gradients on their way */

static Thing list_of_gradients(const Body *body)
{
    return (Thing){
        .kind = THING_LIST, .many = body->gradient, .count = body->m->trained.count, .c = {.kind = C_LIST, .depth = 1}};
}

static bool take_gradients(Body *body, const Binder *binder, const Thing *list)
{
    Builder *b = body->b;
    Str name = binder->function->name->text;
    if (list->kind != THING_LIST || list->count != body->m->trained.count)
        return build_complain(b, binder->call->place, STR_FMT " gives %s, not a list of %u gradient%s", STR_ARG(name),
                              list->kind == THING_LIST ? "a list of another length"
                              : build_is_list(list)    ? "a list of constants"
                                                       : "no list",
                              body->m->trained.count, body->m->trained.count == 1 ? "" : "s");
    for (uint32_t i = 0; i < list->count; i++) {
        const Type *type = list->many[i].kind == THING_VALUE ? value_type(b->frame->graph, list->many[i].value) : NULL;
        if (type != reached(body, i)->type)
            return build_complain(b, binder->call->place,
                                  STR_FMT " does not give a gradient of the param's type for " STR_FMT, STR_ARG(name),
                                  STR_ARG(reached(body, i)->name));
    }
    body->gradient = (Thing *)list->many;
    return true;
}

/* From here on nothing moves where this, or one before it, is false. */
static bool guard_by(Body *body, const Binder *binder, const Thing *go)
{
    Builder *b = body->b;
    const Type *type = go->kind == THING_VALUE ? value_type(b->frame->graph, go->value) : NULL;
    if (!type || type->dtype != DT_BOOL || type->shape.rank)
        return build_complain(
            b, binder->call->place, "the second result of " STR_FMT ", go, is " STR_FMT ", not bool[]",
            STR_ARG(binder->function->name->text), STR_ARG(type ? type_show(b->scratch, type) : STR("no tensor")));
    ValueId both[2] = {b->frame->guard, go->value};
    b->frame->guard = b->frame->guarded ? build_value(b, OP_AND, both, 2, NULL, binder->call->place) : go->value;
    b->frame->guarded = true;
    return true;
}

static bool go_through(Body *body, const Binder *stage)
{
    Binder binder = *stage;
    binder.given[0] = (Given){.thing = list_of_gradients(body), .present = true, .place = binder.call->place};
    Thing results = build_call_given(body->b, &binder);
    if (results.kind == THING_BAD)
        return false;
    if (results.kind != THING_MANY)
        return take_gradients(body, &binder, &results);
    return take_gradients(body, &binder, &results.many[0]) && guard_by(body, &binder, &results.many[1]);
}

/* Params */

/* What a function makes of two tensors for a param; its label is after the function and the param. */
static bool call_for(Body *body, const Binder *of, const Value *param, Thing first, Thing second, ValueId *next)
{
    Builder *b = body->b;
    Binder binder = *of;
    binder.given[0] = (Given){.thing = first, .present = true, .place = body->m->call->place};
    binder.given[1] = (Given){.thing = second, .present = true, .place = body->m->call->place};
    binder.label = str_format(b->arena, STR_FMT "." STR_FMT, STR_ARG(of->label), STR_ARG(param->name));
    Thing result = build_call_given(b, &binder);
    *next = result.value;
    if (result.kind == THING_BAD)
        return false;
    if (result.kind == THING_VALUE && value_type(b->frame->graph, *next) == param->type)
        return true;
    return build_complain(b, of->call->place, STR_FMT " does not give a value of the param's type for " STR_FMT,
                          STR_ARG(of->function->name->text), STR_ARG(param->name));
}

/* A seed that is made of the param's name, as the library's layers have it, or of a label that it goes by, is made of
 * the new one: the same as where another graph has such a layer under the average's label. */
static int64_t renamed_seed(int64_t seed, Str name, Str to)
{
    for (uint32_t len = name.len; len > 0; len--)
        if ((len == name.len || name.ptr[len] == '.') && seed == const_hash((Str){name.ptr, len}))
            return const_hash((Str){to.ptr, to.len - name.len + len});
    return seed;
}

/* The initialiser is that of the param, whose name the new one ends in. */
static uint32_t copy_initial(Body *body, const ReachedParam *from, Str name)
{
    const Value *param = value_of(from);
    Graph *graph = body->frame.graph;
    if (param->initial == NONE)
        return NONE;
    const Node *initial = &from->graph->initial[param->initial];
    uint32_t count = op_attr_count(initial->op), seed = attr_index(initial->op, STR("seed"));
    Attr *attr = arena_copy(body->b->scratch, initial->attr, count * sizeof *attr);
    if (seed != NONE)
        attr[seed].i = renamed_seed(attr[seed].i, param->name, name);
    NodeId copy = graph_add_initial(graph, initial->op, attr, initial->place);
    graph->initial[copy].out_count = initial->out_count;
    return copy;
}

static ValueId add_param(Body *body, const ReachedParam *like, Str name)
{
    const Value *param = value_of(like);
    Graph *graph = body->frame.graph;
    ValueId value = graph_add_value(graph, ROLE_PARAM, param->type, name, body->m->average.call->place);
    graph->value[value].initial = copy_initial(body, like, name);
    graph->value[value].data = param->data;
    return value;
}

/* `next` is what the param becomes. */
static bool add_average(Body *body, const ReachedParam *of, ValueId next)
{
    Builder *b = body->b;
    const Binder *average = &body->m->average;
    const Value *param = value_of(of);
    Place place = average->call->place;
    ValueId moved, mean = add_param(body, of,
                                    str_format(b->arena, STR_FMT STR_FMT "." STR_FMT, STR_ARG(b->frame->prefix),
                                               STR_ARG(average->label), STR_ARG(param->name)));
    if (!call_for(body, average, param, build_thing_value(b, mean), build_thing_value(b, next), &moved))
        return false;
    graph_add_update(body->frame.graph, mean, build_guarded(b, mean, moved, place), place);
    return true;
}

static bool step(Body *body, uint32_t i)
{
    Builder *b = body->b;
    const Value *param = reached(body, i);
    ValueId next;
    if (!call_for(body, &body->m->with, param, body->param[i], body->gradient[i], &next))
        return false;
    graph_add_output(body->frame.graph, build_guarded(b, body->param[i].value, next, body->m->call->place),
                     param->name);
    return !body->m->average.function || add_average(body, &body->m->trained.at[i], next);
}

/* What the network has besides, frozen params and running means, is averaged as the run finds it: a network under the
 * average's label has all of these. */
static bool average_others(Body *body)
{
    bool good = true;
    for (uint32_t i = 0; i < body->m->others.count && good; i++) {
        const ReachedParam *param = &body->m->others.at[i];
        good = add_average(body, param, add_param(body, param, value_of(param)->name));
    }
    return good;
}

static bool fill(Body *body)
{
    Minimize *m = body->m;
    add_params(body);
    add_settings(body, &m->with);
    for (uint32_t i = 0; i < m->through_count; i++)
        add_settings(body, &m->through[i]);
    add_settings(body, &m->average);
    bool good = true;
    for (uint32_t i = 0; i < m->through_count && good; i++)
        good = go_through(body, &m->through[i]);
    good = good && make_defaults(body, &m->with) && (!m->average.function || make_defaults(body, &m->average));
    for (uint32_t i = 0; i < m->trained.count && good; i++)
        good = step(body, i);
    return good && (!m->average.function || average_others(body));
}

/* What is updated of the settings is a param or state of the graph; params are by their next values alone. */
static bool claim_updates(const Body *body, const bool *updated, const ValueId *in)
{
    Builder *b = body->b;
    Place place = body->m->call->place;
    uint32_t own = 2 * body->m->trained.count;
    for (uint32_t i = 0; i < body->frame.graph->input_count; i++) {
        ValueId value = i < own ? NONE : in[1 + i - own];
        if (!updated[i])
            continue;
        if (value == NONE)
            return build_complain(b, place, "minimize updates the params: what it calls gives their next values");
        if (!build_can_update(b, value))
            return build_complain(b, place, "this updates " STR_FMT ", which is neither a param nor a state",
                                  STR_ARG(value_show(b->frame->graph, value)));
        if (!build_claim_update(b, value, value_show(b->frame->graph, value), place))
            return false;
    }
    return true;
}

Graph *build_minimize_body(Minimize *m, const ValueId *in)
{
    Body body = {.m = m, .b = m->b};
    Frame *outer = m->b->frame;
    enter(&body);
    bool good = fill(&body);
    const bool *updated = build_updated_inputs(m->b);
    m->b->frame = outer;
    return good && claim_updates(&body, updated, in) ? body.frame.graph : NULL;
}
