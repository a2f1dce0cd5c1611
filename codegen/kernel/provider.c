/* The ways to compute kernels.  A library joins with a row of its own. */
#include "kernel/lower/lower.h"

const Provider *const provider_table[] = {
    &provider_map,
    &provider_assembly,
    &provider_update,
    &provider_scatter,
    &provider_rows,
    &provider_window,
    &provider_pool,
    &provider_columns,
    &provider_runs,
    &provider_running,
    &provider_insertion,
    &provider_radix,
    &provider_merging,
    &provider_tiled,
    &provider_pairs,
    &provider_amx,
    &provider_winograd,
    &provider_strassen,
    &provider_blocked,
    &provider_depthwise,
    &provider_gradient,
    &provider_depthwise_gradient,
    &provider_outer,
    &provider_dots,
    &provider_channels,
    &provider_axpy,
    &provider_strips,
    &provider_openblas,
    NULL,
};

const Provider *provider_find(Str name)
{
    for (uint32_t i = 0; provider_table[i]; i++)
        if (str_is(name, provider_table[i]->name))
            return provider_table[i];
    return NULL;
}

bool provider_serves(const Provider *provider, const Target *target)
{
    return !provider->library || (target->backend != BACKEND_GENERATED && target_takes_libraries(target));
}
