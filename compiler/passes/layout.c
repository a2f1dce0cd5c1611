/* Layout: chooses NCHW{lanes}c, or NCW{lanes}c, for the activations of convolutions.
 * Needs: a flat graph, types inferred.  Keeps: shapes, dtypes and meaning; adds relayout nodes.
 *
 * A convolution whose output channels fill whole vectors writes channel blocks, and so does one that carries a gradient
 * back to the channels of its image; it reads any layout, but many channels whose planes are pages long in blocks;
 * a depthwise one keeps the blocks of its image, and has them made of tokens, whose channels lie side by side;
 * pooling, elementwise ops, concat, pad and slices of whole blocks keep the blocks of their operands; the gradients of
 * weights and reductions read any layout; tokens are made of blocks at once (layout_tokens.c); everything else reads
 * plain row-major, through a relayout where the operand is blocked.  With a spatial extent of 1x1 both layouts are the
 * same bytes, so such values stay plain.  What loops carry comes in blocks where bodies make and read it so
 * (layout_loops.c).  One walk in order, bodies first.
 */
#include "passes/layout.h"

#include "ops/family.h"
#include "ops/meaning.h"

#define PAGE          4096 /* bytes */
#define MANY_CHANNELS 64

typedef struct Layouter {
    Graph *graph;
    uint32_t lanes;
    ValueId *plain, *blocked; /* per value: its twin in the other layout, made on demand; NONE */
    uint32_t capacity;
    Arena *arena;
    NodeId at;   /* of the old schedule */
    Node *order; /* the new one */
    uint32_t count, order_capacity;
    uint32_t changes;
    Map taken; /* names of values */
    Users users;
    const bool *live_out;
    bool *makes_tokens; /* per node of the old schedule: a view whose result is copied */
} Layouter;

static bool image(const Type *type)
{
    return type_layout_dimensions(type->shape.rank) && type->dtype == DT_F32;
}

static int64_t pixels_of(const Shape *image)
{
    int64_t pixels = 1;
    for (uint32_t d = 2; d < image->rank; d++)
        pixels *= image->dim[d];
    return pixels;
}

static bool may_block(const Layouter *layouter, const Type *type)
{
    return image(type) && type->shape.dim[1] % layouter->lanes == 0 && pixels_of(&type->shape) > 1;
}

/* The node goes to the new schedule; its results point there. */
static void emit(Layouter *layouter, Node node)
{
    for (uint32_t r = 0; r < node.out_count; r++)
        layouter->graph->value[node.out[r]].node = layouter->count;
    ARENA_PUSH(layouter->arena, layouter->order, layouter->count, layouter->order_capacity, node);
}

/* h in blocks is h.blocked, unless something is called so. */
static void name_twin(Layouter *layouter, ValueId value, ValueId twin, uint32_t block)
{
    Graph *graph = layouter->graph;
    if (!graph->value[value].name.len)
        return;
    Str name =
        str_format(graph->module->arena, STR_FMT ".%s", STR_ARG(graph->value[value].name), block ? "blocked" : "plain");
    if (map_add(&layouter->taken, name, twin))
        graph->value[twin].name = name;
}

/* Its elements are all the same, and whoever reads it takes the number.  What operands are has its new place already.
 */
static bool is_number(const Layouter *layouter, ValueId value)
{
    const Value *v = &layouter->graph->value[value];
    double number;
    return v->role == ROLE_RESULT && node_is_number(&layouter->order[v->node], &number);
}

/* For the new schedule only. */
static Node relayout_of(Layouter *layouter, ValueId value, uint32_t block)
{
    Graph *graph = layouter->graph;
    Attr attr[1] = {{.i = block}};
    NodeId added = graph_add_node(graph, OP_RELAYOUT, &value, 1, attr, 1, graph->value[value].place);
    Node node = graph->node[added];
    graph->node_count--;
    graph->value[node.out[0]].type = value_type(graph, value);
    layout_set_block(graph, node.out[0], block);
    layouter->changes++;
    return node;
}

