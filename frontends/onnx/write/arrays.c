/* Calls of the library that move elements about: tiles, elements at positions, blocks of images.  Positions that count
 * from the end, or lie behind it, are brought where the language has them. */
#include "onnx/write/export.h"

#include <string.h>

#define SET_MOVED (DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64) | SET_WIDE | DTYPE_IN(DT_I8) | DTYPE_IN(DT_U8) | SET_BOOL)

bool export_tile(ExportNode *n)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *to = value_shape(n->graph, n->node->out[0]);
    int64_t times[MAX_RANK];
    if (!export_takes(n, SET_MOVED) || from->rank != to->rank || !from->rank)
        return false;
    for (uint32_t d = 0; d < from->rank; d++)
        times[d] = to->dim[d] / from->dim[d];
    return export_result(n, 0, "Tile(x, %s)", export_ints(n, times, from->rank));
}

static bool takes_positions(const ExportNode *n)
{
    DType dtype = value_type(n->graph, n->node->in[1])->dtype;
    return n->node->in_count == 2 && SET_MOVED & DTYPE_IN(value_type(n->graph, n->node->in[0])->dtype) &&
           SET_INT & DTYPE_IN(dtype) && dtype != DT_U64 && shape_elements(value_shape(n->graph, n->node->in[0]));
}

/* Operand 1, each of its positions in one of these extents: one for all, or one for each of the last dimension. */
static ExportId inside(ExportNode *n, const int64_t *extent, uint32_t count)
{
    int64_t last[MAX_RANK];
    for (uint32_t i = 0; i < count; i++)
        last[i] = extent[i] - 1;
    ExportId all = export_list(n->e, DT_I64, extent, count), most = export_list(n->e, DT_I64, last, count);
    ExportId at = n->in[1];
    if (value_type(n->graph, n->node->in[1])->dtype != DT_I64)
        at = export_make(n, "Cast(y){to=i64}");
    return export_make(n, "Min(Max(Where(Less($%u, i64:0), Add($%u, $%u), $%u), i64:0), $%u)", at, at, all, at, most);
}

bool export_gather_elements(ExportNode *n)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *index = value_shape(n->graph, n->node->in[1]);
    int64_t axis = export_argument_int(n->node->call, "axis", 0);
    axis += axis < 0 ? from->rank : 0;
    if (!takes_positions(n) || from->rank != index->rank || axis < 0 || axis >= from->rank)
        return false;
    for (uint32_t d = 0; d < from->rank; d++)
        if (d != axis && index->dim[d] > from->dim[d])
            return false;
    return export_result(n, 0, "GatherElements(x, $%u){axis=%d}", inside(n, &from->dim[axis], 1), (int)axis);
}

bool export_gather_nd(ExportNode *n)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *index = value_shape(n->graph, n->node->in[1]);
    int64_t batch = export_argument_int(n->node->call, "batch", 0);
    if (!takes_positions(n) || !index->rank || batch < 0 || batch >= index->rank)
        return false;
    int64_t count = index->dim[index->rank - 1];
    if (count < 1 || batch + count > from->rank)
        return false;
    return export_result(n, 0, "GatherND(x, $%u){batch_dims=%d}", inside(n, &from->dim[batch], (uint32_t)count),
                         (int)batch);
}

bool export_depth_to_space(ExportNode *n)
{
    Str mode = export_argument_word(n->node->call, "mode", "DCR");
    int64_t block = export_argument_int(n->node->call, "block", 0);
    return export_takes(n, DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64)) && block > 0 &&
           export_result(n, 0, "DepthToSpace(x){blocksize=%lld, mode='" STR_FMT "'}", (long long)block, STR_ARG(mode));
}

bool export_space_to_depth(ExportNode *n)
{
    int64_t block = export_argument_int(n->node->call, "block", 0);
    return export_takes(n, DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64)) && block > 0 &&
           str_is(export_argument_word(n->node->call, "mode", "DCR"), "DCR") &&
           export_result(n, 0, "SpaceToDepth(x){blocksize=%lld}", (long long)block);
}

/* Also the one that takes as many samples as a region asks for, which has no number of them.  Of the largest sample
 * versions of ONNX Runtime have their own idea. */
bool export_roi_align(ExportNode *n)
{
    const Call *call = n->node->call;
    Str scale = export_argument(call, "scale"), mode = export_argument_word(call, "mode", "avg");
    bool whole = scale.len && !memchr(scale.ptr, '.', scale.len) && !memchr(scale.ptr, 'e', scale.len);
    bool corners = str_is(export_argument(call, "half_pixel"), "false");
    int64_t height = export_argument_int(call, "height", 0), width = export_argument_int(call, "width", 0);
    DType dtype = value_type(n->graph, n->node->in[0])->dtype;
    if (n->node->in_count != 3 || dtype != DT_F32 || !str_is(mode, "avg") ||
        value_type(n->graph, n->node->in[1])->dtype != dtype || value_type(n->graph, n->node->in[2])->dtype != DT_I64 ||
        height < 1 || width < 1 || !shape_elements(value_shape(n->graph, n->node->out[0])))
        return false;
    return export_result(n, 0,
                         "RoiAlign(x, y, z){output_height=%lld, output_width=%lld, sampling_ratio=%lld, "
                         "spatial_scale=" STR_FMT "%s, coordinate_transformation_mode='%s'}",
                         (long long)height, (long long)width, (long long)export_argument_int(call, "samples", 0),
                         STR_ARG((scale.len ? scale : STR("1.0"))), whole ? ".0" : "",
                         corners ? "output_half_pixel" : "half_pixel");
}
