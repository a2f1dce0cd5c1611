#include "base/diag.h"

#include <string.h>

#define LONGEST_LINE 160 /* a longer source line is not shown; columns count bytes, 1-based */

uint32_t diag_add_source(Diag *diag, Str path, Str text)
{
    ARENA_PUSH(diag->arena, diag->source, diag->source_count, diag->source_capacity, ((Source){path, text}));
    return diag->source_count;
}

const Source *diag_source(const Diag *diag, uint32_t source)
{
    return source && source <= diag->source_count ? &diag->source[source - 1] : NULL;
}

typedef struct Line {
    uint32_t number, begin, end;
} Line;

static Line line_at(Str text, uint32_t offset)
{
    Line line = {1, 0, 0};
    for (uint32_t i = 0; i < offset && i < text.len; i++)
        if (text.ptr[i] == '\n') {
            line.number++;
            line.begin = i + 1;
        }
    for (line.end = line.begin; line.end < text.len && text.ptr[line.end] != '\n';)
        line.end++;
    return line;
}

/* Part of a line as it is shown, a blank for the return that may end it.  Returns its columns. */
static uint32_t show_part(Text *out, Str text, uint32_t begin, uint32_t end)
{
    bool returns = end > begin && text.ptr[end - 1] == '\r';
    uint32_t columns = text_put_shown(out, (Str){text.ptr + begin, end - begin - returns});
    text_fill(out, ' ', returns);
    return columns + returns;
}

static void show_line(Text *out, Str text, Line line, uint32_t offset, uint32_t length)
{
    if (line.end - line.begin > LONGEST_LINE)
        return;
    uint32_t first = offset < line.end ? offset : line.end, room = line.end - first;
    uint32_t last = first + (length < room ? length : room);
    text_printf(out, "%5u | ", line.number);
    uint32_t before = show_part(out, text, line.begin, first), marks = show_part(out, text, first, last);
    show_part(out, text, last, line.end);
    text_printf(out, "\n      | %*s^", (int)(before + offset - first), "");
    text_fill(out, '~', marks > 1 ? marks - 1 : 0);
    text_char(out, '\n');
}

static const char ERROR[] = "error";

#define LONGEST_MESSAGE 4000 /* of bytes; of a longer one the middle is left out */
#define LAST_OF_MESSAGE 400

/* The first byte of the character that this one belongs to */
static uint32_t character_at(Str text, uint32_t at)
{
    while (at > 0 && ((unsigned char)text.ptr[at] & 0xC0) == 0x80)
        at--;
    return at;
}

/* Names in it come from files of others. */
static Text shown_message(const char *format, va_list args)
{
    Text raw = {0}, shown = {0};
    text_vprintf(&raw, format, args);
    Str message = text_view(&raw);
    if (message.len > LONGEST_MESSAGE) {
        uint32_t last = character_at(message, message.len - LAST_OF_MESSAGE);
        text_put_shown(&shown, (Str){message.ptr, character_at(message, LONGEST_MESSAGE - LAST_OF_MESSAGE)});
        text_str(&shown, STR(" ... "));
        message = (Str){message.ptr + last, message.len - last};
    }
    text_put_shown(&shown, message);
    text_free(&raw);
    return shown;
}

static void put_path(Diag *diag, Str path)
{
    text_put_shown(&diag->text, path);
    text_char(&diag->text, ':');
}

static void report(Diag *diag, Place place, Str path, const char *kind, const char *format, va_list args)
{
    const Source *source = diag_source(diag, place.source);
    Line line = {0};
    Text message = shown_message(format, args);
    DiagEntry entry = {.error = kind == ERROR, .path = path};

    if (source) {
        line = line_at(source->text, place.offset);
        entry.path = source->path;
        entry.line = line.number;
        entry.column = place.offset - line.begin + 1;
        put_path(diag, entry.path);
        text_printf(&diag->text, "%u:%u: ", entry.line, entry.column);
    } else if (path.len) {
        put_path(diag, path);
        text_char(&diag->text, ' ');
    }
    text_printf(&diag->text, "%s: %s\n", kind, message.ptr ? message.ptr : "");
    if (source)
        show_line(&diag->text, source->text, line, place.offset, place.length);
    if (diag->arena) {
        entry.message = str_copy(diag->arena, text_view(&message));
        entry.path = str_copy(diag->arena, entry.path);
        ARENA_PUSH(diag->arena, diag->entry, diag->entry_count, diag->entry_capacity, entry);
    }
    text_free(&message);
}

static bool counted(Diag *diag)
{
    diag->error_count++;
    if (diag->error_count == DIAG_LIMIT + 1)
        text_printf(&diag->text, "error: more than %d errors; the rest is not shown\n", DIAG_LIMIT);
    return diag->error_count <= DIAG_LIMIT;
}

bool diag_error(Diag *diag, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (counted(diag))
        report(diag, place, (Str){0}, ERROR, format, args);
    va_end(args);
    return false;
}

/* Was it given at this place already?  A graph may be looked at several times: by the evaluator, and to compile it. */
static bool is_known(const Diag *diag, Place place, Str message)
{
    const Source *source = diag_source(diag, place.source);
    Line line = source ? line_at(source->text, place.offset) : (Line){0};
    for (uint32_t i = 0; source && i < diag->entry_count; i++) {
        const DiagEntry *entry = &diag->entry[i];
        if (entry->line == line.number && entry->column == place.offset - line.begin + 1 &&
            str_eq(entry->path, source->path) && str_eq(entry->message, message))
            return true;
    }
    return false;
}

void diag_warning(Diag *diag, Place place, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    Text message = shown_message(format, again);
    va_end(again);
    if (diag->error_count <= DIAG_LIMIT && !is_known(diag, place, text_view(&message)))
        report(diag, place, (Str){0}, "warning", format, args);
    va_end(args);
    text_free(&message);
}

void diag_note(Diag *diag, Place place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (diag->error_count <= DIAG_LIMIT)
        report(diag, place, (Str){0}, "note", format, args);
    va_end(args);
}

bool diag_file_error(Diag *diag, Str path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (counted(diag))
        report(diag, (Place){0}, path, ERROR, format, args);
    va_end(args);
    return false;
}

DiagMark diag_mark(const Diag *diag)
{
    return (DiagMark){diag->error_count, diag->entry_count, diag->text.len};
}

Str diag_take(Diag *diag, DiagMark since)
{
    Str message = {0};
    for (uint32_t i = since.entry_count; i < diag->entry_count && !message.len; i++)
        if (diag->entry[i].error)
            message = diag->entry[i].message;
    diag->error_count = since.error_count;
    diag->entry_count = since.entry_count;
    diag->text.len = since.text;
    if (diag->text.ptr)
        diag->text.ptr[since.text] = 0;
    return message;
}

void diag_clear(Diag *diag)
{
    diag->error_count = diag->entry_count = 0;
    text_free(&diag->text);
}

void diag_free(Diag *diag)
{
    text_free(&diag->text);
}
