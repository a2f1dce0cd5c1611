/* `nnc ops`: the op table, for people. */
#include "cli/cli.h"

#include <string.h>

#include "ir/op.h"

static const char *const family_title[FAMILY_COUNT] = {
    [FAMILY_ELEMENTWISE] = "Elementwise, with broadcasting",
    [FAMILY_CAST] = "Conversion",
    [FAMILY_REDUCE] = "Reductions",
    [FAMILY_CONTRACT] = "Contractions",
    [FAMILY_POOL] = "Pooling",
    [FAMILY_VIEW] = "Views",
    [FAMILY_ASSEMBLE] = "Assembly",
    [FAMILY_GATHER] = "Gather",
    [FAMILY_GENERATE] = "Generators",
    [FAMILY_LAYOUT] = "Layout",
    [FAMILY_CONTROL] = "Control",
};

static const char *kind_name(AttrKind kind)
{
    static const char *const name[] = {"int", "float", "bool", "ints", "dtype", "string"};
    return name[kind];
}

/* `conv2d(x, weight, bias?, stride = 1, pad = 0)`; an attribute that must be given shows its kind. */
static void signature(Text *out, const OpInfo *info)
{
    const char *separator = "";
    text_printf(out, "%s(", info->name);
    for (const char *at = info->operands; *at;) {
        size_t length = strcspn(at, " ");
        text_printf(out, "%s%.*s", separator, (int)length, at);
        at += length + (at[length] == ' ');
        separator = ", ";
    }
    for (const AttrSpec *attr = info->attr; attr && attr->name; attr++) {
        if (attr->fallback)
            text_printf(out, "%s%s = %s", separator, attr->name, attr->fallback);
        else
            text_printf(out, "%s%s: %s", separator, attr->name, kind_name(attr->kind));
        separator = ", ";
    }
    text_char(out, ')');
}

static void print_row(Text *out, const OpInfo *info, bool markdown)
{
    if (markdown)
        text_printf(out, "| `");
    size_t begin = out->len;
    signature(out, info);
    if (markdown) {
        text_printf(out, "` | %s |\n", info->doc);
        return;
    }
    size_t length = out->len - begin;
    if (length > 34) {
        text_char(out, '\n');
        length = 0;
    }
    text_fill(out, ' ', 36 - length);
    text_printf(out, "%s\n", info->doc);
}

static void print_family(Text *out, OpFamily family, bool markdown)
{
    bool any = false;
    for (int op = 0; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((OpCode)op);
        if (info->family != family)
            continue;
        if (!any && markdown)
            text_printf(out, "## %s\n\n| op | |\n|---|---|\n", family_title[family]);
        else if (!any)
            text_printf(out, "%s\n", family_title[family]);
        any = true;
        if (!markdown)
            text_fill(out, ' ', 2);
        print_row(out, info, markdown);
    }
    if (any)
        text_char(out, '\n');
}

static void print_one(Text *out, const OpInfo *info)
{
    signature(out, info);
    text_printf(out, "\n  %s\n", info->doc);
    if (info->expression)
        text_printf(out, "  at each position: %s\n", info->expression);
    for (const AttrSpec *attr = info->attr; attr && attr->name; attr++)
        text_printf(out, "  %s: %s%s%s\n", attr->name, kind_name(attr->kind),
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
    if (!name.ptr && format == 1)
        text_printf(&out, "# Ops\n\n<!-- Printed by `nnc ops --format markdown`; `./dev format` renews it. -->\n\n");
    for (int family = 0; !name.ptr && family < FAMILY_COUNT; family++)
        print_family(&out, (OpFamily)family, format == 1);
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
