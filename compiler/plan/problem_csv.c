#include "plan/problem_csv.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "plan/report.h"

#define MOST_COLUMNS 256

typedef enum Column { COL_ID, COL_LOWER, COL_UPPER, COL_START, COL_END, COL_SIZE, COL_ALIGNMENT, COLUMNS } Column;

static const char *const column_name[COLUMNS] = {"id", "lower", "upper", "start", "end", "size", "alignment"};

typedef struct Reader {
    Arena *arena;
    Diag *diag;
    uint32_t source;
    Str text;
    uint32_t at;
    Str field[MOST_COLUMNS]; /* of the line just read, without quotes and spaces around */
    uint32_t begin[MOST_COLUMNS], fields, line_begin;
    int column[COLUMNS]; /* which field, or -1 */
    uint32_t header_fields;
    PlanBuffer *buffer;
    Str *id;
    uint32_t count, capacity, id_count, id_capacity;
    int64_t total; /* of sizes and alignments */
    Map seen;
} Reader;

static Place place(const Reader *r, uint32_t offset, uint32_t length)
{
    return (Place){r->source, offset, length};
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static Str trim(Str s)
{
    while (s.len && blank(s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len && blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static bool is_quote(const Reader *r, uint32_t at)
{
    return at < r->text.len && r->text.ptr[at] == '"';
}

/* Reads one quoted field ("" stands for a quote) and stops behind its closing quote. */
static bool read_quoted(Reader *r, Str *field)
{
    uint32_t open = r->at++, end = r->at, used = 0;
    while (end < r->text.len && r->text.ptr[end] != '\n' && (!is_quote(r, end) || is_quote(r, end + 1)))
        end += is_quote(r, end) ? 2 : 1;
    char *copy = arena_alloc(r->arena, end - open);
    for (; r->at < end; r->at++) {
        copy[used++] = r->text.ptr[r->at];
        r->at += is_quote(r, r->at);
    }
    *field = (Str){copy, used};
    if (!is_quote(r, end))
        return diag_error(r->diag, place(r, open, 1), "this quote is not closed on its line");
    r->at++;
    return true;
}

static bool read_field(Reader *r, Str *field)
{
    bool good = true;
    while (r->at < r->text.len && blank(r->text.ptr[r->at]))
        r->at++;
    uint32_t begin = r->at;
    bool quoted = r->at < r->text.len && r->text.ptr[r->at] == '"';
    if (quoted)
        good = read_quoted(r, field);
    uint32_t rest = r->at;
    while (r->at < r->text.len && r->text.ptr[r->at] != ',' && r->text.ptr[r->at] != '\n')
        r->at++;
    if (!quoted)
        *field = trim((Str){r->text.ptr + begin, r->at - begin});
    else if (good && trim((Str){r->text.ptr + rest, r->at - rest}).len)
        good = diag_error(r->diag, place(r, rest, r->at - rest), "text behind a closing quote");
    return good;
}

/* Reads the fields of the line at `at` and moves to the next line. */
static bool read_line(Reader *r)
{
    bool good = true;
    r->fields = 0;
    r->line_begin = r->at;
    for (;;) {
        Str field;
        uint32_t begin = r->at;
        good &= read_field(r, &field);
        if (r->fields < MOST_COLUMNS) {
            r->begin[r->fields] = begin;
            r->field[r->fields++] = field;
        } else if (good) {
            good = diag_error(r->diag, place(r, begin, 1), "more than %d columns", MOST_COLUMNS);
        }
        if (r->at >= r->text.len || r->text.ptr[r->at++] == '\n')
            return good;
    }
}

/* Moves to the next line that says something; false at the end. */
static bool next_line(Reader *r)
{
    while (r->at < r->text.len) {
        uint32_t i = r->at;
        while (i < r->text.len && blank(r->text.ptr[i]))
            i++;
        if (i < r->text.len && r->text.ptr[i] != '\n' && r->text.ptr[i] != '#')
            return true;
        while (i < r->text.len && r->text.ptr[i] != '\n')
            i++;
        r->at = i < r->text.len ? i + 1 : i;
    }
    return false;
}

static bool read_header(Reader *r)
{
    for (int c = 0; c < COLUMNS; c++)
        r->column[c] = -1;
    if (!next_line(r))
        return diag_error(r->diag, place(r, 0, 1), "the file is empty; expected a header such as id,lower,upper,size");
    if (r->text.len - r->at >= 3 && memcmp(r->text.ptr + r->at, "\xef\xbb\xbf", 3) == 0)
        r->at += 3; /* a byte order mark */
    bool good = read_line(r);
    for (uint32_t f = 0; f < r->fields; f++)
        for (int c = 0; c < COLUMNS; c++) {
            if (!str_is(r->field[f], column_name[c]))
                continue;
            if (r->column[c] >= 0)
                good = diag_error(r->diag, place(r, r->begin[f], 1), "column \"%s\" appears twice", column_name[c]);
            r->column[c] = (int)f;
        }
    r->header_fields = r->fields;
    bool half_open = r->column[COL_LOWER] >= 0 && r->column[COL_UPPER] >= 0;
    bool inclusive = r->column[COL_START] >= 0 && r->column[COL_END] >= 0;
    if (half_open == inclusive)
        good = diag_error(r->diag, place(r, r->line_begin, 1),
                          "expected the columns lower and upper (half-open) or start and end (inclusive)");
    if (r->column[COL_ID] < 0 || r->column[COL_SIZE] < 0)
        good = diag_error(r->diag, place(r, r->line_begin, 1), "there is no column \"%s\"",
                          r->column[COL_ID] < 0 ? "id" : "size");
    return good;
}

static bool read_number(Reader *r, Column column, int64_t least, int64_t most, int64_t *value)
{
    uint32_t f = (uint32_t)r->column[column];
    Str s = r->field[f];
    Place where = place(r, r->begin[f], s.len ? s.len : 1);
    uint32_t i = s.len && s.ptr[0] == '-';
    int64_t v = 0;
    if (i == s.len)
        return diag_error(r->diag, where, "%s: expected a number", column_name[column]);
    for (; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return diag_error(r->diag, where, "%s: expected a whole number", column_name[column]);
        v = v > (INT64_MAX - 9) / 10 ? INT64_MAX : v * 10 + (s.ptr[i] - '0');
    }
    *value = s.ptr[0] == '-' ? -v : v;
    if (*value < least || *value > most || v == INT64_MAX)
        return diag_error(r->diag, where, "%s: out of range, expected %" PRId64 " to %" PRId64, column_name[column],
                          least, most);
    return true;
}

static bool read_life(Reader *r, PlanBuffer *b)
{
    bool inclusive = r->column[COL_LOWER] < 0 || r->column[COL_UPPER] < 0; /* then there are start and end */
    Column from = inclusive ? COL_START : COL_LOWER, to = inclusive ? COL_END : COL_UPPER;
    bool good = read_number(r, from, -PLAN_LARGEST, PLAN_LARGEST, &b->first);
    good &= read_number(r, to, -PLAN_LARGEST, PLAN_LARGEST, &b->last);
    if (!good)
        return false;
    b->last += inclusive;
    uint32_t f = (uint32_t)r->column[to];
    if (b->last <= b->first)
        return diag_error(r->diag, place(r, r->begin[f], r->field[f].len), "the live range is empty: %s must be %s %s",
                          column_name[to], inclusive ? "at least" : "greater than", column_name[from]);
    return true;
}

/* What can be planned: the sum of all sizes, each with its alignment, is a number as well. */
static bool add_to_total(Reader *r, const PlanBuffer *b)
{
    uint32_t f = (uint32_t)r->column[COL_SIZE];
    if (b->size > PLAN_LARGEST - r->total || b->alignment > PLAN_LARGEST - r->total - b->size)
        return diag_error(r->diag, place(r, r->begin[f], r->field[f].len),
                          "size: the sizes up to here add up to more than can be planned (%" PRId64 ")", PLAN_LARGEST);
    r->total += b->size + b->alignment;
    return true;
}

static bool read_buffer(Reader *r)
{
    PlanBuffer b = {.alignment = 1, .pinned = PLAN_FREE};
    if (!read_line(r))
        return false;
    if (r->fields != r->header_fields)
        return diag_error(r->diag, place(r, r->line_begin, 1), "%u fields, but the header has %u", r->fields,
                          r->header_fields);
    bool good = read_life(r, &b);
    good &= read_number(r, COL_SIZE, 0, PLAN_LARGEST, &b.size);
    if (r->column[COL_ALIGNMENT] >= 0)
        good &= read_number(r, COL_ALIGNMENT, 1, PLAN_LARGEST, &b.alignment);
    good = good && add_to_total(r, &b);

    Str id = r->field[r->column[COL_ID]];
    Place where = place(r, r->begin[r->column[COL_ID]], id.len ? id.len : 1);
    if (!id.len)
        good = diag_error(r->diag, where, "id: expected a name");
    else if (!plan_is_text(id))
        good = diag_error(r->diag, where, "id: expected UTF-8 without control characters");
    else if (!map_add(&r->seen, id, r->count))
        good = diag_error(r->diag, where, "id: \"" STR_FMT "\" appears twice", STR_ARG(id));
    ARENA_PUSH(r->arena, r->buffer, r->count, r->capacity, b);
    ARENA_PUSH(r->arena, r->id, r->id_count, r->id_capacity, id);
    return good;
}

bool plan_read_csv(Arena *arena, Diag *diag, uint32_t source, PlanNamedProblem *out)
{
    Reader *r = ARENA_NEW(arena, Reader);
    *r = (Reader){.arena = arena, .diag = diag, .source = source, .seen = {.arena = arena}};
    r->text = diag_source(diag, source)->text;
    *out = (PlanNamedProblem){0};
    bool good = read_header(r);
    if (!good)
        return false;
    while (next_line(r) && !diag_full(diag))
        good &= read_buffer(r);
    *out = (PlanNamedProblem){.problem = {.buffer = r->buffer, .count = r->count}, .id = r->id};

    Str message;
    if (good && !plan_valid(arena, &out->problem, &message))
        good = diag_error(diag, place(r, 0, 1), STR_FMT, STR_ARG(message));
    return good;
}

void plan_write_json(Text *out, const PlanNamedProblem *named, const PlanResult *result)
{
    text_printf(out, "{\n  \"peak\": %" PRId64 ",\n  \"lower_bound\": %" PRId64 ",\n  \"proven\": %s,\n", result->peak,
                result->lower_bound, result->proven ? "true" : "false");
    text_printf(out, "  \"nodes\": %" PRIu64 ",\n  \"allocator\": \"%s\",\n  \"offsets\": {", result->nodes,
                result->allocator);
    for (uint32_t i = 0; result->offset && i < named->problem.count; i++) {
        text_printf(out, "%s\n    ", i ? "," : "");
        plan_json_string(out, named->id[i]);
        text_printf(out, ": %" PRId64, result->offset[i]);
    }
    text_printf(out, "\n  }\n}\n");
}
