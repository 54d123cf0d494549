/* What the files of this room share, from the ground up: spellings of bytes, how texts are split, the pieces of a
 * vocabulary and their readers, merging, chats, and what a tokenizer consists of. text.h is for all others. */
#ifndef PD_TEXT_TEXT_PRIVATE_H
#define PD_TEXT_TEXT_PRIVATE_H

#include "base/base.h"
#include "format/format.h"
#include "text/sentencepiece.h"
#include "text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

/* ---- byte level ---- */

/* How byte-level vocabularies spell bytes: as 256 characters that can be seen. The printable ones of Latin-1 stand for
 * themselves, the other 68 bytes, in order, for U+0100 and what follows (a space is U+0120). Source: bytes_to_unicode
 * in encoder.py of openai/gpt-2. */

/* Appends the bytes that a text spells. *spelt is false, and nothing appended, when it has a character that is none of
 * the 256. */
peridot_status pd_byte_level_read(struct pd_buffer *out, bool *spelt, const char *text, size_t size);
/* Appends the spelling of bytes. */
peridot_status pd_byte_level_write(struct pd_buffer *out, const char *bytes, size_t size);

/* ---- infill names ---- */

/* What vocabularies call their control tokens for fill-in-the-middle. */

/* Before the text before the place, before the text after it, and before what stands there. */
enum pd_infill { PD_INFILL_PREFIX, PD_INFILL_SUFFIX, PD_INFILL_MIDDLE, PD_N_INFILL };

struct pd_infill_names {
    const char *marks[PD_N_INFILL];
    const char *ends[4];       /* what ends a middle; NULL: no more */
};

/* Row i; NULL past the last. */
const struct pd_infill_names *pd_infill_names(size_t i);
/* Whether it is the name of such a token, or of one that ends a middle. */
bool pd_infill_is_name(const char *text, size_t size);

/* ---- split ---- */

/* Words of a text by a regular expression, for byte-level vocabularies: each match is a word, and so is what lies
 * between two matches. PCRE2 with Unicode does the matching; published patterns are written for Oniguruma, so what the
 * two read differently is refused or evened out. */

/* Of a digit by itself, and the patterns of GPT-2, Llama 3, Qwen 2, Qwen 3.5, Mistral's tekken, GPT-4o and
 * Seed-Coder. */
extern const char pd_split_digit[], pd_split_gpt2[], pd_split_llama3[], pd_split_qwen2[], pd_split_qwen35[],
    pd_split_tekken[], pd_split_gpt4o[], pd_split_seed_coder[];
/* DeepSeek's, which follow one another: a line break, a word of cased letters (LLM) or of any (Coder), punctuation, the
 * spaces that end a stretch (LLM), other letters. */
extern const char pd_split_break[], pd_split_cased_word[], pd_split_word[], pd_split_wide_marks[], pd_split_marks[],
    pd_split_last_spaces[], pd_split_east_asian[];

struct pd_split;

/* Thread-safe once created. */
peridot_status pd_split_create(struct pd_split **out, const char *pattern);
void pd_split_free(struct pd_split *s);

/* One text being split. */
struct pd_split_run {
    const struct pd_split *split;
    struct pd_split_run *outer;
    void *match, *context;       /* PCRE2's */
    char *copy;                  /* of the text, when PCRE2 must see another one; else NULL */
    const char *text;
    size_t size;
    uint64_t n_steps, max_steps; /* of matching, all words so far together */
    size_t seen;                 /* where the last step began */
    size_t match_begin, match_end;   /* the match found last; match_begin is size when there is none left */
};

/* `text` must be valid UTF-8 and outlive the run; `outer` is the run that it is a word of, which counts the steps of
 * both, or NULL. *out must be ended even on failure. */
peridot_status pd_split_begin(struct pd_split_run *out, const struct pd_split *s, const char *text, size_t size,
                              struct pd_split_run *outer);
