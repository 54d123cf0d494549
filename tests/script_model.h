/* A model that says what a test wants: each token of a script has one that follows it, by a great margin. Of others the
 * logits are all 0. Its layer adds nothing to the residual, so that position and history do not matter, but for turns.
 */
#ifndef SCRIPT_MODEL_H
#define SCRIPT_MODEL_H

#include "text_fixture.h"

enum { SCRIPT_WIDTH = 64, SCRIPT_MOST = SCRIPT_WIDTH };   /* as the golden towers of Gemma 3 have it */

struct script_step {
    const char *from, *to;   /* pieces; each is `from` once at most */
};

/* Where `after` came before, another token follows one that has a step; of several the last counts. */
struct script_turn {
    const char *from, *to, *after;
};

static inline int32_t script_id(const struct tiny *t, const char *piece)
{
    for (uint64_t i = 0; i < t->n; i++)
        if (t->text[i].size == strlen(piece) && memcmp(t->text[i].data, piece, t->text[i].size) == 0) return (int32_t)i;
    fail_msg("there is no piece %s", piece);
    return -1;
}

static inline void script_tensor(struct pd_gguf_writer *w, const char *name, uint64_t n_rows)
{
    const uint64_t shape[] = {n_rows, SCRIPT_WIDTH};
    pd_gguf_writer_add_tensor(w, name, PD_F32, n_rows ? 2 : 1, n_rows ? shape : shape + 1);
}

static inline void script_data(struct pd_gguf_writer *w, const float *data, size_t n)
{
    assert_int_equal(pd_gguf_writer_write(w, data, n * sizeof *data), PERIDOT_OK);
}

static inline void script_key(struct pd_gguf_writer *w, const char *architecture, const char *key, uint32_t value)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", architecture, key);
    pd_gguf_writer_add_u32(w, name, value);
}

enum { SCRIPT_Q, SCRIPT_K, SCRIPT_V, SCRIPT_OUTPUT, SCRIPT_GATE, SCRIPT_UP, SCRIPT_DOWN, SCRIPT_MATRICES };

/* Attention weighs all tokens alike, and so tells the share of each `after`, in a column of its own from the last one
 * on; a hidden number is that times what `from` is, and outweighs the steps. */
static inline void script_turn(float (*m)[SCRIPT_WIDTH][SCRIPT_WIDTH], const struct tiny *t, size_t i,
                               float (*embedding)[SCRIPT_WIDTH], float (*output)[SCRIPT_WIDTH])
{
    const float *from = embedding[script_id(t, t->turns[i].from)];
    size_t seen = SCRIPT_WIDTH - 1 - 2 * i, to = seen - 1, at = 0;
    float gain = 100;
    while (!from[at]) at++;
    for (size_t k = 0; k < i; k++) gain *= 10;
    embedding[script_id(t, t->turns[i].after)][seen] = 1;
    output[script_id(t, t->turns[i].to)][to] = 4;
    m[SCRIPT_V][seen][seen] = m[SCRIPT_OUTPUT][seen][seen] = 1;
    m[SCRIPT_GATE][i][at] = m[SCRIPT_UP][i][seen] = 1;
    m[SCRIPT_DOWN][to][i] = gain;
}

