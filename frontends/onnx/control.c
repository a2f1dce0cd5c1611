/* If, Loop and Scan: what is known is written out, the rest becomes if, while and scan.
 *
 * A body is imported twice over: first into a graph of its own, which tells the types of its values, then as the text
 * of that, which is built as part of the statement around. */
#include <string.h>

#include "onnx/import.h"

#define MOST_UNROLLED 256

static const Onnx__GraphProto *graph_of(const OnnxNode *n, const char *name)
{
    const Onnx__AttributeProto *a = onnx_attribute(n, name);
    return a ? a->g : NULL;
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

static OnnxScope *open_scope(OnnxNode *n)
{
    OnnxScope *scope = ARENA_NEW(n->onnx->arena, OnnxScope);
    *scope = *n->scope;
    scope->outer = n->scope;
    scope->value = (Map){.arena = n->onnx->arena};
    scope->depth++;
    return scope;
}

static bool check_depth(OnnxNode *n, const Onnx__GraphProto *body)
{
    if (!body)
        return onnx_no(n, "it has no body");
    return n->scope->depth < ONNX_DEEPEST || onnx_no(n, "graphs are more than %d deep", ONNX_DEEPEST);
}

/* The nodes of a body, in the current block; results by their names.  False after errors or refusals. */
static bool import_body(OnnxNode *n, OnnxScope *scope, const Onnx__GraphProto *body, OnnxValue **result)
{
    Onnx *onnx = n->onnx;
    if (!onnx_import_initialisers(onnx, scope, body) || !onnx_import_nodes(onnx, scope, body->node, body->n_node))
        return false;
    for (size_t i = 0; i < body->n_output; i++) {
        result[i] = onnx_lookup(scope, onnx, text_of(body->output[i]->name));
        if (!result[i])
            return onnx->failed = true,
                   diag_file_error(onnx->diag, onnx->path, "node %u: nothing in its body gives '%s'", onnx->node_count,
                                   text_of(body->output[i]->name));
        if (result[i]->bad)
            return false;
    }
    return true;
}

static void put_indented(Text *out, Str text)
{
    for (uint32_t i = 0; i < text.len; i++) {
        if ((i == 0 || text.ptr[i - 1] == '\n') && text.ptr[i] != '\n')
            text_printf(out, "    ");
        text_char(out, text.ptr[i]);
    }
}

/* `a, b` */
static bool put_names(OnnxNode *n, Text *out, OnnxValue *const *value, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!value[i]->type)
            return onnx_no(n, "its body gives a sequence or an optional");
        text_printf(out, "%s%s", i ? ", " : "", onnx_name_value(n->onnx, value[i]));
    }
    return true;
}

/* `(a, b) = `, or `a = ` */
static void put_results(Text *out, const char *const *name, size_t count)
{
    text_printf(out, count == 1 ? "" : "(");
    for (size_t i = 0; i < count; i++)
        text_printf(out, "%s%s", i ? ", " : "", name[i]);
    text_printf(out, count == 1 ? " = " : ") = ");
}

static const char *scalar(OnnxNode *n, uint32_t i)
{
    return onnx_rank(n, i) ? onnx_text(n, "reshape(%s, shape = [])", onnx_in(n, i)) : onnx_in(n, i);
}

/* If */

static bool take_branch(OnnxNode *n, const Onnx__GraphProto *branch)
{
    OnnxValue **result = ARENA_ARRAY(n->onnx->arena, OnnxValue *, branch->n_output + 1);
    if (!import_body(n, open_scope(n), branch, result))
        return false;
    for (uint32_t i = 0; i < n->out_count && i < branch->n_output; i++)
        onnx_set_value(n, i, result[i]);
    return true;
}

static bool put_branch(OnnxNode *n, Text *out, const Onnx__GraphProto *branch)
{
    OnnxValue **result = ARENA_ARRAY(n->onnx->arena, OnnxValue *, branch->n_output + 1);
    OnnxScope *scope = open_scope(n);
    Text yield = {0};
    scope->block = onnx_block_open(n->onnx, false);
    bool good = import_body(n, scope, branch, result) && put_names(n, &yield, result, branch->n_output);
    put_indented(out, onnx_block_close(n->onnx));
    text_printf(out, "    yield %s\n", yield.ptr ? yield.ptr : "");
    text_free(&yield);
    return good;
}

