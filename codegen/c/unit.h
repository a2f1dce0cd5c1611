/* NAME.c in the making: the functions of its kernels, shared where they are equal, and those that call them. */
#ifndef NNC_C_UNIT_H
#define NNC_C_UNIT_H

#include "base/names.h"
#include "c/sharing.h"
#include "c/source.h"

typedef struct Function { /* of a launch; kernels of equal text share one */
    Str name;
    Str call, part;     /* of one that is dealt: the type of its arguments, and what calls it with them (deal.c) */
    const Entry *entry; /* the first of its users: an entry's kernel ... */
    uint32_t kernel;
    const Deal *deal; /* ... or a deal of it */
    uint32_t users;
    Sharing sharing;  /* with kernels of other constants */
    uint32_t printed; /* so many constants stand in its text */
    bool wide;        /* its parameters need more than an int */
} Function;

typedef struct Launch { /* a call of a function */
    uint32_t function;
    const Constant *constant;    /* of the kernel's loops: what the arguments for its parameters are */
    uint32_t constants, printed; /* the rest is about scratch (deal.c) */
    bool wide;                   /* they need more than an int */
    uint32_t alike;              /* while functions are made (launches.c) */
} Launch;

typedef struct Unit {
    const Program *program;
    Arena *arena;
    PreludeNeeds needs;
    Function *function;
    uint32_t function_count, function_capacity;
    Launch **of_step; /* per entry, per launch */
    Names names;      /* that stand in the source already */
    bool retypes;     /* memory holds elements of one type after another */
} Unit;

void unit_make(Unit *unit, const Program *program, Arena *arena);
void unit_share(Unit *unit); /* makes the functions, by which kernels share one (launches.c) */
/* The text of a kernel or of a deal of it; constants as for print_kernel. */
Str unit_function_text(Unit *unit, const Entry *entry, uint32_t k, const Deal *deal, const KernelNames *names,
                       Constants *constants);
/* Of kernel k: which buffers others serve, that and which overlap, and which are parameters of it or of a deal. */
const uint32_t *unit_inplace(const Entry *entry, Arena *arena, uint32_t k);
KernelMemory unit_kernel_memory(const Entry *entry, Arena *arena, uint32_t k);
const bool *unit_parameters(const Entry *entry, Arena *arena, uint32_t k, const Deal *deal);
KernelNames unit_function_names(Unit *unit, const Function *function);
void unit_print_weights(Text *out, Unit *unit);
void unit_print_functions(Text *out, Unit *unit);
bool unit_has_apart(const Unit *unit); /* do some of them stay functions, whatever C compilers would like? */
void unit_print_deal(Text *out, const Unit *unit); /* nnc_deal, where some function is dealt */
void unit_print_part(Text *out, Unit *unit, const Function *function, const KernelNames *names); /* of one that is */
void unit_print_run(Text *out, const Unit *unit, uint32_t entry);                                /* NAME_run */
void unit_print_start(Text *out, const Unit *unit, KeptBlock block); /* NAME_params_init, NAME_state_init */
void unit_print_pack(Text *out, const Unit *unit);                   /* NAME_pack */
void unit_print_descriptor(Text *out, const Unit *unit);
void unit_print_dispatch(Text *out, const Unit *unit); /* NAME.c of a program that has versions, as a whole */

#endif
