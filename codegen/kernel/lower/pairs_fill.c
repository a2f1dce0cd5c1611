/* The first operand of a contraction by bundles, in scratch. */
#include "kernel/lower/pairs.h"

/* What f32 computes of narrow integers by sums and differences, in i32, which C compilers make vectors of; NULL where
 * there is more to it. */
static const Expr *as_integer(Arena *arena, const Expr *expr)
{
    if (expr->kind == EXPR_NUMBER)
        return expr_number(arena, DT_I32, expr->number);
    if (expr->kind == EXPR_CAST && dtype_is_int(expr->arg[0]->dtype) && dtype_bytes(expr->arg[0]->dtype) <= 2)
        return expr_cast(arena, DT_I32, expr->arg[0]);
    if (expr->kind != EXPR_WORD || (expr->word != WORD_ADD && expr->word != WORD_SUB))
        return NULL;
    const Expr *x = as_integer(arena, expr->arg[0]), *y = as_integer(arena, expr->arg[1]);
    return x && y ? expr_word(arena, expr->word, DT_I32, x, y, NULL) : NULL;
}

typedef struct Line { /* of the image, being filled in */
    const Pairs *pairs;
    const PairsPart *part;
    Index row, to; /* of the image, or of the part of a product; where it begins in scratch */
    Index w;       /* of scratch */
    Index first;   /* channel */
} Line;

static Index source_column(const Line *line, Index w)
{
    Arena *arena = line->pairs->lower->arena;
    const WindowDimension *d = &line->part->w;
    return index_add(arena, index_scale(arena, w, pairs_source_step(d)), index_constant(-d->before));
}

/* With the number added, or without the same that is taken away from it */
static const Expr *shifted(Arena *arena, const Expr *x, double shift)
{
    if (shift == 0)
        return x;
    if (x->kind == EXPR_WORD && x->word == WORD_SUB && x->arg[1]->kind == EXPR_NUMBER && x->arg[1]->number == shift)
        return x->arg[0];
    return expr_word(arena, WORD_ADD, x->dtype, x, expr_number(arena, x->dtype, shift), NULL);
}

/* As scratch has it; what is bf16 already is copied. */
static const Expr *kept(const Pairs *p, const Expr *value)
{
    Arena *arena = p->lower->arena;
    const Expr *integer = p->bundle == BUNDLE_BF16 ? NULL : as_integer(arena, value);
    if (p->bundle == BUNDLE_BF16 && value->kind == EXPR_CAST && value->arg[0]->dtype == DT_BF16)
        return value->arg[0];
    value = shifted(arena, integer ? integer : value, p->shift);
    bool same = value->kind == EXPR_CAST && value->arg[0]->dtype == pairs_dtype(p) && integer;
    return same ? value->arg[0] : expr_cast(arena, pairs_dtype(p), value);
}

static const Expr *element(const Line *line, Index w, Index channel)
{
    const Pairs *p = line->pairs;
    Lower *lower = p->lower;
    Arena *arena = lower->arena;
    const Shape *x = value_shape(lower->graph, p->node->in[0]);
    Index position[MAX_RANK];
    if (p->is_product) {
        Index m = index_add(arena, index_scale(arena, line->row, line->part->width), w);
        m = index_add(arena, m, index_constant(line->part->first));
        index_unflatten(arena, m, x->dim, x->rank - 1, position);
        position[x->rank - 1] = channel;
    } else {
        position[0] = index_var(arena, p->image);
        position[1] = index_add(arena, index_scale(arena, index_var(arena, p->group), p->depth), channel);
        if (p->flat) {
            pairs_flat_position(p, line->part, line->row, w, position);
        } else {
            position[2] = line->row;
            position[x->rank - 1] = source_column(line, w);
        }
    }
    return lower_value(lower, p->bytes, position);
}

static Index place(const Line *line, Index w, Index channel)
{
    Arena *arena = line->pairs->lower->arena;
    return index_add(arena, index_add(arena, line->to, index_scale(arena, w, line->pairs->pitch)), channel);
}

static void store(const Line *line, Index w, Index channel)
{
    const Pairs *p = line->pairs;
    Lower *lower = p->lower;
    uint32_t scratch = lower_scratch(lower, p->piece[PAIRS_IMAGE]);
    Index at = place(line, w, channel);
    const Expr *value = element(line, w, channel);
    if (p->parts > 1)
        stmt_store_parts(lower->arena, lower->block, scratch, at, p->parts, p->image_rest, value);
    else
        stmt_store(lower->arena, lower->block, scratch, at, kept(p, value));
}

/* C compilers copy faster than what widens and narrows vectors. */
static bool fill_vectorizes(const Block *body, const Var *var)
{
    const Stmt *stmt = body->first;
    bool copies = stmt && stmt == body->last && stmt->kind == STMT_STORE && stmt->value->kind == EXPR_LOAD;
    return !copies && block_vectorizes(body, var);
}

