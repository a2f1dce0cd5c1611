/* The walk over a graph: which handler writes a node, and in which dtype. */
#include "onnx/write/export.h"

#include <string.h>

/* Dtypes */

typedef struct FamilyExport {
    ExportHandler *write;
    DTypeSet takes; /* 0: elementwise, which says it by itself */
} FamilyExport;

#define SET_SUMS (SET_FLOAT | SET_WIDE)

static const FamilyExport family_export[FAMILY_COUNT] = {
    [FAMILY_ELEMENTWISE] = {export_elementwise, 0},
    [FAMILY_CAST] = {export_cast, SET_ALL},
    [FAMILY_REDUCE] = {export_reduce, SET_SUMS | DTYPE_IN(DT_U64)},
    [FAMILY_CUMULATE] = {export_cumulate, SET_SUMS & ~DTYPE_IN(DT_F16)},
    [FAMILY_SORT] = {export_sort,
                     DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64) | DTYPE_IN(DT_I32) | DTYPE_IN(DT_I64) | DTYPE_IN(DT_U64)},
    [FAMILY_CONTRACT] = {export_contract, SET_SUMS},
    [FAMILY_POOL] = {export_pool, SET_SUMS},
    [FAMILY_MATCH] = {export_match, SET_SUMS},
    [FAMILY_VIEW] = {export_view, SET_ALL & ~DTYPE_IN(DT_BF16)},
    [FAMILY_ASSEMBLE] = {export_assemble, SET_ALL & ~(DTYPE_IN(DT_BF16) | DTYPE_IN(DT_U16) | DTYPE_IN(DT_I16))},
    [FAMILY_GATHER] = {export_gather, SET_NUMBER | SET_BOOL},
    [FAMILY_DYNAMIC] = {export_dynamic, SET_NUMBER | SET_BOOL},
    [FAMILY_GENERATE] = {export_generate, SET_ALL},
    [FAMILY_DRAW] = {export_draw, SET_ALL},
    [FAMILY_LAYOUT] = {export_view, SET_ALL},
    [FAMILY_CONTROL] = {export_control, SET_ALL},
};

static bool takes(const Node *node, DType dtype)
{
    const FamilyExport *row = &family_export[op_info(node->op)->family];
    if (node_is_scatter(node) && dtype == DT_F16) /* ONNX Runtime combines none */
        return false;
    return row->takes ? row->takes & DTYPE_IN(dtype) : export_elementwise_takes(node, dtype);
}

/* In which the same bits come out: what wraps around keeps its low bits, what is a float is rounded at the end. */
static DType wider(DType dtype)
{
    switch (dtype) {
    case DT_BF16:
    case DT_F16:
        return DT_F32;
    case DT_I16:
    case DT_I8:
    case DT_U16:
    case DT_U8:
        return DT_I32;
    case DT_U32:
    case DT_U64:
        return DT_I64;
    default:
        return dtype;
    }
}

/* Of the operands; what select chooses by is none. */
static DType node_dtype(const Graph *graph, const Node *node)
{
    uint32_t first = op_info(node->op)->result == RESULT_SELECT;
    return value_type(graph, node->in_count > first ? node->in[first] : node->out[0])->dtype;
}

/* One node */

static void refuse(ExportNode *n)
{
    Export *e = n->e;
    const Node *node = n->node;
    ExportRefusal refusal = {.title = value_title(n->graph, node->out[0]),
                             .op = node->call ? node->call->name : str_from(op_info(node->op)->name),
                             .reason = str_from(n->reason),
                             .hint = n->hint ? str_from(n->hint) : (Str){0},
                             .place = node->place};
    ARENA_PUSH(e->arena, e->refusal, e->refusal_count, e->refusal_capacity, refusal);
}

static void start(ExportNode *n, const ExportFrame *frame, const Node *node)
{
    Arena *arena = frame->e->arena;
    const char *op = node->call             ? str_copy(arena, node->call->name).ptr
                     : node_is_loop(node)   ? "loop" /* words of the language are no names */
                     : node_is_choice(node) ? "choice"
                                            : op_info(node->op)->name;
    *n = (ExportNode){.e = frame->e, .frame = frame, .graph = frame->graph, .node = node};
    n->in = ARENA_ARRAY(arena, ExportId, node->in_count + 1);
    n->out = ARENA_ARRAY(arena, ExportId, node->out_count + 1);
    n->wish = ARENA_ARRAY(arena, const char *, node->out_count + 1);
    for (uint32_t i = 0; i < node->in_count; i++)
        n->in[i] = export_value(frame, node->in[i]);
    for (uint32_t i = 0; i < node->out_count; i++)
        n->wish[i] = export_value_name(frame, node->out[i], op);
    n->dtype = node_dtype(frame->graph, node);
}

