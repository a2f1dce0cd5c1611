/* What a contraction is to a library of matrix products (openblas.h): its axes on three sides, and what lies in memory
 * as a matrix.  Nothing is lowered here. */
#include "kernel/lower/openblas.h"

#include "base/number.h"

#define LARGEST INT32_MAX /* side, or stride: what CBLAS takes */

/* Axes */

bool blas_cuts(const Blas *b, uint32_t axis)
{
    return b->side[SIDE_ROWS].count && b->side[SIDE_ROWS].axis[0] == axis;
}

Index blas_line(const Blas *b, Index in_chunk)
{
    return b->chunk ? index_add(b->lower->arena, in_chunk,
                                index_scale(b->lower->arena, index_var(b->lower->arena, b->chunk), b->lines))
                    : in_chunk;
}

void blas_position(const Blas *b, const Access *access, const Index *axis, Index *position)
{
    Arena *arena = b->lower->arena;
    for (uint32_t d = 0; d < access->rank; d++) {
        position[d] = index_constant(access->begin[d]);
        for (uint32_t a = 0; a < b->con.axis_count; a++)
            position[d] = index_add(arena, position[d], index_scale(arena, axis[a], access->factor[d][a]));
    }
}

static bool goes_with(const Access *access, uint32_t axis)
{
    bool found = false;
    for (uint32_t d = 0; d < access->rank; d++)
        found |= access->factor[d][axis] != 0;
    return found;
}

/* Leading dimensions that the second operand does not have are more rows. */
static bool batches_are_rows(const Blas *b)
{
    bool rows = product_of(b->lower->graph, b->node, &(Product){0});
    for (uint32_t a = 0; a < b->con.axis_count; a++)
        if (b->con.axis[a].role == AXIS_BATCH && b->con.axis[a].extent > 1)
            rows &= !goes_with(&b->con.second, a) && goes_with(&b->con.first, a);
    return rows;
}

static void sort_axes(Blas *b)
{
    static const BlasSide side_of[] = {[AXIS_BATCH] = SIDE_ROWS,
                                       [AXIS_ROW] = SIDE_ROWS,
                                       [AXIS_COLUMN] = SIDE_COLUMNS,
                                       [AXIS_SUM] = SIDE_DEPTH,
                                       [AXIS_TAP] = SIDE_DEPTH};
    bool rows = batches_are_rows(b);
    for (BlasSide s = 0; s < SIDE_COUNT; s++)
        b->side[s].extent = 1;
    for (uint32_t a = 0; a < b->con.axis_count; a++) {
        const Axis *axis = &b->con.axis[a];
        b->at[a] = index_constant(0);
        if (axis->extent == 1)
            continue;
        if (axis->role == AXIS_BATCH && !rows) {
            b->batch[b->batch_count++] = a;
            continue;
        }
        BlasAxes *side = &b->side[side_of[axis->role]];
        side->axis[side->count++] = a;
        side->extent *= axis->extent;
    }
}

/* Matrices in memory */

/* How far apart its positions are in memory, whose address goes with a variable for each axis; false when not evenly.
 */
static bool side_stride(const Blas *b, BlasSide which, Index address, const Var *const *var, int64_t *stride)
{
    const BlasAxes *side = &b->side[which];
    int64_t expected = 0;
    *stride = 1;
    for (uint32_t i = side->count; i-- > 0;) {
        int64_t factor;
        if (!index_factor(address, var[side->axis[i]], &factor))
            return false;
        if (i + 1 == side->count)
            *stride = expected = factor;
        if (factor != expected)
            return false;
        expected = factor * b->con.axis[side->axis[i]].extent;
    }
    return true;
}

