/* How the next token is chosen, as options: what peridot_sampling has, for every command that writes text. */
#ifndef PERIDOT_COMMAND_SAMPLING_H
#define PERIDOT_COMMAND_SAMPLING_H

#include "command.h"

#include <stdio.h>

/* A member of such a command's arguments. */
struct cmd_sampling {
    peridot_sampling p;
    uint32_t given;            /* bits of peridot_recommended: of `p`, what was said */
    struct cmd_texts stop, bias, breakers;
    const char *schema;        /* a file; NULL: none */
    bool verbose;
};

#define CMD_GIVES(type, member, what) \
    .given = offsetof(type, member.given), .bit = PERIDOT_RECOMMENDED_##what

/* The numbers of a chain; the others' defaults are the same everywhere. */
#define CMD_CHAIN_OPTIONS(type, member, default_temp, default_top_p, default_min_p) \
    {.name = "temp", .metavar = "T", .kind = CMD_F32, .offset = offsetof(type, member.p.temperature), \
     CMD_GIVES(type, member, TEMPERATURE), .fallback = default_temp, .max = 100, \
     .help = "Temperature: 0 always takes the likeliest token; higher values give more varied text. Where the " \
             "model's files recommend other values for this, top-k, top-p, min-p, repeat-penalty or XTC, those are " \
             "the defaults, and standard error says so."}, \
    {.name = "top-k", .metavar = "K", .kind = CMD_U32, .offset = offsetof(type, member.p.top_k), .fallback = "40", \
     CMD_GIVES(type, member, TOP_K), .help = "Draw among the K likeliest tokens; 0: among all."}, \
    {.name = "top-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.top_p), .max = 1, \
     CMD_GIVES(type, member, TOP_P), .fallback = default_top_p, \
     .help = "Draw among the likeliest tokens that together have probability P; 1: among all."}, \
    {.name = "min-p", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.min_p), .max = 1, \
     CMD_GIVES(type, member, MIN_P), .fallback = default_min_p, \
     .help = "Draw among tokens at least P times as likely as the likeliest; 0: among all."}, \
    {.name = "top-n-sigma", .metavar = "N", .kind = CMD_F32, .offset = offsetof(type, member.p.top_n_sigma), \
     .fallback = "0", .max = 100, .help = "Draw among tokens whose logits are at most N standard deviations below " \
     "the highest; 0: among all."}, \
    {.name = "xtc-probability", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.xtc_probability), \
     CMD_GIVES(type, member, XTC_PROBABILITY), .fallback = "0", .max = 1, \
     .help = "XTC: with this probability a draw leaves out the top choices, which are all tokens of at least the " \
             "threshold's probability but the least likely of them; 0: never."}, \
    {.name = "xtc-threshold", .metavar = "P", .kind = CMD_F32, .offset = offsetof(type, member.p.xtc_threshold), \
     CMD_GIVES(type, member, XTC_THRESHOLD), .fallback = "0.1", .max = 1, \
     .help = "The probability that makes a top choice; over 0.5: there are none."}, \
    {.name = "repeat-penalty", .metavar = "R", .kind = CMD_F32, .offset = offsetof(type, member.p.repeat_penalty), \
     CMD_GIVES(type, member, REPEAT_PENALTY), .fallback = "1", .max = 100, \
     .help = "Makes the last 64 tokens less likely to come again: positive logits are divided by R, others " \
             "multiplied; 1: off."}, \
    {.name = "presence-penalty", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.presence_penalty), \
     .fallback = "0", .min = -100, .max = 100, .help = "Subtracted from the logits of the last 64 tokens."}, \
    {.name = "frequency-penalty", .metavar = "X", .kind = CMD_F32, \
     .offset = offsetof(type, member.p.frequency_penalty), .fallback = "0", .min = -100, .max = 100, \
     .help = "Subtracted from a token's logit once for each time that it is among the last 64."}, \
    {.name = "dry-multiplier", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.dry_multiplier), \
     .fallback = "0", .max = 100, .help = "DRY: where the last tokens were in the text before, X times the base to " \
     "the power of how many they are, beyond the allowed length, is subtracted from the logit of the token that " \
     "came next there; 0: off."}, \
    {.name = "dry-base", .metavar = "X", .kind = CMD_F32, .offset = offsetof(type, member.p.dry_base), \
     .fallback = "1.75", .min = 1, .max = 100, .help = "What a repetition costs more for each token."}, \
    {.name = "dry-allowed-length", .metavar = "N", .kind = CMD_U32, \
     .offset = offsetof(type, member.p.dry_allowed_length), .fallback = "2", .min = 1, .max = 1e9, \
     .help = "Repetitions of fewer tokens cost nothing."}, \
    {.name = "dry-penalty-last-n", .metavar = "N", .kind = CMD_U32, .offset = offsetof(type, member.p.dry_last_n), \
     .fallback = "0", .spelling = cmd_dry_all, .help = "Look for repetitions in the last N tokens; 0 or -1: in all."}, \
    {.name = "dry-sequence-breaker", .metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(type, member.breakers), \
     .help = "No repetition goes on over this text. May be repeated; none: there are no such texts. Without it, they " \
             "are a newline, a colon, a quote and an asterisk."}

#define CMD_SAMPLING_OPTIONS(type, member) \
    CMD_CHAIN_OPTIONS(type, member, "0.8", "0.95", "0.05"), \
    {.name = "logit-bias", .metavar = "ID=X", .kind = CMD_TEXTS, .offset = offsetof(type, member.bias), \
     .help = "Adds X to the logit of token ID; -inf bans it. May be repeated."}, \
    {.name = "stop", .metavar = "TEXT", .kind = CMD_TEXTS, .offset = offsetof(type, member.stop), \
     .help = "Ends the reply before this text. May be repeated: the first that occurs counts."}, \
    {.name = "seed", .metavar = "S", .kind = CMD_SEED, .offset = offsetof(type, member.p.seed), .fallback = "random", \
     .help = "The same seed, device and model give the same text. The statistics show the one used."}, \
    {.name = "verbose", .kind = CMD_FLAG, .offset = offsetof(type, member.verbose), \
     .help = "Show on standard error how tokens are chosen: every step of the chain, in its order."}

#define CMD_SCHEMA_OPTION(type, member) \
    {.name = "json-schema", .metavar = "FILE", .kind = CMD_TEXT, .offset = offsetof(type, member.schema), \
     .help = "The reply is JSON that this JSON Schema allows, whatever the model: other tokens are never drawn. A " \
             "reply that ends by its length is cut. Keywords that are not supported are named."}

/* -1, as other programs have it, is 0. */
const char *cmd_dry_all(const char *text);
/* The options' breakers put into a chain; borrows them. */
void cmd_sampling_break(peridot_sampling *out, const struct cmd_sampling *given);
/* Puts what the model's publisher recommends into a chain, but for what was given (bits of peridot_recommended), and
 * says so on standard error. */
void cmd_sampling_recommend(peridot_sampling *p, const peridot_model *model, uint32_t given);
/* "temperature 0.6, top-k 20": of a chain, the numbers of these bits; as JSON "temperature": 0.6, "top_k": 20 */
void cmd_sampling_print_members(FILE *file, const peridot_sampling *p, uint32_t members, bool json);
/* The options with texts and biases put in their places; `bias` is where the latter go. Borrows from both. CMD_OK,
 * or CMD_USAGE after a sentence. */
int cmd_sampling_make(peridot_sampling *out, peridot_bias bias[CMD_TEXTS_MAX], const struct cmd_command *command,
                      const struct cmd_sampling *given);
/* The grammar of --json-schema for the model's vocabulary; NULL without the option. Failures name the file. */
peridot_status cmd_grammar_open(peridot_grammar **out, const struct cmd_sampling *given, const peridot_model *model);
/* "sampling: repeat penalty 1.1, top-k 40, ..." in the chain's order, without what is off. */
void cmd_sampling_print(FILE *file, const peridot_sampling *p);
/* A line on what a reply cost: "prompt: 4 tokens, 323.8 tokens/s; reply: 48 tokens, ...". */
void cmd_stats_print(FILE *file, const peridot_stats *s, const peridot_sampling *sampling);

#endif
