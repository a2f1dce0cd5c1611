/* The matcher of patterns: backwards from the node that ends one, over the nodes that have made its operands. */
#include "onnx/pattern.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#define MOST_PARTS 8 /* of a sum or product */

typedef struct Part { /* of a sum or a product */
    OnnxOperand operand;
    double power; /* of a term its sign */
} Part;

typedef struct Parts {
    OnnxMatch *match;
    bool product, deep;
    double number; /* that is added, or that all is multiplied by */
    Part part[MOST_PARTS];
    uint32_t count;
    bool full, dug; /* more parts than there is room for; some from nodes behind the first */
} Parts;

/* How far a match is: what it has bound and entered since is given up. */
typedef struct Mark {
    uint32_t bound_count, inner_count, most_rank, axes;
    bool reduces, broken;
} Mark;

static bool match_term(OnnxMatch *m, Str pattern, OnnxOperand operand);

static Mark mark_of(const OnnxMatch *m)
{
    return (Mark){m->bound_count, m->inner_count, m->most_rank, m->axes, m->reduces, m->broken};
}

static void go_back(OnnxMatch *m, Mark mark)
{
    m->bound_count = mark.bound_count;
    m->inner_count = mark.inner_count;
    m->most_rank = mark.most_rank;
    m->axes = mark.axes;
    m->reduces = mark.reduces;
    m->broken = mark.broken;
}

/* Values */

OnnxOperand onnx_operand(const OnnxNode *node, uint32_t index)
{
    bool there = index < node->in_count && node->in[index] && node->in[index]->type;
    return (OnnxOperand){there ? node->in[index] : NULL, node, index};
}

static bool is_own_op(const OnnxNode *node)
{
    const char *domain = node->proto->domain;
    return node->opset >= 7 && (!domain || !*domain || strcmp(domain, "ai.onnx") == 0);
}

const OnnxNode *onnx_maker(const OnnxValue *value, const char *op)
{
    const OnnxNode *node = value ? value->maker : NULL;
    return node && is_own_op(node) && strcmp(node->proto->op_type, op) == 0 ? node : NULL;
}

bool onnx_one_number(const OnnxValue *value, double *number)
{
    if (!value || !value->known || value->weight || shape_elements(&value->type->shape) != 1 ||
        !dtype_is_float(value->type->dtype))
        return false;
    *number = tensor_number(value->known, 0);
    return true;
}

bool onnx_near(DType dtype, double a, double b)
{
    double within = dtype == DT_F64 ? 1e-14 : dtype == DT_F32 ? 1e-6 : dtype == DT_F16 ? 2e-3 : 1e-2;
    return fabs(a - b) <= within * fabs(b);
}

static DType dtype_of(const OnnxMatch *m)
{
    return m->root->in[0]->type->dtype;
}

/* What belongs to the pattern */

void onnx_match_start(OnnxMatch *m, OnnxNode *root)
{
    m->root = root;
    m->inner[0] = root;
    m->inner_count = 1;
    m->bound_count = m->most_rank = m->axes = 0;
    m->reduces = m->broken = false;
}

void onnx_match_enter(OnnxMatch *m, OnnxOperand operand)
{
    const OnnxNode *node = operand.value->maker;
    for (uint32_t i = 0; i < m->inner_count; i++)
        if (m->inner[i] == node)
            return;
    m->broken |= m->inner_count == PATTERN_NODES || node->scope->uses != m->root->scope->uses; /* in one function */
    if (!m->broken)
        m->inner[m->inner_count++] = node;
}

static uint32_t uses_of(const OnnxNode *node, const char *name)
{
    uint32_t uses = name && *name ? map_get(node->scope->uses, str_from(name)) : MAP_NONE;
    return uses == MAP_NONE ? 0 : uses;
}

/* Operands of nodes of the pattern that this one gives */
static uint32_t uses_inside(const OnnxMatch *m, const OnnxNode *node)
{
    uint32_t uses = 0;
    for (uint32_t i = 0; i < m->inner_count; i++)
        for (uint32_t k = 0; k < m->inner[i]->in_count; k++)
            uses += m->inner[i]->in[k] && m->inner[i]->in[k]->maker == node;
    return uses;
}

