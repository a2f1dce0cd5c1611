/* The pointers of an entry's function: for each buffer of the arena, each part of one and each array of the weights, by
 * the model's names, declared where a kernel first uses it. */
#include "c/run.h"

#include <string.h>

Str unit_run_free_name(UnitRun *run, Str wanted)
{
    return names_add(&run->names, run->unit->arena, wanted, '_', 0);
}

void unit_run_start_names(UnitRun *run)
{
    const Program *program = run->unit->program;
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    static const char *const own[] = {"a", "w", "arena", "weights", "run"};
    run->port = source_port_names(run->entry, arena);
    run->names.taken.arena = arena;
    run->storage = ARENA_ARRAY(arena, Pointer, run->entry->memory.storage.count);
    run->part = ARENA_ARRAY(arena, Pointer, graph->value_count);
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        map_add(&run->names.taken, str_from(own[i]), 0);
    source_take_weights(program, arena, &run->names.taken);
    source_take_kept(program, &run->names.taken);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        map_add(&run->names.taken, run->port[i], 0);
    for (uint32_t f = 0; f < run->unit->function_count; f++)
        map_add(&run->names.taken, run->unit->function[f].name, 0);
}

/* What a pointer to memory is called: a value by its name in the model, others by what they are for. */
Str unit_run_pointer_name(UnitRun *run, const KernelBuffer *buffer, ValueId value)
{
    const Graph *graph = run->entry->graph;
    if (value == NONE)
        return unit_run_free_name(run, str_from(buffer->role));
    Str title = value_title(graph, value);
    if (graph->value[value].name.len) {
        title = source_safe_name(run->unit->arena, title, false);
    } else { /* stage1.block0.%12 */
        Str scope = {title.ptr, title.len - value_show(graph, value).len};
        title = str_format(run->unit->arena, STR_FMT "t%u", STR_ARG(scope), value);
        title = source_identifier(run->unit->arena, title);
    }
    return unit_run_free_name(run, title);
}

void unit_run_indent(UnitRun *run)
{
    text_fill(run->out, ' ', 4 * (run->depth + 1));
}

/* Leaves a block: what is declared there is not seen any more, but keeps its name. */
void unit_run_leave_block(UnitRun *run)
{
    uint32_t storages = run->entry->memory.storage.count, values = run->entry->graph->value_count;
    for (uint32_t i = 0; i < storages; i++)
        run->storage[i].depth = run->storage[i].depth > run->depth ? 0 : run->storage[i].depth;
    for (uint32_t i = 0; i < values; i++)
        run->part[i].depth = run->part[i].depth > run->depth ? 0 : run->part[i].depth;
    run->depth--;
}

static bool is_constant(const Entry *entry, const Storage *storage)
{
    return storage_is_constant(storage->role) ||
           (storage->role == STORAGE_PARAMS && entry->memory.state[storage->index].next == NONE);
}

/* The name of a pointer, which is declared where it cannot be seen: `at` is where it points, `what` says it to people.
 */
static Str declare_pointer(UnitRun *run, Pointer *pointer, const KernelBuffer *buffer, ValueId value, Str at, Str what)
{
    bool constant = is_constant(run->entry, entry_storage(run->entry, buffer->storage));
    const char *type = print_buffer_type(buffer), *fixed = constant ? "const " : "";
    if (pointer->depth)
        return pointer->name;
    if (!pointer->name.len)
        pointer->name = unit_run_pointer_name(run, buffer, value);
    pointer->depth = run->depth + 1;
    unit_run_indent(run);
    text_printf(run->out, "%s%s *const " STR_FMT " = (%s%s *)" STR_FMT "; /* " STR_FMT " */\n", fixed, type,
                STR_ARG(pointer->name), fixed, type, STR_ARG(at), STR_ARG(what));
    return pointer->name;
}

/* `(void *)(a + 64)`: a place of an aligned block as one of any type. */
static Str arena_place(const UnitRun *run, int64_t offset)
{
    return offset ? str_format(run->unit->arena, "(void *)(a + %lld)", (long long)offset) : STR("(void *)a");
}

static Str weights_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    bool packed = source_array(run->entry, storage)->packing.rank;
    Str what = str_format(arena, STR_FMT "%s", STR_ARG(type_show(arena, value_type(run->entry->graph, storage->value))),
                          packed ? ", packed" : "");
    Str at = storage->role == STORAGE_PACKED ? str_format(arena, "k + %lld", (long long)storage->offset)
                                             : source_weights_place(program, arena, storage->index);
    if (storage->role == STORAGE_PACKED || program_weights_form(program) != WEIGHTS_C)
        at = str_format(arena, memchr(at.ptr, ' ', at.len) ? "(const void *)(" STR_FMT ")" : "(const void *)" STR_FMT,
                        STR_ARG(at));
    return declare_pointer(run, &run->storage[buffer->storage], buffer, storage->value, at, what);
}

