/* Prints a prelude, for prelude_test.py:
 *
 *     prelude_print TARGET           with every helper there is
 *     prelude_print TARGET NUMBER    with one helper, for f32 and vectors; its names come first, in a comment */
#include "c/prelude.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_of_integers(Helper helper)
{
    return helper == HELPER_DIV || helper == HELPER_SHIFT_LEFT || helper == HELPER_SHIFT_RIGHT;
}

static bool has_scalar(const Target *target, Helper helper, DType dtype)
{
    if (helper == HELPER_TRANSPOSE)
        return target->dialect != DIALECT_C99 && (dtype == DT_U8 || dtype == DT_U16 || dtype == DT_U64);
    if (helper == HELPER_SELECT || helper == HELPER_MAX || helper == HELPER_MIN || helper == HELPER_ABS)
        return true;
    if (helper == HELPER_ATLEAST || helper == HELPER_ATMOST)
        return dtype == DT_F32;
    if (helper == HELPER_PAIR || helper == HELPER_QUAD)
        return dtype == (helper == HELPER_PAIR ? DT_I16 : DT_U8);
    if (helper == HELPER_NIBBLE_AT)
        return dtype == DT_I8 || dtype == DT_U8;
    if (prelude_is_random(helper))
        return dtype == (helper == HELPER_UNIT || helper == HELPER_GAUSS ? DT_F32 : DT_I64);
    if (dtype_is_float(dtype))
        return helper > HELPER_ABS && !is_of_integers(helper) && helper < HELPER_CONVERT;
    if (helper > HELPER_CONVERT)
        return false;
    return is_of_integers(helper) || helper == HELPER_FMOD || helper == HELPER_MOD;
}

/* Strict C99 has functions for operators, transposes by loops, and neither products of pairs nor elements by turns. */
static bool has_vector(const Target *target, Helper helper)
{
    if (helper == HELPER_PAIR || helper == HELPER_QUAD || helper == HELPER_NIBBLE_AT)
        return false;
    if ((helper >= HELPER_PAIRS_I8 && helper <= HELPER_FLOATS) || (helper >= HELPER_THIRD && helper <= HELPER_STORE_8))
        return target->dialect != DIALECT_C99;
    bool of_c99 = helper == HELPER_DIV || helper > HELPER_CONVERT;
    if (target->dialect == DIALECT_C99 ? helper == HELPER_TRANSPOSE : of_c99)
        return false;
    return (of_c99 || !is_of_integers(helper)) && helper != HELPER_CONVERT && helper != HELPER_WORD &&
           helper != HELPER_FOLD_IN;
}

static void need_all(PreludeNeeds *needs, Arena *arena, const Target *target)
{
    for (Helper h = 0; h < HELPER_COUNT; h++) {
        for (DType dtype = 0; dtype < DT_COUNT; dtype++)
            if (has_scalar(target, h, dtype))
                prelude_need(needs, arena, h, dtype, 1);
        if (has_vector(target, h))
            prelude_need(needs, arena, h, DT_F32, target->lanes);
    }
    for (DType from = 0; from < DT_COUNT; from++)
        for (DType to = 0; to < DT_COUNT; to++)
            prelude_need_convert(needs, arena, from, to);
}

static void need_one(PreludeNeeds *needs, Arena *arena, const Target *target, Helper helper)
{
    const char *scalar = "", *vector = "";
    if (has_scalar(target, helper, DT_F32))
        scalar = prelude_need(needs, arena, helper, DT_F32, 1);
    if (has_vector(target, helper))
        vector = prelude_need(needs, arena, helper, DT_F32, target->lanes);
    printf("/* %s %s */\n", scalar, vector);
}

int main(int argc, char **argv)
{
    Arena arena = {0};
    Diag diag = {0};
    PreludeNeeds needs = {0};
    const Target *target = argc > 1 ? target_find(str_from(argv[1]), &diag) : NULL;
    Text out = {0};

    if (!target)
        return 2;
    if (argc == 2)
        need_all(&needs, &arena, target);
    else if (strtoul(argv[2], NULL, 10) < HELPER_COUNT)
        need_one(&needs, &arena, target, (Helper)strtoul(argv[2], NULL, 10));
    else
        return 1;
    prelude_print(&out, target, &needs);
    fwrite(out.ptr, 1, out.len, stdout);
    text_free(&out);
    arena_free(&arena);
    return 0;
}
