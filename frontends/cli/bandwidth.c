#include "cli/bandwidth.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "cli/clock.h"

#define CACHES      (MOST_LEVELS - 1)
#define SUMS        8         /* vectors that a sum is kept in */
#define ROWS        4         /* that a sum reads side by side, which memory may bring faster than one */
#define STREAMS     3         /* of the triad */
#define TURNS       5         /* the best of which counts */
#define TURN_BYTES  (4 << 20) /* that a turn moves at least */
#define LEAST_RUN   (64 << 10)
#define LEAST_FAR   (48LL << 20) /* of what is measured as memory ... */
#define MOST_FAR    (256LL << 20)
#define UNROLLED_BY 4 /* vectors of a round of the triad */

typedef float ReadLoop(const float *x, long vectors, long rounds, long row, long step);
typedef void TriadLoop(float *a, const float *b, const float *c, float s, long vectors, long rounds);

static uint32_t lanes_of(const Target *target)
{
    return target->lanes ? target->lanes : 1;
}

/* Between two rounds memory counts as written, so that none is left out. */
static const char again_text[] = "        __asm__ volatile(\"\" ::: \"memory\");\n";

void bandwidth_write_loops(Text *out, const Target *target)
{
    text_printf(out,
                "\nfloat nnc_read(const float *x, long vectors, long rounds, long row, long step);\n"
                "float nnc_read(const float *x, long vectors, long rounds, long row, long step)\n{\n    v");
    for (uint32_t i = 0; i < SUMS; i++)
        text_printf(out, "%s s%u = {0}", i ? "," : "", i);
    text_printf(out,
                ";\n    for (long r = 0; r < rounds; r++) {\n%s        const v *p = (const v *)x;\n"
                "        for (long i = 0; i < vectors; i += %d, p += step) {\n",
                again_text, SUMS);
    for (uint32_t i = 0; i < SUMS; i++)
        text_printf(out, "            s%u += p[%u * row + %u];\n", i, i / (SUMS / ROWS), i % (SUMS / ROWS));
    text_printf(out, "        }\n    }\n    s0 = s0");
    for (uint32_t i = 1; i < SUMS; i++)
        text_printf(out, " + s%u", i);
    text_printf(out, ";\n    return s0[0] + s0[%u];\n}\n", lanes_of(target) - 1);
    text_printf(out,
                "\nvoid nnc_triad(float *a, const float *b, const float *c, float s, long vectors, long rounds);\n"
                "void nnc_triad(float *a, const float *b, const float *c, float s, long vectors, long rounds)\n{\n"
                "    v *to = (v *)a;\n    const v *x = (const v *)b, *y = (const v *)c;\n"
                "    for (long r = 0; r < rounds; r++) {\n%s"
                "        for (long i = 0; i < vectors; i += %d) {\n",
                again_text, UNROLLED_BY);
    for (uint32_t i = 0; i < UNROLLED_BY; i++)
        text_printf(out, "            v t%u = x[i + %u] + s * y[i + %u];\n", i, i, i);
    for (uint32_t i = 0; i < UNROLLED_BY; i++)
        text_printf(out, "            to[i + %u] = t%u;\n", i, i);
    text_printf(out, "        }\n    }\n}\n");
}

/* The first word of a file of Linux that says what cache `index` of a core is; empty where there is none. */
static void read_word(int index, const char *what, char word[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, what);
    FILE *stream = fopen(path, "r");
    if (!stream || fscanf(stream, "%31s", word) != 1)
        word[0] = 0;
    if (stream)
        fclose(stream);
}

