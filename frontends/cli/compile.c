/* `nnc compile`: a model becomes C or CUDA source, libraries, listings.
 * All files are made in a folder of their own and renamed into place at the end, so a failure leaves nothing behind. */
#include <string.h>
#include <unistd.h>

#include "api/prepare.h"
#include "base/number.h"
#include "cli/depfile.h"
#include "cli/emit.h"
#include "cli/inputs.h"
#include "cli/terminal.h"
#include "ops/family.h"
#include "passes/pass.h"

static const char *const part_name[] = {"c",    "lib",    "test",     "ir",     "kernels",
                                        "cuda", "static", "selftest", "shared", NULL};

/* `c,lib` into a sum of EmitPart; false after a usage error. */
static bool add_parts(Cli *cli, Str word, unsigned *parts)
{
    for (bool more = true; more;) { /* an empty word is none that is known, also after a comma */
        const char *comma = memchr(word.ptr, ',', word.len);
        uint32_t length = comma ? (uint32_t)(comma - word.ptr) : word.len, part;
        if (!cli_choose(cli, "emit", (Str){word.ptr, length}, part_name, &part))
            return false;
        *parts |= 1u << part;
        more = comma != NULL;
        length += more;
        word = (Str){word.ptr + length, word.len - length};
    }
    return true;
}

static bool take_parts(Cli *cli, unsigned *parts)
{
    Str word;
    *parts = 0;
    for (uint32_t at = 0; args_next(cli, "emit", &at, &word);)
        if (!add_parts(cli, word, parts))
            return false;
    return true;
}

/* What is written does not depend on the machine that nnc runs on, unless it is the target. */
static bool take_byte_order(Cli *cli, ByteOrder *order)
{
    static const char *const names[] = {[BYTES_LITTLE] = "little", [BYTES_BIG] = "big", NULL};
    Str word = args_value(cli, "byte-order"), target = args_value(cli, "target");
    uint32_t chosen = str_is(target, "host") ? program_byte_order_here() : BYTES_LITTLE;

    if (word.ptr && !cli_choose(cli, "byte-order", word, names, &chosen))
        return false;
    *order = (ByteOrder)chosen;
    return true;
}

/* Parts and target must agree.  Returns the target's fallback, or NULL after a usage error. */
static const char *settle(Cli *cli, unsigned *parts)
{
    Str target = args_value(cli, "target");
    bool cuda = target.len >= 4 && memcmp(target.ptr, "cuda", 4) == 0;

    if (!*parts)
        *parts = cuda ? EMIT_CUDA : EMIT_C;
    bool wants_c = *parts & (EMIT_C | EMIT_LIBRARIES | EMIT_SELFTEST), wants_cuda = *parts & EMIT_CUDA;
    if ((cuda && wants_c) || (wants_cuda && (wants_c || (target.ptr && !cuda))))
        return cli_usage(cli,
                         "C and CUDA are different targets: --emit cuda goes with --target cuda:sm_90, and with "
                         "neither c, lib, static, shared nor selftest"),
               NULL;
    return wants_cuda ? "cuda:sm_90" : "generic";
}

static bool keeps_something(const Graph *graph)
{
    bool keeps = graph->update_count > 0;
    for (ValueId v = 0; v < graph->value_count; v++)
        keeps |= graph->value[v].role == ROLE_STATE;
    return keeps;
}

/* In turns, three times where something is kept between calls (program_golden_calls). */
static bool run_graphs(Cli *cli, const Model *model, Golden *golden)
{
    EvalMemory memory = {.arena = &cli->arena, .known = {.arena = &cli->arena}};
    Graph **graph = ARENA_ARRAY(&cli->arena, Graph *, model->graph_count);
    bool keeps = false;
    for (uint32_t g = 0; g < model->graph_count; g++) {
        if (!(graph[g] = pass_reference(model->graphs[g])))
            return false;
        keeps |= keeps_something(graph[g]);
    }
    for (uint32_t call = 0; call < (keeps ? 3 : 1); call++)
        for (uint32_t g = 0; g < model->graph_count; g++)
            eval_run(&memory, graph[g], golden[g].input, golden[g].expected + call * graph[g]->output_count);
    return true;
}

