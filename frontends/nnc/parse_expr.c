/* Expressions.  Precedence as NumPy's, from loose to tight:
 * a if c else b · or · and · not · == != < <= > >= · + - · * / // % @ · unary minus · ** · x[...] f(...) .shape */
#include "frontends/nnc/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST_HINT 40 /* of the text of a list */

static const AstExpr bad_expr = {.kind = AST_BAD};

static uint16_t depth_of(const AstExpr *expr)
{
    return expr ? expr->depth : 0;
}

static AstExpr *new_expr(Parser *p, AstExprKind kind, Place begin)
{
    AstExpr *expr = ARENA_NEW(p->arena, AstExpr);
    expr->kind = kind;
    expr->place = parse_place(p, begin);
    expr->depth = 1;
    return expr;
}

static const AstExpr *deeper_than(Parser *p, AstExpr *expr, uint32_t depth)
{
    if (depth >= DEEPEST_EXPR) {
        parse_error(p, expr->place, "this expression nests deeper than %d: give a part of it a name", DEEPEST_EXPR);
        return &bad_expr;
    }
    expr->depth = (uint16_t)(depth + 1);
    return expr;
}

static uint32_t deeper(uint32_t depth, const AstExpr *expr)
{
    return depth_of(expr) > depth ? depth_of(expr) : depth;
}

/* Primaries */

static const AstExpr *constant_expr(Parser *p, Place place, Const value)
{
    AstExpr *expr = new_expr(p, AST_CONST, place);
    expr->u.constant = arena_copy(p->arena, &value, sizeof value);
    return expr;
}

static const AstExpr *parse_number(Parser *p)
{
    Token token = parse_advance(p);
    char buffer[64], *digits = token.text.len < sizeof buffer ? buffer : arena_alloc(p->arena, token.text.len + 1);
    memcpy(digits, token.text.ptr, token.text.len);
    digits[token.text.len] = 0;
    if (token.kind == T_FLOAT) {
        double x = strtod(digits, NULL);
        if (isfinite(x))
            return constant_expr(p, token.place, const_float(x));
        parse_error(p, token.place, "this number does not fit in 64 bits; infinity is inf");
        return &bad_expr;
    }
    errno = 0;
    unsigned long long n = strtoull(digits, NULL, 10);
    if (errno || n > (unsigned long long)INT64_MAX + 1) {
        parse_error(p, token.place, "this integer does not fit in 64 bits");
        return &bad_expr;
    }
    bool too_large = n > INT64_MAX;
    AstExpr *expr = (AstExpr *)constant_expr(p, token.place, const_int(too_large ? INT64_MIN : (int64_t)n));
    expr->too_large = too_large;
    return expr;
}

static const AstExpr *parse_word(Parser *p)
{
    Token token = p->token;
    switch (token.kind) {
    case T_BOOL_TRUE:
    case T_BOOL_FALSE:
        parse_advance(p);
        return constant_expr(p, token.place, const_bool(token.kind == T_BOOL_TRUE));
    case T_NONE:
        parse_advance(p);
        return constant_expr(p, token.place, (Const){0});
    case T_INF:
        parse_advance(p);
        return constant_expr(p, token.place, const_float(INFINITY));
    case T_NAN:
        parse_advance(p);
        return constant_expr(p, token.place, const_float(NAN));
    case T_MINIMIZE:
        parse_error(p, token.place, "minimize gives nothing: it is a statement of its own");
        return &bad_expr;
    default:
        if (lex_is_reserved(token.text))
            parse_error(p, token.place,
                        "expected an expression, found '" STR_FMT "'; as a name it stands in backquotes",
                        STR_ARG(token.text));
        else
            parse_unexpected(p, "an expression");
        return &bad_expr;
    }
}

static const AstExpr *parse_list(Parser *p)
{
    Place begin = p->token.place;
    LIST(const AstExpr *) list;
    uint32_t depth = 0;

    LIST_START(list);
    p->paren++;
    parse_advance(p);
    while (!p->panic && p->token.kind != T_RBRACKET) {
        const AstExpr *item = parse_expr(p);
        depth = deeper(depth, item);
        LIST_PUSH(p, list, item);
        if (!parse_accept(p, T_COMMA))
            break;
    }
    p->paren--;
    if (p->panic || !parse_expect(p, T_RBRACKET, "',' or ']'"))
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_LIST, begin);
    expr->u.items = LIST_KEEP(p, list);
    expr->count = list.count;
    return deeper_than(p, expr, depth);
}

