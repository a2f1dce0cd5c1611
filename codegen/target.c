#include "target.h"

#include "nnc_cpu.h"

/* The levels of the x86-64 psABI, each with what those below it have. */
enum { /* ecx of leaf 1 */
       SSE3 = 1 << 0,
       SSSE3 = 1 << 9,
       FMA = 1 << 12,
       CX16 = 1 << 13,
       SSE4_1 = 1 << 19,
       SSE4_2 = 1 << 20,
       MOVBE = 1 << 22,
       POPCNT = 1 << 23,
       OSXSAVE = 1 << 27,
       AVX = 1 << 28,
       F16C = 1 << 29,
       V2_ECX1 = SSE3 | SSSE3 | CX16 | SSE4_1 | SSE4_2 | POPCNT,
       V3_ECX1 = V2_ECX1 | FMA | MOVBE | OSXSAVE | AVX | F16C,
};
enum { /* ebx of leaf 7 */
       BMI1 = 1 << 3,
       AVX2 = 1 << 5,
       BMI2 = 1 << 8,
       V3_EBX7 = BMI1 | AVX2 | BMI2,
};
enum {
    AVX512_VNNI = 1 << 11, /* ecx of leaf 7 ... */
    AVX512_BF16 = 1 << 5
}; /* ... and eax of its second part */
enum {
    AMX_BF16 = 1 << 22,
    AMX_TILE = 1 << 24,
    AMX_INT8 = 1 << 25,
    AMX = AMX_BF16 | AMX_TILE | AMX_INT8
};                                                                    /* edx of leaf 7 */
#define AVX512 (1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31) /* F, DQ, CD, BW, VL */
enum { LAHF = 1 << 0, LZCNT = 1 << 5 };                               /* ecx of leaf 0x80000001 */
enum { YMM = 3 << 1, ZMM = YMM | 7 << 5, TILES = 3 << 17 };           /* of XCR0; the second with masks */

static const nnc_cpu v2_cpu = {.ecx1 = V2_ECX1, .ecx81 = LAHF};
static const nnc_cpu v3_cpu = {.ecx1 = V3_ECX1, .ebx7 = V3_EBX7, .ecx81 = LAHF | LZCNT, .xcr0 = YMM};
static const nnc_cpu v4_cpu = {.ecx1 = V3_ECX1, .ebx7 = V3_EBX7 | AVX512, .ecx81 = LAHF | LZCNT, .xcr0 = ZMM};

static const nnc_cpu v4_vnni_cpu = {.ecx1 = V3_ECX1,
                                    .ebx7 = V3_EBX7 | AVX512,
                                    .ecx7 = AVX512_VNNI,
                                    .eax7_1 = AVX512_BF16,
                                    .ecx81 = LAHF | LZCNT,
                                    .xcr0 = ZMM};

static const nnc_cpu v4_amx_cpu = {.ecx1 = V3_ECX1,
                                   .ebx7 = V3_EBX7 | AVX512,
                                   .ecx7 = AVX512_VNNI,
                                   .eax7_1 = AVX512_BF16,
                                   .ecx81 = LAHF | LZCNT,
                                   .xcr0 = ZMM | TILES,
                                   .edx7 = AMX};

