#include "cli/train_progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "formats/weights.h"

#define PROGRESS "nnc.train" /* of the metadata: JSON */

Progress progress_new(Arena *arena, const Scores *train, const Scores *valid)
{
    return (Progress){.every = 1,
                      .train = scores_copy(arena, train),
                      .point = scores_copy(arena, train),
                      .valid = scores_copy(arena, valid),
                      .train_curve = ARENA_ARRAY(arena, Series, train->count + 1),
                      .valid_curve = ARENA_ARRAY(arena, Series, valid->count + 1)};
}

/* Writing */

static void add_whole(cJSON *object, const char *name, int64_t number) /* as text: JSON's numbers are doubles */
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    cJSON_AddStringToObject(object, name, text);
}

/* With all their digits, which cJSON does not print. */
static void add_numbers(cJSON *object, const char *name, const double *number, uint32_t count)
{
    Text list = {0};
    text_char(&list, '[');
    for (uint32_t i = 0; i < count; i++)
        if (isfinite(number[i]))
            text_printf(&list, "%s%.17g", i ? "," : "", number[i]);
        else
            text_printf(&list, "%snull", i ? "," : "");
    text_char(&list, ']');
    cJSON_AddRawToObject(object, name, list.ptr);
    text_free(&list);
}

/* Names, sums and curves of scores; `series` per score. */
static void add_scores(cJSON *root, const char *name, const Scores *scores, const Series *series)
{
    cJSON *list = cJSON_AddArrayToObject(root, name);
    for (uint32_t i = 0; i < scores->count; i++) {
        const Score *score = &scores->at[i];
        char text[1024];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(list, item);
        snprintf(text, sizeof text, STR_FMT, STR_ARG(score->name));
        cJSON_AddStringToObject(item, "name", text);
        add_numbers(item, "sum", (const double[]){score->sum, score->count}, 2);
        if (series)
            add_numbers(item, "curve", (const double *)series[i].point, series[i].count * 2);
    }
}

static Str print_progress(Arena *arena, const Progress *p)
{
    cJSON *root = cJSON_CreateObject();
    char graph[1024];

    snprintf(graph, sizeof graph, STR_FMT, STR_ARG(p->graph));
    cJSON_AddStringToObject(root, "graph", graph);
    add_whole(root, "seed", p->seed);
    cJSON_AddBoolToObject(root, "in_order", p->in_order);
    add_whole(root, "samples", p->count);
    add_whole(root, "digest", (int64_t)p->digest);
    add_whole(root, "judged", (int64_t)p->judged);
    add_whole(root, "since", p->since);
    add_whole(root, "batch", p->batch);
    add_whole(root, "epoch", p->epoch);
    add_whole(root, "step", p->step);
    add_whole(root, "every", p->every);
    add_whole(root, "best", p->best);
    add_numbers(root, "best_value", &p->best_value, 1);
    add_scores(root, "train", &p->train, p->train_curve);
    add_scores(root, "point", &p->point, NULL);
    add_scores(root, "valid", &p->valid, p->valid_curve);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    Str printed = str_copy(arena, str_from(text ? text : ""));
    cJSON_free(text);
    return printed;
}

static uint32_t list_slots(Arena *scratch, Module *module, const nnc_block *block, void *memory, NamedTensor *list)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const nnc_tensor_info *info = &block->slot[i].tensor;
        DType dtype = DT_F32;
        dtype_parse(str_from(info->dtype), &dtype);
        Tensor *tensor = ARENA_NEW(scratch, Tensor);
        *tensor = (Tensor){module_plain_type(module, dtype, (uint32_t)info->rank, info->shape),
                           nnc_slot_data(&block->slot[i], memory)};
        list[i] = (NamedTensor){str_from(info->name), tensor};
    }
    return block->count;
}

bool checkpoint_write(Cli *cli, Module *module, Str path, const Host *host, const Progress *progress)
{
    const nnc_model *model = host->model;
    Arena scratch = {0};
    NamedTensor *list = ARENA_ARRAY(&scratch, NamedTensor, model->params.count + model->state.count + 1);
    uint32_t count = list_slots(&scratch, module, &model->params, host->params, list);
    count += list_slots(&scratch, module, &model->state, host->state, list + count);
    const StoredText text = {STR(PROGRESS), print_progress(&scratch, progress)};
    bool good = safetensors_write(&cli->diag, path, list, count, &text, 1);
    arena_free(&scratch);
    return good;
}