/* Writes a model with the vocabulary t: "llama" or "gemma3". */
static inline void script_write_as(const char *path, struct tiny *t, const char *architecture,
                                   const struct script_step *steps, size_t n_steps)
{
    static const char *const norms[] = {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm", "blk.0.attn_q_norm",
        "blk.0.attn_k_norm", "blk.0.post_attention_norm", "blk.0.post_ffw_norm"};
    const struct { const char *key; uint32_t value; } keys[] = {{"block_count", 1},
        {"context_length", t->ctx ? t->ctx : 4096},
        {"embedding_length", SCRIPT_WIDTH}, {"feed_forward_length", SCRIPT_WIDTH}, {"attention.head_count", 1},
        {"attention.key_length", SCRIPT_WIDTH}, {"attention.value_length", SCRIPT_WIDTH},
        {"attention.sliding_window", 512}};
    bool gemma = strcmp(architecture, "gemma3") == 0;
    size_t n_norms = gemma ? PD_COUNT(norms) : 3, n_keys = gemma ? PD_COUNT(keys) : 5;
    static const char *const matrices[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up",
        "ffn_down"};
    float (*layer)[SCRIPT_WIDTH][SCRIPT_WIDTH] = calloc(SCRIPT_MATRICES, sizeof *layer);
    float ones[SCRIPT_WIDTH], (*embedding)[SCRIPT_WIDTH] = calloc(t->n, sizeof *embedding),
        (*output)[SCRIPT_WIDTH] = calloc(t->n, sizeof *output);
    struct pd_gguf_writer *w;
    char name[64];
    assert_true(n_steps + 2 * t->n_turns <= SCRIPT_MOST);
    for (size_t i = 0; i < SCRIPT_WIDTH; i++) ones[i] = 1;
    for (size_t i = 0; i < n_steps; i++) {
        embedding[script_id(t, steps[i].from)][i] = 1;
        output[script_id(t, steps[i].to)][i] = 4;
    }
    for (size_t i = 0; i < t->n_turns; i++) script_turn(layer, t, i, embedding, output);
    t->architecture = architecture;
    t->prefix = 0;
    assert_int_equal(pd_gguf_writer_open(&w, path), PERIDOT_OK);
    tiny_put(w, t);
    for (size_t i = 0; i < n_keys; i++) script_key(w, architecture, keys[i].key, keys[i].value);
    snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", architecture);
    pd_gguf_writer_add_f32(w, name, 1e-6f);
    script_tensor(w, "token_embd.weight", t->n);
    script_tensor(w, "output.weight", t->n);
    for (size_t i = 0; i < n_norms; i++) {
        snprintf(name, sizeof name, "%s.weight", norms[i]);
        script_tensor(w, name, 0);
    }
    for (size_t i = 0; i < PD_COUNT(matrices); i++) {
        snprintf(name, sizeof name, "blk.0.%s.weight", matrices[i]);
        script_tensor(w, name, SCRIPT_WIDTH);
    }
    assert_int_equal(pd_gguf_writer_begin(w), PERIDOT_OK);
    script_data(w, embedding[0], t->n * SCRIPT_WIDTH);
    script_data(w, output[0], t->n * SCRIPT_WIDTH);
    for (size_t i = 0; i < n_norms; i++) script_data(w, ones, SCRIPT_WIDTH);
    for (size_t i = 0; i < PD_COUNT(matrices); i++) script_data(w, layer[i][0], SCRIPT_WIDTH * SCRIPT_WIDTH);
    assert_int_equal(pd_gguf_writer_commit(w), PERIDOT_OK);
    free(layer);
    free(embedding);
    free(output);
}

static inline void script_write(const char *path, struct tiny *t, const struct script_step *steps, size_t n_steps)
{
    script_write_as(path, t, "llama", steps, n_steps);
}

/* ---- a model that thinks ---- */

/* What the model's turn is: a thought, whose first line is its name, and an answer. The thought ends by itself where
 * `ends`. */
#define SCRIPT_THOUGHT "us user"
#define SCRIPT_ANSWER "hello model"

static inline void script_write_thinker(const char *path, bool ends)
{
    const struct script_step steps[] = {{"\n", "<|channel>"}, {"<|channel>", "thought\n"}, {"thought\n", "us"},
        {"us", "\u2581user"}, {"\u2581user", ends ? "<channel|>" : "us"}, {"<channel|>", "hello"},
        {"hello", "\u2581model"}, {"\u2581model", "<turn|>"}};
    struct tiny t;
    tiny_make_gemma4(&t);
    tiny_add(&t, "thought\n", -1000, 1);
    tiny_add(&t, "\u2581user", -1000, 1);
    tiny_add(&t, "\u2581model", -1000, 1);
    t.name = "thinker";
    t.jinja = "<|turn>";
    script_write(path, &t, steps, PD_COUNT(steps));
}

/* ---- a model that fills in the middle ---- */

