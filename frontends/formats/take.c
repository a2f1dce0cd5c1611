/* Elements of a mapped file as tensors of the model. */
#include "formats/wanted.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "formats/weights.h"

/* The double that a 16-bit float is made of through a float must not be rounded twice: inexact ones become the odd
 * neighbour (Boldo and Melquiond, "When double rounding is odd", 2004). */
static double round_to_odd(double x)
{
    float near = (float)x;
    if ((double)near == x || !isfinite(x))
        return x;
    if (fabs(x) > FLT_MAX)
        return x > 0 ? FLT_MAX : -FLT_MAX;
    float low = (double)near < x ? near : nextafterf(near, -INFINITY), high = nextafterf(low, INFINITY);
    union {
        float number;
        uint32_t bits;
    } odd = {low};
    return odd.bits & 1 ? low : high;
}

static bool fits_range(const Tensor *to, int64_t i, double x)
{
    return !isfinite(x) || isfinite(tensor_number(to, i));
}

static const Tensor *convert(Module *module, Str path, const Tensor *from, const WantedTensor *wanted)
{
    const Type *type = weights_value(wanted)->type;
    Tensor *to = tensor_new(module->arena, type);
    bool half = dtype_bytes(type->dtype) == 2 && from->type->dtype == DT_F64;

    for (int64_t i = 0; i < shape_elements(&type->shape); i++) {
        double x = tensor_number(from, i);
        tensor_set_number(to, i, half ? round_to_odd(x) : x);
        if (!fits_range(to, i, x)) {
            diag_file_error(module->diag, path, "tensor " STR_FMT ": element %" PRId64 ", %g, is too large for %s",
                            STR_ARG(wanted->name), i, x, dtype_name(type->dtype));
            return NULL;
        }
    }
    return to;
}

static bool check_bools(Module *module, Str path, const StoredTensor *stored, const unsigned char *bytes)
{
    for (uint64_t i = 0; i < stored->end - stored->begin; i++)
        if (bytes[i] > 1)
            return diag_file_error(module->diag, path, "tensor " STR_FMT ": a bool is %u, neither 0 nor 1",
                                   STR_ARG(stored->name), bytes[i]);
    return true;
}

const Tensor *weights_take(Module *module, Str path, const Safetensors *file, const WantedTensor *wanted)
{
    const StoredTensor *stored = wanted->stored;
    const unsigned char *bytes = file->bytes + stored->begin;

    if (stored->dtype == DT_BOOL && !check_bools(module, path, stored, bytes))
        return NULL;
    Tensor *tensor = ARENA_NEW(module->arena, Tensor);
    tensor->type = module_plain_type(module, stored->dtype, stored->shape.rank, stored->shape.dim);
    bool aligned = (uintptr_t)bytes % dtype_bytes(stored->dtype) == 0;
    tensor->data =
        aligned ? (void *)(uintptr_t)bytes : arena_copy(module->arena, bytes, (size_t)(stored->end - stored->begin));
    return wanted->fit == FIT_SAME ? tensor : convert(module, path, tensor, wanted);
}
