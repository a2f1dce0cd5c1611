/* What NAME_run is given, and what it gives to kernels. */
#include "c/source.h"

#include <string.h>

#include "storage/flow.h"

Str source_kept_place(const Entry *entry, Arena *arena, const Storage *storage)
{
    const KeptSlot *slot = &entry->program->kept.slot[entry->slot[storage->index]];
    if (slot->block == BLOCK_PARAMS)
        return str_format(arena, "%s + %lld", storage->next ? "s" : "p", (long long)slot->offset[storage->next]);
    bool device = entry->program->options.target->dialect == DIALECT_CUDA; /* whose memory the host does not read */
    if (device)
        return str_format(arena, "s + %lld", (long long)slot->offset[storage->next]);
    if (!slot->twice)
        return str_format(arena, "s + %lld", (long long)slot->offset[0]);
    return str_format(arena, "s + (s[%u] ? %lld : %lld)", slot->flag, (long long)slot->offset[!storage->next],
                      (long long)slot->offset[storage->next]);
}

/* ` + 12` elements. */
static const char *plus_elements(Arena *arena, int64_t begin)
{
    return begin ? str_format(arena, " + %lld", (long long)begin).ptr : "";
}

/* Of a family: `(void *)(a + 64)`, an array of the caller's or of a state. */
static Str place_of(const Pointers *p, Arena *arena, const Family *family, uint32_t place)
{
    return family->outside[place] == NONE ? str_format(arena, "(void *)(a + %lld)", (long long)family->offset[place])
                                          : p->of(p->context, family->outside[place]);
}

static bool is_state(const Pointers *p, ValueId value)
{
    return storage_is_kept(entry_storage(p->entry, value)->role);
}

/* A state's value lies in the first place, whatever runs. */
static uint32_t first_place(const Pointers *p, const ValueId *avoided)
{
    uint32_t first = 0;
    for (; *avoided != NONE; avoided++)
        first = is_state(p, *avoided) ? 1 : first;
    return first;
}

Str source_free_place(const Pointers *p, Arena *arena, ValueId maker)
{
    const Family *family = &p->entry->memory.family[entry_storage(p->entry, maker)->family];
    const ValueId *avoided = flow_avoided(&p->entry->memory, maker);
    Text text = {0};
    for (uint32_t k = first_place(p, avoided); k < family->places; k++) {
        Str place = place_of(p, arena, family, k);
        const char *between = "";
        for (uint32_t i = 0; k + 1 < family->places && avoided[i] != NONE; i++) {
            if (is_state(p, avoided[i]))
                continue;
            text_printf(&text, "%s" STR_FMT " != " STR_FMT, between, STR_ARG(p->of(p->context, avoided[i])),
                        STR_ARG(place));
            between = " && ";
        }
        text_printf(&text, "%s" STR_FMT "%s", *between ? " ? " : "", STR_ARG(place), *between ? " : " : "");
        if (!*between)
            break;
    }
    Str chosen = str_copy(arena, text_view(&text));
    text_free(&text);
    return chosen;
}

Str source_copy_is_due(const Pointers *p, Arena *arena, const Kernel *kernel)
{
    const Node *node = &p->entry->graph->node[kernel->anchor];
    const Storage *to = entry_storage(p->entry, node->out[0]);
    Str from = p->of(p->context, flow_owner(p->entry->graph, node->in[0])), at = p->of(p->context, node->out[0]);
    Str due = str_format(arena, STR_FMT " != " STR_FMT, STR_ARG(from), STR_ARG(at));
    if (!to->next)
        return due;
    Str value = p->of(p->context, p->entry->memory.state[to->index].value);
    return str_format(arena, STR_FMT " != " STR_FMT " && " STR_FMT, STR_ARG(from), STR_ARG(value), STR_ARG(due));
}