bool onnx_match_alone(const OnnxMatch *m)
{
    for (uint32_t i = 1; i < m->inner_count; i++) {
        const OnnxNode *node = m->inner[i];
        uint32_t uses = 0;
        for (uint32_t k = 0; k < node->out_count; k++)
            uses += uses_of(node, node->proto->output[k]);
        if (uses != uses_inside(m, node))
            return false;
    }
    return !m->broken;
}

static bool is_read_once(OnnxOperand operand)
{
    return uses_of(operand.node, operand.node->proto->input[operand.index]) == 1;
}

/* Sums and products as lists */

static void add_part(Parts *p, OnnxOperand operand, double power)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->product && p->part[i].operand.value == operand.value) {
            p->part[i].power += power;
            return;
        }
    p->full |= p->count == MOST_PARTS;
    if (!p->full)
        p->part[p->count++] = (Part){operand, power};
}

static void take_apart(Parts *p, OnnxOperand operand, double power, bool top);

static bool take_operands(Parts *p, const OnnxNode *node, double first, double second)
{
    take_apart(p, onnx_operand(node, 0), first, false);
    if (node->in_count > 1)
        take_apart(p, onnx_operand(node, 1), second, false);
    return true;
}

/* Roots of a product are not products of roots where these are negative: only whole powers are taken apart. */
static bool take_product(Parts *p, const OnnxNode *node, double power)
{
    const char *op = node->proto->op_type;
    double exponent;
    if (power != floor(power))
        return false;
    if (strcmp(op, "Mul") == 0)
        return take_operands(p, node, power, power);
    if (strcmp(op, "Div") == 0)
        return take_operands(p, node, power, -power);
    if (strcmp(op, "Reciprocal") == 0)
        return take_operands(p, node, -power, 0);
    if (strcmp(op, "Sqrt") == 0 && fabs(power) == 1)
        return take_operands(p, node, power / 2, 0);
    if (strcmp(op, "Neg") == 0 && fabs(power) == 1) {
        p->number = -p->number;
        return take_operands(p, node, power, 0);
    }
    if (strcmp(op, "Pow") == 0 && onnx_one_number(onnx_operand(node, 1).value, &exponent)) {
        take_apart(p, onnx_operand(node, 0), exponent * power, false);
        return true;
    }
    return false;
}

static bool take_sum(Parts *p, const OnnxNode *node, double sign)
{
    const char *op = node->proto->op_type;
    if (strcmp(op, "Add") == 0)
        return take_operands(p, node, sign, sign);
    if (strcmp(op, "Sub") == 0)
        return take_operands(p, node, sign, -sign);
    return strcmp(op, "Neg") == 0 && take_operands(p, node, -sign, 0);
}

static bool enter(Parts *p, OnnxOperand operand, double power, bool top)
{
    const OnnxNode *node = operand.value->maker;
    if (!node || !is_own_op(node) || !(top || (p->deep && is_read_once(operand))))
        return false;
    if (!(p->product ? take_product(p, node, power) : take_sum(p, node, power)))
        return false;
    onnx_match_enter(p->match, operand);
    p->dug |= !top;
    return true;
}

static void take_apart(Parts *p, OnnxOperand operand, double power, bool top)
{
    double number;
    if (!operand.value || p->full) {
        p->full = true;
    } else if (onnx_one_number(operand.value, &number)) {
        p->number = p->product ? p->number * pow(number, power) : p->number + number * power;
        p->match->most_rank = most(p->match->most_rank, operand.value->type->shape.rank);
    } else if (!enter(p, operand, power, top)) {
        add_part(p, operand, power);
    }
}

/* Patterns as text */

static Str skip_blanks(Str s)
{
    while (s.len && *s.ptr == ' ')
        s = (Str){s.ptr + 1, s.len - 1};
    return s;
}

