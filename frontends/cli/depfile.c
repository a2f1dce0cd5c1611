#include "cli/depfile.h"

#include <string.h>

#include "cli/input_files.h"
#include "cli/inputs.h"

/* As gcc and clang do it, and make, ninja and CMake understand it: a backslash before blanks, # and :, and two for each
 * before a blank; $ doubled. */
static void put_path(Text *out, Str path)
{
    for (uint32_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];
        if (c == ' ' || c == '\t') {
            for (uint32_t k = i; k > 0 && path.ptr[k - 1] == '\\'; k--)
                text_char(out, '\\');
            text_char(out, '\\');
        } else if (c == '#' || c == ':') {
            text_char(out, '\\');
        } else if (c == '$') {
            text_char(out, '$');
        }
        text_char(out, c);
    }
}

typedef struct Paths {
    Str *at;
    uint32_t count, capacity;
} Paths;

static void add_path(Cli *cli, Paths *paths, Str path)
{
    for (uint32_t i = 0; i < paths->count; i++)
        if (str_eq(paths->at[i], path))
            return;
    ARENA_PUSH(&cli->arena, paths->at, paths->count, paths->capacity, path);
}

static Paths read_paths(Cli *cli, const Model *model)
{
    Paths paths = {0};
    Str word;
    add_path(cli, &paths, model->path);
    for (uint32_t i = 0; i < model->module->file_count; i++)
        add_path(cli, &paths, model->module->file[i]);
    if (model->weights_path.len)
        add_path(cli, &paths, model->weights_path);
    for (uint32_t i = 0; i < model->tune_count; i++)
        add_path(cli, &paths, model->tune_path[i]);
    for (uint32_t at = 0; args_next(cli, "input", &at, &word);) {
        Str path = input_path(input_flag_split(word).what);
        if (path.len)
            add_path(cli, &paths, path);
    }
    return paths;
}

/* A rule is a line: there is no way to write a name with a line break in it. */
static bool check_path(Cli *cli, Str path)
{
    return !memchr(path.ptr, '\n', path.len) ||
           diag_file_error(&cli->diag, path, "a name with a line break cannot stand in a depfile");
}

static bool put_rules(Cli *cli, const Paths *paths, Str target, Text *out)
{
    bool good = check_path(cli, target);
    put_path(out, target);
    text_char(out, ':');
    for (uint32_t i = 0; i < paths->count; i++) {
        good &= check_path(cli, paths->at[i]);
        text_printf(out, " \\\n  ");
        put_path(out, paths->at[i]);
    }
    text_char(out, '\n');
    for (uint32_t i = 0; i < paths->count; i++) {
        text_char(out, '\n');
        put_path(out, paths->at[i]);
        text_printf(out, ":\n");
    }
    return good;
}

bool depfile_write(Cli *cli, const Model *model, Str target, Depfile *depfile)
{
    Str path = args_value(cli, "depfile");
    Paths paths = read_paths(cli, model);
    Text text = {0};

    *depfile = (Depfile){0};
    if (!path.ptr)
        return true;
    bool good = put_rules(cli, &paths, target, &text) && file_writer_open(&depfile->writer, &cli->diag, path);
    depfile->open = good;
    if (good)
        file_writer_put(&depfile->writer, text.ptr, text.len);
    text_free(&text);
    return good;
}

bool depfile_commit(Cli *cli, Depfile *depfile)
{
    bool open = depfile->open;
    depfile->open = false;
    return !open || file_writer_commit(&depfile->writer, &cli->diag);
}

void depfile_abandon(Depfile *depfile)
{
    if (depfile->open)
        file_writer_abandon(&depfile->writer);
    depfile->open = false;
}
