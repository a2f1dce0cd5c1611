/* The lexer: bytes to tokens, one at a time, on demand. */
#include "frontends/nnc/lex.h"

#include <string.h>

#define LONGEST_KEYWORD 8

typedef struct Keyword {
    char text[LONGEST_KEYWORD + 1];
    uint32_t length;
    TokenKind kind;
} Keyword;

#define WORD(text, kind)                                                                                               \
    {                                                                                                                  \
        text, sizeof text - 1, kind                                                                                    \
    }

static const Keyword keywords[] = {
    WORD("and", T_AND),     WORD("false", T_BOOL_FALSE),  WORD("true", T_BOOL_TRUE), WORD("carry", T_CARRY),
    WORD("case", T_CASE),   WORD("const", T_CONST),       WORD("else", T_ELSE),      WORD("fn", T_FN),
    WORD("for", T_FOR),     WORD("graph", T_GRAPH),       WORD("if", T_IF),          WORD("in", T_IN),
    WORD("inf", T_INF),     WORD("minimize", T_MINIMIZE), WORD("nan", T_NAN),        WORD("next", T_NEXT),
    WORD("none", T_NONE),   WORD("not", T_NOT),           WORD("or", T_OR),          WORD("param", T_PARAM),
    WORD("state", T_STATE), WORD("use", T_USE),           WORD("while", T_WHILE),    WORD("with", T_WITH),
    WORD("yield", T_YIELD),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static TokenKind word_kind(Str s)
{
    if (s.len > LONGEST_KEYWORD)
        return T_NAME;
    for (size_t i = 0; i < COUNT(keywords); i++) {
        const Keyword *word = &keywords[i];
        if (word->length == s.len && word->text[0] == s.ptr[0] && memcmp(word->text, s.ptr, s.len) == 0)
            return word->kind;
    }
    return T_NAME;
}

bool lex_is_reserved(Str name)
{
    return word_kind(name) != T_NAME;
}

Lexer lex_start(Diag *diag, uint32_t source)
{
    Str text = diag_source(diag, source)->text;
    bool marked = text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0; /* the byte order mark of some editors */
    return (Lexer){.diag = diag, .text = text, .source = source, .at = marked ? 3 : 0, .end = text.len};
}

static bool is_letter(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26 || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_part(char c)
{
    return is_letter(c) || is_digit(c);
}

static char peek(const Lexer *lexer, uint32_t ahead)
{
    return lexer->end - lexer->at > ahead ? lexer->text.ptr[lexer->at + ahead] : 0;
}

bool lex_is_plain(Str name)
{
    if (!name.len || !is_letter(name.ptr[0]) || lex_is_reserved(name))
        return false;
    for (uint32_t i = 1; i < name.len; i++) {
        bool dot = name.ptr[i] == '.' && i + 1 < name.len && is_part(name.ptr[i + 1]);
        if (!dot && !is_part(name.ptr[i]))
            return false;
    }
    return true;
}

static void skip_blanks(Lexer *lexer, Token *token)
{
    for (; lexer->at < lexer->end; lexer->at++) {
        char c = lexer->text.ptr[lexer->at];
        if (c == '#') {
            while (lexer->at + 1 < lexer->end && lexer->text.ptr[lexer->at + 1] != '\n')
                lexer->at++;
        } else if (c == '\n') {
            token->newline_before = true;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
        token->space_before = true;
    }
}

#define LONGEST_BRACES 200 /* so that a line of open braces is not searched again and again */

/* A letter, then letters, digits, dots before those, and {...} written without a blank. */
static void lex_name(Lexer *lexer, Token *token)
{
    token->kind = T_NAME;
    for (;;) {
        char c = peek(lexer, 0);
        if (is_part(c)) {
            lexer->at++;
        } else if (c == '.' && (is_part(peek(lexer, 1)) || peek(lexer, 1) == '{')) {
            lexer->at++;
        } else if (c == '{') {
            uint32_t close = lexer->at + 1;
            while (close < lexer->end && close - lexer->at < LONGEST_BRACES && lexer->text.ptr[close] != '}' &&
                   lexer->text.ptr[close] != '\n')
                close++;
            if (close == lexer->end || lexer->text.ptr[close] != '}')
                return;
            token->interpolated = true;
            lexer->at = close + 1;
        } else {
            return;
        }
    }
}

static void skip_digits(Lexer *lexer)
{
    while (is_digit(peek(lexer, 0)))
        lexer->at++;
}

static void lex_number(Lexer *lexer, Token *token)
{
    token->kind = T_INT;
    skip_digits(lexer);
    if (peek(lexer, 0) == '.' && peek(lexer, 1) != '.') {
        token->kind = T_FLOAT;
        lexer->at++;
        skip_digits(lexer);
    }
    if (peek(lexer, 0) == 'e' || peek(lexer, 0) == 'E') {
        uint32_t sign = peek(lexer, 1) == '-' || peek(lexer, 1) == '+';
        if (is_digit(peek(lexer, 1 + sign))) {
            token->kind = T_FLOAT;
            lexer->at += 1 + sign;
            skip_digits(lexer);
        }
    }
    if (is_part(peek(lexer, 0))) {
        while (is_part(peek(lexer, 0)))
            lexer->at++;
        token->kind = T_BAD;
    }
}

/* Strings and quoted names; they end on their line. */
static bool lex_quoted(Lexer *lexer, Token *token, char quote)
{
    uint32_t begin = lexer->at + 1, at = begin;
    while (at < lexer->end && lexer->text.ptr[at] != quote && lexer->text.ptr[at] != '\n')
        at += lexer->text.ptr[at] == '\\' && at + 1 < lexer->end && lexer->text.ptr[at + 1] != '\n' ? 2 : 1;
    bool closed = at < lexer->end && lexer->text.ptr[at] == quote;
    lexer->at = closed ? at + 1 : at;
    token->kind = quote == '"' ? T_STRING : T_NAME;
    token->quoted = true;
    token->text = (Str){lexer->text.ptr + begin, at - begin};
    return closed && (quote == '"' || at > begin);
}

typedef struct Sign {
    char text[4];
    TokenKind kind;
} Sign;

static const Sign signs[] = {
    /* longer ones first */
    {"...", T_ELLIPSIS}, {"..", T_RANGE}, {"<-", T_UPDATE}, {"->", T_ARROW},    {"**", T_POWER},   {"//", T_SLASH2},
    {"==", T_EQ},        {"!=", T_NE},    {"<=", T_LE},     {">=", T_GE},       {"<", T_LT},       {">", T_GT},
    {"=", T_ASSIGN},     {"+", T_PLUS},   {"-", T_MINUS},   {"*", T_STAR},      {"/", T_SLASH},    {"%", T_PERCENT},
    {"@", T_AT},         {"(", T_LPAREN}, {")", T_RPAREN},  {"[", T_LBRACKET},  {"]", T_RBRACKET}, {"{", T_LBRACE},
    {"}", T_RBRACE},     {",", T_COMMA},  {":", T_COLON},   {";", T_SEMICOLON}, {".", T_DOT},      {"?", T_QUESTION},
};

static void lex_sign(Lexer *lexer, Token *token)
{
    char first = peek(lexer, 0);
    for (size_t i = 0; i < COUNT(signs); i++) {
        if (signs[i].text[0] != first)
            continue;
        size_t length = strlen(signs[i].text);
        if (lexer->end - lexer->at >= length && memcmp(lexer->text.ptr + lexer->at, signs[i].text, length) == 0) {
            lexer->at += (uint32_t)length;
            token->kind = signs[i].kind;
            return;
        }
    }
    lexer->at++;
    token->kind = T_BAD;
}

/* %12 and %1.12 are temporaries, but after an operand on the same line % is the operator. */
static bool is_temporary(const Lexer *lexer, const Token *token)
{
    bool after_operand = lexer->last == T_NAME || lexer->last == T_TEMP || lexer->last == T_INT ||
                         lexer->last == T_RPAREN || lexer->last == T_RBRACKET;
    return peek(lexer, 0) == '%' && is_digit(peek(lexer, 1)) && (token->newline_before || !after_operand);
}

static bool is_glued(const Lexer *lexer)
{
    char c = peek(lexer, 0);
    return c && c != ' ' && c != '\t' && c != '\r' && c != '\n' && c != '#';
}

/* What editors and web pages make of ASCII, by UTF-8. */
static const char *plain_character(Str character)
{
    static const char *const twin[][2] = {
        {"\xc2\xa0", "a space"}, {"\xe2\x80\x9c", "\""}, {"\xe2\x80\x9d", "\""},     {"\xe2\x80\x98", "'"},
        {"\xe2\x80\x99", "'"},   {"\xe2\x88\x92", "-"},  {"\xe2\x80\x93", "-"},      {"\xe2\x80\x94", "-"},
        {"\xc3\x97", "*"},       {"\xc3\xb7", "/"},      {"\xe2\x89\xa4", "<="},     {"\xe2\x89\xa5", ">="},
        {"\xe2\x89\xa0", "!="},  {"\xe2\x86\x92", "->"}, {"\xe2\x86\x90", "<-"},     {"\xef\xbc\x88", "("},
        {"\xef\xbc\x89", ")"},   {"\xef\xbc\x8c", ","},  {"\xe3\x80\x80", "a space"}};
    for (size_t i = 0; i < sizeof twin / sizeof *twin; i++)
        if (str_is(character, twin[i][0]))
            return twin[i][1];
    return NULL;
}

static void report_foreign(Lexer *lexer, const Token *token)
{
    Str character = {lexer->text.ptr + token->place.offset, token->place.length};
    const char *plain = plain_character(character), *quote = plain && plain[1] == '\0' ? "'" : "";
    if (plain)
        diag_error(lexer->diag, token->place, "stray '" STR_FMT "'; did you mean %s%s%s?", STR_ARG(character), quote,
                   plain, quote);
    else if (str_is_utf8(character))
        diag_error(lexer->diag, token->place, "stray '" STR_FMT "': names in quotes alone have such characters",
                   STR_ARG(character));
    else
        diag_error(lexer->diag, token->place, "stray byte 0x%02x", (unsigned)(unsigned char)character.ptr[0]);
}

/* What C and its kin write for a word of ours: its length, and the word. */
static const char *word_for_sign(const char *sign, uint32_t length, uint32_t *taken)
{
    static const char *const twin[][2] = {{"&&", "'and'"},
                                          {"||", "'or'"},
                                          {"&", "bit_and(x, y)"},
                                          {"|", "bit_or(x, y)"},
                                          {"^", "bit_xor(x, y) or '**'"},
                                          {"~", "bit_not(x)"},
                                          {"!", "'not'"}};
    for (size_t i = 0; i < COUNT(twin); i++) {
        *taken = (uint32_t)strlen(twin[i][0]);
        if (*taken <= length && memcmp(sign, twin[i][0], *taken) == 0)
            return twin[i][1];
    }
    return NULL;
}

static void report_sign(Lexer *lexer, Token *token)
{
    uint32_t begin = token->place.offset, taken;
    const char *sign = lexer->text.ptr + begin, *word = word_for_sign(sign, lexer->end - begin, &taken);
    if (!word) {
        diag_error(lexer->diag, token->place, "stray '%c'", *sign);
        return;
    }
    lexer->at = begin + taken;
    token->place.length = taken;
    diag_error(lexer->diag, token->place, "stray '%.*s'; did you mean %s?", (int)taken, sign, word);
}

/* As long as bytes beyond ASCII follow, they belong to one character: one error, not three. */
static void report_bad(Lexer *lexer, Token *token)
{
    char c = lexer->text.ptr[token->place.offset];
    while ((c & 0x80) && (peek(lexer, 0) & 0xc0) == 0x80)
        lexer->at++;
    token->place.length = lexer->at - token->place.offset;
    if (is_digit(c))
        diag_error(lexer->diag, token->place, "'" STR_FMT "' is not a number",
                   STR_ARG(((Str){lexer->text.ptr + token->place.offset, token->place.length})));
    else if ((unsigned char)c > 127)
        report_foreign(lexer, token);
    else if ((unsigned char)c < 32 || c == 127)
        diag_error(lexer->diag, token->place, "stray byte 0x%02x", (unsigned)(unsigned char)c);
    else
        report_sign(lexer, token);
}

#define LONGEST_NAME 1000

/* What tools and files that names go to would choke on.  Letters, digits and dots do not, but where they are many. */
static void check_name(Lexer *lexer, Token *token)
{
    if (!token->quoted && !token->interpolated && token->text.len <= LONGEST_NAME)
        return;
    Str name = token->quoted ? lex_unescape(lexer->diag->arena, token->text) : token->text;
    const char *wrong = name.len > LONGEST_NAME            ? "is longer than 1000 bytes"
                        : memchr(name.ptr, '\0', name.len) ? "has a zero byte"
                        : !str_is_utf8(name)               ? "is not UTF-8"
                                                           : NULL;
    if (!wrong)
        return;
    diag_error(lexer->diag, token->place, "this name %s", wrong);
    token->kind = T_BAD;
}

Token lex_next(Lexer *lexer)
{
    Token token = {0};
    bool closed = true;

    skip_blanks(lexer, &token);
    token.place = (Place){lexer->source, lexer->at, 0};
    char c = peek(lexer, 0);
    if (lexer->at >= lexer->end)
        token.kind = T_END;
    else if (is_letter(c))
        lex_name(lexer, &token);
    else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1))))
        lex_number(lexer, &token);
    else if (c == '"' || c == '`')
        closed = lex_quoted(lexer, &token, c);
    else if (is_temporary(lexer, &token)) {
        lexer->at++;
        skip_digits(lexer);
        if (peek(lexer, 0) == '.' && is_digit(peek(lexer, 1))) { /* %1.12, in a body */
            lexer->at++;
            skip_digits(lexer);
        }
        token.kind = T_TEMP;
    } else
        lex_sign(lexer, &token);

    token.place.length = lexer->at - token.place.offset;
    if (!token.quoted)
        token.text = (Str){lexer->text.ptr + token.place.offset, token.place.length};
    token.glued = is_glued(lexer);
    if (token.kind == T_BAD)
        report_bad(lexer, &token);
    if (!closed) {
        diag_error(lexer->diag, token.place,
                   c == '"' ? "this string has no closing quote" : "this name has no closing quote, or is empty");
        token.kind = T_BAD;
    }
    if (token.kind == T_NAME)
        check_name(lexer, &token);
    if (token.kind == T_NAME && !token.interpolated && !token.quoted)
        token.kind = word_kind(token.text);
    lexer->last = token.kind;
    return token;
}

