/* Samples for a training: the arrays of an .npz, matched to the inputs of a graph by their names. */
#ifndef NNC_CLI_TRAIN_SAMPLES_H
#define NNC_CLI_TRAIN_SAMPLES_H

#include "cli/cli.h"
#include "ir/graph.h"

#define LABEL "label" /* the array that logits are compared with */

typedef enum FeedKind {
    FEED_ROWS,  /* so many samples of an array */
    FEED_SAME,  /* an array of the file without an axis of samples: a number, the same in every step */
    FEED_EPOCH, /* how many epochs are over */
    FEED_STEP,  /* how many steps have been made in all */
    FEED_KEY,   /* another key in each step */
} FeedKind;

typedef struct Feed { /* what an input is given */
    FeedKind kind;
    const Tensor *array; /* ROWS: [samples, ...] */
    int64_t row_bytes;   /* ROWS: of a sample */
    Tensor *batch;       /* as the input wants it */
} Feed;

typedef struct Samples {
    Str path;
    Feed *feed; /* per input of the graph */
    uint32_t feed_count;
    Feed label; /* the array `label`, whether the graph takes it or not; without batch: there is none */
    int64_t count, batch;
    uint64_t digest;    /* of all of them: other samples have another */
    const void **input; /* the batches, as an entry takes them */
} Samples;

typedef struct Moment { /* of a step */
    int64_t epoch, step, key;
} Moment;

/* Reads the arrays that the graph's inputs want.  False after errors in the diag. */
bool samples_open(Cli *cli, const Graph *graph, Str path, Samples *samples);
/* As digest, and of the labels that the graph does not take. */
uint64_t samples_digest_judging(const Samples *samples);
/* Makes a batch of the samples with these numbers, as many as a batch has. */
void samples_take(Samples *samples, const int64_t *number, const Moment *now);

/* The numbers 0 .. count - 1 in an order that is drawn by a key (Fisher and Yates). */
void samples_shuffle(int64_t *number, int64_t count, int64_t key);

#endif
