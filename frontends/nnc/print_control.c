/* Loops and branches as text; parse_control.c has the syntax.  Their bodies capture without saying so: what they read
 * from around goes by its name there. */
#include "frontends/nnc/constant.h"
#include "frontends/nnc/print.h"
#include "ops/meaning.h"

/* Bodies */

static uint32_t live_nodes(const Graph *body)
{
    uint32_t count = 0;
    for (NodeId n = 0; n < body->node_count; n++)
        count += !body->node[n].dead;
    return count;
}

static bool declares(const TextPrinter *p)
{
    for (ValueId v = 0; v < p->graph->value_count; v++)
        if (p->graph->value[v].role == ROLE_CONST && printer_is_declared(p, v) && !printer_literal(p, v))
            return true;
    return false;
}

/* Gives what stands around, or constants: no statement is needed. */
static bool is_bare(const TextPrinter *p)
{
    return !live_nodes(p->graph) && !declares(p);
}

static void put_outputs(const TextPrinter *p)
{
    for (uint32_t i = 0; i < p->graph->output_count; i++) {
        text_str(p->out, i ? STR(", ") : STR(""));
        printer_operand(p, p->graph->output[i].value);
    }
}

static void put_yield(const TextPrinter *p)
{
    printer_indent(p);
    text_str(p->out, STR("yield "));
    put_outputs(p);
    text_char(p->out, '\n');
}

/* { ... yield a }, the closing brace in the column of `outer` */
static void put_block(const TextPrinter *p, const TextPrinter *outer)
{
    text_str(p->out, STR("{\n"));
    printer_statements(p);
    put_yield(p);
    printer_indent(outer);
    text_char(p->out, '}');
}

/* Loops */

/* One op without a name: it may stand in parentheses. */
static const Node *only_op(const TextPrinter *p)
{
    const Graph *body = p->graph;
    const Node *node = value_producer(body, body->output[0].value);
    const Value *result = &body->value[body->output[0].value];
    bool plain = node && !node->sub_count && node->out_count == 1 && !node->stream && node->kernel == NONE &&
                 result->inplace == NONE && !result->name.len && !result->placement.len;
    return plain && live_nodes(body) == 1 && !declares(p) ? node : NULL;
}

static void put_condition(const TextPrinter *p, const TextPrinter *outer)
{
    const Node *node = only_op(p);
    ValueId condition = p->graph->output[0].value;
    if (!node && !is_bare(p)) {
        put_block(p, outer);
        return;
    }
    text_char(p->out, '(');
    if (node)
        printer_expression(p, node);
    else if (printer_literal(p, condition))
        const_print_element(p->out, printer_literal(p, condition)->data, 0);
    else
        printer_value(p, condition);
    text_char(p->out, ')');
}

static void put_carried(const TextPrinter *body, const Node *node, uint32_t carried)
{
    text_str(body->out, STR(" with ("));
    for (uint32_t i = 0; i < carried; i++) {
        text_str(body->out, i ? STR(", ") : STR(""));
        printer_typed(body, body->graph->input[i]);
        text_str(body->out, STR(" = "));
        printer_operand(body->outer, node->in[i]);
    }
    text_char(body->out, ')');
}

static void put_limits(Text *out, const Loop *loop)
{
    if (loop->most)
        text_printf(out, " max = %lld", (long long)loop->most);
    if (loop->unroll)
        text_printf(out, "%sunroll = %lld", loop->most ? ", " : " ", (long long)loop->unroll);
}

static void put_next(const TextPrinter *body, uint32_t carried)
{
    text_str(body->out, STR("} next ("));
    for (uint32_t i = 0; i < carried; i++) {
        text_str(body->out, i ? STR(", ") : STR(""));
        printer_value(body, body->graph->input[i]);
        text_str(body->out, STR(" <- "));
        printer_operand(body, body->graph->output[i].value);
    }
    text_char(body->out, ')');
}

