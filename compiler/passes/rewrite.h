/* Rewriting in one forward sweep: nodes are moved to a new schedule one by one, operands first, and each may be
 * replaced by something better that is built before it.  Rules look upwards only, at producers that have been rewritten
 * already. */
#ifndef NNC_PASSES_REWRITE_H
#define NNC_PASSES_REWRITE_H

#include "passes/pass.h"

typedef struct Rewriter {
    Graph *graph; /* its node array is the new schedule, still growing */
    Arena *scratch;
    const PassContext *context; /* of the pass that rewrites */
    ValueId *map;               /* what has become of the values there were at the start */
    /* Per value, also new ones: */
    bool *constant; /* as of constant.h */
    uint32_t *uses; /* operands, outputs and updates that mention it */
    uint32_t count, capacity;
    Place place;   /* of the node being rewritten ... */
    uint32_t from; /* ... and the call it comes from, which what is built in its stead is taken to come from too */
    uint32_t changes;
} Rewriter;

/* What to put in place of result 0 of the node, of the same type; NONE when there is nothing better.  The node is a
 * copy, which survives building.  Rules check before they build: they leave no trace when they do not match. */
typedef ValueId Rule(Rewriter *rewriter, const Node *node);

/* Sweeps the graph with the rule; applies it again to what it has built, as long as it matches. */
void rewrite_graph(Graph *graph, PassContext *context, Rule *rule);

/* For rules: what they ask ... */
static inline bool rewrite_constant(const Rewriter *rewriter, ValueId v)
{
    return rewriter->constant[v];
}
static inline bool rewrite_used_once(const Rewriter *rewriter, ValueId v)
{
    return rewriter->uses[v] == 1;
}
/* One number everywhere? Sees through views. */
bool rewrite_number(const Rewriter *rewriter, ValueId v, double *number);

/* ... and what they build.  `attr` may be NULL for defaults. */
ValueId rewrite_build(Rewriter *rewriter, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr);
ValueId rewrite_build1(Rewriter *rewriter, OpCode op, ValueId x);
ValueId rewrite_build2(Rewriter *rewriter, OpCode op, ValueId x, ValueId y);
ValueId rewrite_scalar(Rewriter *rewriter, DType dtype, double number);
ValueId rewrite_reshape(Rewriter *rewriter, ValueId x, const Shape *shape);   /* x itself when it has the shape */
ValueId rewrite_broadcast(Rewriter *rewriter, ValueId x, const Shape *shape); /* likewise */
ValueId rewrite_cast(Rewriter *rewriter, ValueId x, DType dtype);             /* likewise */
/* So many positions along an axis, from `begin` on by `step`. */
ValueId rewrite_slice(Rewriter *rewriter, ValueId x, int64_t axis, int64_t begin, int64_t count, int64_t step);

#endif
