#include "cli/uses.h"

/* The rows that a kernel reads or writes, each once for every buffer that holds it. */
static uint32_t rows_of_kernel(const Program *program, uint32_t k, uint32_t *row)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < program->kernel[k].buffer_count; b++) {
        const KernelBuffer *buffer = &program->kernel[k].buffer[b];
        if (buffer->scratch)
            row[count++] = program->scratch[k][b];
        else if (buffer->value != NONE && buffer->weights == NONE && program->home[buffer->value].space == SPACE_ARENA)
            row[count++] = program->home[buffer->value].index;
    }
    return count;
}

void uses_note(Arena *arena, const Program *program, PlanRow *row)
{
    uint32_t most = 0, rows = program->problem.count;
    int64_t **use = ARENA_ARRAY(arena, int64_t *, rows);
    uint32_t *room = ARENA_ARRAY(arena, uint32_t, rows);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        most = program->kernel[k].buffer_count > most ? program->kernel[k].buffer_count : most;
    uint32_t *used = ARENA_ARRAY(arena, uint32_t, most);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t n = rows_of_kernel(program, k, used); n-- > 0;)
            room[used[n]]++;
    for (uint32_t i = 0; i < rows; i++)
        row[i].use = use[i] = ARENA_ARRAY(arena, int64_t, room[i]);
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t n = rows_of_kernel(program, k, used); n-- > 0;) {
            PlanRow *r = &row[used[n]];
            if (!r->use_count || r->use[r->use_count - 1] != k)
                use[used[n]][r->use_count++] = k;
        }
}
