#include "cli/peak.h"

#include <dlfcn.h>
#include <math.h>

#include "base/file.h"
#include "cli/clock.h"

#define SPAN  0.3    /* seconds of rounds; the best counts, since other work on the machine only slows them */
#define STEPS 200000 /* of a round: below a millisecond */

/* Enough sums to cover the latency of a multiply-add on both ports, and few enough to stay in registers. */
static void write_loop(Text *out, const Target *target)
{
    uint32_t lanes = target->lanes ? target->lanes : 1, sums = target->vector_registers >= 32 ? 24 : 12;

    text_printf(out, "typedef float v __attribute__((vector_size(%u)));\n", lanes * 4);
    text_printf(out, "float nnc_peak(float seed, long steps);\nfloat nnc_peak(float seed, long steps)\n{\n");
    text_printf(out, "    v x = (v){0} + seed, y = (v){0} + 1e-9f;\n    v");
    for (uint32_t i = 0; i < sums; i++)
        text_printf(out, "%s s%u = (v){0} + %u", i ? "," : "", i, i);
    text_printf(out, ";\n    for (long i = 0; i < steps; i++) {\n");
    for (uint32_t i = 0; i < sums; i++)
        text_printf(out, "        s%u = s%u * x + y;\n", i, i);
    text_printf(out, "    }\n    v sum = s0");
    for (uint32_t i = 1; i < sums; i++)
        text_printf(out, " + s%u", i);
    text_printf(out, ";\n    return sum[0];\n}\n");
}

static double time_loop(float (*loop)(float, long), const Target *target)
{
    double operations = 2.0 * STEPS * target->lanes * (target->vector_registers >= 32 ? 24 : 12), best = 0;
    volatile float sink;

    for (double start = clock_seconds(), end = start; end - start < SPAN;) {
        double begin = clock_seconds();
        sink = loop(0.5f, STEPS);
        end = clock_seconds();
        best = fmax(best, operations / (end - begin));
    }
    (void)sink;
    return best;
}

int peak_measure(Cli *cli, const Target *target, double *flops)
{
    Folder folder;
    Text source = {0};
    int status = STATUS_ENVIRONMENT;

    *flops = 0;
    if (!folder_open(cli, (Str){NULL, 0}, &folder))
        return status;
    write_loop(&source, target);
    if (file_write(&cli->diag, folder_file(cli, &folder, STR("peak.c")), source.ptr, source.len))
        status = emit_compile_shared(cli, target, &folder, "peak.c", "peak.so");
    text_free(&source);
    void *library = status == STATUS_OK ? dlopen(folder_file(cli, &folder, STR("peak.so")).ptr, RTLD_NOW) : NULL;
    float (*loop)(float, long) = library ? (float (*)(float, long))(uintptr_t)dlsym(library, "nnc_peak") : NULL;
    if (loop) {
        cli_step(cli, "measuring the peak");
        *flops = time_loop(loop, target);
    } else if (status == STATUS_OK) {
        status = cli_environment("cannot load the loop that measures the peak: %s", dlerror());
    }
    if (library)
        dlclose(library);
    folder_remove(&folder);
    return status;
}
