/* What a program takes of a machine, by layer and in all: the report of those who must fit it into a part.
 *
 * A layer is an outermost call: of a function of the model, or of the library where the graph itself calls it.  A
 * kernel is of the layer of its anchor.  What is under no call is a layer by its kernel's name.
 *
 * Stack and code are not known here: who has a C compiler measures each function, and calls budget_settle. */
#ifndef NNC_API_BUDGET_H
#define NNC_API_BUDGET_H

#include "codegen/program/program.h"

#define BUDGET_UNKNOWN (-1) /* not measured, or nowhere apart from others */

typedef struct BudgetFunction { /* of a kernel, in the emitted source; kernels may share one */
    Str name;
    int64_t stack, code;
} BudgetFunction;

typedef struct BudgetLayer {
    Str name; /* of its entry's layers no other is called so */
    uint32_t entry, kernels;
    int64_t macs;   /* multiply-adds of contractions, a loop's as often as it runs at most, all branches */
    bool per_round; /* of a loop whose rounds nobody can tell: of one round */
    /* Bytes: arrays that no layer before it reads; live in the arena at its fullest step; arrays of the caller's. */
    int64_t weights, arena, inputs, outputs;
    int64_t stack, code; /* of its functions: the largest frame; the size of those that no layer before it has */
    uint32_t *function;
    uint32_t function_count, function_capacity;
} BudgetLayer;

typedef struct BudgetEntry {
    Str name, function, descriptor; /* in C: NAME_run, and who calls it for NAME_model */
    int64_t macs, arena, inputs, outputs, stack;
    bool per_round;
} BudgetEntry;

typedef struct Budget {
    const Program *program;
    BudgetLayer *layer; /* entry by entry, in order of execution */
    uint32_t layer_count, layer_capacity;
    BudgetEntry *entry;
    uint32_t entry_count;
    BudgetFunction *function;
    uint32_t function_count;
    const BudgetEntry *widest;      /* with most inputs and outputs: entries run one at a time */
    int64_t ram_limit, flash_limit; /* 0: none */

    Str compiler;             /* with its flags, that has made what follows; empty: nothing is measured */
    int64_t text, data, zero; /* of the object: code and constants but weights, variables with values and without */
} Budget;

/* All but what is measured; limits are the caller's to set. */
Budget budget_of_program(Arena *arena, const Program *program);

/* Stack and code of layers, from those of functions. */
void budget_settle(Budget *budget);

/* Arena, state, inputs, outputs, stack and variables; weights, code and what variables begin with.  Without what has
 * not been measured. */
int64_t budget_ram(const Budget *budget);
int64_t budget_flash(const Budget *budget);
int64_t budget_stack(const Budget *budget); /* of the entry that takes most */

/* The layer that takes most of it; NULL where there is none. */
const BudgetLayer *budget_ram_blame(const Budget *budget);
const BudgetLayer *budget_flash_blame(const Budget *budget);

/* columns: names of layers are elided to fit into so many, or 0: they are whole. */
void budget_print_table(Text *out, const Budget *budget, uint32_t columns);
void budget_print_markdown(Text *out, const Budget *budget);
void budget_print_html(Text *out, const Budget *budget); /* one page */
void budget_print_json(Text *out, const Budget *budget); /* schema: docs/planning.md, version 1 */

#endif
