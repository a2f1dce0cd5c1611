/* The text as a person would write it: an expression whose value only the next statement reads stands in that,
 * `relu(batch_norm@bn1(h))`, where the value has no name of the model's own and the line stays short. */
#include <string.h>

#include "onnx/import.h"

#define LONGEST_LINE 116 /* without its indentation in the graph */
#define MADE_LENGTH  4   /* as which a name counts that may go */

typedef struct Join {
    Arena *arena;
    const Map *made;
    Map uses;  /* words of the whole text, how often they stand in it */
    Str *line; /* that are kept so far */
    uint32_t count, capacity;
} Join;

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* No `f(`, `f@`, `(axis = `, `, axis = `, `"add"` */
static bool is_value(Str text, uint32_t begin, uint32_t end)
{
    if (begin && text.ptr[begin - 1] == '"')
        return false;
    bool listed = begin && (text.ptr[begin - 1] == '(' || text.ptr[begin - 1] == ' ');
    bool named = listed && end + 3 < text.len && memcmp(text.ptr + end, " = ", 3) == 0 &&
                 (text.ptr[begin - 1] == '(' || (begin > 1 && text.ptr[begin - 2] == ','));
    return !named && (end == text.len || (text.ptr[end] != '(' && text.ptr[end] != '@'));
}

/* The next word from `*at` on that is no function's name (values may be called as functions are: `cos = cos(x)`), nor
 * an attribute's; empty at the end. */
static Str next_word(Str text, uint32_t *at)
{
    for (;;) {
        while (*at < text.len && !is_word(text.ptr[*at]))
            (*at)++;
        uint32_t begin = *at;
        while (*at < text.len && is_word(text.ptr[*at]))
            (*at)++;
        if (begin == text.len || is_value(text, begin, *at))
            return (Str){text.ptr + begin, *at - begin};
    }
}

static void count_words(Join *j, Str text)
{
    uint32_t at = 0;
    for (Str word; (word = next_word(text, &at)).len;) {
        uint32_t known = map_get(&j->uses, word);
        map_put(&j->uses, word, known == MAP_NONE ? 1 : known + 1);
    }
}

static uint32_t indentation(Str line)
{
    uint32_t blanks = 0;
    while (blanks < line.len && line.ptr[blanks] == ' ')
        blanks++;
    return blanks;
}

/* `name = expression`: the parts of it. */
static bool split(Str line, Str *name, Str *expression)
{
    uint32_t at = 0;
    *name = next_word(line, &at);
    if (name->ptr != line.ptr + indentation(line) || at + 3 >= line.len || memcmp(line.ptr + at, " = ", 3) != 0)
        return false;
    *expression = (Str){line.ptr + at + 3, line.len - at - 3};
    return true;
}

/* `f(...)` alone, which may stand beside operators; `not` takes all that follow */
static bool is_call(Str text)
{
    uint32_t open = 0, depth = 0;
    if (text.len > 4 && memcmp(text.ptr, "not(", 4) == 0)
        return false;
    while (open < text.len && (is_word(text.ptr[open]) || text.ptr[open] == '@'))
        open++;
    if (!open || open == text.len || text.ptr[open] != '(')
        return false;
    for (uint32_t i = open; i < text.len; i++) {
        depth += text.ptr[i] == '(';
        depth -= text.ptr[i] == ')';
        if (!depth)
            return i + 1 == text.len;
    }
    return false;
}

static bool is_statement(Str line)
{
    uint32_t at = indentation(line);
    char first = at < line.len ? line.ptr[at] : '}', last = line.len ? line.ptr[line.len - 1] : '{';
    return first != '}' && last != '{' && memchr(line.ptr, '=', line.len);
}

static bool begins(Str line, const char *word)
{
    uint32_t at = indentation(line), length = (uint32_t)strlen(word);
    return line.len > at + length && memcmp(line.ptr + at, word, length) == 0;
}

/* Where the name stands in the line so that the expression may stand there: as an argument by itself, or of a call also
 * as an operand.  The line's end where it does not. */
static uint32_t place_of(Str line, Str name, bool call)
{
    uint32_t at = 0;
    for (Str word; (word = next_word(line, &at)).len;) {
        if (!str_eq(word, name))
            continue;
        uint32_t begin = at - word.len;
        char before = begin ? line.ptr[begin - 1] : ' ', after = at < line.len ? line.ptr[at] : ')';
        bool first = before == '(' && begin >= 2 && is_word(line.ptr[begin - 2]);
        bool next = before == ' ' && begin >= 2 && line.ptr[begin - 2] == ',';
        bool argument = (first || next) && (after == ',' || after == ')');
        bool operand = call && (before == ' ' || before == '(') && (after == ' ' || after == ')' || after == ',');
        return argument || operand ? begin : line.len;
    }
    return line.len;
}

/* How long the line is, whatever names are called that one statement reads, so that they may go: what a text says by
 * itself does not depend on them, and comes out the same when it has gone to a file and back. */
static uint32_t length_of(const Join *j, Str line)
{
    uint32_t length = line.len, at = 0;
    for (Str word; (word = next_word(line, &at)).len;)
        if (map_get(&j->uses, word) == 2)
            length = length - word.len + MADE_LENGTH;
    return length;
}

/* Takes the statement before into the line, when it may stand there. */
static bool take_in(Join *j, Str *line)
{
    Str name, expression;
    uint32_t p = j->count;
    while (p > 0 && (begins(j->line[p - 1], "param ") || begins(j->line[p - 1], "const ")))
        p--;
    if (!p || !is_statement(*line) || indentation(j->line[p - 1]) != indentation(*line) ||
        !split(j->line[p - 1], &name, &expression) || map_get(&j->uses, name) != 2 ||
        map_get(j->made, name) == MAP_NONE ||
        length_of(j, *line) - MADE_LENGTH + length_of(j, expression) > LONGEST_LINE)
        return false;
    uint32_t at = place_of(*line, name, is_call(expression)), rest = at + name.len;
    if (at == line->len)
        return false;
    *line = str_format(j->arena, "%.*s" STR_FMT "%.*s", (int)at, line->ptr, STR_ARG(expression),
                       (int)(line->len - rest), line->ptr + rest);
    memmove(&j->line[p - 1], &j->line[p], (j->count - p) * sizeof *j->line);
    j->count--;
    return true;
}

void onnx_join(Arena *arena, const Map *made, Str text, const Str *result, uint32_t results, Text *out)
{
    Join j = {.arena = arena, .made = made, .uses = {.arena = arena}};
    count_words(&j, text);
    for (uint32_t i = 0; i < results; i++)
        count_words(&j, result[i]);
    for (uint32_t at = 0; at < text.len;) {
        const char *end = memchr(text.ptr + at, '\n', text.len - at);
        Str line = {text.ptr + at, end ? (uint32_t)(end - text.ptr) - at : text.len - at};
        at += line.len + 1;
        while (take_in(&j, &line))
            continue;
        ARENA_PUSH(j.arena, j.line, j.count, j.capacity, line);
    }
    for (uint32_t i = 0; i < j.count; i++)
        text_printf(out, STR_FMT "\n", STR_ARG(j.line[i]));
}
