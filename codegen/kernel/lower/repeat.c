/* For kernels that are alike a recipe is chosen once, and they are lowered once: the layers of a deep network share
 * their loops.
 * Needs: what lower_kernel needs.  Keeps: what every kernel would become by itself.
 * A kernel is described by all that who chooses and who lowers may ask for: its recipe, its nodes, and their values by
 * the order in which they are met, with types, places and views, how large integers are that it multiplies, and what
 * the mask of a strip hides.  Where two descriptions are equal byte by byte, the loops of the first are those of the
 * second, over the arrays that stand in the same places.  What is not described (updates, which look at what runs
 * before, and values inside others whose place is not settled) is lowered anew. */
#include "kernel/lower/strip.h"

#include <string.h>

#define DEEPEST_VIEW 32 /* views of views of an operand: more are not described */

typedef enum From {               /* what makes a value, as the kernel sees it */
                    FROM_OUTSIDE, /* a role, or another kernel */
                    FROM_HERE,
                    FROM_VIEW, /* or a ramp: read through */
} From;

typedef enum BufferFrom {
    BUFFER_VALUE,
    BUFFER_SCRATCH,
    BUFFER_WEIGHTS,
    BUFFER_SHARED,
} BufferFrom;

typedef struct BufferOrigin { /* where a kernel alike finds what its buffer is */
    BufferFrom from;
    uint32_t number; /* of a value, of a piece of scratch, of a question for weights */
    uint32_t part;   /* number of a value; NONE */
} BufferOrigin;

typedef struct Lowered {
    Kernel *kernel;
    const BufferOrigin *origin; /* per buffer */
    const WeightsAsked *asked;  /* their values as numbers */
    uint32_t asked_count;
} Lowered;

struct Repeats {
    Map chosen; /* a description without recipe to one of `recipe` */
    Recipe *recipe;
    uint32_t recipe_count, recipe_capacity;
    Map known; /* a description to one of `lowered` */
    Lowered *lowered;
    uint32_t count, capacity;
    Text key; /* of the kernel */
    uint32_t *number;
    ValueId *value; /* by number */
    uint32_t value_count, value_capacity;
    bool described;
};

static Repeats *repeats_new(const Lower *lower)
{
    uint32_t values = lower->graph->value_count;
    Repeats *repeats = ARENA_NEW(lower->arena, Repeats);
    repeats->known.arena = repeats->chosen.arena = lower->arena;
    repeats->number = ARENA_ARRAY(lower->arena, uint32_t, values);
    for (ValueId v = 0; v < values; v++)
        repeats->number[v] = NONE;
    return repeats;
}

static Repeats *repeats_of(Lower *lower)
{
    if (!lower->repeats)
        lower->repeats = repeats_new(lower);
    return lower->repeats;
}

/* Describing */

static void put(Repeats *repeats, const void *bytes, size_t count)
{
    text_put(&repeats->key, bytes, count);
}

static void put_int(Repeats *repeats, int64_t number)
{
    put(repeats, &number, sizeof number);
}

static void describe_value(Lower *lower, ValueId value, uint32_t depth);

static void describe_node(Lower *lower, const Node *node, uint32_t depth)
{
    Repeats *repeats = lower->repeats;
    put_int(repeats, node->op);
    put_int(repeats, node->joined);
    put_int(repeats, node->part);
    node_attr_key(node, &repeats->key);
    repeats->described &= node->sub_count == 0;
    put_int(repeats, node->in_count);
    for (uint32_t i = 0; i < node->in_count; i++)
        describe_value(lower, node->in[i], depth);
    put_int(repeats, node->out_count);
    for (uint32_t i = 0; i < node->out_count; i++)
        describe_value(lower, node->out[i], depth);
}

static void describe_storage(Lower *lower, ValueId value, uint32_t depth)
{
    Repeats *repeats = lower->repeats;
    const Storage *storage = &lower->storage->at[value];
    put_int(repeats, storage->role);
    put_int(repeats, storage->bytes);
    put_int(repeats, storage->has_parts);
    put_int(repeats, storage->inside != NONE);
    describe_value(lower, storage->whole, depth);
    if (storage->inside == NONE)
        return;
    repeats->described &= storage->settled;
    put_int(repeats, storage->begin);
    put(repeats, storage->stride, sizeof storage->stride);
    put_int(repeats, storage->operand);
    describe_value(lower, storage->inside, depth);
    describe_value(lower, value_producer(lower->graph, storage->inside)->in[storage->operand], depth);
}

static From value_from(const Lower *lower, ValueId value)
{
    return kernel_makes(lower, value)                    ? FROM_HERE
           : kernel_value_is_inline(lower->graph, value) ? FROM_VIEW
                                                         : FROM_OUTSIDE;
}

