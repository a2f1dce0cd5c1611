/* A block as a function: its text is that of the first instance in names of its own; the instances become calls. */
#include <ctype.h>
#include <string.h>

#include "onnx/body.h"
#include "onnx/repeat.h"

#include "frontends/nnc/lex.h"

typedef struct Writer {
    Repeat *r;
    RepeatBlock *b;
    Map local; /* names of the first instance, to index into name */
    Str *name;
    uint32_t name_count, name_capacity;
    Map taken, made;             /* names of the function; those that the model does not have */
    const struct Writer *before; /* that has written it already, and so knows which names stay; or NULL */
    Map stays;                   /* words of what that has written */
} Writer;

static const OnnxStatement *statement_at(const Repeat *r, uint32_t unit)
{
    return &r->script->statement[r->unit[unit]];
}

/* Names of the function */

/* Of `block.or` what is left without its scope may be a word of the language. */
static Str unique(Writer *w, Str wish)
{
    Str name = wish;
    for (uint32_t number = 2; lex_is_reserved(name) || !map_add(&w->taken, name, 0); number++)
        name = str_format(w->r->arena, STR_FMT "_%u", STR_ARG(wish), number);
    return name;
}

static void set_local(Writer *w, Str outside, Str inside, bool made)
{
    map_put(&w->local, outside, w->name_count);
    ARENA_PUSH(w->r->arena, w->name, w->name_count, w->name_capacity, inside);
    if (made)
        map_put(&w->made, inside, 1);
}

/* weight of conv1.weight; scales_0 of scales.0, since no name begins with a digit */
static Str last_part(Arena *arena, Str name)
{
    uint32_t begin = name.len;
    while (begin > 0 && (name.ptr[begin - 1] != '.' || begin == name.len || isdigit((unsigned char)name.ptr[begin])))
        begin--;
    Str part = str_copy(arena, (Str){name.ptr + begin, name.len - begin});
    for (char *c = (char *)(uintptr_t)part.ptr; *c; c++)
        *c = *c == '.' ? '_' : *c;
    return part;
}

/* `stride = ` before a number, `conv@` and `dense@` before the first */
static Str number_wish(const RepeatBlock *b, const Repeat *r, const RepeatSlot *slot)
{
    for (uint32_t u = 0; u < b->length; u++) {
        const OnnxStatement *s = statement_at(r, b->at[0] + u);
        uint32_t numbers = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            Str before = i ? s->token[i - 1].text : (Str){0};
            if (s->token[i].kind != TOKEN_NUMBER || s->token[i].text.ptr != slot->text[0].ptr) {
                numbers += s->token[i].kind == TOKEN_NUMBER;
                continue;
            }
            Str callee = s->count > 2 ? s->token[1].text : (Str){0};
            if (numbers == 0 && (str_ends(callee, "conv@") || str_ends(callee, "dense@")))
                return str_ends(callee, "conv@") ? STR("channels") : STR("units");
            uint32_t end = before.len;
            while (end > 0 && !isalpha((unsigned char)before.ptr[end - 1]) && before.ptr[end - 1] != ',')
                end--;
            uint32_t begin = end;
            while (begin > 0 && (isalpha((unsigned char)before.ptr[begin - 1]) || before.ptr[begin - 1] == '_'))
                begin--;
            bool attribute = end > begin && end + 2 < before.len && memcmp(before.ptr + end, " = ", 3) == 0;
            return attribute ? (Str){before.ptr + begin, end - begin} : STR("n");
        }
    }
    return STR("n");
}

static bool is_declared(const Repeat *r, const RepeatValue *value)
{
    if (value->statement == NONE)
        return false;
    OnnxStatementKind kind = r->script->statement[value->statement].kind;
    return kind == STATEMENT_PARAM || kind == STATEMENT_CONST;
}

