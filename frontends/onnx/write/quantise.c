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

const Node *export_maker(const Graph *graph, ValueId v, const char *op)
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

bool export_take_spread(const Graph *graph, ValueId v, const Shape *of, bool converted, ExportSpread *spread)
{
    const Shape *shape = value_shape(graph, v);
    int64_t count = shape_elements(shape);
    *spread = (ExportSpread){v, -1};
    for (uint32_t d = 0; d < shape->rank; d++)
        if (count > 1 && shape->dim[d] == count)
            spread->axis = (int64_t)d + of->rank - shape->rank;
    for (uint32_t i = 0; i < 3; i++) { /* a conversion, and what moves the list into its place before or behind */
        const Node *node = i != 1 || converted ? export_maker(graph, spread->list, i == 1 ? "cast" : "reshape") : NULL;
        if (!node && i == 1 && converted)
            return false;
        spread->list = node ? node->in[0] : spread->list;
    }
    const Shape *list = value_shape(graph, spread->list);
    return list->rank <= 1 && shape_elements(list) == count && (count == 1 || spread->axis >= 0) &&
           (count == 1 || of->dim[spread->axis] == count);
}

/* Scale, and zero point unless it is NONE, for an operand that keeps its shape. */
static bool take_scale(const Graph *graph, ValueId result, ValueId scale, ValueId zero, Quantised *q)
{
    const Shape *shape = value_shape(graph, q->x);
    ExportSpread spread;
    q->zero = NONE;
    if (!shape_eq(shape, value_shape(graph, result)) || !export_take_spread(graph, scale, shape, false, &spread) ||
        !is_of(graph, scale, DT_F32))
        return false;
    q->scale = spread.list;
    q->axis = spread.axis;
    if (zero == NONE)
        return true;
    if (!export_take_spread(graph, zero, shape, true, &spread) || spread.axis != q->axis)
        return false;
    q->zero = spread.list;
    return true;
}

static bool is_stored(const Graph *graph, ValueId v)
{
    return graph->value[v].role == ROLE_CONST || graph->value[v].role == ROLE_PARAM;
}

static bool is_narrow(DType dtype)
{
    return dtype_is_int(dtype) && dtype_bytes(dtype) <= 2;
}

/* Moved as i32 and converted, or as f32 at once; or not moved, by a scale that is known. */
static bool find_dequantised(const Graph *graph, const Node *mul, Quantised *q)
{
    const Node *wide = export_maker(graph, mul->in[0], "cast");
    ValueId moved = wide ? wide->in[0] : mul->in[0];
    const Node *sub = export_maker(graph, moved, "sub"), *inner = sub ? export_maker(graph, sub->in[0], "cast") : NULL;
    if (sub ? !inner || !is_of(graph, moved, wide ? DT_I32 : DT_F32) : !wide)
        return false;
    q->x = inner ? inner->in[0] : moved;
    DType dtype = value_type(graph, q->x)->dtype;
    return is_narrow(dtype) && take_scale(graph, mul->out[0], mul->in[1], sub ? sub->in[1] : NONE, q) &&
           (sub ? is_of(graph, q->zero, dtype) : is_stored(graph, q->scale));
}

/* `, low = -128.0, high = 127.0`: all that the integer has. */
static bool cuts_to(const Call *clip, DType dtype)
{
    int bits = 8 * (int)dtype_bytes(dtype), low = dtype_is_unsigned(dtype) ? 0 : -(1 << (bits - 1));
    char wanted[64];
    snprintf(wanted, sizeof wanted, ", low = %d.0, high = %d.0", low, low + (1 << bits) - 1);
    return clip->library && str_is(clip->rest, wanted);
}

bool export_take_rounded(const Graph *graph, const Node *cast, ExportRounded *rounded)
{
    DType dtype = value_type(graph, cast->out[0])->dtype;
    const Node *clip = is_narrow(dtype) ? export_maker(graph, cast->in[0], "clip") : NULL;
    if (!clip || clip->in_count != 1 || !cuts_to(clip->call, dtype))
        return false;
    const Node *add = export_maker(graph, clip->in[0], "add");
    const Node *round = export_maker(graph, add ? add->in[0] : clip->in[0], "round");
    *rounded = (ExportRounded){round ? round->in[0] : NONE, add ? add->in[1] : NONE};
    return round != NULL;
}

static bool find_quantised(const Graph *graph, const Node *cast, Quantised *q)
{
    DType dtype = value_type(graph, cast->out[0])->dtype;
    ExportRounded rounded;
    const Node *div = export_take_rounded(graph, cast, &rounded) ? export_maker(graph, rounded.value, "div") : NULL;
    if (!div)
        return false;
    q->x = div->in[0];
    return is_of(graph, q->x, DT_F32) && take_scale(graph, cast->out[0], div->in[1], rounded.zero, q) &&
           (q->zero == NONE || is_of(graph, q->zero, dtype));
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
