/* Loop: rounds that are known are written out where they must be, the rest becomes while and scan. */
#include <string.h>

#include "onnx/body.h"

#define MOST_UNROLLED 256
#define MOST_BOUNDED  65536  /* rounds that all run, of which only the first count */
#define ENDLESS       0x1p53 /* so many rounds never end */

/* Loop */

typedef struct Loop {
    OnnxNode *node;
    const Onnx__GraphProto *body; /* of what is read: the rest of the node is not there */
    uint32_t carried, stacked;
    uint32_t *at;              /* which result of the node each of these is; operand 2 + at is the first value */
    bool counted, conditional; /* are there a number of rounds, a condition */
    double rounds, condition;  /* where they are known */
    bool rounds_known, condition_known;
    bool counts; /* its body reads the number of the round */
    bool
        bounded; /* it stacks what each round gives, and may end before its last round; asked for when all else fails */
} Loop;

/* What nobody reads, for nodes that read it, and are not read themselves. */
static void set_unread(OnnxNode *n, uint32_t i)
{
    OnnxValue *unread = onnx_value_new(n->onnx);
    unread->bad = true;
    onnx_set_value(n, i, unread);
}

static void find_live(Loop *l, const Onnx__GraphProto *body, uint32_t carried)
{
    OnnxNode *n = l->node;
    OnnxLive live;
    onnx_find_live(n, body, carried, &live);
    l->body = live.body;
    l->at = ARENA_ARRAY(n->onnx->arena, uint32_t, body->n_output);
    for (uint32_t i = 0; i + 1 < body->n_output; i++) {
        if (!live.kept[i])
            set_unread(n, i);
        else
            l->at[l->carried + l->stacked] = i;
        l->carried += live.kept[i] && i < carried;
        l->stacked += live.kept[i] && i >= carried;
    }
    l->counts = live.counts || onnx_body_draws(live.body);
}

static bool start_loop(OnnxNode *n, Loop *l)
{
    const Onnx__GraphProto *body = onnx_body_graph(n, "body");
    if (!onnx_body_check(n, body))
        return false;
    *l = (Loop){.node = n, .counted = onnx_has(n, 0), .conditional = onnx_has(n, 1)};
    uint32_t carried = n->in_count > 2 ? n->in_count - 2 : 0;
    if (body->n_input != carried + 2 || body->n_output < carried + 1)
        return onnx_no(n, "its body does not fit its operands");
    find_live(l, body, carried);
    l->rounds_known = onnx_known_number(n, 0, &l->rounds);
    l->condition_known = !l->conditional || onnx_known_number(n, 1, &l->condition);
    if (!l->conditional)
        l->condition = 1;
    if (l->rounds_known && l->rounds < 0)
        l->rounds = 0;
    return true;
}

static OnnxValue *first_value(const Loop *l, uint32_t i)
{
    return l->node->in[2 + l->at[i]];
}

/* The body in a block of its own: names of what goes round, results, and the text. */
typedef struct Round {
    const char *counter, *flag; /* how many rounds were before it, and whether there is this one; NULL: nobody asks */
    const char **carried, **next;
    const char *again; /* whether there is a next one */
    OnnxValue **result;
    Text stack; /* names of the results */
    Str body;
} Round;

static OnnxValue *known_int(OnnxNode *n, DType dtype, int64_t number)
{
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 0, NULL));
    tensor_set_number(tensor, 0, (double)number);
    return onnx_known_value(n->onnx, tensor, "i");
}

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

/* The flag is true in each round that there is; but a bounded loop has some more. */
static void bind_inputs(Loop *l, OnnxScope *scope, Round *r)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    const char *counter = onnx_body_name(l->body->input[0]->name), *flag = onnx_body_name(l->body->input[1]->name);
    OnnxValue *count = NULL, *goes_on = known_int(n, DT_BOOL, 1);
    if (l->counts || l->bounded || (l->counted && !l->rounds_known))
        count = onnx_body_carried(n, counter, module_plain_type(onnx->module, DT_I64, 0, NULL), &r->counter);
    if (l->bounded)
        goes_on = onnx_body_carried(n, flag, module_plain_type(onnx->module, DT_BOOL, 0, NULL), &r->flag);
    onnx->block->round = count;
    onnx_bind(scope, onnx, counter, count ? count : known_int(n, DT_I64, 0));
    onnx_bind(scope, onnx, flag, goes_on);
    for (uint32_t i = 0; i < l->carried; i++) {
        const char *name = onnx_body_name(l->body->input[2 + i]->name);
        onnx_bind(scope, onnx, name, onnx_body_carried(n, name, first_value(l, i)->type, &r->carried[i]));
    }
}

