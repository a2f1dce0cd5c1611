/* NAME_run, or the function of another entry: a pointer for each buffer of the arena, each part of one and each array
 * of the weights, by the model's names, declared where a kernel first uses it; then the calls. */
#include "c/unit.h"

#include "ops/meaning.h"
#include "storage/flow.h"

typedef struct Pointer {
    Str name;       /* empty before the first use */
    uint32_t depth; /* 1 + that of the block in which it is declared and can be seen; 0: it is not */
} Pointer;

typedef struct Run {
    const Unit *unit;
    const Entry *entry;
    uint32_t number; /* of the entry */
    Text *out;
    const Str *port; /* source_port_names */
    Names names;
    Pointer *storage, *part; /* per storage, per value that is a part or a view */
    const bool *needed;      /* per value: flow_needed */
    uint32_t depth;          /* of blocks */
} Run;

static Str free_name(Run *run, Str wanted)
{
    return names_add(&run->names, run->unit->arena, wanted, '_', 0);
}

static void start_names(Run *run)
{
    const Program *program = run->unit->program;
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    static const char *const own[] = {"a", "w", "arena", "weights", "run"};
    run->port = source_port_names(run->entry, arena);
    run->names.taken.arena = arena;
    run->storage = ARENA_ARRAY(arena, Pointer, run->entry->memory.storage.count);
    run->part = ARENA_ARRAY(arena, Pointer, graph->value_count);
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
        map_add(&run->names.taken, str_from(own[i]), 0);
    source_take_weights(program, arena, &run->names.taken);
    source_take_kept(program, &run->names.taken);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        map_add(&run->names.taken, run->port[i], 0);
    for (uint32_t f = 0; f < run->unit->function_count; f++)
        map_add(&run->names.taken, run->unit->function[f].name, 0);
}

/* What a pointer to memory is called: a value by its name in the model, others by what they are for. */
static Str pointer_name(Run *run, const KernelBuffer *buffer, ValueId value)
{
    const Graph *graph = run->entry->graph;
    if (value == NONE)
        return free_name(run, str_from(buffer->role));
    Str title = value_title(graph, value);
    if (graph->value[value].name.len) {
        title = source_safe_name(run->unit->arena, title, false);
    } else { /* stage1.block0.%12 */
        Str scope = {title.ptr, title.len - value_show(graph, value).len};
        title = str_format(run->unit->arena, STR_FMT "t%u", STR_ARG(scope), value);
        title = source_identifier(run->unit->arena, title);
    }
    return free_name(run, title);
}

static void indent(Run *run)
{
    text_fill(run->out, ' ', 4 * (run->depth + 1));
}

/* Leaves a block: what is declared there is not seen any more, but keeps its name. */
static void leave_block(Run *run)
{
    uint32_t storages = run->entry->memory.storage.count, values = run->entry->graph->value_count;
    for (uint32_t i = 0; i < storages; i++)
        run->storage[i].depth = run->storage[i].depth > run->depth ? 0 : run->storage[i].depth;
    for (uint32_t i = 0; i < values; i++)
        run->part[i].depth = run->part[i].depth > run->depth ? 0 : run->part[i].depth;
    run->depth--;
}

static bool is_constant(const Entry *entry, const Storage *storage)
{
    return storage_is_constant(storage->role) ||
           (storage->role == STORAGE_PARAMS && entry->memory.state[storage->index].next == NONE);
}

/* The name of a pointer, which is declared where it cannot be seen: `at` is where it points, `what` says it to people.
 */
static Str declare_pointer(Run *run, Pointer *pointer, const KernelBuffer *buffer, ValueId value, Str at, Str what)
{
    bool constant = is_constant(run->entry, entry_storage(run->entry, buffer->storage));
    const char *type = prelude_c_type(buffer->dtype), *fixed = constant ? "const " : "";
    if (pointer->depth)
        return pointer->name;
    if (!pointer->name.len)
        pointer->name = pointer_name(run, buffer, value);
    pointer->depth = run->depth + 1;
    indent(run);
    text_printf(run->out, "%s%s *const " STR_FMT " = (%s%s *)" STR_FMT "; /* " STR_FMT " */\n", fixed, type,
                STR_ARG(pointer->name), fixed, type, STR_ARG(at), STR_ARG(what));
    return pointer->name;
}

