/* Names of the model as names of the text. */
#include <ctype.h>
#include <string.h>

#include "frontends/nnc/lex.h"
#include "onnx/import.h"

#define LONGEST      60  /* of what has to be changed */
#define LONGEST_KEPT 200 /* of what is a name of the language */

/* Does the part that the name begins with, up to `/`, stand before the next one, too, as in `layer1/layer1.0`? */
static bool is_repeated(const char *name)
{
    size_t length = strcspn(name, "/");
    return length && name[length] && strncmp(name + length + 1, name, length) == 0 && name[2 * length + 1] == '.';
}

/* `/layer1/layer1.0/conv/Conv_output_0` is what PyTorch calls the result of a layer: layer1.0.conv. */
static void put_plain(Text *out, const char *name)
{
    bool part = true, scoped = *name == '/'; /* a part begins */
    for (; *name; name++) {
        while (scoped && *name == '/' && is_repeated(name + 1))
            name += strcspn(name + 1, "/") + 1;
        unsigned char c = (unsigned char)*name;
        bool word = isalnum(c) || c == '_';
        if (word && part && isdigit(c) && !out->len)
            text_char(out, 'x');
        if (word) {
            text_char(out, (char)c);
            part = false;
        } else if (!part && (c == '.' || c == '/' || c == ':')) {
            text_char(out, '.');
            part = true;
        } else if (!part && out->ptr[out->len - 1] != '_') {
            text_char(out, '_');
        }
    }
    while (out->len && (out->ptr[out->len - 1] == '.' || out->ptr[out->len - 1] == '_'))
        out->len--;
}

/* The end of a long name tells more than its beginning. */
static Str shortened(Text *plain)
{
    size_t skip = plain->len > LONGEST ? plain->len - LONGEST : 0;
    while (skip && skip < plain->len && !isalpha((unsigned char)plain->ptr[skip]))
        skip++;
    return (Str){plain->ptr + skip, (uint32_t)(plain->len - skip)};
}

/* `x_DequantizeLinear_Output`, as ONNX Runtime's quantisation calls what it puts between: x_dq */
static const struct {
    const char *given, *kept;
} quantised[] = {{"_DequantizeLinear_Output", "_dq"}, {"_QuantizeLinear_Output", "_q"}};

static bool is_quantised(const char *name)
{
    return str_ends(str_from(name), quantised[0].given) || str_ends(str_from(name), quantised[1].given);
}

static bool drop_tail(Text *plain, const char *tail)
{
    size_t length = strlen(tail);
    bool has = plain->len > length && memcmp(plain->ptr + plain->len - length, tail, length) == 0;
    plain->len -= has ? length : 0;
    return has;
}

static void drop_tails(Text *plain)
{
    const char *behind = "";
    for (size_t i = 0; i < sizeof quantised / sizeof *quantised; i++)
        if (drop_tail(plain, quantised[i].given))
            behind = quantised[i].kept;
    drop_tail(plain, "_output_0");
    text_printf(plain, "%s", behind);
}

const char *onnx_identifier(Onnx *onnx, const char *name)
{
    Str wish = str_from(name);
    if (wish.len && wish.len <= LONGEST_KEPT && lex_is_plain(wish) && !is_quantised(name))
        return str_copy(onnx->arena, wish).ptr;
    Text plain = {0};
    put_plain(&plain, name);
    drop_tails(&plain);
    Str kept = plain.len ? shortened(&plain) : STR("x");
    const char *copy = str_copy(onnx->arena, kept).ptr;
    text_free(&plain);
    if (!lex_is_plain(str_from(copy)))
        copy = str_format(onnx->arena, "x_%s", copy).ptr;
    return lex_is_plain(str_from(copy)) ? copy : "x";
}

bool onnx_is_number(Str name)
{
    static const char stem[] = "val_"; /* of PyTorch's exporter since 2.5 */
    uint32_t at = sizeof stem - 1;
    if (name.len <= at || memcmp(name.ptr, stem, at) != 0)
        return false;
    while (at < name.len && isdigit((unsigned char)name.ptr[at]))
        at++;
    return at == name.len;
}

static bool is_free(const Onnx *onnx, Str name)
{
    DType dtype;
    return map_get(&onnx->names, name) == MAP_NONE && !dtype_parse(name, &dtype);
}

/* Would it be called as an input or a result of the model is, and is not that one? */
static bool is_of_another(const Onnx *onnx, Str wish, const char *name)
{
    return !str_is(wish, name) &&
           (map_get(&onnx->inputs, wish) != MAP_NONE || map_get(&onnx->outputs, wish) != MAP_NONE);
}

bool onnx_can_be_named(Onnx *onnx, const char *name)
{
    Str wish = str_from(onnx_identifier(onnx, name));
    return is_free(onnx, wish) && !is_of_another(onnx, wish, name);
}

const char *onnx_unique(Onnx *onnx, const char *name)
{
    const char *plain = onnx_identifier(onnx, name);
    Str wish = str_from(plain), last = str_format(onnx->arena, "%s\n", plain); /* where to go on */
    uint32_t number = map_get(&onnx->names, last);

    for (number = number == MAP_NONE ? 1 : number; !is_free(onnx, wish) || is_of_another(onnx, wish, name);)
        wish = str_format(onnx->arena, "%s_%u", plain, ++number);
    map_put(&onnx->names, last, number);
    map_put(&onnx->names, wish, 1);
    if (!str_is(wish, name) || onnx_is_number(wish))
        map_put(&onnx->made, wish, 1);
    return wish.ptr;
}

/* `add_3` of a node called node_add_3: PyTorch's exporter by `torch.export` calls all results after their ops. */
void onnx_find_naming(Onnx *onnx)
{
    static const char prefix[] = "node_";
    size_t length = sizeof prefix - 1;
    const Onnx__GraphProto *graph = onnx->model->graph;
    for (size_t n = 0; n < graph->n_node && !onnx->named_by_ops; n++) {
        const Onnx__NodeProto *node = graph->node[n];
        const char *result = node->n_output && *node->output[0] ? node->output[0] : NULL;
        onnx->named_by_ops = node->name && result && strncmp(node->name, prefix, length) == 0 &&
                             strcmp(node->name + length, result) == 0;
    }
}

const char *onnx_unique_result(Onnx *onnx, const char *name)
{
    const char *unique = onnx_unique(onnx, name);
    bool by_ops = onnx->named_by_ops && !strchr(name, '.');
    if ((by_ops || is_quantised(name)) && map_get(&onnx->outputs, str_from(name)) == MAP_NONE)
        map_put(&onnx->made, str_from(unique), 1);
    return unique;
}

/* An input or a result of the model. */
void onnx_note_renamed(Onnx *onnx, const char *file_name, Str name)
{
    OnnxRenamed renamed = {str_from(file_name), name};
    if (!str_is(name, file_name))
        ARENA_PUSH(onnx->arena, onnx->renamed, onnx->renamed_count, onnx->renamed_capacity, renamed);
}
