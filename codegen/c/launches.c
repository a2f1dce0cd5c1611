/* Which function each launch of a program calls, in order of the launches. */
#include "c/unit.h"

#include <string.h>

#define LONG_TEXT 2000 /* of a function: kernels of other names share it, too */

typedef struct Group { /* of kernels that one function serves */
    const Constant **kernel;
    uint32_t kernels, capacity;
    uint32_t function; /* NONE until it has been made */
    Sharing sharing;
} Group;

typedef struct Alike {       /* kernels of equal text but for constants */
    Map by_values;           /* of their constants: */
    const Constant **kernel; /* those that differ ... */
    uint32_t *group;         /* ... and of each its group */
    uint32_t kernels, capacity, group_capacity;
    uint32_t constants;
    Group *at;
    uint32_t count, at_capacity;
} Alike;

typedef struct Alikes {
    Unit *unit;
    Map by_text;
    Alike *at;
    uint32_t count, capacity;
    Map by_loops; /* of kernels that share their loops (kernel/lower/repeat.c), to `launch` */
    Launch *launch;
    uint32_t launch_count, launch_capacity;
} Alikes;

static Str new_name(Unit *unit, Str stem, const char *suffix)
{
    return names_add(&unit->names, unit->arena, str_format(unit->arena, STR_FMT "%s", STR_ARG(stem), suffix), '_', 0);
}

/* Of scratch that every thread has for itself, how far apart theirs are is not in the text of the kernel. */
static void note_scratch(Unit *unit, const Entry *entry, const Step *step, const KernelNames *names,
                         Constants *constants)
{
    const Kernel *kernel = &entry->memory.kernel[step->kernel];
    const bool *used = unit_parameters(entry, unit->arena, step->kernel, step->deal);
    for (uint32_t b = 0; step->deal && step->deal->part && b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        const Storage *storage = entry_storage(entry, buffer->storage);
        if (used[b] && storage->per_thread)
            constants_next(constants, unit->arena,
                           (Constant){.kind = CONSTANT_APART,
                                      .value = storage->apart / dtype_bytes(buffer->dtype),
                                      .of = names->buffer[b],
                                      .printed = true});
    }
}

/* Constants as a key; those that are not in the text do not count. */
static Str values_key(Arena *arena, const Constant *constant, uint32_t count)
{
    int64_t *value = ARENA_ARRAY(arena, int64_t, count);
    for (uint32_t i = 0; i < count; i++)
        value[i] = constant[i].printed ? constant[i].value : 0;
    return map_key(value, count * sizeof *value);
}

static void add_kernel(Arena *arena, Alike *alike, const Constant *kernel)
{
    if (map_add(&alike->by_values, values_key(arena, kernel, alike->constants), alike->kernels))
        ARENA_PUSH(arena, alike->kernel, alike->kernels, alike->capacity, kernel);
}

static void print_launch(Alikes *all, const Entry *entry, const Step *step, Launch *launch)
{
    Unit *unit = all->unit;
    KernelNames names;
    Constants constants = {0};
    print_role_names(unit->arena, &entry->memory.kernel[step->kernel], unit_inplace(entry, unit->arena, step->kernel),
                     &names);
    Str name = names.function;
    names.function = (Str){0};
    Str text = unit_function_text(unit, entry, step->kernel, step->deal, &names, &constants);
    constants_mark_printed(&constants, text);
    *launch = (Launch){.printed = constants.count, .wide = constants.wide};
    note_scratch(unit, entry, step, &names, &constants);
    launch->constant = constants.at;
    launch->constants = constants.count;
    if (text.len < LONG_TEXT)
        text = str_format(unit->arena, STR_FMT " " STR_FMT, STR_ARG(text), STR_ARG(name));
    text = str_format(unit->arena, STR_FMT "%u", STR_ARG(text), constants.count);
    uint32_t known = map_get(&all->by_text, text);
    if (known == MAP_NONE) {
        known = all->count;
        map_put(&all->by_text, text, known);
        ARENA_PUSH(unit->arena, all->at, all->count, all->capacity,
                   ((Alike){.by_values = {.arena = unit->arena}, .constants = constants.count}));
    }
    launch->alike = known;
    add_kernel(unit->arena, &all->at[known], constants.at);
}

/* What the text hangs on beside the loops, which are known by where they are. */
static Str loops_key(Arena *arena, const Entry *entry, uint32_t k)
{
    const Kernel *kernel = &entry->memory.kernel[k];
    KernelMemory memory = unit_kernel_memory(entry, arena, k);
    struct {
        const Stmt *first;
        int64_t bytes;
    } loops = {kernel->body.first, kernel->bytes};
    size_t inplace = kernel->buffer_count * sizeof *memory.inplace, aliased = kernel->buffer_count;
    unsigned char *key = arena_alloc(arena, sizeof loops + inplace + aliased);
    memcpy(key, &loops, sizeof loops);
    memcpy(key + sizeof loops, memory.inplace, inplace);
    memcpy(key + sizeof loops + inplace, memory.aliased, aliased);
    return map_key(key, sizeof loops + inplace + aliased);
}

