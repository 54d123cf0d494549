#define _POSIX_C_SOURCE 200809L
#include "thought.h"
#include "flow.h"
#include "terminal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIM "\033[2m"
#define PLAIN "\033[0m"

static bool is_terminal(void) { return isatty(STDERR_FILENO) != 0; }

static void draw(struct cmd_thought *t)
{
    double now = cmd_now();
    if (!is_terminal() || now - t->drawn_s < 0.1) return;
    fputs("\r" DIM "thinking ...", stderr);
    if (t->n) fprintf(stderr, " %" PRIu32 " token%s", t->n, CMD_S(t->n));
    fputs(PLAIN "\033[K", stderr);
    fflush(stderr);
    t->drawn_s = now;
    t->drawn = true;
}

peridot_status cmd_thought_take(struct cmd_thought *t, int32_t token, const char *text, size_t size, bool quiet)
{
    CMD_TRY(cmd_array_reserve(&t->text, &t->capacity, t->size, size, 1, "thought"));
    if (size) memcpy(t->text + t->size, text, size);
    t->size += size;
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
    cmd_say("thought for %" PRIu32 " token%s%s\n", t->n, CMD_S(t->n), hint);
    dim(false);
}

void cmd_thought_show(const struct cmd_thought *t)
{
    struct cmd_notice m;
    if (t->size == 0 || !cmd_notice_begin(&m)) return;
    cmd_write_text(m.file, t->text, t->size);
    if (t->text[t->size - 1] != '\n') fputc('\n', m.file);
    dim(true);
    cmd_notice_end(&m);
    dim(false);
}

void cmd_thought_free(struct cmd_thought *t)
{
    free(t->text);
    *t = (struct cmd_thought){0};
}
