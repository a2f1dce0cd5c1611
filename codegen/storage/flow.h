/* Loops and branches in memory: regions of steps, lives with holes, and families of values that share memory without
 * ever being copied.
 *
 * What a loop carries and what branches give are pointers, called *passed* here: they point to what some kernel has
 * made.  All that a passed value may point to is one family, with what is passed on between them.  A family has n
 * places of the size of one value.  Whoever makes a member takes a place that none of the others is in which somebody
 * still reads; n is the least for which there always is one, so a value that is carried is written over its predecessor
 * where their lives allow it (n = 1, and the pointer never moves), and takes turns with it where they do not.  This is
 * what the unrolling of Liu Liu's "The NNC tensor allocation algorithm" (libnnc.org, 2018) comes to, with the choice of
 * a place made by comparing pointers instead of counting rounds.
 *
 * A family lies where it ends, in an output or a state, as far as it can: with its only place, or with one of those it
 * turns in (flow_ends.c).
 *
 * What is passed may also be somewhere else: the caller's input before the first round (type II of that article). */
#ifndef NNC_STORAGE_FLOW_H
#define NNC_STORAGE_FLOW_H

#include "storage/memory.h"

typedef enum RegionKind { REGION_ENTRY, REGION_LOOP, REGION_BRANCH } RegionKind;

typedef struct Region {
    RegionKind kind;
    uint32_t outer;      /* NONE for the entry */
    uint32_t begin, end; /* the steps that begin and end it */
    uint32_t choice;     /* branch: the step that begins the first of its branches */
    uint32_t test;       /* loop: the step that may leave it */
} Region;

typedef struct Regions {
    Region *at;
    uint32_t count, capacity;
    uint32_t
        *of; /* per step: the innermost region that it runs in; of one that begins or ends a region, the outer one */
} Regions;

Regions flow_regions(const Graph *graph, Arena *arena, const Kernel *kernel, uint32_t count);
/* The innermost loop around a region, or the entry. */
uint32_t flow_loop_of(const Regions *regions, uint32_t region);

/* Per value: is it passed, or does something that is passed point to it? */
const bool *flow_members(const Graph *graph, Arena *arena);

/* The value in memory that a value is, or only another shape of. */
ValueId flow_owner(const Graph *graph, ValueId value);

/* Lives, families and places, once roles are known; for graphs with loops or branches. */
void flow_lives(Memory *memory, Arena *scratch);

/* flow_first.c: first values that a loop writes all of before it reads them need not be there; families are known. */
void flow_leave_firsts(Memory *memory, const Users *users);

/* Which members of its family must lie elsewhere when the value is made; ends with NONE.  Of several that one step
 * makes, those of smaller numbers choose first. */
const ValueId *flow_avoided(const Memory *memory, ValueId maker);

/* Where a value lies, as what kernels see of it: its storage, and where it begins in that. */
KernelBuffer flow_buffer(const Memory *memory, ValueId value);

/* Per value: is it passed to somebody who reads it?  The kernels are lowered. */
const bool *flow_needed(const Memory *memory, Arena *arena);

#endif
