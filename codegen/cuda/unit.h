/* NAME.cu in the making: the functions of its launches, shared where they are equal, and those that launch them. */
#ifndef NNC_CUDA_UNIT_H
#define NNC_CUDA_UNIT_H

#include "base/names.h"
#include "c/source.h"
#include "cuda/prelude.h"
#include "cuda/section.h"

typedef struct CudaFunction { /* sections of equal text and launch share one */
    Str name;
    const Entry *entry; /* of the first of its users */
    uint32_t kernel;
    const Section *section;
    uint32_t users;
} CudaFunction;

typedef struct CudaUnit {
    const Program *program;
    Arena *arena;
    PreludeNeeds needs;
    MeetNeeds meets;
    CudaFunction *function;
    uint32_t function_count, function_capacity;
    uint32_t **of_step; /* per entry, per step: its function */
    Map by_text;
    Names names; /* that stand in the source already */
} CudaUnit;

/* Arrays of the device, or handed over? */
static inline bool cuda_weights_in_source(const Program *program)
{
    return program_weights_form(program) == WEIGHTS_C;
}

void cuda_print_signature(Text *out, const Entry *entry, Arena *arena);
/* `if (!a || (uintptr_t)a % 64 != 0) return ...;`, without the first where it may be missing */
void cuda_print_check(Text *out, const char *pointer, bool needed);
void cuda_print_start_functions(Text *out, CudaUnit *unit);
void cuda_print_start(Text *out, const CudaUnit *unit, KeptBlock block); /* NAME_params_init, NAME_state_init */
void cuda_print_run(Text *out, const CudaUnit *unit, uint32_t entry);

#endif
