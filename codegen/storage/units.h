/* Units of execution and the memory they hold, for the passes that order nodes and share memory.
 *
 * A unit is a kernel, or a node that has no kernel number; the nodes of a kernel run as one.  A buffer is the memory of
 * a value that one unit writes and another reads, or that leaves the graph.  Views that stand alone have no memory of
 * their own: they read their operand's buffer and keep it alive, whatever the code generator makes of them. */
#ifndef NNC_STORAGE_UNITS_H
#define NNC_STORAGE_UNITS_H

#include "storage/lists.h"
#include "ir/graph.h"

typedef struct Units {
    uint32_t count;
    uint32_t *of;    /* per node: its unit; numbered by first appearance */
    Lists node;      /* per unit, in order */
    bool *together;  /* per unit: its nodes stand next to each other */
    ValueId *buffer; /* per value: the value whose memory it lies in; NONE for what is not a result or stays inside */
    bool *leaves;    /* per value that is a buffer: it, or a view of it, is an output or the source of an update */
    Lists made;      /* per unit: the buffers it writes */
    Lists read;      /* per unit: the buffers of other units that it reads, each once */
} Units;

Units unit_list(const Graph *graph, Arena *arena);

/* May the unit of `producer` write its result over `operand`, apart from lifetimes? */
typedef struct OverwriteRule {
    bool (*may)(void *context, const Graph *graph, NodeId producer, ValueId operand);
    /* Is its result stored after all others of the unit, where nothing is still to be read?  NULL: nobody knows. */
    bool (*last)(void *context, const Graph *graph, NodeId producer);
    void *context;
} OverwriteRule;

/* What the unit could write its buffer number `which` over, were it the last to read it: buffers with the same bytes at
 * the same positions, per unit.  Empty for units that have no such one. */
Lists unit_overwritable(const Graph *graph, const Units *units, uint32_t which, OverwriteRule rule, Arena *arena);

#endif
