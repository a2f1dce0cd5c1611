/* Nodes one after another: which are evaluated, which are written, which are refused. */
#include <stdlib.h>
#include <string.h>

#include "onnx/narrow.h"
#include "onnx/pattern.h"
#include "ops/family.h"
#include "passes/pass.h"
#include "passes/widen.h"

#define MOST_NODES 500000 /* with functions and rounds written out */
#define MOST_FOLDS 100000 /* nodes that are evaluated; those after are computed when running */

typedef struct Refusal {
    uint32_t number;
    const char *name, *op, *domain, *reason, *hint, *where;
    int64_t opset;
} Refusal;

OnnxBlock *onnx_block_open(Onnx *onnx, bool folding)
{
    OnnxBlock *block = ARENA_NEW(onnx->arena, OnnxBlock);
    *block = (OnnxBlock){.outer = onnx->block, .folding = folding};
    nnc_compose_open(onnx->composer, STR("body"));
    onnx->block = block;
    return block;
}

Str onnx_block_close(Onnx *onnx)
{
    OnnxBlock *block = onnx->block;
    Str text = str_copy(onnx->arena, text_view(&block->text));
    nnc_compose_close(onnx->composer, NULL, 0);
    text_free(&block->text);
    onnx->block = block->outer;
    for (uint32_t i = 0; i < block->captured_count; i++) /* so that the text of the block around may speak of it */
        onnx_name_value(onnx, block->captured[i]);
    return text;
}

static const char *text_of(const char *text)
{
    return text ? text : "";
}

/* Refusals */

/* `; in the function F, which node 'N' calls`, or `which gives 'y'`: numbers and names of nodes there are not of the
 * model's own graph. */
static const char *place_of(const OnnxNode *node)
{
    const OnnxScope *scope = node->scope;
    while (scope->outer)
        scope = scope->outer;
    if (!scope->function)
        return "";
    const Onnx__NodeProto *call = scope->call->proto;
    const char *name = text_of(call->name), *function = text_of(scope->function->name);
    return *name ? onnx_text(node, "; in the function %s, which node '%s' calls", function, name)
                 : onnx_text(node, "; in the function %s, which gives '%s'", function, text_of(call->output[0]));
}

static void refuse(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    Refusal refusal = {onnx->node_count,
                       node->proto->name ? node->proto->name : "",
                       node->proto->op_type ? node->proto->op_type : "",
                       node->proto->domain ? node->proto->domain : "",
                       node->reason,
                       node->hint,
                       place_of(node),
                       node->opset};
    ARENA_PUSH(onnx->arena, onnx->refusal, onnx->refusal_count, onnx->refusal_capacity, refusal);
}

static void note_refusal(const Onnx *onnx, const Refusal *r)
{
    diag_note(onnx->diag, (Place){0}, "node %u %s%s%s%s%s%s, opset %lld: %s%s%s%s", r->number, r->domain,
              *r->domain ? "." : "", r->op, *r->name ? " '" : "", r->name, *r->name ? "'" : "", (long long)r->opset,
              r->reason ? r->reason : "", r->hint ? "; " : "", r->hint ? r->hint : "", r->where);
}

bool onnx_report_refusals(Onnx *onnx)
{
    if (!onnx->refusal_count)
        return true;
    diag_file_error(onnx->diag, onnx->path, "%u of %u nodes %s not supported", onnx->refusal_count, onnx->node_count,
                    onnx->refusal_count == 1 ? "is" : "are");
    for (uint32_t i = 0; i < onnx->refusal_count; i++)
        note_refusal(onnx, &onnx->refusal[i]);
    return false;
}

/* Operands and results */

static bool find_operands(OnnxNode *node)
{
    const Onnx__NodeProto *proto = node->proto;
    bool good = true;
    for (uint32_t i = 0; i < node->in_count; i++) {
        if (!*text_of(proto->input[i]))
            continue;
        node->in[i] = onnx_lookup(node->scope, node->onnx, proto->input[i]);
        if (!node->in[i])
            return diag_file_error(node->onnx->diag, node->onnx->path,
                                   "node %u %s '%s' reads '%s', which nothing before it gives", node->onnx->node_count,
                                   text_of(proto->op_type), text_of(proto->name), proto->input[i]);
        good &= !node->in[i]->bad;
        if (node->in[i]->left_out)
            node->in[i] = NULL;
    }
    return good;
}