static bool import_round(Loop *l, Round *r)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    OnnxScope *scope = onnx_body_scope(n);
    *r = (Round){.carried = ARENA_ARRAY(onnx->arena, const char *, l->carried + 1),
                 .next = ARENA_ARRAY(onnx->arena, const char *, l->carried + 1),
                 .result = ARENA_ARRAY(onnx->arena, OnnxValue *, l->body->n_output + 1)};
    onnx_block_open(onnx, false);
    bind_inputs(l, scope, r);
    bool good = onnx_body_import(n, scope, l->body, r->result);
    for (uint32_t i = 0; good && i < l->carried; i++)
        good = check_carried(l, first_value(l, i), r->result[1 + i], r->carried[i]);
    for (uint32_t i = 0; good && i < l->carried; i++) {
        Text name = {0};
        good = onnx_body_names(n, &name, &r->result[1 + i], 1);
        r->next[i] = good ? str_copy(onnx->arena, text_view(&name)).ptr : "";
        text_free(&name);
    }
    good = good && onnx_body_names(n, &r->stack, r->result + 1 + l->carried, l->stacked);
    good = good && check_condition(l, r->result[0]);
    r->again = good ? onnx_name_value(onnx, r->result[0]) : "";
    if (good && r->result[0]->type->shape.rank)
        r->again = onnx_text(n, "reshape(%s, shape = [])", r->again);
    Text words = {0};
    for (uint32_t i = 0; good && i < l->carried; i++)
        text_printf(&words, "%s ", r->next[i]);
    text_printf(&words, "%s %s", r->again, r->stack.ptr ? r->stack.ptr : "");
    r->body = onnx_body_read(onnx->arena, onnx_block_close(onnx), text_view(&words));
    text_free(&words);
    return good;
}

/* Does what a round says of the next one hold in each? */
static bool goes_on(const Round *r)
{
    return r->result[0]->known && tensor_number(r->result[0]->known, 0) != 0;
}

static bool always_goes_on(const Loop *l, const Round *r)
{
    return l->condition_known && l->condition != 0 && goes_on(r);
}

/* Does it carry the number of the round?  A scan that runs all rounds goes over these numbers. */
static bool carries_count(const Loop *l, const Round *r)
{
    return r->counter && (l->bounded || !l->stacked);
}

/* Several in a list: what stands before each */
static const char *between(uint32_t *count)
{
    return (*count)++ ? ", " : "";
}

static void put_first(Loop *l, const Round *r, Text *out)
{
    OnnxNode *n = l->node;
    uint32_t count = 0;
    text_printf(out, "with (");
    for (uint32_t i = 0; i < l->carried; i++)
        text_printf(out, "%s%s = %s", between(&count), r->carried[i], onnx_in(n, 2 + l->at[i]));
    if (carries_count(l, r))
        text_printf(out, "%s%s: i64[] = 0", between(&count), r->counter);
    if (r->flag)
        text_printf(out, "%s%s: bool[] = %s", between(&count), r->flag,
                    l->conditional ? onnx_body_scalar(n, 1) : "true");
    text_printf(out, ") ");
}

/* In a loop that may end before its last round, the rounds behind its end change nothing. */
static void put_bounded_next(const Loop *l, const Round *r, Text *out)
{
    for (uint32_t i = 0; i < l->carried; i++)
        text_printf(out, "%s <- select(%s, %s, %s), ", r->carried[i], r->flag, r->next[i], r->carried[i]);
    text_printf(out, "%s <- %s + cast(%s, to = i64), %s <- %s and %s", r->counter, r->counter, r->flag, r->flag,
                r->flag, r->again);
}

static void put_next(const Loop *l, const Round *r, Text *out)
{
    uint32_t count = 0;
    text_printf(out, " next (");
    if (l->bounded)
        put_bounded_next(l, r, out);
    for (uint32_t i = 0; i < l->carried && !l->bounded; i++)
        text_printf(out, "%s%s <- %s", between(&count), r->carried[i], r->next[i]);
    if (carries_count(l, r) && !l->bounded)
        text_printf(out, "%s%s <- %s + 1", between(&count), r->counter, r->counter);
    if (r->flag && !l->bounded)
        text_printf(out, "%s%s <- %s", between(&count), r->flag, r->again);
    text_printf(out, ")");
}

