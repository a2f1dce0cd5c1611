/* Tune files as text (tune.h): a line is blank, a comment, `target T`, `graph G {`, `}` or a kernel. */
#include "program/tune.h"

typedef struct Reader {
    Tune *tune;
    Arena *arena;
    Diag *diag;
    uint32_t source;
    const char *start, *target;
    Str graph;   /* that is open; ptr NULL: none */
    bool judged; /* the target has been named */
} Reader;

static Place place_of(const Reader *r, Str part)
{
    return (Place){r->source, (uint32_t)(part.ptr - r->start), part.len ? part.len : 1};
}

static Str trimmed(Str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = (Str){s.ptr + 1, s.len - 1};
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t' || s.ptr[s.len - 1] == '\r'))
        s.len--;
    return s;
}

/* The part in front of the first `end`, which is taken off with it; all of it where there is none. */
static Str take_until(Str *rest, char end)
{
    uint32_t n = 0;
    while (n < rest->len && rest->ptr[n] != end)
        n++;
    Str part = {rest->ptr, n};
    n += n < rest->len;
    *rest = (Str){rest->ptr + n, rest->len - n};
    return trimmed(part);
}

static bool take_word(Str *rest, const char *word)
{
    Str taken = *rest, first = take_until(&taken, ' ');
    if (!str_is(first, word))
        return false;
    *rest = trimmed(taken);
    return true;
}

static bool number_of(Str word, int64_t *number)
{
    *number = 0;
    for (uint32_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9' || *number > INT32_MAX / 10)
            return false;
        *number = *number * 10 + (word.ptr[i] - '0');
    }
    return word.len > 0;
}

static bool is_name(Str word)
{
    for (uint32_t i = 0; i < word.len; i++)
        if (!(word.ptr[i] >= 'a' && word.ptr[i] <= 'z') && word.ptr[i] != '_')
            return false;
    return word.len > 0;
}

/* `pixels = 14`, or a flag. */
static bool read_knob(Str text, Knob *knob)
{
    Str rest = text, name = take_until(&rest, '=');
    *knob = (Knob){.name = name, .value = 1, .flag = name.ptr + name.len == text.ptr + text.len};
    return is_name(name) && (knob->flag || number_of(trimmed(rest), &knob->value));
}

/* `3, tiled, pixels = 14, rows)` */
static bool read_mark(const Reader *r, Str text, KernelMark *mark)
{
    Str rest = text;
    uint32_t capacity = 0;
    Knob *list = NULL;
    int64_t number;
    if (!rest.len || rest.ptr[rest.len - 1] != ')')
        return false;
    rest.len--;
    Str first = take_until(&rest, ',');
    *mark = (KernelMark){.provider = take_until(&rest, ',')};
    if (!number_of(first, &number) || !is_name(mark->provider))
        return false;
    mark->number = (uint32_t)number;
    while (rest.len) {
        Knob knob;
        if (!read_knob(take_until(&rest, ','), &knob))
            return false;
        ARENA_PUSH(r->arena, list, mark->knob_count, capacity, knob);
    }
    mark->knob = list;
    return true;
}

/* `STATEMENT @kernel(3, tiled, pixels = 14)`: the last @kernel, as names may be any text. */
static bool read_kernel(Reader *r, Str line)
{
    static const char open[] = " @kernel(";
    const uint32_t size = sizeof open - 1;
    uint32_t at = line.len < size ? 0 : line.len - size;
    TuneLine kernel = {.graph = r->graph};
    while (at && !str_is((Str){line.ptr + at, size}, open))
        at--;
    Str mark = {line.ptr + at + size, line.len - at - (at ? size : 0)};
    if (!at || !read_mark(r, mark, &kernel.mark))
        return diag_error(r->diag, place_of(r, line),
                          "this is no line of a tune file: `STATEMENT @kernel(NUMBER, RECIPE, knob = NUMBER, flag)`");
    if (!r->graph.ptr)
        return diag_error(r->diag, place_of(r, line), "this kernel stands in no graph: `graph NAME {` comes before it");
    kernel.statement = trimmed((Str){line.ptr, at});
    kernel.mark.place = place_of(r, (Str){line.ptr + at + 1, line.len - at - 1});
    tune_add(r->tune, r->arena, &kernel);
    return true;
}

static bool read_target(Reader *r, Str name)
{
    r->judged = true;
    return str_is(name, r->target) ||
           diag_error(r->diag, place_of(r, name), "these recipes were timed for " STR_FMT ", not for %s", STR_ARG(name),
                      r->target);
}

static bool read_line(Reader *r, Str line)
{
    Str rest = line;
    if (!line.len || line.ptr[0] == '#')
        return true;
    if (!r->graph.ptr && take_word(&rest, "target"))
        return read_target(r, rest);
    if (!r->judged)
        return diag_error(r->diag, place_of(r, line), "a tune file begins with `target NAME`");
    if (!r->graph.ptr && line.ptr[line.len - 1] == '{' && take_word(&rest, "graph")) {
        r->graph = trimmed((Str){rest.ptr, rest.len - 1});
        return true;
    }
    if (r->graph.ptr && str_is(line, "}")) {
        r->graph = (Str){0};
        return true;
    }
    return read_kernel(r, line);
}

bool tune_read(Tune *tune, Arena *arena, Diag *diag, Str path, Str text, const char *target)
{
    Reader r = {.tune = tune, .arena = arena, .diag = diag, .start = text.ptr, .target = target};
    Str rest = text;
    bool good = true;
    r.source = diag_add_source(diag, path, text);
    while (good && rest.len)
        good = read_line(&r, take_until(&rest, '\n'));
    if (good && r.graph.ptr)
        return diag_error(diag, place_of(&r, r.graph), "this graph is not closed: the file ends in it");
    if (good && !r.judged)
        diag_warning(diag, (Place){r.source, 0, 1}, "this file is empty: it tunes nothing");
    return good;
}
