/* `nnc graph`: the graph as a picture, in Graphviz's language or as SVG. */
#include <string.h>

#include "cli/folder.h"
#include "cli/passes.h"

static void quoted(Text *out, Str text)
{
    for (uint32_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            text_char(out, '\\');
        text_char(out, text.ptr[i]);
    }
}

static bool same_attr(AttrKind kind, const Attr *a, const Attr *b)
{
    switch (kind) {
    case ATTR_FLOAT:
        return a->f == b->f;
    case ATTR_STRING:
        return str_eq(a->s, b->s);
    case ATTR_INTS:
    case ATTR_PAD:
        return a->i == b->i && (a->i == 0 || memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->i) == 0);
    default:
        return a->i == b->i;
    }
}

static void put_attr(Text *out, AttrKind kind, const Attr *attr)
{
    if (kind == ATTR_FLOAT)
        text_printf(out, "%g", attr->f);
    else if (kind == ATTR_STRING)
        quoted(out, attr->s);
    else if (kind == ATTR_DTYPE)
        text_printf(out, "%s", dtype_name((DType)attr->i));
    else if (kind == ATTR_BOOL)
        text_printf(out, attr->i ? "true" : "false");
    else if (kind == ATTR_INT)
        text_printf(out, "%lld", (long long)attr->i);
    for (int64_t i = 0; attr_is_list(kind) && i < attr->i; i++)
        text_printf(out, "%s%lld", i ? " x " : "", (long long)attr->ints[i]);
}

/* `conv2d`, and below it what is no tensor: numbers, and attributes that are not the defaults. */
static void node_label(Text *out, const Graph *graph, const Node *node)
{
    const OpInfo *info = op_info(node->op);
    Attr fallback[16];
    double number;

    if (node_is_call(node))
        quoted(out, node->call->name);
    else
        text_printf(out, "%s", info->name);
    for (uint32_t i = 0; i < node->in_count; i++)
        if (value_is_number(graph, node->in[i], &number))
            text_printf(out, "\\n%g%s", number, i == 0 ? " ," : "");
    attr_defaults(node->op, fallback);
    for (uint32_t i = 0; i < op_attr_count(node->op); i++)
        if (!info->attr[i].fallback || !same_attr(info->attr[i].kind, &node->attr[i], &fallback[i])) {
            text_printf(out, "\\n%s ", info->attr[i].name);
            put_attr(out, info->attr[i].kind, &node->attr[i]);
        }
}

static void put_node(Text *out, const Graph *graph, NodeId id, const char *indent)
{
    static const char *const fill[FAMILY_COUNT] = {
        [FAMILY_ELEMENTWISE] = "#e8f1fb", [FAMILY_CAST] = "#e8f1fb",     [FAMILY_REDUCE] = "#e9e4f5",
        [FAMILY_CUMULATE] = "#e9e4f5",    [FAMILY_CONTRACT] = "#fbe3cf", [FAMILY_POOL] = "#e2f2e0",
        [FAMILY_VIEW] = "#f4f4f4",        [FAMILY_ASSEMBLE] = "#f4f4f4", [FAMILY_GATHER] = "#fdf3cd",
        [FAMILY_GENERATE] = "#f4f4f4",    [FAMILY_DRAW] = "#f4f4f4",     [FAMILY_DYNAMIC] = "#fdf3cd",
        [FAMILY_LAYOUT] = "#f4f4f4",      [FAMILY_CONTROL] = "#fdf3cd",  [FAMILY_MATCH] = "#e2f2e0",
        [FAMILY_DERIVATIVE] = "#fdf3cd",
    };
    text_printf(out, "%sn%u [label=\"", indent, id);
    node_label(out, graph, graph_node(graph, id));
    text_printf(out, "\", fillcolor=\"%s\"];\n", fill[op_info(graph_node(graph, id)->op)->family]);
}

/* Nodes of one kernel stand in a box with its number, that of its step in the plan. */
static void put_nodes(Text *out, const Graph *graph)
{
    uint32_t open = NONE; /* the schedule keeps a kernel's nodes together but for views between them */
    for (NodeId n = 0; n < graph->node_count; n++) {
        uint32_t kernel = graph->node[n].kernel;
        if (graph->node[n].dead)
            continue;
        if (kernel != open && open != NONE)
            text_printf(out, "    }\n");
        if (kernel != open && kernel != NONE)
            text_printf(out, "    subgraph cluster_%u {\n        label=\"kernel %u\";\n", kernel, kernel);
        open = kernel;
        put_node(out, graph, n, kernel != NONE ? "        " : "    ");
    }
    if (open != NONE)
        text_printf(out, "    }\n");
}

/* Numbers stand in the labels of the nodes that use them. */
static bool is_drawn(const Graph *graph, ValueId id)
{
    double number;
    return graph->value[id].type && !value_is_number(graph, id, &number);
}

static void put_source(Text *out, const Graph *graph, Arena *arena, ValueId id)
{
    const Value *value = graph_value(graph, id);
    const char *style = value->role == ROLE_INPUT ? "shape=oval, fillcolor=\"#cfe8cf\""
                                                  : "shape=plain, style=\"\", fontsize=8, fontcolor=\"#777777\"";
    text_printf(out, "    v%u [label=\"", id);
    quoted(out, value_show(graph, id));
    text_printf(out, "\\n" STR_FMT "\", %s];\n", STR_ARG(type_show(arena, value->type)), style);
}

static void put_source_of(Text *out, const Graph *graph, ValueId id)
{
    if (graph->value[id].role == ROLE_RESULT)
        text_printf(out, "    n%u", graph->value[id].node);
    else
        text_printf(out, "    v%u", id);
}

