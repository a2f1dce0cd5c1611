/* gcc 12.2 mixes up such addresses at -O1 and -O2: of x[i * 4 + k], x[k * 4 + j] and x[j * 4 + i] in one nest its
 * choice of induction variables (ivopts) makes wrong ones. */
#include "c/crosswise.h"

typedef struct Way { /* a step that a buffer is read by, with a variable */
    uint32_t buffer;
    const Var *var;
    int64_t step;
} Way;

typedef struct Ways {
    Arena *arena;
    Way *way;
    uint32_t count, capacity;
    bool crosswise;
} Ways;

static void add_way(Ways *ways, uint32_t buffer, const Var *var, int64_t step)
{
    for (uint32_t i = 0; i < ways->count; i++)
        if (ways->way[i].buffer == buffer && ways->way[i].var == var) {
            ways->crosswise |= ways->way[i].step != step;
            return;
        }
    ARENA_PUSH(ways->arena, ways->way, ways->count, ways->capacity, ((Way){buffer, var, step}));
}

static void add_expr(Ways *ways, const Expr *expr)
{
    for (uint32_t i = 0; expr->kind == EXPR_LOAD && i < expr->index.count; i++)
        if (expr->index.term[i].atom->kind == ATOM_VAR)
            add_way(ways, expr->buffer, expr->index.term[i].atom->var, expr->index.term[i].factor);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            add_expr(ways, expr->arg[i]);
}

static void add_block(Ways *ways, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt && !ways->crosswise; stmt = stmt->next) {
        if (stmt->value)
            add_expr(ways, stmt->value);
        add_block(ways, &stmt->body);
        add_block(ways, &stmt->other);
    }
}

bool crosswise_reads(const Kernel *kernel, Arena *arena)
{
    Ways ways = {.arena = arena};
    add_block(&ways, &kernel->body);
    return ways.crosswise;
}
