/* How much of a buffer the loops of a kernel touch.  Where data say which elements that are, as of the slice that a
 * round takes of a tape, there are no more than loads and stores; else it may be all of it. */
#include "base/number.h"
#include "kernel/kernel.h"

#define DEEPEST 64

typedef struct Touching {
    uint32_t buffer;
    const Stmt *loop[DEEPEST]; /* those around */
    uint32_t loops;
    int64_t read, written; /* elements at most */
    bool whole;            /* some are where nothing but loops says */
} Touching;

static bool reads_local(const Expr *expr)
{
    bool reads = expr->kind == EXPR_LOCAL;
    for (int i = 0; i < 3 && !reads; i++)
        reads = expr->arg[i] && reads_local(expr->arg[i]);
    return reads;
}

/* Does it hang on what statements before have computed, in a round of whatever loop? */
static bool index_reads_local(Index index)
{
    bool reads = false;
    for (uint32_t i = 0; i < index.count && !reads; i++) {
        const Atom *atom = index.term[i].atom;
        reads = atom->kind == ATOM_DATA ? reads_local(atom->data)
                                        : atom->kind != ATOM_VAR && index_reads_local(atom->index);
    }
    return reads;
}

/* Elements at an index, in all rounds of the loops that move it. */
static int64_t count_at(Touching *t, Index index)
{
    bool local = index_reads_local(index);
    int64_t count = 1;
    t->whole |= !index_reads_data(index);
    for (uint32_t i = 0; i < t->loops; i++) {
        const Var *var = t->loop[i]->var;
        int64_t step = t->loop[i]->kind == STMT_FOR ? t->loop[i]->step : 1;
        if (local || index_uses(index, var))
            count = number_times(count, ceil_div(var->high - var->low + 1, step));
    }
    return count;
}

static void see_load(void *context, const Expr *load)
{
    Touching *t = context;
    if (load->buffer == t->buffer)
        t->read = number_plus(t->read, count_at(t, load->index));
}

static bool has_other_loads(const Expr *expr)
{
    bool has = expr->kind == EXPR_BUNDLE;
    for (int i = 0; i < 3 && !has; i++)
        has = expr->arg[i] && has_other_loads(expr->arg[i]);
    return has;
}

/* Recurses over the nesting. */
static void see_block(Touching *t, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt && !t->whole; stmt = stmt->next) {
        bool loop = stmt->kind == STMT_FOR || stmt->kind == STMT_LANES;
        bool several = stmt->kind == STMT_TRANSPOSE || stmt->kind == STMT_PRODUCT || stmt->together || stmt->parts;
        t->whole |= several || (stmt->value && has_other_loads(stmt->value)) || (loop && t->loops == DEEPEST);
        if (stmt->value)
            expr_loads(stmt->value, see_load, t);
        index_loads(stmt->index, see_load, t);
        if (stmt->kind == STMT_STORE && stmt->buffer == t->buffer)
            t->written = number_plus(t->written, count_at(t, stmt->index));
        if (loop && !t->whole)
            t->loop[t->loops++] = stmt;
        see_block(t, &stmt->body);
        see_block(t, &stmt->other);
        t->loops -= loop && !t->whole;
    }
}

int64_t kernel_buffer_bytes(const Graph *graph, const Storage *storage, const KernelBuffer *buffer)
{
    return buffer->part == NONE ? storage->bytes : type_bytes(value_type(graph, buffer->part));
}

int64_t kernel_touched(const Graph *graph, const Storage *storage, const Kernel *kernel, uint32_t buffer)
{
    const KernelBuffer *seen = &kernel->buffer[buffer];
    int64_t bytes = kernel_buffer_bytes(graph, storage, seen), element = dtype_bytes(seen->dtype);
    Touching t = {.buffer = buffer};
    see_block(&t, &kernel->body);
    if (t.whole)
        return number_times(bytes, seen->read + seen->written);
    return number_plus(least(number_times(t.read, element), seen->read ? bytes : 0),
                       least(number_times(t.written, element), seen->written ? bytes : 0));
}
