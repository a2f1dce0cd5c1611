/* Lives with holes, of values in memory (flow.h). */
#include "storage/flow_lives.h"

#include <string.h>

#include "base/number.h"

void flow_add_piece(Arena *arena, Life *life, int64_t first, int64_t last)
{
    uint32_t at = 0, end;
    if (first >= last)
        return;
    while (at < life->count && life->piece[at].last <= first)
        at++;
    for (end = at; end < life->count && life->piece[end].first < last; end++) {
        first = least(first, life->piece[end].first);
        last = most(last, life->piece[end].last);
    }
    if (end == at) { /* it joins none: room between two others */
        ARENA_PUSH(arena, life->piece, life->count, life->capacity, (LifePiece){0});
        memmove(&life->piece[at + 1], &life->piece[at], (life->count - 1 - at) * sizeof *life->piece);
        end++;
    }
    life->piece[at] = (LifePiece){first, last};
    memmove(&life->piece[at + 1], &life->piece[end], (life->count - end) * sizeof *life->piece);
    life->count -= end - at - 1;
}

bool flow_is_alive(const Life *life, int64_t step, int64_t beyond)
{
    for (uint32_t i = 0; i < life->count; i++)
        if (life->piece[i].first <= step && step + beyond < life->piece[i].last)
            return true;
    return false;
}

ValueId flow_whole(const Lives *l, ValueId value)
{
    return l->memory->storage.at[flow_owner(l->memory->graph, value)].whole;
}
