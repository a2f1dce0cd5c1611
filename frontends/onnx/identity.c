/* Nodes that give what they are given: `x * 1`, `i + 0`, `x and true`, the choice of a condition that is known,
 * positions that count up.  Exporters write them where a model could do more. */
#include <string.h>

#include "onnx/import.h"

#define MOST_ASKED 16777216 /* elements */

bool onnx_is_filled(const OnnxNode *n, uint32_t i, double number)
{
    const Tensor *known = onnx_has(n, i) ? n->in[i]->known : NULL;
    int64_t count = known ? shape_elements(&known->type->shape) : 0;
    if (!count || count > MOST_ASKED)
        return false;
    for (int64_t k = 0; k < count; k++)
        if (tensor_number(known, k) != number)
            return false;
    return true;
}

static bool is_number(const OnnxNode *n, uint32_t i, double number)
{
    double found;
    return onnx_is_constant(n, i, &found) && found == number;
}

/* Has operand `i` the shape that all of them have together? */
static bool keeps_shape(const OnnxNode *n, uint32_t i)
{
    Shape all = onnx_type(n, i)->shape;
    for (uint32_t k = 0; k < n->in_count; k++)
        if (!shape_broadcast(&all, &onnx_type(n, k)->shape, &all))
            return false;
    return shape_eq(&all, &onnx_type(n, i)->shape);
}

static bool gives(OnnxNode *n, uint32_t i)
{
    if (!keeps_shape(n, i) || onnx_type(n, n->in_count - 1)->dtype != onnx_type(n, n->in_count - 2)->dtype)
        return false;
    onnx_set_value(n, 0, n->in[i]);
    return true;
}

/* Do positions count up from 0 to `end`? */
static bool counts_up(const Tensor *at, int64_t end)
{
    if (shape_elements(&at->type->shape) != end)
        return false;
    for (int64_t i = 0; i < end; i++)
        if (onnx_int_at(at, i) != i)
            return false;
    return true;
}

/* The same of lists of positions, of the first dimensions of x */
static bool lists_count_up(const Tensor *at, const Shape *x)
{
    int64_t length = at->type->shape.dim[at->type->shape.rank - 1], slices = 1;
    for (int64_t d = 0; d < length; d++)
        slices *= x->dim[d];
    if (shape_elements(&at->type->shape) != slices * length)
        return false;
    for (int64_t i = 0; i < slices; i++) {
        int64_t number = 0;
        for (int64_t d = 0; d < length; d++) {
            int64_t position = onnx_int_at(at, i * length + d);
            if (position < 0 || position >= x->dim[d])
                return false;
            number = number * x->dim[d] + position;
        }
        if (number != i)
            return false;
    }
    return true;
}

/* Elements in their order: of x, where positions `at` stand in the place of `length` dimensions from `axis` on */
static bool write_all(OnnxNode *n, uint32_t axis, int64_t length, const Shape *at)
{
    const Shape *x = &onnx_type(n, 0)->shape;
    int64_t dim[2 * MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < axis; d++)
        dim[rank++] = x->dim[d];
    for (uint32_t d = 0; d < at->rank; d++)
        dim[rank++] = at->dim[d];
    for (uint32_t d = axis + (uint32_t)length; d < x->rank; d++)
        dim[rank++] = x->dim[d];
    if (rank > MAX_RANK || n->in[0]->count)
        return false;
    Shape shape = shape_of(rank, dim);
    if (shape_eq(&shape, x)) {
        onnx_set_value(n, 0, n->in[0]);
        return true;
    }
    return onnx_emit(n, "%s = reshape(%s, shape = %s)", onnx_out(n, 0), onnx_in(n, 0), onnx_list(n, dim, rank));
}

static bool gather_all(OnnxNode *n)
{
    int64_t axis = onnx_int(n, "axis", 0);
    const Tensor *at = onnx_has(n, 1) ? n->in[1]->known : NULL;
    axis += axis < 0 ? onnx_rank(n, 0) : 0;
    return at && dtype_is_int(at->type->dtype) && axis >= 0 && axis < onnx_rank(n, 0) && at->type->shape.rank &&
           counts_up(at, onnx_dim(n, 0, axis)) && write_all(n, (uint32_t)axis, 1, &at->type->shape);
}

static bool gather_lists(OnnxNode *n)
{
    const Tensor *at = onnx_has(n, 1) ? n->in[1]->known : NULL;
    Shape lists = at ? at->type->shape : (Shape){0};
    if (!lists.rank || !dtype_is_int(at->type->dtype) || onnx_int(n, "batch_dims", 0) ||
        lists.dim[lists.rank - 1] > onnx_rank(n, 0) || !lists_count_up(at, &onnx_type(n, 0)->shape))
        return false;
    int64_t length = lists.dim[--lists.rank];
    return write_all(n, 0, length, &lists);
}

static bool write_choice(OnnxNode *n)
{
    return onnx_type(n, 0)->dtype == DT_BOOL &&
           ((onnx_is_filled(n, 0, 1) && gives(n, 1)) || (onnx_is_filled(n, 0, 0) && gives(n, 2)));
}

/* Either operand beside one that changes nothing */
static bool write_beside(OnnxNode *n, bool (*changes_nothing)(const OnnxNode *n, uint32_t i, double number),
                         double number)
{
    return (changes_nothing(n, 1, number) && gives(n, 0)) || (changes_nothing(n, 0, number) && gives(n, 1));
}

bool onnx_write_identity(OnnxNode *n)
{
    const char *op = n->proto->op_type;
    if ((n->proto->domain && *n->proto->domain) || n->opset < 7 || n->in_count < 2)
        return false;
    for (uint32_t i = 0; i < n->in_count; i++)
        if (!onnx_has(n, i) || !n->in[i]->type)
            return false;
    if (strcmp(op, "Where") == 0 && n->in_count == 3)
        return write_choice(n);
    if (n->in_count != 2)
        return false;
    if (strcmp(op, "And") == 0 || strcmp(op, "Or") == 0)
        return write_beside(n, onnx_is_filled, *op == 'A');
    if (strcmp(op, "Mul") == 0)
        return write_beside(n, is_number, 1);
    if (strcmp(op, "Add") == 0) /* of floats -0 becomes 0 */
        return dtype_is_int(onnx_type(n, 0)->dtype) && write_beside(n, is_number, 0);
    if (strcmp(op, "Div") == 0)
        return is_number(n, 1, 1) && gives(n, 0);
    if (strcmp(op, "Gather") == 0)
        return gather_all(n);
    return strcmp(op, "GatherND") == 0 && gather_lists(n);
}
