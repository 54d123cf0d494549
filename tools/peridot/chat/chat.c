/* peridot chat: turns of conversation, whose cache is kept from turn to turn. */
#define _POSIX_C_SOURCE 200809L
#include "chat.h"
#include "chat_.h"
#include "../console/console.h"
#include "../cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_SECONDS 10   /* that a Ctrl-C has to stop a reply, before another one ends the program */

static const struct cmd_option options[] = {
    CMD_MODEL_OPTION,
    CMD_DEVICE_OPTIONS,
    CMD_LORA_OPTION,
    CMD_KERNEL_OPTION,
    {.name = "system", .metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct cmd_chat_args, system),
     .help = "The system prompt: what the model is told before the conversation."},
    {.name = "load", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(struct cmd_chat_args, load),
     .help = "Go on with the conversation in this file, as /save writes it: JSON messages."},
    CMD_TOOLS_OPTION(struct cmd_chat_args),
    CMD_CHAT_LENGTH_OPTION,
    CMD_CHAT_FULL_OPTION,
    CMD_THINK_OPTION(struct cmd_chat_args),
    CMD_SAMPLING_OPTIONS(struct cmd_chat_args, sampling),
    CMD_SCHEMA_OPTION(struct cmd_chat_args, sampling),
    CMD_TEMPLATE_OPTION(struct cmd_chat_args),
    CMD_CTX_OPTION(struct cmd_chat_args),
    CMD_CHUNK_OPTION(struct cmd_chat_args),
    CMD_KV_OPTION(struct cmd_chat_args),
    CMD_DRAFT_OPTIONS(struct cmd_chat_args, draft),
    CMD_VISION_OPTION,
};

/* ---- messages ---- */

static peridot_status take_message(struct cmd_chat *chat, const char *text)
{
    if (!text[strspn(text, " \t\r\n")]) return PERIDOT_OK;
    bool sees = peridot_model_get_info(chat->model)->image_rows != 0;
    if (sees && cmd_chat_is_pictures(text)) return cmd_chat_attach(chat, text);
    return text[0] == '/' ? cmd_chat_command(chat, text) : cmd_chat_answer(chat, text);
}

/* Failures are told, and the conversation goes on. */
static peridot_status talk(struct cmd_chat *chat)
{
    bool interrupted = false;
    while (!chat->leaves) {
        const char *text;
        enum cmd_editor_state state = cmd_editor_read(&text, chat->editor, NULL);
        if (state == CMD_EDITOR_END) break;
        if (state == CMD_EDITOR_MESSAGE) {
            peridot_status status = take_message(chat, text);
            if (chat->leaves || cmd_interrupted()) return status;
            cmd_exit(status);
        } else if (!cmd_interrupt_clear()) {
            return pd_fail(PERIDOT_CANCELLED, "stopped");
        } else if (state == CMD_EDITOR_INTERRUPTED) {
            if (interrupted) break;
            cmd_say("Ctrl-C once more, Ctrl-D or /exit leaves\n");
        }
        interrupted = state == CMD_EDITOR_INTERRUPTED;
    }
    return PERIDOT_OK;
}

static peridot_status take_line(struct cmd_chat *chat, const char *line, size_t size)
{
    if (memchr(line, 0, size)) return pd_fail(PERIDOT_ERROR_ARGUMENT, "standard input: a line has a zero byte in it");
    char *text = malloc(size + 1);
    if (!text) return pd_fail_alloc(size, "line");
    memcpy(text, line, size);
    text[size] = 0;
    peridot_status status = take_message(chat, text);
    free(text);
    return status;
}

/* The first failure is the result; a signal ends it. */
static int read_lines(struct cmd_chat *chat)
{
    struct cmd_lines lines = {0};
    enum cmd_lines_state state = CMD_LINES_ONE;
    int result = CMD_OK;
    while (!chat->leaves && state != CMD_LINES_END && !cmd_interrupted()) {
        const char *line;
        size_t size;
        peridot_status status = cmd_lines_next(&state, &line, &size, &lines, true);
        if (status != PERIDOT_OK) chat->leaves = true;
        else if (state == CMD_LINES_ONE) status = take_line(chat, line, size);
        if (cmd_exit(status) != CMD_OK) result = CMD_FAILURE;
    }
    free(lines.data);
    return chat->refused ? CMD_FAILURE : result;
}

/* ---- beginning and end ---- */

static peridot_status choose_template(struct cmd_chat *chat)
{
    if (!peridot_model_vocab(chat->model)) return PERIDOT_ERROR_UNSUPPORTED;
    return cmd_template_choose(&chat->encoding.template_name, chat->model, &chat->args.model,
                               chat->args.template_name, "plain");
}

