/* Diagnostics: errors, warnings and notes with their place in a source file, shown with the line and a caret.
 *
 *     digits.nnc:11:10: error: inner extents differ: f is f32[1, 6272], dense.weight is f32[1024, 10]
 *        11 |     y = f @ dense.weight
 *           |         ^~~~~~~~~~~~~~~~
 *
 * At most DIAG_LIMIT errors are shown; work goes on after each to find the next. */
#ifndef NNC_BASE_DIAG_H
#define NNC_BASE_DIAG_H

#include "base/text.h"

#define DIAG_LIMIT 20

typedef struct Place { /* a span of a source; source 0 means nowhere */
    uint32_t source, offset, length;
} Place;

typedef struct Source {
    Str path, text;
} Source;

typedef struct DiagEntry { /* what was reported, for who does not want it as text */
    bool error;            /* else a warning or a note */
    Str path;              /* empty: nowhere */
    uint32_t line, column; /* 1-based, columns in bytes; 0: the file as a whole */
    Str message;
} DiagEntry;

typedef struct Diag { /* zero is ready for use, once `arena` is set */
    Arena *arena;
    Source *source; /* 1-based through diag_source */
    uint32_t source_count, source_capacity;
    uint32_t error_count;
    Text text; /* what has been reported so far; the front end prints it to stderr */
    DiagEntry *entry;
    uint32_t entry_count, entry_capacity;
} Diag;

uint32_t diag_add_source(Diag *diag, Str path, Str text); /* both must outlive the diag; returns the Place's source */
const Source *diag_source(const Diag *diag, uint32_t source);

/* Always returns false, so that a check can end with `return diag_error(...)`. */
bool diag_error(Diag *diag, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* About what is most likely not meant; nothing fails.  The same at the same place is shown once. */
void diag_warning(Diag *diag, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));
void diag_note(Diag *diag, Place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* An error about a whole file (cannot open, truncated, ...), without a line. */
bool diag_file_error(Diag *diag, Str path, const char *format, ...) __attribute__((format(printf, 3, 4)));

static inline bool diag_full(const Diag *diag)
{
    return diag->error_count >= DIAG_LIMIT;
}

typedef struct DiagMark { /* how much has been reported */
    uint32_t error_count, entry_count;
    size_t text;
} DiagMark;
DiagMark diag_mark(const Diag *diag);
/* Forgets what has been reported since the mark, and gives the first error of it: who tries says it in other words. */
Str diag_take(Diag *diag, DiagMark since);

void diag_clear(Diag *diag); /* forgets what has been reported; sources stay */
void diag_free(Diag *diag);

#endif
