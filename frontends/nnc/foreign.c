#include <string.h>

#include "frontends/nnc/text.h"

typedef struct Foreign {
    const char *theirs, *ours;
} Foreign;

static const Foreign foreign[] = {
#define FOREIGN(THEIRS, OURS) {#THEIRS, #OURS},
#define FOREIGN_DTYPE(THEIRS, OURS)
#define FOREIGN_PARAMETER(THEIRS, OURS)
#include "frontends/nnc/foreign.def"
};

static const Foreign foreign_dtype[] = {
#undef FOREIGN
#undef FOREIGN_DTYPE
#define FOREIGN(THEIRS, OURS)
#define FOREIGN_DTYPE(THEIRS, OURS) {#THEIRS, #OURS},
#include "frontends/nnc/foreign.def"
};

static const Foreign foreign_parameter[] = {
#undef FOREIGN_DTYPE
#undef FOREIGN_PARAMETER
#define FOREIGN_DTYPE(THEIRS, OURS)
#define FOREIGN_PARAMETER(THEIRS, OURS) {#THEIRS, #OURS},
#include "frontends/nnc/foreign.def"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* `sum` of `np.sum`, `torch.nn.functional.sum` and, as a method, of `x.sum` */
static Str last_part(Str name)
{
    uint32_t begin = name.len;
    while (begin && name.ptr[begin - 1] != '.')
        begin--;
    return (Str){name.ptr + begin, name.len - begin};
}

Str nnc_foreign_name(Str name)
{
    Str last = last_part(name);
    for (size_t i = 0; i < COUNT(foreign); i++)
        if (str_is(last, foreign[i].theirs))
            return str_from(foreign[i].ours);
    bool ours = last.len < name.len && /* the search reads the whole library */
                (op_find(last) < OP_WRITTEN || nnc_library_find(last, &(LibraryFunction){0}));
    return ours ? last : (Str){0};
}

Str nnc_foreign_dtype(Str name)
{
    Str last = last_part(name);
    for (size_t i = 0; i < COUNT(foreign_dtype); i++)
        if (str_is(last, foreign_dtype[i].theirs))
            return str_from(foreign_dtype[i].ours);
    return (Str){0};
}

bool nnc_is_foreign_parameter(Str name, Str ours)
{
    for (size_t i = 0; i < COUNT(foreign_parameter); i++)
        if (str_is(name, foreign_parameter[i].theirs) && str_is(ours, foreign_parameter[i].ours))
            return true;
    return false;
}
