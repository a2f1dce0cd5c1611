/* Nodes with sub-graphs, run directly: a body is evaluated like a graph of its own, with the tensors it captures as
 * inputs.  What a round makes is freed at its end, but for the carried values, which live in two sets of tensors that
 * take turns. */
#include <math.h>
#include <string.h>

#include "ops/eval.h"
#include "ops/families.h"
#include "ops/meaning.h"

static void copy_elements(const Tensor *to, const Tensor *from)
{
    memcpy(to->data, from->data, (size_t)shape_elements(&to->type->shape) * dtype_bytes(to->type->dtype));
}

/* Runs the body and copies its first `count` outputs to `result`; of one more, a bool, the value comes back. */
static bool run_body(Graph *body, const Tensor *const *in, Tensor *const *result, uint32_t count, bool *flag,
                     int64_t *work)
{
    Arena scratch = {0};
    const Tensor **made = ARENA_ARRAY(&scratch, const Tensor *, body->output_count);
    bool done = eval_graph_within(body, &scratch, in, made, NULL, work);
    for (uint32_t i = 0; done && i < count; i++)
        copy_elements(result[i], made[i]);
    if (done && body->output_count > count)
        *flag = tensor_number(made[count], 0) != 0;
    arena_free(&scratch);
    return done;
}

/* Two sets of the carried values: a round reads one and writes the other. */
static void make_sets(Arena *arena, uint32_t carried, Tensor *const *like, Tensor **set[2])
{
    for (int s = 0; s < 2; s++) {
        set[s] = ARENA_ARRAY(arena, Tensor *, carried);
        for (uint32_t i = 0; i < carried; i++)
            set[s][i] = tensor_new(arena, like[i]->type);
    }
}

static bool run_loop(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out, int64_t *work)
{
    Loop loop = loop_of(graph, node);
    Arena scratch = {0};
    const Tensor **now = arena_copy(&scratch, in, node->in_count * sizeof *in);
    Tensor **set[2];
    bool done = true, more = true;

    make_sets(&scratch, loop.carried, out, set);
    for (int64_t round = 0; loop.most == 0 || round < loop.most; round++) {
        if (loop.condition)
            done = run_body(loop.condition, now, NULL, 0, &more, work);
        if (!done || !more)
            break;
        Tensor **next = set[round % 2];
        done = run_body(loop.body, now, next, loop.carried, &more, work);
        memcpy(now, next, loop.carried * sizeof *next);
        if (!done)
            break;
    }
    for (uint32_t i = 0; i < loop.carried; i++)
        copy_elements(out[i], now[i]);
    arena_free(&scratch);
    return done;
}

static bool run_choice(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out, int64_t *work)
{
    Branches branches = branches_of(graph, node);
    uint32_t chosen = branches_select(&branches, (int64_t)tensor_number(in[0], 0));
    return run_body(node->sub[chosen], in + 1, out, node->out_count, NULL, work);
}

bool eval_control_within(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out,
                         int64_t *work)
{
    if (node_is_loop(node))
        return run_loop(graph, node, in, out, work);
    if (node_is_choice(node))
        return run_choice(graph, node, in, out, work);
    return run_body(node->sub[0], in, out, node->out_count, NULL, work);
}

void eval_control(const Graph *graph, const Node *node, const Tensor *const *in, Tensor *const *out)
{
    eval_control_within(graph, node, in, out, NULL);
}

/* Tolerances */

static bool raise_to(double *to, double by)
{
    bool higher = by > *to;
    *to = fmax(*to, by);
    return higher;
}

/* What is carried may have passed through all that the body computes: rounds until nothing gets worse. */
static void tolerate_loop(const Loop *loop, Arena *arena, double *in, double *out)
{
    double *made = ARENA_ARRAY(arena, double, loop->body->output_count);
    bool changed = true;
    while (changed) {
        changed = false;
        eval_tolerance(loop->body, arena, in, made);
        for (uint32_t i = 0; i < loop->carried; i++)
            changed |= raise_to(&in[i], made[i]);
    }
    memcpy(out, in, loop->carried * sizeof *out);
}

void eval_control_tolerance(const Graph *graph, const Node *node, Arena *arena, double *in, double *out)
{
    if (node_is_loop(node)) {
        Loop loop = loop_of(graph, node);
        tolerate_loop(&loop, arena, in, out);
        return;
    }
    double *made = ARENA_ARRAY(arena, double, node->out_count);
    memset(out, 0, node->out_count * sizeof *out);
    for (uint32_t s = 0; s < node->sub_count; s++) {
        eval_tolerance(node->sub[s], arena, node_is_choice(node) ? in + 1 : in, made);
        for (uint32_t i = 0; i < node->out_count; i++)
            raise_to(&out[i], made[i]);
    }
}
