/* How much to compute again, so that the arena keeps to a limit. */
#ifndef NNC_PROGRAM_FIT_H
#define NNC_PROGRAM_FIT_H

#include "passes/pass.h"
#include "program/program.h"

/* Plans an expanded graph, which stays as it is, with more and more of it computed again, and chooses what keeps to
 * options->memory_limit with the fewest operations; where nothing does, what comes nearest.  False, without a word,
 * when it cannot be compiled at all: who compiles it says why. */
bool fit_find(const Graph *graph, const CompileOptions *options, Fit *fit);

#endif
