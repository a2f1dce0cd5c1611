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

Str unit_run_title(UnitRun *run, const KernelBuffer *buffer, ValueId value)
{
    const Graph *graph = run->entry->graph;
    if (value == NONE)
        return str_from(buffer->role);
    Str title = value_title(graph, value);
    if (graph->value[value].name.len)
        return source_safe_name(run->unit->arena, title, false);
    Str scope = {title.ptr, title.len - value_show(graph, value).len}; /* of stage1.block0.%12 */
    title = str_format(run->unit->arena, STR_FMT "t%u", STR_ARG(scope), value);
    return source_identifier(run->unit->arena, title);
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

bool unit_run_sees_part(const UnitRun *run, const KernelBuffer *buffer)
{
    return buffer->part != NONE && entry_storage(run->entry, buffer->storage)->role == STORAGE_ARENA;
}

ValueId unit_run_value(const UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    if (storage_is_kept(storage->role) && !storage->next)
        return run->entry->memory.state[storage->index].value;
    return unit_run_sees_part(run, buffer) ? buffer->part : storage->value;
}

/* What a pointer points to, for people: `f32[768], param`. */
static Str what_of(UnitRun *run, const KernelBuffer *buffer)
{
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    ValueId value = unit_run_value(run, buffer), whole = NONE;
    const char *how = "";
    if (value == NONE)
        return STR("scratch");
    if (storage_is_constant(storage->role)) {
        const Packing *packing = &source_array(run->entry, storage)->packing;
        how = packing->parts ? ", in parts of bf16, packed" : packing->rank ? ", packed" : "";
    } else if (storage_is_kept(storage->role)) {
        how = storage->next ? ", the next " : storage->role == STORAGE_PARAMS ? ", param" : ", state";
        whole = storage->next ? run->entry->memory.state[storage->index].value : NONE;
    } else if (unit_run_sees_part(run, buffer)) {
        how = " in ";
        whole = storage->value;
    }
    Str of = whole == NONE ? (Str){0} : source_comment(arena, value_show(graph, whole));
    return str_format(arena, STR_FMT "%s" STR_FMT, STR_ARG(type_show(arena, value_type(graph, value))), how,
                      STR_ARG(of));
}

bool unit_run_is_fixed(const UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    return storage_is_constant(storage->role) ||
           (storage->role == STORAGE_PARAMS && run->entry->memory.state[storage->index].next == NONE);
}

void unit_run_declare(UnitRun *run, const KernelBuffer *buffer, Str name, Str at)
{
    const char *type = print_buffer_type(buffer), *fixed = unit_run_is_fixed(run, buffer) ? "const " : "";
    unit_run_indent(run);
    text_printf(run->out, "%s%s *const " STR_FMT " = (%s%s *)" STR_FMT "; /* " STR_FMT " */\n", fixed, type,
                STR_ARG(name), fixed, type, STR_ARG(at), STR_ARG(what_of(run, buffer)));
}

/* The pointer to what lies in a buffer of a block of memory. */
static Pointer *pointer_of(const UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    if (storage_is_kept(storage->role)) {
        const StateValue *state = &run->entry->memory.state[storage->index];
        return &run->storage[storage->next ? state->next : state->value];
    }
    return unit_run_sees_part(run, buffer) ? &run->part[buffer->part] : &run->storage[buffer->storage];
}

bool unit_run_sees(const UnitRun *run, const KernelBuffer *buffer)
{
    return pointer_of(run, buffer)->depth > 0;
}

/* The name of a pointer, which is declared where it cannot be seen: `at` is where it points. */
static Str declare_pointer(UnitRun *run, Pointer *pointer, const KernelBuffer *buffer, Str at)
{
    if (pointer->depth)
        return pointer->name;
    if (!pointer->name.len)
        pointer->name = unit_run_free_name(run, unit_run_title(run, buffer, unit_run_value(run, buffer)));
    pointer->depth = run->depth + 1;
    unit_run_declare(run, buffer, pointer->name, at);
    return pointer->name;
}

UnitPlace unit_run_place(const UnitRun *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    int64_t begin = unit_run_sees_part(run, buffer) ? buffer->begin * dtype_bytes(buffer->dtype) : 0;
    switch (storage->role) {
    case STORAGE_ARENA:
    case STORAGE_SCRATCH:
        return (UnitPlace){STR("a"), storage->offset + begin};
    case STORAGE_PACKED:
        return (UnitPlace){STR("k"), storage->offset};
    case STORAGE_WEIGHTS:
        if (program_weights_form(program) == WEIGHTS_C)
            return (UnitPlace){0};
        return (UnitPlace){source_weights_block(program, run->unit->arena), program->weights[storage->index].offset};
    case STORAGE_PARAMS:
    case STORAGE_STATE: {
        const KeptSlot *slot = &program->kept.slot[run->entry->slot[storage->index]];
        bool params = slot->block == BLOCK_PARAMS && !storage->next;
        return slot->twice ? (UnitPlace){0} : (UnitPlace){params ? STR("p") : STR("s"), slot->offset[storage->next]};
    }
    default:
        return (UnitPlace){0};
    }
}

Str unit_run_untyped(const UnitRun *run, const KernelBuffer *buffer, Str at)
{
    bool sum = memchr(at.ptr, ' ', at.len);
    return str_format(run->unit->arena, "(%svoid *)%s" STR_FMT "%s", unit_run_is_fixed(run, buffer) ? "const " : "",
                      sum ? "(" : "", STR_ARG(at), sum ? ")" : "");
}

static Str place_text(const UnitRun *run, UnitPlace place)
{
    return place.offset ? str_format(run->unit->arena, STR_FMT " + %lld", STR_ARG(place.block), (long long)place.offset)
                        : place.block;
}

static Str weights_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    UnitPlace place = unit_run_place(run, buffer);
    Str at = place.block.len ? unit_run_untyped(run, buffer, place_text(run, place))
                             : source_weights_place(run->unit->program, run->unit->arena, storage->index);
    return declare_pointer(run, pointer_of(run, buffer), buffer, at);
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

/* Where a buffer of the arena begins: in a place of its own, or in one of a family that is free. */
static Str arena_base(UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    if (storage->role != STORAGE_TURNS)
        return unit_run_untyped(run, buffer, place_text(run, unit_run_place(run, buffer)));
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

static Str arena_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    Pointer *pointer =
        storage->role == STORAGE_SCRATCH ? scratch_pointer(run, buffer, storage->offset) : pointer_of(run, buffer);
    Str name = pointer->depth ? pointer->name : declare_pointer(run, pointer, buffer, arena_base(run, buffer));
    return unit_run_sees_part(run, buffer) ? name : plus_elements(run, name, buffer->begin);
}

/* The value of a param or state, or its next one where that is elsewhere. */
static Str kept_argument(UnitRun *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    Pointer *pointer = pointer_of(run, buffer);
    if (!pointer->depth)
        declare_pointer(run, pointer, buffer,
                        unit_run_untyped(run, buffer, source_kept_place(run->entry, run->unit->arena, storage)));
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
