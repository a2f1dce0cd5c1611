/* Runs the first entries of compiled models on arrays from a file:
 *
 *     host INPUTS OUTPUTS
 *
 * It is linked with the models and with a table of them, `models` and `model_count`.  INPUTS holds the arrays of all
 * models one after another as raw bytes, without gaps; so will OUTPUTS.  Every array, the arena too, is a heap block of
 * exactly its size, so that AddressSanitizer sees the first byte beside it.  Each model runs again with other bytes
 * in the arena and the outputs before, and where threads share it with a team that takes parts from the last to the
 * first, and with a pool: what it writes must not depend on that.  One with states or params is called three
 * times from its first ones on, and its last outputs count.  On stderr stands the number of each model before it runs,
 * for a caller that must know which one crashed.  Exit status: 0; 1 after a wrong run; 2 without files.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nnc.h"

extern const nnc_model *const models[];
extern const unsigned model_count;

#define MOST_ARRAYS 4096

static void *block(size_t bytes)
{
    void *memory = NULL;
    if (!bytes)
        return NULL;
    if (posix_memalign(&memory, 64, bytes)) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(2);
    }
    return memory;
}

/* As if threads took parts in turns. */
static void deal_backwards(nnc_team *team, void (*part)(const void *, int32_t, int32_t), const void *call,
                           int32_t parts, int32_t threads)
{
    (void)team;
    for (int32_t i = parts; i-- > 0;)
        part(call, i, i % threads);
}

static nnc_team backwards = {deal_backwards};

static int run(const nnc_model *model, const void *const *input, void *const *output, void *arena, void *params,
               void *state, int fill, nnc_team *team)
{
    int status = params ? model->params_init(params, 0, NULL) : 0, kept = params || state;
    status = state && !status ? model->state_init(state, NULL) : status;
    if (arena)
        memset(arena, fill, model->arena_bytes);
    for (unsigned i = 0; i < model->entry->output_count; i++)
        if (output[i])
            memset(output[i], fill, model->entry->output[i].bytes);
    for (int call = 0; call < (kept ? 3 : 1) && !status; call++)
        status = model->entry->run(input, output, arena, NULL, params, state, team);
    return status;
}

/* The second run's outputs against the first's. */
static int same(const nnc_model *model, void *const *output, void *const *again)
{
    for (unsigned i = 0; i < model->entry->output_count; i++)
        if (output[i] && memcmp(output[i], again[i], model->entry->output[i].bytes) != 0) {
            fprintf(stderr, "%s: output %s depends on what the arena held before, or on who took which part\n",
                    model->name, model->entry->output[i].name);
            return 0;
        }
    return 1;
}

static int run_model(const nnc_model *model, FILE *inputs, FILE *outputs)
{
    static void *input[MOST_ARRAYS], *output[MOST_ARRAYS], *again[MOST_ARRAYS];
    void *arena = block(model->arena_bytes), *params = block(model->params.bytes), *state = block(model->state.bytes);
    int good = model->entry->input_count <= MOST_ARRAYS && model->entry->output_count <= MOST_ARRAYS;

    for (unsigned i = 0; good && i < model->entry->input_count; i++) {
        input[i] = block(model->entry->input[i].bytes);
        good = !input[i] || fread(input[i], model->entry->input[i].bytes, 1, inputs) == 1;
    }
    for (unsigned i = 0; good && i < model->entry->output_count; i++) {
        output[i] = block(model->entry->output[i].bytes);
        again[i] = block(model->entry->output[i].bytes);
    }
    good = good &&
           run(model, (const void *const *)input, again, arena, params, state, 0xFF, NULL) == 0; /* NaN to floats */
    for (int how = 0; good && how < (model->threads > 1 ? 2 : 1); how++) {
        nnc_pool *pool = how ? nnc_pool_new(model->threads) : NULL;
        nnc_team *team = how ? nnc_pool_team(pool) : &backwards;
        good = team && run(model, (const void *const *)input, output, arena, params, state, 0x5A, team) == 0 &&
               same(model, output, again);
        nnc_pool_free(pool);
    }
    for (unsigned i = 0; good && i < model->entry->output_count; i++)
        good = !output[i] || fwrite(output[i], model->entry->output[i].bytes, 1, outputs) == 1;

    for (unsigned i = 0; i < model->entry->input_count; i++)
        free(input[i]);
    for (unsigned i = 0; i < model->entry->output_count; i++) {
        free(output[i]);
        free(again[i]);
    }
    free(arena);
    free(params);
    free(state);
    return good;
}

int main(int count, char **word)
{
    FILE *inputs = count > 2 ? fopen(word[1], "rb") : NULL, *outputs = count > 2 ? fopen(word[2], "wb") : NULL;
    int good = 1;
    if (!inputs || !outputs)
        return 2;
    for (unsigned m = 0; m < model_count; m++) {
        fprintf(stderr, "%u\n", m);
        if (!run_model(models[m], inputs, outputs)) {
            fprintf(stderr, "%s: wrong\n", models[m]->name);
            good = 0;
            break;
        }
    }
    fclose(inputs);
    return fclose(outputs) == 0 && good ? 0 : 1;
}
