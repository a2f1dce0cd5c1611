/* Stored weights: the elements of params, states and stored constants, found by name in a .safetensors file. */
#ifndef NNC_FORMATS_WEIGHTS_H
#define NNC_FORMATS_WEIGHTS_H

#include "base/file.h"
#include "ir/graph.h"

/* Fills Value.data of every graph of the module from the file.  Tensors point into the mapping, which must outlive the
 * module.  `path` empty: there is no file.  Lists all that does not fit, constants without elements and, with
 * `need_params`, params that have neither elements nor an initialiser; names of the file that the model does not have
 * are a note.  False after errors. */
bool weights_load(Module *module, Str path, bool need_params, FileMap *map);

/* `dir/digits.nnc` -> `dir/digits.safetensors` */
Str weights_path_beside(Arena *arena, Str model);

/* Writes the elements of constants that nnc_print leaves out, under the names value_show gives; true when there are
 * none. */
bool weights_save(Module *module, Str path, bool (*stored)(const Value *value));

#endif
