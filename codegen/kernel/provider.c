/* The ways to compute kernels.  A library joins with a row of its own. */
#include "kernel/kernel.h"

const Provider *const provider_table[] = {
    &map_provider, &assembly_provider, &rows_provider, &window_provider, &tiled_provider, &blocked_provider, NULL,
};
