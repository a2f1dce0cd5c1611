/* Bytes by the range of what they stand for, in which 0 lies, as DynamicQuantizeLinear:
 *
 *     low = minimum(reduce_min(x), 0.0)
 *     scale = (maximum(reduce_max(x), 0.0) - low) / 255.0
 *     zero = round(clip(-low / scale, 0.0, 255.0))
 *     y = cast(clip(round(x / scale) + zero, 0.0, 255.0), to = u8)
 *
 * The node stands where the scale is made; y, and zero as u8, are its other results. */
#include "onnx/write/export.h"

#include <string.h>

typedef struct Range {
    ValueId x, low, scale;
} Range;

static bool is_number(const Graph *graph, ValueId v, double wanted)
{
    double number;
    return value_is_number(graph, v, &number) && number == wanted;
}

/* minimum(reduce_min(x), 0.0), of all of x: the x, or NONE */
static ValueId take_bound(const Graph *graph, ValueId v, const char *op, const char *reduction)
{
    const Node *bound = export_maker(graph, v, op), *all = bound ? export_maker(graph, bound->in[0], reduction) : NULL;
    return all && value_shape(graph, v)->rank == 0 && is_number(graph, bound->in[1], 0) ? all->in[0] : NONE;
}

static bool find_range(const Graph *graph, const Node *div, Range *r)
{
    const Node *span = export_maker(graph, div->in[0], "sub");
    if (!span || !is_number(graph, div->in[1], 255))
        return false;
    *r = (Range){take_bound(graph, span->in[0], "maximum", "reduce_max"), span->in[1], div->out[0]};
    return r->x != NONE && value_type(graph, r->x)->dtype == DT_F32 &&
           take_bound(graph, r->low, "minimum", "reduce_min") == r->x;
}

static bool is_zero(const Graph *graph, ValueId v, const Range *r)
{
    const Node *round = export_maker(graph, v, "round"),
               *clip = round ? export_maker(graph, round->in[0], "clip") : NULL;
    const Node *div = clip && clip->in_count == 1 ? export_maker(graph, clip->in[0], "div") : NULL;
    const Node *neg = div && div->in[1] == r->scale ? export_maker(graph, div->in[0], "neg") : NULL;
    return neg && neg->in[0] == r->low && clip->call->library && str_is(clip->call->rest, ", low = 0.0, high = 255.0");
}

static bool is_quantised(const Graph *graph, const Node *cast, const Range *r)
{
    ExportRounded rounded;
    const Node *div = export_take_rounded(graph, cast, &rounded) ? export_maker(graph, rounded.value, "div") : NULL;
    return div && div->in[0] == r->x && div->in[1] == r->scale && rounded.zero != NONE &&
           is_zero(graph, rounded.zero, r);
}

/* The conversion to u8 of y, or of the zero point. */
static const Node *find_result(const Graph *graph, const Range *r, bool zero)
{
    for (NodeId i = 0; i < graph->node_count; i++) {
        const Node *node = &graph->node[i];
        if (node->dead || node->call || strcmp(op_info(node->op)->name, "cast") != 0 ||
            value_type(graph, node->out[0])->dtype != DT_U8)
            continue;
        if (zero ? is_zero(graph, node->in[0], r) : is_quantised(graph, node, r))
            return node;
    }
    return NULL;
}

static ExportId name_result(ExportNode *n, const Node *result, const char *otherwise)
{
    ExportId id = export_id_near(n->e, result ? export_value_name(n->frame, result->out[0], otherwise) : otherwise);
    if (result)
        n->frame->id[result->out[0]] = id;
    return id;
}

bool export_dynamic_quantised(ExportNode *n)
{
    ExportId done = n->node->out_count == 1 ? n->frame->id[n->node->out[0]] : EXPORT_LEFT_OUT;
    Range r;
    if (done != EXPORT_LEFT_OUT) { /* by the node that the scale has */
        n->out[0] = done;
        return true;
    }
    if (strcmp(op_info(n->node->op)->name, "div") != 0 || !find_range(n->graph, n->node, &r))
        return false;
    const Node *y = find_result(n->graph, &r, false), *zero = find_result(n->graph, &r, true);
    if (!y)
        return false;
    ExportId x = export_value(n->frame, r.x), out[3];
    out[0] = name_result(n, y, "quantised");
    out[1] = n->out[0] = export_id_near(n->e, n->wish[0]);
    out[2] = name_result(n, zero, export_text(n->e, "%s.zero", n->wish[0]));
    export_append(n->e, "DynamicQuantizeLinear", &x, 1, out, 3);
    return true;
}
