/* Marks behind statements, inputs and graphs: what is asked for, and what passes have printed. */
#include "frontends/nnc/build.h"

#include <stdlib.h>
#include <string.h>

Str build_placement_text(Builder *b, const AstMark *mark, uint32_t count)
{
    Text text = {0};
    for (uint32_t i = 0; i < count; i++) {
        if (!str_is(mark[i].name, "gpu") && !str_is(mark[i].name, "cpu") && !str_is(mark[i].name, "mem")) {
            build_complain(b, mark[i].place, "@" STR_FMT " does not belong here", STR_ARG(mark[i].name));
            continue;
        }
        text_printf(&text, "%s@" STR_FMT, text.len ? " " : "", STR_ARG(mark[i].name));
        for (uint32_t w = 0; w < mark[i].count; w++)
            text_printf(&text, "%s" STR_FMT, w ? ", " : "(", STR_ARG(mark[i].word[w]->text));
        if (mark[i].count)
            text_char(&text, ')');
    }
    Str s = text.len ? str_copy(b->arena, text_view(&text)) : (Str){0};
    text_free(&text);
    return s;
}

/* Digits as a number below `end`; false for other text, and *large where they are too many. */
static bool small_number(Str text, uint64_t end, uint64_t *number, bool *large)
{
    char digits[12] = {0};
    *large = false;
    if (!text.len || text.len >= sizeof digits || text.ptr[0] < '0' || text.ptr[0] > '9')
        return false;
    memcpy(digits, text.ptr, text.len);
    *number = strtoull(digits, NULL, 10);
    *large = *number >= end;
    return !*large;
}

static bool mark_number(Builder *b, const AstMark *mark, uint32_t *number)
{
    uint64_t n = 0;
    bool large = false, alone = mark->count == 1 || (mark->count > 1 && str_is(mark->name, "kernel"));
    if (alone && small_number(mark->word[0]->text, NONE, &n, &large)) {
        *number = (uint32_t)n;
        return true;
    }
    return build_complain(b, mark->place,
                          large ? "@" STR_FMT " takes a smaller number" : "@" STR_FMT " takes one number",
                          STR_ARG(mark->name));
}

/* After the number a kernel's mark says how it is computed: who does it, and with which knobs. */
static void mark_kernel(Builder *b, const AstMark *mark, Node *node)
{
    if (!mark_number(b, mark, &node->kernel) || mark->count == 1)
        return;
    KernelMark *kernel = ARENA_NEW(b->arena, KernelMark);
    Knob *knob = ARENA_ARRAY(b->arena, Knob, mark->count);
    *kernel = (KernelMark){.provider = str_copy(b->arena, mark->word[1]->text),
                           .knob = knob,
                           .number = node->kernel,
                           .body = b->frame->graph,
                           .place = mark->place};
    for (uint32_t i = 2; i < mark->count; i++) {
        uint64_t value = 1;
        bool large;
        if (mark->number[i] && !small_number(mark->number[i]->text, INT32_MAX, &value, &large)) {
            build_complain(b, mark->number[i]->place, "a knob takes a whole number below 2^31");
            return;
        }
        knob[kernel->knob_count++] = (Knob){str_copy(b->arena, mark->word[i]->text), (int64_t)value, !mark->number[i]};
    }
    node->mark = kernel;
}

static void mark_inplace(Builder *b, const AstMark *mark, const Node *node)
{
    if (mark->count > node->out_count) {
        build_complain(b, mark->place, "@inplace names %u values for %u result%s", mark->count, node->out_count,
                       node->out_count == 1 ? "" : "s");
        return;
    }
    for (uint32_t i = 0; i < mark->count; i++) {
        Str name = mark->word[i]->text;
        if (str_is(name, "_"))
            continue;
        const Binding *binding = build_lookup(b, name);
        if (!binding || binding->thing.kind != THING_VALUE)
            build_complain(b, mark->word[i]->place, "nothing is called '" STR_FMT "' here", STR_ARG(name));
        else
            b->frame->graph->value[node->out[i]].inplace = binding->thing.value;
    }
}

static void mark_of_node(Builder *b, const AstMark *mark, Node *node)
{
    if (str_is(mark->name, "inplace"))
        mark_inplace(b, mark, node);
    else if (str_is(mark->name, "kernel"))
        mark_kernel(b, mark, node);
    else
        mark_number(b, mark, &node->stream);
}

void build_apply_marks(Builder *b, const AstStmt *stmt, Thing thing)
{
    Graph *graph = b->frame->graph;
    ValueId value = thing.kind == THING_MANY ? thing.many[0].value : thing.value;
    if (!stmt->mark_count || thing.kind == THING_BAD)
        return;
    if (thing.kind == THING_LIST) {
        build_complain(b, stmt->mark[0].place, "a list takes no mark");
        return;
    }
    if (thing.kind == THING_CONST || (thing.kind == THING_MANY && thing.many[0].kind != THING_VALUE)) {
        build_complain(b, stmt->mark[0].place, "a constant takes no mark");
        return;
    }
    Node *node = value_producer(graph, value);
    const AstMark *place = ARENA_ARRAY(b->scratch, AstMark, stmt->mark_count);
    uint32_t places = 0;
    for (uint32_t i = 0; i < stmt->mark_count; i++) {
        const AstMark *mark = &stmt->mark[i];
        bool of_node = str_is(mark->name, "kernel") || str_is(mark->name, "stream") || str_is(mark->name, "inplace");
        if (!of_node)
            memcpy((AstMark *)&place[places++], mark, sizeof *mark);
        else if (!node)
            build_complain(b, mark->place, "@" STR_FMT " is for results of ops", STR_ARG(mark->name));
        else
            mark_of_node(b, mark, node);
    }
    if (places)
        graph->value[value].placement = build_placement_text(b, place, places);
}
