/* Parameters that other servers have and whose values change no answer here: a table of their names, of the interfaces
 * that have them, and of the values that are accepted. */
#include "wire_.h"
#include "../job/job.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHAT = SERVE_SET_CHATS, COMPLETIONS = SERVE_SET_COMPLETIONS, RESPONSES = SERVE_SET_RESPONSES,
    EMBEDDINGS = SERVE_SET_EMBEDDINGS, WRITES = SERVE_SET_WRITES,
    OPENAI = SERVE_SET_OPENAI, LLAMA = SERVE_SET_LLAMA, TEXTS = CHAT | COMPLETIONS | LLAMA,
    MESSAGES = SERVE_SET_MESSAGES, ANTHROPIC = SERVE_SET_ANTHROPIC,
    OLLAMA_CHAT = SERVE_SET_OLLAMA_CHAT, GENERATE = SERVE_SET_GENERATE, SHOW = SERVE_SET_SHOW,
    OLLAMA = SERVE_SET_OLLAMA, OPTIONS = SERVE_SET_OPTIONS
};

struct neutral {
    const char *name;
    unsigned apis;
    const char *accepts;       /* JSON texts with | between them; NULL: anything */
};

#define ONLY_NULL ""

/* Whose they are: O OpenAI, C Anthropic, L llama.cpp's server, V vLLM, A Ollama, S LM Studio, H Hugging Face, W Qwen,
 * DeepSeek. */
static const struct neutral neutrals[] = {
    /* who asks, what for, and what of it the server keeps (nothing) */
    {"user", OPENAI, NULL},                        /* O */
    {"metadata", OPENAI | MESSAGES, NULL},         /* O, C */
    {"safety_identifier", WRITES, NULL},           /* O */
    {"user_profile_id", ANTHROPIC, NULL},          /* C */
    {"client_metadata", RESPONSES, NULL},          /* O */
    {"context_management", MESSAGES | RESPONSES, NULL},   /* C, O: earlier turns stay, and the client sends them */
    {"diagnostics", MESSAGES, NULL},               /* C: what of a prompt was not in a cache, and why */
    {"store", CHAT, NULL},                         /* O */
    {"request_id", OPENAI, NULL},                  /* V */
    {"session_id", OPENAI, NULL},                  /* V */
    /* when it is served, and for how long the model stays loaded (always) */
    {"service_tier", WRITES | MESSAGES, NULL},     /* O, C */
    {"inference_geo", MESSAGES, NULL},             /* C */
    {"speed", ANTHROPIC, NULL},                    /* C */
    {"priority", OPENAI, NULL},                    /* V */
    {"keep_alive", OPENAI | OLLAMA, NULL},         /* A */
    {"ttl", OPENAI, NULL},                         /* S */
    {"background", RESPONSES, "false"},            /* O: the answer would have to be fetched later */
    /* how it is computed: caches, drafts, and the device change no text */
    {"cache_control", ANTHROPIC, NULL},            /* C */
    {"prompt_cache_key", WRITES, NULL},            /* O */
    {"prompt_cache_retention", WRITES, NULL},      /* O */
    {"prediction", CHAT, NULL},                    /* O */
    {"cache_prompt", WRITES, NULL},                /* L */
    {"n_cache_reuse", WRITES, NULL},               /* L */
    {"id_slot", WRITES, NULL},                     /* L */
    {"slot_id", WRITES, NULL},                     /* L */
    {"backend_sampling", WRITES, NULL},            /* L */
    {"speculative.n_max", WRITES, NULL},           /* L */
    {"speculative.n_min", WRITES, NULL},           /* L */
    {"speculative.p_min", WRITES, NULL},           /* L */
    {"draft_model", WRITES, NULL},                 /* S */
    {"num_thread", OPENAI | OPTIONS, NULL},        /* A */
    {"num_batch", OPENAI | OPTIONS, NULL},         /* A */
    {"num_gpu", OPENAI | OPTIONS, NULL},           /* A */
    {"main_gpu", OPTIONS, NULL},                   /* A */
    {"low_vram", OPTIONS, NULL},                   /* A */
    {"numa", OPTIONS, NULL},                       /* A */
    {"f16_kv", OPTIONS, NULL},                     /* A */
    {"num_keep", OPTIONS, NULL},                   /* A */
    {"use_mmap", OPENAI | OPTIONS, NULL},          /* A */
    {"use_mlock", OPENAI | OPTIONS, NULL},         /* A */
    {"guided_decoding_backend", TEXTS, NULL},      /* V */
    /* numbers beside the answer, and in how many pieces a stream comes */
    {"timings_per_token", WRITES, NULL},           /* L */
    {"return_progress", WRITES & ~CHAT, NULL},     /* L */
    {"verbose", WRITES | SHOW, NULL},              /* L, A */
    {"stream_interval", WRITES, NULL},             /* V */
    {"return_tokens", TEXTS, "false"},             /* L: here it is return_token_ids */
    {"response_fields", TEXTS, "[]"},              /* L */
    {"n_probs", TEXTS, "0"},                       /* L: here it is logprobs */
    {"post_sampling_probs", TEXTS, "false"},       /* L */
    {"return_tokens_as_token_ids", TEXTS, "false"},   /* V */
    {"return_prompt_text", TEXTS, "false"},        /* V */
    {"prompt_logprobs", TEXTS, ONLY_NULL},         /* V: here it is echo with logprobs */
    {"top_logprobs", RESPONSES, "0"},              /* O */
    /* samplers that are off; what belongs to them does not matter then */
    {"typical_p", WRITES | OPTIONS, "1"},          /* L, A */
    {"typ_p", WRITES, "1"},                        /* L */
    {"tfs_z", WRITES | OPTIONS, "1"},              /* A */
    {"dynatemp_range", WRITES, "0"},               /* L */
    {"dynatemp_exponent", WRITES, NULL},
    {"mirostat", WRITES | OPTIONS, "0"},           /* L, A */
    {"mirostat_tau", WRITES | OPTIONS, NULL},
    {"mirostat_eta", WRITES | OPTIONS, NULL},
    {"penalize_newline", OPTIONS, "true"},         /* A */
    {"use_beam_search", WRITES, "false"},          /* V */
    {"length_penalty", WRITES, NULL},
    {"early_stopping", WRITES, NULL},
    {"do_sample", WRITES, "true"},                 /* H: temperature 0 is the other way */
    /* what samplers do here anyway */
    {"repeat_last_n", WRITES | OPTIONS, "64"},     /* L, A */
    {"repetition_penalty", WRITES, "1"},           /* V, H: here it is repeat_penalty */
    {"min_keep", WRITES, "0"},                     /* L */
    {"grammar", WRITES, "\"\""},                   /* L */
    {"allowed_token_ids", WRITES, "[]"},           /* V */
    {"bad_words", WRITES, "[]"},                   /* V */
    {"structured_outputs", TEXTS, ONLY_NULL},      /* V: here it is response_format */
    {"guided_json", TEXTS, ONLY_NULL},             /* V */
    /* where a text ends: at the model's end, and at `stop`, which is not part of it */
    {"ignore_eos", WRITES, "false"},               /* L, V */
    {"min_tokens", WRITES, "0"},                   /* V */
    {"stop_token_ids", WRITES, "[]"},              /* V */
    {"include_stop_str_in_output", WRITES, "false"},   /* V */
    {"skip_special_tokens", WRITES, "true"},       /* V */
    {"spaces_between_special_tokens", WRITES, NULL},
    {"n_predict", WRITES, "-1"},                   /* L: here it is max_tokens */
    {"n_indent", WRITES, "0"},                     /* L */
    {"t_max_predict_ms", WRITES, "0"},             /* L */
    {"t_max_prompt_ms", LLAMA, NULL},              /* L, which does nothing with it either */
    {"n_keep", WRITES, NULL},                      /* L: a full context ends the text, and nothing is thrown away */
    {"n_discard", WRITES, NULL},                   /* L */
    /* how messages become a prompt */
    {"echo", CHAT, "false"},                       /* V */
    {"add_special_tokens", CHAT, "false"},         /* V */
    {"add_special_tokens", COMPLETIONS | EMBEDDINGS, "true"},
    {"documents", CHAT, "[]"},                     /* V */
    {"chat_template", CHAT, ONLY_NULL},            /* V */
    {"template", GENERATE, "\"\""},                /* A */
    {"context", GENERATE, "[]"},                   /* A: /api/chat takes the messages */
    {"shift", OLLAMA_CHAT | GENERATE, NULL},       /* A */
    {"truncate_prompt_tokens", OPENAI, ONLY_NULL}, /* V */
    {"truncation_side", OPENAI, NULL},
    {"conversation", RESPONSES, ONLY_NULL},        /* O */
    /* tools of the server's, an older form of tools, and media */
    {"container", MESSAGES, ONLY_NULL},            /* C */
    {"max_tool_calls", RESPONSES, NULL},
    {"functions", CHAT, "[]"},
    {"function_call", CHAT, "\"none\"|\"auto\""},
    {"parse_tool_calls", CHAT, NULL},              /* L */
    {"modalities", CHAT, "[\"text\"]"},            /* O */
    {"audio", CHAT, ONLY_NULL},
    {"verbosity", CHAT, NULL},                     /* O */
    {"reasoning_format", CHAT, "\"none\"|\"auto\""},   /* L */
    {"include_reasoning", CHAT, NULL},             /* V */
    /* vectors are of length 1 */
    {"normalize", EMBEDDINGS, "true"},             /* H */
    {"embd_normalize", EMBEDDINGS, "2"},           /* L */
};

