/* The text of graphs: what is printed after any pass parses again, prints the same, and computes the same. */
#include <string.h>

#include "frontends/nnc/text.h"
#include "ir/verify.h"
#include "ops/family.h"
#include "program/stage.h"
#include "random_graph.h"
#include "unit.h"

typedef struct Session {
    Arena arena, scratch;
    Diag diag;
} Session;

static void session_start(Session *s)
{
    *s = (Session){0};
    s->diag.arena = &s->arena;
}

static void session_end(Session *s)
{
    diag_free(&s->diag);
    arena_free(&s->arena);
    arena_free(&s->scratch);
}

static Module *parse(Session *s, Str text)
{
    Module *module = nnc_parse(&s->arena, &s->diag, STR("test.nnc"), text, NULL, 0);
    if (!module)
        printf("# " STR_FMT "\n", STR_ARG(text_view(&s->diag.text)));
    return module;
}

static Str printed(Session *s, const Module *module)
{
    Text text = {0};
    nnc_print(&text, module);
    Str copy = str_copy(&s->arena, text_view(&text));
    text_free(&text);
    return copy;
}

/* Constants that print without elements: those of `from` have them. */
static void copy_constants(const Graph *from, Graph *to)
{
    for (ValueId v = 0; v < to->value_count; v++) {
        Value *value = &to->value[v];
        if (value->role != ROLE_CONST || value->data->data)
            continue;
        for (ValueId w = 0; w < from->value_count; w++)
            if (from->value[w].role == ROLE_CONST && str_eq(value_show(from, w), value_show(to, v)) &&
                shape_eq(value_shape(from, w), value_shape(to, v)))
                value->data = from->value[w].data;
    }
}

/* Parses what prints, and compares what that prints.  The new graph, or NULL. */
static Module *round_trip(Session *s, const Module *module, const char *where)
{
    Str first = printed(s, module), second, wrong;
    Module *again = parse(s, first);
    if (!again) {
        printf("# %s: the printed text does not parse:\n%s", where, first.ptr);
        return NULL;
    }
    for (uint32_t i = 0; i < again->graph_count; i++)
        if (!graph_verify(again->graph[i], &s->arena, &wrong)) {
            printf("# %s: " STR_FMT "\n", where, STR_ARG(wrong));
            return NULL;
        }
    second = printed(s, again);
    if (!str_eq(first, second)) {
        printf("# %s: printed\n%s# and then\n%s", where, first.ptr, second.ptr);
        return NULL;
    }
    return again;
}

static const Tensor **outputs(Session *s, Graph *graph)
{
    const Tensor **input = ARENA_ARRAY(&s->arena, const Tensor *, graph->input_count);
    const Tensor **output = ARENA_ARRAY(&s->arena, const Tensor *, graph->output_count);
    for (uint32_t i = 0; i < graph->input_count; i++)
        input[i] = random_tensor(&s->arena, value_type(graph, graph->input[i]), i + 1);
    eval_graph(graph, &s->arena, input, output, NULL);
    return output;
}

static bool same_element(const Tensor *x, const Tensor *y, int64_t i)
{
    size_t bytes = dtype_bytes(x->type->dtype), at = (size_t)i * bytes;
    double a = tensor_number(x, i), b = tensor_number(y, i);
    return memcmp((const char *)x->data + at, (const char *)y->data + at, bytes) == 0 || (a != a && b != b);
}

/* Bit for bit: the text keeps every literal and every attribute exactly, but for the payload of NaN. */
static bool same_outputs(Session *s, Graph *a, Graph *b)
{
    const Tensor **x = outputs(s, a), **y = outputs(s, b);
    for (uint32_t i = 0; i < a->output_count; i++) {
        if (x[i]->type->dtype != y[i]->type->dtype || !shape_eq(&x[i]->type->shape, &y[i]->type->shape))
            return false;
        for (int64_t k = 0; k < shape_elements(&x[i]->type->shape); k++)
            if (!same_element(x[i], y[i], k))
                return false;
    }
    return true;
}

static const char *pass_alone(uint32_t number) /* without the stages behind the passes */
{
    return pass_pipeline[number];
}