/* The model, and all that is made for it. */
static peridot_status model_begin(struct cmd_chat *chat)
{
    const struct cmd_chat_args *args = &chat->args;
    PD_TRY(cmd_model_open(&chat->model, &args->model));
    PD_TRY(choose_template(chat));
    cmd_sampling_forget(&chat->args.sampling.p, &chat->plain, args->sampling.given);
    cmd_sampling_recommend(&chat->args.sampling.p, chat->model, args->sampling.given);
    cmd_sampling_make(&chat->sampling, chat->bias, chat->command, &args->sampling);   /* which succeeded before */
    PD_TRY(cmd_grammar_open(&chat->grammar, &args->sampling, chat->model));
    chat->sampling.grammar = chat->args.sampling.p.grammar = chat->grammar;   /* /set makes the former of the latter */
    PD_TRY(cmd_model_tune_once(chat->model));
    PD_TRY(cmd_chat_open_session(chat));
    PD_TRY(cmd_chat_take_tools(chat));
    cmd_chat_take_length(chat);
    return PERIDOT_OK;
}

static void model_end(struct cmd_chat *chat)
{
    cmd_draft_close(&chat->draft);
    peridot_session_free(chat->session);
    peridot_tools_free(chat->tools);
    peridot_grammar_free(chat->grammar);
    peridot_model_close(chat->model);
    chat->session = NULL, chat->tools = NULL, chat->grammar = NULL, chat->model = NULL;
}

/* A model that does not think is no reason not to talk with it. */
static peridot_status model_change(struct cmd_chat *chat)
{
    PD_TRY(model_begin(chat));
    if (cmd_chat_take_think(chat) == PERIDOT_OK) return PERIDOT_OK;
    cmd_say("peridot: %s: it does not think\n", peridot_last_error());
    chat->args.think = PERIDOT_THINK_OFF;
    return cmd_chat_take_think(chat);
}

/* There may not be memory for both. */
peridot_status cmd_chat_change_model(struct cmd_chat *chat, const char *name)
{
    struct cmd_model_args before = chat->args.model, after = before;
    const struct cmd_conversation *c = &chat->conversation;
    size_t n_pictures = c->attached.n;
    for (size_t i = 0; i < c->n; i++) n_pictures += c->messages[i].pictures.n;
    if (n_pictures)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the pictures in the conversation are read for the model that is open: "
                       "/reset leaves them out");
    after.path = name, after.vision = NULL, after.adapters.n = 0;   /* which are another model's */
    PD_TRY(cmd_model_need_head(&after, CMD_HEAD_LANGUAGE, "chat"));
    model_end(chat);
    cmd_conversation_forget_ids(&chat->conversation);
    chat->args.model = after;
    peridot_status status = model_change(chat);
    if (status == PERIDOT_OK) return status;
    cmd_exit(status);
    cmd_say("the model of before is opened again\n");
    model_end(chat);
    chat->args.model = before;
    chat->refused = true;
    status = model_change(chat);
    chat->leaves = status != PERIDOT_OK;
    return status;
}

static peridot_status chat_begin(struct cmd_chat *chat)
{
    const struct cmd_chat_args *args = &chat->args;
    PD_TRY(cmd_model_need_head(&args->model, CMD_HEAD_LANGUAGE, "chat"));
    if (args->tools.n) PD_TRY(cmd_toolbox_open(&chat->toolbox, args->tools.at, args->tools.n));
    chat->plain = args->sampling.p;
    PD_TRY(model_begin(chat));
    if (args->load) PD_TRY(cmd_conversation_load(&chat->conversation, args->load, &chat->encoding));
    if (args->system) PD_TRY(cmd_conversation_set_system(&chat->conversation, args->system));
    struct cmd_notice message;
    if (args->sampling.verbose && cmd_notice_begin(&message)) {
        cmd_sampling_print(message.file, &chat->sampling);
        cmd_notice_end(&message);
    }
    return PERIDOT_OK;
}

static void chat_end(struct cmd_chat *chat)
{
    cmd_editor_close(chat->editor);
    cmd_conversation_free(&chat->conversation);
    cmd_thought_free(&chat->thought);
    model_end(chat);
    cmd_toolbox_close(chat->toolbox);
    for (size_t i = 0; i < chat->kept.n; i++) free((char *)(uintptr_t)chat->kept.at[i]);
}

