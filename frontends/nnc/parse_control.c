/* Loops and branches whose rounds and choices depend on data.  They are expressions:
 *
 *   while (COND) with (x = x0, ...) max = N, unroll = N { ... } next (x <- y, ...)
 *   do with (x = x0, ...) max = N, unroll = N { ... } next (x <- y, ...) while (COND)
 *   scan (x in xs, ..., axis = N) with (h = h0, ...) unroll = N { ... } next (h <- h1, ...) stack (y, ...)
 *   case (k) { 0: { ... yield a, b }  1: a, b  else: ... }
 *   if (c) { ... yield a } else { ... yield b }
 *
 * A condition may be a block, too, `while { ... yield c }`: so it prints where it takes more than one op.  `do`,
 * `scan`, `stack`, `max` and `unroll` are words in their place alone, and names elsewhere. */
#include "frontends/nnc/parse.h"

static bool at_word(const Parser *p, const char *word, TokenKind next)
{
    return p->token.kind == T_NAME && !p->token.quoted && str_is(p->token.text, word) && p->next.kind == next;
}

/* Is this `scan (x in`, and no call? Reads ahead on a copy of the lexer. */
static bool at_scan(const Parser *p)
{
    if (!at_word(p, "scan", T_LPAREN))
        return false;
    Lexer lexer = p->lexer;
    Diag silent = {.arena = p->arena, .error_count = DIAG_LIMIT + 1};
    lexer.diag = &silent;
    lex_next(&lexer);
    return lex_next(&lexer).kind == T_IN;
}

bool parse_at_control(const Parser *p)
{
    TokenKind kind = p->token.kind;
    return kind == T_WHILE || kind == T_CASE || kind == T_IF || at_word(p, "do", T_WITH) || at_scan(p);
}

/* Pieces */

/* A block inside an expression: lines count again.  The nesting of expressions goes on: it bounds the stack. */
static const AstBlock *inner_block(Parser *p)
{
    uint32_t paren = p->paren;
    p->paren = 0;
    const AstBlock *block = parse_block(p);
    p->paren = paren;
    return block;
}

static const AstBlock *yield_block(Parser *p, const AstStmt *yield)
{
    AstBlock *block = ARENA_NEW(p->arena, AstBlock);
    *block = (AstBlock){arena_copy(p->arena, yield, sizeof *yield), 1};
    return block;
}

/* a, b */
static bool parse_values(Parser *p, AstStmt *yield)
{
    LIST(const AstExpr *) list;
    LIST_START(list);
    yield->kind = AST_YIELD;
    do {
        const AstExpr *value = parse_expr(p);
        LIST_PUSH(p, list, value);
    } while (!p->panic && parse_accept(p, T_COMMA));
    yield->yield = LIST_KEEP(p, list);
    yield->yield_count = list.count;
    yield->place = parse_place(p, yield->place);
    return !p->panic;
}

bool parse_yield(Parser *p, AstStmt *stmt)
{
    parse_advance(p);
    return parse_values(p, stmt);
}

static const AstExpr *in_parentheses(Parser *p, const char *what)
{
    if (!parse_expect(p, T_LPAREN, what))
        return NULL;
    p->paren++;
    const AstExpr *expr = parse_expr(p);
    p->paren--;
    return !p->panic && parse_expect(p, T_RPAREN, "')'") ? expr : NULL;
}

static bool parse_carry(Parser *p, AstCarry *carry)
{
    if (!parse_target(p, &carry->target) || !parse_expect(p, T_ASSIGN, "'=' and the first value"))
        return false;
    carry->first = parse_expr(p);
    return !p->panic;
}

/* with (x = x0, i: i32[] = 0) */
static bool parse_with(Parser *p, AstControl *control)
{
    LIST(AstCarry) list;
    LIST_START(list);
    if (!parse_expect(p, T_WITH, "'with' and what the loop carries") || !parse_expect(p, T_LPAREN, "'('"))
        return false;
    p->paren++;
    do {
        AstCarry carry = {0};
        if (!parse_carry(p, &carry))
            break;
        LIST_PUSH(p, list, carry);
    } while (parse_accept(p, T_COMMA));
    p->paren--;
    control->carry = LIST_KEEP(p, list);
    control->carry_count = list.count;
    return !p->panic && parse_expect(p, T_RPAREN, "',' or ')'");
}