/* The value in another layout: a constant or an existing twin at no cost, else a relayout node just before its user. */
static ValueId relaid(Layouter *layouter, ValueId value, uint32_t block)
{
    Graph *graph = layouter->graph;
    if (layout_block(graph, value) == block)
        return value;
    ValueId *twin = block ? layouter->blocked : layouter->plain;
    if (twin[value] != NONE)
        return twin[value];

    Node relayout = relayout_of(layouter, value, block);
    name_twin(layouter, value, relayout.out[0], block);
    emit(layouter, relayout);
    return twin[value] = relayout.out[0];
}

/* The view, and a copy of what it shows under its name. */
static void emit_tokens(Layouter *layouter, Node view)
{
    Node copy = relayout_of(layouter, view.out[0], 0);
    ValueId shown = copy.out[0];
    copy.out[0] = view.out[0];
    view.out[0] = copy.in[0] = shown;
    emit(layouter, view);
    emit(layouter, copy);
}

static ValueId in_layout(Layouter *layouter, ValueId value, uint32_t block)
{
    return is_number(layouter, value) ? value : relaid(layouter, value, block);
}

static void operands_in(Layouter *layouter, Node *node, uint32_t block)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (layout_block(layouter->graph, node->in[i]) != block)
            node->in[i] = in_layout(layouter, node->in[i], block);
}

/* An image of tokens, element by element. */
static bool made_of_tokens(const Layouter *layouter, const Node *node)
{
    const Graph *graph = layouter->graph;
    const Type *out = value_type(graph, node->out[0]);
    uint32_t tokens = 0;
    if (!may_block(layouter, out) || out->shape.rank < 4) /* tokens that are turned are of three, too, and no image */
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (is_number(layouter, node->in[i]) || !shape_eq(value_shape(graph, node->in[i]), &out->shape))
            continue;
        if (!layout_lies_by_pixels(graph, layouter->order, node->in[i]))
            return false;
        tokens++;
    }
    return tokens > 0;
}

/* Elementwise: operands of the result's shape in blocks; per-channel operands, scalars, and what is read once from the
 * caller's arrays or the weights as they are. */
static uint32_t keep_elementwise(Layouter *layouter, Node *node)
{
    Graph *graph = layouter->graph;
    const Type *out = value_type(graph, node->out[0]);
    uint32_t block = 0;
    for (uint32_t i = 0; i < node->in_count; i++)
        block = layout_block(graph, node->in[i]) ? layout_block(graph, node->in[i]) : block;
    if (!block && made_of_tokens(layouter, node))
        block = layouter->lanes;
    if (!block || !type_layout_dimensions(out->shape.rank))
        return 0;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Type *in = value_type(graph, node->in[i]);
        bool full = shape_eq(&in->shape, &out->shape);
        node->in[i] = in_layout(layouter, node->in[i],
                                full && !value_producer(graph, node->in[i]) ? layout_block(graph, node->in[i])
                                : full                                      ? block
                                                                            : 0);
    }
    return block;
}

/* Is each channel's plane pages long, so that a pixel's channels lie in as many pages, and of powers of two in one set
 * of the caches?  Few channels do not mind. */
static bool lies_by_pages(const Layouter *layouter, ValueId value)
{
    const Type *type = value_type(layouter->graph, value);
    return !type->layout.block && may_block(layouter, type) && type->shape.dim[1] >= MANY_CHANNELS &&
           pixels_of(&type->shape) * 4 >= PAGE;
}

/* Is the value the image of convolutions that write blocks, and nothing else? */
static bool feeds_convolutions(const Layouter *layouter, ValueId value)
{
    const Graph *graph = layouter->graph;
    uint32_t first = layouter->users.first[value], end = layouter->users.first[value + 1];
    bool all = end > first && !layouter->live_out[value];
    for (uint32_t i = first; i < end && all; i++) {
        const Node *node = &graph->node[layouter->users.user[i]];
        Convolution conv;
        all = convolution_of(graph, node, &conv) && conv.groups == 1 && node->in[0] == value && node->in[1] != value &&
              conv.outputs >= layouter->lanes && may_block(layouter, value_type(graph, node->out[0]));
    }
    return all;
}

