#include "cli/train_samples.h"

#include <inttypes.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "formats/npy.h"
#include "ops/random.h"

typedef struct Matcher { /* of the arrays of a file to the inputs of a graph */
    Cli *cli;
    const Graph *graph;
    Samples *samples;
    const Value *input; /* the present one */
    const Value *first; /* that the number of samples is from */
} Matcher;

static Str show(const Matcher *m, const Type *type)
{
    return type_show(&m->cli->arena, type);
}

/* What an array of samples is for the input: `u8[samples, 1, 28, 28]`; of a scalar also the one for all of them. */
static Str show_wanted(const Matcher *m)
{
    const Shape *shape = &m->input->type->shape;
    Text out = {0};
    text_printf(&out, "%s[samples", dtype_name(m->input->type->dtype));
    for (uint32_t d = 1; d < shape->rank; d++)
        text_printf(&out, ", %" PRId64, shape->dim[d]);
    text_char(&out, ']');
    if (!shape->rank)
        text_printf(&out, " or %s[]", dtype_name(m->input->type->dtype));
    Str shown = str_copy(&m->cli->arena, text_view(&out));
    text_free(&out);
    return shown;
}

static bool complain_of_type(const Matcher *m, const Tensor *array)
{
    return diag_file_error(&m->cli->diag, m->samples->path,
                           "input " STR_FMT ": " STR_FMT " of " STR_FMT " takes an array " STR_FMT
                           ", the file holds " STR_FMT,
                           STR_ARG(m->input->name), STR_ARG(show(m, m->input->type)), STR_ARG(m->graph->name),
                           STR_ARG(show_wanted(m)), STR_ARG(show(m, array->type)));
}

/* Does the array hold so many of what the input takes, behind an axis of its own (`skip` is 1) or along the input's? */
static bool rows_fit(const Type *type, const Type *array, uint32_t *skip)
{
    const Shape *want = &type->shape, *have = &array->shape;
    *skip = have->rank - want->rank;
    if (array->dtype != type->dtype || have->rank < want->rank || *skip > 1 || !have->rank)
        return false;
    for (uint32_t d = 1; d < have->rank; d++)
        if (have->dim[d] != want->dim[d - *skip])
            return false;
    return true;
}

/* All inputs take as many samples at once, and all arrays have as many. */
static bool agrees(Matcher *m, int64_t count, int64_t batch)
{
    Samples *s = m->samples;
    if (!m->first) {
        m->first = m->input;
        s->count = count;
        s->batch = batch;
    }
    if (count != s->count)
        return diag_file_error(&m->cli->diag, s->path, STR_FMT " has %" PRId64 " samples, " STR_FMT " has %" PRId64,
                               STR_ARG(m->first->name), s->count, STR_ARG(m->input->name), count);
    if (batch != s->batch)
        return diag_file_error(
            &m->cli->diag, s->path,
            "input " STR_FMT " of " STR_FMT " takes %" PRId64 " samples at once, " STR_FMT " takes %" PRId64,
            STR_ARG(m->first->name), STR_ARG(m->graph->name), s->batch, STR_ARG(m->input->name), batch);
    return true;
}

static bool match_rows(Matcher *m, const Tensor *array, Feed *feed)
{
    uint32_t skip;
    if (!rows_fit(m->input->type, array->type, &skip))
        return complain_of_type(m, array);
    int64_t batch = skip ? 1 : m->input->type->shape.dim[0];
    feed->kind = FEED_ROWS;
    feed->array = array;
    feed->row_bytes = batch ? type_bytes(m->input->type) / batch : 0;
    return agrees(m, array->type->shape.dim[0], batch);
}

/* Inputs that the file has no array for.  False when it must have one. */
static bool is_made(const Matcher *m, FeedKind *kind)
{
    if (m->input->type->shape.rank)
        return false;
    bool is_key = m->input->type->dtype == DT_I64 && (str_is(m->input->name, "seed") || str_is(m->input->name, "key"));
    bool is_count =
        m->input->type->dtype != DT_BOOL && (str_is(m->input->name, "epoch") || str_is(m->input->name, "step"));
    *kind = is_key ? FEED_KEY : str_is(m->input->name, "epoch") ? FEED_EPOCH : FEED_STEP;
    return is_key || is_count;
}

static bool match(Matcher *m, Feed *feed)
{
    feed->batch = tensor_new(&m->cli->arena, m->input->type);
    if (!npz_has(m->samples->path, m->input->name) && is_made(m, &feed->kind))
        return true;
    const Tensor *array = npz_read(m->graph->module, m->samples->path, m->input->name);
    if (!array) {
        diag_note(&m->cli->diag, (Place){0},
                  "input " STR_FMT ": " STR_FMT " of " STR_FMT " takes the array of its name", STR_ARG(m->input->name),
                  STR_ARG(show(m, m->input->type)), STR_ARG(m->graph->name));
        return false;
    }
    if (array->type->shape.rank || array->type != m->input->type)
        return match_rows(m, array, feed);
    feed->kind = FEED_SAME;
    memcpy(feed->batch->data, array->data, (size_t)type_bytes(m->input->type));
    return true;
}

