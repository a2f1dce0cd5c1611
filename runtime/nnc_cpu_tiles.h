/* Asks the system for the tile registers of AMX: once, before a model for x86-64-v4-amx runs.  gcc and clang, C99 and
 * C++. */
#ifndef NNC_CPU_TILES_H
#define NNC_CPU_TILES_H

/* Tile registers, bits 17 and 18 of XCR0, are large: Linux gives them to a process that asks, once and for all its
 * threads.  Does it have them from now on? */
static inline int nnc_cpu_tiles(void)
{
#if defined(__x86_64__) && defined(__linux__)
    long refused; /* arch_prctl(ARCH_REQ_XCOMP_PERM, the number of the state) */
    __asm__ volatile("syscall" : "=a"(refused) : "a"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    return refused == 0;
#else
    return 0;
#endif
}

#endif
