#include "ir/word.h"

bool word_is_mask(Word word)
{
    return word >= WORD_LT && word <= WORD_NOT;
}

bool word_takes_mask(Word word, uint32_t argument)
{
    bool logic = word == WORD_AND || word == WORD_OR || word == WORD_XOR || word == WORD_NOT;
    return logic || (word == WORD_SELECT && argument == 0);
}

bool word_is_expensive(Word word)
{
    switch (word) {
    case WORD_EXP:
    case WORD_EXP2:
    case WORD_EXPM1:
    case WORD_LOG:
    case WORD_LOG2:
    case WORD_LOG1P:
    case WORD_CBRT:
    case WORD_SIN:
    case WORD_COS:
    case WORD_TAN:
    case WORD_SINH:
    case WORD_COSH:
    case WORD_TANH:
    case WORD_ASINH:
    case WORD_ACOSH:
    case WORD_ATANH:
    case WORD_ERF:
    case WORD_SIGMOID:
    case WORD_POW:
    case WORD_FOLD_IN:
        return true;
    default:
        return false;
    }
}

uint32_t word_work(Word word)
{
    static const uint8_t work[WORD_COUNT] = {
        [WORD_OPERAND] = 0, [WORD_NUMBER] = 0, [WORD_DIV] = 16,     [WORD_MOD] = 40,     [WORD_SQRT] = 16,
        [WORD_EXP] = 36,    [WORD_EXP2] = 40,  [WORD_EXPM1] = 40,   [WORD_LOG] = 50,     [WORD_LOG2] = 50,
        [WORD_LOG1P] = 70,  [WORD_CBRT] = 60,  [WORD_SIN] = 60,     [WORD_COS] = 60,     [WORD_TAN] = 100,
        [WORD_ASIN] = 60,   [WORD_ACOS] = 60,  [WORD_ATAN] = 50,    [WORD_SINH] = 70,    [WORD_COSH] = 54,
        [WORD_TANH] = 54,   [WORD_ASINH] = 80, [WORD_ACOSH] = 80,   [WORD_ATANH] = 80,   [WORD_ERF] = 66,
        [WORD_POW] = 120,   [WORD_FMOD] = 40,  [WORD_SIGMOID] = 44, [WORD_FOLD_IN] = 80,
    };
    return word <= WORD_NUMBER || work[word] ? work[word] : 1;
}

uint32_t word_list_work(const ScalarList *list)
{
    uint32_t work = 0;
    for (uint32_t i = 0; i < list->count; i++)
        work += word_work(list->term[i].word);
    return work;
}

bool word_list_is_expensive(const ScalarList *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (word_is_expensive(list->term[i].word))
            return true;
    return false;
}
