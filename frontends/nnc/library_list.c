/* The library's text, function by function: it is written in one manner, which the tests hold it to. */
#include "frontends/nnc/text.h"

#include <string.h>

static Str take_line(Str text, uint32_t *at)
{
    uint32_t begin = *at;
    while (*at < text.len && text.ptr[*at] != '\n')
        ++*at;
    Str line = {text.ptr + begin, *at - begin};
    *at += *at < text.len;
    return line;
}

static bool starts(Str line, const char *word)
{
    return line.len >= strlen(word) && memcmp(line.ptr, word, strlen(word)) == 0;
}

static uint32_t find(Str line, const char *word)
{
    uint32_t at = 0;
    while (at < line.len && !starts((Str){line.ptr + at, line.len - at}, word))
        at++;
    return at;
}

bool nnc_library_next(uint32_t *at, LibraryFunction *function)
{
    Str text = nnc_library_text(), *section = &function->section;
    const char *comment = NULL;
    while (*at < text.len) {
        Str line = take_line(text, at);
        if (starts(line, "# ---- ")) {
            *section = (Str){line.ptr + 7, find((Str){line.ptr + 7, line.len - 7}, " ----")};
            comment = NULL;
        } else if (starts(line, "#")) {
            comment = comment ? comment : line.ptr;
        } else if (starts(line, "fn ")) {
            Str rest = {line.ptr + 3, text.len - (uint32_t)(line.ptr + 3 - text.ptr)};
            Str signature = {rest.ptr, find(rest, " -> ")};
            function->signature = signature;
            function->name = (Str){signature.ptr, find(signature, "(")};
            function->doc = comment ? (Str){comment, (uint32_t)(line.ptr - comment)} : (Str){line.ptr, 0};
            while (*at < text.len && !starts(line, "}"))
                line = take_line(text, at);
            function->text = (Str){signature.ptr - 3, (uint32_t)(line.ptr + line.len - (signature.ptr - 3))};
            return true;
        } else {
            comment = NULL;
        }
    }
    return false;
}

bool nnc_library_find(Str name, LibraryFunction *function)
{
    *function = (LibraryFunction){0};
    for (uint32_t at = 0; nnc_library_next(&at, function);)
        if (str_eq(function->name, name))
            return true;
    return false;
}
