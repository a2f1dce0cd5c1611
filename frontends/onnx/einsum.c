/* Einsum: a product of matrices, or the equation as the names that the library's function takes. */
#include <string.h>

#include "onnx/import.h"

#define MOST_LABELS 32

typedef struct Labels {
    char at[MOST_LABELS];
    uint32_t count;
} Labels;

static bool has_label(const Labels *l, char c)
{
    return memchr(l->at, c, l->count) != NULL;
}

typedef struct Sum { /* the expression */
    Labels operand[8], result;
    const char *text[8]; /* of the operands */
    uint32_t operands;
    int64_t extent[128];
    uint32_t dots; /* dimensions that `...` stands for: labels 1, 2, ... */
} Sum;

static bool take_labels(OnnxNode *n, const char **at, uint32_t dots, Labels *labels)
{
    for (; **at && **at != ',' && strncmp(*at, "->", 2) != 0; ++*at) {
        char c = **at;
        if (c == ' ')
            continue;
        if (labels->count + dots + 1 >= MOST_LABELS)
            return onnx_no(n, "its equation has too many labels");
        if (strncmp(*at, "...", 3) == 0) {
            for (uint32_t d = 0; d < dots; d++)
                labels->at[labels->count++] = (char)(d + 1);
            *at += 2;
        } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            labels->at[labels->count++] = c;
        } else {
            return onnx_no(n, "its equation has the character '%c'", c);
        }
    }
    return true;
}

/* A label of several operands stands for one extent, or for 1 in some of them. */
static bool bind_extents(OnnxNode *n, Sum *sum, uint32_t i)
{
    const Labels *l = &sum->operand[i];
    if (l->count != onnx_rank(n, i))
        return onnx_no(n, "its equation has %u labels for operand %u, of %u dimensions", l->count, i, onnx_rank(n, i));
    for (uint32_t d = 0; d < l->count; d++) {
        int64_t *extent = &sum->extent[(int)l->at[d]], found = onnx_dim(n, i, d);
        const char *before = memchr(l->at, l->at[d], d);
        bool same = !before || onnx_dim(n, i, before - l->at) == found;
        if (!same || (*extent >= 0 && *extent != found && *extent != 1 && found != 1))
            return onnx_no(n, "extents of one label differ");
        if (*extent < 0 || *extent == 1)
            *extent = found;
    }
    return true;
}

/* Operand i without the dimensions of 1 whose label stands for more in another */
static void drop_ones(OnnxNode *n, Sum *sum, uint32_t i)
{
    Labels kept = {0}, *l = &sum->operand[i];
    int64_t dim[MOST_LABELS];
    for (uint32_t d = 0; d < l->count; d++) {
        int64_t extent = onnx_dim(n, i, d);
        if (extent != sum->extent[(int)l->at[d]])
            continue;
        dim[kept.count] = extent;
        kept.at[kept.count++] = l->at[d];
    }
    sum->text[i] = onnx_in(n, i);
    if (kept.count < l->count)
        sum->text[i] = onnx_text(n, "reshape(%s, shape = %s)", sum->text[i], onnx_list(n, dim, kept.count));
    *l = kept;
}

static uint32_t count_dots(const OnnxNode *n, const char *equation)
{
    uint32_t letters = 0;
    bool dots = false;
    for (const char *at = equation; *at && *at != ',' && *at != '-'; at++) {
        letters += *at != '.' && *at != ' ';
        dots |= *at == '.';
    }
    return dots && onnx_rank(n, 0) > letters ? onnx_rank(n, 0) - letters : 0;
}

/* Without an arrow: labels that stand once, in the order of the alphabet. */
static void implied_result(Sum *sum)
{
    for (int c = 1; c < 128; c++) {
        uint32_t uses = 0;
        for (uint32_t i = 0; i < sum->operands; i++)
            for (uint32_t d = 0; d < sum->operand[i].count; d++)
                uses += sum->operand[i].at[d] == (char)c;
        if (uses == 1 || (uses && c <= (int)sum->dots))
            sum->result.at[sum->result.count++] = (char)c;
    }
}

static bool parse_equation(OnnxNode *n, Sum *sum)
{
    const char *at = onnx_string(n, "equation", "");
    *sum = (Sum){.operands = n->in_count, .dots = count_dots(n, at)};
    memset(sum->extent, 0xff, sizeof sum->extent);
    if (n->in_count > 8)
        return onnx_no(n, "its equation has more than 8 operands");
    for (uint32_t i = 0; i < n->in_count; i++) {
        if (!take_labels(n, &at, sum->dots, &sum->operand[i]) || !bind_extents(n, sum, i))
            return false;
        if (*at == ',' && i + 1 < n->in_count)
            at++;
    }
    if (!*at) {
        implied_result(sum);
        return true;
    }
    at += 2;
    return take_labels(n, &at, sum->dots, &sum->result) && (!*at || onnx_no(n, "its equation is malformed"));
}

