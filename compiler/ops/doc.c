#include "ops/doc.h"

static const char *const family_title[FAMILY_COUNT] = {
    [FAMILY_ELEMENTWISE] = "Elementwise",
    [FAMILY_CAST] = "Conversion",
    [FAMILY_REDUCE] = "Reductions",
    [FAMILY_CUMULATE] = "Running sums and products",
    [FAMILY_SORT] = "Order",
    [FAMILY_CONTRACT] = "Contractions",
    [FAMILY_POOL] = "Pooling",
    [FAMILY_MATCH] = "Matching elements of windows",
    [FAMILY_VIEW] = "Views",
    [FAMILY_ASSEMBLE] = "Assembly",
    [FAMILY_GATHER] = "Gather and scatter",
    [FAMILY_DYNAMIC] = "Parts at run-time positions",
    [FAMILY_GENERATE] = "Generators",
    [FAMILY_DRAW] = "Random numbers from a key",
    [FAMILY_LAYOUT] = "Memory layout",
    [FAMILY_CONTROL] = "Sub-graphs",
    [FAMILY_DERIVATIVE] = "Gradients",
};

static const char *const family_note[FAMILY_COUNT] = {
    [FAMILY_ELEMENTWISE] =
        "One scalar expression at each position.  Operands broadcast by NumPy's rule and have one "
        "dtype; comparisons give `bool`.  Integer arithmetic wraps.",
    [FAMILY_CAST] =
        "Among integers the low bits are kept.  Floats to integers truncate; what is out of range takes "
        "the nearest end, NaN gives 0.  To `bool`, everything but 0 is true.  `bitcast` changes no bit, and no "
        "gradient "
        "passes it.",
    [FAMILY_REDUCE] =
        "Over `axes`, counted from the end when negative; over all of them by default.  `keep` leaves "
        "extent 1 in place of a reduced dimension.  The dtype stays, that of positions is `i64`.",
    [FAMILY_CUMULATE] =
        "Along `axis`, counted from the end when negative: `[1, 2, 3]` gives `[1, 3, 6]`, with `exclusive` `[0, 1, "
        "3]`, "
        "with `reverse` `[6, 5, 3]`, with both `[5, 3, 0]` (as ONNX's CumSum).  Terms are added in their order; `f16` "
        "and "
        "`bf16` are added in `f32`.",
    [FAMILY_SORT] =
        "Along `axis`, counted from the end when negative: of `[3, 1, 2, 1]` the positions are `[1, 3, 2, 0]`, with "
        "`count` of 2 `[1, 3]`, with `largest` `[0, 2, 1, 3]`.  Equal elements keep their order, -0 equals 0, and NaN "
        "is "
        "the largest of all.  `sort`, `argsort` and `top_k` of the library are made of it.",
    [FAMILY_CONTRACT] =
        "`matmul` follows NumPy: `[..., m, k] @ [..., k, n]`, leading dimensions broadcast, vectors are "
        "promoted.  Convolutions have 1, 2 or 3 dimensions: `conv2d` takes an image `[n, c, h, w]`, a weight `[o, c / "
        "groups, kh, kw]` and a "
        "bias `[o]`; `pad` is one number, `[h, w]`, `[top, left, bottom, right]`, `\"valid\"`, which is 0, or "
        "`\"same\"`: `ceil(extent / stride)` windows whatever their size, with an odd pixel of padding at the end "
        "(TensorFlow's SAME).  `conv1d` has one number for each of these, `conv3d` three or six.",
    [FAMILY_POOL] =
        "Over windows of an image `[n, c, ...]`, in each dimension after the second; `stride` is the window where it "
        "is not given, `pad` is as of `conv2d`.  Padding never wins a maximum; it counts in a mean only with "
        "`count_pad`.  With `ceil` a last window may stick out beyond the padding, if it begins before the "
        "padding at the end; what sticks out never counts (as PyTorch's `ceil_mode`).",
    [FAMILY_MATCH] =
        "What gradients of pooling are made of: `y` has an element for each window of `x`, and so has `v` in "
        "`pool_spread`, where in `pool_collect` it has one for each element of `x`.  Padding equals nothing.",
    [FAMILY_VIEW] =
        "The operand's elements under another index; no copy where the consumer can read the strides.  "
        "In `reshape` one extent may be -1.  `slice` follows Python: negative positions count from the "
        "end, all are clamped; `x[a:b:s]` in the language.",
    [FAMILY_ASSEMBLE] = "The result is put together from its operands.",
    [FAMILY_GATHER] =
        "The shape of `index` replaces the axis.  Negative indices count from the end; one out of range "
        "means the nearest end.  `scatter_add` is the transpose of `gather`: `update` has the shape of "
        "`gather(x, index, axis)`, and each of its slices is added where that reads it, those of equal indices one "
        "after another in their order, so that runs give the same bits; each addition rounds.  It is made in the "
        "memory of `x` where that dies.  The others combine in the same order: `scatter` replaces, so that of equal "
        "indices the last slice stays, `scatter_mul` multiplies, `scatter_max` and `scatter_min` keep the larger and "
        "the "
        "smaller.",
    [FAMILY_DYNAMIC] =
        "`at` is an `i32` or `i64` vector with one position for each dimension of `x`; in the language also a list, "
        "`dynamic_slice(x, [0, t, 0], [1, 4, 8])`, or one number for one axis, "
        "`dynamic_slice(x, t, 1, axis = 1)`, where the other axes stay whole.  Positions are clamped so that the part "
        "stays inside, as in XLA: a negative one is 0, and the largest is the extent less the part's.  An update is "
        "made in the memory of `x` where that dies.",
    [FAMILY_GENERATE] =
        "The type comes from `shape` and `dtype`, or from the `param` or `state` that is initialised. "
        "Random numbers are a pure function of seed and position (Philox 4x32-10).  Fans are those of "
        "a weight `[o, c, window...]`, or `[in, out]` with two dimensions.",
    [FAMILY_DRAW] =
        "Pure functions of `key`, an `i64[]` that is known when running, and of the position: the same key gives the "
        "same bits in every run and on every target, and those of a generator whose `seed` it is.  Keys for several "
        "draws are made with `fold_in(key, 0)`, `fold_in(key, 1)`, ...  Where one elementwise kernel reads a draw, "
        "that makes it, and it never lies in memory.",
    [FAMILY_LAYOUT] = "Placed by the compiler.",
    [FAMILY_CONTROL] =
        "Made by the language's calls, `while`, `do`, `scan`, `case` and `if`; see the language.  All bodies of a "
        "`while` take its operands as inputs, those of a `case` all but the selector.",
    [FAMILY_DERIVATIVE] =
        "In reverse mode, as ordinary nodes: gradients of gradients are nothing special.  The last column of the "
        "elementwise table is the rule of each operand: `d` is the gradient of the result `r`.",
};

