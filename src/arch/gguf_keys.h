/* What a GGUF file says of its model beside tokenizer and tensors: the keys that llama.cpp's converter writes for each
 * architecture, and config_gguf.c reads. */
#ifndef PD_ARCH_GGUF_KEYS_H
#define PD_ARCH_GGUF_KEYS_H

#include "arch/config.h"
#include "format/gguf_write.h"

/* Adds general.* and the architecture's keys; vocab_size is the number of rows of the embedding. A config that GGUF
 * has no words for is refused. */
peridot_status pd_gguf_add_config(struct pd_gguf_writer *w, const struct pd_config *c, uint32_t vocab_size);
/* Adds general.file_type, for a file most of whose matrices have this type, and general.quantization_version. */
void pd_gguf_add_type(struct pd_gguf_writer *w, enum pd_dtype dtype);

#endif