static void bind_results(OnnxNode *node)
{
    onnx_take_counts(node);
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (!onnx_wants(node, i))
            continue;
        if (!node->out[i]) {
            node->out[i] = onnx_value_new(node->onnx);
            node->out[i]->bad = true;
        }
        if (i == 0 && node->narrow)
            node->out[i]->narrow = node->narrow;
        if (onnx_lookup_here(node->scope, node->onnx, node->proto->output[i]) && !node->onnx->failed)
            node->onnx->failed =
                !diag_file_error(node->onnx->diag, node->onnx->path, "two nodes give '%s'", node->proto->output[i]);
        onnx_bind(node->scope, node->onnx, node->proto->output[i], node->out[i]);
    }
}

/* What the statements have given to the names of the results. */
static bool take_results(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (node->out[i] || !onnx_wants(node, i))
            continue;
        ValueId id = node->out_name[i] ? nnc_compose_find(onnx->composer, str_from(node->out_name[i])) : NONE;
        if (id == NONE)
            return onnx_no(node, "its result %u has no counterpart", i);
        node->out[i] = onnx_value_new(onnx);
        *node->out[i] = (OnnxValue){.type = value_type(nnc_compose_graph(onnx->composer), id),
                                    .name = node->out_name[i],
                                    .maker = node,
                                    .home = onnx->block};
    }
    return true;
}

/* Evaluation */

static bool has_graph(const Onnx__NodeProto *proto)
{
    for (size_t i = 0; i < proto->n_attribute; i++)
        if (proto->attribute[i]->g)
            return true;
    return false;
}

static int64_t most_folded(const OnnxNode *node)
{
    return onnx_is_moved(node) ? ONNX_MOVED : ONNX_FOLDED;
}

static bool is_foldable(const OnnxNode *node)
{
    uint32_t operands = 0;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const OnnxValue *value = node->in[i];
        if (!value)
            continue;
        operands++;
        if (!onnx_elements(value) || shape_elements(&value->type->shape) > most_folded(node))
            return false;
    }
    return operands && node->onnx->folds < MOST_FOLDS && !has_graph(node->proto) && !onnx_draws(node->proto);
}

/* Is it a constant of 8 or 16 bits made wide?  Whoever reads it does that. */
static bool widens(const OnnxNode *node, const Type *result)
{
    for (uint32_t i = 0; i < node->in_count; i++) {
        const Type *type = node->in[i] ? node->in[i]->type : NULL;
        if (type && widen_is_worth(type) && shape_eq(&type->shape, &result->shape) &&
            type_bytes(result) > type_bytes(type))
            return true;
    }
    return false;
}

/* Runs the graph that the node was written into: false when that is too much, or better left. */
static bool evaluate(OnnxNode *node, Graph *graph, const Tensor **result)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const Type *type = value_type(graph, graph->output[i].value);
        if (shape_elements(&type->shape) > most_folded(node) || widens(node, type))
            return false;
    }
    Graph *reference = pass_reference(graph);
    return reference && eval_graph_within(reference, node->onnx->arena, NULL, result, NULL, &node->onnx->work);
}

static const Tensor *first_entries(Onnx *onnx, const Tensor *tensor, uint32_t axis, int64_t count)
{
    Shape shape = tensor->type->shape;
    size_t slices = 1, entry = dtype_bytes(tensor->type->dtype), extent = (size_t)shape.dim[axis];
    for (uint32_t d = 0; d < axis; d++)
        slices *= (size_t)shape.dim[d];
    for (uint32_t d = axis + 1; d < shape.rank; d++)
        entry *= (size_t)shape.dim[d];
    shape.dim[axis] = count;
    Tensor *cut = tensor_new(onnx->arena, module_type(onnx->module, tensor->type->dtype, &shape, (Layout){0}));
    for (size_t i = 0; i < slices; i++)
        memcpy((char *)cut->data + i * (size_t)count * entry, (const char *)tensor->data + i * extent * entry,
               (size_t)count * entry);
    return cut;
}