/* `(void *)(a + 64)`: a place of an aligned block as one of any type. */
static Str arena_place(const Run *run, int64_t offset)
{
    return str_format(run->unit->arena, "(void *)(a + %lld)", (long long)offset);
}

static Str weights_argument(Run *run, const KernelBuffer *buffer)
{
    const Program *program = run->unit->program;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    bool packed = source_array(run->entry, storage)->packing.rank;
    Str what = str_format(arena, STR_FMT "%s", STR_ARG(type_show(arena, value_type(run->entry->graph, storage->value))),
                          packed ? ", packed" : "");
    Str at = storage->role == STORAGE_PACKED ? str_format(arena, "k + %lld", (long long)storage->offset)
                                             : source_weights_place(program, arena, storage->index);
    if (storage->role == STORAGE_PACKED || program_weights_form(program) != WEIGHTS_C)
        at = str_format(arena, "(const void *)(" STR_FMT ")", STR_ARG(at));
    return declare_pointer(run, &run->storage[buffer->storage], buffer, storage->value, at, what);
}

static Str plus_elements(Run *run, Str pointer, int64_t elements)
{
    return elements ? str_format(run->unit->arena, STR_FMT " + %lld", STR_ARG(pointer), (long long)elements) : pointer;
}

static Str pointer_of(Run *run, ValueId value);

static Str pointer_in(void *context, ValueId value)
{
    return pointer_of(context, value);
}

static Pointers pointers_of(Run *run)
{
    return (Pointers){run->entry, pointer_in, run};
}

static Str arena_base(Run *run, const Storage *storage)
{
    if (storage->role != STORAGE_TURNS)
        return arena_place(run, storage->offset);
    Pointers pointers = pointers_of(run);
    return str_format(run->unit->arena, "(" STR_FMT ")",
                      STR_ARG(source_free_place(&pointers, run->unit->arena, storage->value)));
}

/* Kernels that see a part or a view alone take a pointer to it; those that see several, one into the whole. */
static Str arena_argument(Run *run, const KernelBuffer *buffer)
{
    const Graph *graph = run->entry->graph;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    int64_t begin = buffer->begin * dtype_bytes(buffer->dtype);
    if (buffer->part != NONE && storage->role != STORAGE_TURNS) {
        Str what = str_format(arena, STR_FMT " in " STR_FMT, STR_ARG(type_show(arena, value_type(graph, buffer->part))),
                              STR_ARG(source_comment(arena, value_show(graph, storage->value))));
        return declare_pointer(run, &run->part[buffer->part], buffer, buffer->part,
                               arena_place(run, storage->offset + begin), what);
    }
    Pointer *pointer = &run->storage[buffer->storage];
    Str what = storage->value == NONE ? STR("scratch") : type_show(arena, value_type(graph, storage->value));
    Str name = pointer->depth ? pointer->name
                              : declare_pointer(run, pointer, buffer, storage->value, arena_base(run, storage), what);
    return plus_elements(run, name, buffer->begin);
}

/* The value of a param or state, or its next one where that is elsewhere. */
static Str kept_argument(Run *run, const KernelBuffer *buffer)
{
    const Entry *entry = run->entry;
    Arena *arena = run->unit->arena;
    const Storage *storage = entry_storage(entry, buffer->storage);
    const StateValue *state = &entry->memory.state[storage->index];
    ValueId value = storage->next ? storage->value : state->value;
    Pointer *pointer = &run->storage[storage->next ? state->next : state->value];
    if (!pointer->depth) {
        Str type = type_show(arena, value_type(entry->graph, value));
        Str what = storage->next ? str_format(arena, STR_FMT ", the next " STR_FMT, STR_ARG(type),
                                              STR_ARG(source_comment(arena, value_show(entry->graph, state->value))))
                                 : str_format(arena, STR_FMT ", %s", STR_ARG(type),
                                              storage->role == STORAGE_PARAMS ? "param" : "state");
        Str at = str_format(arena, "(%svoid *)(" STR_FMT ")", is_constant(entry, storage) ? "const " : "",
                            STR_ARG(source_kept_place(entry, arena, storage)));
        declare_pointer(run, pointer, buffer, value, at, what);
    }
    return plus_elements(run, pointer->name, buffer->begin);
}

