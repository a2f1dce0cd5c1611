/* minimize: shared by build_minimize.c, which reads the statement, and those that find params and make its body. */
#ifndef NNC_FRONTENDS_NNC_BUILD_MINIMIZE_H
#define NNC_FRONTENDS_NNC_BUILD_MINIMIZE_H

#include "frontends/nnc/build_call.h"

typedef struct ReachedParam {
    const Graph *graph; /* that it is a value of: the frame's, or that of a call inside */
    ValueId value;
} ReachedParam;

typedef struct ReachedParams {
    ReachedParam *at;
    uint32_t count, capacity;
} ReachedParams;

typedef struct Minimize {
    Builder *b;
    const AstExpr *call; /* all of it */
    ValueId loss;
    Binder with, average; /* `average` has no function where none is written */
    Binder *through;
    uint32_t through_count;
    Const params; /* labels, a list of strings; C_NONE where none is written */
    const AstExpr *params_expr;
    ReachedParams trained, others;
} Minimize;

/* The params that a value of the current graph passes a gradient to, calls included, in the order of the text. */
ReachedParams build_reach(Builder *b, ValueId loss);
/* Of the calls in which there are params of a list the others that the value is made of, or that they update, such as
 * running means. */
ReachedParams build_reach_others(Builder *b, ValueId loss, const ReachedParams *trained);

/* build_minimize_params.c: `params = [...]`; and of those that the loss reaches what it leaves.  False after errors. */
bool build_read_params(Minimize *m, const AstExpr *expr);
bool build_choose_params(Minimize *m);

/* The sub-graph of the node, whose operands are `in`: the loss, then what the settings read.  NULL after errors. */
Graph *build_minimize_body(Minimize *m, const ValueId *in);

#endif
