#include "ir/op.h"

#include <string.h>

#include "scalar.inc" /* of each elementwise row: NAME_scalar and NAME_gradient, made by words.py */

/* Attribute lists are written in op.def without commas between entries, so each entry brings its own. */
#define REQUIRED NULL
#define A_NONE
#define A_INT(name, d)    {#name, ATTR_INT, d},
#define A_FLOAT(name, d)  {#name, ATTR_FLOAT, d},
#define A_BOOL(name, d)   {#name, ATTR_BOOL, d},
#define A_INTS(name, d)   {#name, ATTR_INTS, d},
#define A_PAD(name, d)    {#name, ATTR_PAD, d},
#define A_DTYPE(name, d)  {#name, ATTR_DTYPE, d},
#define A_STRING(name, d) {#name, ATTR_STRING, d},

/* clang-format off */
#define OP(NAME, name_, FAMILY, operands_, EFFECT, INPLACE, doc_, ...)                                                 \
    [OP_##NAME] = {.name = #name_, .operands = operands_, .family = FAMILY_##FAMILY, .effect = EFFECT_##EFFECT,        \
                   .inplace = INPLACE_##INPLACE, .attr = (const AttrSpec[]){__VA_ARGS__ {NULL, ATTR_INT, NULL}},       \
                   .doc = doc_},
#define ELEMENTWISE(NAME, name_, operands_, expression_, CLASS, RESULT, commutative_, doc_, ...)                       \
    [OP_##NAME] = {.name = #name_, .operands = operands_, .family = FAMILY_ELEMENTWISE, .effect = EFFECT_PURE,         \
                   .inplace = INPLACE_SAME, .attr = (const AttrSpec[]){{NULL, ATTR_INT, NULL}},                        \
                   .scalar = &name_##_scalar, .expression = #expression_, .gradient = name_##_gradient,                \
                   .gradient_text = #__VA_ARGS__, .result = RESULT_##RESULT,                                           \
                   .operand_class = CLASS_##CLASS, .commutative = commutative_, .doc = doc_},
/* clang-format on */

static const OpInfo op_table[OP_COUNT] = {
#include "ir/op.def"
};

const OpInfo *op_info(OpCode op)
{
    return &op_table[op];
}

OpCode op_find(Str name)
{
    for (int i = 0; i < OP_WRITTEN; i++)
        if (str_is(name, op_table[i].name))
            return (OpCode)i;
    return OP_COUNT;
}

static bool is_word(const ScalarList *list, Word word)
{
    const ScalarTerm *last = &list->term[list->count - 1];
    bool same = last->word == word && list->count == last->args + 1u;
    for (uint32_t i = 0; same && i < last->args; i++)
        same = last->arg[i] == i && list->term[i].word == WORD_OPERAND && list->term[i].arg[0] == i;
    return same;
}

OpCode op_of_word(Word word)
{
    for (int i = 0; i < OP_COUNT; i++)
        if (op_table[i].scalar && is_word(op_table[i].scalar, word))
            return (OpCode)i;
    return OP_COUNT;
}

uint32_t op_attr_count(OpCode op)
{
    uint32_t count = 0;
    while (op_table[op].attr[count].name)
        count++;
    return count;
}

uint32_t op_least(OpCode op)
{
    const char *s = op_table[op].operands;
    uint32_t count = *s != 0;
    for (; *s; s++)
        count += *s == ' ';
    return s[-(*op_table[op].operands != 0)] == '?' ? count - 1 : count;
}

uint32_t op_most(OpCode op)
{
    const char *s = op_table[op].operands;
    uint32_t count = *s != 0;
    for (; *s; s++) {
        count += *s == ' ';
        if (*s == '*')
            return UINT32_MAX;
    }
    return count;
}

Str op_list(OpCode op)
{
    const char *last = strrchr(op_table[op].operands, ' ');
    uint32_t len = last ? (uint32_t)strlen(last + 1) : 0;
    return len && last[len] == '*' ? (Str){last + 1, len - 1} : (Str){0};
}
