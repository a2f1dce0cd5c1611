/* Calls by name: functions of the language, dtypes as conversions, functions of constants, and primitives.
 *
 * A function is built for each call, with the types of its operands, into the sub-graph of an OP_CALL node; calls of
 * the library that are given alike share it.  When all it returns are constants, the call is a constant and leaves no
 * node. */
#include "frontends/nnc/build_call.h"

#include <string.h>

static uint32_t formal_index(const AstFunction *function, Str name)
{
    for (uint32_t i = 0; i < function->formal_count; i++)
        if (str_eq(function->formal[i].name->text, name))
            return i;
    return NONE;
}

static void put_formals(Text *text, const AstFunction *function)
{
    for (uint32_t i = 0; i < function->formal_count; i++)
        text_printf(text, "%s" STR_FMT, i ? ", " : "", STR_ARG(function->formal[i].name->text));
}

static bool report_formals(Builder *b, const AstFunction *function, Place place, Str what, Str hint)
{
    Text text = {0};
    put_formals(&text, function);
    build_complain(b, place, STR_FMT "; the parameters are (" STR_FMT ")" STR_FMT, STR_ARG(what),
                   STR_ARG(text_view(&text)), STR_ARG(hint));
    text_free(&text);
    return false;
}

static bool report_unknown_formal(Builder *b, const AstFunction *function, const AstArg *arg)
{
    Nearest nearest = {.wanted = arg->name};
    for (uint32_t i = 0; i < function->formal_count; i++)
        build_nearest_parameter(&nearest, function->formal[i].name->text);
    Str what = str_format(b->scratch, STR_FMT " has no parameter '" STR_FMT "'", STR_ARG(function->name->text),
                          STR_ARG(arg->name));
    return report_formals(b, function, arg->name_place, what, build_nearest_show(b->scratch, &nearest));
}

static bool give(Builder *b, Binder *binder, uint32_t index, const AstArg *arg)
{
    Given *given = &binder->given[index];
    if (given->present)
        return build_complain(b, arg->name_place, "'" STR_FMT "' is given twice", STR_ARG(arg->name));
    given->present = true;
    given->by_name = arg->name.len > 0;
    given->place = arg->value->place;
    given->thing = build_single(b, build_eval(b, arg->value), arg->value->place);
    return given->thing.kind != THING_BAD;
}

bool build_give_all(Builder *b, Binder *binder)
{
    const AstFunction *function = binder->function;
    const AstExpr *call = binder->call;
    bool ok = true;
    uint32_t next = 0;

    for (uint32_t i = 0; i < call->count; i++) {
        const AstArg *arg = &call->u.arg[i];
        if (!arg->name.len)
            continue;
        uint32_t index = formal_index(function, arg->name);
        if (index == NONE)
            ok = report_unknown_formal(b, function, arg);
        else
            ok &= give(b, binder, index, arg);
    }
    for (uint32_t i = 0; i < call->count; i++) {
        const AstArg *arg = &call->u.arg[i];
        if (arg->name.len)
            continue;
        while (next < function->formal_count && binder->given[next].present)
            next++;
        if (next == function->formal_count)
            return report_formals(
                b, function, arg->value->place,
                str_format(b->scratch, "too many arguments for " STR_FMT, STR_ARG(function->name->text)), (Str){0});
        ok &= give(b, binder, next, arg);
    }
    for (uint32_t i = 0; ok && i < function->formal_count; i++)
        if (!binder->given[i].present && !function->formal[i].fallback)
            ok = report_formals(b, function, call->place,
                                str_format(b->scratch, STR_FMT " needs '" STR_FMT "'", STR_ARG(function->name->text),
                                           STR_ARG(function->formal[i].name->text)),
                                (Str){0});
    return ok;
}

/* Frames */

static Str join_label(Builder *b, Str prefix, Str name)
{
    return str_format(b->arena, STR_FMT STR_FMT, STR_ARG(prefix), STR_ARG(name));
}

Str build_call_label(Builder *b, const Binder *binder)
{
    const AstExpr *call = binder->call;
    Str name = binder->label.len ? binder->label
               : call->label     ? build_name_text(b, call->label)
                                 : binder->function->name->text;
    return join_label(b, b->frame->prefix, name);
}

