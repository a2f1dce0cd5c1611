#include "plan/sort.h"

#include <string.h>

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)
#define FEW        48 /* below this, insertion is faster */

static void insertion(SortKey *keys, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        SortKey k = keys[i];
        uint32_t j = i;
        for (; j > 0 && keys[j - 1].key > k.key; j--)
            keys[j] = keys[j - 1];
        keys[j] = k;
    }
}

/* One stable pass by the digit at `shift`; false when all keys have the same digit there and nothing was done. */
static bool pass(const SortKey *from, SortKey *to, uint32_t count, unsigned shift)
{
    uint32_t start[DIGITS] = {0}, sum = 0;
    for (uint32_t i = 0; i < count; i++)
        start[from[i].key >> shift & (DIGITS - 1)]++;
    if (start[from[0].key >> shift & (DIGITS - 1)] == count)
        return false;
    for (uint32_t d = 0; d < DIGITS; d++) {
        uint32_t n = start[d];
        start[d] = sum;
        sum += n;
    }
    for (uint32_t i = 0; i < count; i++)
        to[start[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

void sort_ascending(Arena *scratch, SortKey *keys, uint32_t count)
{
    if (count < FEW) {
        insertion(keys, count);
        return;
    }
    ArenaMark mark = arena_mark(scratch);
    SortKey *from = keys, *to = ARENA_ARRAY(scratch, SortKey, count);
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS)
        if (pass(from, to, count, shift)) {
            SortKey *swap = from;
            from = to;
            to = swap;
        }
    if (from != keys)
        memcpy(keys, from, sizeof *keys * count);
    arena_reset(scratch, mark);
}