/* A list of positions that are all inside stays the one that it was. */
static OnnxValue *unchanged(const OnnxNode *node, const Tensor *found)
{
    OnnxValue *first = node->in_count ? node->in[0] : NULL;
    bool same = first && first->known && first->known->type == found->type && dtype_is_int(found->type->dtype) &&
                memcmp(first->known->data, found->data, (size_t)type_bytes(found->type)) == 0;
    return same ? first : NULL;
}

/* Of what is as large as data say these are there, now that the data are known. */
static const Tensor *what_is_there(const OnnxNode *node, uint32_t i, const Tensor *found, const Tensor *many)
{
    bool counted = many && i < COUNTED_RESULTS && (node->counted >> i & 1);
    return counted ? first_entries(node->onnx, found, node->count_axis[i], onnx_int_at(many, 0)) : found;
}

static bool take_evaluated(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    Str *name = ARENA_ARRAY(onnx->arena, Str, node->out_count + 2);
    const Tensor **result = ARENA_ARRAY(onnx->arena, const Tensor *, node->out_count + 2);
    uint32_t count = 0, next = 0;

    for (uint32_t i = 0; i < node->out_count; i++)
        if (!node->out[i] && node->out_name[i] && onnx_wants(node, i))
            name[count++] = str_from(node->out_name[i]);
    uint32_t results = count;
    if (node->count)
        name[count++] = str_from(node->count->name);
    Graph *graph = nnc_compose_close(onnx->composer, name, count);
    text_free(&onnx->block->text);
    onnx->block = onnx->block->outer;
    if (!graph || (count && !evaluate(node, graph, result)))
        return false;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (!node->out[i] && node->out_name[i] && onnx_wants(node, i)) {
            const Tensor *found = what_is_there(node, i, result[next++], node->count ? result[results] : NULL);
            node->out[i] = unchanged(node, found);
            if (node->out[i])
                continue;
            node->out[i] = onnx_known_value(onnx, found, onnx_result_name(node, i));
            node->out[i]->stored = onnx_is_moved(node);
            node->out[i]->weight = node->out[i]->stored && dtype_is_float(found->type->dtype);
        }
    return true;
}

/* What is computed of weights stays so in the text, as these are trained; what comes of them as they are is kept for
 * nodes that must know it. */
static bool keeps_weights(OnnxNode *node)
{
    bool kept = false;
    if (!onnx_learns(node))
        return false;
    node->folded = ARENA_ARRAY(node->onnx->arena, const Tensor *, node->out_count + 1);
    for (uint32_t i = 0; i < node->out_count; i++) {
        bool made = node->out_name[i] && node->out[i];
        node->folded[i] = made ? node->out[i]->known : NULL;
        kept |= made;
    }
    return kept;
}

static void note_folded(OnnxNode *node)
{
    for (uint32_t i = 0; node->folded && i < node->out_count; i++)
        if (node->out[i] && node->out[i]->maker == node) {
            node->out[i]->folded = node->folded[i];
            node->out[i]->weight = node->folded[i] != NULL;
        }
}

/* True when all results are known now; else nothing has happened but for a reason or an error. */
static bool fold(OnnxNode *node)
{
    node->onnx->folds++;
    onnx_block_open(node->onnx, true);
    bool written = node->row->write(node);
    bool good = written && take_results(node);
    for (uint32_t i = 0; good && i < node->out_count; i++)
        if (node->out[i] && node->out[i]->home == node->onnx->block)
            node->out[i] = NULL;
    bool known = good && take_evaluated(node);
    if (!good)
        onnx_block_close(node->onnx);
    node->count = NULL;
    node->counted = 0;
    if (known && !keeps_weights(node))
        return true;
    memset(node->out, 0, sizeof *node->out * node->out_count);
    memset(node->out_name, 0, sizeof *node->out_name * node->out_count);
    return false;
}

/* A node */

static int64_t opset_of(const OnnxScope *scope, const char *domain)
{
    for (size_t i = 0; i < scope->opset_count; i++) {
        const char *imported = text_of(scope->opset[i]->domain);
        bool same = strcmp(imported, domain) == 0 || (!*domain && strcmp(imported, "ai.onnx") == 0);
        if (same)
            return scope->opset[i]->version;
    }
    return 1;
}

