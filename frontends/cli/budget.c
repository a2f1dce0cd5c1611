/* Stack and code of emitted C, by a compiler and `size`.
 *
 * By the command that is given and the flags that the file itself recommends, so that the figures are those of its
 * user's build.  Twice: as it is, for what the program takes; and with each kernel as a function of its own, for what
 * is whose.  A compiler names the frame of each function in a file beside the object (-fstack-usage), and a section for
 * each (-ffunction-sections) makes `size` tell of functions. */
#include "cli/budget.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/number.h"
#include "cli/emit.h"

#define APART "_apart"

typedef struct Measuring {
    Cli *cli;
    Budget *budget;
    Folder folder;
    Map function, entry; /* by name in C */
} Measuring;

static Str file_name(const Measuring *m, const char *suffix)
{
    return str_format(&m->cli->arena, STR_FMT "%s", STR_ARG(m->budget->program->options.name), suffix);
}

/* Words up to any of the characters; `rest` goes behind it. */
static Str cut_at(Str *rest, const char *ends)
{
    Str word = {rest->ptr, 0};
    while (word.len < rest->len && !strchr(ends, rest->ptr[word.len]))
        word.len++;
    uint32_t taken = word.len + (word.len < rest->len);
    *rest = (Str){rest->ptr + taken, rest->len - taken};
    return word;
}

static Str next_word(Str *rest)
{
    Str word;
    do
        word = cut_at(rest, " \t");
    while (!word.len && rest->len);
    return word;
}

/* Digits alone; else -1. */
static int64_t number_of(Str word)
{
    int64_t number = 0;
    for (uint32_t i = 0; i < word.len && number < INT64_MAX / 16; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9')
            return -1;
        number = number * 10 + (word.ptr[i] - '0');
    }
    return word.len ? number : -1;
}

/* Stack */

typedef struct Frames { /* bytes */
    int64_t *function, *entry;
    int64_t others; /* of helpers that were not inlined: they may all be on the stack at once */
} Frames;

/* `conv2d` of digits.c:99:13:conv2d.constprop.0: what a compiler has made of one function are pieces of it. */
static Str function_of(Str place)
{
    uint32_t begin = place.len;
    while (begin > 0 && place.ptr[begin - 1] != ':')
        begin--;
    Str rest = {place.ptr + begin, place.len - begin};
    return cut_at(&rest, ".");
}

/* Is it of the program, but not under an entry: who calls an entry, or prepares states? */
static bool is_above(const Measuring *m, Str name)
{
    for (uint32_t e = 0; e < m->budget->entry_count; e++)
        if (str_eq(name, m->budget->entry[e].descriptor))
            return true;
    return str_ends(name, "params_init") || str_ends(name, "state_init");
}

static void add_frame(const Measuring *m, Str name, int64_t bytes, Frames *frames)
{
    uint32_t function = map_get(&m->function, name), entry = map_get(&m->entry, name);
    if (function != MAP_NONE)
        frames->function[function] = most(frames->function[function], 0) + bytes;
    else if (entry != MAP_NONE)
        frames->entry[entry] += bytes;
    else if (!is_above(m, name))
        frames->others += bytes;
}

/* Lines such as `digits.c:99:13:conv2d	392	static`.  False after an error. */
static bool read_frames(const Measuring *m, const char *suffix, Frames *frames)
{
    Cli *cli = m->cli;
    Str text;
    *frames = (Frames){ARENA_ARRAY(&cli->arena, int64_t, m->budget->function_count + 1),
                       ARENA_ARRAY(&cli->arena, int64_t, m->budget->entry_count), 0};
    for (uint32_t f = 0; f < m->budget->function_count; f++)
        frames->function[f] = BUDGET_UNKNOWN;
    Str path = folder_file(cli, &m->folder, file_name(m, suffix));
    if (!file_exists(path))
        return cli_environment(STR_FMT " has told no stack usage: it must know -fstack-usage, as gcc and clang do",
                               STR_ARG(args_value(cli, "cc"))),
               false;
    if (!file_read(&cli->arena, &cli->diag, path, &text))
        return false;
    while (text.len) {
        Str line = cut_at(&text, "\n"), place = cut_at(&line, "\t");
        int64_t bytes = number_of(cut_at(&line, "\t"));
        if (bytes >= 0)
            add_frame(m, function_of(place), bytes, frames);
    }
    return true;
}