/* Where the word that starts at `at` ends; `at` < size goes from word to word. */
peridot_status pd_split_next(size_t *end, struct pd_split_run *r, size_t at);
void pd_split_end(struct pd_split_run *r);

/* ---- nfc ---- */

/* Unicode's normalization form C (UAX 15), which some tokenizers give texts before they split them: canonically
 * equivalent texts become one, in which letters and their accents are one character where there is such a character. */

/* Appends the text, which must be valid UTF-8, in form C. */
peridot_status pd_text_append_nfc(struct pd_buffer *out, const char *text, size_t size);

/* ---- proto ---- */

/* The protobuf wire format, as much as a sentencepiece model needs of it: tagged varints, 32-bit and length-delimited
 * fields (protobuf.dev/programming-guides/encoding). */

enum pd_proto_wire { PD_PROTO_VARINT = 0, PD_PROTO_64 = 1, PD_PROTO_BYTES = 2, PD_PROTO_32 = 5 };

struct pd_proto_reader {
    const uint8_t *data;
    uint64_t size, pos;
};

struct pd_proto_field {
    uint32_t number;
    uint32_t wire;           /* enum pd_proto_wire */
    uint64_t value;          /* VARINT, 64, 32 */
    const uint8_t *bytes;    /* BYTES: `value` of them */
};

/* The next field; false at the end, and at a byte that is no field: then pos < size tells it from the end. */
bool pd_proto_next(struct pd_proto_field *out, struct pd_proto_reader *r);
struct pd_proto_reader pd_proto_message(const struct pd_proto_field *field);

peridot_status pd_proto_write_varint(struct pd_buffer *b, uint32_t number, uint64_t value);
peridot_status pd_proto_write_float(struct pd_buffer *b, uint32_t number, float value);
peridot_status pd_proto_write_bytes(struct pd_buffer *b, uint32_t number, const void *data, size_t size);

/* ---- pieces ---- */

/* The pieces of a vocabulary: what each token id stands for. One table, whether it was read from a sentencepiece model
 * (pieces_model.c), a GGUF file's arrays (pieces_gguf.c) or a tokenizer.json (pieces_json.c); the readers end in
 * pd_pieces_check, so that all which uses the table may trust it. Text to ids is sentencepiece's work
 * (sentencepiece.h), which gets the table back as a model of its own format, or, where there are merges, ours
 * (bpe.c). Ids to text needs nothing but the table. */

/* The numbers are sentencepiece's and GGUF's (they agree). */
enum pd_piece_type {
    PD_PIECE_NORMAL = 1,     /* made from text by merging */
    PD_PIECE_UNKNOWN = 2,    /* exactly one */
    PD_PIECE_CONTROL = 3,    /* never made from plain text; stands for no text */
    PD_PIECE_USER = 4,       /* matched literally in text, before any merging, longest first */
    PD_PIECE_UNUSED = 5,
    PD_PIECE_BYTE = 6        /* "<0x0A>": one byte of a character that no piece covers; all 256 or none */
};

enum { PD_MAX_PATTERNS = 8 };

enum pd_algorithm {
    /* By scores, in sentencepiece; its numbers. */
    PD_ALGORITHM_UNIGRAM = 1, PD_ALGORITHM_BPE = 2, PD_ALGORITHM_WORD = 3, PD_ALGORITHM_CHAR = 4,
    /* By a list of merges, as Hugging Face's tokenizers do it: of the characters of a text whose spaces became U+2581,
     * or of the bytes of words that a pattern finds. */
    PD_ALGORITHM_CHAR_MERGES, PD_ALGORITHM_BYTE_MERGES
};

/* Two pieces side by side become one. */
struct pd_merge {
    uint32_t left, right, made;
};

