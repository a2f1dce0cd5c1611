#include "semihost.h"

#include <stdint.h>

enum { SYS_WRITE0 = 0x04, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };

static void call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void semihost_print(const char *text)
{
    call(SYS_WRITE0, text);
}

_Noreturn void semihost_exit(int status)
{
    const uint32_t reason[2] = {APPLICATION_EXIT, (uint32_t)status};
    call(SYS_EXIT_EXTENDED, reason);
    for (;;)
        ;
}
