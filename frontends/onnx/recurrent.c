/* RNN, GRU and LSTM: as a layer of the library, or the product with all steps at once, then a scan over them, for each
 * direction. */
#include "onnx/recurrent.h"

#include <string.h>

static const char *names(Recurrence *r, const char *word)
{
    return onnx_temp(r->node, word);
}

/* Part `direction` of an operand [directions, ...]. */
static const char *part(Recurrence *r, uint32_t i)
{
    const Shape *shape = &onnx_type(r->node, i)->shape;
    const char *list = onnx_list(r->node, shape->dim + 1, shape->rank - 1), *x = onnx_in(r->node, i);
    if (r->directions == 1)
        return onnx_text(r->node, "reshape(%s, shape = %s)", x, list);
    return onnx_text(r->node, "%s[%lld]", x, (long long)r->direction);
}

/* Activations: a name for each gate, with the numbers A and B for those that take some */

typedef struct Activation {
    const char *name, *text;
    double alpha, beta;
} Activation;

static const Activation activation_table[] = {
    {"Sigmoid", "sigmoid($)", 0, 0},
    {"Tanh", "tanh($)", 0, 0},
    {"Relu", "relu($)", 0, 0},
    {"Softsign", "softsign($)", 0, 0},
    {"Softplus", "softplus($)", 0, 0},
    {"LeakyRelu", "leaky_relu($, A)", 0.01, 0},
    {"Elu", "elu($, A)", 1, 0},
    {"HardSigmoid", "clip($ * A + B, 0.0, 1.0)", 0.2, 0.5},
    {"ThresholdedRelu", "select($ > A, $, 0.0)", 1, 0},
    {"Affine", "($ * A + B)", 1, 0},
    {"ScaledTanh", "(tanh($ * B) * A)", 1, 1},
};

static const char *const usual_activation[][3] = {{"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
static const uint32_t activations_of[] = {1, 2, 3}; /* each kind, in one direction */

static double number_at(const OnnxNode *n, const char *name, uint32_t i, double fallback)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    return a && i < a->n_floats ? (double)a->floats[i] : fallback;
}

static bool same_word(const ProtobufCBinaryData *word, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < length && i < word->len; i++)
        if ((word->data[i] | 32) != (name[i] | 32))
            return false;
    return word->len == length;
}

static bool is_usual(const Recurrence *r)
{
    const Onnx__AttributeProto *a = onnx_attribute(r->node, "activations");
    bool usual = true;
    for (uint32_t i = 0; a && i < a->n_strings; i++)
        usual &= same_word(&a->strings[i], usual_activation[r->kind][i % activations_of[r->kind]]);
    return usual && onnx_float(r->node, "clip", 0) <= 0;
}

/* Number `at` of those of all directions; NULL: the name is unknown. */
static const Activation *activation_at(const Recurrence *r, uint32_t at)
{
    const Onnx__AttributeProto *a = onnx_attribute(r->node, "activations");
    const char *fallback = usual_activation[r->kind][at % activations_of[r->kind]];
    ProtobufCBinaryData word = {strlen(fallback), (uint8_t *)(uintptr_t)fallback};
    if (a && at < a->n_strings)
        word = a->strings[at];
    for (size_t k = 0; k < sizeof activation_table / sizeof *activation_table; k++)
        if (same_word(&word, activation_table[k].name))
            return &activation_table[k];
    return NULL;
}

/* A or B of activation `at`: those take one in turn that have any. */
static const char *number_of(const Recurrence *r, uint32_t at, char letter, double fallback)
{
    uint32_t taken = 0;
    for (uint32_t k = 0; k < at; k++) {
        const Activation *before = activation_at(r, k);
        taken += before && strchr(before->text, letter) != NULL;
    }
    const char *list = letter == 'A' ? "activation_alpha" : "activation_beta";
    return onnx_number(r->node, r->dtype, number_at(r->node, list, taken, fallback));
}

