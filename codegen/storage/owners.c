/* The map of bytes to owners (owners.h): an array in order of the bytes. */
#include "storage/owners.h"

#include "base/number.h"

Owners owners_new(Arena *arena, uint32_t storage_count)
{
    Owners owners = {.arena = arena, .first_loss = ARENA_ARRAY(arena, uint32_t, storage_count)};
    for (uint32_t s = 0; s < storage_count; s++)
        owners.first_loss[s] = NONE;
    return owners;
}

uint32_t owners_find(const Owners *owners, int64_t byte)
{
    uint32_t low = 0, high = owners->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (owners->at[middle].end <= byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_owner(Owners *owners, uint32_t at, Owner owner)
{
    ARENA_PUSH(owners->arena, owners->at, owners->count, owners->capacity, owner);
    for (uint32_t i = owners->count - 1; i > at; i--)
        owners->at[i] = owners->at[i - 1];
    owners->at[at] = owner;
}

static void lose_bytes(Owners *owners, const Owner *owner, Extent taken)
{
    Extent bytes = {most(owner->begin, taken.begin), least(owner->end, taken.end)};
    Loss loss = {bytes, owners->first_loss[owner->of]};
    if (bytes.begin >= bytes.end) /* a neighbour */
        return;
    owners->first_loss[owner->of] = owners->loss_count;
    ARENA_PUSH(owners->arena, owners->loss, owners->loss_count, owners->loss_capacity, loss);
}

void owners_take(Owners *owners, StorageId id, Extent bytes)
{
    int64_t begin = bytes.begin, end = bytes.end;
    Owner left = {0}, right = {0};
    if (begin >= end)
        return;
    uint32_t first = owners_find(owners, begin - 1), last = first; /* the one that ends at `begin`, too */
    if (first < owners->count && owners->at[first].begin < begin)
        left = (Owner){owners->at[first].begin, least(owners->at[first].end, begin), owners->at[first].of};
    for (; last < owners->count && owners->at[last].begin <= end; last++) {
        if (owners->at[last].of != id)
            lose_bytes(owners, &owners->at[last], bytes);
        if (owners->at[last].end > end)
            right = (Owner){most(owners->at[last].begin, end), owners->at[last].end, owners->at[last].of};
    }
    for (uint32_t i = last; i < owners->count; i++)
        owners->at[first + i - last] = owners->at[i];
    owners->count -= last - first;
    bool joins_left = left.end && left.of == id, joins_right = right.end && right.of == id;
    if (right.end && !joins_right)
        insert_owner(owners, first, right);
    insert_owner(owners, first, (Owner){joins_left ? left.begin : begin, joins_right ? right.end : end, id});
    if (left.end && !joins_left)
        insert_owner(owners, first, left);
}

bool owners_lost(const Owners *owners, StorageId id, Extent bytes)
{
    for (uint32_t i = owners->first_loss[id]; i != NONE; i = owners->loss[i].next)
        if (owners->loss[i].bytes.begin < bytes.end && bytes.begin < owners->loss[i].bytes.end)
            return true;
    return false;
}
