/* The plan as one page for the browser, with nothing to load from elsewhere: page/ with the plan's JSON inside,
 * drawn by the page's own script.  What the page shows is what the JSON says, so there is one source for both. */
#include <string.h>

#include "plan/report.h"

#pragma GCC diagnostic ignored "-Woverlength-strings" /* each part is one literal; C11 promises 4095 bytes only */
#include "page_data_js.h"
#include "page_hand_js.h"
#include "page_page_css.h"
#include "page_page_html.h"
#include "page_picture_js.h"
#include "page_story_js.h"

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

static void put_string(Text *out, const char *string)
{
    text_put(out, string, strlen(string));
}

/* What stands for @TITLE@, @STYLE@, @PLAN@ and @SCRIPT@ in page.html. */
static void put_part(Text *out, const PlanReport *r, Str name)
{
    static const char *const script[] = {page_data_js, page_picture_js, page_story_js, page_hand_js};
    if (str_is(name, "TITLE"))
        plan_escape_xml(out, r->title);
    else if (str_is(name, "STYLE"))
        put_string(out, page_page_css);
    else if (str_is(name, "PLAN"))
        put_inside_script(out, r);
    for (size_t i = 0; str_is(name, "SCRIPT") && i < sizeof script / sizeof *script; i++)
        put_string(out, script[i]);
}

void plan_print_html(Text *out, const PlanReport *r)
{
    const char *at = page_page_html;
    for (const char *open; (open = strchr(at, '@')); at = strchr(open + 1, '@') + 1) {
        text_put(out, at, (size_t)(open - at));
        put_part(out, r, (Str){open + 1, (uint32_t)(strchr(open + 1, '@') - open - 1)});
    }
    put_string(out, at);
}