/* Are all parts worth blocks, so that what is put together needs no copy? */
static bool comes_in_blocks(const Layouter *layouter, const Node *node)
{
    bool all = lies_by_pages(layouter, node->out[0]) && feeds_convolutions(layouter, node->out[0]);
    for (uint32_t i = 0; i < node->in_count && all; i++)
        all = may_block(layouter, value_type(layouter->graph, node->in[i]));
    return all;
}

static uint32_t keep_concat(Layouter *layouter, Node *node)
{
    Graph *graph = layouter->graph;
    uint32_t block = layout_block(graph, node->in[0]);
    for (uint32_t i = 0; i < node->in_count; i++)
        if (layout_block(graph, node->in[i]) != block)
            block = 0;
    if (!block && comes_in_blocks(layouter, node))
        block = layouter->lanes;
    operands_in(layouter, node, block);
    return block;
}

/* The result in plain, from plain operands. */
static uint32_t keep_plain(Layouter *layouter, Node *node)
{
    operands_in(layouter, node, 0);
    return 0;
}

/* Do the groups, or the few that are computed together, begin and end with blocks of both channels and outputs? */
static bool groups_fill_blocks(const Layouter *layouter, const Node *node, const Convolution *conv)
{
    if (conv->groups == 1)
        return true;
    int64_t joined = convolution_joined_groups(conv, layouter->lanes);
    int64_t bundles = joined ? conv->groups / joined : 0;
    return joined && (joined == 1 || !value_producer(layouter->graph, node->in[1])) &&
           conv->channels / bundles % layouter->lanes == 0 && conv->outputs / bundles % layouter->lanes == 0;
}

/* Is it a row of results that only leaves the graph?  Blocks of it would lie in the arena beside it. */
static bool only_leaves(const Layouter *layouter, ValueId value)
{
    const Users *users = &layouter->users;
    return value_shape(layouter->graph, value)->rank == 3 && layouter->live_out[value] &&
           users->first[value] == users->first[value + 1];
}

static uint32_t keep_contraction(Layouter *layouter, Node *node)
{
    Graph *graph = layouter->graph;
    const Type *out = value_type(graph, node->out[0]);
    Convolution conv;
    if (convolution_weight_gradient_of(graph, node, &conv) &&
        (conv.groups == 1 || conv.channels / conv.groups % layouter->lanes == 0))
        return 0;                                                                      /* reads any layout */
    if (convolution_phase_count(graph, node) && !convolution_of(graph, node, &conv)) { /* transposed */
        conv = convolution_phase_of(graph, node, 0).conv;
        bool blocked = conv.groups == conv.channels && conv.groups == conv.outputs && layout_block(graph, node->in[0]);
        if (conv.groups != 1 && !blocked)
            return keep_plain(layouter, node);
        return may_block(layouter, out) ? layouter->lanes : 0;
    }
    if (!convolution_of(graph, node, &conv))
        return keep_plain(layouter, node);
    bool depthwise = conv.groups == conv.channels && conv.groups == conv.outputs;
    if (depthwise && may_block(layouter, out) && layout_lies_by_pixels(graph, layouter->order, node->in[0]))
        node->in[0] = in_layout(layouter, node->in[0], layouter->lanes);
    if (depthwise ? !layout_block(graph, node->in[0]) : !groups_fill_blocks(layouter, node, &conv))
        return keep_plain(layouter, node);
    if (!may_block(layouter, out) || conv.outputs < layouter->lanes || only_leaves(layouter, node->out[0]))
        return 0;
    if (conv.groups == 1 && lies_by_pages(layouter, node->in[0]))
        node->in[0] = in_layout(layouter, node->in[0], layouter->lanes);
    return layouter->lanes;
}

/* Where a pooling's elements equal its results: all in the blocks of the image that was pooled. */
static uint32_t keep_match(Layouter *layouter, Node *node)
{
    uint32_t block = layout_block(layouter->graph, node->in[0]);
    if (!may_block(layouter, value_type(layouter->graph, node->out[0])))
        block = 0;
    operands_in(layouter, node, block);
    return block;
}

static uint32_t keep_assembly(Layouter *layouter, Node *node)
{
    Graph *graph = layouter->graph;
    if (!assembly_of(graph, node).filled)
        return keep_concat(layouter, node);
    const Shape *x = value_shape(graph, node->in[0]), *out = value_shape(graph, node->out[0]);
    bool channels = x->rank > 1 && x->dim[1] != out->dim[1];
    return channels ? keep_plain(layouter, node) : layout_block(graph, node->in[0]);
}

