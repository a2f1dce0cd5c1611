/* Where the time of several threads goes: a team that hands every deal to a pool, and measures what each thread does of
 * it, and what the caller does alone before.  tests/bench/deals.py builds it beside a model.
 *
 *     deals WEIGHTS THREADS RUNS
 *
 * A line for each deal of a run, in microseconds: parts, time before the deal, its time, and of each thread in parts.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nnc.h>

#define MOST_DEALS   10000
#define MOST_THREADS 16
#define WARM_RUNS    3

extern const nnc_model MODEL;

typedef struct Deal {
    int32_t parts;
    double before, time, busy[MOST_THREADS];
} Deal;

typedef struct Watch {
    nnc_team team; /* first: the team is the watch */
    nnc_team *pool;
    Deal deal[MOST_DEALS];
    uint32_t count; /* of this run */
    double last;    /* when the deal before ended, or the run began */
} Watch;

typedef struct Part { /* a part of a call, and where its time is added */
    void (*run)(const void *call, int32_t part, int32_t thread);
    const void *call;
    double *busy;
} Part;

static double microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void run_part(const void *call, int32_t part, int32_t thread)
{
    const Part *p = call;
    double begin = microseconds();
    p->run(p->call, part, thread);
    p->busy[thread] += microseconds() - begin;
}

static void deal(nnc_team *team, void (*run)(const void *, int32_t, int32_t), const void *call, int32_t parts,
                 int32_t threads)
{
    Watch *watch = (Watch *)(void *)team;
    Deal *d = &watch->deal[watch->count < MOST_DEALS - 1 ? watch->count++ : MOST_DEALS - 1];
    Part part = {run, call, d->busy};
    double begin = microseconds();
    watch->pool->deal(watch->pool, run_part, &part, parts, threads);
    double end = microseconds();
    d->parts = parts;
    d->before += begin - watch->last;
    d->time += end - begin;
    watch->last = end;
}

static void stop_unless(nnc_status status)
{
    if (status == NNC_OK)
        return;
    fprintf(stderr, "%s: %s\n", MODEL.name, nnc_status_text(status));
    exit(1);
}

/* Noise of floats in [-0.5, 0.5), and integers and bools of 0. */
static nnc_tensor make_input(const nnc_tensor_info *info)
{
    nnc_tensor tensor = nnc_tensor_of(info, calloc(1, info->bytes + 1));
    for (size_t i = 0; tensor.dtype.code == 2 && tensor.dtype.bits == 32 && i < info->bytes / sizeof(float); i++)
        ((float *)tensor.data)[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    return tensor;
}

int main(int count, char **word)
{
    static Watch watch = {.team = {deal}};
    const nnc_entry *entry = MODEL.entry;
    nnc_tensor input[64], output[64];
    nnc_weights weights;
    if (count != 4 || entry->input_count > 64 || entry->output_count > 64)
        return 2;
    int threads = atoi(word[2]), runs = atoi(word[3]);
    if (threads < 1 || threads > MOST_THREADS || runs < 1)
        return 2;

    stop_unless(nnc_weights_open(&weights, &MODEL, word[1]));
    void *arena = nnc_arena_new(&MODEL), *params = nnc_params_new(&MODEL, 0, &weights),
         *state = nnc_state_new(&MODEL, &weights);
    nnc_pool *pool = nnc_pool_new((uint32_t)threads);
    stop_unless(arena && params && state && pool ? NNC_OK : NNC_E_MEMORY);
    watch.pool = nnc_pool_team(pool);
    for (uint32_t i = 0; i < entry->input_count; i++)
        input[i] = make_input(&entry->input[i]);
    for (uint32_t i = 0; i < entry->output_count; i++)
        output[i] = nnc_tensor_of(&entry->output[i], calloc(1, entry->output[i].bytes + 1));

    double all = 0;
    for (int run = -WARM_RUNS; run < runs; run++) {
        for (uint32_t i = 0; run == 0 && i < MOST_DEALS; i++)
            watch.deal[i] = (Deal){0};
        watch.count = 0;
        double begin = watch.last = microseconds();
        stop_unless(nnc_call(&MODEL, 0, input, entry->input_count, output, entry->output_count, arena, params, state,
                             &weights, &watch.team));
        all += run < 0 ? 0 : microseconds() - begin;
    }
    printf("%.3f\n", all / runs);
    for (uint32_t i = 0; i < watch.count; i++) {
        const Deal *d = &watch.deal[i];
        printf("%d %.3f %.3f", d->parts, d->before / runs, d->time / runs);
        for (int t = 0; t < threads; t++)
            printf(" %.3f", d->busy[t] / runs);
        printf("\n");
    }
    nnc_pool_free(pool);
    return 0;
}