/* Which ends at a file separator. */
static inline void script_write_filler(const char *path)
{
    static const char *const marks[] = {"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_separator|>",
        "<|repo_name|>", "<|file_sep|>"};
    const struct script_step steps[] = {{"<|fim_middle|>", "hello"}, {"hello", "\u2581model"},
        {"\u2581model", "<|file_separator|>"}, {"<|file_separator|>", "us"}, {"<|fim_suffix|>", "de"}, {"us", "us"},
        {"a", "\n"}, {"\n", "a"}};
    struct tiny t;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], -1000, 4);
    tiny_add(&t, "\u2581model", -1000, 1);
    t.name = "filler";
    script_write(path, &t, steps, PD_COUNT(steps));
}

/* ---- models that call a function ---- */

#define SCRIPT_ARGUMENTS "{\"a\": 2, \"b\": 40}"

/* They call add, and once they have its result they answer: the template ends in another token then. The first one's
 * template knows nothing of tools, and calls are plain text; where it sees (a Gemma 3) it writes images, too. */
static inline void script_write_caller(const char *path, bool sees)
{
    static const char *const images[] = {"<start_of_image>", "<image_soft_token>", "<end_of_image>"};
    static const char *const words[] = {"<tool_call>\n{\"name\":\u2581\"add\",",
        "\u2581\"arguments\":\u2581{\"a\":\u25812,", "\u2581\"b\":\u258140}}", "\n</tool_call>", "\u2581model"};
    const struct script_step steps[] = {{"a", words[0]}, {words[0], words[1]}, {words[1], words[2]},
        {words[2], words[3]}, {words[3], "<eos>"}, {"b", "hello"}, {"hello", "\u2581model"}, {"\u2581model", "<eos>"}};
    struct tiny t;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(words); i++) tiny_add(&t, words[i], -1000, 1);
    t.name = "caller";
    t.jinja = "{{ bos_token }}{{ hint }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
              "{{ 'b' if '<tool_response>' in messages[-1].content else 'a' }}";
    for (size_t i = 0; sees && i < PD_COUNT(images); i++) tiny_add(&t, images[i], -1000, 3);
    if (sees)
        t.jinja = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}"
                  "{% else %}{% for p in m.content %}{% if p.type == 'image' %}<start_of_image>{% else %}{{ p.text }}"
                  "{% endif %}{% endfor %}{% endif %}\n{% endfor %}{{ 'b' if messages[-1].content is not string or "
                  "'<tool_response>' in messages[-1].content else 'a' }}";
    script_write_as(path, &t, sees ? "gemma3" : "llama", steps, PD_COUNT(steps));
}

/* Writes a thought, text and a call byte by byte, so that most tokens end within a character; the text's last byte
 * comes with the head of the call. Its template shows thoughts of the past. */
static inline void script_write_cutter(const char *path)
{
    static const char head[] = ".<tool_call>\n{\"name\":\u2581\"add\",\u2581\"arguments\":\u2581{\"a\":\u2581\"",
        end[] = "\"}}\n</tool_call>";
    static const char *const said[] = {"a", "<think>", "<0xD0>", "<0xB6>", "</think>", "<0xF0>", "<0x9F>", "<0xA6>",
        "<0x8A>", head, "<0xC3>", "<0xA9>", "<0xE2>", "<0x82>", "<0xAC>", end, "<eos>"};
    struct script_step steps[PD_COUNT(said) - 1];
    struct tiny t;
    tiny_make(&t);
    tiny_add(&t, "<think>", -1000, 4);
    tiny_add(&t, "</think>", -1000, 4);
    tiny_add(&t, head, -1000, 1);
    tiny_add(&t, end, -1000, 1);
    for (size_t i = 0; i < PD_COUNT(steps); i++) steps[i] = (struct script_step){said[i], said[i + 1]};
    t.name = "cutter";
    t.jinja = "{{ bos_token }}{% for m in messages %}{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}"
              "{{ m.content }}{% endfor %}{% if enable_thinking %}{% endif %}a";
    script_write(path, &t, steps, PD_COUNT(steps));
}

