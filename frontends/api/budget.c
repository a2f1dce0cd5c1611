#include "api/budget.h"

#include "api/report.h"
#include "base/names.h"
#include "base/number.h"
#include "c/unit.h"
#include "codegen/target.h"
#include "ops/meaning.h"

#define FUNCTION UINT32_MAX /* beside the roles of storage */

typedef struct Gathering {
    Arena *arena;
    Budget *budget;
    const Entry *entry;
    uint32_t number;  /* of the entry */
    const Unit *unit; /* NULL: the source has no functions of C */
    uint32_t *layer_of_call;
    Names names;        /* of the entry's layers */
    Map met;            /* inputs, outputs and functions, by layer */
    bool *weights;      /* per array: some layer has it */
    int64_t *live;      /* bytes in the arena, per step */
    uint32_t *layer_of; /* per kernel, of which a launch was seen: its layer; else NONE */
} Gathering;

/* Layers */

static uint32_t outermost_call(const Graph *graph, const Node *node)
{
    uint32_t call = node->from;
    while (call != NONE && graph->inlined[call].outer != NONE)
        call = graph->inlined[call].outer;
    return call;
}

static uint32_t call_of_kernel(const Graph *graph, const Kernel *kernel)
{
    uint32_t call = NONE;
    if (kernel->anchor != NONE)
        return outermost_call(graph, &graph->node[kernel->anchor]);
    for (uint32_t n = 0; n < kernel->node_count && call == NONE; n++)
        call = outermost_call(graph, &graph->node[kernel->node[n]]);
    return call;
}

static Str layer_name(Gathering *g, const Kernel *kernel, uint32_t call)
{
    const Call *of = call == NONE ? NULL : g->entry->graph->inlined[call].call;
    Str plain = !of ? kernel->name : of->label.len ? of->label : of->name;
    return names_add(&g->names, g->arena, plain, '.', 0);
}

static uint32_t layer_of_kernel(Gathering *g, const Kernel *kernel)
{
    Budget *b = g->budget;
    uint32_t call = call_of_kernel(g->entry->graph, kernel);
    if (call != NONE && g->layer_of_call[call] != NONE)
        return g->layer_of_call[call];
    BudgetLayer layer = {
        .name = layer_name(g, kernel, call), .entry = g->number, .stack = BUDGET_UNKNOWN, .code = BUDGET_UNKNOWN};
    ARENA_PUSH(g->arena, b->layer, b->layer_count, b->layer_capacity, layer);
    if (call != NONE)
        g->layer_of_call[call] = b->layer_count - 1;
    return b->layer_count - 1;
}

/* What kernels add to their layers */

static int64_t kernel_macs(const Graph *graph, const Kernel *kernel)
{
    int64_t macs = 0;
    for (uint32_t n = 0; n < kernel->node_count; n++)
        macs = number_plus(macs, node_macs(graph, &graph->node[kernel->node[n]]));
    return macs;
}

static bool is_first(Gathering *g, uint32_t layer, uint32_t kind, uint32_t index)
{
    uint32_t key[] = {layer, kind, index};
    return map_add(&g->met, str_copy(g->arena, map_key(key, sizeof key)), 0);
}

static void add_buffer(Gathering *g, uint32_t layer, const Storage *storage)
{
    BudgetLayer *to = &g->budget->layer[layer];
    if (storage->role == STORAGE_WEIGHTS && !g->weights[storage->index]) {
        g->weights[storage->index] = true;
        to->weights += g->entry->program->weights[storage->index].bytes;
    } else if (storage->role == STORAGE_INPUT && is_first(g, layer, storage->role, storage->index))
        to->inputs += storage->bytes;
    else if (storage->role == STORAGE_OUTPUT && is_first(g, layer, storage->role, storage->index))
        to->outputs += storage->bytes;
}

static void add_function(Gathering *g, const Step *launch)
{
    uint32_t layer = g->layer_of[launch->kernel];
    BudgetLayer *to = &g->budget->layer[layer];
    uint32_t function = g->unit->of_step[g->number][launch->number].function;
    if (is_first(g, layer, FUNCTION, function))
        ARENA_PUSH(g->arena, to->function, to->function_count, to->function_capacity, function);
}

