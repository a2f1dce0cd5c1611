/* Programs: compilation, emission, listings. */
#include <inttypes.h>
#include <string.h>

#include "api/files.h"
#include "api/prepare.h"
#include "api/report.h"
#include "api/savings.h"
#include "api/session.h"
#include "base/file.h"
#include "codegen/program/tune.h"
#include "codegen/target.h"
#include "frontends/nnc/text.h"

#define CHART_COLUMNS 100
#define MOST_EFFORT   1000
#define MOST_THREADS  1024

const char *nnc_target_name(uint32_t index)
{
    return index < target_count ? target_table[index].name : NULL;
}

const char *nnc_allocator_name(uint32_t index)
{
    const PlanAllocator *allocator = plan_allocators();
    while (index && allocator->name) {
        allocator++;
        index--;
    }
    return allocator->name;
}

typedef struct Compilation {
    nnc_module *module;
    uint32_t graph;
    const nnc_options *options;
    nnc_program *program; /* the result */
} Compilation;

static bool find_allocator(nnc_session *session, const char *name, const char **found)
{
    *found = NULL;
    for (uint32_t i = 0; name && nnc_allocator_name(i); i++)
        if (strcmp(name, nnc_allocator_name(i)) == 0)
            *found = nnc_allocator_name(i);
    if (name && !*found)
        session_misuse(session, "unknown allocator `%s`", name);
    return !name || *found;
}

/* Which of the names it is; NULL: the first. */
static bool choose(nnc_session *session, const char *what, const char *name, const char *const *names, uint32_t *chosen)
{
    *chosen = 0;
    while (name && names[*chosen] && strcmp(name, names[*chosen]) != 0)
        ++*chosen;
    if (!names[*chosen])
        session_misuse(session, "unknown %s `%s`", what, name);
    return names[*chosen] != NULL;
}

static bool take_backend(nnc_session *session, const char *name, CompileOptions *options)
{
    uint32_t backend;
    if (!choose(session, "backend", name, backend_names, &backend))
        return false;
    if (backend != BACKEND_GENERATED && !target_takes_libraries(options->target))
        return session_misuse(session, "no library computes for %s", options->target->name), false;
    options->target = target_with_backend(&session->arena, options->target, (Backend)backend);
    return true;
}

static bool take_precision(nnc_session *session, const char *name, CompileOptions *options)
{
    uint32_t precision;
    if (!choose(session, "precision", name, target_precision_names, &precision))
        return false;
    if (precision != PRECISION_HIGHEST && options->exact)
        return session_misuse(session, "exact sums keep to the products of the model: no other precision goes with it"),
               false;
    options->target = target_with_precision(&session->arena, options->target, (Precision)precision);
    return true;
}

/* Names separated by commas, the best last.  False after errors. */
static bool find_targets(nnc_session *session, const char *names, const Target *target[MOST_VERSIONS], uint32_t *count)
{
    Str rest = str_from(names ? names : "generic");
    *count = 0;
    for (bool more = true; more;) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        uint32_t length = comma ? (uint32_t)(comma - rest.ptr) : rest.len;
        if (*count == MOST_VERSIONS)
            return session_misuse(session, "more than %d targets", MOST_VERSIONS), false;
        if (!(target[*count] = target_find((Str){rest.ptr, length}, &session->diag)))
            return false;
        *count += 1;
        more = comma != NULL;
        rest = (Str){rest.ptr + length + more, rest.len - length - more};
    }
    Str wrong = target_arrange(&session->arena, target, *count);
    if (wrong.len)
        session_misuse(session, STR_FMT, STR_ARG(wrong));
    return !wrong.len;
}