/* The other one's writes the calls of Gemma 4, with control tokens. */
static inline void script_write_caller_gemma4(const char *path)
{
    static const char *const words[] = {"call:add{", "a:2,b:40}", "\u2581model"};
    static const char *const marks[] = {"<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|\"|>",
        "<tool_response|>"};
    const struct script_step steps[] = {{"a", "<|tool_call>"}, {"<|tool_call>", words[0]}, {words[0], words[1]},
        {words[1], "<tool_call|>"}, {"<tool_call|>", "<turn|>"}, {"b", "hello"}, {"hello", "\u2581model"},
        {"\u2581model", "<turn|>"}};
    struct tiny t;
    tiny_make_gemma4(&t);
    for (size_t i = 0; i < PD_COUNT(words); i++) tiny_add(&t, words[i], -1000, 1);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], -1000, 4);
    t.name = "caller-gemma4";
    t.jinja = "{{ bos_token }}{% if tools %}<|tool>{{ tools | tojson }}<tool|>{% endif %}"
              "{% for m in messages %}<|turn>{{ m.role }}\n{{ m.content }}"
              "{% for c in m.tool_calls %}<|tool_call>call:{{ c.function.name }}{% endfor %}<turn|>\n{% endfor %}"
              "{{ 'b' if messages[-1].role == 'tool' else 'a' }}";
    script_write(path, &t, steps, PD_COUNT(steps));
}

/* The others' formats of calls: what they say, and what of it are control tokens, as in the families' vocabularies; the
 * templates read tools and calls as the families' do. */
#define SCRIPT_END "\n{% endfor %}{{ 'b' if messages[-1].role == 'tool' else 'a' }}"
#define SCRIPT_TURN "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}" \
                    "{% for m in messages %}{{ m.role }}: {{ m.content }}"
#define SCRIPT_CALLS(before, after) \
    SCRIPT_TURN "{% for c in m.tool_calls %}" before "{{ c.function.name }}" after "{% endfor %}" SCRIPT_END
#define SCRIPT_LIST(begin) begin "[{\"name\":\u2581\"add\",", "\u2581\"arguments\":\u2581{\"a\":\u25812,", \
                    "\u2581\"b\":\u258140}}", "]"
static const struct script_caller {
    const char *name, *jinja, *said[7], *marks[4];
} script_callers[] = {
    {"mistral", SCRIPT_CALLS("[TOOL_CALLS]", "[ARGS]{{ c.function.arguments | tojson }}"),
     {"[TOOL_CALLS]", "add", "[ARGS]", "{\"a\":\u25812,", "\u2581\"b\":\u258140}"}, {"[TOOL_CALLS]", "[ARGS]"}},
    {"mistral-v3", SCRIPT_CALLS("[TOOL_CALLS]{% if c.id|length != 9 %}{{ raise_exception('nine') }}{% endif %}", ""),
     {"[TOOL_CALLS]", SCRIPT_LIST("\u2581")}, {"[TOOL_CALLS]"}},
    {"granite", "<|tool_call|> {{ documents }}" SCRIPT_TURN SCRIPT_END, {"<|tool_call|>", SCRIPT_LIST("")},
     {"<|tool_call|>"}},
    {"phi4", "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
             "{% if 'tools' in message %}<|tool|>{{ message['tools'] }}<|/tool|>{% endif %}" SCRIPT_END,
     {"<|tool_call|>", SCRIPT_LIST(""), "<|/tool_call|>"},
     {"<|tool_call|>", "<|/tool_call|>", "<|tool|>", "<|/tool|>"}},
    {"olmo", SCRIPT_CALLS("<function_calls>", "()</function_calls>"),
     {"<function_calls>", "add(a=2,", "\u2581b=40)", "</function_calls>"}, {"<function_calls>", "</function_calls>"}},
    {"hermes", SCRIPT_CALLS("<tool_call>{\"name\": ", "\"arguments\": </tool_call>"),
     {"<tool_call>", "\n{\"name\":\u2581\"add\",", "\u2581\"arguments\":\u2581{\"a\":\u25812,",
      "\u2581\"b\":\u258140}}", "\n", "</tool_call>"}, {"<tool_call>", "</tool_call>"}},
};

static inline void script_add(struct tiny *t, const char *piece, int32_t type)
{
    for (uint64_t i = 0; i < t->n; i++)
        if (t->text[i].size == strlen(piece) && memcmp(t->text[i].data, piece, t->text[i].size) == 0) return;
    tiny_add(t, piece, -1000, type);
}

