/* `nnc help [VERB]`. */
#include "cli/help.h"
#include "cli/terminal.h"

#include <string.h>

#define WIDEST 100 /* longer lines read badly */
#define NARROW 60
#define COLUMN 28

const char help_output[] =
    "What is shown fits the width of the terminal, or COLUMNS where that is set, from 40 columns on: text and "
    "messages are broken, names in tables lose their middle, numbers are never cut; where a table has no room, "
    "each of its rows becomes a few lines. Texts of models, Markdown and the like are as they are. Where nothing "
    "says how wide a line may be, as in a pipe, rows of tables, results and messages stay whole for the programs "
    "that read them, and text is 80 columns wide. Errors in a file are one line each at any width, as editors "
    "read them. Errors have colours on a terminal, unless NO_COLOR is set or TERM is `dumb`.";

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

/* A page as wide as the terminal; in a narrow one, what stands beside a word stands below it. */
typedef struct Page {
    Text *out;
    size_t width, column; /* column: of the words beside a flag */
} Page;

static Page page_of(Text *out, size_t width)
{
    width = width < WIDEST ? width : WIDEST;
    return (Page){out, width, width < NARROW ? 6 : COLUMN};
}

static void wrap(const Page *page, Str words, size_t column, size_t indent)
{
    text_wrap(page->out, words, column, indent, page->width);
    text_char(page->out, '\n');
}

static size_t blanks(Str line, size_t at)
{
    size_t count = 0;
    while (at + count < line.len && line.ptr[at + count] == ' ')
        count++;
    return count;
}

/* A line that begins with a blank is a row, `  word    what it means`: its further lines stand below the meaning. */
static void table_line(const Page *page, Str line)
{
    size_t left = blanks(line, 0), end = left;
    while (end < line.len && blanks(line, end) < 2)
        end++;
    size_t right = end + blanks(line, end), indent = right < line.len && page->width >= NARROW ? right : left + 2;
    text_put(page->out, line.ptr, right < line.len && indent == right ? right : left);
    Str words = indent == right ? (Str){line.ptr + right, line.len - (uint32_t)right}
                                : (Str){line.ptr + left, line.len - (uint32_t)left};
    wrap(page, words, indent == right ? right : left, indent);
}

static void paragraphs(const Page *page, const char *text)
{
    while (*text) {
        Str line = {text, (uint32_t)strcspn(text, "\n")};
        if (*text == ' ')
            table_line(page, line);
        else
            wrap(page, line, 0, 0);
        text += line.len + (text[line.len] == '\n');
    }
}

/* `left` in its column, then the words of `right`. */
static void row(const Page *page, Str left, const char *right)
{
    text_fill(page->out, ' ', 2);
    text_str(page->out, left);
    bool fits = left.len + 4 <= page->column;
    if (!fits)
        text_char(page->out, '\n');
    text_fill(page->out, ' ', fits ? page->column - 2 - left.len : page->column);
    wrap(page, str_from(right), page->column, page->column);
}

static void flag_row(const Page *page, const Flag *flag)
{
    Text left = {0};
    help_flag(&left, flag);
    row(page, text_view(&left), flag->doc);
    text_free(&left);
}

/* A command is broken as a shell has it. */
static void command_line(const Page *page, const char *command)
{
    Text wrapped = {0};
    text_wrap(&wrapped, str_from(command), 2, 6, page->width - 2);
    text_printf(page->out, "  ");
    for (size_t i = 0; i < wrapped.len; i++)
        text_printf(page->out, wrapped.ptr[i] == '\n' ? " \\\n" : "%c", wrapped.ptr[i]);
    text_char(page->out, '\n');
    text_free(&wrapped);
}

static void overview(const Page *page)
{
    wrap(page, STR("nnc: " HELP_TAGLINE), 0, 0);
    text_printf(page->out, "\nCommands:\n");
    for (uint32_t i = 0; verb_table[i]; i++)
        row(page, str_from(verb_table[i]->name), verb_table[i]->summary);
    text_printf(page->out, "\n`nnc help COMMAND` tells more of one.\n\nExit status:\n");
    for (int i = 0; i < 4; i++) {
        char digit = (char)('0' + i);
        row(page, (Str){&digit, 1}, help_status[i]);
    }
}

static void flags_and_examples(const Page *page, const Verb *verb)
{
    if (verb->flag && verb->flag->name)
        text_printf(page->out, "\nFlags:\n");
    for (const Flag *flag = verb->flag; flag && flag->name; flag++)
        flag_row(page, flag);
    if (verb->example)
        text_printf(page->out, "\nExamples:\n");
    for (const Example *example = verb->example; example && example->command; example++) {
        text_printf(page->out, "  # ");
        wrap(page, str_from(example->doc), 4, 4);
        command_line(page, example->command);
    }
}

void help_text(Text *out, const Verb *verb, size_t width)
{
    Page page = page_of(out, width);
    Text usage = {0};

    if (!verb) {
        overview(&page);
        return;
    }
    text_printf(out, "nnc %s: ", verb->name);
    wrap(&page, str_from(verb->summary), strlen(verb->name) + 6, 4);
    text_printf(out, "\nUsage: ");
    help_synopsis(&usage, verb);
    wrap(&page, text_view(&usage), 7, 11);
    text_free(&usage);
    if (verb->text) {
        text_char(out, '\n');
        paragraphs(&page, verb->text);
    }
    flags_and_examples(&page, verb);
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
        help_text(&out, verb, terminal_width());
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
