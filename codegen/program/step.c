#include "program/step.h"

#include "ops/meaning.h"

static bool constant_bounds(const Stmt *loop)
{
    return !loop->low.count && !loop->high.count && !loop->clamp_low && !loop->clamp_high;
}

static bool is_parallel(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR && (stmt->loop == LOOP_PARALLEL || stmt->loop == LOOP_THREADS) &&
           constant_bounds(stmt);
}

static void set_launch(Section *section)
{
    section->rounds = 1;
    for (uint32_t i = 0; i < section->loop_count; i++)
        section->rounds *= stmt_rounds(section->loop[i]);
    if (section->team) {
        section->threads = (uint32_t)stmt_rounds(section->team);
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
        block_buffers(&list[i].body, list[i].used);
    }
    *result = list;
    return count;
}

/* The tree */

typedef struct Planter {
    const Graph *graph;
    const Target *target;
    const Kernel *kernel;
    uint32_t count, at; /* the kernel that comes next */
    uint32_t launches;
    bool good;
} Planter;

static Arena *arena_of(const Planter *p)
{
    return p->graph->module->arena;
}

static FlowKind flow_at(const Planter *p)
{
    return p->at < p->count ? node_flow(&p->graph->node[p->kernel[p->at].node[0]]) : FLOW_NONE;
}

static void add_launch(Planter *p, StepList *list, Step step)
{
    step.kind = STEP_LAUNCH;
    step.number = p->launches++;
    ARENA_PUSH(arena_of(p), list->step, list->count, list->capacity, step);
}

static void add_sections(Planter *p, StepList *list, uint32_t k)
{
    Section *section = NULL;
    uint32_t sections = sections_of(arena_of(p), &p->kernel[k], &section);
    for (uint32_t i = 0; i < sections; i++) {
        if (section[i].blocks > MOST_BLOCKS)
            p->good = diag_error(p->graph->module->diag, p->graph->node[p->kernel[k].node[0]].place,
                                 "too many elements for one CUDA grid");
        if (section[i].rounds)
            add_launch(p, list, (Step){.kernel = k, .section = &section[i]});
    }
}

static void add_kernel(Planter *p, StepList *list)
{
    uint32_t k = p->at++;
    const Kernel *kernel = &p->kernel[k];
    if (kernel->there)
        return;
    if (p->target->dialect == DIALECT_CUDA)
        add_sections(p, list, k);
    else if (!kernel->deal_count)
        add_launch(p, list, (Step){.kernel = k});
    for (uint32_t i = 0; i < kernel->deal_count; i++)
        add_launch(p, list, (Step){.kernel = k, .deal = &kernel->deal[i]});
}

static void plant(Planter *p, StepList *list);

static void add_loop(Planter *p, StepList *list)
{
    Step step = {.kind = STEP_LOOP, .kernel = p->at++, .test = NONE, .body_count = 2};
    step.body = ARENA_ARRAY(arena_of(p), StepList, 2);
    plant(p, &step.body[0]);
    if (flow_at(p) == FLOW_LOOP_TEST) {
        step.test = p->at++;
        plant(p, &step.body[1]);
    } else { /* tested at the end: all is the round */
        step.body[1] = step.body[0];
        step.body[0] = (StepList){0};
    }
    step.end = p->at++;
    ARENA_PUSH(arena_of(p), list->step, list->count, list->capacity, step);
}

static void add_branches(Planter *p, StepList *list)
{
    Step step = {.kind = STEP_BRANCH, .kernel = p->at};
    uint32_t capacity = 0;
    do {
        p->at++;
        ARENA_PUSH(arena_of(p), step.body, step.body_count, capacity, (StepList){0});
        plant(p, &step.body[step.body_count - 1]);
    } while (flow_at(p) == FLOW_BRANCH_NEXT);
    step.end = p->at++;
    ARENA_PUSH(arena_of(p), list->step, list->count, list->capacity, step);
}

/* Up to where the body ends in which the list stands.  Recurses over the nesting of loops and branches. */
static void plant(Planter *p, StepList *list)
{
    while (p->at < p->count)
        switch (flow_at(p)) {
        case FLOW_NONE:
            add_kernel(p, list);
            break;
        case FLOW_LOOP_BEGIN:
            add_loop(p, list);
            break;
        case FLOW_BRANCH_BEGIN:
            add_branches(p, list);
            break;
        default:
            return;
        }
}

/* What is kept and has been made elsewhere than where it was. */
static void end_run(const Planter *p, const Memory *memory, StepList *list)
{
    for (uint32_t i = 0; i < memory->state_count; i++) {
        const Storage *storage = &memory->storage.at[memory->state[i].value];
        bool turns = storage->role == STORAGE_STATE && p->target->dialect != DIALECT_CUDA;
        Step step = {.kind = turns ? STEP_TURN : STEP_COPY, .state = i};
        if (memory->state[i].twice && storage->bytes)
            ARENA_PUSH(arena_of(p), list->step, list->count, list->capacity, step);
    }
}

bool step_tree(const Memory *memory, const Target *target, Steps *steps)
{
    Planter p = {.graph = memory->graph,
                 .target = target,
                 .kernel = memory->kernel,
                 .count = memory->kernel_count,
                 .good = true};
    *steps = (Steps){{0}, 0};
    plant(&p, &steps->list);
    steps->launches = p.launches;
    end_run(&p, memory, &steps->list);
    return p.good;
}
