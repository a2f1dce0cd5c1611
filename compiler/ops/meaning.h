/* What nodes mean, in one normal form per family.  Code generation and passes ask here, and read no attribute.
 *
 * All of these take for granted that inference has accepted the node; positions and extents are those of logical
 * shapes, whatever the layout.  A form holds no pointers into the graph and needs no freeing. */
#ifndef NNC_OPS_MEANING_H
#define NNC_OPS_MEANING_H

#include "ir/graph.h"
#include "ir/word.h"

/* Contractions: result = sum over some axes of first * second (+ bias).
 *
 * An axis is a loop.  Where an element of a tensor is read or written is affine in the axes, one sum per dimension:
 *     position[d] = (begin[d] + sum over axes a of factor[d][a] * a) / divisor[d]
 * What is outside of the tensor, or where the divisor leaves a rest, reads as 0.  A divisor above 1 is a transposed
 * convolution, or the gradient of one with strides.
 *
 * The result's own access meets each element once: it begins at 0, divides by 1, and the axes of a dimension are the
 * digits of its position, the first axis the highest (groups, then output channels of a group). */

typedef enum AxisRole {
    AXIS_BATCH,  /* in the result and in both operands, which may be the same for all: leading dimensions, images,
                    groups */
    AXIS_ROW,    /* in the first operand and the result: rows of a matrix, pixels */
    AXIS_COLUMN, /* in the second operand and the result: columns of a matrix, output channels */
    AXIS_SUM,    /* summed, in both operands: k, input channels of a group */
    AXIS_TAP,    /* summed: positions of a sliding window */
} AxisRole;

#define MOST_AXES 20 /* a convolution over six dimensions: images, groups, two of channels, rows and taps */

typedef struct Axis {
    AxisRole role;
    int64_t extent;
} Axis;

typedef struct Access {
    uint32_t rank;
    int64_t begin[MAX_RANK], divisor[MAX_RANK];
    int64_t factor[MAX_RANK][MOST_AXES];
    bool guarded[MAX_RANK]; /* some positions are outside, or have a rest */
} Access;

typedef struct Contraction {
    uint32_t axis_count;
    Axis axis[MOST_AXES];         /* batches, rows and columns as the result has them, then sums, then taps */
    Access first, second, result; /* operands 0 and 1 of the node */
    bool has_bias;                /* operand 2, one number per ... */
    uint32_t bias_dimension;      /* ... position in this dimension of the result */
    DType element, sum;           /* of the operands; what products are added in: f32 for f16 and bf16 */
} Contraction;

bool node_is_contraction(const Graph *graph, const Node *node);
Contraction contraction_of(const Graph *graph, const Node *node);
/* The product of the extents of all axes with this role. */
int64_t contraction_extent(const Contraction *contraction, AxisRole role);

/* What a contraction is, seen as a convolution: an image of `rank` spatial dimensions, for kernels that know windows.
 * Of a matmul, or where the axes do not fit this picture, false. */
typedef struct WindowDimension {
    int64_t in, out; /* extents of the image and of the result */
    int64_t size, stride, dilation;
    int64_t before, after; /* padding; the last window may stick out beyond it, where nothing is */
} WindowDimension;

/* A sliding window over the last `rank` dimensions of [n, channels, ...]. */
typedef struct Window {
    uint32_t rank;
    WindowDimension dim[MAX_RANK];
} Window;

typedef struct Convolution {
    Window window;
    int64_t images, groups, channels, outputs; /* channels and outputs of all groups together */
} Convolution;
bool node_is_convolution(const Node *node); /* neither transposed nor a gradient */
bool convolution_of(const Graph *graph, const Node *node, Convolution *convolution);
/* How many neighbouring groups of few outputs are computed together, as one of all their channels and outputs, so that
 * the outputs fill a vector of `lanes`.  1: each alone; 0: vectors and groups do not fit. */
int64_t convolution_joined_groups(const Convolution *convolution, int64_t lanes);
/* Is it pointwise, with strides, so that it sees only some pixels of its image? */
bool convolution_skips_pixels(const Convolution *convolution);
/* Lets such a convolution take a slice of its image, of which it sees all: the new node, appended to the graph. */
NodeId convolution_see_all(Graph *graph, NodeId convolution);
/* The convolution of operand 0 of whose weight the node gives the gradient. */
bool convolution_weight_gradient_of(const Graph *graph, const Node *node, Convolution *convolution);

/* Of a convolution, or of a transposed one, the results at begin + step * i in each dimension, as a convolution of
 * operand 0 by some taps of the weight: its tap j reads the weight's tap_begin + tap_step * j.  A transposed
 * convolution has a phase for each remainder of its strides (Dumoulin and Visin, arXiv 1603.07285, section 4); there
 * the weight is [channels, outputs], the taps come in reverse, and a phase that no tap reaches has one whose windows
 * see nothing. */
