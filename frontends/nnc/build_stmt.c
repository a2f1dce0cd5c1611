/* Statements: declarations, assignments, updates, repetition, choice at compile time. */
#include "frontends/nnc/build_call.h"

#include <stdlib.h>
#include <string.h>

bool build_check_type(Builder *b, Str name, const Type *found, const Type *wanted, Place place)
{
    if (!found || (found->dtype == wanted->dtype && shape_eq(&found->shape, &wanted->shape)))
        return found != NULL;
    return build_complain(b, place, STR_FMT " is " STR_FMT ", not " STR_FMT, STR_ARG(name),
                          STR_ARG(type_show(b->scratch, found)), STR_ARG(type_show(b->scratch, wanted)));
}

/* Names of values */

/* In rounds of a loop a value is called `x.3`: names in the printed graph are unique. */
Str build_value_name(Builder *b, Str name)
{
    Str suffix = b->frame->scope->suffix;
    return suffix.len ? str_format(b->arena, STR_FMT STR_FMT, STR_ARG(name), STR_ARG(suffix))
                      : str_copy(b->arena, name);
}

void build_want_index(Builder *b, const AstName *name, ValueId value)
{
    Frame *frame = b->frame;
    char digits[12] = {0};
    uint32_t begin = name->text.len; /* %1.12 in a body is its value 12 */
    while (begin && name->text.ptr[begin - 1] >= '0' && name->text.ptr[begin - 1] <= '9')
        begin--;
    if (name->text.len - begin < sizeof digits - 1) {
        memcpy(digits, name->text.ptr + begin, name->text.len - begin);
        unsigned long long n = strtoull(digits, NULL, 10);
        if (n < UINT32_MAX / 2)
            ARENA_PUSH(b->scratch, frame->wanted, frame->wanted_count, frame->wanted_capacity,
                       ((Wanted){value, (uint32_t)n}));
    }
}

/* Gives a new value its name; a value that had one keeps it, and the second name is an alias. */
static void name_value(Builder *b, const AstTarget *target, Str name, ValueId value, uint32_t first_new)
{
    Value *v = graph_value(b->frame->graph, value);
    if (value < first_new || v->role != ROLE_RESULT || v->name.len)
        return;
    if (target->name->temporary)
        build_want_index(b, target->name, value);
    else
        v->name = build_value_name(b, name);
}

/* Checks the type that was written; it also decides the layout. */
static bool apply_type(Builder *b, const AstTarget *target, Str name, ValueId value)
{
    Value *v = graph_value(b->frame->graph, value);
    const Type *wanted = build_eval_type(b, target->type, (Str){0});
    if (!wanted || !build_check_type(b, name, v->type, wanted, target->type->place))
        return false;
    if (v->role == ROLE_RESULT)
        v->type = wanted;
    return true;
}

/* A constant with a written type is an array in the text. */
/* The type of a param or constant.  i4 and u4 are bytes of which 4 bits hold all: `bits` is 4 then. */
static const Type *declared_type(Builder *b, const AstType *type, uint32_t *bits)
{
    AstType wide = *type;
    AstName dtype = *type->dtype;
    bool is_signed = str_is(dtype.text, "i4"), four = !dtype.part_count && (is_signed || str_is(dtype.text, "u4"));
    *bits = four && !build_lookup(b, dtype.text) ? 4 : 0;
    if (!*bits)
        return build_eval_type(b, type, (Str){0});
    dtype.text = is_signed ? STR("i8") : STR("u8");
    wide.dtype = &dtype;
    return build_eval_type(b, &wide, (Str){0});
}

static bool check_bits(Builder *b, const Tensor *tensor, uint32_t bits, Place place)
{
    return !bits || tensor_fits_nibbles(tensor) || build_complain(b, place, "4 bits do not hold all of these elements");
}

static bool check_number_bits(Builder *b, const Const *c, DType dtype, uint32_t bits, Place place)
{
    int64_t low = dtype_is_unsigned(dtype) ? 0 : -8;
    return !bits || (c->i >= low && c->i < low + 16) ||
           build_complain(b, place, "4 bits do not hold %lld", (long long)c->i);
}

