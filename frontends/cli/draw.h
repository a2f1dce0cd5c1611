/* The picture of a graph in Graphviz's language. */
#ifndef NNC_CLI_DRAW_H
#define NNC_CLI_DRAW_H

#include "ir/graph.h"

/* Appends `digraph "name" { ... }`.  Strings are made in the arena. */
void draw_graph(Text *out, const Graph *graph, Arena *arena);

#endif
