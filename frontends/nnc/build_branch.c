/* Branches: `case` on an i32, `if` on a bool.  On a constant both choose while parsing, and what they choose is built
 * into the graph around. */
#include "frontends/nnc/build.h"

#include "ops/meaning.h"

#define ADVICE        "yield it as a result of the branch"
#define MOST_BRANCHES 1024

/* Chosen while parsing */

static Thing yielded(const Yield *yield)
{
    return yield->count == 1 ? yield->thing[0]
                             : (Thing){.kind = THING_MANY, .many = yield->thing, .count = yield->count};
}

static bool has_yield(Builder *b, const Yield *yield, Place place)
{
    return yield->done || build_complain(b, place, "this branch has no 'yield': it gives no value");
}

static Thing build_chosen(Builder *b, const AstBranch *branch)
{
    Yield yield;
    build_scope_push(b);
    bool ok = build_yield_block(b, branch->body, &yield);
    build_scope_pop(b);
    if (!ok)
        return has_yield(b, &yield, branch->place), build_thing_bad();
    return yielded(&yield);
}

/* Branches as bodies */

typedef struct Choice {
    const AstControl *ast;
    Place place;
    Frame *frame; /* per branch */
    Yield *yield;
    uint32_t errors;
} Choice;

static bool build_branches(Builder *b, Choice *choice)
{
    const AstControl *ast = choice->ast;
    bool ok = true;
    for (uint32_t i = 0; i < ast->branch_count && !b->exhausted; i++) {
        build_body_enter(b, &choice->frame[i], ADVICE);
        build_yield_block(b, ast->branch[i].body, &choice->yield[i]);
        ok &= has_yield(b, &choice->yield[i], ast->branch[i].place);
        build_body_leave(b);
    }
    return ok && !b->exhausted && b->diag->error_count == choice->errors;
}

static bool same_count(Builder *b, const Choice *choice)
{
    bool ok = true;
    for (uint32_t i = 1; i < choice->ast->branch_count; i++) {
        const Yield *first = &choice->yield[0], *yield = &choice->yield[i];
        if (yield->count == first->count)
            continue;
        ok = build_complain(b, yield->at, "this branch gives %u value%s, the first one %u", yield->count,
                            yield->count == 1 ? "" : "s", first->count);
        diag_note(b->diag, first->at, "the first branch");
    }
    return ok;
}

/* The dtype of a bare number: that of the same result in a branch that gives a tensor. */
static DType result_dtype(const Choice *choice, uint32_t result)
{
    DType dtype = DT_F32;
    bool found = false;
    for (uint32_t i = 0; i < choice->ast->branch_count; i++) {
        const Thing *thing = &choice->yield[i].thing[result];
        if (thing->kind == THING_VALUE)
            return value_type(choice->frame[i].graph, thing->value)->dtype;
        if (thing->kind != THING_CONST)
            continue;
        DType own = const_default_dtype(&thing->c);
        own = own == DT_I64 && const_fits(&thing->c, DT_I32) ? DT_I32 : own;
        dtype = found && own != dtype ? DT_F32 : own;
        found = true;
    }
    return dtype;
}

static bool add_result(Builder *b, Choice *choice, uint32_t branch, uint32_t result)
{
    const Yield *yield = &choice->yield[branch];
    Frame *frame = &choice->frame[branch], *outer = b->frame;
    ValueId value;

    b->frame = frame;
    bool ok = build_as_value(b, yield->thing[result], result_dtype(choice, result), yield->place[result], &value);
    b->frame = outer;
    if (!ok)
        return false;
    graph_add_output(frame->graph, value, (Str){0});
    const Graph *first = choice->frame[0].graph;
    const Type *type = value_type(frame->graph, value);
    const Type *wanted = branch ? value_type(first, first->output[result].value) : type;
    if (type == wanted)
        return true;
    build_complain(b, yield->place[result], "this branch gives " STR_FMT ", the first one " STR_FMT,
                   STR_ARG(type_show(b->scratch, type)), STR_ARG(type_show(b->scratch, wanted)));
    diag_note(b->diag, choice->yield[0].place[result], "the first branch");
    return false;
}

static bool add_results(Builder *b, Choice *choice)
{
    for (uint32_t r = 0; r < choice->yield[0].count; r++)
        for (uint32_t i = 0; i < choice->ast->branch_count; i++)
            if (!add_result(b, choice, i, r))
                return false;
    return true;
}

static Thing add_choice(Builder *b, Choice *choice, ValueId selector, const int64_t *keys)
{
    uint32_t count = choice->ast->branch_count, in_count = 1;
    ValueId *in = arena_copy(b->scratch, &selector, sizeof selector);
    Graph **sub = ARENA_ARRAY(b->scratch, Graph *, count);

    build_share_captures(b, choice->frame, count, &in, &in_count);
    for (uint32_t i = 0; i < count; i++)
        sub[i] = choice->frame[i].graph;
    Branches branches = {.keys = count - 1, .captured = in_count - 1, .key = keys};
    return build_results(b, op_build_choice(b->frame->graph, &branches, in, sub, choice->place));
}

