/* The judge of lowered kernels.
 *
 * It trusts neither fusion, recipes, parts, in-place nor lives: it reads the loads and stores of the loops and walks
 * the steps in order, with a map that says for every byte of the arena whose elements were written there last.
 *
 *   - An access stays inside the bytes that its storage has at that step.
 *   - A load finds its own storage's bytes: nobody has written over them since.
 *   - Two storages that one step writes do not share a byte; one that it reads may share those it writes only where
 *     every load stands with the store at the same element: the result in place of an operand.
 *   - Inputs and weights are not written.
 *   - A loop marked parallel stores every round elsewhere, but for scratch that each thread has for itself.
 *
 * Ranges of addresses come from the ranges of loop variables.  Under a loop whose bounds vary, or a guard, they are cut
 * to the storage: whether guards are right is for the tests that run what is emitted. */
#include "storage/memory.h"

typedef struct Spot { /* of a statement: its block, and how far into it */
    uint32_t block, at;
} Spot;

typedef struct Reach { /* one load or store */
    uint32_t buffer;
    Index index;
    int64_t low, high; /* elements, both inclusive, from where the buffer points to */
    bool guarded, store;
    const Var *again; /* a parallel loop around, all of whose rounds store there; NULL */
    Spot spot;
} Reach;

typedef struct Round { /* a loop around: what its variable takes here, which may be less than it could */
    const Var *var;
    int64_t low, high;
} Round;

typedef struct Owner { /* bytes [begin, end) of the arena hold elements of `of` */
    int64_t begin, end;
    StorageId of;
} Owner;

typedef struct Loss { /* bytes [begin, end) that had elements of a storage, until another one was written there */
    int64_t begin, end;
    uint32_t next;
} Loss;

typedef struct Judge {
    const Memory *memory;
    Arena *arena;
    Str *message;
    const Kernel *kernel;
    uint32_t step;
    Reach *reach; /* of the kernel */
    uint32_t reach_count, reach_capacity;
    uint32_t *outer; /* per block: the one around it */
    uint32_t block_count, block_capacity;
    Round *round;
    uint32_t round_count, round_capacity;
    const Stmt **around; /* all loops around */
    uint32_t around_count, around_capacity;
    const Index **local; /* per local id: the position that it names, or NULL */
    Owner *owner;        /* ascending, apart */
    uint32_t owner_count, owner_capacity;
    Loss *loss;
    uint32_t loss_count, loss_capacity, *first_loss; /* by storage; NONE */
    uint32_t *first_buffer, *next_buffer; /* of the plan, by storage; those that are over by this step are gone */
} Judge;

/* Names for messages */

static Str name_of(const Judge *judge, StorageId id)
{
    const Storage *storage = &judge->memory->storage.at[id];
    return storage->value == NONE ? STR("scratch") : value_show(judge->memory->graph, storage->value);
}

static bool fault(Judge *judge, StorageId a, const char *what, StorageId b)
{
    Arena *arena = judge->memory->graph->module->arena;
    *judge->message = str_format(arena, "step %u (" STR_FMT ") %s " STR_FMT, judge->step, STR_ARG(judge->kernel->name),
                                 what, STR_ARG(name_of(judge, a)));
    if (b != NONE)
        *judge->message =
            str_format(arena, STR_FMT ", which has " STR_FMT, STR_ARG(*judge->message), STR_ARG(name_of(judge, b)));
    return false;
}

/* Ranges of addresses */

static int64_t index_end(const Judge *judge, Index index, bool high);

static int64_t atom_end(const Judge *judge, const Atom *atom, bool high)
{
    const Expr *data = atom->kind == ATOM_DATA ? atom->data : NULL;
    if (data && data->kind == EXPR_LOCAL && judge->local[data->local->id])
        return index_end(judge, *judge->local[data->local->id], high);
    for (uint32_t i = judge->round_count; atom->kind == ATOM_VAR && i-- > 0;)
        if (judge->round[i].var == atom->var)
            return high ? judge->round[i].high : judge->round[i].low;
    return high ? atom->high : atom->low;
}

static int64_t index_end(const Judge *judge, Index index, bool high)
{
    int64_t end = index.constant;
    for (uint32_t i = 0; i < index.count; i++) {
        const Term *term = &index.term[i];
        end += term->factor * atom_end(judge, term->atom, high == (term->factor > 0));
    }
    return end;
}

