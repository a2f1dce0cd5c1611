/* The loop of a training: steps over shuffled batches, validation, checkpoints. */
#ifndef NNC_CLI_TRAIN_RUN_H
#define NNC_CLI_TRAIN_RUN_H

#include "cli/train_progress.h"
#include "cli/train_weights.h"

typedef struct TrainPart { /* an entry and what it is fed */
    const Graph *graph;
    uint32_t entry; /* of the host's model */
    Samples samples;
    Tensor **output;
    void **memory; /* of the outputs */
} TrainPart;

typedef struct Trainer {
    Cli *cli;
    Module *module;
    Host *host;
    TrainPart train, valid;   /* valid.graph NULL: nothing validates */
    int64_t epochs, patience; /* 0: none */
    bool in_order;
    Str save, weights, curve; /* files to write; weights and curve may be empty */
    WeightsList list;         /* what `weights` gets */
    Progress progress;
    bool wrote;              /* weights, in this process */
    bool unwritten;          /* the checkpoint does not have all epochs, nor the drawing */
    double written, writing; /* seconds: when they were written last, and what that took */
    int64_t *number;         /* of the samples, in the order of the epoch */
    double began;            /* seconds: when this epoch did, in this process, ... */
    int64_t before;          /* ... at this step */
    double shown;            /* when the bar was drawn last */
} Trainer;

/* Trains up to `epochs`.  Returns the exit status: 128 + the signal's number where one has stopped it. */
int trainer_run(Trainer *trainer);

#endif
