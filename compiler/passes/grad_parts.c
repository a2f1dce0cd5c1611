/* What reaches a value, put together: whole gradients are added, those of parts laid side by side, with zeros only
 * where no part is. */
#include <stdlib.h>
#include <string.h>

#include "passes/grad.h"

typedef struct Part { /* of a gradient: a box */
    ValueId value;
    uint32_t number; /* in the order they came */
    int64_t begin[MAX_RANK], end[MAX_RANK];
} Part;

typedef struct Region {
    DType dtype;
    uint32_t rank;
    int64_t begin[MAX_RANK], end[MAX_RANK];
} Region;

static Shape region_shape(const Region *region)
{
    Shape shape = {.rank = region->rank};
    for (uint32_t d = 0; d < region->rank; d++)
        shape.dim[d] = region->end[d] - region->begin[d];
    return shape;
}

static bool covers(const Part *part, const Region *region)
{
    for (uint32_t d = 0; d < region->rank; d++)
        if (part->begin[d] != region->begin[d] || part->end[d] != region->end[d])
            return false;
    return true;
}

static ValueId pad_part(Reverse *r, const Part *part, const Region *region)
{
    Shape shape = region_shape(region);
    int64_t begin[MAX_RANK];
    for (uint32_t d = 0; d < region->rank; d++)
        begin[d] = part->begin[d] - region->begin[d];
    return reverse_pad(r, part->value, begin, &shape);
}

static ValueId add(Reverse *r, ValueId sum, ValueId value)
{
    return sum == NONE ? value : reverse_build2(r, OP_ADD, sum, value);
}

/* Parts that cannot be told apart by a cut. */
static ValueId add_parts(Reverse *r, const Part *part, uint32_t count, const Region *region)
{
    ValueId sum = NONE;
    for (uint32_t i = 0; i < count; i++)
        sum = add(r, sum, pad_part(r, &part[i], region));
    return sum;
}

static _Thread_local uint32_t sorted_dimension; /* qsort takes no context */

static int compare_parts(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    int64_t from = x->begin[sorted_dimension], to = y->begin[sorted_dimension];
    return from != to ? (from > to) - (from < to) : (x->number > y->number) - (x->number < y->number);
}

static ValueId concat(Reverse *r, const ValueId *piece, uint32_t count, uint32_t dimension)
{
    Attr axis = {.i = dimension};
    return count == 1 ? piece[0] : reverse_build(r, OP_CONCAT, piece, count, &axis);
}

static ValueId lay(Reverse *r, Part *part, uint32_t count, const Region *region);

/* Parts, sorted along the dimension, in slabs of the region that none of them sticks out of. */
static ValueId lay_slabs(Reverse *r, Part *part, uint32_t count, const Region *region, uint32_t d)
{
    ValueId *piece = ARENA_ARRAY(r->scratch, ValueId, 2 * count + 1);
    uint32_t pieces = 0, first = 0;
    Region slab = *region;
    while (first < count) {
        if (part[first].begin[d] > slab.begin[d]) { /* nothing here */
            slab.end[d] = part[first].begin[d];
            piece[pieces++] = lay(r, part, 0, &slab);
            slab.begin[d] = slab.end[d];
        }
        uint32_t end = first;
        for (slab.end[d] = slab.begin[d]; end < count && (end == first || part[end].begin[d] < slab.end[d]); end++)
            slab.end[d] = part[end].end[d] > slab.end[d] ? part[end].end[d] : slab.end[d];
        piece[pieces++] = lay(r, part + first, end - first, &slab);
        slab.begin[d] = slab.end[d];
        first = end;
    }
    if (slab.begin[d] < region->end[d]) {
        slab.end[d] = region->end[d];
        piece[pieces++] = lay(r, part, 0, &slab);
    }
    return concat(r, piece, pieces, d);
}

/* Does a cut across the dimension lie between two parts? They get sorted along it. */
static bool can_cut(Part *part, uint32_t count, uint32_t dimension)
{
    int64_t end;
    sorted_dimension = dimension;
    qsort(part, count, sizeof *part, compare_parts);
    end = part[0].end[dimension];
    for (uint32_t i = 1; i < count; i++) {
        if (part[i].begin[dimension] >= end)
            return true;
        end = part[i].end[dimension] > end ? part[i].end[dimension] : end;
    }
    return false;
}

/* The tensor of the region that has these parts.  Recurses over slabs: at most as deep as cuts are nested. */
static ValueId lay(Reverse *r, Part *part, uint32_t count, const Region *region)
{
    Shape shape = region_shape(region);
    if (count == 0)
        return reverse_full(r, region->dtype, &shape, 0);
    if (count == 1)
        return covers(part, region) ? part->value : pad_part(r, part, region);
    for (uint32_t d = 0; d < region->rank; d++)
        if (can_cut(part, count, d))
            return lay_slabs(r, part, count, region, d);
    return add_parts(r, part, count, region);
}

static Part part_of(const Reverse *r, const Adjoint *adjoint, uint32_t number)
{
    const Shape *shape = value_shape(r->graph, adjoint->value);
    Part part = {.value = adjoint->value, .number = number};
    for (uint32_t d = 0; d < shape->rank; d++) {
        part.begin[d] = adjoint->begin[d];
        part.end[d] = adjoint->begin[d] + shape->dim[d];
    }
    return part;
}

ValueId grad_put_together(Reverse *r, const Adjoint *adjoint, uint32_t count, const Type *type)
{
    Region whole = {.dtype = type->dtype, .rank = type->shape.rank};
    Part *part = ARENA_ARRAY(r->scratch, Part, count);
    uint32_t parts = 0;
    ValueId sum = NONE;
    memcpy(whole.end, type->shape.dim, sizeof whole.end);
    for (uint32_t i = 0; i < count; i++) {
        if (adjoint[i].whole) {
            sum = add(r, sum, adjoint[i].value);
        } else if (shape_elements(value_shape(r->graph, adjoint[i].value)) > 0) {
            part[parts] = part_of(r, &adjoint[i], parts);
            parts++;
        }
    }
    if (parts)
        return add(r, sum, lay(r, part, parts, &whole));
    return sum == NONE ? reverse_full(r, type->dtype, &type->shape, 0) : sum;
}
