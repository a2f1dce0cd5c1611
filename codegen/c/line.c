/* What printing statements begins with: names of buffers and loop variables, lines. */
#include "c/expr.h"

#include <assert.h>

/* Names */

/* The role with this number, or the next that no other name has. */
static Str numbered_role(Arena *arena, Map *taken, const char *role, uint32_t number)
{
    Str name;
    do
        name = str_format(arena, "%s%u", role, number++);
    while (!map_add(taken, name, 0));
    return name;
}

void print_role_names(Arena *arena, const Kernel *kernel, const uint32_t *inplace, KernelNames *names)
{
    names->function = kernel->name;
    names->buffer = ARENA_ARRAY(arena, Str, kernel->buffer_count);
    names->parameters = 0;
    Map last = {.arena = arena}; /* per role: its last buffer; before: how many of the role stand in front of it */
    uint32_t *before = ARENA_ARRAY(arena, uint32_t, kernel->buffer_count);
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        if (inplace[i] != i)
            continue;
        uint32_t known = map_get(&last, str_from(kernel->buffer[i].role));
        before[i] = known == MAP_NONE ? 0 : before[known] + 1;
        map_put(&last, str_from(kernel->buffer[i].role), i);
    }
    Map taken = {.arena = arena};
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        const char *role = kernel->buffer[i].role;
        if (inplace[i] != i)
            continue;
        bool alone = before[map_get(&last, str_from(role))] == 0;
        names->buffer[i] = alone ? str_from(role) : numbered_role(arena, &taken, role, before[i]);
    }
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        names->buffer[i] = names->buffer[inplace[i]];
}

/* Lines */

void print_line(Printer *printer, const char *format, ...)
{
    va_list args;
    text_fill(printer->out, ' ', printer->indent * 4);
    va_start(args, format);
    text_vprintf(printer->out, format, args);
    va_end(args);
    text_char(printer->out, '\n');
}

static bool is_name_around(const Printer *printer, Str name)
{
    for (uint32_t i = 0; i < printer->depth; i++)
        if (str_eq(printer->var_name[i], name))
            return true;
    for (uint32_t i = 0; i < printer->kernel->buffer_count; i++)
        if (str_eq(printer->names->buffer[i], name))
            return true;
    for (uint32_t i = 0; i < printer->names->parameters; i++)
        if (str_eq(printer->names->parameter[i], name))
            return true;
    return false;
}

static bool is_local_name(const Printer *printer, Str name)
{
    for (uint32_t i = 0; i < printer->scope_count; i++)
        if (str_eq(printer->scope[i].name, name))
            return true;
    return false;
}

/* `s`, and s2 where there is another around.  Registers w are w0_0 and so on, of a second w w2_0_0.  Only registers are
 * called so: no buffer's name ends in a digit (source_safe_name), but for x0, a role and its number. */
void print_name_local(Printer *printer, const Local *local)
{
    Str base = str_from(local->name), name = base;
    bool registers = local->extent[0] && !local->array;
    uint32_t before = map_get(&printer->last_number, base), number = before == MAP_NONE ? 0 : before;
    do
        name = ++number == 1 ? base : str_format(printer->arena, registers ? "%s%u_" : "%s%u", local->name, number);
    while (!registers && is_name_around(printer, name));
    map_put(&printer->last_number, base, number);
    printer->local_name[local->id] = name;
    LocalName entry = {name, base, before == MAP_NONE ? 0 : before};
    ARENA_PUSH(printer->arena, printer->scope, printer->scope_count, printer->scope_capacity, entry);
}

void print_leave_scope(Printer *printer, uint32_t names)
{
    while (printer->scope_count > names) {
        const LocalName *local = &printer->scope[--printer->scope_count];
        map_put(&printer->last_number, local->base, local->before);
    }
}

Str print_push(Printer *printer, const Var *var)
{
    assert(printer->depth < MOST_LOOPS);
    Str name = str_from(var->name);
    for (int n = 2; is_name_around(printer, name) || is_local_name(printer, name); n++)
        name = str_format(printer->arena, "%s_%d", var->name, n);
    printer->var[printer->depth] = var;
    printer->var_name[printer->depth++] = name;
    return name;
}