static const char *class_name(const OpInfo *info)
{
    static const char *const name[] = {[CLASS_ANY] = "any",      [CLASS_NUMBER] = "numbers", [CLASS_FLOAT] = "floats",
                                       [CLASS_INT] = "integers", [CLASS_I64] = "i64",        [CLASS_BOOL] = "bool"};
    return name[info->operand_class];
}

const char *ops_attr_kind(AttrKind kind)
{
    static const char *const name[] = {[ATTR_INT] = "int",
                                       [ATTR_FLOAT] = "float",
                                       [ATTR_BOOL] = "bool",
                                       [ATTR_INTS] = "ints",
                                       [ATTR_PAD] = "ints, \"same\" or \"valid\"",
                                       [ATTR_DTYPE] = "dtype",
                                       [ATTR_STRING] = "string"};
    return name[kind];
}

void ops_print_signature(Text *out, const OpInfo *info)
{
    text_printf(out, "%s(", info->name);
    for (const char *s = info->operands; *s; s++)
        text_printf(out, "%s%c", *s == ' ' ? "," : "", *s);
    const char *separator = *info->operands ? ", " : "";
    for (const AttrSpec *spec = info->attr; spec->name; spec++) {
        text_printf(out, "%s%s", separator, spec->name);
        text_printf(out, spec->fallback ? " = %s" : ": %s",
                    spec->fallback ? spec->fallback : ops_attr_kind(spec->kind));
        separator = ", ";
    }
    text_char(out, ')');
}

#define DOC_COLUMN 38
#define NARROW     60 /* here docs stand below */

void ops_print_row(Text *out, Str signature, Str doc, size_t width)
{
    size_t column = width < NARROW ? 6 : DOC_COLUMN;
    text_printf(out, "  ");
    text_wrap(out, signature, 2, 6, width);
    bool beside = signature.len + 2 < column;
    if (!beside)
        text_char(out, '\n');
    text_fill(out, ' ', beside ? column - 2 - signature.len : column);
    text_wrap(out, doc, column, column, width);
    text_char(out, '\n');
}

void ops_print_table(Text *out, size_t width)
{
    Text signature = {0};
    for (int family = 0; family < FAMILY_FLOW; family++) {
        text_printf(out, "%s%s\n", family ? "\n" : "", family_title[family]);
        for (int op = 0; op < OP_COUNT; op++) {
            const OpInfo *info = op_info((OpCode)op);
            if ((int)info->family != family)
                continue;
            signature.len = 0;
            ops_print_signature(&signature, info);
            ops_print_row(out, text_view(&signature), str_from(info->doc), width);
        }
    }
    text_free(&signature);
}

/* A bar would end the cell of a Markdown table. */
static void print_cell(Text *out, const char *s)
{
    for (; *s; s++)
        text_printf(out, "%s%c", *s == '|' ? "\\" : "", *s);
}

static void print_markdown_row(Text *out, const OpInfo *info)
{
    text_printf(out, "| `");
    ops_print_signature(out, info);
    text_printf(out, "` | ");
    print_cell(out, info->doc);
    if (info->expression) {
        text_printf(out, " | %s | `", class_name(info));
        print_cell(out, info->expression);
        text_printf(out, "` | `");
        print_cell(out, info->gradient_text);
        text_char(out, '`');
    }
    text_printf(out, " |\n");
}

void ops_print_markdown(Text *out)
{
    text_printf(out,
                "# Ops\n\n"
                "<!-- Printed by `nnc ops --format markdown`; `./dev format` renews it. -->\n\n"
                "The primitives of nnc.  "
                "`?` marks an optional operand, `*` one or more.  Everything else (softmax, layer norm, GELU, "
                "...) is a function of the library `nn`, written in the language.\n");
    for (int family = 0; family < FAMILY_FLOW; family++) {
        bool scalar = family == FAMILY_ELEMENTWISE;
        text_printf(out, "\n## %s\n\n%s\n\n%s", family_title[family], family_note[family],
                    scalar ? "| op | meaning | takes | expression | gradient |\n|---|---|---|---|---|\n"
                           : "| op | meaning |\n|---|---|\n");
        for (int op = 0; op < OP_COUNT; op++)
            if ((int)op_info((OpCode)op)->family == family)
                print_markdown_row(out, op_info((OpCode)op));
    }
}