static void name_slots(Writer *w)
{
    bool has_x = false;
    for (uint32_t i = 0; i < w->b->slot_count; i++) {
        RepeatSlot *slot = &w->b->slot[i];
        bool same = str_eq(slot->text[0], slot->text[1]);
        const RepeatValue *value = slot->number ? NULL : &w->r->value[map_get(&w->r->script->ids, slot->text[0])];
        bool declared = value && is_declared(w->r, value);
        if (slot->number)
            slot->name = unique(w, number_wish(w->b, w->r, slot));
        else if (declared || (same && map_get(&w->r->script->onnx->made, slot->text[0]) == MAP_NONE))
            slot->name = unique(w, last_part(w->r->arena, slot->text[0]));
        else
            slot->name = unique(w, has_x ? STR("z") : STR("x"));
        has_x |= value && !declared && !same;
    }
}

/* A name without the scope that all have in common; a part that begins with a digit takes the one before along. */
static Str without_scope(Str name, Str common)
{
    bool within = name.len >= common.len && str_eq((Str){name.ptr, common.len}, common);
    uint32_t scope = within ? common.len : 0;
    while (scope > 0 && (scope >= name.len || !isalpha((unsigned char)name.ptr[scope])))
        for (scope--; scope > 0 && name.ptr[scope - 1] != '.';)
            scope--;
    return (Str){name.ptr + scope, name.len - scope};
}

/* mul of mul_5, which has its number of others in the whole text */
static Str without_number(Str name)
{
    uint32_t end = name.len;
    while (end > 0 && isdigit((unsigned char)name.ptr[end - 1]))
        end--;
    bool numbered = end < name.len && end > 1 && name.ptr[end - 1] == '_';
    return numbered ? without_number((Str){name.ptr, end - 1}) : name;
}

static Str result_name(const Repeat *r, const RepeatBlock *b, uint32_t instance, const RepeatOutput *output)
{
    const OnnxStatement *s = statement_at(r, b->at[instance] + output->unit);
    uint32_t at = 0;
    for (uint32_t i = 0; i < output->result; i++)
        onnx_statement_next(s, &at, TOKEN_VALUE);
    return onnx_statement_next(s, &at, TOKEN_VALUE)->text;
}

/* Of the value that is named next: has the text a name for it, or is it an expression where it is read?  So the names
 * that a reader sees are counted, and no others. */
static bool stays(const Writer *w)
{
    return !w->before || map_get(&w->stays, w->before->name[w->name_count]) != MAP_NONE;
}

static void note_words(Map *words, Str text)
{
    for (uint32_t begin = 0, end = 0; begin < text.len; begin = end + 1) {
        for (end = begin; end < text.len && (isalnum((unsigned char)text.ptr[end]) || strchr("_.", text.ptr[end]));)
            end++;
        bool called = end < text.len && strchr("(@", text.ptr[end]);
        if (!called) /* values may be called as functions are */
            map_put(words, (Str){text.ptr + begin, end - begin}, 0);
    }
}

static void name_values(Writer *w)
{
    Str scope = onnx_block_scope(w->r, w->b);
    uint32_t next = 0;
    Str only = w->b->output_count == 1 ? result_name(w->r, w->b, 0, &w->b->output[0]) : (Str){0};
    for (uint32_t u = 0; u < w->b->length; u++) {
        const OnnxStatement *s = statement_at(w->r, w->b->at[0] + u);
        uint32_t at = 0, label = 0;
        for (uint32_t i = 0; i < s->results; i++) {
            Str name = onnx_statement_next(s, &at, TOKEN_VALUE)->text, wish = name;
            bool made = map_get(&w->r->script->onnx->made, name) != MAP_NONE;
            if (s->kind == STATEMENT_PARAM) {
                set_local(w, name, w->b->name[next++].suffix, false);
                continue;
            }
            if (only.len && str_eq(name, only))
                wish = STR("y");
            else if (made && !stays(w))
                wish = STR("joined");
            else
                wish = without_scope(made ? without_number(name) : name, scope);
            set_local(w, name, unique(w, wish), made || wish.len != name.len);
        }
        while (onnx_statement_next(s, &label, TOKEN_LABEL))
            next++;
    }
}