static const struct neutral *neutral_find(unsigned apis, const char *name)
{
    for (size_t i = 0; i < PD_COUNT(neutrals); i++)
        if (neutrals[i].apis & apis && strcmp(neutrals[i].name, name) == 0) return &neutrals[i];
    return NULL;
}

bool serve_is_neutral(unsigned apis, const char *name) { return neutral_find(apis, name) != NULL; }

/* Whether it is the JSON text; numbers may be written in any way. */
static bool is(yyjson_val *value, const char *text, size_t size)
{
    size_t n = 0;
    if (yyjson_is_num(value))
        return *text && strchr("-0123456789", *text) && yyjson_get_num(value) == strtod(text, NULL);
    char *written = yyjson_val_write(value, 0, &n);
    bool same = written && n == size && memcmp(written, text, n) == 0;
    free(written);
    return same;
}

bool serve_neutral_read(struct serve_job *job, unsigned apis, const char *name, yyjson_val *value)
{
    const struct neutral *n = neutral_find(apis, name);
    bool accepted = !n->accepts;
    for (const char *at = n->accepts; at && *at && !accepted; at += at[strcspn(at, "|")] == '|') {
        accepted = is(value, at, strcspn(at, "|"));
        at += strcspn(at, "|");
    }
    if (accepted) return true;
    char only[128] = "";
    size_t size = 0;
    for (const char *at = n->accepts; *at && size + 8 < sizeof only; at++)
        size += (size_t)snprintf(only + size, sizeof only - size, "%s", *at == '|' ? " or " : (char[]){*at, 0});
    return serve_refuse(&job->error, 400, "unsupported_parameter", name, "%s is not supported%s%s", name,
                        *only ? ": it can only be " : "", only);
}
