/* Windows (windows.h): addresses as sums over loops, cut at one of them. */
#include "storage/windows.h"

#include "base/number.h"
#include "storage/carried.h"
#include "storage/residues.h"

/* Nests, and addresses by their loops */

typedef struct Names { /* what stands for sums of loops */
    Arena *arena;
    const Index **local; /* per local id: the position that it names, or NULL */
    const Stmt **offset; /* loops that start where others stand ... */
    const Var **within;  /* ... and how far inside of them each is */
    uint32_t count, capacity, within_capacity;
    Chunks *chunks;
    uint32_t chunk_count, chunk_capacity;
} Names;

/* Tiles of a chunk, of which there are as many for each. */
static bool starts_elsewhere(const Stmt *stmt, int64_t *rounds)
{
    if (stmt->kind != STMT_FOR || !stmt->low.count || stmt->clamp_low)
        return false;
    int64_t high = stmt->high.constant;
    for (uint32_t i = 0; i < stmt->low.count; i++)
        if (stmt->high.count != stmt->low.count || stmt->low.term[i].factor != stmt->high.term[i].factor ||
            stmt->low.term[i].atom != stmt->high.term[i].atom)
            return false;
    *rounds = high - stmt->low.constant;
    return *rounds > 0;
}

static void note_chunks(Names *names, const Stmt *stmt, const Var *within)
{
    const Term *term = stmt->low.term;
    if (stmt->clamp_high && !stmt->high_most.count && stmt->low.count == 1 && !stmt->low.constant &&
        term->atom->kind == ATOM_VAR)
        ARENA_PUSH(names->arena, names->chunks, names->chunk_count, names->chunk_capacity,
                   ((Chunks){term->atom->var, within, term->factor, stmt->high_most.constant}));
}

/* The same of tiles that are counted from the chunk on. */
static void note_rests(Names *names, const Stmt *stmt)
{
    const Term *term = stmt->high_most.term;
    if (stmt->kind == STMT_FOR && stmt->clamp_high && !stmt->low.count && !stmt->low.constant &&
        stmt->high_most.count == 1 && term->atom->kind == ATOM_VAR && term->factor < 0)
        ARENA_PUSH(names->arena, names->chunks, names->chunk_count, names->chunk_capacity,
                   ((Chunks){term->atom->var, stmt->var, -term->factor, stmt->high_most.constant}));
}

static void note_names(Names *names, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        int64_t rounds;
        if (stmt->kind == STMT_LOCAL && stmt->value && stmt->value->kind == EXPR_INDEX && !stmt->local->lanes)
            names->local[stmt->local->id] = &stmt->value->index;
        if (starts_elsewhere(stmt, &rounds)) {
            uint32_t count = names->count;
            const Var *within = index_var_new(names->arena, stmt->var->name, 0, rounds - 1);
            ARENA_PUSH(names->arena, names->offset, names->count, names->capacity, stmt);
            ARENA_PUSH(names->arena, names->within, count, names->within_capacity, within);
            note_chunks(names, stmt, within);
        }
        note_rests(names, stmt);
        note_names(names, &stmt->body);
        note_names(names, &stmt->other);
    }
}

static Index resolve(const Names *names, Index index);

/* What the atom stands for, or itself. */
static Index resolve_atom(const Names *names, const Term *term)
{
    const Atom *atom = term->atom;
    const Expr *data = atom->kind == ATOM_DATA ? atom->data : NULL;
    if (data && data->kind == EXPR_LOCAL && names->local[data->local->id])
        return index_scale(names->arena, resolve(names, *names->local[data->local->id]), term->factor);
    for (uint32_t i = 0; atom->kind == ATOM_VAR && i < names->count; i++)
        if (names->offset[i]->var == atom->var) {
            Index at = index_add(names->arena, names->offset[i]->low, index_var(names->arena, names->within[i]));
            return index_scale(names->arena, resolve(names, at), term->factor);
        }
    return (Index){0, 1, term};
}

/* Recurses over names of names. */
static Index resolve(const Names *names, Index index)
{
    Index sum = index_constant(index.constant);
    for (uint32_t i = 0; i < index.count; i++)
        sum = index_add(names->arena, sum, resolve_atom(names, &index.term[i]));
    return sum;
}

static bool can_be_dealt(const Stmt *stmt)
{
    return !stmt->low.count && !stmt->high.count && !stmt->clamp_low && !stmt->clamp_high && stmt_rounds(stmt) > 1;
}

