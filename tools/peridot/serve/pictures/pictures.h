/* Pictures of requests: read from bodies or fetched from where they are, by threads of their own, and kept as images
 * while a job needs them. */
#ifndef PERIDOT_COMMAND_SERVE_PICTURES_PICTURES_H
#define PERIDOT_COMMAND_SERVE_PICTURES_PICTURES_H

#include "../job/job.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- address ---- */

struct sockaddr;

/* False for an address of this machine, of a private, shared or link-local network, for multicast, and for what is
 * reserved or only embeds such an IPv4 address; and for what is no address of the Internet at all. */
bool serve_address_is_public(const struct sockaddr *address);
/* An address of this machine that no other can reach: 127.0.0.0/8, also as ::ffff:127.0.0.1, and ::1. */
bool serve_address_is_loopback(const struct sockaddr *address);
/* Tells those apart who ask: the address of IPv4, the first half of one of IPv6, which a household has for itself; 0
 * for any other. */
uint64_t serve_address_number(const struct sockaddr *address);

/* ---- pictures ---- */

enum { SERVE_MAX_PICTURES = 32 };   /* of a request */

struct serve_picture {
    yyjson_val *part;          /* where it is in the job's document */
    struct pd_buffer fetched;   /* the file, where it is elsewhere */
    peridot_image *image;      /* NULL: not read yet, or let go, */
    bool lost;                 /* as its model was closed: it is read again once that is open */
};

/* ---- the images of a model ---- */

struct serve_images;

peridot_status serve_images_create(struct serve_images **out);
/* NULL is allowed. */
void serve_images_free(struct serve_images *images);
/* The engine's, once the model is open, and before it is closed, where NULL is allowed. */
void serve_images_open(struct serve_images *images, const peridot_model *model);
void serve_images_close(struct serve_images *images);
/* Whether jobs have any. */
bool serve_images_used(struct serve_images *images);

/* ---- of a job ---- */

/* Finds the pictures in its messages, if it has any, and does not read them. False: the job's error says why. */
bool serve_job_find_pictures(struct serve_job *job);
/* Until it is released, the job's images stay. False, and a job's error: they are gone. */
bool serve_job_hold_images(struct serve_job *job);
void serve_job_release_images(struct serve_job *job);

/* ---- the threads ---- */

struct serve_pictures;

peridot_status serve_pictures_create(struct serve_pictures **out, struct serve_server *server);
/* What still waits gets an error. NULL is allowed. */
void serve_pictures_free(struct serve_pictures *pictures);
/* Of SERVE_PICTURES: a picture is read, and then the next one's turn comes; the reader gets the job back once it has
 * all of them. */
struct serve_queue *serve_pictures_queue(const struct serve_job *job);
void serve_pictures_step(struct serve_job *job);

#endif
