/* The IR: a graph of values (tensor symbols) and nodes (op instances) in SSA form, addressed by 32-bit index.
 *
 * The order of `node` is a schedule: every node stands after the producers of its operands.  Passes that move nodes
 * keep that.  A value has one producer: a node, or its role.  Everything a graph points to lives in its module's arena.
 * Nothing may recurse over the depth of a graph (a million nodes are legal); sub-graph nesting may be recursed. */
#ifndef NNC_IR_GRAPH_H
#define NNC_IR_GRAPH_H

#include "base/diag.h"
#include "ir/op.h"

#define NONE UINT32_MAX /* no value, no node, no kernel */

typedef uint32_t ValueId;
typedef uint32_t NodeId;
typedef struct Graph Graph;
typedef struct Module Module;

/* A tensor's elements in the module's arena or in a mapped weights file; always plain layout, row-major, little-endian,
 * aligned at least to the element.  bf16 and f16 are held as their bits, bool as one byte 0 or 1. */
typedef struct Tensor {
    const Type *type;
    void *data;
} Tensor;

typedef enum Role {
    ROLE_RESULT, /* of a node */
    ROLE_INPUT,
    ROLE_PARAM, /* trained, read-only at inference: from the weights file, else from its initialiser */
    ROLE_STATE, /* kept between runs */
    ROLE_CONST, /* elements written in the text, or folded */
} Role;

typedef struct Value {
    const Type *type; /* NULL while inference has failed: errors are not repeated for its users */
    Str name;         /* empty for a temporary, which prints as %<index> */
    Role role;
    NodeId node; /* ROLE_RESULT: the producer, and which of its results this is */
    uint32_t result;
    NodeId initial; /* PARAM and STATE: a node of FAMILY_GENERATE outside the schedule (in Graph.initial), or NONE */
    const Tensor *data; /* CONST: always; PARAM and STATE: when stored or materialised */
    uint32_t bits;      /* PARAM and CONST: of its elements, where the text says fewer than the dtype has: 4; else 0 */
    bool drawn;         /* PARAM and STATE: `data` is what the initialiser gives */
    bool trained;       /* the text calls it a param, and some entry updates it: a STATE; or a PARAM, in a graph that
                           reads what was packed of it */
    ValueId inplace;    /* takes over the memory of this value, which dies at its producer; NONE */
    NodeId owner;       /* PARAM and STATE made inside a call that is not expanded yet: that call, else NONE */
    Str placement;      /* as written: `@gpu(0)`, `@mem(sram)`; empty when nothing was asked */
    Place place;
} Value;

/* An attribute's value, in the order of its op's AttrSpec list.  Defaults are filled in by the builder. */
typedef struct Attr {
    int64_t i; /* INT, BOOL, DTYPE, and the number of INTS */
    double f;  /* FLOAT */
    const int64_t *ints;
    Str s;
} Attr;

/* What the text said of a call: the composite's name, its label and its constant arguments, so that it prints again. */
typedef struct Call {
    Str name, label;
    const Str *before;      /* per operand, what stands between the one before and it: `, `, `, mask = `, `xs = [` */
    Str rest;               /* what stands after the last one: `, axis = 1` */
    bool library;           /* its function is one of nn.nnc */
    bool checkpoint;        /* gradients compute again what they need of it, from its operands */
    bool kept;              /* ... but not of this one, which stands in such a call: the pass remat puts nodes in it */
    struct Graph *gradient; /* what its function says that is (node_has_gradient), or NULL */
} Call;

/* A call that expand has replaced by its body, for those who name what came of it; between the passes remat and grad
 * also nodes that are to be computed again, as if a call of them were checkpointed: its name is empty. */
typedef struct Inlined {
    const Call *call;
    uint32_t outer; /* the call in whose body it stood, or NONE */
    Place place;    /* where it stood */
} Inlined;

/* How a kernel is to be computed: `tiled, pixels = 14`.  What the words mean is up to who generates its code. */
typedef struct Knob {
    Str name;
    int64_t value;
    bool flag; /* on, and written by its name alone */
} Knob;

typedef struct KernelMark {
    Str provider;
    const Knob *knob;
    uint32_t knob_count;
    uint32_t number;          /* of the kernel in the text ... */
    const struct Graph *body; /* ... of this body, or of the graph itself */
    Place place;              /* where a user has written it; nowhere when it was chosen */
} KernelMark;