static void list_loops(DealNest *nest, Arena *arena)
{
    const Stmt *outermost = nest->stmt;
    if (outermost->kind == STMT_LANES)
        outermost = carried_only_loop(&outermost->body, arena);
    for (const Stmt *stmt = outermost; stmt && stmt->kind == STMT_FOR; stmt = carried_only_loop(&stmt->body, arena))
        if (can_be_dealt(stmt) && nest->loop_count < NEST_LOOPS)
            nest->loop[nest->loop_count++] = stmt;
}

/* Values that several nests go by are computed for all of them. */
static bool serves_all(const Stmt *stmt)
{
    return stmt->kind == STMT_LOCAL || stmt->kind == STMT_ASSIGN || stmt->kind == STMT_REDUCE;
}

DealNest *windows_nests(const Kernel *kernel, Arena *arena, uint32_t *count)
{
    Names names = {.arena = arena};
    DealNest *nest = NULL;
    uint32_t capacity = 0;
    names.local = ARENA_ARRAY(arena, const Index *, block_locals(&kernel->body));
    note_names(&names, &kernel->body);
    *count = 0;
    for (const Stmt *stmt = kernel->body.first; stmt; stmt = stmt->next) {
        DealNest new = {.stmt = stmt,
                        .stores = ARENA_ARRAY(arena, bool, kernel->buffer_count),
                        .chunks = names.chunks,
                        .chunk_count = names.chunk_count};
        Kernel alone = *kernel;
        Stmt *copy = arena_copy(arena, stmt, sizeof *stmt);
        if (serves_all(stmt) || *count == MOST_NESTS)
            return NULL;
        copy->next = NULL;
        alone.body = (Block){copy, copy};
        new.reached = reach_collect(&alone, arena);
        for (uint32_t i = 0; i < new.reached.count; i++) {
            Reach *reach = &new.reached.at[i];
            reach->index = resolve(&names, reach->index);
            new.stores[reach->buffer] |= reach->store;
        }
        list_loops(&new, arena);
        ARENA_PUSH(arena, nest, *count, capacity, new);
    }
    return nest;
}

/* Windows */

typedef struct Windows { /* of a storage */
    int64_t span, rounds;
    int64_t modulus;   /* 0: none */
    int64_t low, high; /* of round 0, both inclusive; empty when high < low */
    int64_t last;      /* element of all rounds */
    int64_t repeat;    /* a modulus that may do instead; 0: none */
    bool good;
} Windows;

static bool is_of(const Term *term, const Var *var)
{
    return term->atom->kind == ATOM_VAR && term->atom->var == var;
}

/* By how much the address of one round is past that of the round before; 0 where that is not one number. */
static int64_t span_of(const Reach *reach, const Stmt *loop)
{
    int64_t factor;
    bool affine = index_factor(reach->index, loop->var, &factor);
    return affine && factor > 0 ? factor * loop->step : 0;
}

static bool is_outer(const Windows *w, const Term *term, const Stmt *loop)
{
    int64_t factor = term->factor < 0 ? -term->factor : term->factor;
    return !is_of(term, loop->var) && factor > w->span * (w->rounds - 1);
}

/* The first look at an access: span and modulus. */
static void measure(Windows *w, const Reach *reach, const Stmt *loop)
{
    int64_t span = span_of(reach, loop);
    w->span = w->span ? w->span : span;
    w->rounds = stmt_rounds(loop);
    w->good &= span > 0 && span == w->span;
    for (uint32_t i = 0; w->good && i < reach->index.count; i++)
        if (is_outer(w, &reach->index.term[i], loop)) {
            int64_t factor = reach->index.term[i].factor;
            w->modulus = number_gcd(factor < 0 ? -factor : factor, w->modulus);
        }
}

static int64_t factor_of(const Reach *reach, const Var *var)
{
    for (uint32_t i = 0; i < reach->index.count; i++)
        if (is_of(&reach->index.term[i], var))
            return reach->index.term[i].factor;
    return 0;
}

/* Elements that are missing at the end, where the last chunk is shorter; of chunks that go on in memory too. */
static int64_t missing_of(const Chunks *chunks, const Reach *reach)
{
    int64_t tile = factor_of(reach, chunks->tile), count = chunks->chunk->high + 1;
    bool goes_on = tile > 0 && factor_of(reach, chunks->chunk) == tile * chunks->each;
    return goes_on && chunks->each * count > chunks->limit ? tile * (chunks->each * count - chunks->limit) : 0;
}

