#include "c/print.h"

#include "c/crosswise.h"
#include "c/expr.h"
#include "c/source.h"

#include <string.h>

/* So many loops of a kernel may be cut at the edges of an image before its addresses are held: by one loop over rows,
 * or by several, as the phases of a transposed convolution have them.  Of more, clang 14 compares what each address is
 * made of with the bounds of all loops, for up to a minute; one that is held is just a number to it. */
#define MOST_CUT            28
#define MOST_CUT_BY_SEVERAL 7

/* At an edge of an image, not where the last round of several ends. */
static bool is_cut(const Stmt *stmt)
{
    return (stmt->clamp_low || stmt->clamp_high) && !stmt->low.count;
}

static bool is_cut_by(const Stmt *stmt, const Var *var)
{
    return is_cut(stmt) && ((stmt->clamp_low && index_uses(stmt->low_least, var)) ||
                            (stmt->clamp_high && index_uses(stmt->high_most, var)));
}

/* How many loops of the block are cut; by `var`, if there is one. */
static uint32_t cut_loops(const Block *block, const Var *var)
{
    uint32_t count = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        count +=
            (var ? is_cut_by(stmt, var) : is_cut(stmt)) + cut_loops(&stmt->body, var) + cut_loops(&stmt->other, var);
    return count;
}

/* How many loops cut others? */
static uint32_t cutting_loops(const Block *block)
{
    uint32_t count = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        count += (stmt->kind == STMT_FOR && cut_loops(&stmt->body, stmt->var)) + cutting_loops(&stmt->body) +
                 cutting_loops(&stmt->other);
    return count;
}

static bool holds_addresses(const Printer *printer)
{
    const Block *body = &printer->kernel->body;
    uint32_t most = cutting_loops(body) > 1 ? MOST_CUT_BY_SEVERAL : MOST_CUT;
    return printer->target->dialect != DIALECT_CUDA && cut_loops(body, NULL) > most;
}

/* An index is of the positions' type; all else that an i64 takes has 64 bits. */
static bool declares_wide(const Stmt *stmt)
{
    const Local *local = stmt->local;
    bool index = stmt->value && stmt->value->kind == EXPR_INDEX && !local->lanes;
    return local->dtype == DT_I64 && !index;
}

/* Which locals change after their declaration, which are wide, and do positions fit an int? */
static void survey(Printer *printer, const Block *block)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        if (stmt->kind == STMT_LOCAL)
            printer->wide_local[stmt->local->id] = declares_wide(stmt);
        if ((stmt->kind == STMT_ASSIGN || stmt->kind == STMT_REDUCE || stmt->kind == STMT_MEET) && stmt->local)
            printer->assigned[stmt->local->id] = true;
        printer->wide |= index_high(stmt->index) > INT32_MAX;
        survey(printer, &stmt->body);
        survey(printer, &stmt->other);
    }
}

void print_start(Printer *printer)
{
    const Kernel *kernel = printer->kernel;
    printer->local_name = ARENA_ARRAY(printer->arena, Str, block_locals(&kernel->body) + 1);
    printer->scope_count = 0;
    printer->last_number = (Map){.arena = printer->arena};
    printer->assigned = ARENA_ARRAY(printer->arena, bool, block_locals(&kernel->body) + 1);
    printer->wide_local = ARENA_ARRAY(printer->arena, bool, block_locals(&kernel->body) + 1);
    survey(printer, &kernel->body);
    printer->wide |= kernel->bytes > INT32_MAX;
    /* Of an int clang makes an address at each load, or a base of its own that goes on with the loop. */
    printer->wide |= printer->target->dialect == DIALECT_VECTOR;
    printer->holds = holds_addresses(printer);
}

static bool has_loop(const Block *block, LoopKind kind)
{
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next)
        if ((stmt->kind == STMT_FOR && stmt->loop == kind) || has_loop(&stmt->body, kind) ||
            has_loop(&stmt->other, kind))
            return true;
    return false;
}

uint32_t *print_itself(Arena *arena, const Kernel *kernel)
{
    uint32_t *itself = ARENA_ARRAY(arena, uint32_t, kernel->buffer_count);
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        itself[b] = b;
    return itself;
}

const bool *print_used(Arena *arena, const Kernel *kernel, const Deal *deal, const uint32_t *inplace)
{
    bool *used = ARENA_ARRAY(arena, bool, kernel->buffer_count);
    memset(used, !deal, kernel->buffer_count);
    if (deal)
        block_buffers(&deal->body, used);
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (inplace[b] != b) {
            used[inplace[b]] |= used[b];
            used[b] = false;
        }
    return used;
}

/* Says how many there are. */
static uint32_t put_parameters(Printer *printer, const Deal *deal, KernelMemory memory)
{
    const Kernel *kernel = printer->kernel;
    const bool *used = print_used(printer->arena, kernel, deal, memory.inplace);
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel->buffer_count; i++) {
        const KernelBuffer *buffer = &kernel->buffer[i];
        if (used[i])
            text_printf(printer->out, "%s%s%s *%s" STR_FMT, count++ ? ", " : "", buffer->written ? "" : "const ",
                        print_buffer_type(buffer), memory.aliased[i] ? "" : "NNC_RESTRICT ",
                        STR_ARG(printer->names->buffer[i]));
    }
    for (uint32_t i = 0; i < printer->names->parameters; i++)
        text_printf(printer->out, "%s%s " STR_FMT, count++ ? ", " : "",
                    printer->names->type[i] ? printer->names->type[i] : print_index_type(printer),
                    STR_ARG(printer->names->parameter[i]));
    if (deal && deal->part) {
        Str part = print_push(printer, deal->part);
        text_printf(printer->out, "%sint " STR_FMT, count++ ? ", " : "", STR_ARG(part));
    }
    return count;
}

void print_kernel(Text *out, Arena *arena, const Target *target, const Kernel *kernel, const Deal *deal,
                  const KernelNames *names, KernelMemory memory, Constants *constants, PreludeNeeds *needs)
{
    Printer printer = {.out = out,
                       .arena = arena,
                       .target = target,
                       .kernel = kernel,
                       .names = names,
                       .needs = needs,
                       .constants = constants};
    print_start(&printer);
    if (constants)
        constants->wide = printer.wide;

    /* Inlined into its caller a kernel's pointers lose `restrict` in gcc, and its sums their registers. */
    const char *apart = target->dialect == DIALECT_VECTOR ? "__attribute__((noinline))\n"
                        : printer.holds                   ? "NNC_APART\n"
                                                          : "";
    needs->held |= printer.holds;
    bool careful = crosswise_reads(kernel, arena), in_order = has_loop(&kernel->body, LOOP_IN_ORDER);
    needs->careful |= careful;
    needs->in_order |= in_order;
    text_printf(out, "%s%s%sstatic void " STR_FMT "(", apart, careful ? "NNC_CAREFUL\n" : "",
                in_order ? "NNC_IN_ORDER\n" : "", STR_ARG(names->function));
    uint32_t count = put_parameters(&printer, deal, memory);
    text_printf(out, "%s)", count ? "" : "void");
    source_break_list(out);
    text_printf(out, "\n{\n");
    printer.indent = 1;
    print_block(&printer, deal ? &deal->body : &kernel->body);
    text_printf(out, "}\n");
}
