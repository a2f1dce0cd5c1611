#include "api/savings.h"

#include "ir/op.h"

const SavingsPart savings_part[SAVINGS_PARTS] = {{"inplace", "in-place", WITHOUT_INPLACE},
                                                 {"views", "views", WITHOUT_VIEWS},
                                                 {"parts", "parts", WITHOUT_PARTS},
                                                 {"order", "order", WITHOUT_ORDER}};

static bool is_view_of_result(const Graph *graph, ValueId value)
{
    NodeId node = graph->value[value].node;
    bool view = false;
    for (; node != NONE && op_info(graph->node[node].op)->family == FAMILY_VIEW; view = true)
        node = graph->value[graph->node[node].in[0]].node;
    return view && node != NONE;
}

/* The peak without one of them.  Where there is nothing that it does, all would stay as it is. */
static int64_t peak_without(const Entry *entry, Without bit)
{
    const Graph *graph = entry->graph;
    bool used = bit == WITHOUT_ORDER && entry->order_gains;

    for (ValueId v = 0; v < graph->value_count; v++)
        used |= bit == WITHOUT_INPLACE ? graph->value[v].inplace != NONE
                : bit == WITHOUT_PARTS ? entry_storage(entry, v)->inside != NONE
                : bit == WITHOUT_VIEWS ? is_view_of_result(graph, v)
                                       : false;
    return used ? entry_peak_without(entry, bit) : entry->memory.plan.peak;
}

void savings_measure(Arena *arena, const Entry *entry, PlanReport *report)
{
    PlanSaving *saving = ARENA_ARRAY(arena, PlanSaving, SAVINGS_PARTS);

    report->saving = saving;
    for (uint32_t i = 0; i < SAVINGS_PARTS; i++) {
        if (entry->program->options.without & savings_part[i].bit)
            continue;
        int64_t peak = peak_without(entry, savings_part[i].bit);
        if (peak >= 0)
            saving[report->saving_count++] = (PlanSaving){str_from(savings_part[i].name), peak - report->peak};
    }
}