static Thing build_bodies(Builder *b, const AstExpr *expr, ValueId selector, const int64_t *keys)
{
    const AstControl *ast = expr->u.control;
    Choice choice = {.ast = ast, .place = expr->place, .errors = b->diag->error_count};
    choice.frame = ARENA_ARRAY(b->scratch, Frame, ast->branch_count);
    choice.yield = ARENA_ARRAY(b->scratch, Yield, ast->branch_count);
    bool ok = build_branches(b, &choice) && same_count(b, &choice);
    return ok && add_results(b, &choice) ? add_choice(b, &choice, selector, keys) : build_thing_bad();
}

/* if */

/* What a branch is made of that has been written as `else if`, or NULL. */
static const AstExpr *as_else_if(const AstBranch *branch)
{
    const AstStmt *stmt = branch->body->stmt;
    bool yields = branch->body->count == 1 && stmt->kind == AST_YIELD && stmt->yield_count == 1;
    const AstExpr *value = yields ? stmt->yield[0] : NULL;
    return value && value->kind == AST_CONTROL && value->u.control->kind == AST_CHOICE ? value : NULL;
}

/* A condition: a constant, or one bool[]. */
static bool eval_test(Builder *b, const AstExpr *expr, Thing *test)
{
    *test = build_single(b, build_eval(b, expr), expr->place);
    if (test->kind == THING_BAD || (test->kind == THING_CONST && test->c.kind == C_BOOL))
        return test->kind == THING_CONST;
    if (test->kind == THING_CONST)
        return build_complain(b, expr->place, "'if' takes true or false, not %s", const_kind_name(test->c.kind));
    const Type *type = value_type(b->frame->graph, test->value);
    return (type->dtype == DT_BOOL && !type->shape.rank) ||
           build_complain(b, expr->place, "'if' takes one bool[], not " STR_FMT "; to choose by element use select",
                          STR_ARG(type_show(b->scratch, type)));
}

/* Would the chain, a branch within a branch for each `else if`, nest deeper than the text of it can be read again? */
static bool is_long(const Builder *b, const AstExpr *expr)
{
    uint32_t links = 0;
    for (; expr; expr = as_else_if(&expr->u.control->branch[1]))
        links++;
    return b->frame->nesting + links > DEEPEST_BODY;
}

typedef struct Chain { /* branches side by side */
    AstBranch *branch;
    ValueId *test; /* of all but the last, which is for when none holds */
    int64_t *key;
    uint32_t tests;
} Chain;

static void chain_add(Chain *chain, const AstBranch *branch, ValueId test)
{
    chain->key[chain->tests] = chain->tests;
    chain->branch[chain->tests] = *branch;
    chain->test[chain->tests++] = test;
}

/* The links from `expr` on, whose condition is `first`; what is behind as many as one case takes is its last branch. */
static bool find_chain(Builder *b, const AstExpr *expr, ValueId first, Chain *chain)
{
    Thing test = build_thing_value(b, first);
    const AstBranch *branch = expr->u.control->branch;
    chain_add(chain, &branch[0], first);
    for (const AstExpr *next; chain->tests + 1 < MOST_BRANCHES && (next = as_else_if(&branch[1]));) {
        if (!build_step(b, next->place, COST_OF_CALL) || !eval_test(b, next->u.control->test, &test))
            return false;
        branch = next->u.control->branch;
        if (test.kind == THING_CONST && test.c.i) {
            chain->branch[chain->tests] = branch[0];
            return true;
        }
        if (test.kind != THING_CONST)
            chain_add(chain, &branch[0], test.value);
    }
    chain->branch[chain->tests] = branch[1];
    return true;
}

/* The number of the first condition that holds. */
static ValueId first_of(Builder *b, const Chain *chain, Place place)
{
    ValueId number[2] = {NONE, NONE};
    for (uint32_t i = chain->tests + 1; i-- > 0;) {
        if (!build_as_value(b, build_thing_const(const_int(i)), DT_I32, place, &number[0]))
            return NONE;
        ValueId in[3] = {i < chain->tests ? chain->test[i] : NONE, number[0], number[1]};
        number[1] = i < chain->tests ? build_value(b, OP_SELECT, in, 3, NULL, place) : number[0];
    }
    return number[1];
}