static Str plus_elements(UnitRun *run, Str pointer, int64_t elements)
{
    return elements ? str_format(run->unit->arena, STR_FMT " + %lld", STR_ARG(pointer), (long long)elements) : pointer;
}

static Str pointer_in(void *context, ValueId value)
{
    return unit_run_pointer_of(context, value);
}

Pointers unit_run_pointers(UnitRun *run)
{
    return (Pointers){run->entry, pointer_in, run};
}

static Str arena_base(UnitRun *run, const Storage *storage)
{
    if (storage->role != STORAGE_TURNS)
        return arena_place(run, storage->offset);
    Pointers pointers = unit_run_pointers(run);
    return str_format(run->unit->arena, "(" STR_FMT ")",
                      STR_ARG(source_free_place(&pointers, run->unit->arena, storage->value)));
}

/* Scratch of kernels before that is called the same and lies at the same place, if it can be seen here: it serves
 * again.
 */
static Pointer *scratch_pointer(UnitRun *run, const KernelBuffer *buffer, int64_t offset)
{
    Str key = str_format(run->unit->arena, "%s %s %lld", print_buffer_type(buffer), buffer->role, (long long)offset);
    uint32_t before = map_get(&run->scratch, key);
    if (before != MAP_NONE && run->storage[before].depth)
        return &run->storage[before];
    map_put(&run->scratch, key, buffer->storage);
    return &run->storage[buffer->storage];
}

/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
static Str arena_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    int64_t begin = buffer->begin * dtype_bytes(buffer->dtype);
    if (buffer->part != NONE && storage->role != STORAGE_TURNS) {
        Str what = str_format(arena, STR_FMT " in " STR_FMT, STR_ARG(type_show(arena, value_type(graph, buffer->part))),
                              STR_ARG(source_comment(arena, value_show(graph, storage->value))));
        return declare_pointer(run, &run->part[buffer->part], buffer, buffer->part,
                               arena_place(run, storage->offset + begin), what);
    }
    Pointer *pointer = storage->role == STORAGE_SCRATCH ? scratch_pointer(run, buffer, storage->offset)
                                                        : &run->storage[buffer->storage];
    Str what = storage->value == NONE ? STR("scratch") : type_show(arena, value_type(graph, storage->value));
    Str name = pointer->depth ? pointer->name
                              : declare_pointer(run, pointer, buffer, storage->value, arena_base(run, storage), what);
    return plus_elements(run, name, buffer->begin);
}

/* The value of a param or state, or its next one where that is elsewhere. */
static Str kept_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Entry *entry = run->entry;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(entry, buffer->storage);
    const StateValue *state = &entry->memory.state[storage->index];
    ValueId value = storage->next ? storage->value : state->value;
    Pointer *pointer = &run->storage[storage->next ? state->next : state->value];
    if (!pointer->depth) {
        Str type = type_show(arena, value_type(entry->graph, value));
        Str what = storage->next ? str_format(arena, STR_FMT ", the next " STR_FMT, STR_ARG(type),
                                              STR_ARG(source_comment(arena, value_show(entry->graph, state->value))))
                                 : str_format(arena, STR_FMT ", %s", STR_ARG(type),
                                              storage->role == STORAGE_PARAMS ? "param" : "state");
        Str at = str_format(arena, "(%svoid *)(" STR_FMT ")", is_constant(entry, storage) ? "const " : "",
                            STR_ARG(source_kept_place(entry, arena, storage)));
        declare_pointer(run, pointer, buffer, value, at, what);
    }
    return plus_elements(run, pointer->name, buffer->begin);
}

/* Declares the pointer of a kernel's buffer at its first use; arrays of the caller have names already. */
Str unit_run_buffer_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    const Graph *graph = run->entry->graph;
    switch (storage->role) {
    case STORAGE_WEIGHTS:
    case STORAGE_PACKED:
        return weights_argument(run, buffer);
    case STORAGE_ARENA:
    case STORAGE_SCRATCH:
    case STORAGE_TURNS:
        return arena_argument(run, buffer);
    case STORAGE_PARAMS:
    case STORAGE_STATE:
        return kept_argument(run, buffer);
    case STORAGE_PASSED:
        return plus_elements(run, run->storage[buffer->storage].name, buffer->begin);
    default:
        return plus_elements(
            run, run->port[storage->role == STORAGE_INPUT ? storage->index : graph->input_count + storage->index],
            buffer->begin);
    }
}

/* Of a value that is in memory, as a whole. */
Str unit_run_pointer_of(UnitRun *run, ValueId value)
{
    KernelBuffer buffer = flow_buffer(&run->entry->memory, value);
    return unit_run_buffer_argument(run, &buffer);
}
