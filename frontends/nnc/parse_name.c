/* Names with interpolation, types, and the marks after a statement. */
#include "frontends/nnc/parse.h"

#include <string.h>

/* Names */

static void push_part(Parser *p, AstNamePart **part, uint32_t *count, uint32_t *capacity, AstNamePart value)
{
    ARENA_PUSH(p->arena, *part, *count, *capacity, value);
}

/* The braces of an interpolated name hold an expression: a parser of its own reads that slice of the source. */
static const AstExpr *parse_slice(Parser *p, uint32_t begin, uint32_t end)
{
    Parser inner = {
        .arena = p->arena, .diag = p->diag, .lexer = p->lexer, .panic = p->panic, .inner = true, .depth = p->depth};
    inner.lexer.at = begin;
    inner.lexer.end = end;
    inner.lexer.last = T_END;
    inner.next = lex_next(&inner.lexer);
    parse_advance(&inner);
    const AstExpr *expr = parse_expr(&inner);
    if (inner.token.kind != T_END)
        parse_unexpected(&inner, "'}'");
    p->panic = inner.panic;
    return inner.panic ? NULL : expr;
}

static void interpolate(Parser *p, AstName *name, Token token)
{
    AstNamePart *part = NULL;
    uint32_t count = 0, capacity = 0, start = 0;
    Str text = token.text;
    for (uint32_t i = 0; i < text.len; i++) {
        if (text.ptr[i] != '{')
            continue;
        const char *close = memchr(text.ptr + i, '}', text.len - i);
        uint32_t end = (uint32_t)(close - text.ptr);
        if (i > start)
            push_part(p, &part, &count, &capacity, (AstNamePart){{text.ptr + start, i - start}, NULL});
        const AstExpr *expr = parse_slice(p, token.place.offset + i + 1, token.place.offset + end);
        push_part(p, &part, &count, &capacity, (AstNamePart){{0}, expr});
        i = end;
        start = end + 1;
    }
    if (text.len > start)
        push_part(p, &part, &count, &capacity, (AstNamePart){{text.ptr + start, text.len - start}, NULL});
    name->part = part;
    name->part_count = count;
}

const AstName *parse_name_of(Parser *p, Token token)
{
    AstName *name = ARENA_NEW(p->arena, AstName);
    name->place = token.place;
    name->temporary = token.kind == T_TEMP;
    name->text = token.quoted ? lex_unescape(p->arena, token.text) : token.text;
    if (token.interpolated)
        interpolate(p, name, token);
    return name;
}

const AstName *parse_name(Parser *p, const char *what)
{
    if (p->token.kind > T_KEYWORD) {
        parse_error(p, p->token.place, "'" STR_FMT "' is a reserved word; in backquotes it can be a name",
                    STR_ARG(p->token.text));
        return NULL;
    }
    if (p->token.kind != T_NAME && p->token.kind != T_TEMP) {
        parse_unexpected(p, what);
        return NULL;
    }
    Token token = parse_advance(p);
    return parse_name_of(p, token);
}

/* Types */

static bool bad_layout(Parser *p)
{
    parse_error(p, p->token.place, "unknown layout; known are NCHW and NCHW<n>c, and NCW and NCW<n>c");
    while (p->token.kind != T_END && !p->token.newline_before && p->token.kind != T_RBRACE)
        parse_advance(p);
    if (p->token.kind == T_RBRACE && !p->token.newline_before)
        parse_advance(p);
    return false;
}

/* The dimensions that the name begins with; what follows them is the block. */
static uint32_t named_dimensions(Str name)
{
    for (uint32_t rank = 1; rank <= MAX_RANK; rank++) {
        const char *dimensions = type_layout_dimensions(rank);
        if (dimensions && name.len >= rank && memcmp(name.ptr, dimensions, rank) == 0)
            return rank;
    }
    return 0;
}

