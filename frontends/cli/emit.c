#include "cli/emit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "api/files.h"
#include "base/file.h"
#include "nnc/text.h"

#define MOST_WORDS 64 /* of a compiler's command line */

typedef struct Destination {
    Cli *cli;
    const Folder *folder;
} Destination;

static bool write_text(void *context, Str name, const Text *text)
{
    const Destination *to = context;
    return file_write(&to->cli->diag, folder_file(to->cli, to->folder, name), text->ptr, text->len);
}

static void put_piece(void *context, const void *bytes, size_t size)
{
    file_writer_put(context, bytes, size);
}

static bool write_weights(void *context, Str name, const Program *program)
{
    const Destination *to = context;
    FileWriter writer;
    if (!file_writer_open(&writer, &to->cli->diag, folder_file(to->cli, to->folder, name)))
        return false;
    emit_weights(program, (Sink){put_piece, &writer});
    return file_writer_commit(&writer, &to->cli->diag);
}

bool emit_sources(Cli *cli, const Program *program, const Folder *folder)
{
    Destination to = {cli, folder};
    cli_step(cli, "writing the sources");
    return files_emit(program, (FileSink){write_text, write_weights, &to});
}

bool emit_kernel_listing(Cli *cli, const Program *program, const Folder *folder)
{
    Text text = {0};
    emit_kernels(program, &text);
    Str name = str_format(&cli->arena, STR_FMT ".kernels", STR_ARG(program->options.name));
    bool good = write_text(&(Destination){cli, folder}, name, &text);
    text_free(&text);
    return good;
}

static Str ir_name(Cli *cli, const Program *program)
{
    return str_format(&cli->arena, STR_FMT ".ir.nnc", STR_ARG(program->options.name));
}

bool emit_ir(Cli *cli, const Program *program, const Folder *folder)
{
    Text text = {0};
    nnc_name_constants(program->entry->graph->module);
    nnc_print(&text, program->entry->graph->module);
    bool good = model_save(cli, program->entry->graph->module, folder_file(cli, folder, ir_name(cli, program)), &text);
    text_free(&text);
    return good;
}

bool emit_ir_keeps_weights(Cli *cli, const Model *model, const Program *program, Str where)
{
    Folder folder = {.path = where};
    return model_keeps_weights(cli, model, folder_file(cli, &folder, ir_name(cli, program)));
}

