/* Lists.  Of constants they are constants.  With a tensor in them they exist while building only: `concat` and `stack`
 * take them as their operands, loops and assignments take them apart, and functions are given their items. */
#include "frontends/nnc/build.h"

#include <string.h>

static uint32_t depth_of(const Thing *thing)
{
    return thing->kind == THING_CONST || thing->kind == THING_LIST ? thing->c.depth : 0;
}

static Thing constant_list(Builder *b, const Thing *item, uint32_t count, uint32_t depth)
{
    Const *list = ARENA_ARRAY(b->scratch, Const, count);
    for (uint32_t i = 0; i < count; i++)
        list[i] = item[i].c;
    return build_thing_const((Const){.kind = C_LIST, .item = list, .count = count, .depth = depth});
}

/* A list of things, which it keeps; a constant when all of them are. */
static Thing list_of(Builder *b, const Thing *item, uint32_t count, Place place)
{
    uint32_t depth = 1;
    bool constant = true;
    if (count > CONST_LIST_MOST)
        return build_complain(b, place, "a list longer than %u", CONST_LIST_MOST), build_thing_bad();
    b->steps += count; /* copies are work too */
    for (uint32_t i = 0; i < count; i++) {
        constant &= item[i].kind == THING_CONST;
        depth = depth_of(&item[i]) >= depth ? depth_of(&item[i]) + 1 : depth;
    }
    if (depth > CONST_DEPTH_MOST)
        return build_complain(b, place, "lists nest deeper than %d", CONST_DEPTH_MOST), build_thing_bad();
    if (constant)
        return constant_list(b, item, count, depth);
    return (Thing){.kind = THING_LIST, .many = item, .count = count, .c = {.kind = C_LIST, .depth = depth}};
}

Thing build_list(Builder *b, const AstExpr *expr)
{
    Thing *item = ARENA_ARRAY(b->scratch, Thing, expr->count);
    for (uint32_t i = 0; i < expr->count; i++) {
        item[i] = build_single(b, build_eval(b, expr->u.items[i]), expr->u.items[i]->place);
        if (item[i].kind == THING_BAD)
            return build_thing_bad();
    }
    return list_of(b, item, expr->count, expr->place);
}

bool build_is_list(const Thing *thing)
{
    return thing->kind == THING_LIST || (thing->kind == THING_CONST && thing->c.kind == C_LIST);
}

Thing build_take_apart(Builder *b, Thing thing)
{
    if (thing.kind == THING_LIST)
        return (Thing){.kind = THING_MANY, .many = thing.many, .count = thing.count};
    if (!build_is_list(&thing))
        return thing;
    Thing *item = ARENA_ARRAY(b->scratch, Thing, thing.c.count);
    for (uint32_t i = 0; i < thing.c.count; i++)
        item[i] = build_thing_const(thing.c.item[i]);
    b->steps += thing.c.count;
    return (Thing){.kind = THING_MANY, .many = item, .count = thing.c.count};
}

static void put_tensors(const Thing *thing, Thing *tensor, uint32_t *count)
{
    if (thing->kind == THING_VALUE && tensor)
        tensor[*count] = *thing;
    *count += thing->kind == THING_VALUE;
    for (uint32_t i = 0; (thing->kind == THING_LIST || thing->kind == THING_MANY) && i < thing->count; i++)
        put_tensors(&thing->many[i], tensor, count);
}

static bool has_list(const Thing *thing)
{
    bool list = thing->kind == THING_LIST;
    for (uint32_t i = 0; thing->kind == THING_MANY && i < thing->count; i++)
        list |= thing->many[i].kind == THING_LIST;
    return list;
}

Thing build_tensors_of(Builder *b, Thing thing)
{
    uint32_t count = 0, filled = 0;
    if (!has_list(&thing))
        return thing;
    put_tensors(&thing, NULL, &count);
    Thing *tensor = ARENA_ARRAY(b->scratch, Thing, count);
    put_tensors(&thing, tensor, &filled);
    return (Thing){.kind = THING_MANY, .many = tensor, .count = count};
}

/* Operators */

/* Where lists lie that grow at their end.  The longest takes up `used` items, those it grew from the first of these. */
typedef struct Room {
    Thing *item;
    uint32_t used, capacity;
} Room;

static Room *make_room(Builder *b, const Thing *item, uint32_t count, uint32_t capacity)
{
    Room *room = ARENA_NEW(b->scratch, Room);
    *room = (Room){.item = ARENA_ARRAY(b->scratch, Thing, capacity), .used = count, .capacity = capacity};
    if (count)
        memcpy(room->item, item, count * sizeof *item);
    b->steps += capacity; /* copies are work too */
    return room;
}

/* A loop that appends to a list in each round copies it only where it has outgrown its room, or where another list has
 * grown from there before. */
static Thing join(Builder *b, Thing x, Thing y, Place place)
{
    uint32_t depth = x.c.depth > y.c.depth ? x.c.depth : y.c.depth;
    Room *room = x.room;
    x = build_take_apart(b, x);
    y = build_take_apart(b, y);
    uint32_t count = x.count + y.count;
    if (count > CONST_LIST_MOST)
        return build_complain(b, place, "a list longer than %u", CONST_LIST_MOST), build_thing_bad();
    if (!room || room->item != x.many || room->used != x.count || room->capacity < count)
        room = make_room(b, x.many, x.count, 2 * count);
    if (y.count)
        memcpy(room->item + x.count, y.many, y.count * sizeof *room->item);
    b->steps += y.count;
    room->used = count;
    return (Thing){
        .kind = THING_LIST, .many = room->item, .count = count, .room = room, .c = {.kind = C_LIST, .depth = depth}};
}

