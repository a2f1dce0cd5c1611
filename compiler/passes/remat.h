/* What is computed again: the decisions behind the pass remat (remat.c). */
#ifndef NNC_PASSES_REMAT_H
#define NNC_PASSES_REMAT_H

#include "passes/pass.h"

typedef enum RematKind {
    REMAT_FINE, /* from between one contraction or loop and the next to the same place behind: none is computed again */
    REMAT_COARSE, /* between places where few values pass: blocks of a network */
} RematKind;

typedef struct Segment {
    const NodeId *node; /* of a list that is the whole chain: segments that follow one another do so in it */
    uint32_t count;
    uint32_t chain; /* the gradient that they are of */
    double worth;   /* bytes that need not be kept, by operation that is computed again */
} Segment;

typedef struct Segments {
    Segment *at;
    uint32_t count, capacity;
} Segments;

/* In which the graph, which is expanded, can be computed again: gradient by gradient, one after another. */
Segments remat_segments(const Graph *graph, RematKind kind, Arena *scratch);

/* Per node: elementwise, and of a fine segment whose gradients need fewer bytes to wait when it is computed again. */
const bool *remat_light(const Graph *graph, const Segments *fine, const PassContext *context);

/* Loops that are differentiated become loops of loops, `levels` deep besides the innermost (remat_rounds.c). */
void remat_rounds(Graph *graph, uint32_t levels, PassContext *context);
/* The same of one, of at most so many rounds. */
void remat_nest(Graph *graph, NodeId loop, int64_t rounds, uint32_t levels, Arena *scratch);
/* How deep is of use. */
uint32_t remat_levels(Graph *graph, const PassContext *context);

/* The most of everything that is of use in PassContext.remat, for the graph and the bodies in it. */
typedef struct RematSupply {
    uint32_t fine, coarse;
    uint32_t chain; /* coarse ones of one gradient: snapshots */
    uint32_t rounds;
} RematSupply;

RematSupply remat_supply(Graph *graph, const PassContext *context);

/* Steps [begin, end) of a chain, to be computed again from what step `begin` reads, when the gradient reaches them. */
typedef struct RematRange {
    uint32_t begin, end;
    uint32_t around; /* the range in the list that this one is a part of, and is computed again in; NONE */
} RematRange;

/* Ranges for a chain of `length` steps of like size so that what at most `snapshots` >= 1 steps read is kept at a time,
 * that of the first included, with the fewest steps computed: sum of (end - begin) besides the first run (Griewank and
 * Walther, "Algorithm 799: revolve", ACM TOMS 26, 2000).  Those around come first. */
uint32_t remat_schedule(Arena *arena, uint32_t length, uint32_t snapshots, RematRange **list);

/* The fewest with which none of its steps is computed again more than `times` >= 1 times. */
uint32_t remat_snapshots(uint32_t length, uint32_t times);

#endif
