#include "c/sharing.h"

#include <string.h>

#include "base/names.h"
#include "base/number.h"

#define MOST_VARIATIONS 96 /* that are looked at */

typedef struct Variation { /* constants that differ in the same way from kernel to kernel */
    uint32_t first;        /* the first of them */
    bool factor;           /* some are factors, so that they cannot be a sum */
    uint32_t base;         /* the variation of its parameter: times * that + plus */
    int64_t times, plus;
} Variation;

typedef struct Finding {
    const Constant *const *kernel;
    uint32_t kernels;
    Variation variation[MOST_VARIATIONS];
    uint32_t count;
    uint32_t *of; /* per constant: its variation, or count of them where it does not vary */
} Finding;

static int64_t value_of(const Finding *f, uint32_t kernel, uint32_t constant)
{
    return f->kernel[kernel][constant].value;
}

static bool varies(const Finding *f, uint32_t constant)
{
    uint32_t k = 1;
    while (k < f->kernels && value_of(f, k, constant) == value_of(f, 0, constant))
        k++;
    return k < f->kernels && f->kernel[0][constant].printed;
}

/* What the rounds of a loop are called, by its variable; i2 is no more than a position. */
static const char *many_of(const char *variable)
{
    static const char *const words[][2] = {{"b", "blocks"},          {"block", "blocks"},     {"c", "channels"},
                                           {"channels", "channels"}, {"chunk", "chunks"},     {"column", "columns"},
                                           {"d", "depth"},           {"depth", "depth"},      {"group", "groups"},
                                           {"h", "height"},          {"kh", "kernel_height"}, {"kw", "kernel_width"},
                                           {"n", "images"},          {"o", "outputs"},        {"panel", "panels"},
                                           {"pixel", "pixels"},      {"round", "rounds"},     {"row", "rows"},
                                           {"t", "tiles"},           {"tap", "taps"},         {"w", "width"}};
    for (uint32_t i = 0; variable && i < sizeof words / sizeof *words; i++)
        if (strcmp(variable, words[i][0]) == 0)
            return words[i][1];
    return "count";
}

/* Distances are one kind; ends of loops are so by the loop's variable. */
static bool of_one_kind(const Constant *a, const Constant *b)
{
    if (constant_is_distance(a->kind) || constant_is_distance(b->kind))
        return constant_is_distance(a->kind) && constant_is_distance(b->kind);
    if (a->kind == CONSTANT_NUMBER || b->kind == CONSTANT_NUMBER)
        return a->kind == b->kind && strcmp(a->type, b->type) == 0;
    return a->kind == b->kind && strcmp(many_of(a->along), many_of(b->along)) == 0;
}

static bool vary_alike(const Finding *f, uint32_t a, uint32_t b)
{
    uint32_t k = 0;
    while (k < f->kernels && value_of(f, k, a) == value_of(f, k, b))
        k++;
    return k == f->kernels && of_one_kind(&f->kernel[0][a], &f->kernel[0][b]);
}

static bool find_variations(Finding *f, uint32_t constants)
{
    for (uint32_t c = 0; c < constants; c++) {
        f->of[c] = MOST_VARIATIONS;
        if (!varies(f, c))
            continue;
        uint32_t v = 0;
        while (v < f->count && !vary_alike(f, f->variation[v].first, c))
            v++;
        if (v == MOST_VARIATIONS)
            return false;
        if (v == f->count)
            f->variation[f->count++] = (Variation){.first = c, .base = v, .times = 1};
        f->of[c] = v;
        f->variation[v].factor |= f->kernel[0][c].kind == CONSTANT_STRIDE;
    }
    return true;
}

static bool follows_at(int64_t base, int64_t value, int64_t times, int64_t plus)
{
    return plus < base && plus > -base && value - plus == number_times(times, base);
}

/* Is b = times * a + plus in all kernels?  It does not lead from one buffer to a place in another one. */
static bool follows(const Finding *f, Variation *b, const Variation *a)
{
    uint32_t k = 1;
    while (value_of(f, k, a->first) == value_of(f, 0, a->first))
        k++;
    int64_t from = value_of(f, 0, a->first), to = value_of(f, 0, b->first);
    int64_t step = value_of(f, k, a->first) - from, steps = value_of(f, k, b->first) - to, times = steps / step;
    if (steps % step || times < 1)
        return false;
    int64_t plus = to - number_times(times, from);
    for (k = 0; k < f->kernels; k++)
        if (!follows_at(value_of(f, k, a->first), value_of(f, k, b->first), times, plus))
            return false;
    if (plus && (b->factor || !str_eq(f->kernel[0][a->first].of, f->kernel[0][b->first].of)))
        return false;
    b->times = times;
    b->plus = plus;
    return true;
}

