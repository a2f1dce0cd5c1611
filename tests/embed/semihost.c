#include "semihost.h"

#include <stdint.h>
#include <string.h>

enum { SYS_OPEN = 0x01, SYS_WRITE0 = 0x04, SYS_READ = 0x06, SYS_EXIT_EXTENDED = 0x20, APPLICATION_EXIT = 0x20026 };
enum { MODE_RB = 1 };

static uint32_t call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void semihost_print(const char *text)
{
    call(SYS_WRITE0, text);
}

int semihost_open(const char *path)
{
    const uint32_t argument[3] = {(uint32_t)(uintptr_t)path, MODE_RB, (uint32_t)strlen(path)};
    return (int)call(SYS_OPEN, argument);
}

int semihost_read(int file, void *bytes, uint32_t count)
{
    const uint32_t argument[3] = {(uint32_t)file, (uint32_t)(uintptr_t)bytes, count};
    return call(SYS_READ, argument) == 0;
}

_Noreturn void semihost_exit(int status)
{
    const uint32_t reason[2] = {APPLICATION_EXIT, (uint32_t)status};
    call(SYS_EXIT_EXTENDED, reason);
    for (;;)
        ;
}
