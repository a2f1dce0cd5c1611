/* Statements and top-level items.  After a syntax error the parser is silent until the next statement, which it finds
 * by line and brace. */
#include "frontends/nnc/parse.h"

#include <string.h>

void parse_start(Parser *p, Arena *arena, Diag *diag, uint32_t source)
{
    *p = (Parser){.arena = arena, .diag = diag, .lexer = lex_start(diag, source)};
    p->next = lex_next(&p->lexer);
    parse_advance(p);
}

Token parse_advance(Parser *p)
{
    Token token = p->token;
    p->last_end = token.place.offset + token.place.length;
    p->token = p->next;
    if (p->token.kind != T_END)
        p->next = lex_next(&p->lexer);
    if (p->token.kind == T_BAD)
        p->panic = true;
    return token;
}

bool parse_accept(Parser *p, TokenKind kind)
{
    if (p->panic || p->token.kind != kind)
        return false;
    parse_advance(p);
    return true;
}

bool parse_error(Parser *p, Place place, const char *format, ...)
{
    if (p->panic)
        return false;
    p->panic = true;
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    diag_error(p->diag, place, STR_FMT, STR_ARG(text_view(&text)));
    text_free(&text);
    return false;
}

/* What people who come from other languages write, and where a file has what belongs into a graph. */
static const char *found_hint(const Parser *p)
{
    switch (p->token.kind) {
    case T_SLASH2:
        return "; a comment starts with '#'";
    case T_SLASH:
        return p->next.kind == T_STAR || p->next.kind == T_POWER ? "; a comment starts with '#'" : "";
    case T_PARAM:
    case T_STATE:
        return p->block_depth ? "" : "; params and states stand in a graph or fn";
    case T_QUESTION:
        return "; a choice is select(mask, x, y)";
    default:
        return "";
    }
}

bool parse_unexpected(Parser *p, const char *wanted)
{
    bool ends = p->token.kind == T_END;
    Str found = p->inner && ends      ? STR("'}'")
                : p->at_value && ends ? STR("the end of the value")
                                      : lex_show(p->arena, p->token);
    return parse_error(p, p->token.place, "expected %s, found " STR_FMT "%s", wanted, STR_ARG(found), found_hint(p));
}

bool parse_expect(Parser *p, TokenKind kind, const char *what)
{
    return parse_accept(p, kind) || parse_unexpected(p, what);
}

Place parse_place(const Parser *p, Place begin)
{
    begin.length = p->last_end > begin.offset ? p->last_end - begin.offset : begin.length;
    return begin;
}

static uint32_t column_of(const Parser *p, uint32_t offset)
{
    uint32_t column = 0;
    while (column < offset && column < 1000 && p->lexer.text.ptr[offset - column - 1] != '\n')
        column++;
    return column;
}

bool parse_at_line_end(const Parser *p)
{
    return p->paren == 0 && p->token.newline_before;
}

/* A line that starts with `name =` at the column of the statement, or left of it, is a new one, whatever parentheses
 * the broken one left open. */
static bool looks_fresh(const Parser *p, uint32_t start)
{
    TokenKind next = p->next.kind;
    bool named = p->token.kind == T_NAME || p->token.kind == T_TEMP;
    return named && (next == T_ASSIGN || next == T_COLON || next == T_UPDATE) &&
           column_of(p, p->token.place.offset) <= column_of(p, start);
}

/* Recovery: to the first token of a later line at the same depth of brackets, or before the brace that closes the
 * block.  A line that starts with a declaring word ends the search at any depth of parentheses. */
static void synchronise(Parser *p, uint32_t start)
{
    uint32_t braces = 0, parens = p->paren;
    bool fresh = p->token.newline_before && p->token.place.offset > start;

    p->paren = 0;
    p->panic = false;
    while (p->token.kind != T_END && !fresh) {
        TokenKind kind = p->token.kind;
        if (kind == T_RBRACE && braces == 0)
            break;
        braces += kind == T_LBRACE;
        braces -= kind == T_RBRACE;
        parens += kind == T_LPAREN || kind == T_LBRACKET;
        parens -= (kind == T_RPAREN || kind == T_RBRACKET) && parens > 0;
        parse_advance(p);
        kind = p->token.kind;
        bool declares = kind == T_PARAM || kind == T_STATE || kind == T_GRAPH || kind == T_FN || kind == T_FOR;
        fresh = p->token.newline_before && braces == 0 && (parens == 0 || declares || looks_fresh(p, start));
    }
    p->panic = false;
}

