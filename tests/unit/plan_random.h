/* Random placement problems, the same on every machine. */
#ifndef NNC_TESTS_PLAN_RANDOM_H
#define NNC_TESTS_PLAN_RANDOM_H

#include "plan/problem.h"

typedef struct Random {
    uint64_t state;
} Random;

static inline uint64_t random_next(Random *r) /* splitmix64 (Steele, Lea and Flood, 2014) */
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline int64_t random_below(Random *r, int64_t limit)
{
    return (int64_t)(random_next(r) % (uint64_t)limit);
}

typedef struct RandomShape {
    uint32_t count;
    int64_t steps, longest, largest;
    bool aligned, pinned, grouped;
    uint32_t regions;
} RandomShape;

/* Pins, when asked for, are few, of region 0, and never contradict each other. */
static inline PlanProblem random_problem(Arena *arena, Random *r, RandomShape shape)
{
    static const int64_t alignments[] = {1, 4, 16, 64, 12};
    PlanBuffer *buffer = ARENA_ARRAY(arena, PlanBuffer, shape.count);
    int64_t pin = 0;
    for (uint32_t i = 0; i < shape.count; i++) {
        PlanBuffer *b = &buffer[i];
        b->size = random_below(r, shape.largest + 1);
        b->alignment = shape.aligned ? alignments[random_below(r, 5)] : 1;
        b->first = random_below(r, shape.steps);
        b->last = b->first + 1 + random_below(r, shape.longest);
        b->pinned = PLAN_FREE;
        b->region = shape.regions ? (uint32_t)random_below(r, shape.regions) : 0;
        if (shape.grouped && random_below(r, 3) == 0)
            b->group = 1 + (uint32_t)random_below(r, shape.count / 3 + 1);
        if (shape.pinned && !b->group && random_below(r, 8) == 0) {
            b->region = 0;
            b->pinned = (pin + b->alignment - 1) / b->alignment * b->alignment;
            pin = b->pinned + b->size + random_below(r, shape.largest + 1);
        }
    }
    return (PlanProblem){.buffer = buffer, .count = shape.count};
}

#endif
