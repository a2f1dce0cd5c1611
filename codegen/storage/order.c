/* Lowering the peak of an order, piece by piece.
 *
 * Pieces: a unit that all earlier ones lead to and that all later ones come from has its place in every order.  And
 * where nothing is live, some best order comes through: live bytes are a submodular function of the set of units that
 * have run, so an order can be sorted into those before the cut and those behind without ever being higher.  Between
 * such places each piece is ordered on its own; the peak is that of the worst.
 *
 * So pieces are taken by their peaks, the highest first, until one is reached that is no higher than what another has
 * come to.  Most models end with the first, where one kernel's operands and results are the peak and nothing helps.
 *
 * Each is searched exhaustively, while the steps last, then by beam. */
#include "storage/order.h"

#include <stdlib.h>
#include <string.h>

const OrderEffort order_effort = {.exact = 3000000, .beam = 6000000, .width = 256};

/* The inverse of lists of `from` keys that hold numbers below `to`; ascending. */
static Lists invert(const Lists *lists, uint32_t from, uint32_t to, Arena *arena)
{
    uint32_t total = lists->first[from];
    Lists inverse = {ARENA_ARRAY(arena, uint32_t, to + 2), ARENA_ARRAY(arena, uint32_t, total)};
    for (uint32_t i = 0; i < total; i++)
        inverse.first[lists->item[i] + 2]++;
    for (uint32_t k = 0; k < to; k++)
        inverse.first[k + 2] += inverse.first[k + 1];
    for (uint32_t k = 0; k < from; k++)
        for (uint32_t i = lists->first[k]; i < lists->first[k + 1]; i++)
            inverse.item[inverse.first[lists->item[i] + 1]++] = k;
    return inverse;
}

void order_prepare(OrderProblem *problem, Arena *arena)
{
    problem->feeds = invert(&problem->needs, problem->units, problem->units, arena);
    problem->readers = invert(&problem->read, problem->units, problem->values, arena);
}

static uint32_t *positions(const OrderProblem *problem, const uint32_t *order, Arena *arena)
{
    uint32_t *position = ARENA_ARRAY(arena, uint32_t, problem->units);
    for (uint32_t i = 0; i < problem->units; i++)
        position[order[i]] = i;
    return position;
}

bool order_is_legal(const OrderProblem *problem, const uint32_t *order, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t *position = positions(problem, order, scratch);
    bool legal = true;
    for (uint32_t u = 0; u < problem->units; u++)
        for (uint32_t i = problem->needs.first[u]; i < problem->needs.first[u + 1]; i++)
            legal &= position[problem->needs.item[i]] < position[u];
    arena_reset(scratch, mark);
    return legal;
}

/* Live bytes along an order */

typedef struct Profile {
    int64_t *during; /* per place: while its unit runs */
    int64_t *before; /* per place, and at the end */
} Profile;

static int64_t made_bytes(const OrderProblem *problem, uint32_t unit)
{
    int64_t bytes = 0;
    for (uint32_t i = problem->made.first[unit]; i < problem->made.first[unit + 1]; i++)
        bytes += problem->bytes[problem->made.item[i]];
    return bytes;
}

static int64_t read_bytes(const OrderProblem *problem, uint32_t unit)
{
    int64_t bytes = 0;
    for (uint32_t i = problem->read.first[unit]; i < problem->read.first[unit + 1]; i++)
        bytes += problem->bytes[problem->read.item[i]];
    return bytes;
}

static bool runs_in_place(const OrderProblem *problem, uint32_t unit, const uint32_t *readers)
{
    for (uint32_t i = problem->over.first[unit]; i < problem->over.first[unit + 1]; i++)
        if (readers[problem->over.item[i]] == 1)
            return true;
    return false;
}

/* Runs the unit: gives back what it is the last to read, and what nobody reads.  Returns the change of live bytes. */
static int64_t run_unit(const OrderProblem *problem, uint32_t unit, uint32_t *readers)
{
    int64_t change = made_bytes(problem, unit);
    for (uint32_t i = problem->read.first[unit]; i < problem->read.first[unit + 1]; i++)
        if (--readers[problem->read.item[i]] == 0)
            change -= problem->bytes[problem->read.item[i]];
    for (uint32_t i = problem->made.first[unit]; i < problem->made.first[unit + 1]; i++)
        if (!readers[problem->made.item[i]])
            change -= problem->bytes[problem->made.item[i]];
    return change;
}

static Profile profile_of(const OrderProblem *problem, const uint32_t *order, Arena *arena)
{
    Profile profile = {ARENA_ARRAY(arena, int64_t, problem->units), ARENA_ARRAY(arena, int64_t, problem->units + 1)};
    uint32_t *readers = ARENA_ARRAY(arena, uint32_t, problem->values);
    for (uint32_t i = 0; i < problem->read.first[problem->units]; i++)
        readers[problem->read.item[i]]++;
    for (uint32_t v = 0; v < problem->values; v++)
        readers[v] += problem->stays[v]; /* a reader that never comes */
    for (uint32_t i = 0; i < problem->units; i++) {
        uint32_t unit = order[i];
        int64_t own = runs_in_place(problem, unit, readers) ? 0 : made_bytes(problem, unit);
        profile.during[i] = profile.before[i] + own;
        profile.before[i + 1] = profile.before[i] + run_unit(problem, unit, readers);
    }
    return profile;
}

static int64_t peak_between(const Profile *profile, uint32_t begin, uint32_t end)
{
    int64_t peak = 0;
    for (uint32_t i = begin; i < end; i++)
        peak = profile->during[i] > peak ? profile->during[i] : peak;
    return peak;
}

