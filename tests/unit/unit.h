/* Unit tests: a program of some tests, each a function, reported as TAP.
 *
 *     UNIT(slices_compare_by_bytes)
 *     {
 *         EXPECT(str_eq(STR("a"), STR("a")));
 *         EXPECT_INT(str_compare(STR("a"), STR("b")), -1);
 *     }
 *     int main(void) { static const Test test[] = {RUN(slices_compare_by_bytes)}; return unit_main(test, 1); }
 */
#ifndef NNC_TESTS_UNIT_H
#define NNC_TESTS_UNIT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct Unit {
    unsigned failed; /* expectations of the running test */
} Unit;

typedef struct Test {
    const char *name;
    void (*run)(Unit *unit);
} Test;

#define UNIT(name) static void name(Unit *unit)
#define RUN(name)                                                                                                      \
    {                                                                                                                  \
#name, name                                                                                                    \
    }

#define EXPECT(condition)                                                                                              \
    ((condition) ? (void)0 : (void)(unit->failed++, printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #condition)))

#define EXPECT_INT(got, want) unit_int(unit, __FILE__, __LINE__, #got, (long long)(got), (long long)(want))

static inline void unit_int(Unit *unit, const char *file, int line, const char *what, long long got, long long want)
{
    if (got == want)
        return;
    unit->failed++;
    printf("# %s:%d: %s is %lld, not %lld\n", file, line, what, got, want);
}

static inline int unit_main(const Test *test, unsigned count)
{
    unsigned failed = 0;
    printf("1..%u\n", count);
    for (unsigned i = 0; i < count; i++) {
        Unit unit = {0};
        test[i].run(&unit);
        failed += unit.failed > 0;
        printf("%s %u - %s\n", unit.failed ? "not ok" : "ok", i + 1, test[i].name);
        fflush(stdout);
    }
    return failed > 0;
}

#define UNIT_MAIN(table) unit_main(table, sizeof(table) / sizeof(table)[0])

#endif
