/* Names: scopes, lookup, suggestions; and the reporting of errors from inside calls. */
#include "frontends/nnc/build.h"

#include <string.h>

#define MOST_NOTES   6
#define LONGEST_NAME 1000 /* with braces filled in */

static Str place_key(const Place *place)
{
    return map_key(place, sizeof *place);
}

bool build_has_failed(const Builder *b, Place place)
{
    return map_get(&b->failed, place_key(&place)) != MAP_NONE;
}

void build_mark_failed_quietly(Builder *b, Place place)
{
    Place *kept = arena_copy(b->scratch, &place, sizeof place);
    map_put(&b->failed, place_key(kept), 0);
}

bool build_in_library(const Frame *frame)
{
    return frame && frame->file && str_is(frame->file->path, "nn");
}

/* The user's call of the library function in whose body we are; NULL when we are in none. */
static const Frame *library_call(const Builder *b)
{
    const Frame *f = b->frame;
    while (build_in_library(f) && f->caller && build_in_library(f->caller))
        f = f->caller;
    return build_in_library(f) && f->caller ? f : NULL;
}

static void note_calls(Builder *b, Place place, const Frame *f)
{
    uint32_t notes = 0;
    uint32_t last = place.offset; /* a recursive call, and a call that is itself the error, are shown once */
    for (; f && f->caller && notes < MOST_NOTES; f = f->caller) {
        if (f->call.offset == last)
            continue;
        last = f->call.offset;
        notes++;
        diag_note(b->diag, f->call, "in this call of " STR_FMT, STR_ARG(f->callee->text));
    }
}

void build_mark_failed(Builder *b, Place place)
{
    build_mark_failed_quietly(b, place);
    note_calls(b, place, b->frame);
}

bool build_blames_call(const Builder *b, Place place)
{
    return library_call(b) && place.source == b->frame->file->source;
}

/* Another line of the library finds the same wrong with the call. */
static bool tells_again(Builder *b, Place call, Str text)
{
    bool again =
        b->told.ptr && str_eq(b->told, text) && b->told_of.source == call.source && b->told_of.offset == call.offset;
    b->told = str_format(b->arena, STR_FMT, STR_ARG(text));
    b->told_of = call;
    return again;
}

bool build_complain(Builder *b, Place place, const char *format, ...)
{
    if (b->exhausted || build_has_failed(b, place))
        return false;
    Text text = {0};
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    const Frame *library = library_call(b);
    if (library && tells_again(b, library->call, text_view(&text))) {
        build_mark_failed_quietly(b, place);
    } else if (build_blames_call(b, place)) {
        diag_error(b->diag, library->call, STR_FMT ": " STR_FMT, STR_ARG(library->callee->text),
                   STR_ARG(text_view(&text)));
        diag_note(b->diag, place, "for this line of the library");
        build_mark_failed_quietly(b, place);
        note_calls(b, library->call, library->caller);
    } else {
        diag_error(b->diag, place, STR_FMT, STR_ARG(text_view(&text)));
        build_mark_failed(b, place);
    }
    text_free(&text);
    return false;
}

/* The first parameter of the function that is a tensor, but not of floats. */
static const Binding *integer_operand(const Frame *function)
{
    const Scope *scope = function->scope;
    while (scope->outer)
        scope = scope->outer;
    for (uint32_t i = 0; i < scope->count; i++) {
        const Thing *thing = &scope->binding[i].thing;
        const Type *type = thing->kind == THING_VALUE ? value_type(function->graph, thing->value) : NULL;
        if (type && !dtype_is_float(type->dtype))
            return &scope->binding[i];
    }
    return NULL;
}

bool build_complain_of_integers(Builder *b, Place place)
{
    const Frame *library = library_call(b);
    const Binding *operand = library && place.source == b->frame->file->source ? integer_operand(library) : NULL;
    if (!operand)
        return false;
    if (build_has_failed(b, library->call))
        return true;
    Str type = type_show(b->scratch, value_type(library->graph, operand->thing.value));
    build_complain(b, place, "takes floating-point numbers (cast them): " STR_FMT " is " STR_FMT,
                   STR_ARG(operand->name), STR_ARG(type));
    build_mark_failed_quietly(b, library->call);
    return true;
}

bool build_step(Builder *b, Place place, uint32_t cost)
{
    b->steps += cost;
    b->exhausted |= b->diag->error_count > DIAG_LIMIT; /* nothing more would be shown */
    if (b->exhausted)
        return false;
    uint32_t most_steps = b->written > MOST_STEPS ? b->written : MOST_STEPS;
    if (b->steps <= most_steps)
        return true;
    build_complain(b, place, "more than %u statements, with all repetition written out and an op counted as %d or more",
                   most_steps, COST_OF_OP);
    b->exhausted = true;
    return false;
}

bool build_go_deeper(Builder *b, Place place)
{
    if (b->depth < DEEPEST_BUILD) {
        b->depth++;
        return true;
    }
    build_complain(b, place, "expressions, blocks and calls nest too deep");
    b->exhausted = true;
    return false;
}

/* Scopes */

Scope *build_scope_push(Builder *b)
{
    Scope *scope = ARENA_NEW(&b->scopes, Scope);
    scope->outer = b->frame->scope;
    scope->map.arena = &b->scopes;
    scope->suffix = scope->outer ? scope->outer->suffix : (Str){0};
    b->frame->scope = scope;
    return scope;
}

void build_scope_pop(Builder *b)
{
    b->frame->scope = b->frame->scope->outer;
}

Binding *build_scope_find(Scope *scope, Str name)
{
    uint32_t index = map_get(&scope->map, name);
    return index == MAP_NONE ? NULL : &scope->binding[index];
}

