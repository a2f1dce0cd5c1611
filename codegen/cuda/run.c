/* NAME_run on a GPU: launches in order, on one stream.  Conditions are read back before the host goes on. */
#include "cuda/unit.h"

#include "ops/meaning.h"
#include "storage/flow.h"

typedef struct Run {
    const CudaUnit *unit;
    const Entry *entry;
    uint32_t number; /* of the entry */
    Text *out;
    const Str *port;
    const bool *needed; /* per value: flow_needed */
    uint32_t depth;     /* of blocks */
    uint32_t shown;     /* the kernel whose nodes have been shown */
    Map told;           /* what the kernels do that have been */
} Run;

static void indent(Run *run)
{
    text_fill(run->out, ' ', 4 * (run->depth + 1));
}

/* A value that is in memory, as a whole. */
static Str pointer_of(const Run *run, ValueId value)
{
    KernelBuffer buffer = flow_buffer(&run->entry->memory, value);
    return source_storage(run->entry, run->port, run->unit->arena, &buffer);
}

static Str pointer_in(void *context, ValueId value)
{
    return pointer_of(context, value);
}

static Pointers pointers_of(Run *run)
{
    return (Pointers){run->entry, pointer_in, run};
}

/* A place of its family that those are not in which must stay. */
static void print_choice(Run *run, ValueId maker)
{
    const char *type = prelude_c_type(entry_storage(run->entry, maker)->dtype);
    Pointers pointers = pointers_of(run);
    indent(run);
    text_printf(run->out, "%s *const v%u = (%s *)(" STR_FMT ");\n", type, maker, type,
                STR_ARG(source_free_place(&pointers, run->unit->arena, maker)));
}

/* Places are chosen where a kernel makes the first of a value; by the smaller numbers first. */
static void print_choices(Run *run, uint32_t k)
{
    const Kernel *kernel = &run->entry->memory.kernel[k];
    for (ValueId last = NONE, next;; last = next) {
        next = NONE;
        for (uint32_t b = 0; b < kernel->buffer_count; b++) {
            const Storage *storage = entry_storage(run->entry, kernel->buffer[b].storage);
            bool later = last == NONE || storage->value > last;
            if (kernel->buffer[b].written && storage->role == STORAGE_TURNS && storage->first == k && later &&
                (next == NONE || storage->value < next))
                next = storage->value;
        }
        if (next == NONE)
            return;
        print_choice(run, next);
    }
}

/* The functions that the kernel launches whose first launch this is */
static Str functions_of(const Run *run, const StepList *list, uint32_t first)
{
    Str functions = {0};
    for (uint32_t s = first;
         s < list->count && list->step[s].kind == STEP_LAUNCH && list->step[s].kernel == list->step[first].kernel; s++)
        functions = str_format(run->unit->arena, STR_FMT "%u,", STR_ARG(functions),
                               run->unit->of_step[run->number][list->step[s].number]);
    return functions;
}

static void print_launch(Run *run, const StepList *list, uint32_t s)
{
    const Step *step = &list->step[s];
    const Program *program = run->unit->program;
    const Entry *entry = run->entry;
    const Kernel *kernel = &entry->memory.kernel[step->kernel];
    if (step->kernel != run->shown) {
        text_char(run->out, '\n');
        source_describe(run->out, entry, kernel, 4 * (run->depth + 1), &run->told, functions_of(run, list, s));
        print_choices(run, step->kernel);
    }
    run->shown = step->kernel;
    indent(run);
    if (kernel->asks) {
        Pointers pointers = pointers_of(run);
        text_printf(run->out, "if (" STR_FMT ")\n", STR_ARG(source_copy_is_due(&pointers, run->unit->arena, kernel)));
        text_fill(run->out, ' ', 4);
        indent(run);
    }
    text_printf(run->out, "NNC_LAUNCH(" STR_FMT ", %lld, %u, stream",
                STR_ARG(run->unit->function[run->unit->of_step[run->number][step->number]].name),
                (long long)step->section->blocks, step->section->threads);
    for (uint32_t b = 0; b < kernel->buffer_count; b++) {
        StorageRole role = entry_storage(entry, kernel->buffer[b].storage)->role;
        if (step->section->used[b] && role != STORAGE_SHARED &&
            !(role == STORAGE_WEIGHTS && cuda_weights_in_source(program)))
            text_printf(run->out, ", " STR_FMT,
                        STR_ARG(source_argument(entry, run->port, run->unit->arena, step->kernel, b)));
    }
    text_printf(run->out, ");\n");
}