/* `16c`, or nothing. */
static bool parse_channel_block(Str text, uint32_t *block)
{
    if (text.len == 0)
        return true;
    if (text.len < 2 || text.len > 4 || text.ptr[0] == '0' || text.ptr[text.len - 1] != 'c')
        return false;
    for (uint32_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *block = *block * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    return true;
}

static bool parse_layout(Parser *p, AstType *type)
{
    parse_advance(p);
    Str name = p->token.text;
    uint32_t rank = named_dimensions(name);
    if (!rank || !parse_channel_block((Str){name.ptr + rank, name.len - rank}, &type->layout.block))
        return bad_layout(p);
    type->layout_rank = rank;
    parse_advance(p);
    return parse_expect(p, T_RBRACE, "'}' after the layout");
}

const AstType *parse_type(Parser *p)
{
    AstType *type = ARENA_NEW(p->arena, AstType);
    LIST(const AstExpr *) dims;

    LIST_START(dims);
    type->place = p->token.place;
    if (!(type->dtype = parse_name(p, "a type such as f32[2, 3]")))
        return NULL;
    p->paren++;
    if (!parse_expect(p, T_LBRACKET, "'[' and the dimensions of the type")) {
        p->paren--;
        return NULL;
    }
    while (!p->panic && p->token.kind != T_RBRACKET) {
        const AstExpr *dim = parse_accept(p, T_QUESTION) ? NULL : parse_expr(p);
        LIST_PUSH(p, dims, dim);
        if (!parse_accept(p, T_COMMA))
            break;
    }
    p->paren--;
    bool brace_glued = p->token.glued;
    if (p->panic || !parse_expect(p, T_RBRACKET, "',' or ']'"))
        return NULL;
    type->dim = LIST_KEEP(p, dims);
    type->rank = dims.count;
    bool braced = p->token.kind == T_LBRACE && (brace_glued || named_dimensions(p->next.text));
    if (braced && !parse_layout(p, type))
        return NULL;
    type->place = parse_place(p, type->place);
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

bool parse_at_mark(const Parser *p)
{
    return p->token.kind == T_AT && p->token.space_before && p->token.glued && p->next.kind == T_NAME &&
           is_mark_name(p->next.text);
}

/* One argument: `sram`, `3`; of a kernel also `pixels = 14`. */
static bool parse_mark_word(Parser *p, const AstMark *mark, const AstName **word, const AstName **number)
{
    if (p->token.kind != T_NAME && p->token.kind != T_TEMP && p->token.kind != T_INT)
        return parse_unexpected(p, "a name or number");
    bool named = p->token.kind == T_NAME && str_is(mark->name, "kernel");
    Token token = parse_advance(p);
    *word = parse_name_of(p, token);
    *number = NULL;
    if (!named || !parse_accept(p, T_ASSIGN))
        return true;
    if (p->token.kind != T_INT)
        return parse_unexpected(p, "a number");
    token = parse_advance(p);
    *number = parse_name_of(p, token);
    return true;
}

static bool parse_mark(Parser *p, AstMark *mark)
{
    const AstName **word = NULL, **number = NULL, *one = NULL, *its = NULL;
    uint32_t count = 0, capacity = 0, numbers = 0, number_capacity = 0;

    parse_advance(p);
    mark->place = p->token.place;
    mark->name = p->token.text;
    bool list = p->token.glued && p->next.kind == T_LPAREN;
    parse_advance(p);
    if (list) {
        p->paren++;
        parse_advance(p);
        do {
            if (!parse_mark_word(p, mark, &one, &its)) {
                p->paren--;
                return false;
            }
            ARENA_PUSH(p->arena, word, count, capacity, one);
            ARENA_PUSH(p->arena, number, numbers, number_capacity, its);
        } while (parse_accept(p, T_COMMA));
        p->paren--;
        if (!parse_expect(p, T_RPAREN, "',' or ')'"))
            return false;
    }
    mark->word = word;
    mark->number = number;
    mark->count = count;
    mark->place = parse_place(p, mark->place);
    return true;
}

void parse_marks(Parser *p, const AstMark **mark, uint32_t *count)
{
    AstMark *list = NULL;
    uint32_t capacity = 0;

    *count = 0;
    while (!p->panic && parse_at_mark(p)) {
        AstMark one = {0};
        if (parse_mark(p, &one))
            ARENA_PUSH(p->arena, list, *count, capacity, one);
    }
    *mark = list;
}
