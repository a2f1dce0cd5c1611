#include "cli/input_files.h"

#include <string.h>

#include "formats/npy.h"
#include "formats/pnm.h"

InputFlag input_flag_split(Str flag)
{
    const char *equals = memchr(flag.ptr, '=', flag.len);
    if (!equals)
        return (InputFlag){.what = flag};
    uint32_t length = (uint32_t)(equals - flag.ptr);
    return (InputFlag){{flag.ptr, length}, {equals + 1, flag.len - length - 1}};
}

/* Where `.npz:` stands in it, the end of the path; NONE without. */
static uint32_t member_colon(Str what)
{
    for (uint32_t i = 0; i + 5 < what.len; i++)
        if (memcmp(what.ptr + i, ".npz:", 5) == 0)
            return i + 4;
    return NONE;
}

Str input_path(Str what)
{
    uint32_t colon = member_colon(what);
    if (str_is(what, "zeros") || (what.len >= 7 && memcmp(what.ptr, "random:", 7) == 0))
        return (Str){0};
    return colon == NONE ? what : (Str){what.ptr, colon};
}

bool input_is_image(Str what)
{
    return str_ends(what, ".pgm") || str_ends(what, ".ppm");
}

static const Tensor *read_npz(Module *module, Str what, Str name, Str file_name)
{
    uint32_t colon = member_colon(what);
    if (colon != NONE)
        return npz_read(module, input_path(what), (Str){what.ptr + colon + 1, what.len - colon - 1});
    Str member = name.len && npz_has(what, name) ? name : (Str){0};
    if (!member.len && file_name.len && npz_has(what, file_name))
        member = file_name;
    return npz_read(module, what, member);
}

/* NULL.  A file that is read for its extents alone has no name where the flag gives none. */
static const Tensor *unknown_kind(Diag *diag, Str what, Str name)
{
    const char *known = ".npy, .npz, .pgm, .ppm, random:SEED and zeros";
    if (name.len)
        diag_file_error(diag, what, "input " STR_FMT ": known are %s", STR_ARG(name), known);
    else
        diag_file_error(diag, what, "--input: neither NAME=FILE nor one of %s", known);
    return NULL;
}

const Tensor *input_file_read(Module *module, Str what, Str name, Str file_name)
{
    if (input_is_image(what))
        return pnm_read(module, what);
    if (str_ends(what, ".npz") || member_colon(what) != NONE)
        return read_npz(module, what, name, file_name);
    if (str_ends(what, ".npy"))
        return npy_read(module, what);
    return unknown_kind(module->diag, what, name);
}

/* Which member of an archive it is may depend on what the input is called, where there are several. */
static bool is_certain(InputFlag flag)
{
    return !str_ends(flag.what, ".npz") || npz_has(flag.what, flag.name);
}

/* The elements are read twice, but kept once. */
static bool read_shape(Cli *cli, InputFlag flag, Shape *shape)
{
    Arena arena = {0};
    const Tensor *tensor = input_file_read(module_new(&arena, &cli->diag), flag.what, flag.name, (Str){0});
    if (tensor)
        *shape = tensor->type->shape;
    arena_free(&arena);
    return tensor != NULL;
}

bool input_files_define(Cli *cli, Define **list, uint32_t *count, uint32_t *capacity)
{
    Str word;
    for (uint32_t at = 0; args_takes(cli, "input") && args_next(cli, "input", &at, &word);) {
        InputFlag flag = input_flag_split(word);
        Shape *shape = ARENA_NEW(&cli->arena, Shape);
        if (!input_path(flag.what).len || !is_certain(flag))
            continue;
        if (!read_shape(cli, flag, shape))
            return false;
        Define define = {.name = flag.name, .file = shape};
        ARENA_PUSH(&cli->arena, *list, *count, *capacity, define);
    }
    return true;
}
