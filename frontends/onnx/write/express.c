/* Nodes as the text of an expression (export.h).  The texts are our own, so what cannot be read is our fault. */
#include "onnx/write/export.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPERANDS 16
#define MOST_LISTED   64

enum { ATTRIBUTE_FLOAT = 1, ATTRIBUTE_INT = 2, ATTRIBUTE_STRING = 3, ATTRIBUTE_TENSOR = 4, ATTRIBUTE_INTS = 7 };

typedef struct Reader {
    Export *e;
    const char *at;
    DType dtype;
    const ExportId *operand;
    const char *wish; /* what the value is called, and its parts begin with; NULL in a function */
    Map made;         /* nodes, by their text: what is written twice is one */
} Reader;

static bool take(Reader *r, char c)
{
    while (*r->at == ' ')
        r->at++;
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* Letters, digits and what numbers have besides. */
static const char *take_word(Reader *r, const char *more)
{
    while (*r->at == ' ')
        r->at++;
    const char *begin = r->at;
    while (isalnum((unsigned char)*r->at) || (*r->at && strchr(more, *r->at)))
        r->at++;
    assert(r->at > begin);
    return str_copy(r->e->arena, (Str){begin, (uint32_t)(r->at - begin)}).ptr;
}

static uint32_t take_list(Reader *r, int64_t *list)
{
    uint32_t count = 0;
    while (!take(r, ']')) {
        assert(count < MOST_LISTED);
        char *end;
        list[count++] = strtoll(r->at, &end, 10);
        r->at = end;
        take(r, ',');
    }
    return count;
}

/* The dtype before `:` or `[`, if one stands here. */
static bool take_dtype(Reader *r, DType *dtype)
{
    const char *end = r->at;
    while (isalnum((unsigned char)*end))
        end++;
    if ((*end != ':' && *end != '[') || !dtype_parse((Str){r->at, (uint32_t)(end - r->at)}, dtype))
        return false;
    r->at = end + (*end == ':');
    return true;
}

/* Attributes */

static void take_tensor(Reader *r, Onnx__AttributeProto *attribute, DType dtype)
{
    Tensor *tensor = tensor_new(r->e->arena, module_plain_type(r->e->graph->module, dtype, 1, (int64_t[]){1}));
    const char *number = take_word(r, "+-._");
    if (dtype == DT_I64 || dtype == DT_U64)
        *(int64_t *)tensor->data = *number == '-' ? strtoll(number, NULL, 0) : (int64_t)strtoull(number, NULL, 0);
    else
        tensor_set_number(tensor, 0, strtod(number, NULL));
    attribute->type = ATTRIBUTE_TENSOR;
    attribute->t = export_tensor_proto(r->e->arena, tensor, NULL);
}

static void take_ints(Reader *r, Onnx__AttributeProto *attribute)
{
    int64_t list[MOST_LISTED];
    attribute->type = ATTRIBUTE_INTS;
    attribute->n_ints = take_list(r, list);
    attribute->ints = arena_copy(r->e->arena, list, attribute->n_ints * sizeof *list);
}

static void take_string(Reader *r, Onnx__AttributeProto *attribute)
{
    const char *end = strchr(r->at, '\'');
    attribute->type = ATTRIBUTE_STRING;
    attribute->has_s = true;
    attribute->s.len = (size_t)(end - r->at);
    attribute->s.data = arena_copy(r->e->arena, r->at, attribute->s.len + 1);
    r->at = end + 1;
}

static void take_number(Reader *r, Onnx__AttributeProto *attribute)
{
    const char *word = take_word(r, "+-._");
    DType dtype;
    if (dtype_parse(str_from(word), &dtype)) {
        attribute->type = ATTRIBUTE_INT;
        attribute->has_i = true;
        attribute->i = export_dtype(dtype);
    } else if (strpbrk(word, ".en")) { /* 0.5, 1e-5, inf */
        attribute->type = ATTRIBUTE_FLOAT;
        attribute->has_f = true;
        attribute->f = strtof(word, NULL);
    } else {
        attribute->type = ATTRIBUTE_INT;
        attribute->has_i = true;
        attribute->i = strtoll(word, NULL, 10);
    }
}

/* Is it what every op that has such an attribute takes without it?  That is left out: ONNX Runtime hands attributes on
 * to ops of its own that it fuses, and a QLinearAveragePool with dilations, be they 1, does not load. */
static bool is_default(const Onnx__AttributeProto *attribute)
{
    static const struct {
        const char *name;
        int64_t number; /* all of a list */
    } row[] = {
        {"count_include_pad", 0}, {"dilations", 1}, {"exclusive", 0}, {"group", 1}, {"keepdims", 1}, {"pads", 0},
        {"output_padding", 0},    {"reverse", 0},   {"strides", 1},
    };
    size_t i = 0;
    while (i < sizeof row / sizeof *row && strcmp(row[i].name, attribute->name) != 0)
        i++;
    if (i == sizeof row / sizeof *row)
        return false;
    bool same = attribute->type == ATTRIBUTE_INTS || attribute->i == row[i].number;
    for (size_t k = 0; k < attribute->n_ints; k++)
        same &= attribute->ints[k] == row[i].number;
    return same;
}

static void take_attribute(Reader *r, Onnx__NodeProto *node)
{
    Onnx__AttributeProto *attribute = export_attribute(r->e, node, take_word(r, "_"), ATTRIBUTE_INT);
    DType dtype;
    bool good = take(r, '=');
    assert(good);
    (void)good;
    while (*r->at == ' ')
        r->at++;
    if (take(r, '['))
        take_ints(r, attribute);
    else if (take(r, '\''))
        take_string(r, attribute);
    else if (take_dtype(r, &dtype))
        take_tensor(r, attribute, dtype);
    else
        take_number(r, attribute);
    if (is_default(attribute))
        node->n_attribute--;
}

/* Expressions */

static ExportId take_expression(Reader *r, const char *result);

/* What nodes are called that the language calls otherwise: as they are there, so that a value has one word, whether
 * this or its own op has made it. */
static const struct {
    const char *op, *word;
} words[] = {
    {"BitwiseAnd", "bit_and"}, {"BitwiseNot", "bit_not"}, {"BitwiseOr", "bit_or"},
    {"BitwiseXor", "bit_xor"}, {"Equal", "eq"},           {"Expand", "broadcast"},
    {"Greater", "gt"},         {"GreaterOrEqual", "ge"},  {"Less", "lt"},
    {"LessOrEqual", "le"},     {"Max", "maximum"},        {"Min", "minimum"},
    {"Range", "iota"},         {"Reciprocal", "recip"},   {"ScatterElements", "scatter_elements"},
    {"Squeeze", "reshape"},    {"Unsqueeze", "reshape"},  {"Where", "select"},
};

static const char *lower(Export *e, const char *wish, const char *op)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].op, op) == 0)
            return export_made_up(e, wish ? export_text(e, "%s.%s", wish, words[i].word) : words[i].word);
    char *word = arena_copy(e->arena, op, strlen(op) + 1);
    for (char *c = word; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return export_made_up(e, wish ? export_text(e, "%s.%s", wish, word) : word);
}

