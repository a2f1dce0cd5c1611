#include "cli/train_show.h"

#include <inttypes.h>

#include "base/number.h"
#include "cli/clock.h"
#include "cli/terminal.h"
#include "plan/report.h"

#define LONGEST_BAR  24
#define SHORTEST_BAR 6
#define SECONDS      0.1 /* between two looks of the bar */

void train_show_text(Text *lines)
{
    Text out = {0};
    terminal_fold(&out, text_view(lines));
    cli_put(&out);
    cli_flush();
    text_free(&out);
    text_free(lines);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

void train_show_begin(const Trainer *t)
{
    const Samples *samples = &t->train.samples;
    char a[32], b[32];
    Text out = {0};
    text_printf(&out, STR_FMT ": %s sample%s, %s step%s of %" PRId64 " in an epoch", STR_ARG(t->train.graph->name),
                plan_digits(a, samples->count), plural(samples->count), plan_digits(b, trainer_steps(t)),
                plural(trainer_steps(t)), samples->batch);
    if (samples->count % samples->batch)
        text_printf(&out, "; %" PRId64 " left out, others in each", samples->count % samples->batch);
    text_char(&out, '\n');
    if (t->valid.graph)
        text_printf(&out, STR_FMT ": validates on %s sample%s\n", STR_ARG(t->valid.graph->name),
                    plan_digits(a, t->valid.samples.count), plural(t->valid.samples.count));
    if (t->progress.anew)
        text_printf(&out, "the checkpoint was validated on other samples: which epoch is best begins anew\n");
    train_show_text(&out);
}

/* The bar */

/* Steps per second of this epoch in this process. */
static double rate_of(const Trainer *t, double now)
{
    double seconds = now - t->began;
    return seconds > 0 ? (double)(t->progress.step - t->before) / seconds : 0;
}

static void put_rate(Text *out, double rate)
{
    char digits[32];
    if (rate >= 100)
        text_printf(out, "%s steps/s", plan_digits(digits, (int64_t)rate));
    else
        text_printf(out, "%.3g steps/s", rate);
}

static void put_left(Text *out, const Trainer *t, double rate)
{
    const Progress *p = &t->progress;
    double steps = (double)((t->epochs - p->epoch) * trainer_steps(t) - p->step);
    int64_t seconds = rate > 0 ? (int64_t)(steps / rate) : 0;
    if (seconds >= 3600)
        text_printf(out, "%" PRId64 ":%02d:%02d left", seconds / 3600, (int)(seconds / 60 % 60), (int)(seconds % 60));
    else
        text_printf(out, "%d:%02d left", (int)(seconds / 60), (int)(seconds % 60));
}

/* Adds a piece where the line has room for it. */
static void put_piece(Text *line, Text *piece, int width)
{
    if (plan_columns(text_view(line)) + 2 + plan_columns(text_view(piece)) < width) {
        text_printf(line, "  ");
        text_str(line, text_view(piece));
    }
    text_free(piece);
}

static void put_bar(Text *out, double share, int columns)
{
    int full = (int)(share * columns);
    for (int i = 0; i < columns; i++)
        text_printf(out, i < full ? "\u2588" : "\u2591");
}

static void show_bar(const Trainer *t, double now)
{
    const Progress *p = &t->progress;
    int width = (int)terminal_width();
    double rate = rate_of(t, now);
    Text line = {0}, rest = {0};

    text_printf(&line, "epoch %" PRId64 "/%" PRId64 " ", p->epoch + 1, t->epochs);
    for (uint32_t i = 0; i < p->train.count; i++) {
        Text piece = {0};
        score_print(&piece, &p->train.at[i]);
        put_piece(&rest, &piece, width - (int)line.len - SHORTEST_BAR);
    }
    Text speed = {0}, left = {0};
    put_rate(&speed, rate);
    put_piece(&rest, &speed, width - (int)line.len - SHORTEST_BAR);
    put_left(&left, t, rate);
    put_piece(&rest, &left, width - (int)line.len - SHORTEST_BAR);
    int room = width - 1 - (int)line.len - plan_columns(text_view(&rest));
    put_bar(&line, (double)p->step / (double)trainer_steps(t), (int)least(LONGEST_BAR, most(room, 0)));
    text_str(&line, text_view(&rest));
    terminal_line(line.ptr);
    text_free(&line);
    text_free(&rest);
}

void train_show_step(Trainer *t)
{
    if (!terminal_shows_lines())
        return;
    double now = clock_seconds();
    if (now - t->shown < SECONDS)
        return;
    t->shown = now;
    show_bar(t, now);
}

/* Lines */

static void put_scores(Text *out, const char *of, const Scores *scores)
{
    for (uint32_t i = 0; i < scores->count; i++) {
        text_printf(out, "%s", i ? ", " : of);
        score_print(out, &scores->at[i]);
    }
    if (scores->count)
        text_printf(out, "; ");
}

void train_show_epoch(const Trainer *t, double seconds)
{
    const Progress *p = &t->progress;
    Text out = {0};
    text_printf(&out, "epoch %" PRId64 "/%" PRId64 ": ", p->epoch, t->epochs);
    put_scores(&out, "", &p->train);
    put_scores(&out, "validation ", &p->valid);
    put_rate(&out, seconds > 0 ? (double)(trainer_steps(t) - t->before) / seconds : 0);
    text_char(&out, '\n');
    train_show_text(&out);
}

void train_show_end(const Trainer *t)
{
    const Progress *p = &t->progress;
    Text out = {0};
    if (t->valid.graph && p->best)
        text_printf(&out, "best by validation: epoch %" PRId64 "%s\n", p->best,
                    p->epoch < t->epochs ? "; no better one since, so it ends here" : "");
    if (t->weights.len && t->wrote)
        text_printf(&out, "weights: " STR_FMT "\n", STR_ARG(t->weights));
    else if (t->weights.len)
        text_printf(&out, "weights: " STR_FMT " is not written, since no epoch of this run was the best\n",
                    STR_ARG(t->weights));
    text_printf(&out, "checkpoint: " STR_FMT "\n", STR_ARG(t->save));
    train_show_text(&out);
}