/* Kernels that share their loops are printed once. */
static void add_launch(Alikes *all, const Entry *entry, const Step *step, Launch *launch)
{
    Arena *arena = all->unit->arena;
    if (step->deal || !entry->memory.kernel[step->kernel].body.first) {
        print_launch(all, entry, step, launch);
        return;
    }
    Str key = loops_key(arena, entry, step->kernel);
    uint32_t known = map_get(&all->by_loops, key);
    if (known != MAP_NONE) {
        *launch = all->launch[known];
        return;
    }
    print_launch(all, entry, step, launch);
    map_put(&all->by_loops, key, all->launch_count);
    ARENA_PUSH(arena, all->launch, all->launch_count, all->launch_capacity, *launch);
}

/* Each kernel joins the first group that still takes few parameters with it. */
static void make_groups(Arena *arena, Alike *alike)
{
    alike->group = ARENA_ARRAY(arena, uint32_t, alike->kernels);
    for (uint32_t k = 0; k < alike->kernels; k++) {
        uint32_t g = 0;
        for (; g < alike->count; g++) {
            Group *group = &alike->at[g];
            ARENA_PUSH(arena, group->kernel, group->kernels, group->capacity, alike->kernel[k]);
            if (sharing_fits(&group->sharing, group->kernel[0], alike->kernel[k], alike->constants) ||
                sharing_find(arena, group->kernel, group->kernels, alike->constants, &group->sharing))
                break;
            group->kernels--;
        }
        alike->group[k] = g;
        if (g < alike->count)
            continue;
        Group group = {.function = NONE};
        ARENA_PUSH(arena, group.kernel, group.kernels, group.capacity, alike->kernel[k]);
        ARENA_PUSH(arena, alike->at, alike->count, alike->at_capacity, group);
    }
}

static uint32_t make_function(Unit *unit, const Entry *entry, const Step *step, const Launch *launch,
                              const Sharing *sharing)
{
    const Kernel *kernel = &entry->memory.kernel[step->kernel];
    Function function = {.entry = entry,
                         .kernel = step->kernel,
                         .deal = step->deal,
                         .sharing = *sharing,
                         .printed = launch->printed,
                         .wide = launch->wide};
    function.name = new_name(unit, source_identifier(unit->arena, kernel->name), ""); /* isnan is a macro */
    if (step->deal && step->deal->part) {
        function.call = new_name(unit, function.name, "_call");
        function.part = new_name(unit, function.name, "_part");
    }
    if (sharing->count) {
        KernelNames names;
        print_role_names(unit->arena, kernel, unit_inplace(entry, unit->arena, step->kernel), &names);
        sharing_name(unit->arena, launch->constant, launch->constants, names.buffer, kernel->buffer_count,
                     &function.sharing);
    }
    ARENA_PUSH(unit->arena, unit->function, unit->function_count, unit->function_capacity, function);
    return unit->function_count - 1;
}

static void take_function(Alikes *all, const Entry *entry, const Step *step, Launch *launch)
{
    Unit *unit = all->unit;
    Alike *alike = &all->at[launch->alike];
    uint32_t k = map_get(&alike->by_values, values_key(unit->arena, launch->constant, alike->constants));
    Group *group = &alike->at[alike->group[k]];
    if (group->function == NONE)
        group->function = make_function(unit, entry, step, launch, &group->sharing);
    launch->function = group->function;
    unit->function[group->function].users++;
}

typedef void Visit(Alikes *all, const Entry *entry, const Step *step, Launch *launch);

/* Recurses over the nesting of loops and branches. */
static void visit_launches(Alikes *all, uint32_t e, const StepList *list, Visit *visit)
{
    Unit *unit = all->unit;
    for (uint32_t s = 0; s < list->count; s++) {
        const Step *step = &list->step[s];
        if (step->kind == STEP_LAUNCH)
            visit(all, &unit->program->entry[e], step, &unit->of_step[e][step->number]);
        for (uint32_t i = 0; i < step->body_count; i++)
            visit_launches(all, e, &step->body[i], visit);
    }
}

void unit_share(Unit *unit)
{
    const Program *program = unit->program;
    Alikes all = {.unit = unit, .by_text = {.arena = unit->arena}, .by_loops = {.arena = unit->arena}};
    unit->of_step = ARENA_ARRAY(unit->arena, Launch *, program->entry_count);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        unit->of_step[e] = ARENA_ARRAY(unit->arena, Launch, program->entry[e].steps.launches);
        visit_launches(&all, e, &program->entry[e].steps.list, add_launch);
    }
    for (uint32_t f = 0; f < all.count; f++)
        make_groups(unit->arena, &all.at[f]);
    for (uint32_t e = 0; e < program->entry_count; e++)
        visit_launches(&all, e, &program->entry[e].steps.list, take_function);
}