/* Then the ranges of its variable, and of those in its bounds, are not independent. */
static bool bounds_vary(const Stmt *stmt)
{
    return stmt->clamp_low || stmt->clamp_high || stmt->low.count || stmt->high.count;
}

/* Does the address change with the variable: directly, or through locals that name positions? */
static bool changes(const Judge *judge, Index index, const Var *var)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        const Expr *data = atom->kind == ATOM_DATA ? atom->data : NULL;
        bool named = data && data->kind == EXPR_LOCAL && judge->local[data->local->id];
        if (named ? changes(judge, *judge->local[data->local->id], var)
                  : index_uses((Index){0, 1, &index.term[i]}, var))
            return true;
    }
    return false;
}

/* The same also through inner loops that start where the variable says, such as the tiles of a chunk. */
static bool goes_with(const Judge *judge, Index index, uint32_t loop)
{
    const Var *var = judge->around[loop]->var;
    bool found = changes(judge, index, var);
    for (uint32_t i = loop + 1; i < judge->around_count && !found; i++)
        found = changes(judge, index, judge->around[i]->var) && changes(judge, judge->around[i]->low, var);
    return found;
}

static bool is_shared_out(const Stmt *loop)
{
    return loop->loop == LOOP_PARALLEL && (bounds_vary(loop) || loop->high.constant - loop->low.constant > loop->step);
}

static const Var *stored_again(const Judge *judge, Index index)
{
    for (uint32_t i = 0; i < judge->around_count; i++)
        if (is_shared_out(judge->around[i]) && !goes_with(judge, index, i))
            return judge->around[i]->var;
    return NULL;
}

/* Collecting what a kernel reaches */

typedef struct Walk {
    Judge *judge;
    Spot spot;
    bool guarded;
} Walk;

static void add_reach(Walk *walk, uint32_t buffer, Index index, int64_t more, bool store)
{
    Judge *judge = walk->judge;
    Reach reach = {.buffer = buffer,
                   .index = index,
                   .low = index_end(judge, index, false),
                   .high = index_end(judge, index, true) + more,
                   .guarded = walk->guarded,
                   .store = store,
                   .again = store ? stored_again(judge, index) : NULL,
                   .spot = walk->spot};
    ARENA_PUSH(judge->arena, judge->reach, judge->reach_count, judge->reach_capacity, reach);
}

static void walk_index(Walk *walk, Index index);

static void walk_expr(Walk *walk, const Expr *expr)
{
    bool guarded = walk->guarded;
    if (expr->kind == EXPR_LOAD)
        add_reach(walk, expr->buffer, expr->index, 0, false);
    walk_index(walk, expr->index);
    walk->guarded |= expr->kind == EXPR_WITHIN;
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            walk_expr(walk, expr->arg[i]);
    walk->guarded = guarded;
}

/* A position may itself be read from memory. */
static void walk_index(Walk *walk, Index index)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        if (atom->kind == ATOM_DATA)
            walk_expr(walk, atom->data);
        else if (atom->kind != ATOM_VAR)
            walk_index(walk, atom->index);
    }
}

static uint32_t open_block(Judge *judge, uint32_t outer)
{
    ARENA_PUSH(judge->arena, judge->outer, judge->block_count, judge->block_capacity, outer);
    return judge->block_count - 1;
}

static void walk_stmt(Walk *walk, const Stmt *stmt)
{
    int64_t last = (int64_t)stmt->lanes - 1;
    if (stmt->kind == STMT_LOCAL && stmt->value && stmt->value->kind == EXPR_INDEX && !stmt->local->lanes)
        walk->judge->local[stmt->local->id] = &stmt->value->index;
    if (stmt->kind == STMT_PREFETCH)
        return;
    if (stmt->kind == STMT_TRANSPOSE) {
        add_reach(walk, stmt->value->buffer, stmt->value->index, last * stmt->from_stride + last, false);
        add_reach(walk, stmt->buffer, stmt->index, last * stmt->stride + last, true);
        return;
    }
    if (stmt->value)
        walk_expr(walk, stmt->value);
    walk_index(walk, stmt->index);
    if (stmt->kind == STMT_STORE)
        add_reach(walk, stmt->buffer, stmt->index, 0, true);
}

static bool is_plain_loop(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && !bounds_vary(stmt);
}

static Round round_of(const Stmt *loop)
{
    int64_t low = loop->low.constant, rounds = (loop->high.constant - low + loop->step - 1) / loop->step;
    return (Round){loop->var, low, low + (rounds - 1) * loop->step};
}

