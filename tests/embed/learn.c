/* A network that learns on a bare machine: digits come one at a time from a file of the host, a byte that says which
 * and 784 pixels each.  It learns from the first LEARNT, and says how many of those after them it recognises. */
#include "learner.h"
#include "semihost.h"

enum { LEARNT = 600, ASKED = 200, NEEDED = 160 };

static unsigned char arena[LEARNER_ARENA_BYTES] __attribute__((aligned(64)));
static unsigned char params[LEARNER_PARAMS_BYTES] __attribute__((aligned(64)));
static unsigned char state[LEARNER_STATE_BYTES] __attribute__((aligned(64)));
static uint8_t sample[1 + 784]; /* the label, then the image */

static int largest(const float logits[10])
{
    int best = 0;
    for (int i = 1; i < 10; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static int learn(int file)
{
    float loss;

    for (int i = 0; i < LEARNT; i++) {
        if (!semihost_read(file, sample, sizeof sample))
            return 0;
        const int64_t label = sample[0];
        if (learner_step(sample + 1, &label, &loss, params, state, arena))
            return 0;
    }
    return 1;
}

/* How many it recognises, or -1. */
static int count_recognised(int file)
{
    float logits[10];
    int right = 0;

    for (int i = 0; i < ASKED; i++) {
        if (!semihost_read(file, sample, sizeof sample) || learner_classify(sample + 1, logits, params, arena))
            return -1;
        right += largest(logits) == sample[0];
    }
    return right;
}

int main(void)
{
    int file = semihost_open("digits.bin");

    if (file < 0 || learner_params_init(params, 0) || learner_state_init(state) || !learn(file))
        return 2;
    int right = count_recognised(file);
    if (right < 0)
        return 2;
    const char line[] = {(char)('0' + right / 100), (char)('0' + right / 10 % 10), (char)('0' + right % 10), 0};
    semihost_print(line);
    semihost_print(" of 200 recognised\n");
    return right < NEEDED;
}