static void add_kernel(Gathering *g, uint32_t k, int64_t rounds, bool per_round)
{
    const Kernel *kernel = &g->entry->memory.kernel[k];
    if (g->layer_of[k] != NONE) /* sections and deals of one are several launches */
        return;
    uint32_t layer = g->layer_of[k] = layer_of_kernel(g, kernel);
    BudgetLayer *to = &g->budget->layer[layer];
    int64_t macs = number_times(kernel_macs(g->entry->graph, kernel), rounds);
    to->kernels++;
    to->macs = number_plus(to->macs, macs);
    to->per_round |= per_round && macs;
    to->arena = most(to->arena, g->live[k]);
    for (uint32_t i = 0; i < kernel->buffer_count; i++)
        add_buffer(g, layer, entry_storage(g->entry, kernel->buffer[i].storage));
}

/* Recurses over the nesting of loops and branches. */
static void add_steps(Gathering *g, const StepList *list, int64_t rounds, bool per_round)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const Step *step = &list->step[i];
        const Kernel *kernel = &g->entry->memory.kernel[step->kernel];
        int64_t own = step->kind == STEP_LOOP ? flow_most_rounds(&g->entry->graph->node[kernel->node[0]]) : 1;
        if (step->kind == STEP_LAUNCH)
            add_kernel(g, step->kernel, rounds, per_round);
        if (step->kind == STEP_LAUNCH && g->unit)
            add_function(g, step);
        for (uint32_t s = 0; s < step->body_count; s++)
            add_steps(g, &step->body[s], number_times(rounds, own ? own : 1), per_round || !own);
    }
}

/* Entries */

/* What is live at each step, from the levels at which it changes. */
static int64_t *live_bytes(Arena *arena, const Entry *entry)
{
    PlanReport report = report_of_entry(arena, entry);
    PlanLevel *level;
    uint32_t count = plan_report_levels(arena, &report, PLAN_NO_ROW, &level), at = 0;
    int64_t *live = ARENA_ARRAY(arena, int64_t, report.step_count + 1), now = 0;
    for (int64_t step = 0; step < report.step_count; step++) {
        for (; at < count && level[at].step <= step; at++)
            now = level[at].live;
        live[step] = now;
    }
    return live;
}

static BudgetEntry describe_entry(Arena *arena, const Entry *entry)
{
    const Graph *graph = entry->graph;
    BudgetEntry to = {.name = entry->name,
                      .function = source_entry_name(entry, arena),
                      .descriptor = str_format(arena, "run" STR_FMT, STR_ARG(source_entry_suffix(entry, arena))),
                      .arena = entry->memory.plan.peak,
                      .stack = BUDGET_UNKNOWN};
    for (uint32_t i = 0; i < graph->input_count; i++)
        to.inputs += type_bytes(value_type(graph, graph->input[i]));
    for (uint32_t i = 0; i < graph->output_count; i++)
        to.outputs += type_bytes(value_type(graph, graph->output[i].value));
    return to;
}

static uint32_t *nothing(Arena *arena, uint32_t count)
{
    uint32_t *list = ARENA_ARRAY(arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; i++)
        list[i] = NONE;
    return list;
}

static void gather_entry(Gathering *g, BudgetEntry *to)
{
    uint32_t first = g->budget->layer_count;
    g->layer_of_call = nothing(g->arena, g->entry->graph->inlined_count);
    g->names = (Names){0};
    g->live = live_bytes(g->arena, g->entry);
    g->layer_of = ARENA_ARRAY(g->arena, uint32_t, g->entry->memory.kernel_count + 1);
    for (uint32_t k = 0; k < g->entry->memory.kernel_count; k++)
        g->layer_of[k] = NONE;
    *to = describe_entry(g->arena, g->entry);
    add_steps(g, &g->entry->steps.list, 1, false);
    for (uint32_t i = first; i < g->budget->layer_count; i++) {
        to->macs = number_plus(to->macs, g->budget->layer[i].macs);
        to->per_round |= g->budget->layer[i].per_round;
    }
}