/* Statements */

typedef struct StmtList {
    AstStmt *item;
    uint32_t count, capacity;
} StmtList;

bool parse_target(Parser *p, AstTarget *target)
{
    if (!(target->name = parse_name(p, "a name")))
        return false;
    if (parse_accept(p, T_COLON))
        target->type = parse_type(p);
    return !p->panic;
}

static void set_targets(Parser *p, AstStmt *stmt, const AstTarget *target, uint32_t count)
{
    stmt->target = arena_copy(p->arena, target, count * sizeof *target);
    stmt->target_count = count;
}

/* param w: f32[3] = value */
static bool parse_declare(Parser *p, AstStmt *stmt)
{
    AstTarget target = {0};
    stmt->kind = AST_DECLARE;
    stmt->role = parse_advance(p).kind;
    parse_target(p, &target);
    set_targets(p, stmt, &target, target.name != NULL);
    if (p->panic)
        return false;
    if (parse_accept(p, T_ASSIGN))
        stmt->value = parse_expr(p);
    return !p->panic;
}

static bool parse_assign(Parser *p, AstStmt *stmt)
{
    AstTarget target = {0};
    stmt->kind = AST_ASSIGN;
    parse_target(p, &target);
    set_targets(p, stmt, &target, target.name != NULL);
    if (p->panic)
        return false;
    if (!target.type && parse_accept(p, T_UPDATE))
        stmt->kind = AST_UPDATE;
    else if (!target.type && str_is(target.name->text, "return") && p->token.kind != T_ASSIGN)
        return parse_error(p, stmt->place, "there is no return: the results are the values that the head names");
    else if (!parse_expect(p, T_ASSIGN, target.type ? "'='" : "'=' or '<-' after the name"))
        return false;
    stmt->value = parse_expr(p);
    return !p->panic;
}

/* (a, b: f32[3]) = value */
static bool parse_assign_many(Parser *p, AstStmt *stmt)
{
    LIST(AstTarget) list;

    LIST_START(list);
    stmt->kind = AST_ASSIGN;
    p->paren++;
    parse_advance(p);
    do {
        AstTarget target = {0};
        parse_target(p, &target);
        if (target.name)
            LIST_PUSH(p, list, target);
    } while (!p->panic && parse_accept(p, T_COMMA));
    stmt->target = LIST_KEEP(p, list);
    stmt->target_count = list.count;
    if (p->panic)
        return false;
    p->paren--;
    if (!parse_expect(p, T_RPAREN, "',' or ')'") || !parse_expect(p, T_ASSIGN, "'='"))
        return false;
    stmt->value = parse_expr(p);
    return !p->panic;
}

/* A chain of `else if` is no nesting, however long: each is the only statement of the block before. */
static bool parse_if(Parser *p, AstStmt *stmt)
{
    for (;;) {
        stmt->kind = AST_IF;
        parse_advance(p);
        stmt->value = parse_expr(p);
        if (p->panic || !(stmt->body = parse_block(p)))
            return false;
        if (!parse_accept(p, T_ELSE))
            return true;
        if (p->token.kind != T_IF)
            return (stmt->otherwise = parse_block(p)) != NULL;
        AstStmt *inner = ARENA_NEW(p->arena, AstStmt);
        AstBlock *block = ARENA_NEW(p->arena, AstBlock);
        inner->place = p->token.place;
        *block = (AstBlock){inner, 1};
        stmt->otherwise = block;
        stmt = inner;
    }
}

