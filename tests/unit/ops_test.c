/* Inference: what each op refuses, in which words, and which types it gives.  Values are checked by tests/conform. */
#include <stdlib.h>
#include <string.h>

#include "ops/doc.h"
#include "ops/family.h"
#include "ops/random.h"

#include "unit.h"

typedef struct Bench {
    Arena arena;
    Diag diag;
    Graph *graph;
} Bench;

static void bench_open(Bench *b)
{
    *b = (Bench){0};
    b->diag.arena = &b->arena;
    b->graph = graph_new(module_new(&b->arena, &b->diag), STR("test"));
}

static void bench_close(Bench *b)
{
    diag_free(&b->diag);
    arena_free(&b->arena);
}

/* An input from text as `x: f32[2, 3]`. */
static ValueId input(Bench *b, const char *text)
{
    const char *colon = strchr(text, ':'), *bracket = strchr(text, '[');
    Str name = str_copy(&b->arena, (Str){text, (uint32_t)(colon - text)});
    DType dtype = DT_F32;
    Shape shape = {0};

    if (!dtype_parse((Str){colon + 2, (uint32_t)(bracket - colon - 2)}, &dtype))
        abort();
    for (const char *at = bracket + 1; *at && *at != ']';) {
        char *end;
        shape.dim[shape.rank++] = strtoll(at, &end, 10);
        at = end + (*end == ',');
    }
    return graph_add_input(b->graph, module_type(b->graph->module, dtype, &shape, (Layout){0}), name, (Place){0});
}

/* Sets one attribute from text: `3`, `2.5`, `[1, 2]`, `true`, `f32`, `same`. */
static void set_attr(Bench *b, OpCode op, Attr *attr, const char *name, const char *text)
{
    uint32_t index = attr_index(op, str_from(name));
    Attr *a = &attr[index];
    DType dtype;
    if (index == NONE)
        abort();
    if (dtype_parse(str_from(text), &dtype)) {
        a->i = dtype;
    } else if (op_info(op)->attr[index].kind == ATTR_PAD && strcmp(text, "same") == 0) {
        *a = (Attr){.s = str_copy(&b->arena, str_from(text))};
    } else if (attr_is_list(op_info(op)->attr[index].kind)) {
        int64_t *ints = ARENA_ARRAY(&b->arena, int64_t, 16);
        a->i = 0;
        a->ints = ints;
        for (const char *at = text + (*text == '['); *at && *at != ']';) {
            char *end;
            ints[a->i++] = strtoll(at, &end, 10);
            at = end + (*end == ',');
        }
    } else {
        a->i = strcmp(text, "true") == 0 ? 1 : strtoll(text, NULL, 10);
        a->f = strtod(text, NULL);
    }
}

/* One op as text, `conv2d x w; stride = 2; pad = [1, 1]`, on inputs as text; returns its first result. */
static ValueId build(Bench *b, const char *call, const char *const *inputs)
{
    char text[256], *at = text;
    ValueId in[4];
    uint32_t count = 0;
    Attr attr[16];

    snprintf(text, sizeof text, "%s", call);
    char *part = strtok_r(text, ";", &at);
    OpCode op = op_find(str_from(part));
    if (op == OP_COUNT)
        abort();
    attr_defaults(op, attr);
    while ((part = strtok_r(NULL, ";", &at))) {
        char name[32], value[64];
        if (sscanf(part, " %31[a-z_] = %63[^;]", name, value) != 2)
            abort();
        set_attr(b, op, attr, name, value);
    }
    for (; inputs[count]; count++)
        in[count] = input(b, inputs[count]);
    return op_build(b->graph, op, in, count, attr, (Place){0});
}

typedef struct Case {
    const char *call;
    const char *in[4];
    const char *expected; /* a message, or a type */
} Case;

static void check_errors(Unit *unit, const Case *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Bench b;
        bench_open(&b);
        ValueId result = build(&b, c[i].call, c[i].in);
        bool found = b.diag.text.len && strstr(b.diag.text.ptr, c[i].expected);
        if (!found)
            printf("# %s: expected `%s`, got `%s`\n", c[i].call, c[i].expected, b.diag.text.len ? b.diag.text.ptr : "");
        EXPECT(found);
        EXPECT(value_type(b.graph, result) == NULL);
        EXPECT_INT(b.diag.error_count, 1);
        bench_close(&b);
    }
}