static bool write_if(OnnxNode *n)
{
    const Onnx__GraphProto *yes = graph_of(n, "then_branch"), *no = graph_of(n, "else_branch");
    double known;
    if (!check_depth(n, yes) || !check_depth(n, no))
        return false;
    if (onnx_known_number(n, 0, &known))
        return take_branch(n, known != 0 ? yes : no);
    if (yes->n_output != n->out_count || no->n_output != n->out_count)
        return onnx_no(n, "its branches give other numbers of results");
    const char **name = ARENA_ARRAY(n->onnx->arena, const char *, n->out_count + 1), *condition = scalar(n, 0);
    for (uint32_t i = 0; i < n->out_count; i++)
        name[i] = onnx_out(n, i);
    Text text = {0};
    put_results(&text, name, n->out_count);
    text_printf(&text, "if (%s) {\n", condition);
    bool good = put_branch(n, &text, yes);
    text_printf(&text, "} else {\n");
    good = good && put_branch(n, &text, no);
    good = good && onnx_emit(n, "%s}", text.ptr);
    text_free(&text);
    return good;
}

/* Loop */

typedef struct Loop {
    OnnxNode *node;
    const Onnx__GraphProto *body;
    uint32_t carried, stacked;
    bool counted, conditional; /* are there a number of rounds, a condition */
    double rounds, condition;  /* where they are known */
    bool rounds_known, condition_known;
} Loop;

static bool start_loop(OnnxNode *n, Loop *l)
{
    const Onnx__GraphProto *body = graph_of(n, "body");
    if (!check_depth(n, body))
        return false;
    *l = (Loop){.node = n,
                .body = body,
                .carried = n->in_count > 2 ? n->in_count - 2 : 0,
                .counted = onnx_has(n, 0),
                .conditional = onnx_has(n, 1)};
    if (body->n_input != l->carried + 2 || body->n_output < l->carried + 1)
        return onnx_no(n, "its body does not fit its operands");
    l->stacked = (uint32_t)body->n_output - 1 - l->carried;
    l->rounds_known = onnx_known_number(n, 0, &l->rounds);
    l->condition_known = !l->conditional || onnx_known_number(n, 1, &l->condition);
    if (!l->conditional)
        l->condition = 1;
    if (l->rounds_known && l->rounds < 0)
        l->rounds = 0;
    return true;
}

static OnnxValue *known_int(OnnxNode *n, DType dtype, int64_t number)
{
    Tensor *tensor = tensor_new(n->onnx->arena, module_plain_type(n->onnx->module, dtype, 0, NULL));
    tensor_set_number(tensor, 0, (double)number);
    return onnx_known_value(n->onnx, tensor, "i");
}

