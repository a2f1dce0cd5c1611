/* Calls as functions of the file, so that who looks at it sees the model as it was written: `block`, twelve times, and
 * its inside once.
 *
 * The body of each call is written as a function of its own, whose inputs are the operands and behind them what it
 * reads from around: its params, by their names behind the call's label.  Calls whose functions come to the same bytes
 * share one; those of other shapes or arguments, which are constants inside, get a number behind the name. */
#include "onnx/write/export.h"

#include <string.h>

#define DEEPEST 8 /* functions that call each other: readers count them with graphs */
#define LEAST   2 /* nodes: a function of one says less than the node */

typedef struct Called { /* a call that is being written */
    const ExportFrame *frame;
    const Node *node;
    const Graph *body;
    ExportScope scope;
    ExportFrame inner;
    ExportId *in, *out; /* of the function */
    ValueId *given;     /* what these are in the body: those of its results that are made in it */
    uint32_t in_count, out_count;
} Called;

/* Has it nodes that its results need? */
static bool is_worth(Export *e, const Graph *body)
{
    bool *needed = ARENA_ARRAY(e->arena, bool, body->value_count + 1), makes = false;
    uint32_t count = 0;
    for (uint32_t i = 0; i < body->output_count; i++) {
        needed[body->output[i].value] = true;
        makes |= body->value[body->output[i].value].role == ROLE_RESULT;
    }
    for (NodeId i = body->node_count; i-- > 0;) {
        const Node *node = &body->node[i];
        bool used = false;
        for (uint32_t k = 0; k < node->out_count && !node->dead; k++)
            used |= needed[node->out[k]];
        for (uint32_t k = 0; used && k < node->in_count; k++)
            needed[node->in[k]] = true;
        count += used;
    }
    return makes && count >= LEAST;
}

static Str label_of(const Call *call)
{
    return call->label.len ? call->label : call->name;
}

static void open_inside(Called *c)
{
    Export *e = c->frame->e;
    const ExportScope *around = export_function_around(e);
    Str path = around ? around->path : (Str){0}, label = label_of(c->node->call);
    export_function_open(
        e, &c->scope,
        str_format(e->arena, STR_FMT STR_FMT STR_FMT ".", STR_ARG(path), STR_ARG(c->frame->prefix), STR_ARG(label)));
    export_frame(&c->inner, e, c->body, (Str){0});
    export_find_own(e, c->body);
    c->in = ARENA_ARRAY(e->arena, ExportId, c->body->input_count + 1);
    for (uint32_t i = 0; i < c->node->in_count; i++) {
        Str name = c->body->value[c->body->input[i]].name;
        c->in[c->in_count++] = export_id_near(e, name.len ? str_copy(e->arena, name).ptr : "x");
        c->inner.id[c->body->input[i]] = c->in[i];
    }
}

/* Names of results are theirs, whatever is made before them. */
static void promise_results(Called *c)
{
    Export *e = c->frame->e;
    c->out = ARENA_ARRAY(e->arena, ExportId, c->body->output_count + 1);
    c->given = ARENA_ARRAY(e->arena, ValueId, c->body->output_count + 1);
    for (uint32_t i = 0; i < c->body->output_count; i++) {
        ValueId v = c->body->output[i].value;
        if (c->body->value[v].role != ROLE_RESULT)
            continue;
        c->given[c->out_count++] = v;
        if (!c->inner.wish[v])
            c->inner.wish[v] = export_promised(e, str_copy(e->arena, c->body->output[i].name).ptr);
    }
}

/* Params that no node which is left reads are no inputs. */
static void take_captures(Called *c, const Map *used)
{
    Export *e = c->frame->e;
    ExportScope *scope = &c->scope;
    ExportId *in = ARENA_ARRAY(e->arena, ExportId, c->in_count + scope->capture_count + 1);
    uint32_t kept = 0;
    memcpy(in, c->in, c->in_count * sizeof *in);
    for (uint32_t i = 0; i < scope->capture_count; i++)
        if (map_get(used, str_from(export_name(e, scope->capture[i].id))) != MAP_NONE)
            scope->capture[kept++] = scope->capture[i];
    scope->capture_count = kept;
    for (uint32_t i = 0; i < kept; i++)
        in[c->in_count + i] = scope->capture[i].id;
    c->in = in;
}

/* The function that comes to the same, or this one under a name of its own. */
static const Onnx__FunctionProto *share(Export *e, Onnx__FunctionProto *function)
{
    size_t size = onnx__function_proto__get_packed_size(function);
    uint8_t *bytes = arena_alloc(e->arena, size + 1);
    onnx__function_proto__pack(function, bytes);
    Str key = {(const char *)bytes, (uint32_t)size};
    uint32_t at = map_get(&e->function_at, key);
    if (at != MAP_NONE)
        return e->function[at];
    map_put(&e->function_at, key, e->function_count);
    Str name = str_from(export_text(e, "%s %s", function->domain, function->name));
    uint32_t number = map_get(&e->function_named, name);
    number = number == MAP_NONE ? 1 : number + 1;
    map_put(&e->function_named, name, number);
    const char *numbered = export_text(e, "%s_%u", function->name, number);
    if (number > 1)
        function->name = (char *)(uintptr_t)numbered;
    export_function_add(e, function);
    return function;
}

