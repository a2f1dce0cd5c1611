/* Loop: rounds that are known are written out where they must be, the rest becomes while and scan. */
#include <string.h>

#include "onnx/body.h"

#define MOST_UNROLLED 256
#define MOST_BOUNDED  65536 /* rounds that all run, of which only the first count */

/* Loop */

typedef struct Loop {
    OnnxNode *node;
    const Onnx__GraphProto *body;
    uint32_t carried, stacked;
    bool counted, conditional; /* are there a number of rounds, a condition */
    double rounds, condition;  /* where they are known */
    bool rounds_known, condition_known;
    bool
        bounded; /* it stacks what each round gives, and may end before its last round; asked for when all else fails */
} Loop;

/* Is one of its slices read, or its shape?  Those that nobody reads are not made, and their number may be unknown. */
static bool reads_slices(const OnnxNode *n, uint32_t carried)
{
    for (uint32_t i = carried; i < n->out_count; i++)
        if (onnx_wants(n, i) && map_get(n->scope->uses, str_from(n->proto->output[i])) != MAP_NONE)
            return true;
    return false;
}

static void drop_slices(Loop *l)
{
    OnnxValue *unread = onnx_value_new(l->node->onnx);
    unread->bad = true; /* for nodes that read it, and are not read themselves */
    for (uint32_t i = l->carried; i < l->node->out_count; i++)
        onnx_set_value(l->node, i, unread);
    l->stacked = 0;
}

static bool start_loop(OnnxNode *n, Loop *l)
{
    const Onnx__GraphProto *body = onnx_body_graph(n, "body");
    if (!onnx_body_check(n, body))
        return false;
    *l = (Loop){.node = n,
                .body = body,
                .carried = n->in_count > 2 ? n->in_count - 2 : 0,
                .counted = onnx_has(n, 0),
                .conditional = onnx_has(n, 1)};
    if (body->n_input != l->carried + 2 || body->n_output < l->carried + 1)
        return onnx_no(n, "its body does not fit its operands");
    l->stacked = (uint32_t)body->n_output - 1 - l->carried;
    if (!reads_slices(n, l->carried))
        drop_slices(l);
    l->rounds_known = onnx_known_number(n, 0, &l->rounds);
    l->condition_known = !l->conditional || onnx_known_number(n, 1, &l->condition);
    if (!l->conditional)
        l->condition = 1;
    if (l->rounds_known && l->rounds < 0)
        l->rounds = 0;
    return true;
}

/* The body in a block of its own: names of what goes round, results, and the text. */
typedef struct Round {
    const char **carried; /* counter, condition, values */
    const char **next;    /* what the last two are in the next round: condition, values */
    OnnxValue **result;
    Text stack; /* names of the results */
    Str body;
} Round;

/* Rounds that are written out may each have other shapes. */
static bool check_carried(const Loop *l, const OnnxValue *first, const OnnxValue *next, const char *name)
{
    if (!next->type || first->type == next->type)
        return true;
    if (l->counted && !l->rounds_known)
        return onnx_known(l->node, 0) != NULL;
    if (!l->condition_known)
        return onnx_known(l->node, 1) != NULL;
    if (first->type->dtype == next->type->dtype)
        l->node->hint =
            "it can be as large as it gets from the first round on, with rounds that write into it, or put "
            "together of a slice that each round gives as a result of the Loop";
    return onnx_no(l->node, "'%s' changes its type or shape from round to round", name);
}

/* Is what a body says of the next round one truth? */
static bool check_condition(const Loop *l, const OnnxValue *condition)
{
    return (condition->type && shape_elements(&condition->type->shape) == 1) ||
           onnx_no(l->node, "its condition is no scalar");
}

static bool import_round(Loop *l, Round *r)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    const Onnx__GraphProto *body = l->body;
    OnnxScope *scope = onnx_body_scope(n);
    *r = (Round){ARENA_ARRAY(onnx->arena, const char *, l->carried + 3),
                 ARENA_ARRAY(onnx->arena, const char *, l->carried + 2),
                 ARENA_ARRAY(onnx->arena, OnnxValue *, body->n_output + 1),
                 {0},
                 {0}};
    onnx_block_open(onnx, false);
    const Type *types[] = {module_plain_type(onnx->module, DT_I64, 0, NULL),
                           module_plain_type(onnx->module, DT_BOOL, 0, NULL)};
    for (uint32_t i = 0; i < l->carried + 2; i++) {
        const char *name = onnx_body_name(body->input[i]->name);
        OnnxValue *value = onnx_body_carried(n, name, i < 2 ? types[i] : n->in[i]->type, &r->carried[i]);
        onnx->block->round = i ? onnx->block->round : value;
        onnx_bind(scope, onnx, name, value);
    }
    bool good = onnx_body_import(n, scope, body, r->result);
    for (uint32_t i = 0; good && i < l->carried; i++)
        good = check_carried(l, n->in[2 + i], r->result[1 + i], r->carried[2 + i]);
    for (uint32_t i = 0; good && i < l->carried; i++) {
        Text name = {0};
        good = onnx_body_names(n, &name, &r->result[1 + i], 1);
        r->next[1 + i] = good ? str_copy(onnx->arena, text_view(&name)).ptr : "";
        text_free(&name);
    }
    good = good && onnx_body_names(n, &r->stack, r->result + 1 + l->carried, l->stacked);
    good = good && check_condition(l, r->result[0]);
    r->next[0] = good ? onnx_name_value(onnx, r->result[0]) : "";
    if (good && r->result[0]->type->shape.rank)
        r->next[0] = onnx_text(n, "reshape(%s, shape = [])", r->next[0]);
    r->body = onnx_block_close(onnx);
    return good;
}

