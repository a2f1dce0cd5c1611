#include "cli/train_labels.h"

#include <inttypes.h>

#include "base/number.h"
#include "ops/meaning.h"

#define MOST_IGNORED 4
#define MOST_NESTED  32 /* calls within calls: more than the library has */

typedef struct Classes { /* what losses compare an input with */
    int64_t count;       /* of the classes, from 0 on, that all of them have; 0: with none */
    double ignored[MOST_IGNORED];
    uint32_t ignored_count;
} Classes;

static const Value *source_of(const Graph *graph, ValueId id);

/* Which operand of the call its result's elements are those of, or NONE: `unsqueeze` is a function, too. */
static uint32_t operand_kept(const Node *call, uint32_t result)
{
    const Graph *body = call->sub[0];
    const Value *source = source_of(body, body->output[result].value);
    for (uint32_t i = 0; i < body->input_count; i++)
        if (graph_value(body, body->input[i]) == source)
            return i;
    return NONE;
}

/* The value that this one's elements are those of. */
static const Value *source_of(const Graph *graph, ValueId id)
{
    for (;;) {
        const Value *value = graph_value(graph, id);
        const Node *node = value->role == ROLE_RESULT ? graph_node(graph, value->node) : NULL;
        uint32_t operand = !node                        ? NONE
                           : node_passes_elements(node) ? 0
                           : node_is_call(node)         ? operand_kept(node, value->result)
                                                        : NONE;
        if (operand == NONE)
            return value;
        id = node->in[operand];
    }
}

/* Of what several losses tell apart; 0: none has said so yet. */
static int64_t fewer(int64_t known, int64_t count)
{
    return known ? least(known, count) : count;
}

/* Of `label == iota(...)` the number of classes, of `label == 255` what is to be ignored. */
static void note_comparison(Classes *classes, const Graph *graph, const Value *other)
{
    uint32_t dimension;

    if (other->role == ROLE_CONST && shape_elements(&other->type->shape) == 1 && classes->ignored_count < MOST_IGNORED)
        classes->ignored[classes->ignored_count++] = tensor_number(other->data, 0);
    else if (other->role == ROLE_RESULT && node_is_ramp(graph, graph_node(graph, other->node), &dimension))
        classes->count = fewer(classes->count, shape_elements(&other->type->shape));
}

static bool is_loss(const Call *call)
{
    return call->library && str_is(call->name, "cross_entropy");
}

/* Looks into calls: functions of a user may mean anything by a comparison, but pass labels on to losses. */
static void find_classes(Classes *classes, const Graph *graph, ValueId input, bool in_loss, uint32_t depth)
{
    const Value *label = graph_value(graph, input);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const Node *node = graph_node(graph, n);
        for (uint32_t i = 0; i < node->in_count; i++) {
            if (source_of(graph, node->in[i]) != label)
                continue;
            if (in_loss && node_tests_equality(node))
                note_comparison(classes, graph, source_of(graph, node->in[1 - i]));
            else if (node_is_call(node) && depth < MOST_NESTED)
                find_classes(classes, node->sub[0], node->sub[0]->input[i], is_loss(node->call), depth + 1);
        }
    }
}

static bool is_class(const Classes *classes, double label)
{
    for (uint32_t i = 0; i < classes->ignored_count; i++)
        if (label == classes->ignored[i])
            return true;
    return label < (double)classes->count;
}

/* `who` tells the classes apart, of `graph`: an output, or a loss. */
static bool check(Cli *cli, const Feed *feed, const Classes *classes, const Samples *samples, Str who,
                  const Graph *graph)
{
    int64_t count = shape_elements(&feed->array->type->shape);
    for (int64_t at = 0; at < count; at++)
        if (!is_class(classes, tensor_number(feed->array, at)))
            return diag_file_error(&cli->diag, samples->path,
                                   "label %.0f of sample %" PRId64 ": " STR_FMT " of " STR_FMT " tells %" PRId64
                                   " classes apart, from 0 on",
                                   tensor_number(feed->array, at), at / (count / samples->count), STR_ARG(who),
                                   STR_ARG(graph->name), classes->count);
    return true;
}

bool labels_check(Cli *cli, const Graph *trains, const Graph *graph, const Samples *samples)
{
    Classes learnt = {0}; /* what the training ignores, its validation does */
    for (uint32_t i = 0; i < trains->input_count; i++)
        if (str_is(graph_value(trains, trains->input[i])->name, LABEL))
            find_classes(&learnt, trains, trains->input[i], false, 0);
    Scores scores = scores_of(&cli->arena, graph, samples);
    for (uint32_t i = 0; i < scores.count; i++) {
        Classes told = learnt;
        told.count = scores.at[i].classes;
        if (scores.at[i].is_share &&
            !check(cli, &samples->label, &told, samples, graph->output[scores.at[i].output].name, graph))
            return false;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        Classes taken = {0};
        find_classes(&taken, graph, graph->input[i], false, 0);
        if (taken.count && samples->feed[i].kind == FEED_ROWS &&
            !check(cli, &samples->feed[i], &taken, samples, STR("the loss"), graph))
            return false;
    }
    return true;
}
