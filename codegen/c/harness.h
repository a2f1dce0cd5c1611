/* What the test harnesses of C, of CUDA and of firmware have in common. */
#ifndef NNC_C_HARNESS_H
#define NNC_C_HARNESS_H

#include "program/program.h"

#define CANARY 64 /* bytes on either side of the arena */

/* In front of the names of an entry's arrays: `decode_`, or nothing where there is one entry. */
Str harness_prefix(const Entry *entry, Arena *arena);
/* `static const float input0[784] = {...};`, expected0 likewise unless it is empty, and `static float output0[10];` */
void harness_arrays(Text *out, const Entry *entry, const Golden *golden);
/* Statements that compare output<i> with expected<i>, of the call `call` where there are several; they set `bad` and
 * use the locals and functions below. */
void harness_compare(Text *out, const Entry *entry, uint32_t i);
/* The statement that fills a block with its first values; what is packed follows from params. */
void harness_fill(Text *out, const Program *program, KeptBlock block);
/* `team`, which the calls of a program for several threads are lent. */
void harness_team(Text *out, const Program *program);
/* Statements that call each entry and compare, as often as program_golden_calls says; they set `bad`, and use `arena`,
 * `weights`, `params` and `state` where they are parameters. */
void harness_calls(Text *out, const Program *program);
/* What they call; it prints what it finds, or returns it alone. */
void harness_functions(Text *out, const Program *program, bool prints);
/* `int bad`, and what else comparing takes. */
void harness_locals(Text *out, const Program *program);

#endif
