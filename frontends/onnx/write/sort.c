/* Positions in order: TopK, which of equal ones takes the first, too.  Where NaN comes ONNX does not say. */
#include "onnx/write/export.h"

void export_top_k(ExportNode *n, ExportId x, int64_t k, int64_t axis, bool largest, const ExportId out[2])
{
    ExportId in[] = {x, export_list(n->e, DT_I64, &k, 1)};
    Onnx__NodeProto *node = export_append(n->e, "TopK", in, 2, out, 2);
    export_attribute_int(n->e, node, "axis", axis);
    export_attribute_int(n->e, node, "largest", largest);
}

bool export_sort(ExportNode *n)
{
    Sorting s = sorting_of(n->graph, n->node);
    ExportId x = n->in[0];
    if (n->dtype == DT_U64) /* which it does not take */
        x = export_make(n, "Cast(BitwiseXor(x, 9223372036854775808)){to=i64}");
    ExportId out[] = {export_id_near(n->e, export_text(n->e, "%s.values", n->wish[0])),
                      export_id_near(n->e, n->wish[0])};
    export_top_k(n, x, s.count, s.dimension, s.descending, out);
    n->out[0] = out[1];
    return true;
}