static void reserve_params(Writer *w)
{
    for (uint32_t i = 0; i < w->b->name_count; i++)
        map_put(&w->taken, w->b->name[i].suffix, 0);
}

/* The text */

static Str local_text(const Writer *w, const OnnxToken *token, uint32_t unit, uint32_t index, uint32_t *label)
{
    uint32_t local = token->kind == TOKEN_VALUE ? map_get(&w->local, token->text) : MAP_NONE;
    const RepeatBlock *b = w->b;
    if (local != MAP_NONE)
        return w->name[local];
    if (token->kind == TOKEN_LABEL)
        return b->name[*label].suffix;
    for (uint32_t i = 0; i < b->slot_count; i++) {
        bool same = b->slot[i].number == (token->kind == TOKEN_NUMBER) && token->kind != TOKEN_PLAIN;
        for (uint32_t k = 0; same && k < b->count; k++)
            same = str_eq(b->slot[i].text[k], statement_at(w->r, b->at[k] + unit)->token[index].text);
        if (same)
            return b->slot[i].name;
    }
    return token->text;
}

static void put_body(const Writer *w, Text *out)
{
    uint32_t name = 0;
    for (uint32_t u = 0; u < w->b->length; u++) {
        const OnnxStatement *s = statement_at(w->r, w->b->at[0] + u);
        for (uint32_t i = 0; i < s->count; i++) {
            text_str(out, local_text(w, &s->token[i], u, i, &name));
            name += s->token[i].kind == TOKEN_LABEL;
        }
        name += s->kind == STATEMENT_PARAM;
        text_char(out, '\n');
    }
}

static void put_function(Writer *w, Text *out)
{
    const RepeatBlock *b = w->b;
    Str result[MOST_ARGUMENTS];
    Text plain = {0}, joined = {0};
    text_printf(out, "fn " STR_FMT "(", STR_ARG(b->function));
    for (uint32_t i = 0; i < b->slot_count; i++)
        text_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(b->slot[i].name));
    text_printf(out, ") -> (");
    for (uint32_t i = 0; i < b->output_count; i++) {
        result[i] = w->name[map_get(&w->local, result_name(w->r, b, 0, &b->output[i]))];
        text_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(result[i]));
    }
    text_printf(out, ") {\n");
    put_body(w, &plain);
    onnx_join(w->r->arena, &w->made, text_view(&plain), result, b->output_count, &joined);
    onnx_body_put(out, text_view(&joined));
    text_printf(out, "}\n\n");
    text_free(&plain);
    text_free(&joined);
}

/* Calls */

static const OnnxCall *make_call(const Repeat *r, const RepeatBlock *b, uint32_t instance)
{
    OnnxCall *call = ARENA_NEW(r->arena, OnnxCall);
    *call = (OnnxCall){.function = b->function,
                       .label = b->prefix ? b->prefix[instance] : (Str){0},
                       .argument = ARENA_ARRAY(r->arena, OnnxToken, b->slot_count),
                       .result = ARENA_ARRAY(r->arena, Str, b->output_count),
                       .arguments = b->slot_count,
                       .results = b->output_count};
    for (uint32_t i = 0; i < b->slot_count; i++)
        call->argument[i] = (OnnxToken){b->slot[i].text[instance], b->slot[i].number ? TOKEN_NUMBER : TOKEN_VALUE, 0};
    for (uint32_t i = 0; i < b->output_count; i++)
        call->result[i] = result_name(r, b, instance, &b->output[i]);
    return call;
}

static void push(Arena *arena, OnnxStatement *s, uint32_t *capacity, Str text, OnnxTokenKind kind)
{
    if (text.len)
        ARENA_PUSH(arena, s->token, s->count, *capacity, ((OnnxToken){text, kind, 0}));
}

