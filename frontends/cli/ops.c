/* `nnc ops`: the op table and the library's functions, for people. */
#include "cli/cli.h"
#include "cli/terminal.h"

#include "nnc/text.h"
#include "ops/doc.h"

static void print_one(Text *out, const OpInfo *info)
{
    ops_print_signature(out, info);
    text_printf(out, "\n  %s\n", info->doc);
    if (info->expression)
        text_printf(out, "  at each position: %s\n  gradient: %s\n", info->expression, info->gradient_text);
    for (const AttrSpec *attr = info->attr; attr && attr->name; attr++)
        text_printf(out, "  %s: %s%s%s\n", attr->name, ops_attr_kind(attr->kind),
                    attr->fallback ? ", default " : ", must be given", attr->fallback ? attr->fallback : "");
    text_printf(out, "  effect: %s; in place: %s\n", info->effect == EFFECT_PURE ? "none" : "ordered",
                info->inplace == INPLACE_NEVER   ? "no"
                : info->inplace == INPLACE_FIRST ? "of the first operand"
                                                 : "yes");
}

static void print_function(Text *out, const LibraryFunction *function)
{
    text_printf(out, STR_FMT STR_FMT "\n", STR_ARG(function->doc), STR_ARG(function->text));
}

/* The comment as one line: without the marks and line breaks; in a table of Markdown a bar is written `\|`. */
static void print_doc(Text *out, Str doc, bool markdown)
{
    bool begin = true;
    for (uint32_t i = 0; i < doc.len; begin = doc.ptr[i] == '\n', i++) {
        if (begin && i)
            text_char(out, ' ');
        if (begin)
            i += 2; /* over `# ` */
        if (i >= doc.len || doc.ptr[i] == '\n')
            continue;
        text_printf(out, "%s%c", markdown && doc.ptr[i] == '|' ? "\\" : "", doc.ptr[i]);
    }
}

/* Long ones go over several lines in the library. */
static void print_signature(Text *out, Str signature)
{
    for (uint32_t i = 0; i < signature.len; i++)
        if (signature.ptr[i] != '\n')
            text_char(out, signature.ptr[i]);
        else {
            while (i + 1 < signature.len && signature.ptr[i + 1] == ' ')
                i++;
            text_char(out, ' ');
        }
}

static void print_library_table(Text *out, size_t width)
{
    LibraryFunction function = {0};
    Str section = {0};
    Text doc = {0}, signature = {0};
    text_printf(out, "\nThe library, with `use \"nn\"`\n");
    for (uint32_t at = 0; nnc_library_next(&at, &function); section = function.section) {
        if (!str_eq(section, function.section))
            text_printf(out, "\n" STR_FMT "\n", STR_ARG(function.section));
        doc.len = signature.len = 0;
        print_doc(&doc, function.doc, false);
        print_signature(&signature, function.signature);
        ops_print_row(out, text_view(&signature), text_view(&doc), width);
    }
    text_free(&doc);
    text_free(&signature);
}

static void print_library_markdown(Text *out)
{
    LibraryFunction function = {0};
    Str section = {0};
    text_printf(out,
                "\n## The library\n\nFunctions written in .nnc, for files that say `use \"nn\"`; "
                "`nnc ops NAME` shows one's text.\n");
    for (uint32_t at = 0; nnc_library_next(&at, &function); section = function.section) {
        if (!str_eq(section, function.section))
            text_printf(out, "\n### " STR_FMT "\n\n| function | meaning |\n|---|---|\n", STR_ARG(function.section));
        text_printf(out, "| `");
        print_signature(out, function.signature);
        text_printf(out, "` | ");
        print_doc(out, function.doc, true);
        text_printf(out, " |\n");
    }
}

/* `; did you mean ...?`: what other frameworks call so goes before what is near, but where that differs by case alone
 * (`Conv2d`, a layer of PyTorch) both are told. */
static Str meant(Cli *cli, Str name, const char *near)
{
    uint32_t slips;
    Str foreign = nnc_foreign_name(name), best = foreign.len || !near ? foreign : str_from(near);
    bool same = near && str_is_near(name, str_from(near), &slips) && !slips;
    if (same && foreign.len && !str_is(foreign, near))
        return str_format(&cli->arena, "; did you mean `%s`, or `" STR_FMT "`?", near, STR_ARG(foreign));
    return best.len ? str_format(&cli->arena, "; did you mean `" STR_FMT "`?", STR_ARG(best)) : (Str){0};
}

#define MOST_NAMES 512 /* of ops and functions, to look for a near one */

static int unknown_op(Cli *cli, Str name)
{
    const char *list[MOST_NAMES];
    uint32_t count = 0;
    LibraryFunction function = {0};
    for (int op = 0; op < OP_WRITTEN; op++)
        list[count++] = op_info((OpCode)op)->name;
    for (uint32_t at = 0; count < MOST_NAMES && nnc_library_next(&at, &function);)
        list[count++] = str_copy(&cli->arena, function.name).ptr;
    return cli_usage(cli, "no op or function is called `" STR_FMT "`" STR_FMT, STR_ARG(name),
                     STR_ARG(meant(cli, name, cli_nearest(name, list, count))));
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"table", "markdown", NULL};
    Str name = args_operand(cli, 0), word = args_value(cli, "format");
    OpCode op = name.ptr ? op_find(name) : OP_COUNT;
    uint32_t format = 0;
    LibraryFunction function;
    Text out = {0};

    if (word.ptr && !cli_choose(cli, "format", word, formats, &format))
        return STATUS_USAGE;
    if (name.ptr && op < OP_COUNT) {
        Text rows = {0};
        print_one(&rows, op_info(op));
        terminal_fold(&out, text_view(&rows));
        text_free(&rows);
    } else if (name.ptr) {
        if (!nnc_library_find(name, &function))
            return unknown_op(cli, name);
        print_function(&out, &function);
    } else if (format == 1) {
        ops_print_markdown(&out);
        print_library_markdown(&out);
    } else {
        ops_print_table(&out, terminal_width());
        print_library_table(&out, terminal_width());
    }
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

const Verb verb_ops = {
    .name = "ops",
    .operands = "[NAME]",
    .summary = "List the primitive ops and the library's functions, or show one",
    .text =
        "Operands marked `?` may be left out; `*` stands for one or more. Attributes are shown with their defaults.",
    .flag = (const Flag[]){{"format", "table|markdown", "How to print (default: table)"}, FLAG_END},
    .example = (const Example[]){{"nnc ops conv2d", "one op, with its attributes"},
                                 {"nnc ops softmax", "a function of the library, as it is written"},
                                 {NULL, NULL}},
    .run = run,
};
