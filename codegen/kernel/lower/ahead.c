#include "kernel/lower/ahead.h"

#include "base/number.h"

#define MOST_PAGES 512 /* at once: processors keep the addresses of 1,024 and more */
#define FEW_PAGES  16  /* that are not worth a loop of their own */

static const Expr *load_in(const Expr *expr)
{
    const Expr *load = expr->kind == EXPR_LOAD ? expr : NULL;
    for (int i = 0; i < 3 && !load; i++)
        load = expr->arg[i] ? load_in(expr->arg[i]) : NULL;
    return load;
}

typedef struct Rows { /* in bytes */
    int64_t apart, bytes, element;
} Rows;

static bool see_rows(Lower *lower, const Ahead *ahead, Rows *rows)
{
    Block unused = {0}, *outer = lower_enter(lower, &unused);
    Index row = index_var(lower->arena, ahead->round);
    const Expr *load = load_in(ahead->element(ahead->context, row, index_constant(0)));
    int64_t factor;
    lower_leave(lower, outer);
    if (!load || !index_factor(load->index, ahead->round, &factor) || factor <= 0)
        return false;
    rows->element = (int64_t)dtype_bytes(load->dtype);
    rows->apart = factor * rows->element;
    rows->bytes = ahead->length * rows->element;
    return true;
}

static int64_t pages_of(const Rows *rows)
{
    return rows->bytes > PAGE_BYTES ? ceil_div(rows->bytes, PAGE_BYTES) : 1;
}

/* So many rounds' rows are fetched together that none lies past the end. */
static int64_t rounds_together(const Ahead *ahead, const Rows *rows)
{
    int64_t rounds = ahead->round->high + 1,
            bytes = rows->apart < PAGE_BYTES ? rows->apart : pages_of(rows) * PAGE_BYTES;
    int64_t together = least(rounds, most(1, MOST_PAGES * PAGE_BYTES / (bytes * ahead->streams)));
    while (together > 1 && rounds % together)
        together--;
    return together * bytes * ahead->streams < FEW_PAGES * PAGE_BYTES ? 0 : together;
}

static Block *enter_loop(Lower *lower, const Var *var, int64_t step)
{
    if (var->high == 0)
        return lower->block;
    return lower_enter(lower, &stmt_for(lower->arena, lower->block, var, 0, var->high + 1, step, LOOP_ROLLED)->body);
}

void lower_fetch_ahead(Lower *lower, const Ahead *ahead)
{
    Arena *arena = lower->arena;
    Rows rows;
    int64_t together = see_rows(lower, ahead, &rows) ? rounds_together(ahead, &rows) : 0;
    if (!together)
        return;
    const Var *stream = index_var_new(arena, "stream", 0, ahead->streams - 1);
    const Var *next = index_var_new(arena, "ahead", 0, together - 1);
    const Var *page = index_var_new(arena, "page", 0, pages_of(&rows) - 1);
    Index round = index_var(arena, ahead->round), row;
    Block *outer = lower->block;
    if (ahead->round->high > 0)
        lower_enter(lower, &stmt_if(arena, outer, index_mod(arena, round, together), 0, 1)->body);
    enter_loop(lower, stream, 1);
    enter_loop(lower, next, rows.apart < PAGE_BYTES ? PAGE_BYTES / rows.apart : 1);
    enter_loop(lower, page, 1);
    row = index_scale(arena, index_var(arena, stream), ahead->round->high + 1);
    row = index_add(arena, row, index_add(arena, round, index_var(arena, next)));
    Index along = index_scale(arena, index_var(arena, page), PAGE_BYTES / rows.element);
    const Expr *load = load_in(ahead->element(ahead->context, row, along));
    stmt_prefetch(arena, lower->block, load->buffer, load->index, 1);
    lower_leave(lower, outer);
}
