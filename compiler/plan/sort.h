/* Stable radix sort of indices by a 64-bit key: linear in the count, and the same everywhere, since equal keys keep
 * their order.  To sort by several keys, sort by the least important first. */
#ifndef NNC_PLAN_SORT_H
#define NNC_PLAN_SORT_H

#include <stdbool.h>

#include "base/arena.h"

typedef struct SortKey {
    uint64_t key;
    uint32_t index;
} SortKey;

void sort_ascending(Arena *scratch, SortKey *keys, uint32_t count); /* scratch is given back */

static inline uint64_t sort_falling(int64_t value) /* the key that sorts the largest value first; value >= 0 */
{
    return ~(uint64_t)value;
}

#endif
