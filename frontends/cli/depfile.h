/* What a compilation was made from, for make and ninja: `nnc compile --depfile`. */
#ifndef NNC_CLI_DEPFILE_H
#define NNC_CLI_DEPFILE_H

#include "base/file.h"
#include "cli/model.h"

/* `target: model imports weights inputs`, and an empty rule for each, so that one that goes away does not stop make.
 * Written aside under the name of --depfile; false after an error in the diag.  Nothing is done without the flag. */
typedef struct Depfile {
    FileWriter writer;
    bool open;
} Depfile;
bool depfile_write(Cli *cli, const Model *model, Str target, Depfile *depfile);

/* Gives it its name, when everything else stands; or removes it. */
bool depfile_commit(Cli *cli, Depfile *depfile);
void depfile_abandon(Depfile *depfile);

#endif
