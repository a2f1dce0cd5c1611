#include "cli/verify.h"

#include <inttypes.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/map.h"
#include "plan/sort.h"

#define LARGEST_EXACT INT64_C(9007199254740992) /* 2 to the 53: JSON numbers above are not exact */
#define NOT_SAID      INT64_C(-1)

typedef struct Claim {                          /* what the file says of a tensor */
    Str name, alias_of;                         /* alias_of.ptr NULL: it has memory of its own */
    int64_t bytes, offset, first, last, region; /* first and last are included, and may be NOT_SAID */
    uint32_t row;                               /* of the report, or PLAN_NO_ROW */
} Claim;

typedef struct Verify {
    Cli *cli;
    const Entry *entry;
    const PlanReport *report;
    Str path;
    Claim *claim;
    uint32_t count, capacity;
    Map claimed; /* name -> claim */
    Map row;     /* name -> row of the report that is a buffer ... */
    Map alias;   /* ... and of a part or a view */
} Verify;

#define FAULT(v, ...) diag_file_error(&(v)->cli->diag, (v)->path, __VA_ARGS__)

/* Names come from a stranger's file and go to a terminal. */
static Str printable(Arena *arena, const char *text)
{
    size_t length = strlen(text);
    char *copy = arena_copy(arena, text, length + 1);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)copy[i] < 32 || copy[i] == 127)
            copy[i] = '?';
    return (Str){copy, (uint32_t)length};
}

static bool take_name(Verify *v, const cJSON *object, const char *key, Str *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!cJSON_IsString(item))
        return false;
    *name = printable(&v->cli->arena, item->valuestring);
    return true;
}

static bool whole_number(const cJSON *item, int64_t *number)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= (double)LARGEST_EXACT))
        return false;
    *number = (int64_t)item->valuedouble;
    return (double)*number == item->valuedouble;
}

static bool take_number(Verify *v, const cJSON *object, Str name, const char *key, int64_t absent, int64_t *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    *number = absent;
    if (!item && absent >= NOT_SAID)
        return true;
    return whole_number(item, number) ||
           FAULT(v, STR_FMT ": \"%s\" must be a whole number, not negative and at most 2^53", STR_ARG(name), key);
}

/* Reading */

static bool read_tensor(Verify *v, const cJSON *item)
{
    const int64_t required = NOT_SAID - 1;
    Claim c = {.row = PLAN_NO_ROW};
    if (!cJSON_IsObject(item) || !take_name(v, item, "name", &c.name))
        return FAULT(v, "tensor %u has no \"name\"", v->count);
    if (cJSON_HasObjectItem(item, "alias_of") && !take_name(v, item, "alias_of", &c.alias_of))
        return FAULT(v, STR_FMT ": \"alias_of\" must be a tensor's name", STR_ARG(c.name));
    if (!take_number(v, item, c.name, "bytes", required, &c.bytes) ||
        !take_number(v, item, c.name, "offset", required, &c.offset) ||
        !take_number(v, item, c.name, "first", NOT_SAID, &c.first) ||
        !take_number(v, item, c.name, "last", NOT_SAID, &c.last) ||
        !take_number(v, item, c.name, "region", 0, &c.region))
        return false;
    if (!map_add(&v->claimed, c.name, v->count))
        return FAULT(v, STR_FMT " is there twice", STR_ARG(c.name));
    c.row = map_get(&v->row, c.name);
    ARENA_PUSH(&v->cli->arena, v->claim, v->count, v->capacity, c);
    return true;
}

static bool read_plan(Verify *v, const cJSON *root)
{
    const cJSON *item, *tensors = cJSON_GetObjectItemCaseSensitive(root, "tensors"); /* NULL where it is no object */
    int64_t version;
    bool good = true;
    if (!cJSON_IsObject(root))
        return FAULT(v, "not a plan: it is not an object of JSON");
    if (!whole_number(cJSON_GetObjectItemCaseSensitive(root, "nnc_plan"), &version))
        return FAULT(v, "not a plan: it has no \"nnc_plan\"");
    if (version != 1)
        return FAULT(v, "version %" PRId64 " of the schema is not known, only 1", version);
    if (!cJSON_IsArray(tensors))
        return FAULT(v, "\"tensors\" is not a list");
    cJSON_ArrayForEach(item, tensors)
    {
        if (diag_full(&v->cli->diag))
            return false;
        good &= read_tensor(v, item);
    }
    return good;
}

/* Checks */

