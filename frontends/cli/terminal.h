/* The terminal: how wide it is, whether it shows colours, and the line on it that tells of the present step. */
#ifndef NNC_CLI_TERMINAL_H
#define NNC_CLI_TERMINAL_H

#include "base/text.h"

/* Columns for text on stdout: COLUMNS, else the terminal's own, else 80; from 20 to 500. */
uint32_t terminal_width(void);
/* The same, or 0 when neither COLUMNS nor a terminal says: for rows that other programs may read. */
uint32_t terminal_known_width(void);

/* Rows for people and programs: folded into what is known of the width, else as they are. */
void terminal_fold(Text *out, Str rows);

/* Diagnostics as they go to stderr: coloured where it is a terminal, unless NO_COLOR is set or TERM is `dumb`. */
void terminal_put_diagnostics(const Text *text);

/* `who: message` to stderr, coloured in the same way; lines of the message with what terminals show, folded as rows are
 * where they are no other program's. */
void terminal_put_error(const char *who, Str message, bool fold);

/* Shows a step on one line of stderr that the next step replaces; nothing where it is no terminal. */
void terminal_step(const char *step);
/* The same for any line of UTF-8 that fits into terminal_width(). */
void terminal_line(const char *line);
/* Does anybody see those lines? */
bool terminal_shows_lines(void);
/* Erases that line, for other text to take its place. */
void terminal_clear_step(void);

#endif
