/* What in-place results, views, parts of concats and pads and the order of kernels each save in a plan. */
#ifndef NNC_API_SAVINGS_H
#define NNC_API_SAVINGS_H

#include "codegen/program/program.h"
#include "plan/report.h"

#define SAVINGS_PARTS 4

typedef struct SavingsPart {
    const char *word, *name; /* on the command line, in reports */
    Without bit;
} SavingsPart;
extern const SavingsPart savings_part[SAVINGS_PARTS];

/* Fills in report->saving: the model is compiled again without each of them that `entry` may owe something to, and
 * the peaks are compared. All at once may save more or less than the sum. */
void savings_measure(Arena *arena, const Entry *entry, PlanReport *report);

#endif
