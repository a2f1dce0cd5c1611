/* NAME_run, or the function of another entry: its pointers (run_pointers.c), and the calls of kernels in order, through
 * loops and branches. */
#include "c/run.h"

#include "ops/meaning.h"

static void print_tick(UnitRun *run, Str kernel)
{
    const CompileOptions *options = &run->unit->program->options;
    if (!options->timed)
        return;
    unit_run_indent(run);
    text_printf(run->out, STR_FMT "_tick(" STR_FMT ");\n", STR_ARG(options->name), STR_ARG(kernel));
}

/* After a kernel */
static void print_tick_of(UnitRun *run, const Step *step)
{
    print_tick(run, run->rounds ? unit_rounds_kernel(run, step) : str_format(run->unit->arena, "%u", step->kernel));
}

/* The copy is made if its source lies elsewhere. */
static void print_question(UnitRun *run, const Kernel *kernel)
{
    Pointers pointers = unit_run_pointers(run);
    Str due = source_copy_is_due(&pointers, run->unit->arena, kernel);
    text_printf(run->out, "if (" STR_FMT ")\n", STR_ARG(due));
    text_fill(run->out, ' ', 4);
    unit_run_indent(run);
}

/* `x, weight, y` */
static Str arguments_of(UnitRun *run, const Step *step, const Function *function)
{
    const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
    const Launch *launch = &run->unit->of_step[run->number][step->number];
    Arena *arena = run->unit->arena;
    const bool *used = unit_parameters(run->entry, arena, step->kernel, step->deal);
    Text list = {0};
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        if (!used[b])
            continue;
        Str argument =
            run->rounds ? unit_rounds_argument(run, step, b) : unit_run_buffer_argument(run, &kernel->buffer[b]);
        text_printf(&list, "%s" STR_FMT, list.len ? ", " : "", STR_ARG(argument));
    }
    for (uint32_t p = 0; p < function->sharing.count; p++)
        text_printf(&list, "%s" STR_FMT, list.len ? ", " : "",
                    STR_ARG(constants_text(arena, &launch->constant[function->sharing.parameter[p].constant])));
    Str copy = str_copy(arena, text_view(&list));
    text_free(&list);
    return copy;
}

/* Threads take the parts: the call is handed to them. */
static void print_dealt(UnitRun *run, const Step *step, const Function *function, Str arguments)
{
    bool asks = run->entry->memory.kernel[step->kernel].asks;
    if (asks)
        print_question(run, &run->entry->memory.kernel[step->kernel]);
    text_printf(run->out, "{\n");
    unit_run_indent(run);
    text_printf(run->out, "    const " STR_FMT " call = {" STR_FMT "};\n", STR_ARG(function->call), STR_ARG(arguments));
    unit_run_indent(run);
    text_printf(run->out, "    nnc_deal(team, " STR_FMT ", &call, %lld);\n", STR_ARG(function->part),
                (long long)step->deal->part->high + 1);
    unit_run_indent(run);
    text_printf(run->out, "}\n");
}

/* Does the step go on with the kernel of the one before? */
static bool launches_again(const StepList *list, uint32_t step)
{
    const Step *now = &list->step[step], *before = now - 1;
    return step && step < list->count && now->kind == STEP_LAUNCH && before->kind == STEP_LAUNCH &&
           now->kernel == before->kernel;
}

/* The functions that the kernel calls whose first launch this is */
static Str functions_of(const UnitRun *run, const StepList *list, uint32_t first)
{
    Str functions = {0};
    for (uint32_t s = first; s == first || launches_again(list, s); s++)
        functions = str_format(run->unit->arena, STR_FMT "%u,", STR_ARG(functions),
                               run->unit->of_step[run->number][list->step[s].number].function);
    return functions;
}

