/* What GET /metrics shows: counters and histograms of peridot serve, under a lock of their own. */
#include "common.h"

#include <inttypes.h>

struct name {
    const char *name, *labels, *help;   /* a name's rows follow each other */
};

static const struct name counters[SERVE_N_COUNTERS] = {
    [SERVE_REQUESTS_2XX] = {"peridot_requests_total", "{status=\"2xx\"}",
                            "HTTP requests by the status of their answer; closed: the client went away"},
    [SERVE_REQUESTS_4XX] = {"peridot_requests_total", "{status=\"4xx\"}", NULL},
    [SERVE_REQUESTS_5XX] = {"peridot_requests_total", "{status=\"5xx\"}", NULL},
    [SERVE_REQUESTS_CLOSED] = {"peridot_requests_total", "{status=\"closed\"}", NULL},
    [SERVE_PROMPT_TOKENS] = {"peridot_prompt_tokens_total", "", "Tokens of prompts that were evaluated"},
    [SERVE_CACHED_TOKENS] = {"peridot_cached_tokens_total", "", "Tokens of prompts that were in the cache already"},
    [SERVE_GENERATED_TOKENS] = {"peridot_generated_tokens_total", "", "Tokens that were generated"},
    [SERVE_DRAFTED_TOKENS] = {"peridot_drafted_tokens_total", "", "Tokens of drafts that were evaluated"},
    [SERVE_ACCEPTED_TOKENS] = {"peridot_accepted_tokens_total", "", "Tokens of drafts that the model accepted"},
    [SERVE_PREEMPTIONS] = {"peridot_preemptions_total", "",
                           "Times that a text left a full cache, to go on later"},
    [SERVE_LOST_DEVICES] = {"peridot_lost_devices_total", "", "Times that the device was lost"},
};

static const struct name gauges[SERVE_N_GAUGES] = {
    [SERVE_WAITING] = {"peridot_waiting", "", "Texts that wait to begin"},
    [SERVE_RUNNING] = {"peridot_running", "", "Texts that are being read or written"},
    [SERVE_POSITIONS] = {"peridot_cache_positions", "", "Positions of the key-value cache"},
    [SERVE_FREE_POSITIONS] = {"peridot_cache_free_positions", "", "Positions of the key-value cache that are free"},
    [SERVE_DRAFT_SAVED] = {"peridot_draft_saved_seconds", "", "Time that drafts saved, or cost where it is negative"},
    [SERVE_KEPT] = {"peridot_kept_sequences", "", "Finished conversations whose prefix is still in the cache"},
};

static const struct name histograms[SERVE_N_HISTOGRAMS] = {
    [SERVE_FIRST_TOKEN] = {"peridot_time_to_first_token_seconds", "", "From a request's arrival to its first token"},
    [SERVE_NEXT_TOKEN] = {"peridot_time_between_tokens_seconds", "", "From a token to the next one"},
    [SERVE_DURATION] = {"peridot_request_seconds", "", "From a request's headers to the end of its answer"},
};

static const double bounds[SERVE_N_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.25,  0.5,    1,     2.5,  5,     10,   60};

void serve_count(struct serve_metrics *m, enum serve_counter counter, uint64_t n)
{
    pthread_mutex_lock(&m->lock);
    m->counters[counter] += n;
    pthread_mutex_unlock(&m->lock);
}

void serve_gauge_add(struct serve_metrics *m, enum serve_gauge gauge, double change)
{
    pthread_mutex_lock(&m->lock);
    m->gauges[gauge] += change;
    pthread_mutex_unlock(&m->lock);
}

double serve_gauge_get(struct serve_metrics *m, enum serve_gauge gauge)
{
    pthread_mutex_lock(&m->lock);
    double value = m->gauges[gauge];
    pthread_mutex_unlock(&m->lock);
    return value;
}

void serve_observe(struct serve_metrics *m, enum serve_histogram histogram, double seconds)
{
    size_t i = 0;
    while (i < SERVE_N_BUCKETS && seconds > bounds[i]) i++;
    pthread_mutex_lock(&m->lock);
    m->histograms[histogram].n[i]++;
    m->histograms[histogram].sum += seconds;
    pthread_mutex_unlock(&m->lock);
}

static void put_head(struct pd_buffer *out, const struct name *n, const char *type)
{
    if (n->help) pd_buffer_print(out, "# HELP %s %s\n# TYPE %s %s\n", n->name, n->help, n->name, type);
}

static void put_histogram(struct pd_buffer *out, const struct name *name, const struct serve_buckets *b)
{
    uint64_t n = 0;
    put_head(out, name, "histogram");
    for (size_t i = 0; i < SERVE_N_BUCKETS; i++)
        pd_buffer_print(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name->name, bounds[i], n += b->n[i]);
    n += b->n[SERVE_N_BUCKETS];
    pd_buffer_print(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name->name, n);
    pd_buffer_print(out, "%s_sum %.9g\n%s_count %" PRIu64 "\n", name->name, b->sum, name->name, n);
}

void serve_put_metrics(struct pd_buffer *out, struct serve_metrics *m)
{
    pthread_mutex_lock(&m->lock);
    const struct serve_metrics now = *m;
    pthread_mutex_unlock(&m->lock);
    for (size_t i = 0; i < SERVE_N_COUNTERS; i++) {
        put_head(out, &counters[i], "counter");
        pd_buffer_print(out, "%s%s %" PRIu64 "\n", counters[i].name, counters[i].labels, now.counters[i]);
    }
    for (size_t i = 0; i < SERVE_N_GAUGES; i++) {
        put_head(out, &gauges[i], "gauge");
        pd_buffer_print(out, "%s %.9g\n", gauges[i].name, now.gauges[i]);
    }
    for (size_t i = 0; i < SERVE_N_HISTOGRAMS; i++) put_histogram(out, &histograms[i], &now.histograms[i]);
}
