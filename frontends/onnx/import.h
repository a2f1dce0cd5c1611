/* Shared by the parts of the import.
 *
 * Every node is written as statements of .nnc, which are built at once (nnc/compose.h), so that the types of its
 * results are known when the next one is written.  A node all of whose operands are known is evaluated instead, in a
 * graph of its own: that is how arithmetic on shapes disappears. */
#ifndef NNC_ONNX_IMPORT_H
#define NNC_ONNX_IMPORT_H

#include "frontends/nnc/compose.h"
#include "onnx/onnx.h"
#include "onnx/tensor.h"

#define ONNX_FOLDED     65536 /* elements: what is larger is computed when running, or folded by a pass, ... */
#define ONNX_MOVED      ((int64_t)1 << 24) /* ... but weights of recurrent nodes that are moved */
#define COUNTED_RESULTS 4
#define ONNX_DEEPEST    12 /* graphs and functions inside each other */

typedef struct Onnx Onnx;
typedef struct OnnxBlock OnnxBlock;
typedef struct OnnxScope OnnxScope;
typedef struct OnnxNode OnnxNode;

typedef struct OnnxValue {   /* what a name of the model stands for */
    const Type *type;        /* of a tensor; NULL: see below */
    const char *name;        /* in the text; NULL while nothing declares it */
    const OnnxBlock *home;   /* that declares it; NULL: the outermost one, when it is used */
    const OnnxNode *maker;   /* that has computed it; NULL of inputs and of what is known */
    const Tensor *known;     /* its elements, when they are known while compiling */
    const char *wish;        /* of what is known: its name in the model */
    const Tensor *folded;    /* of what is computed of weights alone: its elements, as these are in the file */
    bool stored;             /* known as an initialiser */
    bool weight;             /* of floats, and trained, or computed of such: no constant */
    bool buffer;             /* an initialiser that the file says is none to be trained */
    int32_t narrow;          /* the type of ONNX that it has values of (narrow.h); 0: its own */
    bool bad;                /* an error has been reported */
    struct OnnxValue *count; /* so many entries along an axis are there, the rest is padding; NULL: all */
    uint32_t count_axis;
    bool whole;                    /* a count: it leaves out nothing, unless positions of a slice are out of range */
    int64_t most;                  /* a number that shapes may depend on: so large, as --at-most says; else 0 */
    struct OnnxValue *number;      /* that, or a sum of truths, as an i64[] once it counts entries of others; NULL */
    struct OnnxValue *const *item; /* of a sequence */
    uint32_t item_count;
    bool sequence, absent; /* absent: an optional without a value */
    bool left_out;         /* what a function's call does not give */
} OnnxValue;

/* Is it written as a param? */
static inline bool onnx_is_param(const OnnxValue *value)
{
    return value->stored && value->weight;
}

/* Its elements, where they follow from the file */
static inline const Tensor *onnx_elements(const OnnxValue *value)
{
    return value->known ? value->known : value->folded;
}

/* Do data say how many entries it has? */
static inline bool onnx_is_open(const OnnxValue *value)
{
    return value->count && !value->count->whole;
}

typedef struct OnnxLayer { /* a call of the library's that has params of its own */
    const char *label, *wish;
    bool given;                  /* the label is of the model's names for the weights */
    uint32_t count;              /* of params */
    const char **name, **wished; /* under either label */
    const Tensor **known;
} OnnxLayer;

typedef struct OnnxCalled { /* a call of a function of the model that is written out in the outermost block */
    const char *name;
    size_t begin, end; /* of its text */
    uint32_t outer;    /* the call that it stands in, or NONE */
} OnnxCalled;

struct OnnxBlock { /* a graph that is being built, and its text */
    OnnxBlock *outer;
    Text text;
    bool folding;         /* everything in it is known, and nobody reads its text */
    uint32_t numbers;     /* of names that nobody reads */
    OnnxValue **captured; /* named here, from a block around */
    uint32_t captured_count, captured_capacity;
    OnnxValue *round; /* of the body of a loop: counts its rounds; else NULL */
};