/* From the first element of round 0 to the last of them all. */
static int64_t find_last(const Windows *w, const DealNest *nest, const Reach *reach, int64_t high)
{
    int64_t last = high + w->span * (w->rounds - 1);
    for (uint32_t i = 0; i < nest->chunk_count; i++)
        last -= nest->chunks[i].chunk == nest->chosen->var ? missing_of(&nest->chunks[i], reach) : 0;
    return last;
}

/* What of a window round 0 touches.  A square that is transposed has its rows and columns besides. */
static Extent touched(const Windows *w, const KernelBuffer *buffer, const DealNest *nest, const Reach *reach)
{
    const Stmt *loop = nest->chosen;
    int64_t low = buffer->begin + reach->index.constant;
    low += factor_of(reach, loop->var) * loop->low.constant;
    int64_t high = low + reach->square;
    for (uint32_t i = 0; i < reach->index.count; i++) {
        const Term *term = &reach->index.term[i];
        if (is_of(term, loop->var) || is_outer(w, term, loop))
            continue;
        low += term->factor * (term->factor > 0 ? term->atom->low : term->atom->high);
        high += term->factor * (term->factor > 0 ? term->atom->high : term->atom->low);
    }
    for (uint32_t i = 0; i < nest->chunk_count; i++)
        high -= nest->chunks[i].chunk != loop->var ? missing_of(&nest->chunks[i], reach) : 0;
    return (Extent){low, high};
}

/* The second look: the windows' extents. */
static void widen(Windows *w, const KernelBuffer *buffer, const DealNest *nest, const Reach *reach)
{
    Extent at = touched(w, buffer, nest, reach);
    int64_t turns = w->modulus ? at.begin / w->modulus - (at.begin % w->modulus < 0) : 0;
    int64_t low = at.begin - turns * w->modulus, high = at.end - turns * w->modulus;
    int64_t last = find_last(w, nest, reach, high);
    bool first = w->high < w->low;
    w->low = first || low < w->low ? low : w->low;
    w->high = first || high > w->high ? high : w->high;
    w->last = first || last > w->last ? last : w->last;
}

/* Accesses that lie behind all rounds of others, as a second block of channels does, come again like those of loops:
 * by how much the first of them does. */
static void find_repeat(Windows *w, const KernelBuffer *buffer, const DealNest *nest, const Reach *reach)
{
    int64_t behind = touched(w, buffer, nest, reach).begin - w->low;
    if (behind > w->span * (w->rounds - 1) && (!w->repeat || behind < w->repeat))
        w->repeat = behind;
}

typedef enum Look { MEASURE, WIDEN, REPEAT } Look;

static void look(Windows *w, const Kernel *kernel, const DealNest *nest, StorageId storage, Look what)
{
    for (uint32_t i = 0; w->good && i < nest->reached.count; i++) {
        const Reach *reach = &nest->reached.at[i];
        const KernelBuffer *buffer = &kernel->buffer[reach->buffer];
        if (buffer->storage != storage)
            continue;
        if (what == MEASURE)
            measure(w, reach, nest->chosen);
        else if (what == WIDEN)
            widen(w, buffer, nest, reach);
        else
            find_repeat(w, buffer, nest, reach);
    }
}

static void look_at_all(Windows *w, const Kernel *kernel, const DealNest *const *nest, uint32_t count,
                        StorageId storage, Look what)
{
    for (uint32_t i = 0; i < count; i++)
        look(w, kernel, nest[i], storage, what);
}

static bool fit_together(Windows *w, const Kernel *kernel, const DealNest *const *nest, uint32_t count,
                         StorageId storage, int64_t modulus)
{
    w->modulus = modulus;
    w->low = 0;
    w->high = -1;
    look_at_all(w, kernel, nest, count, storage, WIDEN);
    return w->good && w->high - w->low < w->span && (!w->modulus || w->last - w->low < w->modulus);
}

/* Does every round keep to its window, in all of these nests? */
static bool keeps_apart(const Kernel *kernel, const DealNest *const *nest, uint32_t count, StorageId storage)
{
    Windows w = {.good = true};
    look_at_all(&w, kernel, nest, count, storage, MEASURE);
    int64_t modulus = w.modulus;
    if (!w.good || fit_together(&w, kernel, nest, count, storage, modulus))
        return w.good;
    fit_together(&w, kernel, nest, count, storage, 0); /* where the first access is */
    look_at_all(&w, kernel, nest, count, storage, REPEAT);
    return w.repeat && modulus % w.repeat == 0 && fit_together(&w, kernel, nest, count, storage, w.repeat);
}