struct pd_piece {
    size_t offset;           /* of its text in pd_pieces.text; spaces are U+2581 but for BYTE_MERGES: raw bytes */
    uint32_t size;
    float score;             /* of NORMAL: the highest merges first; where there are merges: none */
    uint8_t type;            /* enum pd_piece_type */
    bool lstrip, rstrip;     /* where it is matched, it takes the white space before it, and after it */
    bool stop;               /* generation ends with it */
    bool suppressed;         /* generation never draws it */
};

struct pd_pieces {
    struct pd_piece *piece;
    uint32_t n;
    size_t capacity;
    struct pd_buffer text;
    int32_t bos, eos;        /* -1: none */
    uint32_t n_suppressed;
    bool no_bos;             /* the tokenizer's configuration wants none before plain text; chats have theirs */
    int32_t end;             /* whole texts end with it; -1: with nothing */
    bool dummy_prefix;       /* a space is put before the first text */
    bool prefix_each;        /* and before each stretch after a control token; CHAR_MERGES: after an added token */
    bool prefix_unless_space;   /* but not where a space is there already */
    bool strip_prefix;       /* and taken away from the first text when decoding */
    enum pd_algorithm algorithm;
    bool remove_spaces;      /* sentencepiece drops spaces at the ends and repeated ones, and puts the prefix itself */
    /* CHAR_MERGES and BYTE_MERGES: */
    struct pd_merge *merges; /* first the most wanted */
    uint32_t n_merges;
    bool whole_words;        /* a word that is a piece is that piece, whatever the merges say ("ignore_merges") */
    bool split_spaces;       /* CHAR_MERGES: nothing merges across the start of a space */
    bool nfc;                /* BYTE_MERGES: text is brought into Unicode's form C first */
    /* BYTE_MERGES: regular expressions that split words, each what those before it left; NUL-terminated */
    char *patterns[PD_MAX_PATTERNS];
    uint32_t n_patterns;
    bool drops_between;      /* what they do not match is no word, and dropped */
};

/* Where a stretch of plain text is: within a text, as after tokens that a model wrote; after a control token, or an
 * added one; or at the beginning. */
enum pd_text_place { PD_PLACE_WITHIN, PD_PLACE_AFTER_CONTROL, PD_PLACE_FIRST };

/* A dummy prefix belongs there. */
static inline bool pd_pieces_puts_prefix(const struct pd_pieces *p, enum pd_text_place place)
{
    return p->dummy_prefix && (place == PD_PLACE_FIRST || (place == PD_PLACE_AFTER_CONTROL && p->prefix_each));
}

/* From the bytes of a sentencepiece ModelProto (tokenizer.model), from tokenizer.ggml.* of a GGUF, and from the bytes
 * of a tokenizer.json. What Peridot does not know (another algorithm, a step that changes the text) is refused by name.
 * *out must be freed even on failure. */
peridot_status pd_pieces_read_model(struct pd_pieces *out, const uint8_t *data, uint64_t size);
peridot_status pd_pieces_read_gguf(struct pd_pieces *out, const struct pd_checkpoint *c);
peridot_status pd_pieces_read_json(struct pd_pieces *out, const uint8_t *data, uint64_t size);
/* An id under a key of a GGUF; -1 when the key is absent, or says -1 (some files write that as "none"). */
peridot_status pd_pieces_read_gguf_id(int32_t *out, const struct pd_pieces *p, const struct pd_checkpoint *c,
                                      const char *key);
void pd_pieces_free(struct pd_pieces *p);

/* The same pieces as a ModelProto for sentencepiece, without dummy prefix (see tokenizer.c; but see remove_spaces) and
 * with control pieces that no text can make. */
peridot_status pd_pieces_write_model(struct pd_buffer *out, const struct pd_pieces *p);

const char *pd_pieces_text(const struct pd_pieces *p, uint32_t id);
/* The id of a piece by its text, -1 when there is none. A linear search: for opening, not for encoding. */
int32_t pd_pieces_find(const struct pd_pieces *p, const char *text, size_t size);
/* What comes before the end of a line and what comes after it are encoded independently: line breaks are known, and no
 * piece has one beside another character. */
