/* Converting and making model files: arguments are checked here, the work is src/offline's. */
#include "arch/shapes.h"
#include "format/dtype.h"
#include "offline/offline.h"

peridot_status peridot_convert(const char *dst_path, const char *src_path, const peridot_convert_params *params,
                               peridot_convert_stats *stats)
{
    peridot_convert_stats unused;
    if (!stats) stats = &unused;
    *stats = (peridot_convert_stats){0};
    if (!dst_path || !src_path || !params)
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_convert: a path or params is NULL");
    return pd_convert(dst_path, src_path, params, stats);
}

const char *peridot_convert_type(size_t i) { return pd_convert_type(i); }

const char *peridot_type_find(const char *name)
{
    enum pd_dtype dtype;
    return name && pd_dtype_by_name(&dtype, name) ? pd_dtypes[dtype].name : NULL;
}

peridot_status peridot_make(const char *path, const peridot_make_params *params)
{
    if (!path || !params) return pd_fail(PERIDOT_ERROR_ARGUMENT, "peridot_make: path or params is NULL");
    return pd_make(path, params);
}

const char *peridot_shape_name(size_t i)
{
    const struct pd_shape *s = pd_shape_get(i);
    return s ? s->name : NULL;
}
