/* Instances of a block beside each other: what is made in the block, what comes from outside, which numbers differ. */
#include "onnx/repeat.h"

#define MOST_SCOPES 3 /* that are tried */

static const OnnxStatement *statement_at(const Repeat *r, uint32_t unit)
{
    return &r->script->statement[r->unit[unit]];
}

uint32_t onnx_block_made(const Repeat *r, const RepeatBlock *block, uint32_t at, uint32_t value, uint32_t *result)
{
    uint32_t unit = r->value[value].unit;
    if (unit == NONE || unit < at || unit >= at + block->length)
        return NONE;
    *result = r->value[value].number;
    return unit - at;
}

/* Do both instances read their own values in the same places? */
static bool is_wired_alike(const Repeat *r, const RepeatBlock *b, uint32_t first, uint32_t other)
{
    for (uint32_t u = 0; u < b->length; u++) {
        const OnnxStatement *s = statement_at(r, first + u), *t = statement_at(r, other + u);
        for (uint32_t i = 0; i < s->count; i++) {
            uint32_t a = 0, c = 0;
            if (s->token[i].kind == TOKEN_VALUE &&
                (onnx_block_made(r, b, first, s->token[i].id, &a) != onnx_block_made(r, b, other, t->token[i].id, &c) ||
                 a != c))
                return false;
        }
    }
    return true;
}

static bool keep_alike(const Repeat *r, RepeatBlock *b)
{
    uint32_t kept = 1;
    for (uint32_t i = 1; i < b->count; i++)
        if (is_wired_alike(r, b, b->at[0], b->at[i]))
            b->at[kept++] = b->at[i];
    b->count = kept;
    return kept > 1;
}

/* Arguments */

static Str *texts_at(const Repeat *r, const RepeatBlock *b, uint32_t unit, uint32_t token)
{
    Str *text = ARENA_ARRAY(r->arena, Str, b->count);
    for (uint32_t i = 0; i < b->count; i++)
        text[i] = statement_at(r, b->at[i] + unit)->token[token].text;
    return text;
}

static bool is_same(const Str *a, const Str *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return true;
}

static bool is_constant(const Str *text, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (!str_eq(text[0], text[i]))
            return false;
    return true;
}

static bool add_slot(RepeatBlock *b, Str *text, bool number)
{
    for (uint32_t i = 0; i < b->slot_count; i++)
        if (b->slot[i].number == number && is_same(b->slot[i].text, text, b->count))
            return true;
    if (b->slot_count == MOST_ARGUMENTS)
        return false;
    b->slot[b->slot_count++] = (RepeatSlot){.text = text, .number = number};
    return true;
}

static void add_name(Repeat *r, RepeatBlock *b, uint32_t unit, uint32_t token, bool label)
{
    RepeatName name = {.unit = unit, .text = texts_at(r, b, unit, token)};
    const Onnx *onnx = r->script->onnx;
    name.given = !label && map_get(&onnx->made, name.text[0]) == MAP_NONE;
    if (label) {
        name.layer = ARENA_ARRAY(r->arena, const OnnxLayer *, b->count);
        for (uint32_t i = 0; i < b->count; i++) {
            name.layer[i] = onnx_script_layer(r->script, name.text[i]);
            name.given |= name.layer[i] && name.layer[i]->given;
        }
    }
    ARENA_PUSH(r->arena, b->name, b->name_count, b->name_capacity, name);
}

static bool take_statement(Repeat *r, RepeatBlock *b, uint32_t unit)
{
    const OnnxStatement *s = statement_at(r, b->at[0] + unit);
    uint32_t result, values = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const OnnxToken *t = &s->token[i];
        bool defines = t->kind == TOKEN_VALUE && values++ < s->results;
        if (t->kind == TOKEN_LABEL || (defines && s->kind == STATEMENT_PARAM))
            add_name(r, b, unit, i, t->kind == TOKEN_LABEL);
        if (t->kind == TOKEN_VALUE && !defines && onnx_block_made(r, b, b->at[0], t->id, &result) == NONE &&
            !add_slot(b, texts_at(r, b, unit, i), false))
            return false;
        Str *text = t->kind == TOKEN_NUMBER ? texts_at(r, b, unit, i) : NULL;
        if (text && !is_constant(text, b->count) && !add_slot(b, text, true))
            return false;
    }
    return true;
}

/* Results */

static bool is_read_outside(const Repeat *r, const RepeatBlock *b, uint32_t at, const RepeatValue *value)
{
    for (uint32_t i = 0; i < value->uses; i++) {
        uint32_t statement = r->use[value->first_use + i];
        if (statement < r->unit[at] || statement > r->unit[at + b->length - 1])
            return true;
    }
    return value->result;
}

static bool take_output(Repeat *r, RepeatBlock *b, uint32_t unit, uint32_t result, uint32_t token)
{
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t value = statement_at(r, b->at[i] + unit)->token[token].id;
        if (!is_read_outside(r, b, b->at[i], &r->value[value]))
            continue;
        if (b->output_count == MOST_ARGUMENTS || statement_at(r, b->at[0] + unit)->kind != STATEMENT_PLAIN)
            return false;
        b->output[b->output_count++] = (RepeatOutput){unit, result};
        return true;
    }
    return true;
}

