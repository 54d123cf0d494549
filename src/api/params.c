#include "api/params.h"

#include "base/num.h"

peridot_status pd_params_read(void *to, size_t to_size, const void *from, const char *name)
{
    size_t size = 0;
    memset(to, 0, to_size);
    if (!from) return PERIDOT_OK;
    memcpy(&size, from, sizeof size);
    if (size == 0) size = to_size;
    if (size < sizeof size) return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s: the struct's size is %zu", name, size);
    for (size_t i = to_size; i < size; i++)
        if (((const unsigned char *)from)[i])
            return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "%s: members are set that the library's version, %s, "
                           "does not have", name, PERIDOT_VERSION);
    memcpy(to, from, (size_t)pd_min(size, to_size));
    return PERIDOT_OK;
}

void pd_result_write(void *to, const void *from, size_t from_size)
{
    size_t size;
    if (!to) return;
    memcpy(&size, to, sizeof size);
    size_t n = size ? (size_t)pd_min(size, from_size) : from_size;
    if (n > sizeof size) memcpy((char *)to + sizeof size, (const char *)from + sizeof size, n - sizeof size);
}
