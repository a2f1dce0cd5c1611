/* Spectra of signals, of any length, as products with cosines and sines. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define MOST_FACTORS 4000000 /* elements of such a matrix */
#define TURN         6.283185307179586476925

typedef struct Spectrum {    /* sums over `in` elements for each of `out` */
    int64_t in, out, length; /* length: of the transform */
    bool inverse, half;      /* half: the spectrum is that of a real signal, of which the second half is left out */
    DType dtype;
} Spectrum;

/* cos or sin of each pair of positions, [in, out], scaled as an inverse is, and doubled for what is left out. */
static const char *factors(OnnxNode *n, const Spectrum *s, double (*wave)(double), const char *word)
{
    int64_t dim[] = {s->in, s->out};
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, s->dtype, 2, dim));
    for (int64_t i = 0; i < s->in; i++) {
        bool alone = i == 0 || 2 * i == s->length;
        double scale = (s->inverse ? 1.0 / (double)s->length : 1) * (s->inverse && s->half && !alone ? 2 : 1);
        for (int64_t k = 0; k < s->out; k++)
            tensor_set_number(tensor, i * s->out + k,
                              scale * wave(TURN * (double)(i * k % s->length) / (double)s->length));
    }
    const char *base = onnx_identifier(n->onnx, n->proto->output[0]);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, onnx_text(n, "%s.%s", base, word)));
}

static bool check_size(OnnxNode *n, const Spectrum *s)
{
    return (s->length > 0 && s->length <= MOST_FACTORS && s->in > 0 && s->in * s->out <= MOST_FACTORS &&
            (dtype_is_float(s->dtype))) ||
           onnx_no(n, "its length is impossible, or too large");
}

/* The result along the last axis, of real and imaginary parts along it; imaginary may be NULL. */
static bool put_spectrum(OnnxNode *n, const Spectrum *s, const char *real, const char *imaginary, const char **re,
                         const char **im)
{
    const char *c = factors(n, s, cos, "cos"), *sine = factors(n, s, sin, "sin");
    const char *plus = s->inverse ? "-" : "+", *minus = s->inverse ? "" : "-";
    *re = onnx_temp(n, "real");
    *im = onnx_temp(n, "imaginary");
    if (!imaginary)
        return onnx_emit(n, "%s = %s @ %s", *re, real, c) && onnx_emit(n, "%s = %s(%s @ %s)", *im, minus, real, sine);
    return onnx_emit(n, "%s = %s @ %s %s %s @ %s", *re, real, c, plus, imaginary, sine) &&
           (s->half || onnx_emit(n, "%s = %s @ %s %s %s @ %s", *im, imaginary, c, s->inverse ? "+" : "-", real, sine));
}

/* DFT */

/* Part 0 or 1 of the last dimension, with the axis moved to the end and its extent brought to `length`. */
static const char *signal_part(OnnxNode *n, int64_t part, int64_t axis, int64_t length)
{
    const Shape *shape = &onnx_type(n, 0)->shape;
    int64_t axes[MAX_RANK], dim[MAX_RANK], before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    uint32_t rank = shape->rank - 1, next = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (d != axis)
            axes[next++] = d;
        dim[d] = shape->dim[d];
    }
    axes[next] = axis;
    const char *x =
        onnx_text(n, "reshape(%s[..., %lld], shape = %s)", onnx_in(n, 0), (long long)part, onnx_list(n, dim, rank));
    x = rank > 1 ? onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, rank)) : x;
    int64_t extent = shape->dim[axis];
    after[rank - 1] = most(length - extent, 0);
    if (length < extent)
        return onnx_text(n, "(%s)[..., 0:%lld]", x, (long long)length);
    return after[rank - 1] ? onnx_text(n, "pad(%s, before = %s, after = %s)", x, onnx_list(n, before, rank),
                                       onnx_list(n, after, rank))
                           : x;
}