static void print_call(UnitRun *run, const StepList *list, uint32_t s)
{
    const Unit *unit = run->unit;
    const Step *step = &list->step[s];
    bool first = !launches_again(list, s);
    const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
    const Function *function = &unit->function[unit->of_step[run->number][step->number].function];
    if (first)
        text_char(run->out, '\n');
    if (first && unit->program->options.checked)
        source_checked_step(run->out, run->entry, step->kernel);
    Str arguments = arguments_of(run, step, function);
    if (first)
        source_describe(run->out, run->entry, kernel, 4 * (run->depth + 1), &run->told, functions_of(run, list, s));
    unit_run_indent(run);
    if (function->part.len)
        print_dealt(run, step, function, arguments);
    else {
        if (kernel->asks)
            print_question(run, kernel);
        text_printf(run->out, STR_FMT "(" STR_FMT ");", STR_ARG(function->name), STR_ARG(arguments));
        source_break_list(run->out);
        text_char(run->out, '\n');
    }
}

static void print_steps(UnitRun *run, const StepList *list);

static bool is_passed(const UnitRun *run, ValueId value)
{
    return entry_storage(run->entry, value)->role == STORAGE_PASSED && run->needed[value];
}

/* Pointers that move: `const float *x = x0; / * f32[4], passed on * /`, without a first value where branches set it. */
static void declare_passed(UnitRun *run, const Node *node, const ValueId *first)
{
    const Graph *graph = run->entry->graph;
    for (uint32_t i = 0; i < node->out_count; i++) {
        ValueId value = node->out[i];
        const Storage *storage = entry_storage(run->entry, value);
        Pointer *pointer = &run->storage[value];
        if (!is_passed(run, value))
            continue;
        Str from = first ? unit_run_pointer_of(run, first[i]) : (Str){0};
        if (!pointer->name.len)
            pointer->name = unit_run_free_name(run, unit_run_title(run, &(KernelBuffer){.role = "x"}, value));
        pointer->depth = run->depth + 1;
        unit_run_indent(run);
        text_printf(run->out, "const %s *" STR_FMT "%s" STR_FMT "; /* " STR_FMT ", %s */\n",
                    prelude_c_type(storage->dtype), STR_ARG(pointer->name), first ? " = " : "", STR_ARG(from),
                    STR_ARG(type_show(run->unit->arena, value_type(graph, value))),
                    first ? "moves from round to round" : "of the branch that runs");
    }
}

/* The pointers move: first those are kept that others come to be. */
static void print_moves(UnitRun *run, const ValueId *to, const ValueId *from, uint32_t count)
{
    Str *source = ARENA_ARRAY(run->unit->arena, Str, count);
    for (uint32_t i = 0; i < count; i++) {
        ValueId owner = flow_owner(run->entry->graph, from[i]);
        if (!is_passed(run, to[i]) || owner == to[i])
            continue;
        source[i] = unit_run_pointer_of(run, owner);
        bool moved = false;
        for (uint32_t k = 0; k < i; k++)
            moved |= to[k] == owner;
        if (!moved)
            continue;
        source[i] =
            unit_run_free_name(run, str_format(run->unit->arena, STR_FMT "_next", STR_ARG(run->storage[to[i]].name)));
        unit_run_indent(run);
        text_printf(run->out, "const %s *const " STR_FMT " = " STR_FMT ";\n",
                    prelude_c_type(entry_storage(run->entry, to[i])->dtype), STR_ARG(source[i]),
                    STR_ARG(unit_run_pointer_of(run, owner)));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!source[i].len)
            continue;
        unit_run_indent(run);
        text_printf(run->out, STR_FMT " = " STR_FMT ";\n", STR_ARG(run->storage[to[i]].name), STR_ARG(source[i]));
    }
}

static const Node *node_of_step(const UnitRun *run, uint32_t k)
{
    return &run->entry->graph->node[run->entry->memory.kernel[k].node[0]];
}

static void print_leave(UnitRun *run, ValueId condition)
{
    Str at = unit_run_pointer_of(run, condition);
    text_char(run->out, '\n');
    unit_run_indent(run);
    text_printf(run->out, "if (!*" STR_FMT ")\n", STR_ARG(at));
    unit_run_indent(run);
    text_printf(run->out, "    break;\n");
}

