/* From a model to a compiled program, with the flags that several verbs share. */
#ifndef NNC_CLI_PROGRAM_H
#define NNC_CLI_PROGRAM_H

#include "cli/model.h"
#include "codegen/program/program.h"
#include "codegen/target.h"
#include "plan/report.h"

/* The target of this name.  NULL after a usage error, which lists them, and `more`, what the verb takes beside. */
const Target *program_target_named(Cli *cli, Str name, const char *more);
/* The one that --target names, or else `fallback`. */
const Target *program_target(Cli *cli, const char *fallback);

/* The target with what --size and --backend say of it; false after a usage error. */
bool program_adjust_target(Cli *cli, const Target **target);

/* Those that --target names, the best last, separated by commas.  NULL after a usage error. */
const Target **program_targets(Cli *cli, const char *fallback, uint32_t *count);

/* Can what --target names (the host without it) be run in this process?  False after a usage error. */
bool program_runs_here(Cli *cli);

/* The allocator that --allocator names, or NULL for the best; false after a usage error. */
bool program_allocator(Cli *cli, const char **allocator);

/* What --weights asks for, or WEIGHTS_AUTO; false after a usage error. */
bool program_take_form(Cli *cli, WeightsForm *form);

/* Are the flags well-formed that say how to compile, and need no model for that?  False after a usage error. */
bool program_flags(Cli *cli);

/* Does --cc, where it is given, name a compiler?  False after a usage error. */
bool program_compiler(Cli *cli);

/* The file of `nnc tune` for the model on a target, whether it is there or not. */
Str program_tune_path(Arena *arena, const Model *model, const Target *target);

/* Options from the flags target, allocator, cc, memory-limit and tune, which the verb must have.  Returns the exit
 * status. */
int program_options(Cli *cli, Model *model, const char *target, WeightsForm weights, CompileOptions *options);

/* The same for each of the targets. */
int program_options_each(Cli *cli, Model *model, const Target *const *target, uint32_t count, WeightsForm weights,
                         CompileOptions *options);

/* Compiles the model's graph as a program of its own.  Returns the exit status. */
int program_of(Cli *cli, Model *model, const char *target, WeightsForm weights, Program *program);

/* The same for all its graphs as one program, which is called after the file; options[i] for each of `targets`. */
int program_of_all(const Model *model, CompileOptions *options, uint32_t targets, Program *program);

#endif
