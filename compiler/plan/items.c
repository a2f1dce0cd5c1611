#include "plan/items.h"

#include "base/number.h"
#include "plan/bound.h"
#include "plan/sort.h"

typedef struct Span { /* a piece while times are still steps */
    int64_t first, last, size;
    uint32_t item;
} Span;

typedef struct Builder {
    Arena *arena, *scratch;
    const PlanProblem *problem;
    uint32_t region;
    PlanItems *out;
    Span *span;
    uint32_t span_count, span_capacity, item_capacity;
} Builder;

/* Steps as keys that sort in signed order, and back. */
static uint64_t step_key(int64_t step)
{
    return (uint64_t)step ^ UINT64_C(1) << 63;
}

static int64_t step_of(uint64_t key)
{
    return (int64_t)(key ^ UINT64_C(1) << 63);
}

static void add_span(Builder *b, Span span)
{
    ARENA_PUSH(b->scratch, b->span, b->span_count, b->span_capacity, span);
}

static uint32_t add_item(Builder *b, const PlanBuffer *buffer)
{
    PlanItem item = {.alignment = buffer->alignment, .pinned = buffer->pinned};
    ARENA_PUSH(b->arena, b->out->item, b->out->count, b->item_capacity, item);
    return b->out->count - 1;
}

/* The least common multiple of two alignments, or 0 beyond any sensible one. */
static int64_t lcm(int64_t a, int64_t b)
{
    int64_t step = a / number_gcd(a, b);
    return step > PLAN_LARGEST / b ? 0 : step * b;
}

/* The position of a step among the ascending moments. */
static uint32_t moment_of(const SortKey *time, uint32_t count, int64_t step)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (time[middle].key < step_key(step))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The size from each moment to the next: that of the largest use.  The uses in order of falling size paint what is
 * still blank; `next` skips over what is painted. */
static int64_t *largest_use(Builder *b, const SortKey *member, uint32_t count, const SortKey *time)
{
    uint32_t moments = 2 * count, *next = ARENA_ARRAY(b->scratch, uint32_t, (size_t)moments + 1);
    int64_t *size = ARENA_ARRAY(b->scratch, int64_t, moments);
    SortKey *order = ARENA_ARRAY(b->scratch, SortKey, count);
    for (uint32_t m = 0; m < count; m++)
        order[m] = (SortKey){sort_falling(b->problem->buffer[member[m].index].size), member[m].index};
    sort_ascending(b->scratch, order, count);
    for (uint32_t t = 0; t <= moments; t++)
        next[t] = t;
    for (uint32_t m = 0; m < count; m++) {
        const PlanBuffer *use = &b->problem->buffer[order[m].index];
        uint32_t t = moment_of(time, moments, use->first), end = moment_of(time, moments, use->last);
        while (t < end)
            if (next[t] != t)
                t = next[t] = next[next[t]];
            else {
                size[t] = use->size;
                next[t++]++;
            }
    }
    return size;
}

/* The uses of one group become disjoint spans; where uses overlap, the larger counts. */
static void add_group(Builder *b, const SortKey *member, uint32_t count)
{
    const PlanBuffer *buffer = b->problem->buffer;
    SortKey *time = ARENA_ARRAY(b->scratch, SortKey, 2 * (size_t)count);
    uint32_t item = UINT32_MAX;
    for (uint32_t m = 0; m < count; m++) {
        const PlanBuffer *use = &buffer[member[m].index];
        if (item == UINT32_MAX)
            item = add_item(b, use);
        PlanItem *it = &b->out->item[item];
        it->alignment = lcm(it->alignment, use->alignment);
        if (use->pinned != PLAN_FREE)
            it->pinned = use->pinned;
        b->out->buffer_item[member[m].index] = item;
        time[2 * m].key = step_key(use->first);
        time[2 * m + 1].key = step_key(use->last);
    }
    sort_ascending(b->scratch, time, 2 * count);
    const int64_t *largest = largest_use(b, member, count, time);

    Span open = {.item = item};
    for (uint32_t t = 0; t + 1 < 2 * count; t++) {
        int64_t from = step_of(time[t].key), to = step_of(time[t + 1].key), size;
        if (from == to)
            continue;
        size = largest[moment_of(time, 2 * count, from)];
        if (open.size && (size != open.size || from != open.last)) {
            add_span(b, open);
            open.size = 0;
        }
        if (size && !open.size)
            open = (Span){from, to, size, item};
        open.last = to;
    }
    if (open.size)
        add_span(b, open);
}

