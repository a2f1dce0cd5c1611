/* The plan as one page for the browser, with nothing to load from elsewhere: report.html with the plan's JSON inside,
 * drawn by the page's own script.  What the page shows is what the JSON says, so there is one source for both. */
#include <string.h>

#include "plan/report.h"

#pragma GCC diagnostic ignored "-Woverlength-strings" /* the page is one literal; C11 promises 4095 bytes only */
#include "report_page.h"

/* JSON has `<` only inside strings, where an escape means the same; as it stands it could end the script. */
static void put_inside_script(Text *out, const PlanReport *r)
{
    Text json = {0};
    plan_print_json(&json, r);
    for (size_t at = 0, end; at < json.len; at = end + 1) {
        const char *angle = memchr(json.ptr + at, '<', json.len - at);
        end = angle ? (size_t)(angle - json.ptr) : json.len;
        text_put(out, json.ptr + at, end - at);
        if (angle)
            text_printf(out, "\\u003c");
    }
    text_free(&json);
}

void plan_print_html(Text *out, const PlanReport *r)
{
    static const char title[] = "@TITLE@", plan[] = "@PLAN@";
    const char *head = strstr(report_page, title), *body = strstr(report_page, plan);

    text_put(out, report_page, (size_t)(head - report_page));
    plan_escape_xml(out, r->title);
    head += sizeof title - 1;
    text_put(out, head, (size_t)(body - head));
    put_inside_script(out, r);
    body += sizeof plan - 1;
    text_put(out, body, strlen(body));
}