/* Of "32K" or "8M". */
static int64_t bytes_of(const char *word)
{
    char *unit;
    int64_t number = strtoll(word, &unit, 10);
    return number << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

/* As Linux tells; the C library would say of the last level what all cores together have. */
static void read_caches(int64_t bytes[CACHES])
{
    char type[32], level[32], size[32];
    for (int index = 0; index < 8; index++) {
        read_word(index, "type", type);
        read_word(index, "level", level);
        read_word(index, "size", size);
        int number = atoi(level);
        if (*type && *type != 'I' && number >= 1 && number <= CACHES && bytes_of(size) > 0)
            bytes[number - 1] = bytes_of(size);
    }
}

void bandwidth_levels(const Target *target, int64_t run_bytes, Levels *levels)
{
    *levels = (Levels){0};
    int64_t bytes[CACHES] = {target->l1_bytes, target->l2_bytes};
    static const char *const name[CACHES] = {"L1", "L2", "L3"};
    read_caches(bytes);
    for (uint32_t i = 0; i < CACHES; i++)
        if (bytes[i] > (levels->count ? levels->level[levels->count - 1].bytes : 0))
            levels->level[levels->count++] = (Level){.name = name[i], .bytes = bytes[i]};
    levels->level[levels->count++] = (Level){.name = "memory", .bytes = INT64_MAX};
    levels->run = (Level){.name = bandwidth_level_of(levels, (double)run_bytes)->name, .bytes = run_bytes};
}

/* So much that it is at home there: four times what is nearer, and no more than half of what the level holds, which
 * others may use as well. */
static int64_t bytes_in(const Levels *levels, uint32_t i)
{
    int64_t nearer = i ? levels->level[i - 1].bytes : 0, half = levels->level[i].bytes / 2;
    if (i + 1 < levels->count)
        return nearer ? least(half, 4 * nearer) : half;
    return least(most(2 * nearer, LEAST_FAR), MOST_FAR);
}

typedef struct Streams {
    ReadLoop *read;
    TriadLoop *triad;
    float *at;
    uint32_t lanes;
} Streams;

typedef enum Way { READ, READ_ROWS, TRIAD, WAYS } Way;

/* Bytes a second of so many in memory, the best of some turns. */
static double measure(const Streams *s, int64_t bytes, Way way)
{
    long all = (long)(bytes / (4 * s->lanes)) / (SUMS * UNROLLED_BY * STREAMS) * (SUMS * UNROLLED_BY * STREAMS);
    long third = all / STREAMS, step = third * (long)s->lanes;
    double moved = 4.0 * s->lanes * (double)all, best = 0;
    long rounds = 1 + (long)(TURN_BYTES / moved);
    for (int turn = 0; turn < TURNS; turn++) {
        double begin = clock_processor();
        if (way == TRIAD)
            s->triad(s->at, s->at + step, s->at + 2 * step, 0.5f, third, rounds);
        else {
            volatile float sink = way == READ_ROWS ? s->read(s->at, all, rounds, all / ROWS, SUMS / ROWS)
                                                   : s->read(s->at, all, rounds, SUMS / ROWS, SUMS);
            (void)sink;
        }
        double rate = moved * (double)rounds / (clock_processor() - begin);
        best = rate > best ? rate : best;
    }
    return best;
}

static void keep(Level *level, double rate)
{
    if (rate > level->bytes_second)
        level->bytes_second = rate;
}

bool bandwidth_measure(const Peak *peak, Levels *levels)
{
    int64_t all = bytes_in(levels, levels->count - 1);
    Streams streams = {.lanes = peak->lanes};
    streams.read = (ReadLoop *)(uintptr_t)dlsym(peak->library, "nnc_read");
    streams.triad = (TriadLoop *)(uintptr_t)dlsym(peak->library, "nnc_triad");
    if (!streams.read || !streams.triad || posix_memalign((void **)&streams.at, 4096, (size_t)all))
        return false;
    for (int64_t i = 0; i < all / 4; i++) /* so that every page is there */
        streams.at[i] = 1;
    for (uint32_t i = 0; i < levels->count; i++)
        for (Way way = 0; way < WAYS; way++)
            keep(&levels->level[i], measure(&streams, bytes_in(levels, i), way));
    for (Way way = 0; way < TRIAD && levels->run.bytes; way++)
        keep(&levels->run, measure(&streams, least(most(levels->run.bytes, LEAST_RUN), all), way));
    free(streams.at);
    return true;
}

const Level *bandwidth_level_of(const Levels *levels, double bytes)
{
    uint32_t i = 0;
    while (i + 1 < levels->count && bytes > (double)levels->level[i].bytes)
        i++;
    return &levels->level[i];
}
