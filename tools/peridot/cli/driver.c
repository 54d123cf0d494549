/* Linux lists every GPU on a PCI bus, whether it has a driver or not: /sys/bus/pci/devices. What is missing is the
 * package with the driver, or, where its file for Vulkan's loader is there, the right to use the device.
 *
 * PERIDOT_SYSTEM_ROOT is a folder that stands for / in all paths here: tests describe other machines with it. */
#define _POSIX_C_SOURCE 200809L
#include "cli_.h"
#include "../models/models.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum distribution { UBUNTU, DEBIAN, FEDORA, ARCH, SUSE, N_DISTRIBUTIONS };

/* As ID and ID_LIKE in /etc/os-release. */
static const char *const distributions[N_DISTRIBUTIONS] = {"ubuntu", "debian", "fedora", "arch", "suse"};

static const struct maker {
    unsigned long id;          /* of PCI */
    const char *name;          /* with its article */
    const char *icd;           /* how the driver's file for Vulkan's loader begins */
    const char *folder, *node; /* of the device file, and how its name begins */
    const char *group;         /* whose users may open it */
    const char *absent;        /* there is none */
    const char *install[N_DISTRIBUTIONS];
    const char *driver;        /* for other distributions */
} makers[] = {
    {0x10de, "an NVIDIA", "nvidia_icd", "/dev", "nvidiactl", "video",
     "there is no /dev/nvidiactl: load the kernel module nvidia, or pass the GPU to the container (--gpus all)",
     {"sudo ubuntu-drivers install", "sudo apt install nvidia-driver (in non-free)",
      "sudo dnf install akmod-nvidia (of RPM Fusion)", "sudo pacman -S nvidia-utils",
      "sudo zypper install nvidia-gl-G06 (of NVIDIA's repository)"},
     "NVIDIA's driver"},
    {0x1002, "an AMD", "radeon_icd", "/dev/dri", "renderD", "render",
     "there is no /dev/dri/renderD*: load its kernel module, or pass --device /dev/dri to the container",
     {"sudo apt install mesa-vulkan-drivers", "sudo apt install mesa-vulkan-drivers",
      "sudo dnf install mesa-vulkan-drivers", "sudo pacman -S vulkan-radeon", "sudo zypper install libvulkan_radeon"},
     "Mesa's RADV"},
    {0x8086, "an Intel", "intel_", "/dev/dri", "renderD", "render",
     "there is no /dev/dri/renderD*: load its kernel module, or pass --device /dev/dri to the container",
     {"sudo apt install mesa-vulkan-drivers", "sudo apt install mesa-vulkan-drivers",
      "sudo dnf install mesa-vulkan-drivers", "sudo pacman -S vulkan-intel", "sudo zypper install libvulkan_intel"},
     "Mesa's ANV"},
};

static void under_root(char path[CMD_PATH_SIZE], const char *of_system)
{
    const char *root = getenv("PERIDOT_SYSTEM_ROOT");
    snprintf(path, CMD_PATH_SIZE, "%s%s", root ? root : "", of_system);
}

/* The beginning of a small file, "" where it cannot be read. */
static void driver_read_text(char *out, size_t size, const char *path)
{
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(out, 1, size - 1, file) : 0;
    if (file) fclose(file);
    out[n] = 0;
}

/* Looks for a file of the folder that begins so; its name goes into `name`. */
static bool find_beginning(char *name, size_t size, const char *folder, const char *start)
{
    char path[CMD_PATH_SIZE];
    struct dirent *entry;
    bool found = false;
    under_root(path, folder);
    DIR *dir = opendir(path);
    while (dir && !found && (entry = readdir(dir)) != NULL) {
        found = strncmp(entry->d_name, start, strlen(start)) == 0;
        if (found) snprintf(name, size, "%s", entry->d_name);
    }
    if (dir) closedir(dir);
    return found;
}

/* ---- what there is ---- */

/* A number that sysfs says of a device: "0x10de". */
static unsigned long device_number(const char *folder, const char *device, const char *name)
{
    char path[2 * CMD_PATH_SIZE], text[32];
    snprintf(path, sizeof path, "%s/%s/%s", folder, device, name);
    driver_read_text(text, sizeof text, path);
    return strtoul(text, NULL, 16);
}

