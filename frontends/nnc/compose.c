#include "frontends/nnc/compose.h"

#include "frontends/nnc/build_alike.h"
#include "frontends/nnc/parse.h"

typedef struct Outer { /* a graph around, and the names of its params */
    Frame *frame;
    Map params;
} Outer;

struct Composer {
    Builder builder;
    Arena scratch;
    File *file;
    Outer *outer;
    uint32_t depth, capacity;
    ComposeTable table;
    ComposedCall call;
};

Composer *nnc_compose(Arena *arena, Diag *diag, Str path)
{
    Composer *c = ARENA_NEW(arena, Composer);
    build_start(&c->builder, arena, &c->scratch, diag);
    c->table.index.arena = &c->scratch;
    c->file = build_file(&c->builder, path, STR("nnc 1\nuse \"nn\"\n"));
    return c;
}

Module *nnc_compose_module(Composer *c)
{
    return c->builder.module;
}

void nnc_compose_open(Composer *c, Str name)
{
    Builder *b = &c->builder;
    Frame *frame = ARENA_NEW(b->scratch, Frame);
    *frame = (Frame){.caller = NULL,
                     .graph = graph_new(b->module, str_copy(b->arena, name)),
                     .file = c->file,
                     .scalars = {.arena = b->scratch},
                     .tensors = {.arena = b->scratch},
                     .guard = NONE,
                     .given = {.arena = b->scratch},
                     .updated = {.arena = b->scratch}};
    ARENA_PUSH(b->scratch, c->outer, c->depth, c->capacity, ((Outer){b->frame, b->params}));
    b->params = (Map){.arena = b->scratch};
    b->frame = frame;
    build_scope_push(b);
}

Graph *nnc_compose_graph(Composer *c)
{
    return c->builder.frame->graph;
}

static ValueId bind(Composer *c, Str name, ValueId value)
{
    build_bind(&c->builder, name, (Place){0}, build_thing_value(&c->builder, value));
    return value;
}

ValueId nnc_compose_input(Composer *c, Str name, const Type *type)
{
    return bind(c, name, graph_add_input(c->builder.frame->graph, type, name, (Place){0}));
}

ValueId nnc_compose_param(Composer *c, Str name, const Type *type)
{
    return bind(c, name, graph_add_value(c->builder.frame->graph, ROLE_PARAM, type, name, (Place){0}));
}

ValueId nnc_compose_const(Composer *c, Str name, const Tensor *tensor)
{
    return bind(c, name, graph_add_const(c->builder.frame->graph, tensor, name, (Place){0}));
}

static ComposedCall last_call(const Graph *graph, NodeId first)
{
    const Node *node = graph->node_count > first ? graph_node(graph, graph->node_count - 1) : NULL;
    return node && node_is_call(node) ? (ComposedCall){node->sub[0], node->call->label} : (ComposedCall){0};
}

static bool build(Composer *c, Str what, Str statements)
{
    Builder *b = &c->builder;
    uint32_t errors = b->diag->error_count;
    NodeId first = b->frame->graph->node_count;
    const AstBlock *block = parse_statements(b->scratch, b->diag, diag_add_source(b->diag, what, statements));
    if (b->diag->error_count == errors)
        build_block(b, block);
    c->call = last_call(b->frame->graph, first);
    return b->diag->error_count == errors && !b->exhausted;
}

/* False after an error */
static bool build_or_repeat(Composer *c, Str what, Str statements, const ComposeStatement *read)
{
    Builder *b = &c->builder;
    uint32_t errors = b->diag->error_count;
    const ComposeAlike *alike = build_alike_find(&c->table, read);
    if (!alike) {
        if (!build(c, what, statements))
            return false;
        build_alike_keep(&c->table, b, read, c->call);
    } else {
        build_alike_repeat(b, read, alike);
        c->call = alike->call;
    }
    return b->diag->error_count == errors;
}

bool nnc_compose_add(Composer *c, Str what, Str statements)
{
    ComposeStatement read = {0};
    c->builder.written += statements.len;
    bool plain = c->depth == 1 && build_alike_read(&c->builder, statements, &read);
    bool good = plain ? build_or_repeat(c, what, statements, &read) : build(c, what, statements);
    text_free(&read.key);
    return good;
}

bool nnc_compose_is_exhausted(const Composer *c)
{
    return c->builder.exhausted;
}

ComposedCall nnc_compose_call(const Composer *c)
{
    return c->call;
}

ValueId nnc_compose_find(Composer *c, Str name)
{
    const Binding *binding = build_scope_find(c->builder.frame->scope, name);
    return binding && binding->thing.kind == THING_VALUE ? binding->thing.value : NONE;
}

/* Its results as in a signature. */
static AstFunction signature(Composer *c, const Str *result, uint32_t count)
{
    AstFormal *formal = ARENA_ARRAY(c->builder.scratch, AstFormal, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        AstName *name = ARENA_NEW(c->builder.scratch, AstName);
        name->text = result[i];
        formal[i].name = name;
    }
    return (AstFunction){.result = formal, .result_count = count};
}

Graph *nnc_compose_close(Composer *c, const Str *result, uint32_t count)
{
    Builder *b = &c->builder;
    Graph *graph = b->frame->graph;
    Module *module = b->module;
    AstFunction function = signature(c, result, count);
    bool good = !b->exhausted && build_finish_results(b, &function, NULL);

    build_renumber(b);
    b->params = c->outer[--c->depth].params;
    b->frame = c->outer[c->depth].frame;
    if (good && !c->depth)
        ARENA_PUSH(b->arena, module->graph, module->graph_count, module->graph_capacity, graph);
    return good ? graph : NULL;
}

void nnc_compose_end(Composer *c)
{
    build_end(&c->builder);
    arena_free(&c->scratch);
}
