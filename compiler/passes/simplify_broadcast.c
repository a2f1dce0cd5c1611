/* Broadcast operands of elementwise ops.
 * Elementwise ops broadcast by themselves, so a broadcast (or a full) in front is dropped where the other operands give
 * the result its shape anyway; where they do not, the op moves before the broadcast, and then computes fewer elements.
 */
#include "passes/simplify.h"

#include <string.h>

#include "ir/attr.h"

static bool repeats(const Node *node)
{
    return node && (node->op == OP_BROADCAST || node->op == OP_FULL);
}

/* The shape under a broadcast; a full stands for a scalar. */
static Shape shape_under(const Rewriter *rw, const Node *producer)
{
    return producer->op == OP_FULL ? (Shape){0} : *value_shape(rw->graph, producer->in[0]);
}

static ValueId value_under(Rewriter *rw, ValueId v)
{
    const Node *producer = value_producer(rw->graph, v);
    if (producer->op == OP_BROADCAST)
        return producer->in[0];
    return rewrite_scalar(rw, value_type(rw->graph, v)->dtype, attr_float(producer, "value"));
}

/* Is the result as large without the repetition of operand `dropped`? */
static bool result_keeps_shape(const Rewriter *rw, const Node *node, uint32_t dropped)
{
    Shape joint = shape_under(rw, value_producer(rw->graph, node->in[dropped]));
    for (uint32_t i = 0; i < node->in_count; i++) {
        Shape so_far = joint;
        if (i != dropped && !shape_broadcast(&so_far, value_shape(rw->graph, node->in[i]), &joint))
            return false;
    }
    return shape_eq(&joint, value_shape(rw->graph, node->out[0]));
}

static ValueId drop_repetition(Rewriter *rw, const Node *node, uint32_t dropped)
{
    ValueId in[3];
    memcpy(in, node->in, node->in_count * sizeof *in);
    in[dropped] = value_under(rw, in[dropped]);
    return rewrite_build(rw, node->op, in, node->in_count, node->attr);
}

/* The op of what all operands repeat, repeated: NONE where that is as large as the result. */
static ValueId repeat_result(Rewriter *rw, const Node *node)
{
    Shape joint = {0}, shape = *value_shape(rw->graph, node->out[0]);
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Node *producer = value_producer(rw->graph, node->in[i]);
        Shape so_far = joint,
              own = repeats(producer) ? shape_under(rw, producer) : *value_shape(rw->graph, node->in[i]);
        if (!shape_broadcast(&so_far, &own, &joint))
            return NONE;
    }
    if (shape_elements(&joint) >= shape_elements(&shape))
        return NONE;
    ValueId in[3];
    for (uint32_t i = 0; i < node->in_count; i++)
        in[i] = repeats(value_producer(rw->graph, node->in[i])) ? value_under(rw, node->in[i]) : node->in[i];
    return rewrite_broadcast(rw, rewrite_build(rw, node->op, in, node->in_count, node->attr), &shape);
}

ValueId simplify_broadcast(Rewriter *rw, const Node *node)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Node *producer = value_producer(rw->graph, node->in[i]);
        Shape under = repeats(producer) ? shape_under(rw, producer) : (Shape){0};
        if (!repeats(producer) || shape_eq(&under, value_shape(rw->graph, node->in[i])))
            continue;
        if (result_keeps_shape(rw, node, i))
            return drop_repetition(rw, node, i);
        ValueId few = repeat_result(rw, node);
        if (few != NONE)
            return few;
    }
    return NONE;
}
