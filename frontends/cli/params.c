/* `nnc params`: what a model wants stored, and what of it is. */
#include <inttypes.h>

#include "api/prepare.h"
#include "cli/model.h"
#include "cli/terminal.h"
#include "plan/report.h"

/* Does the model itself have the elements, as those of ONNX do? */
static bool is_own(const WantedTensor *w)
{
    return w->fit == FIT_NONE && weights_value(w)->data && !weights_value(w)->drawn;
}

/* A drawn one that its own elements stand in for would mislead. */
static Str initialiser_of(Arena *arena, const WantedTensor *w)
{
    return is_own(w) && weights_value(w)->initial != NONE ? (Str){0} : prepare_initialiser(arena, w);
}

/* `yes`, `no`, or what stands there instead. */
static Str stored_as(Arena *arena, const WantedTensor *w)
{
    static const char *const remark[] = {[FIT_NONE] = "no",
                                         [FIT_SAME] = "yes",
                                         [FIT_WIDTH] = "another width",
                                         [FIT_TRANSPOSED] = "the transpose",
                                         [FIT_PERMUTED] = "another order",
                                         [FIT_OTHER] = "does not fit"};
    if (is_own(w))
        return STR("in the model");
    if (w->fit == FIT_NONE || w->fit == FIT_SAME)
        return str_from(remark[w->fit]);
    Str stored = str_shown(arena, weights_show_stored(arena, w->stored));
    return str_format(arena, STR_FMT ": %s", STR_ARG(stored), remark[w->fit]);
}

/* Table */

enum { COLUMN_NAME, COLUMN_TYPE, COLUMN_ROLE, COLUMN_INITIAL, COLUMN_STORED, COLUMNS };

typedef struct Line {
    Str cell[COLUMNS];
} Line;

static Str type_of(Arena *arena, const WantedTensor *w)
{
    Text type = {0};
    value_print_type(&type, weights_value(w));
    Str shown = str_copy(arena, text_view(&type));
    text_free(&type);
    return shown;
}

static Line line_of(Arena *arena, const WantedTensor *w)
{
    return (Line){{str_shown(arena, w->name), type_of(arena, w), str_from(weights_role(w)), initialiser_of(arena, w),
                   stored_as(arena, w)}};
}

#define LEAST_COLUMN 8

/* Into what is known of the line's width: the widest column gives way first.  False where it is too narrow for that. */
static bool fit(int *width)
{
    int columns = (int)terminal_known_width(), sum = 2 * (COLUMNS - 1);
    for (int c = 0; c < COLUMNS; c++)
        sum += width[c];
    for (int widest = 0; columns && sum > columns; sum--) {
        for (int c = 0; c < COLUMNS; c++)
            widest = width[c] > width[widest] ? c : widest;
        if (width[widest] <= LEAST_COLUMN)
            return false;
        width[widest]--;
    }
    return true;
}

/* The name, and below it the rest. */
static void put_block(Text *out, const Line *line)
{
    const Str *cell = line->cell;
    Text block = {0};
    text_printf(&block, STR_FMT "\n  " STR_FMT " " STR_FMT "%s" STR_FMT ", stored: " STR_FMT "\n",
                STR_ARG(cell[COLUMN_NAME]), STR_ARG(cell[COLUMN_TYPE]), STR_ARG(cell[COLUMN_ROLE]),
                cell[COLUMN_INITIAL].len ? " = " : "", STR_ARG(cell[COLUMN_INITIAL]), STR_ARG(cell[COLUMN_STORED]));
    plan_put_folded(out, text_view(&block), (int)terminal_known_width(), true);
    text_free(&block);
}

static void put_line(Text *out, const Line *line, const int *width)
{
    for (int c = 0; c + 1 < COLUMNS; c++) {
        plan_put_elided(out, line->cell[c], width[c]);
        text_printf(out, "  ");
    }
    Str last = line->cell[COLUMNS - 1];
    plan_put_elided(out, last, plan_columns(last) < width[COLUMNS - 1] ? plan_columns(last) : width[COLUMNS - 1]);
    text_char(out, '\n');
}

static void put_lines(Text *out, Arena *arena, const WantedList *list)
{
    int width[COLUMNS] = {0};
    Line *line = ARENA_ARRAY(arena, Line, list->count + 1);

    line[0] = (Line){{STR("name"), STR("type"), STR("role"), STR("initialiser"), STR("stored")}};
    for (uint32_t i = 0; i < list->count; i++)
        line[i + 1] = line_of(arena, &list->at[i]);
    for (uint32_t i = 0; i <= list->count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if (plan_columns(line[i].cell[c]) > width[c])
                width[c] = plan_columns(line[i].cell[c]);
    bool table = fit(width);
    for (uint32_t i = !table; list->count && i <= list->count; i++)
        if (table)
            put_line(out, &line[i], width);
        else
            put_block(out, &line[i]);
}

static uint32_t count_stored(const WantedList *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++)
        count += list->at[i].fit == FIT_SAME;
    return count;
}

static int64_t total_bytes(const WantedList *list)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < list->count; i++)
        bytes += type_bytes(weights_value(&list->at[i])->type);
    return bytes;
}

