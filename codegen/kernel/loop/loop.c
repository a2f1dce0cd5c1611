#include "kernel/loop/loop.h"

#include "base/number.h"

#include <math.h>

const Var *index_var_new(Arena *arena, const char *name, int64_t low, int64_t high)
{
    return arena_copy(arena, &(Var){name, low, high}, sizeof(Var));
}

/* Expressions */

static const Expr *keep(Arena *arena, Expr expr)
{
    return arena_copy(arena, &expr, sizeof expr);
}

/* As a tensor of the dtype holds it: rounded, brought to the nearest end, and of bool its truth. */
static double held(DType dtype, double number)
{
    int64_t element = 0;
    Type type = {.dtype = dtype};
    Tensor tensor = {&type, &element};
    tensor_set_number(&tensor, 0, number);
    return tensor_number(&tensor, 0);
}

const Expr *expr_number(Arena *arena, DType dtype, double number)
{
    return keep(arena, (Expr){.kind = EXPR_NUMBER, .dtype = dtype, .number = held(dtype, number)});
}

const Expr *expr_index(Arena *arena, DType dtype, Index index)
{
    return keep(arena, (Expr){.kind = EXPR_INDEX, .dtype = dtype, .index = index});
}

const Expr *expr_random(Arena *arena, Draw draw, const Expr *key, Index index)
{
    return keep(arena, (Expr){.kind = EXPR_RANDOM,
                              .dtype = draw == DRAW_WORD ? DT_I64 : DT_F32,
                              .draw = draw,
                              .index = index,
                              .arg = {key}});
}

const Expr *expr_load(Arena *arena, DType dtype, uint32_t buffer, Index index)
{
    return keep(arena, (Expr){.kind = EXPR_LOAD, .dtype = dtype, .buffer = buffer, .index = index});
}

const Expr *expr_load_spread(Arena *arena, DType dtype, uint32_t buffer, Index index)
{
    return keep(arena, (Expr){.kind = EXPR_LOAD, .dtype = dtype, .buffer = buffer, .index = index, .spread = true});
}

const Expr *expr_local(Arena *arena, const Local *local)
{
    return keep(arena, (Expr){.kind = EXPR_LOCAL, .dtype = local->dtype, .local = local});
}

const Expr *expr_local_at(Arena *arena, const Local *local, Index i, Index j)
{
    return keep(arena, (Expr){.kind = EXPR_LOCAL, .dtype = local->dtype, .local = local, .index = i, .index2 = j});
}

const Expr *expr_word(Arena *arena, Word word, DType dtype, const Expr *x, const Expr *y, const Expr *z)
{
    return keep(arena, (Expr){.kind = EXPR_WORD, .dtype = dtype, .word = word, .arg = {x, y, z}});
}

const Expr *expr_cast(Arena *arena, DType dtype, const Expr *x)
{
    if (x->dtype == dtype)
        return x;
    if (x->kind == EXPR_NUMBER && dtype_is_float(x->dtype) && dtype_is_float(dtype) && isfinite(x->number))
        return expr_number(arena, dtype, x->number);
    return keep(arena, (Expr){.kind = EXPR_CAST, .dtype = dtype, .arg = {x}});
}

const Expr *expr_bits(Arena *arena, DType dtype, const Expr *x)
{
    return x->dtype == dtype ? x : keep(arena, (Expr){.kind = EXPR_BITS, .dtype = dtype, .arg = {x}});
}

const Expr *expr_within(Arena *arena, Index index, int64_t limit, const Expr *inside, const Expr *outside)
{
    if (index_low(index) >= 0 && index_high(index) < limit)
        return inside;
    if (index_high(index) < 0 || index_low(index) >= limit)
        return outside;
    return keep(
        arena,
        (Expr){.kind = EXPR_WITHIN, .dtype = inside->dtype, .index = index, .limit = limit, .arg = {inside, outside}});
}

const Expr *expr_bundle(Arena *arena, Bundle bundle, DType dtype, uint32_t buffer, Index index, double less)
{
    Index last = index_add(arena, index, index_constant(bundle_count(bundle) - 1));
    return keep(arena, (Expr){.kind = EXPR_BUNDLE,
                              .dtype = DT_I32,
                              .bundle = bundle,
                              .number = less,
                              .arg = {expr_load(arena, dtype, buffer, index), expr_load(arena, dtype, buffer, last)}});
}

const Expr *expr_dot(Arena *arena, Bundle bundle, const Expr *sum, const Expr *x, const Expr *y)
{
    return keep(arena, (Expr){.kind = EXPR_DOT, .dtype = sum->dtype, .bundle = bundle, .arg = {sum, x, y}});
}

