/* A pool of threads that share the work of runs.
 *
 * The parts of a call are split into ranges that follow each other, one for each thread: first ... end - 1 that nobody
 * has taken yet, and how many threads may take some, in one 64-bit word.  A thread takes from the front of its own
 * range, so that from kernel to kernel it has about the same part of the values in its caches, then from the ends of
 * others'.  Who takes one off a word by compare-and-swap has that part, and what the call is does not change before the
 * part is counted as done; so nothing is locked, and a worker that comes late finds nothing, or the next call.
 * Workers spin for a while when there is nothing to do, then sleep, each at a semaphore of its own. */
#define _POSIX_C_SOURCE 200809L
#include "nnc.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#define LEAST_SPINS 16000 /* before a worker sleeps: some 200 microseconds, more than between two kernels */
#define CACHE_LINE  64
#define PART_BITS   24 /* of a word: threads, first, end */
#define MOST_PARTS  ((1 << PART_BITS) - 1)

typedef struct Worker {
    uint64_t range; /* alone in its line, as whoever takes a part writes to it */
    char range_line[CACHE_LINE - sizeof(uint64_t)];
    struct nnc_pool *pool;
    pthread_t thread;
    sem_t wake;
    int32_t number; /* 0: the caller, who has a range only */
    int asleep;     /* somebody who sets it back to 0 must wake it */
    char line[CACHE_LINE];
} Worker;

struct nnc_pool {
    nnc_team team; /* first: the team is the pool */
    int32_t threads;
    int busy; /* with a call: others do their work alone */
    int ends;
    void (*part)(const void *call, int32_t part, int32_t thread);
    const void *call;
    char line[CACHE_LINE];
    uint32_t calls; /* so far: workers that spin look at nothing else */
    char next_line[CACHE_LINE];
    uint32_t undone; /* parts that are not done yet */
    char last_line[CACHE_LINE];
    Worker worker[];
};

