/* Names with interpolation, types, and the marks after a statement. */
#include "frontends/nnc/parse.h"

#include <string.h>

/* Names */

static void push_part(Parser *p, NamePart **part, uint32_t *count, uint32_t *capacity, NamePart value)
{
    ARENA_PUSH(p->arena, *part, *count, *capacity, value);
}

/* The braces of an interpolated name hold an expression: a parser of its own reads that slice of the source. */
static const Expr *parse_slice(Parser *p, uint32_t begin, uint32_t end)
{
    Parser inner = {
        .arena = p->arena, .diag = p->diag, .lexer = p->lexer, .panic = p->panic, .inner = true, .depth = p->depth};
    inner.lexer.at = begin;
    inner.lexer.end = end;
    inner.lexer.last = T_END;
    inner.next = lex_next(&inner.lexer);
    advance(&inner);
    const Expr *expr = parse_expr(&inner);
    if (inner.token.kind != T_END)
        unexpected(&inner, "'}'");
    p->panic = inner.panic;
    return inner.panic ? NULL : expr;
}

static void interpolate(Parser *p, Name *name, Token token)
{
    NamePart *part = NULL;
    uint32_t count = 0, capacity = 0, start = 0;
    Str text = token.text;
    for (uint32_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '{')
            continue;
        const char *close = memchr(text.ptr + i, '}', text.len - i);
        uint32_t end = (uint32_t)(close - text.ptr);
        if (i > start)
            push_part(p, &part, &count, &capacity, (NamePart){{text.ptr + start, i - start}, NULL});
        const Expr *expr = parse_slice(p, token.place.offset + i + 1, token.place.offset + end);
        push_part(p, &part, &count, &capacity, (NamePart){{0}, expr});
        i = end;
        start = end + 1;
    }
    if (text.len > start)
        push_part(p, &part, &count, &capacity, (NamePart){{text.ptr + start, text.len - start}, NULL});
    name->part = part;
    name->part_count = count;
}

const Name *name_of(Parser *p, Token token)
{
    Name *name = ARENA_NEW(p->arena, Name);
    name->place = token.place;
    name->temporary = token.kind == T_TEMP;
    name->text = token.quoted ? unescape(p->arena, token.text) : token.text;
    if (token.interpolated)
        interpolate(p, name, token);
    return name;
}

const Name *parse_name(Parser *p, const char *what)
{
    if (p->token.kind > T_KEYWORD) {
        syntax_error(p, p->token.place, "'" STR_FMT "' is a reserved word; in backquotes it can be a name",
                     STR_ARG(p->token.text));
        return NULL;
    }
    if (p->token.kind != T_NAME && p->token.kind != T_TEMP) {
        unexpected(p, what);
        return NULL;
    }
    Token token = advance(p);
    return name_of(p, token);
}

/* Types */

static bool bad_layout(Parser *p)
{
    syntax_error(p, p->token.place, "unknown layout; known are NCHW and NCHW<n>c");
    while (p->token.kind != T_END && !p->token.newline_before && p->token.kind != T_RBRACE)
        advance(p);
    if (p->token.kind == T_RBRACE && !p->token.newline_before)
        advance(p);
    return false;
}

static bool parse_layout(Parser *p, Layout *layout)
{
    advance(p);
    Str name = p->token.text;
    if (str_is(name, "NCHW")) {
        layout->block = 0;
    } else if (name.len > 5 && name.len < 9 && memcmp(name.ptr, "NCHW", 4) == 0 && name.ptr[name.len - 1] == 'c') {
        for (uint32_t i = 4; i + 1 < name.len; i++) {
            if (name.ptr[i] < '0' || name.ptr[i] > '9' || (i == 4 && name.ptr[i] == '0'))
                return bad_layout(p);
            layout->block = layout->block * 10 + (uint32_t)(name.ptr[i] - '0');
        }
    } else {
        return bad_layout(p);
    }
    advance(p);
    return expect(p, T_RBRACE, "'}' after the layout");
}

