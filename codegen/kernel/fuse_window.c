/* What joins contractions in fusion (fuse.c): the pooling of a result, and what makes an image. */
#include "kernel/fuser.h"
#include "kernel/kernel.h"
#include "ops/family.h"
#include "ops/meaning.h"

/* Is the value all that the kernel makes, by nodes of which each is read by the next one only? */
static bool read_once(const Fuser *fuser, ValueId value, uint32_t kernel)
{
    const Graph *graph = fuser->graph;
    for (uint32_t left = fuser->group[kernel].size;;) {
        const Node *node = value_producer(graph, value);
        if (fuser->live_out[value] || fuser->users.first[value + 1] - fuser->users.first[value] != 1 ||
            node->out_count != 1)
            return false;
        left--;
        value = NONE;
        for (uint32_t i = 0; i < node->in_count; i++)
            if (fuser_made_in(fuser, node->in[i], kernel))
                value = value == NONE ? node->in[i] : value;
        if (value == NONE)
            return left == 0;
    }
}

/* The convolution whose result, through elementwise nodes of the kernel, is the image and goes nowhere else; or NULL.
 */
static const Node *convolution_under(const Fuser *fuser, ValueId image, uint32_t kernel)
{
    const Graph *graph = fuser->graph;
    for (;;) {
        const Node *node = value_producer(graph, image);
        if (fuser->live_out[image] || fuser->users.first[image + 1] - fuser->users.first[image] != 1)
            return NULL;
        if (op_info(node->op)->family != FAMILY_ELEMENTWISE)
            return node;
        image = NONE;
        for (uint32_t i = 0; i < node->in_count; i++)
            if (fuser_made_in(fuser, node->in[i], kernel))
                image = node->in[i];
        if (image == NONE)
            return NULL;
    }
}

/* Pooling joins its convolution where tiles keep a band of its rows. */
bool fuser_joins_pooling(const Fuser *fuser, const Node *node, uint32_t kernel)
{
    if (kernel == NONE || !fuser_made_in(fuser, node->in[0], kernel) || fuser->group[kernel].kind != KERNEL_ANCHOR)
        return false;
    const Node *convolution = convolution_under(fuser, node->in[0], kernel);
    return convolution && tiled_takes_pool(fuser->graph, fuser->target, convolution, node);
}

/* A pointwise convolution joins the map that makes its image when nothing else reads it. */
bool fuser_joins_map(const Fuser *fuser, const Node *node, uint32_t kernel)
{
    return kernel != NONE && fuser->group[kernel].kind == KERNEL_MAP && fuser_made_in(fuser, node->in[0], kernel) &&
           tiled_takes_map(fuser->graph, fuser->target, node) && read_once(fuser, node->in[0], kernel);
}

/* Does the text say of either that it is computed in a way of its own? */
static bool marked_apart(const Node *depthwise, const Node *pointwise)
{
    const KernelMark *mark = pointwise->mark;
    return (depthwise->mark && depthwise->mark->place.source) ||
           (mark && mark->place.source && !str_is(mark->provider, "tiled"));
}

/* A pointwise convolution joins the depthwise one that makes its image, where what is between them would be larger than
 * its result: rows of that are made in scratch. */
bool fuser_joins_depthwise(const Fuser *fuser, const Node *node, uint32_t kernel)
{
    if (kernel == NONE || fuser->group[kernel].kind != KERNEL_ANCHOR || !fuser_made_in(fuser, node->in[0], kernel) ||
        !node_is_convolution(node) || !read_once(fuser, node->in[0], kernel))
        return false;
    const Node *maker = convolution_under(fuser, node->in[0], kernel);
    return maker && node_is_convolution(maker) && !marked_apart(maker, node) &&
           tiled_takes_depthwise(fuser->graph, fuser->target, maker, node);
}
