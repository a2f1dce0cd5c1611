#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fatal.h"

Str str_copy(Arena *arena, Str s)
{
    char *copy = arena_alloc(arena, (size_t)s.len + 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return (Str){copy, s.len};
}

/* Formatting.  Almost all text is made of strings and whole numbers, which need none of what printf brings along. */

typedef struct Sink {
    char *to;
    size_t room, len; /* what is beyond the room is counted, not written */
} Sink;

static void sink_put(Sink *sink, const char *from, size_t count)
{
    size_t left = sink->len < sink->room ? sink->room - sink->len : 0;
    if (left)
        memcpy(sink->to + sink->len, from, count < left ? count : left);
    sink->len += count;
}

static void sink_number(Sink *sink, uint64_t magnitude, bool negative)
{
    char digits[24];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude);
    if (negative)
        digits[--at] = '-';
    sink_put(sink, digits + at, sizeof digits - at);
}

static void sink_signed(Sink *sink, int64_t value)
{
    sink_number(sink, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

static void sink_string(Sink *sink, const char *string, int most)
{
    string = string ? string : "";
    const char *end = most > 0 ? memchr(string, 0, (size_t)most) : NULL;
    sink_put(sink, string, most < 0 ? strlen(string) : end ? (size_t)(end - string) : (size_t)most);
}

/* False when the format has more than %s, %.*s, %c, %d, %u, %lld and %%. */
static bool sink_format(Sink *sink, const char *format, va_list args)
{
    for (const char *at = format;;) {
        size_t plain = 0; /* some bytes: strcspn would make a table first */
        while (at[plain] && at[plain] != '%')
            plain++;
        sink_put(sink, at, plain);
        at += plain;
        if (!*at)
            return true;
        at++;
        if (*at == 's') {
            sink_string(sink, va_arg(args, const char *), -1);
        } else if (strncmp(at, ".*s", 3) == 0) {
            int most = va_arg(args, int);
            sink_string(sink, va_arg(args, const char *), most);
            at += 2;
        } else if (*at == 'u') {
            sink_number(sink, va_arg(args, unsigned), false);
        } else if (*at == 'd') {
            sink_signed(sink, va_arg(args, int));
        } else if (strncmp(at, "lld", 3) == 0) {
            sink_signed(sink, va_arg(args, long long));
            at += 2;
        } else if (*at == 'c') {
            char c = (char)va_arg(args, int);
            sink_put(sink, &c, 1);
        } else if (*at == '%') {
            sink_put(sink, at, 1);
        } else {
            return false;
        }
        at++;
    }
}

/* As vsnprintf: how long the text is, of which what fits is written, with a 0 behind it. */
static size_t format_into(char *to, size_t room, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    Sink sink = {to, room ? room - 1 : 0, 0};
    size_t count;
    if (sink_format(&sink, format, args)) {
        count = sink.len;
        if (room)
            to[count < sink.room ? count : sink.room] = 0;
    } else {
        int written = vsnprintf(to, room, format, again);
        count = written > 0 ? (size_t)written : 0;
    }
    va_end(again);
    return count;
}

Str str_format(Arena *arena, const char *format, ...)
{
    char few[256]; /* most are short */
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    uint32_t length = (uint32_t)format_into(few, sizeof few, format, args);
    Str s = {few, length};
    if (length < sizeof few) {
        s = str_copy(arena, s);
    } else {
        char *all = arena_alloc(arena, (size_t)length + 1);
        format_into(all, (size_t)length + 1, format, again);
        s.ptr = all;
    }
    va_end(again);
    va_end(args);
    return s;
}

int str_compare(Str a, Str b)
{
    uint32_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

bool str_ends(Str s, const char *suffix)
{
    Str end = str_from(suffix);
    return s.len >= end.len && str_eq((Str){s.ptr + s.len - end.len, end.len}, end);
}

uint32_t str_hash(Str s) /* FNV-1a: for tables in memory, never stored */
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * 16777619u;
    return hash;
}

uint32_t str_character(Str s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)s.ptr;
    uint32_t length = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf8 ? 4 : 0;
    *code = at[0];
    if (length <= 1 || length > s.len)
        return length > s.len ? 0 : length;
    *code &= 0x7fu >> length;
    for (uint32_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[length] || *code > 0x10ffff || surrogate ? 0 : length;
}

bool str_is_utf8(Str s)
{
    for (uint32_t i = 0, length, code; i < s.len; i += length) {
        length = s.ptr[i] & 0x80 ? str_character((Str){s.ptr + i, s.len - i}, &code) : 1;
        if (!length)
            return false;
    }
    return true;
}

/* Control characters, and what turns the direction of text: Unicode's Bidi_Control. */
static bool steers(uint32_t code)
{
    bool control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool mark = code == 0x61c || code == 0x200e || code == 0x200f;
    return control || mark || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

bool str_shows(Str s, uint32_t *length)
{
    uint32_t code, bytes = str_character(s, &code);
    *length = bytes ? bytes : 1;
    return bytes && !steers(code);
}

void text_put_bytes(Text *text, Str s)
{
    for (uint32_t i = 0; i < s.len; i++)
        text_printf(text, "\\x%02x", (unsigned char)s.ptr[i]);
}

uint32_t text_put_shown(Text *text, Str s)
{
    uint32_t columns = 0;
    for (uint32_t length; s.len; s.ptr += length, s.len -= length) {
        bool shown = str_shows(s, &length), tab = *s.ptr == '\t';
        if (shown)
            text_put(text, s.ptr, length);
        else if (tab)
            text_char(text, ' ');
        else
            text_put_bytes(text, (Str){s.ptr, length});
        columns += shown || tab ? 1 : 4 * length;
    }
    return columns;
}

Str str_shown(Arena *arena, Str s)
{
    Text text = {0};
    text_put_shown(&text, s);
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

static void grow(Text *text, size_t need)
{
    size_t capacity = text->capacity * 2 > need ? text->capacity * 2 : need + 64;
    char *larger = realloc(text->ptr, capacity);
    if (!larger)
        fatal_memory(capacity);
    text->ptr = larger;
    text->capacity = capacity;
}

static inline void reserve(Text *text, size_t more) /* and room for the zero behind it */
{
    if (text->capacity - text->len <= more)
        grow(text, text->len + more + 1);
}

void text_put(Text *text, const char *bytes, size_t count)
{
    reserve(text, count);
    if (count)
        memcpy(text->ptr + text->len, bytes, count);
    text->len += count;
    text->ptr[text->len] = 0;
}

void text_str(Text *text, Str s)
{
    text_put(text, s.ptr, s.len);
}

void text_char(Text *text, char c)
{
    reserve(text, 1);
    text->ptr[text->len++] = c;
    text->ptr[text->len] = 0;
}

void text_fill(Text *text, char c, size_t count)
{
    reserve(text, count);
    memset(text->ptr + text->len, c, count);
    text->len += count;
    text->ptr[text->len] = 0;
}

void text_vprintf(Text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = text->capacity - text->len;
    size_t count = format_into(room ? text->ptr + text->len : NULL, room, format, args);
    if (count && count >= room) { /* or they would have fitted */
        reserve(text, count);
        format_into(text->ptr + text->len, count + 1, format, again);
    }
    text->len += count;
    va_end(again);
}

void text_printf(Text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_vprintf(text, format, args);
    va_end(args);
}

void text_free(Text *text)
{
    free(text->ptr);
    *text = (Text){0};
}

Str text_view(const Text *text)
{
    return (Str){text->ptr ? text->ptr : "", (uint32_t)text->len};
}

void text_wrap(Text *text, Str words, size_t column, size_t indent, size_t width)
{
    size_t begin = column;
    for (uint32_t at = 0, end; at < words.len; at = end) {
        while (at < words.len && (words.ptr[at] == ' ' || words.ptr[at] == '\n'))
            at++;
        for (end = at; end < words.len && words.ptr[end] != ' ' && words.ptr[end] != '\n';)
            end++;
        if (column > begin && column + 1 + (end - at) > width) {
            text_char(text, '\n');
            text_fill(text, ' ', indent);
            column = begin = indent;
        }
        if (column > begin && end > at) {
            text_char(text, ' ');
            column++;
        }
        text_put(text, words.ptr + at, end - at);
        column += end - at;
    }
}

/* Near words */

#define LONGEST_NEAR 40

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Slips from a to b, where neighbours that change places are one (Damerau's distance, with no letter moved twice). */
static uint32_t distance(Str a, Str b)
{
    uint32_t d[LONGEST_NEAR + 1][LONGEST_NEAR + 1];
    for (uint32_t i = 0; i <= a.len; i++)
        d[i][0] = i;
    for (uint32_t j = 0; j <= b.len; j++)
        d[0][j] = j;
    for (uint32_t i = 1; i <= a.len; i++)
        for (uint32_t j = 1; j <= b.len; j++) {
            char x = lower(a.ptr[i - 1]), y = lower(b.ptr[j - 1]);
            d[i][j] = least(d[i - 1][j - 1] + (x != y), least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b.ptr[j - 2]) && y == lower(a.ptr[i - 2]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[a.len][b.len];
}

bool str_is_near(Str word, Str other, uint32_t *slips)
{
    if (word.len > LONGEST_NEAR || other.len > LONGEST_NEAR || !other.len)
        return false;
    *slips = distance(word, other);
    return *slips <= (word.len + 1) / 3 && *slips < other.len;
}