typedef struct ConvolutionPhase {
    Convolution conv;
    bool transposed;
    int64_t begin[MAX_RANK], step[MAX_RANK], tap_begin[MAX_RANK], tap_step[MAX_RANK];
} ConvolutionPhase;

/* Of a transposed convolution, the one whose image it gives: `in` are its own extents, `out` those of its operand. */
bool convolution_transposed_of(const Graph *graph, const Node *node, Convolution *convolution);
/* How many; 0 of anything else. */
uint32_t convolution_phase_count(const Graph *graph, const Node *node);
ConvolutionPhase convolution_phase_of(const Graph *graph, const Node *node, uint32_t number);
bool convolution_phase_is_empty(const ConvolutionPhase *phase); /* its windows see nothing: zeros */

/* From the first pixel that a window sees to the last. */
int64_t window_span(const WindowDimension *dimension);
/* All that any window sees is in the image. */
bool window_is_inside(const Window *window);
/* Every window is one pixel, and every pixel is one window. */
bool window_is_pointwise(const Window *window);

/* A contraction seen as a matrix product: [batch..., rows, depth] * [batch..., depth, columns], where an operand may
 * lack leading dimensions, the rows or the columns.  Of a convolution false. */
typedef struct Product {
    uint32_t batch_rank; /* leading dimensions of the result; an operand's are its last ones, repeated from extent 1 */
    int64_t rows, columns, depth;
    bool has_rows, has_columns; /* dimensions of the result; an operand of rank 1 lacks its own */
    bool transposed;            /* the second operand is [..., columns, depth] */
} Product;
bool product_of(const Graph *graph, const Node *node, Product *product);

/* Reductions and pooling */

typedef enum ReductionKind {
    REDUCE_VALUES,   /* combined */
    REDUCE_POSITION, /* where the first element is that `combine` (max or min) would give, as i64; a NaN wins */
    REDUCE_MEAN,     /* combined, and divided by how many there were */
    REDUCE_COLLECT,  /* of each window of operand 0, the sum of operand 2 where that equals the window's in operand 1 */
    REDUCE_SPREAD, /* the other way: for each element of operand 0, the sum of operand 2 over the windows whose operand
                      1 it equals */
} ReductionKind;

typedef struct Reduction {
    ReductionKind kind;
    Word combine;               /* WORD_ADD, WORD_MUL, WORD_MAX, WORD_MIN */
    DType accumulator;          /* what it is kept in: f32 for f16 and bf16 */
    uint32_t rank;              /* of the operand */
    bool reduced[MAX_RANK];     /* dimensions of the operand that it runs over, if it has no window */
    bool keep;                  /* they stay in the result, with extent 1 */
    bool has_window, count_pad; /* pooling: over the window; a mean counts its padding too */
    Window window;
} Reduction;

bool node_is_reduction(const Graph *graph, const Node *node); /* also pooling */
Reduction reduction_of(const Graph *graph, const Node *node);
/* Of `combine` in elements of the dtype; the infinities, or the ends of an integer's range. */
double reduction_neutral(Word combine, DType dtype);
/* What sums and products of the dtype are kept in. */
DType reduction_accumulator(DType dtype);
/* Reduces the last dimensions of the operand, from *row_rank on, and nothing else: rows of one space. */
bool reduction_is_of_rows(const Reduction *reduction, uint32_t *row_rank);

/* Running sums and products: each position of a dimension gets that of all operand's positions before it, or behind it
 * where it is reversed, and its own where it is not exclusive.  The result has the operand's type. */
typedef struct Cumulation {
    Word combine;      /* WORD_ADD, WORD_MUL */
    DType accumulator; /* f32 for f16 and bf16; starts as reduction_neutral */
    uint32_t dimension;
    bool exclusive, reverse;
} Cumulation;

bool node_is_cumulation(const Node *node);
Cumulation cumulation_of(const Graph *graph, const Node *node);

/* Order along a dimension of the operand, whose extent in the result is `count`: where the elements are, as i64, that
 * come first.  Equal ones keep their order; NaN is the largest of all, and equals NaN. */
typedef struct Sorting {
    uint32_t dimension;
    int64_t count;
    bool descending;
} Sorting;

bool node_is_sorting(const Node *node);
Sorting sorting_of(const Graph *graph, const Node *node);
/* About how many comparisons that takes. */
int64_t sorting_comparisons(const Graph *graph, const Node *node);

/* Views: where each element of result r is in the operand. */

