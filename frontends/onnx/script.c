/* Statements of the imported graph: read, without what nobody reads, written. */
#include "onnx/script.h"

#include <ctype.h>
#include <string.h>

typedef struct Reader {
    OnnxScript *script;
    Map names; /* of values so far */
    Str text;
    uint32_t at, end; /* of the statement */
    OnnxToken *token;
    uint32_t count, capacity;
    uint32_t called, next_called; /* of the model's functions, at the statement */
} Reader;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static char char_at(const Reader *r, uint32_t at)
{
    return at < r->end ? r->text.ptr[at] : '\n';
}

static bool begins(Str text, const char *word)
{
    uint32_t length = (uint32_t)strlen(word);
    return text.len > length && memcmp(text.ptr, word, length) == 0;
}

static void put(Reader *r, uint32_t from, uint32_t to, OnnxTokenKind kind)
{
    OnnxToken token = {{r->text.ptr + from, to - from}, kind, 0};
    OnnxToken *last = r->count ? &r->token[r->count - 1] : NULL;
    if (to == from)
        return;
    if (last && last->kind == TOKEN_PLAIN && kind == TOKEN_PLAIN && last->text.ptr + last->text.len == token.text.ptr)
        last->text.len += token.text.len;
    else
        ARENA_PUSH(r->script->arena, r->token, r->count, r->capacity, token);
}

/* `1e-05` is one word. */
static uint32_t number_end(const Reader *r, uint32_t at)
{
    while (is_word(char_at(r, at)) || ((char_at(r, at) == '-' || char_at(r, at) == '+') && char_at(r, at - 1) == 'e'))
        at++;
    return at;
}

/* `x.shape` begins with the name of a value. */
static uint32_t value_length(const Reader *r, Str word)
{
    if (map_get(&r->names, word) != MAP_NONE)
        return word.len;
    while (word.len && word.ptr[word.len - 1] != '.')
        word.len--;
    word.len -= word.len > 0;
    return map_get(&r->names, word) != MAP_NONE ? word.len : 0;
}

/* The least i64, without its sign, is no number that a call can hand over. */
#define MOST_DIGITS 18

static void read_word(Reader *r)
{
    uint32_t begin = r->at, end = begin;
    if (isdigit((unsigned char)char_at(r, begin))) {
        end = number_end(r, begin);
        put(r, begin, end, end - begin > MOST_DIGITS ? TOKEN_PLAIN : TOKEN_NUMBER);
        r->at = end;
        return;
    }
    while (is_word(char_at(r, end)))
        end++;
    r->at = end;
    char before = begin ? r->text.ptr[begin - 1] : ' ', after = char_at(r, end);
    bool label = before == '@' && begin >= 2 && is_word(r->text.ptr[begin - 2]);
    bool callee = after == '(' || (after == '@' && is_word(char_at(r, end + 1)));
    Str word = {r->text.ptr + begin, end - begin};
    bool named = after == ' ' && char_at(r, end + 1) == '=' && char_at(r, end + 2) == ' ' && /* an attribute */
                 !memchr(word.ptr, '.', word.len); /* but no `x.carried = ` of a body */
    uint32_t value = label || callee || named ? 0 : value_length(r, word);
    put(r, begin, begin + value, TOKEN_VALUE);
    put(r, begin + value, end, label ? TOKEN_LABEL : TOKEN_PLAIN);
}

static void read_string(Reader *r)
{
    uint32_t begin = r->at++;
    while (r->at < r->end && char_at(r, r->at) != '"')
        r->at += char_at(r, r->at) == '\\' ? 2 : 1;
    r->at = r->at < r->end ? r->at + 1 : r->end;
    put(r, begin, r->at, TOKEN_PLAIN);
}

static void read_words(Reader *r)
{
    while (r->at < r->end)
        if (is_word(char_at(r, r->at))) {
            read_word(r);
        } else if (char_at(r, r->at) == '"') {
            read_string(r);
        } else {
            put(r, r->at, r->at + 1, TOKEN_PLAIN);
            r->at++;
        }
}

static void read_result(Reader *r)
{
    uint32_t end = r->at;
    while (is_word(char_at(r, end)))
        end++;
    put(r, r->at, end, TOKEN_VALUE);
    map_put(&r->names, (Str){r->text.ptr + r->at, end - r->at}, 0);
    r->at = end;
}

