/* Functions that say their gradient themselves: `fn f(x) -> (y) { ... } gradient (dy) -> (dx) { ... }`. */
#include "frontends/nnc/build_call.h"

/* Recurses over the nesting. */
bool build_keeps_values(const Graph *graph)
{
    bool keeps = graph->update_count > 0;
    for (ValueId v = 0; v < graph->value_count; v++)
        keeps |= graph->value[v].role == ROLE_PARAM || graph->value[v].role == ROLE_STATE;
    for (NodeId n = 0; n < graph->node_count && !keeps; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count && !keeps; s++)
            keeps = build_keeps_values(graph->node[n].sub[s]);
    return keeps;
}

static bool check_gradient(Builder *b, const Binder *binder, const Graph *body, const Graph *gradient)
{
    const AstFunction *own = binder->function->gradient;
    Place place = own->place;
    if (build_keeps_values(body) || build_keeps_values(gradient))
        return build_complain(b, place,
                              "a function with a gradient of its own has no params and states: it takes what it needs");
    if (gradient->output_count != body->input_count)
        return build_complain(b, place, "this gives %u gradient%s for %u tensor%s", gradient->output_count,
                              gradient->output_count == 1 ? "" : "s", body->input_count,
                              body->input_count == 1 ? "" : "s");
    for (uint32_t i = 0; i < gradient->output_count; i++)
        if (!build_check_type(b, gradient->output[i].name, value_type(gradient, gradient->output[i].value),
                              value_type(body, body->input[i]), own->result[i].name->place))
            return false;
    return true;
}

static bool gives_tensors(Builder *b, const AstFunction *own, const Results *results)
{
    for (uint32_t i = 0; i < results->count; i++)
        if (results->thing[i].kind == THING_LIST)
            return build_complain(b, own->place, "a function with a gradient of its own gives tensors, no lists");
    return true;
}

bool build_own_gradient(Builder *b, Binder *binder, const Callee *callee)
{
    const AstFunction *function = binder->function, *own = function->gradient;
    const Graph *body = callee->body;
    Frame frame, *outer = b->frame;
    uint32_t errors = b->diag->error_count;
    if (!gives_tensors(b, own, &callee->results))
        return false;
    if (own->formal_count != function->result_count)
        return build_complain(b, own->place, "the gradient takes %u tensor%s, one for each of the %u result%s",
                              own->formal_count, own->formal_count == 1 ? "" : "s", function->result_count,
                              function->result_count == 1 ? "" : "s");
    ArenaMark mark = arena_mark(&b->scopes);
    build_enter_call(b, &frame, binder);
    bool good = build_bind_formals(b, binder, outer->graph);
    for (int reaches = 0; reaches < 2; reaches++)
        for (uint32_t i = 0; i < function->result_count && good; i++) {
            const AstName *name = (reaches ? &own->formal[i] : &function->result[i])->name;
            const Type *type = value_type(body, body->output[i].value);
            ValueId input = graph_add_input(frame.graph, type, str_copy(b->arena, name->text), name->place);
            good = build_bind(b, name->text, name->place, build_thing_value(b, input));
        }
    if (good) {
        build_block(b, own->body);
        good = !b->exhausted && build_finish_results(b, own, NULL) && b->diag->error_count == errors;
    }
    if (good)
        build_renumber(b);
    b->frame = outer;
    arena_reset(&b->scopes, mark);
    *callee->gradient = *frame.graph;
    return good && check_gradient(b, binder, body, frame.graph);
}