/* Recurses over views, and over values that lie in others. */
static void describe_value(Lower *lower, ValueId value, uint32_t depth)
{
    Repeats *repeats = lower->repeats;
    const Value *v = &lower->graph->value[value];
    bool met = repeats->number[value] != NONE;
    if (!met) {
        repeats->number[value] = repeats->value_count;
        ARENA_PUSH(lower->arena, repeats->value, repeats->value_count, repeats->value_capacity, value);
    }
    put_int(repeats, repeats->number[value]);
    if (met)
        return;
    if (depth > DEEPEST_VIEW) {
        repeats->described = false;
        return;
    }
    From from = value_from(lower, value);
    double number = 0;
    ListRule rule;
    uint32_t users = lower->users->first[value + 1] - lower->users->first[value];
    put(repeats, &v->type, sizeof v->type);
    put_int(repeats, v->role);
    put_int(repeats, lower->nibbles[value]);
    put_int(repeats, v->result);
    put_int(repeats, from);
    put_int(repeats, users < 2 ? users : 2);
    put_int(repeats, from == FROM_HERE && kernel_stores(lower, value));
    put_int(repeats, value_is_number(lower->graph, value, &number));
    put(repeats, &number, sizeof number);
    put_int(repeats, lower_rule_of(lower->graph, value, &rule));
    put(repeats, &rule, sizeof rule);
    describe_storage(lower, value, depth + 1);
    if (from == FROM_VIEW)
        describe_node(lower, value_producer(lower->graph, value), depth + 1);
}

static void describe_recipe(Repeats *repeats, const Recipe *recipe)
{
    put(repeats, &recipe->provider, sizeof recipe->provider);
    put(repeats, recipe->knob, sizeof recipe->knob);
    put_int(repeats, recipe->rewrites);
    put_int(repeats, recipe->stores_last);
    put_int(repeats, recipe->scratch_count);
    for (uint32_t s = 0; s < recipe->scratch_count; s++) {
        const Scratch *scratch = &recipe->scratch[s];
        put(repeats, scratch->name, strlen(scratch->name) + 1);
        put_int(repeats, scratch->dtype);
        put_int(repeats, scratch->elements);
        put_int(repeats, scratch->per_thread);
        put_int(repeats, scratch->carries);
    }
}

static void describe(Lower *lower)
{
    Repeats *repeats = lower->repeats;
    const Kernel *kernel = lower->kernel;
    repeats->described = kernel->form != FORM_UPDATE;
    put_int(repeats, kernel->form);
    put_int(repeats, kernel->node_count);
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        put_int(repeats, kernel->node[n] == kernel->anchor);
        describe_node(lower, &lower->graph->node[kernel->node[n]], 0);
    }
    StripMask mask;
    if (kernel->form == FORM_STRIPS && strip_find_mask(lower->graph, kernel, &mask)) {
        put(repeats, &mask.hidden, sizeof mask.hidden);
        put_int(repeats, mask.first);
        put_int(repeats, mask.shows);
    }
    if (kernel->form == FORM_CONTRACTION) {
        PairsAsked asked = pairs_asked(lower->graph, &lower->graph->node[kernel->anchor]);
        put(repeats, &asked, sizeof asked);
    }
}

static void forget(Repeats *repeats)
{
    for (uint32_t v = 0; v < repeats->value_count; v++)
        repeats->number[repeats->value[v]] = NONE;
    repeats->value_count = 0;
    text_free(&repeats->key);
}

/* Choosing */

bool recipe_repeated(Lower *lower, bool (*anew)(Lower *lower, Recipe *recipe), Recipe *recipe)
{
    Repeats *repeats = repeats_of(lower);
    describe(lower);
    uint32_t known = repeats->described ? map_get(&repeats->chosen, text_view(&repeats->key)) : MAP_NONE;
    bool good = true;
    if (known != MAP_NONE) {
        *recipe = repeats->recipe[known];
        recipe->scratch = arena_copy(lower->arena, recipe->scratch, recipe->scratch_capacity * sizeof *recipe->scratch);
    } else if ((good = anew(lower, recipe)) && repeats->described) {
        map_put(&repeats->chosen, str_copy(lower->arena, text_view(&repeats->key)), repeats->recipe_count);
        ARENA_PUSH(lower->arena, repeats->recipe, repeats->recipe_count, repeats->recipe_capacity, *recipe);
    }
    forget(repeats);
    return good;
}

uint32_t kernel_count_contractions(Lower *lower, Kernel *kernel, uint32_t count)
{
    Repeats *repeats = repeats_of(lower);
    Map distinct = {.arena = lower->arena};
    uint32_t others = 0; /* that are not described */
    for (uint32_t k = 0; k < count; k++) {
        lower->kernel = &kernel[k];
        if (kernel[k].form != FORM_CONTRACTION && kernel[k].form != FORM_STRIPS)
            continue;
        describe(lower);
        if (!repeats->described)
            others++;
        else if (map_get(&distinct, text_view(&repeats->key)) == MAP_NONE)
            map_put(&distinct, str_copy(lower->arena, text_view(&repeats->key)), 0);
        forget(repeats);
    }
    return distinct.count + others;
}

/* Taking what a kernel alike has become */

