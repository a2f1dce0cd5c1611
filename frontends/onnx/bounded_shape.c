/* Shapes of what is as large as data say (bounded.c), shapes that are made of these, and parts that are put together
 * along the axis that depends on data. */
#include <string.h>

#include "onnx/import.h"

#define DEEPEST 16 /* nodes between a shape and an extent that is read of it */

bool onnx_write_counted_shape(OnnxNode *n, const int64_t *dim, uint32_t begin, uint32_t count)
{
    const OnnxValue *value = n->in[0];
    int64_t list[MAX_RANK];
    for (uint32_t i = 0; i < count; i++)
        list[i] = begin + i == value->count_axis ? -1 : dim[begin + i];
    const char *known = onnx_known_list(n, list, count, "extents");
    return onnx_emit(n, "%s = select(%s == -1, %s, %s)", onnx_out(n, 0), known, onnx_name_value(n->onnx, value->count),
                     known);
}

bool onnx_write_counted_size(OnnxNode *n)
{
    const OnnxValue *value = n->in[0];
    const Shape *shape = &value->type->shape;
    int64_t each = 1;
    for (uint32_t d = 0; d < shape->rank; d++)
        each *= d == value->count_axis ? 1 : shape->dim[d];
    return onnx_emit(n, "%s = %s * %lld", onnx_out(n, 0), onnx_name_value(n->onnx, value->count), (long long)each);
}

/* Extents */

static bool find_extent(const OnnxValue *value, int64_t at, uint32_t depth, OnnxExtent *extent);

static bool find_of_shape(const OnnxNode *n, int64_t at, OnnxExtent *extent)
{
    const OnnxValue *of = n->in[0];
    const Shape *shape = &of->type->shape;
    int64_t start = onnx_int(n, "start", 0), d = at + (start < 0 ? start + shape->rank : start);
    if (d < 0 || d >= shape->rank)
        return false;
    *extent = (OnnxExtent){shape->dim[d], d == of->count_axis ? of->count : NULL};
    return true;
}

static bool find_in_parts(const OnnxNode *n, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    for (uint32_t i = 0; i < n->in_count && n->in[i]; i++) {
        int64_t own = shape_elements(&n->in[i]->type->shape);
        if (at < own)
            return find_extent(n->in[i], at, depth, extent);
        at -= own;
    }
    return false;
}

/* One of the parts that a list was split into */
static bool find_in_part(const OnnxNode *n, const OnnxValue *part, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    for (uint32_t i = 0; i < n->out_count && n->out[i] && n->out[i]->type && !n->out[i]->count; i++) {
        if (n->out[i] == part)
            return n->in[0]->type->shape.rank == 1 && find_extent(n->in[0], at, depth, extent);
        at += shape_elements(&n->out[i]->type->shape);
    }
    return false;
}

static bool find_chosen(const OnnxNode *n, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    const Tensor *positions = n->in[1]->known;
    if (!positions || at >= shape_elements(&positions->type->shape) || n->in[0]->type->shape.rank != 1)
        return false;
    int64_t from = onnx_int_at(positions, at);
    return find_extent(n->in[0], from < 0 ? from + n->in[0]->type->shape.dim[0] : from, depth, extent);
}

static bool find_sliced(const OnnxNode *n, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    const OnnxValue *begin = n->in_count > 1 ? n->in[1] : NULL, *step = n->in_count > 4 ? n->in[4] : NULL;
    if (!begin || !begin->known || (step && (!step->known || tensor_number(step->known, 0) != 1)))
        return false;
    int64_t from = onnx_int_at(begin->known, 0), extent_of = n->in[0]->type->shape.dim[0];
    return n->in[0]->type->shape.rank == 1 && from < extent_of &&
           find_extent(n->in[0], at + (from < 0 ? from + extent_of : from), depth, extent);
}

/* where(shape == -1, 1, shape), as exporters keep extents that are -1: what is counted is none. */
static bool find_kept(const OnnxNode *n, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    const OnnxNode *test = n->in_count == 3 && n->in[0] ? n->in[0]->maker : NULL;
    OnnxExtent side[2];
    if (!test || strcmp(test->proto->op_type, "Equal") != 0)
        return false;
    for (uint32_t i = 0; i < 2; i++)
        if (!test->in[i] || !find_extent(test->in[i], at, depth, &side[i]))
            return false;
    bool counted = side[0].count || side[1].count;
    if (counted && (side[0].count ? side[1].count || side[1].most >= 0 : side[0].most >= 0))
        return false;
    bool equal = !counted && side[0].most == side[1].most;
    return n->in[2 - equal] && find_extent(n->in[2 - equal], at, depth, extent);
}

