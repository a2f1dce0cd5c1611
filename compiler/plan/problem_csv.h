/* Placement problems as comma-separated text, and their solutions as JSON.
 *
 *     id,lower,upper,size            live in [lower, upper): MiniMalloc's form
 *     id,start,end,size,alignment    live in [start, end], both included
 *
 * Columns may come in any order and others are ignored; alignment is optional.  Ids are any text (UTF-8 without
 * control characters) and may be quoted.
 * Blank lines and lines that begin with # are skipped. */
#ifndef NNC_PLAN_PROBLEM_CSV_H
#define NNC_PLAN_PROBLEM_CSV_H

#include "base/diag.h"
#include "plan/problem.h"

typedef struct PlanNamedProblem {
    PlanProblem problem;
    Str *id; /* [problem.count] */
} PlanNamedProblem;

/* Reads the text of a file already known to the diag as `source`.  False after reporting up to DIAG_LIMIT errors, each
 * with line and column.  The result lives in the arena; ids may point into the text. */
bool plan_read_csv(Arena *arena, Diag *diag, uint32_t source, PlanNamedProblem *out);

/* {"peak", "lower_bound", "proven", "nodes", "allocator", "offsets": {id: offset, ...} in the order of the file}; when
 * ids repeat, the last one counts for most readers of JSON, so plan_read_csv does not let them. */
void plan_write_json(Text *out, const PlanNamedProblem *named, const PlanResult *result);

#endif
