/* Graphs of .nnc text that comes statement by statement, for frontends that write it and must know the type of each
 * value before they can write the next line.
 *
 * Graphs nest: one that is opened inside another stands by itself, and is given what it is to see as inputs or
 * constants. It is for looking ahead: at a loop's body, or at what is known when compiling. */
#ifndef NNC_FRONTENDS_NNC_COMPOSE_H
#define NNC_FRONTENDS_NNC_COMPOSE_H

#include "ir/graph.h"

typedef struct Composer Composer;

/* A file that uses the library; `path` is for messages and must outlive the composer, which lives in the arena. */
Composer *nnc_compose(Arena *arena, Diag *diag, Str path);
Module *nnc_compose_module(Composer *composer);

void nnc_compose_open(Composer *composer, Str name);
Graph *nnc_compose_graph(Composer *composer); /* the innermost that is open */
ValueId nnc_compose_input(Composer *composer, Str name, const Type *type);
ValueId nnc_compose_param(Composer *composer, Str name, const Type *type);
ValueId nnc_compose_const(Composer *composer, Str name, const Tensor *tensor);
/* Builds the statements; errors name `what` as their file.  False after one.  Both texts must outlive the diag.
 * In the outermost graph, whose nodes nobody runs, statements that are alike are built once: of the others its values
 * have the types and nothing that computes them. */
bool nnc_compose_add(Composer *composer, Str what, Str statements);
bool nnc_compose_is_exhausted(const Composer *composer); /* nothing more is built: there is too much already */
/* The call that the last statement of the outermost graph ends with; of one that was like an earlier one, that one's,
 * which has another label.  No body: it ends with none. */
typedef struct ComposedCall {
    const Graph *body;
    Str label;
} ComposedCall;
ComposedCall nnc_compose_call(const Composer *composer);
/* What a name of the innermost graph stands for; NONE when that is no tensor, or nothing. */
ValueId nnc_compose_find(Composer *composer, Str name);
/* Ends the innermost graph with these results.  The outermost becomes a graph of the module.  NULL after errors. */
Graph *nnc_compose_close(Composer *composer, const Str *result, uint32_t count);
/* Frees what only building needed; the module stays. */
void nnc_compose_end(Composer *composer);

#endif