struct OnnxScope {    /* what names mean */
    OnnxScope *outer; /* NULL of the model's graph, and of a function */
    Map value;        /* to index into Onnx.value */
    const Onnx__OperatorSetIdProto *const *opset;
    size_t opset_count;
    const Map *uses;      /* how many operands each name is: of its graph with the bodies in it, or of its function */
    const OnnxNode *call; /* of a function: gives attributes; else NULL */
    const Onnx__FunctionProto *function;
    uint32_t depth;
};

typedef struct OnnxMost { /* --at-most */
    Str name;
    int64_t most;
    bool found;
} OnnxMost;

typedef struct OnnxFound {     /* by the name of an op */
    const struct OnnxRow *row; /* NULL: none, ... */
    bool too_early;            /* ... or of later opsets only */
} OnnxFound;

struct Onnx {
    Arena *arena;
    Diag *diag;
    Str path;
    const OnnxOptions *options;
    OnnxFiles files;
    Composer *composer;
    Module *module;
    const Onnx__ModelProto *model;
    OnnxBlock *block, *root; /* the innermost; the outermost */
    OnnxCalled *called;
    uint32_t called_count, called_capacity, calling; /* the one that is being written, or NONE */
    OnnxValue **value;
    uint32_t value_count, value_capacity;
    Map made;            /* names that are not the model's own */
    Map uses;            /* of initialisers, how many operands they are */
    Map inputs, outputs; /* of the model; inputs to their numbers */
    Map kinds;           /* what the file says initialisers are (weights.c) */
    Map read_as;         /* as what nodes read values (weights.c) */
    Map moved;           /* values that are only moved to be weights of recurrent nodes */
    Map carried;         /* outputs that are next values of states, to index into value */
    Map functions;       /* of the model, by domain, name and overload: the first of each */
    Map library;         /* results of functions of nnc, once a call asks for them */
    Map *function_uses;  /* the same of names in each function of the model */
    Map ops;             /* domain, name and opset of ops so far, to index into found */
    OnnxFound *found;
    uint32_t found_count, found_capacity;
    Map names;  /* of the text, all that are taken */
    Map labels; /* to index into layer */
    OnnxLayer **layer;
    uint32_t layer_count, layer_capacity;
    Map declared; /* params and constants of the text, to index into weight */
    const OnnxValue **weight;
    uint32_t weight_count, weight_capacity;
    OnnxValue **undeclared; /* known, and named by a body: declared before the next statement of the outermost block */
    uint32_t undeclared_count, undeclared_capacity;
    Map constants; /* by their elements, to index into constant */
    const OnnxValue **constant;
    uint32_t constant_count, constant_capacity;
    struct Refusal *refusal; /* what is not supported */
    uint32_t refusal_count, refusal_capacity, node_count, folds;
    struct OnnxJoined *joined; /* counts of what was put together, for others of the same counts */
    uint32_t joined_count, joined_capacity;
    struct OnnxScaled *scaled; /* counts that were made of others */
    uint32_t scaled_count, scaled_capacity;
    OnnxValue *runs; /* the state that counts them, where something is drawn */
    int64_t round;   /* of loops that are written out, that of the innermost and those around, as one number */
    int64_t work;    /* operations that may still be evaluated */
    bool *define_used;
    OnnxMost *bound;
    uint32_t bound_count;
    OnnxRenamed *renamed; /* inputs and results */
    uint32_t renamed_count, renamed_capacity;
    bool uneven_told;  /* of scales that runtimes read otherwise */
    bool named_by_ops; /* results of nodes: names without a path are none of the model's own */
    bool failed;       /* an error has been reported */
};

struct OnnxNode {
    Onnx *onnx;
    const Onnx__NodeProto *proto;
    const struct OnnxRow *row;
    const Onnx__FunctionProto *function; /* of the model, that it calls; or NULL */
    OnnxScope *scope;
    int64_t opset; /* of its domain */
    OnnxValue **in, **out;
    const char **out_name; /* in the text */
    const Tensor *
        *folded; /* results that are computed of weights alone, as these are in the file; NULL: there are none */
    uint32_t in_count, out_count;
    int32_t narrow;   /* the same of result 0 */
    OnnxValue *count; /* of the results that are marked in `counted` */
    uint32_t counted, count_axis[COUNTED_RESULTS];
    const char *rows;          /* of a recurrent layer: all steps, [steps, batch, directions * width]; NULL of others */
    bool covers;               /* it stands for several nodes of the model, which nobody reads then */
    bool lacks;                /* it has asked for an operand that is not there */
    const char *said;          /* in the text in place of its next statement, which means the same; NULL: that itself */
    const char *reason, *hint; /* why it is not supported */
};

