/* Expressions.  Precedence as NumPy's, from loose to tight:
 * a if c else b · or · and · not · == != < <= > >= · + - · * / // % @ · unary minus · ** · x[...] f(...) .shape */
#include "frontends/nnc/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Expr bad_expr = {.kind = EXPR_BAD};

static uint16_t depth_of(const Expr *expr)
{
    return expr ? expr->depth : 0;
}

static Expr *new_expr(Parser *p, ExprKind kind, Place begin)
{
    Expr *expr = ARENA_NEW(p->arena, Expr);
    expr->kind = kind;
    expr->place = place_to_here(p, begin);
    expr->depth = 1;
    return expr;
}

static const Expr *deeper_than(Parser *p, Expr *expr, uint32_t depth)
{
    if (depth >= DEEPEST_EXPR) {
        syntax_error(p, expr->place, "this expression nests deeper than %d: give a part of it a name", DEEPEST_EXPR);
        return &bad_expr;
    }
    expr->depth = (uint16_t)(depth + 1);
    return expr;
}

static uint32_t deeper(uint32_t depth, const Expr *expr)
{
    return depth_of(expr) > depth ? depth_of(expr) : depth;
}

/* Primaries */

static const Expr *constant_expr(Parser *p, Place place, Const value)
{
    Expr *expr = new_expr(p, EXPR_CONST, place);
    expr->u.constant = arena_copy(p->arena, &value, sizeof value);
    return expr;
}

static const Expr *parse_number(Parser *p)
{
    Token token = advance(p);
    char buffer[64], *digits = token.text.len < sizeof buffer ? buffer : arena_alloc(p->arena, token.text.len + 1);
    memcpy(digits, token.text.ptr, token.text.len);
    digits[token.text.len] = 0;
    if (token.kind == T_FLOAT)
        return constant_expr(p, token.place, const_float(strtod(digits, NULL)));

    errno = 0;
    unsigned long long n = strtoull(digits, NULL, 10);
    if (errno || n > (unsigned long long)INT64_MAX + 1) {
        syntax_error(p, token.place, "this integer does not fit in 64 bits");
        return &bad_expr;
    }
    bool too_large = n > INT64_MAX;
    Expr *expr = (Expr *)constant_expr(p, token.place, const_int(too_large ? INT64_MIN : (int64_t)n));
    expr->too_large = too_large;
    return expr;
}

static const Expr *parse_word(Parser *p)
{
    Token token = p->token;
    switch (token.kind) {
    case T_BOOL_TRUE:
    case T_BOOL_FALSE:
        advance(p);
        return constant_expr(p, token.place, const_bool(token.kind == T_BOOL_TRUE));
    case T_NONE:
        advance(p);
        return constant_expr(p, token.place, (Const){0});
    case T_INF:
        advance(p);
        return constant_expr(p, token.place, const_float(INFINITY));
    case T_NAN:
        advance(p);
        return constant_expr(p, token.place, const_float(NAN));
    case T_WHILE:
    case T_CASE:
    case T_GRAD:
    case T_MINIMIZE:
        syntax_error(p, token.place, "'" STR_FMT "' is not supported yet", STR_ARG(token.text));
        return &bad_expr;
    default:
        unexpected(p, "an expression");
        return &bad_expr;
    }
}

static const Expr *parse_list(Parser *p)
{
    Place begin = p->token.place;
    LIST(const Expr *) list;
    uint32_t depth = 0;

    LIST_START(list);
    p->paren++;
    advance(p);
    while (!p->panic && p->token.kind != T_RBRACKET) {
        const Expr *item = parse_expr(p);
        depth = deeper(depth, item);
        LIST_PUSH(p, list, item);
        if (!accept(p, T_COMMA))
            break;
    }
    p->paren--;
    if (p->panic || !expect(p, T_RBRACKET, "',' or ']'"))
        return &bad_expr;
    Expr *expr = new_expr(p, EXPR_LIST, begin);
    expr->u.items = LIST_KEEP(p, list);
    expr->count = list.count;
    return deeper_than(p, expr, depth);
}

static bool parse_arg(Parser *p, Arg *arg)
{
    if (p->next.kind == T_ASSIGN && (p->token.kind == T_NAME || p->token.kind > T_KEYWORD)) {
        arg->name = p->token.quoted ? unescape(p->arena, p->token.text) : p->token.text;
        arg->name_place = p->token.place;
        advance(p);
        advance(p);
    }
    arg->value = parse_expr(p);
    return !p->panic;
}

