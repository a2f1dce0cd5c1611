/* Two batch sizes of digits in one program, C or C++: the batch of four gives four times what the single one gives. */
#include <math.h>
#include <stdio.h>

#include "four.h"
#include "one.h"

static unsigned char arena[FOUR_ARENA_BYTES + ONE_ARENA_BYTES + 64];
static float image[4 * 784], single[10], batch[40];

int main(int argc, char **argv)
{
    unsigned char *aligned = arena + (64 - (uintptr_t)arena % 64) % 64;
    FILE *file = fopen(argv[argc - 1], "rb");

    if (!file || fread(image, sizeof *image, 784, file) != 784)
        return 2;
    for (int i = 784; i < 4 * 784; i++)
        image[i] = image[i - 784];
    if (one_run(image, single, aligned) || four_run(image, batch, aligned))
        return 3;
    for (int i = 0; i < 40; i++)
        if (fabs(batch[i] - single[i % 10]) > 1e-5)
            return 4;
    printf("%s %s %.3f\n", one_model.name, four_model.name, single[3]);
    return 0;
}
