/* Search for a placement below a given height: exhaustive, deterministic, limited by nodes and never by time.
 *
 * The search is that of MiniMalloc (Moffitt, "MiniMalloc: a lightweight memory allocator for hardware-accelerated
 * machine learning", ASPLOS 2023), with the data kept incrementally.  See exact.c. */
#ifndef NNC_PLAN_EXACT_H
#define NNC_PLAN_EXACT_H

#include "plan/items.h"

typedef struct PlanExact PlanExact;

typedef enum PlanVerdict {
    PLAN_FOUND,   /* a placement of height at most the target */
    PLAN_REFUTED, /* there is none */
    PLAN_GAVE_UP, /* the budget of nodes is spent */
} PlanVerdict;

/* In which sequence items of one offset are tried: by the keys in turn, each falling.
 * T: load of the fullest section; L: length of life; A: area; O: conflicts; V: how often the item's worst section has
 * failed the bound, in all searches so far (the idea of Boussemart et al., "Boosting systematic search by weighting
 * constraints", ECAI 2004): a search that failed tells the next where the problem is hard. */
extern const char *const plan_preorders[]; /* ends with NULL */

PlanExact *plan_exact_new(Arena *arena, const PlanItems *items);

typedef struct PlanQuest {
    int64_t target; /* height */
    const char *preorder;
    uint64_t nodes; /* at most */
    uint64_t spent; /* result: the nodes it took */
    int64_t bound; /* result, when refuted: no placement is lower than this, which is above the target: the least height
                      at which some cut of the search would not have been one, as in iterative deepening (Korf,
                      "Depth-first iterative-deepening", Artificial Intelligence 1985) */
} PlanQuest;

/* Writes offset[item] when found. */
PlanVerdict plan_exact_fit(PlanExact *exact, PlanQuest *quest, int64_t *offset);

#endif
