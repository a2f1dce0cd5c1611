/* Targets: a table of vector width, registers, caches and the C dialect allowed. */
#ifndef NNC_CODEGEN_TARGET_H
#define NNC_CODEGEN_TARGET_H

#include "base/arena.h"
#include "base/diag.h"

#define LINE_BYTES 64   /* of a cache */
#define PAGE_BYTES 4096 /* of memory, and of a way of most first levels: what lies so far apart shares a set */

typedef enum Dialect {
    DIALECT_C99,    /* strict, for any compiler */
    DIALECT_VECTOR, /* C99 with GNU vector extensions */
    DIALECT_CUDA,
} Dialect;

/* Who carries out products of matrices. */
typedef enum Backend {
    BACKEND_GENERATED, /* generated code, which needs no library */
    BACKEND_OPENBLAS,  /* OpenBLAS, where it can */
    BACKEND_AUTO,      /* whoever takes less time, by the cost table or a tune file */
} Backend;

extern const char *const backend_names[]; /* in this order; ends with NULL */

/* How exact contractions of f32 are, where the machine has faster ones that are less. */
typedef enum Precision {
    PRECISION_HIGHEST, /* as sums of products of f32 are */
    PRECISION_HIGH,    /* each operand to 16 bits, as the sum of two bf16 */
} Precision;

/* Whose C runs on a machine of this kind alone; `cpu` tells those of the x86 family apart. */
typedef enum Machine { MACHINE_ANY, MACHINE_AARCH64, MACHINE_RISCV64 } Machine;

typedef struct Target {
    const char *name;
    const char *cc_flags;      /* for gcc and clang, e.g. -march=x86-64-v4 */
    const char *macro;         /* that compilers define where they have what it needs; NULL: any compiler will do */
    const char *old_macro;     /* the same by an older name of some compilers; NULL: there is none */
    const struct nnc_cpu *cpu; /* what a machine must have, as it tells where it runs (runtime/nnc_cpu.h); NULL: it is
                                  not asked */
    Machine machine;
    Dialect dialect;
    uint32_t lanes; /* of f32 in a vector register; 1 where the dialect has none */
    uint32_t vector_registers;
    uint32_t team; /* most threads that can share out a loop and meet in it; 0: none */
    uint32_t l1_bytes, l2_bytes;
    bool halves;           /* one instruction makes a vector of f32 of one of f16 in memory */
    bool fetches_images;   /* by software: the hardware does not follow many short runs of an image */
    bool fetches_products; /* into the first level: rows that products read, results that are written */
    bool pairs;            /* one instruction multiplies pairs of 16 bits and adds up both products */
    bool quads;      /* ... and four bytes, of one operand unsigned, of the other signed, and adds up all products */
    bool brains;     /* ... and pairs of bf16, whose products it adds to f32 */
    bool tiles;      /* registers of 16 x 64 bytes, and their products by quads of bytes and pairs of bf16: AMX */
    uint32_t parts;  /* bf16 that f32 is taken apart into where tiles may multiply it; 0: they may not */
    bool small;      /* the least code, however slow: target_small */
    bool flash;      /* constants lie where every byte counts: packed weights are not padded to whole vectors */
    Backend backend; /* target_with_backend */
    const char *doc;
} Target;

extern const Target target_table[];
extern const uint32_t target_count;

/* The same machine, for the least code: kernels are loops that nothing is unrolled of.  A copy in the arena. */
const Target *target_small(Arena *arena, const Target *target);

/* The same machine, where a library may carry out products of matrices.  A copy in the arena. */
const Target *target_with_backend(Arena *arena, const Target *target, Backend backend);

extern const char *const target_precision_names[]; /* in the order of Precision; ends with NULL */

/* The same machine, where products of f32 may be less exact than those of f32 are.  A copy in the arena. */
const Target *target_with_precision(Arena *arena, const Target *target, Precision precision);

/* Has it libraries: is it a processor with an operating system? */
static inline bool target_takes_libraries(const Target *target)
{
    return target->dialect != DIALECT_CUDA && !target->flash;
}

/* Channels of a block of the layout that its convolutions want: a vector of them; a library's want none. */
static inline uint32_t target_block(const Target *target)
{
    return target->backend == BACKEND_OPENBLAS ? 1 : target->lanes;
}

/* Are products of f32 so much faster that those of integers had better be such?  Vectors are of f32; where flash
 * counts, machines may have no unit for floats. */
static inline bool target_takes_floats(const Target *target)
{
    return target_block(target) > 1 && !target->flash;
}

/* Orders those that one library is to carry, the best last.  What is wrong with them, or empty: they must be told apart
 * where they run, or fit every machine, and be no two the same. */
Str target_arrange(Arena *arena, const Target **target, uint32_t count);

/* The level at which compilers make most of its C, as the emitted file's own line recommends. */
static inline const char *target_cc_level(const Target *target)
{
    return target->cc_flags[0] ? "-O3" : "-O2";
}

/* Does this machine have what the target needs, as far as it tells? */
bool target_is_here(const Target *target);

/* `host` reads this machine.  Reports an unknown name with the known ones and returns NULL. */
const Target *target_find(Str name, Diag *diag);

#endif
