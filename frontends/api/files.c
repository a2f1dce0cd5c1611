#include "api/files.h"

#include "codegen/target.h"

typedef struct Files {
    const Program *program;
    FileSink sink;
    Arena scratch;
} Files;

static Str with_suffix(Files *files, const char *suffix)
{
    return str_format(&files->scratch, STR_FMT "%s", STR_ARG(files->program->options.name), suffix);
}

/* Hands the text over and empties it. */
static bool hand_over_as(const Files *files, Str name, Text *text)
{
    bool good = files->sink.text(files->sink.context, name, text);
    text_free(text);
    return good;
}

static bool hand_over(Files *files, const char *suffix, Text *text)
{
    return hand_over_as(files, with_suffix(files, suffix), text);
}

static bool emit_weights_file(Files *files)
{
    return files->sink.weights(files->sink.context, with_suffix(files, ".weights"), files->program);
}

/* Of a program for several targets: the sources that NAME.c chooses from. */
static bool emit_version_files(Files *files)
{
    const Program *program = files->program;
    Text text = {0};
    if (!program->version_count)
        return true;
    emit_versions(program, &text);
    bool good = hand_over(files, "_versions.h", &text);
    for (uint32_t v = 0; v < program->version_count && good; v++) {
        emit_source(&program->version[v], &text);
        good = hand_over_as(files, str_format(&files->scratch, STR_FMT ".c", STR_ARG(program->version[v].options.name)),
                            &text);
    }
    return good;
}

/* The weights first: the source has their checksum. */
static bool emit_c(Files *files)
{
    const Program *program = files->program;
    WeightsForm form = program_weights_form(program);
    Text text = {0};

    if (form != WEIGHTS_C && program->weights_bytes && !emit_weights_file(files))
        return false;
    emit_header(program, &text);
    if (!hand_over(files, ".h", &text))
        return false;
    emit_source(program, &text);
    if (!hand_over(files, ".c", &text) || !emit_version_files(files))
        return false;
    if (form != WEIGHTS_BLOB || !program->weights_bytes)
        return true;
    emit_incbin(program, &text);
    return hand_over(files, "_weights.S", &text);
}

static bool emit_both(Files *files) /* of CUDA: source and header are made together */
{
    Text source = {0}, header = {0};
    emit_cuda(files->program, &source, &header);
    bool good = hand_over(files, ".cu", &source);
    good = hand_over(files, ".h", &header) && good;
    return good && (program_weights_form(files->program) == WEIGHTS_C || emit_weights_file(files));
}

bool files_emit(const Program *program, FileSink sink)
{
    Files files = {.program = program, .sink = sink};
    bool good = program->options.target->dialect == DIALECT_CUDA ? emit_both(&files) : emit_c(&files);
    arena_free(&files.scratch);
    return good;
}
