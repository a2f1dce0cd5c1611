/* What the entries of a program share: params, weights and states. */
#include "program/share.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "ops/elements.h"
#include "ops/family.h"

/* Names */

/* What the program has beside its entries: NAME_weights, NAME_model, ... and macros, where NAME is in capitals. */
static bool is_own_name(Str name)
{
    static const char *const own[] = {
        "model", "weights",     "params_init",  "state_init",   "pack",        "test",          "arena", "bench",
        "H",     "ARENA_BYTES", "PARAMS_BYTES", "PACKED_BYTES", "STATE_BYTES", "WEIGHTS_BYTES", "cpu"};
    bool taken = false;
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        taken |= str_is(name, own[i]);
    return taken;
}

Str share_identifier(Arena *arena, Str name)
{
    Str copy = str_copy(arena, name);
    for (uint32_t i = 0; i < copy.len; i++)
        if (!isalnum((unsigned char)copy.ptr[i]) || copy.ptr[i] & 0x80)
            ((char *)(uintptr_t)copy.ptr)[i] = '_';
    return copy;
}

void share_names(Program *program)
{
    Arena *arena = program->entry[0].graph->module->arena;
    Map taken = {.arena = arena};
    for (uint32_t e = 0; e < program->entry_count; e++) {
        Entry *entry = &program->entry[e];
        Str plain = program->entry_count == 1 ? STR("run") : share_identifier(arena, entry->graph->name);
        entry->name = is_own_name(plain) ? str_format(arena, STR_FMT "_", STR_ARG(plain)) : plain;
        for (int n = 2; !map_add(&taken, entry->name, e); n++)
            entry->name = str_format(arena, STR_FMT "_%d", STR_ARG(plain), n);
    }
}

/* Params and states */

typedef struct Declared { /* a param or state, where it was met first */
    const Graph *graph;
    ValueId value;
} Declared;

typedef struct Agreement {
    Arena *arena;
    Map known; /* by name */
    Declared *list;
    uint32_t count, capacity;
} Agreement;

static bool is_kept(const Value *value)
{
    return value->role == ROLE_PARAM || value->role == ROLE_STATE;
}

static bool same_initial(const Graph *a, const Value *x, const Graph *b, const Value *y)
{
    if (x->initial == NONE || y->initial == NONE)
        return x->initial == y->initial;
    return node_alike(&a->initial[x->initial], &b->initial[y->initial]);
}

/* An average, and a layer under its label, draw alike where the seed is made of the param's name. */
static void note_seeds(const Graph *a, const Value *x, const Graph *b, const Value *y)
{
    if (x->initial == NONE || y->initial == NONE)
        return;
    Initial one = node_initial(&a->initial[x->initial], x->type);
    Initial other = node_initial(&b->initial[y->initial], y->type);
    if (one.kind == INITIAL_DRAWN && other.kind == INITIAL_DRAWN && one.key != other.key)
        diag_note(a->module->diag, (Place){0},
                  "the seeds differ, %" PRId64 " and %" PRId64
                  ": hash(label) is another one under each label; an average follows it, and the hash of the param's "
                  "name, hash(label + \".weight\") of a weight, but no other that is made of the label",
                  one.key, other.key);
}

static bool agree(Agreement *a, const Graph *graph, ValueId value)
{
    const Value *v = &graph->value[value];
    uint32_t known = map_get(&a->known, v->name);
    if (known == MAP_NONE) {
        map_put(&a->known, v->name, a->count);
        ARENA_PUSH(a->arena, a->list, a->count, a->capacity, ((Declared){graph, value}));
        return true;
    }
    const Graph *before = a->list[known].graph;
    const Value *first = &before->value[a->list[known].value];
    const char *what = first->role != v->role                   ? "a param in one graph and a state in another"
                       : first->type != v->type                 ? "of another type in another graph"
                       : !same_initial(before, first, graph, v) ? "initialised otherwise in another graph"
                                                                : NULL;
    if (!what)
        return true;
    diag_error(graph->module->diag, v->place, STR_FMT " is %s: one name is one %s for all graphs of a file",
               STR_ARG(v->name), what, v->role == ROLE_PARAM ? "param" : "state");
    diag_note(graph->module->diag, first->place, "here it is " STR_FMT, STR_ARG(type_show(a->arena, first->type)));
    if (first->role == v->role && first->type == v->type)
        note_seeds(before, first, graph, v);
    return false;
}

