/* Errors of nodes, for passes: a node of a library function is the fault of who called that. */
#include "ir/graph.h"

#include <stdarg.h>

#define MOST_NOTES 8

static bool is_of_library(const Graph *graph, uint32_t call)
{
    const Call *is = graph->inlined[call].call;
    return is->library || !is->name.len; /* one without a name stands for nodes that are computed again */
}

/* The call that has led from the user's text into the library where the node stands in that, else NONE. */
static uint32_t library_call(const Graph *graph, const Node *node)
{
    uint32_t outermost = NONE;
    for (uint32_t c = node->from; c != NONE && is_of_library(graph, c); c = graph->inlined[c].outer)
        if (graph->inlined[c].call->library)
            outermost = c;
    return outermost;
}

static void note_calls(const Graph *graph, uint32_t call)
{
    for (uint32_t c = call, notes = 0; c != NONE && notes < MOST_NOTES; c = graph->inlined[c].outer) {
        const Inlined *inlined = &graph->inlined[c];
        if (!inlined->call->name.len)
            continue;
        diag_note(graph->module->diag, inlined->place, "in this call of " STR_FMT, STR_ARG(inlined->call->name));
        notes++;
    }
}

bool node_error(const Graph *graph, const Node *node, const char *format, ...)
{
    Diag *diag = graph->module->diag;
    uint32_t library = library_call(graph, node);
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    if (library == NONE) {
        diag_error(diag, node->place, STR_FMT, STR_ARG(text_view(&text)));
        note_calls(graph, node->from);
    } else {
        const Inlined *call = &graph->inlined[library];
        diag_error(diag, call->place, STR_FMT ": " STR_FMT, STR_ARG(call->call->name), STR_ARG(text_view(&text)));
        diag_note(diag, node->place, "for this line of the library");
        note_calls(graph, call->outer);
    }
    text_free(&text);
    return false;
}