/* The first term, and what follows it */
static Str first_term(Str s, Str *rest)
{
    uint32_t end = 0, depth = 0;
    s = skip_blanks(s);
    while (end < s.len && (depth || (s.ptr[end] != ' ' && s.ptr[end] != ')'))) {
        depth += s.ptr[end] == '(';
        depth -= s.ptr[end] == ')';
        end++;
    }
    *rest = skip_blanks((Str){s.ptr + end, s.len - end});
    return (Str){s.ptr, end};
}

/* `(+ a b)`: the head, and the terms */
static Str open_term(Str s, Str *terms)
{
    return first_term((Str){s.ptr + 1, s.len - 2}, terms);
}

static bool is_number(Str term)
{
    return isdigit((unsigned char)*term.ptr) || (*term.ptr == '-' && term.len > 1);
}

/* Binding */

static OnnxBound *find_bound(const OnnxMatch *m, Str name)
{
    for (uint32_t i = 0; i < m->bound_count; i++)
        if (str_eq(m->bound[i].name, name))
            return (OnnxBound *)(uintptr_t)&m->bound[i];
    return NULL;
}

static bool bind(OnnxMatch *m, Str name, OnnxOperand operand, double number)
{
    const OnnxBound *bound = find_bound(m, name);
    if (bound)
        return operand.value ? bound->operand.value == operand.value : bound->number == number;
    if (m->bound_count == PATTERN_NAMES)
        return false;
    m->bound[m->bound_count++] = (OnnxBound){name, operand, number};
    return true;
}

const OnnxOperand *onnx_bound(const OnnxMatch *m, const char *name)
{
    return &find_bound(m, str_from(name))->operand;
}

double onnx_bound_number(const OnnxMatch *m, const char *name)
{
    return find_bound(m, str_from(name))->number;
}

/* Matching */

/* The number of a sum or product: what the pattern states, or what it asks for.  There must be a part for each of the
 * other terms. */
static bool match_number(OnnxMatch *m, const Parts *p, Str terms)
{
    double stated = p->product ? 1 : 0;
    Str asked = {0}, term;
    uint32_t parts = 0;
    while (terms.len) {
        term = first_term(terms, &terms);
        if (*term.ptr == '\'')
            asked = term;
        else if (is_number(term))
            stated = p->product ? stated * strtod(term.ptr, NULL) : stated + strtod(term.ptr, NULL);
        else
            parts++;
    }
    if (parts != p->count)
        return false;
    if (asked.len)
        return bind(m, asked, (OnnxOperand){0}, p->product ? p->number / stated : p->number - stated);
    return stated == 0 ? p->number == 0 : onnx_near(dtype_of(m), p->number, stated);
}

/* `(- a)`, `(^ a 2)`: the term in it, with its sign or power */
static Str strip(Str term, bool product, double *power)
{
    Str terms, rest, head = *term.ptr == '(' ? open_term(term, &terms) : (Str){0};
    *power = 1;
    if (!str_is(head, product ? "^" : "-"))
        return term;
    term = first_term(terms, &rest);
    *power = product ? strtod(rest.ptr, NULL) : -1;
    return term;
}

/* Each of the terms finds a part of its own. */
static bool match_parts(OnnxMatch *m, const Parts *p, Str terms, uint32_t used)
{
    Str term = {0};
    double power;
    do {
        if (!terms.len)
            return used + 1 == 1u << p->count;
        term = first_term(terms, &terms);
    } while (is_number(term) || *term.ptr == '\'');
    term = strip(term, p->product, &power);
    for (uint32_t i = 0; i < p->count; i++) {
        if (used >> i & 1 || p->part[i].power != power)
            continue;
        Mark before = mark_of(m);
        if (match_term(m, term, p->part[i].operand) && match_parts(m, p, terms, used | 1u << i))
            return true;
        go_back(m, before);
    }
    return false;
}

static bool match_list_to(OnnxMatch *m, Str terms, OnnxOperand operand, Parts *p)
{
    Mark before = mark_of(m);
    take_apart(p, operand, 1, true);
    if (!p->full && p->count && match_number(m, p, terms) && match_parts(m, p, terms, 0))
        return true;
    go_back(m, before);
    return false;
}

