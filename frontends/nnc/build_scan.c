/* scan (x in xs) with (h = h0) { ... } next (h <- h1) stack (y): sugar for a `while` that counts the slices of the
 * sequences, reads one of each in a round, and writes what is stacked into tensors that it carries. */
#include "frontends/nnc/build_loop.h"

#include <string.h>

#include "ops/meaning.h"

typedef struct Scan {
    LoopBuilder loop;
    ValueId *sequence; /* in the graph around */
    int64_t axis, length;
    ValueId at; /* in the body: the round's number */
} Scan;

static uint32_t position_of(const Scan *scan, uint32_t rank)
{
    return (uint32_t)(scan->axis < 0 ? scan->axis + rank : scan->axis);
}

/* Sequences */

static bool check_sequence(Builder *b, Scan *scan, uint32_t i, Place place)
{
    const Shape *shape = value_shape(b->frame->graph, scan->sequence[i]);
    if (scan->axis < -(int64_t)shape->rank || scan->axis >= (int64_t)shape->rank)
        return build_complain(b, place, "axis %lld is out of range: this is " STR_FMT, (long long)scan->axis,
                              STR_ARG(type_show(b->scratch, value_type(b->frame->graph, scan->sequence[i]))));
    int64_t length = shape->dim[position_of(scan, shape->rank)];
    if (length < 1 || length > INT32_MAX)
        return build_complain(b, place, "a scan takes a sequence of 1 to 2^31 - 1 slices, not %lld", (long long)length);
    if (i && length != scan->length)
        return build_complain(b, place, "this sequence has %lld slices, the first one %lld", (long long)length,
                              (long long)scan->length);
    scan->length = length;
    return true;
}

static bool eval_sequences(Builder *b, Scan *scan)
{
    const AstControl *ast = scan->loop.ast;
    bool ok = !ast->axis || build_eval_int(b, ast->axis, "axis", NULL, &scan->axis);
    scan->sequence = ARENA_ARRAY(b->scratch, ValueId, ast->element_count);
    if (!ast->element_count)
        return build_complain(b, scan->loop.place, "a scan needs a sequence: scan (x in xs)");
    for (uint32_t i = 0; ok && i < ast->element_count; i++) {
        const AstExpr *expr = ast->element[i].sequence;
        ok = build_as_value(b, build_eval(b, expr), DT_F32, expr->place, &scan->sequence[i]) &&
             check_sequence(b, scan, i, expr->place);
    }
    return ok;
}

/* Parts at the round's number */

static ValueId constant(Builder *b, int64_t number)
{
    Const c = const_int(number);
    return build_scalar_value(b, DT_I32, &c);
}

