/* From syntax tree to graphs: shared by the build_*.c files.
 *
 * A frame is one graph under construction: a `graph`, the body of a function for one call, or a body of a loop or a
 * branch.  Scopes nest inside a frame, one per round of a static loop.  Expressions evaluate to Things: constants,
 * which exist while building only, or values of the frame's graph. */
#ifndef NNC_FRONTENDS_NNC_BUILD_H
#define NNC_FRONTENDS_NNC_BUILD_H

#include "frontends/nnc/ast.h"
#include "frontends/nnc/text.h"
#include "ops/family.h"

#define MOST_STEPS 2000000u /* statements built, repetition included: chains of most ops compile in 1.5 GB */
#define COST_OF_OP 12       /* in statements: each may become a kernel; ... */
#define COST_OF_TILES                                                                                                  \
    22 /* ... and products and convolutions larger ones; loops of many lines have a limit of their own */
#define COST_OF_CALL  8 /* of a call, and of a round of a loop */
#define DEEPEST_CALL  64
#define DEEPEST_BUILD 1000                /* nesting of expressions and blocks over all frames */
#define DEEPEST_BODY  (DEEPEST_BLOCK - 2) /* through calls, too: the text of what they expand to can be read */
#define DEEPEST_USE   16
#define MOST_OPERANDS 65536

typedef enum ThingKind {
    THING_BAD, /* its error has been reported */
    THING_CONST,
    THING_VALUE,
    THING_MANY, /* the results of a node, or of a function; a list taken apart */
    THING_LIST, /* a list with a tensor in it, as `many`; its depth is in `c` */
} ThingKind;

typedef struct Thing {
    ThingKind kind;
    ValueId value;
    Const c;
    const struct Thing *many;
    uint32_t count;
    struct Room *room; /* of a list that has been appended to: more fits behind its items */
} Thing;

typedef struct Binding {
    Str name;
    Thing thing;
    Place place;
    const Tensor *tensor; /* a typed constant of the file, which becomes a value of each graph that uses it */
    Place given;          /* of its value on the command line; else nowhere */
} Binding;

typedef struct Scope {
    struct Scope *outer;
    Map map; /* name to index of binding */
    Binding *binding;
    uint32_t count, capacity;
    Str suffix;                  /* `.0.2` in rounds of loops: makes names of values unique */
    const struct Scope *carried; /* in a round: the names that go round; assigning others of outer scopes is an error */
} Scope;

typedef struct File {
    Str path;
    uint32_t source;
    Map functions; /* to index of `function` */
    const AstFunction **function;
    uint32_t function_count, function_capacity;
    Scope constants;
    struct File **used;
    uint32_t used_count, used_capacity;
} File;

typedef struct Wanted { /* the index that a temporary had in the text */
    ValueId value;
    uint32_t index;
} Wanted;

/* What the `yield` of a block gives. */
typedef struct Yield {
    Thing *thing;
    Place *place; /* of each */
    uint32_t count;
    bool done;
    Place at;
} Yield;

typedef struct Frame {
    struct Frame *caller;
    struct Frame *around; /* of a body: the frame whose graph its node stands in */
    uint32_t nesting;     /* of bodies, through calls */
    const char *advice;   /* of a body: what to do instead of assigning a name from around it */
    ValueId *own;         /* of a body: its inputs for what is carried, ... */
    ValueId *capture;     /* ... and the values of the graph around that are inputs after those; ... */
    uint32_t own_count, own_capacity, capture_count, capture_capacity;
    Map imported; /* ... what each value that was asked for is inside */
    Yield *yield; /* where a block gives values; else NULL */
    Graph *graph; /* NULL while the file's constants are evaluated */
    File *file;
    Scope *scope;
    Str prefix; /* of params: `fire2.`, empty in a graph */
    Str label;  /* the prefix without its dot */
    const AstName *callee;
    bool labelled;
    Place call;
    uint32_t depth;
    bool minimizes;           /* it says so, rightly or not */
    bool gives_on;            /* updates of its inputs are those of what they stand for in the caller's graph */
    bool guarded;             /* updates are made where a condition holds, ... */
    ValueId guard;            /* ... this bool[]; NONE until something asks for it: build_guard */
    Map scalars;              /* type and bits of a scalar constant, to its value */
    Map tensors;              /* name of a file's typed constant, to its value in this graph */
    Map updated;              /* value to index of the builder's update_place */
    const AstFunction *entry; /* of a graph itself; NULL in functions */
    Map given;                /* name of a result that is an input's, too, to the value that `<-` gives it */
    Wanted *wanted;
    uint32_t wanted_count, wanted_capacity;
} Frame;

