/* The safetensors format (github.com/huggingface/safetensors): a length, a JSON header, and the elements.
 *
 * A file is read in place: the tensors point into the caller's bytes, usually a mapping, so that large weights cost no
 * memory of their own.  Nothing in it is trusted: the header's length (16 MiB at most), offsets, overlaps, shapes,
 * sizes and the nesting of the JSON are checked, and each error names the file. */
#ifndef NNC_FORMATS_SAFETENSORS_H
#define NNC_FORMATS_SAFETENSORS_H

#include "formats/npy.h"

typedef struct StoredTensor {
    Str name;
    Str dtype_name;      /* as the file writes it: F32 */
    DType dtype;         /* DT_COUNT: one nnc does not have */
    Shape shape;         /* rank MAX_RANK + 1: more than nnc has */
    uint64_t begin, end; /* bytes of the file */
} StoredTensor;

typedef struct StoredText { /* of the header's `__metadata__` */
    Str key, text;
} StoredText;

/* "true": what the file lacks is drawn from initialisers. */
#define SAFETENSORS_PARTIAL "nnc.partial"

typedef struct Safetensors {
    const unsigned char *bytes;
    StoredTensor *tensor; /* in the order of the header */
    StoredText *text;
    uint32_t count, text_count;
    Map by_name;
} Safetensors;

/* False after an error. */
bool safetensors_parse(Arena *arena, Diag *diag, Str path, const unsigned char *bytes, size_t size, Safetensors *out);

/* The text under a key of the metadata; empty, and its ptr NULL, where there is none. */
Str safetensors_text(const Safetensors *file, const char *key);

/* Elements begin at a multiple of 64.  Writes aside and renames. */
bool safetensors_write(Diag *diag, Str path, const NamedTensor *tensor, uint32_t count, const StoredText *text,
                       uint32_t text_count);

#endif
