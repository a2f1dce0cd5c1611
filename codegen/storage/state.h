/* States: values that are kept from one run to the next, in a block of memory that the caller owns.
 *
 * A run reads a state's value and makes its next one.  That is made where the value is when nothing reads the value any
 * more by then, or when the kernel that makes it reads each element before it writes it (a running mean, the step of an
 * optimiser).  Otherwise the state has memory twice, and the two take turns from run to run: nothing is ever copied. */
#ifndef NNC_STORAGE_STATE_H
#define NNC_STORAGE_STATE_H

#include "storage/memory.h"
#include "storage/units.h"

/* The states that the graph reads or updates, in the order of its values, each with what it is updated with. */
uint32_t state_list(const Graph *graph, Arena *arena, StateValue **list);

/* For ordering: pairs (reader, maker) of units such that no state, and nothing that a loop carries, needs memory twice
 * if every reader of its value runs before the maker of its next one.  So with updates on the way to that, of which
 * each may be made over the one before.  Pairs that would close a cycle with `needs` (per unit, the units that run
 * before it), or with those found before, are left out. */
typedef struct UnitPair {
    uint32_t before, after;
} UnitPair;
uint32_t state_wishes(const Graph *graph, const Units *units, const Lists *needs, Arena *arena, UnitPair **pair);

/* Decides which states have memory twice; the lives of all storage are known. */
void state_settle(Memory *memory);

#endif
