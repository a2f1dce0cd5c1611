/* Finds blocks of statements that repeat in the imported graph, the most worthwhile first, until no function would save
 * lines any more.
 *
 * Statements are alike when they are equal but for names and numbers.  Where the sequence of kinds agrees with itself
 * some distance on, there are instances of a block; if it agrees for longer than that distance, they follow each other,
 * and any of the statements may be the first: those are tried that fewest values cross. */
#include "onnx/repeat.h"

#include <string.h>

#include "base/number.h"

#define MOST_UNITS      40000
#define MOST_FUNCTIONS  16
#define MOST_COMPARED   4000000  /* pairs of units in one search */
#define MOST_WORK       20000000 /* tokens that are compared, in all */
#define MOST_CANDIDATES 24
#define LEAST_LENGTH    2
#define LEAST_GAIN      3
#define WORTH_OF_CALL   6  /* lines: what the model calls a function is rather one than what lies across */
#define FEW_CROSSING    9  /* arguments and results; each beyond that ... */
#define PRICE_OF_MANY   25 /* ... must save so many lines: calls of few read better */
#define LONG            40 /* units, in which not all parts are tried */

typedef struct Run { /* units from `at` on are those `distance` further */
    uint32_t at, distance, length;
    int64_t estimate;
} Run;

typedef struct Search {
    Repeat *r;
    Run run[MOST_CANDIDATES];
    uint32_t count;
    RepeatBlock best;
    uint32_t *at; /* room for the instances of one */
    int64_t work;
} Search;

/* The index */

/* Names keep their numbers from one index to the next; those of values that are gone are in no statement. */
static uint32_t id_of(OnnxScript *script, Str name)
{
    uint32_t id = map_get(&script->ids, name);
    if (id != MAP_NONE)
        return id;
    map_put(&script->ids, name, ++script->id_count);
    return script->id_count;
}

static void number_values(Repeat *r)
{
    OnnxScript *script = r->script;
    for (uint32_t i = 0; i < script->count; i++) {
        uint32_t at = 0;
        for (OnnxToken *t; (t = onnx_statement_next(&script->statement[i], &at, TOKEN_VALUE));)
            t->id = t->id ? t->id : id_of(script, t->text);
    }
    for (uint32_t i = 0; i < script->results; i++)
        id_of(script, script->result[i]);
    r->value_count = script->id_count + 1;
    r->value = ARENA_ARRAY(r->arena, RepeatValue, r->value_count);
    for (uint32_t i = 0; i < r->value_count; i++)
        r->value[i].statement = r->value[i].unit = NONE;
    for (uint32_t i = 0; i < script->results; i++)
        r->value[id_of(script, script->result[i])].result = true;
}

/* Counts the statements that read each value, or lists them. */
static void each_use(Repeat *r, bool count)
{
    for (uint32_t i = 0; i < r->script->count; i++) {
        const OnnxStatement *s = &r->script->statement[i];
        uint32_t at = 0, number = 0;
        for (const OnnxToken *t; (t = onnx_statement_next(s, &at, TOKEN_VALUE)); number++) {
            RepeatValue *value = &r->value[t->id];
            if (number < s->results)
                value->statement = i;
            else if (count)
                value->uses++;
            else
                r->use[value->first_use + value->uses++] = i;
        }
    }
}

static void index_uses(Repeat *r)
{
    uint32_t total = 0;
    number_values(r);
    each_use(r, true);
    for (uint32_t i = 0; i < r->value_count; i++) {
        r->value[i].first_use = total;
        total += r->value[i].uses;
        r->value[i].uses = 0;
    }
    r->use = ARENA_ARRAY(r->arena, uint32_t, total + 1);
    each_use(r, false);
}

static bool is_declaration(const OnnxStatement *s)
{
    return s->kind == STATEMENT_PARAM || s->kind == STATEMENT_CONST;
}

/* A param or constant that only the statement behind it reads */
static bool belongs_to_next(const Repeat *r, uint32_t statement)
{
    const OnnxStatement *s = &r->script->statement[statement];
    uint32_t at = 0, next = statement + 1;
    const RepeatValue *value = &r->value[onnx_statement_next(s, &at, TOKEN_VALUE)->id];
    while (next < r->script->count && is_declaration(&r->script->statement[next]))
        next++;
    return !s->stored && !value->result && value->uses == 1 && r->use[value->first_use] == next;
}

static uint32_t class_of(OnnxScript *script, OnnxStatement *s)
{
    Text key = {0};
    if (s->class)
        return s->class;
    if (s->kind == STATEMENT_BODY || s->kind == STATEMENT_CALL)
        text_printf(&key, "%p", (const void *)s->token);
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->token[i].kind == TOKEN_PLAIN)
            text_str(&key, s->token[i].text);
        else
            text_char(&key, (char)(1 + s->token[i].kind));
    }
    s->class = map_get(&script->classes, text_view(&key));
    if (s->class == MAP_NONE) {
        s->class = script->classes.count + 1;
        map_put(&script->classes, str_copy(script->arena, text_view(&key)), s->class);
    }
    text_free(&key);
    return s->class;
}

