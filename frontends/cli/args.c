/* The words of the command line: flags as --name value, --name=value, -x value or -xvalue; `--` ends the flags. */
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan/problem.h"

static uint32_t flag_count(const Verb *verb)
{
    uint32_t count = 0;
    while (verb->flag && verb->flag[count].name)
        count++;
    return count;
}

static const Flag *flag_find(const Verb *verb, Str name)
{
    for (uint32_t i = 0; i < flag_count(verb); i++)
        if (str_is(name, verb->flag[i].name))
            return &verb->flag[i];
    return NULL;
}

static bool unknown_flag(Cli *cli, Str word, Str name)
{
    uint32_t count = flag_count(cli->verb);
    const char **list = ARENA_ARRAY(&cli->arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; i++)
        list[i] = cli->verb->flag[i].name;
    const char *near = cli_nearest(name, list, count);
    if (near)
        cli_usage(cli, "unknown flag " STR_FMT "; did you mean %s%s?", STR_ARG(word), near[1] ? "--" : "-", near);
    else
        cli_usage(cli, "unknown flag " STR_FMT, STR_ARG(word));
    return false;
}

static void push(Cli *cli, const Flag *flag, Str value)
{
    ARENA_PUSH(&cli->arena, cli->argument, cli->argument_count, cli->argument_capacity, ((Argument){flag, value}));
}

/* One word that begins with a dash, and the next word when it is the flag's value.  Returns how many were taken. */
static int take_flag(Cli *cli, Str word, const char *next)
{
    bool is_long = word.len > 1 && word.ptr[1] == '-';
    Str name = {word.ptr + 1 + is_long, word.len - 1 - is_long}, value = {NULL, 0};
    const char *equals = is_long ? memchr(name.ptr, '=', name.len) : NULL;

    if (equals) {
        value = (Str){equals + 1, (uint32_t)(name.ptr + name.len - equals - 1)};
        name.len = (uint32_t)(equals - name.ptr);
    } else if (!is_long && name.len > 1) { /* -DN=2; where the letter is no flag, the word is shown whole */
        const Flag *letter = flag_find(cli->verb, (Str){name.ptr, 1});
        if (letter && letter->value) {
            value = (Str){name.ptr + 1, name.len - 1};
            name.len = 1;
        }
    }
    const Flag *flag = flag_find(cli->verb, name);
    const char *dashes = is_long ? "--" : "-";
    if (!flag)
        return unknown_flag(cli, (Str){word.ptr, (uint32_t)(name.ptr + name.len - word.ptr)}, name), 0;
    if (!flag->value && value.ptr)
        return cli_usage(cli, "%s%s takes no value", dashes, flag->name), 0;
    int taken = 1;
    if (flag->value && !value.ptr) {
        if (!next)
            return cli_usage(cli, "%s%s needs a value: %s", dashes, flag->name, flag->value), 0;
        value = str_from(next);
        taken = 2;
    }
    push(cli, flag, value);
    return taken;
}

/* Operands in the verb's synopsis: those outside brackets must be there. */
static void operand_bounds(const char *synopsis, uint32_t *least, uint32_t *most)
{
    *least = *most = 0;
    for (const char *at = synopsis; *at;) {
        bool optional = *at == '[';
        *most += 1;
        *least += !optional;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
}

bool args_parse(Cli *cli, int count, char **word)
{
    bool flags = true;
    uint32_t operands = 0, least, most;

    for (int i = 0; i < count;) {
        if (flags && strcmp(word[i], "--") == 0) {
            flags = false;
            i++;
        } else if (flags && word[i][0] == '-' && word[i][1]) {
            int taken = take_flag(cli, str_from(word[i]), i + 1 < count ? word[i + 1] : NULL);
            if (!taken)
                return false;
            i += taken;
        } else {
            push(cli, NULL, str_from(word[i++]));
            operands++;
        }
    }
    operand_bounds(cli->verb->operands, &least, &most);
    if (operands > most)
        return cli_usage(cli, "more words than `%s` takes: " STR_FMT, cli->verb->name,
                         STR_ARG(args_operand(cli, most))),
               false;
    if (operands < least)
        return cli_usage(cli, "%s is not given", cli->verb->operands), false;
    return true;
}

void args_add(Cli *cli, const char *flag, Str value)
{
    push(cli, flag_find(cli->verb, str_from(flag)), value);
}

bool args_next(const Cli *cli, const char *flag, uint32_t *at, Str *value)
{
    assert(flag_find(cli->verb, str_from(flag)));
    while (*at < cli->argument_count) {
        const Argument *argument = &cli->argument[(*at)++];
        if (argument->flag && strcmp(argument->flag->name, flag) == 0) {
            *value = argument->value;
            return true;
        }
    }
    return false;
}

Str args_value(const Cli *cli, const char *flag)
{
    Str value = {NULL, 0};
    for (uint32_t at = 0; args_next(cli, flag, &at, &value);)
        ;
    return value;
}

bool args_takes(const Cli *cli, const char *flag)
{
    return flag_find(cli->verb, str_from(flag)) != NULL;
}

bool args_has(const Cli *cli, const char *flag)
{
    Str value;
    uint32_t at = 0;
    return args_next(cli, flag, &at, &value);
}

Str args_operand(const Cli *cli, uint32_t i)
{
    for (uint32_t at = 0; at < cli->argument_count; at++)
        if (!cli->argument[at].flag && i-- == 0)
            return cli->argument[at].value;
    return (Str){NULL, 0};
}

bool args_exclude(Cli *cli, const char *with, const char *const *flags)
{
    for (const char *const *flag = flags; *flag; flag++)
        if (args_has(cli, *flag))
            return cli_usage(cli, "%s%s has no meaning together with --%s", (*flag)[1] ? "--" : "-", *flag, with),
                   false;
    return true;
}

bool args_number(Cli *cli, const char *flag, int64_t least, int64_t most, int64_t *number)
{
    Str word = args_value(cli, flag);
    char *end;

    if (!word.ptr)
        return true;
    const char *text = str_copy(&cli->arena, word).ptr;
    errno = 0;
    long long got = strtoll(text, &end, 10);
    if (errno || end == text || *end || got < least || got > most)
        return cli_usage(cli, "--%s wants a whole number from %lld to %lld, not `%s`", flag, (long long)least,
                         (long long)most, text),
               false;
    *number = got;
    return true;
}

bool args_decimal(Cli *cli, const char *flag, double most, double *number)
{
    Str word = args_value(cli, flag);
    char *end;

    if (!word.ptr)
        return true;
    const char *text = str_copy(&cli->arena, word).ptr;
    double got = strtod(text, &end);
    if (end == text || *end || !(got >= 0 && got <= most))
        return cli_usage(cli, "--%s wants a number from 0 to %g, not `%s`", flag, most, text), false;
    *number = got;
    return true;
}

bool args_bytes(Cli *cli, const char *flag, int64_t *bytes)
{
    Str word = args_value(cli, flag);
    char *end;

    if (!word.ptr)
        return true;
    const char *text = str_copy(&cli->arena, word).ptr;
    unsigned long long number = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : (end = "?", 0);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (*end || !number || number > (unsigned long long)PLAN_LARGEST >> shift)
        return cli_usage(cli, "--%s wants bytes (65536, 64K, 2M, 1G), not `%s`", flag, text), false;
    *bytes = (int64_t)(number << shift);
    return true;
}