/* The text of the node that stands here, with its attributes. */
static Str node_text(const Reader *r)
{
    const char *end = r->at;
    int depth = 0;
    do {
        depth += (*end == '(' || *end == '{') - (*end == ')' || *end == '}');
        end++;
    } while (depth || *end == '{' || (end[-1] != ')' && end[-1] != '}'));
    return (Str){r->at, (uint32_t)(end - r->at)};
}

static ExportId take_node(Reader *r, const char *op, const char *result)
{
    ExportId in[MOST_OPERANDS], id;
    uint32_t count = 0;
    bool open = take(r, '(');
    assert(open);
    (void)open;
    while (!take(r, ')')) {
        assert(count < MOST_OPERANDS);
        in[count++] = take_expression(r, NULL);
        take(r, ',');
    }
    const char *plain = *op == '@' ? op + 1 : op;
    id = result ? export_id_near(r->e, result) : export_id_near(r->e, lower(r->e, r->wish, plain));
    Onnx__NodeProto *node = export_append(r->e, op, in, count, &id, 1);
    if (take(r, '{'))
        while (!take(r, '}')) {
            take_attribute(r, node);
            take(r, ',');
        }
    return id;
}

static ExportId take_node_once(Reader *r, const char *result)
{
    Str text = node_text(r);
    uint32_t id = map_get(&r->made, text);
    if (id == MAP_NONE) {
        id = take_node(r, take_word(r, "@"), result);
        map_put(&r->made, text, id);
    }
    r->at = text.ptr + text.len;
    return id;
}

