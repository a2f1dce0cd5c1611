/* Rows (rows.c) of an operand that is brought into scratch for them (rows_turn.c). */
#ifndef NNC_KERNEL_ROWS_H
#define NNC_KERNEL_ROWS_H

#include "kernel/lower/lower.h"

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
