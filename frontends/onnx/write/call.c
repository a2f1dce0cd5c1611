/* Calls of the library that are one op of ONNX, but no text of a row (layer.c): those of several results, or whose
 * arguments are words and lists of them. */
#include "onnx/write/export.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NAMES 26
#define MOST_TEXT  256

/* Of equal ones both take the first. */
static bool write_top_k(ExportNode *n)
{
    const Call *call = n->node->call;
    const Shape *shape = value_shape(n->graph, n->node->in[0]);
    int64_t k = export_argument_int(call, "k", 0), axis = export_argument_int(call, "axis", -1);
    if (!export_takes(n, DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64) | DTYPE_IN(DT_I32) | DTYPE_IN(DT_I64)) ||
        n->node->out_count != 2)
        return false;
    axis += axis < 0 ? shape->rank : 0;
    if (k < 1 || axis < 0 || axis >= shape->rank || k > shape->dim[axis])
        return false;
    for (uint32_t i = 0; i < 2; i++)
        n->out[i] = export_id_near(n->e, n->wish[i]);
    export_top_k(n, n->in[0], k, axis, !str_is(export_argument(call, "largest"), "false"), n->out);
    return true;
}

/* ONNX's gives two dimensions in any case. */
static bool write_flatten(ExportNode *n)
{
    return export_argument_int(n->node->call, "axis", 1) == 1 && export_takes(n, SET_ALL) &&
           export_result(n, 0, "Flatten(x)");
}

typedef struct Equation {
    bool letters; /* names of dimensions are letters already; else they become a, b, ... */
    Str name[MOST_NAMES];
    uint32_t names, lists;
    char text[MOST_TEXT];
    size_t length;
} Equation;

static bool put(Equation *q, char c)
{
    if (q->length + 1 >= sizeof q->text)
        return false;
    q->text[q->length++] = c;
    return true;
}

static bool put_letter(Equation *q, Str name)
{
    if (q->letters)
        return put(q, *name.ptr);
    uint32_t i = 0;
    while (i < q->names && !str_eq(q->name[i], name))
        i++;
    if (i == MOST_NAMES)
        return false;
    if (i == q->names)
        q->name[q->names++] = name;
    return put(q, (char)('a' + i));
}

/* Lists of quoted names, a comma between them: [["i", "j"], ["j"]], or the one of the result. */
static bool put_names(Equation *q, Str lists)
{
    const char *end = lists.ptr + lists.len;
    bool open = false, good = true;
    for (const char *at = lists.ptr; good && at < end; at++) {
        if (*at == '[') {
            open = true;
        } else if (*at == ']' && open) {
            open = false;
            q->lists++;
        } else if (*at == ',' && !open) {
            good = put(q, ',');
        } else if (*at == '"') {
            const char *begin = at + 1;
            for (at = begin; at < end && *at != '"';)
                at++;
            good = put_letter(q, (Str){begin, (uint32_t)(at - begin)});
        }
    }
    return good && lists.len > 0;
}

/* Is each quoted word a letter from a to z? */
static bool are_letters(Str lists)
{
    for (uint32_t i = 0; i < lists.len; i++) {
        if (lists.ptr[i] != '"')
            continue;
        if (i + 2 >= lists.len || !islower((unsigned char)lists.ptr[i + 1]) || lists.ptr[i + 2] != '"')
            return false;
        i += 2;
    }
    return true;
}

static bool write_einsum(ExportNode *n)
{
    const Call *call = n->node->call;
    Equation q = {.letters =
                      are_letters(export_argument(call, "names")) && are_letters(export_argument(call, "result"))};
    Text text = {0};
    if (!export_takes(n, DTYPE_IN(DT_F32) | DTYPE_IN(DT_F64) | SET_WIDE) ||
        !put_names(&q, export_argument(call, "names")) || q.lists != n->node->in_count || !put(&q, '-') ||
        !put(&q, '>') || !put_names(&q, export_argument(call, "result")))
        return false;
    for (uint32_t i = 0; i < n->node->in_count; i++)
        text_printf(&text, "%s$%u", i ? ", " : "", n->in[i]);
    bool good = export_result(n, 0, "Einsum(%s){equation='%.*s'}", text.ptr, (int)q.length, q.text);
    text_free(&text);
    return good;
}

static bool write_grid_sample(ExportNode *n)
{
    Str mode = export_argument_word(n->node->call, "mode", "linear"),
        padding = export_argument_word(n->node->call, "padding", "zeros");
    if (!export_takes(n, DTYPE_IN(DT_F32)) || value_shape(n->graph, n->node->in[0])->rank != 4)
        return false;
    return export_result(n, 0, "GridSample($%u, $%u){mode='" STR_FMT "', padding_mode='" STR_FMT "', align_corners=%d}",
                         n->in[0], n->in[1], STR_ARG(mode), STR_ARG(padding),
                         str_is(export_argument(n->node->call, "corners"), "true"));
}

/* As ONNX Runtime counts it, in f32, and as onnx.checker does, exactly: 5 elements by the f32 next to 1.4 are 7, or 6.
 */
static bool makes_extent(float factor, int64_t from, int64_t to)
{
    return (int64_t)(factor * (float)from) == to && (int64_t)((double)factor * (double)from) == to;
}

