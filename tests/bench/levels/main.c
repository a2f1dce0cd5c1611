/* One model, run again and again: microseconds of a run on a host, thousands of instructions on a Cortex-M in QEMU.
 * LEVELS_MODEL and LEVELS_ARENA name what the model's header declares. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include LEVELS_HEADER

static unsigned char arena[LEVELS_ARENA] __attribute__((aligned(64)));
static float input[1 << 18], output[1 << 16];

static int run_once(void)
{
    const void *in[1] = {input};
    void *out[1] = {output};
    return LEVELS_MODEL.entry[0].run(in, out, arena, NULL, NULL, NULL, NULL);
}

static void fill_input(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof input / sizeof *input; i++) {
        state = state * 1664525u + 1013904223u;
        input[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

#ifdef __arm__
#include "semihost.h"

/* The processor's clock is 25 MHz, and with -icount shift=0 an instruction takes a nanosecond. */
#define SYST_CSR (*(volatile uint32_t *)0xE000E010)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018)
enum { ENABLE_FROM_PROCESSOR = 5, MOST_TICKS = 0xFFFFFF, INSTRUCTIONS_OF_TICK = 40 };

static void print_number(uint32_t number)
{
    char text[12] = {0}, *at = text + sizeof text - 2;
    *at = '\n';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    semihost_print(at);
}

int main(void)
{
    fill_input();
    SYST_RVR = MOST_TICKS;
    SYST_CVR = 0;
    SYST_CSR = ENABLE_FROM_PROCESSOR;
    const uint32_t before = SYST_CVR;
    const int failed = run_once();
    const uint32_t ticks = (before - SYST_CVR) & MOST_TICKS;
    print_number(ticks * INSTRUCTIONS_OF_TICK / 1000);
    return failed;
}
#else
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

enum { RUNS = 9 };

/* The median of some runs, each of several calls where these are short. */
int main(int argc, char **argv)
{
    double spent[RUNS];
    int calls = argc > 1 ? atoi(argv[1]) : 1;
    fill_input();
    if (run_once())
        return 1;
    for (int i = 0; i < RUNS; i++) {
        double begin = now();
        for (int call = 0; call < calls; call++)
            run_once();
        spent[i] = (now() - begin) / calls;
    }
    qsort(spent, RUNS, sizeof *spent, by_value);
    printf("%.3f\n", spent[RUNS / 2]);
    return 0;
}
#endif
