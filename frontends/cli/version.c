/* `nnc version`. */
#include "cli/cli.h"

static int run(Cli *cli)
{
    Text out = {0};
    (void)cli;
    text_printf(&out, "nnc " NNC_VERSION "\n");
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

const Verb verb_version = {
    .name = "version",
    .operands = "",
    .summary = "Print the version",
    .run = run,
};