static Thing typed_constant(Builder *b, const AstTarget *target, Str name, const Const *c, Place place)
{
    uint32_t bits;
    const Type *type = declared_type(b, target->type, &bits);
    const Tensor *tensor = type ? build_tensor(b, c, type, place) : NULL;
    if (!tensor || !check_bits(b, tensor, bits, place))
        return build_thing_bad();
    Str shown = target->name->temporary ? (Str){0} : build_value_name(b, name);
    ValueId value = graph_add_const(b->frame->graph, tensor, shown, target->name->place);
    graph_value(b->frame->graph, value)->bits = bits;
    if (target->name->temporary)
        build_want_index(b, target->name, value);
    return build_thing_value(b, value);
}

static void assign(Builder *b, const AstTarget *target, Thing thing, Place place, uint32_t first_new)
{
    Str name = build_name_text(b, target->name);
    if (thing.kind == THING_CONST && target->type && b->frame->graph) {
        thing = typed_constant(b, target, name, &thing.c, place);
    } else if (thing.kind == THING_VALUE) {
        if (target->type && !apply_type(b, target, name, thing.value))
            thing = build_thing_bad();
        else
            name_value(b, target, name, thing.value, first_new);
    }
    build_bind(b, name, target->name->place, thing);
}

static void build_assign(Builder *b, const AstStmt *stmt)
{
    uint32_t first_new = b->frame->graph ? b->frame->graph->value_count : 0;
    Thing thing = build_eval(b, stmt->value);
    if (stmt->target[0].type && stmt->value->kind == AST_CALL)
        thing = build_tensors_of(b, thing);
    else if (stmt->target_count > 1)
        thing = build_take_apart(b, thing);
    uint32_t count = thing.kind == THING_MANY ? thing.count : 1;

    if (thing.kind != THING_BAD && count != stmt->target_count) {
        build_complain(b, stmt->value->place, "this gives %u result%s for %u name%s", count, count == 1 ? "" : "s",
                       stmt->target_count, stmt->target_count == 1 ? "" : "s");
        thing = build_thing_bad();
    }
    for (uint32_t i = 0; i < stmt->target_count; i++)
        assign(b, &stmt->target[i], thing.kind == THING_MANY ? thing.many[i] : thing, stmt->value->place, first_new);
    build_apply_marks(b, stmt, thing);
}

/* param, state, const */

/* What a default of the library keeps that minimize has made, where another of the same label keeps it already. */
static bool complain_of_asked(Builder *b, Str full)
{
    const Asked *asked = b->asked;
    bool library = asked != NULL;
    for (const Frame *f = b->frame; library && f != asked->frame; f = f->caller)
        library = build_in_library(f);
    if (library && !build_has_failed(b, asked->call->place))
        build_complain(b, asked->call->place,
                       "'" STR_FMT
                       "' exists already: each minimize has %s of its own, so it takes %s label, "
                       "%s = " STR_FMT "@name(...)",
                       STR_ARG(full), asked->what, asked->call->label ? "another" : "a", asked->as,
                       STR_ARG(asked->call->name->text));
    return library;
}

bool build_claim_param(Builder *b, Str full, Place place)
{
    uint32_t known = map_get(&b->params, full);
    const Frame *f = b->frame;
    if (known == MAP_NONE) {
        map_put(&b->params, full, b->param_count);
        ARENA_PUSH(b->scratch, b->param_place, b->param_count, b->param_capacity, place);
        return true;
    }
    if (complain_of_asked(b, full))
        return false;
    while (f->caller && f->labelled) /* the innermost call that could take a label */
        f = f->caller;
    if (!f->caller)
        f = b->frame;
    Place at = f->caller ? f->call : place;
    if (build_has_failed(b, at))
        return false;
    if (f->caller)
        build_complain(b, at,
                       "'" STR_FMT "' exists already: every call has its own params, so it takes %s label, " STR_FMT
                       "@" STR_FMT "(...)",
                       STR_ARG(full), f->labelled ? "another" : "a", STR_ARG(f->callee->text),
                       STR_ARG(build_hint_label(b, f)));
    else
        build_complain(b, at, "'" STR_FMT "' exists already", STR_ARG(full));
    diag_note(b->diag, b->param_place[known], "declared here%s", f->caller ? " for another call" : "");
    if (f->caller)
        build_hint_shared(b);
    return false;
}