/* A display controller (PCI class 0x03) of the maker is on the bus. */
static bool has_gpu(const struct maker *maker)
{
    char folder[CMD_PATH_SIZE];
    struct dirent *entry;
    bool found = false;
    under_root(folder, "/sys/bus/pci/devices");
    DIR *dir = opendir(folder);
    while (dir && !found && (entry = readdir(dir)) != NULL)
        found = device_number(folder, entry->d_name, "class") >> 16 == 0x03
             && device_number(folder, entry->d_name, "vendor") == maker->id;
    if (dir) closedir(dir);
    return found;
}

/* Whether `word` is one of those of the line KEY=..., with or without quotes. */
static bool has_word(const char *release, const char *key, const char *word)
{
    size_t n = strlen(key);
    const char *line = release;
    while (line && !(strncmp(line, key, n) == 0 && line[n] == '=')) {
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (!line) return false;
    const char *end = line + strcspn(line, "\n");
    for (const char *at = line + n + 1; at < end;) {
        size_t size = strcspn(at, " \"'\n");
        if (size == strlen(word) && strncmp(at, word, size) == 0) return true;
        at += size + 1;
    }
    return false;
}

static int find_distribution(void)
{
    static const char *const places[] = {"/etc/os-release", "/usr/lib/os-release"};
    static const char *const keys[] = {"ID", "ID_LIKE"};
    char path[CMD_PATH_SIZE], text[4096] = "";
    for (size_t i = 0; i < PD_COUNT(places) && !text[0]; i++) {
        under_root(path, places[i]);
        driver_read_text(text, sizeof text, path);
    }
    for (size_t k = 0; k < PD_COUNT(keys); k++)
        for (int i = 0; i < N_DISTRIBUTIONS; i++)
            if (has_word(text, keys[k], distributions[i])) return i;
    return -1;
}

static bool has_driver(const struct maker *maker)
{
    static const char *const folders[] = {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d",
                                          "/usr/local/share/vulkan/icd.d"};
    char name[256];
    bool found = false;
    for (size_t i = 0; i < PD_COUNT(folders) && !found; i++)
        found = find_beginning(name, sizeof name, folders[i], maker->icd);
    return found;
}

/* ---- what to say ---- */

/* What keeps a driver that is installed from giving Vulkan a device. */
static void explain_driver(char *out, size_t size, const struct maker *maker)
{
    static const char *const variables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    char name[256], of_system[512], path[CMD_PATH_SIZE];
    const char *variable = getenv(variables[0]) ? variables[0] : getenv(variables[1]) ? variables[1] : NULL;
    if (!find_beginning(name, sizeof name, maker->folder, maker->node)) {
        snprintf(out, size, "%s", maker->absent);
        return;
    }
    snprintf(of_system, sizeof of_system, "%s/%s", maker->folder, name);
    under_root(path, of_system);
    if (access(path, R_OK | W_OK) != 0 && errno == EACCES)
        snprintf(out, size, "this user may not open %.200s: sudo usermod -aG %s USER, and log in again", of_system,
                 maker->group);
    else if (variable) snprintf(out, size, "the environment variable %s chooses among drivers", variable);
    else snprintf(out, size, "it does not offer it, and may be too old for it");
}

const char *cmd_driver_advice(void)
{
    static char text[512];
    size_t i = 0;
    while (i < PD_COUNT(makers) && !has_gpu(&makers[i])) i++;
    if (i == PD_COUNT(makers)) return NULL;
    const struct maker *maker = &makers[i];
    int distribution = find_distribution(), size;
    if (!has_driver(maker)) {
        snprintf(text, sizeof text, "this machine has %s GPU; to use it, install its Vulkan driver: %s", maker->name,
                 distribution < 0 ? maker->driver : maker->install[distribution]);
        return text;
    }
    size = snprintf(text, sizeof text, "this machine has %s GPU, whose driver is installed, but ", maker->name);
    explain_driver(text + size, sizeof text - (size_t)size, maker);
    return text;
}
