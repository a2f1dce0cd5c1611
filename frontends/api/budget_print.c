/* A budget as a table, in Markdown, as a page and as JSON.  The first three print one grid of cells and the same lines
 * below it. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "api/budget.h"
#include "codegen/target.h"
#include "plan/report.h"

#define NEEDS "needs --cc"

/* Cells */

enum {
    COLUMN_ENTRY,
    COLUMN_LAYER,
    COLUMN_KERNELS,
    COLUMN_MACS,
    COLUMN_WEIGHTS,
    COLUMN_ARENA,
    COLUMN_INPUTS,
    COLUMN_OUTPUTS,
    COLUMN_STACK,
    COLUMN_CODE,
    COLUMNS
};
#define FIRST_NUMBER COLUMN_KERNELS

typedef struct Row {
    Str cell[COLUMNS];
} Row;

typedef struct Grid {
    Arena arena;
    Row *row; /* the head, layers, the sum */
    uint32_t count;
    bool shown[COLUMNS];
} Grid;

static Str number_cell(Arena *arena, int64_t value)
{
    char digits[32];
    return value == BUDGET_UNKNOWN ? STR("-") : str_copy(arena, str_from(plan_digits(digits, value)));
}

static Str macs_cell(Arena *arena, int64_t macs, bool per_round)
{
    return str_format(arena, STR_FMT "%s", STR_ARG(number_cell(arena, macs)), per_round ? " *" : "");
}

static Row head_row(void)
{
    return (Row){{STR("entry"), STR("layer"), STR("kernels"), STR("MACs"), STR("weights"), STR("arena"), STR("inputs"),
                  STR("outputs"), STR("stack"), STR("code")}};
}

static Row layer_row(Arena *arena, const Budget *b, const BudgetLayer *layer)
{
    return (Row){{plan_printable(arena, b->entry[layer->entry].name), plan_printable(arena, layer->name),
                  number_cell(arena, layer->kernels), macs_cell(arena, layer->macs, layer->per_round),
                  number_cell(arena, layer->weights), number_cell(arena, layer->arena),
                  number_cell(arena, layer->inputs), number_cell(arena, layer->outputs),
                  number_cell(arena, layer->stack), number_cell(arena, layer->code)}};
}

static Row sum_row(Arena *arena, const Budget *b)
{
    int64_t kernels = 0, macs = 0;
    bool per_round = false;
    for (uint32_t i = 0; i < b->layer_count; i++)
        kernels += b->layer[i].kernels;
    for (uint32_t e = 0; e < b->entry_count; e++) {
        macs = macs > INT64_MAX - b->entry[e].macs ? INT64_MAX : macs + b->entry[e].macs;
        per_round |= b->entry[e].per_round;
    }
    return (Row){{STR("in all"), b->entry_count > 1 ? STR("") : STR("in all"), number_cell(arena, kernels),
                  macs_cell(arena, macs, per_round), number_cell(arena, program_weights_stored(b->program)),
                  number_cell(arena, b->program->arena_bytes), number_cell(arena, b->widest->inputs),
                  number_cell(arena, b->widest->outputs), number_cell(arena, budget_stack(b)),
                  number_cell(arena, b->text + b->data)}};
}

static Grid grid_of(const Budget *b)
{
    Grid g = {.count = b->layer_count + 2};
    g.row = ARENA_ARRAY(&g.arena, Row, g.count);
    g.row[0] = head_row();
    for (uint32_t i = 0; i < b->layer_count; i++)
        g.row[i + 1] = layer_row(&g.arena, b, &b->layer[i]);
    g.row[g.count - 1] = sum_row(&g.arena, b);
    for (int c = 0; c < COLUMNS; c++)
        g.shown[c] = c == COLUMN_ENTRY ? b->entry_count > 1 : c < COLUMN_STACK || b->compiler.len;
    return g;
}

/* Lines below: what it takes of each memory, of what, and what that means for a limit. */