/* The rounds one after another; the condition must be known at the end of each. */
static bool unroll(Loop *l)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    OnnxValue **value = ARENA_ARRAY(onnx->arena, OnnxValue *, l->body->n_output + 1);
    Text *stack = ARENA_ARRAY(onnx->arena, Text, l->stacked + 1);
    bool goes_on = l->condition != 0, good = true;
    int64_t round = 0;

    for (uint32_t i = 0; i < l->carried; i++)
        value[1 + i] = n->in[2 + i];
    for (; good && goes_on && (!l->counted || round < l->rounds); round++) {
        OnnxScope *scope = open_scope(n);
        onnx_bind(scope, onnx, text_of(l->body->input[0]->name), known_int(n, DT_I64, round));
        onnx_bind(scope, onnx, text_of(l->body->input[1]->name), known_int(n, DT_BOOL, 1));
        for (uint32_t i = 0; i < l->carried; i++)
            onnx_bind(scope, onnx, text_of(l->body->input[2 + i]->name), value[1 + i]);
        good = round < MOST_UNROLLED ? import_body(n, scope, l->body, value)
                                     : onnx_no(n, "it has more than %d rounds, which cannot be a loop", MOST_UNROLLED);
        if (good && !value[0]->known)
            good = onnx_no(n, "whether there is another round is known only when running");
        for (uint32_t i = 0; good && i < l->stacked; i++)
            good = put_names(n, &stack[i], &value[1 + l->carried + i], 1) && (text_printf(&stack[i], ", "), true);
        goes_on = good && tensor_number(value[0]->known, 0) != 0;
    }
    for (uint32_t i = 0; good && i < l->carried; i++)
        onnx_set_value(n, i, value[1 + i]);
    for (uint32_t i = 0; i < l->stacked; i++) {
        if (good && onnx_wants(n, l->carried + i))
            good = round ? onnx_emit(n, "%s = stack(%saxis = 0)", onnx_out(n, l->carried + i), stack[i].ptr)
                         : onnx_no(n, "it has no round, and so results of unknown shape");
        text_free(&stack[i]);
    }
    return good;
}

/* The body in a block of its own: names of what goes round, results, and the text. */
typedef struct Round {
    const char **carried; /* counter, condition, values */
    OnnxValue **result;
    Text next, stack; /* names of the results */
    Str body;
} Round;

static OnnxValue *carried_value(OnnxNode *n, const char *wish, const Type *type, const char **name)
{
    OnnxValue *value = ARENA_NEW(n->onnx->arena, OnnxValue);
    *name = onnx_unique(n->onnx, wish);
    *value = (OnnxValue){.type = type, .name = *name, .home = n->onnx->block};
    nnc_compose_input(n->onnx->composer, str_from(*name), type);
    return value;
}

static bool check_carried(OnnxNode *n, const OnnxValue *first, const OnnxValue *next, const char *name)
{
    return !next->type || first->type == next->type ||
           onnx_no(n, "'%s' changes its type or shape from round to round", name);
}

static bool import_round(Loop *l, Round *r)
{
    OnnxNode *n = l->node;
    Onnx *onnx = n->onnx;
    const Onnx__GraphProto *body = l->body;
    OnnxScope *scope = open_scope(n);
    *r = (Round){ARENA_ARRAY(onnx->arena, const char *, l->carried + 3),
                 ARENA_ARRAY(onnx->arena, OnnxValue *, body->n_output + 1),
                 {0},
                 {0},
                 {0}};
    scope->block = onnx_block_open(onnx, false);
    const Type *types[] = {module_plain_type(onnx->module, DT_I64, 0, NULL),
                           module_plain_type(onnx->module, DT_BOOL, 0, NULL)};
    for (uint32_t i = 0; i < l->carried + 2; i++) {
        const char *name = text_of(body->input[i]->name);
        onnx_bind(scope, onnx, name, carried_value(n, name, i < 2 ? types[i] : n->in[i]->type, &r->carried[i]));
    }
    bool good = import_body(n, scope, body, r->result);
    for (uint32_t i = 0; good && i < l->carried; i++)
        good = check_carried(n, n->in[2 + i], r->result[1 + i], r->carried[2 + i]);
    for (uint32_t i = 0; good && i < l->carried; i++) {
        text_printf(&r->next, ", %s <- ", r->carried[2 + i]);
        good = put_names(n, &r->next, &r->result[1 + i], 1);
    }
    good = good && put_names(n, &r->stack, r->result + 1 + l->carried, l->stacked);
    if (good && !r->result[0]->known && r->result[0]->type->shape.rank)
        good = onnx_no(n, "its condition is no scalar");
    const char *goes_on = good ? onnx_name_value(onnx, r->result[0]) : "";
    r->body = onnx_block_close(onnx);
    if (good) { /* what comes first */
        Text next = {0};
        text_printf(&next, "%s <- %s + 1, %s <- %s%s", r->carried[0], r->carried[0], r->carried[1], goes_on,
                    r->next.ptr ? r->next.ptr : "");
        text_free(&r->next);
        r->next = next;
    }
    return good;
}