/* False after a wrong use. */
static bool take_options(nnc_session *session, const Compilation *c, Str graph, const Target *target,
                         CompileOptions *options)
{
    static const WeightsForm form[] = {[NNC_WEIGHTS_AUTO] = WEIGHTS_AUTO,
                                       [NNC_WEIGHTS_C] = WEIGHTS_C,
                                       [NNC_WEIGHTS_BLOB] = WEIGHTS_BLOB,
                                       [NNC_WEIGHTS_FILE] = WEIGHTS_FILE};
    const nnc_options *from = c->options;

    if ((unsigned)from->weights > NNC_WEIGHTS_FILE)
        return session_misuse(session, "unknown form of weights: %d", (int)from->weights), false;
    *options = (CompileOptions){
        .target = target,
        .weights = form[from->weights],
        .effort = from->effort > MOST_EFFORT ? MOST_EFFORT
                  : from->effort             ? (int)from->effort
                                             : 1,
        .memory_limit = (int64_t)from->memory_limit,
        .threads = from->threads,
        .compare = true,
        .pack = from->pack,
        .exact = from->exact,
        .checked = from->checked,
        .name = prepare_identifier(&session->arena, from->name ? str_from(from->name) : graph),
        .source = prepare_file_name(c->module->path),
        .describe = prepare_describe,
        .describe_context = prepare_printer(&session->arena),
    };
    if (options->target &&
        (!take_precision(session, from->precision, options) || !take_backend(session, from->backend, options)))
        return false;
    if (from->size && target->dialect != DIALECT_C99)
        return session_misuse(session, "the least code is strict C99, which %s is not", target->name), false;
    if (from->size && options->target->backend != BACKEND_GENERATED)
        return session_misuse(session, "the least code is generated: no library computes for it"), false;
    if (from->size)
        options->target = target_small(&session->arena, options->target);
    if (from->memory_limit > PLAN_LARGEST)
        return session_misuse(session, "a limit of %" PRIu64 " bytes: there is no such memory", from->memory_limit),
               false;
    if (!options->name.len)
        return session_misuse(session, "a program has a name"), false;
    if (from->threads > MOST_THREADS)
        return session_misuse(session, "%" PRIu32 " threads: at most %d share a run", from->threads, MOST_THREADS),
               false;
    if (from->threads > 1 && target->dialect == DIALECT_CUDA)
        return session_misuse(session, "threads of a processor do not share runs of %s", target->name), false;
    return find_allocator(session, from->allocator, &options->allocator);
}

static bool take_tune(nnc_session *session, const char *path, CompileOptions *options)
{
    Str text, file = str_copy(&session->arena, str_from(path ? path : ""));
    if (!path)
        return true;
    options->tune = ARENA_NEW(&session->arena, Tune);
    return file_read(&session->arena, &session->diag, file, &text) &&
           tune_read(options->tune, &session->arena, &session->diag, file, text, options->target->name);
}

static nnc_result work_compile(nnc_session *session, void *argument)
{
    Compilation *c = argument;
    const Module *module = c->module->module;
    const Target *target[MOST_VERSIONS];
    CompileOptions options[MOST_VERSIONS];
    uint32_t targets;
    bool all = c->graph == NNC_ALL_GRAPHS;
    uint32_t count = all ? module->graph_count : 1, first = all ? 0 : c->graph;

    if (!count || first >= module->graph_count)
        return session_misuse(session, "graph %u of %u", first, module->graph_count);
    Str name = count == 1 ? module->graph[first]->name : prepare_stem(c->module->path);
    if (!find_targets(session, c->options->target, target, &targets))
        return NNC_RESULT_USE;
    for (uint32_t i = 0; i < targets; i++)
        if (!take_options(session, c, name, target[i], &options[i]))
            return NNC_RESULT_USE;
    if (c->options->tune && targets > 1)
        return session_misuse(session, "a tune file is of one target");
    if (!take_tune(session, c->options->tune, options))
        return NNC_RESULT_INPUT;
    Graph **graph = ARENA_ARRAY(&session->arena, Graph *, count);
    for (uint32_t i = 0; i < count; i++) {
        graph[i] = graph_clone(module->graph[first + i]);
        if (!c->module->shapes_only && !prepare_fits_memory(graph[i]))
            return NNC_RESULT_INPUT;
    }
    nnc_program *program = ARENA_NEW(&session->arena, nnc_program);
    program->session = session;
    program->shapes_only = c->module->shapes_only;
    if (!program_compile_versions(graph, count, options, targets, &program->program))
        return NNC_RESULT_INPUT;
    c->program = program;
    return NNC_RESULT_OK;
}

nnc_result nnc_graph_compile(nnc_module *module, uint32_t graph, const nnc_options *options, nnc_program **program)
{
    static const nnc_options none = {0};
    Compilation c = {module, graph, options ? options : &none, NULL};
    nnc_result result = session_call(module->session, work_compile, &c);
    *program = c.program;
    return result;
}

uint64_t nnc_program_arena_bytes(const nnc_program *program)
{
    return (uint64_t)program->program.arena_bytes;
}

uint64_t nnc_program_weights_bytes(const nnc_program *program)
{
    return (uint64_t)program->program.weights_bytes;
}

uint64_t nnc_program_params_bytes(const nnc_program *program)
{
    return (uint64_t)program->program.kept.bytes[BLOCK_PARAMS];
}

uint64_t nnc_program_state_bytes(const nnc_program *program)
{
    return (uint64_t)program->program.kept.bytes[BLOCK_STATE];
}

/* Emission */

typedef struct Emission {
    const nnc_program *program;
    nnc_take_file *take;
    void *context;
    const char *folder; /* where files are written, without `take` */
} Emission;

static bool hand_over(void *context, Str name, const Text *text)
{
    const Emission *e = context;
    return e->take(e->context, name.ptr, text->ptr ? text->ptr : "", text->len) == 0;
}

