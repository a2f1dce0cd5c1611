/* Layouts that the text states where they would not be heeded: what comes from outside is plain. */
#include "program/layouts.h"

/* Recurses over the nesting of calls and bodies; what these are given is computed. */
static void check(const Graph *graph, bool inside)
{
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        bool given = value->role == ROLE_PARAM || value->role == ROLE_STATE || (value->role == ROLE_INPUT && !inside);
        if (given && value->type && value->type->layout.block)
            diag_error(graph->module->diag, value->place,
                       "the layout of " STR_FMT ", " STR_FMT
                       ", cannot be honoured: inputs, params and states are plain",
                       STR_ARG(value_show(graph, v)), STR_ARG(type_show(graph->module->arena, value->type)));
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        for (uint32_t s = 0; s < graph->node[n].sub_count; s++)
            check(graph->node[n].sub[s], true);
}

void layouts_check(const Graph *graph)
{
    check(graph, false);
}