bool pd_pieces_lines_apart(const struct pd_pieces *p);
/* The same if it is a control piece, else -1. */
int32_t pd_pieces_find_control(const struct pd_pieces *p, const char *text, size_t size);
/* It has a name that only markers have: of turns, calls and thoughts, "<|channel>". */
bool pd_pieces_is_marker(const struct pd_pieces *p, uint32_t id);
/* "<unused0>": a piece that no text of the training had. */
bool pd_pieces_is_reserve(const struct pd_pieces *p, uint32_t id);
/* Ids beyond the pieces are ignored: files of models with padded vocabularies name some. */
void pd_pieces_mark_stop(struct pd_pieces *p, int64_t id);
void pd_pieces_suppress(struct pd_pieces *p, int64_t id);

/* For the readers, which set the algorithm first. The text of a NORMAL piece of BYTE_MERGES is in the spelling of
 * byte levels; one that is not can never be made from text, and becomes UNUSED. */
peridot_status pd_pieces_add(struct pd_pieces *p, const char *text, uint64_t size, double score, int64_t type);
peridot_status pd_pieces_add_pattern(struct pd_pieces *p, const char *pattern);   /* copied */
/* "<0x0A>": neither sentencepiece nor Hugging Face's byte_fallback accepts another spelling. */
bool pd_pieces_is_byte_name(const char *text, size_t size);
/* Plain text can become it. */
bool pd_pieces_is_plain(const struct pd_pieces *p, uint32_t id);
bool pd_pieces_has_bytes(const struct pd_pieces *p);
bool pd_pieces_by_merges(const struct pd_pieces *p);
peridot_status pd_pieces_check(struct pd_pieces *p);

/* ---- special ---- */

/* Pieces of some types, sorted, to find them in text and by name: the control pieces of a vocabulary, and the
 * user-defined ones where sentencepiece does not look for them. */

struct pd_special {
    uint32_t *ids;    /* by text */
    uint32_t n;
    bool starts[256];   /* bytes that some piece begins with */
};

/* What stands for no text. */
enum { PD_SPECIAL_CONTROL = 1 << PD_PIECE_CONTROL | 1 << PD_PIECE_UNKNOWN, PD_SPECIAL_USER = 1 << PD_PIECE_USER };

/* types: bits 1 << enum pd_piece_type. */
peridot_status pd_special_create(struct pd_special *out, const struct pd_pieces *p, unsigned types);
void pd_special_free(struct pd_special *s);
/* The longest piece that the text begins with: its size, and *id; 0 when there is none. */
size_t pd_special_match(int32_t *id, const struct pd_special *s, const struct pd_pieces *p, const char *text,
                        size_t size);
/* Bytes of white space at the end of the text before a matched piece, and at the start of that after it, which the
 * piece takes. escaped: of a text whose spaces became U+2581, which is none in a text as people wrote it. */
size_t pd_special_before(const struct pd_pieces *p, int32_t id, const char *text, size_t size, bool escaped);
size_t pd_special_after(const struct pd_pieces *p, int32_t id, const char *text, size_t size, bool escaped);
/* The id of the piece with this very text; -1 when there is none. */
int32_t pd_special_find(const struct pd_special *s, const struct pd_pieces *p, const char *name);

/* ---- piece index ---- */

/* Pieces by their text, for tokenizers that merge by a list: a hash table over the table of pieces. */

struct pd_piece_index {
    uint32_t *slots;      /* id + 1; 0: free */
    uint32_t mask;        /* number of slots - 1 */
    struct pd_hash_key key;
};

/* Of BYTE_MERGES only what merges can make (NORMAL), since the others' text is in another spelling; else of all pieces.
 * Two pieces with one text are refused. *out must be freed even on failure. */
