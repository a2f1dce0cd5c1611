/* Products with weights of 4 bits, which lie in blocks with a scale and a zero point each: DequantizeLinear of UINT4
 * along the first of [k, columns], and MatMul, which readers take together as a product of 4 bits. */
#include "onnx/write/export.h"

typedef struct Nibbles {   /* of W [rows, blocks * size] */
    const uint8_t *packed; /* [rows, blocks, size / 2] */
    const uint8_t *zero;   /* [rows, blocks], a byte each; NULL: all are 8 */
    int64_t rows, blocks, size, k;
} Nibbles;

static const Tensor *stored(const Graph *graph, ValueId v)
{
    return graph->value[v].role == ROLE_CONST && value_type(graph, v)->dtype == DT_U8 ? graph->value[v].data : NULL;
}

/* Converted zero points, each of 4 bits */
static bool take_zeros(const Graph *graph, ValueId v, Nibbles *w)
{
    const Node *cast = export_maker(graph, v, "cast");
    const Tensor *zero = cast ? stored(graph, cast->in[0]) : NULL;
    if (!zero || shape_elements(&zero->type->shape) != w->rows * w->blocks)
        return false;
    w->zero = zero->data;
    for (int64_t i = 0; i < w->rows * w->blocks; i++)
        if (w->zero[i] > 15)
            return false;
    return true;
}

static bool take_nibbles(const ExportNode *n, Nibbles *w)
{
    const Graph *graph = n->graph;
    const Shape *x = value_shape(graph, n->node->in[0]);
    const Tensor *packed = n->node->in_count >= 3 ? stored(graph, n->node->in[1]) : NULL;
    if (!packed || packed->type->shape.rank != 3 || x->rank < 1 || value_shape(graph, n->node->in[2])->rank != 2 ||
        value_type(graph, n->node->in[0])->dtype != DT_F32 || value_type(graph, n->node->in[2])->dtype != DT_F32)
        return false;
    const int64_t *dim = packed->type->shape.dim;
    *w = (Nibbles){packed->data, NULL, dim[0], dim[1], 2 * dim[2], x->dim[x->rank - 1]};
    return w->k > 0 && w->k <= w->blocks * w->size && w->rows * w->blocks > 0 &&
           (n->node->in_count == 3 || take_zeros(graph, n->node->in[3], w));
}

static void put_nibble(uint8_t *bytes, int64_t i, uint32_t nibble)
{
    bytes[i / 2] |= (uint8_t)(nibble << (i % 2 ? 4 : 0));
}

static ExportId put_weight(ExportNode *n, const Nibbles *w)
{
    int64_t whole = w->blocks * w->size, dim[] = {whole, w->rows};
    uint8_t *bytes = ARENA_ARRAY(n->e->arena, uint8_t, (whole * w->rows + 1) / 2);
    for (int64_t k = 0; k < whole; k++)
        for (int64_t row = 0; row < w->rows; row++) {
            uint8_t both = w->packed[(row * whole + k) / 2];
            put_nibble(bytes, k * w->rows + row, k % 2 ? both >> 4 : both & 15);
        }
    const char *name = export_text(n->e, "%s.turned", export_value_name(n->frame, n->node->in[1], "weight"));
    return export_nibbles(n->e, bytes, 2, dim, name);
}

static ExportId put_zero(ExportNode *n, const Nibbles *w)
{
    int64_t dim[] = {w->blocks, w->rows};
    uint8_t *bytes = ARENA_ARRAY(n->e->arena, uint8_t, (w->blocks * w->rows + 1) / 2);
    for (int64_t block = 0; block < w->blocks; block++)
        for (int64_t row = 0; row < w->rows; row++)
            put_nibble(bytes, block * w->rows + row, w->zero ? w->zero[row * w->blocks + block] : 8);
    return export_nibbles(n->e, bytes, 2, dim, export_text(n->e, "%s.zeros", n->wish[0]));
}

bool export_matmul_nibbles(ExportNode *n)
{
    Nibbles w;
    if (!take_nibbles(n, &w))
        return false;
    ExportId weight = put_weight(n, &w), zero = put_zero(n, &w);
    ExportId wide = export_make(n, "DequantizeLinear($%u, Transpose(z){perm=[1, 0]}, $%u){axis=0, block_size=%lld}",
                                weight, zero, (long long)w.size);
    if (w.k < w.blocks * w.size)
        wide = export_make(n, "Slice($%u, [0], [%lld], [0])", wide, (long long)w.k);
    return export_result(n, 0, "MatMul(x, $%u)", wide);
}
