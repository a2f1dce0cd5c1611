/* Placement problems of the kinds that planners meet, and of two whose least height is known.  The same on every
 * machine. */
#ifndef NNC_TESTS_PLAN_DRAW_H
#define NNC_TESTS_PLAN_DRAW_H

#include "plan_random.h"

/* One training step of a deep model, by layers: forward up, backward mirrored. */
typedef struct DrawTraining {
    Random *random;
    int64_t layers;
    int64_t segment; /* layers of one checkpoint, whose activations are computed again; 0: all are kept */
    int64_t bucket;  /* layers whose weight gradients wait for each other; layers: for an optimizer that runs last */
    int64_t stages;  /* between which sizes change */
    int64_t usual;   /* of so many tensors one has any size at all; 0: none */
    int64_t longest; /* life of a temporary */
} DrawTraining;

/* Mostly one of the few that the layers of a stage have in common. */
static inline int64_t draw_tensor_size(const DrawTraining *t, int64_t layer)
{
    int64_t usual = (INT64_C(1) << 20) >> layer * t->stages / t->layers % 6;
    if (t->usual && random_below(t->random, t->usual) == 0)
        return 64 + 64 * random_below(t->random, usual / 64);
    return usual >> random_below(t->random, 3);
}

/* One of the six buffers of a layer: its activation and what is saved beside it, a temporary forward, the gradients of
 * activation and weight, a temporary backward.  A layer takes two steps each way. */
static inline PlanBuffer draw_training_buffer(const DrawTraining *t, int64_t layer, uint32_t role)
{
    int64_t forward = 2 * layer, backward = 4 * t->layers - 2 - forward, size = draw_tensor_size(t, layer);
    int64_t bucket_end = 4 * t->layers - 2 * (layer / t->bucket * t->bucket),
            some = random_below(t->random, t->longest);
    PlanBuffer b = {size, 64, forward, backward + 2, PLAN_FREE, 0, 0};
    switch (role) {
    case 0:
        if (t->segment && layer % t->segment)
            b.first = 4 * t->layers - 2 - 2 * ((layer / t->segment + 1) * t->segment - 1);
        break;
    case 1: /* mostly little: a mask, statistics */
        b.size = random_below(t->random, 4) ? 64 + size / 1024 * 64 : size;
        break;
    case 2:
        b.last = forward + 1 + some;
        break;
    case 3:
        b.first = backward;
        b.last = backward + 3 + some;
        break;
    case 4:
        b = (PlanBuffer){64 + size / 256 * 64, 64, backward, bucket_end + 1, PLAN_FREE, 0, 0};
        break;
    default:
        b.first = backward + random_below(t->random, 2);
        b.last = b.first + 1;
        break;
    }
    return b;
}

static inline PlanProblem draw_training(Arena *arena, Random *r, uint32_t count)
{
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, count);
    int64_t layers = (count + 5) / 6;
    DrawTraining t = {.random = r, .layers = layers, .longest = 1 + random_below(r, 12), .usual = random_below(r, 4)};
    t.stages = 1 + random_below(r, 20);
    t.segment = random_below(r, 2) ? 0 : 2 + random_below(r, 60);
    t.bucket = random_below(r, 3) ? 1 + random_below(r, 100) : layers;
    for (uint32_t i = 0; i < count; i++)
        buffer[i] = draw_training_buffer(&t, i / 6, i % 6);
    return (PlanProblem){.buffer = buffer, .count = count};
}

/* Lives of any length up to 32,768 steps. */
static inline PlanProblem draw_mixed(Arena *arena, Random *r, uint32_t count)
{
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t size = 64 + (random_below(r, 1 << 12) << random_below(r, 10));
        buffer[i] = (PlanBuffer){size, 64, i, i + 1 + (INT64_C(1) << random_below(r, 16)), PLAN_FREE, 0, 0};
    }
    return (PlanProblem){.buffer = buffer, .count = count};
}

/* Lives of at most a few steps with alignments of a few kinds: to be solved exactly. */
static inline PlanProblem draw_aligned(Arena *arena, Random *r, uint32_t count)
{
    static const int64_t kinds[][4] = {{64, 4096, 64, 64}, {64, 512, 4096, 64},  {16, 64, 256, 4096},
                                       {1, 16, 64, 1},     {48, 64, 4096, 1000}, {12, 16, 64, 20},
                                       {3, 5, 7, 1},       {64, 128, 256, 512}};
    const int64_t *kind = kinds[random_below(r, 8)];
    int64_t alignments = 2 + random_below(r, 3), grain = random_below(r, 2) ? 64 : 1 + random_below(r, 3);
    int64_t steps = 3 + random_below(r, 2 * (int64_t)count / 3 + 3), longest = 1 + random_below(r, steps);
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t first = random_below(r, steps);
        int64_t last = first + 1 + random_below(r, longest);
        buffer[i] = (PlanBuffer){grain * (1 + random_below(r, 24)),
                                 kind[random_below(r, alignments)],
                                 first,
                                 last < steps ? last : steps,
                                 PLAN_FREE,
                                 0,
                                 0};
    }
    return (PlanProblem){.buffer = buffer, .count = count};
}