static void index_units(Repeat *r)
{
    uint32_t count = r->script->count;
    r->unit = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    r->class = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    r->bound = ARENA_ARRAY(r->arena, bool, count + 1);
    r->unit_count = 0;
    bool bound = false;
    for (uint32_t i = 0; i < count; i++) {
        OnnxStatement *s = &r->script->statement[i];
        if (is_declaration(s) && !belongs_to_next(r, i))
            continue;
        uint32_t at = 0, unit = r->unit_count++;
        r->unit[unit] = i;
        r->class[unit] = class_of(r->script, s);
        r->bound[unit] = bound;
        bound = is_declaration(s);
        for (uint32_t k = 0; k < s->results; k++) {
            RepeatValue *value = &r->value[onnx_statement_next(s, &at, TOKEN_VALUE)->id];
            value->unit = unit;
            value->number = k;
        }
    }
    r->bound[r->unit_count] = bound;
}

/* Where two units in a row come again: most units that are alike stand among others. */
static void index_pairs(Repeat *r)
{
    Map last = {.arena = r->arena};
    uint32_t count = r->unit_count ? r->unit_count - 1 : 0, pairs = 0;
    r->pair = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    r->earlier = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    r->later = ARENA_ARRAY(r->arena, uint32_t, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        Str key = map_key(r->class + i, 2 * sizeof *r->class);
        uint32_t before = map_get(&last, key);
        r->earlier[i] = before;
        r->later[i] = NONE;
        r->pair[i] = before == MAP_NONE ? pairs++ : r->pair[before];
        if (before != MAP_NONE)
            r->later[before] = i;
        map_put(&last, key, i);
    }
}

static Repeat *index_values(OnnxScript *script)
{
    Repeat *r = ARENA_NEW(script->arena, Repeat);
    *r = (Repeat){.script = script, .arena = script->arena};
    index_uses(r);
    return r;
}

static void index_sequence(Repeat *r)
{
    index_units(r);
    index_pairs(r);
}

/* The index before any block is found, of statements in the order in which blocks are found best */
static Repeat *index_in_order(OnnxScript *script)
{
    Repeat *r = index_values(script);
    for (uint32_t i = 0; i < script->count; i++)
        class_of(script, &script->statement[i]);
    return onnx_block_move_shared(r) ? index_values(script) : r;
}

/* Runs */

static void keep_run(Search *s, Run run)
{
    uint32_t at = s->count < MOST_CANDIDATES ? s->count++ : MOST_CANDIDATES;
    for (; at > 0 && s->run[at - 1].estimate < run.estimate; at--)
        if (at < MOST_CANDIDATES)
            s->run[at] = s->run[at - 1];
    if (at < MOST_CANDIDATES)
        s->run[at] = run;
}

/* One of a smaller distance says the same. */
static bool is_multiple(const Search *s, const Run *run)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const Run *other = &s->run[i];
        bool within = other->at <= run->at &&
                      other->at + other->distance + other->length >= run->at + run->distance + run->length;
        if (within && other->length >= other->distance && run->distance % other->distance == 0)
            return true;
    }
    return false;
}

/* A run is of two units at least, so it begins where two in a row are alike. */
static void find_run(Search *s, uint32_t distance)
{
    const Repeat *r = s->r;
    const uint32_t *pair = r->pair, *later = r->pair + distance, end = r->unit_count - 1 - distance;
    for (uint32_t i = 0; i < end;) {
        uint32_t length = 1;
        while (i < end && pair[i] != later[i])
            i++;
        while (i + length - 1 < end && pair[i + length - 1] == later[i + length - 1])
            length++;
        int64_t times = length >= distance ? length / distance : 1;
        Run run = {i, distance, length, times * least(length, distance)};
        if (length >= LEAST_LENGTH && !is_multiple(s, &run))
            keep_run(s, run);
        i += length;
    }
}

/* Instances of a block */

static bool is_alike(const Repeat *r, uint32_t a, uint32_t b, uint32_t length)
{
    return !r->bound[a] && !r->bound[b] && memcmp(r->class + a, r->class + b, length * sizeof *r->class) == 0;
}

