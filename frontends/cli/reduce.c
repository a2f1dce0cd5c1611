/* `nnc reduce`: a smaller model that a command fails on as it does on the given one.
 *
 * Delta debugging (Zeller and Hildebrandt 2002) over the outputs, the tail and the nodes of the flat graph: halves,
 * quarters, ... single ones are taken away as long as the command goes on to fail with the same status.  What a removed
 * node made and others still read becomes an input of the graph.  Then the same inside loops and branches. */
#include <string.h>

#include "base/file.h"
#include "cli/folder.h"
#include "cli/model.h"
#include "cli/passes.h"
#include "cli/reduce_bodies.h"
#include "nnc/text.h"

typedef struct Reducer {
    Cli *cli;
    Folder folder;
    Module *module;
    Graph *graph; /* the smallest so far */
    Str command;
    int status; /* what the command ends with on the given model */
    uint32_t tries;
} Reducer;

static Str candidate_path(Reducer *r)
{
    return folder_file(r->cli, &r->folder, STR("reduced.nnc"));
}

#define NOT_FOUND 127 /* what a shell ends with where there is no such command */

/* The command's exit status, with `{}` as the candidate's path; -1 when it cannot be run. */
static int run_command(Reducer *r)
{
    Str path = candidate_path(r);
    Text line = {0};
    for (uint32_t i = 0; i < r->command.len; i++) {
        bool here = i + 1 < r->command.len && r->command.ptr[i] == '{' && r->command.ptr[i + 1] == '}';
        if (here)
            text_printf(&line, "'" STR_FMT "'", STR_ARG(path));
        else
            text_char(&line, r->command.ptr[i]);
        i += here;
    }
    const char *const words[] = {"sh", "-c", line.ptr, NULL};
    Text output = {0};
    Folder here = {.path = STR("."), .lock = -1};
    int status = folder_run(&here, words, &output);
    text_free(&output);
    text_free(&line);
    return status == NOT_FOUND ? -1 : status;
}

static bool write_candidate(Reducer *r, Graph *graph, Str path)
{
    Text text = {0};
    r->module->graph[0] = graph;
    r->module->graph_count = 1;
    nnc_name_constants(r->module);
    nnc_print(&text, r->module);
    bool good = model_save(r->cli, r->module, path, &text);
    text_free(&text);
    return good;
}

/* Does the command fail on this graph as it did? */
static bool still_fails(Reducer *r, Graph *graph)
{
    r->tries++;
    cli_step(r->cli,
             str_format(&r->cli->arena, "try %u: %u node%s, %u output%s", r->tries, graph->node_count,
                        graph->node_count == 1 ? "" : "s", graph->output_count, graph->output_count == 1 ? "" : "s")
                 .ptr);
    return write_candidate(r, graph, candidate_path(r)) && run_command(r) == r->status;
}

/* What nothing needs any more is gone: nodes without readers, inputs that only they read. */
static void drop_unread(Graph *graph)
{
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, NULL);
    pass_run(pass_find(STR("dce")), graph, &context);
    bool *read = ARENA_ARRAY(&scratch, bool, graph->value_count);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            read[graph->node[n].in[i]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        read[graph->output[i].value] = true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        read[graph->update[i].source] = true;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (read[graph->input[i]])
            graph->input[kept++] = graph->input[i];
    graph->input_count = kept;
    arena_free(&scratch);
}

static bool has_name(const Graph *graph, Str name)
{
    for (ValueId v = 0; v < graph->value_count; v++)
        if (str_eq(graph->value[v].name, name))
            return true;
    return false;
}

/* What an input is called that stands for the value; numbers of values change, so another may be called so. */
static Str cut_name(Graph *graph, ValueId value)
{
    Str name = str_format(graph->module->arena, "cut%u", value);
    while (has_name(graph, name))
        name = str_format(graph->module->arena, "cut%u", ++value);
    return name;
}

