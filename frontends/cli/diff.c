#include "cli/diff.h"

#include <string.h>

#define MOST_EDITS 2000 /* their trace takes the square of it in memory */
#define AROUND     2    /* lines of context */

typedef struct Lines {
    Str *line;
    uint32_t count, capacity;
} Lines;

static Lines lines_of(Arena *arena, Str text)
{
    Lines lines = {0};
    for (uint32_t at = 0, end; at < text.len; at = end + 1) {
        for (end = at; end < text.len && text.ptr[end] != '\n';)
            end++;
        ARENA_PUSH(arena, lines.line, lines.count, lines.capacity, ((Str){text.ptr + at, end - at}));
    }
    return lines;
}

typedef struct Edits { /* which lines have no partner in the other text */
    bool *gone, *came;
} Edits;

/* The furthest x on diagonal k = x - y with d edits, from those with d - 1. */
static int32_t furthest(const int32_t *v, int32_t k, int32_t d)
{
    return k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1;
}

/* Back along the trace, edit by edit. */
static void trace_back(int32_t *const *trace, int32_t d, int32_t x, int32_t y, Edits *edits)
{
    for (; d > 0; d--) {
        const int32_t *v = trace[d - 1] + d; /* its diagonals reach from 1 - d to d - 1, and one beyond */
        int32_t k = x - y;
        bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
        int32_t from_x = down ? v[k + 1] : v[k - 1], from_y = from_x - (down ? k + 1 : k - 1);
        if (down)
            edits->came[from_y] = true;
        else
            edits->gone[from_x] = true;
        x = from_x;
        y = from_y;
    }
}

static bool find_edits(Arena *arena, const Lines *a, const Lines *b, Edits *edits)
{
    int32_t n = (int32_t)a->count, m = (int32_t)b->count;
    int32_t *trace[MOST_EDITS + 1];
    for (int32_t d = 0; d <= MOST_EDITS; d++) {
        int32_t *v = ARENA_ARRAY(arena, int32_t, 2 * (size_t)d + 3) + d + 1;
        trace[d] = v - (d + 1);
        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = d == 0 ? 0 : furthest(trace[d - 1] + d, k, d), y = x - k;
            while (x < n && y < m && str_eq(a->line[x], b->line[y])) {
                x++;
                y++;
            }
            v[k] = x;
            if (x >= n && y >= m) {
                trace_back(trace, d, n, m, edits);
                return true;
            }
        }
    }
    return false;
}

static void put(Text *out, char mark, Str line)
{
    text_char(out, mark);
    text_str(out, line);
    text_char(out, '\n');
}

/* Both texts side by side; lines with a partner are shown near edits alone. */
static void show(Text *out, const Lines *a, const Lines *b, const Edits *edits)
{
    uint32_t x = 0, y = 0, since = AROUND, skipped = 0;
    while (x < a->count || y < b->count) {
        if (x < a->count && edits->gone[x]) {
            put(out, '-', a->line[x++]);
            since = skipped = 0;
        } else if (y < b->count && edits->came[y]) {
            put(out, '+', b->line[y++]);
            since = skipped = 0;
        } else {
            bool near = since < AROUND;
            for (uint32_t i = 1; i <= AROUND && !near; i++)
                near = (x + i < a->count && edits->gone[x + i]) || (y + i < b->count && edits->came[y + i]);
            if (near)
                put(out, ' ', a->line[x]);
            else if (!skipped++)
                text_printf(out, "@@\n");
            skipped = near ? 0 : skipped;
            since++;
            x++;
            y++;
        }
    }
}

void diff_lines(Text *out, Str before, Str after)
{
    Arena arena = {0};
    Lines a = lines_of(&arena, before), b = lines_of(&arena, after);
    Edits edits = {ARENA_ARRAY(&arena, bool, a.count + 1), ARENA_ARRAY(&arena, bool, b.count + 1)};
    if (!find_edits(&arena, &a, &b, &edits)) {
        memset(edits.gone, true, a.count);
        memset(edits.came, true, b.count);
    }
    if (!str_eq(before, after))
        show(out, &a, &b, &edits);
    arena_free(&arena);
}
