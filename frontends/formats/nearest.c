/* Which stored tensor was meant: one whose name ends in the wanted one (`model.` in front), else the one at the least
 * edit distance.  Work is bounded: names beyond LONGEST_NAME and, once MOST_WORK is spent, all that are not such
 * endings are passed over. */
#include "formats/wanted.h"

#include <ctype.h>
#include <string.h>

#define LONGEST_NAME 200
#define MOST_WORK    ((uint64_t)1000 * 1000 * 1000) /* cells of edit distances, most of which are cut off: seconds */

struct NearestStored {
    const Safetensors *file;
    const StoredTensor **left; /* those that nothing wants */
    uint32_t count;
    Map by_ending; /* `c`, `b.c` and `a.b.c` lead to the first tensor called a.b.c */
    uint64_t work;
};

NearestStored *weights_nearest_open(Arena *arena, const Safetensors *file, const bool *used)
{
    NearestStored *n = ARENA_NEW(arena, NearestStored);
    *n = (NearestStored){.file = file, .by_ending = {.arena = arena}};
    n->left = ARENA_ARRAY(arena, const StoredTensor *, file->count + 1);
    for (uint32_t i = 0; i < file->count; i++) {
        Str name = file->tensor[i].name;
        if (used[i])
            continue;
        for (uint32_t k = 0; name.len <= LONGEST_NAME && k < name.len; k++)
            if (k == 0 || name.ptr[k - 1] == '.')
                map_add(&n->by_ending, (Str){name.ptr + k, name.len - k}, n->count);
        n->left[n->count++] = &file->tensor[i];
    }
    return n;
}

bool weights_nearest_left(const NearestStored *nearest)
{
    return nearest->count > 0;
}

/* Levenshtein's distance, or `limit` when it is not less.  Both names are at most LONGEST_NAME long. */
static uint32_t distance(Str a, Str b, uint32_t limit)
{
    uint32_t row[LONGEST_NAME + 1];

    for (uint32_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t diagonal = row[0], least = i;
        row[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t change = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            uint32_t shorter = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            diagonal = row[j];
            row[j] = change < shorter ? change : shorter;
            least = row[j] < least ? row[j] : least;
        }
        if (least >= limit)
            return limit;
    }
    return row[b.len] < limit ? row[b.len] : limit;
}

/* What a shape that does not fit counts, in letters of the name. */
static uint32_t shape_penalty(const Type *type, const StoredTensor *stored)
{
    switch (weights_fit(type, stored)) {
    case FIT_SAME:
    case FIT_WIDTH:
        return 0;
    case FIT_TRANSPOSED:
    case FIT_PERMUTED:
        return 1;
    default:
        return 4;
    }
}

/* The next run of digits from *at on; empty at the end. */
static Str next_number(Str name, uint32_t *at)
{
    while (*at < name.len && !isdigit((unsigned char)name.ptr[*at]))
        ++*at;
    uint32_t begin = *at;
    while (*at < name.len && isdigit((unsigned char)name.ptr[*at]))
        ++*at;
    return (Str){name.ptr + begin, *at - begin};
}

/* layer17 is not layer7, however near in letters: what names that are numbered otherwise count.  That only one of them
 * has a number is less of a difference: fc and fc2. */
static uint32_t number_penalty(Str a, Str b)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        Str x = next_number(a, &i), y = next_number(b, &j);
        if (!str_eq(x, y))
            return x.len && y.len ? 6 : 2;
        if (!x.len)
            return 0;
    }
}

/* The wanted name is the end of a stored one, or the other way about: net.conv.weight, conv.weight. */
static uint32_t by_ending(const NearestStored *n, Str name)
{
    uint32_t found = map_get(&n->by_ending, name);
    for (uint32_t k = 1; found == MAP_NONE && k < name.len; k++) {
        Str end = {name.ptr + k, name.len - k};
        uint32_t whole = name.ptr[k - 1] == '.' ? map_get(&n->by_ending, end) : MAP_NONE;
        if (whole != MAP_NONE && str_eq(n->left[whole]->name, end) && memchr(end.ptr, '.', end.len))
            found = whole;
    }
    return found;
}

const StoredTensor *weights_nearest(NearestStored *n, Str name, const Type *type)
{
    const StoredTensor *best = NULL;
    uint32_t cost = UINT32_MAX, found = name.len ? by_ending(n, name) : MAP_NONE;

    if (found != MAP_NONE)
        return n->left[found];
    for (uint32_t i = 0; i < n->count && name.len <= LONGEST_NAME && n->work < MOST_WORK; i++) {
        Str other = n->left[i]->name;
        uint32_t penalty = shape_penalty(type, n->left[i]) + number_penalty(name, other);
        uint32_t apart = name.len > other.len ? name.len - other.len : other.len - name.len;
        if (other.len > LONGEST_NAME || penalty + apart >= cost)
            continue;
        uint32_t total = penalty + distance(name, other, cost - penalty);
        n->work += (uint64_t)name.len * other.len;
        if (total < cost) {
            best = n->left[i];
            cost = total;
        }
    }
    return best;
}