static bool parse_arg(Parser *p, AstArg *arg)
{
    if (p->next.kind == T_ASSIGN && (p->token.kind == T_NAME || p->token.kind > T_KEYWORD)) {
        arg->name = p->token.quoted ? lex_unescape(p->arena, p->token.text) : p->token.text;
        arg->name_place = p->token.place;
        parse_advance(p);
        parse_advance(p);
    }
    arg->value = parse_expr(p);
    return !p->panic;
}

static const AstExpr *parse_call(Parser *p, const AstName *name, const AstName *label)
{
    LIST(AstArg) args;
    uint32_t depth = 0;

    LIST_START(args);
    p->paren++;
    parse_advance(p);
    while (!p->panic && p->token.kind != T_RPAREN) {
        AstArg arg = {0};
        if (!parse_arg(p, &arg))
            break;
        depth = deeper(depth, arg.value);
        LIST_PUSH(p, args, arg);
        if (!parse_accept(p, T_COMMA))
            break;
    }
    p->paren--;
    if (p->panic || !parse_expect(p, T_RPAREN, "',' or ')'"))
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_CALL, name->place);
    expr->name = name;
    expr->label = label;
    expr->u.arg = LIST_KEEP(p, args);
    expr->count = args.count;
    return deeper_than(p, expr, depth);
}

/* Is the `@` after the current name the start of a label, `fire@fire2(`? Reads ahead on a copy of the lexer. */
static bool label_follows(const Parser *p)
{
    if (p->next.kind != T_AT || p->next.space_before || !p->next.glued)
        return false;
    Lexer lexer = p->lexer;
    Diag silent = {.arena = p->arena, .error_count = DIAG_LIMIT + 1};
    lexer.diag = &silent;
    Token name = lex_next(&lexer), open = lex_next(&lexer);
    return name.kind == T_NAME && open.kind == T_LPAREN && !open.space_before;
}

/* Not a reserved word: no name stands right before another one. */
static bool at_checkpoint(const Parser *p)
{
    return p->token.kind == T_NAME && !p->token.quoted && str_is(p->token.text, "checkpoint") &&
           p->next.kind == T_NAME && !p->next.newline_before;
}

static const AstExpr *parse_named(Parser *p);

/* checkpoint block@b1(x) */
static const AstExpr *parse_checkpoint(Parser *p)
{
    Place begin = parse_advance(p).place;
    const AstExpr *called = parse_named(p);
    if (called->kind == AST_BAD)
        return called;
    if (called->kind != AST_CALL) {
        parse_error(p, parse_place(p, begin), "checkpoint stands before the call of a function");
        return &bad_expr;
    }
    AstExpr *call = arena_copy(p->arena, called, sizeof *call);
    call->checkpoint = true;
    return call;
}

static const AstExpr *parse_named(Parser *p)
{
    bool labelled = p->token.kind == T_NAME && label_follows(p);
    Token token = parse_advance(p);
    const AstName *name = parse_name_of(p, token), *label = NULL;
    if (labelled) {
        parse_advance(p);
        label = parse_name(p, "a label");
    }
    if (p->token.kind == T_LPAREN && (labelled || !parse_at_line_end(p)))
        return parse_call(p, name, label);
    AstExpr *expr = new_expr(p, AST_NAME, token.place);
    expr->name = name;
    return expr;
}

/* `x +` at the end of a line goes on in the next, but not when that is `y = ...`. */
static bool is_next_statement(const Parser *p)
{
    TokenKind next = p->next.kind;
    return parse_at_line_end(p) && p->token.kind == T_NAME && (next == T_ASSIGN || next == T_COLON || next == T_UPDATE);
}

static const AstExpr *missing_operand(Parser *p)
{
    Place place = p->token.place;
    place.offset = p->last_end ? p->last_end - 1 : 0;
    place.length = 1;
    parse_error(p, place, "an operand is missing after this");
    return &bad_expr;
}

/* The ops `and` and `or` written as calls; as operators they cannot start an operand. */
static bool is_word_op(const Parser *p)
{
    return (p->token.kind == T_AND || p->token.kind == T_OR) && p->next.kind == T_LPAREN && !p->next.space_before;
}

static const AstExpr *parse_controlled(Parser *p)
{
    Place begin = p->token.place;
    const AstControl *control = parse_control(p);
    if (!control)
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_CONTROL, begin);
    expr->u.control = control;
    return expr;
}

