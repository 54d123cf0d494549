/* Which variable each name is, settled before a program runs (two passes over each frame: what it has, then what its
 * names mean), and the frames that hold the values while it does. */
#include "text/template/template_.h"

#include "base/base.h"

#include <string.h>

enum { MAX_STEPS = 20000000 };   /* names compared, which is what a hostile program makes many of */

struct pass {
    struct pd_template *t;
    struct pd_scope *scope;
    uint64_t n_steps;
    struct pd_scope *macro;       /* around what is looked at, NULL: none */
    uint32_t n_loops;             /* the same */
    bool enters_macro;            /* the next scope is a macro's */
    bool in_branch;
    bool in_condition;            /* of the same frame: what is not there fails only where it is called */
};

/* NULL: no frame around has it. */
static peridot_status scope_find(struct pd_variable **out, uint32_t *level, struct pass *p, const struct pd_code *name)
{
    *level = 0;
    *out = NULL;
    for (struct pd_scope *s = p->scope; s; s = s->parent, ++*level)
        for (*out = s->variables; *out; *out = (*out)->next) {
            if (++p->n_steps > MAX_STEPS) return pd_parser_fail(name->line, "the template has too many variables");
            if (pd_chars_equal((*out)->name, name->value.text)) return PERIDOT_OK;
        }
    *out = NULL;
    return PERIDOT_OK;
}

static peridot_status define(struct pd_variable **out, struct pass *p, const struct pd_code *name,
                             enum pd_variable_from from)
{
    struct pd_variable *v = pd_arena_alloc(&p->t->arena, sizeof *v);
    if (!v) return pd_fail_alloc(sizeof *v, "a template");
    *v = (struct pd_variable){.name = name->value.text, .from = from, .slot = p->scope->n++};
    *p->scope->last = v;
    p->scope->last = &v->next;
    *out = v;
    if (from != PD_FROM_INPUT) return PERIDOT_OK;
    v->next_input = p->t->inputs;
    p->t->inputs = v;
    return PERIDOT_OK;
}

/* ---- which variables a frame has ---- */

static peridot_status collect(struct pass *p, struct pd_code *code);

static peridot_status collect_all(struct pass *p, struct pd_code *list)
{
    for (; list; list = list->next) PD_TRY(collect(p, list));
    return PERIDOT_OK;
}

static peridot_status scope_load(struct pass *p, const struct pd_code *name)
{
    static const char *const names[] = {
        [PD_SPECIAL_CALLER] = "caller", [PD_SPECIAL_KWARGS] = "kwargs", [PD_SPECIAL_VARARGS] = "varargs"};
    struct pd_scope *const here = p->scope;
    struct pd_variable *v;
    uint32_t level;
    PD_TRY(scope_find(&v, &level, p, name));
    for (size_t i = 0; i < PD_COUNT(names) && p->macro && !v; i++) {
        if (!pd_chars_are(name->value.text, names[i])) continue;
        p->scope = p->macro;
        PD_TRY(define(&v, p, name, PD_FROM_PARAMETER));
        p->macro->specials[i] = v;
        p->scope = here;
    }
    return v ? PERIDOT_OK : define(&v, p, name, PD_FROM_INPUT);
}

static peridot_status fail_loop(const struct pd_code *name)
{
    return pd_parser_fail(name->line, "the variable loop cannot be set in a loop");
}

/* What is set in only some branches has the input's value in the others. */
static peridot_status store(struct pass *p, const struct pd_code *name)
{
    struct pd_variable *v = NULL, *outer;
    uint32_t level;
    if (p->n_loops && pd_chars_are(name->value.text, "loop"))
        return fail_loop(name);
    PD_TRY(scope_find(&outer, &level, p, name));
    if (outer) outer->is_set |= level == 0;
    if (outer && level == 0) return PERIDOT_OK;
    PD_TRY(define(&v, p, name, outer ? PD_FROM_OUTER : p->in_branch ? PD_FROM_INPUT : PD_FROM_NOWHERE));
    v->is_set = true;
    if (!outer) return PERIDOT_OK;
    v->outer_level = level;
    v->outer_slot = outer->slot;
    return PERIDOT_OK;
}

