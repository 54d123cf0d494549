/* Executables of compiled kernels, their statistics and assembly (VK_KHR_pipeline_executable_properties): what
 * `peridot devices --pipelines` and the counts of instructions are made of. Names come from the driver and are
 * escaped; a driver that has no statistics gives none, which is no error. */
#include "base/base.h"
#include "gpu/gpu_.h"

#include <stdlib.h>
#include <string.h>

static double value_of(const VkPipelineExecutableStatisticKHR *s)
{
    switch (s->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return s->value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return (double)s->value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return (double)s->value.u64;
    default: return s->value.f64;
    }
}

static peridot_status read_statistics(struct pd_executable *e, struct pd_gpu *gpu,
                                      const VkPipelineExecutableInfoKHR *which)
{
    uint32_t n = 0;
    PD_VK(gpu->vk.vkGetPipelineExecutableStatisticsKHR(gpu->device, which, &n, NULL));
    if (!n) return PERIDOT_OK;
    VkPipelineExecutableStatisticKHR *found = calloc(n, sizeof *found);
    e->statistics = calloc(n, sizeof *e->statistics);
    if (!found || !e->statistics) {
        free(found);
        return pd_fail_alloc(n * sizeof *found, "statistics");
    }
    for (uint32_t i = 0; i < n; i++) found[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    VkResult result = gpu->vk.vkGetPipelineExecutableStatisticsKHR(gpu->device, which, &n, found);
    for (uint32_t i = 0; result == VK_SUCCESS && i < n; i++) {
        pd_utf8_escape(e->statistics[i].name, sizeof e->statistics[i].name, found[i].name, strlen(found[i].name));
        e->statistics[i].value = value_of(&found[i]);
    }
    e->n_statistics = n;
    free(found);
    return result == VK_SUCCESS ? PERIDOT_OK : pd_vk_fail(result, "vkGetPipelineExecutableStatisticsKHR");
}

/* The last of the driver's representations, which are in the order of its passes. The first call says how large they
 * are; the second reads those that have memory. */
static peridot_status read_assembly(struct pd_executable *e, struct pd_gpu *gpu,
                                    const VkPipelineExecutableInfoKHR *which)
{
    uint32_t n = 0;
    PD_VK(gpu->vk.vkGetPipelineExecutableInternalRepresentationsKHR(gpu->device, which, &n, NULL));
    if (!n) return PERIDOT_OK;
    VkPipelineExecutableInternalRepresentationKHR *found = calloc(n, sizeof *found), *last = found + n - 1;
    if (!found) return pd_fail_alloc(n * sizeof *found, "assembly");
    for (uint32_t i = 0; i < n; i++)
        found[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
    VkResult result = gpu->vk.vkGetPipelineExecutableInternalRepresentationsKHR(gpu->device, which, &n, found);
    if (result == VK_SUCCESS && last->isText) {
        last->pData = e->assembly = calloc(1, last->dataSize + 1);
        if (!e->assembly) result = VK_ERROR_OUT_OF_HOST_MEMORY;
        else result = gpu->vk.vkGetPipelineExecutableInternalRepresentationsKHR(gpu->device, which, &n, found);
    }
    free(found);
    return result == VK_SUCCESS ? PERIDOT_OK
        : pd_vk_fail(result, "vkGetPipelineExecutableInternalRepresentationsKHR");
}

static peridot_status read_executables(struct pd_executable *executables, uint32_t n, struct pd_gpu *gpu,
                                       const struct pd_kernel *kernel)
{
    VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = kernel->pipeline};
    VkPipelineExecutablePropertiesKHR *properties = calloc(n, sizeof *properties);
    if (!properties) return pd_fail_alloc(n * sizeof *properties, "statistics");
    for (uint32_t i = 0; i < n; i++) properties[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    VkResult result = gpu->vk.vkGetPipelineExecutablePropertiesKHR(gpu->device, &info, &n, properties);
    peridot_status status = result == VK_SUCCESS ? PERIDOT_OK
        : pd_vk_fail(result, "vkGetPipelineExecutablePropertiesKHR");
    for (uint32_t i = 0; i < n && status == PERIDOT_OK; i++) {
        VkPipelineExecutableInfoKHR which = {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
            .pipeline = kernel->pipeline, .executableIndex = i};
        pd_utf8_escape(executables[i].name, sizeof executables[i].name, properties[i].name,
                       strlen(properties[i].name));
        executables[i].subgroup_size = properties[i].subgroupSize;
        status = read_statistics(&executables[i], gpu, &which);
        if (status == PERIDOT_OK) status = read_assembly(&executables[i], gpu, &which);
    }
    free(properties);
    return status;
}

peridot_status pd_kernel_executables(struct pd_executable **out, uint32_t *n, struct pd_gpu *gpu,
                                     const struct pd_kernel *kernel)
{
    VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = kernel->pipeline};
    *out = NULL;
    *n = 0;
    if (!gpu->statistics) return PERIDOT_OK;
    PD_VK(gpu->vk.vkGetPipelineExecutablePropertiesKHR(gpu->device, &info, n, NULL));
    if (*n == 0) return PERIDOT_OK;
    *out = calloc(*n, sizeof **out);
    if (!*out) return pd_fail_alloc(*n * sizeof **out, "statistics");
    peridot_status status = read_executables(*out, *n, gpu, kernel);
    if (status == PERIDOT_OK) return PERIDOT_OK;
    pd_executables_free(*out, *n);
    *out = NULL;
    *n = 0;
    return status;
}

void pd_executables_free(struct pd_executable *executables, uint32_t n)
{
    for (uint32_t i = 0; executables && i < n; i++) {
        free(executables[i].statistics);
        free(executables[i].assembly);
    }
    free(executables);
}
