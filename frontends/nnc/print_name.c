/* What values are called in the text.
 *
 * Values print by their names.  Where two values of a graph have one name, or a name is taken by an output, params come
 * first, then outputs, then the order of values; who comes late prints as a temporary: %<index>, and in a body
 * %<depth>.<number>, numbered in the order of the text.  In a body, captured values go by their names outside; a
 * carried value may be called as something outside that the loop does not capture. */
#include "frontends/nnc/print.h"

#include <string.h>

#include "frontends/nnc/constant.h"
#include "frontends/nnc/lex.h"
#include "ops/meaning.h"

static void claim(TextPrinter *p, ValueId v)
{
    Str name = p->graph->value[v].name;
    if (name.len)
        map_add(&p->owner, name, v);
}

bool printer_is_declared(const TextPrinter *p, ValueId v)
{
    const Value *value = &p->graph->value[v];
    if (value->role == ROLE_PARAM || value->role == ROLE_STATE || value->role == ROLE_INPUT)
        return true;
    return p->used[v];
}

/* Inputs, params and states own their names, then outputs, then all others in order. */
static void claim_names(TextPrinter *p)
{
    const Graph *graph = p->graph;
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].role != ROLE_RESULT && graph->value[v].role != ROLE_CONST)
            claim(p, v);
    for (uint32_t i = 0; i < graph->output_count; i++)
        map_add(&p->owner, graph->output[i].name, graph->output[i].value);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (printer_is_declared(p, v))
            claim(p, v);
}

static bool *find_used(const Graph *graph, Arena *arena);

/* A captured operand is mentioned where a body reads it; all others are by the node itself. */
static void use_operands(const Graph *graph, const Node *node, bool *used, Arena *arena)
{
    uint32_t first = node_has_bodies(node) ? node_first_captured(graph, node) : node->in_count;
    for (uint32_t i = 0; i < first; i++)
        used[node->in[i]] = true;
    for (uint32_t s = 0; first < node->in_count && s < node->sub_count; s++) {
        const Graph *body = node->sub[s];
        const bool *inside = find_used(body, arena);
        for (uint32_t i = first; i < node->in_count; i++)
            used[node->in[i]] |= inside[body->input[i - (node->in_count - body->input_count)]];
    }
}

/* What the text of the graph mentions.  Recurses over the nesting. */
static bool *find_used(const Graph *graph, Arena *arena)
{
    bool *used = graph_live_out(graph, arena);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->dead)
            continue;
        use_operands(graph, node, used, arena);
        for (uint32_t i = 0; i < node->out_count; i++)
            used[node->out[i]] = true;
    }
    return used;
}

static void start(TextPrinter *p, const Graph *graph)
{
    p->graph = graph;
    p->owner = (Map){.arena = p->scratch};
    p->used = find_used(graph, p->scratch);
}

void printer_start(TextPrinter *p, Arena *scratch, Text *out, const Graph *graph)
{
    *p = (TextPrinter){.out = out, .scratch = scratch, .indent = 4};
    start(p, graph);
    claim_names(p);
}

/* Bodies */

static uint32_t *none_per_value(const TextPrinter *p)
{
    uint32_t *list = ARENA_ARRAY(p->scratch, uint32_t, p->graph->value_count);
    memset(list, 0xff, p->graph->value_count * sizeof *list);
    return list;
}

void printer_start_body(TextPrinter *p, const TextPrinter *outer, const Node *node, const Graph *body, uint32_t *next)
{
    uint32_t left = node->in_count - body->input_count; /* operands that are no inputs: a selector */
    *p = (TextPrinter){.out = outer->out,
                       .scratch = outer->scratch,
                       .indent = outer->indent + 4,
                       .outer = outer,
                       .node = node,
                       .depth = outer->depth + 1,
                       .next = next};
    start(p, body);
    p->input = none_per_value(p);
    p->temporary = none_per_value(p);
    for (uint32_t i = 0; i < body->input_count; i++)
        p->input[body->input[i]] = left + i;
}

static bool is_captured(const TextPrinter *p, ValueId v)
{
    return p->outer && p->input[v] != NONE && p->input[v] >= node_first_captured(p->outer->graph, p->node);
}

static bool is_carried(const TextPrinter *p, ValueId v)
{
    return p->outer && p->input[v] != NONE && !is_captured(p, v);
}

/* Where a captured value comes from: the printer of that graph, and the value in it. */
static const TextPrinter *origin(const TextPrinter *p, ValueId *v)
{
    while (is_captured(p, *v)) {
        *v = p->node->in[p->input[*v]];
        p = p->outer;
    }
    return p;
}

