/* Attributes by name: for ops, which say what they mean, and for simplify.  All others ask ops/meaning.h. */
#ifndef NNC_IR_ATTR_H
#define NNC_IR_ATTR_H

#include "ir/graph.h"

const Attr *attr_of(const Node *node, const char *name); /* asserts that the op has it */
int64_t attr_int(const Node *node, const char *name);
double attr_float(const Node *node, const char *name);
bool attr_bool(const Node *node, const char *name);
/* A list attribute brought to `count` entries: a single integer is repeated. */
void attr_ints(const Node *node, const char *name, uint32_t count, int64_t *out);

#endif
