/* Calls that come again in the same order, as those of a network's layers do, are one loop, whose rounds differ in
 * where their buffers lie.  Places that are evenly apart are computed, others stand in a table of offsets:
 *
 *     static const uint32_t places[12][31] = {...};
 *     for (size_t round = 0; round < 12; round++) {
 *         const uint32_t *const place = places[round];
 *         float *const block_h = (float *)(void *)(a + place[0]);
 *         float *const block_scale = (float *)(void *)(p + 157535232 + 28351488 * round);
 *         ...
 *
 * What stands in comments is of the first round. */
#include "c/rounds.h"

#include <ctype.h>

struct UnitRounds { /* that are being printed */
    const StepList *list;
    Rounds at;
    Str round, table_name, row;
    Map declared;          /* pointers, to `name` */
    Str *name;             /* of each of them */
    Map columns;           /* offsets per round, to the column of the table */
    const int64_t **table; /* by columns */
    uint32_t names, name_capacity, width, width_capacity;
};

/* Does the argument say the same in every round?  So do places that a pointer is declared to outside the loop, or that
 * always hold the same value. */
static bool is_fixed(const UnitRun *run, const Step *step, uint32_t b, const int64_t *offset)
{
    const Rounds *rounds = &run->rounds->at;
    const KernelBuffer *buffer = unit_rounds_buffer(run, rounds, step, b, 0);
    const KernelBuffer *last = unit_rounds_buffer(run, rounds, step, b, rounds->count - 1);
    bool stays = unit_rounds_are_even(offset, rounds->count) && offset[0] == offset[1];
    return !unit_run_place(run, buffer).block.len ||
           (stays && (unit_run_value(run, buffer) == unit_run_value(run, last) || unit_run_sees(run, buffer)));
}

/* ` + 157535232 + 28351488 * round` or ` + place[7]` */
static Str offset_text(const UnitRun *run, const int64_t *offset)
{
    UnitRounds *rounds = run->rounds;
    Arena *arena = run->unit->arena;
    int64_t apart = offset[1] - offset[0];
    if (unit_rounds_are_even(offset, rounds->at.count)) {
        Str first = offset[0] ? str_format(arena, " + %lld", (long long)offset[0]) : (Str){0};
        if (!apart)
            return first;
        return str_format(arena, STR_FMT " %c %lld * " STR_FMT, STR_ARG(first), apart < 0 ? '-' : '+',
                          (long long)(apart < 0 ? -apart : apart), STR_ARG(rounds->round));
    }
    Str key = map_key(offset, rounds->at.count * sizeof *offset);
    if (map_add(&rounds->columns, key, rounds->width))
        ARENA_PUSH(arena, rounds->table, rounds->width, rounds->width_capacity, offset);
    return str_format(arena, " + " STR_FMT "[%u]", STR_ARG(rounds->row), map_get(&rounds->columns, key));
}

static uint32_t digits_at(Str text, uint32_t at)
{
    uint32_t count = 0;
    while (at + count < text.len && isdigit((unsigned char)text.ptr[at + count]))
        count++;
    return count;
}

/* `block_norm1_scale` of block0_norm1_scale and block11_norm1_scale: the number of the layer is left out; what differs
 * in other ways is called as in the first round. */
static Str common_title(Arena *arena, Str first, Str last)
{
    Text text = {0};
    uint32_t i = 0, k = 0;
    while (i < first.len && k < last.len) {
        uint32_t here = digits_at(first, i), there = digits_at(last, k);
        bool unnamed = here && i && first.ptr[i - 1] == 't' && (i < 2 || first.ptr[i - 2] == '_'); /* t4561 */
        bool equal = here == there && memcmp(first.ptr + i, last.ptr + k, here ? here : 1) == 0;
        if (!equal && !(here && there))
            break;
        if (equal || unnamed)
            text_put(&text, first.ptr + i, here ? here : 1);
        else if (text.len && text.ptr[text.len - 1] == '_')
            text.len--; /* of layers_0_scale */
        i += here ? here : 1;
        k += here ? there : 1;
    }
    bool whole = i == first.len && k == last.len && text.len && !isdigit((unsigned char)text.ptr[0]);
    Str title = whole ? str_copy(arena, text_view(&text)) : first;
    text_free(&text);
    return title;
}

static Str title_in(UnitRun *run, const KernelBuffer *buffer)
{
    return unit_run_title(run, buffer, unit_run_value(run, buffer));
}

/* A pointer is known by what it points to in the first round, and by where that is in all of them. */
static Str pointer_key(const UnitRun *run, const KernelBuffer *buffer, Str at)
{
    ValueId value = unit_run_value(run, buffer);
    return str_format(run->unit->arena, "%u %u %s " STR_FMT, value, value == NONE ? buffer->storage : 0,
                      print_buffer_type(buffer), STR_ARG(at));
}

Str unit_rounds_argument(UnitRun *run, const Step *step, uint32_t b)
{
    UnitRounds *rounds = run->rounds;
    Arena *arena = run->unit->arena;
    const KernelBuffer *buffer = unit_rounds_buffer(run, &rounds->at, step, b, 0);
    const int64_t *offset = unit_rounds_offsets(run, &rounds->at, step, b);
    if (is_fixed(run, step, b, offset))
        return unit_run_buffer_argument(run, buffer);
    Str at = str_format(arena, STR_FMT STR_FMT, STR_ARG(unit_run_place(run, buffer).block),
                        STR_ARG(offset_text(run, offset)));
    Str key = pointer_key(run, buffer, at);
    uint32_t known = map_get(&rounds->declared, key);
    if (known == MAP_NONE) {
        Str last = title_in(run, unit_rounds_buffer(run, &rounds->at, step, b, rounds->at.count - 1));
        Str name = unit_run_free_name(run, common_title(arena, title_in(run, buffer), last));
        known = rounds->names;
        map_put(&rounds->declared, key, known);
        ARENA_PUSH(arena, rounds->name, rounds->names, rounds->name_capacity, name);
        unit_run_declare(run, buffer, name, unit_run_untyped(run, buffer, at));
    }
    bool inside = buffer->begin && !unit_run_sees_part(run, buffer);
    return inside ? str_format(arena, STR_FMT " + %lld", STR_ARG(rounds->name[known]), (long long)buffer->begin)
                  : rounds->name[known];
}

