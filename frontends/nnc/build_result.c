/* What a function or a graph gives.  A function may give lists: the tensors in them are results of the call one by one,
 * and the caller has the lists again, of those. */
#include "frontends/nnc/build_call.h"

/* One result, found by name when the body is done. */
static bool find_result(Builder *b, const AstFormal *result, Thing *thing)
{
    Str name = result->name->text;
    uint32_t given = map_get(&b->frame->given, name);
    if (given != MAP_NONE) {
        *thing = build_thing_value(b, given);
        return true;
    }
    Binding *binding = build_lookup(b, name);
    if (!binding)
        return !b->syntax_errors && build_complain(b, result->name->place,
                                                   "'" STR_FMT "' is a result, but nothing assigns it", STR_ARG(name));
    *thing = build_bound(b, binding, result->name->place);
    return thing->kind != THING_BAD;
}

/* The tensors of a list are `hs.0`, `hs.1`; its constants stay what they are. */
static void add_items(Builder *b, Str name, const Thing *list)
{
    for (uint32_t i = 0; list->kind == THING_LIST && i < list->count; i++) {
        Str item = str_format(b->arena, STR_FMT ".%u", STR_ARG(name), i);
        if (list->many[i].kind == THING_VALUE)
            graph_add_output(b->frame->graph, list->many[i].value, item);
        else
            add_items(b, item, &list->many[i]);
    }
}

static bool add_typed_constant(Builder *b, const AstFormal *result, const Type *wanted, const Const *c, ValueId *value)
{
    const Tensor *tensor = build_tensor(b, c, wanted, result->name->place);
    if (!tensor)
        return false;
    *value = wanted->shape.rank == 0 ? build_scalar_value(b, wanted->dtype, c)
                                     : graph_add_const(b->frame->graph, tensor, (Str){0}, result->name->place);
    return true;
}

static bool add_tensor(Builder *b, const AstFormal *result, Thing *thing)
{
    Graph *graph = b->frame->graph;
    const Type *wanted = result->type ? build_eval_type(b, result->type, (Str){0}) : NULL;
    Place place = result->name->place;
    ValueId value;

    if (result->type && !wanted)
        return false;
    if (thing->kind == THING_CONST && wanted) {
        if (!add_typed_constant(b, result, wanted, &thing->c, &value))
            return false;
    } else if (!build_as_value(b, *thing, thing->kind == THING_CONST ? const_default_dtype(&thing->c) : DT_F32, place,
                               &value)) {
        return false;
    }
    if (wanted && wanted->layout.block)
        build_complain(b, result->type->place,
                       "a result has no layout of its own: state it where " STR_FMT " is computed",
                       STR_ARG(result->name->text));
    if (wanted && !build_check_type(b, result->name->text, graph->value[value].type, wanted, result->type->place))
        return false;
    graph_add_output(graph, value, str_copy(b->arena, result->name->text));
    *thing = (Thing){.kind = THING_VALUE, .value = value};
    return true;
}

static bool check_name(Builder *b, const AstFunction *function, uint32_t index)
{
    const AstName *name = function->result[index].name;
    for (uint32_t k = 0; k < index; k++)
        if (str_eq(function->result[k].name->text, name->text))
            return build_complain(b, name->place, "'" STR_FMT "' is a result already", STR_ARG(name->text));
    return true;
}

/* Are all results constants that may stay so? */
static bool are_constant(const AstFunction *function, const Thing *thing)
{
    bool all = function->result_count > 0;
    for (uint32_t i = 0; i < function->result_count; i++)
        all &= thing[i].kind == THING_CONST && !function->result[i].type;
    return all;
}

bool build_finish_results(Builder *b, const AstFunction *function, Results *results)
{
    Thing *thing = ARENA_ARRAY(b->scratch, Thing, function->result_count);
    bool ok = true;

    for (uint32_t i = 0; i < function->result_count; i++) {
        ok &= check_name(b, function, i);
        ok &= find_result(b, &function->result[i], &thing[i]);
    }
    if (!ok)
        return false;
    if (results) {
        *results = (Results){thing, function->result_count, are_constant(function, thing)};
        if (results->constant)
            return true;
    }
    for (uint32_t i = 0; i < function->result_count; i++)
        if (results && thing[i].kind == THING_LIST && !function->result[i].type)
            add_items(b, function->result[i].name->text, &thing[i]);
        else
            ok &= add_tensor(b, &function->result[i], &thing[i]);
    return ok;
}

static Thing from_outside(Builder *b, const Thing *thing, const Node *node, uint32_t *next)
{
    if (thing->kind == THING_VALUE)
        return build_thing_value(b, node->out[(*next)++]);
    Thing outside = *thing;
    if (thing->kind != THING_LIST)
        return outside;
    Thing *item = ARENA_ARRAY(b->scratch, Thing, thing->count);
    for (uint32_t i = 0; i < thing->count; i++)
        item[i] = from_outside(b, &thing->many[i], node, next);
    outside.many = item;
    return outside;
}

Thing build_results_of(Builder *b, const Results *results, const Node *node)
{
    Thing *thing = ARENA_ARRAY(b->scratch, Thing, results->count);
    uint32_t next = 0;
    for (uint32_t i = 0; i < results->count; i++)
        thing[i] = node ? from_outside(b, &results->thing[i], node, &next) : results->thing[i];
    return results->count == 1 ? thing[0] : (Thing){.kind = THING_MANY, .many = thing, .count = results->count};
}