/* Rows and columns of an image by their numbers, as resizing takes them: pixels with all their channels. */
static uint32_t keep_gather(Layouter *layouter, Node *node)
{
    const Graph *graph = layouter->graph;
    ValueId image = node->in[0];
    bool pixels = !node_is_scatter(node) && gather_dimension(graph, node) >= 2 &&
                  may_block(layouter, value_type(graph, image)) && may_block(layouter, value_type(graph, node->out[0]));
    bool by_pixels = value_shape(graph, image)->rank == 4 && layout_lies_by_pixels(graph, layouter->order, image);
    if (!pixels || !(layout_block(graph, image) || by_pixels))
        return keep_plain(layouter, node);
    node->in[0] = in_layout(layouter, image, layouter->lanes);
    return layouter->lanes;
}

/* Are all results parts of the image, of whole blocks of its channels? */
static bool shows_blocks(const Layouter *layouter, const Node *node)
{
    const Graph *graph = layouter->graph;
    for (uint32_t r = 0; r < node->out_count; r++) {
        View view = view_of(graph, node, r);
        if (view.kind != VIEW_STRIDED || view.slid != NONE || !may_block(layouter, value_type(graph, node->out[r])) ||
            view.begin[1] % layouter->lanes || view.step[1] != 1)
            return false;
        for (uint32_t d = 0; d < view.rank; d++)
            if (view.from[d] != d)
                return false;
    }
    return true;
}

/* What turns blocks into tokens reads them, and is copied. */
static uint32_t keep_view(Layouter *layouter, Node *node)
{
    uint32_t block = layout_block(layouter->graph, node->in[0]);
    if (view_only_waits(node) || !block || shows_blocks(layouter, node))
        return block;
    NodeId last = layout_tokens_of(layouter->graph, &layouter->users, layouter->live_out, layouter->at);
    if (last == NONE)
        return keep_plain(layouter, node);
    layouter->makes_tokens[last] = true;
    return 0;
}

/* The block of the node's result, its operands brought to what it reads. */
static uint32_t choose(Layouter *layouter, Node *node)
{
    Graph *graph = layouter->graph;
    const Type *out = value_type(graph, node->out[0]);
    switch (op_info(node->op)->family) {
    case FAMILY_CONTRACT:
        return keep_contraction(layouter, node);
    case FAMILY_POOL:
        return may_block(layouter, out) ? layout_block(graph, node->in[0]) : 0;
    case FAMILY_MATCH:
        return keep_match(layouter, node);
    case FAMILY_ASSEMBLE:
        return keep_assembly(layouter, node);
    case FAMILY_REDUCE: /* these read any layout */
        return reduction_of(graph, node).kind == REDUCE_POSITION ? keep_plain(layouter, node) : 0;
    case FAMILY_LAYOUT:
        return out->layout.block;
    case FAMILY_VIEW:
        return keep_view(layouter, node);
    case FAMILY_GATHER:
        return keep_gather(layouter, node);
    case FAMILY_ELEMENTWISE:
    case FAMILY_CAST:
        return keep_elementwise(layouter, node);
    default:
        return keep_plain(layouter, node);
    }
}

static ValueId *twins(Layouter *layouter)
{
    ValueId *twin = ARENA_ARRAY(layouter->arena, ValueId, layouter->capacity);
    for (uint32_t v = 0; v < layouter->capacity; v++)
        twin[v] = NONE;
    return twin;
}

static const char *layout_made(const Layouter *layouter, const Node *node, uint32_t block)
{
    uint32_t rank = value_shape(layouter->graph, node->out[0])->rank;
    return block ? str_format(layouter->arena, "{%s%uc} here", type_layout_dimensions(rank), block).ptr
                 : "what is plain";
}