static bool always_goes_on(const Loop *l, const Round *r)
{
    const OnnxValue *next = r->result[0];
    bool passed = next->name && strcmp(next->name, r->carried[1]) == 0;
    return l->condition_known && l->condition != 0 && (passed || (next->known && tensor_number(next->known, 0) != 0));
}

/* In a loop that may end before its last round, the rounds behind its end change nothing. */
static void put_next(const Loop *l, const Round *r, Text *out)
{
    const char *goes_on = r->carried[1];
    if (l->bounded)
        text_printf(out, "%s <- %s + cast(%s, to = i64), %s <- %s and %s", r->carried[0], r->carried[0], goes_on,
                    goes_on, goes_on, r->next[0]);
    else
        text_printf(out, "%s <- %s + 1, %s <- %s", r->carried[0], r->carried[0], goes_on, r->next[0]);
    for (uint32_t i = 0; i < l->carried; i++) {
        const char *name = r->carried[2 + i], *next = r->next[1 + i];
        if (l->bounded)
            text_printf(out, ", %s <- select(%s, %s, %s)", name, goes_on, next, name);
        else
            text_printf(out, ", %s <- %s", name, next);
    }
}

static void put_first(Loop *l, const Round *r, Text *out)
{
    OnnxNode *n = l->node;
    text_printf(out, "with (%s: i64[] = 0, %s: bool[] = %s", r->carried[0], r->carried[1],
                l->conditional ? onnx_body_scalar(n, 1) : "true");
    for (uint32_t i = 0; i < l->carried; i++)
        text_printf(out, ", %s = %s", r->carried[2 + i], onnx_in(n, 2 + i));
    text_printf(out, ") {\n");
    onnx_body_put(out, r->body);
    text_printf(out, "} next (");
    put_next(l, r, out);
    text_printf(out, ")");
}

static bool write_rounds(Loop *l, const Round *r)
{
    OnnxNode *n = l->node;
    const char **name = ARENA_ARRAY(n->onnx->arena, const char *, n->out_count + l->carried + 3);
    Text text = {0};
    name[0] = onnx_temp(n, "rounds");
    name[1] = onnx_temp(n, "goes_on");
    uint32_t results = l->carried + l->stacked;
    for (uint32_t i = 0; i < results; i++)
        name[2 + i] = i < n->out_count ? onnx_out(n, i) : onnx_temp(n, "unused");
    onnx_body_results(&text, name, 2 + results);
    if (l->stacked) {
        text_printf(&text, "scan (%s in iota(shape = [%.0f])) ", onnx_temp(n, "step"), l->rounds);
        put_first(l, r, &text);
        text_printf(&text, " stack (%s)", r->stack.ptr);
    } else {
        text_printf(&text, "while (%s", r->carried[1]);
        if (l->counted)
            text_printf(&text, " and %s < %s", r->carried[0], onnx_body_scalar(n, 0));
        text_printf(&text, ") ");
        put_first(l, r, &text);
    }
    bool good = onnx_emit(n, "%s", text.ptr);
    text_free(&text);
    for (uint32_t i = l->carried; good && l->bounded && i < n->out_count; i++)
        onnx_set_count(n, name[0], i, 0);
    return good;
}

/* Slices of rounds need a number of these: a known one, or a bound. */
static bool check_slices(Loop *l, const Round *r)
{
    OnnxNode *n = l->node;
    if (!l->stacked || (l->rounds_known && l->rounds >= 1 && always_goes_on(l, r)))
        return true;
    if (l->counted && !l->rounds_known)
        return onnx_known(n, 0) != NULL;
    return l->bounded || onnx_no(n,
                                 "its results have as many slices as there are rounds, which is known only when "
                                 "running");
}

static bool write_as_loop(Loop *l)
{
    Round r;
    bool good = import_round(l, &r) && check_slices(l, &r) && write_rounds(l, &r);
    text_free(&r.stack);
    return good;
}

/* Slices that no round has given: none, of the shape and dtype that the body says. */
static bool stack_nothing(Loop *l)
{
    OnnxNode *n = l->node;
    Round r;
    bool good = import_round(l, &r);
    for (uint32_t i = 0; good && i < l->stacked; i++) {
        const Type *type = r.result[1 + l->carried + i]->type;
        int64_t dim[MAX_RANK] = {0};
        uint32_t rank = type->shape.rank + 1;
        if (rank > MAX_RANK)
            good = onnx_no(n, "it stacks results of %u dimensions", rank - 1);
        for (uint32_t d = 1; good && d < rank; d++)
            dim[d] = type->shape.dim[d - 1];
        if (good)
            onnx_set_known(n, l->carried + i,
                           tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, type->dtype, rank, dim)));
    }
    text_free(&r.stack);
    return good;
}

