/* Draws a graph: nodes in boxes by kernel, and bodies of loops and branches in boxes around theirs.
 *
 * Nodes are numbers behind a prefix, which is empty in the graph itself and tells in a body of which node it is, and
 * which of its sub-graphs: `n4_1_n0`.  What a loop carries, and what branches give, are ovals of their own, `n4_c0`:
 * first and next values lead to them, and those who read the results come from them. */
#include "cli/draw.h"

#include <string.h>

#include "ops/meaning.h"

/* Control characters of names are none that an SVG could hold. */
static void quoted(Text *out, Str text)
{
    for (uint32_t length; text.len; text.ptr += length, text.len -= length) {
        bool shown = str_shows(text, &length);
        if (*text.ptr == '"' || *text.ptr == '\\')
            text_char(out, '\\');
        text_str(out, shown ? (Str){text.ptr, length} : STR("\xef\xbf\xbd"));
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

typedef struct Scene { /* a graph, or a body */
    Text *out;
    Arena *arena;
    const Graph *graph;
    const struct Scene *outer; /* NULL of the graph itself; else ... */
    const Node *around;        /* ... of whose bodies it is one ... */
    Str box;                   /* ... and by what name that is drawn */
    Str prefix;
    uint32_t depth;
    uint32_t *kernels; /* met so far, in all bodies: each counts its own from 0; NULL: numbers are the plan's */
} Scene;

static void begin_line(const Scene *scene)
{
    text_fill(scene->out, ' ', 4 * (scene->depth + 1));
}

static Str node_name(const Scene *scene, NodeId id)
{
    return str_format(scene->arena, STR_FMT "n%u", STR_ARG(scene->prefix), id);
}

static Str source_of(const Scene *scene, ValueId id);

/* What a body reads: what is carried, or something from around. */
static Str input_of(const Scene *body, uint32_t number)
{
    const Node *node = body->around;
    bool loop = node_is_loop(node);
    if (loop && number < node->out_count)
        return str_format(body->arena, STR_FMT "_c%u", STR_ARG(body->box), number);
    return source_of(body->outer, node->in[loop ? number : number + 1]);
}

/* What an edge from the value begins at. */
static Str source_of(const Scene *scene, ValueId id)
{
    const Graph *graph = scene->graph;
    const Value *value = graph_value(graph, id);
    if (value->role == ROLE_RESULT) {
        const Node *node = graph_node(graph, value->node);
        Str name = node_name(scene, value->node);
        for (uint32_t r = 0; node_has_bodies(node) && r < node->out_count; r++)
            if (node->out[r] == id)
                return str_format(scene->arena, STR_FMT "_c%u", STR_ARG(name), r);
        return name;
    }
    for (uint32_t i = 0; scene->outer && i < graph->input_count; i++)
        if (graph->input[i] == id)
            return input_of(scene, i);
    return str_format(scene->arena, STR_FMT "v%u", STR_ARG(scene->prefix), id);
}

/* Numbers stand in the labels of the nodes that use them. */
static bool is_drawn(const Graph *graph, ValueId id)
{
    double number;
    return graph->value[id].type && !value_is_number(graph, id, &number);
}

/* How edges from the value look: those from params are faint, of results they bear the shape. */
static void put_edge(const Scene *scene, ValueId from, Str to)
{
    const Value *value = graph_value(scene->graph, from);
    text_printf(scene->out, "    " STR_FMT " -> " STR_FMT, STR_ARG(source_of(scene, from)), STR_ARG(to));
    if (value->role == ROLE_RESULT)
        text_printf(scene->out, " [label=\" " STR_FMT "\"]", STR_ARG(type_show(scene->arena, value->type)));
    else if (value->role != ROLE_INPUT)
        text_printf(scene->out, " [color=\"#bbbbbb\", arrowsize=0.4]");
    text_printf(scene->out, ";\n");
}

static void put_node(const Scene *scene, NodeId id)
{
    static const char *const fill[FAMILY_COUNT] = {
        [FAMILY_ELEMENTWISE] = "#e8f1fb", [FAMILY_CAST] = "#e8f1fb",       [FAMILY_REDUCE] = "#e9e4f5",
        [FAMILY_CUMULATE] = "#e9e4f5",    [FAMILY_SORT] = "#e9e4f5",       [FAMILY_CONTRACT] = "#fbe3cf",
        [FAMILY_POOL] = "#e2f2e0",        [FAMILY_VIEW] = "#f4f4f4",       [FAMILY_ASSEMBLE] = "#f4f4f4",
        [FAMILY_GATHER] = "#fdf3cd",      [FAMILY_GENERATE] = "#f4f4f4",   [FAMILY_DRAW] = "#f4f4f4",
        [FAMILY_DYNAMIC] = "#fdf3cd",     [FAMILY_LAYOUT] = "#f4f4f4",     [FAMILY_CONTROL] = "#fdf3cd",
        [FAMILY_MATCH] = "#e2f2e0",       [FAMILY_DERIVATIVE] = "#fdf3cd",
    };
    const Node *node = graph_node(scene->graph, id);
    begin_line(scene);
    text_printf(scene->out, STR_FMT " [label=\"", STR_ARG(node_name(scene, id)));
    node_label(scene->out, scene->graph, node);
    text_printf(scene->out, "\", fillcolor=\"%s\"];\n", fill[op_info(node->op)->family]);
}

static void open_box(const Scene *scene, Str name, Str label)
{
    begin_line(scene);
    text_printf(scene->out, "subgraph cluster_" STR_FMT " {\n", STR_ARG(name));
    begin_line(scene);
    text_printf(scene->out, "    label=\"");
    quoted(scene->out, label);
    text_printf(scene->out, "\";\n");
}

static void close_box(const Scene *scene)
{
    begin_line(scene);
    text_printf(scene->out, "}\n");
}

static void put_values(const Scene *scene);

/* An oval for each value that is carried, or that branches give, by the name it has in the body or behind the node. */
static void put_passed(const Scene *scene, const Node *node, Str box)
{
    const Graph *named = node_is_loop(node) ? loop_of(scene->graph, node).body : scene->graph;
    for (uint32_t r = 0; r < node->out_count; r++) {
        ValueId id = named == scene->graph ? node->out[r] : named->input[r];
        begin_line(scene);
        text_printf(scene->out, STR_FMT "_c%u [label=\"", STR_ARG(box), r);
        quoted(scene->out, value_show(named, id));
        text_printf(scene->out, "\\n" STR_FMT "\", shape=oval, fillcolor=\"#fdf3cd\"];\n",
                    STR_ARG(type_show(scene->arena, value_type(named, id))));
    }
}

static Str body_label(const Scene *scene, const Node *node, uint32_t sub)
{
    if (node_is_loop(node))
        return loop_of(scene->graph, node).condition == node->sub[sub] ? STR("condition") : STR("round");
    if (sub + 1 == node->sub_count)
        return STR("else");
    if (value_type(scene->graph, node->in[0])->dtype == DT_BOOL)
        return STR("if");
    return str_format(scene->arena, "%lld", (long long)branches_of(scene->graph, node).key[sub]);
}

/* `while`, `while, at most 5 rounds`, `do`, `case`. */
static Str label_of(const Scene *scene, const Node *node)
{
    if (!node_is_loop(node))
        return STR("case");
    Loop loop = loop_of(scene->graph, node);
    const char *name = loop.condition ? "while" : "do";
    return loop.most ? str_format(scene->arena, "%s, at most %lld rounds", name, (long long)loop.most)
                     : str_format(scene->arena, "%s", name);
}

/* What the body gives: next values, a condition, or the values of a branch. */
static void put_results(const Scene *body)
{
    bool loop = node_is_loop(body->around);
    bool condition = loop && loop_of(body->outer->graph, body->around).condition == body->graph;
    for (uint32_t i = 0; i < body->graph->output_count; i++) {
        bool tests = condition || i >= body->around->out_count;
        bool next = loop && !tests;
        Str to = tests ? str_format(body->arena, STR_FMT "_t", STR_ARG(body->box))
                       : str_format(body->arena, STR_FMT "_c%u", STR_ARG(body->box), i);
        text_printf(body->out, "    " STR_FMT " -> " STR_FMT "%s;\n",
                    STR_ARG(source_of(body, body->graph->output[i].value)), STR_ARG(to),
                    next ? " [style=dashed, label=\" next\", constraint=false]" : "");
    }
}

static Scene body_scene(const Scene *scene, NodeId id, uint32_t sub)
{
    const Node *node = graph_node(scene->graph, id);
    Str box = node_name(scene, id), prefix = str_format(scene->arena, STR_FMT "_%u_", STR_ARG(box), sub);
    return (Scene){scene->out, scene->arena, node->sub[sub],   scene,         node,
                   box,        prefix,       scene->depth + 2, scene->kernels};
}

/* A diamond decides: whether there is another round, or which branch runs. */
static void put_bodies(const Scene *scene, NodeId id)
{
    const Node *node = graph_node(scene->graph, id);
    Scene inside = *scene;
    Str box = node_name(scene, id);
    inside.depth++;
    open_box(scene, box, label_of(scene, node));
    put_passed(&inside, node, box);
    begin_line(&inside);
    text_printf(scene->out, STR_FMT "_t [label=\"%s\", shape=diamond, fillcolor=\"#fdf3cd\"];\n", STR_ARG(box),
                node_is_loop(node) ? "again?" : "which?");
    for (uint32_t s = 0; s < node->sub_count; s++) {
        Scene body = body_scene(scene, id, s);
        open_box(&inside, body.prefix, body_label(scene, node, s));
        put_values(&body);
        close_box(&inside);
    }
    close_box(scene);
}

/* The number of a kernel in the whole picture: its own, or from that in the body; `known` has those met before. */
static uint32_t number_of(const Scene *scene, uint32_t kernel, Map *known)
{
    if (!scene->kernels)
        return kernel;
    Str key = map_key(arena_copy(scene->arena, &kernel, sizeof kernel), sizeof kernel);
    uint32_t number = map_get(known, key);
    if (number == MAP_NONE)
        map_put(known, key, number = (*scene->kernels)++);
    return number;
}

/* Nodes of one kernel stand in a box with its number. */
static void put_nodes(const Scene *scene)
{
    const Graph *graph = scene->graph;
    Map known = {.arena = scene->arena};
    uint32_t open = NONE; /* the schedule keeps a kernel's nodes together but for views between them */
    Scene inside = *scene;
    inside.depth++;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = graph_node(graph, n);
        uint32_t kernel = node_has_bodies(node) ? NONE : node->kernel;
        if (node->dead)
            continue;
        if (kernel != open && open != NONE)
            close_box(scene);
        if (kernel != open && kernel != NONE)
            open_box(scene, str_format(scene->arena, STR_FMT "k%u_%u", STR_ARG(scene->prefix), kernel, n),
                     str_format(scene->arena, "kernel %u", number_of(scene, kernel, &known)));
        open = kernel;
        if (node_has_bodies(node))
            put_bodies(scene, n);
        else
            put_node(kernel == NONE ? scene : &inside, n);
    }
    if (open != NONE)
        close_box(scene);
}

static void put_source(const Scene *scene, ValueId id)
{
    const Value *value = graph_value(scene->graph, id);
    const char *style = value->role == ROLE_INPUT ? "shape=oval, fillcolor=\"#cfe8cf\""
                                                  : "shape=plain, style=\"\", fontsize=8, fontcolor=\"#777777\"";
    begin_line(scene);
    text_printf(scene->out, STR_FMT "v%u [label=\"", STR_ARG(scene->prefix), id);
    quoted(scene->out, value_show(scene->graph, id));
    text_printf(scene->out, "\\n" STR_FMT "\", %s];\n", STR_ARG(type_show(scene->arena, value->type)), style);
}

/* Operands of a node; of one with bodies the first values of a loop, or what selects a branch: bodies have the rest. */
static void put_edges(const Scene *scene, NodeId id)
{
    const Node *node = graph_node(scene->graph, id);
    Str name = node_name(scene, id);
    uint32_t count = node_is_loop(node) ? node->out_count : node_is_choice(node) ? 1 : node->in_count;
    for (uint32_t i = 0; i < count; i++) {
        Str to = node_is_loop(node)     ? str_format(scene->arena, STR_FMT "_c%u", STR_ARG(name), i)
                 : node_is_choice(node) ? str_format(scene->arena, STR_FMT "_t", STR_ARG(name))
                                        : name;
        if (is_drawn(scene->graph, node->in[i]))
            put_edge(scene, node->in[i], to);
    }
}

static void put_outputs(const Scene *scene)
{
    const Graph *graph = scene->graph;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Output *output = &graph->output[i];
        text_printf(scene->out, "    o%u [label=\"", i);
        quoted(scene->out, output->name);
        text_printf(scene->out, "\\n" STR_FMT "\", shape=oval, fillcolor=\"#cfe8cf\"];\n",
                    STR_ARG(type_show(scene->arena, value_type(graph, output->value))));
        text_printf(scene->out, "    " STR_FMT " -> o%u;\n", STR_ARG(source_of(scene, output->value)), i);
    }
    for (uint32_t i = 0; i < graph->update_count; i++)
        text_printf(scene->out, "    " STR_FMT " -> v%u [style=dashed, label=\" update\", constraint=false];\n",
                    STR_ARG(source_of(scene, graph->update[i].source)), graph->update[i].target);
}

