/* Sequences and optionals: which tensors are in them is known when compiling. */
#include <string.h>

#include "base/number.h"
#include "onnx/body.h"

static bool set_sequence(OnnxNode *n, OnnxValue *const *item, uint32_t count)
{
    OnnxValue *value = onnx_value_new(n->onnx);
    *value = (OnnxValue){
        .sequence = true, .item = arena_copy(n->onnx->arena, item, count * sizeof(OnnxValue *)), .item_count = count};
    onnx_set_value(n, 0, value);
    return true;
}

static bool is_sequence(OnnxNode *n, uint32_t i)
{
    return (onnx_has(n, i) && n->in[i]->sequence) || onnx_no(n, "operand %u is no sequence", i);
}

static bool write_empty(OnnxNode *n)
{
    return set_sequence(n, NULL, 0);
}

static bool write_construct(OnnxNode *n)
{
    for (uint32_t i = 0; i < n->in_count; i++)
        if (!onnx_has(n, i))
            return onnx_no(n, "operand %u is missing", i);
    return set_sequence(n, n->in, n->in_count);
}

/* A position that is known, from the end where it is negative; `last` where there is none. */
static bool take_position(OnnxNode *n, uint32_t i, int64_t count, int64_t last, int64_t *at)
{
    double number;
    *at = last;
    if (!onnx_has(n, i))
        return true;
    if (!onnx_known(n, i) || !onnx_known_number(n, i, &number))
        return false;
    *at = (int64_t)(number < 0 ? number + (double)count : number);
    return (*at >= 0 && *at <= last) ||
           onnx_no(n, "there is no position %.0f in a sequence of %lld", number, (long long)count);
}

static bool write_insert(OnnxNode *n)
{
    int64_t at;
    if (!is_sequence(n, 0) || !take_position(n, 2, n->in[0]->item_count, n->in[0]->item_count, &at))
        return false;
    if (!onnx_has(n, 1))
        return onnx_no(n, "operand 1 is missing");
    uint32_t count = n->in[0]->item_count;
    OnnxValue **item = ARENA_ARRAY(n->onnx->arena, OnnxValue *, count + 1);
    for (uint32_t i = 0; i <= count; i++)
        item[i] = i < at ? n->in[0]->item[i] : i == at ? n->in[1] : n->in[0]->item[i - 1];
    return set_sequence(n, item, count + 1);
}

static bool write_erase(OnnxNode *n)
{
    int64_t at;
    if (!is_sequence(n, 0) || !take_position(n, 1, n->in[0]->item_count, (int64_t)n->in[0]->item_count - 1, &at))
        return false;
    uint32_t count = n->in[0]->item_count;
    OnnxValue **item = ARENA_ARRAY(n->onnx->arena, OnnxValue *, count + 1);
    for (uint32_t i = 0, next = 0; i < count; i++)
        if (i != at)
            item[next++] = n->in[0]->item[i];
    return set_sequence(n, item, count - 1);
}

static bool write_at(OnnxNode *n)
{
    int64_t at;
    if (!is_sequence(n, 0) || !take_position(n, 1, n->in[0]->item_count, (int64_t)n->in[0]->item_count - 1, &at))
        return false;
    onnx_set_value(n, 0, n->in[0]->item[at]);
    return true;
}

static bool write_length(OnnxNode *n)
{
    int64_t count;
    if (!is_sequence(n, 0))
        return false;
    count = n->in[0]->item_count;
    return onnx_set_ints(n, 0, DT_I64, &count, 1, true);
}

static bool write_concat(OnnxNode *n)
{
    Text parts = {0};
    if (!is_sequence(n, 0))
        return false;
    for (uint32_t i = 0; i < n->in[0]->item_count; i++) {
        if (!n->in[0]->item[i]->type)
            return onnx_no(n, "its items are no tensors");
        if (n->in[0]->item[i]->count)
            return onnx_no(n, "its items are as large as data say");
        text_printf(&parts, "%s, ", onnx_name_value(n->onnx, n->in[0]->item[i]));
    }
    bool good = parts.len ? onnx_emit(n, "%s = %s(%saxis = %lld)", onnx_out(n, 0),
                                      onnx_int(n, "new_axis", 0) ? "stack" : "concat", parts.ptr,
                                      (long long)onnx_int(n, "axis", 0))
                          : onnx_no(n, "its sequence is empty");
    text_free(&parts);
    return good;
}

