/* Files: read whole, map, and written so that a reader never sees half of one. */
#ifndef NNC_BASE_FILE_H
#define NNC_BASE_FILE_H

#include "base/diag.h"

/* Reads the file into the arena.  False, with a file error in the diag, when it cannot: what is no regular file (a
 * folder, a pipe, a device) is refused, and never waited for. */
bool file_read(Arena *arena, Diag *diag, Str path, Str *bytes);

/* Reads what is left of standard input; the same errors. */
bool file_read_input(Arena *arena, Diag *diag, Str *bytes);

/* Maps the file read-only for the life of the process or until file_unmap; the same errors. */
typedef struct FileMap {
    const unsigned char *bytes;
    size_t size;
} FileMap;
bool file_map(Diag *diag, Str path, FileMap *map);
void file_unmap(FileMap *map);

/* Writes under a temporary name in the same folder and renames when complete, or reports and leaves nothing. */
bool file_write(Diag *diag, Str path, const void *bytes, size_t size);

/* The same in pieces: open, write as often as needed with stdio, then commit or abandon. */
typedef struct FileWriter {
    void *stream; /* FILE * */
    char *path, *temporary;
    bool failed;
} FileWriter;
bool file_writer_open(FileWriter *writer, Diag *diag, Str path);
void file_writer_put(FileWriter *writer, const void *bytes, size_t size);
bool file_writer_commit(FileWriter *writer, Diag *diag);
void file_writer_abandon(FileWriter *writer);

bool file_exists(Str path);    /* whatever it is: also a link that leads nowhere */
bool file_same(Str a, Str b);  /* both are there, and one file, by whatever path */
bool file_clash(Str a, Str b); /* of two that are written, would one be lost?  Either may not be there yet */
bool file_make_folder(Diag *diag, Str path); /* with its parents; fine when it is there */

#endif
