/* nn.nnc as bytes, made at build time by embed.py. */
#ifndef NNC_FRONTENDS_NNC_LIBRARY_H
#define NNC_FRONTENDS_NNC_LIBRARY_H

#include <stdint.h>

extern const unsigned char library_text[];
extern const uint32_t library_size;

#endif
