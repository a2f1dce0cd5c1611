/* Reverse mode: what reaches the operands of a node when something reaches its results.
 *
 * Each family says it in primitives, so gradients of gradients are nothing new, and every pass works on them (Griewank
 * and Walther, "Evaluating Derivatives", 2008).  passes/grad.c walks the graph and adds up. */
#ifndef NNC_OPS_REVERSE_H
#define NNC_OPS_REVERSE_H

#include "ops/family.h"

typedef struct Adjoint { /* what reaches an operand */
    uint32_t operand;
    ValueId value;
    bool whole;              /* it has the operand's type; else it is for a part of it, and nothing reaches the rest: */
    int64_t begin[MAX_RANK]; /* where that part begins */
} Adjoint;

struct Reverse {
    Graph *graph; /* what is built is appended */
    Arena *scratch;
    Node node;           /* a copy, which survives building */
    const ValueId *down; /* per result: its gradient, of its type; NONE where nothing reaches it */
    const bool *wanted;  /* per operand, all of floats; others may be left out */
    Adjoint *adjoint;    /* the answer: any number for each operand, which add up */
    uint32_t count, capacity;
};

/* False where the op has no gradient, after an error at its place. */
bool op_reverse(Reverse *reverse);

/* For the families: what they answer ... */
void reverse_give(Reverse *reverse, uint32_t operand, ValueId value); /* NONE: nothing */
void reverse_give_part(Reverse *reverse, uint32_t operand, ValueId value, const int64_t *begin);

/* ... and what they build, at the node's place.  Nothing is built where the value is as wanted already. */
ValueId reverse_build(Reverse *reverse, OpCode op, const ValueId *in, uint32_t in_count, const Attr *attr);
ValueId reverse_build1(Reverse *reverse, OpCode op, ValueId x);
ValueId reverse_build2(Reverse *reverse, OpCode op, ValueId x, ValueId y);
ValueId reverse_number(Reverse *reverse, DType dtype, double number);                   /* a scalar */
ValueId reverse_full(Reverse *reverse, DType dtype, const Shape *shape, double number); /* a tensor of them */
ValueId reverse_zeros(Reverse *reverse, ValueId like);
ValueId reverse_select(Reverse *reverse, ValueId mask, ValueId x, ValueId y);
ValueId reverse_convert(Reverse *reverse, ValueId x, ValueId like); /* to the dtype of `like` */
ValueId reverse_reshape(Reverse *reverse, ValueId x, const Shape *shape);
ValueId reverse_broadcast(Reverse *reverse, ValueId x, const Shape *shape);
ValueId reverse_transpose(Reverse *reverse, ValueId x, const uint32_t *axes);
ValueId reverse_sum(Reverse *reverse, ValueId x, const bool *over, bool keep); /* over these dimensions */
ValueId reverse_sum_to(Reverse *reverse, ValueId x, const Shape *shape);       /* undoes a broadcast from it */
ValueId reverse_slice(Reverse *reverse, ValueId x, const int64_t *begin, const Shape *shape);
ValueId reverse_pad(Reverse *reverse, ValueId x, const int64_t *begin,
                    const Shape *shape); /* with zeros to the shape */
/* At each place along a dimension what is `by` further on, or back where that is negative; 0 beyond the ends. */
ValueId reverse_further(Reverse *reverse, ValueId x, uint32_t dimension, int64_t by);

static inline const Shape *reverse_shape(const Reverse *reverse, ValueId v)
{
    return value_shape(reverse->graph, v);
}

#endif