/* Each label of the result stands in an operand, and once in the result. */
static bool check_result(OnnxNode *n, const Sum *sum)
{
    const Labels *l = &sum->result;
    for (uint32_t d = 0; d < l->count; d++) {
        bool found = false;
        for (uint32_t i = 0; i < sum->operands; i++)
            found |= has_label(&sum->operand[i], l->at[d]);
        if (!found)
            return onnx_no(n, "its result has a label that no operand has");
        if (memchr(l->at, l->at[d], d))
            return onnx_no(n, "its result has a label twice");
    }
    return true;
}

/* ["i", "j"]; what `...` stands for is "0", "1" and so on. */
static void put_labels(Text *out, const Labels *l)
{
    text_char(out, '[');
    for (uint32_t d = 0; d < l->count; d++) {
        char c = l->at[d] <= MAX_RANK ? (char)('0' + l->at[d] - 1) : l->at[d];
        text_printf(out, "%s\"%c\"", d ? ", " : "", c);
    }
    text_char(out, ']');
}

/* A product of matrices, where the equation is no more: of each operand's labels one is the other's, too, and summed
 * over, one its own, and the rest are both operands' and the result's. */

typedef struct Plain {
    Labels batch;
    char row, column, summed;
} Plain;

static bool stands_once(const Labels *l)
{
    for (uint32_t d = 0; d < l->count; d++)
        if (memchr(l->at, l->at[d], d))
            return false;
    return true;
}

/* One label of each kind: sorts those of an operand out. */
static bool sort_labels(const Sum *sum, uint32_t i, Plain *plain, char *own)
{
    const Labels *l = &sum->operand[i], *other = &sum->operand[1 - i];
    for (uint32_t d = 0; d < l->count; d++) {
        char c = l->at[d];
        bool shared = has_label(other, c), kept = has_label(&sum->result, c);
        char *place = shared && kept ? NULL : shared ? &plain->summed : kept ? own : NULL;
        if ((!shared && !kept) || (place && *place && *place != c))
            return false;
        if (place)
            *place = c;
        else if (i == 0)
            plain->batch.at[plain->batch.count++] = c;
    }
    return *own && plain->summed;
}

static bool is_plain(const Sum *sum, Plain *plain)
{
    *plain = (Plain){0};
    return sum->operands == 2 && stands_once(&sum->operand[0]) && stands_once(&sum->operand[1]) &&
           sort_labels(sum, 0, plain, &plain->row) && sort_labels(sum, 1, plain, &plain->column);
}

/* `x`, whose dimensions have the labels `from`, in the order of `to` */
static const char *reordered(OnnxNode *n, const char *x, const Labels *from, const Labels *to)
{
    int64_t axes[MOST_LABELS];
    bool moves = false;
    for (uint32_t d = 0; d < to->count; d++) {
        axes[d] = (const char *)memchr(from->at, to->at[d], from->count) - from->at;
        moves |= axes[d] != d;
    }
    return moves ? onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, to->count)) : x;
}

static Labels matrices(const Plain *plain, char first, char second)
{
    Labels l = plain->batch;
    l.at[l.count++] = first;
    l.at[l.count++] = second;
    return l;
}

static bool write_plain(OnnxNode *n, const Sum *sum, const Plain *plain)
{
    Labels left = matrices(plain, plain->row, plain->summed), right = matrices(plain, plain->summed, plain->column),
           turned = matrices(plain, plain->column, plain->summed), product = matrices(plain, plain->row, plain->column);
    const Labels *second = &sum->operand[1];
    bool turns = memcmp(second->at, turned.at, turned.count) == 0;
    const char *x = reordered(n, sum->text[0], &sum->operand[0], &left), *y = sum->text[1];
    const char *z = turns ? onnx_text(n, "matmul(%s, %s, transpose_y = true)", x, y)
                          : onnx_text(n, "%s @ %s", x, reordered(n, y, second, &right));
    return onnx_emit(n, "%s = %s", onnx_out(n, 0), reordered(n, z, &product, &sum->result));
}

bool onnx_write_einsum(OnnxNode *n)
{
    Sum sum;
    Plain plain;
    if (!parse_equation(n, &sum) || !check_result(n, &sum))
        return false;
    for (uint32_t i = 0; i < sum.operands; i++)
        drop_ones(n, &sum, i);
    if (is_plain(&sum, &plain))
        return write_plain(n, &sum, &plain);
    Text tensors = {0}, names = {0};
    for (uint32_t i = 0; i < sum.operands; i++) {
        text_printf(&tensors, "%s%s", i ? ", " : "", sum.text[i]);
        text_printf(&names, i ? ", " : "");
        put_labels(&names, &sum.operand[i]);
    }
    text_printf(&names, "], ");
    put_labels(&names, &sum.result);
    bool good = onnx_emit(n, "%s = einsum([%s], [%s)", onnx_out(n, 0), tensors.ptr, names.ptr);
    text_free(&tensors);
    text_free(&names);
    return good;
}
