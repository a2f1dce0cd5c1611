#include "target.h"

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
     .dialect = DIALECT_VECTOR,
     .lanes = 4,
     .vector_registers = 16,
     .l1_bytes = 32 << 10,
     .l2_bytes = 256 << 10,
     .doc = "SSE 4.2 (Nehalem and later)"},
    {.name = "x86-64-v3",
     .cc_flags = "-march=x86-64-v3",
     .macro = "__AVX2__",
     .dialect = DIALECT_VECTOR,
     .lanes = 8,
     .vector_registers = 16,
     .l1_bytes = 32 << 10,
     .l2_bytes = 512 << 10,
     .fetches_images = true,
     .doc = "AVX2 and FMA (Haswell and later)"},
    {.name = "x86-64-v4",
     .cc_flags = "-march=x86-64-v4 -mprefer-vector-width=512",
     .macro = "__AVX512F__",
     .dialect = DIALECT_VECTOR,
     .lanes = 16,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 1 << 20,
     .doc = "AVX-512 (Skylake server, Zen 4 and later)"},
    {.name = "aarch64",
     .cc_flags = "-march=armv8-a",
     .macro = "__aarch64__",
     .dialect = DIALECT_VECTOR,
     .lanes = 4,
     .vector_registers = 32,
     .l1_bytes = 32 << 10,
     .l2_bytes = 512 << 10,
     .doc = "64-bit ARM, NEON (Cortex-A53 and later)"},
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

static const Target *by_name(const char *name)
{
    for (uint32_t i = 0; i < target_count; i++)
        if (str_is(str_from(name), target_table[i].name))
            return &target_table[i];
    return NULL;
}

static const Target *this_machine(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq"))
        return by_name("x86-64-v4");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return by_name("x86-64-v3");
    if (__builtin_cpu_supports("sse4.2"))
        return by_name("x86-64-v2");
#elif defined(__aarch64__)
    return by_name("aarch64");
#endif
    return by_name("generic");
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
