/* Are the lives that were planned those that the schedule needs?
 *
 * The plan's buffers come from the kernels' lists of the arrays they touch.  Here lives are found anew from what the
 * nodes read and write, in their final order, and compared.  plan_check then only has to compare offsets. */
#include "program.h"

typedef struct Need {
    int64_t first, last; /* kernels [first, last); first < 0: no kernel makes it */
} Need;

/* Views that stand alone hold no bytes: who reads one reads what it looks at. */
static ValueId looked_at(const Graph *graph, ValueId value)
{
    while (value_is_inline(graph, value) && graph->node[graph->value[value].node].in_count)
        value = graph->node[graph->value[value].node].in[0];
    return value;
}

/* The value whose memory it is: of parts, the outermost whole. */
static ValueId outermost(const Program *program, ValueId value)
{
    while (program->placement[value].owner != NONE)
        value = program->placement[value].owner;
    return value;
}

/* A whole is needed from the first part that is made to the last that is read. */
static void join_parts(const Program *program, Need *need)
{
    for (ValueId v = 0; v < program->graph->value_count; v++) {
        ValueId whole = outermost(program, v);
        if (whole == v || need[v].first < 0)
            continue;
        if (need[whole].first < 0 || need[v].first < need[whole].first)
            need[whole].first = need[v].first;
        if (need[v].last > need[whole].last)
            need[whole].last = need[v].last;
    }
}

static Need *find_needs(const Program *program, Arena *arena)
{
    const Graph *graph = program->graph;
    Need *need = ARENA_ARRAY(arena, Need, graph->value_count);
    for (ValueId v = 0; v < graph->value_count; v++)
        need[v].first = -1;
    for (uint32_t k = 0; k < program->kernel_count; k++)
        for (uint32_t i = 0; i < program->kernel[k].node_count; i++) {
            const Node *node = &graph->node[program->kernel[k].node[i]];
            for (uint32_t r = 0; r < node->out_count; r++)
                need[node->out[r]] = (Need){k, (int64_t)k + 1};
            for (uint32_t r = 0; r < node->in_count; r++)
                need[looked_at(graph, node->in[r])].last = (int64_t)k + 1;
        }
    join_parts(program, need);
    return need;
}

static bool wrong(const Program *program, Str *message, ValueId value, const char *what)
{
    const Graph *graph = program->graph;
    *message = str_format(graph->module->arena, STR_FMT " %s", STR_ARG(value_show(graph, value)), what);
    return false;
}

typedef struct Lives {
    const Program *program;
    const Need *need;       /* per value */
    uint32_t *first, *next; /* per value and per buffer of the plan: the buffers of one value, by number */
} Lives;

static void list_buffers(Lives *lives, Arena *arena)
{
    const Program *program = lives->program;
    lives->first = ARENA_ARRAY(arena, uint32_t, program->graph->value_count);
    lives->next = ARENA_ARRAY(arena, uint32_t, program->problem.count);
    for (ValueId v = 0; v < program->graph->value_count; v++)
        lives->first[v] = NONE;
    for (uint32_t i = program->problem.count; i-- > 0;)
        if (program->plan_value[i] != NONE) {
            lives->next[i] = lives->first[program->plan_value[i]];
            lives->first[program->plan_value[i]] = i;
        }
}

/* One buffer, or, as parts are made in it, several: each takes over from the one before at the same address, and is
 * larger. */
static bool check_buffers(const Lives *lives, ValueId v, Str *message)
{
    const Program *program = lives->program;
    const PlanBuffer *all = program->problem.buffer;
    uint32_t i = lives->first[v];
    if (i == NONE || (lives->need[v].first >= 0 && all[i].first > lives->need[v].first))
        return wrong(program, message, v, "is made before it has memory");
    for (; lives->next[i] != NONE; i = lives->next[i]) {
        const PlanBuffer *now = &all[i], *then = &all[lives->next[i]];
        if (!now->group || now->group != then->group || now->last != then->first || now->size > then->size)
            return wrong(program, message, v, "loses its memory");
    }
    if (i != program->home[v].index || all[i].size != type_bytes(value_type(program->graph, v)))
        return wrong(program, message, v, "has a buffer of another");
    if (lives->need[v].first >= 0 && all[i].last < lives->need[v].last)
        return wrong(program, message, v, "is needed longer than it was planned");
    return true;
}

/* Is the part an operand of what makes its owner, by itself or in another shape? And had the whole, if it is in the
 * arena, grown to it when it was made? */
static bool check_part(const Lives *lives, ValueId v, Str *message)
{
    const Program *program = lives->program;
    const Graph *graph = program->graph;
    const Placement *place = &program->placement[v];
    const Node *node = value_producer(graph, place->owner);
    ValueId whole = outermost(program, v);
    bool assembled = node->op == OP_CONCAT || node->op == OP_PAD || node->op == OP_RELAYOUT;
    if (!assembled || place->operand >= node->in_count || looked_at(graph, node->in[place->operand]) != v ||
        program->home[v].space != SPACE_NONE)
        return wrong(program, message, v, "does not lie where the value it is a part of wants it");
    if (program->home[whole].space != SPACE_ARENA || lives->need[v].first < 0)
        return true;
    for (uint32_t i = lives->first[whole]; i != NONE; i = lives->next[i]) {
        const PlanBuffer *buffer = &program->problem.buffer[i];
        if (buffer->first <= lives->need[v].first && lives->need[v].first < buffer->last)
            return buffer->size >= value_extent(program, v).end ||
                   wrong(program, message, v, "is made where its whole has not grown yet");
    }
    return wrong(program, message, v, "is made before it has memory");
}

static bool check_value(const Lives *lives, ValueId v, Str *message)
{
    const Program *program = lives->program;
    const Graph *graph = program->graph;
    const Home *home = &program->home[v];
    const Need *need = lives->need;
    if (program->placement[v].owner != NONE)
        return check_part(lives, v, message);
    bool passed_on = need[v].first >= 0 && need[v].last > need[v].first + 1;
    if (home->space == SPACE_NONE && passed_on && !value_is_inline(graph, v))
        return wrong(program, message, v, "goes from kernel to kernel and has no memory");
    if (home->space != SPACE_ARENA)
        return true;
    if (!check_buffers(lives, v, message))
        return false;
    ValueId operand = graph->value[v].inplace == NONE ? NONE : looked_at(graph, graph->value[v].inplace);
    if (operand != NONE && program->problem.buffer[home->index].group && need[operand].last > need[v].first + 1)
        return wrong(program, message, operand, "is read after it was overwritten");
    return true;
}

bool program_check_lives(const Program *program, Str *message)
{
    Arena scratch = {0};
    Lives lives = {.program = program, .need = find_needs(program, &scratch)};
    bool good = true;
    list_buffers(&lives, &scratch);
    for (ValueId v = 0; good && v < program->graph->value_count; v++)
        good = check_value(&lives, v, message);
    arena_free(&scratch);
    return good;
}
