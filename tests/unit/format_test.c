/* Text as printf writes it: in a buffer that fits, in one that does not, and where formats need printf itself. */
#include <limits.h>
#include <string.h>

#include "base/text.h"

#include "unit.h"

static Arena arena;
static char expected[2000];

/* Both ways to format, beside snprintf. */
#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        int wanted = snprintf(expected, sizeof expected, __VA_ARGS__);                                                 \
        Str made = str_format(&arena, __VA_ARGS__);                                                                    \
        Text text = {0};                                                                                               \
        text_printf(&text, "%s|", "before");                                                                           \
        text_printf(&text, __VA_ARGS__);                                                                               \
        Str view = text_view(&text);                                                                                   \
        EXPECT_INT(made.len, wanted);                                                                                  \
        EXPECT(memcmp(made.ptr, expected, made.len + 1) == 0);                                                         \
        EXPECT_INT(view.len, wanted + 7);                                                                              \
        EXPECT(memcmp(view.ptr + 7, expected, made.len + 1) == 0);                                                     \
        text_free(&text);                                                                                              \
    } while (0)

UNIT(strings_and_numbers)
{
    static const char unterminated[3] = {'a', 'b', 'c'};
    SAME("%s", "");
    SAME("plain");
    SAME("%s and %s", "one", "another");
    SAME("%.*s%c%%", 3, unterminated, 'x');
    SAME("%.*s|%.*s|%.*s", 2, "long", 9, "short", 0, "none");
    SAME("%.*s", -1, "all of it");
    SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    SAME("%u %u", 0u, UINT_MAX);
    SAME("%lld %lld %lld", 0LL, LLONG_MAX, LLONG_MIN);
    SAME("%s%u%s", "@kernel(", 12u, ")");
}

UNIT(other_formats)
{
    SAME("%s: %5.2f and %s", "mixed", 1.005, "behind");
    SAME("%u %08x %-4u| %3.*s|%*d", 7u, 255u, 3u, 2, "abc", 6, 42);
    SAME("%d %g %llu %zu", 1, 1e-9, 1ULL << 63, sizeof arena);
}

UNIT(lengths_at_the_edges)
{
    char word[1200];
    for (size_t length = 240; length < 1100; length += length == 270 ? 700 : 1) {
        memset(word, 'w', length);
        word[length] = 0;
        SAME("%s", word);
        SAME("%d%s", -7, word);
        SAME("%s%.1f", word, 0.5);
    }
}

int main(void)
{
    static const Test test[] = {RUN(strings_and_numbers), RUN(other_formats), RUN(lengths_at_the_edges)};
    int status = UNIT_MAIN(test);
    arena_free(&arena);
    return status;
}
