/* Slices whose ends are computed when running: the first so many entries, where an end is how many there are of
 * something, or entries from a position on, which are moved to the front.  Behind the count is padding (bounded.c). */
#include "base/number.h"
#include "onnx/import.h"

static bool is_computed(const OnnxValue *value)
{
    return value && value->type && !value->known && value->maker;
}

/* Do its ends, which are known, leave out the first of what is counted, or count from its end? */
static bool moves_counted(const OnnxNode *n)
{
    const OnnxValue *x = n->in[0], *axes = n->in_count > 3 ? n->in[3] : NULL;
    if (!x->count || !n->in[1]->known || !n->in[2]->known || (axes && !axes->known))
        return false;
    int64_t count = least(shape_elements(&n->in[1]->type->shape), shape_elements(&n->in[2]->type->shape));
    for (int64_t i = 0; i < count && (!axes || i < shape_elements(&axes->type->shape)); i++) {
        int64_t axis = axes ? onnx_int_at(axes->known, i) : i;
        axis += axis < 0 ? x->type->shape.rank : 0;
        if (axis == x->count_axis && (onnx_int_at(n->in[1]->known, i) != 0 || onnx_int_at(n->in[2]->known, i) < 0))
            return true;
    }
    return false;
}

/* Are the ends, inputs perhaps, a known number apart? */
static bool has_length(const OnnxNode *n)
{
    int64_t apart;
    bool lists = n->in[1]->type && n->in[2]->type && n->in[1]->type->shape.rank == 1 && n->in[2]->type->shape.rank == 1;
    int64_t count = lists ? least(n->in[1]->type->shape.dim[0], n->in[2]->type->shape.dim[0]) : 0;
    for (int64_t i = 0; i < count; i++)
        if (!onnx_find_distance(n->in[1], n->in[2], i, &apart))
            return false;
    return count > 0;
}

bool onnx_slice_is_open(const OnnxNode *n)
{
    if (n->opset < 10 || n->in_count < 3 || !onnx_has(n, 0) || !n->in[1] || !n->in[2])
        return false;
    return moves_counted(n) || has_length(n) ||
           ((is_computed(n->in[1]) || is_computed(n->in[2])) && (n->in[1]->known || is_computed(n->in[1])) &&
            (n->in[2]->known || is_computed(n->in[2])));
}

typedef struct OpenSlice {
    OnnxNode *node;
    const char *x;    /* as far as it is sliced */
    OnnxValue *count; /* NULL: all are there */
    uint32_t count_axis, axis, rank;
    bool limited; /* by ends of its own */
} OpenSlice;

/* As Python's: one that is negative counts from the end. */
static int64_t clamped(int64_t at, int64_t extent)
{
    at = at < 0 ? most(at, -extent - 1) + extent : at;
    return least(most(at, 0), extent);
}

static bool limit(OpenSlice *s, const char *text)
{
    const char *few = onnx_temp(s->node, "many");
    if (s->limited)
        return onnx_no(s->node, "several of its axes have ends that are known only when running");
    if (!onnx_emit(s->node, "%s = %s", few, text))
        return false;
    s->limited = true;
    s->count = onnx_written(s->node, few);
    s->count_axis = s->axis;
    return true;
}

static bool cut(OpenSlice *s, int64_t begin, int64_t end)
{
    if (begin != 0 || end != onnx_dim(s->node, 0, s->axis))
        s->x = onnx_text(s->node, "slice(%s, axes = %u, begin = %lld, end = %lld)", s->x, s->axis, (long long)begin,
                         (long long)most(begin, end));
    return true;
}

static bool has_own_count(const OpenSlice *s)
{
    return s->count && !s->limited && s->count_axis == s->axis;
}

/* A position that is known, among so many as are there */
static const char *counted_position(const OpenSlice *s, int64_t at)
{
    int64_t extent = onnx_dim(s->node, 0, s->axis);
    const char *many = onnx_name_value(s->node->onnx, s->count);
    if (at < 0)
        return onnx_text(s->node, "maximum(%s - %lld, 0)", many, -(long long)most(at, -extent));
    return onnx_text(s->node, "minimum(%s, %lld)", many, (long long)least(at, extent));
}

/* Of what has a count, entries between positions that are known, moved to the front */
static bool cut_own(OpenSlice *s, int64_t begin, int64_t end)
{
    OnnxNode *n = s->node;
    int64_t extent = onnx_dim(n, 0, s->axis), low = most(begin, -extent), high = least(end, extent), longest;
    const char *from = onnx_temp(n, "from"), *to = onnx_temp(n, "to");
    if (low < 0 && high >= 0)
        longest = least(-low, high);
    else
        longest = low >= 0 && high < 0 ? extent + high - low : high - low;
    longest = most(least(longest, extent), 1);
    if (!onnx_emit(n, "%s = %s", from, counted_position(s, begin)) ||
        !onnx_emit(n, "%s = %s", to, counted_position(s, end)) ||
        !limit(s, onnx_text(n, "maximum(%s - %s, 0)", to, from)))
        return false;
    s->x = onnx_text(n, "gather(%s, clip(iota(axis = 0, shape = [%lld], dtype = i64) + %s, 0, %lld), axis = %u)", s->x,
                     (long long)longest, from, (long long)extent - 1, s->axis);
    return true;
}

/* Both ends are known; of what has a count only the first so many. */
static bool cut_known(OpenSlice *s, int64_t begin, int64_t end)
{
    int64_t extent = onnx_dim(s->node, 0, s->axis), low = clamped(begin, extent), high = clamped(end, extent);
    if (has_own_count(s) && extent && (begin != 0 || end < 0))
        return cut_own(s, begin, end);
    if (has_own_count(s) && high < extent &&
        !limit(s, onnx_text(s->node, "minimum(%s, %lld)", onnx_name_value(s->node->onnx, s->count), (long long)high)))
        return false;
    return cut(s, low, high);
}

