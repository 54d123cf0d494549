/* What tools are made of and what they say, by the first byte: a file that names them ('c'), server-sent events ('e'),
 * a definition of a tool, arguments and a result of MCP ('m', in parts), base64 ('b'). */
#include "harness.h"

#include "base/base.h"
#include "toolbox/toolbox_.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static void check_text(const struct pd_buffer *b)
{
    for (size_t i = 0, n; i < b->size; i += n) {
        n = peridot_utf8_size(b->data + i, b->size - i);
        FUZZ_CHECK(n > 0 && b->data[i]);
    }
}

static void read_config(const uint8_t *data, size_t size)
{
    struct toolbox_config config = {0};
    if (fuzz_ok(toolbox_config_add(&config, fuzz_file("tools.json", data, size))))
        for (size_t i = 0; i < config.n; i++) {
            const struct toolbox_entry *e = &config.entries[i];
            FUZZ_CHECK(e->name && (e->url != NULL) != (e->command.n > 0) && e->timeout_s > 0 && e->max_output > 0);
        }
    toolbox_config_free(&config);
}

static peridot_status take_event(void *user, const char *text, size_t size)
{
    FUZZ_CHECK(size <= MOST);
    return pd_buffer_add(user, text, size);
}

/* However a stream is cut, it says the same. */
static void read_events(const char *text, size_t size)
{
    struct pd_buffer all[2] = {{0}, {0}};
    peridot_status status[2] = {PERIDOT_OK, PERIDOT_OK};
    for (size_t way = 0; way < 2; way++) {
        struct events events = {0};
        size_t step = way ? 1 : size;
        for (size_t i = 0; i < size && status[way] == PERIDOT_OK; i += step)
            status[way] = events_feed(&events, text + i, step, MOST, take_event, &all[way]);
        events_free(&events);
    }
    if (status[0] == PERIDOT_OK && status[1] == PERIDOT_OK)
        FUZZ_CHECK(all[0].size == all[1].size
                   && (!all[0].size || memcmp(all[0].data, all[1].data, all[0].size) == 0));
    for (size_t way = 0; way < 2; way++) pd_buffer_free(&all[way]);
}

static yyjson_doc *read_part(struct fuzz_part *input)
{
    struct fuzz_part part;
    return fuzz_next_part(&part, input) ? yyjson_read((const char *)part.data, part.size, 0) : NULL;
}

static void make_headers(yyjson_val *tool, yyjson_val *arguments)
{
    struct toolbox_texts headers = {0};
    yyjson_val *schema = yyjson_obj_get(tool, "inputSchema");
    const char *name = yyjson_get_str(yyjson_obj_get(tool, "name"));
    if (!name || !yyjson_is_obj(schema) || !yyjson_is_obj(arguments) || mcp_headers_check(schema)) return;
    char *parameters = yyjson_val_write(schema, 0, NULL);
    const struct mcp_tool own = {.name = name, .parameters = parameters};
    if (fuzz_ok(mcp_headers_make(&headers, &own, arguments)))
        for (size_t i = 0; i < headers.n; i++) FUZZ_CHECK(!strpbrk(headers.at[i], "\r\n"));
    toolbox_texts_free(&headers);
    free(parameters);
}

static void add_content(yyjson_val *result)
{
    struct pd_buffer out = {0};
    struct toolbox_texts images = {0};
    FUZZ_CHECK(pd_buffer_add(&out, "", 0) == PERIDOT_OK);
    if (fuzz_ok(mcp_add_content(&out, &images, result))) {
        check_text(&out);
        FUZZ_CHECK(result_cut(&out, 64, 0) == PERIDOT_OK && out.size <= 128);
        check_text(&out);
    }
    toolbox_texts_free(&images);
    pd_buffer_free(&out);
}

static void read_call(struct fuzz_part input)
{
    yyjson_doc *tool = read_part(&input), *arguments = read_part(&input), *result = read_part(&input);
    make_headers(yyjson_doc_get_root(tool), yyjson_doc_get_root(arguments));
    add_content(yyjson_doc_get_root(result));
    yyjson_doc_free(tool), yyjson_doc_free(arguments), yyjson_doc_free(result);
}

static void decode(const char *text, size_t size)
{
    size_t n;
    unsigned char *out = malloc(size / 4 * 3 + 4);   /* as pictures of a request have it */
    FUZZ_CHECK(out);
    if (cmd_base64_decode(out, &n, text, size)) FUZZ_CHECK(n <= size / 4 * 3 + 3);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1;
    if (size < 2) return 0;
    switch (data[0]) {
    case 'c': read_config(data + 1, size - 1); break;
    case 'e': read_events(text, size - 1); break;
    case 'm': read_call((struct fuzz_part){data + 1, size - 1}); break;
    case 'b': decode(text, size - 1); break;
    default: break;
    }
    return 0;
}
