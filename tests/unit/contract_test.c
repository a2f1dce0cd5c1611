/* Contractions that no op gives yet: their evaluation against straightforward loops, on small whole numbers, whose sums
 * are exact. */
#include <string.h>

#include "ops/contract.h"

#include "unit.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct Bench {
    Arena arena;
    Diag diag;
    Module *module;
} Bench;

static void bench_open(Bench *b)
{
    *b = (Bench){0};
    b->diag.arena = &b->arena;
    b->module = module_new(&b->arena, &b->diag);
}

static void bench_close(Bench *b)
{
    diag_free(&b->diag);
    arena_free(&b->arena);
}

/* Filled with numbers from -3 to 3. */
static Tensor *numbers(Bench *b, DType dtype, Shape shape)
{
    Tensor *tensor = tensor_new(&b->arena, module_type(b->module, dtype, &shape, (Layout){0}));
    uint32_t state = 1;
    for (int64_t i = 0; i < shape_elements(&shape); i++, state = state * 1664525 + 1013904223)
        tensor_set_number(tensor, i, (double)((int)(state >> 16) % 7 - 3));
    return tensor;
}

static void add_to(Tensor *tensor, int64_t at, double number)
{
    tensor_set_number(tensor, at, tensor_number(tensor, at) + number);
}

static unsigned differing(const Tensor *a, const Tensor *b)
{
    unsigned count = 0;
    for (int64_t i = 0; i < shape_elements(&a->type->shape); i++)
        count += tensor_number(a, i) != tensor_number(b, i);
    return count;
}

/* A contraction between tensors of these shapes, and what loops say its result is. */
static void check(Unit *unit, Bench *b, const Contraction *contraction, const Tensor *const *in, const Tensor *expected)
{
    Tensor *out = tensor_new(&b->arena, expected->type);
    contraction_eval(contraction, in, out);
    EXPECT_INT(differing(out, expected), 0);
}

/* Convolutions of one to three dimensions, forwards: missing ones in front have extent 1. */

typedef struct Case {
    DType dtype;
    bool bias;
    Convolution conv;
} Case;

static WindowDimension dimension(const Convolution *conv, int i)
{
    int own = i - (3 - (int)conv->window.rank);
    return own < 0 ? (WindowDimension){1, 1, 1, 1, 1, 0, 0} : conv->window.dim[own];
}

static double convolved(const Convolution *conv, const Tensor *const *in, const int64_t *at)
{
    WindowDimension d = dimension(conv, 0), h = dimension(conv, 1), w = dimension(conv, 2);
    int64_t channels = conv->channels / conv->groups, group = at[1] / (conv->outputs / conv->groups);
    double sum = in[2] ? tensor_number(in[2], at[1]) : 0;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t kd = 0; kd < d.size; kd++)
            for (int64_t kh = 0; kh < h.size; kh++)
                for (int64_t kw = 0; kw < w.size; kw++) {
                    int64_t z = at[2] * d.stride + kd * d.dilation - d.before;
                    int64_t y = at[3] * h.stride + kh * h.dilation - h.before;
                    int64_t x = at[4] * w.stride + kw * w.dilation - w.before;
                    if (z < 0 || z >= d.in || y < 0 || y >= h.in || x < 0 || x >= w.in)
                        continue;
                    int64_t plane = at[0] * conv->channels + group * channels + c, tap = at[1] * channels + c;
                    sum += tensor_number(in[0], ((plane * d.in + z) * h.in + y) * w.in + x) *
                           tensor_number(in[1], ((tap * d.size + kd) * h.size + kh) * w.size + kw);
                }
    return sum;
}

static Tensor *convolution(Bench *b, const Convolution *conv, const Tensor *const *in, DType dtype)
{
    Shape shape = {2 + conv->window.rank, {conv->images, conv->outputs}};
    for (uint32_t d = 0; d < conv->window.rank; d++)
        shape.dim[2 + d] = conv->window.dim[d].out;
    Tensor *out = tensor_new(&b->arena, module_type(b->module, dtype, &shape, (Layout){0}));
    int64_t extent[5] = {conv->images, conv->outputs, dimension(conv, 0).out, dimension(conv, 1).out,
                         dimension(conv, 2).out};
    for (int64_t i = 0; i < shape_elements(&shape); i++) {
        int64_t at[5], left = i;
        for (int d = 5; d-- > 0; left /= extent[d])
            at[d] = left % extent[d];
        tensor_set_number(out, i, convolved(conv, in, at));
    }
    return out;
}

