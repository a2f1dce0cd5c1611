/* The problem of one region in the form that allocators work on.
 *
 * Groups become one item each; an item has one offset and one or more pieces, which are disjoint in time.  Time is
 * compressed to sections: a section is a maximal set of pieces that are all live at one step (a maximal clique of the
 * interval graph), numbered in order of time, so that two pieces conflict exactly when their section ranges
 * intersect, and the most live bytes are found in a section.
 *
 * Sizes are padded to `unit`, the greatest common divisor of all alignments: since every offset is a multiple of it,
 * nothing can use the padding, except above the topmost piece of a section.  `slack` is the padding. */
#ifndef NNC_PLAN_ITEMS_H
#define NNC_PLAN_ITEMS_H

#include "plan/problem.h"

typedef struct PlanPiece {
    uint32_t lower, upper; /* sections [lower, upper) */
    uint32_t item;
    int64_t size, slack; /* padded size, and how much of it is padding */
} PlanPiece;

typedef struct PlanItem {
    int64_t size; /* padded, of its largest piece */
    int64_t alignment, pinned;
    int64_t length, start;       /* steps it is live in all; first step */
    uint32_t piece, piece_count; /* piece[piece .. piece + piece_count), by time */
} PlanItem;

typedef struct PlanItems {
    PlanItem *item;
    PlanPiece *piece;
    uint32_t count, piece_count, section_count;
    int64_t unit;
    bool plain;            /* no pins, one piece and one alignment everywhere: the fast paths apply */
    bool uniform;          /* one alignment everywhere */
    int64_t *load;         /* [section_count] padded live bytes */
    int64_t lower_bound;   /* of the peak, in bytes, exact to the last byte */
    uint32_t *buffer_item; /* [problem count]: the item of each buffer of the region, UINT32_MAX for others */
} PlanItems;

void plan_items(Arena *arena, const PlanProblem *problem, uint32_t region, PlanItems *items);

/* The number of pairs of conflicting pieces. */
uint64_t plan_items_pairs(Arena *scratch, const PlanItems *items);

/* The real peak: padding above the topmost pieces does not count.  offset is per item. */
int64_t plan_items_peak(const PlanItems *items, const int64_t *offset);

/* Where the item ends at an offset, likewise. */
int64_t plan_item_top(const PlanItems *items, uint32_t index, int64_t offset);

static inline int64_t plan_align(int64_t offset, int64_t alignment)
{
    int64_t over = alignment == 1 ? 0 : offset % alignment;
    return over ? offset + (alignment - over) : offset;
}

#endif
