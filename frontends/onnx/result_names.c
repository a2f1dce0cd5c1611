/* What results are called: by the model, in functions as their calls call them, and which of these names are none that
 * anybody has given. */
#include <ctype.h>
#include <string.h>

#include "frontends/nnc/text.h"
#include "ir/op.h"
#include "onnx/import.h"

/* In a function what it gives is called as its call calls that; what nobody outside has is *inside. */
static const char *called(const OnnxNode *node, uint32_t i, bool *inside)
{
    const char *name = node->proto->output[i];
    const OnnxScope *scope = node->scope;
    for (size_t k = 0; scope->call && !scope->outer && k < scope->function->n_output;) {
        const Onnx__NodeProto *call = scope->call->proto;
        if (strcmp(scope->function->output[k], name) != 0 || k >= call->n_output || !*call->output[k]) {
            k++;
            continue;
        }
        name = call->output[k];
        scope = scope->call->scope;
        k = 0;
    }
    *inside = scope->call;
    return name;
}

static bool is_in_graph(const OnnxNode *node, const char *name)
{
    return map_get(&node->onnx->uses, str_from(name)) != MAP_NONE;
}

/* It is of a function, and called as a value of the model's own graph. */
static bool has_namesake(const OnnxNode *node, uint32_t i)
{
    bool inside;
    const char *name = called(node, i, &inside);
    return inside && is_in_graph(node, name);
}

const char *onnx_result_name(const OnnxNode *node, uint32_t i)
{
    bool inside;
    const char *name = called(node, i, &inside), *numbered = name;
    for (uint32_t number = 2; inside && is_in_graph(node, numbered); number++)
        numbered = str_format(node->onnx->arena, "%s_%u", name, number).ptr;
    return numbered;
}

/* scatterelements and scatter_elements are ScatterElements, or scatter_elements_2, a function of several. */
static bool is_lower_case_of(Str word, const char *op)
{
    uint32_t i = 0;
    for (; i < word.len; i++) {
        if (word.ptr[i] == '_')
            continue;
        op += *op == '_';
        if (word.ptr[i] != tolower((unsigned char)*op))
            return false;
        op++;
    }
    if (*op == '_')
        op += 1 + strspn(op + 1, "0123456789");
    return !*op;
}

/* `mul_2`, `y.mul`: what nnc's own export calls a value without a name, by its op or what that is in the language. */
static bool is_word_of(const Onnx *onnx, const char *op, Str name)
{
    const char *producer = onnx->model->producer_name;
    LibraryFunction function;
    Str stem = name;
    for (uint32_t end = stem.len; end > 1 && (isdigit((unsigned char)stem.ptr[end - 1]) || stem.ptr[end - 1] == '_');)
        if (stem.ptr[--end] == '_' && end + 1 < stem.len)
            stem.len = end;
    while (memchr(stem.ptr, '.', stem.len)) {
        stem.ptr++;
        stem.len--;
    }
    return producer && strcmp(producer, "nnc") == 0 && stem.len &&
           (is_lower_case_of(stem, op) || op_find(stem) < OP_COUNT || nnc_library_find(stem, &function));
}

/* By its own op, or a function that gives it */
static bool is_after_op(const OnnxNode *node, Str name)
{
    bool after = is_word_of(node->onnx, node->proto->op_type, name);
    for (const OnnxScope *scope = node->scope; !after && scope && scope->call; scope = scope->call->scope)
        after = is_word_of(node->onnx, scope->call->proto->op_type, name);
    return after;
}

void onnx_note_result(OnnxNode *node, uint32_t i, Str name)
{
    if (has_namesake(node, i) || is_after_op(node, name))
        map_put(&node->onnx->made, name, 1);
}
