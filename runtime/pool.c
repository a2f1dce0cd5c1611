/* A pool of threads that share the work of runs.
 *
 * The work of a call stands in one 64-bit word: how many of its parts nobody has taken yet, and how many threads may
 * take some.  Who takes one off the word by compare-and-swap has that part, and what the call is does not change before
 * the part is counted as done; so nothing is locked, and a worker that comes late finds nothing, or the next call.
 * Workers spin for a while when there is nothing to do, then sleep, each at a semaphore of its own. */
#define _POSIX_C_SOURCE 200809L
#include "nnc.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#define LEAST_SPINS 16000 /* before a worker sleeps: some 200 microseconds, more than between two kernels */
#define CACHE_LINE  64

typedef struct Worker {
    struct nnc_pool *pool;
    pthread_t thread;
    sem_t wake;
    int32_t number; /* 1 ... */
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
    uint64_t word; /* threads that may take parts << 32, and the parts that are left */
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

/* Are there parts that the thread may take? */
static int offers(uint64_t word, int32_t thread)
{
    return (uint32_t)word && thread < (int32_t)(word >> 32);
}

/* A part of the call that is at work now, 1 for the first; 0 when there is none. */
static uint32_t take(nnc_pool *pool, int32_t thread)
{
    uint64_t word = __atomic_load_n(&pool->word, __ATOMIC_ACQUIRE);
    while (offers(word, thread))
        if (__atomic_compare_exchange_n(&pool->word, &word, word - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return (uint32_t)word;
    return 0;
}

/* Takes parts until none is left. */
static void work(nnc_pool *pool, int32_t thread)
{
    for (uint32_t left; (left = take(pool, thread));) {
        pool->part(pool->call, (int32_t)left - 1, thread);
        __atomic_sub_fetch(&pool->undone, 1, __ATOMIC_RELEASE);
    }
}

static int is_wanted(const Worker *worker)
{
    return offers(__atomic_load_n(&worker->pool->word, __ATOMIC_SEQ_CST), worker->number) ||
           __atomic_load_n(&worker->pool->ends, __ATOMIC_SEQ_CST);
}

/* Until there is work.  Whoever brings some after `asleep` is set sees it; what came before is seen here. */
static void sleep_now(Worker *worker)
{
    __atomic_store_n(&worker->asleep, 1, __ATOMIC_SEQ_CST);
    if (is_wanted(worker) && __atomic_exchange_n(&worker->asleep, 0, __ATOMIC_SEQ_CST))
        return;
    while (sem_wait(&worker->wake)) /* a signal came */
        ;
}

static void *live(void *data)
{
    Worker *worker = data;
    nnc_pool *pool = worker->pool;
    while (!__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE)) {
        int spins = 0;
        for (; spins < LEAST_SPINS && !is_wanted(worker); spins++)
            rest();
        if (!is_wanted(worker))
            sleep_now(worker);
        work(pool, worker->number);
    }
    return NULL;
}

static void wake(nnc_pool *pool, int32_t workers)
{
    for (int32_t i = 0; i < workers; i++)
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

    if (parts < 2 || most < 2 || __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
        deal_alone(part, call, parts);
        return;
    }
    pool->part = part;
    pool->call = call;
    __atomic_store_n(&pool->undone, (uint32_t)parts, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->word, (uint64_t)most << 32 | (uint32_t)parts, __ATOMIC_SEQ_CST);
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
static int start(Worker *worker, nnc_pool *pool, int32_t number)
{
    worker->pool = pool;
    worker->number = number;
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
    pool = calloc(1, sizeof *pool + (threads - 1) * sizeof *pool->worker);
    if (!pool)
        return NULL;
    pool->team.deal = deal;
    for (pool->threads = 1; pool->threads < (int32_t)threads; pool->threads++)
        if (!start(&pool->worker[pool->threads - 1], pool, pool->threads)) {
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
    for (int32_t i = 0; i < pool->threads - 1; i++) {
        pthread_join(pool->worker[i].thread, NULL);
        sem_destroy(&pool->worker[i].wake);
    }
    free(pool);
}
