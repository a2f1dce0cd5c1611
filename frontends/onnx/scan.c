/* Scan: a body over slices of sequences, along any axis and in both directions. */
#include <string.h>

#include "onnx/body.h"

static int64_t entry(const OnnxNode *n, const char *name, uint32_t i)
{
    const int64_t *list;
    uint32_t count;
    return onnx_ints(n, name, &list, &count) && i < count ? list[i] : 0;
}

/* The axis comes first, or goes back to its place. */
static const char *move_axis(const OnnxNode *n, const char *x, uint32_t rank, int64_t axis, bool to_front)
{
    int64_t axes[MAX_RANK];
    axis += axis < 0 ? rank : 0;
    if (axis <= 0 || axis >= rank)
        return x;
    for (uint32_t d = 0; d < rank; d++)
        axes[d] = to_front ? (d == 0 ? axis : d <= axis ? d - 1 : d) : (d < axis ? d + 1 : d == axis ? 0 : d);
    return onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, rank));
}

typedef struct Scan {
    OnnxNode *node;
    const Onnx__GraphProto *body;
    uint32_t states, sequences, stacked, first; /* first: of the operands */
    bool batched;                               /* opset 8, a batch of one */
    const char **name, **source;                /* of body inputs; what they begin with or are slices of */
    const char *round;                          /* in the body, which draws: its number; else NULL */
} Scan;

static const char *scan_source(Scan *s, uint32_t i)
{
    OnnxNode *n = s->node;
    uint32_t at = s->first + i;
    const Shape *shape = &onnx_type(n, at)->shape;
    if (s->batched)
        return onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, at), onnx_list(n, shape->dim + 1, shape->rank - 1));
    if (i < s->states)
        return onnx_in(n, at);
    const char *x = move_axis(n, onnx_in(n, at), shape->rank, entry(n, "scan_input_axes", i - s->states), true);
    const char *name = onnx_temp(n, "sequence");
    bool reversed = entry(n, "scan_input_directions", i - s->states) != 0;
    return onnx_emit(n, reversed ? "%s = slice(%s, axes = 0, begin = -1, end = -%lld, step = -1)" : "%s = %s", name, x,
                     (long long)INT32_MAX)
               ? name
               : x;
}

static int64_t rounds_of(const Scan *s)
{
    const Shape *shape = &onnx_type(s->node, s->first + s->states)->shape;
    int64_t axis = s->batched ? 1 : entry(s->node, "scan_input_axes", 0);
    return shape->dim[axis < 0 ? axis + shape->rank : axis];
}

static const Type *slice_type(Scan *s, uint32_t i)
{
    const OnnxNode *n = s->node;
    const Type *type = onnx_type(n, s->first + i);
    Shape shape = {0};
    int64_t axis = i < s->states || s->batched ? -1 : entry(n, "scan_input_axes", i - s->states);
    axis += i >= s->states && axis < 0 && !s->batched ? type->shape.rank : 0;
    for (uint32_t d = s->batched; d < type->shape.rank; d++) {
        bool gone = s->batched ? i >= s->states && d == 1 : i >= s->states && d == axis;
        if (!gone)
            shape.dim[shape.rank++] = type->shape.dim[d];
    }
    return module_type(n->onnx->module, type->dtype, &shape, (Layout){0});
}

static bool start_scan(OnnxNode *n, Scan *s)
{
    const Onnx__GraphProto *body = onnx_body_graph(n, "body");
    int64_t sequences = onnx_int(n, "num_scan_inputs", 0);
    *s = (Scan){.node = n, .body = body, .first = n->opset < 9, .batched = n->opset < 9};
    if (!onnx_body_check(n, body))
        return false;
    uint32_t operands = n->in_count - s->first;
    if (sequences < 1 || sequences > operands || body->n_input != operands ||
        (int64_t)body->n_output < (int64_t)operands - sequences)
        return onnx_no(n, "its body does not fit its operands");
    if (s->batched && (onnx_has(n, 0) || onnx_attribute(n, "directions")))
        return onnx_no(n, "it has lengths of sequences or directions, of opset 8");
    s->sequences = (uint32_t)sequences;
    s->states = operands - s->sequences;
    s->stacked = (uint32_t)body->n_output - s->states;
    for (uint32_t i = 0; i < operands; i++)
        if (!onnx_has(n, s->first + i) || onnx_rank(n, s->first + i) < (uint32_t)(i >= s->states) + s->batched)
            return onnx_no(n, "operand %u is missing or has too few dimensions", s->first + i);
    if (s->batched && onnx_dim(n, 1, 0) != 1)
        return onnx_no(n, "it has a batch of more than one, of opset 8");
    s->name = ARENA_ARRAY(n->onnx->arena, const char *, operands + 1);
    s->source = ARENA_ARRAY(n->onnx->arena, const char *, operands + 1);
    return true;
}