/* What nodes read that no node makes; outputs also where they are numbers. */
static void put_sources(const Scene *scene)
{
    const Graph *graph = scene->graph;
    bool *used = ARENA_ARRAY(scene->arena, bool, graph->value_count + 1);
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++)
            used[graph->node[n].in[i]] |= is_drawn(graph, graph->node[n].in[i]);
    for (uint32_t i = 0; i < graph->output_count; i++)
        used[graph->output[i].value] = true;
    for (ValueId id = 0; id < graph->value_count; id++) {
        Role role = graph->value[id].role;
        if (role == ROLE_INPUT ? !scene->outer : used[id] && role != ROLE_RESULT)
            put_source(scene, id);
    }
}

/* All that edges join.  Recurses over the nesting of bodies. */
static void put_values(const Scene *scene)
{
    put_sources(scene);
    put_nodes(scene);
}

/* Edges stand behind all boxes: one that stood in a box would draw its ends into that.  Recurses likewise. */
static void put_all_edges(const Scene *scene)
{
    for (NodeId n = 0; n < scene->graph->node_count; n++) {
        const Node *node = graph_node(scene->graph, n);
        if (node->dead)
            continue;
        put_edges(scene, n);
        for (uint32_t s = 0; node_has_bodies(node) && s < node->sub_count; s++) {
            Scene body = body_scene(scene, n, s);
            put_all_edges(&body);
            put_results(&body);
        }
    }
}

void draw_graph(Text *out, const Graph *graph, bool steps, Arena *arena)
{
    uint32_t kernels = 0;
    Scene scene = {.out = out, .arena = arena, .graph = graph, .kernels = steps ? NULL : &kernels};
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
    put_values(&scene);
    put_all_edges(&scene);
    put_outputs(&scene);
    text_printf(out, "}\n");
}
