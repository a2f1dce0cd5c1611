/* Bodies of nodes: graphs in graphs. */
#include "onnx/body.h"

#include <ctype.h>
#include <string.h>

#include "onnx/script.h"

const Onnx__GraphProto *onnx_body_graph(const OnnxNode *n, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    return a ? a->g : NULL;
}

OnnxScope *onnx_body_scope(OnnxNode *n)
{
    OnnxScope *scope = ARENA_NEW(n->onnx->arena, OnnxScope);
    *scope = *n->scope;
    scope->outer = n->scope;
    scope->value = (Map){.arena = n->onnx->arena};
    scope->depth++;
    return scope;
}

bool onnx_body_check(OnnxNode *n, const Onnx__GraphProto *body)
{
    if (!body)
        return onnx_no(n, "it has no body");
    return n->scope->depth < ONNX_DEEPEST || onnx_no(n, "graphs are more than %d deep", ONNX_DEEPEST);
}

/* The nodes of a body, in the current block; results by their names.  False after errors or refusals. */
bool onnx_body_import(OnnxNode *n, OnnxScope *scope, const Onnx__GraphProto *body, OnnxValue **result)
{
    Onnx *onnx = n->onnx;
    if (!onnx_import_initialisers(onnx, scope, body) || !onnx_import_nodes(onnx, scope, body->node, body->n_node))
        return false;
    for (size_t i = 0; i < body->n_output; i++) {
        result[i] = onnx_lookup(scope, onnx, onnx_body_name(body->output[i]->name));
        if (!result[i])
            return onnx->failed = true,
                   diag_file_error(onnx->diag, onnx->path, "node %u: nothing in its body gives '%s'", onnx->node_count,
                                   onnx_body_name(body->output[i]->name));
        if (result[i]->bad)
            return false;
    }
    return true;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The next word from `*at` on; empty at the end. */
static Str next_word(Str text, uint32_t *at)
{
    while (*at < text.len && !is_word(text.ptr[*at]))
        (*at)++;
    uint32_t begin = *at;
    while (*at < text.len && is_word(text.ptr[*at]))
        (*at)++;
    return (Str){text.ptr + begin, *at - begin};
}

/* `x.shape` reads x, too. */
static void note_words(Map *read, Str text)
{
    uint32_t at = 0;
    for (Str word; (word = next_word(text, &at)).len;)
        for (uint32_t i = 1; i <= word.len; i++)
            if (i == word.len || word.ptr[i] == '.')
                map_put(read, (Str){word.ptr, i}, 0);
}

/* `(a, b) = ...`, `a = ...` */
static bool gives_any(const Map *read, Str statement)
{
    uint32_t at = 0;
    bool given = false;
    for (Str word; !given && (word = next_word(statement, &at)).len;) {
        given = map_get(read, word) != MAP_NONE;
        if (at + 2 < statement.len && memcmp(statement.ptr + at, ", ", 2) != 0)
            break;
    }
    return given;
}

Str onnx_body_read(Arena *arena, Str text, Str words)
{
    Map read = {.arena = arena};
    Str *statement = NULL;
    uint32_t count = 0, capacity = 0, kept;
    bool lines;
    for (uint32_t at = 0; at < text.len;) {
        uint32_t end = onnx_statement_end(text, at, &lines);
        ARENA_PUSH(arena, statement, count, capacity, ((Str){text.ptr + at, end - at}));
        at = end + 1;
    }
    note_words(&read, words);
    kept = count;
    for (uint32_t i = count; i-- > 0;) {
        if (!gives_any(&read, statement[i]))
            continue;
        note_words(&read, statement[i]);
        statement[--kept] = statement[i];
    }
    Text out = {0};
    for (uint32_t i = kept; i < count; i++)
        text_printf(&out, STR_FMT "\n", STR_ARG(statement[i]));
    Str copy = str_copy(arena, text_view(&out));
    text_free(&out);
    return copy;
}

void onnx_body_put(Text *out, Str text)
{
    for (uint32_t i = 0; i < text.len; i++) {
        if ((i == 0 || text.ptr[i - 1] == '\n') && text.ptr[i] != '\n')
            text_printf(out, "    ");
        text_char(out, text.ptr[i]);
    }
}

/* `(a, b) = `, or `a = ` */
void onnx_body_results(Text *out, const char *const *name, size_t count)
{
    text_printf(out, count == 1 ? "" : "(");
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? ", " : "", name[i]);
    text_printf(out, count == 1 ? " = " : ") = ");
}

OnnxValue *onnx_body_carried(OnnxNode *n, const char *wish, const Type *type, const char **name)
{
    OnnxValue *value = ARENA_NEW(n->onnx->arena, OnnxValue);
    *name = onnx_unique(n->onnx, wish);
    *value = (OnnxValue){.type = type, .name = *name, .home = n->onnx->block};
    nnc_compose_input(n->onnx->composer, str_from(*name), type);
    return value;
}

bool onnx_body_names(OnnxNode *n, Text *out, OnnxValue *const *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!value[i]->type)
            return onnx_no(n, "its body gives a sequence or an optional");
        if (onnx_is_open(value[i]))
            return onnx_no(n, "its body gives what is as large as data say");
        text_printf(out, "%s%s", i ? ", " : "", onnx_name_value(n->onnx, value[i]));
    }
    return true;
}

const char *onnx_body_scalar(OnnxNode *n, uint32_t i)
{
    return onnx_rank(n, i) ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, i)) : onnx_in(n, i);
}
