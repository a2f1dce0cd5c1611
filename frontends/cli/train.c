/* `nnc train`: compiles a model with its training step, and makes it learn from an .npz. */
#include <inttypes.h>
#include <string.h>

#include "api/prepare.h"
#include "base/file.h"
#include "cli/train_labels.h"
#include "cli/train_run.h"
#include "cli/train_show.h"
#include "frontends/nnc/text.h"

#define MOST_EPOCHS 1000000
#define MOST_BATCH  (1 << 24)
#define POINTS      300 /* of a curve, about */

/* Which graph trains, which validates */

/* Does a callee change what it is given for this input?  Recurses over the nesting of calls. */
static bool updates_input(const Graph *graph, ValueId input)
{
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (graph->update[i].target == input)
            return true;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = graph_node(graph, n);
        for (uint32_t i = 0; node_is_call(node) && i < node->in_count; i++)
            if (node->in[i] == input && updates_input(node->sub[0], node->sub[0]->input[i]))
                return true;
    }
    return false;
}

static bool updates_given(const Graph *graph, const Node *call, Role role)
{
    for (uint32_t i = 0; i < call->in_count; i++)
        if (graph_value(graph, call->in[i])->role == role && updates_input(call->sub[0], call->sub[0]->input[i]))
            return true;
    return false;
}

/* Does a run of it change a value of this role?  Recurses over the nesting of calls. */
static bool updates(const Graph *graph, Role role)
{
    for (uint32_t i = 0; i < graph->update_count; i++)
        if (graph_value(graph, graph->update[i].target)->role == role)
            return true;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = graph_node(graph, n);
        if (node_is_minimize(node) || (node_is_call(node) && updates_given(graph, node, role)))
            return true;
        for (uint32_t s = 0; s < node->sub_count; s++)
            if (updates(node->sub[s], role))
                return true;
    }
    return false;
}

static const Graph *find_training(Cli *cli, const Model *model)
{
    if (args_has(cli, "graph") && updates(model->graph, ROLE_PARAM))
        return model->graph;
    for (uint32_t i = 0; !args_has(cli, "graph") && i < model->module->graph_count; i++)
        if (updates(model->module->graph[i], ROLE_PARAM))
            return model->module->graph[i];
    if (args_has(cli, "graph"))
        diag_error(&cli->diag, model->graph->place, "graph " STR_FMT " updates no param: there is nothing to train",
                   STR_ARG(model->graph->name));
    else
        diag_file_error(&cli->diag, model->path,
                        "no graph of it updates a param: one that calls minimize(loss, with = ...) does");
    return NULL;
}

/* The first that changes nothing. */
static const Graph *find_validating(Cli *cli, const Model *model)
{
    for (uint32_t i = 0; i < model->module->graph_count; i++) {
        const Graph *graph = model->module->graph[i];
        if (!updates(graph, ROLE_PARAM) && !updates(graph, ROLE_STATE))
            return graph;
    }
    diag_file_error(&cli->diag, model->path, "--validate wants a graph that updates nothing; all of its graphs do");
    return NULL;
}

/* The input whose first extent is a constant of the file, with its name; NULL. */
static const Value *find_batch(Cli *cli, const Graph *graph, Str *name)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *input = graph_value(graph, graph->input[i]);
        *name = nnc_first_extent(&cli->arena, graph, input->name);
        if (name->len)
            return input;
    }
    return NULL;
}

static bool is_defined(const Cli *cli, Str name)
{
    Str word;
    for (uint32_t at = 0; args_next(cli, "D", &at, &word);)
        if (word.len > name.len && word.ptr[name.len] == '=' && !memcmp(word.ptr, name.ptr, name.len))
            return true;
    return false;
}

/* --batch N as -D X=N, where X is what the model writes for it.  That of a checkpoint is set where it can be, and is
 * another one; whether it is the training's checkpoint_read says. */
