/* A model compiled for one thread, and for several: the same bits, whoever takes which part.
 *
 *     threads ROUNDS
 *
 * It is linked with the models `plain` and `shared`.  Each starts from the same params and states and runs ROUNDS times
 * on inputs drawn here; `shared` without a team, and with pools of fewer threads than it can use, as many, and more.
 * Exit status: 0; 1 when any output, param or state differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nnc.h"

extern const nnc_model plain_model, shared_model;

#define MOST 64

typedef struct Memory {
    void *arena, *params, *state, *packed, *output[MOST];
} Memory;

static void *block(size_t bytes, int fill)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes + 1))
        exit(2);
    return memset(memory, fill, bytes + 1);
}

/* Small numbers, of floats between -1 and 1; indices stay small. */
static void draw(void *array, const nnc_tensor_info *info, uint32_t seed)
{
    nnc_dtype dtype = nnc_dtype_of(info->dtype);
    for (size_t i = 0, bytes = dtype.bits / 8; i < info->bytes / bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        double number = (double)(seed >> 8) / (1 << 23) - 1;
        if (dtype.code == 2 && dtype.bits == 32)
            ((float *)array)[i] = (float)number;
        else if (dtype.code == 2 && dtype.bits == 64)
            ((double *)array)[i] = number;
        else
            memset((char *)array + i * bytes, 0, bytes), ((unsigned char *)array)[i * bytes] = seed >> 30 & 1;
    }
}

static Memory start(const nnc_model *model, const nnc_entry *entry)
{
    Memory m = {.arena = block(model->arena_bytes, 0x5A),
                .params = block(model->params.bytes, 0),
                .state = block(model->state.bytes, 0),
                .packed = block(model->packed_bytes, 0)};
    if ((model->params_init && model->params_init(m.params, 1, NULL)) ||
        (model->state_init && model->state_init(m.state, NULL)))
        exit(2);
    for (uint32_t i = 0; i < entry->output_count; i++)
        m.output[i] = block(entry->output[i].bytes, 0x5A);
    return m;
}

static void finish(Memory *m, const nnc_entry *entry)
{
    free(m->arena), free(m->params), free(m->state), free(m->packed);
    for (uint32_t i = 0; i < entry->output_count; i++)
        free(m->output[i]);
}

static Memory run(const nnc_model *model, uint32_t e, const void *const *input, int rounds, nnc_team *team)
{
    const nnc_entry *entry = &model->entry[e];
    Memory m = start(model, entry);
    for (int i = 0; i < rounds; i++)
        if (entry->run(input, m.output, m.arena, NULL, m.params, m.state, team)) {
            fprintf(stderr, "a run fails\n");
            exit(1);
        }
    return m;
}

static int same(const nnc_model *model, const nnc_entry *entry, const Memory *a, const Memory *b)
{
    int same = !memcmp(a->params, b->params, model->params.bytes) && !memcmp(a->state, b->state, model->state.bytes);
    for (uint32_t i = 0; i < entry->output_count; i++)
        same &= !memcmp(a->output[i], b->output[i], entry->output[i].bytes);
    return same;
}

static int check(uint32_t e, int rounds)
{
    static const uint32_t pools[] = {0, 2, 3, 5};
    const nnc_entry *entry = &plain_model.entry[e];
    void *input[MOST];
    int good = 1;
    for (uint32_t i = 0; i < entry->input_count; i++)
        draw(input[i] = block(entry->input[i].bytes, 0), &entry->input[i], i + 1);
    Memory expected = run(&plain_model, e, (const void *const *)input, rounds, NULL);
    for (size_t p = 0; p < sizeof pools / sizeof *pools; p++) {
        nnc_pool *pool = pools[p] ? nnc_pool_new(pools[p]) : NULL;
        Memory got = run(&shared_model, e, (const void *const *)input, rounds, nnc_pool_team(pool));
        if (!same(&plain_model, entry, &expected, &got)) {
            fprintf(stderr, "%s: other bits with %u threads\n", entry->name, pools[p]);
            good = 0;
        }
        finish(&got, entry);
        nnc_pool_free(pool);
    }
    finish(&expected, entry);
    for (uint32_t i = 0; i < entry->input_count; i++)
        free(input[i]);
    return good;
}

int main(int count, char **word)
{
    int good = shared_model.threads == 3 && plain_model.threads == 1;
    for (uint32_t e = 0; e < plain_model.entry_count; e++)
        good &= plain_model.entry[e].packed || check(e, count > 1 ? atoi(word[1]) : 1);
    return !good;
}