peridot_status pd_piece_index_create(struct pd_piece_index *out, const struct pd_pieces *p);
void pd_piece_index_free(struct pd_piece_index *x);
/* -1: none. */
int32_t pd_piece_index_find(const struct pd_piece_index *x, const struct pd_pieces *p, const char *text, size_t size);

/* ---- merger ---- */

/* Byte-pair encoding proper: a row of symbols, of which the pair with the best merge becomes one, until no pair has
 * any. The symbols are a linked list and the candidates a heap, so n symbols take n log n whatever they are. Of equal
 * merges the leftmost comes first, as in Hugging Face's tokenizers. */

struct pd_merge_slot {
    uint32_t left, right, made;
    uint32_t rank;               /* UINT32_MAX: free */
};

struct pd_merge_table {
    struct pd_merge_slot *slots;
    uint32_t mask;
    struct pd_hash_key key;
};

/* One pair twice is refused. *out must be freed even on failure. */
peridot_status pd_merge_table_create(struct pd_merge_table *out, const struct pd_pieces *p);
void pd_merge_table_free(struct pd_merge_table *t);

/* What merging needs, kept from word to word. Zero-initialise ({0}). */
struct pd_merge_row {
    struct pd_symbol *symbols;
    struct pd_candidate *heap;
    uint32_t n, n_heap;
    size_t capacity, heap_capacity;
    uint32_t last_rank;   /* of the last merge; UINT32_MAX: there was none */
};

void pd_merge_row_free(struct pd_merge_row *row);
/* Appends a symbol. */
peridot_status pd_merge_row_push(struct pd_merge_row *row, uint32_t id);
/* Merges the row, appends the ids to *out, and empties the row. */
peridot_status pd_merge_row_finish(struct pd_ids *out, struct pd_merge_row *row, const struct pd_merge_table *t);

/* ---- merges ---- */

/* The merges of a vocabulary, from the pairs of texts that files list, into pd_pieces.merges. A pair must name pieces
 * and make a piece. A pair with a control or byte piece in it is left out: plain text must never make one. Merges of
 * characters become scores at the end. */

struct pd_merge_reader {
    struct pd_pieces *pieces;
    struct pd_piece_index index;
    struct pd_buffer bytes;       /* of the pair at hand */
    size_t capacity;
    uint32_t n_read;
    uint32_t made;                     /* by the pair before, and often by the next one, too; UINT32_MAX: none */
};

/* `p` is complete but for the merges. *out must be ended even on failure. */
peridot_status pd_merges_begin(struct pd_merge_reader *out, struct pd_pieces *p);
/* Adds one pair, given as two texts, or as one with a space between them ("t he"). */
peridot_status pd_merges_add(struct pd_merge_reader *r, const char *left, size_t left_size, const char *right,
                             size_t right_size);
peridot_status pd_merges_add_line(struct pd_merge_reader *r, const char *line, size_t size);
/* After the last one, or a failure (status): frees what the reader needed. Gives the status, or its own. */
peridot_status pd_merges_end(struct pd_merge_reader *r, peridot_status status);

/* ---- bpe ---- */

/* Text to ids for vocabularies with merges, in the steps of Hugging Face's tokenizers: user-defined pieces are cut out
 * of the text first, then each stretch between them is either merged by characters (CHAR_MERGES), or split into words
 * that are merged by bytes (BYTE_MERGES). One difference: with CHAR_MERGES, spaces
 * become U+2581 before anything else, as in sentencepiece, so that Gemma's pieces for runs of spaces are found, and a
 * tokenizer.json gives the ids that its tokenizer.model gives. (Hugging Face's own code merges spaces instead; runs of
 * more than 31 then come out in other parts than those that Gemma was trained on.) Thread-safe once created. */

struct pd_bpe;

