/* The judge of lowered kernels, for the two files that it is made of: judge.c looks at one step, judge_run.c runs them.
 */
#ifndef NNC_STORAGE_JUDGE_H
#define NNC_STORAGE_JUDGE_H

#include "storage/owners.h"
#include "storage/reach.h"

/* How loops and branches run. */
typedef struct Scenario {
    uint32_t rounds;       /* of the loops of some levels, ... */
    uint32_t level;        /* ... from this one on, 0 outermost; each other one has one round */
    uint32_t pick, picked; /* branches in turns, from this one on; how many have been picked */
    bool exact;            /* loops run as often as they will, where that is known, and only addresses are followed */
} Scenario;

typedef struct Judge {
    const Memory *memory;
    Str *message;
    const Kernel *kernel;
    uint32_t step;
    Arena of_step;   /* what is needed for this step only */
    Reached reached; /* of the kernel */
    Map repeated;    /* of kernels whose body others have, too, by the body, to one of `known` */
    Reached *known;
    uint32_t known_count, known_capacity;
    Owners owners;
    int64_t *address;  /* per storage: where it is; the caller's arrays and states as if they lay behind the arena */
    uint32_t *content; /* per storage: what it holds, a number of `owners` ... */
    StorageId *holder; /* ... and per content: whose it is */
    uint32_t contents;
    Scenario scenario;
    uint32_t *first_buffer, *next_buffer; /* of the plan, by storage; those that are over by this step are gone */
} Judge;

void judge_buffers(Judge *judge, Arena *arena); /* lists the plan's buffers by storage */
void judge_place(Judge *judge);                 /* everything is where it begins */
bool judge_step(Judge *judge);                  /* judge->kernel, judge->reached */
bool judge_ends(Judge *judge);                  /* outputs and states, after the last step */

bool judge_tracks(const Judge *judge, StorageId id);
/* Are the bytes of the storage its own content? `loose`: as far as it seems to read them. */
bool judge_owned(Judge *judge, StorageId id, Extent range, bool loose);
void judge_take(Judge *judge, StorageId id, Extent range); /* its content is there now */

#endif