/* minimize(loss, with = sgd(rate = 0.1)): in form a call */
static bool parse_minimize(Parser *p, AstStmt *stmt)
{
    stmt->kind = AST_MINIMIZE;
    p->token.kind = T_NAME;
    stmt->value = parse_expr(p);
    return !p->panic && (stmt->value->kind == AST_CALL ||
                         parse_error(p, stmt->place, "minimize is written minimize(loss, with = adam(...))"));
}

static bool parse_kind(Parser *p, AstStmt *stmt)
{
    if (p->token.kind > T_KEYWORD && (p->next.kind == T_ASSIGN || p->next.kind == T_COLON))
        return parse_assign(p, stmt); /* which reports the reserved word */
    switch (p->token.kind) {
    case T_PARAM:
    case T_STATE:
    case T_CONST:
        return parse_declare(p, stmt);
    case T_FOR:
        return parse_for(p, stmt);
    case T_IF:
        return parse_if(p, stmt);
    case T_LPAREN:
        return parse_assign_many(p, stmt);
    case T_YIELD:
        return parse_yield(p, stmt);
    case T_WHILE:
    case T_CASE:
        return parse_error(p, p->token.place, "'" STR_FMT "' gives values: give them names, y = " STR_FMT " ...",
                           STR_ARG(p->token.text), STR_ARG(p->token.text));
    case T_MINIMIZE:
        return parse_minimize(p, stmt);
    case T_NAME:
    case T_TEMP:
        return parse_assign(p, stmt);
    default:
        return parse_unexpected(p, "a statement");
    }
}

/* A statement ends with its line; `;` and a closing brace also end it, and a word that starts another. */
static bool statement_ends(Parser *p)
{
    if (parse_accept(p, T_SEMICOLON) || p->token.newline_before)
        return true;
    TokenKind kind = p->token.kind;
    return kind == T_RBRACE || kind == T_END || kind == T_YIELD || parse_unexpected(p, "the end of the line");
}

static bool parse_stmt(Parser *p, AstStmt *stmt)
{
    uint32_t start = p->token.place.offset;
    *stmt = (AstStmt){.place = p->token.place};
    bool ok = parse_kind(p, stmt);
    if (ok && stmt->kind != AST_FOR && stmt->kind != AST_IF)
        parse_marks(p, &stmt->mark, &stmt->mark_count);
    stmt->place = parse_place(p, stmt->place);
    ok = ok && !p->panic && statement_ends(p);
    if (!ok || p->panic)
        synchronise(p, start);
    return ok;
}

/* What could be read of a statement with a syntax error still binds its names, so that their users are not reported. */
static bool is_salvaged(AstStmt *stmt)
{
    static const AstExpr bad = {.kind = AST_BAD};
    if ((stmt->kind != AST_ASSIGN && stmt->kind != AST_DECLARE) || !stmt->target_count)
        return false;
    stmt->kind = AST_ASSIGN;
    stmt->value = &bad;
    stmt->mark_count = 0;
    return true;
}

const AstBlock *parse_block(Parser *p)
{
    StmtList list = {0};
    Place open = p->token.place;
    if (p->block_depth >= DEEPEST_BLOCK) {
        parse_error(p, open, "blocks nest deeper than %d", DEEPEST_BLOCK);
        return NULL;
    }
    if (!parse_expect(p, T_LBRACE, "'{'"))
        return NULL;
    p->block_depth++;
    while (p->token.kind != T_RBRACE && p->token.kind != T_END) {
        AstStmt stmt;
        uint32_t at = p->token.place.offset;
        if (list.count && list.item[list.count - 1].kind == AST_YIELD)
            parse_error(p, p->token.place, "nothing may follow 'yield' in its block");
        if (parse_stmt(p, &stmt) || is_salvaged(&stmt))
            ARENA_PUSH(p->arena, list.item, list.count, list.capacity, stmt);
        if (p->token.place.offset == at) /* nothing was passed: a stray token */
            parse_advance(p);
    }
    p->block_depth--;
    AstBlock *block = ARENA_NEW(p->arena, AstBlock);
    *block = (AstBlock){list.item, list.count};
    if (!parse_accept(p, T_RBRACE) && !p->at_end) {
        parse_unexpected(p, "'}'");
        diag_note(p->diag, open, "to close this one");
        p->at_end = true;
    }
    return block;
}

