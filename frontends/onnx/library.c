/* Calls of the library that the writer has left as they were: nodes of its domain whose attribute says the call,
 * `attention(_, heads = 12)`.  The function that the file has for it is for those who do not know the library; its
 * inputs behind the operands are the params, by their names in the call. */
#include <ctype.h>
#include <string.h>

#include "frontends/nnc/lex.h"
#include "frontends/nnc/text.h"
#include "onnx/import.h"

#define DOMAIN      "nnc"
#define MOST_TEXT   4000
#define MOST_PARAMS 64

typedef struct Said {    /* a call */
    Str name, arguments; /* with the parentheses */
    uint32_t operands;   /* places for them: words `_` */
} Said;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Where the string that begins at `at` has ended; 0: nowhere, or it has what strings of arguments have not. */
static uint32_t string_end(Str text, uint32_t at)
{
    for (uint32_t end = at + 1; end < text.len && isprint((unsigned char)text.ptr[end]) && text.ptr[end] != '\\'; end++)
        if (text.ptr[end] == '"')
            return end + 1;
    return 0;
}

/* The word or the string that begins at `at`, or one character between them; empty where there can be none such. */
static Str take_piece(Str text, uint32_t at)
{
    uint32_t end = at;
    if (text.ptr[at] == '"')
        end = string_end(text, at);
    else if (is_word(text.ptr[at]))
        while (end < text.len && is_word(text.ptr[end]))
            end++;
    else
        end += text.ptr[at] && strchr(" ,=[]+-", text.ptr[at]) != NULL;
    return (Str){text.ptr + at, end > at ? end - at : 0};
}

static bool read_arguments(Said *said)
{
    Str inside = {said->arguments.ptr + 1, said->arguments.len - 2};
    for (uint32_t at = 0; at < inside.len;) {
        Str piece = take_piece(inside, at);
        if (!piece.len)
            return false;
        said->operands += str_is(piece, "_");
        at += piece.len;
    }
    return true;
}

static uint32_t count_results(const LibraryFunction *function)
{
    uint32_t at = 0, count = 1;
    while (at + 3 < function->text.len && memcmp(function->text.ptr + at, ") -> (", 6) != 0)
        at++;
    for (at += 6; at < function->text.len && function->text.ptr[at] != ')'; at++)
        count += function->text.ptr[at] == ',';
    return count;
}

/* Of the function that is called so; MAP_NONE: there is none. */
static uint32_t results_of(Onnx *onnx, Str name)
{
    LibraryFunction function = {0};
    bool first = !onnx->library.arena;
    onnx->library.arena = onnx->arena;
    for (uint32_t at = 0; first && nnc_library_next(&at, &function);)
        map_put(&onnx->library, function.name, count_results(&function));
    return map_get(&onnx->library, name);
}

/* A call of a function that the library has, with as many results. */
static bool read_call(const OnnxNode *node, Said *said)
{
    const Onnx__AttributeProto *a = onnx_attribute(node, "call");
    const Onnx__FunctionProto *function = node->function;
    if (!node->proto->domain || strcmp(node->proto->domain, DOMAIN) != 0 || !a || !a->has_s || a->s.len > MOST_TEXT)
        return false;
    Str text = {(const char *)a->s.data, (uint32_t)a->s.len};
    uint32_t length = 0;
    while (length < text.len && is_word(text.ptr[length]))
        length++;
    *said = (Said){.name = {text.ptr, length}, .arguments = {text.ptr + length, text.len - length}};
    return text.len >= length + 2 && text.ptr[length] == '(' && text.ptr[text.len - 1] == ')' &&
           function->n_output == results_of(node->onnx, said->name) && read_arguments(said) &&
           said->operands <= node->in_count && node->in_count <= said->operands + MOST_PARAMS &&
           function->n_input == node->in_count;
}

static uint32_t list_params(const OnnxNode *node, const Said *said, OnnxParam *param)
{
    uint32_t count = 0;
    for (uint32_t i = said->operands; i < node->in_count; i++)
        param[count++] = (OnnxParam){i, node->function->input[i]};
    return count;
}

/* Are operands tensors of our own dtypes that are not all constants, and behind them only params of this call? */
static bool takes(const OnnxNode *node, const Said *said)
{
    OnnxParam param[MOST_PARAMS];
    uint32_t known = 0, params = list_params(node, said, param);
    for (uint32_t i = 0; i < said->operands; i++) {
        if (!onnx_has(node, i) || !node->in[i]->type || node->in[i]->narrow || node->in[i]->count)
            return false;
        known += node->in[i]->known && !onnx_is_param(node->in[i]);
    }
    for (uint32_t i = 0; i < params; i++)
        if (!lex_is_plain(str_from(param[i].name)))
            return false;
    return known < said->operands && (!params || onnx_owns(node, param, params));
}

static const char *fill_in(OnnxNode *node, const Said *said)
{
    Text out = {0};
    uint32_t next = 0, end = said->arguments.len - 1;
    text_char(&out, '(');
    for (uint32_t at = 1; at < end;) {
        Str piece = take_piece((Str){said->arguments.ptr, end}, at);
        if (str_is(piece, "_"))
            text_printf(&out, "%s", onnx_in(node, next++));
        else
            text_str(&out, piece);
        at += piece.len;
    }
    text_char(&out, ')');
    const char *copy = str_copy(node->onnx->arena, text_view(&out)).ptr;
    text_free(&out);
    return copy;
}

static const char *name_results(OnnxNode *node)
{
    size_t count = node->function->n_output;
    const char *names = onnx_out(node, 0);
    for (uint32_t i = 1; i < count; i++)
        names = onnx_text(node, "%s, %s", names, onnx_out(node, i));
    return count > 1 ? onnx_text(node, "(%s)", names) : names;
}

static bool write_call(OnnxNode *node)
{
    Said said;
    OnnxParam param[MOST_PARAMS];
    bool known = read_call(node, &said);
    uint32_t params = known ? list_params(node, &said, param) : 0;
    if (params && node->onnx->block->folding) /* where its params would be drawn, not the model's */
        return false;
    const OnnxLayer *layer = params ? onnx_layer(node, param, params) : NULL;
    return known &&
           onnx_emit(node, "%s = " STR_FMT "%s%s%s", name_results(node), STR_ARG(said.name), layer ? "@" : "",
                     layer ? layer->label : "", fill_in(node, &said)) &&
           (!layer || onnx_layer_fits(node, layer));
}

const OnnxRow *onnx_library_row(const OnnxNode *node)
{
    static const OnnxRow row = {"call", 1, write_call, NULL, DOMAIN, false};
    Said said;
    return read_call(node, &said) && takes(node, &said) ? &row : NULL;
}