/* The body, and the condition if there is one: their numbers go on from one to the other. */
static void start_loop(const TextPrinter *p, const Node *node, const Loop *loop, TextPrinter *body,
                       TextPrinter *condition)
{
    uint32_t *next = ARENA_NEW(p->scratch, uint32_t);
    printer_start_body(body, p, node, loop->body, next);
    const Carried *carried = printer_claim_carried(body, loop->carried);
    printer_use_carried(body, carried, loop->carried);
    printer_claim_body(body);
    if (!loop->condition)
        return;
    printer_start_body(condition, p, node, loop->condition, next);
    printer_use_carried(condition, carried, loop->carried);
    printer_claim_body(condition);
}

static void put_loop(const TextPrinter *p, const Node *node)
{
    Loop loop = loop_of(p->graph, node);
    TextPrinter body, condition;

    start_loop(p, node, &loop, &body, &condition);
    text_str(p->out, loop.condition ? STR("while ") : STR("do"));
    if (loop.condition)
        put_condition(&condition, p);
    put_carried(&body, node, loop.carried);
    put_limits(p->out, &loop);
    text_str(p->out, STR(" {\n"));
    printer_statements(&body);
    printer_indent(p);
    put_next(&body, loop.carried);
    if (loop.condition)
        return;
    text_str(p->out, STR(" while ("));
    printer_operand(&body, loop.body->output[loop.carried].value);
    text_char(p->out, ')');
}

/* Branches */

static void start_branch(TextPrinter *branch, const TextPrinter *p, const Node *node, uint32_t i)
{
    printer_start_body(branch, p, node, node->sub[i], ARENA_NEW(p->scratch, uint32_t));
    printer_claim_body(branch);
}

static void put_branch(const TextPrinter *p, const Node *node, uint32_t i)
{
    TextPrinter branch, column = *p;
    start_branch(&branch, p, node, i);
    column.indent += 4;
    branch.indent += 4;
    if (is_bare(&branch))
        put_outputs(&branch);
    else
        put_block(&branch, &column);
    text_char(p->out, '\n');
}

static void put_case(const TextPrinter *p, const Node *node)
{
    Branches branches = branches_of(p->graph, node);
    text_str(p->out, STR("case ("));
    printer_operand(p, node->in[0]);
    text_str(p->out, STR(") {\n"));
    for (uint32_t i = 0; i <= branches.keys; i++) {
        text_fill(p->out, ' ', p->indent + 4);
        if (i < branches.keys)
            text_printf(p->out, "%lld: ", (long long)branches.key[i]);
        else
            text_str(p->out, STR("else: "));
        put_branch(p, node, i);
    }
    printer_indent(p);
    text_char(p->out, '}');
}

static void put_if(const TextPrinter *p, const Node *node)
{
    TextPrinter branch;
    text_str(p->out, STR("if ("));
    printer_operand(p, node->in[0]);
    text_str(p->out, STR(") "));
    for (uint32_t i = 0; i < 2; i++) {
        text_str(p->out, i ? STR(" else ") : STR(""));
        start_branch(&branch, p, node, i);
        put_block(&branch, p);
    }
}

void printer_bodies(const TextPrinter *p, const Node *node)
{
    if (node_is_loop(node))
        put_loop(p, node);
    else if (value_type(p->graph, node->in[0])->dtype == DT_BOOL)
        put_if(p, node);
    else
        put_case(p, node);
}

void printer_start_inside(TextPrinter *p, const TextPrinter *outer, const Node *node, uint32_t sub)
{
    TextPrinter other;
    if (!node_is_loop(node)) {
        start_branch(p, outer, node, sub);
        return;
    }
    Loop loop = loop_of(outer->graph, node);
    bool is_body = node->sub[sub] == loop.body;
    start_loop(outer, node, &loop, is_body ? p : &other, is_body ? &other : p);
}

void printer_head(const TextPrinter *p, const Node *node)
{
    TextPrinter body, condition;
    if (node_is_loop(node)) {
        Loop loop = loop_of(p->graph, node);
        start_loop(p, node, &loop, &body, &condition);
        text_str(p->out, loop.condition ? STR("while") : STR("do"));
        put_carried(&body, node, loop.carried);
        put_limits(p->out, &loop);
        return;
    }
    text_str(p->out, value_type(p->graph, node->in[0])->dtype == DT_BOOL ? STR("if (") : STR("case ("));
    printer_operand(p, node->in[0]);
    text_char(p->out, ')');
}