static int set_batch(Cli *cli, const Model *model, const Graph *graph, int64_t batch, bool *again)
{
    Str name;
    const Value *input = find_batch(cli, graph, &name);
    bool asked = args_has(cli, "batch");
    *again = input && (asked || (input->type->shape.dim[0] != batch && !is_defined(cli, name)));
    if (*again)
        args_add(cli, "D", str_format(&cli->arena, STR_FMT "=%" PRId64, STR_ARG(name), batch));
    if (asked && !input)
        diag_file_error(&cli->diag, model->path,
                        "--batch: no input of " STR_FMT " has a constant of the file as its first extent",
                        STR_ARG(graph->name));
    return asked && !input ? STATUS_INPUT : STATUS_OK;
}

/* Reads the model: twice where --batch or a checkpoint gives it another constant.  `batch` 0: neither does. */
static int load(Cli *cli, Model *model, int64_t batch, const Graph **trains)
{
    bool again;
    int status = model_load(cli, WEIGHTS_NEW, model);
    *trains = status == STATUS_OK ? find_training(cli, model) : NULL;
    if (!*trains)
        return status == STATUS_OK ? STATUS_INPUT : status;
    if (!batch)
        return STATUS_OK;
    status = set_batch(cli, model, *trains, batch, &again);
    if (status != STATUS_OK || !again)
        return status;
    diag_clear(&cli->diag);
    status = model_load(cli, WEIGHTS_NEW, model);
    *trains = status == STATUS_OK ? find_training(cli, model) : NULL;
    return status;
}

/* From files to a trainer */

static bool open_part(Cli *cli, const char *flag, const Graph *trains, TrainPart *part)
{
    const Graph *graph = part->graph;
    if (!samples_open(cli, graph, args_value(cli, flag), &part->samples) ||
        !labels_check(cli, trains, graph, &part->samples))
        return false;
    part->output = ARENA_ARRAY(&cli->arena, Tensor *, graph->output_count + 1);
    part->memory = ARENA_ARRAY(&cli->arena, void *, graph->output_count + 1);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        part->output[i] =
            tensor_new(&cli->arena, module_plain_type(graph->module, type->dtype, type->shape.rank, type->shape.dim));
        part->memory[i] = part->output[i]->data;
    }
    return true;
}

static bool check_samples(Cli *cli, const Samples *samples)
{
    if (samples->batch < 1)
        return diag_file_error(&cli->diag, samples->path, "the graph takes no samples at all: its batch is 0");
    if (samples->count < samples->batch)
        return diag_file_error(&cli->diag, samples->path,
                               "it has %" PRId64 " sample%s, a step takes %" PRId64 "; --batch makes it fewer",
                               samples->count, samples->count == 1 ? "" : "s", samples->batch);
    return true;
}

static bool open_samples(Trainer *t)
{
    Cli *cli = t->cli;
    if (!open_part(cli, "data", t->train.graph, &t->train) || !check_samples(cli, &t->train.samples))
        return false;
    if (!t->valid.graph)
        return true;
    if (!open_part(cli, "validate", t->train.graph, &t->valid))
        return false;
    if (t->valid.samples.batch < 1)
        return check_samples(cli, &t->valid.samples);
    return scores_of(&cli->arena, t->valid.graph, &t->valid.samples).count ||
           diag_error(&cli->diag, t->valid.graph->place,
                      "--validate: graph " STR_FMT
                      " gives no number, and no logits or probability for labels of the array label",
                      STR_ARG(t->valid.graph->name));
}

static void begin_progress(Trainer *t, int64_t seed)
{
    Arena *arena = &t->cli->arena;
    Scores train = scores_of(arena, t->train.graph, &t->train.samples), valid = {0};
    if (t->valid.graph)
        valid = scores_of(arena, t->valid.graph, &t->valid.samples);
    t->progress = progress_new(arena, &train, &valid);
    t->progress.graph = t->train.graph->name;
    t->progress.seed = seed;
    t->progress.in_order = t->in_order;
    t->progress.data = t->train.samples.path;
    t->progress.digest = t->train.samples.digest;
    t->progress.judged = t->valid.graph ? samples_digest_judging(&t->valid.samples) : 0;
    t->progress.count = t->train.samples.count;
    t->progress.batch = t->train.samples.batch;
    t->progress.every = t->epochs * trainer_steps(t) / POINTS + 1;
}

