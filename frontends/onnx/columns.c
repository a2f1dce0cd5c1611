/* Images as columns of patches, and back; convolutions whose windows are anywhere; n-grams of lists. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "onnx/import.h"

/* Columns to images */

typedef struct Columns {
    uint32_t rank;
    const int64_t *image, *block;
    int64_t padded[MAX_RANK], steps[MAX_RANK], begin[MAX_RANK], stride[MAX_RANK], dilation[MAX_RANK];
    int64_t places, taps, elements; /* windows; of a window; of the padded image */
} Columns;

static int64_t entry(const OnnxNode *n, const char *name, uint32_t d, int64_t fallback)
{
    const int64_t *list;
    uint32_t count;
    return onnx_ints(n, name, &list, &count) && d < count ? list[d] : fallback;
}

static bool take_columns(OnnxNode *n, Columns *c)
{
    uint32_t count;
    *c = (Columns){.places = 1, .taps = 1, .elements = 1};
    if (!onnx_known_ints(n, 1, &c->image, &c->rank) || !onnx_known_ints(n, 2, &c->block, &count))
        return false;
    if (onnx_rank(n, 0) != 3 || count != c->rank || c->rank < 1 || c->rank + 2 > MAX_RANK)
        return onnx_no(n, "its image and its block have other dimensions");
    for (uint32_t d = 0; d < c->rank; d++) {
        c->stride[d] = entry(n, "strides", d, 1);
        c->dilation[d] = entry(n, "dilations", d, 1);
        c->begin[d] = entry(n, "pads", d, 0);
        c->padded[d] = c->image[d] + c->begin[d] + entry(n, "pads", c->rank + d, 0);
        int64_t reach = (c->block[d] - 1) * c->dilation[d] + 1;
        if (c->stride[d] < 1 || c->dilation[d] < 1 || c->block[d] < 1 || c->begin[d] < 0 || c->image[d] < 1 ||
            c->padded[d] < reach || c->padded[d] > ONNX_FOLDED || c->image[d] + c->begin[d] > c->padded[d])
            return onnx_no(n, "its windows do not fit its image");
        c->steps[d] = (c->padded[d] - reach) / c->stride[d] + 1;
        c->places *= c->steps[d];
        c->taps *= c->block[d];
        c->elements *= c->padded[d];
        if (c->places * c->taps > ONNX_FOLDED || c->elements > ONNX_FOLDED)
            return onnx_no(n, "its image is too large");
    }
    return (onnx_dim(n, 0, 1) % c->taps == 0 && onnx_dim(n, 0, 2) == c->places) ||
           onnx_no(n, "its columns do not fit its windows");
}

/* The element of the padded image that a tap of a window is at */
static int64_t place_at(const Columns *c, int64_t tap, int64_t window)
{
    int64_t at = 0, unit = 1;
    for (uint32_t d = c->rank; d-- > 0;) {
        at += (window % c->steps[d] * c->stride[d] + tap % c->block[d] * c->dilation[d]) * unit;
        window /= c->steps[d];
        tap /= c->block[d];
        unit *= c->padded[d];
    }
    return at;
}

static bool write_col2im(OnnxNode *n)
{
    Columns c;
    if (!take_columns(n, &c))
        return false;
    int64_t *list = ARENA_ARRAY(n->onnx->arena, int64_t, c.taps * c.places);
    for (int64_t t = 0; t < c.taps; t++)
        for (int64_t w = 0; w < c.places; w++)
            list[t * c.places + w] = place_at(&c, t, w);
    int64_t batch = onnx_dim(n, 0, 0), channels = onnx_dim(n, 0, 1) / c.taps;
    int64_t dim[MAX_RANK] = {batch, channels}, axes[MAX_RANK], end[MAX_RANK];
    for (uint32_t d = 0; d < c.rank; d++) {
        dim[d + 2] = c.padded[d];
        axes[d] = d + 2;
        end[d] = c.begin[d] + c.image[d];
    }
    const char *at = onnx_known_list(n, list, (uint32_t)(c.taps * c.places), "at"), *sum = onnx_temp(n, "sum");
    const char *type = dtype_name(onnx_type(n, 0)->dtype);
    return onnx_emit(n, "%s = scatter_add(zeros([%lld, %lld], %s), %s, reshape(%s, shape = [%lld, %lld]), axis = 1)",
                     sum, (long long)(batch * channels), (long long)c.elements, type, at, onnx_in(n, 0),
                     (long long)(batch * channels), (long long)(c.taps * c.places)) &&
           onnx_emit(n, "%s = slice(reshape(%s, shape = %s), axes = %s, begin = %s, end = %s)", onnx_out(n, 0), sum,
                     onnx_list(n, dim, c.rank + 2), onnx_list(n, axes, c.rank), onnx_list(n, c.begin, c.rank),
                     onnx_list(n, end, c.rank));
}

