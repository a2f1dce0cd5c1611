/* Graphs as text.  What is printed parses to the same graph: every result with its type, scalar constants as literals,
 * small constant arrays as lists, larger ones by name only; what values are called is said in print_name.c. */
#include <math.h>
#include <string.h>

#include "frontends/nnc/constant.h"
#include "frontends/nnc/lex.h"
#include "frontends/nnc/print.h"
#include "ops/meaning.h"

#define MOST_PRINTED 64 /* elements of a constant */

/* Constants */

static void put_elements(Text *out, const Tensor *tensor, uint32_t dim, int64_t *index)
{
    const Shape *shape = &tensor->type->shape;
    if (dim == shape->rank) {
        const_print_element(out, tensor, (*index)++);
        return;
    }
    text_char(out, '[');
    for (int64_t i = 0; i < shape->dim[dim]; i++) {
        if (i)
            text_put(out, ", ", 2);
        put_elements(out, tensor, dim + 1, index);
    }
    text_char(out, ']');
}

/* How the elements of a constant, or of a param without initialiser, stand in the text. */
typedef enum Shown {
    SHOWN_NOT, /* found by name in the weights file; or there are none */
    SHOWN_AS_NUMBER,
    SHOWN_AS_LIST,
} Shown;

static bool is_uniform(const Tensor *tensor, int64_t count)
{
    uint32_t bytes = dtype_bytes(tensor->type->dtype);
    return memcmp(tensor->data, (const char *)tensor->data + bytes, (size_t)(count - 1) * bytes) == 0;
}

static Shown how_shown(const Value *value)
{
    const Tensor *tensor = value->data;
    int64_t count = tensor && tensor->data ? shape_elements(&tensor->type->shape) : 0;
    if (count > 1 && is_uniform(tensor, count))
        return SHOWN_AS_NUMBER;
    return count && count <= MOST_PRINTED ? SHOWN_AS_LIST : SHOWN_NOT;
}

bool nnc_const_is_stored(const Value *value)
{
    return value->role == ROLE_CONST && shape_elements(&value->type->shape) > 0 && how_shown(value) == SHOWN_NOT;
}

/* Attributes */

static void put_ints(Text *out, const Attr *attr)
{
    text_char(out, '[');
    for (int64_t i = 0; i < attr->i; i++)
        text_printf(out, "%s%lld", i ? ", " : "", (long long)attr->ints[i]);
    text_char(out, ']');
}

static void put_attr(Text *out, AttrKind kind, const Attr *attr)
{
    switch (kind) {
    case ATTR_INT:
        text_printf(out, "%lld", (long long)attr->i);
        break;
    case ATTR_FLOAT:
        const_print_number(out, DT_F64, attr->f);
        break;
    case ATTR_BOOL:
        text_str(out, attr->i ? STR("true") : STR("false"));
        break;
    case ATTR_INTS:
    case ATTR_PAD:
        if (attr->i == 1)
            text_printf(out, "%lld", (long long)attr->ints[0]);
        else
            put_ints(out, attr);
        break;
    case ATTR_DTYPE:
        text_str(out, str_from(dtype_name((DType)attr->i)));
        break;
    case ATTR_STRING:
        lex_put_escaped(out, attr->s, '"');
        break;
    }
}

static bool attr_same(AttrKind kind, const Attr *a, const Attr *b)
{
    switch (kind) {
    case ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case ATTR_INTS:
    case ATTR_PAD:
        return a->i == b->i && (a->i == 0 || memcmp(a->ints, b->ints, (size_t)a->i * sizeof *a->ints) == 0);
    case ATTR_STRING:
        return str_eq(a->s, b->s);
    default:
        return a->i == b->i;
    }
}

/* `name = value` for what differs from the default; `first` says whether a comma is due. */
static void put_attrs(Text *out, OpCode op, const Attr *attr, bool first)
{
    const AttrSpec *spec = op_info(op)->attr;
    Attr fallback[32];
    attr_defaults(op, fallback);
    for (uint32_t i = 0; spec[i].name; i++) {
        if (spec[i].fallback && attr_same(spec[i].kind, &attr[i], &fallback[i]))
            continue;
        text_printf(out, "%s%s = ", first ? "" : ", ", spec[i].name);
        put_attr(out, spec[i].kind, &attr[i]);
        first = false;
    }
}