/* Activation `i` of the direction, of x. */
static const char *activate(Recurrence *r, uint32_t i, const char *x)
{
    uint32_t at = (uint32_t)r->direction * activations_of[r->kind] + i;
    const Activation *activation = activation_at(r, at);
    if (!activation)
        return onnx_no(r->node, "an activation is unknown"), x;
    Text text = {0};
    for (const char *c = activation->text; *c; c++) {
        if (*c == '$')
            text_str(&text, str_from(x));
        else if (*c == 'A' || *c == 'B')
            text_str(&text, str_from(number_of(r, at, *c, *c == 'A' ? activation->alpha : activation->beta)));
        else
            text_char(&text, *c);
    }
    const char *filled = onnx_text(r->node, "%s", text.ptr);
    text_free(&text);
    return filled;
}

static const char *clipped(Recurrence *r, const char *x)
{
    double bound = onnx_float(r->node, "clip", 0);
    if (bound <= 0)
        return x;
    return onnx_text(r->node, "clip(%s, %s, %s)", x, onnx_number(r->node, r->dtype, -bound),
                     onnx_number(r->node, r->dtype, bound));
}

/* The parts that all kinds share */

static bool take_lengths(Recurrence *r)
{
    OnnxNode *n = r->node;
    bool whole = true;
    if (!onnx_has(n, 4))
        return true;
    const Tensor *known = n->in[4]->known;
    for (int64_t i = 0; known && i < r->batch; i++)
        whole &= tensor_number(known, i) == (double)r->steps;
    if (known && whole)
        return true;
    r->lengths = names(r, "lengths");
    return onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = [%lld, 1])", r->lengths, onnx_in(n, 4),
                     (long long)r->batch);
}

/* States before the first step, [directions, batch, width], and peepholes, [directions, 3 * width] */
static bool states_fit(const Recurrence *r)
{
    const OnnxNode *n = r->node;
    int64_t state[] = {r->batch_first ? r->batch : r->directions, r->batch_first ? r->directions : r->batch, r->width};
    for (uint32_t i = 5; i <= (r->kind == LSTM ? 6 : 5); i++)
        for (uint32_t d = 0; onnx_has(n, i) && d < 3; d++)
            if (onnx_rank(n, i) != 3 || onnx_dim(n, i, d) != state[d])
                return false;
    return r->kind != LSTM || !onnx_has(n, 7) ||
           (onnx_rank(n, 7) == 2 && onnx_dim(n, 7, 0) == r->directions && onnx_dim(n, 7, 1) == 3 * r->width);
}

static bool start(Recurrence *r, OnnxNode *n, Kind kind)
{
    static const int64_t gates[] = {1, 3, 4};
    const char *direction = onnx_string(n, "direction", "forward");
    if (onnx_rank(n, 0) != 3 || onnx_rank(n, 1) != 3 || onnx_rank(n, 2) != 3)
        return onnx_no(n, "its operands have not 3 dimensions");
    bool first = onnx_int(n, "layout", 0) != 0;
    *r = (Recurrence){
        .node = n, .kind = kind, .batch_first = first, .gates = gates[kind], .dtype = onnx_type(n, 0)->dtype};
    r->steps = onnx_dim(n, 0, first ? 1 : 0);
    r->batch = onnx_dim(n, 0, first ? 0 : 1);
    r->width = onnx_dim(n, 2, 2);
    r->directions = onnx_dim(n, 1, 0);
    bool both = strcmp(direction, "bidirectional") == 0;
    if (r->directions != 1 + both || onnx_dim(n, 0, 2) != onnx_dim(n, 1, 2) ||
        onnx_dim(n, 1, 1) != r->gates * r->width || onnx_dim(n, 2, 1) != r->gates * r->width ||
        onnx_dim(n, 2, 0) != r->directions || r->steps < 1)
        return onnx_no(n, "its operands do not fit each other");
    if ((onnx_has(n, 3) &&
         (onnx_rank(n, 3) != 2 || onnx_dim(n, 3, 1) != 2 * r->gates * r->width || onnx_dim(n, 3, 0) != r->directions)))
        return onnx_no(n, "its bias does not fit");
    if (!states_fit(r))
        return onnx_no(n, "its first states or peepholes do not fit");
    r->backward = strcmp(direction, "reverse") == 0;
    r->usual = is_usual(r);
    r->xs = first ? onnx_text(n, "transpose(%s, axes = [1, 0, 2])", onnx_in(n, 0)) : onnx_in(n, 0);
    return take_lengths(r);
}