/* Deformed convolutions (Dai et al. 2017): each tap reads where an offset says, between pixels, zero outside. */

typedef struct Deformed {
    int64_t batch, channels, height, width, out_height, out_width, taps, parts; /* parts: groups of offsets */
} Deformed;

static bool take_deformed(OnnxNode *n, Deformed *d)
{
    if (onnx_rank(n, 0) != 4 || onnx_rank(n, 1) != 4 || onnx_rank(n, 2) != 4)
        return onnx_no(n, "its image has other than 2 dimensions");
    *d = (Deformed){onnx_dim(n, 0, 0),
                    onnx_dim(n, 0, 1),
                    onnx_dim(n, 0, 2),
                    onnx_dim(n, 0, 3),
                    onnx_dim(n, 2, 2),
                    onnx_dim(n, 2, 3),
                    onnx_dim(n, 1, 2) * onnx_dim(n, 1, 3),
                    onnx_int(n, "offset_group", 1)};
    bool fits = d->parts > 0 && d->channels % d->parts == 0 && onnx_dim(n, 2, 1) == d->parts * d->taps * 2 &&
                d->height > 0 && d->width > 0 && d->taps * d->out_height <= ONNX_FOLDED &&
                d->taps * d->out_width <= ONNX_FOLDED;
    return fits || onnx_no(n, "its offsets do not fit its image");
}

/* Where taps lie without their offsets, along an axis: [taps, places] of f32 */
static const char *regular(OnnxNode *n, const Deformed *d, uint32_t axis)
{
    int64_t places = axis ? d->out_width : d->out_height, dim[] = {d->taps, places};
    int64_t across = onnx_dim(n, 1, 3), stride = entry(n, "strides", axis, 1);
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, 2, dim));
    for (int64_t t = 0; t < d->taps; t++)
        for (int64_t p = 0; p < places; p++)
            tensor_set_number(tensor, t * places + p,
                              (double)(p * stride - entry(n, "pads", axis, 0) +
                                       (axis ? t % across : t / across) * entry(n, "dilations", axis, 1)));
    const char *wish = onnx_text(n, "%s.%s", onnx_identifier(n->onnx, n->proto->output[0]), axis ? "columns" : "rows");
    return onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish));
}

/* [batch, taps * out_height, out_width, 2] of coordinates from -1 to 1, x first, for one part of the channels */
static const char *put_grid(OnnxNode *n, const Deformed *d, const char *offsets, int64_t part)
{
    const char *y = onnx_temp(n, "y"), *x = onnx_temp(n, "x"), *grid = onnx_temp(n, "grid");
    long long taps = d->taps, h = d->out_height, w = d->out_width, at = part;
    return onnx_emit(n, "%s = %s[:, %lld, :, 0] + reshape(%s, shape = [%lld, %lld, 1])", y, offsets, at,
                     regular(n, d, 0), taps, h) &&
                   onnx_emit(n, "%s = %s[:, %lld, :, 1] + reshape(%s, shape = [%lld, 1, %lld])", x, offsets, at,
                             regular(n, d, 1), taps, w) &&
                   onnx_emit(
                       n,
                       "%s = reshape(stack((%s * 2.0 + 1.0) / %lld.0 - 1.0, (%s * 2.0 + 1.0) / %lld.0 - 1.0, axis "
                       "= 4), shape = [%lld, %lld, %lld, 2])",
                       grid, x, (long long)d->width, y, (long long)d->height, (long long)d->batch, taps * h, w)
               ? grid
               : NULL;
}