/* Runs passes one by one, with a round trip before each and at the end. */
static bool survives(Session *s, Module *module, bool freeze, bool evaluate, const char *(*pass)(uint32_t number))
{
    PassContext context = pass_context(&s->scratch, &s->diag);
    context.freeze_params = freeze;
    context.lanes = 8;
    const char *done = "parse";
    for (uint32_t i = 0;; i++) {
        Module *again = done ? round_trip(s, module, done) : NULL;
        if (!again)
            return false;
        copy_constants(module->graph[0], again->graph[0]);
        if (evaluate && !same_outputs(s, module->graph[0], again->graph[0])) {
            printf("# %s: other values after the round trip\n", done);
            return false;
        }
        if (!(done = pass(i)))
            return true;
        if (!pass_run(stage_find(str_from(done)), module->graph[0], &context))
            return false;
    }
}

static bool survives_passes(Session *s, Module *module, bool freeze, bool evaluate)
{
    return survives(s, module, freeze, evaluate, stage_of_compilation);
}

static bool model_survives(const char *name, const Define *define, uint32_t count, bool freeze)
{
    Session s;
    session_start(&s);
    Str path = str_format(&s.arena, MODELS "/%s", name);
    Module *module = nnc_parse_file(&s.arena, &s.diag, path, define, count);
    bool good = module && survives_passes(&s, module, freeze, false);
    if (!good)
        printf("# %s\n" STR_FMT "\n", name, STR_ARG(text_view(&s.diag.text)));
    session_end(&s);
    return good;
}

UNIT(models_print_and_parse_after_every_pass)
{
    const Define small[] = {
        {STR("LAYERS"), STR("2"), NULL}, {STR("S"), STR("16"), NULL}, {STR("VOCABULARY"), STR("100"), NULL}};
    EXPECT(model_survives("digits.nnc", NULL, 0, true));
    EXPECT(model_survives("lenet.nnc", NULL, 0, false));
    EXPECT(model_survives("resnet8.nnc", NULL, 0, true));
    EXPECT(model_survives("resnet50.nnc", NULL, 0, false));
    EXPECT(model_survives("bert_base.nnc", small, 3, false));
    EXPECT(model_survives("running_mean.nnc", NULL, 0, true));
    EXPECT(model_survives("gru_stream.nnc", NULL, 0, false));
    EXPECT(model_survives("keywords.nnc", NULL, 0, false));
    EXPECT(model_survives("decoder.nnc", small, 1, false));
}

UNIT(random_graphs_print_parse_and_compute_the_same)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Session s;
        session_start(&s);
        RandomGraph options = {.seed = seed,
                               .steps = 4 + (uint32_t)(seed % 40),
                               .dtype = seed % 3 ? DT_F32 : DT_F64,
                               .calls = seed % 2,
                               .emitted = seed % 4 < 2,
                               .channels = seed % 5 < 3 ? 16 : 0};
        Module *module = module_new(&s.arena, &s.diag);
        PassContext context = pass_context(&s.scratch, &s.diag);
        Graph *graph = random_graph(module, &options);
        if (!module->graph_count)
            ARENA_PUSH(&s.arena, module->graph, module->graph_count, module->graph_capacity, graph);
        bool good = pass_run(stage_find(STR("expand")), graph, &context) && survives_passes(&s, module, seed % 2, true);
        EXPECT(good);
        if (!good)
            printf("# seed %llu\n" STR_FMT "\n", (unsigned long long)seed, STR_ARG(text_view(&s.diag.text)));
        session_end(&s);
    }
}

UNIT(loops_and_branches_print_parse_and_compute_the_same)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        Session s;
        session_start(&s);
        RandomGraph options = {.seed = seed,
                               .steps = 4 + (uint32_t)(seed % 20),
                               .dtype = seed % 3 ? DT_F32 : DT_F64,
                               .control = true,
                               .calls = seed % 2,
                               .emitted = seed % 4 < 2,
                               .channels = seed % 5 < 3 ? 16 : 0};
        Module *module = module_new(&s.arena, &s.diag);
        PassContext context = pass_context(&s.scratch, &s.diag);
        Graph *graph = random_graph(module, &options);
        ARENA_PUSH(&s.arena, module->graph, module->graph_count, module->graph_capacity, graph);
        bool good =
            pass_run(stage_find(STR("expand")), graph, &context) && survives(&s, module, seed % 2, true, pass_alone);
        EXPECT(good);
        if (!good)
            printf("# seed %llu\n" STR_FMT "\n", (unsigned long long)seed, STR_ARG(text_view(&s.diag.text)));
        session_end(&s);
    }
}

