#include "api/uses.h"

typedef struct Uses {
    const Memory *memory;
    const PlanRow *row;
    uint32_t *first; /* per storage: the first row that holds it and is not over yet ... */
    uint32_t *next;  /* ... and per row the next one, since what is made in parts has one for every state */
} Uses;

static Uses rows_of_storage(Arena *arena, const Memory *memory, const PlanRow *row)
{
    uint32_t storages = memory->storage.count, rows = memory->problem.count;
    Uses u = {memory, row, ARENA_ARRAY(arena, uint32_t, storages), ARENA_ARRAY(arena, uint32_t, rows)};
    for (StorageId s = 0; s < storages; s++)
        u.first[s] = PLAN_NO_ROW;
    for (uint32_t i = rows; i-- > 0;) {
        u.next[i] = u.first[memory->holder[i]];
        u.first[memory->holder[i]] = i;
    }
    return u;
}

/* The row that a kernel's buffer lies in, or PLAN_NO_ROW when it is not in the arena.  Steps are asked for in order. */
static uint32_t row_at(const Uses *u, uint32_t step, uint32_t b)
{
    uint32_t *first = &u->first[u->memory->kernel[step].buffer[b].storage], row;
    while (*first != PLAN_NO_ROW && u->row[*first].last <= step)
        *first = u->next[*first];
    row = *first;
    while (row != PLAN_NO_ROW && !(u->row[row].first <= step && step < u->row[row].last))
        row = u->next[row];
    return row;
}

void uses_note(Arena *arena, const Entry *entry, PlanRow *row)
{
    const Memory *memory = &entry->memory;
    uint32_t rows = memory->problem.count, *room = ARENA_ARRAY(arena, uint32_t, rows);
    int64_t **use = ARENA_ARRAY(arena, int64_t *, rows);
    for (uint32_t pass = 0; pass < 2; pass++) { /* counted, then listed */
        Uses u = rows_of_storage(arena, memory, row);
        for (uint32_t k = 0; k < memory->kernel_count; k++)
            for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++) {
                uint32_t i = row_at(&u, k, b);
                if (i == PLAN_NO_ROW)
                    continue;
                if (pass == 0)
                    room[i]++;
                else if (!row[i].use)
                    row[i].use = use[i] = ARENA_ARRAY(arena, int64_t, room[i]);
                if (pass == 1 && (!row[i].use_count || use[i][row[i].use_count - 1] != k))
                    use[i][row[i].use_count++] = k;
            }
    }
}
