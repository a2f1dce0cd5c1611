/* How a function is called: what minimize, which calls its optimiser for each param, shares with calls in the text. */
#ifndef NNC_FRONTENDS_NNC_BUILD_CALL_H
#define NNC_FRONTENDS_NNC_BUILD_CALL_H

#include "frontends/nnc/build.h"

typedef struct Given { /* what a call gives to a parameter */
    Thing thing;
    bool present, by_name;
    Place place;
} Given;

typedef struct Binder {
    const AstFunction *function;
    const AstExpr *call;
    Str label;    /* instead of the call's, where it is not empty */
    Given *given; /* per parameter */
} Binder;

typedef struct Callee {
    Graph *body; /* NULL where all results are constants */
    Results results;
    Graph *gradient;      /* its own, empty until it is built, or NULL */
    const bool *updated;  /* per input of the body */
    uint32_t steps;       /* that it took to build */
    uint32_t label_reads; /* of it and of calls in it */
    uint32_t params;      /* in it, and in calls in it; their names begin with ... */
    Str prefix;           /* ... this */
    bool alike;           /* another call that is given the same has the same body, but for names of params */
} Callee;

typedef struct CallText { /* what is printed around the operands, under construction */
    Builder *b;
    ValueId *in;
    Str *before;
    uint32_t count;
    Text text; /* since the last operand */
} CallText;

/* Named arguments first; those by position fill the parameters that are left, in order. */
bool build_give_all(Builder *b, Binder *binder);
/* The call of the function with what is given. */
Thing build_call_given(Builder *b, Binder *binder);

/* What the names of its params begin with, before a dot */
Str build_call_label(Builder *b, const Binder *binder);
/* The frame of a call, which becomes b->frame, and in it the parameters as inputs of its graph. */
void build_enter_call(Builder *b, Frame *frame, const Binder *binder);
bool build_bind_formals(Builder *b, Binder *binder, const Graph *outer);

/* May the current graph update this?  A function may also what it is given, which is then its caller's. */
bool build_can_update(const Builder *b, ValueId value);
/* An update of a value of the current graph: an error where there is one already. */
bool build_claim_update(Builder *b, ValueId value, Str name, Place place);
/* Per input of the current graph: does it update that? */
const bool *build_updated_inputs(Builder *b);

/* The condition of updates in a guarded frame; in a function one more input, after all others. */
ValueId build_guard(Builder *b, Place place);
/* What becomes of a value by an update in the current frame: `next`, or where a guard does not hold, the value. */
ValueId build_guarded(Builder *b, ValueId value, ValueId next, Place place);

/* build_stmt.c: false, and an error, where the graph has a param or state of the name already. */
bool build_claim_param(Builder *b, Str full, Place place);

/* build_own.c: has it, or a call in it, params, states or updates? */
bool build_keeps_values(const Graph *graph);
/* The function's own gradient for what is given, into callee->gradient; inputs are the tensors that it takes, its
 * results, and what reaches those.  False after errors. */
bool build_own_gradient(Builder *b, Binder *binder, const Callee *callee);

/* build_share.c: what the call is given as bytes, which lie in the text; empty where it shares no body. */
Str build_share_key(Builder *b, const Binder *binder, Text *text);
/* The body that was built for it, or a copy with params of this call; false: it is to be built. */
bool build_share_find(Builder *b, const Binder *binder, Str key, Callee *callee);
void build_share_keep(Builder *b, Str key, const Callee *callee);

/* Tensors in what is given, and its text, in which they are operands. */
uint32_t build_operands_in(const Thing *thing);
void build_put_given(CallText *call, const Thing *thing);
Str build_take_text(CallText *call);

#endif
