/* Products of com.microsoft: by weights of 4 bits that stand for numbers of a table, and of integers of 16 bits. */
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* What a code of 4 bits means: of FP4, and of NF4 (Dettmers et al. 2023), quantiles of a Gaussian between -1 and 1 */
static const float code_table[2][16] = {
    {0, 0x1.555556p-8f, 0x1.555556p-1f, 1, 0x1.555556p-2f, 0.5f, 0x1.555556p-3f, 0.25f, 0, -0x1.555556p-8f,
     -0x1.555556p-1f, -1, -0x1.555556p-2f, -0.5f, -0x1.555556p-3f, -0.25f},
    {-1, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
     -0.18477343022823334f, -0.09105003625154495f, 0, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
     0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1},
};

typedef struct Coded { /* weights [rows, columns] that follow each other, two in a byte, with a scale for each block */
    int64_t rows, columns, size, count;
    int64_t kind;
    bool transposed; /* the product is over the columns */
} Coded;

static bool take_coded(OnnxNode *n, Coded *c)
{
    *c = (Coded){.rows = onnx_int(n, "N", 0),
                 .columns = onnx_int(n, "K", 0),
                 .size = onnx_int(n, "block_size", 0),
                 .kind = onnx_int(n, "quant_type", -1),
                 .transposed = onnx_int(n, "transB", 1) != 0};
    if (c->kind != 0 && c->kind != 1)
        return onnx_no(n, "its quant_type is %lld, neither FP4 nor NF4", (long long)c->kind);
    if (c->size < 16 || c->size > INT32_MAX || c->size & (c->size - 1))
        return onnx_no(n, "its block_size is %lld, and no power of 2 from 16 on", (long long)c->size);
    if (c->rows < 1 || c->columns < 1 || c->rows > INT32_MAX || c->columns > INT32_MAX || onnx_rank(n, 0) < 1 ||
        onnx_dim(n, 0, -1) != (c->transposed ? c->columns : c->rows))
        return onnx_no(n, "its weights do not fit its operand");
    c->count = c->rows * c->columns;
    if (onnx_type(n, 1)->dtype != DT_U8 || shape_elements(&onnx_type(n, 1)->shape) != (c->count + 1) / 2 ||
        shape_elements(&onnx_type(n, 2)->shape) != ceil_div(c->count, c->size))
        return onnx_no(n, "its weights or their scales have other extents than N and K");
    return true;
}

static const char *name_table(OnnxNode *n, const Coded *c)
{
    int64_t extent = 16;
    Tensor *table = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, 1, &extent));
    memcpy(table->data, code_table[c->kind], sizeof code_table[c->kind]);
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, table, c->kind ? "nf4" : "fp4"));
}

/* The high half of a byte comes first. */
static bool write_matmul_coded(OnnxNode *n)
{
    Coded c;
    if (!take_coded(n, &c))
        return false;
    int64_t bytes = (c.count + 1) / 2, unit[] = {bytes}, pairs[] = {2 * bytes}, blocks[] = {ceil_div(c.count, c.size)},
            whole[] = {c.rows, c.columns};
    const char *byte = onnx_define(n, "bytes", "reshape(%s, shape = %s)", onnx_in(n, 1), onnx_list(n, unit, 1));
    const char *code =
        byte ? onnx_define(n, "codes",
                           "reshape(stack([shift_right(%s, 4), bit_and(%s, 15)], axis = 1), shape = %s)[0:%lld]", byte,
                           byte, onnx_list(n, pairs, 1), (long long)c.count)
             : NULL;
    const char *w =
        code ? onnx_define(n, "weight",
                           "reshape(gather(%s, cast(%s, to = i32)) * repeat(reshape(%s, shape = %s), %lld, 0)[0:%lld], "
                           "shape = %s)",
                           name_table(n, &c), code, onnx_widened(n, 2), onnx_list(n, blocks, 1), (long long)c.size,
                           (long long)c.count, onnx_list(n, whole, 2))
             : NULL;
    return w && onnx_put_rounded(n, 0,
                                 onnx_text(n, "matmul(%s, %s%s)", onnx_widened(n, 0), w,
                                           c.transposed ? ", transpose_y = true" : ""));
}

/* Sums wrap in 32 bits. */
static bool write_matmul_short(OnnxNode *n)
{
    for (uint32_t i = 0; i < 2; i++)
        if (onnx_type(n, i)->dtype != DT_I16 && onnx_type(n, i)->dtype != DT_U16)
            return onnx_no(n, "its operands are no integers of 16 bits");
    return onnx_emit(n, "%s = cast(%s, to = i32) @ cast(%s, to = i32)", onnx_out(n, 0), onnx_in(n, 0), onnx_in(n, 1));
}

const OnnxRow onnx_contrib_bits[] = {
    {"MatMulBnb4", 1, write_matmul_coded, NULL, CONTRIB, false},
    {"MatMulInteger16", 1, write_matmul_short, NULL, CONTRIB, false},
    {0},
};