/* Inputs of the test harness for each graph, and what the evaluator makes of them. */
static Golden *make_golden(Cli *cli, const Model *model)
{
    int status;
    Golden *golden = ARENA_ARRAY(&cli->arena, Golden, model->graph_count);
    for (uint32_t g = 0; g < model->graph_count; g++) {
        Model one = *model;
        one.graph = model->graphs[g];
        golden[g].input = inputs_read(cli, &one, "random:1", &status);
        golden[g].expected = ARENA_ARRAY(&cli->arena, const Tensor *, 3 * one.graph->output_count + 1);
        if (!golden[g].input)
            return NULL;
    }
    cli_step(cli, "evaluating the reference");
    return run_graphs(cli, model, golden) ? golden : NULL;
}

typedef void PrintHarness(const Program *program, const Golden *golden, Text *out);

static bool emit_harness(Cli *cli, const Program *program, const Folder *folder, const Golden *golden,
                         PrintHarness *print, const char *suffix)
{
    Text text = {0};
    print(program, golden, &text);
    Str name = str_format(&cli->arena, STR_FMT "%s", STR_ARG(program->options.name), suffix);
    bool good = file_write(&cli->diag, folder_file(cli, folder, name), text.ptr, text.len);
    text_free(&text);
    return good;
}

/* With libraries only, the sources they came from go; the header stays, and weights that are a file. */
static void drop(Cli *cli, const Program *program, const Folder *folder, const char *suffix)
{
    Str name = str_format(&cli->arena, STR_FMT "%s", STR_ARG(program->options.name), suffix);
    unlink(folder_file(cli, folder, name).ptr);
}

static void drop_sources(Cli *cli, const Program *program, const Folder *folder)
{
    static const char *const suffix[] = {".c", "_weights.S", "_versions.h", ".weights"};
    for (int i = 0; i < (program_weights_form(program) == WEIGHTS_FILE ? 3 : 4); i++)
        drop(cli, program, folder, suffix[i]);
    for (uint32_t v = 0; v < program->version_count; v++)
        drop(cli, &program->version[v], folder, ".c");
}

static int emit_parts(Cli *cli, const Program *program, const Folder *folder, unsigned parts, const Golden *golden)
{
    bool good = true, cuda = program->options.target->dialect == DIALECT_CUDA;
    int status = STATUS_OK;

    if (parts & (EMIT_C | EMIT_LIBRARIES | EMIT_CUDA))
        good = emit_sources(cli, program, folder);
    if (good && parts & EMIT_TEST)
        good = emit_harness(cli, program, folder, golden, cuda ? emit_cuda_test : emit_test,
                            cuda ? "_test.cu" : "_test.c");
    if (good && parts & EMIT_SELFTEST)
        good = emit_harness(cli, program, folder, golden, emit_selftest, "_selftest.c");
    if (good && parts & EMIT_IR)
        good = emit_ir(cli, program, folder);
    if (good && parts & EMIT_KERNELS)
        good = emit_kernel_listing(cli, program, folder);
    if (good && parts & EMIT_LIBRARIES)
        status = emit_libraries(cli, program, folder, parts);
    if (good && parts & EMIT_LIBRARIES && !(parts & EMIT_C))
        drop_sources(cli, program, folder);
    return good ? status : STATUS_ENVIRONMENT;
}

static void put_recomputed(Text *line, const Program *program)
{
    char bytes[32];
    bool recomputes = false;
    int64_t before = 0, operations_before = 0, operations = 0;
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Fit *fit = &program->entry[e].fit;
        recomputes |= fit_recomputes(fit);
        before = most(before, fit->peak_before);
        operations_before = number_plus(operations_before, fit->operations_before);
        operations = number_plus(operations, fit->operations);
    }
    if (recomputes && operations_before)
        text_printf(line, " (%s without recomputing %.1f %% of operations)", plan_bytes(bytes, before),
                    100.0 * (double)operations / (double)operations_before - 100.0);
}

static uint32_t count_kernels(const Program *program)
{
    uint32_t kernels = 0;
    for (uint32_t e = 0; e < program->entry_count; e++)
        kernels += entry_kernel_count(&program->entry[e]);
    return kernels;
}

/* `3 kernels`, or of versions that differ `3 to 5 kernels`. */
static void put_kernels(Text *line, const Program *program)
{
    uint32_t fewest = count_kernels(program), largest = fewest;
    for (uint32_t v = 0; v < program->version_count; v++) {
        uint32_t kernels = count_kernels(&program->version[v]);
        fewest = kernels < fewest ? kernels : fewest;
        largest = kernels > largest ? kernels : largest;
    }
    if (fewest != largest)
        text_printf(line, "%u to ", fewest);
    text_printf(line, "%u kernel%s", largest, largest == 1 ? "" : "s");
}