typedef struct DrawRect { /* steps across, bytes up */
    int64_t left, right, bottom, top;
} DrawRect;

typedef struct DrawPacking {
    uint32_t count;
    int64_t steps, height; /* of the whole */
    int64_t unit;          /* all sizes are multiples of it; 0: 1 */
    int64_t wheels;        /* of a hundred cuts so many are pinwheels */
    int64_t removed;       /* of a hundred rectangles so many are left out */
} DrawPacking;

/* The largest of six, more or less. */
static inline uint32_t draw_large(Random *r, const DrawRect *rect, uint32_t n)
{
    uint32_t at = 0;
    double most = -1;
    for (int k = 0; k < 6; k++) {
        uint32_t i = (uint32_t)random_below(r, n);
        double area = (double)(rect[i].right - rect[i].left) * (double)(rect[i].top - rect[i].bottom);
        at = area > most ? i : at;
        most = area > most ? area : most;
    }
    return at;
}

/* Cuts one into five around each other; rect[n] and the next take four of them. */
static inline uint32_t draw_wheel(Random *r, DrawRect *rect, uint32_t at, uint32_t n)
{
    DrawRect c = rect[at];
    int64_t wide = c.right - c.left, high = c.top - c.bottom;
    int64_t x0 = c.left + 1 + random_below(r, wide - 2), x1 = x0 + 1 + random_below(r, c.right - x0 - 1);
    int64_t y0 = c.bottom + 1 + random_below(r, high - 2), y1 = y0 + 1 + random_below(r, c.top - y0 - 1);
    rect[at] = (DrawRect){c.left, x1, c.bottom, y0};
    rect[n++] = (DrawRect){x1, c.right, c.bottom, y1};
    rect[n++] = (DrawRect){x0, c.right, y1, c.top};
    rect[n++] = (DrawRect){c.left, x0, y0, c.top};
    rect[n++] = (DrawRect){x0, x1, y0, y1};
    return n;
}

/* Cuts one in two by a straight line, mostly through its longer side, steps and bytes taken as parts of the whole. */
static inline uint32_t draw_line(Random *r, DrawRect *rect, uint32_t at, uint32_t n, int64_t height, int64_t steps)
{
    DrawRect c = rect[at];
    int64_t wide = c.right - c.left, high = c.top - c.bottom;
    bool across = high < 2 || (wide > 1 && random_below(r, wide * height + high * steps) < wide * height);
    int64_t x = across ? c.left + 1 + random_below(r, wide - 1) : c.right;
    int64_t y = across ? c.top : c.bottom + 1 + random_below(r, high - 1);
    rect[at] = (DrawRect){c.left, x, c.bottom, y};
    rect[n++] = across ? (DrawRect){x, c.right, c.bottom, c.top} : (DrawRect){c.left, c.right, y, c.top};
    return n;
}

static inline void draw_shuffle(Random *r, PlanBuffer *buffer, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = (uint32_t)random_below(r, i);
        PlanBuffer swap = buffer[i - 1];
        buffer[i - 1] = buffer[k];
        buffer[k] = swap;
    }
}

/* A perfect packing: a rectangle cut into `count`, or a few more.  Each cut goes through a random one of those there
 * are, large ones more often: in two by a straight line, or in five as a pinwheel, which no straight lines cut apart.
 * The least height of an arena is that of the rectangle, as long as nothing is removed. */
static inline PlanProblem draw_packing(Arena *arena, Random *r, DrawPacking d)
{
    int64_t unit = d.unit ? d.unit : 1, height = d.height / unit;
    uint32_t n = 1;
    DrawRect *rect = ARENA_ARRAY(arena, DrawRect, d.count + 4);
    rect[0] = (DrawRect){0, d.steps, 0, height};
    for (uint32_t misses = 0; n < d.count && misses < 100 * d.count; misses++) {
        uint32_t at = draw_large(r, rect, n);
        int64_t wide = rect[at].right - rect[at].left, high = rect[at].top - rect[at].bottom;
        bool wheel = d.wheels == 100 || (d.wheels && random_below(r, 100) < d.wheels);
        if (wheel && wide >= 3 && high >= 3)
            n = draw_wheel(r, rect, at, n);
        else if (d.wheels < 100 && (wide > 1 || high > 1))
            n = draw_line(r, rect, at, n, height, d.steps);
    }
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, n);
    for (uint32_t i = 0; i < n; i++)
        buffer[i] =
            (PlanBuffer){(rect[i].top - rect[i].bottom) * unit, 1, rect[i].left, rect[i].right, PLAN_FREE, 0, 0};
    draw_shuffle(r, buffer, n); /* their order tells nothing */
    return (PlanProblem){.buffer = buffer, .count = n - (uint32_t)(n * d.removed / 100)};
}

#endif
