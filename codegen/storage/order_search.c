/* Search over sets of units that can have run, by their number: layer k holds the sets of k units that some order
 * reaches.  Equal sets are one state, whatever the order in which they came to be, and keep the lowest peak of any way
 * to them; that is exact, since what is live after a set depends on the set alone (Held and Karp's dynamic programming;
 * for this problem Ahn et al., "Ordering chaos: memory-aware scheduling of irregularly wired neural networks for edge
 * devices", MLSys 2020).
 *
 * What keeps it small:
 *   - a state whose peak is not below the limit is dropped;
 *   - a unit that raises neither the live bytes nor the state's peak is run at once, and no other in its place: by
 *     submodularity all that could run before it can run after it, and is not higher.
 *
 * The beam is the same search, keeping in each layer the states of the lowest peak, then the fewest live bytes, then
 * the first that were found. */
#include "storage/order.h"

#include <stdlib.h>
#include <string.h>

typedef struct State {
    int64_t live, peak;
    uint64_t hash; /* of the set */
    uint32_t step; /* how it was reached */
    uint32_t bits; /* which of the layer's sets are its */
} State;

typedef struct Step {
    uint32_t before; /* the step before it */
    uint32_t unit;   /* as its place in the piece */
} Step;

typedef struct Layer {
    State *state;
    uint64_t *bits; /* per state: the units that have run, then those that are ready */
    uint32_t count, capacity, bits_capacity;
} Layer;

typedef struct Slot { /* of a hash table, empty unless stamped with the layer's number */
    uint32_t stamp, state;
} Slot;

typedef struct Move {
    uint32_t unit; /* as its place in the piece */
    int64_t during, after;
} Move;

typedef struct Search {
    const OrderPiece *piece;
    const OrderProblem *problem;
    Arena *arena;
    uint32_t count, words; /* units; words in a set of them */
    uint32_t width, stamp;
    int64_t steps;
    Layer now, next;
    Slot *slot;
    uint32_t slots; /* a power of two */
    Step *step;
    uint32_t step_count, step_capacity;
    Move *move; /* those of one state */
} Search;

static bool has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static uint64_t *done_of(const Search *s, const Layer *layer, const State *state)
{
    return layer->bits + (size_t)state->bits * 2 * s->words;
}

static bool has_run(const Search *s, const uint64_t *done, uint32_t unit)
{
    uint32_t place = s->piece->position[unit];
    return place < s->piece->begin || (place < s->piece->end && has(done, place - s->piece->begin));
}

/* Moves */

static bool is_last_read(Search *s, const uint64_t *done, uint32_t unit, uint32_t value)
{
    const Lists *readers = &s->problem->readers;
    if (s->problem->stays[value])
        return false;
    for (uint32_t i = readers->first[value]; i < readers->first[value + 1]; i++) {
        s->steps--;
        if (readers->item[i] != unit && !has_run(s, done, readers->item[i]))
            return false;
    }
    return true;
}

static Move move_of(Search *s, const State *state, const uint64_t *done, uint32_t place)
{
    const OrderProblem *p = s->problem;
    uint32_t unit = s->piece->order[s->piece->begin + place];
    int64_t made = 0, freed = 0;
    bool in_place = false;
    for (uint32_t i = p->made.first[unit]; i < p->made.first[unit + 1]; i++) {
        uint32_t value = p->made.item[i];
        made += p->bytes[value];
        if (!p->stays[value] && p->readers.first[value] == p->readers.first[value + 1])
            freed += p->bytes[value];
    }
    for (uint32_t i = p->read.first[unit]; i < p->read.first[unit + 1]; i++)
        if (p->bytes[p->read.item[i]] && is_last_read(s, done, unit, p->read.item[i]))
            freed += p->bytes[p->read.item[i]];
    for (uint32_t i = p->over.first[unit]; i < p->over.first[unit + 1] && !in_place; i++)
        in_place = is_last_read(s, done, unit, p->over.item[i]);
    return (Move){place, state->live + (in_place ? 0 : made), state->live + made - freed};
}

