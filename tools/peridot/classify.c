/* peridot classify: labels of whole texts by a sequence-classification model. */
#include "inputs.h"
#include "json.h"
#include "text.h"

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

static void print_json(const peridot_model *model, const struct cmd_score *scores, size_t n)
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
    if (!scores) return cmd_fail_alloc(row->n * sizeof *scores, "scores");
    cmd_scores(scores, input->model, row->at, row->n);
    /* none of a regression's results is the likeliest */
    bool all = args->all || peridot_model_get_info(input->model)->problem == PERIDOT_PROBLEM_REGRESSION;
    (args->json ? print_json : print_scores)(input->model, scores, all ? row->n : 1);
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