static void find_instances(Search *s, RepeatBlock *block, uint32_t anchor)
{
    const Repeat *r = s->r;
    uint32_t length = block->length;
    block->at = s->at;
    uint32_t end = anchor; /* of what is free in front */
    for (uint32_t at = r->earlier[anchor]; at != NONE; at = r->earlier[at])
        if (at + length <= end && is_alike(r, at, anchor, length))
            end = block->at[block->count++] = at;
    for (uint32_t i = 0; i < block->count / 2; i++) {
        uint32_t at = block->at[i];
        block->at[i] = block->at[block->count - 1 - i];
        block->at[block->count - 1 - i] = at;
    }
    uint32_t begin = anchor; /* of what is free behind */
    for (uint32_t at = anchor; at != NONE && at + length <= r->unit_count; at = r->later[at])
        if (at >= begin && is_alike(r, at, anchor, length)) {
            block->at[block->count++] = at;
            begin = at + length;
        }
    block->at = arena_copy(r->arena, s->at, block->count * sizeof *s->at);
}

/* Lines of calls: those of instances that follow each other are a loop, of three lines. */
static int64_t call_lines(const RepeatBlock *b)
{
    int64_t lines = 0;
    for (uint32_t i = 0, group; i < b->count; i += group) {
        group = 1;
        while (i + group < b->count && b->at[i + group] == b->at[i + group - 1] + b->length)
            group++;
        lines += least(group, 3);
    }
    return lines;
}

static bool is_better(const RepeatBlock *a, const RepeatBlock *b)
{
    return a->gain > b->gain || (a->gain == b->gain && a->scope > b->scope);
}

static int64_t gain_of(const RepeatBlock *block, int64_t crossing)
{
    return (int64_t)block->count * block->length - block->length - 3 - call_lines(block) - 2 * (crossing - 2) -
           PRICE_OF_MANY * most(0, crossing - FEW_CROSSING) + (block->called ? WORTH_OF_CALL : 0);
}

/* From the first instance alone: what crosses it crosses the block, and instances that are left out save nothing.  Most
 * blocks that are tried are one loop cut elsewhere. */
static bool may_be_best(const Search *s, RepeatBlock *block)
{
    RepeatBlock first = *block;
    first.count = 1;
    onnx_block_find_called(s->r, &first);
    first.count = block->count;
    first.scope = block->scope = onnx_block_scope(s->r, block).len;
    first.gain = gain_of(&first, onnx_block_least_crossing(s->r, block));
    return first.gain >= LEAST_GAIN && is_better(&first, &s->best);
}

static bool is_best(Search *s, RepeatBlock *block)
{
    if (block->count < 2 || !may_be_best(s, block) || !onnx_block_compare(s->r, block))
        return false;
    onnx_block_find_called(s->r, block);
    block->gain = gain_of(block, block->slot_count + block->output_count);
    return block->gain >= LEAST_GAIN && is_better(block, &s->best) && onnx_block_name(s->r, block);
}

static void try_block(Search *s, uint32_t at, uint32_t length)
{
    RepeatBlock block = {.length = length};
    if (s->work < 0 || s->r->bound[at] || s->r->bound[at + length])
        return;
    ArenaMark mark = arena_mark(s->r->arena);
    find_instances(s, &block, at);
    s->work -= (int64_t)s->r->unit_count + (int64_t)block.count * length * 12;
    if (is_best(s, &block))
        s->best = block;
    else
        arena_reset(s->r->arena, mark);
}

static void try_run(Search *s, const Run *run)
{
    if (run->length >= run->distance) {
        for (uint32_t i = 0; i < run->distance && run->distance >= LEAST_LENGTH; i++)
            try_block(s, run->at + i, run->distance);
        return;
    }
    for (uint32_t a = 0; a + LEAST_LENGTH <= run->length; a++)
        for (uint32_t b = run->length; b >= a + LEAST_LENGTH; b--)
            if (run->length <= LONG || (a < 8 && b + 8 > run->length))
                try_block(s, run->at + a, b - a);
}

static bool find_block(Repeat *r, int64_t *work, RepeatBlock *block)
{
    Search *s = ARENA_NEW(r->arena, Search);
    *s = (Search){.r = r, .at = ARENA_ARRAY(r->arena, uint32_t, r->unit_count + 1), .work = *work};
    uint32_t farthest = (uint32_t)least(r->unit_count, MOST_COMPARED / most(r->unit_count, 1));
    for (uint32_t d = 1; d < farthest; d++)
        find_run(s, d);
    for (uint32_t i = 0; i < s->count; i++)
        try_run(s, &s->run[i]);
    *work = s->work;
    *block = s->best;
    return block->gain > 0;
}

void onnx_script_fold_blocks(OnnxScript *script, Text *functions)
{
    int64_t work = MOST_WORK;
    RepeatBlock block;
    if (script->count > MOST_UNITS)
        return;
    for (uint32_t i = 0; i < MOST_FUNCTIONS; i++) {
        Repeat *r = i ? index_values(script) : index_in_order(script);
        index_sequence(r);
        if (!find_block(r, &work, &block))
            break;
        onnx_block_write(r, &block, functions);
    }
    onnx_script_fold_calls(script);
}
