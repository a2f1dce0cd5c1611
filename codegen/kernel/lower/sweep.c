/* Drops from a lowered kernel what nothing reads: locals whose value an expression has lost again (of x == x only its
 * truth is left), then buffers that only those have touched; all of it when nothing is stored.
 * Keeps: the order of statements and of buffers. */
#include "kernel/lower/lower.h"

typedef struct Sweep {
    Arena *arena;
    bool *used;            /* per local */
    bool *loaded, *stored; /* per buffer */
    uint32_t *number;      /* per buffer: its new one */
} Sweep;

/* What is used */

static void see_index(Sweep *sweep, Index index);

static void see_expr(Sweep *sweep, const Expr *expr)
{
    if (expr->kind == EXPR_LOCAL)
        sweep->used[expr->local->id] = true;
    if (expr->kind == EXPR_LOAD)
        sweep->loaded[expr->buffer] = true;
    see_index(sweep, expr->index);
    see_index(sweep, expr->index2);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            see_expr(sweep, expr->arg[i]);
}

static void see_index(Sweep *sweep, Index index)
{
    for (uint32_t i = 0; i < index.count; i++) {
        const Atom *atom = index.term[i].atom;
        if (atom->kind == ATOM_DATA)
            see_expr(sweep, atom->data);
        else if (atom->kind != ATOM_VAR)
            see_index(sweep, atom->index);
    }
}

/* That a sum reads itself is no use of it. */
static void see_value(Sweep *sweep, const Stmt *stmt)
{
    bool *self = stmt->kind == STMT_ASSIGN ? &sweep->used[stmt->local->id] : NULL;
    bool before = self && *self;
    see_expr(sweep, stmt->value);
    if (self)
        *self = before;
}

static void see_block(Sweep *sweep, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        const Index index[] = {stmt->index, stmt->index2, stmt->low, stmt->high, stmt->low_least, stmt->high_most};
        for (uint32_t i = 0; i < sizeof index / sizeof *index; i++)
            see_index(sweep, index[i]);
        if (stmt->value)
            see_value(sweep, stmt);
        if (stmt->kind == STMT_MEET) /* it reads what it changes */
            sweep->used[stmt->local->id] = true;
        if (stmt_stores(stmt))
            sweep->stored[stmt->buffer] = true;
        if (stmt->kind == STMT_PREFETCH)
            sweep->loaded[stmt->buffer] = true;
        see_block(sweep, &stmt->body);
        see_block(sweep, &stmt->other);
    }
}

/* Does it only give a local a value that nothing reads, or nothing at all? */
static bool is_dead(const Sweep *sweep, const Stmt *stmt)
{
    if (stmt->kind == STMT_LOCAL || stmt->kind == STMT_ASSIGN || stmt->kind == STMT_REDUCE)
        return !sweep->used[stmt->local->id];
    bool around = stmt->kind == STMT_IF || stmt->kind == STMT_FOR || stmt->kind == STMT_LANES;
    return around && !stmt->body.first && !stmt->other.first;
}

static bool drop_locals(const Sweep *sweep, Block *block)
{
    bool dropped = false;
    Stmt *last = NULL;
    for (Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        dropped |= drop_locals(sweep, &stmt->body);
        dropped |= drop_locals(sweep, &stmt->other);
        if (is_dead(sweep, stmt)) {
            *(last ? &last->next : &block->first) = stmt->next;
            dropped = true;
        } else
            last = stmt;
    }
    block->last = last;
    return dropped;
}

/* Numbers of buffers */

static const Expr *renumber_expr(const Sweep *sweep, const Expr *expr);

static Index renumber_index(const Sweep *sweep, Index index)
{
    Term *term = ARENA_ARRAY(sweep->arena, Term, index.count);
    for (uint32_t i = 0; i < index.count; i++) {
        Atom atom = *index.term[i].atom;
        if (atom.kind == ATOM_DATA)
            atom.data = renumber_expr(sweep, atom.data);
        else if (atom.kind != ATOM_VAR)
            atom.index = renumber_index(sweep, atom.index);
        term[i] = (Term){index.term[i].factor, arena_copy(sweep->arena, &atom, sizeof atom)};
    }
    index.term = term;
    return index;
}

static const Expr *renumber_expr(const Sweep *sweep, const Expr *expr)
{
    Expr copy = *expr;
    if (copy.kind == EXPR_LOAD)
        copy.buffer = sweep->number[copy.buffer];
    copy.index = renumber_index(sweep, copy.index);
    copy.index2 = renumber_index(sweep, copy.index2);
    for (int i = 0; i < 3; i++)
        if (copy.arg[i])
            copy.arg[i] = renumber_expr(sweep, copy.arg[i]);
    return arena_copy(sweep->arena, &copy, sizeof copy);
}

static void renumber_block(const Sweep *sweep, Block *block)
{
    for (Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        Index *index[] = {&stmt->index, &stmt->index2, &stmt->low, &stmt->high, &stmt->low_least, &stmt->high_most};
        for (uint32_t i = 0; i < sizeof index / sizeof *index; i++)
            *index[i] = renumber_index(sweep, *index[i]);
        if (stmt->value)
            stmt->value = renumber_expr(sweep, stmt->value);
        if (stmt_stores(stmt) || stmt->kind == STMT_PREFETCH)
            stmt->buffer = sweep->number[stmt->buffer];
        renumber_block(sweep, &stmt->body);
        renumber_block(sweep, &stmt->other);
    }
}

void kernel_sweep(Lower *lower)
{
    Kernel *kernel = lower->kernel;
    Sweep sweep = {.arena = lower->arena};
    do {
        sweep.loaded = ARENA_ARRAY(lower->arena, bool, kernel->buffer_count);
        sweep.stored = ARENA_ARRAY(lower->arena, bool, kernel->buffer_count);
        sweep.used = ARENA_ARRAY(lower->arena, bool, lower->name_count + 1);
        see_block(&sweep, &kernel->body);
    } while (drop_locals(&sweep, &kernel->body));

    bool stores = false;
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        stores |= sweep.stored[b] && lower->storage->at[kernel->buffer[b].storage].value != NONE;
    if (!stores) { /* its results are dead */
        kernel->body = (Block){0};
        kernel->buffer_count = 0;
    }
    uint32_t kept = 0;
    sweep.number = ARENA_ARRAY(lower->arena, uint32_t, kernel->buffer_count);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        sweep.number[b] = kept;
        kernel->buffer[b].read = sweep.loaded[b];
        kernel->buffer[b].written = sweep.stored[b];
        if (sweep.loaded[b] || sweep.stored[b])
            kernel->buffer[kept++] = kernel->buffer[b];
    }
    if (kept < kernel->buffer_count)
        renumber_block(&sweep, &kernel->body);
    kernel->buffer_count = kept;
}