/* `p` must be complete, and outlives *out. */
peridot_status pd_bpe_create(struct pd_bpe **out, const struct pd_pieces *p);
void pd_bpe_free(struct pd_bpe *b);
/* Appends the ids of plain text, which some vocabularies put a space before. Malformed UTF-8 counts as U+FFFD. */
peridot_status pd_bpe_encode(struct pd_ids *out, const struct pd_bpe *b, const char *text, size_t size,
                             enum pd_text_place place);

/* Some characters are nothing to it. */
bool pd_bpe_drops(const struct pd_bpe *b);

/* ---- scores ---- */

/* A list of merges of characters as what files for sentencepiece take: a score for each piece. */

/* scores [p->n]: the lowest of all is that of single characters, and of pieces that no merging makes. p is CHAR_MERGES
 * and complete. */
peridot_status pd_scores_from_merges(float *scores, const struct pd_pieces *p);

/* ---- json steps ---- */

/* The steps around the model in a tokenizer.json: what happens to a text before merging (normalizer, pre_tokenizer), to
 * ids afterwards (post_processor), and to pieces when decoding (decoder). Known steps set fields; any other is refused
 * by name. Source: the serialised forms of Hugging Face's tokenizers. */

struct pd_json_steps {
    bool byte_level;             /* pre_tokenizer ByteLevel: merges are of bytes */
    bool nfc;                    /* as in pd_pieces */
    bool escape;                 /* spaces become U+2581 */
    bool prefix, prefix_each, prefix_unless_space, split_spaces, strip_prefix;   /* as in pd_pieces */
    bool byte_decoder, space_decoder;
    const char *patterns[PD_MAX_PATTERNS];   /* as in pd_pieces */
    uint32_t n_patterns;
    bool drops_between;
    const char *bos;             /* the piece that the template begins with; NULL: none */
    const char *end;             /* and that it ends with */
};

/* Strings are borrowed from the document. */
peridot_status pd_json_steps_read(struct pd_json_steps *out, yyjson_val *root);

/* ---- pre ---- */

/* What GGUF's tokenizer.ggml.pre stands for: of the steps before merging, files keep only this name. */

struct pd_pre {
    const char *name;
    const char *patterns[PD_MAX_PATTERNS];   /* as in pd_pieces; NULL after the last */
    bool whole_words, nfc;   /* as in pd_pieces */
    bool no_bos;             /* unless tokenizer.ggml.add_bos_token says so */
};

/* NULL: not known. */
const struct pd_pre *pd_pre_find(const char *name, size_t size);
/* The name to write for a byte-level vocabulary; NULL: there is none. */
const char *pd_pre_name(const struct pd_pieces *p);
/* "gpt-2", "qwen2", ...: those that users have. */
const char *pd_pre_known(char *out, size_t size);

/* ---- chat ---- */

/* Chat templates as data: a row per family says how a conversation becomes a prompt. Files carry their template as a
 * Jinja program; Peridot does not run it, but recognises whose it is: by its hash where it is a published one, else by
 * a mark that it contains. What a row gives is, id for id, what its published programs give with
 * add_generation_prompt. */

enum pd_chat_kind {
    PD_CHAT_END,      /* of the parts */
    PD_CHAT_BOS,
    PD_CHAT_EOS,
    PD_CHAT_PIECE,    /* a control piece, by its text */
    PD_CHAT_TEXT,     /* plain text of the template */
    PD_CHAT_CONTENT   /* the message, trimmed; always encoded as plain text, so that nobody forges a turn */
};

struct pd_chat_part {
    enum pd_chat_kind kind;
    const char *text;
};

enum pd_chat_role { PD_CHAT_SYSTEM, PD_CHAT_USER, PD_CHAT_ASSISTANT, PD_CHAT_N_ROLES };

/* Where the text of a first message of the system goes. */
enum pd_chat_system {
    PD_CHAT_SYSTEM_TURN,     /* a turn like the others'; there may be more of them */
    PD_CHAT_SYSTEM_BLOCK,    /* the row's `block`, which is there even without such a message; later ones are turns */
    PD_CHAT_SYSTEM_JOINED    /* before the first user's text, between system_begin and system_end; only once, and turns
                              * alternate */
};

