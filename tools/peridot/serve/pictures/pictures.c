/* The pictures of requests. They are read on threads of their own, as a photograph takes a while and one at a URL
 * longer: neither the reader nor the engine waits for that. Jobs take turns (serve_fair), a picture each. What comes of
 * one, a peridot_image, is the model's and cannot outlive it: jobs with images keep the model open. Where its device is
 * lost they let go of their images, which are read again once the model is open again. */
#define _POSIX_C_SOURCE 200809L
#include "pictures.h"
#include "pictures_.h"
#include "../job/job.h"

#include <stdlib.h>

enum { N_THREADS = 4 };        /* of which some may wait for a slow host */

struct serve_images {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const peridot_model *model;   /* NULL: it is closed */
    unsigned n_holds;          /* threads that read or use images: it stays open */
    struct serve_job *jobs;    /* that have images */
};

struct serve_pictures {
    struct serve_server *server;
    struct serve_workers workers;   /* their lock is of what follows */
    struct serve_queue queue;
    size_t n_places;           /* jobs whose pictures are in memory, where each takes 10 MB and more */
};

/* ---- the images of a model ---- */

peridot_status serve_images_create(struct serve_images **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return pd_fail_alloc(sizeof **out, "images");
    pthread_mutex_init(&(*out)->lock, NULL);
    pthread_cond_init(&(*out)->changed, NULL);
    return PERIDOT_OK;
}

void serve_images_free(struct serve_images *images)
{
    if (!images) return;
    pthread_mutex_destroy(&images->lock);
    pthread_cond_destroy(&images->changed);
    free(images);
}

/* As the request says, or the server's own. What is not a request's to say, or no bool, is refused later. */
static bool is_cropped(const struct serve_job *job)
{
    yyjson_val *given = yyjson_obj_get(yyjson_doc_get_root(job->asks.document), "mm_processor_kwargs");
    given = yyjson_obj_get(given, "do_pan_and_scan");
    return yyjson_is_bool(given) ? yyjson_get_bool(given) : job->server->args->model.pan_and_scan;
}

/* What is wrong with it is the request's fault, but for memory. A model that does not see says so of anything. */
static bool read_image(struct serve_job *job, size_t i, const peridot_model *model)
{
    struct serve_picture *p = &job->pictures.list[i];
    struct pd_buffer decoded = {0};
    const struct pd_buffer *data = p->fetched.size ? &p->fetched : &decoded;
    char name[32];
    snprintf(name, sizeof name, "image %zu", i + 1);
    if (job->model->sees && data == &decoded && !serve_picture_data(&decoded, job, name, p->part)) {
        pd_buffer_free(&decoded);
        return false;
    }
    const peridot_image_params params = {.size = sizeof params, .pan_and_scan = is_cropped(job)};
    peridot_status status = peridot_image_read(&p->image, model, data->data ? data->data : "", data->size, name,
                                               &params);
    pd_buffer_free(&decoded);
    return status == PERIDOT_OK
        || serve_refuse(&job->error, status == PERIDOT_ERROR_MEMORY ? 500 : 400,
                        status == PERIDOT_ERROR_MEMORY ? NULL : "invalid_value", job->api->input, "%s",
                        peridot_last_error());
}

static void drop_images(struct serve_job *job)
{
    for (size_t i = 0; i < job->pictures.n; i++) {
        struct serve_picture *p = &job->pictures.list[i];
        p->lost = p->lost || p->image;
        peridot_image_free(p->image);
        p->image = NULL;
    }
}

/* Another thread has the job, and its error. That an image is missing is found when it is held. */
static void read_again(const struct serve_job *job, const peridot_model *model)
{
    struct serve_job reading = {.server = job->server, .model = job->model, .api = job->api};
    reading.pictures.list = job->pictures.list;
    reading.asks.document = job->asks.document;   /* which may say how pictures are cut */
    for (size_t i = 0; i < job->pictures.n; i++)
        if (job->pictures.list[i].lost) job->pictures.list[i].lost = !read_image(&reading, i, model);
}

void serve_images_open(struct serve_images *images, const peridot_model *model)
{
    pthread_mutex_lock(&images->lock);
    images->model = model;
    for (const struct serve_job *job = images->jobs; job; job = job->pictures.next)   /* the device was lost */
        read_again(job, model);
    pthread_mutex_unlock(&images->lock);
}

