/* Casts of inputs sink to their readers.
 * Needs: a verified graph, after cse, which would undo it.  Keeps: results, bit for bit.
 * A cast of an integer or boolean input (the u8 image of a camera) becomes one cast for each contraction, pooling and
 * reduction that reads it, behind the views between them.  Each can then be carried out where its reader loads the
 * element, and no converted copy of the input has to lie in memory. */
#include "ops/meaning.h"
#include "passes/rewrite.h"

#define MOST_VIEWS 16 /* between a cast and its reader */

typedef struct Chain { /* input, views, cast, views, reader */
    const Node *cast;
    const Node *view[MOST_VIEWS]; /* behind the cast, the reader's operand first */
    uint32_t views;
} Chain;

static bool reads_by_position(const Node *node)
{
    OpFamily family = op_info(node->op)->family;
    return (family == FAMILY_CONTRACT || family == FAMILY_POOL || family == FAMILY_REDUCE) && node->out_count == 1;
}

static bool find_chain(const Graph *graph, ValueId v, Chain *chain)
{
    const Node *node = value_producer(graph, v);
    chain->views = 0;
    for (; node && node_is_view(node) && node->out_count == 1; node = value_producer(graph, node->in[0])) {
        if (chain->views == MOST_VIEWS)
            return false;
        chain->view[chain->views++] = node;
    }
    chain->cast = node;
    return node && node_casts_input(graph, node);
}

/* Building moves the list of nodes. */
static ValueId build_again(Rewriter *rw, Node node, ValueId operand)
{
    return rewrite_build(rw, node.op, &operand, 1, node.attr);
}

static ValueId sink_rule(Rewriter *rw, const Node *reader)
{
    Chain chain;
    if (!reads_by_position(reader) || !find_chain(rw->graph, reader->in[0], &chain) ||
        (!chain.views && rewrite_used_once(rw, chain.cast->out[0])))
        return NONE;

    Node cast = *chain.cast, view[MOST_VIEWS];
    ValueId x = cast.in[0];
    for (uint32_t i = 0; i < chain.views; i++)
        view[i] = *chain.view[i];
    for (uint32_t i = chain.views; i-- > 0;)
        x = build_again(rw, view[i], x);
    ValueId *in = arena_copy(rw->scratch, reader->in, reader->in_count * sizeof *in);
    in[0] = build_again(rw, cast, x);
    return rewrite_build(rw, reader->op, in, reader->in_count, reader->attr);
}

bool pass_sink(Graph *graph, PassContext *context)
{
    rewrite_graph(graph, context, sink_rule);
    return true;
}
