#include "cli/train_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "cli/clock.h"
#include "cli/halt.h"
#include "cli/train_show.h"
#include "ops/random.h"

#define MOST_WRITING 20 /* times as long as writing a checkpoint takes, training goes on before the next */

enum { DRAW_ORDER, DRAW_TRAIN, DRAW_VALID }; /* what keys are drawn for */

/* A batch */

static int64_t key_of(const Trainer *t, int64_t what, int64_t number)
{
    return random_fold_in(random_fold_in(t->progress.seed, what), number);
}

static int run_batch(const Trainer *t, const TrainPart *part)
{
    const Host *host = t->host;
    int code = host->model->entry[part->entry].run(part->samples.input, part->memory, host->arena, host->weights.data,
                                                   host->params, host->state, nnc_pool_team(host->pool));
    return code ? cli_environment("the compiled model returned %d", code) : STATUS_OK;
}

static int complain_of_number(const Trainer *t, Str where)
{
    const Progress *p = &t->progress;
    const Module *module = t->module;
    diag_file_error(&t->cli->diag, module->file[module->file_count - 1],
                    STR_FMT " of epoch %" PRId64 " gives a number that is not finite; %s", STR_ARG(where), p->epoch + 1,
                    p->epoch ? "the checkpoint is of the epoch before" : "there is no checkpoint yet");
    return STATUS_INPUT;
}

static void add_points(Trainer *t)
{
    Progress *p = &t->progress;
    int64_t steps = p->epoch * trainer_steps(t) + p->step;
    if (steps % p->every)
        return;
    for (uint32_t i = 0; i < p->point.count; i++) {
        Series *series = &p->train_curve[i];
        CurvePoint point = {((double)steps - (double)p->every / 2) / (double)trainer_steps(t),
                            score_mean(&p->point.at[i])};
        ARENA_PUSH(&t->cli->arena, series->point, series->count, series->capacity, point);
    }
    scores_clear(&p->point);
}

static int train_step(Trainer *t)
{
    Progress *p = &t->progress;
    TrainPart *part = &t->train;
    int64_t made = p->epoch * trainer_steps(t) + p->step;

    samples_take(&part->samples, t->number + p->step * part->samples.batch,
                 &(Moment){p->epoch, made, key_of(t, DRAW_TRAIN, made)});
    int status = run_batch(t, part);
    if (status != STATUS_OK)
        return status;
    bool finite = scores_add(&p->train, part->output, &part->samples, part->samples.batch);
    scores_add(&p->point, part->output, &part->samples, part->samples.batch);
    if (!finite)
        return complain_of_number(t, str_format(&t->cli->arena, "step %" PRId64, p->step + 1));
    p->step++;
    add_points(t);
    train_show_step(t);
    return STATUS_OK;
}

static void draw_order(Trainer *t)
{
    int64_t count = t->train.samples.count;
    if (!t->in_order)
        samples_shuffle(t->number, count, key_of(t, DRAW_ORDER, t->progress.epoch));
    else
        for (int64_t i = 0; i < count; i++)
            t->number[i] = i;
}

/* What the last step has made of the params no score has seen yet; what is kept would be worth nothing. */
static int check_params(const Trainer *t)
{
    const NamedTensor *param = weights_list_not_finite(&t->list, t->host);
    if (!param)
        return STATUS_OK;
    int status = complain_of_number(t, str_format(&t->cli->arena, "step %" PRId64, t->progress.step));
    diag_note(&t->cli->diag, (Place){0}, "it is in param " STR_FMT, STR_ARG(param->name));
    return status;
}

static int train_epoch(Trainer *t)
{
    int status = STATUS_OK;
    draw_order(t);
    t->began = clock_seconds();
    t->before = t->progress.step;
    while (status == STATUS_OK && !halt_signal() && t->progress.step < trainer_steps(t))
        status = train_step(t);
    return status == STATUS_OK ? check_params(t) : status;
}

/* Batch after batch in order; the last is filled up with the first samples again, which count as little as they can:
 * not at all where each sample is judged. */
