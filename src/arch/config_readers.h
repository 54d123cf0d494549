/* The two readers behind pd_config_read: they fill in numbers and layers, which it checks and completes. */
#ifndef PD_ARCH_CONFIG_READERS_H
#define PD_ARCH_CONFIG_READERS_H

#include "arch/config.h"

peridot_status pd_config_read_gguf(struct pd_config *out, const struct pd_checkpoint *c);
peridot_status pd_config_read_hf(struct pd_config *out, const struct pd_checkpoint *c);

#endif
