/* Marks: recipes as a text has them, at the nodes of kernels. */
#include "kernel/kernel.h"

#include <string.h>

/* The first mark of the kernel's nodes. */
const KernelMark *recipe_asked(const Graph *graph, const Kernel *kernel)
{
    for (uint32_t n = 0; n < kernel->node_count; n++)
        if (graph->node[kernel->node[n]].mark && graph->node[kernel->node[n]].mark->place.source)
            return graph->node[kernel->node[n]].mark;
    return NULL;
}

bool recipe_marks_agree(const KernelMark *a, const KernelMark *b)
{
    bool same = str_eq(a->provider, b->provider) && a->knob_count == b->knob_count;
    for (uint32_t i = 0; same && i < a->knob_count; i++)
        same = str_eq(a->knob[i].name, b->knob[i].name) && a->knob[i].value == b->knob[i].value;
    return same;
}

/* Two recipes that the text has for two kernels. */
static bool were_apart(const KernelMark *a, const KernelMark *b)
{
    return a && b && (a->number != b->number || a->body != b->body) && !recipe_marks_agree(a, b);
}

void recipe_release_marks(Graph *graph, Arena *scratch)
{
    const KernelMark **first = ARENA_ARRAY(scratch, const KernelMark *, graph->node_count);
    bool *released = ARENA_ARRAY(scratch, bool, graph->node_count);
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->kernel == NONE || !node->mark || !node->mark->place.source)
            continue;
        const KernelMark **known = &first[node->kernel];
        if (were_apart(*known, node->mark) && !released[node->kernel]) {
            diag_warning(
                graph->module->diag, node->mark->place,
                "this kernel of the text is one with another now, and is computed in another way than it says");
            diag_note(graph->module->diag, (*known)->place, "here is the other");
            released[node->kernel] = true;
        }
        *known = *known ? *known : node->mark;
    }
    for (NodeId n = 0; n < graph->node_count; n++)
        if (graph->node[n].kernel != NONE && released[graph->node[n].kernel])
            graph->node[n].mark = NULL;
}

bool recipe_marks_are_heeded(const Graph *graph)
{
    bool heeded = true;
    for (NodeId n = 0; n < graph->node_count; n++) {
        const Node *node = &graph->node[n];
        if (node->kernel == NONE && node->mark && node->mark->place.source)
            heeded = diag_error(graph->module->diag, node->mark->place,
                                "no kernel computes " STR_FMT ": its readers see through it",
                                STR_ARG(value_show(graph, node->out[0])));
    }
    return heeded;
}

/* Has a mark asked for the knob, even for 0? */
static bool asks_for(const KernelMark *mark, const Recipe *recipe, uint32_t knob)
{
    for (uint32_t i = 0; mark && i < mark->knob_count; i++)
        if (str_is(mark->knob[i].name, recipe->provider->knob[knob].name))
            return true;
    return false;
}

static Knob knob_of(const Recipe *recipe, uint32_t i)
{
    const KnobSpec *spec = &recipe->provider->knob[i];
    return (Knob){str_from(spec->name), recipe->knob[i], knob_is_flag(spec) && recipe->knob[i] > 0};
}

KernelMark recipe_as_mark(Arena *arena, const Recipe *recipe)
{
    Knob *knob = ARENA_ARRAY(arena, Knob, MOST_KNOBS);
    KernelMark mark = {.provider = str_from(recipe->provider->name), .knob = knob};
    for (uint32_t i = 0; recipe->provider->knob[i].name; i++)
        knob[mark.knob_count++] = knob_of(recipe, i);
    return mark;
}

void recipe_mark(Graph *graph, const Kernel *kernel)
{
    const Recipe *recipe = &kernel->recipe;
    Arena *arena = graph->module->arena;
    Node *node = &graph->node[kernel->anchor == NONE ? kernel->node[0] : kernel->anchor];
    const KernelMark *asked = recipe_asked(graph, kernel);
    KernelMark *mark = ARENA_NEW(arena, KernelMark);
    Knob *knob = ARENA_ARRAY(arena, Knob, MOST_KNOBS);
    *mark = (KernelMark){.provider = str_from(recipe->provider->name),
                         .knob = knob,
                         .number = asked ? asked->number : 0,
                         .body = asked ? asked->body : NULL,
                         .place = asked ? asked->place : (Place){0}};
    for (uint32_t i = 0; recipe->provider->knob[i].name; i++) {
        if (recipe->knob[i] > 0 || asks_for(asked, recipe, i))
            knob[mark->knob_count++] = knob_of(recipe, i);
    }
    for (uint32_t n = 0; n < kernel->node_count; n++)
        graph->node[kernel->node[n]].mark = NULL;
    node->mark = mark;
}
