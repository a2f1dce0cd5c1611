/* Contraction kernels against the multiply-add peak: every distinct convolution of ResNet-50 and every matmul of
 * BERT-base (128 tokens, one sentence), f32, one core.
 *
 *     contractions [--cc CC] [--rounds N] [TARGET ...]        default: clang, 1, x86-64-v4 x86-64-v3
 *
 * Each kernel is compiled as `nnc compile` would, loaded, and timed in turns with a loop of multiply-adds of the same
 * vector width.  The share is the median over turns of the kernel's rate by the peak around it; of several rounds, the
 * best median, for machines where others disturb.  Only taps inside the image count as work.  Time is the thread's
 * own. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "c/prelude.h"
#include "c/print.h"
#include "ops/family.h"
#include "program/program.h"

#define MOST_TURNS 200
#define PEAK_STEPS 20000
#define SUMS       12

typedef struct Shape6 { /* a convolution c x h x h -> o, kernel k, stride, or a matmul of `batch` m x k by k x n */
    const char *name;
    enum { CONV, DENSE, SCORES, MIX } kind;
    int64_t a, b, c, d, e, f;
} Shape6;

/* CONV: c, h, o, k, stride, pad.  The others: m, k, n, heads. */
static const Shape6 shapes[] = {
    {"resnet50 conv1", CONV, 3, 224, 64, 7, 2, 3},         {"1x1 64>64 56", CONV, 64, 56, 64, 1, 1, 0},
    {"3x3 64>64 56", CONV, 64, 56, 64, 3, 1, 1},           {"1x1 64>256 56", CONV, 64, 56, 256, 1, 1, 0},
    {"1x1 256>64 56", CONV, 256, 56, 64, 1, 1, 0},         {"1x1 256>128 56", CONV, 256, 56, 128, 1, 1, 0},
    {"3x3/2 128>128 56", CONV, 128, 56, 128, 3, 2, 1},     {"1x1 128>512 28", CONV, 128, 28, 512, 1, 1, 0},
    {"1x1/2 256>512 56", CONV, 256, 56, 512, 1, 2, 0},     {"1x1/2 256>128 56", CONV, 256, 56, 128, 1, 2, 0},
    {"1x1 512>128 28", CONV, 512, 28, 128, 1, 1, 0},       {"3x3 128>128 28", CONV, 128, 28, 128, 3, 1, 1},
    {"1x1 512>256 28", CONV, 512, 28, 256, 1, 1, 0},       {"3x3/2 256>256 28", CONV, 256, 28, 256, 3, 2, 1},
    {"1x1 256>1024 14", CONV, 256, 14, 1024, 1, 1, 0},     {"1x1/2 512>1024 28", CONV, 512, 28, 1024, 1, 2, 0},
    {"1x1/2 512>256 28", CONV, 512, 28, 256, 1, 2, 0},     {"1x1 1024>256 14", CONV, 1024, 14, 256, 1, 1, 0},
    {"3x3 256>256 14", CONV, 256, 14, 256, 3, 1, 1},       {"1x1 1024>512 14", CONV, 1024, 14, 512, 1, 1, 0},
    {"3x3/2 512>512 14", CONV, 512, 14, 512, 3, 2, 1},     {"1x1 512>2048 7", CONV, 512, 7, 2048, 1, 1, 0},
    {"1x1/2 1024>2048 14", CONV, 1024, 14, 2048, 1, 2, 0}, {"1x1/2 1024>512 14", CONV, 1024, 14, 512, 1, 2, 0},
    {"1x1 2048>512 7", CONV, 2048, 7, 512, 1, 1, 0},       {"3x3 512>512 7", CONV, 512, 7, 512, 3, 1, 1},
    {"bert 768>768", DENSE, 128, 768, 768, 1, 0, 0},       {"bert 768>3072", DENSE, 128, 768, 3072, 1, 0, 0},
    {"bert 3072>768", DENSE, 128, 3072, 768, 1, 0, 0},     {"bert q k'", SCORES, 128, 64, 128, 12, 0, 0},
    {"bert scores v", MIX, 128, 128, 64, 12, 0, 0},
};

/* Graphs */

static ValueId input(Graph *graph, uint32_t rank, const int64_t *dim)
{
    return graph_add_input(graph, module_plain_type(graph->module, DT_F32, rank, dim), STR("x"), (Place){0});
}

