/* Peridot: Gemma and Llama language models on any GPU, through Vulkan compute shaders.
 *
 * This header is what a program that embeds Peridot needs (tests/embed has examples). Five things exist:
 *   model    a loaded file: weights on one device, tokenizer, chat template. Read-only once open; any number of
 *            sessions.
 *   session  what sequences of one model share: the KV cache and the memory to evaluate in. Two sessions never disturb
 *            each other.
 *   sequence one timeline of tokens: its pages of the cache, a position, a sampler. Those of a session go on
 *            independently.
 *   vocab    a tokenizer by itself, needing neither weights nor a device.
 *   file     the metadata and tensors of a model file, without loading them.
 *
 * Errors. What can fail returns a peridot_status; peridot_last_error() then holds one sentence that names the file,
 * tensor, byte or option. It is kept per thread until the next failing call on that thread. Out-parameters come first
 * and are set to NULL (or 0) on failure. The library never prints, exits, aborts or reads the environment.
 *
 * Files. One that is written appears at its path when it is complete, and replaces the one there, whose mode and owner
 * it takes over; other hard links of that keep the old contents. Symbolic links are followed. What cannot be replaced
 * is written in place, as it comes: devices, FIFOs, descriptors of the process (/dev/stdout), mount points.
 *
 * Faults. While files of a model, or a saved sequence, are open, the library has a handler for SIGBUS, which reads of a
 * mapped file raise when it is truncated or its disk fails: the call then returns PERIDOT_ERROR_IO. Every other SIGBUS
 * goes to the handler that was there, which is put back at the end. Threads that call the library must not block
 * SIGBUS. A model that is open has its weights in memory of its own; no other signal is touched.
 *
 * Threads. Models are independent of each other: threads may list devices, and open, use and close models of their own,
 * at once. Sessions of one model may be used from different threads only if the caller serialises the calls (they share
 * the device's queue); a vocab, a grammar and a file are read-only and may be shared freely.
 *
 * Versions. Structs that a program fills begin with their size: set it to sizeof, and a program that was built with an
 * older header runs with a newer library, where what it does not know is 0. Size 0 stands for the struct of version
 * 0.1. A size that the library does not know is refused only where the members that it does not know are set. Structs
 * that the library hands out by pointer get new members at their end. Structs without a size that a program fills do
 * not change.
 *
 * Memory. What comes through `**out` belongs to the caller and goes back through the matching close or free. Models,
 * vocabs, grammars and tools are counted by reference: a session owns its model with the caller, a model its vocab, a
 * grammar what it needs of its vocab, and a sequence with its requests the grammar and a copy of the biases and stop
 * texts that it was given. So each may be closed or freed, from any thread, while others use it; it goes with its last
 * owner. Every other returned pointer is borrowed; its comment says until when. Text is UTF-8; sizes are in bytes,
 * counts begin n_. */
#ifndef PERIDOT_H
#define PERIDOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32) && defined(PERIDOT_BUILD)
#define PERIDOT_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define PERIDOT_API __attribute__((visibility("default")))
#else
#define PERIDOT_API
#endif

/* Of this header. Until 1.0 a new minor version may change the interface. */
#define PERIDOT_VERSION_MAJOR 0
#define PERIDOT_VERSION_MINOR 1
#define PERIDOT_VERSION_PATCH 0
#define PERIDOT_VERSION "0.1.0"

/* Of the library that runs: "0.1.0". */
PERIDOT_API const char *peridot_version(void);

typedef enum peridot_status {
    PERIDOT_OK = 0,
    PERIDOT_ERROR_ARGUMENT,     /* an argument is out of range: a token id, a position, an option's value */
    PERIDOT_ERROR_IO,           /* a file cannot be read or written */
    PERIDOT_ERROR_FORMAT,       /* a file contradicts its format, or itself */
    PERIDOT_ERROR_UNSUPPORTED,  /* an architecture, dtype, key or tokenizer that Peridot does not know */
    PERIDOT_ERROR_DEVICE,       /* no Vulkan loader, no such device, or the driver failed */
    PERIDOT_ERROR_DEVICE_LOST,  /* the device went away, and the model with it: see peridot_sequence_tokens */
    PERIDOT_ERROR_MEMORY,       /* host or device memory is too small; the sentence has the numbers */
    PERIDOT_CANCELLED,          /* a callback asked to stop; what was done so far stands */
    PERIDOT_ERROR_LINK          /* another rank failed, or cannot be reached: see peridot_link */
} peridot_status;

/* "PERIDOT_ERROR_IO"; "unknown status" for other numbers. */
PERIDOT_API const char *peridot_status_name(peridot_status status);

/* The sentence for the last failure on this thread; "" when there was none. Borrowed until the next failure. */
PERIDOT_API const char *peridot_last_error(void);

/* Sets that sentence, so that a callback which ends a call can say why. Copied; long ones are cut. */
PERIDOT_API void peridot_set_error(const char *sentence);

/* ---- devices ---------------------------------------------------------------------------------------------------- */

typedef enum peridot_device_type {
    PERIDOT_DEVICE_OTHER, PERIDOT_DEVICE_INTEGRATED, PERIDOT_DEVICE_DISCRETE, PERIDOT_DEVICE_VIRTUAL, PERIDOT_DEVICE_CPU
} peridot_device_type;

typedef struct peridot_device_info {
    uint32_t index;                 /* what --device takes */
    peridot_device_type type;
    char name[256];
    char driver[256];               /* driver name */
    char driver_info[256];          /* driver version as the driver words it */
    char uuid[37];                  /* 8-4-4-4-12 hexadecimal */
    char cache_key[17];             /* of device and driver: names their files in the cache folder */
    char pci[16];                   /* "0000:01:00.0", or "" when the driver does not say */
    char api_version[16];           /* "1.3.0" */
    char unusable[256];             /* "" when Peridot can use it, else the missing feature by name */
    char subset_lacks[512];         /* "events, triangleFans": of Vulkan what a portable driver lacks; none is needed */
    uint64_t heap_size;             /* largest device-local heap; unified_memory: all heaps together */
    uint64_t heap_budget;           /* what of it this process may use now, clamped to heap_size */
    uint64_t max_allocation_size;   /* largest single block */
    uint32_t subgroup_size;
    /* that kernels can ask for; both subgroup_size where they cannot */
    uint32_t min_subgroup_size, max_subgroup_size;
    uint32_t max_workgroup_invocations;
    uint32_t max_shared_size;       /* shared memory of one workgroup */
    uint32_t max_push_size;
    bool unified_memory;            /* device memory is host memory */
    bool fp16_arithmetic, int8_arithmetic, int64_arithmetic, integer_dot, subgroup_ballot, subgroup_size_control,
        external_host_memory;
    bool byte_storage;              /* kernels can load single bytes from buffers */
    /* integer dot products of four signed bytes are an instruction: others take several */
    bool integer_dot_instruction;
    bool cooperative_matrix;        /* of fp16 with fp32 sums: the largest that it has are [m, k] times [k, n] */
    uint32_t matrix_m, matrix_n, matrix_k;   /* 0: none */
    uint32_t matrix_subgroup_size;  /* of the subgroups that multiply them */
    uint32_t vendor_id, device_id;  /* PCI's numbers, or the vendor's of Vulkan's registry (0x10005: Mesa) */
    uint32_t driver_version;        /* encoded by each driver in its own way; driver_info is for people */
} peridot_device_info;

/* Lists every Vulkan device. Usable or not: look at `unusable`. *out holds *n pointers; give it, and with it what they
 * point to, back to peridot_free. */
PERIDOT_API peridot_status peridot_devices(const peridot_device_info ***out, size_t *n);

/* The device on which a model would be opened: `device` is as in peridot_model_params. *out goes back to
 * peridot_free. */
PERIDOT_API peridot_status peridot_device_find(peridot_device_info **out, const char *device);

/* Frees an array, struct or string that a function here allocated for the caller. NULL is allowed. */
PERIDOT_API void peridot_free(void *p);

/* ---- vocab ------------------------------------------------------------------------------------------------------ */

typedef struct peridot_vocab peridot_vocab;

enum peridot_encode_flags {
    /* one bos token first, unless the model's tokenizer_config.json says add_bos_token: false (Gemma 4: always) */
    PERIDOT_ENCODE_BOS = 1,
    /* control tokens in the text ("<end_of_turn>") become their ids; else they are plain text */
    PERIDOT_ENCODE_SPECIAL = 2,
    /* one eos token last, where the model's tokenizer adds one to whole texts (add_eos_token: true) */
    PERIDOT_ENCODE_EOS = 4
};

/* Opens the tokenizer of a tokenizer.model, a tokenizer.json, a Hugging Face directory that holds one of them
 * (tokenizer.model goes first), or a GGUF file (tensors not needed). */
