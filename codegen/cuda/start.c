/* NAME_params_init and NAME_state_init on a GPU: what is drawn is drawn there. */
#include "base/number.h"
#include "c/source.h"
#include "cuda/unit.h"

static const char fill_text[] =
    "template <typename T> static __global__ void nnc_fill(T *y, T x, long long count)\n"
    "{\n"
    "    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll)\n"
    "        y[i] = x;\n"
    "}\n\n";

static bool is_filled(const KeptSlot *slot)
{
    return slot->bytes && slot->start == START_FILL && !source_is_zero(slot);
}

void cuda_print_start_functions(Text *out, CudaUnit *unit)
{
    const Kept *kept = &unit->program->kept;
    bool fills = false;
    for (uint32_t i = 0; i < kept->count; i++)
        fills |= is_filled(&kept->slot[i]);
    if (fills)
        text_str(out, str_from(fill_text));
    source_start_functions(out, unit->program, &unit->needs, unit->arena);
}

/* `NNC_LAUNCH(nnc_fill<float>, 4, 256, stream, (float *)(void *)(s + 64)`: who fills the slot, and where. */
static void print_launch(Text *out, const KeptSlot *slot, Str function)
{
    DType dtype = value_type(slot->graph, slot->value)->dtype;
    long long count = (long long)(slot->bytes / dtype_bytes(dtype));
    text_printf(out, "    NNC_LAUNCH(" STR_FMT ", %lld, 256, stream, (%s *)(void *)(%s + %lld), ", STR_ARG(function),
                (long long)least((count + 255) / 256, 1024), prelude_c_type(dtype), source_block_pointer(slot->block),
                (long long)slot->offset[0]);
}

static void print_fill(Text *out, const KeptSlot *slot, Arena *arena)
{
    DType dtype = value_type(slot->graph, slot->value)->dtype;
    const char *type = prelude_c_type(dtype);
    print_launch(out, slot, str_format(arena, "nnc_fill<%s>", type));
    text_printf(out, "(%s)", type);
    source_element(out, dtype, slot->fill, 0);
    text_printf(out, ", %lld);\n", (long long)(slot->bytes / dtype_bytes(dtype)));
}

static void print_copy(Text *out, const Program *program, const KeptSlot *slot, Arena *arena)
{
    const char *block = source_block_pointer(slot->block);
    long long at = (long long)slot->offset[0], bytes = (long long)slot->bytes;
    if (cuda_weights_in_source(program))
        text_printf(out,
                    "    NNC_CALL(cudaMemcpyFromSymbolAsync(%s + %lld, " STR_FMT
                    ", %lld, 0, cudaMemcpyDeviceToDevice, stream));\n",
                    block, at, STR_ARG(source_weight_name(program, arena, slot->weights)), bytes);
    else
        text_printf(out,
                    "    NNC_CALL(cudaMemcpyAsync(%s + %lld, (const unsigned char *)weights + %lld, %lld, "
                    "cudaMemcpyDeviceToDevice, stream));\n",
                    block, at, (long long)program->weights[slot->weights].offset, bytes);
}

static void print_slot(Text *out, const CudaUnit *unit, const KeptSlot *slot)
{
    source_start_comment(out, slot, unit->arena);
    if (slot->start == START_STORED) {
        print_copy(out, unit->program, slot, unit->arena);
    } else if (slot->start == START_FILL) {
        print_fill(out, slot, unit->arena);
    } else {
        print_launch(out, slot, source_start_function(slot, unit->arena));
        text_printf(out, STR_FMT ");\n", STR_ARG(source_start_arguments(slot, unit->arena)));
    }
}

static void print_zeros(Text *out, const CudaUnit *unit, uint32_t slot, uint32_t count)
{
    const Kept *kept = &unit->program->kept;
    source_zeros_comment(out, kept, slot, count, unit->arena);
    text_printf(out, "    NNC_CALL(cudaMemsetAsync(%s + %lld, 0, %lld, stream));\n",
                source_block_pointer(kept->slot[slot].block), (long long)kept->slot[slot].offset[0],
                (long long)source_zeros_bytes(kept, slot, count));
}

void cuda_print_start(Text *out, const CudaUnit *unit, KeptBlock block)
{
    const Kept *kept = &unit->program->kept;
    const char *pointer = source_block_pointer(block);
    if (!kept->bytes[block])
        return;
    text_printf(out, "\n" STR_FMT ", cudaStream_t stream)\n{\n",
                STR_ARG(source_start_signature(unit->program, block, unit->arena)));
    text_printf(out, "    unsigned char *const %s = (unsigned char *)%s;\n\n", pointer, source_block_name(block));
    if (!cuda_weights_in_source(unit->program))
        cuda_print_check(out, "weights", true);
    cuda_print_check(out, pointer, true);
    for (uint32_t i = 0, next; source_next_start(kept, block, &i, &next); i = next) {
        if (source_zeros(kept, i))
            print_zeros(out, unit, i, next - i);
        else
            print_slot(out, unit, &kept->slot[i]);
    }
    if (block == BLOCK_PARAMS && !source_start_seeded(unit->program))
        text_printf(out, "    (void)seed;\n");
    text_printf(out, "    (void)stream;\n    return 0;\n}\n");
}