bool expr_uses(const Expr *expr, const Var *var)
{
    if (index_uses(expr->index, var) || index_uses(expr->index2, var))
        return true;
    for (int i = 0; i < 3; i++)
        if (expr->arg[i] && expr_uses(expr->arg[i], var))
            return true;
    return false;
}

static const Expr *under_casts(const Expr *expr)
{
    while (expr && expr->kind == EXPR_CAST)
        expr = expr->arg[0];
    return expr;
}

const Expr *expr_halved(const Expr *halves, bool *high)
{
    const Expr *word = under_casts(halves);
    const Expr *load = word->kind == EXPR_WORD ? under_casts(word->arg[0]) : NULL,
               *by = word->kind == EXPR_WORD ? under_casts(word->arg[1]) : NULL;
    if (!load || !by || load->kind != EXPR_LOAD || load->dtype != DT_U8 || by->kind != EXPR_NUMBER)
        return NULL;
    *high = word->word == WORD_SHIFT_RIGHT;
    return (*high && by->number == 4) || (word->word == WORD_BIT_AND && by->number == 15) ? load : NULL;
}

bool expr_eq(const Expr *a, const Expr *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->kind != b->kind || a->dtype != b->dtype || a->word != b->word || a->draw != b->draw ||
        a->bundle != b->bundle || a->buffer != b->buffer || a->local != b->local || a->limit != b->limit ||
        !index_eq(a->index, b->index) || !index_eq(a->index2, b->index2))
        return false;
    if ((a->kind == EXPR_NUMBER || a->kind == EXPR_BUNDLE) && a->number != b->number)
        return false;
    return expr_eq(a->arg[0], b->arg[0]) && expr_eq(a->arg[1], b->arg[1]) && expr_eq(a->arg[2], b->arg[2]);
}

const Expr *expr_substitute(Arena *arena, const Expr *expr, const Var *var, Index with)
{
    if (!expr || !expr_uses(expr, var))
        return expr;
    Expr copy = *expr;
    copy.index = index_substitute(arena, expr->index, var, with);
    copy.index2 = index_substitute(arena, expr->index2, var, with);
    for (int i = 0; i < 3; i++)
        copy.arg[i] = expr_substitute(arena, expr->arg[i], var, with);
    if (copy.kind == EXPR_WITHIN)
        return expr_within(arena, copy.index, copy.limit, copy.arg[0], copy.arg[1]);
    return keep(arena, copy);
}

void index_loads(Index index, void (*visit)(void *, const Expr *), void *context)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        if (atom->kind == ATOM_DATA)
            expr_loads(atom->data, visit, context);
        else if (atom->kind != ATOM_VAR)
            index_loads(atom->index, visit, context);
    }
}

void expr_loads(const Expr *expr, void (*visit)(void *, const Expr *), void *context)
{
    if (expr->kind == EXPR_LOAD)
        visit(context, expr);
    index_loads(expr->index, visit, context);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            expr_loads(expr->arg[i], visit, context);
}

/* Indices, into the expressions that they read */

bool index_uses(Index a, const Var *var)
{
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        if (atom->kind == ATOM_VAR    ? atom->var == var
            : atom->kind == ATOM_DATA ? expr_uses(atom->data, var)
                                      : index_uses(atom->index, var))
            return true;
    }
    return false;
}

bool index_reads_data(Index a)
{
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        if (atom->kind == ATOM_DATA || (atom->kind != ATOM_VAR && index_reads_data(atom->index)))
            return true;
    }
    return false;
}

bool index_factor(Index a, const Var *var, int64_t *factor)
{
    *factor = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        if (atom->kind == ATOM_VAR && atom->var == var)
            *factor = a.term[i].factor;
        else if (index_uses((Index){0, 1, &a.term[i]}, var))
            return false;
    }
    return true;
}

bool index_is_even(Index a)
{
    bool even = a.constant % 2 == 0;
    for (uint32_t i = 0; i < a.count && even; i++) {
        const Expr *data = a.term[i].atom->kind == ATOM_DATA ? a.term[i].atom->data : NULL;
        even = a.term[i].factor % 2 == 0 || (data && data->kind == EXPR_LOCAL && data->local->even);
    }
    return even;
}

