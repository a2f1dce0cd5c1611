/* The op table as text for people: what `nnc ops` prints, and docs/ops.md (with the notes on each family). */
#ifndef NNC_OPS_DOC_H
#define NNC_OPS_DOC_H

#include "ir/op.h"

/* `conv2d(x, weight, bias?, stride = 1)`; an attribute that must be given shows its kind, `to: dtype`. */
void ops_print_signature(Text *out, const OpInfo *info);
const char *ops_attr_kind(AttrKind kind);
void ops_print_table(Text *out, size_t width); /* in columns */
/* `signature` and, beside it or below it, the words of `doc`. */
void ops_print_row(Text *out, Str signature, Str doc, size_t width);
void ops_print_markdown(Text *out);

#endif
