/* What the test harnesses of C and CUDA have in common. */
#ifndef NNC_C_HARNESS_H
#define NNC_C_HARNESS_H

#include "program/program.h"

#define CANARY 64 /* bytes on either side of the arena */

/* `static const float input0[784] = {...};`, expected0 likewise unless it is empty, and `static float output0[10];` */
void harness_arrays(Text *out, const Program *program, const Tensor *const *input, const Tensor *const *expected);
/* Statements that compare output<i> with expected<i>; they set `bad` and use `double error, scale` and the function of
 * harness_compare_text. */
void harness_compare(Text *out, const Program *program, uint32_t i, const Tensor *expected);
extern const char harness_compare_text[];
/* Some output is compared so: not all are integers or of 16 bits. */
bool harness_has_numbers(const Program *program);

#endif
