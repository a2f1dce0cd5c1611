/* What every verb does first: read the model, apply -D, find its weights, choose the graph. */
#ifndef NNC_CLI_MODEL_H
#define NNC_CLI_MODEL_H

#include "cli/cli.h"
#include "formats/weights.h"
#include "onnx/onnx.h"

typedef struct Model {
    Str path;
    Str text;                   /* of an ONNX model, as .nnc; else empty */
    const OnnxRenamed *renamed; /* of its inputs and results */
    uint32_t renamed_count;
    Module *module;
    Graph *graph;         /* that --graph names, or the first */
    Graph *const *graphs; /* that alone when it was named, else all */
    uint32_t graph_count;
    Str name;         /* of the graph, as a C identifier */
    Str program_name; /* of all the graphs together; of one, the same */
    Str weights_path; /* empty: there is no file */
    Str *tune_path;   /* of recipes that were timed, for each target that has such a file */
    uint32_t tune_count, tune_capacity;
    WeightsFile weights; /* tensors point into its mapping */
} Model;

typedef enum WeightsNeed {
    WEIGHTS_ALL,  /* every param must have elements or an initialiser */
    WEIGHTS_SOME, /* the elements of params are not looked at: a shape is enough */
    WEIGHTS_NEW,  /* every param is drawn, or taken from the file that --weights-from names, never from one beside */
} WeightsNeed;

/* Takes the operand MODEL and the flags D, graph and FLAGS_WEIGHTS, which the verb must have.  STATUS_OK, or what to
 * return after the errors that have been reported. */
int model_load(Cli *cli, WeightsNeed need, Model *model);
/* The first part of it: path and module only, from MODEL and D. */
int model_parse(Cli *cli, Model *model);
/* The file that --weights-from names, or that stands beside the model; empty when there is none. */
Str model_weights_path(const Cli *cli, Arena *arena, Str model);

/* What an input or a result that an ONNX file calls so is called here, and the other way round; empty where both names
 * are the same. */
Str model_own_name(const Model *model, Str file_name);
Str model_file_name(const Model *model, Str name);

/* Writes `text`, which nnc_print made of the module, and beside it, in a .safetensors file, the elements that the text
 * leaves out.  False after an error in the diag. */
bool model_save(Cli *cli, Module *module, Str path, const Text *text);
/* What was read for it: its text and others that this uses, its weights */
const Str *model_files(Arena *arena, const Model *model, uint32_t *count);
/* Is the path none of them?  Else false, with an error in the diag. */
bool model_keeps_files(Cli *cli, const Model *model, Str path);
/* Would all that is stored for the model still be, after model_save?  False after an error in the diag. */
bool model_keeps_weights(Cli *cli, const Model *model, Str path);
/* Would model_save change none of the weights that stand beside such a text?  False after an error in the diag. */
bool model_keeps_trained(Cli *cli, Module *module, Str path);
/* Where nothing of it had to be written beside such a text, but an older file stands there: it is not ours to remove.
 */
void model_warn_of_older(Cli *cli, Module *module, Str path);

#endif
