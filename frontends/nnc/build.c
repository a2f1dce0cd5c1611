/* Files, their constants and functions, and the graphs of a module. */
#include "frontends/nnc/build.h"

#include <string.h>

#include "base/file.h"
#include "frontends/nnc/library.h"

Str nnc_library_text(void)
{
    return (Str){(const char *)nnc_library_bytes, nnc_library_size};
}

/* `path` is what it is known by, `name` what messages call it. */
static File *load_file(Builder *b, Str path, Str name, Str text, AstTree *tree)
{
    File *file = ARENA_NEW(b->scratch, File);
    *file = (File){.path = path, .functions = {.arena = b->scratch}, .constants = {.map = {.arena = b->scratch}}};
    file->source = diag_add_source(b->diag, name, text);
    map_put(&b->files, path, b->file_count);
    ARENA_PUSH(b->scratch, b->file, b->file_count, b->file_capacity, file);
    parse_tree(b->scratch, b->diag, file->source, tree);
    return file;
}

static void build_items(Builder *b, File *file, const AstTree *tree, uint32_t depth);

/* `use` */

static bool is_safe_path(Str path)
{
    for (uint32_t i = 0; i + 1 < path.len; i++)
        if (path.ptr[i] == '.' && path.ptr[i + 1] == '.')
            return false;
    return path.len && path.ptr[0] != '/' && path.ptr[0] != '\\' && str_ends(path, ".nnc") &&
           !memchr(path.ptr, 0, path.len);
}

static Str beside(Builder *b, Str path, Str name)
{
    uint32_t folder = path.len;
    while (folder && path.ptr[folder - 1] != '/')
        folder--;
    return str_format(b->arena, "%.*s" STR_FMT, (int)folder, path.ptr, STR_ARG(name));
}

static void add_used(Builder *b, File *user, File *used)
{
    if (used != user)
        ARENA_PUSH(b->scratch, user->used, user->used_count, user->used_capacity, used);
}