/* next (x <- y, i <- j) */
static bool parse_next(Parser *p, AstControl *control)
{
    LIST(AstNext) list;
    LIST_START(list);
    if (!parse_expect(p, T_NEXT, "'next' and the next values of what is carried") || !parse_expect(p, T_LPAREN, "'('"))
        return false;
    p->paren++;
    do {
        AstNext next = {.name = parse_name(p, "a name that is carried")};
        if (!next.name || !parse_expect(p, T_UPDATE, "'<-' and the next value"))
            break;
        next.value = parse_expr(p);
        LIST_PUSH(p, list, next);
    } while (!p->panic && parse_accept(p, T_COMMA));
    p->paren--;
    control->next = LIST_KEEP(p, list);
    control->next_count = list.count;
    return !p->panic && parse_expect(p, T_RPAREN, "',' or ')'");
}

/* max = 10, unroll = 2 */
static bool parse_limits(Parser *p, AstControl *control)
{
    for (;;) {
        const AstExpr **limit = at_word(p, "max", T_ASSIGN)      ? &control->most
                                : at_word(p, "unroll", T_ASSIGN) ? &control->unroll
                                                                 : NULL;
        if (!limit)
            return !p->panic;
        if (*limit)
            return parse_error(p, p->token.place, "'" STR_FMT "' is given twice", STR_ARG(p->token.text));
        parse_advance(p);
        parse_advance(p);
        *limit = parse_expr(p);
        parse_accept(p, T_COMMA);
    }
}

static bool parse_round(Parser *p, AstControl *control)
{
    return parse_limits(p, control) && (control->body = inner_block(p)) != NULL;
}

/* Loops */

static bool parse_while(Parser *p, AstControl *control)
{
    AstStmt yield = {.kind = AST_YIELD};
    control->kind = AST_WHILE;
    parse_advance(p);
    yield.place = p->token.place;
    if (p->token.kind == T_LBRACE) {
        control->condition = inner_block(p);
    } else {
        const AstExpr *condition = in_parentheses(p, "'(' and the condition");
        if (!condition)
            return false;
        yield.yield = arena_copy(p->arena, &condition, sizeof condition);
        yield.yield_count = 1;
        yield.place = condition->place;
        control->condition = yield_block(p, &yield);
    }
    return control->condition && parse_with(p, control) && parse_round(p, control) && parse_next(p, control);
}

static bool parse_do(Parser *p, AstControl *control)
{
    control->kind = AST_DO;
    parse_advance(p);
    if (!parse_with(p, control) || !parse_round(p, control) || !parse_next(p, control) ||
        !parse_expect(p, T_WHILE, "'while' and the condition of another round"))
        return false;
    return (control->test = in_parentheses(p, "'(' and the condition")) != NULL;
}

/* (x in xs, y in ys, axis = 1) */
static bool parse_elements(Parser *p, AstControl *control)
{
    LIST(AstElement) list;
    LIST_START(list);
    p->paren++;
    parse_advance(p);
    do {
        if (at_word(p, "axis", T_ASSIGN) && !control->axis) {
            parse_advance(p);
            parse_advance(p);
            control->axis = parse_expr(p);
            continue;
        }
        AstElement element = {.name = parse_name(p, "a name for the elements")};
        if (!element.name || !parse_expect(p, T_IN, "'in' and the sequence"))
            break;
        element.sequence = parse_expr(p);
        LIST_PUSH(p, list, element);
    } while (!p->panic && parse_accept(p, T_COMMA));
    p->paren--;
    control->element = LIST_KEEP(p, list);
    control->element_count = list.count;
    return !p->panic && parse_expect(p, T_RPAREN, "',' or ')'");
}

static bool parse_stack(Parser *p, AstControl *control)
{
    AstStmt values = {0};
    parse_advance(p);
    p->paren++;
    parse_advance(p);
    bool ok = parse_values(p, &values);
    p->paren--;
    control->stack = values.yield;
    control->stack_count = values.yield_count;
    return ok && parse_expect(p, T_RPAREN, "',' or ')'");
}

static bool parse_scan(Parser *p, AstControl *control)
{
    control->kind = AST_SCAN;
    parse_advance(p);
    if (!parse_elements(p, control) || (p->token.kind == T_WITH && !parse_with(p, control)) ||
        !parse_round(p, control) || ((control->carry_count || p->token.kind == T_NEXT) && !parse_next(p, control)))
        return false;
    return !at_word(p, "stack", T_LPAREN) || parse_stack(p, control);
}

/* Branches */

/* { ... yield a }, or `a, b` alone: what is given as it is */
static const AstBlock *parse_branch_body(Parser *p)
{
    AstStmt yield = {.place = p->token.place};
    if (p->token.kind == T_LBRACE)
        return inner_block(p);
    return parse_values(p, &yield) ? yield_block(p, &yield) : NULL;
}