static bool stores_to(const Kernel *kernel, const DealNest *nest, StorageId storage)
{
    bool stores = false;
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        stores |= nest->stores[b] && kernel->buffer[b].storage == storage;
    return stores;
}

static bool is_of_all(const Memory *memory, const Kernel *kernel, uint32_t buffer)
{
    return !memory->storage.at[kernel->buffer[buffer].storage].per_thread;
}

/* Is it a serial loop, of which a round may go on with what the one before has left in scratch? */
static bool may_carry(const Memory *memory, const KernelBuffer *buffer, const Stmt *loop)
{
    return memory->storage.at[buffer->storage].carries && loop->loop != LOOP_PARALLEL;
}

bool windows_deals(const Memory *memory, const Kernel *kernel, const DealNest *nest)
{
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (nest->stores[b] &&
            (may_carry(memory, &kernel->buffer[b], nest->chosen) ||
             (is_of_all(memory, kernel, b) && !keeps_apart(kernel, &nest, 1, kernel->buffer[b].storage))))
            return false;
    return true;
}

static void add_to_hull(Extent *hull, Extent bytes)
{
    bool some = hull->begin < hull->end;
    hull->begin = some && hull->begin < bytes.begin ? hull->begin : bytes.begin;
    hull->end = some && hull->end > bytes.end ? hull->end : bytes.end;
}

static Extent extent_of(const Kernel *kernel, const Reach *reach)
{
    int64_t begin = kernel->buffer[reach->buffer].begin;
    return (Extent){begin + reach->low, begin + reach->high + 1};
}

/* The same by the resolved address, which knows where loops start; both may be too wide. */
static Extent nearest_extent_of(const Kernel *kernel, const Reach *reach)
{
    Extent by_loops = extent_of(kernel, reach), all = residues_of(&kernel->buffer[reach->buffer], reach, INT64_MAX);
    return (Extent){all.begin > by_loops.begin ? all.begin : by_loops.begin,
                    all.end + 1 < by_loops.end ? all.end + 1 : by_loops.end};
}

/* From the first to the last element that it touches; false when it touches none. */
static bool find_hull(const Kernel *kernel, const DealNest *nest, StorageId storage, Extent *hull)
{
    *hull = (Extent){0, 0};
    for (uint32_t i = 0; i < nest->reached.count; i++)
        if (kernel->buffer[nest->reached.at[i].buffer].storage == storage)
            add_to_hull(hull, extent_of(kernel, &nest->reached.at[i]));
    return hull->begin < hull->end;
}

/* What stands under a condition may, by its looks, be read before the first element or behind the last. */
static Extent cut_to(const Storage *storage, Extent extent)
{
    int64_t elements = storage->bytes / dtype_bytes(storage->dtype);
    return (Extent){extent.begin > 0 ? extent.begin : 0, extent.end < elements ? extent.end : elements};
}

bool windows_own(const Memory *memory, const Kernel *kernel, const DealNest *nest, StorageId storage)
{
    Extent stored = {0, 0};
    for (uint32_t i = 0; i < nest->reached.count; i++) {
        const Reach *reach = &nest->reached.at[i];
        if (kernel->buffer[reach->buffer].storage != storage)
            continue;
        Extent here = cut_to(&memory->storage.at[storage], nearest_extent_of(kernel, reach));
        if (reach->store)
            add_to_hull(&stored, here);
        else if (here.begin < stored.begin || here.end > stored.end)
            return false;
    }
    return true;
}

static bool same_rounds(const DealNest *a, const DealNest *b)
{
    return a->chosen && b->chosen && stmt_rounds(a->chosen) == stmt_rounds(b->chosen);
}

bool windows_apart(const Memory *memory, const Kernel *kernel, const DealNest *a, const DealNest *b)
{
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        StorageId storage = kernel->buffer[i].storage;
        Extent x, y;
        if ((!a->stores[i] && !b->stores[i]) || !is_of_all(memory, kernel, i) || !find_hull(kernel, a, storage, &x) ||
            !find_hull(kernel, b, storage, &y) || x.end <= y.begin || y.end <= x.begin)
            continue;
        bool together = (stores_to(kernel, a, storage) || stores_to(kernel, b, storage)) && same_rounds(a, b) &&
                        keeps_apart(kernel, (const DealNest *const[]){a, b}, 2, storage);
        if (!together && !residues_apart(kernel, a, b, storage))
            return false;
    }
    return true;
}