PERIDOT_API peridot_status peridot_vocab_open(peridot_vocab **out, const char *path);
/* Another owner of a vocab, the model's for one, which stays until each owner has closed it. */
PERIDOT_API peridot_vocab *peridot_vocab_ref(const peridot_vocab *vocab);
/* NULL is allowed, here and above. */
PERIDOT_API void peridot_vocab_close(peridot_vocab *vocab);
/* Number of pieces; token ids are 0 .. n-1. */
PERIDOT_API uint32_t peridot_vocab_size(const peridot_vocab *vocab);

/* Text of `size` bytes to *n ids in *out (peridot_free). `flags`: peridot_encode_flags. */
PERIDOT_API peridot_status peridot_encode(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                          const char *text, size_t size, unsigned flags);
/* When encoding ends early: a long text takes seconds, and its ids may be of no use. */
typedef struct peridot_encode_limit {
    size_t size;
    /* Ids that are of use at most; 0: any number. A text whose size alone says that there are more fails with
     * PERIDOT_ERROR_ARGUMENT before it is encoded, and n_least says how many there are at least; one that is shorter is
     * encoded, even if there are more. */
    uint64_t n_most;
    uint64_t n_least;          /* set on that failure; else as it was */
    /* Called again and again by the thread that encodes: false ends it with PERIDOT_CANCELLED. NULL: never. */
    bool (*go_on)(void *user);
    void *user;
} peridot_encode_limit;

/* A text that is encoded as it is. */
typedef struct peridot_plain {
    size_t size;
    const char *text;                    /* [text_size] bytes; NULL where that is 0 */
    size_t text_size;
    unsigned flags;                      /* peridot_encode_flags */
    peridot_encode_limit *limit;         /* NULL: none */
} peridot_plain;

/* The same, and within a limit. */
PERIDOT_API peridot_status peridot_encode_plain(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                                const peridot_plain *plain);
/* n ids to the bytes they stand for, NUL-terminated, *size without it (peridot_free). Control tokens give no bytes. The
 * bytes of a byte-fallback sequence cut in the middle may be incomplete UTF-8. */
PERIDOT_API peridot_status peridot_decode(char **out, size_t *size, const peridot_vocab *vocab, const int32_t *ids,
                                          size_t n);

/* The same with control tokens as the vocabulary spells them ("<start_of_turn>"): of ids by a chat template, the text
 * that it wrote. */
PERIDOT_API peridot_status peridot_decode_special(char **out, size_t *size, const peridot_vocab *vocab,
                                                  const int32_t *ids, size_t n);

/* What stands before a place in a text, and what stands after it. */
typedef struct peridot_infill {
    size_t size;
    const char *prefix, *suffix;         /* [prefix_size], [suffix_size] bytes; NULL where these are 0 */
    size_t prefix_size, suffix_size;
    peridot_encode_limit *limit;         /* NULL: none */
} peridot_infill;

/* The prompt for what stands there (fill-in-the-middle), as ids: bos, where the vocabulary has one for plain text, and
 * the texts by the control tokens that CodeGemma, Code Llama and others have for it: <|fim_prefix|> PREFIX
 * <|fim_suffix|> SUFFIX <|fim_middle|>. Neither text can forge a control token. What a model with such tokens writes
 * also stops at those that end a middle (<|file_separator|>): see peridot_is_stop. *out goes back to peridot_free.
 * PERIDOT_ERROR_UNSUPPORTED when the vocabulary has no such tokens (peridot_vocab_has_infill). */
PERIDOT_API peridot_status peridot_encode_infill(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                                 const peridot_infill *infill);
PERIDOT_API bool peridot_vocab_has_infill(const peridot_vocab *vocab);

/* Writes a text that comes from a file (a label, a name) as a terminal may see it: control characters, those that
 * change the direction of a text or end its lines, and malformed UTF-8 as "\x1b", newlines as "\n". What does not fit
 * out_size > 0 bytes ends in "...". Gives the size of the result, which is terminated. Sentences and names of models
 * and devices that the library gives are written so already. */
PERIDOT_API size_t peridot_printable(char *out, size_t out_size, const char *text, size_t size);

/* Bytes of the UTF-8 character that begins a text of `size` > 0 bytes; 0 where none does, or its end is missing. */
PERIDOT_API size_t peridot_utf8_size(const char *text, size_t size);

/* The chat prompt for one user turn, as ids with bos, by the model's template; the user's text cannot forge a turn.
 * PERIDOT_ERROR_UNSUPPORTED when the model has no chat template (peridot_vocab_has_chat). */
PERIDOT_API peridot_status peridot_encode_chat(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                               const char *user_text);
PERIDOT_API bool peridot_vocab_has_chat(const peridot_vocab *vocab);

/* Where a vocabulary's chat template comes from. */
typedef enum peridot_template_origin {
    PERIDOT_TEMPLATE_NONE,       /* the model's files have none, and its name does not say that it was tuned to chat */
    PERIDOT_TEMPLATE_OWN,        /* the files' */
    PERIDOT_TEMPLATE_BY_NAME,    /* the family's: the files have none, and the name says so ("gemma-2-2b-it") */
    PERIDOT_TEMPLATE_REPLACED,   /* the family's, which the files' resembles: that is no Jinja program that can be run;
                                    prompts may be other than those that the model was trained on */
    PERIDOT_TEMPLATE_UNKNOWN     /* none: the files' cannot be run, and is of no family that is known here */
} peridot_template_origin;

/* The name of the template that messages get by default (see peridot_encode_messages); NULL: none. */
PERIDOT_API const char *peridot_vocab_template(peridot_template_origin *origin, const peridot_vocab *vocab);

/* Why the template in the model's files cannot be run: "line 3: ..."; "" where it can, or there is none. Borrowed until
 * the vocab closes. */
PERIDOT_API const char *peridot_vocab_template_error(const peridot_vocab *vocab);

typedef struct peridot_message {
    const char *role;      /* "system" or "developer", which are the same, "user", or "assistant" */
    const char *content;
} peridot_message;

/* The prompt for a conversation, as ids with bos, with the model's turn opened at the end. No message can forge a
 * control token. template_name NULL is the model's own template; else one of
 *   "gemma"     turns alternate, the user's first; the text of a first system message goes before the first user's,
 *               with a blank line between
 *   "gemma4"    turns in any order of roles; what a message of the assistant has between <|channel> and <channel|>, its
 *               thoughts, is left out
 *   "llama2"    the same as "gemma", with [INST] and <<SYS>>; these marks are plain text, which messages can contain as
 *               well
 *   "llama3"    a header for each turn, and any order of roles
 *   "llama3.1"  the same for 3.1 to 3.3, whose first turn is always the system's and contains two dates; the second,
 *               "today", is 26 Jul 2024, the default of the published template, so that a prompt's ids do not change
 *   "phi3"      a token for each role before its turn, and any order of roles: Phi 3 and Phi-4-mini
 *   "chatml"    a turn between <|im_start|> and <|im_end|> for each message, and any order of roles
 *   "plain"     the messages as they are, with a blank line before each but the first and the assistant's, which go on
 *               from the text before them; for models without a template
 *   "jinja"     the Jinja program in the model's files, rendered as Hugging Face's transformers renders it; control
 *               tokens are matched in the text that is the program's own alone
 * The model's own is "jinja", or where its program is a published one that another of these stands for, that: what is
 * written is then, id for id, what the program gives, but that "today" is always the same. PERIDOT_ERROR_UNSUPPORTED
 * when the model has no template, or lacks the control tokens of the one named; PERIDOT_ERROR_ARGUMENT for an unknown
 * name or role, turns that don't alternate where they must, or what else the program refuses. */
PERIDOT_API peridot_status peridot_encode_messages(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                                   const peridot_message *messages, size_t n_messages,
                                                   const char *template_name);

/* Whether a model is to think before it answers, or how many tokens of thought it may write; templates have it off. */
#define PERIDOT_THINK_OFF 0
#define PERIDOT_THINK_ON UINT32_MAX

