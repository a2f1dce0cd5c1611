/* Inside random_graph: how steps draw numbers, choose operands and build nodes.  A step returns its result, or NONE
 * when what it drew does not fit.  What is called maker_ takes its operand, a step picks its own. */
#ifndef NNC_TESTS_RANDOM_MAKER_H
#define NNC_TESTS_RANDOM_MAKER_H

#include "ops/family.h"
#include "random_graph.h"

#define RANDOM_LARGEST 4096 /* elements of a value */
#define RANDOM_INPUTS  4
#define RANDOM_SLOTS   (RANDOM_INPUTS + 2 * RANDOM_MOST)

typedef struct Maker {
    Graph *graph;
    const RandomGraph *options;
    uint64_t state;
    uint32_t step;
    ValueId slot[RANDOM_SLOTS]; /* what later steps may read; NONE where a step was left out */
    bool rough[RANDOM_SLOTS];   /* its last bits depend on how a contraction is computed: not to be floored */
    uint32_t slots;
    ValueId next;      /* what maker_pick returns first, or NONE */
    ValueId part;      /* of the step being made: a value inside it that later steps may read too, or NONE */
    bool result_rough; /* of the step being made */
    Graph *body;       /* of a loop or a branch that steps are made in, or NULL */
    uint32_t nesting;  /* of these */
} Maker;

uint64_t random_mix(uint64_t x);
uint32_t maker_draw(Maker *m, uint32_t below);
bool maker_chance(Maker *m, uint32_t percent);

ValueId maker_pick(Maker *m); /* a value that is there */
/* One of x's dtype and its extents outside of `axis` (MAX_RANK: all of them), or x. */
ValueId maker_pick_like(Maker *m, ValueId x, uint32_t axis);
const Type *maker_type_of(const Maker *m, ValueId v);
bool maker_is_main(const Maker *m, ValueId v); /* of the dtype that the graph is about */
int64_t maker_channels(const Maker *m);
Shape maker_smaller_shape(Maker *m, const Shape *shape); /* that broadcasts to `shape` */

ValueId maker_constant(Maker *m, DType dtype, const Shape *shape);
ValueId maker_param(Maker *m, const Shape *shape);
ValueId maker_weights(Maker *m, const Shape *shape);              /* a param or a constant */
ValueId maker_neutral(Maker *m, DType dtype, const Shape *shape); /* 0, 1 or another number that rules look for */
ValueId maker_other_operand(Maker *m, ValueId x);                 /* of a binary op */

Attr maker_ints(const int64_t *list, uint32_t count);
ValueId maker_build(Maker *m, OpCode op, const ValueId *in, uint32_t count, const Attr *attr);
ValueId maker_with_attr(Maker *m, OpCode op, const ValueId *in, uint32_t count, const char *name, Attr value);
ValueId maker_unary(Maker *m, OpCode op, ValueId x);
ValueId maker_changed(Maker *m, ValueId x);                          /* an elementwise op on a value of any dtype */
ValueId maker_reduced(Maker *m, OpCode op, ValueId x, int64_t axis); /* the axis stays, of extent 1 */

/* random_graph.c */
ValueId maker_step(Maker *m);

/* random_control.c */
ValueId step_loop(Maker *m);
ValueId step_branch(Maker *m);
ValueId step_dynamic(Maker *m);

/* random_elements.c */
ValueId step_unary(Maker *m);
ValueId step_binary(Maker *m);
ValueId step_select(Maker *m);
ValueId step_cast(Maker *m);
ValueId step_twins(Maker *m);
ValueId step_weights(Maker *m);
ValueId step_call(Maker *m);
ValueId step_gather(Maker *m);
ValueId step_scatter(Maker *m);
ValueId step_iota(Maker *m);
ValueId step_random(Maker *m);
ValueId step_reduce(Maker *m);
ValueId step_cumsum(Maker *m);
ValueId step_rows(Maker *m);
ValueId step_arg(Maker *m);

/* random_contract.c */
ValueId maker_affine_chain(Maker *m, ValueId x);
ValueId maker_conv_same(Maker *m, ValueId x); /* [n, c, h, w] to [n, any, h, w] */
ValueId step_conv(Maker *m);
ValueId step_matmul(Maker *m);
ValueId step_pool(Maker *m);
ValueId step_wide_conv(Maker *m);
ValueId step_wide_pool(Maker *m);
ValueId step_product(Maker *m);

/* random_views.c */
ValueId maker_transpose(Maker *m, ValueId x);
ValueId maker_reshape(Maker *m, ValueId x);
ValueId maker_pad(Maker *m, ValueId x);
ValueId step_view(Maker *m);
ValueId step_relayout(Maker *m);

/* random_assembly.c */
ValueId step_concat(Maker *m);
ValueId step_dense(Maker *m);
ValueId step_stack(Maker *m);
ValueId step_border(Maker *m);

#endif
