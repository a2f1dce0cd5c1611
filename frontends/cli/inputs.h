/* What goes into a model and comes out: --input and --output. */
#ifndef NNC_CLI_INPUTS_H
#define NNC_CLI_INPUTS_H

#include "cli/model.h"

/* One tensor per input of the graph, of its type, from the flags `input` (NAME=FILE|random:SEED|zeros; NAME= may be
 * left out where there is one input).  With `fallback` not NULL, inputs without a flag take it.  NULL after errors;
 * *status tells what to return. */
const Tensor *const *inputs_read(Cli *cli, const Model *model, const char *fallback, int *status);

/* Are all flags `output` NAME=FILE, with names the graph has?  Called before work is done. */
bool outputs_check(Cli *cli, const Model *model);
/* Writes what the flags ask for: .npy, .npz (several outputs may go to one), .pgm, .ppm. */
int outputs_write(Cli *cli, const Model *model, const Tensor *const *output);

/* floats in [-1, 1), integers from 0 to 99, bools: a function of seed and position only */
void fill_random(Tensor *tensor, uint64_t seed);

#endif
