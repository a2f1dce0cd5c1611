/* The state of choosing and lowering a kernel: what it makes and stores, the block that statements go to, the arrays
 * and names that it has. */
#include "kernel/lower/lower.h"
#include "passes/widen.h"

#include <string.h>

const char *const lower_loop_names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"};

Block *lower_enter(Lower *lower, Block *block)
{
    Block *outer = lower->block;
    lower->block = block;
    lower->memo_count = 0;
    return outer;
}

void lower_leave(Lower *lower, Block *outer)
{
    lower->block = outer;
    lower->memo_count = 0;
}

static const bool *find_nibbles(const Graph *graph, Arena *arena)
{
    bool *nibbles = ARENA_ARRAY(arena, bool, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        nibbles[v] = widen_fits_nibbles(graph, v);
    return nibbles;
}

Lower lower_new(Graph *graph, const Target *target, Storages *storage, const Users *users)
{
    Arena *arena = graph->module->arena;
    return (Lower){.graph = graph,
                   .target = target,
                   .arena = arena,
                   .storage = storage,
                   .users = users,
                   .nibbles = find_nibbles(graph, arena),
                   .live_out = graph_live_out(graph, arena)};
}

void lower_start(Lower *lower, WeightTable *weights)
{
    uint32_t values = lower->graph->value_count;
    lower->weights = weights;
    lower->bound = ARENA_ARRAY(lower->arena, const Expr *, values);
    lower->spill = ARENA_ARRAY(lower->arena, uint32_t, values);
    lower->spilled = ARENA_ARRAY(lower->arena, bool, values);
    lower->sight = ARENA_ARRAY(lower->arena, Sight, values);
    weights->first = ARENA_ARRAY(lower->arena, uint32_t, values);
    for (uint32_t v = 0; v < values; v++)
        weights->first[v] = NONE;
}

bool kernel_makes(const Lower *lower, ValueId value)
{
    const Node *node = value_producer(lower->graph, value);
    return node && kernel_has(lower, node);
}

/* Used by another kernel: directly, or through inline views. Views form short chains. */
bool kernel_stores(const Lower *lower, ValueId value)
{
    if (lower->live_out[value])
        return true;
    for (uint32_t i = lower->users->first[value]; i < lower->users->first[value + 1]; i++) {
        const Node *user = &lower->graph->node[lower->users->user[i]];
        if (kernel_has(lower, user))
            continue;
        if (user->kernel != NONE)
            return true;
        for (uint32_t r = 0; r < user->out_count; r++)
            if (kernel_stores(lower, user->out[r]))
                return true;
    }
    return false;
}

/* Buffers */

static uint32_t add_buffer(Lower *lower, KernelBuffer buffer)
{
    Kernel *kernel = lower->kernel;
    ARENA_PUSH(lower->arena, kernel->buffer, kernel->buffer_count, kernel->buffer_capacity, buffer);
    return kernel->buffer_count - 1;
}

static uint32_t find_buffer(const Kernel *kernel, StorageId storage)
{
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        if (kernel->buffer[i].storage == storage)
            return i;
    return NONE;
}

uint32_t lower_buffer(Lower *lower, ValueId value, bool written)
{
    value = kernel_value_whole(lower, value);
    const Value *v = &lower->graph->value[value];
    if (v->role == ROLE_CONST || v->role == ROLE_PARAM)
        return lower_weights(lower, value, &(Packing){0}, shape_elements(&v->type->shape));
    const Sight *sight = &lower->sight[value];
    uint32_t known = find_buffer(lower->kernel, value);
    if (known == NONE)
        known = add_buffer(lower, (KernelBuffer){.role = written ? "y" : "x",
                                                 .dtype = v->type->dtype,
                                                 .storage = value,
                                                 .begin = sight->begin,
                                                 .part = sight->seen ? sight->part : NONE});
    lower->kernel->buffer[known].written |= written;
    lower->kernel->buffer[known].read |= !written;
    return known;
}

uint32_t lower_scratch(Lower *lower, uint32_t piece)
{
    const Scratch *scratch = &lower->kernel->recipe.scratch[piece];
    uint32_t known = find_buffer(lower->kernel, scratch->storage);
    if (known != NONE)
        return known;
    return add_buffer(lower, (KernelBuffer){.role = scratch->name,
                                            .dtype = scratch->dtype,
                                            .storage = scratch->storage,
                                            .part = NONE,
                                            .read = true,
                                            .written = true});
}

static StorageId add_storage(Lower *lower, Storage storage)
{
    storage.whole = lower->storage->count;
    storage.inside = NONE;
    storage.family = NONE;
    ARENA_PUSH(lower->arena, lower->storage->at, lower->storage->count, lower->storage->capacity, storage);
    return storage.whole;
}

StorageId lower_shared_storage(Lower *lower, DType dtype, int64_t elements)
{
    return add_storage(
        lower,
        (Storage){.role = STORAGE_SHARED, .dtype = dtype, .bytes = elements * dtype_bytes(dtype), .value = NONE});
}

uint32_t lower_shared(Lower *lower, DType dtype, int64_t elements, const char *role)
{
    StorageId storage = lower_shared_storage(lower, dtype, elements);
    return add_buffer(lower, (KernelBuffer){.role = role,
                                            .dtype = dtype,
                                            .storage = storage,
                                            .part = NONE,
                                            .shared = elements,
                                            .read = true,
                                            .written = true});
}

/* The array of the value's elements in this order, which kernels share. */
static uint32_t find_weights(Lower *lower, ValueId value, const Packing *packing, int64_t elements)
{
    WeightTable *table = lower->weights;
    DType dtype = packing_dtype(packing, value_type(lower->graph, value)->dtype);
    uint32_t at = table->first[value];
    while (at != NONE && memcmp(&table->array[at].packing, packing, sizeof *packing) != 0)
        at = table->array[at].next;
    if (at != NONE)
        return at;
    WeightArray array = {.packing = *packing, .next = table->first[value]};
    table->first[value] = table->count;
    bool nibbles = lower->nibbles[value];
    array.storage = add_storage(lower, (Storage){.role = STORAGE_WEIGHTS,
                                                 .dtype = dtype,
                                                 .nibbles = nibbles,
                                                 .bytes = nibbles ? (elements + 1) / 2 : elements * dtype_bytes(dtype),
                                                 .value = value,
                                                 .index = table->count});
    ARENA_PUSH(lower->arena, table->array, table->count, table->capacity, array);
    return table->count - 1;
}

StorageId lower_weights_storage(Lower *lower, ValueId value, const Packing *packing, int64_t elements)
{
    uint32_t array = find_weights(lower, value, packing, elements);
    return lower->weights->array[array].storage;
}

uint32_t lower_weights(Lower *lower, ValueId value, const Packing *packing, int64_t elements)
{
    StorageId storage = lower_weights_storage(lower, value, packing, elements);
    WeightsAsked asked = {value, *packing, elements, storage};
    ARENA_PUSH(lower->arena, lower->asked, lower->asked_count, lower->asked_capacity, asked);
    uint32_t known = find_buffer(lower->kernel, storage);
    if (known != NONE)
        return known;
    return add_buffer(lower, (KernelBuffer){.role = packing->rank ? "weight" : "constant",
                                            .dtype = packing_dtype(packing, value_type(lower->graph, value)->dtype),
                                            .storage = storage,
                                            .part = NONE,
                                            .nibbles = lower->nibbles[value],
                                            .read = true});
}

const Local *lower_registers(Lower *lower, const char *name, DType dtype, bool lanes, int64_t rows, int64_t columns)
{
    Local local = {.name = name, .dtype = dtype, .lanes = lanes, .extent = {rows, columns}, .id = lower->name_count++};
    return arena_copy(lower->arena, &local, sizeof local);
}

const Local *lower_array(Lower *lower, const char *name, DType dtype, int64_t rows, int64_t columns)
{
    Local local = {.name = name, .dtype = dtype, .extent = {rows, columns}, .array = true, .id = lower->name_count++};
    return arena_copy(lower->arena, &local, sizeof local);
}

const Local *lower_local(Lower *lower, const char *name, DType dtype, bool lanes)
{
    return lower_registers(lower, name, dtype, lanes, 0, 0);
}

/* What is used again gets a name, unless it is as good as one: a number, or an element at a known position. */
const Expr *lower_named(Lower *lower, const Expr *expr)
{
    bool load = expr->kind == EXPR_LOAD || expr->kind == EXPR_INDEX;
    if (expr->kind == EXPR_NUMBER || expr->kind == EXPR_LOCAL || (load && !index_reads_data(expr->index)))
        return expr;
    const Local *local = lower_local(lower, "t", expr->dtype, true);
    stmt_local(lower->arena, lower->block, local, expr);
    return expr_local(lower->arena, local);
}

Recipe recipe_free(const Provider *provider)
{
    Recipe recipe = {.provider = provider};
    for (uint32_t i = 0; i < MOST_KNOBS; i++)
        recipe.knob[i] = KNOB_FREE;
    return recipe;
}

Recipe recipe_to_plan(const Recipe *recipe)
{
    Recipe again = *recipe;
    again.scratch = NULL;
    again.scratch_count = again.scratch_capacity = 0;
    return again;
}

uint32_t recipe_scratch(Lower *lower, Recipe *recipe, const char *name, DType dtype, int64_t elements, bool per_thread)
{
    Scratch scratch = {.name = name, .dtype = dtype, .elements = elements, .per_thread = per_thread, .storage = NONE};
    ARENA_PUSH(lower->arena, recipe->scratch, recipe->scratch_count, recipe->scratch_capacity, scratch);
    return recipe->scratch_count - 1;
}