/* What is wrong with it is said of the line, or of the call whose body this is. */
static bool infer_initial(Builder *b, ValueId value, Place place)
{
    Graph *graph = build_root(b->frame)->graph;
    Diag apart = {.arena = b->arena}, *outer = graph->module->diag;
    graph->module->diag = &apart;
    bool good = op_infer_initial(graph, value);
    graph->module->diag = outer;
    bool floats = dtype_is_float(graph->value[value].type->dtype),
         told = !good && !floats && build_complain_of_integers(b, place);
    for (uint32_t i = 0; i < apart.entry_count && !told; i++)
        build_complain(b, place, STR_FMT, STR_ARG(apart.entry[i].message));
    diag_free(&apart);
    return good;
}

/* The initialiser: a number for all elements, a list, or a generator. */
static bool set_initial(Builder *b, ValueId value, const AstExpr *init)
{
    Graph *graph = build_root(b->frame)->graph;
    Attr attr[32];
    OpCode op = OP_FULL;
    const Type *type = graph->value[value].type;
    uint32_t bits = graph->value[value].bits;

    if (init->kind == AST_CALL) {
        const AstExpr *call = build_generator(b, init->name->text, init, &op);
        if (call && !build_find_function(b->frame->file, init->name->text)) {
            if (bits)
                return build_complain(b, init->place, "an initialiser of %u bits is a number or a list", bits);
            if (!build_attrs(b, op, call, attr))
                return false;
            graph->value[value].initial = graph_add_initial(graph, op, attr, init->place);
            return infer_initial(b, value, init->place);
        }
        op = OP_FULL;
    }
    Const c;
    Thing thing = build_eval(b, init);
    if (thing.kind == THING_BAD)
        return false;
    if (thing.kind != THING_CONST)
        return build_complain(b, init->place,
                              "an initialiser is a number, a list, or a generator such as he_normal(seed = 1)");
    c = thing.c;
    bool exact = c.kind == C_INT && (!const_is_double(&c) || (type->dtype == DT_U64 && c.i < 0));
    if (c.kind == C_LIST || exact) {
        graph->value[value].data = build_tensor(b, &c, type, init->place);
        return graph->value[value].data && check_bits(b, graph->value[value].data, bits, init->place);
    }
    if (!build_check_fits(b, &c, type->dtype, init->place) || !check_number_bits(b, &c, type->dtype, bits, init->place))
        return false;
    attr_defaults(op, attr);
    attr[attr_index(op, STR("value"))].f = c.kind == C_FLOAT ? c.f : (double)c.i;
    graph->value[value].initial = graph_add_initial(graph, op, attr, init->place);
    return infer_initial(b, value, init->place);
}

static Thing declare_param(Builder *b, const AstStmt *stmt, Str name)
{
    const AstTarget *target = stmt->target;
    Frame *frame = b->frame;
    if (!target->type)
        return build_complain(b, target->name->place, "a param or state needs its type: " STR_FMT ": f32[...]",
                              STR_ARG(name)),
               build_thing_bad();
    uint32_t bits;
    const Type *type =
        stmt->role == T_PARAM ? declared_type(b, target->type, &bits) : build_eval_type(b, target->type, (Str){0});
    Str full = str_format(b->arena, STR_FMT STR_FMT, STR_ARG(frame->prefix), STR_ARG(name));
    if (!type || !build_claim_param(b, full, target->name->place))
        return build_thing_bad();
    Frame *root = build_root(frame); /* what rounds and branches there are: it exists once */
    ValueId value =
        graph_add_value(root->graph, stmt->role == T_PARAM ? ROLE_PARAM : ROLE_STATE, type, full, target->name->place);
    graph_value(root->graph, value)->bits = stmt->role == T_PARAM ? bits : 0;
    if (stmt->value && !build_has_failed(b, stmt->value->place))
        set_initial(b, value, stmt->value);
    else if (!stmt->value && !shape_elements(&type->shape)) /* it wants no elements */
        root->graph->value[value].data = tensor_new(b->arena, type);
    return build_thing_value(b, build_import_value(b, root, frame, value));
}

