/* The state of the exhaustive search (exact.c): what is placed, how low the rest can lie, and the bound that follows.
 */
#ifndef NNC_PLAN_EXACT_STATE_H
#define NNC_PLAN_EXACT_STATE_H

#include "plan/exact.h"
#include "plan/exact_stack.h"

#define PLAN_NONE UINT32_MAX

typedef struct ExactNeighbour {
    uint32_t item;
    int64_t reach; /* how far above this item's offset the neighbour must lie, when it is the higher one */
    int64_t lift;  /* and the other way round */
} ExactNeighbour;

typedef struct ExactCandidate {
    int64_t offset;
    uint32_t item, rank;
} ExactCandidate;

typedef struct ExactUndo {
    int64_t *where, value;
} ExactUndo;

typedef struct ExactStep {
    uint32_t item, undo_count;
} ExactStep;

typedef struct ExactPart { /* a number of items that are to be placed, and the sections they span */
    uint32_t count, lower, upper;
} ExactPart;

/* Items whose alignment is a multiple of `unit`, as one that knows nothing else sees them: padded to it.  A row is a
 * section of a class. */
typedef struct ExactClass {
    int64_t unit;
    int64_t *size, *slack; /* [piece]: padded, and how much of it is padding; size 0: not of this class */
    uint32_t *start;       /* [section + 1] into item: CSR */
    uint32_t *item;
    int64_t *item_slack; /* as `item`: the slack of its piece there */
    int64_t *most_slack; /* [section] */
    int64_t *rest;       /* [section]: sum of the sizes of what is to be placed */
    uint32_t *witness;   /* [section]: what could lie low enough when last looked at, as an index into item */
} ExactClass;

#define MOST_CLASSES PLAN_MOST_UNITS

struct PlanExact {
    Arena *arena, *stack; /* stack: what the search has to remember while it is deeper */
    const PlanItems *items;
    uint32_t *neighbour_start; /* CSR */
    ExactNeighbour *neighbour;
    uint32_t *conflicts;
    uint32_t *twin; /* an item like this one in all, to be placed first, or PLAN_NONE */
    ExactClass class[MOST_CLASSES];
    uint32_t class_count; /* the first is of all items */
    int64_t unit[MOST_CLASSES];
    uint32_t *order;       /* per section PLAN_MOST_STACKED items: from the lowest up, as they could be stacked when
                              last looked at; NULL with one class */
    uint32_t most_stacked; /* items of a section that are stacked in every order */
    PlanSets *sets;
    uint32_t *section_piece; /* the pieces behind class[0].item */

    int64_t target;
    int64_t leap;     /* the least height at which some cut of this search would not have been one */
    int64_t *placed;  /* offset, or -1 */
    int64_t *support; /* the least offset that placed items leave */
    int64_t *least;   /* no completion has it lower: above the support when the item waits for a neighbour, and
                         INT64_MAX once it is placed */
    uint32_t *cut;    /* items to be placed that cross from section s to s + 1 */
    uint32_t *rank, *next, *prev;
    int64_t *blame; /* per section: how often it failed the bound, over all searches */
    ExactUndo *undo;
    uint32_t undo_count, undo_capacity;
    ExactCandidate *candidate; /* those of all nodes above, and of this one */
    uint32_t candidate_count, candidate_capacity;
    ExactStep *path; /* what was placed, in this order */
    uint32_t path_count;
    const char *preorder;
    uint64_t budget, nodes;
};

/* The sections of an item, from the first of its first piece to the last of its last. */
uint32_t plan_exact_lower(const PlanExact *x, uint32_t item);
uint32_t plan_exact_upper(const PlanExact *x, uint32_t item);

/* Empties the state; false when the bound fails before anything is placed. */
bool plan_exact_reset(PlanExact *x);

/* Does what reaches so high fit?  Else a search for less than that fails alike. */
bool plan_exact_reaches(PlanExact *x, int64_t height);

/* Places the item; false when that fails the bound. */
bool plan_exact_put(PlanExact *x, uint32_t item, int64_t offset);
void plan_exact_take_back(PlanExact *x);

/* Passes the item over: it is to lie higher than its support, so some neighbour that is still to come, at `offset` or
 * above, must lift it.  False when that fails the bound. */
bool plan_exact_pass_over(PlanExact *x, uint32_t item, int64_t offset);

/* Takes changes back until so many are left. */
void plan_exact_undo(PlanExact *x, uint32_t undo_count);

/* Counts the item as gone from (or, with `by` 1, back at) the points it crosses; true when that cuts the part. */
bool plan_exact_cut(PlanExact *x, uint32_t item, uint32_t by);

/* The most that any section of the part has yet to place, less padding. */
int64_t plan_exact_most_rest(const PlanExact *x, const ExactPart *part);

#endif