static peridot_status store_target(struct pass *p, struct pd_code *target)
{
    if (target->kind == PD_CODE_MEMBER_TARGET) return scope_load(p, target->a);
    if (target->kind == PD_CODE_NAME) return store(p, target);
    for (struct pd_code *item = target->a; item; item = item->next) PD_TRY(store_target(p, item));
    return PERIDOT_OK;
}

static peridot_status collect_if(struct pass *p, struct pd_code *code)
{
    const bool in_branch = p->in_branch;
    PD_TRY(collect(p, code->a));
    p->in_branch = true;
    PD_TRY(collect_all(p, code->b));
    PD_TRY(collect_all(p, code->d));
    PD_TRY(collect_all(p, code->c));
    p->in_branch = in_branch;
    return PERIDOT_OK;
}

/* A frame within this one is not entered. */
static peridot_status collect(struct pass *p, struct pd_code *code)
{
    switch (code->kind) {
    case PD_CODE_NAME: return scope_load(p, code);
    case PD_CODE_SET:
        PD_TRY(collect(p, code->a));
        return store_target(p, code->b);
    case PD_CODE_SET_BLOCK: return store_target(p, code->b);
    case PD_CODE_IF: return collect_if(p, code);
    case PD_CODE_FOR: return collect(p, code->a);
    case PD_CODE_MACRO: return store(p, code->c);
    case PD_CODE_FILTER_BLOCK: case PD_CODE_SCOPE: return collect_all(p, code->c);
    default: break;
    }
    PD_TRY(collect_all(p, code->a));
    PD_TRY(collect_all(p, code->b));
    PD_TRY(collect_all(p, code->c));
    return collect_all(p, code->d);
}

/* ---- which variable each name is ---- */

static peridot_status resolve_all(struct pass *p, struct pd_code *list);

static peridot_status resolve_name(struct pd_variable **out, struct pass *p, struct pd_code *name)
{
    PD_TRY(scope_find(out, &name->level, p, name));
    if (!*out) return pd_parser_fail(name->line, "a variable in a filter of a block that is used nowhere else");
    name->slot = (*out)->slot;
    return PERIDOT_OK;
}

/* What programs call is there: no input can be called. */
static peridot_status resolve_call(struct pass *p, struct pd_code *call)
{
    struct pd_variable *v;
    char shown[PD_SHOWN_SIZE];
    if (call->a->kind != PD_CODE_NAME) return PERIDOT_OK;
    PD_TRY(resolve_name(&v, p, call->a));
    if (v->from != PD_FROM_INPUT || v->is_set || pd_function_find(v->name)) return PERIDOT_OK;
    return pd_parser_fail(call->line, "there is no function %s", pd_utf8_shown(shown, v->name.data, v->name.size));
}

static peridot_status declare(struct pass *p, struct pd_code *target)
{
    struct pd_variable *v;
    if (target->kind == PD_CODE_NAME && p->n_loops && pd_chars_are(target->value.text, "loop"))
        return fail_loop(target);
    if (target->kind == PD_CODE_NAME || target->kind == PD_CODE_PARAMETER) {
        PD_TRY(scope_find(&v, &target->level, p, target));
        if (!v || target->level) PD_TRY(define(&v, p, target, PD_FROM_PARAMETER));
        target->level = 0;
        target->slot = v->slot;
        return PERIDOT_OK;
    }
    for (struct pd_code *item = target->a; item; item = item->next) PD_TRY(declare(p, item));
    return PERIDOT_OK;
}