static KernelBuffer take_buffer(Lower *lower, const KernelBuffer *first, const BufferOrigin *origin,
                                const StorageId *weights)
{
    KernelBuffer buffer = *first;
    if (origin->from == BUFFER_VALUE)
        buffer.storage = lower->repeats->value[origin->number];
    else if (origin->from == BUFFER_SCRATCH)
        buffer.storage = lower->kernel->recipe.scratch[origin->number].storage;
    else if (origin->from == BUFFER_WEIGHTS)
        buffer.storage = weights[origin->number];
    else
        buffer.storage = lower_shared_storage(lower, first->dtype, first->shared);
    buffer.part = origin->part == NONE ? NONE : lower->repeats->value[origin->part];
    return buffer;
}

static void take(Lower *lower, const Lowered *lowered)
{
    Kernel *kernel = lower->kernel, *first = lowered->kernel;
    StorageId *weights = ARENA_ARRAY(lower->arena, StorageId, lowered->asked_count);
    for (uint32_t a = 0; a < lowered->asked_count; a++) {
        const WeightsAsked *asked = &lowered->asked[a];
        weights[a] =
            lower_weights_storage(lower, lower->repeats->value[asked->value], &asked->packing, asked->elements);
    }
    kernel->body = first->body;
    kernel->repeated = first->repeated = true;
    kernel->buffer = ARENA_ARRAY(lower->arena, KernelBuffer, first->buffer_count);
    kernel->buffer_count = kernel->buffer_capacity = first->buffer_count;
    for (uint32_t b = 0; b < first->buffer_count; b++)
        kernel->buffer[b] = take_buffer(lower, &first->buffer[b], &lowered->origin[b], weights);
}

/* Keeping it for those to come */

static uint32_t find_scratch(const Kernel *kernel, StorageId storage)
{
    for (uint32_t s = 0; s < kernel->recipe.scratch_count; s++)
        if (kernel->recipe.scratch[s].storage == storage)
            return s;
    return NONE;
}

static uint32_t find_asked(const Lower *lower, StorageId storage)
{
    for (uint32_t a = 0; a < lower->asked_count; a++)
        if (lower->asked[a].storage == storage)
            return a;
    return NONE;
}

static bool find_origin(const Lower *lower, const KernelBuffer *buffer, BufferOrigin *origin)
{
    const Repeats *repeats = lower->repeats;
    *origin = (BufferOrigin){BUFFER_SHARED, NONE, NONE};
    if (buffer->part != NONE && (origin->part = repeats->number[buffer->part]) == NONE)
        return false;
    if (buffer->shared)
        return true;
    origin->from = BUFFER_SCRATCH;
    if ((origin->number = find_scratch(lower->kernel, buffer->storage)) != NONE)
        return true;
    origin->from = BUFFER_WEIGHTS;
    if ((origin->number = find_asked(lower, buffer->storage)) != NONE)
        return true;
    origin->from = BUFFER_VALUE;
    bool is_value = buffer->storage < lower->graph->value_count;
    return is_value && (origin->number = repeats->number[buffer->storage]) != NONE;
}

static bool number_asked(const Lower *lower, WeightsAsked *asked)
{
    bool good = true;
    if (lower->asked_count)
        memcpy(asked, lower->asked, lower->asked_count * sizeof *asked);
    for (uint32_t a = 0; a < lower->asked_count; a++) {
        asked[a].value = lower->repeats->number[asked[a].value];
        good &= asked[a].value != NONE;
    }
    return good;
}

static void keep(Lower *lower)
{
    Repeats *repeats = lower->repeats;
    Kernel *kernel = lower->kernel;
    BufferOrigin *origin = ARENA_ARRAY(lower->arena, BufferOrigin, kernel->buffer_count);
    WeightsAsked *asked = ARENA_ARRAY(lower->arena, WeightsAsked, lower->asked_count);
    bool good = number_asked(lower, asked);
    for (uint32_t b = 0; b < kernel->buffer_count && good; b++)
        good = find_origin(lower, &kernel->buffer[b], &origin[b]);
    if (!good)
        return;
    map_put(&repeats->known, str_copy(lower->arena, text_view(&repeats->key)), repeats->count);
    Lowered lowered = {kernel, origin, asked, lower->asked_count};
    ARENA_PUSH(lower->arena, repeats->lowered, repeats->count, repeats->capacity, lowered);
}

bool lower_repeated(Lower *lower, void (*anew)(Lower *lower))
{
    Repeats *repeats = repeats_of(lower);
    put_int(repeats, lower->kernel->threads);
    put_int(repeats, lower->kernel->parts);
    describe_recipe(repeats, &lower->kernel->recipe);
    describe(lower);
    uint32_t known = repeats->described ? map_get(&repeats->known, text_view(&repeats->key)) : MAP_NONE;
    if (known != MAP_NONE)
        take(lower, &repeats->lowered[known]);
    else {
        anew(lower);
        if (repeats->described)
            keep(lower);
    }
    forget(repeats);
    return known != MAP_NONE;
}