static ValueId constant(Graph *graph, uint32_t rank, const int64_t *dim)
{
    Tensor *tensor = tensor_new(graph->module->arena, module_plain_type(graph->module, DT_F32, rank, dim));
    float *data = tensor->data;
    for (int64_t i = 0; i < shape_elements(&tensor->type->shape); i++)
        data[i] = (float)(i * 7919 % 2001 - 1000) * 1e-3f;
    return graph_add_const(graph, tensor, STR("weight"), (Place){0});
}

static void set_ints(Graph *graph, OpCode op, Attr *attr, const char *name, uint32_t count, const int64_t *ints)
{
    Attr *a = &attr[attr_index(op, str_from(name))];
    a->i = count;
    a->ints = arena_copy(graph->module->arena, ints, count * sizeof *ints);
}

/* Bias and relu behind it; the operand in channel blocks, as other layers leave it. */
static ValueId build_conv(Graph *graph, const Shape6 *s, uint32_t lanes)
{
    int64_t x[] = {1, s->a, s->b, s->b}, w[] = {s->c, s->a, s->d, s->d};
    Attr attr[8], block[1] = {{.i = lanes}};
    ValueId in[3] = {input(graph, 4, x), constant(graph, 4, w), constant(graph, 1, &s->c)};

    if (s->a % lanes == 0)
        in[0] = op_build(graph, OP_RELAYOUT, in, 1, block, (Place){0});
    attr_defaults(OP_CONV2D, attr);
    set_ints(graph, OP_CONV2D, attr, "stride", 1, &s->e);
    set_ints(graph, OP_CONV2D, attr, "pad", 1, &s->f);
    ValueId y = op_build(graph, OP_CONV2D, in, 3, attr, (Place){0});
    return op_build2(graph, OP_MAXIMUM, y, graph_add_scalar(graph, DT_F32, 0), (Place){0});
}

static ValueId build_dense(Graph *graph, const Shape6 *s)
{
    int64_t x[] = {s->a, s->b}, w[] = {s->b, s->c};
    ValueId y = op_build2(graph, OP_MATMUL, input(graph, 2, x), constant(graph, 2, w), (Place){0});
    return op_build2(graph, OP_ADD, y, constant(graph, 1, &s->c), (Place){0});
}

/* [rows, heads, columns] as [heads, rows, columns]: how attention sees its operands. */
static ValueId heads_first(Graph *graph, int64_t rows, int64_t heads, int64_t columns)
{
    int64_t dim[] = {rows, heads, columns}, axes[] = {1, 0, 2};
    Attr attr[2];
    ValueId x = input(graph, 3, dim);
    attr_defaults(OP_TRANSPOSE, attr);
    set_ints(graph, OP_TRANSPOSE, attr, "axes", 3, axes);
    return op_build(graph, OP_TRANSPOSE, &x, 1, attr, (Place){0});
}

static ValueId build_attention(Graph *graph, const Shape6 *s)
{
    int64_t scores[] = {s->d, s->a, s->b};
    bool transpose = s->kind == SCORES;
    Attr attr[2];
    ValueId in[2];
    in[0] = transpose ? heads_first(graph, s->a, s->d, s->b) : input(graph, 3, scores);
    in[1] = transpose ? heads_first(graph, s->c, s->d, s->b) : heads_first(graph, s->b, s->d, s->c);
    attr_defaults(OP_MATMUL, attr);
    attr[attr_index(OP_MATMUL, STR("transpose_y"))].i = transpose;
    return op_build(graph, OP_MATMUL, in, 2, attr, (Place){0});
}

/* Multiply-adds; of convolutions those whose tap lies inside the image. */
static double count_work(const Shape6 *s)
{
    if (s->kind != CONV)
        return (double)s->a * (double)s->b * (double)s->c * (double)s->d;
    int64_t out = (s->b + 2 * s->f - s->d) / s->e + 1, inside = 0; /* along one axis; both are alike */
    for (int64_t i = 0; i < out; i++)
        for (int64_t k = 0; k < s->d; k++)
            inside += i * s->e + k >= s->f && i * s->e + k < s->f + s->b;
    return (double)(inside * inside) * (double)s->a * (double)s->c;
}

/* The kernel as a library */

