/* A channel's image in scratch, zeros around it, for vectors along the width: then every window is whole, and no column
 * or row is an edge, which goes one by one.  Columns that a stride skips lie apart, as a *phase* each: those that a tap
 * meets in neighbouring windows follow one another. */
#include "kernel/lower/depthwise.h"

#include "base/number.h"

#define MOST_IN_TEXT  4  /* vectors of a row that are no loop */
#define MOST_TOGETHER 16 /* channels */
#define SHARES        4  /* of the channels, for each thread */
#define LARGEST_SHARE 4  /* of the first level: three in so many for a plane */

/* Windows that begin in the plane's first row or column, and all that they see. */
static WindowDimension framed(const WindowDimension *image)
{
    WindowDimension d = *image;
    d.in = (d.out - 1) * d.stride + window_span(image);
    d.before = d.after = 0;
    return d;
}

static bool has_edges(const Depthwise *dw)
{
    return dw->rows_begin > 0 || dw->rows_end < dw->h.out || dw->columns_begin > 0 || dw->columns_end < dw->w.out;
}

bool depthwise_see_plane(Depthwise *dw)
{
    bool gains = has_edges(dw) || dw->w.stride > 1;
    if (dw->group_channels != 1 || (dw->w.size > MOST_APART && dw->w.stride > 1) || dw->h.out < 1 || dw->w.out < 1)
        return false;
    dw->h = framed(&dw->image_h);
    dw->w = framed(&dw->image_w);
    dw->phases = least(dw->w.stride, dw->w.in);
    dw->w.in = ceil_div(dw->w.in, dw->phases);
    dw->w.stride = 1;
    dw->phase = dw->h.in * dw->w.in;
    dw->rows_begin = dw->columns_begin = 0;
    dw->rows_end = dw->h.out, dw->columns_end = dw->w.out;
    dw->framed = true;
    return gains;
}

int64_t depthwise_plane_elements(const Depthwise *dw)
{
    int64_t lanes = dw->lower->target->lanes;
    return ceil_div(most(dw->phases * dw->phase, dw->reach), lanes) * lanes;
}

bool depthwise_plane_is_near(const Depthwise *dw)
{
    int64_t bytes = depthwise_plane_elements(dw) * (int64_t)sizeof(float);
    return LARGEST_SHARE * bytes <= (LARGEST_SHARE - 1) * dw->lower->target->l1_bytes;
}

int64_t depthwise_tap(const Depthwise *dw, int64_t kw)
{
    int64_t column = kw * dw->w.dilation;
    return dw->framed ? column % dw->phases * dw->phase + column / dw->phases : column * dw->x_w;
}

/* Rows */

typedef struct Row { /* as it is copied */
    PlaneRow is;
    Arena *arena;
    Block *block;
    Stmt *vectors; /* the last statement of the block, when it is one of vectors; else NULL */
    const Var *lane;
} Row;

static void copy_element(const Row *row, Block *block, Index at, bool vectors)
{
    const PlaneRow *is = &row->is;
    Index from = index_add(row->arena, is->from, index_scale(row->arena, at, is->step));
    const Expr *element =
        (vectors && is->whole ? expr_load_spread : expr_load)(row->arena, is->dtype, is->source, from);
    stmt_store(row->arena, block, is->scratch, index_add(row->arena, is->to, at), element);
}

static void copy_vector(Row *row, Index first, int64_t lanes)
{
    if (lanes == 1) {
        copy_element(row, row->block, first, false);
        return;
    }
    if (!row->vectors || row->lane->high + 1 != lanes) {
        row->lane = index_var_new(row->arena, "lane", 0, lanes - 1);
        row->vectors = stmt_lanes(row->arena, row->block, row->lane, (uint32_t)lanes);
    }
    copy_element(row, &row->vectors->body, index_add(row->arena, first, index_var(row->arena, row->lane)), true);
}