typedef enum ViewKind {
    VIEW_RESHAPE, /* at the same place in row-major order */
    VIEW_STRIDED, /* dimension d of the operand is at begin[d] + step[d] * (position in dimension from[d] of the
                     result) + further * (that in its last one) where d is `slid` */
} ViewKind;

typedef struct View {
    ViewKind kind;
    uint32_t rank; /* of the operand */
    int64_t begin[MAX_RANK], step[MAX_RANK];
    uint32_t from[MAX_RANK]; /* NONE: at begin[d] for all positions */
    uint32_t slid;           /* along which windows move, the last dimension of the result being what they see; NONE */
    int64_t further;
} View;

bool node_is_view(const Node *node);
/* Does it convert integers or bools that lie in an input, also behind views?  Where each is loaded, that costs next to
 * nothing. */
bool node_casts_input(const Graph *graph, const Node *node);
/* Of any result of a view; `step` is 1 where the result has one position at most. */
View view_of(const Graph *graph, const Node *node, uint32_t result);
/* All elements, each once: a reshape or a permutation of dimensions. */
bool view_is_rearrangement(const Graph *graph, const Node *node);
/* Matrices, the last two dimensions, as they are: under other shapes of those before them, or repeated along these. */
bool view_keeps_matrices(const Graph *graph, const Node *node);
/* The same elements in the same order. */
bool view_is_reshape(const Node *node);
/* All of operand 0 as it is, in its layout, but not before the other operands are made, which it does not read. */
bool view_only_waits(const Node *node);

/* Results put together from operands: operand i lies at begin[d] ... in each dimension.  Not for stacks, which expand
 * makes concats of. */
typedef struct Assembly {
    uint32_t rank;
    bool filled; /* what no operand covers is `fill`: a pad.  Else the operands cover all: a concat */
    double fill;
    uint32_t axis; /* of a concat; of a pad NONE */
} Assembly;

bool node_is_assembly(const Node *node);
/* Operands of one shape along a new dimension of the result, which expand makes a concat of. */
bool node_is_stack(const Graph *graph, const Node *node, uint32_t *axis);
Assembly assembly_of(const Graph *graph, const Node *node);
void assembly_begin(const Graph *graph, const Node *node, uint32_t operand, int64_t begin[MAX_RANK]);

/* Parts at run-time positions: operand 1 has one position for each dimension of operand 0, to be clamped to 0 ...
 * node_dynamic_last.  A slice gives the part there; an update gives operand 0 with operand 2 there. */
bool node_is_dynamic_slice(const Node *node);
bool node_is_dynamic_update(const Node *node);
/* Operand 0, but for what is written over it, or added to it: what may be made in its memory by touching that alone. */
bool node_is_update(const Node *node);
/* The largest position where the part stays inside, in this dimension. */
int64_t node_dynamic_last(const Graph *graph, const Node *node, uint32_t dimension);

bool op_keeps_bits(OpCode op); /* of conversions: what the bits stand for changes, not the number */
/* The elements of operand 0, whichever, wherever and in whatever type: views and conversions. */
bool node_passes_elements(const Node *node);
bool node_tests_equality(const Node *node); /* of two operands, element by element */

/* What is known of numbers: which one it is, or that it is below all that is not known, which may be any finite ones
 * above that bound. */
#define KNOWN_LOWEST (-1e30)
typedef enum KnownKind { KNOWN_NOTHING, KNOWN_NUMBER, KNOWN_LOW } KnownKind;
typedef struct Known {
    KnownKind kind;
    double number;
} Known;
/* Of what an elementwise node makes of operands of which that is known; of floats and truths. */
Known node_where_known(const Graph *graph, const Node *node, const Known *operand);

/* Generators without memory, and the rest. */
bool node_is_sum(const Node *node);                                           /* of two values */
bool node_steps(const Graph *graph, const Node *node, double *step);          /* adds it to its first operand */
bool node_is_number(const Node *node, double *number);                        /* one number everywhere */
bool node_is_ramp(const Graph *graph, const Node *node, uint32_t *dimension); /* its position along a dimension */
bool node_is_formula(const Node *node); /* one of these two: whoever reads it computes it */

/* Draws: element i in row-major order is base + scale * number i of the key that operand 0 holds; it is computed in
 * double and rounded once. */
typedef enum Draw {
    DRAW_WORD,  /* 32 random bits, as i64 */
    DRAW_UNIT,  /* uniform in [0, 1), with 24 bits */
    DRAW_GAUSS, /* Gaussian, a float */
} Draw;

typedef struct Random {
    Draw draw;
    double base, scale; /* of words 0 and 1 */
} Random;

bool node_is_random(const Node *node);
Random random_of(const Node *node);
/* Uniform in [low, high): where the largest would be rounded to high, they come up to the last of the dtype below it.
 */
