/* What a mask hides from all rows of a strip is left out: under a causal one half of the products.
 *
 * The mask is a line that windows move along (passes/diagonals.c), which ends in a run of one number.  Where the parts
 * before the second product make 0 of that number, whatever the scores are, columns behind the last one that some row
 * of the strip sees are neither made nor read: loops over columns end there.  So infinite scores or values that nobody
 * sees give no NaN, as they would by the model's text; it is for compilations that may sum up fewer products (--exact
 * may not).
 */
#include "base/number.h"
#include "kernel/lower/strip.h"

/* The mask */

/* Where the run of equal elements begins that all lines end with; -1: there is none. */
static int64_t run_begin(const Tensor *lines, double *number)
{
    const Shape *shape = &lines->type->shape;
    int64_t length = shape->dim[shape->rank - 1], count = shape_elements(shape), begin = 0;
    *number = tensor_number(lines, length - 1);
    for (int64_t i = 0; i < count; i++) {
        double at = tensor_number(lines, i);
        if (at != *number && i % length >= begin)
            begin = i % length + 1;
    }
    return begin < length ? begin : -1;
}

/* Do all lines let through what stands before the run? */
static bool shows_before(const Tensor *lines, int64_t begin)
{
    const Shape *shape = &lines->type->shape;
    int64_t length = shape->dim[shape->rank - 1], count = shape_elements(shape);
    for (int64_t i = begin - 1; i < count; i += length)
        if (i < 0 || !(tensor_number(lines, i) > KNOWN_LOWEST))
            return false;
    return true;
}

/* Is the operand such a mask, for all of the product's rows and columns? */
static bool see_mask(const Graph *graph, const Product *product, ValueId operand, StripMask *mask)
{
    ValueId value = operand;
    const Node *node = value_producer(graph, value);
    for (; node && node->kernel == NONE && view_keeps_matrices(graph, node); node = value_producer(graph, value))
        value = node->in[0];
    const Shape *shape = value_shape(graph, value);
    if (!node || node->kernel != NONE || !node_is_view(node) || graph->value[node->in[0]].role != ROLE_CONST)
        return false;
    View view = view_of(graph, node, 0);
    if (view.slid == NONE || view.slid + 2 != shape->rank || view.step[view.slid] != -1 || view.further != 1 ||
        shape->dim[shape->rank - 1] != product->columns || shape->dim[shape->rank - 2] != product->rows)
        return false;
    const Tensor *lines = graph->value[node->in[0]].data;
    int64_t begin = run_begin(lines, &mask->hidden);
    mask->value = operand;
    mask->first = begin - view.begin[view.slid];
    mask->shows = mask->first > 0 && shows_before(lines, begin);
    return begin >= 0;
}

bool strip_find_mask(const Graph *graph, const Kernel *kernel, StripMask *mask)
{
    Product product = {0};
    *mask = (StripMask){.value = NONE};
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const Node *node = &graph->node[kernel->node[n]];
        if (node->part != STRIP_FIRST)
            continue;
        if (node_is_contraction(graph, node) && !product_of(graph, node, &product))
            return false;
        for (uint32_t i = 0; i < node->in_count && !node_is_contraction(graph, node); i++)
            if (see_mask(graph, &product, node->in[i], mask))
                return true;
    }
    return false;
}

/* What the parts make of it */

typedef struct Hidden { /* what is known of values in hidden columns */
    const Graph *graph;
    const StripMask *mask;
    bool others;  /* scores are made of tensors beside the product, which may mask what the mask shows */
    Known *known; /* per value */
} Hidden;

static void follow(Hidden *h, const Node *node)
{
    Known operand[3];
    for (uint32_t i = 0; i < node->in_count; i++) {
        ValueId v = node->in[i];
        const Node *maker = value_producer(h->graph, v);
        operand[i] = v == h->mask->value ? (Known){KNOWN_NUMBER, h->mask->hidden} : h->known[v];
        if (value_is_number(h->graph, v, &operand[i].number))
            operand[i].kind = KNOWN_NUMBER;
        else
            h->others |= v != h->mask->value && !(maker && maker->kernel == node->kernel);
    }
    h->known[node->out[0]] = node_where_known(h->graph, node, operand);
}

