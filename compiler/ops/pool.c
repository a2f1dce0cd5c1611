/* Pooling: the largest element, or the mean, of each window of an image. */
#include "ops/infer.h"

#include <math.h>

#include "ops/attrs.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/window.h"

bool infer_pool(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *x = in_type(graph, node, 0);

    if (!check_class(graph, node, 0, n->op == OP_AVG_POOL ? CLASS_FLOAT : CLASS_NUMBER))
        return false;
    if (x->shape.rank != 4)
        return infer_fail(graph, node, "takes an image [n, c, h, w]: " STR_FMT, STR_ARG(show_operand(graph, node, 0)));
    if (!check_window(graph, node))
        return false;

    Window window = window_of(n, &x->shape, NULL);
    Shape shape = x->shape;
    shape.dim[2] = window.out[0];
    shape.dim[3] = window.out[1];
    return set_result(graph, node, 0, x->dtype, &shape, x->layout);
}

/* Evaluation: one plane [h, w] at a time, in double or int64, rounded once. */

typedef struct Span {
    int64_t begin, end; /* the part of a window that lies inside the image */
} Span;

static Span inside(const Window *w, int direction, int64_t out)
{
    int64_t begin = out * w->stride[direction] - w->before[direction], end = begin + w->size[direction];
    return (Span){begin < 0 ? 0 : begin, end > w->in[direction] ? w->in[direction] : end};
}

static double largest_f64(const double *plane, int64_t width, Span rows, Span columns)
{
    double best = -INFINITY;
    for (int64_t y = rows.begin; y < rows.end; y++)
        for (int64_t x = columns.begin; x < columns.end; x++) {
            double e = plane[y * width + x];
            best = e > best || e != e ? e : best; /* NaN wins, and stays */
        }
    return best;
}

static int64_t largest_i64(const int64_t *plane, int64_t width, Span rows, Span columns)
{
    int64_t best = INT64_MIN;
    for (int64_t y = rows.begin; y < rows.end; y++)
        for (int64_t x = columns.begin; x < columns.end; x++)
            best = plane[y * width + x] > best ? plane[y * width + x] : best;
    return best;
}

static double mean(const double *plane, const Window *w, bool count_pad, Span rows, Span columns)
{
    double sum = 0;
    for (int64_t y = rows.begin; y < rows.end; y++)
        for (int64_t x = columns.begin; x < columns.end; x++)
            sum += plane[y * w->in[1] + x];
    int64_t real = (rows.end - rows.begin) * (columns.end - columns.begin);
    return sum / (double)(count_pad ? w->size[0] * w->size[1] : real);
}

void eval_pool(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &in[0]->type->shape;
    Window w = window_of(node, shape, NULL);
    Compute compute = compute_exact(in[0]->type->dtype);
    bool is_mean = node->op == OP_AVG_POOL, count_pad = is_mean && attr_bool(node, "count_pad");
    int64_t planes = shape->dim[0] * shape->dim[1], pixels = w.in[0] * w.in[1], results = w.out[0] * w.out[1];
    Arena scratch = {0};
    double *plane = ARENA_ARRAY(&scratch, double, pixels), *result = ARENA_ARRAY(&scratch, double, results);
    int64_t *int_plane = (int64_t *)(void *)plane, *int_result = (int64_t *)(void *)result;

    (void)graph;
    for (int64_t p = 0; p < planes; p++) {
        elements_load_plain(in[0], p * pixels, pixels, compute, plane);
        for (int64_t i = 0; i < results; i++) {
            Span rows = inside(&w, 0, i / w.out[1]), columns = inside(&w, 1, i % w.out[1]);
            if (is_mean)
                result[i] = mean(plane, &w, count_pad, rows, columns);
            else if (compute == COMPUTE_F64)
                result[i] = largest_f64(plane, w.in[1], rows, columns);
            else
                int_result[i] = largest_i64(int_plane, w.in[1], rows, columns);
        }
        elements_store(out[0], p * results, results, compute, result);
    }
    arena_free(&scratch);
}