static const Node *node_of_step(const Run *run, uint32_t k)
{
    return &run->entry->graph->node[run->entry->memory.kernel[k].node[0]];
}

static bool is_passed(const Run *run, ValueId value)
{
    return entry_storage(run->entry, value)->role == STORAGE_PASSED && run->needed[value];
}

static void declare_passed(Run *run, const Node *node, const ValueId *first)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (!is_passed(run, node->out[i]))
            continue;
        indent(run);
        text_printf(run->out, "const %s *v%u", prelude_c_type(entry_storage(run->entry, node->out[i])->dtype),
                    node->out[i]);
        if (first)
            text_printf(run->out, " = " STR_FMT, STR_ARG(pointer_of(run, first[i])));
        text_printf(run->out, ";\n");
    }
}

/* All at once: some may come to be what others have been. */
static void print_moves(Run *run, const ValueId *to, const ValueId *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!is_passed(run, to[i]))
            continue;
        indent(run);
        text_printf(run->out, "const %s *const next%u = " STR_FMT ";\n",
                    prelude_c_type(entry_storage(run->entry, to[i])->dtype), to[i], STR_ARG(pointer_of(run, from[i])));
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_passed(run, to[i]))
            continue;
        indent(run);
        text_printf(run->out, "v%u = next%u;\n", to[i], to[i]);
    }
}

/* A number that the host goes by. */
static void print_fetch(Run *run, ValueId value, const char *name)
{
    DType dtype = value_type(run->entry->graph, value)->dtype;
    indent(run);
    text_printf(run->out, "%s %s;\n", prelude_c_type(dtype), name);
    indent(run);
    text_printf(run->out, "NNC_CALL(cudaMemcpyAsync(&%s, " STR_FMT ", %u, cudaMemcpyDeviceToHost, stream));\n", name,
                STR_ARG(pointer_of(run, value)), dtype_bytes(dtype));
    indent(run);
    text_printf(run->out, "NNC_CALL(cudaStreamSynchronize(stream));\n");
}

static void print_leave(Run *run, ValueId condition)
{
    print_fetch(run, condition, "holds");
    indent(run);
    text_printf(run->out, "if (!holds)\n");
    indent(run);
    text_printf(run->out, "    break;\n");
}

static void print_steps(Run *run, const StepList *list);

static void print_loop(Run *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    int64_t most = flow_most_rounds(begin);
    text_char(run->out, '\n');
    declare_passed(run, begin, begin->in);
    indent(run);
    if (most)
        text_printf(run->out, "for (int64_t round = 0; round < %lld; round++) {\n", (long long)most);
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
    run->depth--;
    indent(run);
    text_printf(run->out, "}\n");
}

static void print_branches(Run *run, const Step *step)
{
    const Node *begin = node_of_step(run, step->kernel), *end = node_of_step(run, step->end);
    Branches branches = flow_branches(begin);
    text_char(run->out, '\n');
    declare_passed(run, end, NULL);
    const char *selector = str_format(run->unit->arena, "selected%u", step->kernel).ptr;
    print_fetch(run, begin->in[0], selector);
    for (uint32_t i = 0; i < step->body_count; i++) {
        if (!i)
            indent(run);
        if (i < branches.keys)
            text_printf(run->out, "if (%s == %lld) {\n", selector, (long long)branches.key[i]);
        else
            text_printf(run->out, "{\n");
        run->depth++;
        print_steps(run, &step->body[i]);
        print_moves(run, end->out, end->in + (size_t)i * end->out_count, end->out_count);
        run->depth--;
        indent(run);
        text_printf(run->out, i + 1 < step->body_count ? "} else " : "}\n");
    }
}

