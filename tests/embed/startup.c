/* From reset to main on a Cortex-M: the vector table, the floating-point unit, .data and .bss. */
#include <stdint.h>
#include <string.h>

#include "semihost.h"

extern uint32_t data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_end[]; /* mps2.ld */
int main(void);

#define CPACR (*(volatile uint32_t *)0xE000ED88) /* coprocessor access; 10 and 11 are the FPU */

_Noreturn void reset(void)
{
    CPACR |= 0xFu << 20;
    __asm__ volatile("dsb\n\tisb");
    memcpy(data_begin, data_load, (size_t)((char *)data_end - (char *)data_begin));
    memset(bss_begin, 0, (size_t)((char *)bss_end - (char *)bss_begin));
    semihost_exit(main());
}

/* A fault, or an interrupt that nobody enabled. */
static _Noreturn void stop(void)
{
    semihost_print("fault\n");
    semihost_exit(255);
}

typedef void (*Handler)(void);

__attribute__((section(".vectors"), used)) static const Handler vectors[16] = {(Handler)(uintptr_t)stack_end,
                                                                               reset,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop,
                                                                               stop};