bool share_agree(Graph *const *graphs, uint32_t count)
{
    Arena scratch = {0};
    Agreement a = {.arena = &scratch, .known = {.arena = &scratch}};
    bool good = true;
    for (uint32_t g = 0; g < count; g++) {
        const Graph *graph = graphs[g];
        for (ValueId v = 0; v < graph->value_count; v++)
            if (is_kept(&graph->value[v]))
                good &= agree(&a, graph, v);
    }
    arena_free(&scratch);
    return good;
}

static bool updates_params(const Graph *graph)
{
    bool updates = false;
    for (uint32_t i = 0; i < graph->update_count; i++)
        updates |= graph->value[graph->update[i].target].role == ROLE_PARAM;
    return updates;
}

/* `updated` has the names of all params and states that some graph updates. */
static void keep_params(Graph *graph, const Map *updated, bool pack)
{
    Role role = pack && !updates_params(graph) ? ROLE_PARAM : ROLE_STATE;
    for (ValueId v = 0; v < graph->value_count; v++) {
        Value *value = &graph->value[v];
        if (value->role != ROLE_PARAM || map_get(updated, value->name) == MAP_NONE)
            continue;
        value->role = role;
        value->trained = true;
    }
}

void share_kept(Graph *const *graphs, uint32_t count, bool pack)
{
    Arena scratch = {0};
    Map updated = {.arena = &scratch};
    for (uint32_t g = 0; g < count; g++)
        for (uint32_t i = 0; i < graphs[g]->update_count; i++)
            map_put(&updated, graphs[g]->value[graphs[g]->update[i].target].name, g);
    for (uint32_t g = 0; g < count; g++)
        keep_params(graphs[g], &updated, pack);
    arena_free(&scratch);
}

/* Weights */

typedef struct Sharing {
    Program *program;
    uint32_t version; /* its number among the versions */
    Arena *arena;
    Arena scratch;
    Map packed;       /* name, type and packing, to the array of the packed block */
    Map known;        /* the same, to the last such array of the weights ... */
    uint32_t *before; /* ... and per array the one before it of the same key */
    uint32_t capacity;
} Sharing;

static const void *elements(const Graph *graph, ValueId value)
{
    const Tensor *data = graph->value[value].data;
    return data ? data->data : NULL;
}

/* Of one name and type they are the same, unless folding has made different things of it. */
static bool same_elements(const Weights *w, const Graph *graph, ValueId value)
{
    const Value *a = &w->graph->value[w->value], *b = &graph->value[value];
    const void *x = elements(w->graph, w->value), *y = elements(graph, value);
    if (a->data && b->data && x && y)
        return memcmp(x, y, (size_t)type_bytes(a->type)) == 0;
    return a->role == b->role && (a->role == ROLE_PARAM || a->role == ROLE_STATE);
}

static Str key_of(Sharing *s, const Graph *graph, ValueId value, const Packing *packing)
{
    const Value *v = &graph->value[value];
    Text key = {0};
    text_printf(&key, STR_FMT ":" STR_FMT ":", STR_ARG(v->name), STR_ARG(type_show(&s->scratch, v->type)));
    text_put(&key, (const char *)packing, sizeof *packing);
    Str copy = str_copy(&s->scratch, text_view(&key));
    text_free(&key);
    return copy;
}

