/* Phases of transposed convolutions: one for each remainder of their strides (ConvolutionPhase of ops/meaning.h). */
#ifndef NNC_PASSES_PHASES_H
#define NNC_PASSES_PHASES_H

#define MOST_PHASES 16 /* that kernels compute one after the other, each a text of its own */

#endif
