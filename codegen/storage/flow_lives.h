/* What the files share that find out how long values live and which of them share places (flow.h). */
#ifndef NNC_STORAGE_FLOW_LIVES_H
#define NNC_STORAGE_FLOW_LIVES_H

#include "storage/flow.h"

typedef struct Lives {
    Memory *memory;
    Arena *arena, *scratch;
    const Users *users;
    const bool *live_out, *member;
    Life *life;       /* per value in memory: when it, or what is inside it, is there */
    uint32_t *region; /* per value: where it is made or passed; NONE: before all steps */
    int64_t *made;    /* per value: the first step that makes any of it */
    ValueId *root;    /* per member: of its family, as a forest */
} Lives;

/* flow_life.c: appends steps [first, last) to a life, in order; what ends where another begins is kept apart. */
void flow_add_piece(Arena *arena, Life *life, int64_t first, int64_t last);
/* In the step, and beyond it where `beyond` is 1? */
bool flow_is_alive(const Life *life, int64_t step, int64_t beyond);
bool flow_is_passed(const Lives *l, ValueId value);
/* Is it made, at a place of its family? */
bool flow_is_made(const Lives *l, ValueId member);
ValueId flow_whole(const Lives *l, ValueId value);
/* Is what the other points to still read when, or while, this one is made? */
bool flow_conflicts(const Lives *l, ValueId maker, ValueId other);

/* flow_family.c: who shares places with whom, and in how many of them. */
void flow_make_families(Lives *l);
/* The least number of places, and who must avoid whom. */
void flow_count_places(Lives *l, Family *family);

/* flow_ends.c: families lie where they end, in outputs and states, as far as they can. */
void flow_settle_ends(Lives *l);

/* flow_rounds.c: the place of its family that the value is in when the step begins, as far as all loops on the way run
 * a known number of rounds; NONE. */
uint32_t flow_place_at(const Lives *l, const Family *family, ValueId value, uint32_t step);

#endif