/* Every number prints so that the same bits come back. */
UNIT(literals_keep_their_bits)
{
    static const DType floats[] = {DT_F64, DT_F32, DT_F16, DT_BF16};
    for (int d = 0; d < 4; d++) {
        Session s;
        session_start(&s);
        Module *module = module_new(&s.arena, &s.diag);
        Graph *graph = graph_new(module, STR("g"));
        ARENA_PUSH(&s.arena, module->graph, module->graph_count, module->graph_capacity, graph);
        Tensor *tensor = tensor_new(&s.arena, module_plain_type(module, floats[d], 1, (int64_t[]){64}));
        uint64_t bits = 88172645463325252u;
        for (size_t i = 0; i < 64 * (size_t)dtype_bytes(floats[d]); i++) {
            bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
            ((unsigned char *)tensor->data)[i] = (unsigned char)(bits >> 24);
        }
        for (int64_t i = 0; i < 64; i++) /* NaN has no payload in the text */
            if (tensor_number(tensor, i) != tensor_number(tensor, i))
                tensor_set_number(tensor, i, -0.0);
        ValueId c = graph_add_const(graph, tensor, STR("c"), (Place){0});
        graph_add_output(graph, c, STR("y"));
        Module *again = round_trip(&s, module, "literals");
        EXPECT(again != NULL);
        if (again)
            EXPECT(memcmp(again->graph[0]->value[again->graph[0]->output[0].value].data->data, tensor->data,
                          64 * (size_t)dtype_bytes(floats[d])) == 0);
        session_end(&s);
    }
}

static bool text_survives(const char *text)
{
    Session s;
    session_start(&s);
    Module *module = parse(&s, str_from(text));
    bool good = module && survives_passes(&s, module, true, false);
    session_end(&s);
    return good;
}

/* Outputs that no node makes, calls of constants alone, plain operands beside blocks, lists as initialisers. */
UNIT(small_graphs_survive_every_pass)
{
    EXPECT(text_survives("nnc 1\ngraph g(x: f32[4]) -> (x) {}\n"));
    EXPECT(text_survives("nnc 1\ngraph g(x: f32[4]) -> (x, y) {\n    y = 3.0\n}\n"));
    EXPECT(text_survives("nnc 1\ngraph g(x: f32[4]) -> (y: f16[], z: bool[], x) {\n    y = 3.0\n    z = true\n}\n"));
    EXPECT(text_survives("nnc 1\nuse \"nn\"\ngraph g(x: f32[2]) -> (y) {\n    y = x + softmax([1.0, 2.0])\n}\n"));
    EXPECT(
        text_survives("nnc 1\nuse \"nn\"\ngraph g(x: f32[2]) -> (y) {\n    const c: f32[2] = [1.0, 2.0]\n"
                      "    y = softmax(c)\n}\n"));
    EXPECT(
        text_survives("nnc 1\ngraph g(x: f32[1, 8, 4, 4], m: bool[1, 8, 4, 4]) -> (y) {\n"
                      "    param w: f32[8, 8, 1, 1] = 1.0\n    y = select(m, conv2d(x, w), 0.0)\n}\n"));
    EXPECT(
        text_survives("nnc 1\ngraph g(x: f32[2]) -> (y) {\n    param p: f32[2] = [1.0, 2.0]\n"
                      "    state s: f32[2] = [3.0, 4.0]\n    s <- x\n    y = x * p + s\n}\n"));
}

/* Names that are no identifiers, names given twice, outputs that are inputs or constants. */
UNIT(awkward_names_survive)
{
    Session s;
    session_start(&s);
    Module *module = module_new(&s.arena, &s.diag);
    Graph *graph = graph_new(module, STR("main graph"));
    const Type *type = module_plain_type(module, DT_F32, 1, (int64_t[]){2});
    ARENA_PUSH(&s.arena, module->graph, module->graph_count, module->graph_capacity, graph);
    ValueId x = graph_add_input(graph, type, STR("x:0"), (Place){0});
    ValueId w = graph_add_value(graph, ROLE_PARAM, type, STR("while"), (Place){0});
    ValueId a = op_build2(graph, OP_ADD, x, w, (Place){0}), b = op_build1(graph, OP_EXP, a, (Place){0});
    ValueId c = op_build2(graph, OP_MUL, graph_add_scalar(graph, DT_F32, 1.0 / 0.0), graph_add_scalar(graph, DT_F32, 2),
                          (Place){0});
    graph->value[a].name = graph->value[b].name = STR("same");
    graph->value[c].name = STR("y`\\\n");
    graph_add_output(graph, b, STR("same"));
    graph_add_output(graph, x, STR("copy"));
    graph_add_output(graph, graph_add_scalar(graph, DT_BF16, 0.1), STR("tenth"));
    graph_add_output(graph, c, STR("out"));
    EXPECT(round_trip(&s, module, "names") != NULL);
    session_end(&s);
}

