/* Values of the model in the text: declared where they are first used, captured by bodies, or written as literals. */
#include <string.h>

#include "frontends/nnc/constant.h"
#include "onnx/import.h"

#define MOST_LISTED 64 /* elements that stand in the text, as the printer has it */

OnnxValue *onnx_value_new(Onnx *onnx)
{
    return ARENA_NEW(onnx->arena, OnnxValue);
}

OnnxValue *onnx_known_value(Onnx *onnx, const Tensor *tensor, const char *wish)
{
    OnnxValue *value = onnx_value_new(onnx);
    *value = (OnnxValue){.type = tensor->type, .known = tensor, .wish = wish};
    return value;
}

void onnx_bind(OnnxScope *scope, Onnx *onnx, const char *name, OnnxValue *value)
{
    onnx_note_bound(onnx, name, value);
    map_put(&scope->value, str_from(name), onnx->value_count);
    ARENA_PUSH(onnx->arena, onnx->value, onnx->value_count, onnx->value_capacity, value);
}

OnnxValue *onnx_lookup_here(const OnnxScope *scope, const Onnx *onnx, const char *name)
{
    uint32_t index = map_get(&scope->value, str_from(name));
    return index == MAP_NONE ? NULL : onnx->value[index];
}

OnnxValue *onnx_lookup(const OnnxScope *scope, const Onnx *onnx, const char *name)
{
    OnnxValue *value = NULL;
    for (; scope && !value; scope = scope->outer)
        value = onnx_lookup_here(scope, onnx, name);
    return value;
}

/* Declarations */

static void put_items(Text *out, const Tensor *tensor, uint32_t axis, int64_t *next)
{
    const Shape *shape = &tensor->type->shape;
    if (axis == shape->rank) {
        const_print_element(out, tensor, (*next)++);
        return;
    }
    text_char(out, '[');
    for (int64_t i = 0; i < shape->dim[axis]; i++) {
        text_printf(out, i ? ", " : "");
        put_items(out, tensor, axis + 1, next);
    }
    text_char(out, ']');
}

static bool is_uniform(const Tensor *tensor, int64_t count)
{
    size_t bytes = dtype_bytes(tensor->type->dtype);
    return memcmp(tensor->data, (const char *)tensor->data + bytes, (size_t)(count - 1) * bytes) == 0;
}

/* Elements stand in the text where the printer would write them, too: all others are saved beside it. */
static void put_declaration(Onnx *onnx, Text *out, const OnnxValue *value)
{
    int64_t elements = shape_elements(&value->type->shape), next = 0;
    bool param = onnx_is_param(value);

    text_printf(out, "%s %s: " STR_FMT, param ? "param" : "const", value->name,
                STR_ARG(type_show(onnx->arena, value->type)));
    if (!param && elements > 1 && is_uniform(value->known, elements)) {
        text_printf(out, " = ");
        const_print_element(out, value->known, 0);
    } else if (!param && elements && elements <= MOST_LISTED) {
        text_printf(out, " = ");
        put_items(out, value->known, 0, &next);
    }
    text_char(out, '\n');
}

static void write_plainly(Onnx *onnx, Str what, Str statements, Str said)
{
    onnx->failed |= !nnc_compose_add(onnx->composer, what, statements);
    if (!onnx->block->folding)
        text_str(&onnx->block->text, said);
}

static void note_weight(Onnx *onnx, const OnnxValue *value)
{
    map_put(&onnx->declared, str_from(value->name), onnx->weight_count);
    ARENA_PUSH(onnx->arena, onnx->weight, onnx->weight_count, onnx->weight_capacity, value);
}

/* In the outermost block; the composer needs no text to know it. */
static void declare(Onnx *onnx, const OnnxValue *value)
{
    put_declaration(onnx, &onnx->root->text, value);
    if (onnx_is_param(value))
        nnc_compose_param(onnx->composer, str_from(value->name), value->type);
    else
        nnc_compose_const(onnx->composer, str_from(value->name), value->known);
    note_weight(onnx, value);
}

