/* Orders of execution that need little memory.
 *
 * The problem knows no graph: units run one after another, each after those it needs; a unit writes values and reads
 * values of others.  A value is live from the unit that writes it to the last that reads it, both included, or to the
 * end.  A unit that may write its value over an operand does so when it is the last to read that one, and then takes no
 * bytes of its own while it runs.  Wanted: an order whose peak, the largest sum of live bytes, is least. */
#ifndef NNC_STORAGE_ORDER_H
#define NNC_STORAGE_ORDER_H

#include <stdbool.h>

#include "base/arena.h"
#include "storage/lists.h"

typedef struct OrderProblem {
    uint32_t units, values;
    Lists needs;          /* per unit: the units that run before it, each once or more */
    Lists made, read;     /* per unit: the values it writes, and those of other units that it reads, each once */
    Lists over;           /* per unit: the values it may write its only one over, of as many bytes */
    const int64_t *bytes; /* per value */
    const bool *stays;    /* per value: live to the end */

    Lists feeds, readers; /* per unit, the inverse of needs; per value, the inverse of read: set by order_prepare */
} OrderProblem;

/* Sets what follows from the rest. */
void order_prepare(OrderProblem *problem, Arena *arena);

/* An order is an array of all units, each once.  Legal: every unit after those it needs. */
bool order_is_legal(const OrderProblem *problem, const uint32_t *order, Arena *scratch);
int64_t order_peak(const OrderProblem *problem, const uint32_t *order, Arena *scratch);

/* Depth first from the ends, each unit after what it needs, larger results first (order_lists.c).  Legal, if the needs
 * have no cycle. */
void order_depth_first(const OrderProblem *problem, uint32_t *order, Arena *scratch);
/* Always the ready unit that lowers the live bytes most, or raises them least (order_lists.c).  As above. */
void order_by_memory(const OrderProblem *problem, uint32_t *order, Arena *scratch);

typedef struct OrderEffort {
    int64_t exact, beam; /* steps of search; a step is a few dozen instructions */
    uint32_t width;      /* states the beam keeps, at most */
} OrderEffort;

extern const OrderEffort order_effort; /* what a compilation spends: some tenths of a second at worst */

/* Lowers the peak of a legal order in place; units move only where that lowers it.  Says whether no order has a lower
 * one.  Depends on nothing but its arguments (order.c says how it works). */
bool order_improve(const OrderProblem *problem, uint32_t *order, const OrderEffort *effort, Arena *scratch);

/* For order.c: one piece of an order, in which alone units are moved. */
typedef struct OrderPiece {
    const OrderProblem *problem;
    uint32_t *order;          /* whole */
    const uint32_t *position; /* per unit: its place in the order */
    uint32_t begin, end;      /* the piece's places */
    int64_t live;             /* bytes, before the first */
    int64_t floor;            /* a lower peak is of no use */
    int64_t limit;            /* only a lower peak is of use; once the piece is lowered, that peak, or the floor */
} OrderPiece;

typedef enum OrderVerdict {
    ORDER_LOWERED, /* the piece has a new order, and with unbounded width no other is better */
    ORDER_REFUTED, /* no peak is below the limit; with bounded width: none was found */
    ORDER_OUT,     /* the steps were used up */
} OrderVerdict;

/* Looks for the piece's best order through all sets of units that can have run, or the `width` most promising ones of
 * each size (order_search.c).  Width 0 is unbounded.  Takes the steps it makes from *steps. */
OrderVerdict order_search(OrderPiece *piece, uint32_t width, int64_t *steps, Arena *scratch);

#endif
