/* Files of results, and whether a cache folder can be used. The work is src/base's. */
#include "peridot_tools.h"

#include "base/os.h"

#include <stdlib.h>

struct peridot_output {
    struct pd_writer writer;
};

peridot_status peridot_output_open(peridot_output **out, const char *path)
{
    *out = NULL;
    if (!path) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_output_open: path is NULL");
    peridot_output *output = calloc(1, sizeof *output);
    if (!output) return pd_fail_alloc(sizeof *output, "output");
    peridot_status status = pd_writer_open(&output->writer, path);
    if (status == PERIDOT_OK) *out = output;
    else free(output);
    return status;
}

peridot_status peridot_output_write(peridot_output *output, const void *data, size_t size)
{
    return pd_writer_write(&output->writer, data, size);
}

peridot_status peridot_output_commit(peridot_output *output)
{
    peridot_status status = pd_writer_commit(&output->writer);
    free(output);
    return status;
}

void peridot_output_abort(peridot_output *output)
{
    if (!output) return;
    pd_writer_abort(&output->writer);
    free(output);
}

peridot_status peridot_output_check(const char *path, const char *source)
{
    if (!path || !source) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_output_check: a path is NULL");
    return pd_writer_check(path, source);
}

peridot_status peridot_cache_check(const char *cache_dir)
{
    return cache_dir ? pd_private_check(cache_dir) : PERIDOT_OK;
}
