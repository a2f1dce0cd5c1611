#include "ops/strided.h"

#include <string.h>

Strided strided_plain(const Shape *shape)
{
    Strided map = {.rank = shape->rank};
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        map.dim[i] = shape->dim[i];
        map.stride[i] = stride;
        stride *= shape->dim[i];
    }
    return map;
}

Strided strided_broadcast(const Shape *from, const Shape *to)
{
    Strided own = strided_plain(from), map = {.rank = to->rank};
    uint32_t missing = to->rank - from->rank;
    for (uint32_t i = 0; i < to->rank; i++) {
        map.dim[i] = to->dim[i];
        map.stride[i] = i < missing || from->dim[i - missing] == 1 ? 0 : own.stride[i - missing];
    }
    return map;
}

void strided_coalesce(Strided *map)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < map->rank; i++) {
        int64_t dim = map->dim[i], stride = map->stride[i];
        if (dim == 1)
            continue;
        if (rank && map->stride[rank - 1] == dim * stride) {
            map->dim[rank - 1] *= dim;
            map->stride[rank - 1] = stride;
            continue;
        }
        map->dim[rank] = dim;
        map->stride[rank++] = stride;
    }
    map->rank = rank;
}

Walk strided_walk(const Strided *map, int64_t start, int64_t count)
{
    Walk walk = {.map = map, .offset = map->offset, .left = count};
    for (uint32_t i = map->rank; i-- > 0 && count > 0;) {
        walk.index[i] = start % map->dim[i];
        walk.offset += walk.index[i] * map->stride[i];
        start /= map->dim[i];
    }
    return walk;
}

bool strided_next(Walk *walk, Run *run)
{
    const Strided *map = walk->map;
    if (walk->left <= 0)
        return false;
    if (map->rank == 0) {
        *run = (Run){walk->offset, 0, 1};
        walk->left = 0;
        return true;
    }

    uint32_t last = map->rank - 1;
    int64_t count = map->dim[last] - walk->index[last];
    if (count > walk->left)
        count = walk->left;
    *run = (Run){walk->offset, map->stride[last], count};
    walk->left -= count;
    walk->index[last] += count;
    walk->offset += count * map->stride[last];
    for (uint32_t i = last; i > 0 && walk->index[i] == map->dim[i]; i--) {
        walk->index[i] = 0;
        walk->index[i - 1]++;
        walk->offset += map->stride[i - 1] - map->dim[i] * map->stride[i];
    }
    return true;
}

#define COPY_RUN(T)                                                                                                    \
    do {                                                                                                               \
        T *to = out;                                                                                                   \
        const T *from = in;                                                                                            \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i * out_stride] = from[i * in_stride];                                                                  \
    } while (0)

static void copy_run(void *out, int64_t out_stride, const void *in, int64_t in_stride, int64_t count, uint32_t bytes)
{
    if (out_stride == 1 && in_stride == 1)
        memcpy(out, in, (size_t)count * bytes);
    else if (bytes == 1)
        COPY_RUN(uint8_t);
    else if (bytes == 2)
        COPY_RUN(uint16_t);
    else if (bytes == 4)
        COPY_RUN(uint32_t);
    else
        COPY_RUN(uint64_t);
}

static int64_t positions(const Strided *map)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < map->rank; i++)
        count *= map->dim[i];
    return count;
}

void strided_read(void *out, const void *in, const Strided *map, uint32_t bytes)
{
    Strided joined = *map;
    strided_coalesce(&joined);
    Walk walk = strided_walk(&joined, 0, positions(&joined));
    char *to = out;
    Run run;
    while (strided_next(&walk, &run)) {
        copy_run(to, 1, (const char *)in + run.offset * bytes, run.stride, run.count, bytes);
        to += run.count * bytes;
    }
}

void strided_write(void *out, const void *in, const Strided *map, uint32_t bytes)
{
    Strided joined = *map;
    strided_coalesce(&joined);
    Walk walk = strided_walk(&joined, 0, positions(&joined));
    const char *from = in;
    Run run;
    while (strided_next(&walk, &run)) {
        copy_run((char *)out + run.offset * bytes, run.stride, from, 1, run.count, bytes);
        from += run.count * bytes;
    }
}