/* The sum with a number, of which with a count it must be 0 */
static bool find_sum(const OnnxNode *n, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    OnnxExtent side[2];
    for (uint32_t i = 0; i < 2; i++) {
        if (n->in_count != 2 || !n->in[i] || !n->in[i]->type)
            return false;
        bool one = shape_elements(&n->in[i]->type->shape) == 1; /* for all */
        if (!find_extent(n->in[i], one ? 0 : at, depth, &side[i]))
            return false;
    }
    bool counted = side[1].count != NULL; /* which of the two may have one */
    if (side[!counted].count || (side[counted].count && side[!counted].most) || side[0].most > INT64_MAX / 2 ||
        side[1].most > INT64_MAX / 2 || side[0].most < INT64_MIN / 2 || side[1].most < INT64_MIN / 2)
        return false;
    *extent = (OnnxExtent){side[0].most + side[1].most, side[counted].count};
    return true;
}

/* Which ops leave the order of elements as it is? */
static bool is_moved(const OnnxNode *n)
{
    static const char *const same[] = {"Unsqueeze", "Squeeze", "Cast", "Identity", "Reshape"};
    if (!n->in_count || !n->in[0])
        return false;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(n->proto->op_type, same[i]) == 0)
            return true;
    return strcmp(n->proto->op_type, "Expand") == 0 && n->out[0] && n->out[0]->type && n->in[0]->type &&
           shape_eq(&n->out[0]->type->shape, &n->in[0]->type->shape); /* to what it is */
}

static bool is_truths(const OnnxValue *value)
{
    return value->type && value->type->dtype == DT_BOOL;
}

/* The truths that the value is, whatever its shape and dtype; NULL.  What a Cast finds not to be 0 begins with it. */
static const OnnxValue *truths_of(const OnnxValue *value)
{
    for (uint32_t depth = DEEPEST; depth && value->type && value->maker && is_moved(value->maker); depth--) {
        if (is_truths(value) && !is_truths(value->maker->in[0]))
            return value;
        value = value->maker->in[0];
    }
    return is_truths(value) ? value : NULL;
}

/* The operand of NonZero or Compress that says which entries are there; NULL of other nodes */
static const OnnxValue *chooser_of(const OnnxNode *n)
{
    if (strcmp(n->proto->op_type, "NonZero") == 0)
        return n->in[0];
    return strcmp(n->proto->op_type, "Compress") == 0 ? n->in[1] : NULL;
}

OnnxValue *onnx_count_found(const Onnx *onnx, const OnnxBlock *home, const OnnxValue *chooser)
{
    const OnnxValue *truths = truths_of(chooser);
    for (uint32_t i = 0; truths && i < onnx->value_count; i++) {
        const OnnxValue *found = onnx->value[i];
        const OnnxValue *by = found->count && found->maker ? chooser_of(found->maker) : NULL;
        if (by && found->count->home == home && truths_of(by) == truths &&
            found->type->shape.dim[found->count_axis] == shape_elements(&truths->type->shape)) /* it saw them all */
            return found->count;
    }
    return NULL;
}

OnnxValue *onnx_non_zero_found(const Onnx *onnx, const OnnxValue *x)
{
    for (uint32_t i = 0; i < onnx->value_count; i++) {
        const OnnxNode *maker = onnx->value[i]->count ? onnx->value[i]->maker : NULL;
        if (maker && onnx->value[i]->home == onnx->block && strcmp(maker->proto->op_type, "NonZero") == 0 &&
            maker->in[0] == x)
            return onnx->value[i];
    }
    return NULL;
}

/* The sum itself, in the outermost block, as it counts. */
static OnnxValue *number_summed(OnnxNode *sum)
{
    Onnx *onnx = sum->onnx;
    OnnxValue *value = sum->out[0];
    const char *many, *name;
    if (value->number || onnx->block != onnx->root || (value->home && value->home != onnx->root))
        return value->number;
    name = onnx_name_value(onnx, value);
    many = onnx_temp(sum, "many");
    if (onnx_emit(sum, "%s = reshape(i64(%s), shape = [])", many, name))
        value->number = onnx_written(sum, many);
    return value->number;
}

