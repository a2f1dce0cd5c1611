/* Prints each section of a kernel as a __global__ function. */
#include "cuda/section.h"

/* const int i1 = round / 24 % 32; */
static void print_positions(Printer *printer, const Section *section, Str round)
{
    int64_t inner = section->rounds;
    for (uint32_t i = 0; i < section->loop_count; i++) {
        const Stmt *loop = section->loop[i];
        int64_t rounds = stmt_rounds(loop);
        if (rounds == 1) /* its one position stands as a number wherever it is used */
            continue;
        inner /= rounds;
        Str at = inner == 1 ? round : str_format(printer->arena, STR_FMT " / %lld", STR_ARG(round), (long long)inner);
        bool first = inner * rounds == section->rounds;
        if (!first)
            at = str_format(printer->arena, STR_FMT " %% %lld", STR_ARG(at), (long long)rounds);
        if (loop->step != 1)
            at = str_format(printer->arena, !first || inner > 1 ? "(" STR_FMT ") * %lld" : STR_FMT " * %lld",
                            STR_ARG(at), (long long)loop->step);
        if (loop->low.constant)
            at = str_format(printer->arena, STR_FMT " + %lld", STR_ARG(at), (long long)loop->low.constant);
        Str name = print_push(printer, loop->var);
        print_line(printer, "const %s " STR_FMT " = " STR_FMT ";", print_index_type(printer), STR_ARG(name),
                   STR_ARG(at));
    }
}

/* Which round of the loops this thread, or this block of threads, carries out. */
static void print_round(Printer *printer, const Section *section)
{
    const char *type = print_index_type(printer);
    static const Var round = {"round", 0, 0}, block = {"block", 0, 0};
    const Stmt *only = NULL; /* the loop of more than one round, when it is one and counts from 0 */
    for (uint32_t i = 0; i < section->loop_count; i++)
        if (stmt_rounds(section->loop[i]) == section->rounds && section->loop[i]->step == 1 &&
            !section->loop[i]->low.constant)
            only = section->loop[i];
    const Var *var = only ? only->var : section->team ? &block : &round;
    if (section->rounds > 1) {
        Str name = print_push(printer, var);
        if (section->team)
            print_line(printer, "const %s " STR_FMT " = (%s)blockIdx.x;", type, STR_ARG(name), type);
        else {
            print_line(printer, "const %s " STR_FMT " = (%s)%sblockIdx.x * %u + threadIdx.x%s;", type, STR_ARG(name),
                       type, printer->wide ? "" : "(", section->threads, printer->wide ? "" : ")");
            if (section->rounds % section->threads)
                print_line(printer, "if (" STR_FMT " >= %lld)\n        return;", STR_ARG(name),
                           (long long)section->rounds);
        }
        if (!only)
            print_positions(printer, section, name);
    }
    if (section->team) {
        Str name = print_push(printer, section->team->var);
        print_line(printer, "const %s " STR_FMT " = (%s)threadIdx.x;", type, STR_ARG(name), type);
    }
}

static bool is_shared(const KernelBuffer *buffer)
{
    return buffer->shared > 0;
}

static void print_parameters(Printer *printer, const Section *section, const bool *aliased, const bool *global)
{
    const Kernel *kernel = printer->kernel;
    const char *comma = "";
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        if (!section->used[b] || global[b] || is_shared(buffer))
            continue;
        text_printf(printer->out, "%s%s%s *%s" STR_FMT, comma, buffer->written ? "" : "const ",
                    print_buffer_type(buffer), aliased[b] ? "" : "__restrict__ ", STR_ARG(printer->names->buffer[b]));
        comma = ", ";
    }
}

static void print_shared(Printer *printer, const Section *section)
{
    for (uint32_t b = 0; b < printer->kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &printer->kernel->buffer[b];
        if (section->used[b] && is_shared(buffer))
            print_line(printer, "__shared__ __align__(16) %s " STR_FMT "[%lld];", prelude_c_type(buffer->dtype),
                       STR_ARG(printer->names->buffer[b]), (long long)buffer->shared);
    }
}

void cuda_print_section(Printer *printer, const Section *section, const bool *aliased, const bool *global)
{
    print_start(printer);
    printer->wide |= section->rounds > INT32_MAX - BLOCK_THREADS;
    text_printf(printer->out, "static __global__ void __launch_bounds__(%u) " STR_FMT "(", section->threads,
                STR_ARG(printer->names->function));
    print_parameters(printer, section, aliased, global);
    text_printf(printer->out, ")\n{\n");
    printer->indent = 1;
    print_shared(printer, section);
    print_round(printer, section);
    print_block(printer, &section->body);
    printer->depth = 0;
    text_printf(printer->out, "}\n");
}
