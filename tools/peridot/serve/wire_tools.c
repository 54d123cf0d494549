/* What the page asks about tools, and nobody else (access.c): POST /tools/list is which there are, and POST /tools/call
 * carries a call out. Both answer on the threads of tools.c. */
#include "tools.h"
#include "wire.h"
#include "../os.h"
#include "../toolbox/toolbox.h"

#include <stdlib.h>
#include <string.h>

static bool list(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const struct cmd_toolbox *toolbox = job->server->toolbox;
    char *text = NULL;
    size_t size = 0;
    FILE *file = cmd_memory_open(&text, &size);
    (void)vocab, (void)root;
    if (file) {
        fprintf(file, "{\"tools\":%s,\"about\":", cmd_toolbox_json(toolbox));
        cmd_toolbox_write_about(file, toolbox);
        fputc('}', file);
    }
    if (file && cmd_memory_close(file, &text, &size)) serve_put(out, text, size);
    else out->failed = true;
    free(text);
    return true;
}

static bool is_stopped(void *user)
{
    struct serve_job *job = user;
    return serve_tools_ends(job->server->tools, job);
}

static bool is_text(yyjson_val *value)
{
    return yyjson_is_str(value) && yyjson_get_len(value) == strlen(yyjson_get_str(value));
}

static bool call(struct serve_buffer *out, struct serve_job *job, const peridot_vocab *vocab, yyjson_val *root)
{
    const struct toolbox_stop stop = {is_stopped, job};
    yyjson_val *name = yyjson_obj_get(root, "name"), *arguments = yyjson_obj_get(root, "arguments");
    struct cmd_tool_result result;
    (void)vocab;
    if (!is_text(name)) return serve_refuse_type(&job->error, "name", "must be a string");
    if (!is_text(arguments)) return serve_refuse_type(&job->error, "arguments", "must be a string, of JSON");
    const struct cmd_tool_call made = {yyjson_get_str(name), yyjson_get_str(arguments), false};
    peridot_status status = cmd_toolbox_call(&result, job->server->toolbox, &made, &stop);
    if (status == PERIDOT_CANCELLED) return serve_refuse(&job->error, 503, NULL, NULL, "the call was stopped");
    if (status != PERIDOT_OK) return serve_refuse_status(&job->error, status);
    yyjson_mut_doc *doc = cmd_json_new();
    yyjson_mut_val *answer = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, answer);
    yyjson_mut_obj_add_val(doc, answer, "result", serve_text(doc, result.text, strlen(result.text)));
    serve_put_json(out, doc);
    cmd_tool_result_free(&result);
    return true;
}

const struct serve_interface serve_wire_list_tools = {
    .id = SERVE_LIST_TOOLS, .path = "/tools/list", .kind = SERVE_TOOLS, .errors = &serve_errors_openai, .read = list};
const struct serve_interface serve_wire_call_tool = {
    .id = SERVE_CALL_TOOL, .path = "/tools/call", .kind = SERVE_TOOLS, .errors = &serve_errors_openai, .read = call};
