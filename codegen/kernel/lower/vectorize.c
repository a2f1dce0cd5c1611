/* What may be computed for several values of a loop's variable at once: f32, and masks, at addresses that go evenly
 * with it; what is widened to f32 where it is loaded, and becomes an integer where it is stored. */
#include "kernel/lower/lower.h"
#include "passes/widen.h"

static bool load_vectorizes(const Expr *load, const Var *var)
{
    int64_t factor;
    if (!index_factor(load->index, var, &factor)) /* other strides than 0 and 1 become gathers */
        return false;
    return load->dtype == DT_F32 || load->dtype == DT_BOOL;
}

/* Elements of 8 or 16 bits that become f32 as they are loaded: those that follow one another, or parts of words. */
static bool widening_vectorizes(const Expr *load, const Var *var)
{
    int64_t factor;
    return load->kind == EXPR_LOAD && widen_is_narrow(load->dtype) && index_factor(load->index, var, &factor) &&
           (factor == 1 || (load->spread && factor * dtype_bytes(load->dtype) == 4));
}

/* Halves of bytes that follow one another, or are parts of words */
static bool halving_vectorizes(const Expr *halves, const Var *var)
{
    int64_t factor;
    bool high;
    const Expr *load = expr_halved(halves, &high);
    return load && index_factor(load->index, var, &factor) && (factor == 1 || (load->spread && factor == 4));
}

static bool word_vectorizes(const Expr *word, const Var *var)
{
    for (uint32_t i = 0; i < 3; i++) {
        const Expr *arg = word->arg[i];
        bool mask = arg && arg->dtype == DT_BOOL;
        if (arg && (!expr_vectorizes(arg, var) || (mask ? !word_takes_mask(word->word, i) : arg->dtype != DT_F32)))
            return false;
    }
    return word->dtype == DT_F32 || word->dtype == DT_BOOL;
}

/* The f32 that a store makes integers of, those of 64 bits from 32; NULL. */
static const Expr *stored_integers(const Stmt *stmt)
{
    const Expr *value = stmt->value;
    if (stmt->kind != STMT_STORE || value->kind != EXPR_CAST)
        return NULL;
    if (value->dtype == DT_I64 && value->arg[0]->kind == EXPR_CAST && value->arg[0]->dtype == DT_I32)
        value = value->arg[0];
    bool narrow = dtype_is_int(value->dtype) && (value->dtype == DT_I32 || widen_is_narrow(value->dtype));
    return narrow && value->arg[0]->dtype == DT_F32 ? value->arg[0] : NULL;
}

bool stmt_vectorizes(const Stmt *store, const Var *var, bool any_step)
{
    int64_t factor;
    if (!index_factor(store->index, var, &factor))
        return false;
    DType dtype = store->value->dtype;
    return dtype == DT_F32 ? factor == 1 || any_step
                           : (dtype == DT_BOOL || dtype_is_half(dtype) || stored_integers(store)) && factor == 1;
}

/* Does it read what has a value for each lane? */
static bool has_lanes(const Expr *expr)
{
    if (expr->kind == EXPR_LOCAL && expr->local->lanes)
        return true;
    for (int i = 0; i < 3; i++)
        if (expr->arg[i] && has_lanes(expr->arg[i]))
            return true;
    return false;
}

/* One number behind another, from a multiple of 4 on, where vectors begin at multiples of 4. */
static bool random_vectorizes(const Expr *random, const Var *var)
{
    int64_t factor;
    bool whole = random->index.constant % 4 == 0 && var->low % 4 == 0;
    for (uint32_t i = 0; i < random->index.count; i++) {
        const Atom *atom = random->index.term[i].atom;
        whole &= (atom->kind == ATOM_VAR && atom->var == var) || random->index.term[i].factor % 4 == 0;
    }
    return whole && random->dtype == DT_F32 && index_factor(random->index, var, &factor) && factor == 1 &&
           !expr_uses(random->arg[0], var) && !has_lanes(random->arg[0]);
}

static bool is_vector(const Expr *expr, const Var *var)
{
    return expr_uses(expr, var) || has_lanes(expr);
}