void serve_images_close(struct serve_images *images)
{
    if (!images) return;
    pthread_mutex_lock(&images->lock);
    images->model = NULL;
    while (images->n_holds) pthread_cond_wait(&images->changed, &images->lock);
    for (struct serve_job *job = images->jobs; job; job = job->pictures.next) drop_images(job);
    pthread_mutex_unlock(&images->lock);
}

bool serve_images_used(struct serve_images *images)
{
    pthread_mutex_lock(&images->lock);
    bool used = images->jobs || images->n_holds;
    pthread_mutex_unlock(&images->lock);
    return used;
}

/* The model, which stays open until it is released; NULL: it is closed. */
static const peridot_model *hold(struct serve_images *images)
{
    pthread_mutex_lock(&images->lock);
    const peridot_model *model = images->model;
    if (model) images->n_holds++;
    pthread_mutex_unlock(&images->lock);
    return model;
}

/* `job` not NULL: it has images from now on. */
static void release(struct serve_images *images, struct serve_job *job)
{
    pthread_mutex_lock(&images->lock);
    images->n_holds--;
    if (job) {
        job->pictures.next = images->jobs;
        images->jobs = job;
    }
    pthread_cond_broadcast(&images->changed);
    pthread_mutex_unlock(&images->lock);
}

/* ---- of a job ---- */

static void free_pictures(struct serve_job *job)
{
    if (job->pictures.has_images) {
        pthread_mutex_lock(&job->model->images->lock);
        struct serve_job **at = &job->model->images->jobs;
        while (*at != job) at = &(*at)->pictures.next;
        *at = job->pictures.next;
        drop_images(job);
        pthread_mutex_unlock(&job->model->images->lock);
    }
    for (size_t i = 0; i < job->pictures.n; i++) pd_buffer_free(&job->pictures.list[i].fetched);
    free(job->pictures.list);
    job->pictures.list = NULL;
    job->pictures.n = 0;
    struct serve_pictures *t = job->pictures.has_place ? job->server->pictures : NULL;   /* NULL at the end, too */
    if (!t) return;
    pthread_mutex_lock(&t->workers.lock);
    t->n_places--;
    pthread_cond_signal(&t->workers.changed);
    pthread_mutex_unlock(&t->workers.lock);
}

static bool add_picture(struct serve_job *job, yyjson_val *part)
{
    const char *name = job->api->input;
    if (!job->pictures.list) job->pictures.list = calloc(SERVE_MAX_PICTURES, sizeof *job->pictures.list);
    if (!job->pictures.list) return serve_refuse(&job->error, 500, NULL, NULL, "out of memory for images");
    job->pictures.free = free_pictures;
    if (job->pictures.n == SERVE_MAX_PICTURES)
        return serve_refuse(&job->error, 400, "invalid_value", name, "%s has more than %d images", name,
                            SERVE_MAX_PICTURES);
    job->pictures.list[job->pictures.n++].part = part;
    return true;
}

/* Those parts of a list that are pictures, or a result with some. */
static bool find_in(struct serve_job *job, yyjson_val *list)
{
    size_t i, n, k, n_parts;
    yyjson_val *each, *part;
    yyjson_arr_foreach(list, i, n, each) {
        if (serve_is_picture(each) && !add_picture(job, each)) return false;
        if (!yyjson_equals_str(yyjson_obj_get(each, "type"), "tool_result")) continue;
        yyjson_arr_foreach(yyjson_obj_get(each, "content"), k, n_parts, part) {
            if (serve_is_picture(part) && !add_picture(job, part)) return false;
        }
    }
    return true;
}

/* Ollama's list beside a message's text. */
static bool find_texts(struct serve_job *job, yyjson_val *list)
{
    size_t i, n;
    yyjson_val *each;
    bool good = !list || yyjson_is_null(list) || yyjson_is_arr(list);
    yyjson_arr_foreach(list, i, n, each) {
        good = good && yyjson_is_str(each);
        if (good && !add_picture(job, each)) return false;
    }
    return good || serve_refuse_type(&job->error, "images", "must be a list of base64 texts");
}

bool serve_job_find_pictures(struct serve_job *job)
{
    yyjson_val *root = yyjson_doc_get_root(job->asks.document), *messages, *each;
    size_t i, n;
    if (!job->api->read_messages || job->pictures.list) return true;
    if (job->api->id == SERVE_GENERATE) return find_texts(job, yyjson_obj_get(root, "images"));
    if (!find_in(job, yyjson_obj_get(root, "system"))) return false;
    messages = yyjson_obj_get(root, job->api->input);
    yyjson_arr_foreach(messages, i, n, each) {
        if (job->api->id == SERVE_OLLAMA_CHAT && !find_texts(job, yyjson_obj_get(each, "images"))) return false;
        if (!find_in(job, yyjson_obj_get(each, "content")) || !find_in(job, yyjson_obj_get(each, "output")))
            return false;
    }
    return true;
}