/* All that the state can do next; or the one thing that it may as well. */
static uint32_t find_moves(Search *s, const State *state, const uint64_t *done)
{
    const uint64_t *ready = done + s->words;
    uint32_t count = 0;
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t left = ready[w]; left; left &= left - 1) {
            Move move = move_of(s, state, done, w * 64 + (uint32_t)__builtin_ctzll(left));
            s->steps--;
            if (move.after <= state->live && move.during <= state->peak) {
                s->move[0] = move;
                return 1;
            }
            if (move.during < s->piece->limit)
                s->move[count++] = move;
        }
    return count;
}

/* Layers */

static uint64_t unit_hash(uint32_t place)
{
    uint64_t x = (place + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return x ^ x >> 32;
}

static void grow_slots(Search *s)
{
    s->slots *= 2;
    s->slot = ARENA_ARRAY(s->arena, Slot, s->slots);
    for (uint32_t i = 0; i < s->next.count; i++) {
        uint32_t at = (uint32_t)s->next.state[i].hash & (s->slots - 1);
        while (s->slot[at].stamp == s->stamp)
            at = (at + 1) & (s->slots - 1);
        s->slot[at] = (Slot){s->stamp, i};
    }
}

static bool same_after(const Search *s, const uint64_t *done, uint32_t place, const uint64_t *other)
{
    for (uint32_t w = 0; w < s->words; w++)
        if (other[w] != (done[w] | (w == place / 64 ? UINT64_C(1) << place % 64 : 0)))
            return false;
    return true;
}

/* The slot of the set, or the empty one where it belongs. */
static Slot *find_slot(Search *s, uint64_t hash, const uint64_t *done, uint32_t place)
{
    uint32_t at = (uint32_t)hash & (s->slots - 1);
    for (; s->slot[at].stamp == s->stamp; at = (at + 1) & (s->slots - 1)) {
        const State *other = &s->next.state[s->slot[at].state];
        if (other->hash == hash && same_after(s, done, place, done_of(s, &s->next, other)))
            break;
    }
    return &s->slot[at];
}

static void make_ready(const Search *s, uint64_t *done, uint32_t place)
{
    const OrderProblem *p = s->problem;
    uint64_t *ready = done + s->words;
    uint32_t unit = s->piece->order[s->piece->begin + place];
    done[place / 64] |= UINT64_C(1) << place % 64;
    ready[place / 64] &= ~(UINT64_C(1) << place % 64);
    for (uint32_t i = p->feeds.first[unit]; i < p->feeds.first[unit + 1]; i++) {
        uint32_t next = p->feeds.item[i], at = s->piece->position[next] - s->piece->begin;
        bool is_ready = s->piece->position[next] < s->piece->end;
        for (uint32_t k = p->needs.first[next]; k < p->needs.first[next + 1] && is_ready; k++)
            is_ready = has_run(s, done, p->needs.item[k]);
        if (is_ready)
            ready[at / 64] |= UINT64_C(1) << at % 64;
    }
}

/* A new state, whose sets are still those of the one before it. */
static State *push_state(Search *s, const uint64_t *before)
{
    Layer *next = &s->next;
    uint32_t index = next->count, size = 2 * s->words;
    ARENA_PUSH(s->arena, next->state, next->count, next->capacity, (State){.bits = index});
    if (next->capacity > next->bits_capacity) {
        uint64_t *bits = ARENA_ARRAY(s->arena, uint64_t, (size_t)next->capacity * size);
        if (index)
            memcpy(bits, next->bits, (size_t)index * size * sizeof *bits);
        next->bits = bits;
        next->bits_capacity = next->capacity;
    }
    memcpy(next->bits + (size_t)index * size, before, size * sizeof *before);
    return &next->state[index];
}

static void enter(Search *s, const State *from, const uint64_t *done, const Move *move)
{
    int64_t peak = move->during > from->peak ? move->during : from->peak;
    uint64_t hash = from->hash ^ unit_hash(move->unit);
    if (s->slots < 2 * (s->next.count + 1))
        grow_slots(s);
    Slot *slot = find_slot(s, hash, done, move->unit);
    bool known = slot->stamp == s->stamp;
    if (known && s->next.state[slot->state].peak <= peak)
        return;
    if (!known) {
        *slot = (Slot){s->stamp, s->next.count};
        State *state = push_state(s, done);
        state->live = move->after;
        state->hash = hash;
        make_ready(s, done_of(s, &s->next, state), move->unit);
        s->steps -= 4 + s->words / 4;
    }
    State *state = &s->next.state[slot->state];
    state->peak = peak;
    state->step = s->step_count;
    ARENA_PUSH(s->arena, s->step, s->step_count, s->step_capacity, ((Step){from->step, move->unit}));
}

static int by_promise(const void *left, const void *right)
{
    const State *a = left, *b = right;
    if (a->peak != b->peak)
        return a->peak < b->peak ? -1 : 1;
    if (a->live != b->live)
        return a->live < b->live ? -1 : 1;
    return a->bits < b->bits ? -1 : 1;
}

/* From one layer to the next.  False when the steps are used up. */
static bool advance(Search *s)
{
    s->stamp++;
    s->next.count = 0;
    for (uint32_t i = 0; i < s->now.count; i++) {
        const State *state = &s->now.state[i];
        const uint64_t *done = done_of(s, &s->now, state);
        uint32_t moves = find_moves(s, state, done);
        for (uint32_t m = 0; m < moves; m++)
            enter(s, state, done, &s->move[m]);
        if (s->steps < 0)
            return false;
    }
    if (s->width && s->next.count > s->width) {
        qsort(s->next.state, s->next.count, sizeof *s->next.state, by_promise);
        s->next.count = s->width;
    }
    Layer swap = s->now;
    s->now = s->next;
    s->next = swap;
    return true;
}

static void begin(Search *s)
{
    const OrderPiece *piece = s->piece;
    uint64_t *sets = ARENA_ARRAY(s->arena, uint64_t, 2 * s->words);
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t unit = piece->order[piece->begin + i];
        bool ready = true;
        for (uint32_t k = s->problem->needs.first[unit]; k < s->problem->needs.first[unit + 1]; k++)
            ready &= piece->position[s->problem->needs.item[k]] < piece->begin;
        sets[s->words + i / 64] |= (uint64_t)ready << i % 64;
    }
    State *first = push_state(s, sets);
    first->live = piece->live;
    first->peak = piece->floor;
    first->step = UINT32_MAX;
    s->now = s->next;
    s->next = (Layer){0};
}

