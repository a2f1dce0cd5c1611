#include "cli/peak.h"

#include <dlfcn.h>

#include "base/file.h"
#include "cli/bandwidth.h"
#include "cli/clock.h"

#define STEPS 200000 /* of a round: about a millisecond */

static uint32_t sum_count(const Target *target)
{
    return target->vector_registers >= 32 ? 24 : 12;
}

/* Enough sums to cover the latency of a multiply-add on both ports, and few enough to stay in registers. */
static void write_loop(Text *out, const Target *target)
{
    uint32_t lanes = target->lanes ? target->lanes : 1, sums = sum_count(target);

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

int peak_open(Cli *cli, const Target *target, Peak *peak)
{
    Text source = {0};
    int status = STATUS_ENVIRONMENT;

    uint32_t lanes = target->lanes ? target->lanes : 1;
    *peak = (Peak){.operations = 2.0 * lanes * sum_count(target), .lanes = lanes};
    if (!folder_open(cli, (Str){NULL, 0}, &peak->folder))
        return status;
    write_loop(&source, target);
    bandwidth_write_loops(&source, target);
    if (file_write(&cli->diag, folder_file(cli, &peak->folder, STR("peak.c")), source.ptr, source.len))
        status = emit_compile_shared(cli, target, &peak->folder, "peak.c", "peak.so");
    text_free(&source);
    if (status != STATUS_OK)
        return status;
    peak->library = dlopen(folder_file(cli, &peak->folder, STR("peak.so")).ptr, RTLD_NOW);
    if (peak->library)
        peak->loop = (float (*)(float, long))(uintptr_t)dlsym(peak->library, "nnc_peak");
    return peak->loop ? STATUS_OK : cli_environment("cannot load the loop that measures the peak: %s", dlerror());
}

double peak_round(const Peak *peak)
{
    volatile float sink;
    double begin = clock_processor();
    sink = peak->loop(0.5f, STEPS);
    (void)sink;
    return peak->operations * STEPS / (clock_processor() - begin);
}

void peak_close(Peak *peak)
{
    if (peak->library)
        dlclose(peak->library);
    folder_remove(&peak->folder);
}
