/* The syntax tree of a source file.  Functions and loop bodies are kept as trees and built once per call and round.
 * Depth of expressions and of blocks is bounded while parsing, so walks over the tree may recurse. */
#ifndef NNC_FRONTENDS_NNC_AST_H
#define NNC_FRONTENDS_NNC_AST_H

#include "frontends/nnc/constant.h"
#include "frontends/nnc/lex.h"

#define DEEPEST_EXPR  200
#define DEEPEST_BLOCK 32

typedef struct Expr Expr;
typedef struct Block Block;

/* `layer{i}.weight` is the parts `layer`, i, `.weight`. */
typedef struct NamePart {
    Str text;         /* when expr is NULL */
    const Expr *expr; /* in braces */
} NamePart;

typedef struct Name {
    Str text; /* without interpolation; `%12` of temporaries */
    const NamePart *part;
    uint32_t part_count; /* 0 without interpolation */
    bool temporary;
    Place place;
} Name;

typedef enum ExprKind {
    EXPR_BAD, /* a syntax error stood here */
    EXPR_CONST,
    EXPR_NAME,
    EXPR_LIST,
    EXPR_UNARY,
    EXPR_BINARY,
    EXPR_CALL,
    EXPR_INDEX,
    EXPR_PROPERTY, /* (...).shape */
    EXPR_IF,       /* left if cond else right */
} ExprKind;

typedef struct Arg {
    Str name; /* empty when by position */
    Place name_place;
    const Expr *value;
} Arg;

typedef enum PickKind { PICK_INDEX, PICK_RANGE, PICK_REST } PickKind;
typedef struct Pick { /* one entry of x[...] */
    PickKind kind;
    const Expr *begin, *end, *step; /* NULL where not written; an index is in `begin` */
    Place place;
} Pick;

struct Expr {
    ExprKind kind;
    TokenKind op; /* UNARY, BINARY */
    uint16_t depth;
    bool too_large; /* CONST: 2^63, right only after a minus */
    Place place;
    union {
        struct {
            const Name *name;  /* NAME; CALL: the function */
            const Name *label; /* CALL: or NULL */
        };
        struct {
            const Expr *left, *right; /* BINARY, IF; UNARY, INDEX and PROPERTY: left */
        };
    };
    union {
        const Expr *cond;         /* IF */
        const Name *property;     /* PROPERTY */
        const Const *constant;    /* CONST */
        const Arg *arg;           /* CALL */
        const Pick *pick;         /* INDEX */
        const Expr *const *items; /* LIST */
    } u;
    uint32_t count; /* of args, picks, items */
};

typedef struct TypeExpr {
    const Name *dtype;
    const Expr **dim; /* NULL entries are `?` */
    uint32_t rank;
    Layout layout;
    Place place;
} TypeExpr;

typedef struct Mark { /* @kernel(3, tiled, pixels = 14), @inplace(x, _), @mem(sram) */
    Str name;
    const Name **word;   /* arguments; numbers as text */
    const Name **number; /* per argument: what stands after its `=`, or NULL */
    uint32_t count;
    Place place;
} Mark;

typedef struct Target {
    const Name *name;
    const TypeExpr *type; /* or NULL */
} Target;

typedef enum StmtKind { STMT_DECLARE, STMT_ASSIGN, STMT_UPDATE, STMT_FOR, STMT_IF } StmtKind;

typedef struct Stmt {
    StmtKind kind;
    TokenKind role;       /* DECLARE: T_PARAM, T_STATE, T_CONST */
    const Target *target; /* FOR: what `carry` names */
    uint32_t target_count;
    const Expr *value; /* DECLARE: may be NULL.  IF: the condition */
    const Mark *mark;
    uint32_t mark_count;
    const Name *index; /* FOR */
    const Expr *from, *to;
    const Block *body, *otherwise; /* FOR; IF, where `otherwise` may be NULL */
    Place place;
} Stmt;

struct Block {
    const Stmt *stmt;
    uint32_t count;
};

typedef struct Formal { /* an input, result or parameter of a function */
    const Name *name;
    const TypeExpr *type; /* or NULL */
    const Expr *fallback; /* or NULL */
    const Mark *mark;
    uint32_t mark_count;
} Formal;

typedef struct Function { /* or a graph */
    const Name *name;
    const Formal *formal, *result;
    uint32_t formal_count, result_count;
    const Mark *mark;
    uint32_t mark_count;
    const Block *body;
    struct File *file;
    Place place; /* from `fn` to the closing brace */
} Function;

typedef struct ConstItem { /* a top-level constant */
    const Name *name;
    const TypeExpr *type;
    const Expr *value; /* NULL when it must come from -D */
    Place place;
} ConstItem;

typedef struct UseItem {
    Str path;
    Place place;
} UseItem;

/* What stands at the top level, in order. */
typedef struct Item {
    enum { ITEM_USE, ITEM_CONST, ITEM_FN, ITEM_GRAPH } kind;
    UseItem use;
    ConstItem constant;
    const Function *function;
} Item;

typedef struct Tree {
    Item *item;
    uint32_t count, capacity;
} Tree;

/* Parses a source that the diag knows; what has errors is left out or EXPR_BAD. */
void parse_tree(Arena *arena, Diag *diag, uint32_t source, Tree *tree);
/* An expression alone, for -D. */
const Expr *parse_constant(Arena *arena, Diag *diag, uint32_t source);

#endif
