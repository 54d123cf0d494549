/* The Vulkan loader and instances, and failed calls as sentences. The loader is opened when the first device is asked
 * for, not linked: a program that embeds the library starts on a machine without Vulkan, and gets a sentence. Every
 * pd_gpu has an instance of its own: instances share nothing, so that threads need no lock. */
#include "gpu/gpu_.h"

#include "base/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- results ---- */

static const char *result_name(VkResult result)
{
    static const struct { VkResult result; const char *name; } names[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY"},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
        {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED"},
        {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST"},
        {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT"},
        {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT"},
        {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT"},
        {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER"},
        {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS"},
        {VK_TIMEOUT, "VK_TIMEOUT"},
    };
    for (size_t i = 0; i < PD_COUNT(names); i++)
        if (names[i].result == result) return names[i].name;
    return "an unnamed error";
}

peridot_status pd_vk_fail(VkResult result, const char *call)
{
    peridot_status status = result == VK_ERROR_DEVICE_LOST ? PERIDOT_ERROR_DEVICE_LOST
        : result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY ? PERIDOT_ERROR_MEMORY
        : PERIDOT_ERROR_DEVICE;
    const char *name = call, *end = call + strcspn(call, "(");
    for (const char *at = call; at < end; at++)
        if (*at == '.' || *at == '>') name = at + 1;
    return pd_fail(status, "the device failed in %.*s: %s (%d)", (int)(end - name), name, result_name(result),
                   (int)result);
}

/* ---- the loader ---- */

/* The library's only mutable globals: set once, by the thread that needs them first, and never unloaded, as other
 * instances may be at work when one is destroyed. */
static pthread_once_t loader_once = PTHREAD_ONCE_INIT;
static PFN_vkGetInstanceProcAddr get_instance_function;   /* NULL: there is no loader */

static void load_loader(void)
{
    /* The last is what an archive brings for systems that have a driver and no loader (tools/bundle). */
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so", "vulkan-1.dll", "libvulkan.1.dylib",
                                        "libvulkan.dylib", "libMoltenVK.dylib", "libperidot-vulkan.so.1"};
    for (size_t i = 0; i < PD_COUNT(names) && !get_instance_function; i++)
        get_instance_function = (PFN_vkGetInstanceProcAddr)pd_library_function(names[i], "vkGetInstanceProcAddr");
}

/* ---- instances ---- */

static peridot_status has_extension(bool *out, const char *name)
{
    PFN_vkEnumerateInstanceExtensionProperties list_extensions = (PFN_vkEnumerateInstanceExtensionProperties)
        get_instance_function(NULL, "vkEnumerateInstanceExtensionProperties");
    struct pd_extensions list = {0};
    *out = false;
    if (!list_extensions || list_extensions(NULL, &list.n, NULL) != VK_SUCCESS || !list.n) return PERIDOT_OK;
    list.at = malloc(list.n * sizeof *list.at);
    if (!list.at) return pd_fail_alloc(list.n * sizeof *list.at, "instance extensions");
    *out = list_extensions(NULL, &list.n, list.at) >= VK_SUCCESS && pd_extensions_has(&list, name);
    free(list.at);
    return PERIDOT_OK;
}

static peridot_status create_instance(VkInstance *out)
{
    pthread_once(&loader_once, load_loader);
    if (!get_instance_function)
        return pd_fail(PERIDOT_ERROR_DEVICE,
                       "no Vulkan loader found (libvulkan.so.1): install the package libvulkan1 and a driver");
    PFN_vkEnumerateInstanceVersion get_version =
        (PFN_vkEnumerateInstanceVersion)get_instance_function(NULL, "vkEnumerateInstanceVersion");
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get_instance_function(NULL, "vkCreateInstance");
    uint32_t version = 0;
    if (!create || !get_version || get_version(&version) != VK_SUCCESS || version < VK_API_VERSION_1_2)
        return pd_fail(PERIDOT_ERROR_DEVICE, "the Vulkan loader is older than 1.2");
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "peridot", .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &application};
    /* Devices with less than all of Vulkan (MoltenVK, KosmicKrisp) are listed only for those who ask. */
    const char *portability = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
    bool has_portability;
    PD_TRY(has_extension(&has_portability, portability));
    if (has_portability) {
        info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
        info.enabledExtensionCount = 1;
        info.ppEnabledExtensionNames = &portability;
    }
    VkResult result = create(&info, NULL, out);
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER || result == VK_ERROR_INITIALIZATION_FAILED)
        return pd_fail(PERIDOT_ERROR_DEVICE,
                       "no Vulkan driver found: install one for your GPU, or mesa-vulkan-drivers for a software "
                       "device");
    return result == VK_SUCCESS ? PERIDOT_OK : pd_vk_fail(result, "vkCreateInstance");
}

peridot_status pd_instance_open(struct pd_instance *out)
{
    *out = (struct pd_instance){0};
    PD_TRY(create_instance(&out->handle));
#define LOAD(name) out->name = (PFN_##name)get_instance_function(out->handle, #name);
    PD_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
    return PERIDOT_OK;
}

void pd_instance_close(struct pd_instance *instance)
{
    if (instance->handle) instance->vkDestroyInstance(instance->handle, NULL);
    *instance = (struct pd_instance){0};
}

void pd_device_functions_load(struct pd_device_functions *out, const struct pd_instance *instance, VkDevice device)
{
#define LOAD(name) out->name = (PFN_##name)instance->vkGetDeviceProcAddr(device, #name);
    PD_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
}