/* An entry, the kernel with the largest frame, and helpers. */
static void set_stacks(const Measuring *m, const Frames *frames)
{
    Budget *b = m->budget;
    for (uint32_t e = 0; e < b->entry_count; e++)
        b->entry[e].stack = 0;
    for (uint32_t i = 0; i < b->layer_count; i++)
        for (uint32_t f = 0; f < b->layer[i].function_count; f++) {
            BudgetEntry *entry = &b->entry[b->layer[i].entry];
            entry->stack = most(entry->stack, frames->function[b->layer[i].function[f]]);
        }
    for (uint32_t e = 0; e < b->entry_count; e++)
        b->entry[e].stack += frames->entry[e] + frames->others;
}

/* Code */

static int run_size(const Measuring *m, const char *format, const char *object, Text *output)
{
    const char *const arguments[] = {format, file_name(m, object).ptr, NULL};
    return emit_tool(m->cli, &m->folder, "size", arguments, output);
}

/* The line below the head `text data bss ...`. */
static int read_sums(const Measuring *m)
{
    Budget *b = m->budget;
    Text output = {0};
    int status = run_size(m, "-B", ".o", &output);
    Str rest = text_view(&output);
    if (status == STATUS_OK) {
        cut_at(&rest, "\n");
        b->text = number_of(next_word(&rest));
        b->data = number_of(next_word(&rest));
        b->zero = number_of(next_word(&rest));
        if (b->text < 0 || b->data < 0 || b->zero < 0)
            status = cli_environment("what size prints cannot be read:\n" STR_FMT, STR_ARG(text_view(&output)));
        else if (program_weights_form(b->program) == WEIGHTS_C)
            b->text -= program_weights_stored(b->program);
    }
    text_free(&output);
    return status;
}

/* Of which function a section is: `conv2d` of .text.conv2d, .text.unlikely.conv2d and .rodata.conv2d.cst4. */
static uint32_t function_of_section(const Measuring *m, Str section)
{
    uint32_t found = MAP_NONE;
    Str first = cut_at(&section, "."), kind = cut_at(&section, ".");
    if (first.len || (!str_is(kind, "text") && !str_is(kind, "rodata")))
        return MAP_NONE;
    for (int skipped = 0; skipped < 2 && found == MAP_NONE; skipped++)
        found = map_get(&m->function, cut_at(&section, "."));
    return found;
}

/* Lines such as `.text.conv2d   21844   0`. */
static int read_sections(const Measuring *m)
{
    Text output = {0};
    int status = run_size(m, "-A", APART ".o", &output);
    Str rest = text_view(&output);
    while (status == STATUS_OK && rest.len) {
        Str line = cut_at(&rest, "\n"), section = next_word(&line);
        int64_t bytes = number_of(next_word(&line));
        uint32_t function = bytes < 0 ? MAP_NONE : function_of_section(m, section);
        if (function != MAP_NONE)
            m->budget->function[function].code = most(m->budget->function[function].code, 0) + bytes;
    }
    text_free(&output);
    return status;
}

/* Both */

static bool write(const Measuring *m, Str name, const Text *text)
{
    return file_write(&m->cli->diag, folder_file(m->cli, &m->folder, name), text->ptr, text->len);
}

/* Emitted C refuses to be compiled for the other byte order; here it follows the compiler. */
static ByteOrder byte_order_of(const Measuring *m)
{
    Text probe = {0};
    text_printf(&probe, "#if __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__\n#error little\n#endif\n");
    bool big = write(m, STR("big.h"), &probe) && emit_accepts(m->cli, &m->folder, "-include big.h");
    text_free(&probe);
    return big ? BYTES_BIG : BYTES_LITTLE;
}

static bool write_sources(const Measuring *m)
{
    Program program = *m->budget->program;
    Text header = {0}, source = {0};
    program.options.byte_order = byte_order_of(m);
    emit_header(&program, &header);
    emit_source(&program, &source);
    bool good = write(m, file_name(m, ".h"), &header) && write(m, file_name(m, ".c"), &source);
    text_free(&header);
    text_free(&source);
    return good;
}

static int measure_sums(const Measuring *m)
{
    Frames frames;
    int status = emit_object(m->cli, m->budget->program, &m->folder, "-fstack-usage", ".o");
    if (status != STATUS_OK)
        return status;
    if (!read_frames(m, ".su", &frames))
        return STATUS_ENVIRONMENT;
    set_stacks(m, &frames);
    return read_sums(m);
}

