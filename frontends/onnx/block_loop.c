/* Calls of one function that follow each other, each with what the one before gave, as a loop over their labels. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/repeat.h"

#define LEAST_CALLS 3

typedef struct Loop {
    OnnxScript *script;
    Map uses;  /* of names, in the whole script */
    Map loops; /* names that go round */
    const OnnxCall **call;
    uint32_t count, capacity;
    Str carried[MOST_ARGUMENTS]; /* what goes round is called so, by result */
    Str head, tail;              /* of labels, around their number */
    uint32_t number;             /* where that begins in the label of the first call */
    long first;
} Loop;

static uint32_t uses_of(const Loop *l, Str name)
{
    uint32_t uses = map_get(&l->uses, name);
    return uses == MAP_NONE ? 0 : uses;
}

static void count_uses(Loop *l)
{
    l->uses = (Map){.arena = l->script->arena};
    for (uint32_t i = 0; i < l->script->count; i++) {
        uint32_t at = 0;
        for (const OnnxToken *t; (t = onnx_statement_next(&l->script->statement[i], &at, TOKEN_VALUE));)
            map_put(&l->uses, t->text, uses_of(l, t->text) + 1);
    }
    for (uint32_t i = 0; i < l->script->results; i++)
        map_put(&l->uses, l->script->result[i], uses_of(l, l->script->result[i]) + 2);
}

/* Labels: encoder.layer.3 is `encoder.layer.`, 3, and nothing behind it. */

static bool split_label(Str label, uint32_t begin, Str *head, long *number, Str *tail)
{
    uint32_t end = begin;
    while (end < label.len && isdigit((unsigned char)label.ptr[end]))
        end++;
    if (end == begin || begin == 0 || end - begin > 6 || (end - begin > 1 && label.ptr[begin] == '0') ||
        (end < label.len && label.ptr[end] != '.'))
        return false;
    *head = (Str){label.ptr, begin};
    *tail = (Str){label.ptr + end, label.len - end};
    *number = strtol(label.ptr + begin, NULL, 10);
    return true;
}

/* Is the label the one before with its number one larger? */
static bool counts_on(Str before, Str label, uint32_t begin)
{
    Str head[2], tail[2];
    long number[2];
    return split_label(before, begin, &head[0], &number[0], &tail[0]) &&
           split_label(label, begin, &head[1], &number[1], &tail[1]) && str_eq(head[0], head[1]) &&
           str_eq(tail[0], tail[1]) && number[1] == number[0] + 1;
}

/* Do labels of all calls count on at the number, or at a later one?  Those before the last are known to, at this. */
static bool find_number(Loop *l)
{
    Str label = l->call[0]->label;
    uint32_t known = l->count - 1;
    for (; l->number < label.len; l->number++, known = 1) {
        bool fits = !isdigit((unsigned char)label.ptr[l->number - 1]);
        for (uint32_t i = known; fits && i < l->count; i++)
            fits = counts_on(l->call[i - 1]->label, l->call[i]->label, l->number);
        if (fits && split_label(label, l->number, &l->head, &l->first, &l->tail))
            return true;
    }
    return !label.len;
}

/* Arguments */

/* Which result of the call before the argument is; NONE: none. */
static uint32_t carried_by(const OnnxCall *before, const OnnxToken *argument)
{
    for (uint32_t i = 0; i < before->results && argument->kind == TOKEN_VALUE; i++)
        if (str_eq(before->result[i], argument->text))
            return i;
    return NONE;
}

/* Does the call go on from the one before, as calls 0 and 1 do? */
static bool goes_on(const Loop *l, const OnnxCall *before, const OnnxCall *call)
{
    uint32_t carried = 0;
    if (!str_eq(before->function, call->function))
        return false;
    for (uint32_t i = 0; i < call->arguments; i++) {
        uint32_t from = carried_by(before, &call->argument[i]);
        bool varies = !str_eq(before->argument[i].text, call->argument[i].text);
        if (from == NONE && varies)
            return false;
        if (l->count > 1 && from != carried_by(l->call[0], &l->call[1]->argument[i]))
            return false;
        carried += from != NONE;
    }
    for (uint32_t i = 0; i < before->results; i++)
        if (uses_of(l, before->result[i]) != 2)
            return false;
    return carried == before->results;
}

