/* Index expressions: integer sums of loop variables with constant factors, plus atoms for quotients, remainders and
 * positions read from memory.  Every constructor simplifies with the ranges of the variables, so that a view of a view
 * of a blocked tensor usually comes out as a plain affine address. */
#ifndef NNC_KERNEL_INDEX_H
#define NNC_KERNEL_INDEX_H

#include "base/text.h"

typedef struct Var { /* a loop variable; identity is the pointer */
    const char *name;
    int64_t low, high; /* the values it takes, both inclusive */
} Var;

typedef struct Atom Atom;
struct Expr;

typedef struct Term {
    int64_t factor;
    const Atom *atom;
} Term;

typedef struct Index { /* constant + sum of factor * atom */
    int64_t constant;
    uint32_t count;
    const Term *term;
} Index;

typedef enum AtomKind { ATOM_VAR, ATOM_DIV, ATOM_MOD, ATOM_DATA } AtomKind;

struct Atom {
    AtomKind kind;
    const Var *var; /* ATOM_VAR */
    Index index;    /* ATOM_DIV, ATOM_MOD: index / divisor, index % divisor, of a non-negative index */
    int64_t divisor;
    const struct Expr *data; /* ATOM_DATA: an integer computed by the kernel, within [low, high].  Nothing here looks
                                into it: what does is in loop.h */
    int64_t low, high;
};

Index index_constant(int64_t value);
Index index_var(Arena *arena, const Var *var);
Index index_data(Arena *arena, const struct Expr *data, int64_t low, int64_t high);
Index index_add(Arena *arena, Index a, Index b);
Index index_scale(Arena *arena, Index a, int64_t factor);
Index index_div(Arena *arena, Index a, int64_t divisor); /* a >= 0 */
Index index_mod(Arena *arena, Index a, int64_t divisor);
/* Row-major position in a shape, and back: of a position that is in the shape. */
Index index_flatten(Arena *arena, const Index *position, const int64_t *dim, uint32_t rank);
void index_unflatten(Arena *arena, Index flat, const int64_t *dim, uint32_t rank, Index *position);

int64_t index_low(Index a);
int64_t index_high(Index a);
bool index_eq(Index a, Index b);

#endif