static void print_source(Text *out, const Program *program, const Kernel *kernel)
{
    Arena arena = {0};
    PreludeNeeds needs = {0};
    KernelNames names = {0};
    KernelMemory memory = {ARENA_ARRAY(&arena, bool, kernel->buffer_count), print_itself(&arena, kernel)};
    Text body = {0};
    const Target *target = program->options.target;

    print_role_names(&arena, kernel, memory.inplace, &names);
    print_kernel(&body, &arena, target, kernel, NULL, &names, memory, NULL, &needs);
    text_printf(out,
                "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
                "#define NNC_RESTRICT restrict\n");
    prelude_print(out, target, &needs);
    text_str(out, text_view(&body));
    text_printf(out, "void bench_kernel(void *const *b);\nvoid bench_kernel(void *const *b)\n{\n    " STR_FMT "(",
                STR_ARG(names.function));
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        text_printf(out, "%sb[%u]", i ? ", " : "", i);
    text_printf(out, ");\n}\n\ntypedef float peak_v __attribute__((vector_size(%u)));\n", target->lanes * 4);
    text_printf(out,
                "float bench_peak(float s, long n);\nfloat bench_peak(float s, long n)\n{\n"
                "    peak_v x = (peak_v){0} + s, y = (peak_v){0} + s;\n    peak_v ");
    for (int i = 0; i < SUMS; i++)
        text_printf(out, "%sa%d = x * %d", i ? ", " : "", i, i);
    text_printf(out, ";\n    for (long i = 0; i < n; i++) {\n");
    for (int i = 0; i < SUMS; i++)
        text_printf(out, "        a%d = a%d * x + y;\n", i, i);
    text_printf(out, "    }\n    a0 = a0");
    for (int i = 1; i < SUMS; i++)
        text_printf(out, " + a%d", i);
    text_printf(out, ";\n    return a0[0];\n}\n");
    text_free(&body);
    arena_free(&arena);
}

static void *load_library(const char *cc, const Target *target, const Text *source, const char *folder)
{
    Text command = {0};
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Str path = str_format(&arena, "%s/kernel.c", folder);
    void *library = NULL;
    if (file_write(&diag, path, source->ptr, source->len)) {
        text_printf(&command,
                    "%s -std=gnu99 -O3 -fPIC -ffp-contract=fast -fno-math-errno %s -shared " STR_FMT
                    " -o %s/kernel.so -lm",
                    cc, target->cc_flags, STR_ARG(path), folder);
        text_char(&command, 0);
        if (system(command.ptr) == 0)
            library = dlopen(str_format(&arena, "%s/kernel.so", folder).ptr, RTLD_NOW | RTLD_LOCAL);
    }
    text_free(&command);
    arena_free(&arena);
    return library;
}

static void *allocate(int64_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, (size_t)bytes + 4096))
        exit(3);
    float *data = memory;
    for (int64_t i = 0; i < bytes / 4; i++)
        data[i] = (float)(i * 104729 % 2001 - 1000) * 1e-3f;
    return memory;
}

static void fill_buffers(const Program *program, const Kernel *kernel, void **buffer)
{
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        const Storage *storage = entry_storage(program->entry, kernel->buffer[i].storage);
        buffer[i] = allocate(storage->bytes);
        if (storage->role == STORAGE_WEIGHTS)
            program_weights_fill(program, storage->index, buffer[i]);
    }
}

/* Time */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct Timing {
    void (*kernel)(void *const *);
    float (*peak)(float, long);
    void *const *buffer;
    double work;
    uint32_t lanes;
} Timing;

static double peak_rate(const Timing *t)
{
    static volatile float sink;
    double begin = seconds();
    sink = t->peak(0.5f, PEAK_STEPS);
    (void)sink;
    return (double)PEAK_STEPS * SUMS * t->lanes / (seconds() - begin);
}

static double kernel_seconds(const Timing *t, int times)
{
    double begin = seconds();
    for (int i = 0; i < times; i++)
        t->kernel(t->buffer);
    return (seconds() - begin) / times;
}

typedef struct Share {
    double of_peak, milliseconds, peak;
} Share;

static Share take_share(const Timing *t)
{
    double share[MOST_TURNS], time[MOST_TURNS], peak[MOST_TURNS];
    kernel_seconds(t, 2);
    double once = kernel_seconds(t, 1);
    int times = once < 2e-4 ? (int)(2e-4 / once) + 1 : 1;
    int turns = (int)(0.2 / (once * times + 1e-4));
    turns = turns < 15 ? 15 : turns > MOST_TURNS ? MOST_TURNS : turns;
    for (int i = 0; i < turns; i++) {
        double before = peak_rate(t);
        time[i] = kernel_seconds(t, times);
        peak[i] = (before + peak_rate(t)) / 2;
        share[i] = t->work / time[i] / peak[i];
    }
    qsort(share, (size_t)turns, sizeof *share, ascending);
    qsort(time, (size_t)turns, sizeof *time, ascending);
    qsort(peak, (size_t)turns, sizeof *peak, ascending);
    return (Share){share[turns / 2], time[turns / 2] * 1e3, peak[turns / 2] * 2e-9};
}