/* Nodes */

/* A literal may stand bare when the parser would give it this dtype: that of the first operand which is no literal. */
static bool is_inferable(const TextPrinter *p, const Node *node, uint32_t index)
{
    const OpInfo *info = op_info(node->op);
    bool chooses = info->family == FAMILY_ELEMENTWISE && info->result == RESULT_SELECT;
    DType dtype = p->graph->value[node->in[index]].type->dtype;
    if (node->call || info->family == FAMILY_DYNAMIC)
        return false;
    if (chooses && index == 0)
        return dtype == DT_BOOL;
    if ((info->family == FAMILY_GATHER && index == 1) || info->family == FAMILY_DRAW)
        return dtype == DT_I64;
    for (uint32_t i = chooses ? 1 : 0; i < node->in_count; i++)
        if (!printer_literal(p, node->in[i]))
            return p->graph->value[node->in[i]].type->dtype == dtype;
    return false;
}

static void put_operand(const TextPrinter *p, const Node *node, uint32_t index)
{
    const Value *literal = printer_literal(p, node->in[index]);
    if (literal && is_inferable(p, node, index))
        const_print_element(p->out, literal->data, 0);
    else
        printer_operand(p, node->in[index]);
}

static void put_callee(const TextPrinter *p, const Node *node)
{
    const Call *call = node->call;
    text_printf(p->out, call && call->checkpoint ? "checkpoint " : "");
    text_str(p->out, call ? call->name : str_from(op_info(node->op)->name));
    if (call && call->label.len) {
        text_char(p->out, '@');
        printer_name(p->out, call->label);
    }
}

static void put_arguments(const TextPrinter *p, const Node *node)
{
    Text *out = p->out;
    const Call *call = node->call;
    Str list = op_list(node->op);
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (call)
            text_str(out, call->before[i]);
        else if (i)
            text_put(out, ", ", 2);
        if (list.len && i + 1 == op_least(node->op))
            text_printf(out, STR_FMT " = [", STR_ARG(list));
        put_operand(p, node, i);
    }
    if (list.len)
        text_char(out, ']');
    if (call)
        text_str(out, call->rest);
    else
        put_attrs(out, node->op, node->attr, node->in_count == 0);
}

static void put_inplace(const TextPrinter *p, const Node *node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (p->graph->value[node->out[i]].inplace != NONE)
            count = i + 1;
    for (uint32_t i = 0; i < count; i++) {
        ValueId from = p->graph->value[node->out[i]].inplace;
        text_str(p->out, i ? STR(", ") : STR(" @inplace("));
        if (from == NONE)
            text_char(p->out, '_');
        else
            printer_value(p, from);
    }
    if (count)
        text_char(p->out, ')');
}

static void put_marks(const TextPrinter *p, const Node *node)
{
    Str placement = node->out_count ? p->graph->value[node->out[0]].placement : (Str){0};
    if (node->kernel != NONE) {
        text_printf(p->out, " @kernel(%u", node->kernel);
        if (node->mark) {
            text_str(p->out, STR(", "));
            kernel_mark_put(p->out, node->mark);
        }
        text_char(p->out, ')');
    }
    if (node->stream)
        text_printf(p->out, " @stream(%u)", node->stream);
    put_inplace(p, node);
    if (placement.len)
        text_printf(p->out, " " STR_FMT, STR_ARG(placement));
}

void printer_expression(const TextPrinter *p, const Node *node)
{
    put_callee(p, node);
    text_char(p->out, '(');
    put_arguments(p, node);
    text_char(p->out, ')');
}

static void put_results(const TextPrinter *p, const Node *node)
{
    if (node->out_count > 1)
        text_char(p->out, '(');
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (i)
            text_put(p->out, ", ", 2);
        printer_typed(p, node->out[i]);
    }
    if (node->out_count > 1)
        text_char(p->out, ')');
    text_str(p->out, node->out_count ? STR(" = ") : STR(""));
}

