/* What the printers share: numbers as people read them, and names, which may be anything, as text, JSON and XML. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plan/report.h"

const char *plan_digits(char *buffer, int64_t value)
{
    char plain[24];
    int length = snprintf(plain, sizeof plain, "%" PRId64, value), n = 0;
    for (int i = 0; i < length; i++) {
        buffer[n++] = plain[i];
        if (plain[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            buffer[n++] = ',';
    }
    buffer[n] = 0;
    return buffer;
}

const char *plan_bytes(char *buffer, int64_t bytes)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int u = 0;
    for (; value >= 1024 && u < 6; u++)
        value /= 1024;
    snprintf(buffer, 16, u == 0 ? "%.0f %s" : value < 10 ? "%.2f %s" : "%.1f %s", value, unit[u]);
    return buffer;
}

int plan_columns(Str s)
{
    int columns = 0;
    for (uint32_t i = 0; i < s.len; i++)
        columns += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return columns;
}

void plan_put_elided(Text *out, Str name, int columns)
{
    int over = plan_columns(name) - columns;
    uint32_t at = 0;
    if (over <= 0) {
        text_str(out, name);
        text_fill(out, ' ', (size_t)-over);
        return;
    }
    for (int left = (columns - 1) / 2; left || (at < name.len && (name.ptr[at] & 0xc0) == 0x80); at++)
        left -= (name.ptr[at] & 0xc0) != 0x80;
    text_put(out, name.ptr, at);
    text_printf(out, "…");
    for (int skip = over + 1; skip || (at < name.len && (name.ptr[at] & 0xc0) == 0x80); at++)
        skip -= (name.ptr[at] & 0xc0) != 0x80;
    text_put(out, name.ptr + at, name.len - at);
}

/* Where the last of the columns begins that two blanks keep apart, in the half of the line that may be left free. */
static int hang_of(Str line, int columns)
{
    uint32_t begin = 0;
    while (begin < line.len && line.ptr[begin] == ' ')
        begin++;
    int hang = (int)begin + 2;
    for (uint32_t i = begin; i + 2 < line.len; i++)
        if (line.ptr[i] == ' ' && line.ptr[i + 1] == ' ' && line.ptr[i + 2] != ' ') {
            int column = plan_columns((Str){line.ptr, i + 2});
            hang = column <= columns / 2 ? column : hang;
        }
    return hang <= columns / 2 ? hang : 0;
}

static void put_folded_line(Text *out, Str line, int columns, bool elide)
{
    int hang = hang_of(line, columns), column = 0;
    while (line.len) {
        uint32_t gap = 0, end;
        while (gap < line.len && line.ptr[gap] == ' ')
            gap++;
        for (end = gap; end < line.len && line.ptr[end] != ' ';)
            end++;
        Str word = {line.ptr + gap, end - gap};
        int length = plan_columns(word);
        if (column > hang && column + (int)gap + length > columns) {
            text_char(out, '\n');
            text_fill(out, ' ', (size_t)hang);
            column = hang;
        } else {
            text_fill(out, ' ', gap);
            column += (int)gap;
        }
        int room = elide && columns - column < length ? columns - column : length;
        plan_put_elided(out, word, room > 1 ? room : 1);
        column += room;
        line = (Str){line.ptr + end, line.len - end};
    }
}

void plan_put_folded(Text *out, Str lines, int columns, bool elide)
{
    while (lines.len) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        uint32_t length = end ? (uint32_t)(end - lines.ptr) : lines.len;
        Str line = {lines.ptr, length};
        if (plan_columns(line) <= columns)
            text_str(out, line);
        else
            put_folded_line(out, line, columns, elide);
        if (end)
            text_char(out, '\n');
        length += end != NULL;
        lines = (Str){lines.ptr + length, lines.len - length};
    }
}

void plan_put_pairs(Text *out, const char *const *label, const Str *value, uint32_t count, int width, int columns)
{
    uint32_t longest = 0, most, lines;
    for (uint32_t i = 0; i < count; i++)
        longest = strlen(label[i]) > longest ? (uint32_t)strlen(label[i]) : longest;
    most = (uint32_t)columns / (longest + (uint32_t)width + 3);
    most = most < 1 ? 1 : most;
    lines = (count + most - 1) / most;
    uint32_t each = lines ? (count + lines - 1) / lines : 1; /* four in two lines are two and two */
    for (uint32_t i = 0; i < count; i++) {
        text_printf(out, "  %-*s ", (int)longest, label[i]);
        text_fill(out, ' ', plan_columns(value[i]) < width ? (size_t)(width - plan_columns(value[i])) : 0);
        text_str(out, value[i]);
        if (i % each == each - 1 || i + 1 == count)
            text_char(out, '\n');
    }
}

bool plan_is_text(Str s)
{
    for (uint32_t n; s.len; s.ptr += n, s.len -= n)
        if (!str_shows(s, &n))
            return false;
    return true;
}

static void put_printable(Text *out, Str s, bool lines)
{
    for (uint32_t n; s.len; s.ptr += n, s.len -= n) {
        bool shown = str_shows(s, &n) || (lines && *s.ptr == '\n');
        text_str(out, shown ? (Str){s.ptr, n} : STR("?"));
    }
}

void plan_put_printable(Text *out, Text *lines)
{
    put_printable(out, text_view(lines), true);
    text_free(lines);
}

Str plan_printable(Arena *arena, Str s)
{
    Text text = {0};
    put_printable(&text, s, false);
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

/* XML has no control characters, not even escaped, nor these two. */
static bool is_noncharacter(Str character)
{
    return str_eq(character, STR("\xef\xbf\xbe")) || str_eq(character, STR("\xef\xbf\xbf")); /* U+FFFE, U+FFFF */
}

static const char *entity_of(char c)
{
    switch (c) {
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

void plan_escape_xml(Text *out, Str s)
{
    for (uint32_t n; s.len; s.ptr += n, s.len -= n) {
        bool shown = str_shows(s, &n);
        const char *entity = entity_of(s.ptr[0]);
        if (!shown || is_noncharacter((Str){s.ptr, n}))
            text_printf(out, "\xef\xbf\xbd");
        else if (entity)
            text_printf(out, "%s", entity);
        else
            text_put(out, s.ptr, n);
    }
}

void plan_json_string(Text *out, Str s)
{
    text_char(out, '"');
    for (uint32_t n, code; s.len; s.ptr += n, s.len -= n) {
        bool shown = str_shows(s, &n);
        if (*s.ptr == '"' || *s.ptr == '\\')
            text_printf(out, "\\%c", *s.ptr);
        else if (shown)
            text_put(out, s.ptr, n);
        else
            text_printf(out, "\\u%04x", str_character(s, &code) ? code : 0xfffd); /* none of them lies beyond U+FFFF */
    }
    text_char(out, '"');
}