static int resume(Trainer *t)
{
    Str path = args_value(t->cli, "resume");
    if (path.ptr && !checkpoint_read(t->cli, path, t->host, &t->progress))
        return STATUS_INPUT;
    if (t->progress.epoch >= t->epochs)
        return cli_usage(t->cli, "--epochs counts them all, and the checkpoint has made %" PRId64, t->progress.epoch);
    return STATUS_OK;
}

static int train_compiled(Trainer *t, const Program *program, int64_t seed)
{
    Host host;
    t->host = &host;
    int status = host_open(t->cli, program, seed, &host);
    if (status == STATUS_OK) {
        cli_step(t->cli, NULL);
        begin_progress(t, seed);
        status = resume(t);
    }
    if (status == STATUS_OK)
        status = trainer_run(t);
    host_close(&host);
    return status;
}

/* Compiles the one or two graphs; the samples are looked at before, while calls of losses stand in them. */
static int compile(Trainer *t, Model *model, int64_t seed)
{
    Cli *cli = t->cli;
    Program program;
    CompileOptions options;
    const Graph *graphs[] = {t->train.graph, t->valid.graph};
    model->graphs = arena_copy(&cli->arena, graphs, sizeof graphs);
    model->graph_count = t->valid.graph ? 2 : 1;
    model->program_name = prepare_identifier(&cli->arena, prepare_stem(model->path));
    int status = program_options(cli, model, "host", WEIGHTS_FILE, &options);
    if (status == STATUS_OK && !open_samples(t))
        status = STATUS_INPUT;
    if (status != STATUS_OK)
        return status;
    t->list = weights_list(&cli->arena, model->module, t->train.graph, &model->weights.wanted);
    status = program_of_all(model, &options, 1, &program);
    if (status != STATUS_OK)
        return status;
    t->train.graph = program.entry[0].graph;
    t->valid.graph = t->valid.graph ? program.entry[1].graph : NULL;
    t->valid.entry = 1;
    return train_compiled(t, &program, seed);
}

/* Flags */

/* `spirals.checkpoint.safetensors`, in this folder. */
static Str checkpoint_path(Cli *cli, Str model)
{
    Str given = args_value(cli, "save");
    if (given.ptr)
        return given;
    given = args_value(cli, "resume");
    Str stem = prepare_stem(model);
    return given.ptr ? given : str_format(&cli->arena, STR_FMT ".checkpoint.safetensors", STR_ARG(stem));
}

typedef struct NamedFile {
    const char *flag;
    Str path;
} NamedFile;

/* What is written lies over nothing that is read, nor over another: of weights and checkpoint one would be lost. Over
 * the checkpoint that it goes on from, and over weights that it began with, it may. */
static int check_apart(Cli *cli, const Trainer *t)
{
    const NamedFile file[] = {{"MODEL", args_operand(cli, 0)},
                              {"--data", args_value(cli, "data")},
                              {"--validate", args_value(cli, "validate")},
                              {"--save", t->save},
                              {"-o", t->weights},
                              {"--curve", t->curve}};
    enum { FIRST_WRITTEN = 3, FILES = sizeof file / sizeof *file };
    for (size_t i = FIRST_WRITTEN; i < FILES; i++)
        for (size_t j = 0; j < i; j++)
            if (file[i].path.ptr && file[j].path.ptr && file_clash(file[i].path, file[j].path))
                return cli_usage(cli, "%s would be written over %s: " STR_FMT, file[i].flag, file[j].flag,
                                 STR_ARG(file[j].path));
    return STATUS_OK;
}

