/* Labels of samples: which a training takes.  A label that is no class would be a sample that teaches nothing,
 * silently: no class equals it. */
#ifndef NNC_CLI_TRAIN_LABELS_H
#define NNC_CLI_TRAIN_LABELS_H

#include "cli/train_score.h"

/* Is each label that `graph` takes, or that its outputs are compared with, one of the classes, or one that losses leave
 * out?  Those are the ones less than 0, and what `trains` says: `cross_entropy(logits, label, ignore = 255)`.  False
 * after an error in the diag. */
bool labels_check(Cli *cli, const Graph *trains, const Graph *graph, const Samples *samples);

#endif