/* The factors that the call has for its axes, `[2.0, 0.5]`, for all dimensions, where need be the next f32; false: the
 * extents do not follow from them. */
static bool take_factors(const ExportNode *n, Str scales, float *factor)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *to = value_shape(n->graph, n->node->out[0]);
    Str axes = export_argument(n->node->call, "axes");
    const char *at = scales.ptr + 1, *axis_at = axes.ptr + 1, *end = scales.ptr + scales.len;
    for (uint32_t d = 0; d < from->rank; d++)
        factor[d] = 1;
    for (uint32_t i = 0; at < end; i++) {
        char *next;
        double number = strtod(at, &next);
        int64_t axis = axes.len ? strtoll(axis_at, &next, 10) : i;
        axis += axis < 0 ? from->rank : 0;
        if (axis < 0 || axis >= from->rank)
            return false;
        factor[axis] = (float)number;
        axis_at = next + 1;
        at += strcspn(at, ",]") + 1;
    }
    for (uint32_t d = 0; d < from->rank; d++) {
        if (!makes_extent(factor[d], from->dim[d], to->dim[d]))
            factor[d] = nextafterf(factor[d], INFINITY);
        if (!makes_extent(factor[d], from->dim[d], to->dim[d]))
            return false;
    }
    return true;
}

/* Which images ONNX Runtime resizes as the library does: [n, c, ...]. */
static bool takes_resize(const ExportNode *n, Str mode, Str place)
{
    const Shape *from = value_shape(n->graph, n->node->in[0]), *to = value_shape(n->graph, n->node->out[0]);
    bool nearest = str_is(mode, "nearest"), symmetric = str_is(place, "half_pixel_symmetric");
    DTypeSet set = DTYPE_IN(DT_F32) | (nearest ? DTYPE_IN(DT_I32) | DTYPE_IN(DT_U8) : 0);
    return n->node->in_count == 1 && export_takes(n, set) && shape_elements(to) && from->rank >= 3 && from->rank <= 5 &&
           (!str_is(mode, "cubic") || from->rank == 4) && from->dim[0] == to->dim[0] && from->dim[1] == to->dim[1] &&
           !str_is(place, "tf_crop_and_resize") && !str_is(place, "tf_half_pixel_for_nn") && !(nearest && symmetric);
}

static bool write_resize(ExportNode *n)
{
    const Call *call = n->node->call;
    const Shape *from = value_shape(n->graph, n->node->in[0]), *to = value_shape(n->graph, n->node->out[0]);
    Str mode = export_argument_word(n->node->call, "mode", "nearest"),
        place = export_argument_word(n->node->call, "coordinates", "half_pixel"),
        rounding = export_argument_word(n->node->call, "rounding", "round_prefer_floor"),
        a = export_argument(call, "a"), scales = export_argument(call, "scales");
    int64_t rank = from->rank;
    Tensor *factors = tensor_new(n->e->arena, module_plain_type(n->graph->module, DT_F32, 1, &rank));
    if (!takes_resize(n, mode, place) ||
        (scales.len && (str_is(place, "align_corners") || !take_factors(n, scales, factors->data))))
        return false;
    ExportId by = scales.len ? export_tensor(n->e, factors, export_text(n->e, "%s.scales", n->wish[0]))
                             : export_list(n->e, DT_I64, to->dim, to->rank);
    Text words = {0};
    if (str_is(mode, "cubic"))
        text_printf(&words, ", cubic_coeff_a=" STR_FMT, STR_ARG((a.len ? a : STR("-0.75"))));
    if (!str_is(mode, "nearest"))
        text_printf(&words, ", exclude_outside=%d, antialias=%d",
                    str_is(export_argument(call, "exclude_outside"), "true"),
                    str_is(export_argument(call, "antialias"), "true"));
    bool good = export_result(n, 0,
                              "Resize(x, _, %s$%u){mode='" STR_FMT "', coordinate_transformation_mode='" STR_FMT
                              "', nearest_mode='" STR_FMT "'%s}",
                              scales.len ? "" : "_, ", by, STR_ARG(mode), STR_ARG(place), STR_ARG(rounding),
                              words.len ? words.ptr : "");
    text_free(&words);
    return good;
}

bool export_call(ExportNode *n)
{
    static const struct {
        const char *name;
        bool (*write)(ExportNode *n);
    } calls[] = {{"top_k", write_top_k},
                 {"flatten", write_flatten},
                 {"einsum", write_einsum},
                 {"grid_sample", write_grid_sample},
                 {"resize", write_resize},
                 {"tile", export_tile},
                 {"gather_elements", export_gather_elements},
                 {"gather_nd", export_gather_nd},
                 {"depth_to_space", export_depth_to_space},
                 {"space_to_depth", export_space_to_depth},
                 {"roi_align", export_roi_align},
                 {"roi_align_adaptive", export_roi_align},
                 {"matmul_nibbles", export_matmul_nibbles}};
    const Call *call = n->node->call;
    for (size_t i = 0; call->library && i < sizeof calls / sizeof *calls; i++)
        if (str_is(call->name, calls[i].name))
            return calls[i].write(n);
    return false;
}