/* Sequences go to those ops alone that know them. */
static bool check_tensors(OnnxNode *node)
{
    for (uint32_t i = 0; i < node->in_count && !node->row->lists; i++)
        if (node->in[i] && !node->in[i]->type)
            return onnx_no(node, "'%s' is a sequence or an optional", node->proto->input[i]);
    return true;
}

static bool write_node(OnnxNode *node)
{
    if (!onnx_check_attributes(node) || !check_tensors(node) || !onnx_check_counts(node))
        return false;
    if (is_foldable(node) && fold(node))
        return true;
    if (node->reason || node->onnx->failed)
        return false;
    bool written = onnx_write_identity(node) || onnx_write_unguarded(node) || onnx_write_pattern(node) ||
                   (!node->onnx->failed && node->row->write(node));
    if (!written || !take_results(node))
        return false;
    note_folded(node);
    return true;
}

static bool write_or_call(OnnxNode *node)
{
    return node->row ? write_node(node) : onnx_call_function(node);
}

/* False with a reason, unless it is told already what is wrong. */
static bool write_whole(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    uint32_t errors = onnx->diag->error_count, refusals = onnx->refusal_count;
    if (!node->out_count)
        return onnx_no(node, "it gives no results");
    if (write_or_call(node) && !node->lacks)
        return true;
    bool told = node->reason || onnx->failed || onnx->diag->error_count > errors || onnx->refusal_count > refusals;
    return told ? false : onnx_no(node, "it lacks an operand or an attribute, or has one of another kind");
}

static const char *hint_of_unknown(const OnnxNode *node)
{
    static const char blocked[] = "com.microsoft.nchwc"; /* Conv and pools of channels in blocks */
    return strcmp(text_of(node->proto->domain), blocked) == 0
               ? "ONNX Runtime has saved the graph for one kind of processor (ORT_ENABLE_ALL); have it saved at "
                 "ORT_ENABLE_EXTENDED"
               : NULL;
}

static void import_node(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    uint32_t errors = onnx->diag->error_count;
    bool readable = find_operands(node);

    onnx->failed |= onnx->diag->error_count > errors;
    node->function = onnx_find_function(onnx, node->proto->domain, node->proto->op_type, node->proto->overload);
    if (!node->function)
        node->row = onnx_find_row(onnx, text_of(node->proto->domain), text_of(node->proto->op_type), node->opset,
                                  &node->reason);
    else if (readable)
        node->row = onnx_library_row(node);
    bool known = node->row || node->function;
    if (!known)
        node->hint = hint_of_unknown(node);
    if (!known || (readable && !onnx->failed && !write_whole(node) && node->reason))
        refuse(node);
    bind_results(node);
}

/* A branch or a loop of which nobody reads anything, not even a shape: names in it are not counted. */
static bool is_dead(const OnnxScope *scope, const Onnx__NodeProto *proto)
{
    bool bodies = false;
    for (size_t a = 0; a < proto->n_attribute; a++)
        bodies |= proto->attribute[a]->g != NULL;
    for (size_t i = 0; bodies && i < proto->n_output; i++)
        if (map_get(scope->uses, str_from(text_of(proto->output[i]))) != MAP_NONE)
            return false;
    return bodies;
}

bool onnx_import_nodes(Onnx *onnx, OnnxScope *scope, Onnx__NodeProto *const *list, size_t count)
{
    uint32_t refusals = onnx->refusal_count;
    list = onnx_in_order(onnx->arena, list, count);
    for (size_t i = 0; i < count && !onnx->failed; i++) {
        const Onnx__NodeProto *proto = list[i];
        if (is_dead(scope, proto))
            continue;
        OnnxNode *node = ARENA_NEW(onnx->arena, OnnxNode);
        *node = (OnnxNode){
            .onnx = onnx,
            .proto = proto,
            .scope = scope,
            .opset = opset_of(scope, strcmp(text_of(proto->domain), "ai.onnx") == 0 ? "" : text_of(proto->domain)),
            .in = ARENA_ARRAY(onnx->arena, OnnxValue *, proto->n_input + 1),
            .out = ARENA_ARRAY(onnx->arena, OnnxValue *, proto->n_output + 1),
            .out_name = ARENA_ARRAY(onnx->arena, const char *, proto->n_output + 1),
            .in_count = (uint32_t)proto->n_input,
            .out_count = (uint32_t)proto->n_output};
        import_node(node);
        if (++onnx->node_count > MOST_NODES && !onnx->failed)
            onnx->failed = !diag_file_error(onnx->diag, onnx->path,
                                            "more than %d nodes, with functions and rounds written out", MOST_NODES);
    }
    return !onnx->failed && refusals == onnx->refusal_count;
}