static void check_convolution(Unit *unit, const Case *c)
{
    Bench b;
    Convolution conv = c->conv;
    Shape x = {2 + conv.window.rank, {conv.images, conv.channels}};
    Shape w = {2 + conv.window.rank, {conv.outputs, conv.channels / conv.groups}};
    for (uint32_t i = 0; i < conv.window.rank; i++) {
        WindowDimension *d = &conv.window.dim[i];
        d->out = (d->in + d->before + d->after - d->dilation * (d->size - 1) - 1) / d->stride + 1;
        x.dim[2 + i] = d->in;
        w.dim[2 + i] = d->size;
    }
    bench_open(&b);
    const Tensor *in[3] = {numbers(&b, c->dtype, x), numbers(&b, c->dtype, w), NULL};
    Contraction contraction = convolution_contraction(&conv);
    contraction.element = contraction.sum = c->dtype;
    if (c->bias) {
        in[2] = numbers(&b, c->dtype, (Shape){1, {conv.outputs}});
        contraction.has_bias = true;
        contraction.bias_dimension = 1;
    }
    check(unit, &b, &contraction, in, convolution(&b, &conv, in, c->dtype));
    bench_close(&b);
}

/* { in, out (computed), size, stride, dilation, before, after } */
UNIT(convolutions_of_any_rank)
{
    static const Case c[] = {
        {DT_F64, false, {{1, {{37, 0, 5, 2, 1, 2, 1}}}, 2, 1, 3, 4}},
        {DT_I32, true, {{1, {{9, 0, 3, 1, 3, 4, 0}}}, 1, 2, 4, 6}},
        {DT_F32, true, {{2, {{8, 0, 3, 2, 1, 1, 0}, {11, 0, 2, 1, 2, 0, 3}}}, 2, 1, 5, 140}},
        {DT_F64, true, {{3, {{5, 0, 2, 1, 2, 1, 0}, {6, 0, 3, 2, 1, 1, 1}, {7, 0, 3, 1, 1, 2, 0}}}, 2, 1, 3, 5}},
        {DT_F32, false, {{3, {{4, 0, 3, 1, 1, 1, 1}, {5, 0, 1, 2, 1, 0, 0}, {6, 0, 2, 3, 1, 0, 2}}}, 1, 3, 6, 9}},
        {DT_F64, true, {{3, {{4, 0, 3, 1, 1, 1, 1}, {3, 0, 3, 1, 1, 1, 1}, {9, 0, 3, 1, 1, 1, 1}}}, 2, 8, 8, 8}},
    };
    for (size_t i = 0; i < COUNT(c); i++)
        check_convolution(unit, &c[i]);
}

/* Gradients and transposed convolutions of a 2-D one: x [N, C, H, W], w [O, C, K, K], y [N, O, P, Q]. */

enum { N = 2, C = 3, O = 5, H = 7, W = 8, K = 3, STRIDE = 2, PAD = 1, P = 4, Q = 4 };

static int64_t pixel(int64_t out, int64_t tap)
{
    return out * STRIDE + tap - PAD;
}

typedef void AddProduct(int64_t x, int64_t w, int64_t y, const Tensor *const *in, Tensor *out);

/* For each product that a convolution adds up: its elements of x, w and y. */
static void each_product(AddProduct *product, const Tensor *const *in, Tensor *out)
{
    for (int64_t i = 0; i < (int64_t)N * C * O * P * Q * K * K; i++) {
        int64_t kw = i % K, kh = i / K % K, q = i / (K * K) % Q, p = i / (K * K * Q) % P;
        int64_t o = i / (K * K * Q * P) % O, c = i / (K * K * Q * P * O) % C, n = i / (K * K * Q * P * O * C);
        int64_t h = pixel(p, kh), w = pixel(q, kw);
        if (h >= 0 && h < H && w >= 0 && w < W)
            product(((n * C + c) * H + h) * W + w, ((o * C + c) * K + kh) * K + kw, ((n * O + o) * P + p) * Q + q, in,
                    out);
    }
}

static void add_to_x(int64_t x, int64_t w, int64_t y, const Tensor *const *in, Tensor *out)
{
    add_to(out, x, tensor_number(in[0], y) * tensor_number(in[1], w));
}