static Str verdict(Arena *arena, int64_t bytes, int64_t limit, bool measured, const char *unknown)
{
    char there[32], rest[32];
    if (!limit)
        return STR("");
    plan_digits(there, limit);
    if (bytes > limit)
        return str_format(arena, "of %s B: %s B too few", there, plan_digits(rest, bytes - limit));
    return measured ? str_format(arena, "of %s B: fits, %s B left", there, plan_digits(rest, limit - bytes))
                    : str_format(arena, "of %s B: fits without %s, %s B left", there, unknown,
                                 plan_digits(rest, limit - bytes));
}

static Str ram_parts(Arena *arena, const Budget *b)
{
    char a[5][32];
    const int64_t *kept = b->program->kept.bytes;
    Text text = {0};
    text_printf(&text, "arena %s", plan_digits(a[0], b->program->arena_bytes));
    if (kept[BLOCK_PARAMS])
        text_printf(&text, " + params %s", plan_digits(a[1], kept[BLOCK_PARAMS]));
    text_printf(&text, " + state %s + inputs %s + outputs %s", plan_digits(a[1], kept[BLOCK_STATE]),
                plan_digits(a[2], b->widest->inputs), plan_digits(a[3], b->widest->outputs));
    if (b->compiler.len)
        text_printf(&text, " + stack %s", plan_digits(a[4], budget_stack(b)));
    else
        text_printf(&text, " + stack (" NEEDS ")");
    if (b->compiler.len && b->data + b->zero)
        text_printf(&text, " + variables %s", plan_digits(a[4], b->data + b->zero));
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

static Str flash_parts(Arena *arena, const Budget *b)
{
    char weights[32], code[32];
    plan_digits(weights, program_weights_stored(b->program));
    return b->compiler.len ? str_format(arena, "weights %s + code %s", weights, plan_digits(code, b->text + b->data))
                           : str_format(arena, "weights %s + code (" NEEDS ")", weights);
}

typedef struct Line { /* of one memory */
    const char *name;
    int64_t bytes;
    Str parts, verdict;
} Line;

static void lines_of(Arena *arena, const Budget *b, Line line[2])
{
    int64_t ram = budget_ram(b), flash = budget_flash(b);
    line[0] =
        (Line){"RAM", ram, ram_parts(arena, b), verdict(arena, ram, b->ram_limit, b->compiler.len > 0, "the stack")};
    line[1] = (Line){"flash", flash, flash_parts(arena, b),
                     verdict(arena, flash, b->flash_limit, b->compiler.len > 0, "code")};
}

/* What a reader of the numbers must know. */
static Str remark_of(Arena *arena, const Budget *b)
{
    Text text = {0};
    bool per_round = false;
    for (uint32_t e = 0; e < b->entry_count; e++)
        per_round |= b->entry[e].per_round;
    if (per_round)
        text_printf(&text, "* is of one round of a loop that runs as often as its condition holds. ");
    text_printf(&text, "For %s. ", b->program->options.target->name);
    if (b->compiler.len)
        text_printf(&text,
                    "Stack and code as " STR_FMT
                    " makes them: in all of the object, of layers with each kernel as a function of its own. "
                    "Functions of the C library are not in it.",
                    STR_ARG(plan_printable(arena, b->compiler)));
    else
        text_printf(&text, "Stack and code are measured with a C compiler: " NEEDS ".");
    Str copy = str_copy(arena, text_view(&text));
    text_free(&text);
    return copy;
}

/* Table */

#define LEAST_NAME 8
#define PROSE      80 /* columns of text where nothing says how many there are */

/* False where the line has no room for the numbers of a row. */
static bool measure_columns(const Grid *g, uint32_t columns, int *width)
{
    int sum = 0;
    for (int c = 0; c < COLUMNS; c++) {
        for (uint32_t r = 0; r < g->count; r++)
            if (plan_columns(g->row[r].cell[c]) > width[c])
                width[c] = plan_columns(g->row[r].cell[c]);
        sum += g->shown[c] ? width[c] + 2 : 0;
    }
    int over = sum - 2 - (int)columns;
    if (columns && over > 0 && width[COLUMN_LAYER] > LEAST_NAME)
        width[COLUMN_LAYER] = width[COLUMN_LAYER] - over < LEAST_NAME ? LEAST_NAME : width[COLUMN_LAYER] - over;
    for (int c = sum = 0; c < COLUMNS; c++)
        sum += g->shown[c] ? width[c] + 2 : 0;
    return !columns || sum - 2 <= (int)columns;
}

/* The layer, and below it its numbers, of which the widest takes `width` columns. */
static void put_block(Text *out, Grid *g, const Row *row, int width, int columns)
{
    const char *label[COLUMNS];
    Str value[COLUMNS], name = row->cell[COLUMN_LAYER];
    uint32_t count = 0;
    if (g->shown[COLUMN_ENTRY])
        name = str_format(&g->arena, STR_FMT " " STR_FMT, STR_ARG(row->cell[COLUMN_ENTRY]), STR_ARG(name));
    plan_put_elided(out, name, plan_columns(name) < columns ? plan_columns(name) : columns);
    text_char(out, '\n');
    for (int c = FIRST_NUMBER; c < COLUMNS; c++)
        if (g->shown[c]) {
            label[count] = g->row[0].cell[c].ptr;
            value[count++] = row->cell[c];
        }
    plan_put_pairs(out, label, value, count, width, columns);
}

static void put_row(Text *out, const Grid *g, const Row *row, const int *width)
{
    bool first = true;
    for (int c = 0; c < COLUMNS; c++) {
        if (!g->shown[c])
            continue;
        text_printf(out, first ? "" : "  ");
        first = false;
        if (c < FIRST_NUMBER) {
            plan_put_elided(out, row->cell[c], width[c]);
            continue;
        }
        text_fill(out, ' ', (size_t)(width[c] - plan_columns(row->cell[c])));
        text_str(out, row->cell[c]);
    }
    text_char(out, '\n');
}

/* What stands below the table. */
static void put_lines(Text *out, Arena *arena, const Budget *b)
{
    char digits[32], bytes[32];
    Line line[2];
    lines_of(arena, b, line);
    text_char(out, '\n');
    for (int i = 0; i < 2; i++) {
        text_printf(out, "%-6s%15s B  %10s  " STR_FMT "\n", line[i].name, plan_digits(digits, line[i].bytes),
                    plan_bytes(bytes, line[i].bytes), STR_ARG(line[i].parts));
        if (line[i].verdict.len)
            text_printf(out, "%37s" STR_FMT "\n", "", STR_ARG(line[i].verdict));
    }
    text_char(out, '\n');
}

void budget_print_table(Text *out, const Budget *b, uint32_t columns)
{
    int width[COLUMNS] = {0};
    Grid g = grid_of(b);
    Text lines = {0};

    bool table = measure_columns(&g, columns, width);
    int widest = 0;
    for (int c = FIRST_NUMBER; c < COLUMNS; c++)
        widest = width[c] > widest ? width[c] : widest;
    for (uint32_t r = !table; r < g.count; r++)
        if (table)
            put_row(out, &g, &g.row[r], width);
        else
            put_block(out, &g, &g.row[r], widest, (int)columns);
    put_lines(&lines, &g.arena, b);
    plan_put_folded(out, text_view(&lines), columns ? (int)columns : INT_MAX, columns);
    text_wrap(out, remark_of(&g.arena, b), 0, 0, columns ? columns : PROSE);
    text_char(out, '\n');
    text_free(&lines);
    arena_free(&g.arena);
}

/* Markdown */

/* A bar would end the cell, and other characters could be marks. */
static void put_markdown(Text *out, Str s)
{
    for (uint32_t i = 0; i < s.len; i++) {
        if (strchr("\\|*_`<[", s.ptr[i]))
            text_char(out, '\\');
        text_char(out, s.ptr[i]);
    }
}

static void put_markdown_row(Text *out, const Grid *g, const Row *row)
{
    for (int c = 0; c < COLUMNS; c++)
        if (g->shown[c]) {
            text_printf(out, "| ");
            put_markdown(out, row->cell[c]);
            text_char(out, ' ');
        }
    text_printf(out, "|\n");
}

void budget_print_markdown(Text *out, const Budget *b)
{
    char digits[32];
    Grid g = grid_of(b);
    Line line[2];

    put_markdown_row(out, &g, &g.row[0]);
    for (int c = 0; c < COLUMNS; c++)
        text_printf(out, !g.shown[c] ? "" : c < FIRST_NUMBER ? "|---" : "|---:");
    text_printf(out, "|\n");
    for (uint32_t r = 1; r < g.count; r++)
        put_markdown_row(out, &g, &g.row[r]);
    lines_of(&g.arena, b, line);
    text_char(out, '\n');
    for (int i = 0; i < 2; i++)
        text_printf(out, "- **%s** %s B: " STR_FMT "%s" STR_FMT "\n", line[i].name, plan_digits(digits, line[i].bytes),
                    STR_ARG(line[i].parts), line[i].verdict.len ? "; " : "", STR_ARG(line[i].verdict));
    text_char(out, '\n');
    put_markdown(out, remark_of(&g.arena, b));
    text_char(out, '\n');
    arena_free(&g.arena);
}

/* Page */

static void put_html_row(Text *out, const Grid *g, const Row *row, const char *tag)
{
    text_printf(out, "<tr>");
    for (int c = 0; c < COLUMNS; c++)
        if (g->shown[c]) {
            text_printf(out, "<%s>", tag);
            plan_escape_xml(out, row->cell[c]);
            text_printf(out, "</%s>", tag);
        }
    text_printf(out, "</tr>\n");
}

static void put_html_line(Text *out, const Line *line)
{
    char digits[32];
    text_printf(out, "<p><b>%s</b> %s B: ", line->name, plan_digits(digits, line->bytes));
    plan_escape_xml(out, line->parts);
    text_printf(out, "<br>" STR_FMT "</p>\n", STR_ARG(line->verdict));
}

static void put_html_head(Text *out, Str title, int names)
{
    text_printf(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
    plan_escape_xml(out, title);
    text_printf(out,
                ": budget</title>\n<style>\n"
                ":root { color-scheme: light dark; font: 15px system-ui, sans-serif }\n"
                "table { border-collapse: collapse; font-variant-numeric: tabular-nums }\n"
                "th, td { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #8884 }\n"
                "th:nth-child(-n+%d), td:nth-child(-n+%d) { text-align: left }\n"
                "tr:last-child { font-weight: bold }\n"
                "</style>\n</head>\n<body>\n<h1>",
                names, names);
    plan_escape_xml(out, title);
    text_printf(out, "</h1>\n<table>\n");
}

void budget_print_html(Text *out, const Budget *b)
{
    Grid g = grid_of(b);
    Line line[2];

    put_html_head(out, b->program->options.name, b->entry_count > 1 ? 2 : 1);
    put_html_row(out, &g, &g.row[0], "th");
    for (uint32_t r = 1; r < g.count; r++)
        put_html_row(out, &g, &g.row[r], "td");
    text_printf(out, "</table>\n");
    lines_of(&g.arena, b, line);
    put_html_line(out, &line[0]);
    put_html_line(out, &line[1]);
    text_printf(out, "<p>");
    plan_escape_xml(out, remark_of(&g.arena, b));
    text_printf(out, "</p>\n</body>\n</html>\n");
    arena_free(&g.arena);
}

/* JSON */

static void put_number(Text *out, const char *key, int64_t value)
{
    if (value == BUDGET_UNKNOWN)
        text_printf(out, ", \"%s\": null", key);
    else
        text_printf(out, ", \"%s\": %" PRId64, key, value);
}

static void put_limit(Text *out, int64_t bytes, int64_t limit, bool measured)
{
    put_number(out, "limit", limit ? limit : BUDGET_UNKNOWN);
    bool fits = limit && bytes <= limit;
    text_printf(out, ", \"fits\": %s", !limit || (fits && !measured) ? "null" : fits ? "true" : "false");
}

static void put_memories(Text *out, const Budget *b)
{
    bool measured = b->compiler.len > 0;
    text_printf(out, "  \"ram\": {\"bytes\": %" PRId64, budget_ram(b));
    put_number(out, "arena", b->program->arena_bytes);
    put_number(out, "params", b->program->kept.bytes[BLOCK_PARAMS]);
    put_number(out, "state", b->program->kept.bytes[BLOCK_STATE]);
    put_number(out, "inputs", b->widest->inputs);
    put_number(out, "outputs", b->widest->outputs);
    put_number(out, "stack", budget_stack(b));
    put_number(out, "variables", measured ? b->data + b->zero : BUDGET_UNKNOWN);
    put_limit(out, budget_ram(b), b->ram_limit, measured);
    text_printf(out, "},\n  \"flash\": {\"bytes\": %" PRId64, budget_flash(b));
    put_number(out, "weights", program_weights_stored(b->program));
    put_number(out, "code", measured ? b->text + b->data : BUDGET_UNKNOWN);
    put_limit(out, budget_flash(b), b->flash_limit, measured);
    text_printf(out, "},\n");
}

static void put_entry(Text *out, const BudgetEntry *entry)
{
    text_printf(out, "{\"name\": ");
    plan_json_string(out, entry->name);
    put_number(out, "macs", entry->macs);
    text_printf(out, ", \"per_round\": %s", entry->per_round ? "true" : "false");
    put_number(out, "arena", entry->arena);
    put_number(out, "inputs", entry->inputs);
    put_number(out, "outputs", entry->outputs);
    put_number(out, "stack", entry->stack);
    text_char(out, '}');
}

static void put_layer(Text *out, const Budget *b, const BudgetLayer *layer)
{
    text_printf(out, "{\"name\": ");
    plan_json_string(out, layer->name);
    text_printf(out, ", \"entry\": ");
    plan_json_string(out, b->entry[layer->entry].name);
    put_number(out, "kernels", layer->kernels);
    put_number(out, "macs", layer->macs);
    text_printf(out, ", \"per_round\": %s", layer->per_round ? "true" : "false");
    put_number(out, "weights", layer->weights);
    put_number(out, "arena", layer->arena);
    put_number(out, "inputs", layer->inputs);
    put_number(out, "outputs", layer->outputs);
    put_number(out, "stack", layer->stack);
    put_number(out, "code", layer->code);
    text_char(out, '}');
}

void budget_print_json(Text *out, const Budget *b)
{
    text_printf(out, "{\n  \"nnc_budget\": 1,\n  \"title\": ");
    plan_json_string(out, b->program->options.name);
    text_printf(out, ",\n  \"target\": \"%s\",\n  \"compiler\": ", b->program->options.target->name);
    if (b->compiler.len)
        plan_json_string(out, b->compiler);
    else
        text_printf(out, "null");
    text_printf(out, ",\n");
    put_memories(out, b);
    text_printf(out, "  \"entries\": [");
    for (uint32_t e = 0; e < b->entry_count; e++) {
        text_printf(out, e ? ",\n    " : "\n    ");
        put_entry(out, &b->entry[e]);
    }
    text_printf(out, "\n  ],\n  \"layers\": [");
    for (uint32_t i = 0; i < b->layer_count; i++) {
        text_printf(out, i ? ",\n    " : "\n    ");
        put_layer(out, b, &b->layer[i]);
    }
    text_printf(out, "\n  ]\n}\n");
}
