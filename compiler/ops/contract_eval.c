/* Evaluation of matmul and conv2d, both as products of a panel of rows [rows, k] with a matrix [k, columns]: the rows
 * of x, or the patches of the image under one row of the result.  Everything is widened to double or int64, summed
 * over k in order, and rounded once.  The matrix is packed as blocks [columns / BLOCK][k][BLOCK], so that the inner
 * loop runs over contiguous numbers and keeps its sums in registers; columns are taken PANEL at a time, which bounds
 * the scratch memory. */
#include "ops/attrs.h"
#include "ops/elements.h"
#include "ops/families.h"

#define BLOCK 16
#define PANEL 128 /* columns; a multiple of BLOCK */
#define ROWS  32  /* of matmul's x at a time */

typedef union Number {
    double f;
    int64_t i;
} Number;

#define DEFINE_DOT(NAME, T)                                                                                            \
    static void NAME(int64_t k, const T *row, const T *packed, T *result)                                              \
    {                                                                                                                  \
        T sum[BLOCK] = {0};                                                                                            \
        for (int64_t i = 0; i < k; i++)                                                                                \
            for (int j = 0; j < BLOCK; j++)                                                                            \
                sum[j] += row[i] * packed[i * BLOCK + j];                                                              \
        for (int j = 0; j < BLOCK; j++)                                                                                \
            result[j] = sum[j];                                                                                        \
    }
DEFINE_DOT(dot_f64, double)
DEFINE_DOT(dot_i64, int64_t)

/* panel is [rows, k], packed is [columns / BLOCK][k][BLOCK], result is [rows, PANEL]. */
static void panel_product(Compute compute, int64_t rows, int64_t k, int64_t columns, const Number *panel,
                          const Number *packed, Number *result)
{
    for (int64_t j = 0; j < columns; j += BLOCK)
        for (int64_t r = 0; r < rows; r++)
            if (compute == COMPUTE_F64)
                dot_f64(k, &panel[r * k].f, &packed[j * k].f, &result[r * PANEL + j].f);
            else
                dot_i64(k, &panel[r * k].i, &packed[j * k].i, &result[r * PANEL + j].i);
}

/* Reads `columns` columns of a [k, columns] matrix whose element (i, j) is at offset + i * k_stride + j * stride. */
static void pack(const Tensor *matrix, Compute compute, int64_t k, int64_t columns, int64_t offset, int64_t k_stride,
                 int64_t stride, Number *packed)
{
    for (int64_t j = 0; j < columns; j += BLOCK) {
        int64_t count = columns - j < BLOCK ? columns - j : BLOCK;
        for (int64_t i = 0; i < k; i++) {
            Strided map = {1, {count}, {stride}, offset + i * k_stride + j * stride};
            elements_load(matrix, &map, 0, count, compute, &packed[j * k + i * BLOCK]);
            for (int64_t c = count; c < BLOCK; c++)
                packed[j * k + i * BLOCK + c].i = 0; /* the bits of 0.0 as well */
        }
    }
}

typedef struct Scratch {
    Arena arena;
    Number *packed, *panel, *result;
} Scratch;

static Scratch scratch_open(int64_t k, int64_t rows)
{
    Scratch s = {0};
    s.packed = ARENA_ARRAY(&s.arena, Number, k * PANEL);
    s.panel = ARENA_ARRAY(&s.arena, Number, k * rows);
    s.result = ARENA_ARRAY(&s.arena, Number, rows * PANEL);
    return s;
}

/* Of the matrix that batch number `batch` of the result reads, as a number of matrices. */
static int64_t batch_position(const Shape *own, const Shape *batch, int64_t number)
{
    Strided map = strided_broadcast(own, batch);
    return walk_start(&map, number, 1).offset;
}

static void eval_matmul(const Node *node, const Tensor *const *in, Tensor *out)
{
    MatmulShape s;
    matmul_shape(node, &in[0]->type->shape, &in[1]->type->shape, &s);
    bool transposed = attr_bool(node, "transpose_y") && in[1]->type->shape.rank > 1;
    int64_t k_stride = transposed ? 1 : s.n, stride = transposed ? s.k : 1;
    Compute compute = compute_exact(out->type->dtype);
    Scratch scratch = scratch_open(s.k, ROWS);

    for (int64_t b = 0; b < shape_elements(&s.batch); b++) {
        int64_t x = batch_position(&s.x_batch, &s.batch, b) * s.m * s.k;
        int64_t y = batch_position(&s.y_batch, &s.batch, b) * s.k * s.n;
        for (int64_t j = 0; j < s.n; j += PANEL) {
            int64_t columns = s.n - j < PANEL ? s.n - j : PANEL;
            pack(in[1], compute, s.k, columns, y + j * stride, k_stride, stride, scratch.packed);
            for (int64_t i = 0; i < s.m; i += ROWS) {
                int64_t rows = s.m - i < ROWS ? s.m - i : ROWS;
                elements_load_plain(in[0], x + i * s.k, rows * s.k, compute, scratch.panel);
                panel_product(compute, rows, s.k, columns, scratch.panel, scratch.packed, scratch.result);
                for (int64_t r = 0; r < rows; r++)
                    elements_store(out, (b * s.m + i + r) * s.n + j, columns, compute, &scratch.result[r * PANEL]);
            }
        }
    }
    arena_free(&scratch.arena);
}

