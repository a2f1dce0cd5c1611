#include "program/stage.h"

static const PassRow stage_table[] = {
#define STAGE(NAME, doc) {#NAME, doc, stage_##NAME},
#include "program/stage.def"
};

const PassRow *stage_at(uint32_t number)
{
    if (number < pass_count)
        return &pass_table[number];
    number -= pass_count;
    return number < sizeof stage_table / sizeof *stage_table ? &stage_table[number] : NULL;
}

const PassRow *stage_find(Str name)
{
    const PassRow *row;
    for (uint32_t i = 0; (row = stage_at(i)); i++)
        if (str_is(name, row->name))
            return row;
    return NULL;
}

const char *stage_of_compilation(uint32_t number)
{
    uint32_t passes = 0;
    while (pass_pipeline[passes])
        passes++;
    return number < passes                                              ? pass_pipeline[number]
           : number - passes < sizeof stage_table / sizeof *stage_table ? stage_table[number - passes].name
                                                                        : NULL;
}