/* A temporary is the value of its number, whatever stands before it. */
UNIT(temporaries_keep_their_index)
{
    Session s;
    session_start(&s);
    Module *module = parse(&s, STR("nnc 1\n"
                                   "graph g(x: f32[2]) -> (y: f32[2]) {\n"
                                   "    param w: f32[2] = 0.0\n"
                                   "    const %40: f32[2] = [1.0, 2.0]\n"
                                   "    %7: f32[2] = relu(x)\n"
                                   "    a = exp(%7) + w * %40\n"
                                   "    %0: f32[2] = mul(a, 2.0)\n"
                                   "    y = exp(%0)\n"
                                   "}\n"));
    EXPECT(module != NULL);
    if (module) {
        const Graph *graph = module->graph[0];
        EXPECT_INT(graph->value_count, 41);
        EXPECT(value_producer(graph, 7) && value_producer(graph, 7)->op == OP_RELU);
        EXPECT(value_producer(graph, 0) && value_producer(graph, 0)->op == OP_MUL);
        EXPECT_INT(graph->value[40].role, ROLE_CONST);
        EXPECT(round_trip(&s, module, "temporaries") != NULL);
    }
    session_end(&s);
}

static const char training[] =
    "nnc 1\nuse \"nn\"\n"
    "fn net(x, training = false) -> (y) {\n"
    "    y = batch_norm(dense(x, 3), training = training)\n}\n"
    "graph step(x: f32[4, 5]) -> (loss) {\n    state scale: f32[] = 8.0\n"
    "    loss = mean(square(net@net(x, training = true)))\n"
    "    minimize(loss * scale, with = adam(rate = cosine(0.1, steps = 9)),\n"
    "        through = [adapt_scale(scale), accumulate(2), clip_by_norm(1.0)],\n"
    "        average = ema(0.9))\n}\n"
    "graph infer(x: f32[4, 5]) -> (y) {\n    y = net@ema.net(x)\n}\n";

static bool finds(Session *s, const Graph *graph, const char *message)
{
    Str wrong = {0};
    return !graph_verify(graph, &s->arena, &wrong) && strstr(wrong.ptr, message) != NULL;
}

/* A minimize prints as it was written after every pass that leaves it, and its sub-graph fits what it reads. */
UNIT(trainings_survive_every_pass)
{
    Session s;
    session_start(&s);
    EXPECT(text_survives(training));
    Module *module = parse(&s, str_from(training));
    Graph *step = module ? module->graph[0] : NULL;
    Node *node = step ? &step->node[step->node_count - 1] : NULL;
    EXPECT(node && node_is_minimize(node));
    if (node && node_is_minimize(node)) {
        Str wrong;
        EXPECT(graph_verify(step, &s.arena, &wrong));
        node->in_count--;
        EXPECT(finds(&s, step, "minimize and its sub-graph differ"));
        node->in_count++;
        step->update_count = 0; /* a graph cannot update an input, as a function can */
        ValueId input = step->input[0];
        graph_add_update(step, input, input, (Place){0});
        EXPECT(finds(&s, step, "neither param nor state"));
    }
    session_end(&s);
}

int main(void)
{
    static const Test test[] = {
        RUN(models_print_and_parse_after_every_pass),
        RUN(random_graphs_print_parse_and_compute_the_same),
        RUN(loops_and_branches_print_parse_and_compute_the_same),
        RUN(literals_keep_their_bits),
        RUN(small_graphs_survive_every_pass),
        RUN(awkward_names_survive),
        RUN(temporaries_keep_their_index),
        RUN(trainings_survive_every_pass),
    };
    return UNIT_MAIN(test);
}