static void walk_block(Judge *judge, const Block *block, uint32_t outer, bool guarded)
{
    Walk walk = {judge, {open_block(judge, outer), 0}, guarded};
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next, walk.spot.at++) {
        bool inner = guarded || stmt->kind == STMT_IF || bounds_vary(stmt), loop = is_plain_loop(stmt);
        walk_stmt(&walk, stmt);
        if (loop)
            ARENA_PUSH(judge->arena, judge->round, judge->round_count, judge->round_capacity, round_of(stmt));
        if (stmt->kind == STMT_FOR)
            ARENA_PUSH(judge->arena, judge->around, judge->around_count, judge->around_capacity, stmt);
        walk_block(judge, &stmt->body, walk.spot.block, inner);
        judge->around_count -= stmt->kind == STMT_FOR;
        judge->round_count -= loop;
        walk_block(judge, &stmt->other, walk.spot.block, inner);
    }
}

static uint32_t most_local(const Block *block)
{
    uint32_t most = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        uint32_t here[] = {stmt->local ? stmt->local->id + 1 : 0, most_local(&stmt->body), most_local(&stmt->other)};
        for (int i = 0; i < 3; i++)
            most = here[i] > most ? here[i] : most;
    }
    return most;
}

/* Bytes of an access in the arena, or in the array of its storage */

typedef struct Range {
    int64_t begin, end;
} Range;

static Range range_of(const Judge *judge, const Reach *reach)
{
    const KernelBuffer *buffer = &judge->kernel->buffer[reach->buffer];
    int64_t element = dtype_bytes(buffer->dtype);
    return (Range){(buffer->begin + reach->low) * element, (buffer->begin + reach->high + 1) * element};
}

/* The bytes that the storage has at this step; fewer than in the end where parts of it are still to come. */
static int64_t bytes_now(const Judge *judge, StorageId id)
{
    const Memory *memory = judge->memory;
    if (memory->storage.at[id].role != STORAGE_ARENA && memory->storage.at[id].role != STORAGE_SCRATCH)
        return memory->storage.at[id].bytes;
    uint32_t *first = &judge->first_buffer[id];
    while (*first != NONE && memory->problem.buffer[*first].last <= judge->step)
        *first = judge->next_buffer[*first];
    for (uint32_t i = *first; i != NONE; i = judge->next_buffer[i]) {
        const PlanBuffer *buffer = &memory->problem.buffer[i];
        if (buffer->first <= judge->step && judge->step < buffer->last)
            return buffer->size;
    }
    return -1;
}

static bool in_arena(const Judge *judge, StorageId id)
{
    StorageRole role = judge->memory->storage.at[id].role;
    return role == STORAGE_ARENA || role == STORAGE_SCRATCH;
}

static int64_t offset_of(const Judge *judge, StorageId id)
{
    return judge->memory->plan.offset[judge->memory->storage.at[id].buffer];
}

/* Inside of what the storage has; under a guard it is cut to that. */
static bool check_inside(Judge *judge, const Reach *reach, Range *range)
{
    StorageId id = judge->kernel->buffer[reach->buffer].storage;
    const Storage *storage = &judge->memory->storage.at[id];
    int64_t bytes = bytes_now(judge, id);
    *range = range_of(judge, reach);
    if (bytes < 0)
        return fault(judge, id, reach->store ? "writes, without memory," : "reads, without memory,", NONE);
    if (reach->store && (storage->role == STORAGE_INPUT || storage->role == STORAGE_WEIGHTS))
        return fault(judge, id, "writes", NONE);
    if (reach->again && !storage->per_thread && storage->role != STORAGE_SHARED)
        return fault(judge, id, "stores in every round of a parallel loop to", NONE);
    if (!reach->guarded && (range->begin < 0 || range->end > bytes))
        return fault(judge, id, reach->store ? "writes outside of" : "reads outside of", NONE);
    range->begin = range->begin < 0 ? 0 : range->begin;
    range->end = range->end > bytes ? bytes : range->end;
    return true;
}

/* Owners */

