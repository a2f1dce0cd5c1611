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

typedef struct Box {                         /* the taps of a window that lie inside the image */
    int64_t begin[MAX_RANK], taps[MAX_RANK]; /* the position of the first, and how many there are */
    int64_t rows;                            /* of taps along the last dimension */
    int64_t counted;                         /* all taps, or those in the padding too */
} Box;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Taps of the window that begins at `start` before `place`. */
static int64_t taps_before(const WindowDimension *d, int64_t start, int64_t place)
{
    return place <= start ? 0 : smaller(d->size, (place - start - 1) / d->dilation + 1);
}

/* Of the window that result number `number` of the plane looks through. */
static Box box_of(const Window *w, int64_t number, bool count_pad)
{
    Box box = {.rows = 1, .counted = 1};
    for (uint32_t i = w->rank; i-- > 0; number /= w->dim[i].out) {
        const WindowDimension *d = &w->dim[i];
        int64_t start = number % d->out * d->stride - d->before, first = taps_before(d, start, 0);
        box.begin[i] = start + first * d->dilation;
        box.taps[i] = taps_before(d, start, d->in) - first;
        box.rows *= i + 1 < w->rank ? box.taps[i] : 1;
        box.counted *= count_pad ? taps_before(d, start, d->in + d->after) : box.taps[i];
    }
    return box;
}

/* Where row number `row` of the box begins in the plane. */
static int64_t row_begin(const Window *w, const Box *box, int64_t row)
{
    uint32_t last = w->rank - 1;
    int64_t at = box->begin[last], stride = w->dim[last].in;
    for (uint32_t i = last; i-- > 0; stride *= w->dim[i].in) {
        at += (box->begin[i] + row % box->taps[i] * w->dim[i].dilation) * stride;
        row /= box->taps[i];
    }
    return at;
}

static Number pooled(const Reduction *reduction, Compute compute, const Number *plane, int64_t number)
{
    const Window *w = &reduction->window;
    uint32_t last = w->rank - 1;
    int64_t dilation = w->dim[last].dilation;
    Number sum = reduce_neutral(reduction->combine, compute);
    Box box = box_of(w, number, reduction->count_pad);
    for (int64_t row = 0; row < box.rows; row++) {
        const Number *from = plane + row_begin(w, &box, row);
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