/* Declares the pointer of a kernel's buffer at its first use; arrays of the caller have names already. */
static Str buffer_argument(Run *run, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(run->entry, buffer->storage);
    const Graph *graph = run->entry->graph;
    switch (storage->role) {
    case STORAGE_WEIGHTS:
    case STORAGE_PACKED:
        return weights_argument(run, buffer);
    case STORAGE_ARENA:
    case STORAGE_SCRATCH:
    case STORAGE_TURNS:
        return arena_argument(run, buffer);
    case STORAGE_PARAMS:
    case STORAGE_STATE:
        return kept_argument(run, buffer);
    case STORAGE_PASSED:
        return plus_elements(run, run->storage[buffer->storage].name, buffer->begin);
    default:
        return plus_elements(
            run, run->port[storage->role == STORAGE_INPUT ? storage->index : graph->input_count + storage->index],
            buffer->begin);
    }
}

/* Of a value that is in memory, as a whole. */
static Str pointer_of(Run *run, ValueId value)
{
    KernelBuffer buffer = flow_buffer(&run->entry->memory, value);
    return buffer_argument(run, &buffer);
}

static void print_tick(Run *run, int64_t kernel)
{
    const CompileOptions *options = &run->unit->program->options;
    if (!options->timed)
        return;
    indent(run);
    text_printf(run->out, STR_FMT "_tick(%lld);\n", STR_ARG(options->name), (long long)kernel);
}

/* The copy is made if its source lies elsewhere. */
static void print_question(Run *run, const Kernel *kernel)
{
    Pointers pointers = pointers_of(run);
    Str due = source_copy_is_due(&pointers, run->unit->arena, kernel);
    text_printf(run->out, "if (" STR_FMT ")\n", STR_ARG(due));
    text_fill(run->out, ' ', 4);
    indent(run);
}

/* `x, weight, y` */
static Str arguments_of(Run *run, const Step *step)
{
    const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
    Arena *arena = run->unit->arena;
    const bool *used = print_used(arena, kernel, step->deal);
    Text list = {0};
    for (uint32_t b = 0; b < kernel->buffer_count; b++)
        if (used[b])
            text_printf(&list, "%s" STR_FMT, list.len ? ", " : "", STR_ARG(buffer_argument(run, &kernel->buffer[b])));
    Str copy = str_copy(arena, text_view(&list));
    text_free(&list);
    return copy;
}

/* Threads take the parts: the call is handed to them. */
static void print_dealt(Run *run, const Step *step, const Function *function, Str arguments)
{
    bool asks = run->entry->memory.kernel[step->kernel].asks;
    if (asks)
        print_question(run, &run->entry->memory.kernel[step->kernel]);
    text_printf(run->out, "{\n");
    indent(run);
    text_printf(run->out, "    const " STR_FMT " call = {" STR_FMT "};\n", STR_ARG(function->call), STR_ARG(arguments));
    indent(run);
    text_printf(run->out, "    nnc_deal(team, " STR_FMT ", &call, %lld);\n", STR_ARG(function->part),
                (long long)step->deal->part->high + 1);
    indent(run);
    text_printf(run->out, "}\n");
}

