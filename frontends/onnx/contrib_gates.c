/* Gates beside linear attention, and what goes with them (com.microsoft), computed in f32 whatever the type of their
 * operands; but a sum with one is rounded as its two operations would be. */
#include <string.h>

#include "onnx/import.h"

#define CONTRIB "com.microsoft"

static bool is_narrow(const OnnxNode *n, uint32_t i)
{
    return dtype_bytes(onnx_type(n, i)->dtype) < 4;
}

static const char *wide(OnnxNode *n, uint32_t i)
{
    return onnx_text(n, is_narrow(n, i) ? "cast(%s, to = f32)" : "%s", onnx_in(n, i));
}

/* Result r, of the type of operand i */
static bool give(OnnxNode *n, uint32_t r, uint32_t i, const char *x)
{
    if (!is_narrow(n, i))
        return onnx_emit(n, "%s = %s", onnx_out(n, r), x);
    return onnx_emit(n, "%s = cast(%s, to = %s)", onnx_out(n, r), x, dtype_name(onnx_type(n, i)->dtype));
}

static bool is_vector(const OnnxNode *n, uint32_t i, int64_t extent)
{
    return onnx_has(n, i) && onnx_rank(n, i) == 1 && onnx_dim(n, i, 0) == extent;
}

static bool write_linear_gate(OnnxNode *n)
{
    int64_t heads = onnx_rank(n, 0) == 3 ? onnx_dim(n, 0, 2) : -1;
    if (!is_vector(n, 1, heads) || !is_vector(n, 2, heads))
        return onnx_no(n, "its bias or scale has not one element for each head");
    if (onnx_wants(n, 1) && (!onnx_has(n, 3) || !shape_eq(&onnx_type(n, 3)->shape, &onnx_type(n, 0)->shape)))
        return onnx_no(n, "its update rates do not fit its decays");
    const char *decay = onnx_text(n, "%s * softplus(%s + %s)", onnx_in(n, 2), wide(n, 0), onnx_in(n, 1));
    return (!onnx_wants(n, 0) || give(n, 0, 0, decay)) &&
           (!onnx_wants(n, 1) || give(n, 1, 3, onnx_text(n, "sigmoid(%s)", wide(n, 3))));
}

/* Each stretch of a row that is as long as the scale, by its root mean square */
static bool write_gated_norm(OnnxNode *n)
{
    const char *activation = onnx_string(n, "activation", "silu"), *name = onnx_temp(n, "normed");
    bool plain = strcmp(activation, "sigmoid") == 0;
    Shape shape = onnx_type(n, 0)->shape, apart = shape;
    if (!plain && strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0)
        return onnx_no(n, "its activation is unknown");
    int64_t each = onnx_rank(n, 1) == 1 ? onnx_dim(n, 1, 0) : 0;
    if (!shape.rank || each < 1 || shape.dim[shape.rank - 1] % each || !shape_eq(&shape, &onnx_type(n, 2)->shape))
        return onnx_no(n, "its scale or its gate does not fit its operand");
    bool parts = shape.dim[shape.rank - 1] != each && shape.rank < MAX_RANK;
    if (!parts && shape.dim[shape.rank - 1] != each)
        return onnx_no(n, "it has more than %d dimensions", MAX_RANK - 1);
    if (parts) {
        apart.dim[apart.rank++] = each;
        apart.dim[shape.rank - 1] /= each;
    }
    const char *x = onnx_temp(n, "x"), *scale = onnx_temp(n, "scale");
    const char *of =
        parts ? onnx_text(n, "reshape(%s, shape = %s)", wide(n, 0), onnx_list(n, apart.dim, apart.rank)) : wide(n, 0);
    if (!onnx_emit(n, "%s = %s", x, of) || !onnx_emit(n, "%s = %s", scale, wide(n, 1)))
        return false;
    OnnxNode *node = onnx_cover(n, "RMSNormalization", 23, 2);
    onnx_set_operand(node, 0, onnx_written(n, x));
    onnx_set_operand(node, 1, onnx_written(n, scale));
    onnx_add_float(node, "epsilon", onnx_float(n, "epsilon", 1e-5));
    onnx_name_results(node, &name, 1);
    if (!onnx_write_cover(n, node))
        return false;
    const char *whole =
        parts ? onnx_text(n, "reshape(%s, shape = %s)", name, onnx_list(n, shape.dim, shape.rank)) : name;
    return give(n, 0, 0, onnx_text(n, "%s * %s(%s)", whole, plain ? "sigmoid" : "silu", wide(n, 2)));
}

