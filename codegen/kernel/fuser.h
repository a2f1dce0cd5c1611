/* What fusion knows while it goes along, for its parts. */
#ifndef NNC_KERNEL_FUSER_H
#define NNC_KERNEL_FUSER_H

#include "ir/graph.h"
#include "target.h"

typedef enum KernelKind {
    KERNEL_MAP,    /* elementwise over `space` */
    KERNEL_ANCHOR, /* a window or contraction whose result has shape `space`, and its epilogue */
    KERNEL_ROWS,   /* reductions over the dimensions of `space` from row_rank on */
    KERNEL_ALONE,  /* joins nothing */
} KernelKind;

typedef struct Group {
    KernelKind kind;
    const Type *type; /* of the space; ROWS: the type of what is reduced */
    uint32_t row_rank, size;
    bool contraction; /* has one; its tiles store whole vectors */
    bool operand;     /* ... and computes an operand of it */
    bool elementwise; /* has no other nodes */
    uint32_t segment; /* of the nodes between two places where a body begins or ends */
} Group;

typedef struct Fuser {
    Graph *graph;
    Arena *arena;
    Group *group;
    uint32_t group_count, group_capacity;
    uint32_t *latest;     /* per value: the largest kernel it depends on, through views; NONE for none */
    const Target *target; /* or NULL */
    bool copy_views;
    Users users;
    const bool *live_out;
    const bool *joins; /* per node: it belongs to whoever reads it */
    uint32_t segment;  /* that the walk is in */
    uint32_t *ends;    /* per node: how many flow nodes come before */
    uint32_t *waits;   /* per value: how many nodes wait with its producer for the kernel of its user, or 0 */
    bool *late;        /* per value: late.h */
    bool *behind;      /* per value: a view of a late one, or of what waits for one */
    uint32_t flow;     /* the last kernel that a body begins or ends with; NONE */
} Fuser;

/* Of two kernels, each of which may be NONE. */
static inline uint32_t later_kernel(uint32_t a, uint32_t b)
{
    return a == NONE ? b : b == NONE ? a : a > b ? a : b;
}

static inline bool fuser_made_in(const Fuser *fuser, ValueId value, uint32_t kernel)
{
    const Node *node = value_producer(fuser->graph, value);
    return node && node->kernel == kernel;
}

/* fuse_window.c: does the node join the kernel: a pooling its convolution, where tiles keep a band of its rows; ... */
bool fuser_joins_pooling(const Fuser *fuser, const Node *node, uint32_t kernel);
/* ... a pointwise convolution the map that makes its image, or a depthwise one? */
bool fuser_joins_map(const Fuser *fuser, const Node *node, uint32_t kernel);
bool fuser_joins_depthwise(const Fuser *fuser, const Node *node, uint32_t kernel);

/* fuse_strip.c: kernels that become one which keeps a strip of rows between two products. */
void strip_join(Graph *graph, Arena *arena, const Target *target);

#endif