/* A frame: its parameters, then what its statements set or read; `loop` for the body of a loop. */
static peridot_status resolve_scope(struct pass *p, struct pd_code *scope, struct pd_code *parameters, bool loop)
{
    struct pd_variable *v = NULL;
    const struct pass before = *p;
    struct pd_scope *s = pd_arena_alloc(&p->t->arena, sizeof *s);
    if (!s) return pd_fail_alloc(sizeof *s, "a template");
    *s = (struct pd_scope){.parent = p->scope, .last = &s->variables};
    scope->scope = p->scope = s;
    if (p->enters_macro) p->macro = s;
    p->enters_macro = false;
    p->in_branch = p->in_condition = false;
    for (struct pd_code *target = parameters; target; target = target->next) PD_TRY(declare(p, target));
    if (loop) PD_TRY(define(&v, p, &(struct pd_code){.value.text = PD_CHARS("loop")}, PD_FROM_PARAMETER));
    scope->slot = loop ? v->slot : 0;
    for (struct pd_code *target = parameters; target && !loop; target = target->next)
        if (target->kind == PD_CODE_PARAMETER) PD_TRY(collect_all(p, target->a));
    PD_TRY(collect_all(p, scope->a));
    for (struct pd_code *target = parameters; target; target = target->next)
        if (target->kind == PD_CODE_PARAMETER) PD_TRY(resolve_all(p, target->a));
    PD_TRY(resolve_all(p, scope->a));
    p->scope = before.scope;
    p->macro = before.macro;
    p->in_branch = before.in_branch;
    p->in_condition = before.in_condition;
    return PERIDOT_OK;
}

static peridot_status resolve_for(struct pass *p, struct pd_code *loop)
{
    const uint32_t n_loops = p->n_loops++;
    PD_TRY(resolve_all(p, loop->a));
    if (loop->d) PD_TRY(resolve_scope(p, loop->d, loop->b->b, false));
    PD_TRY(resolve_scope(p, loop->b, loop->b->b, true));
    p->n_loops = n_loops;
    return loop->c ? resolve_scope(p, loop->c, NULL, false) : PERIDOT_OK;
}

static peridot_status resolve_macro(struct pass *p, struct pd_code *macro)
{
    struct pd_variable *v;
    if (macro->c) PD_TRY(resolve_name(&v, p, macro->c));
    p->enters_macro = true;
    return resolve_scope(p, macro->b, macro->b->b, false);
}

/* The filter of a block is applied in the block's frame. */
static peridot_status resolve_block(struct pass *p, struct pd_code *block)
{
    PD_TRY(resolve_scope(p, block->a, NULL, false));
    const struct pass outer = *p;
    p->scope = block->a->scope;
    p->in_condition = false;
    PD_TRY(resolve_all(p, block->c));
    p->scope = outer.scope;
    p->in_condition = outer.in_condition;
    return block->b ? resolve_all(p, block->b) : PERIDOT_OK;
}

static peridot_status resolve_members(struct pass *p, struct pd_code *code)
{
    PD_TRY(resolve_all(p, code->a));
    PD_TRY(resolve_all(p, code->b));
    PD_TRY(resolve_all(p, code->c));
    return resolve_all(p, code->d);
}

static peridot_status resolve_condition(struct pass *p, struct pd_code *code)
{
    const bool in_condition = p->in_condition;
    p->in_condition = true;
    PD_TRY(resolve_members(p, code));
    p->in_condition = in_condition;
    return PERIDOT_OK;
}

static peridot_status check_builtin(const struct pass *p, const struct pd_code *code)
{
    char shown[PD_SHOWN_SIZE];
    if (code->builtin || p->in_condition) return PERIDOT_OK;
    return pd_parser_fail(code->line, "there is no %s %s", code->kind == PD_CODE_FILTER ? "filter" : "test",
                          pd_utf8_shown(shown, code->value.text.data, code->value.text.size));
}

