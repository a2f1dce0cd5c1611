/* nn.nnc, arrays.nnc, images.nnc and numeric.nnc, one behind the other, as bytes, made at build time by embed.py. */
#ifndef NNC_FRONTENDS_NNC_LIBRARY_H
#define NNC_FRONTENDS_NNC_LIBRARY_H

#include <stdint.h>

extern const unsigned char nnc_library_bytes[];
extern const uint32_t nnc_library_size;

#endif
