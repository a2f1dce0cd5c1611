/* Shared by the parts of the printer: names (print_name.c), loops and branches (print_control.c), the rest (print.c).
 */
#ifndef NNC_FRONTENDS_NNC_PRINT_H
#define NNC_FRONTENDS_NNC_PRINT_H

#include "frontends/nnc/text.h"

typedef struct Carried { /* what a carried value is called, in condition and body of a loop */
    Str name;
    uint32_t temporary; /* its number when the name is empty */
} Carried;

/* Prints one graph: a whole one, or a body inside another. */
typedef struct TextPrinter {
    Text *out;
    const Graph *graph;
    Arena *scratch;
    Map owner; /* name to the value that may use it */
    bool *used;
    uint32_t indent; /* of statements, in blanks */

    /* Of a body: */
    const struct TextPrinter *outer; /* of the graph that its node is in */
    const Node *node;
    uint32_t *input;     /* per value: which of the node's operands it is; NONE for all others */
    uint32_t depth;      /* bodies around */
    uint32_t *temporary; /* per value: its number when it has no name, once it is defined; numbers ... */
    uint32_t *next;      /* ... go on through the bodies of one node */
    const Carried *carried;
} TextPrinter;

/* print_name.c */
void printer_start(TextPrinter *p, Arena *scratch, Text *out, const Graph *graph);
void printer_start_body(TextPrinter *p, const TextPrinter *outer, const Node *node, const Graph *body, uint32_t *next);
/* Claims names for a loop's carried values, to be called by in both its bodies; numbers those without. */
const Carried *printer_claim_carried(TextPrinter *p, uint32_t count);
void printer_use_carried(TextPrinter *p, const Carried *carried, uint32_t count);
void printer_claim_body(TextPrinter *p); /* all other names of the body */
void printer_name(Text *out, Str name);
bool printer_has_name(const TextPrinter *p, ValueId v);
bool printer_is_declared(const TextPrinter *p, ValueId v); /* stands in a declaration, if it is a leaf */
void printer_value(const TextPrinter *p, ValueId v);
void printer_typed(const TextPrinter *p, ValueId v);
/* The constant that the value prints as, seen through captures, when no name is left for it; else NULL. */
const Value *printer_literal(const TextPrinter *p, ValueId v);
/* A value where any expression may stand: a literal with its dtype. */
void printer_operand(const TextPrinter *p, ValueId v);

/* print_control.c */
void printer_bodies(const TextPrinter *p, const Node *node); /* after the results and `=` */
void printer_head(const TextPrinter *p, const Node *node);   /* the same without bodies, on one line */
void printer_start_inside(TextPrinter *p, const TextPrinter *outer, const Node *node, uint32_t sub);

/* print.c */
void printer_statements(const TextPrinter *p);                   /* constants and nodes of a body, a line each */
void printer_expression(const TextPrinter *p, const Node *node); /* add(x, 1.0) */
void printer_indent(const TextPrinter *p);

#endif
