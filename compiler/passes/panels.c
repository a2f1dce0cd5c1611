/* Weights that every round of a loop multiplies by lie in panels.
 * Needs: a verified graph, expanded, before dce.  Keeps: results, bit for bit.
 *
 * The tiles of a product read its second operand a panel of columns at a time.  A constant is packed so when compiling;
 * what comes at run time is packed by the kernel, in each round anew, though a loop changes nothing that it captures.
 * So a copy in that order is made before the loop, and the body reads it through views which say where the elements
 * are; the kernel finds the columns of its panels side by side.  That is worth it where many rows pass over a weight
 * that the first level cannot hold. */
#include "passes/pass.h"

#include <string.h>

#include "ops/control.h"
#include "ops/reverse.h"
#include "passes/constant.h"

#define FEW_LANES  8          /* that tiles of two vectors are made for */
#define FEW_ROWS   16         /* of the first operand */
#define FEW_BYTES  (32 << 10) /* of the second */
#define FEW_ROUNDS 2

typedef struct Panels {
    Graph *graph; /* its node array is the new schedule, still growing */
    Arena *scratch;
    const bool *constant; /* of the graph's values */
    int64_t width;        /* columns */
    uint32_t made;
} Panels;

/* How a weight is seen as panels: split into three dimensions, two of which change places.  The same brings them back.
 */
typedef struct Split {
    Shape whole, split, swapped;
    uint32_t axes[3];
} Split;

static Split split_of(const Product *product, int64_t width)
{
    int64_t panels = product->columns / width, depth = product->depth;
    if (product->transposed)
        return (Split){.whole = {2, {product->columns, depth}},
                       .split = {3, {panels, width, depth}},
                       .swapped = {3, {panels, depth, width}},
                       .axes = {0, 2, 1}};
    return (Split){.whole = {2, {depth, product->columns}},
                   .split = {3, {depth, panels, width}},
                   .swapped = {3, {panels, depth, width}},
                   .axes = {1, 0, 2}};
}

static bool suits(const Panels *p, const Graph *body, const Node *node, Product *product)
{
    return product_of(body, node, product) && product->batch_rank == 0 && product->has_rows && product->has_columns &&
           value_shape(body, node->in[1])->rank == 2 && value_type(body, node->in[1])->dtype == DT_F32 &&
           value_type(body, node->in[0])->dtype == DT_F32 && product->rows >= FEW_ROWS &&
           product->columns % p->width == 0 && product->columns * product->depth * 4 > FEW_BYTES;
}

/* The copy, in the graph around. */
static ValueId make_panels(Panels *p, const Node *loop, ValueId weight, const Split *split)
{
    Reverse r = {.graph = p->graph, .scratch = p->scratch, .node = *loop};
    ValueId swapped = reverse_transpose(&r, reverse_reshape(&r, weight, &split->split), split->axes);
    p->made++;
    return reverse_build1(&r, OP_RELAYOUT, swapped);
}

/* The weight as it was, seen through views. */
static ValueId see_weight(Panels *p, Graph *body, const Node *node, ValueId panels, const Split *split)
{
    Reverse r = {.graph = body, .scratch = p->scratch, .node = *node};
    return reverse_reshape(&r, reverse_transpose(&r, panels, split->axes), &split->whole);
}

/* Which operand of the loop the value is that the body captures; NONE. */
static uint32_t captured_operand(const Panels *p, const Node *loop, const Graph *body, ValueId v)
{
    for (uint32_t i = node_first_captured(p->graph, loop); i < loop->in_count; i++)
        if (body->input[node_input(p->graph, loop, i)] == v)
            return i;
    return NONE;
}

/* The loop is a copy, which the caller appends. */
static void read_panels(Panels *p, Node *loop, Graph *body)
{
    uint32_t count = body->node_count;
    Node *old = arena_copy(p->scratch, body->node, count * sizeof *old);
    body->node_count = 0;
    for (NodeId n = 0; n < count; n++) {
        Product product;
        uint32_t operand = NONE;
        if (!old[n].dead && suits(p, body, &old[n], &product))
            operand = captured_operand(p, loop, body, old[n].in[1]);
        if (operand != NONE && !p->constant[loop->in[operand]]) {
            Split split = split_of(&product, p->width);
            ValueId panels = make_panels(p, loop, loop->in[operand], &split);
            uint32_t captured = node_input(p->graph, loop, node_capture(p->graph, loop, panels));
            old[n].in[1] = see_weight(p, body, &old[n], body->input[captured], &split);
        }
        graph_append_node(body, &old[n]);
    }
}

static bool has_loops(const Graph *graph)
{
    for (NodeId n = 0; n < graph->node_count; n++)
        if (!graph->node[n].dead && node_is_loop(&graph->node[n]))
            return true;
    return false;
}

bool pass_panels(Graph *graph, PassContext *context)
{
    if (context->lanes < FEW_LANES || !has_loops(graph))
        return true;
    Panels p = {.graph = graph, .scratch = context->scratch, .width = 2 * context->lanes};
    p.constant = constant_values(graph, context, context->scratch);
    uint32_t count = graph->node_count;
    Node *old = arena_copy(context->scratch, graph->node, count * sizeof *old);
    graph->node_count = 0;
    for (NodeId n = 0; n < count; n++) {
        if (node_is_loop(&old[n]) && !old[n].dead) {
            Loop loop = loop_of(graph, &old[n]);
            if (loop.most == 0 || loop.most >= FEW_ROUNDS)
                read_panels(&p, &old[n], loop.body);
        }
        graph_append_node(graph, &old[n]);
    }
    context->changes += p.made;
    return true;
}