int64_t index_cut(Index a, const Var *var, int64_t *first)
{
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        int64_t factor;
        if ((atom->kind == ATOM_DIV || atom->kind == ATOM_MOD) && index_factor(atom->index, var, &factor) && factor &&
            atom->divisor % factor == 0) {
            int64_t cut = atom->divisor / factor;
            if (first)
                *first = factor == 1 ? (cut - atom->index.constant % cut) % cut : 0;
            return cut;
        }
    }
    return 0;
}

int64_t index_finest_cut(Index a, const Var *var)
{
    int64_t cut = 0, factor;
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        if (atom->kind != ATOM_DIV && atom->kind != ATOM_MOD)
            continue;
        if (!index_factor(atom->index, var, &factor))
            cut = number_gcd(cut, index_finest_cut(atom->index, var));
        else if (factor)
            cut = number_gcd(cut, atom->divisor % factor ? 1 : atom->divisor / (factor < 0 ? -factor : factor));
    }
    return cut;
}

static Index of_atom(Arena *arena, const Atom *atom)
{
    Term *term = ARENA_NEW(arena, Term);
    *term = (Term){1, atom};
    return (Index){0, 1, term};
}

Index index_substitute(Arena *arena, Index a, const Var *var, Index with)
{
    Index sum = index_constant(a.constant);
    for (uint32_t i = 0; i < a.count; i++) {
        const Atom *atom = a.term[i].atom;
        Index part;
        switch (atom->kind) {
        case ATOM_VAR:
            part = atom->var == var ? with : of_atom(arena, atom);
            break;
        case ATOM_DIV:
            part = index_div(arena, index_substitute(arena, atom->index, var, with), atom->divisor);
            break;
        case ATOM_MOD:
            part = index_mod(arena, index_substitute(arena, atom->index, var, with), atom->divisor);
            break;
        default:
            part = index_data(arena, expr_substitute(arena, atom->data, var, with), atom->low, atom->high);
            break;
        }
        sum = index_add(arena, sum, index_scale(arena, part, a.term[i].factor));
    }
    return sum;
}

/* Statements */

void block_append(Block *block, Block rest)
{
    if (!rest.first)
        return;
    *(block->last ? &block->last->next : &block->first) = rest.first;
    block->last = rest.last;
}

static void use_load(void *used, const Expr *load)
{
    ((bool *)used)[load->buffer] = true;
}

void block_buffers(const Block *block, bool *used)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt_stores(stmt) || stmt->kind == STMT_PREFETCH)
            used[stmt->buffer] = true;
        if (stmt->value)
            expr_loads(stmt->value, use_load, used);
        index_loads(stmt->index, use_load, used);
        block_buffers(&stmt->body, used);
        block_buffers(&stmt->other, used);
    }
}

uint32_t block_locals(const Block *block)
{
    int64_t count = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        count = most(count, stmt->local ? (int64_t)stmt->local->id + 1 : 0);
        count = most(count, most(block_locals(&stmt->body), block_locals(&stmt->other)));
    }
    return (uint32_t)count;
}

uint64_t block_count(const Block *block)
{
    uint64_t count = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        count += 1 + block_count(&stmt->body) + block_count(&stmt->other);
    return count;
}

static Stmt *append(Arena *arena, Block *block, Stmt stmt)
{
    Stmt *kept = arena_copy(arena, &stmt, sizeof stmt);
    block_append(block, (Block){kept, kept});
    return kept;
}

Block block_substitute(Arena *arena, const Block *block, const Var *var, Index with)
{
    Block copy = {0};
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        Stmt *to = append(arena, &copy, *stmt);
        Index *index[] = {&to->index, &to->index2, &to->low, &to->high, &to->low_least, &to->high_most};
        to->next = NULL;
        for (uint32_t i = 0; i < sizeof index / sizeof *index; i++)
            *index[i] = index_substitute(arena, *index[i], var, with);
        to->value = expr_substitute(arena, to->value, var, with);
        to->body = block_substitute(arena, &stmt->body, var, with);
        to->other = block_substitute(arena, &stmt->other, var, with);
    }
    return copy;
}

Stmt *stmt_for(Arena *arena, Block *block, const Var *var, int64_t low, int64_t high, int64_t step, LoopKind kind)
{
    return append(arena, block,
                  (Stmt){.kind = STMT_FOR,
                         .var = var,
                         .loop = kind,
                         .low = index_constant(low),
                         .high = index_constant(high),
                         .step = step});
}

int64_t stmt_rounds(const Stmt *loop)
{
    return ceil_div(loop->high.constant - loop->low.constant, loop->step);
}