static void summarize(Cli *cli, const Program *program, Str where)
{
    char arena[32], weights[32], kept[32];
    size_t width = terminal_known_width();
    Text line = {0}, text = {0};
    cli_step(cli, NULL);
    text_printf(&line, STR_FMT " for " STR_FMT ": arena %s", STR_ARG(program->options.name),
                STR_ARG(program_target_names(program, &cli->arena)), plan_bytes(arena, program->arena_bytes));
    put_recomputed(&line, program);
    text_printf(&line, ", weights %s, ", plan_bytes(weights, program->weights_bytes));
    if (program->kept.bytes[BLOCK_PARAMS])
        text_printf(&line, "params %s, ", plan_bytes(kept, program->kept.bytes[BLOCK_PARAMS]));
    if (program->kept.bytes[BLOCK_PACKED])
        text_printf(&line, "packed %s, ", plan_bytes(kept, program->kept.bytes[BLOCK_PACKED]));
    if (program->kept.bytes[BLOCK_STATE])
        text_printf(&line, "state %s, ", plan_bytes(kept, program->kept.bytes[BLOCK_STATE]));
    if (program->entry_count > 1)
        text_printf(&line, "%u entries, ", program->entry_count);
    put_kernels(&line, program);
    text_printf(&line, ", in " STR_FMT, STR_ARG(where));
    text_wrap(&text, text_view(&line), 0, 4, width ? width : SIZE_MAX);
    text_char(&text, '\n');
    cli_put(&text);
    text_free(&line);
    text_free(&text);
}

/* --name as it stands, since build systems rely on it; false after a usage error. */
static bool take_name(Cli *cli, Str *name)
{
    Str word = args_value(cli, "name"), identifier = prepare_identifier(&cli->arena, word);

    *name = word;
    if (word.ptr && !word.len)
        return cli_usage(cli, "--name wants a C identifier"), false;
    if (word.ptr && !str_eq(word, identifier))
        return cli_usage(cli, "--name " STR_FMT " cannot be the prefix of names and files in C; " STR_FMT " could",
                         STR_ARG(word), STR_ARG(identifier)),
               false;
    return true;
}

typedef struct Request { /* what the command line asks for */
    unsigned parts;
    WeightsForm form;
    ByteOrder order;
    Str name;              /* of the program; ptr NULL: the graph's */
    Str where;             /* the folder */
    const Target **target; /* one, or several that the library chooses from */
    uint32_t target_count;
} Request;

/* What does not go with some target, or with several.  Returns the exit status. */
static int check_targets(Cli *cli, const Request *request)
{
    for (uint32_t i = 0; i < request->target_count; i++) {
        const Target *machine = request->target[i];
        if (args_has(cli, "pack") && machine->dialect == DIALECT_CUDA)
            return cli_usage(cli, "--pack is for C: no kernel of %s reads packed weights", machine->name);
        if (request->order == BYTES_BIG && machine->dialect != DIALECT_C99)
            return cli_usage(cli, "%s is little-endian: --byte-order big goes with --target generic", machine->name);
    }
    if (request->target_count > 1 && request->parts & (EMIT_IR | EMIT_KERNELS))
        return cli_usage(cli, "--emit ir and kernels are of one target");
    return STATUS_OK;
}

/* Returns the exit status. */
static int take_request(Cli *cli, Request *request)
{
    const char *fallback;
    Str where = args_value(cli, "o"), depfile = args_value(cli, "depfile");

    request->where = where.ptr ? where : STR(".");
    if (!request->where.len)
        return cli_usage(cli, "-o wants a folder");
    if (depfile.ptr && !depfile.len)
        return cli_usage(cli, "--depfile wants a file");
    if (!program_flags(cli) || !take_parts(cli, &request->parts) || !program_take_form(cli, &request->form) ||
        !take_byte_order(cli, &request->order) || !take_name(cli, &request->name))
        return STATUS_USAGE;
    fallback = settle(cli, &request->parts);
    request->target = fallback ? program_targets(cli, fallback, &request->target_count) : NULL;
    return request->target ? check_targets(cli, request) : STATUS_USAGE;
}

