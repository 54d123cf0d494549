/* qualify_lanes: runs a shader of subgroup operations with each size of subgroups that the device can be required to
 * have, in workgroups of one to eight subgroups, and compares what each lane saw with what it should. tools/wide asks
 * it whether to trust a driver. */
#include "gpu/gpu_.h"

#include "base/base.h"
#include "qualify_lanes_spirv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { N_WORDS = 16, MAX_WORKGROUP = 256 };
static const char *const words[N_WORDS] = {"size", "lane", "subgroup", "add", "ballot", "ballot", "shuffle",
    "shuffle xor", "broadcast", "inclusive scan", "exclusive scan", "add of some", "max", "bit count", "elect",
    "shared memory"};

static uint32_t value(uint32_t i) { return i * 2654435761u >> 12; }

static uint32_t sum(uint32_t first, uint32_t end, uint32_t step)
{
    uint32_t total = 0;
    for (uint32_t i = first; i < end; i += step) total += value(i);
    return total;
}

/* What invocation i sees. */
static void expect(uint32_t out[N_WORDS], uint32_t i, uint32_t size, uint32_t workgroup)
{
    uint32_t lane = i % size, first = i - lane, other = (workgroup - 1 - i) / size * size, largest = 0, n_odd = 0;
    uint64_t odd = 0;
    for (uint32_t k = 0; k < size; k++) {
        odd |= (uint64_t)(value(first + k) & 1) << k;
        n_odd += value(first + k) & 1;
        largest = (uint32_t)pd_max(largest, value(first + k));
    }
    const uint32_t want[N_WORDS] = {size, lane, i / size, sum(first, first + size, 1), (uint32_t)odd,
        (uint32_t)(odd >> 32), value(first + (lane * 5 + 3) % size), value(first + (lane ^ size / 2)),
        value(first + size - 1), sum(first, i + 1, 1), sum(first, i, 1),
        lane % 3 == 1 ? sum(first + 1, first + size, 3) : 0, pd_f32_bits((float)largest), n_odd, lane == 0,
        sum(other, other + size, 1)};
    memcpy(out, want, sizeof want);
}

static peridot_status compile(struct pd_kernel *k, struct pd_gpu *gpu, VkShaderModule module, uint32_t size,
                              uint32_t workgroup)
{
    const uint32_t spec[] = {workgroup, size};
    const VkSpecializationMapEntry entries[] = {{0, 0, 4}, {1, 4, 4}};
    const VkSpecializationInfo info = {2, entries, sizeof spec, spec};
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = size};
    const VkComputePipelineCreateInfo create = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT,
            .pNext = &required, .flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT,
            .module = module, .pName = "main", .pSpecializationInfo = &info},
        .layout = k->layout};
    PD_VK(gpu->vk.vkCreateComputePipelines(gpu->device, VK_NULL_HANDLE, 1, &create, NULL, &k->pipeline));
    return PERIDOT_OK;
}

static peridot_status run(uint32_t *seen, struct pd_gpu *gpu, struct pd_commands *commands, struct pd_span span,
                          const struct pd_kernel *k)
{
    PD_TRY(pd_commands_begin(commands));
    pd_dispatch(commands, k, &span.address, 1, 1, 1);
    PD_TRY(pd_commands_end(commands));
    PD_TRY(pd_commands_run(commands));
    return pd_span_read(gpu, seen, span, 0, sizeof *seen * N_WORDS * MAX_WORKGROUP);
}

/* The first difference of each operation. */
static uint32_t compare(const uint32_t *seen, uint32_t size, uint32_t workgroup)
{
    uint32_t n_wrong = 0, want[N_WORDS];
    bool told[N_WORDS] = {false};
    for (uint32_t i = 0; i < workgroup; i++) {
        expect(want, i, size, workgroup);
        for (uint32_t w = 0; w < N_WORDS; w++) {
            if (seen[N_WORDS * i + w] == want[w] || told[w]) continue;
            told[w] = true;
            n_wrong++;
            printf("%" PRIu32 " lanes of %" PRIu32 ": %s of %" PRIu32 " is %#" PRIx32 ", not %#" PRIx32 "\n", size,
                   workgroup, words[w], i, seen[N_WORDS * i + w], want[w]);
        }
    }
    return n_wrong;
}

static peridot_status qualify(uint32_t *n_wrong, struct pd_gpu *gpu, struct pd_commands *commands, struct pd_span span)
{
    static uint32_t seen[N_WORDS * MAX_WORKGROUP];
    struct pd_kernel k = {.push_size = sizeof span.address};
    VkShaderModule module;
    VkShaderModuleCreateInfo source = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = sizeof qualify_lanes_spirv, .pCode = qualify_lanes_spirv};
    VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = k.push_size};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .pushConstantRangeCount = 1, .pPushConstantRanges = &range};
    PD_VK(gpu->vk.vkCreateShaderModule(gpu->device, &source, NULL, &module));
    PD_VK(gpu->vk.vkCreatePipelineLayout(gpu->device, &layout, NULL, &k.layout));
    for (uint32_t size = gpu->info.min_subgroup_size; size <= gpu->info.max_subgroup_size; size *= 2)
        for (uint32_t workgroup = size; workgroup <= MAX_WORKGROUP && workgroup <= 8 * size; workgroup *= 2) {
            PD_TRY(compile(&k, gpu, module, size, workgroup));
            PD_TRY(run(seen, gpu, commands, span, &k));
            *n_wrong += compare(seen, size, workgroup);
            gpu->vk.vkDestroyPipeline(gpu->device, k.pipeline, NULL);
        }
    gpu->vk.vkDestroyPipelineLayout(gpu->device, k.layout, NULL);
    gpu->vk.vkDestroyShaderModule(gpu->device, module, NULL);
    return PERIDOT_OK;
}

int main(void)
{
    struct pd_gpu *gpu = NULL;
    struct pd_heap *heap = NULL;
    struct pd_commands *commands = NULL;
    struct pd_span span;
    uint32_t n_wrong = 0;
    peridot_status status = pd_gpu_open(&gpu, NULL, NULL);
    if (status == PERIDOT_OK) status = pd_heap_create(&heap, gpu, PD_HEAP_DEVICE, 1 << 20);
    if (status == PERIDOT_OK) status = pd_heap_alloc(&span, heap, 1 << 16, "numbers");
    if (status == PERIDOT_OK) status = pd_commands_create(&commands, gpu);
    if (status == PERIDOT_OK) status = qualify(&n_wrong, gpu, commands, span);
    if (status != PERIDOT_OK) fprintf(stderr, "qualify_lanes: %s\n", pd_error());
    else printf("subgroups of %" PRIu32 " to %" PRIu32 ": %s\n", gpu->info.min_subgroup_size,
                gpu->info.max_subgroup_size, n_wrong ? "wrong" : "right");
    pd_commands_free(commands);
    pd_heap_free(heap);
    pd_gpu_close(gpu);
    return n_wrong || status != PERIDOT_OK;
}
