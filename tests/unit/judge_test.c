/* The judges of memory on plans that were damaged at random.  What is sound is never complained about; damage that
 * changes which bytes are touched is found, by plan_check or by memory_judge.
 *
 *     judge_test [GRAPHS] [FIRST]        per target; the seed of the first */
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "draw.h"
#include "random_graph.h"
#include "unit.h"

typedef struct Damager {
    Memory memory; /* a copy, down to what is damaged */
    Arena *arena;
    uint64_t state;
} Damager;

static void *copy(Arena *arena, const void *from, size_t bytes)
{
    return bytes ? arena_copy(arena, from, bytes) : NULL;
}

static Damager damager_new(const Memory *memory, Arena *arena, uint64_t seed)
{
    Damager d = {*memory, arena, seed * 2654435761u + 1};
    d.memory.kernel = copy(arena, memory->kernel, memory->kernel_count * sizeof *memory->kernel);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        d.memory.kernel[k].buffer =
            copy(arena, memory->kernel[k].buffer, memory->kernel[k].buffer_count * sizeof *memory->kernel[k].buffer);
    d.memory.storage.at = copy(arena, memory->storage.at, memory->storage.count * sizeof *memory->storage.at);
    d.memory.problem.buffer =
        copy(arena, memory->problem.buffer, memory->problem.count * sizeof *memory->problem.buffer);
    d.memory.plan.offset = copy(arena, memory->plan.offset, memory->problem.count * sizeof *memory->plan.offset);
    return d;
}

static PlanBuffer *plan_buffer(Damager *d, uint32_t i)
{
    return (PlanBuffer *)(uintptr_t)&d->memory.problem.buffer[i];
}

static bool place_again(Damager *d)
{
    return plan_place(d->arena, &d->memory.problem, NULL, 1, &d->memory.plan);
}

/* Each returns false where it finds nothing to damage. */

#define TRIES 20

static bool onto_a_live_one(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.problem.count > 1; i++) {
        uint32_t a = draw(&d->state, d->memory.problem.count), b = draw(&d->state, d->memory.problem.count);
        const PlanBuffer *x = plan_buffer(d, a), *y = plan_buffer(d, b);
        bool meet = x->first < y->last && y->first < x->last && x->size && y->size;
        if (a == b || !meet || (x->group && x->group == y->group))
            continue;
        for (uint32_t other = 0; other < d->memory.problem.count; other++) /* with all of its group */
            if (other == a || (x->group && plan_buffer(d, other)->group == x->group))
                d->memory.plan.offset[other] = d->memory.plan.offset[b];
        return true;
    }
    return false;
}

static bool life_ends_early(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.problem.count; i++) {
        PlanBuffer *buffer = plan_buffer(d, draw(&d->state, d->memory.problem.count));
        if (buffer->last - buffer->first < 2 || !buffer->size)
            continue;
        buffer->last--;
        return place_again(d);
    }
    return false;
}

static bool life_begins_late(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.problem.count; i++) {
        PlanBuffer *buffer = plan_buffer(d, draw(&d->state, d->memory.problem.count));
        if (buffer->last - buffer->first < 2 || !buffer->size)
            continue;
        buffer->first++;
        return place_again(d);
    }
    return false;
}

static bool size_is_short(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.problem.count; i++) {
        PlanBuffer *buffer = plan_buffer(d, draw(&d->state, d->memory.problem.count));
        if (!buffer->size)
            continue;
        buffer->size -= 1 + draw(&d->state, 2) * (buffer->size / 2);
        return place_again(d);
    }
    return false;
}

static Kernel *some_kernel(Damager *d)
{
    return &d->memory.kernel[draw(&d->state, d->memory.kernel_count)];
}

static const Storage *storage_of(const Damager *d, const KernelBuffer *buffer)
{
    return &d->memory.storage.at[buffer->storage];
}

/* What is written is read, and the other way round. */
static bool storages_swapped(Damager *d)
{
    for (int i = 0; i < TRIES; i++) {
        Kernel *kernel = some_kernel(d);
        if (!kernel->buffer_count)
            continue;
        KernelBuffer *a = &kernel->buffer[draw(&d->state, kernel->buffer_count)];
        KernelBuffer *b = &kernel->buffer[draw(&d->state, kernel->buffer_count)];
        StorageRole role[] = {storage_of(d, a)->role, storage_of(d, b)->role};
        if (a->shared || b->shared || a->written || !b->written || b->read || role[0] == STORAGE_SHARED ||
            (role[0] == STORAGE_ARENA && role[1] == STORAGE_ARENA &&
             storage_of(d, a)->offset == storage_of(d, b)->offset))
            continue;
        StorageId storage = a->storage;
        a->storage = b->storage;
        b->storage = storage;
        return true;
    }
    return false;
}