/* The library's files use each other. */
static void read_library(Builder *b, uint32_t depth)
{
    uint32_t count = 0;
    while (nnc_library_part[count].name)
        count++;
    AstTree *tree = ARENA_ARRAY(b->scratch, AstTree, count);
    b->library = ARENA_ARRAY(b->scratch, File *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        const LibraryPart *part = &nnc_library_part[i];
        Str text = {(const char *)nnc_library_bytes + part->begin, part->size};
        b->library[i] = load_file(b, STR("nn"), str_from(part->name), text, &tree[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t other = 0; other < count; other++)
            add_used(b, b->library[i], b->library[other]);
        build_items(b, b->library[i], &tree[i], depth + 1);
    }
}

static void use_library(Builder *b, File *user, uint32_t depth)
{
    if (!b->library)
        read_library(b, depth);
    for (File **part = b->library; *part; part++)
        add_used(b, user, *part);
}

static File *used_file(Builder *b, const File *user, const AstUse *use, uint32_t depth)
{
    Str path = beside(b, user->path, use->path), text;
    AstTree tree = {0};

    uint32_t known = map_get(&b->files, path);
    if (known != MAP_NONE)
        return b->file[known];
    if (depth >= DEEPEST_USE)
        return build_complain(b, use->place, "files use each other more than %d deep", DEEPEST_USE), NULL;
    if (!is_safe_path(use->path))
        return build_complain(b, use->place,
                              "'use' takes \"nn\" or a file in the model's folder, such as \"blocks.nnc\""),
               NULL;
    if (!file_exists(path))
        return build_complain(b, use->place, "cannot find " STR_FMT, STR_ARG(path)), NULL;
    if (!file_read(b->arena, b->diag, path, &text))
        return NULL;
    module_add_file(b->module, path);
    File *file = load_file(b, path, path, text, &tree);
    build_items(b, file, &tree, depth + 1);
    return file;
}

static void build_use(Builder *b, File *file, const AstUse *use, uint32_t depth)
{
    bool library = str_is(use->path, "nn");
    File *used = library ? NULL : used_file(b, file, use, depth);
    if (library)
        use_library(b, file, depth);
    if (used)
        add_used(b, file, used);
    if (depth == 0) {
        text_printf(&b->prelude, "use ");
        lex_put_escaped(&b->prelude, use->path, '"');
        text_char(&b->prelude, '\n');
    }
}

/* Constants */

/* The flag's own words are a source, for errors to point at. */
const AstExpr *build_defined(Builder *b, const Define *define)
{
    Str flag = str_format(b->arena, "-D " STR_FMT "=", STR_ARG(define->name));
    Str text = str_format(b->arena, STR_FMT STR_FMT, STR_ARG(flag), STR_ARG(define->value));
    return parse_constant(b->scratch, b->diag, diag_add_source(b->diag, STR("command line"), text), flag.len);
}

static const AstExpr *defined(Builder *b, const AstConst *item, uint32_t depth)
{
    for (uint32_t i = 0; depth == 0 && i < b->define_count; i++) {
        const Define *define = &b->define[i];
        if (define->file || !str_eq(define->name, item->name->text))
            continue;
        b->define_used[i] = true;
        return build_defined(b, define);
    }
    if (!item->value)
        build_complain(b, item->place, "'" STR_FMT "' has no value: give it with -D " STR_FMT "=...",
                       STR_ARG(item->name->text), STR_ARG(item->name->text));
    return item->value;
}

static void print_constant(Builder *b, const AstConst *item, const Const *c, uint32_t depth)
{
    if (depth > 0)
        return;
    text_printf(&b->prelude, "const " STR_FMT, STR_ARG(item->name->text));
    if (item->type) {
        const Type *type = build_eval_type(b, item->type, (Str){0});
        text_printf(&b->prelude, ": " STR_FMT, STR_ARG(type ? type_show(b->scratch, type) : (Str){0}));
    }
    text_printf(&b->prelude, " = ");
    const_print(&b->prelude, c);
    text_char(&b->prelude, '\n');
}

static void build_constant(Builder *b, File *file, const AstConst *item, uint32_t depth)
{
    Scope *scope = &file->constants;
    const AstExpr *expr = defined(b, item, depth);
    Binding binding = {.name = str_copy(b->arena, item->name->text), .place = item->name->place};
    const Binding *old = build_scope_find(scope, binding.name);
    Const c = {0};

    if (expr && expr->place.source != file->source)
        binding.given = expr->place;

    if (old) {
        build_complain(b, item->name->place, "'" STR_FMT "' has a value already", STR_ARG(binding.name));
        diag_note(b->diag, old->place, "the first one");
        return;
    }
    if (expr && build_eval_const(b, expr, &c)) {
        binding.thing = build_thing_const(c);
        print_constant(b, item, &c, depth);
        if (item->type) {
            const Type *type = build_eval_type(b, item->type, (Str){0});
            binding.tensor = type ? build_tensor(b, &c, type, expr->place) : NULL;
            binding.thing = build_thing_bad();
        }
    }
    map_put(&scope->map, binding.name, scope->count);
    ARENA_PUSH(b->scratch, scope->binding, scope->count, scope->capacity, binding);
}

/* Functions and graphs */

static void check_distinct(Builder *b, const AstFormal *formal, uint32_t count, const char *what)
{
    Map taken = {.arena = b->scratch};
    for (uint32_t i = 0; i < count; i++) {
        const AstName *name = formal[i].name;
        if (map_add(&taken, name->text, i))
            continue;
        build_complain(b, name->place, "'" STR_FMT "' is %s already", STR_ARG(name->text), what);
        diag_note(b->diag, formal[map_get(&taken, name->text)].name->place, "the first one");
    }
}

/* What can be said of a function before anybody calls it. */
static void check_signature(Builder *b, const AstFunction *function)
{
    check_distinct(b, function->formal, function->formal_count, "an input");
    check_distinct(b, function->result, function->result_count, "a result");
    for (uint32_t i = 0; i < function->result_count; i++)
        if (function->result[i].fallback)
            build_complain(b, function->result[i].fallback->place, "a result has no default");
}

static void add_function(Builder *b, File *file, const AstFunction *function, uint32_t depth)
{
    Str name = function->name->text;
    uint32_t known = map_get(&file->functions, name);
    DType dtype;

    ((AstFunction *)function)->file = file;
    if (map_get(&b->ops, name) != MAP_NONE || dtype_parse(name, &dtype)) {
        build_complain(b, function->name->place, "'" STR_FMT "' is the name of a primitive", STR_ARG(name));
    } else if (known != MAP_NONE) {
        build_complain(b, function->name->place, "'" STR_FMT "' is defined already", STR_ARG(name));
        diag_note(b->diag, file->function[known]->name->place, "the first definition");
    } else {
        map_put(&file->functions, name, file->function_count);
        ARENA_PUSH(b->scratch, file->function, file->function_count, file->function_capacity, function);
    }
    check_signature(b, function);
    if (function->gradient)
        check_signature(b, function->gradient);
    if (depth == 0) {
        Str text = diag_source(b->diag, file->source)->text;
        text_put(&b->prelude, text.ptr + function->place.offset, function->place.length);
        text_char(&b->prelude, '\n');
    }
}

static bool build_inputs(Builder *b, const AstFunction *function)
{
    Graph *graph = b->frame->graph;
    bool ok = true;
    for (uint32_t i = 0; i < function->formal_count; i++) {
        const AstFormal *formal = &function->formal[i];
        Str name = str_copy(b->arena, formal->name->text);
        Thing thing = build_thing_bad();
        const Type *type = NULL;
        if (formal->fallback)
            ok = build_complain(b, formal->fallback->place, "an input of a graph has no default");
        if (formal->type)
            type = build_eval_type(b, formal->type, name);
        else
            ok =
                build_complain(b, formal->name->place, "an input needs its type: " STR_FMT ": f32[...]", STR_ARG(name));
        if (type) {
            ValueId value = graph_add_input(graph, type, name, formal->name->place);
            graph->value[value].placement = build_placement_text(b, formal->mark, formal->mark_count);
            thing = build_thing_value(b, value);
        }
        ok &= build_bind(b, name, formal->name->place, thing) && type;
    }
    return ok;
}

static void build_graph(Builder *b, File *file, const AstFunction *function)
{
    Module *module = b->module;
    Frame frame = {.graph = graph_new(module, str_copy(b->arena, function->name->text)),
                   .file = file,
                   .scalars = {.arena = b->scratch},
                   .tensors = {.arena = b->scratch},
                   .entry = function,
                   .guard = NONE,
                   .given = {.arena = b->scratch},
                   .updated = {.arena = b->scratch}};
    Frame *outer = b->frame;

    for (uint32_t i = 0; i < module->graph_count; i++)
        if (str_eq(module->graph[i]->name, frame.graph->name))
            build_complain(b, function->name->place, "there is a graph '" STR_FMT "' already",
                           STR_ARG(frame.graph->name));
    check_signature(b, function);
    frame.graph->place = function->place;
    frame.graph->placement = build_placement_text(b, function->mark, function->mark_count);
    b->frame = &frame;
    b->params = (Map){.arena = b->scratch};
    b->param_count = 0;
    build_scope_push(b);
    build_inputs(b, function);
    build_block(b, function->body);
    if (!b->exhausted)
        build_finish_results(b, function, NULL);
    if (!function->result_count && !frame.graph->update_count && !frame.minimizes)
        build_complain(b, function->name->place, "a graph needs a result, or a state that it updates");
    build_renumber(b);
    ARENA_PUSH(b->arena, module->graph, module->graph_count, module->graph_capacity, frame.graph);
    b->frame = outer;
}

/* The items of a file, with a frame in which constants are evaluated.  Functions first: their order does not matter. */
static void build_items(Builder *b, File *file, const AstTree *tree, uint32_t depth)
{
    Frame frame = {.file = file}, *outer = b->frame;
    b->frame = &frame;
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->item[i].kind == AST_ITEM_USE)
            build_use(b, file, &tree->item[i].use, depth);
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->item[i].kind == AST_ITEM_FN)
            add_function(b, file, tree->item[i].function, depth);
    for (uint32_t i = 0; i < tree->count; i++) {
        const AstItem *item = &tree->item[i];
        if (item->kind == AST_ITEM_CONST)
            build_constant(b, file, &item->constant, depth);
        else if (item->kind == AST_ITEM_GRAPH && depth == 0 && !b->exhausted)
            build_graph(b, file, item->function);
    }
    b->frame = outer;
}

