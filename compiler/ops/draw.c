/* Draws: random numbers from a key that is known when running.  The same bits as a generator gives whose seed is the
 * key. */
#include "ops/infer.h"

#include <math.h>

#include "ir/attr.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/meaning.h"
#include "ops/random.h"

bool infer_draw(Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    const Type *key = infer_in_type(graph, node, 0);
    const Attr *given = attr_of(n, "shape");
    bool words = random_of(n).draw == DRAW_WORD;
    DType dtype = words ? DT_I64 : (DType)attr_int(n, "dtype");

    if (key->dtype != DT_I64 || key->shape.rank)
        return infer_fail(graph, node, "a key is an i64[]: " STR_FMT, STR_ARG(infer_show_operand(graph, node, 0)));
    if (given->i > MAX_RANK)
        return infer_fail(graph, node, "the result would have %d dimensions, more than %d", (int)given->i, MAX_RANK);
    if (!words && !dtype_is_float(dtype))
        return infer_fail(graph, node, "gives floating-point numbers, not %s", dtype_name(dtype));
    if (!infer_check_least(graph, node, "shape", 0))
        return false;
    Shape shape = shape_of((uint32_t)given->i, given->ints);
    return infer_set_plain(graph, node, 0, dtype, &shape);
}

bool node_is_random(const Node *node)
{
    return op_info(node->op)->family == FAMILY_DRAW;
}

static double half_of(DType dtype, uint16_t bits)
{
    return (double)(dtype == DT_BF16 ? dtype_bf16_to_f32(bits) : dtype_f16_to_f32(bits));
}

/* The last number of a dtype of halves below this one: what it rounds to, or the one before that */
static double half_below(DType dtype, double number)
{
    uint16_t bits = dtype == DT_BF16 ? dtype_f32_to_bf16((float)number) : dtype_f32_to_f16((float)number);
    if (half_of(dtype, bits) < number)
        return half_of(dtype, bits);
    if ((bits & 0x7fff) == 0)
        return half_of(dtype, 0x8001);
    return half_of(dtype, (uint16_t)(bits & 0x8000 ? bits + 1 : bits - 1));
}

/* The same of any floating-point dtype */
static double last_below(DType dtype, double number)
{
    if (dtype_is_half(dtype))
        return half_below(dtype, number);
    if (dtype == DT_F64)
        return nextafter(number, -INFINITY);
    float nearest = (float)number;
    return (double)((double)nearest < number ? nearest : nextafterf(nearest, -INFINITY));
}

/* Is the largest draw rounded up to the end?  Of wider dtypes few are, such as from 100 to 101; halves nearly always.
 */
static bool reaches_end(double low, double high, DType dtype)
{
    double largest = low + (high - low) * random_unit(UINT32_MAX);
    return dtype_is_half(dtype) || (dtype == DT_F32 ? (double)(float)largest : largest) >= high;
}

Random random_between(double low, double high, DType dtype)
{
    double end = reaches_end(low, high, dtype) ? last_below(dtype, high) : high;
    return (Random){DRAW_UNIT, low, (low <= end ? end : high) - low};
}

Random random_of(const Node *node)
{
    switch (node->op) {
    case OP_RANDOM_UNIFORM:
        return random_between(attr_float(node, "low"), attr_float(node, "high"), (DType)attr_int(node, "dtype"));
    case OP_RANDOM_NORMAL:
        return (Random){DRAW_GAUSS, attr_float(node, "mean"), attr_float(node, "std")};
    default:
        return (Random){DRAW_WORD, 0, 1};
    }
}

#define CHUNK 1024 /* a multiple of four */

void eval_draw(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    Random random = random_of(node);
    int64_t elements = shape_elements(&out[0]->type->shape), key, words[CHUNK];
    double numbers[CHUNK];
    (void)graph;
    elements_load_plain(in[0], 0, 1, COMPUTE_I64, &key);
    for (int64_t start = 0; start < elements; start += CHUNK) {
        int64_t count = elements - start < CHUNK ? elements - start : CHUNK;
        if (random.draw == DRAW_WORD)
            random_words((uint64_t)key, start, count, words);
        else if (random.draw == DRAW_UNIT)
            random_uniform((uint64_t)key, start, count, random.base, random.scale, numbers);
        else
            random_normal((uint64_t)key, start, count, random.base, random.scale, numbers);
        if (random.draw == DRAW_WORD)
            elements_store(out[0], start, count, COMPUTE_I64, words);
        else
            elements_store(out[0], start, count, COMPUTE_F64, numbers);
    }
}
