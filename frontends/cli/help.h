/* Help, from the verbs' rows: as text, as a man page, as docs/cli.md. */
#ifndef NNC_CLI_HELP_H
#define NNC_CLI_HELP_H

#include "cli/cli.h"

void help_text(Text *out, const Verb *verb, size_t width); /* verb NULL: the overview */
void help_man(Text *out);
void help_markdown(Text *out);

/* `nnc plan MODEL`, and after it the flags: `[-o DIR] [--target T] ...` */
void help_synopsis(Text *out, const Verb *verb);
/* `--target T` or `-o DIR` */
void help_flag(Text *out, const Flag *flag);

#define HELP_TAGLINE "an ahead-of-time compiler for neural networks"

/* Exit statuses: one row each. */
extern const char *const help_status[4];
extern const char help_output[]; /* how wide what is printed is, and in which colours */

#endif
