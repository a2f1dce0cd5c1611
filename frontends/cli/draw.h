/* The picture of a graph in Graphviz's language. */
#ifndef NNC_CLI_DRAW_H
#define NNC_CLI_DRAW_H

#include "ir/graph.h"

/* Appends `digraph "name" { ... }`.  Kernels have their own numbers where these are the plan's steps, and else are
 * counted as they come.  Strings are made in the arena. */
void draw_graph(Text *out, const Graph *graph, bool steps, Arena *arena);

#endif
