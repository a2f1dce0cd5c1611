/* The op table as text for people: what `nnc ops` prints, and docs/ops.md. */
#ifndef NNC_OPS_DOC_H
#define NNC_OPS_DOC_H

#include "base/text.h"

void ops_print_table(Text *out);
void ops_print_markdown(Text *out);

#endif
