/* Schedules of chains: against all ways to reverse short ones, and their manners on longer ones. */
#include "base/arena.h"
#include "passes/remat.h"
#include "unit.h"

enum { LONGEST = 9, FEW = 4, NO_WAY = 1 << 20 };

/* All ways.  `kept` has a bit for each step whose input is kept; steps [0, left) are not reversed yet.  To reverse the
 * last of them takes its input: it is computed from one that is kept, while more are kept and others given up. */

typedef struct Ways {
    unsigned snapshots;
    int fewest[1 << LONGEST][LONGEST + 1]; /* -1: not known */
} Ways;

static unsigned bits(unsigned set)
{
    unsigned count = 0;
    for (; set; set &= set - 1)
        count++;
    return count;
}

static int reverse(Ways *ways, unsigned kept, unsigned left)
{
    int *fewest = &ways->fewest[kept][left];
    if (left == 0 || *fewest >= 0)
        return left ? *fewest : 0;
    *fewest = NO_WAY;
    for (unsigned from = 0; from < left; from++)
        for (unsigned next = 1; next < 1u << left; next += 2) {
            unsigned passed = (1u << (left - 1)) - (1u << from);
            if (!(kept >> from & 1) || next & ~(kept | passed) || bits(next) > ways->snapshots)
                continue;
            int steps = (int)(left - 1 - from) + reverse(ways, next, left - 1);
            *fewest = steps < *fewest ? steps : *fewest;
        }
    return *fewest;
}

static int fewest_steps(unsigned length, unsigned snapshots)
{
    static Ways ways;
    ways.snapshots = snapshots;
    for (unsigned kept = 0; kept < 1u << LONGEST; kept++)
        for (unsigned left = 0; left <= LONGEST; left++)
            ways.fewest[kept][left] = -1;
    return reverse(&ways, 1, length);
}

/* A schedule */

typedef struct Schedule {
    Arena arena;
    RematRange *range;
    uint32_t count, length, snapshots;
} Schedule;

static Schedule schedule_of(uint32_t length, uint32_t snapshots)
{
    Schedule s = {.length = length, .snapshots = snapshots};
    s.count = remat_schedule(&s.arena, length, snapshots, &s.range);
    return s;
}

static int64_t steps_of(const Schedule *s)
{
    int64_t steps = 0;
    for (uint32_t i = 0; i < s->count; i++)
        steps += s->range[i].end - s->range[i].begin;
    return steps;
}

/* Those of one range follow one another from its first step to the one before its last. */
static bool covers(const Schedule *s, uint32_t around)
{
    uint32_t at = around == NONE ? 0 : s->range[around].begin;
    uint32_t end = around == NONE ? s->length : s->range[around].end;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->range[i].around != around)
            continue;
        if (s->range[i].begin != at || s->range[i].end <= at)
            return false;
        at = s->range[i].end;
    }
    return at + 1 == end;
}

/* Inputs that are kept when the range is computed again: its own, those before it in the same range, and in those
 * around. */
static uint32_t kept(const Schedule *s, uint32_t range)
{
    uint32_t count = 1;
    for (uint32_t r = range; r != NONE; r = s->range[r].around)
        for (uint32_t i = 0; i < s->count; i++) /* the first in a range shares its input */
            count += s->range[i].around == s->range[r].around && s->range[i].end <= s->range[r].begin;
    return count;
}

static void check(Unit *unit, const Schedule *s)
{
    EXPECT(covers(s, NONE));
    for (uint32_t i = 0; i < s->count; i++) {
        EXPECT(s->range[i].around == NONE || s->range[i].around < i);
        EXPECT(covers(s, i));
        EXPECT(kept(s, i) <= s->snapshots);
    }
}

UNIT(short_chains_take_the_fewest_steps_of_all_ways)
{
    for (uint32_t length = 1; length <= LONGEST; length++)
        for (uint32_t snapshots = 1; snapshots <= FEW; snapshots++) {
            Schedule s = schedule_of(length, snapshots);
            check(unit, &s);
            EXPECT_INT(steps_of(&s), fewest_steps(length, snapshots));
            arena_free(&s.arena);
        }
}

/* With s snapshots, a chain of C(s + r, s) steps computes none more than r times again (Griewank 1992). */
UNIT(long_chains_take_as_many_steps_as_the_closed_form)
{
    static const struct {
        uint32_t length, snapshots;
        int64_t steps;
    } known[] = {{10, 1, 45},   {10, 3, 15},     {56, 3, 210},     {56, 5, 140},
                 {100, 99, 99}, {100, 1000, 99}, {1000, 1, 499500}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        Schedule s = schedule_of(known[i].length, known[i].snapshots);
        if (known[i].length < 1000)
            check(unit, &s);
        EXPECT_INT(steps_of(&s), known[i].steps);
        arena_free(&s.arena);
    }
}

UNIT(snapshots_suffice_for_the_repetitions)
{
    EXPECT_INT(remat_snapshots(1, 1), 1);
    EXPECT_INT(remat_snapshots(17, 16), 1);
    EXPECT_INT(remat_snapshots(18, 16), 2);
    EXPECT_INT(remat_snapshots(153, 16), 2); /* C(18, 2) */
    EXPECT_INT(remat_snapshots(154, 16), 3);
    EXPECT_INT(remat_snapshots(1000, 1), 999);
}

int main(void)
{
    static const Test test[] = {
        RUN(short_chains_take_the_fewest_steps_of_all_ways),
        RUN(long_chains_take_as_many_steps_as_the_closed_form),
        RUN(snapshots_suffice_for_the_repetitions),
    };
    return UNIT_MAIN(test);
}
