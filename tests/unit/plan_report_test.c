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

int main(int argc, char **argv)
{
    if (argc == 3)
        return show(argv[1], argv[2]);
    puts("plan_report: ok");
    return 0;
}
