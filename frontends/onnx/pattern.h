/* Patterns over several nodes: a formula that some exporter has spelled out, and what it is bound to.
 *
 * A pattern is written in brackets, `(* x 0.5 (+ 1 (Erf (* x 0.7071067811865476))))`:
 *   x            any value, the same wherever the name stands
 *   'eps         a number that is known, whatever it is
 *   0.5          this number
 *   d:(...)      what stands behind, by a name
 *   (+ a (- b))  a sum; its terms in any order, however they are nested
 *   (* a (^ b k) 0.5)   a product of powers; likewise, with divisions, roots and reciprocals
 *   (mean x) (sum x) (max x)   over axes that are kept, the same in the whole pattern
 *   (Op x y)     any other op, by its name
 * Values inside are read nowhere else. */
#ifndef NNC_ONNX_PATTERN_H
#define NNC_ONNX_PATTERN_H

#include "onnx/import.h"

#define PATTERN_NAMES 12
#define PATTERN_NODES 40

typedef struct OnnxOperand { /* of a node */
    OnnxValue *value;
    const OnnxNode *node;
    uint32_t index;
} OnnxOperand;

typedef struct OnnxBound {
    Str name;
    OnnxOperand operand;
    double number;
} OnnxBound;

typedef struct OnnxMatch {
    OnnxNode *root;
    OnnxBound bound[PATTERN_NAMES];
    uint32_t bound_count;
    const OnnxNode *inner[PATTERN_NODES]; /* all nodes, the root first */
    uint32_t inner_count;
    uint32_t most_rank; /* of numbers */
    uint32_t axes;      /* of all reductions, as bits */
    bool reduces, broken;
} OnnxMatch;

bool onnx_match(OnnxNode *root, const char *pattern, OnnxMatch *match);
const OnnxOperand *onnx_bound(const OnnxMatch *match, const char *name); /* which the pattern has */
double onnx_bound_number(const OnnxMatch *match, const char *name);

/* What other matchers need */
const OnnxNode *onnx_maker(const OnnxValue *value,
                           const char *op); /* the node of ONNX's own op that gives it, or NULL */
OnnxOperand onnx_operand(const OnnxNode *node, uint32_t index);
bool onnx_one_number(const OnnxValue *value, double *number); /* is it one element, and known? */
bool onnx_near(DType dtype, double a, double b);              /* equal, as far as the dtype can tell */
void onnx_match_start(OnnxMatch *match, OnnxNode *root);
void onnx_match_enter(OnnxMatch *match, OnnxOperand operand); /* its maker belongs to the pattern */
bool onnx_match_alone(const OnnxMatch *match);                /* are inner values read inside alone? */

/* fused.c: writes the node and those before it as one call, where a pattern ends here; false: nothing is written. */
bool onnx_write_pattern(OnnxNode *node);
bool onnx_write_heads(OnnxNode *node); /* heads.c: attention, heads taken apart and together, steps of layers */
/* shared_heads.c: `repeat` of what a reshape puts together, and `rotary`, which ends in a sum */
bool onnx_write_repeated(OnnxNode *reshape);
bool onnx_write_rotary(OnnxNode *sum);
/* The same as text where the reshape is inside of a pattern, in another shape; NULL: it repeats nothing. */
const char *onnx_repeated_text(OnnxMatch *match, const OnnxNode *reshape, const Shape *wanted);

#endif
