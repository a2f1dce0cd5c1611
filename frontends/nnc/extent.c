/* How the text of a graph writes the extents of its inputs: in the graph itself they are numbers. */
#include "frontends/nnc/ast.h"
#include "frontends/nnc/text.h"

static const AstFunction *find_graph(const AstTree *tree, Str name)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        const AstItem *item = &tree->item[i];
        if (item->kind == AST_ITEM_GRAPH && str_eq(item->function->name->text, name))
            return item->function;
    }
    return NULL;
}

static Str first_extent(const AstFunction *graph, Str input)
{
    for (uint32_t i = 0; i < graph->formal_count; i++) {
        const AstFormal *formal = &graph->formal[i];
        const AstExpr *dim = formal->type && formal->type->rank ? formal->type->dim[0] : NULL;
        if (str_eq(formal->name->text, input) && dim && dim->kind == AST_NAME)
            return dim->name->text;
    }
    return (Str){0};
}

Str nnc_first_extent(Arena *arena, const Graph *graph, Str input)
{
    AstTree tree = {0};
    Diag *diag = graph->module->diag;
    if (!diag_source(diag, graph->place.source))
        return (Str){0};
    parse_tree(arena, diag, graph->place.source, &tree);
    const AstFunction *function = find_graph(&tree, graph->name);
    return function ? first_extent(function, input) : (Str){0};
}

bool nnc_file_extent(const Define *define, Str input, uint32_t rank, uint32_t i, int64_t *extent)
{
    const Shape *file = define->file;
    if (!file || file->rank > rank || (define->name.len && !str_eq(define->name, input)))
        return false;
    uint32_t missing = rank - file->rank;
    *extent = i < missing ? 1 : file->dim[i - missing];
    return true;
}
