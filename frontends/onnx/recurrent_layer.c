/* Recurrent layers of the library, `(ys, h, c) = lstm@encoder(xs, 64)`: their gates are in another order, and their
 * weights are transposed. */
#include <string.h>

#include "onnx/recurrent.h"

enum { X, W, R, B, LENGTHS, H0, C0, P }; /* the node's operands */

#define MOST_PARAMS 12

typedef struct Layer {
    Recurrence *r;
    OnnxParam param[MOST_PARAMS];
    const Tensor *known[MOST_PARAMS];
    uint32_t count;
} Layer;

/* What the library's gates are called in ONNX's order: input, output, forget, cell; update, reset, new. */
static const uint32_t gate_order[][4] = {{0}, {1, 0, 2}, {0, 2, 3, 1}};

/* Is it left out, or zeros? */
static bool is_zero(const OnnxNode *n, uint32_t operand)
{
    const Tensor *known = onnx_has(n, operand) ? n->in[operand]->known : NULL;
    bool zero = known || !onnx_has(n, operand);
    for (int64_t i = 0; known && zero && i < shape_elements(&known->type->shape); i++)
        zero = tensor_number(known, i) == 0;
    return zero;
}

/* May its elements stand under another name? */
static bool gives_up_name(const OnnxNode *n, uint32_t operand)
{
    return !onnx_has(n, operand) || onnx_name_is_free(n, operand);
}

bool onnx_recurrence_is_layer(const Recurrence *r)
{
    static const OnnxParam always[] = {{W, NULL}, {R, NULL}}, bias[] = {{B, NULL}}, peephole[] = {{P, NULL}};
    const OnnxNode *n = r->node;
    bool same = r->kind == LSTM ? !onnx_int(n, "input_forget", 0)
                                : r->kind == RNN || onnx_int(n, "linear_before_reset", 0) != 0;
    return same && !r->lengths && r->usual && is_zero(n, H0) && is_zero(n, C0) && onnx_owns(n, always, 2) &&
           (!onnx_has(n, B) || onnx_owns(n, bias, 1)) && (!onnx_has(n, P) || onnx_owns(n, peephole, 1)) &&
           gives_up_name(n, W) && gives_up_name(n, R) && gives_up_name(n, B) && gives_up_name(n, P);
}

static void add_param(Layer *l, uint32_t operand, const char *name, const Tensor *known)
{
    const char *way = l->r->directions == 1 ? "" : l->r->direction ? "backward." : "forward.";
    l->param[l->count] = (OnnxParam){operand, onnx_text(l->r->node, "%s%s", way, name)};
    l->known[l->count++] = known;
}

static Tensor *new_tensor(const Layer *l, uint32_t rank, const int64_t *dim)
{
    return tensor_new(l->r->node->onnx->arena, module_plain_type(l->r->node->onnx->module, l->r->dtype, rank, dim));
}

/* [directions, gates * width, inputs] as [inputs, gates * width] of one direction */
static void add_weight(Layer *l, uint32_t operand, const char *name)
{
    const Recurrence *r = l->r;
    const Tensor *from = r->node->in[operand]->known;
    int64_t rows = r->gates * r->width, inputs = from->type->shape.dim[2];
    size_t size = dtype_bytes(r->dtype);
    Tensor *to = new_tensor(l, 2, (int64_t[]){inputs, rows});
    const char *source = (const char *)from->data + (size_t)(r->direction * rows * inputs) * size;
    char *target = to->data;
    for (int64_t row = 0; row < rows; row++) {
        int64_t other = gate_order[r->kind][row / r->width] * r->width + row % r->width;
        for (int64_t i = 0; i < inputs; i++)
            memcpy(target + (size_t)(i * rows + row) * size, source + (size_t)(other * inputs + i) * size, size);
    }
    add_param(l, operand, name, to);
}

/* ONNX has a bias of the input's product and one of the hidden state's, [directions, 2 * gates * width]; `parts` of
 * them, from `first` on, are added up. */
static void add_bias(Layer *l, uint32_t first, uint32_t parts, const char *name)
{
    const Recurrence *r = l->r;
    const Tensor *from = r->node->in[B]->known;
    int64_t rows = r->gates * r->width;
    Tensor *to = new_tensor(l, 1, &rows);
    for (int64_t row = 0; row < rows; row++) {
        int64_t other = gate_order[r->kind][row / r->width] * r->width + row % r->width;
        double sum = 0;
        for (uint32_t p = first; p < first + parts; p++)
            sum += tensor_number(from, (2 * r->direction + p) * rows + other);
        tensor_set_number(to, row, sum);
    }
    add_param(l, B, name, to);
}