/* Cache sizes are those of one core of common machines; they steer blocking, not correctness. */
const Target target_table[] = {
    {.name = "generic",
     .cc_flags = "",
     .dialect = DIALECT_C99,
     .lanes = 4,
     .vector_registers = 16,
     .l1_bytes = 32 << 10,
     .l2_bytes = 256 << 10,
     .doc = "strict C99 for any compiler"},
    {.name = "cortex-m",
     .cc_flags = "",
     .dialect = DIALECT_C99,
     .lanes = 4,
     .vector_registers = 8,
     .l1_bytes = 32 << 10,
     .l2_bytes = 256 << 10,
     .flash = true,
     .doc = "strict C99 for 32 float registers and code in flash (Cortex-M4 and later)"},
    {.name = "x86-64-v2",
     .cc_flags = "-march=x86-64-v2",
     .macro = "__SSE4_2__",
     .cpu = &v2_cpu,
     .dialect = DIALECT_VECTOR,
     .lanes = 4,
     .vector_registers = 16,
     .l1_bytes = 32 << 10,
     .l2_bytes = 256 << 10,
     .doc = "SSE 4.2 (Nehalem and later)"},
    {.name = "x86-64-v3",
     .cc_flags = "-march=x86-64-v3",
     .macro = "__AVX2__",
     .cpu = &v3_cpu,
     .dialect = DIALECT_VECTOR,
     .lanes = 8,
     .vector_registers = 16,
     .l1_bytes = 32 << 10,
     .l2_bytes = 512 << 10,
     .halves = true,
     .pairs = true,
     .fetches_images = true,
     .doc = "AVX2 and FMA (Haswell and later)"},
    {.name = "x86-64-v4",
     .cc_flags = "-march=x86-64-v4 -mprefer-vector-width=512",
     .macro = "__AVX512F__",
     .cpu = &v4_cpu,
     .dialect = DIALECT_VECTOR,
     .lanes = 16,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 1 << 20,
     .halves = true,
     .pairs = true,
     .fetches_products = true,
     .doc = "AVX-512 (Skylake server, Zen 4 and later)"},
    {.name = "x86-64-v4-vnni",
     .cc_flags = "-march=x86-64-v4 -mavx512vnni -mavx512bf16 -mprefer-vector-width=512",
     .macro = "__AVX512BF16__",
     .cpu = &v4_vnni_cpu,
     .dialect = DIALECT_VECTOR,
     .lanes = 16,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 1 << 20,
     .halves = true,
     .pairs = true,
     .quads = true,
     .brains = true,
     .fetches_products = true,
     .doc = "AVX-512 with VNNI and BF16 (Cooper Lake, Sapphire Rapids, Zen 4 and later)"},
    {.name = "x86-64-v4-amx",
     .cc_flags =
         "-march=x86-64-v4 -mavx512vnni -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16 -mprefer-vector-width=512",
     .macro = "__AMX_TILE__",
     .old_macro = "__AMXTILE__",
     .cpu = &v4_amx_cpu,
     .dialect = DIALECT_VECTOR,
     .lanes = 16,
     .vector_registers = 32,
     .l1_bytes = 48 << 10,
     .l2_bytes = 2 << 20,
     .halves = true,
     .pairs = true,
     .quads = true,
     .brains = true,
     .tiles = true,
     .fetches_products = true,
     .doc = "the same and AMX, which multiplies tiles of bytes and of bf16 (Sapphire Rapids and later)"},
    {.name = "aarch64",
     .cc_flags = "-march=armv8-a",
     .macro = "__aarch64__",
     .machine = MACHINE_AARCH64,
     .dialect = DIALECT_VECTOR,
     .lanes = 4,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 512 << 10,
     .halves = true,
     .doc = "64-bit ARM, NEON (Cortex-A53 and later)"},
    {.name = "riscv64-v",
     .cc_flags = "-march=rv64gcv",
     .macro = "__riscv_vector",
     .machine = MACHINE_RISCV64,
     .dialect = DIALECT_VECTOR,
     .lanes = 4,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 512 << 10,
     .doc = "64-bit RISC-V with the vector extension 1.0, registers of 128 bits or more"},
    {.name = "cuda:sm_90",
     .cc_flags = "-arch=sm_90",
     .dialect = DIALECT_CUDA,
     .lanes = 1,
     .vector_registers = 1,
     .team = 512,
     .l1_bytes = 128 << 10,
     .l2_bytes = 32 << 20,
     .doc = "CUDA C++ for compute capability 9.0 (Hopper)"},
};
const uint32_t target_count = sizeof target_table / sizeof *target_table;

const Target *target_small(Arena *arena, const Target *target)
{
    Target *small = ARENA_NEW(arena, Target);
    *small = *target;
    small->small = small->flash = true;
    return small;
}

const char *const backend_names[] = {"generated", "openblas", "auto", NULL};

const Target *target_with_backend(Arena *arena, const Target *target, Backend backend)
{
    if (backend == target->backend)
        return target;
    Target *with = ARENA_NEW(arena, Target);
    *with = *target;
    with->backend = backend;
    return with;
}

const char *const target_precision_names[] = {"highest", "high", NULL};

const Target *target_with_precision(Arena *arena, const Target *target, Precision precision)
{
    if (precision == PRECISION_HIGHEST || !target->tiles)
        return target;
    Target *with = ARENA_NEW(arena, Target);
    *with = *target;
    with->parts = 2;
    return with;
}

static const Target *by_name(const char *name)
{
    for (uint32_t i = 0; i < target_count; i++)
        if (str_is(str_from(name), target_table[i].name))
            return &target_table[i];
    return NULL;
}

#if defined(__aarch64__)
#define THIS_MACHINE MACHINE_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define THIS_MACHINE MACHINE_RISCV64
#else
#define THIS_MACHINE MACHINE_ANY
#endif

bool target_is_here(const Target *target)
{
    nnc_cpu here = nnc_cpu_here();
    if (target->machine != MACHINE_ANY && target->machine != THIS_MACHINE)
        return false;
    return !target->cpu || nnc_cpu_has(&here, target->cpu);
}

/* The last of the table that this machine tells it has. */
static const Target *this_machine(void)
{
    const Target *found = NULL;
    for (uint32_t i = 0; i < target_count; i++)
        if (target_table[i].cpu && target_is_here(&target_table[i]))
            found = &target_table[i];
    if (THIS_MACHINE == MACHINE_AARCH64)
        found = by_name("aarch64");
    return found ? found : by_name("generic");
}

static bool is_told_apart(const Target *target)
{
    return target->cpu || (target->dialect == DIALECT_C99 && !target->flash);
}

Str target_arrange(Arena *arena, const Target **target, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (count > 1 && !is_told_apart(target[i]))
            return str_format(arena, "%s cannot be told from other machines where a library runs: it goes alone",
                              target[i]->name);
        for (uint32_t k = i; k > 0 && target[k - 1] >= target[k]; k--) { /* by their places in the table */
            const Target *better = target[k - 1];
            if (better == target[k])
                return str_format(arena, "%s is named twice", better->name);
            target[k - 1] = target[k];
            target[k] = better;
        }
    }
    return (Str){0};
}

const Target *target_find(Str name, Diag *diag)
{
    if (str_is(name, "host"))
        return this_machine();
    Text known = {0};
    for (uint32_t i = 0; i < target_count; i++) {
        if (str_is(name, target_table[i].name)) {
            text_free(&known);
            return &target_table[i];
        }
        text_printf(&known, "%s, ", target_table[i].name);
    }
    diag_error(diag, (Place){0}, "unknown target " STR_FMT "; known are %shost", STR_ARG(name), known.ptr);
    text_free(&known);
    return NULL;
}
