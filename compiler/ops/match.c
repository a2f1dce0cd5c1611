/* What windows give to the elements that equal theirs, or take from them: gradients of pooling. */
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/window.h"

static bool gives(const Node *node)
{
    return node->op == OP_POOL_SPREAD;
}

bool infer_match(Graph *graph, NodeId node)
{
    const Type *x = infer_in_type(graph, node, 0);
    if (!infer_check_class(graph, node, 0, CLASS_FLOAT) || !infer_check_same_dtype(graph, node, 0, 1) ||
        !infer_check_same_dtype(graph, node, 0, 2))
        return false;
    if (x->shape.rank < 3)
        return infer_fail(graph, node,
                          "takes an image [n, c, h, w], or with another number of dimensions after c: " STR_FMT,
                          STR_ARG(infer_show_operand(graph, node, 0)));
    if (!window_check(graph, node, &x->shape, NULL))
        return false;

    Window window = window_of(&graph->node[node], &x->shape, NULL);
    Shape windows = x->shape;
    for (uint32_t d = 0; d < window.rank; d++)
        windows.dim[2 + d] = window.dim[d].out;
    bool spreads = gives(&graph->node[node]);
    if (!shape_eq(&windows, infer_in_shape(graph, node, 1)) ||
        !shape_eq(spreads ? &windows : &x->shape, infer_in_shape(graph, node, 2)))
        return infer_fail(graph, node, "y%s has an element for each window, " STR_FMT ": " STR_FMT,
                          spreads ? ", and v," : ", and v one for each of x,",
                          STR_ARG(type_show(graph->module->arena,
                                            module_plain_type(graph->module, x->dtype, windows.rank, windows.dim))),
                          STR_ARG(infer_show_operands(graph, node)));
    return infer_set_plain(graph, node, 0, x->dtype, spreads ? &x->shape : &windows);
}

typedef struct Plane { /* of each tensor, as numbers */
    double *x, *y, *v, *out;
} Plane;

static void match_window(const Window *w, const Plane *plane, int64_t number, bool spreads)
{
    uint32_t last = w->rank - 1;
    Box box = window_box(w, number, false);
    for (int64_t row = 0; row < box.rows; row++)
        for (int64_t t = 0, at = window_row(w, &box, row); t < box.taps[last]; t++, at += w->dim[last].dilation) {
            if (plane->x[at] != plane->y[number])
                continue;
            if (spreads)
                plane->out[at] += plane->v[number];
            else
                plane->out[number] += plane->v[at];
        }
}

void eval_match(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    const Shape *shape = &in[0]->type->shape;
    Window window = reduction_of(graph, node).window;
    bool spreads = gives(node);
    int64_t planes = shape->dim[0] * shape->dim[1], pixels = 1, windows = 1;
    for (uint32_t d = 0; d < window.rank; d++) {
        pixels *= window.dim[d].in;
        windows *= window.dim[d].out;
    }
    int64_t given = spreads ? windows : pixels, results = spreads ? pixels : windows;
    Arena scratch = {0};
    Plane plane = {ARENA_ARRAY(&scratch, double, pixels), ARENA_ARRAY(&scratch, double, windows),
                   ARENA_ARRAY(&scratch, double, given), ARENA_ARRAY(&scratch, double, results)};

    for (int64_t p = 0; p < planes; p++) {
        elements_load_plain(in[0], p * pixels, pixels, COMPUTE_F64, plane.x);
        elements_load_plain(in[1], p * windows, windows, COMPUTE_F64, plane.y);
        elements_load_plain(in[2], p * given, given, COMPUTE_F64, plane.v);
        for (int64_t i = 0; i < results; i++)
            plane.out[i] = 0;
        for (int64_t i = 0; i < windows; i++)
            match_window(&window, &plane, i, spreads);
        elements_store(out[0], p * results, results, COMPUTE_F64, plane.out);
    }
    arena_free(&scratch);
}