/* [directions, 3 * width], of the gates input, output and forget */
static void add_peepholes(Layer *l)
{
    static const char *const name[] = {"input_peephole.weight", "output_peephole.weight", "forget_peephole.weight"};
    const Recurrence *r = l->r;
    size_t bytes = (size_t)r->width * dtype_bytes(r->dtype);
    for (int64_t gate = 0; gate < 3; gate++) {
        Tensor *to = new_tensor(l, 1, &r->width);
        memcpy(to->data, (const char *)r->node->in[P]->known->data + (size_t)(3 * r->direction + gate) * bytes, bytes);
        add_param(l, P, name[gate], to);
    }
}

static const OnnxLayer *declare(Layer *l)
{
    Recurrence *r = l->r;
    bool apart = r->kind == GRU;
    for (r->direction = 0; r->direction < r->directions; r->direction++) {
        add_weight(l, W, "input.weight");
        add_weight(l, R, "hidden.weight");
        if (onnx_has(r->node, B))
            add_bias(l, 0, apart ? 1 : 2, "input.bias");
        if (onnx_has(r->node, B) && apart)
            add_bias(l, 1, 1, "hidden.bias");
        if (onnx_has(r->node, P))
            add_peepholes(l);
    }
    OnnxLayer *layer = onnx_layer(r->node, l->param, l->count);
    memcpy(layer->known, l->known, l->count * sizeof *l->known);
    return layer;
}

/* [batch, directions * width] as ONNX has it */
static bool write_last(Recurrence *r, uint32_t i, const char *last)
{
    OnnxNode *n = r->node;
    const int64_t apart[] = {r->batch, r->directions, r->width}, one[] = {1, r->batch, r->width};
    if (!onnx_wants(n, i))
        return true;
    if (r->directions == 1 && !r->batch_first)
        return onnx_emit(n, "%s = reshape(%s, shape = %s)", onnx_out(n, i), last, onnx_list(n, one, 3));
    const char *rows = onnx_text(n, "reshape(%s, shape = %s)", last, onnx_list(n, apart, 3));
    return onnx_emit(n, r->batch_first ? "%s = %s" : "%s = transpose(%s, axes = [1, 0, 2])", onnx_out(n, i), rows);
}

/* [steps, batch, directions * width] as ONNX has it */
static bool write_all(Recurrence *r, const char *ys)
{
    OnnxNode *n = r->node;
    const int64_t apart[] = {r->steps, r->batch, r->directions, r->width}, one[] = {r->steps, 1, r->batch, r->width};
    if (!onnx_wants(n, 0))
        return true;
    if (r->directions == 1 && !r->batch_first)
        return onnx_emit(n, "%s = reshape(%s, shape = %s)", onnx_out(n, 0), ys, onnx_list(n, one, 4));
    return onnx_emit(n, "%s = transpose(reshape(%s, shape = %s), axes = %s)", onnx_out(n, 0), ys,
                     onnx_list(n, apart, 4), r->batch_first ? "[1, 0, 2, 3]" : "[0, 2, 1, 3]");
}

bool onnx_write_recurrent_layer(Recurrence *r)
{
    static const char *const function[] = {"rnn", "gru", "lstm"};
    OnnxNode *n = r->node;
    Layer l = {.r = r};
    const OnnxLayer *layer = declare(&l);
    bool cell = r->kind == LSTM;
    const char *ys = onnx_temp(n, "ys"), *h = onnx_temp(n, "last"), *c = cell ? onnx_temp(n, "cell") : "";
    const char *xs = r->backward ? onnx_text(n, "(%s)[::-1]", r->xs) : r->xs;
    if (!onnx_emit(n, "(%s, %s%s%s) = %s@%s(%s, %lld%s%s%s)", ys, h, cell ? ", " : "", c, function[r->kind],
                   layer->label, xs, (long long)r->width, onnx_has(n, P) ? ", peephole = true" : "",
                   r->directions == 2 ? ", bidirectional = true" : "", onnx_has(n, B) ? "" : ", with_bias = false") ||
        !onnx_layer_fits(n, layer))
        return false;
    if (r->backward) {
        const char *turned = onnx_temp(n, "turned");
        if (!onnx_emit(n, "%s = %s[::-1]", turned, ys))
            return false;
        ys = turned;
    }
    n->rows = r->batch_first ? NULL : ys;
    return write_all(r, ys) && write_last(r, 1, h) && (!cell || write_last(r, 2, c));
}