/* Reading */

typedef struct Checkpoint {
    Cli *cli;
    Str path;
    FileMap map;
    Safetensors file;
    cJSON *root;
} Checkpoint;

static bool damaged(const Checkpoint *c)
{
    return diag_file_error(&c->cli->diag, c->path, "what it says of the training is damaged");
}

static bool open_checkpoint(Cli *cli, Str path, Checkpoint *c)
{
    *c = (Checkpoint){.cli = cli, .path = path};
    if (!file_map(&cli->diag, path, &c->map) ||
        !safetensors_parse(&cli->arena, &cli->diag, path, c->map.bytes, c->map.size, &c->file))
        return false;
    Str text = safetensors_text(&c->file, PROGRESS);
    if (!text.ptr)
        return diag_file_error(&cli->diag, path,
                               "not a checkpoint: no training has written it; --weights-from takes "
                               "stored weights");
    c->root = cJSON_ParseWithLength(text.ptr, text.len);
    return cJSON_IsObject(c->root) || damaged(c);
}

static void close_checkpoint(Checkpoint *c)
{
    cJSON_Delete(c->root);
    file_unmap(&c->map);
}

static bool take_whole(const Checkpoint *c, const char *name, int64_t least_value, int64_t *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(c->root, name);
    char *end;
    if (!cJSON_IsString(item))
        return damaged(c);
    long long got = strtoll(item->valuestring, &end, 10);
    *number = got;
    return (!*end && end > item->valuestring && got >= least_value) || damaged(c);
}

static double number_of(const cJSON *item)
{
    return cJSON_IsNumber(item) ? item->valuedouble : NAN; /* null: JSON has no such number */
}

static bool take_series(const Checkpoint *c, const cJSON *object, Series *series)
{
    const cJSON *curve = cJSON_GetObjectItemCaseSensitive(object, "curve");
    if (!cJSON_IsArray(curve) || cJSON_GetArraySize(curve) % 2)
        return damaged(c);
    for (const cJSON *at = curve->child; at; at = at->next->next) {
        CurvePoint point = {number_of(at), number_of(at->next)};
        ARENA_PUSH(&c->cli->arena, series->point, series->count, series->capacity, point);
    }
    return true;
}

static bool take_scores(const Checkpoint *c, const char *name, Scores *scores, Series *series)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->root, name), *item;
    uint32_t i = 0;
    if (!cJSON_IsArray(list))
        return damaged(c);
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *said = cJSON_GetObjectItemCaseSensitive(item, "name");
        const cJSON *sum = cJSON_GetObjectItemCaseSensitive(item, "sum");
        if (!cJSON_IsString(said) || !cJSON_IsArray(sum) || cJSON_GetArraySize(sum) != 2)
            return damaged(c);
        if (i >= scores->count || !str_is(scores->at[i].name, said->valuestring))
            continue;
        scores->at[i].sum = number_of(sum->child);
        scores->at[i].count = number_of(sum->child->next);
        if (series && !take_series(c, item, &series[i]))
            return false;
        i++;
    }
    return i == scores->count || diag_file_error(&c->cli->diag, c->path,
                                                 "it was made with other scores: with another graph, or other samples "
                                                 "to validate with");
}

/* Older checkpoints say only how many samples there are. */
static bool check_digest(const Checkpoint *c, const Progress *p)
{
    int64_t digest;
    if (!cJSON_HasObjectItem(c->root, "digest"))
        return true;
    if (!take_whole(c, "digest", INT64_MIN, &digest))
        return false;
    return (uint64_t)digest == p->digest ||
           diag_file_error(&c->cli->diag, c->path,
                           "it was made with other samples than those of " STR_FMT
                           "; --weights-from begins a training on these with its params",
                           STR_ARG(p->data));
}

/* Scores of other samples say nothing of these.  Older checkpoints do not say which they were. */
static bool take_judged(const Checkpoint *c, Progress *p)
{
    int64_t judged;
    if (!cJSON_HasObjectItem(c->root, "judged"))
        return true;
    if (!take_whole(c, "judged", INT64_MIN, &judged) || !take_whole(c, "since", 0, &p->since))
        return false;
    p->anew = (uint64_t)judged != p->judged;
    p->since = p->anew ? p->epoch : p->since;
    p->best = p->anew ? 0 : p->best;
    return true;
}