static bool is_given_before(const Builder *b, uint32_t define)
{
    for (uint32_t i = 0; i < define; i++)
        if (!b->define[i].file && str_eq(b->define[i].name, b->define[define].name))
            return true;
    return false;
}

static void check_defines(Builder *b, const File *file)
{
    for (uint32_t i = 0; i < b->define_count; i++) {
        if (b->define_used[i] || b->define[i].file)
            continue;
        if (is_given_before(b, i)) {
            diag_file_error(b->diag, file->path, "-D " STR_FMT " is given twice", STR_ARG(b->define[i].name));
            continue;
        }
        Text known = {0};
        for (uint32_t c = 0; c < file->constants.count; c++)
            text_printf(&known, "%s" STR_FMT, c ? ", " : "; there are ", STR_ARG(file->constants.binding[c].name));
        diag_file_error(b->diag, file->path, "-D " STR_FMT ": the file has no such constant" STR_FMT,
                        STR_ARG(b->define[i].name), STR_ARG(text_view(&known)));
        text_free(&known);
    }
}

static void index_ops(Builder *b)
{
    for (uint32_t i = 0; i < OP_WRITTEN; i++)
        map_put(&b->ops, str_from(op_info((OpCode)i)->name), i);
}

void build_start(Builder *b, Arena *arena, Arena *scratch, Diag *diag)
{
    *b = (Builder){.arena = arena,
                   .scratch = scratch,
                   .diag = diag,
                   .module = module_new(arena, diag),
                   .files = {.arena = scratch},
                   .ops = {.arena = scratch},
                   .shared = {.arena = scratch},
                   .inside = {.arena = scratch},
                   .failed = {.arena = scratch}};
    index_ops(b);
}

