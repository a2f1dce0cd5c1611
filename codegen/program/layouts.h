/* Layouts that the text states (layouts.c). */
#ifndef NNC_PROGRAM_LAYOUTS_H
#define NNC_PROGRAM_LAYOUTS_H

#include "ir/graph.h"

/* An error for each that an input, a param or a state has. */
void layouts_check(const Graph *graph);

#endif