static ValueId positions(Builder *b, const Scan *scan, uint32_t rank, Place place)
{
    ValueId at[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        at[d] = d == position_of(scan, rank) ? scan->at : constant(b, 0);
    return op_build(b->frame->graph, OP_STACK, at, rank, NULL, place);
}

static ValueId reshape(Builder *b, ValueId x, const Shape *shape, Place place)
{
    Attr attr = {.i = shape->rank, .ints = shape->dim};
    return op_build(b->frame->graph, OP_RESHAPE, &x, 1, &attr, place);
}

static void remove_dimension(Shape *shape, uint32_t at)
{
    shape->rank--;
    memmove(shape->dim + at, shape->dim + at + 1, (shape->rank - at) * sizeof *shape->dim);
}

static void insert_dimension(Shape *shape, uint32_t at, int64_t extent)
{
    memmove(shape->dim + at + 1, shape->dim + at, (shape->rank - at) * sizeof *shape->dim);
    shape->dim[at] = extent;
    shape->rank++;
}

static ValueId read_slice(Builder *b, const Scan *scan, ValueId sequence, Place place)
{
    Shape shape = *value_shape(b->frame->graph, sequence);
    uint32_t axis = position_of(scan, shape.rank);
    ValueId in[] = {sequence, positions(b, scan, shape.rank, place)};
    Attr attr = {.i = shape.rank, .ints = shape.dim};
    shape.dim[axis] = 1;
    ValueId slice = op_build(b->frame->graph, OP_DYNAMIC_SLICE, in, 2, &attr, place);
    remove_dimension(&shape, axis);
    return reshape(b, slice, &shape, place);
}

static void bind_elements(Builder *b, const Scan *scan)
{
    const AstControl *ast = scan->loop.ast;
    const Frame *around = b->frame->around;
    for (uint32_t i = 0; i < ast->element_count; i++) {
        const AstName *name = ast->element[i].name;
        ValueId sequence = build_import_value(b, around, b->frame, scan->sequence[i]);
        ValueId element = read_slice(b, scan, sequence, name->place);
        build_bind(b, build_name_text(b, name), name->place, build_thing_value(b, element));
        if (!name->temporary)
            graph_value(b->frame->graph, element)->name = build_value_name(b, build_name_text(b, name));
    }
}

/* stack (y) */

static bool add_stacked(Builder *b, Scan *scan, const AstExpr *expr)
{
    Frame *body = b->frame;
    ValueId y, first;
    if (!build_as_value(b, build_eval(b, expr), DT_F32, expr->place, &y))
        return false;
    const Type *type = value_type(body->graph, y);
    Shape part = type->shape, whole = type->shape;
    uint32_t axis = position_of(scan, part.rank + 1);
    if (axis > part.rank || part.rank == MAX_RANK)
        return build_complain(b, expr->place, "slices of " STR_FMT " cannot be stacked along axis %lld",
                              STR_ARG(type_show(b->scratch, type)), (long long)scan->axis);
    insert_dimension(&part, axis, 1);
    insert_dimension(&whole, axis, scan->length);

    Attr attr[3];
    attr_defaults(OP_FULL, attr);
    attr[attr_index(OP_FULL, STR("shape"))] = (Attr){.i = whole.rank, .ints = whole.dim};
    attr[attr_index(OP_FULL, STR("dtype"))].i = type->dtype;
    b->frame = body->around;
    Thing empty = build_node(b, OP_FULL, NULL, 0, attr, expr->place);
    b->frame = body;
    if (empty.kind != THING_VALUE)
        return false;
    first = empty.value;
    build_loop_carry(b, &scan->loop, first);
    ValueId in[] = {build_carried_input(b, NULL, value_type(body->around->graph, first)),
                    positions(b, scan, whole.rank, expr->place), reshape(b, y, &part, expr->place)};
    graph_add_output(body->graph, op_build(body->graph, OP_DYNAMIC_UPDATE, in, 3, NULL, expr->place), (Str){0});
    return true;
}

/* The bodies */

static void build_rounds(Builder *b, Scan *scan, Frame *frame)
{
    LoopBuilder *loop = &scan->loop;
    build_loop_enter(b, loop, frame);
    scan->at = frame->own[loop->carried - 1];
    bind_elements(b, scan);
    build_block(b, loop->ast->body);
    build_loop_next(b, loop);
    graph_add_output(frame->graph, op_build2(frame->graph, OP_ADD, scan->at, constant(b, 1), loop->place), (Str){0});
    for (uint32_t i = 0; i < loop->ast->stack_count; i++)
        loop->failed |= !add_stacked(b, scan, loop->ast->stack[i]);
    build_body_leave(b);
}

static void build_condition(Builder *b, Scan *scan, Frame *frame)
{
    build_loop_enter(b, &scan->loop, frame);
    ValueId at = frame->own[scan->loop.ast->carry_count];
    ValueId more = op_build2(frame->graph, OP_LT, at, constant(b, scan->length), scan->loop.place);
    graph_add_output(frame->graph, more, STR("condition"));
    build_body_leave(b);
}

/* The node's results but for the count. */
static Thing results_of(Builder *b, const Scan *scan, NodeId id)
{
    const Node *node = graph_node(b->frame->graph, id);
    Thing *list = ARENA_ARRAY(b->scratch, Thing, node->out_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (i != scan->loop.ast->carry_count)
            list[count++] = build_thing_value(b, node->out[i]);
    return count == 1 ? list[0] : (Thing){.kind = THING_MANY, .many = list, .count = count};
}

static bool check_scan(Builder *b, const AstControl *ast, Place place)
{
    if (ast->most)
        return build_complain(b, ast->most->place, "a scan takes all slices: it has no max");
    return ast->carry_count + ast->stack_count > 0 ||
           build_complain(b, place, "this scan gives nothing: it has neither 'with' nor 'stack'");
}

Thing build_scan(Builder *b, const AstExpr *expr)
{
    Scan scan = {0};
    LoopBuilder *loop = &scan.loop;
    Frame *frame = ARENA_ARRAY(b->scratch, Frame, 2);

    build_loop_start(b, loop, expr);
    if (!check_scan(b, loop->ast, expr->place) || !eval_sequences(b, &scan) || !build_loop_limits(b, loop) ||
        loop->failed)
        return build_thing_bad();
    loop->most = scan.length;
    build_loop_carry(b, loop, constant(b, 0));
    build_rounds(b, &scan, &frame[1]);
    if (!build_loop_is_sound(b, loop))
        return build_thing_bad();
    build_condition(b, &scan, &frame[0]);
    return results_of(b, &scan, build_loop_node(b, loop, frame, 2));
}
