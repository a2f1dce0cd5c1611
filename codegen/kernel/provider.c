/* The ways to compute kernels.  A library joins with a row of its own. */
#include "kernel/lower/lower.h"

const Provider *const provider_table[] = {
    &provider_map,       &provider_assembly,
    &provider_update,    &provider_scatter,
    &provider_rows,      &provider_window,
    &provider_running,   &provider_tiled,
    &provider_winograd,  &provider_blocked,
    &provider_depthwise, &provider_gradient,
    &provider_outer,     &provider_openblas, NULL,
};
