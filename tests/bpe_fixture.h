/* Small vocabularies with merges, as tokenizer.json files whose parts a test can replace. */
#ifndef BPE_FIXTURE_H
#define BPE_FIXTURE_H

#include "text_fixture.h"

#include "text/text_.h"

/* Each part is JSON. What ends in a comma must: it goes before other members. */
struct json_parts {
    const char *added, *normalizer, *pre_tokenizer, *post_processor, *decoder;
    const char *model;        /* members before vocab and merges */
    const char *vocab;        /* pieces beside the bytes, with ids from 256 on, or a list of all when !bytes */
    const char *merges;
    bool byte_level;          /* vocab has the 256 bytes in byte-level spelling first */
};

#define LLAMA3_PATTERN "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|" \
                       "\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|" \
                       "\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define SPLIT(pattern) \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"behavior\": \"Isolated\", \"invert\": false}"
#define REMOVED(pattern, invert) \
    "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"" pattern "\"}, \"behavior\": \"Removed\", " \
    "\"invert\": " invert "}"
#define BYTE_LEVEL(regex) \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": " regex "}"
#define PRE(split) "{\"type\": \"Sequence\", \"pretokenizers\": [" split ", " BYTE_LEVEL("false") "]}"
#define ADDED(id, content, special, normalized) \
    "{\"id\": " id ", \"content\": \"" content "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, " \
    "\"normalized\": " normalized ", \"special\": " special "}"
#define TEMPLATE(bos) "{\"type\": \"TemplateProcessing\", \"single\": [" \
                      "{\"SpecialToken\": {\"id\": \"" bos "\", \"type_id\": 0}}, " \
                      "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}]}"

/* Llama 3's steps over a few merges. */
static const struct json_parts byte_parts = {
    .added = ADDED("280", "<|begin|>", "true", "false") ", " ADDED("281", "<|end_of_text|>", "true", "false") ", "
             ADDED("282", "<b>", "false", "false") ", " ADDED("283", "<b><b>", "false", "true"),
    .normalizer = "null", .pre_tokenizer = PRE(SPLIT(LLAMA3_PATTERN)),
    .post_processor = "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, "
                      TEMPLATE("<|begin|>") "]}",
    .decoder = "{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"trim_offsets\": true, \"use_regex\": true}",
    .model = "\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, \"byte_fallback\": false, "
             "\"ignore_merges\": true,",
    .vocab = "\"he\": 256, \"ll\": 257, \"hell\": 258, \"hello\": 259, \"\u0120hello\": 260, \"\u0120t\": 261, "
             "\"\u0120the\": 262, "
             "\"bc\": 263, \"ab\": 264, \"aa\": 265, \"aaaa\": 266, \"xyz\": 267, \"12\": 268, \"123\": 269, "
             "\"\u0120\u0120\": 270, "
             "\"\u010a\u010a\": 271, \"\u00c3\u00a9\": 272, \"34\": 273, \"'s\": 274, \"\u0120\u0120\u0120\": 275, "
             "\"r\u0120\": 276, "
             "\"\u0120\u010a\": 277, \"r\u00e1\": 278, \"\u4e2d\": 279",
    .merges = "[\"h\", \"e\"], [\"l\", \"l\"], [\"he\", \"ll\"], [\"hell\", \"o\"], [\"\u0120\", \"hello\"], "
              "[\"\u0120\", \"t\"], [\"\u0120t\", \"he\"], "
              "\"b c\", \"a b\", \"a a\", \"aa aa\", \"1 2\", \"12 3\", \"\u0120 \u0120\", \"\u010a \u010a\", "
              "\"\u00c3 \u00a9\", \"3 4\", \"' s\", "
              "\"\u0120 \u010a\", \"\u0120\u0120 \u0120\", \"r \u0120\", \"r \u00e1\"",
    .byte_level = true,
};

#define ESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}"
#define UNESCAPE "{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}"
#define PREPEND "{\"type\": \"Prepend\", \"prepend\": \"\u2581\"}"
#define METASPACE(scheme, split) \
    "{\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"prepend_scheme\": \"" scheme "\", \"split\": " split "}"

/* Gemma's steps over a few merges, without byte pieces. */
static const struct json_parts char_parts = {
    .added = ADDED("0", "<unk>", "true", "false") ", " ADDED("1", "<bos>", "true", "false") ", "
             ADDED("2", "\\n", "false", "false") ", " ADDED("3", "\u2581\u2581\u2581", "false", "false") ", "
             ADDED("4", "<start_of_turn>", "false", "false"),
    .normalizer = ESCAPE,
    .pre_tokenizer = "{\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": \"MergedWithPrevious\", "
                     "\"invert\": false}",
    .post_processor = TEMPLATE("<bos>"),
    .decoder = "{\"type\": \"Sequence\", \"decoders\": [" UNESCAPE ", "
               "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]}",
    .model = "\"type\": \"BPE\", \"unk_token\": \"<unk>\", \"fuse_unk\": true, \"byte_fallback\": false,",
    .vocab = "\"<unk>\": 0, \"<bos>\": 1, \"\\n\": 2, \"\u2581\u2581\u2581\": 3, \"<start_of_turn>\": 4, "
             "\"\u2581\": 5, \"h\": 6, \"e\": 7, "
             "\"he\": 8, \"\u2581h\": 9, \"\u2581he\": 10, \"\u00e9\": 11, \"e\u2581\": 12, \"\u2581\u2581\": 13, "
             "\"<\": 14, \"b\": 15, \"o\": 16, "
             "\"s\": 17, \">\": 18, \"<bos\": 19, \"<b\": 20, \"os\": 21",
    .merges = "\"h e\", \"\u2581 h\", \"\u2581 he\", \"\u2581h e\", \"e \u2581\", \"\u2581 \u2581\", \"< b\", "
              "\"o s\", \"<b os\", \"<bos >\"",
};

static inline void put_text(struct pd_buffer *b, const char *text)
{
    assert_int_equal(pd_buffer_add(b, text, strlen(text)), PERIDOT_OK);
}

static inline void put_bytes_vocab(struct pd_buffer *b)
{
    char number[16];
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        put_text(b, "\"");
        if (byte == '"' || byte == '\\') put_text(b, "\\");
        assert_int_equal(pd_byte_level_write(b, &byte, 1), PERIDOT_OK);
        snprintf(number, sizeof number, "\": %d, ", i);
        put_text(b, number);
    }
}

/* To be freed. */
static inline struct pd_buffer json_make(const struct json_parts *p)
{
    struct pd_buffer b = {0};
    const char *const members[][2] = {
        {"{\"version\": \"1.0\", \"added_tokens\": [", p->added}, {"], \"normalizer\": ", p->normalizer},
        {", \"pre_tokenizer\": ", p->pre_tokenizer}, {", \"post_processor\": ", p->post_processor},
        {", \"decoder\": ", p->decoder}, {", \"model\": {", p->model},
    };
    for (size_t i = 0; i < PD_COUNT(members); i++) {
        put_text(&b, members[i][0]);
        put_text(&b, members[i][1]);
    }
    put_text(&b, " \"vocab\": {");
    if (p->byte_level) put_bytes_vocab(&b);
    put_text(&b, p->vocab);
    put_text(&b, "}, \"merges\": [");
    put_text(&b, p->merges);
    put_text(&b, "]}}\n");
    return b;
}

static inline const char *json_write(const struct json_parts *p)
{
    struct pd_buffer b = json_make(p);
    write_file(in_folder("tiny.json"), b.data, b.size);
    free(b.data);
    return in_folder("tiny.json");
}

#endif
