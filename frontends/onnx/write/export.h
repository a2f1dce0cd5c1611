/* Shared by the parts of the export.
 *
 * The model's own graph is walked once.  Each node becomes one node of ONNX or a few, said as an expression,
 * `Sub(Exp(x), 1)` (express.c); calls of the library that ONNX has an op for become that (layer.c), all others are
 * walked through as if they stood there.  What a node means comes from ops/meaning.h.  Where ONNX, or those who run
 * it, lack an op for a dtype, the node is computed in a wider one that gives the same bits. */
#ifndef NNC_ONNX_WRITE_EXPORT_H
#define NNC_ONNX_WRITE_EXPORT_H

#include "onnx/onnx.h"
#include "onnx/tensor.h"
#include "ops/meaning.h"

#define EXPORT_OPSET   21
#define EXPORT_IR      10
#define EXPORT_DOMAIN  "nnc"   /* of functions that the file brings along: those of the library, ... */
#define EXPORT_LOCAL   "local" /* ... and the model's own */
#define EXPORT_CALL    "call"  /* the attribute that says a call of the library as its text does */
#define EXPORT_DEEPEST 30      /* graphs inside each other: protobuf's readers take 100 messages, a graph is three */

typedef uint32_t ExportId; /* a tensor of the file, by its name */
#define EXPORT_LEFT_OUT 0  /* an operand that is not there, whose name is empty */

/* Sets of dtypes */
typedef uint32_t DTypeSet;
#define DTYPE_IN(dtype) (1u << (dtype))
#define SET_FLOAT       (DTYPE_IN(DT_F64) | DTYPE_IN(DT_F32) | DTYPE_IN(DT_F16)) /* bf16 is computed in f32 */
#define SET_WIDE        (DTYPE_IN(DT_I64) | DTYPE_IN(DT_I32))
#define SET_SIGNED      (SET_WIDE | DTYPE_IN(DT_I16) | DTYPE_IN(DT_I8))
#define SET_UNSIGNED    (DTYPE_IN(DT_U64) | DTYPE_IN(DT_U32) | DTYPE_IN(DT_U16) | DTYPE_IN(DT_U8))
#define SET_INT         (SET_SIGNED | SET_UNSIGNED)
#define SET_BOOL        DTYPE_IN(DT_BOOL)
#define SET_NUMBER      (SET_FLOAT | SET_INT)
#define SET_ALL         (SET_NUMBER | SET_BOOL | DTYPE_IN(DT_BF16))

typedef struct ExportCapture { /* what a function reads from around it: an input behind its operands */
    const Value *leaf;         /* a param or state; or NULL: */
    const Tensor *tensor;      /* ... a constant, ... */
    bool nibbles;              /* ... of 4 bits */
    ExportId id;               /* inside */
} ExportCapture;

typedef struct ExportScope { /* a graph, or a function, that is being written */
    struct ExportScope *outer;
    Onnx__NodeProto **node;
    uint32_t count, capacity;
    uint32_t depth;
    bool function;
    Map constant; /* in a function, by their text */
    /* Of a function itself: */
    Str path;    /* of its params, `layer1.norm.` */
    Map around;  /* names that are taken outside, ... */
    Map own;     /* ... those that values have there, ... */
    Map numbers; /* ... and where numbers go on there */
    ExportCapture *capture;
    uint32_t capture_count, capture_capacity;
    Map captured; /* leaves by name, to index into capture */
} ExportScope;

typedef struct ExportTensor {
    const char *name;
    const ExportScope *home; /* of the node that makes it, or NULL */
    const Tensor *known;     /* of a constant; NULL: it is computed */
} ExportTensor;

typedef struct ExportLeaf { /* a param or a state, by its full name */
    const Value *value;
    ExportId id; /* EXPORT_LEFT_OUT: nobody has asked for it */
    bool input;  /* kept between runs: an input, of which the initialiser is the default */
} ExportLeaf;

