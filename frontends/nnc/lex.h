/* Tokens of .nnc.  A newline ends a statement only outside of parentheses, so tokens tell what stood before them. */
#ifndef NNC_FRONTENDS_NNC_LEX_H
#define NNC_FRONTENDS_NNC_LEX_H

#include "base/diag.h"

typedef enum TokenKind {
    T_END,
    T_BAD, /* reported already */
    T_NAME,
    T_TEMP, /* %12 */
    T_INT,
    T_FLOAT,
    T_STRING,
    T_LPAREN,
    T_RPAREN,
    T_LBRACKET,
    T_RBRACKET,
    T_LBRACE,
    T_RBRACE,
    T_COMMA,
    T_COLON,
    T_SEMICOLON,
    T_DOT,
    T_RANGE,    /* .. */
    T_ELLIPSIS, /* ... */
    T_QUESTION,
    T_ASSIGN,
    T_UPDATE, /* <- */
    T_ARROW,  /* -> */
    T_PLUS,
    T_MINUS,
    T_STAR,
    T_POWER,
    T_SLASH,
    T_SLASH2,
    T_PERCENT,
    T_AT,
    T_EQ,
    T_NE,
    T_LT,
    T_LE,
    T_GT,
    T_GE,
    T_KEYWORD, /* and those after it: reserved words */
    T_AND,
    T_BOOL_FALSE,
    T_BOOL_TRUE,
    T_CARRY,
    T_CASE,
    T_CONST,
    T_ELSE,
    T_FN,
    T_FOR,
    T_GRAPH,
    T_IF,
    T_IN,
    T_INF,
    T_MINIMIZE,
    T_NAN,
    T_NEXT,
    T_NONE,
    T_NOT,
    T_OR,
    T_PARAM,
    T_STATE,
    T_USE,
    T_WHILE,
    T_WITH,
    T_YIELD,
} TokenKind;

typedef struct Token {
    TokenKind kind;
    bool newline_before, space_before;
    bool glued;        /* no blank between this token and the next */
    bool interpolated; /* T_NAME with {...} in it */
    bool quoted;       /* T_NAME in backquotes */
    Str text;          /* as in the source; of strings and quoted names what stands between the quotes */
    Place place;
} Token;

typedef struct Lexer { /* may be copied to look ahead */
    Diag *diag;
    Str text;
    uint32_t source, at, end; /* reads text[at .. end) */
    TokenKind last;
} Lexer;

Lexer lex_start(Diag *diag, uint32_t source);
Token lex_next(Lexer *lexer);

/* Names a token for messages: `'}'`, `'relu'`, `the end of the file`. */
Str lex_show(Arena *arena, Token token);
bool lex_is_reserved(Str name);
bool lex_is_plain(Str name); /* may be written without backquotes */
/* What stands between quotes, with \n \t \" \\ \` and \xNN resolved. */
Str lex_unescape(Arena *arena, Str text);
void lex_put_escaped(Text *out, Str s, char quote);

#endif
