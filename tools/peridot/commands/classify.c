/* peridot classify: labels of whole texts by a sequence-classification model. */
#include "../base/base.h"
#include "../cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct classify_args {
    struct cmd_inputs_args inputs;
    bool all, json;
};

static const struct cmd_option options[] = {
    CMD_INPUTS_OPTIONS(CMD_MODEL_OPTION_OR("It must have a head that labels texts, which the demo model has not.")),
    {.name = "all", .kind = CMD_FLAG, .offset = offsetof(struct classify_args, all),
     .help = "Write all labels of a text, likeliest first, rather than the likeliest."},
    {.name = "json", .kind = CMD_FLAG, .offset = offsetof(struct classify_args, json),
     .help = "Write an array of objects with label and probability (or score) for each text, on a line."},
};

static void print_scores(const peridot_model *model, const struct cmd_score *scores, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *label = cmd_label(model, scores[i].label);
        if (i) fputc('\t', stdout);
        cmd_print_column(stdout, label, strlen(label));
        printf("\t%s", cmd_score_text(model, scores[i].value, false));
    }
    fputc('\n', stdout);
}

static void classify_print_json(const peridot_model *model, const struct cmd_score *scores, size_t n)
{
    fputc('[', stdout);
    for (size_t i = 0; i < n; i++) {
        const char *label = cmd_label(model, scores[i].label);
        fputs(i ? ", {\"label\": " : "{\"label\": ", stdout);
        cmd_json_string(stdout, label, strlen(label));
        printf(", \"%s\": %s}", cmd_score_name(model), cmd_score_text(model, scores[i].value, true));
    }
    fputs("]\n", stdout);
}

/* The head reads a text's last token. */
static peridot_status classify(void *user, const struct cmd_input *input, const struct cmd_input_row *row)
{
    const struct classify_args *args = user;
    struct cmd_score *scores = malloc(row->n * sizeof *scores);
    if (!scores) return pd_fail_alloc(row->n * sizeof *scores, "scores");
    cmd_scores(scores, input->model, row->at, row->n);
    /* none of a regression's results is the likeliest */
    bool all = args->all || peridot_model_get_info(input->model)->problem == PERIDOT_PROBLEM_REGRESSION;
    (args->json ? classify_print_json : print_scores)(input->model, scores, all ? row->n : 1);
    free(scores);
    return PERIDOT_OK;
}

static int run_classify(const struct cmd_command *command, const void *arguments)
{
    struct classify_args args = *(const struct classify_args *)arguments;
    struct cmd_input_task task = {.heads = CMD_HEAD_SEQUENCE, .command = command->name, .rows = CMD_ROWS_LAST,
                                  .take = classify, .user = &args};
    return cmd_exit(cmd_inputs_run(&args.inputs, &task));
}

const struct cmd_command cmd_classify = {
    .name = "classify",
    .summary = "label texts",
    .description =
        "Writes a line for each text: its likeliest label and that label's probability, with a tab between them (in "
        "labels, tabs, line breaks and backslashes are \\t, \\n, \\r, \\\\, and other control characters \\x1b). The "
        "model is one with a sequence-classification head (a Hugging Face directory of a "
        "...ForSequenceClassification), which scores labels from the state at the text's last token; probabilities "
        "are the softmax of the scores, or their sigmoids where config.json says problem_type "
        "multi_label_classification. A head with one output, and one of problem_type regression, gives scores, which "
        "are written as they are, all of them.\n\n"
        "Texts are plain: control tokens in them have no meaning. The token that begins a text is added where the "
        "tokenizer says so.",
    .examples = "peridot classify -m gemma-2-2b-sentiment \"What a day!\"\n"
                "peridot classify -m gemma-2-2b-sentiment --all --json < reviews.txt",
    CMD_ARGUMENTS(options, struct classify_args),
    .run = run_classify,
};

/* ---- tag ---- */

/* peridot tag: a label for every token of a text by a token-classification model. */

struct tag_args {
    struct cmd_inputs_args inputs;
    bool json;
};

static const struct cmd_option tag_options[] = {
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
    if (!t->scores) return pd_fail_alloc(n_labels * sizeof *t->scores, "scores");
    peridot_free(t->text);
    t->text = NULL;
    t->input = input;
    t->begin = t->n_written = 0;
    PD_TRY(peridot_decode(&t->text, &size, peridot_model_vocab(input->model), input->ids, input->n));
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
    if (row->is_first) PD_TRY(begin_text(t, input, row->n));
    PD_TRY(peridot_decode(&upto, &end, peridot_model_vocab(input->model), input->ids, row->pos + 1));
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
    CMD_ARGUMENTS(tag_options, struct tag_args),
    .run = run_tag,
};