static int validate(Trainer *t)
{
    Progress *p = &t->progress;
    Samples *samples = &t->valid.samples;
    ArenaMark mark = arena_mark(&t->cli->arena);
    int64_t *number = ARENA_ARRAY(&t->cli->arena, int64_t, samples->batch);
    int status = STATUS_OK;

    scores_clear(&p->valid);
    for (int64_t at = 0; status == STATUS_OK && !halt_signal() && at < samples->count; at += samples->batch) {
        for (int64_t i = 0; i < samples->batch; i++)
            number[i] = (at + i) % samples->count;
        samples_take(samples, number, &(Moment){p->epoch, at / samples->batch, key_of(t, DRAW_VALID, at)});
        status = run_batch(t, &t->valid);
        if (status == STATUS_OK &&
            !scores_add(&p->valid, t->valid.output, samples, least(samples->batch, samples->count - at)))
            status = complain_of_number(t, STR("the validation"));
    }
    arena_reset(&t->cli->arena, mark);
    return status;
}

/* Is the epoch that has just ended the best so far?  Without validation each is. */
static bool is_best(Trainer *t)
{
    Progress *p = &t->progress;
    if (!t->valid.graph)
        return true;
    const Score *score = &p->valid.at[scores_judge(&p->valid)];
    double mean = score_mean(score);
    if (isnan(mean) || (p->best && !score_better(score, mean, p->best_value)))
        return false;
    p->best = p->epoch;
    p->best_value = mean;
    return true;
}

static void add_validated(Trainer *t)
{
    Progress *p = &t->progress;
    for (uint32_t i = 0; t->valid.graph && i < p->valid.count; i++) {
        Series *series = &p->valid_curve[i];
        CurvePoint point = {(double)p->epoch, score_mean(&p->valid.at[i])};
        ARENA_PUSH(&t->cli->arena, series->point, series->count, series->capacity, point);
    }
}

static bool write_checkpoint(const Trainer *t)
{
    return checkpoint_write(t->cli, t->module, t->save, t->host, &t->progress);
}

/* Checkpoint and drawing, which hold all epochs so far: of short epochs not after each, or they would take longer than
 * the training. */
static bool write_progress(Trainer *t)
{
    double begun = clock_seconds();
    if (t->unwritten && begun - t->written < MOST_WRITING * t->writing)
        return true;
    bool good = write_checkpoint(t) && (!t->curve.len || train_curve_write(t));
    t->written = clock_seconds();
    t->writing = t->written - begun;
    t->unwritten = false;
    return good;
}

/* After all steps of an epoch, and its validation. */
static int end_epoch(Trainer *t, double seconds)
{
    Progress *p = &t->progress;
    p->epoch++;
    p->step = 0;
    add_validated(t);
    train_show_epoch(t, seconds);
    bool write = is_best(t) && t->weights.len;
    t->wrote |= write;
    bool good = !write || weights_list_write(t->cli, t->weights, &t->list, t->host);
    scores_clear(&p->train);
    t->unwritten = true;
    return good && write_progress(t) ? STATUS_OK : STATUS_ENVIRONMENT;
}

static int one_epoch(Trainer *t)
{
    int status = train_epoch(t);
    double seconds = clock_seconds() - t->began;
    if (status == STATUS_OK && !halt_signal() && t->valid.graph)
        status = validate(t);
    if (status != STATUS_OK || halt_signal())
        return status;
    return end_epoch(t, seconds);
}

static int save_and_stop(const Trainer *t)
{
    const Progress *p = &t->progress;
    Text out = {0};
    if (!write_checkpoint(t))
        return STATUS_ENVIRONMENT;
    text_printf(&out,
                "stopped in epoch %" PRId64 " after %" PRId64 " of %" PRId64 " steps; --resume " STR_FMT " goes on\n",
                p->epoch + 1, p->step, trainer_steps(t), STR_ARG(t->save));
    train_show_text(&out);
    return 128 + halt_signal();
}

static bool is_patient(const Trainer *t)
{
    const Progress *p = &t->progress;
    return !t->patience || p->epoch - most(p->best, p->since) < t->patience;
}

int trainer_run(Trainer *t)
{
    int status = STATUS_OK;
    t->number = ARENA_ARRAY(&t->cli->arena, int64_t, t->train.samples.count);
    halt_watch();
    train_show_begin(t);
    while (status == STATUS_OK && !halt_signal() && t->progress.epoch < t->epochs && is_patient(t))
        status = one_epoch(t);
    t->writing = 0; /* it is over: what is due is written */
    if (status == STATUS_OK && t->unwritten && !write_progress(t))
        status = STATUS_ENVIRONMENT;
    if (status == STATUS_OK && halt_signal() && t->progress.epoch < t->epochs)
        status = save_and_stop(t);
    else if (status == STATUS_OK)
        train_show_end(t);
    halt_unwatch();
    return status;
}