void build_enter_call(Builder *b, Frame *frame, const Binder *binder)
{
    const AstFunction *function = binder->function;
    const AstExpr *call = binder->call;
    *frame = (Frame){.caller = b->frame,
                     .graph = graph_new(b->module, str_copy(b->arena, function->name->text)),
                     .file = function->file,
                     .callee = function->name,
                     .labelled = call->label != NULL,
                     .call = call->place,
                     .depth = b->frame->depth + 1,
                     .nesting = b->frame->nesting,
                     .gives_on = true,
                     .guarded = b->frame->guarded,
                     .guard = NONE,
                     .scalars = {.arena = &b->scopes},
                     .tensors = {.arena = &b->scopes},
                     .given = {.arena = b->scratch},
                     .updated = {.arena = b->scratch}};
    frame->label = build_call_label(b, binder);
    frame->prefix = join_label(b, frame->label, STR("."));
    frame->graph->place = function->place;
    b->frame = frame;
    build_scope_push(b);
}

bool build_can_update(const Builder *b, ValueId value)
{
    Role role = graph_value(b->frame->graph, value)->role;
    return role == ROLE_PARAM || role == ROLE_STATE || (role == ROLE_INPUT && b->frame->gives_on);
}

bool build_claim_update(Builder *b, ValueId value, Str name, Place place)
{
    Str key = map_key(arena_copy(b->scratch, &value, sizeof value), sizeof value);
    uint32_t earlier = map_get(&b->frame->updated, key), bits = graph_value(b->frame->graph, value)->bits;
    if (bits)
        return build_complain(b, place, "'" STR_FMT "' has %u bits, and cannot be updated", STR_ARG(name), bits);
    if (earlier != MAP_NONE) {
        build_complain(b, place, "'" STR_FMT "' is updated already", STR_ARG(name));
        diag_note(b->diag, b->update_place[earlier], "the first update");
        return false;
    }
    map_put(&b->frame->updated, key, b->update_count);
    ARENA_PUSH(b->scratch, b->update_place, b->update_count, b->update_capacity, place);
    return true;
}

const bool *build_updated_inputs(Builder *b)
{
    const Graph *graph = b->frame->graph;
    bool *updated = ARENA_ARRAY(b->scratch, bool, graph->input_count);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        ValueId input = graph->input[i];
        updated[i] = map_get(&b->frame->updated, map_key(&input, sizeof input)) != MAP_NONE;
    }
    return updated;
}

ValueId build_guard(Builder *b, Place place)
{
    Frame *frame = b->frame;
    if (frame->guard == NONE)
        frame->guard = graph_add_input(frame->graph, module_plain_type(b->module, DT_BOOL, 0, NULL), (Str){0}, place);
    return frame->guard;
}

ValueId build_guarded(Builder *b, ValueId value, ValueId next, Place place)
{
    if (!b->frame->guarded)
        return next;
    ValueId in[3] = {build_guard(b, place), next, value};
    return build_value(b, OP_SELECT, in, 3, NULL, place);
}

static Thing formal_inside(Builder *b, const Graph *outer, Thing given, Str name, Place place);

/* `xs` inside is a list of inputs `xs.0`, `xs.1`. */
static Thing list_inside(Builder *b, const Graph *outer, Thing given, Str name, Place place)
{
    Thing *item = ARENA_ARRAY(b->scratch, Thing, given.count);
    for (uint32_t i = 0; i < given.count; i++)
        item[i] = formal_inside(b, outer, given.many[i], str_format(b->arena, STR_FMT ".%u", STR_ARG(name), i), place);
    given.many = item;
    return given;
}

/* What a parameter is in the body: a tensor becomes an input of it. */
static Thing formal_inside(Builder *b, const Graph *outer, Thing given, Str name, Place place)
{
    if (given.kind == THING_LIST)
        return list_inside(b, outer, given, name, place);
    if (given.kind != THING_VALUE)
        return given;
    return build_thing_value(b, graph_add_input(b->frame->graph, outer->value[given.value].type, name, place));
}

static bool bind_formal(Builder *b, const AstFormal *formal, const Given *given, const Graph *outer)
{
    Thing thing = given->present ? given->thing : build_eval(b, formal->fallback);
    Str name = str_copy(b->arena, formal->name->text);
    bool ok = true;
    if (thing.kind == THING_LIST && formal->type && given->present)
        ok = build_complain(b, given->place, STR_FMT " is a tensor; found a list of %u", STR_ARG(name), thing.count);
    else if (thing.kind == THING_VALUE && formal->type) {
        const Type *wanted = build_eval_type(b, formal->type, (Str){0});
        const Graph *graph = given->present ? outer : b->frame->graph;
        ok = wanted && build_check_type(b, name, graph->value[thing.value].type, wanted, formal->type->place);
    }
    if (given->present)
        thing = formal_inside(b, outer, thing, name, formal->name->place);
    return ok & (thing.kind != THING_BAD && build_bind(b, formal->name->text, formal->name->place, thing));
}

