/* Portable grey and colour maps: .pgm and .ppm, plain (P2, P3) and raw (P5, P6), any maxval up to 65535. */
#ifndef NNC_FORMATS_PNM_H
#define NNC_FORMATS_PNM_H

#include "ir/graph.h"

/* As f32[channels, height, width], scaled to 0 .. 255; NULL after an error. */
const Tensor *pnm_parse(Module *module, Str path, const unsigned char *bytes, size_t size);
const Tensor *pnm_read(Module *module, Str path);

/* A tensor of [height, width] or [1 or 3, height, width], after any leading extents of 1, is written raw; elements are
 * rounded and clamped to 0 .. 255. */
bool pnm_write(Diag *diag, Str path, const Tensor *tensor);

#endif
