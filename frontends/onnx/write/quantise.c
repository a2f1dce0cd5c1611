/* Integers that stand for floats, as ONNX has them: what is divided, rounded, moved and cut off, and the way back.
 *
 *     cast(clip(round(x / scale) + cast(zero, to = f32), -128.0, 127.0), to = i8)     QuantizeLinear
 *     cast(cast(q, to = i32) - cast(zero, to = i32), to = f32) * scale                DequantizeLinear
 *
 * The zero point may be absent.  Scale and zero point are numbers, or reshapes of lists along one axis. */
#include "onnx/write/export.h"

#include <stdio.h>
#include <string.h>

typedef struct Quantised {
    ValueId x, scale, zero; /* zero: NONE: there is none */
    int64_t axis;           /* -1: of the whole */
} Quantised;

/* The node that makes the value, if it is one of this op or function. */
static const Node *maker(const Graph *graph, ValueId v, const char *op)
{
    const Node *node = value_producer(graph, v);
    if (!node || !(node->call ? str_is(node->call->name, op) : strcmp(op_info(node->op)->name, op) == 0))
        return NULL;
    return node;
}

static bool is_of(const Graph *graph, ValueId v, DType dtype)
{
    return value_type(graph, v)->dtype == dtype;
}

/* A number, or the list that stands along an axis. */
static bool take_spread(const Graph *graph, ValueId v, ValueId *list, int64_t *axis)
{
    const Shape *shape = value_shape(graph, v);
    const Node *reshape = maker(graph, v, "reshape");
    *list = reshape ? reshape->in[0] : v;
    *axis = -1;
    if (shape->rank == 0)
        return true;
    for (uint32_t d = 0; d < shape->rank; d++)
        if (shape->dim[d] == shape_elements(shape))
            *axis = d;
    return reshape && *axis >= 0 && value_shape(graph, *list)->rank == 1;
}

/* The zero point behind a conversion. */
static bool take_zero(const Graph *graph, ValueId v, Quantised *q)
{
    int64_t axis;
    if (!take_spread(graph, v, &q->zero, &axis) || axis != q->axis)
        return false;
    const Node *cast = maker(graph, q->zero, "cast");
    q->zero = cast ? cast->in[0] : NONE;
    return cast != NULL;
}

static bool is_stored(const Graph *graph, ValueId v)
{
    return v == NONE || graph->value[v].role == ROLE_CONST || graph->value[v].role == ROLE_PARAM;
}

static bool takes_scale(const Graph *graph, const Quantised *q)
{
    return is_of(graph, q->scale, DT_F32) && is_stored(graph, q->scale) && is_stored(graph, q->zero);
}

static bool is_narrow(DType dtype)
{
    return dtype_is_int(dtype) && dtype_bytes(dtype) <= 2;
}

static bool find_dequantised(const Graph *graph, const Node *mul, Quantised *q)
{
    const Node *wide = maker(graph, mul->in[0], "cast");
    q->zero = NONE;
    if (!wide || !take_spread(graph, mul->in[1], &q->scale, &q->axis))
        return false;
    q->x = wide->in[0];
    const Node *sub = maker(graph, q->x, "sub"), *inner = sub ? maker(graph, sub->in[0], "cast") : NULL;
    if (sub && (!inner || !is_of(graph, q->x, DT_I32) || !take_zero(graph, sub->in[1], q)))
        return false;
    if (inner)
        q->x = inner->in[0];
    DType dtype = value_type(graph, q->x)->dtype;
    return is_narrow(dtype) && (q->zero == NONE || is_of(graph, q->zero, dtype)) && takes_scale(graph, q);
}

/* `, low = -128.0, high = 127.0`: all that the integer has. */
static bool cuts_to(const Call *clip, DType dtype)
{
    int bits = 8 * (int)dtype_bytes(dtype), low = dtype_is_unsigned(dtype) ? 0 : -(1 << (bits - 1));
    char wanted[64];
    snprintf(wanted, sizeof wanted, ", low = %d.0, high = %d.0", low, low + (1 << bits) - 1);
    return clip->library && str_is(clip->rest, wanted);
}

static bool find_quantised(const Graph *graph, const Node *cast, Quantised *q)
{
    DType dtype = value_type(graph, cast->out[0])->dtype;
    const Node *clip = is_narrow(dtype) ? maker(graph, cast->in[0], "clip") : NULL;
    if (!clip || clip->in_count != 1 || !cuts_to(clip->call, dtype))
        return false;
    const Node *add = maker(graph, clip->in[0], "add"), *round = maker(graph, add ? add->in[0] : clip->in[0], "round");
    const Node *div = round ? maker(graph, round->in[0], "div") : NULL;
    q->zero = NONE;
    if (!div || !take_spread(graph, div->in[1], &q->scale, &q->axis) || (add && !take_zero(graph, add->in[1], q)))
        return false;
    q->x = div->in[0];
    return is_of(graph, q->x, DT_F32) && (q->zero == NONE || is_of(graph, q->zero, dtype)) && takes_scale(graph, q);
}

static bool write(ExportNode *n, const Quantised *q, const char *op, const char *more)
{
    ExportId x = export_value(n->frame, q->x), scale = export_value(n->frame, q->scale);
    const char *zero = q->zero == NONE ? "" : export_text(n->e, ", $%u", export_value(n->frame, q->zero));
    const char *axis = q->axis < 0 ? "" : export_text(n->e, "axis=%d%s", (int)q->axis, *more ? ", " : "");
    const char *attributes = *axis || *more ? export_text(n->e, "{%s%s}", axis, more) : "";
    return export_result(n, 0, "%s($%u, $%u%s)%s", op, x, scale, zero, attributes);
}

bool export_quantised(ExportNode *n)
{
    const char *op = op_info(n->node->op)->name;
    Quantised q;
    if (strcmp(op, "mul") == 0 && find_dequantised(n->graph, n->node, &q))
        return write(n, &q, "DequantizeLinear", "");
    if (strcmp(op, "cast") != 0 || !find_quantised(n->graph, n->node, &q))
        return false;
    DType dtype = value_type(n->graph, n->node->out[0])->dtype;
    const char *more = q.zero == NONE ? export_text(n->e, "output_dtype=%s", dtype_name(dtype)) : "";
    return write(n, &q, "QuantizeLinear", more);
}
