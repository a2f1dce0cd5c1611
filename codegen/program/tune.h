/* Tuning: recipes that have been timed, in a file of lines of the printed IR.
 *
 *     target x86-64-v4
 *     graph digits {
 *         conv1: f32[1, 32, 28, 28] = conv2d(image, conv1.weight, pad = 2) @kernel(0, tiled, pixels = 8, vectors = 3)
 *     }
 *
 * A line names a kernel by the statement of its anchor, as it stands after all passes, and says how it is computed; the
 * number means nothing.  A recipe that the text itself has comes before it. */
#ifndef NNC_PROGRAM_TUNE_H
#define NNC_PROGRAM_TUNE_H

#include "kernel/recipe.h"
#include "program/program.h"

typedef struct TuneLine {
    Str graph, statement;
    KernelMark mark;
    bool followed; /* by a kernel of some compilation ... */
    bool refused;  /* ... for which no library computes */
} TuneLine;

typedef struct Tune {
    TuneLine *line;
    uint32_t count, capacity;
    Map by_statement; /* of its graph */
    Map compiled;     /* names of graphs that have asked */
} Tune;

void tune_add(Tune *tune, Arena *arena, const TuneLine *line); /* replaces an earlier one of that statement */

/* Reads a file for the target, and warns of an empty one.  False after errors, at their places. */
bool tune_read(Tune *tune, Arena *arena, Diag *diag, Str path, Str text, const char *target);

/* Of a graph that fuse has marked: per value the statement of the anchor of the kernel that makes it, which stays what
 * it is when kernels are ordered and numbered anew. */
const Str *tune_statements(const CompileOptions *options, const Graph *graph);
/* Writes the marks of options->tune down at these anchors. */
void tune_follow(const CompileOptions *options, Graph *graph);
/* Warns, once, where lines of graphs that were compiled, or that the model does not have, are of no kernel, or of a
 * library that is not asked for. */
void tune_warn(const Tune *tune, const Module *module);

/* What tune_read reads; lines of a graph follow one another. */
void tune_print(Text *out, const Tune *tune, const char *target);

#endif
