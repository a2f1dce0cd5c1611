/* Prints kernels of the loop IR as C functions. */
#ifndef NNC_C_PRINT_H
#define NNC_C_PRINT_H

#include "c/constants.h"
#include "c/prelude.h"
#include "kernel/kernel.h"

typedef struct KernelNames {
    Str function;
    Str *buffer;         /* per buffer of the kernel */
    Str *parameter;      /* that stand for constants of its loops, and for floats (sharing.h) ... */
    const char **type;   /* ... of these, the floats'; NULL of the others ... */
    uint32_t parameters; /* ... so many */
} KernelNames;

/* Names by role (x, weight, y, ...), for kernels that several places share and for comparing them; in the arena.  What
 * another buffer serves (KernelMemory.inplace) is called like that. */
void print_role_names(Arena *arena, const Kernel *kernel, const uint32_t *inplace, KernelNames *names);

/* What else is known of a kernel's buffers, where it stands. */
typedef struct KernelMemory {
    const bool *aliased; /* may overlap others */
    const uint32_t
        *inplace; /* the buffer whose pointer serves it, which holds the same: itself, or one that is written */
} KernelMemory;

uint32_t *print_itself(Arena *arena, const Kernel *kernel); /* an `inplace` by which each buffer serves itself alone */

/* `static void name(const float *restrict x, ...) { ... }`.  Of a deal only what it says, of the part that is the last
 * parameter, where it has parts.  `constants` as in constants.h, or NULL. */
void print_kernel(Text *out, Arena *arena, const Target *target, const Kernel *kernel, const Deal *deal,
                  const KernelNames *names, KernelMemory memory, Constants *constants, PreludeNeeds *needs);
/* Per buffer: is it a parameter?  All are of a kernel, those that it uses of a deal, but for what others serve. */
const bool *print_used(Arena *arena, const Kernel *kernel, const Deal *deal, const uint32_t *inplace);

/* Of its elements: `float` */
const char *print_buffer_type(const KernelBuffer *buffer);

/* A number as a C literal of the dtype, the shortest that reads back the same. */
Str print_number(Arena *arena, DType dtype, double number);

#endif
