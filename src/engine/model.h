/* A loaded model: what sessions share and none changes, so that sessions of several threads may use it. Owns its
 * checkpoint, device and weights. */
#ifndef PD_ENGINE_MODEL_H
#define PD_ENGINE_MODEL_H

#include "engine/adapters.h"
#include "engine/link.h"
#include "engine/vision/image.h"
#include "engine/weights.h"
#include "ops/variants.h"

struct pd_model {
    struct pd_checkpoint *checkpoint;  /* stays open: weights may be read in place */
    struct pd_gpu *gpu;
    struct pd_variants variants;
    struct pd_tunings tunings;         /* of which sessions take a copy */
    struct pd_config config;
    struct pd_weights weights;
    struct pd_adapters adapters;       /* to the weights */
    struct pd_checkpoint *tower_checkpoint;   /* an mmproj file; NULL: there is none */
    struct pd_tower *tower;            /* NULL: the model does not see */
    struct pd_images *images;          /* of pictures for it */
    struct pd_link *link;              /* to the ranks that hold the other layers; NULL: all are here */
    bool in_use;                       /* the other ranks have a session */
    uint64_t ranks_read_size, ranks_weights_size;   /* of all ranks: rank 0 knows */
    uint64_t hash;                     /* of its tensors: saved sequences belong to it */
    uint32_t n_pieces;                 /* ids that may be drawn; rows of the output beyond them never win */
    /* Bytes of the pieces, for DRY; NULL: no chain had it yet, or there is no vocabulary. The vocabulary's. */
    struct pd_spellings *_Atomic spellings;
};

#endif
