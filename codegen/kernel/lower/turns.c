/* Elements of several sources by turns, as pixels that were channels, or each of one several times, as of an image made
 * larger, or those of a stack behind each other: of each source a vector, interleaved where they are stored. */
#include "kernel/lower/nest.h"

#define MOST_TOGETHER 8 /* vectors that are interleaved where they are stored */

typedef struct Turns {
    const Var *each;      /* rounds, of which every source gives an element */
    int64_t count, first; /* sources; elements before the first round */
    bool rounds;          /* the loop is one of rounds already, a store for each source */
    Stmt store[MOST_TOGETHER];
} Turns;

typedef struct Steps {
    const Var *each;
    bool near;
} Steps;

/* Farther ones are loaded one by one. */
static void check_step(void *context, const Expr *load)
{
    Steps *steps = context;
    int64_t step;
    steps->near &= index_factor(load->index, steps->each, &step) && step >= 0 && step <= (load->spread ? 4 : 1);
}

static bool loads_vectors(const Expr *value, const Var *each)
{
    Steps steps = {each, true};
    expr_loads(value, check_step, &steps);
    return steps.near;
}

static bool stores_together(int64_t count)
{
    return count >= 2 && count <= MOST_TOGETHER && count != 5 && count != 7;
}

static bool see_turns(const Lower *lower, const Var *var, int64_t extent, const Block *body, Turns *turns)
{
    const Stmt *store = body->first;
    int64_t factor;
    *turns = (Turns){0};
    if (lower->target->dialect != DIALECT_VECTOR || lower->target->small || lower->target->lanes < 4 || !store ||
        store->next || store->kind != STMT_STORE || store->value->dtype != DT_F32 ||
        !index_factor(store->index, var, &factor) || factor != 1)
        return false;
    turns->count = lower_cut(body, var, &turns->first);
    if (!stores_together(turns->count) || (extent - turns->first) / turns->count < 4)
        return false;
    turns->each = index_var_new(lower->arena, var->name, 0, (extent - turns->first) / turns->count - 1);
    Index round = index_scale(lower->arena, index_var(lower->arena, turns->each), turns->count);
    bool vectorize = true;
    for (int64_t j = 0; j < turns->count && vectorize; j++) {
        Index at = index_add(lower->arena, round, index_constant(turns->first + j));
        turns->store[j] = *block_substitute(lower->arena, body, var, at).first;
        vectorize =
            stmt_value_vectorizes(&turns->store[j], turns->each) && loads_vectors(turns->store[j].value, turns->each);
    }
    return vectorize && index_factor(turns->store[0].index, turns->each, &factor) && factor == turns->count;
}

/* Stores of neighbours, as many as the next of each is apart. */
static bool see_rounds(const Lower *lower, const Var *var, int64_t extent, const Block *body, Turns *turns)
{
    int64_t step;
    *turns = (Turns){.each = var, .rounds = true};
    for (const Stmt *stmt = body->first; stmt; stmt = stmt->next) {
        int64_t j = turns->count++;
        if (j == MOST_TOGETHER || stmt->kind != STMT_STORE || stmt->value->dtype != DT_F32 ||
            !stmt_value_vectorizes(stmt, var) || !loads_vectors(stmt->value, var))
            return false;
        turns->store[j] = *stmt;
        Index next = index_add(lower->arena, turns->store[0].index, index_constant(j));
        if (stmt->buffer != turns->store[0].buffer || !index_eq(stmt->index, next))
            return false;
    }
    return lower->target->dialect == DIALECT_VECTOR && !lower->target->small && lower->target->lanes >= 4 &&
           stores_together(turns->count) && extent >= 4 && index_factor(turns->store[0].index, var, &step) &&
           step == turns->count;
}

static void store_turns(Lower *lower, const Turns *turns, int64_t begin, int64_t end, int64_t lanes, LoopKind kind)
{
    Arena *arena = lower->arena;
    const Local *registers = lower_registers(lower, "v", DT_F32, true, 1, turns->count);
    Block body = {0};
    stmt_local(arena, &body, registers, NULL);
    for (int64_t j = 0; j < turns->count; j++)
        stmt_assign(arena, &body, registers, index_constant(0), index_constant(j), turns->store[j].value);
    stmt_store_together(arena, &body, turns->store[0].buffer, turns->store[0].index, registers, (uint32_t)turns->count);
    lower_vector_rounds(lower, turns->each, begin, end, lanes, kind, &body);
}

/* Elements [begin, end) one by one. */
static void plain_loop(Lower *lower, const Var *var, int64_t begin, int64_t end, LoopKind kind, const Block *body)
{
    Arena *arena = lower->arena;
    const Var *rest = index_var_new(arena, var->name, begin, end - 1);
    Index at = end - begin > 1 ? index_var(arena, rest) : index_constant(begin);
    if (begin >= end)
        return;
    Block each = block_substitute(arena, body, var, at);
    if (end - begin > 1)
        stmt_for(arena, lower->block, rest, begin, end, 1, kind)->body = each;
    else
        block_append(lower->block, each);
}

bool lower_turns(Lower *lower, const Var *var, int64_t extent, LoopKind kind, const Block *body)
{
    Turns turns;
    int64_t lanes = lower->target->lanes, done = 0;
    if (!see_rounds(lower, var, extent, body, &turns) && !see_turns(lower, var, extent, body, &turns))
        return false;
    int64_t rounds = turns.each->high + 1;
    plain_loop(lower, var, 0, turns.first, kind, body);
    for (; lanes; lanes = lower_rest_lanes(lower, lanes, rounds - done)) {
        int64_t end = done + (rounds - done) / lanes * lanes;
        if (done < end)
            store_turns(lower, &turns, done, end, lanes, kind);
        done = end;
    }
    plain_loop(lower, var, turns.rounds ? done : turns.first + done * turns.count, extent, kind, body);
    return true;
}

void lower_join_turns(Lower *lower, const Var **loop, uint32_t *loops, Block *body)
{
    Arena *arena = lower->arena;
    if (*loops < 2)
        return;
    const Var **outer = &loop[*loops - 2], *row = loop[*loops - 1];
    int64_t count = row->high + 1, extent = ((*outer)->high + 1) * count;
    const Var *joint = index_var_new(arena, (*outer)->name, 0, extent - 1);
    Index at = index_var(arena, joint);
    Block joined = block_substitute(arena, body, row, index_mod(arena, at, count));
    joined = block_substitute(arena, &joined, *outer, index_div(arena, at, count));
    Turns turns;
    if (count > 1 && count <= MOST_TOGETHER && see_turns(lower, joint, extent, &joined, &turns)) {
        *outer = joint;
        *body = joined;
        --*loops;
    }
}
