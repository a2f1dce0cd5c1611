/* Collecting what a kernel reaches (reach.h): a walk over its statements, with the loops around in hand. */
#include "storage/reach.h"

#include "base/number.h"

typedef struct Collector {
    Arena *arena;
    Reached reached;
    ReachRound *round;
    uint32_t round_count, round_capacity;
    const Stmt **around; /* all loops around */
    uint32_t around_count, around_capacity;
    const Index **local; /* per local id: the position that it names, or NULL */
} Collector;

/* Ranges of addresses */

static int64_t index_end(const Collector *c, Index index, bool high);

static int64_t atom_end(const Collector *c, const Atom *atom, bool high)
{
    const Expr *data = atom->kind == ATOM_DATA ? atom->data : NULL;
    if (data && data->kind == EXPR_LOCAL && c->local[data->local->id])
        return index_end(c, *c->local[data->local->id], high);
    for (uint32_t i = c->round_count; atom->kind == ATOM_VAR && i-- > 0;)
        if (c->round[i].var == atom->var)
            return high ? c->round[i].high : c->round[i].low;
    return high ? atom->high : atom->low;
}

static int64_t index_end(const Collector *c, Index index, bool high)
{
    int64_t end = index.constant;
    for (uint32_t i = 0; i < index.count; i++) {
        const Term *term = &index.term[i];
        end += term->factor * atom_end(c, term->atom, high == (term->factor > 0));
    }
    return end;
}

/* Then the ranges of its variable, and of those in its bounds, are not independent. */
static bool bounds_vary(const Stmt *stmt)
{
    return stmt->clamp_low || stmt->clamp_high || stmt->low.count || stmt->high.count;
}

/* Does the address change with the variable: directly, or through locals that name positions? */
static bool changes(const Collector *c, Index index, const Var *var)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        const Expr *data = atom->kind == ATOM_DATA ? atom->data : NULL;
        bool named = data && data->kind == EXPR_LOCAL && c->local[data->local->id];
        if (named ? changes(c, *c->local[data->local->id], var) : index_uses((Index){0, 1, &index.term[i]}, var))
            return true;
    }
    return false;
}

/* The same also through inner loops that start where the variable says, such as the tiles of a chunk. */
static bool goes_with(const Collector *c, Index index, uint32_t loop)
{
    const Var *var = c->around[loop]->var;
    bool found = changes(c, index, var);
    for (uint32_t i = loop + 1; i < c->around_count && !found; i++)
        found = changes(c, index, c->around[i]->var) && changes(c, c->around[i]->low, var);
    return found;
}

/* Do several of its rounds come here?  A condition around may leave it one value. */
static bool is_shared_out(const Collector *c, const Stmt *loop)
{
    for (uint32_t i = 0; i < c->round_count; i++)
        if (c->round[i].var == loop->var && c->round[i].low == c->round[i].high)
            return false;
    return loop->loop == LOOP_PARALLEL;
}

static const Var *stored_again(const Collector *c, Index index)
{
    for (uint32_t i = 0; i < c->around_count; i++)
        if (is_shared_out(c, c->around[i]) && !goes_with(c, index, i))
            return c->around[i]->var;
    return NULL;
}

/* The walk */

typedef struct Walk {
    Collector *collector;
    Spot spot;
    bool guarded;
    const ReachRound *round; /* of the block: those of the collector, to keep */
} Walk;

static int64_t *rounds_of(const Collector *c, Index index)
{
    int64_t *rounds = ARENA_ARRAY(c->arena, int64_t, index.count);
    for (uint32_t i = 0; i < index.count; i++)
        rounds[i] = atom_end(c, index.term[i].atom, true) - atom_end(c, index.term[i].atom, false) + 1;
    return rounds;
}

