/* The helpers at the head of an emitted .cu: scalar operations that C++ has no operator for, conversions, and what the
 * threads of a block compute together.  Only what the kernels use is printed. */
#ifndef NNC_CUDA_PRELUDE_H
#define NNC_CUDA_PRELUDE_H

#include "c/prelude.h"

typedef struct MeetNeeds { /* STMT_MEET, by word: sum, product, largest, least */
    bool need[4][DT_COUNT];
} MeetNeeds;

void cuda_need_meet(MeetNeeds *meets, PreludeNeeds *needs, Arena *arena, Word word, DType dtype);
void cuda_print_prelude(Text *out, Arena *arena, PreludeNeeds *needs, const MeetNeeds *meets);

#endif
