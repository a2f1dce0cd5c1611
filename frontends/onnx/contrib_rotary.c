/* Rotated positions of com.microsoft: of words, one for each, and of words and pixels, three for each. */
#include "onnx/import.h"

#define CONTRIB "com.microsoft"

/* RotaryEmbedding */

/* Angles of positions that follow each other from one number on */
static OnnxValue *positions_from(OnnxNode *n, int64_t batch, int64_t steps)
{
    int64_t dim[] = {batch, steps};
    return onnx_define_value(n, "places", "iota(axis = 1, shape = %s) + cast(reshape(%s, shape = []), to = i64)",
                             onnx_list(n, dim, 2), onnx_in(n, 1));
}

/* The same as ONNX's, with the positions before the tables */
static bool write_rotary(OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    int64_t turned = onnx_int(n, "rotary_embedding_dim", 0), heads = onnx_int(n, "num_heads", 0);
    if (onnx_rank(n, 2) != 2 || onnx_rank(n, 3) != 2 || (rank != 3 && rank != 4) || onnx_float(n, "scale", 1) != 1)
        return onnx_no(n, "its tables have other than 2 dimensions, or it scales");
    if (!heads && rank == 3 && onnx_dim(n, 2, 1))
        heads = onnx_dim(n, 0, 2) / (2 * onnx_dim(n, 2, 1));
    OnnxValue *places = onnx_rank(n, 1) == 2 ? n->in[1] : NULL;
    if (!places && shape_elements(&onnx_type(n, 1)->shape) == 1)
        places = positions_from(n, onnx_dim(n, 0, 0), onnx_dim(n, 0, rank - 2));
    if (!places)
        return onnx_no(n, "its positions are neither one number nor one for each word");
    OnnxNode *node = onnx_cover(n, "RotaryEmbedding", 23, 4);
    onnx_set_operand(node, 0, n->in[0]);
    onnx_set_operand(node, 1, n->in[2]);
    onnx_set_operand(node, 2, n->in[3]);
    onnx_set_operand(node, 3, places);
    onnx_add_int(node, "interleaved", onnx_int(n, "interleaved", 0));
    onnx_add_int(node, "num_heads", heads);
    onnx_add_int(node, "rotary_embedding_dim", turned);
    return onnx_write_cover(n, node);
}

/* MRotaryEmbedding
 *
 * A word has a position in time, one in height and one in width, and each column of the tables is read at one of them.
 */

typedef struct Streams {
    OnnxNode *node;
    int64_t batch, steps, heads, columns; /* columns: of the tables, half of what is rotated */
} Streams;

/* Which position each column is read at: sections that follow each other, or by turns as far as they go */
static bool take_sections(const Streams *s, int64_t *which)
{
    OnnxNode *n = s->node;
    const int64_t *section;
    uint32_t count;
    int64_t layout = onnx_int(n, "mrope_layout", 0);
    if (!onnx_ints(n, "mrope_section", &section, &count) || count != 3)
        return onnx_no(n, "its mrope_section is no list of three");
    for (uint32_t i = 0; i < 3; i++)
        if (section[i] < 0 || section[i] > s->columns)
            return onnx_no(n, "its mrope_section does not fit its tables");
    if (section[0] + section[1] + section[2] != s->columns)
        return onnx_no(n, "its mrope_section does not fit its tables");
    if (layout != 0 && layout != 1)
        return onnx_no(n, "its mrope_layout is %lld", (long long)layout);
    for (int64_t d = 0; d < s->columns; d++)
        if (layout)
            which[d] = d < 3 * section[d % 3] ? d % 3 : 0;
        else
            which[d] = (d >= section[0]) + (d >= section[0] + section[1]);
    return true;
}

static bool streams_start(Streams *s, OnnxNode *n)
{
    uint32_t rank = onnx_rank(n, 0);
    *s = (Streams){.node = n, .heads = onnx_int(n, "num_heads", 0)};
    if ((rank != 3 && rank != 4) || (rank == 3 && (s->heads < 1 || onnx_dim(n, 0, 2) % s->heads)))
        return onnx_no(n, "its operand cannot be shared out to num_heads, %lld", (long long)s->heads);
    s->batch = onnx_dim(n, 0, 0), s->steps = onnx_dim(n, 0, rank - 2);
    int64_t all = rank == 3 ? onnx_dim(n, 0, 2) / s->heads : onnx_dim(n, 0, 3),
            turned = onnx_int(n, "rotary_embedding_dim", 0), places[] = {3, s->batch, s->steps};
    turned = turned ? turned : all;
    Shape expected = shape_of(3, places);
    if (!shape_eq(&onnx_type(n, 1)->shape, &expected))
        return onnx_no(n, "it has not three positions for each word");
    if (turned < 2 || turned > all || turned % 2 || onnx_rank(n, 2) != 2 || onnx_dim(n, 2, 1) != turned / 2 ||
        onnx_dim(n, 2, 0) < 1 || onnx_dim(n, 2, 0) > INT32_MAX ||
        !shape_eq(&onnx_type(n, 2)->shape, &onnx_type(n, 3)->shape))
        return onnx_no(n, "its tables do not fit what it rotates");
    s->columns = turned / 2;
    return true;
}

/* Where each column of each word lies in a table: [batch, steps, columns] */
static const char *put_places(const Streams *s)
{
    OnnxNode *n = s->node;
    int64_t *which = ARENA_ARRAY(n->onnx->arena, int64_t, s->columns);
    int64_t dim[] = {s->columns};
    if (!take_sections(s, which))
        return NULL;
    const char *list = onnx_known_list(n, which, (uint32_t)s->columns, "streams");
    return onnx_define(n, "places", "gather(transpose(%s, axes = [1, 2, 0]), %s, axis = 2) * %lld + iota(shape = %s)",
                       onnx_in(n, 1), list, (long long)s->columns, onnx_list(n, dim, 1));
}

/* A table at these places, by the scale */
static OnnxValue *read_table(const Streams *s, uint32_t i, const char *places)
{
    OnnxNode *n = s->node;
    int64_t dim[] = {onnx_dim(n, i, 0) * s->columns};
    const char *number = onnx_number(n, onnx_type(n, i)->dtype, onnx_float(n, "scale", 1));
    const char *scale = onnx_float(n, "scale", 1) == 1 ? "" : onnx_text(n, " * %s", number);
    return onnx_define_value(n, i == 2 ? "cos" : "sin", "gather(reshape(%s, shape = %s), %s)%s", onnx_in(n, i),
                             onnx_list(n, dim, 1), places, scale);
}

static bool write_rotary_streams(OnnxNode *n)
{
    Streams s;
    const char *places = streams_start(&s, n) ? put_places(&s) : NULL;
    OnnxValue *c = places ? read_table(&s, 2, places) : NULL, *sine = c ? read_table(&s, 3, places) : NULL;
    if (!sine)
        return false;
    OnnxNode *node = onnx_cover(n, "RotaryEmbedding", 23, 4);
    onnx_set_operand(node, 0, n->in[0]);
    onnx_set_operand(node, 1, c);
    onnx_set_operand(node, 2, sine);
    onnx_add_int(node, "interleaved", onnx_int(n, "interleaved", 0));
    onnx_add_int(node, "num_heads", s.heads);
    onnx_add_int(node, "rotary_embedding_dim", 2 * s.columns);
    return onnx_write_cover(n, node);
}

const OnnxRow onnx_contrib_rotary[] = {
    {"RotaryEmbedding", 1, write_rotary, NULL, CONTRIB, false},
    {"MRotaryEmbedding", 1, write_rotary_streams, NULL, CONTRIB, false},
    {0},
};
