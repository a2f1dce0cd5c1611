/* What `nnc train -o` writes: the weights that the model's other graphs, or another model, run with. */
#ifndef NNC_CLI_TRAIN_WEIGHTS_H
#define NNC_CLI_TRAIN_WEIGHTS_H

#include "cli/host.h"
#include "formats/weights.h"

typedef struct WeightsList {
    NamedTensor *at; /* a tensor without data is drawn, and in no block: the file lacks it */
    uint32_t count, capacity;
    Map by_name;
} WeightsList;

/* All params, the states that graphs other than `trains` have, and the constants that were loaded; before the module is
 * compiled, which rewrites it. */
WeightsList weights_list(Arena *arena, const Module *module, const Graph *trains, const WantedList *wanted);

/* The first param among them with an element that is not finite now; NULL: there is none. */
const NamedTensor *weights_list_not_finite(const WeightsList *list, const Host *host);

/* Writes their present values aside, and renames.  False after an error in the diag. */
bool weights_list_write(Cli *cli, Str path, const WeightsList *list, const Host *host);

#endif