bool onnx_write_said(Onnx *onnx, Str what, Str statements, Str said)
{
    bool outermost = onnx->block == onnx->root;
    for (uint32_t i = 0; outermost && i < onnx->undeclared_count; i++)
        declare(onnx, onnx->undeclared[i]);
    if (outermost)
        onnx->undeclared_count = 0;
    write_plainly(onnx, what, statements, said);
    return !onnx->failed;
}

bool onnx_write(Onnx *onnx, Str what, Str statements)
{
    return onnx_write_said(onnx, what, statements, statements);
}

/* First elements of a state that are all the same stand in the text. */
bool onnx_declare_kept(Onnx *onnx, const char *word, const char *name, const Tensor *first)
{
    Text text = {0};
    int64_t elements = shape_elements(&first->type->shape);
    OnnxValue *stored = onnx_known_value(onnx, first, name);
    stored->name = name;
    text_printf(&text, "%s %s: " STR_FMT, word, name, STR_ARG(type_show(onnx->arena, first->type)));
    if (strcmp(word, "state") == 0 && elements && is_uniform(first, elements)) {
        text_printf(&text, " = ");
        const_print_element(&text, first, 0);
    } else
        note_weight(onnx, stored);
    text_char(&text, '\n');
    Str statement = str_copy(onnx->arena, text_view(&text));
    text_free(&text);
    return onnx_write(onnx, STR("what is kept between runs"), statement);
}

/* Names */

const char *onnx_literal(Onnx *onnx, const Tensor *tensor)
{
    Text out = {0};
    text_printf(&out, "%s(", dtype_name(tensor->type->dtype));
    const_print_element(&out, tensor, 0);
    text_char(&out, ')');
    const char *copy = str_copy(onnx->arena, text_view(&out)).ptr;
    text_free(&out);
    return copy;
}

static const char *name_folded(Onnx *onnx, const OnnxValue *value)
{
    Str name = str_format(onnx->arena, "known%u", onnx->block->numbers++);
    nnc_compose_const(onnx->composer, name, onnx_elements(value));
    return name.ptr;
}

/* Constants of the same elements, such as the mask of each layer, are one. */
static bool name_as_before(Onnx *onnx, OnnxValue *value)
{
    int64_t elements = shape_elements(&value->type->shape);
    if (onnx_is_param(value) || elements > ONNX_FOLDED)
        return false;
    Str key = map_key(value->known->data, (size_t)elements * dtype_bytes(value->type->dtype));
    uint32_t index = map_get(&onnx->constants, key);
    if (index == MAP_NONE) {
        map_put(&onnx->constants, key, onnx->constant_count);
        ARENA_PUSH(onnx->arena, onnx->constant, onnx->constant_count, onnx->constant_capacity, value);
        return false;
    }
    if (onnx->constant[index]->type != value->type)
        return false;
    value->name = onnx->constant[index]->name;
    return true;
}

static void name_known(Onnx *onnx, OnnxValue *value)
{
    if (name_as_before(onnx, value))
        return;
    value->name = onnx_unique(onnx, value->wish);
    if (onnx->block == onnx->root)
        declare(onnx, value);
    else
        ARENA_PUSH(onnx->arena, onnx->undeclared, onnx->undeclared_count, onnx->undeclared_capacity, value);
}

const char *onnx_name_value(Onnx *onnx, OnnxValue *value)
{
    if (value->known && value->type->shape.rank == 0 && !value->weight)
        return onnx_literal(onnx, value->known);
    if (onnx->block->folding && onnx_elements(value)) /* what the node itself has written is not */
        return name_folded(onnx, value);
    if (!value->name)
        name_known(onnx, value);
    Str name = str_from(value->name);
    const OnnxBlock *home = value->home ? value->home : onnx->root;
    if (home != onnx->block && nnc_compose_find(onnx->composer, name) == NONE) {
        OnnxBlock *block = onnx->block;
        ARENA_PUSH(onnx->arena, block->captured, block->captured_count, block->captured_capacity, value);
        if (value->known)
            nnc_compose_const(onnx->composer, name, value->known);
        else
            nnc_compose_input(onnx->composer, name, value->type);
    }
    return value->name;
}
