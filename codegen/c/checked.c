/* `checked` sources: between two kernels, bytes of the arena that hold nothing alive are made unreadable, so that a
 * kernel which touches them is caught.  AddressSanitizer stops at the first such byte; without it they are filled with
 * ones, NaN to every float, and the results go wrong. */
#include "c/source.h"

#include <stdlib.h>

typedef struct Range { /* bytes [begin, end) of the arena */
    int64_t begin, end;
} Range;

typedef struct Ranges { /* ascending, apart */
    Range *range;
    uint32_t count;
} Ranges;

static int by_begin(const void *a, const void *b)
{
    const Range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* What is alive while kernel k runs; nothing before the first and after the last. */
static Ranges alive(const Entry *entry, Arena *arena, int64_t k)
{
    const PlanProblem *problem = &entry->memory.problem;
    Ranges live = {ARENA_ARRAY(arena, Range, problem->count), 0};
    uint32_t found = 0;
    for (uint32_t b = 0; b < problem->count; b++)
        if (problem->buffer[b].first <= k && k < problem->buffer[b].last && problem->buffer[b].size)
            live.range[found++] =
                (Range){entry->memory.plan.offset[b], entry->memory.plan.offset[b] + problem->buffer[b].size};
    qsort(live.range, found, sizeof *live.range, by_begin);
    for (uint32_t i = 0; i < found; i++) {
        Range *last = live.count ? &live.range[live.count - 1] : NULL;
        if (last && live.range[i].begin <= last->end)
            last->end = live.range[i].end > last->end ? live.range[i].end : last->end;
        else
            live.range[live.count++] = live.range[i];
    }
    return live;
}

static void print_range(Text *out, const char *macro, int64_t begin, int64_t end)
{
    text_printf(out, "    %s(a + %lld, %lld);\n", macro, (long long)begin, (long long)(end - begin));
}

/* One statement for each range of `of` that is not in `but`. */
static void print_difference(Text *out, const char *macro, Ranges of, Ranges but)
{
    for (uint32_t i = 0; i < of.count; i++) {
        int64_t begin = of.range[i].begin, end = of.range[i].end;
        for (uint32_t j = 0; j < but.count && but.range[j].begin < end; j++) {
            if (but.range[j].begin > begin)
                print_range(out, macro, begin, but.range[j].begin);
            if (but.range[j].end > begin)
                begin = but.range[j].end;
        }
        if (begin < end)
            print_range(out, macro, begin, end);
    }
}

void source_checked_macros(Text *out)
{
    text_printf(out,
                "/* Checked: memory that holds nothing alive is made unreadable between kernels. */\n"
                "#if defined(__SANITIZE_ADDRESS__)\n#define NNC_SANITIZED 1\n"
                "#elif defined(__has_feature)\n#if __has_feature(address_sanitizer)\n#define NNC_SANITIZED 1\n"
                "#endif\n#endif\n"
                "#ifdef NNC_SANITIZED\n#include <sanitizer/asan_interface.h>\n"
                "#define NNC_DEAD(p, bytes) __asan_poison_memory_region(p, bytes)\n"
                "#define NNC_LIVE(p, bytes) __asan_unpoison_memory_region(p, bytes)\n"
                "#else\n"
                "#define NNC_DEAD(p, bytes) memset(p, 0xFF, bytes)\n"
                "#define NNC_LIVE(p, bytes) (void)(p)\n"
                "#endif\n\n");
}

void source_checked_step(Text *out, const Entry *entry, int64_t k)
{
    Arena arena = {0};
    bool jumps = entry->memory.regions; /* the step before is not always k - 1 */
    Ranges before = alive(entry, &arena, k - 1), now = alive(entry, &arena, k);
    Range everything = {0, entry->program->arena_bytes};
    Ranges whole = {&everything, everything.end > 0}, none = {NULL, 0};
    if (k == 0 || jumps)
        print_difference(out, "NNC_DEAD", whole, now);
    if (!jumps)
        print_difference(out, "NNC_DEAD", before, now);
    if (k < entry->memory.kernel_count)
        print_difference(out, "NNC_LIVE", now, jumps ? none : before);
    else /* the arena is the caller's again */
        print_difference(out, "NNC_LIVE", whole, none);
    arena_free(&arena);
}