bool build_bind_formals(Builder *b, Binder *binder, const Graph *outer)
{
    bool ok = true;
    for (uint32_t i = 0; i < binder->function->formal_count; i++)
        ok &= bind_formal(b, &binder->function->formal[i], &binder->given[i], outer);
    return ok;
}

/* The call node */

uint32_t build_operands_in(const Thing *thing)
{
    uint32_t count = thing->kind == THING_VALUE;
    for (uint32_t i = 0; thing->kind == THING_LIST && i < thing->count; i++)
        count += build_operands_in(&thing->many[i]);
    return count;
}

Str build_take_text(CallText *call)
{
    Str text = str_copy(call->b->arena, text_view(&call->text));
    call->text.len = 0;
    return text;
}

void build_put_given(CallText *call, const Thing *thing)
{
    if (thing->kind == THING_CONST)
        const_print(&call->text, &thing->c);
    if (thing->kind == THING_VALUE) {
        call->in[call->count] = thing->value;
        call->before[call->count++] = build_take_text(call);
    }
    if (thing->kind != THING_LIST)
        return;
    text_char(&call->text, '[');
    for (uint32_t i = 0; i < thing->count; i++) {
        text_printf(&call->text, i ? ", " : "");
        build_put_given(call, &thing->many[i]);
    }
    text_char(&call->text, ']');
}

static void put_formal(CallText *call, Str name, const Thing *thing, bool by_name)
{
    if (call->text.len || call->count)
        text_printf(&call->text, ", ");
    if (by_name && lex_is_plain(name))
        text_str(&call->text, name);
    else if (by_name)
        lex_put_escaped(&call->text, name, '`');
    if (by_name)
        text_printf(&call->text, " = ");
    build_put_given(call, thing);
}

/* Operands stand first, by position as long as the parameters before them are operands too; then constants by name. */
static const Call *describe_call(Builder *b, const Binder *binder, CallText *text, Graph *gradient)
{
    const AstFunction *function = binder->function;
    Call *call = ARENA_NEW(b->arena, Call);
    bool in_order = true;

    for (int constants = 0; constants < 2; constants++)
        for (uint32_t i = 0; i < function->formal_count; i++) {
            const Given *given = &binder->given[i];
            bool constant = given->thing.kind == THING_CONST;
            in_order &= given->present && !constant;
            if (given->present && constant == (constants > 0))
                put_formal(text, function->formal[i].name->text, &given->thing, !in_order);
        }
    call->name = str_copy(b->arena, function->name->text);
    call->label = binder->label.len     ? binder->label
                  : binder->call->label ? str_copy(b->arena, build_name_text(b, binder->call->label))
                                        : (Str){0};
    call->before = text->before;
    call->rest = build_take_text(text);
    call->library = str_is(function->file->path, "nn");
    call->checkpoint = binder->call->checkpoint;
    call->gradient = gradient;
    return call;
}

/* What a function updates of what it takes is an update of the caller's param or state. */
static bool claim_given(Builder *b, const Binder *binder, ValueId value, Str parameter)
{
    Place place = binder->call->place;
    if (build_can_update(b, value))
        return build_claim_update(b, value, value_show(b->frame->graph, value), place);
    return build_complain(b, place, STR_FMT " updates its " STR_FMT ", which is to be a param or a state",
                          STR_ARG(binder->function->name->text), STR_ARG(parameter));
}

static Thing add_call(Builder *b, const Binder *binder, const Callee *callee)
{
    Graph *graph = b->frame->graph, *body = callee->body;
    CallText text = {.b = b};

    text.in = ARENA_ARRAY(b->scratch, ValueId, body->input_count);
    text.before = ARENA_ARRAY(b->arena, Str, body->input_count);
    const Call *call = describe_call(b, binder, &text, callee->gradient);
    if (text.count < body->input_count)
        text.in[text.count] = build_guard(b, binder->call->place);
    NodeId id =
        graph_add_node(graph, OP_CALL, text.in, body->input_count, NULL, body->output_count, binder->call->place);
    Node *node = graph_node(graph, id);
    node->sub = ARENA_ARRAY(b->arena, Graph *, 1);
    node->sub[0] = body;
    node->sub_count = 1;
    node->call = call;
    text_free(&text.text);
    for (uint32_t i = 0; i < body->input_count; i++)
        if (callee->updated[i] && !claim_given(b, binder, node->in[i], body->value[body->input[i]].name))
            return build_thing_bad();
    for (uint32_t i = 0; i < node->out_count; i++)
        graph->value[node->out[i]].type = body->value[body->output[i].value].type;
    return build_results_of(b, &callee->results, node);
}