Stmt *stmt_lanes(Arena *arena, Block *block, const Var *var, uint32_t lanes)
{
    return append(arena, block, (Stmt){.kind = STMT_LANES, .var = var, .lanes = lanes});
}

void stmt_local(Arena *arena, Block *block, const Local *local, const Expr *value)
{
    append(arena, block, (Stmt){.kind = STMT_LOCAL, .local = local, .value = value});
}

void stmt_assign(Arena *arena, Block *block, const Local *local, Index i, Index j, const Expr *value)
{
    append(arena, block, (Stmt){.kind = STMT_ASSIGN, .local = local, .index = i, .index2 = j, .value = value});
}

void stmt_store(Arena *arena, Block *block, uint32_t buffer, Index index, const Expr *value)
{
    append(arena, block, (Stmt){.kind = STMT_STORE, .buffer = buffer, .index = index, .value = value});
}

void stmt_store_parts(Arena *arena, Block *block, uint32_t buffer, Index index, uint32_t parts, int64_t rest,
                      const Expr *value)
{
    append(arena, block,
           (Stmt){.kind = STMT_STORE,
                  .buffer = buffer,
                  .index = index,
                  .value = expr_cast(arena, DT_BF16, value),
                  .parts = parts,
                  .rest = rest});
}

void stmt_store_together(Arena *arena, Block *block, uint32_t buffer, Index index, const Local *registers,
                         uint32_t count)
{
    Index zero = index_constant(0);
    append(arena, block,
           (Stmt){.kind = STMT_STORE,
                  .buffer = buffer,
                  .index = index,
                  .value = expr_local_at(arena, registers, zero, zero),
                  .together = count});
}

void stmt_reduce(Arena *arena, Block *block, Word word, const Local *into, const Local *lanes)
{
    append(arena, block, (Stmt){.kind = STMT_REDUCE, .word = word, .local = into, .value = expr_local(arena, lanes)});
}

void stmt_meet(Arena *arena, Block *block, Word word, const Local *local, uint32_t threads)
{
    append(arena, block, (Stmt){.kind = STMT_MEET, .word = word, .local = local, .lanes = threads});
}

void stmt_barrier(Arena *arena, Block *block)
{
    append(arena, block, (Stmt){.kind = STMT_BARRIER});
}

Stmt *stmt_if(Arena *arena, Block *block, Index index, int64_t low, int64_t high)
{
    return append(arena, block,
                  (Stmt){.kind = STMT_IF, .index = index, .low = index_constant(low), .high = index_constant(high)});
}

Stmt *stmt_where(Arena *arena, Block *block, const Expr *truth)
{
    return stmt_if(arena, block, index_data(arena, truth, 0, 1), 1, 2);
}

void stmt_prefetch(Arena *arena, Block *block, uint32_t buffer, Index index, uint32_t level)
{
    append(arena, block, (Stmt){.kind = STMT_PREFETCH, .buffer = buffer, .index = index, .level = level});
}

void stmt_transpose(Arena *arena, Block *block, uint32_t lanes, uint32_t to, Index to_index, int64_t to_stride,
                    const Expr *from, int64_t from_stride)
{
    append(arena, block,
           (Stmt){.kind = STMT_TRANSPOSE,
                  .lanes = lanes,
                  .buffer = to,
                  .index = to_index,
                  .stride = to_stride,
                  .value = from,
                  .from_stride = from_stride});
}

void stmt_product(Arena *arena, Block *block, const MatrixProduct *product, uint32_t to, Index to_index,
                  const Expr *left, const Expr *right)
{
    append(arena, block,
           (Stmt){.kind = STMT_PRODUCT,
                  .product = arena_copy(arena, product, sizeof *product),
                  .buffer = to,
                  .index = to_index,
                  .value = expr_word(arena, WORD_MUL, left->dtype, left, right, NULL)});
}

void stmt_tile_sums(Arena *arena, Block *block, const MatrixProduct *product, uint32_t sums, Index index,
                    const Expr *start)
{
    append(arena, block,
           (Stmt){.kind = STMT_PRODUCT,
                  .product = arena_copy(arena, product, sizeof *product),
                  .buffer = sums,
                  .index = index,
                  .value = start});
}

void stmt_tiles(Arena *arena, Block *block, const MatrixProduct *product)
{
    append(arena, block,
           (Stmt){.kind = STMT_TILES, .product = product ? arena_copy(arena, product, sizeof *product) : NULL});
}

void stmt_note(Arena *arena, Block *block, const char *note)
{
    append(arena, block, (Stmt){.kind = STMT_NOTE, .note = note});
}