static void finish(const ExportNode *n, bool good)
{
    if (good && n->node->out_count == 1)
        export_rename_last(n->e, n->out[0], n->wish[0]);
    for (uint32_t i = 0; i < n->node->out_count; i++)
        n->frame->id[n->node->out[i]] = good ? n->out[i] : export_id_near(n->e, n->wish[i]);
}

static ExportId cast(ExportNode *n, ExportId id, DType to, const char *name)
{
    return export_say(n->e, to, &id, name, export_text(n->e, "Cast(x){to=%s}", dtype_name(to)));
}

#define MOST_WIDENED 64 /* elements of a constant that is there once more, wider */

/* The operand as one of a wider dtype: so is a short constant itself, that it stays known. */
static ExportId widened(ExportNode *n, uint32_t i, DType to)
{
    Export *e = n->e;
    ExportId id = n->in[i];
    const Tensor *known = e->tensor[id].known;
    const char *name = export_text(e, "%s.wide", export_name(e, id));
    if (!known || !dtype_is_int(to) || dtype_bytes(known->type->dtype) == 8 ||
        shape_elements(&known->type->shape) > MOST_WIDENED)
        return cast(n, id, to, name);
    Tensor *wide = tensor_new(e->arena, module_type(n->graph->module, to, &known->type->shape, (Layout){0}));
    for (int64_t k = 0; k < shape_elements(&known->type->shape); k++)
        tensor_set_number(wide, k, tensor_number(known, k));
    return export_array(e, wide, name);
}

static bool write_as(ExportNode *n, DType dtype)
{
    const Node *node = n->node;
    ExportHandler *write = family_export[op_info(node->op)->family].write;
    DType own = n->dtype;
    const char **wish = n->wish;

    if (dtype == own)
        return write(n);
    n->wish = ARENA_ARRAY(n->e->arena, const char *, node->out_count + 1);
    n->dtype = dtype;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (value_type(n->graph, node->in[i])->dtype == own)
            n->in[i] = widened(n, i, dtype);
    for (uint32_t i = 0; i < node->out_count; i++)
        n->wish[i] = value_type(n->graph, node->out[i])->dtype == own ? export_text(n->e, "%s.wide", wish[i]) : wish[i];
    if (!write(n))
        return false;
    n->wish = wish;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (value_type(n->graph, node->out[i])->dtype == own)
            n->out[i] = cast(n, n->out[i], own, wish[i]);
    return true;
}

/* A result without elements is a constant, whatever would compute it. */
static bool write_empty(ExportNode *n)
{
    for (uint32_t i = 0; i < n->node->out_count; i++) {
        const Type *type = value_type(n->graph, n->node->out[i]);
        if (shape_elements(&type->shape))
            return false;
        n->out[i] = export_tensor(n->e, tensor_new(n->e->arena, type), n->wish[i]);
    }
    return true;
}

static void write_node(const ExportFrame *frame, const Node *node)
{
    ExportNode n;
    start(&n, frame, node);
    DType dtype = n.dtype;
    while (!takes(node, dtype) && wider(dtype) != dtype)
        dtype = wider(dtype);
    bool good = write_empty(&n) || export_dynamic_quantised(&n) || export_quantised(&n) || export_integers(&n) ||
                write_as(&n, dtype);
    if (!good)
        refuse(&n);
    finish(&n, good);
}

/* Calls */

/* The function's body, as if it stood here. */
static void write_inside(const ExportFrame *frame, const Node *call)
{
    const Graph *body = call->sub[0];
    Str label = call->call->label.len ? call->call->label : call->call->name;
    ExportFrame inner;
    export_frame(&inner, frame->e, body,
                 str_format(frame->e->arena, STR_FMT STR_FMT ".", STR_ARG(frame->prefix), STR_ARG(label)));
    for (uint32_t i = 0; i < call->in_count; i++)
        inner.id[body->input[i]] = export_value(frame, call->in[i]);
    for (uint32_t i = call->out_count; i-- > 0;)
        inner.wish[body->output[i].value] =
            export_value_name(frame, call->out[i], str_copy(frame->e->arena, call->call->name).ptr);
    export_nodes(&inner);
    for (uint32_t i = 0; i < call->out_count; i++)
        frame->id[call->out[i]] = export_value(&inner, body->output[i].value);
}

static void write_call(const ExportFrame *frame, const Node *node)
{
    ExportNode n;
    start(&n, frame, node);
    const ExportLayer *layer = export_find_layer(&n);
    if ((layer && export_layer(&n, layer)) || export_recurrent(&n) || export_call(&n))
        finish(&n, true);
    else if (!export_as_function(frame, node))
        write_inside(frame, node);
}

/* Recurses over the nesting of calls and bodies. */
void export_nodes(const ExportFrame *frame)
{
    for (NodeId i = 0; i < frame->graph->node_count; i++) {
        const Node *node = &frame->graph->node[i];
        if (node->dead)
            continue;
        frame->e->node_count++;
        if (node_is_call(node))
            write_call(frame, node);
        else
            write_node(frame, node);
    }
}