static bool write_gated_add(OnnxNode *n)
{
    Shape row = onnx_type(n, 0)->shape;
    if (onnx_has(n, 3))
        return onnx_no(n, "its gate is a product, which is for GPUs alone");
    if (row.rank)
        row.dim[row.rank - 1] = 1;
    if (!shape_eq(&onnx_type(n, 1)->shape, &onnx_type(n, 0)->shape) || !shape_eq(&onnx_type(n, 2)->shape, &row))
        return onnx_no(n, "its operands do not fit each other");
    return onnx_emit(n, "%s = %s + %s * %s", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1), onnx_in(n, 2));
}

/* Each factor is rounded to the operand's type. */
static bool write_scaled_silu(OnnxNode *n)
{
    const char *dtype = dtype_name(onnx_type(n, 0)->dtype);
    if (onnx_has(n, 1) && onnx_rank(n, 1))
        return onnx_no(n, "its scale is no scalar");
    const char *scale = onnx_has(n, 1) ? wide(n, 1) : onnx_number(n, DT_F32, onnx_float(n, "alpha", 1));
    const char *scaled = onnx_text(n, "%s * %s", scale, wide(n, 0));
    if (!is_narrow(n, 0))
        return onnx_emit(n, "%s = silu(%s)", onnx_out(n, 0), scaled);
    scaled = onnx_define(n, "scaled", "cast(%s, to = %s)", scaled, dtype);
    return scaled &&
           onnx_emit(n, "%s = %s * cast(sigmoid(cast(%s, to = f32)), to = %s)", onnx_out(n, 0), scaled, scaled, dtype);
}

/* Branches as a dimension before their elements; false after onnx_no */
static bool take_branches(OnnxNode *n, Shape *apart)
{
    int64_t branches = onnx_int(n, "num_branches", 0);
    *apart = onnx_type(n, 0)->shape;
    uint32_t rank = apart->rank;
    if (branches) {
        if (rank < 1 || rank == MAX_RANK || branches < 0 || apart->dim[rank - 1] % branches)
            return onnx_no(n, "its num_branches, %lld, do not fit its operand", (long long)branches);
        apart->dim[rank] = apart->dim[rank - 1] / branches;
        apart->dim[rank - 1] = branches;
        apart->rank++;
    }
    return apart->rank >= 2 || onnx_no(n, "its operand has no branches");
}

/* Of one branch, or of all of them, in one dimension or two; `row` is of branches and elements. */
static const char *branch_scale(OnnxNode *n, const int64_t *row)
{
    const Shape *own = &onnx_type(n, 1)->shape;
    Shape one = shape_of(1, row + 1), all = shape_of(2, row);
    if (shape_eq(own, &one) || shape_eq(own, &all))
        return wide(n, 1);
    if (own->rank == 1 && own->dim[0] == row[0] * row[1])
        return onnx_text(n, "reshape(%s, shape = %s)", wide(n, 1), onnx_list(n, row, 2));
    return onnx_no(n, "its scale does not fit its branches"), NULL;
}

static bool write_branch_norm(OnnxNode *n)
{
    Shape shape = onnx_type(n, 0)->shape, apart;
    if (!take_branches(n, &apart))
        return false;
    const char *x = wide(n, 0), *scale = onnx_has(n, 1) ? branch_scale(n, apart.dim + apart.rank - 2) : NULL;
    if (apart.rank != shape.rank)
        x = onnx_text(n, "reshape(%s, shape = %s)", x, onnx_list(n, apart.dim, apart.rank));
    x = onnx_define(n, "x", "%s", x);
    if (!x)
        return false;
    const char *y = onnx_text(n, "%s * rsqrt(mean(square(%s), -1, true) + %s)", x, x,
                              onnx_number(n, DT_F32, onnx_float(n, "epsilon", (double)1e-5f)));
    y = scale ? onnx_text(n, "%s * %s", y, scale) : y;
    if (apart.rank != shape.rank)
        y = onnx_text(n, "reshape(%s, shape = %s)", y, onnx_list(n, shape.dim, shape.rank));
    return give(n, 0, 0, y);
}

const OnnxRow onnx_contrib_gates[] = {
    {"LinearAttentionGate", 1, write_linear_gate, NULL, CONTRIB, false},
    {"GatedRMSNorm", 1, write_gated_norm, NULL, CONTRIB, false},
    {"GatedAdd", 1, write_gated_add, NULL, CONTRIB, false},
    {"ScaledSiLU", 1, write_scaled_silu, NULL, CONTRIB, false},
    {"BranchwiseRMSNorm", 1, write_branch_norm, NULL, CONTRIB, false},
    {0},
};