static const Kernel *contraction_in(const Program *program)
{
    for (uint32_t k = 0; k < program->entry->memory.kernel_count; k++)
        if (program->entry->memory.kernel[k].form == FORM_CONTRACTION)
            return &program->entry->memory.kernel[k];
    return NULL;
}

typedef struct Setting {
    const char *cc, *folder;
    int rounds;
} Setting;

static bool bench_shape(const Shape6 *shape, const Target *target, const Setting *setting, Share *share)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Program program;
    Module *module = module_new(&arena, &diag);
    Graph *graph = graph_new(module, STR("bench"));
    ValueId y = shape->kind == CONV    ? build_conv(graph, shape, target->lanes)
                : shape->kind == DENSE ? build_dense(graph, shape)
                                       : build_attention(graph, shape);
    CompileOptions options = {
        .target = target, .weights = WEIGHTS_FILE, .effort = 1, .exact = true, .name = STR("bench")};
    graph_add_output(graph, y, STR("y"));
    if (!program_compile(&graph, 1, &options, &program))
        return false;

    const Kernel *kernel = contraction_in(&program);
    void **buffer = ARENA_ARRAY(&arena, void *, kernel->buffer_count);
    Text source = {0};
    print_source(&source, &program, kernel);
    void *library = load_library(setting->cc, target, &source, setting->folder);
    if (library) {
        fill_buffers(&program, kernel, buffer);
        Timing timing = {.buffer = buffer, .work = count_work(shape), .lanes = target->lanes};
        timing.kernel = (void (*)(void *const *))(uintptr_t)dlsym(library, "bench_kernel");
        timing.peak = (float (*)(float, long))(uintptr_t)dlsym(library, "bench_peak");
        *share = (Share){0};
        for (int i = 0; i < setting->rounds; i++) {
            Share round = take_share(&timing);
            *share = round.of_peak > share->of_peak ? round : *share;
        }
        for (uint32_t i = 0; i < kernel->buffer_count; i++)
            free(buffer[i]);
        dlclose(library);
    }
    text_free(&source);
    arena_free(&arena);
    return library != NULL;
}

static int bench_target(const char *name, const Setting *setting)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    const Target *target = target_find(str_from(name), &diag);
    double logs = 0, worst = 2;
    uint32_t count = sizeof shapes / sizeof *shapes;

    if (!target)
        return fprintf(stderr, "%.*s", (int)diag.text.len, diag.text.ptr), 2;
    printf("%s, %s\n%-20s %9s %9s %9s\n", target->name, setting->cc, "", "ms", "GFLOP/s", "of peak");
    for (uint32_t i = 0; i < count; i++) {
        Share share;
        if (!bench_shape(&shapes[i], target, setting, &share))
            return 3;
        printf("%-20s %9.3f %9.1f %7.1f %%\n", shapes[i].name, share.milliseconds,
               count_work(&shapes[i]) * 2e-6 / share.milliseconds, share.of_peak * 100);
        fflush(stdout);
        logs += log(share.of_peak);
        worst = share.of_peak < worst ? share.of_peak : worst;
    }
    printf("%-20s %*s %7.1f %%, least %.1f %%\n\n", "geometric mean", 19, "", exp(logs / count) * 100, worst * 100);
    arena_free(&arena);
    return 0;
}

int main(int argc, char **argv)
{
    static char *both[] = {"x86-64-v4", "x86-64-v3"};
    char folder[] = "/tmp/contractionsXXXXXX";
    Setting setting = {.cc = "clang", .folder = folder, .rounds = 1};
    int status = 0;

    for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2)
        if (strcmp(argv[1], "--cc") == 0)
            setting.cc = argv[2];
        else
            setting.rounds = atoi(argv[2]) > 1 ? atoi(argv[2]) : 1;
    if (!mkdtemp(folder))
        return 3;
    char **target = argc > 1 ? argv + 1 : both;
    for (int i = 0; status == 0 && i < (argc > 1 ? argc - 1 : 2); i++)
        status = bench_target(target[i], &setting);
    Text command = {0};
    text_printf(&command, "rm -r %s", folder);
    text_char(&command, 0);
    if (system(command.ptr) != 0)
        status = 3;
    text_free(&command);
    return status;
}
