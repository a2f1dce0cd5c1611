/* Semihosting: what runs on the bare machine asks the debugger, or QEMU, to print, to read a file of the host and to
 * end. ARM DUI 0471: the operation in r0, its argument in r1, `bkpt 0xAB`. */
#ifndef SEMIHOST_H
#define SEMIHOST_H

#include <stdint.h>

void semihost_print(const char *text);
int semihost_open(const char *path);                      /* for reading; -1 when there is none */
int semihost_read(int file, void *bytes, uint32_t count); /* 1, or 0 where the file has no more so many */
_Noreturn void semihost_exit(int status);

#endif
