/* The flag --passes, and the passes it asks for. */
#ifndef NNC_CLI_PASSES_H
#define NNC_CLI_PASSES_H

#include "cli/model.h"
#include "codegen/program/stage.h"
#include "codegen/target.h"

typedef struct PassList {
    const PassRow **row;
    uint32_t count, capacity;
} PassList;

/* The pass, or NULL after a usage error that names the known ones. */
const PassRow *passes_find(Cli *cli, const char *flag, Str name);
/* `a,b,c`, or the pipeline of a compilation when the flag is absent; `--passes=` is none.  False after a usage error.
 */
bool passes_take(Cli *cli, PassList *list);
/* Do kernels end up with the numbers of the plan's steps: do all passes of a compilation run, for a target? */
bool passes_number_steps(Cli *cli, const Target *target);

/* The target that --target names, with --size and --backend, `generic` without it, NULL for `none`; false after an
 * error. */
bool passes_target(Cli *cli, const Target **target);

/* Runs the passes on every graph of the file; `after` is called after each.  With a limit in bytes, for which there
 * must be a target, the pass remat does as much as a compilation for it does.  False after errors. */
typedef void PassWatch(Cli *cli, const Model *model, const PassRow *pass, uint32_t changes, double seconds);
bool passes_run(Cli *cli, Model *model, const PassList *list, const Target *target, int64_t limit, PassWatch *after);

#define FLAG_PASSES_TARGET                                                                                             \
    {                                                                                                                  \
        "target", "T", "The machine that layouts and recipes are for, as `compile` has it, or none (default: generic)" \
    }
#define FLAG_PASSES                                                                                                    \
    {                                                                                                                  \
        "passes", "a,b,c", "The passes to run, in order (default: those of a compilation)"                             \
    }

#endif
