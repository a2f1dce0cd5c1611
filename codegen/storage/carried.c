/* Registers that a round reads must have been filled in the same round, for certain, or by none of them (carried.h). */
#include "storage/carried.h"

typedef struct Slot { /* a register that the loop fills */
    const Local *local;
    int64_t i, j;
} Slot;

typedef struct Walk {
    Arena *arena;
    Slot *slot;
    uint32_t count, capacity;
    bool *made; /* of each: in this round, whatever way it has taken */
    bool carries;
} Walk;

/* What is filled */

static bool is_constant(const Index *index)
{
    return index->count == 0;
}

static uint32_t find(const Walk *walk, const Local *local, const Index *i, const Index *j)
{
    for (uint32_t s = 0; s < walk->count; s++)
        if (walk->slot[s].local == local && walk->slot[s].i == i->constant && walk->slot[s].j == j->constant)
            return s;
    return NONE;
}

static void list_filled(Walk *walk, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool fills = stmt->kind == STMT_ASSIGN || stmt->kind == STMT_REDUCE;
        if (fills && !(is_constant(&stmt->index) && is_constant(&stmt->index2)))
            walk->carries = true;
        else if (fills && find(walk, stmt->local, &stmt->index, &stmt->index2) == NONE)
            ARENA_PUSH(walk->arena, walk->slot, walk->count, walk->capacity,
                       ((Slot){stmt->local, stmt->index.constant, stmt->index2.constant}));
        list_filled(walk, &stmt->body);
        list_filled(walk, &stmt->other);
    }
}

/* What is read */

static void read_expr(Walk *walk, const Expr *expr);

static void read_index(Walk *walk, const Index *index)
{
    for (uint32_t i = 0; i < index->count; i++) {
        const Atom *atom = index->term[i].atom;
        if (atom->kind == ATOM_DATA)
            read_expr(walk, atom->data);
        else if (atom->kind != ATOM_VAR)
            read_index(walk, &atom->index);
    }
}

static void read_slot(Walk *walk, const Local *local, const Index *i, const Index *j)
{
    uint32_t slot = find(walk, local, i, j);
    walk->carries |= !is_constant(i) || !is_constant(j) || (slot != NONE && !walk->made[slot]);
}

/* Recurses over the nesting of the expression. */
static void read_expr(Walk *walk, const Expr *expr)
{
    if (expr->kind == EXPR_LOCAL)
        read_slot(walk, expr->local, &expr->index, &expr->index2);
    read_index(walk, &expr->index);
    for (int i = 0; i < 3; i++)
        if (expr->arg[i])
            read_expr(walk, expr->arg[i]);
}

static void read_all_of(Walk *walk, const Local *local)
{
    for (uint32_t s = 0; s < walk->count; s++)
        walk->carries |= walk->slot[s].local == local && !walk->made[s];
}

static void read_operands(Walk *walk, const Stmt *stmt)
{
    const Index *index[] = {&stmt->low, &stmt->high, &stmt->low_least, &stmt->high_most, &stmt->index, &stmt->index2};
    for (uint32_t i = 0; i < sizeof index / sizeof *index; i++)
        read_index(walk, index[i]);
    if (stmt->value)
        read_expr(walk, stmt->value);
    if (stmt->together && stmt->value->kind == EXPR_LOCAL)
        read_all_of(walk, stmt->value->local);
}

/* One round */

static void make_all_of(Walk *walk, const Local *local)
{
    for (uint32_t s = 0; s < walk->count; s++)
        walk->made[s] |= walk->slot[s].local == local;
}

static void walk_block(Walk *walk, const Block *block);

/* Leaves `made` as it was, and gives what it is behind the block. */
static bool *made_behind(Walk *walk, const Block *block)
{
    bool *before = walk->made;
    walk->made = arena_copy(walk->arena, before, walk->count + 1);
    walk_block(walk, block);
    bool *behind = walk->made;
    walk->made = before;
    return behind;
}