/* The function's body for what is given. */
static bool build_callee(Builder *b, Binder *binder, Callee *callee)
{
    const AstFunction *function = binder->function;
    const AstExpr *call = binder->call;
    Frame frame, *outer = b->frame;
    uint32_t errors = b->diag->error_count, params = b->param_count, steps = b->steps, reads = b->label_reads;

    if (!build_step(b, call->place, COST_OF_CALL) || build_has_failed(b, function->place))
        return false;
    if (outer->depth >= DEEPEST_CALL) {
        build_complain(b, call->place, "calls nest deeper than %d: does " STR_FMT " call itself?", DEEPEST_CALL,
                       STR_ARG(function->name->text));
        build_mark_failed_quietly(b, function->place); /* no further calls: it could branch */
        return false;
    }
    ArenaMark mark = arena_mark(&b->scopes);
    build_enter_call(b, &frame, binder);
    bool ok = build_bind_formals(b, binder, outer->graph);
    if (ok) {
        const AstStmt *branch = b->branch;
        b->branch = NULL;
        build_block(b, function->body);
        b->branch = branch;
        ok = !b->exhausted && build_finish_results(b, function, &callee->results) && b->diag->error_count == errors;
    }
    callee->body = ok && !callee->results.constant ? frame.graph : NULL;
    if (callee->body) {
        callee->updated = build_updated_inputs(b);
        build_renumber(b);
    }
    callee->label_reads = b->label_reads - reads;
    callee->params = b->param_count - params;
    callee->prefix = frame.prefix;
    callee->alike = ok && (callee->body || !callee->params) && !frame.graph->update_count && !frame.updated.count &&
                    frame.guard == NONE;
    callee->steps = b->steps - steps;
    b->frame = outer;
    arena_reset(&b->scopes, mark);
    return ok;
}

/* The body, and the gradient if the function has one of its own: other calls find it before it is built, for it may
 * come to them itself. */
static bool build_whole_callee(Builder *b, Binder *binder, Str key, Callee *callee)
{
    if (!build_callee(b, binder, callee))
        return false;
    bool own = binder->function->gradient && callee->body && callee->body->input_count;
    own &= b->frame->graph != NULL; /* of constants nobody asks for gradients */
    if (own)
        callee->gradient = graph_new(b->module, (Str){0});
    build_share_keep(b, key, callee);
    return !own || build_own_gradient(b, binder, callee);
}

static bool find_callee(Builder *b, Binder *binder, Callee *callee)
{
    Text text = {0};
    Str key = build_share_key(b, binder, &text);
    bool good = build_share_find(b, binder, key, callee) ? build_step(b, binder->call->place, callee->steps)
                                                         : build_whole_callee(b, binder, key, callee);
    text_free(&text);
    return good;
}

Thing build_call_given(Builder *b, Binder *binder)
{
    Callee callee = {0};
    if (!find_callee(b, binder, &callee))
        return build_thing_bad();
    if (!callee.body)
        return build_results_of(b, &callee.results, NULL);
    if (!b->frame->graph) {
        build_complain(b, binder->call->place, STR_FMT " makes a tensor: a constant expression cannot use it",
                       STR_ARG(binder->function->name->text));
        return build_thing_bad();
    }
    return add_call(b, binder, &callee);
}

static Thing call_function(Builder *b, const AstFunction *function, const AstExpr *call)
{
    Binder binder = {
        .function = function, .call = call, .given = ARENA_ARRAY(b->scratch, Given, function->formal_count)};
    return build_give_all(b, &binder) ? build_call_given(b, &binder) : build_thing_bad();
}

