/* Recomputation, with the plan in the loop.
 *
 * Ladders of settings for the pass remat, each with rungs that save more and cost more: fine segments alone, which
 * compute no contraction again; coarse ones; both; chains of coarse ones with fewer and fewer snapshots; and shorter
 * tapes of loops.  On each ladder the lowest rung that fits is found by bisection, and the best of all ladders is
 * taken.  What is compared are whole plans and the operations that are left after all passes, not estimates.
 *
 * Where none fits, contractions of integers stay such (promote): slow, but what lies between them is as narrow as the
 * text says. */
#include "program/fit.h"

#include "ops/meaning.h"
#include "passes/remat.h"
#include "program/entry.h"

#define MOST_TIMES 16 /* that a step is computed again */

typedef struct Search {
    const Graph *graph;
    const CompileOptions *options;
    Arena *scratch;
    RematSupply supply;
    Fit best; /* that fits; else the smallest */
    bool found, fits;
} Search;

/* What passes have to say of the graph is said when it is compiled. */
static bool run_passes(Graph *graph, const CompileOptions *options, Remat remat, bool integers)
{
    Arena scratch = {0};
    PassContext context = entry_context(options, options->without, &scratch, graph->module->diag);
    context.remat = remat;
    context.integers_as_floats &= !integers;
    bool good = entry_run_passes(graph, options, &context);
    arena_free(&scratch);
    return good;
}

static bool is_better(const Search *s, int64_t peak, int64_t operations)
{
    bool fits = peak <= s->options->memory_limit;
    if (!s->found || fits != s->fits)
        return !s->found || fits;
    if (!fits)
        return peak < s->best.peak || (peak == s->best.peak && operations < s->best.operations);
    return operations < s->best.operations || (operations == s->best.operations && peak < s->best.peak);
}

/* From how many bytes on no plan of so many operations would be better. */
static int64_t hopeless(const Search *s, int64_t operations)
{
    if (!s->found)
        return 0;
    return s->fits ? s->options->memory_limit + 1 : s->best.peak + (operations < s->best.operations);
}

/* Does this much recomputation fit, or that integers stay such?  What would not be better than what has been found is
 * not planned. */
static bool fits(Search *s, Remat remat, bool integers)
{
    Graph *graph = graph_clone(s->graph);
    if (!run_passes(graph, s->options, remat, integers))
        return false;
    int64_t operations = ops_flops(graph);
    if (s->fits && operations >= s->best.operations)
        return true;
    kernel_flatten(graph, s->scratch, NULL);
    CompileOptions options = *s->options;
    options.hopeless = hopeless(s, operations);
    int64_t peak = entry_peak_of(graph, &options, options.without);
    if (peak < 0)
        return false;
    if (is_better(s, peak, operations)) {
        s->best.remat = remat;
        s->best.integers = integers;
        s->best.peak = peak;
        s->best.operations = operations;
        s->fits = peak <= s->options->memory_limit;
    }
    s->found = true;
    return peak <= s->options->memory_limit;
}

/* Where no limit lets kernels do with less scratch; -1. */
static int64_t unlimited_peak(const Search *s)
{
    Graph *graph = graph_clone(s->graph);
    CompileOptions free = *s->options;
    free.memory_limit = 0;
    if (!run_passes(graph, &free, (Remat){0}, false))
        return -1;
    kernel_flatten(graph, s->scratch, NULL);
    return entry_peak_of(graph, &free, free.without);
}

/* Ladders: rung 1 is the lowest. */

typedef Remat Ladder(const RematSupply *supply, uint32_t rung);

static Remat fine(const RematSupply *supply, uint32_t rung)
{
    (void)supply;
    return (Remat){.fine = rung};
}

static Remat coarse(const RematSupply *supply, uint32_t rung)
{
    (void)supply;
    return (Remat){.coarse = rung};
}

static Remat both(const RematSupply *supply, uint32_t rung)
{
    return (Remat){.fine = supply->fine, .coarse = rung};
}

static Remat chain(const RematSupply *supply, uint32_t rung)
{
    return (Remat){.snapshots = supply->chain - rung + 1};
}

static Remat fine_chain(const RematSupply *supply, uint32_t rung)
{
    return (Remat){.fine = supply->fine, .snapshots = supply->chain - rung + 1};
}

static Remat rounds(const RematSupply *supply, uint32_t rung)
{
    (void)supply;
    return (Remat){.rounds = rung};
}

static Remat fine_rounds(const RematSupply *supply, uint32_t rung)
{
    return (Remat){.fine = supply->fine, .rounds = rung};
}

static Remat both_rounds(const RematSupply *supply, uint32_t rung)
{
    return (Remat){.fine = supply->fine, .coarse = rung, .rounds = supply->rounds};
}

/* Of chains: regions nest as deep as steps are computed again. */
static uint32_t chain_rungs(const RematSupply *supply)
{
    uint32_t fewest = remat_snapshots(supply->chain + 1, MOST_TIMES);
    return supply->chain < fewest ? 0 : supply->chain - fewest + 1;
}

/* Rungs mostly save the more the higher they are, but not always: where the highest does not fit, one below may.  Of
 * many, about one in 32 is looked at. */
static void climb(Search *s, Ladder *ladder, uint32_t rungs)
{
    uint32_t high = rungs, low = 0;
    while (high && !fits(s, ladder(&s->supply, high), false))
        high /= 2;
    while (high && high - low > 1 + high / 32) {
        uint32_t middle = low + (high - low) / 2;
        if (fits(s, ladder(&s->supply, middle), false))
            high = middle;
        else
            low = middle;
    }
}

static void climb_all(Search *s)
{
    climb(s, fine, s->supply.fine);
    climb(s, coarse, s->supply.coarse);
    climb(s, both, s->supply.coarse);
    climb(s, chain, chain_rungs(&s->supply));
    climb(s, fine_chain, chain_rungs(&s->supply));
    climb(s, rounds, s->supply.rounds);
    climb(s, fine_rounds, s->supply.rounds);
    if (s->supply.rounds)
        climb(s, both_rounds, s->supply.coarse);
}

bool fit_find(const Graph *graph, const CompileOptions *options, Fit *fit)
{
    Arena scratch = {0};
    Diag *diag = graph->module->diag, quiet = {.arena = &scratch};
    Search s = {.graph = graph, .options = options, .scratch = &scratch};
    graph->module->diag = &quiet;
    PassContext context = entry_context(options, options->without, &scratch, &quiet);
    s.supply = remat_supply(graph_clone(graph), &context);
    bool kept = fits(&s, (Remat){0}, false);
    int64_t before = s.found && !kept ? unlimited_peak(&s) : -1;
    s.best.peak_before = before < 0 ? s.best.peak : before;
    s.best.operations_before = s.best.operations;
    if (s.found && !kept)
        climb_all(&s);
    if (s.found && !s.fits && target_takes_floats(options->target))
        fits(&s, (Remat){0}, true);
    graph->module->diag = diag;
    diag_free(&quiet);
    arena_free(&scratch);
    *fit = s.best;
    return s.found;
}
