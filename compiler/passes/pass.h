/* Passes: each rewrites a verified graph in place and leaves it verified.  One pass, one file, one text test.
 *
 * Rules that every rewrite obeys.  A value is replaced only by one of the same type.  Patterns are matched by data
 * flow, never by the order of nodes.  Nothing that an effect orders is moved.  Float results stay as they are up to the
 * sign of zero, with one exception, which all inference compilers make: scales and shifts by constants are folded into
 * the weights of the contraction next to them, which moves the rounding. */
#ifndef NNC_PASSES_PASS_H
#define NNC_PASSES_PASS_H

#include "ir/graph.h"

/* What to compute again rather than keep for the gradient (remat.h has what there is): the segments that save most for
 * an operation first.  With snapshots, all coarse ones, by the schedule for so many.  Rounds: how deep loops are
 * nested, so that their tapes are shorter. */
typedef struct Remat {
    uint32_t fine, coarse, snapshots, rounds;
} Remat;

typedef struct PassContext {
    Arena *scratch;          /* temporaries of a pass; given back when it ends */
    Diag *diag;              /* the module's when NULL */
    bool freeze_params;      /* params that no update writes are constants */
    uint32_t lanes;          /* of f32 in a vector of the target; for layout */
    bool integers_as_floats; /* contractions of i32 that f32 adds up exactly are to be of f32; for promote */
    Remat remat;             /* for remat */
    bool dear;               /* exponentials and the like call another library: remat computes none again unasked */
    bool in_body;            /* the graph is a body of one that the pass has run on before */
    bool asks_gradients;     /* simplify: of the graph, or what is around it, some are still to be made */

    /* For the stages behind the passes, which the code generator brings: */
    const struct Target *target; /* NULL: kernels are numbered, but nobody says how they are computed */
    bool apart;                  /* fuse makes a kernel of every node, to test it against those of many */
    uint32_t streams;            /* the most that schedule may use; 1 on a CPU */
    bool keep_order;             /* schedule changes nothing but what kernels need */
    bool exact;                  /* every sum is of the products that the model says */
    bool copy_views;             /* fuse makes a kernel of its own of every view of a result */

    uint32_t changes; /* what the last pass did, in its own unit: nodes removed, values replaced, ... */
} PassContext;

/* Inference on a CPU: params frozen, one stream. */
static inline PassContext pass_context(Arena *scratch, Diag *diag)
{
    return (PassContext){.scratch = scratch, .diag = diag, .freeze_params = true, .lanes = 1, .streams = 1};
}

typedef struct PassRow {
    const char *name, *doc;
    bool (*run)(Graph *graph, PassContext *context); /* false after an error in the diag */
} PassRow;

extern const PassRow pass_table[];
extern const uint32_t pass_count;
const PassRow *pass_find(Str name); /* NULL when there is none */

/* What a compilation runs first, in order; ends with NULL.  Names may repeat. */
extern const char *const pass_pipeline[];

/* Runs the pass on the graph, and then on the bodies of its loops and branches, from the outside in (not of calls:
 * expand makes those part of the graph).  Passes that need another order take bodies along themselves, which leaves
 * nothing to do for the runs that follow.  Debug builds verify afterwards and report the pass that broke the graph. */
bool pass_run(const PassRow *pass, Graph *graph, PassContext *context);

/* What the reference evaluator can run: a clone without calls and gradients; NULL after an error in the module's diag.
 */
Graph *pass_reference(const Graph *graph);

/* What the function that is called says its gradient is, with all calls expanded but those of its kind: a clone. */
Graph *pass_expand_gradient(const Node *call, PassContext *context);

/* Calls of functions with gradients of their own, which expand leaves to the pass grad, replaced by their bodies. True:
 * some of these ask for gradients, and the calls in them are still there. */
bool pass_expand_rest(Graph *graph, PassContext *context);

#define PASS(NAME, doc) bool pass_##NAME(Graph *graph, PassContext *context);
#include "passes/pass.def"

#endif