/* How many truths there are, as a sum of all of them says. */
static bool find_number_of(OnnxNode *sum, OnnxExtent *extent)
{
    const OnnxValue *truths = truths_of(sum->in[0]);
    if (!truths || shape_elements(&sum->out[0]->type->shape) != 1)
        return false;
    OnnxValue *count = onnx_count_found(sum->onnx, sum->out[0]->home, truths);
    count = count ? count : number_summed(sum);
    *extent = (OnnxExtent){shape_elements(&truths->type->shape), count};
    return count != NULL;
}

OnnxValue *onnx_bounded_number(Onnx *onnx, OnnxValue *value)
{
    if (value->number || onnx->block != onnx->root || (value->home && value->home != onnx->root))
        return value->number;
    const char *own = onnx_name_value(onnx, value);
    const char *name = onnx_unique(onnx, str_format(onnx->arena, "%s.at_most", own).ptr);
    Str text = str_format(onnx->arena, "%s = clip(reshape(i64(%s), shape = []), 0, %lld)\n", name, own,
                          (long long)value->most);
    if (!onnx_write(onnx, STR("--at-most"), text))
        return NULL;
    value->number = onnx_value_new(onnx);
    *value->number =
        (OnnxValue){.type = module_plain_type(onnx->module, DT_I64, 0, NULL), .name = name, .home = onnx->block};
    return value->number;
}

/* Element `at` of integers that nodes move about between shapes.  Recurses DEEPEST nodes at most. */
static bool find_extent(const OnnxValue *value, int64_t at, uint32_t depth, OnnxExtent *extent)
{
    if (value->known) {
        int64_t elements = shape_elements(&value->type->shape);
        bool one = elements == 1; /* for all */
        if (!one && (at < 0 || at >= elements))
            return false;
        *extent = (OnnxExtent){onnx_int_at(value->known, one ? 0 : at), NULL};
        return true;
    }
    const OnnxNode *n = value->maker;
    if (value->most) {
        OnnxValue *number = n ? onnx_bounded_number(n->onnx, (OnnxValue *)value) : value->number;
        *extent = (OnnxExtent){value->most, number};
        return number != NULL;
    }
    if (!n || !depth || !n->in_count || !n->in[0])
        return false;
    const char *op = n->proto->op_type;
    if (strcmp(op, "Shape") == 0 || (strcmp(op, "Size") == 0 && n->in[0]->type->shape.rank == 1))
        return find_of_shape(n, at, extent);
    if (strcmp(op, "Concat") == 0)
        return find_in_parts(n, at, depth - 1, extent);
    if (strcmp(op, "Gather") == 0 && n->in[1])
        return find_chosen(n, at, depth - 1, extent);
    if (strcmp(op, "Split") == 0)
        return find_in_part(n, value, at, depth - 1, extent);
    if (strcmp(op, "Slice") == 0)
        return find_sliced(n, at, depth - 1, extent);
    if (strcmp(op, "Add") == 0)
        return find_sum(n, at, depth - 1, extent);
    if (strcmp(op, "Where") == 0)
        return find_kept(n, at, depth - 1, extent);
    if (strcmp(op, "ReduceSum") == 0)
        return find_number_of((OnnxNode *)n, extent);
    return is_moved(n) && find_extent(n->in[0], at, depth - 1, extent);
}

bool onnx_find_extent(const OnnxValue *list, int64_t at, OnnxExtent *extent)
{
    return find_extent(list, at, DEEPEST, extent);
}

bool onnx_set_known_extents(OnnxNode *n)
{
    if (!onnx_has(n, 0) || !onnx_has(n, 1))
        return false;
    const OnnxValue *shape = n->in[0];
    const Tensor *at = n->in[1]->known;
    int64_t list[MAX_RANK], count = at ? shape_elements(&at->type->shape) : 0;
    if (shape->known || shape->type->dtype != DT_I64 || shape->type->shape.rank != 1 || count < 1 || count > MAX_RANK ||
        at->type->shape.rank > 1)
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t from = onnx_int_at(at, i);
        OnnxExtent extent;
        if (!find_extent(shape, from < 0 ? from + shape->type->shape.dim[0] : from, DEEPEST, &extent) || extent.count)
            return false;
        list[i] = extent.most;
    }
    return onnx_set_ints(n, 0, DT_I64, list, (uint32_t)count, at->type->shape.rank == 0);
}

