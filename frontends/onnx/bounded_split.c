/* Split of what is as large as data say along the axis that it is split along, and into parts whose lengths are
 * computed when running: each part has a count of its own (bounded.c). */
#include "base/number.h"
#include "onnx/import.h"

static bool has_computed_lengths(const OnnxNode *n)
{
    return n->opset >= 13 && onnx_has(n, 1) && !n->in[1]->known && n->in[1]->maker;
}

bool onnx_split_is_open(const OnnxNode *n, int64_t axis)
{
    const OnnxValue *x = n->in[0];
    return (x->count && x->count_axis == axis) || has_computed_lengths(n);
}

/* Result i: so many entries from a position on, of at most `longest` */
static bool put_part(OnnxNode *n, uint32_t i, int64_t axis, const char *begin, const char *count, int64_t longest)
{
    const char *many = onnx_temp(n, "many"), *y = onnx_out(n, i);
    if (!onnx_emit(n, "%s = %s", many, count) ||
        !onnx_emit(n, "%s = gather(%s, clip(iota(axis = 0, shape = [%lld], dtype = i64) + %s, 0, %lld), axis = %lld)",
                   y, onnx_in(n, 0), (long long)longest, begin, (long long)onnx_dim(n, 0, axis) - 1, (long long)axis))
        return false;
    OnnxValue *part = onnx_written(n, y);
    part->maker = n;
    part->count = onnx_written(n, many);
    part->count_axis = (uint32_t)axis;
    onnx_set_value(n, i, part);
    return true;
}

/* By lengths that something has computed */
static bool split_by_lengths(OnnxNode *n, int64_t axis)
{
    int64_t extent = onnx_dim(n, 0, axis);
    const char *begin = "0";
    if (onnx_rank(n, 1) != 1 || onnx_dim(n, 1, 0) != n->out_count)
        return onnx_no(n, "it names lengths for another number of results");
    if (n->in[0]->count && n->in[0]->count_axis != axis)
        return onnx_no(n, "two of its axes are as large as data say");
    for (uint32_t i = 0; i < n->out_count; i++) {
        const char *length = onnx_temp(n, "length"), *end = onnx_temp(n, "end");
        if (!onnx_emit(n, "%s = clip(cast(%s[%u], to = i64), 0, %lld)", length, onnx_in(n, 1), i, (long long)extent) ||
            !put_part(n, i, axis, begin, length, extent) || !onnx_emit(n, "%s = %s + %s", end, begin, length))
            return false;
        begin = end;
    }
    return true;
}

/* By lengths that are known, of which the last ones may find nothing, or in parts of equal length, a last one less. */
static bool split_counted(OnnxNode *n, int64_t axis, const int64_t *sizes)
{
    int64_t extent = onnx_dim(n, 0, axis), longest = ceil_div(extent, n->out_count), before = 0;
    const char *count = onnx_name_value(n->onnx, n->in[0]->count), *each = onnx_temp(n, "each");
    if (!sizes && !onnx_emit(n, "%s = (%s + %u) / %u", each, count, n->out_count - 1, n->out_count))
        return false;
    for (uint32_t i = 0; i < n->out_count; i++) {
        const char *begin = sizes ? onnx_text(n, "%lld", (long long)before) : onnx_text(n, "%s * %u", each, i);
        const char *most_there = sizes ? onnx_text(n, "%lld", (long long)sizes[i]) : each;
        if (sizes && (sizes[i] < 0 || sizes[i] > extent - before))
            return onnx_no(n, "its parts are longer than what it splits can be");
        if (!put_part(n, i, axis, begin, onnx_text(n, "clip(%s - %s, 0, %s)", count, begin, most_there),
                      sizes ? sizes[i] : longest))
            return false;
        before += sizes ? sizes[i] : 0;
    }
    return true;
}

bool onnx_write_open_split(OnnxNode *n, int64_t axis)
{
    const int64_t *sizes = NULL;
    uint32_t count = 0;
    n->count = NULL; /* each part has its own */
    n->counted = 0;
    if (onnx_dim(n, 0, axis) < 1)
        return onnx_no(n, "it splits what is empty");
    if (has_computed_lengths(n))
        return split_by_lengths(n, axis);
    if (n->opset < 13)
        onnx_ints(n, "split", &sizes, &count);
    else if (onnx_has(n, 1) && !onnx_known_ints(n, 1, &sizes, &count))
        return false;
    if (count && count != n->out_count)
        return onnx_no(n, "it names %u sizes for %u results", count, n->out_count);
    return split_counted(n, axis, count ? sizes : NULL);
}
