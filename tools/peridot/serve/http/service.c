/* peridot serve --install-service: units of systemd for this user that start the server as it was called. They are
 * shown first, and written where nothing else stands. One unit is the server; the other, a socket, starts it with the
 * first request. The server gets the folder and the variables that it has now, so that what its options name and its
 * models are found as they are found here. */
#define _POSIX_C_SOURCE 200809L
#include "http.h"
#include "http_.h"
#include "../../base/base.h"
#include "../../console/console.h"
#include "../../models/models.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct unit {
    const char *name;
    char path[CMD_PATH_SIZE];
    char *text;
    bool there;                /* it is written already */
};

enum { SERVICE, SOCKET, N_UNITS };

/* A word of a unit: quoted, and without what begins a specifier or, where `command`, a variable. */
static void put_word(struct pd_buffer *b, const char *text, bool command)
{
    pd_buffer_print(b, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c == 127) pd_buffer_print(b, "\\x%02x", c);
        else if (c == '"' || c == '\\') pd_buffer_print(b, "\\%c", c);
        else if (c == '%' || (c == '$' && command)) pd_buffer_print(b, "%c%c", c, c);
        else pd_buffer_print(b, "%c", c);
    }
    pd_buffer_print(b, "\"");
}

/* The command as it was called, but for what is said of the service. */
static peridot_status put_command(struct pd_buffer *b)
{
    char path[CMD_PATH_SIZE], *words;
    size_t size;
    if (!cmd_executable_path(path, sizeof path)) return pd_fail(PERIDOT_ERROR_IO, "where this program is is not known");
    PD_TRY(cmd_read_file(&words, &size, "/proc/self/cmdline"));
    pd_buffer_print(b, "ExecStart=");
    put_word(b, path, false);
    for (const char *at = words + strlen(words) + 1; at < words + size; at += strlen(at) + 1) {
        if (strcmp(at, "--install-service") == 0 || strcmp(at, "--yes") == 0) continue;
        pd_buffer_print(b, " ");
        put_word(b, at, true);
    }
    pd_buffer_print(b, "\n");
    free(words);
    return PERIDOT_OK;
}

static void put_environment(struct pd_buffer *b)
{
    static const char *const names[] = {"PERIDOT_DEVICE", "PERIDOT_MODELS", "HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS",
        "LLAMA_CACHE", "XDG_CACHE_HOME", "SSL_CERT_FILE", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"};
    for (size_t i = 0; i < PD_COUNT(names); i++) {
        char text[CMD_PATH_SIZE + 32];
        const char *value = getenv(names[i]);
        if (!value || !*value || strlen(value) >= CMD_PATH_SIZE) continue;
        snprintf(text, sizeof text, "%s=%s", names[i], value);
        pd_buffer_print(b, "Environment=");
        put_word(b, text, false);
        pd_buffer_print(b, "\n");
    }
}

static peridot_status make_service(struct pd_buffer *b)
{
    char folder[CMD_PATH_SIZE];
    if (!getcwd(folder, sizeof folder) || strpbrk(folder, "\n\r\\\"%"))
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "the server cannot be started in this folder, as it has no name, or one "
                       "that a unit cannot say");
    pd_buffer_print(b, "[Unit]\nDescription=Peridot, a server of language models\n"
                    "Documentation=man:peridot-serve(1)\n\n[Service]\n");
    PD_TRY(put_command(b));
    pd_buffer_print(b, "WorkingDirectory=%s\n", folder);
    put_environment(b);
    pd_buffer_print(b, "Restart=on-failure\nTimeoutStopSec=15\nNoNewPrivileges=yes\n\n"
                    "[Install]\nWantedBy=default.target\n");
    return PERIDOT_OK;
}