/* Items */

typedef struct FormalList {
    AstFormal *item;
    uint32_t count, capacity;
} FormalList;

static bool parse_formal(Parser *p, AstFormal *formal)
{
    if (!(formal->name = parse_name(p, "a name")))
        return false;
    if (parse_accept(p, T_COLON) && !(formal->type = parse_type(p)))
        return false;
    parse_marks(p, &formal->mark, &formal->mark_count);
    if (parse_accept(p, T_ASSIGN))
        formal->fallback = parse_expr(p);
    return !p->panic;
}

static bool parse_formals(Parser *p, FormalList *list, const char *what)
{
    if (!parse_expect(p, T_LPAREN, what))
        return false;
    p->paren++;
    while (!p->panic && p->token.kind != T_RPAREN) {
        AstFormal formal = {0};
        if (!parse_formal(p, &formal))
            break;
        ARENA_PUSH(p->arena, list->item, list->count, list->capacity, formal);
        if (!parse_accept(p, T_COMMA))
            break;
    }
    p->paren--;
    return !p->panic && parse_expect(p, T_RPAREN, "',' or ')'");
}

/* fn name(x, n = 3) -> (y) { ... }, and the same for graphs */
/* `(x, n = 2) -> (y) { ... }` */
static bool parse_signature(Parser *p, AstFunction *function)
{
    FormalList formals = {0}, results = {0};
    if (!parse_formals(p, &formals, "'(' and the inputs"))
        return false;
    parse_marks(p, &function->mark, &function->mark_count);
    if (!parse_expect(p, T_ARROW, "'->' and the results in parentheses") ||
        !parse_formals(p, &results, "'(' and the results"))
        return false;
    function->formal = formals.item;
    function->formal_count = formals.count;
    function->result = results.item;
    function->result_count = results.count;
    function->body = parse_block(p);
    return function->body != NULL;
}

/* gradient (dy) -> (dx) { ... }, behind a function */
static bool parse_gradient(Parser *p, AstFunction *function)
{
    AstFunction *gradient = ARENA_NEW(p->arena, AstFunction);
    gradient->name = function->name;
    gradient->place = p->token.place;
    parse_advance(p);
    function->gradient = gradient;
    bool good = parse_signature(p, gradient);
    gradient->place = parse_place(p, gradient->place);
    return good;
}

static bool parse_function(Parser *p, AstItem *item)
{
    AstFunction *function = ARENA_NEW(p->arena, AstFunction);

    item->kind = p->token.kind == T_FN ? AST_ITEM_FN : AST_ITEM_GRAPH;
    function->place = p->token.place;
    parse_advance(p);
    if (!(function->name = parse_name(p, "a name")) || !parse_signature(p, function))
        return false;
    bool own = item->kind == AST_ITEM_FN && p->token.kind == T_NAME && str_is(p->token.text, "gradient");
    if (own && !parse_gradient(p, function))
        return false;
    function->place = parse_place(p, function->place);
    item->function = function;
    return true;
}

static bool parse_use(Parser *p, AstItem *item)
{
    item->kind = AST_ITEM_USE;
    item->use.place = p->token.place;
    parse_advance(p);
    if (p->token.kind != T_STRING)
        return parse_unexpected(p, "the file in quotes");
    item->use.path = lex_unescape(p->arena, parse_advance(p).text);
    item->use.place = parse_place(p, item->use.place);
    return true;
}

static bool parse_const(Parser *p, AstItem *item)
{
    item->kind = AST_ITEM_CONST;
    item->constant.place = p->token.place;
    parse_advance(p);
    if (!(item->constant.name = parse_name(p, "a name")))
        return false;
    if (parse_accept(p, T_COLON) && !(item->constant.type = parse_type(p)))
        return false;
    if (parse_expect(p, T_ASSIGN, "'='") && !parse_accept(p, T_QUESTION))
        item->constant.value = parse_expr(p);
    item->constant.place = parse_place(p, item->constant.place);
    return !p->panic;
}

