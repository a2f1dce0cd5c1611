/* NumPy's array files: .npy of versions 1 to 3 (numpy.lib.format), and .npz, a zip archive of them.
 *
 * Read: any order (C, Fortran) and endianness; f2 f4 f8 i1 i2 i4 i8 u1 b1, and V2, under which NumPy keeps bfloat16.
 * Tensors come back row-major and little-endian, in the module's arena.  Nothing in a file is trusted: lengths, shapes
 * and bools are checked, and each error names the file. */
#ifndef NNC_FORMATS_NPY_H
#define NNC_FORMATS_NPY_H

#include "ir/graph.h"

/* The bytes of a whole file; NULL after an error. */
const Tensor *npy_parse(Module *module, Str path, const unsigned char *bytes, size_t size);
const Tensor *npy_read(Module *module, Str path);
bool npy_write(Diag *diag, Str path, const Tensor *tensor);
/* What stands before the elements, of version 1.0, padded so that they begin at a multiple of 64. */
void npy_header(Text *out, const Type *type);

typedef struct NamedTensor {
    Str name;
    const Tensor *tensor;
} NamedTensor;

/* Member `name` (without .npy), or with an empty name the only one; NULL after an error, which lists the members. */
const Tensor *npz_read(Module *module, Str path, Str name);
/* Is it an archive that can be read? */
bool npz_check(Diag *diag, Str path);
/* Is there such a member?  False also when the file cannot be read. */
bool npz_has(Str path, Str name);
bool npz_write(Diag *diag, Str path, const NamedTensor *member, uint32_t count);

#endif