typedef struct Asked { /* what minimize calls for each param, while the default of a setting is made for all of them */
    const AstExpr *call;
    const char *what, *as; /* `an optimiser`, `with` */
    const Frame *frame;    /* where that is made */
} Asked;

typedef struct Builder {
    Arena *arena, *scratch; /* of the module; of the tree */
    Arena scopes;           /* with what is bound in them: those of a call are given back behind it */
    Diag *diag;
    Module *module;
    File **file;
    uint32_t file_count, file_capacity;
    File **library; /* its files, which end with NULL; NULL: not read yet */
    Map files;      /* path to index */
    Str told;       /* the last error of a library call, ... */
    Place told_of;  /* ... and which */
    const Define *define;
    bool *define_used;
    uint32_t define_count;
    Map ops;    /* name to op code */
    Map params; /* full name to index of param_place, over one graph and all calls in it */
    Place *param_place;
    uint32_t param_count, param_capacity;
    Place *update_place;
    uint32_t update_count, update_capacity;
    Map shared; /* what a library function was given, to index of its body: build_share.c */
    const struct Callee **callee;
    uint32_t callee_count, callee_capacity;
    uint32_t label_reads;    /* that functions asked for the label of their call */
    struct Counted *counted; /* by defaults of optimisers, in any graph: build_minimize_body.c */
    uint32_t counted_count, counted_capacity;
    Map inside; /* names of bodies that have ended */
    Map failed; /* places with a reported error: silent when a loop or a second call comes by again */
    Frame *frame;
    const Asked *asked;           /* NULL */
    const AstStmt *stmt, *branch; /* that are being built: the innermost, and the innermost `if` around it */
    uint32_t steps, depth;
    uint32_t written;   /* bytes of text that the user has written: as many steps there may be in any case */
    bool exhausted;     /* a limit was hit: everything unwinds */
    bool syntax_errors; /* some statements are missing: silent about what they would have assigned */
    Text prelude;
} Builder;

