/* Names in a function: what the model's names for weights have in common within an instance is the label of its call,
 * `block@encoder.layer.3(x)`, and what is left is the same in all instances: `attention.query.weight`. */
#include "onnx/repeat.h"

#include <ctype.h>
#include <string.h>

#include "frontends/nnc/lex.h"
#include "frontends/nnc/text.h"
#include "ir/op.h"

static uint32_t count_parts(Str name)
{
    uint32_t parts = 1;
    for (uint32_t i = 0; i < name.len; i++)
        parts += name.ptr[i] == '.';
    return parts;
}

/* The first so many parts */
static Str head_of(Str name, uint32_t parts)
{
    uint32_t end = 0;
    for (; end < name.len; end++)
        if (name.ptr[end] == '.' && --parts == 0)
            break;
    return (Str){name.ptr, end};
}

static Str rest_of(Str name, Str head)
{
    return head.len < name.len ? (Str){name.ptr + head.len + 1, name.len - head.len - 1} : (Str){0};
}

static uint32_t common_parts(Str a, Str b)
{
    uint32_t parts = 0, most = count_parts(a) < count_parts(b) ? count_parts(a) : count_parts(b);
    while (parts < most && str_eq(head_of(a, parts + 1), head_of(b, parts + 1)))
        parts++;
    return parts;
}

/* `name` without `.suffix` */
static bool strip_suffix(Str name, Str suffix, Str *prefix)
{
    if (name.len < suffix.len + 2 || name.ptr[name.len - suffix.len - 1] != '.' ||
        memcmp(name.ptr + name.len - suffix.len, suffix.ptr, suffix.len) != 0)
        return false;
    *prefix = (Str){name.ptr, name.len - suffix.len - 1};
    return true;
}

/* Do names that end in this suffix have the prefixes of all instances?  The first one sets them. */
static bool fits(const RepeatBlock *b, const RepeatName *name, Str suffix, Str *prefix, bool first)
{
    for (uint32_t i = 0; i < b->count; i++) {
        Str found;
        if (!lex_is_plain(suffix) || !strip_suffix(name->text[i], suffix, &found) ||
            (!first && !str_eq(found, prefix[i])))
            return false;
        prefix[i] = found;
    }
    return true;
}

static bool are_distinct(const Repeat *r, const RepeatBlock *b)
{
    Map seen = {.arena = r->arena};
    for (uint32_t i = 0; i < b->count; i++)
        if (!map_add(&seen, b->prefix[i], 0))
            return false;
    return true;
}

typedef enum Counting { /* which names say what the label is */
                        COUNT_ALL,
                        COUNT_GIVEN,
                        COUNT_PATHS, /* given, with a path: `unsqueeze_14`, a constant that an exporter has worked out,
                                        is renamed beside these */
} Counting;

static bool counts(const RepeatName *name, Counting which)
{
    return which == COUNT_ALL ||
           (name->given && (which == COUNT_GIVEN || memchr(name->text[0].ptr, '.', name->text[0].len)));
}

/* With a prefix of so many parts in the first instance: for all names that count. */
static bool split_names(RepeatBlock *b, uint32_t parts, Counting which)
{
    bool first = true;
    for (uint32_t i = 0; i < b->name_count; i++) {
        RepeatName *name = &b->name[i];
        if (!counts(name, which))
            continue;
        Str suffix = rest_of(name->text[0], head_of(name->text[0], parts));
        if (!fits(b, name, suffix, b->prefix, first))
            return false;
        name->suffix = suffix;
        first = false;
    }
    return true;
}

static bool has_given(const RepeatBlock *b)
{
    for (uint32_t i = 0; i < b->name_count; i++)
        if (b->name[i].given)
            return true;
    return false;
}

static bool find_prefix(const Repeat *r, RepeatBlock *b, Counting which)
{
    const RepeatName *first = NULL;
    uint32_t common = 0;
    for (uint32_t i = 0; i < b->name_count; i++) {
        if (!counts(&b->name[i], which))
            continue;
        uint32_t parts = first ? common_parts(first->text[0], b->name[i].text[0]) : count_parts(b->name[i].text[0]) - 1;
        common = first && common < parts ? common : parts;
        first = first ? first : &b->name[i];
        if (common == count_parts(b->name[i].text[0]))
            common--;
    }
    for (; common > 0; common--)
        if (split_names(b, common, which) && are_distinct(r, b))
            return true;
    for (uint32_t i = 0; i < b->name_count; i++)
        b->name[i].suffix = (Str){0};
    return false;
}

/* Names that the model does not have */

static bool is_taken(const RepeatBlock *b, Str suffix)
{
    for (uint32_t i = 0; i < b->name_count; i++)
        if (str_eq(b->name[i].suffix, suffix))
            return true;
    return false;
}

static Str last_word(Str name)
{
    for (;;) {
        uint32_t begin = name.len;
        while (begin > 0 && name.ptr[begin - 1] != '.')
            begin--;
        if (!begin || !isdigit((unsigned char)name.ptr[begin]))
            return (Str){name.ptr + begin, name.len - begin};
        name.len = begin - 1;
    }
}

/* What is left of the name behind the prefix, where that is alike in all instances */
static bool keep_rest(const Repeat *r, RepeatBlock *b, RepeatName *name)
{
    Str prefix = b->prefix[0], text = name->text[0];
    if (text.len <= prefix.len || text.ptr[prefix.len] != '.' || memcmp(text.ptr, prefix.ptr, prefix.len) != 0)
        return false;
    Str rest = rest_of(text, prefix), *all = arena_copy(r->arena, b->prefix, b->count * sizeof *b->prefix);
    if (!fits(b, name, rest, all, false) || is_taken(b, rest))
        return false;
    name->suffix = rest;
    return true;
}

