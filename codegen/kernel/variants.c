/* Variants: what else could be timed for a kernel that has a recipe. */
#include "kernel/lower/lower.h"

/* Numbers worth a try, of knobs that take them. */
static const int64_t tried[] = {0, 1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 24, 32, 64, 128, 256, 512, 1024};

typedef struct Variants {
    Lower *lower;
    Kernel *kernel;
    Recipe *list;
    uint32_t count, capacity;
} Variants;

bool recipe_eq(const Recipe *a, const Recipe *b)
{
    bool same = a->provider == b->provider;
    for (uint32_t i = 0; same && a->provider->knob[i].name; i++)
        same = a->knob[i] == b->knob[i];
    return same;
}

/* Asks whether it is offered; what is new is kept. */
static bool try_recipe(Variants *v, Recipe recipe)
{
    if (!recipe_offered(v->lower, v->kernel, &recipe) || recipe_eq(&recipe, &v->kernel->recipe))
        return false;
    for (uint32_t i = 0; i < v->count; i++)
        if (recipe_eq(&recipe, &v->list[i]))
            return true;
    ARENA_PUSH(v->lower->arena, v->list, v->count, v->capacity, recipe);
    return true;
}

static void turn_knob(Variants *v, uint32_t knob, int64_t value)
{
    const Recipe *from = &v->kernel->recipe;
    Recipe others_left = recipe_free(from->provider), others_free = recipe_free(from->provider);
    for (uint32_t i = 0; from->provider->knob[i].name; i++)
        others_left.knob[i] = from->knob[i];
    others_left.knob[knob] = others_free.knob[knob] = value;
    if (value != from->knob[knob] && !try_recipe(v, others_left))
        try_recipe(v, others_free);
}

uint32_t recipe_variants(Lower *lower, Kernel *kernel, Recipe **list)
{
    Variants v = {.lower = lower, .kernel = kernel};
    lower->kernel = kernel;
    for (uint32_t i = 0; provider_table[i]; i++)
        if (provider_table[i] != kernel->recipe.provider)
            try_recipe(&v, recipe_free(provider_table[i]));
    for (uint32_t i = 0; kernel->recipe.provider->knob[i].name; i++)
        for (uint32_t t = 0; t < sizeof tried / sizeof *tried && tried[t] <= kernel->recipe.provider->knob[i].most; t++)
            turn_knob(&v, i, tried[t]);
    *list = v.list;
    return v.count;
}