static bool is_declaration(const OnnxStatement *s)
{
    return s->kind == STATEMENT_PARAM || s->kind == STATEMENT_CONST;
}

/* Calls from a statement on, up to `*end`; declarations between them stand before. */
static bool find_loop(Loop *l, uint32_t begin, uint32_t *end)
{
    l->count = 0;
    l->number = 1;
    for (uint32_t i = begin; i < l->script->count; i++) {
        const OnnxStatement *s = &l->script->statement[i];
        if (is_declaration(s))
            continue;
        if (s->kind != STATEMENT_CALL || (l->count && !goes_on(l, l->call[l->count - 1], s->call)))
            break;
        ARENA_PUSH(l->script->arena, l->call, l->count, l->capacity, s->call);
        uint32_t number = l->number;
        if (l->count > 1 && !find_number(l)) {
            l->count--;
            l->number = number;
            break;
        }
        *end = i + 1;
    }
    return l->count >= LEAST_CALLS && find_number(l);
}

/* Writing */

static void rename_all(OnnxScript *script, Str from, Str to)
{
    for (uint32_t i = 0; i < script->count; i++) {
        OnnxStatement *s = &script->statement[i];
        uint32_t at = 0;
        for (OnnxToken *t; (t = onnx_statement_next(s, &at, TOKEN_VALUE));)
            if (str_eq(t->text, from))
                t->text = to;
        for (uint32_t k = 0; s->call && k < s->call->arguments; k++)
            if (str_eq(s->call->argument[k].text, from))
                s->call->argument[k].text = to;
        for (uint32_t k = 0; s->call && k < s->call->results; k++)
            if (str_eq(s->call->result[k], from))
                s->call->result[k] = to;
    }
}

static bool is_result(const OnnxScript *script, Str name)
{
    for (uint32_t i = 0; i < script->results; i++)
        if (str_eq(script->result[i], name))
            return true;
    return false;
}

static bool is_computed(const OnnxScript *script, Str name)
{
    for (uint32_t i = 0; i < script->count; i++) {
        const OnnxStatement *s = &script->statement[i];
        uint32_t at = 0;
        for (uint32_t k = 0; k < s->results; k++)
            if (str_eq(onnx_statement_next(s, &at, TOKEN_VALUE)->text, name))
                return !is_declaration(s);
    }
    return false;
}

static OnnxStatement copy_statement(Arena *arena, Str name, Str from)
{
    OnnxStatement s = {.results = 1, .count = 3, .token = ARENA_ARRAY(arena, OnnxToken, 3)};
    s.token[0] = (OnnxToken){name, TOKEN_VALUE, 0};
    s.token[1] = (OnnxToken){STR(" = "), TOKEN_PLAIN, 0};
    s.token[2] = (OnnxToken){from, TOKEN_VALUE, 0};
    return s;
}

/* Of an input of the text */
static bool is_input(const Onnx *onnx, Str name)
{
    bool input = map_get(&onnx->inputs, name) != MAP_NONE;
    for (uint32_t i = 0; i < onnx->renamed_count; i++)
        input |= str_eq(onnx->renamed[i].name, name);
    return input;
}

/* From call to call, so that it goes */
static bool is_passed_on(const Loop *l, Str name)
{
    for (uint32_t i = 0; i + 1 < l->count; i++)
        for (uint32_t k = 0; k < l->call[i]->results; k++)
            if (str_eq(l->call[i]->result[k], name))
                return true;
    return false;
}

/* x, or x_2, ..., that nothing has which is left of the text */
static Str fresh_name(const Loop *l, Str initial, Str final)
{
    Str name = STR("x");
    for (uint32_t number = 2;
         (uses_of(l, name) && !str_eq(name, initial) && !str_eq(name, final) && !is_passed_on(l, name)) ||
         map_get(&l->loops, name) != MAP_NONE || is_input(l->script->onnx, name) || is_result(l->script, name);
         number++)
        name = str_format(l->script->arena, "x_%u", number);
    return name;
}

/* What goes round has one name, before the loop, in it and behind it: that of a result of the graph, the one that it
 * had in a loop before, or x.  True when a statement has to give the first value that name. */