static bool bind_initialiser(Onnx *onnx, OnnxScope *scope, const Onnx__TensorProto *proto, const Tensor *tensor,
                             const char *why)
{
    const char *name = text_of(proto ? proto->name : NULL);
    if (!tensor)
        return onnx->failed = true, diag_file_error(onnx->diag, onnx->path, "initializer '%s': %s", name, why);
    if (onnx_is_carried(onnx, scope, name))
        return onnx_bind_carried(onnx, scope, name, tensor);
    OnnxValue *value = onnx_known_value(onnx, tensor, name);
    value->stored = true;
    onnx_mark_initialiser(onnx, value);
    value->narrow = onnx_narrow(proto->data_type) ? proto->data_type : 0;
    onnx_bind(scope, onnx, name, value);
    return true;
}

bool onnx_import_initialisers(Onnx *onnx, OnnxScope *scope, const Onnx__GraphProto *graph)
{
    const char *why = NULL;
    bool broken;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *proto = graph->initializer[i];
        const Tensor *tensor = onnx_tensor(&onnx->files, onnx->module, proto, &why, &broken);
        if (!bind_initialiser(onnx, scope, proto, tensor, why))
            return false;
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = graph->sparse_initializer[i]; /* called as its values */
        const Tensor *tensor = onnx_sparse_tensor(onnx, sparse, &why);
        if (!bind_initialiser(onnx, scope, sparse->values, tensor, why))
            return false;
    }
    return true;
}

/* Functions of the model: their nodes in place of the call. */

static void note_call(Onnx *onnx, const Onnx__FunctionProto *function)
{
    OnnxCalled called = {.name = text_of(function->name), .begin = onnx->root->text.len, .outer = onnx->calling};
    onnx->calling = onnx->called_count;
    ARENA_PUSH(onnx->arena, onnx->called, onnx->called_count, onnx->called_capacity, called);
}

static void note_end(Onnx *onnx)
{
    onnx->called[onnx->calling].end = onnx->root->text.len;
    onnx->calling = onnx->called[onnx->calling].outer;
}

bool onnx_call_function(OnnxNode *node)
{
    Onnx *onnx = node->onnx;
    const Onnx__FunctionProto *function = node->function;
    if (node->scope->depth >= ONNX_DEEPEST)
        return onnx_no(node, "functions and graphs are more than %d deep, or call themselves", ONNX_DEEPEST);
    OnnxScope scope = {.value = {.arena = onnx->arena},
                       .opset = (const Onnx__OperatorSetIdProto *const *)function->opset_import,
                       .opset_count = function->n_opset_import,
                       .uses = onnx_uses_of(onnx, function),
                       .call = node,
                       .function = function,
                       .depth = node->scope->depth + 1};
    if (node->in_count > function->n_input || node->out_count > function->n_output)
        return onnx_no(node, "it has more operands or results than its function");
    OnnxValue *left_out = onnx_value_new(onnx);
    *left_out = (OnnxValue){.left_out = true};
    for (size_t i = 0; i < function->n_input; i++)
        onnx_bind(&scope, onnx, function->input[i], i < node->in_count && node->in[i] ? node->in[i] : left_out);
    OnnxScope *kept = arena_copy(onnx->arena, &scope, sizeof scope);
    note_call(onnx, function);
    bool good = onnx_import_nodes(onnx, kept, function->node, function->n_node);
    note_end(onnx);
    if (!good)
        return false;
    for (size_t i = 0; i < function->n_output && i < node->out_count; i++) {
        node->out[i] = onnx_lookup_here(kept, onnx, function->output[i]);
        if (!node->out[i] && onnx_wants(node, (uint32_t)i))
            return onnx_no(node, "no node of its function gives '%s'", function->output[i]);
    }
    return true;
}