typedef struct ExportRefusal {
    Str title, op, reason, hint;
    Place place;
} ExportRefusal;

typedef struct Export {
    Arena *arena;
    Diag *diag;
    const Graph *graph; /* the outermost */
    Str path;           /* of what is read, for errors */
    ExportScope *scope;
    ExportTensor *tensor; /* by ExportId */
    uint32_t tensor_count, tensor_capacity;
    Map taken;    /* names, to the number that the next of that name gets */
    Map promised; /* of those the ones that outputs are to have, by where their text is */
    Map own;      /* names of values of the graph, or the function, that is being written, and how many have each */
    Map numbers;  /* of names that are made up, where to go on */
    Map constant; /* scalars and lists, by their text */
    Map leaf_at;  /* params and states, by name */
    ExportLeaf *leaf;
    uint32_t leaf_count, leaf_capacity;
    Onnx__TensorProto **initial;
    uint32_t initial_count, initial_capacity;
    bool flat;                      /* calls are written out */
    Onnx__FunctionProto **function; /* a function behind those that it calls */
    uint32_t function_count, function_capacity;
    uint32_t function_depth;
    Map function_at;    /* by their bytes, to index into function */
    Map function_named; /* domain and name, to the number that the next of that name gets */
    ExportRefusal *refusal;
    uint32_t refusal_count, refusal_capacity, node_count;
} Export;

typedef struct ExportFrame { /* a graph that is walked: the model's, a body, or the function of a call */
    Export *e;
    const Graph *graph;
    ExportId *id;      /* of each value, once it is made */
    const char **wish; /* names that values are to have, or NULL */
    Str prefix;        /* of names, `layer1.` */
    Str body;          /* of a body: of those of its names that are not alone, `layer1.y.` */
} ExportFrame;

typedef struct ExportNode {
    Export *e;
    const ExportFrame *frame;
    const Graph *graph;
    const Node *node;
    ExportId *in;      /* of the operands, all of them in the dtype that is computed in */
    ExportId *out;     /* of the results: the handler sets them */
    const char **wish; /* names of the results, not yet taken by anybody */
    DType dtype;       /* in which it is computed, and of numbers in expressions */
    const char *reason, *hint;
} ExportNode;

typedef bool ExportHandler(ExportNode *node); /* false after export_no, or an error */