/* Where the graph does not take it, whoever compares with it does. */
static void find_label(Matcher *m)
{
    Samples *s = m->samples;
    for (uint32_t i = 0; i < s->feed_count; i++)
        if (str_is(graph_value(m->graph, m->graph->input[i])->name, LABEL) && s->feed[i].kind == FEED_ROWS)
            s->label = s->feed[i];
    if (s->label.batch || !npz_has(s->path, STR(LABEL)))
        return;
    const Tensor *array = npz_read(m->graph->module, s->path, STR(LABEL));
    if (!array || !array->type->shape.rank || array->type->shape.dim[0] != s->count)
        return;
    Shape shape = array->type->shape;
    shape.dim[0] = s->batch;
    const Type *type = module_plain_type(m->graph->module, array->type->dtype, shape.rank, shape.dim);
    s->label = (Feed){FEED_ROWS, array, s->batch ? type_bytes(type) / s->batch : 0, tensor_new(&m->cli->arena, type)};
}

/* Of the arrays that samples come from, in the order of the inputs: XXH3, each seeded by those before. */
static uint64_t digest_of(const Samples *samples)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < samples->feed_count; i++) {
        const Tensor *array = samples->feed[i].kind == FEED_ROWS ? samples->feed[i].array : NULL;
        if (array)
            digest = XXH3_64bits_withSeed(array->data, (size_t)type_bytes(array->type), digest);
    }
    return digest;
}

uint64_t samples_digest_judging(const Samples *samples)
{
    const Tensor *label = samples->label.array;
    for (uint32_t i = 0; i < samples->feed_count; i++)
        if (samples->feed[i].array == label)
            label = NULL;
    return label ? XXH3_64bits_withSeed(label->data, (size_t)type_bytes(label->type), samples->digest)
                 : samples->digest;
}

bool samples_open(Cli *cli, const Graph *graph, Str path, Samples *samples)
{
    Matcher m = {.cli = cli, .graph = graph, .samples = samples};
    bool good = npz_check(&cli->diag, path);

    *samples = (Samples){.path = path,
                         .feed = ARENA_ARRAY(&cli->arena, Feed, graph->input_count + 1),
                         .feed_count = graph->input_count,
                         .input = ARENA_ARRAY(&cli->arena, const void *, graph->input_count + 1)};
    for (uint32_t i = 0; good && i < graph->input_count; i++) {
        m.input = graph_value(graph, graph->input[i]);
        good = match(&m, &samples->feed[i]);
        samples->input[i] = samples->feed[i].batch->data;
    }
    if (!good)
        return false;
    if (!m.first)
        return diag_file_error(&cli->diag, path, "no input of " STR_FMT " takes samples", STR_ARG(graph->name));
    if (!samples->count)
        return diag_file_error(&cli->diag, path, "there are no samples in it");
    find_label(&m);
    samples->digest = digest_of(samples);
    return true;
}

static void take_rows(Feed *feed, const int64_t *number, int64_t count)
{
    const char *from = feed->array->data;
    char *to = feed->batch->data;
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * feed->row_bytes, from + number[i] * feed->row_bytes, (size_t)feed->row_bytes);
}

void samples_take(Samples *samples, const int64_t *number, const Moment *now)
{
    for (uint32_t i = 0; i < samples->feed_count; i++) {
        Feed *feed = &samples->feed[i];
        if (feed->kind == FEED_ROWS)
            take_rows(feed, number, samples->batch);
        else if (feed->kind == FEED_KEY)
            memcpy(feed->batch->data, &now->key, sizeof now->key);
        else if (feed->kind != FEED_SAME)
            tensor_set_number(feed->batch, 0, (double)(feed->kind == FEED_EPOCH ? now->epoch : now->step));
    }
    if (samples->label.batch)
        take_rows(&samples->label, number, samples->batch);
}

/* A whole number below `bound`, by the block `at` of the key. */
static int64_t draw_below(int64_t key, int64_t at, int64_t bound)
{
    uint32_t word[4];
    philox((uint64_t)key, (uint64_t)at, word);
    uint64_t bits = (uint64_t)word[1] << 32 | word[0];
    return (int64_t)((double)(bits >> 11) * 0x1p-53 * (double)bound);
}

void samples_shuffle(int64_t *number, int64_t count, int64_t key)
{
    for (int64_t i = 0; i < count; i++)
        number[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = draw_below(key, i, i + 1), kept = number[i];
        number[i] = number[other];
        number[other] = kept;
    }
}
