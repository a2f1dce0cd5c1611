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

bool word_list_is_expensive(const ScalarList *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (word_is_expensive(list->term[i].word))
            return true;
    return false;
}