static void rest(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static uint64_t make_range(int32_t threads, int64_t first, int64_t end)
{
    return (uint64_t)threads << 2 * PART_BITS | (uint64_t)first << PART_BITS | (uint64_t)end;
}

/* A part of the worker's range for a thread: of its own the first, of another's the last; -1 when there is none. */
static int32_t take_from(Worker *worker, int32_t thread)
{
    uint64_t word = __atomic_load_n(&worker->range, __ATOMIC_ACQUIRE);
    for (;;) {
        int32_t threads = (int32_t)(word >> 2 * PART_BITS), first = (int32_t)(word >> PART_BITS & MOST_PARTS),
                end = (int32_t)(word & MOST_PARTS);
        int own = worker->number == thread;
        if (thread >= threads || first == end)
            return -1;
        uint64_t left = own ? make_range(threads, first + 1, end) : make_range(threads, first, end - 1);
        if (__atomic_compare_exchange_n(&worker->range, &word, left, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return own ? first : end - 1;
    }
}

/* A part of the call that is at work now; -1 when there is none. */
static int32_t take(nnc_pool *pool, int32_t thread)
{
    int32_t part = -1;
    for (int32_t i = 0; part < 0 && i < pool->threads; i++)
        part = take_from(&pool->worker[(thread + i) % pool->threads], thread);
    return part;
}

/* Takes parts until none is left. */
static void work(nnc_pool *pool, int32_t thread)
{
    for (int32_t part; (part = take(pool, thread)) >= 0;) {
        pool->part(pool->call, part, thread);
        __atomic_sub_fetch(&pool->undone, 1, __ATOMIC_RELEASE);
    }
}

/* Has there been a call since the worker has looked for work? */
static int is_wanted(const Worker *worker, uint32_t calls)
{
    return __atomic_load_n(&worker->pool->calls, __ATOMIC_SEQ_CST) != calls ||
           __atomic_load_n(&worker->pool->ends, __ATOMIC_SEQ_CST);
}

/* Until there is work.  Whoever brings some after `asleep` is set sees it; what came before is seen here. */
static void sleep_now(Worker *worker, uint32_t calls)
{
    __atomic_store_n(&worker->asleep, 1, __ATOMIC_SEQ_CST);
    if (is_wanted(worker, calls) && __atomic_exchange_n(&worker->asleep, 0, __ATOMIC_SEQ_CST))
        return;
    while (sem_wait(&worker->wake)) /* a signal came */
        ;
}

static void *live(void *data)
{
    Worker *worker = data;
    nnc_pool *pool = worker->pool;
    uint32_t calls = 0;
    while (!__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE)) {
        int spins = 0;
        for (; spins < LEAST_SPINS && !is_wanted(worker, calls); spins++)
            rest();
        if (!is_wanted(worker, calls))
            sleep_now(worker, calls);
        calls = __atomic_load_n(&pool->calls, __ATOMIC_SEQ_CST);
        work(pool, worker->number);
    }
    return NULL;
}

static void wake(nnc_pool *pool, int32_t workers)
{
    for (int32_t i = 1; i <= workers; i++)
        if (__atomic_load_n(&pool->worker[i].asleep, __ATOMIC_SEQ_CST) &&
            __atomic_exchange_n(&pool->worker[i].asleep, 0, __ATOMIC_SEQ_CST))
            sem_post(&pool->worker[i].wake);
}

static void deal_alone(void (*part)(const void *, int32_t, int32_t), const void *call, int32_t parts)
{
    for (int32_t i = 0; i < parts; i++)
        part(call, i, 0);
}

static void deal(nnc_team *team, void (*part)(const void *, int32_t, int32_t), const void *call, int32_t parts,
                 int32_t threads)
{
    nnc_pool *pool = (nnc_pool *)(void *)team;
    int32_t most = threads < pool->threads ? threads : pool->threads;

    if (parts < 2 || parts > MOST_PARTS || most < 2 || __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
        deal_alone(part, call, parts);
        return;
    }
    pool->part = part;
    pool->call = call;
    __atomic_store_n(&pool->undone, (uint32_t)parts, __ATOMIC_RELAXED);
    for (int32_t i = 0; i < most; i++) {
        int64_t first = (int64_t)parts * i / most, end = (int64_t)parts * (i + 1) / most;
        __atomic_store_n(&pool->worker[i].range, make_range(most, first, end), __ATOMIC_RELEASE);
    }
    __atomic_add_fetch(&pool->calls, 1, __ATOMIC_SEQ_CST);
    wake(pool, most - 1);
    work(pool, 0);
    for (int spins = 0; __atomic_load_n(&pool->undone, __ATOMIC_ACQUIRE); spins++) {
        rest();
        if (spins > LEAST_SPINS) /* a worker has lost its processor to somebody else */
            sched_yield();
    }
    __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

/* The worker's thread runs; 0 when there is none to have. */
static int start(Worker *worker)
{
    if (sem_init(&worker->wake, 0, 0))
        return 0;
    if (pthread_create(&worker->thread, NULL, live, worker) == 0)
        return 1;
    sem_destroy(&worker->wake);
    return 0;
}

nnc_pool *nnc_pool_new(uint32_t threads)
{
    nnc_pool *pool;
    if (threads < 1 || threads > NNC_MOST_THREADS)
        return NULL;
    pool = calloc(1, sizeof *pool + threads * sizeof *pool->worker);
    if (!pool)
        return NULL;
    pool->team.deal = deal;
    pool->threads = 1;
    for (uint32_t i = 0; i < threads; i++) {
        pool->worker[i].pool = pool;
        pool->worker[i].number = (int32_t)i;
    }
    for (; pool->threads < (int32_t)threads; pool->threads++)
        if (!start(&pool->worker[pool->threads])) {
            nnc_pool_free(pool);
            return NULL;
        }
    return pool;
}

nnc_team *nnc_pool_team(nnc_pool *pool)
{
    return pool ? &pool->team : NULL;
}

void nnc_pool_free(nnc_pool *pool)
{
    if (!pool)
        return;
    __atomic_store_n(&pool->ends, 1, __ATOMIC_SEQ_CST);
    wake(pool, pool->threads - 1);
    for (int32_t i = 1; i < pool->threads; i++) {
        pthread_join(pool->worker[i].thread, NULL);
        sem_destroy(&pool->worker[i].wake);
    }
    free(pool);
}
