#include "cli/terminal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "plan/report.h"

#define UNKNOWN_WIDTH 80
#define LEAST_WIDTH   20
#define MOST_WIDTH    500

static bool step_is_shown; /* of the process, as the terminal is */

static uint32_t within_bounds(long width)
{
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > MOST_WIDTH ? MOST_WIDTH : (uint32_t)width;
}

uint32_t terminal_known_width(void)
{
    const char *columns = getenv("COLUMNS");
    char *end;
    long width = columns ? strtol(columns, &end, 10) : 0;
    struct winsize size;

    if (columns && width > 0 && !*end)
        return within_bounds(width);
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return within_bounds(size.ws_col);
    return 0;
}

uint32_t terminal_width(void)
{
    uint32_t known = terminal_known_width();
    return known ? known : UNKNOWN_WIDTH;
}

void terminal_fold(Text *out, Str rows)
{
    uint32_t known = terminal_known_width();
    plan_put_folded(out, rows, known ? (int)known : INT_MAX, false);
}

/* Is stderr a terminal that knows escapes? */
static bool takes_escapes(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && kind && strcmp(kind, "dumb") != 0;
}

/* no-color.org: set and not empty. */
static bool has_colour(void)
{
    const char *refused = getenv("NO_COLOR");
    return takes_escapes() && !(refused && *refused);
}

/* Colours */

#define BOLD   "\033[1m"
#define RED    "\033[1;31m"
#define CYAN   "\033[1;36m"
#define GREEN  "\033[1;32m"
#define NORMAL "\033[0m"
#define MARGIN "      | " /* before the line of carets */

/* Where `word` begins in the line, at its start or after `: `; its length when it does not. */
static size_t find_kind(const char *line, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(line + i, word, size) == 0 && (i == 0 || (i > 1 && line[i - 1] == ' ' && line[i - 2] == ':')))
            return i;
    return length;
}

static bool is_carets(const char *line, size_t length)
{
    size_t margin = strlen(MARGIN);
    if (length <= margin || memcmp(line, MARGIN, margin) != 0)
        return false;
    for (size_t i = margin; i < length; i++)
        if (!strchr(" ^~", line[i]))
            return false;
    return true;
}

static void put_coloured(Text *out, const char *line, size_t length)
{
    size_t error = find_kind(line, length, "error:"), note = find_kind(line, length, "note:");
    size_t kind = error < note ? error : note, size = error < note ? 6 : 5;
    if (is_carets(line, length)) {
        text_printf(out, MARGIN GREEN "%.*s" NORMAL, (int)(length - strlen(MARGIN)), line + strlen(MARGIN));
    } else if (kind < length && line[0] != ' ') { /* lines of the source are set in */
        text_printf(out, BOLD "%.*s" NORMAL "%s%.*s" NORMAL, (int)kind, line, error < note ? RED : CYAN, (int)size,
                    line + kind);
        text_put(out, line + kind + size, length - kind - size);
    } else {
        text_put(out, line, length);
    }
}

void terminal_put_diagnostics(const Text *text)
{
    Text out = {0};
    bool colour = has_colour();
    terminal_clear_step();
    for (size_t at = 0, length; at < text->len; at += length + 1) {
        const char *line = text->ptr + at;
        length = strcspn(line, "\n");
        Text shown = {0};
        if (strncmp(line, "error: ", 7) == 0) /* of no file: an editor has nothing to open */
            terminal_fold(&shown, (Str){line, (uint32_t)length});
        else
            text_put(&shown, line, length);
        if (colour)
            put_coloured(&out, shown.ptr, shown.len);
        else
            text_str(&out, text_view(&shown));
        text_char(&out, '\n');
        text_free(&shown);
    }
    fwrite(out.ptr, 1, out.len, stderr);
    text_free(&out);
}

void terminal_put_error(const char *who, Str message, bool fold)
{
    Text shown = {0}, out = {0};
    bool colour = has_colour();
    size_t name = strlen(who) + 1;
    terminal_clear_step();
    text_printf(&shown, "%s: ", who);
    while (message.len) {
        const char *end = memchr(message.ptr, '\n', message.len);
        uint32_t length = end ? (uint32_t)(end - message.ptr) : message.len;
        text_put_shown(&shown, (Str){message.ptr, length});
        text_char(&shown, '\n');
        length += end != NULL;
        message = (Str){message.ptr + length, message.len - length};
    }
    if (fold)
        terminal_fold(&out, text_view(&shown));
    else
        text_str(&out, text_view(&shown));
    fprintf(stderr, "%s%.*s%s", colour ? RED : "", (int)name, out.ptr, colour ? NORMAL : "");
    fwrite(out.ptr + name, 1, out.len - name, stderr);
    text_free(&shown);
    text_free(&out);
}

/* Steps */

void terminal_step(const char *step)
{
    if (!takes_escapes())
        return;
    fprintf(stderr, "\r\033[K%.*s ...", (int)terminal_width() - 5, step);
    fflush(stderr);
    step_is_shown = true;
}

bool terminal_shows_lines(void)
{
    return takes_escapes();
}

void terminal_line(const char *line)
{
    if (!takes_escapes())
        return;
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
    step_is_shown = true;
}

void terminal_clear_step(void)
{
    if (!step_is_shown)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    step_is_shown = false;
}
