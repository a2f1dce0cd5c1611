#include <string.h>

#include "frontends/nnc/text.h"

typedef struct Foreign {
    const char *theirs, *ours;
} Foreign;

static const Foreign foreign[] = {
#define FOREIGN(THEIRS, OURS) {#THEIRS, #OURS},
#include "frontends/nnc/foreign.def"
#undef FOREIGN
};

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
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (str_is(last, foreign[i].theirs))
            return str_from(foreign[i].ours);
    bool ours = last.len < name.len && /* the search reads the whole library */
                (op_find(last) < OP_WRITTEN || nnc_library_find(last, &(LibraryFunction){0}));
    return ours ? last : (Str){0};
}