static void put_node(const TextPrinter *p, const Node *node)
{
    put_results(p, node);
    if (node_has_bodies(node))
        printer_bodies(p, node);
    else
        printer_expression(p, node);
    put_marks(p, node);
}

/* Declarations */

static void put_initial(const TextPrinter *p, const Value *value)
{
    const Node *initial = &p->graph->initial[value->initial];
    DType dtype = value->type->dtype;
    double number;
    if (!node_is_number(initial, &number)) {
        text_printf(p->out, "%s(", op_info(initial->op)->name);
        put_attrs(p->out, initial->op, initial->attr, true);
        text_char(p->out, ')');
        return;
    }
    if (dtype_is_float(dtype))
        const_print_number(p->out, dtype, number);
    else if (dtype == DT_BOOL)
        text_str(p->out, number != 0 ? STR("true") : STR("false"));
    else
        text_printf(p->out, "%lld", (long long)number);
}

bool nnc_print_initial(Text *out, const Graph *graph, ValueId id)
{
    const TextPrinter p = {.out = out, .graph = graph};
    const Value *value = graph_value(graph, id);
    int64_t first = 0;
    if (value->initial == NONE && how_shown(value) == SHOWN_NOT)
        return false;
    if (value->initial != NONE)
        put_initial(&p, value);
    else if (how_shown(value) == SHOWN_AS_NUMBER)
        const_print_element(out, value->data, 0);
    else
        put_elements(out, value->data, 0, &first);
    return true;
}

static void put_declaration(const TextPrinter *p, ValueId v, const char *word)
{
    const Value *value = &p->graph->value[v];
    Text initial = {0};
    int64_t first = 0;
    printer_indent(p);
    text_printf(p->out, "%s ", word);
    printer_typed(p, v);
    if (p->outer && nnc_const_is_stored(value) && value->data->data) { /* a weights file has the graph's own alone */
        text_put(p->out, " = ", 3);
        put_elements(p->out, value->data, 0, &first);
    } else if (nnc_print_initial(&initial, p->graph, v)) {
        text_printf(p->out, " = %s", initial.ptr);
    }
    text_free(&initial);
    if (value->placement.len)
        text_printf(p->out, " " STR_FMT, STR_ARG(value->placement));
    text_char(p->out, '\n');
}

/* Those with names before temporaries: the order must not depend on indices that are free to change. */
static void put_declarations(const TextPrinter *p, Role role, const char *word)
{
    for (int named = 1; named >= 0; named--)
        for (ValueId v = 0; v < p->graph->value_count; v++) {
            const Value *value = &p->graph->value[v];
            if (value_declared(value) == role && printer_is_declared(p, v) && !printer_literal(p, v) &&
                printer_has_name(p, v) == named)
                put_declaration(p, v, word);
        }
}

/* Graphs */

static void put_signature(const TextPrinter *p)
{
    const Graph *graph = p->graph;
    text_printf(p->out, "graph ");
    printer_name(p->out, graph->name);
    text_char(p->out, '(');
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *input = &graph->value[graph->input[i]];
        text_str(p->out, i ? STR(", ") : STR(""));
        printer_typed(p, graph->input[i]);
        if (input->placement.len)
            text_printf(p->out, " " STR_FMT, STR_ARG(input->placement));
    }
    text_char(p->out, ')');
    if (graph->placement.len)
        text_printf(p->out, " " STR_FMT, STR_ARG(graph->placement));
    text_str(p->out, STR(" -> ("));
    for (uint32_t i = 0; i < graph->output_count; i++) { /* in blocks or not, what leaves the graph is plain */
        Type type = *graph->value[graph->output[i].value].type;
        type.layout = (Layout){0};
        text_str(p->out, i ? STR(", ") : STR(""));
        printer_name(p->out, graph->output[i].name);
        text_put(p->out, ": ", 2);
        type_print(p->out, &type);
    }
    text_str(p->out, STR(") {\n"));
}

