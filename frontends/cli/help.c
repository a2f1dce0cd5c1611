/* `nnc help [VERB]`. */
#include "cli/help.h"

#include <string.h>

#define WIDTH  88
#define COLUMN 28

const char *const help_status[4] = {
    "fine",
    "bad input: a model, weights or data file is wrong, or a check failed",
    "usage: the command line is wrong",
    "the environment failed: a program is missing, a file cannot be written, no memory",
};

void help_flag(Text *out, const Flag *flag)
{
    text_printf(out, "%s%s", flag->name[1] ? "--" : "-", flag->name);
    if (flag->value)
        text_printf(out, " %s", flag->value);
}

void help_synopsis(Text *out, const Verb *verb)
{
    text_printf(out, "nnc %s", verb->name);
    if (*verb->operands)
        text_printf(out, " %s", verb->operands);
    for (const Flag *flag = verb->flag; flag && flag->name; flag++) {
        text_printf(out, " [");
        help_flag(out, flag);
        text_char(out, ']');
    }
}

/* Words of a line broken at WIDTH, the further lines set in by `indent`; the cursor stands at `column`. */
static void wrap(Text *out, const char *line, size_t length, size_t column, size_t indent)
{
    size_t begin = column;
    for (const char *at = line, *end = line + length; at < end;) {
        size_t word = strcspn(at, " \n");
        word = word > (size_t)(end - at) ? (size_t)(end - at) : word;
        if (column > begin && column + 1 + word > WIDTH) {
            text_char(out, '\n');
            text_fill(out, ' ', indent);
            column = begin = indent;
        }
        if (column > begin) {
            text_char(out, ' ');
            column++;
        }
        text_put(out, at, word);
        column += word;
        at += word;
        at += strspn(at, " ");
    }
    text_char(out, '\n');
}

static void paragraphs(Text *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (*text == ' ') {
            text_put(out, text, length);
            text_char(out, '\n');
        } else {
            wrap(out, text, length, 0, 0);
        }
        text += length + (text[length] == '\n');
    }
}

/* `left` in its column, then the words of `right`. */
static void row(Text *out, const char *left, size_t length, const char *right)
{
    text_fill(out, ' ', 2);
    text_put(out, left, length);
    if (length + 4 > COLUMN) {
        text_char(out, '\n');
        length = (size_t)-2;
    }
    text_fill(out, ' ', COLUMN - 2 - length);
    wrap(out, right, strlen(right), COLUMN, COLUMN);
}

static void flag_row(Text *out, const Flag *flag)
{
    Text left = {0};
    help_flag(&left, flag);
    row(out, left.ptr, left.len, flag->doc);
    text_free(&left);
}

static void overview(Text *out)
{
    text_printf(out, "nnc: " HELP_TAGLINE "\n\nCommands:\n");
    for (uint32_t i = 0; verb_table[i]; i++)
        row(out, verb_table[i]->name, strlen(verb_table[i]->name), verb_table[i]->summary);
    text_printf(out, "\n`nnc help COMMAND` tells more of one.\n\nExit status:\n");
    for (int i = 0; i < 4; i++) {
        char digit = (char)('0' + i);
        row(out, &digit, 1, help_status[i]);
    }
}

void help_text(Text *out, const Verb *verb)
{
    if (!verb) {
        overview(out);
        return;
    }
    text_printf(out, "nnc %s: %s\n\n", verb->name, verb->summary);
    Text usage = {0};
    help_synopsis(&usage, verb);
    text_printf(out, "Usage: ");
    wrap(out, usage.ptr, usage.len, 7, 11);
    text_free(&usage);
    if (verb->text) {
        text_char(out, '\n');
        paragraphs(out, verb->text);
    }
    if (verb->flag && verb->flag->name)
        text_printf(out, "\nFlags:\n");
    for (const Flag *flag = verb->flag; flag && flag->name; flag++)
        flag_row(out, flag);
    if (verb->example)
        text_printf(out, "\nExamples:\n");
    for (const Example *example = verb->example; example && example->command; example++)
        text_printf(out, "  # %s\n  %s\n", example->doc, example->command);
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"text", "man", "markdown", NULL};
    Str topic = args_operand(cli, 0), word = args_value(cli, "format");
    const Verb *verb = topic.ptr ? verb_find(topic) : NULL;
    uint32_t format = 0;
    Text out = {0};

    if (word.ptr && !cli_choose(cli, "format", word, formats, &format))
        return STATUS_USAGE;
    if (topic.ptr && !verb) {
        const char *list[32];
        uint32_t count = 0;
        for (; verb_table[count]; count++)
            list[count] = verb_table[count]->name;
        const char *near = cli_nearest(topic, list, count);
        return cli_usage(cli, "unknown command `" STR_FMT "`%s%s%s", STR_ARG(topic), near ? "; did you mean `" : "",
                         near ? near : "", near ? "`?" : "");
    }
    if (format == 0)
        help_text(&out, verb);
    else if (format == 1)
        help_man(&out);
    else
        help_markdown(&out);
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

const Verb verb_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Tell of the commands, or of one of them",
    .text = "The man page and docs/cli.md are printed from the same rows, with --format man and --format markdown.",
    .flag = (const Flag[]){{"format", "text|man|markdown", "How to print (default: text)"}, FLAG_END},
    .run = run,
};