Random random_between(double low, double high, DType dtype);

/* Initialisers: element i in row-major order is a number, its position along a dimension, or drawn from a key. */
typedef enum InitialKind { INITIAL_NUMBER, INITIAL_RAMP, INITIAL_DRAWN } InitialKind;

typedef struct Initial {
    InitialKind kind;
    double number;
    uint32_t dimension;
    int64_t key;
    Random random;
} Initial;

/* Of a tensor of this type: from its extents some take the spread, and halves end where they have a number. */
Initial node_initial(const Node *initial, const Type *type);

/* Gather and scatter: operand 1 holds positions along a dimension of operand 0, counted from the end when negative,
 * then brought to the nearest end.  The slices there, with the positions' dimensions in place of that one, are the
 * result; or operand 2, which a scatter puts there, or combines with them, those of equal positions in their order. */
uint32_t gather_dimension(const Graph *graph, const Node *node);
bool node_is_scatter(const Node *node);
/* WORD_ADD, WORD_MUL, WORD_MAX, WORD_MIN; WORD_OPERAND: what is there is replaced. */
Word gather_combine(const Node *node);

/* Asks for the gradients of operand 0 with respect to those from op_first_wrt on; the pass grad resolves it. */
bool node_is_gradient(const Node *node);
uint32_t op_first_wrt(OpCode op);

/* Loops and branches.  All bodies of a node take the operands named here as inputs, in order; what a body captures it
 * has as an input like the others. */

/* Operands: the first values of what is carried, then what is captured.  Results: the carried values at the end. */
typedef struct Loop {
    uint32_t carried, captured;
    int64_t most;     /* rounds at most, also where the condition still holds; 0: as many as it holds */
    int64_t unroll;   /* rounds asked for in one; 0 or 1: nothing was asked */
    Graph *condition; /* gives one bool, tested before each round; NULL: the body gives it, after its other outputs,
                         and the first round runs always */
    Graph *body;      /* gives the next carried values */
} Loop;

bool node_is_loop(const Node *node);
Loop loop_of(const Graph *graph, const Node *node);

/* Operands: the selector, i32[] or bool[], then what is captured, which alone are inputs of the branches.  Sub-graph i
 * runs for key[i], the one after all keys for everything else. */
typedef struct Branches {
    uint32_t keys, captured;
    const int64_t *key;
} Branches;

bool node_is_choice(const Node *node);
Branches branches_of(const Graph *graph, const Node *node);
uint32_t branches_select(const Branches *branches, int64_t selector); /* the sub-graph that runs */
/* The first operand that is captured, of a loop or a branch. */
uint32_t node_first_captured(const Graph *graph, const Node *node);

/* Bodies laid out in line. */
typedef enum FlowKind {
    FLOW_NONE,
    FLOW_LOOP_BEGIN,
    FLOW_LOOP_TEST,
    FLOW_LOOP_END,
    FLOW_BRANCH_BEGIN,
    FLOW_BRANCH_NEXT,
    FLOW_BRANCH_END,
} FlowKind;

FlowKind node_flow(const Node *node);
int64_t flow_most_rounds(const Node *node); /* of a loop that begins; 0: as many as its condition holds */
bool flow_tests(const Node *node);          /* of a loop that ends: its last operand is the condition */
Branches flow_branches(const Node *node);   /* of branches that begin */
NodeId flow_loop_begin(Graph *graph, const ValueId *first, uint32_t count, int64_t most, Place place);
NodeId flow_loop_test(Graph *graph, ValueId condition, Place place);
NodeId flow_loop_end(Graph *graph, const ValueId *next, uint32_t count, bool tests, Place place);
NodeId flow_branch_begin(Graph *graph, ValueId selector, const Node *choice);
NodeId flow_branch_next(Graph *graph, Place place);
NodeId flow_branch_end(Graph *graph, const ValueId *yield, uint32_t count, uint32_t results, Place place);

/* Arithmetic of a node: a multiplication and an addition counted as two, other scalar ops as one. */
int64_t node_flops(const Graph *graph, const Node *node);
/* What a machine spends on these: as node_flops, but functions count as the operations of their texts (word_work). */
int64_t node_work(const Graph *graph, const Node *node);
/* With those of its bodies: of loops as often as they run at most, once where that is not known; of all branches. */
int64_t node_flops_nested(const Graph *graph, const Node *node);
int64_t ops_flops(const Graph *graph);
/* Multiply-adds of a contraction; of any other node 0. */
int64_t node_macs(const Graph *graph, const Node *node);
/* A node worth a load and a store rather than computing again. */
bool node_is_expensive(const Node *node);

#endif
