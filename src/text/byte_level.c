#include "text/byte_level.h"

#include "base/utf8.h"

/* The bytes that don't stand for themselves are 0 to 32, 127 to 160, and 173. */
static int byte_of(uint32_t code)
{
    if ((code > 32 && code < 127) || (code > 160 && code < 256 && code != 173)) return (int)code;
    if (code >= 256 && code <= 256 + 32) return (int)code - 256;
    if (code >= 289 && code <= 289 + 33) return (int)code - 289 + 127;
    return code == 323 ? 173 : -1;
}

static uint32_t code_of(unsigned char byte)
{
    if (byte <= 32) return 256u + byte;
    if (byte >= 127 && byte <= 160) return 289u + byte - 127;
    return byte == 173 ? 323 : byte;
}

peridot_status pd_byte_level_read(struct pd_text_buffer *out, bool *spelt, const char *text, size_t size)
{
    size_t before = out->size, length;
    for (size_t i = 0; i < size; i += length) {
        uint32_t code;
        int byte = pd_utf8_next(&code, &length, text + i, size - i) == PD_UTF8_CHARACTER ? byte_of(code) : -1;
        *spelt = byte >= 0;
        if (!*spelt) {
            out->size = before;
            return PERIDOT_OK;
        }
        PD_TRY(pd_text_append(out, &(char){(char)byte}, 1));
    }
    *spelt = true;
    return PERIDOT_OK;
}

peridot_status pd_byte_level_write(struct pd_text_buffer *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t code = code_of((unsigned char)bytes[i]);
        char two[2] = {(char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};   /* all codes are below U+0800 */
        if (code < 0x80) PD_TRY(pd_text_append(out, &bytes[i], 1));
        else PD_TRY(pd_text_append(out, two, 2));
    }
    return PERIDOT_OK;
}
