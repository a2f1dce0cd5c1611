/* A model's names in C: what emitted sources cannot call so, and what they call it instead. */
#include "c/source.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"

/* Keywords, macros of the headers in small letters, those of a program that reads NAME.h too (I is of complex.h), and
 * what emitted functions say.  Each between two blanks. */
static const char words[] =
    " auto break case char const continue default do double else enum extern float for goto if inline int long"
    " register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
    " alignas alignof and and_eq asm bitand bitor bool catch class co_await co_return co_yield compl concept const_cast"
    " consteval constexpr constinit contract_assert decltype delete dynamic_cast explicit export false friend mutable"
    " namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires"
    " static_assert static_cast template this thread_local throw true try typeid typename typeof typeof_unqual using"
    " virtual xor xor_eq"
    " I complex imaginary noreturn linux unix i386 alloca assert assert_perror be16toh be32toh be64toh le16toh le32toh "
    "le64toh htobe16 htobe32 "
    "htobe64"
    " htole16 htole32 htole64 fpclassify iscanonical iseqsig isfinite isgreater isgreaterequal isinf isless islessequal"
    " islessgreater isnan isnormal issignaling issubnormal isunordered iszero signbit math_errhandling offsetof stderr"
    " stdin stdout strdupa strndupa toascii isascii L_ctermid L_cuserid L_tmpnam P_tmpdir"
    " blockDim blockIdx gridDim threadIdx warpSize memcpy memset a w arena weights stream run ";
static const char *const prefixes[] = {"__", "_mm", "M_", "cuda", "nnc_", "va_"}; /* of headers, compilers and ours */
static const char *const suffixes[] = {"_t", "_l"};                               /* types; isalpha_l */
static const char functions[] =
    " acos asin atan ceil cos cosh erf exp expm1 fabs floor fmax fmin fmod isnan log log1p memcpy memset nearbyint"
    " pow rint round sin sinh sqrt tan tanh trunc ";

static bool is_word_of(const char *list, Str name)
{
    for (const char *at = list; (at = strchr(at, ' ')) && at[1]; at++)
        if (name.len && at[1] == *name.ptr && strncmp(at + 1, name.ptr, name.len) == 0 && at[1 + name.len] == ' ')
            return true;
    return false;
}

/* _Bool, _MM_HINT_T0. */
static bool is_reserved(Str name)
{
    return name.len > 1 && name.ptr[0] == '_' && isupper((unsigned char)name.ptr[1]);
}

/* RAND_MAX: headers have more of these than anyone lists.  A letter alone, such as K, is none of them. */
static bool is_in_capitals(Str name)
{
    uint32_t letters = 0;
    for (uint32_t i = 0; i < name.len; i++) {
        if (islower((unsigned char)name.ptr[i]))
            return false;
        letters += isupper((unsigned char)name.ptr[i]) != 0;
    }
    return letters > 1;
}

