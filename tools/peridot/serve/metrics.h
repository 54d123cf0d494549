/* What GET /metrics shows: counters and histograms of peridot serve, under a lock of their own. */
#ifndef PERIDOT_COMMAND_SERVE_METRICS_H
#define PERIDOT_COMMAND_SERVE_METRICS_H

#include "buffer.h"

#include <pthread.h>

enum serve_counter {
    SERVE_REQUESTS_2XX, SERVE_REQUESTS_4XX, SERVE_REQUESTS_5XX, SERVE_REQUESTS_CLOSED,
    SERVE_PROMPT_TOKENS, SERVE_CACHED_TOKENS, SERVE_GENERATED_TOKENS, SERVE_DRAFTED_TOKENS,
    SERVE_ACCEPTED_TOKENS, SERVE_PREEMPTIONS, SERVE_LOST_DEVICES,
    SERVE_N_COUNTERS
};
enum serve_gauge { SERVE_WAITING, SERVE_RUNNING, SERVE_POSITIONS, SERVE_FREE_POSITIONS, SERVE_KEPT, SERVE_N_GAUGES };
enum serve_histogram { SERVE_FIRST_TOKEN, SERVE_NEXT_TOKEN, SERVE_DURATION, SERVE_N_HISTOGRAMS };
enum { SERVE_N_BUCKETS = 14 };

struct serve_metrics {
    pthread_mutex_t lock;
    uint64_t counters[SERVE_N_COUNTERS];
    double gauges[SERVE_N_GAUGES];
    struct serve_buckets {
        uint64_t n[SERVE_N_BUCKETS + 1];   /* the last: more than the highest bound */
        double sum;
    } histograms[SERVE_N_HISTOGRAMS];
};

void serve_count(struct serve_metrics *m, enum serve_counter counter, uint64_t n);
/* A gauge is the sum of what the engines have. */
void serve_gauge_add(struct serve_metrics *m, enum serve_gauge gauge, double change);
double serve_gauge_get(struct serve_metrics *m, enum serve_gauge gauge);
void serve_observe(struct serve_metrics *m, enum serve_histogram histogram, double seconds);
void serve_put_metrics(struct serve_buffer *out, struct serve_metrics *m);

#endif
