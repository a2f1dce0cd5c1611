/* What NAME_run is given, and what it gives to kernels. */
#include "c/source.h"

Str source_argument(const Program *program, const Str *port, Arena *arena, uint32_t k, uint32_t b)
{
    const KernelBuffer *buffer = &program->memory.kernel[k].buffer[b];
    const Storage *storage = program_storage(program, buffer->storage);
    const char *type = prelude_c_type(buffer->dtype), *fixed = buffer->written ? "" : "const ";
    if (storage->role == STORAGE_WEIGHTS) {
        if (program_weights_form(program) == WEIGHTS_C)
            return source_weight_name(program, arena, storage->index);
        Str base = program_weights_form(program) == WEIGHTS_FILE
                       ? STR("w")
                       : str_format(arena, STR_FMT "_weights", STR_ARG(program->options.name));
        return str_format(arena, "(const %s *)(const void *)(" STR_FMT " + %lld)", type, STR_ARG(base),
                          (long long)storage->offset);
    }
    if (storage->role == STORAGE_ARENA || storage->role == STORAGE_SCRATCH)
        return str_format(arena, "(%s%s *)(void *)(a + %lld)", fixed, type,
                          (long long)(storage->offset + buffer->begin * dtype_bytes(buffer->dtype)));
    Str name = port[storage->role == STORAGE_INPUT ? storage->index : program->graph->input_count + storage->index];
    return buffer->begin ? str_format(arena, STR_FMT " + %lld", STR_ARG(name), (long long)buffer->begin) : name;
}

void source_describe(Text *out, const Program *program, const Kernel *kernel)
{
    Arena arena = {0};
    Text line = {0};
    for (uint32_t n = 0; program->options.describe && n < kernel->node_count; n++) {
        line.len = 0;
        program->options.describe(program->options.describe_context, &line, program->graph, kernel->node[n]);
        text_printf(out, n ? "       " : "    /* ");
        text_str(out, source_comment(&arena, text_view(&line)));
        text_printf(out, n + 1 < kernel->node_count ? "\n" : " */\n");
    }
    text_free(&line);
    arena_free(&arena);
}

void source_parameters(Text *out, const Program *program, Arena *arena)
{
    const Graph *graph = program->graph;
    const Str *port = source_port_names(program, arena);
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
    text_printf(out, "%svoid *arena", program_weights_form(program) == WEIGHTS_FILE ? "const void *weights, " : "");
}