static int64_t take(int64_t *end, int64_t bytes)
{
    int64_t at = ceil_div(*end, ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
    *end = at + bytes;
    return at;
}

static uint32_t add_weights(Sharing *s, Graph *graph, ValueId value, const Packing *packing, int64_t bytes,
                            bool nibbles)
{
    Program *program = s->program;
    Str key = key_of(s, graph, value, packing);
    uint32_t last = map_get(&s->known, key), count = program->weight_count;
    for (uint32_t w = last; w != MAP_NONE; w = s->before[w])
        if (same_elements(&program->weights[w], graph, value)) {
            program->weights[w].versions |= 1u << s->version;
            return w;
        }
    Weights weights = {.graph = graph,
                       .value = value,
                       .packing = *packing,
                       .bytes = bytes,
                       .nibbles = nibbles,
                       .versions = 1u << s->version};
    weights.offset = ceil_div(program->weights_bytes, WEIGHTS_ALIGNMENT) * WEIGHTS_ALIGNMENT;
    program->weights_bytes = weights.offset + bytes;
    ARENA_PUSH(s->arena, program->weights, program->weight_count, program->weight_capacity, weights);
    ARENA_PUSH(&s->scratch, s->before, count, s->capacity, last);
    map_put(&s->known, key, count - 1);
    return count - 1;
}

static bool *find_read(const Memory *memory, Arena *scratch)
{
    bool *read = ARENA_ARRAY(scratch, bool, memory->storage.count);
    for (uint32_t k = 0; k < memory->kernel_count; k++)
        for (uint32_t b = 0; b < memory->kernel[k].buffer_count; b++)
            read[memory->kernel[k].buffer[b].storage] = true;
    return read;
}

/* An array of the packed block. */
static uint32_t add_packed(Sharing *s, Graph *graph, ValueId value, const Packing *packing, int64_t bytes)
{
    Program *program = s->program;
    int64_t *end = &program->kept.bytes[BLOCK_PACKED];
    Str key = key_of(s, graph, value, packing);
    uint32_t known = map_get(&s->packed, key), count = program->packed_count;
    if (known != MAP_NONE)
        return known;
    Weights packed = {.graph = graph, .value = value, .packing = *packing, .bytes = bytes, .offset = take(end, bytes)};
    ARENA_PUSH(s->arena, program->packed, program->packed_count, program->packed_capacity, packed);
    map_put(&s->packed, key, count);
    return count;
}

/* Weights that no kernel reads any more are left out. */
static void share_entry(Sharing *s, Entry *entry, const WeightTable *table)
{
    const bool *read = find_read(&entry->memory, &s->scratch);
    for (uint32_t w = 0; w < table->count; w++) {
        Storage *storage = &entry->memory.storage.at[table->array[w].storage];
        if (!read[table->array[w].storage])
            continue;
        if (entry->graph->value[storage->value].trained) {
            storage->role = STORAGE_PACKED;
            storage->index = add_packed(s, entry->graph, storage->value, &table->array[w].packing, storage->bytes);
            storage->offset = s->program->packed[storage->index].offset;
            entry->packed = true;
            continue;
        }
        storage->index =
            add_weights(s, entry->graph, storage->value, &table->array[w].packing, storage->bytes, storage->nibbles);
        storage->offset = s->program->weights[storage->index].offset;
    }
}

/* Are all elements the same? */
static bool is_uniform(const Tensor *data)
{
    int64_t count = shape_elements(&data->type->shape);
    size_t bytes = dtype_bytes(data->type->dtype);
    const char *at = data->data;
    for (int64_t i = 1; i < count; i++)
        if (memcmp(at, at + (size_t)i * bytes, bytes) != 0)
            return false;
    return true;
}

static void fill_with(KeptSlot *slot, const void *element)
{
    slot->start = START_FILL;
    slot->fill = element;
}

/* What the initialiser says is carried out where the model runs. */
static void start_by_initialiser(Sharing *s, KeptSlot *slot, const Value *v)
{
    slot->initial = node_initial(&slot->graph->initial[v->initial], v->type);
    slot->start = slot->initial.kind == INITIAL_RAMP ? START_RAMP : START_DRAWN;
    if (slot->initial.kind != INITIAL_NUMBER)
        return;
    Tensor *number = tensor_new(s->arena, module_plain_type(slot->graph->module, v->type->dtype, 0, NULL));
    elements_fill(number, slot->initial.number);
    fill_with(slot, number->data);
}

static void find_start(Sharing *s, KeptSlot *slot)
{
    const Value *v = &slot->graph->value[slot->value];
    if (v->initial != NONE && (!v->data || v->drawn)) {
        start_by_initialiser(s, slot, v);
    } else if (v->data && v->data->data && is_uniform(v->data)) {
        fill_with(slot, v->data->data);
    } else {
        slot->start = START_STORED;
        slot->weights = add_weights(s, slot->graph, slot->value, &(Packing){0}, slot->bytes, false);
    }
}

static uint32_t find_slot(Sharing *s, Map *slots, Graph *graph, ValueId value)
{
    Kept *kept = &s->program->kept;
    const Value *v = &graph->value[value];
    uint32_t known = map_get(slots, v->name);
    if (known != MAP_NONE)
        return known;
    KeptSlot slot = {
        .graph = graph, .value = value, .block = v->trained ? BLOCK_PARAMS : BLOCK_STATE, .bytes = type_bytes(v->type)};
    find_start(s, &slot);
    map_put(slots, v->name, kept->count);
    ARENA_PUSH(s->arena, kept->slot, kept->count, kept->capacity, slot);
    return kept->count - 1;
}

static void list_slots(Sharing *s)
{
    Map slots = {.arena = &s->scratch};
    for (uint32_t e = 0; e < s->program->entry_count; e++) {
        Entry *entry = &s->program->entry[e];
        entry->slot = ARENA_ARRAY(s->arena, uint32_t, entry->memory.state_count);
        for (uint32_t i = 0; i < entry->memory.state_count; i++) {
            entry->slot[i] = find_slot(s, &slots, entry->graph, entry->memory.state[i].value);
            s->program->kept.slot[entry->slot[i]].twice |= entry->memory.state[i].twice;
        }
    }
    for (uint32_t i = 0; i < s->program->packed_count; i++) {
        Weights *packed = &s->program->packed[i];
        packed->slot = map_get(&slots, packed->graph->value[packed->value].name);
    }
}

/* The list of weights goes from version to version and only grows, so that numbers and offsets stay. */
static void take_list(Program *program, const Program *from)
{
    program->weights = from->weights;
    program->weight_count = from->weight_count;
    program->weight_capacity = from->weight_capacity;
    program->weights_bytes = from->weights_bytes;
    program->checksum = from->checksum;
}

void share_weights(Program *program, uint32_t versions, WeightTable *const *weights)
{
    Sharing s = {.arena = program->entry[0].graph->module->arena};
    s.known.arena = &s.scratch;
    for (uint32_t v = 0; v < versions; v++) {
        s.program = &program[v];
        s.version = program[v].number = v;
        s.packed = (Map){.arena = &s.scratch};
        if (v)
            take_list(&program[v], &program[v - 1]);
        for (uint32_t e = 0; e < program[v].entry_count; e++)
            share_entry(&s, &program[v].entry[e], &weights[v][e]);
        list_slots(&s);
    }
    for (uint32_t v = 0; v + 1 < versions; v++)
        take_list(&program[v], &program[versions - 1]);
    arena_free(&s.scratch);
}

/* Blocks */

/* The block of states begins with a byte for each that has memory twice. */
static void place_slots(Program *program)
{
    Kept *kept = &program->kept;
    int64_t end[BLOCK_COUNT] = {0};
    bool any[BLOCK_COUNT] = {false};
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->slot[i].twice && kept->slot[i].block == BLOCK_STATE)
            kept->slot[i].flag = kept->flags++;
    end[BLOCK_STATE] = kept->flags;
    for (uint32_t i = 0; i < kept->count; i++) {
        KeptSlot *slot = &kept->slot[i];
        slot->offset[0] = take(&end[slot->block], slot->bytes);
        slot->offset[1] = slot->twice ? take(&end[BLOCK_STATE], slot->bytes) : slot->offset[0];
        any[slot->block] = true;
        any[BLOCK_STATE] |= slot->twice;
    }
    for (KeptBlock b = 0; b < BLOCK_COUNT; b++)
        if (b != BLOCK_PACKED)
            kept->bytes[b] = any[b] ? most(end[b], 1) : 0;
}

