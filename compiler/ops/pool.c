/* Pooling: the largest element, or the mean, of each window of an image. */
#include "ops/families.h"
#include "ops/reduce.h"
#include "ops/window.h"

bool infer_pool(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = infer_in_type(graph, node, 0);

    if (!infer_check_class(graph, node, 0, n->op == OP_AVG_POOL ? CLASS_FLOAT : CLASS_NUMBER))
        return false;
    if (x->shape.rank < 3)
        return infer_fail(graph, node,
                          "takes an image [n, c, h, w], or with another number of dimensions after c: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    if (!window_check(graph, node, &x->shape, NULL))
        return false;

    Window window = window_of(n, &x->shape, NULL);
    Shape shape = x->shape;
    for (uint32_t d = 0; d < window.rank; d++)
        shape.dim[2 + d] = window.dim[d].out;
    return infer_set_result(graph, node, 0, x->dtype, &shape, x->layout);
}

/* Evaluation: one plane, all that one channel of one image has, at a time, in double or int64, rounded once. */

static Number pooled(const Reduction *reduction, Compute compute, const Number *plane, int64_t number)
{
    const Window *w = &reduction->window;
    uint32_t last = w->rank - 1;
    int64_t dilation = w->dim[last].dilation;
    Number sum = reduce_neutral(reduction->combine, compute);
    Box box = window_box(w, number, reduction->count_pad);
    for (int64_t row = 0; row < box.rows; row++) {
        const Number *from = plane + window_row(w, &box, row);
        if (dilation == 1)
            reduce_combine(reduction->combine, compute, &sum, 0, from, box.taps[last]);
        for (int64_t t = 0; dilation > 1 && t < box.taps[last]; t++)
            reduce_combine(reduction->combine, compute, &sum, 0, from + t * dilation, 1);
    }
    if (reduction->kind == REDUCE_MEAN)
        sum.f /= (double)box.counted;
    return sum;
}

void eval_pool(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &in[0]->type->shape;
    Reduction reduction = reduction_of(graph, node);
    Compute compute = elements_compute_exact(in[0]->type->dtype);
    int64_t planes = shape->dim[0] * shape->dim[1], pixels = 1, results = 1;
    for (uint32_t d = 0; d < reduction.window.rank; d++) {
        pixels *= reduction.window.dim[d].in;
        results *= reduction.window.dim[d].out;
    }
    Arena scratch = {0};
    Number *plane = ARENA_ARRAY(&scratch, Number, pixels), *result = ARENA_ARRAY(&scratch, Number, results);

    for (int64_t p = 0; p < planes; p++) {
        elements_load_plain(in[0], p * pixels, pixels, compute, plane);
        for (int64_t i = 0; i < results; i++)
            result[i] = pooled(&reduction, compute, plane, i);
        elements_store(out[0], p * results, results, compute, result);
    }
    arena_free(&scratch);
}
