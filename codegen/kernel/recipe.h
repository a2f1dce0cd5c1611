/* How a kernel is computed, as a value: who does it, with which knobs, and what that takes.  A recipe prints and parses
 * as the mark `@kernel(3, tiled, pixels = 14, vectors = 2)`; a user may write one, and then it is followed or refused.
 */
#ifndef NNC_KERNEL_RECIPE_H
#define NNC_KERNEL_RECIPE_H

#include "kernel/storage.h"
#include "target.h"

typedef struct Kernel Kernel;
typedef struct Lower Lower;
typedef struct Provider Provider;

/* What a kernel is, which decides who may compute it. */
typedef enum Form {
    FORM_MAP,         /* every result at its own position */
    FORM_ASSEMBLY,    /* a concat, a pad or a copy, alone: what does not lie in the result already is put there */
    FORM_ROWS,        /* reductions over the rows of one space, and what is made of them */
    FORM_WINDOW,      /* a pooling or another reduction, and what is made of it */
    FORM_CUMULATION,  /* running sums and products, and what is made of them */
    FORM_SORT,        /* positions in order along a dimension, alone */
    FORM_CONTRACTION, /* the same of a contraction */
    FORM_STRIPS,      /* a product whose rows are made of those of another product (lower/strip.h) */
    FORM_UPDATE,      /* parts at run-time positions replaced or added to, alone */
    FORM_FLOW,        /* no kernel, but where a loop or a branch begins or ends */
} Form;

#define MOST_KNOBS 6
#define KNOB_FREE  (-1) /* nobody has asked for a value */

typedef struct Scratch {
    const char *name;
    DType dtype;
    int64_t elements;
    bool per_thread; /* threads that run the kernel's rounds at once need one each; else they share it */
    bool carries;    /* what a serial loop leaves there for its next round: each thread reads what it has written */
    StorageId storage;
} Scratch;

typedef struct Recipe {
    const Provider *provider;
    int64_t knob[MOST_KNOBS]; /* in the order of the provider's */
    Scratch *scratch;
    uint32_t scratch_count, scratch_capacity;
    bool rewrites;    /* some of the result is written more than once, or by one of several threads, while operands are
                         still read */
    bool stores_last; /* of rows: of all that has their space's shape one result alone is stored, element by element,
                         by whoever has read before what else of the row there is to read */
} Recipe;

typedef struct KnobSpec {
    const char *name; /* NULL ends a list */
    int64_t most;     /* worth a try; of a flag, on or off, 1 */
    const char *doc;
} KnobSpec;

static inline bool knob_is_flag(const KnobSpec *knob) /* on, it prints as its name alone */
{
    return knob->most == 1;
}

/* One way to compute kernels. */
struct Provider {
    const char *name, *doc;
    const KnobSpec *knob;
    unsigned forms; /* 1 << Form, added: what it may take */
    bool library;   /* what it emits calls one: for targets with a backend alone */
    /* Does it compute this kernel on this target?  `recipe` comes with knobs that are asked for or free, and goes with
     * all of them set, and with what it takes.  Nothing is lowered. */
    bool (*offers)(Lower *lower, const Kernel *kernel, Recipe *recipe);
    /* In cycles of one core, about; only compared. */
    double (*cost)(const Lower *lower, const Kernel *kernel, const Recipe *recipe);
    void (*lower)(Lower *lower); /* appends the loops of lower->kernel to lower->block */
};

extern const Provider *const provider_table[]; /* ends with NULL */

/* NULL: nobody is called so. */
const Provider *provider_find(Str name);
/* May it compute for the target, as far as libraries go? */
bool provider_serves(const Provider *provider, const Target *target);

/* Sets kernel->recipe to the cheapest one that is offered, or to the one that a mark of its nodes asks for.  False
 * after an error in the diag: what is asked for is not offered. */
bool recipe_choose(Lower *lower, Kernel *kernel);
/* The provider's, all knobs free. */
Recipe recipe_free(const Provider *provider);
/* The same knobs without scratch, to be planned again: its pieces get the same numbers. */
Recipe recipe_to_plan(const Recipe *recipe);
/* Is the recipe, of knobs that are asked for or free, offered for the kernel?  Then all of them are set. */
bool recipe_offered(Lower *lower, const Kernel *kernel, Recipe *recipe);
/* Other recipes for a kernel that has one: those of other providers, and this one with one knob turned, the other knobs
 * left or free; none twice.  Returns how many. */
uint32_t recipe_variants(Lower *lower, Kernel *kernel, Recipe **list);
bool recipe_eq(const Recipe *a, const Recipe *b); /* by provider and knobs */
/* The recipe as a mark, with all knobs. */
KernelMark recipe_as_mark(Arena *arena, const Recipe *recipe);
/* What a user asks for at the kernel's nodes, at the first of them that is marked; NULL: nothing. */
const KernelMark *recipe_asked(const Graph *graph, const Kernel *kernel);
bool recipe_marks_agree(const KernelMark *a, const KernelMark *b); /* ask for the same */
/* Does every mark that a user has written stand at a node that some kernel computes?  False after errors. */
bool recipe_marks_are_heeded(const Graph *graph);
/* Where kernels of a text have become one and their recipes differ, none is binding: a warning says so. */
void recipe_release_marks(Graph *graph, Arena *scratch);
/* Writes the recipe down at the kernel's anchor, or first node. */
void recipe_mark(Graph *graph, const Kernel *kernel);

/* Adds a piece of scratch; the lowering finds it by its number. */
uint32_t recipe_scratch(Lower *lower, Recipe *recipe, const char *name, DType dtype, int64_t elements, bool per_thread);

#endif