/* Is what rows are reduced to the same without the hidden columns? */
static bool is_neutral(const Hidden *h, const Node *node)
{
    Reduction r = reduction_of(h->graph, node);
    Known hidden = h->known[node->in[0]];
    bool number = hidden.kind == KNOWN_NUMBER,
         low = hidden.kind == KNOWN_LOW || (number && hidden.number < KNOWN_LOWEST);
    return !r.has_window && ((low && r.combine == WORD_MAX && h->mask->shows && !h->others) ||
                             (number && hidden.number == reduction_neutral(r.combine, r.accumulator)));
}

/* May the part leave hidden columns out?  Follows what it makes of them. */
static bool follow_part(Hidden *h, const Kernel *part)
{
    for (uint32_t n = 0; n < part->node_count; n++) {
        const Node *node = &h->graph->node[part->node[n]];
        bool element = op_info(node->op)->family == FAMILY_ELEMENTWISE && node->in_count <= 3;
        if (node_is_contraction(h->graph, node))
            continue;
        if (element)
            follow(h, node);
        else if (!node_is_reduction(h->graph, node) || !is_neutral(h, node))
            return false;
    }
    return true;
}

static bool hides(Lower *lower, const Strip *strip, const Kernel *first, const Kernel *rows, StripMask *mask)
{
    Hidden h = {.graph = lower->graph, .mask = mask};
    if (lower->exact || !strip_find_mask(lower->graph, first, mask))
        return false;
    h.known = ARENA_ARRAY(lower->arena, Known, lower->graph->value_count);
    return follow_part(&h, first) && follow_part(&h, rows) && h.known[strip->taken].kind == KNOWN_NUMBER &&
           h.known[strip->taken].number == 0;
}

/* Loops over columns */

typedef struct Columns {
    Arena *arena;
    int64_t columns;
    bool *held;      /* per buffer: the strip, and what the rows keep beside it */
    int64_t granule; /* columns that all loops step over at a time */
    bool whole;      /* all that is held is read and written by loops over all columns */
    const Index *end;
} Columns;

#define MOST_PLACES 8 /* that are named, one inside another */

typedef struct Factor { /* of a variable, in what is held */
    const Columns *columns;
    const Var *var;
    int64_t factor;
    bool any, one;                  /* is there any access, and one factor for all? */
    const Stmt *place[MOST_PLACES]; /* locals that are positions */
    uint32_t places;
} Factor;

static const Stmt *place_of(const Factor *f, const Atom *atom)
{
    for (uint32_t i = 0; i < f->places && atom->kind == ATOM_DATA && atom->data->kind == EXPR_LOCAL; i++)
        if (f->place[i]->local == atom->data->local)
            return f->place[i];
    return NULL;
}

/* Recurses over positions that are made of others, which are declared before. */
static bool factor_in(const Factor *f, Index index, int64_t *factor)
{
    int64_t inner;
    *factor = 0;
    for (uint32_t i = 0; i < index.count; i++) {
        const Stmt *place = place_of(f, index.term[i].atom);
        if (place ? !factor_in(f, place->value->index, &inner)
                  : !index_factor((Index){0, 1, &index.term[i]}, f->var, &inner))
            return false;
        *factor += place ? index.term[i].factor * inner : inner;
    }
    return true;
}

static void note_index(Factor *f, Index index)
{
    int64_t factor;
    f->one &= factor_in(f, index, &factor) && (!f->any || factor == f->factor);
    f->factor = factor;
    f->any = true;
}

static void note_place(Factor *f, const Stmt *stmt)
{
    if (stmt->kind != STMT_LOCAL || !stmt->value || stmt->value->kind != EXPR_INDEX)
        return;
    f->one &= f->places < MOST_PLACES;
    if (f->places < MOST_PLACES)
        f->place[f->places++] = stmt;
}

static void note_load(void *context, const Expr *load)
{
    Factor *f = context;
    if (f->columns->held[load->buffer])
        note_index(f, load->index);
}

static void note_block(Factor *f, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        note_place(f, stmt);
        if (stmt_stores(stmt) && f->columns->held[stmt->buffer])
            note_index(f, stmt->index);
        if (stmt->value)
            expr_loads(stmt->value, note_load, f);
        index_loads(stmt->index, note_load, f);
        note_block(f, &stmt->body);
        note_block(f, &stmt->other);
    }
}

static bool has_constant_bounds(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && !stmt->low.count && !stmt->high.count && !stmt->clamp_low && !stmt->clamp_high;
}