/* Of f16 and bf16, which are rounded f32 in a vector: elements that follow one another, and what is cast. */
static bool half_vectorizes(const Expr *expr, const Var *var)
{
    if (!is_vector(expr, var))
        return false;
    if (expr->kind == EXPR_CAST)
        return (expr->arg[0]->dtype == DT_F32 || dtype_is_half(expr->arg[0]->dtype)) &&
               expr_vectorizes(expr->arg[0], var);
    int64_t factor;
    return expr->kind == EXPR_LOCAL ||
           (expr->kind == EXPR_LOAD && index_factor(expr->index, var, &factor) && factor == 1);
}

/* Narrow integers that f32 is cut to, which is f32 again at once */
static bool cutting_vectorizes(const Expr *expr, const Var *var)
{
    return expr->kind == EXPR_CAST && dtype_is_int(expr->dtype) && widen_is_narrow(expr->dtype) &&
           expr->arg[0]->dtype == DT_F32 && expr_vectorizes(expr->arg[0], var);
}

bool expr_vectorizes(const Expr *expr, const Var *var)
{
    if (dtype_is_half(expr->dtype))
        return half_vectorizes(expr, var);
    switch (expr->kind) {
    case EXPR_RANDOM:
        return expr_uses(expr, var) ? random_vectorizes(expr, var) : !has_lanes(expr);
    case EXPR_NUMBER:
    case EXPR_LOCAL:
        return expr->dtype == DT_F32 || expr->dtype == DT_BOOL;
    case EXPR_LOAD:
        return !expr_uses(expr, var) || load_vectorizes(expr, var);
    case EXPR_WORD:
        return word_vectorizes(expr, var) || (!expr_uses(expr, var) && !has_lanes(expr));
    case EXPR_CAST:
        if (expr->dtype == DT_F32 && expr->arg[0]->dtype == DT_BOOL && expr_uses(expr, var))
            return expr_vectorizes(expr->arg[0], var);
        return (!expr_uses(expr, var) && !has_lanes(expr)) ||
               (expr->dtype == DT_F32 &&
                (widening_vectorizes(expr->arg[0], var) || cutting_vectorizes(expr->arg[0], var) ||
                 halving_vectorizes(expr->arg[0], var) ||
                 (dtype_is_half(expr->arg[0]->dtype) && half_vectorizes(expr->arg[0], var))));
    case EXPR_WITHIN:
        if (expr->dtype == DT_F32 && !index_uses(expr->index, var))
            return expr_vectorizes(expr->arg[0], var) && expr_vectorizes(expr->arg[1], var);
        return !expr_uses(expr, var) && !has_lanes(expr);
    default: /* positions: only where they are the same for all lanes */
        return !expr_uses(expr, var) && !has_lanes(expr);
    }
}

bool stmt_value_vectorizes(const Stmt *stmt, const Var *var)
{
    const Expr *integers = stored_integers(stmt);
    return !stmt->value || expr_vectorizes(integers ? integers : stmt->value, var);
}

bool expr_is_expensive(const Expr *expr)
{
    bool expensive = expr->kind == EXPR_WORD && word_is_expensive(expr->word);
    for (uint32_t i = 0; i < 3 && !expensive; i++)
        expensive = expr->arg[i] && expr_is_expensive(expr->arg[i]);
    return expensive;
}

/* What takes long is computed in vectors even if these are then stored element by element. */
static bool is_expensive(const Block *body)
{
    bool expensive = false;
    for (const Stmt *stmt = body->first; stmt && !expensive; stmt = stmt->next)
        expensive = stmt->value && expr_is_expensive(stmt->value);
    return expensive;
}

bool block_vectorizes(const Block *body, const Var *var)
{
    bool any_step = is_expensive(body);
    for (const Stmt *stmt = body->first; stmt; stmt = stmt->next) {
        if (!stmt_value_vectorizes(stmt, var))
            return false;
        if (stmt->kind == STMT_STORE && !stmt_vectorizes(stmt, var, any_step))
            return false;
        if (stmt->kind != STMT_STORE && stmt->kind != STMT_LOCAL)
            return false;
    }
    return true;
}