static void put_rounds(Loop *l, const Round *r, Text *out)
{
    bool carries = l->carried || carries_count(l, r) || r->flag;
    if (carries)
        put_first(l, r, out);
    if (l->rounds_known && l->rounds < ENDLESS && !l->stacked)
        text_printf(out, "max = %.0f ", l->rounds);
    text_printf(out, "{\n");
    onnx_body_put(out, r->body);
    text_printf(out, "}");
    if (carries)
        put_next(l, r, out);
}

static void put_scan(Loop *l, const Round *r, Text *out)
{
    bool counts = r->counter && !carries_count(l, r);
    text_printf(out, counts ? "scan (%s in iota(shape = [%.0f], dtype = i64)) " : "scan (%s in iota(shape = [%.0f])) ",
                counts ? r->counter : onnx_temp(l->node, "step"), l->rounds);
    put_rounds(l, r, out);
    text_printf(out, " stack (%s)", r->stack.ptr);
}

/* Where the first round runs in any case, and says whether there is another one */
static void put_do(Loop *l, const Round *r, Text *out)
{
    text_printf(out, "do ");
    put_rounds(l, r, out);
    text_printf(out, " while (%s)", r->again);
}

static void put_while(Loop *l, Round *r, Text *out)
{
    OnnxNode *n = l->node;
    bool bound = l->counted && !l->rounds_known, starts = l->condition_known;
    if (!goes_on(r))
        r->flag = onnx_temp(n, "goes_on");
    const char *flag = r->flag ? r->flag : starts ? bound ? NULL : "true" : onnx_body_scalar(n, 1);
    text_printf(out, "while (%s", flag ? flag : "");
    if (bound)
        text_printf(out, "%s%s < %s", flag ? " and " : "", r->counter, onnx_body_scalar(n, 0));
    text_printf(out, ") ");
    put_rounds(l, r, out);
}

static bool write_rounds(Loop *l, Round *r)
{
    OnnxNode *n = l->node;
    const char **name = ARENA_ARRAY(n->onnx->arena, const char *, l->carried + l->stacked + 3), *rounds = NULL;
    uint32_t results = 0;
    Text loop = {0}, text = {0};
    if (l->stacked)
        put_scan(l, r, &loop);
    else if (l->condition_known && !goes_on(r) && !(l->counted && !l->rounds_known))
        put_do(l, r, &loop);
    else
        put_while(l, r, &loop);
    for (uint32_t i = 0; i < l->carried; i++)
        name[results++] = onnx_out(n, l->at[i]);
    if (carries_count(l, r))
        name[results++] = rounds = onnx_temp(n, l->bounded ? "rounds" : "unused");
    if (r->flag)
        name[results++] = onnx_temp(n, "unused");
    for (uint32_t i = 0; i < l->stacked; i++)
        name[results++] = onnx_out(n, l->at[l->carried + i]);
    onnx_body_results(&text, name, results);
    text_str(&text, text_view(&loop));
    bool good = onnx_emit(n, "%s", text.ptr);
    text_free(&text);
    text_free(&loop);
    for (uint32_t i = 0; good && l->bounded && i < l->stacked; i++)
        onnx_set_count(n, rounds, l->at[l->carried + i], 0);
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
            onnx_set_known(n, l->at[l->carried + i],
                           tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, type->dtype, rank, dim)));
    }
    text_free(&r.stack);
    return good;
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
        value[1 + i] = first_value(l, i);
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
        onnx_set_value(n, l->at[i], value[1 + i]);
    if (good && l->stacked && !round)
        good = stack_nothing(l);
    for (uint32_t i = 0; i < l->stacked; i++) {
        if (good && round)
            good = onnx_emit(n, "%s = stack(%saxis = 0)", onnx_out(n, l->at[l->carried + i]), stack[i].ptr);
        text_free(&stack[i]);
    }
    return good;
}

static bool must_unroll(const Loop *l)
{
    bool lists = false;
    for (uint32_t i = 0; i < l->carried; i++)
        lists |= !onnx_has(l->node, 2 + l->at[i]) || !first_value(l, i)->type;
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
    if (!loop.carried && !loop.stacked)
        return true;
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