/* The first so many entries as something else has */
static bool cut_counted(OpenSlice *s, const OnnxExtent *end)
{
    OnnxNode *n = s->node;
    int64_t extent = onnx_dim(n, 0, s->axis);
    if (has_own_count(s) && s->count == end->count)
        return true;
    if (s->count && !has_own_count(s))
        return onnx_no(n, "two of its axes are as large as data say");
    if (!s->limited && !s->count && end->most <= extent) { /* it has all of them */
        s->limited = true;
        s->count = end->count;
        s->count_axis = s->axis;
        return cut(s, 0, end->most);
    }
    const char *many = onnx_name_value(n->onnx, end->count);
    const char *own = has_own_count(s) ? onnx_name_value(n->onnx, s->count) : onnx_text(n, "%lld", (long long)extent);
    return limit(s, onnx_text(n, "minimum(%s, %s)", many, own)) && cut(s, 0, least(end->most, extent));
}

/* Entry `i` of a list, as a position in the axis */
static const char *position(OpenSlice *s, uint32_t operand, uint32_t i)
{
    OnnxNode *n = s->node;
    long long extent = onnx_dim(n, 0, s->axis);
    const OnnxValue *list = n->in[operand];
    if (list->known)
        return onnx_text(n, "%lld", (long long)clamped(onnx_int_at(list->known, i), extent));
    const char *at = onnx_temp(n, operand == 1 ? "from" : "to"),
               *clipped = onnx_temp(n, operand == 1 ? "begin" : "end");
    return onnx_emit(n, "%s = cast(%s[%u], to = i64)", at, onnx_in(n, operand), i) &&
                   onnx_emit(n, "%s = clip(select(%s < 0, %s + %lld, %s), 0, %lld)", clipped, at, at, extent, at,
                             extent)
               ? clipped
               : NULL;
}

/* How many entries there are between its ends, at most; `whole`: so many, where these are in range. */
static int64_t most_between(const OpenSlice *s, uint32_t i, bool *whole)
{
    int64_t extent = onnx_dim(s->node, 0, s->axis), apart;
    *whole = onnx_find_distance(s->node->in[1], s->node->in[2], i, &apart) && apart > 0 && apart <= extent;
    return *whole ? apart : extent;
}

/* Entries from one position to another, moved to the front.  Where another axis is counted, those that are a known
 * number apart are all taken to be there. */
static bool cut_running(OpenSlice *s, uint32_t i)
{
    OnnxNode *n = s->node;
    bool whole;
    long long extent = onnx_dim(n, 0, s->axis), longest = most_between(s, i, &whole);
    bool counts = !s->limited && !s->count;
    if (!counts && s->limited && !whole)
        return onnx_no(n, "several of its axes have ends that are known only when running");
    if (extent < 1 || (!counts && (!whole || s->count_axis == s->axis)))
        return onnx_no(n, "its ends are known only when running, and what it slices is as large as data say");
    const char *begin = position(s, 1, i), *end = begin && counts ? position(s, 2, i) : begin;
    if (!end || (counts && !limit(s, onnx_text(n, "maximum(%s - %s, 0)", end, begin))))
        return false;
    if (counts)
        s->count->whole = whole;
    s->x = onnx_text(n, "gather(%s, minimum(iota(axis = 0, shape = [%lld], dtype = i64) + %s, %lld), axis = %u)", s->x,
                     longest, begin, extent - 1, s->axis);
    return true;
}

static bool cut_axis(OpenSlice *s, uint32_t i)
{
    OnnxExtent begin, end;
    bool known =
        onnx_find_extent(s->node->in[1], i, &begin) && !begin.count && onnx_find_extent(s->node->in[2], i, &end);
    if (!known || (end.count && begin.most != 0))
        return cut_running(s, i);
    return end.count ? cut_counted(s, &end) : cut_known(s, begin.most, end.most);
}

bool onnx_write_open_slice(OnnxNode *n)
{
    const OnnxValue *x = n->in[0];
    const int64_t *axes = NULL, *step;
    uint32_t count = (uint32_t)shape_elements(&n->in[1]->type->shape), given = count, steps;
    OpenSlice s = {
        .node = n, .x = onnx_in(n, 0), .count = x->count, .count_axis = x->count_axis, .rank = onnx_rank(n, 0)};
    if ((onnx_has(n, 3) && !onnx_known_ints(n, 3, &axes, &given)) || count > s.rank || given != count ||
        shape_elements(&n->in[2]->type->shape) != count || onnx_rank(n, 1) != 1 || onnx_rank(n, 2) != 1)
        return onnx_no(n, "its lists have not as many entries as each other");
    if (onnx_has(n, 4) && !onnx_known_ints(n, 4, &step, &steps))
        return false;
    for (uint32_t i = 0; onnx_has(n, 4) && i < steps; i++)
        if (step[i] != 1)
            return onnx_no(n, "it leaves out entries between ends that are known only when running");
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = axes ? axes[i] : i;
        axis += axis < 0 ? s.rank : 0;
        if (axis < 0 || axis >= s.rank)
            return onnx_no(n, "an axis is impossible");
        s.axis = (uint32_t)axis;
        if (!cut_axis(&s, i))
            return false;
    }
    n->count = s.count;
    n->counted = s.count != NULL;
    n->count_axis[0] = s.count_axis;
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), s.x);
}