static void put(Scope *scope, Str name, Place place, Thing thing)
{
    map_put(&scope->map, name, scope->count);
    ARENA_PUSH(scope->map.arena, scope->binding, scope->count, scope->capacity,
               ((Binding){.name = name, .thing = thing, .place = place}));
}

static Binding *find_from(Scope *scope, Str name)
{
    Binding *found = NULL;
    for (; scope && !found; scope = scope->outer)
        found = build_scope_find(scope, name);
    return found;
}

/* In a round of a loop, or in a body: is the name one of a scope around it, and not carried? */
static const Binding *hidden(const Frame *frame, Str name, const char **advice)
{
    const Scope *scope = frame->scope;
    if (!scope->carried || map_get(&scope->carried->map, name) != MAP_NONE)
        return NULL;
    const Binding *found = NULL;
    for (const Frame *f = frame->around; f && !found; f = f->around)
        found = find_from(f->scope, name);
    *advice = found ? frame->advice : NULL;
    return found ? found : find_from(scope->carried->outer, name);
}

static void complain_hidden(Builder *b, Str name, Place place, const char *advice)
{
    if (advice)
        build_complain(b, place, "'" STR_FMT "' belongs to the code around this: %s, or take another name",
                       STR_ARG(name), advice);
    else
        build_complain(b, place,
                       "'" STR_FMT "' belongs to the code around the loop: carry it (for ... carry " STR_FMT
                       ") or take another name",
                       STR_ARG(name), STR_ARG(name));
}

bool build_bind(Builder *b, Str name, Place place, Thing thing)
{
    Scope *scope = b->frame->scope;
    const Binding *old = build_scope_find(scope, name);
    if (old) {
        if (!build_has_failed(b, place)) {
            build_complain(b, place, "'" STR_FMT "' has a value already; every name is assigned once", STR_ARG(name));
            diag_note(b->diag, old->place, "the first assignment");
            build_hint_assigned(b, name, old);
        }
        return false;
    }
    const char *advice = NULL;
    if ((old = hidden(b->frame, name, &advice))) {
        if (!build_has_failed(b, place)) {
            complain_hidden(b, name, place, advice);
            diag_note(b->diag, old->place, "it is assigned here");
        }
        return false;
    }
    put(scope, name, place, thing);
    return true;
}

void build_rebind(Builder *b, Str name, Place place, Thing thing)
{
    Binding *own = build_scope_find(b->frame->scope, name);
    if (own)
        own->thing = thing;
    else
        build_bind(b, name, place, thing);
}

static Binding *find_constant(File *file, Str name)
{
    Binding *found = build_scope_find(&file->constants, name);
    for (uint32_t i = 0; !found && i < file->used_count; i++)
        found = build_scope_find(&file->used[i]->constants, name);
    return found;
}

/* What is found around a body is bound in its outermost scope from then on, as what it is inside. */
static Binding *import(Builder *b, const Frame *home, const Binding *binding)
{
    Scope *scope = b->frame->scope;
    while (scope->outer)
        scope = scope->outer;
    put(scope, binding->name, binding->place, build_import(b, home, binding->thing));
    return &scope->binding[scope->count - 1];
}

Binding *build_lookup(Builder *b, Str name)
{
    for (Frame *f = b->frame; f; f = f->around) {
        Binding *found = find_from(f->scope, name);
        if (found)
            return f == b->frame ? found : import(b, f, found);
    }
    return find_constant(b->frame->file, name);
}

const AstFunction *build_find_function(const File *file, Str name)
{
    uint32_t index = map_get(&file->functions, name);
    if (index != MAP_NONE)
        return file->function[index];
    for (uint32_t i = 0; i < file->used_count; i++)
        if ((index = map_get(&file->used[i]->functions, name)) != MAP_NONE)
            return file->used[i]->function[index];
    return NULL;
}

/* The text of a name, braces filled in; constants in them must be integers or strings.  Lives as long as the build. */
Str build_name_text(Builder *b, const AstName *name)
{
    if (!name->part_count)
        return name->text;
    Text text = {0};
    for (uint32_t i = 0; i < name->part_count; i++) {
        const AstNamePart *part = &name->part[i];
        Const c;
        if (!part->expr)
            text_str(&text, part->text);
        else if (!build_eval_const(b, part->expr, &c))
            break;
        else if (c.kind == C_INT)
            text_printf(&text, "%lld", (long long)c.i);
        else if (c.kind == C_STRING)
            text_str(&text, c.s);
        else
            build_complain(b, part->expr->place, "braces in a name take an integer or a string, not %s",
                           const_kind_name(c.kind));
    }
    if (text.len > LONGEST_NAME) {
        build_complain(b, name->place, "a name longer than %d bytes", LONGEST_NAME);
        text.len = 0;
    }
    b->steps += (uint32_t)text.len / 16;
    Str s = str_copy(b->scratch, text_view(&text));
    text_free(&text);
    return s;
}

/* Suggestions */

void build_nearest_try(Nearest *nearest, Str candidate)
{
    uint32_t slips;
    if (str_is_near(nearest->wanted, candidate, &slips) && (!nearest->best.len || slips < nearest->slips)) {
        nearest->best = candidate;
        nearest->slips = slips;
    }
}

void build_nearest_parameter(Nearest *nearest, Str candidate)
{
    if (nnc_is_foreign_parameter(nearest->wanted, candidate))
        *nearest = (Nearest){nearest->wanted, candidate, 0};
    else
        build_nearest_try(nearest, candidate);
}

Str build_nearest_show(Arena *arena, const Nearest *nearest)
{
    return nearest->best.len ? str_format(arena, "; did you mean '" STR_FMT "'?", STR_ARG(nearest->best)) : (Str){0};
}
