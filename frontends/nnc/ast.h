/* The syntax tree of a source file.  Functions and loop bodies are kept as trees and built once per call and round.
 * Depth of expressions and of blocks is bounded while parsing, so walks over the tree may recurse. */
#ifndef NNC_FRONTENDS_NNC_AST_H
#define NNC_FRONTENDS_NNC_AST_H

#include "frontends/nnc/constant.h"
#include "frontends/nnc/lex.h"

#define DEEPEST_EXPR  200
#define DEEPEST_BLOCK 32

typedef struct AstExpr AstExpr;
typedef struct AstBlock AstBlock;
typedef struct AstControl AstControl;

/* `layer{i}.weight` is the parts `layer`, i, `.weight`. */
typedef struct AstNamePart {
    Str text;            /* when expr is NULL */
    const AstExpr *expr; /* in braces */
} AstNamePart;

typedef struct AstName {
    Str text; /* without interpolation; `%12` of temporaries */
    const AstNamePart *part;
    uint32_t part_count; /* 0 without interpolation */
    bool temporary;
    Place place;
} AstName;

typedef enum AstExprKind {
    AST_BAD, /* a syntax error stood here */
    AST_CONST,
    AST_NAME,
    AST_LIST,
    AST_UNARY,
    AST_BINARY,
    AST_CALL,
    AST_INDEX,
    AST_PROPERTY,    /* (...).shape */
    AST_CONDITIONAL, /* left if cond else right */
    AST_CONTROL,     /* while, do, scan, case, if */
} AstExprKind;

typedef struct AstArg {
    Str name; /* empty when by position */
    Place name_place;
    const AstExpr *value;
} AstArg;

typedef enum AstPickKind { AST_PICK_INDEX, AST_PICK_RANGE, AST_PICK_REST } AstPickKind;
typedef struct AstPick { /* one entry of x[...] */
    AstPickKind kind;
    const AstExpr *begin, *end, *step; /* NULL where not written; an index is in `begin` */
    Place place;
} AstPick;

struct AstExpr {
    AstExprKind kind;
    TokenKind op; /* UNARY, BINARY */
    uint16_t depth;
    bool too_large; /* CONST: 2^63, right only after a minus */
    Place place;
    union {
        struct {
            const AstName *name;  /* NAME; CALL: the function */
            const AstName *label; /* CALL: or NULL */
            bool checkpoint;      /* CALL */
        };
        struct {
            const AstExpr *left, *right; /* BINARY, IF; UNARY, INDEX and PROPERTY: left */
        };
    };
    union {
        const AstExpr *cond;         /* IF */
        const AstName *property;     /* PROPERTY */
        const Const *constant;       /* CONST */
        const AstArg *arg;           /* CALL */
        const AstPick *pick;         /* INDEX */
        const AstExpr *const *items; /* LIST */
        const AstControl *control;   /* CONTROL */
    } u;
    uint32_t count; /* of args, picks, items */
};

typedef struct AstType {
    const AstName *dtype;
    const AstExpr **dim; /* NULL entries are `?` */
    uint32_t rank;
    Layout layout;
    uint32_t layout_rank; /* the dimensions that it names; 0: none is written */
    Place place;
} AstType;

typedef struct AstMark { /* @kernel(3, tiled, pixels = 14), @inplace(x, _), @mem(sram) */
    Str name;
    const AstName **word;   /* arguments; numbers as text */
    const AstName **number; /* per argument: what stands after its `=`, or NULL */
    uint32_t count;
    Place place;
} AstMark;

typedef struct AstTarget {
    const AstName *name;
    const AstType *type; /* or NULL */
} AstTarget;

typedef struct AstPattern { /* what takes an item: `i`, `(c, s)`, `(i, (c, s))` */
    const AstName *name;    /* or NULL: its parts */
    const struct AstPattern *part;
    uint32_t count;
    Place place;
} AstPattern;

typedef enum AstStmtKind { AST_DECLARE, AST_ASSIGN, AST_UPDATE, AST_FOR, AST_IF, AST_YIELD, AST_MINIMIZE } AstStmtKind;

