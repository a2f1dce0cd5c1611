/* The pipeline: graphs -> passes -> fuse -> order, parts, recipes, in-place, plan -> kernels -> what entries share ->
 * steps.  What is printed from a Program is in c/ and cuda/. */
#include <assert.h>
#include <inttypes.h>

#include "base/number.h"
#include "program/entry.h"
#include "program/fit.h"
#include "program/layouts.h"
#include "program/share.h"
#include "program/stage.h"
#include "program/tune.h"

/* `@cpu` for C and `@gpu(0)` for CUDA ask for what is done anyway; nothing else is done yet. */
static void check_placement(const Graph *graph, const Target *target, Str placement, Place place)
{
    bool cuda = target->dialect == DIALECT_CUDA;
    if (!placement.len || str_is(placement, cuda ? "@gpu(0)" : "@cpu") || str_is(placement, cuda ? "@gpu" : "@cpu"))
        return;
    diag_error(graph->module->diag, place, STR_FMT " cannot be honoured for %s", STR_ARG(placement), target->name);
}

/* Marks that nobody would heed.  Recurses over the nesting of calls. */
static void check_marks(const Graph *graph, const Target *target)
{
    check_placement(graph, target, graph->placement, graph->place);
    for (ValueId v = 0; v < graph->value_count; v++)
        check_placement(graph, target, graph->value[v].placement, graph->value[v].place);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->stream)
            diag_error(graph->module->diag, node->place, "@stream(%u) cannot be honoured: there is one stream",
                       node->stream);
        for (uint32_t i = 0; i < node->sub_count; i++)
            check_marks(node->sub[i], target);
    }
}

bool program_check_supported(Graph *const *graph, uint32_t count, const Target *target)
{
    for (uint32_t i = 0; i < count; i++) {
        check_marks(graph[i], target);
        layouts_check(graph[i]);
    }
    return graph[0]->module->diag->error_count == 0;
}

/* Params stand in the bodies of calls: what entries share is known when those are expanded. */
static bool expand_all(const Program *program)
{
    bool good = true;
    for (uint32_t e = 0; e < program->entry_count && good; e++) {
        Arena scratch = {0};
        Graph *graph = program->entry[e].graph;
        PassContext context = entry_context(&program->options, program->options.without, &scratch, graph->module->diag);
        good = pass_run(pass_find(STR("expand")), graph, &context);
        arena_free(&scratch);
    }
    return good;
}

/* The plan keeps to the limit. */
static bool check_limit(const Entry *entry)
{
    const Graph *graph = entry->graph;
    int64_t limit = entry->program->options.memory_limit, peak = entry->memory.plan.peak;
    bool recomputes = fit_recomputes(&entry->fit);
    return !limit || peak <= limit ||
           diag_error(graph->module->diag, graph->place,
                      STR_FMT " takes an arena of %" PRId64 " bytes at least, %" PRId64 " more than the limit%s",
                      STR_ARG(graph->name), peak, peak - limit, recomputes ? ": no recomputation saves more" : "");
}

/* `*over`: all that is wrong is that it exceeds the limit, which may be so of others, too. */
static bool compile_entry(Entry *entry, WeightTable *weights, bool *over)
{
    const CompileOptions *options = &entry->program->options;
    Arena scratch = {0};
    PassContext context = entry_context(options, options->without, &scratch, entry->graph->module->diag);
    if (options->memory_limit) {
        entry_progress(options, "fitting");
        fit_find(entry->graph, options, &entry->fit);
        context.remat = entry->fit.remat;
        context.integers_as_floats &= !entry->fit.integers;
    }
    bool good = entry_run_passes(entry->graph, options, &context);
    if (good) {
        entry_progress(options, "plan");
        good = entry_plan(entry, &context);
        *over = good && !check_limit(entry);
        good = good && !*over;
    }
    if (good) {
        entry_progress(options, "kernels");
        good = entry_lower(entry, weights);
    }
    arena_free(&scratch);
    return good;
}

/* Params are packed for some entry, if that was asked for. */
static bool check_packed(const Program *program)
{
    const Graph *graph = program->entry[0].graph;
    if (program->options.pack && program->options.target->dialect == DIALECT_CUDA)
        return diag_error(graph->module->diag, graph->place, "no kernel of %s reads packed weights",
                          program->options.target->name);
    return !program->options.pack || program->packed_count ||
           diag_error(graph->module->diag, graph->place,
                      "nothing to pack: no graph reads params that another one updates, and updates none itself");
}

/* Graphs without calls, which agree on what they share. */
static bool open_program(Graph *const *graph, uint32_t count, const CompileOptions *options, Program *program)
{
    Arena *arena = graph[0]->module->arena;
    *program = (Program){.options = *options, .checksum = ARENA_NEW(arena, Checksum), .entry_count = count};
    program->entry = ARENA_ARRAY(arena, Entry, count);
    for (uint32_t e = 0; e < count; e++)
        program->entry[e] = (Entry){.program = program, .graph = graph[e]};
    share_names(program);
    if (!program_check_supported(graph, count, options->target) || !expand_all(program) || !share_agree(graph, count))
        return false;
    share_kept(graph, count, options->pack);
    return true;
}

