/* Choice: who computes each kernel, and how.
 * Needs: kernels collected, and where values lie (a tile walks addresses).  Keeps: the graph, but for marks. */
#include "kernel/lower/lower.h"

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

/* Two nodes of one kernel ask for different things. */
static bool marks_agree(const Lower *lower, const Kernel *kernel, const KernelMark *first)
{
    for (uint32_t n = 0; n < kernel->node_count; n++) {
        const KernelMark *mark = lower->graph->node[kernel->node[n]].mark;
        if (!mark || !mark->place.source || recipe_marks_agree(first, mark))
            continue;
        refuse(lower, mark, "these nodes are one kernel, for which another recipe is asked: " STR_FMT, mark->provider);
        diag_note(lower->graph->module->diag, first->place, "here");
        return false;
    }
    return true;
}

/* Does each thread want scratch of its own?  On a GPU none has. */
static bool takes_scratch_per_thread(const Recipe *recipe)
{
    bool takes = false;
    for (uint32_t i = 0; i < recipe->scratch_count; i++)
        takes |= recipe->scratch[i].per_thread;
    return takes;
}

bool recipe_offered(Lower *lower, const Kernel *kernel, Recipe *recipe)
{
    return recipe->provider->forms >> kernel->form & 1 && provider_serves(recipe->provider, lower->target) &&
           recipe->provider->offers(lower, kernel, recipe) &&
           !(lower->target->team && takes_scratch_per_thread(recipe));
}

/* Would it be, if contractions of f32 might be less exact? */
static bool offered_in_parts(const Lower *lower, const Kernel *kernel, const Recipe *recipe)
{
    Lower less = *lower;
    less.target = target_with_precision(lower->arena, lower->target, PRECISION_HIGH);
    less.exact = false;
    Recipe same = recipe_to_plan(recipe);
    return recipe->provider == &provider_amx && recipe_offered(&less, kernel, &same);
}

static bool follow_mark(Lower *lower, Kernel *kernel, const KernelMark *mark)
{
    const Provider *provider = provider_find(mark->provider);
    if (!provider)
        return unknown_provider(lower, mark);
    kernel->recipe = recipe_free(provider);
    for (uint32_t i = 0; i < mark->knob_count; i++) {
        uint32_t knob = knob_find(provider, mark->knob[i].name);
        if (knob == NONE)
            return refuse(lower, mark, "it has no knob called '" STR_FMT "'", mark->knob[i].name);
        if (kernel->recipe.knob[knob] != KNOB_FREE)
            return refuse(lower, mark, "'" STR_FMT "' is given twice", mark->knob[i].name);
        if (mark->knob[i].flag && !knob_is_flag(&provider->knob[knob]))
            return refuse(lower, mark, "'" STR_FMT "' takes a number", mark->knob[i].name);
        if (mark->knob[i].value > 1 && knob_is_flag(&provider->knob[knob]))
            return refuse(lower, mark, "'" STR_FMT "' is on, or off by 0", mark->knob[i].name);
        kernel->recipe.knob[knob] = mark->knob[i].value;
    }
    if (!provider_serves(provider, lower->target))
        return refuse(lower, mark, "'" STR_FMT "' is a library, which computes kernels with --backend alone",
                      mark->provider);
    if (recipe_offered(lower, kernel, &kernel->recipe))
        return true;
    if (offered_in_parts(lower, kernel, &kernel->recipe))
        return refuse(lower, mark, "'" STR_FMT "' computes this kernel with --precision high alone", mark->provider);
    return refuse(lower, mark, "this kernel cannot be computed so, by '" STR_FMT "'", mark->provider);
}

static bool choose_cheapest(Lower *lower, Recipe *cheapest)
{
    double least = 0;
    cheapest->provider = NULL;
    for (uint32_t i = 0; provider_table[i]; i++) {
        Recipe recipe = recipe_free(provider_table[i]);
        if (!recipe_offered(lower, lower->kernel, &recipe))
            continue;
        double cost = provider_table[i]->cost(lower, lower->kernel, &recipe);
        if (cheapest->provider && cost >= least)
            continue;
        *cheapest = recipe;
        least = cost;
    }
    return cheapest->provider != NULL;
}

bool recipe_choose(Lower *lower, Kernel *kernel)
{
    const KernelMark *mark = recipe_asked(lower->graph, kernel);
    lower->kernel = kernel;
    if (mark)
        return marks_agree(lower, kernel, mark) && follow_mark(lower, kernel, mark);
    if (recipe_repeated(lower, choose_cheapest, &kernel->recipe))
        return true;
    const Graph *graph = lower->graph;
    const Node *node = &graph->node[kernel->node[0]];
    return diag_error(graph->module->diag, node->place, "internal error: nobody computes the kernel of " STR_FMT,
                      STR_ARG(value_title(graph, node->out[0])));
}