static void list_functions(Arena *arena, Budget *b, const Unit *unit)
{
    b->function_count = unit->function_count;
    b->function = ARENA_ARRAY(arena, BudgetFunction, unit->function_count + 1);
    for (uint32_t f = 0; f < unit->function_count; f++)
        b->function[f] = (BudgetFunction){unit->function[f].name, BUDGET_UNKNOWN, BUDGET_UNKNOWN};
}

Budget budget_of_program(Arena *arena, const Program *program)
{
    Budget b = {.program = program, .entry_count = program->entry_count};
    Unit unit;
    bool is_c = program->options.target->dialect != DIALECT_CUDA;
    Gathering g = {.arena = arena, .budget = &b, .unit = is_c ? &unit : NULL, .met = {.arena = arena}};

    b.entry = ARENA_ARRAY(arena, BudgetEntry, b.entry_count);
    g.weights = ARENA_ARRAY(arena, bool, program->weight_count + 1);
    if (is_c) {
        unit_make(&unit, program, arena);
        list_functions(arena, &b, &unit);
    }
    b.widest = b.entry;
    for (uint32_t e = 0; e < b.entry_count; e++) {
        g.entry = &program->entry[e];
        g.number = e;
        gather_entry(&g, &b.entry[e]);
        if (b.entry[e].inputs + b.entry[e].outputs > b.widest->inputs + b.widest->outputs)
            b.widest = &b.entry[e];
    }
    return b;
}

void budget_settle(Budget *b)
{
    Arena scratch = {0};
    bool *counted = ARENA_ARRAY(&scratch, bool, b->function_count + 1);
    for (uint32_t i = 0; i < b->layer_count; i++) {
        BudgetLayer *layer = &b->layer[i];
        for (uint32_t f = 0; f < layer->function_count; f++) {
            const BudgetFunction *function = &b->function[layer->function[f]];
            layer->stack = most(layer->stack, function->stack);
            if (function->code == BUDGET_UNKNOWN)
                continue;
            layer->code = most(layer->code, 0) + (counted[layer->function[f]] ? 0 : function->code);
            counted[layer->function[f]] = true;
        }
    }
    arena_free(&scratch);
}

/* Sums */

int64_t budget_stack(const Budget *b)
{
    int64_t stack = BUDGET_UNKNOWN;
    for (uint32_t e = 0; e < b->entry_count; e++)
        stack = most(stack, b->entry[e].stack);
    return stack;
}

int64_t budget_ram(const Budget *b)
{
    const Program *p = b->program;
    int64_t measured = b->compiler.len ? budget_stack(b) + b->data + b->zero : 0;
    int64_t kept = p->kept.bytes[BLOCK_PARAMS] + p->kept.bytes[BLOCK_STATE];
    return p->arena_bytes + kept + b->widest->inputs + b->widest->outputs + measured;
}

int64_t budget_flash(const Budget *b)
{
    return program_weights_stored(b->program) + (b->compiler.len ? b->text + b->data : 0);
}

typedef int64_t Share(const BudgetLayer *layer);

static int64_t ram_of(const BudgetLayer *layer)
{
    return layer->arena + most(layer->stack, 0);
}

static int64_t flash_of(const BudgetLayer *layer)
{
    return layer->weights + most(layer->code, 0);
}

static const BudgetLayer *largest(const Budget *b, Share *share)
{
    const BudgetLayer *found = b->layer_count ? b->layer : NULL;
    for (uint32_t i = 1; i < b->layer_count; i++)
        if (share(&b->layer[i]) > share(found))
            found = &b->layer[i];
    return found;
}

const BudgetLayer *budget_ram_blame(const Budget *b)
{
    return largest(b, ram_of);
}

const BudgetLayer *budget_flash_blame(const Budget *b)
{
    return largest(b, flash_of);
}