/* Maps write any layout; of others it is what they work in, whatever the text says. */
static bool heeds(const Layouter *layouter, const Node *node, uint32_t stated, uint32_t block)
{
    OpFamily family = op_info(node->op)->family;
    if (stated == block || family == FAMILY_ELEMENTWISE || family == FAMILY_CAST)
        return true;
    const Graph *graph = layouter->graph;
    return diag_error(
        graph->module->diag, node->place, "the layout of " STR_FMT ", " STR_FMT ", cannot be honoured: %s makes %s",
        STR_ARG(value_show(graph, node->out[0])), STR_ARG(type_show(layouter->arena, value_type(graph, node->out[0]))),
        op_info(node->op)->name, layout_made(layouter, node, block));
}

static bool lay_out(Graph *graph, PassContext *context);

/* Whatever layout the text gives to a value, bodies take and give it plain. */
static void make_plain(Graph *graph, const ValueId *value, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (layout_block(graph, value[i]))
            layout_set_block(graph, value[i], 0);
}

/* Bodies, then first values and results as the bodies take and give them.  Recurses over the nesting of bodies. */
static bool lay_out_bodies(Layouter *layouter, Node *node, PassContext *context)
{
    Graph *graph = layouter->graph;
    make_plain(graph, node->out, node->out_count);
    for (uint32_t s = 0; s < node->sub_count; s++) {
        make_plain(node->sub[s], node->sub[s]->input, node->sub[s]->input_count);
        if (!lay_out(node->sub[s], context))
            return false;
    }
    if (!node_is_loop(node)) {
        operands_in(layouter, node, 0);
        return true;
    }
    const uint32_t *block = layout_carried(graph, node, context->scratch);
    layout_carry(graph, node, block, context->scratch);
    for (uint32_t i = 0; i < node->in_count; i++)
        node->in[i] = relaid(layouter, node->in[i], i < node->out_count ? block[i] : 0);
    for (uint32_t r = 0; r < node->out_count; r++)
        if (block[r])
            layout_set_block(graph, node->out[r], block[r]);
    return true;
}

static bool lay_out_node(Layouter *layouter, Node *node, PassContext *context)
{
    Graph *graph = layouter->graph;
    if (node_has_bodies(node))
        return lay_out_bodies(layouter, node, context);
    uint32_t stated = node->out_count == 1 ? layout_block(graph, node->out[0]) : 0, block = choose(layouter, node);
    if (stated)
        return heeds(layouter, node, stated, block);
    for (uint32_t r = 0; block && r < node->out_count; r++)
        layout_set_block(graph, node->out[r], block);
    return true;
}

static bool lay_out(Graph *graph, PassContext *context)
{
    uint32_t operands = 0;
    for (uint32_t n = 0; n < graph->node_count; n++)
        operands += graph->node[n].in_count;
    Layouter layouter = {.graph = graph,
                         .lanes = context->lanes,
                         .arena = graph->module->arena,
                         .capacity = graph->value_count + operands + graph->output_count + graph->update_count};
    layouter.taken.arena = context->scratch;
    layouter.users = graph_users(graph, context->scratch);
    layouter.live_out = graph_live_out(graph, context->scratch);
    for (ValueId v = 0; v < graph->value_count; v++)
        if (graph->value[v].name.len)
            map_add(&layouter.taken, graph->value[v].name, v);
    layouter.plain = twins(&layouter);
    layouter.blocked = twins(&layouter);
    layouter.makes_tokens = ARENA_ARRAY(context->scratch, bool, graph->node_count);

    uint32_t count = graph->node_count;
    for (uint32_t n = 0; n < count; n++) {
        Node node = graph->node[n];
        layouter.at = n;
        if (!lay_out_node(&layouter, &node, context))
            return false;
        (layouter.makes_tokens[n] ? emit_tokens : emit)(&layouter, node);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->output[i].value = in_layout(&layouter, graph->output[i].value, 0);
    for (uint32_t i = 0; i < graph->update_count; i++)
        graph->update[i].source = in_layout(&layouter, graph->update[i].source, 0);
    graph->node = layouter.order;
    graph->node_count = layouter.count;
    graph->node_capacity = layouter.order_capacity;
    context->changes += layouter.changes;
    return true;
}

bool pass_layout(Graph *graph, PassContext *context)
{
    return context->lanes <= 1 || context->in_body || lay_out(graph, context);
}