/* A part or a view lies where the layout of its owner says, wherever that is. */
static void check_alias(Verify *v, const Claim *c)
{
    uint32_t index = map_get(&v->claimed, c->alias_of), known = map_get(&v->alias, c->name);
    const PlanRow *row = known == MAP_NONE ? NULL : &v->report->row[known];
    const Claim *owner = index == MAP_NONE ? NULL : &v->claim[index];
    if (!row || !str_eq(v->report->row[row->alias_of].name, c->alias_of)) {
        FAULT(v, "the model has no tensor " STR_FMT " in the memory of " STR_FMT, STR_ARG(c->name),
              STR_ARG(c->alias_of));
        return;
    }
    if (!owner || owner->row == PLAN_NO_ROW) {
        FAULT(v, STR_FMT " lies in " STR_FMT ", which has no memory", STR_ARG(c->name), STR_ARG(c->alias_of));
        return;
    }
    int64_t offset = owner->offset + row->offset - v->report->row[row->alias_of].offset;
    if (c->bytes != row->bytes)
        FAULT(v, STR_FMT " has %" PRId64 " bytes, not %" PRId64, STR_ARG(c->name), row->bytes, c->bytes);
    if (c->region != owner->region)
        FAULT(v, STR_FMT " is in region %" PRId64 ", not %" PRId64, STR_ARG(c->name), owner->region, c->region);
    else if (c->offset != offset)
        FAULT(v, STR_FMT " is at %" PRId64 ", but " STR_FMT " has it at %" PRId64, STR_ARG(c->name), c->offset,
              STR_ARG(c->alias_of), offset);
}

static void check_tensor(Verify *v, const Claim *c)
{
    const PlanRow *row = &v->report->row[c->row];
    int64_t alignment = v->entry->memory.problem.buffer[c->row].alignment;
    if (c->bytes != row->bytes)
        FAULT(v, STR_FMT " has %" PRId64 " bytes, not %" PRId64, STR_ARG(c->name), row->bytes, c->bytes);
    if (c->offset % alignment)
        FAULT(v, STR_FMT " at %" PRId64 " is not aligned to %" PRId64 " bytes", STR_ARG(c->name), c->offset, alignment);
    if (c->region != row->region)
        FAULT(v, STR_FMT " is in region %" PRId64 ", not %u", STR_ARG(c->name), c->region, row->region);
    if ((c->first != NOT_SAID && c->first > row->first) || (c->last != NOT_SAID && c->last < row->last - 1))
        FAULT(v,
              STR_FMT " is needed in steps %" PRId64 " to %" PRId64 "; the plan keeps it from %" PRId64 " to %" PRId64,
              STR_ARG(c->name), row->first, row->last - 1, c->first == NOT_SAID ? row->first : c->first,
              c->last == NOT_SAID ? row->last - 1 : c->last);
}

/* Parts stay where they are while more of them come.  The buffers of a family are several places that take turns. */
static void check_growth(Verify *v, const Claim *c)
{
    const Memory *memory = &v->entry->memory;
    const Storage *whole = &memory->storage.at[memory->holder[c->row]];
    uint32_t index = map_get(&v->claimed, v->report->row[whole->buffer].name);
    if (whole->family == NONE && index != MAP_NONE && v->claim[index].offset != c->offset)
        FAULT(v, STR_FMT " at %" PRId64 " grows into " STR_FMT ", which is at %" PRId64, STR_ARG(c->name), c->offset,
              STR_ARG(v->claim[index].name), v->claim[index].offset);
}

static void check_presence(Verify *v)
{
    for (uint32_t i = 0; i < v->count && !diag_full(&v->cli->diag); i++)
        if (v->claim[i].row != PLAN_NO_ROW) {
            check_tensor(v, &v->claim[i]);
            check_growth(v, &v->claim[i]);
        } else if (v->claim[i].alias_of.ptr)
            check_alias(v, &v->claim[i]);
        else
            FAULT(v, "the model has no tensor " STR_FMT, STR_ARG(v->claim[i].name));
    for (uint32_t i = 0; i < v->entry->memory.problem.count && !diag_full(&v->cli->diag); i++)
        if (map_get(&v->claimed, v->report->row[i].name) == MAP_NONE)
            FAULT(v, STR_FMT " is missing", STR_ARG(v->report->row[i].name));
}

/* A result may lie exactly where the operand does that it is computed in place of; the judge has seen that the operand
 * is not read later. */
static bool may_share(const Verify *v, const Claim *a, const Claim *b)
{
    const PlanBuffer *buffer = v->entry->memory.problem.buffer;
    return a->offset == b->offset && buffer[a->row].group && buffer[a->row].group == buffer[b->row].group;
}

