/* The runtime against a model written by hand: every status has its cause. */
#include "nnc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "unit.h"

static int twice(const void *const *input, void *const *output, void *arena, const void *weights, void *params,
                 void *state, nnc_team *team)
{
    const float *x = input[0], *w = weights;
    float *y = output[0];
    if (team)
        team->deal(team, NULL, NULL, 0, 1); /* a team has arrived: of no parts, none is called */
    (void)arena;
    if (state)
        ++*(int *)state;
    if (params)
        ((float *)params)[1]++;
    for (int i = 0; i < 6; i++)
        y[i] = 2 * x[i] + (w ? w[0] : 0);
    return x[0] < 0; /* fails on purpose */
}

static const int64_t shape[2] = {2, 3};
static const nnc_tensor_info info = {"x", "f32", 2, shape, 24};
static int start_counting(void *state, const void *weights)
{
    *(int *)state = 40;
    return weights != NULL;
}

static const nnc_entry entry[2] = {{"run", 1, 1, &info, &info, 0, 0, 0, twice},
                                   {"again", 1, 1, &info, &info, 0, 0, 0, twice}};
static const nnc_model model = {NNC_MODEL_ABI, "twice",      2, entry, 128,  64,   0, 0,
                                {0, 0, NULL},  {0, 0, NULL}, 0, NULL,  NULL, NULL, 1};
static const nnc_model counting = {
    NNC_MODEL_ABI,          "counting", 2,    entry,          128,  64, 0, 0, {0, 0, NULL},
    {sizeof(int), 0, NULL}, 0,          NULL, start_counting, NULL, 1};

static nnc_status call(nnc_tensor *x, nnc_tensor *y)
{
    void *arena = nnc_arena_new(&model);
    nnc_status status = nnc_call(&model, 0, x, 1, y, 1, arena, NULL, NULL, NULL, NULL);
    nnc_arena_free(arena);
    return status;
}

UNIT(a_call_runs)
{
    float in[6] = {0, 1, 2, 3, 4, 5}, out[6] = {0};
    nnc_tensor x = nnc_tensor_of(&info, in), y = nnc_tensor_of(&info, out);
    EXPECT_INT(call(&x, &y), NNC_OK);
    EXPECT(out[5] == 10);
    int64_t strides[2] = {3, 1};
    x.strides = strides;
    y.byte_offset = 0;
    EXPECT_INT(call(&x, &y), NNC_OK);
}

UNIT(a_call_checks)
{
    float in[7] = {0}, out[6];
    nnc_tensor x = nnc_tensor_of(&info, in), y = nnc_tensor_of(&info, out), bad = x;
    int64_t other[2] = {3, 2}, strides[2] = {1, 2};

    bad.dtype.bits = 64;
    EXPECT_INT(call(&bad, &y), NNC_E_DTYPE);
    bad = x, bad.shape = other;
    EXPECT_INT(call(&bad, &y), NNC_E_SHAPE);
    bad = x, bad.ndim = 1;
    EXPECT_INT(call(&bad, &y), NNC_E_SHAPE);
    bad = x, bad.strides = strides;
    EXPECT_INT(call(&bad, &y), NNC_E_STRIDES);
    bad = x, bad.device.type = 2;
    EXPECT_INT(call(&bad, &y), NNC_E_DEVICE);
    EXPECT_INT(nnc_call(&model, 0, &x, 1, &y, 1, NULL, NULL, NULL, NULL, NULL), NNC_E_ARENA);
    EXPECT_INT(nnc_call(&model, 0, &x, 1, &y, 1, (char *)64 + 4, NULL, NULL, NULL, NULL), NNC_E_ARENA);
    EXPECT_INT(nnc_call(&model, 0, &x, 0, &y, 1, (char *)64, NULL, NULL, NULL, NULL), NNC_E_COUNT);
    nnc_model old = model;
    old.abi = 0;
    EXPECT_INT(nnc_call(&old, 0, &x, 1, &y, 1, (char *)64, NULL, NULL, NULL, NULL), NNC_E_ABI);
    in[0] = -1;
    EXPECT_INT(call(&x, &y), NNC_E_RUN);
    for (int s = NNC_OK; s <= NNC_E_PARAMS; s++)
        EXPECT(nnc_status_text((nnc_status)s)[0]);
}

