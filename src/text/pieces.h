/* The pieces of a vocabulary: what each token id stands for. One table, whether it was read from a sentencepiece model
 * (pieces_model.c), a GGUF file's arrays (pieces_gguf.c) or a tokenizer.json (pieces_json.c); the readers end in
 * pd_pieces_check, so that all which uses the table may trust it. Text to ids is sentencepiece's work
 * (sentencepiece.h), which gets the table back as a model of its own format, or, where there are merges, ours
 * (bpe.h). Ids to text needs nothing but the table. */
#ifndef PD_TEXT_PIECES_H
#define PD_TEXT_PIECES_H

#include "format/checkpoint.h"
#include "text/buffer.h"

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
    struct pd_text_buffer text;
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
    bool nfc;                /* BYTE_MERGES: text is brought into Unicode's form C first (nfc.h) */
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
peridot_status pd_pieces_write_model(struct pd_text_buffer *out, const struct pd_pieces *p);

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
 * byte_level.h; one that is not can never be made from text, and becomes UNUSED. */
peridot_status pd_pieces_add(struct pd_pieces *p, const char *text, uint64_t size, double score, int64_t type);
peridot_status pd_pieces_add_pattern(struct pd_pieces *p, const char *pattern);   /* copied */
/* "<0x0A>": neither sentencepiece nor Hugging Face's byte_fallback accepts another spelling. */
bool pd_pieces_is_byte_name(const char *text, size_t size);
/* Plain text can become it. */
bool pd_pieces_is_plain(const struct pd_pieces *p, uint32_t id);
bool pd_pieces_has_bytes(const struct pd_pieces *p);
bool pd_pieces_by_merges(const struct pd_pieces *p);
peridot_status pd_pieces_check(struct pd_pieces *p);

#endif