/* A long chain of tensors is one case: all of its conditions are computed, and the first that holds chooses. */
static Thing build_chain(Builder *b, const AstExpr *expr, ValueId first)
{
    Chain chain = {.branch = ARENA_ARRAY(b->scratch, AstBranch, MOST_BRANCHES),
                   .test = ARENA_ARRAY(b->scratch, ValueId, MOST_BRANCHES),
                   .key = ARENA_ARRAY(b->scratch, int64_t, MOST_BRANCHES)};
    if (!find_chain(b, expr, first, &chain))
        return build_thing_bad();
    AstControl ast = *expr->u.control;
    ast.kind = AST_CASE;
    ast.branch = chain.branch;
    ast.branch_count = chain.tests + 1;
    AstExpr flat = *expr;
    flat.u.control = &ast;
    ValueId selector = first_of(b, &chain, expr->place);
    return selector == NONE ? build_thing_bad() : build_bodies(b, &flat, selector, chain.key);
}

/* What a constant does not choose goes round: a long chain nests no deeper than a short one. */
Thing build_choice(Builder *b, const AstExpr *expr)
{
    static const int64_t key = 1;
    Thing test;
    for (const AstExpr *next;; expr = next) {
        if (!eval_test(b, expr->u.control->test, &test))
            return build_thing_bad();
        if (test.kind != THING_CONST)
            return is_long(b, expr) ? build_chain(b, expr, test.value) : build_bodies(b, expr, test.value, &key);
        const AstBranch *chosen = &expr->u.control->branch[!test.c.i];
        if (test.c.i || !(next = as_else_if(chosen)))
            return build_chosen(b, chosen);
        if (!build_step(b, next->place, COST_OF_CALL))
            return build_thing_bad();
    }
}

/* case */

static bool report_twice(Builder *b, const AstControl *ast, uint32_t i, uint32_t earlier)
{
    build_complain(b, ast->branch[i].place, "there is a branch for this already");
    diag_note(b->diag, ast->branch[earlier].place, "the first one");
    return false;
}

static bool eval_key(Builder *b, const AstControl *ast, uint32_t i, Map *known, int64_t *key)
{
    const AstExpr *expr = ast->branch[i].key;
    if (!build_eval_int(b, expr, "a key", NULL, key))
        return false;
    if (*key < INT32_MIN || *key > INT32_MAX)
        return build_complain(b, expr->place, "a key is an i32; this one does not fit");
    uint32_t earlier = map_get(known, map_key(key, sizeof *key));
    if (earlier != MAP_NONE)
        return report_twice(b, ast, i, earlier);
    map_put(known, map_key(key, sizeof *key), i);
    return true;
}

/* The keys in order; `else` stands last. */
static bool eval_keys(Builder *b, const AstControl *ast, Place place, int64_t *keys)
{
    Map known = {.arena = b->scratch};
    bool ok = true;
    if (!ast->branch_count || ast->branch[ast->branch_count - 1].key)
        ok = build_complain(b, place, "a case needs an 'else' branch, as its last; `else: x` gives x as it is");
    if (ast->branch_count > MOST_BRANCHES)
        return build_complain(b, place, "%u branches; at most %d are possible", ast->branch_count, MOST_BRANCHES);
    for (uint32_t i = 0; ok && i + 1 < ast->branch_count; i++)
        ok = ast->branch[i].key ? eval_key(b, ast, i, &known, &keys[i])
                                : build_complain(b, ast->branch[i].place, "'else' is the last branch");
    return ok;
}

static Thing choose(Builder *b, const AstControl *ast, const int64_t *keys, int64_t selector)
{
    Branches branches = {.keys = ast->branch_count - 1, .key = keys};
    return build_chosen(b, &ast->branch[branches_select(&branches, selector)]);
}

Thing build_case(Builder *b, const AstExpr *expr)
{
    const AstControl *ast = expr->u.control;
    Place place = ast->test->place;
    int64_t *keys = ARENA_ARRAY(b->scratch, int64_t, ast->branch_count);
    Thing test = build_single(b, build_eval(b, ast->test), place);

    if (!eval_keys(b, ast, expr->place, keys) || test.kind == THING_BAD)
        return build_thing_bad();
    if (test.kind == THING_CONST && test.c.kind == C_INT)
        return choose(b, ast, keys, test.c.i);
    if (test.kind == THING_CONST)
        return build_complain(b, place, "'case' takes an integer, not %s", const_kind_name(test.c.kind)),
               build_thing_bad();
    const Type *type = value_type(b->frame->graph, test.value);
    if (type->dtype == DT_I32 && !type->shape.rank)
        return build_bodies(b, expr, test.value, keys);
    const char *hint = type->shape.rank               ? ""
                       : type->dtype == DT_BOOL       ? ": a choice by a bool is written if (...) {...} else {...}"
                       : !dtype_is_float(type->dtype) ? ": convert it, i32(...)"
                                                      : "";
    build_complain(b, place, "'case' takes one i32[], not " STR_FMT "%s", STR_ARG(type_show(b->scratch, type)), hint);
    return build_thing_bad();
}