/* Without nodes from `first` on, so many; their results that others read are inputs. */
static Graph *without_nodes(const Graph *from, uint32_t first, uint32_t count)
{
    Graph *graph = graph_clone(from);
    Arena scratch = {0};
    uint32_t values = graph->value_count;
    ValueId *map = ARENA_ARRAY(&scratch, ValueId, values + from->node_count * 4);
    for (ValueId v = 0; v < values; v++)
        map[v] = v;
    for (NodeId n = first; n < first + count && n < from->node_count; n++) {
        const Node *node = &from->node[n];
        graph->node[n].dead = true;
        for (uint32_t i = 0; i < node->out_count; i++) {
            const Value *value = &from->value[node->out[i]];
            const Type *plain = module_type(graph->module, value->type->dtype, &value->type->shape, (Layout){0});
            map[node->out[i]] = graph_add_input(graph, plain, cut_name(graph, node->out[i]), node->place);
        }
    }
    graph_replace(graph, map);
    graph_compact(graph);
    arena_free(&scratch);
    drop_unread(graph);
    return graph;
}

/* A list without `take` of its elements from `first` on; returns how many are left. */
static uint32_t cut_out(void *list, size_t size, uint32_t count, uint32_t first, uint32_t take)
{
    char *at = list;
    uint32_t end = first + take < count ? first + take : count;
    memmove(at + first * size, at + end * size, (count - end) * size);
    return count - (end - first);
}

static Graph *without_outputs(const Graph *from, uint32_t first, uint32_t count)
{
    Graph *graph = graph_clone(from);
    graph->output_count = cut_out(graph->output, sizeof *graph->output, graph->output_count, first, count);
    drop_unread(graph);
    return graph;
}

static Graph *without_updates(const Graph *from, uint32_t first, uint32_t count)
{
    Graph *graph = graph_clone(from);
    graph->update_count = cut_out(graph->update, sizeof *graph->update, graph->update_count, first, count);
    drop_unread(graph);
    return graph;
}

typedef Graph *Remove(const Graph *from, uint32_t first, uint32_t count);

/* Takes away ever smaller parts of `*size` things, of which `least` must stay; true when any could go. */
static bool shrink(Reducer *r, const uint32_t *(*size)(const Graph *), uint32_t least, Remove *take)
{
    bool any = false;
    for (uint32_t part = *size(r->graph); part > 0; part /= 2)
        for (uint32_t first = 0; first < *size(r->graph);) {
            uint32_t there = *size(r->graph);
            Graph *smaller = part + least <= there ? take(r->graph, first, part) : NULL;
            if (smaller && still_fails(r, smaller)) {
                r->graph = smaller;
                any = true;
            } else {
                first += part;
            }
        }
    return any;
}

static const uint32_t *node_count(const Graph *graph)
{
    return &graph->node_count;
}

static const uint32_t *output_count(const Graph *graph)
{
    return &graph->output_count;
}

static const uint32_t *update_count(const Graph *graph)
{
    return &graph->update_count;
}

static void cut_ends(Reducer *r)
{
    shrink(r, output_count, 1, without_outputs);
    shrink(r, update_count, 0, without_updates);
}

/* As far as a node before the last `count`, whose results become the outputs. */
static Graph *without_tail(const Graph *from, uint32_t count)
{
    Graph *graph = graph_clone(from);
    const Node *last = &graph->node[graph->node_count - 1 - count];
    graph->output_count = graph->update_count = 0;
    for (uint32_t i = 0; i < last->out_count; i++)
        graph_add_output(graph, last->out[i], str_format(graph->module->arena, "out%u", i));
    drop_unread(graph);
    return graph;
}

static bool cut_tail(Reducer *r)
{
    bool any = false;
    for (uint32_t part = r->graph->node_count; part > 0; part /= 2)
        while (part < r->graph->node_count) {
            Graph *smaller = without_tail(r->graph, part);
            if (!still_fails(r, smaller))
                break;
            r->graph = smaller;
            any = true;
        }
    return any;
}

