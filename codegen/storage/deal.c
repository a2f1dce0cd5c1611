/* Dealing (deal.h): which loop of each nest, which nests together, and the bounds of a part. */
#include "storage/deal.h"

#include "base/number.h"
#include "kernel/lower/lower.h"
#include "ops/meaning.h"
#include "storage/windows.h"

#define LEAST_CYCLES 64000 /* of a kernel that is dealt: 20 microseconds, beside meeting and moving values */
#define PART_CYCLES  4000  /* of a part, at least ... */
#define MOST_PARTS   8     /* ... and per thread, at most: who is done early takes more of them */

/* How much there is to do */

/* Bytes of what the kernel reads and stores, each value once. */
static double bytes_of(const Lower *lower, const Kernel *kernel)
{
    const Graph *graph = lower->graph;
    double bytes = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        for (uint32_t i = 0; i < node->in_count; i++)
            if (!kernel_makes(lower, kernel_view_owner(graph, node->in[i])))
                bytes += (double)type_bytes(value_type(graph, node->in[i]));
        for (uint32_t i = 0; i < node->out_count; i++)
            if (kernel_stores(lower, node->out[i]))
                bytes += (double)type_bytes(value_type(graph, node->out[i]));
    }
    return bytes;
}

/* Of one core, about: by its recipe for a contraction, else an operation on a vector; or as memory brings the bytes. */
static double cycles_of(const Lower *lower, const Kernel *kernel)
{
    double cycles = 0, bytes = bytes_of(lower, kernel) / 8;
    if (kernel->form == FORM_CONTRACTION || kernel->form == FORM_STRIPS)
        cycles = kernel->recipe.provider->cost(lower, kernel, &kernel->recipe);
    else
        for (uint32_t n = 0; n < kernel->node_count; n++)
            cycles += (double)node_flops(lower->graph, &lower->graph->node[kernel->node[n]]) / lower->target->lanes;
    return cycles > bytes ? cycles : bytes;
}

uint32_t deal_parts(const Lower *lower, const Kernel *kernel, const MemoryOptions *options)
{
    uint32_t most = options->threads * MOST_PARTS;
    if (options->threads <= 1 || lower->target->dialect == DIALECT_CUDA)
        return 1;
    if (options->share_all)
        return most;
    double cycles = cycles_of(lower, kernel);
    return cycles < LEAST_CYCLES ? 1 : cycles / PART_CYCLES < most ? (uint32_t)(cycles / PART_CYCLES) : most;
}

/* How many statements are carried out, about: on vectors a few cycles each.  Recurses over the nesting of loops. */
static double statements_of(const Stmt *stmt)
{
    double inner = 0;
    for (const Stmt *s = stmt->body.first; s; s = s->next)
        inner += statements_of(s);
    for (const Stmt *s = stmt->other.first; s; s = s->next)
        inner += statements_of(s);
    bool loop = stmt->kind == STMT_FOR;
    return 1 + inner * (loop ? (double)(stmt->var->high - stmt->var->low + 1) / (double)stmt->step : 1);
}

/* Choosing */

typedef struct Dealer {
    const Memory *memory;
    Kernel *kernel;
    Arena *arena;
    DealNest *nest;
    uint32_t count;
    bool all; /* however little a nest does */
} Dealer;

static bool fits(const Dealer *d, uint32_t first, uint32_t at)
{
    const DealNest *nest = &d->nest[at];
    if (nest->chosen && !windows_deals(d->memory, d->kernel, nest))
        return false;
    for (uint32_t i = first; i < at; i++)
        if (!windows_apart(d->memory, d->kernel, &d->nest[i], nest))
            return false;
    return true;
}

/* How much of the time threads are busy when each has the same number of rounds, or one more; with few rounds who is
 * done early cannot help. */
static double share_busy(const Dealer *d, const Stmt *loop)
{
    int64_t rounds = stmt_rounds(loop), threads = d->kernel->threads, turns = (rounds + threads - 1) / threads;
    double busy = (double)rounds / (double)(turns * threads);
    return rounds < 2 * threads ? 0.9 * busy : busy;
}

/* The nest's loop to be dealt beside those of [first, at): where all threads are busy, the outermost. */
static bool choose_loop(Dealer *d, uint32_t first, uint32_t at)
{
    DealNest *nest = &d->nest[at];
    const Stmt *best = NULL;
    double busy = 0;
    for (uint32_t i = 0; i < nest->loop_count; i++) {
        nest->chosen = nest->loop[i];
        double now = share_busy(d, nest->chosen);
        if (now <= busy + 0.05 || !fits(d, first, at))
            continue;
        best = nest->chosen;
        busy = now;
    }
    nest->chosen = best;
    return best || fits(d, first, at);
}

/* How many nests from `first` on can be dealt together when it is dealt by that loop; their loops are chosen then. */
static uint32_t extend(Dealer *d, uint32_t first, const Stmt *loop, double *busy)
{
    uint32_t end = first + 1;
    d->nest[first].chosen = loop;
    *busy = share_busy(d, loop);
    for (; end < d->count && choose_loop(d, first, end); end++)
        if (d->nest[end].chosen && share_busy(d, d->nest[end].chosen) < *busy)
            *busy = share_busy(d, d->nest[end].chosen);
    return end;
}

/* Nests [first, end) that are dealt together: most of them, then with all threads busy; the first alone, and one
 * thread's, where it cannot be dealt. */