/* The whole of a storage of its own, which a kernel writes, from another element on. */
static bool begins_elsewhere(Damager *d)
{
    for (int i = 0; i < TRIES; i++) {
        Kernel *kernel = some_kernel(d);
        if (!kernel->buffer_count)
            continue;
        KernelBuffer *buffer = &kernel->buffer[draw(&d->state, kernel->buffer_count)];
        if (buffer->shared || buffer->part != NONE || storage_of(d, buffer)->has_parts)
            continue;
        buffer->begin += draw(&d->state, 2) ? 1 : -1;
        return true;
    }
    return false;
}

/* A part is written elsewhere in its whole. */
static bool part_begins_elsewhere(Damager *d)
{
    for (int i = 0; i < TRIES; i++) {
        Kernel *kernel = some_kernel(d);
        if (!kernel->buffer_count)
            continue;
        KernelBuffer *buffer = &kernel->buffer[draw(&d->state, kernel->buffer_count)];
        if (!buffer->written || !storage_of(d, buffer)->has_parts)
            continue;
        buffer->begin += draw(&d->state, 2) ? 1 : -1;
        return true;
    }
    return false;
}

static bool depends(const Damager *d, const Kernel *later, const Kernel *earlier)
{
    for (uint32_t a = 0; a < later->buffer_count; a++)
        for (uint32_t b = 0; b < earlier->buffer_count; b++)
            if (later->buffer[a].storage == earlier->buffer[b].storage && later->buffer[a].read &&
                !later->buffer[a].written && earlier->buffer[b].written && !storage_of(d, &later->buffer[a])->has_parts)
                return true;
    return false;
}

static bool kernels_swapped(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.kernel_count > 1; i++) {
        uint32_t k = draw(&d->state, d->memory.kernel_count - 1);
        Kernel *one = &d->memory.kernel[k], other = one[1];
        if (!depends(d, &one[1], one))
            continue;
        one[1] = one[0];
        one[0] = other;
        return true;
    }
    return false;
}

static bool kernel_left_out(Damager *d)
{
    for (int i = 0; i < TRIES && d->memory.kernel_count > 1; i++) {
        uint32_t k = draw(&d->state, d->memory.kernel_count - 1);
        Kernel *kernel = &d->memory.kernel[k];
        if (!depends(d, &kernel[1], kernel))
            continue;
        kernel->body = (Block){0};
        return true;
    }
    return false;
}

/* The result of a kernel over what its anchor reads more than once; rows may be that are read before rows as long are
 * written. */
static bool over_what_is_read_again(Damager *d)
{
    const Graph *graph = d->memory.graph;
    for (int i = 0; i < TRIES; i++) {
        uint32_t k = draw(&d->state, d->memory.kernel_count);
        const Kernel *kernel = &d->memory.kernel[k];
        if (kernel->form != FORM_CONTRACTION && kernel->form != FORM_WINDOW &&
            (kernel->form != FORM_ROWS || kernel->recipe.stores_last))
            continue;
        const Node *anchor = &graph->node[kernel->anchor];
        StorageId from = memory_whole(&d->memory, anchor->in[0]);
        const Storage *operand = &d->memory.storage.at[from];
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            const Storage *result = storage_of(d, &kernel->buffer[b]);
            if (operand->role != STORAGE_ARENA || result->role != STORAGE_ARENA || result == operand ||
                (kernel->form == FORM_ROWS && result->bytes == operand->bytes) || !kernel->buffer[b].written ||
                result->has_parts || operand->has_parts || operand->first == k || result->first != k ||
                operand->last != (int64_t)k + 1)
                continue;
            PlanBuffer *x = plan_buffer(d, operand->buffer), *y = plan_buffer(d, result->buffer);
            if (x->group || y->group ||
                type_bytes(value_type(graph, anchor->in[0])) < 2 * dtype_bytes(operand->dtype) ||
                result->bytes < 2 * dtype_bytes(result->dtype)) /* all may be read before one element is written */
                continue;
            x->group = y->group = UINT32_MAX;
            return place_again(d);
        }
    }
    return false;
}

static bool is_written(const Block *block, uint32_t buffer)
{
    bool found = false;
    for (const Stmt *stmt = block->first; stmt && !found; stmt = stmt->next)
        found = (stmt->kind == STMT_STORE && stmt->buffer == buffer) || is_written(&stmt->body, buffer);
    return found;
}

/* Do several rounds of a loop that threads share out write the buffer? */
static bool is_shared_out(const Block *block, uint32_t buffer)
{
    bool found = false;
    for (const Stmt *stmt = block->first; stmt && !found; stmt = stmt->next)
        found = (stmt->kind == STMT_FOR && stmt->loop == LOOP_PARALLEL &&
                 stmt->high.constant - stmt->low.constant > stmt->step && is_written(&stmt->body, buffer)) ||
                is_shared_out(&stmt->body, buffer);
    return found;
}

