#include "program/step.h"

static bool constant_bounds(const Stmt *loop)
{
    return !loop->low.count && !loop->high.count && !loop->clamp_low && !loop->clamp_high;
}

static bool is_parallel(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && (stmt->loop == LOOP_PARALLEL || stmt->loop == LOOP_THREADS) &&
           constant_bounds(stmt);
}

int64_t step_rounds(const Stmt *loop)
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
        section->rounds *= step_rounds(section->loop[i]);
    if (section->team) {
        section->threads = (uint32_t)step_rounds(section->team);
        section->blocks = section->rounds;
    } else {
        section->threads = section->rounds < BLOCK_THREADS ? (uint32_t)section->rounds : BLOCK_THREADS;
        section->blocks = section->threads ? (section->rounds + section->threads - 1) / section->threads : 0;
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
        if (section->team || !inner || inner->next || !is_parallel(inner))
            return;
        stmt = inner;
    }
}

static void append(Arena *arena, Block *body, const Stmt *stmt)
{
    Stmt *copy = arena_copy(arena, stmt, sizeof *stmt);
    copy->next = NULL;
    if (body->last)
        body->last->next = copy;
    else
        body->first = copy;
    body->last = copy;
}

static uint32_t sections_of(Arena *arena, const Kernel *kernel, Section **result)
{
    Section *list = NULL;
    uint32_t count = 0, capacity = 0;
    bool straight = false; /* the last section takes statements that belong to no nest */
    for (const Stmt *stmt = kernel->body.first; stmt; stmt = stmt->next) {
        if (is_parallel(stmt) || !straight)
            ARENA_PUSH(arena, list, count, capacity, (Section){0});
        straight = !is_parallel(stmt);
        if (straight)
            append(arena, &list[count - 1].body, stmt);
        else
            open_nest(&list[count - 1], stmt);
    }
    for (uint32_t i = 0; i < count; i++) {
        set_launch(&list[i]);
        list[i].used = ARENA_ARRAY(arena, bool, kernel->buffer_count);
        use_buffers(&list[i], &list[i].body);
    }
    *result = list;
    return count;
}

uint32_t step_list(const Graph *graph, const Target *target, const Kernel *kernel, uint32_t count, Step **step)
{
    Arena *arena = graph->module->arena;
    uint32_t steps = 0, capacity = 0;
    *step = NULL;
    for (uint32_t k = 0; k < count; k++) {
        Section *section = NULL;
        uint32_t sections = target->dialect == DIALECT_CUDA ? sections_of(arena, &kernel[k], &section) : 1;
        for (uint32_t i = 0; i < sections; i++) {
            if (section && section[i].blocks > MOST_BLOCKS) {
                diag_error(graph->module->diag, graph->node[kernel[k].node[0]].place,
                           "too many elements for one CUDA grid");
                return 0;
            }
            if (!section || section[i].rounds)
                ARENA_PUSH(arena, *step, steps, capacity, ((Step){k, section ? &section[i] : NULL}));
        }
    }
    return steps;
}