Str lex_show(Arena *arena, Token token)
{
    if (token.kind == T_END)
        return STR("the end of the file");
    if (token.kind == T_STRING)
        return STR("a string");
    return str_format(arena, "'" STR_FMT "'", STR_ARG(token.text));
}

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Str lex_unescape(Arena *arena, Str text)
{
    if (!text.len || !memchr(text.ptr, '\\', text.len))
        return text;
    char *out = arena_alloc(arena, (size_t)text.len + 1);
    uint32_t length = 0;
    for (uint32_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '\\' && i + 1 < text.len) {
            c = text.ptr[++i];
            if (c == 'x' && i + 2 < text.len && hex_digit(text.ptr[i + 1]) >= 0 && hex_digit(text.ptr[i + 2]) >= 0) {
                c = (char)(hex_digit(text.ptr[i + 1]) << 4 | hex_digit(text.ptr[i + 2]));
                i += 2;
            } else {
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
            }
        }
        out[length++] = c;
    }
    return (Str){out, length};
}

void lex_put_escaped(Text *out, Str s, char quote)
{
    text_char(out, quote);
    for (uint32_t length; s.len; s.ptr += length, s.len -= length) {
        bool shown = str_shows(s, &length);
        if (*s.ptr == quote || *s.ptr == '\\')
            text_printf(out, "\\%c", *s.ptr);
        else if (*s.ptr == '\n')
            text_put(out, "\\n", 2);
        else if (shown)
            text_put(out, s.ptr, length);
        else
            text_put_bytes(out, (Str){s.ptr, length});
    }
    text_char(out, quote);
}
