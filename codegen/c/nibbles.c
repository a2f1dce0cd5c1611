/* Elements that lie two to a byte (kernel/storage.h): where, and what loads them. */
#include "c/expr.h"

const char *print_buffer_type(const KernelBuffer *buffer)
{
    return prelude_c_type(buffer->nibbles ? DT_U8 : buffer->dtype);
}

/* What is even, halved: where its factor is odd it is a local that is even. */
static Term halved_term(Arena *arena, const Term *term)
{
    if (term->factor % 2 == 0)
        return (Term){term->factor / 2, term->atom};
    Atom half = {.kind = ATOM_DIV,
                 .index = {0, 1, arena_copy(arena, &(Term){1, term->atom}, sizeof *term)},
                 .divisor = 2,
                 .low = term->atom->low / 2,
                 .high = term->atom->high / 2};
    return (Term){term->factor, arena_copy(arena, &half, sizeof half)};
}

bool print_nibble_byte(Arena *arena, Index index, Index *half)
{
    if (!index_is_even(index))
        return false;
    Term *term = ARENA_ARRAY(arena, Term, index.count);
    for (uint32_t i = 0; i < index.count; i++)
        term[i] = halved_term(arena, &index.term[i]);
    *half = (Index){index.constant / 2, index.count, term};
    return true;
}

Helper print_nibble_helper(DType dtype, int64_t stride, bool even)
{
    bool is_signed = dtype == DT_I8;
    if (!even || (stride != 1 && stride != 4))
        return is_signed ? HELPER_EACH_I4 : HELPER_EACH_U4;
    return stride == 1 ? (is_signed ? HELPER_LOAD_I4 : HELPER_LOAD_U4) : is_signed ? HELPER_PART_I4 : HELPER_PART_U4;
}
