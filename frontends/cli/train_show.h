/* What a training tells people while it goes on. */
#ifndef NNC_CLI_TRAIN_SHOW_H
#define NNC_CLI_TRAIN_SHOW_H

#include "cli/train_run.h"

void train_show_begin(const Trainer *trainer); /* samples, batches, steps */
void train_show_step(Trainer *trainer);        /* a bar on the terminal, now and then; nothing where there is none */
void train_show_text(Text *lines);             /* folded to the width of the terminal; frees them */
void train_show_epoch(const Trainer *trainer, double seconds); /* a line for the epoch that is over */
void train_show_end(const Trainer *trainer);

/* Draws the curves: loss and whatever else is scored, of training and of validation, over the epochs. */
bool train_curve_write(const Trainer *trainer);

static inline int64_t trainer_steps(const Trainer *trainer) /* of an epoch */
{
    return trainer->train.samples.count / trainer->train.samples.batch;
}

#endif
