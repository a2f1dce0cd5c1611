/* Sums of which all terms but one are 0: of the columns of a row, what a loss takes of the one that is the label. */
#include "kernel/lower/lower.h"

/* In an integer that holds all columns: where their numbers come again, so does the label. */
static bool is_column(const Expr *expr, const Var *column)
{
    int64_t factor;
    bool narrow = dtype_bytes(expr->dtype) < 4 && column->high >> (8 * dtype_bytes(expr->dtype) - 1) != 0;
    return expr->kind == EXPR_INDEX && !narrow && expr->index.count == 1 && expr->index.constant == 0 &&
           index_factor(expr->index, column, &factor) && factor == 1;
}

static bool has_locals(const Expr *expr)
{
    bool some = expr->kind == EXPR_LOCAL;
    for (int i = 0; i < 3; i++)
        some |= expr->arg[i] && has_locals(expr->arg[i]);
    return some;
}

/* What the column is compared with: an integer that is the same for all; NULL. */
static const Expr *label_of(const Expr *condition, const Var *column)
{
    if (condition->kind != EXPR_WORD || condition->word != WORD_EQ)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const Expr *label = condition->arg[i];
        if (is_column(condition->arg[1 - i], column) && dtype_is_int(label->dtype) && !expr_uses(label, column) &&
            !has_locals(label))
            return label;
    }
    return NULL;
}

static const Expr *value_of(const Block *block, const Local *local)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        if (stmt->kind == STMT_LOCAL && stmt->local == local)
            return stmt->value;
    return NULL;
}

/* The label outside of which the value is 0; NULL. */
static const Expr *find_label(const Block *block, const Expr *value, const Var *column)
{
    while (value) {
        if (value->kind == EXPR_LOCAL)
            value = value_of(block, value->local);
        else if (value->kind == EXPR_CAST || (value->kind == EXPR_WORD && value->word == WORD_NEG))
            value = value->arg[0];
        else
            break;
    }
    bool selects = value && value->kind == EXPR_WORD && value->word == WORD_SELECT &&
                   value->arg[2]->kind == EXPR_NUMBER && value->arg[2]->number == 0;
    return selects ? label_of(value->arg[0], column) : NULL;
}

bool lower_pick(Lower *lower, const Block *block, const Expr *value, const Var *column, Index *at)
{
    Arena *arena = lower->arena;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        if (stmt->kind != STMT_LOCAL) /* it is to happen in each column */
            return false;
    const Expr *label = find_label(block, value, column);
    if (!label)
        return false;
    const Expr *inside = expr_word(arena, WORD_MAX, DT_I64, expr_cast(arena, DT_I64, label),
                                   expr_number(arena, DT_I64, (double)column->low), NULL);
    inside = expr_word(arena, WORD_MIN, DT_I64, inside, expr_number(arena, DT_I64, (double)column->high), NULL);
    const Local *pick = lower_local(lower, "pick", DT_I64, false);
    stmt_local(arena, lower->block, pick, inside);
    *at = index_data(arena, expr_local(arena, pick), column->low, column->high);
    return true;
}
