/* What a model thinks before it answers: --think, and a thought on a terminal, which is one dimmed line while it is
 * written, and another when it has ended. */
#define _POSIX_C_SOURCE 200809L
#include "../base/base.h"
#include "../console/console.h"
#include "cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIM "\033[2m"
#define PLAIN "\033[0m"

static bool is_terminal(void) { return isatty(STDERR_FILENO) != 0; }

static void draw(struct cmd_thought *t)
{
    double now = pd_now();
    if (!is_terminal() || now - t->drawn_s < 0.1) return;
    fputs("\r" DIM "thinking ...", stderr);
    if (t->n) fprintf(stderr, " %" PRIu32 " token%s", t->n, PD_S(t->n));
    fputs(PLAIN "\033[K", stderr);
    fflush(stderr);
    t->drawn_s = now;
    t->drawn = true;
}

peridot_status cmd_thought_take(struct cmd_thought *t, int32_t token, const char *text, size_t size, bool quiet)
{
    PD_TRY(pd_buffer_add(&t->text, text, size));
    t->n += token >= 0 && t->open;
    t->open = true;
    if (!quiet) draw(t);
    return PERIDOT_OK;
}

static void dim(bool on)
{
    if (is_terminal()) fputs(on ? DIM : PLAIN, stderr);
}

void cmd_thought_end(struct cmd_thought *t, bool closed, const char *hint)
{
    if (!t->open) return;
    if (t->drawn) fputs("\r\033[K", stderr);
    t->open = t->drawn = false;
    t->n -= closed && t->n;
    dim(true);
    cmd_say("thought for %" PRIu32 " token%s%s\n", t->n, PD_S(t->n), hint);
    dim(false);
}

void cmd_thought_show(const struct cmd_thought *t)
{
    struct cmd_notice m;
    if (t->text.size == 0 || !cmd_notice_begin(&m)) return;
    cmd_write_text(m.file, t->text.data, t->text.size);
    if (t->text.data[t->text.size - 1] != '\n') fputc('\n', m.file);
    dim(true);
    cmd_notice_end(&m);
    dim(false);
}

void cmd_thought_free(struct cmd_thought *t)
{
    pd_buffer_free(&t->text);
    *t = (struct cmd_thought){0};
}

/* ---- template ---- */

/* Memory is what README says is the least, the file and a cache of 8192 positions, and a quarter more for what else a
 * session has. On a CPU only the smallest is as fast as people read. */
const char *cmd_chat_model(const peridot_device_info *device)
{
    static const struct {
        const char *name;
        double memory;
    } models[] = {{"bartowski/Mistral-Nemo-Instruct-2407-GGUF:Q4_K_M", 11.0e9},
                  {"bartowski/Qwen_Qwen3-8B-GGUF:Q4_K_M", 7.8e9},
                  {"bartowski/google_gemma-3-4b-it-GGUF:Q4_K_M", 3.9e9}};
    for (size_t i = 0; i < PD_COUNT(models) && device->type != PERIDOT_DEVICE_CPU; i++)
        if ((double)device->heap_budget >= models[i].memory) return models[i].name;
    return CMD_CHAT_MODEL;
}

/* What is used is not the template in the model's files. */
static void print_other(const peridot_model *model, const struct cmd_model_args *args, const char *otherwise)
{
    char demo[160] = "";
    peridot_template_origin origin;
    const char *path = "", *does = otherwise ? "it continues the messages as they are" : "it continues the prompt";
    const char *name = peridot_vocab_template(&origin, peridot_model_vocab(model));
    const peridot_model_info *info = peridot_model_get_info(model);
    if (!args->path)
        snprintf(demo, sizeof demo, "the demo model only tells stories (peridot pull %s fetches one that chats): ",
                 cmd_chat_model(info->device));
    if (origin == PERIDOT_TEMPLATE_NONE) cmd_say("%s%s has no chat template: %s\n", demo, info->name, does);
    if (origin != PERIDOT_TEMPLATE_UNKNOWN && origin != PERIDOT_TEMPLATE_REPLACED) return;
    cmd_model_path(&path, args->path);   /* it was found before */
    const char *why = peridot_vocab_template_error(peridot_model_vocab(model));
    if (name)
        cmd_say("%s: its chat template cannot be run (%s): \"%s\" is used in its place (--template chooses another)\n",
                cmd_shown(path), why, name);
    else
        cmd_say("%s: its chat template cannot be run (%s): %s (--template chooses one)\n", cmd_shown(path), why, does);
}

peridot_status cmd_template_choose(const char **name, const peridot_model *model, const struct cmd_model_args *args,
                                   const char *given, const char *otherwise)
{
    const peridot_vocab *vocab = peridot_model_vocab(model);
    int32_t *ids;
    size_t n;
    *name = given ? given : peridot_vocab_has_chat(vocab) ? NULL : otherwise;
    if (!given) print_other(model, args, otherwise);
    if (!*name) return PERIDOT_OK;
    PD_TRY(peridot_encode_messages(&ids, &n, vocab, &(peridot_message){"user", ""}, 1, *name));
    peridot_free(ids);
    return PERIDOT_OK;
}

peridot_status cmd_template_check_think(const peridot_vocab *vocab, const char *name, uint32_t think)
{
    const peridot_message message = {"user", ""};
    const peridot_chat chat = {.size = sizeof chat, .template_name = name, .messages = &message, .n_messages = 1,
                               .think = think};
    char sentence[512];
    int32_t *ids;
    size_t n;
    peridot_status status = think ? peridot_encode_turns(&ids, &n, vocab, &chat) : PERIDOT_OK;
    if (think && status == PERIDOT_OK) peridot_free(ids);
    if (status == PERIDOT_OK) return status;
    snprintf(sentence, sizeof sentence, "%s", peridot_last_error());
    return pd_fail(status, "--think: %s", sentence);
}