static void gather(void *context, const void *bytes, size_t size)
{
    text_put(context, bytes, size);
}

static bool hand_over_weights(void *context, Str name, const Program *program)
{
    Text bytes = {0};
    emit_weights(program, (Sink){gather, &bytes});
    bool good = hand_over(context, name, &bytes);
    text_free(&bytes);
    return good;
}

static Str in_folder(const Emission *e, Str name)
{
    return str_format(&e->program->session->arena, "%s/" STR_FMT, e->folder, STR_ARG(name));
}

static bool write_text(void *context, Str name, const Text *text)
{
    const Emission *e = context;
    return file_write(&e->program->session->diag, in_folder(e, name), text->ptr, text->len);
}

static void put_piece(void *context, const void *bytes, size_t size)
{
    file_writer_put(context, bytes, size);
}

static bool write_weights(void *context, Str name, const Program *program)
{
    const Emission *e = context;
    FileWriter writer;
    if (!file_writer_open(&writer, &e->program->session->diag, in_folder(e, name)))
        return false;
    emit_weights(program, (Sink){put_piece, &writer});
    return file_writer_commit(&writer, &e->program->session->diag);
}

static nnc_result work_emit(nnc_session *session, void *argument)
{
    Emission *e = argument;

    if (e->program->shapes_only)
        return session_misuse(session, "a model parsed for its shapes only has no weights to emit");
    if (e->take)
        return files_emit(&e->program->program, (FileSink){hand_over, hand_over_weights, e}) ? NNC_RESULT_OK
                                                                                             : NNC_RESULT_STOPPED;
    return file_make_folder(&session->diag, str_from(e->folder)) &&
                   files_emit(&e->program->program, (FileSink){write_text, write_weights, e})
               ? NNC_RESULT_OK
               : NNC_RESULT_SYSTEM;
}

nnc_result nnc_program_emit(nnc_program *program, nnc_take_file *take, void *context)
{
    Emission e = {.program = program, .take = take, .context = context};
    return session_call(program->session, work_emit, &e);
}

nnc_result nnc_program_write(nnc_program *program, const char *folder)
{
    Emission e = {.program = program, .folder = folder};
    return session_call(program->session, work_emit, &e);
}

/* Listings */

typedef struct Listing {
    const nnc_program *program;
    nnc_text_kind kind;
    const char *text; /* the result */
} Listing;

static void print_plan(nnc_session *session, const Listing *l, Text *out)
{
    const Entry *entry = program_largest_entry(&l->program->program);
    PlanReport report = report_of_entry(&session->arena, entry);
    if (l->kind != NNC_TEXT_CHART && l->kind != NNC_TEXT_SVG) /* they do not show it */
        savings_measure(&session->arena, entry, &report);
    switch (l->kind) {
    case NNC_TEXT_CHART:
        plan_print_chart(out, &report, CHART_COLUMNS);
        break;
    case NNC_TEXT_JSON:
        plan_print_json(out, &report);
        break;
    case NNC_TEXT_SVG:
        plan_print_svg(out, &report);
        break;
    case NNC_TEXT_HTML:
        plan_print_html(out, &report);
        break;
    default:
        plan_print_table(out, &report, 0);
        break;
    }
}

static void print_graphs(const Program *program, Text *out)
{
    for (uint32_t e = 0; e < program->entry_count; e++) {
        text_printf(out, "%s", e ? "\n" : "");
        nnc_print_graph(out, program->entry[e].graph);
    }
}

/* Of a program for several targets one after another, under their names. */
static void print_each(const Program *program, void (*print)(const Program *program, Text *out), Text *out)
{
    for (uint32_t v = 0; v < program->version_count; v++) {
        text_printf(out, "%s# %s\n\n", v ? "\n" : "", program->version[v].options.target->name);
        print(&program->version[v], out);
    }
    if (!program->version_count)
        print(program, out);
}

static nnc_result work_list(nnc_session *session, void *argument)
{
    Listing *l = argument;
    Text text = {0};

    if ((unsigned)l->kind > NNC_TEXT_KERNELS)
        return session_misuse(session, "unknown kind of text: %d", (int)l->kind);
    if (l->kind == NNC_TEXT_GRAPH)
        print_each(&l->program->program, print_graphs, &text);
    else if (l->kind == NNC_TEXT_KERNELS)
        print_each(&l->program->program, emit_kernels, &text);
    else
        print_plan(session, l, &text);
    l->text = session_keep(session, &text);
    return NNC_RESULT_OK;
}

nnc_result nnc_program_text(nnc_program *program, nnc_text_kind kind, const char **text)
{
    Listing listing = {program, kind, NULL};
    nnc_result result = session_call(program->session, work_list, &listing);
    *text = listing.text;
    return result;
}