static bool name_carried(Loop *l, uint32_t result, Str initial)
{
    OnnxScript *script = l->script;
    Str final = l->call[l->count - 1]->result[result];
    bool kept = is_result(script, final), going = map_get(&l->loops, initial) != MAP_NONE;
    bool alone = is_computed(script, initial) && uses_of(l, initial) == 2 && !is_result(script, initial);
    Str name = kept ? final : alone && going ? initial : fresh_name(l, alone ? initial : (Str){0}, final);
    bool renames = alone && !(kept && going);
    if (!kept)
        rename_all(script, final, name);
    if (renames)
        rename_all(script, initial, name);
    map_put(&l->loops, name, 1);
    l->carried[result] = name;
    return !renames;
}

static void push(Loop *l, OnnxStatement *s, uint32_t *capacity, Str text, OnnxTokenKind kind)
{
    if (text.len)
        ARENA_PUSH(l->script->arena, s->token, s->count, *capacity, ((OnnxToken){text, kind, 0}));
}

/* `x`, or `a, b` */
static Str carried_text(const Loop *l)
{
    Str text = l->carried[0];
    for (uint32_t i = 1; i < l->call[0]->results; i++)
        text = str_format(l->script->arena, STR_FMT ", " STR_FMT, STR_ARG(text), STR_ARG(l->carried[i]));
    return text;
}

static OnnxStatement loop_statement(Loop *l)
{
    Arena *arena = l->script->arena;
    const OnnxCall *call = l->call[1];
    OnnxStatement s = {.kind = STATEMENT_BODY};
    uint32_t capacity = 0;
    Str names = carried_text(l);
    const char *left = call->results > 1 ? "(" : "", *right = call->results > 1 ? ")" : "";
    push(l, &s, &capacity,
         str_format(arena, "for i in %ld..%ld carry " STR_FMT " {\n    %s" STR_FMT "%s = " STR_FMT, l->first,
                    l->first + l->count, STR_ARG(names), left, STR_ARG(names), right, STR_ARG(call->function)),
         TOKEN_PLAIN);
    if (call->label.len)
        push(l, &s, &capacity, str_format(arena, "@" STR_FMT "{i}" STR_FMT, STR_ARG(l->head), STR_ARG(l->tail)),
             TOKEN_PLAIN);
    for (uint32_t i = 0; i < call->arguments; i++) {
        uint32_t from = carried_by(l->call[0], &call->argument[i]);
        push(l, &s, &capacity, i ? STR(", ") : STR("("), TOKEN_PLAIN);
        push(l, &s, &capacity, from == NONE ? call->argument[i].text : l->carried[from],
             from == NONE ? call->argument[i].kind : TOKEN_PLAIN);
    }
    push(l, &s, &capacity, STR(")\n}"), TOKEN_PLAIN);
    return s;
}

/* Declarations stand before the loop, and first values under the names that go round. */
static void replace(Loop *l, uint32_t begin, uint32_t end)
{
    OnnxScript *script = l->script;
    OnnxStatement fresh[MOST_ARGUMENTS + 1];
    const OnnxCall *first = l->call[0], *second = l->call[1];
    uint32_t kept = begin, count = 0;
    for (uint32_t i = 0; i < second->arguments; i++) {
        uint32_t from = carried_by(first, &second->argument[i]);
        Str initial = first->argument[i].text;
        if (from != NONE && name_carried(l, from, initial))
            fresh[count++] = copy_statement(script->arena, l->carried[from], initial);
    }
    fresh[count++] = loop_statement(l);
    for (uint32_t i = begin; i < end; i++)
        if (is_declaration(&script->statement[i]))
            script->statement[kept++] = script->statement[i];
    memcpy(&script->statement[kept], fresh, count * sizeof *fresh);
    kept += count;
    memmove(&script->statement[kept], &script->statement[end], (script->count - end) * sizeof *fresh);
    script->count -= end - kept;
}

void onnx_script_fold_calls(OnnxScript *script)
{
    Loop l = {.script = script, .loops = {.arena = script->arena}};
    uint32_t end = 0;
    count_uses(&l);
    for (uint32_t i = 0; i < script->count; i++)
        if (script->statement[i].kind == STATEMENT_CALL && find_loop(&l, i, &end)) {
            replace(&l, i, end);
            count_uses(&l);
        }
}
