/* Ensembles of trees, as nodes of ONNX list them (trees.c) and as the text of nnc computes them (trees_walk.c). */
#ifndef NNC_ONNX_TREES_H
#define NNC_ONNX_TREES_H

#include "onnx/import.h"

/* How a node compares the row's feature with its split; LEAF does not. */
enum { LEQ, LT, GTE, GT, EQ, NEQ, MEMBER, LEAF };

typedef struct Forest {
    OnnxNode *node;
    int64_t count, roots, targets, features;
    int64_t *feature, *yes, *no, *root;
    int32_t *mode;
    bool *missing_yes; /* NaN goes there */
    double *split;
    double **member; /* of MEMBER, ended by NaN */
    double *weight;  /* [count, targets] */
    bool *weighs;    /* the same: is there one? */
    int64_t depth;
} Forest;

/* The expression of what the leaves that each row reaches give, put together by SUM, AVERAGE, MIN or MAX: [rows,
 * targets]. NULL: it is said why it cannot be. */
const char *onnx_tree_scores(Forest *f, const char *aggregate);

#endif