static bool write_deform_conv(OnnxNode *n)
{
    Deformed d;
    if (!take_deformed(n, &d) || onnx_type(n, 0)->dtype != DT_F32)
        return onnx_no(n, "it computes with other floats than f32");
    int64_t dim[] = {d.batch, d.parts, d.taps, 2, d.out_height, d.out_width}, each = d.channels / d.parts;
    int64_t patch[] = {d.batch, each, d.taps, d.out_height, d.out_width},
            mask[] = {d.batch, d.parts, 1, d.taps, d.out_height, d.out_width};
    int64_t rows[] = {d.batch, d.channels * d.taps, d.out_height, d.out_width};
    int64_t filters[] = {onnx_dim(n, 1, 0), onnx_dim(n, 1, 1) * d.taps, 1, 1};
    const char *offsets = onnx_temp(n, "offsets"), *columns = onnx_temp(n, "columns"), *x = onnx_in(n, 0);
    Text list = {0};
    bool good = onnx_emit(n, "%s = reshape(%s, shape = %s)", offsets, onnx_in(n, 2), onnx_list(n, dim, 6));
    for (int64_t p = 0; good && p < d.parts; p++) {
        const char *grid = put_grid(n, &d, offsets, p), *part = onnx_temp(n, "part");
        const char *own = onnx_text(n, "%s[:, %lld:%lld]", x, (long long)(p * each), (long long)((p + 1) * each));
        const char *weight = onnx_has(n, 4) ? onnx_text(n, " * reshape(%s, shape = %s)[:, %lld]", onnx_in(n, 4),
                                                        onnx_list(n, mask, 6), (long long)p)
                                            : "";
        good = grid && onnx_emit(n, "%s = reshape(grid_sample(%s, %s), shape = %s)%s", part, own, grid,
                                 onnx_list(n, patch, 5), weight);
        text_printf(&list, "%s%s", p ? ", " : "", part);
    }
    int64_t groups = onnx_int(n, "group", 1);
    const char *bias = onnx_has(n, 3) ? onnx_text(n, ", %s", onnx_in(n, 3)) : "";
    const char *group = groups == 1 ? "" : onnx_text(n, ", groups = %lld", (long long)groups);
    good = good &&
           onnx_emit(n, "%s = reshape(concat(%s, axis = 1), shape = %s)", columns, list.ptr, onnx_list(n, rows, 4)) &&
           onnx_emit(n, "%s = conv2d(%s, reshape(%s, shape = %s)%s%s)", onnx_out(n, 0), columns, onnx_in(n, 1),
                     onnx_list(n, filters, 4), bias, group);
    text_free(&list);
    return good;
}

/* n-grams: how often each of a pool is in a list of integers, also with steps left out */

typedef struct Grams {
    const int64_t *pool, *count, *index;
    uint32_t pool_size, lengths, indices;
    int64_t length; /* of the list */
} Grams;

/* Grams of one length: `many` of them from `first` on in the pool.  Their counts as text. */
static const char *count_grams(OnnxNode *n, const Grams *g, const char *x, int64_t length, int64_t first, int64_t many)
{
    int64_t skips = length == 1 ? 0 : onnx_int(n, "max_skip_count", 0);
    Text sum = {0};
    for (int64_t skip = 0; skip <= skips; skip++) {
        int64_t step = skip + 1, windows = g->length - (length - 1) * step;
        if (windows < 1)
            break;
        text_printf(&sum, "%sreduce_sum(cast(", sum.len ? " + " : "");
        for (int64_t k = 0; k < length; k++) {
            int64_t *item = ARENA_ARRAY(n->onnx->arena, int64_t, many);
            for (int64_t i = 0; i < many; i++)
                item[i] = g->pool[first + i * length + k];
            text_printf(&sum, "%sunsqueeze(%s[:, %lld:%lld], 2) == %s", k ? " and " : "", x, (long long)(k * step),
                        (long long)(k * step + windows), onnx_known_list(n, item, (uint32_t)many, "grams"));
        }
        text_printf(&sum, ", to = f32), axes = 1)");
    }
    const char *text = sum.len ? onnx_text(n, "%s", sum.ptr) : NULL;
    text_free(&sum);
    return text;
}

static bool take_grams(OnnxNode *n, Grams *g)
{
    const char *mode = onnx_string(n, "mode", "TF");
    *g = (Grams){.length = onnx_dim(n, 0, -1)};
    onnx_ints(n, "pool_int64s", &g->pool, &g->pool_size);
    onnx_ints(n, "ngram_counts", &g->count, &g->lengths);
    onnx_ints(n, "ngram_indexes", &g->index, &g->indices);
    if (!g->pool_size || !g->lengths || !g->indices || g->indices > ONNX_FOLDED)
        return onnx_no(n, "its pool has texts, or nothing");
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0)
        return onnx_no(n, "its mode is %s", mode);
    for (uint32_t i = 0; i < g->lengths; i++)
        if (g->count[i] < 0 || g->count[i] > g->pool_size || (i && g->count[i] < g->count[i - 1]))
            return onnx_no(n, "its pool has impossible parts");
    return (onnx_rank(n, 0) >= 1 && onnx_rank(n, 0) <= 2 && dtype_is_int(onnx_type(n, 0)->dtype)) ||
           onnx_no(n, "it counts in no list of integers");
}