/* One op, from an opset of its domain on.  `text` is for the handler, which writes the node; false after onnx_no, or
 * after an error. */
typedef struct OnnxRow {
    const char *op;
    int64_t since;
    bool (*write)(OnnxNode *node);
    const char *text;
    const char *domain; /* NULL: ONNX's own */
    bool lists;         /* takes sequences and optionals as they are */
} OnnxRow;

/* The families; op NULL ends each. */
extern const OnnxRow onnx_elementwise[], onnx_reduce[], onnx_contraction[], onnx_pool[], onnx_view[], onnx_gather[],
    onnx_resize[], onnx_normal[], onnx_recurrent[], onnx_control[], onnx_quantised[], onnx_constant[], onnx_sequence[],
    onnx_attention[], onnx_signal[], onnx_training[], onnx_scan[], onnx_contrib[], onnx_image[], onnx_bounded[],
    onnx_attention_more[], onnx_columns[], onnx_random[], onnx_learned[], onnx_trees[], onnx_qlinear[],
    onnx_contrib_attention[], onnx_contrib_cache[], onnx_contrib_state[], onnx_contrib_gates[], onnx_contrib_table[],
    onnx_supports[], onnx_experts[], onnx_activation[], onnx_branch[], onnx_contrib_same[], onnx_contrib_image[],
    onnx_contrib_bits[], onnx_contrib_rotary[], onnx_contrib_router[], onnx_contrib_delta[], onnx_contrib_varlen[],
    onnx_contrib_masked[];
/* The row for the node, by domain, op and opset; NULL with the reason set. */
const OnnxRow *onnx_find_row(Onnx *onnx, const char *domain, const char *op, int64_t opset, const char **reason);