/* What stands before `=` or the type */
static void read_results(Reader *r, OnnxStatement *s)
{
    Str line = {r->text.ptr + r->at, r->end - r->at};
    if (begins(line, "state ")) { /* with its update: both stay where they are */
        put(r, r->at, r->at + 6, TOKEN_PLAIN);
        r->at += 6;
        read_result(r);
        s->results = 1;
        s->kind = STATEMENT_BODY;
        return;
    }
    s->kind = begins(line, "param ") ? STATEMENT_PARAM : begins(line, "const ") ? STATEMENT_CONST : STATEMENT_PLAIN;
    uint32_t skip = s->kind == STATEMENT_PLAIN ? line.ptr[0] == '(' : 6;
    put(r, r->at, r->at + skip, TOKEN_PLAIN);
    r->at += skip;
    for (;;) {
        read_result(r);
        s->results++;
        if (s->kind != STATEMENT_PLAIN || !skip || char_at(r, r->at) != ',')
            break;
        put(r, r->at, r->at + 2, TOKEN_PLAIN);
        r->at += 2;
    }
}

uint32_t onnx_statement_end(Str text, uint32_t at, bool *lines)
{
    int depth = 0;
    bool quoted = false;
    *lines = false;
    for (; at < text.len; at++) {
        char c = text.ptr[at];
        quoted ^= c == '"' && text.ptr[at - 1] != '\\';
        depth += !quoted && c == '{';
        depth -= !quoted && c == '}';
        if (c == '\n' && depth <= 0)
            return at;
        *lines |= c == '\n';
    }
    return at;
}

/* Calls come in the order in which they begin, and lie inside each other. */
static uint32_t find_called(Reader *r)
{
    const Onnx *onnx = r->script->onnx;
    while (r->next_called < onnx->called_count && onnx->called[r->next_called].begin <= r->at)
        r->called = r->next_called++;
    while (r->called != NONE && onnx->called[r->called].end <= r->at)
        r->called = onnx->called[r->called].outer;
    return r->called;
}

static void read_statement(Reader *r)
{
    OnnxStatement s = {.called = find_called(r)};
    bool lines;
    r->end = onnx_statement_end(r->text, r->at, &lines);
    r->token = NULL;
    r->count = r->capacity = 0;
    read_results(r, &s);
    s.stored = s.kind == STATEMENT_CONST && !memchr(r->text.ptr + r->at, '=', r->end - r->at);
    read_words(r);
    s.token = r->token;
    s.count = r->count;
    Str behind = s.count > 1 ? s.token[1].text : (Str){0};
    s.updates = begins(behind, " <-");
    s.kind = lines || s.updates ? STATEMENT_BODY : s.kind;
    ARENA_PUSH(r->script->arena, r->script->statement, r->script->count, r->script->capacity, s);
    r->at = r->end + 1;
}

OnnxScript *onnx_script_read(Onnx *onnx, Str text, const Graph *graph, const Str *result)
{
    OnnxScript *script = ARENA_NEW(onnx->arena, OnnxScript);
    *script = (OnnxScript){.onnx = onnx,
                           .arena = onnx->arena,
                           .result = result,
                           .results = graph->output_count,
                           .elements = {.arena = onnx->arena},
                           .ids = {.arena = onnx->arena},
                           .classes = {.arena = onnx->arena},
                           .functions = {.arena = onnx->arena},
                           .library = {.arena = onnx->arena}};
    Reader r = {.script = script, .names = {.arena = onnx->arena}, .text = text, .called = NONE};
    for (uint32_t i = 0; i < graph->input_count; i++)
        map_put(&r.names, graph_value(graph, graph->input[i])->name, 0);
    while (r.at < text.len)
        read_statement(&r);
    return script;
}

OnnxToken *onnx_statement_next(const OnnxStatement *s, uint32_t *at, OnnxTokenKind kind)
{
    while (*at < s->count)
        if (s->token[(*at)++].kind == kind)
            return &s->token[*at - 1];
    return NULL;
}

/* Unread */

static bool is_read(const OnnxStatement *s, const Map *read)
{
    uint32_t at = 0;
    if (s->updates) /* the next run reads it */
        return true;
    for (uint32_t i = 0; i < s->results; i++)
        if (map_get(read, onnx_statement_next(s, &at, TOKEN_VALUE)->text) != MAP_NONE)
            return true;
    return false;
}

void onnx_script_drop_unread(OnnxScript *script)
{
    Map read = {.arena = script->arena};
    uint32_t first = script->count;
    for (uint32_t i = 0; i < script->results; i++)
        map_put(&read, script->result[i], 0);
    for (uint32_t i = script->count; i-- > 0;) {
        OnnxStatement s = script->statement[i];
        if (!is_read(&s, &read))
            continue;
        uint32_t at = 0;
        for (OnnxToken *t; (t = onnx_statement_next(&s, &at, TOKEN_VALUE));)
            map_put(&read, t->text, 0);
        script->statement[--first] = s;
    }
    script->statement += first;
    script->count -= first;
}

/* Copies */