static Thing repeat(Builder *b, Thing list, int64_t times, Place place)
{
    if (times < 0 || times > CONST_LIST_MOST / list.count)
        return build_complain(b, place, times < 0 ? "a negative count" : "a list longer than %u", CONST_LIST_MOST),
               build_thing_bad();
    uint32_t count = list.count * (uint32_t)times;
    Thing *item = ARENA_ARRAY(b->scratch, Thing, count);
    for (uint32_t i = 0; i < count; i++)
        item[i] = list.many[i % list.count];
    return list_of(b, item, count, place);
}

/* `list + list` and `list * 3`, where one of the operands is a list with a tensor in it. */
Thing build_list_operator(Builder *b, TokenKind op, Thing x, Thing y, Place place)
{
    if (op == T_PLUS && build_is_list(&x) && build_is_list(&y))
        return join(b, x, y, place);
    if (op == T_STAR && x.kind == THING_LIST && y.kind == THING_CONST && y.c.kind == C_INT)
        return repeat(b, x, y.c.i, place);
    build_complain(b, place,
                   "a list of tensors takes '+' with a list, '*' with a count, and no other operator; "
                   "stack and concat make one tensor of it");
    return build_thing_bad();
}

/* list[2], list[1:] */
Thing build_list_index(Builder *b, const AstExpr *expr, Thing base)
{
    const AstPick *pick = &expr->u.pick[0];
    Thing list = build_take_apart(b, base);
    int64_t begin = 0, end = list.count, step = 1;

    if (expr->count != 1 || pick->kind == AST_PICK_REST)
        return build_complain(b, expr->place, "a list takes one index or range"), build_thing_bad();
    if (pick->begin && !build_eval_int(b, pick->begin, "an index", NULL, &begin))
        return build_thing_bad();
    begin += begin < 0 ? list.count : 0;
    if (pick->kind == AST_PICK_INDEX) {
        if (begin < 0 || begin >= list.count)
            return build_complain(b, pick->place, "this index is outside of the list, which has %u item%s", list.count,
                                  list.count == 1 ? "" : "s"),
                   build_thing_bad();
        return list.many[begin];
    }
    if ((pick->end && !build_eval_int(b, pick->end, "an index", NULL, &end)) ||
        (pick->step && !build_eval_int(b, pick->step, "a step", NULL, &step)))
        return build_thing_bad();
    if (step != 1)
        return build_complain(b, pick->place, "a range of a list has no step"), build_thing_bad();
    end += end < 0 ? list.count : 0;
    begin = begin < 0 ? 0 : begin > list.count ? list.count : begin;
    end = end < begin ? begin : end > list.count ? list.count : end;
    return list_of(b, list.many + begin, (uint32_t)(end - begin), expr->place);
}

/* Functions of lists */

static Thing list_argument(Builder *b, const AstExpr *call, uint32_t index)
{
    const AstExpr *value = call->u.arg[index].value;
    Thing thing = build_eval(b, value);
    if (thing.kind != THING_BAD && thing.kind != THING_MANY && !build_is_list(&thing))
        return build_complain(b, value->place, STR_FMT " takes a list", STR_ARG(call->name->text)), build_thing_bad();
    return build_take_apart(b, thing);
}

static Thing pair_of(Builder *b, Thing first, Thing second, Place place)
{
    Thing *pair = ARENA_ARRAY(b->scratch, Thing, 2);
    pair[0] = first;
    pair[1] = second;
    return list_of(b, pair, 2, place);
}

/* enumerate([a, b]) is [[0, a], [1, b]]; zip([a, b], [c, d]) is [[a, c], [b, d]]. */
static Thing paired(Builder *b, const AstExpr *call, bool numbered)
{
    Thing first = list_argument(b, call, 0), second = numbered ? first : list_argument(b, call, 1);
    if (first.kind != THING_MANY || second.kind != THING_MANY)
        return build_thing_bad();
    if (first.count != second.count)
        return build_complain(b, call->place, "zip takes two lists of one length, not of %u and %u", first.count,
                              second.count),
               build_thing_bad();
    Thing *item = ARENA_ARRAY(b->scratch, Thing, first.count);
    for (uint32_t i = 0; i < first.count; i++)
        item[i] = pair_of(b, numbered ? build_thing_const(const_int(i)) : first.many[i], second.many[i], call->place);
    return list_of(b, item, first.count, call->place);
}

bool build_list_call(Builder *b, Str name, const AstExpr *call, Thing *result)
{
    bool numbered = str_is(name, "enumerate");
    uint32_t wanted = numbered ? 1 : 2;
    if (!numbered && !str_is(name, "zip"))
        return false;
    bool by_position = true;
    for (uint32_t i = 0; i < call->count; i++)
        by_position &= !call->u.arg[i].name.len;
    if (call->count != wanted || !by_position || call->label)
        build_complain(b, call->place, STR_FMT " takes %s by position", STR_ARG(name),
                       numbered ? "one list" : "two lists");
    *result = call->count == wanted && by_position && !call->label ? paired(b, call, numbered) : build_thing_bad();
    return true;
}
