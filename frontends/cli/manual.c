/* The manual from the verbs' rows: the man page nnc.1, and docs/cli.md. */
#include "cli/help.h"

#include <string.h>

/* Text as troff: a backslash and a leading dot or quote mean themselves, `...` is bold. */
static void troff(Text *out, const char *text, size_t length)
{
    bool bold = false;
    if (length && (*text == '.' || *text == '\''))
        text_printf(out, "\\&");
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '`') {
            bold = !bold;
            text_printf(out, bold ? "\\fB" : "\\fR");
        } else if (text[i] == '\\' || text[i] == '-') {
            text_printf(out, text[i] == '-' ? "\\-" : "\\e");
        } else {
            text_char(out, text[i]);
        }
    }
    text_char(out, '\n');
}

static void troff_paragraphs(Text *out, const char *text)
{
    bool literal = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length && (*text == ' ') != literal) {
            literal = !literal;
            text_printf(out, literal ? ".nf\n" : ".fi\n");
        }
        if (length)
            troff(out, text, length);
        else
            text_printf(out, ".PP\n");
        text += length + (text[length] == '\n');
    }
    if (literal)
        text_printf(out, ".fi\n");
}

static void man_verb(Text *out, const Verb *verb)
{
    Text line = {0};
    text_printf(out, ".SS nnc %s\n", verb->name);
    troff(out, verb->summary, strlen(verb->summary));
    help_synopsis(&line, verb);
    text_printf(out, ".PP\n");
    troff(out, line.ptr, line.len);
    if (verb->text) {
        text_printf(out, ".PP\n");
        troff_paragraphs(out, verb->text);
    }
    for (const Flag *flag = verb->flag; flag && flag->name; flag++) {
        Text name = {0};
        text_printf(out, ".TP\n.B ");
        help_flag(&name, flag);
        troff(out, name.ptr, name.len);
        troff(out, flag->doc, strlen(flag->doc));
        text_free(&name);
    }
    text_free(&line);
}

static void man_examples(Text *out)
{
    text_printf(out, ".SH EXAMPLES\n");
    for (uint32_t i = 0; verb_table[i]; i++)
        for (const Example *example = verb_table[i]->example; example && example->command; example++) {
            text_printf(out, ".TP\n");
            troff(out, example->doc, strlen(example->doc));
            text_printf(out, ".B ");
            troff(out, example->command, strlen(example->command));
        }
}

void help_man(Text *out)
{
    text_printf(out, ".TH NNC 1 \"\" \"nnc " NNC_VERSION
                     "\" \"User Commands\"\n"
                     ".SH NAME\nnnc \\- " HELP_TAGLINE
                     "\n"
                     ".SH SYNOPSIS\n.B nnc\n.I COMMAND\n[word ...]\n"
                     ".SH DESCRIPTION\n"
                     "A neural network, written as .nnc text, becomes plain C or CUDA source that a person can read, "
                     "check in\nand build anywhere, with every byte of memory planned ahead.\n"
                     ".SH COMMANDS\n");
    for (uint32_t i = 0; verb_table[i]; i++)
        man_verb(out, verb_table[i]);
    man_examples(out);
    text_printf(out, ".SH OUTPUT\n%s\n.SH EXIT STATUS\n", help_output);
    for (int i = 0; i < 4; i++)
        text_printf(out, ".TP\n.B %d\n%s\n", i, help_status[i]);
}

/* A cell of a table may hold no bar. */
static void cell(Text *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_printf(out, text[i] == '|' ? "\\|" : "%c", text[i]);
}

static void markdown_text(Text *out, const char *text)
{
    bool literal = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if ((*text == ' ') != literal) {
            literal = !literal;
            text_printf(out, literal ? "\n```text\n" : "```\n");
        }
        text_put(out, text, length);
        text_char(out, '\n');
        text += length + (text[length] == '\n');
    }
    text_printf(out, literal ? "```\n\n" : "\n");
}

static void markdown_flags(Text *out, const Verb *verb)
{
    text_printf(out, "| flag | |\n|---|---|\n");
    for (const Flag *flag = verb->flag; flag->name; flag++) {
        Text name = {0};
        help_flag(&name, flag);
        text_printf(out, "| `");
        cell(out, name.ptr, name.len);
        text_printf(out, "` | ");
        cell(out, flag->doc, strlen(flag->doc));
        text_printf(out, " |\n");
        text_free(&name);
    }
    text_char(out, '\n');
}

static void markdown_verb(Text *out, const Verb *verb)
{
    text_printf(out, "## nnc %s\n\n%s.\n\n", verb->name, verb->summary);
    text_printf(out, "    nnc %s%s%s%s\n\n", verb->name, *verb->operands ? " " : "", verb->operands,
                verb->flag && verb->flag->name ? " [flags]" : "");
    if (verb->text)
        markdown_text(out, verb->text);
    if (verb->flag && verb->flag->name)
        markdown_flags(out, verb);
    if (!verb->example)
        return;
    text_printf(out, "```sh\n");
    for (const Example *example = verb->example; example->command; example++)
        text_printf(out, "%s    # %s\n", example->command, example->doc);
    text_printf(out, "```\n\n");
}

void help_markdown(Text *out)
{
    text_printf(out,
                "# The command line\n\n<!-- Printed by `nnc help --format markdown`; `./dev format` renews it. "
                "-->\n\n");
    for (uint32_t i = 0; verb_table[i]; i++)
        markdown_verb(out, verb_table[i]);
    text_printf(out, "## Output\n\n%s\n\n", help_output);
    text_printf(out, "## Exit status\n\n| status | |\n|---|---|\n");
    for (int i = 0; i < 4; i++)
        text_printf(out, "| %d | %s |\n", i, help_status[i]);
}
