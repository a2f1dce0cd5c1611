/* Generators and draws: the integer arithmetic of Philox (ops/random.h) as functions of the file, on u64 of which 32
 * bits are used.  So the bits are the same wherever the file runs. */
#include "onnx/write/export.h"

#define ROUNDS 10

/* A function of the file, whose body is what is said until it is closed. */
static void open_function(Export *e, ExportScope *scope, const char *const *name, uint32_t count, ExportId *in)
{
    export_function_open(e, scope, (Str){0});
    for (uint32_t i = 0; i < count; i++)
        in[i] = export_id_near(e, name[i]);
}

static void close_function(Export *e, const char *name, const ExportId *in, uint32_t count, ExportId out)
{
    export_function_add(e, export_function_close(e, EXPORT_DOMAIN, name, in, count, &out, 1));
}

/* Functions of the library have small letters. */
static bool has_function(const Export *e, const char *name)
{
    for (uint32_t i = 0; i < e->function_count; i++)
        if (str_is(str_from(e->function[i]->name), name) && str_is(str_from(e->function[i]->domain), EXPORT_DOMAIN))
            return true;
    return false;
}

static ExportId say(Export *e, DType dtype, const char *text)
{
    return export_say(e, dtype, NULL, NULL, text);
}

static ExportId low_word(Export *e, ExportId id)
{
    return say(e, DT_U64, export_text(e, "BitwiseAnd($%u, 4294967295)", id));
}

static ExportId high_word(Export *e, ExportId id)
{
    return say(e, DT_U64, export_text(e, "BitShift($%u, 32){direction='RIGHT'}", id));
}

static void philox_round(Export *e, ExportId c[4], const ExportId k[2])
{
    ExportId p0 = say(e, DT_U64, export_text(e, "Mul($%u, 3528531795)", c[0]));
    ExportId p1 = say(e, DT_U64, export_text(e, "Mul($%u, 3449720151)", c[2]));
    c[0] = say(e, DT_U64, export_text(e, "BitwiseXor(BitwiseXor($%u, $%u), $%u)", high_word(e, p1), c[1], k[0]));
    c[2] = say(e, DT_U64, export_text(e, "BitwiseXor(BitwiseXor($%u, $%u), $%u)", high_word(e, p0), c[3], k[1]));
    c[1] = low_word(e, p1);
    c[3] = low_word(e, p0);
}

/* Philox(key, counter, stream): the four words of each block, in a dimension behind the others. */
static void need_philox(Export *e)
{
    static const char *const name[] = {"key", "counter", "stream"};
    static const char *const step[] = {"2654435769", "3144134277"}; /* what keys grow by in a round */
    ExportScope scope;
    ExportId in[3];
    if (has_function(e, "Philox"))
        return;
    open_function(e, &scope, name, 3, in);
    ExportId key = say(e, DT_U64, export_text(e, "Cast($%u){to=u64}", in[0]));
    ExportId k[] = {low_word(e, key), high_word(e, key)};
    ExportId c[] = {low_word(e, in[1]), high_word(e, in[1]), in[2], say(e, DT_U64, "0")};
    for (int round = 0; round < ROUNDS; round++) {
        philox_round(e, c, k);
        for (int i = 0; i < 2; i++)
            k[i] = low_word(e, say(e, DT_U64, export_text(e, "Add($%u, %s)", k[i], step[i])));
    }
    ExportId words = say(e, DT_U64,
                         export_text(e,
                                     "Concat(Unsqueeze($%u, [-1]), Unsqueeze($%u, [-1]), Unsqueeze($%u, [-1]), "
                                     "Unsqueeze($%u, [-1])){axis=-1}",
                                     c[0], c[1], c[2], c[3]));
    close_function(e, "Philox", in, 3, words);
}

const char *export_fold_in(Export *e)
{
    static const char *const name[] = {"key", "number"};
    ExportScope scope;
    ExportId in[2];
    need_philox(e);
    if (!has_function(e, "FoldIn")) {
        open_function(e, &scope, name, 2, in);
        ExportId words = say(e, DT_U64, export_text(e, "@Philox($%u, Cast($%u){to=u64}, 1)", in[0], in[1]));
        close_function(e, "FoldIn", in, 2,
                       say(e, DT_U64,
                           export_text(e,
                                       "Cast(BitwiseOr(Gather($%u, i64:0){axis=-1}, BitShift(Gather($%u, "
                                       "i64:1){axis=-1}, 32){direction='LEFT'})){to=i64}",
                                       words, words)));
    }
    return "@FoldIn(x, y)";
}

/* Gaussian numbers: the polynomials of ops/random.h, in its order. */

/* first, first * factor, first * factor ^ 2, ... */
static ExportId powers(Export *e, double first, double factor, int64_t count, const char *name)
{
    Tensor *tensor = tensor_new(e->arena, module_plain_type(e->graph->module, DT_F32, 1, &count));
    for (int64_t i = 0; i < count; i++, first *= factor)
        tensor_set_number(tensor, i, first);
    return export_array(e, tensor, name);
}

