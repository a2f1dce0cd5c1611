/* Dimensions along which places are mixed: what is at one of them in a result is made of what is at others, as
 * attention makes a sequence's places of one another, and normalisation over them does.  Along others, as the samples
 * of a batch in most networks, each stands for itself. */
#ifndef NNC_PASSES_MIXING_H
#define NNC_PASSES_MIXING_H

#include "ir/graph.h"

typedef struct Mixing {
    uint32_t *first; /* per value: its first dimension, among those of all */
    uint32_t *same;  /* per dimension: another one that is the same axis, under another name; itself: the axis */
    bool *mixed;     /* per axis */
    bool *made;      /* per value: of an input or a state; others serve axes that have nothing to do with each other */
} Mixing;

/* Follows axes through words, views, products and reductions; what else there is begins new ones. */
Mixing mixing_find(const Graph *graph, Arena *arena);
bool mixing_of(const Mixing *mixing, ValueId value, uint32_t dimension);

#endif
