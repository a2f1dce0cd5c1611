/* Text: slices that someone else owns, and buffers that grow. */
#ifndef NNC_BASE_TEXT_H
#define NNC_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

typedef struct Str { /* not terminated by a zero */
    const char *ptr;
    uint32_t len;
} Str;

#define STR(literal) ((Str){"" literal, sizeof(literal) - 1})
#define STR_FMT      "%.*s" /* printf("... " STR_FMT, STR_ARG(s)) */
#define STR_ARG(s)   (int)(s).len, (s).ptr

/* In the header, so that of literals the lengths are known. */
static inline Str str_from(const char *zero_terminated)
{
    return (Str){zero_terminated, (uint32_t)strlen(zero_terminated)};
}
static inline bool str_eq(Str a, Str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool str_is(Str s, const char *zero_terminated)
{
    return str_eq(s, str_from(zero_terminated));
}
Str str_copy(Arena *arena, Str s); /* the copy is followed by a zero byte */
Str str_format(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
int str_compare(Str a, Str b); /* by bytes, a prefix first */
bool str_ends(Str s, const char *suffix);
uint32_t str_hash(Str s);
bool str_is_utf8(Str s);
/* The bytes of the character that `s` begins with, by RFC 3629, and its code; 0 of what is no UTF-8. */
uint32_t str_character(Str s, uint32_t *code);
/* Does that character show as itself?  Not what is no UTF-8, nor what steers a terminal (control characters) or turns
 * the direction of the text around it, so that code is not what it looks like (U+202E; "Trojan Source").  `length`: its
 * bytes, 1 of what is no UTF-8. */
bool str_shows(Str s, uint32_t *length);
/* Is `other` what the word was meant to be?  One slip (a character changed, added, left out, two
 * that change places) in every three; another
 * case of a letter is none. */
bool str_is_near(Str word, Str other, uint32_t *slips);

/* A growing text.  It owns its bytes (malloc), which are always followed by a zero. */
typedef struct Text {
    char *ptr;
    size_t len, capacity;
} Text;

void text_put(Text *text, const char *bytes, size_t count);
void text_str(Text *text, Str s);
void text_char(Text *text, char c);
void text_fill(Text *text, char c, size_t count);
void text_put_bytes(Text *text, Str s); /* each as `\x1b` */
/* What anybody may have written, as a terminal can show it on one line: `\x1b` for the bytes of what does not show,
 * a blank for a tab.  Returns the columns that it takes, one for each character. */
uint32_t text_put_shown(Text *text, Str s);
Str str_shown(Arena *arena, Str s); /* the same as a slice */
void text_printf(Text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(Text *text, const char *format, va_list args);
/* Words with line breaks where they would pass `width`; further lines are set in by `indent`.  The cursor is at
 * `column`. No break at the end; blanks at the start and between words are one. */
void text_wrap(Text *text, Str words, size_t column, size_t indent, size_t width);
void text_free(Text *text);
Str text_view(const Text *text); /* valid until the text changes */

#endif
