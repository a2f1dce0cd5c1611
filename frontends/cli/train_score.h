/* What a training is judged by: means of what its graphs give. */
#ifndef NNC_CLI_TRAIN_SCORE_H
#define NNC_CLI_TRAIN_SCORE_H

#include "cli/train_samples.h"

typedef struct Score {
    Str name;        /* of a number that the graph gives, or "accuracy" */
    uint32_t output; /* of the graph */
    bool is_share;   /* of samples whose largest element is that of their label; else the mean of a number */
    int64_t classes; /* of a share: labels that are none of them do not count */
    double sum, count;
} Score;

typedef struct Scores {
    Score *at;
    uint32_t count;
} Scores;

/* One for each output that is one float, of any rank, and for each output `logits` or `probability`, [batch, ...,
 * classes], where there are labels [batch, ...], not all below 0. */
Scores scores_of(Arena *arena, const Graph *graph, const Samples *samples);
Scores scores_copy(Arena *arena, const Scores *scores); /* with sums of its own, all zero */
void scores_clear(Scores *scores);
/* Adds a run over a batch, of which the first `kept` samples count.  False when a number is not finite, or a score
 * of a class is NaN. */
bool scores_add(Scores *scores, Tensor *const *output, const Samples *samples, int64_t kept);
double score_mean(const Score *score);
void score_print(Text *out, const Score *score); /* `loss 0.0312`, `accuracy 98.20 %` */

/* The one that tells which epoch is best: `loss`, else `accuracy`, else the first. */
uint32_t scores_judge(const Scores *scores);
bool score_better(const Score *score, double mean, double other); /* of loss-like numbers the lower */

#endif