static ExportId take_typed_list(Reader *r, DType dtype)
{
    int64_t list[MOST_LISTED];
    uint32_t count = take_list(r, list);
    return export_list(r->e, dtype, list, count);
}

static bool is_operand(const char *at)
{
    return *at >= 'x' && *at <= 'z' && !isalnum((unsigned char)at[1]);
}

static ExportId take_expression(Reader *r, const char *result)
{
    DType dtype = DT_I64;
    while (*r->at == ' ')
        r->at++;
    if (is_operand(r->at))
        return r->operand[*r->at++ - 'x'];
    if (take(r, '$'))
        return (ExportId)strtoul(take_word(r, ""), NULL, 10);
    if (take(r, '['))
        return take_typed_list(r, dtype);
    if (take(r, '_'))
        return EXPORT_LEFT_OUT;
    if (*r->at == '@' || isupper((unsigned char)*r->at))
        return take_node_once(r, result);
    if (!take_dtype(r, &dtype))
        dtype = r->dtype;
    else if (take(r, '['))
        return take_typed_list(r, dtype);
    return export_scalar(r->e, dtype, take_word(r, "+-."));
}

static ExportId say(Export *e, DType dtype, const ExportId *operand, const char *wish, const char *result,
                    const char *text)
{
    Reader r = {e, text, dtype, operand, wish, {.arena = e->arena}};
    ExportId id = take_expression(&r, result);
    assert(!*r.at);
    return id;
}

ExportId export_say(Export *e, DType dtype, const ExportId *operand, const char *result, const char *text)
{
    return say(e, dtype, operand, result, result, text);
}

/* For handlers */

static const char *formatted(const ExportNode *node, const char *format, va_list args)
{
    Text text = {0};
    text_vprintf(&text, format, args);
    const char *copy = str_copy(node->e->arena, text_view(&text)).ptr;
    text_free(&text);
    return copy;
}

ExportId export_make(ExportNode *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = formatted(node, format, args);
    va_end(args);
    return say(node->e, node->dtype, node->in, node->wish[0], NULL, text);
}

bool export_result(ExportNode *node, uint32_t i, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = formatted(node, format, args);
    va_end(args);
    node->out[i] = say(node->e, node->dtype, node->in, node->wish[i], node->wish[i], text);
    return true;
}

const char *export_ints(const ExportNode *node, const int64_t *list, uint32_t count)
{
    Text text = {0};
    text_char(&text, '[');
    for (uint32_t i = 0; i < count; i++)
        text_printf(&text, "%s%lld", i ? ", " : "", (long long)list[i]);
    text_char(&text, ']');
    const char *copy = str_copy(node->e->arena, text_view(&text)).ptr;
    text_free(&text);
    return copy;
}

const char *export_number(const ExportNode *node, DType dtype, double number)
{
    bool narrow = dtype == DT_F32;
    if (!dtype_is_float(dtype))
        return export_text(node->e, "%.0f", number);
    for (int digits = 1; digits < 17; digits++) { /* the shortest that is the same */
        const char *shorter = export_text(node->e, "%.*g", digits, number);
        if (strtod(shorter, NULL) == number || (narrow && strtof(shorter, NULL) == (float)number))
            return shorter;
    }
    return export_text(node->e, "%.17g", number);
}

bool export_no(ExportNode *node, const char *reason, const char *hint)
{
    node->reason = reason;
    node->hint = hint;
    return false;
}
