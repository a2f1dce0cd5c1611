/* Constants become values: scalars (shared within a graph) and arrays written in the text. */
#include "frontends/nnc/build.h"

#include <string.h>

#define MOST_FILL_BYTES ((int64_t)1 << 28) /* `const c: f32[...] = 0.0` */

bool build_check_fits(Builder *b, const Const *c, DType dtype, Place place)
{
    if (const_fits(c, dtype))
        return true;
    if (c->kind == C_FLOAT && !dtype_is_float(dtype) && build_complain_of_integers(b, place))
        return false;
    bool too_large = (c->kind == C_INT || c->kind == C_FLOAT) && dtype_is_float(dtype);
    return build_complain(b, place, STR_FMT " is %s %s %s", STR_ARG(const_show(b->scratch, c)),
                          too_large ? "too large for" : "not", strchr("if", dtype_name(dtype)[0]) ? "an" : "a",
                          dtype_name(dtype));
}

/* One value per dtype and bits in each graph, so that equal literals are the same operand. */
ValueId build_scalar_value(Builder *b, DType dtype, const Const *c)
{
    struct {
        uint64_t dtype;
        unsigned char bits[8];
    } key = {.dtype = dtype};
    Map *scalars = &b->frame->scalars;
    const Type *type = module_plain_type(b->module, dtype, 0, NULL);
    ArenaMark mark = arena_mark(b->arena);
    Tensor *tensor = tensor_new(b->arena, type);

    const_set_element(tensor, 0, c);
    memcpy(key.bits, tensor->data, dtype_bytes(dtype));
    uint32_t known = map_get(scalars, map_key(&key, sizeof key));
    if (known != MAP_NONE) {
        arena_reset(b->arena, mark);
        return known;
    }
    ValueId value = graph_add_const(b->frame->graph, tensor, (Str){0}, (Place){0});
    map_put(scalars, map_key(arena_copy(scalars->arena, &key, sizeof key), sizeof key), value);
    return value;
}

static bool fill_from(Builder *b, Tensor *tensor, const Const *c, int64_t *index, Place place)
{
    if (c->kind != C_LIST) {
        if (!build_check_fits(b, c, tensor->type->dtype, place))
            return false;
        const_set_element(tensor, (*index)++, c);
        return true;
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (!fill_from(b, tensor, &c->item[i], index, place))
            return false;
    return true;
}

/* From a list of the type's shape, or one number for all elements. */
const Tensor *build_tensor(Builder *b, const Const *c, const Type *type, Place place)
{
    Shape shape;
    if (type->layout.block)
        return build_complain(b, place, "a constant has no layout"), NULL;
    if (c->kind != C_LIST && (c->kind == C_INT || c->kind == C_FLOAT || c->kind == C_BOOL)) {
        if (type_bytes(type) > MOST_FILL_BYTES)
            return build_complain(b, place, "a constant of more than 256 MiB: use full(...), or a param"), NULL;
        if (!build_check_fits(b, c, type->dtype, place))
            return NULL;
        b->steps += (uint32_t)(type_bytes(type) / 64); /* loops could make many of these */
        Tensor *tensor = tensor_new(b->arena, type);
        for (int64_t i = 0, n = shape_elements(&type->shape); i < n; i++)
            const_set_element(tensor, i, c);
        return tensor;
    }
    if (!const_shape(c, &shape))
        return build_complain(b, place, "expected a number, or a rectangular list of numbers"), NULL;
    if (!shape_eq(&shape, &type->shape)) {
        const Type *found = module_type(b->module, type->dtype, &shape, (Layout){0});
        return build_complain(b, place, "this list is " STR_FMT ", not " STR_FMT, STR_ARG(type_show(b->scratch, found)),
                              STR_ARG(type_show(b->scratch, type))),
               NULL;
    }
    Tensor *tensor = tensor_new(b->arena, type);
    int64_t index = 0;
    return fill_from(b, tensor, c, &index, place) ? tensor : NULL;
}

bool build_as_value(Builder *b, Thing thing, DType dtype, Place place, ValueId *value)
{
    thing = build_single(b, thing, place);
    if (thing.kind == THING_VALUE) {
        *value = thing.value;
        return true;
    }
    if (thing.kind == THING_LIST)
        return build_complain(b, place, "expected a tensor, found a list of %u: stack or concat makes one of it",
                              thing.count);
    if (thing.kind != THING_CONST)
        return false;
    const Const *c = &thing.c;
    if (c->kind == C_LIST) {
        Shape shape;
        if (!const_shape(c, &shape))
            return build_complain(b, place, "expected a rectangular list of numbers");
        const Tensor *tensor = build_tensor(b, c, module_type(b->module, dtype, &shape, (Layout){0}), place);
        if (!tensor)
            return false;
        *value = graph_add_const(b->frame->graph, tensor, (Str){0}, place);
        return true;
    }
    if (c->kind != C_INT && c->kind != C_FLOAT && c->kind != C_BOOL)
        return build_complain(b, place, "expected a tensor, found %s", const_kind_name(c->kind));
    if (!build_check_fits(b, c, dtype, place))
        return false;
    *value = build_scalar_value(b, dtype, c);
    return true;
}