Str unit_rounds_kernel(const UnitRun *run, const Step *step)
{
    const UnitRounds *rounds = run->rounds;
    uint32_t kernels = step[rounds->at.period].kernel - step->kernel;
    return str_format(run->unit->arena, "%u + %u * (long)" STR_FMT, step->kernel, kernels, STR_ARG(rounds->round));
}

/* Offsets of more than 32 bits are rare, and none in firmware. */
static const char *table_type(const UnitRounds *rounds)
{
    int64_t most = 0;
    for (uint32_t c = 0; c < rounds->width; c++)
        for (uint32_t r = 0; r < rounds->at.count; r++)
            most = rounds->table[c][r] > most ? rounds->table[c][r] : most;
    return most > UINT32_MAX ? "uint64_t" : "uint32_t";
}

static void print_table(UnitRun *run, const char *type)
{
    const UnitRounds *rounds = run->rounds;
    unit_run_indent(run);
    text_printf(run->out, "static const %s " STR_FMT "[%u][%u] = {\n", type, STR_ARG(rounds->table_name),
                rounds->at.count, rounds->width);
    for (uint32_t r = 0; r < rounds->at.count; r++) {
        size_t column = 4 * (size_t)(run->depth + 2);
        text_fill(run->out, ' ', column);
        text_char(run->out, '{');
        for (uint32_t c = 0; c < rounds->width; c++) {
            Str offset = str_format(run->unit->arena, "%lld%s", (long long)rounds->table[c][r],
                                    c + 1 < rounds->width ? "," : "},\n");
            if (c && column + 1 + offset.len > SOURCE_WIDTH) {
                column = 4 * (size_t)(run->depth + 2) + 1;
                text_char(run->out, '\n');
                text_fill(run->out, ' ', column);
            } else if (c) {
                text_char(run->out, ' ');
                column++;
            }
            text_str(run->out, offset);
            column += offset.len;
        }
    }
    unit_run_indent(run);
    text_printf(run->out, "};\n");
}

/* What stands before the calls of a round. */
static void print_head(UnitRun *run)
{
    const UnitRounds *rounds = run->rounds;
    const Step *step = &rounds->list->step[rounds->at.first];
    const Step *last = step + (size_t)rounds->at.period * rounds->at.count - 1;
    const Kernel *kernel = run->entry->memory.kernel;
    const char *type = table_type(rounds);
    text_char(run->out, '\n');
    unit_run_indent(run);
    text_printf(run->out, "/* @kernel(%u) to @kernel(%u) in %u rounds that differ in where their buffers lie */\n",
                kernel[step->kernel].id, kernel[last->kernel].id, rounds->at.count);
    if (rounds->width)
        print_table(run, type);
    unit_run_indent(run);
    text_printf(run->out, "for (size_t " STR_FMT " = 0; " STR_FMT " < %u; " STR_FMT "++) {\n", STR_ARG(rounds->round),
                STR_ARG(rounds->round), rounds->at.count, STR_ARG(rounds->round));
    if (!rounds->width)
        return;
    unit_run_indent(run);
    text_printf(run->out, "    const %s *const " STR_FMT " = " STR_FMT "[" STR_FMT "];\n", type, STR_ARG(rounds->row),
                STR_ARG(rounds->table_name), STR_ARG(rounds->round));
}

/* The loop, whose calls are printed first: they make the table. */
static void print_rounds(UnitRun *run, const StepList *list, Rounds at, UnitSteps *print)
{
    Arena *arena = run->unit->arena;
    UnitRounds rounds = {.list = list, .at = at, .declared.arena = arena, .columns.arena = arena};
    Text *out = run->out, calls = {0};
    rounds.table_name = unit_run_free_name(run, STR("places"));
    rounds.row = unit_run_free_name(run, STR("place"));
    rounds.round = unit_run_free_name(run, STR("round"));
    run->rounds = &rounds;
    run->out = &calls;
    run->depth++;
    print(run, list, at.first, at.first + at.period);
    unit_run_leave_block(run);
    run->out = out;
    print_head(run);
    bool blank = calls.ptr[0] == '\n' && !rounds.width; /* between calls, and behind the table's row */
    text_put(out, calls.ptr + blank, calls.len - blank);
    text_free(&calls);
    unit_run_indent(run);
    text_printf(out, "}\n");
    run->rounds = NULL;
}

void unit_print_rounds(UnitRun *run, const StepList *list, UnitSteps *print)
{
    bool checked = run->unit->program->options.checked; /* what is dead is closed before each kernel */
    RoundsList found = checked ? (RoundsList){0} : unit_rounds_find(run, list);
    uint32_t s = 0;
    for (uint32_t i = 0; i < found.count; i++) {
        print(run, list, s, found.at[i].first);
        print_rounds(run, list, found.at[i], print);
        s = found.at[i].first + found.at[i].period * found.at[i].count;
    }
    print(run, list, s, list->count);
}