static const Expr *parse_call(Parser *p, const Name *name, const Name *label)
{
    LIST(Arg) args;
    uint32_t depth = 0;

    LIST_START(args);
    p->paren++;
    advance(p);
    while (!p->panic && p->token.kind != T_RPAREN) {
        Arg arg = {0};
        if (!parse_arg(p, &arg))
            break;
        depth = deeper(depth, arg.value);
        LIST_PUSH(p, args, arg);
        if (!accept(p, T_COMMA))
            break;
    }
    p->paren--;
    if (p->panic || !expect(p, T_RPAREN, "',' or ')'"))
        return &bad_expr;
    Expr *expr = new_expr(p, EXPR_CALL, name->place);
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

static const Expr *parse_named(Parser *p)
{
    bool labelled = p->token.kind == T_NAME && label_follows(p);
    Token token = advance(p);
    const Name *name = name_of(p, token), *label = NULL;
    if (labelled) {
        advance(p);
        label = parse_name(p, "a label");
    }
    if (p->token.kind == T_LPAREN && (labelled || !at_line_end(p)))
        return parse_call(p, name, label);
    Expr *expr = new_expr(p, EXPR_NAME, token.place);
    expr->name = name;
    return expr;
}

/* `x +` at the end of a line goes on in the next, but not when that is `y = ...`. */
static bool is_next_statement(const Parser *p)
{
    TokenKind next = p->next.kind;
    return at_line_end(p) && p->token.kind == T_NAME && (next == T_ASSIGN || next == T_COLON || next == T_UPDATE);
}

static const Expr *missing_operand(Parser *p)
{
    Place place = p->token.place;
    place.offset = p->last_end ? p->last_end - 1 : 0;
    place.length = 1;
    syntax_error(p, place, "an operand is missing after this");
    return &bad_expr;
}

/* The ops `and` and `or` written as calls; as operators they cannot start an operand. */
static bool is_word_op(const Parser *p)
{
    return (p->token.kind == T_AND || p->token.kind == T_OR) && p->next.kind == T_LPAREN && !p->next.space_before;
}

static const Expr *parse_primary(Parser *p)
{
    if (is_word_op(p))
        return parse_named(p);
    if (is_next_statement(p))
        return missing_operand(p);
    switch (p->token.kind) {
    case T_NAME:
    case T_TEMP:
        return parse_named(p);
    case T_INT:
    case T_FLOAT:
        return parse_number(p);
    case T_STRING: {
        Token token = advance(p);
        return constant_expr(p, token.place, (Const){.kind = C_STRING, .s = unescape(p->arena, token.text)});
    }
    case T_LBRACKET:
        return parse_list(p);
    case T_LPAREN: {
        p->paren++;
        advance(p);
        const Expr *expr = parse_expr(p);
        p->paren--;
        return !p->panic && expect(p, T_RPAREN, "')'") ? expr : &bad_expr;
    }
    default:
        return parse_word(p);
    }
}

/* x[...] */

static bool parse_pick(Parser *p, Pick *pick)
{
    pick->place = p->token.place;
    if (accept(p, T_ELLIPSIS)) {
        pick->kind = PICK_REST;
        return true;
    }
    if (p->token.kind != T_COLON)
        pick->begin = parse_expr(p);
    if (!p->panic && accept(p, T_COLON)) {
        pick->kind = PICK_RANGE;
        if (p->token.kind != T_COLON && p->token.kind != T_COMMA && p->token.kind != T_RBRACKET)
            pick->end = parse_expr(p);
        if (!p->panic && accept(p, T_COLON))
            pick->step = parse_expr(p);
    }
    pick->place = place_to_here(p, pick->place);
    return !p->panic;
}

static const Expr *parse_index(Parser *p, const Expr *base)
{
    LIST(Pick) picks;
    uint32_t depth = depth_of(base);

    LIST_START(picks);
    p->paren++;
    advance(p);
    do {
        Pick pick = {0};
        if (!parse_pick(p, &pick))
            break;
        depth = deeper(deeper(deeper(depth, pick.begin), pick.end), pick.step);
        LIST_PUSH(p, picks, pick);
    } while (accept(p, T_COMMA));
    p->paren--;
    if (p->panic || !expect(p, T_RBRACKET, "',' or ']'"))
        return &bad_expr;
    Expr *expr = new_expr(p, EXPR_INDEX, base->place);
    expr->left = base;
    expr->u.pick = LIST_KEEP(p, picks);
    expr->count = picks.count;
    return deeper_than(p, expr, depth);
}

static const Expr *parse_postfix(Parser *p)
{
    const Expr *expr = parse_primary(p);
    while (!p->panic && !at_line_end(p)) {
        if (p->token.kind == T_LBRACKET) {
            expr = parse_index(p, expr);
        } else if (p->token.kind == T_DOT && p->next.kind == T_NAME) {
            advance(p);
            Expr *property = new_expr(p, EXPR_PROPERTY, expr->place);
            property->left = expr;
            property->u.property = name_of(p, advance(p));
            property->place = place_to_here(p, expr->place);
            expr = deeper_than(p, property, expr->depth);
        } else {
            break;
        }
    }
    return expr;
}

/* Operators */

static const Expr *parse_unary(Parser *p);

static const Expr *binary(Parser *p, TokenKind op, const Expr *left, const Expr *right)
{
    if (p->panic)
        return &bad_expr;
    Expr *expr = new_expr(p, EXPR_BINARY, left->place);
    expr->op = op;
    expr->left = left;
    expr->right = right;
    return deeper_than(p, expr, deeper(left->depth, right));
}

static const Expr *parse_power(Parser *p)
{
    const Expr *left = parse_postfix(p);
    if (p->panic || at_line_end(p) || p->token.kind != T_POWER)
        return left;
    advance(p);
    return binary(p, T_POWER, left, parse_unary(p));
}

static const Expr *negated(Parser *p, Place place, const Expr *operand)
{
    const Const *c = operand->kind == EXPR_CONST ? operand->u.constant : NULL;
    if (c && c->kind == C_FLOAT)
        return constant_expr(p, place, const_float(-c->f));
    if (c && c->kind == C_INT && (operand->too_large || c->i != INT64_MIN))
        return constant_expr(p, place, const_int(operand->too_large ? INT64_MIN : -c->i));
    Expr *expr = new_expr(p, EXPR_UNARY, place);
    expr->op = T_MINUS;
    expr->left = operand;
    return deeper_than(p, expr, operand->depth);
}

static bool enter(Parser *p)
{
    if (p->depth >= DEEPEST_EXPR)
        return syntax_error(p, p->token.place, "this expression nests deeper than %d: give a part of it a name",
                            DEEPEST_EXPR);
    p->depth++;
    return true;
}

static const Expr *parse_unary(Parser *p)
{
    if (!enter(p))
        return &bad_expr;
    const Expr *expr = &bad_expr;
    Place place = p->token.place;
    if (accept(p, T_MINUS)) {
        const Expr *operand = parse_unary(p);
        expr = p->panic ? &bad_expr : negated(p, place, operand);
    } else {
        expr = parse_power(p);
    }
    p->depth--;
    return expr;
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

static const Expr *parse_binary(Parser *p, int level);

static const Expr *parse_not(Parser *p)
{
    Place place = p->token.place;
    if (!enter(p))
        return &bad_expr;
    advance(p);
    const Expr *operand = p->token.kind == T_NOT ? parse_not(p) : parse_binary(p, LEVEL_COMPARE);
    p->depth--;
    if (p->panic)
        return &bad_expr;
    Expr *expr = new_expr(p, EXPR_UNARY, place);
    expr->op = T_NOT;
    expr->left = operand;
    return deeper_than(p, expr, operand->depth);
}

/* Precedence climbing: operators of `level` and tighter. */
static const Expr *parse_binary(Parser *p, int level)
{
    const Expr *left = p->token.kind == T_NOT && level <= LEVEL_NOT ? parse_not(p) : parse_unary(p);
    bool compared = false;
    while (!p->panic && !at_line_end(p) && level_of(p->token.kind) >= level && !at_mark(p)) {
        int tighter = level_of(p->token.kind) + 1;
        if (tighter == LEVEL_COMPARE + 1 && compared) {
            syntax_error(p, p->token.place, "comparisons do not chain: join two with 'and'");
            return &bad_expr;
        }
        compared |= tighter == LEVEL_COMPARE + 1;
        TokenKind op = advance(p).kind;
        left = binary(p, op, left, parse_binary(p, tighter));
    }
    return left;
}

const Expr *parse_expr(Parser *p)
{
    if (!enter(p))
        return &bad_expr;
    const Expr *value = parse_binary(p, LEVEL_OR);
    if (!p->panic && !at_line_end(p) && p->token.kind == T_IF) {
        advance(p);
        const Expr *cond = parse_binary(p, LEVEL_OR);
        if (!p->panic && expect(p, T_ELSE, "'else'")) {
            const Expr *other = parse_expr(p);
            Expr *expr = new_expr(p, EXPR_IF, value->place);
            expr->left = value;
            expr->u.cond = cond;
            expr->right = other;
            value = deeper_than(p, expr, deeper(deeper(value->depth, cond), other));
        }
    }
    p->depth--;
    return p->panic ? &bad_expr : value;
}
