/* The reports of a plan.  With arguments, FORMAT and FILE.csv, it prints a report instead, for looking at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plan/problem_csv.h"
#include "plan/report.h"

#include "plan_random.h"

static void print(Text *out, const PlanReport *r, const char *format)
{
    if (strcmp(format, "table") == 0)
        plan_print_table(out, r);
    else if (strcmp(format, "chart") == 0)
        plan_print_chart(out, r, 100);
    else if (strcmp(format, "json") == 0)
        plan_print_json(out, r);
    else if (strcmp(format, "html") == 0)
        plan_print_html(out, r);
    else
        plan_print_svg(out, r);
}

static int show(const char *format, const char *path)
{
    Arena arena = {0};
    Diag diag = {.arena = &arena};
    Str text;
    PlanNamedProblem named;
    PlanResult result;
    Text out = {0};
    if (!file_read(&arena, &diag, str_from(path), &text) ||
        !plan_read_csv(&arena, &diag, diag_add_source(&diag, str_from(path), text), &named)) {
        fputs(diag.text.ptr, stderr);
        return 1;
    }
    plan_place(&arena, &named.problem, NULL, 1, &result);
    PlanReport r = plan_report_of(&arena, &named.problem, &result, named.id);
    print(&out, &r, format);
    fputs(out.ptr, stdout);
    text_free(&out);
    arena_free(&arena);
    return 0;
}

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s:%d: ", __FILE__, __LINE__);                                                                     \
            printf(__VA_ARGS__);                                                                                       \
            printf("\n");                                                                                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int widest_line(const char *text)
{
    int width = 0, most = 0;
    for (; *text; text++) {
        width = *text == '\n' ? 0 : width + (((unsigned char)*text & 0xc0) != 0x80);
        most = width > most ? width : most;
    }
    return most;
}

static uint32_t occurrences(const char *text, const char *what)
{
    uint32_t n = 0;
    for (; (text = strstr(text, what)); text++)
        n++;
    return n;
}

/* A small network whose every total can be seen at a glance. */
static PlanReport small_report(Arena *arena)
{
    const Str step[] = {STR("load"), STR("conv <1>"), STR("relu"), STR("store")};
    const PlanRow rows[] = {
        {.name = STR("image"), .bytes = 100, .offset = 0, .first = 0, .last = 2, .alias_of = PLAN_NO_ROW},
        {.name = STR("c&1"),
         .type = STR("f32[75]"),
         .bytes = 300,
         .offset = 100,
         .first = 1,
         .last = 3,
         .alias_of = PLAN_NO_ROW},
        {.name = STR("view"), .bytes = 300, .offset = 100, .first = 1, .last = 3, .alias_of = 1},
        {.name = STR("out"),
         .bytes = 50,
         .offset = 0,
         .first = 2,
         .last = 4,
         .alias_of = PLAN_NO_ROW,
         .kind = PLAN_OUTPUT},
    };
    PlanReport r = {.title = STR("small"),
                    .count = 4,
                    .step = arena_copy(arena, step, sizeof step),
                    .step_count = 4,
                    .region_count = 1,
                    .peak = 400,
                    .lower_bound = 400,
                    .proven = true,
                    .allocator = "bestfit"};
    r.row = arena_copy(arena, rows, sizeof rows);
    plan_report_finish(arena, &r);
    return r;
}

static void totals_are_right(void)
{
    Arena arena = {0};
    PlanReport r = small_report(&arena);
    CHECK(r.naive == 450 && r.peak_step == 1 && r.peak_live == 400, "totals");
    CHECK(r.first_step == 0 && r.last_step == 4, "steps");
    CHECK(r.row[3].reuses == 0 && r.row[1].reuses == PLAN_NO_ROW && r.row[2].reuses == PLAN_NO_ROW, "reuse");
    arena_free(&arena);
}

static void printers_show_every_tensor(void)
{
    static const char *const format[] = {"table", "chart", "json", "svg"};
    Arena arena = {0};
    PlanReport r = small_report(&arena);
    for (int f = 0; f < 4; f++) {
        Text out = {0};
        print(&out, &r, format[f]);
        CHECK(strstr(out.ptr, "image") && strstr(out.ptr, "out"), "%s lacks a tensor", format[f]);
        CHECK(strstr(out.ptr, f == 3 ? "c&amp;1" : "c&1"), "%s lacks c&1", format[f]);
        if (f == 3) {
            CHECK(occurrences(out.ptr, "<title>") == 3 && occurrences(out.ptr, "</g>") == 3, "one story per tensor");
            CHECK(strstr(out.ptr, "made by conv &lt;1&gt;"), "steps are named and escaped");
        }
        text_free(&out);
    }
    arena_free(&arena);
}

/* The step with the most bytes is blamed on what is live there, largest first. */
static void blame_names_what_is_live(void)
{
    Arena arena = {0};
    PlanReport r = small_report(&arena);
    CHECK(r.blame_count == 2 && r.blame[0] == 1 && r.blame[1] == 0, "what is live at step 1");
    CHECK(strstr(r.hint.ptr, "c&1") && strstr(r.hint.ptr, "conv <1> (step 1)"), "hint: " STR_FMT, STR_ARG(r.hint));
    CHECK(strstr(r.hint.ptr, "The next fullest needs 350 bytes, so at most 50"), "hint: " STR_FMT, STR_ARG(r.hint));
    arena_free(&arena);
}

/* A name cannot end the script that the page's data stand in. */
static void names_stay_inside_the_page(void)
{
    Arena arena = {0};
    Text out = {0};
    PlanReport r = small_report(&arena);
    r.title = STR("</title><script>alert(1)</script>");
    plan_print_html(&out, &r);
    CHECK(!strstr(out.ptr, "<script>alert"), "the title is not escaped");
    CHECK(strstr(out.ptr, "conv \\u003c1>"), "a step's name in JSON");
    CHECK(!strstr(out.ptr, "@TITLE@") && !strstr(out.ptr, "@PLAN@"), "a place that was not filled in");
    text_free(&out);
    arena_free(&arena);
}

/* Any plan can be shown: no crash, and the chart keeps to its width. */
static void anything_can_be_printed(void)
{
    static const char *const format[] = {"table", "chart", "json", "svg", "html"};
    Random random = {11};
    for (uint32_t trial = 0; trial < 60; trial++) {
        Arena arena = {0};
        RandomShape shape = {.count = 1 + (uint32_t)random_below(&random, trial < 50 ? 60 : 3000),
                             .steps = 1 + (INT64_C(1) << random_below(&random, trial % 3 ? 6 : 60)),
                             .longest = 1 + random_below(&random, 100),
                             .largest = (INT64_C(1) << random_below(&random, 40)),
                             .grouped = trial % 4 == 1,
                             .regions = trial % 5 == 2 ? 2 : 1};
        PlanProblem p = random_problem(&arena, &random, shape);
        PlanResult result;
        CHECK(plan_place(&arena, &p, "bestfit", 0, &result), "trial %u", trial);
        PlanReport r = plan_report_of(&arena, &p, &result, NULL);
        for (int f = 0; f < 5; f++) {
            Text out = {0};
            print(&out, &r, format[f]);
            CHECK(f != 1 || trial % 3 == 0 || widest_line(out.ptr) <= 100, "trial %u: a chart %d wide", trial,
                  widest_line(out.ptr));
            text_free(&out);
        }
        arena_free(&arena);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return show(argv[1], argv[2]);
    totals_are_right();
    printers_show_every_tensor();
    blame_names_what_is_live();
    names_stay_inside_the_page();
    anything_can_be_printed();
    puts("plan_report: ok");
    return 0;
}
