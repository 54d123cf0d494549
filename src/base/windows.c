/* What map.c, posix.c, posix.c and writer.c are elsewhere, for Windows. Wine runs it (.ci/windows); no Windows
 * machine has been at hand. Paths are in the process's code page, which is UTF-8 by the command's manifest. A mapping
 * of a file whose disk fails ends the process here, as there is no SIGBUS; a file that is open cannot be truncated. */
#include "base/base.h"

#include <errno.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <windows.h>
/* After windows.h. */
#include <bcrypt.h>
#include <psapi.h>

static peridot_status fail_path(const char *path, const char *what)
{
    char why[256];
    DWORD error = GetLastError();
    DWORD n = FormatMessageA(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, NULL, error, 0, why,
                             sizeof why, NULL);
    while (n && strchr("\r\n. ", why[n - 1])) n--;
    if (!n) return pd_fail(PERIDOT_ERROR_IO, "%s: %s (error %lu)", path, what, error);
    return pd_fail(PERIDOT_ERROR_IO, "%s: %s: %.*s", path, what, (int)n, why);
}

/* ---- files that are read ---- */

/* To be freed. Functions that take the code page's names stop at MAX_PATH, whatever the manifest says. */
static wchar_t *wide(const char *path)
{
    int n = MultiByteToWideChar(CP_ACP, 0, path, -1, NULL, 0);
    wchar_t *out = n > 0 ? malloc((size_t)n * sizeof *out) : NULL;
    if (out) MultiByteToWideChar(CP_ACP, 0, path, -1, out, n);
    return out;
}

static HANDLE windows_open_file(const char *path)
{
    wchar_t *name = wide(path);
    HANDLE file = name ? CreateFileW(name, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL,
                                     NULL) : INVALID_HANDLE_VALUE;
    DWORD error = GetLastError();
    free(name);
    SetLastError(error);
    return file;
}

peridot_status pd_map_open(struct pd_map *out, const char *path)
{
    LARGE_INTEGER size;
    *out = (struct pd_map){0};
    if (pd_is_directory(path)) return pd_fail(PERIDOT_ERROR_IO, "%s: not a regular file", path);
    HANDLE file = windows_open_file(path), mapping = NULL;
    if (file == INVALID_HANDLE_VALUE || !GetFileSizeEx(file, &size)) return fail_path(path, "cannot be opened");
    if (size.QuadPart) mapping = CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
    CloseHandle(file);
    if (!size.QuadPart) return PERIDOT_OK;
    const void *data = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
    if (mapping) CloseHandle(mapping);
    if (!data) return fail_path(path, "cannot be mapped");
    *out = (struct pd_map){.data = data, .size = (uint64_t)size.QuadPart};
    return PERIDOT_OK;
}

/* A private mapping is as good as a copy here: what is open cannot be changed by others. */
peridot_status pd_map_read(struct pd_map *out, const char *path)
{
    PD_TRY(pd_map_open(out, path));
    if (out->size <= PD_MAP_READ_MAX) return PERIDOT_OK;
    pd_map_close(out);
    return pd_fail(PERIDOT_ERROR_IO, "%s: has more than the %llu bytes that are read of such a file", path,
                   (unsigned long long)PD_MAP_READ_MAX);
}

peridot_status pd_map_check(peridot_status status, const struct pd_map *map, const char *path)
{
    (void)map, (void)path;
    return status;
}

void pd_map_close(struct pd_map *map)
{
    if (map->data) UnmapViewOfFile(map->data);
    *map = (struct pd_map){0};
}

void pd_map_forget(const void *data, uint64_t size)
{
    (void)data, (void)size;
}

/* ---- files that are written: beside their place, and moved there when they are complete ---- */

peridot_status pd_writer_open(struct pd_writer *out, const char *path)
{
    unsigned char random[8];
    size_t size = strlen(path) + sizeof out->temporary;
    if (pd_is_directory(path) || (*path && strchr("/\\", path[strlen(path) - 1]))) {
        *out = (struct pd_writer){.folder = -1};
        return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: it is a folder", path);
    }
    *out = (struct pd_writer){.path = pd_string_copy(path), .name = malloc(size), .folder = -1};
    if (!out->path || !out->name) {
        pd_writer_abort(out);
        return pd_fail_alloc(size, "file name");
    }
    pd_random_bytes(random, sizeof random);
    int n = snprintf(out->temporary, sizeof out->temporary, ".");
    for (size_t i = 0; i < sizeof random; i++) n += snprintf(out->temporary + n, 3, "%02x", random[i]);
    snprintf(out->temporary + n, 5, ".tmp");
    snprintf(out->name, size, "%s%s", path, out->temporary);
    SetLastError(ERROR_PATH_NOT_FOUND);
    if (*path && (out->file = fopen(out->name, "wbx"))) return PERIDOT_OK;
    out->temporary[0] = 0;
    pd_writer_abort(out);
    return fail_path(path, "cannot be written");
}

uint64_t pd_writer_available(const struct pd_writer *w)
{
    char folder[MAX_PATH];
    ULARGE_INTEGER available;
    DWORD size = GetFullPathNameA(w->path, sizeof folder, folder, NULL);
    if (!size || size >= sizeof folder) return UINT64_MAX;
    while (size && folder[size - 1] != '\\') size--;
    folder[size] = 0;
    return GetDiskFreeSpaceExA(folder, &available, NULL, NULL) ? available.QuadPart : UINT64_MAX;
}

