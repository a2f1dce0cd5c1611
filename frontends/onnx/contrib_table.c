/* Rows picked from a table of few bits (com.microsoft), which stays as it is: only what is picked is widened. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"
#include "onnx/narrow.h"

#define CONTRIB "com.microsoft"

typedef struct Table {
    OnnxNode *node;
    int64_t axis, along, size; /* that is picked from; of blocks, and elements of a block */
    uint32_t at;               /* the axis of blocks, in what is picked */
    int64_t bits;              /* of bytes that hold several elements along the last axis; else 8 */
    int64_t middle;            /* the zero point where none is given */
    Shape elements, blocks;    /* picked, without the last axis of the packed */
    DType dtype;               /* of scales */
} Table;

static OnnxValue *picked(const Table *t, uint32_t operand, const char *word)
{
    OnnxNode *n = t->node, *node = onnx_cover(n, "Gather", 13, 2);
    const char *name = onnx_temp(n, word);
    onnx_set_operand(node, 0, n->in[operand]);
    onnx_set_operand(node, 1, n->in[1]);
    onnx_add_int(node, "axis", t->axis);
    onnx_name_results(node, &name, 1);
    return onnx_write_cover(n, node) ? onnx_written(n, name) : NULL;
}

/* The shape of what is picked from that. */
static Shape picked_shape(const Table *t, const Shape *from)
{
    const Shape *index = &onnx_type(t->node, 1)->shape;
    Shape shape = {0};
    for (uint32_t d = 0; d < from->rank; d++) {
        if (d != t->axis)
            shape.dim[shape.rank++] = from->dim[d];
        for (uint32_t i = 0; d == t->axis && i < index->rank; i++)
            shape.dim[shape.rank++] = index->dim[i];
    }
    return shape;
}

static bool take_elements(Table *t)
{
    OnnxNode *n = t->node;
    const OnnxNarrow *narrow = onnx_narrow(n->in[0]->narrow);
    bool bytes = !narrow && onnx_type(n, 0)->dtype == DT_U8;
    t->bits = bytes ? onnx_int(n, "bits", 4) : 8;
    if ((!bytes && (!narrow || narrow->bias || narrow->bits != 4)) || (t->bits != 2 && t->bits != 4 && t->bits != 8))
        return onnx_no(n, "its elements are no integers of 2, 4 or 8 bits");
    t->middle = bytes ? (int64_t)1 << (t->bits - 1) : 0;
    if (bytes && t->axis != 0)
        return onnx_no(n, "of bytes it picks along another axis than the first");
    return true;
}

static bool zeros_fit(const Table *t, const Shape *scales)
{
    OnnxNode *n = t->node;
    Shape shape = *scales;
    if (!onnx_has(n, 3))
        return true;
    shape.dim[shape.rank - 1] = ceil_div(shape.dim[shape.rank - 1] * t->bits, 8);
    return shape_eq(&onnx_type(n, 3)->shape, &shape) && onnx_type(n, 3)->dtype == onnx_type(n, 0)->dtype;
}

static bool table_start(Table *t, OnnxNode *n)
{
    *t = (Table){.node = n, .size = onnx_int(n, "block_size", 128), .dtype = onnx_type(n, 2)->dtype};
    uint32_t rank = onnx_rank(n, 0);
    if (rank < 1 || onnx_rank(n, 2) != rank || rank + onnx_rank(n, 1) > MAX_RANK)
        return onnx_no(n, "its scales have other dimensions than its elements, or there are too many");
    if (!onnx_axis(n, "gather_axis", 0, rank, &t->axis) || !onnx_axis(n, "quantize_axis", 1, rank, &t->along))
        return false;
    if (t->axis == t->along || t->size < 1 || t->size > INT32_MAX)
        return onnx_no(n, "its blocks lie along the axis that it picks from, or have no size");
    if (!take_elements(t))
        return false;
    Shape table = onnx_type(n, 0)->shape, scales = table;
    table.dim[rank - 1] *= 8 / t->bits;
    scales.dim[rank - 1] = table.dim[rank - 1];
    scales.dim[t->along] = ceil_div(scales.dim[t->along], t->size);
    if (!shape_eq(&onnx_type(n, 2)->shape, &scales) || !zeros_fit(t, &scales))
        return onnx_no(n, "its scales or zero points do not fit its blocks");
    t->at = (uint32_t)(t->along < t->axis ? t->along : t->along - 1 + (int64_t)onnx_rank(n, 1));
    t->elements = picked_shape(t, &table);
    t->blocks = picked_shape(t, &scales);
    return true;
}