/* From the least distance on, which others are multiples of.  Says how many parameters there are. */
static uint32_t find_bases(Finding *f)
{
    uint32_t order[MOST_VARIATIONS], distances = 0, parameters = 0;
    for (uint32_t v = 0; v < f->count; v++) {
        if (!constant_is_distance(f->kernel[0][f->variation[v].first].kind)) {
            parameters++;
            continue;
        }
        uint32_t at = distances++;
        for (; at && value_of(f, 0, f->variation[order[at - 1]].first) > value_of(f, 0, f->variation[v].first); at--)
            order[at] = order[at - 1];
        order[at] = v;
    }
    for (uint32_t i = 0; i < distances; i++) {
        Variation *variation = &f->variation[order[i]];
        for (uint32_t j = 0; j < i && variation->base == order[i]; j++)
            if (f->variation[order[j]].base == order[j] && follows(f, variation, &f->variation[order[j]]))
                variation->base = order[j];
        parameters += variation->base == order[i];
    }
    return parameters;
}

bool sharing_find(Arena *arena, const Constant *const *kernel, uint32_t kernels, uint32_t count, Sharing *sharing)
{
    Finding f = {.kernel = kernel, .kernels = kernels, .of = ARENA_ARRAY(arena, uint32_t, count)};
    if (!find_variations(&f, count) || find_bases(&f) > MOST_PARAMETERS)
        return false;
    *sharing = (Sharing){.parameter = ARENA_ARRAY(arena, Parameter, MOST_PARAMETERS),
                         .follows = ARENA_ARRAY(arena, Following, count)};
    uint32_t number[MOST_VARIATIONS];
    for (uint32_t v = 0; v < f.count; v++)
        if (f.variation[v].base == v) {
            number[v] = sharing->count;
            sharing->parameter[sharing->count++] =
                (Parameter){.constant = f.variation[v].first, .type = kernel[0][f.variation[v].first].type};
        }
    for (uint32_t c = 0; c < count; c++)
        if (f.of[c] < f.count) {
            const Variation *v = &f.variation[f.of[c]];
            sharing->follows[c] = (Following){number[v->base], v->times, v->plus};
        }
    return true;
}

bool sharing_fits(const Sharing *sharing, const Constant *first, const Constant *kernel, uint32_t count)
{
    for (uint32_t c = 0; c < count; c++) {
        const Following *follows = sharing->follows ? &sharing->follows[c] : &(Following){0};
        if (!follows->times) {
            if (first[c].printed && kernel[c].value != first[c].value)
                return false;
            continue;
        }
        int64_t base = kernel[sharing->parameter[follows->parameter].constant].value;
        bool same = follows->times == 1 && !follows->plus;
        if (same ? kernel[c].value != base : !follows_at(base, kernel[c].value, follows->times, follows->plus))
            return false;
    }
    return true;
}

/* Names */

static Str name_of(Arena *arena, const Constant *constant)
{
    const char *along = constant->along ? constant->along : "";
    Str of = constant->of.len ? str_format(arena, STR_FMT "_", STR_ARG(constant->of)) : (Str){0};
    switch (constant->kind) {
    case CONSTANT_STRIDE:
        return str_format(arena, STR_FMT "%s%sstride", STR_ARG(of), along, *along ? "_" : "");
    case CONSTANT_OFFSET:
        return str_format(arena, STR_FMT "offset", STR_ARG(of));
    case CONSTANT_APART:
        return str_format(arena, STR_FMT "apart", STR_ARG(of));
    case CONSTANT_END:
        return str_from(many_of(along));
    case CONSTANT_BEGIN:
        return str_format(arena, "first_%s", along);
    case CONSTANT_NUMBER:
        return STR("number");
    case CONSTANT_LIMIT:
        break;
    }
    return STR("limit");
}

static Str written(Arena *arena, Str name, const Following *follows)
{
    if (follows->times > 1)
        name = str_format(arena, STR_FMT " * %lld", STR_ARG(name), (long long)follows->times);
    if (follows->plus)
        name = str_format(arena, STR_FMT " %c %lld", STR_ARG(name), follows->plus < 0 ? '-' : '+',
                          (long long)(follows->plus < 0 ? -follows->plus : follows->plus));
    return name;
}

void sharing_name(Arena *arena, const Constant *first, uint32_t count, const Str *taken, uint32_t taken_count,
                  Sharing *sharing)
{
    Names names = {.taken = {.arena = arena}};
    Str *text = ARENA_ARRAY(arena, Str, count);
    for (uint32_t i = 0; i < taken_count; i++)
        map_add(&names.taken, taken[i], i);
    for (uint32_t p = 0; p < sharing->count; p++) {
        Parameter *parameter = &sharing->parameter[p];
        parameter->name = names_add(&names, arena, name_of(arena, &first[parameter->constant]), '_', p);
    }
    for (uint32_t c = 0; c < count; c++)
        if (sharing->follows[c].times)
            text[c] = written(arena, sharing->parameter[sharing->follows[c].parameter].name, &sharing->follows[c]);
    sharing->written = text;
}