/* A conversation that goes on. */
typedef struct peridot_chat {
    size_t size;
    const char *template_name;         /* NULL: the model's own */
    /* [n_ids]: all so far, the model's reply as it came at the end, with its stop token or without, but without its
     * thoughts (peridot_drop_thoughts) */
    const int32_t *ids;
    size_t n_ids;
    const peridot_message *messages;   /* [n_messages]: those that come next */
    size_t n_messages;
    /* Anything but PERIDOT_THINK_OFF: the model is told to think, which is said at the beginning of a conversation.
     * PERIDOT_ERROR_ARGUMENT where the template has no thoughts. */
    uint32_t think;
    /* [json_size] bytes of JSON, in place of messages: a list of them as OpenAI's chat completions have it, with
     * content as text or as parts of text, tool_calls and messages of the role "tool". NULL: none. */
    const char *json;
    size_t json_size;
    /* [tools_size] bytes of JSON: the functions that the model may call, see peridot_tools_params. They are described
     * to it as its template does that, or else in the system's message. NULL: none. */
    const char *tools;
    size_t tools_size;
    /* [variables_size] bytes of JSON: an object of further variables for "jinja", at most 256. NULL: none. */
    const char *variables;
    size_t variables_size;
    /* [n_images]: what the messages' parts of images are, in their order: in `json` parts of the type "image",
     * "image_url" or "input_image", of which nothing else is looked at. PERIDOT_ERROR_ARGUMENT where there are not as
     * many. */
    struct peridot_image *const *images;
    size_t n_images;
    peridot_encode_limit *limit;       /* of the ids that come next; NULL: none */
    /* [reply_size] bytes: how the model's reply begins, which goes on from there. Marks in it are text.
     * PERIDOT_ERROR_ARGUMENT where the model is told to think, PERIDOT_ERROR_UNSUPPORTED where replies have headers of
     * their own. NULL: none. */
    const char *reply;
    size_t reply_size;
    /* How much the model is to think, for templates that read "reasoning_effort": "none", "minimal", "low", "medium",
     * "high", "xhigh" or "max"; gpt-oss's gets the nearest of its three. NULL: as the template does. */
    const char *effort;
} peridot_chat;

/* The ids that a turn adds to those that a sequence has: the end of the model's turn (less the stop token that the ids
 * end with), the messages' turns, and the model's next turn opened. The reply is not tokenised again, so that the
 * sequence's cache stays as it is: where the reply's text gives the reply's ids, all ids are those of
 * peridot_encode_messages for the whole conversation. Without messages: only the end of the model's turn. Without ids:
 * peridot_encode_messages. A first message of the system can only begin a conversation where the template has no turns
 * of the system. */
PERIDOT_API peridot_status peridot_encode_turns(int32_t **out, size_t *n, const peridot_vocab *vocab,
                                                const peridot_chat *chat);

/* Takes the model's thoughts, with the marks around them, out of n ids, and gives the number of those that are left:
 * templates have none in the turns that went before. An open one goes up to the end. The templates of Mistral and Muse
 * Glimmer have them: there, ids that begin with bos stay as they are. Headers of messages go with them (see
 * peridot_request_params), but in a conversation of gpt-oss's, whose last message then ends as those before it. */
PERIDOT_API size_t peridot_drop_thoughts(const peridot_vocab *vocab, int32_t *ids, size_t n);

/* Name i of the templates, or NULL past the last. */
PERIDOT_API const char *peridot_template_name(size_t i);

/* ---- file ------------------------------------------------------------------------------------------------------- */

typedef struct peridot_file peridot_file;

typedef struct peridot_tensor_info {
    const char *name;      /* as the file spells it */
    const char *type;      /* "f32", "q8_0", ... */
    uint32_t n_dims;
    uint64_t shape[4];     /* outermost first: a matrix is [rows, columns]; GGUF lists them the other way round */
    uint64_t size;         /* bytes in the file */
} peridot_tensor_info;

/* Opens a .gguf file or a Hugging Face directory and checks all of its structure. Strings are borrowed until close. */
PERIDOT_API peridot_status peridot_file_open(peridot_file **out, const char *path);
PERIDOT_API void peridot_file_close(peridot_file *file);
PERIDOT_API size_t peridot_file_n_tensors(const peridot_file *file);
/* NULL past the last. */
PERIDOT_API const peridot_tensor_info *peridot_file_tensor(const peridot_file *file, size_t i);
PERIDOT_API size_t peridot_file_n_metadata(const peridot_file *file);
/* Key i, and its value as text (long arrays and strings shortened). */
PERIDOT_API const char *peridot_file_metadata_key(const peridot_file *file, size_t i);
PERIDOT_API peridot_status peridot_file_metadata_text(char **out, const peridot_file *file, size_t i);

/* ---- model ------------------------------------------------------------------------------------------------------ */

typedef struct peridot_model peridot_model;
typedef struct peridot_session peridot_session;
typedef struct peridot_sequence peridot_sequence;

/* Progress of a long call: `done` of `total`, bytes where nothing else is said. Return false to cancel. */
typedef bool (*peridot_progress)(void *user, uint64_t done, uint64_t total);

/* Messages on what a model does by itself: which device was chosen and why, kernels that are disabled, what tuning
 * found. One sentence without a newline, borrowed for the call. Called during calls on the model or its sessions, on
 * their thread. */
typedef enum peridot_log_level { PERIDOT_LOG_WARNING, PERIDOT_LOG_INFO } peridot_log_level;
typedef void (*peridot_log)(void *user, peridot_log_level level, const char *message);

/* How the ranks reach each other that hold the layers of one model between them: processes, on one machine or many, or
 * threads, with a device and a model each. Rank 0 holds the embedding and the first layers, the last rank the last
 * layers and the output. Rank 0 is used as a model that holds all layers is, and gives the same numbers, bit for bit;
 * the others call peridot_model_work. The host of the library moves the bytes: along the ring of ranks, and
 * straight from memory that the device writes. */
typedef struct peridot_link {
    size_t size;
    uint32_t rank, n_ranks;
    const uint32_t *n_layers;  /* [n_ranks]: how many layers each rank holds, 1 or more; copied */
    const char *name;          /* of this rank, before sentences about its failures: "rank 1 on host"; copied */
    /* Sends bytes to the next rank, the last one to rank 0. It may wait until they are received, but on the last rank;
     * afterwards the data may be overwritten. PERIDOT_ERROR_LINK, with a sentence (peridot_set_error), where a rank is
     * out of reach or took too long. Both are called on the thread that calls the library. */
    peridot_status (*send)(void *user, const void *data, size_t size);
    /* Receives bytes from the rank before, rank 0 from the last one: as many as one call sent. Fails alike. */
    peridot_status (*receive)(void *user, void *data, size_t size);
    void *user;
} peridot_link;

/* How matrices are multiplied and attention is computed, whatever the types of weights and cache: those are as stored.
 * Keys and values of a sequence that was loaded are of the precision with which they were computed. */
typedef enum peridot_precision {
    /* as suits the device: its fastest kernels may round activations to fp16 or to integers with a scale */
    PERIDOT_PRECISION_DEFAULT,
    PERIDOT_PRECISION_EXACT    /* activations, products and sums are fp32 */
} peridot_precision;

/* A LoRA adapter to a model: a GGUF file (general.type "adapter"), or a PEFT directory. It adds scale alpha / rank B A
 * to matrices of the layers; one that adds anything else is refused. */
typedef struct peridot_adapter_file {
    const char *path;
    const char *name;        /* by which sequences take it; NULL: the file's, without ".gguf", or the directory's */
    float scale;             /* of sequences for which nothing else is said: 1: as it was trained; 0: not taken */
} peridot_adapter_file;

typedef struct peridot_model_params {
    size_t size;
    const char *device;      /* index, part of the name, UUID or PCI address; NULL: the fastest real GPU */
    /* Folder for compiled pipelines and what peridot_selftest and peridot_tune found, made when missing, for this user
     * alone. It is not used when it is another's, a link, or others can write to it. NULL: nothing is kept on disk. */
    const char *cache_dir;
    /* [n_kernels]: variants to take wherever they can be, "matmul=coop", for comparisons and tests. One that rounds is
     * refused where `precision` is exact. */
    const char *const *kernels;
    size_t n_kernels;
    /* Bytes of the GPU's own memory that weights may take; what does not fit is read from the host's memory across the
     * bus. 0: all must fit. Ignored where both are one (unified_memory). */
    uint64_t gpu_memory;
    peridot_progress progress;
    peridot_log log;         /* NULL: nothing is logged */
    void *user;              /* passed to progress and log */
    const peridot_link *link;   /* NULL: the model holds all layers */
    /* A drafter (is_drafter) can only be opened for the model that it drafts for, on whose device it is then, whatever
     * `device` says, and which stays while it does. NULL, or another kind of model: nothing. */
    peridot_model *target;
    peridot_precision precision;
    /* A file with the vision tower of the model ("mmproj", GGUF). NULL: that among the model's own tensors, which a
     * Hugging Face directory has, and a GGUF file may have, or none. "": none, whatever there is. Its weights are
     * loaded when the first image is evaluated, and stay; where gpu_memory says how much there is they are let go after
     * each image. */
    const char *vision;
    /* Rows of an image at most, where its size is not fixed: Gemma 4's 70, 140, 280, 560 or 1120, more for small
     * print. 0: as the model's files say, or 280. */
    uint32_t image_rows;
    /* Where the file of `vision` is damaged or does not fit, the model is opened without it, and who has an image
     * learns why. False: the model is not opened. */
    bool vision_optional;
    /* [n_adapters], up to 32, of different names: loaded beside the model, whose own weights stay as they are. Where
     * several ranks hold the layers, all are given the same. */
    const peridot_adapter_file *adapters;
    size_t n_adapters;
    /* Of the files, not the model is opened, but the block in them that drafts tokens for it (MTP), as a drafter of
     * `target`, which is the model. */
    bool block;
} peridot_model_params;