/* Columns from one round's to those of the next variable; 0: it does not go over columns, from the first one on. */
static int64_t columns_of(const Columns *c, const Stmt *stmt)
{
    Factor f = {.columns = c, .var = stmt->var, .one = true};
    if (!has_constant_bounds(stmt) || stmt->low.constant)
        return 0;
    note_block(&f, &stmt->body);
    return f.any && f.one && f.factor > 0 && f.factor * stmt->high.constant <= c->columns ? f.factor : 0;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    return a / number_gcd(a, b) * b;
}

/* Recurses over the nesting. */
static void hold_stored(Columns *c, const Stmt *stmt)
{
    if (stmt_stores(stmt))
        c->held[stmt->buffer] = true;
    for (const Stmt *inner = stmt->body.first; inner; inner = inner->next)
        hold_stored(c, inner);
    for (const Stmt *inner = stmt->other.first; inner; inner = inner->next)
        hold_stored(c, inner);
}

static void count_access(void *context, const Expr *load)
{
    Columns *c = context;
    c->whole &= !c->held[load->buffer];
}

/* Of what reads the strip: it all is in loops over all columns.  Recurses over the nesting. */
static void see_readers(Columns *c, const Stmt *first)
{
    for (const Stmt *stmt = first; stmt; stmt = stmt->next) {
        int64_t factor = columns_of(c, stmt);
        if (factor && factor * stmt->high.constant == c->columns) {
            c->granule = common_multiple(c->granule, factor * stmt->step);
            continue;
        }
        c->whole &= !(stmt_stores(stmt) && c->held[stmt->buffer]);
        if (stmt->value)
            expr_loads(stmt->value, count_access, c);
        index_loads(stmt->index, count_access, c);
        see_readers(c, stmt->body.first);
        see_readers(c, stmt->other.first);
    }
}

/* Recurses over the nesting. */
static void cut_loops(Columns *c, Stmt *first)
{
    for (Stmt *stmt = first; stmt; stmt = stmt->next) {
        int64_t factor = columns_of(c, stmt);
        if (!factor) {
            cut_loops(c, stmt->body.first);
            cut_loops(c, stmt->other.first);
            continue;
        }
        Index most = stmt->high;
        bool whole = c->granule % factor == 0;
        Index end = whole ? *c->end : index_add(c->arena, *c->end, index_constant(factor - 1));
        stmt->high = index_div(c->arena, end, factor);
        if (most.constant * factor < c->columns) {
            stmt->clamp_high = true;
            stmt->high_most = most;
        }
    }
}

/* The columns that some row of the strip sees, up to whole granules. */
static const Expr *seen_columns(const Lower *lower, const Strip *strip, const StripMask *mask, int64_t granule)
{
    Arena *arena = lower->arena;
    int64_t last = strip->height - 1 + mask->first; /* beside the strip's first row */
    Index end = index_add(arena, strip->first, index_constant((last > 1 ? last : 1) + granule - 1));
    end = index_scale(arena, index_div(arena, end, granule), granule);
    return expr_word(arena, WORD_MIN, DT_I64, expr_index(arena, DT_I64, end),
                     expr_number(arena, DT_I64, (double)strip->product.columns), NULL);
}

static void insert_after(Block *block, Stmt *before, Block one)
{
    one.first->next = before ? before->next : block->first;
    if (before)
        before->next = one.first;
    else
        block->first = one.first;
    if (block->last == before)
        block->last = one.first;
}

void strip_leave_hidden(Lower *lower, const Strip *strip, const Kernel *first, const Kernel *rows, StripBody body)
{
    Arena *arena = lower->arena;
    StripMask mask;
    Columns c = {.arena = arena, .columns = strip->product.columns, .granule = 1, .whole = true};
    if (strip->product.rows <= strip->height || !hides(lower, strip, first, rows, &mask))
        return;
    c.held = ARENA_ARRAY(arena, bool, lower->kernel->buffer_count);
    c.held[strip->buffer] = true;
    for (const Stmt *stmt = body.rows; stmt && stmt != body.second; stmt = stmt->next)
        hold_stored(&c, stmt);
    see_readers(&c, body.rows);
    if (!c.whole || c.columns % c.granule || c.columns == c.granule)
        return;
    const Local *seen = lower_local(lower, "seen", DT_I64, false);
    Index end = index_data(arena, expr_local(arena, seen), c.granule, c.columns);
    c.end = &end;
    cut_loops(&c, body.first);
    Block local = {0};
    stmt_local(arena, &local, seen, seen_columns(lower, strip, &mask, c.granule));
    insert_after(body.block, body.before, local);
}
