/* The reports of a plan.  With arguments, FORMAT and FILE.csv, it prints a report instead, for looking at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "plan/problem_csv.h"
#include "plan/report.h"

#include "check.h"
#include "plan_random.h"

static void print(Text *out, const PlanReport *r, const char *format)
{
    if (strcmp(format, "table") == 0)
        plan_print_table(out, r, 0);
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

static PlanReport report_of_rows(Arena *arena, const PlanRow *row, uint32_t count, int64_t peak, int64_t bound)
{
    PlanReport r = {.title = STR("rows"),
                    .count = count,
                    .region_count = 1,
                    .peak = peak,
                    .lower_bound = bound,
                    .proven = peak == bound,
                    .allocator = "bestfit"};
    r.row = arena_copy(arena, row, count * sizeof *row);
    for (uint32_t i = 0; i < count; i++)
        r.row[i].alias_of = PLAN_NO_ROW;
    plan_report_finish(arena, &r);
    return r;
}

/* What is only kept over the step is told from what it reads; that needs the uses. */
static void hints_are_true(void)
{
    static const int64_t around[] = {0, 3}, through[] = {0, 1, 3}, none[] = {1};
    const struct {
        PlanRow row[3];
        uint32_t count;
        const char *hint;
    } of[] = {
        {{{.name = STR("a"), .bytes = 600, .last = 4, .use = around, .use_count = 2},
          {.name = STR("b"), .bytes = 400, .offset = 600, .first = 1, .last = 2, .use = none, .use_count = 1}},
         2,
         "600 bytes only wait while step 1 runs, a (for step 3): using it before"},
        {{{.name = STR("a"), .bytes = 600, .last = 4},
          {.name = STR("b"), .bytes = 400, .offset = 600, .first = 1, .last = 2}},
         2,
         "600 bytes are live before and after step 1, a (until step 3): shorter lives"},
        {{{.name = STR("a"), .bytes = 600, .last = 4, .use = through, .use_count = 3},
          {.name = STR("b"), .bytes = 400, .offset = 600, .first = 1, .last = 2, .use = none, .use_count = 1}},
         2,
         "b begins at step 1 while a is still needed by step 3"},
        {{{.name = STR("a"), .bytes = 600, .last = 2},
          {.name = STR("b"), .bytes = 400, .offset = 600, .first = 1, .last = 3}},
         2,
         "a and b are both live at step 1, where the one ends and the other begins"},
        {{{.name = STR("a"), .bytes = 300, .last = 2},
          {.name = STR("s"), .kind = PLAN_SCRATCH, .bytes = 400, .offset = 300, .first = 1, .last = 2}},
         2,
         "400 bytes are scratch of step 1"},
        {{{.name = STR("a"), .bytes = 900, .last = 2},
          {.name = STR("s"), .kind = PLAN_SCRATCH, .bytes = 70, .offset = 900, .first = 1, .last = 2}},
         2,
         "a is 93 % of what is live at step 1: a narrower type, or making and using it in pieces, would lower the "
         "peak. "
         "The kernel's scratch takes 70 bytes. The next fullest needs 900 bytes, so at most 70"},
        {{{.name = STR("m"), .type = STR("bool[9]"), .bytes = 9, .last = 2}},
         1,
         "m is 100 % of what is live at step 0: making and using it in pieces would lower the peak."},
        {{{.name = STR("c@0"), .kind = PLAN_GROWING, .bytes = 600, .last = 2, .use = around, .use_count = 1},
          {.name = STR("b"), .bytes = 400, .offset = 600, .first = 1, .last = 2, .use = none, .use_count = 1},
          {.name = STR("c"), .bytes = 700, .first = 2, .last = 3}},
         3,
         "600 bytes only wait while step 1 runs, c@0 (for step 2)"},
        {{{.name = STR("a"), .bytes = 9, .last = 1},
          {.name = STR("b"), .bytes = 9, .first = 2, .last = 3},
          {.name = STR("c"), .bytes = 9, .first = 4, .last = 6}},
         3,
         "3 other steps are as full and would have to change as well, the first step 2."},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Arena arena = {0};
        PlanReport r = report_of_rows(&arena, of[i].row, of[i].count, 1000, 1000);
        CHECK(strstr(r.hint.ptr, of[i].hint), "case %zu: " STR_FMT, i, STR_ARG(r.hint));
        arena_free(&arena);
    }
}

static void names_tell_parts_of_the_model(void)
{
    const PlanRow rows[] = {{.name = STR("net.b.x"), .bytes = 1, .first = 5, .last = 6},
                            {.name = STR("net.a.x.y"), .bytes = 1, .last = 6},
                            {.name = STR("net.h.3"), .bytes = 1, .last = 6},
                            {.name = STR("net.s.t"), .bytes = 1, .last = 6, .kind = PLAN_SCRATCH},
                            {.name = STR("x"), .bytes = 1, .last = 6}};
    Arena arena = {0};
    PlanReport r = report_of_rows(&arena, rows, 5, 5, 5);
    CHECK(r.scope_count == 2 && str_is(r.scope[0], "net.a") && str_is(r.scope[1], "net.b"), "by first use, at depth 2");
    CHECK(r.row[0].scope == 1 && r.row[1].scope == 0, "of these parts");
    CHECK(r.row[2].scope == PLAN_NO_ROW && r.row[3].scope == PLAN_NO_ROW && r.row[4].scope == PLAN_NO_ROW, "of none");
    r = report_of_rows(&arena, rows + 1, 1, 5, 5);
    CHECK(r.scope_count == 0 && r.row[0].scope == PLAN_NO_ROW, "one alone tells nothing");
    arena_free(&arena);
}