typedef struct Conv {
    const Tensor *x, *weight, *bias; /* bias may be NULL */
    Tensor *out;
    Window window;
    Compute compute;
    int64_t images, channels, outputs, k; /* channels and outputs per group; k = channels * kh * kw */
    int64_t groups;
    Number *image; /* the channels of one group, [channels, h, w] */
} Conv;

/* The patches under row oh of the result, [ow, channels, kh, kw]; zero outside of the image. */
static void read_patches(const Conv *c, int64_t oh, Number *patch)
{
    const Window *w = &c->window;
    for (int64_t ow = 0; ow < w->out[1]; ow++)
        for (int64_t channel = 0; channel < c->channels; channel++)
            for (int64_t i = 0; i < w->size[0]; i++) {
                int64_t y = oh * w->stride[0] + i * w->dilation[0] - w->before[0];
                const Number *row = &c->image[(channel * w->in[0] + y) * w->in[1]];
                for (int64_t j = 0; j < w->size[1]; j++) {
                    int64_t x = ow * w->stride[1] + j * w->dilation[1] - w->before[1];
                    bool inside = y >= 0 && y < w->in[0] && x >= 0 && x < w->in[1];
                    *patch++ = inside ? row[x] : (Number){.i = 0};
                }
            }
}

/* Adds the bias and stores row oh of `columns` outputs from `output` on; result is [ow, PANEL]. */
static void store_row(const Conv *c, int64_t image, int64_t output, int64_t columns, int64_t oh, Number *result,
                      Number *line)
{
    const Window *w = &c->window;
    for (int64_t j = 0; j < columns; j++) {
        Number bias = {.i = 0};
        if (c->bias)
            elements_load_plain(c->bias, output + j, 1, c->compute, &bias);
        for (int64_t ow = 0; ow < w->out[1]; ow++)
            if (c->compute == COMPUTE_F64)
                line[ow].f = result[ow * PANEL + j].f + bias.f;
            else
                line[ow].i = result[ow * PANEL + j].i + bias.i;
        int64_t plane = image * c->outputs * c->groups + output + j;
        elements_store(c->out, (plane * w->out[0] + oh) * w->out[1], w->out[1], c->compute, line);
    }
}

static void eval_group(const Conv *c, int64_t image, int64_t group, Scratch *scratch, Number *line)
{
    const Window *w = &c->window;
    int64_t pixels = w->in[0] * w->in[1];

    elements_load_plain(c->x, (image * c->groups + group) * c->channels * pixels, c->channels * pixels, c->compute,
                        c->image);
    for (int64_t j = 0; j < c->outputs; j += PANEL) {
        int64_t output = group * c->outputs + j, columns = c->outputs - j < PANEL ? c->outputs - j : PANEL;
        pack(c->weight, c->compute, c->k, columns, output * c->k, 1, c->k, scratch->packed);
        for (int64_t oh = 0; oh < w->out[0]; oh++) {
            read_patches(c, oh, scratch->panel);
            panel_product(c->compute, w->out[1], c->k, columns, scratch->panel, scratch->packed, scratch->result);
            store_row(c, image, output, columns, oh, scratch->result, line);
        }
    }
}

static void eval_conv2d(const Node *node, const Tensor *const *in, Tensor *out)
{
    const Shape *x = &in[0]->type->shape, *weight = &in[1]->type->shape;
    int64_t groups = attr_int(node, "groups");
    Conv c = {.x = in[0],
              .weight = in[1],
              .bias = node->in_count > 2 ? in[2] : NULL,
              .out = out,
              .window = window_of(node, x, weight),
              .compute = compute_exact(out->type->dtype),
              .images = x->dim[0],
              .channels = x->dim[1] / groups,
              .outputs = weight->dim[0] / groups,
              .k = weight->dim[1] * weight->dim[2] * weight->dim[3],
              .groups = groups};

    if (shape_elements(&out->type->shape) == 0)
        return;
    Scratch scratch = scratch_open(c.k, c.window.out[1]);
    Number *line = ARENA_ARRAY(&scratch.arena, Number, c.window.out[1]);
    c.image = ARENA_ARRAY(&scratch.arena, Number, c.channels * x->dim[2] * x->dim[3]);
    for (int64_t image = 0; image < c.images; image++)
        for (int64_t group = 0; group < groups; group++)
            eval_group(&c, image, group, &scratch, line);
    arena_free(&scratch.arena);
}

void eval_contract(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    (void)graph;
    if (node->op == OP_MATMUL)
        eval_matmul(node, in, out[0]);
    else
        eval_conv2d(node, in, out[0]);
}
