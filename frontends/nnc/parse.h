/* Shared by the parts of the parser: expressions (parse_expr.c), loops and branches (parse_control.c), names, types and
 * marks (parse_name.c), statements and items (parse.c). */
#ifndef NNC_FRONTENDS_NNC_PARSE_H
#define NNC_FRONTENDS_NNC_PARSE_H

#include "frontends/nnc/ast.h"

typedef struct Parser {
    Arena *arena;
    Diag *diag;
    Lexer lexer;
    Token token, next; /* the current one, and one of lookahead */
    uint32_t last_end; /* offset after the token before the current one */
    uint32_t paren;    /* open parentheses and brackets: newlines mean nothing inside */
    uint32_t depth, block_depth;
    bool panic;    /* an error was reported; silent until the next statement */
    bool inner;    /* reads the braces of a name: its end is a '}' */
    bool at_end;   /* the end of the file has been reported */
    bool at_value; /* reads the value of a flag */
} Parser;

void parse_start(Parser *parser, Arena *arena, Diag *diag, uint32_t source);
Token parse_advance(Parser *parser); /* returns the token passed over */
bool parse_accept(Parser *parser, TokenKind kind);
bool parse_expect(Parser *parser, TokenKind kind, const char *what);
bool parse_error(Parser *parser, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool parse_unexpected(Parser *parser, const char *wanted);
Place parse_place(const Parser *parser, Place begin); /* from there to the end of the last token */
bool parse_at_line_end(const Parser *parser);         /* does the statement end here? */

const AstExpr *parse_expr(Parser *parser);
const AstBlock *parse_block(Parser *parser);
bool parse_for(Parser *parser, AstStmt *stmt);        /* parse_for.c */
bool parse_target(Parser *parser, AstTarget *target); /* x: f32[3] */
bool parse_at_control(const Parser *parser);
const AstControl *parse_control(Parser *parser); /* NULL after an error */
bool parse_yield(Parser *parser, AstStmt *stmt);
const AstName *parse_name(Parser *parser, const char *what); /* a name or a temporary; NULL after an error */
const AstName *parse_name_of(Parser *parser, Token token);
const AstType *parse_type(Parser *parser);
bool parse_at_mark(const Parser *parser);
void parse_marks(Parser *parser, const AstMark **mark, uint32_t *count);

/* A list under construction: a few items on the stack, since most lists are short; then all of them in the arena. */
#define LIST_FEW 8
#define LIST(T)                                                                                                        \
    struct {                                                                                                           \
        T *item;                                                                                                       \
        uint32_t count, capacity;                                                                                      \
        T few[LIST_FEW];                                                                                               \
    }
#define LIST_START(list)               ((list).count = 0, (list).capacity = LIST_FEW, (list).item = (list).few)
#define LIST_PUSH(parser, list, value) ARENA_PUSH((parser)->arena, (list).item, (list).count, (list).capacity, value)
#define LIST_KEEP(parser, list)        arena_copy((parser)->arena, (list).item, (list).count * sizeof *(list).item)

#endif
