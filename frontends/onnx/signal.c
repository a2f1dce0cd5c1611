/* Spectra of signals: calls of the library. */
#include <math.h>

#include "base/number.h"
#include "onnx/import.h"

#define MOST_WEIGHTS 4000000 /* elements of a matrix of them */
#define MOST_LENGTH  (1 << 24)
#define MOST_LEFT    (1 << 20) /* without small divisors: what is as long as 4 of it is transformed when compiling */
#define SHORT        64        /* lengths that the library does not take apart, ... */
#define SMALL        32        /* ... as it does longer ones by such divisors */

static int64_t small_divisor(int64_t length)
{
    int64_t divisor = SMALL;
    while (length % divisor)
        divisor--;
    return divisor;
}

/* What is left of the length when such divisors are taken out. */
static int64_t left_of(int64_t length)
{
    while (length > SHORT && small_divisor(length) > 1)
        length /= small_divisor(length);
    return length;
}

static bool check_length(OnnxNode *n, int64_t length)
{
    if (!dtype_is_float(onnx_type(n, 0)->dtype))
        return onnx_no(n, "its operand is not of floats");
    if (length < 1)
        return onnx_no(n, "its length is %lld", (long long)length);
    if (length > MOST_LENGTH)
        return onnx_no(n, "its length, %lld, is too large; it may be %d", (long long)length, MOST_LENGTH);
    return left_of(length) <= MOST_LEFT ||
           onnx_no(n, "its length, %lld, has a factor %lld without divisors up to %d, which may be %d at most",
                   (long long)length, (long long)left_of(length), SMALL, MOST_LEFT);
}

/* Operand i, a number; false after onnx_no. */
static bool take_number(OnnxNode *n, uint32_t i, int64_t *number)
{
    const int64_t *list;
    uint32_t count;
    if (!onnx_known_ints(n, i, &list, &count))
        return false;
    *number = count ? list[0] : 0;
    return count == 1 || onnx_no(n, "it has %u numbers in the place of one", count);
}

/* DFT */

static bool take_axis(OnnxNode *n, int64_t *axis)
{
    uint32_t rank = onnx_rank(n, 0);
    *axis = n->opset < 20 ? onnx_int(n, "axis", 1) : -2;
    if (n->opset >= 20 && onnx_has(n, 2) && !take_number(n, 2, axis))
        return false;
    *axis += *axis < 0 ? rank : 0;
    return (rank >= 2 && *axis >= 0 && *axis + 1 < rank) || onnx_no(n, "its axis is not there");
}

static bool write_dft(OnnxNode *n)
{
    int64_t axis;
    bool inverse = onnx_int(n, "inverse", 0) != 0, onesided = onnx_int(n, "onesided", 0) != 0;
    if (!take_axis(n, &axis))
        return false;
    int64_t parts = onnx_dim(n, 0, -1), extent = onnx_dim(n, 0, axis);
    int64_t whole = inverse && onesided ? 2 * (extent - 1) : extent, length = whole;
    if ((parts != 1 && parts != 2) || (onesided && !inverse && parts == 2))
        return onnx_no(n, parts == 2 ? "its operand is not real" : "its operand is neither real nor complex");
    if ((onnx_has(n, 1) && !take_number(n, 1, &length)) || !check_length(n, length))
        return false;
    const char *along = axis == onnx_rank(n, 0) - 2 ? "" : onnx_text(n, ", axis = %lld", (long long)axis);
    const char *cut = length == whole ? "" : onnx_text(n, ", length = %lld", (long long)length);
    return onnx_emit(n, "%s = dft(%s%s%s%s%s)", onnx_out(n, 0), onnx_in(n, 0), along, inverse ? ", inverse = true" : "",
                     onesided ? ", onesided = true" : "", cut);
}

/* STFT */

/* The signal as [n, t, 1], or [n, t, 2] of pairs; NULL after onnx_no. */
static const char *take_signal(OnnxNode *n, bool onesided)
{
    uint32_t rank = onnx_rank(n, 0);
    int64_t parts = rank == 3 ? onnx_dim(n, 0, 2) : 1;
    if (rank < 2 || rank > 3 || (parts != 1 && parts != 2))
        onnx_no(n, "its signal is neither real nor complex");
    else if (onesided && parts == 2)
        onnx_no(n, "its signal is complex, and it is onesided");
    else
        return rank == 3 ? onnx_in(n, 0) : onnx_text(n, "unsqueeze(%s, -1)", onnx_in(n, 0));
    return NULL;
}

static bool write_stft(OnnxNode *n)
{
    bool windowed = onnx_has(n, 2), onesided = onnx_int(n, "onesided", 1) != 0;
    const char *signal = take_signal(n, onesided);
    int64_t step, length;
    if (!signal || !take_number(n, 1, &step))
        return false;
    length = windowed ? onnx_dim(n, 2, 0) : onnx_dim(n, 0, 1);
    if ((onnx_has(n, 3) && !take_number(n, 3, &length)) || !check_length(n, length))
        return false;
    if (step < 1 || step > INT32_MAX)
        return onnx_no(n, "its step is %lld", (long long)step);
    if (length > onnx_dim(n, 0, 1))
        return onnx_no(n, "its frames are longer than its signal");
    const char *window = windowed ? onnx_text(n, ", window = %s", onnx_in(n, 2)) : "";
    return onnx_emit(n, "%s = stft(%s, %lld, %lld%s%s)", onnx_out(n, 0), signal, (long long)step, (long long)length,
                     window, onesided ? "" : ", onesided = false");
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
    if (!fits || dim[0] * dim[1] > MOST_WEIGHTS || !onnx_dtype((int32_t)onnx_int(n, "output_datatype", 1), &dtype))
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
