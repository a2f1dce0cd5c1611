/* Loops: `while` and `do`.
 *
 * First values are built in the graph around; condition and body are frames of their own, with the carried values as
 * inputs; then all of them get the same captured inputs, and the node is made. */
#include "frontends/nnc/build.h"
#include "frontends/nnc/build_loop.h"

#include "ops/meaning.h"

#define ADVICE "carry it (with ... next)"

/* First values */

/* A number takes the type that is written, or is an i32[], f32[] or bool[]; an integer beyond i32 an i64[]. */
static DType first_dtype(const Const *c)
{
    DType dtype = const_default_dtype(c);
    return dtype == DT_I64 && const_fits(c, DT_I32) ? DT_I32 : dtype;
}

static bool typed_first(Builder *b, const AstCarry *carry, const Const *c, const Type *type, ValueId *value)
{
    const Tensor *tensor = build_tensor(b, c, type, carry->first->place);
    if (tensor && type->shape.rank == 0)
        *value = build_scalar_value(b, type->dtype, c);
    else if (tensor)
        *value = graph_add_const(b->frame->graph, tensor, (Str){0}, carry->first->place);
    return tensor != NULL;
}

static bool first_value(Builder *b, const AstCarry *carry, ValueId *value)
{
    const AstTarget *target = &carry->target;
    Place place = carry->first->place;
    Thing thing = build_single(b, build_eval(b, carry->first), place);
    const Type *type = target->type ? build_eval_type(b, target->type, (Str){0}) : NULL;

    if (thing.kind == THING_BAD || (target->type && !type))
        return false;
    if (thing.kind == THING_CONST && type)
        return typed_first(b, carry, &thing.c, type, value);
    DType dtype = DT_F32;
    if (thing.kind == THING_CONST && (thing.c.kind == C_LIST || thing.c.kind == C_INT))
        dtype = first_dtype(&thing.c);
    else if (thing.kind == THING_CONST)
        dtype = const_default_dtype(&thing.c);
    if (!build_as_value(b, thing, dtype, place, value))
        return false;
    return !type || build_check_type(b, build_name_text(b, target->name), value_type(b->frame->graph, *value), type,
                                     target->type->place);
}

void build_loop_start(Builder *b, LoopBuilder *loop, const AstExpr *expr)
{
    const AstControl *ast = expr->u.control;
    *loop = (LoopBuilder){.ast = ast, .place = expr->place, .errors = b->diag->error_count};
    for (uint32_t i = 0; i < ast->carry_count; i++) {
        ValueId value;
        if (first_value(b, &ast->carry[i], &value))
            build_loop_carry(b, loop, value);
        else
            loop->failed = true;
    }
}

void build_loop_carry(Builder *b, LoopBuilder *loop, ValueId first)
{
    ARENA_PUSH(b->scratch, loop->in, loop->carried, loop->capacity, first);
}

const Type *build_loop_type(const LoopBuilder *loop, const Frame *around, uint32_t i)
{
    return value_type(around->graph, loop->in[i]);
}

/* Bodies */

void build_loop_enter(Builder *b, LoopBuilder *loop, Frame *frame)
{
    build_body_enter(b, frame, ADVICE);
    for (uint32_t i = 0; i < loop->ast->carry_count; i++)
        build_carried_input(b, &loop->ast->carry[i].target, build_loop_type(loop, frame->around, i));
    for (uint32_t i = loop->ast->carry_count; i < loop->carried; i++)
        build_carried_input(b, NULL, build_loop_type(loop, frame->around, i));
}

static bool add_condition(Builder *b, Thing thing, Place place)
{
    ValueId value;
    if (thing.kind == THING_CONST && thing.c.kind != C_BOOL)
        return build_complain(b, place, "a condition is one bool, not %s", const_kind_name(thing.c.kind));
    if (!build_as_value(b, thing, DT_BOOL, place, &value))
        return false;
    const Type *type = value_type(b->frame->graph, value);
    if (type->dtype != DT_BOOL || type->shape.rank)
        return build_complain(b, place, "a condition is one bool[], not " STR_FMT,
                              STR_ARG(type_show(b->scratch, type)));
    graph_add_output(b->frame->graph, value, STR("condition"));
    return true;
}

static void build_condition(Builder *b, LoopBuilder *loop, Frame *frame)
{
    Yield yield;
    build_loop_enter(b, loop, frame);
    build_yield_block(b, loop->ast->condition, &yield);
    bool ok = false;
    if (!yield.done)
        build_complain(b, loop->place, "the condition's block has no 'yield'");
    else if (yield.count != 1)
        build_complain(b, yield.at, "a condition is one bool; this yields %u values", yield.count);
    else
        ok = add_condition(b, yield.thing[0], yield.place[0]);
    loop->failed |= !ok;
    build_body_leave(b);
}

/* next (x <- y) */

static const AstNext *find_next(Builder *b, const AstControl *ast, Str name)
{
    const AstNext *found = NULL;
    for (uint32_t i = 0; i < ast->next_count; i++) {
        const AstNext *next = &ast->next[i];
        if (!str_eq(build_name_text(b, next->name), name))
            continue;
        if (found)
            build_complain(b, next->name->place, "'" STR_FMT "' has a next value already", STR_ARG(name));
        found = next;
    }
    return found;
}