static void add_reach(Walk *walk, uint32_t buffer, Index index, int64_t more, bool store)
{
    Collector *c = walk->collector;
    for (uint32_t i = 0; i < c->round_count; i++) /* loops of one round, in all that is compared */
        if (c->round[i].low == c->round[i].high)
            index = index_substitute(c->arena, index, c->round[i].var, index_constant(c->round[i].low));
    Reach reach = {.buffer = buffer,
                   .index = index,
                   .low = index_end(c, index, false),
                   .high = index_end(c, index, true) + more,
                   .guarded = walk->guarded,
                   .square = more,
                   .round = walk->round,
                   .round_count = c->round_count,
                   .rounds = rounds_of(c, index),
                   .store = store,
                   .again = store ? stored_again(c, index) : NULL,
                   .spot = walk->spot};
    ARENA_PUSH(c->arena, c->reached.at, c->reached.count, c->reached.capacity, reach);
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

/* Of a matrix of so many rows, `stride` apart: as if two loops went over it. */
static void add_matrix(Walk *walk, uint32_t buffer, Index index, int64_t rows, int64_t columns, int64_t stride,
                       bool store)
{
    Arena *arena = walk->collector->arena;
    Index row = index_var(arena, index_var_new(arena, "row", 0, rows - 1));
    Index column = index_var(arena, index_var_new(arena, "column", 0, columns - 1));
    index = index_add(arena, index, index_scale(arena, row, stride));
    add_reach(walk, buffer, index_add(arena, index, column), 0, store);
}

static void add_product(Walk *walk, const Stmt *stmt)
{
    const MatrixProduct *p = stmt->product;
    const Expr *left = stmt->value->arg[0], *right = stmt->value->arg[1];
    add_matrix(walk, left->buffer, left->index, p->left_transposed ? p->depth : p->rows,
               p->left_transposed ? p->rows : p->depth, p->left_stride, false);
    add_matrix(walk, right->buffer, right->index, p->right_transposed ? p->columns : p->depth,
               p->right_transposed ? p->depth : p->columns, p->right_stride, false);
    add_matrix(walk, stmt->buffer, stmt->index, p->rows, p->columns, p->stride, true);
}

/* Sums that begin, are added to, or end. */
static void add_tiles(Walk *walk, const Stmt *stmt)
{
    const MatrixProduct *p = stmt->product;
    int64_t count = bundle_count(p->bundle);
    if (p->maker == PRODUCT_TILES_BEGIN && stmt->value)
        add_matrix(walk, stmt->value->buffer, stmt->value->index, 1, p->columns, 0, false);
    if (p->maker == PRODUCT_TILES_ADD) {
        const Expr *left = stmt->value->arg[0], *right = stmt->value->arg[1];
        add_matrix(walk, left->buffer, left->index, p->rows, p->depth, p->left_stride, false);
        add_matrix(walk, right->buffer, right->index, p->depth / count, p->columns * count, p->right_stride, false);
    }
    if (p->maker != PRODUCT_TILES_BEGIN)
        add_matrix(walk, stmt->buffer, stmt->index, p->rows, p->columns, p->stride, false);
    add_matrix(walk, stmt->buffer, stmt->index, p->rows, p->columns, p->stride, true);
}

static uint32_t open_block(Collector *c, Spot outer)
{
    Reached *reached = &c->reached;
    ARENA_PUSH(c->arena, reached->outer, reached->block_count, reached->block_capacity, outer);
    return reached->block_count - 1;
}

static void walk_stmt(Walk *walk, const Stmt *stmt)
{
    int64_t last = (int64_t)stmt->lanes - 1;
    if (stmt->kind == STMT_LOCAL && stmt->value && stmt->value->kind == EXPR_INDEX && !stmt->local->lanes)
        walk->collector->local[stmt->local->id] = &stmt->value->index;
    if (stmt->kind == STMT_PREFETCH)
        return;
    if (stmt->kind == STMT_TRANSPOSE) {
        add_reach(walk, stmt->value->buffer, stmt->value->index, last * stmt->from_stride + last, false);
        add_reach(walk, stmt->buffer, stmt->index, last * stmt->stride + last, true);
        return;
    }
    if (stmt->kind == STMT_TILES)
        return;
    if (stmt->kind == STMT_PRODUCT) {
        stmt->product->maker == PRODUCT_LIBRARY ? add_product(walk, stmt) : add_tiles(walk, stmt);
        return;
    }
    if (stmt->value)
        walk_expr(walk, stmt->value);
    walk_index(walk, stmt->index);
    if (stmt->kind == STMT_STORE)
        for (int64_t r = 0; r < (stmt->together ? stmt->together : 1); r++)
            add_reach(walk, stmt->buffer, index_add(walk->collector->arena, stmt->index, index_constant(r)), 0, true);
    for (int64_t part = 1; part < stmt->parts; part++)
        add_reach(walk, stmt->buffer, index_add(walk->collector->arena, stmt->index, index_constant(part * stmt->rest)),
                  0, true);
}

static bool is_plain_loop(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && !bounds_vary(stmt);
}

bool reach_holds_for_one(const Stmt *stmt)
{
    const Index *index = &stmt->index;
    return stmt->kind == STMT_IF && index->count == 1 && index->constant == 0 && index->term[0].factor == 1 &&
           index->term[0].atom->kind == ATOM_VAR && stmt->high.constant - stmt->low.constant == 1;
}

/* A loop whose bounds vary, but not beyond an end that its variable alone does not know: of whole blocks, say, where
 * one that is cut off follows. */
static bool ends_somewhere(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && stmt->clamp_high && stmt->high_most.count == 0;
}

static ReachRound round_of(const Stmt *stmt)
{
    if (stmt->kind == STMT_IF)
        return (ReachRound){stmt->index.term[0].atom->var, stmt->low.constant, stmt->low.constant};
    if (ends_somewhere(stmt))
        return (ReachRound){stmt->var, stmt->var->low, least(stmt->var->high, stmt->high_most.constant - 1)};
    int64_t low = stmt->low.constant;
    return (ReachRound){stmt->var, low, low + (stmt_rounds(stmt) - 1) * stmt->step};
}

/* A loop over taps all of which lie on padding. */
static bool is_empty_loop(const Stmt *stmt)
{
    return is_plain_loop(stmt) && stmt_rounds(stmt) <= 0;
}

static void walk_block(Collector *c, const Block *block, Spot outer, bool guarded)
{
    Walk walk = {.collector = c, .spot = {open_block(c, outer), 0}, .guarded = guarded};
    if (c->round_count)
        walk.round = arena_copy(c->arena, c->round, c->round_count * sizeof *c->round);
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next, walk.spot.at++) {
        bool inner = guarded || stmt->kind == STMT_IF || bounds_vary(stmt),
             known = is_plain_loop(stmt) || ends_somewhere(stmt) || reach_holds_for_one(stmt);
        walk_stmt(&walk, stmt);
        if (is_empty_loop(stmt))
            continue;
        if (known)
            ARENA_PUSH(c->arena, c->round, c->round_count, c->round_capacity, round_of(stmt));
        if (stmt->kind == STMT_FOR)
            ARENA_PUSH(c->arena, c->around, c->around_count, c->around_capacity, stmt);
        walk_block(c, &stmt->body, walk.spot, inner);
        c->around_count -= stmt->kind == STMT_FOR;
        c->round_count -= known;
        walk_block(c, &stmt->other, walk.spot, inner);
    }
}