static void check_pair(Verify *v, const Claim *a, const Claim *b)
{
    const PlanRow *x = &v->report->row[a->row], *y = &v->report->row[b->row];
    int64_t step = x->first > y->first ? x->first : y->first;
    bool together = x->first < y->last && y->first < x->last && x->region == y->region;
    bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
    if (!together || apart || may_share(v, a, b))
        return;
    FAULT(v,
          STR_FMT " at [%" PRId64 ", %" PRId64 ") and " STR_FMT " at [%" PRId64 ", %" PRId64
                  ") are both live at " STR_FMT,
          STR_ARG(a->name), a->offset, a->offset + a->bytes, STR_ARG(b->name), b->offset, b->offset + b->bytes,
          STR_ARG(plan_step_name(&v->cli->arena, v->report, step)));
}

/* A sweep through time: each meets those that are live when its life begins, and `live` keeps no others. */
static void check_overlap(Verify *v)
{
    Arena *arena = &v->cli->arena;
    SortKey *begin = ARENA_ARRAY(arena, SortKey, v->count);
    const Claim **live = ARENA_ARRAY(arena, const Claim *, v->count);
    uint32_t count = 0, live_count = 0;
    for (uint32_t i = 0; i < v->count; i++)
        if (v->claim[i].row != PLAN_NO_ROW)
            begin[count++] = (SortKey){(uint64_t)v->report->row[v->claim[i].row].first, i};
    sort_ascending(arena, begin, count);
    for (uint32_t i = 0; i < count && !diag_full(&v->cli->diag); i++) {
        const Claim *next = &v->claim[begin[i].index];
        uint32_t left = 0;
        for (uint32_t k = 0; k < live_count; k++)
            if (v->report->row[live[k]->row].last > v->report->row[next->row].first) {
                check_pair(v, live[k], next);
                live[left++] = live[k];
            }
        live[left++] = next;
        live_count = left;
    }
}

/* Where the highest tensor ends. */
static int64_t check_peak(Verify *v, const cJSON *root)
{
    const Claim *highest = NULL;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, "peak");
    int64_t peak = 0;
    for (uint32_t i = 0; i < v->count; i++)
        if (!highest || v->claim[i].offset + v->claim[i].bytes > highest->offset + highest->bytes)
            highest = &v->claim[i];
    int64_t end = highest ? highest->offset + highest->bytes : 0;
    if (item && !whole_number(item, &peak))
        FAULT(v, "\"peak\" must be a whole number, not negative and at most 2^53");
    else if (item && end > peak)
        FAULT(v, STR_FMT " ends at %" PRId64 ", above the peak of %" PRId64, STR_ARG(highest->name), end, peak);
    return item ? peak : end;
}

static void print_verdict(const Verify *v, int64_t peak)
{
    char bytes[32];
    Text out = {0};
    text_printf(&out, STR_FMT ": right for " STR_FMT ": %u tensor%s in %s bytes\n", STR_ARG(v->path),
                STR_ARG(v->report->title), v->entry->memory.problem.count,
                v->entry->memory.problem.count == 1 ? "" : "s", plan_digits(bytes, peak));
    cli_put_rows(&out);
    text_free(&out);
}

/* NULL, and an error, where it is no JSON, or has more behind it. */
static cJSON *parse_json(Verify *v, Str text)
{
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(text.ptr, text.len, &end, false);
    while (root && end < text.ptr + text.len && *end && strchr(" \t\r\n", *end))
        end++;
    if (root && end == text.ptr + text.len)
        return root;
    if (root)
        FAULT(v, "not valid JSON: there is more behind its end");
    else
        FAULT(v, "not valid JSON, or nested deeper than %d", CJSON_NESTING_LIMIT);
    cJSON_Delete(root);
    return NULL;
}

int verify_plan(Cli *cli, const Entry *entry, const PlanReport *report, Str path)
{
    Verify v = {.cli = cli, .entry = entry, .report = report, .path = path};
    Str text;
    v.claimed.arena = v.row.arena = v.alias.arena = &cli->arena;
    if (!file_read(&cli->arena, &cli->diag, path, &text))
        return STATUS_INPUT;
    for (uint32_t i = 0; i < entry->memory.problem.count; i++)
        map_put(&v.row, report->row[i].name, i);
    for (uint32_t i = entry->memory.problem.count; i < report->count; i++)
        map_put(&v.alias, report->row[i].name, i);
    cJSON *root = parse_json(&v, text);
    int64_t peak = 0;
    if (root && read_plan(&v, root)) {
        check_presence(&v);
        check_overlap(&v);
        peak = check_peak(&v, root);
    }
    cJSON_Delete(root);
    if (cli->diag.error_count)
        return STATUS_INPUT;
    print_verdict(&v, peak);
    return STATUS_OK;
}