/* What a model turns its final hidden states into. */
typedef enum peridot_head {
    PERIDOT_HEAD_LANGUAGE,   /* logits of the next token */
    PERIDOT_HEAD_SEQUENCE,   /* label scores of a text, read at its last token (sequence classification) */
    PERIDOT_HEAD_TOKEN,      /* label scores of every token (token classification) */
    PERIDOT_HEAD_NONE        /* hidden states only (a base model without an output matrix) */
} peridot_head;

/* What the scores of a classification head are (problem_type in config.json; of tokens always the first, unless there
 * is one output). */
typedef enum peridot_problem {
    PERIDOT_PROBLEM_SINGLE_LABEL,   /* one label is right: probabilities are the softmax of the scores */
    PERIDOT_PROBLEM_MULTI_LABEL,    /* each may be right: a probability is the sigmoid of its score */
    PERIDOT_PROBLEM_REGRESSION      /* the scores are the result, as is that of a head with one output */
} peridot_problem;

/* How the final hidden states of a text become one vector. */
typedef enum peridot_pool {
    PERIDOT_POOL_MODEL,      /* as the model was made for: the mean, where it does not say */
    PERIDOT_POOL_MEAN,       /* their mean */
    PERIDOT_POOL_LAST,       /* that of the last token */
    PERIDOT_POOL_CLS         /* that of the first */
} peridot_pool;

typedef struct peridot_model_info {
    const char *name;              /* general.name, or the folder's name */
    const char *family;            /* "llama", "gemma", "gemma2", "vaultgemma", "gemma3", "gemma4", ... */
    const char *types;             /* weight types used by matrices, most common first: "q8_0, f32" */
    uint32_t n_layers, d_model, ffn_dim, n_heads, n_kv_heads, head_dim, window, ctx_max;
    uint32_t vocab_size;           /* rows of the embedding: token ids are below it */
    peridot_head head;
    /* floats in a row of logits: vocab_size, or the number of labels; 0 without a head */
    uint32_t n_outputs;
    uint64_t n_params;
    uint64_t n_idle_params;        /* of these, those of experts that a token does not take */
    uint64_t weights_size;         /* bytes of weights allocated on the device */
    uint64_t in_place_size;        /* bytes of weights that a GPU with unified memory reads from the mapped file */
    uint64_t host_resident_size;   /* bytes of weights in the host's memory that the GPU reads across the bus */
    uint32_t n_host_resident_layers;   /* layers that have matrices there: first go those of experts */
    uint64_t decode_host_resident_size;   /* of decode_read_size, bytes read there */
    uint32_t n_ignored_tensors;    /* tensors of other parts (a vision tower) that text does not need */
    uint64_t decode_read_size;     /* bytes of weights that one decode step reads */
    const peridot_device_info *device;
    const char *device_reason;     /* why this device: "the fastest of 2", "--device 1" */
    const char *kernels;           /* the variants of kernels that it takes: "matmul=tile" */
    /* Layouts of kernels that peridot_tune found best, rows x workgroup (/ subgroup): "matvec_q8_0 normed 2x64,
     * matvec_q8_0 plain 4x64/16"; "as by default" where that is best, "" where nothing was measured. */
    const char *tuning;
    bool untuned;                  /* no layout was measured for this device yet: peridot_tune is worth a few seconds */
    peridot_problem problem;       /* of a classification head */
    uint64_t cache_size;           /* bytes of the cache of a session with default parameters, if memory is not short */
    /* Attention sees later tokens as well (EmbeddingGemma): a text is evaluated whole, in one call on an empty
     * sequence, and sessions take chunks as long as their context, which is 2048 positions where none is asked for. */
    bool whole_texts;
    peridot_pool pool;             /* MEAN, LAST or CLS: what PERIDOT_POOL_MODEL means */
    uint32_t embedding_size;       /* columns of a text's vector: see peridot_embedding */
    uint32_t last_division;        /* ranks may begin with layers up to this one: later ones read its keys */
    bool is_drafter;               /* it guesses tokens for another model, of which it reads the cache: see `target` */
    peridot_precision precision;   /* as the model was opened with */
    uint32_t image_rows;           /* rows of an image at most; 0: the model does not see images */
    int32_t image_token;           /* that stands in texts for each row: see peridot_images_place */
    uint32_t image_crops;          /* of a picture at most: see peridot_image_params; 0: the family has none */
    bool is_reranker;              /* its head scores two labels, "yes" and "no": whether a document meets a query */
    const char *file_type;         /* what a GGUF file says that its quantised types are, "Q4_K_M"; else NULL */
    /* An EmbeddingGemma whose files lack the two dense layers that were trained with it, as llama.cpp's converter
     * leaves them out by default: texts get vectors, but not those of the published model. */
    bool lacks_dense;
    bool has_block;                /* its files have a block that drafts tokens for it: see `block` */
    uint64_t states_size;          /* of each sequence of a session, bytes of states, however few tokens it has: those
                                    * of layers with recurrences; 0: there are none */
} peridot_model_info;

/* Numbers of the cache. Q8_0: 8-bit integers, and a 16-bit scale for each block of 32 along a head: 34 bytes for 32
 * numbers, against 64 in fp16 (scales take whole words: a head of 32 has 36 bytes). A number moves by 0.4 % of its
 * block's largest at most, and the perplexity of a text by far less than 0.2 %. Q5_1 and Q4_1: integers of 5 or 4 bits
 * from each block's minimum on, 24 or 20 bytes for 32 numbers. Q8_0_Q4_1: keys in Q8_0, values, which roundings hurt
 * less, in Q4_1, 27 bytes on average. */
typedef enum peridot_kv_type { PERIDOT_KV_F16, PERIDOT_KV_F32, PERIDOT_KV_Q8_0,
    PERIDOT_KV_Q8_0_Q4_1, PERIDOT_KV_Q5_1, PERIDOT_KV_Q4_1 } peridot_kv_type;

/* What a model opened from the file will be. Members that a device has a part in are 0 or NULL; weights_size is what
 * the weights take in the file, and like types, n_params and n_outputs 0 or NULL where peridot_file_check fails. NULL,
 * with the sentence that peridot_model_open would give, where Peridot does not know the architecture. Borrowed until
 * the file closes. */
PERIDOT_API const peridot_model_info *peridot_file_model(const peridot_file *file);
/* Bytes of a device that the cache of a session of ctx positions takes, with windows, and layers that share a cache,
 * counted as they are; ctx 0: by default. 0 where peridot_file_model is NULL. */
PERIDOT_API uint64_t peridot_file_cache_size(const peridot_file *file, uint32_t ctx, peridot_kv_type type);
/* Fails, with the sentence that peridot_model_open would give, where that would refuse the file on every device. The
 * tokenizer is not looked at, nor the numbers in the tensors. */
PERIDOT_API peridot_status peridot_file_check(const peridot_file *file);

/* A vision tower, which makes rows of a picture. */
typedef struct peridot_vision_info {
    /* "siglip": Gemma 3; "gemma4"; "gemma4-unified": patches that are projected alone; "qwen3.5" */
    const char *kind;
    const char *types;             /* of its matrices, most common first */
    uint32_t n_layers, d_model, ffn_dim, n_heads, head_dim;   /* all 0 but d_model where patches are projected alone */
    uint32_t patch_size;           /* pixels of a patch's side */
    uint32_t image_size;           /* pixels of a picture's side; 0: as image_rows allow */
    uint32_t image_rows;           /* of a picture at most */
    uint32_t row_dim;              /* numbers of a row: d_model of the model that it is for */
    uint32_t n_tensors;
    uint64_t n_params, weights_size;   /* bytes in the file */
} peridot_vision_info;

/* The tower among a model's tensors, or in a file of its own ("mmproj"). NULL, with a sentence, where there is
 * none, it is damaged, or Peridot does not know its kind. Borrowed until the file closes. */
PERIDOT_API const peridot_vision_info *peridot_file_vision(const peridot_file *file);
/* Fails, with the sentence that peridot_model_open would give, where `vision` is not a tower of the model `file`. */
PERIDOT_API peridot_status peridot_file_check_vision(const peridot_file *file, const peridot_file *vision);

/* Loads a model (.gguf or Hugging Face directory) onto a device. params may be NULL. */
PERIDOT_API peridot_status peridot_model_open(peridot_model **out, const char *path,
                                              const peridot_model_params *params);
