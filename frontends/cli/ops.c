/* `nnc ops`: the op table, for people. */
#include "cli/cli.h"

#include "ops/doc.h"

static void print_one(Text *out, const OpInfo *info)
{
    ops_print_signature(out, info);
    text_printf(out, "\n  %s\n", info->doc);
    if (info->expression)
        text_printf(out, "  at each position: %s\n", info->expression);
    for (const AttrSpec *attr = info->attr; attr && attr->name; attr++)
        text_printf(out, "  %s: %s%s%s\n", attr->name, attr_kind_name(attr->kind),
                    attr->fallback ? ", default " : ", must be given", attr->fallback ? attr->fallback : "");
    text_printf(out, "  effect: %s; in place: %s\n", info->effect == EFFECT_PURE ? "none" : "ordered",
                info->inplace == INPLACE_SAME ? "yes" : "no");
}

static int unknown_op(Cli *cli, Str name)
{
    const char *list[OP_COUNT];
    for (int op = 0; op < OP_COUNT; op++)
        list[op] = op_info((OpCode)op)->name;
    const char *near = cli_nearest(name, list, OP_COUNT);
    return cli_usage(cli, "no op is called `" STR_FMT "`%s%s%s", STR_ARG(name), near ? "; did you mean `" : "",
                     near ? near : "", near ? "`?" : "");
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"table", "markdown", NULL};
    Str name = args_operand(cli, 0), word = args_value(cli, "format");
    OpCode op = name.ptr ? op_find(name) : OP_COUNT;
    uint32_t format = 0;
    Text out = {0};

    if (word.ptr && !cli_choose(cli, "format", word, formats, &format))
        return STATUS_USAGE;
    if (name.ptr && op == OP_COUNT)
        return unknown_op(cli, name);
    if (name.ptr)
        print_one(&out, op_info(op));
    else if (format == 1)
        ops_print_markdown(&out);
    else
        ops_print_table(&out);
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

const Verb verb_ops = {
    .name = "ops",
    .operands = "[OP]",
    .summary = "List the primitive ops, or show one",
    .text =
        "Operands marked `?` may be left out; `*` stands for one or more. Attributes are shown with their defaults.",
    .flag = (const Flag[]){{"format", "table|markdown", "How to print (default: table)"}, FLAG_END},
    .example = (const Example[]){{"nnc ops conv2d", "one op, with its attributes"}, {NULL, NULL}},
    .run = run,
};
