#include "ir/graph.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Module *module_new(Arena *arena, Diag *diag)
{
    Module *module = ARENA_NEW(arena, Module);
    module->arena = arena;
    module->diag = diag;
    module->types.map.arena = arena;
    return module;
}

const Type *module_type(Module *module, DType dtype, const Shape *shape, Layout layout)
{
    return type_intern(&module->types, dtype, shape, layout);
}

void module_add_file(Module *module, Str path)
{
    ARENA_PUSH(module->arena, module->file, module->file_count, module->file_capacity, str_copy(module->arena, path));
}

const Type *module_plain_type(Module *module, DType dtype, uint32_t rank, const int64_t *dim)
{
    Shape shape = shape_of(rank, dim);
    return module_type(module, dtype, &shape, (Layout){0});
}

bool value_is_number(const Graph *graph, ValueId id, double *number)
{
    const Value *value = &graph->value[id];
    if (value->role != ROLE_CONST || shape_elements(&value->type->shape) != 1)
        return false;
    *number = tensor_number(value->data, 0);
    bool whole = value->type->dtype == DT_I64 || value->type->dtype == DT_U64;
    bool wide = whole && fabs(*number) >= 0x1p53; /* then it may have been rounded */
    return !wide;
}

Str value_show(const Graph *graph, ValueId id)
{
    const Value *value = &graph->value[id];
    return value->name.len ? value->name : str_format(graph->module->arena, "%%%u", id);
}

void value_print_type(Text *out, const Value *value)
{
    Text type = {0};
    type_print(&type, value->type);
    if (value->bits)
        text_printf(out, "%c%u%s", type.ptr[0], value->bits, type.ptr + strlen("i8"));
    else
        text_str(out, text_view(&type));
    text_free(&type);
}

/* Outer calls last; each goes by its label, else by its function, as the names that expand gives. */
static Str scope_of(const Graph *graph, uint32_t from)
{
    Str scope = {0};
    for (; from != NONE; from = graph->inlined[from].outer) {
        const Call *call = graph->inlined[from].call;
        Str word = call->label.len ? call->label : call->name;
        if (word.len)
            scope = str_format(graph->module->arena, STR_FMT "." STR_FMT, STR_ARG(word), STR_ARG(scope));
    }
    return scope;
}

Str value_title(const Graph *graph, ValueId id)
{
    const Node *node = value_producer(graph, id);
    Str name = value_show(graph, id);
    if (graph->value[id].name.len || !node || node->from == NONE)
        return name;
    return str_format(graph->module->arena, STR_FMT STR_FMT, STR_ARG(scope_of(graph, node->from)), STR_ARG(name));
}

/* Attributes */

uint32_t attr_index(OpCode op, Str name)
{
    const AttrSpec *spec = op_info(op)->attr;
    for (uint32_t i = 0; spec[i].name; i++)
        if (str_is(name, spec[i].name))
            return i;
    return NONE;
}

/* Defaults are written as .nnc text: a number, true/false, a dtype, or a list `[]` or a single integer; a list that is
 * another attribute's is empty. */
static Attr attr_from_text(const AttrSpec *spec)
{
    static const int64_t small[] = {0, 1};
    const char *text = spec->fallback;
    Attr attr = {0};

    switch (spec->kind) {
    case ATTR_INT:
        attr.i = strtoll(text, NULL, 10);
        break;
    case ATTR_FLOAT:
        attr.f = strtod(text, NULL);
        break;
    case ATTR_BOOL:
        attr.i = strcmp(text, "true") == 0;
        break;
    case ATTR_INTS:
    case ATTR_PAD:
        if (strcmp(text, "0") == 0 || strcmp(text, "1") == 0) {
            attr.i = 1;
            attr.ints = &small[*text - '0'];
        }
        break;
    case ATTR_DTYPE: {
        DType dtype = DT_F32;
        dtype_parse(str_from(text), &dtype);
        attr.i = dtype;
        break;
    }
    case ATTR_STRING:
        attr.s = str_from(text);
        break;
    }
    return attr;
}

void attr_defaults(OpCode op, Attr *attr)
{
    const AttrSpec *spec = op_info(op)->attr;
    for (uint32_t i = 0; spec[i].name; i++)
        attr[i] = spec[i].fallback ? attr_from_text(&spec[i]) : (Attr){0};
}