Str source_argument(const Entry *entry, const Str *port, Arena *arena, uint32_t k, uint32_t b)
{
    return source_storage(entry, port, arena, &entry->memory.kernel[k].buffer[b]);
}

Str source_storage(const Entry *entry, const Str *port, Arena *arena, const KernelBuffer *buffer)
{
    const Storage *storage = entry_storage(entry, buffer->storage);
    const Program *program = entry->program;
    const char *type = print_buffer_type(buffer), *fixed = buffer->written ? "" : "const ";
    if (storage->role == STORAGE_WEIGHTS) {
        if (program_weights_form(program) == WEIGHTS_C)
            return source_weight_name(program, arena, storage->index);
        return str_format(arena, "(const %s *)(const void *)(" STR_FMT " + %lld)", type,
                          STR_ARG(source_weights_block(program, arena)), (long long)storage->offset);
    }
    if (storage->role == STORAGE_PACKED)
        return str_format(arena, "(const %s *)(const void *)(k + %lld)", type, (long long)storage->offset);
    if (storage_is_kept(storage->role))
        return str_format(arena, "(%s%s *)(%svoid *)(" STR_FMT ")%s", fixed, type, fixed,
                          STR_ARG(source_kept_place(entry, arena, storage)), plus_elements(arena, buffer->begin));
    if (storage->role == STORAGE_PASSED || storage->role == STORAGE_TURNS)
        return str_format(arena, "v%u%s", storage->value, plus_elements(arena, buffer->begin));
    if (storage->role == STORAGE_ARENA || storage->role == STORAGE_SCRATCH)
        return str_format(arena, "(%s%s *)(void *)(a + %lld)", fixed, type,
                          (long long)(storage->offset + buffer->begin * dtype_bytes(buffer->dtype)));
    Str name = port[storage->role == STORAGE_INPUT ? storage->index : entry->graph->input_count + storage->index];
    return str_format(arena, STR_FMT "%s", STR_ARG(name), plus_elements(arena, buffer->begin));
}

/* The kernel that was told of before and is called in the same way, for the same nodes; NONE: this is the first. */
static uint32_t told_before(Map *told, const Entry *entry, const Kernel *kernel, Str calls)
{
    Text key = {0}; /* kernels may have thousands of nodes */
    text_str(&key, calls);
    for (uint32_t n = 0; n < kernel->node_count; n++)
        text_printf(&key, " %d", (int)entry->graph->node[kernel->node[n]].op);
    uint32_t before = map_get(told, text_view(&key));
    if (before == MAP_NONE)
        map_put(told, str_copy(told->arena, text_view(&key)), kernel->id);
    text_free(&key);
    return before == MAP_NONE ? NONE : before;
}

/* The number stands once, with the recipe. */
static void drop_bare_number(Text *line, const Kernel *kernel)
{
    Text number = {0};
    text_printf(&number, " @kernel(%u)", kernel->id);
    for (size_t at = line->len; at-- > 0 && line->len >= number.len;) {
        if (at + number.len > line->len || memcmp(line->ptr + at, number.ptr, number.len) != 0)
            continue;
        memmove(line->ptr + at, line->ptr + at + number.len, line->len - at - number.len);
        line->len -= number.len;
        break;
    }
    text_free(&number);
}

void source_describe(Text *out, const Entry *entry, const Kernel *kernel, uint32_t indent, Map *told, Str calls)
{
    const CompileOptions *options = &entry->program->options;
    uint32_t before = options->describe && kernel->node_count > 1 ? told_before(told, entry, kernel, calls) : NONE;
    Arena arena = {0};
    Text line = {0};
    if (before != NONE) {
        text_fill(out, ' ', indent);
        text_printf(out, "/* @kernel(%u), as @kernel(%u) */\n", kernel->id, before);
    }
    for (uint32_t n = 0; options->describe && before == NONE && n < kernel->node_count; n++) {
        line.len = 0;
        text_fill(out, ' ', indent);
        options->describe(options->describe_context, &line, entry->graph, kernel->node[n]);
        if (!entry->graph->node[kernel->node[n]].mark)
            drop_bare_number(&line, kernel);
        text_printf(out, n ? "   " : "/* ");
        text_str(out, source_comment(&arena, text_view(&line)));
        text_printf(out, n + 1 < kernel->node_count ? "\n" : " */\n");
    }
    text_free(&line);
    arena_free(&arena);
}

