/* What the printers of an entry's function share: the pointers that it declares, by the model's names. */
#ifndef NNC_C_RUN_H
#define NNC_C_RUN_H

#include "c/unit.h"
#include "storage/flow.h"

typedef struct Pointer {
    Str name;       /* empty before the first use */
    uint32_t depth; /* 1 + that of the block in which it is declared and can be seen; 0: it is not */
} Pointer;

typedef struct UnitRun {
    const Unit *unit;
    const Entry *entry;
    uint32_t number; /* of the entry */
    Text *out;
    const Str *port; /* source_port_names */
    Names names;
    Pointer *storage, *part; /* per storage, per value that is a part or a view */
    Map scratch;             /* the first storage of each place that scratch has been given, by type and role */
    const bool *needed;      /* per value: flow_needed */
    uint32_t depth;          /* of blocks */
    Map told;                /* what the kernels do that have been described */
} UnitRun;

/* run_pointers.c: names that are free in the function, ... */
void unit_run_start_names(UnitRun *run);
Str unit_run_free_name(UnitRun *run, Str wanted);
Str unit_run_pointer_name(UnitRun *run, const KernelBuffer *buffer, ValueId value);
/* ... blocks, ... */
void unit_run_indent(UnitRun *run);
void unit_run_leave_block(UnitRun *run); /* what is declared there is not seen any more, but keeps its name */
/* ... and pointers, declared at their first use: of a kernel's buffer, and of a value that is in memory as a whole. */
Str unit_run_buffer_argument(UnitRun *run, const KernelBuffer *buffer);
Str unit_run_pointer_of(UnitRun *run, ValueId value);
Pointers unit_run_pointers(UnitRun *run);

#endif