/* zs = xs @ w' + bias; where the reset stands behind the product, its bias stays with that. */
static bool multiply(Recurrence *r)
{
    OnnxNode *n = r->node;
    int64_t rows = r->gates * r->width;
    bool apart = r->kind == GRU && onnx_int(n, "linear_before_reset", 0);
    const char *xs =
        r->backward ? onnx_text(n, "%s[::-1]", r->batch_first ? onnx_text(n, "(%s)", r->xs) : r->xs) : r->xs;
    r->weight = names(r, "hidden");
    r->zs = names(r, "gates");
    r->bias = NULL;
    if (!onnx_emit(n, "%s = %s", r->weight, part(r, 2)))
        return false;
    if (!onnx_has(n, 3))
        return onnx_emit(n, "%s = matmul(%s, %s, transpose_y = true)", r->zs, xs, part(r, 1));
    const char *bias = names(r, "bias");
    const char *sum = apart ? onnx_text(n, "%s[0:%lld]", bias, (long long)rows)
                            : onnx_text(n, "%s[0:%lld] + %s[%lld:%lld]", bias, (long long)rows, bias, (long long)rows,
                                        (long long)(2 * rows));
    if (apart)
        r->bias = names(r, "hidden_bias");
    return onnx_emit(n, "%s = %s", bias, part(r, 3)) &&
           onnx_emit(n, "%s = matmul(%s, %s, transpose_y = true) + (%s)", r->zs, xs, part(r, 1), sum) &&
           (!apart || onnx_emit(n, "%s = %s[%lld:%lld]", r->bias, bias, (long long)rows, (long long)(2 * rows)));
}

/* The first value of h or c: an operand, or zeros. */
static const char *first_value(Recurrence *r, uint32_t i)
{
    OnnxNode *n = r->node;
    if (!onnx_has(n, i))
        return onnx_text(n, "zeros([%lld, %lld], %s)", (long long)r->batch, (long long)r->width, dtype_name(r->dtype));
    if (r->batch_first)
        return onnx_text(n, "reshape(%s[:, %lld], shape = [%lld, %lld])", onnx_in(n, i), (long long)r->direction,
                         (long long)r->batch, (long long)r->width);
    return part(r, i);
}

/* What a step computes: lines of text, and the names of the new h and c. */
typedef struct Step {
    Text body;
    const char *z, *h, *c, *t, *h1, *c1;
} Step;

static const char *slice_of(Recurrence *r, const char *x, int64_t gate)
{
    return onnx_text(r->node, "%s[:, %lld:%lld]", x, (long long)(gate * r->width), (long long)((gate + 1) * r->width));
}

static void write_rnn_step(Recurrence *r, Step *s)
{
    const char *sum = names(r, "sum");
    text_printf(&s->body, "    %s = %s + matmul(%s, %s, transpose_y = true)\n", sum, s->z, s->h, r->weight);
    text_printf(&s->body, "    %s = %s\n", s->h1, activate(r, 0, clipped(r, sum)));
}

static void write_gru_step(Recurrence *r, Step *s)
{
    OnnxNode *n = r->node;
    const char *hs = names(r, "hs"), *u = names(r, "update"), *v = names(r, "reset"), *sum = names(r, "sum");
    const char *wu = onnx_text(n, "%s[0:%lld]", r->weight, (long long)(2 * r->width));
    const char *wn = onnx_text(n, "%s[%lld:%lld]", r->weight, (long long)(2 * r->width), (long long)(3 * r->width));
    bool apart = onnx_int(n, "linear_before_reset", 0) != 0;
    const char *bias_u = r->bias ? onnx_text(n, " + %s[0:%lld]", r->bias, (long long)(2 * r->width)) : "";
    const char *bias_n =
        r->bias ? onnx_text(n, " + %s[%lld:%lld]", r->bias, (long long)(2 * r->width), (long long)(3 * r->width)) : "";
    text_printf(&s->body, "    %s = %s[:, 0:%lld] + matmul(%s, %s, transpose_y = true)%s\n", hs, s->z,
                (long long)(2 * r->width), s->h, wu, bias_u);
    text_printf(&s->body, "    %s = %s\n", u, activate(r, 0, clipped(r, slice_of(r, hs, 0))));
    text_printf(&s->body, "    %s = %s\n", v, activate(r, 0, clipped(r, slice_of(r, hs, 1))));
    if (apart)
        text_printf(&s->body, "    %s = %s + %s * (matmul(%s, %s, transpose_y = true)%s)\n", sum, slice_of(r, s->z, 2),
                    v, s->h, wn, bias_n);
    else
        text_printf(&s->body, "    %s = %s + matmul(%s * %s, %s, transpose_y = true)\n", sum, slice_of(r, s->z, 2), v,
                    s->h, wn);
    text_printf(&s->body, "    %s = (1.0 - %s) * %s + %s * %s\n", s->h1, u, activate(r, 1, clipped(r, sum)), u, s->h);
}

