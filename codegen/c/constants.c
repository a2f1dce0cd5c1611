#include "c/constants.h"

#define BLANK '\1' /* what stands in front of a constant's number while constants are noted */

Str constants_text(Arena *arena, const Constant *constant)
{
    return constant->type ? constant->number : str_format(arena, "%lld", (long long)constant->value);
}

Str constants_next(Constants *constants, Arena *arena, Constant constant)
{
    if (constants && constants->written) {
        Str written = constants->written[constants->next++];
        if (written.len)
            return written;
    } else if (constants) {
        ARENA_PUSH(arena, constants->at, constants->count, constants->capacity, constant);
        return str_format(arena, "%c%u%c", BLANK, constants->count - 1, BLANK);
    }
    return constants_text(arena, &constant);
}

void constants_mark_printed(const Constants *constants, Str text)
{
    for (uint32_t i = 0; i < text.len; i++) {
        uint32_t number = 0;
        if (text.ptr[i] != BLANK)
            continue;
        while (++i < text.len && text.ptr[i] != BLANK)
            number = number * 10 + (uint32_t)(text.ptr[i] - '0');
        if (number < constants->count)
            constants->at[number].printed = true;
    }
}