static void walk_branches(Walk *walk, const Stmt *stmt)
{
    const bool *body = made_behind(walk, &stmt->body), *other = made_behind(walk, &stmt->other);
    for (uint32_t s = 0; s < walk->count; s++)
        walk->made[s] = body[s] && other[s];
}

static void walk_loop(Walk *walk, const Stmt *stmt)
{
    bool some = !stmt->low.count && !stmt->high.count && !stmt->clamp_low && !stmt->clamp_high &&
                stmt->low.constant < stmt->high.constant;
    bool *behind = made_behind(walk, &stmt->body);
    walk->made = some ? behind : walk->made;
}

static void walk_stmt(Walk *walk, const Stmt *stmt)
{
    read_operands(walk, stmt);
    switch (stmt->kind) {
    case STMT_FOR:
        walk_loop(walk, stmt);
        break;
    case STMT_LANES:
        walk_block(walk, &stmt->body);
        break;
    case STMT_IF:
        walk_branches(walk, stmt);
        break;
    case STMT_LOCAL:
        make_all_of(walk, stmt->local);
        break;
    case STMT_REDUCE:
        read_slot(walk, stmt->local, &stmt->index, &stmt->index2);
        break;
    case STMT_ASSIGN: {
        uint32_t slot = find(walk, stmt->local, &stmt->index, &stmt->index2);
        if (slot != NONE)
            walk->made[slot] = true;
        break;
    }
    case STMT_PRODUCT: /* tile registers hold sums, too */
    case STMT_TILES:
    case STMT_MEET:
    case STMT_BARRIER:
        walk->carries = true;
        break;
    case STMT_STORE:
    case STMT_NOTE:
    case STMT_PREFETCH:
    case STMT_TRANSPOSE:
        break;
    }
}

/* Recurses over the nesting of loops. */
static void walk_block(Walk *walk, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt && !walk->carries; stmt = stmt->next)
        walk_stmt(walk, stmt);
}

/* Around the loop */

static bool names_position(const Stmt *stmt)
{
    return stmt->kind == STMT_NOTE || (stmt->kind == STMT_LOCAL && stmt->value && stmt->value->kind == EXPR_INDEX);
}

static bool prepares(const Stmt *stmt)
{
    for (const Stmt *inner = stmt->body.first; inner; inner = inner->next)
        if (!prepares(inner))
            return false;
    return stmt->kind == STMT_NOTE || stmt->kind == STMT_LOCAL || stmt->kind == STMT_ASSIGN || stmt->kind == STMT_LANES;
}

/* Is what a round makes read by others, or by what stands before the loop? */
static bool is_carried(const Block *block, const Stmt *holder, Arena *arena)
{
    Walk walk = {.arena = arena};
    list_filled(&walk, &holder->body);
    walk.made = ARENA_ARRAY(arena, bool, walk.count + 1);
    for (const Stmt *stmt = block->first; stmt && stmt != holder; stmt = stmt->next) {
        read_operands(&walk, stmt);
        for (const Stmt *inner = stmt->body.first; inner; inner = inner->next)
            read_operands(&walk, inner);
    }
    walk_block(&walk, &holder->body);
    return walk.carries;
}

/* The loop, or lanes with the loop among what they do; NULL where other statements are more than preparations. */
static const Stmt *only_holder(const Block *block, bool *registers)
{
    const Stmt *holder = NULL;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool names = names_position(stmt), ready = prepares(stmt);
        if (ready ? !names && holder : holder || (stmt->kind != STMT_FOR && stmt->kind != STMT_LANES))
            return NULL;
        *registers |= ready && !names;
        holder = ready ? holder : stmt;
    }
    return holder;
}

/* Recurses over lanes, which are not one inside another. */
const Stmt *carried_only_loop(const Block *block, Arena *arena)
{
    bool registers = false;
    const Stmt *holder = only_holder(block, &registers), *loop = holder;
    if (holder && holder->kind == STMT_LANES)
        loop = carried_only_loop(&holder->body, arena);
    return loop && registers && is_carried(block, holder, arena) ? NULL : loop;
}
