/* Where a training stands, and its checkpoints: with the blocks of params and states, all that it takes to go on to the
 * same bits. */
#ifndef NNC_CLI_TRAIN_PROGRESS_H
#define NNC_CLI_TRAIN_PROGRESS_H

#include "cli/host.h"
#include "cli/train_score.h"

typedef struct CurvePoint {
    double at, value; /* at: epochs */
} CurvePoint;

typedef struct Series {
    CurvePoint *point;
    uint32_t count, capacity;
} Series;

typedef struct Progress {
    Str graph;       /* that trains */
    Str data;        /* the file of the samples */
    uint64_t digest; /* of these */
    uint64_t judged; /* the digest of those that validate; 0: none do */
    int64_t seed, count, batch;
    bool in_order;
    int64_t epoch, step; /* epochs that are over, and steps of the present one */
    int64_t every;       /* steps that a point of a curve is the mean of */
    int64_t since;       /* epochs that were over when these samples began to validate */
    bool anew;           /* ... in place of others that the checkpoint was validated on */
    int64_t best;        /* the best epoch by what validates, from 1; 0: none yet */
    double best_value;   /* its mean */
    Scores train, valid; /* train: over the present epoch */
    Scores point;        /* over the present point of the curves */
    Series *train_curve; /* per score of train */
    Series *valid_curve; /* per score of valid, a value for each epoch */
} Progress;

Progress progress_new(Arena *arena, const Scores *train, const Scores *valid);

/* Writes params, states and the progress as a .safetensors file, aside, and renames it.  False after an error. */
bool checkpoint_write(Cli *cli, Module *module, Str path, const Host *host, const Progress *progress);
/* Reads it into the host's blocks, which are as new, and the progress, whose graph, samples, batch and scores must
 * agree; where others validate, no epoch is the best yet.  False after errors that say what does not agree. */
bool checkpoint_read(Cli *cli, Str path, const Host *host, Progress *progress);
/* The seed and the batch that the checkpoint was begun with, and whether with --in-order, which older ones do not say:
 * they leave it.  False after an error. */
bool checkpoint_order(Cli *cli, Str path, int64_t *seed, int64_t *batch, bool *in_order);

#endif
