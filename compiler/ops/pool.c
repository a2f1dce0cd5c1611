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
    if (x->shape.rank != 4)
        return infer_fail(graph, node, "takes an image [n, c, h, w]: " STR_FMT,
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

typedef struct Box { /* the part of a window that lies inside the image */
    int64_t begin[MAX_RANK], end[MAX_RANK];
    int64_t rows; /* along the last dimension */
} Box;

/* Of the window that result number `number` of the plane looks through. */
static Box box_of(const Window *w, int64_t number)
{
    Box box = {.rows = 1};
    for (uint32_t i = w->rank; i-- > 0; number /= w->dim[i].out) {
        const WindowDimension *d = &w->dim[i];
        int64_t begin = number % d->out * d->stride - d->before, end = begin + d->size;
        box.begin[i] = begin < 0 ? 0 : begin;
        box.end[i] = end > d->in ? d->in : end;
        box.rows *= i + 1 < w->rank ? box.end[i] - box.begin[i] : 1;
    }
    return box;
}

/* Where row number `row` of the box begins in the plane. */
static int64_t row_begin(const Window *w, const Box *box, int64_t row)
{
    uint32_t last = w->rank - 1;
    int64_t at = box->begin[last], stride = w->dim[last].in;
    for (uint32_t i = last; i-- > 0; stride *= w->dim[i].in) {
        int64_t extent = box->end[i] - box->begin[i];
        at += (box->begin[i] + row % extent) * stride;
        row /= extent;
    }
    return at;
}

static int64_t window_elements(const Window *w)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < w->rank; i++)
        elements *= w->dim[i].size;
    return elements;
}

static Number pooled(const Reduction *reduction, Compute compute, const Number *plane, int64_t number)
{
    const Window *w = &reduction->window;
    Number sum = reduce_neutral(reduction->combine, compute);
    Box box = box_of(w, number);
    int64_t width = box.end[w->rank - 1] - box.begin[w->rank - 1];
    for (int64_t row = 0; row < box.rows; row++)
        reduce_combine(reduction->combine, compute, &sum, 0, plane + row_begin(w, &box, row), width);
    if (reduction->kind == REDUCE_MEAN)
        sum.f /= (double)(reduction->count_pad ? window_elements(w) : box.rows * width);
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