static int run_chat(const struct cmd_command *command, const void *arguments)
{
    static struct cmd_chat chat;
    chat.args = *(const struct cmd_chat_args *)arguments;
    chat.command = command;
    if (chat.args.tools.n && chat.args.sampling.schema)
        return cmd_usage(command, "--json-schema is for replies without --tools");
    int result = cmd_sampling_make(&chat.sampling, chat.bias, command, &chat.args.sampling);
    if (result != CMD_OK) return result;
    cmd_interrupt_watch();
    cmd_interrupt_hurry(1);
    peridot_status status = chat_begin(&chat);
    if (status == PERIDOT_OK && cmd_chat_take_think(&chat) != PERIDOT_OK) {
        result = cmd_usage(command, "%s", peridot_last_error());
        chat_end(&chat);
        return result;
    }
    if (status == PERIDOT_OK && isatty(STDIN_FILENO)) {
        status = cmd_editor_open(&chat.editor, cmd_chat_complete, &chat);
        cmd_interrupt_patience(PATIENCE_SECONDS);
        cmd_say("%s, %" PRIu32 " positions of context; /help lists the commands, Ctrl-D leaves\n",
                peridot_model_get_info(chat.model)->name, chat.encoding.ctx);
        if (status == PERIDOT_OK) status = talk(&chat);
    } else if (status == PERIDOT_OK) {
        result = read_lines(&chat);
    }
    chat_end(&chat);
    return status == PERIDOT_OK ? result : cmd_exit(status);
}

const struct cmd_command cmd_chat = {
    .name = "chat",
    .summary = "talk with a model, turn by turn",
    .description =
        "A conversation in the terminal: what is typed goes to the model as a turn of its user, and the reply is "
        "written as it is made. A line that ends in \\ goes on in the next one, and so does everything between \"\"\" "
        "and \"\"\"; pasted text stays one message. The arrows and Ctrl-R find what was typed before, also in earlier "
        "conversations ($XDG_STATE_HOME/peridot/history, or ~/.local/state/peridot/history).\n\n"
        "Lines that begin with / are commands: /help lists them. /undo, /retry and /edit change the last turn, /save "
        "and /load keep conversations as JSON messages, /set changes how tokens are chosen, /model the model. Tab "
        "completes commands and files.\n\n"
        "What the model thinks before it answers (--think) is one line, which says how long it was: /thought shows it. "
        "It is no part of the conversation afterwards.\n\n"
        "A model that sees is shown pictures by /image FILE, or by dragging files into the terminal: they go with the "
        "next message. It also sees images in the results of MCP servers' tools.\n\n"
        "With --tools the model may call tools: programs, which get the arguments as a JSON object on standard input "
        "and write the result to standard output (what they start ends with them), and servers of the Model Context "
        "Protocol (MCP). The file is what other programs keep for such servers, {\"mcpServers\": {NAME: "
        "{\"command\": PROGRAM, \"args\": [...], \"env\": {...}} or {\"url\": URL, \"headers\": {...}}}}, and beside "
        "it may name programs: {\"tools\": [{\"name\": NAME, \"description\": TEXT, \"parameters\": JSON-SCHEMA, "
        "\"command\": [PROGRAM, ARG, ...]}]}. Each may have \"timeout\" (seconds, 30), \"max_output\" (bytes, 65536) "
        "and \"allow\". Before each call the conversation shows the arguments and asks: y calls, n does not, a calls "
        "this tool without a question from now on; \"allow\": true in the file, or for a server the list of its tools "
        "that may be called, does the same from the start. Where there is no terminal to ask at, other calls are "
        "refused. /tools lists the tools.\n\n"
        "Ctrl-C stops the reply and keeps what was written in the conversation. At an empty prompt two of them, or "
        "Ctrl-D, leave.\n\n"
        "Each turn reads only what is new, as the key-value cache keeps the turns before. A reply stops "
        "where the next turn still fits, unless -n says how long it may be. When the context is full the oldest turns "
        "are left out, each message with its reply, and a line says so (--full); the system prompt stays, and /save "
        "has all turns. A model without a chat template gets "
        "the messages as they are, with blank lines between them.\n\n"
        "Where standard input is not a terminal, each of its lines is a message or a command, and standard output gets "
        "the replies, each ended by a newline. The exit status is then 1 if any of them failed.",
    .examples = "peridot chat -m gemma-2-2b-it.gguf\n"
                "peridot chat -m gemma-2-2b-it.gguf --system \"Answer in one sentence.\"\n"
                "peridot chat -m gemma-2-2b-it.gguf --load plans.json\n"
                "peridot chat -m gemma-4-e4b-it --tools tools.json --tools http://127.0.0.1:8000/mcp\n"
                "peridot chat -m gemma-2-2b-it.gguf < questions.txt > answers.txt",
    CMD_ARGUMENTS(options, struct cmd_chat_args),
    .run = run_chat,
};
