/* What the entries of a program have in common. */
#ifndef NNC_PROGRAM_SHARE_H
#define NNC_PROGRAM_SHARE_H

#include "program/program.h"

/* Names for the functions: `run` where there is one entry, else the graphs' own. */
void share_names(Program *program);

/* Params and states of one name are one: they must be declared alike in all graphs, which are expanded.  False after
 * errors. */
bool share_agree(Graph *const *graph, uint32_t count);

/* A param that some graph updates is kept between runs, so it becomes a state in all of them, `trained`.  With `pack`
 * it stays a param where none are updated: its elements come from the packed block. */
void share_kept(Graph *const *graph, uint32_t count, bool pack);

/* The arrays of weights, and of the packed block, that the entries' kernels read, each once, and their offsets.
 * `weights` has a table for each entry. */
void share_weights(Program *program, const WeightTable *weights);

/* Where in their blocks params and states lie. */
void share_blocks(Program *program);

#endif