typedef struct AstStmt {
    AstStmtKind kind;
    TokenKind role;          /* DECLARE: T_PARAM, T_STATE, T_CONST */
    const AstTarget *target; /* FOR: what `carry` names */
    uint32_t target_count;
    const AstExpr *value; /* DECLARE: may be NULL.  IF: the condition.  MINIMIZE: a call */
    const AstMark *mark;
    uint32_t mark_count;
    const AstPattern *each;      /* FOR: the counter, or the names of an item */
    const AstExpr *from, *to;    /* FOR: a range; or in `from` the list, and `to` NULL */
    const AstExpr *const *yield; /* YIELD */
    uint32_t yield_count;
    const AstBlock *body, *otherwise; /* FOR; IF, where `otherwise` may be NULL */
    Place place;
} AstStmt;

struct AstBlock {
    const AstStmt *stmt;
    uint32_t count;
};

/* Loops and branches that depend on data; frontends/nnc/parse_control.c has their syntax. */

typedef struct AstCarry { /* of with (...): x: f32[3] = x0 */
    AstTarget target;
    const AstExpr *first;
} AstCarry;

typedef struct AstNext { /* of next (...): x <- y */
    const AstName *name;
    const AstExpr *value;
} AstNext;

typedef struct AstElement { /* of scan (...): x in xs */
    const AstName *name;
    const AstExpr *sequence;
} AstElement;

typedef struct AstBranch {
    const AstExpr *key;   /* CASE; NULL for `else` */
    const AstBlock *body; /* ends with a yield */
    Place place;
} AstBranch;

typedef enum AstControlKind { AST_WHILE, AST_DO, AST_SCAN, AST_CASE, AST_CHOICE } AstControlKind;

struct AstControl {
    AstControlKind kind;
    const AstBlock *condition; /* WHILE: yields it */
    const AstExpr *test;       /* DO: in the scope of the body; CASE: the selector; CHOICE: the condition */
    const AstCarry *carry;     /* loops */
    const AstNext *next;
    const AstElement *element; /* SCAN */
    const AstExpr *const *stack;
    const AstExpr *axis, *most, *unroll; /* loops; NULL where not written */
    const AstBlock *body;
    const AstBranch *branch; /* CASE; CHOICE: two, of which the first has no key either */
    uint32_t carry_count, next_count, element_count, stack_count, branch_count;
};

typedef struct AstFormal { /* an input, result or parameter of a function */
    const AstName *name;
    const AstType *type;     /* or NULL */
    const AstExpr *fallback; /* or NULL */
    const AstMark *mark;
    uint32_t mark_count;
} AstFormal;

typedef struct AstFunction { /* or a graph */
    const AstName *name;
    const AstFormal *formal, *result;
    uint32_t formal_count, result_count;
    const AstMark *mark;
    uint32_t mark_count;
    const AstBlock *body;
    const struct AstFunction *gradient; /* its own: takes gradients of the results, gives those of tensors; or NULL */
    struct File *file;
    Place place; /* from `fn` to the closing brace */
} AstFunction;

typedef struct AstConst { /* a top-level constant */
    const AstName *name;
    const AstType *type;
    const AstExpr *value; /* NULL when it must come from -D */
    Place place;
} AstConst;

typedef struct AstUse {
    Str path;
    Place place;
} AstUse;

/* What stands at the top level, in order. */
typedef struct AstItem {
    enum { AST_ITEM_USE, AST_ITEM_CONST, AST_ITEM_FN, AST_ITEM_GRAPH } kind;
    AstUse use;
    AstConst constant;
    const AstFunction *function;
} AstItem;

typedef struct AstTree {
    AstItem *item;
    uint32_t count, capacity;
} AstTree;

/* Parses a source that the diag knows; what has errors is left out or EXPR_BAD. */
void parse_tree(Arena *arena, Diag *diag, uint32_t source, AstTree *tree);
/* Statements alone, without a block around them; what has errors is left out. */
const AstBlock *parse_statements(Arena *arena, Diag *diag, uint32_t source);
/* An expression alone, which begins at this offset of the source, for -D. */
const AstExpr *parse_constant(Arena *arena, Diag *diag, uint32_t source, uint32_t begin);

#endif
