/* Bodies of If, Loop and Scan.
 *
 * A body is imported twice over: first into a graph of its own, which tells the types of its values, then as the text
 * of that, which is built as part of the statement around. */
#ifndef NNC_ONNX_BODY_H
#define NNC_ONNX_BODY_H

#include "onnx/import.h"

static inline const char *onnx_body_name(const char *name)
{
    return name ? name : "";
}

const Onnx__GraphProto *onnx_body_graph(const OnnxNode *node, const char *attribute); /* NULL: there is none */
bool onnx_body_check(OnnxNode *node, const Onnx__GraphProto *body);                   /* false after onnx_no */
OnnxScope *onnx_body_scope(OnnxNode *node); /* of names in a body, which sees those around */
/* An input of the current block, which goes round or is a slice; *name is what the text calls it. */
OnnxValue *onnx_body_carried(OnnxNode *node, const char *wish, const Type *type, const char **name);
/* The nodes of a body, in the current block, and its results.  False after errors or refusals. */
bool onnx_body_import(OnnxNode *node, OnnxScope *scope, const Onnx__GraphProto *body, OnnxValue **result);

/* `a, b`, of tensors of fixed shapes; false with a reason. */
bool onnx_body_names(OnnxNode *node, Text *out, OnnxValue *const *value, size_t count);
const char *onnx_body_scalar(OnnxNode *node, uint32_t operand); /* of one element, under no dimensions */

/* Without statements whose results none of these words is, nor a statement behind them reads. */
Str onnx_body_read(Arena *arena, Str text, Str words);
void onnx_body_put(Text *out, Str text);                                  /* indented */
void onnx_body_results(Text *out, const char *const *name, size_t count); /* `(a, b) = `, or `a = ` */

/* live.c: what of a Loop is read */
typedef struct OnnxLive {
    const Onnx__GraphProto *body; /* with that alone */
    bool *kept;                   /* of its results, which are left: those that go round, and those of each round */
    bool counts;                  /* it reads the number of the round */
} OnnxLive;
/* Of a body with so many values that go round, which has inputs and outputs for them */
void onnx_find_live(OnnxNode *node, const Onnx__GraphProto *body, uint32_t carried, OnnxLive *live);

#endif
