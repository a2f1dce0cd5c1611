/* Calls of NAME_run that come again in the same order, as those of a network's layers do. */
#ifndef NNC_C_ROUNDS_H
#define NNC_C_ROUNDS_H

#include "c/run.h"

typedef struct Rounds {
    uint32_t first, period, count; /* the first step, the steps of a round, the rounds */
} Rounds;

typedef struct RoundsList {
    Rounds *at;
    uint32_t count, capacity;
} RoundsList;

/* In the order of the steps, and apart; none where that would spare few calls (rounds_find.c). */
RoundsList unit_rounds_find(const UnitRun *run, const StepList *list);
/* Of buffer b of a step of the first round, the one in another round, ... */
const KernelBuffer *unit_rounds_buffer(const UnitRun *run, const Rounds *rounds, const Step *step, uint32_t b,
                                       uint32_t round);
/* ... and where it lies in each of them. */
const int64_t *unit_rounds_offsets(const UnitRun *run, const Rounds *rounds, const Step *step, uint32_t b);
bool unit_rounds_are_even(const int64_t *offset, uint32_t count); /* each as far behind the one before */

#endif
