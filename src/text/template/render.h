/* What a render may use: steps, memory, nesting. Every part of the interpreter takes from here, so that whatever a
 * program does ends soon, with one sentence. */
#ifndef PD_TEXT_TEMPLATE_RENDER_H
#define PD_TEXT_TEMPLATE_RENDER_H

#include "base/status.h"
#include "format/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PD_RENDER_MAX_DEPTH = 500,             /* of values, and of nodes that are being evaluated */
    PD_RENDER_MAX_STACK = 2000,
    PD_RENDER_MAX_STEPS = 5000000,         /* nodes, elements, and bytes looked at, 16 for a step */
    PD_RENDER_MAX_SIZE = 64 << 20          /* bytes of all values and of the result, with the marks of their bytes */
};

struct pd_frame;
struct pd_builder;
struct pd_dict;
struct pd_value;

struct pd_render {
    const struct pd_template_input *in;
    struct pd_arena arena;
    size_t size;
    uint64_t n_steps;
    uint32_t depth, line;                  /* line: of the node that is being evaluated */
    struct pd_frame *frame;                /* the variables in sight */
    struct pd_builder *out;                /* where the program writes */
    struct pd_builder *tail;               /* the text that was appended to last (pd_chars_concat) */
    struct pd_value *stack;                /* [PD_RENDER_MAX_STACK]: arguments of calls */
    size_t n_stack;
    struct pd_value *captured;             /* what a block wrote whose filter is being applied */
    struct pd_value *caller;               /* the macro that the block is whose call is being made */
    bool (*is_filter)(const struct pd_value *name);   /* whether there is one of this name, a text */
    struct pd_dict *inputs;                /* variables of the input that were read */
    enum pd_flow { PD_FLOW_ON, PD_FLOW_BREAK, PD_FLOW_CONTINUE } flow;
};

/* PERIDOT_ERROR_FORMAT, "line N: ...". */
peridot_status pd_render_fail(const struct pd_render *r, const char *format, ...) PD_PRINTF(2, 3);
/* n steps of the program. */
peridot_status pd_render_spend(struct pd_render *r, uint64_t n);
/* The same for looking at so many bytes. */
peridot_status pd_render_scan(struct pd_render *r, size_t size);
/* Memory for n things of `size` bytes, zeroed; out is the address of the pointer. */
peridot_status pd_render_alloc(void *out, struct pd_render *r, size_t n, size_t size);
/* Around what may nest. */
peridot_status pd_render_enter(struct pd_render *r);
void pd_render_leave(struct pd_render *r);

#endif