/* The counts, weighted, in the order of the result */
static bool put_grams(OnnxNode *n, const Grams *g, const char *counts, int64_t rows, uint32_t found)
{
    int64_t size = 0, *place;
    for (uint32_t i = 0; i < found; i++) {
        if (g->index[i] < 0 || g->index[i] >= ONNX_FOLDED)
            return onnx_no(n, "its result is too large");
        size = most(size, g->index[i] + 1);
    }
    place = ARENA_ARRAY(n->onnx->arena, int64_t, size + 1);
    for (int64_t i = 0; i < size; i++)
        place[i] = found; /* a column of zeros */
    for (uint32_t i = 0; i < found; i++)
        place[g->index[i]] = i;
    const Onnx__AttributeProto *weights = onnx_attribute(n, "weights");
    const char *mode = onnx_string(n, "mode", "TF"),
               *y = onnx_text(n, "concat(%s, zeros([%lld, 1]), axis = 1)", counts, (long long)rows);
    if (*mode == 'I')
        y = onnx_text(n, "minimum(%s, 1.0)", y);
    if (strcmp(mode, "TF") != 0 && weights && weights->n_floats >= found) {
        int64_t extent = found + 1;
        Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, DT_F32, 1, &extent));
        for (uint32_t i = 0; i < found; i++)
            tensor_set_number(tensor, i, (double)weights->floats[i]);
        const char *wish = onnx_text(n, "%s.weights", onnx_identifier(n->onnx, n->proto->output[0]));
        y = onnx_text(n, "%s * %s", y, onnx_name_value(n->onnx, onnx_known_value(n->onnx, tensor, wish)));
    }
    const char *columns = onnx_known_list(n, place, (uint32_t)size, "columns");
    y = onnx_text(n, "gather(%s, %s, axis = 1)", y, columns);
    return onnx_emit(n, "%s = %s", onnx_out(n, 0),
                     onnx_rank(n, 0) == 2 ? y : onnx_text(n, "reshape(%s, shape = [%lld])", y, (long long)size));
}

/* Counts of the grams of one length, or zeros where that length is not asked for */
static const char *put_counts(OnnxNode *n, const Grams *g, const char *x, uint32_t i, int64_t many, int64_t rows)
{
    int64_t length = i + 1;
    bool counted = length >= onnx_int(n, "min_gram_length", 1) && length <= onnx_int(n, "max_gram_length", 1);
    const char *part = onnx_temp(n, "counts"), *sum = counted ? count_grams(n, g, x, length, g->count[i], many) : NULL;
    if (!sum)
        sum = onnx_text(n, "zeros([%lld, %lld])", (long long)rows, (long long)many);
    return onnx_emit(n, "%s = %s", part, sum) ? part : NULL;
}

static bool write_tfidf(OnnxNode *n)
{
    Grams g;
    if (!take_grams(n, &g))
        return false;
    int64_t rows = onnx_rank(n, 0) == 2 ? onnx_dim(n, 0, 0) : 1;
    const char *x = onnx_temp(n, "list");
    uint64_t found = 0;
    Text parts = {0};
    bool good = onnx_emit(n, "%s = reshape(cast(%s, to = i64), shape = [%lld, %lld])", x, onnx_in(n, 0),
                          (long long)rows, (long long)g.length);
    for (uint32_t i = 0; good && i < g.lengths; i++) {
        int64_t end = i + 1 < g.lengths ? g.count[i + 1] : g.pool_size, many = (end - g.count[i]) / (i + 1);
        if (!many)
            continue;
        const char *part = put_counts(n, &g, x, i, many, rows);
        found += (uint64_t)many;
        good = part && (found <= g.indices || onnx_no(n, "its pool has more n-grams than places"));
        text_printf(&parts, "%s%s", parts.len ? ", " : "", good ? part : "");
    }
    good = good && (parts.len ? put_grams(n, &g, parts.ptr, rows, (uint32_t)found) : onnx_no(n, "its pool is empty"));
    text_free(&parts);
    return good;
}

const OnnxRow onnx_columns[] = {
    {"Col2Im", 18, write_col2im, NULL, NULL, false},
    {"DeformConv", 19, write_deform_conv, NULL, NULL, false},
    {"TfIdfVectorizer", 9, write_tfidf, NULL, NULL, false},
    {0},
};
