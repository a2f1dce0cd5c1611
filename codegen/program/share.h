/* What the entries of a program have in common. */
#ifndef NNC_PROGRAM_SHARE_H
#define NNC_PROGRAM_SHARE_H

#include "program/program.h"

/* The name as part of one in C. */
Str share_identifier(Arena *arena, Str name);
/* Names for the functions: `run` where there is one entry, else the graphs' own. */
void share_names(Program *program);

/* Params and states of one name are one: they must be declared alike in all graphs, which are expanded.  False after
 * errors. */
bool share_agree(Graph *const *graph, uint32_t count);

/* A param that some graph updates is kept between runs, so it becomes a state in all of them, `trained`.  With `pack`
 * it stays a param where none are updated: its elements come from the packed block. */
void share_kept(Graph *const *graph, uint32_t count, bool pack);

/* The arrays of weights, and of the packed block, that the entries' kernels read, each once, and their offsets.
 * Programs that are versions of one have one list of weights.  `weights` has for each a table for each entry. */
void share_weights(Program *program, uint32_t versions, WeightTable *const *weights);

/* Where in their blocks params and states lie, the same for all versions. */
void share_blocks(Program *program, uint32_t versions);

#endif
