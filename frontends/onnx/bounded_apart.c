/* How far two positions are apart that are computed when running, as of x[p : p + 8] or x[3 * i : 3 * (i + 1)]: both
 * are followed back to the same value, times a number, plus another. */
#include <string.h>

#include "onnx/import.h"

#define DEEPEST 24          /* nodes behind a position */
#define LARGEST (1LL << 30) /* number in it: products of two are far from overflow */

typedef struct Linear { /* times * from[at] + plus */
    const OnnxValue *from;
    int64_t at, times, plus;
} Linear;

static bool is_op(const OnnxNode *n, const char *op)
{
    return strcmp(n->proto->op_type, op) == 0;
}

static bool is_integer(const OnnxValue *value)
{
    return value && value->type && !value->sequence && !dtype_is_float(value->type->dtype) &&
           value->type->dtype != DT_BOOL;
}

static int64_t elements_of(const OnnxValue *value)
{
    return shape_elements(&value->type->shape);
}

/* The element of an operand that an elementwise op takes for element `at` of a list or a number. */
static int64_t taken(const OnnxValue *operand, int64_t at)
{
    return elements_of(operand) == 1 ? 0 : at;
}

static bool number_at(const OnnxValue *value, int64_t at, int64_t *number)
{
    if (!is_integer(value) || !value->known || at < 0 || at >= elements_of(value))
        return false;
    *number = onnx_int_at(value->known, at);
    return *number <= LARGEST && *number >= -LARGEST;
}

/* Ops that leave the order of elements as it is */
static bool is_moved(const OnnxNode *n)
{
    static const char *const same[] = {"Unsqueeze", "Squeeze", "Cast", "Identity", "Reshape"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (is_op(n, same[i]))
            return is_integer(n->in[0]);
    return false;
}

static bool go_to(Linear *linear, const OnnxValue *value, int64_t at)
{
    linear->from = value;
    linear->at = at;
    return true;
}

static bool go_to_part(Linear *linear, const OnnxNode *n)
{
    int64_t at = linear->at;
    for (uint32_t i = 0; i < n->in_count && is_integer(n->in[i]) && n->in[i]->type->shape.rank == 1; i++) {
        if (at < elements_of(n->in[i]))
            return go_to(linear, n->in[i], at);
        at -= elements_of(n->in[i]);
    }
    return false;
}

static bool go_to_chosen(Linear *linear, const OnnxNode *n)
{
    int64_t at;
    if (n->in_count != 2 || !is_integer(n->in[0]) || n->in[0]->type->shape.rank != 1 ||
        !number_at(n->in[1], linear->at, &at))
        return false;
    return go_to(linear, n->in[0], at < 0 ? at + elements_of(n->in[0]) : at);
}

/* Of a sum, a difference or a product with what is known, the other operand */
static bool go_to_term(Linear *linear, const OnnxNode *n)
{
    bool product = is_op(n, "Mul"), difference = is_op(n, "Sub");
    if (n->in_count != 2 || (!product && !difference && !is_op(n, "Add")))
        return false;
    for (uint32_t i = difference; i < 2; i++) {
        int64_t number;
        const OnnxValue *term = n->in[!i];
        if (!is_integer(n->in[i]) || !is_integer(term) || !number_at(n->in[i], taken(n->in[i], linear->at), &number))
            continue;
        int64_t factor = product ? number : 1, plus = product ? 0 : linear->times * (difference ? -number : number);
        linear->times *= factor;
        linear->plus += plus;
        bool small = linear->plus <= LARGEST && linear->plus >= -LARGEST && linear->times <= LARGEST &&
                     linear->times >= -LARGEST;
        return small && go_to(linear, term, taken(term, linear->at));
    }
    return false;
}

static bool go_back(Linear *linear)
{
    const OnnxNode *n = linear->from->maker;
    if (!n || !n->in_count || !n->in[0] || linear->from != n->out[0])
        return false;
    if (is_moved(n))
        return go_to(linear, n->in[0], linear->at);
    return is_op(n, "Concat")   ? go_to_part(linear, n)
           : is_op(n, "Gather") ? go_to_chosen(linear, n)
                                : go_to_term(linear, n);
}

static Linear follow(const OnnxValue *value, int64_t at)
{
    Linear linear = {value, at, 1, 0};
    for (uint32_t depth = DEEPEST; depth && !linear.from->known; depth--)
        if (!go_back(&linear))
            break;
    return linear;
}

bool onnx_find_distance(const OnnxValue *begin, const OnnxValue *end, int64_t at, int64_t *distance)
{
    if (!is_integer(begin) || !is_integer(end))
        return false;
    Linear from = follow(begin, at), to = follow(end, at);
    if (from.from != to.from || from.at != to.at || from.times != to.times || from.from->known)
        return false;
    *distance = to.plus - from.plus;
    return true;
}
