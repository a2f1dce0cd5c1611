/* Stored weights: the elements of params, states and stored constants, found by name in a .safetensors file. */
#ifndef NNC_FORMATS_WEIGHTS_H
#define NNC_FORMATS_WEIGHTS_H

#include "base/file.h"
#include "formats/safetensors.h"

typedef enum WeightsFit {
    FIT_NONE,       /* no tensor of that name is stored */
    FIT_SAME,       /* dtype and shape agree */
    FIT_WIDTH,      /* a float of another width: can be converted */
    FIT_TRANSPOSED, /* [a, b] is stored as [b, a] */
    FIT_PERMUTED,   /* the same extents in another order */
    FIT_OTHER,      /* something else of that name */
} WeightsFit;

typedef struct WantedTensor { /* a param, a state, or a constant whose elements the text leaves out */
    Str name;
    const Graph *graph; /* where it was met first */
    ValueId value;
    const StoredTensor *stored; /* NULL: the file has none of that name, or there is no file */
    WeightsFit fit;
    const Tensor *tensor; /* what was loaded, or NULL */
} WantedTensor;

typedef struct WantedList { /* each name once, in the order of the graphs; one that has two types is there twice */
    WantedTensor *at;
    uint32_t count, capacity;
    Map by_key;
    bool *used; /* per tensor of the file: the model wants it */
} WantedList;

typedef struct WeightsFile { /* a file beside what the model wants of it; zero: there is no file */
    FileMap map;
    Safetensors stored; /* points into the mapping */
    WantedList wanted;
} WeightsFile;

typedef struct WeightsOptions {
    Str path;           /* of the .safetensors file; empty: there is none */
    bool need_elements; /* else a type is enough: nothing is drawn, and nothing is said of it */
    bool init_missing;  /* params that the file lacks are drawn from their initialisers */
    bool convert;       /* floats of another width become the param's */
    bool own;           /* elements that the module has already are enough */
    bool fresh;         /* where there is no file, all is drawn without a word */
    Str unread;         /* where there is none: a file that would be read if asked for */
} WeightsOptions;

/* Fills Value.data of every graph of the module from the file.  Tensors point into the mapping, which must outlive the
 * module; what was found stands in `file`.  Errors list all that does not fit, all params that the file lacks with the
 * nearest that it has, and what has no elements at all.  Notes tell of params that are drawn from their initialisers,
 * and of tensors that the model does not have.  False after errors. */
bool weights_load(Module *module, const WeightsOptions *options, WeightsFile *file);

/* The same without elements and without a word on what is missing or does not fit: for lists. */
bool weights_match(Module *module, Str path, WeightsFile *file);
const Value *weights_value(const WantedTensor *wanted);
const char *weights_role(const WantedTensor *wanted);              /* "param", "state" or "const" */
Str weights_show_stored(Arena *arena, const StoredTensor *stored); /* `F32[6272, 10]` */

/* `dir/digits.nnc` -> `dir/digits.safetensors` */
Str weights_path_beside(Arena *arena, Str model);

/* Writes the elements of what `stored` says nnc_print leaves out, under the names value_show gives; true when there are
 * none.  A file that lacks params which have an initialiser says so in its metadata, and is read as with init_missing.
 */
bool weights_save(Module *module, Str path, bool (*stored)(const Value *value));
bool weights_are_saved(Module *module, bool (*stored)(const Value *value)); /* are there any? */
/* The first tensor of the file that is not among them, so that writing over it would lose it; NULL: there is none. */
const StoredTensor *weights_first_lost(Module *module, const Safetensors *file, bool (*stored)(const Value *value));
/* The same, or the first that has other elements. */
const StoredTensor *weights_first_other(Module *module, const Safetensors *file, bool (*stored)(const Value *value));

#endif