static void print_call(Run *run, const Step *step, bool first)
{
    const Unit *unit = run->unit;
    const Kernel *kernel = &run->entry->memory.kernel[step->kernel];
    const Function *function = &unit->function[unit->of_step[run->number][step->number]];
    if (first)
        text_char(run->out, '\n');
    if (first && unit->program->options.checked)
        source_checked_step(run->out, run->entry, step->kernel);
    Str arguments = arguments_of(run, step);
    if (first)
        source_describe(run->out, run->entry, kernel, 4 * (run->depth + 1));
    indent(run);
    if (function->part.len)
        print_dealt(run, step, function, arguments);
    else {
        if (kernel->asks)
            print_question(run, kernel);
        text_printf(run->out, STR_FMT "(" STR_FMT ");\n", STR_ARG(function->name), STR_ARG(arguments));
    }
}

static void print_steps(Run *run, const StepList *list);

static bool is_passed(const Run *run, ValueId value)
{
    return entry_storage(run->entry, value)->role == STORAGE_PASSED && run->needed[value];
}

/* Pointers that move: `const float *x = x0; / * f32[4], passed on * /`, without a first value where branches set it. */
static void declare_passed(Run *run, const Node *node, const ValueId *first)
{
    const Graph *graph = run->entry->graph;
    for (uint32_t i = 0; i < node->out_count; i++) {
        ValueId value = node->out[i];
        const Storage *storage = entry_storage(run->entry, value);
        Pointer *pointer = &run->storage[value];
        if (!is_passed(run, value))
            continue;
        Str from = first ? pointer_of(run, first[i]) : (Str){0};
        if (!pointer->name.len)
            pointer->name = pointer_name(run, &(KernelBuffer){.role = "x", .dtype = storage->dtype}, value);
        pointer->depth = run->depth + 1;
        indent(run);
        text_printf(run->out, "const %s *" STR_FMT "%s" STR_FMT "; /* " STR_FMT ", %s */\n",
                    prelude_c_type(storage->dtype), STR_ARG(pointer->name), first ? " = " : "", STR_ARG(from),
                    STR_ARG(type_show(run->unit->arena, value_type(graph, value))),
                    first ? "moves from round to round" : "of the branch that runs");
    }
}

/* The pointers move: first those are kept that others come to be. */
static void print_moves(Run *run, const ValueId *to, const ValueId *from, uint32_t count)
{
    Str *source = ARENA_ARRAY(run->unit->arena, Str, count);
    for (uint32_t i = 0; i < count; i++) {
        ValueId owner = flow_owner(run->entry->graph, from[i]);
        if (!is_passed(run, to[i]) || owner == to[i])
            continue;
        source[i] = pointer_of(run, owner);
        bool moved = false;
        for (uint32_t k = 0; k < i; k++)
            moved |= to[k] == owner;
        if (!moved)
            continue;
        source[i] = free_name(run, str_format(run->unit->arena, STR_FMT "_next", STR_ARG(run->storage[to[i]].name)));
        indent(run);
        text_printf(run->out, "const %s *const " STR_FMT " = " STR_FMT ";\n",
                    prelude_c_type(entry_storage(run->entry, to[i])->dtype), STR_ARG(source[i]),
                    STR_ARG(pointer_of(run, owner)));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!source[i].len)
            continue;
        indent(run);
        text_printf(run->out, STR_FMT " = " STR_FMT ";\n", STR_ARG(run->storage[to[i]].name), STR_ARG(source[i]));
    }
}

static const Node *node_of_step(const Run *run, uint32_t k)
{
    return &run->entry->graph->node[run->entry->memory.kernel[k].node[0]];
}

static void print_leave(Run *run, ValueId condition)
{
    Str at = pointer_of(run, condition);
    text_char(run->out, '\n');
    indent(run);
    text_printf(run->out, "if (!*" STR_FMT ")\n", STR_ARG(at));
    indent(run);
    text_printf(run->out, "    break;\n");
}

static void print_loop(Run *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    int64_t most = flow_most_rounds(begin);
    text_char(run->out, '\n');
    declare_passed(run, begin, begin->in);
    indent(run);
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
    leave_block(run);
    indent(run);
    text_printf(run->out, "}\n");
}