static void put_edges(Text *out, const Graph *graph, Arena *arena, NodeId id)
{
    const Node *node = graph_node(graph, id);
    for (uint32_t i = 0; i < node->in_count; i++) {
        ValueId operand = node->in[i];
        if (!is_drawn(graph, operand))
            continue;
        put_source_of(out, graph, operand);
        text_printf(out, " -> n%u", id);
        if (graph->value[operand].role == ROLE_RESULT)
            text_printf(out, " [label=\" " STR_FMT "\"]", STR_ARG(type_show(arena, value_type(graph, operand))));
        else if (graph->value[operand].role != ROLE_INPUT)
            text_printf(out, " [color=\"#bbbbbb\", arrowsize=0.4]");
        text_printf(out, ";\n");
    }
}

static void put_outputs(Text *out, const Graph *graph, Arena *arena)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Output *output = &graph->output[i];
        text_printf(out, "    o%u [label=\"", i);
        quoted(out, output->name);
        text_printf(out, "\\n" STR_FMT "\", shape=oval, fillcolor=\"#cfe8cf\"];\n",
                    STR_ARG(type_show(arena, value_type(graph, output->value))));
        put_source_of(out, graph, output->value);
        text_printf(out, " -> o%u;\n", i);
    }
    for (uint32_t i = 0; i < graph->update_count; i++) {
        put_source_of(out, graph, graph->update[i].source);
        text_printf(out, " -> v%u [style=dashed, label=\" update\", constraint=false];\n", graph->update[i].target);
    }
}

static void put_graph(Text *out, const Graph *graph, Arena *arena)
{
    text_printf(out, "digraph \"");
    quoted(out, graph->name);
    text_printf(out,
                "\" {\n"
                "    graph [fontname=\"Helvetica\", fontsize=9, fontcolor=\"#888888\", color=\"#bbbbbb\", "
                "style=rounded, labeljust=l, nodesep=0.25, ranksep=0.35];\n"
                "    node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", "
                "color=\"#888888\", margin=\"0.12,0.05\"];\n"
                "    edge [fontname=\"Helvetica\", fontsize=8, fontcolor=\"#555555\", color=\"#555555\", "
                "arrowsize=0.6];\n");
    bool *used = ARENA_ARRAY(arena, bool, graph->value_count + 1);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++)
            used[graph->node[n].in[i]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        used[graph->output[i].value] = true;
    for (ValueId id = 0; id < graph->value_count; id++)
        if (graph->value[id].role == ROLE_INPUT ||
            (used[id] && graph->value[id].role != ROLE_RESULT && is_drawn(graph, id)))
            put_source(out, graph, arena, id);
    put_nodes(out, graph);
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead)
            put_edges(out, graph, arena, n);
    put_outputs(out, graph, arena);
    text_printf(out, "}\n");
}

/* Through graphviz, which reads the file and prints the picture. */
static int put_svg(Cli *cli, const Text *dot)
{
    static const char *const words[] = {"dot", "-Tsvg", "graph.dot", NULL};
    Folder folder;
    Text picture = {0};
    int status = STATUS_OK;

    if (!folder_open(cli, (Str){NULL, 0}, &folder) ||
        !file_write(&cli->diag, folder_file(cli, &folder, STR("graph.dot")), dot->ptr, dot->len))
        return STATUS_ENVIRONMENT;
    cli_step(cli, "drawing");
    int code = folder_run(&folder, words, &picture);
    cli_step(cli, NULL);
    folder_remove(&folder);
    if (code < 0)
        status = cli_environment("dot is not installed, or not on the PATH; Graphviz brings it");
    else if (code)
        status = cli_environment("dot failed with status %d:\n%s", code, picture.ptr ? picture.ptr : "");
    else
        cli_put(&picture);
    text_free(&picture);
    return status;
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"dot", "svg", NULL};
    Str word = args_value(cli, "format");
    uint32_t format = 0;
    const Target *target;
    PassList list = {0};
    Model model;
    Text dot = {0};

    if (!passes_target(cli, &target) || !passes_take(cli, &list) ||
        (word.ptr && !cli_choose(cli, "format", word, formats, &format)))
        return STATUS_USAGE;
    int status = model_load(cli, WEIGHTS_SOME, &model);
    if (status != STATUS_OK)
        return status;
    if (!passes_run(cli, &model, &list, target, 0, NULL))
        return STATUS_INPUT;
    put_graph(&dot, model.graph, &cli->arena);
    if (format == 1)
        status = put_svg(cli, &dot);
    else
        cli_put(&dot);
    text_free(&dot);
    return status;
}

const Verb verb_graph = {
    .name = "graph",
    .operands = "MODEL",
    .summary = "Draw the graph, for Graphviz or as SVG",
    .text =
        "Shapes stand on the edges, kernels are boxes around their nodes, with the numbers of their steps in the plan; "
        "numbers stand in the nodes that use them. "
        "`--passes=` draws the model as it is written, with composites whole. SVG needs Graphviz.",
    .flag = (const Flag[]){{"format", "dot|svg", "How to print (default: dot)"},
                           FLAG_PASSES,
                           FLAG_PASSES_TARGET,
                           FLAG_DEFINE,
                           FLAGS_WEIGHTS,
                           FLAG_GRAPH,
                           FLAG_END},
    .example = (const Example[]){{"nnc graph digits.nnc --format svg > digits.svg", "as a compilation sees it"},
                                 {"nnc graph digits.nnc --passes=", "as it is written"},
                                 {NULL, NULL}},
    .run = run,
};