/* Scratch that each thread should have for itself. */
static bool scratch_is_shared(Damager *d)
{
    for (uint32_t k = 0; k < d->memory.kernel_count; k++) {
        const Kernel *kernel = &d->memory.kernel[k];
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            Storage *storage = &d->memory.storage.at[kernel->buffer[b].storage];
            if (!storage->per_thread || !kernel->buffer[b].written || !is_shared_out(&kernel->body, b))
                continue;
            storage->per_thread = false;
            return true;
        }
    }
    return false;
}

typedef struct Kind {
    const char *name;
    bool (*damage)(Damager *d);
    unsigned least; /* percent that must be found ... */
} Kind;

/* ... where not all of it does harm: a last read that lowering has dropped, an element that only a guarded load could
 * reach, a part that lies behind a guard, a contraction that reads each element once. */
static const Kind kinds[] = {
    {"onto_a_live_one", onto_a_live_one, 100},
    {"life_ends_early", life_ends_early, 94},
    {"life_begins_late", life_begins_late, 100},
    {"size_is_short", size_is_short, 97},
    {"storages_swapped", storages_swapped, 99},
    {"begins_elsewhere", begins_elsewhere, 90},
    {"part_begins_elsewhere", part_begins_elsewhere, 80},
    {"kernels_swapped", kernels_swapped, 100},
    {"kernel_left_out", kernel_left_out, 100},
    {"over_what_is_read_again", over_what_is_read_again, 94},
    {"scratch_is_shared", scratch_is_shared, 99},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct Count {
    unsigned done, found, by_plan;
    uint64_t missed; /* the first seed of those */
} Count;

static uint32_t graphs = 400;
static uint64_t first_seed = 1;

static bool judged(const Memory *memory, Arena *arena, bool *by_plan, Str *message)
{
    *by_plan = !plan_check(arena, &memory->problem, &memory->plan, message);
    return !*by_plan && memory_judge(memory, arena, message);
}

static void damage_all(const Memory *memory, uint64_t seed, Count *count)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        Arena arena = {0};
        Str message = {0};
        bool by_plan = false;
        Damager d = damager_new(memory, &arena, seed);
        if (kinds[k].damage(&d)) {
            bool found = !judged(&d.memory, &arena, &by_plan, &message);
            if (!found && count[k].found == count[k].done)
                count[k].missed = seed;
            count[k].done++;
            count[k].found += found;
            count[k].by_plan += by_plan;
        }
        arena_free(&arena);
    }
}

static void judge_graph(Unit *unit, const Target *target, uint64_t seed, Count *count)
{
    static const int64_t channels[] = {4, 16, 8, 32};
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    RandomGraph options = {.seed = seed,
                           .steps = 3 + (uint32_t)(seed * 7 % 20),
                           .dtype = seed % 5 ? DT_F32 : DT_F64,
                           .emitted = true,
                           .channels = channels[seed % 4]};
    Graph *graph = random_graph(module_new(&arena, &diag), &options);
    CompileOptions how = {.target = target, .effort = 1, .name = STR("g"), .apart = seed % 7 == 0};
    Program program;
    bool sound = program_compile(&graph, 1, &how, &program);
    EXPECT(sound);
    if (!sound)
        printf("# graph %llu for %s: " STR_FMT "\n", (unsigned long long)seed, target->name,
               STR_ARG(text_view(&diag.text)));
    else if (program.entry->memory.kernel_count)
        damage_all(&program.entry->memory, seed, count);
    diag_free(&diag);
    arena_free(&arena);
}

static void judge_target(Unit *unit, const char *name)
{
    Count count[KINDS] = {{0}};
    const Target *target = target_find(str_from(name), NULL);
    for (uint32_t i = 0; i < graphs; i++)
        judge_graph(unit, target, first_seed + i, count);
    for (uint32_t k = 0; k < KINDS; k++) {
        printf("# %s: %u of %u found, %u of them by the plan alone\n", kinds[k].name, count[k].found, count[k].done,
               count[k].by_plan);
        bool enough = count[k].found * 100 >= count[k].done * kinds[k].least;
        if (!enough)
            printf("# the first that was missed is in graph %llu\n", (unsigned long long)count[k].missed);
        EXPECT(enough);
    }
}

UNIT(generic)
{
    judge_target(unit, "generic");
}

UNIT(x86_64_v3)
{
    judge_target(unit, "x86-64-v3");
}

UNIT(x86_64_v4)
{
    judge_target(unit, "x86-64-v4");
}

UNIT(cuda)
{
    judge_target(unit, "cuda:sm_90");
}

int main(int count, char **word)
{
    static const Test test[] = {RUN(generic), RUN(x86_64_v3), RUN(x86_64_v4), RUN(cuda)};
    graphs = count > 1 ? (uint32_t)strtoul(word[1], NULL, 10) : graphs;
    first_seed = count > 2 ? strtoull(word[2], NULL, 10) : first_seed;
    return UNIT_MAIN(test);
}
