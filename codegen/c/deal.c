/* Kernels that threads share: a part of one, called by whichever thread takes it. */
#include "c/unit.h"

static const char deal_text[] =
    "/* Threads of the team take parts of a kernel, as many as %u at once; without a team the caller does them all. "
    "*/\n"
    "static void nnc_deal(nnc_team *team, void (*part)(const void *, int32_t, int32_t), const void *call,\n"
    "                     int32_t parts)\n"
    "{\n"
    "    if (team)\n"
    "        team->deal(team, part, call, parts, %u);\n"
    "    else\n"
    "        for (int32_t i = 0; i < parts; i++)\n"
    "            part(call, i, 0);\n"
    "}\n\n";

void unit_print_deal(Text *out, const Unit *unit)
{
    uint32_t threads = unit->program->options.threads;
    bool some = false;
    for (uint32_t f = 0; f < unit->function_count; f++)
        some |= unit->function[f].part.len > 0;
    if (some)
        text_printf(out, deal_text, threads, threads);
}

/* How far apart scratch is for the threads: a number, or a parameter. */
static void print_apart(Text *out, const Function *function, int64_t apart, uint32_t constant)
{
    const Str *written = function->sharing.written;
    if (written && written[constant].len)
        text_printf(out, " + thread * c->" STR_FMT, STR_ARG(written[constant]));
    else
        text_printf(out, " + thread * %lld", (long long)apart);
}

/* The arguments, one after another, behind `c->` where `values`; scratch is that of the thread. */
static void print_arguments(Text *out, Unit *unit, const Function *function, const KernelNames *names, bool *threads)
{
    const Kernel *kernel = &function->entry->memory.kernel[function->kernel];
    const bool *used = unit_parameters(function->entry, unit->arena, function->kernel, function->deal);
    uint32_t apart = function->printed;
    *threads = false;
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        const Storage *storage = entry_storage(function->entry, buffer->storage);
        if (!used[b])
            continue;
        text_printf(out, "c->" STR_FMT, STR_ARG(names->buffer[b]));
        if (storage->per_thread)
            print_apart(out, function, storage->apart / dtype_bytes(buffer->dtype), apart++);
        *threads |= storage->per_thread;
        text_printf(out, ", ");
    }
    for (uint32_t p = 0; p < names->parameters; p++)
        text_printf(out, "c->" STR_FMT ", ", STR_ARG(names->parameter[p]));
}

void unit_print_part(Text *out, Unit *unit, const Function *function, const KernelNames *names)
{
    const Kernel *kernel = &function->entry->memory.kernel[function->kernel];
    const bool *used = unit_parameters(function->entry, unit->arena, function->kernel, function->deal);
    Text arguments = {0};
    bool threads;
    text_printf(out, "\ntypedef struct {\n");
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (used[b])
            text_printf(out, "    %s%s *" STR_FMT ";\n", kernel->buffer[b].written ? "" : "const ",
                        print_buffer_type(&kernel->buffer[b]), STR_ARG(names->buffer[b]));
    for (uint32_t p = 0; p < function->sharing.count; p++)
        text_printf(out, "    %s " STR_FMT ";\n",
                    function->sharing.parameter[p].type ? function->sharing.parameter[p].type
                    : function->wide                    ? "ptrdiff_t"
                                                        : "int",
                    STR_ARG(function->sharing.parameter[p].name));
    text_printf(out, "} " STR_FMT ";\n\n", STR_ARG(function->call));
    text_printf(out, "static void " STR_FMT "(const void *call, int32_t part, int32_t thread)\n{\n",
                STR_ARG(function->part));
    text_printf(out, "    const " STR_FMT " *const c = (const " STR_FMT " *)call;\n", STR_ARG(function->call),
                STR_ARG(function->call));
    print_arguments(&arguments, unit, function, names, &threads);
    text_printf(out, "%s    " STR_FMT "(" STR_FMT "part);\n}\n", threads ? "" : "    (void)thread;\n",
                STR_ARG(function->name), STR_ARG(text_view(&arguments)));
    text_free(&arguments);
}
