/* The .nnc text: source to Graph and Graph to source.  docs/language.md is the reference.
 *
 * The same syntax serves for people and for the IR: print(parse(print(g))) == print(g) after every pass.  Temporaries
 * print as %<index> and keep that index when parsed. */
#ifndef NNC_FRONTENDS_NNC_TEXT_H
#define NNC_FRONTENDS_NNC_TEXT_H

#include "ir/graph.h"

/* -D name=value: replaces the value of a top-level `const`, or gives an open dimension: `-D image.0=32` is the `?` at
 * position 0 of the input `image`. */
typedef struct Define {
    Str name, value;
    /* Not NULL: no flag, but the shape of a file with the elements of the input `name`, of the only one where that is
     * empty.  It gives the extents that the input leaves open. */
    const Shape *file;
} Define;

/* Does a file, as above, give extent `i` of an input of such a rank?  Leading extents that it lacks are 1. */
bool nnc_file_extent(const Define *define, Str input, uint32_t rank, uint32_t i, int64_t *extent);

/* Builds the graphs of a source text; `path` is for messages and for finding `use "other.nnc"` beside it.  The path and
 * the text must outlive the module.  NULL after errors in the diag (parsing goes on after each; DIAG_LIMIT are shown).
 * Calls of functions become OP_CALL nodes; the pass `expand` inlines them.
 * A constant declared without a value (`const w: f32[64, 3, 7, 7]`) has data with a NULL `data->data`, for the weights
 * loader to fill by the name value_show gives. */
Module *nnc_parse(Arena *arena, Diag *diag, Str path, Str text, const Define *define, uint32_t define_count);
Module *nnc_parse_file(Arena *arena, Diag *diag, Str path, const Define *define, uint32_t define_count);

/* The name that the first extent of an input is written as in its graph's text, `N` of `x: f32[N, 8]`; empty where it
 * is written otherwise, and of a scalar.  -D replaces it where it is a constant of the file. */
Str nnc_first_extent(Arena *arena, const Graph *graph, Str input);

/* Prints the module as a source file, or one graph of it.  Constants that nnc_const_is_stored names print without their
 * elements, but for those in bodies of loops and branches: whoever saves the text saves them beside it, by value_show.
 */
void nnc_print(Text *out, const Module *module);
void nnc_print_graph(Text *out, const Graph *graph);
/* The initialiser of a param or state as the text has it: `he_normal(seed = 1)`, `0.0`, `[1, 2]`.  False when it has
 * none. */
bool nnc_print_initial(Text *out, const Graph *graph, ValueId id);
/* One node as a statement, without indentation or line break, for comments; of a loop or a branch what stands before
 * its bodies.  The printer knows the names of one graph, which must not change while it is in use. */
typedef struct NodePrinter NodePrinter;
NodePrinter *nnc_node_printer(Arena *arena, const Graph *graph);
void nnc_print_node(NodePrinter *printer, Text *out, NodeId node);
/* For the nodes of a body of the node, which call what they capture as the graph around does. */
NodePrinter *nnc_body_printer(NodePrinter *outer, NodeId node, uint32_t sub);
bool nnc_const_is_stored(const Value *value);
/* Gives such constants names that the file beside the text can have: call it before printing what is saved so. */
void nnc_name_constants(Module *module);

/* The library: its functions with the comment above each, for `nnc help` and docs. */
Str nnc_library_text(void);
typedef struct LibraryFunction { /* parts of that text */
    Str name, section;           /* section: the heading that it stands under */
    Str signature;               /* `softmax(x, axis = -1)` */
    Str doc;                     /* the lines of the comment above it, each with its `# ` and line break */
    Str text;                    /* from `fn` to the closing brace */
} LibraryFunction;
/* The next function; `at` starts at 0, `function` cleared.  False after the last. */
bool nnc_library_next(uint32_t *at, LibraryFunction *function);
bool nnc_library_find(Str name, LibraryFunction *function);
/* The op or function of the library that is called so in NumPy, PyTorch or Keras, with or without a module or a tensor
 * before its dot; empty when none is known. */
Str nnc_foreign_name(Str name);
/* The dtype that is called so there, as `f32` is float32 and torch.float; empty when none is known. */
Str nnc_foreign_dtype(Str name);
/* Is what the parameter or attribute `ours` says given as `name` there, as `rate` is lr? */
bool nnc_is_foreign_parameter(Str name, Str ours);

#endif
