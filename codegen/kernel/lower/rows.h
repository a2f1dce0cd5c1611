/* Rows (rows.c), reductions over one (row.c), and an operand that is brought into scratch for them (rows_turn.c). */
#ifndef NNC_KERNEL_ROWS_H
#define NNC_KERNEL_ROWS_H

#include "kernel/lower/lower.h"

typedef struct Rows {
    const Shape *space;
    uint32_t row_rank; /* dimensions before the columns */
    int64_t columns;
    uint32_t block;   /* channels of the last dimension in memory, where one row is the whole space; or 0 */
    const Index *row; /* position of the row */
    uint32_t team;    /* threads that share out the columns, or 0 */
    const Var *thread;
} Rows;

/* Where a column of the row is; whether there is little to do; a loop over the columns from `begin` on, or over this
 * thread's share of them. */
void lower_row_position(Lower *lower, const Rows *rows, Index at, Index *position);
bool lower_row_is_small(const Lower *lower, const Rows *rows);
Stmt *lower_row_loop(Lower *lower, const Rows *rows, int64_t begin, const Var **at);
/* Adds all that the reduction takes of the row to the total, the first of the strands. */
void lower_reduce_row(Lower *lower, const Rows *rows, const Node *node, const Strands *total);

typedef struct RowSpace { /* [rows ..., columns ...] */
    const Shape *shape;
    uint32_t row_rank; /* dimensions before the columns */
    int64_t columns;
} RowSpace;

/* Some neighbours in the last dimension of rows, in scratch [count][columns]. */
typedef struct TurnedRows {
    const RowSpace *space;
    ValueId value;
    uint32_t buffer;
    const Index *row; /* position of the others */
    Index first;
    int64_t count;
} TurnedRows;

/* An operand that is read along columns which are apart; NONE. */
ValueId lower_turned_operand(Lower *lower, const RowSpace *space);
void lower_plan_turned(Lower *lower, const RowSpace *space, Recipe *recipe);
uint32_t lower_turned_piece(const Recipe *recipe); /* of its scratch; NONE */
void lower_fill_turned(Lower *lower, const TurnedRows *turned);

#endif