/* The weight of attention.MatMul, which reads it, is attention.weight. */
static Str name_by_reader(const Repeat *r, const RepeatBlock *b, const RepeatName *name)
{
    uint32_t unit = b->at[0] + name->unit, at = 0;
    while (r->script->statement[r->unit[unit]].kind != STATEMENT_PLAIN)
        unit++;
    Str reader = onnx_statement_next(&r->script->statement[r->unit[unit]], &at, TOKEN_VALUE)->text;
    Str scope = head_of(reader, count_parts(reader) - 1);
    Str common = onnx_block_scope(r, b);
    uint32_t begin = common.len;
    if (scope.len <= begin || !str_eq((Str){scope.ptr, begin}, common) ||
        !lex_is_plain((Str){scope.ptr + begin, scope.len - begin}) || count_parts(reader) < 2)
        return STR("weight");
    return str_format(r->arena, "%.*s.weight", (int)(scope.len - begin), scope.ptr + begin);
}

static void make_up_suffix(const Repeat *r, RepeatBlock *b, RepeatName *name)
{
    Str stem = name->layer ? last_word(name->text[0]) : name_by_reader(r, b, name), word = stem;
    if (keep_rest(r, b, name))
        return;
    for (uint32_t number = 2; is_taken(b, word) || lex_is_reserved(word); number++)
        word = str_format(r->arena, STR_FMT "%u", STR_ARG(stem), number);
    name->suffix = word;
}

/* Labels for names none of which is the model's */
static bool make_up_prefix(const Repeat *r, RepeatBlock *b)
{
    static const char stem[] = "block";
    if (has_given(b))
        return false;
    for (uint32_t i = 0; i < b->count; i++)
        b->prefix[i] = str_format(r->arena, "%s%u.%u", stem, r->script->function_count, i);
    return true;
}

/* What the params of a name are called when the call has the label, unless they are called so already. */
static bool is_free(const Repeat *r, const RepeatBlock *b, const RepeatName *name, uint32_t instance)
{
    Str full = str_format(r->arena, STR_FMT "." STR_FMT, STR_ARG(b->prefix[instance]), STR_ARG(name->suffix));
    if (str_eq(full, name->text[instance]))
        return true;
    const OnnxLayer *layer = name->layer ? name->layer[instance] : NULL;
    for (uint32_t i = 0; layer && i < layer->count; i++) {
        Str param = rest_of(str_from(layer->name[i]), str_from(layer->label));
        Str whole = str_format(r->arena, STR_FMT "." STR_FMT, STR_ARG(full), STR_ARG(param));
        if (map_get(&r->script->elements, whole) != MAP_NONE)
            return false;
    }
    return map_get(&r->script->elements, full) == MAP_NONE && (layer || !name->layer);
}

/* Functions */

static bool is_of_library(OnnxScript *script, Str name)
{
    LibraryFunction function = {0};
    bool asked = script->library.count > 0;
    for (uint32_t at = 0; !asked && nnc_library_next(&at, &function);)
        map_put(&script->library, function.name, 1);
    return map_get(&script->library, name) != MAP_NONE;
}

static bool is_known_function(const Repeat *r, const RepeatBlock *b, Str name)
{
    return map_get(&r->script->functions, name) != MAP_NONE || op_find(name) < OP_COUNT ||
           is_of_library(r->script, name) || !lex_is_plain(name) ||
           (!b->called && map_get(&r->script->onnx->names, name) != MAP_NONE); /* the model tells these apart */
}

/* bottleneck_2 */
static bool has_number(Str name)
{
    uint32_t end = name.len;
    while (end > 0 && isdigit((unsigned char)name.ptr[end - 1]))
        end--;
    return end < name.len && end > 0 && name.ptr[end - 1] == '_';
}

/* layer of encoder.layer.3 and of encoder.layer3; bottleneck of what the model calls bottleneck_2 */
static Str function_name(Repeat *r, const RepeatBlock *b)
{
    Str word = b->called ? last_word(str_from(b->called)) : b->prefix ? last_word(b->prefix[0]) : (Str){0};
    bool numbered = !b->called || has_number(word);
    while (numbered && word.len && (isdigit((unsigned char)word.ptr[word.len - 1]) || word.ptr[word.len - 1] == '_'))
        word.len--;
    Str stem = word.len > 1 && lex_is_plain(word) ? word : STR("block"), name = stem;
    if (is_known_function(r, b, name))
        name = stem = str_format(r->arena, STR_FMT "_block", STR_ARG(stem));
    for (uint32_t number = 2; is_known_function(r, b, name); number++)
        name = str_format(r->arena, STR_FMT "%u", STR_ARG(stem), number);
    return name;
}

bool onnx_block_name(Repeat *r, RepeatBlock *b)
{
    b->prefix = b->name_count ? ARENA_ARRAY(r->arena, Str, b->count) : NULL;
    bool given = has_given(b), renames = r->script->onnx->named_by_ops;
    bool named = !b->name_count || find_prefix(r, b, COUNT_ALL) || (given && find_prefix(r, b, COUNT_GIVEN)) ||
                 (given && renames && find_prefix(r, b, COUNT_PATHS));
    if (!named && !make_up_prefix(r, b))
        return false;
    for (uint32_t i = 0; i < b->name_count; i++) {
        if (!b->name[i].suffix.len)
            make_up_suffix(r, b, &b->name[i]);
        for (uint32_t k = 0; k < b->count; k++)
            if (!is_free(r, b, &b->name[i], k))
                return false;
    }
    b->function = function_name(r, b);
    return true;
}