/* build_scope.c */
/* Is what is wrong there the fault of who called the library? */
bool build_blames_call(const Builder *b, Place place);
bool build_complain(Builder *b, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* In the library, on a fraction that meets integers: an error of the user's call, once, that names its operand of
 * integers.  False where there is none, or no such call. */
bool build_complain_of_integers(Builder *b, Place place);
bool build_has_failed(const Builder *b, Place place);
bool build_in_library(const Frame *frame); /* is its function one of the library? */
void build_mark_failed_quietly(Builder *b, Place place);
void build_mark_failed(Builder *b,
                       Place place); /* an error was reported there: adds notes on the calls that led to it */
bool build_step(Builder *b, Place place, uint32_t cost); /* false when a limit is passed; a plain statement costs 1 */
bool build_go_deeper(Builder *b, Place place);           /* to be followed by b->depth-- when true */
Scope *build_scope_push(Builder *b);
void build_scope_pop(Builder *b);
Binding *build_scope_find(Scope *scope, Str name); /* in this scope only */
bool build_bind(Builder *b, Str name, Place place, Thing thing);
void build_rebind(Builder *b, Str name, Place place, Thing thing);
Binding *build_lookup(Builder *b, Str name); /* all scopes, then the constants of the file and of those it uses */
const AstFunction *build_find_function(const File *file, Str name);
Str build_name_text(Builder *b, const AstName *name); /* with interpolation; lives as long as the build */
/* `; did you mean 'stride'?`, or nothing, for the nearest of the names. */
typedef struct Nearest {
    Str wanted, best;
    uint32_t slips;
} Nearest;
void build_nearest_try(Nearest *nearest, Str candidate);
void build_nearest_parameter(Nearest *nearest, Str candidate); /* which may go by other names elsewhere */
Str build_nearest_show(Arena *arena, const Nearest *nearest);

/* build.c */
void build_start(Builder *b, Arena *arena, Arena *scratch, Diag *diag); /* a new module, without text so far */
void build_end(Builder *b);                                             /* the module has all that was built */
File *build_file(Builder *b, Str path, Str text);                       /* the one that a user has written */
const AstExpr *build_defined(Builder *b, const Define *define); /* the value of a -D flag; NULL after an error */

/* build_expr.c */
static inline Thing build_thing_bad(void)
{
    return (Thing){.kind = THING_BAD};
}
static inline Thing build_thing_const(Const c)
{
    return (Thing){.kind = THING_CONST, .c = c};
}
Thing build_thing_value(const Builder *b, ValueId value);     /* bad when the value has no type */
Thing build_bound(Builder *b, Binding *binding, Place place); /* what a name stands for in the current graph */
Thing build_eval(Builder *b, const AstExpr *expr);
bool build_as_const(Builder *b, Thing thing, Place place, Const *c); /* the same of what was evaluated */
bool build_eval_const(Builder *b, const AstExpr *expr, Const *c);    /* an error unless it is constant */
/* Of a tensor the message says what there is for those `instead`, unless NULL. */
bool build_eval_int(Builder *b, const AstExpr *expr, const char *what, const char *instead, int64_t *i);
Thing build_single(Builder *b, Thing thing, Place place); /* an error when it is several */
const Type *build_eval_type(Builder *b, const AstType *type, Str open_name);

/* build_body.c */
void build_body_enter(Builder *b, Frame *body, const char *advice); /* becomes b->frame */
void build_body_leave(Builder *b);
Frame *build_root(Frame *frame); /* of the graph or function that the body is a part of */
/* What is bound in a frame around, for use in the current one: values become inputs of the bodies between. */
Thing build_import(Builder *b, const Frame *home, Thing thing);
ValueId build_import_value(Builder *b, const Frame *home, Frame *frame, ValueId value);
/* An input of the current body for what is carried; `target` is its name, or NULL. */
ValueId build_carried_input(Builder *b, const AstTarget *target, const Type *type);
/* The block's yield, in the current frame; false after errors. */
bool build_yield_block(Builder *b, const AstBlock *block, Yield *yield);
void build_yield(Builder *b, const AstStmt *stmt);
/* Gives all bodies of a node the same inputs: their own, then everything that any of them captures, which is appended
 * to the operands.  Renumbers them: nothing may be built into them afterwards. */
void build_share_captures(Builder *b, Frame *body, uint32_t count, ValueId **in, uint32_t *in_count);
Thing build_results(Builder *b, NodeId node);

/* build_control.c, build_branch.c, build_scan.c */
Thing build_control(Builder *b, const AstExpr *expr);
Thing build_choice(Builder *b, const AstExpr *expr);
Thing build_case(Builder *b, const AstExpr *expr);
Thing build_scan(Builder *b, const AstExpr *expr);

/* build_literal.c */
ValueId build_scalar_value(Builder *b, DType dtype, const Const *c);
bool build_check_fits(Builder *b, const Const *c, DType dtype, Place place);
/* A value from a thing; a constant takes this dtype. */
bool build_as_value(Builder *b, Thing thing, DType dtype, Place place, ValueId *value);
const Tensor *build_tensor(Builder *b, const Const *c, const Type *type, Place place);

/* arith.c */
bool const_unary(Builder *b, TokenKind op, const Const *x, Place place, Const *result);
bool const_binary(Builder *b, TokenKind op, const Const *x, const Const *y, Place place, Const *result);
int64_t const_hash(Str s); /* what hash(s) is */
bool const_call(Builder *b, Str name, const Const *arg, uint32_t count, Place place, Const *result, bool *known);

/* build_op.c */
Thing build_op(Builder *b, OpCode op, const AstExpr *call);
Thing build_operator(Builder *b, OpCode op, Thing *operand, const Place *at, uint32_t count, Place place);
Thing build_node(Builder *b, OpCode op, const ValueId *in, uint32_t count, const Attr *attr, Place place);
bool build_attrs(Builder *b, OpCode op, const AstExpr *call, Attr *attr);
/* The call of an op without operands, with what the name stands for written out; NULL for another. */
const AstExpr *build_generator(Builder *b, Str name, const AstExpr *call, OpCode *op);

/* As op_build; what inference reports is shown at the user's own line first. */
ValueId build_value(Builder *b, OpCode op, const ValueId *in, uint32_t count, const Attr *attr, Place place);

/* build_list.c */
Thing build_list(Builder *b, const AstExpr *expr);
bool build_is_list(const Thing *thing);
Thing build_take_apart(Builder *b, Thing thing); /* a list as THING_MANY; all else as it is */
/* The tensors of results among which are lists, one by one, for names with types, as the printed form has them. */
Thing build_tensors_of(Builder *b, Thing thing);
Thing build_list_operator(Builder *b, TokenKind op, Thing x, Thing y, Place place);
Thing build_list_index(Builder *b, const AstExpr *expr, Thing base);
bool build_list_call(Builder *b, Str name, const AstExpr *call, Thing *result); /* enumerate, zip; false: another */

/* build_for.c */
void build_for(Builder *b, const AstStmt *stmt);

/* build_hint.c: notes that show how to write what was meant */
/* Is it i4 or u4?  Then it complains that these are no dtypes of expressions. */
bool build_of_four_bits(Builder *b, Str name, Place place);
Thing build_unknown_function(Builder *b, Str name, Place place);
void build_hint_assigned(Builder *b, Str name, const Binding *old);
void build_hint_shared(Builder *b);
void build_hint_given(Builder *b, const AstExpr *expr); /* a constant that a flag has set, or anything else */
Str build_hint_label(Builder *b,
                     const Frame *frame); /* for the call that made the frame: `name`, `dense{i}` in a loop */

/* build_dynamic.c */
Thing build_dynamic(Builder *b, OpCode op, const AstExpr *call);

/* build_view.c */
Thing build_index(Builder *b, const AstExpr *expr);

/* build_call.c */
Thing build_call(Builder *b, const AstExpr *call);

/* build_result.c */
typedef struct Results { /* of a function */
    const Thing *thing;  /* in the graph of the body */
    uint32_t count;
    bool constant; /* all of them, and the body has no outputs */
} Results;
/* Adds the results as outputs.  `results` is NULL for what gives no lists, and whose results are tensors: a graph. */
bool build_finish_results(Builder *b, const AstFunction *function, Results *results);
/* The results of the call that is this node; of none where all are constants. */
Thing build_results_of(Builder *b, const Results *results, const Node *node);

/* build_minimize.c */
void build_minimize(Builder *b, const AstStmt *stmt);

/* build_stmt.c */
bool build_in_body(const Frame *frame); /* of a loop or a branch, also through calls */
void build_block(Builder *b, const AstBlock *block);
void build_want_index(Builder *b, const AstName *name, ValueId value); /* a temporary keeps the index of its name */
Str build_value_name(Builder *b, Str name);                            /* in rounds of a static loop with its count */
bool build_check_type(Builder *b, Str name, const Type *found, const Type *wanted, Place place);

/* build_mark.c */
Str build_placement_text(Builder *b, const AstMark *mark, uint32_t count); /* `@gpu(0) @mem(sram)` */
void build_apply_marks(Builder *b, const AstStmt *stmt, Thing thing);      /* of a statement, to what it gives */

/* renumber.c */
void build_renumber(Builder *b);

#endif