/* `(3, 3)`, as other languages write a list. */
static const AstExpr *written_as_tuple(Parser *p, Place begin)
{
    uint32_t from = begin.offset + 1;
    while (!p->panic && parse_accept(p, T_COMMA) && p->token.kind != T_RPAREN)
        parse_expr(p);
    Str inside = {p->lexer.text.ptr + from, p->last_end - from};
    bool short_line = inside.len <= LONGEST_HINT && !memchr(inside.ptr, '\n', inside.len);
    if (short_line && p->token.kind == T_RPAREN)
        parse_error(p, begin, "a list is written in brackets: [" STR_FMT "]", STR_ARG(inside));
    else
        parse_error(p, begin, "a list is written in brackets: [a, b]");
    return &bad_expr;
}

static const AstExpr *parse_parentheses(Parser *p)
{
    Place begin = p->token.place;
    p->paren++;
    parse_advance(p);
    const AstExpr *expr = parse_expr(p);
    if (!p->panic && p->token.kind == T_COMMA)
        expr = written_as_tuple(p, begin);
    p->paren--;
    return !p->panic && parse_expect(p, T_RPAREN, "')'") ? expr : &bad_expr;
}

static const AstExpr *parse_primary(Parser *p)
{
    if (is_word_op(p))
        return parse_named(p);
    if (parse_at_control(p))
        return parse_controlled(p);
    if (is_next_statement(p))
        return missing_operand(p);
    switch (p->token.kind) {
    case T_NAME:
    case T_TEMP:
        return at_checkpoint(p) ? parse_checkpoint(p) : parse_named(p);
    case T_INT:
    case T_FLOAT:
        return parse_number(p);
    case T_STRING: {
        Token token = parse_advance(p);
        return constant_expr(p, token.place, (Const){.kind = C_STRING, .s = lex_unescape(p->arena, token.text)});
    }
    case T_LBRACKET:
        return parse_list(p);
    case T_LPAREN:
        return parse_parentheses(p);
    default:
        return parse_word(p);
    }
}

/* x[...] */

static bool parse_pick(Parser *p, AstPick *pick)
{
    pick->place = p->token.place;
    if (parse_accept(p, T_ELLIPSIS)) {
        pick->kind = AST_PICK_REST;
        return true;
    }
    if (p->token.kind != T_COLON)
        pick->begin = parse_expr(p);
    if (!p->panic && parse_accept(p, T_COLON)) {
        pick->kind = AST_PICK_RANGE;
        if (p->token.kind != T_COLON && p->token.kind != T_COMMA && p->token.kind != T_RBRACKET)
            pick->end = parse_expr(p);
        if (!p->panic && parse_accept(p, T_COLON))
            pick->step = parse_expr(p);
    }
    pick->place = parse_place(p, pick->place);
    return !p->panic;
}

static const AstExpr *parse_index(Parser *p, const AstExpr *base)
{
    LIST(AstPick) picks;
    uint32_t depth = depth_of(base);

    LIST_START(picks);
    p->paren++;
    parse_advance(p);
    do {
        AstPick pick = {0};
        if (!parse_pick(p, &pick))
            break;
        depth = deeper(deeper(deeper(depth, pick.begin), pick.end), pick.step);
        LIST_PUSH(p, picks, pick);
    } while (parse_accept(p, T_COMMA));
    p->paren--;
    if (p->panic || !parse_expect(p, T_RBRACKET, "',' or ']'"))
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_INDEX, base->place);
    expr->left = base;
    expr->u.pick = LIST_KEEP(p, picks);
    expr->count = picks.count;
    return deeper_than(p, expr, depth);
}

static const AstExpr *parse_postfix(Parser *p)
{
    const AstExpr *expr = parse_primary(p);
    while (!p->panic && !parse_at_line_end(p)) {
        if (p->token.kind == T_LBRACKET) {
            expr = parse_index(p, expr);
        } else if (p->token.kind == T_DOT && p->next.kind == T_NAME) {
            parse_advance(p);
            AstExpr *property = new_expr(p, AST_PROPERTY, expr->place);
            property->left = expr;
            property->u.property = parse_name_of(p, parse_advance(p));
            property->place = parse_place(p, expr->place);
            expr = deeper_than(p, property, expr->depth);
        } else {
            break;
        }
    }
    return expr;
}

/* Operators */

static const AstExpr *parse_unary(Parser *p);

static const AstExpr *binary(Parser *p, TokenKind op, const AstExpr *left, const AstExpr *right)
{
    if (p->panic)
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_BINARY, left->place);
    expr->op = op;
    expr->left = left;
    expr->right = right;
    bool chain = left->kind == AST_BINARY; /* which is evaluated in a loop */
    return deeper_than(p, expr, deeper(left->depth - chain, right));
}

static bool enter(Parser *p)
{
    if (p->depth >= DEEPEST_EXPR)
        return parse_error(p, p->token.place, "this expression nests deeper than %d: give a part of it a name",
                           DEEPEST_EXPR);
    p->depth++;
    return true;
}

