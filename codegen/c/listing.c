/* The kernels for people: of each the way it is computed, its work, its loops with their rounds; then their functions.
 */
#include <inttypes.h>

#include "c/print.h"
#include "c/unit.h"
#include "plan/report.h"

static void put_recipe(Text *out, const Recipe *recipe)
{
    const KnobSpec *spec = recipe->provider->knob;
    text_printf(out, ", %s", recipe->provider->name);
    for (uint32_t k = 0; spec && spec[k].name; k++)
        if (!knob_is_flag(&spec[k]))
            text_printf(out, ", %s = %" PRId64, spec[k].name, recipe->knob[k]);
        else if (recipe->knob[k] > 0)
            text_printf(out, ", %s", spec[k].name);
}

/* The rounds of a loop; where its bounds move, of its longest run. */
static int64_t rounds_of(Arena *arena, const Stmt *loop, bool *exact)
{
    Index span = index_add(arena, loop->high, index_scale(arena, loop->low, -1));
    int64_t rounds = (index_high(span) + loop->step - 1) / loop->step;
    *exact = index_low(span) == index_high(span) && !loop->clamp_low && !loop->clamp_high;
    return rounds;
}

static void put_loops(Text *out, Arena *arena, const Block *block, int depth);

/* A loop with those inside it. */
static Text loop_text(Arena *arena, const Stmt *loop, int depth)
{
    Text text = {0};
    bool exact;
    int64_t rounds = rounds_of(arena, loop, &exact);
    text_printf(&text, " *   %*s%s: %s%" PRId64 "\n", 2 * depth, "", loop->var->name, exact ? "" : "at most ", rounds);
    put_loops(&text, arena, &loop->body, depth + 1);
    return text;
}

/* Loops that stand one after another and are alike are told once, with how many there are. */
static void put_run(Text *out, const Text *loop, uint32_t count, int depth)
{
    text_str(out, text_view(loop));
    if (count > 1)
        text_printf(out, " *   %*s... %u loops like this\n", 2 * depth, "", count);
}

static void put_loops(Text *out, Arena *arena, const Block *block, int depth)
{
    Text last = {0};
    uint32_t count = 0;
    for (const Stmt *stmt = block->first; stmt; stmt = stmt->next) {
        Text now = {0};
        if (stmt->kind == STMT_FOR)
            now = loop_text(arena, stmt, depth);
        else {
            put_loops(&now, arena, &stmt->body, depth);
            put_loops(&now, arena, &stmt->other, depth);
        }
        if (!now.len)
            continue;
        if (count && !str_eq(text_view(&now), text_view(&last))) {
            put_run(out, &last, count, depth);
            count = 0;
        }
        count++;
        text_free(&last);
        last = now;
    }
    if (count)
        put_run(out, &last, count, depth);
    text_free(&last);
}

static void put_kernel(Text *out, Arena *arena, const Kernel *kernel, uint32_t number)
{
    char flops[32], bytes[32];
    text_printf(out, "/* kernel %u: " STR_FMT, number, STR_ARG(kernel->name));
    if (kernel->recipe.provider)
        put_recipe(out, &kernel->recipe);
    text_printf(out, "\n * %s flops, %s bytes read and written", plan_digits(flops, kernel->flops),
                plan_digits(bytes, kernel->bytes));
    if (kernel->bytes)
        text_printf(out, ", %.2f flops for each", (double)kernel->flops / (double)kernel->bytes);
    text_char(out, '\n');
    put_loops(out, arena, &kernel->body, 0);
    text_printf(out, " */\n");
}

void emit_kernels(const Program *program, Text *out)
{
    Arena arena = {0};
    Unit unit;
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Memory *memory = &program->entry[e].memory;
        if (program->entry_count > 1)
            text_printf(out, "/* " STR_FMT " */\n", STR_ARG(program->entry[e].name));
        for (uint32_t k = 0; k < memory->kernel_count; k++)
            put_kernel(out, &arena, &memory->kernel[k], k);
    }
    text_char(out, '\n');
    unit_make(&unit, program, &arena);
    unit_print_functions(out, &unit);
    arena_free(&arena);
}