/* Params that are only read are const; who reads states may also turn them. */
static const char *qualifier(const Entry *entry, KeptBlock block)
{
    return block != BLOCK_STATE && !entry_updates(entry, block) ? "const " : "";
}

/* The next item of a list, with the comma behind it. */
static Str next_item(const char *at)
{
    const char *comma = strstr(at, ", ");
    return comma ? (Str){at, (uint32_t)(comma - at) + 1} : str_from(at);
}

/* Further lines begin under the first item, unless that leaves little room. */
void source_break_list(Text *out)
{
    size_t begin = out->len;
    while (begin && out->ptr[begin - 1] != '\n')
        begin--;
    Text line = {0};
    text_put(&line, out->ptr + begin, out->len - begin);
    const char *list = strchr(line.ptr, '(');
    if (list && line.len > SOURCE_WIDTH) {
        size_t column = (size_t)(list - line.ptr) + 1, indent = column;
        if (indent > SOURCE_WIDTH / 2)
            indent = strspn(line.ptr, " ") + 8;
        out->len = begin + column;
        for (Str item = next_item(list + 1); item.len; item = next_item(item.ptr + item.len)) {
            bool first = item.ptr == list + 1;
            if (!first && column + item.len > SOURCE_WIDTH) {
                text_char(out, '\n');
                text_fill(out, ' ', indent);
                column = indent + item.len - 1;
                item = (Str){item.ptr + 1, item.len - 1};
            } else {
                column += item.len;
            }
            text_str(out, item);
        }
    }
    text_free(&line);
}

void source_parameters(Text *out, const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    const Str *port = source_port_names(entry, arena);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const Value *value = &graph->value[graph->input[i]];
        int64_t count = shape_elements(&value->type->shape);
        text_printf(out, "const %s " STR_FMT "[%lld], ", prelude_c_type(value->type->dtype), STR_ARG(port[i]),
                    (long long)(count ? count : 1));
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        int64_t count = shape_elements(&type->shape);
        text_printf(out, "%s " STR_FMT "[%lld], ", prelude_c_type(type->dtype), STR_ARG(port[graph->input_count + i]),
                    (long long)(count ? count : 1));
    }
    text_printf(out, "%s", program_weights_form(entry->program) == WEIGHTS_FILE ? "const void *weights, " : "");
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (entry_keeps(entry, block))
            text_printf(out, "%svoid *%s, ", qualifier(entry, block), source_block_name(block));
    text_printf(out, "void *arena%s", program_shares(entry->program) ? ", nnc_team *team" : "");
}

void source_signature(Text *out, const Entry *entry, Arena *arena)
{
    text_printf(out, "int " STR_FMT "(", STR_ARG(source_entry_name(entry, arena)));
    source_parameters(out, entry, arena);
    text_char(out, ')');
    source_break_list(out);
}

void source_kept_pointers(Text *out, const Entry *entry)
{
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++) {
        const char *fixed = qualifier(entry, block);
        if (entry_keeps(entry, block))
            text_printf(out, "    %sunsigned char *const %s = (%sunsigned char *)%s;\n", fixed,
                        source_block_pointer(block), fixed, source_block_name(block));
    }
}

Str source_lent(const Entry *entry, Arena *arena)
{
    Text text = {0};
    text_printf(&text, "%s", program_weights_form(entry->program) == WEIGHTS_FILE ? "weights, " : "");
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (entry_keeps(entry, block))
            text_printf(&text, "%s, ", source_block_name(block));
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}
