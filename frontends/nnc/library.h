/* nn.nnc and the files beside it, one behind the other, as bytes, made at build time by embed.py. */
#ifndef NNC_FRONTENDS_NNC_LIBRARY_H
#define NNC_FRONTENDS_NNC_LIBRARY_H

#include <stdint.h>

extern const unsigned char nnc_library_bytes[];
extern const uint32_t nnc_library_size;

typedef struct LibraryPart { /* a file */
    const char *name;        /* as messages have it, `nn/arrays`; NULL ends the list */
    uint32_t begin, size;
} LibraryPart;
extern const LibraryPart nnc_library_part[];

#endif