/* const c: f32[3] = [...]; without a value it is in the weights file; without a type it is a constant of the text. */
static Thing declare_const(Builder *b, const AstStmt *stmt, Str name)
{
    const AstTarget *target = stmt->target;
    if (stmt->value) {
        Const c;
        if (!build_eval_const(b, stmt->value, &c))
            return build_thing_bad();
        return target->type ? typed_constant(b, target, name, &c, stmt->value->place) : build_thing_const(c);
    }
    if (!target->type)
        return build_complain(b, target->name->place,
                              "a constant needs a value, or a type when the weights file has its value"),
               build_thing_bad();
    uint32_t bits;
    const Type *type = declared_type(b, target->type, &bits);
    if (!type)
        return build_thing_bad();
    Tensor *tensor = shape_elements(&type->shape) ? ARENA_NEW(b->arena, Tensor) : tensor_new(b->arena, type);
    tensor->type = type;
    ValueId value = graph_add_const(
        b->frame->graph, tensor, target->name->temporary ? (Str){0} : build_value_name(b, name), target->name->place);
    graph_value(b->frame->graph, value)->bits = bits;
    if (target->name->temporary)
        build_want_index(b, target->name, value);
    return build_thing_value(b, value);
}

static void build_declare(Builder *b, const AstStmt *stmt)
{
    const AstName *target = stmt->target->name;
    Str name = build_name_text(b, target);
    if (target->temporary && stmt->role != T_CONST) {
        build_complain(b, target->place, "a param or state needs a name");
        return;
    }
    Thing thing = stmt->role == T_CONST ? declare_const(b, stmt, name) : declare_param(b, stmt, name);
    build_bind(b, name, target->place, thing);
    build_apply_marks(b, stmt, thing);
}

static bool is_result(const AstFunction *function, Str name)
{
    for (uint32_t i = 0; function && i < function->result_count; i++)
        if (str_eq(function->result[i].name->text, name))
            return true;
    return false;
}

/* `x <- %3`: a graph's result under the name of an input, which goes on naming the input. */
static void give_result(Builder *b, const AstStmt *stmt, Str name, ValueId input, Thing thing)
{
    ValueId value;
    DType dtype = value_type(b->frame->graph, input)->dtype;
    if (build_as_value(b, thing, dtype, stmt->value->place, &value) &&
        !map_add(&b->frame->given, str_copy(b->scratch, name), value))
        build_complain(b, stmt->place, "'" STR_FMT "' is updated already", STR_ARG(name));
}

bool build_in_body(const Frame *frame)
{
    while (frame && !frame->around)
        frame = frame->caller;
    return frame != NULL;
}

static void build_update(Builder *b, const AstStmt *stmt)
{
    const AstName *target = stmt->target->name;
    Graph *graph = b->frame->graph;
    Str name = build_name_text(b, target);
    Binding *binding = build_lookup(b, name);
    Thing thing = build_eval(b, stmt->value);
    ValueId source;

    if (!binding) {
        build_complain(b, target->place, "nothing is called '" STR_FMT "' here", STR_ARG(name));
        return;
    }
    if (build_in_body(b->frame)) {
        build_complain(b, target->place,
                       "'" STR_FMT
                       "' cannot be updated in a loop or a branch: updates are made at the end of a run; "
                       "carry or yield the new value, and update it outside",
                       STR_ARG(name));
        return;
    }
    if (binding->thing.kind == THING_BAD || thing.kind == THING_BAD)
        return;
    Value *v = binding->thing.kind == THING_VALUE ? graph_value(graph, binding->thing.value) : NULL;
    if (v && v->role == ROLE_INPUT && is_result(b->frame->entry, name)) {
        give_result(b, stmt, name, binding->thing.value, thing);
        return;
    }
    if (!v || !build_can_update(b, binding->thing.value)) {
        build_complain(b, target->place, "only a param or a state can be updated; '" STR_FMT "' is neither",
                       STR_ARG(name));
        return;
    }
    ValueId to = binding->thing.value;
    if (build_as_value(b, thing, v->type->dtype, stmt->value->place, &source) &&
        build_check_type(b, STR("the new value"), value_type(graph, source), graph->value[to].type,
                         stmt->value->place) &&
        build_claim_update(b, to, name, stmt->place))
        graph_add_update(graph, to, build_guarded(b, to, source, stmt->place), stmt->place);
}

