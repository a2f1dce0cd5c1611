#include "counter.h"

#include <stdio.h>

static _Alignas(64) unsigned char arena[COUNTER_ARENA_BYTES + 64], state[COUNTER_STATE_BYTES];

static void add(int times)
{
    const float one[1] = {1};
    float sum[1];

    for (int i = 0; i < times; i++) {
        counter_add(one, sum, state, arena);
        printf("%g ", (double)sum[0]);
    }
}

int main(void)
{
    counter_state_init(state);
    add(3);
    printf("| ");
    counter_reset(state, arena);
    add(2);
    printf("\n");
    return 0;
}