struct pd_chat {
    const char *name;
    const char *mark;                /* what the family's Jinja template contains, and no row's above; NULL: none */
    uint64_t published[2];           /* pd_chat_hash of the published ones; 0: none */
    const char *needs;               /* a piece that the vocabulary must have; NULL: those of the turns will do */
    const char *stops[3];            /* the pieces that end the model's turn, beside eos */
    enum pd_chat_system system;
    const char *system_begin, *system_end;
    bool trim_joined;                /* a user's text is trimmed after the system's was put before it, not by itself */
    bool untrimmed;                  /* messages are taken as they are */
    bool joins_replies;              /* a message of the model's after another has no mark before it */
    struct pd_chat_part begin[2];    /* first of all */
    struct pd_chat_part block[8];    /* of SYSTEM_BLOCK; of others the system's turn that has the model think */
    struct pd_chat_part turns[PD_CHAT_N_ROLES][7];
    struct pd_chat_part between[2];  /* before a turn that others come before, unless it is the model's without marks */
    struct pd_chat_part open[5];     /* at the end: the model's turn */
    const char *thinks[PD_N_THOUGHT_MARKS];   /* the marks of a thought in the model's turn; NULL: none */
    /* After `open` where the model is not to think: of programs that contain the mark, as those of some sizes do. */
    const char *no_thought_mark;
    struct pd_chat_part no_thought[4];
};

/* Of a Jinja program, whatever its comments and its white space outside of quotes. */
uint64_t pd_chat_hash(const char *jinja, size_t size);
/* Whether the row stands for a published program of this hash. */
bool pd_chat_is_published(const struct pd_chat *chat, uint64_t hash);
/* By a program's mark: NULL when it is of no family in the table, or the vocabulary lacks a piece of the family's. */
const struct pd_chat *pd_chat_by_template(const char *jinja, size_t size, const struct pd_special *s,
                                          const struct pd_pieces *p);
/* For files without a template: a model whose name says that it was tuned to instructions ("gemma-2-2b-it"), and whose
 * vocabulary has a family's pieces. */
const struct pd_chat *pd_chat_by_name(const char *name, size_t size, const struct pd_special *s,
                                      const struct pd_pieces *p);
/* A row by its own name, which the caller typed: fails when there is none, or the vocabulary lacks its pieces. */
peridot_status pd_chat_get(const struct pd_chat **out, const char *name, const struct pd_special *s,
                           const struct pd_pieces *p);
/* Whether the row's `no_thought` is the program's, too. */
bool pd_chat_has_no_thought(const struct pd_chat *chat, const char *jinja, size_t size);
/* The marks of thoughts, of the family that the vocabulary fits or the usual ones; -1 where it has none. True: a
 * thought's first line is its name. */
struct pd_thought_header {
    const char *piece, *text;      /* a control token, or "", and what follows it */
};
bool pd_chat_find_thoughts(int32_t ids[PD_N_THOUGHT_MARKS], struct pd_thought_header *header,
                           const struct pd_special *s, const struct pd_pieces *p);
/* Marks every family's end of turn that the vocabulary has as a stop. */
void pd_chat_mark_stops(struct pd_pieces *p, const struct pd_special *s);

/* ---- infill ---- */

/* Fill-in-the-middle: the control tokens between which a model gets the text before a place and the text after it, so
 * that what it writes next is what stands there. Vocabularies have them under a few names, which are a table. */

/* By their names, and those that end a middle become stops. All are -1 where the vocabulary lacks one. */
void pd_infill_find(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_special *s);
/* The same by the keys of a GGUF file. Only control pieces count. */
peridot_status pd_infill_read_gguf(int32_t ids[PD_N_INFILL], struct pd_pieces *p, const struct pd_checkpoint *c);

/* ---- program messages ---- */

