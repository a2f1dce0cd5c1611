/* What loops over memory (nest.c) are made of: vectors (vectors.c), and elements by turns (turns.c). */
#ifndef NNC_KERNEL_NEST_H
#define NNC_KERNEL_NEST_H

#include "kernel/lower/lower.h"

/* Rounds [begin, end) of the body, whole vectors of `lanes` of them. */
void lower_vector_rounds(Lower *lower, const Var *var, int64_t begin, int64_t end, int64_t lanes, LoopKind kind,
                         const Block *body);
/* index_cut of the first load that has one. */
int64_t lower_cut(const Block *body, const Var *var, int64_t *first);

/* Loops over all of the elements, if they are such by turns. */
bool lower_turns(Lower *lower, const Var *var, int64_t extent, LoopKind kind, const Block *body);
/* Rows of a few elements, each of another source, become one loop of turns, as those of an image whose channels come to
 * be its last dimension. */
void lower_join_turns(Lower *lower, const Var **loop, uint32_t *loops, Block *body);

#endif