/* Columns stand one below the other, also where a name is longer than any column. */
static void tables_are_aligned(void)
{
    static const char name[] = "a.name.that.is.a.good.deal.longer.than.the.sixty.columns.which.names.may.take";
    const PlanRow rows[] = {
        {.name = STR("caf\xc3\xa9"), .type = STR("f32[9]"), .bytes = 1234567, .last = 12},
        {.name = STR("b"), .bytes = 7, .offset = 1234567, .first = 3, .last = 11},
        {.name = {name, sizeof name - 1}, .type = STR("f32[1]"), .bytes = 5, .first = 12, .last = 13}};
    Arena arena = {0};
    Text out = {0};
    PlanReport r = report_of_rows(&arena, rows, 3, 1234574, 1234574);
    plan_print_table(&out, &r, 0);
    static const char expected[] =
        "name  type        bytes     offset  first  last  reuses\n"
        "caf\xc3\xa9  f32[9]  1,234,567          0      0    11\n"
        "b                     7  1,234,567      3    10\n"
        "a.name.that.is.a.good.deal.longer.than.the.sixty.columns.which.names.may.take\n"
        "      f32[1]          5          0     12    12  caf\xc3\xa9\n";
    CHECK(strncmp(out.ptr, expected, sizeof expected - 1) == 0, "%s", out.ptr);
    CHECK(strstr(out.ptr, "1.0 times the peak, 3 tensors"), "%s", out.ptr);
    text_free(&out);
    arena_free(&arena);
}

/* Where a plan is not proven, the pictures say by how much it may be too high. */
static void pictures_show_the_gap(void)
{
    const PlanRow rows[] = {{.name = STR("stage.first"), .bytes = 600, .last = 2},
                            {.name = STR("other.b"), .bytes = 400, .offset = 600, .first = 1, .last = 4}};
    Arena arena = {0};
    Text svg = {0}, chart = {0};
    PlanReport r = report_of_rows(&arena, rows, 2, 1000, 800);
    plan_print_svg(&svg, &r);
    CHECK(strstr(svg.ptr, "lower bound 800 B, gap 200 B") && strstr(svg.ptr, ">peak 1000 B<"), "%s", svg.ptr);
    CHECK(strstr(svg.ptr, ">step 1: 1000 B live<"), "the fullest step is named");
    CHECK(strstr(svg.ptr, ">stage</text>") && strstr(svg.ptr, ">other</text>"), "a legend of the parts");
    plan_print_chart(&chart, &r, 100);
    CHECK(strstr(chart.ptr, "lower bound 800 B, gap 200 B (25.00 %)"), "%s", chart.ptr);
    CHECK(strstr(chart.ptr, "live ▅") && strstr(chart.ptr, "█▃"), "bars of live bytes: %s", chart.ptr);
    text_free(&svg);
    text_free(&chart);
    arena_free(&arena);
}

/* Heirs and what is written in place are in the story; a name that finds no room is cut at its dots. */
static void stories_are_complete(void)
{
    const PlanRow rows[] = {
        {.name = STR("old"), .bytes = 64, .last = 2},
        {.name = STR("a.very.long.name.with.many.dots.and.an.end"), .bytes = 64, .first = 1, .last = 3},
        {.name = STR("late"), .bytes = 64, .first = 3, .last = 60}};
    Arena arena = {0};
    Text out = {0};
    PlanReport r = report_of_rows(&arena, rows, 3, 64, 64);
    plan_print_svg(&out, &r);
    CHECK(strstr(out.ptr, "\nin place of old\ntaken over by late</title>"), "%s", out.ptr);
    CHECK(strstr(out.ptr, "\ntaken over by a.very.long"), "%s", out.ptr);
    CHECK(strstr(out.ptr, "rotate(-90)") || strstr(out.ptr, ">end</text>"), "%s", out.ptr);
    text_free(&out);
    arena_free(&arena);
}

static void hostile_names_are_escaped(void)
{
    Arena arena = {0};
    Text out = {0};
    plan_escape_xml(&out, STR("<&>\"\x01\xff\xef\xbf\xbe\xef\xbf\xbd\xc3\xa9"));
    CHECK(strcmp(out.ptr, "&lt;&amp;&gt;&quot;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9") == 0, "%s",
          out.ptr);
    CHECK(str_is(plan_printable(&arena, STR("a\x1b[31m\xff\xc2\x9b\xc3\xa9")), "a?[31m??\xc3\xa9"), "for a terminal");
    text_free(&out);
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
    hints_are_true();
    names_tell_parts_of_the_model();
    tables_are_aligned();
    pictures_show_the_gap();
    stories_are_complete();
    hostile_names_are_escaped();
    names_stay_inside_the_page();
    anything_can_be_printed();
    puts("plan_report: ok");
    return 0;
}