static bool take_progress(const Checkpoint *c, Progress *p)
{
    const cJSON *graph = cJSON_GetObjectItemCaseSensitive(c->root, "graph");
    const cJSON *best = cJSON_GetObjectItemCaseSensitive(c->root, "best_value");
    int64_t count, batch;

    if (!cJSON_IsString(graph) || !cJSON_IsArray(best) || cJSON_GetArraySize(best) != 1)
        return damaged(c);
    if (!str_is(p->graph, graph->valuestring))
        return diag_file_error(&c->cli->diag, c->path, "it was made by training %s, not " STR_FMT, graph->valuestring,
                               STR_ARG(p->graph));
    if (!take_whole(c, "samples", 1, &count) || !take_whole(c, "batch", 1, &batch))
        return false;
    if (count != p->count)
        return diag_file_error(&c->cli->diag, c->path, "it was made with %" PRId64 " samples, not %" PRId64, count,
                               p->count);
    if (batch != p->batch)
        return diag_file_error(&c->cli->diag, c->path,
                               "it was made in batches of %" PRId64 ", the model has %" PRId64 "; what --batch %" PRId64
                               " would set, a constant that its inputs have as first extent, is not free",
                               batch, p->batch, batch);
    if (!check_digest(c, p))
        return false;
    p->best_value = number_of(best->child);
    return take_whole(c, "epoch", 0, &p->epoch) && take_whole(c, "step", 0, &p->step) &&
           take_whole(c, "every", 1, &p->every) && take_whole(c, "best", 0, &p->best) && take_judged(c, p) &&
           take_scores(c, "train", &p->train, p->train_curve) && take_scores(c, "point", &p->point, NULL) &&
           take_scores(c, "valid", &p->valid, p->valid_curve) && (p->step <= count / batch || damaged(c));
}

static bool is_of(const StoredTensor *stored, const nnc_tensor_info *info)
{
    if (stored->dtype == DT_COUNT || strcmp(dtype_name(stored->dtype), info->dtype) != 0 ||
        stored->shape.rank != (uint32_t)info->rank)
        return false;
    for (int32_t d = 0; d < info->rank; d++)
        if (stored->shape.dim[d] != info->shape[d])
            return false;
    return true;
}

static bool take_block(const Checkpoint *c, const nnc_block *block, void *memory)
{
    for (uint32_t i = 0; i < block->count; i++) {
        const nnc_tensor_info *info = &block->slot[i].tensor;
        uint32_t at = map_get(&c->file.by_name, str_from(info->name));
        if (at == MAP_NONE)
            return diag_file_error(&c->cli->diag, c->path, "it is of another model: it has no %s", info->name);
        const StoredTensor *stored = &c->file.tensor[at];
        if (!is_of(stored, info))
            return diag_file_error(&c->cli->diag, c->path, "it is of another model: its %s is " STR_FMT, info->name,
                                   STR_ARG(weights_show_stored(&c->cli->arena, stored)));
        memcpy(nnc_slot_data(&block->slot[i], memory), c->file.bytes + stored->begin, info->bytes);
    }
    return true;
}

static bool take_blocks(const Checkpoint *c, const Host *host)
{
    const nnc_model *model = host->model;
    uint32_t count = model->params.count + model->state.count;
    if (!take_block(c, &model->params, host->params) || !take_block(c, &model->state, host->state))
        return false;
    return c->file.count == count ||
           diag_file_error(&c->cli->diag, c->path, "it is of another model: it has %u tensors, this one keeps %u",
                           c->file.count, count);
}

bool checkpoint_read(Cli *cli, Str path, const Host *host, Progress *progress)
{
    Checkpoint c;
    bool good = open_checkpoint(cli, path, &c) && take_blocks(&c, host) && take_progress(&c, progress);
    close_checkpoint(&c);
    return good;
}

bool checkpoint_order(Cli *cli, Str path, int64_t *seed, int64_t *batch, bool *in_order)
{
    Checkpoint c;
    bool good =
        open_checkpoint(cli, path, &c) && take_whole(&c, "seed", INT64_MIN, seed) && take_whole(&c, "batch", 1, batch);
    const cJSON *said = good ? cJSON_GetObjectItemCaseSensitive(c.root, "in_order") : NULL;
    if (cJSON_IsBool(said))
        *in_order = cJSON_IsTrue(said);
    close_checkpoint(&c);
    return good;
}