int64_t order_peak(const OrderProblem *problem, const uint32_t *order, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    Profile profile = profile_of(problem, order, scratch);
    int64_t peak = peak_between(&profile, 0, problem->units);
    arena_reset(scratch, mark);
    return peak;
}

/* Pieces */

typedef struct Piece {
    uint32_t begin, end; /* places in the order */
    int64_t peak;
} Piece;

/* Per place: does the unit there have its place in every order?  All later ones come from it when each of them needs
 * it or one between; all earlier ones lead to it when each of them feeds it or one between. */
static bool *find_fixed(const OrderProblem *problem, const uint32_t *order, const uint32_t *position, Arena *arena)
{
    uint32_t count = problem->units, reach = 0;
    bool *fixed = ARENA_ARRAY(arena, bool, count);
    for (uint32_t i = 0; i < count; i++) { /* reach: the latest of the first places that the earlier ones feed */
        uint32_t nearest = count, u = order[i];
        fixed[i] = reach <= i;
        for (uint32_t k = problem->feeds.first[u]; k < problem->feeds.first[u + 1]; k++)
            nearest = position[problem->feeds.item[k]] < nearest ? position[problem->feeds.item[k]] : nearest;
        reach = nearest > reach ? nearest : reach;
    }
    int64_t back = count; /* the earliest of the last places that the later ones need */
    for (uint32_t i = count; i-- > 0;) {
        int64_t nearest = -1;
        uint32_t u = order[i];
        fixed[i] &= back >= (int64_t)i;
        for (uint32_t k = problem->needs.first[u]; k < problem->needs.first[u + 1]; k++)
            nearest = position[problem->needs.item[k]] > nearest ? position[problem->needs.item[k]] : nearest;
        back = nearest < back ? nearest : back;
    }
    return fixed;
}

static Piece *cut(const OrderProblem *problem, const bool *fixed, const Profile *profile, uint32_t *count, Arena *arena)
{
    Piece *piece = NULL;
    uint32_t capacity = 0, begin = 0;
    for (uint32_t i = 1; i <= problem->units; i++) {
        bool ends = i == problem->units || fixed[i - 1] || fixed[i] || profile->before[i] == 0;
        if (!ends)
            continue;
        Piece next = {begin, i, peak_between(profile, begin, i)};
        ARENA_PUSH(arena, piece, *count, capacity, next);
        begin = i;
    }
    return piece;
}

static int by_peak(const void *left, const void *right)
{
    const Piece *a = left, *b = right;
    if (a->peak != b->peak)
        return a->peak > b->peak ? -1 : 1;
    return a->begin < b->begin ? -1 : 1;
}

/* No order is below what a unit and its operands take. */
static int64_t floor_of(const OrderProblem *problem, const Piece *piece, uint32_t pieces)
{
    int64_t floor = 0;
    for (uint32_t u = 0; u < problem->units; u++) {
        bool may_share = problem->over.first[u] != problem->over.first[u + 1];
        int64_t bytes = read_bytes(problem, u) + (may_share ? 0 : made_bytes(problem, u));
        floor = bytes > floor ? bytes : floor;
    }
    for (uint32_t p = 0; p < pieces; p++) /* a piece of one unit has one order */
        if (piece[p].end - piece[p].begin == 1 && piece[p].peak > floor)
            floor = piece[p].peak;
    return floor;
}

/* Finds the piece's best order, if it can.  False when there may be a better one. */
static bool settle(OrderPiece *piece, OrderEffort *effort, Arena *scratch)
{
    enum { MOST_EXACT = 2048, MOST_BEAM = 16384, LEAST_WIDTH = 4 };
    uint32_t count = piece->end - piece->begin;
    int64_t width = effort->beam / ((int64_t)count * (4 + count / 32));
    if (count <= MOST_EXACT && order_search(piece, 0, &effort->exact, scratch) != ORDER_OUT)
        return true;
    width = width < effort->width ? width : effort->width;
    for (; count <= MOST_BEAM && width >= LEAST_WIDTH; width /= 4) {
        int64_t steps = effort->beam / 2; /* the rest is for narrower ones, should these not do */
        effort->beam -= steps;
        OrderVerdict verdict = order_search(piece, (uint32_t)width, &steps, scratch);
        effort->beam += steps;
        if (verdict != ORDER_OUT)
            break;
    }
    return false;
}

bool order_improve(const OrderProblem *problem, uint32_t *order, const OrderEffort *effort, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    const uint32_t *position = positions(problem, order, scratch);
    const bool *fixed = find_fixed(problem, order, position, scratch);
    Profile profile = profile_of(problem, order, scratch);
    OrderEffort left = *effort;
    uint32_t count = 0;
    Piece *piece = cut(problem, fixed, &profile, &count, scratch);
    const uint32_t *given = arena_copy(scratch, order, problem->units * sizeof *given);
    int64_t floor = floor_of(problem, piece, count);
    bool best = true; /* the floor is the peak of the best order, so far as pieces have been settled */

    qsort(piece, count, sizeof *piece, by_peak);
    for (uint32_t p = 0; p < count && piece[p].peak > floor; p++) {
        OrderPiece one = {.problem = problem,
                          .order = order,
                          .position = position,
                          .begin = piece[p].begin,
                          .end = piece[p].end,
                          .live = profile.before[piece[p].begin],
                          .floor = floor,
                          .limit = piece[p].peak};
        bool settled = settle(&one, &left, scratch);
        best = one.limit <= floor ? best : settled; /* what sets the floor decides */
        floor = one.limit > floor ? one.limit : floor;
    }
    if (count && floor >= piece[0].peak) /* what was lowered is not what decides */
        memcpy(order, given, problem->units * sizeof *order);
    arena_reset(scratch, mark);
    return best;
}
