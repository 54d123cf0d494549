/* peridot tag: a label for every token of a text by a token-classification model. */
#include "inputs.h"
#include "json.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tag_args {
    struct cmd_inputs_args inputs;
    bool json;
};

static const struct cmd_option options[] = {
    CMD_INPUTS_OPTIONS(CMD_MODEL_OPTION_OR("It must have a head that labels tokens, which the demo model has not.")),
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct tag_args, json),
     .help = "Write an array of objects with begin, end, text, label and probability for each text, on a line."},
};

/* One text on its way out, token by token. */
struct tagging {
    const struct tag_args *args;
    const struct cmd_input *input;
    struct cmd_score *scores;  /* [labels] */
    char *text;                /* as the tokenizer reads it */
    size_t begin, n_written;   /* where the next token begins; tokens written so far */
};

static void print_token(struct tagging *t, size_t end)
{
    const char *label = cmd_label(t->input->model, t->scores[0].label);
    if (!t->args->json) {
        printf("%zu\t%zu\t", t->begin, end);
        cmd_print_column(stdout, t->text + t->begin, end - t->begin);
        fputc('\t', stdout);
        cmd_print_column(stdout, label, strlen(label));
        printf("\t%s\n", cmd_score_text(t->input->model, t->scores[0].value, false));
        return;
    }
    printf("%s{\"begin\": %zu, \"end\": %zu, \"text\": ", t->n_written ? ", " : "", t->begin, end);
    cmd_json_string(stdout, t->text + t->begin, end - t->begin);
    fputs(", \"label\": ", stdout);
    cmd_json_string(stdout, label, strlen(label));
    printf(", \"%s\": %s}", cmd_score_name(t->input->model), cmd_score_text(t->input->model, t->scores[0].value, true));
}

static peridot_status begin_text(struct tagging *t, const struct cmd_input *input, size_t n_labels)
{
    size_t size;
    if (!t->scores) t->scores = malloc(n_labels * sizeof *t->scores);
    if (!t->scores) return cmd_fail_alloc(n_labels * sizeof *t->scores, "scores");
    peridot_free(t->text);
    t->text = NULL;
    t->input = input;
    t->begin = t->n_written = 0;
    CMD_TRY(peridot_decode(&t->text, &size, peridot_model_vocab(input->model), input->ids, input->n));
    if (size != input->size || memcmp(t->text, input->text, size) != 0)
        fputs("the tokenizer reads this text otherwise than it is written; offsets are in what it reads\n", stderr);
    if (t->args->json) fputc('[', stdout);
    return PERIDOT_OK;
}

/* The token ends where the text of all ids up to it ends: pieces alone may read otherwise than in their place. */
static peridot_status tag(void *user, const struct cmd_input *input, const struct cmd_input_row *row)
{
    struct tagging *t = user;
    char *upto;
    size_t end;
    if (row->is_first) CMD_TRY(begin_text(t, input, row->n));
    CMD_TRY(peridot_decode(&upto, &end, peridot_model_vocab(input->model), input->ids, row->pos + 1));
    peridot_free(upto);
    cmd_scores(t->scores, input->model, row->at, row->n);
    if (end > t->begin) {      /* control tokens have no text to label */
        print_token(t, end);
        t->n_written++;
        t->begin = end;
    }
    if (row->is_last) fputs(t->args->json ? "]\n" : "\n", stdout);
    return PERIDOT_OK;
}

static int run_tag(const struct cmd_command *command, const void *arguments)
{
    const struct tag_args *args = arguments;
    struct tagging t = {.args = args};
    struct cmd_input_task task = {.heads = CMD_HEAD_TOKEN, .command = command->name, .take = tag, .user = &t};
    peridot_status status = cmd_inputs_run(&args->inputs, &task);
    peridot_free(t.text);
    free(t.scores);
    return cmd_exit(status);
}

const struct cmd_command cmd_tag = {
    .name = "tag",
    .summary = "label the tokens of texts",
    .description =
        "Writes a line for each token of a text: the bytes of the text where it begins and ends, what stands there "
        "(tabs, line breaks and backslashes as \\t, \\n, \\r, \\\\, other control characters as \\x1b), the likeliest "
        "label and its probability, with tabs between them; an empty line ends a text. The model is one with a "
        "token-classification head (a Hugging Face directory of a ...ForTokenClassification); probabilities are the "
        "softmax of its scores (with one output, the score is written).\n\n"
        "A token may be part of a character: its bytes then are no UTF-8, and --json writes them as U+FFFD.",
    .examples = "peridot tag -m gemma-2-2b-names \"Alice went to Paris.\"\n"
                "peridot tag -m gemma-2-2b-names --json < sentences.txt",
    CMD_ARGUMENTS(options, struct tag_args),
    .run = run_tag,
};