/* Does the name mean something else where the body stands? What is defined only after its node does not. */
static bool is_taken_outside(const TextPrinter *p, Str name)
{
    for (; p->outer; p = p->outer) {
        uint32_t holder = map_get(&p->outer->owner, name);
        const Graph *graph = p->outer->graph;
        if (holder == MAP_NONE)
            continue;
        const Value *value = &graph->value[holder];
        if (value->role != ROLE_RESULT || value->node < (NodeId)(p->node - graph->node))
            return true;
    }
    return false;
}

void printer_claim_body(TextPrinter *p)
{
    for (ValueId v = 0; v < p->graph->value_count; v++) {
        Str name = p->graph->value[v].name;
        if (p->used[v] && p->input[v] == NONE && name.len && !is_taken_outside(p, name))
            map_add(&p->owner, name, v);
    }
}

/* Names by which captured values print. */
static Map captured_names(const TextPrinter *p)
{
    Map names = {.arena = p->scratch};
    for (uint32_t i = node_first_captured(p->outer->graph, p->node); i < p->node->in_count; i++) {
        ValueId v = p->node->in[i];
        const TextPrinter *from = origin(p->outer, &v);
        if (is_carried(from, v))
            map_add(&names, from->carried[from->input[v]].name, 0);
        else if (printer_has_name(from, v))
            map_add(&names, from->graph->value[v].name, 0);
    }
    return names;
}

const Carried *printer_claim_carried(TextPrinter *p, uint32_t count)
{
    Map taken = captured_names(p);
    Carried *carried = ARENA_ARRAY(p->scratch, Carried, count);
    for (uint32_t i = 0; i < count; i++) {
        Str name = p->graph->value[p->graph->input[i]].name;
        carried[i].name = name.len && map_add(&taken, name, 0) ? name : (Str){0};
        carried[i].temporary = carried[i].name.len ? NONE : (*p->next)++;
    }
    return carried;
}

void printer_use_carried(TextPrinter *p, const Carried *carried, uint32_t count)
{
    p->carried = carried;
    for (uint32_t i = 0; i < count; i++)
        if (carried[i].name.len)
            map_add(&p->owner, carried[i].name, p->graph->input[i]);
}

/* Printing */

void printer_name(Text *out, Str name)
{
    if (lex_is_plain(name))
        text_str(out, name);
    else
        lex_put_escaped(out, name, '`');
}

bool printer_has_name(const TextPrinter *p, ValueId v)
{
    Str name = p->graph->value[v].name;
    return name.len && map_get(&p->owner, name) == v;
}

static uint32_t number_of(const TextPrinter *p, ValueId v)
{
    if (p->temporary[v] == NONE)
        p->temporary[v] = (*p->next)++;
    return p->temporary[v];
}

static void put_carried(const TextPrinter *p, const Carried *carried)
{
    if (carried->name.len)
        printer_name(p->out, carried->name);
    else
        text_printf(p->out, "%%%u.%u", p->depth, carried->temporary);
}

static void put_own(const TextPrinter *p, ValueId v)
{
    if (is_carried(p, v))
        put_carried(p, &p->carried[p->input[v]]);
    else if (printer_has_name(p, v))
        printer_name(p->out, p->graph->value[v].name);
    else if (p->outer)
        text_printf(p->out, "%%%u.%u", p->depth, number_of(p, v));
    else
        text_printf(p->out, "%%%u", v);
}

void printer_value(const TextPrinter *p, ValueId v)
{
    Text *out = p->out;
    TextPrinter from = *origin(p, &v);
    from.out = out;
    put_own(&from, v);
}

void printer_typed(const TextPrinter *p, ValueId v)
{
    printer_value(p, v);
    text_put(p->out, ": ", 2);
    value_print_type(p->out, &p->graph->value[v]);
}

const Value *printer_literal(const TextPrinter *p, ValueId v)
{
    const TextPrinter *from = origin(p, &v);
    const Value *value = &from->graph->value[v];
    bool literal = value->role == ROLE_CONST && !printer_has_name(from, v) && !value->bits &&
                   value->type->shape.rank == 0 && value->data && value->data->data;
    return literal ? value : NULL;
}

void printer_operand(const TextPrinter *p, ValueId v)
{
    const Value *literal = printer_literal(p, v);
    if (!literal) {
        printer_value(p, v);
        return;
    }
    text_printf(p->out, "%s(", dtype_name(literal->type->dtype));
    const_print_element(p->out, literal->data, 0);
    text_char(p->out, ')');
}