static void print_loop(UnitRun *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    int64_t most = flow_most_rounds(begin);
    text_char(run->out, '\n');
    declare_passed(run, begin, begin->in);
    unit_run_indent(run);
    if (most)
        text_printf(run->out, "for (int64_t round_%u = 0; round_%u < %lld; round_%u++) {\n", run->depth, run->depth,
                    (long long)most, run->depth);
    else
        text_printf(run->out, "for (;;) {\n");
    run->depth++;
    print_steps(run, &step->body[0]);
    if (step->test != NONE)
        print_leave(run, node_of_step(run, step->test)->in[0]);
    print_steps(run, &step->body[1]);
    print_moves(run, begin->out, end->in, begin->out_count);
    if (flow_tests(end))
        print_leave(run, end->in[end->in_count - 1]);
    unit_run_leave_block(run);
    unit_run_indent(run);
    text_printf(run->out, "}\n");
}

/* A bool selects by `if`, an integer by `switch`. */
static void print_branches(UnitRun *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    Branches branches = flow_branches(begin);
    bool truth = value_type(run->entry->graph, begin->in[0])->dtype == DT_BOOL;
    text_char(run->out, '\n');
    Str selector = unit_run_pointer_of(run, begin->in[0]);
    declare_passed(run, end, NULL);
    unit_run_indent(run);
    text_printf(run->out, truth ? "if (*" STR_FMT ") {\n" : "switch (*" STR_FMT ") {\n", STR_ARG(selector));
    for (uint32_t i = 0; i < step->body_count; i++) {
        bool other = i == branches.keys;
        if (!truth || other) {
            unit_run_indent(run);
            text_printf(run->out,
                        truth   ? "} else {\n"
                        : other ? "default: {\n"
                                : "case %lld: {\n",
                        other ? 0LL : (long long)branches.key[i]);
        }
        run->depth++;
        print_steps(run, &step->body[i]);
        print_moves(run, end->out, end->in + (size_t)i * end->out_count, end->out_count);
        if (!truth) {
            unit_run_indent(run);
            text_printf(run->out, "break;\n");
        }
        unit_run_leave_block(run);
        if (!truth) {
            unit_run_indent(run);
            text_printf(run->out, "}\n");
        }
    }
    unit_run_indent(run);
    text_printf(run->out, "}\n");
}

/* `x != s0`: was the next value made where the value is not?  Empty where it always is. */
static Str made_elsewhere(UnitRun *run, const StateValue *state)
{
    return state->from == NONE
               ? (Str){0}
               : str_format(run->unit->arena, STR_FMT " != " STR_FMT, STR_ARG(unit_run_pointer_of(run, state->from)),
                            STR_ARG(unit_run_pointer_of(run, state->value)));
}

static Str name_of_state(const UnitRun *run, const StateValue *state)
{
    return source_comment(run->unit->arena, value_show(run->entry->graph, state->value));
}

static const KeptSlot *slot_of(const UnitRun *run, const Step *step)
{
    return &run->entry->program->kept.slot[run->entry->slot[step->state]];
}

/* Turns and copies stand last. */
static bool ends_run(const StepList *list, uint32_t step)
{
    return step < list->count && list->step[step].kind >= STEP_TURN;
}

static void print_turn(UnitRun *run, const Step *step)
{
    const StateValue *state = &run->entry->memory.state[step->state];
    Str elsewhere = made_elsewhere(run, state);
    unit_run_indent(run);
    text_printf(run->out, "s[%u] ^= " STR_FMT "; /* " STR_FMT " */\n", slot_of(run, step)->flag,
                STR_ARG(elsewhere.len ? elsewhere : STR("1")), STR_ARG(name_of_state(run, state)));
}

