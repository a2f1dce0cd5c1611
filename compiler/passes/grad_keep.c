/* What a loop keeps for its gradient beside what its rounds begin with: sums of products, which would take as long to
 * compute again as forward.
 *
 * A tape of them is as long as the rounds are many.  It is taken where the loop goes along tensors that are as large,
 * reading slices of them: what a recurrent layer adds to such a slice is then read in its stead, and backward needs the
 * slices no more.  Other loops, which may carry little over many rounds, keep to the memory that they have.
 *
 * And of a table that is carried, which rounds fill and read a little of each, the slices that they read: a tape of all
 * of it would be as large as the table times the rounds. */
#include "ops/meaning.h"
#include "passes/grad.h"

bool grad_has_checkpoints(const Graph *graph)
{
    for (uint32_t i = 0; i < graph->inlined_count; i++)
        if (graph->inlined[i].call->checkpoint)
            return true;
    for (NodeId n = 0; n < graph->node_count; n++)
        if (node_is_call(&graph->node[n]) && graph->node[n].call->checkpoint)
            return true;
    return false;
}

typedef struct Keeping {
    const Graph *body;
    bool *moves; /* per value: it hangs on what is carried */
    Users users;
    ValueId *value;
    uint32_t count, capacity;
} Keeping;

static void find_moving(Keeping *k, uint32_t carried)
{
    for (uint32_t i = 0; i < carried; i++)
        k->moves[k->body->input[i]] = true;
    for (NodeId n = 0; n < k->body->node_count; n++) {
        const Node *node = &k->body->node[n];
        bool moves = false;
        for (uint32_t i = 0; i < node->in_count; i++)
            moves |= k->moves[node->in[i]];
        for (uint32_t i = 0; i < node->out_count; i++)
            k->moves[node->out[i]] = moves;
    }
}

/* Bytes of the captured tensors that rounds read slices of, each another. */
static int64_t bytes_gone_along(const Keeping *k, const Loop *loop)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < loop->captured; i++) {
        ValueId v = k->body->input[loop->carried + i];
        bool goes_along = false;
        for (uint32_t u = k->users.first[v]; u < k->users.first[v + 1]; u++) {
            const Node *user = &k->body->node[k->users.user[u]];
            goes_along |= node_is_dynamic_slice(user) && user->in[0] == v && k->moves[user->in[1]];
        }
        bytes += goes_along ? type_bytes(value_type(k->body, v)) : 0;
    }
    return bytes;
}

/* The only node that reads the value, once; NULL. */
static const Node *only_reader(const Keeping *k, ValueId v)
{
    uint32_t first = k->users.first[v];
    return k->users.first[v + 1] == first + 1 ? &k->body->node[k->users.user[first]] : NULL;
}

/* The last of the sums that the product ends in, whose gradients read none of what they add. */
static ValueId sum_of(const Keeping *k, ValueId product)
{
    const Node *reader;
    while ((reader = only_reader(k, product)) && node_is_sum(reader) &&
           value_type(k->body, reader->out[0]) == value_type(k->body, product))
        product = reader->out[0];
    return product;
}

static bool is_listed(const Keeping *k, ValueId v)
{
    for (uint32_t i = 0; i < k->count; i++)
        if (k->value[i] == v)
            return true;
    return false;
}

#define SMALL_PART 4 /* of a table's bytes, at most one in so many is read in a round */

/* What a round reads of a table that it changes by updates alone, whose gradients need nothing of it; else 0. */
static int64_t bytes_read(const Keeping *k, ValueId table)
{
    int64_t bytes = 0;
    for (uint32_t u = k->users.first[table]; u < k->users.first[table + 1]; u++) {
        const Node *user = &k->body->node[k->users.user[u]];
        bool slice = node_is_dynamic_slice(user), own = user->in[0] == table;
        for (uint32_t i = 1; i < user->in_count; i++)
            own &= user->in[i] != table;
        if (!own || (!slice && !node_is_dynamic_update(user)))
            return 0;
        bytes += slice ? type_bytes(value_type(k->body, user->out[0])) : 0;
    }
    return bytes;
}

static void keep_slices(Keeping *k, uint32_t carried, Arena *scratch)
{
    for (uint32_t i = 0; i < carried; i++) {
        ValueId table = k->body->input[i];
        int64_t bytes = bytes_read(k, table);
        if (!bytes || bytes > type_bytes(value_type(k->body, table)) / SMALL_PART)
            continue;
        for (uint32_t u = k->users.first[table]; u < k->users.first[table + 1]; u++) {
            const Node *user = &k->body->node[k->users.user[u]];
            if (node_is_dynamic_slice(user) && !is_listed(k, user->out[0]))
                ARENA_PUSH(scratch, k->value, k->count, k->capacity, user->out[0]);
        }
    }
}

uint32_t grad_choose_kept(const Graph *graph, const Node *loop, int64_t rounds, Arena *scratch, const ValueId **value)
{
    Loop of = loop_of(graph, loop);
    Keeping k = {.body = of.body};
    if (grad_has_checkpoints(of.body))
        return 0;
    k.moves = ARENA_ARRAY(scratch, bool, of.body->value_count);
    k.users = graph_users(of.body, scratch);
    find_moving(&k, of.carried);
    keep_slices(&k, of.carried, scratch);
    int64_t room = bytes_gone_along(&k, &of);
    for (NodeId n = 0; n < of.body->node_count; n++) {
        const Node *node = &of.body->node[n];
        if (!node_is_contraction(of.body, node) || !k.moves[node->out[0]])
            continue;
        ValueId v = sum_of(&k, node->out[0]);
        const Type *type = value_type(of.body, v);
        bool read = k.users.first[v] < k.users.first[v + 1];
        if (!read || !dtype_is_float(type->dtype) || is_listed(&k, v) || type_bytes(type) > room / rounds)
            continue;
        room -= type_bytes(type) * rounds;
        ARENA_PUSH(scratch, k.value, k.count, k.capacity, v);
    }
    *value = k.value;
    return k.count;
}

void grad_append_keeping(Graph *graph, const Graph *body, const ValueId *value, uint32_t count, const ValueId *in,
                         ValueId *out)
{
    if (count == 0) {
        graph_append_body(graph, body, in, out);
        return;
    }
    Graph *giving = graph_clone(body);
    for (uint32_t i = 0; i < count; i++)
        graph_add_output(giving, value[i], (Str){0});
    graph_append_body(graph, giving, in, out);
}
