/* Semihosting: what runs on the bare machine asks the debugger, or QEMU, to print and to end.
 * ARM DUI 0471: the operation in r0, its argument in r1, `bkpt 0xAB`. */
#ifndef SEMIHOST_H
#define SEMIHOST_H

void semihost_print(const char *text);
_Noreturn void semihost_exit(int status);

#endif
