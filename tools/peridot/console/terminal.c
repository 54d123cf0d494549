/* The terminal: Ctrl-C as a question that long work asks, a progress bar, and text that models wrote. */
#define _POSIX_C_SOURCE 200809L
#include "console.h"
#include "../base/base.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INSIST_SECONDS 0.3

static volatile sig_atomic_t caught;
static peridot_session *volatile working;
static void (*restore_terminal)(void);
static double patience_s = INSIST_SECONDS;   /* with SIGINT */
static unsigned most_s;                      /* that an end may take: 0: what it takes */

/* `timeout` sends its signal twice in a row, to the process and to its group: only a later one is a person who
 * insists, or the alarm. */
static void on_signal(int number)
{
    static double caught_s;
    double now = pd_now();
    if (caught && now - caught_s > (number == SIGINT ? patience_s : INSIST_SECONDS)) {
        if (restore_terminal) restore_terminal();
        cmd_signal_end(caught == SIGINT ? number : caught);
    } else if (!caught) {
        caught = number;
        if (working) peridot_cancel(working);
        if (number != SIGINT && most_s) cmd_alarm(most_s);
        caught_s = now;
    }
}

void cmd_interrupt_watch(void) { cmd_signals_catch(on_signal); }

void cmd_interrupt_cancels(peridot_session *session) { working = session; }

bool cmd_interrupted(void)
{
    return caught != 0;
}

bool cmd_interrupted_by_pipe(void) { return cmd_signal_is_pipe(caught); }

bool cmd_interrupt_clear(void)
{
    if (caught != SIGINT) return false;
    caught = 0;
    return true;
}

void cmd_interrupt_patience(double seconds) { patience_s = seconds; }

void cmd_interrupt_hurry(unsigned seconds) { most_s = seconds; }

void cmd_interrupt_restores(void (*restore)(void)) { restore_terminal = restore; }

void cmd_interrupt_raise(void)
{
    if (caught) cmd_signal_end(caught);
}

void cmd_write_text(FILE *file, const char *text, size_t size)
{
    char one[16];
    for (size_t i = 0, n; i < size; i += n) {
        n = pd_max(peridot_utf8_size(text + i, size - i), 1);
        if (text[i] == '\n' || text[i] == '\t') fputc(text[i], file);
        else fwrite(one, 1, peridot_printable(one, sizeof one, text + i, n), file);
    }
}

enum { LINE_SIZE = 200 };

/* Over the line before. A line that reached the last column would leave it behind. */
static void write_line(const char *line)
{
    int columns = cmd_columns(stderr);
    fprintf(stderr, "\r%.*s\033[K", columns > 1 ? columns - 1 : LINE_SIZE, line);
    fflush(stderr);
}

/* ---- pulse: where a driver compiles, or a step takes long, nothing is drawn by itself. A thread then draws the line
        again, with the seconds that have passed ---- */

#define PULSE_SECONDS 0.9

static struct {
    pthread_mutex_t lock;   /* of all of this, and of drawing */
    pthread_cond_t wake;
    pthread_t thread;
    bool runs, drawn;
    double begin_s, drawn_s;
    char line[LINE_SIZE];
} pulse = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void *beat(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pulse.lock);
    while (pulse.runs) {
        double now = pd_now();
        if (now - pulse.drawn_s >= PULSE_SECONDS) {
            char line[LINE_SIZE + 40];
            snprintf(line, sizeof line, "%s (%s)", pulse.line, cmd_time_text(now - pulse.begin_s));
            write_line(line);
            pulse.drawn_s = now;
            pulse.drawn = true;
        }
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&pulse.wake, &pulse.lock, &until);
    }
    pthread_mutex_unlock(&pulse.lock);
    return NULL;
}

/* Of two lines at once, one has it. */
static void begin_pulse(struct cmd_progress *p)
{
    pthread_mutex_lock(&pulse.lock);
    if (!pulse.runs) {
        pulse.drawn = false;
        pulse.begin_s = pulse.drawn_s = p->begin_s;
        snprintf(pulse.line, sizeof pulse.line, "%s", p->label);
        pulse.runs = p->pulses = cmd_thread_begin(&pulse.thread, beat, NULL);
    }
    pthread_mutex_unlock(&pulse.lock);
}

/* Whether it has drawn. */
static bool end_pulse(struct cmd_progress *p)
{
    if (!p->pulses) return false;
    p->pulses = false;
    pthread_mutex_lock(&pulse.lock);
    pulse.runs = false;
    pthread_cond_signal(&pulse.wake);
    pthread_mutex_unlock(&pulse.lock);
    pthread_join(pulse.thread, NULL);
    return pulse.drawn;
}