/* Model to program; and, where a harness is asked for, what it compares with. */
static int make_program(Cli *cli, const Request *request, Model *model, Program *program, Golden **golden)
{
    CompileOptions *options = ARENA_ARRAY(&cli->arena, CompileOptions, request->target_count);
    int status = model_load(cli, WEIGHTS_ALL, model);
    if (status != STATUS_OK)
        return status;
    if (request->name.ptr)
        model->program_name = request->name;
    if (request->parts & (EMIT_TEST | EMIT_SELFTEST) && !(*golden = make_golden(cli, model)))
        return STATUS_INPUT;
    status = program_options_each(cli, model, request->target, request->target_count, request->form, options);
    for (uint32_t i = 0; i < request->target_count; i++) {
        options[i].byte_order = request->order;
        options[i].checked = args_has(cli, "checked");
        options[i].pack = args_has(cli, "pack");
    }
    return status == STATUS_OK ? program_of_all(model, options, request->target_count, program) : status;
}

/* The first file that stands for all that is written, as it will be called. */
static Str main_file(Cli *cli, const Program *program, const Request *request)
{
    const char *before = "", *after = ".c";
    if (request->parts & EMIT_CUDA)
        after = ".cu";
    else if (request->parts & EMIT_C)
        after = ".c";
    else if (request->parts & EMIT_LIBRARIES)
        before = "lib", after = request->parts & (EMIT_LIB | EMIT_STATIC) ? ".a" : ".so";
    else if (request->parts & (EMIT_TEST | EMIT_SELFTEST))
        after = request->parts & EMIT_TEST ? "_test.c" : "_selftest.c";
    else
        after = request->parts & EMIT_IR ? ".ir.nnc" : ".kernels";
    Str folder = str_is(request->where, ".") ? (Str){0} : request->where;
    bool slash = folder.len && folder.ptr[folder.len - 1] != '/';
    return str_format(&cli->arena, STR_FMT "%s%s" STR_FMT "%s", STR_ARG(folder), slash ? "/" : "", before,
                      STR_ARG(program->options.name), after);
}

/* Everything gets its name, or nothing.  Returns the exit status. */
static int commit(Cli *cli, Folder *folder, Str where, Depfile *depfile)
{
    if (!folder_commit(cli, folder, where))
        return STATUS_ENVIRONMENT;
    if (depfile_commit(cli, depfile))
        return STATUS_OK;
    folder_undo(folder);
    return STATUS_ENVIRONMENT;
}

/* What was made in the folder, with its depfile.  Returns the exit status. */
static int publish(Cli *cli, const Request *request, const Model *model, const Program *program, Folder *folder)
{
    Depfile depfile = {0};
    Str rules = args_value(cli, "depfile");
    if (rules.ptr && folder_writes(cli, folder, request->where, rules))
        return cli_usage(cli, "--depfile would be written over what is compiled: " STR_FMT, STR_ARG(rules));
    int status = depfile_write(cli, model, main_file(cli, program, request), &depfile)
                     ? commit(cli, folder, request->where, &depfile)
                     : STATUS_ENVIRONMENT;
    depfile_abandon(&depfile);
    return status;
}

/* All files, or none. */
static int write_all(Cli *cli, const Request *request, const Model *model, const Program *program, const Golden *golden)
{
    Folder folder;
    Str rules = args_value(cli, "depfile");

    if (rules.ptr && !model_keeps_files(cli, model, rules))
        return STATUS_INPUT;
    if (request->parts & EMIT_IR && !emit_ir_keeps_weights(cli, model, program, request->where))
        return STATUS_INPUT;
    if (!folder_open(cli, request->where, &folder))
        return STATUS_ENVIRONMENT;
    int status = emit_parts(cli, program, &folder, request->parts, golden);
    if (status == STATUS_OK)
        status = publish(cli, request, model, program, &folder);
    if (status == STATUS_OK && request->parts & EMIT_IR)
        emit_ir_warn(cli, program, request->where);
    folder_remove(&folder);
    return status;
}

static int run(Cli *cli)
{
    Request request = {0};
    Model model;
    Program program;
    Golden *golden = NULL;
    int status = take_request(cli, &request);

    if (status == STATUS_OK)
        status = make_program(cli, &request, &model, &program, &golden);
    if (status == STATUS_OK)
        status = write_all(cli, &request, &model, &program, golden);
    if (status == STATUS_OK)
        summarize(cli, &program, request.where);
    return status;
}

