/* A model for one target, and the same for several, of which NNC_CPU names that one: the same bits.
 *
 *     versions TARGET STATUS ROUNDS [ALONE.weights MANY.weights]
 *
 * It is linked with the models `alone` and `many`.  Two threads ask at once which target runs here: it must be TARGET,
 * or `none`.  Entries run in turns ROUNDS times from the same params and states; outputs, params and states must be the
 * same.  Where STATUS is not 0, every entry of `many` must return it instead.  Exit status: 0; 1 when something is
 * otherwise; 2 when there is no memory or no file. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nnc.h"

extern const nnc_model alone_model, many_model;
extern const char *many_cpu(void);

#define MOST 64

typedef struct Running {
    const nnc_model *model;
    nnc_weights weights;
    void *arena, *params, *packed, *state, *output[MOST];
} Running;

static void *block(size_t bytes, int fill)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes + 1))
        exit(2);
    return memset(memory, fill, bytes + 1);
}

static void draw(void *array, const nnc_tensor_info *info, uint32_t seed)
{
    int wide = !strcmp(info->dtype, "f32");
    for (size_t i = 0, count = wide ? info->bytes / 4 : info->bytes; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        if (wide)
            ((float *)array)[i] = (float)(seed >> 8) / (1 << 23) - 1;
        else if (!strcmp(info->dtype, "u8") || !strcmp(info->dtype, "bool"))
            ((unsigned char *)array)[i] = seed >> 30 & 1; /* of other types all elements are 0 */
    }
}

static Running start(const nnc_model *model, const char *path)
{
    Running r = {.model = model, .arena = block(model->arena_bytes, 0x5A)};
    if (nnc_weights_open(&r.weights, model, path) != NNC_OK)
        exit(2);
    r.params = nnc_params_new(model, 1, &r.weights);
    r.state = nnc_state_new(model, &r.weights);
    r.packed = block(model->packed_bytes, 0x5A);
    for (uint32_t i = 0; i < MOST; i++)
        r.output[i] = NULL;
    return r;
}

static int run(Running *r, uint32_t e, const void *const *input)
{
    const nnc_entry *entry = &r->model->entry[e];
    for (uint32_t i = 0; i < entry->output_count; i++) {
        free(r->output[i]);
        r->output[i] = block(entry->output[i].bytes, 0x5A);
    }
    if (entry->packed && r->model->pack(r->params, r->packed))
        return -1;
    return entry->run(input, r->output, r->arena, r->weights.data, entry->packed ? r->packed : r->params, r->state,
                      NULL);
}

static int same_block(const nnc_block *a, void *x, const nnc_block *b, void *y)
{
    int same = a->count == b->count;
    for (uint32_t i = 0; i < a->count && same; i++)
        same = !strcmp(a->slot[i].tensor.name, b->slot[i].tensor.name) &&
               !memcmp(nnc_slot_data(&a->slot[i], x), nnc_slot_data(&b->slot[i], y), a->slot[i].tensor.bytes);
    return same;
}

static int same(const Running *a, const Running *b, const nnc_entry *entry)
{
    int same = same_block(&a->model->params, a->params, &b->model->params, b->params) &&
               same_block(&a->model->state, a->state, &b->model->state, b->state);
    for (uint32_t i = 0; i < entry->output_count; i++)
        same &= !memcmp(a->output[i], b->output[i], entry->output[i].bytes);
    return same;
}

static int check(Running *alone, Running *many, uint32_t e, int status)
{
    const nnc_entry *entry = &alone->model->entry[e];
    void *input[MOST];
    for (uint32_t i = 0; i < entry->input_count; i++)
        draw(input[i] = block(entry->input[i].bytes, 0), &entry->input[i], i + 1);
    int got = run(many, e, (const void *const *)input);
    int good = got == status && (status || (!run(alone, e, (const void *const *)input) && same(alone, many, entry)));
    if (!good)
        fprintf(stderr, "%s: other bits, or status %d\n", entry->name, got);
    for (uint32_t i = 0; i < entry->input_count; i++)
        free(input[i]);
    return good;
}

static void *ask(void *name)
{
    const char *chosen = many_cpu();
    *(const char **)name = chosen ? chosen : "none";
    return NULL;
}

int main(int count, char **word)
{
    pthread_t thread[2];
    const char *name[2] = {"", ""};
    if (count < 4)
        return 2;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, ask, &name[i]))
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    if (strcmp(name[0], word[1]) || strcmp(name[1], word[1])) {
        fprintf(stderr, "%s and %s run, not %s\n", name[0], name[1], word[1]);
        return 1;
    }
    int status = atoi(word[2]), good = alone_model.entry_count == many_model.entry_count;
    Running many = {.model = &many_model}, alone = start(&alone_model, count > 4 ? word[4] : NULL);
    many = status ? alone : start(&many_model, count > 5 ? word[5] : NULL); /* what is not there cannot begin */
    many.model = &many_model;
    for (int round = 0; round < atoi(word[3]) && good; round++)
        for (uint32_t e = 0; e < alone_model.entry_count; e++)
            good &= check(&alone, &many, e, status);
    return !good;
}