static inline void script_write_caller_of(const char *path, const struct script_caller *c)
{
    struct script_step steps[PD_COUNT(c->said) + 4] = {{"b", "hello"}, {"hello", "\u2581model"},
        {"\u2581model", "<eos>"}};
    struct tiny t;
    size_t n = 3;
    const char *last = "a";
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(c->marks) && c->marks[i]; i++) script_add(&t, c->marks[i], 3);
    script_add(&t, "\u2581model", 1);
    for (size_t i = 0; i < PD_COUNT(c->said) && c->said[i]; i++) {
        script_add(&t, c->said[i], 1);
        steps[n++] = (struct script_step){last, c->said[i]};
        last = c->said[i];
    }
    steps[n++] = (struct script_step){last, "<eos>"};
    t.name = c->name;
    t.jinja = c->jinja;
    script_write(path, &t, steps, n);
}

/* gpt-oss's: thinks "hmm" and answers, or where it is given tools thinks "well" and calls add; with the result, which
 * has 42 in it, answers at once. The template is the published one without descriptions of tools. Calls name the
 * function before the channel, as that template does, or after it. */
static inline void script_write_harmony(const char *path, bool name_first)
{
    static const char *const marks[] = {"<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|return|>", "<|call|>",
        "<|constrain|>"};
    static const char *const words[] = {"assistant", "analysis", "commentary", "final", "json", "namespace", "42"};
    static const char *const said[] = {"hmm", "well", "\u2581to=functions.", "add", "{\"a\":\u25812,",
        "\u2581\"b\":\u258140}", "\u2581model"};
    const struct script_step steps[] = {{"assistant", "<|channel|>"}, {"<|channel|>", "analysis"},
        {"analysis", "<|message|>"}, {"<|message|>", "hmm"}, {"hmm", "<|end|>"}, {"<|end|>", "<|start|>"},
        {"<|start|>", "assistant"}, {"final", "<|message|>"}, {"hello", "\u2581model"}, {"\u2581model", "<|return|>"},
        {"well", "<|end|>"}, {"commentary", name_first ? "\u2581" : said[2]}, {said[2], "add"},
        {"add", name_first ? "<|channel|>" : "\u2581"}, {"\u2581", name_first ? "json" : "<|constrain|>"},
        {"<|constrain|>", "json"}, {"json", "<|message|>"}, {said[4], said[5]}, {said[5], "<|call|>"}};
    const struct script_turn turns[] = {{"<|channel|>", "final", "hmm"}, {"<|message|>", "hello", "hmm"},
        {"<|message|>", "well", "namespace"}, {"<|channel|>", "commentary", "well"}, {"<|message|>", said[4], said[2]},
        {"<|channel|>", "final", "42"}, {"<|message|>", "hello", "42"},
        {"assistant", said[2], "well"}, {"assistant", "<|channel|>", "42"}};
    struct tiny t;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(marks); i++) tiny_add(&t, marks[i], -1000, 3);
    for (size_t i = 0; i < PD_COUNT(words); i++) tiny_add(&t, words[i], -1000, 4);
    for (size_t i = 0; i < PD_COUNT(said); i++) tiny_add(&t, said[i], -1000, 1);
    t.turns = turns;
    t.n_turns = PD_COUNT(turns) - (name_first ? 0 : 2);
    t.name = "harmony";
    t.jinja = "{% macro build() %}{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}"
        "{% endif %}{{ 'Reasoning: ' + reasoning_effort + '\n\n' }}{% endmacro %}<|start|>system<|message|>"
        "{{ build() }}# Valid channels: analysis, commentary, final.{% if tools %}\nCalls to these tools must go to "
        "the commentary channel: 'functions'.{% endif %}<|end|>"
        "{% set told = messages[0].role in ['developer', 'system'] %}"
        "{% if told or tools %}<|start|>developer<|message|>"
        "{% if told %}# Instructions\n\n{{ messages[0].content }}\n\n{% endif %}"
        "{% if tools %}namespace functions {{ tools | tojson }}{% endif %}<|end|>{% endif %}"
        "{% set turns = messages[1:] if told else messages %}{% set last = namespace(name=none) %}"
        "{% for message in turns %}{% if message.role == 'assistant' %}{% if 'tool_calls' in message %}"
        "{% set later = namespace(found=false) %}{% for m in turns[loop.index:] %}"
        "{% if m.role == 'assistant' and 'tool_calls' not in m %}{% set later.found = true %}{% endif %}{% endfor %}"
        "{# We assume max 1 tool call per message #}{% set call = message.tool_calls[0].function %}"
        "{% if message.content and message.thinking %}{{ raise_exception('Cannot pass both content and thinking') }}"
        "{% elif (message.content or message.thinking) and not later.found %}<|start|>assistant<|channel|>analysis"
        "<|message|>{{ message.content or message.thinking }}<|end|>{% endif %}<|start|>assistant to=functions."
        "{{ call.name }}{{ '<|channel|>commentary ' }}json<|message|>{{ call.arguments | tojson }}{{ '<|call|>' }}"
        "{% set last.name = call.name %}{% else %}<|start|>assistant<|channel|>final<|message|>{{ message.content }}"
        "<|end|>{% set last.name = none %}{% endif %}{% elif message.role == 'tool' %}{% if last.name is none %}"
        "{{ raise_exception('no call') }}{% endif %}<|start|>functions.{{ last.name }} to=assistant<|channel|>"
        "commentary<|message|>{{ message.content | tojson }}<|end|>{% elif message.role == 'user' %}<|start|>user"
        "<|message|>{{ message.content }}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}";
    script_write(path, &t, steps, PD_COUNT(steps));
}