void kernel_mark_put(Text *out, const KernelMark *mark); /* `tiled, pixels = 14, rows` */

typedef struct Node {
    OpCode op;
    uint32_t in_count, out_count, sub_count;
    ValueId *in, *out;
    const Attr *attr;       /* op_attr_count(op) of them */
    Graph **sub;            /* CONTROL: sub-graphs; call has one, whose inputs are the operands in order; of while and
                               case see op.def */
    const Call *call;       /* OP_CALL, OP_MINIMIZE: what the text says */
    uint32_t from;          /* the call whose body it comes from, in Graph.inlined, or NONE */
    uint32_t kernel;        /* nodes of one number form one kernel; set by fuse; NONE before */
    const KernelMark *mark; /* of its kernel, at one node of it; else NULL */
    bool joined;            /* its kernel computes it wherever it reads it, and keeps it nowhere; set by fuse */
    uint8_t part;           /* of its kernel, where that goes by strips (kernel/lower/strip.h); else 0; set by fuse */
    uint32_t stream;        /* set by schedule */
    bool dead;              /* removed; graph_compact drops it */
    Place place;
} Node;

typedef struct Update { /* `target <- source` at the end of a run */
    ValueId target, source;
    Place place;
} Update;

typedef struct Output {
    ValueId value;
    Str name; /* of the signature: the value may have another, or be an input or a constant */
} Output;

struct Graph {
    Module *module;
    Str name;
    Value *value;
    Node *node;    /* the schedule */
    Node *initial; /* initialisers of params and states: no operands, one result type, `out` empty */
    ValueId *input;
    Output *output;
    Update *update;
    Inlined *inlined;
    uint32_t value_count, node_count, initial_count, input_count, output_count, update_count, inlined_count;
    uint32_t value_capacity, node_capacity, initial_capacity, input_capacity, output_capacity, update_capacity,
        inlined_capacity;
    Str placement; /* as of values */
    Place place;
};

struct Module {
    Arena *arena;
    Diag *diag;
    TypeTable types;
    Graph **graph;
    uint32_t graph_count, graph_capacity;
    Str *file; /* the paths that it was read from, those of imports first; each followed by a zero byte */
    uint32_t file_count, file_capacity;
    Str prelude; /* the source of uses, constants and functions, printed again while calls remain */
};

Module *module_new(Arena *arena, Diag *diag);
void module_add_file(Module *module, Str path);
const Type *module_type(Module *module, DType dtype, const Shape *shape, Layout layout);
const Type *module_plain_type(Module *module, DType dtype, uint32_t rank, const int64_t *dim);

/* Reading.  Pointers are good until the graph grows. */
static inline Value *graph_value(const Graph *graph, ValueId id)
{
    return &graph->value[id];
}
static inline Node *graph_node(const Graph *graph, NodeId id)
{
    return &graph->node[id];
}
static inline const Type *value_type(const Graph *graph, ValueId id)
{
    return graph->value[id].type;
}
static inline const Shape *value_shape(const Graph *graph, ValueId id)
{
    return &graph->value[id].type->shape;
}

/* As what the text declares it: one that is trained is a param there, whatever keeps it. */
static inline Role value_declared(const Value *value)
{
    return value->trained ? ROLE_PARAM : value->role;
}

/* The producer, or NULL for inputs, params, states, constants and results of nodes that are gone. */
static inline Node *value_producer(const Graph *graph, ValueId id)
{
    const Value *value = &graph->value[id];
    return value->role == ROLE_RESULT && value->node != NONE ? &graph->node[value->node] : NULL;
}

/* A constant of one element that a double holds exactly (i64 goes beyond); true and its number. */
bool value_is_number(const Graph *graph, ValueId id, double *number);
/* The name, or %<index> for a temporary. */
Str value_show(const Graph *graph, ValueId id);
/* The type as the text declares it: i4[8] where the elements are of 4 bits. */
void value_print_type(Text *out, const Value *value);
/* The same for people who look for it in the model: a temporary after the calls that it comes from, stage1.block0.%12.
 */
Str value_title(const Graph *graph, ValueId id);

static inline bool node_is_call(const Node *node)
{
    return node->op == OP_CALL;
}