/* While sessions of the model are left it stays, with its memory, until the last of them is freed. NULL is allowed. */
PERIDOT_API void peridot_model_close(peridot_model *model);
/* On ranks other than 0: evaluates layers for rank 0 until that closes its model. A failure, of which rank 0 learns
 * when it next waits for a result, is returned. */
PERIDOT_API peridot_status peridot_model_work(peridot_model *model);
/* Borrowed until the model closes. */
PERIDOT_API const peridot_model_info *peridot_model_get_info(const peridot_model *model);
/* Name of label i of a classification head as the file has it (peridot_printable is for showing it); NULL past the
 * last, or when the model names none. Borrowed until the model closes. */
PERIDOT_API const char *peridot_model_label(const peridot_model *model, uint32_t i);
/* Name of adapter i of those that the model was opened with, and the scale that it was given (NULL is allowed); NULL
 * past the last. Borrowed until the model closes. */
PERIDOT_API const char *peridot_model_adapter(const peridot_model *model, uint32_t i, float *scale);
/* The vector of a text: `pooled` [d_model], what came of its final hidden states, goes through the dense layers that an
 * embedding model has, its first n columns are taken (0: all of embedding_size; models trained so lose little by 512,
 * 256 or 128), and with `normalise` its length is made 1. out [n or embedding_size]. PERIDOT_ERROR_ARGUMENT where n is
 * more than embedding_size. Any thread may call it. */
PERIDOT_API peridot_status peridot_embedding(float *out, const peridot_model *model, const double *pooled, uint32_t n,
                                             bool normalise);
/* Name of task i that the model was trained for ("query"), and what texts of it begin with ("task: search result |
 * query: "); NULL past the last, of which most models have none. Borrowed until the model closes. */
PERIDOT_API const char *peridot_model_task(const peridot_model *model, uint32_t i, const char **prefix);
/* The prefix of a task by its name; fails, with the names that there are, where the model has no such task. Borrowed as
 * above. */
PERIDOT_API peridot_status peridot_model_find_task(const char **prefix, const peridot_model *model, const char *name);
/* The model's tokenizer, borrowed until the model closes (peridot_vocab_ref: longer); NULL (with a sentence) when the
 * files hold none. */
PERIDOT_API const peridot_vocab *peridot_model_vocab(const peridot_model *model);

/* Bytes allocated on the device now, by the model and all its sessions. */
PERIDOT_API uint64_t peridot_model_memory(const peridot_model *model);

/* ---- images ----------------------------------------------------------------------------------------------------- */

/* A picture for a model that sees. In prompts its rows stand in the place of tokens, with ids of their own, which are
 * negative and follow from the pixels: two images of the same pixels have the same. So prompts with images need nothing
 * but ids, prefixes are shared with their images, and a saved sequence goes on without them. An image must live while
 * prompts with its ids are evaluated for the first time (submitted requests see to it themselves); its rows are
 * computed then, once, and freed with it. */
typedef struct peridot_image peridot_image;

typedef struct peridot_image_params {
    size_t size;
    /* Gemma 3's pan and scan, as transformers' processor has it: where one side of a picture is at least 1.2 times the
     * other, two to four equal parts of it along that side become images as well, if they have 256 pixels a side; what
     * is small in a picture is seen better, and an image has up to five times the rows. Chat templates write the crops
     * after the whole. PERIDOT_ERROR_UNSUPPORTED where the family has none (peridot_model_info.image_crops). */
    bool pan_and_scan;
} peridot_image_params;

/* Reads a picture: JPEG, PNG, WebP, or the first frame of a GIF, turned as its EXIF data says, what is transparent over
 * white, and resizes it as the model's processor does. `name` is for sentences. More than 32,768 pixels a side, or 100
 * million, are refused before anything is decoded. PERIDOT_ERROR_UNSUPPORTED where the model does not see
 * (peridot_model_info.image_rows). An image may outlive its model, but no other shows it. params may be NULL. From any
 * thread, as peridot_image_ref and _free. */
PERIDOT_API peridot_status peridot_image_read(peridot_image **out, const peridot_model *model, const void *data,
                                              size_t size, const char *name,
                                              const peridot_image_params *params);
/* The same from pixels: rgb [height][width][3], 8 bits each, sRGB. */
PERIDOT_API peridot_status peridot_image_pixels(peridot_image **out, const peridot_model *model, const uint8_t *rgb,
                                                uint32_t width, uint32_t height, const peridot_image_params *params);
PERIDOT_API peridot_image *peridot_image_ref(const peridot_image *image);
/* NULL is allowed. */
PERIDOT_API void peridot_image_free(peridot_image *image);
/* The ids of its n rows, and with crops those of each crop after them, as many for each; borrowed while the image
 * lives. */
PERIDOT_API const int32_t *peridot_image_ids(const peridot_image *image, size_t *n);
/* Puts images into a prompt as transformers' processors lay it out: the tokens that are the model's image_token become
 * the rows of the images, in order, each followed by its crops. PERIDOT_ERROR_ARGUMENT where there are more or fewer
 * such tokens than rows (nothing is changed). */
PERIDOT_API peridot_status peridot_images_place(int32_t *tokens, size_t n, const peridot_model *model,
                                                peridot_image *const *images, size_t n_images);

/* ---- session ---------------------------------------------------------------------------------------------------- */

#define PERIDOT_DRAFT_AUTO UINT32_MAX

typedef struct peridot_session_params {
    size_t size;
    uint32_t ctx;              /* positions of a sequence at most; 0: the model's maximum, or what memory allows up to
                                  8192 */
    uint32_t chunk;            /* tokens evaluated at once at most; 0: 256. On a GPU fewer, if these take over 1 s */
    peridot_kv_type kv_type;
    uint32_t n_sequences;      /* at once, up to 64; 0: 1 */
    uint32_t n_positions;      /* of all sequences together, which take pages of them as they grow; 0: n_sequences
                                  times ctx */
    uint64_t snapshot_size;    /* bytes of the host's memory at most for places to go back to, where the device has no
                                  pages left for them: see peridot_sequence_truncate; 0: 1 GiB */
    /* Tokens that a request's draft has at most, up to 31, or PERIDOT_DRAFT_AUTO: those that fill, with the next token,
     * two groups of rows that are multiplied at once. 0: requests have no drafts. A session with drafts takes kernels
     * that give a token the same bits whatever others are in the step, as one with several sequences does. */
    uint32_t n_draft;
    uint32_t n_parallel;       /* requests that are submitted and at work at once, at most; the other sequences are kept
                                  for prompts that begin like theirs. 0: n_sequences */
    /* Drafts come from this model, which was opened with this session's as its target; NULL: as requests say. It stays
     * while the session does. */
    peridot_model *drafter;
    /* Kernels that the driver has compiled, of all that the session needs; false cancels. It takes seconds where model
     * and driver are new to each other. NULL: none. */
    peridot_progress compiling;
    void *user;
} peridot_session_params;

/* params may be NULL. */
PERIDOT_API peridot_status peridot_session_create(peridot_session **out, peridot_model *model,
                                                  const peridot_session_params *params);
/* Its sequences and requests go with it. NULL is allowed. */
PERIDOT_API void peridot_session_free(peridot_session *session);
/* Positions of a sequence at most. */
PERIDOT_API uint32_t peridot_session_ctx(const peridot_session *session);
/* Positions that no sequence has taken, in whole pages; of layers with windows only where there are no others. */
PERIDOT_API uint32_t peridot_session_free_positions(const peridot_session *session);
/* Most tokens of one submit. */
PERIDOT_API uint32_t peridot_session_chunk(const peridot_session *session);
/* Ends the call that is at work on the session, or the next such call at once: it returns PERIDOT_CANCELLED. That takes
 * about 0.1 s, or a decode step where these are slower; the chunks of prompts that were done stand. From any thread,
 * and from a signal handler. */
PERIDOT_API void peridot_cancel(peridot_session *session);

/* ---- sequence --------------------------------------------------------------------------------------------------- */

/* A new sequence without tokens. PERIDOT_ERROR_ARGUMENT when all of the session's are taken. */
PERIDOT_API peridot_status peridot_sequence_create(peridot_sequence **out, peridot_session *session);
/* A new sequence of the first n tokens of `from`. Both share the cache's pages up to there. It samples as `from` does,
 * from the state that this is in, and can go back where `from` can. PERIDOT_ERROR_ARGUMENT where that cannot go back to
 * n tokens: see peridot_sequence_nearest. */
