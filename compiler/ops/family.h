/* What an op means: shape inference and reference evaluation, by family.  One file per family in this folder. */
#ifndef NNC_OPS_FAMILY_H
#define NNC_OPS_FAMILY_H

#include "base/map.h"
#include "ir/graph.h"
#include "ops/meaning.h"

typedef struct Reverse Reverse; /* reverse.h */

typedef struct FamilyRow {
    /* Sets the type of every result from the operands and attributes, or reports to the module's diag and returns
     * false.  Operand counts and attribute kinds are right already; operand types are present. */
    bool (*infer)(Graph *graph, NodeId node);
    /* Fills out[] (allocated, plain layout) from in[].  Never fails: inference has ruled out bad shapes. */
    void (*eval)(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out);
    /* Reverse mode; NULL where there are no gradients. */
    bool (*reverse)(Reverse *reverse);
} FamilyRow;

extern const FamilyRow family_table[FAMILY_COUNT];

/* How many results the op gives: split one per size, grad one for each operand but the first, all else one. */
uint32_t op_result_count(OpCode op, uint32_t operands, const Attr *attr);

/* Infers the types of the node's results.  Does nothing, and returns false, when an operand has no type (its error has
 * been reported).  Also checks the operand count, with a message that names the operands. */
bool op_infer(Graph *graph, NodeId node);

/* Checks the initialiser of a param or state against the type of what it fills. */
bool op_infer_initial(Graph *graph, ValueId value);

/* Adds a node and infers it.  `attr` may be NULL for the defaults.  Result 0, whose type is NULL after a reported
 * error. */
ValueId op_build(Graph *graph, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr, Place place);
/* A loop and a branch (meaning.h), whose sub-graphs become the node's. */
NodeId op_build_loop(Graph *graph, const Loop *loop, const ValueId *in, Place place);
NodeId op_build_choice(Graph *graph, const Branches *branches, const ValueId *in, Graph *const *sub, Place place);
ValueId op_build1(Graph *graph, OpCode op, ValueId x, Place place);
ValueId op_build2(Graph *graph, OpCode op, ValueId x, ValueId y, Place place);

/* Can a gradient of the node's results reach this operand? */
bool op_passes_gradient(const Graph *graph, const Node *node, uint32_t operand);

/* The reference evaluator: runs a graph directly.  The oracle of the tests, the engine of constant folding. */

/* The elements of a constant, param or state: stored, or from its initialiser (kept in value->data afterwards). */
const Tensor *eval_data(Graph *graph, ValueId value);
/* One node; operands as tensors; results are allocated in the arena. */
void eval_node(const Graph *graph, NodeId node, Arena *arena, const Tensor *const *in, Tensor **out);
bool eval_node_within(const Graph *graph, NodeId node, Arena *arena, const Tensor *const *in, Tensor **out,
                      int64_t *work); /* as eval_graph_within */
/* The whole graph.  input[i] must have the type of graph->input[i]; fills output[0 .. output_count).  New values of
 * updated params and states go to updated[0 .. update_count) when it is not NULL.  Intermediate tensors are freed as
 * soon as their last user has run. */
void eval_graph(Graph *graph, Arena *arena, const Tensor *const *input, const Tensor **output, const Tensor **updated);
/* The same, as long as *work lasts, which counts down scalar operations and elements, about; NULL: whatever it takes.
 * False when it ended: there are no outputs then. */
bool eval_graph_within(Graph *graph, Arena *arena, const Tensor *const *input, const Tensor **output,
                       const Tensor **updated, int64_t *work);

/* What graphs keep between runs: new values of states and params, by name.  Starts with its arena set and all else
 * zero; `known` has the same arena. */
typedef struct EvalMemory {
    Arena *arena;
    Map known;
    const Tensor **tensor;
    uint32_t count, capacity;
} EvalMemory;

/* The graph with what was kept so far; its updates are kept for the next run.  Its own first values stay as they are.
 */
void eval_run(EvalMemory *memory, Graph *graph, const Tensor *const *input, const Tensor **output);

/* How far from the evaluator's each output may be where rounding and the order of sums differ, relative to its largest
 * element: by the narrowest dtype that it was computed through.  0 for integers and bools.  `input`, when not NULL,
 * says so of the inputs. */
void eval_tolerance(const Graph *graph, Arena *arena, const double *input, double *output);

#endif