static void put_unused(Text *out, Arena *arena, const WeightsFile *file)
{
    for (uint32_t i = 0, number = 0; i < file->stored.count; i++) {
        const StoredTensor *t = &file->stored.tensor[i];
        if (file->wanted.used[i])
            continue;
        text_printf(out, "%s  ", number++ ? "" : "\nin the file, but not in the model:\n");
        text_put_shown(out, t->name);
        text_printf(out, "  ");
        text_put_shown(out, weights_show_stored(arena, t));
        text_char(out, '\n');
    }
}

static void print_table(Text *out, Arena *arena, const Model *model)
{
    const WantedList *list = &model->weights.wanted;
    Text below = {0};
    char bytes[32];

    put_lines(out, arena, list);
    text_printf(&below, "%s%u tensor%s, %s; ", list->count ? "\n" : "", list->count, list->count == 1 ? "" : "s",
                plan_bytes(bytes, total_bytes(list)));
    if (model->weights_path.len)
        text_printf(&below, "%u stored in " STR_FMT "\n", count_stored(list), STR_ARG(model->weights_path));
    else
        text_printf(&below, "there is no weights file\n");
    put_unused(&below, arena, &model->weights);
    terminal_fold(out, text_view(&below));
    text_free(&below);
}

/* JSON */

static void put_member(Text *out, const char *name, Str text)
{
    text_printf(out, ", \"%s\": ", name);
    if (text.len)
        plan_json_string(out, text);
    else
        text_printf(out, "null");
}

static void put_shape(Text *out, const Shape *shape)
{
    text_printf(out, ", \"shape\": [");
    for (uint32_t d = 0; d < shape->rank && d < MAX_RANK; d++)
        text_printf(out, "%s%" PRId64, d ? ", " : "", shape->dim[d]);
    text_char(out, ']');
}

static void put_wanted(Text *out, Arena *arena, const WantedTensor *w)
{
    const Type *type = weights_value(w)->type;
    text_printf(out, "{\"name\": ");
    plan_json_string(out, w->name);
    put_member(out, "dtype", str_from(dtype_name(type->dtype)));
    put_shape(out, &type->shape);
    put_member(out, "role", str_from(weights_role(w)));
    put_member(out, "initialiser", initialiser_of(arena, w));
    text_printf(out, ", \"stored\": %s", w->fit == FIT_SAME ? "true" : "false");
    text_printf(out, ", \"in_model\": %s", is_own(w) ? "true" : "false");
    put_member(out, "stored_as", w->stored ? weights_show_stored(arena, w->stored) : (Str){0});
    text_char(out, '}');
}

static void put_stored(Text *out, const StoredTensor *stored)
{
    text_printf(out, "{\"name\": ");
    plan_json_string(out, stored->name);
    put_member(out, "dtype", stored->dtype_name);
    put_shape(out, &stored->shape);
    text_char(out, '}');
}

static void print_json(Text *out, Arena *arena, const Model *model)
{
    const WeightsFile *file = &model->weights;

    text_printf(out, "{\"model\": ");
    plan_json_string(out, model->path);
    put_member(out, "weights", model->weights_path);
    text_printf(out, ",\n \"tensors\": [");
    for (uint32_t i = 0; i < file->wanted.count; i++) {
        text_printf(out, i ? ",\n  " : "\n  ");
        put_wanted(out, arena, &file->wanted.at[i]);
    }
    text_printf(out, "],\n \"unused\": [");
    for (uint32_t i = 0, number = 0; i < file->stored.count; i++)
        if (!file->wanted.used[i]) {
            text_printf(out, number++ ? ",\n  " : "\n  ");
            put_stored(out, &file->stored.tensor[i]);
        }
    text_printf(out, "]}\n");
}

static int run(Cli *cli)
{
    static const char *const formats[] = {"table", "json", NULL};
    Str word = args_value(cli, "format");
    uint32_t format = 0;
    Model model;
    Text out = {0};

    if (word.ptr && !cli_choose(cli, "format", word, formats, &format))
        return STATUS_USAGE;
    int status = model_parse(cli, &model);
    if (status != STATUS_OK)
        return status;
    model.weights_path = model_weights_path(cli, &cli->arena, model.path);
    if (!weights_match(model.module, model.weights_path, &model.weights))
        return STATUS_INPUT;
    (format ? print_json : print_table)(&out, &cli->arena, &model);
    cli_step(cli, NULL);
    cli_put(&out);
    text_free(&out);
    return STATUS_OK;
}

const Verb verb_params = {
    .name = "params",
    .operands = "MODEL",
    .summary = "List the params and states of a model, and what is stored of them",
    .text =
        "Name, type, role, initialiser, and whether the weights file has it: `no`, `yes`, or what stands there "
        "instead; `in the model` where that has the elements itself, as models of ONNX do. Tensors of the file that "
        "the model does not have follow. Nothing that is missing is an error here.",
    .flag =
        (const Flag[]){
            {"format", "table|json", "How to print (default: table)"}, FLAG_DEFINE, FLAG_WEIGHTS_FROM, FLAG_END},
    .example = (const Example[]){{"nnc params digits.nnc", "beside digits.safetensors"},
                                 {"nnc params digits.nnc --weights-from trained.safetensors --format json",
                                  "for a script that converts weights"},
                                 {NULL, NULL}},
    .run = run,
};