PERIDOT_API peridot_status peridot_sequence_fork(peridot_sequence **out, const peridot_sequence *from, uint32_t n);
/* An adapter that a sequence takes, by its name. */
typedef struct peridot_adapter {
    const char *name;
    float scale;
} peridot_adapter;
/* The sequence takes these adapters of its model, and no others; one that says nothing takes those of the model by the
 * scales that these were opened with. Sequences with different ones are evaluated together all the same, and only those
 * with the same ones share prefixes. PERIDOT_ERROR_ARGUMENT where the sequence has tokens already, of other adapters,
 * or the model has none of that name; PERIDOT_ERROR_UNSUPPORTED where several ranks hold the layers. */
PERIDOT_API peridot_status peridot_sequence_set_adapters(peridot_sequence *sequence, const peridot_adapter *adapters,
                                                         size_t n);
/* Writes the sequence to a file: tokens, keys and values, the chain's numbers and the generator (biases, stop texts and
 * the grammar are not in it). PERIDOT_ERROR_IO when `path` is a file of the model. Nothing may be
 * at work on it. */
PERIDOT_API peridot_status peridot_sequence_save(const peridot_sequence *sequence, const char *path);
/* A new sequence from such a file, which goes on as the one that was saved would have. PERIDOT_ERROR_ARGUMENT when it
 * was saved with another model, type of cache or adapter than there is, or does not fit the context;
 * PERIDOT_ERROR_FORMAT when it is damaged. */
PERIDOT_API peridot_status peridot_sequence_load(peridot_sequence **out, peridot_session *session, const char *path);
/* Gives its pages back. Not while a request is on it. NULL is allowed. */
PERIDOT_API void peridot_sequence_free(peridot_sequence *sequence);
PERIDOT_API peridot_session *peridot_sequence_session(const peridot_sequence *sequence);
/* Number of tokens evaluated so far: the position of the next one. */
PERIDOT_API uint32_t peridot_sequence_pos(const peridot_sequence *sequence);
/* These tokens, [peridot_sequence_pos]; borrowed until the next call on this sequence. After PERIDOT_ERROR_DEVICE_LOST,
 * which every later call on the model gives as well, a copy of them goes on elsewhere: free the sessions, close the
 * model, open it again, and evaluate them in a new session. Of a call that failed, those chunks are among them that
 * were done before. */
PERIDOT_API const int32_t *peridot_sequence_tokens(const peridot_sequence *sequence);
/* Tokens that the sequence keeps where it is to go back to n of them, or is to be forked there: n, or where layers with
 * windows or recurrences have passed over that, the nearest place before it: see peridot_sequence_truncate. */
PERIDOT_API uint32_t peridot_sequence_nearest(const peridot_sequence *sequence, uint32_t n);
/* Keeps the first n tokens: the next one is at position n, and until then there are no logits unless all were kept.
 * Exact in models without windows or recurrences. Layers with windows give keys back; they still have those for any
 * place a chunk or less back, and for the ends of the last eight prompts and of the replies before them, unless these
 * take more memory than snapshot_size: then the oldest of all sequences are dropped. Layers with recurrences have
 * states of 16 places, by the same bound: the ends of the last two prompts and replies, of each a place 256 tokens or
 * less before it, and older ones the further apart the older they are. Elsewhere the nearest such place before n, or 0,
 * is gone back to: *kept says how many tokens remain, to be evaluated from there on. With kept NULL nothing is changed
 * then, and PERIDOT_ERROR_ARGUMENT is returned; as when there are fewer than n tokens. */
PERIDOT_API peridot_status peridot_sequence_truncate(peridot_sequence *sequence, uint32_t n, uint32_t *kept);

/* Called once per position with a row: [n_outputs] logits after the final softcap (or label scores), or [d_model]
 * final-norm hidden states. The row is borrowed for the call. Return false to cancel. A row with a non-finite value
 * (damaged weights, or an overflow) ends the call with PERIDOT_ERROR_FORMAT, as it does in peridot_logits and
 * peridot_sample. */
typedef bool (*peridot_row)(void *user, peridot_sequence *sequence, uint32_t pos, const float *row, size_t n);

typedef struct peridot_eval_params {
    size_t size;
    uint32_t first;        /* rows are reported for positions >= first ... */
    bool last;             /* ... or only for each prompt's last token */
    peridot_row logits;    /* NULL: no rows. The last position's logits can be had afterwards, unless only `hidden` is
                              asked for */
    peridot_row hidden;    /* NULL: none */
    /* NULL: none. Tokens of all prompts together, several times a second where they take long: false cancels */
    peridot_progress progress;
    void *user;
} peridot_eval_params;

/* Tokens to append to a sequence. */
typedef struct peridot_prompt {
    peridot_sequence *sequence;
    const int32_t *tokens;
    size_t n;
} peridot_prompt;

/* Appends the tokens of n prompts to different sequences of the session: in chunks, into which as many prompts go as
 * fit, and single tokens as one decode step of all that have one, which reads the weights once. The results of a decode
 * step do not depend on what other sequences are in it. Rows come chunk by chunk, and in a chunk sequence by sequence,
 * position by position. params may be NULL. PERIDOT_ERROR_ARGUMENT when an id is out of range or tokens do not fit the
 * context (nothing is changed); PERIDOT_ERROR_MEMORY when the session's positions are used up. */
PERIDOT_API peridot_status peridot_eval(peridot_session *session, const peridot_prompt *prompts, size_t n,
                                        const peridot_eval_params *params);
/* The same for one sequence. */
PERIDOT_API peridot_status peridot_sequence_eval(peridot_sequence *sequence, const int32_t *tokens, size_t n,
                                                 const peridot_eval_params *params);

/* Logits (or label scores) of the last position, [n_outputs]; borrowed until the next call on the session. */
PERIDOT_API peridot_status peridot_logits(const float **out, peridot_sequence *sequence);

/* What a text must be. Immutable: sequences and threads may share one. */
typedef struct peridot_grammar peridot_grammar;

/* JSON by construction: tokens with which the text could no longer become such a value are never drawn, and a stop
 * token is drawn only where the value is complete, so that a text that ends by one always parses and validates. A text
 * that n_max or the end of the context cuts short does not.
 * Characters for which the vocabulary has no bytes are left out: PERIDOT_ERROR_UNSUPPORTED when it cannot write any
 * such value, or has no stop token.
 *
 * The value begins with the first token that is drawn after peridot_set_sampling, or after the prompt of a request,
 * less what it was replied already. It goes on with the tokens that are appended after that draw; one that cannot
 * continue it, a stop token for one, ends it: the next draw begins another. peridot_sequence_truncate to a place in the
 * value continues it from there; to one before its first token, the next draw begins it. A fork is treated like a
 * sequence that was truncated there.
 *
 * What is written: white space is at most a space, or a newline and up to 32 spaces, between values. Values nest about
 * 60 deep. Numbers have up to 18 digits (15 where they may have a fraction), and two in an exponent. Keys of an object
 * are in the schema's order; a key that the schema does not name may come twice. */

/* Any JSON object. */
PERIDOT_API peridot_status peridot_grammar_json(peridot_grammar **out, const peridot_vocab *vocab);
/* The values that a JSON Schema (2020-12) of `size` bytes allows. Keywords:
 *   type, enum, const, $ref (within the document), anyOf, allOf, and oneOf where no two alternatives can both hold, as
 *   types, or values of const and enum, also in a required property, show;
 *   properties, required, additionalProperties (absent beside properties: none is written), patternProperties,
 *   propertyNames, minProperties (up to one more than the properties that have names), maxProperties,
 *   dependentRequired, unevaluatedProperties and unevaluatedItems in a schema that is not combined with others;
 *   items, prefixItems (or a list in items, and additionalItems), minItems, maxItems, uniqueItems where items are of
 *   enum, const, null or boolean: up to 10 values in any order, more in the order of the schema;
 *   minLength, maxLength, pattern (without back-references, \b and \p, and with look-ahead only at the start, as in
 *   ^(?!...)), format (date-time, time, date, duration, email, hostname, ipv4, ipv6, uuid, uri, uri-reference,
 *   uri-template, json-pointer, relative-json-pointer, regex; the international ones are written in ASCII; any other
 *   is an annotation);
 *   minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf (n / 10^places, n up to 10000, places up to 9);
 *   nullable beside type, as OpenAPI 3.0 has it; not only as {} and false.
 * An alternative of anyOf that is not supported is left out where another remains.
 * Where type is absent, what other keywords are about is meant: `properties` makes it an object. Annotations are
 * ignored. PERIDOT_ERROR_UNSUPPORTED names any other keyword, and its place as a JSON pointer; PERIDOT_ERROR_FORMAT
 * when the text is no schema; PERIDOT_ERROR_ARGUMENT when no value is valid. */
PERIDOT_API peridot_status peridot_grammar_json_schema(peridot_grammar **out, const peridot_vocab *vocab,
                                                       const char *schema, size_t size);
/* The same with `effort` thousandths of the work that a schema may take, which is about half a second: a server tries
 * each schema with little of it, and lets those that need more wait for each other. 0: all of it. What needs more is
 * PERIDOT_ERROR_UNSUPPORTED. */