static OnnxValue *known_int(OnnxNode *n, DType dtype, int64_t number)
{
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 0, NULL));
    tensor_set_number(tensor, 0, (double)number);
    return onnx_known_value(n->onnx, tensor, "i");
}

/* The rounds one after another; the condition must be known at the end of each but the last. */
static bool unroll(Loop *l)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    OnnxValue **value = ARENA_ARRAY(onnx->arena, OnnxValue *, l->body->n_output + 1);
    Text *stack = ARENA_ARRAY(onnx->arena, Text, l->stacked + 1);
    bool goes_on = l->condition != 0, good = true;
    int64_t round = 0, around = onnx->round;

    for (uint32_t i = 0; i < l->carried; i++)
        value[1 + i] = n->in[2 + i];
    for (; good && goes_on && (!l->counted || round < l->rounds); round++) {
        OnnxScope *scope = onnx_body_scope(n);
        onnx->round = (around * MOST_UNROLLED + round) % INT32_MAX;
        onnx_bind(scope, onnx, onnx_body_name(l->body->input[0]->name), known_int(n, DT_I64, round));
        onnx_bind(scope, onnx, onnx_body_name(l->body->input[1]->name), known_int(n, DT_BOOL, 1));
        for (uint32_t i = 0; i < l->carried; i++)
            onnx_bind(scope, onnx, onnx_body_name(l->body->input[2 + i]->name), value[1 + i]);
        good = round < MOST_UNROLLED ? onnx_body_import(n, scope, l->body, value)
                                     : onnx_no(n, "it has more than %d rounds, which cannot be a loop", MOST_UNROLLED);
        bool last = l->counted && round + 1 >= l->rounds; /* which is so, whatever its condition says */
        good = good && (last || check_condition(l, value[0]));
        if (good && !last && !value[0]->known)
            good = onnx_no(n, "whether there is another round is known only when running");
        for (uint32_t i = 0; good && i < l->stacked; i++)
            good = onnx_body_names(n, &stack[i], &value[1 + l->carried + i], 1) && (text_printf(&stack[i], ", "), true);
        goes_on = good && !last && tensor_number(value[0]->known, 0) != 0;
    }
    onnx->round = around;
    for (uint32_t i = 0; good && i < l->carried; i++)
        onnx_set_value(n, i, value[1 + i]);
    if (good && l->stacked && !round)
        good = stack_nothing(l);
    for (uint32_t i = 0; i < l->stacked; i++) {
        if (good && round && onnx_wants(n, l->carried + i))
            good = onnx_emit(n, "%s = stack(%saxis = 0)", onnx_out(n, l->carried + i), stack[i].ptr);
        text_free(&stack[i]);
    }
    return good;
}

static bool must_unroll(const Loop *l)
{
    bool lists = false;
    for (uint32_t i = 0; i < l->carried; i++)
        lists |= !onnx_has(l->node, 2 + i) || !l->node->in[2 + i]->type;
    return lists;
}

/* To try another way; false after errors. */
static bool forget_refusals(OnnxNode *n, uint32_t refusals, uint32_t nodes)
{
    if (n->onnx->failed)
        return false;
    n->onnx->refusal_count = refusals;
    n->onnx->node_count = nodes;
    n->reason = n->hint = NULL;
    return true;
}

static bool write_loop(OnnxNode *n)
{
    Loop loop;
    if (!start_loop(n, &loop))
        return false;
    bool none = (loop.rounds_known && loop.rounds == 0) || (loop.condition_known && loop.condition == 0);
    bool countable = none || ((loop.rounds_known || !loop.counted) && loop.condition_known);
    if (must_unroll(&loop))
        return countable ? unroll(&loop)
                         : (loop.counted && !loop.rounds_known ? onnx_known(n, 0) : onnx_known(n, 1)) && false;
    if (n->onnx->block->folding || none || (countable && loop.rounds_known && loop.rounds <= 1))
        return unroll(&loop);
    uint32_t refusals = n->onnx->refusal_count, nodes = n->onnx->node_count;
    if (write_as_loop(&loop))
        return true;
    bool few = countable && !(loop.rounds_known && loop.rounds > MOST_UNROLLED);
    if (few && forget_refusals(n, refusals, nodes) && unroll(&loop)) /* each round may have other fixed shapes */
        return true;
    loop.bounded = loop.stacked && loop.rounds_known && loop.rounds >= 1 && loop.rounds <= MOST_BOUNDED &&
                   n->out_count <= COUNTED_RESULTS;
    return loop.bounded && forget_refusals(n, refusals, nodes) && write_as_loop(&loop);
}

const OnnxRow onnx_control[] = {
    {"Loop", 1, write_loop, NULL, NULL, true},
    {0},
};