static uint32_t choose_together(Dealer *d, uint32_t first)
{
    const Stmt *best = NULL;
    uint32_t most = first;
    double busy = 0, now;
    for (uint32_t i = 0; i < d->nest[first].loop_count; i++) {
        d->nest[first].chosen = d->nest[first].loop[i];
        if (!fits(d, first, first))
            continue;
        uint32_t end = extend(d, first, d->nest[first].loop[i], &now);
        if (end < most || (end == most && now <= busy + 0.05))
            continue;
        best = d->nest[first].loop[i];
        most = end;
        busy = now;
    }
    d->nest[first].chosen = NULL;
    return best ? extend(d, first, best, &now) : first + 1;
}

/* Rewriting */

static Stmt *append_copy(Arena *arena, Block *block, const Stmt *stmt)
{
    Stmt *copy = arena_copy(arena, stmt, sizeof *stmt);
    copy->next = NULL;
    block_append(block, (Block){copy, copy});
    return copy;
}

/* The rounds of the loop that are the part's. */
static void set_bounds(Arena *arena, Stmt *loop, const Var *part, int64_t each)
{
    int64_t rounds = stmt_rounds(loop);
    Index high = loop->high;
    loop->low = index_add(arena, loop->low, index_scale(arena, index_var(arena, part), each * loop->step));
    loop->high = index_add(arena, loop->low, index_constant(each * loop->step));
    loop->clamp_high = rounds % each || part->high + 1 > rounds / each;
    loop->high_most = high;
}

static bool holds(const Stmt *stmt, const Stmt *loop)
{
    bool inside = stmt == loop;
    for (const Stmt *inner = stmt->body.first; inner && !inside; inner = inner->next)
        inside = holds(inner, loop);
    return inside;
}

/* The statement with the loop inside it, and all around that: other statements prepare registers. */
static void append_part(Arena *arena, Block *block, const Stmt *stmt, const Stmt *loop, const Var *part, int64_t each)
{
    Stmt *copy = append_copy(arena, block, stmt);
    if (stmt == loop) {
        set_bounds(arena, copy, part, each);
        return;
    }
    copy->body = (Block){0};
    for (const Stmt *inner = stmt->body.first; inner; inner = inner->next)
        if (holds(inner, loop))
            append_part(arena, &copy->body, inner, loop, part, each);
        else
            append_copy(arena, &copy->body, inner);
}

static int64_t rounds_each(const Stmt *loop, int64_t parts)
{
    return ceil_div(stmt_rounds(loop), parts);
}

/* As many parts as the nests with most rounds can have. */
static int64_t count_parts(const Dealer *d, uint32_t first, uint32_t end)
{
    int64_t most = 1;
    for (uint32_t i = first; i < end; i++) {
        const Stmt *loop = d->nest[i].chosen;
        int64_t each = loop ? rounds_each(loop, d->kernel->parts) : 1;
        int64_t parts = loop ? (stmt_rounds(loop) + each - 1) / each : 1;
        most = parts > most ? parts : most;
    }
    return most;
}

static bool is_worth_it(const Dealer *d, uint32_t first, uint32_t end)
{
    double statements = 0;
    for (uint32_t i = first; i < end; i++)
        statements += statements_of(d->nest[i].stmt);
    return d->all || statements >= LEAST_CYCLES / 4;
}

static Deal deal_nests(const Dealer *d, Arena *arena, uint32_t first, uint32_t end)
{
    int64_t parts = is_worth_it(d, first, end) ? count_parts(d, first, end) : 1;
    Deal deal = {.part = parts > 1 ? index_var_new(arena, "part", 0, parts - 1) : NULL};
    for (uint32_t i = first; i < end; i++) {
        const DealNest *nest = &d->nest[i];
        if (deal.part && nest->chosen)
            append_part(arena, &deal.body, nest->stmt, nest->chosen, deal.part,
                        rounds_each(nest->chosen, d->kernel->parts));
        else if (deal.part && nest->stmt->kind != STMT_NOTE) /* of the first part: others are there to even it out */
            append_copy(arena, &stmt_if(arena, &deal.body, index_var(arena, deal.part), 0, 1)->body, nest->stmt);
        else
            append_copy(arena, &deal.body, nest->stmt);
    }
    return deal;
}

/* What one thread does, behind what one thread has done. */
static bool goes_on(const Kernel *kernel, const Deal *deal)
{
    return kernel->deal_count && !deal->part && !kernel->deal[kernel->deal_count - 1].part;
}

/* Scratch that one nest fills for another is of all threads. */
static void find_shared(Memory *memory, const Dealer *d)
{
    for (uint32_t b = 0; b < d->kernel->buffer_count; b++) {
        StorageId id = d->kernel->buffer[b].storage;
        Storage *storage = &memory->storage.at[id];
        for (uint32_t i = 0; d->nest && i < d->count && storage->per_thread && !storage->carries; i++)
            storage->per_thread = windows_own(memory, d->kernel, &d->nest[i], id);
    }
}

void deal_kernel(Memory *memory, Kernel *kernel, bool all)
{
    Arena *arena = memory->graph->module->arena, scratch = {0};
    Dealer d = {.memory = memory, .kernel = kernel, .arena = &scratch, .all = all};
    uint32_t capacity = 0;
    bool some = false;
    d.nest = kernel->parts > 1 ? windows_nests(kernel, &scratch, &d.count) : NULL;
    find_shared(memory, &d);
    for (uint32_t first = 0, end; d.nest && first < d.count; first = end) {
        end = choose_together(&d, first);
        Deal deal = deal_nests(&d, arena, first, end);
        some |= deal.part != NULL;
        if (goes_on(kernel, &deal))
            block_append(&kernel->deal[kernel->deal_count - 1].body, deal.body);
        else
            ARENA_PUSH(arena, kernel->deal, kernel->deal_count, capacity, deal);
    }
    if (!some)
        kernel->deal_count = 0;
    arena_free(&scratch);
}