/* What a gate sees of the cell */
static const char *peephole(Recurrence *r, const char *cell, int64_t which)
{
    if (!onnx_has(r->node, 7))
        return "";
    return onnx_text(r->node, " + %s * reshape(%s[%lld, %lld:%lld], shape = [%lld])", cell, onnx_in(r->node, 7),
                     (long long)r->direction, (long long)(which * r->width), (long long)((which + 1) * r->width),
                     (long long)r->width);
}

static void write_lstm_step(Recurrence *r, Step *s)
{
    OnnxNode *n = r->node;
    const char *sum = names(r, "sum"), *i = names(r, "i"), *f = names(r, "f"), *o = names(r, "o"), *g = names(r, "g");
    const char *in = onnx_text(n, "%s%s", slice_of(r, sum, 0), peephole(r, s->c, 0));
    const char *forget = onnx_text(n, "%s%s", slice_of(r, sum, 2), peephole(r, s->c, 2));
    const char *out = onnx_text(n, "%s%s", slice_of(r, sum, 1), peephole(r, s->c1, 1));
    text_printf(&s->body, "    %s = %s + matmul(%s, %s, transpose_y = true)\n", sum, s->z, s->h, r->weight);
    text_printf(&s->body, "    %s = %s\n", i, activate(r, 0, clipped(r, onnx_text(n, "(%s)", in))));
    if (onnx_int(n, "input_forget", 0))
        text_printf(&s->body, "    %s = 1.0 - %s\n", f, i);
    else
        text_printf(&s->body, "    %s = %s\n", f, activate(r, 0, clipped(r, onnx_text(n, "(%s)", forget))));
    text_printf(&s->body, "    %s = %s\n", g, activate(r, 1, clipped(r, slice_of(r, sum, 3))));
    text_printf(&s->body, "    %s = %s * %s + %s * %s\n", s->c1, f, s->c, i, g);
    text_printf(&s->body, "    %s = %s\n", o, activate(r, 0, clipped(r, onnx_text(n, "(%s)", out))));
    text_printf(&s->body, "    %s = %s * %s\n", s->h1, o, activate(r, 2, s->c1));
}

/* Behind the end of a sequence its state stays, and what it gives is 0. */
static const char *mask_step(Recurrence *r, Step *s, const char **h, const char **c)
{
    const char *runs = names(r, "runs"), *y = names(r, "y"), *zero = "0.0";
    *h = names(r, "h");
    text_printf(&s->body, "    %s = %s < %s\n", runs, s->t, r->lengths);
    text_printf(&s->body, "    %s = select(%s, %s, %s)\n", *h, runs, s->h1, s->h);
    if (r->kind == LSTM) {
        *c = names(r, "c");
        text_printf(&s->body, "    %s = select(%s, %s, %s)\n", *c, runs, s->c1, s->c);
    }
    text_printf(&s->body, "    %s = select(%s, %s, %s)\n", y, runs, s->h1, zero);
    return y;
}

typedef struct Result { /* of one direction */
    const char *ys, *h, *c;
} Result;

