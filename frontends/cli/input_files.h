/* The files behind --input: arrays and pictures. */
#ifndef NNC_CLI_INPUT_FILES_H
#define NNC_CLI_INPUT_FILES_H

#include "cli/cli.h"
#include "frontends/nnc/text.h"

/* A flag `input`: NAME=WHAT, or WHAT alone, whose name is empty. */
typedef struct InputFlag {
    Str name, what;
} InputFlag;

InputFlag input_flag_split(Str flag);

/* The path of a file that WHAT names; empty for random:SEED and zeros. */
Str input_path(Str what);
/* Does WHAT name pixels, which serve for inputs of any dtype? */
bool input_is_image(Str what);

/* .npy, .npz, .npz:MEMBER, .pgm or .ppm, in the module's arena; NULL after an error.  Without MEMBER an archive gives
 * what is called as the input, `name` or else `file_name` (may be empty), or its only member. */
const Tensor *input_file_read(Module *module, Str what, Str name, Str file_name);

/* Adds to the list of -D what the files of --input, where the verb has that flag, tell of open extents.  False after
 * an error. */
bool input_files_define(Cli *cli, Define **list, uint32_t *count, uint32_t *capacity);

#endif
