#include "cli/roofline.h"

#include <stdio.h>

#include "base/number.h"

#define SHORT 1e-6 /* seconds of a round, below which a kernel far under its roof is called overhead */
#define FAR   0.5

static double seconds_of(double bytes, const Level *level)
{
    return level->bytes_second > 0 ? bytes / level->bytes_second : 0;
}

void roofline_place(const Roofline *roofline, RoofRow *row)
{
    double calls = row->calls ? (double)row->calls : 1;
    const Level *far = &roofline->levels->run;
    const Level *near = bandwidth_level_of(roofline->levels, row->bytes / calls);
    double weights = seconds_of(row->weights, far);
    double others = seconds_of(row->bytes - row->weights, near);
    row->level = weights > others ? far : near;
    double compute = row->work / roofline->peak;
    double memory = weights + others, least = compute > memory ? compute : memory;
    row->roof = row->second > 0 ? least / row->second : 0;
    bool overhead = row->second / calls < SHORT && row->roof < FAR;
    row->bound = overhead ? BOUND_OVERHEAD : compute >= memory ? BOUND_COMPUTE : BOUND_LEVEL;
}

const char *roofline_bound(const RoofRow *row)
{
    return row->bound == BOUND_COMPUTE ? "compute" : row->bound == BOUND_OVERHEAD ? "overhead" : row->level->name;
}

int64_t roofline_bytes(const Entry *entry, const Kernel *kernel)
{
    int64_t bytes = 0;
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        if (storage->role != STORAGE_SHARED && storage->role != STORAGE_SCRATCH)
            bytes = number_plus(bytes, kernel_touched(entry->graph, storage, kernel, b));
    }
    return bytes;
}

int64_t roofline_weights(const Entry *entry, const Kernel *kernel)
{
    int64_t bytes = 0;
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const Storage *storage = entry_storage(entry, kernel->buffer[b].storage);
        if (storage_is_constant(storage->role))
            bytes += storage->bytes;
    }
    return bytes;
}

/* Three digits. */
static const char *put(char buffer[32], double value, const char *unit)
{
    snprintf(buffer, 32, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
    return buffer;
}

const char *roofline_seconds(char buffer[32], double second)
{
    if (second < 999.5e-9)
        return put(buffer, second * 1e9, "ns");
    if (second < 999.5e-6)
        return put(buffer, second * 1e6, "us");
    return second < 0.9995 ? put(buffer, second * 1e3, "ms") : put(buffer, second, "s");
}

const char *roofline_amount(char buffer[32], double amount)
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P"};
    uint32_t u = 0;
    for (; amount >= 999.5 && u + 1 < sizeof unit / sizeof *unit; u++)
        amount /= 1000;
    return put(buffer, amount, unit[u]);
}
