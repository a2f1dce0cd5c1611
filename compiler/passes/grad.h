/* Reverse mode over graphs, for the parts of the pass grad. */
#ifndef NNC_PASSES_GRAD_H
#define NNC_PASSES_GRAD_H

#include "ops/meaning.h"
#include "ops/reverse.h"
#include "passes/pass.h"

typedef struct Tape { /* of a loop; it carries its own values, the number of rounds, a tape for each, and one for each
                         kept value */
    uint32_t own, kept;
    const ValueId *value;  /* of the body, that are kept */
    const double *counter; /* per own value: what an integer that goes up by one each round begins with; else NAN */
    int64_t rounds;        /* how many there are; -1 where that is not known */
} Tape;

typedef struct GradPass {
    PassContext *context;
    Arena *arena; /* lasts as long as the pass */
    Map taped;    /* a loop with a tape, by graph and result 0, to which of these: */
    Tape *tape;   /* (a list) */
    uint32_t tape_count, tape_capacity;
    Map sums;        /* results of loops backward that add up from zero all that reaches a value, by graph and result */
    Map wanted;      /* values that some grad is with respect to: others see them as they are, no copies */
    Map prepared_at; /* what functions say their gradients are, to which of these: */
    Graph **prepared; /* (a list) the same as it is appended; NULL while it is made */
    uint32_t prepared_count, prepared_capacity;
} GradPass;

typedef struct Taped { /* a value that is not computed again */
    ValueId value, read;
} Taped;

typedef struct GradRequest {
    const ValueId *y, *seed; /* what is differentiated, and what reaches each, of its type */
    uint32_t y_count;
    const ValueId *wrt;
    uint32_t wrt_count;
    const Node *node;  /* that asks: what is built has its place and comes from the same call */
    const Taped *kept; /* values that gradients find elsewhere, as all nodes that read them do already */
    uint32_t kept_count;
} GradRequest;

/* Appends the nodes; gradient[i] is that of wrt[i], or NONE where nothing reaches it.  False after an error. */
bool grad_derive(GradPass *pass, Graph *graph, const GradRequest *request, ValueId *gradient);

/* All of the graph and of its bodies.  False after errors. */
bool grad_all(Graph *graph, PassContext *context);

/* grad_parts.c: all that reaches a value of that type, as one tensor; there is something. */
ValueId grad_put_together(Reverse *reverse, const Adjoint *adjoint, uint32_t count, const Type *type);

/* grad_sink.c: what gradients in bodies hang on outside is computed in the bodies. */
void grad_sink(Graph *graph, Arena *scratch);

/* grad_recompute.c: calls that are computed again when their gradients are asked for.  NULL where there are none. */
typedef struct Recompute Recompute;
Recompute *grad_recompute_open(GradPass *pass, Graph *graph, Arena *scratch);
/* The gradient of a value, when all that reads it has been asked; else NONE. */
typedef ValueId GradArrival(void *context, ValueId value);
/* Node n with operands and results as its gradient is to see them: where it stands in such calls, computed again once
 * the gradients of their results have arrived. */
Node grad_recomputed(Recompute *recompute, NodeId n, GradArrival *arrived, void *context);
/* No node comes from what the pass remat has put together any more. */
void grad_forget_remat(Graph *graph);

/* Loops whose rounds are bounded get a tape, on which each round writes what it begins with; map[v] is what has become
 * of the values there were.  What no gradient reads is dead, and goes with the pass dce. */
void grad_tape_loops(GradPass *pass, Graph *graph, ValueId *map);
/* The same for a loop that is made now. */
NodeId grad_append_loop(GradPass *pass, Graph *graph, const Loop *loop, const ValueId *in, const Node *node);
/* NULL where it has none. */
const Tape *grad_taped(const GradPass *pass, const Graph *graph, const Node *loop);
/* Keys of these maps. */
Str grad_key(Arena *arena, const Graph *graph, ValueId result);
/* A copy of a loop, in `to`, has a tape where the loop has. */
void grad_tape_copied(GradPass *pass, const Graph *graph, const Node *loop, const Graph *to, const Node *copy);
ValueId grad_write_slice(Reverse *reverse, ValueId tape, ValueId round, ValueId value);
ValueId grad_read_slice(Reverse *reverse, ValueId tape, ValueId round, const Shape *shape);
/* grad_keep.c: are there calls of which gradients compute again what they need? */
bool grad_has_checkpoints(const Graph *graph);
/* Values of the loop's body that are worth a tape, which that would be for so many rounds; how many. */
uint32_t grad_choose_kept(const Graph *graph, const Node *loop, int64_t rounds, Arena *scratch, const ValueId **value);
/* As graph_append_body; behind the outputs, out[] gets what has become of the values that are kept. */
void grad_append_keeping(Graph *graph, const Graph *body, const ValueId *value, uint32_t count, const ValueId *in,
                         ValueId *out);

/* grad_sums.c: for the body of a loop that goes back through rounds which are known to be so many. */
typedef struct GradRounds {
    int64_t count;         /* -1: not known, and nothing is found */
    const ValueId *number; /* values that are the number of the round: 0 in the first forward */
    uint32_t number_count;
} GradRounds;

/* Of a value that is zeros but for the round's slice along the first dimension, that slice; else NONE. */
ValueId grad_slice_of_round(const GradRounds *rounds, const Graph *graph, ValueId value);

typedef struct GradProduct { /* [depth, rows]^T * [depth, columns] */
    int64_t rows, depth, columns;
    ValueId first;  /* the input of the body that the first factor is a slice of */
    ValueId second; /* the second factor, but for its shape */
} GradProduct;

bool grad_product_of_slices(const GradRounds *rounds, const Graph *graph, ValueId value, GradProduct *found);
bool grad_is_same_slice(const Graph *graph, ValueId slice, const GradProduct *product);
/* The sum over all rounds, of the tensors whose slices the factors are. */
ValueId grad_build_product(Reverse *reverse, const GradRounds *rounds, const GradProduct *product, ValueId first,
                           ValueId second);

/* The node that is asked is a loop, or a branch. */
bool grad_reverse_control(GradPass *pass, Reverse *reverse);

#endif