bool serve_job_hold_images(struct serve_job *job)
{
    if (!job->pictures.n) return true;
    const peridot_model *model = hold(job->model->images);
    bool all = model != NULL;
    for (size_t i = 0; i < job->pictures.n && all; i++) all = job->pictures.list[i].image;
    if (all) return true;
    if (model) release(job->model->images, NULL);
    return serve_refuse(&job->error, 503, NULL, NULL, "the model was closed meanwhile: try again");
}

void serve_job_release_images(struct serve_job *job)
{
    if (job->pictures.n) release(job->model->images, NULL);
}

/* ---- the threads ---- */

/* The picture itself, where it is elsewhere. */
static bool fetch(struct serve_job *job, size_t i)
{
    char name[32];
    struct serve_picture *p = &job->pictures.list[i];
    if (p->fetched.size || !job->model->sees || !serve_picture_is_remote(p->part)) return true;
    snprintf(name, sizeof name, "image %zu", i + 1);
    return serve_picture_data(&p->fetched, job, name, p->part);
}

/* Reads one picture, and says what follows: the next one, if none is wrong; where the model was closed meanwhile, that
 * has to be opened again. */
static enum serve_stage read_next(struct serve_job *job)
{
    size_t i = job->pictures.n_read;
    if (!serve_job_is_awaited(job) || !fetch(job, i)) return SERVE_DONE;
    const peridot_model *model = hold(job->model->images);
    if (!model) return SERVE_LOADING;
    bool good = read_image(job, i, model);
    release(job->model->images, good && !job->pictures.has_images ? job : NULL);
    job->pictures.has_images = job->pictures.has_images || good;
    job->pictures.n_read += good;
    return !good ? SERVE_DONE : job->pictures.n_read < job->pictures.n ? SERVE_PICTURES : SERVE_RETURNED;
}

/* A picture, and no more: so jobs take turns, and one with many keeps no other waiting for long. */
void serve_pictures_step(struct serve_job *job) { serve_job_to(job, read_next(job)); }

static bool is_small(const struct serve_job *job) { return job->pictures.n == 1; }

/* A job with its first picture needs a place: there are some for twice as many as may be at work, of which half are for
 * those of one picture alone. It costs the pictures that are left. */
static uint64_t pictures_cost_of(const struct serve_job *job, const void *user)
{
    const struct serve_pictures *t = user;
    size_t n_parallel = t->server->args->n_parallel, most = is_small(job) ? 2 * n_parallel : n_parallel;
    if (!job->pictures.has_place && t->n_places >= most && !t->server->stopping) return SERVE_FAIR_NEVER;
    return job->body.size + (uint64_t)(job->pictures.n - job->pictures.n_read) * SERVE_BODY_MAX;
}

static bool read_one(void *user)
{
    struct serve_pictures *t = user;
    struct serve_job *job = serve_queue_next(&t->queue, pictures_cost_of, t);
    if (!job) return false;
    t->n_places += !job->pictures.has_place;
    job->pictures.has_place = true;
    pthread_mutex_unlock(&t->workers.lock);
    serve_job_step(job);
    pthread_mutex_lock(&t->workers.lock);
    return true;
}

peridot_status serve_pictures_create(struct serve_pictures **out, struct serve_server *server)
{
    struct serve_pictures *t = *out = calloc(1, sizeof *t);
    if (!t) return pd_fail_alloc(sizeof *t, "pictures");
    t->server = server;
    serve_queue_init(&t->queue, &t->workers.lock, &t->workers.changed);
    peridot_status status = serve_workers_start(&t->workers, N_THREADS, SERVE_PICTURE_READER, read_one, t);
    if (status == PERIDOT_OK) server->pictures = t;
    else {
        serve_pictures_free(t);
        *out = NULL;
    }
    return status;
}

void serve_pictures_free(struct serve_pictures *t)
{
    if (!t) return;
    serve_workers_stop(&t->workers);
    serve_queue_close(&t->queue);
    t->server->pictures = NULL;
    serve_workers_free(&t->workers);
    free(t);
}

struct serve_queue *serve_pictures_queue(const struct serve_job *job) { return &job->server->pictures->queue; }