static bool scan(Recurrence *r, Result *result)
{
    OnnxNode *n = r->node;
    Step s = {.z = names(r, "z"),
              .h = names(r, "h"),
              .c = names(r, "c"),
              .t = names(r, "t"),
              .h1 = names(r, "h1"),
              .c1 = names(r, "c1")};
    bool cell = r->kind == LSTM;
    *result = (Result){names(r, "ys"), names(r, "last"), cell ? names(r, "cell") : NULL};
    Text text = {0};
    const char *last = r->lengths ? names(r, "end") : "", *h = s.h1, *c = s.c1, *y = s.h1;

    (r->kind == RNN ? write_rnn_step : r->kind == GRU ? write_gru_step : write_lstm_step)(r, &s);
    if (r->lengths)
        y = mask_step(r, &s, &h, &c);
    text_printf(&text, "(%s%s%s%s%s, %s) = scan (%s in %s) with (%s = %s", result->h, cell ? ", " : "",
                cell ? result->c : "", *last ? ", " : "", last, result->ys, s.z, r->zs, s.h, first_value(r, 5));
    if (cell)
        text_printf(&text, ", %s = %s", s.c, first_value(r, 6));
    if (r->lengths)
        text_printf(&text, ", %s: i64[] = %lld", s.t, (long long)(r->backward ? r->steps - 1 : 0));
    text_printf(&text, ") {\n%s} next (%s <- %s", s.body.ptr, s.h, h);
    if (cell)
        text_printf(&text, ", %s <- %s", s.c, c);
    if (r->lengths)
        text_printf(&text, ", %s <- %s %s 1", s.t, s.t, r->backward ? "-" : "+");
    text_printf(&text, ") stack (%s)", y);
    bool good = !n->reason && onnx_emit(n, "%s", text.ptr);
    text_free(&s.body);
    text_free(&text);
    return good;
}

/* [steps, batch, width] of each direction as one [steps, directions, batch, width] */
static bool finish(Recurrence *r, const Result *result)
{
    OnnxNode *n = r->node;
    int64_t all[] = {r->steps, 1, r->batch, r->width}, one[] = {1, r->batch, r->width};
    const char *sequence[2], *last[2], *cell[2];
    for (int64_t d = 0; d < r->directions; d++) {
        bool reversed = r->backward || d;
        sequence[d] =
            onnx_text(n, "reshape(%s%s, shape = %s)", result[d].ys, reversed ? "[::-1]" : "", onnx_list(n, all, 4));
        last[d] = onnx_text(n, "reshape(%s, shape = %s)", result[d].h, onnx_list(n, one, 3));
        cell[d] = r->kind == LSTM ? onnx_text(n, "reshape(%s, shape = %s)", result[d].c, onnx_list(n, one, 3)) : "";
    }
    bool both = r->directions == 2;
    const char *ys = both ? onnx_text(n, "concat(%s, %s, axis = 1)", sequence[0], sequence[1]) : sequence[0];
    const char *h = both ? onnx_text(n, "concat(%s, %s)", last[0], last[1]) : last[0];
    const char *c = both ? onnx_text(n, "concat(%s, %s)", cell[0], cell[1]) : cell[0];
    if (r->batch_first) {
        ys = onnx_text(n, "transpose(%s, axes = [2, 0, 1, 3])", ys);
        h = onnx_text(n, "transpose(%s, axes = [1, 0, 2])", h);
        c = onnx_text(n, "transpose(%s, axes = [1, 0, 2])", c);
    }
    return (!onnx_wants(n, 0) || onnx_emit(n, "%s = %s", onnx_out(n, 0), ys)) &&
           (!onnx_wants(n, 1) || onnx_emit(n, "%s = %s", onnx_out(n, 1), h)) &&
           (!onnx_wants(n, 2) || r->kind != LSTM || onnx_emit(n, "%s = %s", onnx_out(n, 2), c));
}

static bool recur(OnnxNode *n, Kind kind)
{
    Recurrence r;
    Result result[2];
    if (!start(&r, n, kind))
        return false;
    bool backward = r.backward;
    if (onnx_recurrence_is_layer(&r))
        return onnx_write_recurrent_layer(&r);
    for (r.direction = 0; r.direction < r.directions; r.direction++) {
        r.backward = backward || r.direction == 1;
        if (!multiply(&r) || !scan(&r, &result[r.direction]))
            return false;
    }
    r.backward = backward;
    return finish(&r, result);
}

static bool write_rnn(OnnxNode *n)
{
    return recur(n, RNN);
}

static bool write_gru(OnnxNode *n)
{
    return recur(n, GRU);
}

static bool write_lstm(OnnxNode *n)
{
    return recur(n, LSTM);
}

const OnnxRow onnx_recurrent[] = {
    {"RNN", 7, write_rnn, NULL, NULL, false},
    {"GRU", 7, write_gru, NULL, NULL, false},
    {"LSTM", 7, write_lstm, NULL, NULL, false},
    {0},
};