bool source_name_is_taken(Str name)
{
    for (uint32_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (name.len >= strlen(prefixes[i]) && memcmp(name.ptr, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (uint32_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (name.len >= strlen(suffixes[i]) &&
            memcmp(name.ptr + name.len - strlen(suffixes[i]), suffixes[i], strlen(suffixes[i])) == 0)
            return true;
    return is_reserved(name) || is_in_capitals(name) || is_word_of(words, name);
}

bool source_name_is_function(Str name)
{
    bool single = name.len > 1 && name.ptr[name.len - 1] == 'f'; /* expf */
    return is_word_of(functions, name) || (single && is_word_of(functions, (Str){name.ptr, name.len - 1}));
}

const char *source_upper(Arena *arena, Str name)
{
    Str copy = str_copy(arena, name);
    for (uint32_t i = 0; i < copy.len; i++)
        ((char *)(uintptr_t)copy.ptr)[i] = (char)toupper((unsigned char)copy.ptr[i]);
    return copy.ptr;
}

#define LONGEST 100 /* of a name in C; what is longer ends in a hash of the whole */

static void cut(Text *text, Str name)
{
    if (text->len <= LONGEST)
        return;
    text->len = LONGEST;
    text_printf(text, "_%08x", (unsigned)str_hash(name));
}

Str source_identifier(Arena *arena, Str name)
{
    Text text = {0};
    if (!name.len || isdigit((unsigned char)name.ptr[0]))
        text_char(&text, '_');
    for (uint32_t i = 0; i < name.len; i++)
        text_char(&text, isalnum((unsigned char)name.ptr[i]) && !(name.ptr[i] & 0x80) ? name.ptr[i] : '_');
    cut(&text, name);
    if (source_name_is_taken(text_view(&text)))
        text_char(&text, '_');
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

Str source_comment(Arena *arena, Str text)
{
    Text out = {0};
    for (uint32_t length; text.len; text.ptr += length, text.len -= length) {
        Str shown = str_shows(text, &length) ? (Str){text.ptr, length} : STR("?");
        char c = *shown.ptr, last = out.len ? out.ptr[out.len - 1] : 0;
        bool end = (c == '/' && last == '*') || (c == '*' && last == '/'), trigraph = c == '?' && last == '?';
        if (end || trigraph)
            text_char(&out, ' ');
        text_str(&out, shown);
    }
    Str copy = str_copy(arena, text_view(&out));
    text_free(&out);
    return copy;
}

static void put_octal(Text *out, Str bytes)
{
    for (uint32_t i = 0; i < bytes.len; i++)
        text_printf(out, "\\%03o", (unsigned char)bytes.ptr[i]);
}

Str source_string(Arena *arena, Str text)
{
    Text out = {0};
    for (uint32_t length; text.len; text.ptr += length, text.len -= length) {
        char c = *text.ptr;
        if (!str_shows(text, &length))
            put_octal(&out, (Str){text.ptr, length});
        else if (c == '"' || c == '\\' || c == '?') /* ??/ is a trigraph */
            text_printf(&out, "\\%c", c);
        else
            text_put(&out, text.ptr, length);
    }
    Str copy = str_copy(arena, text_view(&out));
    text_free(&out);
    return copy;
}

static Str port_name(const Graph *graph, uint32_t port)
{
    return port < graph->input_count ? graph->value[graph->input[port]].name
                                     : graph->output[port - graph->input_count].name;
}

void source_take_weights(const Program *program, Arena *arena, Map *taken)
{
    if (program_weights_form(program) == WEIGHTS_C)
        for (uint32_t w = 0; w < program->weight_count; w++)
            map_add(taken, source_weight_name(program, arena, w), 0);
    else if (program_weights_form(program) == WEIGHTS_BLOB)
        map_add(taken, str_format(arena, STR_FMT "_weights", STR_ARG(program_common_name(program))), 0);
}

void source_take_kept(const Program *program, Map *taken)
{
    static const char *const shared[] = {"team", "call", "part", "thread", "nnc_deal"};
    for (uint32_t i = 0; program_shares(program) && i < sizeof shared / sizeof *shared; i++)
        map_add(taken, str_from(shared[i]), 0);
    for (KeptBlock block = 0; block < BLOCK_COUNT; block++)
        if (program->kept.bytes[block]) {
            map_add(taken, str_from(source_block_name(block)), 0);
            map_add(taken, str_from(source_block_pointer(block)), 0);
        }
}

/* Inputs and outputs are parameters of one function: where `a.b` and `a_b` meet, or an input is passed through under
 * its own name, the later one is numbered. */
const Str *source_port_names(const Entry *entry, Arena *arena)
{
    const Graph *graph = entry->graph;
    uint32_t count = graph->input_count + graph->output_count;
    Str *name = ARENA_ARRAY(arena, Str, count);
    Names names = {.taken.arena = arena};
    source_take_weights(entry->program, arena, &names.taken);
    source_take_kept(entry->program, &names.taken);
    for (uint32_t i = 0; i < count; i++)
        name[i] = names_add(&names, arena, source_identifier(arena, port_name(graph, i)), '_', i);
    return name;
}

void source_take_names(const Program *program, Arena *arena, Map *taken)
{
    static const char *const own[] = {"run", "inputs", "outputs"}, *const one[] = {"entries", "params_init",
                                                                                   "state_init", "params_slots",
                                                                                   "state_slots"};
    source_take_weights(program, arena, taken);
    source_take_kept(program, taken);
    for (uint32_t i = 0; i < sizeof one / sizeof *one; i++)
        map_add(taken, str_from(one[i]), 0);
    for (uint32_t e = 0; e < program->entry_count; e++) {
        const Entry *entry = &program->entry[e];
        Str suffix = source_entry_suffix(entry, arena);
        for (uint32_t i = 0; i < sizeof own / sizeof *own; i++)
            map_add(taken, str_format(arena, "%s" STR_FMT, own[i], STR_ARG(suffix)), 0);
        map_add(taken, source_entry_name(entry, arena), 0);
        const Str *port = source_port_names(entry, arena);
        for (uint32_t i = 0; i < entry->graph->input_count + entry->graph->output_count; i++)
            map_add(taken, port[i], 0); /* a parameter would hide the function that it names */
    }
}

Str source_safe_name(Arena *arena, Str name, bool inside)
{
    name = source_identifier(arena, name);
    bool bare = !inside || !(isdigit((unsigned char)name.ptr[name.len - 1]) || source_name_is_function(name));
    return bare ? name : str_format(arena, STR_FMT "_", STR_ARG(name));
}

Str source_weight_name(const Program *program, Arena *arena, uint32_t w)
{
    Str name = source_identifier(arena, program->weights[w].graph->value[program->weights[w].value].name);
    return str_format(arena, "w%u%s" STR_FMT, w, name.len ? "_" : "", STR_ARG(name));
}

Str source_entry_name(const Entry *entry, Arena *arena)
{
    return str_format(arena, STR_FMT "_" STR_FMT, STR_ARG(entry->program->options.name), STR_ARG(entry->name));
}

Str source_entry_suffix(const Entry *entry, Arena *arena)
{
    return entry->program->entry_count == 1 ? (Str){0} : str_format(arena, "_" STR_FMT, STR_ARG(entry->name));
}

/* The blocks that are kept */

static const struct {
    const char *name, *pointer, *macro;
    int status;
} kept_block[BLOCK_COUNT] = {
    [BLOCK_PARAMS] = {"params", "p", "PARAMS", 4},
    [BLOCK_PACKED] = {"packed", "k", "PACKED", 5},
    [BLOCK_STATE] = {"state", "s", "STATE", 3},
};

const char *source_block_name(KeptBlock block)
{
    return kept_block[block].name;
}

const char *source_block_pointer(KeptBlock block)
{
    return kept_block[block].pointer;
}

const char *source_block_bytes(const Program *program, KeptBlock block, Arena *arena)
{
    return str_format(arena, "%s_%s_BYTES", source_upper(arena, program->options.name), kept_block[block].macro).ptr;
}

int source_block_status(KeptBlock block)
{
    return kept_block[block].status;
}