static bool names_input(const TextPrinter *p, Str name)
{
    for (uint32_t i = 0; i < p->graph->input_count; i++)
        if (str_eq(p->graph->value[p->graph->input[i]].name, name))
            return true;
    return false;
}

/* `y = %3` for an output whose value has another name; `x <- %3` where the name is an input's. */
static void put_output(const TextPrinter *p, const Output *output)
{
    const Value *value = &p->graph->value[output->value];
    if (printer_has_name(p, output->value) && str_eq(value->name, output->name))
        return;
    text_put(p->out, "    ", 4);
    printer_name(p->out, output->name);
    text_str(p->out, names_input(p, output->name) ? STR(" <- ") : STR(" = "));
    printer_operand(p, output->value);
    text_char(p->out, '\n');
}

static void put_update(const TextPrinter *p, const Update *update)
{
    const Value *source = &p->graph->value[update->source];
    text_put(p->out, "    ", 4);
    printer_value(p, update->target);
    text_put(p->out, " <- ", 4);
    if (printer_literal(p, update->source))
        const_print_element(p->out, source->data, 0);
    else
        printer_value(p, update->source);
    text_char(p->out, '\n');
}

void printer_indent(const TextPrinter *p)
{
    text_fill(p->out, ' ', p->indent);
}

void printer_statements(const TextPrinter *p)
{
    put_declarations(p, ROLE_CONST, "const");
    for (NodeId n = 0; n < p->graph->node_count; n++) {
        if (p->graph->node[n].dead)
            continue;
        printer_indent(p);
        put_node(p, &p->graph->node[n]);
        text_char(p->out, '\n');
    }
}

static void put_graph(const TextPrinter *p)
{
    const Graph *graph = p->graph;
    put_signature(p);
    put_declarations(p, ROLE_PARAM, "param");
    put_declarations(p, ROLE_STATE, "state");
    printer_statements(p);
    for (uint32_t i = 0; i < graph->output_count; i++)
        put_output(p, &graph->output[i]);
    for (uint32_t i = 0; i < graph->update_count; i++)
        put_update(p, &graph->update[i]);
    text_str(p->out, STR("}\n"));
}

void nnc_print_graph(Text *out, const Graph *graph)
{
    Arena scratch = {0};
    TextPrinter p;
    printer_start(&p, &scratch, out, graph);
    put_graph(&p);
    arena_free(&scratch);
}

struct NodePrinter {
    TextPrinter printer;
};

NodePrinter *nnc_node_printer(Arena *arena, const Graph *graph)
{
    NodePrinter *node_printer = ARENA_NEW(arena, NodePrinter);
    printer_start(&node_printer->printer, arena, NULL, graph);
    return node_printer;
}

void nnc_print_node(NodePrinter *printer, Text *out, NodeId node)
{
    const TextPrinter *p = &printer->printer;
    const Node *n = &p->graph->node[node];
    printer->printer.out = out;
    if (!node_has_bodies(n)) {
        put_node(p, n);
        return;
    }
    put_results(p, n);
    printer_head(p, n);
    put_marks(p, n);
}

NodePrinter *nnc_body_printer(NodePrinter *outer, NodeId node, uint32_t sub)
{
    NodePrinter *body = ARENA_NEW(outer->printer.scratch, NodePrinter);
    printer_start_inside(&body->printer, &outer->printer, &outer->printer.graph->node[node], sub);
    return body;
}

static bool has_calls(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (!node->dead && node->call)
            return true;
        for (uint32_t i = 0; !node->dead && i < node->sub_count; i++)
            if (has_calls(node->sub[i]))
                return true;
    }
    return false;
}

void nnc_print(Text *out, const Module *module)
{
    bool calls = false;
    text_str(out, STR("nnc 1\n"));
    for (uint32_t i = 0; i < module->graph_count; i++)
        calls |= has_calls(module->graph[i]);
    if (calls)
        text_str(out, module->prelude);
    for (uint32_t i = 0; i < module->graph_count; i++) {
        text_char(out, '\n');
        nnc_print_graph(out, module->graph[i]);
    }
}