static void check_types(Unit *unit, const Case *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        Bench b;
        bench_open(&b);
        const Type *type = value_type(b.graph, build(&b, c[i].call, c[i].in));
        Str shown = type ? type_show(&b.arena, type) : STR("none");
        if (!str_is(shown, c[i].expected))
            printf("# %s: expected %s, got " STR_FMT " %s\n", c[i].call, c[i].expected, STR_ARG(shown),
                   b.diag.text.len ? b.diag.text.ptr : "");
        EXPECT(str_is(shown, c[i].expected));
        bench_close(&b);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

UNIT(operand_counts)
{
    static const Case c[] = {
        {"add", {"x: f32[3]"}, "add: takes x and y; 1 is given"},
        {"conv2d", {"x: f32[3]"}, "conv2d: takes x, weight and optionally bias; 1 is given"},
        {"select", {"x: f32[3]", "y: f32[3]"}, "select: takes mask, x and y; 2 are given"},
        {"concat", {NULL}, "concat: takes one or more x; 0 are given"},
        {"full; value = 1", {"x: f32[3]"}, "full: takes no operands; 1 is given"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(elementwise_errors)
{
    static const Case c[] = {
        {"add", {"x: f32[3]", "y: f32[4]"}, "add: shapes do not broadcast: x is f32[3], y is f32[4]"},
        {"mul", {"x: f32[3]", "n: i32[3]"}, "mul: dtypes differ (cast one): x is f32[3], n is i32[3]"},
        {"exp", {"n: i32[3]"}, "exp: takes floating-point numbers (cast them): n is i32[3]"},
        {"and", {"a: bool[]", "x: f32[]"}, "and: takes bools: x is f32[]"},
        {"add", {"a: bool[2]", "b: bool[2]"}, "add: takes numbers: a is bool[2]"},
        {"select", {"x: f32[]", "y: f32[]", "z: f32[]"}, "select: takes bools: x is f32[]"},
        {"select", {"m: bool[]", "y: f32[]", "z: f64[]"}, "select: dtypes differ (cast one): y is f32[], z is f64[]"},
        {"add", {"x: f32[1000000000, 1]", "y: f32[1, 1000000000]"}, "add: the result would have too many elements"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(reduce_errors)
{
    static const Case c[] = {
        {"reduce_sum; axes = 2", {"x: f32[3, 4]"}, "reduce_sum: axis 2 is out of range: x is f32[3, 4]"},
        {"reduce_sum; axes = [-3]", {"x: f32[3, 4]"}, "reduce_sum: axis -3 is out of range: x is f32[3, 4]"},
        {"reduce_sum; axes = [1, -1]", {"x: f32[3, 4]"}, "reduce_sum: axis -1 is given twice in `axes`"},
        {"reduce_max", {"x: f32[3, 0]"}, "reduce_max: nothing to choose from, dimension 1 is empty: x is f32[3, 0]"},
        {"reduce_sum", {"m: bool[3]"}, "reduce_sum: takes numbers: m is bool[3]"},
        {"argmax", {"x: f32[]"}, "argmax: takes at least one dimension: x is f32[]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(matmul_errors)
{
    static const Case c[] = {
        {"matmul",
         {"f: f32[1, 6272]", "w: f32[1024, 10]"},
         "matmul: inner extents differ: f is f32[1, 6272], w is f32[1024, 10]"},
        {"matmul; transpose_y = true",
         {"f: f32[2, 3]", "w: f32[3, 2]"},
         "matmul: inner extents differ: f is f32[2, 3], w is f32[3, 2] (transposed)"},
        {"matmul",
         {"x: f32[2, 4, 5]", "y: f32[3, 5, 4]"},
         "matmul: leading dimensions do not broadcast: x is f32[2, 4, 5], y is f32[3, 5, 4]"},
        {"matmul", {"x: f32[]", "y: f32[3]"}, "matmul: takes at least one dimension: x is f32[], y is f32[3]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(bitcast_errors)
{
    static const Case c[] = {
        {"bitcast; to = i16", {"x: f32[3]"}, "bitcast: i16 has 2 bytes, not 4: x is f32[3]"},
        {"bitcast; to = bool", {"x: u8[3]"}, "bitcast: a bool is 0 or 1, and no other bits: x is u8[3]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(conv_errors)
{
    static const Case c[] = {
        {"conv2d", {"x: f32[3, 8, 8]", "w: f32[4, 3, 3, 3]"}, "conv2d: takes an image [n, c, h, w]: x is f32[3, 8, 8]"},
        {"conv1d", {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3]"}, "conv1d: takes an image [n, c, w]: x is f32[1, 3, 8, 8]"},
        {"conv1d", {"x: f32[1, 3, 8]", "w: f32[4, 3]"}, "conv1d: takes a weight [o, c / groups, kw]: w is f32[4, 3]"},
        {"conv3d",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]"},
         "conv3d: takes an image [n, c, d, h, w]: x is f32[1, 3, 8, 8]"},
        {"conv3d; pad = [1, 2]",
         {"x: f32[1, 3, 8, 8, 8]", "w: f32[4, 3, 3, 3, 3]"},
         "conv3d: `pad` takes 1, 3 or 6 numbers, not 2"},
        {"conv3d_transpose",
         {"x: f32[1, 4, 8]", "w: f32[4, 3, 3]"},
         "conv3d_transpose: takes tensors of 5 dimensions: x is f32[1, 4, 8]"},
        {"conv2d",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 2, 3, 3]"},
         "conv2d: the weight takes 2 channels, the image has 3: x is f32[1, 3, 8, 8], w is f32[4, 2, 3, 3]"},
        {"conv2d; groups = 2",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]"},
         "conv2d: 2 groups do not divide 3 channels"},
        {"conv2d; groups = 3",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 1, 3, 3]"},
         "conv2d: 3 groups do not divide 4 output channels"},
        {"conv2d; groups = 0",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 1, 3, 3]"},
         "conv2d: `groups` must be at least 1, not 0"},
        {"conv2d",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]", "b: f32[3]"},
         "conv2d: takes a bias of 4 numbers: b is f32[3]"},
        {"conv2d; stride = 0",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]"},
         "conv2d: `stride` must be at least 1, not 0"},
        {"conv2d; pad = [1, 2, 3]",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]"},
         "conv2d: `pad` takes one number, [h, w] or [top, left, bottom, right], not 3 numbers"},
        {"conv2d; dilation = 4",
         {"x: f32[1, 3, 8, 8]", "w: f32[4, 3, 3, 3]"},
         "conv2d: the window is 9 high, the padded image only 8: x is f32[1, 3, 8, 8]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(pool_errors)
{
    static const Case c[] = {
        {"max_pool; window = [2, 9]",
         {"x: f32[1, 3, 8, 8]"},
         "max_pool: the window is 9 wide, the padded image only 8: x is f32[1, 3, 8, 8]"},
        {"max_pool; window = 2; pad = 2", {"x: f32[1, 3, 8, 8]"}, "max_pool: `pad` must be smaller than the window"},
        {"avg_pool; window = 2", {"x: i32[1, 3, 8, 8]"}, "avg_pool: takes floating-point numbers"},
        {"max_pool; window = 0", {"x: f32[1, 3, 8, 8]"}, "max_pool: `window` must be at least 1, not 0"},
        {"max_pool; window = 2; pad = 1; dilation = 2",
         {"x: f32[1, 3, 1, 8]"},
         "the taps, 2 apart, step over the image, 1 high"},
        {"max_pool; window = 2; pad = 1; dilation = 3", {"x: f32[1, 3, 2, 2]"}, "padding alone arise"},
        {"max_pool; window = 4; stride = 3; ceil = true",
         {"x: f32[1, 3, 1]"},
         "max_pool: the window is 4 wide, the padded image only 1: x is f32[1, 3, 1]"},
        {"max_pool; window = 2", {"x: f32[3, 8]"}, "max_pool: takes an image [n, c, h, w], or with another number"},
        {"max_pool; window = [1, 2, 3]", {"x: f32[1, 3, 8, 8]"}, "max_pool: `window` takes one number or 2, not 3"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(view_errors)
{
    static const Case c[] = {
        {"reshape; shape = [4, 2]",
         {"x: f32[3, 3]"},
         "reshape: the shape has 8 elements, the operand 9: x is f32[3, 3]"},
        {"reshape; shape = [-1, 2]",
         {"x: f32[3, 3]"},
         "reshape: no extent fits for -1, the others make 2: x is f32[3, 3]"},
        {"reshape; shape = [-1, -1]", {"x: f32[3, 3]"}, "reshape: only one extent may be -1"},
        {"reshape; shape = [-2, 3]", {"x: f32[3, 3]"}, "reshape: an extent cannot be -2"},
        {"transpose; axes = [0]",
         {"x: f32[3, 3]"},
         "transpose: `axes` must list all 2 dimensions, not 1: x is f32[3, 3]"},
        {"transpose; axes = [0, 0]", {"x: f32[3, 3]"}, "transpose: axis 0 is given twice in `axes`"},
        {"broadcast; shape = [2, 4]", {"x: f32[3]"}, "broadcast: does not broadcast to f32[2, 4]: x is f32[3]"},
        {"slice; axes = [0]; begin = [0]; end = [1]; step = 0", {"x: f32[3]"}, "slice: a step cannot be 0"},
        {"slice; axes = [1]; begin = [0]; end = [1]", {"x: f32[3]"}, "slice: axis 1 is out of range: x is f32[3]"},
        {"slice; axes = [0, 1]; begin = [0, 1, 2]; end = [1]",
         {"x: f32[3, 3]"},
         "slice: `begin` takes one number or 2, not 3"},
        {"split; axis = 1; sizes = []", {"x: f32[3, 5]"}, "split: `sizes` must add up to 5"},
        {"split; axis = 1; sizes = [2, 2]",
         {"x: f32[3, 5]"},
         "split: `sizes` must add up to 5, the extent of dimension 1: x is f32[3, 5]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(other_errors)
{
    static const Case c[] = {
        {"concat; axis = 1",
         {"x: f32[3, 2]", "y: f32[4, 2]"},
         "concat: shapes differ outside of dimension 1: x is f32[3, 2], y is f32[4, 2]"},
        {"concat", {"x: f32[3]", "y: f32[]"}, "concat: joins tensors along a dimension (axis = N): y is f32[]"},
        {"concat", {"x: f32[3]", "y: f64[3]"}, "concat: dtypes differ (cast one): x is f32[3], y is f64[3]"},
        {"stack", {"x: f32[3, 2]", "y: f32[3, 1]"}, "stack: shapes differ: x is f32[3, 2], y is f32[3, 1]"},
        {"stack", {"x: f32[3]", "y: f64[3]"}, "stack: dtypes differ (cast one): x is f32[3], y is f64[3]"},
        {"pad; before = [1]; after = [1, 2, 3]", {"x: f32[2, 2]"}, "pad: `after` takes one number or 2, not 3"},
        {"pad; before = [-1]; after = [1]", {"x: f32[2, 2]"}, "pad: `before` must be at least 0, not -1"},
        {"gather", {"t: f32[3, 4]", "i: f32[2]"}, "gather: takes integers: i is f32[2]"},
        {"gather", {"t: f32[0, 4]", "i: i32[2]"}, "gather: the table has nothing to read: t is f32[0, 4]"},
        {"scatter_add", {"x: f32[3, 4]", "i: f32[2]", "u: f32[2, 4]"}, "scatter_add: takes integers: i is f32[2]"},
        {"scatter_add", {"x: bool[3, 4]", "i: i32[2]", "u: bool[2, 4]"}, "scatter_add: takes numbers: x is bool[3, 4]"},
        {"scatter_add",
         {"x: f32[3, 4]", "i: i32[2]", "u: f16[2, 4]"},
         "scatter_add: dtypes differ (cast one): x is f32[3, 4], u is f16[2, 4]"},
        {"scatter_add; axis = 1",
         {"x: f32[3, 4]", "i: i32[2]", "u: f32[2, 4]"},
         "scatter_add: the update has to be f32[3, 2], the index's shape in place of the axis: x is f32[3, 4], i is "
         "i32[2], u is f32[2, 4]"},
        {"scatter_add; axis = 2",
         {"x: f32[3, 4]", "i: i32[2]", "u: f32[2, 4]"},
         "scatter_add: axis 2 is out of range: x is f32[3, 4]"},
        {"scatter",
         {"x: bool[0]", "i: i32[2]", "u: bool[2]"},
         "scatter: there is nowhere to put anything: x is bool[0]"},
        {"scatter_max", {"x: bool[3]", "i: i32[2]", "u: bool[2]"}, "scatter_max: takes numbers: x is bool[3]"},
        {"bit_and", {"x: f32[3]", "y: f32[3]"}, "bit_and: takes integers: x is f32[3]"},
        {"cumprod; axis = 2", {"x: f32[3, 4]"}, "cumprod: axis 2 is out of range: x is f32[3, 4]"},
        {"scatter_add",
         {"x: f32[0, 4]", "i: i32[2]", "u: f32[2, 4]"},
         "scatter_add: there is nowhere to add: x is f32[0, 4]"},
        {"scatter_add",
         {"x: f32[1, 1, 1, 1, 1]", "i: i32[1, 1, 1, 1, 1]", "u: f32[1]"},
         "scatter_add: the update would have 9 dimensions, more than 8"},
        {"cumsum; axis = 2", {"x: f32[3, 4]"}, "cumsum: axis 2 is out of range: x is f32[3, 4]"},
        {"cumsum; axis = 0", {"x: f32[]"}, "cumsum: axis 0 is out of range: x is f32[]"},
        {"cumsum; axis = 0", {"x: bool[3]"}, "cumsum: takes numbers: x is bool[3]"},
        {"random_uniform; shape = [2]", {"k: i32[]"}, "random_uniform: a key is an i64[]: k is i32[]"},
        {"random_normal; shape = [2]", {"k: i64[1]"}, "random_normal: a key is an i64[]: k is i64[1]"},
        {"random_bits; shape = [-2]", {"k: i64[]"}, "random_bits: `shape` must be at least 0, not -2"},
        {"random_uniform; shape = [2]; dtype = i8",
         {"k: i64[]"},
         "random_uniform: gives floating-point numbers, not i8"},
        {"random_uniform; shape = [1, 1, 1, 1, 1, 1, 1, 1, 1]",
         {"k: i64[]"},
         "random_uniform: the result would have 9 dimensions, more than 8"},
        {"fold_in", {"k: i32[]", "n: i32[]"}, "fold_in: takes i64: k is i32[]"},
        {"iota; axis = 2; shape = [3, 4]", {NULL}, "iota: axis 2 is out of range: the shape has 2 dimensions"},
        {"uniform; seed = 1; dtype = i32", {NULL}, "uniform: gives floating-point numbers, not i32"},
        {"full; value = 0; shape = [-2]", {NULL}, "full: `shape` must be at least 0, not -2"},
        {"relayout; block = 16",
         {"x: f32[3, 4]"},
         "relayout: blocks the channels of an image [n, c, h, w], or [n, c, w]: x is f32[3, 4]"},
    };
    check_errors(unit, c, COUNT(c));
}

UNIT(result_types)
{
    static const Case c[] = {
        {"add", {"x: f16[3, 1]", "y: f16[4]"}, "f16[3, 4]"},
        {"lt", {"x: i64[3]", "y: i64[]"}, "bool[3]"},
        {"select", {"m: bool[2, 1]", "x: i8[3]", "y: i8[]"}, "i8[2, 3]"},
        {"cast; to = bf16", {"x: i64[0, 2]"}, "bf16[0, 2]"},
        {"reduce_sum", {"x: f32[3, 4]"}, "f32[]"},
        {"reduce_sum; axes = [0, -1]; keep = true", {"x: f32[3, 4, 5]"}, "f32[1, 4, 1]"},
        {"reduce_sum; axes = 1", {"x: f32[3, 0]"}, "f32[3]"},
        {"argmax; axis = 0", {"x: f32[3, 4]"}, "i64[4]"},
        {"matmul", {"x: f32[5, 1, 2, 3]", "y: f32[4, 3, 7]"}, "f32[5, 4, 2, 7]"},
        {"matmul", {"x: f32[3]", "y: f32[3]"}, "f32[]"},
        {"matmul", {"x: f32[3]", "y: f32[2, 3, 4]"}, "f32[2, 4]"},
        {"matmul; transpose_y = true", {"x: f32[2, 3]", "y: f32[5, 3]"}, "f32[2, 5]"},
        {"conv2d; stride = [2, 1]; pad = [1, 0]; dilation = 2; groups = 2",
         {"x: f32[2, 4, 9, 9]", "w: f32[6, 2, 3, 2]"},
         "f32[2, 6, 4, 7]"},
        {"max_pool; window = [3, 2]; stride = 2; pad = [1, 0, 0, 1]", {"x: f32[1, 3, 8, 8]"}, "f32[1, 3, 4, 4]"},
        {"max_pool; window = [3, 2]", {"x: f32[1, 3, 8, 8]"}, "f32[1, 3, 2, 4]"},
        {"max_pool; window = [3, 2]; ceil = true", {"x: f32[1, 3, 8, 8]"}, "f32[1, 3, 3, 4]"},
        {"max_pool; window = 2; stride = 2; pad = 1; ceil = true", {"x: f32[1, 3, 3]"}, "f32[1, 3, 2]"},
        {"max_pool; window = 9; stride = 3; ceil = true", {"x: f32[1, 3, 7]"}, "f32[1, 3, 1]"},
        {"avg_pool; window = 3; dilation = 2; pad = 2; stride = 1", {"x: f32[1, 3, 1, 4, 5]"}, "f32[1, 3, 1, 4, 5]"},
        {"avg_pool; window = 2; pad = same; stride = 1", {"x: f32[1, 3, 4, 5]"}, "f32[1, 3, 4, 5]"},
        {"avg_pool; window = 2; pad = same", {"x: f32[1, 3, 4, 5]"}, "f32[1, 3, 2, 3]"},
        {"conv2d; pad = same; stride = 3", {"x: f32[1, 2, 7, 8]", "w: f32[4, 2, 1, 5]"}, "f32[1, 4, 3, 3]"},
        {"reshape; shape = [-1, 2]", {"x: f32[3, 4]"}, "f32[6, 2]"},
        {"reshape; shape = []", {"x: f32[1, 1]"}, "f32[]"},
        {"transpose", {"x: f32[2, 3, 4]"}, "f32[4, 3, 2]"},
        {"slice; axes = [0, 1]; begin = [-1, 1]; end = [-9223372036854775807, 100]; step = [-2, 3]",
         {"x: f32[5, 9]"},
         "f32[3, 3]"},
        {"concat; axis = -1", {"x: f32[2, 3]", "y: f32[2, 4]"}, "f32[2, 7]"},
        {"stack; axis = -1", {"x: f32[2, 3]", "y: f32[2, 3]"}, "f32[2, 3, 2]"},
        {"stack; axis = 1", {"x: f32[2, 3]", "y: f32[2, 3]", "z: f32[2, 3]"}, "f32[2, 3, 3]"},
        {"stack", {"x: i8[]"}, "i8[1]"},
        {"pad; before = [1, 2]; after = 3", {"x: f32[2, 3]"}, "f32[6, 8]"},
        {"gather; axis = 1", {"t: f32[2, 9, 3]", "i: u8[5, 6]"}, "f32[2, 5, 6, 3]"},
        {"iota; shape = [4]", {NULL}, "i64[4]"},
        {"relayout; block = 16", {"x: f32[1, 20, 2, 2]"}, "f32[1, 20, 2, 2]{NCHW16c}"},
    };
    check_types(unit, c, COUNT(c));
}

/* An image and the same in blocks: elementwise ops keep the layout, take a plain bias, and a plain image where it is
 * the caller's or a weight, but no mixture of what was computed. */
UNIT(blocked_layout)
{
    Bench b;
    bench_open(&b);
    Attr block = {.i = 16};
    ValueId x = input(&b, "x: f32[1, 20, 2, 2]"), bias = input(&b, "bias: f32[20, 1, 1]");
    ValueId blocked = op_build(b.graph, OP_RELAYOUT, &x, 1, &block, (Place){0});
    ValueId sum = op_build2(b.graph, OP_ADD, op_build1(b.graph, OP_RELU, blocked, (Place){0}), bias, (Place){0});

    EXPECT_INT(value_type(b.graph, sum)->layout.block, 16);
    EXPECT_INT(b.diag.error_count, 0);
    EXPECT_INT(value_type(b.graph, op_build2(b.graph, OP_ADD, x, blocked, (Place){0}))->layout.block, 16);
    EXPECT_INT(b.diag.error_count, 0);
    op_build2(b.graph, OP_ADD, op_build1(b.graph, OP_RELU, x, (Place){0}), blocked, (Place){0});
    EXPECT(strstr(b.diag.text.ptr, "add: layouts differ: %6 is f32[1, 20, 2, 2], %2 is f32[1, 20, 2, 2]{NCHW16c}"));
    bench_close(&b);
}

/* A user of an op that failed is silent. */
UNIT(one_error_for_one_fault)
{
    Bench b;
    bench_open(&b);
    ValueId wrong = op_build2(b.graph, OP_ADD, input(&b, "x: f32[3]"), input(&b, "y: f32[4]"), (Place){0});
    ValueId user = op_build1(b.graph, OP_EXP, wrong, (Place){0});
    EXPECT(value_type(b.graph, user) == NULL);
    EXPECT_INT(b.diag.error_count, 1);
    bench_close(&b);
}

UNIT(initialisers_fit_their_params)
{
    Bench b;
    bench_open(&b);
    Attr attr[8];
    attr_defaults(OP_HE_NORMAL, attr);
    ValueId w =
        graph_add_value(b.graph, ROLE_PARAM, module_plain_type(b.graph->module, DT_I32, 0, NULL), STR("w"), (Place){0});
    graph_value(b.graph, w)->initial = graph_add_initial(b.graph, OP_HE_NORMAL, attr, (Place){0});
    EXPECT(!op_infer_initial(b.graph, w));
    EXPECT(strstr(b.diag.text.ptr, "he_normal: gives floating-point numbers, not i32"));
    bench_close(&b);
}

/* The known answers of Random123 1.09, kat_vectors, philox4x32 with 10 rounds. */
UNIT(philox_gives_the_published_words)
{
    uint32_t word[4];
    philox(0, 0, word);
    EXPECT_INT(word[0], 0x6627e8d5);
    EXPECT_INT(word[1], 0xe169c58d);
    EXPECT_INT(word[2], 0xbc57ac4c);
    EXPECT_INT(word[3], 0x9b00dbd8);
}

/* Pairs keep their bits: models depend on them. */
UNIT(normal_numbers_keep_their_bits)
{
    float first, second;
    random_normal_pair(0x6627e8d5, 0xe169c58d, &first, &second);
    EXPECT(first == 0x1.79d164p-1f && second == -0x1.607a6p-1f);
    random_normal_pair(0, 0, &first, &second);
    EXPECT(first == 0 && second == 0);
}

/* Every op has its line in both forms. */
UNIT(docs_list_every_op)
{
    Text table = {0}, markdown = {0};
    ops_print_table(&table, 100);
    ops_print_markdown(&markdown);
    for (int op = 0; op < OP_WRITTEN; op++) {
        char line[64];
        snprintf(line, sizeof line, "  %s(", op_info((OpCode)op)->name);
        EXPECT(strstr(table.ptr, line));
        snprintf(line, sizeof line, "| `%s(", op_info((OpCode)op)->name);
        EXPECT(strstr(markdown.ptr, line));
    }
    text_free(&table);
    text_free(&markdown);
}

int main(void)
{
    static const Test test[] = {
        RUN(operand_counts),
        RUN(elementwise_errors),
        RUN(reduce_errors),
        RUN(matmul_errors),
        RUN(bitcast_errors),
        RUN(conv_errors),
        RUN(pool_errors),
        RUN(view_errors),
        RUN(other_errors),
        RUN(result_types),
        RUN(blocked_layout),
        RUN(one_error_for_one_fault),
        RUN(initialisers_fit_their_params),
        RUN(docs_list_every_op),
        RUN(philox_gives_the_published_words),
        RUN(normal_numbers_keep_their_bits),
    };
    return UNIT_MAIN(test);
}