/* Nobody who asks for another format by its name gets this one. */
static int check_format(Cli *cli, const char *flag, Str path)
{
    static const char *const other[] = {".npz", ".npy", ".onnx", ".nnc", ".pt", ".pth", ".ckpt", ".h5", ".bin", ".svg"};
    for (size_t i = 0; path.ptr && i < sizeof other / sizeof *other; i++)
        if (str_ends(path, other[i]))
            return cli_usage(cli, "%s " STR_FMT ": what is written are safetensors; name it so, .safetensors", flag,
                             STR_ARG(path));
    return STATUS_OK;
}

static int take_files(Cli *cli, Trainer *t)
{
    t->save = checkpoint_path(cli, args_operand(cli, 0));
    t->weights = args_value(cli, "o");
    t->curve = args_value(cli, "curve");
    if (!args_has(cli, "save") && !args_has(cli, "resume") && file_exists(t->save))
        return cli_usage(cli, STR_FMT " is there already: go on with --resume, or write another with --save",
                         STR_ARG(t->save));
    int status = check_apart(cli, t);
    status = status ? status : check_format(cli, "-o", t->weights);
    return status ? status : check_format(cli, "--save", args_value(cli, "save"));
}

/* Better now than after hours. */
static int check_writable(Trainer *t)
{
    const Str path[] = {t->save, t->weights, t->curve};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        FileWriter writer;
        if (path[i].ptr && !file_writer_open(&writer, &t->cli->diag, path[i]))
            return STATUS_ENVIRONMENT;
        if (path[i].ptr)
            file_writer_abandon(&writer);
    }
    return STATUS_OK;
}

/* Samples are those of one archive: two are an error, as an input that is given twice is. */
static bool check_once(Cli *cli, const char *flag)
{
    Str word;
    uint32_t count = 0;
    for (uint32_t at = 0; args_next(cli, flag, &at, &word); count++)
        if (count)
            return cli_usage(cli, "--%s " STR_FMT ": samples are given twice; one .npz has them all", flag,
                             STR_ARG(word)),
                   false;
    return true;
}

static int take_flags(Cli *cli, Trainer *t, int64_t *seed, int64_t *batch)
{
    *t = (Trainer){.cli = cli, .in_order = args_has(cli, "in-order")};
    *seed = *batch = 0;
    if (!args_number(cli, "epochs", 1, MOST_EPOCHS, &t->epochs) ||
        !args_number(cli, "patience", 1, MOST_EPOCHS, &t->patience) ||
        !args_number(cli, "batch", 1, MOST_BATCH, batch) || !args_number(cli, "seed", INT64_MIN, INT64_MAX, seed))
        return STATUS_USAGE;
    if (!check_once(cli, "data") || !check_once(cli, "validate"))
        return STATUS_USAGE;
    if (!args_has(cli, "data"))
        return cli_usage(cli, "--data FILE.npz is not given");
    if (!t->epochs)
        return cli_usage(cli, "--epochs N is not given");
    if (args_has(cli, "resume") && args_has(cli, "weights-from"))
        return cli_usage(cli, "--weights-from: the params are those of the checkpoint");
    if (t->patience && !args_has(cli, "validate"))
        return cli_usage(cli, "--patience goes by what --validate gives");
    return take_files(cli, t);
}

/* The seed of a checkpoint is the training's, and so are the batch and the order of the samples. */
static int take_order(Cli *cli, int64_t *seed, int64_t *batch, bool *in_order)
{
    int64_t given = *seed, asked = *batch;
    if (!args_has(cli, "resume"))
        return STATUS_OK;
    if (!checkpoint_order(cli, args_value(cli, "resume"), seed, batch, in_order))
        return STATUS_INPUT;
    if (args_has(cli, "seed") && given != *seed)
        return cli_usage(cli, "--seed: the checkpoint was begun with %" PRId64, *seed);
    if (args_has(cli, "batch") && asked != *batch)
        return cli_usage(cli, "--batch: the checkpoint was begun with %" PRId64, *batch);
    if (args_has(cli, "in-order") && !*in_order)
        return cli_usage(cli, "--in-order: the checkpoint was begun without it");
    return STATUS_OK;
}