/* Of a value in memory: rows, or columns, whose elements follow one another. */
static bool lies_as_matrix(const Blas *b, BlasMatrix *m, ValueId value)
{
    Lower *lower = b->lower;
    const Var *var[MOST_AXES];
    Index axis[MOST_AXES], position[MAX_RANK], address;
    ValueId source;
    int64_t major, minor, rows = b->side[m->major].extent, columns = b->side[m->minor].extent;
    for (uint32_t d = 0; d < m->access->rank; d++)
        if (m->access->divisor[d] > 1 || m->access->guarded[d])
            return false;
    for (uint32_t a = 0; a < b->con.axis_count; a++) {
        var[a] = index_var_new(lower->arena, "a", 0, b->con.axis[a].extent - 1);
        axis[a] = index_var(lower->arena, var[a]);
    }
    blas_position(b, m->access, axis, position);
    if (!lower_memory_source(lower, value, position, &source, &address) ||
        value_type(lower->graph, source)->dtype != b->dtype || !side_stride(b, m->major, address, var, &major) ||
        !side_stride(b, m->minor, address, var, &minor))
        return false;
    m->transposed = columns > 1 && minor != 1;
    m->stride = m->transposed ? minor : rows > 1 ? major : columns;
    return (m->transposed ? (rows == 1 || major == 1) && minor >= rows : m->stride >= columns) && m->stride <= LARGEST;
}

/* A copy goes along memory: its innermost loop is over the axis whose positions are closest. */
static bool copies_transposed(const Blas *b, const BlasMatrix *m)
{
    const BlasAxes *major = &b->side[m->major], *minor = &b->side[m->minor];
    if (!major->count || !minor->count)
        return false;
    for (uint32_t d = m->access->rank; d-- > 0;) {
        bool by_major = m->access->factor[d][major->axis[major->count - 1]] != 0;
        bool by_minor = m->access->factor[d][minor->axis[minor->count - 1]] != 0;
        if (by_major != by_minor)
            return by_major;
        if (by_major) /* pixels, and the taps around them */
            return m->major == SIDE_ROWS;
    }
    return false;
}

static void see_operand(Blas *b, BlasMatrix *m)
{
    m->direct = !kernel_computes(b->lower, m->value) && lies_as_matrix(b, m, m->value);
    if (!m->direct)
        m->transposed = copies_transposed(b, m);
}

/* The product goes where the one result lies, and is finished there; else into scratch. */
static void see_result(Blas *b)
{
    ValueId stored = lower_result_for_sums(b->lower, b->node);
    b->result.direct = stored != NONE && value_type(b->lower->graph, stored)->dtype == b->dtype &&
                       lies_as_matrix(b, &b->result, stored);
    b->stored = b->result.direct ? stored : NONE;
    if (!b->result.direct)
        b->result.transposed = copies_transposed(b, &b->result);
}

/* Which */

static bool see_shape(Blas *b)
{
    const Graph *graph = b->lower->graph;
    const Node *node = b->node;
    b->con = contraction_of(graph, node);
    b->dtype = b->con.sum;
    if ((b->dtype != DT_F32 && b->dtype != DT_F64) || !shape_elements(value_shape(graph, node->out[0])))
        return false;
    for (uint32_t a = 0; a < b->con.axis_count; a++)
        if (!b->con.axis[a].extent)
            return false;
    sort_axes(b);
    for (BlasSide s = 0; s < SIDE_COUNT; s++)
        if (b->side[s].extent > LARGEST)
            return false;
    return b->side[SIDE_COLUMNS].extent > 1 && b->side[SIDE_DEPTH].extent > 1; /* a depthwise one has no matrices */
}

bool blas_see(Lower *lower, Blas *b)
{
    const Node *node = &lower->graph->node[lower->kernel->anchor];
    *b = (Blas){.lower = lower, .node = node};
    if (lower_has_other_windows(lower, lower->kernel) || !see_shape(b))
        return false;
    b->first = (BlasMatrix){.value = node->in[0], .access = &b->con.first, .major = SIDE_ROWS, .minor = SIDE_DEPTH};
    b->second =
        (BlasMatrix){.value = node->in[1], .access = &b->con.second, .major = SIDE_DEPTH, .minor = SIDE_COLUMNS};
    b->result = (BlasMatrix){.value = NONE, .access = &b->con.result, .major = SIDE_ROWS, .minor = SIDE_COLUMNS};
    see_operand(b, &b->first);
    see_operand(b, &b->second);
    see_result(b);
    return true;
}