/* c0 * x ^ n + ... + cn */
static ExportId polynomial(Export *e, ExportId x, const char *const *c, uint32_t count)
{
    ExportId p = say(e, DT_F32, c[0]);
    for (uint32_t i = 1; i < count; i++)
        p = say(e, DT_F32, export_text(e, "Add(Mul($%u, $%u), %s)", p, x, c[i]));
    return p;
}

/* The logarithm of 1 - unit(a): the exponent is how many of sqrt(1/2) * 2 ^ -24, ..., sqrt(1/2) are not above. */
static ExportId write_log(Export *e, ExportId a)
{
    static const char *const c[] = {"7.0376836292e-2",  "-1.1514610310e-1", "1.1676998740e-1",
                                    "-1.2420140846e-1", "1.4249322787e-1",  "-1.6668057665e-1",
                                    "2.0000714765e-1",  "-2.4999993993e-1", "3.3333331174e-1"};
    ExportId bounds = powers(e, 0x1.6a09e6p-1 * 0x1p-24, 2, 25, "bounds"), scales = powers(e, 1, 2, 26, "scales");
    ExportId u = say(e, DT_F32,
                     export_text(e,
                                 "Mul(Cast(Sub(u64:16777216, BitShift($%u, u64:8){direction='RIGHT'})){to=f32}, "
                                 "5.9604644775390625e-8)",
                                 a));
    ExportId above = say(e, DT_F32,
                         export_text(e,
                                     "ReduceSum(Cast(GreaterOrEqual(Unsqueeze($%u, [-1]), $%u)){to=i64}, "
                                     "[-1]){keepdims=0}",
                                     u, bounds));
    ExportId exponent = say(e, DT_F32, export_text(e, "Cast(Sub($%u, i64:25)){to=f32}", above));
    ExportId x = say(e, DT_F32, export_text(e, "Sub(Mul($%u, Gather($%u, Sub(i64:25, $%u))), 1)", u, scales, above));
    ExportId z = say(e, DT_F32, export_text(e, "Mul($%u, $%u)", x, x));
    ExportId p = say(e, DT_F32, export_text(e, "Mul(Mul($%u, $%u), $%u)", polynomial(e, x, c, 9), x, z));
    ExportId rest =
        say(e, DT_F32, export_text(e, "Sub(Sub($%u, Mul($%u, 2.12194440e-4)), Mul(0.5, $%u))", p, exponent, z));
    return say(e, DT_F32, export_text(e, "Add(Mul($%u, 0.693359375), Add($%u, $%u))", exponent, x, rest));
}

/* Sine and cosine within an eighth of a turn, and in which quarter it begins. */
static void write_turn(Export *e, ExportId b, ExportId *quadrant, ExportId *sine, ExportId *cosine)
{
    static const char *const s[] = {"-1.9515295891e-4", "8.3321608736e-3", "-1.6666654611e-1"};
    static const char *const c[] = {"2.4433157118e-5", "-1.3887316255e-3", "4.1666645683e-2"};
    ExportId turn = say(e, DT_U64, export_text(e, "Add(BitShift($%u, 8){direction='RIGHT'}, 2097152)", b));
    *quadrant = say(e, DT_U64, export_text(e, "BitwiseAnd(BitShift($%u, 22){direction='RIGHT'}, 3)", turn));
    ExportId x = say(e, DT_F32,
                     export_text(e,
                                 "Mul(Cast(Sub(Cast(BitwiseAnd($%u, u64:4194303)){to=i64}, i64:2097152)){to=f32}, "
                                 "%.9g)",
                                 turn, (double)(6.2831853f * 0x1p-24f)));
    ExportId z = say(e, DT_F32, export_text(e, "Mul($%u, $%u)", x, x));
    *sine = say(e, DT_F32, export_text(e, "Add(Mul(Mul($%u, $%u), $%u), $%u)", polynomial(e, z, s, 3), z, x, x));
    *cosine =
        say(e, DT_F32,
            export_text(e, "Add(Sub(Mul(Mul($%u, $%u), $%u), Mul(0.5, $%u)), 1)", polynomial(e, z, c, 3), z, z, z));
}

/* Turned round where bit 1 is set. */
static ExportId with_sign(Export *e, ExportId bits, ExportId radius, ExportId x)
{
    return say(e, DT_F32,
               export_text(e, "Where(Equal(BitwiseAnd($%u, u64:2), u64:2), Neg(Mul($%u, $%u)), Mul($%u, $%u))", bits,
                           radius, x, radius, x));
}

