/* What a processor of the x86 family can do, as CPUID tells it, and what its system keeps for it, as XGETBV does.
 *
 * What chooses among the targets of an emitted library carries this text; the compiler asks by it which one `host` is.
 * gcc and clang, C99 and C++. */
#include <stdint.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "nnc_cpu_tiles.h"

#ifndef NNC_CPU_H
#define NNC_CPU_H

typedef struct nnc_cpu {       /* bits of registers */
    uint32_t ecx1, ebx7, ecx7; /* of CPUID, leaves 1 and 7 */
    uint32_t eax7_1;           /* leaf 7, its second part */
    uint32_t ecx81;            /* leaf 0x80000001 */
    uint32_t xcr0;             /* XGETBV: registers that the system keeps when threads take turns */
    uint32_t edx7;             /* leaf 7 */
} nnc_cpu;

/* The machine that this runs on; all zero where there is no CPUID. */
static inline nnc_cpu nnc_cpu_here(void)
{
    nnc_cpu here = {0, 0, 0, 0, 0, 0, 0};
#ifdef __x86_64__
    uint32_t a, b, c, d;
    const uint32_t leaves = (uint32_t)__get_cpuid_max(0, 0), more = (uint32_t)__get_cpuid_max(0x80000000u, 0);
    if (leaves >= 1) {
        __cpuid(1, a, b, here.ecx1, d);
    }
    if (leaves >= 7) {
        __cpuid_count(7, 0, a, here.ebx7, here.ecx7, here.edx7);
        if (a >= 1) {
            __cpuid_count(7, 1, here.eax7_1, b, c, d);
        }
    }
    if (more >= 0x80000001u) {
        __cpuid(0x80000001u, a, b, here.ecx81, d);
    }
    if (here.ecx1 >> 27 & 1) /* XGETBV is there */
        __asm__ volatile("xgetbv" : "=a"(here.xcr0), "=d"(d) : "c"(0));
#endif
    return here;
}

/* Does the machine have all that is needed?  Tile registers are asked for where they are needed and all else is there.
 */
static inline int nnc_cpu_has(const nnc_cpu *here, const nnc_cpu *needs)
{
    return (needs->ecx1 & ~here->ecx1) == 0 && (needs->ebx7 & ~here->ebx7) == 0 && (needs->ecx7 & ~here->ecx7) == 0 &&
           (needs->eax7_1 & ~here->eax7_1) == 0 && (needs->ecx81 & ~here->ecx81) == 0 &&
           (needs->xcr0 & ~here->xcr0) == 0 && (needs->edx7 & ~here->edx7) == 0 &&
           ((needs->xcr0 >> 17 & 3) == 0 || nnc_cpu_tiles());
}

#endif