static bool always_goes_on(const Loop *l, const Round *r)
{
    const OnnxValue *next = r->result[0];
    bool passed = next->name && strcmp(next->name, r->carried[1]) == 0;
    return l->condition_known && l->condition != 0 && (passed || (next->known && tensor_number(next->known, 0) != 0));
}

static void put_first(Loop *l, const Round *r, Text *out)
{
    OnnxNode *n = l->node;
    text_printf(out, "with (%s: i64[] = 0, %s: bool[] = %s", r->carried[0], r->carried[1],
                l->conditional ? scalar(n, 1) : "true");
    for (uint32_t i = 0; i < l->carried; i++)
        text_printf(out, ", %s = %s", r->carried[2 + i], onnx_in(n, 2 + i));
    text_printf(out, ") {\n");
    put_indented(out, r->body);
    text_printf(out, "} next (%s)", r->next.ptr);
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
    put_results(&text, name, 2 + results);
    if (l->stacked) {
        text_printf(&text, "scan (%s in iota(shape = [%.0f])) ", onnx_temp(n, "step"), l->rounds);
        put_first(l, r, &text);
        text_printf(&text, " stack (%s)", r->stack.ptr);
    } else {
        text_printf(&text, "while (%s", r->carried[1]);
        if (l->counted)
            text_printf(&text, " and %s < %s", r->carried[0], scalar(n, 0));
        text_printf(&text, ") ");
        put_first(l, r, &text);
    }
    bool good = onnx_emit(n, "%s", text.ptr);
    text_free(&text);
    return good;
}

static bool write_as_loop(Loop *l)
{
    OnnxNode *n = l->node;
    Round r;
    bool good = import_round(l, &r);
    if (good && l->stacked && (!l->rounds_known || l->rounds < 1 || !always_goes_on(l, &r)))
        good = l->counted && !l->rounds_known ? onnx_known(n, 0) != NULL
                                              : onnx_no(n,
                                                        "its results have as many slices as there are rounds, which is "
                                                        "known only when running");
    good = good && write_rounds(l, &r);
    text_free(&r.next);
    text_free(&r.stack);
    return good;
}

static bool must_unroll(const Loop *l)
{
    bool lists = false;
    for (uint32_t i = 0; i < l->carried; i++)
        lists |= !onnx_has(l->node, 2 + i) || !l->node->in[2 + i]->type;
    return lists;
}

static bool write_loop(OnnxNode *n)
{
    Loop loop;
    if (!start_loop(n, &loop))
        return false;
    bool countable = (loop.rounds_known || !loop.counted) && loop.condition_known;
    if (must_unroll(&loop))
        return countable ? unroll(&loop)
                         : (loop.counted && !loop.rounds_known ? onnx_known(n, 0) : onnx_known(n, 1)) && false;
    if (n->onnx->block->folding || (countable && loop.rounds_known && (loop.rounds <= 1 || loop.condition == 0)))
        return unroll(&loop);
    uint32_t refusals = n->onnx->refusal_count, nodes = n->onnx->node_count;
    if (write_as_loop(&loop))
        return true;
    if (!countable || n->onnx->failed || (loop.rounds_known && loop.rounds > MOST_UNROLLED))
        return false;
    n->onnx->refusal_count = refusals; /* what has no fixed shape in a round may have one in each */
    n->onnx->node_count = nodes;
    n->reason = n->hint = NULL;
    return unroll(&loop);
}

/* Scan */

static int64_t entry(const OnnxNode *n, const char *name, uint32_t i)
{
    const int64_t *list;
    uint32_t count;
    return onnx_ints(n, name, &list, &count) && i < count ? list[i] : 0;
}