/* The first owner that ends behind the byte. */
static uint32_t owner_at(const Judge *judge, int64_t byte)
{
    uint32_t low = 0, high = judge->owner_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (judge->owner[middle].end <= byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Of a whole some bytes may be missing between parts that have been made; of others all must be there. */
static bool check_owned(Judge *judge, StorageId id, Range range)
{
    int64_t begin = offset_of(judge, id) + range.begin, end = offset_of(judge, id) + range.end;
    bool whole = judge->memory->storage.at[id].has_parts, some = false;
    int64_t at = begin;
    for (uint32_t i = owner_at(judge, begin); i < judge->owner_count && judge->owner[i].begin < end; i++) {
        const Owner *owner = &judge->owner[i];
        some |= owner->of == id;
        if (!whole && owner->of != id)
            return fault(judge, id, "reads", owner->of);
        if (!whole && owner->begin > at)
            break;
        at = owner->end;
    }
    if (begin < end && (!some || (!whole && at < end)))
        return fault(judge, id, "reads, before it is made,", NONE);
    for (uint32_t i = judge->first_loss[id]; i != NONE; i = judge->loss[i].next)
        if (judge->loss[i].begin < end && begin < judge->loss[i].end)
            return fault(judge, id, "reads what has been written over of", NONE);
    return true;
}

static void insert_owner(Judge *judge, uint32_t at, Owner owner)
{
    ARENA_PUSH(judge->arena, judge->owner, judge->owner_count, judge->owner_capacity, owner);
    for (uint32_t i = judge->owner_count - 1; i > at; i--)
        judge->owner[i] = judge->owner[i - 1];
    judge->owner[at] = owner;
}

static void lose_bytes(Judge *judge, const Owner *owner, int64_t begin, int64_t end)
{
    Loss loss = {owner->begin > begin ? owner->begin : begin, owner->end < end ? owner->end : end,
                 judge->first_loss[owner->of]};
    judge->first_loss[owner->of] = judge->loss_count;
    ARENA_PUSH(judge->arena, judge->loss, judge->loss_count, judge->loss_capacity, loss);
}

static void take_bytes(Judge *judge, StorageId id, Range range)
{
    int64_t begin = offset_of(judge, id) + range.begin, end = offset_of(judge, id) + range.end;
    uint32_t first = owner_at(judge, begin), last = first;
    Owner left = {0}, right = {0};
    if (begin >= end)
        return;
    if (first < judge->owner_count && judge->owner[first].begin < begin)
        left = (Owner){judge->owner[first].begin, begin, judge->owner[first].of};
    for (; last < judge->owner_count && judge->owner[last].begin < end; last++) {
        if (judge->owner[last].of != id)
            lose_bytes(judge, &judge->owner[last], begin, end);
        if (judge->owner[last].end > end)
            right = (Owner){end, judge->owner[last].end, judge->owner[last].of};
    }
    for (uint32_t i = last; i < judge->owner_count; i++)
        judge->owner[first + i - last] = judge->owner[i];
    judge->owner_count -= last - first;
    if (right.end)
        insert_owner(judge, first, right);
    insert_owner(judge, first, (Owner){begin, end, id});
    if (left.end)
        insert_owner(judge, first, left);
}

/* In place */

/* Does the store come at or after the load, in its block or one around it? */
static bool stands_with(const Judge *judge, const Reach *load, const Reach *store)
{
    uint32_t block = load->spot.block;
    if (block == store->spot.block)
        return store->spot.at >= load->spot.at;
    while (block != NONE && block != store->spot.block)
        block = judge->outer[block];
    return block != NONE;
}

static bool same_element(const Judge *judge, const Reach *load, const Reach *store)
{
    const KernelBuffer *from = &judge->kernel->buffer[load->buffer], *to = &judge->kernel->buffer[store->buffer];
    return dtype_bytes(from->dtype) == dtype_bytes(to->dtype) && from->begin == to->begin &&
           offset_of(judge, from->storage) == offset_of(judge, to->storage) && index_eq(load->index, store->index);
}

static bool load_is_in_place(const Judge *judge, const Reach *load, uint32_t into)
{
    for (uint32_t i = 0; i < judge->reach_count; i++) {
        const Reach *store = &judge->reach[i];
        if (store->store && store->buffer == into && same_element(judge, load, store) &&
            stands_with(judge, load, store))
            return true;
    }
    return false;
}

/* The hulls of all loads, or of all stores, of each buffer of the kernel, in its storage */
static bool find_hulls(Judge *judge, Range *hull, bool *reached, bool store)
{
    for (uint32_t i = 0; i < judge->reach_count; i++) {
        const Reach *reach = &judge->reach[i];
        Range range;
        if (reach->store != store ||
            judge->memory->storage.at[judge->kernel->buffer[reach->buffer].storage].role == STORAGE_SHARED)
            continue;
        if (!check_inside(judge, reach, &range))
            return false;
        Range *all = &hull[reach->buffer];
        if (!reached[reach->buffer]) {
            *all = range;
            reached[reach->buffer] = true;
        }
        all->begin = range.begin < all->begin ? range.begin : all->begin;
        all->end = range.end > all->end ? range.end : all->end;
    }
    return true;
}

typedef struct Hulls {
    Range *load, *store;
    bool *loaded, *stored;
} Hulls;

static bool overlap(const Judge *judge, StorageId a, Range x, StorageId b, Range y)
{
    int64_t p = offset_of(judge, a), q = offset_of(judge, b);
    return p + x.begin < q + y.end && q + y.begin < p + x.end;
}

/* What the kernel writes through buffer b, against all else it touches. */
static bool check_store(Judge *judge, const Hulls *hulls, uint32_t b)
{
    StorageId into = judge->kernel->buffer[b].storage;
    for (uint32_t a = 0; a < judge->kernel->buffer_count; a++) {
        StorageId of = judge->kernel->buffer[a].storage;
        if (of == into || !in_arena(judge, of))
            continue;
        if (hulls->stored[a] && overlap(judge, of, hulls->store[a], into, hulls->store[b]))
            return fault(judge, of, "writes", into);
        if (!hulls->loaded[a] || !overlap(judge, of, hulls->load[a], into, hulls->store[b]))
            continue;
        for (uint32_t i = 0; i < judge->reach_count; i++)
            if (!judge->reach[i].store && judge->reach[i].buffer == a && !load_is_in_place(judge, &judge->reach[i], b))
                return fault(judge, of, "writes over", into);
    }
    return true;
}

static bool judge_step(Judge *judge)
{
    uint32_t count = judge->kernel->buffer_count;
    Hulls hulls = {ARENA_ARRAY(judge->arena, Range, count), ARENA_ARRAY(judge->arena, Range, count),
                   ARENA_ARRAY(judge->arena, bool, count), ARENA_ARRAY(judge->arena, bool, count)};
    if (!find_hulls(judge, hulls.load, hulls.loaded, false) || !find_hulls(judge, hulls.store, hulls.stored, true))
        return false;
    for (uint32_t b = 0; b < count; b++) {
        StorageId id = judge->kernel->buffer[b].storage;
        if (!in_arena(judge, id))
            continue;
        bool own = hulls.stored[b] && hulls.store[b].begin <= hulls.load[b].begin &&
                   hulls.load[b].end <= hulls.store[b].end; /* it may have written that itself: partial sums, scratch */
        if (hulls.loaded[b] && !own && !check_owned(judge, id, hulls.load[b]))
            return false;
        if (hulls.stored[b] && !check_store(judge, &hulls, b))
            return false;
    }
    for (uint32_t b = 0; b < count; b++)
        if (hulls.stored[b] && in_arena(judge, judge->kernel->buffer[b].storage))
            take_bytes(judge, judge->kernel->buffer[b].storage, hulls.store[b]);
    return true;
}

static void list_buffers(Judge *judge)
{
    const Memory *memory = judge->memory;
    judge->first_buffer = ARENA_ARRAY(judge->arena, uint32_t, memory->storage.count);
    judge->next_buffer = ARENA_ARRAY(judge->arena, uint32_t, memory->problem.count);
    judge->first_loss = ARENA_ARRAY(judge->arena, uint32_t, memory->storage.count);
    for (uint32_t s = 0; s < memory->storage.count; s++)
        judge->first_buffer[s] = judge->first_loss[s] = NONE;
    for (uint32_t i = memory->problem.count; i-- > 0;) {
        judge->next_buffer[i] = judge->first_buffer[memory->holder[i]];
        judge->first_buffer[memory->holder[i]] = i;
    }
}

bool memory_judge(const Memory *memory, Arena *scratch, Str *message)
{
    Judge judge = {.memory = memory, .arena = scratch, .message = message};
    list_buffers(&judge);
    for (judge.step = 0; judge.step < memory->kernel_count; judge.step++) {
        judge.kernel = &memory->kernel[judge.step];
        judge.reach_count = judge.block_count = 0;
        judge.local = ARENA_ARRAY(scratch, const Index *, most_local(&judge.kernel->body));
        walk_block(&judge, &judge.kernel->body, NONE, false);
        if (!judge_step(&judge))
            return false;
    }
    return true;
}