static int run(Cli *cli)
{
    Model model;
    Trainer trainer;
    int64_t seed, batch;

    if (!program_flags(cli) || !program_runs_here(cli))
        return STATUS_USAGE;
    int status = take_flags(cli, &trainer, &seed, &batch);
    if (status == STATUS_OK)
        status = take_order(cli, &seed, &batch, &trainer.in_order);
    if (status == STATUS_OK)
        status = check_writable(&trainer);
    if (status == STATUS_OK)
        status = load(cli, &model, batch, &trainer.train.graph);
    if (status != STATUS_OK)
        return status;
    trainer.module = model.module;
    if (args_has(cli, "validate") && !(trainer.valid.graph = find_validating(cli, &model)))
        return STATUS_INPUT;
    return compile(&trainer, &model, seed);
}

const Verb verb_train = {
    .name = "train",
    .operands = "MODEL",
    .summary = "Train a model on the samples of an .npz",
    .text =
        "Compiles the graph that updates params, and runs it on batch after batch. Each of its inputs takes the array "
        "of its name, whose first axis counts the samples; they are shuffled anew in each epoch, and those that are "
        "too few for a last batch are left out of it. A scalar input without an array is given the number of epochs "
        "that are over (`epoch`), of steps (`step`), or a new key in each step (an i64[] called `seed` or `key`).\n"
        "\n"
        "Params begin as their initialisers draw them, or with what --weights-from holds; weights beside the model are "
        "not read. What the graph gives is shown as its mean over the epoch: each output that is one float, by its "
        "name, and the accuracy of an output `logits` or `probability` against the array `label`.\n"
        "\n"
        "--validate runs the first graph that updates nothing on other samples after each epoch. The best epoch is "
        "the one with the least `loss` of that, or else the highest accuracy.\n"
        "\n"
        "A checkpoint is written after each epoch, or some where they are short, and when Ctrl-C, SIGTERM or SIGHUP "
        "stops the training, with exit "
        "status 130, 143 or 129. --resume goes on from it to the same bits as if nothing had happened.",
    .flag = (const Flag[]){{"data", "FILE.npz", "The samples to train on"},
                           {"epochs", "N", "How often to go through them, those of a checkpoint included"},
                           {"batch", "N", "Samples in a step: sets the constant that the inputs have as first extent"},
                           {"validate", "FILE.npz", "Samples to validate on after each epoch"},
                           {"patience", "N", "End when no epoch of the last N was the best by validation"},
                           {"o", "FILE", "Write the weights there (.safetensors): of the best epoch, or the last"},
                           {"save", "FILE", "The checkpoint (default: MODEL.checkpoint.safetensors in this folder)"},
                           {"resume", "FILE", "Go on from this checkpoint, and save there"},
                           {"curve", "FILE.svg", "Draw loss and accuracy over the epochs"},
                           {"seed", "S", "Another one draws other params, orders and keys (default: 0)"},
                           {"in-order", NULL, "Do not shuffle"},
                           {"graph", "NAME", "The graph that trains (default: the first that updates a param)"},
                           FLAG_TARGET,
                           FLAG_CC,
                           FLAG_DEFINE,
                           FLAG_MEMORY_LIMIT,
                           FLAG_EXACT,
                           FLAG_PRECISION,
                           FLAG_BACKEND,
                           FLAG_THREADS,
                           FLAG_TUNE,
                           {"weights-from", "FILE", "Begin with the stored weights of this .safetensors file"},
                           FLAG_INIT_MISSING,
                           FLAG_CONVERT_WEIGHTS,
                           FLAG_ALLOCATOR,
                           FLAG_END},
    .example = (const Example[]){{"nnc train spirals.nnc --data points.npz --epochs 20 -o spirals.safetensors",
                                  "weights for nnc run and nnc compile"},
                                 {"nnc train spirals.nnc --data points.npz --epochs 40 --resume "
                                  "spirals.checkpoint.safetensors",
                                  "20 epochs more"},
                                 {NULL, NULL}},
    .run = run,
};