static bool take_outputs(Repeat *r, RepeatBlock *b)
{
    for (uint32_t u = 0; u < b->length; u++) {
        const OnnxStatement *s = statement_at(r, b->at[0] + u);
        uint32_t result = 0;
        for (uint32_t i = 0; i < s->count && result < s->results; i++)
            if (s->token[i].kind == TOKEN_VALUE && !take_output(r, b, u, result++, i))
                return false;
    }
    return b->output_count > 0;
}

bool onnx_block_compare(Repeat *r, RepeatBlock *b)
{
    if (!keep_alike(r, b))
        return false;
    for (uint32_t u = 0; u < b->length; u++)
        if (!take_statement(r, b, u))
            return false;
    return take_outputs(r, b);
}

static bool is_new(const uint32_t *known, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (known[i] == value)
            return false;
    return true;
}

uint32_t onnx_block_least_crossing(const Repeat *r, const RepeatBlock *b)
{
    uint32_t slot[MOST_ARGUMENTS], slots = 0, outputs = 0, result;
    for (uint32_t u = 0; u < b->length; u++) {
        const OnnxStatement *s = statement_at(r, b->at[0] + u);
        uint32_t at = 0, number = 0;
        for (const OnnxToken *t; (t = onnx_statement_next(s, &at, TOKEN_VALUE)); number++) {
            if (number < s->results) {
                outputs += is_read_outside(r, b, b->at[0], &r->value[t->id]);
            } else if (onnx_block_made(r, b, b->at[0], t->id, &result) == NONE && is_new(slot, slots, t->id)) {
                if (slots == MOST_ARGUMENTS)
                    return 2 * MOST_ARGUMENTS + 1;
                slot[slots++] = t->id;
            }
        }
    }
    return slots + outputs;
}

/* The name that a unit gives first; empty: of a declaration */
static Str name_of_unit(const Repeat *r, const RepeatBlock *b, uint32_t unit)
{
    const OnnxStatement *s = statement_at(r, b->at[0] + unit);
    uint32_t at = 0;
    return s->kind == STATEMENT_PLAIN ? onnx_statement_next(s, &at, TOKEN_VALUE)->text : (Str){0};
}

static uint32_t common_length(Str a, Str b)
{
    uint32_t same = 0;
    while (same < a.len && same < b.len && a.ptr[same] == b.ptr[same])
        same++;
    return same;
}

/* What the names that begin as the wanted one does have in common; `*others`: how many there are besides. */
static uint32_t common_with(const Repeat *r, const RepeatBlock *b, Str wanted, uint32_t *others)
{
    uint32_t common = wanted.len;
    *others = 0;
    for (uint32_t u = 0; u < b->length; u++) {
        Str name = name_of_unit(r, b, u);
        uint32_t same = common_length(name, wanted);
        *others += name.len && !same;
        common = same && same < common ? same : common;
    }
    while (common > 0 && wanted.ptr[common - 1] != '.')
        common--;
    return common;
}

/* Those that are not of the scope are few: key_states.8 beside encoder.layers.0.attention. */
Str onnx_block_scope(const Repeat *r, const RepeatBlock *b)
{
    Str first = {0};
    uint32_t others = 0, tried = 0;
    for (uint32_t u = 0; u < b->length && tried < MOST_SCOPES; u++) {
        Str name = name_of_unit(r, b, u);
        if (!name.len || (first.len && common_length(name, first)))
            continue;
        first = name;
        uint32_t common = common_with(r, b, first, &others);
        if (4 * others <= b->length)
            return (Str){first.ptr, common};
        tried++;
    }
    return (Str){0};
}

/* Calls of the model's own functions */

static bool is_in_call(const Repeat *r, uint32_t unit, uint32_t call)
{
    uint32_t at = unit < r->unit_count ? statement_at(r, unit)->called : NONE;
    while (at != NONE && at != call)
        at = r->script->onnx->called[at].outer;
    return at != NONE;
}

/* The call whose statements are these units; NONE: none. */
static uint32_t find_call(const Repeat *r, uint32_t first, uint32_t last)
{
    const OnnxCalled *called = r->script->onnx->called;
    for (uint32_t at = statement_at(r, first)->called; at != NONE; at = called[at].outer)
        if (is_in_call(r, last, at) && !is_in_call(r, last + 1, at) && (!first || !is_in_call(r, first - 1, at)))
            return at;
    return NONE;
}

void onnx_block_find_called(const Repeat *r, RepeatBlock *b)
{
    for (uint32_t i = b->count; i-- > 0;) {
        uint32_t call = find_call(r, b->at[i], b->at[i] + b->length - 1);
        b->called = call == NONE ? NULL : r->script->onnx->called[call].name;
        if (!b->called)
            break;
    }
}