static const AstExpr *parse_power(Parser *p)
{
    const AstExpr *left = parse_postfix(p);
    if (p->panic || parse_at_line_end(p) || p->token.kind != T_POWER)
        return left;
    if (!enter(p))
        return &bad_expr;
    parse_advance(p);
    const AstExpr *right = parse_unary(p);
    p->depth--;
    return binary(p, T_POWER, left, right);
}

static const AstExpr *negated(Parser *p, Place place, const AstExpr *operand)
{
    const Const *c = operand->kind == AST_CONST ? operand->u.constant : NULL;
    if (c && c->kind == C_FLOAT)
        return constant_expr(p, place, const_float(-c->f));
    if (c && c->kind == C_INT && (operand->too_large || c->i != INT64_MIN))
        return constant_expr(p, place, const_int(operand->too_large ? INT64_MIN : -c->i));
    AstExpr *expr = new_expr(p, AST_UNARY, place);
    expr->op = T_MINUS;
    expr->left = operand;
    return deeper_than(p, expr, operand->depth);
}

/* Nesting is counted at each minus, `not`, exponent and whole expression. */
static const AstExpr *parse_unary(Parser *p)
{
    Place place = p->token.place;
    if (p->token.kind != T_MINUS)
        return parse_power(p);
    if (!enter(p))
        return &bad_expr;
    parse_advance(p);
    const AstExpr *operand = parse_unary(p);
    p->depth--;
    return p->panic ? &bad_expr : negated(p, place, operand);
}

enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_SUM, LEVEL_PRODUCT, LEVEL_UNARY };

static int level_of(TokenKind kind)
{
    switch (kind) {
    case T_OR:
        return LEVEL_OR;
    case T_AND:
        return LEVEL_AND;
    case T_EQ:
    case T_NE:
    case T_LT:
    case T_LE:
    case T_GT:
    case T_GE:
        return LEVEL_COMPARE;
    case T_PLUS:
    case T_MINUS:
        return LEVEL_SUM;
    case T_STAR:
    case T_SLASH:
    case T_SLASH2:
    case T_PERCENT:
    case T_AT:
        return LEVEL_PRODUCT;
    default:
        return -1;
    }
}

static const AstExpr *parse_binary(Parser *p, int level);

static const AstExpr *parse_not(Parser *p)
{
    Place place = p->token.place;
    if (!enter(p))
        return &bad_expr;
    parse_advance(p);
    const AstExpr *operand = p->token.kind == T_NOT ? parse_not(p) : parse_binary(p, LEVEL_COMPARE);
    p->depth--;
    if (p->panic)
        return &bad_expr;
    AstExpr *expr = new_expr(p, AST_UNARY, place);
    expr->op = T_NOT;
    expr->left = operand;
    return deeper_than(p, expr, operand->depth);
}

/* Precedence climbing: operators of `level` and tighter. */
static const AstExpr *parse_binary(Parser *p, int level)
{
    const AstExpr *left = p->token.kind == T_NOT && level <= LEVEL_NOT ? parse_not(p) : parse_unary(p);
    bool compared = false;
    while (!p->panic && !parse_at_line_end(p) && level_of(p->token.kind) >= level && !parse_at_mark(p)) {
        int tighter = level_of(p->token.kind) + 1;
        if (tighter == LEVEL_COMPARE + 1 && compared) {
            parse_error(p, p->token.place, "comparisons do not chain: join two with 'and'");
            return &bad_expr;
        }
        compared |= tighter == LEVEL_COMPARE + 1;
        TokenKind op = parse_advance(p).kind;
        left = binary(p, op, left, parse_binary(p, tighter));
    }
    return left;
}

const AstExpr *parse_expr(Parser *p)
{
    if (!enter(p))
        return &bad_expr;
    const AstExpr *value = parse_binary(p, LEVEL_OR);
    if (!p->panic && !parse_at_line_end(p) && p->token.kind == T_IF) {
        parse_advance(p);
        const AstExpr *cond = parse_binary(p, LEVEL_OR);
        if (!p->panic && parse_expect(p, T_ELSE, "'else'")) {
            const AstExpr *other = parse_expr(p);
            AstExpr *expr = new_expr(p, AST_CONDITIONAL, value->place);
            expr->left = value;
            expr->u.cond = cond;
            expr->right = other;
            value = deeper_than(p, expr, deeper(deeper(value->depth, cond), other));
        }
    }
    p->depth--;
    return p->panic ? &bad_expr : value;
}