bool onnx_known_extents(OnnxNode *n, uint32_t operand, const int64_t **dim, uint32_t *count)
{
    if (!onnx_has(n, operand) || n->in[operand]->known || onnx_rank(n, operand) != 1)
        return onnx_known_ints(n, operand, dim, count);
    uint32_t rank = (uint32_t)onnx_dim(n, operand, 0), bounded = 0;
    int64_t *list = ARENA_ARRAY(n->onnx->arena, int64_t, rank + 1);
    for (uint32_t d = 0; d < rank; d++) {
        OnnxExtent extent;
        if (rank > MAX_RANK || !find_extent(n->in[operand], d, DEEPEST, &extent) || (extent.count && bounded++))
            return onnx_known_ints(n, operand, dim, count);
        list[d] = extent.most;
        if (extent.count) {
            n->count = extent.count;
            n->counted = 1;
            n->count_axis[0] = d;
        }
    }
    *dim = list;
    *count = rank;
    return true;
}

/* Parts */

/* Of each part in turn, which entries are there: a list of truths; of one that has no count all are. */
static bool put_there(OnnxNode *n, const OnnxValue *part, int64_t extent, Text *list)
{
    const char *entries = onnx_temp(n, "there");
    bool good = part->count ? onnx_emit(n, "%s = iota(axis = 0, shape = [%lld], dtype = i64) < %s", entries,
                                        (long long)extent, onnx_name_value(n->onnx, part->count))
                            : onnx_emit(n, "%s = full(1, [%lld], bool)", entries, (long long)extent);
    text_printf(list, "%s, ", entries);
    return good;
}

typedef struct OnnxJoined { /* parts along an axis, by how many entries each has */
    const OnnxBlock *block;
    OnnxValue *const *count; /* per part; NULL: all of its extent are there */
    const int64_t *extent;
    uint32_t parts;
    const char *there; /* of all parts, which entries are */
    OnnxValue *many;
} OnnxJoined;

/* Boxes and their scores are put together from parts of the same counts, and have as many. */
static OnnxJoined *find_joined(const OnnxNode *n, const OnnxJoined *wanted)
{
    for (uint32_t j = 0; j < n->onnx->joined_count; j++) {
        OnnxJoined *known = &n->onnx->joined[j];
        if (known->block == n->onnx->block && known->parts == wanted->parts &&
            memcmp(known->count, wanted->count, wanted->parts * sizeof *wanted->count) == 0 &&
            memcmp(known->extent, wanted->extent, wanted->parts * sizeof *wanted->extent) == 0)
            return known;
    }
    return NULL;
}

static bool join_counts(OnnxNode *n, OnnxJoined *joined)
{
    Text entries = {0};
    const char *holds = onnx_temp(n, "there");
    bool good = true;
    for (uint32_t i = 0; i < n->in_count && good; i++)
        good = put_there(n, n->in[i], joined->extent[i], &entries);
    good = good && onnx_emit(n, "%s = concat(%saxis = 0)", holds, entries.ptr);
    text_free(&entries);
    joined->there = holds;
    return good;
}

bool onnx_write_counted_concat(OnnxNode *n, int64_t axis)
{
    Arena *arena = n->onnx->arena;
    OnnxValue **count = ARENA_ARRAY(arena, OnnxValue *, n->in_count);
    int64_t *extent = ARENA_ARRAY(arena, int64_t, n->in_count);
    bool whole = true;
    Text parts = {0};
    for (uint32_t i = 0; i < n->in_count; i++) {
        text_printf(&parts, "%s, ", onnx_in(n, i));
        count[i] = n->in[i]->count;
        extent[i] = onnx_dim(n, i, axis);
        whole &= !onnx_is_open(n->in[i]);
    }
    OnnxJoined joined = {.block = n->onnx->block, .count = count, .extent = extent, .parts = n->in_count};
    const OnnxJoined *known = find_joined(n, &joined);
    const char *all = onnx_temp(n, "parts"), *many = onnx_temp(n, "many");
    bool good = known || join_counts(n, &joined);
    good = good && onnx_emit(n, "%s = concat(%saxis = %lld)", all, parts.ptr, (long long)axis) &&
           onnx_emit(n, "(%s, %s) = compress(%s, %s, axis = %lld)", onnx_out(n, 0), many, all,
                     known ? known->there : joined.there, (long long)axis);
    text_free(&parts);
    if (!good)
        return false;
    n->count = known ? known->many : onnx_written(n, many);
    n->count->whole |= whole;
    n->counted = 1;
    n->count_axis[0] = (uint32_t)axis;
    joined.many = n->count;
    if (!known)
        ARENA_PUSH(arena, n->onnx->joined, n->onnx->joined_count, n->onnx->joined_capacity, joined);
    return true;
}