/* systemd looks up no names. */
static peridot_status make_socket(struct pd_buffer *b, const struct serve_args *args)
{
    const char *host = strcmp(args->host, "localhost") == 0 ? "127.0.0.1" : args->host;
    bool v6 = strchr(host, ':') != NULL;
    if (!*host || host[strspn(host, v6 ? "0123456789abcdefABCDEF:.[]" : "0123456789.")])
        return pd_fail(PERIDOT_ERROR_ARGUMENT, "--install-service needs an address as --host, such as 127.0.0.1, and "
                       "%s is a name", cmd_shown(host));
    bool bare = v6 && *host != '[';
    pd_buffer_print(b, "[Unit]\nDescription=Peridot, started by the first request\n\n"
                    "[Socket]\nListenStream=%s%s%s:%u\n\n[Install]\nWantedBy=sockets.target\n",
                    bare ? "[" : "", host, bare ? "]" : "", args->port);
    return PERIDOT_OK;
}

static peridot_status make_unit(struct unit *u, const struct serve_args *args, bool is_socket)
{
    struct pd_buffer b = {0};
    char below[64], *old = NULL;
    size_t size;
    u->name = is_socket ? "peridot.socket" : "peridot.service";
    peridot_status status = is_socket ? make_socket(&b, args) : make_service(&b);
    u->text = b.data;
    PD_TRY(status);
    if (b.failed) return pd_fail_alloc(b.size, u->name);
    snprintf(below, sizeof below, "/systemd/user/%s", u->name);
    if (!cmd_env_path(u->path, "XDG_CONFIG_HOME", below)) {
        snprintf(below, sizeof below, "/.config/systemd/user/%s", u->name);
        if (!cmd_env_path(u->path, "HOME", below)) return pd_fail(PERIDOT_ERROR_IO, "HOME is not set");
    }
    printf("# %s\n%.*s\n", cmd_shown(u->path), (int)b.size, u->text);
    fflush(stdout);
    if (!cmd_path_exists(u->path)) return PERIDOT_OK;
    status = pd_is_file(u->path) ? cmd_read_file(&old, &size, u->path) : PERIDOT_OK;
    u->there = status == PERIDOT_OK && old && size == b.size && memcmp(old, u->text, size) == 0;
    free(old);
    if (status != PERIDOT_OK || u->there) return status;
    return pd_fail(PERIDOT_ERROR_ARGUMENT, "%s is there already, and is another: it is left alone; remove it first",
                   cmd_shown(u->path));
}

static bool agrees(void)
{
    char answer[16];
    cmd_say("Write them? (yes) ");
    return fgets(answer, sizeof answer, stdin) && strcmp(answer, "yes\n") == 0;
}

static peridot_status write_units(struct unit units[N_UNITS], bool yes)
{
    bool all = units[SERVICE].there && units[SOCKET].there;
    if (!all && !yes && !agrees()) {
        cmd_say("nothing is written\n");
        return PERIDOT_OK;
    }
    for (size_t i = 0; i < N_UNITS; i++)
        if (!units[i].there) PD_TRY(cmd_write_file(units[i].path, units[i].text));
    cmd_say("%s. To have it started by the first request, from each login on:\n"
            "    systemctl --user daemon-reload\n"
            "    systemctl --user enable --now peridot.socket\n"
            "    systemctl --user status peridot.socket peridot.service\n"
            "enable --now peridot.service starts it at once. To take it away:\n"
            "    systemctl --user disable --now peridot.socket peridot.service\n", all ? "both are there" : "written");
    cmd_say("    rm '%s'", cmd_shown(units[SERVICE].path));
    cmd_say(" '%s'\n", cmd_shown(units[SOCKET].path));
    return PERIDOT_OK;
}

peridot_status serve_service_install(const struct serve_args *args)
{
    struct unit units[N_UNITS] = {{0}};
    char manager[CMD_PATH_SIZE];
    if (!cmd_env_path(manager, "XDG_RUNTIME_DIR", "/systemd") || !pd_is_directory(manager))
        return pd_fail(PERIDOT_ERROR_UNSUPPORTED, "no systemd runs here for this user (XDG_RUNTIME_DIR has none): "
                       "--install-service has nobody to start the server");
    peridot_status status = PERIDOT_OK;
    for (size_t i = 0; i < N_UNITS && status == PERIDOT_OK; i++) status = make_unit(&units[i], args, i == SOCKET);
    if (status == PERIDOT_OK) status = write_units(units, args->yes);
    for (size_t i = 0; i < N_UNITS; i++) free(units[i].text);
    return status;
}
