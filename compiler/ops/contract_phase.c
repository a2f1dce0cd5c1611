/* Convolutions and transposed ones as convolutions again, one for each phase of the strides. */
#include "base/number.h"
#include "ops/contract.h"

static bool is_transposed(const Node *node)
{
    return convolution_kind(node) == CONVOLVES_TO_IMAGE;
}

uint32_t convolution_phase_count(const Graph *graph, const Node *node)
{
    Convolution conv;
    if (convolution_of(graph, node, &conv))
        return 1;
    if (!is_transposed(node))
        return 0;
    conv = convolution_relating(graph, node);
    int64_t count = 1;
    for (uint32_t d = 0; d < conv.window.rank; d++)
        count = number_times(count, least(conv.window.dim[d].stride, most(1, conv.window.dim[d].in)));
    return (uint32_t)least(count, UINT32_MAX);
}

static ConvolutionPhase whole(const Convolution *conv)
{
    ConvolutionPhase phase = {.conv = *conv};
    for (uint32_t d = 0; d < conv->window.rank; d++)
        phase.step[d] = phase.tap_step[d] = 1;
    return phase;
}

/* The result at begin + stride * i sees the window (begin + stride * i + before - dilation * tap) / stride at each tap
 * for which that is whole: every `step`th from the first on. */
static WindowDimension phase_dimension(const WindowDimension *d, int64_t begin, int64_t *tap_begin, int64_t *tap_step)
{
    int64_t shared = number_gcd(d->dilation, d->stride), step = d->stride / shared, first = 0;
    WindowDimension w = {.in = d->out, .out = ceil_div(most(0, d->in - begin), d->stride), .size = 1, .stride = 1};
    while (first < d->size && first < step && (begin + d->before - d->dilation * first) % d->stride)
        first++;
    w.dilation = d->dilation / shared;
    if (first < d->size && first < step) {
        w.size = ceil_div(d->size - first, step);
        w.before = w.dilation * (w.size - 1) - (begin + d->before - d->dilation * first) / d->stride;
        *tap_begin = first + step * (w.size - 1);
    } else {
        w.before = w.in + w.out; /* where nothing is */
        *tap_begin = 0;
    }
    w.after = w.out - 1 + w.dilation * (w.size - 1) - w.before - (w.in - 1);
    *tap_step = -step;
    return w;
}

ConvolutionPhase convolution_phase_of(const Graph *graph, const Node *node, uint32_t number)
{
    Convolution conv = convolution_relating(graph, node);
    if (!is_transposed(node))
        return whole(&conv);
    ConvolutionPhase phase = {.conv = conv, .transposed = true};
    phase.conv.channels = conv.outputs;
    phase.conv.outputs = conv.channels;
    for (uint32_t d = conv.window.rank; d-- > 0;) {
        const WindowDimension *from = &conv.window.dim[d];
        int64_t phases = least(from->stride, most(1, from->in));
        phase.begin[d] = number % phases;
        phase.step[d] = from->stride;
        phase.conv.window.dim[d] = phase_dimension(from, phase.begin[d], &phase.tap_begin[d], &phase.tap_step[d]);
        number /= (uint32_t)phases;
    }
    return phase;
}

bool convolution_phase_is_empty(const ConvolutionPhase *phase)
{
    for (uint32_t i = 0; i < phase->conv.window.rank; i++) {
        const WindowDimension *d = &phase->conv.window.dim[i];
        if ((d->out - 1) * d->stride + window_span(d) <= d->before || d->before <= -d->in)
            return true;
    }
    return false;
}
