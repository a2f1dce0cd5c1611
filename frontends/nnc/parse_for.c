/* `for`: what takes an item, what is gone through, and what is carried. */
#include "frontends/nnc/parse.h"

/* i, (c, s), (i, (c, s)) */
static bool parse_pattern(Parser *p, AstPattern *pattern, uint32_t depth)
{
    LIST(AstPattern) list;

    LIST_START(list);
    pattern->place = p->token.place;
    if (p->token.kind != T_LPAREN || depth == CONST_DEPTH_MOST)
        return (pattern->name = parse_name(p, "the name of the counter, or names in parentheses")) != NULL;
    p->paren++;
    parse_advance(p);
    do {
        AstPattern part = {0};
        if (!parse_pattern(p, &part, depth + 1))
            return false;
        LIST_PUSH(p, list, part);
    } while (parse_accept(p, T_COMMA));
    p->paren--;
    pattern->part = LIST_KEEP(p, list);
    pattern->count = list.count;
    return parse_expect(p, T_RPAREN, "',' or ')'");
}

/* for i in 0..12 carry x, y { ... }; for (c, s) in LIST { ... } */
bool parse_for(Parser *p, AstStmt *stmt)
{
    LIST(AstTarget) list;
    AstPattern *each = ARENA_NEW(p->arena, AstPattern);

    LIST_START(list);
    stmt->kind = AST_FOR;
    stmt->each = each;
    parse_advance(p);
    if (!parse_pattern(p, each, 0) || !parse_expect(p, T_IN, "'in'"))
        return false;
    stmt->from = parse_expr(p);
    if (parse_accept(p, T_RANGE))
        stmt->to = parse_expr(p);
    else if (p->token.kind != T_CARRY && p->token.kind != T_LBRACE)
        return parse_unexpected(p, "'..', 'carry' or '{'");
    if (parse_accept(p, T_CARRY))
        do {
            AstTarget target = {.name = parse_name(p, "a name to carry")};
            if (!target.name)
                return false;
            LIST_PUSH(p, list, target);
        } while (parse_accept(p, T_COMMA));
    stmt->target = LIST_KEEP(p, list);
    stmt->target_count = list.count;
    return !p->panic && (stmt->body = parse_block(p)) != NULL;
}