peridot_status pd_writer_commit(struct pd_writer *w)
{
    bool ok = fflush(w->file) == 0 && _commit(_fileno(w->file)) == 0;
    ok = fclose(w->file) == 0 && ok;
    w->file = NULL;
    wchar_t *from = wide(w->name), *to = wide(w->path);
    ok = ok && from && to && MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH);
    if (ok) w->temporary[0] = 0;
    peridot_status status = ok ? PERIDOT_OK : fail_path(w->path, "cannot be written");
    free(from);
    free(to);
    pd_writer_abort(w);
    return status;
}

void pd_writer_abort(struct pd_writer *w)
{
    if (w->file) fclose(w->file);
    if (w->name && w->temporary[0]) remove(w->name);
    free(w->path);
    free(w->name);
    *w = (struct pd_writer){0};
}

static bool get_identity(BY_HANDLE_FILE_INFORMATION *out, const char *path)
{
    HANDLE file = windows_open_file(path);
    bool ok = file != INVALID_HANDLE_VALUE && GetFileInformationByHandle(file, out);
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    return ok;
}

/* Files of a folder that is read are not looked for: they are open, and so cannot be replaced. */
peridot_status pd_writer_check(const char *path, const char *source)
{
    BY_HANDLE_FILE_INFORMATION a, b;
    if (!get_identity(&a, path) || !get_identity(&b, source)) return PERIDOT_OK;
    if (a.dwVolumeSerialNumber != b.dwVolumeSerialNumber || a.nFileIndexHigh != b.nFileIndexHigh
        || a.nFileIndexLow != b.nFileIndexLow) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_IO, "%s: cannot be written: it is the file that is read (%s)", path, source);
}

/* ---- private files: a profile's folder is its user's alone already ---- */

peridot_status pd_private_check(const char *folder)
{
    (void)folder;
    return PERIDOT_OK;
}

static peridot_status private_path(char **out, const char *folder, const char *name)
{
    *out = pd_path_join(folder, name);
    return *out ? PERIDOT_OK : pd_fail_alloc(strlen(folder) + strlen(name) + 2, "file name");
}

peridot_status pd_private_read(struct pd_map *out, const char *folder, const char *name, uint64_t most)
{
    char *path;
    *out = (struct pd_map){0};
    PD_TRY(private_path(&path, folder, name));
    peridot_status status = pd_map_read(out, path);
    if (status == PERIDOT_OK && out->size > most) {
        pd_map_close(out);
        status = pd_fail(PERIDOT_ERROR_IO, "%s: not read", path);
    }
    free(path);
    return status;
}

peridot_status pd_private_write(struct pd_writer *out, const char *folder, const char *name)
{
    char *path;
    *out = (struct pd_writer){.folder = -1};
    PD_TRY(pd_make_directory(folder));
    PD_TRY(private_path(&path, folder, name));
    peridot_status status = pd_writer_open(out, path);
    free(path);
    return status;
}

peridot_status pd_private_remove(const char *folder, const char *name)
{
    char *path;
    PD_TRY(private_path(&path, folder, name));
    bool gone = DeleteFileA(path) || GetLastError() == ERROR_FILE_NOT_FOUND || GetLastError() == ERROR_PATH_NOT_FOUND;
    peridot_status status = gone ? PERIDOT_OK : fail_path(path, "cannot be removed");
    free(path);
    return status;
}

/* ---- folders, clocks, memory ---- */

static bool has_mode(const char *path, unsigned type)
{
    struct _stat64 st;
    return _stat64(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

bool pd_is_directory(const char *path) { return has_mode(path, S_IFDIR); }
bool pd_is_file(const char *path) { return has_mode(path, S_IFREG); }

bool pd_make_one_directory(const char *path) { return CreateDirectoryA(path, NULL); }

void pd_path_clean(char *path)
{
    for (char *p = path; (p = strchr(p, '\\'));) *p = '/';
}

void pd_random_bytes(void *out, size_t size)
{
    BCryptGenRandom(NULL, out, (ULONG)size, BCRYPT_USE_SYSTEM_PREFERRED_RNG);
}

double pd_now(void)
{
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&frequency);
    return (double)ticks.QuadPart / (double)frequency.QuadPart;
}

void pd_local_time(struct tm *out)
{
    time_t now = time(NULL);
    localtime_s(out, &now);
}

uint64_t pd_memory_available(void)
{
    MEMORYSTATUSEX status = {.dwLength = sizeof status};
    return GlobalMemoryStatusEx(&status) ? status.ullAvailPhys : UINT64_MAX;
}

uint64_t pd_memory_peak(void)
{
    PROCESS_MEMORY_COUNTERS counters;
    return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.PeakWorkingSetSize : 0;
}

uint32_t pd_n_processors(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwNumberOfProcessors > 1 ? info.dwNumberOfProcessors : 1;
}

pd_function pd_library_function(const char *library, const char *name)
{
    HMODULE handle = LoadLibraryA(library);
    return handle ? (pd_function)GetProcAddress(handle, name) : NULL;
}
