/* Tune files: lines to marks, and back (tune.h). */
#include "program/tune.h"

#include "kernel/kernel.h"

/* Of one graph: no name of a graph has a newline. */
static Str key_of(Arena *arena, Str graph, Str statement)
{
    return str_format(arena, STR_FMT "\n" STR_FMT, STR_ARG(graph), STR_ARG(statement));
}

void tune_add(Tune *tune, Arena *arena, const TuneLine *line)
{
    Str key = key_of(arena, line->graph, line->statement);
    tune->by_statement.arena = tune->compiled.arena = arena;
    uint32_t known = map_get(&tune->by_statement, key);
    if (known != MAP_NONE) {
        tune->line[known] = *line;
        return;
    }
    map_put(&tune->by_statement, key, tune->count);
    ARENA_PUSH(arena, tune->line, tune->count, tune->capacity, *line);
}

/* Statements */

/* Without its marks. */
static Str statement_of(const CompileOptions *options, const Graph *graph, NodeId node)
{
    Text text = {0};
    options->describe(options->describe_context, &text, graph, node);
    Str all = text_view(&text);
    for (uint32_t i = 0; i + 1 < all.len; i++)
        if (all.ptr[i] == ' ' && all.ptr[i + 1] == '@')
            all.len = i;
    Str statement = str_copy(graph->module->arena, all);
    text_free(&text);
    return statement;
}

const Str *tune_statements(const CompileOptions *options, const Graph *graph)
{
    Arena *arena = graph->module->arena;
    Graph *copy = graph_clone(graph); /* describing goes by the graph, which is not the last that this one is */
    Kernel *kernel;
    uint32_t count = kernel_collect(copy, arena, &kernel);
    Str *statement = ARENA_ARRAY(arena, Str, graph->value_count);
    for (uint32_t k = 0; k < count; k++) {
        NodeId anchor = kernel[k].anchor == NONE ? kernel[k].node[0] : kernel[k].anchor;
        Str said = statement_of(options, copy, anchor);
        for (uint32_t n = 0; n < kernel[k].node_count; n++)
            for (uint32_t r = 0; r < copy->node[kernel[k].node[n]].out_count; r++)
                statement[copy->node[kernel[k].node[n]].out[r]] = said;
    }
    return statement;
}

void tune_follow(const CompileOptions *options, Graph *graph)
{
    Tune *tune = options->tune;
    Arena *arena = graph->module->arena;
    if (!tune || !tune->count || !options->describe)
        return;
    const Str *statement = tune_statements(options, graph);
    bool *marked = ARENA_ARRAY(arena, bool, graph->node_count);
    map_put(&tune->compiled, graph->name, 0);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && graph->node[n].mark && graph->node[n].mark->place.source)
            marked[graph->node[n].kernel] = true;
    for (NodeId n = 0; n < graph->node_count; n++) {
        Node *node = &graph->node[n];
        if (node->kernel == NONE || marked[node->kernel] || !node->out_count)
            continue;
        marked[node->kernel] = true;
        uint32_t line = map_get(&tune->by_statement, key_of(arena, graph->name, statement[node->out[0]]));
        if (line == MAP_NONE)
            continue;
        tune->line[line].followed = true;
        const Provider *provider = provider_find(tune->line[line].mark.provider);
        if (provider && !provider_serves(provider, options->target)) {
            tune->line[line].refused = true;
            continue;
        }
        node->mark = arena_copy(arena, &tune->line[line].mark, sizeof tune->line[line].mark);
    }
}

/* So many lines from `first` on are not followed. */
static void warn(const Tune *tune, Diag *diag, uint32_t first, uint32_t count, const char *one, const char *many)
{
    if (count)
        diag_warning(diag, tune->line[first].mark.place, "%u kernel%s of this file %s", count, count == 1 ? "" : "s",
                     count == 1 ? one : many);
}

static bool has_graph(const Module *module, Str name)
{
    for (uint32_t i = 0; i < module->graph_count; i++)
        if (str_eq(module->graph[i]->name, name))
            return true;
    return false;
}

void tune_warn(const Tune *tune, const Module *module)
{
    Diag *diag = module->diag;
    uint32_t strangers = 0, stranger = NONE, refused = 0, library = NONE;
    for (uint32_t i = 0; tune && i < tune->count; i++) {
        const TuneLine *line = &tune->line[i];
        if (line->refused && !refused++)
            library = i;
        bool asked = map_get(&tune->compiled, line->graph) != MAP_NONE || !has_graph(module, line->graph);
        if (asked && !line->followed && !strangers++)
            stranger = i;
    }
    warn(tune, diag, stranger, strangers, "is not in the model any more, which may be faster tuned again",
         "are not in the model any more, which may be faster tuned again");
    warn(tune, diag, library, refused, "is a library's, and computed by generated code without --backend",
         "are a library's, and computed by generated code without --backend");
}

void tune_print(Text *out, const Tune *tune, const char *target)
{
    text_printf(out, "target %s\n", target);
    for (uint32_t i = 0; i < tune->count; i++) {
        const TuneLine *line = &tune->line[i];
        if (!i || !str_eq(tune->line[i - 1].graph, line->graph))
            text_printf(out, "%sgraph " STR_FMT " {\n", i ? "}\n" : "", STR_ARG(line->graph));
        text_printf(out, "    " STR_FMT " @kernel(%u, ", STR_ARG(line->statement), line->mark.number);
        kernel_mark_put(out, &line->mark);
        text_printf(out, ")\n");
    }
    text_printf(out, "%s", tune->count ? "}\n" : "");
}
