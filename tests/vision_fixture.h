/* What tests of images share: the golden models that see, with their pictures and prompts. */
#ifndef VISION_FIXTURE_H
#define VISION_FIXTURE_H

#include "format_fixture.h"
#include "golden_files.h"
#include "peridot_tools.h"
#include "relative_error.h"

#include "api/api.h"

enum { MAX_TOKENS = 256, MAX_WIDTH = 512 };

static inline peridot_image *read_image(const peridot_model *model, const char *folder_name, const char *name)
{
    size_t size;
    void *data = read_golden(folder_name, name, &size);
    peridot_image *image;
    EXPECT_OK(peridot_image_read(&image, model, data, size, name, NULL));
    free(data);
    return image;
}

/* The whole picture's image of a handle. */
static inline struct pd_image *engine_of(peridot_image *image) { return image->parts[0]; }

/* A model with both images in the two prompts. */
struct seeing {
    const char *name;
    peridot_model *model;
    peridot_image *images[2];
    int32_t one[MAX_TOKENS], two[MAX_TOKENS];      /* text, image 1, text (, image 2, text) */
    size_t n_one, n_two;
};

static inline void seeing_open(struct seeing *s, const char *name, const char *file,
                               const peridot_model_params *params)
{
    char path[1024];
    snprintf(path, sizeof path, PERIDOT_GOLDEN "/%s%s", name, file);
    *s = (struct seeing){.name = name};
    EXPECT_OK(peridot_model_open(&s->model, path, params));
    s->images[0] = read_image(s->model, name, "image-1.png");
    s->images[1] = read_image(s->model, name, "image-2.png");
    s->n_one = read_golden_ids(s->one, MAX_TOKENS, name, "tokens.txt");
    s->n_two = read_golden_ids(s->two, MAX_TOKENS, name, "tokens-2.txt");
    EXPECT_OK(peridot_images_place(s->one, s->n_one, s->model, s->images, 1));
    EXPECT_OK(peridot_images_place(s->two, s->n_two, s->model, s->images, 2));
}

static inline void seeing_close(struct seeing *s)
{
    peridot_image_free(s->images[0]);
    peridot_image_free(s->images[1]);
    peridot_model_close(s->model);
}

/* Where the first image's rows begin among ids. */
static inline uint32_t first_row(const int32_t *ids)
{
    uint32_t i = 0;
    while (ids[i] >= 0) i++;
    return i;
}

#endif
