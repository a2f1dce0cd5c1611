#include "cli/train_score.h"

#include <math.h>

#define ACCURACY "accuracy"

/* Rows of a batch of logits: all but the last axis. */
static int64_t row_count(const Shape *shape)
{
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < shape->rank; d++)
        rows *= shape->dim[d];
    return rows;
}

static bool is_number(const Type *type)
{
    return shape_elements(&type->shape) == 1 && dtype_is_float(type->dtype);
}

/* Not all of them are to be left out. */
static bool any_counts(const Tensor *labels)
{
    int64_t count = shape_elements(&labels->type->shape);
    for (int64_t i = 0; i < count; i++)
        if (tensor_number(labels, i) >= 0)
            return true;
    return false;
}

/* Has every row of the output a label, and does any of these count? */
static bool has_labels(const Output *output, const Type *type, const Samples *samples)
{
    bool named = str_is(output->name, "logits") || str_is(output->name, "probability");
    const Tensor *label = samples->label.batch;
    return named && label && dtype_is_int(label->type->dtype) && dtype_is_float(type->dtype) && type->shape.rank &&
           shape_elements(&type->shape) && shape_elements(&label->type->shape) == row_count(&type->shape) &&
           any_counts(samples->label.array);
}

Scores scores_of(Arena *arena, const Graph *graph, const Samples *samples)
{
    Scores scores = {ARENA_ARRAY(arena, Score, graph->output_count + 1), 0};
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        if (has_labels(&graph->output[i], type, samples))
            scores.at[scores.count++] = (Score){
                .name = STR(ACCURACY), .output = i, .is_share = true, .classes = type->shape.dim[type->shape.rank - 1]};
        else if (is_number(type))
            scores.at[scores.count++] = (Score){.name = graph->output[i].name, .output = i};
    }
    return scores;
}

void scores_clear(Scores *scores)
{
    for (uint32_t i = 0; i < scores->count; i++)
        scores->at[i].sum = scores->at[i].count = 0;
}

Scores scores_copy(Arena *arena, const Scores *scores)
{
    Scores copy = {arena_copy(arena, scores->at, scores->count * sizeof *scores->at), scores->count};
    scores_clear(&copy);
    return copy;
}

/* The position of the largest element of a row, the first one; -1 where one is NaN. */
static int64_t largest(const Tensor *tensor, int64_t begin, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(tensor_number(tensor, begin + i)))
            return -1;
        if (tensor_number(tensor, begin + i) > tensor_number(tensor, begin + best))
            best = i;
    }
    return best;
}

static bool add_share(Score *score, const Tensor *output, const Samples *samples, int64_t kept)
{
    int64_t classes = score->classes, rows = row_count(&output->type->shape) / samples->batch * kept;
    bool numbers = true;
    for (int64_t row = 0; row < rows; row++) {
        double label = tensor_number(samples->label.batch, row);
        if (label < 0 || label >= (double)classes)
            continue;
        int64_t found = largest(output, row * classes, classes);
        numbers = numbers && found >= 0;
        score->sum += (double)found == label;
        score->count += 1;
    }
    return numbers;
}

bool scores_add(Scores *scores, Tensor *const *output, const Samples *samples, int64_t kept)
{
    bool finite = true;
    for (uint32_t i = 0; i < scores->count; i++) {
        Score *score = &scores->at[i];
        if (score->is_share) {
            finite = add_share(score, output[score->output], samples, kept) && finite;
            continue;
        }
        double number = tensor_number(output[score->output], 0);
        finite = finite && isfinite(number);
        score->sum += number;
        score->count += 1;
    }
    return finite;
}

double score_mean(const Score *score)
{
    return score->count > 0 ? score->sum / score->count : NAN;
}

void score_print(Text *out, const Score *score)
{
    double mean = score_mean(score);
    if (score->is_share && isnan(mean)) /* all labels of the epoch are left out */
        text_printf(out, "no " STR_FMT, STR_ARG(score->name));
    else if (str_is(score->name, ACCURACY))
        text_printf(out, STR_FMT " %.2f %%", STR_ARG(score->name), mean * 100);
    else
        text_printf(out, STR_FMT " %.4g", STR_ARG(score->name), mean);
}

uint32_t scores_judge(const Scores *scores)
{
    static const char *const preferred[] = {"loss", ACCURACY};
    for (uint32_t k = 0; k < sizeof preferred / sizeof *preferred; k++)
        for (uint32_t i = 0; i < scores->count; i++)
            if (str_is(scores->at[i].name, preferred[k]))
                return i;
    return 0;
}

bool score_better(const Score *score, double mean, double other)
{
    if (isnan(mean) || isnan(other))
        return !isnan(mean);
    return str_is(score->name, ACCURACY) ? mean > other : mean < other;
}