static inline bool node_is_minimize(const Node *node)
{
    return node->op == OP_MINIMIZE;
}

/* A call of a function with a gradient of its own: a graph of the operands, the results, and what reaches those.  Calls
 * share it, and may stand in it themselves; so walks over nodes do not go there. */
static inline bool node_has_gradient(const Node *node)
{
    return node->op == OP_CALL && node->call->gradient;
}

/* A loop or a branch: its sub-graphs are part of this graph, and a graph's params and states are not in them, but
 * captured.  A call's sub-graph stands alone until expand. */
static inline bool node_has_bodies(const Node *node)
{
    return node->op == OP_WHILE || node->op == OP_CASE;
}

/* Building. */
Graph *graph_new(Module *module, Str name);
ValueId graph_add_value(Graph *graph, Role role, const Type *type, Str name, Place place);
ValueId graph_add_input(Graph *graph, const Type *type, Str name, Place place);
ValueId graph_add_const(Graph *graph, const Tensor *data, Str name, Place place);
ValueId graph_add_scalar(Graph *graph, DType dtype, double number);
void graph_add_output(Graph *graph, ValueId value, Str name);
void graph_add_update(Graph *graph, ValueId target, ValueId source, Place place);

/* Appends a node with its results; types are set by op_infer (ops/family.h).  `attr` holds one entry per AttrSpec
 * (attr_defaults fills a list); operands and attributes are copied. */
NodeId graph_add_node(Graph *graph, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr,
                      uint32_t out_count, Place place);
/* The same outside the schedule, as an initialiser. */
NodeId graph_add_initial(Graph *graph, OpCode op, const Attr *attr, Place place);
/* Writes the defaults of the op into attr[op_attr_count(op)]; required ones are left zero. */
void attr_defaults(OpCode op, Attr *attr);
static inline bool attr_is_list(AttrKind kind)
{
    return kind == ATTR_INTS || kind == ATTR_PAD;
}
uint32_t attr_index(OpCode op, Str name);        /* NONE when there is none */
bool node_alike(const Node *a, const Node *b);   /* the same op with equal attributes, whatever the operands */
void node_attr_key(const Node *node, Text *key); /* appends its attributes as bytes of a key: equal for equal ones */

/* Rewriting. */
void graph_replace(Graph *graph, const ValueId *map); /* every use of v becomes map[v]: operands, outputs, updates */
/* A copy that passes can change: values, nodes, their lists of operands, and bodies of loops and branches are its own;
 * types, attributes, elements and bodies of calls are shared. */
Graph *graph_clone(const Graph *graph);
/* Appends a node made elsewhere, whose results are values of the graph, to the schedule. */
void graph_append_node(Graph *graph, const Node *node);
/* Appends copies of a body's nodes and constants; its input i is the value in[i], its output i becomes out[i].  Bodies
 * inside are cloned. */
void graph_append_body(Graph *graph, const Graph *body, const ValueId *in, ValueId *out);
/* An error of a pass at the node, or where that stands in the library at the call that led there, with a note for the
 * node, and notes for the calls around.  Always false. */
bool node_error(const Graph *graph, const Node *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
void graph_compact(Graph *graph); /* drops dead nodes; keeps the order of the rest */
/* Users of each value as lists: users of v are user[first[v]] ... user[first[v + 1] - 1], ascending. */
typedef struct Users {
    uint32_t *first;
    NodeId *user;
} Users;
Users graph_users(const Graph *graph, Arena *arena);
bool graph_has_bodies(const Graph *graph); /* Has it a loop or a branch? */
/* Is it an output or the source of an update? One flag per value. */
bool *graph_live_out(const Graph *graph, Arena *arena);

Tensor *tensor_new(Arena *arena, const Type *type);
double tensor_number(const Tensor *tensor, int64_t index);
/* Are they bytes, all of which 4 bits hold: from -8 to 7, or without a sign from 0 to 15? */
bool tensor_fits_nibbles(const Tensor *tensor);
void tensor_set_number(Tensor *tensor, int64_t index, double number);

/* bf16 and f16 as held in tensors. */
float dtype_f16_to_f32(uint16_t bits);
uint16_t dtype_f32_to_f16(float x); /* round to nearest even */
float dtype_bf16_to_f32(uint16_t bits);
uint16_t dtype_f32_to_bf16(float x);

#endif
