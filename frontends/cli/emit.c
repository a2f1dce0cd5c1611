#include "cli/emit.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "nnc/text.h"

#define MOST_WORDS 64 /* of a compiler's command line */

static bool write_text(Cli *cli, const Folder *folder, Str name, Text *text)
{
    bool good = file_write(&cli->diag, folder_file(cli, folder, name), text->ptr, text->len);
    text_free(text);
    return good;
}

static void put_piece(void *context, const void *bytes, size_t size)
{
    file_writer_put(context, bytes, size);
}

static bool write_weights(Cli *cli, const Program *program, const Folder *folder)
{
    FileWriter writer;
    Str name = str_format(&cli->arena, STR_FMT ".weights", STR_ARG(program->options.name));
    if (!file_writer_open(&writer, &cli->diag, folder_file(cli, folder, name)))
        return false;
    emit_weights(program, (Sink){put_piece, &writer});
    return file_writer_commit(&writer, &cli->diag);
}

bool emit_sources(Cli *cli, const Program *program, const Folder *folder)
{
    Str name = program->options.name;
    WeightsForm form = program_weights_form(program);
    Text text = {0};

    if (form != WEIGHTS_C && program->weights_bytes) {
        cli_step(cli, "writing weights"); /* first: the source has their checksum */
        if (!write_weights(cli, program, folder))
            return false;
    }
    cli_step(cli, "writing C");
    emit_header(program, &text);
    if (!write_text(cli, folder, str_format(&cli->arena, STR_FMT ".h", STR_ARG(name)), &text))
        return false;
    emit_source(program, &text);
    if (!write_text(cli, folder, str_format(&cli->arena, STR_FMT ".c", STR_ARG(name)), &text))
        return false;
    if (form != WEIGHTS_BLOB || !program->weights_bytes)
        return true;
    emit_incbin(program, &text);
    return write_text(cli, folder, str_format(&cli->arena, STR_FMT "_weights.S", STR_ARG(name)), &text);
}

bool emit_cuda_sources(Cli *cli, const Program *program, const Folder *folder)
{
    Str name = program->options.name;
    Text source = {0}, header = {0};

    cli_step(cli, "writing CUDA");
    emit_cuda(program, &source, &header);
    bool good = write_text(cli, folder, str_format(&cli->arena, STR_FMT ".cu", STR_ARG(name)), &source);
    good &= write_text(cli, folder, str_format(&cli->arena, STR_FMT ".h", STR_ARG(name)), &header);
    return good && (program_weights_form(program) == WEIGHTS_C || write_weights(cli, program, folder));
}

bool emit_kernel_listing(Cli *cli, const Program *program, const Folder *folder)
{
    Text text = {0};
    emit_kernels(program, &text);
    return write_text(cli, folder, str_format(&cli->arena, STR_FMT ".kernels", STR_ARG(program->options.name)), &text);
}

bool emit_ir(Cli *cli, const Program *program, const Folder *folder)
{
    Text text = {0};
    Str name = str_format(&cli->arena, STR_FMT ".ir.nnc", STR_ARG(program->options.name));
    nnc_print(&text, program->graph->module);
    bool good = model_save(cli, program->graph->module, folder_file(cli, folder, name), &text);
    text_free(&text);
    return good;
}

typedef struct Command {
    const char *word[MOST_WORDS + 1];
    uint32_t count;
} Command;

static void add(Command *command, const char *word)
{
    if (command->count < MOST_WORDS)
        command->word[command->count++] = word;
}

/* Each word of a text separated by blanks: a compiler may be `ccache gcc`, flags of a target are several. */
static void add_words(Cli *cli, Command *command, Str words)
{
    for (uint32_t i = 0, begin = 0; i <= words.len; i++)
        if (i == words.len || words.ptr[i] == ' ') {
            if (i > begin)
                add(command, str_copy(&cli->arena, (Str){words.ptr + begin, i - begin}).ptr);
            begin = i + 1;
        }
}