/* What makes a compiler inline nothing but what says `inline`, which kernels do not: clang's word for it, and gcc's. */
static const char *flags_apart(const Measuring *m)
{
    bool clang = emit_accepts(m->cli, &m->folder, "-finline-hint-functions");
    return clang ? "-fstack-usage -ffunction-sections -finline-hint-functions"
                 : "-fstack-usage -ffunction-sections -fno-inline-functions-called-once -fno-inline-small-functions "
                   "-fno-inline-functions -fno-partial-inlining";
}

static int measure_functions(const Measuring *m)
{
    Frames frames;
    cli_step(m->cli, "compiling C, each kernel apart");
    int status = emit_object(m->cli, m->budget->program, &m->folder, flags_apart(m), APART ".o");
    if (status != STATUS_OK)
        return status;
    if (!read_frames(m, APART ".su", &frames))
        return STATUS_ENVIRONMENT;
    for (uint32_t f = 0; f < m->budget->function_count; f++)
        m->budget->function[f].stack = frames.function[f];
    return read_sections(m);
}

static Measuring measuring(Cli *cli, Budget *b)
{
    Measuring m = {.cli = cli, .budget = b, .function = {.arena = &cli->arena}, .entry = {.arena = &cli->arena}};
    for (uint32_t f = 0; f < b->function_count; f++)
        map_add(&m.function, b->function[f].name, f);
    for (uint32_t e = 0; e < b->entry_count; e++)
        map_add(&m.entry, b->entry[e].function, e);
    return m;
}

int budget_measure(Cli *cli, Budget *b)
{
    Measuring m = measuring(cli, b);
    int status;

    if (!folder_open(cli, (Str){NULL, 0}, &m.folder))
        return STATUS_ENVIRONMENT;
    cli_step(cli, "compiling C");
    status = write_sources(&m) ? measure_sums(&m) : STATUS_ENVIRONMENT;
    if (status == STATUS_OK)
        status = measure_functions(&m);
    folder_remove(&m.folder);
    if (status == STATUS_OK) {
        b->compiler = str_format(&cli->arena, STR_FMT STR_FMT, STR_ARG(args_value(cli, "cc")),
                                 STR_ARG(emit_recommended(cli, b->program)));
        budget_settle(b);
    }
    return status;
}

/* Limits */

static void complain(Cli *cli, Str path, const char *memory, int64_t bytes, int64_t limit, Str blame)
{
    if (limit && bytes > limit)
        diag_file_error(&cli->diag, path,
                        "%s: %" PRId64 " bytes are needed and %" PRId64 " are there, %" PRId64 " too few%s" STR_FMT,
                        memory, bytes, limit, bytes - limit, blame.len ? "; " : "", STR_ARG(blame));
}

static Str blame_of(Cli *cli, const BudgetLayer *layer, const char *kept, int64_t bytes, const char *measured,
                    int64_t more)
{
    if (!layer)
        return (Str){NULL, 0};
    Str name = plan_printable(&cli->arena, layer->name);
    Str blame =
        str_format(&cli->arena, "the layer " STR_FMT " takes most: %" PRId64 " of %s", STR_ARG(name), bytes, kept);
    return more < 0 ? blame : str_format(&cli->arena, STR_FMT ", %" PRId64 " of %s", STR_ARG(blame), more, measured);
}

/* What the caller brings may be more than any layer needs. */
static Str ram_blame(Cli *cli, const Budget *b)
{
    const BudgetLayer *layer = budget_ram_blame(b);
    int64_t of_layer = layer ? layer->arena + most(layer->stack, 0) : 0;
    if (b->widest->inputs + b->widest->outputs <= of_layer)
        return blame_of(cli, layer, "arena", layer ? layer->arena : 0, "stack", layer ? layer->stack : 0);
    return str_format(&cli->arena, "the caller's arrays take most: %" PRId64 " of inputs, %" PRId64 " of outputs",
                      b->widest->inputs, b->widest->outputs);
}

void budget_check(Cli *cli, Str path, const Budget *b)
{
    const BudgetLayer *flash = budget_flash_blame(b);
    complain(cli, path, "RAM", budget_ram(b), b->ram_limit, ram_blame(cli, b));
    complain(cli, path, "flash", budget_flash(b), b->flash_limit,
             blame_of(cli, flash, "weights", flash ? flash->weights : 0, "code", flash ? flash->code : 0));
}
