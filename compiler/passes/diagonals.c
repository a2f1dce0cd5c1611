/* Constants whose matrices are equal along their diagonals are kept as lines, which windows move along.
 * Needs: a verified graph, after fold, which would undo it.  Keeps: results, bit for bit.
 *
 * The mask of causal attention, that of a sliding window, and biases by distance (ALiBi, those of T5) say the same of
 * all pairs that are as far apart: a line of rows + columns - 1 elements holds it, 16 kB in place of 16 MB for 2,048
 * tokens. It stays in the first level of caches, where the matrix went through all of them for each head.  Only for
 * readers that work element by element, which load from a window as from a row of the matrix. */
#include <string.h>

#include "ops/family.h"
#include "ops/meaning.h"
#include "passes/pass.h"

#define FEW_COLUMNS 16 /* fewer make no vectors */
#define LEAST_SAVED 4  /* elements, in place of one */
#define MOST_VIEWS  4  /* one of the other, until somebody reads elements */

typedef struct Matrices { /* [..., rows, columns] */
    int64_t count, rows, columns;
    size_t bytes; /* of an element */
    const char *data;
} Matrices;

static int64_t line_elements(const Matrices *m)
{
    return m->rows + m->columns - 1;
}

static const char *element(const Matrices *m, int64_t matrix, int64_t row, int64_t column)
{
    return m->data + (size_t)((matrix * m->rows + row) * m->columns + column) * m->bytes;
}

/* Does each row say what the one before says one column earlier? */
static bool has_equal_diagonals(const Matrices *m)
{
    size_t alike = (size_t)(m->columns - 1) * m->bytes;
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t r = 1; r < m->rows; r++)
            if (memcmp(element(m, i, r, 1), element(m, i, r - 1, 0), alike) != 0)
                return false;
    return true;
}

static Matrices matrices_of(const Tensor *tensor)
{
    const Shape *shape = &tensor->type->shape;
    Matrices m = {.count = 1, .bytes = dtype_bytes(tensor->type->dtype), .data = tensor->data};
    for (uint32_t d = 0; d + 2 < shape->rank; d++)
        m.count *= shape->dim[d];
    m.rows = shape->rank < 2 ? 0 : shape->dim[shape->rank - 2];
    m.columns = shape->rank < 2 ? 0 : shape->dim[shape->rank - 1];
    return m;
}

static bool is_worth(const Matrices *m)
{
    return m->count > 0 && m->columns >= FEW_COLUMNS && m->rows * m->columns >= LEAST_SAVED * line_elements(m) &&
           has_equal_diagonals(m);
}

/* Do all who read the value go through it element by element, maybe under a shape of their own?  Recurses over views.
 */
static bool read_by_element(const Graph *graph, const Users *users, ValueId v, uint32_t views)
{
    for (uint32_t u = users->first[v]; u < users->first[v + 1]; u++) {
        const Node *user = &graph->node[users->user[u]];
        OpFamily family = op_info(user->op)->family;
        bool by_element = family == FAMILY_ELEMENTWISE || family == FAMILY_CAST;
        bool through = !by_element && views < MOST_VIEWS && view_keeps_matrices(graph, user);
        if (!by_element && !(through && read_by_element(graph, users, user->out[0], views + 1)))
            return false;
    }
    return users->first[v] < users->first[v + 1];
}

/* From the first column of the last row up to that of the first row, and along that. */
static const Tensor *line_of(Graph *graph, const Matrices *m, const Type *type)
{
    Shape shape = type->shape;
    int64_t length = line_elements(m);
    shape.dim[--shape.rank - 1] = length;
    Tensor *line = tensor_new(graph->module->arena, module_type(graph->module, type->dtype, &shape, (Layout){0}));
    char *to = line->data;
    for (int64_t i = 0; i < m->count; i++)
        for (int64_t at = 0; at < length; at++, to += m->bytes) {
            int64_t up = m->rows - 1 - at;
            memcpy(to, element(m, i, up > 0 ? up : 0, up > 0 ? 0 : -up), m->bytes);
        }
    return line;
}

/* Row i begins i elements before where row 0 does: windows from the last one back. */
static ValueId add_windows(Graph *graph, ValueId v)
{
    Value matrix = graph->value[v]; /* values move */
    Matrices m = matrices_of(matrix.data);
    ValueId line = graph_add_const(graph, line_of(graph, &m, matrix.type), matrix.name, matrix.place);
    Attr attr[4];
    attr_defaults(OP_WINDOWS, attr);
    attr[attr_index(OP_WINDOWS, STR("size"))].i = m.columns;
    attr[attr_index(OP_WINDOWS, STR("step"))].i = -1;
    graph->value[v].name = (Str){0};
    return op_build(graph, OP_WINDOWS, &line, 1, attr, matrix.place);
}

/* Those that become lines; how many there are. */
static uint32_t find_lines(const Graph *graph, Arena *scratch, bool *line)
{
    Users users = graph_users(graph, scratch);
    const bool *live_out = graph_live_out(graph, scratch);
    uint32_t found = 0;
    for (ValueId v = 0; v < graph->value_count; v++) {
        const Value *value = &graph->value[v];
        if (value->role != ROLE_CONST || value->type->layout.block || live_out[v])
            continue;
        Matrices m = matrices_of(value->data);
        line[v] = read_by_element(graph, &users, v, 0) && is_worth(&m);
        found += line[v];
    }
    return found;
}

bool pass_diagonals(Graph *graph, PassContext *context)
{
    uint32_t values = graph->value_count, nodes = graph->node_count;
    bool *line = ARENA_ARRAY(context->scratch, bool, values);
    uint32_t found = find_lines(graph, context->scratch, line);
    if (!found)
        return true;
    Node *old = arena_copy(context->scratch, graph->node, nodes * sizeof *old);
    ValueId *map = ARENA_ARRAY(context->scratch, ValueId, values);
    graph->node_count = 0; /* windows come first */
    for (ValueId v = 0; v < values; v++)
        map[v] = line[v] ? add_windows(graph, v) : v;
    for (NodeId n = 0; n < nodes; n++) {
        for (uint32_t i = 0; i < old[n].in_count; i++)
            old[n].in[i] = map[old[n].in[i]];
        graph_append_node(graph, &old[n]);
    }
    context->changes += found;
    return true;
}
