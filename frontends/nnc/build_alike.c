/* A frontend composes thousands of statements that differ in nothing but names, such as those of the layers of a
 * network, only to hear what types they have.  What was said of one holds for all that are alike: the same text, with
 * the types of tensors in the place of their names, and any label.
 *
 * Constants stay what they are called, as results may depend on their elements. */
#include "frontends/nnc/build_alike.h"

#include <ctype.h>
#include <string.h>

typedef struct Words {
    Str text;
    uint32_t at;
} Words;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static char char_at(const Words *w, uint32_t at)
{
    return at < w->text.len ? w->text.ptr[at] : 0;
}

static bool skip(Words *w, const char *what)
{
    uint32_t length = (uint32_t)strlen(what);
    bool there = w->text.len - w->at >= length && memcmp(w->text.ptr + w->at, what, length) == 0;
    w->at += there ? length : 0;
    return there;
}

static Str take_word(Words *w)
{
    uint32_t begin = w->at;
    while (is_word(char_at(w, w->at)))
        w->at++;
    return (Str){w->text.ptr + begin, w->at - begin};
}

/* `y = `, `(a, b) = ` */
static bool take_names(Words *w, ComposeStatement *read)
{
    bool several = skip(w, "(");
    do {
        if (read->count == COMPOSE_MOST_RESULTS || !is_word(char_at(w, w->at)))
            return false;
        read->name[read->count++] = take_word(w);
    } while (several && skip(w, ", "));
    return (!several || skip(w, ")")) && skip(w, " = ");
}

static bool take_string(Words *w, Text *key)
{
    uint32_t begin = w->at++;
    while (w->at < w->text.len && char_at(w, w->at) != '"')
        w->at += char_at(w, w->at) == '\\' ? 2 : 1;
    if (w->at >= w->text.len)
        return false;
    w->at++;
    text_str(key, (Str){w->text.ptr + begin, w->at - begin});
    return true;
}

/* `f32(0.25)` is of one type whatever the number. */
static bool skip_number(Words *w, Str word, Text *key)
{
    DType dtype;
    uint32_t at = w->at + 1;
    if (char_at(w, w->at) != '(' || !dtype_parse(word, &dtype) || !dtype_is_float(dtype))
        return false;
    at += char_at(w, at) == '-';
    if (!isdigit((unsigned char)char_at(w, at)))
        return false;
    while (is_word(char_at(w, at)) || ((char_at(w, at) == '-' || char_at(w, at) == '+') && char_at(w, at - 1) == 'e'))
        at++;
    if (char_at(w, at) != ')')
        return false;
    w->at = at + 1;
    text_str(key, word);
    text_char(key, '\3');
    return true;
}

/* What stands for the name of a tensor; all other words stay. */
static void put_word(const Builder *b, Words *w, Str word, Text *key)
{
    if (skip_number(w, word, key))
        return;
    char after = char_at(w, w->at);
    bool callee = after == '(' || after == '@';
    bool attribute = after == ' ' && char_at(w, w->at + 1) == '=' && char_at(w, w->at + 2) == ' ';
    const Binding *binding = callee || attribute ? NULL : build_scope_find(b->frame->scope, word);
    const Value *value =
        binding && binding->thing.kind == THING_VALUE ? graph_value(b->frame->graph, binding->thing.value) : NULL;
    if (!value || value->role == ROLE_CONST) {
        text_str(key, word);
        return;
    }
    text_char(key, '\1');
    text_str(key, map_key(&value->type, sizeof value->type));
    text_str(key, map_key(&value->bits, sizeof value->bits));
}

bool build_alike_read(const Builder *b, Str statement, ComposeStatement *read)
{
    Words w = {.text = statement};
    if (!take_names(&w, read))
        return false;
    text_str(&read->key, map_key(&read->count, sizeof read->count));
    while (w.at < w.text.len) {
        char c = char_at(&w, w.at);
        bool last = w.at + 1 == w.text.len;
        if (strchr("{}`<\1\2\3", c) || (c == '\n' && !last)) /* bodies, names in quotes, updates, several */
            return false;
        if (c == '"') {
            if (!take_string(&w, &read->key))
                return false;
        } else if (is_word(c)) {
            put_word(b, &w, take_word(&w), &read->key);
        } else {
            text_char(&read->key, c);
            w.at++;
        }
        if (c == '@' && is_word(char_at(&w, w.at))) {
            take_word(&w);
            text_char(&read->key, '\2');
        }
    }
    return true;
}

const ComposeAlike *build_alike_find(const ComposeTable *table, const ComposeStatement *read)
{
    uint32_t index = map_get(&table->index, text_view(&read->key));
    return index == MAP_NONE ? NULL : table->alike[index];
}

/* The results of the statement that has just been built; nothing is kept of what is no tensor, or is a constant. */
void build_alike_keep(ComposeTable *table, Builder *b, const ComposeStatement *read, ComposedCall call)
{
    const Graph *graph = b->frame->graph;
    ComposeAlike alike = {.count = read->count, .call = call};
    const Type **type = ARENA_ARRAY(b->scratch, const Type *, read->count);
    for (uint32_t i = 0; i < read->count; i++) {
        const Binding *binding = build_scope_find(b->frame->scope, read->name[i]);
        if (!binding || binding->thing.kind != THING_VALUE ||
            graph_value(graph, binding->thing.value)->role == ROLE_CONST)
            return;
        type[i] = value_type(graph, binding->thing.value);
    }
    alike.type = type;
    const ComposeAlike *kept = arena_copy(b->scratch, &alike, sizeof alike);
    map_put(&table->index, str_copy(b->scratch, text_view(&read->key)), table->count);
    ARENA_PUSH(b->scratch, table->alike, table->count, table->capacity, kept);
}

/* Binds the names to tensors of these types, which nothing computes. */
void build_alike_repeat(Builder *b, const ComposeStatement *read, const ComposeAlike *alike)
{
    for (uint32_t i = 0; i < read->count; i++) {
        ValueId value = graph_add_value(b->frame->graph, ROLE_RESULT, alike->type[i], read->name[i], (Place){0});
        build_bind(b, read->name[i], (Place){0}, build_thing_value(b, value));
    }
}