Reached reach_collect(const Kernel *kernel, Arena *arena)
{
    Collector c = {.arena = arena};
    c.local = ARENA_ARRAY(arena, const Index *, block_locals(&kernel->body));
    walk_block(&c, &kernel->body, (Spot){NONE, 0}, false);
    return c.reached;
}

int64_t reach_end(const Reach *reach, const Atom *atom, bool high)
{
    for (uint32_t i = reach->round_count; atom->kind == ATOM_VAR && i-- > 0;)
        if (reach->round[i].var == atom->var)
            return high ? reach->round[i].high : reach->round[i].low;
    return high ? atom->high : atom->low;
}

bool reach_stands_with(const Reached *reached, const Reach *load, const Reach *store)
{
    Spot spot = load->spot;
    while (spot.block != NONE && spot.block != store->spot.block)
        spot = reached->outer[spot.block];
    return spot.block != NONE && store->spot.at >= spot.at;
}

/* The statements of one block that the two are, or are of.  Blocks are numbered from the outside in. */
static void meet(const Reached *reached, Spot *a, Spot *b)
{
    while (a->block != b->block) {
        Spot *inner = a->block > b->block ? a : b;
        *inner = reached->outer[inner->block];
    }
}

static int64_t factor_of(Index index, const Var *var)
{
    for (uint32_t i = 0; i < index.count; i++)
        if (index.term[i].atom->kind == ATOM_VAR && index.term[i].atom->var == var)
            return index.term[i].factor;
    return 0;
}

