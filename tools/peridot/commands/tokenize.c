/* peridot tokenize: text to token ids and back, with a tokenizer alone: no weights, no device. */
#define _POSIX_C_SOURCE 200809L
#include "../cli/cli.h"
#include "../console/console.h"
#include "../base/base.h"

#include <stdlib.h>
#include <string.h>

struct tokenize_args {
    struct cmd_model_args model;
    const char *text;
    bool special, bos, lines, decode;
};

static const struct cmd_option options[] = {
    {.letter = 'm', .name = "model", .metavar = "MODEL", .kind = CMD_TEXT,
     .offset = offsetof(struct tokenize_args, model.path),
     .help = "A tokenizer.model, a tokenizer.json, a directory with one, or a GGUF file, which needs no tensors. "
             "Without it, the demo model."},
    {.name = "special", .kind = CMD_FLAG, .offset = offsetof(struct tokenize_args, special),
     .help = "Control tokens in the text, as <end_of_turn>, become their ids. Without it they are plain text."},
    {.name = "bos", .kind = CMD_FLAG, .offset = offsetof(struct tokenize_args, bos),
     .help = "Begin with the token that begins every text."},
    {.name = "lines", .kind = CMD_FLAG, .offset = offsetof(struct tokenize_args, lines),
     .help = "Take each line of the input by itself, without its newline, and write one line for it."},
    {.name = "decode", .kind = CMD_FLAG, .offset = offsetof(struct tokenize_args, decode),
     .help = "Decode: read ids, with commas or white space between them, and write their text. Control tokens have "
             "none."},
    {.metavar = "TEXT", .kind = CMD_TEXT, .offset = offsetof(struct tokenize_args, text),
     .help = "The text, or the ids, instead of standard input. - is standard input."},
};

static peridot_status tokenize_encode_text(const peridot_vocab *vocab, const struct tokenize_args *args,
                                           const char *text, size_t size)
{
    unsigned flags = (args->bos ? PERIDOT_ENCODE_BOS : 0u) | (args->special ? PERIDOT_ENCODE_SPECIAL : 0u);
    int32_t *ids;
    size_t n;
    PD_TRY(peridot_encode(&ids, &n, vocab, text, size, flags));
    cmd_ids_print(stdout, ids, n);
    fputc('\n', stdout);
    peridot_free(ids);
    return PERIDOT_OK;
}

static peridot_status tokenize_decode(const peridot_vocab *vocab, const struct tokenize_args *args, const char *text,
                                      size_t size)
{
    int32_t *ids;
    size_t n, n_bytes = 0;
    char *bytes = NULL;
    PD_TRY(cmd_ids_parse(&ids, &n, text, size, args->text ? "TEXT" : "standard input"));
    peridot_status status = peridot_decode(&bytes, &n_bytes, vocab, ids, n);
    free(ids);
    if (status != PERIDOT_OK) return status;
    fwrite(bytes, 1, n_bytes, stdout);
    if (args->lines) fputc('\n', stdout);
    peridot_free(bytes);
    return PERIDOT_OK;
}

static peridot_status convert(const peridot_vocab *vocab, const struct tokenize_args *args, const char *text,
                              size_t size)
{
    return args->decode ? tokenize_decode(vocab, args, text, size) : tokenize_encode_text(vocab, args, text, size);
}

static peridot_status convert_lines(const peridot_vocab *vocab, const struct tokenize_args *args)
{
    struct cmd_lines lines = {0};
    enum cmd_lines_state state;
    const char *text;
    size_t size;
    peridot_status status;
    while ((status = cmd_lines_next(&state, &text, &size, &lines, true)) == PERIDOT_OK && state == CMD_LINES_ONE
           && (status = convert(vocab, args, text, size)) == PERIDOT_OK && !ferror(stdout)) continue;
    free(lines.data);
    return status;
}

static peridot_status convert_all(const peridot_vocab *vocab, const struct tokenize_args *args)
{
    char *text;
    size_t size;
    PD_TRY(cmd_read_all(&text, &size, stdin, "standard input"));
    peridot_status status = convert(vocab, args, text, size);
    free(text);
    return status;
}

static peridot_status convert_given(const peridot_vocab *vocab, const struct tokenize_args *args)
{
    return convert(vocab, args, args->text, strlen(args->text));
}

static int run_tokenize(const struct cmd_command *command, const void *arguments)
{
    const struct tokenize_args *args = arguments;
    bool given = args->text && strcmp(args->text, "-") != 0;
    peridot_vocab *vocab = NULL;
    const char *path;
    if (given && args->lines) return cmd_usage(command, "--lines goes with standard input, not with a TEXT");
    peridot_status status = cmd_model_path(&path, args->model.path);
    if (status == PERIDOT_OK) status = peridot_vocab_open(&vocab, path);
    if (status == PERIDOT_OK) status = (given ? convert_given : args->lines ? convert_lines : convert_all)(vocab, args);
    peridot_vocab_close(vocab);
    return cmd_exit(status);
}

const struct cmd_command cmd_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids, or back",
    .description =
        "Reads standard input to its end, newline and all, or takes TEXT, and writes its token ids on one line, "
        "decimal, with commas between them: a line that --tokens of other commands takes.",
    .examples = "peridot tokenize \"Once upon a time\"\n"
                "printf 'Once upon a time' | peridot tokenize --bos\n"
                "peridot tokenize -m tokenizer.model --lines < sentences.txt\n"
                "echo 1,403,407 | peridot tokenize --decode",
    CMD_ARGUMENTS(options, struct tokenize_args),
    .run = run_tokenize,
};