/* Whole vectors, the last of which may begin inside the one before it; of few elements half vectors, or none. */
static void copy_row(Row *row, int64_t lanes)
{
    int64_t count = row->is.count, begin = 0;
    while (lanes > count && lanes / 2 >= LEAST_LANES)
        lanes /= 2;
    if (lanes > count)
        lanes = 1;
    if (count / lanes > MOST_IN_TEXT) {
        const Var *j = index_var_new(row->arena, "j", 0, count / lanes * lanes - lanes);
        Row inner = *row;
        inner.vectors = row->vectors = NULL;
        inner.block = &stmt_for(row->arena, row->block, j, 0, count / lanes * lanes, lanes, LOOP_SERIAL)->body;
        copy_vector(&inner, index_var(row->arena, j), lanes);
        begin = count / lanes * lanes;
    }
    for (; begin + lanes <= count; begin += lanes)
        copy_vector(row, index_constant(begin), lanes);
    if (begin < count)
        copy_vector(row, index_constant(count - lanes), lanes);
}

void depthwise_copy_row(const Depthwise *dw, Block *block, const PlaneRow *row)
{
    copy_row(&(Row){.is = *row, .arena = dw->lower->arena, .block = block}, dw->lower->target->lanes);
}

/* Columns w = phase + j * phases of the plane that hold the image's w - before. */
static void copy_phase(const Depthwise *dw, Row *row, Index h, int64_t phase)
{
    Arena *arena = row->arena;
    int64_t shift = dw->image_w.before - phase;
    int64_t begin = shift > 0 ? ceil_div(shift, dw->phases) : 0, room = dw->image_w.in - 1 + shift;
    int64_t end = room < 0 ? 0 : least(room / dw->phases + 1, dw->w.in);
    if (begin >= end)
        return;
    Index from = index_add(arena, dw->x_base, index_scale(arena, h, dw->image_x_h));
    Index to = index_scale(arena, index_add(arena, h, index_constant(dw->image_h.before)), dw->w.in);
    row->is = (PlaneRow){.dtype = value_type(dw->lower->graph, dw->x_source)->dtype,
                         .source = dw->image_x,
                         .scratch = dw->x,
                         .from = index_add(arena, from, index_constant((begin * dw->phases - shift) * dw->image_x_w)),
                         .to = index_add(arena, to, index_constant(phase * dw->phase + begin)),
                         .step = dw->phases * dw->image_x_w,
                         .count = end - begin,
                         .whole = dw->x_whole};
    copy_row(row, dw->lower->target->lanes);
}

int64_t depthwise_planes_together(const Depthwise *dw)
{
    int64_t threads = most(1, dw->lower->kernel->threads), channels = dw->block->high + 1;
    return most(1, least(MOST_TOGETHER, channels / (SHARES * threads)));
}

void depthwise_clear(const Lower *lower, Block *block, uint32_t scratch, int64_t elements)
{
    Arena *arena = lower->arena;
    int64_t lanes = lower->target->lanes;
    const Var *i = index_var_new(arena, "i", 0, elements - lanes), *lane = index_var_new(arena, "lane", 0, lanes - 1);
    block = &stmt_for(arena, block, i, 0, elements, lanes, LOOP_SERIAL)->body;
    stmt_store(arena, &stmt_lanes(arena, block, lane, (uint32_t)lanes)->body, scratch,
               index_add(arena, index_var(arena, i), index_var(arena, lane)), expr_number(arena, DT_F32, 0));
}

void depthwise_bring_plane(const Depthwise *dw, Block *block)
{
    Arena *arena = dw->lower->arena;
    int64_t begin = most(0, -dw->image_h.before), end = least(dw->image_h.in, dw->h.in - dw->image_h.before);
    if (begin >= end)
        return;
    const Var *h = index_var_new(arena, "h", begin, end - 1);
    if (end - begin > 1)
        block = &stmt_for(arena, block, h, begin, end, 1, LOOP_SERIAL)->body;
    Row row = {.arena = arena, .block = block};
    for (int64_t phase = 0; phase < dw->phases; phase++)
        copy_phase(dw, &row, end - begin > 1 ? index_var(arena, h) : index_constant(begin), phase);
}