static void report_strangers(Builder *b, const AstControl *ast)
{
    for (uint32_t i = 0; i < ast->next_count; i++) {
        Str name = build_name_text(b, ast->next[i].name);
        Nearest nearest = {.wanted = name};
        bool known = false;
        for (uint32_t c = 0; c < ast->carry_count; c++) {
            Str carried = build_name_text(b, ast->carry[c].target.name);
            known |= str_eq(name, carried);
            build_nearest_try(&nearest, carried);
        }
        Str hint = build_nearest_show(b->scratch, &nearest);
        if (!known)
            build_complain(b, ast->next[i].name->place, "'" STR_FMT "' is not carried: it is not in 'with'" STR_FMT,
                           STR_ARG(name), STR_ARG(hint));
    }
}

static bool add_next(Builder *b, const LoopBuilder *loop, uint32_t i)
{
    const AstName *target = loop->ast->carry[i].target.name;
    Str name = build_name_text(b, target);
    const AstNext *next = find_next(b, loop->ast, name);
    const Type *type = build_loop_type(loop, b->frame->around, i);
    ValueId value;

    if (!next)
        return build_complain(b, target->place, "'" STR_FMT "' is carried, but 'next' does not give its next value",
                              STR_ARG(name));
    Place place = next->value->place;
    if (!build_as_value(b, build_eval(b, next->value), type->dtype, place, &value))
        return false;
    const Type *found = value_type(b->frame->graph, value);
    if (found != type)
        return build_complain(b, place,
                              "the carried '" STR_FMT "' is " STR_FMT ", but its next value is " STR_FMT
                              ": what is carried keeps its type",
                              STR_ARG(name), STR_ARG(type_show(b->scratch, type)),
                              STR_ARG(type_show(b->scratch, found)));
    graph_add_output(b->frame->graph, value, str_copy(b->arena, name));
    return true;
}

void build_loop_next(Builder *b, LoopBuilder *loop)
{
    report_strangers(b, loop->ast);
    for (uint32_t i = 0; i < loop->ast->carry_count; i++)
        loop->failed |= !add_next(b, loop, i);
}

static void build_rounds(Builder *b, LoopBuilder *loop, Frame *frame)
{
    const AstExpr *test = loop->ast->test;
    build_loop_enter(b, loop, frame);
    build_block(b, loop->ast->body);
    build_loop_next(b, loop);
    if (test)
        loop->failed |= !add_condition(b, build_single(b, build_eval(b, test), test->place), test->place);
    build_body_leave(b);
}

/* The node */

static bool limit(Builder *b, const AstExpr *expr, const char *what, int64_t *number)
{
    *number = 0;
    if (!expr)
        return true;
    if (!build_eval_int(b, expr, what, NULL, number))
        return false;
    return *number >= 1 || build_complain(b, expr->place, "%s is at least 1, not %lld", what, (long long)*number);
}

bool build_loop_limits(Builder *b, LoopBuilder *loop)
{
    bool ok = limit(b, loop->ast->most, "max", &loop->most);
    return limit(b, loop->ast->unroll, "unroll", &loop->unroll) && ok;
}

bool build_loop_is_sound(const Builder *b, const LoopBuilder *loop)
{
    return !loop->failed && !b->exhausted && b->diag->error_count == loop->errors;
}

NodeId build_loop_node(Builder *b, LoopBuilder *loop, Frame *frame, uint32_t frames)
{
    uint32_t count = loop->carried;
    build_share_captures(b, frame, frames, &loop->in, &count);
    Loop made = {.carried = loop->carried,
                 .captured = count - loop->carried,
                 .most = loop->most,
                 .unroll = loop->unroll,
                 .condition = frames == 2 ? frame[0].graph : NULL,
                 .body = frame[frames - 1].graph};
    return op_build_loop(b->frame->graph, &made, loop->in, loop->place);
}

static Thing build_loop(Builder *b, const AstExpr *expr)
{
    LoopBuilder loop;
    bool tests_first = expr->u.control->kind == AST_WHILE;
    Frame *frame = ARENA_ARRAY(b->scratch, Frame, 2);

    build_loop_start(b, &loop, expr);
    build_loop_limits(b, &loop);
    if (loop.failed)
        return build_thing_bad();
    if (tests_first)
        build_condition(b, &loop, &frame[0]);
    build_rounds(b, &loop, &frame[tests_first]);
    if (!build_loop_is_sound(b, &loop))
        return build_thing_bad();
    return build_results(b, build_loop_node(b, &loop, frame, 1 + tests_first));
}

Thing build_control(Builder *b, const AstExpr *expr)
{
    AstControlKind kind = expr->u.control->kind;
    if (!b->frame->graph && kind != AST_CHOICE && kind != AST_CASE)
        return build_complain(b, expr->place, "a loop makes tensors: a constant expression cannot use it"),
               build_thing_bad();
    if (b->frame->nesting >= DEEPEST_BODY)
        return build_complain(b, expr->place, "loops and branches nest deeper than %d, through calls", DEEPEST_BODY),
               build_thing_bad();
    if (!build_step(b, expr->place, COST_OF_CALL) || build_has_failed(b, expr->place))
        return build_thing_bad();
    switch (kind) {
    case AST_WHILE:
    case AST_DO:
        return build_loop(b, expr);
    case AST_SCAN:
        return build_scan(b, expr);
    case AST_CASE:
        return build_case(b, expr);
    case AST_CHOICE:
        return build_choice(b, expr);
    }
    return build_thing_bad();
}