static void find_kept(Program *program, Entry *entry)
{
    entry->keeps[BLOCK_PACKED] = entry->packed;
    for (uint32_t i = 0; i < entry->memory.state_count; i++) {
        entry->keeps[program->kept.slot[entry->slot[i]].block] = true;
        entry->keeps[BLOCK_STATE] |= entry->memory.state[i].twice; /* room for a param's next value */
    }
}

/* What one version needs the other provides for, too: a program runs on what another version of it has kept. */
static void agree_on_slots(Program *a, Program *b)
{
    assert(a->kept.count == b->kept.count);
    for (uint32_t i = 0; i < a->kept.count; i++) {
        KeptSlot *x = &a->kept.slot[i], *y = &b->kept.slot[i];
        assert(str_eq(x->graph->value[x->value].name, y->graph->value[y->value].name) && x->block == y->block);
        x->twice = y->twice |= x->twice;
    }
    for (uint32_t e = 0; e < a->entry_count; e++)
        for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
            a->entry[e].keeps[block] = b->entry[e].keeps[block] |= a->entry[e].keeps[block];
}

void share_blocks(Program *program, uint32_t versions)
{
    for (uint32_t v = 0; v < versions; v++)
        for (uint32_t e = 0; e < program[v].entry_count; e++)
            find_kept(&program[v], &program[v].entry[e]);
    for (uint32_t v = 1; v < versions; v++) /* the last knows what all need ... */
        agree_on_slots(&program[v - 1], &program[v]);
    for (uint32_t v = versions; v-- > 1;) /* ... and tells the others */
        agree_on_slots(&program[v - 1], &program[v]);
    for (uint32_t v = 0; v < versions; v++)
        place_slots(&program[v]);
}