const Verb verb_compile = {
    .name = "compile",
    .operands = "MODEL",
    .summary = "Compile a model to C or CUDA source, or to a library",
    .text =
        "Writes NAME.h, NAME.c and the weights, where NAME is the graph's or that of --name. Stored weights are found "
        "in the "
        ".safetensors "
        "file beside the model. Nothing is written when anything fails.\n"
        "\n"
        "What --emit takes, several separated by commas or in several flags (default: c, or cuda for a CUDA target):\n"
        "  c        NAME.h, NAME.c, weights\n"
        "  lib      libNAME.a, libNAME.so, NAME.h\n"
        "  static   libNAME.a, NAME.h: for machines without shared libraries, by the `ar` beside --cc\n"
        "  shared   libNAME.so, NAME.h\n"
        "  test     NAME_test.c, or NAME_test.cu: runs the model, compares with the reference evaluator\n"
        "  selftest NAME_selftest.c: the same as a function, without malloc, stdio and main, for firmware\n"
        "  ir       NAME.ir.nnc: the graph after all passes; elements too many for text in NAME.ir.safetensors\n"
        "  kernels  NAME.kernels: the loops, as the compiler sees them\n"
        "  cuda     NAME.cu, NAME.h, and NAME.weights, to be copied to the device, where they are not in NAME.cu\n"
        "\n"
        "What --weights takes (default: c up to 64 KiB, else blob):\n"
        "  c        an array in NAME.c\n"
        "  blob     NAME.weights, pulled in by NAME_weights.S\n"
        "  file     NAME.weights, which the program maps and hands to NAME_run; its checksum is in NAME.c\n"
        "\n"
        "With several targets, x86-64-v2,x86-64-v3,x86-64-v4 (generic may be one of them), each has a source of its "
        "own, "
        "NAME_x86_64_v3.c; what is in NAME.h calls the best that the machine has, and NAME_cpu tells which that is. In "
        "the environment NNC_CPU=x86-64-v3 asks for another one of them.\n"
        "\n"
        "NAME.weights has the byte order that --byte-order says; where the C compiler tells its own (gcc and clang "
        "do), NAME.c is refused on a machine of the other.",
    .flag =
        (const Flag[]){
            {"o", "DIR", "The folder to write to (default: this one)"},
            {"target", "T,...",
             "The machine to compile for: generic, cortex-m, host, x86-64-v2, x86-64-v3, x86-64-v4, "
             "x86-64-v4-vnni, x86-64-v4-amx, aarch64, riscv64-v, cuda:sm_90; of several the program takes the best "
             "that the machine "
             "has on which it runs"},
            {"name", "NAME", "The prefix of all that is written, instead of the graph's name"},
            {"emit", "PART,...",
             "What to write: c, lib, static, shared, test, selftest, ir, kernels, cuda (default: c or cuda, by "
             "target)"},
            {"weights", "c|blob|file", "The form that weights take in what is written"},
            {"byte-order", "little|big",
             "The byte order of the weights' file (default: little; with --target host, this machine's)"},
            {"depfile", "FILE",
             "Write what the first file (NAME.c) was made from, the model, its imports, weights and inputs, "
             "as a rule for make or ninja"},
            FLAG_DEFINE,
            FLAG_CC,
            FLAGS_WEIGHTS,
            {"pack", NULL,
             "Graphs that update no params read them from a block that NAME_pack makes of those which others update, "
             "in "
             "the order that is fastest to read"},
            {"checked", NULL, "C that makes arena memory unreadable while it holds nothing alive"},
            {"input", "NAME=FILE|random:SEED|zeros", "An input of the test harness (default: random:1)"},
            FLAGS_BUILD,
            {"graph", "NAME", "The graph to take alone (default: all of the file)"},
            FLAG_END},
    .example =
        (const Example[]){{"nnc compile digits.nnc -o out", "strict C99 for any compiler"},
                          {"nnc compile digits.nnc -o out --target host --emit lib", "a library for this machine"},
                          {"nnc compile digits.nnc -o out --target generic,x86-64-v3,x86-64-v4 --emit lib",
                           "one library for all of them"},
                          {"nnc compile digits.nnc -o out --target cortex-m --size",
                           "strict C99 of few bytes, for a part with little flash"},
                          {"nnc compile bert.nnc -o out --weights file -D N=8", "mapped weights, another batch"},
                          {NULL, NULL}},
    .run = run,
};