const TypeExpr *parse_type(Parser *p)
{
    TypeExpr *type = ARENA_NEW(p->arena, TypeExpr);
    LIST(const Expr *) dims;

    LIST_START(dims);
    type->place = p->token.place;
    if (!(type->dtype = parse_name(p, "a type such as f32[2, 3]")))
        return NULL;
    p->paren++;
    if (!expect(p, T_LBRACKET, "'[' and the dimensions of the type")) {
        p->paren--;
        return NULL;
    }
    while (!p->panic && p->token.kind != T_RBRACKET) {
        const Expr *dim = accept(p, T_QUESTION) ? NULL : parse_expr(p);
        LIST_PUSH(p, dims, dim);
        if (!accept(p, T_COMMA))
            break;
    }
    p->paren--;
    bool brace_glued = p->token.glued;
    if (p->panic || !expect(p, T_RBRACKET, "',' or ']'"))
        return NULL;
    type->dim = LIST_KEEP(p, dims);
    type->rank = dims.count;
    if (brace_glued && p->token.kind == T_LBRACE && !parse_layout(p, &type->layout))
        return NULL;
    type->place = place_to_here(p, type->place);
    return type;
}

/* Marks: @kernel(3).  `x @ w` is a product; a mark stands after a blank, without one before its name. */

static bool is_mark_name(Str name)
{
    static const char *const known[] = {"kernel", "stream", "inplace", "gpu", "cpu", "mem"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(name, known[i]))
            return true;
    return false;
}

bool at_mark(const Parser *p)
{
    return p->token.kind == T_AT && p->token.space_before && p->token.glued && p->next.kind == T_NAME &&
           is_mark_name(p->next.text);
}

/* One argument: `sram`, `3`; of a kernel also `pixels = 14`. */
static bool parse_mark_word(Parser *p, const Mark *mark, const Name **word, const Name **number)
{
    if (p->token.kind != T_NAME && p->token.kind != T_TEMP && p->token.kind != T_INT)
        return unexpected(p, "a name or number");
    bool named = p->token.kind == T_NAME && str_is(mark->name, "kernel");
    Token token = advance(p);
    *word = name_of(p, token);
    *number = NULL;
    if (!named || !accept(p, T_ASSIGN))
        return true;
    if (p->token.kind != T_INT)
        return unexpected(p, "a number");
    token = advance(p);
    *number = name_of(p, token);
    return true;
}

static bool parse_mark(Parser *p, Mark *mark)
{
    const Name **word = NULL, **number = NULL, *one = NULL, *its = NULL;
    uint32_t count = 0, capacity = 0, numbers = 0, number_capacity = 0;

    advance(p);
    mark->place = p->token.place;
    mark->name = p->token.text;
    bool list = p->token.glued && p->next.kind == T_LPAREN;
    advance(p);
    if (list) {
        p->paren++;
        advance(p);
        do {
            if (!parse_mark_word(p, mark, &one, &its)) {
                p->paren--;
                return false;
            }
            ARENA_PUSH(p->arena, word, count, capacity, one);
            ARENA_PUSH(p->arena, number, numbers, number_capacity, its);
        } while (accept(p, T_COMMA));
        p->paren--;
        if (!expect(p, T_RPAREN, "',' or ')'"))
            return false;
    }
    mark->word = word;
    mark->number = number;
    mark->count = count;
    mark->place = place_to_here(p, mark->place);
    return true;
}

void parse_marks(Parser *p, const Mark **mark, uint32_t *count)
{
    Mark *list = NULL;
    uint32_t capacity = 0;

    *count = 0;
    while (!p->panic && at_mark(p)) {
        Mark one = {0};
        if (parse_mark(p, &one))
            ARENA_PUSH(p->arena, list, *count, capacity, one);
    }
    *mark = list;
}