static peridot_status resolve(struct pass *p, struct pd_code *code)
{
    struct pd_variable *v;
    switch (code->kind) {
    case PD_CODE_NAME: return resolve_name(&v, p, code);
    case PD_CODE_FOR: return resolve_for(p, code);
    case PD_CODE_MACRO: return resolve_macro(p, code);
    case PD_CODE_CALL_BLOCK:
        PD_TRY(resolve_all(p, code->a));
        return resolve_macro(p, code);
    case PD_CODE_SET_BLOCK: case PD_CODE_FILTER_BLOCK: return resolve_block(p, code);
    case PD_CODE_SCOPE:
        PD_TRY(resolve_all(p, code->c));
        return resolve_scope(p, code, code->b, false);
    case PD_CODE_CALL: PD_TRY(resolve_call(p, code)); break;
    case PD_CODE_IF: case PD_CODE_CONDITION: return resolve_condition(p, code);
    case PD_CODE_FILTER: case PD_CODE_TEST: PD_TRY(check_builtin(p, code)); break;
    default: break;
    }
    return resolve_members(p, code);
}

static peridot_status resolve_all(struct pass *p, struct pd_code *list)
{
    for (; list; list = list->next) PD_TRY(resolve(p, list));
    return PERIDOT_OK;
}

peridot_status pd_scope_resolve(struct pd_template *t)
{
    struct pass p = {.t = t};
    return resolve_scope(&p, t->root, NULL, false);
}

/* ---- the variables of a scope while it runs ---- */

static peridot_status read_input(struct pd_value *out, struct pd_render *r, struct pd_chars name)
{
    const struct pd_template_input *in = r->in;
    *out = (struct pd_value){.type = PD_UNSET};
    for (size_t i = 0; i < in->n_words; i++)
        if (pd_chars_are(name, in->words[i].name)) {
            *out = pd_value_text((struct pd_chars){in->words[i].text, strlen(in->words[i].text), pd_all_own});
            return PERIDOT_OK;
        }
    PD_TRY(pd_render_spend(r, yyjson_obj_size(in->variables)));
    yyjson_val *json = yyjson_obj_getn(in->variables, name.data, name.size);
    if (json) return pd_value_from_json(out, r, json);
    const struct pd_builtin *function = pd_function_find(name);
    if (function) *out = (struct pd_value){.type = PD_FUNCTION, .function = function};
    return PERIDOT_OK;
}

/* What was read once is kept: it is the same in every frame. */
static peridot_status load_input(struct pd_value *out, struct pd_render *r, struct pd_chars name)
{
    const struct pd_value key = pd_value_text(name);
    struct pd_value *kept;
    PD_TRY(pd_dict_find(&kept, r, r->inputs, &key));
    if (kept) {
        *out = *kept;
        return PERIDOT_OK;
    }
    PD_TRY(read_input(out, r, name));
    return pd_dict_put(r, r->inputs, &key, out);
}

peridot_status pd_frame_reset(struct pd_frame *f, struct pd_render *r, const struct pd_scope *scope)
{
    for (const struct pd_variable *v = scope->variables; v; v = v->next) {
        struct pd_frame *outer = f;
        f->at[v->slot] = (struct pd_value){.type = PD_UNSET};
        if (v->from == PD_FROM_INPUT) PD_TRY(load_input(&f->at[v->slot], r, v->name));
        if (v->from != PD_FROM_OUTER) continue;
        for (uint32_t i = 0; i < v->outer_level; i++) outer = outer->outer;
        f->at[v->slot] = outer->at[v->outer_slot];
    }
    return pd_render_spend(r, scope->n / 4);
}

peridot_status pd_frame_create(struct pd_frame **out, struct pd_render *r, const struct pd_scope *scope,
                               struct pd_frame *outer)
{
    PD_TRY(pd_render_alloc(out, r, 1, sizeof **out));
    PD_TRY(pd_render_alloc(&(*out)->at, r, scope->n, sizeof *(*out)->at));
    (*out)->outer = outer;
    return pd_frame_reset(*out, r, scope);
}

struct pd_value *pd_frame_variable(const struct pd_render *r, const struct pd_code *name)
{
    struct pd_frame *f = r->frame;
    for (uint32_t i = 0; i < name->level; i++) f = f->outer;
    return &f->at[name->slot];
}
