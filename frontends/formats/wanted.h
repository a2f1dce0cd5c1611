/* Between what a model wants from a file of stored weights and what the file has. */
#ifndef NNC_FORMATS_WANTED_H
#define NNC_FORMATS_WANTED_H

#include "formats/weights.h"

/* `file` without tensors: there is none. */
WantedList weights_wanted(Module *module, const Safetensors *file);
/* The entry of a value, or NULL when nothing of it is looked for. */
WantedTensor *weights_wanted_of(const WantedList *list, Arena *scratch, const Graph *graph, ValueId value);
/* What is declared without an initialiser, as in a graph that reads the params of another, gets that of the declaration
 * of the same name and type that has one. */
void weights_share_initials(Module *module, const WantedList *list);
/* Calls back for every value of the module, those of sub-graphs included. */
void weights_each_value(const Module *module, void (*visit)(void *context, const Graph *graph, ValueId value),
                        void *context);

WeightsFit weights_fit(const Type *type, const StoredTensor *stored);

/* Elements for what is wanted, from the mapped file: in place, copied where they are not aligned, or converted.  NULL
 * after an error in the diag. */
const Tensor *weights_take(Module *module, Str path, const Safetensors *file, const WantedTensor *wanted);

/* The stored tensor that was most likely meant for each that is missing: the nearest by name, then by shape, of those
 * that nothing wants.  NULL where none is left, and where looking on would take too long. */
typedef struct NearestStored NearestStored;
NearestStored *weights_nearest_open(Arena *arena, const Safetensors *file, const bool *used);
bool weights_nearest_left(const NearestStored *nearest); /* is there any? */
const StoredTensor *weights_nearest(NearestStored *nearest, Str name, const Type *type);

#endif