/* The flat graph, where the command fails on that too: calls of functions written out. */
static void flatten(Reducer *r)
{
    Arena scratch = {0};
    PassContext context = pass_context(&scratch, NULL);
    Graph *flat = graph_clone(r->graph);
    if (pass_run(pass_find(STR("expand")), flat, &context) && still_fails(r, flat))
        r->graph = flat;
    arena_free(&scratch);
}

static bool cut_nodes(Reducer *r)
{
    bool cut = cut_tail(r);
    return shrink(r, node_count, 1, without_nodes) || cut;
}

static bool cut_bodies(Reducer *r)
{
    bool any = false;
    for (uint32_t left = reduce_bodies_count(r->graph); left-- > 0;) {
        Graph *smaller = reduce_bodies_without(r->graph, left);
        drop_unread(smaller);
        if (!still_fails(r, smaller))
            continue;
        r->graph = smaller;
        uint32_t count = reduce_bodies_count(smaller);
        left = left < count ? left : count;
        any = true;
    }
    return any;
}

static bool cut(Reducer *r)
{
    bool nodes = cut_nodes(r);
    return cut_bodies(r) || nodes;
}

static int reduce(Reducer *r, Str path)
{
    Text out = {0};
    uint32_t before = reduce_bodies_nodes(r->graph);
    r->status = write_candidate(r, r->graph, candidate_path(r)) ? run_command(r) : 0;
    if (r->cli->diag.error_count)
        return STATUS_ENVIRONMENT;
    if (r->status < 0)
        return cli_environment("cannot run the command");
    if (r->status == 0)
        return diag_file_error(&r->cli->diag, args_operand(r->cli, 0), "the command does not fail on it"), STATUS_INPUT;
    flatten(r);
    uint32_t flat = reduce_bodies_nodes(r->graph);
    before = flat > before ? flat : before;
    cut_ends(r);
    while (cut(r))
        cut_ends(r);
    if (!write_candidate(r, r->graph, path))
        return STATUS_ENVIRONMENT;
    model_warn_of_older(r->cli, r->module, path);
    text_printf(&out, "%u of %u node%s after %u %s, in " STR_FMT "\n", reduce_bodies_nodes(r->graph), before,
                before == 1 ? "" : "s", r->tries, r->tries == 1 ? "try" : "tries", STR_ARG(path));
    cli_put_rows(&out);
    text_free(&out);
    return STATUS_OK;
}

static int run(Cli *cli)
{
    Reducer r = {.cli = cli, .command = args_value(cli, "keep")};
    Str path = args_value(cli, "o");
    Model model;

    if (!r.command.len)
        return cli_usage(cli, "--keep 'COMMAND' is not given; {} in it is the model");
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    r.module = model.module;
    r.graph = model.graph;
    if (!path.ptr)
        path = STR("reduced.nnc");
    if (!model_keeps_files(cli, &model, path))
        return STATUS_INPUT;
    if (!folder_open(cli, (Str){0}, &r.folder))
        return STATUS_ENVIRONMENT;
    status = reduce(&r, path);
    folder_remove(&r.folder);
    return status;
}

const Verb verb_reduce = {
    .name = "reduce",
    .operands = "MODEL",
    .summary = "Shrink a model while a command goes on to fail on it",
    .text =
        "Outputs, updates of states and nodes are taken away as long as the command ends with the exit status that it "
        "has on the whole "
        "model, which must not be 0. What a removed node made becomes an input; inside loops and branches, a value "
        "that was there before or zeros. Loops become their first values, or run once. In the command {} stands for "
        "the model's path; it runs in a shell in this folder, and what it prints is not shown.",
    .flag = (const Flag[]){{"keep", "COMMAND", "The command that fails"},
                           {"o", "FILE", "Where to write the smaller model (default: reduced.nnc)"},
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc reduce big.nnc --keep 'nnc run {} --input random:1 --check --target host'",
                                  "which part of it comes out wrong?"},
                                 {NULL, NULL}},
    .run = run,
};
