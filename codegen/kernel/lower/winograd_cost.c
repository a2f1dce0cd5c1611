/* How many cycles minimal filtering takes, about, beside those of the register tiles: the products, the transforms by
 * what they store, and the weights, of which there are two to four times as many bytes.
 * Fitted to layers of ResNet-50 on an AVX-512 and an AVX2 target (docs/performance.md). */
#include "kernel/lower/winograd.h"

#include <float.h>

#define STORE_CYCLES  2.6 /* of a vector that a transform loads, computes and stores */
#define SCALAR_CYCLES 8   /* of a column of numbers, one channel */
#define SINGLE_CYCLES 1.5 /* of a result that is stored alone */
#define NEAR_BYTES    32  /* a cycle, from the second level or what lies behind it, ahead of time */
#define FAR_LEVELS    4   /* of second levels, of which more bytes of weights come from far */
#define FAR_BYTES     25  /* a cycle, of these, less what is hidden behind products */
#define SPILL_BYTES   5   /* a cycle, of what a block keeps beyond the second level, written and read */
#define PASS_LEVELS                                                                                                    \
    8 /* of second levels, beyond which what a block keeps comes from far for each panel of weights ... */
#define PASS_BYTES 2   /* ... so many a cycle: a few lines of each page, which no hardware follows */
#define LEAST_GAIN 1.2 /* what gains less is not worth larger weights */

static double products(const Filter *f)
{
    double points = (double)f->form.size * f->form.size, start_and_store = 1.5;
    return points * (double)(f->tiles * f->output_vectors) * ((double)f->conv.channels / 2 + start_and_store);
}

static double image(const Filter *f)
{
    double n = f->form.size, m = f->form.results, vectors = (double)(f->tiles * f->channel_vectors);
    double down =
        f->x_vectors ? vectors * n * m * STORE_CYCLES : (double)(f->tiles * f->conv.channels) * m * SCALAR_CYCLES;
    return vectors * n * n * STORE_CYCLES + down;
}

static double result(const Filter *f)
{
    double n = f->form.size, m = f->form.results, stores = n * m + m * m + n * m / 2;
    int64_t single = f->one_by_one ? f->conv.outputs : f->conv.outputs % f->lanes;
    return (double)f->tiles *
           ((double)f->output_vectors * stores * STORE_CYCLES + m * m * (double)single * SINGLE_CYCLES);
}

static double beyond(double bytes, double room)
{
    return bytes > room ? bytes - room : 0;
}

/* What a block keeps should lie in the second level, beside a panel of the weights, or even in the first. */
static double kept(const Filter *f, double weights)
{
    const Target *target = f->lower->target;
    double vectors = (double)(f->channel_vectors + least(f->vectors, f->output_vectors));
    double bytes = 4.0 * (double)(f->form.size * f->form.size * f->tiles * f->lanes) * vectors;
    bytes += 4.0 * (double)filter_band_elements(f);
    double room = 0.75 * target->l2_bytes - weights / (double)ceil_div(f->output_vectors, f->vectors);
    room = room < 0.25 * target->l2_bytes ? 0.25 * target->l2_bytes : room;
    double far = beyond(bytes, PASS_LEVELS * target->l2_bytes) * (double)ceil_div(f->output_vectors, f->vectors);
    return beyond(bytes, target->l1_bytes) / NEAR_BYTES + beyond(bytes, room) / SPILL_BYTES + far / PASS_BYTES;
}

double filter_cost(const Filter *f)
{
    const Target *target = f->lower->target;
    double weights = 4.0 * (double)(f->form.size * f->form.size) * (double)(f->conv.channels * f->conv.outputs);
    double blocks = (double)(f->blocks * f->conv.images);
    if (target->dialect != DIALECT_VECTOR || f->lower->lean) /* without vectors flash counts */
        return DBL_MAX;
    double cycles = blocks * (products(f) + image(f) + result(f) + kept(f, weights) + weights / NEAR_BYTES);
    return LEAST_GAIN * (cycles + beyond(weights, FAR_LEVELS * target->l2_bytes) / FAR_BYTES);
}
