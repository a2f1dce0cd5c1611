/* What a graph needs before it is compiled: a name, comments, memory. */
#ifndef NNC_API_PREPARE_H
#define NNC_API_PREPARE_H

#include "formats/weights.h"

/* A name as a C identifier, the prefix of all that is emitted; as long as a file's name may be, and of no header that
 * emitted sources include. */
Str prepare_identifier(Arena *arena, Str name);
/* Without its folders: what is emitted must not depend on where it is made. */
Str prepare_file_name(Str path);
/* That without what follows its last dot: the name of a program of several graphs. */
Str prepare_stem(Str path);
/* The initialiser of what a weights file may hold, as the text has it; empty when it has none. */
Str prepare_initialiser(Arena *arena, const WantedTensor *wanted);
/* For CompileOptions.describe; its context is a prepare_printer. */
void prepare_describe(void *context, Text *out, const Graph *graph, NodeId node);
void *prepare_printer(Arena *arena);
/* A mistyped extent should end in an error at its place, not in a machine that swaps.  False after that error. */
bool prepare_fits_memory(const Graph *graph);

#endif