/* Messages as template programs want them: what one takes makes another fail, or is left out by it. Which wants a
 * program has is known by what its text contains. */

#define PD_THOUGHT_BLOCK "block['thinking']"   /* in programs that write thoughts of past turns */

/* Again, it changes nothing. False: there is no memory. */
bool pd_program_suit_messages(struct pd_messages *m, const char *jinja);
/* The arguments of all calls become text, as json.dumps writes it. */
peridot_status pd_program_write_arguments(struct pd_messages *m);

/* ---- tokenizer private ---- */

/* What a tokenizer consists of, for the files that share it: tokenizer_open.c fills it and writes it to a file,
 * tokenizer.c encodes and decodes, tokenizer_chat.c and tokenizer_program.c encode conversations. Once open it never
 * changes, so that any thread may use it. */

struct pd_tokenizer {
    struct pd_pieces pieces;
    struct pd_special special;
    /* Plain text to ids: */
    struct pd_sentencepiece *sentencepiece;   /* NULL: the vocabulary has merges */
    struct pd_bpe *bpe;                       /* NULL: it has scores */
    size_t longest;                /* bytes of text that a token stands for at most; 0: any number */
    const struct pd_chat *chat;    /* NULL: none */
    peridot_template_origin chat_origin;
    bool no_thought;               /* the files' template says so in so many words where the model is not to think */
    int32_t thoughts[PD_N_THOUGHT_MARKS];   /* -1: the model has none */
    struct pd_ids thought_header;  /* where headers are told apart */
    bool thoughts_named;           /* their first line is a name */
    bool channels;                 /* as gpt-oss's: a header ends in a control token and the name of a channel */
    int32_t infill[PD_N_INFILL];   /* -1: the vocabulary has no tokens for fill-in-the-middle */
    struct pd_buffer jinja;   /* the files' template, terminated; data NULL: none */
    struct pd_template *program;   /* it, to be run; NULL: there is none, or it is no program that can be run */
    struct pd_buffer tools_jinja;   /* the one that they call tool_use: of conversations with tools, */
    struct pd_template *tools_program;   /* which needs a program beside it for others; NULL: none that can be run */
    char program_error[256];       /* why it cannot be run; "": it can, or there is none */
    bool published;                /* it is that for which `chat` stands */
};

/* Appends the ids of text without control tokens. */
peridot_status pd_tokenizer_encode_plain(struct pd_ids *out, const struct pd_tokenizer *t, const char *text,
                                         size_t size, enum pd_text_place place);
/* Hands over what was made, or frees it. */
peridot_status pd_tokenizer_finish_ids(int32_t **out, size_t *n, struct pd_ids *ids, peridot_status status);

/* How a vocabulary's models write an image: `marker` is what templates have for one. `around` is plain text. */
struct pd_image_marks {
    int32_t marker, begin, end;
    const char *around;
    bool framed;   /* templates write begin and end themselves */
};
/* False: the vocabulary has no such tokens. */
bool pd_tokenizer_image_marks(struct pd_image_marks *out, const struct pd_tokenizer *t);
/* Puts an image and its crops after `plain`, text that is yet to be encoded, which then has only what comes after
 * them. */
peridot_status pd_tokenizer_put_image(struct pd_ids *out, struct pd_buffer *plain, const struct pd_tokenizer *t,
                                      const struct pd_image_marks *marks, const struct pd_chat_image *image,
                                      enum pd_text_place place);

/* By the files' program. */
peridot_status pd_tokenizer_run_program(struct pd_ids *out, const struct pd_tokenizer *t,
                                        const struct pd_chat_prompt *c);
/* It can be told to have the model think. */
bool pd_tokenizer_program_thinks(const struct pd_tokenizer *t);

/* The last step of opening a tokenizer, which is zeroed at first and has its pieces: all that follows from them. */
peridot_status pd_tokenizer_build(struct pd_tokenizer *t);

#endif