/* A bool selects by `if`, an integer by `switch`. */
static void print_branches(Run *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    Branches branches = flow_branches(begin);
    bool truth = value_type(run->entry->graph, begin->in[0])->dtype == DT_BOOL;
    text_char(run->out, '\n');
    Str selector = pointer_of(run, begin->in[0]);
    declare_passed(run, end, NULL);
    indent(run);
    text_printf(run->out, truth ? "if (*" STR_FMT ") {\n" : "switch (*" STR_FMT ") {\n", STR_ARG(selector));
    for (uint32_t i = 0; i < step->body_count; i++) {
        bool other = i == branches.keys;
        if (!truth || other) {
            indent(run);
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
            indent(run);
            text_printf(run->out, "break;\n");
        }
        leave_block(run);
        if (!truth) {
            indent(run);
            text_printf(run->out, "}\n");
        }
    }
    indent(run);
    text_printf(run->out, "}\n");
}

/* `x != s0`: was the next value made where the value is not?  Empty where it always is. */
static Str made_elsewhere(Run *run, const StateValue *state)
{
    return state->from == NONE
               ? (Str){0}
               : str_format(run->unit->arena, STR_FMT " != " STR_FMT, STR_ARG(pointer_of(run, state->from)),
                            STR_ARG(pointer_of(run, state->value)));
}

static Str name_of_state(const Run *run, const StateValue *state)
{
    return source_comment(run->unit->arena, value_show(run->entry->graph, state->value));
}

static const KeptSlot *slot_of(const Run *run, const Step *step)
{
    return &run->entry->program->kept.slot[run->entry->slot[step->state]];
}

/* Turns and copies stand last. */
static bool ends_run(const StepList *list, uint32_t step)
{
    return step < list->count && list->step[step].kind >= STEP_TURN;
}

static void print_turn(Run *run, const Step *step)
{
    const StateValue *state = &run->entry->memory.state[step->state];
    Str elsewhere = made_elsewhere(run, state);
    indent(run);
    text_printf(run->out, "s[%u] ^= " STR_FMT "; /* " STR_FMT " */\n", slot_of(run, step)->flag,
                STR_ARG(elsewhere.len ? elsewhere : STR("1")), STR_ARG(name_of_state(run, state)));
}

static void print_copy(Run *run, const Step *step)
{
    const StateValue *state = &run->entry->memory.state[step->state];
    const KeptSlot *slot = slot_of(run, step);
    Str elsewhere = made_elsewhere(run, state);
    indent(run);
    if (elsewhere.len)
        text_printf(run->out, "if (" STR_FMT ")\n        ", STR_ARG(elsewhere));
    text_printf(run->out, "memcpy(p + %lld, s + %lld, %lld); /* " STR_FMT " */\n", (long long)slot->offset[0],
                (long long)slot->offset[1], (long long)slot->bytes, STR_ARG(name_of_state(run, state)));
}

/* Does the step go on with the kernel of the one before? */
static bool launches_again(const StepList *list, uint32_t step)
{
    const Step *now = &list->step[step], *before = now - 1;
    return step && step < list->count && now->kind == STEP_LAUNCH && before->kind == STEP_LAUNCH &&
           now->kernel == before->kernel;
}

/* Recurses over the nesting of loops and branches. */
static void print_steps(Run *run, const StepList *list)
{
    for (uint32_t s = 0; s < list->count; s++) {
        const Step *step = &list->step[s];
        if (ends_run(list, s) && !(s && ends_run(list, s - 1)))
            text_char(run->out, '\n');
        switch (step->kind) {
        case STEP_LAUNCH:
            print_call(run, step, !launches_again(list, s));
            if (!launches_again(list, s + 1))
                print_tick(run, step->kernel);
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

/* What is borrowed must be there, and aligned. */
static void print_checks(Text *out, const Entry *entry)
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
    Run run = {.unit = unit, .entry = entry, .number = number, .out = out};
    start_names(&run);
    run.needed = flow_needed(&entry->memory, unit->arena);
    text_printf(out, "int " STR_FMT "(", STR_ARG(source_entry_name(entry, unit->arena)));
    source_parameters(out, entry, unit->arena);
    text_printf(out, ")\n{\n");
    print_checks(out, entry);
    print_tick(&run, -1);
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