void emit_ir_warn(Cli *cli, const Program *program, Str where)
{
    Folder folder = {.path = where};
    model_warn_of_older(cli, program->entry->graph->module, folder_file(cli, &folder, ir_name(cli, program)));
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

/* Programs are run in another folder: one that a relative path names is known by its whole path there. */
static const char *whole_path(Cli *cli, const char *word)
{
    char here[4096];
    bool relative = word[0] != '/' && strchr(word, '/') && file_exists(str_from(word));
    return relative && getcwd(here, sizeof here) ? str_format(&cli->arena, "%s/%s", here, word).ptr : word;
}

/* The words of --cc, of which those before the first flag may be programs: `ccache ./gcc -m32`. */
static void add_cc(Cli *cli, Command *command)
{
    Str cc = args_value(cli, "cc");
    add_words(cli, command, cc.len ? cc : STR("clang"));
    for (uint32_t i = 0; i < command->count && command->word[i][0] != '-'; i++)
        command->word[i] = whole_path(cli, command->word[i]);
}

/* `absent`: what to do where there is no such program. */
static int run_for(Cli *cli, const Folder *folder, const Command *command, const char *absent, Text *output)
{
    int code = folder_run(folder, command->word, output), error = errno;

    cli_step(cli, NULL);
    if (code < 0 && error != ENOENT)
        return cli_environment("cannot run %s: %s", command->word[0], strerror(error));
    if (code < 0)
        return cli_environment("%s is not installed, or not on the PATH; %s", command->word[0], absent);
    if (code)
        return cli_environment("%s failed with status %d%s%s", command->word[0], code, output->len ? ":\n" : "",
                               output->len ? output->ptr : "");
    return STATUS_OK;
}

static int run_command(Cli *cli, const Folder *folder, const Command *command)
{
    Text output = {0};
    int status = run_for(cli, folder, command, "name a C compiler with --cc", &output);
    text_free(&output);
    return status;
}

static bool optimizes(const Command *command)
{
    for (uint32_t i = 0; i < command->count; i++)
        if (strncmp(command->word[i], "-O", 2) == 0)
            return true;
    return false;
}

/* Of libraries, whoever calls them: faster than what strict C99 allows, with results that it allows. */
static Command compiler(Cli *cli, const char *machine, const char *flags)
{
    Command command = {0};

    add_cc(cli, &command);
    if (!optimizes(&command))
        add(&command, "-O3");
    add_words(cli, &command, STR("-std=gnu99 -ffp-contract=fast -fno-math-errno"));
    add_words(cli, &command, str_from(flags));
    add_words(cli, &command, str_from(machine));
    return command;
}

static bool has_assembly(const Program *program)
{
    return program_weights_form(program) == WEIGHTS_BLOB && program->weights_bytes;
}

/* What chooses among versions runs on any machine. */
static const char *machine_flags(const Program *program)
{
    return program->version_count ? "" : program->options.target->cc_flags;
}

static const char *name_with(Cli *cli, const Program *program, const char *before, const char *after)
{
    return str_format(&cli->arena, "%s" STR_FMT "%s", before, STR_ARG(program->options.name), after).ptr;
}

typedef struct Building {
    Cli *cli;
    const Program *program;
    const Folder *folder;
    const char *flags; /* besides those of every build */
} Building;

static int make_object(const Building *b, Command *command, const char *source, const char *object)
{
    add(command, "-c");
    add(command, name_with(b->cli, b->program, "", source));
    add(command, "-o");
    add(command, name_with(b->cli, b->program, "", object));
    return run_command(b->cli, b->folder, command);
}

static int compile_object(const Building *b, const char *source, const char *object)
{
    Command command = compiler(b->cli, machine_flags(b->program), b->flags);
    return make_object(b, &command, source, object);
}

static int compile_objects(Cli *cli, const Program *program, const Folder *folder, const char *flags)
{
    Building b = {cli, program, folder, flags};
    cli_step(cli, "compiling C");
    int status = compile_object(&b, ".c", ".o");
    for (uint32_t v = 0; v < program->version_count && status == STATUS_OK; v++)
        status = compile_object(&(Building){cli, &program->version[v], folder, flags}, ".c", ".o");
    if (status == STATUS_OK && has_assembly(program))
        status = compile_object(&b, "_weights.S", "_weights.o");
    return status;
}

static void add_objects(Cli *cli, Command *command, const Program *program)
{
    add(command, name_with(cli, program, "", ".o"));
    for (uint32_t v = 0; v < program->version_count; v++)
        add(command, name_with(cli, &program->version[v], "", ".o"));
    if (has_assembly(program))
        add(command, name_with(cli, program, "", "_weights.o"));
}

static int link_shared(Cli *cli, const Program *program, const Folder *folder)
{
    Command command = compiler(cli, machine_flags(program), "-fPIC");
    add(&command, "-shared");
    add_objects(cli, &command, program);
    add_words(cli, &command, str_from(program_libraries(program)));
    add(&command, "-lm");
    add(&command, "-o");
    add(&command, name_with(cli, program, "lib", ".so"));
    return run_command(cli, folder, &command);
}

int emit_compile_shared(Cli *cli, const Target *target, const Folder *folder, const char *source, const char *library)
{
    Command command = compiler(cli, target->cc_flags, "-fPIC");
    add(&command, "-shared");
    add(&command, source);
    add(&command, "-o");
    add(&command, library);
    return run_command(cli, folder, &command);
}

Str emit_recommended(Cli *cli, const Program *program)
{
    const Target *target = program->options.target;
    Command given = {0};
    add_cc(cli, &given);
    return str_format(&cli->arena, "%s%s%s%s", optimizes(&given) ? "" : " ",
                      optimizes(&given) ? "" : target_cc_level(target), target->cc_flags[0] ? " " : "",
                      target->cc_flags);
}

int emit_object(Cli *cli, const Program *program, const Folder *folder, const char *flags, const char *object)
{
    Command command = {0};
    add_cc(cli, &command);
    add_words(cli, &command, emit_recommended(cli, program));
    add_words(cli, &command, str_from(flags));
    return make_object(&(Building){cli, program, folder, flags}, &command, ".c", object);
}

bool emit_accepts(Cli *cli, const Folder *folder, const char *flags)
{
    Command command = {0};
    Text output = {0};
    add_cc(cli, &command);
    add_words(cli, &command, str_from(flags));
    add_words(cli, &command, STR("-fsyntax-only -x c /dev/null"));
    int code = folder_run(folder, command.word, &output);
    text_free(&output);
    return code == 0;
}

/* The tool that comes with a cross compiler: `arm-none-eabi-ar` beside `ccache arm-none-eabi-gcc -mthumb`. */
static const char *tool_beside(Cli *cli, const char *tool)
{
    static const char *const compilers[] = {"-gcc", "-cc", "-clang"};
    Command command = {0};
    add_cc(cli, &command);
    for (uint32_t i = 0; i < command.count && command.word[i][0] != '-'; i++)
        for (size_t k = 0; k < sizeof compilers / sizeof *compilers; k++) {
            Str word = str_from(command.word[i]);
            uint32_t stem = word.len - (uint32_t)strlen(compilers[k]);
            if (str_ends(word, compilers[k]))
                return str_format(&cli->arena, "%.*s-%s", (int)stem, word.ptr, tool).ptr;
        }
    return tool;
}

int emit_tool(Cli *cli, const Folder *folder, const char *tool, const char *const *arguments, Text *output)
{
    Command command = {0};
    add(&command, tool_beside(cli, tool));
    for (; *arguments; arguments++)
        add(&command, *arguments);
    return run_for(cli, folder, &command, "it measures what the C compiler makes", output);
}

static int make_archive(Cli *cli, const Program *program, const Folder *folder)
{
    Command command = {0};
    add(&command, tool_beside(cli, "ar"));
    add(&command, "rcsD");
    add(&command, name_with(cli, program, "lib", ".a"));
    add_objects(cli, &command, program);
    return run_command(cli, folder, &command);
}

int emit_shared(Cli *cli, const Program *program, const Folder *folder)
{
    int status = compile_objects(cli, program, folder, "-fPIC");
    return status == STATUS_OK ? link_shared(cli, program, folder) : status;
}

static void drop_objects(Cli *cli, const Program *program, const Folder *folder)
{
    Command objects = {0};
    add_objects(cli, &objects, program);
    for (uint32_t i = 0; i < objects.count; i++)
        unlink(folder_file(cli, folder, str_from(objects.word[i])).ptr);
}

int emit_libraries(Cli *cli, const Program *program, const Folder *folder, unsigned parts)
{
    bool shared = parts & (EMIT_LIB | EMIT_SHARED), archive = parts & (EMIT_LIB | EMIT_STATIC);
    int status = shared ? emit_shared(cli, program, folder) : compile_objects(cli, program, folder, "");
    if (status == STATUS_OK && archive)
        status = make_archive(cli, program, folder);
    drop_objects(cli, program, folder);
    return status;
}
