/* What differs between two texts, line by line (Myers 1986). */
#ifndef NNC_CLI_DIFF_H
#define NNC_CLI_DIFF_H

#include "base/text.h"

/* Lines of `before` that are gone with `-`, those of `after` that came with `+`, two others around them with a blank,
 * and
 * `@@` where lines are left out.  Nothing when the texts are equal.  Texts that differ in more than some thousand lines
 * are shown as all gone and all new. */
void diff_lines(Text *out, Str before, Str after);

#endif