static int run_command(Cli *cli, const Folder *folder, const Command *command)
{
    Text output = {0};
    int code = folder_run(folder, command->word, &output), status = STATUS_OK;

    cli_step(cli, NULL);
    if (code < 0)
        status =
            cli_environment("%s is not installed, or not on the PATH; name a C compiler with --cc", command->word[0]);
    else if (code)
        status = cli_environment("%s failed with status %d:\n%s", command->word[0], code, output.ptr ? output.ptr : "");
    text_free(&output);
    return status;
}

static Command compiler(Cli *cli, const Target *target)
{
    Command command = {0};
    Str cc = args_value(cli, "cc");

    add_words(cli, &command, cc.len ? cc : STR("clang"));
    add_words(cli, &command, STR("-std=gnu99 -O3 -fPIC -ffp-contract=fast -fno-math-errno"));
    add_words(cli, &command, str_from(target->cc_flags));
    return command;
}

static bool has_assembly(const Program *program)
{
    return program_weights_form(program) == WEIGHTS_BLOB && program->weights_bytes;
}

static const char *name_with(Cli *cli, const Program *program, const char *before, const char *after)
{
    return str_format(&cli->arena, "%s" STR_FMT "%s", before, STR_ARG(program->options.name), after).ptr;
}

static int compile_object(Cli *cli, const Program *program, const Folder *folder, const char *source,
                          const char *object)
{
    Command command = compiler(cli, program->options.target);
    add(&command, "-c");
    add(&command, name_with(cli, program, "", source));
    add(&command, "-o");
    add(&command, name_with(cli, program, "", object));
    return run_command(cli, folder, &command);
}

static int compile_objects(Cli *cli, const Program *program, const Folder *folder)
{
    cli_step(cli, "compiling C");
    int status = compile_object(cli, program, folder, ".c", ".o");
    if (status == STATUS_OK && has_assembly(program))
        status = compile_object(cli, program, folder, "_weights.S", "_weights.o");
    return status;
}

static int link_shared(Cli *cli, const Program *program, const Folder *folder)
{
    Command command = compiler(cli, program->options.target);
    add(&command, "-shared");
    add(&command, name_with(cli, program, "", ".o"));
    if (has_assembly(program))
        add(&command, name_with(cli, program, "", "_weights.o"));
    add(&command, "-lm");
    add(&command, "-o");
    add(&command, name_with(cli, program, "lib", ".so"));
    return run_command(cli, folder, &command);
}

int emit_compile_shared(Cli *cli, const Target *target, const Folder *folder, const char *source, const char *library)
{
    Command command = compiler(cli, target);
    add(&command, "-shared");
    add(&command, source);
    add(&command, "-o");
    add(&command, library);
    return run_command(cli, folder, &command);
}

static int make_archive(Cli *cli, const Program *program, const Folder *folder)
{
    Command command = {0};
    add(&command, "ar");
    add(&command, "rcsD");
    add(&command, name_with(cli, program, "lib", ".a"));
    add(&command, name_with(cli, program, "", ".o"));
    if (has_assembly(program))
        add(&command, name_with(cli, program, "", "_weights.o"));
    return run_command(cli, folder, &command);
}

int emit_shared(Cli *cli, const Program *program, const Folder *folder)
{
    int status = compile_objects(cli, program, folder);
    return status == STATUS_OK ? link_shared(cli, program, folder) : status;
}

int emit_libraries(Cli *cli, const Program *program, const Folder *folder)
{
    int status = emit_shared(cli, program, folder);
    if (status == STATUS_OK)
        status = make_archive(cli, program, folder);
    unlink(folder_file(cli, folder, str_from(name_with(cli, program, "", ".o"))).ptr);
    unlink(folder_file(cli, folder, str_from(name_with(cli, program, "", "_weights.o"))).ptr);
    return status;
}
