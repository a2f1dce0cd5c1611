/* What every verb does first: read the model, apply -D, find its weights, choose the graph. */
#ifndef NNC_CLI_MODEL_H
#define NNC_CLI_MODEL_H

#include "base/file.h"
#include "cli/cli.h"
#include "ir/graph.h"

typedef struct Model {
    Str path;
    Module *module;
    Graph *graph;         /* that --graph names, or the first */
    Graph *const *graphs; /* that alone when it was named, else all */
    uint32_t graph_count;
    Str name;        /* of the graph, as a C identifier */
    FileMap weights; /* tensors point into it */
} Model;

typedef enum WeightsNeed {
    WEIGHTS_ALL,  /* every param must have elements or an initialiser */
    WEIGHTS_SOME, /* the elements of params are not looked at: a shape is enough */
} WeightsNeed;

/* Takes the operand MODEL and the flags D, weights-from and graph, which the verb must have.  STATUS_OK, or what to
 * return after the errors that have been reported. */
int model_load(Cli *cli, WeightsNeed need, Model *model);

/* Writes `text`, which nnc_print made of the module, and beside it, in a .safetensors file, the elements that the text
 * leaves out.  False after an error in the diag. */
bool model_save(Cli *cli, Module *module, Str path, const Text *text);

#endif
