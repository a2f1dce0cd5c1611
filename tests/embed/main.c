/* Digits on a bare machine: the model's own test, then ten images. */
#include "digits.h"
#include "semihost.h"

int digits_selftest(void); /* digits_selftest.c */

extern const uint8_t images[10][784];
static unsigned char arena[DIGITS_ARENA_BYTES] __attribute__((aligned(64)));

static int largest(const float probability[10])
{
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = probability[i] > probability[best] ? i : best;
    return best;
}

int main(void)
{
    float probability[10];
    int wrong = digits_selftest();

    semihost_print(wrong ? "the test of the model fails\n" : "the test of the model passes\n");
    for (int digit = 0; digit < 10; digit++) {
        if (digits_run(images[digit], probability, arena))
            return 2;
        int best = largest(probability);
        const char line[] = {(char)('0' + digit), ' ', 'i', 's', ' ', (char)('0' + best), '\n', 0};
        semihost_print(line);
        wrong |= best != digit;
    }
    return wrong;
}