/* Numbers out of the bytes of the last axis, the lowest bits first, of which as many stay as the shape has. */
static const char *unpacked(const Table *t, OnnxValue *x, const Shape *shape)
{
    OnnxNode *n = t->node;
    Text parts = {0};
    Shape all = *shape;
    int64_t last = all.dim[all.rank - 1], each = 8 / t->bits;
    if (each == 1)
        return x->name;
    all.dim[all.rank - 1] = ceil_div(last, each) * each;
    text_printf(&parts, "bit_and(%s, %d)", x->name, (1 << t->bits) - 1);
    for (int64_t i = 1; i < each; i++)
        text_printf(&parts, ", bit_and(shift_right(%s, %lld), %d)", x->name, (long long)(i * t->bits),
                    (1 << t->bits) - 1);
    OnnxValue *wide = onnx_define_value(n, "wide", "reshape(stack([%s], axis = %u), shape = %s)", parts.ptr, all.rank,
                                        onnx_list(n, all.dim, all.rank));
    text_free(&parts);
    if (!wide || all.dim[all.rank - 1] == last)
        return wide ? wide->name : NULL;
    return onnx_text(n, "slice(%s, axes = %u, begin = 0, end = %lld)", wide->name, all.rank - 1, (long long)last);
}

/* [..., blocks, 1, ...], to stand beside [..., blocks, elements of each, ...] */
static const char *beside(const Table *t, const char *x, int64_t each)
{
    Shape shape = t->blocks;
    for (uint32_t d = shape.rank++; d > t->at + 1; d--)
        shape.dim[d] = shape.dim[d - 1];
    shape.dim[t->at + 1] = each;
    return onnx_text(t->node, "reshape(%s, shape = %s)", x, onnx_list(t->node, shape.dim, shape.rank));
}

/* The last block with as many elements as the others */
static const char *filled(const Table *t, const char *x)
{
    int64_t before[MAX_RANK] = {0}, after[MAX_RANK] = {0};
    uint32_t rank = t->elements.rank;
    after[t->at] = t->blocks.dim[t->at] * t->size - t->elements.dim[t->at];
    if (!after[t->at])
        return x;
    return onnx_text(t->node, "pad(%s, before = %s, after = %s)", x, onnx_list(t->node, before, rank),
                     onnx_list(t->node, after, rank));
}

/* (elements - zero) * scale */
static OnnxValue *widened(const Table *t)
{
    OnnxNode *n = t->node;
    const char *dtype = dtype_name(t->dtype), *zero = onnx_number(n, t->dtype, (double)t->middle);
    OnnxValue *data = picked(t, 0, "picked"), *scales = data ? picked(t, 2, "scales") : NULL;
    const char *q = scales ? unpacked(t, data, &t->elements) : NULL;
    if (!q)
        return NULL;
    if (onnx_has(n, 3)) {
        OnnxValue *zeros = picked(t, 3, "zeros");
        const char *z = zeros ? unpacked(t, zeros, &t->blocks) : NULL;
        if (!z)
            return NULL;
        zero = beside(t, onnx_text(n, "cast(%s, to = %s)", z, dtype), 1);
    }
    Shape whole = t->elements;
    whole.dim[t->at] = t->blocks.dim[t->at] * t->size;
    const char *blocks = beside(t, filled(t, onnx_text(n, "cast(%s, to = %s)", q, dtype)), t->size);
    OnnxValue *all = onnx_define_value(n, "all", "reshape((%s - %s) * %s, shape = %s)", blocks, zero,
                                       beside(t, scales->name, 1), onnx_list(n, whole.dim, whole.rank));
    if (!all || shape_eq(&whole, &t->elements))
        return all;
    return onnx_define_value(n, "all", "slice(%s, axes = %u, begin = 0, end = %lld)", all->name, t->at,
                             (long long)t->elements.dim[t->at]);
}

/* Positions outside of the table give zeros. */
static bool write_table(OnnxNode *n)
{
    Table t;
    OnnxValue *all = table_start(&t, n) ? widened(&t) : NULL;
    if (!all)
        return false;
    const Shape *index = &onnx_type(n, 1)->shape;
    int64_t extent = onnx_dim(n, 0, t.axis), dim[MAX_RANK];
    uint32_t rank = t.elements.rank;
    for (uint32_t d = 0; d < rank; d++)
        dim[d] = d >= t.axis && d < t.axis + index->rank ? index->dim[d - t.axis] : 1;
    const char *i = onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, 1), onnx_list(n, dim, rank));
    OnnxValue *inside =
        onnx_define_value(n, "inside", "and(%s >= %lld, %s < %lld)", i, (long long)-extent, i, (long long)extent);
    return inside && onnx_emit(n, "%s = select(%s, %s, 0.0)", onnx_out(n, 0), inside->name, all->name);
}

const OnnxRow onnx_contrib_table[] = {
    {"GatherBlockQuantized", 1, write_table, NULL, CONTRIB, false},
    {0},
};