static void print_copy(UnitRun *run, const Step *step)
{
    const StateValue *state = &run->entry->memory.state[step->state];
    const KeptSlot *slot = slot_of(run, step);
    Str elsewhere = made_elsewhere(run, state);
    unit_run_indent(run);
    if (elsewhere.len)
        text_printf(run->out, "if (" STR_FMT ")\n        ", STR_ARG(elsewhere));
    text_printf(run->out, "memcpy(p + %lld, s + %lld, %lld); /* " STR_FMT " */\n", (long long)slot->offset[0],
                (long long)slot->offset[1], (long long)slot->bytes, STR_ARG(name_of_state(run, state)));
}

/* Recurses over the nesting of loops and branches. */
static void print_some(UnitRun *run, const StepList *list, uint32_t begin, uint32_t end)
{
    for (uint32_t s = begin; s < end; s++) {
        const Step *step = &list->step[s];
        if (ends_run(list, s) && !(s && ends_run(list, s - 1)))
            text_char(run->out, '\n');
        switch (step->kind) {
        case STEP_LAUNCH:
            print_call(run, list, s);
            if (!launches_again(list, s + 1))
                print_tick_of(run, step);
            break;
        case STEP_LOOP:
            print_loop(run, step);
            break;
        case STEP_BRANCH:
            print_branches(run, step);
            break;
        case STEP_TURN:
            print_turn(run, step);
            break;
        case STEP_COPY:
            print_copy(run, step);
            break;
        }
    }
}

static void print_steps(UnitRun *run, const StepList *list)
{
    unit_print_rounds(run, list, print_some);
}

/* What is borrowed must be there, and aligned. */
static void print_checks(Text *out, const Unit *unit, const Entry *entry)
{
    const Program *program = entry->program;
    bool file = program_weights_form(program) == WEIGHTS_FILE;
    text_printf(out, "    unsigned char *const a = (unsigned char *)arena;\n");
    if (file)
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    source_kept_pointers(out, entry);
    text_printf(out, "\n    if (%s(uintptr_t)a %% %d != 0)\n        return 1;\n", program->arena_bytes ? "!a || " : "",
                ARENA_ALIGNMENT);
    if (file)
        text_printf(out, "    if (!w || (uintptr_t)w %% %d != 0)\n        return 2;\n", WEIGHTS_ALIGNMENT);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        const char *pointer = source_block_pointer(block);
        if (entry_keeps(entry, block))
            text_printf(out, "    if (!%s || (uintptr_t)%s %% %d != 0)\n        return %d;\n", pointer, pointer,
                        ARENA_ALIGNMENT, source_block_status(block));
    }
    if (prelude_has_tiles(&unit->needs))
        text_str(out, STR("    if (!tiles_granted())\n        return 6;\n"));
}

static bool entry_shares(const Entry *entry)
{
    bool shares = false;
    for (uint32_t k = 0; k < entry->memory.kernel_count; k++)
        shares |= entry->memory.kernel[k].deal_count > 0;
    return shares;
}

void unit_print_run(Text *out, const Unit *unit, uint32_t number)
{
    const Entry *entry = &unit->program->entry[number];
    const Graph *graph = entry->graph;
    UnitRun run = {.unit = unit, .entry = entry, .number = number, .out = out};
    unit_run_start_names(&run);
    run.needed = flow_needed(&entry->memory, unit->arena);
    run.told.arena = run.scratch.arena = unit->arena;
    source_signature(out, entry, unit->arena);
    text_printf(out, "\n{\n");
    print_checks(out, unit, entry);
    print_tick(&run, STR("-1"));
    print_steps(&run, &entry->steps.list);
    if (unit->program->options.checked)
        source_checked_step(out, entry, entry->memory.kernel_count);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        if (!entry->used[i])
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(run.port[i]));
    if (program_shares(unit->program) && !entry_shares(entry))
        text_printf(out, "    (void)team;\n");
    const StepList *list = &entry->steps.list;
    text_printf(out, "%s    return 0;\n}\n\n", list->count && ends_run(list, list->count - 1) ? "" : "\n");
}