static bool eval_condition(Builder *b, const AstExpr *expr, Const *cond)
{
    Thing thing = build_eval(b, expr);
    *cond = thing.c;
    if (thing.kind == THING_VALUE)
        return build_complain(b, expr->place,
                              "this 'if' chooses while parsing, and its condition is a tensor; one that gives values "
                              "may have it: y = if (...) { ... yield a } else { ... yield b }");
    return build_single(b, thing, expr->place).kind == THING_CONST;
}

static void spoil_block(Builder *b, const AstBlock *block);

/* What any branch would assign is bad where nobody knows which one it is: no more errors about it.  A chain of
 * `else if` may be long. */
static void spoil_branches(Builder *b, const AstStmt *stmt)
{
    for (;;) {
        spoil_block(b, stmt->body);
        const AstBlock *otherwise = stmt->otherwise;
        if (!otherwise || otherwise->count != 1 || otherwise->stmt->kind != AST_IF) {
            if (otherwise)
                spoil_block(b, otherwise);
            return;
        }
        stmt = otherwise->stmt;
    }
}

static void spoil_block(Builder *b, const AstBlock *block)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const AstStmt *stmt = &block->stmt[i];
        if (stmt->kind == AST_IF)
            spoil_branches(b, stmt);
        bool assigns = stmt->kind == AST_ASSIGN || stmt->kind == AST_DECLARE || stmt->kind == AST_FOR;
        for (uint32_t t = 0; assigns && t < stmt->target_count; t++)
            if (!stmt->target[t].name->part_count)
                build_rebind(b, stmt->target[t].name->text, stmt->target[t].name->place, build_thing_bad());
    }
}

/* `else if` goes round: a long chain nests no deeper than a short one. */
static void build_if(Builder *b, const AstStmt *stmt)
{
    for (;;) {
        b->branch = stmt;
        Const cond;
        if (!build_step(b, stmt->place, 1))
            return;
        bool known = eval_condition(b, stmt->value, &cond);
        if (known && cond.kind != C_BOOL)
            known =
                build_complain(b, stmt->value->place, "'if' takes true or false, not %s", const_kind_name(cond.kind));
        if (!known) {
            spoil_branches(b, stmt);
            return;
        }
        const AstBlock *chosen = cond.i ? stmt->body : stmt->otherwise;
        if (!chosen)
            return;
        if (cond.i || chosen->count != 1 || chosen->stmt->kind != AST_IF) {
            build_block(b, chosen);
            return;
        }
        stmt = chosen->stmt;
    }
}

static void build_stmt(Builder *b, const AstStmt *stmt)
{
    const AstStmt *outer = b->stmt, *branch = b->branch;
    b->stmt = stmt;
    switch (stmt->kind) {
    case AST_DECLARE:
        build_declare(b, stmt);
        break;
    case AST_ASSIGN:
        build_assign(b, stmt);
        break;
    case AST_UPDATE:
        build_update(b, stmt);
        break;
    case AST_FOR:
        build_for(b, stmt);
        break;
    case AST_IF:
        build_if(b, stmt);
        break;
    case AST_YIELD:
        build_yield(b, stmt);
        break;
    case AST_MINIMIZE:
        build_minimize(b, stmt);
        break;
    }
    b->stmt = outer;
    b->branch = branch;
}

void build_block(Builder *b, const AstBlock *block)
{
    for (uint32_t i = 0; i < block->count && !b->exhausted; i++) {
        if (!build_step(b, block->stmt[i].place, 1) || !build_go_deeper(b, block->stmt[i].place))
            return;
        build_stmt(b, &block->stmt[i]);
        b->depth--;
    }
}
