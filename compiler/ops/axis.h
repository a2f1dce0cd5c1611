/* Axes as the text gives them: counted from the end when negative. */
#ifndef NNC_OPS_AXIS_H
#define NNC_OPS_AXIS_H

#include <stdint.h>

/* An axis as a position from 0. */
static inline uint32_t axis_position(int64_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

#endif