/* Building */

Graph *graph_new(Module *module, Str name)
{
    Graph *graph = ARENA_NEW(module->arena, Graph);
    graph->module = module;
    graph->name = name;
    return graph;
}

ValueId graph_add_value(Graph *graph, Role role, const Type *type, Str name, Place place)
{
    Value value = {.type = type,
                   .name = name,
                   .role = role,
                   .node = NONE,
                   .initial = NONE,
                   .inplace = NONE,
                   .owner = NONE,
                   .place = place};
    ARENA_PUSH(graph->module->arena, graph->value, graph->value_count, graph->value_capacity, value);
    return graph->value_count - 1;
}

ValueId graph_add_input(Graph *graph, const Type *type, Str name, Place place)
{
    ValueId value = graph_add_value(graph, ROLE_INPUT, type, name, place);
    ARENA_PUSH(graph->module->arena, graph->input, graph->input_count, graph->input_capacity, value);
    return value;
}

ValueId graph_add_const(Graph *graph, const Tensor *data, Str name, Place place)
{
    ValueId value = graph_add_value(graph, ROLE_CONST, data->type, name, place);
    graph->value[value].data = data;
    return value;
}

ValueId graph_add_scalar(Graph *graph, DType dtype, double number)
{
    Module *module = graph->module;
    Tensor *data = tensor_new(module->arena, module_plain_type(module, dtype, 0, NULL));
    tensor_set_number(data, 0, number);
    return graph_add_const(graph, data, (Str){0}, (Place){0});
}

void graph_add_output(Graph *graph, ValueId value, Str name)
{
    ARENA_PUSH(graph->module->arena, graph->output, graph->output_count, graph->output_capacity,
               ((Output){value, name}));
}

void graph_add_update(Graph *graph, ValueId target, ValueId source, Place place)
{
    ARENA_PUSH(graph->module->arena, graph->update, graph->update_count, graph->update_capacity,
               ((Update){target, source, place}));
}

static const Attr *copy_attrs(Module *module, OpCode op, const Attr *attr)
{
    uint32_t count = op_attr_count(op);
    Attr *copy = arena_copy(module->arena, attr, count * sizeof *attr);
    for (uint32_t i = 0; i < count; i++)
        if (attr_is_list(op_info(op)->attr[i].kind))
            copy[i].ints = arena_copy(module->arena, attr[i].ints, (size_t)attr[i].i * sizeof *attr[i].ints);
    return copy;
}

NodeId graph_add_node(Graph *graph, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr,
                      uint32_t out_count, Place place)
{
    Module *module = graph->module;
    NodeId id = graph->node_count;
    Node node = {.op = op, .in_count = in_count, .out_count = out_count, .from = NONE, .kernel = NONE, .place = place};

    node.in = arena_copy(module->arena, in, in_count * sizeof *in);
    node.out = ARENA_ARRAY(module->arena, ValueId, out_count);
    node.attr = copy_attrs(module, op, attr);
    for (uint32_t i = 0; i < out_count; i++) {
        node.out[i] = graph_add_value(graph, ROLE_RESULT, NULL, (Str){0}, place);
        graph->value[node.out[i]].node = id;
        graph->value[node.out[i]].result = i;
    }
    ARENA_PUSH(module->arena, graph->node, graph->node_count, graph->node_capacity, node);
    return id;
}

NodeId graph_add_initial(Graph *graph, OpCode op, const Attr *attr, Place place)
{
    Node node = {.op = op, .from = NONE, .kernel = NONE, .place = place, .attr = copy_attrs(graph->module, op, attr)};
    ARENA_PUSH(graph->module->arena, graph->initial, graph->initial_count, graph->initial_capacity, node);
    return graph->initial_count - 1;
}

/* Rewriting */

#define COPY(array) clone->array = arena_copy(arena, graph->array, graph->array##_count * sizeof *graph->array)

/* Recurses over the nesting. */
static Graph **clone_bodies(const Node *node, Arena *arena)
{
    Graph **sub = ARENA_ARRAY(arena, Graph *, node->sub_count);
    for (uint32_t i = 0; i < node->sub_count; i++)
        sub[i] = graph_clone(node->sub[i]);
    return sub;
}