/* ---- a model that does an agent's task ---- */

#define SCRIPT_ACT(call) "<tool_call>\n{" call "}\n</tool_call>"

/* It reads note.txt, puts "new" in the place of "old", and says so, by the tools of Claude Code where there are such,
 * else by Codex's. Its template counts the results of this task; of the tools it tells the names alone, which leaves a
 * third of the prompt. */
static inline void script_write_agent(const char *path)
{
    static const char *const said[][2] = {
        {"<|read|>", SCRIPT_ACT("\"name\":\u2581\"Read\",\u2581\"arguments\":\u2581{\"file_path\":\u2581"
                                "\"note.txt\"}")},
        {"<|edit|>", SCRIPT_ACT("\"name\":\u2581\"Edit\",\u2581\"arguments\":\u2581{\"file_path\":\u2581\"note.txt\","
                                "\u2581\"old_string\":\u2581\"old\",\u2581\"new_string\":\u2581\"new\"}")},
        {"<|cat|>", SCRIPT_ACT("\"name\":\u2581\"exec_command\",\u2581\"arguments\":\u2581{\"cmd\":\u2581"
                               "\"cat\u2581note.txt\"}")},
        {"<|patch|>", SCRIPT_ACT("\"name\":\u2581\"apply_patch\",\u2581\"arguments\":\u2581{\"input\":\u2581"
                                 "\"***\u2581Begin\u2581Patch\\n***\u2581Update\u2581File:\u2581note.txt\\n"
                                 "@@\\n-old\\n+new\\n***\u2581End\u2581Patch\"}")},
        {"<|say|>", "It\u2581is\u2581done."}};
    struct script_step steps[2 * PD_COUNT(said)];
    struct tiny t;
    tiny_make(&t);
    for (size_t i = 0; i < PD_COUNT(said); i++) {
        tiny_add(&t, said[i][0], -1000, 3);
        tiny_add(&t, said[i][1], -1000, 1);
        steps[2 * i] = (struct script_step){said[i][0], said[i][1]};
        steps[2 * i + 1] = (struct script_step){said[i][1], "<eos>"};
    }
    t.name = "agent";
    t.ctx = 65536;
    t.jinja = "{{ bos_token }}{% set s = namespace(n=0, claude=false) %}"
              "{% for t in tools or [] %}{% if t.function.name == 'Edit' %}{% set s.claude = true %}{% endif %}"
              "{{ t.function.name }} {% endfor %}\n{% for m in messages %}{{ m.role }}: {{ m.content }}"
              "{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
              "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}\n"
              "{% set s.n = s.n + 1 if m.role == 'tool' else 0 if m.role == 'user' else s.n %}{% endfor %}assistant: "
              "{% if not tools or s.n > 1 %}<|say|>{% elif s.claude %}{{ '<|edit|>' if s.n else '<|read|>' }}"
              "{% else %}{{ '<|patch|>' if s.n else '<|cat|>' }}{% endif %}";
    script_write_as(path, &t, "gemma3", steps, PD_COUNT(steps));
}

#endif
