/* Finds the sections of a kernel and prints each as a __global__ function. */
#include "cuda/section.h"

/* Finding */

static bool constant_bounds(const Stmt *loop)
{
    return !loop->low.count && !loop->high.count && !loop->clamp_low && !loop->clamp_high;
}

static bool parallel(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && (stmt->loop == LOOP_PARALLEL || stmt->loop == LOOP_THREADS) &&
           constant_bounds(stmt);
}

static int64_t rounds_of(const Stmt *loop)
{
    return (loop->high.constant - loop->low.constant + loop->step - 1) / loop->step;
}

static void use_load(void *context, const Expr *load)
{
    ((Section *)context)->used[load->buffer] = true;
}

static void use_buffers(Section *section, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == STMT_STORE)
            section->used[stmt->buffer] = true;
        if (stmt->value)
            expr_loads(stmt->value, use_load, section);
        expr_loads(&(Expr){.kind = EXPR_INDEX, .index = stmt->index}, use_load, section);
        use_buffers(section, &stmt->body);
        use_buffers(section, &stmt->other);
    }
}

static void set_launch(Section *section)
{
    section->rounds = 1;
    for (uint32_t i = 0; i < section->loop_count; i++)
        section->rounds *= rounds_of(section->loop[i]);
    if (section->team) {
        section->threads = (uint32_t)rounds_of(section->team);
        section->blocks = section->rounds;
    } else {
        section->threads = section->rounds < BLOCK_THREADS ? (uint32_t)section->rounds : BLOCK_THREADS;
        section->blocks = (section->rounds + section->threads - 1) / section->threads;
    }
}

/* Goes down a nest while each loop has nothing but the next one in it. */
static void open_nest(Section *section, const Stmt *stmt)
{
    for (;;) {
        if (stmt->loop == LOOP_THREADS)
            section->team = stmt;
        else
            section->loop[section->loop_count++] = stmt;
        const Stmt *inner = stmt->body.first;
        section->body = stmt->body;
        if (section->team || !inner || inner->next || !parallel(inner))
            return;
        stmt = inner;
    }
}

uint32_t sections_of(Arena *arena, const Kernel *kernel, Section **result)
{
    Section *list = NULL;
    uint32_t count = 0, capacity = 0;
    bool straight = false; /* the last section takes statements that belong to no nest */
    for (const Stmt *stmt = kernel->body.first; stmt; stmt = stmt->next) {
        if (parallel(stmt) || !straight)
            ARENA_PUSH(arena, list, count, capacity, (Section){0});
        straight = !parallel(stmt);
        if (!straight) {
            open_nest(&list[count - 1], stmt);
            continue;
        }
        Stmt *copy = arena_copy(arena, stmt, sizeof *stmt);
        Block *body = &list[count - 1].body;
        copy->next = NULL;
        if (body->last)
            body->last->next = copy;
        else
            body->first = copy;
        body->last = copy;
    }
    for (uint32_t i = 0; i < count; i++) {
        set_launch(&list[i]);
        list[i].used = ARENA_ARRAY(arena, bool, kernel->buffer_count);
        use_buffers(&list[i], &list[i].body);
    }
    *result = list;
    return count;
}

/* Printing */

/* const int i1 = round / 24 % 32; */
static void print_positions(Printer *printer, const Section *section, Str round)
{
    int64_t inner = section->rounds;
    for (uint32_t i = 0; i < section->loop_count; i++) {
        const Stmt *loop = section->loop[i];
        int64_t rounds = rounds_of(loop);
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
        print_line(printer, "const %s " STR_FMT " = " STR_FMT ";", index_type(printer), STR_ARG(name), STR_ARG(at));
    }
}

/* Which round of the loops this thread, or this block of threads, carries out. */
static void print_round(Printer *printer, const Section *section)
{
    const char *type = index_type(printer);
    static const Var round = {"round", 0, 0}, block = {"block", 0, 0};
    const Stmt *only = NULL; /* the loop of more than one round, when it is one and counts from 0 */
    for (uint32_t i = 0; i < section->loop_count; i++)
        if (rounds_of(section->loop[i]) == section->rounds && section->loop[i]->step == 1 &&
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

static void print_parameters(Printer *printer, const Section *section, const bool *aliased, const bool *global)
{
    const Kernel *kernel = printer->kernel;
    const char *comma = "";
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &kernel->buffer[b];
        if (!section->used[b] || global[b] || buffer->shared)
            continue;
        text_printf(printer->out, "%s%s%s *%s" STR_FMT, comma, buffer->written ? "" : "const ", c_type(buffer->dtype),
                    aliased[b] ? "" : "__restrict__ ", STR_ARG(printer->names->buffer[b]));
        comma = ", ";
    }
}

static void print_shared(Printer *printer, const Section *section)
{
    for (uint32_t b = 0; b < printer->kernel->buffer_count; b++) {
        const KernelBuffer *buffer = &printer->kernel->buffer[b];
        if (section->used[b] && buffer->shared)
            print_line(printer, "__shared__ %s " STR_FMT "[%lld];", c_type(buffer->dtype),
                       STR_ARG(printer->names->buffer[b]), (long long)buffer->shared);
    }
}

void print_section(Printer *printer, const Section *section, const bool *aliased, const bool *global)
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