static OnnxStatement call_statement(Arena *arena, const OnnxCall *call)
{
    OnnxStatement s = {.results = call->results, .kind = STATEMENT_CALL, .call = call, .called = NONE};
    uint32_t capacity = 0;
    push(arena, &s, &capacity, call->results > 1 ? STR("(") : (Str){0}, TOKEN_PLAIN);
    for (uint32_t i = 0; i < call->results; i++) {
        push(arena, &s, &capacity, i ? STR(", ") : (Str){0}, TOKEN_PLAIN);
        push(arena, &s, &capacity, call->result[i], TOKEN_VALUE);
    }
    push(arena, &s, &capacity, call->results > 1 ? STR(") = ") : STR(" = "), TOKEN_PLAIN);
    push(arena, &s, &capacity, call->function, TOKEN_PLAIN);
    push(arena, &s, &capacity, call->label.len ? STR("@") : (Str){0}, TOKEN_PLAIN);
    push(arena, &s, &capacity, call->label, TOKEN_PLAIN);
    for (uint32_t i = 0; i < call->arguments; i++) {
        push(arena, &s, &capacity, i ? STR(", ") : STR("("), TOKEN_PLAIN);
        push(arena, &s, &capacity, call->argument[i].text, call->argument[i].kind);
    }
    push(arena, &s, &capacity, call->arguments ? STR(")") : STR("()"), TOKEN_PLAIN);
    return s;
}

/* Elements by the names that the params have now */
static void take_names(Repeat *r, const RepeatBlock *b, const RepeatName *name, uint32_t instance)
{
    Str full = str_format(r->arena, STR_FMT "." STR_FMT, STR_ARG(b->prefix[instance]), STR_ARG(name->suffix));
    OnnxScript *script = r->script;
    const OnnxLayer *layer = name->layer ? name->layer[instance] : NULL;
    if (str_eq(full, name->text[instance]))
        return;
    if (!name->layer)
        onnx_script_put_element(script, full, script->element[map_get(&script->elements, name->text[instance])]);
    for (uint32_t i = 0; layer && i < layer->count; i++) {
        const char *param = layer->name[i] + strlen(layer->label);
        onnx_script_put_element(script, str_format(r->arena, STR_FMT "%s", STR_ARG(full), param), layer->known[i]);
    }
}

/* A call stands where the last statement of its instance stood; constants that others read too come to stand before. */
static void replace(Repeat *r, const RepeatBlock *b)
{
    OnnxScript *script = r->script;
    uint32_t unit = 0, instance = 0, kept = 0;
    const OnnxCall **call = ARENA_ARRAY(r->arena, const OnnxCall *, b->count);
    for (uint32_t i = 0; i < b->count; i++)
        call[i] = make_call(r, b, i);
    for (uint32_t i = 0; i < script->count; i++) {
        bool listed = unit < r->unit_count && r->unit[unit] == i;
        bool inside = listed && instance < b->count && unit >= b->at[instance];
        bool last = inside && unit + 1 == b->at[instance] + b->length;
        unit += listed;
        if (last)
            script->statement[kept++] = call_statement(r->arena, call[instance++]);
        else if (!inside)
            script->statement[kept++] = script->statement[i];
    }
    script->count = kept;
}

static void write_function(Writer *w, Text *out)
{
    w->local.arena = w->taken.arena = w->made.arena = w->r->arena;
    reserve_params(w);
    name_slots(w);
    name_values(w);
    put_function(w, out);
}

void onnx_block_write(Repeat *r, RepeatBlock *b, Text *functions)
{
    Writer draft = {.r = r, .b = b}, w = {.r = r, .b = b, .before = &draft, .stays = {.arena = r->arena}};
    Text text = {0};
    write_function(&draft, &text);
    note_words(&w.stays, str_copy(r->arena, text_view(&text)));
    text_free(&text);
    write_function(&w, functions);
    for (uint32_t i = 0; i < b->name_count; i++)
        for (uint32_t k = 0; k < b->count; k++)
            take_names(r, b, &b->name[i], k);
    map_put(&r->script->functions, b->function, r->script->function_count++);
    replace(r, b);
}
