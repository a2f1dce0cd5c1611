#include "storage/residues.h"

static int64_t size_of(int64_t factor)
{
    return factor < 0 ? -factor : factor;
}

Extent residues_of(const KernelBuffer *buffer, const Reach *reach, int64_t modulus)
{
    int64_t low = buffer->begin + reach->index.constant, high = low + reach->square;
    for (uint32_t i = 0; i < reach->index.count; i++) {
        const Term *term = &reach->index.term[i];
        if (term->factor % modulus == 0)
            continue;
        low += term->factor * reach_end(reach, term->atom, term->factor < 0);
        high += term->factor * reach_end(reach, term->atom, term->factor > 0);
    }
    return (Extent){low, high};
}

/* The residues of all accesses, as a range that begins below the modulus; false where they are all there are. */
static bool find_range(const Kernel *kernel, const DealNest *nest, StorageId storage, int64_t modulus, Extent *range)
{
    bool some = false;
    for (uint32_t i = 0; i < nest->reached.count; i++) {
        const Reach *reach = &nest->reached.at[i];
        const KernelBuffer *buffer = &kernel->buffer[reach->buffer];
        if (buffer->storage != storage)
            continue;
        Extent one = residues_of(buffer, reach, modulus);
        int64_t turns = one.begin / modulus - (one.begin % modulus < 0);
        one = (Extent){one.begin - turns * modulus, one.end - turns * modulus};
        range->begin = some && range->begin < one.begin ? range->begin : one.begin;
        range->end = some && range->end > one.end ? range->end : one.end;
        some = true;
    }
    return some && range->end - range->begin < modulus;
}

static bool are_apart(const Kernel *kernel, const DealNest *a, const DealNest *b, StorageId storage, int64_t modulus)
{
    Extent x, y;
    if (!find_range(kernel, a, storage, modulus, &x) || !find_range(kernel, b, storage, modulus, &y))
        return false;
    bool after = x.end < y.begin && y.end < x.begin + modulus, before = y.end < x.begin && x.end < y.begin + modulus;
    return after || before;
}

/* By one of the strides that `of`, one of the two, has. */
static bool apart_by_strides(const Kernel *kernel, const DealNest *a, const DealNest *b, const DealNest *of,
                             StorageId storage)
{
    for (uint32_t i = 0; i < of->reached.count; i++) {
        const Reach *reach = &of->reached.at[i];
        for (uint32_t t = 0; kernel->buffer[reach->buffer].storage == storage && t < reach->index.count; t++) {
            int64_t modulus = size_of(reach->index.term[t].factor);
            if (modulus > 1 && are_apart(kernel, a, b, storage, modulus))
                return true;
        }
    }
    return false;
}

bool residues_apart(const Kernel *kernel, const DealNest *a, const DealNest *b, StorageId storage)
{
    return apart_by_strides(kernel, a, b, a, storage) || apart_by_strides(kernel, a, b, b, storage);
}
