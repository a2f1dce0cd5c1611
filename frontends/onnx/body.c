/* Bodies of nodes: graphs in graphs. */
#include "onnx/body.h"

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