/* What loops around both add to the address, by ascending factors. */
typedef struct Shared {
    int64_t factor[REACH_DIMENSIONS], last[REACH_DIMENSIONS]; /* last: of its values, from 0 on */
    uint32_t count;
    int64_t load_low, load_high, store_low, store_high; /* of the rest */
} Shared;

/* False where rounds of the loop reach the same elements, or the two go through it differently. */
static bool share_loop(Shared *shared, const Reach *load, const Reach *store, const ReachRound *round)
{
    int64_t factor = factor_of(load->index, round->var), size = factor < 0 ? -factor : factor;
    int64_t low = factor * (factor < 0 ? round->high : round->low), more = size * (round->high - round->low);
    if (!factor || factor != factor_of(store->index, round->var) || shared->count == REACH_DIMENSIONS)
        return false;
    uint32_t d = shared->count++;
    for (; d > 0 && shared->factor[d - 1] > size; d--) {
        shared->factor[d] = shared->factor[d - 1];
        shared->last[d] = shared->last[d - 1];
    }
    shared->factor[d] = size;
    shared->last[d] = round->high - round->low;
    shared->load_low -= low, shared->store_low -= low;
    shared->load_high -= low + more, shared->store_high -= low + more;
    return true;
}

/* Do two rounds always lie farther apart than all that one of them reaches? */
static bool lie_apart(const Shared *shared)
{
    int64_t low = shared->load_low < shared->store_low ? shared->load_low : shared->store_low;
    int64_t high = shared->load_high > shared->store_high ? shared->load_high : shared->store_high;
    int64_t reached = high - low + 1;
    for (uint32_t d = 0; d < shared->count; d++) {
        if (shared->factor[d] < reached)
            return false;
        reached += shared->factor[d] * shared->last[d];
    }
    return true;
}

bool reach_goes_ahead(const Reached *reached, const Reach *load, const Reach *store)
{
    Spot first = load->spot, then = store->spot;
    Shared shared = {
        .load_low = load->low, .load_high = load->high, .store_low = store->low, .store_high = store->high};
    meet(reached, &first, &then);
    if (first.at >= then.at || load->guarded || store->guarded) /* loops around are not all known */
        return false;
    for (uint32_t i = 0; i < load->round_count && i < store->round_count; i++) {
        const ReachRound *round = &load->round[i];
        if (round->var != store->round[i].var)
            break;
        if (round->low < round->high && !share_loop(&shared, load, store, round))
            return false;
    }
    return lie_apart(&shared);
}

bool reach_find_runs(const Reach *reach, int64_t element, ReachRuns *runs)
{
    *runs = (ReachRuns){.bytes = element, .all = 1};
    if (reach->guarded || reach->square || reach->index.count > REACH_DIMENSIONS)
        return false;
    for (uint32_t i = 0; i < reach->index.count; i++) {
        const Term *term = &reach->index.term[i];
        int64_t stride = (term->factor < 0 ? -term->factor : term->factor) * element;
        uint32_t d = runs->rank++;
        if (term->atom->kind != ATOM_VAR)
            return false;
        for (; d > 0 && runs->stride[d - 1] > stride; d--) {
            runs->stride[d] = runs->stride[d - 1];
            runs->count[d] = runs->count[d - 1];
        }
        runs->stride[d] = stride;
        runs->count[d] = reach->rounds[i];
    }
    uint32_t inner = 0;
    for (; inner < runs->rank && runs->stride[inner] <= runs->bytes; inner++)
        runs->bytes += (runs->count[inner] - 1) * runs->stride[inner];
    for (uint32_t d = inner; d < runs->rank; d++) {
        runs->stride[d - inner] = runs->stride[d];
        runs->count[d - inner] = runs->count[d];
        runs->all = runs->all > REACH_MOST_RUNS ? runs->all : runs->all * runs->count[d];
    }
    runs->rank -= inner;
    return runs->all <= REACH_MOST_RUNS;
}

Extent reach_run(const ReachRuns *runs, const Reach *reach, int64_t number)
{
    int64_t begin = reach->bytes.begin;
    for (uint32_t d = 0; d < runs->rank; d++) {
        begin += number % runs->count[d] * runs->stride[d];
        number /= runs->count[d];
    }
    return (Extent){begin, begin + runs->bytes};
}