PERIDOT_API peridot_status peridot_grammar_json_schema_within(peridot_grammar **out, const peridot_vocab *vocab,
                                                              const char *schema, size_t size, uint32_t effort);
/* Another owner of the grammar, which stays until each owner has freed it. NULL is allowed, here and below. */
PERIDOT_API peridot_grammar *peridot_grammar_ref(const peridot_grammar *grammar);
PERIDOT_API void peridot_grammar_free(peridot_grammar *grammar);

/* ---- tools ------------------------------------------------------------------------------------------------------ */

/* Functions that a model may call in its replies, in the format of its template, or in a generic one. Immutable:
 * requests and threads may share one. */
typedef struct peridot_tools peridot_tools;

typedef enum peridot_tool_choice {
    PERIDOT_TOOLS_AUTO,        /* the model answers, calls functions, or calls them after some text */
    PERIDOT_TOOLS_REQUIRED     /* it calls some, and writes no text */
} peridot_tool_choice;

typedef struct peridot_tools_params {
    size_t size;
    /* [json_size] bytes of JSON: a list of {"type": "function", "function": {"name": ..., "description": ...,
     * "parameters": a JSON Schema of an object}}, as OpenAI's chat completions have it, or of the functions
     * themselves. */
    const char *json;
    size_t json_size;
    peridot_tool_choice choice;
    const char *name;          /* the only function that may be called; NULL: any of them */
    bool single;               /* at most one call in a reply */
    const char *template_name; /* of the conversation; NULL: the model's own */
    /* [schema_size] bytes of JSON Schema: what a reply is that calls nothing, see peridot_grammar_json_schema. NULL:
     * any text. */
    const char *schema;
    size_t schema_size;
    uint32_t effort;           /* see peridot_grammar_json_schema_within; 0: all of it */
    /* A schema that is not supported, or too large, is made looser as far as it needs, but for functions with
     * "strict": true: bounds and patterns go first, the names of properties last. */
    bool loosen;
} peridot_tools_params;

/* Compiles the functions to a grammar of replies: see peridot_request_params. A call that is complete always has the
 * name of a function and arguments by its schema, whatever the model. Fails as peridot_grammar_json_schema does, and
 * with PERIDOT_ERROR_ARGUMENT for a list that is not well-formed. */
PERIDOT_API peridot_status peridot_tools_create(peridot_tools **out, const peridot_vocab *vocab,
                                                const peridot_tools_params *params);
/* Another owner of the tools, which stay until each owner has freed them. NULL is allowed, here and below. */
PERIDOT_API peridot_tools *peridot_tools_ref(const peridot_tools *tools);
PERIDOT_API void peridot_tools_free(peridot_tools *tools);
/* Names of the functions whose schemas were made looser, with ", " between them; "": none. Borrowed. */
PERIDOT_API const char *peridot_tools_loosened(const peridot_tools *tools);

/* A piece of a call. */
typedef struct peridot_call_piece {
    uint32_t index;            /* of the call in the reply */
    const char *name;          /* of the function, in the first piece of a call; else NULL */
    const char *arguments;     /* [size] more bytes of the arguments, whole characters; a JSON object in the end */
    size_t size;
    bool complete;             /* the last piece of the call */
} peridot_call_piece;
/* False ends the reply. */
typedef bool (*peridot_call)(void *user, const peridot_call_piece *piece);

/* ---- sampling --------------------------------------------------------------------------------------------------- */

/* What is added to a token's logit: -INFINITY bans it. */
typedef struct peridot_bias {
    int32_t token;
    float value;
} peridot_bias;

/* The chain, in this order: grammar, logit bias, repeat penalty, presence and frequency penalty, DRY, top-n-sigma,
 * top-k, temperature, top-p, min-p, XTC, draw. Penalties look at the last 64 tokens of the sequence, prompt and reply
 * alike, DRY at as many as it is told. {0} is greedy, and then only what comes before top-n-sigma counts.
 * Tokens that the model's files suppress (suppress_tokens) are never drawn, whatever the chain; logits that are handed
 * out are the model's own. */
typedef struct peridot_sampling {
    size_t size;
    float temperature;       /* 0: always the most likely token (lowest id of equals) */
    uint32_t top_k;          /* 0: all */
    float top_p;             /* 0 or 1: all */
    float min_p;             /* keep tokens with p >= min_p * p_max; 0: all */
    float repeat_penalty;    /* logits of the last 64 tokens: /r when positive, *r when negative; 0 or 1: off */
    float presence_penalty;  /* taken from the logits of the last 64 tokens */
    float frequency_penalty; /* taken from a logit once for each time that its token is among the last 64 */
    uint64_t seed;           /* same seed, device and model: same text */
    const peridot_bias *bias;    /* [n_bias]; tokens outside the vocabulary don't matter */
    size_t n_bias;
    const char *const *stop;     /* [n_stop]: peridot_generate ends before the first of these texts in the reply; ""
                                    never is */
    size_t n_stop;
    const peridot_grammar *grammar;   /* what the text must be: other tokens are banned. NULL: anything */
    /* Top-n-sigma: keep tokens whose logits are at most so many standard deviations below the best one's. The deviation
     * is that of all the model's own logits. 0: all. */
    float top_n_sigma;
    /* XTC, "exclude top choices": in so many of 1 draws, all tokens of at least this probability but the least likely
     * one of them are left out. Probabilities are those of the tokens that the steps before kept. A probability of 0,
     * or a threshold over 0.5: off. */
    float xtc_probability, xtc_threshold;
    /* DRY, "don't repeat yourself": where the last n >= dry_allowed_length tokens were in the sequence before, what
     * followed them there loses dry_multiplier dry_base^(n - dry_allowed_length) from its logit; of several places the
     * longest counts. A multiplier of 0: off. */
    float dry_multiplier;
    float dry_base;                   /* less than 1: 1.75 */
    uint32_t dry_allowed_length;      /* tokens; 0: 2 */
    uint32_t dry_last_n;              /* looks back at so many tokens; 0: at all of the sequence */
    /* [n_dry_breakers]: texts over which no repetition goes on: only tokens after the last one count, and a token with
     * such a text in it is never penalised. NULL: a newline, ":", "\"" and "*". They are copied. */
    const char *const *dry_breakers;
    size_t n_dry_breakers;
} peridot_sampling;

/* Sets the chain and seeds the generator. NULL: greedy. Biases and texts are copied, and the sequence is an owner of
 * the grammar. PERIDOT_ERROR_ARGUMENT when the grammar is for another vocabulary. */
PERIDOT_API peridot_status peridot_set_sampling(peridot_sequence *sequence, const peridot_sampling *sampling);
/* Members of a chain that the publisher of a model may recommend. */
typedef enum peridot_recommended {
    PERIDOT_RECOMMENDED_TEMPERATURE = 1,
    PERIDOT_RECOMMENDED_TOP_K = 2,
    PERIDOT_RECOMMENDED_TOP_P = 4,
    PERIDOT_RECOMMENDED_MIN_P = 8,
    PERIDOT_RECOMMENDED_REPEAT_PENALTY = 16,
    PERIDOT_RECOMMENDED_XTC_PROBABILITY = 32,
    PERIDOT_RECOMMENDED_XTC_THRESHOLD = 64
} peridot_recommended;

/* Puts what the publisher of the model recommends into *sampling: general.sampling.* of a GGUF file, or what
 * generation_config.json of a Hugging Face directory says (do_sample false is a temperature of 0). Members whose bits
 * are in `keep`, as somebody chose them, stay, and so do all others that nothing is recommended for. Gives the bits of
 * those that it wrote. What is out of range, or no number, recommends nothing: *ignored is then a sentence on the first
 * of these, without a full stop, borrowed until the model closes, and else NULL (`ignored` may be NULL). The library
 * itself never does so: a chain is what the program says. Any thread. */
PERIDOT_API uint32_t peridot_model_recommends(const peridot_model *model, peridot_sampling *sampling, uint32_t keep,
                                              const char **ignored);
/* The same from a file, which need not be opened as a model. */
PERIDOT_API uint32_t peridot_file_recommends(const peridot_file *file, peridot_sampling *sampling, uint32_t keep,
                                             const char **ignored);
/* Draws the next token from the last position's logits. Does not append it: pass it to peridot_sequence_eval. */
PERIDOT_API peridot_status peridot_sample(int32_t *token, peridot_sequence *sequence);
/* True for eos, the end of a turn and, where the vocabulary has tokens for fill-in-the-middle, that of a middle. */
PERIDOT_API bool peridot_is_stop(const peridot_model *model, int32_t token);

/* Called once per new token with the text it completes: whole UTF-8 characters only, and nothing that may yet turn out
 * to begin a stop text, so `size` may be 0. `token` is -1 in a last call that flushes what was held back. Return false
 * to stop. */