static bool parse_branch(Parser *p, AstBranch *branch)
{
    branch->place = p->token.place;
    if (!parse_accept(p, T_ELSE))
        branch->key = parse_expr(p);
    branch->place = parse_place(p, branch->place);
    if (p->panic || !parse_expect(p, T_COLON, "':' and the branch"))
        return false;
    branch->body = parse_branch_body(p);
    return branch->body && !p->panic;
}

static bool parse_branches(Parser *p, AstControl *control)
{
    LIST(AstBranch) list;
    LIST_START(list);
    while (!p->panic && p->token.kind != T_RBRACE && p->token.kind != T_END) {
        AstBranch branch = {0};
        if (!parse_branch(p, &branch))
            break;
        LIST_PUSH(p, list, branch);
        parse_accept(p, T_SEMICOLON);
    }
    control->branch = LIST_KEEP(p, list);
    control->branch_count = list.count;
    return !p->panic;
}

/* After an error among the branches: past the brace that closes them, so that the statement ends with them. */
static void skip_branches(Parser *p)
{
    uint32_t braces = 0;
    for (; p->token.kind != T_END; parse_advance(p)) {
        TokenKind kind = p->token.kind;
        if ((kind == T_RBRACE && braces == 0) || (p->token.newline_before && (kind == T_GRAPH || kind == T_FN)))
            break;
        braces += kind == T_LBRACE;
        braces -= kind == T_RBRACE;
    }
    if (p->token.kind == T_RBRACE)
        parse_advance(p);
}

static bool parse_case(Parser *p, AstControl *control)
{
    uint32_t paren = p->paren;
    control->kind = AST_CASE;
    parse_advance(p);
    if (!(control->test = in_parentheses(p, "'(' and the selector")) || !parse_expect(p, T_LBRACE, "'{'"))
        return false;
    p->paren = 0;
    bool ok = parse_branches(p, control);
    p->paren = paren;
    if (!ok)
        skip_branches(p);
    return ok && parse_expect(p, T_RBRACE, "'}'");
}

/* Up to and with `else`; what stands behind that is left to the caller. */
static bool parse_if(Parser *p, AstControl *control, AstBranch *branch)
{
    *control = (AstControl){.kind = AST_CHOICE, .branch = branch, .branch_count = 2};
    branch[0].place = p->token.place;
    parse_advance(p);
    control->test = parse_expr(p);
    if (p->panic || !(branch[0].body = inner_block(p)))
        return false;
    branch[1].place = p->token.place;
    if (!p->panic && p->token.kind != T_ELSE)
        return parse_error(p, branch[0].place, "this 'if' gives a value, so it needs an 'else' after its branch");
    parse_advance(p);
    return !p->panic;
}

typedef struct ElseIf { /* the branch `else`, which yields the value of another `if` */
    AstExpr value;
    const AstExpr *yielded;
    AstStmt yield;
    AstBlock body;
    AstControl control;
    AstBranch branch[2];
} ElseIf;

static ElseIf *else_if(Parser *p)
{
    ElseIf *next = ARENA_NEW(p->arena, ElseIf);
    next->value = (AstExpr){.kind = AST_CONTROL, .depth = 1, .place = p->token.place, .u.control = &next->control};
    next->yielded = &next->value;
    next->yield = (AstStmt){.kind = AST_YIELD, .place = p->token.place, .yield = &next->yielded, .yield_count = 1};
    next->body = (AstBlock){&next->yield, 1};
    return next;
}

/* `else if` goes round: a long chain nests no deeper than a short one.  All its parts end where it ends. */
static bool parse_choice(Parser *p, AstControl *control)
{
    LIST(ElseIf *) chain;
    LIST_START(chain);
    AstBranch *branch = ARENA_ARRAY(p->arena, AstBranch, 2);
    bool ok = parse_if(p, control, branch);
    while (ok && p->token.kind == T_IF) {
        ElseIf *next = else_if(p);
        branch[1].body = &next->body;
        branch = next->branch;
        ok = parse_if(p, &next->control, branch);
        LIST_PUSH(p, chain, next);
    }
    ok = ok && (branch[1].body = inner_block(p)) != NULL;
    for (uint32_t i = 0; i < chain.count; i++)
        chain.item[i]->value.place = chain.item[i]->yield.place = parse_place(p, chain.item[i]->value.place);
    return ok && !p->panic;
}

const AstControl *parse_control(Parser *p)
{
    AstControl *control = ARENA_NEW(p->arena, AstControl);
    bool ok;
    if (p->token.kind == T_WHILE)
        ok = parse_while(p, control);
    else if (p->token.kind == T_CASE)
        ok = parse_case(p, control);
    else if (p->token.kind == T_IF)
        ok = parse_choice(p, control);
    else
        ok = at_word(p, "do", T_WITH) ? parse_do(p, control) : parse_scan(p, control);
    return ok ? control : NULL;
}
