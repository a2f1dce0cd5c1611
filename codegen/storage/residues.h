/* Residues: nests that share the rows of a matrix, as panels of its columns and what is left of them, touch elements
 * that are apart modulo the length of a row, whatever rows they are of. */
#ifndef NNC_STORAGE_RESIDUES_H
#define NNC_STORAGE_RESIDUES_H

#include "storage/windows.h"

/* From the least to the largest element that the access, whose address is resolved, may touch, but for multiples of the
 * modulus; both inclusive. */
Extent residues_of(const KernelBuffer *buffer, const Reach *reach, int64_t modulus);

/* Are all elements of the storage that one nest touches others than those of the other nest, for some such modulus? */
bool residues_apart(const Kernel *kernel, const DealNest *a, const DealNest *b, StorageId storage);

#endif