/* The axis comes first, or goes back to its place. */
static const char *move_axis(const OnnxNode *n, const char *x, uint32_t rank, int64_t axis, bool to_front)
{
    int64_t axes[MAX_RANK];
    axis += axis < 0 ? rank : 0;
    if (axis <= 0 || axis >= rank)
        return x;
    for (uint32_t d = 0; d < rank; d++)
        axes[d] = to_front ? (d == 0 ? axis : d <= axis ? d - 1 : d) : (d < axis ? d + 1 : d == axis ? 0 : d);
    return onnx_text(n, "transpose(%s, axes = %s)", x, onnx_list(n, axes, rank));
}

typedef struct Scan {
    OnnxNode *node;
    const Onnx__GraphProto *body;
    uint32_t states, sequences, stacked, first; /* first: of the operands */
    bool batched;                               /* opset 8, a batch of one */
    const char **name, **source;                /* of body inputs; what they begin with or are slices of */
} Scan;

static const char *scan_source(Scan *s, uint32_t i)
{
    OnnxNode *n = s->node;
    uint32_t at = s->first + i;
    const Shape *shape = &onnx_type(n, at)->shape;
    if (s->batched)
        return onnx_text(n, "reshape(%s, shape = %s)", onnx_in(n, at), onnx_list(n, shape->dim + 1, shape->rank - 1));
    if (i < s->states)
        return onnx_in(n, at);
    const char *x = move_axis(n, onnx_in(n, at), shape->rank, entry(n, "scan_input_axes", i - s->states), true);
    const char *name = onnx_temp(n, "sequence");
    bool reversed = entry(n, "scan_input_directions", i - s->states) != 0;
    return onnx_emit(n, reversed ? "%s = slice(%s, axes = 0, begin = -1, end = -%lld, step = -1)" : "%s = %s", name, x,
                     (long long)INT32_MAX)
               ? name
               : x;
}

static const Type *slice_type(Scan *s, uint32_t i)
{
    const OnnxNode *n = s->node;
    const Type *type = onnx_type(n, s->first + i);
    Shape shape = {0};
    int64_t axis = i < s->states || s->batched ? -1 : entry(n, "scan_input_axes", i - s->states);
    axis += i >= s->states && axis < 0 && !s->batched ? type->shape.rank : 0;
    for (uint32_t d = s->batched; d < type->shape.rank; d++) {
        bool gone = s->batched ? i >= s->states && d == 1 : i >= s->states && d == axis;
        if (!gone)
            shape.dim[shape.rank++] = type->shape.dim[d];
    }
    return module_type(n->onnx->module, type->dtype, &shape, (Layout){0});
}

static bool start_scan(OnnxNode *n, Scan *s)
{
    const Onnx__GraphProto *body = graph_of(n, "body");
    int64_t sequences = onnx_int(n, "num_scan_inputs", 0);
    *s = (Scan){.node = n, .body = body, .first = n->opset < 9, .batched = n->opset < 9};
    if (!check_depth(n, body))
        return false;
    uint32_t operands = n->in_count - s->first;
    if (sequences < 1 || sequences > operands || body->n_input != operands ||
        (int64_t)body->n_output < (int64_t)operands - sequences)
        return onnx_no(n, "its body does not fit its operands");
    if (s->batched && (onnx_has(n, 0) || onnx_attribute(n, "directions")))
        return onnx_no(n, "it has lengths of sequences or directions, of opset 8");
    s->sequences = (uint32_t)sequences;
    s->states = operands - s->sequences;
    s->stacked = (uint32_t)body->n_output - s->states;
    for (uint32_t i = 0; i < operands; i++)
        if (!onnx_has(n, s->first + i) || onnx_rank(n, s->first + i) < (uint32_t)(i >= s->states) + s->batched)
            return onnx_no(n, "operand %u is missing or has too few dimensions", s->first + i);
    if (s->batched && onnx_dim(n, 1, 0) != 1)
        return onnx_no(n, "it has a batch of more than one, of opset 8");
    s->name = ARENA_ARRAY(n->onnx->arena, const char *, operands + 1);
    s->source = ARENA_ARRAY(n->onnx->arena, const char *, operands + 1);
    return true;
}