/* errors.c: of the whole model; always false */
bool onnx_fail(Onnx *onnx, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* inputs.c: bound in the scope, with initialisers */
bool onnx_import_inputs(Onnx *onnx, OnnxScope *scope);

/* weights.c: which initialisers are trained */
void onnx_find_weights(Onnx *onnx);
void onnx_mark_initialiser(Onnx *onnx, OnnxValue *value); /* as a weight, or as what it is else */
bool onnx_learns(const OnnxNode *node); /* does it compute floats of weights alone, that are to stay so? */

/* moved.c: is what it gives a weight of a recurrent node, or moved to be one? */
void onnx_find_moved(Onnx *onnx);
bool onnx_is_moved(const OnnxNode *node);

/* carried.c: is the initialiser the first value of what the model gives back as NAME_next? */
bool onnx_is_carried(Onnx *onnx, const OnnxScope *scope, const char *name);
bool onnx_bind_carried(Onnx *onnx, OnnxScope *scope, const char *name, const Tensor *first);
/* Updates a state, if the output is the next value of one. */
bool onnx_update_carried(Onnx *onnx, OnnxValue *next, const char *name, bool *updated);

/* results.c */
typedef struct OnnxResults { /* of the text's graph */
    Str *name;
    uint32_t count, capacity;
} OnnxResults;
bool onnx_import_outputs(Onnx *onnx, const OnnxScope *scope, OnnxResults *results);

/* names.c */
void onnx_note_renamed(Onnx *onnx, const char *file_name, Str name);
const char *onnx_identifier(Onnx *onnx, const char *name); /* the name, or what is left of it */
const char *onnx_unique(Onnx *onnx, const char *name);     /* the same, unlike all others */
/* The same for what a node gives, which may have no name of the model's own: see onnx_find_naming. */
const char *onnx_unique_result(Onnx *onnx, const char *name);
void onnx_find_naming(Onnx *onnx);
bool onnx_can_be_named(Onnx *onnx, const char *name); /* does nothing else have it? */
/* `val_98`: what an exporter calls that for which the network has no name, so that it need not stay. */
bool onnx_is_number(Str name);

/* value.c */
OnnxValue *onnx_value_new(Onnx *onnx);
OnnxValue *onnx_known_value(Onnx *onnx, const Tensor *tensor, const char *wish);
void onnx_bind(OnnxScope *scope, Onnx *onnx, const char *name, OnnxValue *value);
OnnxValue *onnx_lookup(const OnnxScope *scope, const Onnx *onnx, const char *name);
OnnxValue *onnx_lookup_here(const OnnxScope *scope, const Onnx *onnx, const char *name);
/* How the text names the value in the current block: declared, captured or as a literal. */
const char *onnx_name_value(Onnx *onnx, OnnxValue *value);
const char *onnx_literal(Onnx *onnx, const Tensor *tensor); /* its first element, exactly: i64(3) */
bool onnx_write(Onnx *onnx, Str what, Str statements);      /* in the current block */
/* The same, but that the text says it in other words, of which a graph takes longer to build. */
bool onnx_write_said(Onnx *onnx, Str what, Str statements, Str said);
/* `state NAME: ..`, or `param`, whose elements are these. */
bool onnx_declare_kept(Onnx *onnx, const char *word, const char *name, const Tensor *first);

/* block.c */
OnnxBlock *onnx_block_open(Onnx *onnx, bool folding);
/* Forgets the graph; the text is the caller's until the arena goes. */
Str onnx_block_close(Onnx *onnx);
/* Imports nodes into the current block; false after errors or refusals. */
bool onnx_report_refusals(Onnx *onnx); /* false when there are any */
bool onnx_import_nodes(Onnx *onnx, OnnxScope *scope, Onnx__NodeProto *const *node, size_t count);
bool onnx_import_initialisers(Onnx *onnx, OnnxScope *scope, const Onnx__GraphProto *graph);
bool onnx_call_function(OnnxNode *node);

/* order.c: the nodes, each after those that it and its bodies read of, else in their order */
Onnx__NodeProto *const *onnx_in_order(Arena *arena, Onnx__NodeProto *const *list, size_t count);

/* module.c: the composed graph as text, and the module that this is; NULL after errors */
Module *onnx_finish(Onnx *onnx, const Graph *graph, const Str *result, Text *out);

/* library.c: of a call of the library's that is one again; NULL: it is none, or reads what it would not read there */
const OnnxRow *onnx_library_row(const OnnxNode *node);

/* identity.c: is the result an operand, or its elements in another shape?  False, and nothing is written: no. */
bool onnx_write_identity(OnnxNode *node);
bool onnx_is_filled(const OnnxNode *node, uint32_t i, double number); /* is it known, and all of it this number? */

/* cover.c: a node with the results of another, whose operands and attributes are to be set */
OnnxNode *onnx_cover(const OnnxNode *root, const char *op, int64_t opset, uint32_t operands);
OnnxNode *onnx_cover_of(const OnnxNode *root, const char *domain, const char *op, int64_t opset, uint32_t operands);
void onnx_set_operand(OnnxNode *node, uint32_t i, OnnxValue *value);
/* Its results are values of the root's own, under these names; NULL: nobody wants it. */
void onnx_name_results(OnnxNode *node, const char *const *name, uint32_t count);
void onnx_copy_attributes(OnnxNode *node, const OnnxNode *root); /* in place of its own */
bool onnx_write_cover(OnnxNode *root, OnnxNode *node);           /* false with the root's reason set */
void onnx_add_int(OnnxNode *node, const char *name, int64_t number);
void onnx_add_float(OnnxNode *node, const char *name, double number);
void onnx_add_ints(OnnxNode *node, const char *name, const int64_t *list, uint32_t count); /* which must stay */
void onnx_add_string(OnnxNode *node, const char *name, const char *text);                  /* the same */

/* learned.c: scores of classes and targets */
/* An attribute's numbers as a constant of f32 of the text; NULL: it has none, or not as many. */
/* The tensor that an attribute is; NULL: there is none, or it cannot be read. */
const Tensor *onnx_tensor_of(OnnxNode *node, const char *name);
const char *onnx_floats(OnnxNode *node, const char *name, uint32_t rank, const int64_t *dim);
const char *onnx_as_float(OnnxNode *node, uint32_t i); /* operand i as f32 */
/* What the transform of this name makes of scores; NULL with a reason. */
const char *onnx_transform(OnnxNode *node, const char *transform, const char *scores);
const char *onnx_post_transform(OnnxNode *node, const char *scores); /* NULL after onnx_no */
bool onnx_write_classes(OnnxNode *node, const char *scores, int64_t count);
/* One score, [n, 1], for two labels: the second one where it is above a number.  It is the share of that label, or what
 * speaks for it. */
bool onnx_write_two_classes(OnnxNode *node, const char *score, bool shares, const char *above);

/* guards.c: writes the op alone that export has put guards around, where they end here; false: nothing is written. */
bool onnx_write_unguarded(OnnxNode *node);

/* result_names.c */
const char *onnx_result_name(const OnnxNode *node, uint32_t i); /* in the model */
/* `mul_2` of a Mul that nnc itself has exported, or a name that another value has, too, need not stay. */
void onnx_note_result(OnnxNode *node, uint32_t i, Str name);

/* pick.c: `x[:, 3]`, and a reshape that drops the axis of which a slice has left one entry; false: it is another */
bool onnx_write_pick(OnnxNode *node, OnnxValue *x, int64_t axis, int64_t position);
bool onnx_write_picked(OnnxNode *node, const Shape *to);

/* einsum.c */
bool onnx_write_einsum(OnnxNode *node);

/* sparse.c: NULL with `*why` set */
const Tensor *onnx_sparse_tensor(Onnx *onnx, const Onnx__SparseTensorProto *sparse, const char **why);

/* random.c */
bool onnx_count_runs(Onnx *onnx); /* declares what counts them, where bodies of the model draw; false after errors */
bool onnx_draws(const Onnx__NodeProto *node); /* random numbers, as no constant does */
bool onnx_body_draws(const Onnx__GraphProto *body);
bool onnx_write_training_dropout(OnnxNode *node, double ratio);

/* bounded.c: values as large as data say */
bool onnx_check_counts(OnnxNode *node); /* of operands, whose counts results may have; false after onnx_no */
/* The count that the text calls so, of result `i` along an axis; it is one for all results of the node. */
void onnx_set_count(OnnxNode *node, const char *name, uint32_t i, uint32_t axis);
void onnx_take_counts(const OnnxNode *node);
typedef struct OnnxScale { /* (count * times + plus) / by, or 0 where that is below 0 */
    int64_t times, plus, by;
} OnnxScale;
/* A count that is made of another, as a value: the same one for the same scale.  NULL after onnx_no. */
OnnxValue *onnx_scaled_count(OnnxNode *node, OnnxValue *count, OnnxScale scale);
bool onnx_write_bounded_top_k(OnnxNode *node);
/* bounded_given.c: numbers of which --at-most says the most */
bool onnx_read_bounds(Onnx *onnx);
void onnx_note_bound(Onnx *onnx, const char *name, OnnxValue *value);
bool onnx_check_bounds(Onnx *onnx); /* has the model all of them? */

/* bounded_mask.c: makes of an operand one without count, or passes the count on; false where the op cannot */
bool onnx_mask_count(OnnxNode *node, uint32_t operand);
/* Makes positions in operand 0, which is counted along the axis that they go along, such from the begin. */
bool onnx_positions_of_counted(OnnxNode *node);
/* The operand with `number`, written in its dtype, behind its count */
bool onnx_mask_operand(OnnxNode *node, uint32_t operand, const char *number);
/* What is less than all numbers of a dtype, or more than all, as text */
const char *onnx_farthest(const OnnxNode *node, DType dtype, bool least);

/* bounded_alone.c: ops that compute each slice by itself; false where this one does not */
bool onnx_pass_alone(OnnxNode *node, uint32_t operand);

/* A number that has a bound, no larger than that; NULL in a body, or after errors. */
OnnxValue *onnx_bounded_number(Onnx *onnx, OnnxValue *value);
/* The count that NonZero or Compress by the same truths has found before in the block; NULL */
OnnxValue *onnx_count_found(const Onnx *onnx, const OnnxBlock *home, const OnnxValue *chooser);
/* What NonZero of the same has given before in this block; NULL */
OnnxValue *onnx_non_zero_found(const Onnx *onnx, const OnnxValue *x);

/* bounded_window.c: along an axis of the image.  May operand 0 have a count there, and the result one of its own? */
bool onnx_pass_convolved(OnnxNode *node, uint32_t operand, uint32_t axis);
bool onnx_pass_transposed(OnnxNode *node, uint32_t operand, uint32_t axis);
bool onnx_pass_largest(OnnxNode *node, uint32_t operand, uint32_t axis);
bool onnx_pass_averages(OnnxNode *node, uint32_t operand, uint32_t axis);
bool onnx_pass_repeated(OnnxNode *node, uint32_t operand, uint32_t axis);

/* bounded_shape.c: integers that nodes move about between shapes */
typedef struct OnnxExtent {
    int64_t most;     /* the number, or where there is a count the largest that it can be */
    OnnxValue *count; /* NULL: known */
} OnnxExtent;
bool onnx_find_extent(const OnnxValue *list, int64_t at, OnnxExtent *extent);
bool onnx_set_known_extents(OnnxNode *node); /* of a Gather that chooses known ones; false with nothing done */
bool onnx_write_counted_shape(OnnxNode *node, const int64_t *dim, uint32_t begin, uint32_t count);
bool onnx_write_counted_size(OnnxNode *node);
/* The extents that an operand lists: known, or those of a value with a count, which result 0 then has. */
bool onnx_known_extents(OnnxNode *node, uint32_t operand, const int64_t **dim, uint32_t *count);
bool onnx_write_counted_concat(OnnxNode *node, int64_t axis);
/* bounded_apart.c: is the position `at` of one list always so far behind that of another? */
bool onnx_find_distance(const OnnxValue *begin, const OnnxValue *end, int64_t at, int64_t *distance);
/* bounded_slice.c: of a Slice, are its ends computed when running?  It is as large as these say. */
bool onnx_slice_is_open(const OnnxNode *node);
bool onnx_write_open_slice(OnnxNode *node);
/* bounded_split.c: of a Split, are its parts as large as data say?  Each is, by itself. */
bool onnx_split_is_open(const OnnxNode *node, int64_t axis);
bool onnx_write_open_split(OnnxNode *node, int64_t axis);

/* join.c: the statements with calls inside each other, where that reads better.  Only names that are in `made` go. */
void onnx_join(Arena *arena, const Map *made, Str text, const Str *result, uint32_t results, Text *out);

/* layer.c: nodes as layers of the library, with params of their own */
typedef struct OnnxParam {
    uint32_t operand;
    const char *name; /* that the library gives it */
} OnnxParam;
void onnx_count_uses(Onnx *onnx);
const Map *onnx_uses_of(Onnx *onnx, const Onnx__FunctionProto *function);
const Onnx__FunctionProto *onnx_find_function(Onnx *onnx, const char *domain, const char *name, const char *overload);
bool onnx_owns(const OnnxNode *node, const OnnxParam *param, uint32_t count);  /* are all of them this node's alone? */
OnnxLayer *onnx_layer(OnnxNode *node, const OnnxParam *param, uint32_t count); /* its label is for the call */
const char *onnx_layer_wish(const OnnxNode *node, const OnnxParam *param, uint32_t count); /* for a label */
bool onnx_name_is_free(const OnnxNode *node, uint32_t operand); /* it is a number, or none that the text could have */
/* Are the params that the call has made those of the layer?  False after onnx_no. */
bool onnx_layer_fits(OnnxNode *node, const OnnxLayer *layer);

/* attributes.c: are they those that the op knows?  False after onnx_no. */
bool onnx_check_attributes(OnnxNode *node);

/* node.c: for handlers */
bool onnx_no(OnnxNode *node, const char *format, ...) __attribute__((format(printf, 2, 3))); /* always false */
const char *onnx_text(const OnnxNode *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool onnx_emit(OnnxNode *node, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool onnx_has(const OnnxNode *node, uint32_t i);
const char *onnx_in(OnnxNode *node, uint32_t i);
const char *onnx_widened(OnnxNode *node, uint32_t i); /* operand i; halves as f32 */
DType onnx_wide_dtype(const OnnxNode *node);          /* of operand 0; f32 for halves */
const Type *onnx_type(const OnnxNode *node, uint32_t i);
uint32_t onnx_rank(const OnnxNode *node, uint32_t i);
int64_t onnx_dim(const OnnxNode *node, uint32_t i, int64_t axis);
const Type *onnx_type_of(OnnxNode *node, const char *name); /* of what it has written */
OnnxValue *onnx_written(OnnxNode *node, const char *name);  /* that, as an operand of another */
bool onnx_wants(const OnnxNode *node, uint32_t i);          /* has the model a name for result i? */
const char *onnx_out(OnnxNode *node, uint32_t i);
/* Result `i`, where it is asked for, of the dtype of operand 0; f32 is rounded to it where that is of halves. */
bool onnx_put_rounded(OnnxNode *node, uint32_t i, const char *value);
const char *onnx_temp(OnnxNode *node, const char *word); /* another name, for what only this node uses */
/* A statement whose result only this node uses: that result's name, or as an operand of another; NULL after onnx_no */
const char *onnx_define(OnnxNode *node, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
OnnxValue *onnx_define_value(OnnxNode *node, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void onnx_set_known(OnnxNode *node, uint32_t i, const Tensor *tensor);
void onnx_set_value(OnnxNode *node, uint32_t i, OnnxValue *value); /* the same as this one */
bool onnx_set_ints(OnnxNode *node, uint32_t i, DType dtype, const int64_t *list, uint32_t count, bool scalar);

/* Attributes, or what stands for one that is left out */
const Onnx__AttributeProto *onnx_attribute(const OnnxNode *node, const char *name); /* NULL: left out */
int64_t onnx_int(const OnnxNode *node, const char *name, int64_t fallback);
double onnx_float(const OnnxNode *node, const char *name, double fallback);
const char *onnx_string(const OnnxNode *node, const char *name, const char *fallback);
bool onnx_ints(const OnnxNode *node, const char *name, const int64_t **list, uint32_t *count);

/* The elements of an operand that must be known: NULL after onnx_no. */
const Tensor *onnx_known(OnnxNode *node, uint32_t i);
/* An element as an integer: all of i64, and of u64 those that i64 has; 0 for a float that is none. */
int64_t onnx_int_at(const Tensor *tensor, int64_t k);
/* Its integers, in a list; false after onnx_no. */
bool onnx_known_ints(OnnxNode *node, uint32_t i, const int64_t **list, uint32_t *count);
/* Axes as an attribute, or from an opset on as operand 1: sorted out to be in [0, rank); false after onnx_no. */
bool onnx_axes(OnnxNode *node, int64_t operand_since, uint32_t rank, const int64_t **axes, uint32_t *count);
bool onnx_axis(OnnxNode *node, const char *name, int64_t fallback, uint32_t rank, int64_t *axis);

/* Is its first element a number that an attribute has, which is a double? */
bool onnx_is_attribute(const Tensor *tensor);
const char *onnx_list(const OnnxNode *node, const int64_t *list, uint32_t count); /* [1, 2] */
const char *onnx_number(const OnnxNode *node, DType dtype, double number);        /* 0.5; of integers 3 */
const char *onnx_scalar(const OnnxNode *node, DType dtype, double number);        /* f32(0.5) */
const char *onnx_known_list(OnnxNode *node, const int64_t *list, uint32_t count, const char *word); /* as a constant */
bool onnx_known_number(const OnnxNode *node, uint32_t i, double *number); /* one element, known */
bool onnx_is_constant(const OnnxNode *node, uint32_t i, double *number);  /* the same, and no weight */
Shape onnx_broadcast_shape(const OnnxNode *node);                         /* of all operands */

#endif