Graph *graph_clone(const Graph *graph)
{
    Arena *arena = graph->module->arena;
    Graph *clone = arena_copy(arena, graph, sizeof *graph);
    COPY(value);
    COPY(node);
    COPY(initial);
    COPY(input);
    COPY(output);
    COPY(update);
    COPY(inlined);
    clone->value_capacity = graph->value_count;
    clone->node_capacity = graph->node_count;
    clone->initial_capacity = graph->initial_count;
    clone->input_capacity = graph->input_count;
    clone->output_capacity = graph->output_count;
    clone->update_capacity = graph->update_count;
    clone->inlined_capacity = graph->inlined_count;
    for (NodeId n = 0; n < clone->node_count; n++) {
        Node *node = &clone->node[n];
        node->in = arena_copy(arena, node->in, node->in_count * sizeof *node->in);
        node->out = arena_copy(arena, node->out, node->out_count * sizeof *node->out);
        if (node_has_bodies(node))
            node->sub = clone_bodies(node, arena);
    }
    return clone;
}

#undef COPY

void graph_replace(Graph *graph, const ValueId *map)
{
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->node[n].in_count; i++)
            graph->node[n].in[i] = map[graph->node[n].in[i]];
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = map[graph->output[i].value];
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = map[graph->update[i].source];
}

/* Owners are node numbers too: each becomes the number the node will have, or NONE when it goes. */
static void renumber_owners(Graph *graph)
{
    ArenaMark mark = arena_mark(graph->module->arena);
    uint32_t *number = ARENA_ARRAY(graph->module->arena, uint32_t, graph->node_count), kept = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        number[n] = graph->node[n].dead ? NONE : kept++;
    for (uint32_t v = 0; v < graph->value_count; v++)
        if (graph->value[v].owner != NONE)
            graph->value[v].owner = number[graph->value[v].owner];
    arena_reset(graph->module->arena, mark);
}

void graph_compact(Graph *graph)
{
    uint32_t kept = 0;
    renumber_owners(graph);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        for (uint32_t i = 0; node->dead && i < node->out_count; i++)
            if (graph->value[node->out[i]].node == n)
                graph->value[node->out[i]].node = NONE;
        if (node->dead)
            continue;
        graph->node[kept] = *node;
        for (uint32_t i = 0; i < graph->node[kept].out_count; i++)
            graph->value[graph->node[kept].out[i]].node = kept;
        kept++;
    }
    graph->node_count = kept;
}

Users graph_users(const Graph *graph, Arena *arena)
{
    Users users = {.first = ARENA_ARRAY(arena, uint32_t, graph->value_count + 1)};
    uint32_t total = 0;
    uint32_t *count = ARENA_ARRAY(arena, uint32_t, graph->value_count + 1);
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++)
            count[graph->node[n].in[i]]++;
    for (uint32_t v = 0; v <= graph->value_count; v++) {
        users.first[v] = total;
        total += v < graph->value_count ? count[v] : 0;
    }
    users.user = ARENA_ARRAY(arena, NodeId, total);
    memset(count, 0, graph->value_count * sizeof *count);
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; !graph->node[n].dead && i < graph->node[n].in_count; i++) {
            ValueId v = graph->node[n].in[i];
            users.user[users.first[v] + count[v]++] = n;
        }
    return users;
}

bool graph_has_bodies(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead && node_has_bodies(&graph->node[n]))
            return true;
    return false;
}

bool *graph_live_out(const Graph *graph, Arena *arena)
{
    bool *live = ARENA_ARRAY(arena, bool, graph->value_count);
    for (uint32_t i = 0; i < graph->output_count; i++)
        live[graph->output[i].value] = true;
    for (uint32_t i = 0; i < graph->update_count; i++)
        live[graph->update[i].source] = true;
    return live;
}

void kernel_mark_put(Text *out, const KernelMark *mark)
{
    text_str(out, mark->provider);
    for (uint32_t i = 0; i < mark->knob_count; i++) {
        text_printf(out, ", " STR_FMT, STR_ARG(mark->knob[i].name));
        if (!mark->knob[i].flag)
            text_printf(out, " = %lld", (long long)mark->knob[i].value);
    }
}