void build_end(Builder *b)
{
    b->module->prelude = str_copy(b->arena, text_view(&b->prelude));
    text_free(&b->prelude);
    arena_free(&b->scopes);
}

File *build_file(Builder *b, Str path, Str text)
{
    AstTree tree = {0};
    uint32_t errors = b->diag->error_count;
    File *file = load_file(b, path, path, text, &tree);
    b->syntax_errors = b->diag->error_count > errors;
    b->written += text.len;
    build_items(b, file, &tree, 0);
    return file;
}

Module *nnc_parse(Arena *arena, Diag *diag, Str path, Str text, const Define *define, uint32_t define_count)
{
    Arena scratch = {0};
    Builder builder, *b = &builder;
    uint32_t errors = diag->error_count;

    build_start(b, arena, &scratch, diag);
    b->define = define;
    b->define_count = define_count;
    b->define_used = ARENA_ARRAY(&scratch, bool, define_count);
    File *file = build_file(b, path, text);
    if (diag->error_count == errors)
        check_defines(b, file);
    if (diag->error_count == errors && !b->module->graph_count)
        diag_file_error(diag, path, "the file has no graph");
    build_end(b);
    arena_free(&scratch);
    return diag->error_count == errors ? b->module : NULL;
}

Module *nnc_parse_file(Arena *arena, Diag *diag, Str path, const Define *define, uint32_t define_count)
{
    Str text;
    path = str_copy(arena, path);
    if (!file_read(arena, diag, path, &text))
        return NULL;
    Module *module = nnc_parse(arena, diag, path, text, define, define_count);
    if (module)
        module_add_file(module, path);
    return module;
}