/* On the stream; the host knows whether the value was made where it is. */
static void print_copy(Run *run, const Step *step)
{
    const StateValue *state = &run->entry->memory.state[step->state];
    const KeptSlot *slot = &run->entry->program->kept.slot[run->entry->slot[step->state]];
    indent(run);
    if (state->from != NONE)
        text_printf(run->out, "if (" STR_FMT " != " STR_FMT ")\n        ", STR_ARG(pointer_of(run, state->from)),
                    STR_ARG(pointer_of(run, state->value)));
    text_printf(run->out, "NNC_CALL(cudaMemcpyAsync(%s + %lld, s + %lld, %lld, cudaMemcpyDeviceToDevice, stream));\n",
                source_block_pointer(slot->block), (long long)slot->offset[0], (long long)slot->offset[1],
                (long long)slot->bytes);
}

/* Recurses over the nesting of loops and branches. */
static void print_steps(Run *run, const StepList *list)
{
    for (uint32_t s = 0; s < list->count; s++) {
        const Step *step = &list->step[s];
        switch (step->kind) {
        case STEP_LAUNCH:
            print_launch(run, list, s);
            break;
        case STEP_LOOP:
            print_loop(run, step);
            break;
        case STEP_BRANCH:
            print_branches(run, step);
            break;
        case STEP_COPY:
            print_copy(run, step);
            break;
        case STEP_TURN: /* the host reads no states */
            break;
        }
    }
}

void cuda_print_signature(Text *out, const Entry *entry, Arena *arena)
{
    text_printf(out, "int " STR_FMT "(", STR_ARG(source_entry_name(entry, arena)));
    source_parameters(out, entry, arena);
    text_printf(out, ", cudaStream_t stream)");
}

/* Inputs that no kernel reads, outputs of no elements, and a stream without launches. */
static void print_unused(Text *out, const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    const Str *port = source_port_names(entry, arena);
    for (uint32_t i = 0; i < graph->input_count + graph->output_count; i++)
        if (!entry->used[i])
            text_printf(out, "    (void)" STR_FMT ";\n", STR_ARG(port[i]));
    if (!entry->steps.launches)
        text_printf(out, "    (void)stream;\n");
}

void cuda_print_check(Text *out, const char *pointer, bool needed)
{
    text_printf(out, "    if (");
    if (needed)
        text_printf(out, "!%s || ", pointer);
    text_printf(out, "(uintptr_t)%s %% %d != 0)\n        return (int)cudaErrorInvalidValue;\n", pointer,
                ARENA_ALIGNMENT);
}

static void print_checks(Text *out, const Entry *entry)
{
    bool handed = !cuda_weights_in_source(entry->program);
    text_printf(out, "    unsigned char *const a = (unsigned char *)arena;\n");
    if (handed)
        text_printf(out, "    const unsigned char *const w = (const unsigned char *)weights;\n");
    source_kept_pointers(out, entry);
    text_char(out, '\n');
    cuda_print_check(out, "a", entry->program->arena_bytes);
    if (handed)
        cuda_print_check(out, "w", true);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (entry_keeps(entry, block))
            cuda_print_check(out, source_block_pointer(block), true);
}

void cuda_print_run(Text *out, const CudaUnit *unit, uint32_t e)
{
    const Entry *entry = &unit->program->entry[e];
    cuda_print_signature(out, entry, unit->arena);
    text_printf(out, "\n{\n");
    print_checks(out, entry);
    Run run = {.unit = unit,
               .entry = entry,
               .number = e,
               .out = out,
               .port = source_port_names(entry, unit->arena),
               .needed = flow_needed(&entry->memory, unit->arena),
               .shown = NONE,
               .told = {.arena = unit->arena}};
    print_steps(&run, &entry->steps.list);
    print_unused(out, entry, unit->arena);
    text_printf(out, "\n    return 0;\n}\n");
}