/* Writes the last state's order into the piece. */
static void take(const Search *s, OrderPiece *piece)
{
    const uint32_t *old = arena_copy(s->arena, piece->order + piece->begin, s->count * sizeof *old);
    uint32_t place = piece->end;
    for (uint32_t step = s->now.state[0].step; step != UINT32_MAX; step = s->step[step].before)
        piece->order[--place] = old[s->step[step].unit];
    piece->limit = s->now.state[0].peak;
}

OrderVerdict order_search(OrderPiece *piece, uint32_t width, int64_t *steps, Arena *scratch)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t count = piece->end - piece->begin;
    Search s = {.piece = piece,
                .problem = piece->problem,
                .arena = scratch,
                .count = count,
                .words = (count + 63) / 64,
                .width = width,
                .steps = *steps - count,
                .slots = 64};
    s.slot = ARENA_ARRAY(scratch, Slot, s.slots);
    s.move = ARENA_ARRAY(scratch, Move, count);
    begin(&s);

    bool goes_on = s.steps >= 0;
    for (uint32_t k = 0; k < count && goes_on && s.now.count; k++)
        goes_on = advance(&s);
    OrderVerdict verdict = !goes_on ? ORDER_OUT : s.now.count ? ORDER_LOWERED : ORDER_REFUTED;
    if (verdict == ORDER_LOWERED)
        take(&s, piece);
    *steps = s.steps;
    arena_reset(scratch, mark);
    return verdict;
}