/* `y = x` */
static bool is_copy(const OnnxStatement *s, Str *to, Str *from)
{
    uint32_t at = 0, length = 0;
    if (s->kind != STATEMENT_PLAIN || s->results != 1 || s->updates)
        return false;
    OnnxToken *first = onnx_statement_next(s, &at, TOKEN_VALUE), *second = onnx_statement_next(s, &at, TOKEN_VALUE);
    for (uint32_t i = 0; i < s->count; i++)
        length += s->token[i].text.len;
    if (!second || length != first->text.len + 3 + second->text.len)
        return false;
    *to = first->text;
    *from = second->text;
    return true;
}

static void rename_value(OnnxScript *script, Str from, Str to)
{
    for (uint32_t i = 0; i < script->count; i++) {
        uint32_t at = 0;
        for (OnnxToken *t; (t = onnx_statement_next(&script->statement[i], &at, TOKEN_VALUE));)
            if (str_eq(t->text, from))
                t->text = to;
    }
    uint32_t weight = map_get(&script->onnx->declared, from);
    if (weight != MAP_NONE)
        map_put(&script->onnx->declared, to, weight);
}

/* Is it no input, param or state, whose names stay? */
static bool is_computed(const OnnxScript *script, Str name)
{
    for (uint32_t i = 0; i < script->count; i++) {
        const OnnxStatement *s = &script->statement[i];
        uint32_t at = 0;
        for (uint32_t k = 0; k < s->results && !s->updates; k++)
            if (str_eq(onnx_statement_next(s, &at, TOKEN_VALUE)->text, name))
                return s->kind != STATEMENT_PARAM && !str_is(s->token[0].text, "state ");
    }
    return false;
}

static bool is_result(const OnnxScript *script, Str name)
{
    for (uint32_t i = 0; i < script->results; i++)
        if (str_eq(script->result[i], name))
            return true;
    return false;
}

void onnx_script_drop_copies(OnnxScript *script)
{
    uint32_t kept = 0;
    Str to, from;
    for (uint32_t i = 0; i < script->count; i++) {
        OnnxStatement s = script->statement[i];
        bool drops =
            is_copy(&s, &to, &from) && is_result(script, to) && !is_result(script, from) && is_computed(script, from);
        if (drops)
            rename_value(script, from, to);
        else
            script->statement[kept++] = s;
    }
    script->count = kept;
}

/* Names */

void onnx_script_put_element(OnnxScript *script, Str name, const Tensor *tensor)
{
    map_put(&script->elements, name, script->element_count);
    ARENA_PUSH(script->arena, script->element, script->element_count, script->element_capacity, tensor);
}

OnnxLayer *onnx_script_layer(const OnnxScript *script, Str label)
{
    uint32_t index = map_get(&script->onnx->labels, label);
    return index == MAP_NONE ? NULL : script->onnx->layer[index];
}

static void take_declared(OnnxScript *script, const OnnxStatement *s)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->results; i++) {
        Str name = onnx_statement_next(s, &at, TOKEN_VALUE)->text;
        uint32_t index = map_get(&script->onnx->declared, name);
        onnx_script_put_element(script, name, index == MAP_NONE ? NULL : script->onnx->weight[index]->known);
    }
}

static bool is_free(const OnnxScript *script, const OnnxLayer *layer)
{
    for (uint32_t i = 0; i < layer->count; i++)
        if (map_get(&script->elements, str_from(layer->wished[i])) != MAP_NONE)
            return false;
    return true;
}

static void settle(OnnxScript *script, OnnxToken *label)
{
    OnnxLayer *layer = onnx_script_layer(script, label->text);
    if (!layer)
        return;
    bool wished = strcmp(layer->label, layer->wish) != 0 && is_free(script, layer);
    if (wished) {
        label->text = str_from(layer->wish);
        map_put(&script->onnx->labels, label->text, map_get(&script->onnx->labels, str_from(layer->label)));
        layer->label = layer->wish;
        layer->name = layer->wished;
    }
    for (uint32_t i = 0; i < layer->count; i++)
        onnx_script_put_element(script, str_from(layer->name[i]), layer->known[i]);
}

void onnx_script_settle_names(OnnxScript *script)
{
    for (uint32_t i = 0; i < script->count; i++)
        take_declared(script, &script->statement[i]);
    for (uint32_t i = 0; i < script->count; i++) {
        uint32_t at = 0;
        for (OnnxToken *t; (t = onnx_statement_next(&script->statement[i], &at, TOKEN_LABEL));)
            settle(script, t);
    }
}

/* Writing */

void onnx_statement_write(const OnnxStatement *s, Text *out)
{
    for (uint32_t i = 0; i < s->count; i++)
        text_str(out, s->token[i].text);
    text_char(out, '\n');
}

void onnx_script_write(const OnnxScript *script, Text *out)
{
    for (uint32_t i = 0; i < script->count; i++)
        onnx_statement_write(&script->statement[i], out);
}