static void add_to_w(int64_t x, int64_t w, int64_t y, const Tensor *const *in, Tensor *out)
{
    add_to(out, w, tensor_number(in[0], x) * tensor_number(in[1], y));
}

static uint32_t axis(Contraction *c, AxisRole role, int64_t extent)
{
    c->axis[c->axis_count] = (Axis){role, extent};
    return c->axis_count++;
}

/* Dimension d is walked by the axis, step by step. */
static void walk(Access *access, uint32_t d, uint32_t along)
{
    access->rank = d + 1;
    access->divisor[d] = 1;
    access->factor[d][along] = 1;
}

static const Shape x_shape = {4, {N, C, H, W}}, w_shape = {4, {O, C, K, K}}, y_shape = {4, {N, O, P, Q}};

/* What a transposed convolution is, too: x[h] takes from y[(h + PAD - kh) / STRIDE], where that leaves no rest. */
UNIT(gradient_of_the_image)
{
    Bench b;
    bench_open(&b);
    const Tensor *in[] = {numbers(&b, DT_F64, y_shape), numbers(&b, DT_F64, w_shape)};
    Tensor *expected = tensor_new(&b.arena, module_type(b.module, DT_F64, &x_shape, (Layout){0}));
    Contraction c = {.element = DT_F64, .sum = DT_F64};
    uint32_t n = axis(&c, AXIS_BATCH, N), channel = axis(&c, AXIS_COLUMN, C), h = axis(&c, AXIS_ROW, H);
    uint32_t w = axis(&c, AXIS_ROW, W), o = axis(&c, AXIS_SUM, O);
    uint32_t tap[2] = {axis(&c, AXIS_TAP, K), axis(&c, AXIS_TAP, K)};
    const uint32_t first[] = {n, o, h, w}, second[] = {o, channel, tap[0], tap[1]}, result[] = {n, channel, h, w};
    for (uint32_t d = 0; d < 4; d++) {
        walk(&c.first, d, first[d]);
        walk(&c.second, d, second[d]);
        walk(&c.result, d, result[d]);
    }
    for (uint32_t d = 0; d < 2; d++) {
        c.first.begin[2 + d] = PAD;
        c.first.divisor[2 + d] = STRIDE;
        c.first.factor[2 + d][tap[d]] = -1;
    }
    contraction_guard(&c.first, c.axis, c.axis_count, &y_shape);
    EXPECT(c.first.guarded[2] && c.first.guarded[3] && !c.first.guarded[0]);
    each_product(add_to_x, in, expected);
    check(unit, &b, &c, in, expected);
    bench_close(&b);
}

/* Images and pixels are summed; rows are the positions of the weight. */
UNIT(gradient_of_the_weight)
{
    Bench b;
    bench_open(&b);
    const Tensor *in[] = {numbers(&b, DT_F64, x_shape), numbers(&b, DT_F64, y_shape)};
    Tensor *expected = tensor_new(&b.arena, module_type(b.module, DT_F64, &w_shape, (Layout){0}));
    Contraction c = {.element = DT_F64, .sum = DT_F64};
    uint32_t o = axis(&c, AXIS_COLUMN, O), channel = axis(&c, AXIS_ROW, C);
    uint32_t tap[2] = {axis(&c, AXIS_ROW, K), axis(&c, AXIS_ROW, K)}, n = axis(&c, AXIS_SUM, N);
    uint32_t out[2] = {axis(&c, AXIS_SUM, P), axis(&c, AXIS_SUM, Q)};
    const uint32_t first[] = {n, channel, tap[0], tap[1]}, second[] = {n, o, out[0], out[1]};
    const uint32_t result[] = {o, channel, tap[0], tap[1]};
    for (uint32_t d = 0; d < 4; d++) {
        walk(&c.first, d, first[d]);
        walk(&c.second, d, second[d]);
        walk(&c.result, d, result[d]);
    }
    for (uint32_t d = 0; d < 2; d++) {
        c.first.begin[2 + d] = -PAD;
        c.first.factor[2 + d][out[d]] = STRIDE;
    }
    contraction_guard(&c.first, c.axis, c.axis_count, &x_shape);
    each_product(add_to_w, in, expected);
    check(unit, &b, &c, in, expected);
    bench_close(&b);
}

int main(void)
{
    static const Test test[] = {
        RUN(convolutions_of_any_rank),
        RUN(gradient_of_the_image),
        RUN(gradient_of_the_weight),
    };
    return UNIT_MAIN(test);
}
