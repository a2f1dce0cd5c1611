/* The judge of memory on loops and branches that were damaged at random: families with too few places, places that
 * meet, lives that end a step early, makers that do not look where others are.
 *
 *     flow_test [GRAPHS] [FIRST]        the seed of the first */
#include <stdlib.h>

#include "draw.h"
#include "program/program.h"
#include "random_graph.h"
#include "unit.h"

static uint32_t graphs = 400;
static uint64_t first_seed = 1;

/* Each damages a copy of the memory; false where there is nothing to damage. */

static Family *some_family(Memory *memory, Arena *arena, uint64_t *state)
{
    memory->family = arena_copy(arena, memory->family, memory->family_count * sizeof *memory->family);
    for (int i = 0; i < 20 && memory->family_count; i++) {
        Family *family = &memory->family[draw(state, memory->family_count)];
        if (family->places > 1 && family->bytes)
            return family;
    }
    return NULL;
}

static bool place_is_missing(Memory *memory, Arena *arena, uint64_t *state)
{
    Family *family = some_family(memory, arena, state);
    if (family)
        family->places--;
    return family;
}

static bool places_meet(Memory *memory, Arena *arena, uint64_t *state)
{
    Family *family = some_family(memory, arena, state);
    if (!family)
        return false;
    uint32_t last = family->places - 1;
    family->offset = arena_copy(arena, family->offset, family->places * sizeof *family->offset);
    family->outside = arena_copy(arena, family->outside, family->places * sizeof *family->outside);
    family->offset[last] = family->offset[0];
    family->outside[last] = family->outside[0];
    return true;
}

static bool nothing_is_avoided(Memory *memory, Arena *arena, uint64_t *state)
{
    if (!some_family(memory, arena, state))
        return false;
    memory->avoided = NULL;
    return true;
}

static bool life_ends_early(Memory *memory, Arena *arena, uint64_t *state)
{
    for (int i = 0; i < 50; i++) {
        ValueId v = draw(state, memory->graph->value_count);
        Storage *storage = &memory->storage.at[v];
        if (!storage->life || storage->role != STORAGE_ARENA || !storage->bytes || storage->family != NONE)
            continue;
        Life *life = arena_copy(arena, storage->life, sizeof *life);
        life->piece = arena_copy(arena, life->piece, life->count * sizeof *life->piece);
        life->piece[draw(state, life->count)].last--;
        storage->life = life;
        return true;
    }
    return false;
}

typedef struct Kind {
    const char *name;
    bool (*damage)(Memory *memory, Arena *arena, uint64_t *state);
    uint32_t least; /* of a hundred that are found */
} Kind;

/* A place too many is harmless where two values that meet in the steps never do in a run: what branches give is counted
 * with all of them.  A life may end in a step that only begins or ends a body. */
static const Kind kinds[] = {
    {"a place is missing", place_is_missing, 70},
    {"places meet", places_meet, 70},
    {"nothing is avoided", nothing_is_avoided, 75},
    {"a life ends early", life_ends_early, 60},
};
#define KINDS (sizeof kinds / sizeof *kinds)

typedef struct Count {
    uint32_t done, found;
} Count;

static void damage_all(const Memory *memory, uint64_t seed, Count *count)
{
    for (uint32_t k = 0; k < KINDS; k++) {
        Arena arena = {0};
        Str message = {0};
        Memory copy = *memory;
        uint64_t state = seed * 2654435761u + 1;
        copy.storage.at = arena_copy(&arena, memory->storage.at, memory->storage.count * sizeof *memory->storage.at);
        if (kinds[k].damage(&copy, &arena, &state)) {
            count[k].done++;
            count[k].found += !memory_judge(&copy, &arena, &message);
        }
        arena_free(&arena);
    }
}

static void judge_graph(Unit *unit, const Target *target, uint64_t seed, Count *count)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    RandomGraph options = {.seed = seed,
                           .steps = 3 + (uint32_t)(seed * 7 % 15),
                           .dtype = DT_F32,
                           .emitted = true,
                           .channels = 8,
                           .control = true};
    Graph *graph = random_graph(module_new(&arena, &diag), &options);
    CompileOptions how = {.target = target, .effort = 1, .name = STR("g"), .apart = seed % 7 == 0};
    Program program;
    bool sound = program_compile(&graph, 1, &how, &program);
    EXPECT(sound);
    if (!sound)
        printf("# graph %llu: " STR_FMT "\n", (unsigned long long)seed, STR_ARG(text_view(&diag.text)));
    else if (program.entry->memory.regions)
        damage_all(&program.entry->memory, seed, count);
    diag_free(&diag);
    arena_free(&arena);
}

UNIT(damaged_loops)
{
    Count count[KINDS] = {{0}};
    const Target *target[] = {target_find(STR("generic"), NULL), target_find(STR("x86-64-v3"), NULL)};
    for (uint32_t i = 0; i < graphs; i++)
        judge_graph(unit, target[i % 2], first_seed + i, count);
    for (uint32_t k = 0; k < KINDS; k++) {
        printf("# %s: %u of %u found\n", kinds[k].name, count[k].found, count[k].done);
        EXPECT(count[k].done > 20);
        EXPECT(count[k].found * 100 >= count[k].done * kinds[k].least);
    }
}

int main(int count, char **word)
{
    static const Test test[] = {RUN(damaged_loops)};
    graphs = count > 1 ? (uint32_t)strtoul(word[1], NULL, 10) : graphs;
    first_seed = count > 2 ? strtoull(word[2], NULL, 10) : first_seed;
    return UNIT_MAIN(test);
}
