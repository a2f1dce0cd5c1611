#include "cli/uses.h"

typedef struct Uses {
    const Program *program;
    const PlanRow *row;
    uint32_t *first; /* per value: the first row that holds it ... */
    uint32_t *next;  /* ... and per row the next one, since what is made in parts has one for every state */
} Uses;

static Uses rows_of_values(Arena *arena, const Program *program, const PlanRow *row)
{
    uint32_t values = program->graph->value_count, rows = program->problem.count;
    Uses u = {program, row, ARENA_ARRAY(arena, uint32_t, values), ARENA_ARRAY(arena, uint32_t, rows)};
    for (ValueId v = 0; v < values; v++)
        u.first[v] = PLAN_NO_ROW;
    for (uint32_t i = rows; i-- > 0;) {
        ValueId value = program->plan_value[i];
        if (value == NONE)
            continue;
        u.next[i] = u.first[value];
        u.first[value] = i;
    }
    return u;
}

/* The row that a kernel's buffer lies in, or PLAN_NO_ROW when it is not in the arena. */
static uint32_t row_at(const Uses *u, uint32_t step, uint32_t b)
{
    const KernelBuffer *buffer = &u->program->kernel[step].buffer[b];
    if (buffer->scratch)
        return u->program->scratch[step][b];
    if (buffer->value == NONE || buffer->weights != NONE)
        return PLAN_NO_ROW;
    uint32_t row = u->first[whole_of(u->program, buffer->value)];
    while (row != PLAN_NO_ROW && !(u->row[row].first <= step && step < u->row[row].last))
        row = u->next[row];
    return row;
}

void uses_note(Arena *arena, const Program *program, PlanRow *row)
{
    uint32_t rows = program->problem.count, *room = ARENA_ARRAY(arena, uint32_t, rows);
    int64_t **use = ARENA_ARRAY(arena, int64_t *, rows);
    Uses u = rows_of_values(arena, program, row);
    for (uint32_t pass = 0; pass < 2; pass++) /* counted, then listed */
        for (uint32_t k = 0; k < program->kernel_count; k++)
            for (uint32_t b = 0; b < program->kernel[k].buffer_count; b++) {
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