/* f32(x): a conversion; of a literal, a scalar of that dtype. */
static Thing convert(Builder *b, DType to, const AstExpr *call)
{
    if (call->count != 1 || call->u.arg[0].name.len || call->label)
        return build_complain(b, call->place, "%s(x) converts one tensor or number", dtype_name(to)), build_thing_bad();
    Place place = call->u.arg[0].value->place;
    Thing thing = build_single(b, build_eval(b, call->u.arg[0].value), place);
    ValueId value;

    if (!b->frame->graph && thing.kind != THING_BAD)
        return build_complain(b, call->place, "%s(x) makes a tensor: a constant expression cannot use it",
                              dtype_name(to)),
               build_thing_bad();
    if (thing.kind == THING_CONST)
        return build_as_value(b, thing, to, place, &value) ? build_thing_value(b, value) : build_thing_bad();
    if (thing.kind != THING_VALUE)
        return build_thing_bad();
    Attr attr[4];
    attr_defaults(OP_CAST, attr);
    attr[attr_index(OP_CAST, STR("to"))].i = to;
    return build_thing_value(b, build_value(b, OP_CAST, &thing.value, 1, attr, call->place));
}

/* Argument number i.  Of a tensor some of these functions are ops of other names. */
static bool constant_argument(Builder *b, Str name, const AstExpr *call, uint32_t i, Const *c)
{
    const AstExpr *expr = call->u.arg[i].value;
    Thing thing = build_eval(b, expr);
    Str ours = thing.kind == THING_VALUE ? nnc_foreign_name(name) : (Str){0};
    if (!ours.len)
        return build_as_const(b, thing, expr->place, c);
    const char *two = call->count < 2 ? NULL : str_is(name, "max") ? "maximum" : str_is(name, "min") ? "minimum" : NULL;
    return build_complain(b, call->name->place, STR_FMT " is for constants; did you mean '%s'?", STR_ARG(name),
                          two ? two : ours.ptr);
}

static Thing call_constant(Builder *b, Str name, const AstExpr *call)
{
    Const *arg = ARENA_ARRAY(b->scratch, Const, call->count + 1), result;
    bool known;
    for (uint32_t i = 0; i < call->count; i++)
        if (call->u.arg[i].name.len)
            return build_complain(b, call->place, STR_FMT " takes its arguments by position", STR_ARG(name)),
                   build_thing_bad();
    bool asks_list = str_is(name, "is_list"), asks = asks_list || str_is(name, "is_number");
    if ((asks || str_is(name, "len")) && call->count == 1) { /* those that take tensors, and lists of them, too */
        Thing thing = build_eval(b, call->u.arg[0].value);
        if (thing.kind == THING_BAD)
            return thing;
        if (thing.kind == THING_LIST)
            return build_thing_const(asks ? const_bool(asks_list) : const_int(thing.count));
        if (asks && thing.kind == THING_VALUE)
            return build_thing_const(const_bool(false));
    }
    for (uint32_t i = 0; i < call->count; i++)
        if (!constant_argument(b, name, call, i, &arg[i]))
            return build_thing_bad();
    return const_call(b, name, arg, call->count, call->place, &result, &known) ? build_thing_const(result)
                                                                               : build_thing_bad();
}

/* A dtype by its name, or a constant that is one: `const T = f16` makes `T(x)` a conversion. */
static bool names_dtype(Builder *b, Str name, DType *dtype)
{
    if (dtype_parse(name, dtype))
        return true;
    const Binding *binding = build_lookup(b, name);
    if (!binding || binding->thing.kind != THING_CONST || binding->thing.c.kind != C_DTYPE)
        return false;
    *dtype = (DType)binding->thing.c.i;
    return true;
}

Thing build_call(Builder *b, const AstExpr *call)
{
    Str name = build_name_text(b, call->name);
    const AstFunction *function = build_find_function(b->frame->file, name);
    const AstExpr *generator;
    Thing result;
    OpCode made;
    bool known;
    DType dtype;

    if (function)
        return call_function(b, function, call);
    if (call->checkpoint)
        return build_complain(b, call->place, "checkpoint stands before the call of a function; " STR_FMT " is none",
                              STR_ARG(name)),
               build_thing_bad();
    if ((generator = build_generator(b, name, call, &made)))
        return build_op(b, made, generator);
    if (build_list_call(b, name, call, &result))
        return result;
    uint32_t op = map_get(&b->ops, name);
    if (op != MAP_NONE && op_info((OpCode)op)->family == FAMILY_CONTROL)
        return build_complain(b, call->place, "a composite is called by its own name"), build_thing_bad();
    if (op != MAP_NONE)
        return build_op(b, (OpCode)op, call);
    if (names_dtype(b, name, &dtype))
        return convert(b, dtype, call);
    const_call(b, name, NULL, 0, call->place, NULL, &known);
    return known ? call_constant(b, name, call) : build_unknown_function(b, name, call->name->place);
}
