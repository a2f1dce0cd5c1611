/* minimize(loss, with = ..., params = ["backbone", "head.bias"]): trains those of the params that the loss reaches
 * which are called so, or go by this label: backbone.conv.weight, but not backbone2.weight. */
#include "frontends/nnc/build_minimize.h"

#include <string.h>

#define LEFT_OUT "`params` takes labels of calls or names of params, such as [\"backbone\", \"head.bias\"]"

bool build_read_params(Minimize *m, const AstExpr *expr)
{
    Const *c = &m->params;
    m->params_expr = expr;
    if (!build_eval_const(m->b, expr, c))
        return false;
    if (c->kind == C_STRING)
        *c = (Const){.kind = C_LIST, .depth = 1, .count = 1, .item = arena_copy(m->b->scratch, c, sizeof *c)};
    bool labels = c->kind == C_LIST && c->count > 0;
    for (uint32_t i = 0; labels && i < c->count; i++)
        labels = c->item[i].kind == C_STRING;
    return labels ||
           build_complain(m->b, expr->place, LEFT_OUT ", not " STR_FMT, STR_ARG(const_show(m->b->scratch, c)));
}

static bool goes_by(Str name, Str label)
{
    return label.len && label.len <= name.len && !memcmp(name.ptr, label.ptr, label.len) &&
           (label.len == name.len || name.ptr[label.len] == '.');
}

static Str name_of(const ReachedParam *param)
{
    return param->graph->value[param->value].name;
}

/* Is it the end of the name, from the begin of a part on? */
static bool is_tail(Str name, Str label)
{
    return label.len && label.len < name.len && name.ptr[name.len - label.len - 1] == '.' &&
           !memcmp(name.ptr + name.len - label.len, label.ptr, label.len);
}

/* Of all names, and all labels that these go by, one that lacks the labels in front, or is near.  Of a param that no
 * gradient reaches none is meant. */
static Str meant(Builder *b, Str label, const ReachedParams *params)
{
    Nearest nearest = {.wanted = label};
    for (uint32_t i = 0; i < params->count && map_get(&b->params, label) == MAP_NONE; i++) {
        Str name = name_of(&params->at[i]);
        for (uint32_t len = 1; len <= name.len; len++) {
            Str candidate = {name.ptr, len};
            if (len < name.len && name.ptr[len] != '.')
                continue;
            if (is_tail(candidate, label))
                return build_nearest_show(b->scratch, &(Nearest){.best = candidate});
            build_nearest_try(&nearest, candidate);
        }
    }
    return build_nearest_show(b->scratch, &nearest);
}

static bool complain_of_label(const Minimize *m, uint32_t i)
{
    const AstExpr *list = m->params_expr;
    Place place = list->kind == AST_LIST ? list->u.items[i]->place : list->place;
    Str label = m->params.item[i].s;
    return build_complain(m->b, place, "the loss reaches no param '" STR_FMT "', nor any under this label" STR_FMT,
                          STR_ARG(label), STR_ARG(meant(m->b, label, &m->trained)));
}

bool build_choose_params(Minimize *m)
{
    bool *chosen, all = true;
    if (m->params.kind == C_NONE)
        return true;
    chosen = ARENA_ARRAY(m->b->scratch, bool, m->trained.count);
    for (uint32_t k = 0; k < m->params.count; k++) {
        bool met = false;
        for (uint32_t i = 0; i < m->trained.count; i++) {
            bool fits = goes_by(name_of(&m->trained.at[i]), m->params.item[k].s);
            chosen[i] |= fits;
            met |= fits;
        }
        all &= met || complain_of_label(m, k);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->trained.count; i++)
        if (chosen[i])
            m->trained.at[count++] = m->trained.at[i];
    m->trained.count = count;
    return all;
}
