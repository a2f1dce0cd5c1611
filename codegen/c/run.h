/* What the printers of an entry's function share: the pointers that it declares, by the model's names. */
#ifndef NNC_C_RUN_H
#define NNC_C_RUN_H

#include "c/unit.h"
#include "storage/flow.h"

typedef struct Pointer {
    Str name;       /* empty before the first use */
    uint32_t depth; /* 1 + that of the block in which it is declared and can be seen; 0: it is not */
} Pointer;

typedef struct UnitRounds UnitRounds; /* of calls that come again (rounds.c) */

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
    UnitRounds *rounds;      /* that the calls stand for which are printed; NULL: for themselves */
} UnitRun;

typedef struct UnitPlace { /* where a buffer begins, in a block of memory of the function: `a`, `w`, `digits_weights` */
    Str block;             /* empty: it is in none, or not always in the same place */
    int64_t offset;        /* bytes */
} UnitPlace;

/* run_pointers.c: names that are free in the function, ... */
void unit_run_start_names(UnitRun *run);
Str unit_run_free_name(UnitRun *run, Str wanted);
/* What a pointer to a value is called, which may be taken: as in the model, others by what they are for. */
Str unit_run_title(UnitRun *run, const KernelBuffer *buffer, ValueId value);
/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
bool unit_run_sees_part(const UnitRun *run, const KernelBuffer *buffer);
/* What lies in a buffer: the part or view that a kernel sees alone, else what has the memory.  NONE: scratch. */
ValueId unit_run_value(const UnitRun *run, const KernelBuffer *buffer);
/* ... blocks, ... */
void unit_run_indent(UnitRun *run);
void unit_run_leave_block(UnitRun *run); /* what is declared there is not seen any more, but keeps its name */
/* ... places, ... */
UnitPlace unit_run_place(const UnitRun *run, const KernelBuffer *buffer);
/* `(void *)(a + 64)`: a place of an aligned block as one of any type. */
Str unit_run_untyped(const UnitRun *run, const KernelBuffer *buffer, Str at);
bool unit_run_is_fixed(const UnitRun *run, const KernelBuffer *buffer); /* never written: it is const */
bool unit_run_sees(const UnitRun *run, const KernelBuffer *buffer);     /* is a pointer declared to what lies there? */
/* `float *const h = (float *)(void *)(a + 64); / * f32[8, 768] * /`, without a look at what is declared. */
void unit_run_declare(UnitRun *run, const KernelBuffer *buffer, Str name, Str at);
/* ... and pointers, declared at their first use: of a kernel's buffer, and of a value that is in memory as a whole. */
Str unit_run_buffer_argument(UnitRun *run, const KernelBuffer *buffer);
Str unit_run_pointer_of(UnitRun *run, ValueId value);
Pointers unit_run_pointers(UnitRun *run);

/* rounds.c: prints steps, those that come again as a loop; `print` prints [begin, end) of them. */
typedef void UnitSteps(UnitRun *run, const StepList *list, uint32_t begin, uint32_t end);
void unit_print_rounds(UnitRun *run, const StepList *list, UnitSteps *print);
/* The argument for buffer b of a call that stands for rounds. */
Str unit_rounds_argument(UnitRun *run, const Step *step, uint32_t b);
/* The kernel's number in each round: `142 + 33 * (long)round` */
Str unit_rounds_kernel(const UnitRun *run, const Step *step);

#endif