static void collect(Builder *b)
{
    const PlanProblem *p = b->problem;
    SortKey *grouped = ARENA_ARRAY(b->scratch, SortKey, p->count);
    uint32_t grouped_count = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const PlanBuffer *buffer = &p->buffer[i];
        b->out->buffer_item[i] = UINT32_MAX;
        if (buffer->region != b->region)
            continue;
        if (buffer->group) {
            grouped[grouped_count++] = (SortKey){buffer->group, i};
            continue;
        }
        b->out->buffer_item[i] = add_item(b, buffer);
        if (buffer->size)
            add_span(b, (Span){buffer->first, buffer->last, buffer->size, b->out->count - 1});
    }
    sort_ascending(b->scratch, grouped, grouped_count);
    for (uint32_t i = 0, end; i < grouped_count; i = end) {
        for (end = i + 1; end < grouped_count && grouped[end].key == grouped[i].key;)
            end++;
        add_group(b, &grouped[i], end - i);
    }
}

/* Numbers the sections: one ends where, after some piece began, a piece ends. */
static void compress_time(Builder *b)
{
    PlanItems *out = b->out;
    uint32_t n = b->span_count;
    SortKey *event = ARENA_ARRAY(b->scratch, SortKey, 2 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        event[i] = (SortKey){step_key(b->span[i].last), 2 * i + 1};
        event[n + i] = (SortKey){step_key(b->span[i].first), 2 * i};
    }
    sort_ascending(b->scratch, event, 2 * n); /* stable: at one time, ends come before beginnings */

    bool begun = false;
    for (uint32_t e = 0; e < 2 * n; e++) {
        PlanPiece *piece = &out->piece[event[e].index / 2];
        bool is_end = event[e].index & 1;
        if (is_end && begun)
            out->section_count++;
        begun = !is_end;
        *(is_end ? &piece->upper : &piece->lower) = out->section_count;
    }
}

static void describe_items(Builder *b)
{
    PlanItems *out = b->out;
    out->unit = 0;
    for (uint32_t i = 0; i < out->count; i++)
        out->unit = number_gcd(out->unit, out->item[i].alignment);
    if (!out->unit)
        out->unit = 1;

    for (uint32_t s = 0; s < b->span_count; s++) {
        const Span *span = &b->span[s];
        PlanItem *item = &out->item[span->item];
        PlanPiece *piece = &out->piece[s];
        if (!item->piece_count++) {
            item->piece = s;
            item->start = span->first;
        }
        item->length += span->last - span->first;
        piece->item = span->item;
        piece->size = plan_align(span->size, out->unit);
        piece->slack = piece->size - span->size;
        if (piece->size > item->size)
            item->size = piece->size;
    }
    out->plain = out->uniform = true;
    for (uint32_t i = 0; i < out->count; i++) {
        const PlanItem *item = &out->item[i];
        out->uniform &= item->alignment == out->unit;
        out->plain &= item->pinned == PLAN_FREE && item->piece_count <= 1;
    }
    out->plain &= out->uniform;
}

void plan_items(Arena *arena, const PlanProblem *problem, uint32_t region, PlanItems *items)
{
    Arena scratch = {0};
    *items = (PlanItems){0};
    items->buffer_item = ARENA_ARRAY(arena, uint32_t, problem->count);
    Builder b = {.arena = arena, .scratch = &scratch, .problem = problem, .region = region, .out = items};
    collect(&b);
    items->piece = ARENA_ARRAY(arena, PlanPiece, b.span_count);
    items->piece_count = b.span_count;
    compress_time(&b);
    describe_items(&b);
    items->load = ARENA_ARRAY(arena, int64_t, items->section_count);
    plan_measure(&scratch, items);
    arena_free(&scratch);
}

uint64_t plan_items_pairs(Arena *scratch, const PlanItems *items)
{
    ArenaMark mark = arena_mark(scratch);
    uint32_t live = 0, *begins = ARENA_ARRAY(scratch, uint32_t, items->section_count);
    uint32_t *ends = ARENA_ARRAY(scratch, uint32_t, (size_t)items->section_count + 1);
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < items->piece_count; i++) {
        begins[items->piece[i].lower]++;
        ends[items->piece[i].upper]++;
    }
    for (uint32_t s = 0; s < items->section_count; s++) {
        live -= ends[s];
        pairs += (uint64_t)begins[s] * live + (uint64_t)begins[s] * (begins[s] - 1) / 2;
        live += begins[s];
    }
    arena_reset(scratch, mark);
    return pairs;
}

int64_t plan_items_peak(const PlanItems *items, const int64_t *offset)
{
    int64_t peak = 0;
    for (uint32_t i = 0; i < items->piece_count; i++) {
        const PlanPiece *piece = &items->piece[i];
        int64_t end = offset[piece->item] + piece->size - piece->slack;
        if (end > peak)
            peak = end;
    }
    return peak;
}

int64_t plan_item_top(const PlanItems *items, uint32_t index, int64_t offset)
{
    const PlanItem *item = &items->item[index];
    int64_t top = 0;
    for (const PlanPiece *p = &items->piece[item->piece]; p < &items->piece[item->piece + item->piece_count]; p++)
        top = p->size - p->slack > top ? p->size - p->slack : top;
    return offset + top;
}