static const char *put_part(OnnxNode *n, int64_t part, int64_t axis, int64_t length)
{
    return onnx_define(n, part ? "im" : "re", "%s", signal_part(n, part, axis, length));
}

static bool take_axis(OnnxNode *n, int64_t *axis)
{
    const int64_t *list;
    uint32_t count, rank = onnx_rank(n, 0);
    *axis = n->opset < 20 ? onnx_int(n, "axis", 1) : -2;
    if (n->opset >= 20 && onnx_has(n, 2)) {
        if (!onnx_known_ints(n, 2, &list, &count) || count != 1)
            return onnx_no(n, "it has no axis");
        *axis = list[0];
    }
    *axis += *axis < 0 ? rank : 0;
    return (rank >= 2 && *axis >= 0 && *axis + 1 < rank) || onnx_no(n, "its axis is not there");
}

static bool write_dft(OnnxNode *n)
{
    const int64_t *list;
    uint32_t count, rank = onnx_rank(n, 0);
    int64_t axis, parts = onnx_dim(n, 0, -1);
    Spectrum s = {.inverse = onnx_int(n, "inverse", 0) != 0,
                  .half = onnx_int(n, "onesided", 0) != 0,
                  .dtype = onnx_type(n, 0)->dtype};
    if (!take_axis(n, &axis) || (onnx_has(n, 1) && !onnx_known_ints(n, 1, &list, &count)))
        return false;
    bool to_real = s.inverse && s.half;
    s.length = onnx_has(n, 1) && count == 1 ? list[0] : to_real ? 2 * (onnx_dim(n, 0, axis) - 1) : onnx_dim(n, 0, axis);
    s.in = to_real ? s.length / 2 + 1 : s.length;
    s.out = s.half && !s.inverse ? s.length / 2 + 1 : s.length;
    if (!check_size(n, &s) || (parts != 1 && parts != 2) || (s.half && parts == 2 && !s.inverse))
        return onnx_no(n, "its operand is neither real nor complex");
    const char *real = put_part(n, 0, axis, s.in), *imaginary = parts == 2 ? put_part(n, 1, axis, s.in) : NULL, *re,
               *im;
    if (!real || !put_spectrum(n, &s, real, imaginary, &re, &im))
        return false;
    int64_t back[MAX_RANK];
    for (uint32_t d = 0; d + 1 < rank; d++)
        back[d] = d < axis ? d : d == axis ? (int64_t)rank - 2 : d - 1;
    const char *axes = onnx_list(n, back, rank - 1);
    if (to_real)
        return onnx_emit(n, "%s = stack(transpose(%s, axes = %s), axis = -1)", onnx_out(n, 0), re, axes);
    return onnx_emit(n, "%s = stack(transpose(%s, axes = %s), transpose(%s, axes = %s), axis = -1)", onnx_out(n, 0), re,
                     axes, im, axes);
}

/* STFT: frames of a real signal, each times a window */

