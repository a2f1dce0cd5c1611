/* Private folders: where files are made before they get their names, and programs are run. */
#ifndef NNC_CLI_FOLDER_H
#define NNC_CLI_FOLDER_H

#include "cli/cli.h"

/* A new folder inside `parent` (which is made when it is not there), or, with an empty parent, among the system's
 * temporary ones.  False after an error in the diag. */
typedef struct FileMove FileMove;
typedef struct Folder {
    Str path;
    Str made;       /* the parent, when this call made it: removed again when nothing ends in it */
    int lock;       /* held while the run lives: the next run removes what nobody holds */
    FileMove *move; /* what folder_commit renamed, in the arena */
    uint32_t move_count, move_capacity;
} Folder;
bool folder_open(Cli *cli, Str parent, Folder *folder);

/* From now on a signal removes the folders that are there, as the first folder sees to; once. */
void folder_watch_signals(void);
Str folder_file(Cli *cli, const Folder *folder, Str name);

/* Is `path` what one of its files will be in the parent? */
bool folder_writes(Cli *cli, const Folder *folder, Str parent, Str path);
/* Renames all files into the parent under their own names, or none; false after an error in the diag. */
bool folder_commit(Cli *cli, Folder *folder, Str parent);
/* Takes that back, while the folder is there: what stood in the parent before stands there again. */
void folder_undo(Folder *folder);
/* Removes the folder with its files. */
void folder_remove(Folder *folder);

/* Runs a program in the folder and waits.  `words` ends with NULL; what it prints comes back in `output`.  The exit
 * status, or -1 with errno when the program cannot be started: ENOENT where it is not there. */
int folder_run(const Folder *folder, const char *const *words, Text *output);

#endif
