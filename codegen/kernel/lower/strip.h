/* Strips: a product whose rows are made of those of another product, as in attention.
 *
 *     y = softmax(q * k^T) * v
 *
 * What is between the products is as wide as there are keys, and as high as there are queries: memory that nobody else
 * asks for, read and written several times.  So a kernel keeps a strip of it: some rows are made by the tiles of the
 * first product, passed over by the reductions, and taken by the tiles of the second one, while the second level of the
 * caches has them.  A row is whole before its softmax is taken; so results are those of three kernels (Dao et al. 2022,
 * whose FlashAttention cuts rows, too, must scale what it has summed up so far).
 *
 * The nodes of the kernel are of three parts, each of which is seen and lowered like a kernel of its own. */
#ifndef NNC_KERNEL_LOWER_STRIP_H
#define NNC_KERNEL_LOWER_STRIP_H

#include "kernel/lower/lower.h"
#include "ops/meaning.h"

typedef enum StripPart {                  /* Node.part */
                         STRIP_FIRST = 1, /* the first product, and what is made of its sums */
                         STRIP_ROWS,      /* reductions over the rows, and what is made of them; may be missing */
                         STRIP_SECOND,    /* the second product, and its epilogue */
} StripPart;

struct Strip {
    ValueId made, taken;       /* what the first part makes, and what the second one takes; the same without rows */
    Product product;           /* the first */
    const Var *loop[MAX_RANK]; /* over the batch */
    int64_t height;            /* rows of a strip */
    const Var *row;            /* the first of them, by `height`; where the last strip would not be whole ... */
    const Local *begin;        /* ... it begins earlier; else NULL */
    Index first;               /* one or the other */
    int64_t apart;             /* elements from row to row */
    uint32_t piece;            /* of the recipe's scratch */
    uint32_t buffer;
};

static inline bool strip_holds(const Strip *strip, ValueId value)
{
    return value == strip->made || value == strip->taken;
}

/* strip_ask.c: as many as the second level has room for, such that little is computed twice; 0: there is no such
 * height. `whole`: no strip may overlap another one, because threads share them. */
int64_t strip_height(const Target *target, int64_t rows, int64_t columns, bool whole);

/* address.c: where the element of what lies between the products is in the strip. */
Index strip_address(const Lower *lower, const Index *position);

/* What the parts are made of, with lower->strip: register tiles for a strip of rows (tiled.c) ... */
typedef struct Tiled Tiled;
Tiled *tiled_plan_strip(Lower *lower, Recipe *recipe); /* adds to its scratch; NULL: tiles do not take it */
void tiled_pack_strips(Tiled *con);                    /* the second operand, for all strips */
void tiled_lower_strip(Tiled *con);
/* ... and reductions over its rows (rows.c), which take the first pieces of scratch. */
void strip_plan_rows(Lower *lower, Recipe *recipe);
void strip_lower_rows(Lower *lower);

/* The statements of a strip, where those of each part begin. */
typedef struct StripBody {
    Block *block;
    Stmt *before; /* the last one before them, or NULL */
    Stmt *first, *rows, *second;
} StripBody;

/* strip_hidden.c: what the first part, or the kernel that has it, adds to scores, or selects by, where a line of
 * constants says it: all columns that are `first` or more beside their row have one number. */
typedef struct StripMask {
    ValueId value; /* [..., rows, columns] */
    double hidden; /* that number */
    int64_t first;
    bool shows; /* every row sees a column at least */
} StripMask;
bool strip_find_mask(const Graph *graph, const Kernel *kernel, StripMask *mask);

/* Columns that a mask of the first part hides from the whole strip are left out. */
void strip_leave_hidden(Lower *lower, const Strip *strip, const Kernel *first, const Kernel *rows, StripBody body);

#endif
