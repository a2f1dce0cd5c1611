/* Bodies of loops and branches: frames of their own, which find the names around them.
 *
 * A value from around becomes an input of the body, and of all bodies between, when its name is looked up: it is
 * captured.  A plain number is made again inside instead, so that it stays a literal. */
#include "frontends/nnc/build.h"

void build_body_enter(Builder *b, Frame *body, const char *advice)
{
    Frame *around = b->frame;
    *body = *around;
    body->around = around;
    body->nesting++;
    body->advice = advice;
    body->graph = graph_new(b->module, around->graph->name);
    body->graph->place = around->graph->place;
    body->own = body->capture = NULL;
    body->own_count = body->own_capacity = body->capture_count = body->capture_capacity = 0;
    body->imported = body->scalars = (Map){.arena = b->scratch};
    body->yield = NULL;
    body->wanted = NULL;
    body->wanted_count = body->wanted_capacity = 0;
    body->scope = NULL;
    b->frame = body;
    build_scope_push(b)->suffix = around->scope->suffix; /* of what is captured */
    Scope *names = build_scope_push(b);                  /* empty: nothing from around may be assigned */
    build_scope_push(b)->carried = names;
}

/* The names inside are remembered, to say of them outside why they mean nothing there. */
void build_body_leave(Builder *b)
{
    const Scope *scope = b->frame->scope;
    for (uint32_t i = 0; scope && i < scope->count; i++)
        map_put(&b->inside, scope->binding[i].name, 0);
    b->frame = b->frame->around;
}

Frame *build_root(Frame *frame)
{
    while (frame->around)
        frame = frame->around;
    return frame;
}

/* Captures */

static bool is_number(const Value *value)
{
    return value->role == ROLE_CONST && !value->name.len && value->type->shape.rank == 0 && value->data->data;
}

/* A value of the graph around, in the body. */
static ValueId import_value(Builder *b, Frame *body, ValueId outer)
{
    const Value value = *graph_value(body->around->graph, outer);
    Str key = map_key(&outer, sizeof outer);
    uint32_t known = map_get(&body->imported, key);
    if (known != MAP_NONE)
        return known;

    ValueId inner;
    if (is_number(&value)) {
        inner = graph_add_const(body->graph, value.data, (Str){0}, value.place);
    } else {
        inner = graph_add_input(body->graph, value.type, value.name, value.place);
        ARENA_PUSH(b->scratch, body->capture, body->capture_count, body->capture_capacity, outer);
    }
    map_put(&body->imported, map_key(arena_copy(b->scratch, &outer, sizeof outer), sizeof outer), inner);
    return inner;
}

/* Recurses over the nesting. */
ValueId build_import_value(Builder *b, const Frame *home, Frame *frame, ValueId value)
{
    return frame == home ? value : import_value(b, frame, build_import_value(b, home, frame->around, value));
}

static const Thing *import_items(Builder *b, const Frame *home, const Thing *list)
{
    Thing *item = ARENA_ARRAY(b->scratch, Thing, list->count);
    for (uint32_t i = 0; i < list->count; i++)
        item[i] = build_import(b, home, list->many[i]);
    return item;
}

Thing build_import(Builder *b, const Frame *home, Thing thing)
{
    if (thing.kind == THING_VALUE)
        thing.value = build_import_value(b, home, b->frame, thing.value);
    if (thing.kind == THING_LIST && home != b->frame)
        thing.many = import_items(b, home, &thing);
    return thing.kind == THING_MANY ? build_thing_bad() : thing; /* no name stands for several */
}

/* The inputs of a body in the order of its node's operands. */
static void order_inputs(Builder *b, Frame *body, const ValueId *captured, uint32_t count)
{
    Graph *graph = body->graph;
    ValueId *input = ARENA_ARRAY(b->arena, ValueId, body->own_count + count);
    for (uint32_t i = 0; i < body->own_count; i++)
        input[i] = body->own[i];
    for (uint32_t i = 0; i < count; i++)
        input[body->own_count + i] = import_value(b, body, captured[i]);
    graph->input = input;
    graph->input_count = graph->input_capacity = body->own_count + count;
}

void build_share_captures(Builder *b, Frame *body, uint32_t count, ValueId **in, uint32_t *in_count)
{
    Map known = {.arena = b->scratch};
    uint32_t own = *in_count, capacity = *in_count;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t c = 0; c < body[i].capture_count; c++)
            if (map_add(&known, map_key(&body[i].capture[c], sizeof(ValueId)), 0))
                ARENA_PUSH(b->scratch, *in, *in_count, capacity, body[i].capture[c]);

    Frame *outer = b->frame;
    for (uint32_t i = 0; i < count; i++) {
        order_inputs(b, &body[i], *in + own, *in_count - own);
        b->frame = &body[i];
        build_renumber(b);
    }
    b->frame = outer;
}

ValueId build_carried_input(Builder *b, const AstTarget *target, const Type *type)
{
    Frame *body = b->frame;
    Str name = target ? build_name_text(b, target->name) : (Str){0};
    Place place = target ? target->name->place : (Place){0};
    bool temporary = !target || target->name->temporary;
    ValueId value = graph_add_input(body->graph, type, temporary ? (Str){0} : build_value_name(b, name), place);
    ARENA_PUSH(b->scratch, body->own, body->own_count, body->own_capacity, value);
    if (!target)
        return value;

    const Scope *carried = body->scope->carried;
    body->scope->carried = NULL; /* it may be called as its first value around is */
    build_bind(b, name, place, build_thing_value(b, value));
    body->scope->carried = carried;
    if (temporary)
        build_want_index(b, target->name, value);
    return value;
}

/* yield */

bool build_yield_block(Builder *b, const AstBlock *block, Yield *yield)
{
    Yield *outer = b->frame->yield;
    uint32_t errors = b->diag->error_count;
    *yield = (Yield){0};
    b->frame->yield = yield;
    build_block(b, block);
    b->frame->yield = outer;
    return yield->done && !b->exhausted && b->diag->error_count == errors;
}

void build_yield(Builder *b, const AstStmt *stmt)
{
    Yield *yield = b->frame->yield;
    if (!yield) {
        build_complain(b, stmt->place,
                       "'yield' gives the values of a branch of case or if; a loop's body ends with next (...)");
        return;
    }
    if (yield->done) {
        build_complain(b, stmt->place, "this branch has a yield already");
        diag_note(b->diag, yield->at, "the first one");
        return;
    }
    yield->done = true;
    yield->at = stmt->place;
    yield->count = stmt->yield_count;
    yield->thing = ARENA_ARRAY(b->scratch, Thing, stmt->yield_count);
    yield->place = ARENA_ARRAY(b->scratch, Place, stmt->yield_count);
    for (uint32_t i = 0; i < stmt->yield_count; i++) {
        yield->place[i] = stmt->yield[i]->place;
        yield->thing[i] = build_single(b, build_eval(b, stmt->yield[i]), yield->place[i]);
    }
}

Thing build_results(Builder *b, NodeId node)
{
    const Node *n = graph_node(b->frame->graph, node);
    Thing *list = ARENA_ARRAY(b->scratch, Thing, n->out_count);
    for (uint32_t i = 0; i < n->out_count; i++)
        list[i] = build_thing_value(b, n->out[i]);
    return n->out_count == 1 ? list[0] : (Thing){.kind = THING_MANY, .many = list, .count = n->out_count};
}