/* Who knows the library makes all of its results. */
static bool says_call(const Called *c)
{
    return c->node->call->library && c->out_count == c->node->out_count;
}

static const Onnx__FunctionProto *write_inside(Called *c)
{
    Export *e = c->frame->e;
    const Call *call = c->node->call;
    open_inside(c);
    promise_results(c);
    export_nodes(&c->inner);
    export_outputs(&c->inner, c->given, c->out_count, c->out);
    Onnx__FunctionProto *function =
        export_function_close(e, call->library ? EXPORT_DOMAIN : EXPORT_LOCAL, str_copy(e->arena, call->name).ptr,
                              c->in, c->in_count, c->out, c->out_count);
    Map used = export_sweep_function(e, function);
    take_captures(c, &used);
    export_function_inputs(e, function, c->in, c->in_count + c->scope.capture_count);
    if (says_call(c)) {
        function->attribute = ARENA_ARRAY(e->arena, char *, 1);
        function->attribute[function->n_attribute++] = (char *)(uintptr_t)EXPORT_CALL;
    }
    return share(e, function);
}

static ExportId capture_outside(const Called *c, const ExportCapture *capture)
{
    Export *e = c->frame->e;
    const Tensor *tensor = capture->tensor;
    const char *name = export_text(e, STR_FMT STR_FMT ".%s", STR_ARG(c->frame->prefix),
                                   STR_ARG(label_of(c->node->call)), export_name(e, capture->id));
    if (capture->leaf)
        return export_leaf(e, capture->leaf);
    if (capture->nibbles)
        return export_nibbles(e, tensor->data, tensor->type->shape.rank, tensor->type->shape.dim, name);
    return export_tensor(e, tensor, name);
}

/* `softmax(_, axis = 1)`: the call as its text has it, with its operands left out, so that who knows the library can
 * make it again. */
static void put_call(Called *c, Onnx__NodeProto *node)
{
    Export *e = c->frame->e;
    const Call *call = c->node->call;
    Text text = {0};
    text_printf(&text, STR_FMT "(", STR_ARG(call->name));
    for (uint32_t i = 0; i < c->node->in_count; i++)
        text_printf(&text, STR_FMT "_", STR_ARG(call->before[i]));
    text_printf(&text, STR_FMT ")", STR_ARG(call->rest));
    export_attribute_text(e, node, EXPORT_CALL, text_view(&text));
    text_free(&text);
}

/* What is an operand, a param or a constant of the body has its value without a node. */
static void give_results(Called *c, const ExportId *made)
{
    Export *e = c->frame->e;
    ExportFrame outside;
    uint32_t next = 0;
    export_frame(
        &outside, e, c->body,
        str_format(e->arena, STR_FMT STR_FMT ".", STR_ARG(c->frame->prefix), STR_ARG(label_of(c->node->call))));
    for (uint32_t i = 0; i < c->node->in_count; i++)
        outside.id[c->body->input[i]] = export_value(c->frame, c->node->in[i]);
    for (uint32_t i = 0; i < c->node->out_count; i++) {
        ValueId v = c->body->output[i].value;
        bool result = c->body->value[v].role == ROLE_RESULT;
        c->frame->id[c->node->out[i]] = result ? made[next++] : export_value(&outside, v);
    }
}

static void write_call(Called *c, const Onnx__FunctionProto *function)
{
    Export *e = c->frame->e;
    const Call *call = c->node->call;
    uint32_t count = c->in_count + c->scope.capture_count, made = 0;
    ExportId *in = ARENA_ARRAY(e->arena, ExportId, count + 1), *out = ARENA_ARRAY(e->arena, ExportId, c->out_count + 1);
    for (uint32_t i = 0; i < c->in_count; i++)
        in[i] = export_value(c->frame, c->node->in[i]);
    for (uint32_t i = 0; i < c->scope.capture_count; i++)
        in[c->in_count + i] = capture_outside(c, &c->scope.capture[i]);
    for (uint32_t i = 0; i < c->node->out_count; i++)
        if (c->body->value[c->body->output[i].value].role == ROLE_RESULT)
            out[made++] =
                export_id_near(e, export_value_name(c->frame, c->node->out[i], str_copy(e->arena, call->name).ptr));
    Onnx__NodeProto *node = export_append(e, function->name, in, count, out, made);
    node->domain = function->domain;
    if (says_call(c))
        put_call(c, node);
    give_results(c, out);
}

bool export_as_function(const ExportFrame *frame, const Node *node)
{
    Export *e = frame->e;
    Called c = {.frame = frame, .node = node, .body = node->sub[0]};
    if (e->flat || e->function_depth >= DEEPEST || !is_worth(e, c.body))
        return false;
    write_call(&c, write_inside(&c));
    return true;
}
