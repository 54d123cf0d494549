/* What a file is that is no model: most often what a download left in the model's place. */
#include "base/base.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

enum { TEXT_MAX = 4096, ZEROS = 64 };

/* How files of other kinds begin. */
static const struct {
    const char *magic;
    uint32_t size;
    const char *sentence;
} magics[] = {
    {"\x1f\x8b", 2, "compressed with gzip: unpack it first (gunzip)"},
    {"PK\3\4", 4, "a zip archive: unpack it first; PyTorch's .bin and .pth files are such archives and are not read, "
                  "download .safetensors or .gguf instead"},
    {"\xfd" "7zXZ", 5, "compressed with xz: unpack it first (unxz)"},
    {"\x28\xb5\x2f\xfd", 4, "compressed with zstd: unpack it first (unzstd)"},
    {"BZh", 3, "compressed with bzip2: unpack it first (bunzip2)"},
    {"7z\xbc\xaf", 4, "a 7z archive: unpack it first"},
    {"Rar!", 4, "a RAR archive: unpack it first"},
    {"lmgg", 4, "a GGML file, the format before GGUF: download the model as GGUF"},
    {"fmgg", 4, "a GGML file, the format before GGUF: download the model as GGUF"},
    {"tjgg", 4, "a GGML file, the format before GGUF: download the model as GGUF"},
};

struct file {
    const uint8_t *data;
    uint64_t size;
    const char *path, *wanted;
};

static peridot_status foreign_fail(const struct file *f, const char *sentence)
{
    return pd_fail(PERIDOT_ERROR_FORMAT, "%s: not %s: it is %s", f->path, f->wanted, sentence);
}

static bool begins(const struct file *f, uint64_t at, const char *text)
{
    size_t n = strlen(text);
    if (f->size < n || at > f->size - n) return false;
    for (size_t i = 0; i < n; i++)
        if (tolower(f->data[at + i]) != (unsigned char)text[i]) return false;
    return true;
}

static peridot_status check_page(const struct file *f)
{
    static const char *const tags[] = {"<!doctype html", "<html", "<head", "<?xml"};
    uint64_t at = begins(f, 0, "\xef\xbb\xbf") ? 3 : 0;   /* a byte order mark */
    while (at < f->size && at < TEXT_MAX && isspace(f->data[at])) at++;
    for (size_t i = 0; i < PD_COUNT(tags); i++)
        if (begins(f, at, tags[i]))
            return foreign_fail(f, "a web page, as a site sends for a link to a page, a login or an error: download "
                                "the file itself (on Hugging Face, the link with /resolve/, not /blob/), or use "
                                "peridot pull");
    return PERIDOT_OK;
}

/* The pointer's third line is "size 12345". */
static peridot_status check_pointer(const struct file *f)
{
    char text[256], sentence[200];
    if (!begins(f, 0, "version https://git-lfs")) return PERIDOT_OK;
    size_t n = (size_t)pd_min(f->size, sizeof text - 1);
    memcpy(text, f->data, n);
    text[n] = 0;
    const char *size = strstr(text, "\nsize ");
    snprintf(sentence, sizeof sentence, "a Git LFS pointer to %llu bytes that were not downloaded: fetch them with "
             "git lfs pull, or download the file itself", size ? strtoull(size + 6, NULL, 10) : 0);
    return foreign_fail(f, sentence);
}

static bool is_text(const struct file *f)
{
    uint32_t code;
    size_t length;
    for (uint64_t i = 0; i < f->size; i += length) {
        if (pd_utf8_next(&code, &length, (const char *)f->data + i, (size_t)(f->size - i)) != PD_UTF8_CHARACTER)
            return false;
        if (pd_utf8_is_control(code) && code != '\t' && code != '\r' && code != '\n') return false;
    }
    return true;
}

/* What a server says in a model's place is short: "Entry not found", {"error": "Unauthorized"}. */
static peridot_status check_answer(const struct file *f)
{
    char line[81] = "", sentence[300];
    if (f->size < 4 || f->size > TEXT_MAX || !is_text(f)) return PERIDOT_OK;
    size_t at = 0, n = 0;
    while (at < f->size && isspace(f->data[at])) at++;
    while (n < sizeof line - 1 && at + n < f->size && f->data[at + n] != '\n') line[n] = (char)f->data[at + n], n++;
    snprintf(sentence, sizeof sentence, "a text of %llu bytes, \"%s\": if a server gave it in place of the file, "
             "check the link, and whether the model asks for a login", (ull)f->size, line);
    return foreign_fail(f, sentence);
}

static peridot_status check_zeros(const struct file *f)
{
    uint64_t i = 0;
    while (i < f->size && i < TEXT_MAX && f->data[i] == 0) i++;
    if (i < ZEROS) return PERIDOT_OK;
    return foreign_fail(f, "zeros at its beginning, as an unfinished download has: download it again");
}

static peridot_status check_beginning(const struct file *f)
{
    if (f->size == 0) return foreign_fail(f, "empty (0 bytes): download it again");
    for (size_t i = 0; i < PD_COUNT(magics); i++)
        if (f->size >= magics[i].size && memcmp(f->data, magics[i].magic, magics[i].size) == 0)
            return foreign_fail(f, magics[i].sentence);
    PD_TRY(check_pointer(f));
    PD_TRY(check_page(f));
    return check_zeros(f);
}

peridot_status pd_foreign_check_text(const uint8_t *data, uint64_t size, const char *path, const char *wanted)
{
    return check_beginning(&(struct file){data, size, path, wanted});
}

peridot_status pd_foreign_check(const uint8_t *data, uint64_t size, const char *path, const char *wanted)
{
    PD_TRY(pd_foreign_check_text(data, size, path, wanted));
    return check_answer(&(struct file){data, size, path, wanted});
}

/* ---- names ---- */

bool pd_name_valid(const char *text, size_t size)
{
    for (size_t i = 0, length; i < size; i += length) {
        uint32_t code;
        if (pd_utf8_next(&code, &length, text + i, size - i) != PD_UTF8_CHARACTER || pd_utf8_is_control(code))
            return false;
    }
    return size > 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct pd_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    if (order) return order;
    return (x->index > y->index) - (x->index < y->index);
}

void pd_names_sort(struct pd_name_index *x)
{
    if (x->n) qsort(x->names, x->n, sizeof *x->names, compare_names);
}

bool pd_names_duplicate(const struct pd_name_index *x, size_t *first, size_t *second)
{
    for (size_t i = 1; i < x->n; i++) {
        if (strcmp(x->names[i - 1].name, x->names[i].name)) continue;
        *first = x->names[i - 1].index;
        *second = x->names[i].index;
        return true;
    }
    return false;
}

size_t pd_names_find(const struct pd_name_index *x, const char *name)
{
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(x->names[middle].name, name);
        if (order == 0) return x->names[middle].index;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return SIZE_MAX;
}