static void draw_line(const struct cmd_progress *p, const char *line)
{
    pthread_mutex_lock(&pulse.lock);
    if (p->pulses) {
        snprintf(pulse.line, sizeof pulse.line, "%s", line);
        pulse.drawn_s = p->drawn_s;
    }
    write_line(line);
    pthread_mutex_unlock(&pulse.lock);
}

/* ---- progress ---- */

struct cmd_progress cmd_progress_begin(const char *label)
{
    struct cmd_progress p = {.label = label, .begin_s = pd_now(), .enabled = isatty(STDERR_FILENO) != 0};
    if (p.enabled) begin_pulse(&p);
    return p;
}

/* "LABEL [#####     ]  50 %  1.2 GB of 2.4 GB, 24 MB/s, 50 s left", with a bar for which there is room. */
static void draw(const struct cmd_progress *p, uint64_t done, uint64_t total, double now)
{
    static const char full[] = "##############################";
    enum { WIDTH = sizeof full - 1, MIN_WIDTH = 5 };
    char line[LINE_SIZE], numbers[LINE_SIZE / 2];
    double part = total ? (double)done / (double)total : 1, taken_s = now - p->begin_s;
    size_t n = (size_t)snprintf(numbers, sizeof numbers, "%3.0f %%  %s of %s", 100 * part, cmd_size_text(done),
                                cmd_size_text(total));
    if (done > p->begin && taken_s > 0) {
        double rate = (double)(done - p->begin) / taken_s;
        n += (size_t)snprintf(numbers + n, sizeof numbers - n, ", %s/s, %s left", cmd_size_text((uint64_t)rate),
                              cmd_time_text((double)(total - done) / rate));
    }
    int room = cmd_columns(stderr) - 1 - (int)(strlen(p->label) + n) - 4, width = room < WIDTH ? room : WIDTH;
    if (width < MIN_WIDTH) snprintf(line, sizeof line, "%s %s", p->label, numbers);
    else snprintf(line, sizeof line, "%s [%-*.*s] %s", p->label, width, (int)(part * width), full, numbers);
    draw_line(p, line);
}

/* Whether it is time to draw: `after` seconds from the beginning, and then ten times a second, which is all that an eye
 * can use. */
static bool is_due(struct cmd_progress *p, double now, double after)
{
    if (!p->enabled || now - p->begin_s < after || now - p->drawn_s < 0.1) return false;
    p->drawn_s = now;
    return p->drawn = true;
}

bool cmd_progress_step(void *user, uint64_t done, uint64_t total)
{
    struct cmd_progress *p = user;
    double now = pd_now();
    if (is_due(p, now, 0)) draw(p, done, total, now);
    return !cmd_interrupted();
}

bool cmd_progress_tokens(void *user, uint64_t done, uint64_t total)
{
    struct cmd_progress *p = user;
    double now = pd_now();
    if (is_due(p, now, 0.5)) {
        char line[LINE_SIZE];
        snprintf(line, sizeof line, "%s: %" PRIu64 " of %" PRIu64 " token%s, %.1f tokens/s", p->label, done, total,
                 PD_S(total), (double)done / (now - p->begin_s));
        draw_line(p, line);
    }
    return !cmd_interrupted();
}

/* "comparing kernels: 40 of 260, about 60 s left": what is left is not known for the first two seconds. */
static void draw_count(const struct cmd_progress *p, uint64_t at, uint64_t total, double part, double now)
{
    char line[LINE_SIZE];
    double taken_s = now - p->begin_s;
    size_t n = (size_t)snprintf(line, sizeof line, "%s: %" PRIu64 " of %" PRIu64, p->label, at, total);
    if (taken_s > 2 && part > 0 && n < sizeof line)
        snprintf(line + n, sizeof line - n, ", about %s left", cmd_time_text(taken_s * (1 - part) / part));
    draw_line(p, line);
}

bool cmd_progress_compiling(void *user, uint64_t done, uint64_t total)
{
    struct cmd_progress *p = user;
    double now = pd_now();
    if (is_due(p, now, 0.5)) draw_count(p, done, total, (double)done / (double)total, now);
    return !cmd_interrupted();
}

bool cmd_progress_kernels(void *user, uint32_t n_done, uint32_t n_kernels, double part)
{
    struct cmd_progress *p = user;
    double now = pd_now();
    if (is_due(p, now, 0)) draw_count(p, pd_min((uint64_t)n_done + 1, n_kernels), n_kernels, part, now);
    return !cmd_interrupted();
}

void cmd_progress_end(struct cmd_progress *p)
{
    if (end_pulse(p) || p->drawn) fputs("\r\033[K", stderr);
    p->drawn = false;
}