UNIT(states_are_kept)
{
    float in[6] = {1}, out[6];
    nnc_tensor x = nnc_tensor_of(&info, in), y = nnc_tensor_of(&info, out);
    void *arena = nnc_arena_new(&counting), *state = nnc_state_new(&counting, NULL);
    EXPECT_INT(nnc_entry_find(&counting, "again"), 1);
    EXPECT_INT(nnc_entry_find(&counting, "never"), -1);
    EXPECT_INT(nnc_call(&counting, 0, &x, 1, &y, 1, arena, NULL, state, NULL, NULL), NNC_OK);
    EXPECT_INT(nnc_call(&counting, 1, &x, 1, &y, 1, arena, NULL, state, NULL, NULL), NNC_OK);
    EXPECT_INT(*(int *)state, 42);
    EXPECT_INT(nnc_call(&counting, 2, &x, 1, &y, 1, arena, NULL, state, NULL, NULL), NNC_E_ENTRY);
    EXPECT_INT(nnc_call(&counting, 0, &x, 1, &y, 1, arena, NULL, NULL, NULL, NULL), NNC_E_STATE);
    EXPECT_INT(nnc_call(&counting, 0, &x, 1, &y, 1, arena, NULL, (char *)state + 4, NULL, NULL), NNC_E_STATE);
    nnc_state_free(state);
    nnc_arena_free(arena);
    EXPECT(!nnc_state_new(&counting, &(nnc_weights){in, 4})); /* its own function refuses */
}

/* Two floats of params; of the state one that lies in two places, by turns. */
static int start_training(void *params, int64_t seed, const void *weights)
{
    float *w = params;
    (void)weights;
    w[0] = 3, w[1] = (float)seed;
    return 0;
}

static int start_turning(void *state, const void *weights)
{
    (void)weights;
    memset(state, 0, 16);
    ((float *)state)[1] = 5, ((float *)state)[2] = 6;
    return 0;
}

static const nnc_slot param_slot[2] = {{{"a", "f32", 0, shape, 4}, {0, 0}, -1},
                                       {{"b", "f32", 0, shape, 4}, {4, 4}, -1}};
static const nnc_slot state_slot[1] = {{{"m", "f32", 0, shape, 4}, {4, 8}, 0}};
static const nnc_model training = {
    NNC_MODEL_ABI,      "training",          2, entry,          128,           64,   0, 0,
    {8, 2, param_slot}, {16, 1, state_slot}, 0, start_training, start_turning, NULL, 1};

static int pack_sum(const void *params, void *packed)
{
    const float *p = params;
    if (!p)
        return 4;
    *(float *)packed = p[0] + p[1];
    return 0;
}

UNIT(params_are_packed)
{
    nnc_entry reads = entry[0];
    nnc_model packs = training;
    float *params = nnc_params_new(&training, 7, NULL);
    reads.packed = 1;
    packs.entry = &reads, packs.entry_count = 1, packs.packed_bytes = sizeof(float), packs.pack = pack_sum;
    float *packed = nnc_packed_new(&packs, params);
    EXPECT(packed && *packed == 10);
    EXPECT(!nnc_packed_new(&packs, NULL));
    nnc_tensor x = nnc_tensor_of(&info, (float[6]){1}), y = nnc_tensor_of(&info, (float[6]){0});
    void *state = nnc_state_new(&packs, NULL), *arena = nnc_arena_new(&packs);
    EXPECT_INT(nnc_call(&packs, 0, &x, 1, &y, 1, arena, packed, state, NULL, NULL), NNC_OK);
    EXPECT_INT(nnc_call(&packs, 0, &x, 1, &y, 1, arena, NULL, state, NULL, NULL), NNC_E_PARAMS);
    nnc_arena_free(arena);
    nnc_state_free(state);
    nnc_packed_free(packed);
    nnc_params_free(params);
}

UNIT(params_are_found)
{
    void *params = nnc_params_new(&training, 7, NULL), *state = nnc_state_new(&training, NULL);
    EXPECT(*(float *)nnc_slot_data(nnc_slot_find(&training.params, "a"), params) == 3);
    EXPECT(*(float *)nnc_slot_data(nnc_slot_find(&training.params, "b"), params) == 7);
    EXPECT(!nnc_slot_find(&training.params, "m"));
    EXPECT(*(float *)nnc_slot_data(nnc_slot_find(&training.state, "m"), state) == 5);
    *(char *)state = 1;
    EXPECT(*(float *)nnc_slot_data(nnc_slot_find(&training.state, "m"), state) == 6);
    nnc_params_free(params);
    nnc_state_free(state);
}

UNIT(params_are_handed_over)
{
    float in[6] = {1}, out[6];
    nnc_tensor x = nnc_tensor_of(&info, in), y = nnc_tensor_of(&info, out);
    void *arena = nnc_arena_new(&training), *params = nnc_params_new(&training, 7, NULL),
         *state = nnc_state_new(&training, NULL);
    EXPECT_INT(nnc_call(&training, 0, &x, 1, &y, 1, arena, params, state, NULL, NULL), NNC_OK);
    EXPECT(((float *)params)[1] == 8);
    EXPECT_INT(nnc_call(&training, 0, &x, 1, &y, 1, arena, NULL, state, NULL, NULL), NNC_E_PARAMS);
    EXPECT_INT(nnc_call(&training, 0, &x, 1, &y, 1, arena, (char *)params + 4, state, NULL, NULL), NNC_E_PARAMS);
    nnc_params_free(params);
    nnc_state_free(state);
    nnc_arena_free(arena);
}