/* Pieces of one extent each, of the extents that are listed, or of as many as a number says. */
static bool write_split(OnnxNode *n)
{
    int64_t axis, sizes[1] = {1};
    const int64_t *list = sizes;
    uint32_t count = 1;
    bool keeps = onnx_has(n, 1) || onnx_int(n, "keepdims", 1);
    if (!onnx_axis(n, "axis", 0, onnx_rank(n, 0), &axis) || (onnx_has(n, 1) && !onnx_known_ints(n, 1, &list, &count)))
        return false;
    bool equal = !onnx_has(n, 1) || onnx_rank(n, 1) == 0;
    int64_t extent = onnx_dim(n, 0, axis), pieces = equal ? ceil_div(extent, most(list[0], 1)) : count;
    if (pieces > ONNX_FOLDED || (equal && list[0] < 1))
        return onnx_no(n, "it splits into impossible pieces");
    OnnxValue **item = ARENA_ARRAY(n->onnx->arena, OnnxValue *, pieces + 1);
    Shape shape = onnx_type(n, 0)->shape;
    for (uint32_t d = (uint32_t)axis; d + 1 < shape.rank; d++)
        shape.dim[d] = shape.dim[d + 1];
    for (int64_t i = 0, at = 0; i < pieces; i++) {
        int64_t size = equal ? least(list[0], extent) : list[i];
        if (size < 0 || size > extent)
            return onnx_no(n, "it splits into impossible pieces");
        const char *name = onnx_temp(n, "piece");
        const char *piece = onnx_text(n, "slice(%s, axes = %lld, begin = %lld, end = %lld)", onnx_in(n, 0),
                                      (long long)axis, (long long)at, (long long)least(at + size, extent));
        if (!keeps)
            piece = onnx_text(n, "reshape(%s, shape = %s)", piece, onnx_list(n, shape.dim, shape.rank - 1));
        if (!onnx_emit(n, "%s = %s", name, piece))
            return false;
        item[i] = onnx_value_new(n->onnx);
        *item[i] = (OnnxValue){.type = onnx_type_of(n, name), .name = name, .home = n->onnx->block};
        at += size;
    }
    return set_sequence(n, item, (uint32_t)pieces);
}

/* A body for each item of the first sequence, and of those beside it; tensors are the same for all. */
static bool map_item(OnnxNode *n, const Onnx__GraphProto *body, uint32_t at, OnnxValue **result)
{
    OnnxScope *scope = onnx_body_scope(n);
    for (uint32_t i = 0; i < n->in_count; i++) {
        if (!onnx_has(n, i))
            return onnx_no(n, "operand %u is missing", i);
        if (n->in[i]->sequence && at >= n->in[i]->item_count)
            return onnx_no(n, "its sequences have other lengths");
        onnx_bind(scope, n->onnx, onnx_body_name(body->input[i]->name),
                  n->in[i]->sequence ? n->in[i]->item[at] : n->in[i]);
    }
    return onnx_body_import(n, scope, body, result);
}

static bool write_map(OnnxNode *n)
{
    const Onnx__GraphProto *body = onnx_body_graph(n, "body");
    if (!is_sequence(n, 0) || !onnx_body_check(n, body))
        return false;
    uint32_t count = n->in[0]->item_count;
    if (body->n_input != n->in_count || body->n_output < n->out_count)
        return onnx_no(n, "its body takes or gives another number of values");
    OnnxValue ***item = ARENA_ARRAY(n->onnx->arena, OnnxValue **, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        item[i] = ARENA_ARRAY(n->onnx->arena, OnnxValue *, body->n_output + 1);
        if (!map_item(n, body, i, item[i]))
            return false;
    }
    for (uint32_t k = 0; k < n->out_count; k++) {
        OnnxValue *value = onnx_value_new(n->onnx), **list = ARENA_ARRAY(n->onnx->arena, OnnxValue *, count + 1);
        for (uint32_t i = 0; i < count; i++)
            list[i] = item[i][k];
        *value = (OnnxValue){.sequence = true, .item = list, .item_count = count};
        onnx_set_value(n, k, value);
    }
    return true;
}

/* Optionals */

static bool write_optional(OnnxNode *n)
{
    OnnxValue *value = onnx_value_new(n->onnx);
    *value = (OnnxValue){.absent = true};
    onnx_set_value(n, 0, onnx_has(n, 0) ? n->in[0] : value);
    return true;
}

static bool write_get(OnnxNode *n)
{
    if (!onnx_has(n, 0))
        return onnx_no(n, "its optional is empty");
    onnx_set_value(n, 0, n->in[0]);
    return true;
}

static bool write_has(OnnxNode *n)
{
    int64_t has = onnx_has(n, 0);
    return onnx_set_ints(n, 0, DT_BOOL, &has, 1, true);
}

const OnnxRow onnx_sequence[] = {
    {"SequenceEmpty", 11, write_empty, NULL, NULL, true},
    {"SequenceConstruct", 11, write_construct, NULL, NULL, true},
    {"SequenceInsert", 11, write_insert, NULL, NULL, true},
    {"SequenceErase", 11, write_erase, NULL, NULL, true},
    {"SequenceAt", 11, write_at, NULL, NULL, true},
    {"SequenceLength", 11, write_length, NULL, NULL, true},
    {"ConcatFromSequence", 11, write_concat, NULL, NULL, true},
    {"SplitToSequence", 11, write_split, NULL, NULL, false},
    {"SequenceMap", 17, write_map, NULL, NULL, true},
    {"Optional", 15, write_optional, NULL, NULL, true},
    {"OptionalGetElement", 15, write_get, NULL, NULL, true},
    {"OptionalHasElement", 15, write_has, NULL, NULL, true},
    {0},
};
