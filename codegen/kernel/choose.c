/* Choice: who computes each kernel, and how.
 * Needs: kernels collected, and where values lie (a tile walks addresses).  Keeps: the graph, but for marks. */
#include "kernel/kernel.h"

#include <string.h>

static const Provider *provider_find(Str name)
{
    for (uint32_t i = 0; provider_table[i]; i++)
        if (str_is(name, provider_table[i]->name))
            return provider_table[i];
    return NULL;
}

static bool refuse(const Lower *lower, const KernelMark *mark, const char *why, Str what)
{
    return diag_error(lower->graph->module->diag, mark->place, why, STR_ARG(what));
}

static bool unknown_provider(const Lower *lower, const KernelMark *mark)
{
    Text known = {0};
    for (uint32_t i = 0; provider_table[i]; i++)
        text_printf(&known, "%s%s", i ? ", " : "", provider_table[i]->name);
    diag_error(lower->graph->module->diag, mark->place, "nobody called '" STR_FMT "' computes kernels; known are %s",
               STR_ARG(mark->provider), known.ptr);
    text_free(&known);
    return false;
}

static uint32_t knob_find(const Provider *provider, Str name)
{
    for (uint32_t i = 0; provider->knob[i].name; i++)
        if (str_is(name, provider->knob[i].name))
            return i;
    return NONE;
}

/* The first mark of the kernel's nodes. */
static const KernelMark *asked_for(const Graph *graph, const Kernel *kernel)
{
    for (uint32_t n = 0; n < kernel->node_count; n++)
        if (graph->node[kernel->node[n]].mark && graph->node[kernel->node[n]].mark->place.source)
            return graph->node[kernel->node[n]].mark;
    return NULL;
}

static bool same_mark(const KernelMark *a, const KernelMark *b)
{
    bool same = str_eq(a->provider, b->provider) && a->knob_count == b->knob_count;
    for (uint32_t i = 0; same && i < a->knob_count; i++)
        same = str_eq(a->knob[i].name, b->knob[i].name) && a->knob[i].value == b->knob[i].value;
    return same;
}

/* Two nodes of one kernel ask for different things. */
static bool marks_agree(const Lower *lower, const Kernel *kernel, const KernelMark *first)
{
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const KernelMark *mark = lower->graph->node[kernel->node[n]].mark;
        if (!mark || !mark->place.source || same_mark(first, mark))
            continue;
        refuse(lower, mark, "these nodes are one kernel, for which another recipe is asked: " STR_FMT, mark->provider);
        diag_note(lower->graph->module->diag, first->place, "here");
        return false;
    }
    return true;
}

/* Two recipes that the text has for two kernels. */
static bool were_apart(const KernelMark *a, const KernelMark *b)
{
    return a && b && (a->number != b->number || a->body != b->body) && !same_mark(a, b);
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

static void free_knobs(Recipe *recipe, const Provider *provider)
{
    *recipe = (Recipe){.provider = provider};
    for (uint32_t i = 0; i < MOST_KNOBS; i++)
        recipe->knob[i] = KNOB_FREE;
}

static bool takes_form(const Provider *provider, const Kernel *kernel)
{
    return provider->forms >> kernel->form & 1;
}

static bool follow_mark(Lower *lower, Kernel *kernel, const KernelMark *mark)
{
    const Provider *provider = provider_find(mark->provider);
    if (!provider)
        return unknown_provider(lower, mark);
    free_knobs(&kernel->recipe, provider);
    for (uint32_t i = 0; i < mark->knob_count; i++) {
        uint32_t knob = knob_find(provider, mark->knob[i].name);
        if (knob == NONE)
            return refuse(lower, mark, "it has no knob called '" STR_FMT "'", mark->knob[i].name);
        if (kernel->recipe.knob[knob] != KNOB_FREE)
            return refuse(lower, mark, "'" STR_FMT "' is given twice", mark->knob[i].name);
        if (mark->knob[i].flag && !provider->knob[knob].flag)
            return refuse(lower, mark, "'" STR_FMT "' takes a number", mark->knob[i].name);
        if (mark->knob[i].value > 1 && provider->knob[knob].flag)
            return refuse(lower, mark, "'" STR_FMT "' is on, or off by 0", mark->knob[i].name);
        kernel->recipe.knob[knob] = mark->knob[i].value;
    }
    if (!takes_form(provider, kernel) || !provider->offers(lower, kernel, &kernel->recipe))
        return refuse(lower, mark, "this kernel cannot be computed so, by '" STR_FMT "'", mark->provider);
    return true;
}

bool recipe_choose(Lower *lower, Kernel *kernel)
{
    const KernelMark *mark = asked_for(lower->graph, kernel);
    double least = 0;
    if (mark)
        return marks_agree(lower, kernel, mark) && follow_mark(lower, kernel, mark);
    kernel->recipe.provider = NULL;
    for (uint32_t i = 0; provider_table[i]; i++) {
        Recipe recipe;
        free_knobs(&recipe, provider_table[i]);
        if (!takes_form(provider_table[i], kernel) || !provider_table[i]->offers(lower, kernel, &recipe))
            continue;
        double cost = provider_table[i]->cost(lower, kernel, &recipe);
        if (kernel->recipe.provider && cost >= least)
            continue;
        kernel->recipe = recipe;
        least = cost;
    }
    return kernel->recipe.provider != NULL;
}

/* Has a mark asked for the knob, even for 0? */
static bool asks_for(const KernelMark *mark, const Recipe *recipe, uint32_t knob)
{
    for (uint32_t i = 0; mark && i < mark->knob_count; i++)
        if (str_is(mark->knob[i].name, recipe->provider->knob[knob].name))
            return true;
    return false;
}

void recipe_mark(Graph *graph, const Kernel *kernel)
{
    const Recipe *recipe = &kernel->recipe;
    Arena *arena = graph->module->arena;
    Node *node = &graph->node[kernel->anchor == NONE ? kernel->node[0] : kernel->anchor];
    const KernelMark *asked = asked_for(graph, kernel);
    KernelMark *mark = ARENA_NEW(arena, KernelMark);
    Knob *knob = ARENA_ARRAY(arena, Knob, MOST_KNOBS);
    *mark = (KernelMark){.provider = str_from(recipe->provider->name),
                         .knob = knob,
                         .number = asked ? asked->number : 0,
                         .body = asked ? asked->body : NULL,
                         .place = asked ? asked->place : (Place){0}};
    for (uint32_t i = 0; recipe->provider->knob[i].name; i++) {
        const KnobSpec *spec = &recipe->provider->knob[i];
        if (recipe->knob[i] > 0 || asks_for(asked, recipe, i))
            knob[mark->knob_count++] = (Knob){str_from(spec->name), recipe->knob[i], spec->flag && recipe->knob[i] > 0};
    }
    for (uint32_t n = 0; n < kernel->node_count; n++)
        graph->node[kernel->node[n]].mark = NULL;
    node->mark = mark;
}

uint32_t recipe_scratch(Lower *lower, Recipe *recipe, const char *name, DType dtype, int64_t elements, bool per_thread)
{
    Scratch scratch = {name, dtype, elements, per_thread, NONE};
    ARENA_PUSH(lower->arena, recipe->scratch, recipe->scratch_count, recipe->scratch_capacity, scratch);
    return recipe->scratch_count - 1;
}
