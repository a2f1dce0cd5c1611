/* What verbs say: usage errors, failures of the environment, steps, text for people. */
#include "cli/cli.h"
#include "cli/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int output_error; /* of the process: why stdout failed first */

int cli_usage(Cli *cli, const char *format, ...)
{
    va_list args;
    const char *verb = cli->verb ? cli->verb->name : NULL;
    Text who = {0}, message = {0};

    va_start(args, format);
    text_printf(&who, "nnc%s%s", verb ? " " : "", verb ? verb : "");
    text_vprintf(&message, format, args);
    text_printf(&message, "\nTry `nnc help%s%s`.", verb ? " " : "", verb ? verb : "");
    va_end(args);
    terminal_put_error(who.ptr, text_view(&message), true);
    text_free(&who);
    text_free(&message);
    return STATUS_USAGE;
}

int cli_environment(const char *format, ...)
{
    va_list args;
    Text message = {0};
    va_start(args, format);
    text_vprintf(&message, format, args);
    va_end(args);
    bool lines = memchr(message.ptr, '\n', message.len); /* another program's */
    terminal_put_error("nnc", text_view(&message), !lines);
    text_free(&message);
    return STATUS_ENVIRONMENT;
}

/* How far a known word is from a mistyped one: first the same in another case, then one that begins with it, the
 * shortest most. */
static uint32_t slips_to(Str word, const char *known)
{
    uint32_t slips;
    if (str_is_near(word, str_from(known), &slips) && !slips)
        return 0;
    if (word.len >= 3 && strncmp(known, word.ptr, word.len) == 0)
        return (uint32_t)strlen(known) - word.len;
    return str_is_near(word, str_from(known), &slips) ? 1000 + slips : UINT32_MAX;
}

const char *cli_nearest(Str word, const char *const *list, uint32_t count)
{
    const char *nearest = NULL;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slips = slips_to(word, list[i]);
        if (slips < best) {
            nearest = list[i];
            best = slips;
        }
    }
    return nearest;
}

bool cli_choose(Cli *cli, const char *flag, Str word, const char *const *list, uint32_t *chosen)
{
    Text known = {0};
    uint32_t count = 0;

    for (; list[count]; count++) {
        if (str_is(word, list[count])) {
            *chosen = count;
            text_free(&known);
            return true;
        }
        text_printf(&known, "%s%s", count ? ", " : "", list[count]);
    }
    if (!word.len) {
        cli_usage(cli, "--%s wants one of %s", flag, known.ptr ? known.ptr : "");
        text_free(&known);
        return false;
    }
    const char *near = cli_nearest(word, list, count);
    cli_usage(cli, "--%s: unknown `" STR_FMT "`%s%s%s; known: %s", flag, STR_ARG(word), near ? "; did you mean `" : "",
              near ? near : "", near ? "`?" : "", known.ptr ? known.ptr : "");
    text_free(&known);
    return false;
}

void cli_step(Cli *cli, const char *step)
{
    (void)cli;
    if (step)
        terminal_step(step);
    else
        terminal_clear_step();
}

void cli_put(const Text *text)
{
    terminal_clear_step();
    if (fwrite(text->ptr, 1, text->len, stdout) < text->len && !output_error)
        output_error = errno;
}

bool cli_flush(void)
{
    if (fflush(stdout) && !output_error)
        output_error = errno;
    errno = output_error;
    return !output_error;
}

void cli_put_rows(const Text *text)
{
    Text out = {0};
    terminal_fold(&out, text_view(text));
    cli_put(&out);
    text_free(&out);
}
