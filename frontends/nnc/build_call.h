/* How a function is called: what minimize, which calls its optimiser for each param, shares with calls in the text. */
#ifndef NNC_FRONTENDS_NNC_BUILD_CALL_H
#define NNC_FRONTENDS_NNC_BUILD_CALL_H

#include "frontends/nnc/build.h"

typedef struct Given { /* what a call gives to a parameter */
    Thing thing;
    const Graph *graph; /* that a tensor is of; NULL: the caller's */
    bool present, by_name;
    Place place;
} Given;

typedef struct Binder {
    const AstFunction *function;
    const AstExpr *call;
    Given *given; /* per parameter */
} Binder;

typedef struct CallText { /* what is printed around the operands, under construction */
    Builder *b;
    ValueId *in;
    Str *before;
    uint32_t count;
    Text text; /* since the last operand */
} CallText;

/* Named arguments first; those by position fill the parameters that are left, in order. */
bool build_give_all(Builder *b, Binder *binder);
/* The function's body for what is given, under a label of its own or, where that is empty, the call's.  False after
 * errors; *body is NULL where all results are constants, which are then *constants. */
bool build_callee(Builder *b, Binder *binder, Str label, Graph **body, Thing *constants);

/* The frame of a call, which becomes b->frame, and in it the parameters as inputs of its graph. */
void build_enter_call(Builder *b, Frame *frame, const AstFunction *function, const AstExpr *call, Str label);
bool build_bind_formals(Builder *b, Binder *binder, const Graph *outer);

/* build_own.c: the function's own gradient for what is given; inputs are the tensors that it takes, its results, and
 * what reaches those.  NULL after errors. */
Graph *build_own_gradient(Builder *b, Binder *binder, const Graph *body);

/* Tensors in what is given, and its text, in which they are operands. */
uint32_t build_operands_in(const Thing *thing);
void build_put_given(CallText *call, const Thing *thing);
Str build_take_text(CallText *call);

#endif