static void put_scan(const Scan *s, const char *const *result, const char *const *value, Str body, Text *out)
{
    onnx_body_results(out, result, s->states + s->stacked);
    text_printf(out, "scan (");
    for (uint32_t i = 0; i < s->sequences; i++)
        text_printf(out, "%s%s in %s", i ? ", " : "", s->name[s->states + i], s->source[s->states + i]);
    if (s->round)
        text_printf(out, ", %s in iota(shape = [%lld], dtype = i64)", s->round, (long long)rounds_of(s));
    text_printf(out, ")");
    for (uint32_t i = 0; i < s->states; i++)
        text_printf(out, "%s%s = %s", i ? ", " : " with (", s->name[i], s->source[i]);
    text_printf(out, s->states ? ") {\n" : " {\n");
    onnx_body_put(out, body);
    text_printf(out, "}");
    for (uint32_t i = 0; i < s->states; i++)
        text_printf(out, "%s%s <- %s", i ? ", " : " next (", s->name[i], value[i]);
    text_printf(out, s->states ? ")" : "");
    for (uint32_t i = 0; i < s->stacked; i++)
        text_printf(out, "%s%s", i ? ", " : " stack (", value[s->states + i]);
    text_printf(out, s->stacked ? ")" : "");
}

/* What a scan gives, along the axis and in the direction that are wanted */
static bool finish_scan(Scan *s, const char *const *result)
{
    OnnxNode *n = s->node;
    for (uint32_t i = 0; i < s->states + s->stacked; i++) {
        const Type *type = onnx_type_of(n, result[i]);
        if (!type || !onnx_wants(n, i))
            continue;
        int64_t dim[MAX_RANK + 1] = {1};
        for (uint32_t d = 0; d < type->shape.rank; d++)
            dim[d + 1] = type->shape.dim[d];
        const char *x = result[i];
        if (s->batched)
            x = onnx_text(n, "reshape(%s, shape = %s)", x, onnx_list(n, dim, type->shape.rank + 1));
        else if (i >= s->states && entry(n, "scan_output_directions", i - s->states))
            x = onnx_text(n, "%s[::-1]", x);
        if (!s->batched && i >= s->states)
            x = move_axis(n, x, type->shape.rank, entry(n, "scan_output_axes", i - s->states), false);
        if (!onnx_emit(n, "%s = %s", onnx_out(n, i), x))
            return false;
    }
    return true;
}

static bool write_scan(OnnxNode *n)
{
    Scan s;
    if (!start_scan(n, &s))
        return false;
    Onnx *onnx = n->onnx;
    OnnxScope *scope = onnx_body_scope(n);
    OnnxValue **value = ARENA_ARRAY(onnx->arena, OnnxValue *, s.body->n_output + 1);
    const char **result = ARENA_ARRAY(onnx->arena, const char *, s.body->n_output + 1);
    const char **next = ARENA_ARRAY(onnx->arena, const char *, s.body->n_output + 1);
    for (uint32_t i = 0; i < s.states + s.sequences; i++)
        s.source[i] = scan_source(&s, i);
    for (uint32_t i = 0; i < s.states + s.stacked; i++)
        result[i] = onnx_temp(n, i < s.states ? "state" : "stacked");
    onnx_block_open(onnx, false);
    for (uint32_t i = 0; i < s.states + s.sequences; i++) {
        const char *name = onnx_body_name(s.body->input[i]->name);
        onnx_bind(scope, onnx, name, onnx_body_carried(n, name, slice_type(&s, i), &s.name[i]));
    }
    if (onnx_body_draws(s.body))
        onnx->block->round = onnx_body_carried(n, "round", module_plain_type(onnx->module, DT_I64, 0, NULL), &s.round);
    bool good = onnx_body_import(n, scope, s.body, value);
    for (uint32_t i = 0; good && i < s.states + s.stacked; i++) /* what the body captures is named in it */
        good = !value[i]->type          ? onnx_no(n, "its body gives a sequence")
               : onnx_is_open(value[i]) ? onnx_no(n, "its body gives what is as large as data say")
                                        : (next[i] = onnx_name_value(onnx, value[i])) != NULL;
    Text text = {0}, words = {0};
    for (uint32_t i = 0; good && i < s.states + s.stacked; i++)
        text_printf(&words, "%s ", next[i]);
    Str body = onnx_body_read(onnx->arena, onnx_block_close(onnx), text_view(&words));
    text_free(&words);
    if (good)
        put_scan(&s, result, next, body, &text);
    good = good && onnx_emit(n, "%s", text.ptr) && finish_scan(&s, result);
    text_free(&text);
    return good;
}

const OnnxRow onnx_scan[] = {
    {"Scan", 8, write_scan, NULL, NULL, true},
    {0},
};