/* Up to the loops of all kernels, whose arrays of weights go to `weights`, a table for each entry. */
static bool lower_program(Graph *const *graph, uint32_t count, const CompileOptions *options, Program *program,
                          WeightTable **weights)
{
    *weights = ARENA_ARRAY(graph[0]->module->arena, WeightTable, count);
    bool good = open_program(graph, count, options, program), wrong = !good;
    for (uint32_t e = 0; e < count && !wrong; e++) {
        bool over = false, done = compile_entry(&program->entry[e], &(*weights)[e], &over);
        wrong = !done && !over;
        good &= done;
    }
    return good;
}

/* From what entries share on. */
static bool finish_program(Program *program)
{
    bool good = check_packed(program);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        int64_t peak = program->entry[e].memory.plan.peak;
        good &= entry_finish(&program->entry[e]);
        program->arena_bytes = peak > program->arena_bytes ? peak : program->arena_bytes;
    }
    good &= program->entry[0].graph->module->diag->error_count == 0;
    if (good)
        tune_warn(program->options.tune, program->entry[0].graph->module);
    return good;
}

bool program_compile(Graph *const *graph, uint32_t count, const CompileOptions *options, Program *program)
{
    WeightTable *weights;
    if (!lower_program(graph, count, options, program, &weights))
        return false;
    share_weights(program, 1, &weights);
    share_blocks(program, 1);
    return finish_program(program);
}

/* Versions */

/* `digits` for x86-64-v3: `digits_x86_64_v3`. */
static CompileOptions version_options(const CompileOptions *options, Arena *arena)
{
    CompileOptions own = *options;
    own.name = share_identifier(arena, str_format(arena, STR_FMT "_%s", STR_ARG(options->name), options->target->name));
    return own;
}

static bool lower_version(Graph *const *graph, uint32_t count, const CompileOptions *options, Program *version,
                          WeightTable **weights)
{
    Arena *arena = graph[0]->module->arena;
    Graph **copy = ARENA_ARRAY(arena, Graph *, count);
    CompileOptions own = version_options(options, arena);
    for (uint32_t g = 0; g < count; g++)
        copy[g] = graph_clone(graph[g]);
    return lower_program(copy, count, &own, version, weights);
}

/* What they have in common, with entries of its own. */
static void join_versions(Program *version, uint32_t versions, Str name, Program *program)
{
    Arena *arena = version->entry[0].graph->module->arena;
    const Program *largest = version;
    int64_t packed = 0;
    for (uint32_t v = 0; v < versions; v++) {
        version[v].whole = program;
        largest = version[v].arena_bytes > largest->arena_bytes ? &version[v] : largest;
        packed = most(packed, version[v].kept.bytes[BLOCK_PACKED]);
    }
    *program = *largest;
    program->whole = NULL;
    program->version = version;
    program->version_count = versions;
    program->options.name = name;
    program->kept.bytes[BLOCK_PACKED] = packed;
    program->entry = ARENA_ARRAY(arena, Entry, largest->entry_count);
    for (uint32_t e = 0; e < largest->entry_count; e++) {
        program->entry[e] = largest->entry[e];
        program->entry[e].program = program;
    }
}

bool program_compile_versions(Graph *const *graph, uint32_t count, const CompileOptions *options, uint32_t versions,
                              Program *program)
{
    assert(versions && versions <= MOST_VERSIONS);
    if (versions == 1)
        return program_compile(graph, count, options, program);
    Arena *arena = graph[0]->module->arena;
    Program *version = ARENA_ARRAY(arena, Program, versions);
    WeightTable **weights = ARENA_ARRAY(arena, WeightTable *, versions);
    bool good = true;
    for (uint32_t v = 0; v < versions && good; v++)
        good = lower_version(graph, count, &options[v], &version[v], &weights[v]);
    if (!good)
        return false;
    share_weights(version, versions, weights);
    share_blocks(version, versions);
    for (uint32_t v = 0; v < versions && good; v++)
        good = finish_program(&version[v]);
    if (good)
        join_versions(version, versions, options->name, program);
    return good;
}

Str program_common_name(const Program *program)
{
    return program->whole ? program->whole->options.name : program->options.name;
}

Str program_target_names(const Program *program, Arena *arena)
{
    Str names =
        str_from(program->version_count ? program->version[0].options.target->name : program->options.target->name);
    for (uint32_t v = 1; v < program->version_count; v++)
        names = str_format(arena, STR_FMT ", %s", STR_ARG(names), program->version[v].options.target->name);
    return names;
}

bool program_fit(Graph *const *graph, uint32_t count, const CompileOptions *options, Fit *fit)
{
    Program program;
    Arena *arena = graph[0]->module->arena;
    Graph **copy = ARENA_ARRAY(arena, Graph *, count);
    for (uint32_t e = 0; e < count; e++)
        copy[e] = graph_clone(graph[e]);
    bool good = open_program(copy, count, options, &program);
    for (uint32_t e = 0; e < count && good; e++)
        fit_find(copy[e], options, &fit[e]);
    return good;
}

const Entry *program_largest_entry(const Program *program)
{
    const Entry *largest = program->entry;
    for (uint32_t e = 1; e < program->entry_count; e++)
        if (program->entry[e].memory.plan.peak > largest->memory.plan.peak)
            largest = &program->entry[e];
    return largest;
}