static void put_scan(const Scan *s, const char *const *result, const char *const *value, Str body, Text *out)
{
    put_results(out, result, s->states + s->stacked);
    text_printf(out, "scan (");
    for (uint32_t i = 0; i < s->sequences; i++)
        text_printf(out, "%s%s in %s", i ? ", " : "", s->name[s->states + i], s->source[s->states + i]);
    text_printf(out, ")");
    for (uint32_t i = 0; i < s->states; i++)
        text_printf(out, "%s%s = %s", i ? ", " : " with (", s->name[i], s->source[i]);
    text_printf(out, s->states ? ") {\n" : " {\n");
    put_indented(out, body);
    text_printf(out, "}");
    for (uint32_t i = 0; i < s->states; i++)
        text_printf(out, "%s%s <- %s", i ? ", " : " next (", s->name[i], value[i]);
    text_printf(out, s->states ? ")" : "");
    for (uint32_t i = 0; i < s->stacked; i++)
        text_printf(out, "%s%s", i ? ", " : " stack (", value[s->states + i]);
    text_printf(out, s->stacked ? ")" : "");
}

/* What a scan gives, along the axis and in the direction that are wanted */
static bool finish_scan(Scan *s, const char *const *result)
{
    OnnxNode *n = s->node;
    for (uint32_t i = 0; i < s->states + s->stacked; i++) {
        const Type *type = onnx_type_of(n, result[i]);
        if (!type || !onnx_wants(n, i))
            continue;
        int64_t dim[MAX_RANK + 1] = {1};
        for (uint32_t d = 0; d < type->shape.rank; d++)
            dim[d + 1] = type->shape.dim[d];
        const char *x = result[i];
        if (s->batched)
            x = onnx_text(n, "reshape(%s, shape = %s)", x, onnx_list(n, dim, type->shape.rank + 1));
        else if (i >= s->states && entry(n, "scan_output_directions", i - s->states))
            x = onnx_text(n, "%s[::-1]", x);
        if (!s->batched && i >= s->states)
            x = move_axis(n, x, type->shape.rank, entry(n, "scan_output_axes", i - s->states), false);
        if (!onnx_emit(n, "%s = %s", onnx_out(n, i), x))
            return false;
    }
    return true;
}

static bool write_scan(OnnxNode *n)
{
    Scan s;
    if (!start_scan(n, &s))
        return false;
    Onnx *onnx = n->onnx;
    OnnxScope *scope = open_scope(n);
    OnnxValue **value = ARENA_ARRAY(onnx->arena, OnnxValue *, s.body->n_output + 1);
    const char **result = ARENA_ARRAY(onnx->arena, const char *, s.body->n_output + 1);
    const char **next = ARENA_ARRAY(onnx->arena, const char *, s.body->n_output + 1);
    for (uint32_t i = 0; i < s.states + s.sequences; i++)
        s.source[i] = scan_source(&s, i);
    for (uint32_t i = 0; i < s.states + s.stacked; i++)
        result[i] = onnx_temp(n, i < s.states ? "state" : "stacked");
    scope->block = onnx_block_open(onnx, false);
    for (uint32_t i = 0; i < s.states + s.sequences; i++) {
        const char *name = text_of(s.body->input[i]->name);
        onnx_bind(scope, onnx, name, carried_value(n, name, slice_type(&s, i), &s.name[i]));
    }
    bool good = import_body(n, scope, s.body, value);
    for (uint32_t i = 0; good && i < s.states + s.stacked; i++) /* what the body captures is named in it */
        good = value[i]->type ? (next[i] = onnx_name_value(onnx, value[i])) != NULL
                              : onnx_no(n, "its body gives a sequence");
    Text text = {0};
    Str body = onnx_block_close(onnx);
    if (good)
        put_scan(&s, result, next, body, &text);
    good = good && onnx_emit(n, "%s", text.ptr) && finish_scan(&s, result);
    text_free(&text);
    return good;
}

const OnnxRow onnx_control[] = {
    {"If", 1, write_if, NULL, NULL, true},
    {"Loop", 1, write_loop, NULL, NULL, true},
    {"Scan", 8, write_scan, NULL, NULL, true},
    {0},
};
