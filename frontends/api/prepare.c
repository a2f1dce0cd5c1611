#include "api/prepare.h"

#include <ctype.h>
#include <unistd.h>

#include "frontends/nnc/text.h"

Str prepare_identifier(Arena *arena, Str name)
{
    Str copy = str_format(arena, "%s" STR_FMT, name.len && isdigit((unsigned char)*name.ptr) ? "_" : "", STR_ARG(name));
    char *at = (char *)(uintptr_t)copy.ptr;
    for (uint32_t i = 0; i < copy.len; i++)
        if (!isalnum((unsigned char)at[i]))
            at[i] = '_';
    return copy;
}

Str prepare_file_name(Str path)
{
    uint32_t begin = path.len;
    while (begin > 0 && path.ptr[begin - 1] != '/')
        begin--;
    return (Str){path.ptr + begin, path.len - begin};
}

void *prepare_printer(Arena *arena)
{
    return ARENA_NEW(arena, NodePrinter *);
}

/* The printer of nodes comes into being with the first comment, when the graph no longer changes. */
void prepare_describe(void *context, Text *out, const Graph *graph, NodeId node)
{
    NodePrinter **printer = context;
    if (!*printer)
        *printer = nnc_node_printer(graph->module->arena, graph);
    nnc_print_node(*printer, out, node);
}

bool prepare_fits_memory(const Graph *graph)
{
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), sum = 0;
    for (ValueId id = 0; memory > 0 && id < graph->value_count; id++) {
        const Value *value = &graph->value[id];
        if (!value->type || (value->role != ROLE_PARAM && value->role != ROLE_STATE))
            continue;
        sum += (double)type_bytes(value->type);
        if (sum > memory)
            return diag_error(graph->module->diag, value->place,
                              STR_FMT " is " STR_FMT ": with it the weights take %.1f GiB, this machine has %.1f",
                              STR_ARG(value_show(graph, id)), STR_ARG(type_show(graph->module->arena, value->type)),
                              sum / 0x1p30, memory / 0x1p30);
    }
    return true;
}
