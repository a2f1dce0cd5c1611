/* Calls of library functions that are given the same types and constants share one body: it is built once.
 *
 * Not shared is what makes params or states, whose names are the call's, or updates; nor what would report an error.
 * The user's own functions may call themselves, and so stay within the limit on depth. */
#include "frontends/nnc/build_call.h"

static void put_bytes(Text *key, const void *bytes, size_t count)
{
    text_str(key, map_key(bytes, count));
}

/* Every piece says how long it is, so that two lists of things cannot come to the same bytes. */
static void put_const(Text *key, const Const *c)
{
    put_bytes(key, &c->kind, sizeof c->kind);
    if (c->kind == C_LIST) {
        put_bytes(key, &c->count, sizeof c->count);
        put_bytes(key, &c->depth, sizeof c->depth);
        for (uint32_t i = 0; i < c->count; i++)
            put_const(key, &c->item[i]);
    } else if (c->kind == C_STRING) {
        put_bytes(key, &c->s.len, sizeof c->s.len);
        text_str(key, c->s);
    } else {
        put_bytes(key, &c->i, sizeof c->i); /* of a float its bits: -0.0 is not 0.0 */
    }
}

/* Of tensors the types, which there is one of each. */
static void put_thing(Text *key, const Graph *graph, const Thing *thing)
{
    put_bytes(key, &thing->kind, sizeof thing->kind);
    if (thing->kind == THING_CONST) {
        put_const(key, &thing->c);
    } else if (thing->kind == THING_VALUE) {
        put_bytes(key, &graph->value[thing->value].type, sizeof(Type *));
        put_bytes(key, &graph->value[thing->value].bits, sizeof(uint32_t));
    } else if (thing->kind == THING_LIST) {
        put_bytes(key, &thing->count, sizeof thing->count);
        put_bytes(key, &thing->c.depth, sizeof thing->c.depth);
        for (uint32_t i = 0; i < thing->count; i++)
            put_thing(key, graph, &thing->many[i]);
    }
}

Str build_share_key(Builder *b, const Binder *binder, Text *key)
{
    if (!str_is(binder->function->file->path, "nn") || !b->frame->graph)
        return (Str){0};
    put_bytes(key, &binder->function, sizeof binder->function);
    put_bytes(key, &b->frame->nesting, sizeof b->frame->nesting);
    for (uint32_t i = 0; i < binder->function->formal_count; i++) {
        const Given *given = &binder->given[i];
        put_bytes(key, &given->present, sizeof given->present);
        if (given->present)
            put_thing(key, b->frame->graph, &given->thing);
    }
    return text_view(key);
}

const Callee *build_share_find(const Builder *b, Str key)
{
    uint32_t index = key.len ? map_get(&b->shared, key) : MAP_NONE;
    return index == MAP_NONE ? NULL : b->callee[index];
}

void build_share_keep(Builder *b, Str key, const Callee *callee)
{
    if (!key.len || !callee->alike)
        return;
    map_put(&b->shared, str_copy(b->scratch, key), b->callee_count);
    ARENA_PUSH(b->scratch, b->callee, b->callee_count, b->callee_capacity,
               arena_copy(b->scratch, callee, sizeof *callee));
}
