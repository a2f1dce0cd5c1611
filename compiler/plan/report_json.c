/* The plan as JSON, version 1 of the schema in docs/planning.md. */
#include <inttypes.h>

#include "plan/report.h"

static const char *const kind_name[PLAN_KINDS] = {"tensor", "input", "output", "state", "scratch", "growing"};

static void put_row(Text *out, const PlanReport *r, const PlanRow *t)
{
    text_printf(out, "{\"name\": ");
    plan_json_string(out, t->name);
    text_printf(out, ", \"type\": ");
    plan_json_string(out, t->type);
    text_printf(out,
                ", \"kind\": \"%s\", \"bytes\": %" PRId64 ", \"offset\": %" PRId64 ", \"first\": %" PRId64
                ", \"last\": %" PRId64 ", \"region\": %u",
                kind_name[t->kind], t->bytes, t->offset, t->first, t->last - 1, t->region);
    if (t->span != t->bytes)
        text_printf(out, ", \"span\": %" PRId64, t->span);
    if (t->alias_of != PLAN_NO_ROW) {
        text_printf(out, ", \"alias_of\": ");
        plan_json_string(out, r->row[t->alias_of].name);
    }
    if (t->reuses != PLAN_NO_ROW) {
        text_printf(out, ", \"reuses\": ");
        plan_json_string(out, r->row[t->reuses].name);
    }
    if (t->scope != PLAN_NO_ROW)
        text_printf(out, ", \"scope\": %u", t->scope);
    if (t->use) {
        text_printf(out, ", \"uses\": [");
        for (uint32_t i = 0; i < t->use_count; i++)
            text_printf(out, "%s%" PRId64, i ? ", " : "", t->use[i]);
        text_char(out, ']');
    }
    text_char(out, '}');
}

static void put_totals(Text *out, const PlanReport *r)
{
    text_printf(out, "  \"peak\": %" PRId64 ",\n  \"lower_bound\": %" PRId64 ",\n  \"gap\": %" PRId64 ",\n", r->peak,
                r->lower_bound, r->peak - r->lower_bound);
    text_printf(out, "  \"proven\": %s,\n  \"naive\": %" PRId64 ",\n", r->proven ? "true" : "false", r->naive);
    text_printf(out, "  \"allocator\": \"%s\",\n  \"nodes\": %" PRIu64 ",\n", r->allocator, r->nodes);
    text_printf(out, "  \"fullest_step\": {\"step\": %" PRId64 ", \"bytes\": %" PRId64 "},\n", r->peak_step,
                r->peak_live);
    const PlanRecomputed *again = &r->recomputed;
    if (again->operations)
        text_printf(out,
                    "  \"recomputed\": {\"peak_before\": %" PRId64 ", \"operations_before\": %" PRId64
                    ", \"operations\": %" PRId64 "},\n",
                    again->peak_before, again->operations_before, again->operations);
    text_printf(out, "  \"saved\": {");
    for (uint32_t i = 0; i < r->saving_count; i++) {
        text_printf(out, i ? ", " : "");
        plan_json_string(out, r->saving[i].what);
        text_printf(out, ": %" PRId64, r->saving[i].bytes);
    }
    text_printf(out, "},\n");
}

static void put_carried(Text *out, const PlanCarried *c)
{
    text_printf(out, "{\"name\": ");
    plan_json_string(out, c->name);
    text_printf(out, ", \"places\": %u, \"elsewhere\": %s", c->places, c->elsewhere ? "true" : "false");
    if (c->places > 1) {
        text_printf(out, ", \"outside\": %u, \"maker\": ", c->outside);
        plan_json_string(out, c->maker);
        text_printf(out, ", \"conflict\": ");
        plan_json_string(out, c->conflict);
    }
    text_char(out, '}');
}

static void put_loops(Text *out, const PlanReport *r)
{
    text_printf(out, "  \"loops\": [");
    for (uint32_t i = 0; i < r->loop_count; i++) {
        const PlanLoop *loop = &r->loop[i];
        text_printf(out,
                    "%s{\"first\": %" PRId64 ", \"last\": %" PRId64 ", \"rounds\": %" PRId64 ", \"copied\": %" PRId64
                    ", \"carried\": [",
                    i ? ", " : "", loop->first, loop->last - 1, loop->rounds, loop->copied);
        for (uint32_t k = 0; k < loop->carried_count; k++) {
            text_printf(out, k ? ", " : "");
            put_carried(out, &loop->carried[k]);
        }
        text_printf(out, "]}");
    }
    text_printf(out, "],\n");
}

static void put_blame(Text *out, const PlanReport *r)
{
    text_printf(out, "  \"blame\": {\"step\": %" PRId64 ", \"kernel\": ", r->peak_step);
    bool named = r->step && r->peak_step >= 0 && r->peak_step < r->step_count;
    plan_json_string(out, named ? r->step[r->peak_step] : (Str){0});
    text_printf(out, ", \"bytes\": %" PRId64 ", \"live\": [", r->peak_live);
    for (uint32_t k = 0; k < r->blame_count; k++) {
        text_printf(out, k ? ", " : "");
        plan_json_string(out, r->row[r->blame[k]].name);
    }
    text_printf(out, "],\n    \"hint\": ");
    plan_json_string(out, r->hint);
    text_printf(out, "},\n");
}

static void put_names(Text *out, const char *key, const Str *name, int64_t count)
{
    text_printf(out, "  \"%s\": [", key);
    for (int64_t i = 0; name && i < count; i++) {
        text_printf(out, i ? ", " : "");
        plan_json_string(out, name[i]);
    }
    text_printf(out, "],\n");
}

void plan_print_json(Text *out, const PlanReport *r)
{
    text_printf(out, "{\n  \"nnc_plan\": 1,\n  \"title\": ");
    plan_json_string(out, r->title);
    text_printf(out, ",\n");
    put_totals(out, r);
    if (r->loop_count)
        put_loops(out, r);
    put_blame(out, r);
    put_names(out, "regions", r->region, r->region_count);
    put_names(out, "scopes", r->scope, r->scope_count);
    put_names(out, "steps", r->step, r->step_count);
    text_printf(out, "  \"tensors\": [");
    for (uint32_t i = 0; i < r->count; i++) {
        text_printf(out, i ? ",\n    " : "\n    ");
        put_row(out, r, &r->row[i]);
    }
    text_printf(out, "\n  ]\n}\n");
}