/* Taken apart as far as it goes, or, where that has gone further, no deeper than the node itself. */
static bool match_list(OnnxMatch *m, Str terms, OnnxOperand operand, bool product)
{
    Parts all = {.match = m, .product = product, .deep = true, .number = product};
    Parts few = {.match = m, .product = product, .deep = false, .number = product};
    return match_list_to(m, terms, operand, &all) || (all.dug && match_list_to(m, terms, operand, &few));
}

static bool reduced_axes(const OnnxNode *node, uint32_t *bits)
{
    const int64_t *axes;
    uint32_t count, rank = node->in[0]->type->shape.rank;
    OnnxNode copy = *node;
    int64_t since = strcmp(node->proto->op_type, "ReduceSum") == 0 ? 13 : 18;
    if (!onnx_int(node, "keepdims", 1) || !onnx_axes(&copy, since, rank, &axes, &count))
        return false;
    *bits = 0;
    for (uint32_t i = 0; i < count; i++)
        *bits |= 1u << axes[i];
    return count > 0;
}

static bool match_reduction(OnnxMatch *m, const char *op, Str terms, OnnxOperand operand)
{
    const OnnxNode *node = onnx_maker(operand.value, op);
    uint32_t axes;
    Str rest;
    if (!node || !reduced_axes(node, &axes) || (m->reduces && m->axes != axes))
        return false;
    m->reduces = true;
    m->axes = axes;
    onnx_match_enter(m, operand);
    return match_term(m, first_term(terms, &rest), onnx_operand(node, 0));
}

static bool match_op(OnnxMatch *m, Str head, Str terms, OnnxOperand operand)
{
    const OnnxNode *node = operand.value ? operand.value->maker : NULL;
    if (!node || !str_is(head, node->proto->op_type) || !is_own_op(node))
        return false;
    onnx_match_enter(m, operand);
    for (uint32_t i = 0; terms.len; i++)
        if (!match_term(m, first_term(terms, &terms), onnx_operand(node, i)))
            return false;
    return true;
}

static bool match_call(OnnxMatch *m, Str pattern, OnnxOperand operand)
{
    Str terms, head = open_term(pattern, &terms);
    if (str_is(head, "+") || str_is(head, "*"))
        return match_list(m, terms, operand, str_is(head, "*"));
    if (str_is(head, "^"))
        return match_list(m, pattern, operand, true);
    if (str_is(head, "mean") || str_is(head, "sum") || str_is(head, "max"))
        return match_reduction(m,
                               str_is(head, "mean")  ? "ReduceMean"
                               : str_is(head, "sum") ? "ReduceSum"
                                                     : "ReduceMax",
                               terms, operand);
    return match_op(m, head, terms, operand);
}

static bool match_term(OnnxMatch *m, Str pattern, OnnxOperand operand)
{
    const char *colon = memchr(pattern.ptr, ':', pattern.len);
    double number;
    if (!operand.value)
        return false;
    if (*pattern.ptr == '(')
        return match_call(m, pattern, operand);
    if (colon) {
        uint32_t length = (uint32_t)(colon - pattern.ptr);
        Str behind = {colon + 1, pattern.len - length - 1};
        return match_term(m, behind, operand) && bind(m, (Str){pattern.ptr, length}, operand, 0);
    }
    if (is_number(pattern))
        return onnx_one_number(operand.value, &number) && number == strtod(pattern.ptr, NULL);
    if (*pattern.ptr == '\'')
        return onnx_one_number(operand.value, &number) && bind(m, pattern, (OnnxOperand){0}, number);
    return bind(m, pattern, operand, 0);
}

bool onnx_match(OnnxNode *root, const char *pattern, OnnxMatch *match)
{
    onnx_match_start(match, root);
    OnnxValue result = {.type = root->in[0] ? root->in[0]->type : NULL, .maker = root};
    if (!result.type)
        return false;
    return match_term(match, str_from(pattern), (OnnxOperand){&result, root, UINT32_MAX}) && onnx_match_alone(match);
}