/* names.c */
ExportId export_id(Export *e, const char *name);      /* a tensor with exactly this name */
ExportId export_id_near(Export *e, const char *name); /* with this name, or with a number behind it */
bool export_is_taken(const Export *e, const char *name);
void export_find_own(Export *e, const Graph *graph);      /* names of its values, and of those in its bodies */
bool export_is_alone(const Export *e, Str name);          /* has no other value this name? */
const char *export_made_up(Export *e, const char *name);  /* this or with a number: no value's own */
const char *export_promised(Export *e, const char *name); /* this or with a number: who wishes for that gets it */
const char *export_name(const Export *e, ExportId id);
const char *export_text(Export *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* constant.c */
ExportId export_scalar(Export *e, DType dtype, const char *number); /* as the text of the number */
ExportId export_list(Export *e, DType dtype, const int64_t *list, uint32_t count);
const char *export_list_name(Export *e, const Tensor *list); /* of short ones of integers; NULL: it is none */
ExportId export_tensor(Export *e, const Tensor *tensor, const char *name); /* a constant of the model; captured */
/* Integers of 4 bits without a sign, two to a byte, the low half first. */
ExportId export_nibbles(Export *e, uint8_t *bytes, uint32_t rank, const int64_t *dim, const char *name);
ExportId export_leaf(Export *e, const Value *value);                      /* a param or state */
ExportId export_array(Export *e, const Tensor *tensor, const char *name); /* what this name says, once */
Onnx__TensorProto *export_tensor_proto(Arena *arena, const Tensor *tensor, const char *name);
int32_t export_dtype(DType dtype); /* TensorProto.DataType */

/* proto.c */
Onnx__NodeProto *export_append(Export *e, const char *op, const ExportId *in, uint32_t in_count, const ExportId *out,
                               uint32_t out_count);
/* What the last node makes gets this name, when it is a part of what is to be called so: it is all of it. */
void export_rename_last(Export *e, ExportId id, const char *wish);
/* In all nodes, and bodies of these; recurses over their nesting */
void export_rename(Onnx__NodeProto *const *node, size_t count, const char *old, const char *name);
Onnx__AttributeProto *export_attribute(Export *e, Onnx__NodeProto *node, const char *name, int32_t type);
void export_attribute_int(Export *e, Onnx__NodeProto *node, const char *name, int64_t number);
void export_attribute_text(Export *e, Onnx__NodeProto *node, const char *name, Str text);
void export_attribute_graph(Export *e, Onnx__NodeProto *node, const char *name, Onnx__GraphProto *graph);
Onnx__ValueInfoProto *export_value_info(Arena *arena, const char *name, const Type *type);
void export_scope_open(Export *e, ExportScope *scope);
Onnx__NodeProto **export_scope_close(Export *e, size_t *count); /* its nodes */

/* sweep.c: what no output needs is removed, from the model with its functions, or a function as it is closed; the names
 * that are still used. */
void export_sweep(Export *e, Onnx__GraphProto *graph);
Map export_sweep_function(Export *e, Onnx__FunctionProto *function);
/* Of the domains that the nodes are of; none of a function when there are no nodes. */
Onnx__OperatorSetIdProto **export_opsets(Export *e, Onnx__NodeProto *const *node, size_t nodes, bool functions,
                                         size_t *count);

/* scope.c */
void export_function_open(Export *e, ExportScope *scope, Str path);
ExportScope *export_function_around(const Export *e); /* the one that is being written, or NULL */
ExportId export_captured(Export *e, ExportCapture capture, const char *name);
Onnx__FunctionProto *export_function_close(Export *e, const char *domain, const char *name, const ExportId *in,
                                           uint32_t in_count, const ExportId *out, uint32_t out_count);
void export_function_inputs(Export *e, Onnx__FunctionProto *function, const ExportId *in, uint32_t count);
void export_function_add(Export *e, Onnx__FunctionProto *function);
/* function.c; false, with nothing written: better not */
bool export_as_function(const ExportFrame *frame, const Node *call);

/* express.c: nodes as the text of an expression.
 *
 *   EXPR:  Op(EXPR, ...) {attribute = VALUE, ...}   a node; `@Op` is a function of EXPORT_DOMAIN
 *          x y z       operands 0, 1, 2 of the node at hand      $7     the tensor with this ExportId
 *          0.5 -inf    a scalar of the dtype at hand             i64:3  of another one
 *          [2, 3]      a list of i64                             i32[2] of another one
 *          _           an operand that is left out
 *   VALUE: an integer, a number with a point, [1, 2], 'text', a dtype, or f32:0.5: a tensor */
ExportId export_say(Export *e, DType dtype, const ExportId *operand, const char *result, const char *text);
/* For node handlers: a value, with a name of its own; result i. */
ExportId export_make(ExportNode *node, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool export_result(ExportNode *node, uint32_t i, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *export_ints(const ExportNode *node, const int64_t *list, uint32_t count); /* [1, 2] */
const char *export_number(const ExportNode *node, DType dtype, double number);        /* for an expression */
bool export_no(ExportNode *node, const char *reason, const char *hint);               /* always false */

/* graph.c */
void export_frame(ExportFrame *frame, Export *e, const Graph *graph, Str prefix); /* nothing of it is made yet */
void export_nodes(const ExportFrame *frame); /* all of them, into the current scope; refusals are noted */
const char *export_value_name(const ExportFrame *frame, ValueId v, const char *otherwise); /* that it should get */
ExportId export_value(const ExportFrame *frame, ValueId value); /* also constants and params */
/* The outputs of a body, each by a node of its own in the current scope. */
void export_outputs(const ExportFrame *frame, const ValueId *value, uint32_t count, ExportId *out);

/* The k first of x along an axis: values and positions (sort.c). */
void export_top_k(ExportNode *node, ExportId x, int64_t k, int64_t axis, bool largest, const ExportId out[2]);

/* One file for each family */
ExportHandler export_elementwise, export_cast, export_reduce, export_cumulate, export_sort, export_contract,
    export_pool, export_match, export_view, export_assemble, export_gather, export_dynamic, export_generate,
    export_draw, export_control;
/* The dtypes that a node's family is said in. */
bool export_elementwise_takes(const Node *node, DType dtype);
/* The function that makes a key of a key and a number: its text, of operands x and y. */
const char *export_fold_in(Export *e);

bool export_bits(ExportNode *node, DType to); /* bits.c: of operand 0, as those of another dtype */

/* quantise.c, integers.c, dynamic.c: the end of what ONNX has one op for; false: it is not. */
ExportHandler export_quantised, export_integers, export_dynamic_quantised;
const Node *export_maker(const Graph *graph, ValueId v, const char *op); /* if it is one of this op or function */
/* A scale or a zero point: a number, or a list along an axis of what has the shape `of`; with a conversion between or
 * not. */
typedef struct ExportSpread {
    ValueId list;
    int64_t axis; /* -1: a number */
} ExportSpread;
bool export_take_spread(const Graph *graph, ValueId v, const Shape *of, bool converted, ExportSpread *spread);
/* cast(clip(round(value) + zero)), cut off where the integer ends; zero may be NONE. */
typedef struct ExportRounded {
    ValueId value, zero;
} ExportRounded;
bool export_take_rounded(const Graph *graph, const Node *cast, ExportRounded *rounded);

/* The attributes of a convolution, as an expression has them. */
const char *export_window_words(const ExportNode *node, const Convolution *convolution);

/* window.c: an operand with a dimension for each axis of an access, `fill` where it is outside; with `brief` for those
 * alone that have more than one position. */
typedef struct Unfolding {
    Access access;
    Axis axis[MOST_AXES];
    uint32_t axis_count;
    double fill;
    bool brief;
    uint32_t order[MOST_AXES], rank; /* which axis each dimension is: set by export_unfold */
} Unfolding;
ExportId export_unfold(ExportNode *node, ExportId x, const Shape *shape, Unfolding *unfolding);

bool export_call(ExportNode *node); /* call.c: as one op; false, with nothing written: there is none */

/* arrays.c: calls that move elements about, for call.c. */
ExportHandler export_tile, export_gather_elements, export_gather_nd, export_depth_to_space, export_space_to_depth,
    export_roi_align;

/* nibbles.c: products with weights of 4 bits, for call.c. */
ExportHandler export_matmul_nibbles;

/* layer.c: the op for a call of the library; NULL: there is none. */
typedef struct ExportLayer ExportLayer;
const ExportLayer *export_find_layer(const ExportNode *node);
bool export_layer(ExportNode *node, const ExportLayer *layer);
/* A constant argument of the call, as its text has it: `, axis = 1, keep = true`; empty when it has none. */
Str export_argument(const Call *call, const char *name);
int64_t export_argument_int(const Call *call, const char *name, int64_t otherwise);  /* that, or its default */
Str export_argument_word(const Call *call, const char *name, const char *otherwise); /* without its quotes */
bool export_takes(const ExportNode *node, DTypeSet set); /* all operands are of these, and the first has elements */
ExportHandler export_recurrent; /* recurrent.c: lstm, gru and rnn; false: the call is none of these */

/* save.c */
OnnxExported export_save(Export *e, Onnx__ModelProto *model, const OnnxExport *options);

#endif
