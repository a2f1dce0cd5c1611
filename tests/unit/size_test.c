/* Large graphs, each in two sizes: what compiles twice as much takes not much more than twice as long, for the target
 * generic, from passes to emitted C.  Limits are generous: a quadratic step would miss them by far. */
#include <string.h>
#include <time.h>

#include "ops/family.h"
#include "program/program.h"
#include "unit.h"

#define MOST_SECONDS 60.0
#define MOST_GROWTH  9.0 /* from a quarter of the size: 4 would be linear, 16 quadratic ... */
#define TOO_SHORT    1.5 /* ... unless the larger takes less seconds */

typedef struct Big {
    Module *module;
    Graph *graph;
} Big;

static ValueId input(Big *b, int64_t rows)
{
    const int64_t dim[] = {rows, 4};
    return graph_add_input(b->graph, module_plain_type(b->module, DT_F32, 2, dim),
                           str_format(b->module->arena, "x%u", b->graph->input_count), (Place){0});
}

static ValueId unary(Big *b, OpCode op, ValueId x)
{
    return op_build1(b->graph, op, x, (Place){0});
}

static ValueId concat(Big *b, const ValueId *in, uint32_t count)
{
    return op_build(b->graph, OP_CONCAT, in, count, (Attr[]){{.i = 0}}, (Place){0});
}

/* x * number: no two are the same. */
static ValueId scaled(Big *b, ValueId x, uint32_t number)
{
    ValueId factor = graph_add_scalar(b->graph, DT_F32, 1.5 + number);
    return op_build2(b->graph, OP_MUL, x, factor, (Place){0});
}

static void output(Big *b, ValueId v)
{
    graph_add_output(b->graph, v, str_format(b->module->arena, "y%u", b->graph->output_count));
}

/* c1 = concat(x, y), c2 = concat(c1, y) ... */
static void nested_concats(Big *b, uint32_t count)
{
    ValueId y = input(b, 1), c = unary(b, OP_EXP, y);
    for (uint32_t i = 0; i < count; i++)
        c = concat(b, (ValueId[]){c, y}, 2);
    output(b, unary(b, OP_TANH, c));
}

/* The same where all parts are made here. */
static void nested_parts(Big *b, uint32_t count)
{
    ValueId y = input(b, 1), c = unary(b, OP_EXP, y);
    for (uint32_t i = 0; i < count; i++)
        c = concat(b, (ValueId[]){c, scaled(b, y, i)}, 2);
    output(b, unary(b, OP_TANH, c));
}

/* Each part in front of those before. */
static void parts_in_front(Big *b, uint32_t count)
{
    ValueId y = input(b, 1), c = unary(b, OP_EXP, y);
    for (uint32_t i = 0; i < count; i++)
        c = concat(b, (ValueId[]){scaled(b, y, i), c}, 2);
    output(b, unary(b, OP_TANH, c));
}

static void elementwise_chain(Big *b, uint32_t count)
{
    static const OpCode op[] = {OP_EXP, OP_SIN, OP_TANH, OP_SQRT};
    ValueId x = input(b, 16);
    for (uint32_t i = 0; i < count; i++)
        x = unary(b, op[i % 4], x);
    output(b, x);
}

static void wide_concat(Big *b, uint32_t count)
{
    ValueId x = input(b, 1), *part = ARENA_ARRAY(b->module->arena, ValueId, count);
    for (uint32_t i = 0; i < count; i++)
        part[i] = scaled(b, x, i);
    output(b, unary(b, OP_TANH, concat(b, part, count)));
}

/* One kernel with as many buffers. */
static void concat_of_inputs(Big *b, uint32_t count)
{
    ValueId *part = ARENA_ARRAY(b->module->arena, ValueId, count);
    for (uint32_t i = 0; i < count; i++)
        part[i] = input(b, 1);
    output(b, unary(b, OP_TANH, concat(b, part, count)));
}

static void many_outputs(Big *b, uint32_t count)
{
    ValueId x = input(b, 1);
    for (uint32_t i = 0; i < count; i++)
        output(b, scaled(b, x, i));
}

/* Seconds of this process. */
static double compile(Unit *unit, void (*build)(Big *b, uint32_t count), uint32_t count)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Big b = {.module = module_new(&arena, &diag)};
    b.graph = graph_new(b.module, STR("g"));
    build(&b, count);
    clock_t start = clock();
    CompileOptions options = {.target = target_find(STR("generic"), &diag), .effort = 1, .name = STR("g")};
    Program program;
    Text text = {0};
    EXPECT(program_compile(&b.graph, 1, &options, &program));
    emit_source(&program, &text);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    EXPECT(text.len > 0);
    text_free(&text);
    diag_free(&diag);
    arena_free(&arena);
    return seconds;
}

static void grows_linearly(Unit *unit, void (*build)(Big *b, uint32_t count), uint32_t count)
{
    double quarter = compile(unit, build, count / 4), all = compile(unit, build, count);
    printf("# %u: %.2f s, a quarter of it %.2f s\n", count, all, quarter);
    EXPECT(all < MOST_SECONDS);
    EXPECT(all < TOO_SHORT || all < MOST_GROWTH * quarter);
}

#define SIZE(build, count)                                                                                             \
    UNIT(build##_of_##count)                                                                                           \
    {                                                                                                                  \
        grows_linearly(unit, build, count);                                                                            \
    }

SIZE(nested_concats, 16000)
SIZE(nested_parts, 16000)
SIZE(parts_in_front, 16000)
SIZE(elementwise_chain, 100000)
SIZE(wide_concat, 10000)
SIZE(concat_of_inputs, 10000)
SIZE(many_outputs, 20000)

int main(void)
{
    static const Test test[] = {
        RUN(nested_concats_of_16000),     RUN(nested_parts_of_16000), RUN(parts_in_front_of_16000),
        RUN(elementwise_chain_of_100000), RUN(wide_concat_of_10000),  RUN(concat_of_inputs_of_10000),
        RUN(many_outputs_of_20000),
    };
    return UNIT_MAIN(test);
}
