/* Prints expressions and statements of the loop IR as C, for scalars and for vectors.  Shared by the C and CUDA
 * printers. */
#ifndef NNC_C_EXPR_H
#define NNC_C_EXPR_H

#include "c/constants.h"
#include "c/print.h"

#define MOST_LOOPS 64

typedef struct LocalName {
    Str name, base;
    uint32_t before; /* the last number of that base when this one was named */
} LocalName;

typedef struct Printer {
    Text *out;
    Arena *arena;
    const Target *target;
    const Kernel *kernel;
    const KernelNames *names;
    PreludeNeeds *needs;
    uint32_t indent;
    const Var *lane; /* of the region around, or NULL */
    uint32_t lanes;
    bool wide;                  /* positions are as wide as pointers, not an int */
    bool holds;                 /* those that have names are hidden from optimisers */
    bool alone;                 /* the statement is all that its braces hold */
    bool shared;                /* the next block prints between statements of another */
    const Var *var[MOST_LOOPS]; /* loops around, and the names they got */
    Str var_name[MOST_LOOPS];
    uint32_t depth;
    Str *local_name;  /* per local id; of registers, what stands before their row and column */
    LocalName *scope; /* (a list) locals that are named in the braces around */
    uint32_t scope_count, scope_capacity;
    Map last_number;      /* what names in scope end in, by what they begin with */
    bool *assigned;       /* per local id: changes after its declaration */
    bool *wide_local;     /* per local id: an i64 that a position is made of, whatever the positions' type is */
    Constants *constants; /* integers of the loops are noted there, or printed as it says; NULL: they are numbers */
    Constant place;       /* what the next index is: its kind, and what it leads into */
    bool innermost;       /* in a loop that holds no other */
} Printer;

/* !x is unary, but compilers ask for parentheses around it where it is an operand of a comparison. */
enum { PREC_SELECT, PREC_COMPARE, PREC_SUM, PREC_PRODUCT, PREC_UNARY, PREC_PRIMARY, PREC_NOT = PREC_COMPARE };

typedef struct Piece { /* an expression's text */
    Str text;
    int precedence;
    bool vector;
} Piece;

Piece print_expr(Printer *printer, const Expr *expr);
/* Is it sum + a * b of strict C99's lanes, which one function computes? */
bool print_is_product_sum(const Printer *printer, const Expr *expr);
/* The same, as a variable or an element takes it. */
Str print_scalar(Printer *printer, const Expr *expr);
/* The same, as one vector where the region has vectors. */
Str print_vector(Printer *printer, const Expr *expr);
Str print_index(Printer *printer, Index index);
/* Has it more bits than the positions' type? */
bool print_is_wide(const Printer *printer, Index index);
/* What has, for a variable of that type: C compilers warn of what is narrowed silently. */
Str print_narrowed(Printer *printer, Str shown);
/* The same of a place in what is called `of`. */
Str print_index_of(Printer *printer, Str of, Index index);
/* A number of the loops, or the parameter that stands for it. */
Str print_constant(Printer *printer, ConstantKind kind, const char *along, int64_t value);
/* From one lane to the next. */
Str print_lane_stride(Printer *printer, Str of, int64_t factor);
/* The index into what is called `of` with the lane variable taken as 0, and the lane's factor. */
Str print_base(Printer *printer, Str of, Index index, int64_t *lane_factor);
/* name, name3_1 */
Str print_local(Printer *printer, const Local *local, Index i, Index j);
Str print_var(const Printer *printer, const Var *var);
Str print_parenthesized(Printer *printer, Piece piece, int least);
const char *print_index_type(const Printer *printer);

/* Words, of arguments that are printed (word.c) */
Piece print_applied(Printer *printer, const Expr *expr, const Piece *arg); /* the word of an expression */
Piece print_call(Printer *printer, DType dtype, Helper helper, const Piece *arg);
Piece print_infix(Printer *printer, Piece a, const char *operator, Piece b, int precedence);
Piece print_selected(Printer *printer, Piece mask, Piece a, Piece b);
Piece print_vector_piece(Printer *printer, Piece piece); /* a scalar in all lanes */
Str print_as_vector(Printer *printer, Piece piece);
Str print_integers(Printer *printer, Piece piece); /* of i32: a number, or a bundle, in all lanes */
Str print_as_mask(Printer *printer, Piece piece);

/* Elements two to a byte (nibbles.c) */
bool print_nibble_byte(Arena *arena, Index index, Index *byte); /* of an element; false where it may be an odd one */
Helper print_nibble_helper(DType dtype, int64_t stride, bool even); /* for a vector, from an even one on or from any */

/* Products of matrices (matrices.c) */
void print_product(Printer *printer, const Stmt *stmt);
void print_tiles(Printer *printer, const Stmt *stmt);

/* Statements (print_stmt.c), and what is to be known of them before (print.c) */
void print_start(Printer *printer); /* learns what printing needs to know of printer->kernel as a whole */
void print_block(Printer *printer, const Block *block);
void print_line(Printer *printer, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Names a variable for what is printed until depth is brought back. */
Str print_push(Printer *printer, const Var *var);
/* Names a local until the scope is brought back to so many names. */
void print_name_local(Printer *printer, const Local *local);
void print_leave_scope(Printer *printer, uint32_t names);
const char *print_meet_name(Word word); /* the function of STMT_MEET, without _dtype */

#endif