UNIT(weights_are_verified)
{
    static const float data[2] = {7, 8};
    char path[] = "/tmp/nnc-weights-XXXXXX";
    int fd = mkstemp(path);
    nnc_model stored = model;
    nnc_weights weights;

    EXPECT(fd >= 0 && write(fd, data, sizeof data) == (ssize_t)sizeof data);
    close(fd);
    EXPECT_INT(nnc_weights_open(&weights, &model, NULL), NNC_OK); /* nothing to open */
    stored.weights_bytes = sizeof data;
    stored.weights_checksum = XXH3_64bits(data, sizeof data);
    EXPECT_INT(nnc_weights_open(&weights, &stored, path), NNC_OK);
    EXPECT(weights.bytes == sizeof data && ((const float *)weights.data)[1] == 8);
    nnc_weights_close(&weights);
    stored.weights_checksum ^= 1;
    EXPECT_INT(nnc_weights_open(&weights, &stored, path), NNC_E_CHECKSUM);
    stored.weights_bytes = 4;
    EXPECT_INT(nnc_weights_open(&weights, &stored, path), NNC_E_SIZE);
    EXPECT(!weights.data);
    EXPECT(truncate(path, 0) == 0);
    EXPECT_INT(nnc_weights_open(&weights, &stored, path), NNC_E_SIZE);
    EXPECT_INT(nnc_weights_open(&weights, &stored, "/nowhere/at/all"), NNC_E_OPEN);
    EXPECT_INT(nnc_weights_open(&weights, &stored, NULL), NNC_E_OPEN);
    unlink(path);
}

/* A pool */

typedef struct Counts {
    int32_t parts, threads;
    int done[1000];
    int at_once[8]; /* per thread: is it in a part? */
    int wrong;
} Counts;

static void count_part(const void *call, int32_t part, int32_t thread)
{
    Counts *counts = *(Counts *const *)call;
    if (part < 0 || part >= counts->parts || thread < 0 || thread >= counts->threads ||
        __atomic_exchange_n(&counts->at_once[thread], 1, __ATOMIC_ACQ_REL))
        __atomic_store_n(&counts->wrong, 1, __ATOMIC_RELAXED);
    counts->done[part]++; /* nobody else has this part */
    __atomic_store_n(&counts->at_once[thread], 0, __ATOMIC_RELEASE);
}

/* Is every part done once, by a thread that has no other at that time? */
static int deals_well(nnc_team *team, int32_t parts, int32_t threads)
{
    Counts counts = {.parts = parts, .threads = threads}, *call = &counts;
    team->deal(team, count_part, &call, parts, threads);
    int good = !counts.wrong;
    for (int32_t i = 0; i < parts; i++)
        good &= counts.done[i] == 1;
    return good;
}

UNIT(a_pool_does_every_part_once)
{
    for (uint32_t threads = 1; threads <= 8; threads *= 2) {
        nnc_pool *pool = nnc_pool_new(threads);
        nnc_team *team = nnc_pool_team(pool);
        EXPECT(pool && team);
        for (int call = 0; call < 300; call++)
            EXPECT(deals_well(team, call % 40, 1 + call % 8)); /* also fewer threads than the pool has, and more */
        EXPECT(deals_well(team, 1000, 8));
        nnc_pool_free(pool);
    }
}

UNIT(a_pool_sleeps_and_wakes)
{
    nnc_pool *pool = nnc_pool_new(3);
    for (int call = 0; call < 20; call++) {
        nanosleep(&(struct timespec){0, 2000000}, NULL); /* longer than workers spin */
        EXPECT(deals_well(nnc_pool_team(pool), 12, 3));
    }
    nnc_pool_free(pool);
}

static void *deal_often(void *pool)
{
    int good = 1;
    for (int call = 0; call < 2000; call++)
        good &= deals_well(nnc_pool_team(pool), 16, 8);
    return good ? pool : NULL;
}

UNIT(a_busy_pool_leaves_the_work_to_its_caller)
{
    nnc_pool *pool = nnc_pool_new(2);
    pthread_t other;
    void *good;
    EXPECT_INT(pthread_create(&other, NULL, deal_often, pool), 0);
    EXPECT(deal_often(pool));
    pthread_join(other, &good);
    EXPECT(good);
    nnc_pool_free(pool);
}

UNIT(pools_have_bounds)
{
    EXPECT(!nnc_pool_new(0) && !nnc_pool_new(NNC_MOST_THREADS + 1));
    EXPECT(!nnc_pool_team(NULL));
    nnc_pool_free(NULL);
}

int main(void)
{
    static const Test test[] = {RUN(a_call_runs),
                                RUN(a_call_checks),
                                RUN(states_are_kept),
                                RUN(params_are_found),
                                RUN(params_are_packed),
                                RUN(params_are_handed_over),
                                RUN(weights_are_verified),
                                RUN(a_pool_does_every_part_once),
                                RUN(a_pool_sleeps_and_wakes),
                                RUN(a_busy_pool_leaves_the_work_to_its_caller),
                                RUN(pools_have_bounds)};
    return UNIT_MAIN(test);
}