/* Gauss(words): as many Gaussian numbers, two of each pair (Box and Muller 1958). */
static void need_gauss(Export *e)
{
    static const char *const name[] = {"words"};
    ExportScope scope;
    ExportId in, quadrant, sine, cosine;
    if (has_function(e, "Gauss"))
        return;
    open_function(e, &scope, name, 1, &in);
    ExportId pair = say(e, DT_U64, export_text(e, "Reshape($%u, [-1, 2])", in));
    ExportId a = say(e, DT_U64, export_text(e, "Gather($%u, i64:0){axis=1}", pair));
    ExportId b = say(e, DT_U64, export_text(e, "Gather($%u, i64:1){axis=1}", pair));
    ExportId radius = say(e, DT_F32, export_text(e, "Sqrt(Mul(-2, $%u))", write_log(e, a)));
    write_turn(e, b, &quadrant, &sine, &cosine);
    ExportId odd = say(e, DT_U64, export_text(e, "Equal(BitwiseAnd($%u, 1), 1)", quadrant));
    ExportId c = say(e, DT_F32, export_text(e, "Where($%u, $%u, $%u)", odd, sine, cosine));
    ExportId s = say(e, DT_F32, export_text(e, "Where($%u, $%u, $%u)", odd, cosine, sine));
    ExportId first = with_sign(e, say(e, DT_U64, export_text(e, "Add($%u, 1)", quadrant)), radius, c);
    ExportId second = with_sign(e, quadrant, radius, s);
    close_function(e, "Gauss", &in, 1,
                   say(e, DT_F32,
                       export_text(e,
                                   "Reshape(Concat(Unsqueeze($%u, [-1]), Unsqueeze($%u, [-1])){axis=-1}, "
                                   "[-1])",
                                   first, second)));
}

/* Draws */

static bool write_drawn(ExportNode *n, const Random *random, ExportId key)
{
    const Type *type = value_type(n->graph, n->node->out[0]);
    long long count = shape_elements(&type->shape);
    ExportId numbers;
    need_philox(n->e);
    ExportId words = export_make(n, "Reshape(@Philox($%u, Cast(Range(i64:0, i64:%lld, i64:1)){to=u64}, u64:0), [-1])",
                                 key, (count + 3) / 4);
    if (random->draw == DRAW_WORD) {
        numbers = export_make(n, "Cast($%u){to=i64}", words);
    } else if (random->draw == DRAW_UNIT) {
        numbers =
            export_make(n, "Mul(Cast(BitShift($%u, u64:8){direction='RIGHT'}){to=f64}, f64:%.17g)", words, 0x1p-24);
    } else {
        need_gauss(n->e);
        numbers = export_make(n, "Cast(@Gauss($%u)){to=f64}", words);
    }
    if (count % 4)
        numbers = export_make(n, "Slice($%u, [0], [%lld])", numbers, count);
    const char *shape = export_ints(n, type->shape.dim, type->shape.rank);
    if (random->draw == DRAW_WORD)
        return export_result(n, 0, "Reshape($%u, %s)", numbers, shape);
    return export_result(n, 0, "Reshape(Cast(Add(f64:%.17g, Mul(f64:%.17g, $%u))){to=%s}, %s)", random->base,
                         random->scale, numbers, dtype_name(type->dtype), shape);
}

bool export_draw(ExportNode *n)
{
    Random random = random_of(n->node);
    return write_drawn(n, &random, n->in[0]);
}

static bool write_ramp(ExportNode *n, const Shape *shape, uint32_t dimension)
{
    int64_t dim[MAX_RANK];
    for (uint32_t d = 0; d < shape->rank; d++)
        dim[d] = d == dimension ? shape->dim[d] : 1;
    ExportId ramp = export_make(n, "Range(i64:0, i64:%lld, i64:1)", (long long)shape->dim[dimension]);
    if (shape->rank > 1)
        ramp = export_make(n, "Reshape($%u, %s)", ramp, export_ints(n, dim, shape->rank));
    if (shape_elements(shape) != shape->dim[dimension])
        ramp = export_make(n, "Expand($%u, %s)", ramp, export_ints(n, shape->dim, shape->rank));
    n->out[0] = ramp;
    return n->dtype == DT_I64 || export_result(n, 0, "Cast($%u){to=%s}", ramp, dtype_name(n->dtype));
}

bool export_generate(ExportNode *n)
{
    const Shape *shape = value_shape(n->graph, n->node->out[0]);
    Initial initial = node_initial(n->node, value_type(n->graph, n->node->out[0]));
    if (initial.kind == INITIAL_RAMP)
        return write_ramp(n, shape, initial.dimension);
    if (initial.kind == INITIAL_DRAWN)
        return write_drawn(n, &initial.random,
                           export_scalar(n->e, DT_I64, export_text(n->e, "%lld", (long long)initial.key)));
    return export_result(n, 0, "ConstantOfShape(%s){value=%s:%s}", export_ints(n, shape->dim, shape->rank),
                         dtype_name(n->dtype), export_number(n, n->dtype, initial.number));
}
