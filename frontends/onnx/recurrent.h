/* RNN, GRU and LSTM of ONNX, as both ways to write them see them. */
#ifndef NNC_ONNX_RECURRENT_H
#define NNC_ONNX_RECURRENT_H

#include "onnx/import.h"

typedef enum Kind { RNN, GRU, LSTM } Kind;

typedef struct Recurrence {
    OnnxNode *node;
    Kind kind;
    int64_t steps, batch, width, gates, directions;
    bool batch_first;
    bool usual;          /* sigmoid and tanh in their places, and nothing clipped */
    const char *xs;      /* [steps, batch, input] */
    const char *lengths; /* [batch, 1] as i64; NULL: all steps of all sequences */
    DType dtype;

    /* Of one direction: */
    int64_t direction;
    bool backward;
    const char *zs, *weight, *bias; /* input's part of the gates; hidden weight; hidden bias, or NULL: in zs */
} Recurrence;

/* recurrent_layer.c: `(ys, h) = gru@encoder(xs, 64)`, where the library has it and the weights are this node's alone */
bool onnx_recurrence_is_layer(const Recurrence *r);
bool onnx_write_recurrent_layer(Recurrence *r);

#endif