static bool write_stft(OnnxNode *n)
{
    double step, size = 0;
    bool windowed = onnx_has(n, 2);
    if (!onnx_known(n, 1) || !onnx_known_number(n, 1, &step) ||
        (onnx_has(n, 3) && (!onnx_known(n, 3) || !onnx_known_number(n, 3, &size))))
        return false;
    if (!(step >= 1 && step <= INT32_MAX && size >= 0 && size <= MOST_FACTORS) || onnx_rank(n, 0) < 2)
        return onnx_no(n, "its steps or frames are impossible");
    Spectrum s = {.dtype = onnx_type(n, 0)->dtype, .length = windowed && size == 0 ? onnx_dim(n, 2, 0) : (int64_t)size};
    int64_t extent = onnx_dim(n, 0, 1), dim[] = {onnx_dim(n, 0, 0), extent};
    s.in = s.length;
    s.out = onnx_int(n, "onesided", 1) ? s.length / 2 + 1 : s.length;
    if (!check_size(n, &s) || step < 1 || s.length > extent || onnx_rank(n, 0) > 3 ||
        (onnx_rank(n, 0) == 3 && onnx_dim(n, 0, 2) != 1))
        return onnx_no(n, "its frames are impossible, or its signal is complex");
    int64_t frames = (extent - s.length) / (int64_t)step + 1, shape[] = {dim[0], frames, s.length};
    if (frames > MOST_FACTORS / s.length)
        return onnx_no(n, "it has too many frames");
    int64_t *list = ARENA_ARRAY(n->onnx->arena, int64_t, frames * s.length + 1);
    for (int64_t f = 0; f < frames; f++)
        for (int64_t i = 0; i < s.length; i++)
            list[f * s.length + i] = f * (int64_t)step + i;
    const char *framed = onnx_temp(n, "frames"),
               *at = onnx_known_list(n, list, (uint32_t)(frames * s.length), "positions"), *re, *im;
    const char *window = windowed ? onnx_text(n, " * %s", onnx_in(n, 2)) : "";
    return onnx_emit(n, "%s = reshape(gather(reshape(%s, shape = %s), %s, axis = 1), shape = %s)%s", framed,
                     onnx_in(n, 0), onnx_list(n, dim, 2), at, onnx_list(n, shape, 3), window) &&
           put_spectrum(n, &s, framed, NULL, &re, &im) &&
           onnx_emit(n, "%s = stack(%s, %s, axis = -1)", onnx_out(n, 0), re, im);
}

/* Triangles over the bins of a spectrum, at equal distances of the mel scale */

static void fill_triangle(Tensor *tensor, int64_t column, int64_t columns, int64_t bins, const int64_t *corner)
{
    int64_t low = corner[0], centre = corner[1], high = corner[2];
    for (int64_t j = low; j <= centre && j < bins; j++)
        tensor_set_number(tensor, j * columns + column, centre == low ? 1 : (double)(j - low) / (double)(centre - low));
    for (int64_t j = centre; j < high && j < bins; j++)
        tensor_set_number(tensor, j * columns + column, (double)(high - j) / (double)(high - centre));
}

static bool write_mel_weights(OnnxNode *n)
{
    double number[5];
    DType dtype;
    for (uint32_t i = 0; i < 5; i++)
        if (!onnx_known(n, i) || !onnx_known_number(n, i, &number[i]))
            return false;
    bool fits = number[0] >= 1 && number[0] <= 65536 && number[1] >= 0 && number[1] <= 65536 && number[2] >= 1 &&
                number[3] >= 0 && number[4] >= 0 && number[4] <= INT32_MAX;
    int64_t dim[] = {fits ? (int64_t)number[1] / 2 + 1 : 1, fits ? (int64_t)number[0] : 1};
    if (!fits || dim[0] * dim[1] > MOST_FACTORS || !onnx_dtype((int32_t)onnx_int(n, "output_datatype", 1), &dtype))
        return onnx_no(n, "its numbers are impossible");
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 2, dim));
    double low = 2595 * log10(1 + number[3] / 700), high = 2595 * log10(1 + number[4] / 700);
    int64_t *corner = ARENA_ARRAY(n->onnx->arena, int64_t, dim[1] + 2);
    for (int64_t i = 0; i < dim[1] + 2; i++) {
        double hertz = 700 * (pow(10, (low + (double)i * (high - low) / (double)(dim[1] + 2)) / 2595) - 1);
        corner[i] = (int64_t)most((int64_t)floor((number[1] + 1) * hertz / number[2]), 0);
    }
    for (int64_t i = 0; i < dim[1]; i++)
        fill_triangle(tensor, i, dim[1], dim[0], corner + i);
    onnx_set_known(n, 0, tensor);
    return true;
}

const OnnxRow onnx_signal[] = {
    {"DFT", 17, write_dft, NULL, NULL, false},
    {"STFT", 17, write_stft, NULL, NULL, false},
    {"MelWeightMatrix", 17, write_mel_weights, NULL, NULL, false},
    {0},
};
