/* Stages: what the code generator decides of a graph behind the passes.  Each can be run alone and prints as text. */
#ifndef NNC_PROGRAM_STAGE_H
#define NNC_PROGRAM_STAGE_H

#include "passes/pass.h"

#define STAGE(NAME, doc) bool stage_##NAME(Graph *graph, PassContext *context);
#include "program/stage.def"

/* Passes and stages, by number; NULL behind the last. */
const PassRow *stage_at(uint32_t number);
const PassRow *stage_find(Str name); /* NULL when there is none */

/* What a compilation runs, by number: the passes of pass_pipeline, then the stages; NULL behind the last. */
const char *stage_of_compilation(uint32_t number);

#endif