static void channel_of(Lower *lower, void *context, Index at)
{
    const Line *line = context;
    store(line, line->w, index_add(lower->arena, line->first, at));
}

static void column_of(Lower *lower, void *context, Index at)
{
    const Line *line = context;
    store(line, index_add(lower->arena, line->w, at), line->first);
}

static Block *add_loop(Lower *lower, Block *block, const char *name, int64_t low, int64_t high, Index *index)
{
    const Var *var = index_var_new(lower->arena, name, low, high - 1);
    *index = low + 1 == high ? index_constant(low) : index_var(lower->arena, var);
    return low + 1 == high ? block : &stmt_for(lower->arena, block, var, low, high, 1, LOOP_SERIAL)->body;
}

bool pairs_fills_singly(const Pairs *p)
{
    int64_t blocks = value_type(p->lower->graph, p->node->in[0])->layout.block;
    return !p->is_product && (!blocks || p->depth % blocks);
}

/* Columns from begin to end - 1, all in the image, in the order of memory. */
static void fill_columns(Line *line, Block *block, int64_t begin, int64_t end)
{
    const Pairs *p = line->pairs;
    Lower *lower = p->lower;
    Arena *arena = lower->arena;
    int64_t blocks = value_type(lower->graph, p->node->in[0])->layout.block;
    Index b, c;
    if (begin >= end)
        return;
    if (pairs_fills_singly(p)) {
        block = add_loop(lower, block, "c", 0, p->depth, &c);
        line->first = c;
        line->w = index_constant(begin);
        Block *outer = lower_enter(lower, block);
        lower_vector_loop(lower, "w", end - begin, LOOP_SERIAL, fill_vectorizes, column_of, line);
        lower_leave(lower, outer);
        return;
    }
    int64_t run = p->is_product ? p->depth : blocks;
    block = add_loop(lower, block, "b", 0, p->depth / run, &b);
    block = add_loop(lower, block, "w", begin, end, &line->w);
    line->first = index_scale(arena, b, run);
    Block *outer = lower_enter(lower, block);
    lower_vector_loop(lower, "c", run, LOOP_SERIAL, fill_vectorizes, channel_of, line);
    lower_leave(lower, outer);
}

static void fill_zeros(const Line *line, Block *block, int64_t begin, int64_t count, int64_t step)
{
    Lower *lower = line->pairs->lower;
    Arena *arena = lower->arena;
    Index at;
    if (count <= 0)
        return;
    block = add_loop(lower, block, "z", 0, count, &at);
    Index to = index_add(arena, line->to, index_add(arena, index_constant(begin), index_scale(arena, at, step)));
    const Pairs *p = line->pairs;
    uint32_t scratch = lower_scratch(lower, p->piece[PAIRS_IMAGE]);
    const Expr *zero = p->zero_point == NONE ? expr_number(arena, pairs_dtype(p), p->shift)
                                             : expr_cast(arena, pairs_dtype(p), pairs_zero_point(p));
    for (uint32_t part = 0; part < p->parts; part++)
        stmt_store(arena, block, scratch, index_add(arena, to, index_constant(part * p->image_rest)), zero);
}

static void fill_line(Line *line, Block *block)
{
    const Pairs *p = line->pairs;
    const WindowDimension *d = &line->part->w;
    int64_t step = pairs_source_step(d), width = line->part->in_width;
    int64_t begin = least(width, ceil_div(most(0, d->before), step));
    int64_t end = most(begin, least(width, (d->in - 1 + d->before) / step + 1));
    fill_zeros(line, block, 0, begin * p->pitch, 1);
    fill_columns(line, block, begin, end);
    for (int64_t channel = p->depth; channel < p->room; channel++)
        fill_zeros(line, block, begin * p->pitch + channel, end - begin, p->pitch);
    fill_zeros(line, block, end * p->pitch, (width - end) * p->pitch, 1);
}

void pairs_fill(Pairs *p, const PairsPart *part, Index first, Block *block)
{
    Lower *lower = p->lower;
    Arena *arena = lower->arena;
    const WindowDimension *h = &part->h;
    Index s, row;
    block = add_loop(lower, block, "s", 0, part->in_rows, &s);
    row = index_add(arena, index_scale(arena, first, h->stride), index_scale(arena, s, pairs_source_step(h)));
    Line line = {.pairs = p, .part = part, .to = index_scale(arena, s, part->in_width * p->pitch)};
    line.row = index_add(arena, row, index_constant(-h->before));
    int64_t count = part->in_width * p->pitch;
    if (index_high(line.row) < 0 || index_low(line.row) >= h->in) { /* nothing but padding */
        fill_zeros(&line, block, 0, count, 1);
        return;
    }
    if (index_low(line.row) >= 0 && index_high(line.row) < h->in) {
        fill_line(&line, block);
        return;
    }
    Stmt *inside = stmt_if(arena, block, line.row, 0, h->in);
    fill_line(&line, &inside->body);
    fill_zeros(&line, &inside->other, 0, count, 1);
}
