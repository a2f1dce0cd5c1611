/* Notes after an error that show how to write what was meant, in the user's own words. */
#include "frontends/nnc/build.h"

#include <string.h>

#define LONGEST_SHOWN 50 /* bytes of the user's text in a note; longer is `...` */

/* The text of an expression, when it is short and on one line. */
static Str shown_text(const Builder *b, const AstExpr *expr)
{
    const Source *source = expr ? diag_source(b->diag, expr->place.source) : NULL;
    if (!source || expr->place.length > LONGEST_SHOWN)
        return STR("...");
    Str text = {source->text.ptr + expr->place.offset, expr->place.length};
    return memchr(text.ptr, '\n', text.len) ? STR("...") : text;
}

/* `x2`, or the next that is free. */
static Str free_name(Builder *b, Str name)
{
    for (uint32_t i = 2; i < 10; i++) {
        Str other = str_format(b->scratch, STR_FMT "%u", STR_ARG(name), i);
        if (!build_lookup(b, other))
            return other;
    }
    return str_format(b->scratch, STR_FMT "_next", STR_ARG(name));
}

static bool is_updated(const Builder *b, const Binding *old)
{
    if (old->thing.kind != THING_VALUE || !b->frame->graph)
        return false;
    Role role = b->frame->graph->value[old->thing.value].role;
    return role == ROLE_PARAM || role == ROLE_STATE;
}

/* Is a branch open that the name was not assigned in, as it is visible behind it? */
static bool stands_before_branch(const Builder *b, const Binding *old)
{
    const AstStmt *branch = b->branch;
    return branch && (old->place.source != branch->place.source || old->place.offset < branch->place.offset);
}

/* After a second assignment of a name. */
void build_hint_assigned(Builder *b, Str name, const Binding *old)
{
    const AstStmt *stmt = b->stmt;
    if (!stmt || stmt->kind != AST_ASSIGN || stmt->target_count != 1)
        return;
    Str value = shown_text(b, stmt->value), other = free_name(b, name);
    if (is_updated(b, old))
        diag_note(b->diag, (Place){0}, "its value after the run is written: " STR_FMT " <- " STR_FMT, STR_ARG(name),
                  STR_ARG(value));
    else if (stands_before_branch(b, old))
        diag_note(b->diag, (Place){0},
                  "write: " STR_FMT " = " STR_FMT " if " STR_FMT " else " STR_FMT ", and use " STR_FMT " from here on",
                  STR_ARG(other), STR_ARG(value), STR_ARG(shown_text(b, b->branch->value)), STR_ARG(name),
                  STR_ARG(other));
    else
        diag_note(b->diag, (Place){0}, "write: " STR_FMT " = " STR_FMT ", and use " STR_FMT " from here on",
                  STR_ARG(other), STR_ARG(value), STR_ARG(other));
}

/* After a second declaration of a param. */
void build_hint_shared(Builder *b)
{
    diag_note(
        b->diag, (Place){0},
        "to share a param, declare it in the graph and use it twice: param w: f32[...], then x @ w and y @ w, or a "
        "function that takes w");
}

/* In a round of a loop the label needs the counter. */
Str build_hint_label(Builder *b, const Frame *frame)
{
    for (const Scope *s = frame->caller ? frame->caller->scope : NULL; s; s = s->outer)
        if (s->carried && s->carried->count)
            return str_format(b->scratch, STR_FMT "{" STR_FMT "}", STR_ARG(frame->callee->text),
                              STR_ARG(s->carried->binding[0].name));
    return STR("name");
}

/* Where the value of a name was given on the command line, and is at fault. */
void build_hint_given(Builder *b, const AstExpr *expr)
{
    const Binding *binding = expr && expr->kind == AST_NAME ? build_lookup(b, build_name_text(b, expr->name)) : NULL;
    if (binding && binding->given.source && !build_has_failed(b, binding->given)) {
        build_mark_failed_quietly(b, binding->given);
        diag_note(b->diag, binding->given, "its value is given here");
    }
}

/* Where nothing is called as a call has it */

static Str in_library(Builder *b, Str name)
{
    return str_format(b->scratch, "; the library has '" STR_FMT "': use \"nn\"", STR_ARG(name));
}

static Str near_in_library(Builder *b, Str name)
{
    Nearest nearest = {.wanted = name};
    LibraryFunction function = {0};
    for (uint32_t at = 0; nnc_library_next(&at, &function);)
        build_nearest_try(&nearest, function.name);
    return nearest.best.len ? in_library(b, nearest.best) : (Str){0};
}

bool build_of_four_bits(Builder *b, Str name, Place place)
{
    bool is = str_is(name, "i4") || str_is(name, "u4");
    if (is)
        build_complain(b, place, STR_FMT " is for params and constants alone; others are %c8", STR_ARG(name),
                       name.ptr[0]);
    return is;
}

Thing build_unknown_function(Builder *b, Str name, Place place)
{
    if (build_of_four_bits(b, name, place))
        return build_thing_bad();
    Nearest nearest = {.wanted = name};
    const File *file = b->frame->file;
    for (int i = 0; i < OP_WRITTEN; i++)
        build_nearest_try(&nearest, str_from(op_info((OpCode)i)->name));
    for (uint32_t i = 0; i < file->function_count; i++)
        build_nearest_try(&nearest, file->function[i]->name->text);
    for (uint32_t u = 0; u < file->used_count; u++)
        for (uint32_t i = 0; i < file->used[u]->function_count; i++)
            build_nearest_try(&nearest, file->used[u]->function[i]->name->text);
    Str foreign = nnc_foreign_name(name);
    if (foreign.len && (op_find(foreign) < OP_WRITTEN || build_find_function(file, foreign)))
        nearest.best = foreign;
    Str hint = build_nearest_show(b->scratch, &nearest);
    LibraryFunction function; /* a file that does not use the library has not parsed it */
    if (nnc_library_find(name, &function))
        hint = STR("; the library has one: use \"nn\"");
    else if (foreign.len && !str_eq(nearest.best, foreign))
        hint = in_library(b, foreign);
    else if (!hint.len)
        hint = near_in_library(b, name);
    build_complain(b, place, "no op or function '" STR_FMT "'" STR_FMT, STR_ARG(name), STR_ARG(hint));
    return build_thing_bad();
}