static bool parse_item(Parser *p, AstItem *item)
{
    switch (p->token.kind) {
    case T_USE:
        return parse_use(p, item) && statement_ends(p);
    case T_CONST:
        return parse_const(p, item) && statement_ends(p);
    case T_FN:
    case T_GRAPH:
        return parse_function(p, item);
    default:
        return parse_unexpected(p, "'use', 'const', 'fn' or 'graph'");
    }
}

/* Between items only a word that starts one is trusted. */
static void synchronise_items(Parser *p)
{
    p->paren = p->depth = p->block_depth = 0;
    for (; p->token.kind != T_END; parse_advance(p)) {
        TokenKind kind = p->token.kind;
        if (p->token.newline_before && (kind == T_USE || kind == T_CONST || kind == T_FN || kind == T_GRAPH))
            break;
    }
    p->panic = false;
}

static void parse_version(Parser *p)
{
    if (p->token.kind != T_NAME || !str_is(p->token.text, "nnc")) {
        parse_error(p, p->token.place, "a file starts with the version of the language: 'nnc 1'");
        p->panic = false;
        return;
    }
    parse_advance(p);
    if (p->token.kind != T_INT || !str_is(p->token.text, "1")) {
        parse_error(p, p->token.place, "this compiler reads version 1 of the language only");
        p->panic = false;
    }
    if (p->token.kind == T_INT)
        parse_advance(p);
}

/* By its first line: one error, where each byte of a model in another format would be one. */
static bool is_text(Diag *diag, uint32_t source)
{
    Str text = diag_source(diag, source)->text;
    for (uint32_t i = 0; i < text.len && text.ptr[i] != '\n'; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 32 && (c < '\t' || c > '\r'))
            return diag_error(diag, (Place){.source = source, .offset = i, .length = 1},
                              "this is no text: byte 0x%02x; models of ONNX are files called NAME.onnx", (unsigned)c);
    }
    return true;
}

void parse_tree(Arena *arena, Diag *diag, uint32_t source, AstTree *tree)
{
    Parser parser, *p = &parser;
    if (!is_text(diag, source))
        return;
    parse_start(p, arena, diag, source);
    parse_version(p);
    while (p->token.kind != T_END) {
        AstItem item = {0};
        uint32_t at = p->token.place.offset;
        if (parse_item(p, &item))
            ARENA_PUSH(arena, tree->item, tree->count, tree->capacity, item);
        if (p->panic)
            synchronise_items(p);
        if (p->token.place.offset == at && p->token.kind != T_END)
            parse_advance(p);
    }
}

const AstBlock *parse_statements(Arena *arena, Diag *diag, uint32_t source)
{
    Parser parser;
    AstBlock *block = ARENA_NEW(arena, AstBlock);
    StmtList list = {ARENA_NEW(arena, AstStmt), 0, 1}; /* most are alone */

    parse_start(&parser, arena, diag, source);
    while (parser.token.kind != T_END) {
        AstStmt stmt;
        uint32_t at = parser.token.place.offset;
        if (parse_stmt(&parser, &stmt))
            ARENA_PUSH(arena, list.item, list.count, list.capacity, stmt);
        if (parser.token.place.offset == at)
            parse_advance(&parser);
    }
    *block = (AstBlock){list.item, list.count};
    return block;
}

const AstExpr *parse_constant(Arena *arena, Diag *diag, uint32_t source, uint32_t begin)
{
    Parser parser = {.arena = arena, .diag = diag, .lexer = lex_start(diag, source), .at_value = true};
    parser.lexer.at = begin;
    parser.next = lex_next(&parser.lexer);
    parse_advance(&parser);
    parser.paren = 1; /* newlines mean nothing */
    const AstExpr *expr = parse_expr(&parser);
    if (parser.token.kind != T_END)
        parse_unexpected(&parser, "the end of the value");
    return parser.panic ? NULL : expr;
}
