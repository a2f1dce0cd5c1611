/* The `nnc` command: finds the verb, parses its words, runs it, reports. */
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* The verbs, in the order of help; each is a file of its own. */
#define VERBS(_)                                                                                                       \
    _(compile)                                                                                                         \
    _(run)                                                                                                             \
    _(train) _(plan) _(opt) _(graph) _(import) _(export) _(params) _(reduce) _(ops) _(bench) _(tune) _(help) _(version)

#define DECLARE(name) extern const Verb verb_##name;
#define ROW(name)     &verb_##name,
VERBS(DECLARE)

const Verb *const verb_table[] = {VERBS(ROW) NULL};

#define VERB_COUNT (sizeof verb_table / sizeof *verb_table - 1)

const Verb *verb_find(Str name)
{
    for (uint32_t i = 0; i < VERB_COUNT; i++)
        if (str_is(name, verb_table[i]->name))
            return verb_table[i];
    return NULL;
}

static void complain_of_verb(Cli *cli, Str word)
{
    const char *list[VERB_COUNT];
    for (uint32_t i = 0; i < VERB_COUNT; i++)
        list[i] = verb_table[i]->name;
    const char *near = cli_nearest(word, list, VERB_COUNT);
    if (near)
        cli_usage(cli, "unknown command `" STR_FMT "`; did you mean `%s`?", STR_ARG(word), near);
    else
        cli_usage(cli, "unknown command `" STR_FMT "`", STR_ARG(word));
}

/* `nnc --help`, `nnc VERB --help`, `nnc --version`: other ways to say help and version. */
static bool asks(int count, char **word, const char *what, char letter)
{
    for (int i = 0; i < count && strcmp(word[i], "--"); i++)
        if (strcmp(word[i], what) == 0 || (word[i][0] == '-' && word[i][1] == letter && !word[i][2]))
            return true;
    return false;
}

static int dispatch(Cli *cli, int count, char **word)
{
    char *verb_word = count ? word[0] : NULL;

    if (!verb_word) {
        cli->verb = &verb_help;
        verb_help.run(cli);
        return STATUS_USAGE;
    }
    cli->verb = verb_find(str_from(verb_word));
    if (verb_word[0] == '-' && asks(1, word, "--version", 'V')) {
        cli->verb = &verb_version;
        return verb_version.run(cli);
    }
    if (asks(count, word, "--help", 'h')) {
        Text text = {0};
        help_text(&text, cli->verb, terminal_width());
        cli_put(&text);
        text_free(&text);
        return STATUS_OK;
    }
    if (!cli->verb) {
        complain_of_verb(cli, str_from(verb_word));
        return STATUS_USAGE;
    }
    return args_parse(cli, count - 1, word + 1) ? cli->verb->run(cli) : STATUS_USAGE;
}

int main(int argc, char **argv)
{
    Cli cli = {0};

    cli.diag.arena = &cli.arena;
    signal(SIGXFSZ, SIG_IGN); /* a file as large as may be is an error of write, as a full disk is */
    int status = dispatch(&cli, argc - 1, argv + 1);
    cli_step(&cli, NULL);
    if (cli.diag.text.len)
        terminal_put_diagnostics(&cli.diag.text);
    if (status == STATUS_OK && cli.diag.error_count)
        status = STATUS_INPUT;
    if (!cli_flush())
        status = cli_environment("cannot write to standard output: %s", strerror(errno));
    diag_free(&cli.diag);
    arena_free(&cli.arena);
    return status;
}