typedef bool (*peridot_text)(void *user, int32_t token, const char *text, size_t size);

typedef struct peridot_stats {
    size_t size;
    uint32_t n_prompt, n_generated;
    double prompt_s, decode_s;     /* wall time; decode_s covers the tokens after the first, which comes with the
                                      prompt */
    double first_token_s;          /* from the call to the first token's callback */
    uint64_t decode_read_size;     /* bytes of weights and cache read by all decode steps */
    uint64_t n_drafted, n_accepted;    /* tokens of drafts, and those of them that are in the text */
    /* Of a request that was submitted: tokens of the prompt that the session had evaluated before, when the request
     * began last; and times that it made room for others, to go on later. */
    uint32_t n_cached, n_preempted;
    /* What drafts saved of decode_s, by how long steps without drafts took; below 0 where they cost time; 0 also where
     * no such step was measured. */
    double draft_saved_s;
} peridot_stats;

/* A prompt that is to be continued. */
typedef struct peridot_request_params {
    size_t size;
    const int32_t *prompt;     /* [n_prompt] */
    size_t n_prompt;           /* 0: the sequence has logits */
    uint32_t n_max;            /* tokens to generate at most */
    peridot_text text;         /* NULL: none. That of a request must not evaluate anything; it may add requests and end
                                  this one by false */
    peridot_progress progress; /* NULL: none. Tokens of a long prompt, again and again while they are evaluated: false
                                  ends it with PERIDOT_CANCELLED */
    void *user;
    /* So many of the prompt's last tokens are a reply that an earlier request began, and that a lost device or a full
     * cache ended: the text, its stop texts, the generator and the grammar go on after them, to the same reply. The
     * chain is to be set anew before, with the seed that it had. */
    size_t n_replied;
    /* Called before `text` with the logits that a token is drawn from, before biases and penalties, and their position;
     * NULL: never. Steps are then not queued ahead. False ends the request. */
    peridot_row logits;
    /* Other prompts are likely to begin with the first so many tokens too, as with a system prompt: the sequence can be
     * forked there, and go back, wherever layers with windows are by then. 0: none. */
    size_t n_shared;
    /* Speculative decoding: up to so many tokens that are likely to come (a draft) are evaluated with the next one, in
     * a step that takes little longer, and are kept as far as the chain draws them. Every token is drawn from the same
     * logits and by the same random number as without drafts, so the text is the same. At most the session's n_draft;
     * PERIDOT_DRAFT_AUTO: as many as give most tokens per second, by how often guesses were right and how long steps
     * took lately, and none for a while where none do. 0: no drafts. */
    uint32_t n_draft;
    /* Drafts come from a smaller model with the same vocabulary: a sequence, for this request alone, of a session of
     * that model, which takes the same tokens. NULL: they come from the session's drafter, or are looked up: what
     * followed where the last tokens of the sequence were in it before. */
    peridot_sequence *draft;
    /* Drafts of a request that is submitted come from sequences that it takes of this session, which stays until the
     * request is freed. NULL: as above. */
    peridot_session *draft_session;
    const peridot_sampling *sampling;  /* set as by peridot_set_sampling; NULL: the sequence's, or greedy */
    /* Called with the prompt's rows, as those of peridot_eval_params are; NULL: never. A prompt that is submitted is
     * then evaluated from its beginning; where the request is preempted within it, its rows come once more. False ends
     * the request with PERIDOT_CANCELLED. */
    peridot_row prompt_logits, prompt_hidden;
    bool prompt_last;                  /* only of the prompt's last token */
    /* What the model thinks, where its vocabulary has marks of a thought (those of "gemma4", or <think>), of which the
     * template may write the first: called in place of `text` for the tokens of a thought and the two marks, whose text
     * is empty, as is that of a first line that is a name ("gemma4"). Where messages of a reply have headers, as
     * Muse Glimmer's have, `text` is called for those, with an empty text. NULL: `text` gets thoughts as other text. */
    peridot_text thought;
    /* As the prompt was encoded: see peridot_chat. After so many tokens of thoughts the mark that ends them is written,
     * whatever the chain would draw; they count as tokens of the reply. Stop texts, and a grammar, are for the answer
     * alone: the grammar's value begins where the thought has ended, or at once where the reply does not begin with
     * one. PERIDOT_THINK_OFF says nothing of thoughts. */
    uint32_t think;
    /* The answer may call these functions: their grammar is that of `sampling`, which must be given and has no other.
     * `text` gets no calls: its size is 0 for their tokens. NULL: none. */
    const peridot_tools *tools;
    peridot_call call;         /* after `text`; NULL: never */
    /* [n_adapters]: set as by peridot_sequence_set_adapters, so that n_adapters 0 means none; NULL: the sequence's, or
     * those that the model was opened with. */
    const peridot_adapter *adapters;
    size_t n_adapters;
} peridot_request_params;

/* Fails where `draft` cannot draft for the model: it is not a language model, or the two vocabularies differ. One of
 * them may have more tokens. */
PERIDOT_API peridot_status peridot_draft_check(const peridot_model *draft, const peridot_model *model);

/* Evaluates the prompt, then samples and evaluates up to n_max tokens, until a stop token, a stop text, the end of the
 * context or the callback's false. Steps are queued ahead on the device where the chain is greedy or has a top_k which,
 * with 64 more for penalties and one for each bias, is 128 at most, none of these raises a token, and no sequence of
 * the step has a grammar, DRY or top-n-sigma, or may have a draft: neither the text nor what the sequence says, in the
 * callback and afterwards, depends on it. stats may be NULL. A stop is PERIDOT_OK whoever asked for it. Other requests
 * of the session make no progress meanwhile. */
PERIDOT_API peridot_status peridot_generate(peridot_sequence *sequence, const peridot_request_params *params,
                                            peridot_stats *stats);

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* A peridot_generate that goes on beside others: what a server needs. Its prompt is copied. */
typedef struct peridot_request peridot_request;

/* Attaches a request to a sequence, which has no other. Its chain is the sequence's, as peridot_set_sampling left
 * it. */
PERIDOT_API peridot_status peridot_request_create(peridot_request **out, peridot_sequence *sequence,
                                                  const peridot_request_params *params);
/* A request without a sequence: the session finds one, and reuses as much of the prompt as a sequence of another
 * submitted request has, done or not (n_cached). Requests begin in the order in which they were submitted, and wait
 * while there is no sequence or too little room; one whose whole prompt another is evaluating waits for that, to share
 * it. n_shared is found by itself. When the cache is full, sequences of requests that are done are dropped; then the
 * text that needs more goes on later from its tokens, to the same end: its callbacks are called as if nothing had
 * happened. Where no other request has a sequence it ends with PERIDOT_ERROR_MEMORY. `sequence` is NULL in its
 * callbacks. PERIDOT_ERROR_ARGUMENT as of peridot_eval. */
PERIDOT_API peridot_status peridot_request_submit(peridot_request **out, peridot_session *session,
                                                  const peridot_request_params *params);
/* Detaches it, done or not: a sequence that it was given stays as it is; of what one that was submitted has added to
 * the cache nothing is kept if it is not done. Not in a callback. NULL is allowed. */
PERIDOT_API void peridot_request_free(peridot_request *request);
/* Whether it has ended, and how: *status, with the sentence in peridot_last_error (both may be NULL). */
PERIDOT_API bool peridot_request_done(const peridot_request *request, peridot_status *status, peridot_stats *stats);
/* One round for all requests: a decode step of those that write, and, unless a text ended in it, a chunk of the prompts
 * that wait; on a CPU both may be one pass. The chunk is sized so that on devices that can do a few tokens in time
 * nobody waits for more than 0.3 s; where one prompt is alone, so that whoever comes next waits for about 1 s, or five
 * times what reading the weights takes. Requests may be added and freed between rounds. *n_running: requests that are
 * not done. What goes wrong with one request ends that one; an error that is returned ends those that were submitted
 * and had begun, unless it is PERIDOT_CANCELLED or PERIDOT_ERROR_DEVICE_LOST. After the latter their tokens can be
 * submitted to another session, as n_replied says. */
PERIDOT_API peridot_status peridot_session_run(peridot_session *session, size_t *n_running);

typedef struct peridot_session_state {
    size_t size;
    uint32_t n_running, n_waiting;     /* requests that have a sequence, and that wait for one */
    uint32_t n_kept;                   /* sequences of submitted requests that are done; they hold positions, and go
                                          when others need these */
    uint64_t n_preempted;              /* times that a request made room for others */
} peridot_session_state;

PERIDOT_API void peridot_session_get_state(const peridot_session *session, peridot_session_state *state);

#ifdef __cplusplus
}
#endif
#endif
